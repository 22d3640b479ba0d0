#!/bin/bash
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
#
# usage: agent.sh DIR
#
# Runs in a guest and runs the jobs that a host process puts into the shared folder DIR (scripts/vm/jobs.py
# describes its files), one after the other, until DIR/end exists. The agent creates DIR/ready when it has begun.
# A job that is a script of this folder does not start bash anew: a copy of the agent, which has read lib.sh, reads it.
# Where the guest's processor is emulated, to start bash and to read lib.sh takes longer than most of these jobs.
set -u
# shellcheck source=scripts/guest/lib.sh
source "${BASH_SOURCE[0]%/*}/lib.sh"

readonly JOB_POLL_S=0.06
# Time in which the output must end after the job: a process that the job left behind may hold it open.
readonly OUTPUT_LIMIT_S=5
readonly jobs=$1

# start_job N: starts job N and prints three lines: the time limit with the process id, the status, and "end" when the
# output has ended.
start_job() {
	local limit cwd out relay
	local -a env argv
	# shellcheck source=/dev/null
	source "$jobs/$1.job"
	# A pipe, and not the file itself: a program that opens /dev/stdout again would empty the file.
	exec {out}> >(exec cat >"$jobs/$1.out")
	relay=$!
	# With job control, each background process leads a process group of its own.
	set -m
	(
		set +m
		cd -- "$cwd" || exit "$EXIT_INFRA"
		((${#env[@]} == 0)) || export "${env[@]}"
		run_command "${argv[@]}"
	) </dev/null >&"$out" 2>&1 {out}>&- &
	exec {out}>&-
	printf '%s %d\n' "$limit" "$!"
	wait "$!"
	printf '%d\n' "$?"
	wait "$relay"
	printf 'end\n'
}

# run_command COMMAND ARG...: this process becomes the command.
run_command() {
	if [[ $1 == "${BASH_SOURCE[0]%/*}"/*.sh ]]; then
		BASH_ARGV0=$1
		# shellcheck source=/dev/null
		source "$@"
		exit
	fi
	exec {never}>&-
	exec "$@"
}

run_job() {
	local events limit pid status _
	exec {events}< <(start_job "$1" 2>/dev/null)
	read -r -u "$events" limit pid
	if ! read -r -t "$limit" -u "$events" status; then
		kill -KILL -- "-$pid"
		read -r -t "$OUTPUT_LIMIT_S" -u "$events" _
		status=124
	fi
	read -r -t "$OUTPUT_LIMIT_S" -u "$events" _
	exec {events}<&-
	printf '%d\n' "$status" >"$jobs/$1.status"
}

take_jobs() {
	local number=0
	printf 'ready\n' >"$jobs/ready"
	while [[ ! -e $jobs/end ]]; do
		if [[ -e $jobs/$number.job ]]; then
			run_job "$number"
			number=$((number + 1))
		else
			read -r -t "$JOB_POLL_S" -u "$never" || true
		fi
	done
}

take_jobs
