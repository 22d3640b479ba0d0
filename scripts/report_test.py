#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""Tests of report.py."""
from __future__ import annotations

import contextlib
import io
import sys
import tempfile
import unittest
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
END = "[==========] 3 tests from 2 test suites ran. (9 ms total)"
DIED = "vm.sh: error: the guest died without reporting a status (logs: somewhere)"
LOG = ["[    0.000000] Linux version 6.12.117 (somebody)", "[    9.0] BUG: kernel NULL pointer dereference",
       "[    9.1] RIP: 0010:amdgpu_amdkfd_bo_mapped_to_dev", "[    9.2] Kernel panic - not syncing: Fatal exception"]


def case(name: str, verdict: str = "      OK", *notes: str) -> list[str]:
    return [f"[ RUN      ] {name}", *notes, f"[ {verdict:<8} ] {name} (1 ms)"]


def begins(name: str) -> list[str]:
    return [f"[ RUN      ] {name}"]


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
    def test_a_run_has_passed_failed_and_skipped_tests(self) -> None:
        results = report.read_run([*case(H5), *case(H6, " FAILED", "a stranger resumed a program"),
                                   *case(SAME + "svm_range_released", " SKIPPED", "no SVM"), END], [])
        self.assertEqual([result.verdict for result in results.values()],
                         [report.PASS, report.FAIL, report.NOT_APPLICABLE])
        self.assertEqual(results[H6].notes, ["a stranger resumed a program"])

    def test_the_test_during_which_the_kernel_died_has_the_telling_line(self) -> None:
        results = report.read_run([*case(H6), *begins(H5), DIED], LOG)
        self.assertEqual(results[H6].verdict, report.PASS)
        self.assertEqual(results[H5].verdict, report.DIED)
        self.assertEqual(results[H5].notes, ["BUG: kernel NULL pointer dereference",
                                             "RIP: 0010:amdgpu_amdkfd_bo_mapped_to_dev",
                                             "Kernel panic - not syncing: Fatal exception"])

    def test_a_test_that_did_not_end_on_a_kernel_that_lives_has_failed(self) -> None:
        result = report.read_run([*begins(H5), "vm.sh: error: no end after 900 s"], LOG)[H5]
        self.assertEqual(result.verdict, report.FAIL)
        self.assertIn("did not end", result.notes)

    def test_a_frame_of_googletest_is_not_what_a_test_says(self) -> None:
        notes = ["scenario x: no memory", "/src/defect_test.cc:15: Failure", "Value of: base::is_ok(x)",
                 "  Actual: false (scenario failed)", "Expected: true", "scenario x: see its message above"]
        self.assertEqual(report.read_run(case(H6, " FAILED", *notes), [])[H6].notes, notes[:1])
        late = "  Actual: false (scenario did not end)"
        self.assertEqual(report.read_run(case(H6, " FAILED", late), [])[H6].notes, [late.strip()])


class NextTest(unittest.TestCase):
    def test_the_first_machine_runs_all_and_the_stock_kernel_only_the_released_abi(self) -> None:
        self.assertEqual(report.next_filter(report.OURS, []), "*/Restore*Test.*:*/DefectTest.*")
        self.assertIn("_released", report.next_filter(report.STOCK, []))

    def test_the_next_machine_runs_what_is_behind_the_death(self) -> None:
        first = [*case(H6), *begins(H5), DIED]
        self.assertEqual(report.next_filter(report.OURS, [first]).partition("-")[2], f"{H6}:{H5}")
        second = [*case(RESTORE + "bo_gtt_released"), END]
        self.assertEqual(report.next_filter(report.OURS, [first, second]), "")

    def test_a_machine_that_runs_no_test_is_the_last_one(self) -> None:
        self.assertEqual(report.next_filter(report.OURS, [["vm.sh: error: no kernel"]]), "")


class WriteTest(unittest.TestCase):
    def write(self, stock: list[list[str]], ours: list[list[str]], *options: str) -> int:
        with tempfile.TemporaryDirectory() as folder:
            runs = Path(folder, "runs")
            runs.mkdir()
            for kernel, machines in ((report.STOCK, stock), (report.OURS, ours)):
                for number, lines in enumerate(machines):
                    Path(runs, f"{kernel}-gfx906.{number}.out").write_text("\n".join(lines) + "\n")
                    Path(runs, f"{kernel}-gfx906.{number}.log").write_text("\n".join(LOG) + "\n")
            with contextlib.redirect_stdout(io.StringIO()):
                status = report.main(["write", *options, folder, "gfx906"])
            self.text = Path(folder, "report.txt").read_text()
            self.page = Path(folder, "report.html").read_text()
        return status

    OURS = [*case(RESTORE + "bo_gtt_released"), *case(RESTORE + "bo_gtt_extensible"),
            *case(SAME + "bo_gtt_released"), *case(H6), *case(H5), END]

    def row(self, title: str, label: str) -> str:
        lines = self.text.splitlines()
        begin = next(i for i, text in enumerate(lines) if text.startswith(title))
        return next(text for text in lines[begin:] if text.startswith(f"  {label} ")).removeprefix(f"  {label}").strip()

    def test_ours_is_green_and_stock_need_not_be(self) -> None:
        status = self.write([[*case(SAME + "bo_gtt_released"), *begins(H5), DIED],
                             [*case(H6, " FAILED", "it resumed"), END]], [self.OURS])
        self.assertEqual(status, 0)
        self.assertEqual(self.row("H5: a gpu that is not used", "stock"), report.DIED)
        self.assertEqual(self.row("H6: a stranger", "stock"), report.FAIL)
        self.assertEqual(self.row("H6: a stranger", "ours"), report.PASS)
        self.assertIn("NULL pointer", self.text)
        self.assertIn("did not show: none.", self.text)
        self.assertIn("6.12.117", self.text)

    def test_a_defect_that_the_stock_kernel_does_not_show_is_status_1(self) -> None:
        red = [*case(H6, " FAILED"), END]
        self.assertEqual(self.write([[*case(H5), *red]], [self.OURS]), 1)
        self.assertIn("Status 1: the stock kernel does not show h5_a_gpu_that_is_not_used_does_no_harm (gfx906).", self.text)
        self.assertIn("Status 1: the stock kernel", self.page)
        self.assertEqual(self.write([red], [self.OURS]), 1, "it was not asked")
        self.assertEqual(self.write([case(H6, " FAILED")], [self.OURS]), 1, "it was not reached")
        self.assertEqual(self.write([[*case(H5, " FAILED"), *red]], [self.OURS]), 0)
        self.assertIn("Status 0.", self.text)

    def test_a_defect_that_does_not_apply_and_a_hole_need_not_show(self) -> None:
        stock = [*case(H5, " SKIPPED"), *case(H6, " FAILED"), *case(HOLE), END]
        ours = [*case(H5, " SKIPPED"), *case(H6), *case(HOLE), END]
        self.assertEqual(self.write([stock], [ours]), 0)

    def test_only_a_chip_that_both_kernels_were_asked_on_has_to_show_defects(self) -> None:
        self.assertEqual(self.write([], [self.OURS]), 0)

    def test_a_race_has_to_show_on_one_chip(self) -> None:
        def runs(*verdicts: str) -> dict[tuple[str, str], report.Runs]:
            return {(kernel, f"gfx90{number}"):
                    report.Runs({H8: report.Result(verdict if kernel == report.STOCK else report.PASS, [])}, True, [], "")
                    for number, verdict in enumerate(verdicts) for kernel in (report.STOCK, report.OURS)}
        self.assertEqual(report.not_red(runs(report.PASS, report.FAIL), ["gfx900", "gfx901"]), [])
        self.assertEqual(report.not_red(runs(report.PASS, report.DIED), ["gfx900", "gfx901"]), [])
        self.assertEqual(len(report.not_red(runs(report.PASS, report.PASS), ["gfx900", "gfx901"])), 1)

    def test_a_report_of_all_chips_has_every_defect_of_the_sources(self) -> None:
        red = [*case(H6, " FAILED"), *case(H5, " FAILED"), END]
        self.assertEqual(self.write([red], [self.OURS]), 0)
        self.assertEqual(self.write([red], [self.OURS], "--all"), 1)
        self.assertIn("no run has h3_an_image_has_every_xcc_of_a_queue", self.text)
        self.assertNotIn("no run has h5", self.text)
        known = report.known_defects()
        self.assertEqual({name[:2] for name in known}, {f"h{number}" for number in range(1, 9)})
        every = [line for name in known for line in case(DEFECT + name)]
        all_red = [line for name in known for line in case(DEFECT + name, " FAILED")]
        self.assertEqual(self.write([[*all_red, END]], [[*every, END]], "--all"), 0)

    def test_the_extensible_abi_is_a_row_of_ours(self) -> None:
        self.write([[END]], [self.OURS])
        other = self.text[self.text.index("on other GPUs"):]
        self.assertIn("ours, extensible ABI", other)

    def test_what_is_not_asked_of_a_chip_is_not_applicable_and_what_was_not_reached_is_told(self) -> None:
        self.write([[*case(H5), END]], [self.OURS])
        self.assertEqual(self.row("H6: a stranger", "stock"), report.NOT_APPLICABLE)
        self.assertIn("did not show: h5_a_gpu_that_is_not_used_does_no_harm (gfx906).", self.text)
        self.write([case(H5)], [self.OURS])
        self.assertEqual(self.row("H6: a stranger", "stock"), report.NOT_RUN)

    def test_ours_is_not_green_when_it_failed_died_or_did_not_run(self) -> None:
        self.assertEqual(self.write([[END]], [[*case(H5), *case(H6, " FAILED"), END]]), 1)
        self.assertEqual(self.write([[END]], [[*case(H6), *begins(H5), DIED], [END]]), 1)
        self.assertEqual(self.write([[*case(H5), END]], [[*case(H6)]]), 1)
        self.assertEqual(self.write([[*case(H5), END]], []), 1)

    def test_the_page_stands_alone_and_says_in_words_what_its_colours_say(self) -> None:
        self.write([[*begins(H5), DIED], [*case(H6, " FAILED", "<b>&"), END]], [self.OURS])
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
