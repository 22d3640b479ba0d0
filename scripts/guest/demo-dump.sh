#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
#
# usage: demo-dump.sh RUN PROGRAM PLUGINS
#
# The demo's first machine: runs PROGRAM undisturbed (RUN/reference), then again
# up to its pending packets (RUN/program) and dumps it there (RUN/images).
# Leaves RUN/gpus.a and RUN/pid.
set -euo pipefail
# shellcheck source=scripts/guest/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

main() {
	local run=$1 program=$2 plugins expected
	plugins=$(plugin_of "$3")
	prepare_guest
	gpu_ids | tee "$run/gpus.a" | sed 's/^/  machine A: /'

	mkdir -p -- "$run/reference"
	"$program" --dir "$run/reference" --gpus 2 --undisturbed >/dev/null ||
		{ tail_of "$run/reference/log" && die "the undisturbed run failed"; }
	expected=$(result_of "$run/reference") || die "the undisturbed run has no result"
	phase "undisturbed run: result $expected"

	start_demo "$program" "$run/program" --gpus 2 || die "the program did not come to its pending packets"
	phase "process $demo_pid: packets pending in three queues, a thread waits for an event"
	printf '%s\n' "$demo_pid" >"$run/pid"

	dump_and_keep "$demo_pid" "$run/images" "$plugins" "$run/dump.log" ||
		{ tail_of "$run/dump.log" && die "criu dump failed"; }
	wait_for 5 is_gone "$demo_pid" || die "the program still runs after its dump"
	phase "dumped: $(du -sk "$run/images" | cut -f1) KiB of images; the process is gone"
}

main "$@"
