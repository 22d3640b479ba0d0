#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""Tests of .ci/run with a make that only prints and exits."""

import os
import pathlib
import subprocess
import tempfile
import unittest

RUN = pathlib.Path(__file__).resolve().parent.parent / ".ci" / "run"


def run_with_make(script: str, pages: str = "/nonexistent") -> subprocess.CompletedProcess:
    """Runs .ci/run where `make` is the given shell text, and `pages` the kernel's setting."""
    with tempfile.TemporaryDirectory() as folder:
        make = pathlib.Path(folder) / "make"
        make.write_text("#!/bin/sh\n" + script)
        make.chmod(0o755)
        env = dict(os.environ, PATH=f"{folder}:{os.environ['PATH']}", TMPDIR=folder, THP_SETTING=pages)
        result = subprocess.run([RUN], env=env, capture_output=True, text=True, check=False)
        left = sorted(p.name for p in pathlib.Path(folder).iterdir())
        if left != ["make"]:
            raise AssertionError(f".ci/run left {left}")
        return result


class CiRun(unittest.TestCase):
    def test_success_is_status_0_with_the_count_last(self):
        result = run_with_make("echo noise; echo '3 passed, 0 failed'")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertEqual(result.stdout.splitlines()[-1], "3 passed, 0 failed")

    def test_failure_keeps_the_status_and_the_count(self):
        result = run_with_make("echo '2 passed, 1 failed'; exit 2")
        self.assertEqual((result.returncode, result.stderr), (2, ""))
        self.assertEqual(result.stdout.splitlines()[-1], "2 passed, 1 failed")

    def test_failure_without_a_count_gets_one(self):
        result = run_with_make("echo 'no rule'; exit 2")
        self.assertEqual(result.returncode, 2)
        self.assertEqual(result.stdout.splitlines()[-1], "0 passed, 1 failed")

    def test_large_pages_are_for_the_run_only(self):
        with tempfile.NamedTemporaryFile("w+") as pages:
            for script, status in ((f"cat {pages.name}", 0), (f"cat {pages.name}; exit 2", 2)):
                pages.seek(0)
                pages.write("always [madvise] never\n")
                pages.truncate()
                pages.flush()
                result = run_with_make(script, pages.name)
                self.assertEqual((result.returncode, result.stderr), (status, ""))
                self.assertEqual(result.stdout.splitlines()[0], "always")
                self.assertEqual(pathlib.Path(pages.name).read_text(), "madvise\n")

    def test_a_setting_that_it_does_not_know_stays(self):
        with tempfile.NamedTemporaryFile("w+") as pages:
            pages.write("other\n")
            pages.flush()
            self.assertEqual(run_with_make("exit 0", pages.name).returncode, 0)
            self.assertEqual(pathlib.Path(pages.name).read_text(), "other\n")


if __name__ == "__main__":
    unittest.main()
