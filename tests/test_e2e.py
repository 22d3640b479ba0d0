# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""Checkpoint and restore of GPU programs with CRIU and the plugin.

One machine dumps, and one with other GPUs restores; the stock kernel tries the same images;
a machine without GPUs does without the plugin; scripts/demo.py has two machines of its own.
Damaged images, a full file system and a closed gate are what must not work.

A program waits with packets pending on its queues (its gate is closed) until a step lets
it continue. Images and CRIU's logs: out/e2e and out/e2e-plain. CHIP: the chip, gfx906 unless
said; one that executes waves.
"""
from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Iterator

import pytest
from harness import chip, paths, plan
from harness.steps import EXIT_INFRA, TIMED_OUT, StepMachine, fail, fresh, need_built, need_criu, once

# The restoring machine needs the images of the dumping one, and so does the stock kernel.
pytestmark = pytest.mark.group("e2e", seconds=170)

RUN, PLAIN_RUN = paths.OUT / "e2e", paths.OUT / "e2e-plain"
PLUGINS = paths.built("release") / "plugin"
PROGRAM = paths.built("release") / "kfdtest-criu" / "demo_program"
ARGUMENTS = ("--gpus", "2", "--svm")
MEM, VM_LIMIT_S, DEMO_LIMIT_S = "1G", 1800, 1500
# How a damaged copy of the images is made: what CRIU's log says of it then.
DAMAGES = {"flipped": "wrong checksum", "truncated": "truncated", "uncommitted": "did not complete"}
PAGE_BYTES = 4096


def chosen_chip() -> str:
    """The chip of all machines here."""
    try:
        return chip.chosen()
    except plan.PlanError as error:
        fail(str(error))


def gpu_options(*gpus: str) -> list[str]:
    """Options of scripts/vm.sh; each GPU is a size of VRAM and a PCI slot."""
    return [word for gpu in gpus for word in ("--gpu", f"{chosen_chip()},{gpu}")]


def has_logged(log: str, text: str) -> None:
    """CRIU's log has to say so."""
    path = RUN / log
    said = path.read_text(errors="replace") if path.exists() else ""
    if text not in said:
        fail(f"no '{text}' in {path}:\n" + "\n".join(said.splitlines()[-40:]))


class Machine(StepMachine):
    """A machine of this file, with a folder that it shares with the host."""

    def __init__(self, name: str, run: Path, kernel: str, options: list[str]) -> None:
        need_criu()
        need_built(kernel, "plugin/amdgpu_plugin.so", "kfd-criu/kfd-criu", "kfdtest-criu/demo_program")
        # Here checkpoints are of programs with random addresses, as users have them.
        super().__init__(name, ["--kernel", kernel, "--mem", MEM, "--share", str(run), "--aslr", *options],
                         [str(paths.SCRIPTS / "guest/checkpoint.sh"), str(run), str(PLUGINS)], VM_LIMIT_S)

    def refuses(self, *words: str) -> None:
        """The step has to fail, by itself."""
        status, text = self.attempt(*words)
        if status in (0, TIMED_OUT, EXIT_INFRA):
            fail(f"the step '{' '.join(words)}' should have failed; its status is {status}\n{text}")

    @once("the gpu_ids of a machine")
    def gpu_ids(self) -> set[str]:
        lines = self.step("gpus").splitlines()
        return {line.split()[1] for line in lines if line.startswith("gpu_id ")}


class Dumping(Machine):
    """The machine in which the programs begin."""

    @once("the result of an undisturbed run")
    def undisturbed(self) -> str:
        return self.step("undisturbed", "reference", str(PROGRAM), *ARGUMENTS)

    @once("a program with pending packets")
    def pending(self) -> None:
        self.step("start", "full", str(PROGRAM), *ARGUMENTS)

    @once("a dump that failed for lack of space")
    def failed_dump(self) -> None:
        self.pending()
        self.refuses("dump-without-space", "full")

    @once("the program that is to be dumped")
    def program(self) -> None:
        self.step("start", "program", str(PROGRAM), *ARGUMENTS)

    @once("a dump by the CPU")
    def dumped_by_cpu(self) -> None:
        self.program()
        self.step("dump-by-cpu", "program")

    @once("the dumped images")
    def images(self) -> None:
        self.program()
        self.step("dump", "program", "images")

    @once("damaged copies of the images")
    def damaged(self) -> None:
        self.images()
        damage_images()


class Restoring(Machine):
    """The machine in which the program continues: the same two GPUs in other slots and the
    other way round."""

    def __init__(self, dumping: Dumping) -> None:
        super().__init__("e2e-restore", RUN, "criu", gpu_options("vram=256M,slot=18", "vram=512M,slot=20"))
        self.dumping = dumping

    @once("a refused restore of the {0} images")
    def refused(self, damage: str) -> bool:
        """Whether a process was left; asked at once, because a later restore makes it again."""
        self.dumping.damaged()
        self.refuses("restore", "sdma", f"{damage}.restore.log", f"damaged-{damage}")
        return self.attempt("is-gone", "program")[0] != 0

    @once("a program that the CPU restored and that was killed")
    def restored_by_cpu_and_killed(self) -> None:
        self.dumping.images()
        self.step("restore", "cpu", "by-cpu.restore.log")
        self.step("is-running", "program")
        self.step("kill", "program")

    @once("the restored program")
    def restored(self) -> None:
        self.dumping.images()
        self.step("restore", "sdma", "restore.log")
        self.step("is-running", "program")

    @once("the result of the restored program")
    def result(self) -> str:
        self.restored()
        return self.step("continue", "program")


class Stock(Machine):
    """A machine like the restoring one, with the stock kernel."""

    def __init__(self, dumping: Dumping) -> None:
        super().__init__("e2e-stock", RUN, "stock", gpu_options("vram=256M,slot=18", "vram=512M,slot=20"))
        self.dumping = dumping

    @once("a restore that the stock kernel refused")
    def refused(self) -> bool:
        """Whether a process was left."""
        self.dumping.images()
        self.refuses("restore", "sdma", "stock.restore.log")
        return self.attempt("is-gone", "program")[0] != 0


def damage_images() -> None:
    """For each damage, a folder with the files that differ from those of the images; an empty
    file is one that the damaged images do not have."""
    pages = largest_pages()
    data = pages.read_bytes()
    manifests = [path.name for path in (RUN / "images").glob("amdgpu-manifest*.img")]
    if not manifests:
        fail("the images have no manifest")
    different = {"flipped": {pages.name: flip_last_byte(data)}, "truncated": {pages.name: data[:-PAGE_BYTES]},
                 "uncommitted": dict.fromkeys(manifests, b"")}
    for damage in DAMAGES:
        folder = fresh(RUN / f"damaged-{damage}")
        for name, content in different[damage].items():
            (folder / name).write_bytes(content)


def largest_pages() -> Path:
    """The file with most of the buffers' contents."""
    files = [path for path in (RUN / "images").glob("amdgpu-pages-*.img") if path.stat().st_size > PAGE_BYTES]
    if not files:
        fail("the images have no contents of buffers")
    return max(files, key=lambda path: path.stat().st_size)


def flip_last_byte(data: bytes) -> bytes:
    """Changes the last byte that is not zero, which is one of a buffer: files are padded."""
    at = len(data.rstrip(b"\0")) - 1
    return data[:at] + bytes([data[at] ^ 0x40]) + data[at + 1:]


@pytest.fixture(name="dumping", scope="module")
def fixture_dumping() -> Iterator[Dumping]:
    gpus = gpu_options("vram=512M,slot=16", "vram=256M,slot=17")
    with Dumping("e2e-dump", fresh(RUN), "criu", gpus) as machine:
        yield machine


@pytest.fixture(name="restoring", scope="module")
def fixture_restoring(dumping: Dumping) -> Iterator[Restoring]:
    with Restoring(dumping) as machine:
        yield machine


@pytest.fixture(name="stock", scope="module")
def fixture_stock(dumping: Dumping) -> Iterator[Stock]:
    with Stock(dumping) as machine:
        yield machine


@pytest.fixture(name="plain", scope="module")
def fixture_plain() -> Iterator[Machine]:
    with Machine("e2e-plain", fresh(PLAIN_RUN), "criu", []) as machine:
        yield machine


# ---- the machine that dumps --------------------------------------------------


def test_an_undisturbed_run_has_a_result(dumping: Dumping) -> None:
    assert dumping.undisturbed()


def test_a_program_comes_to_its_pending_packets(dumping: Dumping) -> None:
    dumping.pending()


def test_a_dump_into_a_full_filesystem_fails(dumping: Dumping) -> None:
    dumping.failed_dump()


def test_the_failed_dump_says_that_there_is_no_space(dumping: Dumping) -> None:
    dumping.failed_dump()
    has_logged("without-space.dump.log", "No space left")


def test_the_failed_dump_leaves_no_manifest(dumping: Dumping) -> None:
    dumping.failed_dump()
    dumping.step("has-no-manifest")


def test_the_program_still_runs_after_the_failed_dump(dumping: Dumping) -> None:
    dumping.failed_dump()
    dumping.step("is-running", "full")


def test_the_result_after_the_failed_dump_equals_the_undisturbed_one(dumping: Dumping) -> None:
    expected = dumping.undisturbed()
    dumping.failed_dump()
    assert dumping.step("continue", "full") == expected


def test_a_program_without_a_gpu_survives_dump_and_restore_beside_gpus(dumping: Dumping) -> None:
    dumping.step("counter", "counter")


def test_a_program_with_pending_packets_on_two_gpus_is_dumped_by_the_cpu_and_left_running(dumping: Dumping) -> None:
    dumping.dumped_by_cpu()


def test_the_program_is_dumped_again_by_sdma(dumping: Dumping) -> None:
    dumping.images()


def test_the_cpu_and_sdma_have_read_the_same_contents(dumping: Dumping) -> None:
    dumping.dumped_by_cpu()
    dumping.images()
    dumping.step("compare", "images")


def test_the_images_can_be_damaged(dumping: Dumping) -> None:
    dumping.damaged()


def test_the_dumping_machines_kernel_does_not_complain(dumping: Dumping) -> None:
    # What tests of the other machines need of this one; afterwards it is off.
    dumping.undisturbed()
    dumping.gpu_ids()
    dumping.images()
    dumping.must_be_content()


# ---- the machine that restores -----------------------------------------------


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_images_are_refused(restoring: Restoring, damage: str) -> None:
    restoring.refused(damage)


@pytest.mark.parametrize("damage", DAMAGES)
def test_the_refusal_of_damaged_images_says_why(restoring: Restoring, damage: str) -> None:
    restoring.refused(damage)
    has_logged(f"{damage}.restore.log", DAMAGES[damage])


@pytest.mark.parametrize("damage", DAMAGES)
def test_the_refusal_of_damaged_images_leaves_no_process(restoring: Restoring, damage: str) -> None:
    assert not restoring.refused(damage)


def test_the_image_is_restored_by_the_cpu_and_the_program_is_killed(restoring: Restoring) -> None:
    restoring.restored_by_cpu_and_killed()


def test_the_image_is_restored_on_other_gpus(restoring: Restoring) -> None:
    restoring.restored()


def test_the_restored_program_does_not_pass_its_closed_gate(restoring: Restoring) -> None:
    restoring.restored()
    restoring.step("stays-pending", "program")


def test_the_restored_programs_result_equals_the_undisturbed_one(dumping: Dumping, restoring: Restoring) -> None:
    assert restoring.result() == dumping.undisturbed()


def test_the_restored_program_ends(restoring: Restoring) -> None:
    restoring.result()
    restoring.step("is-gone", "program", "10")


def test_the_two_machines_have_no_gpu_id_in_common(dumping: Dumping, restoring: Restoring) -> None:
    first, second = dumping.gpu_ids(), restoring.gpu_ids()
    assert len(first) == len(second) == 2
    assert not first & second


def test_the_restoring_machines_kernel_does_not_complain(restoring: Restoring) -> None:
    restoring.restored()
    restoring.must_be_content()


# ---- the stock kernel, as the control of the first patch of the series -------
# Kernels before that patch want the context save area of a queue to be there when the
# queue is restored, and an SVM range never is.


@pytest.mark.heavy
def test_a_stock_kernel_does_not_restore_a_queue_with_an_svm_save_area(stock: Stock) -> None:
    stock.refused()


@pytest.mark.heavy
def test_the_stock_kernel_refuses_the_image_with_einval(stock: Stock) -> None:
    stock.refused()
    has_logged("stock.restore.log", "KFD RESTORE: the kernel does not accept a value of the image")


@pytest.mark.heavy
def test_the_refusal_by_the_stock_kernel_leaves_no_process(stock: Stock) -> None:
    assert not stock.refused()


@pytest.mark.heavy
def test_the_stock_machines_kernel_does_not_complain(stock: Stock) -> None:
    stock.refused()
    stock.must_be_content()


# ---- a machine without GPUs, where the plugin must not be noticed ------------


@pytest.mark.group("e2e-plain", seconds=35)
def test_a_machine_without_gpus_has_no_dev_kfd(plain: Machine) -> None:
    plain.step("has-no-kfd")


@pytest.mark.group("e2e-plain", seconds=35)
def test_a_program_survives_dump_and_restore_on_a_machine_without_gpus(plain: Machine) -> None:
    plain.step("counter", "counter")


@pytest.mark.group("e2e-plain", seconds=35)
def test_the_plain_machines_kernel_does_not_complain(plain: Machine) -> None:
    plain.must_be_content()


# ---- the demo -----------------------------------------------------------------


@pytest.mark.group("e2e-demo", seconds=60)
def test_the_demos_programs_go_on_in_another_machine() -> None:
    chosen_chip()
    need_criu()
    need_built("criu", "plugin/amdgpu_plugin.so", "kfdtest-criu/demo_program", "hiptest/hip_demo")
    log = paths.TEST / "logs" / "demo.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("w") as file:
        status = subprocess.run(["setpriv", "--pdeathsig", "TERM", str(paths.SCRIPTS / "demo.py"), "--no-build"],
                                cwd=paths.ROOT, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT,
                                timeout=DEMO_LIMIT_S, check=False).returncode
    lines = log.read_text(errors="replace").splitlines()
    if status != 0 or not lines or not lines[-1].startswith("demo: OK result="):
        fail(f"scripts/demo.py: status {status} (log: {log})\n" + "\n".join(lines[-40:]))
