# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""Follows recipes of CONTRIBUTING.md: what they promise to be found is found, and what they let build passes its tests."""
from __future__ import annotations

import os
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

CONTRIBUTING = (paths.ROOT / "CONTRIBUTING.md").read_text()
# Recipes that are longer than a short list: each with the patch that follows it.
LONG_RECIPES = {"image-field": "Add a field to the plugin's image",
                "record-member": "Add a member to a record of the extensible ABI"}
# What the virtual machine runs to show that a member of a record is in images and restored.
IMAGE_TESTS = ("kfd_criu_image", "objects", "refuse", "v2", "old_images")
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


def files_of(patch: Path) -> list[str]:
    """The files that a patch changes."""
    return re.findall(r"^\+\+\+ b/(\S+)", patch.read_text(), re.MULTILINE)


def patch_of(recipe: str) -> Path:
    """The patch that follows a recipe."""
    return paths.ROOT / "tests/recipes" / f"{recipe}.patch"


@pytest.mark.parametrize("recipe", LONG_RECIPES)
def test_a_long_recipe_names_every_file_that_it_changes(recipe: str) -> None:
    text = CONTRIBUTING.split(f"## {LONG_RECIPES[recipe]}\n")[1].split("\n## ")[0]
    named = {Path(name).name for name in re.findall(r"`([\w./-]+)`", text)}
    assert {Path(file).name for file in files_of(patch_of(recipe))} <= named


@pytest.mark.parametrize("recipe", LONG_RECIPES)
def test_the_patch_of_a_long_recipe_applies(recipe: str) -> None:
    done = subprocess.run(["git", "apply", "--check", patch_of(recipe)], cwd=paths.ROOT, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


class Followed:
    """A copy of the sources to which the patch of a recipe is applied, with an output folder of its own."""

    def __init__(self, recipe: str) -> None:
        self.root = paths.OUT / "recipes" / recipe
        shutil.rmtree(self.root, ignore_errors=True)
        files = subprocess.run(["git", "ls-files", "-z"], cwd=paths.ROOT, check=True, capture_output=True, text=True).stdout
        for name in filter(None, files.split("\0")):
            # A file that the work tree has deleted is still in the index.
            if not os.path.lexists(paths.ROOT / name):
                continue
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(paths.ROOT / name, self.root / name, follow_symlinks=False)
        # The folder of git ends the search for a repository, so that paths of the patch are those of the copy.
        subprocess.run(["git", "init", "-q", self.root], check=True)
        subprocess.run(["git", "apply", patch_of(recipe)], cwd=self.root, check=True)

    def __call__(self, *words: str | Path) -> subprocess.CompletedProcess[str]:
        done = subprocess.run([str(word) for word in words], cwd=self.root, check=False, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, env={**os.environ, "OUT_DIR": str(self.root / "out")})
        assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
        return done


@pytest.fixture(name="followed")
def copy_that_follows_the_recipe(request: pytest.FixtureRequest):
    """The copy that follows the recipe in the test's parameter; gone after the test."""
    copy = Followed(request.param)
    yield copy
    shutil.rmtree(copy.root, ignore_errors=True)


@pytest.mark.heavy
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("followed", ["image-field"], indirect=True)
def test_a_field_of_the_image_that_follows_the_recipe_passes_its_tests(followed: Followed) -> None:
    followed("scripts/build.sh", "release", "plugin_test")
    program = followed.root / "out/cmake/release/userspace/plugin/plugin_test"
    done = followed(program, "--gtest_filter=ImageTest.*:*Validate*:Damage*:Version1*")
    assert re.search(r"OK \] ImageTest.the_example_is_read_back", done.stdout)


@pytest.mark.heavy
@pytest.mark.tier("guest")
@pytest.mark.timeout(5400)
@pytest.mark.parametrize("followed", ["record-member"], indirect=True)
def test_a_member_of_a_record_that_follows_the_recipe_passes_its_tests(followed: Followed) -> None:
    out = followed.root / "out"
    (out / "kernel").mkdir(parents=True)
    # The objects of the kernel without the member are where the build begins.
    for name in ("pristine", "pristine.stamp"):
        (out / "kernel" / name).symlink_to(paths.OUT / "kernel" / name)
    (out / "kernel/before").symlink_to(paths.OUT / "kernel/criu")
    (out / "cmake").mkdir()
    (out / "cmake/release").symlink_to(paths.OUT / "cmake/release")
    followed("/usr/bin/python3", "scripts/uapi_layout_test.py")
    followed("scripts/kernel.sh", "build", "criu")
    followed("scripts/kernel.sh", "selftests", "criu")
    done = followed("scripts/test.py", "--no-build", *(f"tests/plan.toml::gfx906::{name}" for name in IMAGE_TESTS))
    assert re.search(r"^\d+ passed, 0 failed", done.stdout, re.MULTILINE)
