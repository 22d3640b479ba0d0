# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""Each build that scripts/test.py did before the tests is a case."""
from __future__ import annotations

import json
from pathlib import Path

import pytest
from harness import builds

TAIL_LINES = 40


def _results() -> dict[str, dict]:
    return json.loads(builds.RESULTS.read_text()) if builds.RESULTS.exists() else {}


@pytest.mark.parametrize("name", list(_results()))
def test_succeeds(name: str) -> None:
    result = _results()[name]
    if result["status"] != 0:
        log = Path(result["log"]) if result["log"] else None
        tail = log.read_text(errors="replace").splitlines()[-TAIL_LINES:] if log else []
        pytest.fail("\n".join([f"{result['why']}, log: {log}", *tail]), pytrace=False)


# A run without builds has no case here; pytest would report one that skips.
test_succeeds.__test__ = bool(_results())
