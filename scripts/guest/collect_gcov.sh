#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
#
# usage: collect_gcov.sh DIR
#
# Runs in a guest: copies what the kernel counted (gcov) to DIR, a folder shared with the
# host: one file for each file of the driver that counts. Unloading the driver loses nothing.
set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/../lib.sh"

readonly COUNTED=/sys/kernel/debug/gcov

main() {
	local dir=${1-} file
	[[ -n $dir ]] || usage_error "no folder"
	[[ -d $COUNTED ]] || die "-$EXIT_INFRA" "this kernel does not count: kernel.sh build criu --coverage"
	mkdir -p -- "$dir"
	# cp takes the files for empty ones: debugfs does not know their sizes.
	find "$COUNTED" -name '*.gcda' | while IFS= read -r file; do
		cat -- "$file" >"$dir/${file##*/}"
	done
}

main "$@"
