# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""What selects no test is refused before the builds if the sources show it, and with the names that there are."""
from __future__ import annotations

import pytest
from harness import plan, selection

IDS = ["tests/plan.toml::gfx906::kfdtest::AqlQueueTest.wraps", "tests/plan.toml::gfx906::kfdtest::BoTest.maps",
       "tests/plan.toml::gfx906::kunit::x", "tests/test_vm.py::test_a_killed_run", "scripts/series_test.py::test_mails"]
# A word that no source has, this one included.
NOWHERE = "qz" + "xvj" * 2


@pytest.fixture(name="collected", autouse=True)
def fake_pytest(monkeypatch) -> list[list[str]]:
    """The calls of pytest, which finds the tests above."""
    calls: list[list[str]] = []

    def collect(arguments: list[str]) -> tuple[int, list[str], str]:
        calls.append(arguments)
        return 0, IDS, ""

    monkeypatch.setattr(selection, "_collect", collect)
    return calls


@pytest.mark.parametrize("ids, options, said", [
    ([f"tests/plan.toml::gfx906::kfdtest::{NOWHERE}.maps"], [],
     "^no test 'tests/plan.toml::gfx906::kfdtest::.*'; the nearest names are tests/plan.toml::gfx906::kfdtest::BoTest.maps"),
    ([], ["-k", NOWHERE], r"^no test is selected by -k '\w*'; there are tests in tests/test_{vm}.py scripts tests/plan.toml$"),
    ([], ["-k", f"lint and ({NOWHERE} and bo)"], "^no test is selected by -k"),
    ([], [f"-k{NOWHERE} or {NOWHERE}2"], "^no test is selected by -k"),
])
def test_what_no_source_has_is_refused_before_a_build(ids, options, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        selection.check_before_builds(ids, options)


@pytest.mark.parametrize("ids, options", [
    (["tests/plan.toml::gfx906::kfdtest::NewTest.of_a_program_that_is_not_built"], []), (["tests/plan.toml"], []),
    ([f"tests/test_vm.py::test_x[{NOWHERE}]"], []), ([], ["-k", f"not {NOWHERE}"]), ([], ["-k", f"lint or {NOWHERE}"]),
    ([], ["-k", "test_vm"]), ([], ["-x"]), ([], []),
])
def test_what_a_build_may_bring_is_not_refused(ids, options) -> None:
    selection.check_before_builds(ids, options)


def test_without_options_pytest_is_not_asked(collected) -> None:
    selection.check_before_builds(["tests/test_vm.py"], [])
    assert not collected


@pytest.mark.parametrize("status, error, ids, options, said", [
    (4, "unrecognized arguments: --x", [], ["--x"], "^pytest: unrecognized arguments: --x$"),
    (4, "not found: tests/test_vm.py::test_a_kiled_run", ["tests/test_vm.py::test_a_kiled_run"], [],
     "^no test 'tests/test_vm.py::test_a_kiled_run'; the nearest names are tests/test_vm.py::test_a_killed_run$"),
    (5, "", [], ["-k", "aqlqueue"], "^no test is selected by -k 'aqlqueue'; the nearest names are aqlqueuetest$"),
    (5, "", [], ["-m", "heavy"], "^no test is selected; there are tests in tests/test_{vm}.py scripts tests/plan.toml$"),
])
def test_what_pytest_does_not_find_is_refused(monkeypatch, status: int, error: str, ids, options, said: str) -> None:
    ends = iter([(status, [], error), (0, IDS, "")])
    monkeypatch.setattr(selection, "_collect", lambda _: next(ends))
    with pytest.raises(ValueError, match=said):
        selection.check(ids, options, ["--groups=test"])


@pytest.mark.parametrize("table, lacks", [('.name = "gfx1"', False), ('.name = "gfx1" .name = "gfx2"', True)])
def test_an_old_vasicd_lacks_chips(monkeypatch, tmp_path, table: str, lacks: bool) -> None:
    file = tmp_path / "userspace/vasicd/chip_table.cc"
    file.parent.mkdir(parents=True)
    file.write_text(table)
    monkeypatch.setattr(plan.paths, "ROOT", tmp_path)
    monkeypatch.setattr(plan, "chips", lambda: {"gfx1": {}})
    assert plan.lacks_chips() == lacks
