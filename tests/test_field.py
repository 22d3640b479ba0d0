# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""What users report of checkpoints of GPU programs, as tests with CRIU and the plugin.

Each case ends in one of two ways (harness/field.py): the program comes back equal, or its dump is refused
by name and the program continues. One virtual machine has three GPUs; the driver is reloaded so that the
machine has some of them. The programs are those of userspace/fieldtest.
"""
from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Iterator

import pytest
from harness import chip, paths, plan
from harness.field import EQUAL, Field, Outcome
from harness.steps import fail, fresh

pytestmark = [pytest.mark.group("field", seconds=360), pytest.mark.tier("e2e")]

RUN = paths.OUT / "field"
# PCI slots. The chip of the GPU in the first slot is another one, so it fits no image.
STRANGER, FIRST, SECOND = 16, 17, 18
ONE = f"{FIRST}"
VRAM = "256M"
# scripts/field_table.py compares with CRIU's own plugin on the stock kernel: a folder with `criu` and `plugin/`.
OTHER_CRIU = os.environ.get("FIELD_CRIU")
KERNEL = "stock" if OTHER_CRIU else "criu"
PLUGIN = Path(OTHER_CRIU) / "plugin" if OTHER_CRIU else paths.built("release") / "plugin"
DEMO, PROGRAM = ("demo_program",), ("field_program",)


@dataclass(frozen=True)
class Case:
    """A program, what has to become of it, and words that the line of a refusal has. The undisturbed program
    with the right result is `reference`."""

    name: str
    words: tuple[str, ...]
    wanted: str
    says: tuple[str, ...] = ()
    reference: tuple[str, ...] = DEMO
    heavy: bool = False


CASES = (
    Case("children", (*PROGRAM, "--children", "high"), EQUAL),
)


def table() -> list:
    """The cases as parameters of a test."""
    return [pytest.param(case, id=case.name, marks=[pytest.mark.heavy] if case.heavy else []) for case in CASES]


def must_be(outcome: Outcome, wanted: str, *says: str) -> None:
    """Fails unless the outcome is the wanted one, and a refusal has these words."""
    if outcome.kind != wanted:
        fail(f"wanted: {wanted}; {outcome}")
    if missing := [word for word in says if word.lower() not in outcome.line.lower()]:
        fail(f"the refusal does not say {missing}: {outcome.line}")


class Machine(Field):
    """The machine of this file."""

    def __init__(self, name: str, run: Path) -> None:
        try:
            chosen = chip.chosen()
        except plan.PlanError as error:
            fail(str(error))
        stranger = "gfx906" if chosen != "gfx906" else "gfx90a"
        super().__init__(name, run, [f"{stranger},vram={VRAM},slot={STRANGER}", f"{chosen},vram={VRAM},slot={FIRST}",
                                     f"{chosen},vram={VRAM},slot={SECOND}"], KERNEL, PLUGIN,
                         Path(OTHER_CRIU) if OTHER_CRIU else None)


@pytest.fixture(name="field", scope="module")
def fixture_field() -> Iterator[Machine]:
    with Machine("field", fresh(RUN)) as machine:
        yield machine


# ---- one GPU, one machine --------------------------------------------------------


@pytest.mark.parametrize("case", table())
def test_case(field: Machine, case: Case) -> None:
    field.become(ONE)
    expected = field.undisturbed(*case.reference)
    must_be(field.checkpoint(case.name, expected, *case.words), case.wanted, *case.says)


# ---- the kernel ------------------------------------------------------------------------


def test_the_machines_kernel_does_not_complain(field: Machine) -> None:
    field.must_be_content()
