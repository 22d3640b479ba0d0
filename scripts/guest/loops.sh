#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
#
# usage: loops.sh SHARE PROGRAMS RELOADS RESETS
#
# Unloads and loads amdgpu RELOADS times and resets every GPU RESETS times, with
# work before, after and, for a reset, while it happens; then looks for what was
# left behind. KTAP on standard output. SHARE/begin and SHARE/end exist while the
# host may look at vasicd; it answers with SHARE/begin.seen and SHARE/end.seen.
# The kernel's own complaints, kmemleak's too, are seen by vm.sh.
set -uo pipefail
# shellcheck source=scripts/guest/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=scripts/guest/cases.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/cases.sh"

share=$1 programs=$2 reloads=$3 resets=$4
readonly share programs reloads resets
# The first rounds fill caches that stay.
readonly WARM_UP=2 SAMPLE_ROUNDS=10 LOOK_LIMIT_S=60
# A kernel with KASAN takes minutes on a busy machine.
readonly KFD_LIMIT_S=300 UNLOAD_LIMIT_S=300
# What may go without being a leak: of memory at all, of slabs, and for each round.
# The first one is what it is on a machine that does nothing: it comes and goes.
readonly SPARE_MEMORY_KIB=32768 SPARE_SLABS_KIB=4096 SPARE_KIB_PER_ROUND=16
# A quick test of a ring and of a queue on every GPU.
readonly WORK='Ring/CsTest.written_words*:Gpu/VaTest.one_bo*' PARALLEL_WORK='Gpu/ContextTest.hundreds*'
gpus=0

count_gpus() {
	grep -lv '^0$' "$KFD_NODES"/*/gpu_id 2>/dev/null | wc -l
}

has_gpus() {
	[[ -c /dev/kfd && $(count_gpus) == "$gpus" ]]
}

work() {
	"$programs/drmtest/drmtest" --gtest_filter="$WORK" >/tmp/work.log 2>&1 ||
		{ tail -n 30 /tmp/work.log >&2 && return 1; }
}

# The parameters with which the machine loaded it.
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
	# It may have lost its jobs to the reset: only that it ends counts.
	wait "$pid"
	return "$status"
}

rounds() {
	local i command=$1 count=$2
	for ((i = 0; i < count; i++)); do
		"$command" || { echo "# $command: round $i of $count" && return 1; }
		work || { echo "# work after $command: round $i of $count" && return 1; }
		((i % SAMPLE_ROUNDS)) || echo "# $command $i: $(available_kib) KiB available, $(mem_kib SUnreclaim) KiB of slabs"
	done
}

# mem_kib FIELD
mem_kib() {
	awk -v name="$1:" '$1 == name { print $2 }' /proc/meminfo
}

# What the kernel can give, once its own caches are dropped.
available_kib() {
	sync
	echo 3 >/proc/sys/vm/drop_caches
	mem_kib MemAvailable
}

# look NAME: lets the host look at vasicd.
look() {
	: >"$share/$1"
	wait_for "$LOOK_LIMIT_S" test -e "$share/$1.seen"
}

# no_more_than SPARE BEFORE AFTER: in KiB.
no_more_than() {
	echo "# $2 KiB, then $3 KiB"
	(($3 - $2 <= $1 + SPARE_KIB_PER_ROUND * (reloads + resets)))
}

main() {
	local free slab
	gpus=$(count_gpus)
	tap "work succeeds on $gpus GPUs" work
	tap "the driver is unloaded and loaded" rounds reload "$((reloads < WARM_UP ? reloads : WARM_UP))"
	free=$(available_kib) slab=$(mem_kib SUnreclaim)
	tap "the host sees the beginning" look begin
	tap "the driver is unloaded and loaded $reloads times" rounds reload "$reloads"
	tap "the GPUs are reset $resets times" rounds reset_all "$resets"
	tap "the driver is unloaded and loaded after the resets" rounds reload 1
	tap "no memory was lost" no_more_than "$SPARE_MEMORY_KIB" 0 "$((free - $(available_kib)))"
	tap "no kernel objects were left" no_more_than "$SPARE_SLABS_KIB" "$slab" "$(mem_kib SUnreclaim)"
	tap "the host sees the end" look end
}

main "$@"
