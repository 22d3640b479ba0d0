# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""The command line of QEMU. Starts nothing."""
from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from .accel import KVM
from .options import Options

# Nanoseconds of an instruction with --icount, as a power of two.
ICOUNT_SHIFT = 2
KERNEL_LINE = ("console=ttyS0 loglevel=5 panic=-1 oops=panic log_buf_len=4M random.trust_cpu=on no_timer_check "
               "root=/dev/root rootfstype=9p "
               "rootflags=trans=virtio,version=9p2000.L,msize=524288,cache=loose ro init=")


@dataclass(frozen=True)
class Setup:
    """What one machine is made of, found out once and the same in each of its boots."""
    options: Options
    accel: str
    bzimage: Path
    modules: str  # the folder that has lib/modules
    vasicd: Path | None  # None without a GPU
    run: Path  # sockets and files of this run
    log: Path  # what is kept of it


@dataclass(frozen=True)
class Ports:
    """Write ends of pipes, which QEMU opens again by number and which nobody else keeps open."""
    status: int
    out: int
    err: int

    @property
    def fds(self) -> tuple[int, int, int]:
        return self.status, self.out, self.err


def command(setup: Setup, ports: Ports, ram: str) -> list[str]:
    """`ram` is the file that vasicd shares as the guest's memory; empty without a GPU."""
    return [*_machine(setup, ram), *_gpus(setup), *_filesystems(setup), *_ports(setup, ports),
            # no_timer_check: on a busy host the emulated timer is late, which is no reason to panic.
            "-append", f"{_fixed_addresses(setup)}{_unit_tests(setup)}{KERNEL_LINE}{setup.run}/init"]


def _fixed_addresses(setup: Setup) -> str:
    # Under TCG a guest was seen to start dynamically linked programs two to three times as fast with it.
    return "" if setup.accel == KVM or setup.options.aslr else "norandmaps "


def _unit_tests(setup: Setup) -> str:
    # A kernel with KUnit runs the tests of a driver whenever it is loaded: half of the time of a boot with a GPU.
    return "" if setup.options.kunit else "kunit.enable=0 "


def _machine(setup: Setup, ram: str) -> list[str]:
    options = setup.options
    # Linux lets PCI devices reach each other's memory on few processors other than AMD's Zen.
    cpu = "max,vendor=AuthenticAMD,family=23"
    if setup.accel != KVM:
        # The guest would copy memory with "rep movsb", which TCG does byte by byte.
        cpu += ",-erms,-fsrm"
    line = ["qemu-system-x86_64", "-no-user-config", "-nodefaults", "-display", "none", "-no-reboot",
            "-smp", str(1 if options.icount else options.smp), "-cpu", cpu, "-m", f"{options.mem_mib}M",
            "-kernel", str(setup.bzimage), "-serial", f"file:{setup.log}/serial.log",
            "-d", "cpu_reset", "-D", f"{setup.log}/cpu.log"]
    if options.icount:
        line += ["-accel", "tcg,thread=single", "-icount", f"shift={ICOUNT_SHIFT},sleep=on"]
    else:
        line += ["-accel", "kvm" if setup.accel == KVM else "tcg,thread=multi"]
    if options.gpus:
        line += ["-object", f"memory-backend-file,id=ram,size={options.mem_mib}M,mem-path={comma(ram)},share=on",
                 "-machine", "pc,max-ram-below-4g=2G,memory-backend=ram"]
    return line


def _gpus(setup: Setup) -> list[str]:
    """They come before other devices: their slots are fixed, the others take what is free. A slot has no function at all
    without function 0."""
    shared = {gpu.slot for gpu in setup.options.gpus if gpu.function}
    line = []
    for number, gpu in enumerate(setup.options.gpus):
        line += ["-chardev", f"socket,path={setup.run}/gpu{number}.sock,id=g{number}",
                 "-device", f"ivshmem-doorbell,vectors=2,chardev=g{number},addr={gpu.place}"
                 + (",multifunction=on" if gpu.slot in shared else "")]
    return line


def _filesystems(setup: Setup) -> list[str]:
    # A user who is not root cannot give files away.
    model = "security_model=" + ("passthrough" if os.geteuid() == 0 else "none")
    line = _fsdev("root", "/", "/dev/root", f"{model},readonly=on")
    for number, path in enumerate(setup.options.shares):
        line += _fsdev(f"share{number}", path, f"share{number}", model)
    return line


def _fsdev(name: str, path: str, tag: str, rest: str) -> list[str]:
    return ["-fsdev", f"local,id={name},path={comma(path)},multidevs=remap,{rest}",
            "-device", f"virtio-9p-pci,fsdev={name},mount_tag={tag}"]


def _ports(setup: Setup, ports: Ports) -> list[str]:
    log = comma(str(setup.log))
    line = ["-device", "virtio-serial-pci",
            *_port("status", "file", f"path=/dev/fd/{ports.status}"),
            *_port("stdout", "file", f"path=/dev/fd/{ports.out},logfile={log}/stdout.log"),
            *_port("stderr", "file", f"path=/dev/fd/{ports.err},logfile={log}/stderr.log"),
            *_port("dmesg", "file", f"path={log}/kmsg")]
    if setup.options.gpus:
        line += _port("control", "socket", f"path={comma(str(setup.run))}/control.sock")
    return line


def _port(name: str, backend: str, rest: str) -> list[str]:
    return ["-chardev", f"{backend},id={name},{rest}", "-device", f"virtserialport,chardev={name},name=vasic.{name}"]


def comma(text: str) -> str:
    """A comma inside a value of a QEMU option is written twice."""
    return text.replace(",", ",,")
