#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""Says of each test case of an older revision where it is now, so that a change of the tests loses none.

usage: compare_cases.py [--all ALL] [--table TABLE] [--short] OLD NEW

  OLD      the cases before the change
  NEW      the cases of `make test` now
  --all    the cases of `make test-all` now
  --table  what happened to cases that have other names now, or do not exist any more (TOML):
             renamed = [{ old = 'scripts/a_test.py::(.*)', new = 'scripts/b_test.py::\\1' }]
             removed = [{ old = '.*::BoTest\\.x', reason = "BoTest.y does that, too" }]
           `old` is a regular expression for a whole ID; the first row that fits counts. A
           row is used only for cases that are neither in NEW nor in ALL.
  --short  print no line for cases that are in NEW under their old names

A list of cases is the output of `scripts/test.py --list` (of `--list --all` for ALL), or
out/test/results.jsonl of a run. Whether a case passed is not compared: a skip has its
reason in tests/plan.toml. Each line is `test`, `test-all`, `renamed`, `removed` or `LOST`
and the case; the last one has the counts.
Status: 0 no case is lost, 1 a case is, 64 usage.
"""
from __future__ import annotations

import json
import re
import tomllib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import command

# An ID in the list that pytest prints; its other lines are warnings and the number of tests.
LISTED = re.compile(r"[^\s:]+\.(?:py|toml)::.+")
COUNTED = (("test", "in make test"), ("test-all", "only in make test-all"), ("renamed", "renamed"),
           ("removed", "removed for a reason"), ("LOST", "lost"))


@dataclass(frozen=True)
class Row:
    """What a row of the table says of the old cases that fit: their new ID, or the reason why they are gone."""
    old: re.Pattern[str]
    new: str = ""
    reason: str = ""


def read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise command.usage_error(f"{path}: {getattr(error, 'strerror', None) or 'is no text'}") from error


def read_cases(path: Path) -> list[str]:
    """Returns the IDs in a list of cases, each once."""
    cases = []
    for line in read_text(path).splitlines():
        if line.startswith("{"):
            try:
                cases.append(str(json.loads(line)["id"]))
            except (ValueError, KeyError) as error:
                raise command.usage_error(f"{path}: no line of results.jsonl: {line[:60]}") from error
        elif LISTED.fullmatch(line):
            cases.append(line)
    if not cases:
        raise command.usage_error(f"{path} has no case: it is no output of scripts/test.py --list and no results.jsonl")
    return list(dict.fromkeys(cases))


def read_table(path: Path) -> list[Row]:
    """Returns the rows of the table."""
    try:
        table = tomllib.loads(read_text(path))
        if unknown := set(table) - {"renamed", "removed"}:
            raise ValueError(f"unknown table {min(unknown)}")
        rows = [Row(re.compile(row["old"]), new=row["new"]) for row in table.get("renamed", [])]
        rows += [Row(re.compile(row["old"]), reason=row["reason"]) for row in table.get("removed", [])]
    except KeyError as error:
        raise command.usage_error(f"{path}: a row has no {error}") from error
    except (ValueError, TypeError, re.error) as error:
        raise command.usage_error(f"{path}: {error}") from error
    if not all(row.new.strip() or row.reason.strip() for row in rows):
        raise command.usage_error(f"{path}: a row has an empty new name or reason")
    return rows


def judge(case: str, new: set[str], everything: set[str], rows: list[Row]) -> tuple[str, str]:
    """Returns the word for an old case, and what the table says of it."""
    if case in new:
        return "test", ""
    if case in everything:
        return "test-all", ""
    for row in rows:
        found = row.old.fullmatch(case)
        if found and row.reason:
            return "removed", f": {row.reason}"
        if found:
            name = found.expand(row.new)
            place = "test" if name in new else "test-all" if name in everything else ""
            return ("renamed", f" -> {name} ({place})") if place else ("LOST", f": {name} is not there")
    return "LOST", ""


def main(argv: list[str]) -> int:
    parser = command.Parser(__doc__)
    for name in ("old", "new"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--all", type=Path)
    parser.add_argument("--table", type=Path)
    parser.add_argument("--short", action="store_true")
    options = parser.read(argv)
    old, new = read_cases(options.old), set(read_cases(options.new))
    everything = set(read_cases(options.all)) if options.all else set()
    rows = read_table(options.table) if options.table else []
    counts: Counter[str] = Counter()
    for case in old:
        word, detail = judge(case, new, everything, rows)
        counts[word] += 1
        if word != "test" or not options.short:
            print(f"{word:8} {case}{detail}")
    print(f"{len(old)} cases before: " + ", ".join(f"{counts[word]} {text}" for word, text in COUNTED))
    return 1 if counts["LOST"] else 0


if __name__ == "__main__":
    command.run(main)
