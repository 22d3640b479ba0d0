# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""Single system calls of the plugin fail while CRIU dumps and restores GPU programs.

After each failed dump the program must go on and its GPU must work; after each failed restore no
process may be left. The plugin is a test's, in which the N-th call fails
(userspace/base/os_failing.h). For each program there are two machines, one for dumps and one for
restores: a failed dump leaves the program running and a failed restore leaves its image, so hundreds
of failures need neither another machine nor another start. FAULT_SECONDS says for how long calls fail
in each machine of the demo's program. With --all this one has LEAST_OF_ALL failures, or as many as
FAULTS says, and PROGRAMS have their share of them. With --all and FAULTS=every, each call of each
program fails once, that of MORE_PROGRAMS too, and that of dumps which the plugin has to refuse: they
must not succeed because a call failed. plugin_test lets every call fail with each errno, over fakes.
"""
from __future__ import annotations

import errno
import math
import os
import re
import sys
import time
from dataclasses import dataclass, field
from itertools import islice
from typing import Iterator, Sequence

import pytest
from harness import paths
from harness.field import DEMO, PAIR, PROGRAM, RENDER, SHAPE, THREE, VMM, Field, chosen_chip
from harness.steps import fail, fresh, need_built, once

SECONDS = int(os.environ.get("FAULT_SECONDS", "60"))
# Fewer failures than this in a machine prove nothing; with --all, so many are needed.
FAULTS = os.environ.get("FAULTS", "1000")
EVERY = FAULTS == "every"
if not (EVERY or FAULTS.isdigit()):
    raise ValueError(f"FAULTS is a number or 'every', not '{FAULTS}'")
LEAST, LEAST_OF_ALL = 10, 0 if EVERY else int(FAULTS)
# Seconds that all failures of a machine may take.
LIMIT_S = 9000 if EVERY else 3600
# Which part of the calls may be out of reach when each fails once: the number of calls is not the same in each run, as some
# wait for something in a loop.
OUT_OF_REACH = 0.05
pytestmark = [pytest.mark.tier("e2e")]

SLOTS = (17, 18)
PLUGINS = paths.built("release") / "plugin"
FAILING = "amdgpu_plugin_failing.so"
# Folders and a file of the guest. CRIU loads all plugins of a folder.
PLUGIN_DIR, IMAGES, LIST = "/run/plugins-failing", "images", "/run/fault.list"
# A folder in the guest's memory with a copy of the program's folder. In folders of the host each open takes long.
PROGRAM_DIR = "/run/program-copy"
# What that folder has while the program waits to be dumped; scripts/guest/faults.sh.
HELD_DIR = "/run/program-held"
ERRNOS = (errno.EIO, errno.ENOSPC, errno.ENOMEM, errno.EINTR, errno.EMFILE)
# How many calls of one name fail with one errno before they fail with the next one, and before further calls of that name
# take part: a dump makes thousands of one name.
SOME_OF_A_NAME = 20
# Failures in one step of the machine.
BATCH, BATCH_LIMIT_S = 40, 900


def spread(count: int) -> Iterator[int]:
    """The numbers 1 to `count`, each once, spread over all of them however early one stops: each pass has the odd
    multiples of half the step of the pass before it."""
    step = 1 << count.bit_length()
    while step > 1:
        step //= 2
        yield from range(step, count + 1, 2 * step)


def chosen(calls: Sequence[str], errnos: int = len(ERRNOS)) -> Iterator[tuple[int, int]]:
    """Numbers of calls, counted from 1, and errnos to fail with: each call with `errnos` of them. `calls` has the names. All
    names take part from the beginning, so that calls which happen once fail as early as those which happen thousands of
    times."""
    numbers: dict[str, list[int]] = {}
    for number, name in enumerate(calls, 1):
        numbers.setdefault(name, []).append(number)
    names = [[mine[place - 1] for place in spread(len(mine))] for mine in numbers.values()]
    for block in range(0, max(map(len, names)), SOME_OF_A_NAME):
        for turn in range(errnos):
            for rank in range(block, block + SOME_OF_A_NAME):
                for index, mine in enumerate(names):
                    if rank < len(mine):
                        yield mine[rank], ERRNOS[(index + rank + turn) % len(ERRNOS)]


@dataclass(frozen=True)
class Program:
    """A program whose calls fail; `reference`: the undisturbed one with the same result."""

    name: str
    words: tuple[str, ...]
    reference: tuple[str, ...]
    # Its part of the failures with --all; the demo's program alone has failures without that.
    share: int = 4
    gpus: int = 1


def of_shape(shape: str, gpus: int = 1) -> Program:
    """The program whose processes share memory in this way; userspace/fieldtest/field_sharing.h."""
    words = (*SHAPE, shape)
    return Program(shape, words, THREE if gpus == 1 else words, gpus=gpus)


HIP, HIP_IPC, CHILD_ALONE = ("field_hip",), ("field_hip_ipc",), (*RENDER, "--child-alone")
SVM = (*DEMO, "--gpus", "2", "--svm")
PROGRAMS = (Program("demo", DEMO, DEMO, share=1),
            of_shape("cycle"),
            Program("render", (*RENDER, "--share", "--kfd", "--sync-files"), (*RENDER, "--kfd")),
            Program("vmm", VMM, VMM))
# Programs whose calls differ from the calls of PROGRAMS; with FAULTS=every only, because each needs two machines.
MORE_PROGRAMS = (Program("additions", (*PROGRAM, "--children", "low", "--also", "kfd", "--gem", "handle"), DEMO),
                 Program("svm", SVM, SVM, gpus=2),
                 Program("hip", (*HIP, "--children", "low"), HIP),
                 Program("hip-ipc", HIP_IPC, HIP_IPC),
                 Program("render-children", (*RENDER, "--sync-files", "--children"), RENDER),
                 Program("counting", (*PAIR, "--counting"), PAIR),
                 *map(of_shape, ("freed", "ended", "alone", "kept", "kept-freed", "kept-plain", "kept-nobody")),
                 *(of_shape(shape, 2) for shape in ("peers", "apart")))
# Programs that cannot be brought back. The last one is refused by CRIU when the plugin has saved the GPU.
REFUSED_PROGRAMS = (of_shape("kept-queued"), of_shape("described"),
                    Program("outside", (*PAIR, "--outside"), PAIR),
                    Program("child-alone", CHILD_ALONE, CHILD_ALONE),
                    Program("pidfd", (*PROGRAM, "--also", "pidfd"), DEMO))
DUMP, RESTORE, REFUSAL = "dump", "restore", "refusal"


def programs_of(kind: str) -> list:
    """The programs as parameters of a machine."""
    more = REFUSED_PROGRAMS if kind == REFUSAL else MORE_PROGRAMS
    return [pytest.param(each, id=each.name, marks=[
        pytest.mark.group(f"faults-{kind}-{each.name}", seconds=SECONDS + 60), *([pytest.mark.heavy] if each.share > 1 else [])])
        for each in (*(PROGRAMS if kind != REFUSAL else ()), *(more if EVERY else ()))]


@dataclass
class Tally:
    """The outcomes of faults. A fault whose call CRIU did not come to is none: it injects no failure."""

    injected: int = 0
    survived: int = 0
    unreached: int = 0
    wrong: list[str] = field(default_factory=list)

    def add(self, text: str) -> None:
        """Takes the lines that a step of faults.sh has printed."""
        for number, code, count, what in re.findall(r"^fault (\d+):(\d+) (\d+) (.+)$", text, re.M):
            self.injected += int(count)
            self.unreached += count == "0"
            self.survived += count != "0" and what == "survived"
            if what not in ("failed", "survived", "refused"):
                self.wrong.append(f"call {number} with {errno.errorcode[int(code)]}: {what}")
            elif what == "failed" and count == "0":
                self.wrong.append(f"call {number} did not fail, but CRIU did")

    def __str__(self) -> str:
        return (f"{self.injected} injected failures, {self.survived} of them survived, {self.unreached} not reached, "
                f"{len(self.wrong)} wrong")


class Faults(Field):
    """A machine with a program. `kind` is what fails in it: a dump, a dump that has to be refused, or a restore."""

    def __init__(self, kind: str, tested: Program, everything: bool) -> None:
        need_built("criu", f"plugin/{FAILING}")
        name = f"faults-{kind}-{tested.name}"
        # One processor in each guest: as many as the host's, in all machines that run at once. With two, emulated processors
        # wait for each other, and a failure takes 1.5 times as long.
        super().__init__(name, fresh(paths.OUT / name), dict.fromkeys(SLOTS[:tested.gpus], chosen_chip()), "criu", PLUGINS,
                         cpus=1)
        self.kind, self.tested = kind, tested
        self.goal, self.seconds = (LEAST_OF_ALL // tested.share, LIMIT_S) if everything else (LEAST, SECONDS)
        self.ends_at_goal, self.every = everything and not EVERY, everything and EVERY

    def must(self, is_right: bool, what: str) -> None:
        """Fails unless this is right."""
        if not is_right:
            fail(f"{what}\n{self.shown_errors(f'{IMAGES}.dump.log')}\n{self.shown_errors(f'{IMAGES}.restore.log')}")

    @property
    def expected(self) -> str:
        """The result of an undisturbed run."""
        return self.undisturbed(*self.tested.reference)

    @once("the program that waits")
    def program(self) -> str:
        self.become(",".join(map(str, SLOTS[:self.tested.gpus])))
        self.step("run", "mkdir", PLUGIN_DIR)
        self.step("run", "cp", str(PLUGINS / FAILING), PLUGIN_DIR)
        _ = self.expected
        name = self.start("program", *self.tested.words)
        # The program opens its files by their paths, so it finds those of the new mount.
        self.step("run", "cp", "-r", str(self.run / name), PROGRAM_DIR)
        self.step("run", "cp", "-r", str(self.run / name), HELD_DIR)
        self.step("run", "mount", "--bind", PROGRAM_DIR, str(self.run / name))
        return name

    def hold_again(self, name: str) -> None:
        self.step("hold_again", name)

    @once("the list of calls")
    def calls(self) -> list[str]:
        """The names of all calls, in a dump or a restore in which none fails. The program runs, or its image is there."""
        name, env = self.program(), (f"PLUGIN_DIR={PLUGIN_DIR}", f"KFD_CRIU_FAIL_LIST={LIST}")
        status, runs = self.dump(name, IMAGES, env=env if self.kind != RESTORE else ())
        if self.kind == REFUSAL:
            self.must(status != 0 and runs, f"a dump that has to be refused: status {status}, the program goes on: {runs}")
        else:
            self.must(status == 0, "a dump fails without a fault")
            self.must(self.restore(IMAGES, env=env if self.kind == RESTORE else ()) == 0, "a restore fails without a fault")
            self.must(not (why := self.halted(name)), why)
        if self.kind != RESTORE:
            self.step("run", "rm", "-rf", f"/run/field/{IMAGES}")
        else:
            self.must(self.result(name) == self.expected, "the restored program has another result")
        self.step("run", "cp", LIST, str(self.run / "list"))
        # Two processes may count at the same time.
        numbered = dict(line.split(" ", 1) for line in (self.run / "list").read_text().splitlines())
        names = [numbered.get(str(number), "?") for number in range(1, len(numbered) + 1)]
        print(f"a {self.kind} makes {len(names)} calls of {len(set(names))} names")
        return names

    def inject(self, faults: Sequence[tuple[int, int]], tally: Tally) -> None:
        """Lets each of these calls fail, in a dump or a restore of its own."""
        words = [f"{number}:{code}" for number, code in faults]
        tally.add(self.step(f"PLUGIN_DIR={PLUGIN_DIR}", "faults", self.kind, self.program(), IMAGES, self.expected, *words,
                            limit_s=BATCH_LIMIT_S))

    @once("the failures of calls")
    def swept(self) -> Tally:
        """Lets calls fail until the time is over, or there are as many failures as are wanted."""
        calls = self.calls()
        faults, tally, begin = chosen(calls, 1 if self.every else len(ERRNOS)), Tally(), time.monotonic()
        goal = math.ceil((1 - OUT_OF_REACH) * len(calls)) if self.every else self.goal
        while batch := list(islice(faults, BATCH)):
            seconds = time.monotonic() - begin
            enough = tally.injected >= goal
            if tally.wrong or seconds >= LIMIT_S or (enough and (self.ends_at_goal or seconds >= self.seconds)):
                break
            self.inject(batch, tally)
            self.tell(f"{tally}, {time.monotonic() - begin:.0f} s")
        if tally.wrong:
            fail("\n".join([str(tally), *tally.wrong, self.shown_errors("fault.log")]))
        if tally.injected < goal:
            fail(f"too few failures, of which {goal} are wanted: {tally}")
        print(tally)
        return tally

    # How people are told what has happened so far.
    tell = staticmethod(print)


def machine(request: pytest.FixtureRequest, kind: str) -> Iterator[Faults]:
    """The machine for dumps or for restores of a program."""
    capture = request.config.pluginmanager.getplugin("capturemanager")

    def tell(text: str) -> None:
        with capture.global_and_fixture_disabled():
            print(f"faults-{kind}-{request.param.name}: {text}", file=sys.stderr, flush=True)

    with Faults(kind, request.param, request.config.getoption("--everything")) as faults:
        faults.tell = tell
        yield faults


@pytest.fixture(name="dumps", scope="module", params=programs_of(DUMP))
def fixture_dumps(request: pytest.FixtureRequest) -> Iterator[Faults]:
    yield from machine(request, DUMP)


@pytest.fixture(name="restores", scope="module", params=programs_of(RESTORE))
def fixture_restores(request: pytest.FixtureRequest) -> Iterator[Faults]:
    yield from machine(request, RESTORE)


def no_failure_of_a_call_that_is_not_made(faults: Faults) -> None:
    """The plugin with failing calls works, and a fault behind its last call is not counted as a failure."""
    tally = Tally()
    faults.inject([(10 * len(faults.calls()), errno.EIO)], tally)
    assert (tally.injected, tally.unreached, tally.wrong) == (0, 1, [])


def test_a_dump_succeeds_when_no_call_fails(dumps: Faults) -> None:
    no_failure_of_a_call_that_is_not_made(dumps)


def test_after_each_failed_dump_the_program_goes_on_and_there_is_no_manifest(dumps: Faults) -> None:
    dumps.swept()


def test_the_program_has_its_result_after_all_that(dumps: Faults) -> None:
    dumps.swept()
    name = dumps.program()
    dumps.must(dumps.dump(name, IMAGES)[0] == 0, "the program cannot be dumped any more")
    dumps.must(dumps.restore(IMAGES) == 0, "the image does not restore")
    assert dumps.result(name) == dumps.expected


def test_the_kernel_does_not_complain_of_dumps(dumps: Faults) -> None:
    dumps.calls()
    dumps.must_be_content()


def test_a_restore_succeeds_when_no_call_fails(restores: Faults) -> None:
    no_failure_of_a_call_that_is_not_made(restores)


def test_each_failed_restore_leaves_no_process(restores: Faults) -> None:
    restores.swept()


def test_the_image_has_the_result_after_all_that(restores: Faults) -> None:
    restores.swept()
    name = restores.program()
    restores.hold_again(name)
    restores.must(restores.restore(IMAGES) == 0, "the image does not restore")
    assert restores.result(name) == restores.expected


def test_the_kernel_does_not_complain_of_restores(restores: Faults) -> None:
    restores.calls()
    restores.must_be_content()


if EVERY:
    @pytest.fixture(name="refusals", scope="module", params=programs_of(REFUSAL))
    def fixture_refusals(request: pytest.FixtureRequest) -> Iterator[Faults]:
        yield from machine(request, REFUSAL)

    def test_a_dump_is_refused_when_no_call_fails(refusals: Faults) -> None:
        no_failure_of_a_call_that_is_not_made(refusals)

    def test_each_dump_with_a_failed_call_is_refused_too_and_the_program_goes_on(refusals: Faults) -> None:
        refusals.swept()

    def test_the_refused_program_has_its_result_after_all_that(refusals: Faults) -> None:
        refusals.swept()
        assert refusals.result(refusals.program()) == refusals.expected

    def test_the_kernel_does_not_complain_of_refusals(refusals: Faults) -> None:
        refusals.calls()
        refusals.must_be_content()
