# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""Folders of the project, of one run and of its sockets; locks that end with their holder; files by name."""
from __future__ import annotations

import fcntl
import os
import re
import shutil
import tempfile
import time
from pathlib import Path
from typing import Mapping

from .errors import disk_full, from_os_error, infra_error

# A Unix socket's path has 107 characters; the folder leaves some for the names in it.
MAX_SOCKET_DIR = 80
RUN_PREFIX = "vasic-vm."
LOCK_NAME = ".lock"


def repo_root() -> Path:
    return Path(__file__).resolve().parents[2]


def out_dir(environ: Mapping[str, str] = os.environ) -> Path:
    """Where everything generated goes: $OUT_DIR, else out/ in the project. Made if it is missing."""
    path = Path(environ.get("OUT_DIR") or repo_root() / "out")
    path.mkdir(parents=True, exist_ok=True)
    return path.resolve()


def root_folder(name: str) -> Path:
    """The root that scripts/root.py makes under this name."""
    return out_dir() / "roots" / name


def logical_cwd() -> str:
    """The current folder by the name that the caller's shell has for it, which may go through links."""
    name = os.environ.get("PWD", "")
    try:
        if name.startswith("/") and os.path.samefile(name, "."):
            return name
    except OSError:
        pass
    return os.getcwd()


def write_file(path: Path, content: str | bytes) -> None:
    """Replaces the content; an error names the file."""
    data = os.fsencode(content) if isinstance(content, str) else content
    try:
        path.write_bytes(data)
    except OSError as error:
        raise from_os_error(error, path) from error


def replace_file(path: Path, content: str | bytes) -> None:
    """Like write_file(), but a reader sees the old file or the whole new one."""
    new = path.with_name(f"{path.name}.{os.getpid()}")
    write_file(new, content)
    os.replace(new, path)


def read_text(path: Path) -> str:
    """The text of a file that others write; empty if there is none. Bytes that are no UTF-8 are replaced."""
    try:
        return path.read_bytes().decode(errors="replace").replace("\r", "")
    except FileNotFoundError:
        return ""


def file_size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def require_space(path: Path) -> None:
    """Raises, naming `path`, if its disk is full: other programs lose what they write there without a word."""
    stat = os.statvfs(path.parent)
    free = stat.f_bfree if os.geteuid() == 0 else stat.f_bavail
    if free == 0 and stat.f_blocks:
        raise disk_full(path)


class Lock:
    """A lock file held by this process. The kernel frees it when the process ends, however that comes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd = -1

    def take(self, wait: bool = False) -> bool:
        """False if another process holds it and `wait` is false."""
        fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            os.close(fd)
            return False
        self._fd = fd
        return True

    def is_on_disk(self) -> bool:
        """Whether the locked file is still the one with this path."""
        try:
            return os.path.samestat(os.fstat(self._fd), os.stat(self.path))
        except FileNotFoundError:
            return False

    def share(self) -> None:
        """Programs that this process starts later hold the lock too: it is free when the last of them has ended."""
        os.set_inheritable(self._fd, True)

    def release(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


class RunFolder:
    """A folder for the sockets and files of one run. Sockets need a short path, the kernel's command line one
    without blanks. Its lock says that the run is alive; the next run removes folders whose run is dead."""

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        base = environ.get("XDG_RUNTIME_DIR") or "/tmp"
        if not os.access(base, os.W_OK) or not re.fullmatch(r"/[A-Za-z0-9/._-]+", base) or len(base) > MAX_SOCKET_DIR:
            base = "/tmp"
        remove_dead_runs(Path(base))
        self.path, self._lock = _make_locked(base)
        self.path.chmod(0o755)

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        self._lock.release()


def _make_locked(base: str) -> tuple[Path, Lock]:
    while True:
        try:
            path = Path(tempfile.mkdtemp(prefix=RUN_PREFIX, dir=base))
        except OSError as error:
            raise infra_error(f"cannot make a folder in {base}: {error.strerror}") from error
        lock = Lock(path / LOCK_NAME)
        # Between the two steps another run may have taken the new folder for a dead one.
        try:
            lock.take(wait=True)
            if lock.is_on_disk():
                return path, lock
        except FileNotFoundError:
            pass
        lock.release()


def remove_dead_runs(base: Path) -> None:
    """Folders whose lock nobody holds. A folder without a lock file is somebody else's, or not ready yet."""
    for path in base.glob(RUN_PREFIX + "*"):
        lock = Lock(path / LOCK_NAME)
        try:
            if lock.path.is_file() and lock.take():
                shutil.rmtree(path, ignore_errors=True)
                lock.release()
        except OSError:
            continue  # Another user's folder, or one that another run has just removed.


class LogFolder:
    """out/vm/NAME, emptied, and the lock that keeps other machines of this name out."""

    def __init__(self, name: str) -> None:
        vm_dir = out_dir() / "vm"
        self.name = name or f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}"
        self.path = vm_dir / self.name
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._lock = Lock(self.path / LOCK_NAME)
            taken = self._lock.take()
        except OSError as error:
            raise infra_error(f"cannot make {self.path}: {error.strerror}") from error
        if not taken:
            raise infra_error(f"another virtual machine is named '{self.name}'")
        empty_folder(self.path)
        new = vm_dir / f"latest.{os.getpid()}"
        new.unlink(missing_ok=True)
        new.symlink_to(self.name)
        os.replace(new, vm_dir / "latest")

    def release(self) -> None:
        self._lock.release()


def empty_folder(path: Path) -> None:
    """Removes everything but the lock, which others may be waiting for."""
    for entry in path.iterdir():
        if entry.name == LOCK_NAME:
            continue
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()
