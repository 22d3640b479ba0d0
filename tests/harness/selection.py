# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""Refuses what selects no test: options that pytest does not have, and names that no test has.

check_before_builds() finds what no build can make right, from the sources alone: a build takes long, and one that is old
may lack a test that the sources have. check() asks pytest. A refusal is a ValueError with one line that names what there is.
"""
from __future__ import annotations

import difflib
import re
import subprocess
from pathlib import Path

from . import paths

# pytest's own statuses.
USAGE_ERROR, NOTHING_SELECTED = 4, 5
# A file of tests that collects fast.
SMALL_TESTS = "scripts/check_steps_test.py"
NAMES_SHOWN = 4


def check_before_builds(ids: list[str], options: list[str]) -> None:
    """Refuses options of pytest that are wrong, and words that occur nowhere in the sources."""
    if options:
        status, _, error = _collect([*options, SMALL_TESTS])
        if status == USAGE_ERROR:
            raise ValueError(f"pytest: {error}")
    for each in ids:
        # Values in brackets may be made by a program.
        case = each.partition("::")[2].partition("[")[0]
        if not _is_in_sources(case):
            raise ValueError(f"no test '{each}'{_nearest(each, [])}")
    expression = _expression(options)
    if expression and not _may_select(expression):
        raise ValueError(_nothing(expression, []))


def check(ids: list[str], options: list[str], arguments: list[str]) -> None:
    """Refuses IDs and options with which pytest selects no test. `arguments` are the options of conftest.py."""
    status, _, error = _collect([*options, *arguments, *ids])
    missing = re.fullmatch(r"not found: (.*)", error)
    if status == USAGE_ERROR and missing:
        raise ValueError(f"no test '{missing[1]}'{_nearest(missing[1], arguments)}")
    if status == USAGE_ERROR:
        raise ValueError(f"pytest: {error}")
    if status == NOTHING_SELECTED:
        raise ValueError(_nothing(_expression(options), arguments))


def _nothing(expression: str, arguments: list[str]) -> str:
    words = [word for word in re.findall(r"[^()\s]+", expression) if word not in ("and", "or", "not")]
    return f"no test is selected{f' by -k {expression!r}' if words else ''}{_nearest(' '.join(words), arguments)}"


def _collect(arguments: list[str]) -> tuple[int, list[str], str]:
    """Lets pytest list tests. Returns its status, the IDs, and its first error."""
    done = subprocess.run([paths.PYTHON, "-B", "-m", "pytest", "--collect-only", "-q", *arguments], cwd=paths.ROOT,
                          check=False, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    errors = re.findall(r"^\S+: error: (.*)", done.stderr, re.M) or re.findall(r"^ERROR: (.*)", done.stderr, re.M)
    error = errors[0].replace(f"{paths.ROOT}/", "") if errors else ""
    return done.returncode, [line for line in done.stdout.splitlines() if "::" in line], error


def _nearest(wanted: str, arguments: list[str]) -> str:
    """The rest of a line about tests that there are not: the nearest names, or else where there are tests."""
    ids = _collect(arguments)[1]
    if "::" in wanted:
        near = difflib.get_close_matches(wanted, _siblings(wanted, ids), NAMES_SHOWN)
    else:
        words = {word for each in ids for name in re.findall(r"\w+", each.lower()) for word in (name, *name.split("_"))}
        near = [word for each in wanted.lower().split() for word in difflib.get_close_matches(each, words, NAMES_SHOWN)]
    if near:
        return f"; the nearest names are {' '.join(near)}"
    files = sorted({each.split("::")[0] for each in ids})
    names = [Path(file).stem.removeprefix("test_") for file in files if file.startswith("tests/test_")]
    folders = {str(Path(file).parent) if file.endswith("_test.py") else file for file in files}
    others = sorted(each for each in folders if not each.startswith("tests/test_"))
    return f"; there are tests in tests/test_{{{','.join(names)}}}.py {' '.join(others)}"


def _siblings(wanted: str, ids: list[str]) -> list[str]:
    """The IDs that begin with the most parts of the one that is wanted."""
    parts = wanted.split("::")
    for count in range(len(parts) - 1, 0, -1):
        found = [each for each in ids if each.startswith("::".join(parts[:count]) + "::")]
        if found:
            return found
    return []


def _expression(options: list[str]) -> str:
    """The expression of -k; empty if there is none."""
    for option, value in zip(options, [*options[1:], ""]):
        if option == "-k":
            return value
        if option.startswith("-k"):
            return option.removeprefix("-k").removeprefix("=")
    return ""


def _may_select(expression: str) -> bool:
    """Whether an expression of -k may be true of a test that the sources have. Expressions with "not" are not judged."""
    words = re.findall(r"[^()\s]+", expression)
    if "not" in words:
        return True
    known = [_is_in_sources(word) for word in words if word not in ("and", "or")]
    return any(known) if "or" in words else all(known)


def _is_in_sources(name: str) -> bool:
    """Whether each part of a name occurs in a source or in the name of one: programs put names of cases together from
    parts. False is certain; True is not. Without git's list of the sources it is True."""
    return all(_occurs(part) for part in dict.fromkeys(re.findall(r"[A-Za-z]+", name.lower())))


def _occurs(part: str) -> bool:
    git = ["git", "-c", f"safe.directory={paths.ROOT}"]
    found = subprocess.run([*git, "grep", "--untracked", "-qiF", "-e", part], cwd=paths.ROOT, check=False,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    if found.returncode != 1:
        return True
    names = subprocess.run([*git, "ls-files", "--cached", "--others", "--exclude-standard"], cwd=paths.ROOT, check=False,
                           capture_output=True, text=True)
    return names.returncode != 0 or part in names.stdout.lower()
