# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""Virtual machines in which tests run one command after the other.

A StepMachine boots at its first step and runs each step in a Guest of machines.py.
What a test makes and others need is a method with @once: whichever test asks first makes
it, so every test works alone; after a failure the others say what they lack.
"""
from __future__ import annotations

import functools
import shutil
import time
from collections import deque
from pathlib import Path
from typing import Callable, NoReturn, Sequence, TypeVar

import pytest

from . import paths, times
from .machines import TIMED_OUT, Guest, MachineLost

STEP_LIMIT_S, SHOWN_LINES = 300, 60
# The status of a step that did not come to what it is about: scripts/lib.sh.
EXIT_INFRA = 125

T = TypeVar("T")
_FAILED = object()


def fail(text: str) -> NoReturn:
    """Fails the test with this text alone, without what it was caused by."""
    raise pytest.fail.Exception(text, pytrace=False) from None


def once(what: str) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """A method that runs once for its object and arguments. A later call returns the same
    value or, if the first one failed, fails with "needs: WHAT"; {0} is the first argument."""

    def decorate(method: Callable[..., T]) -> Callable[..., T]:
        @functools.wraps(method)
        def wrapper(self, *args) -> T:
            made = self.__dict__.setdefault("_made", {})
            key = (method.__name__, args)
            if made.get(key) is _FAILED:
                fail(f"needs: {what.format(*args)}; an earlier test shows why there is none")
            if key not in made:
                made[key] = _FAILED
                made[key] = method(self, *args)
            return made[key]

        return wrapper

    return decorate


def need_built(kernel: str, *programs: str) -> None:
    """Fails unless the kernel and the programs (below out/cmake/release/userspace) are there."""
    if not (paths.kernel(kernel) / "bzImage").exists():
        words = kernel.split("-")
        fail(f"the kernel {kernel} is not built: scripts/kernel.sh build {' --'.join(words)}")
    for program in ("vasicd/vasicd", *programs):
        if not (paths.built("release") / program).exists():
            fail(f"{program} is not built: scripts/build.sh release")


class StepMachine:
    """A virtual machine. As a context manager it shuts the machine down, and fails the test
    at whose end that happens if the guest's kernel has complained."""

    def __init__(self, name: str, options: Sequence[str], command: Sequence[str], limit_s: int) -> None:
        """`command` is what all steps begin with; `options` are those of scripts/vm.sh; `limit_s` is for the
        machine's whole life."""
        self.name, self._command = name, tuple(command)
        self._log = paths.TEST / "logs" / f"{name}.log"
        self._guest = Guest(name, list(options), {}, limit_s, self._log)
        # Seconds on a clock when it began to boot; 0: it is not there.
        self._begin = 0.0
        # Why the machine is no more, once it is not.
        self._ended = ""

    def __enter__(self):
        return self

    def __exit__(self, *_: object) -> None:
        if complaint := self.finish():
            fail(complaint)

    @property
    def vasicd_pid(self) -> int:
        """The process of the machine's virtual GPUs, on this host."""
        return int((paths.OUT / "vm" / self.name / "vasicd.pid").read_text())

    def boot(self) -> None:
        """Boots the machine, if it was not booted yet."""
        if self._ended:
            fail(f"needs: the machine {self.name}, which {self._ended}")
        if not self._begin:
            self._log.parent.mkdir(parents=True, exist_ok=True)
            self._log.write_text("")
            self._begin = time.monotonic()
            try:
                self._guest.boot()
            except MachineLost as error:
                self._ended = "did not boot"
                fail(str(error))

    def attempt(self, *words: str, limit_s: int = STEP_LIMIT_S, lines: int | None = SHOWN_LINES) -> tuple[int, str]:
        """Runs a step; its status and the last lines of its output, all of them if `lines` is None."""
        self.boot()
        with self._log.open("a", errors="replace") as log:
            log.write(f"---- {' '.join(words)}\n")
        try:
            output = self._guest.start((*self._command, *words), {}, limit_s)
            tail = deque(output, maxlen=lines)
        except MachineLost as error:
            self._ended = "ended before its time"
            fail(str(error))
        return output.status, "\n".join(tail)

    def step(self, *words: str, limit_s: int = STEP_LIMIT_S) -> str:
        """Runs a step that has to succeed; returns the last lines of its output."""
        status, text = self.attempt(*words, limit_s=limit_s)
        if status != 0:
            why = f"did not end within {limit_s} s" if status == TIMED_OUT else f"failed with status {status}"
            fail(f"the step '{' '.join(words)}' on the machine {self.name} {why} (log: {self._log})\n{text}")
        return text

    def finish(self) -> str:
        """Shuts the machine down. What its kernel or scripts/vm.sh complained of; empty if of nothing."""
        if not self._begin:
            return ""
        times.record("run", self.name, time.monotonic() - self._begin)
        self._begin = 0.0
        complaint = self._guest.close()
        self._ended = self._ended or "has been shut down"
        return complaint

    def must_be_content(self) -> None:
        """Shuts the machine down, for a test of its own on the kernel's log."""
        self.boot()
        if complaint := self.finish():
            fail(complaint)


def fresh(run: Path) -> Path:
    """The folder, empty."""
    shutil.rmtree(run, ignore_errors=True)
    run.mkdir(parents=True)
    return run


def need_criu() -> None:
    """Fails unless the machines will find CRIU, which they take from this host."""
    if shutil.which("criu") is None:
        fail("'criu' is missing: scripts/setup.sh")
