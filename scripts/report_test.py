#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""Tests of report.py."""
from __future__ import annotations

import json
import sys
import tempfile
import unittest
import unittest.mock
from html.parser import HTMLParser
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.dont_write_bytecode = True
import report  # noqa: E402

RESTORE = "all/RestoreTest.goes_on_in_a_fresh_process/"
SAME = "all/RestoreSlowTest.goes_on_with_its_own_gpus/"
DEFECT = "all/DefectTest.holds/"
H5 = DEFECT + "h5_a_gpu_that_is_not_used_does_no_harm"
H6 = DEFECT + "h6_a_stranger_resumes_nobody"
H8 = DEFECT + "h8_a_checkpoint_beside_changing_svm_ranges_is_whole_or_refused"
HOLE = DEFECT + "hole_of_some_kind"
DIED = ("the program ended during this case\nthe machine test-report-stock-gfx906 ended: the guest died\n"
        "[    9.0] BUG: kernel NULL pointer dereference\n[    9.1] RIP: 0010:amdgpu_amdkfd_bo_mapped_to_dev\n"
        "[    9.2] Kernel panic - not syncing: Fatal exception")
NEVER = "the machine has ended before (see its first failed case)"


def case(name: str, outcome: str = "passed", text: str = "") -> dict:
    return {"id": name, "outcome": outcome, "seconds": 0.1, "text": text}


def failed(name: str, text: str = "it resumed") -> dict:
    return case(name, "failed", text)


class Page(HTMLParser):
    """What must not be in a page that stands alone; and its cells."""

    def __init__(self) -> None:
        super().__init__()
        self.outside: list[str] = []
        self.targets: set[str] = set()
        self.links: set[str] = set()
        self.cells: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs) -> None:
        values = dict(attrs)
        if tag in ("script", "link", "img", "iframe") or "src" in values:
            self.outside.append(tag)
        if "id" in values:
            self.targets.add(values["id"])
        if tag == "a":
            self.links.add(values["href"].removeprefix("#"))
        if tag == "td":
            self.cells.append("")
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if self.open.pop() != tag:
            self.outside.append(f"unbalanced {tag}")

    def handle_data(self, data: str) -> None:
        if "td" in self.open:
            self.cells[-1] += data


class ReadTest(unittest.TestCase):
    def test_a_test_passes_fails_or_does_not_apply(self) -> None:
        rows = [case(H5), failed(H6, "a stranger resumed a program"), case(H8, "skipped", "no SVM")]
        self.assertEqual([report.read_row(row).verdict for row in rows], [report.PASS, report.FAIL, report.NOT_APPLICABLE])
        self.assertEqual(report.read_row(rows[1]).notes, ["a stranger resumed a program"])

    def test_the_test_during_which_the_kernel_died_has_the_telling_lines(self) -> None:
        result = report.read_row(failed(H5, DIED))
        self.assertEqual(result.verdict, report.DIED)
        self.assertEqual(result.notes, ["BUG: kernel NULL pointer dereference", "RIP: 0010:amdgpu_amdkfd_bo_mapped_to_dev",
                                        "Kernel panic - not syncing: Fatal exception"])

    def test_a_warning_of_an_earlier_test_is_not_why_the_kernel_died(self) -> None:
        result = report.read_row(failed(H5, DIED.replace("died\n", "died\n[    1.0] WARNING: CPU: 0 at ttm_bo.c:252\n", 1)))
        self.assertEqual(result.notes[0], "BUG: kernel NULL pointer dereference")

    def test_a_test_that_no_machine_reached_did_not_run(self) -> None:
        self.assertEqual(report.read_row(failed(H5, NEVER)).verdict, report.NOT_RUN)
        self.assertEqual(report.read_row(failed(H5, "the machine x does not boot: no kernel")).verdict, report.NOT_RUN)

    def test_a_frame_of_googletest_is_not_what_a_test_says(self) -> None:
        notes = ["scenario x: no memory", "failed", "/src/defect_test.cc:15: Failure", "Value of: base::is_ok(x)",
                 "  Actual: false (scenario failed)", "Expected: true", "scenario x: see its message above"]
        self.assertEqual(report.read_row(failed(H6, "\n".join(notes))).notes, notes[:1])
        late = "  Actual: false (scenario did not end)"
        self.assertEqual(report.read_row(failed(H6, late)).notes, [late.strip()])


class RunTest(unittest.TestCase):
    def test_only_tests_that_ran_are_reported(self) -> None:
        for status, expected in ((0, 0), (1, 0), (64, 64), (125, 125)):
            with unittest.mock.patch("report.subprocess.run") as started:
                started.return_value.returncode = status
                self.assertEqual(report.run(["gfx906"]), expected)


class WriteTest(unittest.TestCase):
    def write(self, stock: list[dict], ours: list[dict], every: bool = False) -> int:
        rows = [{**row, "id": f"tests/plan.toml::report-{kernel}-gfx906::kfdtest::{row['id']}"}
                for kernel, group in ((report.STOCK, stock), (report.OURS, ours)) for row in group]
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "results.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
            for kernel in report.KERNELS:
                (folder / f"report-{kernel}-gfx906.log").write_text("what it printed\n")
            status = report.write(folder, folder / "results.jsonl", folder, ["gfx906"],
                                  report.known_defects() if every else None)
            self.text = (folder / "report.txt").read_text()
            self.page = (folder / "report.html").read_text()
        return status

    OURS = [case(RESTORE + "bo_gtt_released"), case(RESTORE + "bo_gtt_extensible"), case(SAME + "bo_gtt_released"),
            case(H6), case(H5)]

    def row(self, title: str, label: str) -> str:
        lines = self.text.splitlines()
        begin = next(i for i, text in enumerate(lines) if text.startswith(title))
        return next(text for text in lines[begin:] if text.startswith(f"  {label} ")).removeprefix(f"  {label}").strip()

    def test_ours_is_green_and_stock_need_not_be(self) -> None:
        self.assertEqual(self.write([case(SAME + "bo_gtt_released"), failed(H5, DIED), failed(H6)], self.OURS), 0)
        self.assertEqual(self.row("H5: a gpu that is not used", "stock"), report.DIED)
        self.assertEqual(self.row("H6: a stranger", "stock"), report.FAIL)
        self.assertEqual(self.row("H6: a stranger", "ours"), report.PASS)
        self.assertIn("NULL pointer", self.text)
        self.assertIn("did not show: none.", self.text)
        self.assertIn("scripts/test.py --groups report", self.text)

    def test_a_defect_that_the_stock_kernel_does_not_show_is_status_1(self) -> None:
        red = failed(H6)
        self.assertEqual(self.write([case(H5), red], self.OURS), 1)
        self.assertIn("Status 1: the stock kernel does not show h5_a_gpu_that_is_not_used_does_no_harm (gfx906).", self.text)
        self.assertIn("Status 1: the stock kernel", self.page)
        self.assertEqual(self.write([red], self.OURS), 1, "it was not asked")
        self.assertEqual(self.write([failed(H5, NEVER), red], self.OURS), 1, "it was not reached")
        self.assertEqual(self.write([failed(H5), red], self.OURS), 0)
        self.assertIn("Status 0.", self.text)

    def test_a_defect_that_does_not_apply_and_a_hole_need_not_show(self) -> None:
        self.assertEqual(self.write([case(H5, "skipped"), failed(H6), case(HOLE)],
                                    [case(H5, "skipped"), case(H6), case(HOLE)]), 0)

    def test_only_a_chip_that_both_kernels_were_asked_on_has_to_show_defects(self) -> None:
        self.assertEqual(self.write([], self.OURS), 0)

    def test_a_race_has_to_show_on_one_chip(self) -> None:
        def runs(*verdicts: str) -> dict[tuple[str, str], report.Runs]:
            return {(kernel, f"gfx90{number}"):
                    report.Runs({H8: report.Result(verdict if kernel == report.STOCK else report.PASS, [])}, True, [], "")
                    for number, verdict in enumerate(verdicts) for kernel in (report.STOCK, report.OURS)}
        self.assertEqual(report.not_red(runs(report.PASS, report.FAIL), ["gfx900", "gfx901"]), [])
        self.assertEqual(report.not_red(runs(report.PASS, report.DIED), ["gfx900", "gfx901"]), [])
        self.assertEqual(len(report.not_red(runs(report.PASS, report.PASS), ["gfx900", "gfx901"])), 1)

    def test_a_report_of_all_chips_has_every_defect_of_the_sources(self) -> None:
        red = [failed(H6), failed(H5)]
        self.assertEqual(self.write(red, self.OURS), 0)
        self.assertEqual(self.write(red, self.OURS, every=True), 1)
        self.assertIn("no run has h3_an_image_has_every_xcc_of_a_queue", self.text)
        self.assertNotIn("no run has h5", self.text)
        known = report.known_defects()
        self.assertEqual({name[:2] for name in known}, {f"h{number}" for number in range(1, 9)})
        self.assertEqual(self.write([failed(DEFECT + name) for name in known], [case(DEFECT + name) for name in known],
                                    every=True), 0)

    def test_the_extensible_abi_is_a_row_of_ours(self) -> None:
        self.write([case(HOLE)], self.OURS)
        other = self.text[self.text.index("on other GPUs"):]
        self.assertIn("ours, extensible ABI", other)

    def test_what_is_not_asked_of_a_chip_is_not_applicable_and_what_was_not_reached_is_told(self) -> None:
        self.write([case(H5)], self.OURS)
        self.assertEqual(self.row("H6: a stranger", "stock"), report.NOT_APPLICABLE)
        self.assertIn("did not show: h5_a_gpu_that_is_not_used_does_no_harm (gfx906).", self.text)
        self.write([case(H5), failed(H6, NEVER)], self.OURS)
        self.assertEqual(self.row("H6: a stranger", "stock"), report.NOT_RUN)

    def test_ours_is_not_green_when_it_failed_died_or_did_not_run(self) -> None:
        self.assertEqual(self.write([case(HOLE)], [case(H5), failed(H6)]), 1)
        self.assertEqual(self.write([case(HOLE)], [case(H6), failed(H5, DIED)]), 1)
        self.assertEqual(self.write([case(H5)], [case(H6), failed(H5, NEVER)]), 1)
        self.assertEqual(self.write([case(H5)], []), 1)

    def test_the_page_stands_alone_and_says_in_words_what_its_colours_say(self) -> None:
        self.write([failed(H5, DIED), failed(H6, "<b>&")], self.OURS)
        page = Page()
        page.feed(self.page)
        self.assertEqual(page.outside, [])
        self.assertEqual(page.open, [])
        self.assertLessEqual(page.links, page.targets)
        self.assertEqual(set(page.cells), {"pass", "FAIL", "kernel died", "n/a"})
        self.assertIn("&lt;b&gt;&amp;", self.page)
        self.assertIn("prefers-color-scheme: dark", self.page)


if __name__ == "__main__":
    unittest.main()
