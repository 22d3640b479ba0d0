#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
#
# usage: e2e-restore.sh RUN PLUGINS
#
# The e2e tier's second machine: damaged copies of the images are refused, then
# the good ones are restored, first without and then with leave to continue.
set -uo pipefail
# shellcheck source=scripts/guest/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=scripts/guest/cases.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/cases.sh"

run=$1 plugins='' pid=''
readonly run
# How long a program that must not continue is watched.
readonly QUIET_S=3

restore() {
	restore_kept "$run/$1" "$plugins" "$run/$1.log" 2>/dev/null
}

# refused COPY TEXT TITLE: restoring it fails, says so, and leaves nothing.
refused() {
	judge "$3 is refused" fails restore "$1"
	judge "the refusal of $3 says why" logged "$2" "$run/$1.log"
	judge "the refusal of $3 leaves no process" wait_for "$EXIT_LIMIT_S" is_gone "$pid"
}

restore_good() {
	restore images || { tail_of "$run/images.log" && return 1; }
	is_running "$pid" || { tail_of "$run/images.log" && return 1; }
}

# Restored and killed: what is left of it must not be in the way of the next restore.
restore_by_cpu_and_kill() {
	local copy=cpu
	restore_good || return 1
	kill -KILL "$pid"
	wait_for "$EXIT_LIMIT_S" is_gone "$pid"
}

stays_pending() {
	! wait_for "$QUIET_S" test -e "$run/program/result" && is_running "$pid"
}

main() {
	local expected
	plugins=$(plugin_of "$2")
	pid=$(<"$run/pid")
	prepare_guest
	gpu_ids >"$run/gpus.b"
	refused images-flipped "wrong checksum" "an image with a flipped byte"
	refused images-truncated "truncated" "a truncated image"
	refused images-uncommitted "did not complete" "an image without its manifest"
	judge "the image is restored by the CPU, and the program is killed" restore_by_cpu_and_kill
	judge "the image is restored on other GPUs, by SDMA" restore_good
	judge "the restored program does not pass its closed gate" stays_pending
	: >"$run/program/go"
	read -r _ expected <"$run/reference/result"
	judge "the restored program's result equals the undisturbed one" \
		equals "$(result_of "$run/program")" "$expected"
	judge "the restored program ends" wait_for 10 is_gone "$pid"
}

main "$@"
