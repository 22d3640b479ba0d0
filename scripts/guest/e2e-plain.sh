#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
#
# usage: e2e-plain.sh RUN PLUGINS
#
# The e2e tier's third machine, which has no GPU and no /dev/kfd: the plugin must
# not be noticed.
set -uo pipefail
# shellcheck source=scripts/guest/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=scripts/guest/cases.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/cases.sh"

main() {
	local run=$1 plugins
	plugins=$(plugin_of "$2")
	prepare_guest
	judge "this machine has no /dev/kfd" fails test -e /dev/kfd
	judge "a program survives dump and restore on a machine without GPUs" \
		counter_survives "$run/plain" "$plugins"
}

main "$@"
