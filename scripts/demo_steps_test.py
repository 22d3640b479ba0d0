# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""The builds of a demo: their order, their lines, and that the first failure ends them."""
from __future__ import annotations

from pathlib import Path

import demo_steps
import pytest
from vm.errors import EXIT_FAIL, VmError


@pytest.fixture(name="folder")
def scripts_of_a_demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder whose scripts write their names and arguments into `ran`."""
    for name, status in (("first.sh", 0), ("second.sh", 3), ("third.sh", 0)):
        script = tmp_path / name
        script.write_text(f"#!/bin/sh\necho {name} $* >>{tmp_path}/ran\nexit {status}\n")
        script.chmod(0o755)
    monkeypatch.setattr(demo_steps, "SCRIPTS", tmp_path)
    return tmp_path


def test_steps_run_in_their_order(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    demo_steps.build(["first.sh", "a", "b"], ["third.sh"])
    assert (folder / "ran").read_text() == "first.sh a b\nthird.sh\n"
    assert [line.split("] ")[1] for line in capsys.readouterr().out.splitlines()] == ["scripts/first.sh a b", "scripts/third.sh"]


def test_a_step_that_fails_is_the_last(folder: Path) -> None:
    with pytest.raises(VmError) as raised:
        demo_steps.build(["first.sh"], ["second.sh", "x"], ["third.sh"])
    assert (raised.value.status, raised.value.message) == (EXIT_FAIL, "scripts/second.sh x failed with status 3")
    assert (folder / "ran").read_text() == "first.sh\nsecond.sh x\n"


def test_a_long_step_says_how_long_it_has_been_running(folder: Path, monkeypatch: pytest.MonkeyPatch,
                                                       capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "first.sh").write_text(f"#!/bin/sh\nuntil [ -e {folder}/seen ]; do sleep 0.01; done\n")
    monkeypatch.setattr(demo_steps, "BEAT_S", 0.02)
    say = demo_steps.say

    def say_and_release(text: str) -> None:
        say(text)
        if "running for" in text:
            (folder / "seen").touch()
    monkeypatch.setattr(demo_steps, "say", say_and_release)
    demo_steps.build(["first.sh"])
    assert "scripts/first.sh: running for 0 s" in capsys.readouterr().out
