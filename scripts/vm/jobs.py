# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""A machine that runs many commands, one after the other, in one boot.

    from vm.jobs import JobMachine, MachineDied

    machine = JobMachine("guest-gfx906", ["--kernel", "criu", "--gpu", "gfx906,vram=256M"])
    machine.start()                                     # returns when the guest takes jobs
    status = machine.run(["/path/kfdtest", "--gtest_filter=A.*"], 60, env={"K": "V"}, on_line=print)
    status, text = machine.finish()                     # what vm.sh judges: 0, or 1 and the splat, or 125

The machine is a child process, scripts/vm.sh run --jobs DIR, where DIR is out/vm/NAME.jobs. It holds the read end
of a pipe whose write end only this process has: however this process ends, the machine ends too. So the class
can be used from any thread, but from one at a time. The files in DIR, for each job N = 0, 1, 2 ...:

    N.job      from the host, all at once: shell code that sets limit (seconds), cwd, env=(K=V ...), argv=(...)
    N.out      from the guest, as it comes: standard output and standard error of the job
    N.status   from the guest, after all output: the job's status and a line feed
    ready      from the guest, when it begins to look for jobs
    end        from the host: the guest is to shut down
    vm.log     what vm.sh prints

DIR stays until the next machine of this name starts, and is a record of what was run.
"""
from __future__ import annotations

import re
import shlex
import subprocess
import time
from pathlib import Path
from typing import Callable, Mapping, Sequence

from .errors import infra_error
from .guest_files import shell_list
from .kernel_log import SPLAT
from .places import Lock, empty_folder, logical_cwd, out_dir, read_text, replace_file, repo_root, write_file, LOCK_NAME

POLL_S = 0.03
# vm.sh stops QEMU and vasicd in this time when it is asked to.
STOP_LIMIT_S = 30
# Seconds after a job's limit in which the guest has to say that it killed the job.
ANSWER_S = 60
# kmemleak's two scans, the shutdown and vm.sh's judgement. A scan takes a minute in a machine
# that has a processor for itself.
FINISH_LIMIT_S = 900
SESSION_LIMIT_S = 3600

OnLine = Callable[[str], None]


class MachineDied(Exception):
    """The machine ended, or does not answer. `reason` is one line, `text` is all that vm.sh printed."""

    def __init__(self, reason: str, text: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.text = text


class JobMachine:
    """Owns the process of vm.sh. As a context manager it is killed at the end, unless finish() came before."""

    def __init__(self, name: str, options: Sequence[str] = (), *, limit_s: int = SESSION_LIMIT_S) -> None:
        """`name` is that of out/vm/NAME; only one machine has it at a time. `options` are vm.sh's, without --name,
        --timeout and --jobs. `limit_s` is for the machine's whole life."""
        self.name = name
        self.dir = out_dir() / "vm" / f"{name}.jobs"
        self.log_dir = out_dir() / "vm" / name
        self._options, self._limit_s = list(options), limit_s
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = Lock(self.dir / LOCK_NAME)
        self._count = 0
        self._console_read = 0

    def __enter__(self) -> JobMachine:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def start(self) -> None:
        """Boots the machine and waits until it takes jobs. Raises MachineDied if it does not come so far, VmError
        if another process has a machine of this name."""
        self.dir.mkdir(parents=True, exist_ok=True)
        if not self._lock.take():
            raise infra_error(f"another virtual machine is named '{self.name}'")
        empty_folder(self.dir)
        self._count = self._console_read = 0
        with open(self.dir / "vm.log", "wb") as log:
            self._process = subprocess.Popen(
                [str(repo_root() / "scripts/vm.sh"), "run", "--name", self.name, "--timeout", str(self._limit_s),
                 *self._options, "--jobs", str(self.dir), "--until-eof"],
                stdin=subprocess.PIPE, stdout=log, stderr=log, start_new_session=True)
        try:
            while not (self.dir / "ready").exists():
                self._require_alive()
                time.sleep(POLL_S)
        except BaseException:
            self.kill()
            raise

    def run(self, argv: Sequence[str], limit_s: float, env: Mapping[str, str] | None = None,
            on_line: OnLine | None = None, cwd: str | None = None) -> int:
        """Runs a command in the guest and returns its status: 128 and the number for a signal, 127 for a command
        that is not there, 124 if it was still there after `limit_s` and was killed with its process group.

        env      is added to the environment of the guest's first process
        on_line  gets each line of standard output and standard error as it comes, without the line feed; bytes
                 that are no UTF-8 are replaced. If it raises, the exception passes through and the job continues
                 in the guest: the next job waits for it
        cwd      the folder, which must be there in the guest; by default the caller's

        Raises MachineDied if the machine ends before the job does, or says nothing ANSWER_S after the limit.
        """
        self._require_alive()
        number, self._count = self._count, self._count + 1
        items = [f"{key}={value}" for key, value in (env or {}).items()]
        replace_file(self.dir / f"{number}.job",
                     f"limit={max(limit_s, 0.001):.3f}\ncwd={shlex.quote(cwd or logical_cwd())}\n"
                     + shell_list("env", items) + shell_list("argv", argv))
        output = _Lines(self.dir / f"{number}.out", on_line or (lambda _: None))
        deadline = time.monotonic() + limit_s + ANSWER_S
        try:
            while (status := self._job_status(number)) is None:
                output.read()
                if not self.alive() and self._job_status(number) is None:
                    self._require_alive()
                if time.monotonic() > deadline:
                    self.kill()
                    raise self._died(f"the guest does not answer, {ANSWER_S} s after the job's limit of {limit_s:g} s")
                time.sleep(POLL_S)
        except MachineDied:
            output.read(is_all=True)
            raise
        output.read(is_all=True)
        return status

    def _job_status(self, number: int) -> int | None:
        text = read_text(self.dir / f"{number}.status")
        return int(text) if text.endswith("\n") else None

    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def new_splats(self) -> list[str]:
        """Lines of the guest's console in which its kernel complained since the last call. It tells which job made
        the kernel complain; the verdict, with the whole kernel log, is finish()'s."""
        text = read_text(self.log_dir / "serial.log")
        whole = text.rfind("\n") + 1
        fresh, self._console_read = text[self._console_read:whole], whole
        return [line for line in fresh.splitlines() if SPLAT.search(line)]

    def text(self) -> str:
        """What vm.sh has printed so far."""
        return read_text(self.dir / "vm.log")

    def finish(self) -> tuple[int, str]:
        """Shuts the machine down. Returns vm.sh's status and what it printed: 0 if all was well, and then the text
        is empty or says that the machine had to be booted again; 1 if the guest's kernel complained; 124 if the
        machine's time was over; 125 if QEMU, vasicd or the guest failed."""
        if self._process is None:
            raise MachineDied("the machine was not started", "")
        if self.alive():
            write_file(self.dir / "end", "")
        try:
            status = self._process.wait(FINISH_LIMIT_S)
        except subprocess.TimeoutExpired:
            self.kill()
            return 124, self.text() + f"vm.sh: error: the machine did not shut down within {FINISH_LIMIT_S} s\n"
        self._close()
        return (status if status >= 0 else 128 - status), self.text()

    def kill(self) -> None:
        """Ends the machine now, if it is there; it judges nothing."""
        if self._process is None:
            return
        if self.alive():
            self._process.terminate()
            try:
                self._process.wait(STOP_LIMIT_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._close()

    def _close(self) -> None:
        if self._process and self._process.stdin:
            self._process.stdin.close()
        self._lock.release()

    def _require_alive(self) -> None:
        if self.alive():
            return
        errors = re.findall(r"^vm\.sh: error: (.*)$", self.text(), re.MULTILINE)
        if self._process is None:
            raise self._died("the machine was not started")
        raise self._died(errors[-1] if errors else f"vm.sh ended with status {self._process.poll()}")

    def _died(self, reason: str) -> MachineDied:
        return MachineDied(reason, self.text() if self._process else "")


class _Lines:
    """Reads a growing file and calls back for each line."""

    def __init__(self, path: Path, on_line: OnLine) -> None:
        self._path, self._on_line = path, on_line
        self._offset, self._rest = 0, b""

    def read(self, is_all: bool = False) -> None:
        """With `is_all` what follows the last line feed is a line too."""
        try:
            with open(self._path, "rb") as file:
                file.seek(self._offset)
                data = file.read()
        except FileNotFoundError:
            return
        self._offset += len(data)
        *lines, self._rest = (self._rest + data).split(b"\n")
        if is_all and self._rest:
            lines.append(self._rest)
            self._rest = b""
        for line in lines:
            self._on_line(line.decode(errors="replace"))
