#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""usage: image_text.py FOLDER

Prints the device images of CRIU's own amdgpu plugin in a folder as text, for a recorded image
of a unit test (userspace/plugin/image/recorded/README). It prints only the first eight bytes of files with
the contents of GPU memory, which are their length.
"""
from __future__ import annotations

import sys
from pathlib import Path

ROW_BYTES, LENGTH_BYTES = 32, 8
WHOLE, LENGTH_ONLY = ("amdgpu-kfd-*.img", "amdgpu-renderD-*.img"), "amdgpu-pages-*-*.img"


def rows(data: bytes) -> list[str]:
    """The parts of the data that are not zero: offset, number of repetitions, bytes."""
    lines, at = [], 0
    while at < len(data):
        row, count = data[at:at + ROW_BYTES], 1
        while data[at + count * ROW_BYTES:at + (count + 1) * ROW_BYTES] == row:
            count += 1
        if any(row):
            lines.append(f"{at:x} {count} {row.hex()}")
        at += count * ROW_BYTES
    return lines


def main() -> int:
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        print(__doc__, file=sys.stderr)
        return 64
    folder = Path(sys.argv[1])
    for pattern in (*WHOLE, LENGTH_ONLY):
        for path in sorted(folder.glob(pattern)):
            with path.open("rb") as file:
                data = file.read(LENGTH_BYTES if pattern == LENGTH_ONLY else -1)
            print(f"file {path.name} {len(data)}")
            print("\n".join(rows(data)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
