#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""Checks that userspace/kfd and userspace/plugin make no system call by themselves.

usage: check_seam.py [PROJECT-FOLDER]

They call the operating system through the functions of userspace/base/os.h and libdrm
through drm_call() and drm_release() of userspace/plugin/copy/drm.h, so that a test can
let each call fail. Refused:
  - a function of os.h without `os::`, as `fsync(fd)` or `::fsync(fd)`
  - any other function of the global namespace, as `::socket(...)`, but those of PURE
  - streams, paths and threads of the C++ library, which make system calls inside
  - a direct call of a function of libdrm
Tests and their fakes may do all of this, and so may benchmarks (folders `bench`). Status 1 and one line for each breach.
"""
from __future__ import annotations

import re
import sys
from pathlib import Path

FOLDERS = ("userspace/kfd", "userspace/plugin")
# What runs in tests only.
TEST_FILES = re.compile(r"(_test|_fuzz)\.cc$|^(test_support\.h|test_program\.h|fake_criu_restore\.h|load_host\.cc|fake_kfd\.(cc|h)|fake_render_driver\.h|fake_sdma_engine\.h)$")
# Functions of the C library that make no system call, or do not return.
PURE = {"_exit", "dladdr1", "dlerror", "dlopen", "dlsym", "getenv", "strerrorname_np"}
DECLARATION = re.compile(r"^[A-Za-z_][\w:<>* ]*?[ *](\w+)\(", re.M)
LIBRARY = re.compile(r"std::(?:[io]?fstream|filesystem|this_thread|thread|random_device|fopen|tmpfile|remove|rename|system)\b")
LIBDRM = re.compile(r"\b(?:amdgpu_[a-z_]+|drm(?:[A-Z]\w*))\(")
GLOBAL = re.compile(r"(?<![\w>:])::\s*([a-z_]\w*)\s*\(")
COMMENT_OR_TEXT = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.S)


def names_of(header: str) -> set[str]:
    """Returns the names of the functions that os.h declares, without the hook for tests."""
    return set(DECLARATION.findall(COMMENT_OR_TEXT.sub("", header))) - {"fault"}


def is_declaration(before: str) -> bool:
    """Returns whether the text in front of a name makes it a declaration: it ends with a type."""
    before = before.rstrip(" \t\n")
    if before.endswith("&&"):
        return False
    word = re.search(r"(\w+)$", before)
    if word:
        return word.group(1) not in ("return", "else", "do", "throw", "co_return")
    return before.endswith((">", "*", "&"))


def breaches_in(text: str, names: set[str]) -> list[tuple[int, str]]:
    """Returns line and call of each breach in the source."""
    text = COMMENT_OR_TEXT.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), text)
    found = []
    for match in GLOBAL.finditer(text):
        if match.group(1) not in PURE:
            found.append((match.start(), f"::{match.group(1)}()"))
    bare = re.compile(r"(?<![\w.:>])(" + "|".join(sorted(names)) + r")\s*\(")
    for match in bare.finditer(text):
        if not is_declaration(text[:match.start()]):
            found.append((match.start(), f"{match.group(1)}()"))
    for match in [*LIBRARY.finditer(text), *LIBDRM.finditer(text)]:
        found.append((match.start(), match.group().rstrip("(")))
    return [(text.count("\n", 0, at) + 1, call) for at, call in sorted(found)]


def check(root: Path) -> list[str]:
    names = names_of((root / "userspace/base/os.h").read_text())
    result = []
    for folder in FOLDERS:
        for file in sorted((root / folder).rglob("*")):
            if file.suffix not in (".cc", ".h") or TEST_FILES.search(file.name) or file.parent.name == "bench":
                continue
            for line, call in breaches_in(file.read_text(), names):
                result.append(f"{file.relative_to(root)}:{line}: {call}: call it through base/os.h"
                              " (libdrm: plugin/copy/drm.h)")
    return result


def main(arguments: list[str]) -> int:
    root = Path(arguments[0] if arguments else Path(__file__).resolve().parent.parent).resolve()
    breaches = check(root)
    for breach in breaches:
        print(breach, file=sys.stderr)
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
