#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
#
# usage: build.sh PRESET [TARGET...]
#
# Configures and builds the C++ programs in out/cmake/PRESET (presets: see
# CMakePresets.json). Without a TARGET, it builds all of them. Jobs: $JOBS, else one for
# each processor. Where ccache is installed, which scripts/setup.sh does not do, it keeps
# objects in $CCACHE_DIR (an absolute path; else where it does by itself), and a second clone
# or work tree compiles only what differs. Filling it takes a tenth of the time of a build.
set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

main() {
	local preset=${1-} dir launcher=''
	local -a targets=()
	case $preset in
	-h | --help) print_header "${BASH_SOURCE[0]}" && exit 0 ;;
	release | debug | asan | tsan) shift ;;
	*) usage_error "no preset '$preset'" ;;
	esac
	need cmake cmake
	need ninja ninja-build
	dir=$(out_dir)/cmake/$preset
	# Two makes at once must not build in the same folder.
	take_lock "$(out_dir)/cmake/$preset.lock"
	if has_ccache; then
		launcher=ccache
		# Relative paths, so that another clone with the same cache finds the same objects.
		export CCACHE_NOHASHDIR=1
		# The compiler itself lists the headers, so ccache need not run the preprocessor.
		export CCACHE_DEPEND=1
		# With precompiled headers ccache must ignore __TIME__ and macros that no source uses.
		export CCACHE_SLOPPINESS=pch_defines,time_macros
		export CCACHE_BASEDIR=${CCACHE_BASEDIR:-$(repo_root)}
	fi
	cmake -S "$(repo_root)" --preset "$preset" -B "$dir" -DCMAKE_C_COMPILER_LAUNCHER="$launcher" \
		-DCMAKE_CXX_COMPILER_LAUNCHER="$launcher" >"$dir.log" 2>&1 9>&- ||
		{ cat "$dir.log" >&2 && die "cmake cannot configure $preset (log: $dir.log)"; }
	if (($#)); then
		targets=(--target "$@")
	fi
	# Continue after an error: one broken part must not hide the errors of the others.
	cmake --build "$dir" --parallel "${JOBS:-$(nproc)}" "${targets[@]}" -- -k 0 9>&-
}

main "$@"
