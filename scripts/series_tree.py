# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""Makes the contents that patches give a kernel tree, and puts them into a tree.

Owns how a patch is applied and how a tree is brought up to date. Does not know
commits or mails. Files are replaced, never written through: a tree may consist
of hard links to the base.
"""
from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Iterator

from series_store import Patch, Series, SeriesError, SetupError, run_git

MANIFEST = ".series-manifest"


@dataclass
class Step:
    """The changes of one patch: the new contents of each file that it adds or edits."""
    patch: Patch
    contents: dict[str, bytes]
    offsets: list[str]  # hunks that applied, but not at the line they name


def apply_hooks(scratch: Path, patch: Patch) -> list[str]:
    """Applies the diff inside scratch; git accepts no fuzz. Returns the offsets of its hunks."""
    done = run_git(scratch, "apply", "--verbose", "--whitespace=nowarn", "-", stdin=patch.diff)
    if done.returncode != 0:
        failed = re.search(r"^error: patch failed: (.*):(\d+)$", done.stderr, re.MULTILINE)
        reason = (f"the hunk at line {failed[2]} of {failed[1]} does not apply (no fuzz allowed)"
                  if failed else f"does not apply: {done.stderr.strip().splitlines()[-1]}")
        raise SeriesError(f"{patch.path}: {reason}")
    offsets, current = [], ""
    for line in done.stderr.splitlines():
        if line.startswith("Checking patch "):
            current = line[len("Checking patch "):].rstrip(".")
        elif "(offset " in line:
            offsets.append(f"{patch.label}: {current}: {line}")
    return offsets


def check_place(base: Path, patch: Patch, owner: dict[str, str]) -> None:
    """Raises an error if a new file exists already, or if a hook is not on a file of the base."""
    for path in patch.files:
        if path in owner:
            raise SeriesError(f"{patch.label}: {path} is already owned by {owner[path]}")
        if (base / path).exists():
            raise SeriesError(f"{patch.label}: {path} exists upstream: edit it with a hook, "
                              "an overlay is for new files")
        owner[path] = patch.label
    for path in patch.added:
        if path in owner:
            raise SeriesError(f"{patch.label}: hook on {path}, which {owner[path]} adds: "
                              "edit the file in its overlay")
        if not (base / path).is_file():
            raise SeriesError(f"{patch.label}: hook on {path}, which the base does not have")


def steps(base: Path, stack: list[Series], upto: str = "") -> Iterator[Step]:
    """Yields each patch in order with the contents it produces; reads base and never writes to it."""
    owner: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="series-") as name:
        scratch = Path(name)
        for patch in (patch for series in stack for patch in series.patches):
            check_place(base, patch, owner)
            for path in patch.added:
                if not (scratch / path).exists():
                    (scratch / path).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(base / path, scratch / path)
            offsets = apply_hooks(scratch, patch) if patch.added else []
            contents = {path: source.read_bytes() for path, source in patch.files.items()}
            contents.update({path: (scratch / path).read_bytes() for path in patch.added})
            yield Step(patch, contents, offsets)
            if patch.label == upto:
                return
    if upto:
        raise SeriesError(f"no patch '{upto}' in these series")


def final_contents(base: Path, stack: list[Series], upto: str = "") -> dict[str, bytes]:
    contents: dict[str, bytes] = {}
    for step in steps(base, stack, upto):
        contents.update(step.contents)
    return contents


def replace_file(path: Path, data: bytes, mode: int = 0o644) -> None:
    """Replaces the file by a new inode, so that hard links to the old one keep its contents."""
    temporary = ""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".series-")
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
        os.chmod(temporary, mode)
        os.replace(temporary, path)
    except OSError as problem:
        if temporary:
            Path(temporary).unlink(missing_ok=True)
        raise SetupError(f"{path}: {problem.strerror}") from problem


def sync_tree(tree: Path, base: Path, contents: dict[str, bytes]) -> list[str]:
    """Makes tree equal to base plus contents; returns the paths that were changed.
    An unchanged file keeps its time stamp, so that make does not compile it again."""
    manifest = tree / MANIFEST
    before = json.loads(manifest.read_text()) if manifest.exists() else []
    # The manifest lists files before they are made, so that it has all of them even if the run is killed.
    if not set(contents) <= set(before):
        before = sorted({*before, *contents})
        replace_file(manifest, json.dumps(before, indent=0).encode())
    changed = []
    for path in before:
        target, origin = tree / path, base / path
        data = contents.get(path)
        if data is None and origin.is_file():
            data = origin.read_bytes()
        if (target.read_bytes() if target.is_file() else None) == data:
            continue
        if data is None:
            target.unlink()
        else:
            replace_file(target, data, origin.stat().st_mode & 0o777 if origin.is_file() else 0o644)
        changed.append(path)
    if before != sorted(contents):
        replace_file(manifest, json.dumps(sorted(contents), indent=0).encode())
    return changed


def state_hash(contents: dict[str, bytes]) -> str:
    digest = hashlib.sha256()
    for path, data in sorted(contents.items()):
        digest.update(f"{path}\0{len(data)}\0".encode() + data)
    return digest.hexdigest()
