#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""Tests of check_layers.py on a miniature project."""
from __future__ import annotations

import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.dont_write_bytecode = True
import check_layers  # noqa: E402

TABLE = """# Text
<!-- layers -->

| part | may include |
|---|---|
| `base` | |
| packets | `base` |
| plugin | base, uapi |
| plugin/copy | base packets |
<!-- /layers -->
"""


class MiniatureProject(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="layers-test-")
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name).resolve()
        self.write("kernel/uapi/vasic/abi.h", "")
        self.write("userspace/base/error.h", '#include "vasic/abi.h"\n#include <vector>\n')
        self.write("userspace/packets/pm4.h", '#include "base/error.h"\n')
        self.write("userspace/plugin/hooks.cc", '#include "plugin/copy/sdma.h"\n#include "base/error.h"\n')
        self.write("userspace/plugin/copy/sdma.h", '#include "packets/pm4.h"\n')

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def breaches(self) -> list[str]:
        return check_layers.Project(self.root, check_layers.parse_table(TABLE)).run()

    def expect_breach(self, *words: str) -> None:
        found = self.breaches()
        self.assertEqual(len(found), 1, found)
        for word in words:
            self.assertIn(word, found[0])

    def test_allowed_includes_pass(self):
        self.assertEqual(self.breaches(), [])

    def test_an_include_that_is_not_allowed_names_file_line_and_row(self):
        self.write("userspace/base/log.cc", '#include <string>\n#include "packets/pm4.h"\n')
        self.expect_breach("userspace/base/log.cc:2", "base must not depend on packets", "row 'base'")

    def test_an_include_relative_to_the_file_is_seen(self):
        self.write("userspace/base/log.cc", '#include "../packets/pm4.h"\n')
        self.expect_breach("packets")

    def test_a_permission_of_a_sub_folder_is_not_one_of_its_parent(self):
        self.write("userspace/plugin/dump.cc", '#include "packets/pm4.h"\n')
        self.expect_breach("plugin/dump.cc:1", "packets")

    def test_the_kernel_never_includes_user_space(self):
        self.write("kernel/series/overlay/x.c", '#include "../../../userspace/base/error.h"\n')
        self.expect_breach("kernel must not depend on base")

    def test_a_link_that_is_not_allowed_is_a_breach(self):
        self.write("userspace/packets/CMakeLists.txt", "add_library(packets INTERFACE)\n")
        self.write("userspace/base/CMakeLists.txt", "add_library(base INTERFACE)\n"
                                                    "target_link_libraries(base INTERFACE\n  uapi packets)\n")
        self.expect_breach("base/CMakeLists.txt:2", "links packets")

    def test_a_path_into_another_part_is_a_breach(self):
        self.write("userspace/base/generate.py", "open('userspace/plugin/hooks.cc')\n")
        self.expect_breach("base/generate.py:1", "plugin")

    def test_units_in_a_circle_are_a_breach(self):
        self.write("userspace/plugin/one.h", "")
        self.write("userspace/plugin/one.cc", '#include "plugin/one.h"\n#include "plugin/two.h"\n')
        self.write("userspace/plugin/two.h", '#include "plugin/three.h"\n')
        self.write("userspace/plugin/three.h", "")
        self.write("userspace/plugin/three.cc", '#include "plugin/one.h"\n')
        self.expect_breach("circle: plugin/one plugin/three plugin/two")

    def test_folders_in_a_circle_are_a_breach(self):
        self.write("userspace/plugin/hooks.h", "")
        self.write("userspace/plugin/copy/cpu.h", '#include "plugin/hooks.h"\n')
        self.expect_breach("circle: plugin plugin/copy")

    def test_a_test_closes_no_circle(self):
        self.write("userspace/plugin/hooks.h", "")
        self.write("userspace/plugin/copy/cpu_test.cc", '#include "plugin/hooks.h"\n')
        self.write("userspace/plugin/copy/fake_cpu.h", '#include "plugin/hooks.h"\n')
        self.assertEqual(self.breaches(), [])

    def test_a_folder_without_a_row_is_a_breach(self):
        self.write("userspace/extra/x.cc", "")
        self.expect_breach("userspace/extra: no row")


class Table(unittest.TestCase):
    def test_backticks_blanks_and_commas_are_understood(self):
        table = check_layers.parse_table(TABLE)
        self.assertEqual(table["base"], set())
        self.assertEqual(table["packets"], {"base"})
        self.assertEqual(table["plugin"], {"base", "uapi"})
        self.assertEqual(table["plugin/copy"], {"base", "packets"})

    def test_mistakes_are_refused(self):
        for text in ("no markers", "<!-- layers -->\n| part | may include |\n|---|---|\n<!-- /layers -->",
                     "<!-- layers -->\n| a | b |", TABLE.replace("base, uapi", "nonesuch")):
            with self.subTest(text=text), self.assertRaises(check_layers.TableError):
                check_layers.parse_table(text)


if __name__ == "__main__":
    unittest.main()
