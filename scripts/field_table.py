#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""Compares what becomes of programs that users reported trouble with: tests/test_field.py with our plugin on our
kernel, and with CRIU's own plugin on the stock kernel.

usage: field_table.py RELEASE    build CRIU and its plugin as in this release of Debian (scripts/upstream_plugin.py),
                                 run the tests with both and write out/report/field.txt
       field_table.py --write    write it again from the results of the last run

Cells: `as wanted`, or what happened instead. The status is 1 if a cell of ours is not `as wanted`.
"""
from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from harness import paths  # noqa: E402  # pylint: disable=wrong-import-position

TESTS = "tests/test_field.py"
OURS, THEIRS = "ours", "theirs"
WANTED, NOT_RUN = "as wanted", "not run"
WIDTH = 100


def run(folder: Path, who: str, variables: dict[str, str]) -> int:
    """Runs the tests and keeps their results; the status of tests that could not be run, or 0."""
    status = subprocess.run([paths.SCRIPTS / "test.py", "--all", TESTS], env={**os.environ, **variables},
                            check=False).returncode
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"field-{who}.jsonl").write_text((paths.TEST / "results.jsonl").read_text())
    return 0 if status in (0, 1) else status


def cells(lines: list[str]) -> dict[str, str]:
    """What happened in each test."""
    rows = [json.loads(line) for line in lines]
    return {row["id"].partition("::")[2]: WANTED if row["outcome"] == "passed" else first_line(row["text"])
            for row in rows}


def first_line(text: str) -> str:
    """The first line of a failure, without the wanted outcome, which is the same for both."""
    line = next((line for line in text.splitlines() if line.strip()), "failed")
    return line.partition("; ")[2] or line


def table(ours: dict[str, str], theirs: dict[str, str]) -> list[str]:
    """A line for each test, or more."""
    lines = []
    for name in [*ours, *(name for name in theirs if name not in ours)]:
        lines += [name.removeprefix("test_").replace("_", " "), f"    {OURS:8}{ours.get(name, NOT_RUN)[:WIDTH]}",
                  f"    {THEIRS:8}{theirs.get(name, NOT_RUN)[:WIDTH]}"]
    return lines


def read(file: Path) -> dict[str, str]:
    return cells(file.read_text().splitlines()) if file.exists() else {}


def main(arguments: list[str]) -> int:
    if len(arguments) != 1 or arguments[0] in ("-h", "--help"):
        print(__doc__.strip())
        return 0 if arguments in (["-h"], ["--help"]) else 64
    folder = paths.OUT / "report"
    if arguments != ["--write"]:
        subprocess.run([paths.SCRIPTS / "upstream_plugin.py", arguments[0]], check=True)
        runs = ((OURS, {}), (THEIRS, {"FIELD_CRIU": str(paths.OUT / "upstream" / arguments[0])}))
        for who, variables in runs:
            if status := run(folder, who, variables):
                return status
    ours, theirs = (read(folder / f"field-{who}.jsonl") for who in (OURS, THEIRS))
    text = "\n".join(table(ours, theirs))
    (folder / "field.txt").write_text(text + "\n")
    print(text)
    return 0 if ours and set(ours.values()) == {WANTED} else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
