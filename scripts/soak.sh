#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
#
# usage: soak.sh [--quick]
#
# What takes too long for `make test`: the driver loaded and unloaded 200 times and
# 50 resets of every GPU, on an ordinary kernel and on one with KASAN, lockdep and
# kmemleak (scripts/kernel.sh build criu --debug), which then runs the suites too.
# Hours without KVM: a reload with KASAN takes a minute. KTAP on standard output.
# --quick: a tenth of the rounds.
set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

HERE=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)
OUT=$(out_dir)
readonly HERE OUT
# One of each scheduler and page-table format.
readonly CHIPS=(gfx803 gfx90a gfx1030 gfx1201) GPU_VRAM=256M
readonly LOOPS_LIMIT_S=7200 SUITES_LIMIT_S=3600 MEMORY=3G
reloads=200 resets=50 failed=0

# part NAME COMMAND...: one case beside those that the command prints itself.
part() {
	local name=$1
	shift
	if "$@"; then
		printf 'ok - %s\n' "$name"
	else
		failed=1
		printf 'not ok - %s\n' "$name"
	fi
}

loops() {
	"$HERE/guest-loops.sh" --kernel "$1" --reloads "$reloads" --resets "$resets" --limit "$LOOPS_LIMIT_S" "${CHIPS[@]}"
}

# suites KERNEL CHIP: without those that need a machine of their own (start_variants in test.sh).
suites() {
	setpriv --pdeathsig TERM "$HERE/vm.sh" run --kernel "$1" --gpu "$2,vram=$GPU_VRAM" --gpu "$2,vram=$GPU_VRAM" --mem "$MEMORY" \
		--name "soak-$2" --timeout "$SUITES_LIMIT_S" --env "KFDTEST_CHIP=$2" -- \
		"$HERE/guest/gpu-tests.sh" "$OUT/cmake/release/userspace" "sysfs:$2:2" debugfs stress \
		'kfdtest:-InjectionTest.*:XnackTest.*' 'drmtest:-*HangTest*:*InjectionTest*'
}

main() {
	local chip
	case ${1-} in
	'') ;;
	-h | --help) print_header "${BASH_SOURCE[0]}" && exit 0 ;;
	--quick) reloads=$((reloads / 10)) resets=$((resets / 10)) ;;
	*) usage_error "unknown argument '$1'" ;;
	esac
	printf 'KTAP version 1\n'
	part "the debug kernel is built" "$HERE/kernel.sh" build criu --debug
	part "reloads and resets" loops stock
	part "reloads and resets on the debug kernel" loops criu-debug
	for chip in "${CHIPS[@]}"; do
		part "the suites on the debug kernel, $chip" suites criu-debug "$chip"
	done
	return "$failed"
}

main "$@"
