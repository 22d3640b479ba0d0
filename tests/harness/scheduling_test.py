# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""The worker for the host takes no machine, and every test runs whichever workers there are."""
from __future__ import annotations

from types import SimpleNamespace

import pytest
from harness import scheduling

A_GROUP = 4


class Worker:
    """A worker that has collected the tests, and what the scheduler tells it."""

    def __init__(self, number: int, tests: list[str]) -> None:
        self.gateway = SimpleNamespace(id=f"gw{number}")
        self.tests, self.queue, self.shutting_down = tests, [], False

    def send_runtest_some(self, indices: list[int]) -> None:
        assert not self.shutting_down
        self.queue += indices

    def shutdown(self) -> None:
        self.shutting_down = True


def items_of(groups: list[str]) -> list[str]:
    return [f"{group}.py::t{n}@{group}" for group in groups for n in range(A_GROUP)]


def run(groups: list[str], machines: int, workers: int) -> dict[str, list[str]]:
    """Runs tests until no worker has one. Returns which groups each worker ran, in order."""
    # xdist asks the configuration for the list of workers.
    config = SimpleNamespace(getoption=lambda _: machines, getvalue=lambda _: ["popen"] * workers)
    scheduler, tests = scheduling.Scheduling(config), items_of(groups)
    nodes = [Worker(number, tests) for number in range(workers)]
    for node in nodes:
        scheduler.add_node(node)
    for node in nodes:
        scheduler.add_node_collection(node, tests)
    scheduler.schedule()
    ran: dict[str, list[str]] = {node.gateway.id: [] for node in nodes}
    # A worker runs a test when it knows the next one, or that there is none.
    while ready := [node for node in nodes if len(node.queue) > 1 or (node.queue and node.shutting_down)]:
        for node in ready:
            index = node.queue.pop(0)
            group = tests[index].split("@")[1]
            if group not in ran[node.gateway.id]:
                ran[node.gateway.id].append(group)
            scheduler.mark_test_complete(node, index)
    assert not any(node.queue for node in nodes) and scheduler.tests_finished
    return ran


def test_machines_go_to_workers_for_machines_in_their_order() -> None:
    ran = run(["unit", "lint", *(f"machine:{n}" for n in range(8)), "fuzz"], 2, 3)
    assert ran == {"gw0": [f"machine:{n}" for n in (0, 2, 4, 6)], "gw1": [f"machine:{n}" for n in (1, 3, 5, 7)],
                   "gw2": ["unit", "lint", "fuzz"]}


def test_workers_for_machines_take_the_rest_of_the_host() -> None:
    ran = run(["machine:a", *(f"host{n}" for n in range(9))], 2, 3)
    assert all(ran.values()) and sorted(sum(ran.values(), [])) == ["host0", "host1", "host2", "host3", "host4", "host5",
                                                                   "host6", "host7", "host8", "machine:a"]


@pytest.mark.parametrize("groups", [["machine:a"], ["machine:a", "machine:b"], ["host"],
                                    [f"machine:{n}" for n in range(7)], [f"host{n}" for n in range(7)]])
@pytest.mark.parametrize(("machines", "workers"), [(1, 1), (1, 2), (2, 2), (2, 3), (4, 4)])
def test_every_group_runs_once(groups: list[str], machines: int, workers: int) -> None:
    assert sorted(sum(run(groups, machines, workers).values(), [])) == sorted(groups)


def test_the_last_worker_left_takes_machines() -> None:
    """Where there are fewer groups than workers, xdist keeps the workers that were ready first."""
    config = SimpleNamespace(getoption=lambda _: 0, getvalue=lambda _: ["popen"])
    assert scheduling.host_worker(config) == "gw0"  # type: ignore[arg-type]
    assert run(["machine:a"], 0, 1) == {"gw0": ["machine:a"]}
