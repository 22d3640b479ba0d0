#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""Golden tests: compare our layouts and numbers with the kernel's headers.

usage: golden.py [KERNEL-TREE [OPTION-OF-GOOGLETEST]...]

Compares the layouts in userspace/packets, the page-table bits and the interrupt numbers,
without KERNEL-TREE with those of the unchanged base. Builds what it needs, prints what
GoogleTest prints. The facts stay in out/golden/facts.txt.
"""
from __future__ import annotations

import os
import sys

import command
from vm.places import out_dir, repo_root

SCRIPTS = repo_root() / "scripts"


def main(argv: list[str]) -> int:
    if argv[:1] in (["-h"], ["--help"]):
        print((__doc__ or "").strip())
        return 0
    tree = argv[0] if argv else out_dir() / "kernel/pristine"
    facts = out_dir() / "golden/facts.txt"
    facts.parent.mkdir(parents=True, exist_ok=True)
    os.chdir(repo_root())
    new = facts.with_name("facts.txt.new")
    with new.open("w") as output:
        status = (command.call([SCRIPTS / "build.sh", "release", "golden_test"], stdout=sys.stderr)
                  or command.call([SCRIPTS / "kernel_facts.py", tree], stdout=output))
    if status:
        return status
    new.rename(facts)
    return command.call([out_dir() / "cmake/release/userspace/golden/golden_test", facts, *argv[1:]])


if __name__ == "__main__":
    command.run(main)
