#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
#
# usage: loops.sh PROGRAMS GPUS STEP [N]
#
# Runs one step of the reloads and resets of tests/test_loops.py in a guest with GPUS GPUs;
# its status is the result. PROGRAMS is the folder of the built parts
# (out/cmake/release/userspace).
#   work       a quick test of a ring and of a queue on every GPU
#   reload N   unloads and loads amdgpu N times, with work after each time
#   reset N    resets every GPU N times while jobs run, with work after each time
#   measure    prints the available KiB of memory, and the KiB of the kernel's slabs
# scripts/vm.sh checks the kernel log for warnings, those of kmemleak too.
set -uo pipefail
# shellcheck source=scripts/guest/lib.sh
source "${BASH_SOURCE[0]%/*}/lib.sh"

readonly SAMPLE_ROUNDS=10
# Time limits: a kernel with KASAN takes minutes on a busy machine.
readonly KFD_LIMIT_S=300 UNLOAD_LIMIT_S=300
readonly WORK='Ring/CsTest.written_words*:Gpu/VaTest.one_bo*' PARALLEL_WORK='Gpu/ContextTest.hundreds*'
programs='' gpus=0

has_gpus() {
	[[ -c /dev/kfd && $(grep -lv '^0$' "$KFD_NODES"/*/gpu_id 2>/dev/null | wc -l) == "$gpus" ]]
}

work() {
	has_gpus || { echo "amdkfd's topology does not show $gpus GPUs" && return 1; }
	"$programs/drmtest/drmtest" --gtest_filter="$WORK" >/tmp/work.log 2>&1 ||
		{ tail -n 30 /tmp/work.log && return 1; }
}

# Loads the driver with the parameters with which guest-init.sh loaded it.
reload() {
	unload_driver "$UNLOAD_LIMIT_S" || return 1
	[[ ! -c /dev/kfd ]] || return 1
	modprobe -d "$VASIC_MODULES" amdgpu vasic=1 || return 1
	wait_for "$KFD_LIMIT_S" has_gpus
}

reset_all() {
	local file status=0 pid
	"$programs/drmtest/drmtest" --gtest_filter="$PARALLEL_WORK" --gtest_repeat=3 >/dev/null 2>&1 &
	pid=$!
	for file in /sys/kernel/debug/dri/{?,??}/amdgpu_gpu_recover; do # primary nodes
		[[ ! -e $file || $(<"$file") == 0 ]] || status=1
	done
	# The reset may have cancelled jobs of the program, so its status does not matter; it
	# must only end.
	wait "$pid"
	return "$status"
}

# rounds COMMAND N: runs the command and work() N times, and prints the memory now and then.
rounds() {
	local i
	for ((i = 0; i < $2; i++)); do
		"$1" || { echo "$1 failed in round $i of $2" && return 1; }
		work || { echo "work after $1 failed in round $i of $2" && return 1; }
		((i % SAMPLE_ROUNDS)) || echo "$1 $i: $(available_kib) KiB available, $(mem_kib SUnreclaim) KiB of slabs"
	done
}

# mem_kib FIELD: prints this field of /proc/meminfo.
mem_kib() {
	awk -v name="$1:" '$1 == name { print $2 }' /proc/meminfo
}

# Prints the available memory after the kernel has dropped its caches.
available_kib() {
	sync
	echo 3 >/proc/sys/vm/drop_caches
	mem_kib MemAvailable
}

main() {
	local step=${3-}
	(($# >= 3)) || usage_error "no step"
	programs=$1 gpus=$2
	case $step in
	work) work ;;
	reload) rounds reload "$4" ;;
	reset) rounds reset_all "$4" ;;
	measure) printf '%d %d\n' "$(available_kib)" "$(mem_kib SUnreclaim)" ;;
	*) usage_error "no step '$step'" ;;
	esac
}

main "$@"
