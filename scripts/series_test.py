#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""Tests of series.py on a miniature kernel tree in a temporary folder.

Run: python3 scripts/series_test.py
"""
from __future__ import annotations

import contextlib
import io
import os
import shutil
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.dont_write_bytecode = True
import series  # noqa: E402

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
MESSAGE = """drm/demo: add a demonstration

It shows something.

Signed-off-by: Ann Author <ann@example.org>
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
        self.write(self.demo / "cover.md", "# drm/demo: a demonstration\n\nWhy it exists.\n")
        self.write(self.demo / "series", "0001-abi\n0002-driver\n")
        self.write(self.demo / "overlay/drivers/gpu/demo/demo.c", SOURCE)
        self.add_patch("0001-abi", MESSAGE.replace("add a demonstration", "add the ABI"),
                       "include/uapi/demo_abi.h <- kernel/uapi/demo/demo_abi.h\n", "")
        self.add_patch("0002-driver", MESSAGE, "drivers/gpu/demo/demo.c\n", HOOK)

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

    def assert_fails(self, result, *words):
        status, _, err = result
        self.assertEqual(status, series.EXIT_FAIL, err)
        for word in words:
            self.assertIn(word, err)

    def linked_tree(self):
        tree = self.work / "tree"
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
        self.assertFalse((tree / series.MANIFEST).exists())

    def test_conflicting_hook_is_named_with_its_file(self):
        self.write(self.base / "drivers/gpu/Makefile", MAKEFILE.replace("three", "drei"))
        self.assert_fails(self.run_series("apply", self.linked_tree(), "demo"),
                          "0002-driver/hooks.diff", "hunk 1", "drivers/gpu/Makefile")

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
        self.assert_fails(self.run_series("apply", self.linked_tree(), "demo"), "relative path")

    def test_abi_header_from_elsewhere_is_refused(self):
        self.write(self.demo / "patches/0001-abi/files", "include/x.h <- kernel/BASE\n")
        self.assert_fails(self.run_series("apply", self.linked_tree(), "demo"), "kernel/uapi/")

    def test_unknown_series_is_a_failure(self):
        self.assert_fails(self.run_series("apply", self.linked_tree(), "nothing"), "nothing")

    def test_unknown_command_is_a_usage_error(self):
        self.assertEqual(self.run_series("aply")[0], series.EXIT_USAGE)


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
                   MESSAGE.replace("demonstration", "x" * series.SUBJECT_LIMIT))
        self.assert_fails(self.run_series("check"), "subject has")

    def test_subject_without_area_is_an_error(self):
        self.write(self.demo / "patches/0001-abi/message", MESSAGE.replace("drm/demo: ", ""))
        self.assert_fails(self.run_series("check"), "subject is not")

    def test_missing_sign_off_is_an_error(self):
        self.write(self.demo / "patches/0001-abi/message",
                   "From: Ann Author <ann@example.org>\n\ndrm/demo: add it\n\nBody.\n")
        self.assert_fails(self.run_series("check"), "Signed-off-by")

    def test_large_hook_is_a_question_not_an_error(self):
        added = "".join(f"+obj-y += more{n}.o\n" for n in range(series.HOOK_LINE_LIMIT))
        hook = HOOK.replace("+obj-y += demo/\n", "+obj-y += demo/\n" + added)
        hook = hook.replace("+2,5", f"+2,{5 + series.HOOK_LINE_LIMIT}")
        self.write(self.demo / "patches/0002-driver/hooks.diff", hook)
        status, out, _ = self.run_series("check")
        self.assertEqual(status, 0)
        self.assertIn("added lines in drivers/gpu/Makefile", out)

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
        self.write(self.base / "scripts/checkpatch.pl", "die 'broken';\n")
        self.assert_fails(self.run_series("check"), "checkpatch failed")

    def test_unedited_template_of_new_does_not_pass(self):
        self.assertEqual(self.run_series("new", "demo", "more-words")[0], 0)
        self.assertTrue((self.demo / "patches/0003-more-words/message").is_file())
        self.assertIn("0003-more-words", (self.demo / "series").read_text())
        self.assert_fails(self.run_series("check"), "0003-more-words")

    def test_missing_base_is_an_infrastructure_failure(self):
        shutil.rmtree(self.base)
        self.assertEqual(self.run_series("check")[0], series.EXIT_INFRA)


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

    def test_mail_carries_author_of_the_message(self):
        self.export()
        self.assertIn("From: Ann Author <ann@example.org>",
                      self.mails()["0001-drm-demo-add-the-ABI.patch"])

    def test_export_twice_gives_equal_bytes(self):
        self.export("first")
        self.export("second")
        self.assertEqual(self.mails("first"), self.mails("second"))

    def test_series_on_top_of_another_names_its_prerequisite(self):
        shutil.copytree(self.demo, self.root / "kernel/upper")
        upper = self.root / "kernel/upper"
        self.write(upper / "series", "0002-driver\n")
        shutil.rmtree(upper / "patches/0001-abi")
        self.write(upper / "patches/0002-driver/files", "")
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
        import series_export
        demo = series.read_series(self.root, "demo")
        self.export()
        mail = self.work / "mails/demo/0002-drm-demo-add-a-demonstration.patch"
        mail.write_text(mail.read_text().replace("return 1", "return 2"))
        with self.assertRaisesRegex(series.SeriesError, "demo.c"):
            series_export.verify_mails(self.work / "mails/demo", self.work / "verify", self.base,
                                       [], demo)


if __name__ == "__main__":
    unittest.main()
