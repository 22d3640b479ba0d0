# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""Runs the selected cases of one program on one machine and answers for each of them.

The program runs once for all of its cases. When it ends early (a crash, a time limit),
it is started again with the cases that have no result yet, so that a crash hides nothing.
"""
from __future__ import annotations

import time
from pathlib import Path
from typing import Iterator, Protocol

from . import streams
from .machines import TIMED_OUT, MachineLost, Output
from .plan import EXIT_SKIP, Program
from .streams import ABSENT, FAILED, PASSED, SKIPPED, Result

# Seconds for a program to list its cases in a machine.
LIST_LIMIT_S = 120
# Lines of the output that are shown when no case is to blame.
TAIL_LINES = 40
# Characters of a line that reports get, from its end. The log has all of them.
LINE_CHARS = 4096


class RunningMachine(Protocol):
    """What batch.py needs of a Host or a Guest."""

    def start(self, argv: tuple[str, ...], env: dict[str, str], limit_s: int,
              cwd: str | None = None) -> Output: ...

    def path_of(self, name: str): ...


class Batch:
    """Some cases of a program. result() starts the program when it is first called."""

    def __init__(self, program: Program, cases: list[str], machine: RunningMachine) -> None:
        self.program, self.machine = program, machine
        self.waiting = list(cases)
        self.results: dict[str, Result] = {}
        self._stream: Iterator[Result] | None = None

    def result(self, case: str) -> Result:
        """Waits for the end of a case. Cases can be asked for in any order, each once."""
        if self._stream is None:
            self._stream = self._run()
        while case not in self.results:
            begin = time.monotonic()
            result = next(self._stream, None)
            if result is None:
                return Result(case, FAILED, "the program has no such case")
            result.seconds = time.monotonic() - begin
            self.results[result.name] = result
        return self.results.pop(case)

    def _run(self) -> Iterator[Result]:
        """Results of all cases; the program is started until each has one."""
        waiting = list(self.waiting)
        if self.program.varies:
            there = self._there(waiting)
            for case in waiting if there else []:
                if case not in there:
                    yield Result(case, ABSENT)
            waiting = [case for case in waiting if case in there] if there else waiting
        while waiting:
            before = len(waiting)
            for result in self._run_once(waiting):
                waiting.remove(result.name)
                yield result
            if len(waiting) == before:
                for case in waiting:
                    yield Result(case, FAILED, self._blame, self._tail)
                return

    def _there(self, cases: list[str]) -> set[str]:
        """The cases that the program has on this machine. Nothing if it has none of them or
        cannot say: then the run itself shows why."""
        try:
            output = self.machine.start((*self._argv(cases), "--gtest_list_tests"), self._env(), LIST_LIMIT_S)
            listed = set(streams.list_gtest("\n".join(output)))
        except MachineLost:
            return set()
        # A list that ends early must not make the cases behind its end absent.
        return listed & set(cases) if output.status == 0 else set()

    def _run_once(self, cases: list[str]) -> Iterator[Result]:
        """One run of the program. The last result is held back until the program's status
        is known, for a status that no case explains is a failure of its own."""
        self._blame, self._tail, self._lost = "the program printed no result", [], ""
        self._strays: list[str] = []
        held: Result | None = None
        failed, all_skipped = False, True
        try:
            output = self.machine.start(self._argv(cases), self._env(), self.program.limit_s, self._cwd())
        except MachineLost as error:
            self._blame = str(error)
            return
        for result in self._read(output, cases):
            if held is not None:
                yield held
            held, failed = result, failed or result.outcome == FAILED
            all_skipped = all_skipped and result.outcome == SKIPPED
        status = output.status
        if self._lost:
            self._blame = self._lost
            if held is not None and held.outcome != FAILED:
                # No case was running: the machine may have ended as the program did.
                held = Result(held.name, FAILED, f"behind this case {self._lost}", self._tail)
            failed = True
        elif status == TIMED_OUT:
            self._blame = f"the program did not end within {self.program.limit_s} s"
        elif status != 0:
            self._blame = f"the program ended with status {status}"
        explained = failed or self.program.kind == "command" or (status == EXIT_SKIP and all_skipped)
        if held is not None and status != 0 and not explained:
            held = Result(held.name, FAILED, f"no case failed, but {self._blame}", self._tail)
        elif held is not None and self._strays and not failed and len(cases) == len(self.program.cases):
            held = Result(held.name, FAILED, "what failed is no case of the plan", self._strays)
        if held is not None:
            yield held

    def _read(self, output: Output, cases: list[str]) -> Iterator[Result]:
        """Results of the wanted cases, each once."""
        wanted = set(cases)
        for result in self._reader(output):
            if result.name == streams.WHOLE_PROGRAM and result.outcome == SKIPPED:
                for case in sorted(wanted):
                    yield Result(case, SKIPPED, result.reason)
                wanted.clear()
            elif result.name in wanted:
                wanted.discard(result.name)
                if result.outcome == FAILED:
                    result.notes = self._strays + result.notes
                    self._strays = []
                yield result
            elif result.outcome == FAILED:
                # A parameter of a KUnit case, which itself comes later, or a suite, whose case has failed.
                self._strays += [*result.notes, f"{result.name}: {result.reason or 'failed'}"]

    def _reader(self, output: Output) -> Iterator[Result]:
        lines = self._kept(output)
        if self.program.kind == "command":
            return self._read_status(output, lines)
        return streams.READERS["gtest" if self.program.kind == "gtest" else "tap"](lines)

    def _kept(self, output: Output) -> Iterator[str]:
        try:
            for line in output:
                # The mark of a case is at the end of its line, behind what the program left unfinished.
                line = line[-LINE_CHARS:]
                self._tail = [*self._tail[1 - TAIL_LINES:], line]
                yield line
        except MachineLost as error:
            self._lost = str(error)
            yield self._lost

    def _read_status(self, output: Output, lines: Iterator[str]) -> Iterator[Result]:
        for _ in lines:
            pass
        name, status = self.program.cases[0], output.status
        if status == 0:
            yield Result(name, PASSED)
        elif status == EXIT_SKIP:
            yield Result(name, SKIPPED, self._tail[-1] if self._tail else "it does not say why")
        else:
            yield Result(name, FAILED, f"status {status}", self._tail)

    def _argv(self, cases: list[str]) -> tuple[str, ...]:
        argv = self.program.argv
        if self.program.kind == "gtest":
            flags = self.machine.path_of(f"{self.program.name}.flags")
            flags.write_text(f"--gtest_filter={':'.join(cases)}\n")
            return (*argv, f"--gtest_flagfile={flags}")
        if self.program.kind == "kselftest" and len(cases) < len(self.program.cases):
            return (*argv, *(word for case in cases for word in ("-r", case)))
        return argv

    def _cwd(self) -> str | None:
        # run_kselftest.sh runs each program in its own folder, where its data is.
        return str(Path(self.program.argv[0]).parent) if self.program.kind == "kselftest" else None

    def _env(self) -> dict[str, str]:
        # Machines of the plan have no display that a reset of the GPU could disturb.
        return {"KFD_CRIU_RESET": "1"} if self.program.kind == "kselftest" else {}
