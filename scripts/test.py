#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""Builds what tests need and runs them with pytest.

usage: test.py [OPTION]... [TIER | ID]... [-k EXPRESSION] [-x] [any option of pytest]

  TIER          builds lint python unit vm series guest e2e; without one, all of them
  ID            one test, as a failed one is named: tests/plan.toml::gfx906::kfdtest::BoTest.x;
                not together with a TIER, --lf or --check
  --all         also tests that take too long for every change: make test-all
  --groups G    other machines of tests/plan.toml: debug, coverage, distro, report, soak, soak-quick
  --full CHIPS  all cases on these chips (names and commas, or "all"), not only on gfx906
  --check       only tests that the change in the work tree can break, compared with BASE or
                the last commit that passed here; lists what it leaves out: make check.
                If the change can break no test, nothing runs and the status is 0
  --lf          only tests that failed in the last run; status 64 if none did
  --list        print the IDs and run no test
  --no-build    use what is already built
  -n N          N tests or virtual machines at the same time; default: as many machines as
                this one has processors and memory for, and beside them a test of this host
  An option of pytest takes its value as --option=value, or as a word of its own
  if it is one of -c -k -m -o -p -r -W --deselect --durations --ignore --maxfail --timeout.

Results: out/test/results.jsonl, junit.xml, times.txt (seconds of each step), logs/. Every
failed test is printed with the command that repeats only this test. The last line is
"N passed, N failed[, N skipped]". Status: 0 all passed; 1 a test failed, or skipped for
a reason that tests/plan.toml does not list; 64 usage, or no test is selected; 125 the
tests could not be run.

Environment: OUT_DIR, JOBS (compilers at the same time), BASE (for --check).
"""
from __future__ import annotations

import argparse
import errno
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

sys.dont_write_bytecode = True
ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "scripts")]
import command  # noqa: E402  # pylint: disable=wrong-import-position
from harness import builds, check, chip, paths, plan, selection, times  # noqa: E402  # pylint: disable=wrong-import-position
from vm.errors import VmError  # noqa: E402  # pylint: disable=wrong-import-position

# Groups whose tests are a tier of their own, which only --groups runs.
TIER_OF_GROUP = {"distro": "distro", "report": "report", "coverage": "coverage", "debug": "debug", "soak": "soak", "soak-quick": "soak"}
TIERS = ("builds", "lint", "python", "unit", "vm", "series", "guest", "e2e")
EXIT_USAGE, EXIT_INFRA = 64, 125
# Options of pytest whose value may be the next word of the command line.
WITH_VALUE = ("-c", "-k", "-m", "-o", "-p", "-r", "-W", "--deselect", "--durations", "--ignore", "--maxfail", "--timeout")
# Memory of a virtual machine of the tests, and memory that the host keeps for itself, in MiB.
VM_MIB, HOST_MIB = 3072, 2048
MAX_MACHINES = 3
# Free space that out/ must have for a first build of all programs and kernels, and for the logs of a run, in MiB.
BUILD_MIB, LOGS_MIB = 12288, 256


class Nothing(Exception):
    """The change in the work tree can break no test, so --check has none to run."""


def parse(argv: list[str]) -> tuple[argparse.Namespace, list[str]]:
    """Returns the options of test.py, and the words for pytest."""
    parser = command.Parser(__doc__)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--groups", default="")
    parser.add_argument("--full", default=chip.DEFAULT)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--lf", "--last-failed", action="store_true")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--no-build", action="store_true")
    parser.add_argument("-n", type=number_of_workers, default=0)
    return parser.parse_known_args(argv)


def number_of_workers(text: str) -> int:
    """Reads the value of -n."""
    if not text.isascii() or not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"is a number from 1, not '{text}'")
    return int(text)


def fail(text: str, status: int) -> int:
    """Prints the error; returns the exit status."""
    print(f"test.py: error: {text}", file=sys.stderr)
    return status


def split_words(words: list[str]) -> tuple[list[str], list[str], list[str]]:
    """Splits the words into tiers, IDs, and options of pytest with their values."""
    tiers, ids, options = [], [], []
    for word, before in zip(words, ["", *words]):
        if word.startswith("-") or before in WITH_VALUE:
            options.append(word)
        elif word in TIERS:
            tiers.append(word)
        elif (ROOT / word.split("::")[0]).exists():
            ids.append(word)
        else:
            raise ValueError(f"'{word}' is neither a tier ({' '.join(TIERS)}) nor a test")
    return tiers, ids, options


def last_failed() -> list[str]:
    """Returns the IDs that failed in the last run."""
    results = paths.TEST / "results.jsonl"
    if not results.exists():
        return []
    # A run that was killed may have left a part of a line.
    rows = [json.loads(line) for line in results.read_text().splitlines() if line.endswith("}")]
    return [row["id"] for row in rows if row["outcome"] == "failed"]


# What the unit tests of a machine of the plan are compiled to.
UNIT_BUILDS = {"host-asan": builds.ASAN, "host-tsan": builds.TSAN, "host-release": builds.RELEASE_UNITS}


def needed_builds(tiers: list[str], ids: list[str], groups: str, everything: bool) -> list[builds.Build]:
    """Returns the builds that the tiers, or single tests, need."""
    if groups == "debug":
        return [*builds.kernel_builds("criu", "debug"), builds.RELEASE]
    if groups == "coverage":
        return [*builds.kernel_builds("criu", "coverage"), builds.RELEASE]
    if groups.startswith("soak"):
        return [*builds.kernel_builds("stock"), *builds.kernel_builds("criu", "debug"), builds.RELEASE]
    kinds = set(tiers or (kinds_of(ids) if ids else TIERS))
    wanted: list[builds.Build] = []
    if groups == "distro":
        return [builds.RELEASE, *builds.kernel_builds("criu")]
    if kinds & {"vm", "guest", "e2e", "builds"} or groups == "report":
        wanted += [builds.RELEASE, *builds.kernel_builds("criu")]
        if everything or groups == "report":
            wanted += builds.kernel_builds("stock")
    if {"unit", "builds"} & kinds:
        kinds |= {"host-asan", "host-tsan"} | ({"host-release"} if everything else set())
    units = [build for kind, build in UNIT_BUILDS.items() if kind in kinds]
    # The plan runs vasicd of the release build to get the list of chips.
    wanted += [builds.RELEASE, *units] if units or "documents" in kinds else []
    if "series" in kinds:
        wanted += [builds.TREE, *builds.kernel_builds("criu"), builds.RELEASE]
    return list(dict.fromkeys(wanted))


# The IDs of a tier's tests, for a run that also names single tests.
TIER_IDS = {
    "lint": ["tests/test_lint.py"], "python": ["scripts", "tests/harness"], "series": ["tests/test_series.py",
    "tests/plan.toml::host-golden"], "vm": ["tests/test_vm.py"], "e2e": ["tests/test_e2e.py", "tests/test_field.py"],
    "faults": ["tests/test_faults.py"],
    "unit": ["tests/plan.toml::host-asan", "tests/plan.toml::host-tsan", "tests/test_fuzz.py"],
    "fuzz": ["tests/test_fuzz.py"], "loops": ["tests/test_loops.py"],
    "package": ["tests/test_package.py", "tests/test_documents.py"],
}


def ids_of(test: str) -> list[str]:
    """Returns the IDs for a word of [[affects]] in plan.toml: a tier, a file of tests, a unit test program, or a machine."""
    if test in TIER_IDS:
        return TIER_IDS[test]
    if test.endswith(".py"):
        return [test]
    return [f"tests/plan.toml::host-asan::{test}" if test.startswith("unit_") else f"tests/plan.toml::{test}"]


# Files in tests/ that need the builds of another tier, or those of a host machine of the plan.
TIER_OF_FILE = {"distro": "e2e", "field": "e2e", "fuzz": "host-asan", "loops": "guest", "faults": "e2e", "stock": "e2e",
                "sharing_chips": "e2e", "boot": "guest", "llm": "e2e", "podman": "e2e", "rccl": "e2e", "recipes": "guest", "package": "documents"}


def kinds_of(ids: list[str]) -> set[str]:
    """Returns the tiers, and the host machines of the plan, whose builds the tests with these IDs need."""
    kinds = set()
    for each in ids:
        path, _, rest = each.partition("::")
        if path == "tests/plan.toml":
            if not rest:
                return set(TIERS)
            machine = rest.split("::")[0]
            kinds.add("series" if machine == "host-golden" else machine if machine in UNIT_BUILDS else "guest")
        elif path.startswith("tests/test_"):
            name = Path(path).stem.removeprefix("test_")
            kinds.add(TIER_OF_FILE.get(name, name))
        elif (ROOT / path).is_dir() and (ROOT / "tests").is_relative_to((ROOT / path).resolve()):
            return set(TIERS)
    return kinds


def machine_count() -> int:
    """Returns how many virtual machines run at the same time: one for each processor, and no more than fit into memory.
    A virtual machine has two processors. Without KVM, QEMU on an overcommitted host now and then delivers no timer
    interrupts to one of them, and the guest hangs; with one test more than processors this was seen once in 150 boots."""
    memory_mib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20
    by_memory = (memory_mib - HOST_MIB) // VM_MIB
    return max(1, min(by_memory, os.cpu_count() or 1, MAX_MACHINES))


def take_lock():
    """Locks out/test until this process ends, so that two runs never write to it at the same time."""
    paths.TEST.mkdir(parents=True, exist_ok=True)
    lock = (paths.TEST / ".lock").open("w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print(f"test.py: waiting for another run that uses {paths.TEST}", file=sys.stderr)
        fcntl.flock(lock, fcntl.LOCK_EX)
    return lock


def run_pytest(argv: list[str]) -> int:
    """Runs pytest in a process that ends when this one does; returns pytest's status."""
    # In a session of its own, or Ctrl-C would reach it twice: from the terminal and from here.
    process = subprocess.Popen(  # pylint: disable=consider-using-with
        ["setpriv", "--pdeathsig", "TERM", paths.PYTHON, "-B", "-m", "pytest", *argv], cwd=ROOT, start_new_session=True,
        env={**os.environ, "KFD_TESTS_LOCKED": "1"})  # see conftest.py

    def pass_on(number, _frame) -> None:
        process.send_signal(number)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, pass_on)
    return process.wait()


def closing_line(status: int) -> int:
    """Prints the counts and returns the status. A run without a test, or without a report, has failed."""
    summary = paths.TEST / "summary.json"
    try:
        counts = json.loads(summary.read_text())
    except (FileNotFoundError, ValueError):
        print("0 passed, 1 failed")
        return EXIT_INFRA
    if status == 0 and (counts["passed"] == 0 or counts["failed"]):
        status = 1
    if status and not counts["failed"]:
        counts["failed"] = 1
    line = f"{counts['passed']} passed, {counts['failed']} failed"
    print(line + (f", {counts['skipped']} skipped" if counts["skipped"] else ""), flush=True)
    return min(status, 1) if status in (0, 1, 2) else EXIT_INFRA


def choose(ours: argparse.Namespace, words: list[str]) -> tuple[list[str], list[str], list[str]]:
    """Returns tiers, IDs and options of pytest, also those that --lf, --check and --groups select.
    Raises ValueError for a wrong command line or if no test failed, and Nothing if --check has no test to run."""
    tiers, ids, options = split_words(words)
    if tiers and ids:
        raise ValueError(f"a tier ('{tiers[0]}') and a test ('{ids[0]}') at once: name tiers or tests")
    if ours.lf and ours.check:
        raise ValueError("--lf and --check at once: each selects the tests itself")
    if (tiers or ids) and (ours.lf or ours.check):
        raise ValueError(f"{'--lf' if ours.lf else '--check'} selects the tests itself: name none ('{[*tiers, *ids][0]}')")
    if ours.lf:
        ids = last_failed()
        if not ids:
            raise ValueError("no test failed in the last run")
    if ours.check:
        selection = check.select(os.environ.get("BASE", ""))
        print(selection.explain(), file=sys.stderr, flush=True)
        ids = [each for test in selection.tests for each in ids_of(test)]
        if not ids:
            raise Nothing
    known = plan.groups(paths.PLAN)
    for group in filter(None, ours.groups.split(",")):
        if group not in known:
            raise ValueError(f"no group '{group}'; there are {' '.join(sorted(known))}")
    if ours.groups in TIER_OF_GROUP and not ids:
        tiers = [TIER_OF_GROUP[ours.groups]]
    return tiers, ids, options


def check_chips(full: str) -> None:
    """Raises ValueError if --full or CHIP names a chip that vasicd, if it is built, does not list."""
    if not (paths.built("release") / "vasicd" / "vasicd").exists():
        return
    known = plan.chips()
    for name in full.split(","):
        if name != "all" and name not in known:
            raise ValueError(f"--full: no chip '{name}'; there are {' '.join(known)}")
    if "CHIP" in os.environ:
        chip.chosen()


def check_machines(ids: list[str], ours: argparse.Namespace) -> None:
    """Raises ValueError if an ID names a machine that the plan does not have; chips are known if vasicd is built."""
    wanted = {each.split("::")[1] for each in ids if each.startswith("tests/plan.toml::")}
    if not wanted or not (paths.built("release") / "vasicd" / "vasicd").exists():
        return
    known = plan.Plan(paths.PLAN, groups_of(ours), set(ours.full.split(",")), ours.all).machine_names()
    for name in sorted(wanted - set(known)):
        raise ValueError(f"no machine '{name}' in these groups (see --all, --groups); there are {' '.join(known)}")


def check_free_space(ours: argparse.Namespace) -> None:
    """Raises OSError if the output folder has too little free space for the files of a run."""
    needed = LOGS_MIB if ours.no_build or (paths.OUT / "kernel" / "pristine.stamp").exists() else BUILD_MIB
    paths.TEST.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(paths.OUT).free >> 20
    if free < needed:
        raise OSError(errno.ENOSPC, f"{free} MiB are free, {needed} MiB needed", str(paths.OUT))


def groups_of(ours: argparse.Namespace) -> set[str]:
    """Returns the groups of the plan whose machines are wanted."""
    return set((ours.groups or ("test,all" if ours.all else "test")).split(","))


def pytest_arguments(ours: argparse.Namespace, tiers: list[str], selected: bool) -> list[str]:
    """Returns the options of test.py in the form of conftest.py. `selected`: the run is not all of `make test`."""
    arguments = [f"--groups={','.join(sorted(groups_of(ours)))}", f"--full={ours.full}"]
    if ours.all:
        arguments.append("--everything")
    if tiers:
        arguments.append(f"--tiers={','.join(tiers)}")
    if selected:
        arguments.append("--selected")
    return arguments


def run(ours: argparse.Namespace, tiers: list[str], ids: list[str], options: list[str]) -> int:
    """Builds and tests; returns the status of test.py."""
    begin = time.monotonic()
    check_free_space(ours)
    named = [] if ours.lf or ours.check else ids
    if not ours.list and not ours.no_build:
        if not plan.lacks_chips():
            check_chips(ours.full)
            check_machines(ids, ours)
        selection.check_before_builds(named, options)
    unbuilt, before = [], ""
    if not ours.list:
        before = check.clean_commit()
        times.forget()
        if not ours.no_build:
            unbuilt = builds.run_all(needed_builds(tiers, ids, ours.groups or "test", ours.all))
        else:
            builds.forget()
    check_chips(ours.full)
    check_machines(ids, ours)
    if unbuilt:
        print(f"test.py: error: not built: {', '.join(unbuilt)} (logs: {paths.TEST}/build-*.log). Nothing else is tested, "
              "because it would be what was built before", file=sys.stderr)
        tiers, ids, options = [], ["tests/test_builds.py"], []
    for_conftest = pytest_arguments(ours, tiers, bool(tiers or ids or any(each.startswith(("-k", "-m")) for each in options)))
    if (ids or options) and not unbuilt:
        selection.check(ids, options, for_conftest)
    arguments = [*options, *for_conftest, *ids]
    if ours.list:
        return run_pytest(["--collect-only", "-q", *arguments])
    arguments.append(f"--junitxml={paths.TEST / 'junit.xml'}")
    (paths.TEST / "summary.json").unlink(missing_ok=True)
    # One worker more takes tests of the host, in time and memory that the machines leave (HOST_MIB).
    machines = ours.n or machine_count()
    workers = ours.n or machines + 1
    status = run_pytest(["-n", str(workers), f"--machines={machines}", "--dist", "loadgroup", *arguments])
    if status == selection.NOTHING_SELECTED:
        raise ValueError("no test is selected: scripts/test.py --list prints all")
    table = times.write_table(time.monotonic() - begin)
    if not ids:
        print(table, end="")
    status = closing_line(status or int(bool(unbuilt)))
    if status == 0 and before and before == check.clean_commit() and not (tiers or ids or options or ours.no_build):
        check.remember_pass(before)
    return status


def main() -> int:
    try:
        ours, words = parse(sys.argv[1:])
        tiers, ids, options = choose(ours, words)
        if ours.list:
            return run(ours, tiers, ids, options)
        with take_lock():
            return run(ours, tiers, ids, options)
    except Nothing:
        print("0 passed, 0 failed (the change can break no test)")
        return 0
    except (ValueError, plan.PlanError) as error:
        return fail(f"{error} (try: scripts/test.py -h)", EXIT_USAGE)
    except VmError as error:
        return fail(error.message, error.status)
    except KeyboardInterrupt:
        print("test.py: interrupted", file=sys.stderr)
        return EXIT_INFRA
    except OSError as error:
        return fail(f"{error.filename or paths.TEST}: {error.strerror}", EXIT_INFRA)


if __name__ == "__main__":
    sys.exit(main())
