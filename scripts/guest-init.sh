#!/bin/bash
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
#
# PID 1 of the guest. vm/guest_files.py puts a copy of this file and the files that it
# reads (params, fstab, fstab.scratch, skeleton/) into a folder of its own, which the guest
# can read because its first root is the host's root.
# Owns: the change to a writable root, loading of the driver, running one
# command, the report on the status port. Does not check the kernel log: vm.sh
# does. It starts as few programs as it can, because without hardware virtualization
# each takes a tenth of a second.
#
# `params` is shell code; it sets
#   cwd argv[] env[] params[] modules driver gpu_count
# The status port carries one line per fact:
#   up MS | kfd MS | fail TEXT | taint N | exit STATUS OUT ERR DMESG
# OUT, ERR and DMESG are the numbers of bytes sent through the other ports, so that the
# host knows when it has received all of them.

set -uo pipefail
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export HOME=/root TERM=dumb LANG=C.UTF-8

readonly PORT_DEADLINE_S=10 KFD_DEADLINE_S=20 RELAY_DEADLINE_S=15
# kmemleak reports only objects older than five seconds.
readonly KMEMLEAK_AGE_S=6

declare -a argv=() env=() params=()
cwd=/ modules='' driver=0 gpu_count=0
status_fd='' out_fd='' err_fd='' dmesg_fd='' never_fd=''
out_port='' err_port='' dmesg_port='' out_relay='' err_relay='' command_status=125
old_root_pid='' loopback_pid=''

uptime_ms() {
	local up _
	read -r up _ </proc/uptime
	up=${up/./}
	printf '%d' "$((10#$up * 10))"
}

report() {
	if [[ -n $status_fd ]]; then
		printf '%s\n' "$*" >&"$status_fd"
	fi
	printf 'guest-init: %s\n' "$*" >/dev/console
}

# stop_here TEXT: ends the guest because it cannot run the command; vm.sh prints TEXT.
stop_here() {
	report "fail $*"
	finish 125
}

step() {
	"$@" || stop_here "guest set-up failed: $*"
}

# The root becomes an overlay: the host's root below, memory above. /sys serves
# as scratch space because every root has it and the guest needs it only later.
# skeleton/ has the files that /sys and /dev need; the second fstab has all other mounts,
# below /sys/root.
enter_overlay() {
	step mount -n -a -T "$dir/fstab.scratch"
	step cp -RP "$dir/skeleton/." /
	step mount -n -a -T "$dir/fstab"
	step cd /sys/root
	step pivot_root . mnt
	step cd /
	umount -n -l /mnt &
	old_root_pid=$!
}

# nap: waits a moment without starting a program: a read from never_fd gets no data and
# ends with its time limit.
nap() {
	read -r -t 0.02 -u "$never_fd"
}

# port_of NAME: prints the device (vportXpY) of the virtio-serial port with this name. The
# host gives ports their names a moment after they appear.
port_of() {
	local port name end=$((SECONDS + PORT_DEADLINE_S))
	while ((SECONDS < end)); do
		for port in /sys/class/virtio-ports/*; do
			name=''
			read -r name 2>/dev/null <"$port/name"
			if [[ $name == "$1" && -e /dev/${port##*/} ]]; then
				printf '%s' "${port##*/}"
				return 0
			fi
		done
		nap
	done
	return 1
}

# A port can be opened only once, so init opens it and programs inherit it.
open_ports() {
	local port
	port=$(port_of vasic.status) || stop_here "no status port"
	exec {status_fd}>"/dev/$port" || stop_here "cannot open the status port"
	out_port=$(port_of vasic.stdout) || stop_here "no stdout port"
	err_port=$(port_of vasic.stderr) || stop_here "no stderr port"
	dmesg_port=$(port_of vasic.dmesg) || stop_here "no dmesg port"
	exec {out_fd}>"/dev/$out_port" {err_fd}>"/dev/$err_port" {dmesg_fd}>"/dev/$dmesg_port"
}

# sent_bytes PORT: prints the number of bytes sent, 0 for a port that was never opened.
sent_bytes() {
	local key value
	while read -r key value; do
		if [[ $key == bytes_sent: ]]; then
			printf '%d' "$value"
			return
		fi
	done 2>/dev/null <"/sys/kernel/debug/virtio-ports/$1"
	printf 0
}

# Prints the number of GPUs in KFD's topology; /dev/kfd exists with any number of them.
# Processors are nodes too; their gpu_id is 0.
count_gpus() {
	local file id count=0
	for file in /sys/class/kfd/kfd/topology/nodes/*/gpu_id; do
		id=0
		read -r id 2>/dev/null <"$file"
		count=$((count + (id != 0)))
	done
	printf '%d' "$count"
}

load_driver() {
	local text end
	text=$(modprobe -d "$modules" amdgpu vasic=1 "${params[@]}" 2>&1) ||
		stop_here "loading amdgpu failed: ${text//$'\n'/; } (modules: $modules)"
	end=$((SECONDS + KFD_DEADLINE_S))
	while [[ ! -c /dev/kfd || $(count_gpus) -lt $gpu_count ]]; do
		((SECONDS < end)) || stop_here "amdgpu is loaded, but KFD has $(count_gpus) of $gpu_count GPUs"
		nap
	done
	report "kfd $(uptime_ms)"
}

# The command gets pipes, not the ports themselves, because a pipe can be opened again
# through /dev/stdout and a port cannot. Sets command_status.
run_command() {
	local out err
	exec {out}> >(exec cat >&"$out_fd")
	out_relay=$!
	exec {err}> >(exec cat >&"$err_fd" {out}>&-)
	err_relay=$!
	(
		cd -- "$cwd" || exit 125
		# For commands that load modules without knowing where they are.
		exec setsid env -- "VASIC_MODULES=$modules" "MODPROBE_OPTIONS=-d $modules" \
			"${env[@]}" "${argv[@]}" </dev/null >&"$out" 2>&"$err" \
			{out}>&- {err}>&- {status_fd}>&- {out_fd}>&- {err_fd}>&- {dmesg_fd}>&- {never_fd}>&-
	)
	command_status=$?
	exec {out}>&- {err}>&-
	wait_for_relays
}

# A daemon left behind by the command may hold the pipes open: do not wait long.
wait_for_relays() {
	local end=$((SECONDS + RELAY_DEADLINE_S))
	while kill -0 "$out_relay" 2>/dev/null || kill -0 "$err_relay" 2>/dev/null; do
		((SECONDS < end)) || return 0
		nap
	done
}

scan_for_leaks() {
	local file=/sys/kernel/debug/kmemleak
	[[ -w $file ]] || return 0
	echo scan >"$file"
	sleep "$KMEMLEAK_AGE_S"
	echo scan >"$file"
	cat "$file" >/dev/kmsg
}

# finish STATUS: sends the kernel log and the status, then waits until the host stops the guest.
finish() {
	trap - EXIT
	# Without a status port, init can report an error only by an immediate end of the guest.
	[[ -n $status_fd ]] || exit 1
	if [[ -n $dmesg_fd ]]; then
		scan_for_leaks
		# Read /dev/kmsg, not dmesg: the command may have cleared the log that dmesg shows.
		dd if=/dev/kmsg iflag=nonblock bs=8192 status=none >&"$dmesg_fd"
	fi
	report "taint $(</proc/sys/kernel/tainted)"
	report "exit $1 $(sent_bytes "$out_port") $(sent_bytes "$err_port") $(sent_bytes "$dmesg_port")"
	sleep 30
	echo o >/proc/sysrq-trigger
	sleep 30
}

main() {
	local dir=${BASH_SOURCE[0]%/*}
	exec </dev/null >/dev/console 2>&1
	trap 'stop_here "guest-init ended early"' EXIT
	# shellcheck source=/dev/null
	source "$dir/params" || stop_here "no parameters"
	enter_overlay
	exec {never_fd}<> <(:)
	open_ports
	report "up $(uptime_ms)"
	echo vasic >/proc/sys/kernel/hostname
	ip link set lo up &
	loopback_pid=$!
	if [[ $driver == 1 ]]; then
		load_driver
	fi
	wait "$old_root_pid" || stop_here "cannot unmount the old root"
	wait "$loopback_pid" || stop_here "cannot bring up the loopback interface"
	run_command
	finish "$command_status"
}

main "$@"
