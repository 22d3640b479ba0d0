# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
# shellcheck shell=bash
#
# A container made by hand, for field.sh, which sources this file: pid and mount namespaces,
# a root of its own, and a /dev with one render node. An engine adds more (cgroups, seccomp,
# a network), which CRIU itself saves.

# container unpack ROOT TAR            makes a root, which is a mount because CRIU needs one
# container start ROOT NODE plain|mounted ARG...
#                                      starts the root's /program in a new container that has the render
#                                      node; it reads and writes in /d. `mounted`: its /dev is a file
#                                      system, which CRIU saves. ROOT.pid becomes its process id outside
container() {
	case $1 in
	unpack) unpack_root "$2" "$3" ;;
	start) start_container "${@:2}" ;;
	*) usage_error "no step 'container $1'" ;;
	esac
}

unpack_root() {
	umount -R -- "$1" 2>/dev/null
	mkdir -p -- "$1" && mount -t tmpfs root "$1" && mount --make-private "$1" && tar -C "$1" -xf "$2" &&
		mkdir -p -- "$1"/{dev,proc,sys,tmp,old,d}
}

start_container() {
	local root=$1
	[[ $3 == plain ]] || mount -t tmpfs dev "$root/dev"
	mkdir -p -- "$root"/dev/{dri,shm}
	cp -a -- /dev/{null,zero,kfd} "$root/dev" && cp -a -- "/dev/dri/$2" "$root/dev/dri" || return 1
	# shellcheck disable=SC2016  # expanded by the shell in the namespaces
	start_program unshare --mount --pid --fork setsid bash -c 'mount --make-rprivate / && cd "$0" && mount -t proc proc proc &&
		mount -t sysfs sysfs sys && pivot_root . old && umount -l /old && exec /program --dir /d "$@" </dev/null >/dev/null 2>&1' \
		"$root" "${@:4}"
	wait_for "$PENDING_LIMIT_S" test -s "$root/d/state" || { tail_of "$root/d/log" && return 1; }
	pgrep -P "$!" >"$root.pid"
}
