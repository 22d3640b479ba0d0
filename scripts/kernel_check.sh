# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
# shellcheck shell=bash
#
# The command `check` of kernel.sh: compiles the files of the series with W=1 and sparse, and
# finds the warnings that are about lines of the series. Sourced by kernel.sh, which owns the
# source trees and runs make; never run.

# compiled_files SERIES...: prints the driver files that these series add or edit.
compiled_files() {
	{
		overlay_files "$@"
		hooked_files "$@"
	} | grep -E '^drivers/.*\.c$' | sort -u
}

# amdgpu's Makefile builds its neighbours' files as objects of its own folder.
objects_of() {
	sed -E 's|^(drivers/gpu/drm/amd)/([^/]*)/|\1/amdgpu/../\2/|; s|/amdgpu/\.\./amdgpu/|/amdgpu/|; s|\.c$|.o|'
}

# compiler_errors LOG: prints the compiler's errors. Errors of sparse have no source line and do not stop make.
compiler_errors() {
	awk '/\*\*\* .*\.o\] Error/ { print }
		error != "" && /^ +[0-9]+ \|/ { print error; print }
		{ error = /error:/ ? $0 : "" }' "$1"
}

# make_objects LOG OPTION... -- FILE...: compiles the FILEs, even if their objects are up to date.
make_objects() {
	local log_file=$1
	local -a options=() objects
	shift
	while [[ $1 != -- ]]; do
		options+=("$1")
		shift
	done
	shift
	mapfile -t objects < <(printf '%s\n' "$@" | objects_of)
	(cd "$SRC" && rm -f -- "${objects[@]}")
	if ! with_progress "$log_file" kernel_make "${options[@]}" -j"$(nproc)" "${objects[@]}"; then
		compiler_errors "$log_file" | head -n "$SHOWN_ERRORS" >&2 || true
		die "not everything compiles: see $log_file"
	fi
}

# Prints the lines of the series: FILE for an overlay file, FILE:LINE for a line that a hook adds.
our_places() {
	local file
	overlay_files "$@"
	hooked_files "$@" | while read -r file; do
		diff --unchanged-line-format= --old-line-format= --new-line-format="$file:%dn"$'\n' \
			"$PRISTINE/$file" "$SRC/$file" || true
	done
}

# our_complaints LOG SERIES...: prints the warnings of the compiler, of sparse and of kernel-doc
# about the series.
our_complaints() {
	local log_file=$1
	shift
	# amdgpu's Makefile names its neighbours' files amdgpu/../amdkfd/...
	sed -E ':again; s|[^/ :.]+/\.\./||; t again' "$log_file" |
		awk -F: 'NR == FNR { ours[$0]; next }
			/^[^ :]+:[0-9]+:([0-9]+:)? *(warning|error):/ && ($1 in ours || $1 ":" $2 in ours)' \
			<(our_places "$@") - | sort -u
}

# check_series SERIES...: compiles the files that these series add and edit with W=1 and sparse.
check_series() {
	local complaints started=$SECONDS
	local -a files
	make_config
	mapfile -t files < <(compiled_files "$@")
	log "compiling ${#files[@]} files of $* with W=1 and sparse"
	make_objects "$DIR/check.log" -k W=1 C=2 -- "${files[@]}"
	grep -q '^  CHECK ' "$DIR/check.log" || die "sparse did not run: see $DIR/check.log"
	complaints=$(our_complaints "$DIR/check.log" "$@")
	if [[ -n $complaints ]]; then
		printf '%s\n' "$complaints" >&2
		die "$(wc -l <<<"$complaints") warnings in the series: see $DIR/check.log"
	fi
	log "no warning in $*, after $((SECONDS - started)) s"
}

check_sources() {
	local -a drivers
	need sparse sparse
	read -ra drivers <<<"$(driver_series)"
	check_series "$VIRTUAL_GPU_SERIES"
	if ((${#drivers[@]})); then
		FLAVOR=deb use_variant "$VARIANT"
		FLAVOR=deb check_series "${drivers[@]}"
	fi
}
