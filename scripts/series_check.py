# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""`series.py check`: the rules of kernel/README.md, as errors and questions.

An *error* fails the check. A *question* is for the reviewer: a hook that grew, a
hunk that moved, a checkpatch warning. Changes nothing.
"""
from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import series as core
import series_export
from series import Patch, Series, SeriesError

LICENCE_TAG = "SPDX-License-Identifier:"
CHECKPATCH_LINE = re.compile(r"^(?P<where>.*?):?\s*(?P<level>ERROR|WARNING|CHECK):(?P<what>.*)$")


class Findings:
    def __init__(self) -> None:
        self.errors: list[str] = []
        self.questions: list[str] = []

    def error(self, text: str) -> None:
        self.errors.append(text)

    def question(self, text: str) -> None:
        self.questions.append(text)


def check_folders(series: Series, found: Findings) -> None:
    listed = [patch.name for patch in series.patches]
    for name, count in Counter(listed).items():
        if count > 1:
            found.error(f"{series.name}: {name} is listed {count} times")
    if listed != sorted(listed):
        found.error(f"{series.name}: the numbers in `series` do not ascend")
    patches = series.folder / "patches"
    present = {path.name for path in patches.iterdir()} if patches.is_dir() else set()
    for name in sorted(present - set(listed)):
        found.error(f"{series.name}: patches/{name} is not listed in `series`")
    if not (series.folder / "cover.md").is_file():
        found.error(f"{series.name}: cover.md does not exist")


def check_ownership(series: Series, found: Findings) -> None:
    """Each overlay file, and each destination, belongs to exactly one patch."""
    overlay = series.folder / "overlay"
    present = {path for path in overlay.rglob("*") if path.is_file()} if overlay.is_dir() else set()
    placed = [entry for patch in series.patches for entry in patch.files]
    sources = Counter(entry.source for entry in placed)
    for path in sorted(present):
        if sources[path] != 1:
            found.error(f"{path.relative_to(series.folder)} of {series.name} is owned by "
                        f"{sources[path]} patches, must be exactly one")
    for dest, count in Counter(entry.dest for entry in placed).items():
        if count > 1:
            found.error(f"{series.name}: {dest} is brought {count} times")
    for path in sorted({entry.source for entry in placed}):
        head = path.read_text(errors="replace").split("\n", 2)[:2]
        if not any(LICENCE_TAG in line for line in head):
            found.error(f"{path}: no '{LICENCE_TAG}' in the first two lines")


def check_message(patch: Patch, found: Findings) -> None:
    try:
        message = core.split_message(patch)[1]
    except SeriesError as problem:
        found.error(str(problem))
        return
    lines = message.split("\n")
    subject = lines[0]
    if len(subject) > core.SUBJECT_LIMIT:
        found.error(f"{patch.label}: subject has {len(subject)} characters, "
                    f"at most {core.SUBJECT_LIMIT}")
    if not core.SUBJECT.match(subject) or subject == core.TEMPLATE_SUBJECT:
        found.error(f"{patch.label}: subject is not 'area: what it does': '{subject}'")
    if len(lines) < 3 or lines[1].strip() or not lines[2].strip():
        found.error(f"{patch.label}: one blank line, then a body, must follow the subject")
    signed = [line for line in lines if line.startswith("Signed-off-by: ")]
    if not any(core.IDENTITY.match(line.partition(": ")[2]) for line in signed):
        found.error(f"{patch.label}: no 'Signed-off-by: Name <mail>'")
    if not patch.files and not patch.hook_lines:
        found.error(f"{patch.label}: changes nothing")


def check_hook_size(series: Series, found: Findings) -> None:
    if series.name == core.FIX_SERIES:
        return
    total: Counter = Counter()
    for patch in series.patches:
        total.update(patch.hook_lines)
    for path, count in sorted(total.items()):
        if count > core.HOOK_LINE_LIMIT:
            found.question(f"{series.name}: {count} added lines in {path} (limit "
                           f"{core.HOOK_LINE_LIMIT}): can the logic move to the overlay?")


def check_applies(root: Path, base: Path, found: Findings) -> None:
    for variant in core.read_variants(root):
        try:
            for step in core.steps(base, core.variant_series(root, variant)):
                for offset in step.offsets:
                    found.question(f"{variant} kernel: {offset}")
        except SeriesError as problem:
            found.error(f"{variant} kernel: {problem}")


def checkpatch(base: Path, mail: Path, label: str, found: Findings) -> None:
    done = subprocess.run(
        ["perl", str(base / "scripts" / "checkpatch.pl"), "--strict", "--terse", "--show-types",
         "--no-summary", f"--root={base}", f"--ignore={core.CHECKPATCH_IGNORE}", str(mail)],
        cwd=base, capture_output=True, text=True, check=False)
    # It leaves a cache in the tree, which is to stay as it was unpacked.
    for cache in base.glob(".checkpatch-camelcase*"):
        cache.unlink()
    seen = False
    for line in done.stdout.splitlines():
        match = CHECKPATCH_LINE.match(line)
        if not match:
            continue
        seen = True
        where = match["where"].replace(str(mail), "").strip(": ")
        text = f"{label}: checkpatch {match['level']}:{match['what']} ({mail.name}:{where})"
        (found.error if match["level"] == "ERROR" else found.question)(text)
    if done.returncode != 0 and not seen:
        found.error(f"{label}: checkpatch failed: {(done.stderr or done.stdout).strip()[:300]}")


def check_mails(root: Path, base: Path, name: str, found: Findings) -> None:
    """Export, import again, and let checkpatch read every mail."""
    with tempfile.TemporaryDirectory(prefix="series-check-") as folder:
        mails = Path(folder)
        series = series_export.export_series(root, base, name, mails, verify=True)
        if not (base / "scripts" / "checkpatch.pl").is_file():
            found.question(f"{name}: {base} has no scripts/checkpatch.pl, style was not checked")
            return
        for patch, mail in zip(series.patches, sorted(mails.glob("*.patch"))[1:]):
            checkpatch(base, mail, patch.label, found)


def build_prefixes(root: Path, found: Findings) -> None:
    """Every patch of every series, once, in the first variant that has the series."""
    done: set = set()
    for variant, names in core.read_variants(root).items():
        for name in (name for name in names if name not in done):
            done.add(name)
            for patch in core.read_series(root, name).patches:
                print(f"building the {variant} kernel up to {patch.label}", flush=True)
                build = [str(root / "scripts" / "kernel.sh"), "build", variant,
                         "--upto", patch.label]
                if subprocess.run(build, check=False).returncode != 0:
                    found.error(f"{variant} kernel does not build up to {patch.label}")
                    return


def check_series(args: argparse.Namespace, name: str, found: Findings) -> None:
    try:
        series = core.read_series(args.root, name)
    except SeriesError as problem:
        found.error(str(problem))
        return
    before = len(found.errors)
    check_folders(series, found)
    check_ownership(series, found)
    check_hook_size(series, found)
    for patch in series.patches:
        check_message(patch, found)
    if len(found.errors) == before and not args.no_checkpatch:
        try:
            check_mails(args.root, args.base, name, found)
        except SeriesError as problem:
            found.error(str(problem))


def command_check(args: argparse.Namespace) -> int:
    found = Findings()
    names = list(dict.fromkeys(
        name for line in core.read_variants(args.root).values() for name in line))
    for name in names:
        check_series(args, name, found)
    check_applies(args.root, args.base, found)
    if args.build and not found.errors:
        build_prefixes(args.root, found)
    for text in dict.fromkeys(found.questions):
        print(f"question: {text}")
    for text in dict.fromkeys(found.errors):
        print(f"error: {text}", file=sys.stderr)
    print(f"series.py check: {len(set(found.errors))} errors, {len(set(found.questions))} questions")
    return core.EXIT_FAIL if found.errors else 0
