# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""The plugin on the stock kernel, which has only the ABI that Linux 5.18 released.

Machine, programs and outcomes are those of test_field.py. What that kernel cannot do is in the report of
scripts/report.py; here each process uses each GPU, and no queue has its save area in SVM memory.
"""
from __future__ import annotations

from typing import Iterator

import pytest
from harness import paths
from harness.field import DEMO, EQUAL, PAIR, REFUSED, Case, Field, chosen_chip, must_be, table
from harness.steps import fail, fresh

pytestmark = [pytest.mark.group("field-stock", seconds=200), pytest.mark.tier("e2e"), pytest.mark.heavy]

# A warning that the stock kernel prints when a process ends that was restored on another GPU.
KNOWN = "ttm_bo_release"
FIRST, SECOND = 17, 18
ONE, OTHER = f"{FIRST}", f"{SECOND}"
PROGRAM, TWO_PROCESSES = ("field_program",), ("field_group", "--processes", "2")

CASES = (
    Case("a_program", DEMO, EQUAL),
    Case("two_processes", TWO_PROCESSES, EQUAL, reference=TWO_PROCESSES),
    Case("children_with_lower_pids", (*PROGRAM, "--children", "low"), EQUAL),
    Case("a_second_kfd_file", (*PROGRAM, "--also", "kfd"), EQUAL),
    Case("a_gem_object_beside_kfd", (*PROGRAM, "--gem", "handle"), REFUSED, ("field_program", "renderD", "GEM")),
    Case("a_shared_buffer", PAIR, REFUSED, ("field_group", "share"), PAIR),
    Case("a_pidfd", (*PROGRAM, "--also", "pidfd"), REFUSED, ("Can't dump file 200",)),
)


def new_machine(name: str) -> Field:
    """A machine with the stock kernel and two equal GPUs."""
    gpus = {FIRST: chosen_chip(), SECOND: chosen_chip()}
    return Field(name, fresh(paths.OUT / name), gpus, "stock", paths.built("release") / "plugin")


@pytest.fixture(name="stock", scope="module")
def fixture_stock() -> Iterator[Field]:
    with new_machine("field-stock") as machine:
        yield machine


@pytest.mark.parametrize("case", table(CASES))
def test_case_by_the_released_abi(stock: Field, case: Case) -> None:
    stock.become(ONE)
    must_be(stock.checkpoint(case.name, stock.undisturbed(*case.reference), *case.words), case.wanted, *case.says)


def test_the_stock_kernel_does_not_complain(stock: Field) -> None:
    stock.become(ONE)
    stock.must_be_content()


def move(stock: Field) -> None:
    """Dumps a program on one GPU and restores it on the other."""
    stock.become(ONE)
    expected = stock.undisturbed(*DEMO)
    name = stock.start("moved", *DEMO)
    images = f"images.{name}"
    before = stock.look(name)
    if stock.dump(name, images)[0] != 0:
        fail(f"the dump failed\n{stock.shown_errors(f'{images}.dump.log')}")
    assert "KFD has the released ABI" in stock.log(f"{images}.dump.log")
    stock.become(OTHER)
    if stock.restore(images) != 0:
        fail(f"the restore failed\n{stock.shown_errors(f'{images}.restore.log')}")
    must_be(stock.after_restore(name, before, expected), EQUAL)


def test_the_released_abi_restores_on_another_gpu() -> None:
    """In a machine of its own, whose kernel warns of the page of events, which stays pinned (kernel/fixes, 0008)."""
    stock = new_machine("field-stock-moved")
    try:
        move(stock)
    finally:
        complaint = stock.finish()
    assert not [line for line in complaint.splitlines() if line.startswith("while ") and KNOWN not in line], complaint
