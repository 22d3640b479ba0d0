#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
#
# usage: distro.sh RUN STEP [ARG]...
#
# Runs one step of tests/test_distro.py that checkpoint.sh does not have, in a guest; its
# status is the result. RUN is as for checkpoint.sh.
#   criu-version                prints the version of this machine's CRIU
#   descriptors NAME            prints what the open files of the program are, one a line; a
#                               render node has another minor on another machine
#   restore-without-plugin LOG  restores RUN/images by a CRIU that has no plugin
set -uo pipefail
# shellcheck source=scripts/guest/lib.sh
source "${BASH_SOURCE[0]%/*}/lib.sh"

descriptors() {
	local pid fd
	read -r _ pid <"$1/state" || die "-$EXIT_INFRA" "no program was started in $1"
	for fd in "/proc/$pid/fd"/*; do
		printf '%s %s\n' "${fd##*/}" "$(readlink -- "$fd")"
	done | sed 's/renderD[0-9]*$/renderD/' | sort -n
}

restore_without_plugin() {
	mkdir -p /run/no-plugins
	criu_restore "$1" /run/no-plugins "$2" || { tail_of "$2" && return 1; }
}

main() {
	local run=${1-} step=${2-}
	(($# >= 2)) || usage_error "no step"
	shift 2
	cd /
	case $step in
	criu-version) criu --version | awk '$1 == "Version:" { print $2 }' ;;
	descriptors) descriptors "$run/$1" ;;
	restore-without-plugin) restore_without_plugin "$run/images" "$run/$1" ;;
	*) usage_error "no step '$step'" ;;
	esac
}

main "$@"
