# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
# shellcheck shell=bash
#
# Dumps and restores in which one system call of the plugin fails, for field.sh, which sources
# this file. Many in one step, because a step takes as long as a dump.

# On most hosts the guest's processor is emulated, and the start of a program takes a large part of the time of a dump. So
# CRIU is the only program that starts for a failure; this shell does everything else itself, without subshells.

# shellcheck disable=SC2154  # run, plugins, copy, criu and criu_libraries are variables of field.sh
readonly FAULT_RECORD=/run/fault.record FAULT_LOG=/run/fault.log FAULT_WHY=/run/fault.why
# Bit of the flags in /proc/PID/stat by which the kernel marks its own threads: PF_KTHREAD.
readonly KERNEL_THREAD=0x200000

# The files that the program's folder had when the program was dumped, by tests/test_faults.py.
readonly HELD=/run/program-held

# Processes that may exist: those that existed before CRIU ran, and threads of the kernel.
declare -A known_processes

# faults dump|refusal|restore NAME IMAGES RESULT NUMBER:ERRNO...
#   Lets each of these calls fail in a dump or a restore of its own; a refusal is a dump that must not
#   succeed. RESULT is the program's. Prints for each "fault NUMBER:ERRNO COUNT WHAT": how many calls have
#   failed, which is 0 if CRIU had ended before that call, and "failed", "survived", "refused", or "wrong"
#   and what is wrong. Then it ends, and CRIU's log is RUN/fault.log.
faults() {
	local kind=$1 name=$2 images=$IMAGES_DIR/$3 expected=$4 fault pid entry line what count
	local -a processes
	read -r _ pid <"$run/$name/state" || return "$EXIT_INFRA"
	mkdir -p -- "$images"
	mapfile -t processes < <(pgrep -s "$pid")
	for entry in /proc/[0-9]*; do
		known_processes[${entry#/proc/}]=1
	done
	for fault in "${@:5}"; do
		: >"$FAULT_RECORD"
		"fault_in_$kind"
		count=0
		while read -r line; do
			[[ $line == *' calls' ]] || count=$((count + 1))
		done <"$FAULT_RECORD"
		printf 'fault %s %d %s\n' "$fault" "$count" "$what"
		[[ $what == wrong* ]] || continue
		cp -- "$FAULT_LOG" "$run/fault.log"
		return 0
	done
}

# run_faulty NUMBER:ERRNO ARG...: runs CRIU with the plugin in which this call fails. The log is in the
# guest's memory and has errors and warnings only, because a longer one would take much of the time. Nobody
# waits for a process that CRIU leaves behind. A CRIU that does not end takes the step beyond its time limit.
run_faulty() {
	KFD_CRIU_FAIL_CALL=$1 KFD_CRIU_FAIL_RECORD=$FAULT_RECORD AMDGPU_PLUGIN_COPY=$copy LD_LIBRARY_PATH=$criu_libraries \
		"$criu" "${@:2}" -L "$plugins" -v2 -o "$FAULT_LOG" </dev/null >/dev/null 2>&1
}

# nothing_is_left: succeeds if this machine has no process but the known ones, in whatever session; else prints which it has.
# It forgets known processes that have ended, because CRIU chooses process ids, and a process that it leaves may have theirs.
nothing_is_left() {
	local entry pid stat status=0
	local -a words
	local -A known=()
	for entry in /proc/[0-9]*; do
		pid=${entry#/proc/}
		if [[ -z ${known_processes[$pid]-} ]]; then
			# The process may have ended.
			{ read -r stat <"$entry/stat"; } 2>/dev/null || continue
			# Behind the name, which may have blanks and parentheses: state, parent, group, session, terminal, its group, flags.
			read -ra words <<<"${stat##*) }"
			((words[6] & KERNEL_THREAD)) || { printf 'process %s is left; ' "${stat%)*})" && status=1 && continue; }
		fi
		known[$pid]=1
	done
	known_processes=()
	for pid in "${!known[@]}"; do
		known_processes[$pid]=1
	done
	return "$status"
}

# ends_as_expected STATUS: sets `what` to "survived" or "failed", unless a process is left.
ends_as_expected() {
	wait_for "$EXIT_LIMIT_S" nothing_is_left >/dev/null || nothing_is_left >"$FAULT_WHY" ||
		{ what="wrong: status $1, $(<"$FAULT_WHY")" && return; }
	(($1 == 0)) && what=survived || what=failed
}

# A program that cannot be brought back is refused and goes on, whatever call fails. Sets `what`.
fault_in_refusal() {
	fault_in_dump
	[[ $what != failed ]] || what=refused
}

# After a failed dump the program goes on and no image is there; a dump that succeeds in spite of the fault
# has made a good image. Sets `what`. Other variables are those of faults().
fault_in_dump() {
	local status=0
	run_faulty "$fault" dump -t "$pid" -D "$images" --link-remap || status=$?
	if ((status == 0)) && [[ $kind == refusal ]]; then
		what='wrong: CRIU succeeded with a program that cannot be brought back' && return
	elif ((status == 0)); then
		wait_for "$EXIT_LIMIT_S" is_ended "$pid" || { what='wrong: CRIU succeeded, and the program runs' && return; }
		KFD_CRIU_FAIL_CALL=0 run_criu fault.restore.log restore -d -D "$images" | grep -qx 'status 0' ||
			{ what='wrong: CRIU succeeded, and the image does not restore' && return; }
		rm -rf -- "$images" && mkdir -p -- "$images"
	elif ((status >= 124)); then
		what="wrong: CRIU ended with status $status" && return
	elif compgen -G "$images/amdgpu-manifest*.img" >/dev/null; then
		what='wrong: a failed dump left a manifest' && return
	fi
	processes_continue "$run/$name" "${processes[@]}" >"$FAULT_WHY" 2>&1 ||
		{ what=$(<"$FAULT_WHY") && what="wrong: status $status, ${what//$'\n'/; }" && return; }
	ends_as_expected "$status"
}

# hold_again NAME: an image of the program can be restored once more, and waits again: what the restored processes told each
# other by files is gone.
hold_again() {
	local file
	local -a later=()
	for file in "$run/$1"/*; do
		[[ -e $HELD/${file##*/} ]] || later+=("$file")
	done
	((${#later[@]} == 0)) || rm -f -- "${later[@]}"
}

# A failed restore leaves no process; one that succeeds in spite of the fault brings back the whole program. Sets `what`.
fault_in_restore() {
	local status=0 result
	hold_again "$name"
	run_faulty "$fault" restore -d -D "$images" || status=$?
	if ((status == 0)); then
		result=$(program_continues "$run/$name" 2>&1 && continue_program "$run/$name" 2>&1)
		[[ ${result##*$'\n'} == "$expected" ]] || { what="wrong: the result is ${result//$'\n'/; }" && return; }
	elif ((status >= 124)); then
		what="wrong: CRIU ended with status $status" && return
	fi
	ends_as_expected "$status"
}
