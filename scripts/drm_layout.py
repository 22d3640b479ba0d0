#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""Compares what kernel/drm-handle-at adds to the uapi headers of DRM with golden values.

usage: drm_layout.py [--upstream] TREE

TREE is a kernel tree with the series, for example out/kernel/criu/src, or a folder with its
include/uapi/drm. clang compiles a table of sizes, offsets and numbers for 32- and 64-bit programs,
which call the ioctls of a 64-bit kernel without translation. With --upstream only what Linux 7.3
has too is compared, so that its tree can be TREE. Exit status: 0 if all are equal, 1 if not.
"""
from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

TARGETS = ("i386-linux-gnu", "x86_64-linux-gnu", "aarch64-linux-gnu")

# What the kernel's headers of these targets define.
STUBS = {
    "linux/types.h": """
typedef unsigned char __u8; typedef unsigned short __u16; typedef unsigned int __u32; typedef int __s32;
typedef unsigned long long __u64; typedef long long __s64; typedef unsigned long __kernel_size_t;
#define __user
""",
    "linux/bits.h": "",
    "linux/const.h": "",
    "asm/ioctl.h": """
#define _IOC(dir, base, nr, size) ((unsigned)(dir) << 30 | (unsigned)(size) << 16 | (base) << 8 | (nr))
#define _IO(base, nr) _IOC(0, base, nr, 0)
#define _IOW(base, nr, type) _IOC(1, base, nr, sizeof(type))
#define _IOR(base, nr, type) _IOC(2, base, nr, sizeof(type))
#define _IOWR(base, nr, type) _IOC(3, base, nr, sizeof(type))
""",
}

# Structures: size, then the offset of each member.
UPSTREAM_STRUCTS = {
    "drm_amdgpu_gem_list_handles": (16, {"entries": 0, "num_entries": 8, "padding": 12}),
    "drm_amdgpu_gem_list_handles_entry": (40, {"gem_handle": 0, "flags": 4, "size": 8, "preferred_domains": 16,
                                               "alloc_flags": 24, "alignment": 32}),
    "drm_amdgpu_gem_vm_entry": (32, {"addr": 0, "size": 8, "offset": 16, "flags": 24}),
    "drm_amdgpu_gem_op": (24, {"handle": 0, "op": 4, "value": 8, "num_entries": 16, "padding": 20}),
}
UPSTREAM_NUMBERS = {
    "DRM_IOCTL_AMDGPU_GEM_LIST_HANDLES": 0xc0106459,
    "DRM_IOCTL_AMDGPU_GEM_OP": 0xc0186450,
    "AMDGPU_GEM_OP_GET_MAPPING_INFO": 2,
    "AMDGPU_GEM_LIST_HANDLES_FLAG_IS_IMPORT": 1,
}
STRUCTS = {
    "drm_prime_handle_at": (16, {"handle": 0, "flags": 4, "fd": 8, "pad": 12}),
    "drm_amdgpu_gem_create_in": (40, {"bo_size": 0, "alignment": 8, "domains": 16, "domain_flags": 24, "handle": 32,
                                      "pad": 36}),
    "drm_amdgpu_gem_userptr": (24, {"addr": 0, "size": 8, "flags": 16, "handle": 20}),
    "drm_syncobj_create": (8, {"handle": 0, "flags": 4}),
    "drm_syncobj_list": (16, {"entries": 0, "count": 8, "pad": 12}),
    "drm_syncobj_list_entry": (8, {"handle": 0, "flags": 4}),
    "drm_amdgpu_list_objects": (24, {"type": 0, "entry_size": 4, "entries": 8, "count": 16, "flags": 20}),
    "drm_amdgpu_list_context": (24, {"id": 0, "priority": 4, "flags": 8, "stable_pstate": 12, "sequence": 16}),
    "drm_amdgpu_list_bo_list_entry": (16, {"list": 0, "handle": 4, "priority": 8, "flags": 12}),
    "drm_amdgpu_list_userptr": (24, {"handle": 0, "flags": 4, "addr": 8, "pid": 16, "pad": 20}),
}
NUMBERS = {
    "DRM_CAP_GEM_HANDLE_AT": 0x17,
    "DRM_GEM_HANDLE_AT_CAP_IMPORT": 1,
    "DRM_IOCTL_PRIME_FD_TO_HANDLE_AT": 0x401064d4,
    "DRM_IOCTL_AMDGPU_GEM_CREATE": 0xc0286440,
    "(unsigned)AMDGPU_GEM_CREATE_AT_HANDLE": 0,
    "AMDGPU_GEM_CREATE_AT_HANDLE >> 32": 1 << 31,
    "DRM_IOCTL_AMDGPU_GEM_USERPTR": 0xc0186451,
    "AMDGPU_GEM_USERPTR_AT_HANDLE": 1 << 4,
    "AMDGPU_CTX_OP_ALLOC_AT": 8,
    "AMDGPU_CTX_OP_SKIP_FENCES": 9,
    "AMDGPU_BO_LIST_OP_CREATE_AT": 8,
    "DRM_SYNCOBJ_CREATE_AT_HANDLE": 1 << 1,
    "DRM_SYNCOBJ_FD_TO_HANDLE_FLAGS_AT_HANDLE": 1 << 2,
    "DRM_IOCTL_SYNCOBJ_LIST": 0xc01064d5,
    "DRM_SYNCOBJ_LIST_SHARED": 1 << 0,
    "DRM_SYNCOBJ_LIST_EVENTFD": 1 << 1,
    "DRM_IOCTL_AMDGPU_LIST_OBJECTS": 0xc0186490,
    "AMDGPU_LIST_CONTEXTS": 1,
    "AMDGPU_LIST_BO_LISTS": 2,
    "AMDGPU_LIST_USERPTRS": 3,
    "AMDGPU_LIST_CONTEXT_GUILTY": 1 << 0,
    "AMDGPU_LIST_CONTEXT_RESET": 1 << 1,
    "AMDGPU_LIST_CONTEXT_BUSY": 1 << 2,
    "AMDGPU_LIST_CONTEXT_OVERRIDDEN": 1 << 3,
    "AMDGPU_LIST_BO_LIST_EMPTY": 1 << 0,
}


def golden(upstream: bool) -> dict[str, int]:
    """The C expressions that are compared, and their values."""
    structs = UPSTREAM_STRUCTS if upstream else UPSTREAM_STRUCTS | STRUCTS
    values = dict(UPSTREAM_NUMBERS if upstream else UPSTREAM_NUMBERS | NUMBERS)
    for struct, (size, members) in structs.items():
        values[f"sizeof(struct {struct})"] = size
        values |= {f"offsetof(struct {struct}, {name})": offset for name, offset in members.items()}
    return values


def table(folder: Path, target: str, expressions: list[str]) -> list[int]:
    """The values of the expressions in a program of the target."""
    source = "\n".join(["#include <stddef.h>", "#include <drm/drm.h>", "#include <drm/amdgpu_drm.h>",
                        "extern const unsigned int table[];", "const unsigned int table[] = {",
                        *(f"{expression}," for expression in expressions), "};", ""])
    done = subprocess.run(
        ["clang", "-target", target, "-ffreestanding", "-nostdlibinc", f"-I{folder}", "-S", "-emit-llvm", "-o", "-",
         "-x", "c", "-"], input=source, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"drm_layout.py: {target}: {done.stderr.strip()}")
    line = next(line for line in done.stdout.splitlines() if re.match(r"@table = .*constant \[", line))
    return [int(number) & 0xffffffff for number in re.findall(r"i32 (-?\d+)", line)]


def differences(tree: Path, upstream: bool = False) -> list[str]:
    """A line for each value that is not golden."""
    expected, found = golden(upstream), []
    with tempfile.TemporaryDirectory(prefix="drm-layout-") as name:
        folder = Path(name)
        for path, text in STUBS.items():
            (folder / path).parent.mkdir(exist_ok=True)
            (folder / path).write_text(text)
        (folder / "drm").symlink_to((tree / "include/uapi/drm").resolve())
        for target in TARGETS:
            values = table(folder, target, list(expected))
            found += [f"{target}: {expression} is {value:#x}, not {wanted:#x}"
                      for (expression, wanted), value in zip(expected.items(), values, strict=True) if value != wanted]
    return found


def main() -> int:
    words = [word for word in sys.argv[1:] if word != "--upstream"]
    if len(words) != 1 or words[0].startswith("-"):
        print(__doc__, file=sys.stderr)
        return 64
    found = differences(Path(words[0]), "--upstream" in sys.argv[1:])
    print("\n".join(found) or "all layouts and numbers are golden")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
