#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
#
# usage: collect_gcov.sh DIR
#
# Runs in a guest: copies the counts of gcov from the kernel to DIR, a folder shared with the
# host: one file for each measured file of the driver. The kernel keeps the counts when the
# driver is unloaded.
set -euo pipefail
# shellcheck source=scripts/guest/lib.sh
source "${BASH_SOURCE[0]%/*}/lib.sh"

readonly COUNTED=/sys/kernel/debug/gcov

main() {
	local dir=${1-} file
	[[ -n $dir ]] || usage_error "no folder"
	[[ -d $COUNTED ]] || die "-$EXIT_INFRA" "the kernel has no gcov counts of amdkfd: build it with kernel.sh build criu --coverage"
	mkdir -p -- "$dir"
	# Not cp, which takes the files for empty ones, because debugfs reports a size of 0.
	find "$COUNTED" -name '*.gcda' | while IFS= read -r file; do
		cat -- "$file" >"$dir/${file##*/}"
	done
}

main "$@"
