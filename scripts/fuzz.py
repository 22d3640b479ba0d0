#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""Runs the fuzzers of userspace/fuzz, all of them without a TARGET, and prints KTAP.

usage: fuzz.py [--runs N | --seconds N] [TARGET...]

Each fuzzer first runs the inputs of earlier crashes (userspace/fuzz/regressions/TARGET), then
  --runs N     N inputs (the default, 1500), the same ones every time, derived from
               those that scripts/fuzz_seeds.py makes. This is a test.
  --seconds N  as many inputs as it can in N seconds, other ones every time; the corpus
               in out/fuzz/TARGET/corpus grows. This is a search.
After a crash, fuzz.py keeps the input in out/fuzz/TARGET and prints the cause and the
command that repeats it. Status 1 on a crash, 64 usage.
"""
from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Iterator, NamedTuple, Sequence

import command
from vm.errors import EXIT_INFRA
from vm.places import out_dir, read_text, repo_root
from vm.processes import POLL_S, shell_status

FUZZ = repo_root() / "userspace/fuzz"
RUNS = "1500"
# Time limit of a single input: a device that takes longer hangs.
INPUT_LIMIT_S, INPUT_BYTES, MEMORY_MB = 20, 2048, 2048
SHOWN_LINES, CAUSE_LINES = 40, 3
CAUSE = re.compile(r"^fuzz: violated: |runtime error: |ERROR: ")
# With these options every run has the same inputs: the fuzzer uses neither times nor the
# operands of comparisons, some of which are addresses, to choose inputs.
SAME = ("-seed=1", "-entropic=0", "-use_cmp=0")


def number(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,6}", text):
        raise argparse.ArgumentTypeError("needs a number of at most six digits")
    return int(text)


class Inputs(NamedTuple):
    """How many inputs besides those of earlier crashes: options of the fuzzer, without which it has none."""

    options: tuple[str, ...]
    is_search: bool


def runs(text: str) -> Inputs:
    return Inputs((*SAME, f"-runs={number(text)}") if number(text) else (), False)


def seconds(text: str) -> Inputs:
    return Inputs((f"-max_total_time={number(text)}",) if number(text) else (), True)


@dataclass
class Target:
    """A fuzzer, and the processes that it consists of, one after the other."""

    name: str
    inputs: Inputs

    @property
    def folder(self) -> Path:
        """Inputs that crashed, the corpus and the log."""
        return out_dir() / "fuzz" / self.name

    @property
    def log(self) -> Path:
        """The output of the last process."""
        return self.folder / "log"

    @property
    def program(self) -> Path:
        return out_dir() / "cmake/asan/userspace/fuzz" / f"{self.name}_fuzz"

    def commands(self) -> Iterator[Sequence[str | Path]]:
        """Commands that run the inputs of earlier crashes, then those of the test or search."""
        options = [f"-timeout={INPUT_LIMIT_S}", f"-rss_limit_mb={MEMORY_MB}", f"-artifact_prefix={self.folder}/"]
        known = sorted(path for path in (FUZZ / "regressions" / self.name).rglob("*") if path.is_file())
        if known:
            yield [self.program, *options, *known]
        if not self.inputs.options:
            return
        corpus = self.folder / "corpus"
        if not self.inputs.is_search and corpus.exists():
            shutil.rmtree(corpus)
        yield [repo_root() / "scripts/fuzz_seeds.py", self.name, corpus, out_dir() / "cmake/asan/userspace/vasicd/vasicd"]
        dictionary = Path(f"{corpus}.dict")
        yield [self.program, *options, *self.inputs.options, *([f"-dict={dictionary}"] if dictionary.exists() else []),
               f"-max_len={INPUT_BYTES}", "-len_control=0", "-print_final_stats=1", corpus]

    def last(self, pattern: str) -> str:
        """What stands behind the pattern in the last line of the log that has it; empty if none has."""
        found = re.findall(rf"{pattern}(.*)$", read_text(self.log), re.M)
        return found[-1] if found else ""

    def complaint(self) -> list[str]:
        """The first lines are the cause, the command that repeats the crash, and the input, because callers may show
        only a few lines."""
        lines = read_text(self.log).splitlines()
        causes = [line for line in lines if CAUSE.search(line)][:CAUSE_LINES]
        repeat = f"repeat: {self.program} {self.last('Test unit written to ') or self.last('^Running: ')}"
        inputs = [f"input in Base64: {line.removeprefix('Base64: ')}" for line in lines if line.startswith("Base64: ")]
        return [*causes, repeat, *inputs, *lines[-SHOWN_LINES:]]


class Running:
    """A target whose processes run, one after the other."""

    def __init__(self, target: Target) -> None:
        self.status: int | None = None
        self._target = target
        target.folder.mkdir(parents=True, exist_ok=True)
        self._commands = target.commands()
        self._process: subprocess.Popen | None = None

    def step(self) -> None:
        """Starts the next process if there is none; sets the status after the last one, or one that failed."""
        if self._process is not None:
            returned = self._process.poll()
            if returned is None:
                return
            self.status = shell_status(returned) or None
        argv = None if self.status else next(self._commands, None)
        if argv is None:
            self.status = self.status or 0
            return
        with self._target.log.open("wb") as log:
            self._process = command.start(argv, stdout=log, stderr=log, cwd=repo_root())

    def end(self) -> None:
        if self._process is not None:
            command.end_tree(self._process)


def run_targets(targets: list[Target]) -> list[int]:
    """Runs several targets at the same time, so that no processor is idle; returns their statuses."""
    most = int(os.environ.get("JOBS") or len(os.sched_getaffinity(0)))
    all_running: list[Running] = []
    try:
        while len(all_running) < len(targets) or any(each.status is None for each in all_running):
            busy = sum(each.status is None for each in all_running)
            all_running += map(Running, targets[len(all_running):][:max(0, most - busy)])
            for each in all_running:
                if each.status is None:
                    each.step()
            time.sleep(POLL_S)
    finally:
        for each in all_running:
            each.end()
    return [EXIT_INFRA if each.status is None else each.status for each in all_running]


def show(targets: list[Target], statuses: list[int]) -> None:
    for count, (target, status) in enumerate(zip(targets, statuses, strict=True), start=1):
        print(f"{'not ok' if status else 'ok'} {count} - {target.name}")
        for line in target.complaint() if status else ():
            print(f"# {line}")
    print(f"1..{len(targets)}", flush=True)


def main(argv: list[str]) -> int:
    parser = command.Parser(__doc__)
    parser.add_argument("--runs", type=runs, dest="inputs", default=runs(RUNS))
    parser.add_argument("--seconds", type=seconds, dest="inputs")
    parser.add_argument("targets", nargs="*")
    options = parser.read(argv)
    command.need("clang++", "clang")
    known = sorted(path.name.removesuffix("_fuzz.cc") for path in FUZZ.glob("*_fuzz.cc"))
    for name in options.targets:
        if name not in known:
            raise command.usage_error(f"no target '{name}'")
    status = command.call([repo_root() / "scripts/build.sh", "asan", "fuzzers", "vasicd"], stdout=sys.stderr)
    if status:
        return status
    print("KTAP version 1", flush=True)
    targets = [Target(name, options.inputs) for name in options.targets or known]
    statuses = run_targets(targets)
    show(targets, statuses)
    return int(any(statuses))


if __name__ == "__main__":
    command.run(main)
