#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
#
# usage: setup.sh [roots | upstream] [--list] [-h]
#
# Installs the packages that this project needs on a Debian 12 machine, and nothing
# else. If all of them are installed, it ends within a second. It is the only script
# that installs packages; every make target calls it first.
#   roots    install only what scripts/root.py needs, which makes the roots of other Debian
#            releases for `make test-distro`
#   upstream install only what scripts/upstream_plugin.py needs, which builds CRIU's own
#            amdgpu plugin for tests
#   --list   print the package names, one a line, and do nothing
#
# The kernel source and the distribution's configuration of it are installed in the
# version that kernel/BASE pins. If the archive no longer has it, setup.sh installs the
# newest version of the package, and kernel.sh reports whether the patches still apply.
set -euo pipefail
# shellcheck source=lib.sh source-path=SCRIPTDIR
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# cpio and debhelper are build dependencies of the kernel's bindeb-pkg, dpkg-dev and file those of CPack's Debian package.
readonly BUILD_TOOLS=(
	bc bison cmake cpio debhelper dpkg-dev file flex g++ gcc git kmod libc6-dev libelf-dev
	libssl-dev lz4 make ninja-build patch perl pkg-config python3 rsync xz-utils
	zstd
)
readonly GUEST_TOOLS=(
	criu iproute2 procps qemu-system-x86 util-linux
)
readonly ROCM=(
	libdrm-amdgpu1 libdrm-dev libdrm-tests
	libhsa-runtime64-1 libhsakmt-dev libhsakmt1 rocminfo
)
# Compilers and disassemblers of shaders, and the HIP runtime.
readonly SHADERS=(
	clang-15 hipcc libamdhip64-dev llvm-15
)
readonly LIBRARIES=(
	libbenchmark-dev libcli11-dev libgtest-dev liblz4-dev libprotobuf-dev libxxhash-dev
	protobuf-compiler
)
readonly CHECKERS=(
	clang clang-format clang-tidy gcovr groff-base libclang-rt-dev python3-pytest python3-pytest-timeout
	python3-pytest-xdist shellcheck sparse
)
# debootstrap, and the keys that sign the releases that scripts/root.py makes roots of.
readonly ROOTS=(
	debian-archive-keyring debootstrap
)

kernel_packages() {
	sed -n 's/^\(config_\)\{0,1\}package=//p' "$(repo_root)/kernel/BASE"
}

list_packages() {
	if [[ $step == roots ]]; then
		printf '%s\n' "${ROOTS[@]}"
		return
	fi
	if [[ $step == upstream ]]; then
		"$(repo_root)/scripts/upstream_plugin.py" --list
		return
	fi
	printf '%s\n' "${BUILD_TOOLS[@]}" "${GUEST_TOOLS[@]}" "${ROCM[@]}" \
		"${SHADERS[@]}" "${LIBRARIES[@]}" "${CHECKERS[@]}"
	kernel_packages
}

# Prints those of the named packages that are not installed, one a line.
missing_packages() {
	# dpkg-query prints nothing for virtual and unknown names, so these count as missing.
	local have
	have=$(dpkg-query -W -f '${Package} ${db:Status-Status}\n' "$@" 2>/dev/null || true)
	comm -23 <(printf '%s\n' "$@" | sort -u) \
		<(sed -n 's/ installed$//p' <<<"$have" | sort -u)
}

# Prints PACKAGE=VERSION if the archive has the pinned version, else PACKAGE.
pin_kernel_package() {
	local package=$1 version
	version=$(sed -n 's/^version=//p' "$(repo_root)/kernel/BASE")
	if apt-cache madison "$package" | awk '{ print $3 }' | grep -Fx -- "$version" >/dev/null; then
		printf '%s=%s\n' "$package" "$version"
		return
	fi
	log "notice: $package $version is no longer in the archive; installing the newest version"
	printf '%s\n' "$package"
}

install_packages() {
	local wanted=() name
	export DEBIAN_FRONTEND=noninteractive
	log "installing $# packages: $*"
	apt-get update -q >&2 || log "notice: apt-get update failed; installing from the old package lists"
	for name in "$@"; do
		if kernel_packages | grep -Fx -- "$name" >/dev/null; then
			name=$(pin_kernel_package "$name")
		fi
		wanted+=("$name")
	done
	apt-get install -q -y --no-install-recommends "${wanted[@]}" >&2 ||
		die "-$EXIT_INFRA" "apt-get could not install: ${wanted[*]}"
}

main() {
	local packages missing step=''
	if [[ ${1-} == roots || ${1-} == upstream ]]; then
		step=$1
		shift
	fi
	case ${1-} in
	-h | --help) print_header "$0"; exit "$EXIT_PASS" ;;
	--list) list_packages; exit "$EXIT_PASS" ;;
	'') ;;
	*) usage_error "unknown argument '$1'" ;;
	esac
	mapfile -t packages < <(list_packages)
	command -v dpkg-query >/dev/null ||
		die "-$EXIT_INFRA" "not a Debian system; install these yourself: ${packages[*]}"
	mapfile -t missing < <(missing_packages "${packages[@]}")
	if [[ ${#missing[@]} -eq 0 ]]; then
		exit "$EXIT_PASS"
	fi
	[[ $(id -u) -eq 0 ]] ||
		die "-$EXIT_INFRA" "must be root to install: ${missing[*]}"
	install_packages "${missing[@]}"
	mapfile -t missing < <(missing_packages "${packages[@]}")
	[[ ${#missing[@]} -eq 0 ]] ||
		die "-$EXIT_INFRA" "still missing after apt-get: ${missing[*]}"
}

main "$@"
