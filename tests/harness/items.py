# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""pytest's view of plan.toml: machine > program > case.

An item asks its batch for its result; the first one of a machine boots it, the last one
shuts it down. Items of one machine are one group for pytest-xdist, so one worker has the
machine to itself.
"""
from __future__ import annotations

import shutil
import time
import zlib
from typing import Iterator

import pytest

from . import paths, streams, times
from .batch import Batch
from .machines import Guest, Host, MachineLost
from .plan import Machine, Plan, Program, Run


# Seconds to copy what a kernel counted.
GCOV_LIMIT_S = 120
# Lines of its output that are shown when that fails.
SHOWN_LINES = 20


class CaseFailed(Exception):
    """A case's own words on why it failed."""


class PlanFile(pytest.File):
    """plan.toml."""

    def collect(self) -> Iterator[pytest.Collector]:
        plan: Plan = self.config.stash[PLAN]
        for machine in plan.machines():
            yield MachineNode.from_parent(self, name=machine.name, machine=machine, plan=plan)


PLAN = pytest.StashKey[Plan]()


class MachineNode(pytest.Collector):
    """A virtual machine, or the host with the programs of one preset."""

    def __init__(self, *, machine: Machine, plan: Plan, **kwargs) -> None:
        super().__init__(**kwargs)
        self.machine, self.plan = machine, plan
        self.add_marker(pytest.mark.tier(machine.tier))

    def collect(self) -> Iterator[pytest.Item | pytest.Collector]:
        if self.machine.missing:
            yield MissingItem.from_parent(self, name="can_be_tested", reason=self.machine.missing)
        for run in self.machine.runs:
            yield ProgramNode.from_parent(self, name=run.program.name, run=run)


class MissingItem(pytest.Item):
    """What a machine of the plan needs is not there: a failure, never a skip."""

    def __init__(self, *, reason: str, **kwargs) -> None:
        super().__init__(**kwargs)
        self.reason = reason

    def runtest(self) -> None:
        raise CaseFailed(self.reason)

    def repr_failure(self, excinfo, style=None) -> str:
        return str(excinfo.value)

    def reportinfo(self):
        return self.path, None, self.nodeid


class ProgramNode(pytest.Collector):
    """A program on a machine."""

    def __init__(self, *, run: Run, **kwargs) -> None:
        super().__init__(**kwargs)
        self.run = run

    def collect(self) -> Iterator[pytest.Item]:
        for case in self.run.cases:
            yield CaseItem.from_parent(self, name=case, program=self.run.program)


class CaseItem(pytest.Item):
    """One case of a program on a machine."""

    def __init__(self, *, program: Program, **kwargs) -> None:
        super().__init__(**kwargs)
        self.program = program
        node: MachineNode = self.parent.parent
        self.machine, self.plan = node.machine, node.plan
        shard = zlib.crc32(self.name.encode()) % program.shards if program.shards > 1 else 0
        self.group = f"{self.machine.name}/{program.name}-{shard}" if self.machine.options is None \
            else self.machine.name
        self.result: streams.Result | None = None

    def is_absent(self) -> bool:
        """Whether this machine need not have the case and does not; waits for the program's answer."""
        if not self.program.varies or not self.plan.may_be_absent(self.machine, self.program.name, self.name):
            return False
        try:
            self.result = WORKER.batch(self).result(self.name)
        except Exception as error:  # pylint: disable=broad-exception-caught
            # pytest asks outside of any test, where an exception would end the worker.
            self.result = streams.Result(self.name, streams.FAILED, f"{type(error).__name__}: {error}")
        return self.result.outcome == streams.ABSENT

    def runtest(self) -> None:
        result = self.result or WORKER.batch(self).result(self.name)
        self.user_properties.append(("seconds", round(result.seconds, 3)))
        if result.outcome == streams.SKIPPED:
            expected = self.plan.may_skip(self.machine, self.program.name, self.name)
            if not expected:
                raise CaseFailed(f"it skipped ({result.reason}), and no [[skip]] of plan.toml says why it may")
            pytest.skip(f"{expected} ({result.reason})")
        if result.outcome == streams.ABSENT:
            raise CaseFailed("the program does not have it on this machine, and no [[absent]] of plan.toml says "
                             "why it may not")
        if result.outcome == streams.FAILED:
            raise CaseFailed("\n".join([result.reason or "failed", *result.notes]))

    def repr_failure(self, excinfo, style=None):
        if excinfo.errisinstance(CaseFailed):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self):
        return self.path, None, self.nodeid


class Worker:
    """What runs in this worker: one machine at a time, and its batches."""

    def __init__(self) -> None:
        self.groups: dict[str, list[CaseItem]] = {}
        self.group = ""
        self.machine: Host | Guest | None = None
        self.collects = ""
        self.batches: dict[str, Batch] = {}
        self.begin = self.booted = 0.0

    def plan_groups(self, items: list[pytest.Item]) -> None:
        """Remembers which items are to run, after all deselection."""
        for item in items:
            if isinstance(item, CaseItem):
                self.groups.setdefault(item.group, []).append(item)

    def batch(self, item: CaseItem) -> Batch:
        """The batch that an item is in; begins its group."""
        if self.group != item.group:
            complaint = self.end_group()
            assert not complaint, complaint
            self._begin_group(item)
        if item.program.name not in self.batches:
            cases = [other.name for other in self.groups[item.group] if other.program.name == item.program.name]
            self.batches[item.program.name] = Batch(item.program, cases, self.machine)
        return self.batches[item.program.name]

    def _begin_group(self, item: CaseItem) -> None:
        row = item.machine
        self.group, self.batches, self.collects = item.group, {}, row.collects
        self.begin = self.booted = time.monotonic()
        log = paths.TEST / "logs" / f"{item.group.replace('/', '-')}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text("")
        if row.options is None:
            self.machine = Host(row.name, log, row.env)
        else:
            self.machine = Guest(f"test-{row.name}", row.options, row.env, row.limit_s, log, row.reboots)

    def end_group(self) -> str:
        """Ends the machine. What it complained of; empty if of nothing."""
        if self.machine is None:
            return ""
        machine, group = self.machine, self.group
        self.machine, self.group = None, ""
        complaint = self._collect_gcov(machine, group) if self.collects == "gcov" else ""
        complaint += machine.close()
        times.record("run", group, time.monotonic() - self.begin)
        return complaint

    @staticmethod
    def _collect_gcov(machine: Guest, group: str) -> str:
        """Keeps what the machine's kernel counted, for scripts/coverage.py. Why it could not; empty if it could."""
        kept = paths.OUT / "coverage" / group
        shutil.rmtree(kept, ignore_errors=True)
        try:
            counted = machine.path_of("gcov")
            output = machine.start((str(paths.SCRIPTS / "guest/collect_gcov.sh"), str(counted)), {}, GCOV_LIMIT_S)
            lines = list(output)
            if output.status != 0:
                return "\n".join([f"collect_gcov.sh: status {output.status}", *lines[-SHOWN_LINES:], ""])
            shutil.copytree(counted, kept)
        except (MachineLost, OSError) as error:
            return f"what the kernel counted is lost: {error}\n"
        return ""


WORKER = Worker()
