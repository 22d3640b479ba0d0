#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""Makes the root folders of other Debian releases with debootstrap: out/roots/ROOT, for scripts/vm.sh run --root ROOT.

usage: root.py [--packages] [-h] ROOT...

Prints first how much it downloads and how long that takes; if the root is there already,
it ends at once. ROOT is
  trixie   Debian 13: CRIU 4.1, podman and crun, the thunk 6.2, HIP 5.7 on ROCr 6.1
  sid      Debian's unstable release: CRIU 4.2, HIP 6.4 on ROCr 6.4
  llm      sid with llama.cpp, its HIP backend and ROCm 6.4: what `make demo-llm` needs
  rccl     trixie with RCCL 5.4, whose kernels take 290 MB, and its unit tests
--packages prints the packages of the roots besides the base system, and does nothing.

debootstrap and then the new root's own apt check the signatures of the archive, with the
keys of the package debian-archive-keyring. The archive is the one that this machine's apt
uses. The root appears with all its packages or not at all: killed at any time, root.py
begins again, and does not download again what out/roots/packages has. To update a root,
remove its folder.
"""
from __future__ import annotations

import os
import re
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import NamedTuple

import command
from vm.errors import infra_error
from vm.places import out_dir, read_text

KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
# Programs that scripts/guest-init.sh and scripts/guest/ run, CRIU, and libraries of the plugin and of the test programs.
COMMON = ("criu", "iproute2", "iptables", "kmod", "libdrm-amdgpu1", "liblz4-1", "libnuma1", "libprotobuf-lite32t64", "nftables",
          "procps")
TRIXIE = ("crun", "libamdhip64-5", "libcriu2", "libhsakmt1", "podman")
SID = ("libamdhip64-6",)
# A root of its own, because with these libraries a root is twenty times as large, and only one test needs them.
LLM = ("libggml0-backend-hip", "llama.cpp-tools")
RCCL = ("librccl1-tests",)


class Root(NamedTuple):
    """A root, and what a new one costs: MiB to download, MiB of disk with the downloaded packages, minutes."""

    release: str
    packages: tuple[str, ...]
    download: int
    disk: int
    minutes: int


ROOTS = {"trixie": Root("trixie", COMMON + TRIXIE, 150, 860, 4), "sid": Root("sid", COMMON + SID, 130, 700, 3),
         "llm": Root("sid", COMMON + LLM, 490, 6300, 8), "rccl": Root("trixie", COMMON + TRIXIE + RCCL, 280, 1300, 5)}
# Settings of this machine's apt by which it reaches the archive.
REACH = re.compile(r'^Acquire::(http|https|Retries|Check-Valid-Until|Check-Date)\b.* "[^"]')
# Environment of the programs of a new root.
IN_ROOT = {"DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}


def stamp_of(name: str) -> str:
    """What the root is made of; a root with another stamp is made again."""
    return f"{name}: minbase {' '.join(sorted(ROOTS[name].packages))} \n"


def main_archives() -> list[str]:
    """The addresses of Debian's archive in the configuration of this machine's apt."""
    return command.output_of(["apt-get", "indextargets", "Created-By: Packages", "Label: Debian", "Component: main",
                              "--format", "$(REPO_URI)"]).splitlines()


def archive() -> str:
    """The first of them. apt knows what an address serves only after it has downloaded the lists."""
    found = main_archives()
    if not found:
        command.require(["apt-get", "update", "-q"], "apt-get update failed", stdout=sys.stderr)
        found = main_archives()
    if not found:
        raise infra_error("this machine's apt has no Debian archive")
    return found[0]


def settings() -> tuple[str, str]:
    """The settings of this machine's apt for the new root, and its proxy; empty without one."""
    lines = command.output_of(["apt-config", "dump"]).splitlines()
    proxies = [match[1] for line in lines if (match := re.match(r'Acquire::http::Proxy "(.*)";', line))]
    return "".join(f"{line}\n" for line in lines if REACH.match(line)), "".join(proxies[:1])


# ---- a new root, in mount and process namespaces of its own ----

def make_root(roots: Path, name: str) -> None:
    """Makes ROOT.new. The process that started this one has put it into namespaces of its own, so nothing stays
    mounted and nothing runs when it ends."""
    new, cache = roots / f"{name}.new", roots / "packages"
    uri = archive()
    reach, proxy = settings()
    if proxy:
        os.environ["http_proxy"] = proxy
    if new.exists():
        shutil.rmtree(new)
    for folder in (new / "var/cache/apt/archives", cache):
        folder.mkdir(parents=True, exist_ok=True)
    command.require(["mount", "--bind", cache, new / "var/cache/apt/archives"], f"{name}: cannot mount {cache}")
    command.log(f"{name}: the base system")
    command.require(["debootstrap", "--variant=minbase", "--force-check-gpg", f"--keyring={KEYRING}", ROOTS[name].release, new, uri],
                    f"{name}: debootstrap failed (log: {new}/debootstrap/debootstrap.log)", stdout=sys.stderr)
    install_packages(new, name, reach)
    (new / "root.packages").write_text(command.output_of(["chroot", new, "dpkg-query", "-W"]))
    (new / "root.stamp").write_text(stamp_of(name))
    command.require(["sync", "-f", new], f"{name}: cannot write {new}")


def install_packages(new: Path, name: str, reach: str) -> None:
    """Installs the packages of the root by its own apt."""
    host, policy = new / "etc/apt/apt.conf.d/99host", new / "usr/sbin/policy-rc.d"
    host.write_text(reach)
    policy.write_text("#!/bin/sh\nexit 101\n")  # No daemon starts in the new root.
    policy.chmod(0o755)
    if not os.path.ismount(new / "proc"):
        command.require(["mount", "-t", "proc", "proc", new / "proc"], f"{name}: cannot mount {new}/proc")
    words = " ".join(ROOTS[name].packages)
    command.log(f"{name}: {words}")
    in_root(new, "apt-get update -q", f"{name}: apt-get update failed")
    in_root(new, f"apt-get install -q -y --no-install-recommends -o APT::Keep-Downloaded-Packages=true {words}",
            f"{name}: apt-get could not install: {words}")
    for path in (policy, host):
        path.unlink()
    for path in (new / "var/lib/apt/lists").iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    command.require(["umount", new / "proc", new / "var/cache/apt/archives"], f"{name}: cannot unmount {new}/proc")


def in_root(new: Path, words: str, text: str) -> None:
    command.require(["chroot", new, *words.split()], text, env={**os.environ, **IN_ROOT})


# ---- all roots ----

def announce(roots: Path, name: str) -> None:
    """Prints what is about to happen, before anything is downloaded."""
    root = ROOTS[name]
    command.log(f"{name}: downloads up to {root.download} MB, takes {root.disk} MB in {roots} and about {root.minutes} minutes")
    free = shutil.disk_usage(roots).free >> 20
    if free < root.disk:
        raise infra_error(f"{name}: {root.disk} MB needed, {free} MB are free in {roots}")


def provide(roots: Path, name: str) -> None:
    """Makes the root unless it is there."""
    root, new, old = roots / name, roots / f"{name}.new", roots / f"{name}.old"
    begin = time.monotonic()
    if read_text(root / "root.stamp") == stamp_of(name):
        return
    if os.geteuid() != 0:
        raise infra_error(f"must be root to make {root}")
    announce(roots, name)
    # The signal and --kill-child: whatever ends this process ends all that it has started.
    status = command.call(["unshare", "--mount", "--pid", "--fork", "--kill-child", Path(__file__).resolve(), "--make", name],
                          death_signal="KILL")
    if status:
        sys.exit(status)
    if old.exists():
        shutil.rmtree(old)
    if root.exists():
        root.rename(old)
    new.rename(root)
    if old.exists():
        shutil.rmtree(old)
    size = command.output_of(["du", "-sm", root]).split("\t")[0]
    command.log(f"{name}: made in {time.monotonic() - begin:.0f} s, {size} MB: {root}")


def main(argv: list[str]) -> int:
    parser = command.Parser(__doc__)
    parser.add_argument("--packages", action="store_true")
    parser.add_argument("--make", action="store_true")
    parser.add_argument("roots", nargs="*")
    options = parser.read(argv)
    if options.packages:
        print("\n".join(sorted({package for root in ROOTS.values() for package in root.packages})))
        return 0
    if not options.roots:
        raise command.usage_error("no root")
    for name in options.roots:
        if name not in ROOTS:
            raise command.usage_error(f"no root '{name}'; there are {' '.join(ROOTS)}")
    roots = out_dir() / "roots"
    if options.make:
        # When this first process of the namespace ends, the kernel ends the others.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda number, _: os._exit(128 + number))
        make_root(roots, options.roots[0])
        return 0
    if not shutil.which("debootstrap"):
        raise infra_error("'debootstrap' is missing: run scripts/setup.sh roots")
    # The processes that make a root hold the lock too, because they may end a moment later than this one.
    command.take_lock(roots / ".lock", inherited=True)
    for name in options.roots:
        provide(roots, name)
    return 0


if __name__ == "__main__":
    command.run(main)
