# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""Each case of a run has one result."""
from __future__ import annotations

import contextlib
import fcntl
import importlib.util
import json
from pathlib import Path

import pytest
from harness import paths


@pytest.fixture(name="glue")
def load_glue(monkeypatch, tmp_path: Path):
    """conftest.py, with results of its own."""
    spec = importlib.util.spec_from_file_location("glue", paths.ROOT / "conftest.py")
    glue = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(glue)
    monkeypatch.setattr(glue, "RESULTS", tmp_path / "results.jsonl")
    return glue


@pytest.fixture(name="reporter")
def make_reporter(glue):
    """The Reporter of conftest.py."""
    reporter = glue.Reporter(None)
    yield reporter
    reporter.file.close()


def report(reporter, when: str, outcome: str, nodeid: str = "a.py::b") -> None:
    made = pytest.TestReport(nodeid + "@group", ("a.py", None, "b"), {}, outcome, "why", when)
    reporter.pytest_runtest_logreport(made)


def results(reporter) -> list[tuple[str, str]]:
    rows = map(json.loads, Path(reporter.file.name).read_text().splitlines())
    return [(row["id"], row["outcome"]) for row in rows]


@pytest.mark.parametrize("outcomes, expected", [
    (("passed", "passed", "passed"), "passed"), (("passed", "failed", "passed"), "failed"),
    (("passed", "passed", "failed"), "failed"), (("passed", "failed", "failed"), "failed"),
    (("passed", "skipped", "passed"), "skipped"), (("passed", "skipped", "failed"), "failed")])
def test_a_case_has_one_result(reporter, outcomes, expected: str) -> None:
    for when, outcome in zip(("setup", "call", "teardown"), outcomes):
        report(reporter, when, outcome)
    assert results(reporter) == [("a.py::b", expected)]
    assert reporter.counts == {"passed": 0, "failed": 0, "skipped": 0, expected: 1}


def test_a_case_whose_worker_ends_behind_it_has_failed(reporter) -> None:
    report(reporter, "setup", "passed")
    report(reporter, "call", "passed")
    report(reporter, "???", "failed")
    assert results(reporter) == [("a.py::b", "failed")]


@pytest.mark.parametrize("failed, lost", [(False, 1), (True, 0)])
def test_what_was_selected_and_did_not_run_has_failed(reporter, failed: bool, lost: int) -> None:
    reporter.pytest_xdist_node_collection_finished(ids=["a.py::b@group", "a.py::c@group", "a.py::d@group"])
    report(reporter, "call", "failed" if failed else "passed")
    report(reporter, "teardown", "passed")
    reporter.pytest_runtest_logfinish("a.py::b@group")
    reporter.pytest_runtest_logfinish("a.py::c@group")
    reporter._fail_what_did_not_run()  # pylint: disable=protected-access
    assert reporter.counts["failed"] == lost + failed
    assert ("a.py::d", "it did not run") in reporter.failures or failed


class Options:
    """A pytest.Config with the options of a run."""

    def __init__(self, **options) -> None:
        self.options = {"groups": "test", "full": "gfx906", "everything": False, **options}

    def getoption(self, name: str):
        return self.options[name]


@pytest.mark.parametrize("options, environment, expected", [
    ({}, {}, "scripts/test.py 'a.py::b[c]'"),
    ({"groups": "all,test", "everything": True}, {}, "scripts/test.py --all 'a.py::b[c]'"),
    ({"groups": "debug", "everything": True}, {}, "scripts/test.py --all --groups debug 'a.py::b[c]'"),
    ({"groups": "debug"}, {"KFD_CRIU_MUTATIONS": "50"},
     "KFD_CRIU_MUTATIONS=50 scripts/test.py --groups debug 'a.py::b[c]'"),
    ({"full": "all"}, {"CHIP": "gfx90a", "OUT_DIR": "/a b"},
     "OUT_DIR='/a b' CHIP=gfx90a scripts/test.py --full all 'a.py::b[c]'"),
])
def test_a_failed_case_is_repeated_as_it_ran(glue, monkeypatch, options, environment, expected: str) -> None:
    for name in glue.VARIABLES:
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert glue.repeat_command(Options(**options), "a.py::b[c]") == expected


def test_beside_another_run_nothing_is_written(glue, monkeypatch, tmp_path: Path) -> None:
    monkeypatch.delenv(glue.LOCKED, raising=False)
    glue.RESULTS.write_text("the other run's")
    with (tmp_path / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        beside = glue.Reporter(None)
    with contextlib.closing(beside.file):
        report(beside, "call", "failed")
    assert glue.RESULTS.read_text() == "the other run's"
    assert not beside.is_recorded


def test_a_bare_pytest_has_results_when_no_other_run_has(glue, monkeypatch) -> None:
    monkeypatch.delenv(glue.LOCKED, raising=False)
    alone = glue.Reporter(None)
    with contextlib.closing(alone.file):
        report(alone, "call", "failed")
        assert results(alone) == [("a.py::b", "failed")]
