# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
# shellcheck shell=bash
#
# The configuration of a kernel: which sections of Kconfig.snippets a variant has, .config, and
# the check that kconfig kept every option. Sourced by kernel.sh, which chooses the variant and
# owns the source trees; never run.

# fragment SECTION...: prints the option lines of these sections without their reasons. The
# last line of an option counts.
fragment() {
	awk -v sections="$*" '
		BEGIN { split(sections, names, " "); for (i in names) wanted["[" names[i] "]"] }
		/^\[/ { on = ($1 in wanted); next }
		on && /^CONFIG_/ { sub(/[ \t]+#.*/, ""); name = $0; sub(/=.*/, "", name)
			if (!(name in line)) order[++n] = name
			line[name] = $0 }
		END { for (i = 1; i <= n; i++) print line[order[i]] }' "$ROOT/Kconfig.snippets"
}

variant_fragment() {
	local sections
	sections="base amdgpu criu containers vm ksft $(variant_series) $FLAVOR"
	if [[ $FLAVOR == deb ]]; then
		sections="amdgpu criu ksft $(driver_series) deb"
	fi
	# shellcheck disable=SC2086  # a list of words
	fragment $sections
}

# Prints the series of the variant without the virtual GPU's.
driver_series() {
	local series
	read -ra series <<<"$(variant_series)"
	printf '%s ' "${series[@]/#$VIRTUAL_GPU_SERIES/}"
}

# deb_fragment THEIRS: prints the fragment; an option that is a module in the distribution's
# configuration THEIRS stays a module.
deb_fragment() {
	local name value had
	while IFS='=' read -r name value; do
		had=$(sed -n "s/^$name=//p" "$1")
		if [[ $had == m && $value == y ]]; then
			value=m
		fi
		printf '%s=%s\n' "$name" "$value"
	done
}

# Prints the options of the fragment that .config does not have.
lost_options() {
	local line name
	while read -r line; do
		name=${line%%=*}
		if [[ $line == *=n ]]; then
			! grep -q "^$name=" "$1" || printf '%s\n' "$line"
		else
			grep -Fxq -- "$line" "$1" || printf '%s\n' "$line"
		fi
	done
}

# configure_like_distribution WANTED: makes .config, and writes the options that must survive into WANTED.
configure_like_distribution() {
	local theirs
	theirs=$(pin config)
	[[ -f $theirs ]] || die "-$EXIT_INFRA" "$theirs is missing: run scripts/setup.sh"
	xzcat "$theirs" >"$DIR/config.theirs"
	variant_fragment | deb_fragment "$DIR/config.theirs" >"$1"
	cat "$DIR/config.theirs" "$1" >"$SRC/.config"
	kernel_make -s olddefconfig >"$DIR/config.log" 2>&1
}

# Prints everything that a configuration depends on: the options, the compiler, and the
# Kconfig files that the series change (series.py's manifest has one path a line).
config_state() {
	local path
	{
		printf '%s\n' "$(variant_fragment)" "$(gcc -dumpfullversion)"
		[[ $FLAVOR != deb ]] || cat "$(pin config)"
		sed -n 's/^"\(.*Kconfig[^"]*\)",\{0,1\}$/\1/p' "$SRC/.series-manifest" |
			while read -r path; do
				cat "$SRC/$path" 2>/dev/null || true
			done
	} | sha256sum
}

make_config() {
	local lost wanted=$DIR/config.fragment state
	make_tree
	state=$(config_state)
	if [[ -f $SRC/.config && -f $DIR/config.stamp && $(<"$DIR/config.stamp") == "$state" ]]; then
		return
	fi
	rm -f "$DIR/config.stamp"
	cp -p "$SRC/.config" "$DIR/config.old" 2>/dev/null || rm -f "$DIR/config.old"
	if [[ $FLAVOR == deb ]]; then
		configure_like_distribution "$wanted"
	else
		# Like tinyconfig, but options with "default y" are off too, unless the fragment
		# asks for them: each option that is on has a reason.
		variant_fragment >"$wanted"
		kernel_make -s KCONFIG_ALLCONFIG="$wanted" allnoconfig >"$DIR/config.log" 2>&1
	fi || die "configuration failed: $(tail -n 3 "$DIR/config.log") ($DIR/config.log)"
	lost=$(lost_options "$SRC/.config" <"$wanted")
	if [[ -n $lost && -z $UPTO ]]; then
		die "options of Kconfig.snippets that did not survive (missing dependency or" \
			"no such option):"$'\n'"$lost"
	fi
	# An unchanged configuration keeps its time stamp, so make compiles nothing.
	if [[ -f $DIR/config.old ]] && cmp -s "$DIR/config.old" "$SRC/.config"; then
		cp -p "$DIR/config.old" "$SRC/.config"
	fi
	cp "$SRC/.config" "$DIR/config"
	printf '%s\n' "$state" >"$DIR/config.stamp"
}
