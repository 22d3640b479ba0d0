#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
#
# usage: fuzz.sh [--seconds N] [--keep] [TARGET...]
#
# Runs the fuzzers of userspace/fuzz, all of them without a TARGET, for N seconds
# each (default 4): KTAP on standard output. Inputs of crashes that were once found
# (userspace/fuzz/regressions/TARGET) are run first. Without --keep each run is the
# same: a fixed seed, and only the inputs that scripts/fuzz_seeds.py makes. With it
# the corpus in out/fuzz/TARGET/corpus grows from run to run.
# A crash leaves its input in out/fuzz/TARGET and is shown with the command that
# runs it again. Status 1 on a crash, 64 usage.
set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

# Of a single input: a device that works longer hangs.
readonly INPUT_LIMIT_S=20 INPUT_BYTES=2048 MEMORY_MB=2048 SHOWN_LINES=40

seconds=4 keep=0 number=0 failed=0
bin='' out=''

# verdict TARGET STATUS LOG: one case.
verdict() {
	number=$((number + 1))
	if (($2 == 0)); then
		printf 'ok %d - %s\n' "$number" "$1"
		return
	fi
	failed=$((failed + 1))
	printf 'not ok %d - %s\n' "$number" "$1"
	tail -n "$SHOWN_LINES" "$3" | sed 's/^/# /'
	printf '# again: %s\n' "$(again "$1" "$3")"
}

# again TARGET LOG: the command that runs the input of the crash.
again() {
	local input
	input=$(sed -n 's/.*Test unit written to //p' "$2" | tail -n 1)
	printf '%s %s' "$bin/$1_fuzz" "${input:-$(sed -n 's/^Running: //p' "$2" | tail -n 1)}"
}

# run_target TARGET: what was once found, then the search.
run_target() {
	local target=$1 log=$out/$1/log corpus=$out/$1/corpus status=0
	local -a options=(-timeout="$INPUT_LIMIT_S" -rss_limit_mb="$MEMORY_MB" -artifact_prefix="$out/$target/") known=()
	mkdir -p -- "$out/$target"
	mapfile -d '' known < <(find "userspace/fuzz/regressions/$target" -type f -print0 2>/dev/null | sort -z)
	if ((${#known[@]})); then
		"$bin/${target}_fuzz" "${options[@]}" "${known[@]}" >"$log" 2>&1 || status=$?
	fi
	if ((status == 0 && seconds > 0)); then
		((keep)) || rm -rf -- "$corpus"
		scripts/fuzz_seeds.py "$target" "$corpus"
		((keep)) || options+=(-seed=1)
		[[ ! -e $corpus.dict ]] || options+=(-dict="$corpus.dict")
		"$bin/${target}_fuzz" "${options[@]}" -max_total_time="$seconds" -max_len="$INPUT_BYTES" -len_control=0 \
			-print_final_stats=1 "$corpus" >"$log" 2>&1 || status=$?
	fi
	printf '%d' "$status" >"$out/$target/status"
}

# One at a time would leave processors idle.
run_targets() {
	local target
	for target; do
		while (($(jobs -pr | wc -l) >= ${JOBS:-$(nproc)})); do
			wait -n || true
		done
		rm -f -- "$out/$target/status"
		run_target "$target" &
	done
	wait
}

# Fuzzers in the background do not hear of Ctrl-C.
end_targets() {
	local pid
	for pid in $(jobs -pr); do
		end_tree "$pid"
	done
}

main() {
	local target
	local -a targets=()
	while (($#)); do
		case $1 in
		-h | --help) print_header "${BASH_SOURCE[0]}" && exit 0 ;;
		--seconds)
			[[ ${2-} =~ ^[0-9]{1,6}$ ]] || usage_error "--seconds wants a number"
			seconds=$2
			shift
			;;
		--keep) keep=1 ;;
		-*) usage_error "unknown option '$1'" ;;
		*) targets+=("$1") ;;
		esac
		shift
	done
	need clang++ clang
	cd -- "$(repo_root)"
	for target in "${targets[@]}"; do
		[[ -e userspace/fuzz/${target}_fuzz.cc ]] || usage_error "no target '$target'"
	done
	if ((${#targets[@]} == 0)); then
		for target in userspace/fuzz/*_fuzz.cc; do
			target=${target##*/}
			targets+=("${target%_fuzz.cc}")
		done
	fi
	out=$(out_dir)/fuzz bin=$(out_dir)/cmake/asan/userspace/fuzz
	scripts/build.sh asan fuzzers >&2
	printf 'KTAP version 1\n'
	trap end_targets EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM
	run_targets "${targets[@]}"
	for target in "${targets[@]}"; do
		verdict "$target" "$(cat -- "$out/$target/status" 2>/dev/null || echo "$EXIT_INFRA")" "$out/$target/log"
	done
	printf '1..%d\n' "$number"
	((failed == 0))
}

main "$@"
