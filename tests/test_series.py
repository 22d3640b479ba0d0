# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""The patch series: rules, export and import, other configurations, warnings."""
from __future__ import annotations

import subprocess

import pytest
from harness import paths

# One after the other: kernel.sh locks the kernels' folder.
pytestmark = pytest.mark.group("series", seconds=100)


def run(*argv: str) -> None:
    """A command of the project that has to succeed."""
    done = subprocess.run(argv, cwd=paths.ROOT, check=False, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace")
    if done.returncode != 0:
        pytest.fail(f"status {done.returncode}\n" + "\n".join(done.stdout.splitlines()[-60:]), pytrace=False)


def test_the_series_follow_their_rules() -> None:
    run("scripts/series.py", "check")


def test_the_configuration_of_the_distribution_takes_our_options() -> None:
    run("scripts/kernel.sh", "deb", "--config-only")


def test_the_series_compile_as_the_distribution_does_and_warn_of_nothing() -> None:
    run("scripts/kernel.sh", "check")


def test_export_and_import_give_the_same_tree() -> None:
    folder = paths.TEST / "export"
    subprocess.run(["rm", "-rf", "--", folder], check=True)
    run("scripts/series.py", "export", str(folder), "--verify")
