#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""Tests of bench_criu.py."""
import unittest

import bench_criu


def run(each: float, growth: float = 1.0, failed: bool = False, kind: str = "bo") -> dict:
    figures = {"us_each": each, "us_fixed": 5.0, "growth": growth, "us": [5.0, 5.0 + 10 * each]}
    return {"objects": {kind: {"failed": True} if failed else {"most": 10, "checkpoint": figures, "restore": figures}}}


def runs(stock: list[dict], ours: list[dict]) -> dict[str, list[dict]]:
    return {bench_criu.STOCK: stock, bench_criu.OURS: ours, bench_criu.EXTENSIBLE: ours}


def problems(stock: list[dict], ours: list[dict]) -> set[str]:
    return {problem for row in bench_criu.compare(runs(stock, ours)) for problem in row["beyond"]}


class CompareTest(unittest.TestCase):
    def test_what_is_as_fast_and_linear_is_good(self):
        self.assertEqual(problems([run(10)], [run(10.9)]), set())

    def test_what_is_slower_is_not(self):
        self.assertEqual(problems([run(10)], [run(11.1)]), {"ratio over 1.1"})

    def test_what_is_not_linear_is_not(self):
        self.assertEqual(problems([run(10)], [run(10, growth=1.6)]), {"growth over 1.5"})

    def test_unknown_growth_is_not(self):
        self.assertEqual(problems([run(10)], [run(10, growth=0)]), {"growth over 1.5"})

    def test_a_failure_of_ours_is_not(self):
        self.assertEqual(problems([run(10)], [run(10, failed=True)]), {"it failed"})

    def test_where_the_stock_kernel_fails_there_is_no_ratio(self):
        self.assertEqual(problems([run(10, failed=True)], [run(1000)]), set())

    def test_a_few_queues_may_be_disturbed(self):
        stock = [run(10, kind="sdma_queue")]
        self.assertEqual(problems(stock, [run(90, growth=9, kind="sdma_queue")]), set())
        self.assertEqual(
            problems(stock, [run(900, growth=9, kind="sdma_queue")]), {"ratio over 1.1", "growth over 1.5"}
        )

    def test_pairs_that_are_noise_tell_nothing(self):
        self.assertEqual(problems([run(-1), run(10)], [run(50), run(10)]), set())
        self.assertEqual(problems([run(-1)], [run(10)]), {"ratio over 1.1"})

    def test_the_extensible_abi_has_to_be_linear_only(self):
        measured = runs([run(10)], [run(10)]) | {bench_criu.EXTENSIBLE: [run(20)]}
        self.assertFalse(any(row["beyond"] for row in bench_criu.compare(measured)))

    def test_ratios_are_of_pairs_and_the_middle_one_counts(self):
        stock = [run(10), run(100), run(10)]
        ours = [run(10), run(100), run(30)]
        self.assertEqual(problems(stock, ours), set())
        self.assertEqual(problems(stock, [run(12), run(120), run(10)]), {"ratio over 1.1"})


if __name__ == "__main__":
    unittest.main()
