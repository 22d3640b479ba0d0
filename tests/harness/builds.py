# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""Builds what the tests of some tiers need, before they run.

Kernels and C++ are built at the same time in two lanes, for each of them leaves a
processor idle now and then. A build that fails stops its lane and nothing else: what
could be built is tested. builds.json keeps what became of each, for test_builds.py.
"""
from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from dataclasses import dataclass

from . import paths, times

RESULTS = paths.TEST / "builds.json"
# Seconds between two signs of life.
HEARTBEAT_S = 30


@dataclass(frozen=True)
class Build:
    """A command that makes something the tests need, and the lane that it is in."""

    name: str
    lane: str
    argv: tuple[str, ...]

    @property
    def log(self):
        """The file with the output of the command."""
        return paths.TEST / f"build-{self.name.replace(' ', '-')}.log"


def kernel_builds(variant: str, flavour: str = "") -> list[Build]:
    """A kernel and the kselftests of its series."""
    name = variant + (f"-{flavour}" if flavour else "")
    flags = (f"--{flavour}",) if flavour else ()
    builds = [Build(f"kernel {name}", "kernel", ("scripts/kernel.sh", "build", variant, *flags))]
    if variant != "stock":
        builds.append(Build(f"kselftests {name}", "kernel", ("scripts/kernel.sh", "selftests", variant, *flags)))
    return builds


RELEASE = Build("release", "programs", ("scripts/build.sh", "release"))
RELEASE_UNITS = Build("release unit tests", "programs", ("scripts/build.sh", "release", "unit_tests"))
ASAN = Build("asan", "programs", ("scripts/build.sh", "asan", "unit_tests", "fuzzers"))
TSAN = Build("tsan", "programs", ("scripts/build.sh", "tsan", "vasicd_test", "vasicd_process_test", "base_test", "plugin_test"))
TREE = Build("kernel trees", "kernel", ("scripts/kernel.sh", "tree"))


def run_all(builds: list[Build]) -> list[str]:
    """Runs the builds and records what became of them; says so on standard error. Returns the
    names of those that are not built."""
    done: dict[str, dict] = {}
    lanes: dict[str, list[Build]] = {}
    for build in builds:
        lanes.setdefault(build.lane, []).append(build)
    current: dict[str, Build] = {}

    def run_lane(lane: str) -> None:
        for build in lanes[lane]:
            current[lane] = build
            done[build.name] = _run(build)
            if done[build.name]["status"] != 0:
                for later in lanes[lane][lanes[lane].index(build) + 1:]:
                    done[later.name] = {"status": None, "log": "", "why": f"{build.name} failed"}
                break
        current.pop(lane, None)

    # Threads that do not keep an interrupted run from its end; their builds end with it.
    threads = [threading.Thread(target=run_lane, args=(lane,), daemon=True) for lane in lanes]
    begin = said = time.monotonic()
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        time.sleep(0.2)
        if time.monotonic() - said >= HEARTBEAT_S:
            said = time.monotonic()
            for build in list(current.values()):
                print(f"test.py: {said - begin:5.0f} s: building {build.name}: {_last_line(build)}",
                      file=sys.stderr, flush=True)
    RESULTS.write_text(json.dumps(done))
    return [build.name for build in builds if done[build.name]["status"] != 0]


def forget() -> None:
    """Nothing was built for this run: what became of earlier builds is no result of it."""
    RESULTS.unlink(missing_ok=True)


def _run(build: Build) -> dict:
    try:
        with times.step("compile", build.name), build.log.open("w") as log:
            # A build must not outlive the run that wants it.
            status = subprocess.run(["setpriv", "--pdeathsig", "TERM", *build.argv], cwd=paths.ROOT,
                                    stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                                    check=False).returncode
    except OSError as error:
        return {"status": None, "log": "", "why": str(error)}
    return {"status": status, "log": str(build.log), "why": f"status {status}"}


def _last_line(build: Build) -> str:
    lines = build.log.read_text(errors="replace").splitlines() if build.log.exists() else []
    return lines[-1].split("\r")[-1].strip()[:100] if lines else ""
