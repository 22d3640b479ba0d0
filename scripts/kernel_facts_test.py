# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""Tests of kernel_facts.py: small headers, compiled as the kernel's are."""
import pathlib
import tempfile
import unittest

import kernel_facts

STRUCTS = """
enum color { RED = 3, BLUE };
struct packet {
	union {
		struct { uint32_t low:4; uint32_t high:28; } bitfields1;
		uint32_t ordinal1;
	};
	uint64_t address;
	uint32_t data[2];
};
"""
MACROS = """
#define PLAIN 0x10
#define SHIFTED (1ULL << 40) /* a comment */
#define OF_ONE(x) \\
	(((x) & 0xf) << 8)
#define NEEDS_MORE (adev->flags)
#define NEEDS_A_NAME (unknown + 1)
#define OTHER 1
"""


class FactsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.tree = pathlib.Path(folder.name)

    def struct_facts(self, text):
        (self.tree / "h.h").write_text(text)
        wanted = kernel_facts.Structs("u", "h.h", kernel_facts.INTEGERS)
        return set(kernel_facts.struct_facts(self.tree, wanted, str(self.tree)))

    def macro_facts(self, names):
        (self.tree / "h.h").write_text(MACROS)
        return set(kernel_facts.macro_facts(self.tree, kernel_facts.Macros("u", "h.h", names), str(self.tree)))

    def test_members_have_bits_and_widths(self):
        found = self.struct_facts(STRUCTS)
        self.assertLessEqual({"field u/packet.bitfields1.low 0 4", "field u/packet.bitfields1.high 4 28",
                              "field u/packet.ordinal1 0 32", "field u/packet.address 64 64",
                              "value u/sizeof.packet 24"}, found)

    def test_enumerators_are_values(self):
        self.assertLessEqual({"value u/RED 3", "value u/BLUE 4"}, self.struct_facts(STRUCTS))

    def test_macros_that_are_integers_are_values(self):
        self.assertEqual(self.macro_facts("[A-Z_]+"), {"value u/PLAIN 16", f"value u/SHIFTED {1 << 40}",
                                                       "value u/OF_ONE(1) 256", "value u/OTHER 1"})

    def test_only_wanted_names_are_printed(self):
        self.assertEqual(self.macro_facts("PL.*"), {"value u/PLAIN 16"})

    def test_a_header_without_facts_is_an_error(self):
        with self.assertRaises(kernel_facts.FactsError):
            self.struct_facts("")
        with self.assertRaises(kernel_facts.FactsError):
            self.macro_facts("ABSENT")

    def test_what_does_not_compile_is_an_error(self):
        with self.assertRaises(kernel_facts.FactsError):
            self.struct_facts("struct broken {")


if __name__ == "__main__":
    unittest.main()
