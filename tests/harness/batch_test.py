# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""A batch answers for each of its cases, whatever the program does."""
from __future__ import annotations

import subprocess
import time
from dataclasses import replace
from pathlib import Path
from typing import Iterator

import pytest
from harness.batch import Batch
from harness.machines import Host, MachineLost, Output
from harness.plan import Program
from harness.streams import ABSENT, FAILED, PASSED, SKIPPED

GTEST = """#!/usr/bin/env python3
import os, re, sys
wanted = re.search("=(.*)", open(sys.argv[1].split("=")[1]).read()).group(1).split(":")
for case in wanted:
    print("[ RUN      ]", case, flush=True)
    if "crash" in case:
        os.abort()
    if "hang" in case:
        import time
        time.sleep(60)
    print("[       OK ]" if "bad" not in case else "[  FAILED  ]", case, "(0 ms)", flush=True)
sys.exit(STATUS)
"""


@pytest.fixture(name="host")
def make_host(tmp_path: Path) -> Iterator[Host]:
    host = Host("host", tmp_path / "log")
    yield host
    host.close()


def program(tmp_path: Path, cases: list[str], text: str, kind: str = "gtest", limit_s: int = 20) -> Program:
    path = tmp_path / "program"
    path.write_text(text)
    path.chmod(0o755)
    return Program("program", kind, (str(path),), limit_s, tuple(cases))


def gtest(tmp_path: Path, cases: list[str], status: int = 0, limit_s: int = 20) -> Program:
    return program(tmp_path, cases, GTEST.replace("STATUS", str(status)), limit_s=limit_s)


def run(host: Host, subject: Program) -> list[tuple[str, str]]:
    batch = Batch(subject, list(subject.cases), host)
    results = [batch.result(case) for case in subject.cases]
    return [(result.outcome, result.reason) for result in results]


def test_every_case_has_its_result(tmp_path: Path, host: Host) -> None:
    results = run(host, gtest(tmp_path, ["A.one", "A.bad"], 1))
    assert [outcome for outcome, _ in results] == [PASSED, FAILED]


def test_a_crash_fails_its_case_and_hides_no_other(tmp_path: Path, host: Host) -> None:
    results = run(host, gtest(tmp_path, ["A.one", "A.crash", "A.two", "A.crash2", "A.three"]))
    assert [outcome for outcome, _ in results] == [PASSED, FAILED, PASSED, FAILED, PASSED]


def test_a_hang_ends_at_the_limit(tmp_path: Path, host: Host) -> None:
    results = run(host, gtest(tmp_path, ["A.one", "A.hang", "A.two"], limit_s=2))
    assert [outcome for outcome, _ in results] == [PASSED, FAILED, PASSED]


def test_a_status_that_no_case_explains_is_a_failure(tmp_path: Path, host: Host) -> None:
    """LeakSanitizer ends a program with a status when all cases have passed."""
    assert run(host, gtest(tmp_path, ["A.one", "A.two"], 23)) == [
        (PASSED, ""), (FAILED, "no case failed, but the program ended with status 23")]


def test_a_full_disk_for_the_log_is_a_failure_and_no_hang(tmp_path: Path) -> None:
    (tmp_path / "log").symlink_to("/dev/full")
    results = run(Host("host", tmp_path / "log"), gtest(tmp_path, ["A.one", "A.two"]))
    assert results[1] == (FAILED, "behind this case the output was lost: [Errno 28] No space left on device")


def test_a_program_ends_with_the_worker_that_runs_it(tmp_path: Path) -> None:
    script = ("import sys, time; from pathlib import Path; from harness.machines import Host\n"
              f"host = Host('host', Path({str(tmp_path)!r}) / 'log')\n"
              "host.start(('sleep', '600'), {}, 60)\nchild = host.process.pid\n"
              # Until setpriv has become the program, it may not have asked for its end yet.
              "while Path(f'/proc/{child}/comm').read_text() != 'sleep\\n': time.sleep(0.02)\n"
              "print(child, flush=True)\ntime.sleep(600)\n")
    with subprocess.Popen(["python3", "-B", "-c", script], stdout=subprocess.PIPE,
                          cwd=Path(__file__).parents[1]) as worker:
        child = int(worker.stdout.readline())
        worker.kill()
    deadline = time.monotonic() + 10
    while Path(f"/proc/{child}/stat").exists() and time.monotonic() < deadline:
        if " Z " in Path(f"/proc/{child}/stat").read_text():
            break
        time.sleep(0.05)
    else:
        assert not Path(f"/proc/{child}").exists()


def test_garbage_and_endless_lines_hide_no_result(tmp_path: Path, host: Host) -> None:
    text = ("#!/usr/bin/python3\nimport sys\nout = sys.stdout.buffer\n"
            "out.write(b'\\xff\\0\\x1b' * 1000000 + b'[ RUN      ] A.one\\n')\n"
            "out.write(b'x' * 10000000 + b'[  FAILED  ] A.one (1 ms)\\n')\nsys.exit(1)\n")
    subject = program(tmp_path, ["A.one"], text)
    result = Batch(subject, ["A.one"], host).result("A.one")
    assert result.outcome == FAILED and sum(map(len, result.notes)) < 100000


def test_a_program_without_results_fails_each_case(tmp_path: Path, host: Host) -> None:
    assert run(host, program(tmp_path, ["A.one", "A.two"], "#!/bin/sh\necho no GPU; exit 3\n")) == [
        (FAILED, "the program ended with status 3")] * 2


def test_a_command_is_judged_by_its_status(tmp_path: Path, host: Host) -> None:
    for status, outcome in ((0, PASSED), (4, SKIPPED), (1, FAILED)):
        subject = program(tmp_path, ["works"], f"#!/bin/sh\necho why; exit {status}\n", "command")
        assert run(host, subject)[0][0] == outcome


LISTING = """#!/bin/sh
case "$*" in
*--gtest_list_tests*) printf 'A.\\n  one\\n'; exit LISTED ;;
esac
echo '[ RUN      ] A.one'; echo '[       OK ] A.one (0 ms)'
"""


@pytest.mark.parametrize("status, outcome", [(0, ABSENT), (139, FAILED)])
def test_cases_are_absent_only_from_a_whole_list(tmp_path: Path, host: Host, status: int, outcome: str) -> None:
    subject = program(tmp_path, ["A.one", "A.two"], LISTING.replace("LISTED", str(status)))
    assert [each for each, _ in run(host, replace(subject, varies=True))] == [PASSED, outcome]


KSELFTEST = """#!/bin/sh
echo TAP version 13
PLAN
exit STATUS
"""


@pytest.mark.parametrize("plan, status, expected", [
    ("echo '1..0 # SKIP not root'", 4, [(SKIPPED, "not root")] * 2),
    ("echo '1..0 # SKIP not root'; sleep 0.3", 1, [
        (SKIPPED, "not root"), (FAILED, "no case failed, but the program ended with status 1")]),
    ("echo 1..2; echo ok 1 a.one; echo ok 2 a.two", 4, [
        (PASSED, ""), (FAILED, "no case failed, but the program ended with status 4")]),
])
def test_a_program_that_skips_as_a_whole_skips_each_case(tmp_path: Path, host: Host, plan: str, status: int,
                                                         expected: list[tuple[str, str]]) -> None:
    text = KSELFTEST.replace("PLAN", plan).replace("STATUS", str(status))
    assert run(host, program(tmp_path, ["a.one", "a.two"], text, "kselftest")) == expected


@pytest.mark.parametrize("line, outcome", [("ok 2 unlisted", PASSED), ("not ok 2 unlisted", FAILED)])
def test_a_failure_of_no_case_is_a_failure(tmp_path: Path, host: Host, line: str, outcome: str) -> None:
    suite = f"#!/bin/sh\necho '    ok 1 first'\necho '    {line}'\necho '{line.split(' 2')[0]} 1 suite'\n"
    assert run(host, program(tmp_path, ["first"], suite, "kunit"))[0][0] == outcome


def test_a_machine_that_ends_as_its_last_program_does_fails_the_last_case(tmp_path: Path) -> None:
    class Dying:
        def start(self, argv, env, limit_s, cwd=None) -> Output:
            output = Output()
            for line in ("[ RUN      ] A.one", "[       OK ] A.one (0 ms)", None):
                output.lines.put(line)
            output.lost = "the machine m ended: a panic"
            return output

        def path_of(self, name: str) -> Path:
            return tmp_path / name

    assert run(Dying(), gtest(tmp_path, ["A.one"])) == [(FAILED, "behind this case the machine m ended: a panic")]


def test_a_machine_that_ends_fails_what_has_no_result(tmp_path: Path) -> None:
    class Lost:
        def start(self, argv, env, limit_s, cwd=None) -> Output:
            raise MachineLost("the machine m ended: a triple fault")

        def path_of(self, name: str) -> Path:
            return tmp_path / name

    assert run(Lost(), gtest(tmp_path, ["A.one", "A.two"])) == [(FAILED, "the machine m ended: a triple fault")] * 2
