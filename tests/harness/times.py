# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""Where the time of a run goes: out/test/times.txt.

Each step is a line of out/test/times.jsonl, appended by whichever process did it. Steps
run at the same time, so their sum is more than the time of the whole.
"""
from __future__ import annotations

import json
import time
from collections import defaultdict
from contextlib import contextmanager
from typing import Iterator

from . import paths

STEPS = paths.TEST / "times.jsonl"
TABLE = paths.TEST / "times.txt"


def record(kind: str, name: str, seconds: float) -> None:
    """Adds a step: compile, boot or run."""
    STEPS.parent.mkdir(parents=True, exist_ok=True)
    with STEPS.open("a") as file:
        file.write(json.dumps({"kind": kind, "name": name, "seconds": round(seconds, 1)}) + "\n")


@contextmanager
def step(kind: str, name: str) -> Iterator[None]:
    """Records how long the body takes, whether or not it succeeds."""
    begin = time.monotonic()
    try:
        yield
    finally:
        record(kind, name, time.monotonic() - begin)


def forget() -> None:
    """Begins a new run."""
    STEPS.unlink(missing_ok=True)


def write_table(total_s: float) -> str:
    """Writes times.txt: largest step first, then the sum of each kind. Returns its text."""
    steps = [json.loads(line) for line in STEPS.read_text().splitlines()] if STEPS.exists() else []
    steps.sort(key=lambda each: -each["seconds"])
    sums: dict[str, float] = defaultdict(float)
    for each in steps:
        sums[each["kind"]] += each["seconds"]
    lines = [f"{each['seconds']:8.1f} s  {each['kind']:8} {each['name']}" for each in steps]
    lines.append("")
    lines += [f"{seconds:8.1f} s  {kind:8} in all" for kind, seconds in sorted(sums.items(), key=lambda x: -x[1])]
    lines.append(f"{total_s:8.1f} s  from beginning to end; steps run at the same time")
    text = "\n".join(lines) + "\n"
    try:
        TABLE.write_text(text)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(TABLE)) from error
    return text
