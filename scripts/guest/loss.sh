#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
#
# usage: loss.sh SHARE PROGRAMS
#
# The GPUs go away under load: SHARE/loaded asks the host to kill vasicd, which
# answers with SHARE/killed. Programs must end, the driver must unload, and the
# machine must go on. KTAP on standard output.
set -uo pipefail
# shellcheck source=scripts/guest/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=scripts/guest/cases.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/cases.sh"

share=$1 programs=$2
readonly share programs
readonly KILL_LIMIT_S=30 USERS_LIMIT_S=90 UNLOAD_LIMIT_S=60
users=()

is_loaded() {
	compgen -G "/sys/class/kfd/kfd/proc/${users[0]}/queues/*" >/dev/null
}

start_load() {
	"$programs/kfdtest-criu/kfdbench" --idle 600 >/dev/null 2>&1 &
	users+=("$!")
	"$programs/drmtest/drmtest" --gtest_filter='Ring/CsTest.*' --gtest_repeat=1000 >/dev/null 2>&1 &
	users+=("$!")
	wait_for "$PENDING_LIMIT_S" is_loaded
}

lose() {
	: >"$share/loaded"
	wait_for "$KILL_LIMIT_S" test -e "$share/killed"
}

# What is new fails, and soon.
is_refused() {
	! timeout "$USERS_LIMIT_S" "$programs/drmtest/drmtest" --gtest_filter='Ring/CsTest.nops*' >/dev/null 2>&1
}

users_end() {
	local pid
	kill -KILL "${users[@]}"
	for pid in "${users[@]}"; do
		wait_for "$USERS_LIMIT_S" is_gone "$pid" || { cat "/proc/$pid/stack"; return 1; }
	done
}

no_task_is_stuck() {
	! grep -l '^State:.D' /proc/[0-9]*/status
}

# A device that is taken down gives its interrupts back, and a reset would switch them on.
no_reset_after_the_end() {
	dmesg | awk 'match($0, /0000:[0-9a-f:]+\.[0-7]/) { gpu = substr($0, RSTART, RLENGTH) }
		/: finishing device\./ { ended[gpu] = 1 }
		/GPU reset begin/ && gpu in ended { print; status = 1 }
		END { exit status || !length(ended) }'
}

main() {
	tap "queues and jobs are running" start_load
	tap "vasicd is killed" lose
	tap "new work is refused" is_refused
	tap "the programs can be killed" users_end
	tap "no task is stuck" wait_for "$USERS_LIMIT_S" no_task_is_stuck
	tap "the driver is unloaded" unload_driver "$UNLOAD_LIMIT_S"
	tap "no GPU is reset when it is taken down" no_reset_after_the_end
	tap "the machine goes on" bash -c 'for i in {1..20}; do sleep 0 || exit 1; done; echo x >/tmp/x && sync'
}

main "$@"
