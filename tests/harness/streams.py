# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""Turns what test programs print into results of their cases.

Each reader takes lines one after the other and yields a Result as soon as a case has
ended. GoogleTest and (K)TAP are the only two formats: programs print their own format,
in a virtual machine as on the host, and nothing translates it on the way.

Knows no program, no machine and no pytest.
"""
from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass, field
from typing import Iterable, Iterator

# Lines before the end of a failed case that are kept. The log has all of them.
KEPT_NOTES = 200

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"
# The program does not have the case on this machine: it is not there for this chip or these GPUs.
ABSENT = "absent"

# The program may have left a line of its own unfinished before a mark.
GTEST_BEGIN = re.compile(r"\[ RUN      \] (\S+)$")
GTEST_END = re.compile(r"\[(       OK |  FAILED  |  SKIPPED )\] ([^\s,]+)(?:, where .*)? \((\d+) ms\)$")
TAP_CASE = re.compile(r"^(?P<indent> *)(?P<not>not )?ok +(?P<number>\d+)\b(?: +-)? *(?P<name>[^#]*?) *"
                      r"(?:# *(?P<directive>[A-Za-z]+):?\b *(?P<reason>.*))?$")
TAP_PLAN = re.compile(r"^ *1\.\.(\d+)(?: *# *SKIP *(.*))?$", re.IGNORECASE)


@dataclass
class Result:
    """The end of one case. `notes` are the lines that the program printed during it."""

    name: str
    outcome: str
    reason: str = ""
    notes: list[str] = field(default_factory=list)
    # Since the result before it.
    seconds: float = 0.0


# Name of the Result that says that a whole program was skipped.
WHOLE_PROGRAM = ""


def read_gtest(lines: Iterable[str]) -> Iterator[Result]:
    """Results of a GoogleTest program. A case that begins and does not end has failed; the end of
    another one is what a case prints of a GoogleTest program that it runs itself."""
    running = ""
    notes: deque[str] = deque(maxlen=KEPT_NOTES)
    for line in lines:
        begin, end = GTEST_BEGIN.search(line), GTEST_END.search(line)
        if begin:
            if running:
                yield Result(running, FAILED, "the program ended during this case", list(notes))
            running = begin.group(1)
            notes.clear()
        elif end and end.group(2) == running:
            outcome = {"OK": PASSED, "FAILED": FAILED, "SKIPPED": SKIPPED}[end.group(1).strip()]
            reason = notes[-1].strip() if outcome == SKIPPED and notes else ""
            yield Result(running, outcome, reason, list(notes) if outcome == FAILED else [])
            running = ""
            notes.clear()
        else:
            notes.append(line)
    if running:
        yield Result(running, FAILED, "the program ended during this case", list(notes))


def read_tap(lines: Iterable[str]) -> Iterator[Result]:
    """Results of a kselftest program, of KUnit's results file, or of any other (K)TAP.

    Nested results (KUnit's parameters, and cases of a suite) are indented: the result of
    a case stands behind those of its parameters and decides. The least indented result
    of KUnit's file is the suite's own; it has the name of the suite and is reported too.
    """
    notes: deque[str] = deque(maxlen=KEPT_NOTES)
    for line in lines:
        plan, case = TAP_PLAN.match(line), TAP_CASE.match(line)
        if plan:
            if plan.group(1) == "0":
                yield Result(WHOLE_PROGRAM, SKIPPED, (plan.group(2) or "it has no cases").strip())
        elif case:
            directive = (case["directive"] or "").upper()
            outcome = FAILED if case["not"] else PASSED
            reason = (case["reason"] or "").strip()
            if directive == "SKIP" and not case["not"]:
                outcome = SKIPPED
            yield Result(case["name"].strip(), outcome, reason, list(notes) if outcome == FAILED else [])
            notes.clear()
        else:
            notes.append(line)


READERS = {"gtest": read_gtest, "tap": read_tap}


def list_gtest(text: str) -> list[str]:
    """Full names of the cases in what --gtest_list_tests prints."""
    suite, names = "", []
    for line in text.splitlines():
        word = line.split("#")[0].rstrip()
        if word.startswith("  ") and suite:
            names.append(suite + word.strip())
        elif word.endswith(".") and not word.startswith(" "):
            suite = word
    return names


# Widths of the columns that kselftest_harness.h prints for -l.
FIXTURE_WIDTH, VARIANT_WIDTH = 20, 25


def list_kselftest(text: str) -> list[str]:
    """Names of the cases in what the kernel's kselftest_harness.h prints for -l.

    The harness prints a block for each fixture, its variants and its tests side by side;
    each variant runs all tests.
    """
    names: list[str] = []
    fixture, variants, tests = "", [], []

    def finish() -> None:
        for variant in variants or [""]:
            names.extend(".".join(filter(None, (fixture, variant, test))) for test in tests)

    for line in text.splitlines():
        if line.startswith("# FIXTURE") or line.startswith("-----"):
            finish()
            fixture, variants, tests = "", [], []
            continue
        columns = _columns(line)
        if columns is None:
            continue
        fixture = columns[0] or fixture
        if columns[1]:
            variants.append(columns[1])
        if columns[2]:
            tests.append(columns[2])
    finish()
    return names


def _columns(line: str) -> tuple[str, str, str] | None:
    """The three columns of a line of -l; a word that is too long pushes those behind it."""
    words, at = [], 0
    for width in (FIXTURE_WIDTH, VARIANT_WIDTH):
        word = "" if line[at:at + 1] in ("", " ") else line[at:].split(" ", 1)[0]
        words.append(word)
        at += max(width, len(word)) + 1
    words.append(line[at:].strip())
    return tuple(words) if any(words) else None


KUNIT_CASE = re.compile(r"^\s*KUNIT_CASE\w*\(\s*(\w+)", re.MULTILINE)
KUNIT_SUITE = re.compile(r'\.name\s*=\s*"(\w+)"[^}]*?\.test_cases\s*=\s*(\w+)', re.DOTALL)
KUNIT_ARRAY = r"struct kunit_case {}\[\]\s*=\s*\{{(.*?)\n\}};"


def list_kunit(source: str) -> dict[str, list[str]]:
    """Suites of a KUnit source file, each with the names of its cases."""
    suites = {}
    for name, array in KUNIT_SUITE.findall(source):
        body = re.search(KUNIT_ARRAY.format(array), source, re.DOTALL)
        suites[name] = KUNIT_CASE.findall(body.group(1)) if body else []
    return suites
