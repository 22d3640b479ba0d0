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
import struct
import subprocess
import sys

KEYS = ("vram=256M", "vis=64M", "cu=60", "se=4", "sdma=2", "xcc=6", "unique-id=1a2b", "hive=7", "mec=470")
OPTIONS = ("--ram-size=1G", "--ram-low=2G", "--trace=/t", "--once", "--die-with-parent", "--list-chips", "--json", "--help")
LENGTHS = (16, 64, 256, 700)
PER_LENGTH = 12
CONTROL = ("trace on", "trace off", "step 1", "run", "hang sdma0", "hang cp.p0.q0", "fault vm 8 0x1000", "link 100M",
           "truth", "status", "help", "drop-interrupt 1", "hold-interrupts on", "fail-unmap 1", "gpu 0", "quit")


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


def number(field: int, value: int) -> bytes:
    """A protobuf field that is a varint."""
    out = bytes([field << 3])
    while value >= 0x80:
        out += bytes([value & 0x7f | 0x80])
        value >>= 7
    return out + bytes([value])


def fixed(field: int, value: int) -> bytes:
    return bytes([field << 3 | 1]) + value.to_bytes(8, "little")


def message(field: int, *parts: bytes) -> bytes:
    """A protobuf field with a length: a message, bytes or a string, here below 128 bytes."""
    payload = b"".join(parts)
    assert len(payload) < 0x80
    return bytes([field << 3 | 2, len(payload)]) + payload


NODE = [number(1, 1), number(2, 200), message(3, message(1, b"simd_count"), number(2, 240)),
        message(4, number(1, 0), number(2, 2))]


def manifest_seeds() -> list[bytes]:
    """Session messages of userspace/plugin/image/amdgpu.proto."""
    head = fixed(1, 7) + number(2, 2) + message(3, b"6.12.0") + message(4, *NODE)
    files = [message(5, number(1, kind), number(2, kind), number(3, 10), fixed(4, 1), number(5, 24 if kind == 1 else 0),
                     fixed(6, 1), number(7, 8192 if kind == 1 else 0)) for kind in range(1, 5)]
    source = message(8, number(1, 1), number(2, 4), fixed(3, 6), number(4, 8192))
    referring = message(5, number(1, 1), number(2, 1), number(3, 10), fixed(4, 1), number(5, 24), fixed(6, 1), source)
    return [head + files[0], head + referring + message(6, number(1, 42)),
            head + b"".join(files) + message(6, number(1, 42), message(2, b"fuzz"))]


def metadata_seeds() -> list[bytes]:
    """File messages of amdgpu.proto, in version 2 and, with BOs, in version 1."""
    kfd = [number(1, 42), number(2, 3), message(4, number(1, 100), number(2, 200)), message(6, b"state")]
    shared = message(7, message(1, b"hsakmt_shared_mem"), message(2, b"x"), number(3, 0o666), message(6, b"link_remap.5"))
    bo = message(5, number(1, 4096), number(2, 4096), number(4, 100), number(5, 1), message(6, b"\0\x10" + bytes(6)),
                 message(7, bytes(8)))
    return [fixed(1, 7) + body + number(7, 1) for body in (
        message(3, *kfd), message(3, *kfd[:3], kfd[3], number(3, 1 << 20), bo), message(3, *kfd[:1], shared),
        message(4, number(1, 200), number(2, 2048), number(3, 1), number(4, 42)),
        message(5, number(1, 42)), message(6, number(1, 0)), message(2, *NODE) + message(4, number(1, 200)))]


def index_seeds() -> list[bytes]:
    """The length of the pages file in pages, the number of earlier dumps and the lengths of their pages files less 2 pages,
    then an index as in docs/image-format.md."""
    def index(pages: int, bos: list[tuple[int, ...]], chunks: list[tuple[int, int, int]], earlier: tuple[int, ...] = ()) -> bytes:
        return (struct.pack(f"<HB{len(earlier)}H", pages, len(earlier), *earlier)
                + struct.pack("<IIQQ", 1 << 20, 1 << 16, len(bos), len(chunks))
                + b"".join(struct.pack("<QQQQIIII", *bo) for bo in bos)
                + b"".join(struct.pack("<QQQ", *chunk) for chunk in chunks))
    vram, userptr = (4096, 4096, 0, 9, 100, 1, 1, 0), (4096, 4096, 0, 0, 100, 4, 2, 0)
    large = (4096, 3 << 20, 0, 9, 100, 1, 1, 0)
    return [index(0, [], []), index(0, [vram, userptr], [(0, 0, 0)]), index(2, [vram, userptr], [(4096, 1, 1)]),
            index(2, [vram, vram[:7] + (1,)], [(4096, 1, 1)]), index(0, [vram, userptr], [(4096, 1, 1)], (0,)),
            index(2, [vram, vram[:3] + (0,) + vram[4:]], [(4096, 1, 1), (8192 + 4 * 4096, 1, 1)], (1, 9)),
            index(49, [large], [(4096, 1, 5), (0, 0, 0), (4096 + (2 << 16), 2, 1 << 15)]),
            index(3, [vram, vram[:3] + (0,) + vram[4:]], [(8192, 1, 1), (4096, 1, 1)])]


def varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7f | 0x80)
        value >>= 7
    return bytes(out) + bytes([value])


def proto(*fields: tuple[int, int | bytes]) -> bytes:
    """A protobuf message of numbers and bytes."""
    return b"".join(varint(number << 3) + varint(value) if isinstance(value, int) else
                    varint(number << 3 | 2) + varint(len(value)) + value for number, value in fields)


def upstream_seeds() -> list[bytes]:
    """Messages of CRIU's own amdgpu plugin; the first byte says of which kind."""
    seeds = []
    for gpus in (1, 2):
        nodes = [proto(*[(field, 1) for field in range(1, 32)], (32, proto((1, 2), (2, 0))))]
        nodes += [proto((1, node), (2, 100 + node), *[(field, 2) for field in range(3, 32)]) for node in range(2, gpus + 1)]
        nodes.append(proto((1, 0), (2, 0), (3, 2), *[(field, 0) for field in range(4, 32)]))
        for bos in (0, 1, 3):
            # VRAM, GTT and memory of the program, in turn.
            entries = [proto((1, 0x10000 * (bo + 1)), (2, 0x1000), (3, 5), (4, 1 << bo), (5, 1)) for bo in range(bos)]
            seeds.append(b"\0" + proto((1, 42), (2, gpus), (3, 1), *[(4, node) for node in nodes], (5, bos),
                                         *[(6, entry) for entry in entries], (7, 3), (8, 8), (9, 1), (10, b"state")))
    seeds.append(b"\2" + proto((1, 100)))
    seeds.append(b"\2" + proto((1, 100), (2, 30), (3, 128), (4, 1), (5, proto((1, 4096)))))
    files = [proto((1, 1), (2, 1), (3, proto((1, 1), (6, f"/dev/shm/{name}".encode()), (8, size), (10, 0o100644))))
             for name, size in (("hsakmt_shared_mem", 8), ("sem.abcdef", 32), ("link_remap.24", 0))]
    magic = bytes.fromhex("1943565438313056")
    seeds.append(b"\3" + magic + b"".join(len(file).to_bytes(4, "little") + file for file in files))
    return seeds


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
    if target.startswith("image_"):
        return {"image_manifest": manifest_seeds, "image_metadata": metadata_seeds, "image_index": index_seeds,
                "image_upstream": upstream_seeds}[target](), ""
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
