#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""Tests of ktap.py: what each kind of output is turned into."""
from __future__ import annotations

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.dont_write_bytecode = True
import ktap  # noqa: E402


def cases(lines) -> list[tuple[str, str]]:
    return [tuple(text.split("\t")[:2]) for text in lines]


class Gtest(unittest.TestCase):
    def test_verdicts_are_taken_once_and_not_from_the_summary(self):
        text = ["[ RUN      ] Bo.map", "[       OK ] Bo.map (3 ms)", "[ RUN      ] Bo.free/0", "bo_test.cc:3: Failure",
                "[  FAILED  ] Bo.free/0, where GetParam() = 5 (1 ms)", "[  FAILED  ] 1 test, listed below:",
                "[  FAILED  ] Bo.free/0, where GetParam() = 5"]
        self.assertEqual(cases(ktap.from_gtest(text)),
                         [("ok", "Bo.map"), ("not ok", "Bo.free/0"), ("note", "bo_test.cc:3: Failure")])

    def test_a_case_that_does_not_end_has_failed(self):
        text = ["[ RUN      ] Bo.map", "something"]
        self.assertEqual(cases(ktap.from_gtest(text)), [("not ok", "Bo.map"), ("note", "something")])

    def test_a_case_that_does_not_end_has_failed_also_when_another_program_goes_on(self):
        text = ["[ RUN      ] Bo.map", "Segmentation fault", "[ RUN      ] Va.map", "[       OK ] Va.map (3 ms)"]
        self.assertEqual(cases(ktap.from_gtest(text)),
                         [("not ok", "Bo.map"), ("note", "Segmentation fault"), ("ok", "Va.map")])

    def test_an_unfinished_line_before_the_mark_does_no_harm(self):
        text = ["[ RUN      ] Bo.map", "no newline[       OK ] Bo.map (3 ms)"]
        self.assertEqual(cases(ktap.from_gtest(text)), [("ok", "Bo.map")])

    def test_a_skip_carries_its_reason(self):
        text = ["[ RUN      ] Bo.map", "bo.cc:1: Skipped", "no second GPU", "[  SKIPPED ] Bo.map (0 ms)"]
        self.assertEqual(list(ktap.from_gtest(text)), ["skip\tBo.map\tno second GPU"])


class Ctest(unittest.TestCase):
    def test_each_result_is_understood(self):
        text = ["      Start  1: A.one", " 1/5 Test  #1: A.one ............   Passed    0.01 sec",
                " 2/5 Test  #2: A.two ............***Failed    0.01 sec", "why it failed", "",
                "      Start  3: A.three", "not of a failure",
                " 3/5 Test  #3: A.three ..........***Skipped    0.01 sec",
                " 4/5 Test  #4: A.four ...........***Exception: SegFault    0.01 sec",
                " 5/5 Test  #5: A.five ...........***Timeout   1.01 sec", "", "40% tests passed, 3 tests failed out of 5"]
        self.assertEqual(cases(ktap.from_ctest(text)),
                         [("ok", "A.one"), ("not ok", "A.two"), ("note", "why it failed"), ("skip", "A.three"),
                          ("not ok", "A.four"), ("not ok", "A.five")])

    def test_a_program_that_was_not_built_has_failed(self):
        text = ["1/1 Test #1: A_NOT_BUILT ......***Not Run   0.00 sec"]
        self.assertEqual(cases(ktap.from_ctest(text)), [("not ok", "A_NOT_BUILT")])


class Ktap(unittest.TestCase):
    def test_only_the_left_margin_counts(self):
        text = ["KTAP version 1", "1..3", "    ok 1 inner", "ok 1 - outer", "not ok 2 - broken", "# because",
                "ok 3 - later # SKIP no hipcc"]
        self.assertEqual(list(ktap.from_ktap(text)),
                         ["ok\touter\t", "not ok\tbroken\t", "note\tbecause", "skip\tlater\tno hipcc"])

    def test_a_failure_that_is_to_be_done_is_still_a_failure(self):
        self.assertEqual(cases(ktap.from_ktap(["not ok 1 - x # TODO later", "not ok 2 - y # SKIP z"])),
                         [("not ok", "x"), ("not ok", "y")])

    def test_an_ordinary_sentence_is_not_a_case(self):
        self.assertEqual(cases(ktap.from_ktap(["okay then", "ok then", "all is ok 1"])), [])


if __name__ == "__main__":
    unittest.main()
