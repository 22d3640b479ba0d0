# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""Each case of an older list is in one of five states, and only a lost one fails the comparison."""
from __future__ import annotations

import json
from pathlib import Path

import compare_cases
import pytest
from vm.errors import EXIT_USAGE, VmError

OLD = ("tests/plan.toml::gfx906::kfdtest::BoTest.maps", "tests/plan.toml::gfx906::kfdtest::BoTest.frees",
       "scripts/old_test.py::test_a[x y]", "tests/test_gone.py::test_b", "tests/test_lost.py::test_c")
TABLE = r"""
[[renamed]]
old = 'scripts/old_test\.py::(.*)'
new = 'scripts/new_test.py::\1'
[[removed]]
old = 'tests/test_gone\.py::.*'
reason = "nothing runs it"
"""


def listed(path: Path, *cases: str) -> str:
    """A file with what `scripts/test.py --list` prints."""
    path.write_text("".join(f"{case}\n" for case in cases) + f"\n{len(cases)} tests collected in 1.00s\n")
    return str(path)


@pytest.fixture(name="arguments")
def arguments_of_a_comparison(tmp_path: Path) -> list[str]:
    (tmp_path / "table").write_text(TABLE)
    return ["--all", listed(tmp_path / "all", OLD[0], OLD[1]), "--table", str(tmp_path / "table"),
            listed(tmp_path / "old", *OLD), listed(tmp_path / "new", OLD[0], "scripts/new_test.py::test_a[x y]")]


def test_each_old_case_is_named_with_its_place(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert compare_cases.main(arguments) == 1
    assert capsys.readouterr().out.splitlines() == [
        f"test     {OLD[0]}", f"test-all {OLD[1]}", f"renamed  {OLD[2]} -> scripts/new_test.py::test_a[x y] (test)",
        f"removed  {OLD[3]}: nothing runs it", f"LOST     {OLD[4]}",
        "5 cases before: 1 in make test, 1 only in make test-all, 1 renamed, 1 removed for a reason, 1 lost"]


def test_a_reason_for_each_lost_case_is_success(arguments: list[str], tmp_path: Path,
                                                capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "table").write_text(TABLE + "[[removed]]\nold = '.*::test_c'\nreason = 'a reason'\n")
    assert compare_cases.main(["--short", *arguments]) == 0
    assert OLD[0] not in capsys.readouterr().out


def test_a_new_name_that_does_not_exist_is_a_lost_case(arguments: list[str], tmp_path: Path,
                                                       capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "table").write_text(TABLE.replace("new_test", "other_test"))
    assert compare_cases.main(arguments) == 1
    assert "LOST     scripts/old_test.py::test_a[x y]: scripts/other_test.py::test_a[x y] is not there" in capsys.readouterr().out


def test_results_of_a_run_are_a_list(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    path.write_text("".join(json.dumps({"id": case, "outcome": "passed"}) + "\n" for case in (*OLD, OLD[0])))
    assert compare_cases.read_cases(path) == list(OLD)


@pytest.mark.parametrize("table, message", [
    ("[[renamed]]\nold = 'x'\n", "a row has no 'new'"), ("[[removed]]\nold = 'x'\nreason = ' '\n", "empty"),
    ("[[removed]]\nold = '('\nreason = 'x'\n", "table"), ("[[moved]]\n", "unknown table moved"), ("x", "table")])
def test_a_wrong_table_is_an_error_of_usage(arguments: list[str], tmp_path: Path, table: str, message: str) -> None:
    (tmp_path / "table").write_text(table)
    with pytest.raises(VmError, match=message) as raised:
        compare_cases.main(arguments)
    assert raised.value.status == EXIT_USAGE


@pytest.mark.parametrize("text", ["", "no tests collected in 0.10s\n", '{"outcome": "passed"}\n', '{"id"\n'])
def test_a_file_without_cases_is_an_error_of_usage(tmp_path: Path, text: str) -> None:
    path = tmp_path / "cases"
    path.write_text(text)
    with pytest.raises(VmError) as raised:
        compare_cases.read_cases(path)
    assert raised.value.status == EXIT_USAGE


def test_a_missing_file_is_an_error_of_usage(tmp_path: Path) -> None:
    with pytest.raises(VmError, match="No such file") as raised:
        compare_cases.read_cases(tmp_path / "cases")
    assert raised.value.status == EXIT_USAGE
