#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
#
# usage: e2e.sh
#
# The e2e tier: checkpoint and restore of GPU programs with CRIU, in four virtual
# machines: one that dumps, one with other GPUs that restores, the same on a stock
# kernel as a control, one without GPUs; and the demo, in two more, for its HIP program.
# The last three run beside the others.
# Also what must not work: damaged images, a full disk, passing a closed gate.
#
# Prints "ok N - NAME" or "not ok N - NAME" for each case, what failed as "# "
# lines, and at the end "N passed, N failed". Images and logs: out/e2e.
# Environment: OUT_DIR, CHIP (gfx906; one whose waves are executed). Status: 1 when a case failed.
set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

HERE=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)
OUT=$(out_dir)
readonly HERE OUT
readonly RUN=$OUT/e2e KERNEL=criu CONTROL=stock MEM=1G VM_LIMIT_S=600 SHOWN_LINES=40
readonly PROGRAM=$OUT/cmake/release/userspace/kfdtest-criu/demo_program
readonly PLUGINS=$OUT/cmake/release/userspace/plugin
readonly CHIP=${CHIP:-gfx906}
readonly LARGE=$CHIP,vram=512M SMALL=$CHIP,vram=256M

number=0 passed=0 failed=0 beside=''

# emit ok|bad NAME
emit() {
	number=$((number + 1))
	if [[ $1 == ok ]]; then
		passed=$((passed + 1))
		printf 'ok %d - %s\n' "$number" "$2"
	else
		failed=$((failed + 1))
		printf 'not ok %d - %s\n' "$number" "$2"
	fi
}

# judge NAME COMMAND...: a case that is decided here.
judge() {
	local name=$1
	shift
	if "$@"; then
		emit ok "$name"
	else
		emit bad "$name"
	fi
}

# run_machine NAME VM-OPTION... -- COMMAND: what the guest says, for cases_of.
run_machine() {
	local name=$1 status=0
	shift
	log "machine $name begins"
	setpriv --pdeathsig TERM "$HERE/vm.sh" run --kernel "$KERNEL" --mem "$MEM" --timeout "$VM_LIMIT_S" --name "e2e-$name" \
		--share "$RUN" "$@" >"$RUN/$name.cases" 2>"$RUN/$name.log" || status=$?
	printf '%d' "$status" >"$RUN/$name.status"
}

# cases_of NAME: a guest's cases, and one more: that it came to its end, so that a
# case it never came to cannot be missed.
cases_of() {
	local name=$1 log=$RUN/$1.log bad=$failed word verdict text status
	while read -r word verdict text; do
		[[ $word == case ]] || continue
		emit "$verdict" "$text"
	done <"$RUN/$name.cases"
	status=$(cat "$RUN/$name.status" 2>/dev/null || echo none)
	judge "machine $name ran all of its cases and its kernel did not complain" test "$status" = 0
	if ((failed > bad)); then
		tail -n "$SHOWN_LINES" "$log" | sed 's/^/# /'
	fi
}

# damage_images: copies, each wrong in one way, made between the two machines.
damage_images() {
	local kind pages
	for kind in flipped truncated uncommitted; do
		cp -r -- "$RUN/images" "$RUN/images-$kind" || return 1
	done
	pages=$(largest_pages) || return 1
	flip_last_byte "$RUN/images-flipped/$pages" &&
		truncate -s -4096 "$RUN/images-truncated/$pages" &&
		rm -- "$RUN/images-uncommitted"/amdgpu-manifest-*.img
}

# largest_pages: the name of the file with most of the buffers' contents.
largest_pages() {
	find "$RUN/images" -name 'amdgpu-pages-*.img' -size +0 -printf '%s %f\n' | sort -n | tail -n 1 |
		cut -d' ' -f2 | grep .
}

# The last byte that is not zero: files are padded, and padding is nobody's.
flip_last_byte() {
	python3 -c '
import sys
with open(sys.argv[1], "r+b") as file:
    data = file.read()
    at = len(data.rstrip(b"\0")) - 1
    file.seek(at)
    file.write(bytes([data[at] ^ 0x40]))
' "$1"
}

no_common_gpu_id() {
	[[ -s $RUN/gpus.a && -s $RUN/gpus.b ]] &&
		[[ -z $(comm -12 <(awk '{ print $2 }' "$RUN/gpus.a" | sort) <(awk '{ print $2 }' "$RUN/gpus.b" | sort)) ]]
}

# What needs nothing of the other machines.
run_beside() {
	run_machine plain -- "$HERE/guest/e2e-plain.sh" "$RUN" "$PLUGINS"
	log "the demo begins"
	"$HERE/demo.sh" >"$RUN/demo.log" 2>&1 && touch "$RUN/demo.ok"
}

demo_succeeds() {
	[[ -e $RUN/demo.ok ]] || { tail -n "$SHOWN_LINES" "$RUN/demo.log" | sed 's/^/# /' && return 1; }
}

cleanup() {
	[[ -z $beside ]] || end_tree "$beside"
}

main() {
	local kernel
	if [[ ${1-} == -h || ${1-} == --help ]]; then
		print_header "${BASH_SOURCE[0]}"
		exit 0
	fi
	(($# == 0)) || usage_error "e2e.sh takes no arguments"
	need criu criu # the machines run what is installed here
	rm -rf -- "$RUN" && mkdir -p -- "$RUN"
	"$HERE/build.sh" release >"$RUN/build.log" 2>&1 || die "the build failed; see $RUN/build.log"
	for kernel in "$KERNEL" "$CONTROL"; do
		"$HERE/kernel.sh" build "$kernel" >>"$RUN/build.log" 2>&1 ||
			die "the build of kernel $kernel failed; see $RUN/build.log"
	done

	trap cleanup EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM
	run_beside &
	beside=$!
	run_machine dump --gpu "$LARGE,slot=16" --gpu "$SMALL,slot=17" -- \
		"$HERE/guest/e2e-dump.sh" "$RUN" "$PROGRAM" "$PLUGINS"
	cases_of dump
	judge "the images can be damaged" damage_images
	run_machine restore --gpu "$SMALL,slot=18" --gpu "$LARGE,slot=20" -- \
		"$HERE/guest/e2e-restore.sh" "$RUN" "$PLUGINS"
	cases_of restore
	judge "the two machines have no gpu_id in common" no_common_gpu_id
	run_machine stock --kernel "$CONTROL" --gpu "$SMALL,slot=18" --gpu "$LARGE,slot=20" -- \
		"$HERE/guest/e2e-stock.sh" "$RUN" "$PLUGINS"
	cases_of stock
	wait "$beside" || true
	beside=''
	cases_of plain
	judge "the demo's programs, one with waves in flight, go on in another machine" demo_succeeds
	printf '%d passed, %d failed\n' "$passed" "$failed"
	((failed == 0))
}

main "$@"
