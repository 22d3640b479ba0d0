# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""Child processes that end with their parent, copies of their output, and the signals that end this process."""
from __future__ import annotations

import ctypes
import errno
import os
import select
import signal
import subprocess
import threading
import time
from types import FrameType
from typing import Any, Callable, Sequence

from .errors import EXIT_INFRA, VmError

PR_SET_PDEATHSIG = 1
# Seconds between the polite signal and the final one, and between two looks at something that others change.
STOP_S = 5
POLL_S = 0.02
COPY_BYTES = 1 << 16

_LIBC = ctypes.CDLL(None)
# What a waiting loop calls each round; it raises to end the wait.
Check = Callable[[], None]


def start(argv: Sequence[str], *, stdout: Any, stderr: Any, pass_fds: Sequence[int] = ()) -> subprocess.Popen[bytes]:
    """Starts a program with empty standard input. The kernel kills it when the calling thread ends, however that
    comes, so the caller must be a thread that lives as long as the program is wanted: usually the main thread."""
    parent = os.getpid()

    def die_with_parent() -> None:
        _LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # It died before the kernel was asked to tell.
            os._exit(EXIT_INFRA)

    return subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr, pass_fds=pass_fds,
                            preexec_fn=die_with_parent)


def shell_status(returncode: int) -> int:
    """A child's status as a shell says it: 128 and the number of the signal that ended it."""
    return 128 - returncode if returncode < 0 else returncode


def stop(process: subprocess.Popen[bytes]) -> int:
    """Ends the process, by force after STOP_S, and returns its status as a shell says it."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
    return shell_status(process.wait())


def wait_until(condition: Callable[[], bool], seconds: float, check: Check) -> bool:
    """Whether the condition came true in time."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() >= end:
            return False
        check()
        time.sleep(POLL_S)
    return True


class Relay:
    """A thread that copies one descriptor to another until the end of file. Owns and closes `source`.

    When `sink` takes no more, the rest is read and dropped, so that the writer does not wait for ever;
    `error` then says why, unless the reader of a pipe has just gone.
    """

    def __init__(self, source: int, sink: int) -> None:
        self.error: OSError | None = None
        self._source, self._sink, self._broken = source, sink, False
        self._thread = threading.Thread(target=self._copy, daemon=True)
        self._thread.start()

    def _copy(self) -> None:
        while data := os.read(self._source, COPY_BYTES):
            try:
                while data and not self._broken:
                    data = data[_write_some(self._sink, data):]
            except OSError as error:
                self._broken = True
                if error.errno != errno.EPIPE:
                    self.error = error
        os.close(self._source)

    def join(self, check: Check) -> None:
        """Waits for the end of file: whoever reads the copy may take their time."""
        while self._thread.is_alive():
            self._thread.join(0.1)
            check()


def _write_some(fd: int, data: bytes) -> int:
    try:
        return os.write(fd, data)
    except BlockingIOError:  # The caller's descriptor is one that does not wait.
        select.select([], [fd], [])
        return 0


class Signals:
    """While it is entered, INT, TERM and HUP do not end this process: check() raises after one of them, so that
    what was started can be stopped. Signals that the caller ignores stay ignored."""

    def __init__(self, lifeline: int | None = None) -> None:
        """`lifeline`: a descriptor whose end of file counts as a SIGTERM."""
        self._seen = 0
        self._lifeline = lifeline
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Signals:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, number: int, _: FrameType | None) -> None:
        self._seen = self._seen or number

    def check(self) -> None:
        if self._lifeline is not None and not self._seen:
            ready, _, _ = select.select([self._lifeline], [], [], 0)
            if ready and not os.read(self._lifeline, COPY_BYTES):
                self._seen = signal.SIGTERM
        if self._seen:
            raise Interrupted(self._seen)


class Interrupted(VmError):
    """A signal asked this process to end. Nothing is printed for it."""

    def __init__(self, number: int) -> None:
        super().__init__(128 + number, "")
