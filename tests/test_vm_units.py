# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""Parts of scripts/vm that need no virtual machine."""
from __future__ import annotations

import errno
import os
import subprocess
from pathlib import Path

import pytest
import vm_support  # noqa: F401  It makes the package vm importable.

from vm import guest_files, kernel_log, machine, options, places, processes, qemu
from vm.boot import Report
from vm.errors import VmError


def parsed(*args: str) -> options.Options:
    return options.parse([*args, "--", "true"])


# ---- options ----

@pytest.mark.parametrize("text, mib", [("512M", 512), ("2G", 2048), ("2g", 2048), ("1GiB", 1024), ("2048K", 2),
                                       ("1048576", 1), ("008M", 8)])
def test_sizes_are_mib(text, mib):
    assert options.size_mib(text, "--mem") == mib


@pytest.mark.parametrize("text", ["", "lots", "-1G", "1T", "1.5G", "0", "1000", "1M "])
def test_what_is_no_size_is_refused(text):
    with pytest.raises(VmError) as caught:
        options.size_mib(text, "--mem")
    assert caught.value.status == 64 and "--mem" in caught.value.message


def test_defaults_are_those_of_the_help():
    given = parsed()
    assert (given.kernel, given.mem_mib, given.smp, given.limit_s, given.argv) == ("stock", 2048, 2, 120, ["true"])
    assert not given.driver, "without a GPU the driver is not loaded"


def test_what_follows_the_dashes_is_the_command_as_it_is():
    assert options.parse(["--smp", "3", "--", "a", "--smp", "--", "-h"]).argv == ["a", "--smp", "--", "-h"]


def test_gpus_take_slots_in_order_and_keep_what_is_for_vasicd():
    given = parsed("--gpu", "gfx906,vram=1G", "--gpu", "gfx90a,slot=0x1f,vram=512M,bar=256M", "--gpu", "gfx1100")
    assert [(gpu.spec, gpu.slot, gpu.vram_mib) for gpu in given.gpus] == [
        ("gfx906,vram=1G", 0x10, 1024), ("gfx90a,vram=512M,bar=256M", 0x1F, 512), ("gfx1100", 0x12, 1024)]
    assert given.vram_mib == 2560 and given.driver


@pytest.mark.parametrize("args, text", [
    (["--gpu", "gfx906,slot=x"], "not a PCI slot"), (["--gpu", "gfx906,slot=0x20"], "outside 16..31"),
    (["--gpu", "a\nb"], "line break"), (["--gpu", "gfx906,vram=x"], "not a size"),
    (["--smp", "0"], "not a positive number"), (["--smp", "1000000"], "not a positive number"),
    (["--share", "/"], "not the whole root"), (["--share", ""], "not a folder"),
    (["--name", "a/b"], "not a file name"), (["--name", "latest"], "reserved"), (["--kernel", "../x"], "not a name"),
    (["--root", "../x"], "not a name"), (["--root", ""], "not a name"),
    (["--mem", "255M"], "less than 256M"), (["--env", "1=x"], "not K=V"), (["--param", "X=1"], "not K=V"),
    (["--smp"], "needs a value"), (["stray"], "unknown option"),
])
def test_options_that_cannot_be_meant_are_refused(args, text):
    with pytest.raises(VmError) as caught:
        parsed(*args)
    assert caught.value.status == 64 and text in caught.value.message and "(try: vm.sh -h)" in caught.value.message


def test_jobs_run_the_agent_and_share_the_folder(tmp_path):
    given = options.parse(["--jobs", str(tmp_path)])
    assert Path(given.argv[0]).name == "agent.sh" and os.access(given.argv[0], os.X_OK)
    assert given.argv[1:] == [str(tmp_path)] and given.shares == [str(tmp_path)]


def test_a_share_is_its_real_path(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert options.parse_share(str(tmp_path / "link")) == str(tmp_path / "real")


# ---- files for the guest ----

def test_lists_survive_the_shell_as_they_are():
    items = ["two words", "", "line\nbreak", "it's", "$HOME `id` \\", "*", "ü", "\udcff"]
    script = guest_files.shell_list("list", items) + "printf '%s\\0' \"${list[@]}\""
    out = subprocess.run(["bash", "-c", os.fsencode(script)], capture_output=True, check=True).stdout
    assert out == b"".join(os.fsencode(item) + b"\0" for item in items)


def test_an_empty_list_is_an_empty_array():
    script = guest_files.shell_list("list", []) + "echo ${#list[@]}"
    assert subprocess.run(["bash", "-c", script], capture_output=True, check=True).stdout == b"0\n"


def test_blanks_in_the_guest_s_fstab_are_octal():
    assert (guest_files.fstab_line("share 0", "/a b\\c#d\te", "9p", "ro")
            == "share\\0400 /sys/root/a\\040b\\134c\\043d\\011e 9p ro 0 0\n")


def test_the_guest_keeps_only_the_folders_of_the_run_in_tmp(tmp_path):
    given = parsed("--share", str(tmp_path))
    given.cwd = str(tmp_path)
    lines = guest_files.fstab_lines(given, "/usr/modules")
    kept = [line.split()[1] for line in lines if line.startswith("/sys/keep")]
    assert kept == ([f"/sys/root{tmp_path}"] if str(tmp_path).startswith(("/tmp/", "/run/")) else [])
    assert lines[-1].startswith(f"share0 /sys/root{tmp_path} 9p ") and "cache=none" in lines[-1]


@pytest.mark.parametrize("command, folder", [("/tmp/x/y", "/tmp/x"), ("ls", "/here"), ("/init", "/here"),
                                             ("./a/b", "/here")])
def test_the_command_s_own_folder_is_kept_when_it_is_named_in_full(command, folder):
    given = options.Options(argv=[command], cwd="/here")
    assert guest_files.kept_folders(given, "/modules") == sorted({"/here", "/modules", folder})


def other_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An output folder whose root `other` has one folder, /usr/bin."""
    monkeypatch.setenv("OUT_DIR", str(tmp_path))
    root = tmp_path / "roots" / "other"
    (root / "usr/bin").mkdir(parents=True)
    return root


def test_another_root_gets_the_project_and_what_the_run_needs(tmp_path, monkeypatch):
    root = other_root(tmp_path, monkeypatch)
    given = options.Options(argv=[str(tmp_path / "tool/x")], cwd="/usr/bin", root="other")
    (tmp_path / "tool").mkdir()
    project = str(vm_support.ROOT)
    assert guest_files.brought_folders(given, "/nowhere", root) == sorted({project, str(tmp_path)})
    lines = guest_files.fstab_lines(given, "/nowhere")
    assert lines[0] == f"{root} /sys/root/../lower none bind 0 0\n"
    assert lines[1].startswith("overlay /sys/root overlay lowerdir=/sys/lower,")
    assert f"{project} /sys/root{project} none bind,X-mount.mkdir 0 0\n" in lines
    assert lines.index("tmpfs /sys/root/tmp tmpfs mode=1777 0 0\n") < lines.index(
        f"{tmp_path} /sys/root{tmp_path} none bind,X-mount.mkdir 0 0\n")


def test_a_folder_of_the_other_root_is_not_replaced_by_this_host_s(tmp_path, monkeypatch):
    root = other_root(tmp_path, monkeypatch)
    given = options.Options(argv=["/usr/bin/criu"], cwd="/usr/bin", root="other")
    assert "/usr/bin" not in guest_files.brought_folders(given, "/nowhere", root)


def test_a_root_that_is_not_complete_is_refused(tmp_path, monkeypatch):
    root = other_root(tmp_path, monkeypatch)
    with pytest.raises(VmError) as caught:
        machine.check_root("other")
    assert caught.value.status == 125 and "run scripts/root.py other" in caught.value.message
    (root / "root.stamp").touch()
    machine.check_root("other")


# ---- QEMU ----

def kernel_line(tmp_path: Path, accel: str, *words: str) -> list[str]:
    """Words of the line that QEMU gives the guest's kernel."""
    setup = qemu.Setup(options.parse([*words, "--", "true"]), accel, Path("bz"), "/m", None, tmp_path, tmp_path)
    line = qemu.command(setup, qemu.Ports(7, 8, 9), "")
    return line[line.index("-append") + 1].split()


@pytest.mark.parametrize("accel, words, fixed", [
    ("tcg", [], True), ("tcg", ["--aslr"], False), ("kvm", [], False), ("kvm", ["--aslr"], False)])
def test_addresses_are_fixed_where_the_guest_starts_programs_faster_with_that(tmp_path, accel, words, fixed):
    assert ("norandmaps" in kernel_line(tmp_path, accel, *words)) == fixed


def test_drivers_run_their_kunit_tests_only_if_asked(tmp_path):
    assert "kunit.enable=0" in kernel_line(tmp_path, "tcg")
    assert "kunit.enable=0" not in kernel_line(tmp_path, "tcg", "--kunit")


def test_commas_in_paths_are_doubled_for_qemu(tmp_path):
    given = options.Options(argv=["true"], shares=["/a,b"])
    setup = qemu.Setup(given, "tcg", Path("bz"), "/m", None, tmp_path, Path("/log,dir"))
    line = qemu.command(setup, qemu.Ports(7, 8, 9), "")
    assert any("path=/a,,b," in item for item in line)
    assert any("path=/dev/fd/8,logfile=/log,,dir/stdout.log" in item for item in line)


def test_a_clock_of_instructions_has_one_processor(tmp_path):
    given = options.Options(argv=["true"], icount=True, smp=4)
    line = qemu.command(qemu.Setup(given, "tcg", Path("bz"), "/m", None, tmp_path, tmp_path), qemu.Ports(7, 8, 9), "")
    assert line[line.index("-smp") + 1] == "1" and "shift=2,sleep=on" in line


# ---- what the guest and its kernel say ----

def test_a_report_has_times_and_sizes():
    report = Report()
    for number, line in enumerate(["up 700", "kfd 900", "fail no kfd", "taint 512", "exit 3 10 20 30"]):
        report.take(line, 1000 + number)
    assert report.guest_ms == {"up": 700, "kfd": 900} and report.host_ms == {"up": 1000, "kfd": 1001}
    assert (report.fail, report.taint, report.status) == ("no kfd", 512, 3)
    assert (report.out_bytes, report.err_bytes, report.kmsg_bytes) == (10, 20, 30)


@pytest.mark.parametrize("line", ["", "up", "up x", "exit 1", "exit 1 2 3 4 5", "hello 1"])
def test_a_report_that_nobody_knows_is_infrastructure(line):
    with pytest.raises(VmError, match="unknown report") as caught:
        Report().take(line, 0)
    assert caught.value.status == 125


def test_kernel_records_become_lines_of_dmesg():
    kmsg = "6,1,1234567,-;one; two\n SUBSYSTEM=pci\n4,2,5,c,more;three\n\nnoise\n"
    assert list(kernel_log.dmesg_lines(kmsg)) == ["[    1.234567] one; two", "[    0.000005] three"]


@pytest.mark.parametrize("pattern, before, after, most", [("x", 1, 1, 3), ("x", 0, 3, 3), ("x", 3, 25, 3),
                                                          ("x", 2, 0, 1), ("x", 1, 1, 99)])
def test_excerpts_are_those_of_grep(pattern, before, after, most):
    lines = ["a", "x1", "b", "x2", "c", "d", "e", "f", "x3", "x4", "g", "h", "i", "j", "x5", "k"]
    grep = subprocess.run(["grep", "-B", str(before), "-A", str(after), "-m", str(most), pattern],
                          input="\n".join(lines), capture_output=True, text=True, check=True).stdout.splitlines()
    # grep ends the last part at the next hit that it no longer counts.
    shown = kernel_log.excerpts(lines, kernel_log.re.compile(pattern), before, after, most)
    assert shown[:len(grep)] == grep


def test_the_last_excerpts_are_shown_of_a_machine_that_died():
    lines = ["a", "x1", "b", "x2", "c", "x3", "d", "e", "x4", "f", "g"]
    pattern = kernel_log.re.compile("x")
    assert kernel_log.last_excerpts(lines, pattern, 1, 2) == ["x3", "d", "--", "x4", "f"]
    assert kernel_log.last_excerpts(lines, pattern, 0, 9) == ["x1", "--", "x2", "--", "x3", "--", "x4"]
    assert kernel_log.last_excerpts(["a"], pattern, 1, 2) == []


@pytest.mark.parametrize("line, is_splat", [
    ("WARNING: CPU: 1 PID: 2 at x.c:3", True), ("BUG: KASAN: slab-out-of-bounds", True),
    ("unreferenced object 0xffff (size 8):", True), ("INFO: task a:1 blocked for more than 1 s", True),
    ("rcu: INFO: rcu_preempt self-detected stall on CPU", True), ("amdgpu: ready", False),
    ("Warning: unchecked", False)])
def test_complaints_are_known_by_their_words(line, is_splat):
    assert bool(kernel_log.complaint([line], "dmesg.log")) == is_splat


# ---- places and processes ----

def test_a_folder_of_a_dead_run_is_removed_and_others_stay(tmp_path):
    held, dead, other = (tmp_path / f"{places.RUN_PREFIX}{name}" for name in ("held", "dead", "other"))
    for folder in (held, dead, other):
        (folder / "sys").mkdir(parents=True)
    (dead / places.LOCK_NAME).touch()
    # Locks belong to the open file, so one process can hold it against itself.
    lock = places.Lock(held / places.LOCK_NAME)
    assert lock.take()
    places.remove_dead_runs(tmp_path)
    assert held.exists() and other.exists() and not dead.exists()
    lock.release()
    places.remove_dead_runs(tmp_path)
    assert not held.exists()


def test_sockets_are_not_put_into_a_folder_with_a_long_name(tmp_path):
    long = tmp_path / ("x" * places.MAX_SOCKET_DIR)
    long.mkdir()
    folder = places.RunFolder({"XDG_RUNTIME_DIR": str(long)})
    assert folder.path.parent == Path("/tmp")
    folder.remove()
    assert not folder.path.exists()


def test_a_failed_write_names_the_file():
    with pytest.raises(VmError, match="^/dev/full: No space left on device$") as caught:
        places.write_file(Path("/dev/full"), "text")
    assert caught.value.status == 125


def relayed(sink: int) -> processes.Relay:
    """A relay that was given more than a pipe holds, and its end of file."""
    source, end = os.pipe()
    relay = processes.Relay(source, sink)
    os.write(end, b"x" * 300000)
    os.close(end)
    relay.join(lambda: None)
    return relay


def test_a_full_sink_is_an_error_and_does_not_stop_the_writer():
    sink = os.open("/dev/full", os.O_WRONLY)
    relay = relayed(sink)
    assert relay.error and relay.error.errno == errno.ENOSPC
    os.close(sink)


def test_a_reader_who_has_gone_is_no_error():
    source, sink = os.pipe()
    os.close(source)
    assert relayed(sink).error is None
    os.close(sink)


def test_a_child_ends_with_its_parent(tmp_path):
    script = (f"import sys; sys.path.insert(0, {str(vm_support.SCRIPTS)!r})\n"
              "from vm.processes import start\nimport os, time\n"
              "print(start(['sleep', '600'], stdout=None, stderr=None).pid, flush=True)\ntime.sleep(600)\n")
    with subprocess.Popen(["python3", "-c", script], stdout=subprocess.PIPE) as parent:
        assert parent.stdout
        child = int(parent.stdout.readline())
        assert vm_support.is_alive(child)
        parent.kill()
        vm_support.expect_gone([child])
