# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""What the guest's kernel printed, and whether that is a complaint."""
from __future__ import annotations

import re
from typing import Iterator, Sequence

# Taint bits that only a fault sets: machine check, bad page, oops, warn, lockup.
TAINT_FAULTS = 1 << 4 | 1 << 5 | 1 << 7 | 1 << 9 | 1 << 14
SPLAT = re.compile(
    r"WARNING:|BUG:|Oops|KASAN|UBSAN|KCSAN|general protection fault|possible (circular|recursive) locking"
    r"|inconsistent lock state|suspicious RCU usage|INFO: task .* blocked|rcu: INFO: rcu_\S+ (self-)?detected"
    r"|unreferenced object")
# What a kernel says before it ends.
PANIC = re.compile("Kernel panic")
# What a kernel says that waits for a timer that never comes.
STALL = re.compile(r"rcu: INFO: rcu_[a-z]+ (self-)?detected stall")

_RECORD = re.compile(r"\d+,\d+,(\d+),[^;]*;(.*)")
SPLATS_SHOWN, LINES_BEFORE, LINES_AFTER, LINES_SHOWN = 3, 3, 25, 90


def dmesg_lines(kmsg: str) -> Iterator[str]:
    """Records of /dev/kmsg (priority,sequence,microseconds,flags;text) as dmesg shows them."""
    for line in kmsg.split("\n"):
        if match := _RECORD.match(line):
            us = int(match[1])
            yield f"[{us // 1000000:5d}.{us % 1000000:06d}] {match[2]}"


def excerpts(lines: Sequence[str], pattern: re.Pattern[str], before: int, after: int, most: int) -> list[str]:
    """The first `most` lines with the pattern, with lines around each; "--" stands between parts that do not touch."""
    shown: list[str] = []
    end = hits = 0
    for number, line in enumerate(lines):
        if hits == most or not pattern.search(line):
            continue
        hits += 1
        begin = max(end, number - before)
        if shown and begin > end:
            shown.append("--")
        shown += lines[begin:number + after + 1] if number >= end else lines[end:number + after + 1]
        end = max(end, min(len(lines), number + after + 1))
    return shown


def last_excerpts(lines: Sequence[str], pattern: re.Pattern[str], after: int, most: int) -> list[str]:
    """The last `most` lines with the pattern, with the lines behind each."""
    hits = [number for number, line in enumerate(lines) if pattern.search(line)]
    return excerpts(lines[hits[-most:][0]:], pattern, 0, after, most) if hits else []


def complaint(dmesg: Sequence[str], source: str) -> str:
    """What the kernel complained of, to be shown; empty if it did not. `source` names the log."""
    if not any(SPLAT.search(line) for line in dmesg):
        return ""
    shown = excerpts(dmesg, SPLAT, LINES_BEFORE, LINES_AFTER, SPLATS_SHOWN)[:LINES_SHOWN]
    return "\n".join([f"---- from {source}", *shown, "----", ""])
