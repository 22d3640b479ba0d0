# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""Memory that processes and drivers share, by CRIU on chips of other schedulers and packet formats than gfx906's.

Machine, programs and outcomes are those of test_field.py, which runs the same shapes on gfx906.
"""
from __future__ import annotations

from typing import Iterator

import pytest
from harness import paths
from harness.field import SHARING, Case, Field, must_be, table
from harness.steps import fresh

pytestmark = [pytest.mark.tier("e2e"), pytest.mark.heavy]

FIRST, SECOND = 17, 18
# Schedulers: HWS with the packets of a later gfx9, and MES.
CHIPS = ("gfx90a", "gfx1100")


@pytest.fixture(name="field", scope="module", params=[
    pytest.param(chip, marks=pytest.mark.group(f"field-{chip}", seconds=150)) for chip in CHIPS])
def fixture_field(request: pytest.FixtureRequest) -> Iterator[Field]:
    name = f"field-{request.param}"
    gpus = {FIRST: request.param, SECOND: request.param}
    with Field(name, fresh(paths.OUT / name), gpus, "criu", paths.built("release") / "plugin") as machine:
        yield machine


@pytest.mark.parametrize("case", table(SHARING))
def test_case(field: Field, case: Case) -> None:
    field.become(f"{FIRST}")
    must_be(field.checkpoint(case.name, field.undisturbed(*case.reference), *case.words), case.wanted, *case.says)


def test_the_kernel_does_not_complain(field: Field) -> None:
    field.become(f"{FIRST}")
    field.must_be_content()
