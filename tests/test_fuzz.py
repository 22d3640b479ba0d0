# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""Each fuzzer of userspace/fuzz: inputs that crashed it once, and a fixed number of others."""
from __future__ import annotations

import subprocess

import pytest
from harness import paths

TARGETS = sorted(path.name.removesuffix("_fuzz.cc") for path in (paths.ROOT / "userspace/fuzz").glob("*_fuzz.cc"))

pytestmark = pytest.mark.tier("unit")


@pytest.mark.parametrize("target", TARGETS)
def test_nothing_crashes(target: str) -> None:
    done = subprocess.run([paths.SCRIPTS / "fuzz.py", target], check=False, capture_output=True, text=True,
                          stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        pytest.fail(done.stdout + done.stderr, pytrace=False)
