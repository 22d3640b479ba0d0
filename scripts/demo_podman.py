#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""Migrates containers with a GPU from one virtual machine to another one with podman.

usage: demo_podman.py [--no-build]

podman and crun are those of Debian 13, and so is CRIU; the machines get the plugin as the
Debian package of this project. podman container checkpoint --export in machine A, podman
container restore --import in machine B, without --privileged. Each of three containers has
one of two GPUs: one on the host's network, one with a network namespace of its own, and
one on podman's bridge. Machine B has other GPUs: other PCI slots and gpu_ids, and the
render nodes are the other way round. Each program has packets pending in its queues when
it is saved; its result must equal that of an undisturbed run.

It makes the root of Debian 13 (downloads up to 90 MB) and builds what it runs; --no-build
uses what is there. Checkpoints and CRIU's logs stay in out/podman; the last line is
  demo-podman: OK result=<checksum> containers=<number> (each equal to the undisturbed run)
Status: 0 pass, 1 a step failed, 64 usage.
"""
from __future__ import annotations

import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
import command  # noqa: E402  # pylint: disable=wrong-import-position
from demo_steps import build, say  # noqa: E402  # pylint: disable=wrong-import-position
from harness import podman  # noqa: E402  # pylint: disable=wrong-import-position


def show(name: str, text: str) -> None:
    say(f"  {name:13} {text}")


def nodes(minors: set[int]) -> str:
    return " ".join(f"renderD{minor}" for minor in sorted(minors))


def migrate() -> str:
    """The whole path; returns the result."""
    podman.prepare()
    with podman.First() as first:
        say("machine A boots: 512 MiB GPU in slot 16, 256 MiB GPU in slot 17")
        first.ready()
        print(first.step("kfd-criu", "topology"))
        say("the package of the plugin is installed; podman has loaded the image of the containers")
        expected = first.undisturbed()
        say(f"undisturbed run in a container: {expected}")
        for case in podman.CASES:
            first.started(case)
            show(case.name, f"--network {case.network} --device /dev/kfd --device {case.device}: packets are pending "
                            f"on {nodes(first.minors(case))}")
        for case in podman.CASES:
            first.checkpointed(case)
            show(case.name, f"podman container checkpoint --export: {case.checkpoint.stat().st_size >> 20} MiB")
        with podman.Second(first) as second:
            say("machine B boots: 256 MiB GPU in slot 18, 512 MiB GPU in slot 20")
            second.ready()
            print(second.step("kfd-criu", "topology"))
            for case in podman.CASES:
                second.restored(case)
                show(case.name, f"podman container restore --import: was on renderD{case.minor}, is on "
                                f"{nodes(second.minors(case))}")
            for case in podman.CASES:
                result = second.result(case)
                show(case.name, f"continued: {result}")
                if result != expected:
                    podman.fail(f"the result of {case.name} is {result}, that of the undisturbed run {expected}")
    return expected


def main(argv: list[str]) -> int:
    parser = command.Parser(__doc__)
    parser.add_argument("--no-build", action="store_true")
    if not parser.read(argv).no_build:
        build(["setup.sh", "roots"], ["root.py", "trixie"], ["build.sh", "release", *podman.TARGETS],
              ["kernel.sh", "build", "criu"])
    try:
        result = migrate()
    except podman.Failed as error:
        raise command.failure(str(error)) from error
    print(f"demo-podman: OK result={result} containers={len(podman.CASES)} (each equal to the undisturbed run)")
    return 0


if __name__ == "__main__":
    command.run(main)
