#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
#
# usage: vm_test.sh [CASE...]
#
# Tests of vm.sh itself: KTAP on standard output, one line for each case; what
# went wrong as "# " lines after it. Needs no virtual GPU, only a kernel.
# VM_TEST_OPTIONS: more options for every `vm.sh run`, separated by blanks.
# shellcheck disable=SC2015,SC2016  # "a && b || fail" is meant; guests expand '$1'
set -uo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

HERE=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)
readonly HERE
# Long enough for a boot on a busy machine without hardware virtualization.
readonly BOOT_LIMIT_S=90
# As the kernel has it: its first 15 characters. Until QEMU runs, the process has the name of what starts it.
readonly QEMU_COMM=qemu-system-x86
work='' failed=0 number=0
# What the last `vm` did.
status=0
declare -a options=()

# vm ARG...: run vm.sh; leaves $work/out, $work/err and status.
vm() {
	status=0
	"$HERE/vm.sh" run "${options[@]}" --timeout "$BOOT_LIMIT_S" "$@" \
		</dev/null >"$work/out" 2>"$work/err" || status=$?
}

# fail TEXT: the current case is wrong.
fail() {
	printf '# %s\n' "$*"
	tail -n 12 "$work/err" 2>/dev/null | sed 's/^/#   /'
	return 1
}

expect_status() {
	[[ $status -eq $1 ]] || fail "status $status instead of $1"
}

expect_file() {
	grep -qE -- "$2" "$work/$1" || fail "no '$2' in standard $1"
}

expect_gone() {
	local pid end=$((SECONDS + 10))
	for pid; do
		while kill -0 "$pid" 2>/dev/null; do
			((SECONDS < end)) || fail "process $pid is still there" || return 1
			sleep 0.05
		done
	done
}

# expect_no_folder: of a run, with its sockets and pipes.
expect_no_folder() {
	if compgen -G "$work/run/vasic-vm.*" >/dev/null; then
		fail "left behind: $(ls -d "$work"/run/vasic-vm.*)"
	fi
}

case_status_and_streams_pass_through() {
	vm -- bash -c 'printf "to out\n"; printf "to err\n" >&2; exit 7'
	expect_status 7 && [[ $(<"$work/out") == "to out" ]] && [[ $(<"$work/err") == "to err" ]] ||
		fail "out: $(<"$work/out") err: $(<"$work/err")"
}

case_arguments_arrive_as_they_are() {
	local -a args=('two words' '' $'line\nbreak' '$HOME "q" '\''s'\' '*' '\\ ü')
	vm --env 'GREETING=hello  world' -- bash -c 'printf "%s|" "$GREETING" "$PWD" "$@"' _ "${args[@]}"
	expect_status 0 && [[ $(<"$work/out") == "$(printf '%s|' 'hello  world' "$PWD" "${args[@]}")" ]] ||
		fail "out: $(<"$work/out")"
}

case_a_megabyte_of_output_is_complete() {
	vm -- bash -c 'head -c 1000000 /dev/zero | tr "\0" x; echo end >/dev/stderr'
	expect_status 0 && [[ $(stat -c %s "$work/out") -eq 1000000 ]] && expect_file err '^end$' ||
		fail "$(stat -c %s "$work/out") bytes"
}

case_only_shares_keep_what_the_guest_writes() {
	mkdir -p "$work/share dir"
	vm --share "$work/share dir" -- bash -c 'echo kept >"$1/file"; echo lost >"$2"; cat "$2"' _ \
		"$work/share dir" "$HERE/../.vm-test-was-here"
	expect_status 0 && expect_file out lost || return 1
	[[ $(<"$work/share dir/file") == kept ]] || fail "the shared file is missing" || return 1
	[[ ! -e $HERE/../.vm-test-was-here ]] || fail "the guest wrote to the host's root"
}

case_the_guest_is_ready_for_criu() {
	vm -- bash -c 'ip link show lo | grep -q UP && touch /tmp/a /run/a && test -c /dev/ptmx && mountpoint -q /dev/pts &&
		mountpoint -q /dev/shm && mountpoint -q /sys/fs/cgroup && mountpoint -q /sys/kernel/debug && [[ $(id -u) == 0 ]]'
	expect_status 0
}

case_a_clock_of_instructions_gives_the_same_times_again() {
	vm --icount -- bash -c 'printf "%s " "$(nproc)"; for round in 1 2; do
		begin=${EPOCHREALTIME/./}
		for ((i = 0; i < 100000; i++)); do :; done
		printf "%d " "$((${EPOCHREALTIME/./} - begin))"
	done'
	expect_status 0 &&
		awk '{ exit !($1 == 1 && $2 < 1.1 * $3 && $3 < 1.1 * $2) }' "$work/out" ||
		fail "processors and times: $(<"$work/out")"
}

case_a_missing_command_is_127() {
	vm -- /no/such/command
	expect_status 127
}

case_too_long_is_124() {
	local begin=$SECONDS
	vm --timeout 15 -- sleep 600
	expect_status 124 && expect_file err 'timeout' && ((SECONDS - begin < 40)) || fail "after $((SECONDS - begin)) s"
}

case_a_panic_is_125_with_the_serial_log() {
	vm -- bash -c 'echo c >/proc/sysrq-trigger; sleep 60'
	expect_status 125 && expect_file err 'died without reporting a status' && expect_file err 'Kernel panic|crash'
}

case_a_warning_of_the_kernel_fails_the_run() {
	vm -- bash -c 'echo "WARNING: CPU: 0 PID: 1 at made-up.c:1" >/dev/kmsg; dmesg -C; exit 0'
	expect_status 1 && expect_file err 'kernel complained' && expect_file err 'made-up.c'
}

case_a_lockdep_report_fails_the_run() {
	vm -- bash -c 'echo "possible circular locking dependency detected" >/dev/kmsg'
	expect_status 1 && expect_file err 'kernel complained'
}

case_a_stall_of_rcu_fails_the_run() {
	vm -- bash -c 'echo "rcu: INFO: rcu_preempt self-detected stall on CPU" >/dev/kmsg'
	expect_status 1 && expect_file err 'kernel complained'
}

# failing_qemu COUNT COMMAND: a QEMU before the real one. COMMAND is what its first COUNT
# machines do instead of booting, with their console in $serial.
failing_qemu() {
	local real
	real=$(command -v qemu-system-x86_64)
	rm -rf -- "$work/failing"
	mkdir -p "$work/failing"
	printf '%s' "$1" >"$work/failing/left"
	cat >"$work/failing/qemu-system-x86_64" <<-END
		#!/bin/bash
		left=\$(<"$work/failing/left")
		serial=\$(printf '%s\n' "\$@" | sed -n 's/^file:\(.*serial\.log\)\$/\1/p')
		# Without one it is the probe of KVM.
		[[ -n \$serial && \$left -gt 0 ]] || exec "$real" "\$@"
		printf '%s' "\$((left - 1))" >"$work/failing/left"
		$2
	END
	chmod +x "$work/failing/qemu-system-x86_64"
}

readonly STALLING='echo "rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:" >"$serial"; exec sleep 600'

# expect_boot_after COUNT TEXT: the guest's status and output, and that it was told why that often.
expect_boot_after() {
	PATH=$work/failing:$PATH vm --name vm-test-boots -- bash -c 'echo well; exit 7'
	expect_status 7 && [[ $(<"$work/out") == well ]] &&
		[[ $(grep -c "$2 before its first process.*booting it again" "$work/err") -eq $1 ]] &&
		[[ $(find "$(out_dir)/vm/vm-test-boots" -name 'serial.*.log' | wc -l) -eq $1 ]] ||
		fail "out: $(<"$work/out") err: $(<"$work/err")"
}

case_a_stall_in_the_boot_is_told_and_booted_again() {
	failing_qemu 2 "$STALLING"
	expect_boot_after 2 'stalled' &&
		grep -q 'detected stalls' "$(out_dir)"/vm/vm-test-boots/serial.{1,2}.log || fail "the consoles are not kept"
}

case_a_reset_in_the_boot_is_told_and_booted_again() {
	failing_qemu 1 'exit 0'
	expect_boot_after 1 'ended (it reset itself)'
}

case_a_machine_killed_in_its_boot_is_told_and_booted_again() {
	failing_qemu 2 'kill -SEGV $$'
	expect_boot_after 2 'ended (QEMU ended by signal 11)'
}

# expect_no_boot TEXT: 125, and nothing left.
expect_no_boot() {
	mkdir -p "$work/run"
	XDG_RUNTIME_DIR=$work/run PATH=$work/failing:$PATH vm -- true
	expect_status 125 && expect_file err "$1" && expect_no_folder
}

case_a_machine_that_only_stalls_is_125() {
	failing_qemu 99 "$STALLING"
	expect_no_boot 'stalled in the last of 3 boots'
}

case_a_machine_that_only_resets_is_125() {
	failing_qemu 99 'exit 0'
	expect_no_boot 'ended \(it reset itself\) in the last of 3 boots'
}

case_a_panic_in_the_boot_is_not_booted_again() {
	failing_qemu 1 'echo "Kernel panic - not syncing: no init" >"$serial"'
	expect_no_boot 'died without reporting a status: it reset itself'
}

case_a_refusal_of_qemu_is_not_tried_again() {
	failing_qemu 1 'echo "no such machine" >&2; exit 1'
	expect_no_boot 'died without reporting a status: QEMU ended with status 1' &&
		expect_file err 'qemu: no such machine'
}

# interrupted_run SIGNAL: start vm.sh, wait for QEMU, send the signal.
interrupted_run() {
	local pid pids qemu='' end=$((SECONDS + 30))
	mkdir -p "$work/run"
	# An ignored SIGINT would be inherited: shells give it to background jobs.
	XDG_RUNTIME_DIR=$work/run env --default-signal=INT,TERM "$HERE/vm.sh" run "${options[@]}" -- sleep 600 \
		</dev/null >"$work/out" 2>"$work/err" &
	pid=$!
	while [[ -z $qemu ]]; do
		((SECONDS < end)) || fail "QEMU did not start" || return 1
		sleep 0.1
		qemu=$(pgrep -P "$pid" -x "$QEMU_COMM")
	done
	pids=$(pgrep -P "$pid")
	kill -"$1" "$pid"
	status=0
	wait "$pid" || status=$?
	# shellcheck disable=SC2086
	expect_gone $pids
}

case_an_interrupt_leaves_nothing_behind() {
	interrupted_run INT && expect_status 130 && expect_no_folder
}

case_a_termination_leaves_nothing_behind() {
	interrupted_run TERM && expect_status 143 && expect_no_folder
}

case_a_killed_vm_sh_takes_qemu_along() {
	interrupted_run KILL && expect_status 137
	local result=$?
	rm -rf "$work/run"
	return "$result"
}

# One that starts it as demo.sh does.
case_a_killed_script_takes_its_machine_along() {
	local pid pids='' vm='' end=$((SECONDS + 30))
	mkdir -p "$work/run"
	XDG_RUNTIME_DIR=$work/run bash -c 'setpriv --pdeathsig TERM "$@"; true' _ "$HERE/vm.sh" run "${options[@]}" -- sleep 600 \
		</dev/null >"$work/out" 2>"$work/err" &
	pid=$!
	while [[ -z $pids ]]; do
		((SECONDS < end)) || fail "QEMU did not start" || return 1
		sleep 0.1
		vm=$(pgrep -P "$pid") && pids=$(pgrep -P "$vm" -x "$QEMU_COMM")
	done
	kill -KILL "$pid"
	wait "$pid" 2>/dev/null || true
	# shellcheck disable=SC2086
	expect_gone $vm $pids && expect_no_folder
}

case_two_machines_run_at_once() {
	local one=0 two=0 first second
	"$HERE/vm.sh" run "${options[@]}" --name vm-test-1 -- bash -c 'echo one' >"$work/out1" 2>"$work/err" &
	first=$!
	"$HERE/vm.sh" run "${options[@]}" --name vm-test-2 -- bash -c 'echo two' >"$work/out2" 2>>"$work/err" &
	second=$!
	wait "$first" || one=$?
	wait "$second" || two=$?
	[[ $one$two == 00 && $(<"$work/out1") == one && $(<"$work/out2") == two ]] || fail "status $one and $two"
}

# expect_refusal STATUS TEXT ARG...: one line, and no guest.
expect_refusal() {
	local expected=$1 text=$2
	shift 2
	status=0
	"$HERE/vm.sh" "$@" </dev/null >"$work/out" 2>"$work/err" || status=$?
	expect_status "$expected" && expect_file err "$text" &&
		[[ $(wc -l <"$work/err") -eq 1 ]] || fail "for: vm.sh $*"
}

case_mistakes_are_refused_with_one_line() {
	expect_refusal 64 'unknown verb' walk &&
		expect_refusal 64 'unknown option' run --nonsense -- true &&
		expect_refusal 64 'no command' run --smp 1 &&
		expect_refusal 64 'no command' run -- &&
		expect_refusal 64 'needs a value' run --mem -- true &&
		expect_refusal 64 'not a size' run --mem lots -- true &&
		expect_refusal 64 'not a positive number' run --timeout -5 -- true &&
		expect_refusal 64 'not a folder' run --share /no/such/folder -- true &&
		expect_refusal 64 'not K=V' run --env nonsense -- true &&
		expect_refusal 64 'outside' run --gpu gfx906,slot=3 -- true &&
		expect_refusal 64 'used twice' run --gpu gfx906,slot=17 --gpu gfx906,slot=0x11 -- true &&
		expect_refusal 125 'make kernel' run --kernel nonesuch -- true
}

case_missing_pieces_are_named_with_their_remedy() {
	mkdir -p "$work/empty/lib/modules"
	VASICD=/no/such/vasicd expect_refusal 125 'make build' run "${options[@]}" --modules "$work/empty" --gpu gfx906 -- true &&
		expect_refusal 125 'not enough memory' run "${options[@]}" --mem 900000G -- true
}

# QEMU says so with a signal where /dev/kvm is there and does not work.
case_an_aborted_probe_of_kvm_is_not_talked_about() {
	mkdir -p "$work/aborting"
	printf '#!/bin/sh\nkill -ABRT $$\n' >"$work/aborting/qemu-system-x86_64"
	chmod +x "$work/aborting/qemu-system-x86_64"
	# The answer of an earlier one; the next machine asks again.
	rm -f -- "$(out_dir)/vm/accel"
	PATH=$work/aborting:$PATH expect_the_failure_of_vasicd
	local ok=$?
	rm -f -- "$(out_dir)/vm/accel"
	return "$ok"
}

case_a_failing_vasicd_is_reported() {
	expect_the_failure_of_vasicd
}

# Its words, and nothing else.
expect_the_failure_of_vasicd() {
	mkdir -p "$work/empty/lib/modules"
	printf '#!/bin/sh\necho "vasicd: error: no luck" >&2\nexit 1\n' >"$work/vasicd"
	chmod +x "$work/vasicd"
	VASICD=$work/vasicd expect_refusal 125 'no luck' run "${options[@]}" --modules "$work/empty" --gpu gfx906 -- true
}

case_a_name_belongs_to_one_machine_at_a_time() {
	exec {lock}>"$(out_dir)/vm/vm-test-1/.lock"
	flock "$lock"
	expect_refusal 125 "named 'vm-test-1'" run "${options[@]}" --name vm-test-1 -- true
	local result=$?
	exec {lock}>&-
	return "$result"
}

run_case() {
	local name=${1#case_}
	number=$((number + 1))
	if "$1"; then
		printf 'ok %d - %s\n' "$number" "$name"
	else
		printf 'not ok %d - %s\n' "$number" "$name"
		failed=$((failed + 1))
	fi
}

main() {
	local name
	local -a cases
	read -r -a options <<<"${VM_TEST_OPTIONS-}"
	work=$(mktemp -d "${TMPDIR:-/tmp}/vm-test.XXXXXX")
	trap 'rm -rf -- "$work"' EXIT
	mkdir -p "$(out_dir)/vm/vm-test-1"
	mapfile -t cases < <(declare -F | awk '$3 ~ /^case_/ { print $3 }')
	if (($#)); then
		cases=("${@/#/case_}")
	fi
	printf 'KTAP version 1\n1..%d\n' "${#cases[@]}"
	for name in "${cases[@]}"; do
		run_case "$name"
	done
	((failed == 0))
}

main "$@"
