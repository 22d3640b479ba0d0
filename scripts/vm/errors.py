# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""Exit statuses, and the one exception of this package."""
from __future__ import annotations

import errno
import os
from pathlib import Path

EXIT_FAIL = 1
EXIT_USAGE = 64
EXIT_TIMEOUT = 124
EXIT_INFRA = 125


class VmError(Exception):
    """The run ends here with `status`.

    message  one line, without the name of the program
    detail   whole lines which are shown before the message; may be empty
    """

    def __init__(self, status: int, message: str, detail: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.detail = detail


def usage_error(message: str) -> VmError:
    """The caller asked for something that does not exist."""
    return VmError(EXIT_USAGE, f"{message} (try: vm.sh -h)")


def infra_error(message: str, detail: str = "") -> VmError:
    """This host, QEMU, vasicd or the guest failed, and not the command."""
    return VmError(EXIT_INFRA, message, detail)


def from_os_error(error: OSError, name: str | Path | None = None) -> VmError:
    """One line that names the file. A failed write() does not know its file, so its caller gives `name`."""
    return infra_error(f"{name or error.filename or 'a file'}: {error.strerror or error}")


def disk_full(name: str | Path) -> VmError:
    return infra_error(f"{name}: {os.strerror(errno.ENOSPC)}")
