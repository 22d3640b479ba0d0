#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
#
# usage: checks.sh PROGRAMS CHECK [CHIP N]
#
# Runs one check of the GPUs in a guest; its status is the result. PROGRAMS is the
# folder of the built parts (out/cmake/release/userspace).
#   sysfs CHIP N      amdkfd shows N GPUs of this chip, with plausible properties
#   rocminfo CHIP N   Debian's rocminfo finds them
#   debugfs           amdkfd's debugfs can be read while queues are mapped
#   stress            Debian's amdgpu_stress copies between VRAM and system memory
set -uo pipefail
# shellcheck source=scripts/guest/lib.sh
source "${BASH_SOURCE[0]%/*}/lib.sh"

readonly KFD_DEBUG=/sys/kernel/debug/kfd STRESS_LIMIT_S=120 IDLE_S=60

# gfx_target_version CHIP: prints major, minor and stepping, two digits each; the last two
# characters of a chip's name are hexadecimal.
gfx_target_version() {
	local digits=${1#gfx}
	printf '%d' "$((10#${digits:0:${#digits}-2} * 10000 + 16#${digits: -2:1} * 100 + 16#${digits: -1}))"
}

property() {
	awk -v name="$2" '$1 == name { print $2 }' "$1/properties"
}

# caches_are_shown NODE LEVELS: the node counts its caches, and each has a level, a size and lines; LEVELS is how
# many levels there are at least. ROCr from version 6 on aborts if a GPU has no cache. There are hundreds, so one awk
# reads all of them.
caches_are_shown() {
	awk -v node="$1" -v levels="$2" -v want="$(property "$1" caches_count)" '
		$1 == "level" { ++count }
		$1 == "level" && ($2 < 1 || $2 > 3) { bad = 1 }
		$1 == "level" && $2 > deepest { deepest = $2 }
		($1 == "size" || $1 == "cache_line_size") && $2 <= 0 { bad = 1 }
		END {
			printf "%s: %d of %d caches, %d levels, at least %d\n", node, count, want, deepest, levels
			exit !(count > 0 && count == want && deepest >= levels && !bad)
		}' "$1"/caches/*/properties
}

# ids_are_amds NODE: libdrm and rocm-smi look for the vendor id in sysfs, ROCr for the device id in the topology.
ids_are_amds() {
	local pci
	pci=/sys/class/drm/renderD$(property "$1" drm_render_minor)/device
	printf '%s: PCI id %s:%s, vendor_id %d, device_id %d\n' "$1" "$(<"$pci/vendor")" "$(<"$pci/device")" \
		"$(property "$1" vendor_id)" "$(property "$1" device_id)"
	[[ $(<"$pci/vendor") == 0x1002 ]] && (($(property "$1" vendor_id) == 0x1002)) &&
		(($(<"$pci/device") == $(property "$1" device_id)))
}

check_sysfs() {
	local chip=$1 want=$2 count=0 node version levels=2
	version=$(gfx_target_version "$chip")
	((version >= 90000)) || levels=1 # kfd_crat.c has no L2 of older chips
	for node in "$KFD_NODES"/*; do
		[[ $(<"$node/gpu_id") != 0 && $(property "$node" gfx_target_version) == "$version" ]] || continue
		cat "$node/properties"
		count=$((count + 1))
		(($(property "$node" simd_count) > 0)) || return 1
		(($(property "$node" num_sdma_engines) > 0)) || return 1
		(($(property "$node" num_cp_queues) > 0)) || return 1
		ids_are_amds "$node" || return 1
		caches_are_shown "$node" "$levels" || return 1
		[[ -c /dev/dri/renderD$(property "$node" drm_render_minor) ]] || return 1
	done
	printf '%d of %d GPUs are %s (%d)\n' "$count" "$want" "$chip" "$version"
	((count == want))
}

check_rocminfo() {
	local text count
	text=$(rocminfo) || { printf 'rocminfo failed\n%s\n' "$text" && return 1; }
	count=$(grep -cE "^ *Name: +$1 *\$" <<<"$text")
	printf '%s\nrocminfo: %d of %d agents\n' "$text" "$count" "$2"
	((count == $2))
}

# A process has queues during the check, because the driver prints MQDs, HQDs and the run
# list by code that is different for each generation of chips.
check_debugfs() {
	local file pid status=0
	"$programs/kfdtest-criu/kfdbench" --idle "$IDLE_S" >/dev/null &
	pid=$!
	wait_for "$IDLE_S" compgen -G "/sys/class/kfd/kfd/proc/$pid/queues/*" >/dev/null || status=1
	for file in mqds hqds rls; do
		cat "$KFD_DEBUG/$file" || status=1
	done
	grep -q 'Compute queue on device\|SDMA queue on device' "$KFD_DEBUG/mqds" || status=1
	kill "$pid" || status=1 # kfdbench would stay idle until its time limit
	wait "$pid"
	return "$status"
}

# amdgpu_stress uses only devices with AMD's vendor id.
check_stress() {
	timeout "$STRESS_LIMIT_S" amdgpu_stress -b v 16m -b g 16m -b v 4m -b g 4m \
		-c 1 2 16m 20 -c 2 1 16m 20 -c 1 3 4m 20 -c 2 4 4m 20
}

main() {
	local check=${2-}
	programs=${1-}
	case $check in
	sysfs | rocminfo | debugfs | stress) "check_$check" "${@:3}" ;;
	*) usage_error "no check '$check'" ;;
	esac
}

main "$@"
