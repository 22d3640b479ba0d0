# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""Whether this host has a working KVM."""
from __future__ import annotations

import os
import subprocess
from pathlib import Path

from . import processes
from .errors import usage_error
from .places import out_dir, read_text, replace_file
from .processes import Check

KVM, TCG = "kvm", "tcg"
KVM_PROBE_S = 3
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def choose(bzimage: Path, folder: Path, check: Check) -> str:
    """VM_ACCEL, else what an earlier probe found since the host booted, else what a probe finds.
    `folder` is for files of the probe."""
    asked = os.environ.get("VM_ACCEL")
    if asked:
        if asked not in (KVM, TCG):
            raise usage_error(f"VM_ACCEL: '{asked}' is neither kvm nor tcg")
        return asked
    cache = out_dir() / "vm/accel"
    boot_id = read_text(BOOT_ID).strip()
    known = read_text(cache).split()
    if len(known) == 2 and known[0] in (KVM, TCG) and known[1] == boot_id:
        return known[0]
    accel = KVM if kvm_boots(bzimage, folder / "probe", check) else TCG
    replace_file(cache, f"{accel} {boot_id}\n")
    return accel


def kvm_boots(bzimage: Path, console: Path, check: Check) -> bool:
    """Whether the kernel prints its first line under KVM: there are hosts where a virtual machine can be created
    and does not run. QEMU may abort there, which is no concern of the caller's."""
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return False
    qemu = processes.start(
        ["qemu-system-x86_64", "-accel", "kvm", "-cpu", "max", "-m", "512", "-nodefaults", "-display", "none",
         "-no-reboot", "-serial", f"file:{console}", "-kernel", str(bzimage), "-append", "console=ttyS0 panic=-1"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def is_known() -> bool:
        return qemu.poll() is not None or "Linux version" in read_text(console)

    try:
        processes.wait_until(is_known, KVM_PROBE_S, check)
    finally:
        processes.stop(qemu)
    return "Linux version" in read_text(console)
