# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
# shellcheck shell=bash
#
# A container made by hand, for field.sh, which sources this file: pid and mount namespaces,
# a root of its own with a program and its libraries, and a /dev with one render node. An
# engine adds more (cgroups, seccomp, a network), which CRIU itself saves.

readonly CONTAINERS_DIR=/run/containers FIRST_NODE=renderD128
: "${plugins=}" "${run=}"

# container start NAME DEV PROGRAM ARG...   starts the program in a new container that has the first
#                                           render node; it reads and writes in /d. DEV: `mounted`, its
#                                           /dev is a file system that CRIU saves; `plain`, a folder
# container dump NAME IMAGES LOG            dumps it; the container's files become part of IMAGES
# container unpack NAME IMAGES NODE         makes the root again; its /dev has NODE too, or `none`
# container restore NAME IMAGES LOG         restores it in that root
# container continue NAME                   lets the program continue; prints its result
# container end NAME
container() {
	local step=$1 root=$CONTAINERS_DIR/$2
	shift 2
	case $step in
	start) start_container "$root" "$@" ;;
	dump) dump_container "$root" "$@" ;;
	unpack) unpack_container "$root" "$@" ;;
	restore) restore "$1" "$2" --root "$root" ;;
	continue) continue_container "$root" ;;
	end) end_container "$root" ;;
	*) usage_error "no step 'container $step'" ;;
	esac
}

# new_root ROOT: an empty root, which CRIU can restore because it is a mount.
new_root() {
	umount -R -- "$1" 2>/dev/null
	mkdir -p -- "$1"
	mount -t tmpfs root "$1" && mount --make-private "$1" && mkdir -p -- "$1"/{dev,proc,sys,tmp,old,d}
}

# copy_program ROOT PROGRAM: copies it with its libraries; the copy is ROOT/program.
copy_program() {
	local file
	install -D -- "$2" "$1/program"
	install -D -- "$(command -v umount)" "$1/bin/umount"
	for file in $(ldd "$2" "$(command -v umount)" | grep -o '/[^ )]*'); do
		[[ $file == *: ]] || install -D -- "$file" "$1$file"
	done
}

start_container() {
	local root=$1 dev=$2 program=$3
	shift 3
	new_root "$root" && copy_program "$root" "$program" || return 1
	[[ $dev == plain ]] || mount -t tmpfs dev "$root/dev"
	mkdir -p -- "$root"/dev/{dri,shm}
	cp -a -- /dev/{null,zero,kfd} "$root/dev"
	cp -a -- "/dev/dri/$FIRST_NODE" "$root/dev/dri"
	# shellcheck disable=SC2016  # expanded by the shell in the namespaces
	start_program unshare --mount --pid --fork setsid bash -c 'mount --make-rprivate / && cd "$0" && mount -t proc proc proc &&
		mount -t sysfs sysfs sys && pivot_root . old && umount -l /old && exec /program --dir /d "$@" </dev/null >/dev/null 2>&1' "$root" "$@"
	wait_for "$PENDING_LIMIT_S" test -s "$root/d/state" || { tail_of "$root/d/log" && return 1; }
	container_pid "$root" >"$root/d/pid"
}

# container_pid ROOT: prints the process id, outside of the container, of the program whose root has this ROOT's files.
container_pid() {
	local pid want
	want=$(stat -c %d:%i -- "$1/program")
	for pid in $(pgrep -x program); do
		if [[ $(stat -L -c %d:%i "/proc/$pid/root/program" 2>/dev/null) == "$want" ]]; then
			printf '%d\n' "$pid"
			return 0
		fi
	done
	return 1
}

dump_container() {
	local status=0
	criu_dump "$(<"$1/d/pid")" "$IMAGES_DIR/$2" "$plugins" "$run/$3" || status=$?
	tar -C "$1" --one-file-system --exclude=./proc --exclude=./sys -cf "$IMAGES_DIR/$2/root.tar" .
	printf 'status %d\n' "$status"
}

unpack_container() {
	new_root "$1" && tar -C "$1" -xf "$IMAGES_DIR/$2/root.tar" || return 1
	if [[ $3 != none ]]; then
		cp -a -- "/dev/dri/$3" "$1/dev/dri"
	fi
}

continue_container() {
	container_pid "$1" >/dev/null || { echo "no process" && return 1; }
	: >"$1/d/go"
	result_of "$1/d" || { tail_of "$1/d/log" && return 1; }
}

end_container() {
	local pid
	if pid=$(container_pid "$1"); then
		kill -KILL "$pid"
		wait_for "$EXIT_LIMIT_S" is_gone "$pid" || return 1
	fi
	umount -R -- "$1"
}
