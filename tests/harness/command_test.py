# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""scripts/test.py refuses what it cannot mean, in one line, and runs nothing then."""
from __future__ import annotations

import importlib.util
import os
import re
import subprocess

import pytest
from harness import builds, paths, times


def test_py(tmp_path, *words: str) -> subprocess.CompletedProcess:
    return subprocess.run([paths.SCRIPTS / "test.py", *words], check=False, capture_output=True, text=True,
                          env={"PATH": "/usr/bin:/bin", "OUT_DIR": str(tmp_path)})


# It is the command, not a test.
test_py.__test__ = False


@pytest.fixture(name="command")
def load_command(monkeypatch, tmp_path):
    """scripts/test.py as a module, with an output folder of its own."""
    monkeypatch.setattr(paths, "TEST", tmp_path)
    spec = importlib.util.spec_from_file_location("test_command", paths.SCRIPTS / "test.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("words, said", [
    (["nonsense"], "'nonsense' is neither a tier"),
    (["--groups", "nonsense"], "no group 'nonsense'; there are all coverage debug distro report soak soak-quick test"),
    (["--list", "python", "tests/harness/chip_test.py"], "a tier ('python') and a test ('tests/harness/chip_test.py')"),
    (["--list", "--lf", "tests/harness/streams_test.py"], "--lf selects the tests itself: name none"),
    (["--list", "--check", "tests/harness/streams_test.py"], "--check selects the tests itself: name none"),
    (["--list", "--lf", "lint"], "--lf selects the tests itself: name none ('lint')"),
    (["--list", "--check", "lint"], "--check selects the tests itself: name none ('lint')"),
    (["--list", "--check", "--lf"], "--lf and --check at once"),
    (["--no-build", "tests/harness/streams_test.py", "-k", "nothing_is_named_so"], "no test is selected"),
    (["--no-build", "tests/harness/streams_test.py::test_the_end_of"], "no test 'tests/harness/streams_test.py::test_the_end_of'; "
     "the nearest names are tests/harness/streams_test.py::test_the_end_of_another_case_ends_no_case"),
    (["--no-build", "python", "--nonsense"], "pytest: unrecognized arguments: --nonsense"),
    (["--no-build", "python", "-k", "("], "pytest: Wrong expression passed to '-k': (: "),
    (["--list", "tests/harness/streams_test.py", "-k", "nothing_is_named_so"], "no test is selected"),
    (["--list", "tests/harness/streams_test.py::nothing_is_named_so"], "no test 'tests/harness/streams_test.py::nothing_is"),
    (["--lf"], "no test failed in the last run"),
])
def test_what_selects_nothing_is_refused(tmp_path, words: list[str], said: str) -> None:
    done = test_py(tmp_path, *words)
    assert (done.returncode, done.stdout) == (64, "")
    assert said in done.stderr and len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("words, said", [
    (["--full", "gfx3"], "--full: no chip 'gfx3'"), (["lint", "-k", "qzxv" + "jxvj"], "no test is selected by -k"),
    (["tests/test_vm.py::test_qzxv" + "jxvj"], "no test 'tests/test_vm.py::test_"),
    (["lint", "--nonsense"], "pytest: unrecognized arguments: --nonsense")])
def test_what_selects_nothing_is_refused_before_the_builds(command, monkeypatch, words: list[str], said: str) -> None:
    def run_all(_builds) -> list[str]:
        raise AssertionError("it builds")

    monkeypatch.setattr(builds, "run_all", run_all)
    monkeypatch.setattr(command, "check_free_space", lambda _: None)
    monkeypatch.setattr(command.plan, "lacks_chips", lambda: False)
    monkeypatch.setattr(command.Path, "exists", lambda path: True)
    monkeypatch.setattr(command.plan, "chips", lambda: {"gfx906": {"name": "gfx906", "sibling_of": ""}})
    monkeypatch.setattr(command.os, "environ", {name: value for name, value in os.environ.items() if name != "CHIP"})
    ours, rest = command.parse(words)
    with pytest.raises(ValueError, match=said):
        command.run(ours, *command.split_words(rest))


@pytest.mark.parametrize("words, said", [
    (["-n", "x"], "-n is a number from 1, not 'x'"), (["--list", "-n", "-2"], "-n is a number from 1, not '-2'"),
    (["--list", "-n", "0"], "-n is a number from 1, not '0'"), (["--groups"], "--groups needs a value"),
    (["--lf=1"], "--lf/--last-failed ignored explicit argument '1'")])
def test_a_wrong_option_is_refused_in_one_line(tmp_path, words: list[str], said: str) -> None:
    done = test_py(tmp_path, *words)
    assert (done.returncode, done.stdout) == (64, "")
    assert done.stderr == f"test.py: error: {said} (try: test.py -h)\n"


def test_options_of_pytest_have_values(command) -> None:
    words = ["--maxfail", "3", "lint", "--durations=5", "-k", "python", "tests/test_vm.py"]
    assert command.split_words(words) == (["lint"], ["tests/test_vm.py"], ["--maxfail", "3", "--durations=5", "-k", "python"])
    for option in command.WITH_VALUE:
        assert f" {option}" in command.__doc__


def test_a_machine_that_the_plan_lacks_is_refused_in_one_line(command, monkeypatch) -> None:
    monkeypatch.setattr(command.paths, "built", lambda preset: paths.ROOT)
    monkeypatch.setattr(command.Path, "exists", lambda path: True)
    monkeypatch.setattr(command.plan, "chips", lambda: {})
    for group, name in (("", "host-asann"), ("", "host-release"), ("soak", "host-asan")):
        ours, _ = command.parse(["--groups", group])
        with pytest.raises(ValueError, match=f"no machine '{name}' in these groups .*; there are "):
            command.check_machines([f"tests/plan.toml::{name}::unit_gcn"], ours)
    ours, _ = command.parse(["--all"])
    command.check_machines(["tests/plan.toml::host-release::unit_gcn", "tests/harness/chip_test.py::x"], ours)


def test_a_machine_of_a_full_chip_alone_is_known(command, monkeypatch) -> None:
    """The command that repeats a failed test of the stock kernel names such a machine."""
    monkeypatch.setattr(command.paths, "built", lambda preset: paths.ROOT)
    monkeypatch.setattr(command.Path, "exists", lambda path: True)
    monkeypatch.setattr(command.plan, "chips", lambda: {"gfx906": {"name": "gfx906", "sibling_of": ""}})
    stock = ["tests/plan.toml::stock-gfx906::kfdtest::BoTest.x"]
    ours, _ = command.parse(["--all"])
    command.check_machines(stock, ours)
    with pytest.raises(ValueError, match="no machine 'stock-gfx906'"):
        command.check_machines(stock, command.parse([])[0])


def test_a_check_of_no_change_says_that_no_test_ran(command, monkeypatch, capsys) -> None:
    monkeypatch.setattr(command.check, "select", command.check.Selection)
    monkeypatch.setattr(command.sys, "argv", ["test.py", "--check"])
    assert command.main() == 0
    assert capsys.readouterr().out == "0 passed, 0 failed (the change can break no test)\n"


def test_a_run_ends_with_its_count(tmp_path) -> None:
    done = test_py(tmp_path, "--no-build", "tests/harness/streams_test.py", "-k", "kunit or googletest")
    assert done.returncode == 0
    assert done.stdout.splitlines()[-1] == "5 passed, 0 failed"


def test_times_are_those_of_the_last_run(tmp_path) -> None:
    (tmp_path / "test").mkdir()
    (tmp_path / "test/times.txt").write_text("those of another run")
    assert test_py(tmp_path, "--no-build", "tests/harness/chip_test.py").returncode == 0
    assert "from beginning to end" in (tmp_path / "test/times.txt").read_text()


def test_one_test_of_the_scripts_runs(tmp_path) -> None:
    done = test_py(tmp_path, "--no-build", "scripts/check_steps_test.py")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].endswith(" passed, 0 failed")


def test_a_list_keeps_the_results_of_the_last_run(tmp_path) -> None:
    test_py(tmp_path, "--no-build", "tests/harness/streams_test.py", "-k", "kunit")
    kept = {path: path.read_text() for path in (tmp_path / "test").glob("*.*")}
    assert {"results.jsonl", "junit.xml", "summary.json"} <= {path.name for path in kept}
    done = test_py(tmp_path, "--list", "tests/harness/streams_test.py")
    assert done.returncode == 0 and "streams_test.py::" in done.stdout
    assert {path: path.read_text() for path in kept} == kept


def test_groups_that_take_longest_begin_first(tmp_path) -> None:
    files = ["tests/test_boot.py", "tests/test_loops.py", "tests/test_e2e.py"]
    listed = [line.split("::")[0] for line in test_py(tmp_path, "--list", *files).stdout.splitlines() if "::" in line]
    first = {file: listed.index(file) for file in files}
    assert first["tests/test_e2e.py"] < first["tests/test_loops.py"] < first["tests/test_boot.py"]


def test_a_run_that_was_killed_leaves_what_failed(tmp_path) -> None:
    results = tmp_path / "test/results.jsonl"
    results.parent.mkdir()
    results.write_text('{"id": "tests/harness/chip_test.py", "outcome": "failed"}\n{"id": "tests/ha')
    done = test_py(tmp_path, "--lf", "--no-build")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].endswith(" passed, 0 failed")


def test_a_summary_that_was_cut_off_is_a_failure(command, capsys) -> None:
    (paths.TEST / "summary.json").write_text('{"passed": 3')
    assert command.closing_line(3) == 125
    assert capsys.readouterr().out == "0 passed, 1 failed\n"


@pytest.mark.parametrize("tiers, ids, options", [
    (["unit"], [], []), ([], ["tests/test_fuzz.py"], []), ([], [], ["-k", "fuzz"]), ([], [], [])])
def test_a_run_whose_build_fails_does_not_test_what_was_built_before(  # pylint: disable=too-many-arguments
        command, monkeypatch, capsys, tiers, ids, options) -> None:
    argv: list[str] = []

    def run_pytest(words: list[str]) -> int:
        argv.extend(words)
        (paths.TEST / "summary.json").write_text('{"passed": 3, "failed": 0, "skipped": 0}')
        return 0

    monkeypatch.setattr(command, "run_pytest", run_pytest)
    monkeypatch.setattr(command, "check_free_space", lambda _: None)
    monkeypatch.setattr(command.selection, "check_before_builds", lambda *_: None)
    monkeypatch.setattr(command.selection, "check", lambda *_: None)
    monkeypatch.setattr(builds, "run_all", lambda _: ["asan"])
    monkeypatch.setattr(times, "forget", lambda: None)
    monkeypatch.setattr(times, "write_table", lambda _: "")
    assert command.run(command.parse([])[0], tiers, ids, options) == 1
    assert [word for word in argv if word.startswith("tests/")] == ["tests/test_builds.py"]
    assert not [word for word in argv if word.startswith(("-k", "--tiers"))]
    assert "not built: asan" in capsys.readouterr().err


@pytest.mark.parametrize("each", ["tests", "tests/plan.toml"])
def test_a_folder_of_tests_needs_what_they_need(command, each: str) -> None:
    assert command.kinds_of([each]) == set(command.TIERS)


@pytest.mark.parametrize("test, built", [
    ("tests/plan.toml::host-asan::unit_base", [builds.RELEASE, builds.ASAN]),
    ("tests/plan.toml::host-tsan", [builds.RELEASE, builds.TSAN]),
    ("tests/plan.toml::host-release", [builds.RELEASE, builds.RELEASE_UNITS]),
    ("tests/test_fuzz.py", [builds.RELEASE, builds.ASAN]),
    ("tests/test_documents.py", [builds.RELEASE]),
])
def test_a_unit_test_needs_only_the_build_that_it_is_in(command, test: str, built: list[builds.Build]) -> None:
    assert command.needed_builds([], [test], "test", True) == built


def test_a_build_that_cannot_begin_is_not_built(monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(paths, "TEST", tmp_path)
    monkeypatch.setattr(builds, "RESULTS", tmp_path / "builds.json")
    monkeypatch.setattr(times, "STEPS", tmp_path / "times.jsonl")
    lane = [builds.Build("one", "lane", ("true",)), builds.Build("two/three", "lane", ("true",)),
            builds.Build("four", "lane", ("true",))]
    assert builds.run_all(lane) == ["two/three", "four"]


def on_a_disk_of(mib: int, folder, *words: str) -> subprocess.CompletedProcess:
    """Runs test.py with an output folder that is a file system of this size."""
    script = f'mount -t tmpfs -o size={mib}m tmpfs {folder} && exec "$@"'
    return subprocess.run(["unshare", "--mount", "sh", "-c", script, "_", paths.SCRIPTS / "test.py", "--no-build", *words],
                          check=False, capture_output=True, text=True,
                          env={"PATH": "/usr/bin:/bin", "OUT_DIR": str(folder)})


only_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts a small file system")


@only_root
def test_a_disk_with_too_little_free_space_is_named_in_one_line(tmp_path) -> None:
    done = on_a_disk_of(2, tmp_path, "lint")
    assert (done.returncode, done.stdout) == (125, "")
    assert done.stderr.strip() == f"test.py: error: {tmp_path}: 2 MiB are free, 256 MiB needed"


@only_root
def test_a_disk_that_is_full_during_a_run_is_one_line_with_the_file(tmp_path) -> None:
    out, filler = tmp_path / "out", tmp_path / "fill_test.py"
    out.mkdir()
    filler.write_text("""import contextlib
def test_fill():
    with contextlib.suppress(OSError), open("%s/filler", "wb", buffering=0) as file:
        while file.write(bytes(4096)):
            pass
""" % out)
    done = on_a_disk_of(300, out, "tests/harness/chip_test.py", str(filler))
    assert done.returncode == 125
    assert done.stderr == f"test.py: error: {out}/test/times.txt: No space left on device\n"
    # A result may still fit into the last page of its file.
    assert re.search(rf"{out}/test/(results\.jsonl|junit\.xml): No space left on device", done.stdout)


def test_results_that_cannot_be_written_are_one_line_with_the_file(tmp_path) -> None:
    (tmp_path / "test").mkdir()
    (tmp_path / "test/junit.xml").symlink_to("no_folder/junit.xml")
    done = test_py(tmp_path, "--no-build", "tests/harness/chip_test.py")
    assert (done.returncode, done.stderr) == (125, "")
    assert f"error: {tmp_path}/test/junit.xml: No such file or directory" in done.stdout.splitlines()
    assert done.stdout.splitlines()[-1] == "0 passed, 1 failed"


def test_a_chip_that_nobody_has_is_refused_with_those_there_are(tmp_path) -> None:
    vasicd = tmp_path / "cmake/release/userspace/vasicd/vasicd"
    vasicd.parent.mkdir(parents=True)
    vasicd.write_text("#!/bin/sh\necho '[{\"name\": \"gfx1\"}, {\"name\": \"gfx2\"}]'\n")
    vasicd.chmod(0o755)
    done = test_py(tmp_path, "--no-build", "--full", "gfx3", "lint")
    assert done.returncode == 64
    assert "--full: no chip 'gfx3'; there are gfx1 gfx2" in done.stderr


def test_costly_tests_run_only_if_they_are_selected(tmp_path) -> None:
    listed = test_py(tmp_path, "--list", "tests/test_series.py").stdout
    # Without a selection test.py names no file; here the file only keeps the list short.
    left_out = subprocess.run([paths.PYTHON, "-B", "-m", "pytest", "--collect-only", "-q", "tests/test_series.py"], cwd=paths.ROOT,
                              check=True, capture_output=True, text=True).stdout
    cheap, costly = "test_the_series_follow_their_rules", "test_checkpatch_finds_no_error_in_the_series"
    assert (cheap in listed, costly in listed) == (True, True)
    assert (cheap in left_out, costly in left_out) == (True, False)
