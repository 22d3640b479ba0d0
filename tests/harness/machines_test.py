# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""A guest says what went wrong with it, and what ran then; a host keeps temporary files in memory."""
from __future__ import annotations

from pathlib import Path

import pytest
from harness import machines
from harness.machines import MAX_BOOTS, Guest, Host, MachineDied, MachineLost
from vm.errors import infra_error

FOLDER_IN_MEMORY = machines.folder_in_memory


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


class DyingMachine(FakeMachine):
    """One that ends during its first job."""

    made = 0

    def __init__(self, *_words, **_more) -> None:
        super().__init__()
        DyingMachine.made += 1

    def run(self, *_words, **_more) -> int:
        raise MachineDied("a triple fault", "")


@pytest.fixture(name="guest")
def make_guest(monkeypatch, tmp_path: Path) -> Guest:
    monkeypatch.setattr(machines, "JobMachine", FakeMachine)
    monkeypatch.setattr(machines.times, "record", lambda *_: None)
    return Guest("m", [], {}, 10, tmp_path / "log")


def test_programs_of_this_host_get_the_variables_of_its_row(tmp_path: Path) -> None:
    host = Host("host", tmp_path / "log", {"ROW": "1", "BOTH": "1"})
    assert list(host.start(("sh", "-c", 'echo "$ROW $BOTH $PROGRAM"'), {"BOTH": "2", "PROGRAM": "2"}, 20)) == ["1 2 2"]
    host.close()


def test_temporary_files_of_a_program_are_in_memory_until_the_machine_is_closed(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.delenv("TMPDIR", raising=False)
    monkeypatch.setattr(machines, "folder_in_memory", lambda: FOLDER_IN_MEMORY(tmp_path, 1))
    host = Host("host", tmp_path / "log")
    output = host.start(("sh", "-c", 'echo "$TMPDIR"; : >"$TMPDIR/file"'), {}, 20)
    folder = Path(list(output)[0])
    assert folder.parent == tmp_path and (folder / "file").exists() and folder.stat().st_mode & 0o777 == 0o700
    # A run that is killed closes nothing; the next one finds it.
    assert not list(Host("again", tmp_path / "log").temporary.iterdir())
    host.close()
    assert not folder.exists()


def test_temporary_files_are_where_tmpdir_says_or_there_is_room(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.delenv("TMPDIR", raising=False)
    assert machines.folder_in_memory(tmp_path, 1 << 60) is None
    assert machines.folder_in_memory(tmp_path / "nowhere", 1) is None
    monkeypatch.setenv("TMPDIR", "/tmp")
    assert machines.folder_in_memory(tmp_path, 1) is None


def test_a_complaint_of_the_kernel_names_the_program_that_ran(guest: Guest) -> None:
    for program in ("/a/first", "/a/second"):
        assert not list(guest.start((program,), {}, 10))
    assert guest.close() == "the machine m ended with status 1:\nwhile second ran: WARNING: here\nthe kernel complained"


def test_a_machine_that_cannot_be_started_is_lost_and_not_finished(guest: Guest, monkeypatch) -> None:
    monkeypatch.setattr(machines, "JobMachine", TakenMachine)
    for words in ("does not boot: another virtual machine is named 'm'", "has ended before"):
        with pytest.raises(MachineLost, match=words):
            guest.start(("/a/first",), {}, 10)
    assert guest.close() == ""


def run_until_lost(guest: Guest) -> str:
    """Starts a program in a machine that ends meanwhile, or does not start it; why."""
    with pytest.raises(MachineLost) as lost:
        list(guest.start(("/a/first",), {}, 10))
    return str(lost.value)


@pytest.mark.parametrize("reboots,boots", [(False, 1), (True, MAX_BOOTS)])
def test_a_new_machine_takes_the_place_of_one_that_has_ended(guest: Guest, monkeypatch, reboots: bool, boots: int) -> None:
    monkeypatch.setattr(machines, "JobMachine", DyingMachine)
    monkeypatch.setattr(DyingMachine, "made", 0)
    guest = Guest("m", [], {}, 10, guest.log, reboots)
    for number in range(boots):
        assert run_until_lost(guest) == "the machine m ended: a triple fault"
        assert DyingMachine.made == number + 1
    assert "has ended before" in run_until_lost(guest)
    assert DyingMachine.made == boots
