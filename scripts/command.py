# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""Code that the Python commands of this folder share, as lib.sh is for shell scripts: messages, options, children.

Exit statuses, errors, locks and the output folder are those of the package vm. Owns no policy: nothing here knows of
kernels, virtual machines or tests. Messages go to standard error; standard output belongs to KTAP and to values.
"""
from __future__ import annotations

import argparse
import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Callable, Iterator, NoReturn, Sequence

from vm.errors import EXIT_FAIL, EXIT_INFRA, EXIT_USAGE, VmError, from_os_error, infra_error
from vm.places import Lock
from vm.processes import POLL_S, shell_status

# Time in which a tree of processes must end by itself: more than a virtual machine needs.
END_LIMIT_S = 15


def name() -> str:
    return Path(sys.argv[0]).name


def log(text: str) -> None:
    """Prints one line of progress."""
    print(f"{name()}: {text}", file=sys.stderr, flush=True)


def failure(text: str, detail: str = "") -> VmError:
    """What the command had to do failed."""
    return VmError(EXIT_FAIL, text, detail)


def usage_error(text: str) -> VmError:
    """The caller asked for something that does not exist."""
    return VmError(EXIT_USAGE, f"{text} (try: {name()} -h)")


def need(program: str, package: str) -> None:
    """Raises an infrastructure failure unless the program can be run."""
    if not shutil.which(program):
        raise infra_error(f"'{program}' is missing (Debian package '{package}'): run scripts/setup.sh")


class Parser(argparse.ArgumentParser):
    """Options whose help is the docstring of the command, and whose errors are usage errors of one line."""

    def __init__(self, doc: str | None) -> None:
        super().__init__(allow_abbrev=False)
        self._doc = doc or ""

    def format_help(self) -> str:
        return self._doc.strip() + "\n"

    def error(self, message: str) -> NoReturn:
        text = re.sub(r"^argument (\S+): ", r"\1 ", message)
        raise usage_error(text.replace("expected one argument", "needs a value"))

    def read(self, argv: Sequence[str]) -> argparse.Namespace:
        """Returns the options, which may be before and behind the other words."""
        options, unknown = self.parse_known_intermixed_args(argv)
        if unknown:
            raise usage_error(f"unknown argument '{unknown[0]}'")
        return options


def number_from(least: int, most: int | None = None) -> Callable[[str], int]:
    """The type of an option whose value is a number within these bounds."""
    def read(text: str) -> int:
        if not text.isascii() or not text.isdigit() or int(text) < least or (most is not None and int(text) > most):
            raise argparse.ArgumentTypeError(f"needs a number from {least}" + (f" to {most}" if most is not None else ""))
        return int(text)
    return read


def one_of(*words: str) -> Callable[[str], str]:
    """The type of an option whose value is one of these words."""
    def read(text: str) -> str:
        if text not in words:
            raise argparse.ArgumentTypeError(f"is {' or '.join(words)}")
        return text
    return read


def take_lock(path: Path, inherited: bool = False) -> Lock:
    """Locks the file until this process ends and, if `inherited`, all that it starts later; so two invocations never
    write to the same output. Prints a line if it has to wait for another one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = Lock(path)
    if not lock.take():
        log(f"waiting for another invocation that holds {path}")
        lock.take(wait=True)
    if inherited:
        lock.share()
    return lock


# ---- children ----

def start(argv: Sequence[str | Path], *, death_signal: str = "TERM", **options: Any) -> subprocess.Popen:
    """Starts a program, for end_tree(). If this process is killed, the program gets `death_signal`. `options` are those
    of Popen; standard input is empty."""
    command = ["setpriv", "--pdeathsig", death_signal, "--", *map(str, argv)]
    # Python opens files so that programs do not inherit them, except for locks that are to be inherited.
    return subprocess.Popen(command, **{"stdin": subprocess.DEVNULL, "close_fds": False, **options})


@contextlib.contextmanager
def child(argv: Sequence[str | Path], **options: Any) -> Iterator[subprocess.Popen]:
    """Runs a program as start() does, at the same time as the block, at whose end it and its descendants end."""
    process = start(argv, **options)
    try:
        yield process
    finally:
        end_tree(process)


def call(argv: Sequence[str | Path], **options: Any) -> int:
    """Runs a program to its end; returns its status as a shell says it."""
    with child(argv, **options) as process:
        return shell_status(process.wait())


def require(argv: Sequence[str | Path], text: str, status: int = EXIT_INFRA, **options: Any) -> None:
    """Runs a program that has to succeed; `text` is the error otherwise."""
    if call(argv, **options) != 0:
        raise VmError(status, text)


def output_of(argv: Sequence[str | Path]) -> str:
    """What a program prints on standard output; empty if it fails."""
    done = subprocess.run([str(word) for word in argv], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else ""


def end_tree(process: subprocess.Popen) -> None:
    """Ends the child and its descendants, and waits until they have ended, so that vm.sh can clean up."""
    if process.poll() is not None:
        return
    pids, limit = tree_of(process.pid), time.monotonic() + END_LIMIT_S
    for pid in pids:
        send(pid, signal.SIGTERM)
    while time.monotonic() < limit and (process.poll() is None or any(send(pid, 0) for pid in pids[1:])):
        time.sleep(POLL_S)
    if process.poll() is None:
        process.kill()
    process.wait()


def tree_of(pid: int) -> list[int]:
    """The process and its descendants."""
    pids = [pid]
    for each in pids:
        pids += map(int, output_of(["pgrep", "-P", str(each)]).split())
    return pids


def send(pid: int, number: int) -> bool:
    """Sends a signal; false if there is no such process."""
    try:
        os.kill(pid, number)
    except OSError:
        return False
    return True


# ---- the command itself ----

def run(main: Callable[[list[str]], int]) -> NoReturn:
    """Runs the command and ends this process with its status. An error is one line; a signal that ends the command
    lets it end its children first."""
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _stop)
    try:
        status = main(sys.argv[1:])
    except VmError as error:
        status = _complain(error)
    except OSError as error:
        status = _complain(from_os_error(error))
    sys.exit(status)


def _stop(number: int, _: object) -> NoReturn:
    signal.signal(number, signal.SIG_IGN)
    sys.exit(128 + number)


def _complain(error: VmError) -> int:
    print(f"{error.detail}{name()}: error: {error.message}", file=sys.stderr)
    return error.status
