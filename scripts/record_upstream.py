#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""Records images of CRIU's own amdgpu plugin.

usage: record_upstream.py [trixie | sid]...

They are checkpoints of demo_program on the stock kernel, with one GPU (trixie) or two
(sid), in out/recorded/RELEASE.txt. They belong into userspace/plugin/image/recorded, whose
README lists who wrote them.
"""
from __future__ import annotations

import shutil

import command
from vm.places import out_dir, repo_root

SCRIPTS = repo_root() / "scripts"
LIMIT_S = 180
# The number of GPUs of each release.
GPUS = {"trixie": 1, "sid": 2}
GPU_OPTIONS = ("--gpu", "gfx906,vram=64M,slot=16", "--gpu", "gfx906,vram=128M,slot=17")


def record(release: str) -> int:
    """Returns the status of the machine."""
    out, gpus = out_dir(), GPUS[release]
    run, criu = out / "recorded" / release, out / "upstream" / release
    if run.exists():
        shutil.rmtree(run)
    run.mkdir(parents=True)
    program = out / "cmake/release/userspace/kfdtest-criu/demo_program"
    step = f"PATH={criu}:$PATH {SCRIPTS}/guest/checkpoint.sh {run} {criu}/plugin"
    status = command.call([
        SCRIPTS / "vm.sh", "run", "--kernel", "stock", *GPU_OPTIONS[:2 * gpus], "--mem", "1G", "--name", "record-upstream",
        "--timeout", str(LIMIT_S), "--share", run, "--", "bash", "-c",
        f"{step} start program {program} --gpus {gpus} && {step} dump program images && uname -rv >{run}/kernel"])
    if status:
        return status
    version, kernel = ((folder / file).read_text().strip() for folder, file in ((criu, "version"), (run, "kernel")))
    target = run.with_name(f"{release}.txt")
    with target.open("w") as output:
        output.write("# SPDX-License-Identifier: MIT\n"
                     f"# by CRIU {version}'s amdgpu plugin, on Linux {kernel}\n")
        output.flush()
        status = command.call([SCRIPTS / "image_text.py", run / "images"], stdout=output)
    if status == 0:
        command.log(f"written: {target}")
    return status


def main(argv: list[str]) -> int:
    parser = command.Parser(__doc__)
    parser.add_argument("releases", nargs="*")
    releases = parser.read(argv).releases or list(GPUS)
    for release in releases:
        if release not in GPUS:
            raise command.usage_error(f"no release '{release}'")
    status = (command.call([SCRIPTS / "upstream_plugin.py", *releases])
              or command.call([SCRIPTS / "kernel.sh", "build", "stock"])
              or command.call([SCRIPTS / "build.sh", "release"]))
    for release in releases:
        status = status or record(release)
    return status


if __name__ == "__main__":
    command.run(main)
