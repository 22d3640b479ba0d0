#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
#
# usage: record-images.sh [CHIP...]
#
# Records the images of the kselftest `old_images` again: checkpoints by the stock kernel,
# one for each CHIP (gfx906 gfx942 gfx1030), in out/image_files. They belong into
# image_files/ in the folder of kernel/amdkfd-criu/overlay/**/old_images.c; the README there
# lists the kernels that wrote them.
set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

HERE=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)
OUT=$(out_dir)
readonly HERE OUT LIMIT_S=120

main() {
	local chip folder=$OUT/image_files
	local -a chips=("$@")
	case ${1-} in
	-h | --help) print_header "${BASH_SOURCE[0]}" && exit 0 ;;
	-*) usage_error "unknown argument '$1'" ;;
	esac
	((${#chips[@]})) || chips=(gfx906 gfx942 gfx1030)
	"$HERE/kernel.sh" build stock
	"$HERE/kernel.sh" selftests criu
	mkdir -p -- "$folder"
	for chip in "${chips[@]}"; do
		setpriv --pdeathsig TERM "$HERE/vm.sh" run --kernel stock --gpu "$chip,vram=256M" --name record-images --timeout "$LIMIT_S" \
			--share "$folder" -- "$OUT/kernel/criu/selftests/drivers/gpu/kfd_criu/dump_image" "$folder"
		log "written: $folder/$chip.txt"
	done
}

main "$@"
