# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""scripts/coverage.py knows its machines, also before anything is built."""
from __future__ import annotations

import importlib.util
import json
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


@pytest.mark.parametrize("lines, branches, status", [(90.0, 80.0, 0), (89.9, 99.0, 1), (99.0, 79.9, 1)])
def test_too_little_coverage_is_an_error_that_names_the_machines(coverage, monkeypatch, capsys, lines: float,
                                                                 branches: float, status: int) -> None:
    (coverage.FOLDER / "coverage-gfx906").mkdir(parents=True)
    summary = {"line_percent": lines, "branch_percent": branches, "line_covered": 1, "line_total": 2,
               "branch_covered": 1, "branch_total": 2, "files": []}
    (coverage.FOLDER / "summary.json").write_text(json.dumps(summary))
    monkeypatch.setattr(coverage, "merge", lambda: None)
    monkeypatch.setattr(coverage, "gcovr", lambda *_: "")
    assert coverage.main(["--write"]) == status
    assert ("the branches ran in coverage-gfx906" in capsys.readouterr().err) == bool(status)


def test_a_guest_without_counts_is_told_how_to_get_them(tmp_path: Path) -> None:
    """The guest's agent has read the guest's lib.sh before it reads a script of that folder."""
    guest = paths.SCRIPTS / "guest"
    done = subprocess.run(["bash", "-c", 'source "$1/lib.sh"; source "$1/collect_gcov.sh" "$2"', "agent", guest, tmp_path],
                          check=False, capture_output=True, text=True)
    assert (done.returncode, "build it with kernel.sh build criu --coverage" in done.stderr) == (125, True), done.stderr


def test_scripts_of_the_guest_read_only_its_own_library() -> None:
    """The library that all scripts share has constants, so that no shell can read it twice."""
    scripts = {file.name: file.read_text() for file in (paths.SCRIPTS / "guest").glob("*.sh")}
    assert [name for name, text in scripts.items() if '/../lib.sh"' in text] == ["lib.sh"]
