# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""scripts/test.py refuses what it cannot mean, in one line, and runs nothing then."""
from __future__ import annotations

import os
import subprocess

import pytest
from harness import paths


def test_py(tmp_path, *words: str) -> subprocess.CompletedProcess:
    return subprocess.run([paths.SCRIPTS / "test.py", *words], check=False, capture_output=True, text=True,
                          env={"PATH": "/usr/bin:/bin", "OUT_DIR": str(tmp_path)})


# It is the command, not a test.
test_py.__test__ = False


@pytest.mark.parametrize("words, said", [
    (["nonsense"], "'nonsense' is neither a tier"),
    (["--groups", "nonsense"], "no group 'nonsense'; there are all coverage debug report soak soak-quick test"),
    (["--no-build", "tests/harness/streams_test.py", "-k", "nothing_is_named_so"], "no test is selected"),
    (["--no-build", "tests/harness/streams_test.py::nothing_is_named_so"], "no test is selected"),
])
def test_what_selects_nothing_is_refused(tmp_path, words: list[str], said: str) -> None:
    done = test_py(tmp_path, *words)
    assert done.returncode == 64
    assert said in done.stderr.splitlines()[-1]


def test_a_run_ends_with_its_count(tmp_path) -> None:
    done = test_py(tmp_path, "--no-build", "tests/harness/streams_test.py", "-k", "kunit or googletest")
    assert done.returncode == 0
    assert done.stdout.splitlines()[-1] == "5 passed, 0 failed"


def test_nothing_failed_before_is_no_failure(tmp_path) -> None:
    done = test_py(tmp_path, "--lf")
    assert (done.returncode, done.stderr.strip()) == (0, "test.py: nothing failed in the run before")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts a small file system")
def test_a_disk_without_room_is_named_in_one_line(tmp_path) -> None:
    command = f"mount -t tmpfs -o size=2m tmpfs {tmp_path} && exec {paths.SCRIPTS}/test.py --no-build lint"
    done = subprocess.run(["unshare", "--mount", "sh", "-c", command], check=False, capture_output=True, text=True,
                          env={"PATH": "/usr/bin:/bin", "OUT_DIR": str(tmp_path)})
    assert (done.returncode, done.stdout) == (125, "")
    assert done.stderr.strip() == f"test.py: error: {tmp_path}: 2 MiB are free, 256 MiB needed"


def test_a_chip_that_nobody_has_is_refused_with_those_there_are(tmp_path) -> None:
    vasicd = tmp_path / "cmake/release/userspace/vasicd/vasicd"
    vasicd.parent.mkdir(parents=True)
    vasicd.write_text("#!/bin/sh\necho '[{\"name\": \"gfx1\"}, {\"name\": \"gfx2\"}]'\n")
    vasicd.chmod(0o755)
    done = test_py(tmp_path, "--no-build", "--full", "gfx3", "lint")
    assert done.returncode == 64
    assert "--full: no chip 'gfx3'; there are gfx1 gfx2" in done.stderr
