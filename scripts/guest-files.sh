# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
# shellcheck shell=bash disable=SC2154
#
# What guest-init.sh finds in the guest: the two files are a pair. Sourced by
# vm.sh, whose variables say what was asked for: argv[] env[] params[] shares[]
# gpus[] modules driver, and tmp, the folder that is written. Starts nothing.

# The guest reads these before it leaves the host's root behind.
write_guest_files() {
	cp -- "$(dirname -- "${BASH_SOURCE[0]}")/guest-init.sh" "$tmp/init"
	chmod 755 "$tmp" "$tmp/init"
	{
		printf 'cwd=%q\nmodules=%q\ndriver=%d\ngpu_count=%d\n' "$PWD" "$modules" "$driver" "${#gpus[@]}"
		write_list argv "${argv[@]}"
		write_list env "${env[@]}"
		write_list params "${params[@]}"
	} >"$tmp/params"
	printf 'proc /proc proc defaults 0 0\ntmpfs /sys tmpfs mode=755 0 0\n' >"$tmp/fstab.scratch"
	write_fstab >"$tmp/fstab"
	mkdir -p "$tmp"/skeleton/sys/{upper,work,root,keep} "$tmp/skeleton/dev"
	ln -s /proc/self/fd "$tmp/skeleton/dev/fd"
	ln -s /proc/self/fd/0 "$tmp/skeleton/dev/stdin"
	ln -s /proc/self/fd/1 "$tmp/skeleton/dev/stdout"
	ln -s /proc/self/fd/2 "$tmp/skeleton/dev/stderr"
}

# fstab_line SOURCE PATH-IN-THE-GUEST TYPE OPTIONS
fstab_line() {
	local source=$1 path=$2 text
	for text in source path; do
		local -n field=$text
		field=${field//\\/\\134}
		field=${field// /\\040}
		field=${field//$'\t'/\\011}
		field=${field//$'\n'/\\012}
		field=${field//#/\\043}
	done
	printf '%s %s %s %s 0 0\n' "$source" "/sys/root$path" "$3" "$4"
}

# kept_folders: parents before what is below them, each once.
kept_folders() {
	local command=${argv[0]}
	if [[ $command != /*/* ]]; then
		command=$PWD/x
	fi
	printf '%s\n' "$PWD" "$modules" "${command%/*}" | sort -u
}

# What the guest mounts, in this order. /tmp and /run are empty, except for the
# folders that the run itself needs.
write_fstab() {
	local dir top i
	local -a keep
	mapfile -t keep < <(kept_folders)
	fstab_line overlay '' overlay lowerdir=/,upperdir=/sys/upper,workdir=/sys/work
	fstab_line devtmpfs /dev devtmpfs mode=755
	fstab_line devpts /dev/pts devpts mode=620,ptmxmode=666,X-mount.mkdir
	fstab_line tmpfs /dev/shm tmpfs mode=1777,X-mount.mkdir
	fstab_line proc /proc proc defaults
	fstab_line sysfs /sys sysfs defaults
	fstab_line debugfs /sys/kernel/debug debugfs defaults
	fstab_line cgroup2 /sys/fs/cgroup cgroup2 defaults
	for top in /tmp /run; do
		fstab_line "/sys/root$top" "/../keep$top" none bind,X-mount.mkdir
		fstab_line tmpfs "$top" tmpfs "mode=$([[ $top == /tmp ]] && echo 1777 || echo 755)"
		for dir in "${keep[@]}"; do
			if [[ $dir == "$top"/* && -d $dir ]]; then
				fstab_line "/sys/keep$dir" "$dir" none bind,X-mount.mkdir
			fi
		done
	done
	for i in "${!shares[@]}"; do
		fstab_line "share$i" "${shares[i]}" 9p trans=virtio,version=9p2000.L,msize=524288,cache=none,X-mount.mkdir
	done
}

write_list() {
	local list=$1
	shift
	printf '%s=(' "$list"
	if (($#)); then
		printf ' %q' "$@"
	fi
	printf ' )\n'
}
