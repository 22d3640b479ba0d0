# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""llama.cpp with Debian's ROCm 6.4, which CRIU moves in the middle of its answer: make test-distro.

The path of scripts/demo_llm.py with two moves on a gfx906, and an undisturbed run on a gfx90a; tests/harness/llm.py says
what the machines are like.
"""
from __future__ import annotations

from typing import Iterator

import pytest
from harness.llm import MACHINE_KINDS, MovedRun

MOVES = 2
pytestmark = [pytest.mark.tier("distro"), pytest.mark.group("distro-llm", seconds=900)]

each_machine = pytest.mark.parametrize("number", range(MOVES + 1))
each_dump = pytest.mark.parametrize("number", range(MOVES))


@pytest.fixture(name="run", scope="module")
def fixture_run() -> Iterator[MovedRun]:
    with MovedRun(MOVES) as run:
        yield run


def test_the_processor_gives_a_whole_answer(run: MovedRun) -> None:
    assert len(run.cpu().split()) == run.words


def test_the_virtual_gpu_gives_the_answer_of_the_processor(run: MovedRun) -> None:
    assert run.gpu() == run.cpu()


@each_machine
def test_each_machine_computes_words_and_its_kernel_does_not_complain(run: MovedRun, number: int) -> None:
    part = run.part(number)
    assert part.after > part.before


@each_dump
def test_the_dump_is_in_the_middle_of_the_answer(run: MovedRun, number: int) -> None:
    assert 0 < run.part(number).after < run.words


@each_dump
def test_no_word_is_lost_or_computed_by_two_machines(run: MovedRun, number: int) -> None:
    assert run.part(number).after == run.part(number + 1).before


@each_dump
def test_the_next_machine_has_other_gpus(run: MovedRun, number: int) -> None:
    here, there = run.part(number), run.part(number + 1)
    assert len(there.gpu_ids) == len(MACHINE_KINDS[(number + 1) % len(MACHINE_KINDS)].gpus)
    assert not set(here.gpu_ids) & set(there.gpu_ids)


def test_the_program_is_on_another_render_node_in_the_second_machine(run: MovedRun) -> None:
    assert (run.part(0).node, run.part(1).node) == ("/dev/dri/renderD128", "/dev/dri/renderD129")


def test_the_answer_equals_the_undisturbed_one_and_that_of_the_processor(run: MovedRun) -> None:
    assert run.moved()
    assert run.differences() == []


def test_matrix_instructions_give_the_answer_of_the_processor() -> None:
    with MovedRun(0, chip="gfx90a") as run:
        assert run.gpu() == run.cpu()
