# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""`series.py check`: the rules of kernel/README.md, as errors and questions.

An *error* fails the check. A *question* is for the reviewer: a hook that grew, a
hunk that moved, a checkpatch warning. Changes nothing.
"""
from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from contextlib import ExitStack
from itertools import zip_longest
from pathlib import Path

from series_export import export_mails, tidy_mails
from series_store import (EXIT_FAIL, PROJECT, Patch, Series, SeriesError, all_names, read_series,
                          read_variants, variant_series)
from series_tree import steps

SUBJECT_LIMIT = 75
HOOK_LINE_LIMIT = 15
# They change code of upstream on purpose, so there is no hook limit.
CHANGING_SERIES = ("fixes", "drm-handle-at")
# Files of upstream to which a series adds more, and why that is no logic for the overlay.
AMDKFD = "drivers/gpu/drm/amd/amdkfd"
HOOK_EXCEPTIONS = {
    ("amdkfd-criu", f"{AMDKFD}/Makefile"): "a row for each file of the overlay",
    ("amdkfd-criu", f"{AMDKFD}/kfd_priv.h"): "members of amdkfd's own structs",
    ("amdkfd-criu", f"{AMDKFD}/kfd_chardev.c"): "functions of upstream are split, for the ioctl and for RESTORE",
    ("amdkfd-criu", f"{AMDKFD}/kfd_events.c"): "the signal page becomes readable under RCU where upstream reads it",
    ("amdgpu-vasic", "drivers/gpu/drm/amd/amdgpu/amdgpu_device.c"): "calls at the steps of the device's life",
}
TEMPLATE_SUBJECT = "area: say what the patch does"
SUBJECT = re.compile(r"[A-Za-z0-9_.,/-]+(: [A-Za-z0-9_./-]+)*: \S.*[^.]")
LICENCE_TAG = "SPDX-License-Identifier:"
# The first two cells of a row in a table of patches: the number and the subject.
TABLE_ROW = re.compile(r"^\| (\d{4}) \| ([^|]*) \|", re.MULTILINE)
CHECKPATCH_LINE = re.compile(r"(?P<where>.*?):?\s*(?P<level>ERROR|WARNING|CHECK):(?P<what>.*)")
# checkpatch messages that are ignored: the series do not change MAINTAINERS, there is no
# git history with commit ids, and amdgpu declares its tables with uint32_t.
CHECKPATCH_IGNORE = ("FILE_PATH_CHANGES,GIT_COMMIT_ID,UNKNOWN_COMMIT_ID,EMAIL_SUBJECT,"
                     "PREFER_KERNEL_TYPES")


class Findings:
    def __init__(self) -> None:
        self.errors: list[str] = []
        self.questions: list[str] = []

    def error(self, text: str) -> None:
        self.errors.append(text)

    def question(self, text: str) -> None:
        self.questions.append(text)


def check_listing(series: Series, found: Findings) -> None:
    listed = [patch.name for patch in series.patches]
    for name, count in Counter(listed).items():
        if count > 1:
            found.error(f"{series.name}: {name} is listed {count} times")
    if listed != sorted(listed):
        found.error(f"{series.name}: the numbers in `series` do not ascend")
    present = {path.stem for path in series.folder.glob("*.patch")}
    present |= {path.name for path in series.folder.glob("patches/*")}
    for name in sorted(present - set(listed)):
        found.error(f"{series.name}: {name} is not listed in `series`")
    if not (series.folder / "cover.md").is_file():
        found.error(f"{series.name}: cover.md does not exist")


def check_table(series: Series, found: Findings) -> None:
    """If README.md has a table of patches, each patch has one row in it, in order, with its subject."""
    readme = series.folder / "README.md"
    rows = TABLE_ROW.findall(readme.read_text()) if readme.is_file() else []
    if not rows:
        return
    patches = [(patch.name[:4], patch.message.split("\n", 1)[0]) for patch in series.patches]
    for row, patch in zip_longest(rows, patches, fillvalue=("nothing", "")):
        if row != patch:
            found.error(f"{readme}: the table has {' '.join(row).strip()}, `series` has "
                        f"{' '.join(patch).strip()}")
            return


def check_message(patch: Patch, found: Findings) -> None:
    lines = patch.message.split("\n")
    subject = lines[0]
    if len(subject) > SUBJECT_LIMIT:
        found.error(f"{patch.label}: subject has {len(subject)} characters, at most {SUBJECT_LIMIT}")
    if not SUBJECT.fullmatch(subject) or subject == TEMPLATE_SUBJECT:
        found.error(f"{patch.label}: subject is not 'area: what it does': '{subject}'")
    if len(lines) < 3 or lines[1].strip() or not lines[2].strip():
        found.error(f"{patch.label}: one blank line, then a body, must follow the subject")
    if patch.author == PROJECT and patch.sign_offs:
        found.error(f"{patch.label}: has a Signed-off-by line; the sender adds it with export --signoff")
    if patch.author != PROJECT and patch.author not in patch.sign_offs:
        found.error(f"{patch.label}: no 'Signed-off-by: {patch.author}' of its author")
    if not patch.files and not patch.added:
        found.error(f"{patch.label}: changes nothing")


def check_overlay(series: Series, found: Findings) -> None:
    for path in series.unowned:
        found.error(f"{series.name}: overlay/{path} is owned by 0 patches, must be exactly one")
    for path in (path for patch in series.patches for path in patch.files.values()):
        head = path.read_text(errors="replace").split("\n", 2)[:2]
        if not any(LICENCE_TAG in line for line in head):
            found.error(f"{path}: no '{LICENCE_TAG}' in the first two lines")


def check_hook_size(series: Series, found: Findings) -> None:
    total: Counter = Counter()
    for patch in series.patches:
        total.update(patch.added)
    for path, count in sorted(total.items()):
        if count > HOOK_LINE_LIMIT and series.name not in CHANGING_SERIES and (series.name, path) not in HOOK_EXCEPTIONS:
            found.error(f"{series.name}: {count} added lines in {path} (limit {HOOK_LINE_LIMIT}): move the logic to the "
                        "overlay, or add the file to HOOK_EXCEPTIONS of series_check.py with the reason")


def check_applies(root: Path, base: Path, found: Findings) -> None:
    for variant in read_variants(root):
        try:
            for step in steps(base, variant_series(root, variant)):
                for offset in step.offsets:
                    found.question(f"{variant} kernel: {offset}")
        except SeriesError as problem:
            found.error(f"{variant} kernel: {problem}")


def checkpatch(base: Path, labels: dict[Path, str], folder: Path, found: Findings) -> None:
    """Runs checkpatch.pl for the mails, whose patches have these labels, on all processors."""
    names, count = sorted(labels), min(os.cpu_count() or 1, len(labels))
    with ExitStack() as stack:
        processes = []
        for number in range(count):
            # checkpatch.pl writes a cache into its current folder. The base must not change, and of two
            # checkpatch.pl in one folder one could read the half of what the other writes.
            own = folder / f"checkpatch-{number}"
            own.mkdir()
            processes.append(stack.enter_context(subprocess.Popen(
                ["perl", str(base / "scripts" / "checkpatch.pl"), "--strict", "--terse", "--show-types", "--no-summary",
                 "--no-signoff", f"--root={base}", f"--ignore={CHECKPATCH_IGNORE}", *names[number::count]],
                cwd=own, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)))
            # If this program is interrupted, no checkpatch.pl goes on without it.
            stack.callback(processes[-1].kill)
        for process in processes:
            read_checkpatch(*process.communicate(), process.returncode, labels, found)


def read_checkpatch(output: str, error: str, status: int, labels: dict[Path, str], found: Findings) -> None:
    """Adds what one checkpatch.pl has printed, a line a complaint: MAIL:LINE: LEVEL:TYPE: TEXT."""
    seen = False
    for match in filter(None, map(CHECKPATCH_LINE.fullmatch, output.splitlines())):
        seen = True
        mail = next((mail for mail in labels if match["where"].startswith(str(mail))), Path("checkpatch.pl"))
        where = match["where"].removeprefix(str(mail)).strip(": ")
        text = f"{labels.get(mail, mail)}: checkpatch {match['level']}:{match['what']} ({mail.name}:{where})"
        (found.error if match["level"] == "ERROR" else found.question)(text)
    # checkpatch.pl ends with 1 after a complaint; perl with another status if the script dies.
    if status not in (0, 1) or (status == 1 and not seen):
        found.error(f"checkpatch failed: {(error or output).strip()[:300]}")


def check_mails(root: Path, base: Path, name: str, style: bool, found: Findings) -> None:
    """Exports the series, imports the mails again, and runs checkpatch on every mail."""
    for path, text in tidy_mails(root, base, name).items():
        if path.read_bytes() != text:
            found.question(f"{path}: not as git writes it: scripts/series.py refresh {name}")
    with tempfile.TemporaryDirectory(prefix="series-check-") as folder:
        mails = Path(folder)
        series = export_mails(root, base, name, mails, verify=True)
        if not style:
            return
        if not (base / "scripts" / "checkpatch.pl").is_file():
            found.question(f"{name}: {base} has no scripts/checkpatch.pl, style was not checked")
            return
        names = sorted(mails.glob("*.patch"))[1:]
        checkpatch(base, dict(zip(names, (patch.label for patch in series.patches))), mails, found)


def build_prefixes(root: Path, found: Findings) -> None:
    """Builds every patch of every series, once, in the first variant that has the series."""
    done: set = set()
    for variant, names in read_variants(root).items():
        for name in (name for name in names if name not in done):
            done.add(name)
            for patch in read_series(root, name).patches:
                print(f"building the {variant} kernel up to {patch.label}", flush=True)
                build = [str(root / "scripts" / "kernel.sh"), "build", variant,
                         "--upto", patch.label]
                if subprocess.run(build, check=False).returncode != 0:
                    found.error(f"{variant} kernel does not build up to {patch.label}")
                    return


def check_series(root: Path, base: Path, name: str, style: bool, found: Findings) -> None:
    before = len(found.errors)
    try:
        series = read_series(root, name)
        check_listing(series, found)
        check_table(series, found)
        check_overlay(series, found)
        check_hook_size(series, found)
        for patch in series.patches:
            check_message(patch, found)
        if len(found.errors) == before:
            check_mails(root, base, name, style, found)
    except SeriesError as problem:
        found.error(str(problem))


def check_store(root: Path, base: Path, style: bool, build: bool) -> int:
    """Prints the errors and questions; returns the exit status."""
    found = Findings()
    for name in all_names(root):
        check_series(root, base, name, style, found)
    check_applies(root, base, found)
    if build and not found.errors:
        build_prefixes(root, found)
    for text in dict.fromkeys(found.questions):
        print(f"question: {text}")
    for text in dict.fromkeys(found.errors):
        print(f"error: {text}", file=sys.stderr)
    print(f"series.py check: {len(set(found.errors))} errors, {len(set(found.questions))} questions")
    return EXIT_FAIL if found.errors else 0
