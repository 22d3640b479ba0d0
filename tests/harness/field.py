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
from dataclasses import dataclass, field
from pathlib import Path
from typing import Sequence

from . import paths
from .places import TIMED_OUT
from .steps import EXIT_INFRA, StepMachine, fail, need_built, need_criu, once

EQUAL, REFUSED = "equal", "refused"
# Outcomes that are none of the good ones.
LOST, LIED = "lost", "lied"
PROGRAMS = {"demo_program": "kfdtest-criu/demo_program", "hip_demo": "hiptest/hip_demo",
            **{name: f"fieldtest/{name}" for name in ("field_program", "field_group", "field_hip")}}
SHOWN_ERRORS, VM_LIMIT_S = 6, 3600
GUEST_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
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


class Field(StepMachine):
    """One virtual machine with several GPUs; reloading the driver makes several machines of it, each with
    some of the GPUs. `plugin` is the folder of the plugin, `criu` that of another criu than the guest's."""

    def __init__(self, name: str, run: Path, gpus: Sequence[str], kernel: str, plugin: Path,
                 criu: Path | None = None) -> None:
        need_criu()
        need_built(kernel, "fieldtest/criu_watch", *PROGRAMS.values())
        options = ["--kernel", kernel, "--mem", "3G", "--share", str(run), "--no-driver"]
        options += [word for gpu in gpus for word in ("--gpu", gpu)]
        command = [str(paths.SCRIPTS / "guest/field.sh"), str(run), str(paths.built("release")), str(plugin)]
        command += [f"PATH={criu}:{GUEST_PATH}"] if criu else []
        super().__init__(name, options, command, VM_LIMIT_S)
        self.run = run
        self._slots = ""
        # By slots, in the order of their nodes.
        self.gpu_ids: dict[str, list[str]] = {}
        # Names of folders that are used; programs of different tests must not share one.
        self._names = 0

    # ---- the machine -------------------------------------------------------------

    def become(self, slots: str) -> None:
        """Has the GPUs in these slots and no others from now on."""
        if self._slots != slots:
            self._slots = ""
            self.gpu_ids[slots] = re.findall(r"^gpu_id (\d+)", self.step("machine", slots), re.M)
            self._slots = slots

    def forget_slots(self) -> None:
        """The next test needs the driver loaded anew."""
        self._slots = ""

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
        """The processes of a program."""
        status, text = self.attempt("look", name, lines=None)
        if status == EXIT_INFRA:
            fail(text)
        return parse_look(text)

    def pid(self, name: str) -> int:
        """The process id of a program."""
        return int((self.run / name / "state").read_text().split()[1])

    def result(self, name: str) -> str:
        """Lets a program continue. Its result, or what went wrong with it."""
        status, text = self.attempt("continue", name)
        return text.splitlines()[-1] if status == 0 else f"no result:\n{text}"

    def end(self, name: str) -> None:
        """Ends the processes of a program."""
        self.step("end", name)

    # ---- CRIU --------------------------------------------------------------------

    def criu(self, *words: str) -> tuple[int, bool]:
        """A step that runs CRIU: CRIU's status, and whether the program exists then."""
        text = self.step(*words)
        found = re.search(r"^status (\d+)$", text, re.M)
        if found is None or int(found[1]) == TIMED_OUT:
            fail(f"CRIU did not end: {words}\n{text}")
        return int(found[1]), "program runs" in text

    def dump(self, name: str, images: str, *options: str, env: Sequence[str] = ()) -> tuple[int, bool]:
        """Dumps a program; the log is IMAGES.dump.log."""
        return self.criu(*env, "dump", name, images, f"{images}.dump.log", *options)

    def watched_dump(self, name: str, images: str, where: str, command: str) -> tuple[int, bool]:
        """Dumps a program, and runs the command when CRIU's log comes to `where`."""
        return self.criu("watched-dump", name, images, f"{images}.dump.log", where, command)

    def restore(self, images: str, *options: str, env: Sequence[str] = (), log: str = "") -> int:
        """Restores a program; the log is IMAGES.restore.log unless said."""
        return self.criu(*env, "restore", images, log or f"{images}.restore.log", *options)[0]

    def files(self, images: str) -> dict[str, int]:
        """The files in a folder of images and their sizes."""
        lines = [line.split(" ", 1) for line in self.step("files", images).splitlines()]
        return {name: int(size) for size, name in lines}

    def our_files(self, images: str) -> dict[str, int]:
        """The plugin's files in a folder of images."""
        return {name: size for name, size in self.files(images).items() if name.startswith("amdgpu-")}

    # ---- what became of it ---------------------------------------------------------

    def shown_errors(self, log: str) -> str:
        return "\n".join(f"    | {line}" for line in self.errors(log)[:SHOWN_ERRORS])

    def after_refusal(self, name: str, images: str, expected: str) -> Outcome:
        """What became of a program whose dump failed."""
        log = f"{images}.dump.log"
        processes = self.look(name)
        if not processes:
            return Outcome(LOST, f"the dump failed and the program is gone\n{self.shown_errors(log)}")
        if any(each.stopped for each in processes):
            return Outcome(LOST, f"the dump failed and the program is stopped: {processes}")
        if left := self.our_files(images):
            return Outcome(LIED, f"the dump failed and left {sorted(left)}\n{self.shown_errors(log)}")
        result = self.result(name)
        if result != expected:
            return Outcome(LOST, f"the dump failed, and the program has no right result: {result}")
        return Outcome(REFUSED, line=next(iter(self.plugin_errors(log) or self.errors(log)), ""))

    def after_restore(self, name: str, before: list[Process], expected: str) -> Outcome:
        """What became of a program that was restored."""
        if changed := difference(before, self.look(name)):
            return Outcome(LIED, changed)
        result = self.result(name)
        if result != expected:
            return Outcome(LIED, f"dump and restore succeeded, and the program has no right result: {result}")
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
                return Outcome(LIED, f"the dump said 0; the program {'runs' if runs else 'ended'}; "
                                     f"errors:\n{self.shown_errors(f'{images}.dump.log')}")
            if self.restore(images) != 0:
                return Outcome(LOST, f"the dump said 0 and ended the program; the restore failed\n"
                                     f"{self.shown_errors(f'{images}.restore.log')}")
            return self.after_restore(name, before, expected)
        finally:
            self.end(name)


def path_of(program: str) -> str:
    """The path of a built program."""
    return str(paths.built("release") / PROGRAMS[program])
