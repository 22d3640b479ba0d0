# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""What tests make once is made once, and a machine that fails says so to the right test."""
from __future__ import annotations

from pathlib import Path

import pytest
from harness import machines, paths, steps, times
from harness.steps import StepMachine, once

Failed = pytest.fail.Exception


class Kitchen:
    def __init__(self) -> None:
        self.made: list[str] = []

    @once("a cake")
    def cake(self) -> str:
        self.made.append("cake")
        return "cake"

    @once("a {0} pie")
    def pie(self, kind: str) -> None:
        self.made.append(kind)
        if kind == "burnt":
            steps.fail("it is burnt")


class FakeMachine:
    """A JobMachine whose jobs say what they are and end with the status that is their last word."""

    ends = (0, "")
    boots = True

    def __init__(self, _name: str, _options: list[str], limit_s: int) -> None:
        assert limit_s
        self.killed = False

    def start(self) -> None:
        if not self.boots:
            raise machines.MachineDied("no kernel", "vm.sh: error: no kernel\n")

    def run(self, argv: list[str], _limit_s: int, on_line=None, **_more) -> int:
        if argv[-1] == "panic":
            raise machines.MachineDied("a triple fault", "")
        on_line(" ".join(argv[:-1]))
        return int(argv[-1])

    @staticmethod
    def new_splats() -> list[str]:
        return []

    def finish(self) -> tuple[int, str]:
        return self.ends

    def kill(self) -> None:
        self.killed = True


@pytest.fixture(name="fake")
def make_fake(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> type[FakeMachine]:
    class Fake(FakeMachine):
        pass

    monkeypatch.setattr(machines, "JobMachine", Fake)
    monkeypatch.setattr(paths, "TEST", tmp_path)
    monkeypatch.setattr(times, "STEPS", tmp_path / "times.jsonl")
    return Fake


@pytest.fixture(name="machine")
def make_machine(fake: type[FakeMachine]) -> StepMachine:
    assert fake
    return StepMachine("m", [], ["run"], 10)


def test_a_thing_is_made_once_for_each_argument() -> None:
    kitchen = Kitchen()
    assert [kitchen.cake(), kitchen.cake()] == ["cake", "cake"]
    kitchen.pie("apple")
    kitchen.pie("cherry")
    kitchen.pie("apple")
    assert kitchen.made == ["cake", "apple", "cherry"]


def test_the_first_caller_sees_why_and_the_others_what_they_lack() -> None:
    kitchen = Kitchen()
    with pytest.raises(Failed, match="it is burnt"):
        kitchen.pie("burnt")
    with pytest.raises(Failed, match="^needs: a burnt pie"):
        kitchen.pie("burnt")
    assert kitchen.made == ["burnt"]


def test_a_step_returns_what_it_printed(machine: StepMachine) -> None:
    assert machine.step("a", "b", "0") == "run a b"
    assert machine.attempt("c", "7") == (7, "run c")


def test_a_step_that_fails_shows_what_it_printed(machine: StepMachine) -> None:
    with pytest.raises(Failed, match="(?s)status 3.*run a"):
        machine.step("a", "3")
    assert machine.step("b", "0") == "run b"


def test_a_machine_that_does_not_boot_fails_the_first_test_with_its_words(fake: type[FakeMachine],
                                                                          machine: StepMachine) -> None:
    fake.boots = False
    with pytest.raises(Failed, match="does not boot: no kernel"):
        machine.step("a", "0")
    with pytest.raises(Failed, match="^needs: the machine m, which did not boot"):
        machine.step("a", "0")
    assert machine.finish() == ""


def test_a_machine_that_ends_fails_the_step_and_is_needed_by_the_others(machine: StepMachine) -> None:
    with pytest.raises(Failed, match="the machine m ended: a triple fault"):
        machine.step("panic")
    with pytest.raises(Failed, match="^needs: the machine m, which ended before its time"):
        machine.step("a", "0")
    assert machine.finish() == ""


def test_a_kernel_that_complains_fails_the_test_at_whose_end_the_machine_is_shut_down(fake: type[FakeMachine]) -> None:
    fake.ends = (1, "WARNING: here")
    with pytest.raises(Failed, match="(?s)status 1.*WARNING: here"):
        with StepMachine("m", [], [], 10) as machine:
            machine.step("0")


def test_a_machine_that_was_shut_down_takes_no_steps(machine: StepMachine) -> None:
    machine.must_be_content()
    with pytest.raises(Failed, match="^needs: the machine m, which has been shut down"):
        machine.step("a", "0")


def test_what_is_not_built_is_named_with_its_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(paths, "OUT", tmp_path)
    with pytest.raises(Failed, match="^the kernel criu-debug is not built: scripts/kernel.sh build criu --debug$"):
        steps.need_built("criu-debug")
    (tmp_path / "kernel/criu").mkdir(parents=True)
    (tmp_path / "kernel/criu/bzImage").touch()
    with pytest.raises(Failed, match="^vasicd/vasicd is not built: scripts/build.sh release$"):
        steps.need_built("criu")
