#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
#
# usage: field.sh RUN PROGRAMS PLUGINS [VARIABLE=VALUE]... STEP [ARG]...
#
# Runs one step of tests/test_field.py in a guest. A step does something and prints what it
# sees; the test decides whether that is good. RUN is a folder that is shared with the host;
# it has a folder for each program NAME, and the logs. PROGRAMS is the folder of the built
# parts, PLUGINS that of the plugin. IMAGES is a folder in the guest's memory. A VARIABLE is
# set for the program or for CRIU.
#   machine SLOT,...                 amdgpu drives only the GPUs in these PCI slots (decimal)
#   gpus                             prints the gpu_id of each GPU
#   undisturbed NAME PROGRAM ARG...  runs the program to its end and prints its result
#   start NAME PROGRAM ARG...        starts it and waits until it can be dumped
#   counter NAME [AGAIN]             starts a program without a GPU, which counts; AGAIN: with
#                                    the process id of the program before it
#   count NAME                       prints a number that the counting program writes now
#   dump NAME IMAGES LOG [OPTION]... dumps it; prints CRIU's status
#   watched-dump NAME IMAGES LOG WHERE COMMAND [OPTION]...
#                                    the same; criu_watch runs COMMAND when CRIU is at WHERE
#   restore IMAGES LOG [OPTION]...   prints CRIU's status
#   restore-apart NAME ORIGINAL IMAGES LOG
#                                    the same, in a pid and a mount namespace that end with
#                                    `end NAME`; there, NAME takes the place of the folder ORIGINAL
#   look NAME                        prints what the processes of the program are
#   continue NAME                    lets the program continue; prints its result
#   end NAME                         ends the processes of the program
#   small IMAGES KIB                 makes IMAGES a file system of this size
#   files IMAGES                     prints the size and the name of each file
#   put IMAGES, get IMAGES           copies the folder to RUN, and from RUN
#   run COMMAND ARG...               runs the command
#   container STEP ARG...            container.sh
set -uo pipefail
# shellcheck source=scripts/guest/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=scripts/guest/container.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/container.sh"

readonly IMAGES_DIR=/run/field UNLOAD_LIMIT_S=60 KFD_LIMIT_S=60 APART_LIMIT_S=300
# Many programs start here, each with a block of process ids.
readonly PID_MAX=1000000
# The virtual GPU's vendor and device.
readonly VASIC_ID=0x1af4:0x1110
run='' programs='' plugins=''

# pid_of NAME: prints the process id from the file for which start_demo() has waited.
pid_of() {
	local pid
	read -r _ pid <"$run/$1/state" || die "-$EXIT_INFRA" "no program was started in $run/$1"
	printf '%d' "$pid"
}

# tree_of PID: prints the process ids of the process and of all its descendants that exist.
tree_of() {
	local child
	local -a children
	[[ -e /proc/$1 ]] || return 0
	printf '%d\n' "$1"
	read -r -d '' -a children < <(cat "/proc/$1/task"/*/children 2>/dev/null)
	for child in "${children[@]}"; do
		tree_of "$child"
	done
}

slot_of() {
	local device=${1##*:}
	printf '%d' "$((16#${device%.*}))"
}

has_gpus() {
	[[ -c /dev/kfd && $(grep -lv '^0$' "$KFD_NODES"/*/gpu_id 2>/dev/null | wc -l) == "$1" ]]
}

# The driver is loaded anew; driver_override keeps the other GPUs from it.
machine() {
	local device count=0 slots=,$1,
	printf '%d' "$PID_MAX" >/proc/sys/kernel/pid_max
	if [[ -e /sys/module/amdgpu ]]; then
		unload_driver "$UNLOAD_LIMIT_S" || return 1
	fi
	for device in /sys/bus/pci/devices/*; do
		[[ $(<"$device/vendor"):$(<"$device/device") == "$VASIC_ID" ]] || continue
		if [[ $slots == *,$(slot_of "$device"),* ]]; then
			printf '\n' >"$device/driver_override"
			count=$((count + 1))
		else
			printf 'none' >"$device/driver_override"
		fi
	done
	modprobe -d "$VASIC_MODULES" amdgpu vasic=1 && wait_for "$KFD_LIMIT_S" has_gpus "$count" || return 1
	gpu_ids
}

undisturbed() {
	local dir=$run/$1
	rm -rf -- "$dir" && mkdir -p -- "$dir"
	"$2" --dir "$dir" "${@:3}" --undisturbed >/dev/null || { tail_of "$dir/log" && return 1; }
	result_of "$dir"
}

counter() {
	local started
	if (($# > 1)); then
		started=$(<"$PROGRAMS_STARTED") && printf '%d' "$((started - 1))" >"$PROGRAMS_STARTED"
	fi
	start_counter "$run/$1" && printf 'pending %d\n' "$demo_pid" >"$run/$1/state" && pid_of "$1"
}

# count_now NAME: the program opens the file again for each number.
count_now() {
	rm -f -- "$run/$1/count"
	wait_for "$EXIT_LIMIT_S" count_above "$run/$1" 0 && count_of "$run/$1"
}

# report STATUS NAME: prints CRIU's status, and whether the program exists.
report() {
	printf 'status %d\n' "$1"
	if is_running "$(pid_of "$2")"; then
		echo 'program runs'
	fi
}

dump() {
	local status=0
	criu_dump "$(pid_of "$1")" "$IMAGES_DIR/$2" "$plugins" "$run/$3" "${@:4}" || status=$?
	((status != 0)) || wait_for "$EXIT_LIMIT_S" is_gone "$(pid_of "$1")" || true
	report "$status" "$1"
}

watched_dump() {
	local status=0 images=$IMAGES_DIR/$2
	mkdir -p -- "$images"
	AMDGPU_PLUGIN_COPY=$copy timeout --kill-after=5 "$CRIU_LIMIT_S" "$programs/fieldtest/criu_watch" "$run/$3" "$4" "$5" \
		criu dump -t "$(pid_of "$1")" -D "$images" -L "$plugins" --link-remap -v4 "${@:6}" || status=$?
	report "$status" "$1"
}

restore() {
	local status=0
	AMDGPU_PLUGIN_COPY=$copy timeout --kill-after=5 "$CRIU_LIMIT_S" \
		criu restore -d -D "$IMAGES_DIR/$1" -L "$plugins" -v4 -o "$run/$2" "${@:3}" </dev/null || status=$?
	printf 'status %d\n' "$status"
}

# The program of the image finds the files of its folder, which a mount over it provides.
restore_apart() {
	local name=$1 original=$2 images=$3 log=$4
	rm -rf -- "${run:?}/$name" && cp -r -- "$run/$original" "$run/$name" && rm -f -- "$run/$name"/{go,result,status}
	# shellcheck disable=SC2016  # expanded by the shell in the namespaces
	unshare --pid --fork --kill-child --mount --mount-proc bash -c 'mount --bind "$1" "$2"
		AMDGPU_PLUGIN_COPY=$3 criu restore -d -D "$4" -L "$5" -v4 -o "$6" </dev/null
		echo $? >"$2/status"
		sleep "$7"' restore-apart "$run/$name" "$run/$original" "$copy" "$IMAGES_DIR/$images" "$plugins" "$run/$log" \
		"$APART_LIMIT_S" </dev/null >/dev/null 2>&1 &
	printf 'pending %d\n' "$!" >"$run/$name/state"
	disown
	wait_for "$CRIU_LIMIT_S" test -s "$run/$name/status" || return 1
	printf 'status %d\n' "$(<"$run/$name/status")"
}

look() {
	local pid kfd
	for pid in $(tree_of "$(pid_of "$1")"); do
		kfd=/sys/class/kfd/kfd/proc/$pid
		printf 'process %d\n' "$pid"
		grep -E '^(State|TracerPid):' "/proc/$pid/status"
		grep -h '^State:' "/proc/$pid/task"/*/status | sed 's/^/thread /'
		ls -l --time-style=+ "/proc/$pid/fd"
		grep -H '^flags:' "/proc/$pid/fdinfo"/*
		printf 'mappings %d\n' "$(grep -c ' /dev/' "/proc/$pid/maps")"
		if [[ -d $kfd ]]; then
			grep -H . "$kfd"/vram_*
			printf 'queues %d\n' "$(find "$kfd/queues" -mindepth 1 -maxdepth 1 | wc -l)"
		fi
	done
}

continue_program() {
	: >"$run/$1/go"
	result_of "$run/$1" || { cat -- "$run/$1/result" && tail_of "$run/$1/log" && return 1; }
}

end_program() {
	local pid pids
	pids=$(tree_of "$(pid_of "$1")")
	for pid in $pids; do
		kill -KILL "$pid" 2>/dev/null
	done
	for pid in $pids; do
		wait_for "$EXIT_LIMIT_S" is_gone "$pid" || return 1
	done
	# What --link-remap leaves for a restore that did not happen.
	rm -f -- /dev/shm/link_remap.*
}

main() {
	local step
	(($# >= 4)) || usage_error "no step"
	run=$1 programs=$2
	plugins=$(plugin_of "$3") || exit
	shift 3
	while [[ $1 == *=* ]]; do
		export "${1?}"
		shift
	done
	copy=${AMDGPU_PLUGIN_COPY:-sdma} step=$1
	shift
	mkdir -p -- "$IMAGES_DIR"
	cd /
	case $step in
	machine) machine "$1" ;;
	gpus) gpu_ids ;;
	undisturbed) undisturbed "$@" ;;
	start) start_demo "$2" "$run/$1" "${@:3}" ;;
	counter) counter "$@" ;;
	count) count_now "$1" ;;
	dump) dump "$@" ;;
	watched-dump) watched_dump "$@" ;;
	restore) restore "$@" ;;
	restore-apart) restore_apart "$@" ;;
	look) look "$1" ;;
	continue) continue_program "$1" ;;
	end) end_program "$1" ;;
	small) mkdir -p -- "$IMAGES_DIR/$1" && mount -t tmpfs -o "size=${2}k" tmpfs "$IMAGES_DIR/$1" ;;
	files) find "$IMAGES_DIR/$1" -type f -printf '%s %f\n' ;;
	put) rm -rf -- "${run:?}/$1" && cp -r -- "$IMAGES_DIR/$1" "$run/$1" ;;
	get) rm -rf -- "${IMAGES_DIR:?}/$1" && cp -r -- "$run/$1" "$IMAGES_DIR/$1" ;;
	run) "$@" ;;
	container) container "$@" ;;
	*) usage_error "no step '$step'" ;;
	esac
}

main "$@"
