# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""The patch series: rules, export and import, other configurations, warnings."""
from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

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
    run("scripts/series.py", "check", "--no-checkpatch")


@pytest.mark.costly
def test_checkpatch_finds_no_error_in_the_series() -> None:
    run("scripts/series.py", "check")


def test_the_configuration_of_the_distribution_takes_our_options() -> None:
    run("scripts/kernel.sh", "deb", "--config-only")


@pytest.mark.costly
def test_the_series_compile_as_the_distribution_does_and_warn_of_nothing() -> None:
    run("scripts/kernel.sh", "check")


def test_export_and_import_give_the_same_tree() -> None:
    folder = paths.TEST / "export"
    subprocess.run(["rm", "-rf", "--", folder], check=True)
    run("scripts/series.py", "export", str(folder), "--verify")


def test_the_layouts_of_drm_are_those_of_linux_7_3_and_equal_in_32_bit_programs(tmp_path: Path) -> None:
    run("scripts/drm_layout.py", str(paths.kernel("criu") / "src"))
    # A member that moves is noticed.
    headers = tmp_path / "include/uapi/drm"
    shutil.copytree(paths.kernel("criu") / "src/include/uapi/drm", headers)
    text = (headers / "drm.h").read_text()
    (headers / "drm.h").write_text(text.replace("struct drm_prime_handle_at {\n", "struct drm_prime_handle_at {\n\t__u64 more;\n"))
    done = subprocess.run(["scripts/drm_layout.py", str(tmp_path)], cwd=paths.ROOT, check=False, stdout=subprocess.PIPE, text=True)
    assert done.returncode == 1
    assert "i386-linux-gnu: offsetof(struct drm_prime_handle_at, fd) is 0x10, not 0x8" in done.stdout
