#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
#
# usage: root.sh [--packages] [-h] ROOT...
#
# Makes the root folders of other Debian releases with debootstrap: out/roots/ROOT, for
# scripts/vm.sh run --root ROOT. Prints first how much it downloads and how long that
# takes; if the root is there already, it ends at once. ROOT is
#   trixie   Debian 13: CRIU 4.1, podman and crun, the thunk 6.2
#   sid      Debian's unstable release: CRIU 4.2
# --packages prints the packages of the roots besides the base system, and does nothing.
#
# debootstrap and then the new root's own apt check the signatures of the archive, with the
# keys of the package debian-archive-keyring. The archive is the one that this machine's apt
# uses. The root appears with all its packages or not at all: killed at any time, root.sh
# begins again, and does not download again what out/roots/packages has. To update a root,
# remove its folder.
set -euo pipefail
# shellcheck source=lib.sh source-path=SCRIPTDIR
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

readonly KEYRING=/usr/share/keyrings/debian-archive-keyring.gpg
# Programs that scripts/guest-init.sh and scripts/guest/ run, CRIU, and libraries of the plugin and of the test programs.
readonly COMMON=(
	criu iproute2 iptables kmod libdrm-amdgpu1 libnuma1 libprotobuf-lite32t64 nftables procps
)
readonly TRIXIE=(
	crun libcriu2 libhsakmt1 podman
)
# What a new root costs: MiB to download, MiB of disk with the downloaded packages, minutes.
readonly -A COST=([trixie]='90 550 3' [sid]='60 350 2')

packages_of() {
	printf '%s\n' "${COMMON[@]}"
	case $1 in
	trixie) printf '%s\n' "${TRIXIE[@]}" ;;
	esac
}

# stamp_of ROOT: prints what the root is made of; a root with another stamp is made again.
stamp_of() {
	printf '%s: minbase %s\n' "$1" "$(packages_of "$1" | sort | tr '\n' ' ')"
}

is_made() {
	[[ -r $roots/$1/root.stamp && $(<"$roots/$1/root.stamp") == "$(stamp_of "$1")" ]]
}

# archive: prints the address of the Debian archive in the configuration of this machine's apt.
archive() {
	local list=()
	mapfile -t list < <(main_archives)
	if [[ ${#list[@]} -eq 0 ]]; then
		# apt knows what an address serves only after it has downloaded the lists.
		apt-get update -q >&2 || die "-$EXIT_INFRA" "apt-get update failed"
		mapfile -t list < <(main_archives)
	fi
	[[ ${#list[@]} -gt 0 ]] || die "-$EXIT_INFRA" "this machine's apt has no Debian archive"
	printf '%s' "${list[0]}"
}

main_archives() {
	# shellcheck disable=SC2016  # expanded by apt
	apt-get indextargets 'Created-By: Packages' 'Label: Debian' 'Component: main' --format '$(REPO_URI)'
}

# host_settings: prints those settings of this machine's apt by which it reaches the archive.
host_settings() {
	apt-config dump | grep -E '^Acquire::(http|https|Retries|Check-Valid-Until|Check-Date)\b.* "[^"]' || true
}

# make_root ROOT: the process that started this one has put it into mount and process
# namespaces of its own, so nothing stays mounted and nothing runs when it ends.
make_root() {
	local name=$1 new=$roots/$1.new uri proxy='' cache=$roots/packages wanted
	uri=$(archive)
	eval "$(apt-config shell proxy Acquire::http::Proxy)"
	[[ -z $proxy ]] || export http_proxy=$proxy
	rm -rf -- "$new"
	mkdir -p -- "$new/var/cache/apt/archives" "$cache"
	mount --bind "$cache" "$new/var/cache/apt/archives"
	log "$name: the base system"
	debootstrap --variant=minbase --force-check-gpg --keyring="$KEYRING" "$name" "$new" "$uri" >&2 ||
		die "-$EXIT_INFRA" "$name: debootstrap failed (log: $new/debootstrap/debootstrap.log)"
	host_settings >"$new/etc/apt/apt.conf.d/99host"
	printf '#!/bin/sh\nexit 101\n' >"$new/usr/sbin/policy-rc.d" # no daemon starts in the new root
	chmod 755 "$new/usr/sbin/policy-rc.d"
	mountpoint -q "$new/proc" || mount -t proc proc "$new/proc"
	mapfile -t wanted < <(packages_of "$name")
	log "$name: ${wanted[*]}"
	in_root apt-get update -q || die "-$EXIT_INFRA" "$name: apt-get update failed"
	in_root apt-get install -q -y --no-install-recommends -o APT::Keep-Downloaded-Packages=true "${wanted[@]}" ||
		die "-$EXIT_INFRA" "$name: apt-get could not install: ${wanted[*]}"
	rm -rf -- "$new/usr/sbin/policy-rc.d" "$new/etc/apt/apt.conf.d/99host" "$new"/var/lib/apt/lists/*
	umount "$new/proc" "$new/var/cache/apt/archives"
	in_root dpkg-query -W >"$new/root.packages"
	stamp_of "$name" >"$new/root.stamp"
	sync -f "$new"
}

in_root() {
	DEBIAN_FRONTEND=noninteractive LC_ALL=C PATH=/usr/sbin:/usr/bin:/sbin:/bin chroot "$new" "$@"
}

# announce ROOT: prints what is about to happen, before anything is downloaded.
announce() {
	local download disk minutes free
	read -r download disk minutes <<<"${COST[$1]}"
	log "$1: downloads up to $download MB, takes $disk MB in $roots and about $minutes minutes"
	free=$(df --output=avail -BM -- "$roots" | tail -n 1 | tr -dc 0-9)
	((free >= disk)) || die "-$EXIT_INFRA" "$1: $disk MB needed, $free MB are free in $roots"
}

provide() {
	local name=$1 begin=$SECONDS
	if is_made "$name"; then
		return
	fi
	[[ $(id -u) -eq 0 ]] || die "-$EXIT_INFRA" "must be root to make $roots/$name"
	announce "$name"
	# setpriv and --kill-child: whatever ends this process ends all that it has started.
	setpriv --pdeathsig KILL unshare --mount --pid --fork --kill-child \
		"${BASH_SOURCE[0]}" --make "$name" </dev/null || exit
	rm -rf -- "$roots/$name.old"
	[[ ! -e $roots/$name ]] || mv -- "$roots/$name" "$roots/$name.old"
	mv -- "$roots/$name.new" "$roots/$name"
	rm -rf -- "$roots/$name.old"
	log "$name: made in $((SECONDS - begin)) s, $(du -sm -- "$roots/$name" | cut -f 1) MB: $roots/$name"
}

main() {
	local name
	[[ $# -gt 0 ]] || usage_error "no root"
	case $1 in
	-h | --help) print_header "$0"; exit "$EXIT_PASS" ;;
	--packages) for name in "${!COST[@]}"; do packages_of "$name"; done | sort -u; exit "$EXIT_PASS" ;;
	esac
	roots=$(out_dir)/roots
	mkdir -p -- "$roots"
	if [[ $1 == --make ]]; then
		make_root "$2"
		exit
	fi
	for name in "$@"; do
		[[ -n ${COST[$name]-} ]] || usage_error "no root '$name'; there are ${!COST[*]}"
	done
	command -v debootstrap >/dev/null || die "-$EXIT_INFRA" "'debootstrap' is missing: run scripts/setup.sh roots"
	take_lock "$roots/.lock"
	for name in "$@"; do
		provide "$name"
	done
}

main "$@"
