# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""plan.toml selects what it says, and complains of what it cannot mean."""
from __future__ import annotations

from pathlib import Path

import pytest
from harness import check, paths, plan
from harness.plan import Plan, PlanError, matching

CHIPS = {"gfxA": {"name": "gfxA", "sibling_of": None, "svm": True}, "gfxB": {"name": "gfxB", "sibling_of": "gfxA", "svm": False}}

TEXT = """
[defaults]
vram = "256M"
limit_s = 100
program_limit_s = 50
[samples]
few = ["gfxB"]
[program.suite]
kind = "gtest"
argv = ["{built}/suite"]
[program.sysfs]
kind = "command"
case = "works"
argv = ["check", "{name}", "{gpu_count}"]
[program.kunit]
kind = "kunit"
[set.suite]
once = ["A.once*"]
[[machine]]
name = "m-{chip}"
each_chip = "True"
gpus = ["{chip}", "{chip},hive=1"]
facts = { gpu_count = 2 }
run = [
    { program = "suite", cases = ["*", "-@once"] },
    { program = "suite", cases = ["@once"], when = "name in few" },
    { program = "sysfs", heavy = true },
]
[[machine]]
name = "big"
heavy = true
gpus = ["gfxA"]
run = [{ program = "suite" }]
[[machine]]
name = "other"
groups = ["debug"]
gpus = ["gfxA"]
run = [{ program = "suite" }]
[[skip]]
program = "suite"
cases = ["A.svm"]
when = "not svm"
reason = "no SVM"
[[absent]]
program = "suite"
cases = ["A.svm"]
when = "not svm"
reason = "no SVM"
"""


@pytest.fixture(name="make")
def make_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A Plan of TEXT with some of it replaced."""
    monkeypatch.setattr(plan, "chips", lambda: CHIPS)
    monkeypatch.setattr(plan, "gtest_cases", lambda path, env=(): ("A.svm", "A.once_only", "B.other"))
    monkeypatch.setattr(paths, "kernel", lambda variant: tmp_path)
    (tmp_path / "bzImage").touch()

    def make(groups=("test",), everything=False, old="", new="") -> Plan:
        file = tmp_path / "plan.toml"
        file.write_text(TEXT.replace(old, new) if old else TEXT)
        return Plan(file, set(groups), set(), everything)

    return make


def cases(subject: Plan) -> dict[str, dict[str, list[str]]]:
    return {machine.name: {run.program.name: run.cases for run in machine.runs} for machine in subject.machines()}


def test_a_row_stands_for_each_chip_and_conditions_choose_its_cases(make) -> None:
    assert cases(make()) == {"m-gfxA": {"suite": ["A.svm", "B.other"]},
                             "m-gfxB": {"suite": ["A.svm", "A.once_only", "B.other"]}}


def test_what_is_heavy_runs_only_with_everything(make) -> None:
    assert cases(make(everything=True))["m-gfxA"]["sysfs"] == ["works"]
    assert "big" in cases(make(everything=True)) and "big" not in cases(make())


def test_groups_choose_machines(make) -> None:
    assert list(cases(make(groups=["debug"]))) == ["other"]


def test_options_of_the_machine_are_those_of_vm_sh(make) -> None:
    machine = make().machines()[0]
    assert machine.options == ["--kernel", "criu", "--gpu", "gfxA,vram=256M", "--gpu", "gfxA,hive=1,vram=256M"]
    assert machine.limit_s == 100


def test_only_a_machine_with_kunit_runs_its_tests_at_a_driver_s_load(make) -> None:
    row = {"old": '    { program = "sysfs", heavy = true },', "new": '    { program = "kunit", heavy = true },'}
    assert "--kunit" not in make(**row).machines()[0].options
    assert make(everything=True, **row).machines()[0].options[-1] == "--kunit"


def test_only_everything_has_all_inputs(make, monkeypatch: pytest.MonkeyPatch) -> None:
    row = {"old": 'name = "m-{chip}"',
           "new": 'name = "m-{chip}"\nenv = { CHIP = "{chip}", N = 1 }\nsample_env = { N = 4 }\nenv_from = ["N"]'}
    monkeypatch.delenv("N", raising=False)
    assert make(**row).machines()[0].env == {"CHIP": "gfxA", "N": "4"}
    assert make(everything=True, **row).machines()[0].env == {"CHIP": "gfxA", "N": "1"}
    monkeypatch.setenv("N", "2")
    assert make(**row).machines()[0].env == {"CHIP": "gfxA", "N": "2"}


def test_arguments_are_filled_from_the_facts(make) -> None:
    machine = make(everything=True).machines()[0]
    assert machine.runs[1].program.argv == ("check", "gfxA", "2")


def test_a_pattern_that_selects_nothing_fails_its_machine(make) -> None:
    machine = make(old='cases = ["@once"]', new='cases = ["Gone.*"]').machines()[1]
    assert "'Gone.*' selects no case" in machine.missing


@pytest.mark.parametrize("old, new, words", [
    ('cases = ["@once"]', 'cases = ["@nothing"]', "no set 'nothing'"),
    ('when = "name in few"', 'when = "name in nowhere"', "nowhere"),
    ('program = "sysfs"', 'program = "nobody"', "no program 'nobody'"),
])
def test_a_mistake_in_the_plan_is_named(make, old: str, new: str, words: str) -> None:
    assert any(words in machine.missing for machine in make(everything=True, old=old, new=new).machines())


def test_a_kernel_that_is_not_built_fails_its_machines(make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    subject = make()
    monkeypatch.setattr(paths, "kernel", lambda variant: tmp_path / "nowhere")
    assert "scripts/kernel.sh build criu" in subject.machines()[0].missing


def test_a_skip_is_expected_where_its_condition_holds(make) -> None:
    subject = make()
    with_svm, without = subject.machines()
    assert subject.may_skip(without, "suite", "A.svm") == "no SVM"
    assert subject.may_skip(with_svm, "suite", "A.svm") == ""
    assert subject.may_skip(without, "suite", "B.other") == ""


def test_a_case_may_be_absent_where_a_row_says_so(make) -> None:
    subject = make()
    with_svm, without = subject.machines()
    assert subject.may_be_absent(without, "suite", "A.svm") == "no SVM"
    assert subject.may_be_absent(with_svm, "suite", "A.svm") == ""
    assert subject.may_be_absent(without, "suite", "B.other") == ""


def test_only_a_program_that_may_lack_cases_is_asked_for_them_in_the_machine(make) -> None:
    assert [run.program.varies for run in make(everything=True).machines()[0].runs] == [True, False]
    assert not make(old="[[absent]]", new="[[unused]]").machines()[0].runs[0].program.varies


def test_an_exemption_of_no_case_is_a_failure(make) -> None:
    *_, last = make(old='cases = ["A.svm"]\nwhen', new='cases = ["A.*", "A.gone"]\nwhen').machines()
    said = ["plan.toml: an exemption of suite: 'A.gone' is no case"] * 2
    assert (last.name, last.missing) == ("plan", "\n".join(said))
    assert "plan" not in cases(make())


def test_a_sample_that_is_no_chip_is_a_failure(make) -> None:
    *_, last = make(old='few = ["gfxB"]', new='few = ["gfxB", "gfxb"]').machines()
    assert (last.name, last.missing) == ("plan", "plan.toml: [samples] few: no chip 'gfxb'")


def test_two_machines_of_one_name_are_a_failure(make) -> None:
    *_, last = make(everything=True, old='name = "big"', new='name = "m-gfxA"').machines()
    assert (last.name, last.missing) == ("plan", "plan.toml: two machines are named 'm-gfxA'")


def test_patterns_keep_the_order_of_the_cases() -> None:
    assert matching(["c", "a", "b"], ["b", "c"], "here") == ["c", "b"]
    with pytest.raises(PlanError):
        matching(["a"], ["-b", "x"], "here")


ROWS = [{"files": ["*.md"], "tests": ["lint"]}, {"files": ["userspace/plugin/*"], "tests": ["unit_plugin", "e2e"]}]


def test_the_change_selects_the_tests_of_its_files() -> None:
    found = check.select("HEAD", ["README.md", "userspace/plugin/image/codec.cc", "strange.file"], ROWS)
    assert found.tests == ["lint", "unit_plugin", "e2e", "python"]
    assert "userspace/plugin/image/codec.cc" in found.explain()


def test_what_the_selection_leaves_out_is_said() -> None:
    assert "unit_plugin" in check.select("HEAD", ["README.md"], ROWS).explain().split("left out:")[1]


def test_a_base_that_git_does_not_know_is_an_error() -> None:
    with pytest.raises(ValueError, match="no commit 'nowhere'"):
        check.select("nowhere")
