#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""Compares what becomes of programs that users reported trouble with: tests/test_field.py with our plugin on our
kernel, and with CRIU's own plugin on the stock kernel.

usage: field_table.py [RELEASE]            build CRIU and its plugin as in this release of Debian (trixie unless said),
                                           run the tests with both and write out/report/field.txt
       field_table.py --missing [RELEASE]  the same, but run only tests without a result, such as those that an
                                           interrupted run did not come to
       field_table.py --write              write it again from the results of the last run
       field_table.py --document           write these results into docs/what-comes-back.md, unless one is missing

Cells:
  equal    the program came back, and its result is that of an undisturbed run
  refused  the dump failed, and the program runs on
  wrong    anything else, such as one open file too many, or files that a failed dump left; the line below says what
  lost     the program is gone; the line below says why
  unclear  the test failed before it knew what becomes of the program
  not run  there is no result
The status is 1 if a cell of ours is not what the case wants, or a test has no row here.
"""
from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple, Sequence

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from harness import paths  # noqa: E402  # pylint: disable=wrong-import-position
from harness.field import EQUAL, LOST, REFUSED, WRONG  # noqa: E402  # pylint: disable=wrong-import-position

# Builds CRIU and its own plugin for a release of Debian, in out/upstream/RELEASE.
UPSTREAM_BUILD = "upstream_plugin.py"
TESTS, DEFAULT_RELEASE = "tests/test_field.py", "trixie"
OURS, THEIRS = "ours", "theirs"
NOT_RUN, UNCLEAR, RESULTS, TEXT = "not run", "unclear", "field-{}.jsonl", "field.txt"
# The document with the table, and what the table stands between there.
DOCUMENT, BEGIN, END = "docs/what-comes-back.md", "<!-- measured -->\n", "<!-- /measured -->\n"
WIDTH = 110
# Words by which a failed test says what became of the program: harness/field.py, must_be().
BECAME = re.compile(rf"^wanted: \w+; ({EQUAL}|{REFUSED}|{LOST}|{WRONG}): ?(.*)", re.M | re.S)
# Words of other failures, and what they mean: a refusal in other words than ours, a program that a dump has ended and that
# does not come back.
MEANINGS = ((re.compile(r"^the refusal does not say ", re.M), REFUSED),
            (re.compile(r"^(the restore failed|\S+ (\d+ )?was not restored)$", re.M), LOST),
            (re.compile(r"\b(the program is gone|the program has ended|status \d+, gone)\b"), LOST))
# A test that has not begun, because the machine had ended.
NOT_BEGUN = "needs: the machine "


class Row(NamedTuple):
    """A case: what it is, who reported it, and the outcome that is right."""
    title: str
    reports: str
    test: str  # without "test_"
    wanted: str


ROWS = (
    Row("a second open /dev/kfd", "rocm-systems#1705", "case[a_second_kfd_file]", EQUAL),
    Row("the same, dumped with --leave-running", "rocm-systems#1705",
        "a_program_with_two_kfd_files_is_left_running_without_an_error", EQUAL),
    Row("children with inherited files", "cuda-checkpoint#28", "case[children]", EQUAL),
    Row("children whose pids are lower", "cuda-checkpoint#28", "case[children_with_lower_pids]", EQUAL),
    Row("the same of a HIP program", "uccl#895", "case[children_of_a_hip_program]", EQUAL),
    Row("1,000 mapped buffers", "", "case[a_thousand_mappings]", EQUAL),
    Row("a GEM object that is mapped", "criu#2664 #3016", "case[a_mapped_gem_object]", EQUAL),
    Row("a GEM handle", "criu#3027", "case[a_gem_handle]", EQUAL),
    Row("a GEM handle above 4096", "", "case[a_high_gem_handle]", EQUAL),
    Row("a GEM object that the GPU maps", "criu#2581", "case[a_gem_object_at_an_address]", EQUAL),
    Row("a GEM handle beside KFD", "criu#2664", "case[a_gem_object_beside_kfd]", EQUAL),
    Row("a GEM object of a HIP program", "vllm#12695", "case[a_gem_object_of_a_hip_program]", EQUAL),
    Row("an event of HIP that two processes share", "criu#2722", "case[an_event_that_hip_shares]", EQUAL),
    Row("memory mapped as by hipMemMap()", "vllm#12695", "case[memory_mapped_as_hip_does_it]", EQUAL),
    Row("objects of a render node without KFD", "criu#2581", "case[objects_of_a_render_node]", EQUAL),
    Row("sync files of finished work, inherited by a child", "", "case[sync_files_of_finished_work]", EQUAL),
    Row("objects of an inherited render node", "", "case[objects_of_an_inherited_render_node]", EQUAL),
    Row("user memory of a parent that has closed the file", "",
        "case[user_memory_of_a_parent_that_has_closed_the_file]", REFUSED),
    Row("objects of another render node than KFD's", "criu#2664",
        "case[objects_in_another_file_than_that_of_kfd]", EQUAL),
    Row("GEM objects that three programs share", "criu#2613", "case[shared_gem_objects]", EQUAL),
    Row("GEM objects that KFD shares, too", "criu#2613", "case[gem_objects_shared_with_kfd]", EQUAL),
    Row("memory shared by two processes", "criu#2722 #2581", "case[a_shared_buffer]", EQUAL),
    Row("memory shared with a program outside", "", "case[a_buffer_given_to_a_program_outside]", REFUSED),
    Row("shared memory that a GPU writes", "criu#2722", "case[a_shared_buffer_that_changes]", EQUAL),
    Row("memory that three processes share", "criu#2722", "case[memory_shared_three]", EQUAL),
    Row("memory that a process gives on", "criu#2722", "case[memory_shared_chain]", EQUAL),
    Row("processes that give memory to each other", "criu#2722", "case[memory_shared_cycle]", EQUAL),
    Row("shared memory that its allocator has freed", "criu#2722", "case[memory_shared_freed]", EQUAL),
    Row("shared memory whose allocator has ended", "criu#2722", "case[memory_shared_ended]", EQUAL),
    Row("memory of a process that has ended", "criu#2722", "case[memory_shared_alone]", EQUAL),
    Row("shared memory, restored on another GPU", "criu#2722", "shared_memory_comes_back_on_another_gpu", EQUAL),
    Row("memory shared by processes on two GPUs, both open in each", "criu#2722",
        "memory_that_processes_on_different_gpus_share_comes_back[peers]", EQUAL),
    Row("memory shared by processes on two GPUs, each with one open", "criu#2722",
        "memory_that_processes_on_different_gpus_share_comes_back[apart]", EQUAL),
    Row("the same, which its allocator has freed", "criu#2722",
        "memory_that_processes_on_different_gpus_share_comes_back[apart-freed]", EQUAL),
    Row("shared memory, dumped with --leave-running", "criu#2722", "programs_that_share_memory_are_left_running", EQUAL),
    Row("memory of three processes, after two generations", "criu#2722",
        "shared_memory_comes_back_after_two_generations[three]", EQUAL),
    Row("processes that give memory to each other, after two generations", "criu#2722",
        "shared_memory_comes_back_after_two_generations[cycle]", EQUAL),
    Row("1,000 shared memories", "criu#2722", "case[a_thousand_shared_memories]", EQUAL),
    Row("1,008 memories that 16 processes share", "criu#2722",
        "a_restore_of_a_thousand_shared_memories_takes_at_most_a_third_more_time", EQUAL),
    Row("open DMA-bufs", "criu#2613", "case[open_dmabufs]", EQUAL),
    Row("open DMA-bufs of memory that their process has freed", "criu#2613",
        "case[open_dmabufs_of_memory_that_its_process_has_freed]", EQUAL),
    Row("open DMA-bufs of a program without a GPU", "criu#2613", "case[open_dmabufs_of_a_program_without_a_gpu]", EQUAL),
    Row("an open DMA-buf of memory that all have freed", "", "case[an_open_dmabuf_of_memory_that_all_have_freed]", EQUAL),
    Row("a DMA-buf on its way through a socket", "", "case[a_dmabuf_on_its_way_through_a_socket]", REFUSED),
    Row("memory of KFD that has metadata", "", "case[memory_of_kfd_with_metadata]", REFUSED),
    Row("a DMA-buf of another driver", "", "a_dmabuf_of_another_driver_is_refused_with_its_exporter", REFUSED),
    Row("a killed restore of shared memory", "",
        "a_restore_of_shared_memory_that_is_killed_leaves_no_process_and_no_dmabuf", REFUSED),
    Row("16 processes", "criu#2722", "all_processes_of_a_tree_are_paused_at_once_and_come_back", EQUAL),
    Row("a file that CRIU cannot dump", "criu#2722 #3070", "case[a_pidfd]", REFUSED),
    Row("memory allocated after the restore, Linux 6.15", "commit 8544374c0f82",
        "memory_allocated_after_the_restore_works_where_sysfs_has_no_pasid", EQUAL),
    Row("another mode of /dev/kfd", "", "a_program_is_restored_where_dev_kfd_has_another_mode", EQUAL),
    Row("a lazy restore", "crun#2259 criu#3146", "a_lazy_restore_gives_gpus_all_pages_first[plain]", EQUAL),
    Row("a lazy restore, save area in SVM memory", "crun#2259",
        "a_lazy_restore_gives_gpus_all_pages_first[svm]", EQUAL),
    Row("a lazy dump", "criu#3146", "a_lazy_dump_is_refused", REFUSED),
    Row("two programs, dumped one after the other", "",
        "two_programs_are_dumped_one_after_the_other_and_restored", EQUAL),
    Row("two generations", "cuda-checkpoint#28", "generations_on_one_machine[two]", EQUAL),
    Row("ten generations between two machines", "", "ten_generations_between_two_machines_change_nothing", EQUAL),
    Row("a program without GPU, image left over", "",
        "an_image_left_in_the_folder_harms_no_other_program_with_its_pid[with_kfd]", EQUAL),
    Row("a program without GPU, image left over, no /dev/kfd", "criu#2394 #2531",
        "an_image_left_in_the_folder_harms_no_other_program_with_its_pid[without_kfd]", EQUAL),
    Row("a program without GPU, wrong option", "",
        "a_wrong_option_of_the_plugin_harms_no_program_without_a_gpu", EQUAL),
    Row("a wrong option", "", "a_wrong_option_of_the_plugin_is_named_when_a_program_with_a_gpu_is_dumped", REFUSED),
    Row("the file of options", "criu#2836", "the_file_of_options_comes_before_the_environment", EQUAL),
    Row("a UTS namespace", "", "a_program_with_a_namespace_of_its_own_comes_back[uts]", EQUAL),
    Row("an IPC namespace", "", "a_program_with_a_namespace_of_its_own_comes_back[ipc]", EQUAL),
    Row("a cgroup namespace", "", "a_program_with_a_namespace_of_its_own_comes_back[cgroup]", EQUAL),
    Row("a control group, --manage-cgroups", "", "a_program_in_a_control_group_comes_back_there", EQUAL),
    Row("a terminal, --shell-job", "", "a_job_of_a_shell_comes_back_on_another_terminal", EQUAL),
    Row("pages on a page server", "", "pages_that_a_page_server_keeps_are_restored", EQUAL),
    Row("a connection, after a commit that failed", "",
        "a_criu_that_the_plugin_ends_gives_a_program_its_network_back", REFUSED),
    Row("no space for the image", "criu#3000", "a_dump_without_space_leaves_no_file_whatever_the_space_is", REFUSED),
    Row("CRIU killed during the dump, at 3 places", "criu#1716", "a_killed_criu_costs_the_program_nothing[three]", REFUSED),
    Row("CRIU killed during the dump, at 16 places", "kubernetes#6275",
        "a_killed_criu_costs_the_program_nothing[sixteen]", REFUSED),
    Row("CRIU killed during the restore", "kubernetes#6275",
        "a_killed_restore_leaves_nothing_that_is_in_the_way_of_the_next", EQUAL),
    Row("the GPU is reset during the dump", "", "a_gpu_reset_during_the_dump_is_refused", REFUSED),
    Row("another program uses the first GPU", "vllm#52125",
        "a_restore_beside_another_program_takes_the_free_gpu", EQUAL),
    Row("a GPU that the user chose", "criu#2836", "a_gpu_map_chooses_the_gpu", EQUAL),
    Row("one image restored twice", "vllm#52125", "one_image_is_restored_twice", EQUAL),
    Row("a container: another node, in its /dev", "criu#2888 #2723",
        "a_container_is_restored_where_its_gpu_has_another_node[node_in_dev]", EQUAL),
    Row("a container: another node, not in its /dev", "criu#2888 #2723",
        "a_container_is_restored_where_its_gpu_has_another_node[no_node_in_dev]", EQUAL),
    Row("a container whose /dev is in the image", "criu#2888",
        "a_container_is_restored_where_its_gpu_has_another_node[dev_of_the_image]", EQUAL),
    Row("a container whose restore fails", "", "a_container_whose_restore_fails_does_not_go_on", REFUSED),
    Row("64 GPUs", "criu#2248", "as_many_gpus_as_a_machine_has_cost_no_descriptor", EQUAL),
)
# Tests that say nothing of one program.
NO_CASE = ("no_images_are_left_that_nothing_needs", "the_machines_kernel_does_not_complain",
           "a_dump_stores_what_has_changed_since_the_one_before", "compressed_contents_come_back")


class Cell(NamedTuple):
    outcome: str
    why: str = ""


# ---- reading ------------------------------------------------------------------

def cells(lines: list[str]) -> dict[str, Cell]:
    """What became of the program of each test, by the test's name."""
    wanted = {row.test: row.wanted for row in ROWS}
    found = {}
    for row in map(json.loads, lines):
        name = row["id"].partition("::")[2].partition("@")[0].removeprefix("test_")
        if row["text"].lstrip().startswith(NOT_BEGUN):
            continue
        found[name] = Cell(wanted.get(name, EQUAL)) if row["outcome"] == "passed" else failed(row["text"])
    return found


def failed(text: str) -> Cell:
    """What a failed test says of the program."""
    match = BECAME.search(text)
    meanings = [kind for pattern, kind in MEANINGS if pattern.search(text)]
    kind, why = (match[1], match[2]) if match else ((meanings or [UNCLEAR])[0], text)
    line = next((line.strip() for line in why.splitlines() if line.strip()), "the test failed")
    return Cell(kind, line)


def read(file: Path) -> dict[str, Cell]:
    return cells(file.read_text().splitlines()) if file.exists() else {}


# ---- the table ------------------------------------------------------------------

def table(ours: dict[str, Cell], theirs: dict[str, Cell]) -> list[str]:
    """The lines of the table, with those that say why an outcome is bad below their row."""
    title = max(len(f"{row.title} ({row.reports})") for row in ROWS)
    lines = [f"{'case (public reports)':{title}}  {'wanted':8}{OURS:9}{THEIRS}", "-" * (title + 26)]
    for row in ROWS:
        mine, other = (side.get(row.test, Cell(NOT_RUN)) for side in (ours, theirs))
        name = f"{row.title} ({row.reports})" if row.reports else row.title
        lines.append(f"{name:{title}}  {row.wanted:8}{mine.outcome:9}{other.outcome}")
        lines += [f"    {who}: {cell.why[:WIDTH]}" for who, cell in ((OURS, mine), (THEIRS, other))
                  if cell.why and cell.outcome != row.wanted]
    return lines


def summary(found: dict[str, Cell]) -> dict[str, int]:
    """How many of the cases had which outcome."""
    outcomes = [found.get(row.test, Cell(NOT_RUN)).outcome for row in ROWS]
    return {outcome: outcomes.count(outcome) for outcome in (EQUAL, REFUSED, WRONG, LOST, UNCLEAR, NOT_RUN)}


def complaints(ours: dict[str, Cell]) -> list[str]:
    """What is wrong with our side, or with the list of rows."""
    wrong = [f"{row.title}: {ours[row.test].outcome}, wanted {row.wanted}" for row in ROWS
             if row.test in ours and ours[row.test].outcome != row.wanted]
    known = {row.test for row in ROWS} | set(NO_CASE)
    return wrong + [f"test_{name} has no row in field_table.py" for name in ours if name not in known]


def wrong(folder: Path, whole: bool = True) -> list[str]:
    """What is wrong with the results in the folder; the `whole` table has results of both sides."""
    missing = [f"no results of {who} for the table of programs" for who in (OURS, THEIRS)
               if whole and not (folder / RESULTS.format(who)).exists()]
    return missing + complaints(read(folder / RESULTS.format(OURS)))


def lines_of(folder: Path) -> list[str]:
    """The table and its summary, from the results in the folder; empty if there are none."""
    ours, theirs = (read(folder / RESULTS.format(who)) for who in (OURS, THEIRS))
    if not ours and not theirs:
        return []
    counts = [f"{who}: " + ", ".join(f"{count} {outcome}" for outcome, count in summary(found).items() if count)
              for who, found in ((OURS, ours), (THEIRS, theirs))]
    head = ["Programs that users reported trouble with", "=" * 41, "",
            "ours: this project's plugin on its kernel; theirs: CRIU's own plugin on the stock kernel. equal: came back",
            "with the right result; refused: the dump failed and the program runs on; lost: it is gone; unclear: the test",
            "failed before it knew that; wrong: anything else, such as one open file too many, or files that a failed dump",
            "left.", ""]
    return [*head, *table(ours, theirs), "", *counts, *complaints(ours)]


# ---- the document -----------------------------------------------------------------

def document_lines(ours: dict[str, Cell], theirs: dict[str, Cell]) -> list[str]:
    """The table as the document has it."""
    counts = [f"{who}: " + ", ".join(f"{count} {outcome}" for outcome, count in summary(found).items() if count)
              for who, found in (("amdkfd-criu", ours), ("CRIU's own plugin", theirs))]
    rows = [f"| {row.title}{f' ({row.reports})' if row.reports else ''} | {row.wanted} | {ours[row.test].outcome} "
            f"| {theirs[row.test].outcome} |" for row in ROWS]
    return [f"Of {len(ROWS)} cases: {'; '.join(counts)}.", "",
            "| case (public reports) | right outcome | amdkfd-criu | CRIU's own plugin |", "|---|---|---|---|", *rows]


def document(folder: Path, file: Path) -> str:
    """Writes the table into the document. What keeps it from that; empty if nothing."""
    ours, theirs = (read(folder / RESULTS.format(who)) for who in (OURS, THEIRS))
    for who, found in ((OURS, ours), (THEIRS, theirs)):
        if missing := [row.test for row in ROWS if row.test not in found]:
            return f"{len(missing)} tests have no result of {who}: scripts/field_table.py --missing"
    text = file.read_text()
    before, rest = text.split(BEGIN)
    table_text = "\n".join(document_lines(ours, theirs))
    file.write_text(f"{before}{BEGIN}{table_text}\n{END}{rest.split(END)[1]}")
    return ""


# ---- running --------------------------------------------------------------------

def run(folder: Path, who: str, variables: dict[str, str], tests: Sequence[str]) -> int:
    """Runs the tests and adds their results to those that are there, also when somebody interrupts it; the status of tests
    that could not be run, or 0. During a test that is run alone the machine has ended because of it."""
    results = paths.TEST / "results.jsonl"
    # Results of other tests must not be taken for these.
    results.unlink(missing_ok=True)
    folder.mkdir(parents=True, exist_ok=True)
    try:
        status = subprocess.run([paths.SCRIPTS / "test.py", "--all", *tests], env={**os.environ, **variables},
                                check=False).returncode
    finally:
        if results.exists():
            text = results.read_text()
            with (folder / RESULTS.format(who)).open("a") as file:
                file.write(text.replace(NOT_BEGUN, "ended: the machine ") if tests != [TESTS] else text)
    return 0 if status in (0, 1) else status


def run_both(folder: Path, release: str = DEFAULT_RELEASE, missing: bool = False) -> int:
    """Runs the tests with both plugins, or those that have no result; the status of what could not be built or run, or
    0."""
    for command in (["setup.sh", "upstream"], [UPSTREAM_BUILD, release]):
        if status := subprocess.run([paths.SCRIPTS / command[0], *command[1:]], check=False).returncode:
            return status
    for who, variables in ((OURS, {}), (THEIRS, {"FIELD_CRIU": str(paths.OUT / "upstream" / release)})):
        file = folder / RESULTS.format(who)
        if not missing:
            file.unlink(missing_ok=True)
        found = read(file)
        missing_tests = [f"{TESTS}::test_{row.test}" for row in ROWS if row.test not in found]
        # Each alone, because a kernel that one of them crashes has no result of those after it.
        for tests in [[test] for test in missing_tests] if found else [[TESTS]]:
            if status := run(folder, who, variables, tests):
                return status
    return 0


def main(arguments: list[str]) -> int:
    options, releases = [word for word in arguments if word.startswith("-")], arguments[:]
    for word in options:
        releases.remove(word)
    if len(options) > 1 or len(releases) > 1 or options in (["-h"], ["--help"]):
        print(__doc__.strip())
        return 0 if len(arguments) == 1 else 64
    if options not in ([], ["--missing"], ["--write"], ["--document"]) or (releases and options in (["--write"], ["--document"])):
        print(f"field_table.py: error: unknown argument '{arguments[-1] if releases else options[0]}' "
              f"(try: scripts/field_table.py -h)", file=sys.stderr)
        return 64
    folder = paths.OUT / "report"
    if options in ([], ["--missing"]):
        if status := run_both(folder, *releases, missing=bool(options)):
            return status
    lines = lines_of(folder)
    if not lines:
        print("field_table.py: error: there are no results", file=sys.stderr)
        return 1
    if options == ["--document"] and (why := document(folder, paths.ROOT / DOCUMENT)):
        print(f"field_table.py: error: {why}", file=sys.stderr)
        return 1
    (folder / TEXT).write_text("\n".join(lines) + "\n")
    print("\n".join(lines))
    return 1 if wrong(folder) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
