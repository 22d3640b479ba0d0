# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""One boot of a machine: vasicd and QEMU as processes, and what the guest reports. Does not judge the report.

Nothing of this project runs in a guest before its first process: amdgpu is a module, loaded later. Without
hardware virtualization a busy host sometimes makes a machine of which one processor never gets its timer's
interrupts, or one that is gone without a word. Such a boot ends in NotBooted, and machine.py tries again.
"""
from __future__ import annotations

import os
import select
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

from . import processes
from .errors import VmError, infra_error
from .kernel_log import PANIC, SPLAT, STALL
from .places import file_size, read_text, require_space, write_file
from .processes import STOP_S, Check, Relay
from .qemu import Ports, Setup, command

VASICD_READY_S = 15
DRAIN_S = 10
TICK_S = 0.2


class NotBooted(Exception):
    """The kernel did not come as far as its first process, for a reason that says nothing of the kernel."""


class Died(VmError):
    """The machine ended, or is too late, before it reported a status."""


@dataclass
class Report:
    """What the guest has told so far. Times are in ms: by the guest's clock, and since QEMU's start by the host's."""
    guest_ms: dict[str, int] = field(default_factory=dict)
    host_ms: dict[str, int] = field(default_factory=dict)
    fail: str = ""
    taint: int = 0
    status: int | None = None
    # Bytes that the guest has sent through each port.
    out_bytes: int = 0
    err_bytes: int = 0
    kmsg_bytes: int = 0

    def take(self, line: str, now_ms: int) -> None:
        """One line of the status port; guest-init.sh describes them."""
        key, _, rest = line.partition(" ")
        try:
            if key in ("up", "kfd"):
                self.guest_ms[key], self.host_ms[key] = int(rest), now_ms
            elif key == "fail":
                self.fail = rest
            elif key == "taint":
                self.taint = int(rest)
            elif key == "exit":
                self.status, self.out_bytes, self.err_bytes, self.kmsg_bytes = map(int, rest.split())
            else:
                raise ValueError
        except ValueError:
            raise infra_error(f"the guest sent an unknown report: {line}") from None


class Boot:
    """Owns vasicd, QEMU, the pipes between QEMU and this process, and the threads that copy output."""

    def __init__(self, setup: Setup, check: Check, stdout: int, stderr: int) -> None:
        """The command's output goes to the descriptors `stdout` and `stderr`, which stay the caller's."""
        self.report = Report()
        self._setup, self._check, self._sinks = setup, check, (stdout, stderr)
        self._vasicd: subprocess.Popen[bytes] | None = None
        self._qemu: subprocess.Popen[bytes] | None = None
        self._relays: list[Relay] = []
        self._status_fd = -1
        self._line = b""
        self._start = time.monotonic()

    def elapsed_ms(self) -> int:
        """Since QEMU was started."""
        return int((time.monotonic() - self._start) * 1000)

    def start(self) -> None:
        ram = self._start_vasicd() if self._setup.vasicd else ""
        self._start_qemu(ram)

    def _start_vasicd(self) -> str:
        """Returns the file that is the guest's memory."""
        setup, log = self._setup, self._setup.log
        line = [str(setup.vasicd), "--dir", str(setup.run), "--ram-size", f"{setup.options.mem_mib}M", "--ram-low",
                "2G", "--die-with-parent", "--control", f"{setup.run}/control.sock"]
        for gpu in setup.options.gpus:
            line += ["--gpu", gpu.spec]
        if setup.options.trace:
            line += ["--trace", f"{log}/trace.txt"]
        with open(log / "vasicd.out", "wb") as out, open(log / "vasicd.log", "wb") as err:
            self._vasicd = processes.start(line, stdout=out, stderr=err)
        write_file(log / "vasicd.pid", f"{self._vasicd.pid}\n")
        ready = self._wait_for_vasicd(self._vasicd)
        ram = next((word[4:] for word in ready.split() if word.startswith("ram=")), "")
        if not ram:
            raise infra_error(f"vasicd does not say where the guest's memory is: {ready}")
        # The socket itself has a short path; vasicctl looks for this link.
        (log / "control.sock").unlink(missing_ok=True)
        (log / "control.sock").symlink_to(setup.run / "control.sock")
        return ram

    def _wait_for_vasicd(self, vasicd: subprocess.Popen[bytes]) -> str:
        log = self._setup.log

        def line() -> str:
            text = read_text(log / "vasicd.out")
            return text.split("\n")[0] if "\n" in text else ""

        def is_ready() -> bool:
            if vasicd.poll() is not None:
                raise infra_error(f"vasicd did not start: {last_line(log / 'vasicd.log')}")
            return line().startswith("vasicd: ready ")

        if not processes.wait_until(is_ready, VASICD_READY_S, self._check):
            require_space(log / "vasicd.out")
            raise infra_error(f"vasicd was not ready within {VASICD_READY_S} s (see {log}/vasicd.log)")
        return line()

    def _start_qemu(self, ram: str) -> None:
        """Only QEMU keeps the write ends of the pipes, so its end, however it comes, is the end of file here."""
        pipes = [os.pipe() for _ in range(3)]
        (self._status_fd, _), (out_fd, _), (err_fd, _) = pipes
        ports = Ports(*(write_end for _, write_end in pipes))
        try:
            self._start = time.monotonic()
            with open(self._setup.log / "qemu.log", "wb") as log:
                self._qemu = processes.start(command(self._setup, ports, ram), stdout=log, stderr=log,
                                             pass_fds=ports.fds)
        finally:
            for write_end in ports.fds:
                os.close(write_end)
        self._relays = [Relay(out_fd, self._sinks[0]), Relay(err_fd, self._sinks[1])]

    def wait(self, deadline: float, limit_s: int) -> None:
        """Until the guest reports its status. Raises NotBooted, or Died if no status comes by time.monotonic()'s
        `deadline`, which is what `limit_s` came to."""
        while self.report.status is None:
            if time.monotonic() >= deadline:
                raise Died(124, f"timeout: not done after {limit_s} s")
            self._check()
            # QEMU would try for ever to write the guest's kernel log, and the guest would wait for it.
            require_space(self._setup.log / "serial.log")
            ready, _, _ = select.select([self._status_fd], [], [], TICK_S)
            if ready:
                self._read_status()
            elif self._has_stalled():
                raise NotBooted("stalled")
            if not self._setup.options.lossy and self._vasicd and self._vasicd.poll() is not None:
                status = processes.shell_status(self._vasicd.returncode)
                raise Died(125, f"vasicd died with status {status}: {last_line(self._setup.log / 'vasicd.log')}")

    def _read_status(self) -> None:
        data = os.read(self._status_fd, 4096)
        if not data:
            self._explain_end()
        self._line += data
        while b"\n" in self._line:
            line, _, self._line = self._line.partition(b"\n")
            self.report.take(line.decode(errors="replace"), self.elapsed_ms())

    def _explain_end(self) -> None:
        """QEMU has closed its pipes, and there is no status."""
        status, how = self._await_qemu()
        # QEMU's own refusal is status 1: that will not change in another boot.
        unexplained = status == 0 or status > 128
        console = read_text(self._setup.log / "serial.log")
        if not self._is_up() and unexplained and not PANIC.search(console) and not SPLAT.search(console):
            raise NotBooted(f"ended ({how})")
        raise Died(125, f"the guest died without reporting a status: {how}")

    def _await_qemu(self) -> tuple[int, str]:
        """QEMU's status, and in words how it ended."""
        assert self._qemu
        try:
            self._qemu.wait(STOP_S)
        except subprocess.TimeoutExpired:
            pass
        status = processes.stop(self._qemu)
        if status > 128:
            return status, f"QEMU ended by signal {status - 128}"
        if status:
            return status, f"QEMU ended with status {status}"
        if "\nTriple fault" in "\n" + read_text(self._setup.log / "cpu.log"):
            return status, "a triple fault"
        return status, "it reset itself"

    def _is_up(self) -> bool:
        return "up" in self.report.guest_ms

    def _has_stalled(self) -> bool:
        return not self._is_up() and bool(STALL.search(read_text(self._setup.log / "serial.log")))

    def drain(self) -> bool:
        """Waits for QEMU to write what the guest has already sent. False if some of it was lost."""
        log, report = self._setup.log, self.report
        wanted = {log / "stdout.log": report.out_bytes, log / "stderr.log": report.err_bytes,
                  log / "kmsg": report.kmsg_bytes}

        def is_complete() -> bool:
            missing = [path for path, size in wanted.items() if file_size(path) < size]
            for path in missing:
                require_space(path)
            return not missing

        return processes.wait_until(is_complete, DRAIN_S, self._check)

    def stop_qemu(self) -> None:
        """QEMU's end closes the pipes, so what it wrote reaches the caller before this returns."""
        if self._qemu:
            processes.stop(self._qemu)
            self._qemu = None
        for relay in self._relays:
            relay.join(self._check)

    def output_error(self) -> OSError | None:
        """Why some of the command's output could not be passed on."""
        return next((relay.error for relay in self._relays if relay.error), None)

    def stop_vasicd(self) -> int:
        """Its status; 0 without one."""
        if not self._vasicd:
            return 0
        vasicd, self._vasicd = self._vasicd, None
        return processes.stop(vasicd)

    def kill(self) -> None:
        """Ends what still runs, without a wait for whoever reads the output."""
        if self._qemu:
            processes.stop(self._qemu)
        self.stop_vasicd()
        if self._status_fd >= 0:
            os.close(self._status_fd)
            self._status_fd = -1


def last_line(path: Path) -> str:
    return (read_text(path).splitlines() or [""])[-1]
