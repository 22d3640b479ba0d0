#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
#
# usage: e2e-stock.sh RUN PLUGINS
#
# The control of our first kernel patch: the same images on a kernel without it.
# Kernels before the patch want the context save area of a queue to be there when
# it is restored, and an SVM range never is.
set -uo pipefail
# shellcheck source=scripts/guest/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=scripts/guest/cases.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/cases.sh"

run=$1
readonly run

main() {
	local plugins
	plugins=$(plugin_of "$2")
	prepare_guest
	judge "a stock kernel does not restore a queue with an SVM save area" \
		fails restore_kept "$run/images" "$plugins" "$run/stock.log" 2>/dev/null
	judge "the stock kernel refuses the image with EINVAL" logged "KFD RESTORE: Invalid argument" "$run/stock.log"
	judge "the refusal by the stock kernel leaves no process" wait_for "$EXIT_LIMIT_S" is_gone "$(<"$run/pid")"
}

main "$@"
