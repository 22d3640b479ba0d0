#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
#
# usage: coverage.sh DIR COMMAND [ARG]...
#
# Runs the command, then copies what the kernel counted (gcov) to DIR, a folder shared
# with the host: one file for each file of the driver that counts. Unloading the driver
# loses nothing. Status: the command's.
set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/../lib.sh"

readonly COUNTED=/sys/kernel/debug/gcov

main() {
	local dir=$1 file status=0
	shift
	[[ -d $COUNTED ]] || die "-$EXIT_INFRA" "this kernel does not count: kernel.sh build criu --coverage"
	"$@" || status=$?
	# The files seem empty to cp: nobody knows their sizes.
	find "$COUNTED" -name '*.gcda' | while IFS= read -r file; do
		cat -- "$file" >"$dir/${file##*/}"
	done
	return "$status"
}

main "$@"
