# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""A group's machine is ended whatever happens, and what goes wrong with it is said."""
from __future__ import annotations

from pathlib import Path

import pytest
from harness import items, paths, streams
from harness.machines import MachineLost, Output


class FakeMachine:
    """A machine whose programs print nothing and end with `status`; none starts without one."""

    status: int | None = 0
    closed = False

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path_of(self, name: str) -> Path:
        return self.folder / name

    def start(self, *_words) -> Output:
        if self.status is None:
            raise MachineLost("the machine m ended")
        output = Output()
        output.status = self.status
        output.lines.put(None)
        return output

    def close(self) -> str:
        self.closed = True
        return ""


@pytest.mark.parametrize("status, said", [
    (0, ""), (1, "collect_gcov.sh: status 1\n"), (None, "what the kernel counted is lost: the machine m ended\n")])
def test_a_machine_that_counted_nothing_is_closed_and_complains(monkeypatch, tmp_path: Path, status, said) -> None:
    monkeypatch.setattr(paths, "OUT", tmp_path)
    monkeypatch.setattr(items.times, "record", lambda *_: None)
    (tmp_path / "gcov").mkdir()
    worker, machine = items.Worker(), FakeMachine(tmp_path)
    machine.status, worker.machine, worker.collects, worker.group = status, machine, "gcov", "m"
    assert worker.end_group() == said
    assert machine.closed


def test_a_machine_that_cannot_begin_fails_its_case(monkeypatch) -> None:
    def refuse(_item):
        raise OSError("No space left on device")

    class Case:
        name, machine = "A.one", None
        program = type("Program", (), {"name": "p", "varies": True})
        plan = type("Plan", (), {"may_be_absent": staticmethod(lambda *_: "why")})

    monkeypatch.setattr(items.WORKER, "batch", refuse)
    case = Case()
    assert not items.CaseItem.is_absent(case)
    assert (case.result.outcome, case.result.reason) == (streams.FAILED, "OSError: No space left on device")
