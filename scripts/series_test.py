#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""Tests of series.py on a miniature kernel tree in a temporary folder.

Run: python3 scripts/series_test.py, or pytest. Needs git and patch.
"""
from __future__ import annotations

import contextlib
import errno
import io
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
import unittest.mock
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.dont_write_bytecode = True
import series  # noqa: E402
import series_check  # noqa: E402
import series_export  # noqa: E402
import series_store  # noqa: E402
import series_tree  # noqa: E402

SERIES_PY = Path(__file__).resolve().parent / "series.py"

MAKEFILE = "obj-y += one.o\nobj-y += two.o\nobj-y += three.o\nobj-y += four.o\nobj-y += five.o\n"
HOOK = """--- a/drivers/gpu/Makefile
+++ b/drivers/gpu/Makefile
@@ -2,4 +2,5 @@
 obj-y += two.o
 obj-y += three.o
+obj-y += demo/
 obj-y += four.o
 obj-y += five.o
"""
ANN, BOB = "Ann Author <ann@example.org>", "Bob Sender <bob@example.org>"
MESSAGE = """drm/demo: add a demonstration

It shows something.
"""
ANNS_MESSAGE = f"From: {ANN}\n\n{MESSAGE}\nSigned-off-by: {ANN}\n"
MAIL = f"""From: {series_store.PROJECT}
Subject: [PATCH] drm/demo: count in long

An int is too small.
---
The diff follows; the next series.py refresh puts the diffstat here.

--- a/drivers/gpu/core.c
+++ b/drivers/gpu/core.c
@@ -1 +1 @@
-int core;
+long core;
"""
SOURCE = "// SPDX-License-Identifier: MIT\nint demo(void) { return 1; }\n"


class MiniatureProject(unittest.TestCase):
    """A base tree and a project with one series `demo` of two patches."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="series-test-")
        self.addCleanup(folder.cleanup)
        self.work = Path(folder.name)
        self.base, self.root = self.work / "base", self.work / "project"
        self.write(self.base / "Makefile", "# kernel\n")
        self.write(self.base / "drivers/gpu/Makefile", MAKEFILE)
        self.write(self.base / "drivers/gpu/core.c", "int core;\n")
        kernel = self.root / "kernel"
        self.demo = kernel / "demo"
        self.write(kernel / "BASE", "package=linux-mini\nversion=1\nupstream=v1\nsha256=ab\n")
        self.write(kernel / "variants", "stock: demo\n")
        self.write(kernel / "uapi/demo/demo_abi.h", "/* SPDX-License-Identifier: MIT */\n")
        header = self.demo / "overlay/include/uapi/demo_abi.h"
        header.parent.mkdir(parents=True)
        header.symlink_to("../../../../uapi/demo/demo_abi.h")
        self.write(self.demo / "cover.md", "# drm/demo: a demonstration\n\nWhy it exists.\n")
        self.write(self.demo / "series", "0001-abi\n0002-driver\n")
        self.write(self.demo / "overlay/drivers/gpu/demo/demo.c", SOURCE)
        self.add_patch("0001-abi", MESSAGE.replace("add a demonstration", "add the ABI"),
                       "include/uapi/demo_abi.h\n", "")
        self.add_patch("0002-driver", MESSAGE, "drivers/gpu/demo/demo.c\n", HOOK)

    def add_fixes(self):
        """A series of one mail, below the one of folders."""
        fixes = self.root / "kernel/fixes"
        self.write(fixes / "series", "# comment\n0001-count-in-long.patch\n")
        self.write(fixes / "cover.md", "# drm/demo: fixes\n\nOne.\n")
        self.write(fixes / "0001-count-in-long.patch", MAIL)
        self.write(self.root / "kernel/variants", "stock: fixes demo\n")
        return fixes / "0001-count-in-long.patch"

    @staticmethod
    def write(path, text):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def add_patch(self, name, message, files, hooks):
        folder = self.demo / "patches" / name
        self.write(folder / "message", message)
        self.write(folder / "files", files)
        self.write(folder / "hooks.diff", hooks)

    def run_series(self, command, *args):
        """Exit status, standard output, standard error."""
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = series.run([command, "--root", str(self.root), "--base", str(self.base),
                                 *map(str, args)])
        return status, out.getvalue(), err.getvalue()

    def assert_fails(self, result, *words, status=series_store.EXIT_FAIL):
        got, _, err = result
        self.assertEqual(got, status, err)
        for word in words:
            self.assertIn(word, err)

    def linked_tree(self):
        tree = self.work / "tree"
        if not tree.exists():
            shutil.copytree(self.base, tree, copy_function=os.link)
        return tree


class Apply(MiniatureProject):
    def test_apply_makes_overlay_hook_and_abi_header(self):
        tree = self.linked_tree()
        status, _, err = self.run_series("apply", tree, "demo")
        self.assertEqual((status, err), (0, ""))
        self.assertEqual((tree / "drivers/gpu/demo/demo.c").read_text(), SOURCE)
        self.assertTrue((tree / "include/uapi/demo_abi.h").is_file())
        self.assertIn("demo/", (tree / "drivers/gpu/Makefile").read_text())

    def test_apply_leaves_a_hard_linked_base_alone(self):
        tree = self.linked_tree()
        self.run_series("apply", tree, "demo")
        self.assertEqual((self.base / "drivers/gpu/Makefile").read_text(), MAKEFILE)
        self.assertFalse((self.base / "drivers/gpu/demo").exists())

    def test_second_apply_changes_nothing(self):
        tree = self.linked_tree()
        _, first, _ = self.run_series("apply", tree, "demo")
        time = (tree / "drivers/gpu/Makefile").stat().st_mtime_ns
        _, second, _ = self.run_series("apply", tree, "demo")
        self.assertNotIn("changed", second)
        self.assertEqual(first.splitlines()[-1], second.splitlines()[-1])
        self.assertEqual((tree / "drivers/gpu/Makefile").stat().st_mtime_ns, time)

    def test_edit_of_one_overlay_file_changes_only_that_file(self):
        tree = self.linked_tree()
        self.run_series("apply", tree, "demo")
        self.write(self.demo / "overlay/drivers/gpu/demo/demo.c", SOURCE + "int more;\n")
        _, out, _ = self.run_series("apply", tree, "demo")
        self.assertEqual([line for line in out.splitlines() if line.startswith("changed")],
                         ["changed drivers/gpu/demo/demo.c"])

    def test_files_no_longer_touched_are_restored_or_removed(self):
        tree = self.linked_tree()
        self.run_series("apply", tree, "demo")
        self.write(self.demo / "series", "0001-abi\n")
        self.run_series("apply", tree, "demo")
        self.assertEqual((tree / "drivers/gpu/Makefile").read_text(), MAKEFILE)
        self.assertFalse((tree / "drivers/gpu/demo/demo.c").exists())

    def test_upto_stops_after_the_named_patch(self):
        tree = self.linked_tree()
        self.run_series("apply", tree, "demo", "--upto", "demo/0001-abi")
        self.assertTrue((tree / "include/uapi/demo_abi.h").is_file())
        self.assertFalse((tree / "drivers/gpu/demo").exists())

    def test_dry_run_writes_nothing(self):
        tree = self.linked_tree()
        status, _, _ = self.run_series("apply", tree, "demo", "--dry-run")
        self.assertEqual(status, 0)
        self.assertFalse((tree / series_tree.MANIFEST).exists())

    def test_conflicting_hook_is_named_with_its_file(self):
        self.write(self.base / "drivers/gpu/Makefile", MAKEFILE.replace("three", "drei"))
        self.assert_fails(self.run_series("apply", self.linked_tree(), "demo"),
                          "0002-driver/hooks.diff", "the hunk at line 2", "drivers/gpu/Makefile")

    def test_fuzz_is_refused(self):
        # The outermost context line differs: plain patch(1) would take it with fuzz 1.
        self.write(self.base / "drivers/gpu/Makefile", MAKEFILE.replace("five", "funf"))
        self.assert_fails(self.run_series("apply", self.linked_tree(), "demo"), "no fuzz")

    def test_hook_that_is_already_there_is_refused(self):
        self.write(self.base / "drivers/gpu/Makefile",
                   MAKEFILE.replace("three.o\n", "three.o\nobj-y += demo/\n"))
        self.assert_fails(self.run_series("apply", self.linked_tree(), "demo"), "0002-driver")

    def test_failed_apply_leaves_the_tree_as_it_was(self):
        tree = self.linked_tree()
        self.write(self.demo / "patches/0002-driver/hooks.diff", HOOK.replace("two.o", "zwei.o"))
        self.assert_fails(self.run_series("apply", tree, "demo"), "does not apply")
        self.assertFalse((tree / "include").exists())
        self.assertEqual((tree / "drivers/gpu/Makefile").read_text(), MAKEFILE)

    def test_missing_overlay_file_is_named(self):
        (self.demo / "overlay/drivers/gpu/demo/demo.c").unlink()
        self.assert_fails(self.run_series("apply", self.linked_tree(), "demo"), "demo.c",
                          "does not exist")

    def test_overlay_file_that_exists_upstream_is_refused(self):
        self.write(self.demo / "overlay/drivers/gpu/core.c", SOURCE)
        self.write(self.demo / "patches/0002-driver/files",
                   "drivers/gpu/demo/demo.c\ndrivers/gpu/core.c\n")
        self.assert_fails(self.run_series("apply", self.linked_tree(), "demo"), "exists upstream")

    def test_hook_that_makes_a_new_file_is_refused(self):
        self.write(self.demo / "patches/0002-driver/hooks.diff",
                   "--- /dev/null\n+++ b/new.c\n@@ -0,0 +1 @@\n+int x;\n")
        self.assert_fails(self.run_series("apply", self.linked_tree(), "demo"), "existing file")

    def test_paths_that_leave_the_tree_are_refused(self):
        self.write(self.demo / "patches/0002-driver/files", "../outside.c\n")
        self.assert_fails(self.run_series("apply", self.linked_tree(), "demo"), "does not exist")
        self.write(self.demo / "patches/0002-driver/files", "drivers/gpu/demo/demo.c\n")
        self.write(self.demo / "patches/0002-driver/hooks.diff",
                   HOOK.replace("drivers/gpu/Makefile", "../base/Makefile"))
        self.assert_fails(self.run_series("apply", self.linked_tree(), "demo"), "relative path")

    def test_abi_header_from_elsewhere_is_refused(self):
        (self.demo / "overlay/include/uapi/outside.h").symlink_to("/dev/null")
        self.assert_fails(self.run_series("apply", self.linked_tree(), "demo"), "below kernel/")

    def test_temporary_folder_inside_a_repository_is_not_taken_for_that_repository(self):
        subprocess.run(["git", "init", "--quiet", str(self.work)], check=True)
        with mock.patch.object(tempfile, "tempdir", str(self.work)):
            self.run_series("apply", self.linked_tree(), "demo")
        self.assertIn("demo/", (self.work / "tree/drivers/gpu/Makefile").read_text())

    def test_mail_is_applied(self):
        self.add_fixes()
        tree = self.linked_tree()
        self.assertEqual(self.run_series("apply", tree, "--variant", "stock")[0], 0)
        self.assertEqual((tree / "drivers/gpu/core.c").read_text(), "long core;\n")

    def test_mail_that_is_none_is_named(self):
        mail = self.add_fixes()
        self.write(mail, MAIL.replace("\n---\n", "\n"))
        self.assert_fails(self.run_series("apply", self.linked_tree(), "fixes"), str(mail), "'---'")
        self.write(mail, MAIL.replace("@@ -1 +1 @@", "@@ -1,2 +1 @@"))
        self.assert_fails(self.run_series("apply", self.linked_tree(), "fixes"), str(mail), "diff")


class Overlay(MiniatureProject):
    """Which patch brings a new file."""

    def owners(self):
        return {path: patch.name for patch in series_store.read_series(self.root, "demo").patches
                for path in patch.files}

    def claim(self, first, second):
        self.write(self.demo / "patches/0001-abi/files", first)
        self.write(self.demo / "patches/0002-driver/files", second)

    def test_wildcard_takes_what_no_other_patch_names(self):
        for name in "one.c", "sub/two.c", "three.c":
            self.write(self.demo / "overlay/drivers/gpu/demo" / name, SOURCE)
        self.claim("include/uapi/demo_abi.h\ndrivers/gpu/demo/three.c\n", "drivers/gpu/demo/*\n")
        self.assertEqual(self.owners(), {
            "include/uapi/demo_abi.h": "0001-abi", "drivers/gpu/demo/demo.c": "0002-driver",
            "drivers/gpu/demo/one.c": "0002-driver", "drivers/gpu/demo/sub/two.c": "0002-driver",
            "drivers/gpu/demo/three.c": "0001-abi"})

    def test_deeper_wildcard_wins(self):
        self.claim("include/*\ndrivers/*\n", "drivers/gpu/demo/*\n")
        self.assertEqual(self.owners(), {"include/uapi/demo_abi.h": "0001-abi",
                                         "drivers/gpu/demo/demo.c": "0002-driver"})

    def test_same_wildcard_in_two_patches_is_an_error(self):
        self.claim("include/*\ndrivers/*\n", "drivers/*\n")
        self.assert_fails(self.run_series("check"), "owned by 2 patches")

    def test_wildcard_without_files_is_an_error(self):
        self.claim("include/*\n", "drivers/*\nnothing/*\n")
        self.assert_fails(self.run_series("check"), "nothing/* does not exist")

    def test_mail_brings_the_overlay_that_no_list_names(self):
        mail = self.add_fixes()
        self.write(mail.parent / "overlay/drivers/gpu/extra.c", SOURCE)
        tree = self.linked_tree()
        self.assertEqual(self.run_series("apply", tree, "fixes")[0], 0)
        self.assertEqual((tree / "drivers/gpu/extra.c").read_text(), SOURCE)
        status, _, err = self.run_series("export", self.work / "mails", "fixes", "--verify")
        self.assertEqual((status, err), (0, ""))
        self.assertIn("extra.c", (self.work / "mails/fixes/0001-drm-demo-count-in-long.patch").read_text())

    def test_build_results_that_git_ignores_are_not_brought(self):
        subprocess.run(["git", "init", "--quiet", str(self.root)], check=True)
        self.write(self.demo / "overlay/drivers/gpu/demo/.gitignore", "*.o\n")
        self.write(self.demo / "overlay/drivers/gpu/demo/demo.o", "object")
        self.claim("include/*\n", "drivers/*\n")
        self.assertNotIn("drivers/gpu/demo/demo.o", self.owners())
        self.assertIn("drivers/gpu/demo/.gitignore", self.owners())


class OneLine(MiniatureProject):
    """Whatever is wrong outside of the series, one line says it."""

    def assert_one_line(self, result, status, *words):
        self.assert_fails(result, *words, status=status)
        self.assertEqual(result[2].count("\n"), 1, result[2])

    def test_unknown_series(self):
        for command in ("apply", self.linked_tree()), ("export", self.work / "mails"), ("refresh",):
            self.assert_one_line(self.run_series(*command, "nothing"), series_store.EXIT_USAGE,
                                 "nothing", "there is: demo")

    def test_unknown_variant_command_and_slug(self):
        usage = series_store.EXIT_USAGE
        self.assert_one_line(self.run_series("apply", self.base, "--variant", "x"), usage, "stock")
        self.assert_one_line(self.run_series("aply"), usage, "aply")
        self.assert_one_line(self.run_series("new", "demo", "Bad_Slug"), usage, "Bad_Slug")
        self.assert_one_line(self.run_series("export"), usage, "folder")
        self.assert_one_line(self.run_series("export", "x", "--signoff", "me"), usage, "NAME <MAIL>")

    def test_full_disk_names_the_file(self):
        full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        with mock.patch.object(series_tree.os, "fdopen", side_effect=full):
            self.assert_one_line(self.run_series("apply", self.linked_tree(), "demo"),
                                 series_store.EXIT_INFRA, series_tree.MANIFEST, "No space left")

    def test_full_disk_in_git_is_one_line(self):
        """A file-size limit stands for a disk that ends."""
        done = subprocess.run(
            [sys.executable, "-B", SERIES_PY, "export", self.work / "mails", "--root", self.root,
             "--base", self.base], capture_output=True, text=True, check=False,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64)))
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)

    def test_killed_run_ends_in_one_line_and_the_next_one_works(self):
        script = self.base / "scripts/checkpatch.pl"
        self.write(script, "$| = 1; open(F, '>', $ENV{SIGNAL}); close F; sleep 60;\n")
        begun, scratch = self.work / "begun", self.work / "scratch"
        scratch.mkdir()
        check = subprocess.Popen(
            [sys.executable, "-B", SERIES_PY, "check", "--root", self.root, "--base", self.base],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "SIGNAL": str(begun), "TMPDIR": str(scratch)})
        while not begun.exists():
            self.assertIsNone(check.poll(), "ended before checkpatch ran")
        check.send_signal(signal.SIGTERM)
        _, err = check.communicate(timeout=30)
        self.assertEqual((check.returncode, err),
                         (series_store.EXIT_INFRA, "series.py: error: interrupted\n"))
        self.assertEqual(list(scratch.iterdir()), [])
        script.unlink()
        self.assertEqual(self.run_series("check")[0], 0)

    def test_branch_that_was_not_finished_is_made_anew(self):
        self.write(self.work / ".branch.partial/Makefile", "half")
        self.assertEqual(self.run_series("export", "--branch", self.work / "branch")[0], 0)
        self.assertFalse((self.work / ".branch.partial").exists())

    def test_branch_is_not_written_over_work(self):
        self.write(self.work / "branch/mine", "work")
        self.assert_one_line(self.run_series("export", "--branch", self.work / "branch"),
                             series_store.EXIT_INFRA, "not empty")


class Check(MiniatureProject):
    def test_good_series_passes(self):
        status, out, err = self.run_series("check")
        self.assertEqual((status, err), (0, ""), out)

    def test_file_owned_twice_is_an_error(self):
        self.write(self.demo / "patches/0001-abi/files", "drivers/gpu/demo/demo.c\n")
        self.assert_fails(self.run_series("check"), "owned by 2 patches")

    def test_file_owned_by_nobody_is_an_error(self):
        self.write(self.demo / "overlay/drivers/gpu/demo/orphan.c", SOURCE)
        self.assert_fails(self.run_series("check"), "orphan.c", "owned by 0 patches")

    def test_patch_folder_that_is_not_listed_is_an_error(self):
        self.add_patch("0003-forgotten", MESSAGE, "", HOOK)
        self.assert_fails(self.run_series("check"), "0003-forgotten", "not listed")

    def test_overlay_file_without_licence_is_an_error(self):
        self.write(self.demo / "overlay/drivers/gpu/demo/demo.c", "int demo;\n")
        self.assert_fails(self.run_series("check"), "SPDX")

    def test_long_subject_is_an_error(self):
        self.write(self.demo / "patches/0001-abi/message",
                   MESSAGE.replace("demonstration", "x" * series_check.SUBJECT_LIMIT))
        self.assert_fails(self.run_series("check"), "subject has")

    def test_subject_without_area_is_an_error(self):
        self.write(self.demo / "patches/0001-abi/message", MESSAGE.replace("drm/demo: ", ""))
        self.assert_fails(self.run_series("check"), "subject is not")

    def test_author_of_a_contribution_signs_it_off(self):
        message = self.demo / "patches/0001-abi/message"
        self.write(message, ANNS_MESSAGE)
        self.assertEqual(self.run_series("check")[0], 0)
        self.write(message, f"From: {ANN}\n\ndrm/demo: add it\n\nBody.\n")
        self.assert_fails(self.run_series("check"), f"Signed-off-by: {ANN}")

    def test_sign_off_of_nobody_is_an_error(self):
        self.write(self.demo / "patches/0001-abi/message",
                   f"{MESSAGE}\nSigned-off-by: {series_store.PROJECT}\n")
        self.assert_fails(self.run_series("check"), "--signoff")

    def test_large_hook_is_an_error_unless_it_is_an_exception(self):
        added = "".join(f"+obj-y += more{n}.o\n" for n in range(series_check.HOOK_LINE_LIMIT))
        hook = HOOK.replace("+obj-y += demo/\n", "+obj-y += demo/\n" + added)
        hook = hook.replace("+2,5", f"+2,{5 + series_check.HOOK_LINE_LIMIT}")
        self.write(self.demo / "patches/0002-driver/hooks.diff", hook)
        self.assert_fails(self.run_series("check"), "added lines in drivers/gpu/Makefile")
        found = series_check.Findings()
        with unittest.mock.patch.dict(series_check.HOOK_EXCEPTIONS, {("demo", "drivers/gpu/Makefile"): "rows"}):
            series_check.check_hook_size(series_store.read_series(self.root, "demo"), found)
        self.assertEqual(found.errors, [])

    def test_hunk_that_moved_is_a_question(self):
        self.write(self.base / "drivers/gpu/Makefile", "# a line more\n" + MAKEFILE)
        status, out, _ = self.run_series("check")
        self.assertEqual(status, 0)
        self.assertIn("offset 1 line", out)

    def test_checkpatch_error_fails_and_warning_does_not(self):
        script = self.base / "scripts/checkpatch.pl"
        self.write(script, 'print "m:3: WARNING:LONG: too long\\n"; exit 1;\n')
        self.assertEqual(self.run_series("check")[0], 0)
        self.write(script, 'print "m:3: ERROR:SPACING: no space\\n"; exit 1;\n')
        self.assert_fails(self.run_series("check"), "SPACING")

    def test_checkpatch_that_cannot_run_is_an_error(self):
        for line in ("", 'print "m:3: WARNING:LONG: too long\\n"; '):
            self.write(self.base / "scripts/checkpatch.pl", line + "die 'broken';\n")
            self.assert_fails(self.run_series("check"), "checkpatch failed")

    def test_each_mail_is_checked_once_and_its_patch_is_named(self):
        self.write(self.base / "scripts/checkpatch.pl", 'print "$_:3: ERROR:SPACING: no space\n" for grep { /patch$/ } @ARGV; exit 1;\n')
        status, _, errors = self.run_series("check")
        self.assertEqual(status, 1)
        for patch in series_store.read_series(self.root, "demo").patches:
            self.assertEqual(errors.count(f"error: {patch.label}: checkpatch ERROR:SPACING: no space ("), 1, errors)

    def test_unedited_template_of_new_does_not_pass(self):
        self.assertEqual(self.run_series("new", "demo", "more-words")[0], 0)
        self.assertTrue((self.demo / "patches/0003-more-words/message").is_file())
        self.assertIn("0003-more-words", (self.demo / "series").read_text())
        self.assert_fails(self.run_series("check"), "0003-more-words")

    def test_mail_that_git_would_write_otherwise_is_a_question_until_refresh(self):
        mail = self.add_fixes()
        status, out, err = self.run_series("check")
        self.assertEqual((status, err), (0, ""))
        self.assertIn("series.py refresh fixes", out)
        self.assertIn(str(mail), self.run_series("refresh")[1])
        self.assertEqual(self.run_series("refresh")[:2], (0, ""))
        self.assertIn("1 file changed, 1 insertion(+), 1 deletion(-)", mail.read_text())
        self.assertNotIn("refresh", self.run_series("check")[1])

    def test_mail_without_the_names_of_its_files_is_not_refreshed(self):
        mail = self.add_fixes()
        text = "".join(line for line in MAIL.splitlines(keepends=True)
                       if not line.startswith(("diff --git ", "--- a/", "+++ b/")))
        self.write(mail, text)
        self.assert_fails(self.run_series("refresh"), str(mail), "no change")
        self.assertEqual(mail.read_text(), text)

    def test_mail_that_is_not_listed_is_an_error(self):
        self.write(self.add_fixes().parent / "0002-forgotten.patch", MAIL)
        self.assert_fails(self.run_series("check"), "0002-forgotten", "not listed")

    def test_headings_between_patches_are_comments(self):
        self.write(self.demo / "series",
                   "# Demo\n\n# The ABI\n0001-abi\n\n# The driver\n0002-driver\n")
        self.assertEqual(self.run_series("check")[0], 0)
        status, _, err = self.run_series("export", self.work / "mails", "demo", "--verify")
        self.assertEqual((status, err), (0, ""))

    def write_table(self, *rows):
        head = "# demo\n\n| number | subject | topic |\n|---|---|---|\n"
        self.write(self.demo / "README.md", head + "".join(f"| {row} | topic |\n" for row in rows))

    def test_table_with_a_row_for_each_patch_passes(self):
        self.write_table("0001 | drm/demo: add the ABI", "0002 | drm/demo: add a demonstration")
        self.assertEqual(self.run_series("check")[0], 0)

    def test_table_that_lacks_a_patch_or_has_another_subject_is_an_error(self):
        self.write_table("0001 | drm/demo: add the ABI")
        self.assert_fails(self.run_series("check"), "the table has nothing", "0002 drm/demo: add a demo")
        self.write_table("0001 | drm/demo: add the ABI", "0002 | drm/demo: remove it")
        self.assert_fails(self.run_series("check"), "0002 drm/demo: remove it")
        self.write_table("0002 | drm/demo: add a demonstration", "0001 | drm/demo: add the ABI")
        self.assert_fails(self.run_series("check"), "the table has 0002")
        self.write_table("0001 | drm/demo: add the ABI", "0002 | drm/demo: add a demonstration",
                         "0003 | drm/demo: gone")
        self.assert_fails(self.run_series("check"), "0003 drm/demo: gone", "`series` has nothing")

    def test_unedited_mail_of_new_does_not_pass(self):
        self.add_fixes()
        self.assertEqual(self.run_series("new", "fixes", "more-words")[0], 0)
        self.assert_fails(self.run_series("check"), "0002-more-words", "changes nothing")

    def test_missing_base_is_an_infrastructure_failure(self):
        shutil.rmtree(self.base)
        self.assertEqual(self.run_series("check")[0], series_store.EXIT_INFRA)


class Export(MiniatureProject):
    def export(self, folder="mails", *args):
        return self.run_series("export", self.work / folder, *args)

    def mails(self, folder="mails"):
        return {path.name: path.read_text() for path in (self.work / folder / "demo").iterdir()}

    def test_verified_round_trip_gives_cover_and_one_mail_a_patch(self):
        status, _, err = self.export("mails", "--verify")
        self.assertEqual((status, err), (0, ""))
        self.assertEqual(sorted(self.mails()), ["0000-cover-letter.patch",
                         "0001-drm-demo-add-the-ABI.patch", "0002-drm-demo-add-a-demonstration.patch"])

    def test_cover_has_subject_text_and_base(self):
        self.export()
        cover = self.mails()["0000-cover-letter.patch"]
        self.assertIn("drm/demo: a demonstration", cover)
        self.assertIn("Why it exists.", cover)
        self.assertIn("Base: linux-mini 1 (v1), sha256 ab", cover)
        self.assertNotIn("***", cover)

    def test_who_sends_signs_off_and_is_the_author_of_what_has_no_other(self):
        self.write(self.demo / "patches/0002-driver/message", ANNS_MESSAGE)
        self.export("mails", "--signoff", BOB)
        first, second = (text for name, text in sorted(self.mails().items())
                         if not name.startswith("0000"))
        self.assertIn(f"From: {BOB}", first)
        self.assertEqual(first.count("Signed-off-by: "), 1)
        self.assertIn(f"Signed-off-by: {BOB}\n---\n", first)
        self.assertIn(f"From: {ANN}", second)
        self.assertIn(f"Signed-off-by: {ANN}\nSigned-off-by: {BOB}\n---\n", second)

    def test_sign_off_that_is_there_is_not_doubled(self):
        self.write(self.demo / "patches/0002-driver/message", ANNS_MESSAGE)
        self.export("mails", "--signoff", ANN)
        mail = self.mails()["0002-drm-demo-add-a-demonstration.patch"]
        self.assertEqual(mail.count("Signed-off-by: "), 1)

    def test_without_sender_nothing_is_signed_off_and_that_is_said(self):
        self.assertIn("--signoff", self.export()[1])
        self.assertNotIn("Signed-off-by", "".join(self.mails().values()))

    def test_branch_has_a_commit_a_patch_and_the_tree_of_apply(self):
        self.add_fixes()
        branch, tree = self.work / "branch", self.linked_tree()
        status, out, err = self.run_series("export", "--branch", branch, "--signoff", BOB)
        self.assertEqual((status, err), (0, ""))
        self.assertIn("base, fixes, demo", out)
        log = series_store.git(branch, "log", "--reverse", "--format=%D %s <%ae>")
        self.assertEqual([line.strip() for line in log.splitlines()], [
            "base base <founders@amdkfd-criu.example>",
            "fixes drm/demo: count in long <bob@example.org>",
            "drm/demo: add the ABI <bob@example.org>",
            "HEAD -> demo drm/demo: add a demonstration <bob@example.org>"])
        self.run_series("apply", tree, "--variant", "stock")
        (tree / series_tree.MANIFEST).unlink()
        shutil.rmtree(branch / ".git")
        self.assertEqual(subprocess.run(["diff", "-r", tree, branch], check=False).returncode, 0)

    def test_branch_twice_gives_equal_commits(self):
        heads = set()
        for name in "first", "second":
            self.run_series("export", "--branch", self.work / name)
            heads.add(series_store.git(self.work / name, "rev-parse", "HEAD"))
        self.assertEqual(len(heads), 1)

    def test_commit_that_was_changed_in_the_branch_comes_back_to_its_mail(self):
        mail, branch = self.add_fixes(), self.work / "branch"
        self.run_series("export", "--branch", branch, "fixes")
        self.write(branch / "drivers/gpu/core.c", "long long core;\n")
        series_store.git(branch, "commit", "--all", "--amend", "--message",
                         "drm/demo: count in long long\n\nA long is too small.\n")
        self.assertEqual(self.run_series("refresh", "--from", branch, "fixes")[0], 0)
        self.assertIn("count in long long", mail.read_text())
        self.assertIn("+long long core;", mail.read_text())
        self.assertEqual(self.run_series("check")[0], 0)
        self.write(branch / "drivers/gpu/core.c", "int core;\n")
        series_store.git(branch, "commit", "--all", "--message", "drm/demo: another")
        self.assert_fails(self.run_series("refresh", "--from", branch, "fixes"), "2 commits")
        self.assert_fails(self.run_series("refresh", "--from", branch, "demo"), "only a series of mails")

    def test_stored_mail_is_read_by_git_and_by_patch(self):
        mail = self.add_fixes()
        for text in MAIL, None:
            if text is None:
                self.run_series("refresh")
            with tempfile.TemporaryDirectory(dir=self.work) as name:
                for index, command in enumerate((["git", "am", "--quiet", mail],
                                                 ["patch", "--quiet", "-p1", "-i", mail])):
                    tree = Path(name) / str(index)
                    shutil.copytree(self.base, tree)
                    series_export.start_repository(tree)
                    series_store.git(tree, "config", "user.name", "x")
                    series_store.git(tree, "config", "user.email", "x@example.org")
                    subprocess.run(command, cwd=tree, check=True)
                    self.assertEqual((tree / "drivers/gpu/core.c").read_text(), "long core;\n")

    def test_export_twice_gives_equal_bytes(self):
        self.export("first")
        self.export("second")
        self.assertEqual(self.mails("first"), self.mails("second"))

    def test_series_on_top_of_another_names_its_prerequisite(self):
        upper = self.root / "kernel/upper"
        self.write(upper / "series", "0002-driver\n")
        self.write(upper / "cover.md", "# drm/upper: more\n")
        self.write(upper / "patches/0002-driver/message", MESSAGE)
        self.write(upper / "patches/0002-driver/hooks.diff",
                   HOOK.replace("@@ -2,4 +2,5 @@", "@@ -3,4 +3,5 @@").replace(
                       " obj-y += two.o\n obj-y += three.o\n+obj-y += demo/\n",
                       " obj-y += three.o\n obj-y += demo/\n+obj-y += upper/\n"))
        self.write(self.root / "kernel/variants", "stock: demo\nboth: demo upper\n")
        status, _, err = self.export("mails", "--verify")
        self.assertEqual((status, err), (0, ""))
        cover = (self.work / "mails/upper/0000-cover-letter.patch").read_text()
        self.assertIn("Prerequisite series: demo", cover)

    def test_verify_notices_mails_that_say_something_else(self):
        stack = [series_store.read_series(self.root, "demo")]
        self.export()
        mail = self.work / "mails/demo/0002-drm-demo-add-a-demonstration.patch"
        mail.write_text(mail.read_text().replace("return 1", "return 2"))
        series_export.make_scratch(self.work / "repo", self.base, stack)
        with self.assertRaisesRegex(series_store.SeriesError, "demo.c"):
            series_export.verify_mails(self.work / "repo", stack,
                                       sorted((self.work / "mails/demo").iterdir())[1:])


if __name__ == "__main__":
    unittest.main()
