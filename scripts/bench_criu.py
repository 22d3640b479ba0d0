#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""Compares criubench's figures of the stock kernel with those of ours.

usage: bench_criu.py FOLDER OUT.json

FOLDER has files N-KERNEL-ABI.json for N = 0, 1, ...: stock-released, criu-released and
criu-extensible of one N were measured one after the other. Prints a table, adds its
figures to OUT.json as "criu", and ends with status 1 when a figure is beyond a limit
or a required figure is missing.

  each    microseconds an object takes, the slope of a line through all counts
  fixed   microseconds without an object
  growth  an object among all of them against one among a quarter of them
  ratio   each, of ours against the stock kernel's; of the same N; a limit of the released
          ABI only

There are few queues, because each has to be taken off the hardware: a row of queues fails
only if it is beyond its limit by NOISE_OF_QUEUES or more in all.
"""
from __future__ import annotations

import json
import math
import statistics
import sys
from pathlib import Path

STOCK, OURS, EXTENSIBLE = "stock-released", "criu-released", "criu-extensible"
OPERATIONS = ("checkpoint", "restore")
MOST_GROWTH = 1.5
MOST_RATIO = 1.1
# Microseconds: the time of queue operations varies, because vasicd, another process of the host, has to answer.
NOISE_OF_QUEUES = 1000


def figure_of(figures: dict, figure: str) -> float | None:
    """Returns a figure of criubench; us_all is the time of all objects without the fixed time."""
    if figure == "us_all":
        return figures["us"][-1] - figures["us"][0] if figures else None
    return figures.get(figure)


def median(runs: list[dict], kind: str, operation: str, figure: str) -> float | None:
    """Returns the median of a figure over the runs; None if one of them does not have the figure."""
    values = [figure_of(run["objects"].get(kind, {}).get(operation, {}), figure) for run in runs]
    return None if not values or None in values else statistics.median(values)


def median_ratio(ours: list[dict], stock: list[dict], kind: str, operation: str) -> float | None:
    """Returns the median of our time by the stock kernel's; None if one of the kernels failed; infinite
    if no pair can be compared, because a time below 0 is only noise."""
    ratios = []
    for mine, theirs in zip(ours, stock, strict=True):
        pair = [median([run], kind, operation, "us_each") for run in (mine, theirs)]
        if None in pair:
            return None
        if min(pair) > 0:
            ratios.append(pair[0] / pair[1])
    return statistics.median(ratios) if ratios else math.inf


def compare(runs: dict[str, list[dict]]) -> list[dict]:
    """Returns a row for each kernel and ABI, kind of objects and operation; "beyond" lists exceeded limits."""
    rows = []
    kinds = list(runs[OURS][0]["objects"])
    for name in (STOCK, OURS, EXTENSIBLE):
        for kind in kinds:
            for operation in OPERATIONS:
                row = {"kernel": name, "kind": kind, "operation": operation, "beyond": []}
                for figure in ("us_each", "us_fixed", "us_all", "growth"):
                    row[figure] = median(runs[name], kind, operation, figure)
                if name != STOCK:
                    row["ratio"] = median_ratio(runs[name], runs[STOCK], kind, operation)
                    row["beyond"] = beyond(row)
                rows.append(row)
    return rows


def beyond(row: dict) -> list[str]:
    if row["us_each"] is None:
        return ["it failed"]
    noise = NOISE_OF_QUEUES if row["kind"].endswith("_queue") else 0
    found = []
    # The growth is 0 if a quarter of the objects took no longer than no object.
    allowed = row["us_all"] * MOST_GROWTH / row["growth"] if row["growth"] > 0 else 0
    if row["us_all"] > allowed + noise:
        found.append(f"growth over {MOST_GROWTH}")
    # There is no ratio if the stock kernel failed.
    ratio = row["ratio"] if row["kernel"] == OURS else None
    if ratio is not None and row["us_all"] * (1 - MOST_RATIO / ratio) > noise:
        found.append(f"ratio over {MOST_RATIO}")
    return found


def load(folder: Path) -> dict[str, list[dict]]:
    runs: dict[str, list[dict]] = {STOCK: [], OURS: [], EXTENSIBLE: []}
    while (folder / f"{len(runs[STOCK])}-{STOCK}.json").exists():
        n = len(runs[STOCK])
        for name, files in runs.items():
            files.append(json.loads((folder / f"{n}-{name}.json").read_text()))
    return runs


def text(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def show(rows: list[dict]) -> None:
    print(f"{'kernel and ABI':16} {'objects':14} {'operation':10} {'us each':>9} {'us fixed':>9} {'growth':>7} {'ratio':>6}")
    for row in rows:
        words = f"   BEYOND: {', '.join(row['beyond'])}" if row["beyond"] else ""
        print(
            f"{row['kernel']:16} {row['kind']:14} {row['operation']:10} {text(row['us_each'], 2):>9} "
            f"{text(row['us_fixed'], 0):>9} {text(row['growth'], 2):>7} {text(row.get('ratio'), 2):>6}{words}"
        )


def main(folder: str, target: str) -> int:
    runs = load(Path(folder))
    if not runs[STOCK]:
        print(f"bench_criu.py: nothing was measured in {folder}", file=sys.stderr)
        return 1
    rows = compare(runs)
    show(rows)
    out = Path(target)
    result = json.loads(out.read_text()) if out.exists() else {}
    result["criu"] = rows
    out.write_text(json.dumps(result, indent=2) + "\n")
    return int(any(row["beyond"] for row in rows))


if __name__ == "__main__":
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        sys.exit(64)
    sys.exit(main(*sys.argv[1:]))
