#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""Reports which tests of checkpoint and restore pass on the stock kernel and on ours, as text and as HTML.

usage: report.py [CHIP...]            run the tests (group "report" of tests/plan.toml) and write
                                      out/report/report.txt and report.html; of all chips, and
                                      with the table of scripts/field_table.py, without a CHIP
       report.py --write [CHIP...]    write them again from the results of the last run

Cells:
  pass         the test passed
  FAIL         the test failed, or the kernel printed a warning during it
  kernel died  the guest's kernel crashed during the test; the tests behind it ran in another machine
  n/a          not applicable: the chip does not have what the test is about
  not run      the machines ended before they ran the test
The status is 1, and the report says why, when
  - a cell of our kernel is neither "pass" nor "n/a", or a chip has no cell of our kernel;
  - the stock kernel did not show one of H1 to H8 on a chip that the defect applies to and that both
    kernels ran on; a race (RACES) has to show on one of the chips;
  - a report of all chips lacks one of H1 to H8;
  - our plugin lost a program of the table of scripts/field_table.py, or that table could not be made.
"""
from __future__ import annotations

import html
import json
import re
import subprocess
import sys
from datetime import datetime, timezone
from pathlib import Path
from typing import Iterable, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
import field_table  # noqa: E402  # pylint: disable=wrong-import-position
import page  # noqa: E402  # pylint: disable=wrong-import-position
from harness import paths, plan  # noqa: E402  # pylint: disable=wrong-import-position

STOCK, OURS = "stock", "criu"
KERNELS = (STOCK, OURS)
PASS, FAIL, DIED, NOT_APPLICABLE, NOT_RUN = "pass", "FAIL", "kernel died", "n/a", "not run"
UNKNOWN = "unknown"
RESTORE = re.compile(r"/Restore(?P<same>Slow)?Test\.\w+/(?P<workload>\w+)_(?P<abi>released|extensible)$")
DEFECT = re.compile(r"/DefectTest\.holds/(?P<name>\w+)$")
NUMBERED = re.compile(r"h\d_")
# Defects that the stock kernel shows only if a race is lost.
RACES = ("h8_",)
SCENARIOS = Path(__file__).resolve().parents[1] / "userspace/kfdtest-criu/tests/defect_scenarios.cc"
SCENARIO = re.compile(r'\{"(h\d_\w+)"')
CASE_ID = re.compile(r"^tests/plan\.toml::report-(?P<kernel>\w+)-(?P<chip>gfx\w+)::kfdtest::(?P<test>.+)$")
# The messages of harness/machines.py for a machine that ended during a case, and for one that could not continue.
ENDED, NEVER_RAN = re.compile(r"^the machine \S+ ended: ", re.M), re.compile(r"^the machine .*(has ended before|does not boot)", re.M)
TELLING = re.compile(r"BUG: |WARNING: |Oops|RIP: 0010:|Kernel panic|list_(add|del) corruption|refcount_t: ")
NOTES, TELLING_LINES = 6, 3

KINDS = {
    "bo_vram": "BO in VRAM",
    "bo_gtt": "BO in GTT",
    "bo_userptr": "BO of user pages (userptr)",
    "bo_pattern": "BOs of all kinds, SDMA packets pending",
    "queue_counter": "PM4 queue, packets pending",
    "queue_late": "PM4 queue made after the restore, doorbells mapped by its own id",
    "svm_queue": "PM4 queue with its save area in SVM, packets pending",
    "aql_barrier": "AQL queue, packets pending",
    "sdma_chain": "SDMA queue, packets pending",
    "event_state": "Events",
    "event_pending": "Events that pending PM4, AQL and SDMA packets signal",
    "svm_range": "SVM range",
}
DEFECTS = {
    "h1": "RESTORE of compute queues looks for their save area too early, or for another size",
    "h2": "RESTORE does not acquire the write pointer's BO, which a MES needs",
    "h3": "With several XCCs only the first one's MQD is saved",
    "h4": "Queues of gfx12 are not saved at all",
    "h5": "CHECKPOINT dereferences a NULL pointer when a GPU is not used",
    "h6": "RESUME accepts any process, and corrupts its count of evictions",
    "h7": "After a failed RESTORE the driver ignores MMU notifications for user pages",
    "h8": "CHECKPOINT walks SVM ranges without their lock",
    "hole": "",
}


class Result(NamedTuple):
    verdict: str
    notes: list[str]


class Runs(NamedTuple):
    """All runs of a kernel on a chip."""
    results: dict[str, Result]
    complete: bool
    text: list[str]  # as printed
    version: str


# ---- reading ------------------------------------------------------------------

def telling_lines(text: str) -> list[str]:
    """Returns the lines that say why the kernel died, without times and without repeated lines. Warnings may be
    of earlier tests in the same machine, so they count only if there is nothing else."""
    found = [re.sub(r"^\[[\s\d.]+\] ", "", line) for line in text.splitlines() if TELLING.search(line)]
    fatal = [line for line in found if not line.startswith("WARNING: ")]
    return list(dict.fromkeys(fatal or found))[:TELLING_LINES]


def read_row(row: dict) -> Result:
    """Returns the result of a line of results.jsonl."""
    text = row["text"]
    if row["outcome"] == "passed":
        return Result(PASS, [])
    if row["outcome"] == "skipped":
        return Result(NOT_APPLICABLE, shorten(text.splitlines()))
    if NEVER_RAN.search(text):
        return Result(NOT_RUN, shorten(text.splitlines()))
    if ENDED.search(text):
        return Result(DIED, telling_lines(text))
    return Result(FAIL, shorten(text.splitlines()))


def shorten(notes: list[str]) -> list[str]:
    """Returns the messages of a test without the lines that GoogleTest and tests/harness add."""
    frame = re.compile(r"^\s*$|^/|^[Ff]ailed$|^Value of: |^  Actual: false \(scenario failed|^Expected: |see its message above$|Failure$")
    return [text.strip() for text in notes if not frame.search(text)][:NOTES]


def read_results(rows: Iterable[dict], logs: Path) -> dict[tuple[str, str], Runs]:
    """Returns all results of a run of the group "report"; `logs` has the output of each machine's programs."""
    results: dict[tuple[str, str], dict[str, Result]] = {}
    for row in rows:
        if match := CASE_ID.match(row["id"]):
            results.setdefault((match["kernel"], match["chip"]), {})[match["test"]] = read_row(row)
    return {key: Runs(found, all(result.verdict != NOT_RUN for result in found.values()),
                      read_lines(logs / f"report-{key[0]}-{key[1]}.log"), version_of(key[0]))
            for key, found in results.items()}


def read_lines(path: Path) -> list[str]:
    return path.read_text(errors="replace").splitlines() if path.exists() else []


def version_of(kernel: str) -> str:
    """Returns the release of a kernel that was built on this machine."""
    file = paths.kernel(kernel) / "release"
    return file.read_text().strip() if file.exists() else UNKNOWN


# ---- tables -------------------------------------------------------------------

class Row(NamedTuple):
    kernel: str
    label: str
    test: str  # its name in kfdtest


class Group(NamedTuple):
    title: str
    note: str
    rows: list[Row]


class Table(NamedTuple):
    title: str
    groups: list[Group]


def rows_of(released: str, extensible: str = "") -> list[Row]:
    rows = [Row(STOCK, "stock", released), Row(OURS, "ours", released)]
    return rows + ([Row(OURS, "ours, extensible ABI", extensible)] if extensible else [])


def position(name: str, known: Iterable[str]) -> tuple[int, str]:
    order = list(known)
    return (order.index(name) if name in order else len(order), name)


def restore_table(tests: set[str], same: bool) -> Table:
    found: dict[str, dict[str, str]] = {}
    for test in tests:
        match = RESTORE.search(test)
        if match and bool(match["same"]) == same:
            found.setdefault(match["workload"], {})[match["abi"]] = test
    groups = [Group(KINDS.get(name, name), name, rows_of(by_abi.get("released", ""), by_abi.get("extensible", "")))
              for name, by_abi in sorted(found.items(), key=lambda item: position(item[0], KINDS))]
    where = "on the GPUs they had" if same else "on other GPUs, whose ids differ"
    return Table(f"Objects restored in a fresh process, {where}", groups)


def defect_table(tests: set[str]) -> Table:
    found = {match["name"]: test for test in tests if (match := DEFECT.search(test))}
    def key(name: str) -> tuple[tuple[int, str], str]:
        return position(name.split("_")[0], DEFECTS), name
    groups = []
    for name in sorted(found, key=key):
        number, _, words = name.partition("_")
        title = f"{number.upper() if number[1:].isdigit() else number}: {words.replace('_', ' ')}"
        groups.append(Group(title, DEFECTS.get(number, ""), rows_of(found[name])))
    return Table("Defects and missing checks of Linux 6.12's checkpoint/restore", groups)


def tables(all_runs: dict[tuple[str, str], Runs]) -> list[Table]:
    tests = {test for runs in all_runs.values() for test in runs.results}
    return [restore_table(tests, True), restore_table(tests, False), defect_table(tests)]


def cell(all_runs: dict[tuple[str, str], Runs], row: Row, chip: str) -> Result:
    runs = all_runs.get((row.kernel, chip))
    if not runs:
        return Result(NOT_RUN, ["there is no run"])
    if row.test in runs.results:
        return runs.results[row.test]
    return Result(NOT_APPLICABLE if runs.complete else NOT_RUN, [])


# ---- judgement ----------------------------------------------------------------

def is_green(all_tables: list[Table], all_runs: dict[tuple[str, str], Runs], chip: str) -> bool:
    """Returns whether all cells of our kernel on a chip are green; a chip without any test is not green."""
    verdicts = [cell(all_runs, row, chip).verdict for table in all_tables for group in table.groups
                for row in group.rows if row.kernel == OURS]
    return PASS in verdicts and all(verdict in (PASS, NOT_APPLICABLE) for verdict in verdicts)


def stock_verdicts(all_runs: dict[tuple[str, str], Runs], chips: list[str]) -> dict[str, dict[str, str]]:
    """Returns for each of H1 to H8 the stock kernel's verdict on each chip that the defect applies to and
    that both kernels ran on."""
    found: dict[str, dict[str, str]] = {}
    for chip in chips:
        stock, ours = all_runs.get((STOCK, chip)), all_runs.get((OURS, chip))
        if not stock or not ours:
            continue
        for test in sorted({*stock.results, *ours.results}):
            match = DEFECT.search(test)
            if not match or not NUMBERED.match(match["name"]):
                continue
            verdicts = {runs.results[test].verdict for runs in (stock, ours) if test in runs.results}
            if NOT_APPLICABLE not in verdicts:
                result = stock.results.get(test)
                found.setdefault(match["name"], {})[chip] = result.verdict if result else NOT_RUN
    return found


def not_red(all_runs: dict[tuple[str, str], Runs], chips: list[str]) -> list[str]:
    """Returns messages for those of H1 to H8 that the stock kernel did not show."""
    found = []
    for name, verdicts in stock_verdicts(all_runs, chips).items():
        pale = [chip for chip, verdict in verdicts.items() if verdict not in (FAIL, DIED)]
        if pale and not (name.startswith(RACES) and len(pale) < len(verdicts)):
            found.append(f"the stock kernel does not show {name} ({', '.join(pale)})")
    return found


def known_defects() -> list[str]:
    return SCENARIO.findall(SCENARIOS.read_text())


def missing(all_runs: dict[tuple[str, str], Runs], known: list[str]) -> list[str]:
    asked = {match["name"] for runs in all_runs.values() for test in runs.results if (match := DEFECT.search(test))}
    if not known:
        return [f"{SCENARIOS.name} has no defects"]
    return [f"no run has {name}" for name in known if name not in asked]


def complaints(all_tables: list[Table], all_runs: dict[tuple[str, str], Runs], chips: list[str],
               known: list[str] | None) -> list[str]:
    """Returns the reasons for status 1; `known` lists the defects that must be in the report."""
    pale = [chip for chip in chips if not is_green(all_tables, all_runs, chip)]
    return ([f"ours is not green ({', '.join(pale)})"] if pale else []) + not_red(all_runs, chips) + (
        [] if known is None else missing(all_runs, known))


def command(row: Row, chip: str) -> str:
    return f"scripts/test.py --groups report 'tests/plan.toml::report-{row.kernel}-{chip}::kfdtest::{row.test}'"


class Failure(NamedTuple):
    row: Row
    chip: str
    result: Result


def failures(all_tables: list[Table], all_runs: dict[tuple[str, str], Runs], chips: list[str]) -> list[Failure]:
    found = [Failure(row, chip, cell(all_runs, row, chip)) for table in all_tables for group in table.groups
             for row in group.rows for chip in chips]
    return [each for each in found if each.result.verdict in (FAIL, DIED, NOT_RUN)]


def unshown(all_runs: dict[tuple[str, str], Runs], chips: list[str]) -> str:
    """Returns a line with the defects whose tests the stock kernel passed; a race may need another run."""
    found = [f"{match['name']} ({chip})" for chip in chips if (runs := all_runs.get((STOCK, chip)))
             for test, result in sorted(runs.results.items())
             if result.verdict == PASS and (match := DEFECT.search(test))]
    return "Defects and missing checks that the stock kernel did not show: " + (", ".join(found) or "none") + "."


# ---- text ---------------------------------------------------------------------

def text_table(table: Table, all_runs: dict[tuple[str, str], Runs], chips: list[str]) -> list[str]:
    lines = [table.title, "=" * len(table.title), ""]
    width = max([len(row.label) for group in table.groups for row in group.rows] + [0]) + 4
    columns = [max(len(chip), len(DIED)) for chip in chips]
    lines.append(" " * width + "  ".join(chip.ljust(size) for chip, size in zip(chips, columns)).rstrip())
    for group in table.groups:
        lines += ["", group.title + (f" ({group.note})" if group.note else "")]
        for row in group.rows:
            verdicts = [cell(all_runs, row, chip).verdict.ljust(size) for chip, size in zip(chips, columns)]
            lines.append(("  " + row.label).ljust(width) + "  ".join(verdicts).rstrip())
    return lines + [""]


def head_lines(all_runs: dict[tuple[str, str], Runs], chips: list[str], now: str, wrong: list[str]) -> list[str]:
    versions = {kernel: sorted({runs.version for (name, _), runs in all_runs.items() if name == kernel} - {UNKNOWN})
                for kernel in KERNELS}
    return [f"Written {now}. Chips: {', '.join(chips)}.",
            f"Kernels: stock is Linux {', '.join(versions[STOCK]) or UNKNOWN} with the virtual GPU; ours is "
            f"Linux {', '.join(versions[OURS]) or UNKNOWN} with the virtual GPU and the series fixes and amdkfd-criu.",
            "On stock and ours the same program uses the ABI that Linux 5.18 released; only ours has the extensible "
            "ABI.",
            f'"{PASS}" passed; "{FAIL}" failed, or the kernel printed a warning; "{DIED}": the guest\'s kernel '
            f'crashed; "{NOT_APPLICABLE}" not applicable: the chip does not have what the test is about.',
            unshown(all_runs, chips),
            f"Status 1: {'; '.join(wrong)}." if wrong else "Status 0."]


def write_text(path: Path, all_tables: list[Table], all_runs: dict[tuple[str, str], Runs], chips: list[str],
               now: str, wrong: list[str]) -> None:
    lines = ["Checkpoint and restore: the stock kernel and ours", "", *head_lines(all_runs, chips, now, wrong), ""]
    for table in all_tables:
        lines += text_table(table, all_runs, chips)
    lines += [*field_table.lines_of(path.parent), ""]
    lines += ["What is not green", "=================", ""]
    for each in failures(all_tables, all_runs, chips):
        lines.append(f"{each.row.kernel} {each.chip} {each.row.test}: {each.result.verdict}")
        lines += [f"    {note}" for note in each.result.notes]
    lines += ["", "One cell again, for example:", "  " + command(Row(STOCK, "", "TEST"), "CHIP")]
    path.write_text("\n".join(lines) + "\n")


# ---- page ---------------------------------------------------------------------

CLASSES = {PASS: "pass", NOT_APPLICABLE: "none"}
ABBREVIATED = {NOT_APPLICABLE: '<abbr title="not applicable">n/a</abbr>'}


def log_id(kernel: str, chip: str) -> str:
    return f"log-{kernel}-{chip}"


def failure_id(row: Row, chip: str) -> str:
    return f"why-{row.kernel}-{chip}-" + re.sub(r"[^\w-]", "-", row.test)


def page_cell(result: Result, row: Row, chip: str) -> str:
    shown = ABBREVIATED.get(result.verdict, html.escape(result.verdict))
    if result.verdict == PASS:
        shown = f'<a href="#{log_id(row.kernel, chip)}">{shown}</a>'
    elif result.verdict != NOT_APPLICABLE:
        shown = f'<a href="#{failure_id(row, chip)}">{shown}</a>'
    return f'<td class="{CLASSES.get(result.verdict, "bad")}">{shown}</td>'


def page_table(table: Table, all_runs: dict[tuple[str, str], Runs], chips: list[str]) -> list[str]:
    lines = ['<div class="wide"><table>', f"<caption>{html.escape(table.title)}</caption>",
             '<thead><tr><th scope="col">what</th><th scope="col">kernel</th>'
             + "".join(f'<th scope="col">{html.escape(chip)}</th>' for chip in chips) + "</tr></thead>"]
    for group in table.groups:
        lines.append("<tbody>")
        for number, row in enumerate(group.rows):
            head = (f'<th scope="rowgroup" rowspan="{len(group.rows)}">{html.escape(group.title)}'
                    + (f"<small>{html.escape(group.note)}</small>" if group.note else "") + "</th>" if number == 0 else "")
            cells = "".join(page_cell(cell(all_runs, row, chip), row, chip) for chip in chips)
            lines.append(f'<tr>{head}<th scope="row">{html.escape(row.label)}</th>{cells}</tr>')
        lines.append("</tbody>")
    return lines + ["</table></div>"]


# The target of a link is inside the details element, because only then a browser opens it.
def page_failure(each: Failure) -> str:
    notes = html.escape("\n".join(each.result.notes) or "(the test printed no message)")
    return (f"<details><summary>{html.escape(each.row.kernel)} {html.escape(each.chip)} "
            f"<code>{html.escape(each.row.test)}</code>: <b>{html.escape(each.result.verdict)}</b></summary>"
            f'<pre id="{failure_id(each.row, each.chip)}">{notes}</pre>'
            f'<p><a href="#{log_id(each.row.kernel, each.chip)}">log</a>; again:</p>'
            f"<pre>{html.escape(command(each.row, each.chip))}</pre></details>")


def page_log(kernel: str, chip: str, runs: Runs) -> str:
    return (f"<details><summary>{html.escape(kernel)} {html.escape(chip)}, Linux {html.escape(runs.version)}</summary>"
            f'<pre id="{log_id(kernel, chip)}">{html.escape(chr(10).join(runs.text))}</pre></details>')


def write_page(path: Path, all_tables: list[Table], all_runs: dict[tuple[str, str], Runs], chips: list[str],
               now: str, wrong: list[str]) -> None:
    title = "Checkpoint and restore: the stock kernel and ours"
    lines = [f"<p>{html.escape(text)}</p>" for text in head_lines(all_runs, chips, now, wrong)]
    for table in all_tables:
        lines += page_table(table, all_runs, chips)
    if field := field_table.lines_of(path.parent):
        lines.append(f"<pre>{html.escape(chr(10).join(field))}</pre>")
    lines += ["<h2>What is not green</h2>", *map(page_failure, failures(all_tables, all_runs, chips))]
    lines += ["<h2>One cell again</h2><p>All of it: <code>make report</code>, some chips: "
              "<code>scripts/report.py CHIP...</code>. One test, its name being in the log:</p>",
              f"<pre>{html.escape(command(Row('KERNEL', '', 'TEST'), 'CHIP'))}</pre>", "<h2>Logs</h2>"]
    lines += [page_log(kernel, chip, runs) for (kernel, chip), runs in sorted(all_runs.items()) if chip in chips]
    page.write(path, title, lines)


def write(folder: Path, results: Path, logs: Path, chips: list[str], known: list[str] | None,  # pylint: disable=too-many-arguments
          others: list[str] | None = None) -> int:
    """Writes the report of these results; returns the status, 1 if there is a reason for it. `others` are reasons that
    are not of these results."""
    all_runs = read_results(map(json.loads, read_lines(results)), logs)
    all_tables = tables(all_runs)
    wrong = complaints(all_tables, all_runs, chips, known) + (others or [])
    now = datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
    folder.mkdir(parents=True, exist_ok=True)
    write_text(folder / "report.txt", all_tables, all_runs, chips, now, wrong)
    write_page(folder / "report.html", all_tables, all_runs, chips, now, wrong)
    return 1 if wrong else 0


def run(chips: list[str]) -> int:
    """Runs the tests; a failed test is a result, not an error of the report. Returns the status of tests that
    could not be run, or 0."""
    ids = [f"tests/plan.toml::report-{kernel}-{chip}" for kernel in KERNELS for chip in chips]
    status = subprocess.run([paths.SCRIPTS / "test.py", "--groups", "report", *ids], check=False).returncode
    return 0 if status in (0, 1) else status


def main(arguments: list[str]) -> int:
    if arguments in (["-h"], ["--help"]):
        print(__doc__.strip())
        return 0
    only_write = arguments[:1] == ["--write"]
    asked = arguments[1:] if only_write else arguments
    subprocess.run([paths.SCRIPTS / "build.sh", "release", "vasicd"], check=True, stdout=subprocess.DEVNULL)
    known_chips = list(plan.chips())
    for chip in asked:
        if chip not in known_chips:
            print(f"report.py: error: no chip '{chip}'; there are {' '.join(known_chips)}", file=sys.stderr)
            return 64
    folder, chips = paths.OUT / "report", asked or known_chips
    if not only_write:
        # Before the other tests, whose logs a later run would remove. Without it the report is not whole, status 1.
        if not asked and field_table.run_both(folder):
            print("report.py: error: the tests of scripts/field_table.py could not be run", file=sys.stderr)
        if status := run(chips):
            print("report.py: error: the tests could not be run", file=sys.stderr)
            return status
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "results.jsonl").write_text((paths.TEST / "results.jsonl").read_text())
    status = write(folder, folder / "results.jsonl", paths.TEST / "logs", chips, None if asked else known_defects(),
                   field_table.wrong(folder, whole=not asked))
    print((folder / "report.txt").read_text(), end="")
    print(f"report.py: {folder / 'report.html'}", file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
