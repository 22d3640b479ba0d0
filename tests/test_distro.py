# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""Checkpoint and restore with the CRIU of other Debian releases, on their own roots: make test-distro.

For each root, one machine dumps and one with other GPUs restores; a third one has no GPU. The plugin and the test
programs are those of test_e2e.py, compiled on Debian 12. Images and CRIU's logs: out/distro.
"""
from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Iterator

import pytest
from harness import paths
from harness.field import PROGRAM as PROGRAM_OF_IOCTLS
from harness.field import EQUAL, SHARING, Case, Field, checkpoint_on_all_gpus, must_be, table
from harness.steps import EXIT_INFRA, TIMED_OUT, StepMachine, fail, fresh, need_built, once

RUN = paths.OUT / "distro"
PLUGINS = paths.built("release") / "plugin"
PROGRAM = paths.built("release") / "kfdtest-criu" / "demo_program"
ARGUMENTS = ("--gpus", "2", "--svm")
MEM, VM_LIMIT_S = "1G", 1800
SHARING_SLOT = 17
CHECKPOINT, DISTRO = (str(paths.SCRIPTS / "guest" / name) for name in ("checkpoint.sh", "distro.sh"))
PLUGIN_NAME = "amdgpu_plugin"
# Sizes of parts of CRIU's symbol cr_plugin_ctl: a list head, then one for each hook.
LIST_HEAD = 16
# A function of CRIU whose presence says that CRIU, not the plugin, owns the descriptor that UPDATE_VMA_MAP returns.
TAKES_DESCRIPTORS = "exec_rpc_query_external_files"


@dataclass(frozen=True)
class Root:
    """A root of scripts/root.py, and what its CRIU is like."""

    name: str
    # The beginning of its version.
    criu: str
    hooks: int
    # Programs for its HIP and HSA runtime.
    rocm: tuple[Case, ...]
    # Whether demo_program needs Debian 12's thunk, because the release has none with this interface.
    lacks_thunk: bool = False

    @property
    def folder(self) -> Path:
        """The root on this host."""
        return paths.OUT / "roots" / self.name

    @property
    def run(self) -> Path:
        """What its machines share with this host."""
        return RUN / self.name

    @property
    def env(self) -> tuple[str, ...]:
        """Variables that the test programs need."""
        return (f"LD_LIBRARY_PATH={RUN / 'thunk'}",) if self.lacks_thunk else ()


# Compiled with HIP 5.2, which has the library's name of 5.7 too; and one that loads the library, whatever its name is.
HIP = Case("a_hip_program", ("field_hip",), EQUAL, reference=("field_hip",))
HIP_VMM = Case("memory_mapped_by_hip", ("field_hip_vmm",), EQUAL, reference=("field_hip_vmm",))
HSA_VMM = Case("memory_mapped_by_the_hsa_runtime", ("field_hsa_vmm",), EQUAL, reference=("field_hsa_vmm",))
HIP_IPC = Case("an_event_that_hip_shares", ("field_hip_ipc",), EQUAL, reference=("field_hip_ipc",))
ROOTS = (Root("trixie", "4.1", 12, (HIP, HIP_IPC, HSA_VMM)),
         Root("sid", "4.2", 13, (HIP_VMM, HIP_IPC, HSA_VMM), lacks_thunk=True))


class Machine(StepMachine):
    """A machine with another root."""

    def __init__(self, root: Root, kind: str, *gpus: str) -> None:
        need_built("criu", "plugin/amdgpu_plugin.so", "kfdtest-criu/demo_program")
        if not (root.folder / "root.stamp").exists():
            fail(f"the root {root.name} is not there: scripts/root.py {root.name}")
        options = ["--root", root.name, "--kernel", "criu", "--mem", MEM, "--share", str(root.run)]
        options += [word for gpu in gpus for word in ("--gpu", f"gfx906,{gpu}")]
        options += [word for item in root.env for word in ("--env", item)]
        super().__init__(f"distro-{root.name}-{kind}", options, (), VM_LIMIT_S)
        self.root = root

    def checkpoint(self, *words: str) -> str:
        """A step of checkpoint.sh that has to succeed."""
        return self.step(CHECKPOINT, str(self.root.run), str(PLUGINS), *words)

    def distro(self, *words: str) -> str:
        """A step of distro.sh that has to succeed."""
        return self.step(DISTRO, str(self.root.run), *words)

    def refuses(self, *words: str) -> None:
        """The step has to fail, by itself."""
        status, text = self.attempt(*words)
        if status in (0, TIMED_OUT, EXIT_INFRA):
            fail(f"the step '{' '.join(words)}' should have failed; its status is {status}\n{text}")

    def has_logged(self, log: str, text: str) -> None:
        """CRIU's log has to say so."""
        path = self.root.run / log
        said = path.read_text(errors="replace") if path.exists() else ""
        if text not in said:
            fail(f"no '{text}' in {path}:\n" + "\n".join(said.splitlines()[-40:]))

    @once("a program without a GPU that was dumped and restored")
    def counted(self) -> None:
        self.checkpoint("counter", f"counter-{self.name}")

    def inventory(self, images: str) -> bytes:
        """The image in which CRIU 4.1 and later list the plugins that a restore needs."""
        return (self.root.run / images / "inventory.img").read_bytes()


class Dumping(Machine):
    """The machine in which the programs begin."""

    @once("the result of an undisturbed run")
    def undisturbed(self) -> str:
        return self.checkpoint("undisturbed", "reference", str(PROGRAM), *ARGUMENTS)

    @once("a dump that failed for lack of space")
    def failed_dump(self) -> None:
        self.checkpoint("start", "full", str(PROGRAM), *ARGUMENTS)
        self.refuses(CHECKPOINT, str(self.root.run), str(PLUGINS), "dump-without-space", "full")

    @once("the open files of the program")
    def descriptors(self) -> str:
        self.checkpoint("start", "program", str(PROGRAM), *ARGUMENTS)
        return self.distro("descriptors", "program")

    @once("the dumped images")
    def images(self) -> None:
        self.descriptors()
        self.checkpoint("dump", "program", "images")


class Restoring(Machine):
    """The machine in which the program continues: the same two GPUs in other slots and the other way round."""

    def __init__(self, root: Root, dumping: Dumping) -> None:
        super().__init__(root, "restore", "vram=256M,slot=18", "vram=512M,slot=20")
        self.dumping = dumping

    @once("a restore that CRIU refused because it has no plugin")
    def refused(self) -> bool:
        """Whether a process was left; asked at once, because a later restore makes it again."""
        self.dumping.images()
        self.refuses(DISTRO, str(self.root.run), "restore-without-plugin", "no-plugin.restore.log")
        return self.attempt(CHECKPOINT, str(self.root.run), str(PLUGINS), "is-gone", "program")[0] != 0

    @once("the restored program")
    def restored(self) -> None:
        self.dumping.images()
        self.checkpoint("restore", "sdma", "restore.log")
        self.checkpoint("is-running", "program")

    @once("the result of the restored program")
    def result(self) -> str:
        self.restored()
        return self.checkpoint("continue", "program")


def copy_thunk() -> None:
    """Debian 12's thunk, at a path that both machines have."""
    text = subprocess.run(["ldd", str(PROGRAM)], check=True, capture_output=True, text=True).stdout
    thunk = next(line.split()[2] for line in text.splitlines() if "libhsakmt" in line)
    (RUN / "thunk").mkdir(parents=True, exist_ok=True)
    shutil.copy(thunk, RUN / "thunk")


@pytest.fixture(name="root", scope="module", params=[
    pytest.param(root, id=root.name, marks=pytest.mark.group(f"distro-{root.name}", seconds=300)) for root in ROOTS])
def fixture_root(request: pytest.FixtureRequest) -> Root:
    root = request.param
    shutil.rmtree(root.run, ignore_errors=True)
    root.run.mkdir(parents=True)
    if root.lacks_thunk:
        copy_thunk()
    return root


@pytest.fixture(name="dumping", scope="module")
def fixture_dumping(root: Root) -> Iterator[Dumping]:
    with Dumping(root, "dump", "vram=512M,slot=16", "vram=256M,slot=17") as machine:
        yield machine


@pytest.fixture(name="restoring", scope="module")
def fixture_restoring(root: Root, dumping: Dumping) -> Iterator[Restoring]:
    with Restoring(root, dumping) as machine:
        yield machine


@pytest.fixture(name="plain", scope="module")
def fixture_plain(root: Root) -> Iterator[Machine]:
    with Machine(root, "plain") as machine:
        yield machine


@pytest.fixture(name="sharing", scope="module")
def fixture_sharing(root: Root) -> Iterator[Field]:
    name = f"distro-{root.name}-sharing"
    with Field(name, fresh(root.run / "sharing"), {SHARING_SLOT: "gfx906"}, "criu", PLUGINS, root=root.name,
               env=root.env) as machine:
        yield machine


def dynamic_symbols(program: Path) -> dict[str, int]:
    """Sizes of the symbols that a program exports, by name."""
    text = subprocess.run(["readelf", "--dyn-syms", "--wide", str(program)], check=True, capture_output=True,
                          text=True).stdout
    rows = [line.split() for line in text.splitlines()]
    return {row[7]: int(row[2], 0) for row in rows if len(row) == 8 and row[6].isdigit()}


# ---- CRIU as it is in the release ---------------------------------------------


def test_criu_has_the_hooks_that_the_plugin_counts(root: Root) -> None:
    symbols = dynamic_symbols(root.folder / "usr/sbin/criu")
    assert symbols["cr_plugin_ctl"] == LIST_HEAD * (1 + root.hooks)


def test_criu_owns_the_descriptors_of_mappings_and_has_an_inventory(root: Root) -> None:
    symbols = dynamic_symbols(root.folder / "usr/sbin/criu")
    assert {TAKES_DESCRIPTORS, "add_inventory_plugin", "check_and_remove_inventory_plugin"} <= set(symbols)


# ---- the machine that dumps --------------------------------------------------


def test_the_machine_has_the_releases_criu(dumping: Dumping) -> None:
    assert dumping.distro("criu-version").startswith(dumping.root.criu + ".")


def test_an_undisturbed_run_has_a_result(dumping: Dumping) -> None:
    assert dumping.undisturbed()


def test_a_dump_into_a_full_filesystem_fails(dumping: Dumping) -> None:
    dumping.failed_dump()
    dumping.has_logged("without-space.dump.log", "No space left")


def test_the_failed_dump_leaves_no_manifest(dumping: Dumping) -> None:
    dumping.failed_dump()
    dumping.checkpoint("has-no-manifest")


def test_the_program_continues_after_the_failed_dump_to_its_undisturbed_result(dumping: Dumping) -> None:
    expected = dumping.undisturbed()
    dumping.failed_dump()
    dumping.checkpoint("is-running", "full")
    assert dumping.checkpoint("continue", "full") == expected


def test_a_program_without_a_gpu_survives_dump_and_restore_beside_gpus(dumping: Dumping) -> None:
    dumping.counted()


def test_the_image_of_a_program_without_a_gpu_does_not_need_the_plugin(dumping: Dumping) -> None:
    dumping.counted()
    assert PLUGIN_NAME.encode() not in dumping.inventory(f"counter-{dumping.name}/images")


def test_a_program_with_pending_packets_on_two_gpus_is_dumped(dumping: Dumping) -> None:
    dumping.images()


def test_criu_has_loaded_the_plugin_with_all_of_its_hooks(dumping: Dumping) -> None:
    dumping.images()
    dumping.has_logged("images.dump.log", f'"{PLUGIN_NAME}" (version 512 hooks {dumping.root.hooks})')


def test_the_image_of_a_gpu_program_needs_the_plugin(dumping: Dumping) -> None:
    dumping.images()
    assert dumping.inventory("images").count(PLUGIN_NAME.encode()) == 1


def test_the_dumping_machines_kernel_does_not_complain(dumping: Dumping) -> None:
    # What tests of the other machines need of this one; afterwards it is off.
    dumping.undisturbed()
    dumping.images()
    dumping.must_be_content()


# ---- the machine that restores -----------------------------------------------


def test_criu_without_the_plugin_refuses_the_image(restoring: Restoring) -> None:
    restoring.refused()
    restoring.has_logged("no-plugin.restore.log", f"Missing required plugin: {PLUGIN_NAME}")


def test_the_refusal_leaves_no_process(restoring: Restoring) -> None:
    assert not restoring.refused()


def test_the_image_is_restored_on_other_gpus(restoring: Restoring) -> None:
    restoring.refused()  # the process of a restored program is there
    restoring.restored()


def test_the_restored_program_has_the_open_files_of_the_dumped_one(dumping: Dumping, restoring: Restoring) -> None:
    restoring.restored()
    assert restoring.distro("descriptors", "program") == dumping.descriptors()


def test_the_restored_programs_result_equals_the_undisturbed_one(dumping: Dumping, restoring: Restoring) -> None:
    assert restoring.result() == dumping.undisturbed()


def test_the_restored_program_ends(restoring: Restoring) -> None:
    restoring.result()
    restoring.checkpoint("is-gone", "program", "10")


def test_the_restoring_machines_kernel_does_not_complain(restoring: Restoring) -> None:
    restoring.restored()
    restoring.must_be_content()


# ---- a machine without GPUs, where the plugin must not be noticed ------------


def test_a_program_survives_dump_and_restore_on_a_machine_without_gpus(plain: Machine) -> None:
    plain.checkpoint("has-no-kfd")
    plain.counted()


def test_the_plain_machines_kernel_does_not_complain(plain: Machine) -> None:
    plain.counted()
    plain.must_be_content()


# ---- memory that processes and drivers share ----------------------------------


@pytest.mark.parametrize("case", table(SHARING))
def test_shared_memory_comes_back(sharing: Field, case: Case) -> None:
    sharing.become(f"{SHARING_SLOT}")
    must_be(sharing.checkpoint(case.name, sharing.undisturbed(*case.reference), *case.words), case.wanted, *case.says)


@pytest.mark.parametrize("number", range(3))
def test_a_program_of_the_releases_rocm_comes_back(sharing: Field, root: Root, number: int) -> None:
    case = root.rocm[number]
    sharing.become(f"{SHARING_SLOT}")
    must_be(sharing.checkpoint(case.name, sharing.undisturbed(*case.reference), *case.words), case.wanted, *case.says)


def test_a_thousand_mappings_cost_no_descriptor(sharing: Field) -> None:
    sharing.become(f"{SHARING_SLOT}")
    must_be(sharing.checkpoint("mappings", sharing.undisturbed(*PROGRAM_OF_IOCTLS), *PROGRAM_OF_IOCTLS, "--buffers", "1000"),
            EQUAL)


def test_as_many_gpus_as_a_machine_has_cost_no_descriptor(root: Root) -> None:
    must_be(checkpoint_on_all_gpus(f"distro-{root.name}-many", fresh(root.run / "many"), "criu", PLUGINS, root=root.name,
                                   env=root.env), EQUAL)


def test_the_kernel_does_not_complain_of_shared_memory(sharing: Field) -> None:
    sharing.become(f"{SHARING_SLOT}")
    sharing.must_be_content()
