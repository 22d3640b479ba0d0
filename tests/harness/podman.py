# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""Containers with a GPU that podman and crun of Debian 13 move from one virtual machine to another one.

tests/test_podman.py tests it step by step, scripts/demo_podman.py shows it. Both machines have the root trixie and
the package of the plugin. A container has /dev/kfd and one of two GPUs, without --privileged. The second machine has
the GPUs in other slots and the other way round, so that the render node of each GPU has another minor. All containers
run at the same time, two of them on one GPU. Checkpoints and CRIU's logs: out/podman.
"""
from __future__ import annotations

import hashlib
import io
import json
import re
import shutil
import subprocess
import tarfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from . import paths
from .steps import StepMachine, fail, fresh, need_built, once

# What a step raises that has failed.
Failed = pytest.fail.Exception

RUN = paths.OUT / "podman"
PROGRAM = paths.built("release") / "kfdtest-criu" / "demo_program"
# What scripts/build.sh has to build.
TARGETS = ("vasicd", "demo_program", "packaging")
IMAGE = "localhost/demo_program"
MEM, VM_LIMIT_S = "2G", 2400
PENDING_LIMIT_S, CRIU_LIMIT_S, RESULT_LIMIT_S = 120, 600, 120
LARGE, SMALL = "gfx906,vram=512M", "gfx906,vram=256M"
DRM_MAJOR = 226
CONTAINERS = "/var/lib/containers"


@dataclass(frozen=True)
class Case:
    """A container: its network, and the device that gives it one GPU."""

    name: str
    network: str
    # The value of podman's --device, and the minor of that render node.
    device: str
    minor: int

    @property
    def checkpoint(self) -> Path:
        return RUN / f"{self.name}.tar"


CASES = (
    Case("host-network", "host", "/dev/dri/renderD128", 128),
    Case("own-network", "none", "/dev/dri/renderD129", 129),
    Case("bridge", "bridge", "/dev/dri/renderD128", 128),
)


@dataclass(frozen=True)
class Container:
    """A container that runs in a machine."""

    name: str
    id: str
    pid: int
    # The folder with the files that it has written.
    written: str


def make_package() -> Path:
    """The Debian package of the plugin, made of what is built."""
    done = subprocess.run([str(paths.SCRIPTS / "package.py"), "deb", "--no-build"], cwd=paths.ROOT, check=False,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode != 0:
        fail(f"scripts/package.py deb: status {done.returncode}\n{done.stderr}")
    return Path(done.stdout.split()[-1])


def layer() -> bytes:
    """The files of a container: the program, the libraries that it needs on this host, and empty folders."""
    text = subprocess.run(["ldd", str(PROGRAM)], check=True, capture_output=True, text=True).stdout
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w", dereference=True) as tar:
        for name in ("dev", "etc", "proc", "run", "sys", "tmp", "work"):
            folder = tarfile.TarInfo(name)
            folder.type, folder.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(folder)
        for file in (str(PROGRAM), *re.findall(r"/[^\s)]+", text)):
            tar.add(file, PROGRAM.name if file == str(PROGRAM) else file.lstrip("/"))
    return data.getvalue()


def make_image(archive: Path) -> None:
    """An image of one layer, for `podman load`. Both machines load it, as they would pull it from a registry, because a
    checkpoint has only the files that the container has changed."""
    files = layer()
    config = json.dumps({"architecture": "amd64", "os": "linux", "config": {}, "rootfs": {
        "type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(files).hexdigest()}"]}}).encode()
    manifest = json.dumps([{"Config": "config.json", "RepoTags": [f"{IMAGE}:latest"], "Layers": ["layer.tar"]}])
    with tarfile.open(archive, "w") as tar:
        for name, data in (("manifest.json", manifest.encode()), ("config.json", config), ("layer.tar", files)):
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))


def prepare() -> None:
    """Makes what the machines find in RUN."""
    need_built("criu", "plugin/amdgpu_plugin.so", "kfdtest-criu/demo_program", "kfd-criu/kfd-criu")
    if not (paths.OUT / "roots/trixie/root.stamp").exists():
        fail("the root trixie is not there")
    fresh(RUN)
    shutil.copy(make_package(), RUN / "plugin.deb")
    make_image(RUN / "image.tar")


class PodmanMachine(StepMachine):
    """A machine of Debian 13 whose administrator has installed the package of the plugin."""

    def __init__(self, name: str, *gpus: str) -> None:
        options = ["--root", "trixie", "--kernel", "criu", "--mem", MEM, "--share", str(RUN)]
        options += [word for gpu in gpus for word in ("--gpu", gpu)]
        super().__init__(f"podman-{name}", options, (), VM_LIMIT_S)

    @once("the package of the plugin in the machine")
    def installed(self) -> str:
        return self.step("dpkg", "--install", str(RUN / "plugin.deb"))

    @once("a machine with the image of the containers")
    def ready(self) -> None:
        self.installed()
        # The kernel loads modules of netfilter by itself, from the folder in which a kernel's package has them.
        modules = paths.kernel("criu") / "modules/lib/modules"
        self.step("mkdir", "-p", "/lib/modules", CONTAINERS)
        self.step("ln", "-s", *map(str, modules.iterdir()), "/lib/modules")
        # podman's layers cannot be on the machine's own root, which is made of layers itself.
        self.step("mount", "-t", "tmpfs", "tmpfs", CONTAINERS)
        self.step("podman", "load", "--quiet", "--input", str(RUN / "image.tar"))

    def container(self, name: str) -> Container:
        """The container of this name, which is running."""
        words = self.step("podman", "inspect", "--format", "{{.Id}} {{.State.Pid}} {{.GraphDriver.Data.UpperDir}}",
                          name).split()
        return Container(name, words[0], int(words[1]), words[2])

    def wait_for(self, condition: str, limit_s: int) -> None:
        """Waits until the shell says that it is so."""
        self.step("timeout", str(limit_s), "sh", "-c", f"until {condition}; do sleep 0.2; done")

    def criu(self, case: Case, log: str, *words: str) -> None:
        """`podman container checkpoint` or `restore`, which has to succeed; CRIU's log is kept in RUN."""
        status, text = self.attempt("podman", "container", *words, "--keep", limit_s=CRIU_LIMIT_S)
        kept = RUN / f"{case.name}.{log}"
        self.attempt("sh", "-c", f"mv {CONTAINERS}/storage/overlay-containers/*/userdata/{log} {kept}")
        if status != 0:
            lines = kept.read_text(errors="replace").splitlines() if kept.exists() else []
            fail(f"podman container {' '.join(words)}: status {status}\n{text}\n" + "\n".join(lines[-40:]))

    def render_minors(self, container: Container) -> set[int]:
        """The minors of the render nodes that the container's program has open."""
        text = self.step("sh", "-c", f"stat -L -c '%t %T' /proc/{container.pid}/fd/*")
        numbers = [[int(word, 16) for word in line.split()] for line in text.splitlines()]
        return {minor for major, minor in numbers if major == DRM_MAJOR}

    def result_of(self, container: Container) -> str:
        """Waits until the container's program has ended; the checksum that it has written."""
        file = f"{container.written}/work/result"
        self.wait_for(f"test -s {file} && ! test -d /proc/{container.pid}", RESULT_LIMIT_S)
        word, _, value = self.step("cat", file).partition(" ")
        if word != "RESULT" or not re.fullmatch("[0-9a-f]{16}", value):
            fail(f"the program of the container {container.name} says: {word} {value}")
        return value


class First(PodmanMachine):
    """Where the containers begin."""

    def __init__(self) -> None:
        super().__init__("first", f"{LARGE},slot=16", f"{SMALL},slot=17")

    def run(self, name: str, network: str, device: str, *words: str) -> Container:
        """Starts a container."""
        self.ready()
        # The output of the container's supervisor is not that of this step, which would wait for its end.
        self.step("sh", "-c", '"$@" >/dev/null', "sh", "podman", "run", "--detach", "--name", name, "--network",
                  network, "--device", "/dev/kfd", "--device", device, IMAGE, "/demo_program", "--dir", "/work", *words)
        return self.container(name)

    @once("the result of an undisturbed run in a container")
    def undisturbed(self) -> str:
        return self.result_of(self.run("undisturbed", "host", CASES[0].device, "--undisturbed"))

    @once("the container {0.name}")
    def started(self, case: Case) -> Container:
        container = self.run(case.name, case.network, case.device)
        file = f"{container.written}/work/state"
        self.wait_for(f"test -s {file}", PENDING_LIMIT_S)
        state = self.step("cat", file)
        if not state.startswith("pending "):
            fail(f"the program of the container {case.name}: {state}")
        return container

    @once("the minors of the container's render nodes")
    def minors(self, case: Case) -> set[int]:
        return self.render_minors(self.started(case))

    @once("the checkpoint of the container {0.name}")
    def checkpointed(self, case: Case) -> None:
        self.minors(case)  # the program ends
        # podman writes and reads in small pieces, which is slow in a folder that is shared with the host.
        local = f"/run/{case.checkpoint.name}"
        self.criu(case, "dump.log", "checkpoint", "--compress", "none", "--export", local, case.name)
        self.step("mv", local, str(case.checkpoint))


class Second(PodmanMachine):
    """Where they continue."""

    def __init__(self, first: First) -> None:
        super().__init__("second", f"{SMALL},slot=18", f"{LARGE},slot=20")
        self.first = first

    @once("the restored container {0.name}")
    def restored(self, case: Case) -> Container:
        self.first.checkpointed(case)
        self.ready()
        local = f"/run/{case.checkpoint.name}"
        self.step("cp", str(case.checkpoint), local)
        self.criu(case, "restore.log", "restore", "--import", local)
        self.step("rm", local)
        return self.container(case.name)

    @once("the minors of the container's render nodes")
    def minors(self, case: Case) -> set[int]:
        return self.render_minors(self.restored(case))

    @once("the result of the container {0.name}")
    def result(self, case: Case) -> str:
        container = self.restored(case)
        self.minors(case)  # the program ends
        if self.attempt("test", "-e", f"{container.written}/work/result")[0] == 0:
            fail("the restored program has a result although its packets are held back")
        self.step("touch", f"/proc/{container.pid}/root/work/go")
        return self.result_of(container)


def devices_of(case: Case) -> dict[str, tuple[int, int]]:
    """The numbers of the devices that the configuration in a checkpoint gives to its container."""
    with tarfile.open(case.checkpoint) as tar:
        spec = json.load(tar.extractfile("spec.dump"))
    return {each["path"]: (each["major"], each["minor"]) for each in spec["linux"]["devices"]}
