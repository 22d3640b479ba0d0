#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""usage: fuzz_seeds.py TARGET FOLDER VASICD

Writes the inputs that a fuzzer starts from. Inputs for state machines are sequences of
choices with several lengths, the first choice is the chip; inputs for parsers are texts.
The program VASICD lists the chips. The inputs of a TARGET are always the same. For parsers
of words it also writes a dictionary, FOLDER.dict.
"""
from __future__ import annotations

import pathlib
import random
import subprocess
import sys

KEYS = ("vram=256M", "vis=64M", "cu=60", "se=4", "sdma=2", "xcc=6", "unique-id=1a2b", "hive=7", "mec=470")
OPTIONS = ("--ram-size=1G", "--ram-low=2G", "--trace=/t", "--once", "--die-with-parent", "--list-chips", "--json", "--help")
LENGTHS = (16, 64, 256, 700)
PER_LENGTH = 12
CONTROL = ("trace on", "trace off", "step 1", "run", "hang sdma0", "hang cp.p0.q0", "fault vm 8 0x1000", "link 100M",
           "truth", "status", "help", "drop-interrupt 1", "fail-unmap 1", "gpu 0", "quit")


def chips(vasicd: str) -> list[str]:
    return subprocess.run([vasicd, "--list-chips"], check=True, capture_output=True, text=True).stdout.split()


def options_seeds(names: list[str]) -> list[bytes]:
    specs = names + [f"{chip},{key}" for chip in names[::3] for key in KEYS]
    return [spec.encode() for spec in specs] + [f"gfx906\n{option}".encode() for option in OPTIONS]


def random_seeds(target: str) -> list[bytes]:
    source = random.Random(target)
    return [bytes([(i * 7 + n) % 251]) + source.randbytes(length)
            for n, length in enumerate(LENGTHS) for i in range(PER_LENGTH)]


def control_seeds() -> list[bytes]:
    return [f"{line}\n".encode() for line in CONTROL] + ["\n".join(CONTROL).encode()]


def dictionary(texts: list[str], separators: str) -> str:
    """Returns one quoted word a line, in the format of libFuzzer."""
    words = set()
    for text in texts:
        for separator in separators:
            text = text.replace(separator, " ")
        words.update(text.split())
    return "".join(f'"{word}"\n' for word in sorted(words))


def seeds_and_words(target: str, vasicd: str) -> tuple[list[bytes], str]:
    if target == "control":
        return control_seeds(), dictionary([*CONTROL], " \n")
    if target == "options":
        names = chips(vasicd)
        return options_seeds(names), dictionary([*names, *KEYS, *OPTIONS], ",=")
    return random_seeds(target), ""


def main() -> int:
    if len(sys.argv) != 4:
        print("fuzz_seeds.py: usage: fuzz_seeds.py TARGET FOLDER VASICD", file=sys.stderr)
        return 64
    target, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    seeds, words = seeds_and_words(target, sys.argv[3])
    folder.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(seeds):
        (folder / f"seed-{number:03}").write_bytes(seed)
    if words:
        pathlib.Path(f"{folder}.dict").write_text(words)
    return 0


if __name__ == "__main__":
    sys.exit(main())
