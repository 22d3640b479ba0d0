#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
#
# usage: report.sh [CHIP...]
#
# What checkpoint and restore can do on the stock kernel and on ours, on each chip
# (default: all): kfdtest's restores and its tests of the stock kernel's defects, in
# a virtual machine with two GPUs for each kernel and chip. When a test kills the
# guest's kernel, another machine runs the tests behind it.
#
# Writes out/report/report.txt and out/report/report.html (one file); what each machine
# said is in out/report/runs. Status 1 when a test fails on our kernel, or when the stock
# kernel does not show one of the defects H1 to H8. Minutes a chip.
# Environment: OUT_DIR.
set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

HERE=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)
OUT=$(out_dir)
readonly HERE OUT
readonly REPORT=$OUT/report
readonly KERNELS=(stock criu)
readonly CHIPS=(gfx701 gfx803 gfx900 gfx906 gfx908 gfx90a gfx942 gfx1010 gfx1030 gfx1100 gfx1201)
# More machines for one kernel and chip than tests that kill a kernel.
readonly MACHINES=12 GUEST_LIMIT_S=900 GPU_VRAM=256M

# run_machine KERNEL CHIP NUMBER FILTER: its output and its kernel's log.
run_machine() {
	local kernel=$1 chip=$2 number=$3 filter=$4 name=report-$1-$2 run=$REPORT/runs/$1-$2.$3
	log "$kernel $chip, machine $((number + 1))"
	setpriv --pdeathsig TERM "$HERE/vm.sh" run --kernel "$kernel" --gpu "$chip,vram=$GPU_VRAM" --gpu "$chip,vram=$GPU_VRAM" \
		--name "$name" --timeout "$GUEST_LIMIT_S" -- \
		"$HERE/guest/gpu-tests.sh" "$OUT/cmake/release/userspace" "kfdtest:$filter" \
		>"$run.out" 2>&1 </dev/null || true
	# A kernel that died has told only its console.
	cp -- "$OUT/vm/$name/dmesg.log" "$run.log" 2>/dev/null ||
		cp -- "$OUT/vm/$name/serial.log" "$run.log" 2>/dev/null || true
}

# run_tests KERNEL CHIP: in as many machines as it takes.
run_tests() {
	local kernel=$1 chip=$2 number filter
	local -a runs=()
	for ((number = 0; number < MACHINES; number++)); do
		filter=$(python3 "$HERE/report.py" next "$kernel" "${runs[@]}")
		[[ -n $filter ]] || return 0
		run_machine "$kernel" "$chip" "$number" "$filter"
		runs+=("$REPORT/runs/$kernel-$chip.$number.out")
	done
}

build() {
	local kernel
	"$HERE/build.sh" release >"$REPORT/build.log" 2>&1 || die "the build failed; see $REPORT/build.log"
	for kernel in "${KERNELS[@]}"; do
		"$HERE/kernel.sh" build "$kernel" >>"$REPORT/build.log" 2>&1 ||
			die "the build of kernel $kernel failed; see $REPORT/build.log"
	done
}

main() {
	local chip kernel status=0
	local -a chips=("$@") all=()
	if [[ ${1-} == -h || ${1-} == --help ]]; then
		print_header "${BASH_SOURCE[0]}"
		exit 0
	fi
	(($#)) || { chips=("${CHIPS[@]}") && all=(--all); }
	for chip in "${chips[@]}"; do
		[[ " ${CHIPS[*]} " == *" $chip "* ]] || usage_error "no chip '$chip'"
	done
	need python3 python3
	rm -rf -- "$REPORT" && mkdir -p -- "$REPORT/runs"
	build
	for chip in "${chips[@]}"; do
		for kernel in "${KERNELS[@]}"; do
			run_tests "$kernel" "$chip"
		done
	done
	python3 "$HERE/report.py" write "${all[@]}" "$REPORT" "${chips[@]}" || status=$?
	cat -- "$REPORT/report.txt"
	log "$REPORT/report.html"
	return "$status"
}

main "$@"
