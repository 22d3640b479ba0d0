#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
#
# usage: fuzz.sh [--runs N | --seconds N] [TARGET...]
#
# Runs the fuzzers of userspace/fuzz, all of them without a TARGET, and prints KTAP. Each
# fuzzer first runs the inputs of earlier crashes (userspace/fuzz/regressions/TARGET), then
#   --runs N     N inputs (the default, 1500), the same ones every time, derived from
#                those that scripts/fuzz_seeds.py makes. This is a test.
#   --seconds N  as many inputs as it can in N seconds, other ones every time; the corpus
#                in out/fuzz/TARGET/corpus grows. This is a search.
# After a crash, fuzz.sh keeps the input in out/fuzz/TARGET and prints the cause and the
# command that repeats it. Status 1 on a crash, 64 usage.
set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

# Time limit of a single input: a device that takes longer hangs.
readonly INPUT_LIMIT_S=20 INPUT_BYTES=2048 MEMORY_MB=2048 SHOWN_LINES=40 CAUSE_LINES=3
readonly CAUSE='^fuzz: violated: |runtime error: |ERROR: '
# With these options every run has the same inputs: the fuzzer uses neither times nor the
# operands of comparisons, some of which are addresses, to choose inputs.
readonly SAME=(-seed=1 -entropic=0 -use_cmp=0)

runs=1500 seconds='' number=0 failed=0
bin='' out='' vasicd=''

# verdict TARGET STATUS LOG: prints one case. The first lines of a failure are the cause,
# the command that repeats it, and the input, because callers may show only a few lines.
verdict() {
	number=$((number + 1))
	if (($2 == 0)); then
		printf 'ok %d - %s\n' "$number" "$1"
		return
	fi
	failed=$((failed + 1))
	printf 'not ok %d - %s\n' "$number" "$1"
	{ grep -aE -m "$CAUSE_LINES" "$CAUSE" "$3" || true; } | sed 's/^/# /'
	printf '# repeat: %s\n' "$(repeat_command "$1" "$3")"
	sed -n 's/^Base64: /# input in Base64: /p' "$3"
	tail -n "$SHOWN_LINES" "$3" | sed 's/^/# /'
}

# repeat_command TARGET LOG: prints the command that runs the input of the crash.
repeat_command() {
	local input
	input=$(sed -n 's/.*Test unit written to //p' "$2" | tail -n 1)
	printf '%s %s' "$bin/$1_fuzz" "${input:-$(sed -n 's/^Running: //p' "$2" | tail -n 1)}"
}

# run_target TARGET: runs the inputs of earlier crashes, then those of the test or search.
run_target() {
	local target=$1 log=$out/$1/log corpus=$out/$1/corpus status=0
	local -a known=() options=(-timeout="$INPUT_LIMIT_S" -rss_limit_mb="$MEMORY_MB" -artifact_prefix="$out/$target/")
	mkdir -p -- "$out/$target"
	mapfile -d '' known < <(find "userspace/fuzz/regressions/$target" -type f -print0 2>/dev/null | sort -z)
	if ((${#known[@]})); then
		"$bin/${target}_fuzz" "${options[@]}" "${known[@]}" >"$log" 2>&1 || status=$?
	fi
	if ((status == 0 && ${seconds:-runs} > 0)); then
		if [[ $seconds ]]; then
			options+=(-max_total_time="$seconds")
		else
			rm -rf -- "$corpus"
			options+=("${SAME[@]}" -runs="$runs")
		fi
		scripts/fuzz_seeds.py "$target" "$corpus" "$vasicd"
		[[ ! -e $corpus.dict ]] || options+=(-dict="$corpus.dict")
		"$bin/${target}_fuzz" "${options[@]}" -max_len="$INPUT_BYTES" -len_control=0 \
			-print_final_stats=1 "$corpus" >"$log" 2>&1 || status=$?
	fi
	printf '%d' "$status" >"$out/$target/status"
}

# Runs several targets at the same time, so that no processor is idle.
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

# Processes in the background do not get the SIGINT of Ctrl-C, so this ends the fuzzers.
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
		--runs | --seconds)
			[[ ${2-} =~ ^[0-9]{1,6}$ ]] || usage_error "$1 needs a number of at most six digits"
			# 10# because bash reads a number with a leading zero as octal.
			if [[ $1 == --runs ]]; then runs=$((10#$2)) seconds=''; else seconds=$((10#$2)); fi
			shift
			;;
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
	vasicd=$(out_dir)/cmake/asan/userspace/vasicd/vasicd
	scripts/build.sh asan fuzzers vasicd >&2
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
