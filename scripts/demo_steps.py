# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""Code that the demos share: lines that begin with the time since the start, and the builds before the first step.

Does not know what a demo shows, or which programs it needs.
"""
from __future__ import annotations

import subprocess
import time
from pathlib import Path
from typing import Sequence

import command
from vm.processes import shell_status

SCRIPTS = Path(__file__).resolve().parent
# Seconds between two lines about a command that is still running.
BEAT_S = 15
BEGIN = time.monotonic()


def say(text: str) -> None:
    print(f"[{time.monotonic() - BEGIN:5.1f} s] {text}", flush=True)


def run(what: str, *argv: str | Path) -> int:
    """Runs the command with its own output, and prints from time to time how long it has been running; returns its
    status."""
    begin = time.monotonic()
    with command.child(argv) as process:
        while True:
            try:
                return shell_status(process.wait(BEAT_S))
            except subprocess.TimeoutExpired:
                say(f"{what}: running for {time.monotonic() - begin:.0f} s")


def build(*steps: Sequence[str]) -> None:
    """Runs each step, which is a script of this folder with its arguments. Raises a failure at the first that fails."""
    for script, *arguments in steps:
        what = " ".join([f"scripts/{script}", *arguments])
        say(what)
        if status := run(what, SCRIPTS / script, *arguments):
            raise command.failure(f"{what} failed with status {status}")
