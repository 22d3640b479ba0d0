# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""A language model on a virtual GPU that CRIU moves from machine to machine in the middle of its answer.

tests/test_llm.py tests it step by step, scripts/demo_llm.py shows it. All machines have the root llm: llama.cpp with
its HIP backend, ROCm and CRIU of Debian's unstable release, unchanged. The model is that of scripts/tiny_model.py. Each
machine boots anew, has the chip (a gfx906 unless said) in another PCI slot than the machine before, and other GPUs beside it. Images, answers,
llama.cpp's and CRIU's logs: out/llm.
"""
from __future__ import annotations

import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable, Iterator

import pytest

from . import paths
from .steps import StepMachine, fail, fresh, need_built, once

# What a step raises that has failed.
Failed = pytest.fail.Exception

RUN = paths.OUT / "llm"
PLUGINS = paths.built("release") / "plugin"
ROOT_NAME = "llm"
# What scripts/build.sh has to build.
TARGETS = ("vasicd", "amdgpu_plugin")
GUEST, CHECKPOINT = (str(paths.SCRIPTS / "guest" / name) for name in ("llm.sh", "checkpoint.sh"))
MODEL = RUN / "model.gguf"
PROMPT = "Tell me of a journey."
# Words that a machine waits for before it dumps, and those of the answer for each machine. The model computes further
# words until CRIU has started and stops it.
WORDS_BEFORE_DUMP, WORDS_PER_MACHINE = 6, 64
# llama.cpp keeps the prompt and the answer in memory for this many tokens.
CONTEXT = 4096
MOST_MOVES = 60
MEM = "3G"
# Without KVM, and beside other work, a step may take many minutes.
VM_LIMIT_S, STEP_LIMIT_S = 7200, 2400
# The model in 32 bits keeps its words in 32 bits too, because with 16 the processor and the GPU round differently.
LLAMA = ("llama-completion", "-m", str(MODEL), "-p", PROMPT, "-no-cnv", "--no-warmup", "--no-display-prompt", "--seed", "7",
         "--ignore-eos", "-fa", "off", "-ctk", "f32", "-ctv", "f32", "-c", str(CONTEXT), "-fit", "off", "-t", "1")
# llama.cpp ends with an error if it does not find the device that is named.
ON_GPU = (*LLAMA, "--device", "ROCm0", "-ngl", "99")
# Without a GPU to look at, llama.cpp's HIP backend does not prepare its 1.3 GB of kernels.
ON_CPU = ("env", "HIP_VISIBLE_DEVICES=-1", *LLAMA, "--device", "none")


@dataclass(frozen=True)
class MachineKind:
    """What the machines of one kind have."""

    letter: str
    # Their GPUs, as options of scripts/vm.sh. {chip} is the one that llama.cpp has.
    gpus: tuple[str, ...]


MACHINE_KINDS = (
    MachineKind("A", ("{chip},vram=1G,slot=16",)),
    MachineKind("B", ("gfx803,vram=256M,slot=17", "{chip},vram=1G,slot=20")),
    MachineKind("C", ("{chip},vram=1G,slot=18", "gfx1030,vram=256M,slot=24")),
)
# Chips on which llama.cpp can answer: the second one by matrix instructions.
CHIPS = ("gfx906", "gfx90a")


@dataclass(frozen=True)
class Phase:
    """Something that took time, in seconds of this host since the beginning."""

    machine: str
    what: str
    begin: float
    seconds: float


@dataclass
class AnswerPart:
    """The part of the answer that one machine has computed, and what it took. Times are seconds of the guest."""

    machine: str
    gpus: tuple[str, ...]
    # KFD's numbers of the machine's GPUs, and the render node that llama.cpp has.
    gpu_ids: tuple[str, ...]
    node: str
    # Until the first word of the answer, or CRIU's restore.
    start_s: float
    # Words of the answer that were there before, and are there now.
    before: int = 0
    after: int = 0
    # Words that were counted while a clock ran, and how long that was.
    counted: int = 0
    counted_s: float = 0.0
    # CRIU's dump; 0 and 0 of the last machine.
    dump_s: float = 0.0
    image_mib: float = 0.0

    @property
    def words_per_s(self) -> float:
        return self.counted / self.counted_s if self.counted_s else 0.0


class LlmMachine(StepMachine):
    """A machine with the root llm."""

    def __init__(self, number: int, chip: str) -> None:
        kind = MACHINE_KINDS[number % len(MACHINE_KINDS)]
        self.label = f"{number + 1} ({kind.letter})"
        self.gpus = tuple(gpu.format(chip=chip) for gpu in kind.gpus)
        options = ["--root", ROOT_NAME, "--kernel", "criu", "--mem", MEM, "--share", str(RUN)]
        options += [word for gpu in self.gpus for word in ("--gpu", gpu)]
        super().__init__(f"llm-{number + 1}", options, (), VM_LIMIT_S)

    def llm(self, *words: str) -> list[str]:
        """A step of llm.sh that has to succeed; the words of its last line."""
        lines = self.step(GUEST, str(RUN), str(PLUGINS), *words, limit_s=STEP_LIMIT_S).splitlines()
        return lines[-1].split() if lines else []

    def gpu_ids(self) -> tuple[str, ...]:
        lines = self.step(CHECKPOINT, str(RUN), str(PLUGINS), "gpus").splitlines()
        return tuple(line.split()[1].rstrip(":") for line in lines if line.startswith("gpu_id "))


def answer_of(name: str) -> str:
    """The answer of the run NAME, without the line ends that llama.cpp adds."""
    file = RUN / name / "answer"
    return file.read_bytes().decode(errors="replace").strip() if file.exists() else ""


def image_mib(name: str) -> float:
    return sum(file.stat().st_size for file in (RUN / name).iterdir()) / (1 << 20)


@dataclass
class MovedRun:
    """The undisturbed runs, and the run that is moved `moves` times. As a context manager it shuts down the machine that
    runs when something fails."""

    moves: int
    kind: str = "f32"
    chip: str = CHIPS[0]
    # Gets a line for people, whenever something was done.
    say: Callable[[str], None] = lambda _: None
    phases: list[Phase] = field(default_factory=list)
    _begin: float = field(default_factory=time.monotonic)
    _machine: LlmMachine | None = None

    def __enter__(self) -> MovedRun:
        return self

    def __exit__(self, *_: object) -> None:
        if self._machine:
            self._machine.finish()

    @property
    def words(self) -> int:
        """Words of the whole answer."""
        return WORDS_PER_MACHINE * (self.moves + 1)

    def command(self, words: tuple[str, ...]) -> tuple[str, ...]:
        """The command with the length of the answer."""
        return (*words, "-n", str(self.words))

    @once("the model")
    def prepare(self) -> None:
        """Makes what the machines find in RUN."""
        need_built("criu", "plugin/amdgpu_plugin.so")
        if not (paths.OUT / "roots" / ROOT_NAME / "root.stamp").exists():
            fail(f"the root {ROOT_NAME} is not there: scripts/root.py {ROOT_NAME}")
        fresh(RUN)
        subprocess.run([sys.executable, "-B", str(paths.SCRIPTS / "tiny_model.py"), "--type", self.kind, str(MODEL)], check=True)

    # ---- machines ----

    def _timed(self, machine: LlmMachine, what: str, do: Callable[[], object]) -> object:
        """Does it, and notes how long it took."""
        begin = time.monotonic()
        result = do()
        self.phases.append(Phase(machine.label, what, begin - self._begin, time.monotonic() - begin))
        return result

    @once("machine {0}")
    def machine(self, number: int) -> LlmMachine:
        """Boots the machine with this number; the one before it must be off."""
        self.prepare()
        self._machine = LlmMachine(number, self.chip)
        self.say(f"machine {self._machine.label} boots: {' and '.join(self._machine.gpus)}")
        self._timed(self._machine, "boot", self._machine.boot)
        return self._machine

    def _end(self, machine: LlmMachine) -> None:
        """Shuts the machine down; its kernel must not have complained."""
        machine.must_be_content()
        self._machine = None

    # ---- undisturbed runs, in the first machine ----

    def _whole(self, name: str, words: tuple[str, ...]) -> str:
        machine = self.machine(0)
        seconds = self._timed(machine, f"undisturbed, {name}", lambda: machine.llm("whole", name, *self.command(words))[-1])
        text = answer_of(name)
        if len(text.split()) != self.words:
            fail(f"the undisturbed answer of the {name} has {len(text.split())} words instead of {self.words}: {text}")
        self.say(f"undisturbed run on the {name}: {self.words} words in {seconds} s")
        return text

    @once("the undisturbed answer of the processor")
    def cpu(self) -> str:
        return self._whole("processor", ON_CPU)

    @once("the undisturbed answer of the GPU")
    def gpu(self) -> str:
        return self._whole("GPU", ON_GPU)

    # ---- the run that is moved ----

    @once("the answer up to the end of machine {0}")
    def part(self, number: int) -> AnswerPart:
        """What machine NUMBER did: it begins the answer or continues it, and saves it or ends it."""
        if number == 0:
            self.cpu()
            self.gpu()
        else:
            self.part(number - 1)
        machine = self.machine(number)
        begun = self._begun(machine) if number == 0 else self._restored(machine, number)
        if number == self.moves:
            self._finished(machine, begun)
        else:
            self._dumped(machine, number, begun)
        self._end(machine)
        return begun

    def _begun(self, machine: LlmMachine) -> AnswerPart:
        gpu_ids = machine.gpu_ids()
        pid, seconds, *nodes = self._timed(machine, "start", lambda: machine.llm("start", "moved", *self.command(ON_GPU)))
        self.say(f"llama.cpp is process {pid} on {' '.join(nodes)}: the first word after {seconds} s")
        return AnswerPart(machine.label, machine.gpus, gpu_ids, " ".join(nodes), float(seconds))

    def _restored(self, machine: LlmMachine, number: int) -> AnswerPart:
        gpu_ids, before = machine.gpu_ids(), len(answer_of("moved").split())
        words = ("restore", "moved", f"images-{number}", f"restore-{number}.log")
        seconds, *nodes = self._timed(machine, "restore", lambda: machine.llm(*words))
        self.say(f"criu restore: {seconds} s; llama.cpp is on {' '.join(nodes)}")
        return AnswerPart(machine.label, machine.gpus, gpu_ids, " ".join(nodes), float(seconds), before)

    def _dumped(self, machine: LlmMachine, number: int, part: AnswerPart) -> None:
        images = f"images-{number + 1}"
        *counted, seconds, words = self._timed(machine, "dump", lambda: machine.llm("dump", "moved", images, str(WORDS_BEFORE_DUMP)))
        self._count(part, counted)
        part.dump_s, part.after, part.image_mib = float(seconds), int(words), image_mib(images)
        if part.after >= self.words:
            fail(f"the answer was complete before dump {number + 1}")
        # Each has the whole program; those of this dump are enough for whoever looks for a fault of the next machine.
        shutil.rmtree(RUN / f"images-{number}", ignore_errors=True)
        self.say(f"criu dump in the middle of the answer, word {part.after} of {self.words}: {part.dump_s:.1f} s, "
                 f"{part.image_mib:.0f} MiB")

    def _finished(self, machine: LlmMachine, part: AnswerPart) -> None:
        counted = self._timed(machine, "words", lambda: machine.llm("finish", "moved"))
        self._count(part, counted)
        if "total time" not in (RUN / "moved/log").read_text(errors="replace"):
            fail(f"llama.cpp did not come to its end: see {RUN}/moved/log")
        self.say(f"the answer is complete: {part.after} words")

    @staticmethod
    def _count(part: AnswerPart, numbers: list[str]) -> None:
        before, after, seconds = numbers
        part.after, part.counted, part.counted_s = int(after), int(after) - int(before), float(seconds)

    @property
    def parts(self) -> Iterator[AnswerPart]:
        """All of them, when the run has ended."""
        return map(self.part, range(self.moves + 1))

    @once("the answer that was moved")
    def moved(self) -> str:
        self.part(self.moves)
        return answer_of("moved")

    def differences(self) -> list[str]:
        """What is wrong with the answers: nothing, if they are equal."""
        moved = self.moved()
        return [f"the answer that was moved differs from that of the {name} at word {first_difference(text, moved)}"
                for name, text in (("undisturbed GPU", self.gpu()), ("processor", self.cpu())) if text != moved]


def first_difference(one: str, other: str) -> int:
    """The number of the first word that differs, from 1."""
    pairs = zip(one.split(), other.split())
    return next((number for number, (a, b) in enumerate(pairs, 1) if a != b), min(len(one.split()), len(other.split())) + 1)
