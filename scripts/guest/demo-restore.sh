#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
#
# usage: demo-restore.sh RUN PLUGINS
#
# The demo's second machine: restores RUN/images, lets the program continue and
# waits for its result (RUN/program/result); then it does this with RUN/hip-images and
# RUN/hip. Writes RUN/gpus.b.
set -euo pipefail
# shellcheck source=scripts/guest/lib.sh
source "${BASH_SOURCE[0]%/*}/lib.sh"

# restore_and_finish PREFIX DIR WHAT: restores RUN/PREFIXimages, checks that the program has no
# result while WHAT are held back, lets it continue, and waits for RUN/DIR/result.
restore_and_finish() {
	local pid result
	pid=$(<"$run/$1pid")
	restore_kept "$run/$1images" "$plugins" "$run/$1restore.log" ||
		{ tail_of "$run/$1restore.log" && die "criu restore failed"; }
	is_running "$pid" || { tail_of "$run/$1restore.log" && die "process $pid does not exist after the restore"; }
	[[ ! -e $run/$2/result ]] || die "the restored program has a result although $3 are held back"
	phase "restored: process $pid runs, $3 are still pending"
	: >"$run/$2/go"
	result=$(result_of "$run/$2") || {
		tail_of "$run/$2/log"
		tail_of "$run/$1restore.log"
		die "the restored program wrote no result in $RESULT_LIMIT_S s"
	}
	phase "continued: result $result"
}

main() {
	local run=$1 plugins
	plugins=$(plugin_of "$2")
	prepare_guest
	gpu_ids | tee "$run/gpus.b" | sed 's/^/  machine B: /'
	restore_and_finish '' program "its packets"
	restore_and_finish hip- hip "its waves"
}

main "$@"
