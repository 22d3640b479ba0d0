# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""llama.cpp with Debian's ROCm 6.4, which CRIU moves in the middle of its answer: make test-distro.

The path of scripts/demo_llm.py with two moves; tests/harness/llm.py says what the machines are like.
"""
from __future__ import annotations

from typing import Iterator

import pytest
from harness.llm import PLACES, Journey

MOVES = 2
pytestmark = [pytest.mark.tier("distro"), pytest.mark.group("distro-llm", seconds=900)]

each_machine = pytest.mark.parametrize("number", range(MOVES + 1))
each_dump = pytest.mark.parametrize("number", range(MOVES))


@pytest.fixture(name="journey", scope="module")
def fixture_journey() -> Iterator[Journey]:
    with Journey(MOVES) as journey:
        yield journey


def test_the_processor_gives_a_whole_answer(journey: Journey) -> None:
    assert len(journey.cpu().split()) == journey.words


def test_the_virtual_gpu_gives_the_answer_of_the_processor(journey: Journey) -> None:
    assert journey.gpu() == journey.cpu()


@each_machine
def test_each_machine_computes_words_and_its_kernel_does_not_complain(journey: Journey, number: int) -> None:
    leg = journey.leg(number)
    assert leg.after > leg.before


@each_dump
def test_the_dump_is_in_the_middle_of_the_answer(journey: Journey, number: int) -> None:
    assert 0 < journey.leg(number).after < journey.words


@each_dump
def test_no_word_is_lost_or_computed_by_two_machines(journey: Journey, number: int) -> None:
    assert journey.leg(number).after == journey.leg(number + 1).before


@each_dump
def test_the_next_machine_has_other_gpus(journey: Journey, number: int) -> None:
    here, there = journey.leg(number), journey.leg(number + 1)
    assert len(there.gpu_ids) == len(PLACES[(number + 1) % len(PLACES)].gpus)
    assert not set(here.gpu_ids) & set(there.gpu_ids)


def test_the_program_is_on_another_render_node_in_the_second_machine(journey: Journey) -> None:
    assert (journey.leg(0).node, journey.leg(1).node) == ("/dev/dri/renderD128", "/dev/dri/renderD129")


def test_the_answer_equals_the_undisturbed_one_and_that_of_the_processor(journey: Journey) -> None:
    assert journey.moved()
    assert journey.differences() == []
