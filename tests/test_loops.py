# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""The driver is unloaded and loaded, GPUs are reset, and vasicd is killed under load; then
tests look for what is left behind: in the guest's kernel, and in vasicd.

`make soak` does the same many times, and on a kernel with KASAN, lockdep and kmemleak.
"""
from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Iterator

import pytest
from harness import paths, plan
from harness.steps import StepMachine, fail, need_built, once

VRAM = "256M"
# The first reloads fill caches that stay.
WARM_UP = 2
# What vasicd may keep: allocator caches, not a thing each round.
SPARE_FDS, SPARE_RSS_KIB = 2, 8192
# What may go in the guest without being a leak: of memory at all, of slabs, and for each round.
# The first one is what comes and goes on a machine that does nothing.
SPARE_MEMORY_KIB, SPARE_SLABS_KIB, SPARE_KIB_PER_ROUND = 32768, 4096, 16
SOAK_CHIPS = plan.sample("soak")


@dataclass(frozen=True)
class Rounds:
    """How often a machine with these GPUs reloads its driver and resets its GPUs. `groups` are
    those of scripts/test.py --groups; `limit_s` is for all rounds of one kind."""

    name: str
    groups: tuple[str, ...]
    kernel: str
    chips: tuple[str, ...]
    reloads: int
    resets: int
    limit_s: int

    @property
    def count(self) -> int:
        """All rounds that can leave something behind."""
        return self.reloads + self.resets


ROUNDS = (
    Rounds("loops", ("test",), "criu", plan.sample("loops"), 5, 5, 900),
    Rounds("soak-stock", ("soak",), "stock", SOAK_CHIPS, 200, 50, 7200),
    Rounds("soak-debug", ("soak",), "criu-debug", SOAK_CHIPS, 200, 50, 36000),
    Rounds("soak-stock", ("soak-quick",), "stock", SOAK_CHIPS, 20, 5, 7200),
    Rounds("soak-debug", ("soak-quick",), "criu-debug", SOAK_CHIPS, 20, 5, 7200),
)
LOSS_CHIPS, LOSS_LIMIT_S = plan.sample("loss"), 1800


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Tests of rounds run on each machine of the groups that are asked for."""
    if "loops" in metafunc.fixturenames:
        groups = set(metafunc.config.getoption("groups").split(","))
        wanted = [each for each in ROUNDS if groups & set(each.groups)] or ROUNDS[:1]
        metafunc.parametrize("loops", [pytest.param(each, id=each.name, marks=_marks(each)) for each in wanted],
                             indirect=True, scope="module")


def _marks(rounds: Rounds) -> list[pytest.MarkDecorator]:
    tier = "guest" if "test" in rounds.groups else "soak"
    return [pytest.mark.group(rounds.name, seconds=80), pytest.mark.tier(tier)]


def machine_options(kernel: str, chips: tuple[str, ...]) -> list[str]:
    """Options of scripts/vm.sh."""
    gpus = [word for chip in chips for word in ("--gpu", f"{chip},vram={VRAM}")]
    return ["--kernel", kernel, *gpus]


@dataclass
class Sizes:
    """What is used at one time: KiB of the guest, open files and KiB of vasicd."""

    available_kib: int
    slabs_kib: int
    fds: int
    rss_kib: int


class Loops(StepMachine):
    """A machine whose driver is loaded and whose GPUs are reset again and again."""

    def __init__(self, rounds: Rounds) -> None:
        need_built(rounds.kernel, "drmtest/drmtest")
        super().__init__(rounds.name, machine_options(rounds.kernel, rounds.chips),
                         [str(paths.SCRIPTS / "guest/loops.sh"), str(paths.built("release")), str(len(rounds.chips))],
                         4 * rounds.limit_s)
        self.rounds = rounds

    def _run(self, *words: str) -> None:
        self.step(*words, limit_s=self.rounds.limit_s)

    def _measure(self) -> Sizes:
        available, slabs = map(int, self.step("measure").splitlines()[-1].split())
        process = Path("/proc") / str(self.vasicd_pid)
        # RssAnon is vasicd's own memory: VRAM and the guest's memory are shared files.
        rss = next(line.split()[1] for line in (process / "status").read_text().splitlines() if line.startswith("RssAnon:"))
        return Sizes(available, slabs, len(os.listdir(process / "fd")), int(rss))

    @once("work on all GPUs")
    def worked(self) -> None:
        self._run("work")

    @once("a first reload of the driver")
    def warmed_up(self) -> Sizes:
        self.worked()
        self._run("reload", str(min(WARM_UP, self.rounds.reloads)))
        return self._measure()

    @once("the reloads of the driver")
    def reloaded(self) -> None:
        self.warmed_up()
        self._run("reload", str(self.rounds.reloads))

    @once("the resets of the GPUs")
    def was_reset(self) -> None:
        self.warmed_up()
        self._run("reset", str(self.rounds.resets))

    @once("a reload after the resets")
    def reloaded_after_resets(self) -> None:
        self.was_reset()
        self._run("reload", "1")

    @once("sizes before and after all rounds")
    def sizes(self) -> tuple[Sizes, Sizes]:
        before = self.warmed_up()
        self.reloaded()
        self.reloaded_after_resets()
        return before, self._measure()


def no_more_than(spare: int, before: int, after: int, what: str) -> None:
    """Fails when it has grown by more than may come and go."""
    print(f"{what}: {before}, then {after}")
    if after - before > spare:
        fail(f"{what}: {before}, then {after}; at most {spare} more would be no leak")


class Loss(StepMachine):
    """A machine whose vasicd is killed while its GPUs work."""

    def __init__(self) -> None:
        need_built("criu", "drmtest/drmtest", "kfdtest-criu/kfdbench")
        super().__init__("loss", [*machine_options("criu", LOSS_CHIPS), "--lossy"],
                         [str(paths.SCRIPTS / "guest/loss.sh"), str(paths.built("release"))], LOSS_LIMIT_S)

    @once("queues and jobs that are running")
    def loaded(self) -> None:
        self.step("load")

    @once("the loss of vasicd")
    def lost(self) -> None:
        self.loaded()
        os.kill(self.vasicd_pid, signal.SIGKILL)

    @once("the end of the programs")
    def programs_ended(self) -> None:
        self.lost()
        self.step("kill")

    @once("a driver that was unloaded")
    def unloaded(self) -> None:
        self.programs_ended()
        self.step("unload")


@pytest.fixture(name="loops", scope="module")
def fixture_loops(request: pytest.FixtureRequest) -> Iterator[Loops]:
    with Loops(request.param) as machine:
        yield machine


@pytest.fixture(name="loss", scope="module")
def fixture_loss() -> Iterator[Loss]:
    with Loss() as machine:
        yield machine


# ---- reloads and resets --------------------------------------------------------


def test_work_succeeds_on_all_gpus(loops: Loops) -> None:
    loops.worked()


def test_the_driver_is_unloaded_and_loaded(loops: Loops) -> None:
    loops.warmed_up()


def test_the_driver_is_unloaded_and_loaded_again_and_again(loops: Loops) -> None:
    loops.reloaded()


def test_the_gpus_are_reset_again_and_again(loops: Loops) -> None:
    loops.was_reset()


def test_the_driver_is_unloaded_and_loaded_after_the_resets(loops: Loops) -> None:
    loops.reloaded_after_resets()


def test_no_memory_was_lost(loops: Loops) -> None:
    before, after = loops.sizes()
    lost = before.available_kib - after.available_kib
    no_more_than(SPARE_MEMORY_KIB + SPARE_KIB_PER_ROUND * loops.rounds.count, 0, lost, "KiB of memory that are gone")


def test_no_kernel_objects_were_left(loops: Loops) -> None:
    before, after = loops.sizes()
    no_more_than(SPARE_SLABS_KIB + SPARE_KIB_PER_ROUND * loops.rounds.count, before.slabs_kib, after.slabs_kib,
                 "KiB of slabs")


def test_vasicd_has_no_more_open_files_than_before(loops: Loops) -> None:
    before, after = loops.sizes()
    no_more_than(SPARE_FDS, before.fds, after.fds, "open files of vasicd")


def test_vasicd_has_no_more_memory_than_before(loops: Loops) -> None:
    before, after = loops.sizes()
    no_more_than(SPARE_RSS_KIB, before.rss_kib, after.rss_kib, "KiB of vasicd's own memory")


def test_the_kernel_does_not_complain_of_reloads_and_resets(loops: Loops) -> None:
    loops.sizes()
    loops.must_be_content()


# ---- the loss of vasicd ---------------------------------------------------------

loss_tests = [pytest.mark.group("loss", seconds=40), pytest.mark.tier("guest")]


def with_loss(test):
    """Marks a test of the machine whose vasicd is killed."""
    for mark in loss_tests:
        test = mark(test)
    return test


@with_loss
def test_queues_and_jobs_are_running_before_the_loss(loss: Loss) -> None:
    loss.loaded()


@with_loss
def test_vasicd_is_killed_under_load(loss: Loss) -> None:
    loss.lost()


@with_loss
def test_new_work_is_refused_after_the_loss(loss: Loss) -> None:
    loss.lost()
    loss.step("refused")


@with_loss
def test_the_programs_can_be_killed_after_the_loss(loss: Loss) -> None:
    loss.programs_ended()


@with_loss
def test_no_task_is_stuck_after_the_loss(loss: Loss) -> None:
    loss.programs_ended()
    loss.step("unstuck")


@with_loss
def test_the_driver_is_unloaded_after_the_loss(loss: Loss) -> None:
    loss.unloaded()


@with_loss
def test_no_gpu_is_reset_when_it_is_taken_down(loss: Loss) -> None:
    loss.unloaded()
    loss.step("no-reset")


@with_loss
def test_the_machine_goes_on_after_the_loss(loss: Loss) -> None:
    loss.unloaded()
    loss.step("continue")


@with_loss
def test_the_kernel_does_not_complain_of_the_loss(loss: Loss) -> None:
    loss.unloaded()
    loss.must_be_content()
