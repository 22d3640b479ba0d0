#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""Reports how much of the driver's code for checkpoint and restore its tests execute.

usage: coverage.py [MACHINE...]            run the tests (group "coverage" of tests/plan.toml), all of
                                           them without a MACHINE (coverage-gfx906, ...), and report
       coverage.py --write                 report again from the counts of the last run

Prints lines and branches of each kfd_criu*.c; lists those that did not run in
out/coverage/coverage.txt and coverage.html. Counts of machines that are not named are kept,
so some machines can run again. Status 1 below LINES_PERCENT of the lines or BRANCHES_PERCENT
of the branches, and when a test failed.
"""
from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from harness import paths  # noqa: E402  # pylint: disable=wrong-import-position
from harness.plan import Plan  # noqa: E402  # pylint: disable=wrong-import-position

LINES_PERCENT, BRANCHES_PERCENT = 90, 80
SOURCES = paths.kernel("criu-coverage") / "src"
DRIVER = "drivers/gpu/drm/amd/amdkfd"
FOLDER = paths.OUT / "coverage"


class CoverageError(Exception):
    """Input of the report is missing. The text is for the user."""


def gcovr(*arguments: str) -> str:
    """Runs gcovr on the kernel's sources; returns its output."""
    done = subprocess.run(["gcovr", "--root", SOURCES, *arguments], cwd=SOURCES, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        raise CoverageError(f"gcovr failed: {done.stderr.strip().splitlines()[-1:]}")
    return done.stdout


def merge() -> None:
    """Adds up the counts of all machines: FOLDER/counted.json, summary.json and coverage.html."""
    tracefiles = []
    for folder in sorted(path for path in FOLDER.iterdir() if path.is_dir()):
        if not list(folder.glob("kfd_criu*.gcda")):
            raise CoverageError(f"{folder} has no gcov counts: the machine did not copy them")
        # The compiler wrote the descriptions of branches into the folder of the objects.
        for notes in (SOURCES / DRIVER).glob("kfd_criu*.gcno"):
            shutil.copy(notes, folder)
        trace = folder.with_suffix(".json")
        gcovr("--filter", f"{DRIVER}/kfd_criu", "--exclude", r".*_test\.c", "--exclude", r".*\.h", "--json", str(trace),
              str(folder))
        tracefiles += ["--add-tracefile", str(trace)]
    if not tracefiles:
        raise CoverageError(f"{FOLDER} has no gcov counts: run coverage.py without --write first")
    gcovr(*tracefiles, "--json", str(FOLDER / "counted.json"), "--json-summary", str(FOLDER / "summary.json"),
          "--html-details", str(FOLDER / "coverage.html"), "--html-self-contained")


def table(summary: dict) -> str:
    """Returns a table of lines and branches of each file, and of all files."""
    rows = [(Path(row["filename"]).name, row) for row in summary["files"]] + [("total", summary)]
    return "\n".join(
        f"{name:<24} lines {row['line_covered']:5} of {row['line_total']:5} {row['line_percent'] or 0:5.1f} %   "
        f"branches {row['branch_covered']:5} of {row['branch_total']:5} {row['branch_percent'] or 0:5.1f} %"
        for name, row in rows)


def report() -> int:
    """Writes coverage.txt and prints the table; returns 1 if a limit is not reached."""
    merge()
    summary = json.loads((FOLDER / "summary.json").read_text())
    counted = ["--add-tracefile", str(FOLDER / "counted.json")]
    (FOLDER / "coverage.txt").write_text("\n".join([
        table(summary), "", "Lines and branches that did not run:", gcovr(*counted, "--txt"),
        gcovr(*counted, "--txt", "--branches")]))
    print(table(summary))
    print(f"coverage.py: lines that did not run: {FOLDER / 'coverage.txt'}, coverage.html", file=sys.stderr)
    enough = summary["line_percent"] >= LINES_PERCENT and summary["branch_percent"] >= BRANCHES_PERCENT
    if not enough:
        machines = ", ".join(sorted(path.name for path in FOLDER.iterdir() if path.is_dir()))
        print(f"coverage.py: error: less than {LINES_PERCENT} % of the lines or {BRANCHES_PERCENT} % of the branches "
              f"ran in {machines}", file=sys.stderr)
    return 0 if enough else 1


def run(asked: list[str]) -> int:
    """Runs the machines; returns the status of test.py."""
    ids = [f"tests/plan.toml::{name}" for name in asked]
    if not asked:
        shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True, exist_ok=True)
    return subprocess.run([paths.SCRIPTS / "test.py", "--groups", "coverage", *(ids or ["tests/plan.toml"])],
                          check=False).returncode


def main(arguments: list[str]) -> int:
    if arguments in (["-h"], ["--help"]):
        print(__doc__.strip())
        return 0
    status = 0
    if arguments != ["--write"]:
        # vasicd lists the chips, which the names of the machines contain.
        subprocess.run([paths.SCRIPTS / "build.sh", "release", "vasicd"], check=True, stdout=subprocess.DEVNULL)
        names = [machine.name for machine in Plan(paths.PLAN, {"coverage"}, set(), False).machines()]
        for name in arguments:
            if name not in names:
                print(f"coverage.py: error: no machine '{name}'; there are {' '.join(names)}", file=sys.stderr)
                return 64
        status = run(arguments)
    try:
        return report() or min(status, 1)
    except (CoverageError, FileNotFoundError) as error:
        print(f"coverage.py: error: {error}", file=sys.stderr)
        return 125


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
