#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""Shows what kfdtest's matrix found: machine x kind of queue x {run, event, evict and resume}.

usage: matrix.py MACHINE.out...

Each file is what a machine of the guest tier printed (out/test/machine-NAME.out); one
without the matrix is left out. A cell has three marks, the last one also the number of
ways of eviction that were survived:
  ok    passed          FAIL  failed, or did not end
  -     not applicable, with a letter that the last lines explain
Judges nothing: test.sh does. Status 1 when no file has a matrix.
"""
from __future__ import annotations

import re
import string
import sys
from pathlib import Path
from typing import Iterable, NamedTuple

import ktap

CELL = re.compile(r"^(?:kinds/QueueKindTest\.(?P<stage>runs|its_interrupt)\w*/(?P<kind>\w+)"
                  r"|matrix/EvictionTest\.\w+/(?P<evicted>\w+?)_by_(?P<way>\w+))$")
KINDS = ("pm4", "aql", "sdma", "sdma_xgmi", "sdma_by_engine")
STAGES = ("run", "event", "evict")


class Result(NamedTuple):
    verdict: str  # ok, not ok, skip
    reason: str


Cells = dict[tuple[str, str], list[Result]]


def split_kind(evicted: str, way: str) -> str:
    """The kind of `KIND_by_WAY`: one kind has a _by_ in its own name."""
    whole = f"{evicted}_by_{way}"
    return max((kind for kind in KINDS if whole.startswith(kind + "_by_")), key=len, default=evicted)


def read(lines: Iterable[str]) -> Cells:
    cells: Cells = {}
    for case in ktap.from_gtest(lines):
        verdict, name, *reason = case.split("\t")
        match = CELL.match(name)
        if not match:
            continue
        if match["stage"]:
            key = (match["kind"], "run" if match["stage"] == "runs" else "event")
        else:
            key = (split_kind(match["evicted"], match["way"]), "evict")
        cells.setdefault(key, []).append(Result(verdict, reason[0] if reason else ""))
    return cells


class Reasons:
    """A letter for each reason, in the order in which they are met."""

    def __init__(self) -> None:
        self.letters: dict[str, str] = {}

    def letter(self, reason: str) -> str:
        names = string.ascii_lowercase + string.ascii_uppercase
        return self.letters.setdefault(reason, names[len(self.letters) % len(names)])


def mark(stage: str, results: list[Result], reasons: Reasons) -> str:
    passed = sum(result.verdict == "ok" for result in results)
    skipped = [result.reason for result in results if result.verdict == "skip"]
    if not results or passed + len(skipped) < len(results):
        return "FAIL"
    letters = "".join(sorted({reasons.letter(reason) for reason in skipped}))
    if not passed:
        return f"-{letters}"
    return (f"ok{passed}" if stage == "evict" else "ok") + (f"/{letters}" if letters else "")


def table(machines: dict[str, Cells]) -> list[str]:
    reasons = Reasons()
    rows = [["", *KINDS]]
    for name, cells in machines.items():
        rows.append([name, *(" ".join(mark(stage, cells.get((kind, stage), []), reasons) for stage in STAGES)
                             for kind in KINDS)])
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    text = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]
    return text + [f"{letter}: {reason}" for reason, letter in reasons.letters.items()]


def main(paths: list[str]) -> int:
    if not paths or paths[0] in ("-h", "--help"):
        print(__doc__)
        return 0 if paths else 64
    machines = {}
    for path in map(Path, paths):
        with path.open(errors="replace") as file:
            cells = read(text.rstrip("\r\n") for text in file)
        if cells:
            machines[path.stem.removeprefix("machine-")] = cells
    if machines:
        print("\n".join(table(machines)))
    return int(not machines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
