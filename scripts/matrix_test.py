# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""Tests of matrix.py."""
from __future__ import annotations

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.dont_write_bytecode = True
import matrix  # noqa: E402

KINDS_WITHOUT_XGMI = [kind for kind in matrix.KINDS if kind != "sdma_xgmi"]


def case(name: str, verdict: str = "      OK", reason: str = "") -> list[str]:
    return [f"[ RUN      ] {name}", *([reason] if reason else []), f"[ {verdict:<8} ] {name} (1 ms)"]


def machine(bad: str = "") -> list[str]:
    lines: list[str] = []
    for kind in KINDS_WITHOUT_XGMI:
        for name in (f"kinds/QueueKindTest.runs_each_step/{kind}", f"kinds/QueueKindTest.its_interrupt_reaches/{kind}",
                     f"matrix/EvictionTest.goes_on/{kind}_by_criu", f"matrix/EvictionTest.goes_on/{kind}_by_svm"):
            lines += case(name, " FAILED" if name == bad else "      OK")
    for name in ("kinds/QueueKindTest.runs_each_step", "kinds/QueueKindTest.its_interrupt_reaches"):
        lines += case(f"{name}/sdma_xgmi", " SKIPPED", "no XGMI")
    return lines + case("matrix/EvictionTest.goes_on/sdma_xgmi_by_criu", " SKIPPED", "no XGMI")


class MatrixTest(unittest.TestCase):
    def rows(self, lines: list[str]) -> list[str]:
        return matrix.table({"criu-gfx906": matrix.read(lines)})

    def test_a_machine_is_a_row_of_three_marks_a_kind(self) -> None:
        head, row, reason = self.rows(machine())
        self.assertEqual(head.split(), list(matrix.KINDS))
        self.assertEqual(row.split(), ["criu-gfx906", *["ok", "ok", "ok2"] * 3, "-a", "-a", "-a", "ok", "ok", "ok2"])
        self.assertEqual(reason, "a: no XGMI")

    def test_what_failed_or_did_not_end_or_did_not_run_is_seen(self) -> None:
        row = self.rows(machine("matrix/EvictionTest.goes_on/sdma_by_engine_by_svm"))[1]
        self.assertEqual(row.split()[-3:], ["ok", "ok", "FAIL"])
        lines = machine()
        row = self.rows(lines[:lines.index("[ RUN      ] kinds/QueueKindTest.runs_each_step/aql") + 1])[1]
        self.assertEqual(row.split()[1:7], ["ok", "ok", "ok2", "FAIL", "FAIL", "FAIL"])

    def test_some_ways_of_eviction_may_not_apply(self) -> None:
        lines = machine() + case("matrix/EvictionTest.goes_on/pm4_by_percentage_0", " SKIPPED", "gfx7")
        self.assertEqual(self.rows(lines)[1].split()[3], "ok2/a")

    def test_output_without_a_matrix_is_no_row(self) -> None:
        self.assertEqual(matrix.read(case("TopologyTest.every_gpu")), {})


if __name__ == "__main__":
    unittest.main()
