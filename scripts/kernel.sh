#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
#
# usage: kernel.sh COMMAND [VARIANT...] [--debug | --coverage] [--upto SERIES/PATCH]
#
#        kernel.sh check [VARIANT]
#        kernel.sh deb [--config-only]
#
# Makes the guest's kernels. VARIANT is a line of kernel/variants (stock, criu);
# without one, all of them.
#   tree      unpack the base, make the source tree of each variant
#   config    tree, then .config from Kconfig.snippets; every option must survive kconfig
#   build     config, then bzImage, modules/ and release
#   headers   tree, then the sanitized user space headers in headers/
#   selftests headers, then the kselftests of the series in selftests/ and as a
#             tarball for machines with GPUs: kfd-criu-selftests.tar.gz
#   all       build and headers
#   check     compile the files that the series add and edit with W=1 and with sparse (criu);
#             a warning in an added file or on a line that a hook adds is an error. The
#             virtual GPU is configured as for build, the others as for deb
#   deb       Debian packages of criu for machines with GPUs, in VARIANT-deb/: the
#             distribution's configuration and our options, no virtual GPU; takes hours.
#             --config-only: just the configuration
#   clean     remove the files made for these variants (without one: the base too)
#   --debug   the variant with the section [debug] (VARIANT-debug)
#   --coverage  the variant with the section [coverage] (VARIANT-coverage): gcov counts
#             the executed lines of the driver files that amdkfd-criu adds
#   --upto    only the patches up to this one (VARIANT-upto); options may be lost
#
# All files are under out/kernel ($OUT_DIR/kernel): pristine/, then for each
# variant src/ config build.log bzImage modules/ release headers/. A build without
# changes compiles nothing and takes a second. ccache: as for build.sh.
set -euo pipefail
# shellcheck source=lib.sh source-path=SCRIPTDIR
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=kernel_config.sh source-path=SCRIPTDIR
source "$(dirname "${BASH_SOURCE[0]}")/kernel_config.sh"
# shellcheck source=kernel_check.sh source-path=SCRIPTDIR
source "$(dirname "${BASH_SOURCE[0]}")/kernel_check.sh"

ROOT=$(repo_root)
readonly ROOT
readonly PROGRESS_PERIOD_S=10
readonly SHOWN_ERRORS=20
# The series that a kernel for machines with GPUs leaves out, and the end of the release name of such a kernel.
readonly VIRTUAL_GPU_SERIES=amdgpu-vasic DEB_VARIANT=criu DEB_SUFFIX=-amdkfd-criu
# Folders of kselftests that the series add.
readonly SELFTESTS='drivers/gpu/drm_handle_at drivers/gpu/kfd_criu'
readonly SELFTESTS_TARBALL=kfd-criu-selftests.tar.gz

# Set by main from the command line.
COMMAND='' FLAVOR='' UPTO='' DEB_STEP='' VARIANTS=()
# Set by main: out/kernel, and the base inside it.
OUT='' PRISTINE=''
# Set by use_variant: the name, its folder, its source tree.
VARIANT='' DIR='' SRC=''

pin() {
	sed -n "s/^$1=//p" "$ROOT/kernel/BASE"
}

series_py() {
	local command=$1
	shift
	"$ROOT/scripts/series.py" "$command" --root "$ROOT" --base "$PRISTINE" "$@"
}

all_variants() {
	sed -n 's/^\([a-z][a-z0-9-]*\):.*/\1/p' "$ROOT/kernel/variants"
}

variant_series() {
	sed -n "s/^$VARIANT: *//p" "$ROOT/kernel/variants"
}

use_variant() {
	VARIANT=$1
	DIR=$OUT/$VARIANT${FLAVOR:+-$FLAVOR}${UPTO:+-upto}
	SRC=$DIR/src
	mkdir -p "$DIR"
}

# Fixed identity and dates: equal sources give equal objects, and cache hits. With
# ccache the compiler itself lists the headers (CCACHE_DEPEND), so ccache need not run the
# preprocessor.
kernel_make() {
	local compiler=gcc suffix=''
	! has_ccache || compiler='ccache gcc'
	[[ $FLAVOR != deb ]] || suffix=$DEB_SUFFIX
	env -u MAKEFLAGS -u MFLAGS -u KCONFIG_CONFIG LC_ALL=C PATH="$PATH:/usr/sbin:/sbin" \
		CCACHE_BASEDIR="$OUT" CCACHE_NOHASHDIR=1 CCACHE_DEPEND=1 \
		make --no-print-directory -C "$SRC" CC="$compiler" HOSTCC="$compiler" LOCALVERSION="$suffix" \
		KBUILD_BUILD_TIMESTAMP='Thu Jan  1 00:00:00 UTC 2026' KBUILD_BUILD_VERSION=1 \
		KBUILD_BUILD_USER=amdkfd-criu KBUILD_BUILD_HOST=localhost "$@" 9>&-
}

# ---- the base ----

tarball_identity() {
	stat -L -c '%n %s %Y' "$1"
}

# If the archive no longer has the pinned version, a newer one is used if the patches apply to it.
check_moved_base() {
	local tree=$1 tarball=$2 variant found
	found=$(sed -n 's/^\(VERSION\|PATCHLEVEL\|SUBLEVEL\) = //p' "$tree/Makefile" | paste -sd .)
	log "notice: $tarball is Linux $found, not $(pin package) $(pin version):" \
		"checking that every hook applies"
	for variant in $(all_variants); do
		"$ROOT/scripts/series.py" apply "$tree" --root "$ROOT" --variant "$variant" \
			--dry-run >/dev/null ||
			die "the $variant kernel cannot be made from this source; see kernel/BASE"
	done
}

# pristine/ is complete when its stamp is there. The stamp is younger than every
# file of it, so a later write through a hard link can be noticed.
make_pristine() {
	local tarball identity sum
	tarball=${LINUX_TARBALL:-$(pin tarball)}
	[[ -f $tarball ]] || die "-$EXIT_INFRA" "$tarball is missing: run scripts/setup.sh"
	identity=$(tarball_identity "$tarball")
	if [[ -f $PRISTINE.stamp && $(<"$PRISTINE.stamp") == "$identity" ]]; then
		return
	fi
	log "unpacking $tarball"
	rm -rf "$PRISTINE" "$PRISTINE.tmp" "$PRISTINE.stamp"
	mkdir -p "$PRISTINE.tmp"
	sum=$(sha256sum "$tarball")
	tar -C "$PRISTINE.tmp" --strip-components=1 --use-compress-program='xz -T0' -xf "$tarball" ||
		die "-$EXIT_INFRA" "cannot unpack $tarball"
	if [[ ${sum%% *} != "$(pin sha256)" ]]; then
		check_moved_base "$PRISTINE.tmp" "$tarball"
	fi
	mv "$PRISTINE.tmp" "$PRISTINE"
	printf '%s\n' "$identity" >"$PRISTINE.stamp"
}

verify_pristine() {
	local written
	written=$(find "$PRISTINE" -type f -newer "$PRISTINE.stamp" -print -quit)
	if [[ -n $written ]]; then
		rm -f "$PRISTINE.stamp"
		die "$written was written through a hard link; the next run unpacks the base again"
	fi
}

# ---- source trees ----

# Prints the source tree from which a new build starts, if there is one: it has a finished
# build of the same base, whose objects stay valid where neither sources nor options differ.
# The tree of the same variant is preferred. Some flavours are left out because all of their
# objects differ, or because they need few objects.
seed_of() {
	local other
	for other in "$OUT/$VARIANT/build.stamp" "$OUT"/*/build.stamp; do
		other=$(dirname "$other")
		if [[ $other != "$DIR" && -d $other/src && $other != *-@(debug|coverage)* ]] &&
			[[ $FLAVOR != @(debug|check|deb) ]] &&
			cmp -s "$other/base.stamp" "$PRISTINE.stamp"; then
			realpath "$other/src"
			return
		fi
	done
}

make_source() {
	local seed
	if [[ -d $SRC ]] && cmp -s "$DIR/base.stamp" "$PRISTINE.stamp"; then
		return
	fi
	rm -rf "$SRC" "$SRC.tmp" "$DIR"/*.stamp
	seed=$(seed_of)
	if [[ -n $seed ]]; then
		log "starting $VARIANT from the objects in $seed"
		# Unchanged sources become links to the base; objects become copies, because
		# the build writes to some of its own files in place.
		rsync -a --link-dest="$PRISTINE/" "$seed/" "$SRC.tmp/"
		# Only objtool's make writes absolute paths into its dependency files. They are
		# corrected here, because a new objtool would cause all files to be compiled again.
		find "$SRC.tmp/tools" -name '.*.cmd' -exec sed -i "s|$seed/|$SRC/|g" {} +
	else
		cp -al "$PRISTINE" "$SRC.tmp"
	fi
	mv "$SRC.tmp" "$SRC"
	cp "$PRISTINE.stamp" "$DIR/base.stamp"
}

# Leaves the hash of the applied series in series.state.
make_tree() {
	local report arguments=(--variant "$VARIANT")
	if [[ -n $UPTO ]]; then
		arguments+=(--upto "$UPTO")
	fi
	make_pristine
	make_source
	report=$(series_py apply "$SRC" "${arguments[@]}") || exit "$?"
	sed -n 's/^changed /  &/p' <<<"$report" >&2
	sed -n 's/^state //p' <<<"$report" >"$DIR/series.state"
}

# ---- build ----

# Runs a command with its output in LOG and a line of progress every few seconds.
with_progress() {
	local log_file=$1 started=$SECONDS next=$PROGRESS_PERIOD_S pid status=0
	shift
	# A process group of its own, so that all of it can be stopped.
	set -m
	"$@" >"$log_file" 2>&1 &
	pid=$!
	set +m
	# shellcheck disable=SC2064  # the process known now
	trap "kill -- -$pid 2>/dev/null; exit $EXIT_INFRA" INT TERM
	while kill -0 "$pid" 2>/dev/null; do
		if ((SECONDS - started >= next)); then
			next=$((SECONDS - started + PROGRESS_PERIOD_S))
			printf '  %s kernel: %4d s, %5d steps, %s\n' "$(basename "$DIR")" \
				$((SECONDS - started)) "$(grep -c '^  [A-Z]' "$log_file" || true)" \
				"$(grep '^  [A-Z]' "$log_file" | tail -n 1 | awk '{ print $NF }')" >&2
		fi
		sleep 0.2
	done
	wait "$pid" || status=$?
	trap - INT TERM
	return "$status"
}

show_build_errors() {
	grep -nE -A 2 '(error:|undefined reference|ERROR: |\*\*\* )' "$DIR/build.log" |
		head -n "$SHOWN_ERRORS" >&2 || tail -n "$SHOWN_ERRORS" "$DIR/build.log" >&2
}

# overlay_files SERIES...: the new files of these series, in which a warning is an error.
overlay_files() {
	local name
	for name; do
		[[ ! -d $ROOT/kernel/$name/overlay ]] ||
			find "$ROOT/kernel/$name/overlay" ! -type d -printf '%P\n'
	done
}

# hooked_files SERIES...: the upstream files that these series edit.
hooked_files() {
	local name
	for name; do
		find "$ROOT/kernel/$name" -name overlay -prune -o \( -name '*.patch' -o -name hooks.diff \) \
			-exec sed -n 's|^+++ b/\([^\t ]*\).*|\1|p' {} +
	done | sort -u
}

# A warning in a file of the series fails the build. The time stamp of the source is renewed,
# so that the next build compiles the file and fails again.
check_warnings() {
	local warnings file
	local -a series
	read -ra series <<<"$(variant_series)"
	# amdgpu's Makefile names its neighbours' files amdgpu/../vasic/...
	warnings=$(grep -E '^[^ :]+(:[0-9]+)*: warning: ' "$DIR/build.log" |
		sed -E ':again; s|[^/ :.]+/\.\./||; t again' |
		grep -F -f <(overlay_files "${series[@]}" | sed -n 's/\.[chS]$/./p' | sort -u) || true)
	if [[ -z $warnings ]]; then
		return
	fi
	while IFS=: read -r file _; do
		file=${file%.o}
		if [[ -f $SRC/${file%.c}.c ]]; then
			touch "$SRC/${file%.c}.c"
		elif [[ -f $SRC/$file ]]; then
			touch "$SRC/$file"
		fi
	done <<<"$warnings"
	die "warnings in files of the series:"$'\n'"$(head -n "$SHOWN_ERRORS" <<<"$warnings")"
}

install_products() {
	rm -rf "$DIR/modules.tmp"
	kernel_make -s INSTALL_MOD_PATH="$DIR/modules.tmp" INSTALL_MOD_STRIP=1 modules_install \
		>>"$DIR/build.log" 2>&1 || die "modules_install failed: see $DIR/build.log"
	# These links point into the source tree, which a guest does not need.
	rm -f "$DIR"/modules.tmp/lib/modules/*/{build,source}
	rm -rf "$DIR/modules"
	mv "$DIR/modules.tmp" "$DIR/modules"
	cp "$SRC/arch/x86/boot/bzImage" "$DIR/bzImage"
	kernel_make -s kernelrelease >"$DIR/release"
}

# Prints the options of make that switch gcov on for the measured files. amdgpu's Makefile
# builds amdkfd's objects by this path, and kbuild reads a variable of that name.
coverage_switches() {
	local file
	[[ $FLAVOR == coverage ]] || return 0
	coverage_files | while read -r file; do
		file=${file##*/}
		printf 'GCOV_PROFILE_../amdkfd/%s.o=y\n' "${file%.c}"
	done
}

# Prints the measured files: the code under test without its tests.
coverage_files() {
	overlay_files amdkfd-criu | grep -E '^drivers/.*\.c$' | grep -v '_test\.c$'
}

build_kernel() {
	local state started=$SECONDS
	local -a switches
	make_config
	mapfile -t switches < <(coverage_switches)
	state="$(<"$DIR/config.stamp") $(<"$DIR/series.state")"
	if [[ -f $DIR/build.stamp && $(<"$DIR/build.stamp") == "$state" ]]; then
		return
	fi
	rm -f "$DIR/build.stamp"
	log "building the $(basename "$DIR") kernel"
	if ! with_progress "$DIR/build.log" kernel_make "${switches[@]}" -j"$(nproc)" bzImage modules; then
		show_build_errors
		die "the $(basename "$DIR") kernel does not build: see $DIR/build.log"
	fi
	check_warnings
	install_products
	verify_pristine
	printf '%s\n' "$state" >"$DIR/build.stamp"
	log "built Linux $(<"$DIR/release") in $((SECONDS - started)) s: $DIR/bzImage"
}

install_headers() {
	local state
	make_tree
	state=$(<"$DIR/series.state")
	if [[ -f $DIR/headers.stamp && $(<"$DIR/headers.stamp") == "$state" ]]; then
		return
	fi
	rm -rf "$DIR/headers.stamp" "$DIR/headers" "$DIR/headers.tmp"
	kernel_make -s INSTALL_HDR_PATH="$DIR/headers.tmp" headers_install \
		>"$DIR/headers.log" 2>&1 || die "headers_install failed: see $DIR/headers.log"
	mv "$DIR/headers.tmp" "$DIR/headers"
	printf '%s\n' "$state" >"$DIR/headers.stamp"
	log "headers: $DIR/headers"
}

# Builds the kselftests of the series and their runner, selftests/run_kselftest.sh.
install_selftests() {
	local state folder
	install_headers
	state=$(<"$DIR/series.state")
	if [[ -f $DIR/selftests.stamp && $(<"$DIR/selftests.stamp") == "$state" ]]; then
		return
	fi
	for folder in $SELFTESTS; do
		[[ -d $SRC/tools/testing/selftests/$folder ]] || die "the $(basename "$DIR") tree has no $folder"
	done
	rm -rf "$DIR"/{selftests.stamp,selftests} "$DIR/${SELFTESTS_TARBALL:?}"
	# Their Makefiles do not name the headers of the kernel, so make would keep programs built with older ones.
	{ kernel_make kselftest-clean TARGETS="$SELFTESTS" &&
		kernel_make kselftest-install TARGETS="$SELFTESTS" INSTALL_PATH="$DIR/selftests"; } \
		>"$DIR/selftests.log" 2>&1 || die "the selftests do not build: see $DIR/selftests.log"
	# make continues after an error, and installs what it could build.
	if grep -nE "(${SELFTESTS// /|}).*(warning|error): |^[a-z0-9_/]*\.[ch]:.*(warning|error): " "$DIR/selftests.log"; then
		die "warnings or errors in the selftests: see $DIR/selftests.log"
	fi
	tar -C "$DIR" -czf "$DIR/$SELFTESTS_TARBALL" selftests
	printf '%s\n' "$state" >"$DIR/selftests.stamp"
	log "selftests: $DIR/$SELFTESTS_TARBALL"
}

# ---- packages ----

build_deb() {
	local started=$SECONDS
	make_config
	if [[ $DEB_STEP == config-only ]]; then
		return
	fi
	need dh_builddeb debhelper
	rm -f "$DIR"/*.deb
	if ! with_progress "$DIR/build.log" kernel_make KDEB_CHANGELOG_DIST=unstable \
		-j"$(nproc)" bindeb-pkg; then
		show_build_errors
		die "the packages do not build: see $DIR/build.log"
	fi
	log "packages in $((SECONDS - started)) s:"
	ls "$DIR"/*.deb
}

clean_variant() {
	rm -rf "$DIR"
}

# ---- command line ----

parse_arguments() {
	while [[ $# -gt 0 ]]; do
		case $1 in
		-h | --help) print_header "$0"; exit "$EXIT_PASS" ;;
		--debug | --coverage)
			[[ -z $FLAVOR || --$FLAVOR == "$1" ]] || usage_error "--$FLAVOR and $1"
			FLAVOR=${1#--}
			;;
		--config-only) DEB_STEP=${1#--} ;;
		--upto)
			[[ $# -ge 2 ]] || usage_error "--upto needs SERIES/PATCH"
			UPTO=$2
			shift
			;;
		-*) usage_error "unknown option '$1'" ;;
		*)
			if [[ -z $COMMAND ]]; then
				COMMAND=$1
			elif all_variants | grep -Fx -- "$1" >/dev/null; then
				VARIANTS+=("$1")
			else
				usage_error "no variant '$1' in kernel/variants"
			fi
			;;
		esac
		shift
	done
	[[ $COMMAND =~ ^(tree|config|build|headers|selftests|all|check|deb|clean)$ ]] ||
		usage_error "unknown command '$COMMAND'"
	[[ -z $DEB_STEP || $COMMAND == deb ]] || usage_error "--$DEB_STEP is for deb"
	# Each flavour has a tree of its own, so that the objects of the other trees stay valid.
	if [[ $COMMAND == @(check|deb) ]]; then
		[[ -z $FLAVOR$UPTO ]] || usage_error "$COMMAND knows no such option"
		FLAVOR=$COMMAND
		((${#VARIANTS[@]})) || VARIANTS=("$DEB_VARIANT")
	fi
}

run_command() {
	use_variant "$1"
	case $COMMAND in
	tree) make_tree ;;
	config) make_config ;;
	build) build_kernel ;;
	headers) install_headers ;;
	selftests) install_selftests ;;
	all)
		build_kernel
		install_headers
		;;
	check) check_sources ;;
	deb) build_deb ;;
	clean) clean_variant ;;
	esac
}

main() {
	local variant
	parse_arguments "$@"
	need make make
	need rsync rsync
	need git git
	OUT=$(out_dir)/kernel
	PRISTINE=$OUT/pristine
	take_lock "$(dirname "$OUT")/kernel.lock"
	if [[ $COMMAND == clean && ${#VARIANTS[@]} -eq 0 ]]; then
		rm -rf "$OUT"
		exit "$EXIT_PASS"
	fi
	if [[ ${#VARIANTS[@]} -eq 0 ]]; then
		mapfile -t VARIANTS < <(all_variants)
	fi
	for variant in "${VARIANTS[@]}"; do
		run_command "$variant"
	done
}

main "$@"
