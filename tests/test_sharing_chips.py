# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""Memory that processes and drivers share, by CRIU on chips of other schedulers and packet formats than gfx906's.

Machine, programs and outcomes are those of test_field.py, which runs the same shapes on gfx906. All contents are copied by
SDMA, in the packet formats of every generation.
"""
from __future__ import annotations

from typing import Iterator

import pytest
from harness import paths
from harness.field import SHARING, Case, Field, must_be
from harness.steps import fresh

pytestmark = [pytest.mark.tier("e2e"), pytest.mark.heavy]

FIRST, SECOND = 17, 18
SOME = ("two_processes", "open_dmabufs", "gem_objects_shared_with_kfd", "memory_mapped_as_hip_does_it")
SOME_OF_SHARING = [case for case in SHARING if case.name in SOME]
CHIPS = {"gfx90a": SHARING, "gfx1100": SHARING,  # HWS with the packets of a later gfx9; MES
         # SDMA 2 without a scheduler, SDMA 3 with HWS, SDMA 7.
         "gfx701": SOME_OF_SHARING, "gfx803": SOME_OF_SHARING, "gfx1201": SOME_OF_SHARING}


def group(chip: str) -> pytest.MarkDecorator:
    """Marks the tests of a chip, which run in one machine."""
    return pytest.mark.group(f"field-{chip}", seconds=20 + 9 * len(CHIPS[chip]))


@pytest.fixture(name="field", scope="module")
def fixture_field(request: pytest.FixtureRequest) -> Iterator[Field]:
    name = f"field-{request.param}"
    gpus = {FIRST: request.param, SECOND: request.param}
    with Field(name, fresh(paths.OUT / name), gpus, "criu", paths.built("release") / "plugin") as machine:
        yield machine


@pytest.mark.parametrize("field, case", [
    pytest.param(chip, case, id=f"{chip}-{case.name}", marks=group(chip)) for chip, cases in CHIPS.items() for case in cases],
    indirect=["field"])
def test_case(field: Field, case: Case) -> None:
    field.become(f"{FIRST}")
    must_be(field.checkpoint(case.name, field.undisturbed(*case.reference), *case.words), case.wanted, *case.says)


@pytest.mark.parametrize("field", [pytest.param(chip, id=chip, marks=group(chip)) for chip in CHIPS], indirect=True)
def test_the_kernel_does_not_complain(field: Field) -> None:
    field.become(f"{FIRST}")
    field.must_be_content()
