# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""Each check of scripts/lint.sh is a case; and the project has little shell."""
from __future__ import annotations

import re
import subprocess

import pytest
from harness import paths

LINT = paths.SCRIPTS / "lint.sh"
# Lines of all shell scripts: decisions and data belong to Python.
SHELL_LINES = 3000


def _checks() -> list[str]:
    return subprocess.run([LINT, "--list"], check=True, capture_output=True, text=True).stdout.split()


@pytest.mark.parametrize("check", _checks())
def test_the_sources_pass(check: str) -> None:
    done = subprocess.run([LINT, check], check=False, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        pytest.fail(done.stdout + done.stderr, pytrace=False)


def shell_scripts() -> dict[str, int]:
    """The lines of each file with a shell in its first line, or a name in .sh."""
    names = subprocess.run(["git", "-c", f"safe.directory={paths.ROOT}", "ls-files", "-z", "--cached", "--others",
                            "--exclude-standard"], cwd=paths.ROOT, check=True, capture_output=True, text=True).stdout
    found = {}
    for name in filter(None, names.split("\0")):
        path = paths.ROOT / name
        if path.is_file() and not path.is_symlink():
            data = path.read_bytes()
            if name.endswith(".sh") or re.match(rb"#!.*sh( |\n)", data):
                found[name] = data.count(b"\n")
    return found


def test_the_shell_scripts_are_few_lines() -> None:
    found = shell_scripts()
    assert {"scripts/lib.sh", ".ci/run", "packaging/debian/postinst"} <= set(found)
    if sum(found.values()) > SHELL_LINES:
        largest = sorted(found, key=lambda name: -found[name])[:6]
        pytest.fail(f"{sum(found.values())} lines of shell, {SHELL_LINES} at most; write one of these in Python: "
                    + ", ".join(f"{name} ({found[name]})" for name in largest), pytrace=False)
