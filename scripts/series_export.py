# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""Makes commits and mails of series, and proves that they are the series.

Owns the git branches: `base`, then one branch a series, one commit a patch.
Identities and dates are fixed, so equal input gives equal bytes. Does not know
the rules of the store. Sends nothing.
"""
from __future__ import annotations

import dataclasses
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from series_store import (PROJECT, Patch, Series, SeriesError, SetupError, git, read_pairs,
                          stack_below)
from series_tree import replace_file, steps

INDEX_LINE = re.compile(r"^index [0-9a-f]+\.\.[0-9a-f]+.*\n", re.MULTILINE)
SUBJECT_LINES = re.compile(r"^(Subject: .*(\n .*)*)", re.MULTILINE)


# ---- commits ----

def commit(repo: Path, contents: dict[str, bytes], patch: Patch, sender: str) -> None:
    """Commits a patch. The sender signs it off, and becomes the author of a patch of the project."""
    author = sender if sender and patch.author == PROJECT else patch.author
    for path, data in contents.items():
        replace_file(repo / path, data,
                     (repo / path).stat().st_mode & 0o777 if (repo / path).exists() else 0o644)
    git(repo, "add", "--force", "--", *contents)
    git(repo, "commit", "--quiet", "--allow-empty", "--cleanup=verbatim", "-F", "-",
        *(["--signoff"] if sender else []), stdin=patch.message, author=author,
        identity=sender or PROJECT)


def start_repository(repo: Path) -> None:
    """Makes a repository of the files in repo, with one commit on the branch `base`."""
    git(repo, "init", "--quiet", "--initial-branch=base")
    git(repo, "add", "--all", "--force")
    git(repo, "commit", "--quiet", "--allow-empty", "--message=base")


def add_branches(repo: Path, base: Path, stack: list[Series], sender: str) -> None:
    """Adds a branch for each series, on top of the branch of the series below."""
    branch = ""
    for step in steps(base, stack):
        if step.patch.series != branch:
            branch = step.patch.series
            git(repo, "checkout", "--quiet", "-b", branch)
        commit(repo, step.contents, step.patch, sender)


def make_scratch(repo: Path, base: Path, stack: list[Series], sender: str = "") -> None:
    """Makes a repository with only those files of the base that the stack edits."""
    repo.mkdir()
    for path in sorted({path for series in stack for patch in series.patches
                        for path in patch.added}):
        if (base / path).is_file():
            (repo / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(base / path, repo / path)
    start_repository(repo)
    add_branches(repo, base, stack, sender)


def export_branch(root: Path, base: Path, names: list[str], target: Path, sender: str) -> list[str]:
    """Makes a whole kernel tree in git. It gets its name only when it is complete."""
    if target.exists() and any(target.iterdir()):
        raise SetupError(f"{target} is not empty and is not overwritten: name another folder")
    stack = stack_below(root, names)
    partial = target.with_name(f".{target.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.parent.mkdir(parents=True, exist_ok=True)
    try:
        copied = subprocess.run(["cp", "-a", "--reflink=auto", str(base), str(partial)],
                                capture_output=True, text=True, check=False)
        if copied.returncode != 0:
            raise SetupError(f"{partial}: {copied.stderr.strip().splitlines()[0]}")
        start_repository(partial)
        add_branches(partial, base, stack, sender)
        if target.exists():
            target.rmdir()
        partial.rename(target)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return [series.name for series in stack if series.patches]


# ---- mails ----

def cover_letter(root: Path, stack: list[Series]) -> str:
    """Returns the cover letter: cover.md, the base and the series below."""
    path = stack[-1].folder / "cover.md"
    subject, _, text = path.read_text().strip().partition("\n") if path.is_file() else ("", "", "")
    if not subject.lstrip("# "):
        raise SeriesError(f"{path}: the first line must be the subject")
    pin = read_pairs(root / "kernel" / "BASE", "=")
    below = ", ".join(series.name for series in stack[:-1] if series.patches)
    return (f"{subject.lstrip('# ')}\n\n{text.strip()}\n\n"
            f"Base: {pin.get('package')} {pin.get('version')} ({pin.get('upstream')}), "
            f"sha256 {pin.get('sha256')}" + (f"\nPrerequisite series: {below}" if below else ""))


def branch_below(stack: list[Series]) -> str:
    return (["base"] + [series.name for series in stack[:-1] if series.patches])[-1]


def format_patch(repo: Path, stack: list[Series], mails: Path, *options: str) -> None:
    if stack[-1].patches:
        git(repo, "format-patch", "--quiet", "--zero-commit", "--signature=", "--no-base", *options,
            "-o", str(mails), f"{branch_below(stack)}..{stack[-1].name}")


def write_mails(root: Path, repo: Path, stack: list[Series], mails: Path) -> None:
    mails.mkdir(parents=True, exist_ok=True)
    for stale in mails.glob("*.patch"):
        stale.unlink()
    git(repo, "config", f"branch.{stack[-1].name}.description", cover_letter(root, stack))
    format_patch(repo, stack, mails, "--full-index", "--cover-letter",
                 "--cover-from-description=subject")


def verify_mails(repo: Path, stack: list[Series], mails: list[Path]) -> None:
    """Raises an error unless git am of the mails gives the tree of the patches, byte for byte."""
    series = stack[-1]
    if len(mails) != len(series.patches):
        raise SeriesError(f"{series.name}: {len(series.patches)} patches, {len(mails)} mails")
    if mails:
        git(repo, "checkout", "--quiet", "--detach", branch_below(stack))
        git(repo, "am", "--quiet", *(str(mail.resolve()) for mail in mails))
        different = git(repo, "diff", "--name-only", series.name).split()
        if different:
            raise SeriesError(f"{series.name}: the mails do not give the applied tree: "
                              f"{', '.join(different)}")


def export_mails(root: Path, base: Path, name: str, mails: Path, sender: str = "",
                 verify: bool = False) -> Series:
    stack = stack_below(root, [name])
    with tempfile.TemporaryDirectory(prefix="series-export-") as folder:
        repo = Path(folder) / "repo"
        make_scratch(repo, base, stack, sender)
        write_mails(root, repo, stack, mails)
        if verify:
            verify_mails(repo, stack, sorted(mails.glob("*.patch"))[1:])
            if not any(patch.files or not patch.is_mail for patch in stack[-1].patches):
                verify_mails(repo, stack, [patch.path for patch in stack[-1].patches])
    return stack[-1]


# ---- stored mails ----

def tidy(mail: str, patch: Patch) -> str:
    """Removes index lines, which depend on earlier patches; adds a message id and puts the subject
    into one line, because b4 needs both."""
    subject = SUBJECT_LINES.search(mail)[1].replace("\n ", " ")
    mail_id = f"Message-Id: <{patch.name}.{patch.series}@amdkfd-criu.example>"
    return INDEX_LINE.sub("", SUBJECT_LINES.sub(f"{mail_id}\n{subject}", mail, count=1))


def tidy_mails(root: Path, base: Path, name: str, branches: Path | None = None) -> dict[Path, bytes]:
    """Returns the series' stored mails as git writes them now, with correct diffstat and line
    numbers; with branches, it takes the commits of that repository. The mails have no files
    of an overlay."""
    stack = stack_below(root, [name])
    patches = stack[-1].patches
    if branches and any(patch.files or not patch.is_mail for patch in patches):
        raise SeriesError(f"{name}: only a series of mails can be read from a branch")
    stack[-1].patches = [dataclasses.replace(patch, files={}) for patch in patches]
    with tempfile.TemporaryDirectory(prefix="series-tidy-") as folder:
        repo, out = branches or Path(folder) / "repo", Path(folder) / "mails"
        if not branches:
            make_scratch(repo, base, stack)
        format_patch(repo, stack, out, "--no-numbered")
        mails = sorted(out.glob("*"))
        if len(mails) != len(patches):
            raise SeriesError(f"{name}: {len(patches)} patches are stored, {repo} has {len(mails)} "
                              "commits: make `series` agree first")
        for patch, mail in zip(patches, mails, strict=True):
            if patch.is_mail and not mail.stat().st_size:
                raise SeriesError(f"{patch.path}: git finds no change in it: each file's diff begins with the "
                                  "lines `--- a/FILE` and `+++ b/FILE`")
        return {patch.path: tidy(mail.read_text(errors="surrogateescape"), patch).encode(
                    errors="surrogateescape")
                for patch, mail in zip(patches, mails) if patch.is_mail}
