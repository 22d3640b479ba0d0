# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""Images of CRIU's own amdgpu plugin, restored by the plugin of this project.

A machine with the stock kernel dumps a program with CRIU's own plugin, as Debian's source has it
(scripts/upstream_plugin.py builds it); a machine with the kernel of the series and other GPUs
restores it with ours and the same CRIU. CHIP: the chip, gfx906 unless said.
"""
from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Iterator

import pytest
from harness import chip, paths, plan
from harness.steps import EXIT_INFRA, TIMED_OUT, StepMachine, fail, need_built, once

# The build of CRIU needs packages that only `setup.sh upstream` installs.
pytestmark = [pytest.mark.heavy, pytest.mark.tier("e2e")]

OURS = paths.built("release") / "plugin"
PROGRAM = paths.built("release") / "kfdtest-criu" / "demo_program"
ARGUMENTS = ("--gpus", "2")
RELEASES = ("trixie", "sid")
MEM, VM_LIMIT_S, BUILD_LIMIT_S = "1G", 900, 900
NOTICE = "made by CRIU's own amdgpu plugin"


def upstream(release: str) -> Path:
    """The folder with CRIU and its plugin of this release of Debian."""
    for command in (["setup.sh", "upstream"], ["upstream_plugin.py", release]):
        done = subprocess.run([str(paths.SCRIPTS / command[0]), *command[1:]], cwd=paths.ROOT, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=BUILD_LIMIT_S,
                              check=False)
        if done.returncode != 0:
            fail(f"scripts/{' '.join(command)}: status {done.returncode}\n{done.stdout[-2000:]}")
    return paths.OUT / "upstream" / release


class Machine(StepMachine):
    """A machine with two GPUs in which the CRIU of a release of Debian runs with the given plugin."""

    def __init__(self, name: str, run: Path, kernel: str, release: str, plugin: Path, *gpus: str) -> None:
        need_built(kernel, "plugin/amdgpu_plugin.so", "kfdtest-criu/demo_program")
        try:
            chosen = chip.chosen()
        except plan.PlanError as error:
            fail(str(error))
        criu = upstream(release)
        options = ["--kernel", kernel, "--mem", MEM, "--share", str(run)]
        options += [word for gpu in gpus for word in ("--gpu", f"{chosen},{gpu}")]
        # The guest's scripts call the criu that is first in PATH.
        command = ["env", f"PATH={criu}:/usr/sbin:/usr/bin:/sbin:/bin", str(paths.SCRIPTS / "guest/checkpoint.sh"),
                   str(run), str(plugin)]
        super().__init__(name, options, command, VM_LIMIT_S)
        self.run, self.release = run, release

    def refuses(self, *words: str) -> None:
        """The step has to fail, by itself."""
        status, text = self.attempt(*words)
        if status in (0, TIMED_OUT, EXIT_INFRA):
            fail(f"the step '{' '.join(words)}' should have failed; its status is {status}\n{text}")


class Theirs(Machine):
    """Where CRIU's own plugin dumps."""

    def __init__(self, run: Path, release: str) -> None:
        super().__init__(f"upstream-dump-{release}", run, "stock", release, paths.OUT / "upstream" / release / "plugin",
                         "vram=128M,slot=16", "vram=64M,slot=17")

    @once("the result of an undisturbed run")
    def undisturbed(self) -> str:
        return self.step("undisturbed", "reference", str(PROGRAM), *ARGUMENTS)

    @once("the images of CRIU's own plugin")
    def images(self) -> None:
        self.step("start", "program", str(PROGRAM), *ARGUMENTS)
        self.step("dump", "program", "images")

    @once("an image with pages that are too short")
    def truncated(self) -> None:
        self.images()
        folder = self.run / "damaged-truncated"
        folder.mkdir()
        largest = max((self.run / "images").glob("amdgpu-pages-*-*.img"), key=lambda path: path.stat().st_size)
        (folder / largest.name).write_bytes(largest.read_bytes()[:-1])


class Ours(Machine):
    """Where our plugin restores: the same GPUs, the other way round and in other slots."""

    def __init__(self, theirs: Theirs) -> None:
        super().__init__(f"upstream-restore-{theirs.release}", theirs.run, "criu", theirs.release, OURS,
                         "vram=64M,slot=18", "vram=128M,slot=20")
        self.theirs = theirs

    @once("a refused restore")
    def refused(self) -> bool:
        """Whether a process was left; asked at once, because a later restore makes it again."""
        self.theirs.truncated()
        self.refuses("restore", "sdma", "truncated.restore.log", "damaged-truncated")
        return self.attempt("is-gone", "program")[0] != 0

    @once("the restored program")
    def restored(self) -> None:
        self.theirs.images()
        self.step("restore", "sdma", "restore.log")

    @once("the result of the restored program")
    def result(self) -> str:
        self.restored()
        return self.step("continue", "program")

    def log(self, name: str) -> str:
        return (self.run / name).read_text(errors="replace")


@pytest.fixture(name="theirs", scope="module", params=[
    pytest.param(release, marks=pytest.mark.group(f"upstream-{release}", seconds=120)) for release in RELEASES])
def fixture_theirs(request: pytest.FixtureRequest) -> Iterator[Theirs]:
    run = paths.OUT / f"e2e-upstream-{request.param}"
    shutil.rmtree(run, ignore_errors=True)
    run.mkdir(parents=True)
    with Theirs(run, request.param) as machine:
        yield machine


@pytest.fixture(name="ours", scope="module")
def fixture_ours(theirs: Theirs) -> Iterator[Ours]:
    with Ours(theirs) as machine:
        yield machine


def test_an_undisturbed_run_has_a_result(theirs: Theirs) -> None:
    assert theirs.undisturbed()


def test_crius_own_plugin_dumps_the_program_on_the_stock_kernel(theirs: Theirs) -> None:
    theirs.images()


def test_the_images_are_those_of_crius_own_plugin_alone(theirs: Theirs) -> None:
    theirs.images()
    names = {path.name for path in (theirs.run / "images").glob("amdgpu-*")}
    assert len([name for name in names if name.startswith("amdgpu-kfd-")]) == 1
    assert len([name for name in names if name.startswith("amdgpu-renderD-")]) == 2
    assert not [name for name in names if "manifest" in name]


def test_the_dumping_machines_kernel_does_not_complain(theirs: Theirs) -> None:
    theirs.undisturbed()
    theirs.images()
    theirs.must_be_content()


def test_images_with_truncated_pages_are_refused(ours: Ours) -> None:
    ours.refused()


def test_the_refusal_says_why(ours: Ours) -> None:
    ours.refused()
    assert "truncated: has" in ours.log("truncated.restore.log")


def test_the_refusal_leaves_no_process(ours: Ours) -> None:
    assert not ours.refused()


def test_our_plugin_restores_the_images_on_other_gpus(ours: Ours) -> None:
    ours.restored()


def test_the_log_says_once_that_the_contents_have_no_checksum(ours: Ours) -> None:
    ours.restored()
    assert ours.log("restore.log").count(NOTICE) == 1


def test_the_restored_program_does_not_pass_its_closed_gate(ours: Ours) -> None:
    ours.restored()
    ours.step("stays-pending", "program")


def test_the_restored_programs_result_equals_the_undisturbed_one(theirs: Theirs, ours: Ours) -> None:
    assert ours.result() == theirs.undisturbed()


def test_the_restored_program_ends(ours: Ours) -> None:
    ours.result()
    ours.step("is-gone", "program", "10")


def test_the_restoring_machines_kernel_does_not_complain(ours: Ours) -> None:
    ours.restored()
    ours.must_be_content()
