# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""The judge of dumps and restores sees what a program has lost, and calls no bad outcome a good one."""
from __future__ import annotations

from pathlib import Path

import pytest
from harness.field import EQUAL, LOST, REFUSED, WRONG, Field, difference, parse_look

LOOK = """\
process 20001
State:	S (sleeping)
TracerPid:	0
thread State:	S (sleeping)
total 0
lr-x------ 1 root root 64 0 -> /dev/null
lrwx------ 1 root root 64 3 -> /dev/kfd
lrwx------ 1 root root 64 4 -> /dev/dri/renderD128
lrwx------ 1 root root 64 5 -> pipe:[1234]
/proc/20001/fdinfo/3:flags:	02100002
/proc/20001/fdinfo/4:flags:	02100002
mappings 10
/sys/class/kfd/kfd/proc/20001/vram_4711:4096
queues 3
process 15001
State:	S (sleeping)
TracerPid:	0
thread State:	S (sleeping)
mappings 2
"""
SAME = LOOK.replace("renderD128", "renderD129").replace("1234", "99").replace("vram_4711", "vram_42")
ERROR = "(00.1) Error (amdgpu_plugin): no"


def test_what_a_program_looks_like_is_read() -> None:
    child, parent = parse_look(LOOK)
    assert (child.pid, parent.pid, parent.state, parent.mappings, parent.vram, parent.queues) == \
        (15001, 20001, "S", 10, 4096, 3)
    assert parent.files[3] == "/dev/kfd" and parent.flags[3] == "02100002"
    assert not parent.stopped


def test_other_nodes_pipes_and_gpu_ids_are_no_difference() -> None:
    assert not difference(parse_look(LOOK), parse_look(SAME))


@pytest.mark.parametrize("old,new", [
    ("process 15001", "process 15002"), ("mappings 10", "mappings 9"), ("queues 3", "queues 2"),
    ("02100002", "02104002"),
    ("64 3 -> /dev/kfd", "64 7 -> /dev/kfd"), ("/dev/null", "/dev/zero"), ("64 5 -> pipe:[1234]\n", "")])
def test_what_differs_is_said(old: str, new: str) -> None:
    assert difference(parse_look(LOOK), parse_look(SAME.replace("99", "1234").replace(old, new, 1)))


@pytest.mark.parametrize("old,new", [("TracerPid:\t0", "TracerPid:\t7"), ("State:\tS", "State:\tt"),
                                     ("thread State:\tS", "thread State:\tT")])
def test_a_stopped_program_is_seen(old: str, new: str) -> None:
    assert any(each.stopped for each in parse_look(LOOK.replace(old, new)))


class Fake(Field):
    """A machine whose steps are texts."""

    def __init__(self, run: Path, **steps: str) -> None:  # pylint: disable=super-init-not-called
        self.run, self.slots, self._names, self._kept = run, "", 0, set()
        self.steps = {"start": "", "end": "", "look": LOOK, "files": "12 core-1.img", "continue": "good",
                      "dump": "status 0", "restore": "status 0", "gone": "", "is-running": "", **steps}
        self.log_of_dump = ""
        (run / "program.1").mkdir()
        (run / "program.1" / "state").write_text("pending 20001")

    def attempt(self, *words: str, limit_s: int = 0, lines: int | None = None) -> tuple[int, str]:
        # The look that waits for the end of the program.
        text = self.steps["gone" if words[0] == "look" and len(words) > 2 else words[0]]
        if words[0] == "dump":
            (self.run / words[3]).write_text(self.log_of_dump)
        return (1 if text.startswith("FAILED") else 0), text


@pytest.mark.parametrize("steps,log,wanted", [
    ({}, "", EQUAL),
    ({"dump": "status 1"}, ERROR, REFUSED),
    ({}, ERROR, WRONG),
    ({"gone": LOOK}, "", WRONG),
    ({"restore": "status 1"}, "", LOST),
    ({"continue": "other"}, "", WRONG),
    ({"continue": "FAILED"}, "", WRONG),
    ({"dump": "status 1", "is-running": "FAILED the program has ended"}, ERROR, LOST),
    ({"dump": "status 1", "continue": "other"}, ERROR, LOST),
    ({"dump": "status 1", "files": "7 amdgpu-manifest.img"}, ERROR, WRONG),
    ({"dump": "status 1", "is-running": "FAILED"}, ERROR, LOST)])
def test_what_became_of_a_program(tmp_path: Path, steps: dict[str, str], log: str, wanted: str) -> None:
    machine = Fake(tmp_path, **steps)
    machine.log_of_dump = log
    assert machine.checkpoint("program", "good", "demo_program").kind == wanted
