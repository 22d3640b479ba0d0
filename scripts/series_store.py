# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""Reads the patch store: kernel/<series>/ becomes objects (kernel/README.md).

Owns the form of the store and the way in which git is called. Does not know
how a tree, a branch or a mail is made. Writes nothing.

Terms: *base*, a pristine kernel tree; *overlay*, files that are new; *hook*, an
edit of a file that the base has; *variant*, a line of kernel/variants.
"""
from __future__ import annotations

import email
import email.policy
import errno
import os
import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

EXIT_FAIL, EXIT_USAGE, EXIT_INFRA = 1, 64, 125
# The author of a patch without a From: line; the sender replaces it.
PROJECT = "amdkfd-criu founders <founders@amdkfd-criu.example>"
# One fixed date, so that equal files give equal mails and equal commits.
DATE = "2026-01-01T00:00:00+0000"
PATCH_NAME = re.compile(r"[0-9]{4}-[a-z0-9]+(-[a-z0-9]+)*")
IDENTITY = re.compile(r"(.+?) <([^<>@\s]+@[^<>\s]+)>")
SIGNED = "Signed-off-by: "


class SeriesError(Exception):
    """A rule is broken or a patch does not apply; the text is for the user."""


class UsageError(Exception):
    """The command line names something that does not exist."""


class SetupError(Exception):
    """Something outside the series is missing, or the disk is full; the series are not wrong."""


@dataclass
class Patch:
    series: str
    name: str  # NNNN-slug
    path: Path  # the file that holds the diff
    author: str  # Name <mail>
    message: str  # subject, blank line, body
    diff: str
    claims: list[str]  # lines of `files`: overlay paths, or FOLDER/*
    added: dict[str, int] = field(default_factory=dict)  # hooked file: added lines
    files: dict[str, Path] = field(default_factory=dict)  # path in the tree: overlay file

    @property
    def label(self) -> str:
        return f"{self.series}/{self.name}"

    @property
    def is_mail(self) -> bool:
        return self.path.suffix == ".patch"

    @property
    def sign_offs(self) -> list[str]:
        return [line[len(SIGNED):] for line in self.message.splitlines() if line.startswith(SIGNED)]


@dataclass
class Series:
    name: str
    folder: Path
    patches: list[Patch]
    unowned: list[str] = field(default_factory=list)  # overlay files that no patch adds


def run_git(cwd: Path, *args: str, stdin: str = "",
            identity: str = PROJECT, author: str = "") -> subprocess.CompletedProcess:
    """Runs git in cwd without the user's configuration, and without a repository above cwd."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    env.update(GIT_CONFIG_GLOBAL="/dev/null", GIT_CONFIG_NOSYSTEM="1", LC_ALL="C", TZ="UTC",
               GIT_CEILING_DIRECTORIES=str(cwd.resolve().parent))
    for role, who in (("AUTHOR", author or identity), ("COMMITTER", identity)):
        name, mail = IDENTITY.fullmatch(who).groups()
        env.update({f"GIT_{role}_NAME": name, f"GIT_{role}_EMAIL": mail, f"GIT_{role}_DATE": DATE})
    # safe.directory because another user than the one who builds may own the checkout.
    done = subprocess.run(["git", "-c", "safe.directory=*", *args], cwd=cwd, env=env, input=stdin,
                          text=True, errors="surrogateescape", capture_output=True, check=False)
    if done.returncode < 0:
        raise SetupError(f"git {args[0]} in {cwd} was ended by signal {-done.returncode}")
    if done.returncode != 0 and os.strerror(errno.ENOSPC) in done.stderr:
        raise SetupError(f"git {args[0]} in {cwd}: {os.strerror(errno.ENOSPC)}")
    return done


def git(cwd: Path, *args: str, **how) -> str:
    """Returns the output of git, which must succeed."""
    done = run_git(cwd, *args, **how)
    if done.returncode != 0:
        reason = "; ".join((done.stderr + done.stdout).strip().splitlines()[:3])
        raise SeriesError(f"git {args[0]} in {cwd}: {reason}")
    return done.stdout


def data_lines(text: str) -> list[str]:
    """Returns the lines that are neither comments nor blank."""
    stripped = (line.strip() for line in text.splitlines())
    return [line for line in stripped if line and not line.startswith("#")]


# ---- patches ----

def count_added(diff: str, where: Path) -> dict[str, int]:
    """Returns the number of added lines of each file; refuses a diff that adds or removes files."""
    if not data_lines(diff):
        return {}
    done = run_git(where.parent, "apply", "--numstat", "--summary", "-", stdin=diff)
    if done.returncode != 0:
        raise SeriesError(f"{where}: no unified diff: {done.stderr.strip().splitlines()[0]}")
    added = {}
    for line in done.stdout.splitlines():
        if line.startswith(" "):
            raise SeriesError(f"{where}:{line}: a hook edits an existing file, "
                              "and new files go to overlay/")
        count, _, path = line.split("\t")
        if path.startswith("/") or ".." in Path(path).parts:
            raise SeriesError(f"{where}: '{path}' is not a plain relative path")
        added[path] = int(count)
    return added


def check_author(author: str, where: Path) -> str:
    if not IDENTITY.fullmatch(author):
        raise SeriesError(f"{where}: the author is not 'Name <mail>': '{author}'")
    return author


def read_mail(series: str, path: Path) -> Patch:
    """Reads a mail as `git format-patch` writes it and `git am` reads it."""
    mail = email.message_from_bytes(path.read_bytes(), policy=email.policy.default)
    text = mail.get_payload(decode=True).decode(errors="surrogateescape")
    body, ruler, rest = text.partition("\n---\n")
    if not ruler or not mail["Subject"]:
        raise SeriesError(f"{path}: no mail with 'Subject:' and a line '---' after the message")
    start = re.search(r"^(diff --git |--- a/)", rest, re.MULTILINE)
    subject = re.sub(r"^(\[[^]]*\] *)+", "", mail["Subject"])
    return Patch(series, path.stem, path, check_author(mail["From"] or "", path),
                 f"{subject}\n\n{body.strip()}\n", rest[start.start():] if start else "", [])


def read_folder(series: str, folder: Path) -> Patch:
    """Reads a folder with message, files and hooks.diff; the last two may be absent."""
    def text(name: str) -> str:
        path = folder / name
        return path.read_text(errors="surrogateescape") if path.is_file() else ""
    if not (folder / "message").is_file():
        raise SeriesError(f"{folder}/message does not exist")
    message = text("message").strip() + "\n"
    author = PROJECT
    if message.startswith("From: "):
        author, _, message = message[len("From: "):].partition("\n")
    return Patch(series, folder.name, folder / "hooks.diff", check_author(author, folder / "message"),
                 message.lstrip("\n"), text("hooks.diff"), data_lines(text("files")))


def read_patch(series: str, folder: Path, entry: str) -> Patch:
    mail = entry.endswith(".patch")
    if not PATCH_NAME.fullmatch(entry.removesuffix(".patch")):
        raise SeriesError(f"{series}: '{entry}' in `series` is neither NNNN-slug nor NNNN-slug.patch")
    path = folder / entry if mail else folder / "patches" / entry
    if not path.exists():
        raise SeriesError(f"{series}: {path} does not exist")
    patch = read_mail(series, path) if mail else read_folder(series, path)
    patch.added = count_added(patch.diff, patch.path)
    return patch


# ---- series ----

def overlay_paths(root: Path, overlay: Path) -> list[str]:
    """Returns the files below overlay; in a checkout, without the build results that git ignores."""
    if not overlay.is_dir():
        return []
    if (root / ".git").exists():
        listed = git(root, "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--",
                     str(overlay)).split("\0")
        found = {root / name for name in listed if name}
    else:
        found = set(overlay.rglob("*"))
    for path in found:
        if path.is_symlink() and not path.resolve().is_relative_to(root / "kernel"):
            raise SeriesError(f"{path}: a link of the overlay leads to a file below kernel/")
    return sorted(str(path.relative_to(overlay)) for path in found if path.is_file())


def claim_fits(claim: str, path: str) -> bool:
    return claim == path or claim == "*" or (claim.endswith("/*") and path.startswith(claim[:-1]))


def share_overlay(root: Path, series: Series) -> None:
    """Assigns each overlay file to exactly one patch: a path takes precedence over FOLDER/*, and a
    deeper folder over a higher one. Files that no `files` names belong to the first mail."""
    overlay = series.folder / "overlay"
    for mail in [patch for patch in series.patches if patch.is_mail][:1]:
        mail.claims.append("*")
    claims = [(claim, patch) for patch in series.patches for claim in patch.claims]
    paths = overlay_paths(root, overlay)
    for claim, patch in claims:
        if claim != "*" and not any(claim_fits(claim, path) for path in paths):
            raise SeriesError(f"{patch.label}: {overlay / claim} does not exist")
    for path in paths:
        fitting = [claim for claim, _ in claims if claim_fits(claim, path)]
        best = path if path in fitting else max(fitting, key=len, default="")
        owners = [patch for claim, patch in claims if claim == best]
        if len(owners) > 1:
            raise SeriesError(f"{series.name}: overlay/{path} is owned by {len(owners)} patches, "
                              "must be exactly one")
        if owners:
            owners[0].files[path] = overlay / path
        else:
            series.unowned.append(path)


def read_series(root: Path, name: str) -> Series:
    folder = root / "kernel" / name
    if not (folder / "series").is_file():
        raise SeriesError(f"no series '{name}': {folder}/series does not exist")
    entries = data_lines((folder / "series").read_text())
    series = Series(name, folder, [read_patch(name, folder, entry) for entry in entries])
    share_overlay(root, series)
    return series


def read_pairs(path: Path, separator: str) -> dict[str, str]:
    if not path.is_file():
        raise SetupError(f"{path} does not exist")
    pairs = (line.partition(separator) for line in data_lines(path.read_text()))
    return {key.strip(): value.strip() for key, _, value in pairs}


def read_variants(root: Path) -> dict[str, list[str]]:
    return {k: v.split() for k, v in read_pairs(root / "kernel" / "variants", ":").items()}


def variant_series(root: Path, variant: str) -> list[Series]:
    return [read_series(root, name) for name in read_variants(root)[variant]]


def all_names(root: Path) -> list[str]:
    """Returns every series of kernel/variants, once."""
    return list(dict.fromkeys(name for line in read_variants(root).values() for name in line))


def stack_below(root: Path, names: list[str]) -> list[Series]:
    """Returns the named series and those below them, from the first variant with all of them."""
    for line in read_variants(root).values():
        if set(names) <= set(line):
            top = max(line.index(name) for name in names)
            return [read_series(root, name) for name in line[:top + 1]]
    raise UsageError(f"no variant in kernel/variants has all of: {' '.join(names)}")
