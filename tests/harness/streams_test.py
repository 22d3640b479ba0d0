# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""What programs print becomes results of their cases."""
from __future__ import annotations

from harness.streams import (FAILED, PASSED, SKIPPED, WHOLE_PROGRAM, list_gtest, list_kselftest, list_kunit,
                             read_gtest, read_tap)


def outcomes(results) -> list[tuple[str, str]]:
    return [(result.name, result.outcome) for result in results]


def test_googletest_cases_pass_fail_and_skip() -> None:
    results = list(read_gtest([
        "[==========] Running 3 tests", "[ RUN      ] A.passes", "[       OK ] A.passes (3 ms)",
        "[ RUN      ] A.fails/0", "x.cc:1: Failure", "[  FAILED  ] A.fails/0, where GetParam() = 1 (0 ms)",
        "[ RUN      ] A.skips", "no such thing here", "[  SKIPPED ] A.skips (0 ms)",
        "[  FAILED  ] 1 test, listed below:", "[  FAILED  ] A.fails/0, where GetParam() = 1"]))
    assert outcomes(results) == [("A.passes", PASSED), ("A.fails/0", FAILED), ("A.skips", SKIPPED)]
    assert results[1].notes == ["x.cc:1: Failure"]
    assert results[2].reason == "no such thing here"


def test_a_googletest_case_that_does_not_end_has_failed() -> None:
    results = list(read_gtest(["[ RUN      ] A.crashes", "==1==ERROR: AddressSanitizer"]))
    assert outcomes(results) == [("A.crashes", FAILED)]
    assert results[0].notes == ["==1==ERROR: AddressSanitizer"]


def test_output_without_a_line_feed_before_the_mark_hides_no_result() -> None:
    assert outcomes(read_gtest(["suite...[ RUN      ] A.b", "dots...[       OK ] A.b (1 ms)"])) == [("A.b", PASSED)]


def test_a_case_that_begins_inside_another_one_ends_it_as_failed() -> None:
    results = list(read_gtest(["[ RUN      ] A.crashes", "[ RUN      ] B.c", "[       OK ] B.c (1 ms)"]))
    assert outcomes(results) == [("A.crashes", FAILED), ("B.c", PASSED)]
    assert results[0].reason == "the program ended during this case"


def test_the_end_of_another_case_ends_no_case() -> None:
    results = list(read_gtest(["[ RUN      ] A.b", "[       OK ] Child.c (1 ms)", "[  FAILED  ] A.b (1 ms)"]))
    assert outcomes(results) == [("A.b", FAILED)]


def test_typed_cases_with_parameters_are_read() -> None:
    results = list(read_gtest([
        "[ RUN      ] P/T/0.x/1",
        "[  FAILED  ] P/T/0.x/1, where TypeParam = std::pair<int, char> and GetParam() = (1, 2) (10 ms)",
        "[ RUN      ] P/T/0.y", "[  SKIPPED ] P/T/0.y (0 ms)"]))
    assert outcomes(results) == [("P/T/0.x/1", FAILED), ("P/T/0.y", SKIPPED)]


def test_kselftest_cases_pass_fail_and_skip() -> None:
    results = list(read_tap([
        "TAP version 13", "1..3", "# Starting 3 tests from 1 test cases.", "#  RUN           a.one ...",
        "#            OK  a.one", "ok 1 a.one", "# x.c:3:two:Expected 1 (1) == 2 (2)", "not ok 2 a.two",
        "ok 3 a.v.three # SKIP fewer than two GPUs", "# FAILED: 1 / 3 tests passed.",
        "# Totals: pass:1 fail:1 xfail:0 xpass:0 skip:1 error:0"]))
    assert outcomes(results) == [("a.one", PASSED), ("a.two", FAILED), ("a.v.three", SKIPPED)]
    assert results[1].notes == ["# x.c:3:two:Expected 1 (1) == 2 (2)"]
    assert results[2].reason == "fewer than two GPUs"


def test_no_directive_makes_a_failed_case_any_better() -> None:
    results = list(read_tap(["not ok 1 a.one # TODO later", "not ok 2 a.two # SKIP no GPU", "ok 3 a.three # TODO"]))
    assert outcomes(results) == [("a.one", FAILED), ("a.two", FAILED), ("a.three", PASSED)]


def test_a_sentence_that_begins_with_ok_is_no_case() -> None:
    assert not list(read_tap(["ok then", "okay 1 then", "all is ok 1", "not ok at all", "ok"]))


def test_a_program_that_skips_as_a_whole_says_so() -> None:
    results = list(read_tap(["TAP version 13", "1..0 # SKIP not root"]))
    assert (results[0].name, results[0].outcome, results[0].reason) == (WHOLE_PROGRAM, SKIPPED, "not root")


def test_kunit_reports_parameters_then_their_case_then_the_suite() -> None:
    results = list(read_tap([
        "KTAP version 1", "1..1", "    KTAP version 1", "    # Subtest: suite", "    1..2", "    ok 1 first",
        "        KTAP version 1", "        ok 1 gfx9", "        not ok 2 gfx10", "    # second: EXPECTATION FAILED",
        "    not ok 2 second", "not ok 1 suite"]))
    assert outcomes(results) == [("first", PASSED), ("gfx9", PASSED), ("gfx10", FAILED), ("second", FAILED),
                                 ("suite", FAILED)]


def test_the_list_of_a_googletest_program_is_read() -> None:
    assert list_gtest("Running main() from gtest_main.cc\nA.\n  one\n  two  # TypeParam = int\nB/C.\n  x/0  # GetParam() = 1\n") \
        == ["A.one", "A.two", "B/C.x/0"]


def test_the_list_of_a_kselftest_program_is_read() -> None:
    text = ("# FIXTURE            VARIANT                   TEST\n"
            "global                                         alone\n"
            "                                               two\n"
            + "-" * 80 + "\n"
            "states               v1                        pauses\n"
            "                     a_variant_with_a_very_long_name resumes\n")
    assert list_kselftest(text) == [
        "global.alone", "global.two", "states.v1.pauses", "states.v1.resumes",
        "states.a_variant_with_a_very_long_name.pauses", "states.a_variant_with_a_very_long_name.resumes"]


def test_the_cases_of_a_kunit_source_are_found() -> None:
    source = """
static struct kunit_case cases[] = {
	KUNIT_CASE(first),
	KUNIT_CASE_PARAM(second, gen),
	KUNIT_CASE_PARAM_WITH_INIT(third, gen, begin, end),
	{}
};

static struct kunit_suite suite = {
	.name = "the_suite",
	.init = setup,
	.test_cases = cases,
};
"""
    assert list_kunit(source) == {"the_suite": ["first", "second", "third"]}
