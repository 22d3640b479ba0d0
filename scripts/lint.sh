#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
#
# usage: lint.sh [CHECK...]
#        lint.sh --list
#
# Checks the sources, without a CHECK by all checks, and prints KTAP with the errors as
# "# " lines. --list prints the names of the checks. `series` makes a kernel tree first;
# `tidy` (clang-tidy) takes long and needs a build. Both run only when they are named.
# The checked files are those that git knows, and new ones that it does not ignore.
set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

readonly CHECKS=(format shell licences layers seam steps comments)
readonly CHECKS_BY_NAME_ONLY=(series tidy)
# A comment that begins like this is a sentence only together with the line above it.
readonly FIRST_WORDS='(And|Nor|Of|Or|So that|The same|Those|Whose)( |,|$)'
readonly HEADLESS="^[[:space:]]*((//|/?\\*+|#)[[:space:]]+|\"\"\")$FIRST_WORDS"
# In a patch, comments of the lines that it adds.
readonly HEADLESS_ADDED="^\\+[[:space:]]*(//|/?\\*+|#)[[:space:]]+$FIRST_WORDS"

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

# check NAME: runs check_NAME as one case, and prints its output if it fails.
check() {
	local name=$1 text
	number=$((number + 1))
	if text=$("check_$name" 2>&1 </dev/null); then
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

# To start clang-format takes longer than to check a file, so it gets many.
check_format() {
	local errors
	if ! errors=$(cpp_files | xargs -0r -n 64 -P "$(nproc)" clang-format --dry-run -Werror 2>&1); then
		sed -nE 's/^([^:]+):[0-9]+:[0-9]+: error: .*/\1: run clang-format -i/p' <<<"$errors" | sort -u | grep . ||
			printf '%s\n' "$errors"
		return 1
	fi
}

# Prints the shell scripts: files with a shell in the first line, or with a name in .sh.
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
# data have no comments; Markdown and mails are prose; hooks.diff, `files` and
# `series` are read by programs line by line.
needs_licence() {
	case $1 in
	*.md | *.json | *.diff | *.patch | *.svg | *.png | *.bin | *.img | *.csv) return 1 ;;
	kernel/*/patches/*/message | kernel/*/patches/*/files | kernel/*/series) return 1 ;;
	LICENSE* | COPYING* | */LICENSE* | .gitattributes | .gitignore | */.gitignore | .clang-format) return 1 ;;
	esac
}

check_licences() {
	local file lacking
	local -a wanted=()
	for file in "${files[@]}"; do
		if needs_licence "$file" && [[ -s $file ]]; then
			wanted+=("$file")
		fi
	done
	lacking=$(printf '%s\0' "${wanted[@]}" | LC_ALL=C xargs -0r awk '
		function lacks(file) { print file ": no SPDX-License-Identifier in its first lines" }
		FNR == 1 && name != "" { lacks(name) }
		FNR == 1 { name = FILENAME }
		/SPDX-License-Identifier: / { name = "" }
		FNR == 5 || name == "" { nextfile }
		END { if (name != "") lacks(name) }') || return 1
	if [[ -n $lacking ]]; then
		printf '%s\n' "$lacking"
		return 1
	fi
}

check_tidy() {
	local build
	# The preset debug has a compile command for each file; the others compile some files together.
	build=$(out_dir)/cmake/debug
	scripts/build.sh debug >/dev/null
	printf '%s\0' "${files[@]}" | grep -zE '^userspace/.*\.cc$' |
		xargs -0r -n 8 -P "$(nproc)" clang-tidy --quiet --warnings-as-errors='*' -p "$build"
}

check_layers() {
	python3 scripts/check_layers.py
}

check_seam() {
	scripts/check_seam.py
}

check_steps() {
	scripts/check_steps.py
}

check_comments() {
	local bad=0
	! printf '%s\0' "${files[@]}" | grep -zEv '\.(md|patch|diff|txt)$' | xargs -0r grep -nIE -- "$HEADLESS" || bad=1
	! printf '%s\0' "${files[@]}" | grep -zE '\.(patch|diff)$' | xargs -0r grep -nIE -- "$HEADLESS_ADDED" || bad=1
	return "$bad"
}

check_series() {
	scripts/kernel.sh tree
	scripts/series.py check
}

main() {
	local name
	local -a wanted=()
	for name; do
		case " ${CHECKS[*]} ${CHECKS_BY_NAME_ONLY[*]} " in
		*" $name "*) wanted+=("$name") ;;
		*)
			case $name in
			-h | --help) print_header "${BASH_SOURCE[0]}" && exit 0 ;;
			--list) printf '%s\n' "${CHECKS[@]}" && exit 0 ;;
			*) usage_error "no check '$name'" ;;
			esac
			;;
		esac
	done
	need clang-format clang-format
	need shellcheck shellcheck
	need git git
	cd -- "$(repo_root)"
	list_files
	((${#wanted[@]})) || wanted=("${CHECKS[@]}")
	printf 'KTAP version 1\n'
	for name in "${wanted[@]}"; do
		check "$name"
	done
	printf '1..%d\n' "$number"
	((failed == 0))
}

main "$@"
