#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""Patch series kept as readable files (kernel/README.md says why and how).

A series is kernel/<series>/{series,cover.md,patches/NNNN-slug/,overlay/}; a
patch is {message,files,hooks.diff}. This program makes trees and mails of them
and checks the rules. It knows nothing of building, except to call kernel.sh.
It writes only where it is told to (except `new`), and replaces files, never
writes through them: a tree may consist of hard links to a pristine one.

Terms: *base*, a pristine kernel tree; *overlay*, files that are new; *hook*, an
edit of a file that the base has; *variant*, a line of kernel/variants.
"""
from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Iterator

EXIT_FAIL, EXIT_USAGE, EXIT_INFRA = 1, 64, 125
MANIFEST = ".series-manifest"
SUBJECT_LIMIT = 75
HOOK_LINE_LIMIT = 15
FIX_SERIES = "fixes"  # holds real changes of upstream code, so no hook limit
TEMPLATE_SUBJECT = "area: say what the patch does"
PATCH_NAME = re.compile(r"^[0-9]{4}-[a-z0-9]+(-[a-z0-9]+)*$")
SUBJECT = re.compile(r"^[A-Za-z0-9_.,/-]+(/[A-Za-z0-9_.-]+)*(: [A-Za-z0-9_./-]+)*: \S.*[^.]$")
IDENTITY = re.compile(r"^(.+?) <([^<>@\s]+@[^<>\s]+)>$")
# Fixed, so that the same files always give the same mails.
EXPORT_DATE = "2026-01-01T00:{minute:02d}:00+0000"
# Noise: new files change no MAINTAINERS here, and there is no git history to
# look a commit id up in; and amdgpu declares its tables with uint32_t.
CHECKPATCH_IGNORE = ("FILE_PATH_CHANGES,GIT_COMMIT_ID,UNKNOWN_COMMIT_ID,EMAIL_SUBJECT,"
                     "PREFER_KERNEL_TYPES")


class SeriesError(Exception):
    """A rule is broken or a patch does not apply; the text is for the user."""


class SetupError(Exception):
    """Something outside the series is missing; not the series' fault."""


@dataclass(frozen=True)
class Placed:
    """One line of `files`: where the file goes, and where it is kept."""
    dest: str
    source: Path


@dataclass
class Patch:
    name: str
    series: str
    folder: Path
    message: str
    files: list[Placed]
    hooks: str
    hook_lines: dict[str, int] = field(default_factory=dict)  # path: added lines

    @property
    def label(self) -> str:
        return f"{self.series}/{self.name}"

    @property
    def subject(self) -> str:
        return split_message(self)[1].split("\n", 1)[0]


@dataclass
class Series:
    name: str
    folder: Path
    patches: list[Patch]


@dataclass
class Step:
    """What one patch does to the tree: the new contents of each file it touches."""
    patch: Patch
    contents: dict[str, bytes]
    offsets: list[str]  # hunks that applied, but not at the line they name


# ---- reading the stored form ----

def safe_path(text: str, where: str) -> str:
    path = Path(text)
    if path.is_absolute() or ".." in path.parts or str(path) != text or text == ".":
        raise SeriesError(f"{where}: '{text}' is not a plain relative path")
    return text


def data_lines(text: str) -> list[str]:
    """Lines without comments and blanks."""
    stripped = (line.strip() for line in text.splitlines())
    return [line for line in stripped if line and not line.startswith("#")]


def read_files_list(root: Path, series_dir: Path, listing: Path) -> list[Placed]:
    if not listing.exists():
        return []
    placed = []
    for line in data_lines(listing.read_text()):
        dest, arrow, source = (part.strip() for part in line.partition("<-"))
        safe_path(dest, str(listing))
        if arrow:
            safe_path(source, str(listing))
            if not source.startswith("kernel/uapi/"):
                raise SeriesError(f"{listing}: '<-' takes a file of kernel/uapi/, not {source}")
            path = root / source
        else:
            path = series_dir / "overlay" / dest
        if not path.is_file():
            raise SeriesError(f"{listing}: {path} does not exist")
        placed.append(Placed(dest, path))
    return placed


def count_hook_lines(text: str, where: str) -> dict[str, int]:
    """Added lines of each file; refuses anything but edits of existing files."""
    counts: dict[str, int] = {}
    lines = text.splitlines()
    current, old_left, new_left, index = "", 0, 0, 0
    while index < len(lines):
        line = lines[index]
        index += 1
        if old_left > 0 or new_left > 0:
            kind = line[:1]
            old_left -= kind in (" ", "-", "")
            new_left -= kind in (" ", "+", "")
            counts[current] += kind == "+"
        elif line.startswith("--- "):
            following = lines[index] if index < len(lines) else ""
            old, new = line[4:].split("\t")[0], following[4:].split("\t")[0]
            if not (old.startswith("a/") and following.startswith("+++ b/")) or old[2:] != new[2:]:
                raise SeriesError(f"{where}: '{line}' / '{following}': a hook edits an existing "
                                  "file, named a/PATH and b/PATH (new files go to overlay/)")
            current = safe_path(new[2:], where)
            counts.setdefault(current, 0)
            index += 1
        elif line.startswith("@@"):
            size = re.match(r"^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@", line)
            if not size or not current:
                raise SeriesError(f"{where}: malformed hunk header '{line}'")
            old_left, new_left = (int(n) if n is not None else 1 for n in size.groups())
    if old_left > 0 or new_left > 0:
        raise SeriesError(f"{where}: the last hunk is cut off")
    if not counts and data_lines(text):
        raise SeriesError(f"{where}: contains no unified diff")
    return counts


def read_patch(root: Path, series_name: str, series_dir: Path, name: str) -> Patch:
    folder = series_dir / "patches" / name
    if not PATCH_NAME.match(name):
        raise SeriesError(f"{series_name}: '{name}' is not of the form NNNN-slug")
    if not (folder / "message").is_file():
        raise SeriesError(f"{folder}/message does not exist")
    hooks_file = folder / "hooks.diff"
    hooks = hooks_file.read_text() if hooks_file.exists() else ""
    return Patch(name, series_name, folder, (folder / "message").read_text(),
                 read_files_list(root, series_dir, folder / "files"), hooks,
                 count_hook_lines(hooks, str(hooks_file)))


def read_series(root: Path, name: str) -> Series:
    folder = root / "kernel" / name
    if not (folder / "series").is_file():
        raise SeriesError(f"no series '{name}': {folder}/series does not exist")
    names = data_lines((folder / "series").read_text())
    return Series(name, folder, [read_patch(root, name, folder, n) for n in names])


def read_pairs(path: Path, separator: str) -> dict[str, str]:
    if not path.is_file():
        raise SetupError(f"{path} does not exist")
    pairs = (line.partition(separator) for line in data_lines(path.read_text()))
    return {key.strip(): value.strip() for key, _, value in pairs}


def read_variants(root: Path) -> dict[str, list[str]]:
    return {k: v.split() for k, v in read_pairs(root / "kernel" / "variants", ":").items()}


def variant_series(root: Path, variant: str) -> list[Series]:
    variants = read_variants(root)
    if variant not in variants:
        raise SeriesError(f"no variant '{variant}' in kernel/variants")
    return [read_series(root, name) for name in variants[variant]]


def split_message(patch: Patch) -> tuple[str, str]:
    """Author ("Name <mail>") and the commit message proper."""
    lines = patch.message.strip("\n").split("\n")
    author = ""
    if lines[0].startswith("From: "):
        author = lines[0][len("From: "):].strip()
        lines = lines[1:]
        while lines and not lines[0].strip():
            lines = lines[1:]
    if not author:
        signed = [line for line in lines if line.startswith("Signed-off-by: ")]
        author = signed[0].partition(": ")[2].strip() if signed else ""
    if not IDENTITY.match(author):
        raise SeriesError(f"{patch.label}: no author: give 'From:' or 'Signed-off-by: Name <mail>'")
    return author, "\n".join(lines) + "\n"


# ---- applying ----

def run_patch(scratch: Path, patch: Patch) -> list[str]:
    """Apply the hooks inside scratch, without fuzz. Returns the offsets used."""
    done = subprocess.run(
        ["patch", "-p1", "--fuzz=0", "--force", "--no-backup-if-mismatch", "--reject-file=-"],
        cwd=scratch, input=patch.hooks.encode(), capture_output=True,
        env={**os.environ, "LC_ALL": "C", "PATCH_GET": "0"}, check=False)
    offsets, current = [], ""
    for line in (done.stdout + done.stderr).decode(errors="replace").splitlines():
        if line.startswith("patching file "):
            current = line[len("patching file "):]
        failed = re.match(r"^Hunk #(\d+) (?:FAILED|ignored) at (\d+)", line)
        if failed:
            raise SeriesError(f"{patch.folder}/hooks.diff: hunk {failed[1]} of {current} does not "
                              f"apply (line {failed[2]}, no fuzz allowed)")
        if re.match(r"^Hunk #\d+ succeeded .*offset", line):
            offsets.append(f"{patch.label}: {current}: {line}")
    if done.returncode != 0:
        output = (done.stdout + done.stderr).decode(errors="replace").strip()
        raise SeriesError(f"{patch.folder}/hooks.diff does not apply: {output}")
    return offsets


def steps(base: Path, series: list[Series], upto: str = "") -> Iterator[Step]:
    """Each patch in order with the contents it produces; reads base, writes nothing there."""
    owner: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="series-") as name:
        scratch = Path(name)
        for patch in (p for s in series for p in s.patches):
            for placed in patch.files:
                if placed.dest in owner:
                    raise SeriesError(f"{patch.label}: {placed.dest} is already owned by "
                                      f"{owner[placed.dest]}")
                if (base / placed.dest).exists():
                    raise SeriesError(f"{patch.label}: {placed.dest} exists upstream: edit it with "
                                      "a hook, an overlay is for new files")
                owner[placed.dest] = patch.label
            contents = {placed.dest: placed.source.read_bytes() for placed in patch.files}
            for path in patch.hook_lines:
                if path in owner:
                    raise SeriesError(f"{patch.label}: hook on {path}, which {owner[path]} brings "
                                      "whole: change it there")
                if not (base / path).is_file():
                    raise SeriesError(f"{patch.label}: hook on {path}, which the base does not have")
                if not (scratch / path).exists():
                    (scratch / path).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(base / path, scratch / path)
            offsets = run_patch(scratch, patch) if patch.hook_lines else []
            contents.update({path: (scratch / path).read_bytes() for path in patch.hook_lines})
            yield Step(patch, contents, offsets)
            if patch.label == upto:
                return
    if upto:
        raise SeriesError(f"no patch '{upto}' in these series")


def final_contents(base: Path, series: list[Series], upto: str = "") -> dict[str, bytes]:
    contents: dict[str, bytes] = {}
    for step in steps(base, series, upto):
        contents.update(step.contents)
    return contents


def replace_file(path: Path, data: bytes, mode: int) -> None:
    """A new inode in place of the old: hard links to the old one keep its contents."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".series-")
    with os.fdopen(handle, "wb") as stream:
        stream.write(data)
    os.chmod(temporary, mode)
    os.replace(temporary, path)


def sync_tree(tree: Path, base: Path, contents: dict[str, bytes]) -> list[str]:
    """Make tree equal to base plus contents; returns the paths that were changed.
    A file that is already right keeps its time stamp, so make rebuilds little."""
    manifest = tree / MANIFEST
    before = json.loads(manifest.read_text()) if manifest.exists() else []
    changed = []
    for path, data in sorted(contents.items()):
        target, origin = tree / path, base / path
        if target.is_file() and target.read_bytes() == data:
            continue
        mode = origin.stat().st_mode & 0o777 if origin.exists() else 0o644
        replace_file(target, data, mode)
        changed.append(path)
    for path in sorted(set(before) - set(contents)):
        if (base / path).is_file():
            replace_file(tree / path, (base / path).read_bytes(), (base / path).stat().st_mode & 0o777)
        else:
            (tree / path).unlink(missing_ok=True)
        changed.append(path)
    if before != sorted(contents):
        replace_file(manifest, json.dumps(sorted(contents), indent=0).encode(), 0o644)
    return changed


def state_hash(contents: dict[str, bytes]) -> str:
    digest = hashlib.sha256()
    for path, data in sorted(contents.items()):
        digest.update(f"{path}\0{len(data)}\0".encode() + data)
    return digest.hexdigest()


def command_apply(args: argparse.Namespace) -> None:
    tree = Path(args.tree)
    if not tree.is_dir():
        raise SetupError(f"{tree} is not a directory")
    if not args.base_given and (tree / MANIFEST).exists():
        raise SeriesError(f"{tree} already has series applied; give --base to bring it up to date")
    base = Path(args.base_given or args.tree)
    series = (variant_series(args.root, args.variant) if args.variant
              else [read_series(args.root, name) for name in args.series])
    contents = final_contents(base, series, args.upto)
    if not args.dry_run:
        for path in sync_tree(tree, base, contents):
            print(f"changed {path}")
    print(f"state {state_hash(contents)}")


def command_new(args: argparse.Namespace) -> None:
    folder = args.root / "kernel" / args.name
    series = read_series(args.root, args.name)
    numbers = [int(patch.name[:4]) for patch in series.patches]
    name = f"{max(numbers, default=0) + 1:04d}-{args.slug}"
    if not PATCH_NAME.match(name):
        raise SeriesError(f"slug '{args.slug}': lower case words joined by '-'")
    target = folder / "patches" / name
    target.mkdir(parents=True)
    (target / "message").write_text(
        f"{TEMPLATE_SUBJECT}\n\nThe problem; the rule it broke or adds; why this way.\n\n"
        f"Signed-off-by: {git_identity()}\n")
    (target / "files").write_text("# path/in/tree, or: path/in/tree <- kernel/uapi/...\n")
    (target / "hooks.diff").write_text("")
    with (folder / "series").open("a") as stream:
        stream.write(name + "\n")
    print(target)


def git_identity() -> str:
    def value(key: str) -> str:
        done = subprocess.run(["git", "config", key], capture_output=True, text=True, check=False)
        return done.stdout.strip()
    return f"{value('user.name') or 'Your Name'} <{value('user.email') or 'you@example.org'}>"


def default_base(root: Path) -> Path:
    return Path(os.environ.get("OUT_DIR") or root / "out") / "kernel" / "pristine"


def parse_arguments(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="series.py", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent,
                        help="project whose kernel/ is meant (default: this one)")
    common.add_argument("--base", dest="base_given", default="",
                        help="pristine kernel tree (default: out/kernel/pristine)")
    commands = parser.add_subparsers(dest="command", required=True)

    def command(name: str, text: str) -> argparse.ArgumentParser:
        return commands.add_parser(name, help=text, description=text, parents=[common])

    apply = command("apply", "make TREE the base plus series")
    apply.add_argument("tree")
    apply.add_argument("series", nargs="*")
    apply.add_argument("--variant", default="", help="the series of this line of kernel/variants")
    apply.add_argument("--upto", default="", metavar="SERIES/PATCH", help="stop after this patch")
    apply.add_argument("--dry-run", action="store_true", help="only say whether it would work")
    check = command("check", "check the rules of kernel/README.md")
    check.add_argument("--build", action="store_true", help="also build every prefix (long)")
    check.add_argument("--no-checkpatch", action="store_true", help="leave checkpatch.pl out")
    export = command("export", "write the series as mails")
    export.add_argument("out", type=Path)
    export.add_argument("series", nargs="*", help="(default: all)")
    export.add_argument("--verify", action="store_true",
                        help="import the mails with git am and compare with apply")
    new = command("new", "begin a patch at the end of a series")
    new.add_argument("name", metavar="series")
    new.add_argument("slug")
    args = parser.parse_args(argv)
    args.root = args.root.resolve()
    args.base = Path(args.base_given).resolve() if args.base_given else default_base(args.root)
    return args


def run(argv: list[str]) -> int:
    # Imported here: both build on this file.
    import series_check
    import series_export
    try:
        args = parse_arguments(argv)
    except SystemExit as stop:
        return EXIT_USAGE if stop.code else 0
    try:
        if args.command in ("check", "export") and not (args.base / "Makefile").is_file():
            raise SetupError(f"no kernel tree at {args.base}: run scripts/kernel.sh tree")
        if args.command == "apply":
            command_apply(args)
        elif args.command == "new":
            command_new(args)
        elif args.command == "export":
            series_export.command_export(args)
        else:
            return series_check.command_check(args)
    except SeriesError as problem:
        print(f"series.py: error: {problem}", file=sys.stderr)
        return EXIT_FAIL
    except (SetupError, OSError, subprocess.SubprocessError) as problem:
        print(f"series.py: error: {problem}", file=sys.stderr)
        return EXIT_INFRA
    return 0


if __name__ == "__main__":
    # So that `import series` elsewhere means this very module, not a second copy.
    sys.modules["series"] = sys.modules["__main__"]
    sys.exit(run(sys.argv[1:]))
