#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""Measures the virtual GPU, and checkpoint and restore in the kernel.

usage: bench.py [gpu | criu]      both without one

  gpu    in one virtual machine with one GPU: kfdbench's figures, drmbench's, vasicd's
         processor time while queues are mapped but idle, and the time from boot to /dev/kfd
  criu   the time of checkpoint and restore for each object (criubench) with the stock
         kernel and with ours, one after the other, PAIRS times. The guests' clocks count
         instructions (vm.sh --icount), so that other load on the host does not change the
         times. bench_criu.py judges them: the time with ours must be linear in the number
         of objects and not longer than with the stock kernel

Prints tables, writes out/bench.json, and fails when a figure is beyond its limit.
Environment: KERNEL (criu), COPY_MIB (256), for gpu; PAIRS (3), GPU (gfx906),
SECONDS_PER_KIND (5, of the guest's), for criu; OUT_DIR.
"""
from __future__ import annotations

import json
import math
import os
import re
import shutil
import subprocess
import time
from pathlib import Path
from typing import Callable

import bench_criu
import command
from vm.errors import VmError, infra_error
from vm.places import out_dir, repo_root
from vm.processes import shell_status

VM = repo_root() / "scripts/vm.sh"
NAME, GPU_SPEC, LIMIT_S = "bench", "gfx906", 600
CRIU_NAME, CRIU_LIMIT_S = "bench-criu", 900
# The guest stays idle for longer than vasicd is measured.
IDLE_S, IDLE_MEASURED_S = 20, 5
MIB = 1 << 20
# The least and the greatest permitted value of each figure.
LIMITS = {
    "ring_fence_us_median": (0, 300),
    "submit_to_event_us_median": (0, 1000),
    "aql_barriers_per_second": (200_000, math.inf),
    "sdma_copy_to_host_memcpy_ratio": (0.8, math.inf),
    "wave_lane_instructions_per_second": (50_000_000, math.inf),
}
# The commands of the guest. KFD shows the queues of a process in sysfs, so the guest
# waits for them there before the host measures.
GUEST = """
set -eu
share=$1 bench=$2 copy_mib=$3 idle=$4 drmbench=$5
"$bench" --copy-mib "$copy_mib" >"$share/kfdbench.json"
"$drmbench" >"$share/drmbench.json"
"$bench" --idle "$idle" >/dev/null &
pid=$!
until ls -d /sys/class/kfd/kfd/proc/"$pid"/queues/* >/dev/null 2>&1; do
	kill -0 "$pid"
done
touch "$share/idle"
wait "$pid"
"""


def built(name: str) -> Path:
    """A program of the release build."""
    return out_dir() / "cmake/release/userspace" / name


def empty(folder: Path) -> Path:
    """Makes the folder, without what an earlier run left in it."""
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir()
    return folder


def need_built(program: Path) -> None:
    if not os.access(program, os.X_OK):
        raise infra_error(f"no {program.name} ({program}): run make build")


# ---- the virtual GPU ----

def cpu_ticks(pid: int) -> int:
    """User and system time of the process. The fields of /proc/PID/stat are counted from the end of the name, because
    the name may have blanks."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return int(fields[11]) + int(fields[12])


def measure_idle() -> float:
    """vasicd's processor time as percent of one processor."""
    pid = int((out_dir() / "vm" / NAME / "vasicd.pid").read_text())
    begin = cpu_ticks(pid)
    time.sleep(IDLE_MEASURED_S)
    return round(100 * (cpu_ticks(pid) - begin) / os.sysconf("SC_CLK_TCK") / IDLE_MEASURED_S, 2)


def ended(machine: subprocess.Popen) -> VmError:
    return command.failure(
        f"the virtual machine ended with status {shell_status(machine.wait())} (logs: {out_dir()}/vm/{NAME})")


def host_memcpy_gbps(size: int, repeat: int) -> float:
    """The reference for the device's copies: the rate at which the host copies as many bytes."""
    source, copy = bytearray(b"\1") * size, bytearray(size)
    best = math.inf
    for _ in range(repeat):
        begin = time.perf_counter()
        memoryview(copy)[:] = source
        best = min(best, time.perf_counter() - begin)
    return round(size / best / 1e9, 3)


def figures_of(share: Path, idle_percent: float) -> dict:
    """All figures, from the outputs of the benchmarks and the clocks of the machine."""
    result: dict = {}
    for name in ("kfdbench", "drmbench", "wavebench"):
        result |= json.loads((share / f"{name}.json").read_text())
    clocks = json.loads((out_dir() / "vm" / NAME / "times.json").read_text())
    memcpy = host_memcpy_gbps(result["copy_mib"] * MIB, result["repeat"])
    return result | {
        "host_memcpy_gbps": memcpy,
        "sdma_copy_to_host_memcpy_ratio": round(result["sdma_copy_gbps"] / memcpy, 3),
        "vasicd_idle_cpu_percent": idle_percent,
        "boot_to_kfd_ms": clocks["kfd_ms"],
        "guest_boot_to_kfd_ms": clocks["guest_kfd_ms"],
        "accel": clocks["accel"],
    }


def show(result: dict) -> int:
    """Prints the table; returns 1 if a figure is beyond its limit."""
    status = 0
    for name, value in result.items():
        least, most = LIMITS.get(name, (0, 0))
        bad = name in LIMITS and not least <= value <= most
        status = 1 if bad else status
        if name != "note":
            print(f"{name:32} {value}" + (f"   BEYOND its limit: {least} to {most}" if bad else ""))
    return status


def measure_gpu() -> int:
    bench, share = built("kfdtest-criu/kfdbench"), out_dir() / "bench"
    need_built(bench)
    empty(share)
    command.log("measuring in a virtual machine; this takes a minute or two")
    argv = [VM, "run", "--kernel", os.environ.get("KERNEL") or "criu", "--gpu", GPU_SPEC, "--name", NAME, "--timeout",
            str(LIMIT_S), "--share", share, "--", "bash", "-c", GUEST, "_", share, bench, os.environ.get("COPY_MIB") or "256",
            str(IDLE_S), built("drmtest/drmbench")]
    with command.child(argv) as machine:
        while not (share / "idle").exists():
            if machine.poll() is not None:
                raise ended(machine)
            time.sleep(0.1)
        idle_percent = measure_idle()
        if machine.wait() != 0:
            raise ended(machine)
    with (share / "wavebench.json").open("w") as output:
        command.require([built("vasicd/wavebench")], f"wavebench failed (its output: {output.name})", 1, stdout=output)
    result = figures_of(share, idle_percent)
    target = out_dir() / "bench.json"
    target.write_text(json.dumps(result, indent=2) + "\n")
    status = show(result)
    command.log(f"written: {target}")
    return status


# ---- checkpoint and restore ----

def measure_kernel(file: Path, kernel: str, abi: str) -> None:
    """Writes what criubench prints on this kernel with this ABI."""
    with file.open("w") as output:
        command.require(
            [VM, "run", "--icount", "--kernel", kernel, "--gpu", f"{os.environ.get('GPU') or 'gfx906'},vram=256M",
             "--name", CRIU_NAME, "--timeout", str(CRIU_LIMIT_S), "--", built("kfdtest-criu/criubench"), "--abi", abi,
             "--seconds", os.environ.get("SECONDS_PER_KIND") or "5"],
            f"criubench failed on the {kernel} kernel (logs: {out_dir()}/vm/{CRIU_NAME})", 1, stdout=output)


def measure_criu() -> int:
    pairs = os.environ.get("PAIRS") or "3"
    if not re.fullmatch("[1-9][0-9]*", pairs):
        raise command.usage_error(f"PAIRS: '{pairs}' is no number above 0")
    need_built(built("kfdtest-criu/criubench"))
    folder = empty(out_dir() / "bench-criu")
    command.log(f"measuring in {3 * int(pairs)} virtual machines; a minute each")
    for pair in range(int(pairs)):
        for name in (bench_criu.STOCK, bench_criu.OURS, bench_criu.EXTENSIBLE):
            measure_kernel(folder / f"{pair}-{name}.json", *name.split("-"))
    status = bench_criu.main(str(folder), str(out_dir() / "bench.json"))
    command.log(f"written: {out_dir()}/bench.json")
    return status


PARTS: dict[str, Callable[[], int]] = {"gpu": measure_gpu, "criu": measure_criu}


def main(argv: list[str]) -> int:
    parser = command.Parser(__doc__)
    parser.add_argument("part", nargs="?")
    part = parser.read(argv).part
    if part is None:
        # The second part is measured even if a figure of the first one is beyond its limit, or missing.
        return max(command.call([__file__, each]) and 1 for each in PARTS)
    if part not in PARTS:
        raise command.usage_error(f"unknown argument '{part}'")
    return PARTS[part]()


if __name__ == "__main__":
    command.run(main)
