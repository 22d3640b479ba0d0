#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
#
# usage: golden.sh [KERNEL-TREE [OPTION-OF-GOOGLETEST]...]
#
# Golden tests: compare the layouts in userspace/packets, the page-table bits and the
# interrupt numbers with the kernel's headers, without KERNEL-TREE with those of the
# unchanged base. Builds what it needs, prints what GoogleTest prints. The facts
# stay in out/golden/facts.txt.
set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

main() {
	local tree facts
	case ${1-} in
	-h | --help) print_header "${BASH_SOURCE[0]}" && exit 0 ;;
	esac
	cd -- "$(repo_root)"
	tree=${1:-$(out_dir)/kernel/pristine}
	facts=$(out_dir)/golden/facts.txt
	mkdir -p -- "${facts%/*}"
	scripts/build.sh release golden_test >&2
	scripts/kernel_facts.py "$tree" >"$facts.new"
	mv -- "$facts.new" "$facts"
	"$(out_dir)/cmake/release/userspace/golden/golden_test" "$facts" "${@:2}"
}

main "$@"
