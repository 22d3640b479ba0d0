# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""Single system calls of the plugin fail while CRIU dumps and restores a GPU program.

One machine, one program: after each failed dump it must run on, after each failed restore no
process may be left. The plugin is a test's, in which the N-th call fails
(userspace/base/os_failing.h). The calls are spread over all that a dump or a restore makes;
FAULT_SECONDS says for how long, each. plugin_test lets every one of them fail, over fakes.
"""
from __future__ import annotations

import os
import re
import shutil
from typing import Iterator

import pytest
from harness import chip, paths, plan
from harness.steps import StepMachine, fail, need_built, need_criu, once

SECONDS = int(os.environ.get("FAULT_SECONDS", "60"))
pytestmark = [pytest.mark.group("faults", seconds=2 * SECONDS + 40), pytest.mark.tier("e2e")]

RUN = paths.OUT / "faults"
PLUGINS = paths.built("release") / "plugin"
PROGRAM = paths.built("release") / "kfdtest-criu" / "demo_program"
MEM, VM_LIMIT_S = "1G", 1800
# What the sweeps print last.
SWEPT = re.compile(r"(\d+) injected failures of (\d+) calls, (\d+) of them survived, (\d+) wrong")
# Fewer failures than this in a sweep prove nothing.
LEAST = 10


class Faults(StepMachine):
    """The machine with the program."""

    def __init__(self) -> None:
        need_criu()
        need_built("criu", "plugin/amdgpu_plugin.so", "plugin/amdgpu_plugin_failing.so", "kfdtest-criu/demo_program")
        try:
            gpu = f"{chip.chosen()},vram=64M"
        except plan.PlanError as error:
            fail(str(error))
        super().__init__("faults", ["--kernel", "criu", "--mem", MEM, "--share", str(RUN), "--gpu", gpu],
                         [str(paths.SCRIPTS / "guest/faults.sh"), str(RUN), str(PLUGINS)], VM_LIMIT_S)

    @once("the program with pending packets")
    def started(self) -> None:
        self.step("start", str(PROGRAM))

    @once("the number of calls")
    def counted(self) -> None:
        self.started()
        print(self.step("count"))

    def swept(self, what: str) -> None:
        """Lets calls fail; prints how many."""
        self.counted()
        text = self.step(what, str(SECONDS), limit_s=SECONDS + 240)
        match = SWEPT.search(text)
        if not match or int(match[1]) < LEAST:
            fail(f"too few failures of a {what}:\n{text}")
        print(match[0])

    @once("the dumps in which calls failed")
    def dumped(self) -> None:
        self.swept("dump")

    @once("the restores in which calls failed")
    def restored(self) -> None:
        self.dumped()
        self.swept("restore")


@pytest.fixture(name="faults", scope="module")
def fixture_faults() -> Iterator[Faults]:
    shutil.rmtree(RUN, ignore_errors=True)
    RUN.mkdir(parents=True)
    with Faults() as machine:
        yield machine


def test_the_plugin_with_failing_calls_dumps_and_restores_when_none_fails(faults: Faults) -> None:
    faults.counted()


def test_after_each_failed_dump_the_program_runs_and_there_is_no_manifest(faults: Faults) -> None:
    faults.dumped()


def test_each_failed_restore_leaves_no_process(faults: Faults) -> None:
    faults.restored()


def test_the_program_has_its_result_after_all_that(faults: Faults) -> None:
    faults.restored()
    faults.step("finish")


def test_the_kernel_does_not_complain(faults: Faults) -> None:
    faults.counted()
    faults.must_be_content()
