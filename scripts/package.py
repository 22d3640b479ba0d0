#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""Installs CRIU's plugin and what belongs to it, or makes a Debian package of it.

usage: package.py install [--prefix DIR] [--destdir DIR] [--no-build]
       package.py deb [--no-build]

  install   installs CRIU's plugin, kfd-criu, man pages, documents and configuration:
            the plugin in /usr/lib/criu, where Debian's CRIU looks, the configuration in
            /etc/criu, the rest below --prefix (/usr/local). Existing configuration is
            not replaced.
  deb       makes a Debian package of the same files, with --prefix /usr, in
            out/cmake/release/package, and prints its name

  --destdir DIR  a folder that stands for / while files are installed
  --no-build     the programs are built already
"""
from __future__ import annotations

import argparse
import os
import shutil
import sys
from pathlib import Path

import command
from vm.errors import infra_error
from vm.places import out_dir, repo_root

# The version of the package is this, and the date and hash of the last commit.
VERSION = "0.1"
COMPONENTS = ("plugin", "criu_configuration")


def folder(text: str) -> str:
    if not text:
        raise argparse.ArgumentTypeError("needs a folder")
    if not text.startswith("/"):
        raise argparse.ArgumentTypeError(f"needs an absolute path, not '{text}'")
    return text


def package_version() -> str:
    commit = command.output_of(["git", "-c", "safe.directory=*", "-C", repo_root(), "log", "-1", "--date=format:%Y%m%d",
                                "--format=%cd.%h"]).strip()
    return VERSION + (f"+git{commit}" if commit else "")


def build_programs(build: Path, wanted: bool) -> None:
    if wanted:
        status = command.call([repo_root() / "scripts/build.sh", "release", "packaging"], stdout=sys.stderr)
        if status:
            sys.exit(status)
    if not (build / "packaging/cmake_install.cmake").is_file():
        raise infra_error(f"nothing is built in {build}")


def install(build: Path, prefix: str, destdir: str) -> int:
    for component in COMPONENTS:
        status = command.call(["cmake", "--install", build, "--prefix", prefix, "--component", component],
                              env={**os.environ, "DESTDIR": destdir})
        if status:
            return status
    return 0


def make_deb(build: Path) -> int:
    version = package_version()
    command.need("dpkg-shlibdeps", "dpkg-dev")
    package, log = build / "package", build / "package.log"
    # cpack always works in the same folder. The lock ends with this process.
    command.take_lock(build / "package.lock")
    if package.exists():
        shutil.rmtree(package)
    with log.open("w") as output:
        status = command.call(["cpack", "-G", "DEB", "-D", f"CPACK_PACKAGE_VERSION={version}"], cwd=build, stdout=output,
                              stderr=output, umask=0o022)
    if status:
        raise command.failure(f"cpack failed (log: {log})", log.read_text(errors="replace"))
    for file in sorted(package.glob("*.deb")):
        print(file)
    return 0


def main(argv: list[str]) -> int:
    parser = command.Parser(__doc__)
    parser.add_argument("command", nargs="?", default="")
    parser.add_argument("--prefix", type=folder, default="/usr/local")
    parser.add_argument("--destdir", type=folder)
    parser.add_argument("--no-build", action="store_true")
    options = parser.read(argv)
    if options.command not in ("install", "deb"):
        raise command.usage_error(f"unknown command '{options.command}'")
    command.need("cmake", "cmake")
    build = out_dir() / "cmake/release"
    build_programs(build, not options.no_build)
    return make_deb(build) if options.command == "deb" else install(build, options.prefix, options.destdir or "")


if __name__ == "__main__":
    command.run(main)
