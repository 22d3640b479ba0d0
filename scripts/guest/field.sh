#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
#
# usage: field.sh RUN PROGRAMS PLUGINS [VARIABLE=VALUE]... STEP [ARG]...
#
# Runs one step of tests/harness/field.py in a guest. A step does one thing and prints what it
# sees; the test decides what comes next and whether it is good. RUN is a folder that is shared
# with the host; it has a folder for each program NAME, and the logs. PROGRAMS is the folder of
# the built parts, PLUGINS that of the plugin. IMAGES is a folder in the guest's memory. A
# VARIABLE is set for the program or for CRIU. PLUGIN_DIR is another folder of plugins. With
# WATCH_AT, criu_watch runs the command WATCH_RUN when CRIU's log comes there.
#   machine COUNT DEVICE=OVERRIDE... loads amdgpu anew, which then drives COUNT GPUs; prints their
#                                    gpu_ids. OVERRIDE is what driver_override of the PCI device is
#   undisturbed NAME PROGRAM ARG...  runs the program to its end and prints its result
#   start NAME PROGRAM ARG...        starts it and waits until it can be dumped
#   counter NAME [again]             starts a program without a GPU, which counts; again: with the
#                                    process id of the program before it
#   count NAME                       prints a number that the counting program writes now
#   dump PID IMAGES LOG [OPTION]...  dumps a program; prints CRIU's status
#   restore IMAGES LOG [OPTION]...   prints CRIU's status
#   restore-apart NAME ORIGINAL IMAGES LOG
#                                    the same, in a pid and a mount namespace that end with the
#                                    program; there, NAME takes the place of the folder ORIGINAL
#   look PID [SECONDS]               prints what the processes of this session are; SECONDS: waits so
#                                    long until there is none
#   is-running NAME                  fails, and says why, unless the program continues, with its GPU
#   faults dump|refusal|restore NAME IMAGES RESULT NUMBER:ERRNO...
#                                    faults.sh
#   hold_again NAME                  faults.sh
#   continue FOLDER                  lets the program of this folder continue; prints its result
#   end PID [IMAGES]                 ends the processes of this session; removes IMAGES and IMAGES.*
#   small IMAGES KIB                 makes IMAGES a file system of this size
#   files IMAGES                     prints the size and the name of each file
#   put IMAGES, get IMAGES           copies the folder to RUN, and from RUN
#   run COMMAND ARG...               runs the command
#   container STEP ARG...            container.sh
set -uo pipefail
# shellcheck source=scripts/guest/lib.sh
source "${BASH_SOURCE[0]%/*}/lib.sh"
# shellcheck source=scripts/guest/container.sh
source "${BASH_SOURCE[0]%/*}/container.sh"
# shellcheck source=scripts/guest/faults.sh
source "${BASH_SOURCE[0]%/*}/faults.sh"

readonly IMAGES_DIR=/run/field UNLOAD_LIMIT_S=60 KFD_LIMIT_S=60 APART_LIMIT_S=300
# For trees of large programs on a busy host, below the limit of a step.
readonly TREE_LIMIT_S=270
# Many programs start here, each with a block of process ids.
readonly PID_MAX=1000000
# A copy of CRIU and its libraries in the guest's memory, if the test has made one: to load it from the host's folders takes
# an emulated guest longer than a dump.
readonly CRIU_COPY=/run/criu-copy
run='' programs='' plugins='' criu=criu criu_libraries=''

has_gpus() {
	[[ -c /dev/kfd && $(grep -lv '^0$' "$KFD_NODES"/*/gpu_id 2>/dev/null | wc -l) == "$1" ]]
}

machine() {
	local device
	printf '%d' "$PID_MAX" >/proc/sys/kernel/pid_max
	[[ ! -e /sys/module/amdgpu ]] || unload_driver "$UNLOAD_LIMIT_S" || return 1
	for device in "${@:2}"; do
		printf '%s\n' "${device#*=}" >"/sys/bus/pci/devices/${device%%=*}/driver_override" || return 1
	done
	modprobe -d "$VASIC_MODULES" amdgpu vasic=1 && wait_for "$KFD_LIMIT_S" has_gpus "$1" && gpu_ids
}

counter() {
	(($# < 2)) || printf '%d' "$(($(<"$PROGRAMS_STARTED") - 1))" >"$PROGRAMS_STARTED"
	start_counter "$run/$1" && printf 'pending %d\n' "$demo_pid" >"$run/$1/state"
}

# The program opens the file again for each number.
count_now() {
	rm -f -- "$run/$1/count"
	wait_for "$EXIT_LIMIT_S" count_above "$run/$1" 0 && count_of "$run/$1"
}

# run_criu LOG ARG...: runs CRIU and prints its status.
run_criu() {
	local status=0
	local -a command=("$criu" "${@:2}" -L "$plugins" -v4)
	if [[ -n ${WATCH_AT-} ]]; then
		command=("$programs/fieldtest/criu_watch" "$CRIU_LOG" "$WATCH_AT" "$WATCH_RUN" "${command[@]}")
	else
		command+=(-o "$CRIU_LOG")
	fi
	: >"$CRIU_LOG"
	LD_LIBRARY_PATH=$criu_libraries AMDGPU_PLUGIN_COPY=$copy timeout --kill-after=5 "$TREE_LIMIT_S" "${command[@]}" </dev/null || status=$?
	cp -- "$CRIU_LOG" "$run/$1"
	printf 'status %d\n' "$status"
}

dump() {
	mkdir -p -- "$IMAGES_DIR/$2"
	run_criu "$3" dump -t "$1" -D "$IMAGES_DIR/$2" --link-remap "${@:4}"
}

restore() {
	run_criu "$2" restore -d -D "$IMAGES_DIR/$1" "${@:3}"
}

# The program of the image finds the files of its folder, which a mount over it provides.
restore_apart() {
	# shellcheck disable=SC2016  # expanded by the shell in the namespaces
	start_program unshare --pid --fork --kill-child --mount --mount-proc bash -c 'mount --bind "$1" "$2"
		AMDGPU_PLUGIN_COPY=$3 criu restore -d -D "$4" -L "$5" -v4 -o "$6" </dev/null
		echo $? >"$2/status"
		sleep "$7"' restore-apart "$run/$1" "$run/$2" "$copy" "$IMAGES_DIR/$3" "$plugins" "$run/$4" "$APART_LIMIT_S"
	printf 'pending %d\n' "$!" >"$run/$1/state"
	wait_for "$CRIU_LIMIT_S" test -s "$run/$1/status" && printf 'status %d\n' "$(<"$run/$1/status")"
}

look() {
	(($# < 2)) || wait_for "$2" is_ended "$1"
	"$programs/fieldtest/field_look" "$1"
}

continue_program() {
	: >"$1/go"
	result_of "$1" || { cat -- "$1/result" && tail_of "$1/log" && return 1; }
}

end_session() {
	local -a left
	pkill -KILL -s "$1"
	wait_for "$EXIT_LIMIT_S" is_ended "$1" || return 1
	# What --link-remap leaves for a restore that did not happen.
	mapfile -t left < <(compgen -G '/dev/shm/link_remap.*')
	(($# < 2)) || left+=("${IMAGES_DIR:?}/$2"{,.*})
	((${#left[@]} == 0)) || rm -rf -- "${left[@]}"
}

main() {
	(($# >= 4)) || usage_error "no step"
	run=$1 programs=$2
	plugins=$(plugin_of "$3") || exit
	shift 3
	while [[ $1 == *=* ]]; do
		export "${1?}"
		shift
	done
	[[ ! -x $CRIU_COPY/criu ]] || criu=$CRIU_COPY/criu criu_libraries=$CRIU_COPY
	copy=${AMDGPU_PLUGIN_COPY:-sdma} plugins=${PLUGIN_DIR:-$plugins}
	[[ -d $IMAGES_DIR ]] || mkdir -p -- "$IMAGES_DIR"
	cd /
	case $1 in
	undisturbed) run_undisturbed "$run/$2" "${@:3}" ;;
	machine | counter | dump | restore | look | container | faults | hold_again) "$@" ;;
	start) start_demo "$3" "$run/$2" "${@:4}" ;;
	count) count_now "$2" ;;
	restore-apart) restore_apart "${@:2}" ;;
	is-running) program_continues "$run/$2" ;;
	continue) continue_program "$2" ;;
	end) end_session "${@:2}" ;;
	small) mkdir -p -- "$IMAGES_DIR/$2" && mount -t tmpfs -o "size=${3}k" tmpfs "$IMAGES_DIR/$2" ;;
	files) find "$IMAGES_DIR/$2" -type f -printf '%s %f\n' ;;
	put) cp -r -- "$IMAGES_DIR/$2" "$run/" ;;
	get) cp -r -- "$run/$2" "$IMAGES_DIR/" ;;
	run) "${@:2}" ;;
	*) usage_error "no step '$1'" ;;
	esac
}

main "$@"
