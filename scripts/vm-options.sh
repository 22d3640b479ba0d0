# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
# shellcheck shell=bash disable=SC2034  # vm.sh uses what is set here
#
# The options of vm.sh, which says what they mean: what was asked for, and whether it
# can be meant. Knows neither QEMU nor this machine. Sourced; needs lib.sh.

readonly FIRST_SLOT=0x10 LAST_SLOT=0x1f DEFAULT_VRAM_MIB=1024

# What was asked for.
kernel=stock mem_mib=2048 smp=2 limit_s=120 name='' trace=0 driver=1 lossy=0 icount=0 bzimage='' modules=''
declare -a gpus=() slots=() shares=() env=() params=() argv=()
vram_mib=0

# size_mib TEXT OPTION: 512M, 2G, 1048576K or bytes, in MiB.
size_mib() {
	local number unit
	[[ $1 =~ ^([0-9]{1,15})([KMGkmg]?)(i?[Bb])?$ ]] || usage_error "$2: '$1' is not a size"
	number=$((10#${BASH_REMATCH[1]})) unit=${BASH_REMATCH[2]^^}
	case $unit in
	G) number=$((number * 1024)) ;;
	K) number=$((number / 1024)) ;;
	'') number=$((number / 1024 / 1024)) ;;
	esac
	((number > 0)) || usage_error "$2: '$1' is less than 1M"
	printf '%d' "$number"
}

# add_gpu SPEC: slot=N is ours; the rest is vasicd's.
add_gpu() {
	local field slot=$((FIRST_SLOT + ${#gpus[@]})) spec='' mib=$DEFAULT_VRAM_MIB
	local -a fields
	[[ $1 != *$'\n'* ]] || usage_error "--gpu: a line break in '$1'"
	IFS=, read -r -a fields <<<"$1"
	for field in "${fields[@]}"; do
		case $field in
		slot=*)
			[[ ${field#slot=} =~ ^(0x[0-9a-fA-F]{1,2}|[0-9]{1,2})$ ]] ||
				usage_error "--gpu: '$field' is not a PCI slot"
			slot=$((${field#slot=}))
			;;
		*)
			if [[ $field == vram=* ]]; then
				mib=$(size_mib "${field#vram=}" --gpu)
			fi
			spec+=${spec:+,}$field
			;;
		esac
	done
	((slot >= FIRST_SLOT && slot <= LAST_SLOT)) ||
		usage_error "--gpu: slot $slot is outside $((FIRST_SLOT))..$((LAST_SLOT))"
	[[ " ${slots[*]-} " != *" $slot "* ]] || usage_error "--gpu: slot $slot is used twice"
	gpus+=("$spec")
	slots+=("$slot")
	vram_mib=$((vram_mib + mib))
}

add_share() {
	local path
	[[ -n $1 && -d $1 ]] || usage_error "--share: '$1' is not a folder"
	path=$(cd -- "$1" && pwd -P)
	# The guest's own root is made of this one, and it must not write to it.
	[[ $path != / ]] || usage_error "--share: not the whole root"
	shares+=("$path")
}

number_option() {
	[[ $2 =~ ^[1-9][0-9]{0,5}$ ]] || usage_error "$1: '$2' is not a positive number"
}

parse_options() {
	while (($#)) && [[ $1 != -- ]]; do
		case $1 in
		-h | --help) print_header "$0" && exit 0 ;;
		--trace) trace=1 && shift && continue ;;
		--no-driver) driver=0 && shift && continue ;;
		--lossy) lossy=1 && shift && continue ;;
		--icount) icount=1 && shift && continue ;;
		--kernel | --gpu | --mem | --smp | --timeout | --share | --env | --param | --name | --bzimage | --modules)
			[[ $# -gt 1 && $2 != -- ]] || usage_error "$1 needs a value" ;;
		*) usage_error "unknown option '$1'" ;;
		esac
		case $1 in
		--kernel) kernel=$2 ;;
		--gpu) add_gpu "$2" ;;
		--mem) mem_mib=$(size_mib "$2" --mem) ;;
		--smp) number_option "$1" "$2" && smp=$2 ;;
		--timeout) number_option "$1" "$2" && limit_s=$2 ;;
		--share) add_share "$2" ;;
		--env) env+=("$2") ;;
		--param) params+=("$2") ;;
		--name) name=$2 ;;
		--bzimage) bzimage=$2 ;;
		--modules) modules=$2 ;;
		esac
		shift 2
	done
	(($# > 1)) || usage_error "no command after --"
	shift
	argv=("$@")
	check_options
}

check_options() {
	local item
	[[ $kernel =~ ^[a-z][a-z0-9_-]*$ ]] || usage_error "--kernel: '$kernel' is not a name"
	[[ -z $name || $name =~ ^[A-Za-z0-9][A-Za-z0-9._-]*$ ]] || usage_error "--name: '$name' is not a file name"
	[[ $name != latest && $name != accel ]] || usage_error "--name: '$name' is reserved"
	((mem_mib >= 256)) || usage_error "--mem: less than 256M"
	for item in "${env[@]}"; do
		[[ $item =~ ^[A-Za-z_][A-Za-z0-9_]*= ]] || usage_error "--env: '$item' is not K=V"
	done
	for item in "${params[@]}"; do
		[[ $item =~ ^[a-z_][a-z0-9_]*= ]] || usage_error "--param: '$item' is not K=V"
	done
	if ((${#gpus[@]} == 0)); then
		driver=0
	fi
}
