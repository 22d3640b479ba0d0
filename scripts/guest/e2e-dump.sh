#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
#
# usage: e2e-dump.sh RUN PROGRAM PLUGINS
#
# The e2e tier's first machine: an undisturbed run, a dump that fails, a program
# without a GPU, and the dump that the second machine restores (RUN/images).
set -uo pipefail
# shellcheck source=scripts/guest/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=scripts/guest/cases.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/cases.sh"

run=$1 program=$2 plugins='' expected=''
readonly run program
# Less than the contents of the program's buffers.
readonly TINY=1m

run_undisturbed() {
	mkdir -p -- "$run/reference"
	"$program" --dir "$run/reference" --gpus 2 --svm --undisturbed >/dev/null
	expected=$(result_of "$run/reference")
}

# CRIU and the plugin run out of space while they write the images.
dump_into_full_filesystem() {
	mkdir -p /run/tiny
	mount -t tmpfs -o "size=$TINY" tmpfs /run/tiny
	criu_dump "$demo_pid" /run/tiny "$plugins" "$run/full.log" 2>/dev/null
}

failed_dump_cases() {
	judge "a program comes to its pending packets" start_demo "$program" "$run/full" --gpus 2 --svm
	judge "a dump into a full filesystem fails" fails dump_into_full_filesystem
	judge "the failed dump says that there is no space" logged "No space left" "$run/full.log"
	judge "the failed dump leaves no manifest" fails compgen -G '/run/tiny/amdgpu-manifest-*'
	judge "the program still runs after the failed dump" is_running "$demo_pid"
	: >"$run/full/go"
	judge "the program's result after the failed dump equals the undisturbed one" \
		equals "$(result_of "$run/full")" "$expected"
}

dump_by_cpu() {
	local copy=cpu
	start_demo "$program" "$run/program" --gpus 2 --svm || return 1
	criu_dump "$demo_pid" /run/by-cpu "$plugins" "$run/by-cpu.log" --leave-running ||
		{ tail_of "$run/by-cpu.log" && return 1; }
	is_running "$demo_pid"
}

# Nothing in memory moves while the packets wait.
same_contents() {
	local file
	for file in /run/by-cpu/amdgpu-pages-*.img; do
		cmp -- "$file" "$run/images/${file##*/}" || return 1
	done
}

dump_for_machine_b() {
	printf '%s\n' "$demo_pid" >"$run/pid"
	dump_and_keep "$demo_pid" "$run/images" "$plugins" "$run/dump.log" || { tail_of "$run/dump.log" && return 1; }
	wait_for "$EXIT_LIMIT_S" is_gone "$demo_pid"
}

main() {
	plugins=$(plugin_of "$3")
	prepare_guest
	gpu_ids >"$run/gpus.a"
	judge "an undisturbed run has a result" run_undisturbed
	failed_dump_cases
	judge "a program without a GPU survives dump and restore beside GPUs" \
		counter_survives "$run/counter" "$plugins"
	judge "a program with pending packets on two GPUs is dumped by the CPU and left running" dump_by_cpu
	judge "it is dumped again, by SDMA" dump_for_machine_b
	judge "the CPU and SDMA have read the same contents" same_contents
}

main "$@"
