#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""Checkpoints two GPU programs in one virtual machine and continues them in another one.

usage: demo.py [--repeat N] [--kernel stock|criu] [--no-build]

The other machine has other gpu_ids and the GPUs in another order. The first program has
packets pending in a PM4, an SDMA and an AQL queue and a thread waiting for an event;
its result depends on VRAM, GTT and userptr memory and on each of the packets.
The second is a HIP program, a layer of a transformer, whose waves are in the
middle of a shader kernel. Both results must equal those of undisturbed runs.

It builds only what it runs; --no-build uses what is already built. Images and logs
stay in out/demo/<run>; the last line is
  demo: OK result=<checksum> hip=<checksum> (equal to the undisturbed runs)
Environment: OUT_DIR, CHIP (gfx906; a chip that executes waves). Status: 0 pass, 1 a step failed, 64 usage.
"""
from __future__ import annotations

import json
import os
import time
from pathlib import Path

import command
from demo_steps import SCRIPTS, build, run, say
from vm.errors import EXIT_USAGE, VmError, infra_error
from vm.places import out_dir

CHIP = os.environ.get("CHIP") or "gfx906"
MEM, VM_LIMIT_S = "2G", 600
# The programs that the demo runs, and therefore builds.
TARGETS = ("vasicd", "amdgpu_plugin", "demo_program", "hip_demo")


def built(name: str) -> Path:
    return out_dir() / "cmake/release/userspace" / name


def check_chip() -> None:
    """Refuses a wrong CHIP before a virtual machine is started."""
    vasicd = Path(os.environ.get("VASICD") or built("vasicd/vasicd"))
    if not os.access(vasicd, os.X_OK):
        raise infra_error(f"no vasicd ({vasicd}): run scripts/build.sh release {' '.join(TARGETS)}")
    try:
        chips = [chip["name"] for chip in json.loads(command.output_of([vasicd, "--list-chips", "--json"]))
                 if chip["executes_waves"]]
    except (ValueError, KeyError, TypeError) as error:
        raise infra_error(f"{vasicd} does not list its chips") from error
    if CHIP not in chips:
        raise VmError(EXIT_USAGE, f"CHIP: '{CHIP}' is none of the chips that execute waves: {' '.join(chips)}")


class Demo:
    """One run from boot to comparison. Both machines have two GPUs, machine B in other slots and in reverse order."""

    def __init__(self, kernel: str, count: int) -> None:
        self._kernel = kernel
        self._run = out_dir() / "demo" / f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}-{count}"
        self._run.mkdir(parents=True)

    def results(self) -> tuple[str, str]:
        """Runs both machines; returns the results of the two programs."""
        plugins = built("plugin")
        say(f"machine A boots (kernel {self._kernel}): large GPU in slot 16, small one in slot 17")
        self._machine("A", ("512M,slot=16", "256M,slot=17"), SCRIPTS / "guest/demo-dump.sh", self._run,
                      built("kfdtest-criu/demo_program"), built("hiptest/hip_demo"), plugins)
        size = command.output_of(["du", "-sh", self._run / "images"]).split("\t")[0]
        say(f"machine A is off; images: {size}")
        say("machine B boots: small GPU in slot 18, large one in slot 20")
        self._machine("B", ("256M,slot=18", "512M,slot=20"), SCRIPTS / "guest/demo-restore.sh", self._run, plugins)
        say("machine B is off")
        if self._gpu_ids("a") & self._gpu_ids("b"):
            raise command.failure("machines A and B have a gpu_id in common, so the demo does not show that gpu_ids are "
                                  "translated")
        return (self._same_result("the restored program", "program", "reference"),
                self._same_result("the restored HIP program", "hip", "hip-reference"))

    def _machine(self, letter: str, gpus: tuple[str, str], *argv: str | Path) -> None:
        """Runs the command in a virtual machine; the guest's lines are printed as they arrive."""
        name = f"demo-{os.getpid()}-{letter.lower()}"
        if run(f"machine {letter}", SCRIPTS / "vm.sh", "run", "--kernel", self._kernel,
               *(word for gpu in gpus for word in ("--gpu", f"{CHIP},vram={gpu}")), "--mem", MEM, "--timeout", str(VM_LIMIT_S),
               "--name", name, "--share", self._run, "--", *argv):
            raise command.failure(f"machine {letter} failed; logs are in {self._run} and {out_dir()}/vm/{name}")

    def _gpu_ids(self, letter: str) -> set[str]:
        lines = (self._run / f"gpus.{letter}").read_text().splitlines()
        return {line.split()[1].replace(":", "") for line in lines}

    def _same_result(self, what: str, folder: str, reference: str) -> str:
        """The result in the folder, which must equal the reference."""
        got, expected = ((self._run / each / "result").read_text().split(maxsplit=1)[1].splitlines()[0].strip()
                         for each in (folder, reference))
        if got != expected:
            raise command.failure(f"the result of {what} is {got}, that of the undisturbed run {expected}")
        return got


def main(argv: list[str]) -> int:
    parser = command.Parser(__doc__)
    parser.add_argument("--repeat", type=command.number_from(1, 9999), default=1)
    parser.add_argument("--kernel", type=command.one_of("stock", "criu"), default="criu")
    parser.add_argument("--no-build", action="store_true")
    options = parser.read(argv)
    command.need("criu", "criu")  # The guests run the programs of the host.
    if not options.no_build:
        # The programs first, because they take less time than the kernel and show their errors earlier.
        build(["build.sh", "release", *TARGETS], ["kernel.sh", "build", options.kernel])
    check_chip()
    for count in range(1, options.repeat + 1):
        if options.repeat > 1:
            say(f"round {count} of {options.repeat}")
        result, hip = Demo(options.kernel, count).results()
        print(f"demo: OK result={result} hip={hip} (equal to the undisturbed runs)", flush=True)
    return 0


if __name__ == "__main__":
    command.run(main)
