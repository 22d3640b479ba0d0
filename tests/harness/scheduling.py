# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""Which worker of a run takes which tests.

Virtual machines wait a part of their time, and QEMU does not stand more machines than there are processors
(machine_count() in scripts/test.py). So one worker more than machines takes tests of the host only, at a lower
priority, in the time that the machines leave.
"""
from __future__ import annotations

import pytest
from xdist.scheduler import LoadGroupScheduling

# The name of a group of tests that need a virtual machine begins with this.
MACHINE = "machine:"
# Added to the nice value of the worker for the host: a virtual processor that is busy gets three times its time.
NICE = 5


def is_host_worker(config: pytest.Config) -> bool:
    """Whether this process is the worker that takes tests of the host only."""
    name = getattr(config, "workerinput", {}).get("workerid")
    return name is not None and name == host_worker(config)


def host_worker(config: pytest.Config) -> str:
    """The name of the worker for the host: the one after those for machines. There is none if there are not so many."""
    return f"gw{config.getoption('machines')}"


class Scheduling(LoadGroupScheduling):
    """Groups in their order: machines first to the workers for machines, none of them to the worker for the host."""

    def _assign_work_unit(self, node) -> None:
        scope = self._choose(node)
        if scope is None:
            # A worker runs its last test when it knows that none follows.
            node.shutdown()
            return
        self.workqueue.move_to_end(scope, last=False)
        super()._assign_work_unit(node)

    def _choose(self, node) -> str | None:
        """The next group for a worker; None if nothing is left that it may take."""
        machines = (scope for scope in self.workqueue if scope.startswith(MACHINE))
        others = (scope for scope in self.workqueue if not scope.startswith(MACHINE))
        # Where there are fewer groups than workers, xdist may have ended the others.
        if node.gateway.id == host_worker(self.config) and len(self.nodes) > 1:
            return next(others, None)
        return next(machines, None) or next(others, None)
