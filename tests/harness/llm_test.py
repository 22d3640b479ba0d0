# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""A moved run of the language model has one machine at a time and calls no answer equal that is not, with fake machines."""
from __future__ import annotations

from pathlib import Path

import pytest
from harness import llm


class FakeMachine:
    """Answers the steps of llm.sh as a guest would, with words that are numbers."""

    # The machines that run, all that have run, and the steps of all.
    running: list[FakeMachine] = []
    begun: list[FakeMachine] = []
    steps: list[str] = []
    # What a restored program says instead of its next word, how many words it says until CRIU stops it, and what a
    # machine's kernel has to say.
    lie, late, complaint = "", 2, ""

    def __init__(self, number: int, chip: str) -> None:
        kind = llm.MACHINE_KINDS[number % len(llm.MACHINE_KINDS)]
        self.label = f"{number + 1} ({kind.letter})"
        self.gpus = tuple(gpu.format(chip=chip) for gpu in kind.gpus)
        self._number = number

    def boot(self) -> None:
        assert not self.running
        self.running.append(self)
        self.begun.append(self)

    def finish(self) -> str:
        self.running.clear()
        return self.complaint

    def must_be_content(self) -> None:
        if said := self.finish():
            llm.fail(said)

    def gpu_ids(self) -> tuple[str, ...]:
        return tuple(f"{self._number}{index}" for index in range(len(self.gpus)))

    def llm(self, step: str, name: str, *words: str) -> list[str]:
        assert self.running == [self]
        self.steps.append(step)
        folder = llm.RUN / name
        folder.mkdir(exist_ok=True)
        before = len(llm.answer_of(name).split())
        return getattr(self, f"_{step}")(folder, before, list(words))

    def _say(self, folder: Path, before: int, count: int) -> int:
        with (folder / "answer").open("a") as answer:
            answer.write("".join(f" w{number}" for number in range(before, before + count)))
        return before + count

    def _whole(self, folder: Path, before: int, words: list[str]) -> list[str]:
        (folder / "log").write_text("ROCm0")
        self._say(folder, before, int(words[words.index("-n") + 1]))
        return ["9.50"]

    def _start(self, folder: Path, before: int, words: list[str]) -> list[str]:
        (folder / "total").write_text(words[words.index("-n") + 1])
        return ["20001", "30.00", "/dev/dri/renderD128"] if self._say(folder, before, 1) else []

    def _dump(self, folder: Path, before: int, words: list[str]) -> list[str]:
        images = llm.RUN / words[0]
        images.mkdir()
        (images / "pages.img").write_bytes(bytes(3 << 20))
        after = self._say(folder, before, int(words[1]))
        return [str(before), str(after), "3.00", "47.00", str(self._say(folder, after, self.late))]

    def _restore(self, folder: Path, before: int, words: list[str]) -> list[str]:
        assert (llm.RUN / words[0] / "pages.img").exists() and before
        if self.lie:
            (folder / "answer").write_text(llm.answer_of("moved") + " " + self.lie)
        return ["13.00", "/dev/dri/renderD129"]

    def _finish(self, folder: Path, before: int, _: list[str]) -> list[str]:
        (folder / "log").write_text("total time")
        return [str(before), str(self._say(folder, before, int((folder / "total").read_text()) - before)), "8.00"]


@pytest.fixture(name="fake", autouse=True)
def fixture_fake(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> type[FakeMachine]:
    monkeypatch.setattr(llm, "LlmMachine", FakeMachine)
    monkeypatch.setattr(llm, "RUN", tmp_path)
    monkeypatch.setattr(llm.MovedRun, "prepare", lambda self: None)
    for name in ("running", "begun", "steps"):
        monkeypatch.setattr(FakeMachine, name, [])
    return FakeMachine


def test_a_run_that_is_moved_three_times_has_four_machines_one_after_the_other(fake: type[FakeMachine]) -> None:
    with llm.MovedRun(3) as run:
        assert run.moved() and run.differences() == []
    assert [machine.label for machine in fake.begun] == ["1 (A)", "2 (B)", "3 (C)", "4 (A)"]
    assert fake.steps == ["whole", "whole", "start", "dump", "restore", "dump", "restore", "dump", "restore", "finish"]
    assert not fake.running
    assert [path.name for path in llm.RUN.glob("images-*")] == ["images-3"]


def test_each_part_says_what_its_machine_did() -> None:
    with llm.MovedRun(1) as run:
        first, last = run.parts
    waited = 1 + llm.WORDS_BEFORE_DUMP
    assert (first.before, first.after, first.dump_s, first.image_mib) == (0, waited + 2, 47.0, 3.0)
    assert first.words_per_s == pytest.approx(llm.WORDS_BEFORE_DUMP / 3)
    assert (last.before, last.after, last.start_s, last.node) == (waited + 2, run.words, 13.0, "/dev/dri/renderD129")
    assert not set(first.gpu_ids) & set(last.gpu_ids)


def test_phases_follow_each_other() -> None:
    with llm.MovedRun(1) as run:
        run.moved()
    assert [phase.what for phase in run.phases] == \
        ["boot", "undisturbed, processor", "undisturbed, GPU", "start", "dump", "boot", "restore", "words"]
    assert all(after.begin >= before.begin + before.seconds for before, after in zip(run.phases, run.phases[1:]))


def test_a_wrong_word_after_a_restore_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeMachine, "lie", "other")
    with llm.MovedRun(1) as run:
        at = run.part(0).after + 1
        assert run.differences() == [f"the answer that was moved differs from that of the {name} at word {at}"
                                     for name in ("undisturbed GPU", "processor")]


def test_a_dump_after_the_last_word_is_no_move(monkeypatch: pytest.MonkeyPatch, fake: type[FakeMachine]) -> None:
    monkeypatch.setattr(FakeMachine, "late", 1000)
    with pytest.raises(llm.Failed, match="the answer was complete before dump 1"):
        with llm.MovedRun(1) as run:
            run.moved()
    assert not fake.running


def test_a_complaint_of_a_kernel_fails_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeMachine, "complaint", "WARNING: at kfd_svm.c")
    with pytest.raises(llm.Failed, match="WARNING"):
        with llm.MovedRun(1) as run:
            run.moved()


@pytest.mark.parametrize("one, other, number", [("a b c", "a x c", 2), ("a b", "a b c", 3), ("", "a", 1)])
def test_the_first_difference_is_named(one: str, other: str, number: int) -> None:
    assert llm.first_difference(one, other) == number


def test_the_machines_differ_in_gpus_and_slots() -> None:
    for here, there in zip(llm.MACHINE_KINDS, (*llm.MACHINE_KINDS[1:], llm.MACHINE_KINDS[0])):
        assert not set(here.gpus) & set(there.gpus)
        assert sum("{chip}" in gpu for gpu in here.gpus) == 1
