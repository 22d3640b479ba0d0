# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""What users report of checkpoints of GPU programs, as tests with CRIU and the plugin.

Each case ends in one of two ways (harness/field.py): the program comes back equal, or its dump is refused
by name and the program continues. One virtual machine has three GPUs; the driver is reloaded so that the
machine has some of them. The programs are those of userspace/fieldtest.
"""
from __future__ import annotations

import math
import os
import re
import shutil
import time
from pathlib import Path
from typing import Iterator

import pytest
from harness import paths
from harness.field import (DEMO, EQUAL, LOST, PAIR, PROGRAM, REFUSED, RENDER, SHAPE, THREE, VMM, WRONG, Case, Field, Outcome,
                           checkpoint_on_all_gpus, chosen_chip, difference, must_be, path_of, table)
from harness.steps import fail, fresh, once

pytestmark = [pytest.mark.group("field", seconds=360), pytest.mark.tier("e2e")]

RUN, PAIR_RUN, MANY_RUN = (paths.OUT / name for name in ("field", "field-pair", "field-many"))
# PCI slots. The chip of the GPU in the first slot is another one, so it fits no image.
STRANGER, FIRST, SECOND = 16, 17, 18
ONE, TWO, OTHER, MOVED = f"{FIRST}", f"{FIRST},{SECOND}", f"{SECOND}", f"{STRANGER},{FIRST}"
# scripts/field_table.py compares with CRIU's own plugin on the stock kernel: a folder with `criu` and `plugin/`.
OTHER_CRIU = os.environ.get("FIELD_CRIU")
KERNEL = "stock" if OTHER_CRIU else "criu"
PLUGIN = Path(OTHER_CRIU) / "plugin" if OTHER_CRIU else paths.built("release") / "plugin"
HIP = ("field_hip",)
PROCESSES = 16
# The longest time in which a dump pauses them. A virtual GPU needs 3 to 12 ms for it on idle hosts with software emulation,
# and has to wait for a processor of a busy one.
PAUSES_US = 100_000
GENERATIONS, RESTORE_KILLS, RESTORES = 10, 5, 3
# How long a restore of memory that processes share may take, compared with that of the same bytes unshared.
MOST_FOR_SHARING = 1.3
KILL = "kill -KILL $CRIU_PID"
CONTAINERS, FIRST_NODE = "/run/containers", "renderD128"
# Files that a program with "--children low --also kfd" and its children have in common: two of /dev/kfd, a render node.
INHERITED_FILES = 3
# The thunk removes these names when its program ends by itself, not when somebody kills the program.
NAMES_OF_LIBHSAKMT = {"hsakmt_shared_mem", "sem.hsakmt_semaphore"}
MANIFEST = "amdgpu-manifest.img"
# How many of the last calls of a restore fail, each in a restore of its own.
CONTAINER_FAULTS = 24
# Metadata has numbers of variable length, such as gpu_ids.
METADATA_BYTES = 256


CASES = (
    Case("a_second_kfd_file", (*PROGRAM, "--also", "kfd"), EQUAL),
    Case("children", (*PROGRAM, "--children", "high"), EQUAL),
    Case("children_with_lower_pids", (*PROGRAM, "--children", "low"), EQUAL),
    Case("children_of_a_hip_program", (*HIP, "--children", "low"), EQUAL, reference=HIP, heavy=True),
    Case("a_mapped_gem_object", (*PROGRAM, "--no-gpu", "--gem", "mapped"), EQUAL, reference=(*PROGRAM, "--no-gpu")),
    Case("a_gem_handle", (*PROGRAM, "--no-gpu", "--gem", "handle"), EQUAL, reference=(*PROGRAM, "--no-gpu"),
         heavy=True),
    Case("a_high_gem_handle", (*PROGRAM, "--no-gpu", "--gem", "high"), EQUAL, reference=(*PROGRAM, "--no-gpu")),
    Case("a_gem_object_at_an_address", (*PROGRAM, "--no-gpu", "--gem", "address"), EQUAL,
         reference=(*PROGRAM, "--no-gpu"), heavy=True),
    Case("objects_of_a_render_node", RENDER, EQUAL, reference=RENDER, heavy=True),
    Case("objects_of_an_inherited_render_node", (*RENDER, "--children"), EQUAL, reference=RENDER),
    Case("sync_files_of_finished_work", (*RENDER, "--sync-files", "--children"), EQUAL, reference=RENDER),
    Case("user_memory_of_a_parent_that_has_closed_the_file", (*RENDER, "--child-alone"), REFUSED,
         ("field_render", "GEM object", "userptr", "restores the file"), (*RENDER, "--child-alone")),
    Case("objects_in_another_file_than_that_of_kfd", (*RENDER, "--kfd"), EQUAL, reference=(*RENDER, "--kfd")),
    Case("shared_gem_objects", (*RENDER, "--share"), EQUAL, reference=RENDER, heavy=True),
    Case("gem_objects_shared_with_kfd", (*RENDER, "--share", "--kfd"), EQUAL, reference=(*RENDER, "--kfd")),
    Case("a_gem_object_beside_kfd", (*PROGRAM, "--gem", "handle"), EQUAL),
    Case("memory_mapped_as_hip_does_it", VMM, EQUAL, reference=VMM),
    Case("a_gem_object_of_a_hip_program", (*HIP, "--gem", "mapped"), EQUAL, reference=HIP, heavy=True),
    Case("an_event_that_hip_shares", ("field_hip_ipc",), EQUAL, reference=("field_hip_ipc",), heavy=True),
    Case("a_thousand_mappings", (*PROGRAM, "--buffers", "1000"), EQUAL, heavy=True),
    Case("a_shared_buffer", PAIR, EQUAL, reference=PAIR, heavy=True),
    Case("a_shared_buffer_that_changes", (*PAIR, "--counting"), EQUAL, reference=PAIR),
    Case("memory_shared_three", (*SHAPE, "three"), EQUAL, reference=THREE, heavy=True),
    Case("memory_shared_chain", (*SHAPE, "chain"), EQUAL, reference=THREE, heavy=True),
    Case("memory_shared_cycle", (*SHAPE, "cycle"), EQUAL, reference=THREE),
    Case("memory_shared_freed", (*SHAPE, "freed"), EQUAL, reference=THREE),
    Case("memory_shared_ended", (*SHAPE, "ended"), EQUAL, reference=THREE),
    Case("memory_shared_alone", (*SHAPE, "alone"), EQUAL, reference=THREE),
    Case("open_dmabufs", (*SHAPE, "kept"), EQUAL, reference=THREE, heavy=True),
    Case("open_dmabufs_of_memory_that_its_process_has_freed", (*SHAPE, "kept-freed"), EQUAL, reference=THREE),
    Case("open_dmabufs_of_a_program_without_a_gpu", (*SHAPE, "kept-plain"), EQUAL, reference=THREE),
    Case("an_open_dmabuf_of_memory_that_all_have_freed", (*SHAPE, "kept-nobody"), EQUAL, reference=THREE),
    Case("a_dmabuf_on_its_way_through_a_socket", (*SHAPE, "kept-queued"), REFUSED,
         ("field_group", "somebody outside"), THREE),
    Case("memory_of_kfd_with_metadata", (*SHAPE, "described"), REFUSED, ("field_group", "has metadata"), THREE),
    Case("a_thousand_shared_memories", (*SHAPE, "cycle", "--times", "200"), EQUAL, reference=THREE, heavy=True),
    Case("a_buffer_given_to_a_program_outside", (*PAIR, "--outside"), REFUSED, ("field_group", "somebody outside"), PAIR),
    # CRIU itself refuses this file, when the plugin has saved the GPU.
    Case("a_pidfd", (*PROGRAM, "--also", "pidfd"), REFUSED, ("Can't dump file 200",)),
)


class Machine(Field):
    """The machine of this file, with the images that several tests restore."""

    def __init__(self, name: str, run: Path) -> None:
        chosen = chosen_chip()
        gpus = {STRANGER: "gfx906" if chosen != "gfx906" else "gfx90a", FIRST: chosen, SECOND: chosen}
        super().__init__(name, run, gpus, KERNEL, PLUGIN, Path(OTHER_CRIU) if OTHER_CRIU else None)

    def expected(self) -> str:
        """The result of demo_program, which any GPU gives."""
        if not self.slots:
            self.become(ONE)
        return self.undisturbed(*DEMO)

    @once("a dumped program")
    def image(self, slots: str, *words: str) -> tuple[str, str, list]:
        """Dumps a program on the machine with these slots: its name, its images, and what it looked like."""
        self.become(slots)
        variables = [word for word in words if "=" in word]
        name = self.start("image", *[word for word in words if "=" not in word], env=variables)
        self.keep(name)
        images, before = f"images.{name}", self.look(name)
        if self.dump(name, images)[0] != 0:
            fail(f"needs: an image\n{self.shown_errors(f'{images}.dump.log')}")
        return name, images, before

    def restored(self, image: tuple[str, str, list], expected: str, log: str, *, env: tuple[str, ...] = (),
                 options: tuple[str, ...] = ()) -> Outcome:
        """Restores an image, which was perhaps restored before. What became of the program."""
        name, images, before = image
        self.hold_again(name)
        log = f"{log}.restore.log"
        try:
            if self.restore(images, *options, env=env, log=log) != 0:
                return Outcome(LOST, f"the restore failed\n{self.shown_errors(log)}")
            return self.after_restore(name, before, expected)
        finally:
            self.end(name)

    @once("a dumped container")
    def container_image(self, dev: str) -> str:
        """Dumps a container with one GPU whose /dev is made in this way: its images. Its files are in IMAGES.tar."""
        self.become(ONE)
        self.keep(f"container.{dev}")
        images, tar = f"images.container.{dev}", self.run / "container.tar"
        root = f"{CONTAINERS}/{images}"
        self.pack_root(tar, path_of(DEMO[0]), shutil.which("umount"))
        self.step("container", "unpack", root, str(tar))
        self.step("container", "start", root, FIRST_NODE, dev)
        pid = self.step("run", "cat", f"{root}.pid").split()[-1]
        if self.criu("dump", pid, images, f"{images}.dump.log") != 0:
            fail(f"needs: an image\n{self.shown_errors(f'{images}.dump.log')}")
        self.step("run", "tar", "-C", root, "--one-file-system", "--exclude=./proc", "--exclude=./sys", "-cf",
                  str(self.run / f"{images}.tar"), ".")
        return images


@pytest.fixture(name="field", scope="module")
def fixture_field() -> Iterator[Machine]:
    with Machine("field", fresh(RUN)) as machine:
        yield machine


# ---- one GPU, one machine --------------------------------------------------------


@pytest.mark.parametrize("case", table(CASES))
def test_case(field: Machine, case: Case) -> None:
    field.become(ONE)
    expected = field.undisturbed(*case.reference)
    must_be(field.checkpoint(case.name, expected, *case.words), case.wanted, *case.says)


def test_memory_allocated_after_the_restore_works_where_sysfs_has_no_pasid(field: Machine) -> None:
    """Linux 6.15 and later show 0 as the PASID of each process; a bind mount imitates it."""
    field.become(ONE)
    expected = field.expected()
    name = field.start("no-pasid", *PROGRAM, "--late")
    images, pasid = f"images.{name}", f"/sys/devices/virtual/kfd/kfd/proc/{field.pid(name)}/pasid"
    try:
        before = field.look(name)
        (RUN / "zero").write_text("0\n")
        field.step("run", "mount", "--bind", str(RUN / "zero"), pasid)
        status, _ = field.dump(name, images)
        # Without the process there is no file and no mount.
        field.attempt("run", "umount", pasid)
        if status != 0:
            must_be(field.after_refusal(name, images, expected), EQUAL)
        if field.restore(images) != 0:
            fail(f"the restore failed\n{field.shown_errors(f'{images}.restore.log')}")
        must_be(field.after_restore(name, before, expected), EQUAL)
    finally:
        field.end(name)


def must_be_left_running(field: Machine, title: str, expected: str, *words: str) -> None:
    """Starts a program and dumps it with --leave-running: it must go on as it was, to the expected result."""
    name = field.start(title, *words)
    images = f"images.{name}"
    try:
        before = field.look(name)
        status, _ = field.dump(name, images, "--leave-running")
        if status != 0 or field.plugin_errors(f"{images}.dump.log"):
            fail(f"status {status}\n{field.shown_errors(f'{images}.dump.log')}")
        must_be(field.after_restore(name, before, expected), EQUAL)
    finally:
        field.end(name)


def test_a_program_with_two_kfd_files_is_left_running_without_an_error(field: Machine) -> None:
    field.become(ONE)
    must_be_left_running(field, "left-running", field.expected(), *PROGRAM, "--also", "kfd")


def test_a_program_is_restored_where_dev_kfd_has_another_mode(field: Machine) -> None:
    image = field.image(ONE, *DEMO)
    expected = field.expected()
    field.become(ONE)
    mode = field.step("run", "stat", "-c", "%a", "/dev/kfd").split()[-1]
    field.step("run", "chmod", "600" if mode != "600" else "666", "/dev/kfd")
    try:
        must_be(field.restored(image, expected, "mode"), EQUAL)
    finally:
        field.step("run", "chmod", mode, "/dev/kfd")


@pytest.mark.parametrize("svm", [
    pytest.param((), id="plain"), pytest.param(("--svm",), id="svm", marks=pytest.mark.heavy)])
def test_a_lazy_restore_gives_gpus_all_pages_first(field: Machine, svm: tuple[str, ...]) -> None:
    image = field.image(ONE, *DEMO, *svm)
    field.become(ONE)
    expected = field.undisturbed(*DEMO, *svm)
    field.step("run", "criu", "lazy-pages", "--daemon", "-D", f"/run/field/{image[1]}", "-W", "/run/field",
               "-o", str(RUN / f"{image[1]}.daemon.log"))
    try:
        lazy = ("--lazy-pages", "-W", "/run/field")
        must_be(field.restored(image, expected, f"{image[1]}.lazy", options=lazy), EQUAL)
    finally:
        # It ends by itself after a good restore.
        field.attempt("run", "pkill", "-x", "-f", "criu lazy-pages.*")


def test_a_lazy_dump_is_refused(field: Machine) -> None:
    field.become(ONE)
    expected = field.expected()
    name = field.start("lazy-dump", *DEMO)
    images = f"images.{name}"
    try:
        status, _ = field.dump(name, images, "--lazy-pages", "--address", "127.0.0.1", "--port", "9999")
        if status == 0:
            fail("the dump was not refused")
        must_be(field.after_refusal(name, images, expected), REFUSED, "lazy")
    finally:
        field.end(name)


@pytest.mark.heavy
def test_two_programs_are_dumped_one_after_the_other_and_restored(field: Machine) -> None:
    """The first program of a machine makes the semaphore of libhsakmt, whose first name is gone, so --link-remap gives
    it one. If the semaphores are removed between the programs, both are the first, and both names are equal."""
    field.become(ONE)
    expected = field.expected()
    names, before = [], []
    try:
        for what in ("first", "second"):
            field.step("run", "bash", "-c", "rm -f /dev/shm/*hsakmt*")
            name = field.start(what, *DEMO)
            names.append(name)
            before.append(field.look(name))
            if field.dump(name, f"images.{name}")[0] != 0:
                fail(f"{name} was not dumped\n{field.shown_errors(f'images.{name}.dump.log')}")
        for name, looks in zip(names, before):
            if field.restore(f"images.{name}") != 0:
                fail(f"{name} was not restored\n{field.shown_errors(f'images.{name}.restore.log')}")
            must_be(field.after_restore(name, looks, expected), EQUAL)
    finally:
        for name in names:
            field.end(name)


@pytest.mark.parametrize("generations", [pytest.param(2, id="two")])
def test_generations_on_one_machine(field: Machine, generations: int) -> None:
    field.become(ONE)
    must_be(generations_of(field, (*PROGRAM, "--children", "low"), field.expected(), generations), EQUAL)


def test_a_dump_stores_what_has_changed_since_the_one_before(field: Machine) -> None:
    """Three dumps, each with the one before as --prev-images-dir; the last one needs both others, or none after `flatten`."""
    field.become(ONE)
    expected = field.expected()
    name = field.start("since", *DEMO)
    images = [f"images.{name}", f"images.{name}.second", f"images.{name}.third"]
    try:
        looks, stored = field.look(name), []
        for number, folder in enumerate(images):
            options = ["--track-mem"]
            options += ["--prev-images-dir", f"../{images[number - 1]}"] if number else []
            options += ["--leave-running"] if number < 2 else []
            if field.dump(name, folder, *options)[0] != 0:
                fail(f"dump {number + 1} failed\n{field.shown_errors(f'{folder}.dump.log')}")
            stored.append(sum(size for file, size in field.files(folder).items() if file.startswith("amdgpu-pages-")))
        assert max(stored[1:]) * 4 < stored[0], stored
        # CRIU would miss its own files of the first dump before it calls the plugin.
        pages = next(file for file in field.our_files(images[0]) if file.startswith("amdgpu-pages-"))
        moved = [f"/run/field/{images[0]}/{pages}", f"/run/field/{images[0]}/away"]
        field.step("run", "mv", *moved)
        assert field.restore(images[2], log=f"{images[2]}.missing.log") != 0
        errors = "\n".join(field.plugin_errors(f"{images[2]}.missing.log"))
        assert f"parent/parent/{pages}: is missing" in errors, errors
        field.step("run", "mv", *reversed(moved))
        field.step("run", str(paths.built("release") / "kfd-criu/kfd-criu"), "verify", f"/run/field/{images[2]}")
        if field.restore(images[2]) != 0:
            fail(f"it was not restored\n{field.shown_errors(f'{images[2]}.restore.log')}")
        must_be(field.after_restore(name, looks, expected), EQUAL)
    finally:
        field.end(name)


def test_compressed_contents_come_back(field: Machine) -> None:
    field.become(ONE)
    expected = field.expected()
    sizes = {}
    for compress in ("never", "always"):
        name = field.start("compressed", *DEMO)
        images = f"images.{name}"
        try:
            before = field.look(name)
            if field.dump(name, images, env=(f"AMDGPU_PLUGIN_COMPRESS={compress}",))[0] != 0:
                fail(f"the dump failed\n{field.shown_errors(f'{images}.dump.log')}")
            sizes[compress] = sum(size for file, size in field.our_files(images).items() if file.startswith("amdgpu-pages-"))
            if field.restore(images) != 0:
                fail(f"the restore failed\n{field.shown_errors(f'{images}.restore.log')}")
            must_be(field.after_restore(name, before, expected), EQUAL)
        finally:
            field.end(name)
    # Most contents of the program are noise.
    assert sizes["always"] < sizes["never"], sizes


# ---- programs without a GPU --------------------------------------------------------


@pytest.mark.parametrize("host", ["with_kfd", pytest.param("without_kfd", marks=pytest.mark.heavy)])
def test_an_image_left_in_the_folder_harms_no_other_program_with_its_pid(field: Machine, host: str) -> None:
    field.become(ONE)
    left = field.start("left", *DEMO)
    images = f"images.{left}"
    if field.dump(left, images)[0] != 0:
        fail(f"needs: an image\n{field.shown_errors(f'{images}.dump.log')}")
    name = field.fresh_name("counter")
    field.step("counter", name, "again")
    if field.pid(name) != field.pid(left):
        fail("the two programs have different process ids")
    try:
        counter_survives(field, name, images, hide_kfd=host == "without_kfd")
    finally:
        field.end(name)
        field.end(left)


def counter_survives(field: Machine, name: str, images: str, hide_kfd: bool = False, env: tuple[str, ...] = ()) -> None:
    """Dumps and restores a program that counts; it has to count on."""
    before = int(field.step("count", name).splitlines()[-1])
    if field.dump(name, images, env=env)[0] != 0:
        fail(f"the dump failed\n{field.shown_errors(f'{images}.dump.log')}")
    if hide_kfd:
        field.step("run", "mv", "/dev/kfd", "/dev/kfd.away")
    try:
        if field.restore(images, env=env) != 0:
            fail(f"the restore failed\n{field.shown_errors(f'{images}.restore.log')}")
        assert int(field.step("count", name).splitlines()[-1]) > before
    finally:
        if hide_kfd:
            field.step("run", "mv", "/dev/kfd.away", "/dev/kfd")


WRONG_OPTION = "AMDGPU_PLUGIN_COPY=nonsense"


def test_a_wrong_option_of_the_plugin_harms_no_program_without_a_gpu(field: Machine) -> None:
    field.become(ONE)
    name = field.fresh_name("counter")
    field.step("counter", name)
    try:
        counter_survives(field, name, f"images.{name}", env=(WRONG_OPTION,))
    finally:
        field.end(name)


def test_a_wrong_option_of_the_plugin_is_named_when_a_program_with_a_gpu_is_dumped(field: Machine) -> None:
    field.become(ONE)
    must_be(field.checkpoint("wrong-option", field.expected(), *DEMO, dump_env=(WRONG_OPTION,)), REFUSED,
            "AMDGPU_PLUGIN_COPY", "nonsense")


OPTIONS_FILE = "/etc/criu/amdgpu-plugin.conf"


@pytest.mark.heavy
def test_the_file_of_options_comes_before_the_environment(field: Machine) -> None:
    field.become(ONE)
    expected = field.expected()
    # The guest's /etc is that of this host, which no test writes to.
    field.step("run", "cp", "-a", "/etc", "/run/etc")
    field.step("run", "mkdir", "-p", "/run/etc/criu")
    field.step("run", "mount", "--bind", "/run/etc", "/etc")
    try:
        field.step("run", "bash", "-c", f"echo copy=cpu >{OPTIONS_FILE}")
        must_be(field.checkpoint("options", expected, *DEMO, dump_env=(WRONG_OPTION,)), EQUAL)
        field.step("run", "bash", "-c", f"echo copy=rubbish >{OPTIONS_FILE}")
        must_be(field.checkpoint("options", expected, *DEMO), REFUSED, OPTIONS_FILE, "rubbish")
    finally:
        field.step("run", "umount", "/etc")


# ---- what else CRIU saves, and where -------------------------------------------------


def comes_back(field: Machine, name: str, to_dump: tuple[str, ...] = (), to_restore: tuple[str, ...] = (),
               between: str = "") -> Outcome:
    """Dumps demo_program and restores it, with these options of CRIU, and a command of the shell in between. What became
    of it."""
    images, before = f"images.{name}", field.look(name)
    if field.dump(name, images, *to_dump)[0] != 0:
        return Outcome(WRONG, f"the dump failed\n{field.shown_errors(f'{images}.dump.log')}")
    if between:
        field.step("run", "bash", "-c", between)
    if field.restore(images, *to_restore) != 0:
        return Outcome(LOST, f"the restore failed\n{field.shown_errors(f'{images}.restore.log')}")
    return field.after_restore(name, before, field.expected())


@pytest.mark.parametrize("kind", [
    pytest.param("uts", marks=pytest.mark.heavy), pytest.param("ipc", marks=pytest.mark.heavy), "cgroup"])
def test_a_program_with_a_namespace_of_its_own_comes_back(field: Machine, kind: str) -> None:
    """Containers have pid and mount namespaces; one of podman has a network namespace, which CRIU 3.17 cannot dump on
    this kernel, with or without a plugin."""
    field.become(ONE)
    field.expected()
    name = field.start(f"namespace-{kind}", *DEMO, env=(f"UNDER=unshare --{kind}",))
    try:
        link = f"readlink /proc/{field.pid(name)}/ns/{kind} /proc/self/ns/{kind}"
        own, machines = field.step("run", "bash", "-c", link).splitlines()[-2:]
        assert own != machines
        must_be(comes_back(field, name), EQUAL)
    finally:
        field.end(name)


def test_a_program_in_a_control_group_comes_back_there(field: Machine) -> None:
    field.become(ONE)
    field.expected()
    name = field.start("cgroup", *DEMO)
    group, pid = f"/sys/fs/cgroup/{name}", field.pid(name)
    try:
        field.step("run", "bash", "-c", f"mkdir {group} && echo {pid} >{group}/cgroup.procs")
        # The group is there again only if CRIU has made it.
        restored = comes_back(field, name, ("--manage-cgroups",), ("--manage-cgroups",), f"rmdir {group}")
        found = field.step("run", "ls", "-d", group)
        must_be(restored, EQUAL)
        assert group in found
    finally:
        field.end(name)
        field.attempt("run", "rmdir", group)


def test_a_job_of_a_shell_comes_back_on_another_terminal(field: Machine) -> None:
    field.become(ONE)
    expected, shell = field.expected(), RUN / "shell-on-a-terminal"
    shell.write_text('#!/bin/bash\nexec script -qfc "$(printf \'%q \' "$@"); true" /dev/null\n')
    shell.chmod(0o755)
    name = field.start("job", *DEMO, env=(f"UNDER={shell}",))
    images, pid = f"images.{name}", field.pid(name)
    log = f"{images}.restore.log"
    try:
        ids = field.step("run", "ps", "-o", "sid=,tty=", "-p", str(pid)).split()[-2:]
        assert ids[0] != str(pid) and ids[1].startswith("pts/"), ids
        status = field.criu("dump", str(pid), images, f"{images}.dump.log", "--shell-job")
        if status != 0 or field.plugin_errors(f"{images}.dump.log"):
            fail(f"the dump failed\n{field.shown_errors(f'{images}.dump.log')}")
        # CRIU gives the program the terminal that it has itself, and stays while the program runs.
        criu = f"criu restore --shell-job -D /run/field/{images} -L /run/plugins -v4 -o {RUN / log}"
        field.step("run", "bash", "-c", f"setsid {shell} {criu} </dev/null >/dev/null 2>&1 &")
        if (result := field.result(name)) != expected:
            fail(f"{result}\n{field.shown_errors(log)}")
        assert not field.plugin_errors(log)
    finally:
        field.attempt("run", "pkill", "-KILL", "-x", "script|demo_program")
        field.end(name)


def test_pages_that_a_page_server_keeps_are_restored(field: Machine) -> None:
    """The plugin's own files are where CRIU dumps, not where the page server is."""
    field.become(ONE)
    field.expected()
    name = field.start("page-server", *DEMO)
    here, there = f"/run/field/images.{name}", "/run/page-server"
    try:
        field.step("run", "bash", "-c", f"mkdir -p {there} && criu page-server -D {there} --address 127.0.0.1 "
                                        f"--port 9998 --daemon -o {RUN / f'{name}.server.log'}")
        server = ("--page-server", "--address", "127.0.0.1", "--port", "9998")
        must_be(comes_back(field, name, server, (), f"ls {there}/pages-*.img && cp {there}/*.img {here}/"), EQUAL)
    finally:
        field.end(name)
        field.attempt("run", "rm", "-rf", there)


# ---- dumps that fail in the middle ---------------------------------------------------


def test_a_dump_without_space_leaves_no_file_whatever_the_space_is(field: Machine) -> None:
    field.become(ONE)
    expected = field.expected()
    name = field.start("no-space", *DEMO)
    try:
        whole = f"images.{name}.whole"
        if field.dump(name, whole, "--leave-running")[0] != 0:
            fail(f"needs: a dump\n{field.shown_errors(f'{whole}.dump.log')}")
        everything, ours = sum(field.files(whole).values()), sum(field.our_files(whole).values())
        # The last one has room for our files, and not for all of CRIU's pages.
        for size in (64 << 10, ours // 2, ours - (64 << 10), (everything + ours) // 2):
            images = f"images.{name}.{size >> 10}"
            field.step("small", images, str(size >> 10))
            status, runs = field.dump(name, images)
            left = sorted(field.our_files(images))
            field.step("run", "umount", f"/run/field/{images}")
            if status == 0 or not runs or left:
                fail(f"in {size >> 10} of {everything >> 10} KiB (ours: {ours >> 10}): status {status}, "
                     f"{'runs' if runs else 'gone'}, left: {left}\n{field.shown_errors(f'{images}.dump.log')}")
        assert field.result(name) == expected
    finally:
        field.end(name)


@pytest.mark.parametrize("kills", [
    pytest.param(3, id="three"), pytest.param(16, id="sixteen", marks=pytest.mark.heavy)])
def test_a_killed_criu_costs_the_program_nothing(field: Machine, kills: int) -> None:
    field.become(ONE)
    expected = field.expected()
    name = field.start("killed", *DEMO)
    try:
        before = field.look(name)
        whole = f"images.{name}.whole"
        if field.dump(name, whole, "--leave-running")[0] != 0:
            fail(f"needs: a dump\n{field.shown_errors(f'{whole}.dump.log')}")
        lines = len(field.log(f"{whole}.dump.log").splitlines())
        for kill in range(1, kills + 1):
            at = lines * kill // (kills + 1)
            status, runs = field.dump(name, f"images.{name}.{at}", env=field.watched(str(at), KILL))
            if status != 137 or not runs:
                fail(f"killed at line {at} of {lines}: status {status}, {field.halted(name)}")
        last = f"images.{name}.last"
        if field.dump(name, last)[0] != 0 or field.restore(last) != 0:
            fail(f"the program cannot be dumped and restored any more\n{field.shown_errors(f'{last}.dump.log')}")
        must_be(field.after_restore(name, before, expected), EQUAL)
    finally:
        field.end(name)


@pytest.mark.heavy
def test_a_killed_restore_leaves_nothing_that_is_in_the_way_of_the_next(field: Machine) -> None:
    """CRIU's own part: its tasks wait for it for ever, with or without a plugin. They can be ended, and then no process,
    no queue and no name of CRIU's in /dev/shm is left, so the image can be restored."""
    image = field.image(ONE, *DEMO)
    name, images, _ = image
    expected = field.expected()
    field.become(ONE)
    must_be(field.restored(image, expected, "unkilled"), EQUAL)
    lines = len(field.log("unkilled.restore.log").splitlines())
    for kill in range(1, RESTORE_KILLS + 1):
        at, log = lines * kill // (RESTORE_KILLS + 1), f"killed.{kill}.restore.log"
        field.hold_again(name)
        try:
            status = field.restore(images, env=field.watched(str(at), KILL), log=log)
            # Nobody has let the program continue.
            if status != 137 or (field.run / name / "result").exists():
                fail(f"killed at line {at} of {lines}: status {status}, processes {field.look(name)}")
        finally:
            field.end(name)
            # Tasks that have not become the program's yet.
            field.attempt("run", "pkill", "-KILL", "-x", "criu")
        left = field.step("run", "find", "/sys/class/kfd/kfd/proc/", "-mindepth", "1", "-maxdepth", "1")
        assert str(field.pid(name)) not in left
        # HIP 5.2 removes no file of a shared event, so other tests may have left some.
        names = {each for each in field.step("run", "ls", "/dev/shm").split() if not each.startswith("hip_event")}
        assert names <= NAMES_OF_LIBHSAKMT
    must_be(field.restored(image, expected, "after-kills"), EQUAL)


@pytest.mark.heavy
def test_a_gpu_reset_during_the_dump_is_refused(field: Machine) -> None:
    field.become(ONE)
    name = field.start("reset", *DEMO)
    images = f"images.{name}"
    reset = "for file in /sys/kernel/debug/dri/*/amdgpu_gpu_recover; do cat $file; done >/dev/null"
    try:
        # After the reset its queues do nothing any more, so its GPU is not asked.
        field.step("run", "rm", str(RUN / name / "beats"))
        status, runs = field.dump(name, images, env=field.watched("Dumping pstree", reset))
        left = field.our_files(images)
        if status == 0 or not runs or left:
            fail(f"status {status}, the program is {'there' if runs else 'gone'}, left: {sorted(left)}\n"
                 f"{field.shown_errors(f'{images}.dump.log')}")
        assert [line for line in field.plugin_errors(f"{images}.dump.log") if "reset" in line and DEMO[0] in line]
    finally:
        field.end(name)
        # The driver begins anew.
        field.forget_slots()


# The other end of a connection of a program. Asked, it sends a byte, and says whether the program's end has confirmed that
# in time.
PEER = """
import fcntl, os, socket, struct, sys, termios, time
folder = sys.argv[1]
server = socket.create_server(("127.0.0.1", 9997))
open(folder + "/listens", "w").close()
peer = server.accept()[0]
while True:
    time.sleep(0.05)
    if os.path.exists(folder + "/ask"):
        os.unlink(folder + "/ask")
        peer.send(b"x")
        end = time.monotonic() + 5
        while struct.unpack("i", fcntl.ioctl(peer, termios.TIOCOUTQ, bytes(4)))[0] and time.monotonic() < end:
            time.sleep(0.05)
        unsent = struct.unpack("i", fcntl.ioctl(peer, termios.TIOCOUTQ, bytes(4)))[0]
        with open(folder + "/answer.new", "w") as file:
            file.write("dropped" if unsent else "confirmed")
        os.rename(folder + "/answer.new", folder + "/answer")
"""


def test_a_criu_that_the_plugin_ends_gives_a_program_its_network_back(field: Machine) -> None:
    """CRIU locks the connections of a program. When the image cannot be committed, the plugin ends CRIU, and has to undo
    the locks itself."""
    field.become(ONE)
    expected, connect = field.expected(), RUN / "with-a-connection"
    (RUN / "peer.py").write_text(PEER)
    connect.write_text('#!/bin/bash\nexec 5<>/dev/tcp/127.0.0.1/9997\nexec "$@"\n')
    connect.chmod(0o755)
    field.step("run", "bash", "-c", "ip link set lo up; mkdir /run/peer; "
               f"setsid python3 {RUN}/peer.py /run/peer >/dev/null 2>&1 </dev/null & "
               "until [[ -e /run/peer/listens ]]; do sleep 0.1; done")
    name = field.start("network", *DEMO, env=(f"UNDER={connect}",))
    images = f"images.{name}"
    ask = ("rm -f /run/peer/answer; : >/run/peer/ask; until [[ -e /run/peer/answer ]]; do sleep 0.1; done; "
           "cat /run/peer/answer")
    # A folder has the manifest's name then, so nothing can be renamed to it.
    spoil = f"mkdir -p /run/field/{images}/{MANIFEST}/folder"
    try:
        assert "confirmed" in field.step("run", "bash", "-c", ask)
        # CRIU needs no other program for these locks.
        status, runs = field.dump(name, images, "--tcp-established", "--network-lock", "nftables",
                                  env=field.watched("Dumping pstree", spoil))
        answer, text = field.step("run", "bash", "-c", ask), field.shown_errors(f"{images}.dump.log")
        assert status == 1 and runs and "CRIU ends here" in text, text
        assert "confirmed" in answer, text
        assert field.result(name) == expected
    finally:
        field.attempt("run", "pkill", "-KILL", "-f", "peer.py")
        field.end(name)


# ---- several processes ----------------------------------------------------------------


def pauses(log: str) -> tuple[int, int]:
    """How many processes the plugin paused, and within how many microseconds, as CRIU's log says."""
    found = re.search(r"amdgpu_plugin.*\bpaused (\d+) processes within (\d+) us of each other", log)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def test_all_processes_of_a_tree_are_paused_at_once_and_come_back(field: Machine) -> None:
    field.become(ONE)
    words = ("field_group", "--processes", str(PROCESSES))
    expected = field.undisturbed(*words)
    name = field.start("processes", *words)
    images = f"images.{name}"
    try:
        before = field.look(name)
        if field.dump(name, images)[0] != 0:
            fail(f"the dump failed\n{field.shown_errors(f'{images}.dump.log')}")
        paused, time_us = pauses(field.log(f"{images}.dump.log"))
        if field.restore(images) != 0:
            fail(f"the restore failed\n{field.shown_errors(f'{images}.restore.log')}")
        must_be(field.after_restore(name, before, expected), EQUAL)
        assert paused == PROCESSES
        assert time_us <= PAUSES_US
    finally:
        field.end(name)


def generations_of(field: Machine, words: tuple[str, ...], expected: str, number: int) -> Outcome:
    """Dumps and restores a program several times."""
    name = field.start("generations", *words)
    try:
        first = field.look(name)
        for generation in range(number):
            images = f"images.{name}.{generation}"
            if field.dump(name, images)[0] != 0:
                fail(f"generation {generation} was not dumped\n{field.shown_errors(f'{images}.dump.log')}")
            if field.restore(images) != 0:
                fail(f"generation {generation} was not restored\n{field.shown_errors(f'{images}.restore.log')}")
        return field.after_restore(name, first, expected)
    finally:
        field.end(name)


@pytest.mark.heavy
@pytest.mark.parametrize("shape", ["three", "cycle"])
def test_shared_memory_comes_back_after_two_generations(field: Machine, shape: str) -> None:
    """In the second one nobody has allocated the memory that the first restore made."""
    field.become(ONE)
    must_be(generations_of(field, (*SHAPE, shape), field.undisturbed(*THREE), 2), EQUAL)


def test_programs_that_share_memory_are_left_running(field: Machine) -> None:
    field.become(ONE)
    must_be_left_running(field, "sharing-left-running", field.undisturbed(*PAIR), *PAIR, "--counting")


NO_DMABUF = ("for i in {1..100}; do grep -q '^Total 0 objects' /sys/kernel/debug/dma_buf/bufinfo && exit 0; sleep .1; done; "
             "cat /sys/kernel/debug/dma_buf/bufinfo; exit 1")


@pytest.mark.heavy
def test_a_restore_of_a_thousand_shared_memories_takes_at_most_a_third_more_time(field: Machine) -> None:
    """16 processes have 63 memories each. In one image each process has given them to another one."""
    seconds: dict[str, float] = {}
    for shape in ("lone", "ring"):
        image = field.image(ONE, *SHAPE, shape, "--times", "63")
        name, images, _ = image
        for _ in range(RESTORES):
            field.hold_again(name)
            try:
                begin = time.monotonic()
                if field.restore(images, log=f"{shape}.restore.log") != 0:
                    fail(f"the restore failed\n{field.shown_errors(f'{shape}.restore.log')}")
                seconds[shape] = min(seconds.get(shape, math.inf), time.monotonic() - begin)
            finally:
                field.end(name)
    print(seconds)
    assert seconds["ring"] <= MOST_FOR_SHARING * seconds["lone"], seconds


def test_a_dmabuf_of_another_driver_is_refused_with_its_exporter(field: Machine) -> None:
    field.become(ONE)
    words, expected = (*PROGRAM, "--also", "vgem"), field.expected()
    field.step("run", "modprobe", "vgem")
    try:
        must_be(field.checkpoint("vgem", expected, *words), REFUSED, "field_program", "descriptor", "drm", "none of the GPUs")
    finally:
        field.attempt("run", "modprobe", "-r", "vgem")


@pytest.mark.heavy
def test_a_restore_of_shared_memory_that_is_killed_leaves_no_process_and_no_dmabuf(field: Machine) -> None:
    image = field.image(ONE, *SHAPE, "cycle")
    name, images, _ = image
    field.become(ONE)
    # The plugin has restored a process; CRIU calls it for a mapping (UPDATE_VMA_MAP is hook 8) and to let queues run (9).
    for kill, at in enumerate(("amdgpu_plugin: restored device file", "hook 8 ->", "hook 9 ->")):
        log = f"sharing-killed.{kill}.restore.log"
        field.hold_again(name)
        try:
            status = field.restore(images, env=field.watched(at, KILL), log=log)
            # Nobody has let the program continue.
            if status != 137 or (field.run / name / "result").exists():
                fail(f"killed at '{at}': status {status}, processes {field.look(name)}\n{field.shown_errors(log)}")
        finally:
            field.end(name)
            field.attempt("run", "pkill", "-KILL", "-x", "criu")
        field.step("run", "bash", "-c", NO_DMABUF)
        left = field.step("run", "find", "/sys/class/kfd/kfd/proc/", "-mindepth", "1", "-maxdepth", "1")
        assert str(field.pid(name)) not in left
    must_be(field.restored(image, field.undisturbed(*THREE), "sharing-after-kills"), EQUAL)


# ---- other GPUs ------------------------------------------------------------------------


def test_shared_memory_comes_back_on_another_gpu(field: Machine) -> None:
    image = field.image(ONE, *SHAPE, "chain")
    field.become(OTHER)
    must_be(field.restored(image, field.undisturbed(*THREE), "sharing-moved"), EQUAL)


@pytest.mark.heavy
@pytest.mark.parametrize("shape", ["peers", "apart", "apart-freed"])
def test_memory_that_processes_on_different_gpus_share_comes_back(field: Machine, shape: str) -> None:
    field.become(TWO)
    words = (*SHAPE, shape)
    must_be(field.checkpoint(shape, field.undisturbed(*words), *words), EQUAL)


def test_a_restore_beside_another_program_takes_the_free_gpu(field: Machine) -> None:
    image, expected = field.image(ONE, *DEMO), field.expected()
    field.become(TWO)
    tenant = field.start("tenant", *DEMO)
    try:
        outcome = field.restored(image, expected, "tenant")
        assert field.result(tenant) == expected
        must_be(outcome, EQUAL)
    finally:
        field.end(tenant)


def test_a_gpu_map_chooses_the_gpu(field: Machine) -> None:
    image, expected = field.image(ONE, *DEMO), field.expected()
    field.become(TWO)
    tenant = field.start("tenant", *DEMO)
    try:
        chosen = f"AMDGPU_PLUGIN_GPU_MAP={field.gpu_ids[ONE][0]}:{field.gpu_ids[TWO][1]}"
        must_be(field.restored(image, expected, "map", env=(chosen,)), EQUAL)
    finally:
        field.end(tenant)


def test_one_image_is_restored_twice(field: Machine) -> None:
    name, images, _ = field.image(ONE, *DEMO)
    expected = field.expected()
    field.become(TWO)
    copies = [field.fresh_name("copy") for _ in range(2)]
    try:
        for copy in copies:
            field.hold_again(name)
            shutil.copytree(RUN / name, RUN / copy)
            log = f"{copy}.restore.log"
            if field.criu("restore-apart", copy, name, images, log) != 0:
                fail(f"{copy} was not restored\n{field.shown_errors(log)}")
        assert [field.result(copy) for copy in copies] == [expected, expected]
    finally:
        for copy in copies:
            field.end(copy)


# How the container's /dev is made, and the node that it has after the restore: the GPU is another node there.
HOW_DEV = {"node_in_dev": ("plain", "renderD129"), "no_node_in_dev": ("plain", ""), "dev_of_the_image": ("mounted", "")}


@pytest.mark.parametrize("how", ["node_in_dev", "no_node_in_dev",
                                 pytest.param("dev_of_the_image", marks=pytest.mark.heavy)])
def test_a_container_is_restored_where_its_gpu_has_another_node(field: Machine, how: str) -> None:
    dev, node = HOW_DEV[how]
    expected, images = field.expected(), field.container_image(dev)
    field.become(MOVED)
    root, log = f"{CONTAINERS}/{how}", f"container.{how}.restore.log"
    field.step("container", "unpack", root, str(RUN / f"{images}.tar"))
    if node:
        field.step("run", "cp", "-a", f"/dev/dri/{node}", f"{root}/dev/dri")
    try:
        if field.restore(images, "--root", root, "--pidfile", f"{root}.pid", log=log) != 0:
            fail(f"the restore failed\n{field.shown_errors(log)}")
        assert field.step("continue", f"{root}/d").splitlines()[-1] == expected
    finally:
        # The program has ended, unless something went wrong.
        field.attempt("run", "pkill", "-KILL", "-F", f"{root}.pid")
        field.step("run", "umount", "-R", "-l", root)


@pytest.mark.heavy
def test_a_container_whose_restore_fails_does_not_go_on(field: Machine) -> None:
    """Its main process is the init of a pid namespace, which survives its own signals. The last calls of the plugin are
    those for its mappings and those that let its queues run."""
    expected, images = field.expected(), field.container_image("plain")
    field.become(ONE)
    failing, record, root = "/run/plugins-failing", RUN / "record", f"{CONTAINERS}/failing"
    field.step("run", "bash", "-c", f"mkdir -p {failing} && cp {PLUGIN}/amdgpu_plugin_failing.so {failing}")
    calls, in_mappings = 0, 0
    for fault in (0, *range(1, CONTAINER_FAULTS + 1)):
        log, number = f"container.failing.{fault}.restore.log", calls + 1 - fault if fault else 0
        field.step("container", "unpack", root, str(RUN / f"{images}.tar"))
        record.write_text("")
        try:
            status = field.restore(images, "--root", root, "--pidfile", f"{root}.pid", log=log, env=(
                f"PLUGIN_DIR={failing}", f"KFD_CRIU_FAIL_CALL={number}", f"KFD_CRIU_FAIL_RECORD={record}"))
            if status == 0:
                assert field.step("continue", f"{root}/d").splitlines()[-1] == expected, f"call {number} of {calls}"
            left = field.step("run", "bash", "-c", "pgrep -x program || echo none").splitlines()[-1]
            assert left == "none", f"call {number} of {calls}, status {status}: process {left} is left"
        finally:
            field.attempt("run", "pkill", "-KILL", "-x", "program")
            field.step("run", "umount", "-R", "-l", root)
        if not fault:
            assert status == 0, field.shown_errors(log)
            calls = int(re.findall(r"^(\d+) calls$", record.read_text(), re.M)[-1])
        in_mappings += status != 0 and "hook 8" in field.log(log).partition("Error (amdgpu_plugin)")[0]
    assert in_mappings, "no call failed while a mapping was restored"


# ---- the machine ----------------------------------------------------------------------


def test_no_images_are_left_that_nothing_needs(field: Machine) -> None:
    """The images of all tests together are larger than the guest's memory."""
    field.become(ONE)
    assert field.needless_images() == []


def test_the_machines_kernel_does_not_complain(field: Machine) -> None:
    field.must_be_content()


# ---- many GPUs ---------------------------------------------------------------------------


@pytest.mark.heavy
@pytest.mark.group("field-many", seconds=300)
def test_as_many_gpus_as_a_machine_has_cost_no_descriptor() -> None:
    must_be(checkpoint_on_all_gpus("field-many", fresh(MANY_RUN), KERNEL, PLUGIN, Path(OTHER_CRIU) if OTHER_CRIU else None),
            EQUAL)


# ---- two machines ----------------------------------------------------------------------


@pytest.fixture(name="pair", scope="module")
def fixture_pair() -> Iterator[list[Machine]]:
    fresh(PAIR_RUN)
    with Machine("field-a", PAIR_RUN) as first, Machine("field-b", PAIR_RUN) as second:
        yield [first, second]


@pytest.mark.heavy
@pytest.mark.group("field-pair", seconds=300)
def test_ten_generations_between_two_machines_change_nothing(pair: list[Machine]) -> None:
    pair[0].become(ONE)
    pair[1].become(OTHER)
    expected = pair[0].expected()
    name = pair[0].start("generations", *PROGRAM, "--children", "low", "--also", "kfd")
    first = pair[0].look(name)
    sizes: list[dict[str, int]] = []
    for generation in range(GENERATIONS):
        here, there = pair[generation % 2], pair[(generation + 1) % 2]
        images = f"images.{generation}"
        if here.dump(name, images)[0] != 0:
            fail(f"generation {generation} was not dumped\n{here.shown_errors(f'{images}.dump.log')}")
        sizes.append(here.our_files(images))
        here.step("put", images)
        there.step("get", images)
        if there.restore(images) != 0:
            fail(f"generation {generation} was not restored\n{there.shown_errors(f'{images}.restore.log')}")
        looks = there.look(name)
        if changed := difference(first, looks):
            fail(f"generation {generation}: {changed}")
        assert [each.vram for each in looks] == [each.vram for each in first]
    assert pair[GENERATIONS % 2].result(name) == expected
    # The owner of the inherited files has the higher pid: the first restore opens them apart for it and for its children.
    first, *later = sizes
    assert {len(files) - len(first) for files in later} == {INHERITED_FILES}, sizes
    totals = [sum(files.values()) for files in later]
    assert max(totals) - min(totals) <= METADATA_BYTES, totals
