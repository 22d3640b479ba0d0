#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""Makes trees, mails and git branches of the patch series in kernel/ (kernel/README.md).

Owns the command line. series_store reads the store, series_tree applies it,
series_export makes commits and mails, series_check checks the rules. Writes only
to the paths of the command line; `new` and `refresh` write to the store.
"""
from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
from pathlib import Path

import series_check
import series_export
import series_store as store
import series_tree

MAIL_TEMPLATE = """From 0000000000000000000000000000000000000000 Mon Sep 17 00:00:00 2001
From: {author}
Date: Thu, 1 Jan 2026 00:00:00 +0000
Subject: [PATCH] {message}
---

The output of `git diff` or `diff -u` belongs here; then run series.py refresh.
"""


def command_apply(args: argparse.Namespace) -> int:
    tree = Path(args.tree)
    if not tree.is_dir():
        raise store.SetupError(f"{tree} is not a directory")
    if not args.base_given and (tree / series_tree.MANIFEST).exists():
        raise store.SeriesError(f"{tree} already has series applied; give --base to bring it up "
                                "to date")
    base = Path(args.base_given or args.tree)
    stack = (store.variant_series(args.root, args.variant) if args.variant
             else [store.read_series(args.root, name) for name in args.series])
    contents = series_tree.final_contents(base, stack, args.upto)
    if not args.dry_run:
        for path in series_tree.sync_tree(tree, base, contents):
            print(f"changed {path}")
    print(f"state {series_tree.state_hash(contents)}")
    return 0


def command_check(args: argparse.Namespace) -> int:
    return series_check.check_store(args.root, args.base, not args.no_checkpatch, args.build)


def command_export(args: argparse.Namespace) -> int:
    names, sender = args.series or store.all_names(args.root), args.signoff or ""
    if args.branch:
        made = series_export.export_branch(args.root, args.base, names, args.branch.resolve(),
                                           sender)
        print(f"{args.branch}: branches base, {', '.join(made)}")
    else:
        for name in names:
            mails = args.out.resolve() / name
            series = series_export.export_mails(args.root, args.base, name, mails, sender, args.verify)
            verified = ", verified" if args.verify else ""
            print(f"{name}: {len(series.patches)} patches in {mails}{verified}")
    if not sender:
        print("not signed off: to send the mails, export them with --signoff 'NAME <MAIL>'")
    return 0


def git_identity(root: Path) -> str:
    """Returns the user of git's configuration, or the project."""
    def value(key: str) -> str:
        done = subprocess.run(["git", "config", key], cwd=root, capture_output=True, text=True,
                              check=False)
        return done.stdout.strip()
    identity = f"{value('user.name')} <{value('user.email')}>"
    return identity if store.IDENTITY.fullmatch(identity) else store.PROJECT


def command_new(args: argparse.Namespace) -> int:
    series = store.read_series(args.root, args.series[0])
    number = max((int(patch.name[:4]) for patch in series.patches), default=0) + 1
    name = f"{number:04d}-{args.slug}"
    if not store.PATCH_NAME.fullmatch(name):
        raise store.UsageError(f"slug '{args.slug}': lower case words joined by '-'")
    author = git_identity(args.root)
    message = f"{series_check.TEMPLATE_SUBJECT}\n\nSymptom; cause; fix; the test that shows it.\n"
    if author != store.PROJECT:
        message += f"\n{store.SIGNED}{author}\n"
    if (series.folder / "patches").is_dir():
        entry, target = name, series.folder / "patches" / name
        target.mkdir()
        (target / "message").write_text(f"From: {author}\n\n{message}")
        (target / "files").write_text("# path/in/tree below overlay/, or path/in/tree/*\n")
        (target / "hooks.diff").write_text("")
    else:
        entry = f"{name}.patch"
        target = series.folder / entry
        target.write_text(MAIL_TEMPLATE.format(author=author, message=message.rstrip("\n")))
    with (series.folder / "series").open("a") as stream:
        stream.write(entry + "\n")
    print(target)
    return 0


def command_refresh(args: argparse.Namespace) -> int:
    for name in args.series or store.all_names(args.root):
        for path, text in series_export.tidy_mails(args.root, args.base, name,
                                                   args.branches).items():
            if path.read_bytes() != text:
                series_tree.replace_file(path, text)
                print(f"changed {path}")
    return 0


# ---- command line ----

class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> None:
        raise store.UsageError(message)


def identity(text: str) -> str:
    if not store.IDENTITY.fullmatch(text):
        raise argparse.ArgumentTypeError(f"'{text}' is not 'NAME <MAIL>'")
    return text


def make_parser() -> Parser:
    parser = Parser(prog="series.py", description=__doc__,
                    formatter_class=argparse.RawDescriptionHelpFormatter)
    common = Parser(add_help=False)
    common.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent,
                        help="project whose kernel/ is meant (default: this one)")
    common.add_argument("--base", dest="base_given", default="",
                        help="pristine kernel tree (default: out/kernel/pristine)")
    commands = parser.add_subparsers(dest="command", required=True)

    def command(run, text: str) -> Parser:
        name = run.__name__.removeprefix("command_")
        added = commands.add_parser(name, help=text, description=text, parents=[common])
        added.set_defaults(run=run, needs_base=run in (command_check, command_export,
                                                       command_refresh))
        return added

    apply = command(command_apply, "make TREE the base plus series")
    apply.add_argument("tree")
    apply.add_argument("series", nargs="*")
    apply.add_argument("--variant", default="", help="the series of this line of kernel/variants")
    apply.add_argument("--upto", default="", metavar="SERIES/PATCH", help="stop after this patch")
    apply.add_argument("--dry-run", action="store_true", help="only check whether the patches apply")
    check = command(command_check, "check the rules of kernel/README.md")
    check.add_argument("--build", action="store_true", help="also build every prefix (long)")
    check.add_argument("--no-checkpatch", action="store_true", help="do not run checkpatch.pl")
    export = command(command_export, "write series as mails into OUT, or as commits")
    export.add_argument("out", type=Path, nargs="?")
    export.add_argument("series", nargs="*", help="(default: all)")
    export.add_argument("--branch", type=Path, metavar="DIR",
                        help="instead: a kernel tree in git, a branch a series, a commit a patch")
    export.add_argument("--signoff", type=identity, default=None, metavar="'NAME <MAIL>'",
                        help="who sends: signs every patch off, and is the author of the project's")
    export.add_argument("--verify", action="store_true",
                        help="import the mails with git am and compare with apply")
    new = command(command_new, "begin a patch at the end of a series")
    new.add_argument("series", nargs=1)
    new.add_argument("slug")
    refresh = command(command_refresh, "correct diffstat and line numbers of stored mails")
    refresh.add_argument("series", nargs="*", help="(default: all)")
    refresh.add_argument("--from", dest="branches", type=Path, metavar="DIR",
                         help="take the patches from a repository that export --branch made")
    return parser


def parse_arguments(argv: list[str]) -> argparse.Namespace:
    args = make_parser().parse_args(argv)
    args.root = args.root.resolve()
    default = Path(os.environ.get("OUT_DIR") or args.root / "out") / "kernel" / "pristine"
    args.base = Path(args.base_given).resolve() if args.base_given else default
    if args.command == "export":
        if args.branch and args.verify:
            raise store.UsageError("--verify is for mails")
        if args.branch:  # no folder for mails: every word is a series
            args.series = [str(args.out), *args.series] if args.out else []
        elif not args.out:
            raise store.UsageError("export needs a folder for the mails, or --branch DIR")
    variants = store.read_variants(args.root)
    if getattr(args, "variant", "") and args.variant not in variants:
        raise store.UsageError(f"no variant '{args.variant}', there is: {', '.join(variants)}")
    for name in getattr(args, "series", []):
        if not (args.root / "kernel" / name / "series").is_file():
            raise store.UsageError(f"no series '{name}', there is: "
                                   f"{', '.join(store.all_names(args.root))}")
    if args.needs_base and not (args.base / "Makefile").is_file():
        raise store.SetupError(f"no kernel tree at {args.base}: run scripts/kernel.sh tree")
    return args


def run(argv: list[str]) -> int:
    def fail(status: int, text: object) -> int:
        print(f"series.py: error: {text}", file=sys.stderr)
        return status
    try:
        args = parse_arguments(argv)
        return args.run(args)
    except SystemExit as done:  # --help
        return done.code or 0
    except store.UsageError as problem:
        return fail(store.EXIT_USAGE, problem)
    except store.SeriesError as problem:
        return fail(store.EXIT_FAIL, problem)
    except (store.SetupError, OSError, subprocess.SubprocessError) as problem:
        return fail(store.EXIT_INFRA, problem)
    except KeyboardInterrupt:
        return fail(store.EXIT_INFRA, "interrupted")


def stop(*_) -> None:
    """Ends the program on SIGTERM as on Ctrl-C, so that temporary folders are removed."""
    raise KeyboardInterrupt


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, stop)
    sys.exit(run(sys.argv[1:]))
