#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
#
# usage: record-upstream.sh [trixie | sid]...
#
# Records images of CRIU's own amdgpu plugin: demo_program on the stock kernel, with one GPU
# (trixie) or two (sid), in out/recorded/RELEASE.txt. They belong into
# userspace/plugin/image/recorded, whose README lists who wrote them.
set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

HERE=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)
OUT=$(out_dir)
readonly HERE OUT LIMIT_S=180
readonly -A GPUS=([trixie]=1 [sid]=2)

record() {
	local release=$1 run=$OUT/recorded/$1 criu=$OUT/upstream/$1 step
	local -a gpus=(--gpu 'gfx906,vram=64M,slot=16')
	[[ ${GPUS[$release]} == 1 ]] || gpus+=(--gpu 'gfx906,vram=128M,slot=17')
	rm -rf -- "$run" && mkdir -p -- "$run"
	step="PATH=$criu:\$PATH $HERE/guest/checkpoint.sh $run $criu/plugin"
	setpriv --pdeathsig TERM "$HERE/vm.sh" run --kernel stock "${gpus[@]}" --mem 1G --name record-upstream \
		--timeout "$LIMIT_S" --share "$run" -- bash -c "
			$step start program $OUT/cmake/release/userspace/kfdtest-criu/demo_program --gpus ${GPUS[$release]} &&
			$step dump program images && uname -rv >$run/kernel"
	{
		printf '# SPDX-License-Identifier: MIT\n'
		printf "# by CRIU %s's amdgpu plugin, on Linux %s\n" "$(<"$criu/version")" "$(<"$run/kernel")"
		"$HERE/image_text.py" "$run/images"
	} >"$run.txt"
	log "written: $run.txt"
}

main() {
	local release
	local -a releases=("$@")
	case ${1-} in
	-h | --help) print_header "${BASH_SOURCE[0]}" && exit 0 ;;
	esac
	((${#releases[@]})) || releases=(trixie sid)
	for release in "${releases[@]}"; do
		[[ -n ${GPUS[$release]-} ]] || usage_error "no release '$release'"
	done
	"$HERE/upstream_plugin.py" "${releases[@]}"
	"$HERE/kernel.sh" build stock
	"$HERE/build.sh" release
	for release in "${releases[@]}"; do
		record "$release"
	done
}

main "$@"
