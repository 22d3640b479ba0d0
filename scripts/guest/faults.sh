#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
#
# usage: faults.sh RUN PLUGINS STEP [ARG]...
#
# Runs one step of tests/test_faults.py in a guest; its status is the result. RUN is a folder
# that is shared with the host and gets the logs; PLUGINS is the folder of the built plugins.
# The plugin of these dumps and restores is the one in which a chosen system call fails
# (userspace/base/os_failing.h).
#   start PROGRAM ARG...     runs the program once undisturbed, then starts it for the other steps
#   count                    dumps and restores it without a fault, and counts the calls of both
#   dump SECONDS             dumps again and again, each time with another failing call: it runs
#                            on after each failure, and there is no manifest
#   restore SECONDS          dumps, then restores again and again with another failing call: each
#                            restore fails and leaves no process, or the program has its result
#   finish                   restores once more; the program has the undisturbed result
set -uo pipefail
# shellcheck source=scripts/guest/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

readonly WORK=/run/faults PROGRAM_DIR=/run/faults/program IMAGES=/run/faults/images
readonly RECORD=/run/faults/record ERRNOS=(5 28 12 4 24)
run='' plugins='' good_plugins=''

program_pid() {
	local pid
	read -r _ pid <"$PROGRAM_DIR/state" || die "-$EXIT_INFRA" "no program was started"
	printf '%d' "$pid"
}

start() {
	mkdir -p -- "$WORK/reference"
	"$1" --dir "$WORK/reference" "${@:2}" --undisturbed >/dev/null || { tail_of "$WORK/reference/log" && return 1; }
	result_of "$WORK/reference" >"$WORK/expected" || return 1
	start_demo "$1" "$PROGRAM_DIR" "${@:2}"
}

# calls_of: prints how many calls the last run of CRIU made in the plugin.
calls_of() {
	awk '$2 == "calls" { print $1 }' "$RECORD" | tail -n 1
}

# injected: prints the failure of the last run, as "N ERRNO CALL"; fails if there was none.
injected() {
	grep -v ' calls$' "$RECORD"
}

# failing_dump N:ERRNO, failing_restore N:ERRNO: run CRIU once. 0 lets no call fail.
failing_dump() {
	rm -rf -- "$IMAGES" "$RECORD"
	: >"$RECORD"
	KFD_CRIU_FAIL_CALL=$1 KFD_CRIU_FAIL_RECORD=$RECORD \
		criu_dump "$(program_pid)" "$IMAGES" "$plugins" "$WORK/dump.log" >/dev/null 2>&1
}

failing_restore() {
	: >"$RECORD"
	KFD_CRIU_FAIL_CALL=$1 KFD_CRIU_FAIL_RECORD=$RECORD \
		criu_restore "$IMAGES" "$plugins" "$WORK/restore.log" >/dev/null 2>&1
}

good_restore() {
	criu_restore "$IMAGES" "$good_plugins" "$WORK/good.restore.log" >/dev/null ||
		{ tail_of "$WORK/good.restore.log" && return 1; }
}

# blame TEXT LOG: says what is wrong, with the fault that caused it, and keeps the log.
blame() {
	printf '%s after the failure: %s\n' "$1" "$(injected)"
	cp -- "$2" "$run/"
	tail_of "$2"
	return 1
}

count() {
	failing_dump 0 || { tail_of "$WORK/dump.log" && return 1; }
	calls_of >"$WORK/dump.calls"
	wait_for "$EXIT_LIMIT_S" is_gone "$(program_pid)" || return 1
	failing_restore 0 || { tail_of "$WORK/restore.log" && return 1; }
	calls_of >"$WORK/restore.calls"
	printf 'a dump makes %d calls, a restore %d\n' "$(<"$WORK/dump.calls")" "$(<"$WORK/restore.calls")"
	is_running "$(program_pid)"
}

# Every dump that fails must leave the program running. One that succeeds in spite of the fault
# must have an image that restores.
one_dump() {
	if failing_dump "$1"; then
		wait_for "$EXIT_LIMIT_S" is_gone "$(program_pid)" || { blame "CRIU succeeded and the program runs" "$WORK/dump.log" || return; }
		survived=$((survived + 1))
		good_restore || blame "the image does not restore" "$WORK/dump.log" || return
	elif compgen -G "$IMAGES/amdgpu-manifest*.img" >/dev/null; then
		blame "a failed dump left a manifest" "$WORK/dump.log" || return
	fi
	is_running "$(program_pid)" || blame "the program does not run" "$WORK/dump.log"
}

# Every restore fails and leaves no process, or the program computes its result.
one_restore() {
	if failing_restore "$1"; then
		survived=$((survived + 1))
		: >"$PROGRAM_DIR/go"
		[[ $(result_of "$PROGRAM_DIR") == "$(<"$WORK/expected")" ]] ||
			blame "the restored program has another result or none" "$WORK/restore.log" || return
		rm -f -- "$PROGRAM_DIR/go" "$PROGRAM_DIR/result"
	fi
	wait_for "$EXIT_LIMIT_S" is_gone "$(program_pid)" || blame "a process is left" "$WORK/restore.log"
}

# sweep ONE CALLS SECONDS: ONE with failures that are spread over all CALLS, as many as there is
# time for. Each pass takes the odd multiples of half the step of the pass before it, so that no
# call fails twice, and every call fails once if there is time. Stops at the third mistake.
sweep() {
	local one=$1 calls=$2 end=$((SECONDS + $3)) step=1 number injected=0 bad=0
	survived=0
	while ((step <= calls)); do
		step=$((2 * step))
	done
	while ((step > 1)); do
		step=$((step / 2))
		for ((number = step; number <= calls && SECONDS < end && bad < 3; number += 2 * step)); do
			"$one" "$number:${ERRNOS[injected % ${#ERRNOS[@]}]}" || bad=$((bad + 1))
			! injected >/dev/null || injected=$((injected + 1))
		done
	done
	printf '%d injected failures of %d calls, %d of them survived, %d wrong\n' "$injected" "$calls" "$survived" "$bad"
	((bad == 0 && injected > 0))
}

sweep_restores() {
	failing_dump 0 || { tail_of "$WORK/dump.log" && return 1; }
	wait_for "$EXIT_LIMIT_S" is_gone "$(program_pid)" || return 1
	sweep one_restore "$(<"$WORK/restore.calls")" "$1"
}

finish() {
	good_restore || return 1
	: >"$PROGRAM_DIR/go"
	[[ $(result_of "$PROGRAM_DIR") == "$(<"$WORK/expected")" ]]
}

main() {
	local step=${3-}
	(($# >= 3)) || usage_error "no step"
	run=$1
	good_plugins=$(plugin_of "$2") || exit
	plugins=/run/plugins-failing
	[[ -d $plugins ]] || { mkdir "$plugins" && cp -- "$2/amdgpu_plugin_failing.so" "$plugins/"; } ||
		die "-$EXIT_INFRA" "no plugin in which calls fail in $2"
	shift 3
	cd /
	case $step in
	start) start "$@" ;;
	count) count ;;
	dump) sweep one_dump "$(<"$WORK/dump.calls")" "$1" ;;
	restore) sweep_restores "$1" ;;
	finish) finish ;;
	*) usage_error "no step '$step'" ;;
	esac
}

main "$@"
