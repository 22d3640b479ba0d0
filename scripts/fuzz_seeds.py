#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""usage: fuzz_seeds.py TARGET FOLDER

Writes the inputs that a fuzzer starts from. Those of state machines are choices of
all lengths, the first of which is the chip; those of parsers are texts. The same
TARGET always gets the same ones. A dictionary goes to FOLDER.dict where words help.
"""
from __future__ import annotations

import pathlib
import random
import sys

CHIPS = ("gfx701", "gfx803", "gfx900", "gfx906", "gfx908", "gfx90a", "gfx942", "gfx1010", "gfx1030", "gfx1100", "gfx1201")
KEYS = ("vram=256M", "vis=64M", "cu=60", "se=4", "sdma=2", "xcc=6", "unique-id=1a2b", "hive=7", "mec=470")
OPTIONS = ("--ram-size=1G", "--ram-low=2G", "--trace=/t", "--once", "--die-with-parent", "--list-chips", "--help")
LENGTHS = (16, 64, 256, 700)
PER_LENGTH = 12
CONTROL = ("trace on", "trace off", "step 1", "run", "hang sdma0", "hang cp.p0.q0", "fault vm 8 0x1000", "link 100M",
           "truth", "status", "help", "drop-interrupt 1", "fail-unmap 1", "gpu 0", "quit")
TEXTS = {"options": (",=", [*CHIPS, *KEYS, *OPTIONS]), "control": (" \n", [*CONTROL])}


def text_seeds(target: str) -> list[bytes]:
    if target == "control":
        return [f"{line}\n".encode() for line in CONTROL] + ["\n".join(CONTROL).encode()]
    specs = list(CHIPS) + [f"{chip},{key}" for chip in CHIPS[::3] for key in KEYS]
    return [spec.encode() for spec in specs] + [f"gfx906\n{option}".encode() for option in OPTIONS]


def random_seeds(target: str) -> list[bytes]:
    source = random.Random(target)
    return [bytes([(i * 7 + n) % 251]) + source.randbytes(length)
            for n, length in enumerate(LENGTHS) for i in range(PER_LENGTH)]


def seeds(target: str) -> list[bytes]:
    return text_seeds(target) if target in TEXTS else random_seeds(target)


def dictionary(target: str) -> str:
    """One quoted word a line, as libFuzzer wants it."""
    separators, texts = TEXTS.get(target, ("", []))
    words = set()
    for text in texts:
        for separator in separators:
            text = text.replace(separator, " ")
        words.update(text.split())
    return "".join(f'"{word}"\n' for word in sorted(words))


def main() -> int:
    if len(sys.argv) != 3:
        print("fuzz_seeds.py: usage: fuzz_seeds.py TARGET FOLDER", file=sys.stderr)
        return 64
    target, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(seeds(target)):
        (folder / f"seed-{number:03}").write_bytes(seed)
    words = dictionary(target)
    if words:
        pathlib.Path(f"{folder}.dict").write_text(words)
    return 0


if __name__ == "__main__":
    sys.exit(main())
