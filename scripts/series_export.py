# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""`series.py export`: mails of a series, and proof that they are the series.

A scratch git repository holds only the upstream files that the series touch, as
they are in the base; each patch becomes a commit and format-patch makes mails.
Identities and dates are fixed, so equal input gives equal bytes. Does not send.
"""
from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
from pathlib import Path

import series as core
from series import Series, SeriesError, SetupError

COVER_SUBJECT, COVER_BLURB = "*** SUBJECT HERE ***", "*** BLURB HERE ***"


def git(repo: Path, *args: str, identity: str = "amdkfd-criu <amdkfd-criu@localhost>",
        minute: int = 0, stdin: str = "") -> str:
    """Run git without anybody's configuration; returns its output."""
    name, mail = core.IDENTITY.match(identity).groups()
    date = core.EXPORT_DATE.format(minute=minute)
    env = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    env.update(GIT_CONFIG_GLOBAL="/dev/null", GIT_CONFIG_NOSYSTEM="1", LC_ALL="C", TZ="UTC",
               GIT_AUTHOR_NAME=name, GIT_AUTHOR_EMAIL=mail, GIT_AUTHOR_DATE=date,
               GIT_COMMITTER_NAME=name, GIT_COMMITTER_EMAIL=mail, GIT_COMMITTER_DATE=date)
    done = subprocess.run(["git", *args], cwd=repo, env=env, input=stdin, text=True,
                          capture_output=True, check=False)
    if done.returncode != 0:
        raise SeriesError(f"git {' '.join(args[:3])}: {(done.stderr + done.stdout).strip()}")
    return done.stdout


def prerequisites(root: Path, name: str) -> list[str]:
    """The series under this one, from the first variant that names it."""
    for names in core.read_variants(root).values():
        if name in names:
            return names[:names.index(name)]
    return []


def base_files(base: Path, before: list[Series], series: Series) -> dict[str, bytes]:
    """What the first commit holds: the files that the patches edit, before them."""
    contents = core.final_contents(base, before)
    for path in {path for patch in series.patches for path in patch.hook_lines}:
        if path not in contents:
            if not (base / path).is_file():
                raise SeriesError(f"{series.name}: hook on {path}, which the base does not have")
            contents[path] = (base / path).read_bytes()
    return contents


def commit_all(repo: Path, contents: dict[str, bytes], message: str, **how) -> None:
    for path, data in contents.items():
        (repo / path).parent.mkdir(parents=True, exist_ok=True)
        (repo / path).write_bytes(data)
    if contents:
        git(repo, "add", "--force", "--", *contents)
    git(repo, "commit", "--quiet", "--allow-empty", "--cleanup=verbatim", "-F", "-",
        stdin=message, **how)


def new_repository(repo: Path, contents: dict[str, bytes]) -> None:
    repo.mkdir(parents=True)
    git(repo, "init", "--quiet", "--initial-branch=base")
    commit_all(repo, contents, "base\n")
    git(repo, "tag", "base")


def build_branch(repo: Path, base: Path, before: list[Series], series: Series) -> None:
    """The base commit and one commit for each patch."""
    new_repository(repo, base_files(base, before, series))
    own = {patch.label: index for index, patch in enumerate(series.patches)}
    for step in core.steps(base, before + [series]):
        if step.patch.label in own:
            author, message = core.split_message(step.patch)
            commit_all(repo, step.contents, message, identity=author,
                       minute=(own[step.patch.label] + 1) % 60)


def base_line(root: Path, before: list[Series]) -> str:
    pin = core.read_pairs(root / "kernel" / "BASE", "=")
    line = (f"Base: {pin.get('package')} {pin.get('version')} ({pin.get('upstream')}), "
            f"sha256 {pin.get('sha256')}")
    needed = [series.name for series in before if series.patches]
    return line + (f"\nPrerequisite series: {', '.join(needed)}" if needed else "")


def fill_cover(mails: Path, series: Series, footer: str) -> None:
    cover_file = series.folder / "cover.md"
    if not cover_file.is_file():
        raise SeriesError(f"{cover_file} does not exist")
    lines = [line for line in cover_file.read_text().strip().split("\n")
             if not line.startswith("<!--")]
    while lines and not lines[0].strip():
        lines = lines[1:]
    if not lines or not lines[0].lstrip("# "):
        raise SeriesError(f"{cover_file}: the first line must be the subject")
    subject, blurb = lines[0].lstrip("# ").strip(), "\n".join(lines[1:]).strip()
    mail = next(mails.glob("0000-*.patch"))
    text = mail.read_text()
    if COVER_SUBJECT not in text or COVER_BLURB not in text:
        raise SetupError("git format-patch made a cover letter of an unknown form")
    text = text.replace(COVER_SUBJECT, subject, 1).replace(
        COVER_BLURB, f"{blurb}\n\n{footer}".strip(), 1)
    mail.write_text(text)


def write_mails(repo: Path, mails: Path, series: Series, footer: str) -> None:
    mails.mkdir(parents=True, exist_ok=True)
    for stale in mails.glob("*.patch"):
        stale.unlink()
    if not series.patches:
        return
    author = core.split_message(series.patches[0])[0]
    git(repo, "format-patch", "--quiet", "--cover-letter", "--zero-commit", "--full-index",
        "--signature=", "--no-base", "-o", str(mails), "base..HEAD", identity=author)
    fill_cover(mails, series, footer)


def tree_files(tree: Path, skip: str) -> dict[str, bytes]:
    return {str(path.relative_to(tree)): path.read_bytes() for path in tree.rglob("*")
            if path.is_file() and path.relative_to(tree).parts[0] not in (skip, core.MANIFEST)}


def verify_mails(mails: Path, work: Path, base: Path, before: list[Series],
                 series: Series) -> None:
    """git am of every mail on a fresh base must give what apply gives, and no more."""
    start = base_files(base, before, series)
    imported, applied = work / "imported", work / "applied"
    new_repository(imported, start)
    patches = sorted(str(mail.resolve()) for mail in mails.glob("*.patch")
                     if not mail.name.startswith("0000-"))
    if len(patches) != len(series.patches):
        raise SeriesError(f"{series.name}: {len(series.patches)} patches, {len(patches)} mails")
    if patches:
        git(imported, "am", "--quiet", "--keep-non-patch", *patches)
    for path, data in start.items():
        (applied / path).parent.mkdir(parents=True, exist_ok=True)
        (applied / path).write_bytes(data)
    applied.mkdir(parents=True, exist_ok=True)
    core.sync_tree(applied, base, core.final_contents(base, before + [series]))
    have, want = tree_files(imported, ".git"), tree_files(applied, ".git")
    different = sorted(path for path in have.keys() | want.keys()
                       if have.get(path) != want.get(path))
    if different:
        raise SeriesError(f"{series.name}: the mails do not give the applied tree: "
                          f"{', '.join(different)}")


def export_series(root: Path, base: Path, name: str, mails: Path, verify: bool) -> Series:
    before = [core.read_series(root, other) for other in prerequisites(root, name)]
    series = core.read_series(root, name)
    with tempfile.TemporaryDirectory(prefix="series-export-") as folder:
        work = Path(folder)
        build_branch(work / "branch", base, before, series)
        write_mails(work / "branch", mails, series, base_line(root, before))
        if verify:
            verify_mails(mails, work, base, before, series)
    return series


def command_export(args: argparse.Namespace) -> None:
    names = args.series or list(dict.fromkeys(
        name for line in core.read_variants(args.root).values() for name in line))
    for name in names:
        mails = args.out.resolve() / name
        series = export_series(args.root, args.base, name, mails, args.verify)
        verified = ", verified" if args.verify else ""
        print(f"{name}: {len(series.patches)} patches in {mails}{verified}")
