# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""Single system calls of the plugin fail while CRIU dumps and restores a GPU program.

One machine, one program: after each failed dump it must run on, after each failed restore no
process may be left. The plugin is a test's, in which the N-th call fails
(userspace/base/os_failing.h). The calls are spread over all that a dump or a restore makes;
FAULT_SECONDS says for how long, each. plugin_test lets every one of them fail, over fakes.
"""
from __future__ import annotations

import errno
import os
import re
import time
from typing import Callable, Iterator

import pytest
from harness import paths
from harness.field import DEMO, Field, chosen_chip
from harness.steps import fail, fresh, need_built, once

SECONDS = int(os.environ.get("FAULT_SECONDS", "60"))
# With --all a sweep goes on for so long, and then all sweeps together have at least LEAST_OF_ALL failures.
LONG_SECONDS = 900
pytestmark = [pytest.mark.group("faults", seconds=2 * SECONDS + 60), pytest.mark.tier("e2e")]

RUN, SLOT = paths.OUT / "faults", 17
PLUGINS = paths.built("release") / "plugin"
FAILING = "amdgpu_plugin_failing.so"
# Folders of the guest. CRIU loads all plugins of a folder.
PLUGIN_DIR, IMAGES = "/run/plugins-failing", "images"
ERRNOS = (errno.EIO, errno.ENOSPC, errno.ENOMEM, errno.EINTR, errno.EMFILE)
# What makes an image one that loads.
MANIFEST = re.compile(r"amdgpu-manifest.*\.img$")
# Fewer failures than this in a sweep prove nothing.
LEAST, LEAST_OF_ALL = 10, 1000
# A sweep ends after so many mistakes.
MISTAKES = 3


def spread(calls: int) -> Iterator[int]:
    """The numbers 1 to `calls`, each once, spread over all of them however early one stops: each pass has the odd
    multiples of half the step of the pass before it."""
    step = 1 << calls.bit_length()
    while step > 1:
        step //= 2
        yield from range(step, calls + 1, 2 * step)


class Faults(Field):
    """The machine with the program."""

    def __init__(self) -> None:
        need_built("criu", f"plugin/{FAILING}")
        super().__init__("faults", RUN, {SLOT: chosen_chip()}, "criu", PLUGINS)
        self.record = RUN / "record"

    # ---- one run of CRIU -----------------------------------------------------------

    def failing(self, number: int, code: int) -> tuple[str, ...]:
        """Variables with which this call fails; 0: none."""
        self.record.write_text("")
        return (f"PLUGIN_DIR={PLUGIN_DIR}", f"KFD_CRIU_FAIL_CALL={number}:{code}", f"KFD_CRIU_FAIL_RECORD={self.record}")

    def recorded(self) -> list[str]:
        """The failures of the last run, as "N ERRNO CALL"."""
        return [line for line in self.record.read_text().splitlines() if not line.endswith(" calls")]

    def calls(self) -> int:
        """The number of calls of the last run."""
        return int(re.findall(r"^(\d+) calls$", self.record.read_text(), re.M)[-1])

    # ---- the program ---------------------------------------------------------------

    @once("the program with pending packets")
    def program(self) -> str:
        self.become(str(SLOT))
        self.step("run", "mkdir", PLUGIN_DIR)
        self.step("run", "cp", str(PLUGINS / FAILING), PLUGIN_DIR)
        self.undisturbed(*DEMO)
        return self.start("program", *DEMO)

    @once("the number of calls")
    def counted(self) -> tuple[int, int]:
        """How many calls a dump and a restore make. The program runs then."""
        name = self.program()
        self.must(self.dump(name, IMAGES, env=self.failing(0, 0))[0] == 0, "a dump fails without a fault")
        dump = self.calls()
        self.must(self.restore(IMAGES, env=self.failing(0, 0)) == 0, "a restore fails without a fault")
        restore = self.calls()
        self.must(bool(self.look(name)), "the restored program has ended")
        self.forget_images()
        print(f"a dump makes {dump} calls, a restore {restore}")
        return dump, restore

    def must(self, is_right: bool, what: str) -> None:
        """Fails unless this is right."""
        if not is_right:
            fail(f"{what}\n{self.shown_errors(f'{IMAGES}.dump.log')}\n{self.shown_errors(f'{IMAGES}.restore.log')}")

    def forget_images(self) -> None:
        """Removes the images of a dump that did not fail, whose manifest a failed one need not remove."""
        self.step("run", "rm", "-rf", f"/run/field/{IMAGES}")

    # ---- one fault -----------------------------------------------------------------

    def one_dump(self, number: int, code: int) -> tuple[bool, str]:
        """Whether a dump succeeds in spite of the fault, and what is wrong then: if it fails, the program must run and
        no manifest be there; if it does not, the image must be good."""
        name = self.program()
        status = self.criu(*self.failing(number, code), "dump", str(self.pid(name)), IMAGES, f"{IMAGES}.dump.log")
        if status == 0:
            if not self.is_gone(name):
                return True, "CRIU succeeded, and the program runs"
            if self.restore(IMAGES) != 0:
                return True, "CRIU succeeded, and the image does not restore"
            self.forget_images()
        elif any(MANIFEST.match(file) for file in self.our_files(IMAGES)):
            return False, "a failed dump left a manifest"
        processes = self.look(name)
        if not processes:
            return status == 0, "the program does not run"
        return status == 0, "the program is stopped" if any(each.stopped for each in processes) else ""

    def one_restore(self, number: int, code: int) -> tuple[bool, str]:
        """The same of a restore: if it fails, no process must be left; if it does not, the program has its result."""
        name = self.program()
        self.hold_again(name)
        if status := self.restore(IMAGES, env=self.failing(number, code)):
            return False, "" if self.is_gone(name) else f"status {status}, and a process is left: {self.look(name)}"
        result = self.result(name)
        if result != self.undisturbed(*DEMO):
            return True, f"the restored program has another result: {result}"
        return True, "" if self.is_gone(name) else "the restored program does not end"

    # ---- all faults ----------------------------------------------------------------

    def sweep(self, one: Callable[[int, int], tuple[bool, str]], calls: int, seconds: int) -> int:
        """Lets calls fail until the time is over and there were LEAST, each once for each errno at most; how many."""
        end, injected, survived, wrong = time.monotonic() + seconds, 0, 0, []
        for turn in range(len(ERRNOS)):
            for number in spread(calls):
                if (time.monotonic() > end and injected >= LEAST) or len(wrong) >= MISTAKES:
                    break
                success, mistake = one(number, ERRNOS[(number + turn) % len(ERRNOS)])
                failures = self.recorded()
                injected, survived = injected + len(failures), survived + (success and bool(failures))
                if mistake:
                    wrong.append(f"{mistake}; the fault: {failures}\n{self.shown_errors(f'{IMAGES}.dump.log')}")
        text = f"{injected} injected failures of {calls} calls, {survived} of them survived, {len(wrong)} wrong"
        if wrong:
            fail("\n".join([text, *wrong]))
        if injected < LEAST:
            fail(f"too few failures: {text}")
        print(text)
        return injected

    @once("the dumps in which calls failed")
    def dumped(self) -> int:
        return self.sweep(self.one_dump, self.counted()[0], self.seconds)

    @once("the restores in which calls failed")
    def restored(self) -> int:
        self.dumped()
        self.must(self.dump(self.program(), IMAGES)[0] == 0, "the program cannot be dumped any more")
        return self.sweep(self.one_restore, self.counted()[1], self.seconds)

    seconds = SECONDS


@pytest.fixture(name="faults", scope="module")
def fixture_faults(request: pytest.FixtureRequest) -> Iterator[Faults]:
    fresh(RUN)
    with Faults() as machine:
        if request.config.getoption("--everything"):
            machine.seconds = max(SECONDS, LONG_SECONDS)
        yield machine


def test_the_plugin_with_failing_calls_dumps_and_restores_when_none_fails(faults: Faults) -> None:
    faults.counted()


def test_after_each_failed_dump_the_program_runs_and_there_is_no_manifest(faults: Faults) -> None:
    faults.dumped()


def test_each_failed_restore_leaves_no_process(faults: Faults) -> None:
    faults.restored()


def test_the_program_has_its_result_after_all_that(faults: Faults) -> None:
    faults.restored()
    name = faults.program()
    faults.hold_again(name)
    faults.must(faults.restore(IMAGES) == 0, "the image does not restore")
    assert faults.result(name) == faults.undisturbed(*DEMO)


@pytest.mark.heavy
def test_all_that_was_many_failures(faults: Faults) -> None:
    assert faults.dumped() + faults.restored() >= LEAST_OF_ALL


def test_the_kernel_does_not_complain(faults: Faults) -> None:
    faults.counted()
    faults.must_be_content()
