#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
#
# Run one command in a virtual machine: vm.sh -h. The program is the Python package scripts/vm.
exec python3 -I -- "$(dirname -- "${BASH_SOURCE[0]}")/vm" "$@"
