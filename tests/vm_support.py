# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""What the tests of vm.sh share: a run and what came of it, a QEMU that fails, processes by parent.

VM_TEST_OPTIONS: options of every `vm.sh run` that boots, separated by blanks (default: --kernel criu).
"""
from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Callable, Mapping

ROOT = Path(__file__).resolve().parents[1]
SCRIPTS = ROOT / "scripts"
VM_SH = SCRIPTS / "vm.sh"
if str(SCRIPTS) not in sys.path:
    sys.path.insert(0, str(SCRIPTS))

OPTIONS = os.environ.get("VM_TEST_OPTIONS", "--kernel criu").split()
# Long enough for a boot on a busy machine without hardware virtualization.
BOOT_LIMIT_S = 90
# The kernel keeps the first 15 characters of a program's name.
QEMU_COMM = "qemu-system-x86"


@dataclass
class Outcome:
    """What a run of vm.sh left: its status, and its two streams as text."""
    status: int
    out: str
    err: str

    def error_line(self) -> str:
        """The only line that vm.sh printed."""
        lines = self.err.splitlines()
        assert len(lines) == 1, f"not one line: {self.err}"
        return lines[0]


def vm_sh(*args: str, env: Mapping[str, str] | None = None) -> Outcome:
    """Runs vm.sh with exactly these arguments; `env` is added to the environment."""
    done = subprocess.run([str(VM_SH), *args], stdin=subprocess.DEVNULL, capture_output=True,
                          env={**os.environ, **(env or {})}, check=False)
    return Outcome(done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"))


def vm_run(*args: str, env: Mapping[str, str] | None = None) -> Outcome:
    """Runs `vm.sh run` with the tests' kernel and time limit."""
    return vm_sh("run", *OPTIONS, "--timeout", str(BOOT_LIMIT_S), *args, env=env)


def sh(script: str, *args: str) -> list[str]:
    """The end of a command line of vm.sh: a bash script and its arguments."""
    return ["--", "bash", "-c", script, "_", *args]


def children(parent: int) -> dict[int, str]:
    """The names of a process's children by process id. Until QEMU runs, its process has the name of vm.sh's."""
    found = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            before, _, after = (entry / "stat").read_text().rpartition(")")
        except (FileNotFoundError, ProcessLookupError):
            continue
        state, ppid = after.split()[:2]
        if int(ppid) == parent and state != "Z":
            found[int(entry.name)] = before.partition("(")[2]
    return found


def qemu_of(parent: int) -> list[int]:
    return [pid for pid, name in children(parent).items() if name == QEMU_COMM]


def is_alive(pid: int) -> bool:
    """Whether it runs: a process that has ended and that nobody has waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_for(condition: Callable[[], object], what: str, seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"not in {seconds} s: {what}"
        time.sleep(0.05)


def expect_gone(pids: list[int]) -> None:
    for pid in pids:
        wait_for(lambda pid=pid: not is_alive(pid), f"process {pid} has gone", 10)


def program(path: Path, text: str) -> Path:
    """A program made of `text`, which begins with #!."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def path_with(folder: Path) -> dict[str, str]:
    """An environment whose programs come from `folder` first."""
    return {"PATH": f"{folder}:{os.environ['PATH']}"}


def failing_qemu(folder: Path, count: int, command: str) -> dict[str, str]:
    """An environment with a QEMU before the real one. Its first `count` machines do the bash `command` instead of
    booting, with the file of their console in $serial."""
    real = shutil.which("qemu-system-x86_64")
    left = folder / "failing/left"
    program(folder / "failing/qemu-system-x86_64", f"""#!/bin/bash
left=$(<"{left}")
serial=$(printf '%s\\n' "$@" | sed -n 's/^file:\\(.*serial\\.log\\)$/\\1/p')
# Without a serial.log it is the probe of KVM.
[[ -n $serial && $left -gt 0 ]] || exec "{real}" "$@"
printf '%s' "$((left - 1))" >"{left}"
{command}
""")
    left.write_text(str(count))
    return path_with(folder / "failing")


def private_out(folder: Path) -> dict[str, str]:
    """An environment whose output folder is this test's own, with the kernels that are built."""
    from vm.places import out_dir
    out = folder / "out"
    out.mkdir(exist_ok=True)
    (out / "kernel").symlink_to(out_dir() / "kernel")
    return {"OUT_DIR": str(out)}


class Running:
    """A `vm.sh run` in the background whose sockets and logs are below `folder`. Killed when the test ends."""

    def __init__(self, folder: Path, *args: str, env: Mapping[str, str] | None = None,
                 before: tuple[str, ...] = ()) -> None:
        """`before` is a command that starts the one it is given."""
        self.run_dir = folder / "run"
        self.run_dir.mkdir(exist_ok=True)
        self._err = open(folder / "err", "wb")
        # A shell lets its background jobs ignore SIGINT, and that would be inherited.
        self.process = subprocess.Popen(
            [*before, str(VM_SH), "run", *OPTIONS, *args], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=self._err, env={**os.environ, "XDG_RUNTIME_DIR": str(self.run_dir), **(env or {})},
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))

    def __enter__(self) -> Running:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        self._err.close()

    def wait(self) -> int:
        """The status as a shell says it."""
        status = self.process.wait(60)
        return 128 - status if status < 0 else status

    def folders(self) -> list[Path]:
        """Folders of runs, with their sockets."""
        return list(self.run_dir.glob("vasic-vm.*"))
