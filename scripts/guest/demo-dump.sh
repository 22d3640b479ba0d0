#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
#
# usage: demo-dump.sh RUN PROGRAM HIP-PROGRAM PLUGINS
#
# The demo's first machine: runs PROGRAM undisturbed (RUN/reference), then again
# up to its pending packets (RUN/program) and dumps it there (RUN/images). It does this
# also with HIP-PROGRAM, up to its waiting waves (RUN/hip-reference, RUN/hip,
# RUN/hip-images). Writes RUN/gpus.a, RUN/pid and RUN/hip-pid.
set -euo pipefail
# shellcheck source=scripts/guest/lib.sh
source "${BASH_SOURCE[0]%/*}/lib.sh"

# dump PREFIX: dumps the program that was started last.
dump() {
	dump_and_keep "$demo_pid" "$run/$1images" "$plugins" "$run/$1dump.log" ||
		{ tail_of "$run/$1dump.log" && die "criu dump failed"; }
	wait_for "$EXIT_LIMIT_S" is_gone "$demo_pid" || die "the program still runs after its dump"
	printf '%s\n' "$demo_pid" >"$run/$1pid"
	phase "dumped: $(du -sk "$run/$1images" | cut -f1) KiB of images; the process is gone"
}

main() {
	local run=$1 program=$2 hip_program=$3 plugins expected hip_run
	plugins=$(plugin_of "$4")
	prepare_guest
	gpu_ids | tee "$run/gpus.a" | sed 's/^/  machine A: /'

	# HIP compiles kernels of its own when a program begins, so this run starts first.
	mkdir -p -- "$run/reference" "$run/hip-reference"
	"$hip_program" --dir "$run/hip-reference" --undisturbed >/dev/null &
	hip_run=$!
	"$program" --dir "$run/reference" --gpus 2 --undisturbed >/dev/null ||
		{ tail_of "$run/reference/log" && die "the undisturbed run failed"; }
	expected=$(result_of "$run/reference") || die "the undisturbed run has no result"
	phase "undisturbed run: result $expected"

	start_demo "$program" "$run/program" --gpus 2 || die "the program did not submit its packets in time (log: $run/program/log)"
	phase "process $demo_pid: packets pending in three queues, a thread waits for an event"
	dump ''

	wait "$hip_run" || { tail_of "$run/hip-reference/log" && die "the undisturbed HIP program failed"; }
	phase "undisturbed HIP program: result $(result_of "$run/hip-reference")"
	start_demo "$hip_program" "$run/hip" || die "the HIP program did not start its kernel in time (log: $run/hip/log)"
	phase "process $demo_pid: waves of a transformer layer wait in the middle of a softmax"
	dump hip-
}

main "$@"
