# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""A guest says what went wrong with it, and what ran then."""
from __future__ import annotations

from pathlib import Path

import pytest
from harness import places
from harness.places import Guest, PlaceLost
from vm.errors import infra_error


class FakeMachine:
    """A JobMachine whose kernel complains during the second job."""

    jobs = 0

    def __init__(self, *_words, **_more) -> None:
        self.dir = Path("/nowhere")

    def start(self) -> None:
        """Boots."""

    def run(self, *_words, **_more) -> int:
        self.jobs += 1
        return 0

    def new_splats(self) -> list[str]:
        return ["WARNING: here"] if self.jobs == 2 else []

    def finish(self) -> tuple[int, str]:
        return 1, "the kernel complained"

    def kill(self) -> None:
        """Ends."""


class TakenMachine(FakeMachine):
    """One whose name another process uses."""

    def start(self) -> None:
        raise infra_error("another virtual machine is named 'm'")

    def finish(self) -> tuple[int, str]:
        raise AssertionError("it was never started")


@pytest.fixture(name="guest")
def make_guest(monkeypatch, tmp_path: Path) -> Guest:
    monkeypatch.setattr(places, "JobMachine", FakeMachine)
    monkeypatch.setattr(places.times, "record", lambda *_: None)
    return Guest("m", [], {}, 10, tmp_path / "log")


def test_a_complaint_of_the_kernel_names_the_program_that_ran(guest: Guest) -> None:
    for program in ("/a/first", "/a/second"):
        assert not list(guest.start((program,), {}, 10))
    assert guest.close() == "the machine m ended with status 1:\nwhile second ran: WARNING: here\nthe kernel complained"


def test_a_machine_that_cannot_be_started_is_lost_and_not_finished(guest: Guest, monkeypatch) -> None:
    monkeypatch.setattr(places, "JobMachine", TakenMachine)
    for words in ("does not boot: another virtual machine is named 'm'", "has ended before"):
        with pytest.raises(PlaceLost, match=words):
            guest.start(("/a/first",), {}, 10)
    assert guest.close() == ""
