#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
#
# Run one command in a virtual machine whose root is this machine's root.
#
#   vm.sh run [OPTION]... -- COMMAND [ARG]...
#
#   --kernel NAME      stock (default) or criu: out/kernel/NAME
#   --gpu SPEC         add a virtual GPU; repeat for more. SPEC is vasicd's, plus
#                      slot=N, the PCI slot (default 0x10 and up)
#   --mem SIZE         guest memory, default 2G
#   --smp N            guest CPUs, default 2
#   --icount           one guest CPU without KVM, whose clock counts instructions, 4 ns each:
#                      what else this machine does hardly changes the guest's times
#   --timeout SECONDS  for all of it, default 120
#   --share DIR        writable in the guest, at the same path; repeat for more.
#                      Everything else a guest writes is gone with it
#   --env K=V          in the command's environment
#   --name NAME        logs go to out/vm/NAME (default: time and process id)
#   --trace            vasicd writes out/vm/NAME/trace.txt
#   --param K=V        of the module amdgpu; repeat for more
#   --no-driver        do not load amdgpu
#   --lossy            vasicd may die: the machine runs on, its GPUs are lost
#   --bzimage FILE     this kernel instead of --kernel's, with --modules DIR
#   --modules DIR      the folder that has lib/modules
#
# The command runs as root in the caller's folder with its own standard output,
# standard error and status; standard input is empty. /tmp and /run of the guest
# are empty but for --share, the current folder and the command's own folder.
# Status: the command's; 1 when the guest's kernel complained (WARN, BUG, KASAN,
# lockdep, leak); 64 usage; 124 timeout; 125 the guest, QEMU or vasicd failed.
# A guest that stalls or ends before its first process, its kernel having nothing to say
# of it, is booted again, and said so.
#
# With a GPU, vasicd's control socket is out/vm/NAME/control.sock while the
# virtual machine runs; in the guest it is the port vasic.control (docs/testing.md).
#
# Environment: VASICD (the binary), VM_ACCEL (kvm or tcg), OUT_DIR.

set -euo pipefail
LC_ALL=C
# shellcheck source=scripts/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=scripts/vm-options.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/vm-options.sh"
# shellcheck source=scripts/guest-files.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/guest-files.sh"

readonly TAIL_LINES=30 VASICD_READY_S=15 DRAIN_S=10 STOP_S=5 KVM_PROBE_S=3
readonly BOOTS=3
readonly MAX_SOCKET_DIR=80
# What QEMU and the host's own page cache need beside the guest's memory.
readonly SPARE_MIB=256
# Nanoseconds of an instruction with --icount, as a power of two.
readonly ICOUNT_SHIFT=2
# Taint bits that only a fault sets: machine check, bad page, oops, warn, lockup.
readonly TAINT_FAULTS=$((1 << 4 | 1 << 5 | 1 << 7 | 1 << 9 | 1 << 14))
readonly SPLAT='WARNING:|BUG:|Oops|KASAN|UBSAN|KCSAN|general protection fault|possible (circular|recursive) locking|inconsistent lock state|suspicious RCU usage|INFO: task .* blocked|rcu: INFO: rcu_\S+ (self-)?detected|unreferenced object'
# What a kernel says before it ends.
readonly PANIC='Kernel panic'
# What a kernel says that waits for a timer that never comes.
readonly STALL='rcu: INFO: rcu_[a-z]+ (self-)?detected stall'

# What is running.
deadline_ms=0
tmp='' log_dir='' accel='' qemu_pid='' vasicd_pid='' out_pid='' err_pid='' ram_path=''
out_r='' out_w='' err_r='' err_w='' status_r='' status_w='' name_lock=''
# How QEMU ended, and why a guest did not come as far as its first process.
qemu_status=0 how_it_ended='' not_booted=''
# What the guest reported.
declare -A fact=()

now_ms() {
	local t=$EPOCHREALTIME
	printf '%d' "$((10#${t/./} / 1000))"
}

infra() {
	die "-$EXIT_INFRA" "$@"
}

# ---- what must be there -----------------------------------------------------

find_kernel() {
	local dir
	dir=$(out_dir)/kernel/$kernel
	if [[ -z $bzimage ]]; then
		bzimage=$dir/bzImage
		[[ -r $bzimage ]] || infra "no kernel '$kernel' ($bzimage): run make kernel"
	fi
	[[ -r $bzimage ]] || infra "cannot read the kernel $bzimage"
	modules=${modules:-$dir/modules}
	if ((driver)); then
		[[ -d $modules/lib/modules ]] || infra "no kernel modules in $modules: run make kernel"
		modules=$(cd -- "$modules" && pwd -P)
	fi
}

find_vasicd() {
	((${#gpus[@]})) || return 0
	vasicd=${VASICD:-$(out_dir)/cmake/release/userspace/vasicd/vasicd}
	[[ -x $vasicd ]] || infra "no vasicd ($vasicd): run make build"
}

check_memory() {
	local available need_mib=$((mem_mib + vram_mib + SPARE_MIB))
	available=$(awk '$1 == "MemAvailable:" { print int($2 / 1024) }' /proc/meminfo)
	((available >= need_mib)) ||
		infra "not enough memory: $need_mib MiB needed (guest $mem_mib, VRAM $vram_mib), $available available"
}

# kvm_boots: whether our kernel prints its first line under KVM. Creating a
# virtual machine works on hosts where running one does not.
kvm_boots() {
	[[ -r /dev/kvm && -w /dev/kvm ]] || return 1
	# In braces: QEMU may abort on such a host, and what the shell says of that is no concern of the caller's.
	{
		timeout --kill-after=1 "$KVM_PROBE_S" qemu-system-x86_64 -accel kvm -cpu max -m 512 -nodefaults \
			-display none -no-reboot -serial "file:$tmp/probe" -kernel "$bzimage" \
			-append "console=ttyS0 panic=-1" || true
	} >/dev/null 2>&1
	grep -q 'Linux version' "$tmp/probe" 2>/dev/null
}

# The answer is kept for as long as the host is up.
choose_accel() {
	local cache boot_id seen=''
	if ((icount)); then
		accel=tcg smp=1
		return
	fi
	if [[ -n ${VM_ACCEL-} ]]; then
		[[ $VM_ACCEL == kvm || $VM_ACCEL == tcg ]] || usage_error "VM_ACCEL: '$VM_ACCEL' is neither kvm nor tcg"
		accel=$VM_ACCEL
		return
	fi
	cache=$(out_dir)/vm/accel
	boot_id=$(</proc/sys/kernel/random/boot_id)
	if [[ -r $cache ]]; then
		read -r accel seen <"$cache" || true
	fi
	if [[ $seen != "$boot_id" ]]; then
		accel=tcg
		if kvm_boots; then
			accel=kvm
		fi
		printf '%s %s\n' "$accel" "$boot_id" >"$tmp/accel"
		cp -- "$tmp/accel" "$cache.$$" && mv -f -- "$cache.$$" "$cache"
	fi
}

# ---- folders and pipes ------------------------------------------------------

# Sockets need a short path, the kernel command line one without blanks.
make_tmp() {
	local base=${XDG_RUNTIME_DIR:-/tmp}
	if [[ ! -w $base || ! $base =~ ^/[A-Za-z0-9/._-]+$ || ${#base} -gt $MAX_SOCKET_DIR ]]; then
		base=/tmp
	fi
	tmp=$(mktemp -d "$base/vasic-vm.XXXXXX") || infra "cannot make a folder in $base"
}

make_log_dir() {
	local vm
	vm=$(out_dir)/vm
	name=${name:-$(date +%Y%m%d-%H%M%S)-$$}
	log_dir=$vm/$name
	mkdir -p -- "$log_dir" || infra "cannot make $log_dir"
	exec {name_lock}>"$log_dir/.lock"
	flock --nonblock "$name_lock" || infra "another virtual machine is named '$name'"
	find "$log_dir" -mindepth 1 ! -name .lock -delete
	ln -sfn -- "$name" "$vm/latest.$$" && mv -fT -- "$vm/latest.$$" "$vm/latest"
}

# Pipes whose write ends only QEMU keeps: its end, however it comes, is the end
# of file here. Opening a FIFO both ways first avoids waiting for a peer.
open_pipes() {
	local both
	rm -f -- "$tmp/out" "$tmp/err" "$tmp/status"
	mkfifo "$tmp/out" "$tmp/err" "$tmp/status"
	# shellcheck disable=SC2094
	exec {both}<>"$tmp/out" {out_r}<"$tmp/out" {out_w}>"$tmp/out" {both}>&-
	# shellcheck disable=SC2094
	exec {both}<>"$tmp/err" {err_r}<"$tmp/err" {err_w}>"$tmp/err" {both}>&-
	# shellcheck disable=SC2094
	exec {both}<>"$tmp/status" {status_r}<"$tmp/status" {status_w}>"$tmp/status" {both}>&-
	cat <&"$out_r" {out_r}>&- {out_w}>&- {err_r}>&- {err_w}>&- {status_r}>&- {status_w}>&- {name_lock}>&- &
	out_pid=$!
	cat <&"$err_r" >&2 {out_r}>&- {out_w}>&- {err_r}>&- {err_w}>&- {status_r}>&- {status_w}>&- {name_lock}>&- &
	err_pid=$!
	exec {out_r}>&- {err_r}>&-
}

# ---- processes --------------------------------------------------------------

start_vasicd() {
	((${#gpus[@]})) || return 0
	local spec line='' end
	local -a command=("$vasicd" --dir "$tmp" --ram-size "${mem_mib}M" --ram-low 2G --die-with-parent
		--control "$tmp/control.sock")
	for spec in "${gpus[@]}"; do
		command+=(--gpu "$spec")
	done
	if ((trace)); then
		command+=(--trace "$log_dir/trace.txt")
	fi
	setpriv --pdeathsig KILL "${command[@]}" </dev/null \
		>"$log_dir/vasicd.out" 2>"$log_dir/vasicd.log" {name_lock}>&- &
	vasicd_pid=$!
	printf '%d\n' "$vasicd_pid" >"$log_dir/vasicd.pid"
	end=$((SECONDS + VASICD_READY_S))
	while [[ $line != 'vasicd: ready '* ]]; do
		kill -0 "$vasicd_pid" 2>/dev/null || infra "vasicd did not start: $(tail -n 1 "$log_dir/vasicd.log")"
		((SECONDS < end)) || infra "vasicd was not ready within $VASICD_READY_S s (see $log_dir/vasicd.log)"
		sleep 0.02
		line=''
		read -r line <"$log_dir/vasicd.out" || line=''
	done
	[[ $line =~ \ ram=([^ ]+) ]] || infra "vasicd does not say where the guest's memory is: $line"
	ram_path=${BASH_REMATCH[1]}
	# The socket itself has a short path; the link is gone when the socket is.
	ln -sfn -- "$tmp/control.sock" "$log_dir/control.sock"
}

# comma TEXT: a comma inside a value of a QEMU option is written twice.
comma() {
	printf '%s' "${1//,/,,}"
}

qemu_options() {
	# A Zen: Linux lets PCI devices reach each other's memory under few other processors.
	local i model=passthrough cpu=max,vendor=AuthenticAMD,family=23
	# A user who is not root cannot give files away.
	if ((EUID != 0)); then
		model=none
	fi
	# "rep movsb" is what these two make the guest copy with, and TCG does it byte by byte.
	[[ $accel == kvm ]] || cpu+=,-erms,-fsrm
	qemu=(-no-user-config -nodefaults -display none -no-reboot -smp "$smp"
		-cpu "$cpu" -m "${mem_mib}M"
		-kernel "$bzimage" -serial "file:$log_dir/serial.log"
		-d cpu_reset -D "$log_dir/cpu.log")
	if ((icount)); then
		qemu+=(-accel "tcg,thread=single" -icount "shift=$ICOUNT_SHIFT,sleep=on")
	elif [[ $accel == kvm ]]; then
		qemu+=(-accel kvm)
	else
		qemu+=(-accel "tcg,thread=multi")
	fi
	if ((${#gpus[@]})); then
		qemu+=(-object "memory-backend-file,id=ram,size=${mem_mib}M,mem-path=$(comma "$ram_path"),share=on"
			-machine "pc,max-ram-below-4g=2G,memory-backend=ram")
	fi
	# The GPUs come first: their slots are fixed, the others take what is free.
	for i in "${!gpus[@]}"; do
		qemu+=(-chardev "socket,path=$tmp/gpu$i.sock,id=g$i"
			-device "ivshmem-doorbell,vectors=2,chardev=g$i,addr=$(printf '0x%x' "${slots[i]}")")
	done
	add_fsdev root / /dev/root "security_model=$model,readonly=on"
	for i in "${!shares[@]}"; do
		add_fsdev "share$i" "${shares[i]}" "share$i" "security_model=$model"
	done
	qemu+=(-device virtio-serial-pci)
	add_port status "file,path=/dev/fd/$status_w"
	add_port stdout "file,path=/dev/fd/$out_w,logfile=$(comma "$log_dir/stdout.log")"
	add_port stderr "file,path=/dev/fd/$err_w,logfile=$(comma "$log_dir/stderr.log")"
	add_port dmesg "file,path=$(comma "$log_dir/kmsg")"
	if ((${#gpus[@]})); then
		add_port control "socket,path=$(comma "$tmp/control.sock")"
	fi
	# no_timer_check: on a busy host the emulated timer is late, which is no reason
	# to panic.
	qemu+=(-append "console=ttyS0 loglevel=5 panic=-1 oops=panic log_buf_len=4M random.trust_cpu=on no_timer_check root=/dev/root rootfstype=9p rootflags=trans=virtio,version=9p2000.L,msize=524288,cache=loose ro init=$tmp/init")
}

# add_fsdev ID DIR TAG REST
add_fsdev() {
	qemu+=(-fsdev "local,id=$1,path=$(comma "$2"),multidevs=remap,$4"
		-device "virtio-9p-pci,fsdev=$1,mount_tag=$3")
}

# add_port NAME CHARDEV
add_port() {
	local backend=${2%%,*} rest=${2#*,}
	qemu+=(-chardev "$backend,id=$1,$rest" -device "virtserialport,chardev=$1,name=vasic.$1")
}

start_qemu() {
	local -a qemu
	qemu_options
	fact=([start]=$(now_ms))
	setpriv --pdeathsig KILL qemu-system-x86_64 "${qemu[@]}" </dev/null >"$log_dir/qemu.log" 2>&1 \
		{status_r}>&- {name_lock}>&- &
	qemu_pid=$!
	exec {out_w}>&- {err_w}>&- {status_w}>&-
}

# stop_process PID: politely, then not. Its status goes to stop_status.
stop_process() {
	local end=$((SECONDS + STOP_S))
	stop_status=0
	kill -TERM "$1" 2>/dev/null || true
	while kill -0 "$1" 2>/dev/null; do
		if ((SECONDS >= end)); then
			kill -KILL "$1" 2>/dev/null || true
			break
		fi
		sleep 0.02
	done
	wait "$1" 2>/dev/null || stop_status=$?
}

cleanup() {
	local status=$? pid
	trap '' INT TERM HUP
	for pid in $qemu_pid $vasicd_pid $out_pid $err_pid; do
		stop_process "$pid"
	done
	if [[ -n $tmp ]]; then
		rm -f -- "${log_dir:+$log_dir/control.sock}"
		rm -rf -- "$tmp"
	fi
	exit "$status"
}

# ---- the run ----------------------------------------------------------------

# take_fact LINE: one line of the guest's report.
take_fact() {
	local key rest
	read -r key rest <<<"$1"
	case $key in
	up | kfd) fact["guest_${key}"]=$rest && fact["host_${key}"]=$(($(now_ms) - fact[start])) ;;
	fail | taint | exit) fact[$key]=$rest ;;
	*) infra "the guest sent an unknown report: $1" ;;
	esac
}

# Nothing of ours runs in a machine before its first process: amdgpu is a module, loaded
# later. Without hardware virtualization a busy host sometimes makes a machine of which one
# processor never gets its timer's interrupts, or one that is gone without a word.

# stalled_in_boot: whether the kernel stands still before its first process.
stalled_in_boot() {
	[[ -z ${fact[guest_up]-} ]] && grep -qsE "$STALL" "$log_dir/serial.log"
}

# ended_in_boot: whether QEMU, which ended with qemu_status, did so before the guest's first
# process for no reason that it or the kernel gives. 1 is QEMU's own refusal.
ended_in_boot() {
	[[ -z ${fact[guest_up]-} ]] && ((qemu_status == 0 || qemu_status > 128)) &&
		! grep -qsE "$PANIC|$SPLAT" "$log_dir/serial.log"
}

# await_qemu: until QEMU, which has closed its pipes, is gone. Sets qemu_status and how_it_ended.
await_qemu() {
	local end=$((SECONDS + STOP_S))
	while kill -0 "$qemu_pid" 2>/dev/null && ((SECONDS < end)); do
		sleep 0.02
	done
	stop_process "$qemu_pid"
	qemu_status=$stop_status
	if ((qemu_status > 128)); then
		how_it_ended="QEMU ended by signal $((qemu_status - 128))"
	elif ((qemu_status)); then
		how_it_ended="QEMU ended with status $qemu_status"
	elif grep -qs '^Triple fault' "$log_dir/cpu.log"; then
		how_it_ended='a triple fault'
	else
		how_it_ended='it reset itself'
	fi
}

# wait_for_report: until the guest reports its status, dies or is too late. False
# if it did not come as far as its first process, for the reason in not_booted.
wait_for_report() {
	local part='' line='' status
	while [[ -z ${fact[exit]-} ]]; do
		(($(now_ms) < deadline_ms)) || give_up "$EXIT_TIMEOUT" "timeout: not done after $limit_s s"
		status=0
		IFS= read -r -t 0.5 -u "$status_r" part || status=$?
		line+=$part
		if ((status == 0)); then
			take_fact "$line"
			line=''
		elif ((status <= 128)); then
			await_qemu
			not_booted="ended ($how_it_ended)"
			ended_in_boot && return 1
			give_up "$EXIT_INFRA" "the guest died without reporting a status: $how_it_ended"
		elif stalled_in_boot; then
			not_booted='stalled'
			return 1
		fi
		if ((!lossy)) && [[ -n $vasicd_pid ]] && ! kill -0 "$vasicd_pid" 2>/dev/null; then
			status=0
			wait "$vasicd_pid" || status=$?
			give_up "$EXIT_INFRA" "vasicd died with status $status: $(tail -n 1 "$log_dir/vasicd.log")"
		fi
	done
}

# run_machine: boots it, again if it does not get through its boot, and waits for its report.
run_machine() {
	local boot
	deadline_ms=$(($(now_ms) + limit_s * 1000))
	for ((boot = 1; ; boot++)); do
		start_vasicd
		open_pipes
		start_qemu
		if wait_for_report; then
			return
		fi
		((boot < BOOTS)) || give_up "$EXIT_INFRA" "the guest's kernel $not_booted in the last of $BOOTS boots"
		stop_qemu
		stop_vasicd
		exec {status_r}<&-
		touch -- "$log_dir/serial.log"
		mv -- "$log_dir/serial.log" "$log_dir/serial.$boot.log"
		log "the guest's kernel $not_booted before its first process (see $log_dir/serial.$boot.log): booting it again"
	done
}

# give_up STATUS MESSAGE: show the end of the serial log too.
give_up() {
	local status=$1
	shift
	stop_qemu
	if [[ -s $log_dir/qemu.log ]]; then
		sed 's/^/qemu: /' "$log_dir/qemu.log" | tail -n 5 >&2
	fi
	# A panic's own lines scroll away under those that follow it.
	grep -m 3 -E -A 3 "$SPLAT" "$log_dir/serial.log" 2>/dev/null | tr -d '\r' >&2 || true
	printf -- '---- last %d lines of %s\n' "$TAIL_LINES" "$log_dir/serial.log" >&2
	tail -n "$TAIL_LINES" "$log_dir/serial.log" 2>/dev/null | tr -d '\r' >&2 || true
	printf -- '----\n' >&2
	write_times "$status"
	die "-$status" "$* (logs: $log_dir)"
}

# stop_qemu: its end closes the pipes, so what it wrote reaches our output.
stop_qemu() {
	stop_process "$qemu_pid"
	qemu_pid=''
	wait "$out_pid" 2>/dev/null || true
	wait "$err_pid" 2>/dev/null || true
	out_pid='' err_pid=''
}

# stop_vasicd: its status goes to stop_status.
stop_vasicd() {
	stop_status=0
	[[ -n $vasicd_pid ]] || return 0
	stop_process "$vasicd_pid"
	vasicd_pid=''
}

file_size() {
	stat -c %s -- "$1" 2>/dev/null || echo 0
}

# drain: QEMU may still have to write what the guest has already sent.
drain() {
	local _ out err kmsg end=$((SECONDS + DRAIN_S))
	read -r _ out err kmsg <<<"${fact[exit]}"
	while (($(file_size "$log_dir/stdout.log") < out)) ||
		(($(file_size "$log_dir/stderr.log") < err)) ||
		(($(file_size "$log_dir/kmsg") < kmsg)); do
		if ((SECONDS >= end)); then
			log "some output of the guest was lost"
			return
		fi
		sleep 0.02
	done
}

write_times() {
	local host_total
	host_total=$(($(now_ms) - fact[start]))
	printf '{"accel": "%s", "boot_ms": %s, "kfd_ms": %s, "guest_boot_ms": %s, "guest_kfd_ms": %s, "total_ms": %d, "status": %d}\n' \
		"$accel" "${fact[host_up]-null}" "${fact[host_kfd]-null}" "${fact[guest_up]-null}" \
		"${fact[guest_kfd]-null}" "$host_total" "$1" >"$log_dir/times.json"
}

# kmsg's records (priority,sequence,microseconds,flags;text) as dmesg shows them.
write_dmesg() {
	awk -F'[,;]' '/^[0-9]+,[0-9]+,[0-9]+,/ {
		text = substr($0, index($0, ";") + 1)
		printf "[%5d.%06d] %s\n", int($3 / 1000000), $3 % 1000000, text }' \
		"$log_dir/kmsg" >"$log_dir/dmesg.log"
	rm -f -- "$log_dir/kmsg"
}

# kernel_complained: prints what the kernel said; false if it was content.
kernel_complained() {
	local taint=${fact[taint]:-0}
	if grep -qE "$SPLAT" "$log_dir/dmesg.log"; then
		printf -- '---- from %s\n' "$log_dir/dmesg.log" >&2
		grep -E -B 3 -A 25 -m 3 "$SPLAT" "$log_dir/dmesg.log" | head -n 90 >&2
		printf -- '----\n' >&2
		return 0
	fi
	if ((taint & TAINT_FAULTS)); then
		log "the kernel is tainted by a fault: $taint"
		return 0
	fi
	return 1
}

# finish: turn the report into one status.
finish() {
	local status=${fact[exit]%% *} vasicd_status
	drain
	stop_qemu
	stop_vasicd
	vasicd_status=$stop_status
	write_dmesg
	write_times "$status"
	if kernel_complained; then
		die "the guest's kernel complained; the command's status was $status (logs: $log_dir)"
	fi
	if [[ -n ${fact[fail]-} ]]; then
		tail -n 15 "$log_dir/dmesg.log" >&2
		infra "${fact[fail]} (logs: $log_dir)"
	fi
	# 143: vasicd without a handler for the signal that ends it.
	if ((!lossy && vasicd_status != 0 && vasicd_status != 143)); then
		tail -n "$TAIL_LINES" "$log_dir/vasicd.log" >&2
		infra "vasicd ended with status $vasicd_status (see $log_dir/vasicd.log)"
	fi
	return "$status"
}

main() {
	case ${1-} in
	-h | --help | help) print_header "${BASH_SOURCE[0]}" && exit 0 ;;
	run) shift ;;
	*) usage_error "unknown verb '${1-}'" ;;
	esac
	parse_options "$@"
	need qemu-system-x86_64 qemu-system-x86
	need setpriv util-linux
	find_kernel
	find_vasicd
	check_memory
	trap cleanup EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM
	trap 'exit 129' HUP
	make_tmp
	make_log_dir
	choose_accel
	write_guest_files
	run_machine
	finish
}

main "$@"
