# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""RCCL on two and four GPUs, which CRIU moves to other GPUs of another machine in the middle of its work: make test-distro.

The root rccl has Debian 13's RCCL 5.4, HIP 5.7, ROCr 6.1 and CRIU 4.1, unchanged. The program is
userspace/fieldtest/field_rccl.cc; it computes rounds of ncclAllReduce, ncclBroadcast and ncclAllGather on GPUs of one
process, or of as many processes, and checks each number. Images and logs: out/rccl.
"""
from __future__ import annotations

import subprocess
from dataclasses import dataclass
from typing import Iterator

import pytest
from harness import paths
from harness.field import EQUAL, LOST, WRONG, Field, Outcome, Process, must_be
from harness.steps import fail, fresh, once

RUN = paths.OUT / "rccl"
ROOT = "rccl"
PLUGINS = paths.built("release") / "plugin"
# The chips in the slots of each machine. HIP opens all GPUs that it can use.
DUMPING = {16: "gfx906", 17: "gfx906", 18: "gfx906", 19: "gfx906"}
RESTORING = {18: "gfx906", 20: "gfx1030", 21: "gfx906", 22: "gfx906", 24: "gfx906"}
# Files that librocm-smi keeps open and mapped in each process, by which the processes of a machine take turns. They are to be
# where the program continues, as all files that a program has open by a path.
SHARED_FILES = "/dev/shm/rocm_smi_*"
# RCCL keeps the sockets by which its threads and processes found each other, and memory in files of /dev/shm that it has
# removed. A machine in which its connections were closed a minute ago does not let it have their ports.
OPTIONS = ("--tcp-established", "--ghost-limit", "64M")
UNIT_TESTS = ("/usr/libexec/rocm/librccl1-tests/UnitTests", "--gtest_filter=AllReduce.OutOfPlace:Broadcast.OutOfPlace")
UNIT_TESTS_LIMIT_S = 900
pytestmark = [pytest.mark.tier("distro"), pytest.mark.group("distro-rccl", seconds=600)]


@dataclass(frozen=True)
class Layout:
    """How many GPUs there are, and whether each has a process of its own."""

    gpus: int
    has_processes: bool

    def __str__(self) -> str:
        return f"{self.gpus}_gpus_in_{f'{self.gpus}_processes' if self.has_processes else 'one_process'}"

    @property
    def program(self) -> tuple[str, ...]:
        """The words of the program."""
        return ("field_rccl", "--gpus", str(self.gpus), *(["--processes"] if self.has_processes else []))


LAYOUTS = [Layout(gpus, has_processes) for gpus in (2, 4) for has_processes in (False, True)]


@dataclass
class Dumped:
    """A program that was dumped. `failure`: what went wrong, if something did."""

    name: str
    before: list[Process]
    expected: str
    failure: Outcome | None = None


class RcclMachine(Field):
    """A machine with the root rccl. Both machines share the folder RUN, and so what the programs tell the test."""

    def __init__(self, kind: str, gpus: dict[int, str]) -> None:
        if not (paths.OUT / "roots" / ROOT / "root.stamp").exists():
            fail(f"the root {ROOT} is not there: scripts/root.py {ROOT}")
        super().__init__(f"rccl-{kind}", RUN, gpus, "criu", PLUGINS, vram="512M", root=ROOT)
        self._slots = ",".join(map(str, gpus))

    def ready(self) -> None:
        """The driver has all GPUs."""
        self.become(self._slots)

    def copy(self, files: str, folder: str) -> None:
        """Copies the files of this pattern in the guest."""
        self.step("run", "bash", "-c", f'cp -p -- {files} "$0"', folder)


class Dumping(RcclMachine):
    """The machine in which the programs begin."""

    def __init__(self) -> None:
        super().__init__("dump", DUMPING)
        self._dumped: dict[Layout, Dumped] = {}

    def dumped(self, layout: Layout) -> Dumped:
        """The program, whose images are in RUN."""
        if layout not in self._dumped:
            self._dumped[layout] = self._dump(layout)
        return self._dumped[layout]

    def _dump(self, layout: Layout) -> Dumped:
        self.ready()
        expected = self.undisturbed(*layout.program)
        name = self.start(str(layout), *layout.program)
        images = f"images.{name}"
        try:
            dumped = Dumped(name, self.look(name), expected)
            if self.dump(name, images, *OPTIONS)[0] != 0:
                dumped.failure = self.after_refusal(name, images, expected)
            elif errors := self.plugin_errors(f"{images}.dump.log"):
                dumped.failure = Outcome(WRONG, f"the dump said 0, and: {errors}")
            else:
                self.step("put", images)
                self.copy(SHARED_FILES, f"{RUN / images}/")
            return dumped
        finally:
            self.end(name)

    @once("RCCL's unit tests")
    def unit_tests(self) -> str:
        """What RCCL's unit tests print."""
        self.ready()
        return self.step("run", "env", "UT_MIN_GPUS=2", "UT_MAX_GPUS=2", *UNIT_TESTS, limit_s=UNIT_TESTS_LIMIT_S)


class Restoring(RcclMachine):
    """The machine in which they continue."""

    def __init__(self) -> None:
        super().__init__("restore", RESTORING)

    def restored(self, dumped: Dumped) -> Outcome:
        """What became of the program."""
        if dumped.failure is not None:
            return dumped.failure
        self.ready()
        images = f"images.{dumped.name}"
        try:
            self.step("get", images)
            self.copy(f"{RUN / images}/{SHARED_FILES.rsplit('/', maxsplit=1)[-1]}", "/dev/shm/")
            if self.restore(images, *OPTIONS) != 0:
                return Outcome(LOST, f"the restore failed\n{self.shown_errors(f'{images}.restore.log')}")
            return self.after_restore(dumped.name, dumped.before, dumped.expected)
        finally:
            self.end(dumped.name)


@pytest.fixture(name="dumping", scope="module")
def fixture_dumping() -> Iterator[Dumping]:
    fresh(RUN)
    with Dumping() as machine:
        yield machine


@pytest.fixture(name="restoring", scope="module")
def fixture_restoring(dumping: Dumping) -> Iterator[Restoring]:  # pylint: disable=unused-argument
    with Restoring() as machine:
        yield machine


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_collective_operations_continue_on_other_gpus(dumping: Dumping, restoring: Restoring, layout: Layout) -> None:
    must_be(restoring.restored(dumping.dumped(layout)), EQUAL)


def test_every_instruction_of_rccl_is_executed() -> None:
    library = paths.OUT / "roots" / ROOT / "usr/lib/x86_64-linux-gnu/librccl.so.1.0"
    text = subprocess.run([paths.built("release") / "gcn/gcn_survey", "RCCL", library], check=True, capture_output=True,
                          text=True).stdout
    rows = [[cell.strip() for cell in row.split("|")[1:-1]] for row in text.splitlines()]
    assert [(row[1], row[4], row[5]) for row in rows] == [(chip, "0", "") for chip in ("gfx900", "gfx906", "gfx908", "gfx90a")]


def test_the_unit_tests_of_rccl_pass(dumping: Dumping) -> None:
    assert "[  PASSED  ] 2 tests." in dumping.unit_tests()


def test_the_kernels_do_not_complain(dumping: Dumping, restoring: Restoring) -> None:
    for machine in (dumping, restoring):
        machine.ready()
        machine.must_be_content()
