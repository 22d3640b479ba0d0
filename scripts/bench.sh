#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
#
# usage: bench.sh
#
# Measures the virtual GPU in one virtual machine with one GPU: kfdbench's figures,
# drmbench's, vasicd's processor time while queues are mapped but idle, and the
# time from boot to /dev/kfd. Prints a table, writes out/bench.json, and fails when a
# figure is beyond its limit.
# Environment: KERNEL (criu), COPY_MIB (256), OUT_DIR.
set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

HERE=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)
OUT=$(out_dir)
readonly HERE OUT
readonly NAME=bench GPU_SPEC=gfx906 LIMIT_S=600
# The guest stays idle for longer than vasicd is measured.
readonly IDLE_S=20 IDLE_MEASURED_S=5
vm_pid='' share=''

# The commands of the guest. KFD shows the queues of a process in sysfs, so the guest
# waits for them there before the host measures.
# shellcheck disable=SC2016  # expanded in the guest
readonly GUEST='
set -eu
share=$1 bench=$2 copy_mib=$3 idle=$4 drmbench=$5
"$bench" --copy-mib "$copy_mib" >"$share/kfdbench.json"
"$drmbench" >"$share/drmbench.json"
"$bench" --idle "$idle" >/dev/null &
pid=$!
until ls -d /sys/class/kfd/kfd/proc/"$pid"/queues/* >/dev/null 2>&1; do
	kill -0 "$pid"
done
touch "$share/idle"
wait "$pid"
'

cleanup() {
	local status=$?
	if [[ -n $vm_pid ]]; then
		kill "$vm_pid" 2>/dev/null || true
		wait "$vm_pid" 2>/dev/null || true
	fi
	exit "$status"
}

# cpu_ticks PID: prints user and system time of the process. It counts the fields of
# /proc/PID/stat from the end of the name, because the name may have blanks.
cpu_ticks() {
	local text
	local -a field
	text=$(<"/proc/$1/stat")
	read -r -a field <<<"${text##*) }"
	printf '%d' "$((field[11] + field[12]))"
}

# wait_for FILE: waits for the file, and fails if the virtual machine ends before.
wait_for() {
	local status=0
	while [[ ! -e $1 ]]; do
		if ! kill -0 "$vm_pid" 2>/dev/null; then
			wait "$vm_pid" || status=$?
			vm_pid=''
			die "the virtual machine ended with status $status (logs: $OUT/vm/$NAME)"
		fi
		sleep 0.1
	done
}

# measure_idle: prints vasicd's processor time as percent of one processor.
measure_idle() {
	local pid begin end hertz
	pid=$(<"$OUT/vm/$NAME/vasicd.pid")
	hertz=$(getconf CLK_TCK)
	begin=$(cpu_ticks "$pid")
	sleep "$IDLE_MEASURED_S"
	end=$(cpu_ticks "$pid")
	awk -v ticks="$((end - begin))" -v hertz="$hertz" -v s="$IDLE_MEASURED_S" \
		'BEGIN { printf "%.2f", 100 * ticks / hertz / s }'
}

# report IDLE_PERCENT: prints the table and writes out/bench.json.
report() {
	python3 - "$share/kfdbench.json" "$share/drmbench.json" "$share/wavebench.json" "$OUT/vm/$NAME/times.json" "$1" "$OUT/bench.json" <<'PYTHON'
import json
import sys
import time

MIB = 1 << 20
# The least and the greatest permitted value of each figure.
LIMITS = {
    "ring_fence_us_median": (0, 300),
    "submit_to_event_us_median": (0, 1000),
    "aql_barriers_per_second": (200_000, float("inf")),
    "sdma_copy_to_host_memcpy_ratio": (0.8, float("inf")),
    "wave_lane_instructions_per_second": (50_000_000, float("inf")),
}

kfdbench, drmbench, wavebench, times, idle, target = sys.argv[1:]
result = json.load(open(kfdbench)) | json.load(open(drmbench)) | json.load(open(wavebench))
clocks = json.load(open(times))

# Reference for the device's copies: the time in which the host copies as many bytes.
size = result["copy_mib"] * MIB
source, copy = bytearray(b"\1") * size, bytearray(size)
best = float("inf")
for _ in range(result["repeat"]):
    begin = time.perf_counter()
    memoryview(copy)[:] = source
    best = min(best, time.perf_counter() - begin)
result["host_memcpy_gbps"] = round(size / best / 1e9, 3)
result["sdma_copy_to_host_memcpy_ratio"] = round(result["sdma_copy_gbps"] / result["host_memcpy_gbps"], 3)
result["vasicd_idle_cpu_percent"] = float(idle)
result["boot_to_kfd_ms"] = clocks["kfd_ms"]
result["guest_boot_to_kfd_ms"] = clocks["guest_kfd_ms"]
result["accel"] = clocks["accel"]
with open(target, "w") as file:
    json.dump(result, file, indent=2)
    file.write("\n")
beyond = 0
for name, value in result.items():
    least, most = LIMITS.get(name, (float("-inf"), float("inf")))
    bad = name in LIMITS and not least <= value <= most
    beyond += bad
    if name != "note":
        print(f"{name:32} {value}" + (f"   BEYOND its limit: {least} to {most}" if bad else ""))
sys.exit(beyond > 0)
PYTHON
}

main() {
	local idle status=0 bench=$OUT/cmake/release/userspace/kfdtest-criu/kfdbench
	case ${1-} in
	'') ;;
	-h | --help) print_header "${BASH_SOURCE[0]}" && exit 0 ;;
	*) usage_error "unknown argument '$1'" ;;
	esac
	need python3 python3
	[[ -x $bench ]] || die "-$EXIT_INFRA" "no kfdbench ($bench): run make build"
	share=$OUT/bench
	rm -rf -- "$share" && mkdir -p -- "$share"
	trap cleanup EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM
	log "measuring in a virtual machine; this takes a minute or two"
	setpriv --pdeathsig TERM "$HERE/vm.sh" run --kernel "${KERNEL:-criu}" --gpu "$GPU_SPEC" --name "$NAME" --timeout "$LIMIT_S" \
		--share "$share" -- bash -c "$GUEST" _ "$share" "$bench" "${COPY_MIB:-256}" "$IDLE_S" \
		"$OUT/cmake/release/userspace/drmtest/drmbench" &
	vm_pid=$!
	wait_for "$share/idle"
	idle=$(measure_idle)
	wait "$vm_pid" || status=$?
	vm_pid=''
	((status == 0)) || die "the virtual machine ended with status $status (logs: $OUT/vm/$NAME)"
	"$OUT/cmake/release/userspace/vasicd/wavebench" >"$share/wavebench.json" || die "wavebench failed (its output: $share/wavebench.json)"
	report "$idle" || status=1
	log "written: $OUT/bench.json"
	return "$status"
}

main "$@"
