#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
#
# usage: gpu-tests.sh PROGRAMS CASE...
#
# Runs tests of the GPUs of this machine in the order of the CASEs and prints them as
# GoogleTest does. PROGRAMS is the folder of the built parts (out/cmake/release/userspace).
#   sysfs:CHIP:N     amdkfd has N GPUs of this chip, and says plausible things of them
#   rocminfo:CHIP:N  Debian's rocminfo finds them
#   debugfs          amdkfd's debugfs can be read while queues are mapped
#   stress           Debian's amdgpu_stress
#   kselftests:DIR[:WITHOUT]   those of the kernel series, installed in DIR, with their own
#                    runner; without some of the programs, separated by commas, or
#                    with `only=PROGRAMS` no others
#   kunit:SUITE      unit tests that the kernel ran when the driver was loaded
#   kfdtest[:FILTER] drmtest[:FILTER] hiptest[:FILTER]   the suites
# KSELFTEST_LIMIT_S: seconds for each program of the kselftests instead of its own limit.
# The kselftests may reset this machine's GPUs (KFD_CRIU_RESET).
# Status 1 when a case fails.
set -uo pipefail
# shellcheck source=scripts/guest/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

readonly KFD_DEBUG=/sys/kernel/debug/kfd STRESS_LIMIT_S=120 IDLE_S=60
failed=0 programs=''

# gtest NAME COMMAND...: one case.
gtest() {
	local name=Machine.$1 output=/tmp/case.$$
	shift
	printf '[ RUN      ] %s\n' "$name"
	if "$@" >"$output" 2>&1; then
		printf '[       OK ] %s (0 ms)\n' "$name"
	else
		tail -n 30 "$output"
		printf '[  FAILED  ] %s (0 ms)\n' "$name"
		failed=1
	fi
}

# gfx_target_version CHIP: major, minor and stepping, two digits each; the last two
# characters of a name are hexadecimal.
gfx_target_version() {
	local digits=${1#gfx}
	printf '%d' "$((10#${digits:0:${#digits}-2} * 10000 + 16#${digits: -2:1} * 100 + 16#${digits: -1}))"
}

property() {
	awk -v name="$2" '$1 == name { print $2 }' "$1/properties"
}

sysfs_has() {
	local chip=$1 want=$2 count=0 node version
	version=$(gfx_target_version "$chip")
	for node in "$KFD_NODES"/*; do
		[[ $(<"$node/gpu_id") != 0 && $(property "$node" gfx_target_version) == "$version" ]] || continue
		cat "$node/properties"
		count=$((count + 1))
		(($(property "$node" simd_count) > 0)) || return 1
		(($(property "$node" num_sdma_engines) > 0)) || return 1
		(($(property "$node" num_cp_queues) > 0)) || return 1
		[[ -c /dev/dri/renderD$(property "$node" drm_render_minor) ]] || return 1
	done
	printf '%d of %d GPUs are %s (%d)\n' "$count" "$want" "$chip" "$version"
	((count == want))
}

rocminfo_lists() {
	local text count
	text=$(rocminfo) || { printf 'rocminfo failed\n%s\n' "$text" && return 1; }
	count=$(grep -cE "^ *Name: +$1 *\$" <<<"$text")
	printf '%s\nrocminfo: %d of %d agents\n' "$text" "$count" "$2"
	((count == $2))
}

# While a process has queues: MQDs, hardware queues and the run list are written out
# by code that is different for each generation.
debugfs_reads() {
	local file pid status=0
	"$programs/kfdtest-criu/kfdbench" --idle "$IDLE_S" >/dev/null &
	pid=$!
	wait_for "$IDLE_S" compgen -G "/sys/class/kfd/kfd/proc/$pid/queues/*" >/dev/null || status=1
	for file in mqds hqds rls; do
		cat "$KFD_DEBUG/$file" || status=1
	done
	grep -q 'Compute queue on device\|SDMA queue on device' "$KFD_DEBUG/mqds" || status=1
	kill "$pid" || status=1 # it would idle on
	wait "$pid"
	return "$status"
}

# It looks only at devices of AMD, and the virtual GPU is one of QEMU's (ivshmem), so it
# gets a sysfs of its own that says otherwise. Copies from VRAM to system memory and
# back, and within each.
# shellcheck disable=SC2016  # expanded by the inner shell
stress() {
	echo 0x1002 >/tmp/vendor
	timeout "$STRESS_LIMIT_S" unshare --mount bash -c '
		for device in /sys/class/drm/renderD*/device; do
			mount --bind /tmp/vendor "$(readlink -f "$device")/vendor" || exit 1
		done
		exec "$@"' _ amdgpu_stress -b v 16m -b g 16m -b v 4m -b g 4m \
		-c 1 2 16m 20 -c 2 1 16m 20 -c 1 3 4m 20 -c 2 4 4m 20
}

# tell_case LINE NAME NOTES: LINE is TAP's; NOTES, lines, belong to a failure.
tell_case() {
	printf '[ RUN      ] %s\n' "$2"
	if [[ $1 == *'# SKIP'* ]]; then
		printf '%s\n[  SKIPPED ] %s (0 ms)\n' "${1#*# SKIP }" "$2"
	elif [[ $1 == *'not ok '* ]]; then
		printf '%s[  FAILED  ] %s (0 ms)\n' "$3" "$2"
		failed=1
	else
		printf '[       OK ] %s (0 ms)\n' "$2"
	fi
}

# kselftests DIR WITHOUT-OR-ONLY: each case of each program, from the nested TAP that the runner prints.
kselftests() {
	local line program='' name notes='' cases=0 only=0 listed
	local -a selected=() limit=()
	[[ $2 != only=* ]] || only=1
	[[ -z ${KSELFTEST_LIMIT_S-} ]] || limit=(--override-timeout "$KSELFTEST_LIMIT_S")
	while IFS= read -r line; do
		listed=0
		[[ ,${2#only=}, != *,"${line##*:}",* ]] || listed=1
		((listed != only)) || selected+=(-t "$line")
	done <"$1/kselftest-list.txt"
	if ((${#selected[@]} == 0)); then # the runner would take that for all
		gtest kselftests_are_chosen_by_"$2" false
		return
	fi
	while IFS= read -r line; do
		case $line in
		'# selftests: '*) program=${line##*: } notes='' ;;
		'# ok '* | '# not ok '*)
			name=${line#*ok * } && name=Kselftest.$program/${name%% #*}
			cases=$((cases + 1))
			tell_case "$line" "$name" "$notes"
			notes=''
			;;
		'not ok '*) gtest "kselftest_${line##*: }" false ;;
		'ok '*': '*' # SKIP'*) # the whole program
			name=${line##*: } && name=Kselftest.${name%% *}
			cases=$((cases + 1))
			tell_case "${line} ${notes//$'\n'/ }" "$name" ''
			;;
		*) notes+=$line$'\n' ;;
		esac
	done < <(KFD_CRIU_RESET=1 "$1/run_kselftest.sh" "${limit[@]}" "${selected[@]}" 2>&1)
	if ((cases == 0)); then
		gtest kselftests_ran false
	fi
}

# kunit SUITE: each case of it.
kunit() {
	local line name notes='' cases=0
	while IFS= read -r line; do
		case $line in
		'    ok '* | '    not ok '*)
			name=${line#*ok * }
			cases=$((cases + 1))
			tell_case "$line" "Kunit.${name%% #*}" "$notes"
			notes=''
			;;
		*) notes+=$line$'\n' ;;
		esac
	done < <(cat "/sys/kernel/debug/kunit/$1/results" 2>&1)
	((cases > 0)) || gtest "kunit_ran_$1" false
}

# suite PROGRAM FILTER: a pattern of the filter that selects nothing is a failure, for
# GoogleTest is content when another one selects something.
suite() {
	local pattern selecting=${2%%-*}
	local -a filter=() patterns
	if [[ -n $2 ]]; then
		filter=("--gtest_filter=$2")
	fi
	IFS=: read -ra patterns <<<"$selecting"
	for pattern in "${patterns[@]}"; do
		selects "$1" "$pattern" || gtest "${1##*/}_has_${pattern//[^A-Za-z0-9_]/_}" false
	done
	"$1" "${filter[@]}" || failed=1
}

# grep reads it all: with -q the program might die of its closed pipe, and so fail.
selects() {
	"$1" --gtest_list_tests "--gtest_filter=$2" | grep '^  ' >/dev/null
}

main() {
	local item kind rest folder
	programs=$1
	shift
	for item; do
		IFS=: read -r kind rest <<<"$item"
		case $kind in
		sysfs) gtest "sysfs_shows_${rest/:/_times_}" sysfs_has "${rest%:*}" "${rest#*:}" ;;
		rocminfo) gtest "rocminfo_lists_${rest/:/_times_}" rocminfo_lists "${rest%:*}" "${rest#*:}" ;;
		debugfs) gtest kfd_debugfs_is_readable_while_queues_are_mapped debugfs_reads ;;
		stress) gtest amdgpu_stress_succeeds stress ;;
		kselftests)
			IFS=: read -r folder rest <<<"$rest"
			kselftests "$folder" "$rest"
			;;
		kunit) kunit "$rest" ;;
		kfdtest) suite "$programs/kfdtest-criu/kfdtest" "$rest" ;;
		drmtest) suite "$programs/drmtest/drmtest" "$rest" ;;
		hiptest) suite "$programs/hiptest/hiptest" "$rest" ;;
		*) die -"$EXIT_USAGE" "no case '$item'" ;;
		esac
	done
	return "$failed"
}

main "$@"
