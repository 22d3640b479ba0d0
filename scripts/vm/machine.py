# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""One run of a machine: finds what it needs, boots it, waits for its command, judges what came of it.

    with Signals() as signals:
        result = Machine(parse(["--kernel", "criu", "--", "true"]), check=signals.check).run()
"""
from __future__ import annotations

import json
import os
import shutil
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

from . import accel, guest_files
from .boot import Boot, Died, NotBooted
from .errors import EXIT_FAIL, EXIT_INFRA, VmError, from_os_error, infra_error
from .kernel_log import SPLAT, TAINT_FAULTS, complaint, dmesg_lines, last_excerpts
from .options import Options
from .places import LogFolder, RunFolder, out_dir, read_text, root_folder, write_file
from .processes import Check
from .qemu import Setup

BOOTS = 3
TAIL_LINES = 30
# What QEMU and the host's own page cache need in addition to the guest's memory.
SPARE_MIB = 256
# A vasicd without a handler for the signal that ends it.
STATUS_TERMINATED = 143


@dataclass(frozen=True)
class Result:
    """The command's status; or another one, and `why` it is that: one line without the name of the program.
    `detail` is whole lines to be shown before it."""
    status: int
    why: str = ""
    detail: str = ""


def log_line(text: str) -> None:
    print(f"vm.sh: {text}", file=sys.stderr, flush=True)


class Machine:
    """Owns the folders, locks and processes of one run, and gives them back when run() returns."""

    def __init__(self, options: Options, *, check: Check = lambda: None, say: Callable[[str], None] = log_line,
                 stdout: int = 1, stderr: int = 2) -> None:
        """`check` is called while waiting and raises to end the run. `say` gets lines about its progress. The
        command's output goes to the two descriptors, which stay the caller's."""
        self._options, self._check, self._say, self._sinks = options, check, say, (stdout, stderr)
        self._boot: Boot | None = None

    def run(self) -> Result:
        """To be called from a thread that lives on: QEMU ends with it."""
        try:
            return Result(self._run())
        except VmError as error:
            return Result(error.status, error.message, error.detail)
        except OSError as error:
            return Result(EXIT_INFRA, from_os_error(error).message)

    def _run(self) -> int:
        options = self._options
        bzimage, modules = find_kernel(options)
        vasicd = find_vasicd() if options.gpus else None
        if options.root:
            check_root(options.root)
        check_memory(options)
        folder = RunFolder()
        log: LogFolder | None = None
        try:
            log = LogFolder(options.name)
            how = accel.TCG if options.icount else accel.choose(bzimage, folder.path, self._check)
            setup = Setup(options, how, bzimage, modules, vasicd, folder.path, log.path)
            guest_files.write(folder.path, options, modules)
            return self._boot_and_wait(setup)
        finally:
            if self._boot:
                self._boot.kill()
            if log:
                (log.path / "control.sock").unlink(missing_ok=True)
            folder.remove()
            if log:
                log.release()

    def _boot_and_wait(self, setup: Setup) -> int:
        """Boots it, again if it does not get through its boot."""
        deadline = time.monotonic() + setup.options.limit_s
        console = setup.log / "serial.log"
        for number in range(1, BOOTS + 1):
            boot = self._boot = Boot(setup, self._check, *self._sinks)
            try:
                boot.start()
                boot.wait(deadline, setup.options.limit_s)
                return self._judge(setup, boot)
            except Died as error:
                raise self._explained(setup, boot, error) from error
            except NotBooted as error:
                if number == BOOTS:
                    last = Died(EXIT_INFRA, f"the guest's kernel {error} in the last of {BOOTS} boots")
                    raise self._explained(setup, boot, last) from error
                boot.stop_qemu()
                boot.kill()
                console.touch()
                kept = console.rename(setup.log / f"serial.{number}.log")
                self._say(f"the guest's kernel {error} before its first process (see {kept}): booting it again")
        raise AssertionError("unreachable")

    def _explained(self, setup: Setup, boot: Boot, error: Died) -> VmError:
        """The error with the end of the serial log."""
        boot.stop_qemu()
        console = read_text(setup.log / "serial.log").splitlines()
        path = setup.log / "serial.log"
        lines = [f"qemu: {line}" for line in read_text(setup.log / "qemu.log").splitlines()[-5:]]
        # The lines of a panic itself scroll away under those that follow it; earlier complaints are not why the guest
        # died.
        lines += last_excerpts(console, SPLAT, 3, 3)
        lines += [f"---- last {TAIL_LINES} lines of {path}", *console[-TAIL_LINES:], "----", ""]
        self._write_times(setup, boot, error.status)
        return VmError(error.status, f"{error.message} (logs: {setup.log})", "\n".join(lines))

    def _judge(self, setup: Setup, boot: Boot) -> int:
        """Turns the report into one status."""
        report, log = boot.report, setup.log
        assert report.status is not None
        if not boot.drain():
            self._say("some output of the guest was lost")
        boot.stop_qemu()
        vasicd_status = boot.stop_vasicd()
        dmesg = self._write_dmesg(log)
        self._write_times(setup, boot, report.status)
        if error := boot.output_error():
            raise from_os_error(error, "standard output or standard error")
        complained = f"the guest's kernel complained; the command's status was {report.status} (logs: {log})"
        if text := complaint(dmesg, f"{log}/dmesg.log"):
            raise VmError(EXIT_FAIL, complained, text)
        if report.taint & TAINT_FAULTS:
            self._say(f"the kernel is tainted by a fault: {report.taint}")
            raise VmError(EXIT_FAIL, complained)
        if report.fail:
            raise infra_error(f"{report.fail} (logs: {log})", "".join(f"{line}\n" for line in dmesg[-15:]))
        if not setup.options.lossy and vasicd_status not in (0, STATUS_TERMINATED):
            tail = read_text(log / "vasicd.log").splitlines()[-TAIL_LINES:]
            raise infra_error(f"vasicd ended with status {vasicd_status} (see {log}/vasicd.log)",
                              "".join(f"{line}\n" for line in tail))
        return report.status

    def _write_dmesg(self, log: Path) -> list[str]:
        lines = list(dmesg_lines(read_text(log / "kmsg")))
        write_file(log / "dmesg.log", "".join(f"{line}\n" for line in lines))
        (log / "kmsg").unlink(missing_ok=True)
        return lines

    def _write_times(self, setup: Setup, boot: Boot, status: int) -> None:
        report = boot.report
        write_file(setup.log / "times.json", json.dumps({
            "accel": setup.accel, "boot_ms": report.host_ms.get("up"), "kfd_ms": report.host_ms.get("kfd"),
            "guest_boot_ms": report.guest_ms.get("up"), "guest_kfd_ms": report.guest_ms.get("kfd"),
            "total_ms": boot.elapsed_ms(), "status": status}) + "\n")


def find_kernel(options: Options) -> tuple[Path, str]:
    """The kernel's file, and the folder that has its lib/modules."""
    folder = out_dir() / "kernel" / options.kernel
    if options.bzimage:
        bzimage = Path(options.bzimage)
        if not os.access(bzimage, os.R_OK):
            raise infra_error(f"cannot read the kernel {bzimage}")
    else:
        bzimage = folder / "bzImage"
        if not os.access(bzimage, os.R_OK):
            raise infra_error(f"no kernel '{options.kernel}' ({bzimage}): run make kernel")
    modules = options.modules or str(folder / "modules")
    if options.driver:
        if not Path(modules, "lib/modules").is_dir():
            raise infra_error(f"no kernel modules in {modules}: run make kernel")
        modules = str(Path(modules).resolve())
    return bzimage, modules


def check_root(name: str) -> None:
    """Raises unless the root is there as a whole: root.py writes its stamp last."""
    if not (root_folder(name) / "root.stamp").is_file():
        raise infra_error(f"no root '{name}' ({root_folder(name)}): run scripts/root.py {name}")


def find_vasicd() -> Path:
    vasicd = Path(os.environ.get("VASICD") or out_dir() / "cmake/release/userspace/vasicd/vasicd")
    if not os.access(vasicd, os.X_OK):
        raise infra_error(f"no vasicd ({vasicd}): run make build")
    return vasicd


def check_memory(options: Options) -> None:
    need_mib = options.mem_mib + options.vram_mib + SPARE_MIB
    available_mib = 0
    for line in read_text(Path("/proc/meminfo")).splitlines():
        if line.startswith("MemAvailable:"):
            available_mib = int(line.split()[1]) // 1024
    if available_mib < need_mib:
        raise infra_error(f"not enough memory: {need_mib} MiB needed (guest {options.mem_mib}, VRAM "
                          f"{options.vram_mib}), {available_mib} available")


def need_program(name: str, package: str) -> None:
    if not shutil.which(name):
        raise infra_error(f"'{name}' is missing (Debian package '{package}'): run scripts/setup.sh")
