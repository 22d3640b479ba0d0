# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""scripts/coverage.py knows its machines, also before anything is built."""
from __future__ import annotations

import importlib.util
import subprocess
from pathlib import Path

import pytest
from harness import paths, plan


@pytest.fixture(name="coverage")
def load_coverage(monkeypatch, tmp_path: Path):
    """scripts/coverage.py as a module, in a project whose vasicd, which lists one chip, is not built yet."""
    monkeypatch.setattr(paths, "OUT", tmp_path)
    spec = importlib.util.spec_from_file_location("coverage_command", paths.SCRIPTS / "coverage.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    started: list[list[str]] = []
    run = subprocess.run

    def start(argv, **options) -> subprocess.CompletedProcess:
        words = [Path(argv[0]).name, *map(str, argv[1:])]
        if words[0] == "vasicd":
            return run(argv, **options)
        started.append(words)
        if words[0] == "build.sh":
            vasicd = paths.built("release") / "vasicd/vasicd"
            vasicd.parent.mkdir(parents=True)
            vasicd.write_text("#!/bin/sh\necho '[{\"name\": \"gfx906\"}]'\n")
            vasicd.chmod(0o755)
        return subprocess.CompletedProcess(argv, 0)

    monkeypatch.setattr(subprocess, "run", start)
    module.started = started
    plan.chips.cache_clear()
    yield module
    plan.chips.cache_clear()


def test_a_machine_is_known_before_anything_is_built(coverage, capsys) -> None:
    assert coverage.main(["coverage-gfx906"]) == 125
    assert coverage.started[-1][-1] == "tests/plan.toml::coverage-gfx906"
    assert "run coverage.py without --write first" in capsys.readouterr().err


def test_a_machine_that_there_is_not_is_refused_with_those_there_are(coverage, capsys) -> None:
    assert coverage.main(["coverage-gfx1"]) == 64
    assert "no machine 'coverage-gfx1'; there are coverage-gfx906 coverage-xnack-gfx90a" in capsys.readouterr().err
