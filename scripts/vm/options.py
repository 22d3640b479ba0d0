# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""What a caller asks for, and the command line that says so. Knows neither QEMU nor this host's devices."""
from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable, Sequence

from .errors import usage_error
from .places import logical_cwd, repo_root

USAGE = """\
Run one command in a virtual machine whose root is this machine's root.

  vm.sh run [OPTION]... -- COMMAND [ARG]...
  vm.sh run [OPTION]... --jobs DIR

  --kernel NAME      stock (default) or criu: out/kernel/NAME
  --root NAME        another root than this machine's: out/roots/NAME, which
                     scripts/root.py makes. The project, --modules, the current
                     folder and the command's own folder are there too, read-only
  --gpu SPEC         add a virtual GPU; repeat for more. SPEC is vasicd's, plus
                     slot=N[.F], the PCI slot (default 0x10 and up) and the function there,
                     0 to 7 (default 0, then 1...): 128 places, of which vasicd takes 64
  --mem SIZE         guest memory, default 2G
  --smp N            guest CPUs, default 2
  --icount           one guest CPU without KVM, whose clock counts instructions, 4 ns each:
                     what else this machine does hardly changes the guest's times
  --aslr             programs get random addresses also without KVM, where the guest then
                     takes two to three times as long to start one
  --timeout SECONDS  for all of it, default 120
  --share DIR        writable in the guest, at the same path; repeat for more.
                     Everything else a guest writes is gone with it
  --env K=V          in the command's environment
  --name NAME        logs go to out/vm/NAME (default: time and process id)
  --trace            vasicd writes out/vm/NAME/trace.txt
  --param K=V        of the module amdgpu; repeat for more
  --no-driver        do not load amdgpu
  --kunit            drivers run their KUnit tests when they are loaded, which takes
                     seconds; results are in the guest's /sys/kernel/debug/kunit
  --lossy            vasicd may die: the machine runs on, its GPUs are lost
  --bzimage FILE     this kernel instead of --kernel's, with --modules DIR
  --modules DIR      the folder that has lib/modules
  --jobs DIR         instead of a COMMAND the guest runs the jobs that appear in the
                     shared folder DIR, until there is DIR/end (scripts/vm/jobs.py)
  --until-eof        end, as by SIGTERM, when standard input ends: for a caller that
                     may be killed and keeps a pipe open

The command runs as root in the caller's folder with its own standard output,
standard error and status; standard input is empty. /tmp and /run of the guest
are empty but for --share, the current folder and the command's own folder.
Status: the command's; 1 when the guest's kernel complained (WARN, BUG, KASAN,
lockdep, leak); 64 usage; 124 timeout; 125 the guest, QEMU or vasicd failed.
A guest that stalls or ends before its first process, its kernel having nothing to say
of it, is booted again, and said so.

With a GPU, vasicd's control socket is out/vm/NAME/control.sock while the
virtual machine runs; in the guest it is the port vasic.control (docs/testing.md).

Environment: VASICD (the binary), VM_ACCEL (kvm or tcg), OUT_DIR.
"""

FIRST_SLOT, LAST_SLOT, FUNCTIONS = 0x10, 0x1F, 8
DEFAULT_VRAM_MIB = 1024
LEAST_MEM_MIB = 256
# Names in out/vm that this package uses for itself.
RESERVED_NAMES = ("latest", "accel")


class HelpAsked(Exception):
    """The command line has -h or --help."""


@dataclass(frozen=True)
class Gpu:
    """One virtual GPU: `spec` is for vasicd, `slot` is the guest's PCI slot, VRAM is in MiB."""
    spec: str
    slot: int
    vram_mib: int
    function: int = 0

    @property
    def place(self) -> str:
        """Its PCI address on the bus, for people and for QEMU."""
        return f"{self.slot:#x}.{self.function}"


@dataclass
class Options:
    """One machine. Sizes are in MiB, times in seconds; an empty text means the default."""
    argv: list[str] = field(default_factory=list)
    kernel: str = "stock"
    root: str = ""
    mem_mib: int = 2048
    smp: int = 2
    limit_s: int = 120
    name: str = ""
    trace: bool = False
    driver: bool = True
    lossy: bool = False
    icount: bool = False
    aslr: bool = False
    kunit: bool = False
    until_eof: bool = False
    bzimage: str = ""
    modules: str = ""
    gpus: list[Gpu] = field(default_factory=list)
    shares: list[str] = field(default_factory=list)
    env: list[str] = field(default_factory=list)
    params: list[str] = field(default_factory=list)
    jobs: str = ""
    cwd: str = field(default_factory=logical_cwd)

    @property
    def vram_mib(self) -> int:
        return sum(gpu.vram_mib for gpu in self.gpus)


def size_mib(text: str, option: str) -> int:
    """512M, 2G, 1048576K or bytes, in whole MiB."""
    match = re.fullmatch(r"([0-9]{1,15})([KMGkmg]?)(i?[Bb])?", text)
    if not match:
        raise usage_error(f"{option}: '{text}' is not a size")
    number, unit = int(match[1]), match[2].upper()
    mib = {"G": number * 1024, "M": number, "K": number // 1024, "": number // 1024 // 1024}[unit]
    if mib <= 0:
        raise usage_error(f"{option}: '{text}' is less than 1M")
    return mib


def parse_gpu(text: str, before: Sequence[Gpu]) -> Gpu:
    """The field slot=N is for this package, the others are for vasicd."""
    if "\n" in text:
        raise usage_error(f"--gpu: a line break in '{text}'")
    function, slot = divmod(len(before), LAST_SLOT + 1 - FIRST_SLOT)
    slot, mib, rest = slot + FIRST_SLOT, DEFAULT_VRAM_MIB, []
    for item in text.split(","):
        key, _, value = item.partition("=")
        if item.startswith("slot="):
            match = re.fullmatch(rf"(0x[0-9a-fA-F]{{1,2}}|[0-9]{{1,2}})(?:\.([0-{FUNCTIONS - 1}]))?", value)
            if not match:
                raise usage_error(f"--gpu: '{item}' is not a PCI slot")
            slot = int(match[1], 16) if match[1].startswith("0x") else int(match[1], 10)
            function = int(match[2] or 0)
            continue
        if key == "vram" and item != key:
            mib = size_mib(value, "--gpu")
        rest.append(item)
    if not FIRST_SLOT <= slot <= LAST_SLOT:
        raise usage_error(f"--gpu: slot {slot} is outside {FIRST_SLOT}..{LAST_SLOT}")
    gpu = Gpu(",".join(item for item in rest if item), slot, mib, function)
    if any(gpu.place == other.place for other in before):
        raise usage_error(f"--gpu: slot {slot}{f'.{function}' if function else ''} is used twice")
    return gpu


def parse_share(text: str) -> str:
    """The real path of a folder. The guest's own root is made of this host's, so it must not be written to."""
    if not text or not Path(text).is_dir():
        raise usage_error(f"--share: '{text}' is not a folder")
    path = str(Path(text).resolve())
    if path == "/":
        raise usage_error("--share: not the whole root")
    return path


def parse_root(text: str) -> str:
    """The name of a folder in out/roots; this host's own root has none."""
    if not re.fullmatch(r"[a-z][a-z0-9_-]*", text):
        raise usage_error(f"--root: '{text}' is not a name")
    return text


def parse_number(option: str, text: str) -> int:
    if not re.fullmatch(r"[1-9][0-9]{0,5}", text):
        raise usage_error(f"{option}: '{text}' is not a positive number")
    return int(text)


def parse(args: Sequence[str]) -> Options:
    """The options after the verb `run`, up to and with the command."""
    options = Options()
    switches: dict[str, tuple[str, bool]] = {
        "--trace": ("trace", True), "--no-driver": ("driver", False), "--lossy": ("lossy", True),
        "--icount": ("icount", True), "--aslr": ("aslr", True), "--kunit": ("kunit", True),
        "--until-eof": ("until_eof", True)}
    values: dict[str, Callable[[str], None]] = {
        "--kernel": lambda v: setattr(options, "kernel", v),
        "--root": lambda v: setattr(options, "root", parse_root(v)),
        "--gpu": lambda v: options.gpus.append(parse_gpu(v, options.gpus)),
        "--mem": lambda v: setattr(options, "mem_mib", size_mib(v, "--mem")),
        "--smp": lambda v: setattr(options, "smp", parse_number("--smp", v)),
        "--timeout": lambda v: setattr(options, "limit_s", parse_number("--timeout", v)),
        "--share": lambda v: options.shares.append(parse_share(v)),
        "--env": options.env.append,
        "--param": options.params.append,
        "--name": lambda v: setattr(options, "name", v),
        "--bzimage": lambda v: setattr(options, "bzimage", v),
        "--modules": lambda v: setattr(options, "modules", v),
        "--jobs": lambda v: setattr(options, "jobs", parse_share(v)),
    }
    at = 0
    while at < len(args) and args[at] != "--":
        option = args[at]
        if option in ("-h", "--help"):
            raise HelpAsked
        if option in switches:
            setattr(options, *switches[option])
            at += 1
            continue
        if option not in values:
            raise usage_error(f"unknown option '{option}'")
        if at + 1 >= len(args) or args[at + 1] == "--":
            raise usage_error(f"{option} needs a value")
        values[option](args[at + 1])
        at += 2
    options.argv = list(args[at + 1:])
    check(options)
    return options


def check(options: Options) -> None:
    """Raises unless the options can be meant; completes those that follow from others."""
    if options.jobs:
        if options.argv:
            raise usage_error("--jobs takes no command")
        options.argv = [str(repo_root() / "scripts/guest/agent.sh"), options.jobs]
        options.shares.append(options.jobs)
    _require(bool(options.argv), "no command after --")
    _require(bool(re.fullmatch(r"[a-z][a-z0-9_-]*", options.kernel)), f"--kernel: '{options.kernel}' is not a name")
    if options.name:
        _require(bool(re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", options.name)),
                 f"--name: '{options.name}' is not a file name")
        _require(options.name not in RESERVED_NAMES, f"--name: '{options.name}' is reserved")
    _require(options.mem_mib >= LEAST_MEM_MIB, f"--mem: less than {LEAST_MEM_MIB}M")
    for item in options.env:
        _require(bool(re.match(r"[A-Za-z_][A-Za-z0-9_]*=", item)), f"--env: '{item}' is not K=V")
    for item in options.params:
        _require(bool(re.match(r"[a-z_][a-z0-9_]*=", item)), f"--param: '{item}' is not K=V")
    for gpu in options.gpus:
        # A guest looks for further functions only in a slot that has function 0.
        _require(not gpu.function or any(other.slot == gpu.slot and not other.function for other in options.gpus),
                 f"--gpu: slot {gpu.slot} has a function {gpu.function}, and no function 0, without which a guest sees none")
    if not options.gpus:
        options.driver = False


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise usage_error(message)

