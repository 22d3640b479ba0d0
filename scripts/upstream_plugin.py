#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""Builds CRIU and CRIU's own amdgpu plugin from Debian's source package, as the opponent of this project's plugin in tests.

usage: upstream_plugin.py [--list | -h] [RELEASE...]

Makes out/upstream/RELEASE/criu, .../plugin/amdgpu_plugin.so and .../version. RELEASE is
trixie (CRIU 4.1.1) or sid (4.2.1); without one, both. Nothing of it is installed or
shipped. If it is built already, it ends at once.
  --list   prints the names of the packages that the build needs besides those of a
           compiler (scripts/setup.sh upstream installs them)

To dump PID with it on any kernel, the stock one too, in a guest of scripts/vm.sh:
  out/upstream/trixie/criu dump -t PID -D IMAGES -L out/upstream/trixie/plugin --link-remap
apt checks the signature of the archive's lists and the checksum of the source. apt's own
files are in out/upstream/apt, so the machine's lists of packages stay as they are.
"""
from __future__ import annotations

import os
import re
import shutil
import sys
import time
from pathlib import Path

import command
from root import KEYRING, main_archives
from vm.errors import infra_error
from vm.places import file_size, out_dir

RELEASES = ("trixie", "sid")
PACKAGES = ("libcap-dev", "libdrm-dev", "libnet1-dev", "libnl-3-dev", "libprotobuf-c-dev", "libprotobuf-dev", "pkg-config",
            "protobuf-c-compiler", "protobuf-compiler", "uuid-dev")
# An archive that is being updated may miss a file for a moment.
ATTEMPTS, PAUSE_S = 3, 5
ARCHIVE = "http://deb.debian.org/debian"
CCACHE = Path("/usr/lib/ccache")


def private_apt(apt: Path, *words: str, cwd: Path) -> bool:
    """Runs apt-get with its files and its only source in the folder `apt`; returns whether it succeeded."""
    options = (f"Dir::Etc::SourceList={apt}/sources.list", "Dir::Etc::SourceParts=/dev/null", f"Dir::State::Lists={apt}/lists",
               f"Dir::Cache={apt}/cache", "APT::Sandbox::User=root")
    return command.call(["apt-get", *words, *(word for option in options for word in ("-o", option))], cwd=cwd,
                        stdout=sys.stderr) == 0


def fetch(out: Path, release: str, folder: Path) -> None:
    """Downloads the original source of criu into the folder."""
    apt = out / "apt" / release
    for path in (apt / "lists/partial", apt / "cache/archives/partial", folder):
        path.mkdir(parents=True, exist_ok=True)
    uri = (main_archives() or [ARCHIVE])[0]
    (apt / "sources.list").write_text(f"deb-src [signed-by={KEYRING}] {uri} {release} main\n")
    for attempt in range(ATTEMPTS):
        time.sleep(PAUSE_S if attempt else 0)
        # --tar-only: Debian's own changes to criu do not touch the plugin.
        if (private_apt(apt, "update", "-q", cwd=folder)
                and private_apt(apt, "source", "-q", "--download-only", "--tar-only", "criu", cwd=folder)):
            return
    raise infra_error(f"cannot download the source of criu of Debian {release}")


def compile_source(source: Path, log: Path) -> None:
    env = dict(os.environ)
    if CCACHE.is_dir():
        env |= {"PATH": f"{CCACHE}:{env['PATH']}", "CCACHE_BASEDIR": str(source)}
    jobs = env.get("JOBS") or len(os.sched_getaffinity(0))
    with log.open("w") as output:
        command.require(["make", "-C", source, f"-j{jobs}", "criu", "amdgpu_plugin"], f"the build failed (log: {log})",
                        env=env, stdout=output, stderr=output)


def build(out: Path, release: str) -> None:
    """Makes out/upstream/RELEASE from the source; it appears complete or not at all."""
    work, new = out / f"{release}.build", out / f"{release}.new"
    for folder in (work, new):
        shutil.rmtree(folder, ignore_errors=True)
    (new / "plugin").mkdir(parents=True)
    fetch(out, release, work)
    for archive in work.glob("criu_*.orig.tar.*"):
        command.require(["tar", "-C", work, "-xf", archive], f"cannot unpack {archive}")
    source = next(work.glob("criu-*/"), None)
    if source is None:
        raise infra_error(f"no source of criu in {work}")
    command.log(f"building {source.relative_to(out)}")
    compile_source(source, out / f"{release}.log")
    shutil.copy(source / "criu/criu", new)
    shutil.copy(source / "plugins/amdgpu/amdgpu_plugin.so", new / "plugin")
    version = re.findall(r"^Version: (.*)$", command.output_of([new / "criu", "--version"]), re.M)
    (new / "version").write_text("".join(f"{each}\n" for each in version))
    for folder in (out / release, work):
        shutil.rmtree(folder, ignore_errors=True)
    new.rename(out / release)
    command.log(f"built: CRIU {' '.join(version)} and its plugin in {out / release}")


def main(argv: list[str]) -> int:
    parser = command.Parser(__doc__)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("releases", nargs="*")
    options = parser.read(argv)
    if options.list:
        print("\n".join(PACKAGES))
        return 0
    releases = options.releases or RELEASES
    for release in releases:
        if release not in RELEASES:
            raise command.usage_error(f"no release '{release}'; there are {' '.join(RELEASES)}")
    command.need("protoc-c", "protobuf-c-compiler")
    out = out_dir() / "upstream"
    command.take_lock(out / ".lock")
    for release in releases:
        if not file_size(out / release / "version"):
            build(out, release)
    return 0


if __name__ == "__main__":
    command.run(main)
