#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""Tests of check_seam.py."""
from __future__ import annotations

import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.dont_write_bytecode = True
import check_seam  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
HEADER = """// int commented(int fd);
int fault(const char* call);
int open(const char* path, int flags, mode_t mode = 0);
ssize_t pwrite(int fd, const void* bytes, std::size_t size, off_t offset);
DIR* opendir(const char* path);
struct ::dirent* readdir(DIR* dir);
pid_t fork();
"""


class Source(unittest.TestCase):
    def calls(self, text: str) -> list[str]:
        return [call for _, call in check_seam.breaches_in(text, check_seam.names_of(HEADER))]

    def test_the_names_are_those_that_the_header_declares(self):
        self.assertEqual(check_seam.names_of(HEADER), {"open", "pwrite", "opendir", "readdir", "fork"})

    def test_calls_through_the_seam_pass(self):
        self.assertEqual(self.calls("UniqueFd fd(os::open(path, 0));\nif (os::fork() == 0) ::_exit(1);\n"), [])

    def test_a_direct_call_is_a_breach_in_every_place(self):
        for text in ("int fd = ::open(path, 0);", "return open(path, 0);", "if (open(path, 0) < 0)", "(void)open(path, 0);",
                     "a && open(path, 0);", "!open(path, 0)", "fd = open (path, 0);"):
            with self.subTest(text=text):
                self.assertEqual(len(self.calls(text)), 1)

    def test_a_call_that_the_seam_does_not_have_is_a_breach(self):
        self.assertEqual(self.calls("::socket(1, 2, 3); ::dlsym(a, b);"), ["::socket()"])

    def test_functions_of_other_names_and_of_classes_pass(self):
        self.assertEqual(self.calls("static Result<View> open(int dmabuf);\nauto v = View::open(1);\nfile.open(1);\n"
                                    "file->open(1);\nreopen(1);\nResult<Client> Client::open() {\nint* open(int);\n"), [])

    def test_comments_and_texts_are_no_calls(self):
        self.assertEqual(self.calls('// ::open(path)\n/* fork() */ log("open(path)");\n'), [])

    def test_streams_and_paths_of_the_library_are_breaches(self):
        self.assertEqual(self.calls("std::ifstream in(path); std::istringstream text(x);"), ["std::ifstream"])
        self.assertEqual(self.calls("std::filesystem::remove(x);"), ["std::filesystem"])

    def test_a_direct_call_of_libdrm_is_a_breach(self):
        self.assertEqual(self.calls("amdgpu_bo_free(bo); drm_release(amdgpu_bo_free, bo);"), ["amdgpu_bo_free"])
        self.assertEqual(self.calls("drmPrimeFDToHandle(1, 2, &x);"), ["drmPrimeFDToHandle"])

    def test_a_breach_names_its_line(self):
        self.assertEqual(check_seam.breaches_in("\n\nfork();\n", {"fork"}), [(3, "fork()")])


class Folder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="seam-test-")
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        self.write("userspace/base/os.h", HEADER)

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def test_a_breach_names_its_file(self):
        self.write("userspace/plugin/copy/cpu.cc", "::fork();\n")
        self.write("userspace/vasicd/main.cc", "::fork();\n")
        self.assertEqual([line.split(": ")[0] for line in check_seam.check(self.root)],
                         ["userspace/plugin/copy/cpu.cc:1"])

    def test_tests_and_fakes_may_call_directly(self):
        for name in ("plugin/image/image_test.cc", "plugin/test_support.h", "kfd/fake_kfd.cc"):
            self.write("userspace/" + name, "::fork();\n")
        self.assertEqual(check_seam.check(self.root), [])

    def test_this_project_has_no_breach(self):
        self.assertEqual(check_seam.check(ROOT), [])


if __name__ == "__main__":
    unittest.main()
