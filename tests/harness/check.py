# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""Chooses the tests that a change can break: `make check`.

The change is the work tree against a base: the last commit whose whole `make test` passed
here, or the commit that BASE names. Each changed file selects the tests of the first row
of [[affects]] in plan.toml whose pattern it matches. What the selected tests leave out is
said, for a green check is not a green `make test`.
"""
from __future__ import annotations

import fnmatch
import subprocess
import tomllib
from dataclasses import dataclass, field

from . import paths

PASSED = paths.TEST / "passed-commit"


@dataclass
class Selection:
    """What is to run, and why."""

    base: str
    tests: list[str] = field(default_factory=list)
    reasons: dict[str, list[str]] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)

    def explain(self) -> str:
        """For people: which file selects what, and what does not run."""
        if not self.reasons:
            return f"check: no file differs from {self.base}; nothing to run"
        lines = [f"check: the change against {self.base} can break:"]
        lines += [f"  {' '.join(tests)}: {', '.join(files[:6])}"
                  + (f" and {len(files) - 6} more" if len(files) > 6 else "")
                  for tests, files in self._by_tests()]
        lines.append(f"check: left out: {', '.join(self.left_out) or 'nothing'} (make test runs all)")
        return "\n".join(lines)

    def _by_tests(self) -> list[tuple[list[str], list[str]]]:
        groups: dict[tuple[str, ...], list[str]] = {}
        for file, tests in self.reasons.items():
            groups.setdefault(tuple(tests), []).append(file)
        return [(list(tests), files) for tests, files in groups.items()]


def _git(*words: str) -> str:
    return subprocess.run(["git", "-c", f"safe.directory={paths.ROOT}", *words], cwd=paths.ROOT, check=True,
                          capture_output=True, text=True).stdout


def default_base() -> str:
    """The last commit that passed here; without one, the parent of the last commit."""
    if PASSED.exists():
        commit = PASSED.read_text().strip()
        if subprocess.run(["git", "cat-file", "-e", commit], cwd=paths.ROOT, check=False,
                          capture_output=True).returncode == 0:
            return commit
    return "HEAD~1"


def changed_files(base: str) -> list[str]:
    """Files that differ from the base, and new ones that git does not ignore."""
    files = _git("diff", "--name-only", "--no-renames", base).splitlines()
    files += _git("ls-files", "--others", "--exclude-standard").splitlines()
    return sorted(set(files))


def select(base: str, files: list[str] | None = None, rows: list[dict] | None = None) -> Selection:
    """The tests for the change against `base` (empty: the default). A base that git does
    not know is a ValueError."""
    base = base or default_base()
    if files is None:
        try:
            files = changed_files(base)
        except subprocess.CalledProcessError as error:
            raise ValueError(f"BASE: git knows no commit '{base}'") from error
    data = tomllib.loads(paths.PLAN.read_text()) if rows is None else {"affects": rows}
    found = Selection(base)
    for file in files:
        row = next((row for row in data["affects"] if any(fnmatch.fnmatch(file, each) for each in row["files"])), None)
        tests = row["tests"] if row else ["lint", "python"]
        found.reasons[file] = tests
        found.tests += [test for test in tests if test not in found.tests]
    known = {test for row in data["affects"] for test in row["tests"]}
    found.left_out = sorted(known - set(found.tests)) + ["what runs in make test-all only"]
    return found


def clean_commit() -> str:
    """The commit that the work tree is just; empty if it differs or git does not say."""
    try:
        return "" if _git("status", "--porcelain").strip() else _git("rev-parse", "HEAD").strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def remember_pass(commit: str) -> None:
    """Keeps the commit whose whole `make test` has passed."""
    PASSED.write_text(commit + "\n")
