# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
# shellcheck shell=bash
#
# Dumps and restores in which one system call of the plugin fails, for field.sh, which sources
# this file. Many in one step, because a step takes as long as a dump.

# shellcheck disable=SC2154  # run, plugins and copy are variables of field.sh
readonly FAULT_RECORD=/run/fault.record FAULT_LOG=/run/fault.log

# faults dump|restore NAME IMAGES RESULT NUMBER:ERRNO...
#   Lets each of these calls fail in a dump or a restore of its own. RESULT is the program's. Prints for
#   each "fault NUMBER:ERRNO COUNT WHAT": how many calls have failed, which is 0 if CRIU had ended before
#   that call, and "failed", "survived", or "wrong" and what is wrong. Then it ends, and CRIU's log is
#   RUN/fault.log.
faults() {
	local kind=$1 name=$2 images=$IMAGES_DIR/$3 expected=$4 fault what pid
	read -r _ pid <"$run/$name/state" || return "$EXIT_INFRA"
	mkdir -p -- "$images"
	for fault in "${@:5}"; do
		what=$("fault_in_$kind")
		printf 'fault %s %d %s\n' "$fault" "$(grep -vc ' calls$' "$FAULT_RECORD")" "$what"
		[[ $what == wrong* ]] || continue
		cp -- "$FAULT_LOG" "$run/fault.log"
		return 0
	done
}

# run_faulty NUMBER:ERRNO ARG...: runs CRIU with the plugin in which this call fails. The log is in the
# guest's memory and has errors and warnings only, because a longer one would take much of the time. Nobody
# waits for a process that CRIU leaves behind.
run_faulty() {
	KFD_CRIU_FAIL_CALL=$1 KFD_CRIU_FAIL_RECORD=$FAULT_RECORD AMDGPU_PLUGIN_COPY=$copy \
		timeout --kill-after=5 "$TREE_LIMIT_S" criu "${@:2}" -L "$plugins" -v2 -o "$FAULT_LOG" </dev/null >/dev/null 2>&1
}

# After a failed dump the program goes on and no image is there; a dump that succeeds in spite of the fault
# has made a good image. Variables of faults().
fault_in_dump() {
	local status=0 why
	: >"$FAULT_RECORD"
	run_faulty "$fault" dump -t "$pid" -D "$images" --link-remap || status=$?
	if ((status == 0)); then
		wait_for "$EXIT_LIMIT_S" is_ended "$pid" || { printf 'wrong: CRIU succeeded, and the program runs' && return; }
		KFD_CRIU_FAIL_CALL=0 run_criu fault.restore.log restore -d -D "$images" | grep -qx 'status 0' ||
			{ printf 'wrong: CRIU succeeded, and the image does not restore' && return; }
		rm -rf -- "$images" && mkdir -p -- "$images"
	elif ((status >= 124)); then
		printf 'wrong: CRIU ended with status %d' "$status" && return
	elif compgen -G "$images/amdgpu-manifest*.img" >/dev/null; then
		printf 'wrong: a failed dump left a manifest' && return
	fi
	why=$(program_goes_on "$run/$name" 2>&1) || { printf 'wrong: status %d, %s' "$status" "${why//$'\n'/; }" && return; }
	((status == 0)) && printf 'survived' || printf 'failed'
}

# A failed restore leaves no process; one that succeeds in spite of the fault brings back the whole program.
fault_in_restore() {
	local status=0 result
	: >"$FAULT_RECORD"
	rm -f -- "$run/$name/go" "$run/$name/result"
	run_faulty "$fault" restore -d -D "$images" || status=$?
	if ((status == 0)); then
		result=$(program_goes_on "$run/$name" 2>&1 && continue_program "$run/$name" 2>&1)
		[[ ${result##*$'\n'} == "$expected" ]] || { printf 'wrong: the result is %s' "${result//$'\n'/; }" && return; }
	elif ((status >= 124)); then
		printf 'wrong: CRIU ended with status %d' "$status" && return
	fi
	wait_for "$EXIT_LIMIT_S" is_ended "$pid" || { printf 'wrong: status %d, and a process is left' "$status" && return; }
	((status == 0)) && printf 'survived' || printf 'failed'
}
