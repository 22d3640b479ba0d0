#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
#
# usage: loss.sh PROGRAMS STEP
#
# Runs one step of the loss of GPUs under load (tests/test_loops.py) in a guest; its status is
# the result. PROGRAMS is the folder of the built parts (out/cmake/release/userspace). The
# host kills vasicd after the first step.
#   load       starts programs, and waits until queues and jobs are running
#   refused    new work fails before a time limit
#   kill       the programs can be killed
#   unstuck    no task stays in an uninterruptible wait
#   unload     the driver can be unloaded
#   no-reset   the driver did not reset a GPU after it removed its device
#   continue   the machine starts programs and writes files
set -uo pipefail
# shellcheck source=scripts/guest/lib.sh
source "${BASH_SOURCE[0]%/*}/lib.sh"

readonly USERS_LIMIT_S=90 UNLOAD_LIMIT_S=60
# File with the process ids of the programs, one a line.
readonly USERS=/run/loss.users

load() {
	"$1/kfdtest-criu/kfdbench" --idle 600 >/dev/null 2>&1 &
	printf '%d\n' "$!" >"$USERS"
	"$1/drmtest/drmtest" --gtest_filter='Ring/CsTest.*' --gtest_repeat=1000 >/dev/null 2>&1 &
	printf '%d\n' "$!" >>"$USERS"
	wait_for "$PENDING_LIMIT_S" has_queues
}

has_queues() {
	compgen -G "/sys/class/kfd/kfd/proc/$(head -n 1 "$USERS")/queues/*" >/dev/null
}

refused() {
	local status=0
	timeout "$USERS_LIMIT_S" "$1/drmtest/drmtest" --gtest_filter='Ring/CsTest.nops*' >/dev/null 2>&1 || status=$?
	((status != 0 && status != EXIT_TIMEOUT))
}

kill_users() {
	local pid
	local -a users
	mapfile -t users <"$USERS"
	kill -KILL "${users[@]}" 2>/dev/null # a program may have ended when it lost its GPU
	for pid in "${users[@]}"; do
		wait_for "$USERS_LIMIT_S" is_gone "$pid" || {
			cat "/proc/$pid/stack"
			return 1
		}
	done
}

no_task_is_stuck() {
	! grep -l '^State:.D' /proc/[0-9]*/status
}

# When the driver removes a device it frees its interrupts; a later reset would enable them.
no_reset_after_the_end() {
	dmesg | awk 'match($0, /0000:[0-9a-f:]+\.[0-7]/) { gpu = substr($0, RSTART, RLENGTH) }
		/: finishing device\./ { ended[gpu] = 1 }
		/GPU reset begin/ && gpu in ended { print; status = 1 }
		END { exit status || !length(ended) }'
}

machine_continues() {
	for _ in {1..20}; do
		sleep 0 || return 1
	done
	echo x >/tmp/x && sync
}

main() {
	local programs=${1-} step=${2-}
	case $step in
	load) load "$programs" ;;
	refused) refused "$programs" ;;
	kill) kill_users ;;
	unstuck) wait_for "$USERS_LIMIT_S" no_task_is_stuck ;;
	unload) unload_driver "$UNLOAD_LIMIT_S" ;;
	no-reset) no_reset_after_the_end ;;
	continue) machine_continues ;;
	*) usage_error "no step '$step'" ;;
	esac
}

main "$@"
