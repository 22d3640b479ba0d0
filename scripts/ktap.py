#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""Reads what test programs print and writes one line for each case.

usage: ktap.py gtest|ctest|ktap|cases   what the program prints, on standard input
       ktap.py unittest FILE...         run Python tests

Output, tab separated, as soon as it is known:
  ok|not ok|skip   NAME   REASON
  note   TEXT           what belongs to the failed case before or after it
The kind `cases` is this already. It counts nothing and judges nothing: test.sh does.
"""
from __future__ import annotations

import importlib.util
import re
import sys
import unittest
from collections import deque
from pathlib import Path
from typing import Iterable, Iterator

# Lines of a failed case that are shown; the log has the rest.
MAX_NOTES = 120

GTEST_RUN = re.compile(r"^\[ RUN      \] (\S+)$")
# A program's own unfinished line may stand before the mark.
GTEST_END = re.compile(r"\[(       OK |  FAILED  |  SKIPPED )\] ([^\s,]+)(?:, where .*)? \(\d+ ms\)$")
CTEST_END = re.compile(r"^\s*\d+/\d+ Test\s+#\d+: (.+?) \.{3,}\s*(?:\*\*\*)?"
                       r"(Passed|Failed|Skipped|Not Run|Timeout|Exception|Disabled|[A-Z]\w*)")
KTAP_CASE = re.compile(r"^(ok|not ok)\s+(?:\d+\s*-?|-)\s*(.*?)\s*(?:#\s*(SKIP|TODO)\b\s*(.*))?$")


def line(verdict: str, *fields: str) -> str:
    return "\t".join([verdict, *(re.sub(r"[\t\n]", " ", field) for field in fields)])


def from_gtest(lines: Iterable[str]) -> Iterator[str]:
    """A case that begins and does not end (a crash) has failed."""
    running = ""
    notes: deque[str] = deque(maxlen=MAX_NOTES)
    for text in lines:
        begin, end = GTEST_RUN.match(text), GTEST_END.search(text)
        if begin:
            if running:  # another program begins where the last one crashed
                yield from unfinished(running, notes)
            running = begin.group(1)
            notes.clear()
        elif end and running:
            verdict = {"OK": "ok", "FAILED": "not ok", "SKIPPED": "skip"}[end.group(1).strip()]
            reason = notes[-1].strip() if verdict == "skip" and notes else ""
            yield line(verdict, running, reason)
            if verdict == "not ok":
                yield from (line("note", note) for note in notes)
            running = ""
        else:
            notes.append(text)
    if running:
        yield from unfinished(running, notes)


def unfinished(case: str, notes: Iterable[str]) -> Iterator[str]:
    yield line("not ok", case, "did not end")
    yield from (line("note", note) for note in notes)


def from_ctest(lines: Iterable[str]) -> Iterator[str]:
    """With --output-on-failure: a failed case's output comes after its line."""
    notes_left = 0
    for text in lines:
        end = CTEST_END.match(text)
        if end:
            result = end.group(2)
            verdict = {"Passed": "ok", "Skipped": "skip"}.get(result, "not ok")
            yield line(verdict, end.group(1), "" if verdict == "ok" else result)
            notes_left = MAX_NOTES if verdict == "not ok" else 0
        elif re.match(r"^\s+Start\s+\d+: |^\d+% tests passed", text):
            notes_left = 0
        elif notes_left and text.strip():
            notes_left -= 1
            yield line("note", text)


def from_ktap(lines: Iterable[str]) -> Iterator[str]:
    """Only lines at the left margin are cases; "# " lines are notes."""
    for text in lines:
        case = KTAP_CASE.match(text)
        if case:
            verdict, name, directive, reason = case.groups()
            if directive == "SKIP" and verdict == "ok":
                verdict = "skip"
            yield line(verdict, name, reason or "")
        elif text.startswith("#"):
            yield line("note", text.lstrip("# "))


class Reporter(unittest.TestResult):
    """Writes each case when it ends."""

    def __init__(self) -> None:
        super().__init__()
        self.failed_subtest = ""

    def report(self, verdict: str, test: unittest.TestCase, reason: str = "") -> None:
        print(line(verdict, test.id(), reason), flush=True)

    def fail(self, test: unittest.TestCase, error) -> None:
        self.report("not ok", test, str(error[1]))
        for text in self._exc_info_to_string(error, test).splitlines():
            print(line("note", text), flush=True)

    def startTest(self, test) -> None:  # noqa: N802, unittest's name
        super().startTest(test)
        self.failed_subtest = ""

    def addSuccess(self, test) -> None:  # noqa: N802
        if not self.failed_subtest:
            self.report("ok", test)

    def addError(self, test, err) -> None:  # noqa: N802
        self.fail(test, err)

    def addFailure(self, test, err) -> None:  # noqa: N802
        self.fail(test, err)

    def addSkip(self, test, reason) -> None:  # noqa: N802
        self.report("skip", test, reason)

    def addSubTest(self, test, subtest, err) -> None:  # noqa: N802
        if err is not None:
            self.failed_subtest = subtest.id()
            self.fail(subtest, err)


def run_unittest(files: list[str]) -> None:
    for file in files:
        path = Path(file).resolve()
        sys.path.insert(0, str(path.parent))
        spec = importlib.util.spec_from_file_location(path.stem, path)
        module = importlib.util.module_from_spec(spec)
        sys.modules[path.stem] = module
        try:
            spec.loader.exec_module(module)
        except Exception as error:  # pylint: disable=broad-except
            print(line("not ok", path.stem, f"cannot be loaded: {error!r}"), flush=True)
            continue
        unittest.defaultTestLoader.loadTestsFromModule(module).run(Reporter())


def main() -> int:
    sys.dont_write_bytecode = True
    kinds = {"gtest": from_gtest, "ctest": from_ctest, "ktap": from_ktap, "cases": iter}
    kind = sys.argv[1] if len(sys.argv) > 1 else ""
    if kind == "unittest" and len(sys.argv) > 2:
        run_unittest(sys.argv[2:])
    elif kind in kinds and len(sys.argv) == 2:
        sys.stdin.reconfigure(errors="replace")
        for text in kinds[kind](raw.rstrip("\r\n") for raw in sys.stdin):
            print(text, flush=True)
    else:
        print(__doc__, file=sys.stderr)
        return 64
    return 0


if __name__ == "__main__":
    sys.exit(main())
