#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
#
# usage: lint.sh [--no-series] [--tidy]
#
# Checks of the sources: KTAP on standard output, what is wrong as "# " lines.
#   --no-series   without scripts/series.py check, which needs a kernel tree
#   --tidy        with clang-tidy, which takes long and needs a build
# Files are those that git knows, and new ones that it does not ignore.
set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

number=0 failed=0
declare -a files=()

# list_files: every file of the project that exists.
list_files() {
	local file
	while IFS= read -r -d '' file; do
		if [[ -f $file && ! -L $file ]]; then
			files+=("$file")
		fi
	done < <(git -c safe.directory="$PWD" ls-files -z --cached --others --exclude-standard)
	((${#files[@]})) || die "-$EXIT_INFRA" "git lists no files: lint needs a git work tree"
}

# check NAME COMMAND...: one case; its output is shown when it fails.
check() {
	local name=$1 text
	shift
	number=$((number + 1))
	if text=$("$@" 2>&1 </dev/null); then
		printf 'ok %d - %s\n' "$number" "$name"
	else
		failed=$((failed + 1))
		printf 'not ok %d - %s\n' "$number" "$name"
		printf '%s\n' "$text" | sed -n '1,60s/^/# /p'
	fi
}

cpp_files() {
	printf '%s\0' "${files[@]}" | grep -zE '^userspace/.*\.(cc|h)$'
}

check_format() {
	local file bad=0
	while IFS= read -r -d '' file; do
		if ! clang-format --dry-run -Werror "$file" >/dev/null 2>&1; then
			printf '%s: run clang-format -i\n' "$file"
			bad=1
		fi
	done < <(cpp_files)
	return "$bad"
}

# Shell scripts are known by their first line, or by name when they are sourced.
shell_files() {
	local file line
	for file in "${files[@]}"; do
		line=''
		IFS= read -r line <"$file" 2>/dev/null || true
		if [[ $line =~ ^#!.*(ba)?sh( |$) || $file == *.sh ]]; then
			printf '%s\0' "$file"
		fi
	done
}

check_shell() {
	shell_files | xargs -0r shellcheck
}

# needs_licence FILE: false for what cannot or need not carry a line: JSON and
# data have no comments; Markdown and mails to be are prose; hooks.diff, `files`
# and `series` are read by programs line by line.
needs_licence() {
	case $1 in
	*.md | *.json | *.diff | *.patch | *.svg | *.png | *.bin | *.img | *.csv) return 1 ;;
	kernel/*/patches/*/message | kernel/*/patches/*/files | kernel/*/series) return 1 ;;
	LICENSE* | COPYING* | */LICENSE* | .gitattributes | .gitignore | */.gitignore | .clang-format) return 1 ;;
	esac
}

check_licences() {
	local file bad=0
	for file in "${files[@]}"; do
		if needs_licence "$file" && [[ -s $file ]] &&
			! head -n 5 -- "$file" | LC_ALL=C grep -aq 'SPDX-License-Identifier: '; then
			printf '%s: no SPDX-License-Identifier in its first lines\n' "$file"
			bad=1
		fi
	done
	return "$bad"
}

check_tidy() {
	local build
	build=$(out_dir)/cmake/release
	scripts/build.sh release >/dev/null
	printf '%s\0' "${files[@]}" | grep -zE '^userspace/.*\.cc$' |
		xargs -0r -n 8 -P "$(nproc)" clang-tidy --quiet --warnings-as-errors='*' -p "$build"
}

main() {
	local series=1 tidy=0
	while (($#)); do
		case $1 in
		-h | --help) print_header "${BASH_SOURCE[0]}" && exit 0 ;;
		--no-series) series=0 ;;
		--tidy) tidy=1 ;;
		*) usage_error "unknown option '$1'" ;;
		esac
		shift
	done
	need clang-format clang-format
	need shellcheck shellcheck
	need git git
	cd -- "$(repo_root)"
	list_files
	printf 'KTAP version 1\n'
	check "C++ is formatted" check_format
	check "shell scripts pass shellcheck" check_shell
	check "files name their licence" check_licences
	check "dependencies follow ARCHITECTURE.md" python3 scripts/check_layers.py
	check "the functions that ARCHITECTURE.md names exist" scripts/check_steps.py
	if ((series)); then
		scripts/kernel.sh tree >&2
		check "series follow their rules" scripts/series.py check
	fi
	if ((tidy)); then
		check "clang-tidy is content" check_tidy
	fi
	printf '1..%d\n' "$number"
	((failed == 0))
}

main "$@"
