# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
# shellcheck shell=bash
#
# Code that every script shares: exit statuses, messages, the output folder, the end of
# processes, locks. Sourced, never run:
#   source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# Owns no policy: nothing here knows of kernels, virtual machines or tests.
# Messages go to standard error; standard output belongs to KTAP and to values.

# Exit statuses of every script; 0 and 1 are those of kselftest.
# shellcheck disable=SC2034  # used by the scripts that source this file
readonly EXIT_PASS=0 EXIT_FAIL=1 EXIT_USAGE=64 EXIT_TIMEOUT=124 EXIT_INFRA=125

# Time in which a tree of processes must end by itself: more than a virtual machine needs.
readonly END_LIMIT_S=15

# log MESSAGE...: one line of progress.
log() {
	printf '%s: %s\n' "${0##*/}" "$*" >&2
}

# die [-STATUS] MESSAGE...: one line, then exit; the default status is 1.
#   die -"$EXIT_INFRA" "no disk space"
die() {
	local status=$EXIT_FAIL
	if [[ ${1-} =~ ^-([0-9]+)$ ]]; then
		status=${BASH_REMATCH[1]}
		shift
	fi
	printf '%s: error: %s\n' "${0##*/}" "$*" >&2
	exit "$status"
}

# usage_error MESSAGE...: the caller asked for something that does not exist.
usage_error() {
	die "-$EXIT_USAGE" "$* (try: ${0##*/} -h)"
}

# need CMD PACKAGE: stop as an infrastructure failure unless CMD can be run.
need() {
	command -v "$1" >/dev/null 2>&1 ||
		die "-$EXIT_INFRA" "'$1' is missing (Debian package '$2'): run scripts/setup.sh"
}

# has_ccache: succeeds if compilers are to run through ccache: where it is installed. Stops if $CCACHE_DIR says where it
# keeps objects and it is not there.
has_ccache() {
	[[ -z ${CCACHE_DIR-} ]] || need ccache ccache
	command -v ccache >/dev/null 2>&1
}

# repo_root: prints the absolute path of this project.
repo_root() {
	(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd -P)
}

# out_dir: prints the folder for all generated files: $OUT_DIR, else out/ in the project.
out_dir() {
	local dir=${OUT_DIR:-$(repo_root)/out}
	mkdir -p -- "$dir" && (cd -- "$dir" && pwd -P)
}

# end_tree PID: ends the child and all its descendants, and waits until they have ended, so
# that vm.sh can clean up.
end_tree() {
	local pid end=$((SECONDS + END_LIMIT_S))
	local -a pids
	mapfile -t pids < <(list_tree "$1")
	kill "${pids[@]}" 2>/dev/null || true
	for pid in "${pids[@]}"; do
		while kill -0 "$pid" 2>/dev/null && ((SECONDS < end)); do
			sleep 0.05
		done
	done
	wait "$1" 2>/dev/null || true
}

list_tree() {
	local child
	printf '%d\n' "$1"
	for child in $(pgrep -P "$1" || true); do
		list_tree "$child"
	done
}

# print_header FILE: the comment at the top of a script, which is its help text
# (without the "#!", SPDX and copyright lines).
print_header() {
	awk 'NR == 1 && /^#!/ { next }
	     !/^#/ { exit }
	     /^# (SPDX-|Copyright )/ { next }
	     !begun && /^#$/ { next }
	     { begun = 1; sub(/^# ?/, ""); print }' "$1"
}

# take_lock FILE: locks FILE until this process ends, so that two invocations never write to
# the same output; prints a line if it has to wait for another one. A command that is run
# with 9>&- does not inherit the lock.
take_lock() {
	mkdir -p -- "$(dirname -- "$1")"
	exec 9>"$1"
	if ! flock --nonblock 9; then
		log "waiting for another invocation that holds $1"
		flock 9
	fi
}
