#!/bin/bash
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
#
# usage: agent.sh DIR
#
# Runs in a guest and runs the jobs that a host process puts into the shared folder DIR (scripts/vm/jobs.py
# describes its files), one after the other, until DIR/end exists. The agent creates DIR/ready when it has begun.
set -u

readonly POLL_S=0.06
# Time in which the output must end after the job: a process that the job left behind may hold it open.
readonly END_LIMIT_S=5
readonly dir=$1

# start_job N: starts job N and prints three lines: the time limit with the process id, the status, and "end" when the
# output has ended.
start_job() {
	local limit cwd out relay
	local -a env argv
	# shellcheck source=/dev/null
	source "$dir/$1.job"
	# A pipe, and not the file itself: a program that opens /dev/stdout again would empty the file.
	exec {out}> >(exec cat >"$dir/$1.out")
	relay=$!
	# With job control, each background process leads a process group of its own.
	set -m
	(
		cd -- "$cwd" || exit 125
		((${#env[@]} == 0)) || export "${env[@]}"
		exec "${argv[@]}"
	) </dev/null >&"$out" 2>&1 {out}>&- {never}>&- &
	exec {out}>&-
	printf '%s %d\n' "$limit" "$!"
	wait "$!"
	printf '%d\n' "$?"
	wait "$relay"
	printf 'end\n'
}

run_job() {
	local events limit pid status _
	exec {events}< <(start_job "$1" 2>/dev/null)
	read -r -u "$events" limit pid
	if ! read -r -t "$limit" -u "$events" status; then
		kill -KILL -- "-$pid"
		read -r -t "$END_LIMIT_S" -u "$events" _
		status=124
	fi
	read -r -t "$END_LIMIT_S" -u "$events" _
	exec {events}<&-
	printf '%d\n' "$status" >"$dir/$1.status"
}

main() {
	local number=0
	# No data ever arrives in this pipe, so a read with a time limit waits without starting a process.
	exec {never}<> <(:)
	printf 'ready\n' >"$dir/ready"
	while [[ ! -e $dir/end ]]; do
		if [[ -e $dir/$number.job ]]; then
			run_job "$number"
			number=$((number + 1))
		else
			read -r -t "$POLL_S" -u "$never" || true
		fi
	done
}

main
