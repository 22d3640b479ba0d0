#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""Measures how fast the plugin moves contents of GPU memory to an image and back.

usage: bench_plugin.py [--repeat N]     3 without it

Runs plugin_bench natively: the plugin's copier, writer and reader, with a simulated link to
a GPU and a disk that is slowed down, each at 250 to 2,000 MB/s. Beside each figure is that
of a copy in turns, which is how CRIU's own plugin copies: the GPU fills a buffer, then the
buffer is written. Each figure is the median of N runs, in turns with its counterpart.

Prints two tables, each for dump and restore, of the parts that were used of the slower one
of link and disk; then the cost of small BOs, dumps of several GPUs with a link each, and what
the plugin's option "compress" does on disks that have a cache. Writes out/bench-plugin/ with the
results as JSON (plugin.json) and the tables as a picture (plugin.svg). Fails when a figure
is beyond its limit; the limits hold where the processor is not what limits.
Environment: OUT_DIR. KFD_CRIU_BENCH_DIR, where the images are written (/dev/shm): its file
system should be faster than 2,000 MB/s, and needs 1 GiB.
"""
from __future__ import annotations

import json
import os
import re
import shutil
import statistics
import xml.sax.saxutils as xml
from collections import defaultdict
from pathlib import Path
from typing import Iterator

import command
from vm.places import out_dir, repo_root

FOLDER = out_dir() / "bench-plugin"
LARGE_KIB = 128 << 10
# The least part of the slower one of link and disk that is used where both are equally fast and no faster than this;
# how much faster than in turns that is at least; how much longer the same bytes take in small BOs.
JUDGED_MB_S = 1000
LIMITS = {"dump": (0.90, 1.8), "restore": (0.92, 1.8)}
MOST_FOR_SMALL = {"dump": 1.25, "restore": 1.25}

# How fast a dump with compress=auto is compared with one that compresses nothing: always, and at least where the disk has
# at most half of the link's rate and the contents become smaller.
LEAST_PACKED, LEAST_PACKED_GAIN = 0.97, 1.5
# The least part of the slower one of the disk and all links that a dump of several GPUs uses, as a part of what it is with one.
LEAST_OF_GPUS = 0.90
DATA = ("noise", "text")
PACKING = ("auto", "never", "always")  # as image::Packing

# (direction, who, MB/s of the link, of the disk, KiB of a BO) -> part of the slower one that was used
Key = tuple[str, str, int, int, int]
Figures = dict[Key, float]
# (contents, compress, MB/s of the link, of the disk) -> the same of a dump to a disk with a cache
PackedKey = tuple[str, str, int, int]
PackedFigures = dict[PackedKey, float]
# (GPUs, processes, MB/s of each link, of the disk) -> the part of the slower one of the disk and all links that was used
GpusKey = tuple[int, int, int, int]
GpusFigures = dict[GpusKey, float]


def measured(results: dict) -> Iterator[tuple[str, float]]:
    """Names and figures of one output of plugin_bench. A benchmark that has failed is an error."""
    for each in results["benchmarks"]:
        if each.get("error_occurred"):
            raise command.failure(f"{each['name']}: {each['error_message']}")
        if each.get("run_type") != "aggregate":
            yield each["name"], each["of_slower"]


def read_packed(results: dict) -> dict[PackedKey, list[float]]:
    """The figures of dumps that compress."""
    found: dict[PackedKey, list[float]] = defaultdict(list)
    for name, value in measured(results):
        if match := re.match(r"dump_packed/link:(\d+)/disk:(\d+)/.*/data:(\d)/packing:(\d)", name):
            link, disk, data, packing = map(int, match.groups())
            found[DATA[data], PACKING[packing], link, disk].append(value)
    return found


def read_gpus(results: dict) -> dict[GpusKey, list[float]]:
    """The figures of dumps of several GPUs."""
    found: dict[GpusKey, list[float]] = defaultdict(list)
    for name, value in measured(results):
        if match := re.match(r"dump_gpus/link:(\d+)/disk:(\d+)/.*/gpus:(\d+)/processes:(\d+)", name):
            link, disk, gpus, processes = map(int, match.groups())
            found[gpus, processes, link, disk].append(value)
    return found


def read(results: dict) -> dict[Key, list[float]]:
    """The figures of all other dumps and restores."""
    found: dict[Key, list[float]] = defaultdict(list)
    for name, value in measured(results):
        match = re.match(r"(dump|restore)_(plugin|serial)/link:(\d+)/disk:(\d+)/mib:\d+/bo_kib:(\d+)", name)
        if match:
            direction, who, *numbers = match.groups()
            found[(direction, who, *map(int, numbers))].append(value)
    return found


def medians(found: dict) -> dict:
    """The median of the figures of each key."""
    return {key: statistics.median(values) for key, values in found.items()}


def rates(figures: Figures) -> list[int]:
    return sorted({key[2] for key in figures if key[4] == LARGE_KIB})


def table(figures: Figures, direction: str) -> str:
    """Rows are links, columns are disks; in each place the plugin's part and that of a copy in turns."""
    columns = rates(figures)
    lines = [f"{direction}: part of the slower one that is used (in turns), large BOs",
             "link MB/s |" + "".join(f"  disk {disk:5}  |" for disk in columns)]
    for link in columns:
        places = (f"{figures[direction, 'plugin', link, disk, LARGE_KIB]:.2f} "
                  f"({figures[direction, 'serial', link, disk, LARGE_KIB]:.2f})" for disk in columns)
        lines.append(f"{link:9} |" + "".join(f"  {place:10}  |" for place in places))
    return "\n".join(lines)


def small_costs(figures: Figures, direction: str) -> dict[str, float]:
    """How much longer the same bytes take in small BOs than in large ones: the plugin, and in turns."""
    sizes = sorted({key[4] for key in figures if key[4] != LARGE_KIB})
    (link, disk), = {key[2:4] for key in figures if key[4] == sizes[0]}
    return {who: figures[direction, who, link, disk, sizes[-1]] / figures[direction, who, link, disk, sizes[0]]
            for who in ("plugin", "serial")}


def packed_table(packed: PackedFigures) -> str:
    """Rows are contents, columns are disks; in each place a dump that compresses by itself, and one that never does."""
    disks = sorted({key[3] for key in packed})
    (link,) = {key[2] for key in packed}
    lines = [f"dump with compress=auto (never, always): part of the slower one that is used, link {link} MB/s, disks with a cache",
             "contents |" + "".join(f"     disk {disk:5}     |" for disk in disks)]
    for data in DATA:
        places = ["{:.2f} ({:.2f}, {:.2f})".format(*(packed[data, packing, link, disk] for packing in PACKING))
                  for disk in disks]
        lines.append(f"{data:8} |" + "".join(f" {place:18} |" for place in places))
    return "\n".join(lines)


def judge_packed(packed: PackedFigures) -> list[str]:
    """What of that is beyond its limit."""
    found = []
    for data, packing, link, disk in sorted(packed):
        if packing != "auto":
            continue
        gain = packed[data, "auto", link, disk] / packed[data, "never", link, disk]
        least = LEAST_PACKED_GAIN if data == "text" and 2 * disk <= link else LEAST_PACKED
        if gain < least:
            found.append(f"a dump of {data} to a disk of {disk} MB/s with compress=auto is {gain:.2f} times as fast as without "
                         f"compression, less than {least}")
    return found


def gpus_table(gpus: GpusFigures) -> str:
    """Rows are numbers of GPUs, of one process and of as many; columns are disks."""
    disks = sorted({key[3] for key in gpus})
    (link,) = {key[2] for key in gpus}
    lines = [f"dump of several GPUs: part of the slower one of the disk and all links that is used, links of {link} MB/s",
             "GPUs, processes |" + "".join(f"  disk {disk:5}  |" for disk in disks)]
    for count, processes in sorted({key[:2] for key in gpus}):
        places = (f"  {gpus[count, processes, link, disk]:10.2f}  |" for disk in disks)
        lines.append(f"{count:4} {processes:10} |" + "".join(places))
    return "\n".join(lines)


def judge_gpus(gpus: GpusFigures) -> list[str]:
    """What of that is beyond its limit."""
    found = []
    for (count, processes, link, disk), value in sorted(gpus.items()):
        part = value / gpus[1, 1, link, disk]
        if part < LEAST_OF_GPUS:
            found.append(f"a dump of {count} GPUs of {processes} processes to a disk of {disk} MB/s uses {part:.2f} of what "
                         f"a dump of one GPU does, less than {LEAST_OF_GPUS}")
    return found


def judge(figures: Figures) -> list[str]:
    """What is beyond its limit."""
    found = []
    for direction, (least, least_gain) in LIMITS.items():
        for rate in (rate for rate in rates(figures) if rate <= JUDGED_MB_S):
            own = figures[direction, "plugin", rate, rate, LARGE_KIB]
            gain = own / figures[direction, "serial", rate, rate, LARGE_KIB]
            if own < least:
                found.append(f"{direction} at {rate} MB/s uses {own:.2f}, less than {least}")
            if gain < least_gain:
                found.append(f"{direction} at {rate} MB/s is {gain:.2f} times as fast as in turns, less than {least_gain}")
        cost = small_costs(figures, direction)["plugin"]
        if cost > MOST_FOR_SMALL[direction]:
            found.append(f"{direction} of small BOs takes {cost:.2f} times as long, more than {MOST_FOR_SMALL[direction]}")
    return found


# ---- the picture ----

CELL, LEFT, TOP, GAP = 92, 84, 76, 70


def shade(part: float) -> str:
    """White for none of the slower one, dark green for all of it."""
    light = round(235 - 150 * max(0.0, min(1.0, part)))
    return f"rgb({light - 40},{light},{light - 30})"


def heat_map(figures: Figures, direction: str, who: str, left: int) -> list[str]:
    columns = rates(figures)
    title = f"{direction}, {'the plugin' if who == 'plugin' else 'in turns'}"
    lines = [f'<text x="{left + LEFT}" y="24" font-weight="bold">{xml.escape(title)}</text>',
             f'<text x="{left + LEFT}" y="46">disk, MB/s</text>',
             f'<text x="{left}" y="{TOP - 6}">link</text>']
    for row, link in enumerate(columns):
        y = TOP + row * CELL // 2
        lines.append(f'<text x="{left}" y="{y + 28}">{link}</text>')
        for column, disk in enumerate(columns):
            x = left + LEFT + column * CELL
            part = figures[direction, who, link, disk, LARGE_KIB]
            if row == 0:
                lines.append(f'<text x="{x + 28}" y="{TOP - 6}">{disk}</text>')
            color = "white" if part > 0.6 else "black"
            lines.append(f'<rect x="{x}" y="{y}" width="{CELL - 2}" height="{CELL // 2 - 2}" fill="{shade(part)}"/>')
            lines.append(f'<text x="{x + 28}" y="{y + 28}" fill="{color}">{part:.2f}</text>')
    return lines


def picture(figures: Figures) -> str:
    """The four tables as heat maps: two rows, the plugin on the left."""
    width = LEFT + CELL * len(rates(figures)) + GAP
    height = TOP + CELL // 2 * len(rates(figures)) + GAP // 2
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{2 * width}" height="{2 * height}" '
             'font-family="sans-serif" font-size="14">',
             "<!-- SPDX-License-Identifier: MIT -->",
             "<title>Part of the slower one of link and disk that is used</title>"]
    for row, direction in enumerate(LIMITS):
        lines.append(f'<g transform="translate(10,{row * height})">')
        for column, who in enumerate(("plugin", "serial")):
            lines += heat_map(figures, direction, who, column * width)
        lines.append("</g>")
    return "\n".join([*lines, "</svg>", ""])


# ---- the run ----

def measure(program: Path, repeat: int) -> tuple[Figures, PackedFigures, GpusFigures]:
    found: dict[Key, list[float]] = defaultdict(list)
    packed: dict[PackedKey, list[float]] = defaultdict(list)
    gpus: dict[GpusKey, list[float]] = defaultdict(list)
    FOLDER.mkdir(parents=True, exist_ok=True)
    environment = {"KFD_CRIU_BENCH_DIR": "/dev/shm"} | dict(os.environ)
    for run in range(repeat):
        target = FOLDER / f"run-{run}.json"
        command.log(f"run {run + 1} of {repeat}; each takes about four minutes")
        argv = [program, "--benchmark_filter=^(dump|restore)_", "--benchmark_enable_random_interleaving=true",
                f"--benchmark_out={target}", "--benchmark_out_format=json"]
        try:
            with (FOLDER / "plugin_bench.log").open("w") as output:
                command.require(argv, f"plugin_bench failed (its output: {output.name})", 1, stdout=output,
                                stderr=output, env=environment)
        finally:
            # An interrupted run leaves its images, which may be in memory.
            shutil.rmtree(Path(environment["KFD_CRIU_BENCH_DIR"]) / "plugin_bench.images", ignore_errors=True)
        results = json.loads(target.read_text())
        for key, values in read(results).items():
            found[key] += values
        for packed_key, values in read_packed(results).items():
            packed[packed_key] += values
        for gpus_key, values in read_gpus(results).items():
            gpus[gpus_key] += values
    return medians(found), medians(packed), medians(gpus)


def main(argv: list[str]) -> int:
    parser = command.Parser(__doc__)
    parser.add_argument("--repeat", type=command.number_from(1), default=3)
    repeat = parser.read(argv).repeat
    command.require([repo_root() / "scripts/build.sh", "release", "plugin_bench"], "plugin_bench cannot be built", 1)
    figures, packed, gpus = measure(out_dir() / "cmake/release/userspace/plugin/plugin_bench", repeat)
    for direction in LIMITS:
        print(table(figures, direction))
        costs = small_costs(figures, direction)
        print(f"{direction}: the same bytes in BOs of 64 KiB take {costs['plugin']:.2f} times as long as in large ones "
              f"(in turns {costs['serial']:.2f})\n")
    print(gpus_table(gpus) + "\n")
    print(packed_table(packed) + "\n")
    (FOLDER / "plugin.json").write_text(json.dumps(
        [{"contents": key[0], "compress": key[1], "link_mb_s": key[2], "disk_mb_s": key[3], "of_slower": round(value, 3)}
         for key, value in sorted(packed.items())] +
        [{"gpus": key[0], "processes": key[1], "link_mb_s": key[2], "disk_mb_s": key[3], "of_slower": round(value, 3)}
         for key, value in sorted(gpus.items())] +
        [{"direction": key[0], "who": key[1], "link_mb_s": key[2], "disk_mb_s": key[3], "bo_kib": key[4],
          "of_slower": round(value, 3)} for key, value in sorted(figures.items())], indent=2) + "\n")
    (FOLDER / "plugin.svg").write_text(picture(figures))
    command.log(f"written: {FOLDER}/plugin.json, plugin.svg")
    beyond = judge(figures) + judge_gpus(gpus) + judge_packed(packed)
    for each in beyond:
        print(f"BEYOND its limit: {each}")
    return 1 if beyond else 0


if __name__ == "__main__":
    command.run(main)
