# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""Tests of check_steps.py: pure functions, small texts."""
import unittest

import check_steps

TEXT = """## Life of a test

1. `Dump::pause` then `IOCTL` in `hooks.cc`.
2. `lost_function` too.

## Other
`elsewhere`
"""


class StepsTest(unittest.TestCase):
    def test_names_are_taken_from_the_steps_only(self):
        self.assertEqual(check_steps.named_functions(TEXT), ["Dump::pause", "lost_function"])

    def test_a_name_that_no_source_has_is_reported(self):
        sources = ["Status Dump::pause() {}"]
        self.assertEqual(check_steps.missing(["Dump::pause", "lost_function"], sources), ["lost_function"])


if __name__ == "__main__":
    unittest.main()
