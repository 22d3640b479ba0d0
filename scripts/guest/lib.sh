# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
# shellcheck shell=bash
#
# Code that the scripts inside a guest share: starting programs so that CRIU
# can dump and restore them, calling CRIU, waiting. Sourced, never run.
# A program to be dumped has no terminal, a session of its own, no open files but
# /dev/null, and a process id that is still free in a machine that just booted.

# Whoever has read this file, as agent.sh has, does not read it again.
[[ -z ${HAS_GUEST_LIB-} ]] || return 0
readonly HAS_GUEST_LIB=1
# shellcheck source=scripts/lib.sh
source "${BASH_SOURCE[0]%/*}/../lib.sh"

# Process ids above those of a booting guest; each further program gets another block.
readonly FIRST_PID=20000 PID_STEP=1000
readonly PENDING_LIMIT_S=120 EXIT_LIMIT_S=30 RESULT_LIMIT_S=60 BEAT_LIMIT_S=30 LOG_TAIL=40
# How long wait_for() waits between two looks.
readonly POLL_S=0.02
# A script whose program takes CRIU longer sets another limit.
CRIU_LIMIT_S=120
readonly KFD_NODES=/sys/class/kfd/kfd/topology/nodes
# File with the number of programs that this and earlier processes have started in this machine.
readonly PROGRAMS_STARTED=/run/programs-started

# The process id of the program that start_demo() or start_counter() started last.
demo_pid=''

# Makes the settings that CRIU needs in addition to those of guest-init.sh.
prepare_guest() {
	ip link set lo up
	cd /
}

now_s() {
	local up _
	read -r up _ </proc/uptime
	printf '%s' "$up"
}

# phase TEXT...: prints one line for people, with the guest's time.
phase() {
	printf '  [guest %7s s] %s\n' "$(now_s)" "$*"
}

# No data ever arrives in this pipe, so a read with a time limit waits without starting a process.
exec {never}<> <(:)

# wait_for SECONDS COMMAND...: repeats the command until it succeeds; fails if that takes
# longer than SECONDS.
wait_for() {
	local end=$((SECONDS + $1))
	shift
	until "$@"; do
		((SECONDS < end)) || return 1
		read -r -t "$POLL_S" -u "$never" || true
	done
}

# unload_driver SECONDS: tries until the time limit to unload amdgpu, because amdkfd keeps a
# process's render node open until a worker has cleaned up, which may be after the process
# has ended.
unload_driver() {
	wait_for "$1" timeout "$1" modprobe -d "$VASIC_MODULES" -r amdgpu 2>/tmp/unload.log ||
		{ tail -n 1 /tmp/unload.log >&2 && return 1; }
	[[ ! -e /sys/module/amdgpu ]]
}

# gpu_ids: prints the gpu_ids of this machine, one a line, with properties that identify the GPU.
gpu_ids() {
	local node id bank vram
	for node in "$KFD_NODES"/*; do
		id=$(<"$node/gpu_id")
		[[ $id != 0 ]] || continue
		vram=0
		for bank in "$node"/mem_banks/*/properties; do
			vram=$((vram + $(awk '$1 == "size_in_bytes" { print $2 }' "$bank")))
		done
		printf 'gpu_id %s: node %s, %d MiB VRAM, PCI location %s\n' "$id" "${node##*/}" "$((vram >> 20))" \
			"$(awk '$1 == "location_id" { print $2 }' "$node/properties")"
	done
}

# start_program COMMAND...: starts the command in the background so that CRIU can dump it;
# closes the files that its children inherit from the guest's init.
start_program() {
	local fd started=0
	[[ ! -e $PROGRAMS_STARTED ]] || started=$(<"$PROGRAMS_STARTED")
	printf '%d' "$((FIRST_PID + PID_STEP * started))" >/proc/sys/kernel/ns_last_pid
	printf '%d' "$((started + 1))" >"$PROGRAMS_STARTED"
	(
		for fd in /proc/self/fd/*; do
			fd=${fd##*/}
			if ((fd > 2)); then
				exec {fd}>&-
			fi
		done
		exec setsid "$@"
	) </dev/null >/dev/null 2>&1 &
	disown # the shell must not print a message when the dump ends the program
}

# start_demo PROGRAM DIR ARG...: starts the program, waits until its packets are pending, and
# sets demo_pid. $UNDER is a command that runs the program, such as "unshare --uts".
start_demo() {
	local program=$1 dir=$2 state
	local -a under
	shift 2
	read -ra under <<<"${UNDER-}"
	rm -rf -- "$dir" && mkdir -p -- "$dir"
	start_program "${under[@]}" "$program" --dir "$dir" "$@"
	wait_for "$PENDING_LIMIT_S" test -s "$dir/state" || { tail_of "$dir/log" && return 1; }
	read -r state demo_pid <"$dir/state"
	[[ $state == pending ]] || { tail_of "$dir/log" && return 1; }
}

# start_counter DIR: starts a program that uses no GPU and counts into DIR/count; sets
# demo_pid.
start_counter() {
	rm -rf -- "$1" && mkdir -p -- "$1"
	# The loop starts no other program, because CRIU cannot restore every program that is
	# dumped while the dynamic linker loads it. It writes over the number without emptying the
	# file, because CRIU may stop the program between the two.
	# shellcheck disable=SC2016  # expanded by the program
	start_program bash -c 'while :; do
		for ((i = 0; i < 20000; i++)); do :; done
		n=$((n + 1)) && echo "$n" 1<>"$0/count"
	done' "$1"
	demo_pid=$!
	wait_for "$PENDING_LIMIT_S" count_above "$1" 2
}

# count_of DIR: prints the number in DIR/count; fails if there is none.
count_of() {
	local count=''
	read -r count 2>/dev/null <"$1/count" || true
	[[ $count =~ ^[0-9]+$ ]] && printf '%s' "$count"
}

# count_above DIR N: succeeds if DIR/count is greater than N.
count_above() {
	local count
	count=$(count_of "$1") && ((count > $2))
}

# run_undisturbed DIR PROGRAM ARG...: runs the program to its end in a new folder and prints the checksum.
run_undisturbed() {
	rm -rf -- "$1" && mkdir -p -- "$1"
	"$2" --dir "$1" "${@:3}" --undisturbed >/dev/null || { tail_of "$1/log" && return 1; }
	result_of "$1"
}

# result_of DIR: waits for the program's result and prints the checksum.
result_of() {
	local word='' value=''
	wait_for "$RESULT_LIMIT_S" test -s "$1/result" || return 1
	read -r word value <"$1/result"
	[[ $word == RESULT && $value =~ ^[0-9a-f]{16}$ ]] || return 1
	printf '%s' "$value"
}

# CRIU's log while it runs, in the guest's memory, from where it is copied: CRIU writes single lines, and each write into a
# folder of the host is a message to the host.
readonly CRIU_LOG=/run/criu.log

# How the plugin copies contents, sdma or cpu. The plugin fails if it cannot copy in this way;
# it does not fall back to the other one.
copy=sdma

# criu_dump PID IMAGES PLUGINS LOG [OPTION...]: dumps the process. --link-remap because
# libhsakmt maps a semaphore whose first name, a temporary one, no longer exists.
criu_dump() {
	mkdir -p -- "$2"
	run_logged "$4" criu dump -t "$1" -D "$2" -L "$3" --link-remap -v4 "${@:5}"
}

# run_logged LOG COMMAND...: runs this command of CRIU's with a time limit; its log becomes LOG.
run_logged() {
	local status=0
	: >"$CRIU_LOG"
	AMDGPU_PLUGIN_COPY=$copy timeout --kill-after=5 "$CRIU_LIMIT_S" "${@:2}" -o "$CRIU_LOG" </dev/null || status=$?
	cp -- "$CRIU_LOG" "$1"
	return "$status"
}

# dump_and_keep PID IMAGES PLUGINS LOG, restore_kept IMAGES PLUGINS LOG: dump to and restore
# from a folder of the guest, and copy the images from and to the host as a whole. CRIU
# reads and writes single pages, which is slow in a folder that is shared with the host.
dump_and_keep() {
	local local_images=/run/images.$1
	criu_dump "$1" "$local_images" "$3" "$4" || return 1
	rm -rf -- "$2"
	cp -r -- "$local_images" "$2" && rm -rf -- "$local_images"
}

restore_kept() {
	local local_images=/run/${1##*/}.kept status=0
	cp -r -- "$1" "$local_images" || return 1
	criu_restore "$local_images" "$2" "$3" || status=$?
	rm -rf -- "$local_images"
	return "$status"
}

# criu_restore IMAGES PLUGINS LOG: restores the process.
criu_restore() {
	run_logged "$3" criu restore -d -D "$1" -L "$2" -v4
}

# plugin_of DIR: prints a folder that has only the plugin, because CRIU loads every *.so in
# its folder of plugins.
plugin_of() {
	[[ -r $1/amdgpu_plugin.so ]] || die -"$EXIT_INFRA" "no plugin in $1"
	[[ -d /run/plugins ]] || { mkdir /run/plugins && cp -- "$1/amdgpu_plugin.so" /run/plugins/; }
	printf '/run/plugins'
}

# counter_survives DIR PLUGINS: dumps a counting program, then restores it in this machine;
# the first number that it writes afterwards must be greater than one from before the dump.
counter_survives() {
	local dir=$1 plugins=$2 before after
	start_counter "$dir" || return 1
	before=$(count_of "$dir") || return 1
	dump_and_keep "$demo_pid" "$dir/images" "$plugins" "$dir/dump.log" || { tail_of "$dir/dump.log" && return 1; }
	wait_for "$EXIT_LIMIT_S" is_gone "$demo_pid" || return 1
	restore_kept "$dir/images" "$plugins" "$dir/restore.log" || { tail_of "$dir/restore.log" && return 1; }
	rm -f -- "$dir/count" # the program opens the file again for each number
	wait_for "$RESULT_LIMIT_S" count_above "$dir" 0 || { tail_of "$dir/restore.log" && return 1; }
	after=$(count_of "$dir") && kill "$demo_pid" && ((after > before))
}

tail_of() {
	printf '%s\n' "--- last lines of $1" >&2
	tail -n "$LOG_TAIL" -- "$1" >&2 || true
}

# program_continues DIR: succeeds if the program of this folder continues: its processes exist, none is stopped, and its GPU
# does what the program asks it for now. A paused GPU would not. Else it says what is wrong. Programs of which this
# cannot be asked have no DIR/beats.
program_continues() {
	local pid
	local -a processes
	read -r _ pid <"$1/state" || return "$EXIT_INFRA"
	mapfile -t processes < <(pgrep -s "$pid")
	((${#processes[@]})) || { printf 'the program has ended\n' && return 1; }
	processes_continue "$1" "${processes[@]}"
}

# processes_continue DIR PID...: program_continues() of a program whose processes the caller knows. It starts no process,
# which would take longer than all that it does.
processes_continue() {
	local process thread text
	for process in "${@:2}"; do
		[[ -d /proc/$process ]] || { printf 'process %d has ended\n' "$process" && return 1; }
		for thread in "/proc/$process/task"/*/status; do
			text=''
			# A thread may have ended. The status has no zero byte, so read says that the file has ended.
			{ read -r -d '' text <"$thread"; } 2>/dev/null || true
			[[ $text =~ $'\n'(State:[[:space:]]+[tTZX]|TracerPid:[[:space:]]+[1-9]) ]] || continue
			printf 'a thread of process %d is stopped: %s\n' "$process" "${BASH_REMATCH[1]}" && return 1
		done
	done
	[[ -e $1/beats ]] || return 0
	: >"$1/beats" && : >"$1/beat"
	wait_for "$BEAT_LIMIT_S" test -s "$1/beats" && return 0
	rm -f -- "$1/beat"
	printf 'the program runs, and its GPU does nothing\n'
	tail_of "$1/log"
	return 1
}

# is_ended SESSION: succeeds if the session has no process.
is_ended() {
	! pgrep -s "$1" >/dev/null
}

is_running() {
	kill -0 "$1" 2>/dev/null
}

is_gone() {
	! is_running "$1"
}
