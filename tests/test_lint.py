# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""Each check of scripts/lint.sh is a case."""
from __future__ import annotations

import subprocess

import pytest
from harness import paths

LINT = paths.SCRIPTS / "lint.sh"


def _checks() -> list[str]:
    return subprocess.run([LINT, "--list"], check=True, capture_output=True, text=True).stdout.split()


@pytest.mark.parametrize("check", _checks())
def test_the_sources_pass(check: str) -> None:
    done = subprocess.run([LINT, check], check=False, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        pytest.fail(done.stdout + done.stderr, pytrace=False)
