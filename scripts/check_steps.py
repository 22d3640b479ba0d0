#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""usage: check_steps.py

Checks that every function that ARCHITECTURE.md names in its numbered steps
("Life of ...") exists: `name`, `Class::name` or `namespace::name` must occur in a
source file. Status: 0 if all of them exist, 1 if not.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCES = ("userspace/**/*.cc", "userspace/**/*.h", "kernel/**/*.c", "kernel/**/*.h")


def named_functions(text):
    """Returns names in backticks in the sections "Life of ...", except files and upper-case words."""
    names = []
    for section in re.findall(r"^## Life of .*?(?=^## )", text, re.M | re.S):
        for word in re.findall(r"`([A-Za-z_:]+)`", section):
            if not word.isupper():
                names.append(word)
    return names


def missing(names, sources):
    """Returns those of `names` that no source file contains."""
    def there(name):
        parts = name.split("::")
        return any(all(re.search(rf"\b{re.escape(p)}\b", text) for p in parts) for text in sources)

    return [name for name in names if not there(name)]


def main():
    names = named_functions((ROOT / "ARCHITECTURE.md").read_text())
    sources = [path.read_text(errors="replace") for glob in SOURCES for path in ROOT.glob(glob)]
    lost = missing(names, sources)
    if not names:
        lost = ["(no function is named at all)"]
    for name in lost:
        print(f"ARCHITECTURE.md names {name}, which no source file contains")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
