#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
#
# usage: package.sh install [--prefix DIR] [--destdir DIR] [--no-build]
#        package.sh deb [--no-build]
#
#   install   installs CRIU's plugin, kfd-criu, man pages, documents and configuration:
#             the plugin in /usr/lib/criu, where Debian's CRIU looks, the configuration in
#             /etc/criu, the rest below --prefix (/usr/local). Existing configuration is
#             not replaced.
#   deb       makes a Debian package of the same files, with --prefix /usr, in
#             out/cmake/release/package, and prints its name
#
#   --destdir DIR  a folder that stands for / while files are installed
#   --no-build     the programs are built already
set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

# The version of the package is this, and the date and hash of the last commit.
readonly VERSION=0.1

prefix=/usr/local destdir='' build=1
build_dir=''

parse_options() {
	while (($#)); do
		case $1 in
		--prefix | --destdir)
			[[ $# -ge 2 && -n $2 ]] || usage_error "$1 needs a folder"
			[[ $2 == /* ]] || usage_error "$1 needs an absolute path, not '$2'"
			case $1 in
			--prefix) prefix=$2 ;;
			--destdir) destdir=$2 ;;
			esac
			shift 2
			;;
		--no-build) build=0 && shift ;;
		*) usage_error "unknown argument '$1'" ;;
		esac
	done
}

package_version() {
	local commit
	commit=$(git -c safe.directory='*' -C "$(repo_root)" log -1 --date=format:%Y%m%d --format=%cd.%h 2>/dev/null || true)
	printf '%s%s\n' "$VERSION" "${commit:++git$commit}"
}

build_programs() {
	if ((build)); then
		"$(repo_root)/scripts/build.sh" release packaging >&2
	fi
	[[ -f $build_dir/packaging/cmake_install.cmake ]] || die "-$EXIT_INFRA" "nothing is built in $build_dir"
}

do_install() {
	local component
	for component in plugin criu_configuration; do
		DESTDIR=$destdir cmake --install "$build_dir" --prefix "$prefix" --component "$component"
	done
}

do_deb() {
	local file version
	version=$(package_version)
	need dpkg-shlibdeps dpkg-dev
	rm -rf -- "$build_dir/package"
	(cd -- "$build_dir" && umask 022 &&
		cpack -G DEB -D "CPACK_PACKAGE_VERSION=$version" >"$build_dir/package.log" 2>&1) ||
		{ cat "$build_dir/package.log" >&2 && die "cpack failed (log: $build_dir/package.log)"; }
	for file in "$build_dir"/package/*.deb; do
		printf '%s\n' "$file"
	done
}

main() {
	local command=${1-}
	case $command in
	-h | --help) print_header "${BASH_SOURCE[0]}" && exit 0 ;;
	install | deb) shift ;;
	*) usage_error "unknown command '$command'" ;;
	esac
	parse_options "$@"
	need cmake cmake
	build_dir=$(out_dir)/cmake/release
	build_programs
	"do_$command"
}

main "$@"
