# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""A command of command.py has one line for an error, its own statuses, and takes its children along when it ends."""
from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parent
LIMIT_S = 20


def start(tmp_path: Path, body: str, *argv: str) -> subprocess.Popen[str]:
    """Starts a command that has the options --number and words, and whose main() ends with `body`."""
    lines = ["import os, sys, time", f"sys.path.insert(0, {str(FOLDER)!r})", "import command", "def main(argv):",
             "    parser = command.Parser('usage: it')", "    parser.add_argument('--number', type=int)",
             "    parser.add_argument('words', nargs='*')", "    options = parser.read(argv)",
             *(f"    {line}" for line in body.splitlines()), "    return 0", "command.run(main)"]
    script = tmp_path / "it.py"
    script.write_text("\n".join(lines) + "\n")
    # A shell lets commands in the background ignore SIGINT, and so would what the tests start if they run there.
    return subprocess.Popen(["env", "--default-signal=INT", sys.executable, "-B", script, *argv], cwd=tmp_path,
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def outcome(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=LIMIT_S)
    return process.returncode, out, err


def wait_for_file(path: Path) -> str:
    end = time.monotonic() + LIMIT_S
    while not (path.exists() and path.read_text().endswith("\n")):
        assert time.monotonic() < end, f"no {path}"
        time.sleep(0.01)
    return path.read_text()


def is_alive(pid: int) -> bool:
    stat = Path(f"/proc/{pid}/stat")
    try:
        return stat.read_text().rpartition(") ")[2][0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.parametrize("argv, text", [
    (("--bogus",), "unknown argument '--bogus'"), (("--number", "x"), "--number invalid int value: 'x'"),
    (("word", "--number"), "--number needs a value")])
def test_a_wrong_option_is_one_line_and_status_64(tmp_path: Path, argv: tuple[str, ...], text: str) -> None:
    assert outcome(start(tmp_path, "", *argv)) == (64, "", f"it.py: error: {text} (try: it.py -h)\n")


def test_options_are_taken_before_and_behind_words(tmp_path: Path) -> None:
    process = start(tmp_path, "print(options.number, *options.words)", "a", "--number", "3", "b")
    assert outcome(process) == (0, "3 a b\n", "")


@pytest.mark.parametrize("type_of_option, text, error", [
    ("number_from(1, 9999)", "9999", ""), ("number_from(1, 9999)", "0", "needs a number from 1 to 9999"),
    ("number_from(1, 9999)", "10000", "needs a number from 1 to 9999"), ("number_from(0)", "-1", "needs a number from 0"),
    ("number_from(0)", "\u0663", "needs a number from 0"), ("number_from(0)", "123456789", ""),
    ("one_of('f32', 'f16')", "f16", ""), ("one_of('f32', 'f16')", "f64", "is f32 or f16")])
def test_the_type_of_an_option_refuses_other_values(tmp_path: Path, type_of_option: str, text: str, error: str) -> None:
    body = f"parser = command.Parser('')\nparser.add_argument('--it', type=command.{type_of_option})\nparser.read(['--it={text}'])"
    status, _, err = outcome(start(tmp_path, body))
    assert (status, err) == ((64, f"it.py: error: --it {error} (try: it.py -h)\n") if error else (0, ""))


def test_the_help_is_the_text_of_the_command(tmp_path: Path) -> None:
    assert outcome(start(tmp_path, "", "-h")) == (0, "usage: it\n", "")


@pytest.mark.parametrize("body, status, text", [
    ("raise command.failure('it broke')", 1, "it broke"),
    ("raise command.infra_error('no disk', 'detail\\n')", 125, "no disk"),
    ("open('/nonexistent')", 125, "/nonexistent: No such file or directory"),
    ("command.require(['false'], 'it failed')", 125, "it failed"),
    ("command.need('no-such-program', 'it')", 125,
     "'no-such-program' is missing (Debian package 'it'): run scripts/setup.sh")])
def test_an_error_is_one_line_with_its_status(tmp_path: Path, body: str, status: int, text: str) -> None:
    found, _, err = outcome(start(tmp_path, body))
    assert (found, err.splitlines()[-1]) == (status, f"it.py: error: {text}")


def test_the_status_of_a_child_is_that_of_a_shell(tmp_path: Path) -> None:
    body = "print(command.call(['sh', '-c', 'exit 3']), command.call(['sh', '-c', 'kill -KILL $$']))"
    assert outcome(start(tmp_path, body)) == (0, "3 137\n", "")


@pytest.mark.parametrize("number, status", [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_an_interrupted_command_ends_its_children_and_theirs(tmp_path: Path, number: int, status: int) -> None:
    process = start(tmp_path, "command.call(['sh', '-c', 'sleep 600 & echo $$ $! >pids.new; mv pids.new pids; wait'])")
    pids = [int(word) for word in wait_for_file(tmp_path / "pids").split()]
    process.send_signal(number)
    assert outcome(process)[0] == status
    assert not any(is_alive(pid) for pid in pids)


@pytest.mark.parametrize("inherited", [False, True])
def test_a_lock_is_free_when_its_holder_and_the_heirs_have_ended(tmp_path: Path, inherited: bool) -> None:
    lock = f"command.take_lock(command.Path('lock'), inherited={inherited})"
    holder = start(tmp_path, f"{lock}\n"
                   "heir = command.start(['sleep', '600'], death_signal='clear', stdout=command.subprocess.DEVNULL,\n"
                   "                     stderr=command.subprocess.DEVNULL)\n"
                   "print(heir.pid)")
    heir = int(outcome(holder)[1])
    try:
        other = start(tmp_path, lock)
        if inherited:
            assert "waiting for another invocation that holds lock" in other.stderr.readline()
    finally:
        os.kill(heir, signal.SIGKILL)
    assert outcome(other) == (0, "", "")


# PATH may find a Python that has none of Debian's packages, such as pytest.
@pytest.mark.parametrize("script", sorted(file.name for file in FOLDER.glob("*.py")
                                          if os.access(file, os.X_OK) and not file.name.endswith("_test.py")
                                          and "\nusage: " in file.read_text()))
def test_no_command_needs_a_package_of_the_python_in_path(tmp_path: Path, script: str) -> None:
    bare = tmp_path / "python3"
    bare.write_text('#!/bin/sh\nexec /usr/bin/python3 -S -B "$@"\n')
    bare.chmod(0o755)
    done = subprocess.run([FOLDER / script, "-h"], check=False, capture_output=True, text=True, stdin=subprocess.DEVNULL,
                          timeout=LIMIT_S, env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"})
    assert "ModuleNotFoundError" not in done.stderr
