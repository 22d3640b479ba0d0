# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""The chip of the e2e tests and of the demo, $CHIP, and the one on which all cases run."""
from __future__ import annotations

import os

from . import plan

# Also the value of --full of scripts/test.py.
DEFAULT = "gfx906"


def chosen() -> str:
    """Its name. A PlanError says which chips there are, for it has to be one that executes waves."""
    name = os.environ.get("CHIP") or DEFAULT
    able = [chip for chip, properties in plan.chips().items() if properties["executes_waves"]]
    if name not in able:
        raise plan.PlanError(f"CHIP: '{name}' is none of the chips that execute waves: {' '.join(able)}")
    return name
