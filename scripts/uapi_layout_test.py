#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""The layout of linux/kfd_criu_ioctl.h: equal for 32- and 64-bit programs, in C11 and in C++20, and without padding.

clang compiles a table with the size of each structure and the offset and size of each member. A 32-bit program
calls the ioctl of a 64-bit kernel without translation, so all tables have to be equal.
"""
from __future__ import annotations

import itertools
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

UAPI = Path(__file__).resolve().parent.parent / "kernel/uapi"
HEADER = UAPI / "linux/kfd_criu_ioctl.h"
TARGETS = ["i386-linux-gnu", "x86_64-linux-gnu", "aarch64-linux-gnu"]
LANGUAGES = [["-x", "c", "-std=c11"], ["-x", "c++", "-std=c++20"]]

# What the kernel's headers of these targets define.
TYPES_H = """
typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef int __s32;
typedef unsigned long long __u64;
typedef __u16 __le16;
typedef __u32 __le32;
typedef __u64 __le64;
"""
IOCTL_H = "#define _IOWR(base, number, type) (3u << 30 | (unsigned)sizeof(type) << 16 | (base) << 8 | (number))\n"


def without_comments(text: str) -> str:
    return re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)


def members_of(text: str) -> dict[str, list[str]]:
    """The names of the members of each structure, in their order."""
    structs = re.findall(r"^struct (\w+) \{\n(.*?)^\};", without_comments(text), flags=re.DOTALL | re.MULTILINE)
    return {name: re.findall(r"(\w+)(?:\[\w+\])?;", body) for name, body in structs}


def table_source(members: dict[str, list[str]]) -> str:
    rows = []
    for struct, names in members.items():
        rows.append(f"sizeof(struct {struct}),")
        rows += [f"offsetof(struct {struct}, {name}), sizeof((({'struct ' + struct} *)0)->{name})," for name in names]
    return "\n".join(["#include <linux/kfd_criu_ioctl.h>", '#include "kfd_criu_layout.h"',
                      "extern const unsigned int table[];", "const unsigned int table[] = {", *rows,
                      "AMDKFD_IOC_CRIU", "};", ""])


class Layout(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="layout-test-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        (self.folder / "linux").mkdir()
        (self.folder / "linux/types.h").write_text(TYPES_H)
        (self.folder / "linux/ioctl.h").write_text(IOCTL_H)

    def compile(self, target: str, language: list[str], header: str, source: str) -> subprocess.CompletedProcess:
        (self.folder / "linux/kfd_criu_ioctl.h").write_text(header)
        return subprocess.run(
            ["clang", "-target", target, *language, "-ffreestanding", "-nostdlibinc", "-Wall", "-Wextra", "-Werror",
             f"-I{self.folder}", f"-I{UAPI}", "-S", "-emit-llvm", "-o", "-", "-"],
            input=source, check=False, capture_output=True, text=True)

    def table(self, target: str, language: list[str], header: str) -> list[int]:
        done = self.compile(target, language, header, table_source(members_of(header)))
        self.assertEqual(0, done.returncode, f"{target} {language}\n{done.stderr}")
        line = next(line for line in done.stdout.splitlines() if re.match(r"@table = .*constant \[", line))
        return [int(number) & 0xffffffff for number in re.findall(r"i32 (-?\d+)", line)]

    def tables(self, header: str) -> list[list[int]]:
        return [self.table(target, language, header) for target, language in itertools.product(TARGETS, LANGUAGES)]

    def test_it_is_equal_on_all_targets_and_in_both_languages(self):
        tables = self.tables(HEADER.read_text())
        count = sum(1 + 2 * len(names) for names in members_of(HEADER.read_text()).values()) + 1
        self.assertEqual(count, len(tables[0]))
        for table in tables[1:]:
            self.assertEqual(tables[0], table)
        self.assertEqual(0xc0604b22, tables[0][-1])

    def test_it_has_no_padding(self):
        numbers = iter(self.table(TARGETS[0], LANGUAGES[0], HEADER.read_text()))
        for struct, names in members_of(HEADER.read_text()).items():
            size, end = next(numbers), 0
            for name in names:
                self.assertEqual(end, next(numbers), f"{struct}.{name}")
                end += next(numbers)
            self.assertEqual(end, size, struct)

    def test_a_hole_is_noticed(self):
        """A __u64 behind a __u32 is at another offset in a 32-bit program."""
        header = HEADER.read_text().replace("#endif /* KFD_CRIU_IOCTL_H */",
                                            "struct kfd_criu_hole {\n\t__u32 a;\n\t__u64 b;\n};\n#endif\n")
        tables = self.tables(header)
        self.assertNotEqual(tables[0], tables[2])

    def test_a_member_that_moves_does_not_compile(self):
        header = HEADER.read_text().replace("\t__u32 num_gpus;\n", "\t__u32 num_gpus;\n\t__u32 more[2];\n", 1)
        for target, language in itertools.product(TARGETS, LANGUAGES):
            done = self.compile(target, language, header, table_source({}))
            self.assertIn("kfd_criu_args changed size", done.stderr)

    def test_every_structure_is_found(self):
        declared = re.findall(r"^struct (\w+) \{", HEADER.read_text(), flags=re.MULTILINE)
        self.assertEqual(declared, list(members_of(HEADER.read_text())))
        self.assertIn("failure", members_of(HEADER.read_text())["kfd_criu_record_event"])

    def test_the_header_includes_what_every_kernel_has(self):
        includes = re.findall(r"#include (\S+)", HEADER.read_text())
        self.assertEqual(["<linux/ioctl.h>", "<linux/types.h>"], includes)


if __name__ == "__main__":
    unittest.main()
