# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""The files that guest-init.sh reads before it leaves the host's root behind: the two are a pair. Starts nothing."""
from __future__ import annotations

import os
import shlex
import shutil
from pathlib import Path
from typing import Iterable

from .errors import from_os_error
from .options import Options
from .places import out_dir, repo_root, root_folder, write_file

NINE_P = "trans=virtio,version=9p2000.L,msize=524288"
# Folders that are empty when a guest begins, and their modes.
EMPTY_FOLDERS = (("/tmp", "1777"), ("/run", "755"))


def write(folder: Path, options: Options, modules: str) -> None:
    """`folder` gets init, params, fstab, fstab.scratch and skeleton/; `modules` has lib/modules."""
    init = folder / "init"
    try:
        shutil.copyfile(repo_root() / "scripts/guest-init.sh", init)
        init.chmod(0o755)
    except OSError as error:
        raise from_os_error(error, init) from error
    write_file(folder / "params", params_text(options, modules))
    write_file(folder / "fstab.scratch", "proc /proc proc defaults 0 0\ntmpfs /sys tmpfs mode=755 0 0\n")
    write_file(folder / "fstab", "".join(fstab_lines(options, modules)))
    _make_skeleton(folder / "skeleton")


def _make_skeleton(folder: Path) -> None:
    """What /sys and /dev of the guest need before anything is mounted there."""
    for name in ("upper", "work", "root", "keep", "lower"):
        (folder / "sys" / name).mkdir(parents=True)
    dev = folder / "dev"
    dev.mkdir()
    (dev / "fd").symlink_to("/proc/self/fd")
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        (dev / name).symlink_to(f"/proc/self/fd/{number}")


def params_text(options: Options, modules: str) -> str:
    """Shell code that guest-init.sh sources."""
    return (f"cwd={shlex.quote(options.cwd)}\nmodules={shlex.quote(modules)}\n"
            f"driver={int(options.driver)}\ngpu_count={len(options.gpus)}\n"
            + shell_list("argv", options.argv) + shell_list("env", options.env)
            + shell_list("params", options.params))


def shell_list(name: str, items: Iterable[str]) -> str:
    """An assignment to a bash array."""
    return f"{name}=({''.join(' ' + shlex.quote(item) for item in items)} )\n"


def fstab_line(source: str, path: str, kind: str, options: str) -> str:
    """`path` is as the guest sees it later."""
    return f"{_escape(source)} /sys/root{_escape(path)} {kind} {options} 0 0\n"


def _escape(text: str) -> str:
    for character in "\\ \t\n#":
        text = text.replace(character, f"\\{ord(character):03o}")
    return text


def kept_folders(options: Options, modules: str) -> list[str]:
    """Folders that the run needs, parents before what is below them, each once."""
    command = options.argv[0]
    folder = os.path.dirname(command) if command.startswith("/") and command.count("/") > 1 else options.cwd
    return sorted({options.cwd, modules, folder})


def brought_folders(options: Options, modules: str, root: Path) -> list[str]:
    """Folders of this host that the run needs and another root does not have, parents before what is below them:
    also the project, the output folder, and what links in the output folder lead to. A folder below another one of
    them comes with it."""
    folders: list[str] = []
    linked = [str(path.resolve()) for path in out_dir().iterdir() if path.is_symlink()]
    for folder in sorted({*kept_folders(options, modules), str(repo_root()), str(out_dir()), *linked}):
        is_there = any(folder == other or folder.startswith(other + "/") for other in folders)
        if not is_there and Path(folder).is_dir() and not (root / folder.lstrip("/")).is_dir():
            folders.append(folder)
    return folders


def fstab_lines(options: Options, modules: str) -> list[str]:
    """What the guest mounts, in this order. /tmp and /run are empty, except for the folders that the run needs."""
    lower, lines = "/", []
    if options.root:
        # The path of the root may have characters that are special in the options of overlayfs.
        lower = "/sys/lower"
        lines.append(fstab_line(str(root_folder(options.root)), "/../lower", "none", "bind"))
    lines += [
        fstab_line("overlay", "", "overlay", f"lowerdir={lower},upperdir=/sys/upper,workdir=/sys/work"),
        fstab_line("devtmpfs", "/dev", "devtmpfs", "mode=755"),
        fstab_line("devpts", "/dev/pts", "devpts", "mode=620,ptmxmode=666,X-mount.mkdir"),
        fstab_line("tmpfs", "/dev/shm", "tmpfs", "mode=1777,X-mount.mkdir"),
        fstab_line("proc", "/proc", "proc", "defaults"),
        fstab_line("sysfs", "/sys", "sysfs", "defaults"),
        fstab_line("debugfs", "/sys/kernel/debug", "debugfs", "defaults"),
        fstab_line("cgroup2", "/sys/fs/cgroup", "cgroup2", "defaults")]
    lines += _other_root(options, modules) if options.root else _own_root(options, modules)
    lines += [fstab_line(f"share{number}", path, "9p", f"{NINE_P},cache=none,X-mount.mkdir")
              for number, path in enumerate(options.shares)]
    return lines


def _own_root(options: Options, modules: str) -> list[str]:
    """New /tmp and /run, and in them the folders of this host's that the run needs."""
    lines = []
    for top, mode in EMPTY_FOLDERS:
        lines.append(fstab_line(f"/sys/root{top}", f"/../keep{top}", "none", "bind,X-mount.mkdir"))
        lines.append(fstab_line("tmpfs", top, "tmpfs", f"mode={mode}"))
        lines += [fstab_line(f"/sys/keep{folder}", folder, "none", "bind,X-mount.mkdir")
                  for folder in kept_folders(options, modules)
                  if folder.startswith(top + "/") and Path(folder).is_dir()]
    return lines


def _other_root(options: Options, modules: str) -> list[str]:
    """New /tmp and /run, and folders of this host's root, which is read-only."""
    lines = [fstab_line("tmpfs", top, "tmpfs", f"mode={mode}") for top, mode in EMPTY_FOLDERS]
    lines += [fstab_line(folder, folder, "none", "bind,X-mount.mkdir")
              for folder in brought_folders(options, modules, root_folder(options.root))]
    return lines
