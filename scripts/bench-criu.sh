#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
#
# usage: bench-criu.sh
#
# Measures the time of checkpoint and restore for each object (criubench) with the stock
# kernel and with ours, one after the other, PAIRS times; prints a table, adds it to
# out/bench.json, and fails when the time with ours is not linear in the number of objects
# or longer than with the stock kernel (limits: bench_criu.py). The guests' clocks count
# instructions (vm.sh --icount), so that other load on the host does not change the times.
# Environment: PAIRS (3), GPU (gfx906), SECONDS_PER_KIND (5, of the guest's), OUT_DIR.
set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

HERE=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)
OUT=$(out_dir)
readonly HERE OUT LIMIT_S=900

# measure N KERNEL ABI
measure() {
	local file=$OUT/bench-criu/$1-$2-$3.json
	setpriv --pdeathsig TERM "$HERE/vm.sh" run --icount --kernel "$2" --gpu "${GPU:-gfx906},vram=256M" --name bench-criu \
		--timeout "$LIMIT_S" -- "$OUT/cmake/release/userspace/kfdtest-criu/criubench" \
		--abi "$3" --seconds "${SECONDS_PER_KIND:-5}" >"$file" ||
		die "criubench failed on the $2 kernel (logs: $OUT/vm/bench-criu)"
}

main() {
	local i pairs=${PAIRS:-3}
	case ${1-} in
	'') ;;
	-h | --help) print_header "${BASH_SOURCE[0]}" && exit 0 ;;
	*) usage_error "unknown argument '$1'" ;;
	esac
	[[ $pairs =~ ^[1-9][0-9]*$ ]] || usage_error "PAIRS: '$pairs' is no number above 0"
	need python3 python3
	[[ -x $OUT/cmake/release/userspace/kfdtest-criu/criubench ]] || die "-$EXIT_INFRA" "no criubench: run make build"
	rm -rf -- "$OUT/bench-criu" && mkdir -p -- "$OUT/bench-criu"
	log "measuring in $((3 * pairs)) virtual machines; a minute each"
	for ((i = 0; i < pairs; i++)); do
		measure "$i" stock released
		measure "$i" criu released
		measure "$i" criu extensible
	done
	python3 "$HERE/bench_criu.py" "$OUT/bench-criu" "$OUT/bench.json" || return 1
	log "written: $OUT/bench.json"
}

main "$@"
