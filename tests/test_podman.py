# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""Containers that podman checkpoints in one machine and restores in another one: make test-distro.

tests/harness/podman.py says what the machines and the containers are like.
"""
from __future__ import annotations

from typing import Iterator

import pytest
from harness import podman
from harness.podman import CASES, DRM_MAJOR, Case, First, PodmanMachine, Second

pytestmark = [pytest.mark.tier("distro"), pytest.mark.group("distro-podman", seconds=300)]

each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


@pytest.fixture(name="first", scope="module")
def fixture_first() -> Iterator[First]:
    podman.prepare()
    with First() as machine:
        yield machine


@pytest.fixture(name="second", scope="module")
def fixture_second(first: First) -> Iterator[Second]:
    with Second(first) as machine:
        yield machine


def debian_says(machine: PodmanMachine, command: str) -> str:
    """The output of a shell command in a machine with the package."""
    machine.installed()
    return machine.step("sh", "-c", command)


# ---- the package in Debian 13 ----------------------------------------------------


def test_the_package_can_be_installed(first: First) -> None:
    first.installed()
    assert debian_says(first, "dpkg-query -W -f '${Status}' amdkfd-criu-plugin") == "install ok installed"


def test_its_files_are_what_dpkg_has_unpacked(first: First) -> None:
    assert debian_says(first, "dpkg --verify amdkfd-criu-plugin") == ""


def test_crius_configuration_has_the_option_that_rocm_needs(first: First) -> None:
    assert debian_says(first, "grep -v '^#' /etc/criu/default.conf") == "link-remap"


def test_kfd_criu_runs_there(first: First) -> None:
    assert debian_says(first, "kfd-criu topology").count("gfx906") == 2


# ---- the machine in which the containers begin -----------------------------------


def test_an_undisturbed_run_in_a_container_has_a_result(first: First) -> None:
    assert first.undisturbed()


@each_case
def test_a_container_with_one_of_two_gpus_starts(first: First, case: Case) -> None:
    first.started(case)


@each_case
def test_its_program_uses_that_gpu_alone(first: First, case: Case) -> None:
    assert first.minors(case) == {case.minor}


@each_case
def test_podman_exports_a_checkpoint(first: First, case: Case) -> None:
    first.checkpointed(case)
    assert case.checkpoint.exists()


@each_case
def test_criu_has_loaded_the_plugin_of_the_package(first: First, case: Case) -> None:
    first.checkpointed(case)
    assert '"amdgpu_plugin"' in (podman.RUN / f"{case.name}.dump.log").read_text(errors="replace")


def test_the_containers_devices_are_in_the_checkpoint_with_the_first_machines_numbers(first: First) -> None:
    first.checkpointed(CASES[0])
    assert podman.devices_of(CASES[0])[CASES[0].device] == (DRM_MAJOR, CASES[0].minor)


def test_the_first_machines_kernel_does_not_complain(first: First) -> None:
    first.undisturbed()
    for case in CASES:
        first.checkpointed(case)
    first.must_be_content()


# ---- the machine in which they continue ------------------------------------------


@each_case
def test_the_container_is_restored_in_another_machine(second: Second, case: Case) -> None:
    second.restored(case)


@each_case
def test_its_program_has_one_gpu_again(second: Second, case: Case) -> None:
    assert len(second.minors(case)) == 1


def test_the_large_gpus_program_has_it_again_and_under_another_minor(second: Second) -> None:
    assert second.minors(CASES[0]) == {129}


@each_case
def test_the_containers_result_equals_the_undisturbed_one(first: First, second: Second, case: Case) -> None:
    assert second.result(case) == first.undisturbed()


def test_the_second_machines_kernel_does_not_complain(second: Second) -> None:
    for case in CASES:
        second.result(case)
    second.must_be_content()
