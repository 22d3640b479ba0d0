# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""Each check of scripts/lint.sh is a case; others are here: lines of shell and of a file, prefixes of drivers' functions,
subjects of commits."""
from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from harness import paths

LINT = paths.SCRIPTS / "lint.sh"
# Lines of all shell scripts: decisions and data belong to Python.
SHELL_LINES = 3000


def _checks() -> list[str]:
    return subprocess.run([LINT, "--list"], check=True, capture_output=True, text=True).stdout.split()


@pytest.mark.parametrize("check", _checks())
def test_the_sources_pass(check: str) -> None:
    done = subprocess.run([LINT, check], check=False, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        pytest.fail(done.stdout + done.stderr, pytrace=False)


@pytest.mark.parametrize("check, program", [("licences", "awk"), ("format", "clang-format"), ("shell", "shellcheck")])
def test_a_program_of_a_check_that_cannot_run_fails_the_check(tmp_path: Path, check: str, program: str) -> None:
    broken = tmp_path / program
    broken.write_text("#!/bin/sh\necho it cannot run >&2\nexit 2\n")
    broken.chmod(0o755)
    done = subprocess.run([LINT, check], check=False, capture_output=True, text=True, stdin=subprocess.DEVNULL,
                          env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"})
    assert done.returncode == 1 and "# it cannot run" in done.stdout, done.stdout


def shell_scripts() -> dict[str, int]:
    """The lines of each file with a shell in its first line, or a name in .sh."""
    names = subprocess.run(["git", "-c", f"safe.directory={paths.ROOT}", "ls-files", "-z", "--cached", "--others",
                            "--exclude-standard"], cwd=paths.ROOT, check=True, capture_output=True, text=True).stdout
    found = {}
    for name in filter(None, names.split("\0")):
        path = paths.ROOT / name
        if path.is_file() and not path.is_symlink():
            data = path.read_bytes()
            if name.endswith(".sh") or re.match(rb"#!.*sh( |\n)", data):
                found[name] = data.count(b"\n")
    return found


# ---- length of files -------------------------------------------------------------------

# STYLE.md, Everywhere 4. Tests and the headers of an ABI may be longer.
FILE_LINES = 600
MAY_BE_LONG = re.compile(r"_test\.(c|cc|py)$|^tests/test_|/tools/testing/selftests/|/uapi/|/vasic_abi\.h$")


def long_files(lines: dict[str, int]) -> list[str]:
    """Sources that are longer than STYLE.md permits."""
    sources = {name: count for name, count in lines.items() if re.search(r"\.(c|cc|h|hip|py|sh)$", name)}
    return [f"{name} has {count} lines" for name, count in sources.items()
            if not MAY_BE_LONG.search(name) and count > FILE_LINES]


def test_a_long_file_is_noticed() -> None:
    lines = {"a.c": 601, "b_test.cc": 900, "b.md": 900, "c.h": 600, "kernel/uapi/x.h": 601}
    assert long_files(lines) == ["a.c has 601 lines"]


def test_files_are_short() -> None:
    names = subprocess.run(["git", "-c", f"safe.directory={paths.ROOT}", "ls-files", "-z"], cwd=paths.ROOT, check=True,
                           capture_output=True, text=True).stdout.split("\0")
    lines = {name: (paths.ROOT / name).read_bytes().count(b"\n") for name in names if (paths.ROOT / name).is_file()}
    assert len(lines) > 500 and not long_files(lines)


def test_the_shell_scripts_are_few_lines() -> None:
    found = shell_scripts()
    assert {"scripts/lib.sh", ".ci/run", "packaging/debian/postinst"} <= set(found)
    if sum(found.values()) > SHELL_LINES:
        largest = sorted(found, key=lambda name: -found[name])[:6]
        pytest.fail(f"{sum(found.values())} lines of shell, {SHELL_LINES} at most; write one of these in Python: "
                    + ", ".join(f"{name} ({found[name]})" for name in largest), pytrace=False)


# ---- prefixes of functions -------------------------------------------------------------

# STYLE.md, Kernel C 2.
PREFIXES = ("kfd_criu_", "vasic_", "drm_", "amdgpu_", "criu_test_", "checkpoint_test_", "handle_test_")


def functions_without_prefix(source: str) -> list[str]:
    """Static functions whose name in an oops would not say which driver they are of; not the cases of KUnit."""
    cases = re.findall(r"KUNIT_CASE\w*\((\w+)", source)
    names = re.findall(r"^static (?:\w+ )*(?:\w+[ \n]|\w+ \*+\n?)(\w+)\([^)]", source, re.M)
    return [name for name in names if name not in cases and not name.startswith(PREFIXES)]


@pytest.mark.parametrize("source, found", [
    ("static int pause(struct fake *fake)\n", ["pause"]), ("static const struct a *\nfind(u32 id)\n{", ["find"]),
    ("static void *add(struct draft *draft,\n", ["add"]), ("static inline bool\nis_one(void)\n", ["is_one"]),
    ("static int vasic_ring_init(void)\nstatic const char name[] = \"x\";\n", []),
    ("static void one_is_two(struct kunit *test)\n\tKUNIT_CASE(one_is_two),\n", []),
])
def test_a_function_without_prefix_is_noticed(source: str, found: list[str]) -> None:
    assert functions_without_prefix(source) == found


def test_functions_of_the_drivers_have_prefixes() -> None:
    sources = list(paths.ROOT.glob("kernel/*/overlay/drivers/**/*.c"))
    assert len(sources) > 50
    wrong = {source.name: names for source in sources if (names := functions_without_prefix(source.read_text()))}
    assert not wrong


# ---- kernel-doc ------------------------------------------------------------------------

def functions_without_description(source: str) -> list[str]:
    """Functions that other files call and that have no kernel-doc (STYLE.md, Kernel C 1)."""
    names = re.findall(r"^(?!static )(?:\w+ )+\**(\w+)\([^;{}]*\)\n\{", source, re.M)
    return [name for name in names if not re.search(rf"^/\*\*\n \* {name} - ", source, re.M)]


@pytest.mark.parametrize("source, found", [
    ("int vasic_a(u32 a,\n\t    u32 b)\n{\n}\n", ["vasic_a"]), ("struct a *vasic_b(void)\n{\n}\n", ["vasic_b"]),
    ("/* vasic_c - adds */\nvoid vasic_c(void)\n{\n}\n", ["vasic_c"]),
    ("/**\n * vasic_d - adds\n */\nvoid vasic_d(void)\n{\n}\nstatic int vasic_e(void)\n{\n}\n", []),
])
def test_a_function_without_description_is_noticed(source: str, found: list[str]) -> None:
    assert functions_without_description(source) == found


def test_functions_that_other_files_call_are_described() -> None:
    sources = list(paths.ROOT.glob("kernel/*/overlay/drivers/**/*.c"))
    assert len(sources) > 50
    wrong = {source.name: names for source in sources if (names := functions_without_description(source.read_text()))}
    assert not wrong


# ---- subjects of commits ---------------------------------------------------------------

SUBJECT = re.compile(r"[\w./-]+: \S")
SUBJECT_CHARACTERS = 72
# STYLE.md, Language 4: words that do not name the thing.
RETIRED = re.compile(r"\b(goes? on|is told|by chance|somebody|nobody|whoever|what a review|crowd)\b")


def wrong_subject(subject: str) -> str:
    """What is wrong with the subject of a commit; empty if nothing is."""
    if len(subject) > SUBJECT_CHARACTERS:
        return f"{len(subject)} characters, {SUBJECT_CHARACTERS} at most"
    if not SUBJECT.match(subject):
        return "it does not begin with the area and a colon"
    word = RETIRED.search(subject)
    return f"'{word[0]}' does not name the thing" if word else ""


@pytest.mark.parametrize("subject, wrong", [
    ("test.py: write times.txt after every run", ""), ("plugin: mend what a review found", "'what a review'"),
    ("selftests/kfd_criu: wait until the killed process's queues are freed", ""),
    ("tests: ask the GPU whether a program goes on", "'goes on'"), ("Fix it", "area"), ("kfd: " + "x" * 68, "73 characters")])
def test_a_subject_that_names_nothing_is_noticed(subject: str, wrong: str) -> None:
    found = wrong_subject(subject)
    assert wrong in found and bool(found) == bool(wrong)


def test_subjects_of_commits_name_the_thing() -> None:
    """The commits since BASE, as for --check, or the last one."""
    git = ["git", "-c", f"safe.directory={paths.ROOT}", "-C", str(paths.ROOT), "log", "--format=%h %s"]
    done = subprocess.run([*git, f"{os.environ['BASE']}..HEAD"] if os.environ.get("BASE") else [*git, "-1"], check=True,
                          capture_output=True, text=True)
    commits = [line.partition(" ") for line in done.stdout.splitlines()]
    wrong = [f"{commit} {subject}: {found}" for commit, _, subject in commits if (found := wrong_subject(subject))]
    assert not wrong, "\n".join(wrong)
