# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""bench_plugin.py: medians of what plugin_bench wrote, the tables, and what is beyond a limit."""
from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import pytest
from vm.errors import VmError

import bench_plugin

RATES = (500, 1000)


def result(direction: str, who: str, link: int, disk: int, bo_kib: int, value: float) -> dict:
    return {"name": f"{direction}_{who}/link:{link}/disk:{disk}/mib:512/bo_kib:{bo_kib}/iterations:1/real_time",
            "run_type": "iteration", "of_slower": value}


def results(plugin: float = 0.95, serial: float = 0.5, small: float = 0.9) -> dict:
    """An output of plugin_bench, in which all large BOs are as fast."""
    found = []
    for direction in ("dump", "restore"):
        for who, value in (("plugin", plugin), ("serial", serial)):
            found += [result(direction, who, link, disk, 131072, value) for link in RATES for disk in RATES]
            found += [result(direction, who, 1000, 1000, 65536, value),
                      result(direction, who, 1000, 1000, 64, small if who == "plugin" else 0.1)]
    return {"benchmarks": found}


def figures(**values: float) -> bench_plugin.Figures:
    return bench_plugin.medians(bench_plugin.read(results(**values)))


def test_repetitions_are_reduced_to_their_median() -> None:
    name = ("dump", "plugin", 500, 1000, 131072)
    values = [result(*name, value) for value in (0.7, 0.9, 0.8)]
    assert bench_plugin.medians(bench_plugin.read({"benchmarks": values})) == {name: 0.8}


def test_a_benchmark_that_failed_is_an_error() -> None:
    failed = result("dump", "plugin", 500, 500, 64, 0) | {"error_occurred": True, "error_message": "No space left"}
    with pytest.raises(VmError, match="No space left"):
        bench_plugin.read({"benchmarks": [failed]})


def test_a_table_has_a_row_for_each_link_and_a_column_for_each_disk() -> None:
    lines = bench_plugin.table(figures(), "restore").splitlines()
    assert [line.split()[0] for line in lines] == ["restore:", "link", "500", "1000"]
    assert lines[2].count("0.95 (0.50)") == len(RATES)


def test_figures_within_their_limits_are_not_judged() -> None:
    assert bench_plugin.judge(figures()) == []


@pytest.mark.parametrize("values, found", [
    ({"plugin": 0.7, "small": 0.7}, "dump at 500 MB/s uses 0.70, less than 0.9"),
    ({"serial": 0.9}, "dump at 1000 MB/s is 1.06 times as fast as in turns, less than 1.8"),
    ({"small": 0.5}, "restore of small BOs takes 1.90 times as long, more than 1.25"),
])
def test_a_figure_beyond_its_limit_is_named(values: dict, found: str) -> None:
    assert found in bench_plugin.judge(figures(**values))


def packed(auto: float = 0.99, auto_text: float = 1.7) -> bench_plugin.PackedFigures:
    """An output of dumps that compress, to disks of 250 and 500 MB/s; without compression all are 1.00."""
    values = {("noise", "auto"): auto, ("text", "auto"): auto_text}
    results_ = [{"name": f"dump_packed/link:500/disk:{disk}/mib:512/bo_kib:131072/data:{data}/packing:{packing}/iterations:1",
                 "run_type": "iteration", "of_slower": values.get((contents, compress), 1.0)}
                for disk in (250, 500)
                for data, contents in enumerate(bench_plugin.DATA) for packing, compress in enumerate(bench_plugin.PACKING)]
    return bench_plugin.medians(bench_plugin.read_packed({"benchmarks": results_}))


def test_the_table_of_compression_has_a_row_for_each_contents() -> None:
    lines = bench_plugin.packed_table(packed()).splitlines()
    assert [line.split()[0] for line in lines[2:]] == list(bench_plugin.DATA)
    assert lines[2].count("0.99 (1.00, 1.00)") == lines[3].count("1.70 (1.00, 1.00)") == 2


def test_compression_within_its_limits_is_not_judged() -> None:
    assert bench_plugin.judge_packed(packed()) == []


def test_compression_that_costs_time_or_gains_too_little_is_named() -> None:
    assert len(bench_plugin.judge_packed(packed(auto=0.9))) == 2
    found, = bench_plugin.judge_packed(packed(auto_text=1.2))
    assert "text to a disk of 250 MB/s" in found


def of_gpus(four: float = 0.95) -> bench_plugin.GpusFigures:
    """An output of dumps of one and of four GPUs."""
    results_ = [{"name": f"dump_gpus/link:250/disk:{disk}/mib:256/bo_kib:131072/gpus:{count}/processes:{processes}/iterations:1",
                 "run_type": "iteration", "of_slower": value}
                for disk in (500, 2000) for count, processes, value in ((1, 1, 0.98), (4, 1, four), (4, 4, 0.96))]
    return bench_plugin.medians(bench_plugin.read_gpus({"benchmarks": results_}))


def test_the_table_of_gpus_has_a_row_for_each_number_of_gpus_and_processes() -> None:
    lines = bench_plugin.gpus_table(of_gpus()).splitlines()
    assert [line.split()[:2] for line in lines[2:]] == [["1", "1"], ["4", "1"], ["4", "4"]]
    assert lines[3].count("0.95") == 2


def test_several_gpus_within_their_limit_are_not_judged() -> None:
    assert bench_plugin.judge_gpus(of_gpus()) == []


def test_several_gpus_that_wait_for_each_other_are_named() -> None:
    found = bench_plugin.judge_gpus(of_gpus(four=0.25))
    assert len(found) == 2 and "a dump of 4 GPUs of 1 processes to a disk of 500 MB/s uses 0.26" in found[0]


def test_the_picture_has_every_figure() -> None:
    picture = ElementTree.fromstring(bench_plugin.picture(figures()))
    texts = [element.text for element in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert texts.count("0.95") == texts.count("0.50") == 2 * len(RATES) ** 2
