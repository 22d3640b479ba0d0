#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
#
# usage: test.sh TIER...
#
#   lint     format, shellcheck, licences, allowed dependencies
#   unit     C++ (release, and vasicd with ASan, UBSan and TSan), fuzzers' first inputs, Python
#   vm       scripts/vm.sh itself
#   series   the patch series: rules, W=1, sparse, the distribution's configuration, export
#            and import again, its kselftests; golden layouts
#   guest    kfdtest, drmtest, rocminfo and amdgpu_stress in virtual machines: every
#            chip, both kernels; hangs, resets, reloads, loss of the GPUs
#   e2e      checkpoint and restore with CRIU in virtual machines
#   all      these, in this order; the kernels are built beside the first ones, and
#            series runs beside vm
#   debug    not among them, for it takes hours: all kselftests on a kernel with KASAN,
#            lockdep, kmemleak and fault injection
#
# Builds what it needs. KTAP on standard output, progress on standard error, logs
# in out/test. A tier that fails hides no other. The last line is
# "N passed, N failed" or "N passed, N failed, N skipped". Status 1 on a failure,
# on a skip that scripts/expected-skips.txt does not name, and on no tests at all.
#
# Environment: BOOT_BOUND_MS (10000), JOBS, VMS (virtual machines beside each
# other), OUT_DIR; FULL_CHIPS (gfx906; or several, or "all"), on which all of the guest
# tier runs, and not only what is a matter of the chip; DEBUG_MUTATIONS (5000) of
# images of each ABI, for the tier debug, and of args twenty times as many;
# DEBUG_CHANCE_STEP (1): of the failures that are injected there, each N-th.
set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

HERE=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)
ROOT=$(repo_root)
OUT=$(out_dir)
LOGS=$OUT/test
readonly HERE ROOT OUT LOGS
# Those that need no kernel first: the kernels are built meanwhile.
readonly TIERS=(lint unit vm series guest e2e) OTHER_TIERS=(debug)
readonly KERNELS=(stock criu)
# The first chip is tested on both kernels, the others on the last one.
readonly CHIPS=(gfx906 gfx701 gfx803 gfx900 gfx908 gfx90a gfx942 gfx1010 gfx1030 gfx1100 gfx1201)
# Where all tests run. Elsewhere those whose code or data differ with the chip; its own
# restores and defects in full: scripts/report.sh.
readonly FULL_CHIPS=${FULL_CHIPS:-gfx906}
# What no chip changes.
readonly ALIKE_KSELFTESTS=args_fuzz,image_fuzz,abi,access,concurrent,pause,race,reset,short_buffers,shared_bo
readonly ONCE_KSELFTESTS=fail_nth,refuse,$ALIKE_KSELFTESTS
readonly ONCE_KFDTESTS='*RestoreSlow*:*Restore*/bo_*:*Restore*/event_pending*:*Restore*/event_state*:*Restore*/svm_*:*Restore*/queue_late*'\
':*Defect*hole_*:*Defect*h5_*:*Defect*h6_*:*Defect*h7_*:*Defect*h8_*:ThunkTest.every_workload*:*WorkloadTest.fails_to_verify*'
# Chips that differ from one of the others in numbers: that they are there, and work.
readonly SIBLING_CHIPS=' gfx900 gfx908 gfx1010 '
readonly SIBLING_KSELFTESTS=$ONCE_KSELFTESTS,devices,objects,old_images,v2
# Where programs map no VRAM and SDMA writes page tables: what is refused there, that the
# rest goes on, and that what fails leaves nothing.
readonly SMALL_BAR=gfx906,vram=512M,vis=64M
readonly SMALL_BAR_KSELFTESTS=$ALIKE_KSELFTESTS,sigkill,devices,old_images,states,v2
readonly SIBLING_KFDTESTS='*Topology*:*QueueKindTest*:*/BoTest.*:*/EvictionTest.*:Aql*:*/RestoreTest*/queue_counter*:*/RestoreTest*/sdma*'
readonly SIBLING_DRMTESTS='*InfoTest*:*CsTest*'
# What is a matter of who schedules: no firmware, HWS, MES.
readonly SCHEDULER_CHIPS=' gfx701 gfx906 gfx1100 ' SCHEDULER_KFDTESTS='ProcessesTest.*' SCHEDULER_KSELFTESTS=sigkill
readonly ONCE_DRMTESTS='*SyncTest*:*ContextTest*:*ShareTest*'
# One of each of the driver's ways to load a queue by hand; gfx701 always does.
readonly NO_HWS_CHIPS=(gfx803 gfx906 gfx1030)
readonly NO_HWS_TESTS='*Queue*:*/EvictionTest.*:Aql*:Pm4*:Event*:Memory*:*/BoTest.*'\
'-*more_queues_than_the_hardware*:*a_hundred_queues*:*gws*'
readonly GPU_VRAM=256M GPU_COUNT=2
# What Debian's ROCm 5.2 knows.
readonly ROCM_CHIPS=' gfx701 gfx803 gfx900 gfx906 gfx908 gfx90a gfx1010 gfx1030 '
# Of the driver's limits for jobs: milliseconds.
readonly HANG_LIMIT_MS=2000
# Of the driver for a preemption; longer than the scheduler's own for a queue (KFD_UNMAP_LATENCY_MS).
readonly PREEMPTION_LIMIT_MS=6000
# One for each way to schedule queues: HWS, MES; and one whose faults may be retried.
readonly FAULT_CHIPS=(gfx906 gfx1100 gfx90a) XNACK_CHIPS=(gfx90a gfx942)
readonly HIP_CHIPS=(gfx906 gfx90a) HIP_VRAM=512M
# One of each scheduler, page-table format and number of XCCs.
readonly DEBUG_CHIPS=(gfx906 gfx701 gfx942 gfx1100) DEBUG_LIMIT_S=36000
# On the first of them only; that what fails leaves nothing is shown on each.
readonly DEBUG_ONCE=refuse,$ALIKE_KSELFTESTS
# 1: each failure; N: each N-th.
readonly DEBUG_CHANCE_STEP=${DEBUG_CHANCE_STEP:-1}
# Images of each ABI; and twenty times as many args.
readonly DEBUG_MUTATIONS=${DEBUG_MUTATIONS:-5000}
# 200 and 50 with `make soak`.
readonly RELOADS=5 RESETS=5
# A virtual machine's memory, and what this machine wants for itself: MiB.
readonly VM_MIB=3072 HOST_MIB=2048
# Seconds: of one unit test, of a shard of them, of all tests in one guest, between signs of life.
readonly UNIT_LIMIT_S=120 SHARD_LIMIT_S=600 GUEST_LIMIT_S=1500 HEARTBEAT_S=30
# The failed cases, in $LOGS: the name of each and first lines of what it said. So many lines are said again at the end.
readonly FAILURES=failures.txt FAILURE_LINES=5 SHOWN_FAILURES=24
# Those that are always among them.
readonly TELLING='BUG[: ]|WARNING: CPU|refcount_t: |RIP: 0010:|Kernel panic|: Failure$'
readonly SHOWN_LINES=40 BOOT_TRIES=3
readonly BOOT_BOUND_MS=${BOOT_BOUND_MS:-10000}

tier='' number=0 passed=0 failed=0 skipped=0 kernels_pid='' tier_pid='' beside_tier='' beside_pid=''
# Virtual machines that run, or whose cases are not shown yet.
declare -a machine_names=() machine_kinds=() machine_pids=()

# ---- cases ------------------------------------------------------------------

# emit VERDICT NAME [REASON]: one case. A skip must be expected.
emit() {
	local verdict=$1 name=$2 reason=${3-}
	number=$((number + 1))
	if [[ $verdict == skip ]] && ! is_expected_skip "$name"; then
		verdict='not ok' reason="skipped, and not in expected-skips.txt: $reason"
	fi
	case $verdict in
	ok) passed=$((passed + 1)) && printf 'ok %d - %s\n' "$number" "$name" ;;
	skip) skipped=$((skipped + 1)) && printf 'ok %d - %s # SKIP %s\n' "$number" "$name" "$reason" ;;
	*)
		failed=$((failed + 1))
		printf 'not ok %d - %s\n' "$number" "$name"
		[[ -z $reason ]] || printf '# %s\n' "$reason"
		printf '%s: %s%s\n' "$tier" "$name" "${reason:+ ($reason)}" >>"$LOGS/$FAILURES"
		;;
	esac
}

is_expected_skip() {
	local skip_tier pattern _
	while read -r skip_tier pattern _; do
		# The right side is a pattern on purpose.
		# shellcheck disable=SC2053
		if [[ $skip_tier == "$tier" && $1 == $pattern ]]; then
			return 0
		fi
	done <"$HERE/expected-skips.txt"
	return 1
}

log_of() {
	printf '%s/%s-%s.log' "$LOGS" "$tier" "${1//[^A-Za-z0-9._-]/-}"
}

# heartbeat TEXT LOG: signs of life while something long runs; ends when killed.
heartbeat() {
	local begin=$SECONDS
	while sleep "$HEARTBEAT_S"; do
		log "$1: $((SECONDS - begin)) s: $(tail -n 1 "$2" 2>/dev/null | tr '\r' '\n' | tail -n 1 | cut -c 1-100)"
	done
}

# run_case NAME COMMAND...: the command is the case.
run_case() {
	local name=$1 file status=0 beat
	shift
	file=$(log_of "$name")
	heartbeat "$name" "$file" &
	beat=$!
	"$@" >"$file" 2>&1 </dev/null || status=$?
	end_tree "$beat"
	if ((status == 0)); then
		emit ok "$name"
	else
		emit 'not ok' "$name" "status $status, log: $file"
		tail -n "$SHOWN_LINES" "$file" | sed 's/^/#   /'
	fi
	return "$((status != 0))"
}

# prepare NAME COMMAND...: a case only when it fails: preparing is no test.
prepare() {
	local before=$number
	run_case "$@" >"$LOGS/$tier-prepare.out" || {
		cat "$LOGS/$tier-prepare.out"
		return 1
	}
	number=$before passed=$((passed - 1))
}

# stream_cases NAME KIND COMMAND...: the command prints cases (ktap.py's KIND);
# each is shown as NAME/CASE as soon as it ends. A command that fails without a
# failed case, or that has no cases, is a failed case itself.
stream_cases() {
	local name=$1 kind=$2 file status cases=0 notes=0 bad=$failed verdict case_name reason last=''
	local -a before=()
	shift 2
	file=$(log_of "$name")
	while IFS=$'\t' read -r verdict case_name reason; do
		case $verdict in
		note)
			printf '#   %s\n' "$case_name"
			if [[ $last != 'not ok' ]]; then
				before+=("$case_name")
			elif ((notes++ < FAILURE_LINES)) || [[ $case_name =~ $TELLING ]]; then
				printf '    %s\n' "$case_name" >>"$LOGS/$FAILURES"
			fi
			;;
		ok | 'not ok' | skip)
			cases=$((cases + 1)) notes=0 last=$verdict
			emit "$verdict" "$name/$case_name" "$reason"
			if [[ $verdict == 'not ok' ]] && ((${#before[@]})); then
				printf '    %s\n' "${before[@]:${#before[@]} > FAILURE_LINES ? ${#before[@]} - FAILURE_LINES : 0}" >>"$LOGS/$FAILURES"
			fi
			before=()
			;;
		esac
	done < <(with_status "$file" "$@" | python3 "$HERE/ktap.py" "$kind")
	status=$(cat "$file.status" 2>/dev/null || echo none)
	if ((cases == 0)); then
		emit 'not ok' "$name has tests" "none ran (status $status, log: $file)"
	elif [[ $status != 0 && $failed -eq $bad ]]; then
		emit 'not ok' "$name ends well" "status $status, log: $file"
	else
		return 0
	fi
	tail -n "$SHOWN_LINES" "$file" 2>/dev/null | sed 's/^/#   /' || true
}

# with_status LOG COMMAND...: all output to LOG and on; the status to LOG.status.
with_status() {
	local file=$1 status=0
	shift
	rm -f -- "$file.status"
	{ "$@" 2>&1 </dev/null || status=$?; echo "$status" >"$file.status"; } | tee "$file"
}

# ---- tiers ------------------------------------------------------------------

tier_lint() {
	stream_cases lint ktap "$HERE/lint.sh" --no-series
}

tier_unit() {
	# What could be built is tested, whatever could not.
	run_case "release builds" "$HERE/build.sh" release || true
	run_ctest release "$OUT/cmake/release"
	run_case "vasicd builds with sanitizers" "$HERE/build.sh" asan userspace/vasicd/all || true
	run_shards asan "$OUT/cmake/asan/userspace/vasicd/vasicd_test" "$OUT/cmake/asan/userspace/vasicd/vasicd_process_test"
	stream_cases fuzz ktap "$HERE/fuzz.sh"
	run_case "vasicd builds for ThreadSanitizer" "$HERE/build.sh" tsan userspace/vasicd/all || true
	run_ctest tsan "$OUT/cmake/tsan/userspace/vasicd"
	stream_cases python cases python3 "$HERE/ktap.py" unittest "$HERE"/*_test.py
}

run_ctest() {
	stream_cases "$1" ctest ctest --test-dir "$2" --output-on-failure --timeout "$UNIT_LIMIT_S" \
		--parallel "${JOBS:-$(nproc)}"
}

# run_shards NAME PROGRAM...: all tests of GoogleTest programs, in a process for each
# processor. One for each test, as ctest has them, costs AddressSanitizer more than the tests.
run_shards() {
	local name=$1 count=${JOBS:-$(nproc)} shard
	local -a pids=()
	shift
	for ((shard = 0; shard < count; shard++)); do
		GTEST_TOTAL_SHARDS=$count GTEST_SHARD_INDEX=$shard \
			with_status "$LOGS/$tier-$name-shard-$shard.out" run_each "$@" >/dev/null &
		pids+=("$!")
	done
	for shard in "${!pids[@]}"; do
		wait "${pids[shard]}" || true
		stream_cases "$name" gtest replay "$LOGS/$tier-$name-shard-$shard.out"
	done
}

# run_each PROGRAM...: all of them, and whether one failed.
run_each() {
	local program status=0
	for program; do
		timeout --kill-after=5 "$SHARD_LIMIT_S" "$program" || status=$?
	done
	return "$status"
}

tier_vm() {
	local kernel
	# All kernels, though it boots only one: a compiler beside a guest would spoil its times.
	for kernel in "${KERNELS[@]}"; do
		prepare "kernel $kernel is built" "$HERE/kernel.sh" build "$kernel" || return 0
	done
	need pytest-3 python3-pytest
	stream_cases vm cases vm_cases
}

# vm_cases: what pytest says of each case, and all the rest as notes.
vm_cases() {
	pytest-3 -v --color=no -p no:cacheprovider "$HERE/../tests/test_vm_units.py" "$HERE/../tests/test_vm.py" |
		sed -uE 's/^[^ ]*::test_(.*) PASSED .*/ok\t\1/; t; s/^[^ ]*::test_(.*) (FAILED|ERROR) .*/not ok\t\1/; t; s/^/note\t/'
}

tier_series() {
	local kernel
	prepare "kernel trees are made" "$HERE/kernel.sh" tree || return 0
	run_case "series follow the rules" "$HERE/series.py" check || true
	run_case "the distribution's configuration takes our options" "$HERE/kernel.sh" deb --config-only || true
	run_case "series compile, also as the distribution does, and W=1 and sparse have no complaint" "$HERE/kernel.sh" check || true
	stream_cases golden gtest "$HERE/golden.sh" "$OUT/kernel/stock/src"
	rm -rf -- "$LOGS/export"
	run_case "export and import give the same tree" "$HERE/series.py" export "$LOGS/export" --verify || true
	for kernel in "${KERNELS[@]}"; do
		[[ $kernel == stock ]] || run_case "kselftests of $kernel build" "$HERE/kernel.sh" selftests "$kernel" || true
	done
}

tier_guest() {
	local kernel
	local -a built=()
	prepare "release builds" "$HERE/build.sh" release || true
	# All kernels first: a compiler beside a guest would spoil its times.
	for kernel in "${KERNELS[@]}"; do
		if prepare "kernel $kernel is built" "$HERE/kernel.sh" build "$kernel"; then
			built+=("$kernel")
			[[ $kernel == stock ]] || prepare "kselftests of $kernel build" "$HERE/kernel.sh" selftests "$kernel" || true
			boot_bound "$kernel-${CHIPS[0]}" --kernel "$kernel" --gpu "${CHIPS[0]},vram=$GPU_VRAM"
		fi
	done
	((${#built[@]})) || return 0
	for kernel in "${built[@]}"; do
		start_chip "$kernel" "${CHIPS[0]}"
	done
	# Those that take long first, so that the last ones end together.
	for chip in "${CHIPS[@]:1}"; do
		start_chip "${built[-1]}" "$chip"
	done
	start_variants "${built[-1]}"
	show_machines
}

# is_full CHIP
is_full() {
	[[ " $FULL_CHIPS " == *@(" $1 "|" all ")* ]]
}

# start_chip KERNEL CHIP: on several GPUs of the chip. The stock kernel does not survive
# all restores; scripts/report.sh asks it.
start_chip() {
	local kernel=$1 chip=$2 without='InjectionTest.*:XnackTest.*' without_drm='*HangTest*:*InjectionTest*'
	local skipped_programs='' only='' only_drm='' i
	local -a gpus=() cases=("sysfs:$chip:$GPU_COUNT")
	if [[ $kernel == stock ]]; then
		without+=':*Restore*:*Defect*'
	else
		if ! is_full "$chip"; then
			skipped_programs=$ONCE_KSELFTESTS without+=:$ONCE_KFDTESTS without_drm+=:$ONCE_DRMTESTS
			if [[ $SIBLING_CHIPS == *" $chip "* ]]; then
				skipped_programs=$SIBLING_KSELFTESTS only=$SIBLING_KFDTESTS only_drm=$SIBLING_DRMTESTS
			fi
			if [[ $SCHEDULER_CHIPS != *" $chip "* ]]; then
				skipped_programs+=,$SCHEDULER_KSELFTESTS without+=:$SCHEDULER_KFDTESTS
			fi
		fi
		# What resets GPUs has machines of its own, below.
		cases+=("kselftests:$OUT/kernel/$kernel/selftests:$skipped_programs,reset" kunit:kfd_criu
			kunit:kfd_criu_image kunit:kfd_criu_process)
	fi
	for ((i = 0; i < GPU_COUNT; i++)); do
		gpus+=(--gpu "$chip,vram=$GPU_VRAM")
	done
	if [[ $ROCM_CHIPS == *" $chip "* ]]; then
		cases+=("rocminfo:$chip:$GPU_COUNT")
	fi
	start_guest "$kernel-$chip" --kernel "$kernel" "${gpus[@]}" --env "KFDTEST_CHIP=$chip" -- \
		"${cases[@]}" debugfs stress "kfdtest:$only-$without" "drmtest:$only_drm-$without_drm"
}

# start_variants KERNEL: what is not a matter of the chip alone.
start_variants() {
	local kernel=$1 chip without
	local -a all=() sysfs=() gpus=()
	for chip in "${CHIPS[@]}"; do
		all+=(--gpu "$chip,vram=64M")
		sysfs+=("sysfs:$chip:1")
	done
	start_guest "$kernel-all-chips" --kernel "$kernel" "${all[@]}" -- \
		"${sysfs[@]}" 'drmtest:*InfoTest*:*ShareTest.every_gpu*:*CsTest.written*'
	# Without a scheduler there are as many queues as slots, and no GWS.
	for chip in "${NO_HWS_CHIPS[@]}"; do
		start_guest "$kernel-no-hws-$chip" --kernel "$kernel" --param sched_policy=2 \
			--gpu "$chip,vram=$GPU_VRAM" --env "KFDTEST_CHIP=$chip" -- "sysfs:$chip:1" debugfs \
			"kfdtest:$NO_HWS_TESTS"
	done
	start_guest "$kernel-hive" --kernel "$kernel" --gpu "gfx90a,hive=1,vram=$GPU_VRAM" \
		--gpu "gfx90a,hive=1,vram=$GPU_VRAM" --env KFDTEST_CHIP=gfx90a -- \
		rocminfo:gfx90a:2 'kfdtest:TwoGpus*:Topology*:Memory*:*/BoTest.*:*/QueueKindTest.*:*/EvictionTest.*' 'drmtest:*ShareTest*:*CsTest*'
	start_guest "$kernel-small-bar" --kernel "$kernel" --gpu "$SMALL_BAR" \
		--env KFDTEST_CHIP=gfx906 -- 'kfdtest:Memory*:Vram*:*/BoTest.*:*/RingQueueTest.*:Topology*:*WorkloadTest*:*small_bar*' \
		"kselftests:$OUT/kernel/$kernel/selftests:$SMALL_BAR_KSELFTESTS" 'drmtest:*BoTest*:*VaTest*:*CsTest*'
	start_guest "$kernel-cpu-page-tables" --kernel "$kernel" --param vm_update_mode=3 \
		--gpu "gfx90a,vram=$GPU_VRAM" --env KFDTEST_CHIP=gfx90a -- 'kfdtest:Memory*:Svm*:*/BoTest.*:*/RingQueueTest.*-*two_gpus*' 'drmtest:*VaTest*:*CsTest*'
	start_guest "$kernel-hangs" --kernel "$kernel" --param "lockup_timeout=$HANG_LIMIT_MS" \
		--gpu "gfx906,vram=$GPU_VRAM" --gpu "gfx1030,vram=$GPU_VRAM" -- 'drmtest:*HangTest*'
	# Each chip alone: some of these faults reset the GPU.
	for chip in "${FAULT_CHIPS[@]}"; do
		start_guest "$kernel-faults-$chip" --kernel "$kernel" --gpu "$chip,vram=$GPU_VRAM" \
			--param "lockup_timeout=$HANG_LIMIT_MS" --param "queue_preemption_timeout_ms=$PREEMPTION_LIMIT_MS" \
			--env "KFDTEST_CHIP=$chip" -- 'kfdtest:InjectionTest.*' 'drmtest:*InjectionTest*' \
			"kselftests:$OUT/kernel/$kernel/selftests:only=reset"
	done
	# And where there is no scheduler, amdgpu runs a job of amdkfd's in a process's VMID.
	start_guest "$kernel-resets-gfx701" --kernel "$kernel" --gpu "gfx701,vram=$GPU_VRAM" --env KFDTEST_CHIP=gfx701 -- \
		"kselftests:$OUT/kernel/$kernel/selftests:only=reset"
	for chip in "${XNACK_CHIPS[@]}"; do
		start_guest "$kernel-xnack-$chip" --kernel "$kernel" --gpu "$chip,xnack=1,vram=$GPU_VRAM" \
			--gpu "$chip,xnack=1,vram=$GPU_VRAM" --env "KFDTEST_CHIP=$chip" -- 'kfdtest:SvmTest.*:XnackTest.*'
	done
	# HIP programs on the chips whose waves are executed. For each GPU HIP compiles its own
	# kernels first, in the guest.
	for chip in "${HIP_CHIPS[@]}"; do
		without='' gpus=(--gpu "$chip,vram=$HIP_VRAM" --gpu "$chip,vram=$HIP_VRAM")
		is_full "$chip" || without=':-Storm*:HipTwoGpus*' gpus=(--gpu "$chip,vram=$HIP_VRAM")
		start_guest "$kernel-hip-$chip" --kernel "$kernel" "${gpus[@]}" -- "hiptest$without"
	done
	start_guest "$kernel-hip-gfx900" --kernel "$kernel" --gpu "gfx900,vram=$HIP_VRAM" --gpu "gfx908,vram=$HIP_VRAM" -- \
		'hiptest:*agrees*:HipTwoGpus*'
	start_machine "$kernel-loops" ktap "$HERE/guest-loops.sh" --kernel "$kernel" --reloads "$RELOADS" \
		--resets "$RESETS" gfx906 gfx1010 gfx1100
	start_machine "$kernel-loss" ktap "$HERE/guest-loops.sh" --loss --kernel "$kernel" gfx906 gfx1100
}

# start_guest NAME VM-OPTION... -- CASE...: see scripts/guest/gpu-tests.sh. Options may have
# another limit than the usual one.
start_guest() {
	local name=$1
	local -a options=()
	shift
	while [[ $1 != -- ]]; do
		options+=("$1")
		shift
	done
	shift
	start_machine "$name" gtest "$HERE/vm.sh" run --name "guest-$name" --timeout "$GUEST_LIMIT_S" "${options[@]}" -- \
		"$HERE/guest/gpu-tests.sh" "$OUT/cmake/release/userspace" "$@"
}

# start_machine NAME KIND COMMAND...: as soon as there is a place; its cases are shown
# in the order of the starts.
start_machine() {
	local name=$1 kind=$2
	shift 2
	while (($(running_machines) >= ${VMS:-$(places)})); do
		sleep 0.2
	done
	log "$name begins"
	with_status "$LOGS/machine-$name.out" setpriv --pdeathsig TERM "$@" >/dev/null &
	machine_names+=("$name") machine_kinds+=("$kind") machine_pids+=("$!")
}

# A virtual machine keeps more than one processor busy, but not two, and not always.
places() {
	local by_memory
	by_memory=$((($(awk '$1 == "MemTotal:" { print int($2 / 1024) }' /proc/meminfo) - HOST_MIB) / VM_MIB))
	printf '%d' "$((by_memory < 2 || $(nproc) < 2 ? 1 : by_memory < 3 ? 2 : 3))"
}

running_machines() {
	local pid count=0
	for pid in "${machine_pids[@]}"; do
		if kill -0 "$pid" 2>/dev/null; then
			count=$((count + 1))
		fi
	done
	printf '%d' "$count"
}

show_machines() {
	local i beat
	heartbeat "virtual machines" "$LOGS/machine-${machine_names[-1]}.out" &
	beat=$!
	for i in "${!machine_names[@]}"; do
		wait "${machine_pids[i]}" || true
		stream_cases "${machine_names[i]}" "${machine_kinds[i]}" replay "$LOGS/machine-${machine_names[i]}.out"
	done
	end_tree "$beat"
	show_matrix
}

# For people; the cases have been judged.
show_matrix() {
	local -a files=("${machine_names[@]/#/$LOGS/machine-}")
	files=("${files[@]/%/.out}")
	python3 "$HERE/matrix.py" "${files[@]}" >"$LOGS/matrix.txt" || true
	sed 's/^/# /' "$LOGS/matrix.txt"
}

# replay LOG: what a machine has printed, and its status.
replay() {
	cat -- "$1"
	return "$(cat -- "$1.status" 2>/dev/null || echo "$EXIT_INFRA")"
}

# judge NAME DETAIL COMMAND...: the detail is shown when the command fails.
judge() {
	local name=$1 detail=$2
	shift 2
	if "$@"; then
		emit ok "$name"
	else
		emit 'not ok' "$name" "$detail"
	fi
}

# boot_time RUN: milliseconds from the start of QEMU to the GPUs; 0 if never.
boot_time() {
	python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["kfd_ms"] or 0)' \
		"$OUT/vm/$1/times.json" 2>/dev/null || echo 0
}

# boot_bound NAME VM-OPTION...: one of a few boots is in time, because another program on
# this machine may have delayed the others.
boot_bound() {
	local name=$1 ms tried='' verdict=false
	local -i tries=0
	shift
	while ((tries++ < BOOT_TRIES)) && ! "$verdict"; do
		"$HERE/vm.sh" run "$@" --name "boot-$name" -- true >&2 || true
		ms=$(boot_time "boot-$name")
		if ((ms > 0 && ms <= BOOT_BOUND_MS)); then
			verdict=true
		fi
		tried+="${tried:+, }$ms ms"
	done
	log "$name/dev-kfd: $tried"
	judge "$name/dev-kfd is there within $BOOT_BOUND_MS ms" "$tried (0: never)" "$verdict"
}

tier_e2e() {
	prepare "release builds" "$HERE/build.sh" release || true
	prepare "kernel criu is built" "$HERE/kernel.sh" build criu || return 0
	stream_cases e2e ktap "$HERE/e2e.sh"
}

tier_debug() {
	local chip without=''
	local -a common=(--kernel criu-debug --timeout "$DEBUG_LIMIT_S" --env "KSELFTEST_LIMIT_S=$DEBUG_LIMIT_S"
		--env "KFD_CRIU_MUTATIONS=$DEBUG_MUTATIONS" --env "KFD_CRIU_FAIL_STEP=$DEBUG_CHANCE_STEP")
	local selftests=$OUT/kernel/criu-debug/selftests
	prepare "release builds" "$HERE/build.sh" release || true
	prepare "kernel criu-debug is built" "$HERE/kernel.sh" build criu --debug || return 0
	prepare "kselftests build" "$HERE/kernel.sh" selftests criu --debug || return 0
	start_guest criu-debug-small-bar "${common[@]}" --gpu "$SMALL_BAR" -- "kselftests:$selftests:only=fail_nth"
	for chip in "${DEBUG_CHIPS[@]}"; do
		start_guest "criu-debug-$chip" "${common[@]}" --gpu "$chip,vram=$GPU_VRAM" --gpu "$chip,vram=$GPU_VRAM" \
			--env "KFDTEST_CHIP=$chip" -- "kselftests:$selftests:$without" \
			kunit:kfd_criu kunit:kfd_criu_image kunit:kfd_criu_process
		without=$DEBUG_ONCE
	done
	show_machines
}

# ---- the run ----------------------------------------------------------------

# start_beside TIER: what is shown when it is its turn.
start_beside() {
	log "tier $1 begins beside the others"
	beside_tier=$1
	rm -f -- "$LOGS/$1.counts"
	tier_process "$1" "$LOGS/$1.counts" >"$LOGS/$1.out" 2>"$LOGS/$1.err" &
	beside_pid=$!
}

# run_tier NAME: in a process of its own, so that its end is not ours.
run_tier() {
	local status=0 counts=$LOGS/$1.counts one=0 two=0 three=0 beat
	if [[ $1 == "$beside_tier" ]]; then
		heartbeat "tier $1" "$LOGS/$1.err" &
		beat=$!
		wait "$beside_pid" || status=$?
		end_tree "$beat"
		beside_pid=''
		cat -- "$LOGS/$1.err" >&2
		cat -- "$LOGS/$1.out"
	else
		rm -f -- "$counts"
		log "tier $1 begins"
		tier_process "$1" "$counts" &
		tier_pid=$!
		wait "$tier_pid" || status=$?
		tier_pid=''
	fi
	if [[ -s $counts ]]; then
		read -r one two three <"$counts"
	else
		two=1
		printf 'not ok - tier %s ended early with status %d\n' "$1" "$status"
		printf '%s: ended early\n' "$1" >>"$LOGS/$FAILURES"
	fi
	if ((one + two == 0)); then
		two=1
		printf 'not ok - tier %s has tests\n' "$1"
		printf '%s: has no tests\n' "$1" >>"$LOGS/$FAILURES"
	fi
	log "tier $1: $one passed, $two failed, $three skipped"
	passed=$((passed + one)) failed=$((failed + two)) skipped=$((skipped + three))
}

tier_process() {
	tier=$1 number=0 passed=0 failed=0 skipped=0
	trap - EXIT INT TERM
	printf 'KTAP version 1\n# tier %s\n' "$1"
	"tier_$1"
	printf '1..%d\n' "$number"
	printf '%d %d %d\n' "$passed" "$failed" "$skipped" >"$2"
}

# The kernels take longest and need no test; kernel.sh makes who needs them wait.
build_kernels_beside() {
	local kernel
	(
		trap - EXIT INT TERM
		for kernel in "${KERNELS[@]}"; do
			nice -n 5 "$HERE/kernel.sh" build "$kernel" || true
		done
	) >"$LOGS/kernels.log" 2>&1 </dev/null &
	kernels_pid=$!
}

# Said again where somebody who sees only the end of the output finds them.
show_failures() {
	local count
	count=$(wc -l <"$LOGS/$FAILURES")
	head -n "$SHOWN_FAILURES" "$LOGS/$FAILURES" | sed 's/^/# failed: /'
	if ((count > SHOWN_FAILURES)); then
		printf '# failed: %d more lines in %s\n' "$((count - SHOWN_FAILURES))" "$LOGS/$FAILURES"
	fi
}

summary() {
	if ((skipped)); then
		printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
	else
		printf '%d passed, %d failed\n' "$passed" "$failed"
	fi
}

cleanup() {
	local status=$? pid
	for pid in $tier_pid $beside_pid $kernels_pid; do
		if kill -0 "$pid" 2>/dev/null; then
			end_tree "$pid"
		fi
	done
	exit "$status"
}

main() {
	local name
	local -a wanted=()
	(($#)) || usage_error "no tier"
	for name; do
		case " ${TIERS[*]} ${OTHER_TIERS[*]} " in
		*" $name "*) wanted+=("$name") ;;
		*)
			case $name in
			-h | --help) print_header "${BASH_SOURCE[0]}" && exit 0 ;;
			all) wanted+=("${TIERS[@]}") ;;
			*) usage_error "no tier '$name'" ;;
			esac
			;;
		esac
	done
	for name in $FULL_CHIPS; do
		[[ " ${CHIPS[*]} all " == *" $name "* ]] || usage_error "FULL_CHIPS: no chip '$name'"
	done
	need python3 python3
	mkdir -p -- "$LOGS"
	: >"$LOGS/$FAILURES"
	cd -- "$ROOT"
	trap cleanup EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM
	if [[ " ${wanted[*]} " == *" unit "* && " ${wanted[*]} " == *" guest "* ]]; then
		build_kernels_beside
	fi
	for name in "${wanted[@]}"; do
		# Much of it keeps one processor busy, and the machines of vm wait often.
		if [[ $name == vm && " ${wanted[*]} " == *" series "* ]]; then
			start_beside series
		fi
		run_tier "$name"
	done
	log "logs: $LOGS and $OUT/vm"
	show_failures
	summary
	((failed == 0 && passed > 0))
}

main "$@"
