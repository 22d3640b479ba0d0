# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""The table of field_table.py says of each test what happened with each plugin."""
from __future__ import annotations

import json

from field_table import NOT_RUN, WANTED, cells, table


def row(name: str, outcome: str, text: str = "") -> str:
    return json.dumps({"id": f"tests/test_field.py::{name}", "outcome": outcome, "seconds": 1, "text": text})


def test_a_failure_is_its_first_line() -> None:
    found = cells([row("test_a", "passed"), row("test_b", "failed", "\nwanted: equal; lost: gone\n  | more"),
                   row("test_c", "failed", "the restore failed")])
    assert found == {"test_a": WANTED, "test_b": "lost: gone", "test_c": "the restore failed"}


def test_each_test_has_a_cell_of_both() -> None:
    lines = table({"test_a_b": WANTED}, {"test_c": "lost"})
    assert lines == ["a b", f"    ours    {WANTED}", f"    theirs  {NOT_RUN}",
                     "c", f"    ours    {NOT_RUN}", "    theirs  lost"]
