# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
# shellcheck shell=bash
#
# How a guest script tells e2e.sh about its cases: one line each,
#   case ok NAME   or   case bad NAME
# Sourced, never run. A case that needs an earlier one fails with it; none is
# left out.

# judge NAME COMMAND...: the command is the case.
judge() {
	local name=$1
	shift
	if "$@"; then
		printf 'case ok %s\n' "$name"
	else
		printf 'case bad %s\n' "$name"
	fi
}

# fails COMMAND...: whether it does.
fails() {
	! "$@"
}

# equals A B: both the same and not empty.
equals() {
	[[ -n $1 && $1 == "$2" ]] && return 0
	printf "got '%s', expected '%s'\n" "$1" "$2" >&2
	return 1
}

# logged TEXT FILE: the file says so.
logged() {
	grep -qF -- "$1" "$2" 2>/dev/null && return 0
	printf "no '%s' in %s\n" "$1" "$2" >&2
	tail_of "$2"
	return 1
}

# tap NAME COMMAND...: the same for test.sh, which reads KTAP; notes begin with "# ".
# A failed case leaves the file $share/failed.
tap() {
	local name=$1
	shift
	if "$@"; then
		printf 'ok - %s\n' "$name"
	else
		: >"${share:?}/failed"
		printf 'not ok - %s\n' "$name"
	fi
}
