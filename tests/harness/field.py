# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""A machine in which programs are dumped and restored, and the judge of what became of them: tests/test_field.py.

A dump and a restore of a program have two good outcomes. EQUAL: the program came back with the same
processes and descriptors, and its result is that of an undisturbed run. REFUSED: `criu dump` failed,
left nothing that could be restored, and the program continues to its right result. Everything
else is an outcome that a user must never see, and Outcome.text says what it was.
"""
from __future__ import annotations

import re
import shutil
import subprocess
import tarfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Mapping, Sequence

import pytest

from . import chip, paths, plan
from .machines import TIMED_OUT
from .steps import EXIT_INFRA, StepMachine, fail, need_built, need_criu, once

DEMO = ("demo_program",)
EQUAL, REFUSED = "equal", "refused"
# Outcomes that are none of the good ones.
LOST, WRONG = "lost", "wrong"
PROGRAMS = {"demo_program": "kfdtest-criu/demo_program", "hip_demo": "hiptest/hip_demo",
            **{name: f"fieldtest/{name}" for name in ("field_program", "field_group", "field_hip", "field_render",
                                                            "field_vmm", "field_hip_vmm", "field_hip_ipc", "field_hsa_vmm",
                                                      "field_rccl")}}
SHOWN_ERRORS, VM_LIMIT_S, EXIT_LIMIT_S = 6, 3600, 30
# Seconds for the driver to be loaded with many GPUs on a busy host.
LOAD_LIMIT_S = 600
# Slots of a PCI bus.
SLOTS = 32
GUEST_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# Where field.sh looks for CRIU before it takes the guest's.
CRIU_COPY, IMAGES_DIR = "/run/criu-copy", "/run/field"
# How the log of CRIU names the plugin.
PLUGIN = "amdgpu_plugin"


@dataclass(frozen=True)
class Outcome:
    """What became of a program. `text` tells people more; `line` is what the plugin said of a refusal."""

    kind: str
    text: str = ""
    line: str = ""

    def __str__(self) -> str:
        return f"{self.kind}: {self.text or self.line}"


@dataclass
class Process:
    """A process as /proc shows it. Numbers of pipes and the like differ from run to run, and so do the render nodes
    of different GPUs, so neither is part of a descriptor's target."""

    pid: int
    state: str = ""
    tracer: int = 0
    threads: list[str] = field(default_factory=list)
    files: dict[int, str] = field(default_factory=dict)
    flags: dict[int, str] = field(default_factory=dict)
    mappings: int = 0
    vram: int = 0
    queues: int = 0

    @property
    def stopped(self) -> bool:
        """Something has stopped the process, or a thread of it."""
        return self.tracer != 0 or any(state[0] in "tTZX" for state in (self.state, *self.threads))


def parse_look(text: str) -> list[Process]:
    """The processes that the step `look` of field.sh printed, in the order of their ids."""
    processes: list[Process] = []
    for line in text.splitlines():
        words = line.split()
        if line.startswith("process "):
            processes.append(Process(int(words[1])))
        elif not processes:
            continue
        elif line.startswith("State:"):
            processes[-1].state = words[1]
        elif line.startswith("thread State:"):
            processes[-1].threads.append(words[2])
        elif line.startswith("TracerPid:"):
            processes[-1].tracer = int(words[1])
        elif line.startswith("mappings "):
            processes[-1].mappings = int(words[1])
        elif line.startswith("queues "):
            processes[-1].queues = int(words[1])
        elif found := re.search(r" (\d+) -> (.*)$", line):
            target = re.sub(r"\[\d+\]", "", found[2])
            processes[-1].files[int(found[1])] = re.sub(r"renderD\d+", "renderD", target)
        elif found := re.search(r"/fdinfo/(\d+):flags:\s*(\d+)$", line):
            processes[-1].flags[int(found[1])] = found[2]
        elif found := re.search(r"/vram_\d+:(\d+)$", line):
            processes[-1].vram += int(found[1])
    return sorted(processes, key=lambda each: each.pid)


def difference(before: Sequence[Process], after: Sequence[Process]) -> str:
    """What is not the same after the restore, of what a program can see; empty if all is."""
    if [each.pid for each in before] != [each.pid for each in after]:
        return f"processes {[each.pid for each in before]} have become {[each.pid for each in after]}"
    for old, new in zip(before, after):
        numbers = sorted(set(old.files) | set(new.files))
        changed = [f"{number}: {old.files.get(number)} -> {new.files.get(number)}" for number in numbers
                   if old.files.get(number) != new.files.get(number)]
        changed += [f"{number}: flags {old.flags.get(number)} -> {new.flags.get(number)}" for number in numbers
                    if number in new.files and old.flags.get(number) != new.flags.get(number)]
        if changed:
            return f"descriptors of process {old.pid}: {'; '.join(changed)}"
        if old.mappings != new.mappings:
            return f"process {old.pid}: {old.mappings} mappings of devices have become {new.mappings}"
        if old.queues != new.queues:
            return f"process {old.pid}: {old.queues} queues have become {new.queues}"
    return ""


@dataclass(frozen=True)
class Case:
    """A program, what has to become of it, and words that the line of a refusal has. The undisturbed program
    with the right result is `reference`."""

    name: str
    words: tuple[str, ...]
    wanted: str
    says: tuple[str, ...] = ()
    reference: tuple[str, ...] = DEMO
    heavy: bool = False


PROGRAM = ("field_program",)
PAIR, RENDER, SHAPE, VMM = ("field_group", "--shared"), ("field_render",), ("field_group", "--shape"), ("field_vmm",)
THREE = (*SHAPE, "three")

# Memory that processes and drivers share. The programs use queues, copies by SDMA and mappings, but no waves, so chips that
# execute none can run them.
SHARING = (
    Case("two_processes", PAIR, EQUAL, reference=PAIR),
    Case("two_processes_that_count", (*PAIR, "--counting"), EQUAL, reference=PAIR),
    Case("three_processes", THREE, EQUAL, reference=THREE),
    Case("a_chain", (*SHAPE, "chain"), EQUAL, reference=THREE),
    Case("a_cycle", (*SHAPE, "cycle"), EQUAL, reference=THREE),
    Case("freed_by_the_process_that_allocated_it", (*SHAPE, "freed"), EQUAL, reference=THREE),
    Case("allocated_by_a_process_that_has_ended", (*SHAPE, "ended"), EQUAL, reference=THREE),
    Case("open_dmabufs", (*SHAPE, "kept"), EQUAL, reference=THREE),
    Case("open_dmabufs_of_a_program_without_a_gpu", (*SHAPE, "kept-plain"), EQUAL, reference=THREE),
    Case("a_dmabuf_on_its_way_through_a_socket", (*SHAPE, "kept-queued"), REFUSED,
         ("field_group", "somebody outside"), THREE),
    Case("objects_of_a_render_node", RENDER, EQUAL, reference=RENDER),
    Case("sync_files_of_finished_work", (*RENDER, "--sync-files", "--children"), EQUAL, reference=RENDER),
    Case("gem_objects_in_two_files", (*RENDER, "--share"), EQUAL, reference=RENDER),
    Case("gem_objects_shared_with_kfd", (*RENDER, "--share", "--kfd"), EQUAL, reference=(*RENDER, "--kfd")),
    Case("memory_mapped_as_hip_does_it", VMM, EQUAL, reference=VMM),
)


def table(cases: Sequence[Case]) -> list:
    """The cases as parameters of a test."""
    return [pytest.param(case, id=case.name, marks=[pytest.mark.heavy] if case.heavy else []) for case in cases]


def must_be(outcome: Outcome, wanted: str, *says: str) -> None:
    """Fails unless the outcome is the wanted one, and a refusal has these words."""
    if outcome.kind != wanted:
        fail(f"wanted: {wanted}; {outcome}")
    if missing := [word for word in says if word.lower() not in outcome.line.lower()]:
        fail(f"the refusal does not say {missing}: {outcome.line}")


def chosen_chip() -> str:
    """The chip of the GPUs."""
    try:
        return chip.chosen()
    except plan.PlanError as error:
        fail(str(error))


class Field(StepMachine):
    """One virtual machine with several GPUs; reloading the driver makes several machines of it, each with
    some of the GPUs. `gpus` are chips and PCI slots, slot + SLOTS * F for function F; `plugin` is the folder of the plugin, `criu` that of another criu
    than the guest's. With `root`, of scripts/root.py, the guest has that root and its CRIU. `env` is for all steps, and
    `cpus` are the guest's processors."""

    def __init__(self, name: str, run: Path, gpus: Mapping[int, str], kernel: str, plugin: Path,  # pylint: disable=too-many-arguments
                 criu: Path | None = None, vram: str = "256M", root: str = "", env: Sequence[str] = (),
                 cpus: int = 2) -> None:
        need_criu()
        need_built(kernel, "fieldtest/criu_watch", "fieldtest/field_look", *PROGRAMS.values())
        options = ["--kernel", kernel, "--smp", str(cpus), "--mem", "3G", "--share", str(run), "--no-driver"]
        options += [word for slot, gpu in gpus.items()
                    for word in ("--gpu", f"{gpu},vram={vram},slot={slot % SLOTS}.{slot // SLOTS}")]
        options += [*(["--root", root] if root else []), *(word for item in env for word in ("--env", item))]
        command = [str(paths.SCRIPTS / "guest/field.sh"), str(run), str(paths.built("release")), str(plugin)]
        command += [f"PATH={criu}:{GUEST_PATH}"] if criu else []
        super().__init__(name, options, command, VM_LIMIT_S)
        self.run, self._plugin, self._criu, self._root = run, plugin, criu, root
        # Slots that the driver has now; empty: it is not loaded, or the next test wants it loaded anew.
        self.slots = ""
        self._all_slots = tuple(gpus)
        # By slots, in the order of their nodes.
        self.gpu_ids: dict[str, list[str]] = {}
        # Names of folders that are used; programs of different tests must not share one.
        self._names = 0
        # Programs whose images later tests restore.
        self._kept: set[str] = set()

    # ---- the machine -------------------------------------------------------------

    def become(self, slots: str) -> None:
        """Has the GPUs in these slots and no others from now on."""
        if self.slots == slots:
            return
        self.copy_criu()
        self.slots = ""
        chosen = [int(slot) for slot in slots.split(",")]
        # An empty driver_override lets amdgpu have the GPU; with another one, no driver fits it.
        devices = [f"0000:00:{slot % SLOTS:02x}.{slot // SLOTS}={'' if slot in chosen else 'none'}"
                   for slot in self._all_slots]
        self.gpu_ids[slots] = re.findall(r"^gpu_id (\d+)", self.step("machine", str(len(chosen)), *devices,
                                                                              limit_s=LOAD_LIMIT_S), re.M)
        self.slots = slots

    @once("CRIU in the guest's memory")
    def copy_criu(self) -> None:
        """Copies CRIU, and the libraries of it and of the plugin, to where field.sh looks first."""
        if self._root:
            return
        criu = str(self._criu / "criu" if self._criu else shutil.which("criu"))
        files = [criu, *libraries(criu, str(self._plugin / "amdgpu_plugin.so"))]
        self.step("run", "bash", "-c", 'mkdir "$0" && cp -- "$@" "$0"', CRIU_COPY, *files)

    def forget_slots(self) -> None:
        """The next test needs the driver loaded anew."""
        self.slots = ""

    def fresh_name(self, what: str) -> str:
        """A name for a program or for images, of which no other test knows."""
        self._names += 1
        return f"{what}.{self._names}"

    def log(self, name: str) -> str:
        """The text of a log of CRIU."""
        path = self.run / name
        return path.read_text(errors="replace") if path.exists() else ""

    def errors(self, name: str) -> list[str]:
        """The lines of a log that are errors, CRIU's and the plugin's."""
        return [line for line in self.log(name).splitlines() if "Error (" in line]

    def plugin_errors(self, name: str) -> list[str]:
        """The lines of a log that are errors of the plugin."""
        return [line for line in self.errors(name) if PLUGIN in line]

    # ---- a program ----------------------------------------------------------------

    @once("the result of an undisturbed {0}")
    def undisturbed(self, *words: str) -> str:
        return self.step("undisturbed", self.fresh_name("reference"), path_of(words[0]), *words[1:]).splitlines()[-1]

    def start(self, what: str, *words: str, env: Sequence[str] = ()) -> str:
        """Starts a program that can be dumped; returns its name."""
        name = self.fresh_name(what)
        self.step(*env, "start", name, path_of(words[0]), *words[1:])
        return name

    def look(self, name: str) -> list[Process]:
        """The processes of a program, which are all that are in its session."""
        return self._look(str(self.pid(name)))

    def halted(self, name: str) -> str:
        """What keeps a program from going on; empty if nothing: its processes exist, none is stopped, and its GPU
        works. Of programs that have no beat (kfdtest-criu/demo/message_files.h) the last is not known."""
        status, text = self.attempt("is-running", name)
        if status == EXIT_INFRA:
            fail(text)
        return "" if status == 0 else text or f"status {status}"

    def is_gone(self, name: str) -> bool:
        """Waits until the program has no process."""
        return not self._look(str(self.pid(name)), str(EXIT_LIMIT_S))

    def _look(self, *words: str) -> list[Process]:
        status, text = self.attempt("look", *words, lines=None)
        if status == EXIT_INFRA:
            fail(text)
        return parse_look(text)

    def pid(self, name: str) -> int:
        """The process id of a program."""
        return int((self.run / name / "state").read_text().split()[1])

    def hold_again(self, name: str) -> None:
        """An image of the program can be restored once more, and waits again."""
        for file in ("go", "result"):
            (self.run / name / file).unlink(missing_ok=True)

    def result(self, name: str) -> str:
        """Lets a program continue. Its result, or what went wrong with it."""
        status, text = self.attempt("continue", str(self.run / name))
        return text.splitlines()[-1] if status == 0 else f"no result:\n{text}"

    def keep(self, name: str) -> None:
        """The images of this program outlive it, for later tests."""
        self._kept.add(name)

    def end(self, name: str) -> None:
        """Ends the processes of a program and removes its images; the guest's memory cannot hold those of all tests."""
        self.step("end", str(self.pid(name)), *([] if name in self._kept else [f"images.{name}"]))

    def needless_images(self) -> list[str]:
        """The folders of images in the guest's memory that no later test restores."""
        folders = self.step("run", "find", IMAGES_DIR, "-mindepth", "1", "-maxdepth", "1", "-type", "d",
                            "-printf", r"%f\n").splitlines()
        return sorted(set(folders) - {f"images.{name}" for name in self._kept})

    # ---- CRIU --------------------------------------------------------------------

    def criu(self, *words: str) -> int:
        """A step that runs CRIU: CRIU's status."""
        text = self.step(*words)
        found = re.search(r"^status (\d+)$", text, re.M)
        if found is None or int(found[1]) == TIMED_OUT:
            fail(f"CRIU did not end: {words}\n{text}")
        return int(found[1])

    def dump(self, name: str, images: str, *options: str, env: Sequence[str] = ()) -> tuple[int, bool]:
        """Dumps a program; the log is IMAGES.dump.log. CRIU's status, and whether the program goes on then."""
        pid = str(self.pid(name))
        status = self.criu(*env, "dump", pid, images, f"{images}.dump.log", *options)
        if status == 0 and "--leave-running" not in options:
            # CRIU does not wait for the end of what it kills.
            return status, not self.is_gone(name)
        if why := self.halted(name):
            print(f"{name} does not go on: {why}")
        return status, not why

    @staticmethod
    def watched(where: str, command: str) -> tuple[str, str]:
        """Variables for a dump or a restore: the command runs when CRIU's log comes to `where`."""
        return f"WATCH_AT={where}", f"WATCH_RUN={command}"

    def restore(self, images: str, *options: str, env: Sequence[str] = (), log: str = "") -> int:
        """Restores a program; the log is IMAGES.restore.log unless said."""
        return self.criu(*env, "restore", images, log or f"{images}.restore.log", *options)

    def files(self, images: str) -> dict[str, int]:
        """The files in a folder of images and their sizes."""
        lines = [line.split(" ", 1) for line in self.step("files", images).splitlines()]
        return {name: int(size) for size, name in lines}

    def our_files(self, images: str) -> dict[str, int]:
        """The plugin's files in a folder of images."""
        return {name: size for name, size in self.files(images).items() if name.startswith("amdgpu-")}

    # ---- a container ---------------------------------------------------------------

    def pack_root(self, tar: Path, *programs: str) -> None:
        """Makes a tar file with /program, the first of these, the others where they are here, and their libraries. The
        machine has this host's files."""
        with tarfile.open(tar, "w", dereference=True) as packed:
            packed.add(programs[0], "program")
            for file in sorted({*programs[1:], *libraries(*programs)}):
                packed.add(file)

    # ---- what became of it ---------------------------------------------------------

    def shown_errors(self, log: str) -> str:
        return "\n".join(f"    | {line}" for line in self.errors(log)[:SHOWN_ERRORS])

    def after_refusal(self, name: str, images: str, expected: str) -> Outcome:
        """What became of a program whose dump failed."""
        log = f"{images}.dump.log"
        if why := self.halted(name):
            return Outcome(LOST, f"the dump failed, and {why}\n{self.shown_errors(log)}")
        if left := self.our_files(images):
            return Outcome(WRONG, f"the dump failed and left {sorted(left)}\n{self.shown_errors(log)}")
        result = self.result(name)
        if result != expected:
            return Outcome(LOST, f"the dump failed, and the program has no right result: {result}")
        return Outcome(REFUSED, line=next(iter(self.plugin_errors(log) or self.errors(log)), ""))

    def after_restore(self, name: str, before: list[Process], expected: str) -> Outcome:
        """What became of a program that was restored."""
        if changed := difference(before, self.look(name)):
            return Outcome(WRONG, changed)
        result = self.result(name)
        if result != expected:
            return Outcome(WRONG, f"dump and restore succeeded, and the program has no right result: {result}")
        return Outcome(EQUAL)

    def checkpoint(self, what: str, expected: str, *words: str, dump_env: Sequence[str] = ()) -> Outcome:
        """Starts a program, dumps it and restores it. What became of it."""
        name = self.start(what, *words)
        images = f"images.{name}"
        try:
            before = self.look(name)
            status, runs = self.dump(name, images, env=dump_env)
            if status != 0:
                return self.after_refusal(name, images, expected)
            if runs or self.plugin_errors(f"{images}.dump.log"):
                return Outcome(WRONG, f"the dump said 0; the program {'runs' if runs else 'ended'}; "
                                      f"errors:\n{self.shown_errors(f'{images}.dump.log')}")
            if self.restore(images) != 0:
                return Outcome(LOST, f"the dump said 0 and ended the program; the restore failed\n"
                                     f"{self.shown_errors(f'{images}.restore.log')}")
            return self.after_restore(name, before, expected)
        finally:
            self.end(name)


def checkpoint_on_all_gpus(name: str, run: Path, kernel: str, plugin: Path, criu: Path | None = None,  # pylint: disable=too-many-arguments
                           root: str = "", env: Sequence[str] = ()) -> Outcome:
    """What becomes of a program on as many GPUs as KFD and the host process of virtual GPUs take."""
    slots = [slot + SLOTS * function for function in range(4) for slot in range(16, 32)]
    with Field(name, run, {slot: chosen_chip() for slot in slots}, kernel, plugin, criu, "64M", root, env) as machine:
        machine.become(",".join(map(str, slots)))
        words = (*PROGRAM, "--late")
        return machine.checkpoint("many", machine.undisturbed(*words), *words)


def libraries(*programs: str) -> set[str]:
    """The paths of the shared libraries that these programs or libraries need."""
    linked = subprocess.run(["ldd", *programs], check=True, stdout=subprocess.PIPE, text=True).stdout
    return set(re.findall(r"(?:=> |^\t)(/\S+) \(", linked, re.M))


def path_of(program: str) -> str:
    """The path of a built program."""
    return str(paths.built("release") / PROGRAMS[program])
