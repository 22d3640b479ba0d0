# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
#
# The front door. Every target sets up what it needs first: packages
# (scripts/setup.sh), then kernels and programs. Work is done by scripts/, each of
# which explains itself with -h; everything generated is under out/.

.DEFAULT_GOAL := help
.PHONY: help setup kernel build install deb-plugin demo demo-llm demo-podman test test-all check test-debug test-distro report coverage soak bench bench-plugin fuzz lint clean
# Targets are steps, not files; each script uses all processors by itself.
.NOTPARALLEL:
# Options for make itself are not for the builds that the scripts start.
unexport MAKEFLAGS MFLAGS MAKELEVEL

help:
	@printf '%s\n' \
	  'make demo     checkpoint and restore a GPU program in a virtual machine, and show it' \
	  'make test     what guards every change; the last line counts the tests' \
	  'make check    only what your change can break; says what it leaves out' \
	  'make test-all  all there is, also on the stock kernel' \
	  'make test-debug  all kselftests on a kernel that checks itself; hours' \
	  'make demo-llm  move a language model (llama.cpp, ROCm 6.4) in the middle of its answer; downloads it' \
	  'make demo-podman  migrate containers with podman and crun of Debian 13; downloads them' \
	  'make test-distro  checkpoint and restore by the CRIU of Debian 13 and sid; downloads them' \
	  'make report   what checkpoint and restore can do on the stock kernel and ours: out/report' \
	  'make coverage  how much of the code for checkpoint and restore in the kernel its tests run' \
	  'make fuzz     search with each fuzzer for SECONDS=600, keeping what it learns in out/fuzz' \
	  'make soak     hours of reloads and resets, also on a kernel that checks itself' \
	  'make bench    measure, judge by the limits, write out/bench.json' \
	  'make bench-plugin  how much of link and disk the plugin uses; a table and a picture in out/bench-plugin' \
  'make kernel   build the kernels of the virtual machines (out/kernel)' \
	  'make build    build the programs (out/cmake/release)' \
	  'make install  install plugin, manual and configuration; PREFIX=/usr/local, DESTDIR=' \
	  'make deb-plugin  a Debian package of the same files' \
	  'make lint     check the sources' \
	  'make setup    install the Debian packages that all this needs' \
	  'make clean    remove out/' \
	  '' \
	  'One test, or some: scripts/test.py -h. One command in a virtual machine: scripts/vm.sh -h.'

setup:
	@scripts/setup.sh

# The programs first: they are there sooner, and so are their errors.
kernel: setup
	@scripts/kernel.sh build

build: setup
	@scripts/build.sh release

install: setup
	@scripts/package.py install --prefix '$(or $(PREFIX),/usr/local)' $(if $(DESTDIR),--destdir '$(abspath $(DESTDIR))')

deb-plugin: setup
	@scripts/package.py deb

# demo.py builds what it runs, which is far from all.
demo: setup
	@scripts/demo.py

# test.py builds by itself: a kernel that does not build must not hide the rest.
test: setup
	@scripts/test.py

test-all: setup
	@scripts/test.py --all

check: setup
	@scripts/test.py --check

test-debug: setup
	@scripts/test.py --groups debug

# demo_podman.py makes the root of Debian 13 and builds what it runs.
demo-podman: setup
	@scripts/demo_podman.py

# demo_llm.py makes the root with llama.cpp and builds what it runs. `make demo-llm MOVES=20` moves it more often.
demo-llm: setup
	@scripts/demo_llm.py $(if $(MOVES),--moves '$(MOVES)')

# setup.sh and root.py end at once if there is nothing to install.
test-distro: setup
	@scripts/setup.sh roots
	@scripts/root.py trixie sid llm rccl
	@scripts/test.py --groups distro

# test.py builds what it needs.
report: setup
	@scripts/report.py

# It builds a kernel of its own.
coverage: setup
	@scripts/coverage.py

soak: setup
	@scripts/test.py --groups soak

bench: build kernel
	@scripts/bench.py

# bench_plugin.py builds what it runs.
bench-plugin: setup
	@scripts/bench_plugin.py

fuzz: setup
	@scripts/fuzz.py --seconds $(or $(SECONDS),600)

lint: setup
	@scripts/lint.sh

clean:
	@rm -rf -- out
