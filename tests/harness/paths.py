# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""Where things are: the project, what was built, what a run of the tests leaves."""
from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = ROOT / "scripts"
OUT = Path(os.environ.get("OUT_DIR") or ROOT / "out").absolute()
# What a run of the tests leaves for people and for the next run.
TEST = OUT / "test"
PLAN = ROOT / "tests" / "plan.toml"
# Debian's Python, for which Debian's package of pytest is installed; PATH may find another one first.
PYTHON = "/usr/bin/python3"


def built(preset: str) -> Path:
    """The folder with the C++ parts that scripts/build.sh made of this preset."""
    return OUT / "cmake" / preset / "userspace"


def kernel(variant: str) -> Path:
    """The folder of a kernel that scripts/kernel.sh made: bzImage, modules/, selftests/."""
    return OUT / "kernel" / variant


def selftests(variant: str) -> Path:
    """The folder of the installed kselftests of the series."""
    return kernel(variant) / "selftests"
