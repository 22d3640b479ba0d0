#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
#
# usage: demo-restore.sh RUN PLUGINS
#
# The demo's second machine: restores RUN/images, lets the program continue and
# waits for its result (RUN/program/result). Leaves RUN/gpus.b.
set -euo pipefail
# shellcheck source=scripts/guest/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

main() {
	local run=$1 plugins pid result
	plugins=$(plugin_of "$2")
	pid=$(<"$run/pid")
	prepare_guest
	gpu_ids | tee "$run/gpus.b" | sed 's/^/  machine B: /'

	restore_kept "$run/images" "$plugins" "$run/restore.log" ||
		{ tail_of "$run/restore.log" && die "criu restore failed"; }
	is_running "$pid" || { tail_of "$run/restore.log" && die "process $pid is not there after the restore"; }
	[[ ! -e $run/program/result ]] || die "a result although the packets' gate is closed"
	phase "restored: process $pid runs, its packets are still pending"

	: >"$run/program/go"
	result=$(result_of "$run/program") || {
		tail_of "$run/program/log"
		tail_of "$run/restore.log"
		die "no result"
	}
	phase "continued: result $result"
}

main "$@"
