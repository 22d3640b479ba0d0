#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
#
# usage: demo.sh [--repeat N] [--kernel stock|criu] [--no-build]
#
# Checkpoints two GPU programs in one virtual machine and continues them in another
# one, with other gpu_ids and the GPUs in another order. The first has packets
# pending in a PM4, an SDMA and an AQL queue and a thread waiting for an event;
# its result depends on VRAM, GTT and userptr memory and on each of the packets.
# The second is a HIP program, a layer of a transformer, whose waves are in the
# middle of a shader kernel. Both results must equal those of undisturbed runs.
#
# It builds only what it runs; --no-build uses what is already built. Images and logs
# stay in out/demo/<run>; the last line is
#   demo: OK result=<checksum> hip=<checksum> (equal to the undisturbed runs)
# Environment: OUT_DIR, CHIP (gfx906; a chip that executes waves). Status: 0 pass, 1 a step failed, 64 usage.
set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

HERE=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)
OUT=$(out_dir)
readonly HERE OUT
readonly VASICD=${VASICD:-$OUT/cmake/release/userspace/vasicd/vasicd}
readonly PROGRAM=$OUT/cmake/release/userspace/kfdtest-criu/demo_program
readonly HIP_PROGRAM=$OUT/cmake/release/userspace/hiptest/hip_demo
readonly PLUGINS=$OUT/cmake/release/userspace/plugin
# Both machines have these two GPUs, machine B in other slots and in reverse order.
readonly CHIP=${CHIP:-gfx906}
readonly LARGE=$CHIP,vram=512M SMALL=$CHIP,vram=256M
readonly MEM=2G VM_LIMIT_S=600
# The programs that the demo runs, and therefore builds.
readonly TARGETS=(vasicd amdgpu_plugin demo_program hip_demo)
# Seconds between two lines about a command that is still running.
readonly BEAT_S=15

repeat=1 kernel=criu build=1 begin_ms=0 run='' result='' hip_result='' beat=''

now_ms() {
	local t=$EPOCHREALTIME
	printf '%d' "$((10#${t/./} / 1000))"
}

say() {
	local ms=$(($(now_ms) - begin_ms))
	printf '[%3d.%d s] %s\n' "$((ms / 1000))" "$((ms % 1000 / 100))" "$*"
}

parse_options() {
	while (($#)); do
		case $1 in
		-h | --help) print_header "${BASH_SOURCE[0]}" && exit 0 ;;
		--repeat)
			[[ ${2-} =~ ^[1-9][0-9]{0,3}$ ]] || usage_error "--repeat needs a number from 1 to 9999"
			repeat=$2
			shift 2
			;;
		--kernel)
			[[ ${2-} == stock || ${2-} == criu ]] || usage_error "--kernel is stock or criu"
			kernel=$2
			shift 2
			;;
		--no-build) build=0 && shift ;;
		*) usage_error "unknown option '$1'" ;;
		esac
	done
}

# with_beat WHAT COMMAND...: runs the command with its own output, and prints from time to
# time how long it has been running.
with_beat() {
	local what=$1 status=0
	shift
	beat "$what" &
	beat=$!
	"$@" || status=$?
	end_beat
	return "$status"
}

# beat WHAT: prints these lines until demo.sh has ended, also if it was killed.
beat() {
	local begin=$SECONDS
	while sleep "$BEAT_S" >/dev/null 2>&1 && kill -0 "$$" 2>/dev/null; do
		say "$1: running for $((SECONDS - begin)) s"
	done
}

end_beat() {
	[[ -z $beat ]] || kill "$beat" 2>/dev/null || true
	wait "$beat" 2>/dev/null || true
	beat=''
}

# build_all: builds the programs first, because they take less time than the kernel and
# show their errors earlier.
build_all() {
	say "building the programs of the demo"
	with_beat "building the programs" "$HERE/build.sh" release "${TARGETS[@]}" || die "the build of the programs failed"
	say "building the kernel $kernel"
	with_beat "building the kernel" "$HERE/kernel.sh" build "$kernel" || die "the build of the kernel failed"
}

# check_chip: refuses a wrong CHIP before a virtual machine is started.
check_chip() {
	local chips
	[[ -x $VASICD ]] || die "-$EXIT_INFRA" "no vasicd ($VASICD): run scripts/build.sh release ${TARGETS[*]}"
	chips=$("$VASICD" --list-chips --json | python3 -c '
import json, sys
print(*(chip["name"] for chip in json.load(sys.stdin) if chip["executes_waves"]))') ||
		die "-$EXIT_INFRA" "$VASICD does not list its chips"
	[[ " $chips " == *" $CHIP "* ]] || die "-$EXIT_USAGE" "CHIP: '$CHIP' is none of the chips that execute waves: $chips"
}

# in_vm NAME WHAT GPU GPU COMMAND...: runs the command in a virtual machine and prints the
# guest's lines as they arrive.
in_vm() {
	local name=$1 what=$2 first=$3 second=$4
	shift 4
	with_beat "$what" setpriv --pdeathsig TERM "$HERE/vm.sh" run --kernel "$kernel" --gpu "$first" --gpu "$second" \
		--mem "$MEM" --timeout "$VM_LIMIT_S" --name "$name" --share "$run" -- "$@"
}

ids_of() {
	awk '{ print $2 }' "$1" | tr -d ':' | sort
}

# same_result WHAT DIR REFERENCE: prints the result in DIR, which must equal the one in REFERENCE.
same_result() {
	local expected got
	read -r _ expected <"$run/$3/result"
	read -r _ got <"$run/$2/result"
	[[ $got == "$expected" ]] || die "the result of $1 is $got, that of the undisturbed run $expected"
	printf '%s' "$got"
}

# One run from boot to comparison; sets result and hip_result.
demo() {
	say "machine A boots (kernel $kernel): large GPU in slot 16, small one in slot 17"
	in_vm "demo-$$-a" "machine A" "$LARGE,slot=16" "$SMALL,slot=17" "$HERE/guest/demo-dump.sh" "$run" "$PROGRAM" \
		"$HIP_PROGRAM" "$PLUGINS" ||
		die "machine A failed; logs are in $run and $OUT/vm/demo-$$-a"
	say "machine A is off; images: $(du -sh "$run/images" | cut -f1)"
	say "machine B boots: small GPU in slot 18, large one in slot 20"
	in_vm "demo-$$-b" "machine B" "$SMALL,slot=18" "$LARGE,slot=20" "$HERE/guest/demo-restore.sh" "$run" "$PLUGINS" ||
		die "machine B failed; logs are in $run and $OUT/vm/demo-$$-b"
	say "machine B is off"
	[[ -z $(comm -12 <(ids_of "$run/gpus.a") <(ids_of "$run/gpus.b")) ]] ||
		die "machines A and B have a gpu_id in common, so the demo does not show that gpu_ids are translated"
	result=$(same_result "the restored program" program reference)
	hip_result=$(same_result "the restored HIP program" hip hip-reference)
}

main() {
	local round
	parse_options "$@"
	need criu criu # the guests run the programs of the host
	begin_ms=$(now_ms)
	trap end_beat EXIT
	((!build)) || build_all
	check_chip
	for ((round = 1; round <= repeat; round++)); do
		run=$OUT/demo/$(date +%Y%m%d-%H%M%S)-$$-$round
		mkdir -p -- "$run"
		((repeat == 1)) || say "round $round of $repeat"
		demo
		printf 'demo: OK result=%s hip=%s (equal to the undisturbed runs)\n' "$result" "$hip_result"
	done
}

main "$@"
