# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""CHIP is one of those that execute waves."""
from __future__ import annotations

import pytest
from harness import chip, plan


def test_a_wrong_chip_is_one_line_with_those_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "chips", lambda: {"gfx906": {"executes_waves": True}, "gfx1100": {"executes_waves": False}})
    monkeypatch.delenv("CHIP", raising=False)
    assert chip.chosen() == "gfx906"
    for wrong in ("gfx1100", "gfx9"):
        monkeypatch.setenv("CHIP", wrong)
        with pytest.raises(plan.PlanError, match=f"^CHIP: '{wrong}' is none of the chips that execute waves: gfx906$"):
            chip.chosen()
