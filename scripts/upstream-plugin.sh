#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
#
# usage: upstream-plugin.sh [--list | -h] [RELEASE...]
#
# Builds CRIU and CRIU's own amdgpu plugin from Debian's source package, as the opponent of
# this project's plugin in tests: out/upstream/RELEASE/criu, .../plugin/amdgpu_plugin.so and
# .../version. RELEASE is trixie (CRIU 4.1.1) or sid (4.2.1); without one, both. Nothing of
# it is installed or shipped. If it is built already, it ends at once.
#   --list   prints the names of the packages that the build needs besides those of a
#            compiler (scripts/setup.sh upstream installs them)
#
# To dump PID with it on any kernel, the stock one too, in a guest of scripts/vm.sh:
#   out/upstream/trixie/criu dump -t PID -D IMAGES -L out/upstream/trixie/plugin --link-remap
# apt checks the signature of the archive's lists and the checksum of the source. apt's own
# files are in out/upstream/apt, so the machine's lists of packages stay as they are.
set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

readonly KEYRING=/usr/share/keyrings/debian-archive-keyring.gpg
readonly RELEASES=(trixie sid)
readonly PACKAGES=(
	libcap-dev libdrm-dev libnet1-dev libnl-3-dev libprotobuf-c-dev libprotobuf-dev pkg-config
	protobuf-c-compiler protobuf-compiler uuid-dev
)
# An archive that is being updated may miss a file for a moment.
readonly ATTEMPTS=3 PAUSE_S=5
out=''

# archive: prints the address of the Debian archive that this machine's apt uses.
archive() {
	# shellcheck disable=SC2016  # expanded by apt
	apt-get indextargets 'Created-By: Packages' 'Label: Debian' 'Component: main' --format '$(REPO_URI)' |
		head -n 1 | grep . || printf 'http://deb.debian.org/debian'
}

# private_apt FOLDER COMMAND...: apt with its files and its only source in the folder.
private_apt() {
	local apt=$1
	shift
	"$@" -o "Dir::Etc::SourceList=$apt/sources.list" -o Dir::Etc::SourceParts=/dev/null \
		-o "Dir::State::Lists=$apt/lists" -o "Dir::Cache=$apt/cache" -o APT::Sandbox::User=root
}

# fetch RELEASE FOLDER: downloads the original source of criu into the folder.
fetch() {
	local release=$1 apt=$out/apt/$1 attempt
	mkdir -p -- "$apt/lists/partial" "$apt/cache/archives/partial" "$2"
	printf 'deb-src [signed-by=%s] %s %s main\n' "$KEYRING" "$(archive)" "$release" >"$apt/sources.list"
	for ((attempt = 1; attempt <= ATTEMPTS; attempt++)); do
		# --tar-only: Debian's own changes to criu do not touch the plugin.
		if private_apt "$apt" apt-get update -q >&2 &&
			(cd -- "$2" && private_apt "$apt" apt-get source -q --download-only --tar-only criu >&2); then
			return
		fi
		sleep "$PAUSE_S"
	done
	die "-$EXIT_INFRA" "cannot download the source of criu of Debian $release"
}

# build RELEASE: from the source to out/upstream/RELEASE, which appears complete or not at all.
build() {
	local release=$1 work=$out/$1.build new=$out/$1.new source
	rm -rf -- "$work" "$new"
	mkdir -p -- "$work" "$new/plugin"
	fetch "$release" "$work"
	tar -C "$work" -xf "$work"/criu_*.orig.tar.*
	source=$(echo "$work"/criu-*/)
	log "building ${source#"$out/"}"
	if [[ -n ${CCACHE_DIR-} && -d /usr/lib/ccache ]]; then
		export PATH=/usr/lib/ccache:$PATH CCACHE_BASEDIR=$source
	fi
	make -C "$source" -j"${JOBS:-$(nproc)}" criu amdgpu_plugin >"$out/$release.log" 2>&1 ||
		die "-$EXIT_INFRA" "the build failed (log: $out/$release.log)"
	cp -- "$source/criu/criu" "$new/"
	cp -- "$source/plugins/amdgpu/amdgpu_plugin.so" "$new/plugin/"
	"$new/criu" --version | sed -n 's/^Version: //p' >"$new/version"
	rm -rf -- "${out:?}/$release" "$work"
	mv -- "$new" "$out/$release"
	log "built: CRIU $(<"$out/$release/version") and its plugin in $out/$release"
}

main() {
	local release
	local -a releases=("$@")
	case ${1-} in
	-h | --help) print_header "$0"; exit "$EXIT_PASS" ;;
	--list) printf '%s\n' "${PACKAGES[@]}"; exit "$EXIT_PASS" ;;
	esac
	((${#releases[@]})) || releases=("${RELEASES[@]}")
	out=$(out_dir)/upstream
	for release in "${releases[@]}"; do
		[[ " ${RELEASES[*]} " == *" $release "* ]] || usage_error "no release '$release'; there are ${RELEASES[*]}"
	done
	need protoc-c protobuf-c-compiler
	take_lock "$out/.lock"
	for release in "${releases[@]}"; do
		[[ -s $out/$release/version ]] || build "$release"
	done
}

main "$@"
