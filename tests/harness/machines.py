# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""The machines that programs of the tests run on: this host, or a booted virtual machine.

A machine starts a program and gives its output line by line as it comes. It does not read
the lines: batch.py does. Which machines there are, plan.py says. Both kinds share one folder of files with the program.
"""
from __future__ import annotations

import hashlib
import os
import queue
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Callable, Iterator

from . import paths, times

sys.path.insert(0, str(paths.SCRIPTS))
from vm.errors import VmError  # noqa: E402  # pylint: disable=wrong-import-position
from vm.jobs import JobMachine, MachineDied  # noqa: E402  # pylint: disable=wrong-import-position
from vm.kernel_log import PANIC, SPLAT  # noqa: E402  # pylint: disable=wrong-import-position

TIMED_OUT = 124
# Machines that a plan's `reboots` may use up.
MAX_BOOTS = 12
# Lines of a dead machine's kernel that are shown.
SHOWN_COMPLAINTS = 8
# A file system in memory, and the bytes that it must have left for temporary files of programs.
MEMORY, MEMORY_BYTES = Path("/dev/shm"), 1 << 30
# Seconds between the polite signal and the final one.
GRACE_S = 5


class MachineLost(Exception):
    """The machine is gone; nothing can run there any more. The text says why."""


class Output:
    """Lines of one run. Iterating waits for the next line; `status` is set at the end."""

    def __init__(self) -> None:
        self.lines: queue.Queue[str | None] = queue.Queue()
        self.status: int | None = None
        self.lost = ""

    def __iter__(self) -> Iterator[str]:
        while (line := self.lines.get()) is not None:
            yield line
        if self.lost:
            raise MachineLost(self.lost)

    def close_after(self, produce: Callable[[], None]) -> None:
        """Calls what produces the lines, in a thread of its own. Whatever it raises, such as that
        the disk with the log is full, must not leave the reader waiting."""
        try:
            produce()
        except Exception as error:  # pylint: disable=broad-exception-caught
            self.lost = f"the output was lost: {error}"
        self.lines.put(None)


def folder_in_memory(memory: Path = MEMORY, needed: int = MEMORY_BYTES) -> Path | None:
    """An empty folder for temporary files of programs, which sync them: on a disk, unit tests wait for it half of their
    time. None: there is not enough memory for it, or TMPDIR says where such files go. It has the same name in each run, so
    that a run finds what a killed one has left."""
    if "TMPDIR" in os.environ or not os.access(memory, os.W_OK) or shutil.disk_usage(memory).free < needed:
        return None
    owner = hashlib.sha256(f"{paths.TEST} {os.environ.get('PYTEST_XDIST_WORKER', '')}".encode()).hexdigest()[:8]
    # Short, because programs make sockets in it, whose paths have at most 107 characters.
    folder = memory / f"kfd-criu-{os.getuid()}-{owner}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700)
    return folder


class Host:
    """This machine."""

    def __init__(self, name: str, log: Path, env: dict[str, str] | None = None) -> None:
        self.name = name
        self.env = env or {}
        self.temporary = folder_in_memory()
        self.files = log.parent / f"files-{os.getpid()}"
        self.files.mkdir(parents=True, exist_ok=True)
        self.log = log
        self.process: subprocess.Popen | None = None

    def start(self, argv: tuple[str, ...], env: dict[str, str], limit_s: int, cwd: str | None = None) -> Output:
        """Starts the program in a process group of its own, in the folder cwd or the project's."""
        output = Output()
        log = self.log.open("a", errors="replace")
        variables = {**os.environ, **({"TMPDIR": str(self.temporary)} if self.temporary else {}),
                     **self.env, **env}
        # The program must not outlive the worker, which a signal may end.
        self.process = process = subprocess.Popen(  # pylint: disable=consider-using-with
            ("setpriv", "--pdeathsig", "KILL", *argv), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, cwd=cwd or paths.ROOT, env=variables, errors="replace",
            bufsize=1, text=True, start_new_session=True)
        timer = threading.Timer(limit_s, self._end, (process, output))
        timer.daemon = True
        timer.start()

        def pump() -> None:
            for line in process.stdout:
                log.write(line)
                output.lines.put(line.rstrip("\r\n"))
            log.close()
            status = process.wait()
            if output.status is None:
                output.status = status

        def run() -> None:
            output.close_after(pump)
            timer.cancel()
            if output.lost:
                self._end(process, output)

        threading.Thread(target=run, daemon=True).start()
        return output

    @staticmethod
    def _end(process: subprocess.Popen, output: Output) -> None:
        output.status = TIMED_OUT
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(process.pid, number)
                process.wait(GRACE_S)
            except (ProcessLookupError, subprocess.TimeoutExpired):
                continue

    def path_of(self, name: str) -> Path:
        """A file that the program will find under this path."""
        return self.files / name

    def close(self) -> str:
        """Ends what still runs. What went wrong with the machine itself; empty if nothing."""
        if self.process is not None and self.process.poll() is None:
            self._end(self.process, Output())
        shutil.rmtree(self.files, ignore_errors=True)
        if self.temporary:
            shutil.rmtree(self.temporary, ignore_errors=True)
        return ""


class Guest:
    """A virtual machine, booted at the first start() or boot()."""

    def __init__(self, name: str, options: list[str], env: dict[str, str], limit_s: int, log: Path,
                 reboots: bool = False) -> None:
        """`options` are those of scripts/vm.sh, `limit_s` is for the machine's whole life. With
        `reboots` a new machine takes the place of one that has ended."""
        self.name, self.options, self.env, self.limit_s, self.log = name, options, env, limit_s, log
        self.boots_left = MAX_BOOTS if reboots else 1
        self.machine: JobMachine | None = None
        # Why the machine ended before its time; empty while it runs.
        self.said = ""
        # What its kernel complained of, and what ran then.
        self.splats: list[str] = []

    def boot(self) -> JobMachine:
        """The machine, which is booted if it does not run. Raises MachineLost if it cannot be."""
        if self.said and self.boots_left:
            self.machine.kill()
            self.machine, self.said = None, ""
        if self.said:
            raise MachineLost("the machine has ended before (see its first failed case)")
        if self.machine is None:
            self.boots_left -= 1
            self.machine = JobMachine(self.name, self.options, limit_s=self.limit_s)
            try:
                with times.step("boot", self.name):
                    self.machine.start()
            except (MachineDied, VmError, OSError) as error:
                raise MachineLost(f"the machine {self.name} does not boot: {self._lose(error)}") from error
            self._note_splats(self.machine, "it booted")
        return self.machine

    def _note_splats(self, machine: JobMachine, when: str) -> None:
        self.splats += [f"while {when}: {line}" for line in machine.new_splats()]

    def _lose(self, error: Exception) -> str:
        """Remembers why the machine ended; the reason with what its kernel complained of or, if it did not
        complain, with the last lines that vm.sh printed."""
        self.said = str(error)
        lines = getattr(error, "text", "").splitlines()
        complaints = [line for line in lines if SPLAT.search(line) or PANIC.search(line)]
        return "\n".join([self.said, *(complaints[:SHOWN_COMPLAINTS] or lines[-SHOWN_COMPLAINTS:])])

    def start(self, argv: tuple[str, ...], env: dict[str, str], limit_s: int, cwd: str | None = None) -> Output:
        """Starts the program in the machine, in the folder cwd or the project's."""
        output, machine = Output(), self.boot()
        # Each line is there as soon as it comes, for whoever watches a long run.
        log = self.log.open("a", errors="replace", buffering=1)

        def on_line(line: str) -> None:
            log.write(line + "\n")
            output.lines.put(line)

        def run() -> None:
            try:
                output.status = machine.run(list(argv), limit_s, env={**self.env, **env}, on_line=on_line,
                                            cwd=cwd or str(paths.ROOT))
                self._note_splats(machine, f"{Path(argv[0]).name} ran")
            except MachineDied as error:
                output.lost = f"the machine {self.name} ended: {self._lose(error)}"
            log.close()

        threading.Thread(target=output.close_after, args=(run,), daemon=True).start()
        return output

    def path_of(self, name: str) -> Path:
        """A file that the program will find under this path."""
        return self.boot().dir / name

    def close(self) -> str:
        """Shuts the machine down. What its kernel or vm.sh complained of; empty if of nothing."""
        if self.machine is None:
            return ""
        if self.said:
            self.machine.kill()
            return ""
        status, text = self.machine.finish()
        if status == 0:
            return ""
        first = f"the machine {self.name} ended with status {status}:"
        return "\n".join([first, *self.splats[:SHOWN_COMPLAINTS], text])
