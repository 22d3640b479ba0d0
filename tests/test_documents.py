# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""Tables in documents: those that a program prints are what it prints, tests that they name exist, chips are vasicd's."""
from __future__ import annotations

import re
import subprocess

import pytest
from harness import paths, plan

pytestmark = pytest.mark.tier("unit")


def test_the_coverage_of_gfx9_is_written_down() -> None:
    program = paths.built("release") / "gcn" / "gcn_coverage"
    printed = subprocess.run([program, "--summary"], check=True, capture_output=True, text=True).stdout
    text = (paths.ROOT / "userspace/gcn/README.md").read_text()
    begin, end = "<!-- coverage -->\n", "<!-- /coverage -->\n"
    written = text[text.index(begin):text.index(end) + len(end)]
    assert written == printed, f"userspace/gcn/README.md is old: put there what {program} --summary prints"


# ---- chips -------------------------------------------------------------------------------

def test_the_table_of_formats_has_each_chip_with_its_scheduler() -> None:
    text = (paths.ROOT / "docs/virtual-gpu.md").read_text()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("| gfx")]
    written = {name: row[5].lower() for row in rows for name in row[0].split()}
    assert written == {name: chip["scheduler"] for name, chip in plan.chips().items()}


def test_kernels_of_hiptest_are_compiled_for_the_chips_that_execute_waves() -> None:
    text = (paths.ROOT / "userspace/hiptest/CMakeLists.txt").read_text()
    able = [name for name, chip in plan.chips().items() if chip["executes_waves"]]
    assert re.findall(r"--offload-arch=(\w+)", text) == able


# ---- docs/what-comes-back.md -----------------------------------------------------------

COMPARISON = "docs/what-comes-back.md"
KSELFTESTS = paths.ROOT / "kernel/amdkfd-criu/overlay/tools/testing/selftests/drivers/gpu/kfd_criu"
MANUAL = paths.ROOT / "packaging/man/amdgpu_plugin.7"


def _rows(heading: str = "") -> list[list[str]]:
    """The cells of the rows of the tables, or of those below one heading; not those with the names of columns."""
    text = (paths.ROOT / COMPARISON).read_text()
    text = text[text.index("<!-- claims -->"):text.index("<!-- /claims -->")]
    if heading:
        text = text.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]
    return [row for row in rows if row[0] and set(row[0]) != {"-"}]


def _exists(test: str) -> bool:
    """Whether the sources have a test with this name."""
    if test.startswith("workload "):
        return (paths.ROOT / f"userspace/kfdtest-criu/workloads/{test.split()[1]}.cc").exists()
    if test.endswith(".c"):
        return (KSELFTESTS / test).exists()
    if test.startswith("test_"):
        name, _, parameter = test.removesuffix("]").partition("[")
        texts = [file.read_text() for file in (paths.ROOT / "tests").glob("test_*.py")]
        return any(f"\ndef {name}(" in text and (not parameter or f'"{parameter}"' in text) for text in texts)
    suite, _, case = test.rpartition(".")
    macro = re.compile(rf"^TEST(_F|_P|_F_FORK|_F_TIMEOUT)?\({suite + ', *' if suite else ''}{case}[,)]", re.M)
    sources = [*KSELFTESTS.glob("**/*.c"), *(paths.ROOT / "userspace").glob("**/*_test.cc")]
    return any(macro.search(file.read_text()) for file in sources)


def test_every_claim_names_tests_that_exist() -> None:
    rows = _rows()
    assert len(rows) > 20
    wrong = []
    for row in rows:
        tests = re.findall(r"`([^`]+)`", row[-1])
        wrong += [f"{row[0]}: names no test"] if not tests else []
        wrong += [f"{row[0]}: there is no {test}" for test in tests if not _exists(test)]
    assert not wrong, "\n".join([f"{COMPARISON}:", *wrong])


@pytest.mark.parametrize("name", ["workload nothing", "nothing.c", "test_nothing", "Match.nothing", "pause.nothing",
                                  "nothing"])
def test_a_test_that_does_not_exist_is_noticed(name: str) -> None:
    assert not _exists(name)


def test_the_manual_refuses_what_the_comparison_refuses() -> None:
    text = MANUAL.read_text()
    text = text[text.index('.\\" refusals:'):text.index('.\\" refusals end')]
    manual = re.findall(r"^\.B (.*)$", text.replace("\\-", "-"), re.M)
    refused = [row[0] for row in _rows("What is refused")]
    # Names of commands are bold, too.
    assert [line for line in manual if not line.startswith("kfd-criu") and line != "WHICH GPUS FIT"] == refused


# ---- docs/testing.md ----------------------------------------------------------------------

def test_the_commands_for_one_test_name_tests_that_exist() -> None:
    text = (paths.ROOT / "docs/testing.md").read_text()
    text = text.split("\n## One test\n")[1].split("\n## ")[0]
    ids = re.findall(r"scripts/test\.py '?((?:tests|scripts)/[^ `']+)", text)
    assert len(ids) > 10
    missing = [each for each in ids if not (paths.ROOT / each.split("::")[0]).exists()]
    cases = [each.split("::") for each in ids if each.count("::") == 3]
    assert cases, "no command for a case of a program"
    missing += ["::".join(parts) for parts in cases if not _exists(parts[3])]
    functions = [each.split("::") for each in ids if each.startswith("tests/test_") and "::" in each]
    missing += ["::".join(parts) for parts in functions if not _exists(parts[1].partition("[")[0])]
    assert not missing, f"docs/testing.md names what does not exist: {missing}"
