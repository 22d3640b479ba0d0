#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""Records the images of the kselftest `old_images` again.

usage: record_images.py [CHIP...]

They are checkpoints by the stock kernel, one for each CHIP (default: the sample `old_images`
of tests/plan.toml), in out/image_files. They belong into image_files/ in the folder of
kernel/amdkfd-criu/overlay/**/old_images.c; the README there lists the kernels that wrote
them.
"""
from __future__ import annotations

import sys

import command
from vm.places import out_dir, repo_root

sys.path.insert(0, str(repo_root() / "tests"))
from harness import plan  # noqa: E402  # pylint: disable=wrong-import-position

SCRIPTS = repo_root() / "scripts"
LIMIT_S = 120


def main(argv: list[str]) -> int:
    parser = command.Parser(__doc__)
    parser.add_argument("chips", nargs="*")
    chips = parser.read(argv).chips or plan.sample("old_images")
    folder = out_dir() / "image_files"
    status = (command.call([SCRIPTS / "kernel.sh", "build", "stock"])
              or command.call([SCRIPTS / "kernel.sh", "selftests", "criu"]))
    folder.mkdir(exist_ok=True)
    for chip in chips if status == 0 else ():
        status = command.call([
            SCRIPTS / "vm.sh", "run", "--kernel", "stock", "--gpu", f"{chip},vram=256M", "--name", "record-images",
            "--timeout", str(LIMIT_S), "--share", folder, "--",
            out_dir() / "kernel/criu/selftests/drivers/gpu/kfd_criu/dump_image", folder])
        if status:
            break
        command.log(f"written: {folder}/{chip}.txt")
    return status


if __name__ == "__main__":
    command.run(main)
