#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
#
# usage: checkpoint.sh RUN PLUGINS STEP [ARG]...
#
# Runs one step of tests/test_e2e.py in a guest; its status is the result. RUN is a
# folder that is shared with the host; a program NAME has the folder RUN/NAME, images
# are folders of RUN too. PLUGINS is the folder of the built plugin.
#   gpus                            prints the gpu_id of each GPU
#   undisturbed NAME PROGRAM ARG... runs the program to its end and prints its result
#   start NAME PROGRAM ARG...       starts it and waits until its packets are pending
#   is-running NAME                 the program runs, and its GPU works
#   is-gone NAME [SECONDS]          the process ends, or has ended
#   stays-pending NAME              the program runs but writes no result
#   continue NAME                   lets the program continue; prints its result
#   kill NAME                       ends the process
#   dump-without-space NAME         dumps it into a file system that is too small
#   has-no-manifest                 the last dump left images, but no manifest
#   dump-by-cpu NAME                dumps it by the CPU into /run/by-cpu; it continues
#   dump NAME IMAGES                dumps it by SDMA, which ends the process
#   compare IMAGES                  /run/by-cpu and IMAGES have the same contents of buffers
#   restore sdma|cpu LOG [DAMAGE]   restores RUN/images, and copies contents that way; files of
#                                   RUN/DAMAGE replace those with the same name, an empty one
#                                   removes it
#   counter NAME                    a program without a GPU survives dump and restore
#   has-no-kfd                      this machine has no /dev/kfd
set -uo pipefail
# shellcheck source=scripts/guest/lib.sh
source "${BASH_SOURCE[0]%/*}/lib.sh"

# Size of the small file system: less than the contents of the program's buffers.
readonly TINY=1m TINY_DIR=/run/tiny CPU_DIR=/run/by-cpu
# Time for which a program that must not continue is watched.
readonly QUIET_S=3
run='' plugins='' kfd_criu=''

# pid_of NAME: prints the process id from the file for which start_demo() has waited.
pid_of() {
	local pid
	read -r _ pid <"$run/$1/state" || die "-$EXIT_INFRA" "no program was started in $run/$1"
	printf '%d' "$pid"
}

program_ends() {
	local pid
	pid=$(pid_of "$1") && wait_for "${2:-$EXIT_LIMIT_S}" is_gone "$pid"
}

stays_pending() {
	! wait_for "$QUIET_S" test -e "$run/$1/result" && program_continues "$run/$1"
}

continue_program() {
	: >"$run/$1/go"
	result_of "$run/$1" || { tail_of "$run/$1/log" && return 1; }
}

kill_program() {
	local pid
	pid=$(pid_of "$1") && kill -KILL "$pid" && program_ends "$1"
}

dump_without_space() {
	local pid
	mkdir -p -- "$TINY_DIR"
	mount -t tmpfs -o "size=$TINY" tmpfs "$TINY_DIR" || die "-$EXIT_INFRA" "cannot mount a small file system"
	pid=$(pid_of "$1") || return
	criu_dump "$pid" "$TINY_DIR" "$plugins" "$run/without-space.dump.log"
}

has_no_manifest() {
	compgen -G "$TINY_DIR/*.img" >/dev/null || die "-$EXIT_INFRA" "no images in $TINY_DIR"
	! compgen -G "$TINY_DIR/amdgpu-manifest*"
}

dump_by_cpu() {
	local copy=cpu pid log=$run/by-cpu.dump.log
	pid=$(pid_of "$1") || return
	criu_dump "$pid" "$CPU_DIR" "$plugins" "$log" --leave-running || { tail_of "$log" && return 1; }
	program_continues "$run/$1"
}

dump() {
	local pid log=$run/$2.dump.log
	pid=$(pid_of "$1") || return
	dump_and_keep "$pid" "$run/$2" "$plugins" "$log" || { tail_of "$log" && return 1; }
	program_ends "$1"
}

# Two dumps can be compared, because memory does not change while the program's packets wait. Files cannot: in which order
# a dump stores chunks of several GPUs depends on how fast they are read. The state of the kernel may be another one.
compare() {
	local differences status=0
	differences=$("$kfd_criu" diff "$CPU_DIR" "$run/$1") || status=$?
	((status <= 1)) && ! grep -F ': contents: ' <<<"$differences"
}

restore() {
	local copy=$1 log=$run/$2 images
	images=$(fetch "${3-}") || die "-$EXIT_INFRA" "cannot copy the images"
	criu_restore "$images" "$plugins" "$log" || { tail_of "$log" && return 1; }
}

# fetch DAMAGE: prints the folder with the images. They are copied from the host only once,
# because that is slow; a damaged copy has links to them.
fetch() {
	local images=/run/images file
	if [[ ! -d $images ]]; then
		cp -r -- "$run/images" "$images.part" && mv -- "$images.part" "$images" || return 1
	fi
	if [[ -n $1 ]]; then
		rm -rf -- "$images-$1" && cp -rl -- "$images" "$images-$1" || return 1
		images+=-$1
		for file in "$run/$1"/*; do
			rm -- "$images/${file##*/}" || return 1
			[[ ! -s $file ]] || cp -- "$file" "$images/" || return 1
		done
	fi
	printf '%s' "$images"
}

main() {
	local step=${3-}
	(($# >= 3)) || usage_error "no step"
	run=$1
	plugins=$(plugin_of "$2") || exit
	kfd_criu=$2/../kfd-criu/kfd-criu
	shift 3
	cd /
	case $step in
	gpus) gpu_ids ;;
	undisturbed) run_undisturbed "$run/$1" "${@:2}" ;;
	start) start_demo "$2" "$run/$1" "${@:3}" ;;
	is-running) program_continues "$run/$1" ;;
	is-gone) program_ends "$@" ;;
	stays-pending) stays_pending "$1" ;;
	continue) continue_program "$1" ;;
	kill) kill_program "$1" ;;
	dump-without-space) dump_without_space "$1" ;;
	has-no-manifest) has_no_manifest ;;
	dump-by-cpu) dump_by_cpu "$1" ;;
	dump) dump "$@" ;;
	compare) compare "$1" ;;
	restore) restore "$@" ;;
	counter) counter_survives "$run/$1" "$plugins" ;;
	has-no-kfd) [[ ! -e /dev/kfd ]] ;;
	*) usage_error "no step '$step'" ;;
	esac
}

main "$@"
