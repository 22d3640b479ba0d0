# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""Follows recipes of CONTRIBUTING.md: what they promise to be found is found."""
from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from harness import paths, plan

sys.path.insert(0, str(paths.SCRIPTS))
import series_store  # noqa: E402  # pylint: disable=wrong-import-position

pytestmark = pytest.mark.tier("python")

FOLDER = Path("tools/testing/selftests/drivers/gpu/kfd_criu")
PROGRAM = """// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * A test that the recipe adds.
 *
 * Runs: once, small-bar
 */
"""
MACHINE = """
[[machine]]
name = "of-the-recipe"
gpus = ["gfx906"]
run = [{ program = "kunit" }]
"""


@pytest.fixture(name="root")
def copy_of_the_kernel_folder(tmp_path: Path) -> Path:
    """A copy of what the project adds to the kernel, in a git work tree of its own."""
    shutil.copytree(paths.ROOT / "kernel", tmp_path / "kernel", symlinks=True)
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    return tmp_path


def test_a_new_kselftest_is_one_file(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "kernel/amdkfd-criu/overlay" / FOLDER / "recipe.c").write_text(PROGRAM)

    series = series_store.read_series(root, "amdkfd-criu")
    owners = [patch.label for patch in series.patches if any(str(FOLDER / "recipe.c") in str(file) for file in patch.files)]
    assert len(owners) == 1 and "selftests" in owners[0]

    makefile = (root / "kernel/amdkfd-criu/overlay" / FOLDER / "Makefile").read_text()
    assert re.search(r"^TEST_GEN_PROGS := .*\$\(wildcard \*\.c\)", makefile, re.MULTILINE)

    monkeypatch.setattr(paths, "ROOT", root)
    plan.kselftest_attributes.cache_clear()
    try:
        assert plan.kselftest_attributes()["recipe"] == {"once", "small-bar"}
    finally:
        plan.kselftest_attributes.cache_clear()


def test_a_new_machine_is_one_table(tmp_path: Path) -> None:
    file = tmp_path / "plan.toml"
    file.write_text(paths.PLAN.read_text() + MACHINE)
    machines = plan.Plan(file, {"test"}, {"gfx906"}, False).machines()
    assert "of-the-recipe" in [machine.name for machine in machines]
