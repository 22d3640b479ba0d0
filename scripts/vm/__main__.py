# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""The command line: scripts/vm.sh runs this. Prints results and errors, and knows nothing else."""
from __future__ import annotations

import os
import signal
import sys

# Until Signals knows what to do, an interrupt ends this process without a word.
if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
if not __package__:  # Run as a folder, which Python then puts where the folder above belongs.
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

from vm.errors import EXIT_INFRA, VmError, from_os_error, usage_error  # noqa: E402
from vm.machine import Machine, Result, need_program  # noqa: E402
from vm.options import USAGE, HelpAsked, parse  # noqa: E402
from vm.processes import Signals  # noqa: E402


def run(args: list[str]) -> Result:
    """The verb and its options."""
    if args and args[0] in ("-h", "--help", "help"):
        raise HelpAsked
    if not args or args[0] != "run":
        raise usage_error(f"unknown verb '{args[0] if args else ''}'")
    options = parse(args[1:])
    need_program("qemu-system-x86_64", "qemu-system-x86")
    with Signals(lifeline=0 if options.until_eof else None) as signals:
        return Machine(options, check=signals.check).run()


def main(args: list[str]) -> int:
    try:
        result = run(args)
    except HelpAsked:
        print(USAGE, end="")
        return 0
    except VmError as error:
        result = Result(error.status, error.message, error.detail)
    except OSError as error:
        result = Result(EXIT_INFRA, from_os_error(error).message)
    show(result)
    return result.status


def show(result: Result) -> None:
    """On standard error, if that still takes anything: the status says it too."""
    try:
        sys.stderr.write(result.detail)
        if result.why:
            sys.stderr.write(f"vm.sh: error: {result.why}\n")
        sys.stderr.flush()
    except OSError:
        pass


if __name__ == "__main__":
    sys.stderr.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    sys.exit(main(sys.argv[1:]))
