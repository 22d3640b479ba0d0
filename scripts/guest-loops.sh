#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
#
# usage: guest-loops.sh [--kernel NAME] [--reloads N] [--resets N] [--limit SECONDS] CHIP...
#        guest-loops.sh --loss [--kernel NAME] CHIP...
#
# One virtual machine with a GPU of each CHIP. The first form unloads and loads
# the driver and resets the GPUs again and again (scripts/guest/loops.sh) and looks
# here for what vasicd keeps; the second one kills vasicd under load
# (scripts/guest/loss.sh). KTAP on standard output; status 1 when a case fails.
set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

HERE=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)
OUT=$(out_dir)
readonly HERE OUT
readonly VRAM=256M
# What the process may keep: allocator caches, not a thing a round.
readonly SPARE_FDS=2 SPARE_RSS_KIB=8192

kernel=criu reloads=200 resets=50 limit_s=3600 loss=0 failed=0 name='' share='' vm_pid=''
declare -a vm_options=()

cleanup() {
	local status=$?
	if [[ -n $vm_pid ]]; then
		kill "$vm_pid" 2>/dev/null || true
		wait "$vm_pid" 2>/dev/null || true
	fi
	exit "$status"
}

vasicd_pid() {
	cat "$OUT/vm/$name/vasicd.pid"
}

# Open files, then resident KiB that are its own: VRAM and the guest's memory are
# shared files.
measure_vasicd() {
	local pid
	local -a files
	pid=$(vasicd_pid)
	files=("/proc/$pid/fd"/*)
	printf '%d %d' "${#files[@]}" "$(awk '$1 == "RssAnon:" { print $2 }' "/proc/$pid/status")"
}

# wait_for FILE: false when the virtual machine has ended.
wait_for() {
	while [[ ! -e $1 ]]; do
		kill -0 "$vm_pid" 2>/dev/null || return 1
		sleep 0.1
	done
}

# watch: what the host has to do while the guest runs; leaves what it saw.
watch() {
	local mark
	if ((loss)); then
		wait_for "$share/loaded" || return 0
		kill -KILL "$(vasicd_pid)"
		: >"$share/killed"
		return
	fi
	for mark in begin end; do
		wait_for "$share/$mark" || return 0
		measure_vasicd >"$share/$mark.seen.new"
		mv -- "$share/$mark.seen.new" "$share/$mark.seen"
	done
}

judge_vasicd() {
	local fds=0 rss=0 fds_end=999999 rss_end=999999
	read -r fds rss <"$share/begin.seen" || true
	read -r fds_end rss_end <"$share/end.seen" || true
	printf '# open files: %d, then %d; own memory: %d KiB, then %d\n' "$fds" "$fds_end" "$rss" "$rss_end"
	verdict "vasicd has no more open files than before" $((fds_end - fds <= SPARE_FDS))
	verdict "vasicd has no more memory than before" $((rss_end - rss <= SPARE_RSS_KIB))
}

# verdict NAME 0|1
verdict() {
	if (($2)); then
		printf 'ok - %s\n' "$1"
	else
		failed=1
		printf 'not ok - %s\n' "$1"
	fi
}

parse_options() {
	while (($#)); do
		case $1 in
		-h | --help) print_header "${BASH_SOURCE[0]}" && exit 0 ;;
		--loss) loss=1 && vm_options+=(--lossy) && shift && continue ;;
		--kernel | --reloads | --resets | --limit) (($# > 1)) || usage_error "$1 needs a value" ;;
		-*) usage_error "unknown option '$1'" ;;
		*)
			vm_options+=(--gpu "$1,vram=$VRAM") && name+=-$1
			shift && continue
			;;
		esac
		case $1 in
		--kernel) kernel=$2 ;;
		--reloads) reloads=$2 ;;
		--resets) resets=$2 ;;
		--limit) limit_s=$2 ;;
		esac
		shift 2
	done
	[[ -n $name ]] || usage_error "no chip"
}

main() {
	local status=0 programs=$OUT/cmake/release/userspace
	local -a guest
	parse_options "$@"
	if ((loss)); then
		name=loss$name
		guest=("$HERE/guest/loss.sh")
	else
		name=loops$name
		guest=("$HERE/guest/loops.sh")
	fi
	share=$OUT/loops/$name-$kernel
	rm -rf -- "$share" && mkdir -p -- "$share"
	guest+=("$share" "$programs" "$reloads" "$resets")
	trap cleanup EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM
	printf 'KTAP version 1\n'
	setpriv --pdeathsig TERM "$HERE/vm.sh" run --kernel "$kernel" "${vm_options[@]}" --name "$name" --timeout "$limit_s" \
		--share "$share" -- "${guest[@]}" &
	vm_pid=$!
	watch
	wait "$vm_pid" || status=$?
	vm_pid=''
	verdict "the virtual machine ends well, its kernel content" $((status == 0))
	((loss)) || judge_vasicd
	((status == 0 && failed == 0)) && [[ ! -e $share/failed ]]
}

main "$@"
