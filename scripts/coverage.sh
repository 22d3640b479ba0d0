#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
#
# usage: coverage.sh [--report | -h | MACHINE...]
#
# How much of the driver files that amdkfd-criu brings its tests run: lines and
# branches of kfd_criu*.c, without its unit tests. Kselftests, KUnit and kfdtest run
# in virtual machines whose kernel counts (scripts/kernel.sh build criu --coverage),
# one for each kind of chip that takes a path of its own. A table on standard
# output, the same and what did not run in out/coverage/coverage.{txt,html}.
#   --report   judge what the machines counted last time
#   MACHINE    only these run again, of the others it is what they counted last time:
#              names of folders in out/coverage (gfx906, xnack-gfx90a, ...)
# Status 1 when a test failed, below 90 % of the lines, below 80 % of the branches.
set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

HERE=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)
OUT=$(out_dir)
DIR=$OUT/coverage
readonly HERE OUT DIR
readonly LINES_PERCENT=90 BRANCHES_PERCENT=80
readonly KERNEL=criu-coverage GPU_VRAM=256M MACHINE_LIMIT_S=1800
readonly SOURCES=$OUT/kernel/$KERNEL/src DRIVER=drivers/gpu/drm/amd/amdkfd
# gfx906 runs all of it; then: no firmware that schedules; several XCCs; MES, and
# each further layout of MQDs.
readonly FIRST_CHIP=gfx906 CHIPS=(gfx701 gfx803 gfx942 gfx1030 gfx1100 gfx1201)
readonly XNACK_CHIP=gfx90a
failed=0
# Those that are asked for; none: all.
declare -a wanted=()

# machine NAME GPU CASE...: two such GPUs; leaves what was counted in DIR/NAME.
machine() {
	local name=$1 gpu=$2 counted=$DIR/$1
	shift 2
	if ((${#wanted[@]})) && [[ " ${wanted[*]} " != *" $name "* ]]; then
		return
	fi
	rm -rf -- "$counted" && mkdir -p -- "$counted"
	log "$name begins"
	setpriv --pdeathsig TERM "$HERE/vm.sh" run --kernel "$KERNEL" --gpu "$gpu,vram=$GPU_VRAM" --gpu "$gpu,vram=$GPU_VRAM" \
		--env "KFDTEST_CHIP=${gpu%%,*}" --share "$counted" --name "coverage-$name" --timeout "$MACHINE_LIMIT_S" -- \
		"$HERE/guest/coverage.sh" "$counted" "$HERE/guest/gpu-tests.sh" "$OUT/cmake/release/userspace" "$@" \
		>"$DIR/$name.log" 2>&1 || {
		failed=1
		log "$name failed: $DIR/$name.log"
		grep -F '[  FAILED  ]' "$DIR/$name.log" >&2 || tail -n 20 "$DIR/$name.log" >&2
	}
}

machines() {
	local chip selftests=$OUT/kernel/criu/selftests
	machine "$FIRST_CHIP" "$FIRST_CHIP" "kselftests:$selftests" kunit:kfd_criu kunit:kfd_criu_image kunit:kfd_criu_process \
		'kfdtest:*Restore*:SvmTest.*:*Event*:DebuggerTest.*:QueueControlTest.*'
	for chip in "${CHIPS[@]}"; do
		machine "$chip" "$chip" "kselftests:$selftests:fail_nth,image_fuzz" 'kfdtest:*Restore*'
	done
	machine "xnack-$XNACK_CHIP" "$XNACK_CHIP,xnack=1" "kselftests:$selftests:fail_nth,image_fuzz" \
		'kfdtest:*Restore*:XnackTest.*'
}

# merge: what all machines counted, in DIR/counted.json.
merge() {
	local folder
	local -a tracefiles=()
	rm -f -- "$DIR"/*.json
	for folder in "$DIR"/*/; do
		folder=${folder%/}
		compgen -G "$folder/kfd_criu*.gcda" >/dev/null || die "-$EXIT_INFRA" "$folder: nothing was counted"
		# What a branch is stands beside the objects.
		cp -- "$SOURCES/$DRIVER"/kfd_criu*.gcno "$folder"
		(cd -- "$SOURCES" && gcovr --root "$SOURCES" --filter "$DRIVER/kfd_criu" --exclude '.*_test\.c' \
			--exclude '.*\.h' --json "$folder.json" "$folder") || die "gcovr cannot read $folder"
		tracefiles+=(--add-tracefile "$folder.json")
	done
	((${#tracefiles[@]})) || die "nothing was counted yet"
	(cd -- "$SOURCES" && gcovr --root "$SOURCES" "${tracefiles[@]}" --json "$DIR/counted.json" \
		--json-summary "$DIR/summary.json" --html-details "$DIR/coverage.html" --html-self-contained)
}

# Lines and branches of each file, and those that never ran.
report() {
	local -a counted=(--root "$SOURCES" --add-tracefile "$DIR/counted.json")
	python3 - "$DIR/summary.json" <<-'END'
		import json, os, sys
		total = json.load(open(sys.argv[1]))
		rows = [(os.path.basename(row["filename"]), row) for row in total["files"]] + [("total", total)]
		for name, row in rows:
		    print("%-24s lines %5d of %5d %5.1f %%   branches %5d of %5d %5.1f %%" % (
		        name, row["line_covered"], row["line_total"], row["line_percent"] or 0,
		        row["branch_covered"], row["branch_total"], row["branch_percent"] or 0))
	END
	printf '\nLines and branches that did not run:\n'
	gcovr "${counted[@]}" --txt
	gcovr "${counted[@]}" --txt --branches
}

main() {
	local name runs=true
	for name; do
		case $name in
		-h | --help) print_header "${BASH_SOURCE[0]}" && exit 0 ;;
		--report) runs=false ;;
		*)
			[[ " $FIRST_CHIP ${CHIPS[*]} xnack-$XNACK_CHIP " == *" $name "* ]] || usage_error "no machine '$name'"
			wanted+=("$name")
			;;
		esac
	done
	"$runs" || ((${#wanted[@]} == 0)) || usage_error "--report runs no machine"
	need gcovr gcovr
	mkdir -p -- "$DIR"
	if "$runs"; then
		"$HERE/build.sh" release
		"$HERE/kernel.sh" build criu --coverage
		"$HERE/kernel.sh" selftests criu
		((${#wanted[@]})) || rm -rf -- "${DIR:?}"/*
		machines
	fi
	merge
	report >"$DIR/coverage.txt"
	sed '/^$/,$d' "$DIR/coverage.txt"
	log "what did not run: $DIR/coverage.txt, $DIR/coverage.html"
	gcovr --root "$SOURCES" --add-tracefile "$DIR/counted.json" --fail-under-line "$LINES_PERCENT" \
		--fail-under-branch "$BRANCHES_PERCENT" >/dev/null || failed=1
	return "$failed"
}

main "$@"
