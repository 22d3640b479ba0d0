# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""Tables in documents that a program prints are what it prints."""
from __future__ import annotations

import subprocess

import pytest
from harness import paths

pytestmark = pytest.mark.tier("unit")


def test_the_coverage_of_gfx9_is_written_down() -> None:
    program = paths.built("release") / "gcn" / "gcn_coverage"
    printed = subprocess.run([program, "--summary"], check=True, capture_output=True, text=True).stdout
    text = (paths.ROOT / "userspace/gcn/README.md").read_text()
    begin, end = "<!-- coverage -->\n", "<!-- /coverage -->\n"
    written = text[text.index(begin):text.index(end) + len(end)]
    assert written == printed, f"userspace/gcn/README.md is old: put there what {program} --summary prints"
