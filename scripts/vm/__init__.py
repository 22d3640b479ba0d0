# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""Virtual machines whose root is the root of this host, or another one that scripts/root.py made.

options      what a caller asks for, and the command line that says so
places       folders of the project, of one run and of its sockets; locks
processes    child processes that end with their parent, and copies of their output
accel        whether this host has a working KVM
guest_files  the files that guest-init.sh reads
qemu         the command line of QEMU
boot         one boot: vasicd, QEMU, and what the guest reports
kernel_log   what the guest's kernel printed, and whether that is a complaint
machine      one run: boots, waits, judges
jobs         a machine that runs many commands, one after the other
"""
