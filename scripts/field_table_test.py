# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""The table of field_table.py has a row for each test, and calls only a good outcome good."""
from __future__ import annotations

import ast
import json
import subprocess
from pathlib import Path

import pytest
import field_table
from field_table import (BEGIN, DOCUMENT, END, NO_CASE, NOT_RUN, ROWS, UNCLEAR, Cell, cells, complaints, document, lines_of,
                         run_both, summary, table, wrong)
from harness import paths
from harness.field import EQUAL, LOST, REFUSED, WRONG

CASE, REFUSAL = "case[children]", "case[a_buffer_given_to_a_program_outside]"


def line(name: str, outcome: str, text: str = "") -> str:
    return json.dumps({"id": f"tests/test_field.py::test_{name}", "outcome": outcome, "seconds": 1, "text": text})


@pytest.mark.parametrize("name,outcome,text,cell", [
    (CASE, "passed", "", Cell(EQUAL)),
    (REFUSAL, "passed", "", Cell(REFUSED)),
    (CASE, "failed", "\nwanted: equal; wrong: descriptors\n  | more", Cell(WRONG, "descriptors")),
    (CASE, "failed", "wanted: equal; refused: no BO", Cell(REFUSED, "no BO")),
    (REFUSAL, "failed", "wanted: refused; equal: ", Cell(EQUAL, "the test failed")),
    (CASE, "failed", "\nthe restore failed\n  | why", Cell(LOST, "the restore failed")),
    (CASE, "failed", "\ngeneration 0 was not restored\n", Cell(LOST, "generation 0 was not restored")),
    (CASE, "failed", "killed at line 5: the program has ended", Cell(LOST, "killed at line 5: the program has ended")),
    (REFUSAL, "failed", "\nthe refusal does not say ['x']: Error", Cell(REFUSED, "the refusal does not say ['x']: Error")),
    (REFUSAL, "failed", "the step 'run modprobe vgem' failed", Cell(UNCLEAR, "the step 'run modprobe vgem' failed"))])
def test_what_became_of_a_program_is_read(name: str, outcome: str, text: str, cell: Cell) -> None:
    assert cells([line(name, outcome, text)]) == {name: cell}


def test_a_test_that_has_not_begun_has_no_result() -> None:
    assert not cells([line(CASE, "failed", "\nneeds: the machine field, which ended before its time")])


def test_a_row_has_both_outcomes_and_says_why_one_is_bad() -> None:
    lines = table({CASE: Cell(EQUAL)}, {CASE: Cell(LOST, "gone")})
    at = next(number for number, text in enumerate(lines) if text.startswith("children with inherited files"))
    assert lines[at].split()[-3:] == [EQUAL, EQUAL, LOST]
    assert lines[at + 1] == "    theirs: gone"
    assert summary({CASE: Cell(EQUAL)}) == {EQUAL: 1, REFUSED: 0, WRONG: 0, LOST: 0, UNCLEAR: 0, NOT_RUN: len(ROWS) - 1}


def test_only_a_wrong_outcome_of_ours_and_a_test_without_a_row_are_wrong() -> None:
    assert not complaints({CASE: Cell(EQUAL), REFUSAL: Cell(REFUSED)})
    assert complaints({CASE: Cell(REFUSED)}) == ["children with inherited files: refused, wanted equal"]
    assert complaints({"new": Cell(EQUAL)}) == ["test_new has no row in field_table.py"]


def test_without_results_there_is_no_table(tmp_path: Path) -> None:
    assert not lines_of(tmp_path)
    (tmp_path / "field-ours.jsonl").write_text(line(CASE, "passed"))
    assert f"ours: 1 equal, {len(ROWS) - 1} not run" in lines_of(tmp_path)
    assert wrong(tmp_path) == ["no results of theirs for the table of programs"]
    assert not wrong(tmp_path, whole=False)


def test_the_document_gets_the_table_when_no_result_is_missing(tmp_path: Path) -> None:
    file = tmp_path / "document.md"
    file.write_text(f"before\n{BEGIN}old\n{END}after\n")
    lines = "".join(line(row.test, "passed") + "\n" for row in ROWS)
    (tmp_path / "field-ours.jsonl").write_text(lines)
    (tmp_path / "field-theirs.jsonl").write_text(lines.partition("\n")[2])
    assert document(tmp_path, file) == "1 tests have no result of theirs: scripts/field_table.py --missing"
    assert file.read_text() == f"before\n{BEGIN}old\n{END}after\n"
    (tmp_path / "field-theirs.jsonl").write_text(lines)
    assert not document(tmp_path, file)
    text = file.read_text()
    assert text.startswith(f"before\n{BEGIN}Of {len(ROWS)} cases: ") and text.endswith(f"|\n{END}after\n")
    assert "| a second open /dev/kfd (rocm-systems#1705) | equal | equal | equal |\n" in text and "old" not in text


def test_the_document_has_a_place_for_the_table() -> None:
    text = (paths.ROOT / DOCUMENT).read_text()
    assert text.count(BEGIN) == text.count(END) == 1 and text.index(BEGIN) < text.index(END)


def test_only_tests_without_a_result_are_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = {}
    monkeypatch.setattr(field_table, "run", lambda folder, who, variables, tests: ran.update({who: tests}) or 0)
    monkeypatch.setattr(field_table.subprocess, "run", lambda *_, **__: field_table.subprocess.CompletedProcess([], 0))
    (tmp_path / "field-ours.jsonl").write_text("".join(line(row.test, "passed") + "\n" for row in ROWS[1:]))
    assert run_both(tmp_path, missing=True) == 0
    assert ran == {"ours": [f"tests/test_field.py::test_{ROWS[0].test}"], "theirs": ["tests/test_field.py"]}
    assert run_both(tmp_path) == 0
    assert ran == {"ours": ["tests/test_field.py"], "theirs": ["tests/test_field.py"]}


def id_of(value: ast.expr) -> str:
    """The id of one parameter: a constant, or pytest.param() with one or with an id."""
    if isinstance(value, ast.Call):
        named = [keyword.value for keyword in value.keywords if keyword.arg == "id"]
        return id_of((named or value.args)[0])
    assert isinstance(value, ast.Constant), f"a parameter without an id: {ast.unparse(value)}"
    return str(value.value)


def parameters_of(function: ast.FunctionDef) -> list[str]:
    """What stands behind the name of the function in those of its tests: an id in brackets, or nothing."""
    for decorator in function.decorator_list:
        if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "pytest.mark.parametrize":
            values = decorator.args[1]
            assert isinstance(values, ast.List), f"parameters of {function.name}: {ast.unparse(values)}"
            return [f"[{id_of(each)}]" for each in values.elts]
    return [""]


def test_a_machine_that_ends_during_a_test_alone_is_a_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(field_table.paths, "TEST", tmp_path)

    def fake(*_arguments: object, **_options: object) -> subprocess.CompletedProcess[str]:
        (tmp_path / "results.jsonl").write_text(line(CASE, "failed", "needs: the machine field, which ended"))
        return subprocess.CompletedProcess([], 1)

    monkeypatch.setattr(subprocess, "run", fake)
    field_table.run(tmp_path, "theirs", {}, [field_table.TESTS])
    file = tmp_path / "field-theirs.jsonl"
    assert not field_table.read(file)
    file.unlink()
    field_table.run(tmp_path, "theirs", {}, [f"{field_table.TESTS}::test_{CASE}"])
    assert field_table.read(file)[CASE].outcome == UNCLEAR


def test_each_test_of_the_field_has_a_row_and_each_row_a_test() -> None:
    tree = ast.parse((paths.ROOT / "tests/test_field.py").read_text())
    cases = {node.args[0].value for node in ast.walk(tree) if isinstance(node, ast.Call)
             and isinstance(node.func, ast.Name) and node.func.id == "Case"}
    tests = {f"case[{case}]" for case in cases}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_") and node.name != "test_case":
            tests |= {node.name.removeprefix("test_") + words for words in parameters_of(node)}
    assert tests == {row.test for row in ROWS} | set(NO_CASE)
