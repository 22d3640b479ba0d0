#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
#
# usage: llm.sh RUN PLUGINS STEP [ARG]...
#
# Runs one step of tests/harness/llm.py in a guest with the root llm; its status is the
# result. RUN is a folder that is shared with the host; a run of llama.cpp NAME has the
# folder RUN/NAME with its answer and its log, images are folders of RUN too. PLUGINS is the
# folder of the built plugin. Times are seconds of the guest's clock.
#   whole NAME COMMAND ARG...   runs it to its end; prints how long it took
#   start NAME COMMAND ARG...   starts it so that CRIU can dump it; waits for the first word
#                               of the answer; prints the process id, how long that took,
#                               and the render nodes that the program has open
#   dump NAME IMAGES N          waits until the answer has N words more, then dumps the program;
#                               prints how many words there were before and after the wait, how
#                               long it took, how long CRIU took, and how many words there are
#   restore NAME IMAGES LOG     prints how long CRIU took, and the render nodes
#   finish NAME                 waits until the program has ended; prints how many words the
#                               answer had and has, and how long that took
set -uo pipefail
# shellcheck source=scripts/guest/lib.sh
source "${BASH_SOURCE[0]%/*}/lib.sh"
CRIU_LIMIT_S=900

# A virtual machine without KVM reads 1.3 GB of GPU code before the first word.
readonly FIRST_WORD_LIMIT_S=1800 GROW_LIMIT_S=900 FINISH_LIMIT_S=900
run='' plugins='' words=()

# pid_of NAME: prints the process id of the program.
pid_of() {
	cat -- "$run/$1/pid" || die "-$EXIT_INFRA" "no program was started in $run/$1"
}

# has_words NAME N: succeeds if the answer has N words; sets `words`. It starts no process, because it is called often.
has_words() {
	{ read -r -d '' -a words <"$run/$1/answer"; } 2>/dev/null || true
	((${#words[@]} >= $2))
}

has_words_or_is_gone() {
	has_words "$1" "$2" || is_gone "$3"
}

# since BEGIN: prints the time that has passed since.
since() {
	awk -v a="$1" -v b="$(now_s)" 'BEGIN { printf "%.2f", b - a }'
}

new_run() {
	rm -rf -- "${run:?}/$1" && mkdir -p -- "$run/$1"
}

whole() {
	local name=$1 begin
	new_run "$name" || return 1
	begin=$(now_s)
	"${@:2}" >"$run/$name/answer" 2>"$run/$name/log" </dev/null || { tail_of "$run/$name/log" && return 1; }
	since "$begin"
}

start() {
	local name=$1 begin pid
	new_run "$name" || return 1
	begin=$(now_s)
	# shellcheck disable=SC2016  # expanded by the shell that becomes the program
	start_program bash -c 'exec "${@:2}" >"$1/answer" 2>"$1/log"' bash "$run/$name" "${@:2}"
	pid=$!
	printf '%d\n' "$pid" >"$run/$name/pid"
	# CRIU keeps what it finds out about the kernel. If it has that already, it stops the program at once, and the answer
	# has but a few words more than the caller of `dump` saw.
	criu check >/dev/null 2>&1 || true
	wait_for "$FIRST_WORD_LIMIT_S" has_words_or_is_gone "$name" 1 "$pid"
	has_words "$name" 1 || { tail_of "$run/$name/log" && return 1; }
	printf '%d %s%s' "$pid" "$(since "$begin")" "$(nodes "$pid")"
}

# nodes PID: prints the render nodes that the program has open. It starts no process, because the answer grows meanwhile.
nodes() {
	local node file
	for node in /dev/dri/renderD*; do
		for file in "/proc/$1/fd"/*; do
			[[ $file -ef $node ]] && printf ' %s' "$node" && break
		done
	done
}

# grow NAME N PID: waits until the answer has N words more.
grow() {
	local begin before
	begin=$(now_s)
	has_words "$1" 0
	before=${#words[@]}
	wait_for "$GROW_LIMIT_S" has_words_or_is_gone "$1" "$((before + $2))" "$3"
	has_words "$1" "$((before + $2))" || { tail_of "$run/$1/log" && return 1; }
	is_running "$3" || { printf 'the answer is complete, and the program has ended\n' && return 1; }
	printf '%d %d %s' "$before" "${#words[@]}" "$(since "$begin")"
}

dump() {
	local pid begin took grown log=$run/$2.dump.log local_images=/run/images
	pid=$(pid_of "$1") || return
	grown=$(grow "$1" "$3" "$pid") || { printf '%s\n' "$grown" && return 1; }
	begin=$(now_s)
	criu_dump "$pid" "$local_images" "$plugins" "$log" || { tail_of "$log" && return 1; }
	took=$(since "$begin")
	wait_for "$EXIT_LIMIT_S" is_gone "$pid" || { printf 'the program still runs after its dump\n' && return 1; }
	rm -rf -- "${run:?}/$2"
	cp -r -- "$local_images" "$run/$2" && rm -rf -- "$local_images" || return 1
	has_words "$1" 0
	printf '%s %s %d' "$grown" "$took" "${#words[@]}"
}

restore() {
	local begin pid took local_images=/run/kept log=$run/$3
	pid=$(pid_of "$1") && cp -r -- "$run/$2" "$local_images" || return 1
	begin=$(now_s)
	criu_restore "$local_images" "$plugins" "$log" || { tail_of "$log" && return 1; }
	took=$(since "$begin")
	is_running "$pid" || { tail_of "$log" && return 1; }
	printf '%s%s' "$took" "$(nodes "$pid")"
}

finish() {
	local begin before pid
	begin=$(now_s)
	pid=$(pid_of "$1") || return
	has_words "$1" 0
	before=${#words[@]}
	wait_for "$FINISH_LIMIT_S" is_gone "$pid" || { tail_of "$run/$1/log" && return 1; }
	has_words "$1" 0
	printf '%d %d %s' "$before" "${#words[@]}" "$(since "$begin")"
}

main() {
	local step=${3-}
	(($# >= 3)) || usage_error "no step"
	run=$1
	plugins=$(plugin_of "$2") || exit
	shift 3
	cd /
	case $step in
	whole | start | dump | restore | finish) "$step" "$@" ;;
	*) usage_error "no step '$step'" ;;
	esac
}

main "$@"
