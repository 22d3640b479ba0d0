# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""Glue between pytest and tests/harness: options, selection, order, and what a run reports.

It is in the project's root because pytest reads the options of a run from the folders that the named tests are in,
and tests are in scripts/ too.
"""
from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import shlex
import signal
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent / "tests"))
from harness import items as plan_items  # noqa: E402
from harness import chip, paths, scheduling, times  # noqa: E402
from harness.plan import Plan  # noqa: E402

PR_SET_PDEATHSIG = 1
# Failed cases that are shown again at the end, and lines of each.
SHOWN_FAILURES, SHOWN_LINES = 24, 12
# Tests that take less are no line of their own in times.txt.
RECORDED_S = 1.0
MACHINE_FILES = ("tests/plan.toml", "tests/test_distro.py", "tests/test_e2e.py", "tests/test_faults.py",
                 "tests/test_field.py", "tests/test_llm.py", "tests/test_loops.py", "tests/test_podman.py",
                 "tests/test_rccl.py", "tests/test_sharing_chips.py", "tests/test_stock.py")
# Groups of plan.toml whose tests have files of their own, tests/test_NAME.py.
GROUP_OF_FILE = {"distro": "distro", "llm": "distro", "podman": "distro", "rccl": "distro"}
# Tiers whose tests start no virtual machine.
HOST_TIERS = ("builds", "lint", "python", "unit", "series")
EXIT_INFRA = 125
# Variables of the environment that decide what tests do, or where what they run is built.
VARIABLES = ("OUT_DIR", "CHIP", "FIELD_CRIU", "VM_TEST_OPTIONS", "KFD_CRIU_MUTATIONS", "KFD_CRIU_FAIL_STEP")
RESULTS = paths.TEST / "results.jsonl"
SUMMARY = paths.TEST / "summary.json"
# test.py sets it for the pytest that it starts: it has the lock of the folder.
LOCKED = "KFD_TESTS_LOCKED"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("amdkfd-criu")
    group.addoption("--groups", default="test", help="machines of plan.toml that are wanted, by their groups")
    group.addoption("--full", default="", help="chips on which all cases run, or 'all'")
    group.addoption("--everything", action="store_true", help="with what is marked heavy: make test-all")
    group.addoption("--tiers", default="", help="only these tiers, separated by commas")
    group.addoption("--machines", type=int, default=0, help="workers for virtual machines; one more takes tests of the host only")
    group.addoption("--selected", action="store_true", help="a tier, a test or a change selects the tests: with what is costly")


def is_worker(config: pytest.Config) -> bool:
    """Whether this process runs tests for another one (pytest-xdist)."""
    return hasattr(config, "workerinput")


def pytest_configure(config: pytest.Config) -> None:
    if is_worker(config):
        # A worker must not outlive the run that it is of; its machines end with it.
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if scheduling.is_host_worker(config):
            os.nice(scheduling.NICE)
    full = set(filter(None, config.getoption("full").split(",")))
    config.stash[plan_items.PLAN] = Plan(paths.PLAN, set(config.getoption("groups").split(",")), full,
                                         config.getoption("everything"))
    # A list of the tests must not take the place of the results of the last run.
    if not is_worker(config) and not config.getoption("collectonly"):
        config.pluginmanager.register(Reporter(config), "amdkfd-criu-reporter")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Tests of a group that has a file of its own run if the group is wanted, or if the file is named: pytest does
    not ask this of files that are named."""
    group = GROUP_OF_FILE.get(collection_path.stem.removeprefix("test_"))
    if group is not None and group not in config.getoption("groups").split(","):
        return True
    return None


def pytest_collect_file(file_path: Path, parent: pytest.Collector):
    if file_path == paths.PLAN:
        return plan_items.PlanFile.from_parent(parent, path=file_path)
    return None


def tier_of(item: pytest.Item) -> str:
    """The tier of an item: its mark's, or the name of its file without test_ in front."""
    mark = item.get_closest_marker("tier")
    if mark is not None:
        return mark.args[0]
    if item.path.is_relative_to(paths.SCRIPTS) or "harness" in item.path.parts:
        return "python"
    return item.path.stem.removeprefix("test_")


def needs_machine(item: pytest.Item) -> bool:
    """Whether a test may start a virtual machine."""
    if isinstance(item, plan_items.CaseItem):
        return item.machine.options is not None
    return tier_of(item) not in HOST_TIERS


def group_of(item: pytest.Item) -> tuple[str, int]:
    """The group of an item, whose tests one worker runs, and about how many seconds it takes."""
    if isinstance(item, plan_items.CaseItem):
        return item.group, item.machine.seconds
    mark = item.get_closest_marker("group")
    return (mark.args[0], mark.kwargs.get("seconds", 0)) if mark else (item.nodeid, 0)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    tiers = set(filter(None, config.getoption("tiers").split(",")))
    unwanted = [] if config.getoption("everything") else ["heavy"] if config.getoption("selected") else ["heavy", "costly"]
    kept, left_out = [], []
    for item in items:
        wanted = (not tiers or tier_of(item) in tiers) and not any(item.get_closest_marker(mark) for mark in unwanted)
        (kept if wanted else left_out).append(item)
    if left_out:
        config.hook.pytest_deselected(items=left_out)
    # Workers take groups in the order of their first items: what takes longest must not begin last.
    items[:] = sorted(kept, key=lambda item: -group_of(item)[1])
    for item in items:
        name = group_of(item)[0]
        item.add_marker(pytest.mark.xdist_group(scheduling.MACHINE + name if needs_machine(item) else name))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log):
    return scheduling.Scheduling(config, log)


def pytest_collection_finish(session: pytest.Session) -> None:
    plan_items.WORKER.plan_groups(session.items)


def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None):
    """A case that a machine does not have is no test there: nothing is reported of it."""
    if not isinstance(item, plan_items.CaseItem) or not item.is_absent():
        return None
    if getattr(nextitem, "group", "") != item.group:
        complaint = plan_items.WORKER.end_group()
        if complaint:
            item.ihook.pytest_runtest_logreport(report=pytest.TestReport(
                item.nodeid, item.location, {}, "failed", complaint, "call"))
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    # pytest has to leave the program's node, which the item before this one entered.
    item.session._setupstate.teardown_exact(nextitem)  # pylint: disable=protected-access
    return True


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """The last item of a group ends the group's machine, and fails if the machine complains."""
    if isinstance(item, plan_items.CaseItem) and getattr(nextitem, "group", "") != item.group:
        complaint = plan_items.WORKER.end_group()
        if complaint:
            pytest.fail(complaint, pytrace=False)


def pytest_sessionfinish(session: pytest.Session) -> None:
    plan_items.WORKER.end_group()


def repeat_command(config: pytest.Config, nodeid: str) -> str:
    """The command that runs just this case as it ran now, in any shell that stands in the project."""
    variables = [f"{name}={shlex.quote(os.environ[name])}" for name in VARIABLES if name in os.environ]
    words = ["scripts/test.py"]
    groups, full, everything = (config.getoption(name) for name in ("groups", "full", "everything"))
    if everything:
        words.append("--all")
    # scripts/test.py takes these groups without --groups.
    if groups != ("all,test" if everything else "test"):
        words += ["--groups", groups]
    # A case may be in the plan only because its chip is a full one.
    if full not in ("", chip.DEFAULT):
        words += ["--full", full]
    return " ".join([*variables, shlex.join([*words, nodeid])])


class Reporter:
    """Writes results as they come, and at the end what people and programs want to know."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.counts = {"passed": 0, "failed": 0, "skipped": 0}
        self.failures: list[tuple[str, str]] = []
        self.failed_ids: set[str] = set()
        # What was selected, and what has come to its end.
        self.selected: list[str] = []
        self.ended: set[str] = set()
        # The file of the results that could not be written, and why.
        self.lost = ""
        # Reports of cases that pass, or are skipped, if their teardown passes.
        self.undecided: dict[str, pytest.TestReport] = {}
        RESULTS.parent.mkdir(parents=True, exist_ok=True)
        # A bare pytest beside a run of test.py must not write over what that has written.
        self.lock = (RESULTS.parent / ".lock").open("w")
        self.is_recorded = LOCKED in os.environ or self._take_lock()
        self.file = (RESULTS if self.is_recorded else Path(os.devnull)).open("w")

    def _take_lock(self) -> bool:
        """Until this process ends; False: another one has it."""
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A case that fails counts once, however many of its phases do."""
        nodeid = report.nodeid.rsplit("@", 1)[0]
        if report.failed:
            self.undecided.pop(nodeid, None)
            if nodeid not in self.failed_ids:
                self.failed_ids.add(nodeid)
                self._add(nodeid, "failed", report)
            self.failures.append((nodeid, str(report.longrepr)))
        elif report.skipped or report.when == "call":
            self.undecided[nodeid] = report
        elif report.when == "teardown" and nodeid in self.undecided:
            decided = self.undecided.pop(nodeid)
            self._add(nodeid, decided.outcome, decided)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        """All workers select the same."""
        self.selected = ids

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """A test, or a case that its machine need not have, has come to its end."""
        self.ended.add(nodeid)

    def _fail_what_did_not_run(self) -> None:
        """A run that has not failed, and so was not ended early, has run all that was selected."""
        lost = [nodeid for nodeid in self.selected if nodeid not in self.ended]
        if lost and not self.failures:
            self.counts["failed"] += len(lost)
            self.failures += [(nodeid.rsplit("@", 1)[0], "it did not run") for nodeid in lost]

    def _add(self, nodeid: str, outcome: str, report: pytest.TestReport | pytest.CollectReport) -> None:
        self.counts[outcome] += 1
        text = "" if outcome == "passed" else str(report.longrepr)
        # A report of a file that cannot be collected has neither.
        took = getattr(report, "duration", 0.0)
        seconds = dict(getattr(report, "user_properties", ())).get("seconds", round(took, 3))
        row = {"id": nodeid, "outcome": outcome, "seconds": seconds, "text": text}
        try:
            self.file.write(json.dumps(row) + "\n")
            self.file.flush()
            # Machines record their own time (harness/items.py, harness/steps.py).
            if took >= RECORDED_S and not nodeid.startswith(MACHINE_FILES):
                times.record("run", nodeid, took)
        except OSError as error:
            pytest.exit(f"{error.filename or RESULTS}: {error.strerror}", EXIT_INFRA)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A file that cannot be collected is a failed case."""
        if report.failed:
            self._add(report.nodeid, "failed", report)
            self.failures.append((report.nodeid, str(report.longrepr)))

    @pytest.hookimpl(hookwrapper=True, trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session):
        """junit.xml is written here. A disk that is full ends the run in one line instead of a traceback."""
        outcome = yield
        error = outcome.excinfo[1] if outcome.excinfo else None
        if isinstance(error, OSError):
            session.exitstatus = EXIT_INFRA
            self.lost = f"{error.filename or self.config.getoption('xmlpath')}: {error.strerror}"
            outcome.force_result([])

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter) -> None:
        """Failures once more, short, with the command that repeats each; the closing line is test.py's."""
        self._fail_what_did_not_run()
        with contextlib.suppress(OSError):  # what it still holds was to be written before, and failed
            self.file.close()
        for nodeid, text in self.failures[:SHOWN_FAILURES]:
            terminalreporter.write_line(f"failed: {nodeid}", red=True)
            for line in text.splitlines()[:SHOWN_LINES]:
                terminalreporter.write_line(f"    {line[:300]}")
            terminalreporter.write_line(f"    repeat: {repeat_command(self.config, nodeid)}")
        if len(self.failures) > SHOWN_FAILURES:
            terminalreporter.write_line(f"... and {len(self.failures) - SHOWN_FAILURES} more: {RESULTS}")
        if self.lost:
            terminalreporter.write_line(f"error: {self.lost}", red=True)
            return
        if not self.is_recorded:
            terminalreporter.write_line(f"not recorded, because another run uses {RESULTS.parent}")
            return
        try:
            SUMMARY.write_text(json.dumps({**self.counts, "failures": [nodeid for nodeid, _ in self.failures]}))
        except OSError as error:
            terminalreporter.write_line(f"error: {SUMMARY}: {error.strerror}", red=True)
