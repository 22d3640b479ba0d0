# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""scripts/vm.sh itself. Needs no virtual GPU, only a kernel (VM_TEST_OPTIONS says which)."""
from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Iterator

import pytest
from vm_support import (BOOT_LIMIT_S, OPTIONS, ROOT, SCRIPTS, Running, children, expect_gone, failing_qemu, is_alive,
                        path_with, private_out, program, qemu_of, sh, vm_run, vm_sh, wait_for)

from command import tree_of
from vm.jobs import JobMachine, MachineDied
from vm.places import out_dir

pytestmark = pytest.mark.timeout(400)

STALLING = 'echo "rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:" >"$serial"; exec sleep 600'
# A vasicd and a QEMU that do nothing until they are killed.
IDLE_VASICD = '#!/bin/bash\necho "vasicd: ready ram=/dev/shm/none"\nexec sleep 612\n'
IDLE_QEMU = "#!/bin/bash\nexec sleep 613\n"


# ---- a command and its status ----

def test_status_and_streams_pass_through():
    run = vm_run(*sh('printf "to out\\n"; printf "to err\\n" >&2; exit 7'))
    assert (run.status, run.out, run.err) == (7, "to out\n", "to err\n")


def test_arguments_arrive_as_they_are():
    args = ["two words", "", "line\nbreak", '$HOME "q" \'s\'', "*", "\\ ü"]
    run = vm_run("--env", "GREETING=hello  world", *sh('printf "%s|" "$GREETING" "$PWD" "$@"', *args))
    assert run.status == 0, run.err
    assert run.out == "".join(f"{item}|" for item in ["hello  world", os.getcwd(), *args])


def test_a_megabyte_of_output_is_complete():
    run = vm_run(*sh('head -c 1000000 /dev/zero | tr "\\0" x; echo end >/dev/stderr'))
    assert (run.status, len(run.out), run.err) == (0, 1000000, "end\n")


def test_only_shares_keep_what_the_guest_writes(tmp_path):
    share, lost = tmp_path / "share dir", ROOT / ".vm-test-was-here"
    share.mkdir()
    run = vm_run("--share", str(share),
                 *sh('echo kept >"$1/file"; echo lost >"$2"; cat "$2"', str(share), str(lost)))
    assert (run.status, run.out) == (0, "lost\n"), run.err
    assert (share / "file").read_text() == "kept\n"
    assert not lost.exists(), "the guest wrote to the host's root"


def test_the_guest_is_ready_for_criu():
    run = vm_run(*sh('ip link show lo | grep -q UP && touch /tmp/a /run/a && test -c /dev/ptmx '
                     '&& mountpoint -q /dev/pts && mountpoint -q /dev/shm && mountpoint -q /sys/fs/cgroup '
                     '&& mountpoint -q /sys/kernel/debug && [[ $(id -u) == 0 ]]'))
    assert run.status == 0, run.err


def test_the_command_has_no_descriptors_but_its_streams():
    run = vm_run("--", "bash", "-c", "echo /proc/self/fd/*")
    # bash itself opens the folder to list it.
    assert run.status == 0 and len(run.out.split()) == 4, run.out


def test_a_clock_of_instructions_gives_the_same_times_again():
    run = vm_run("--icount", *sh('''printf "%s " "$(nproc)"; for round in 1 2; do
        begin=${EPOCHREALTIME/./}
        for ((i = 0; i < 100000; i++)); do :; done
        printf "%d " "$((${EPOCHREALTIME/./} - begin))"
    done'''))
    assert run.status == 0, run.err
    processors, first, second = map(int, run.out.split())
    assert processors == 1 and first < 1.1 * second and second < 1.1 * first, run.out


def test_a_missing_command_is_127():
    assert vm_run("--", "/no/such/command").status == 127


def test_too_long_is_124():
    begin = time.monotonic()
    run = vm_run("--timeout", "15", "--", "sleep", "600")
    assert run.status == 124 and "timeout: not done after 15 s" in run.err, run.err
    assert time.monotonic() - begin < 40


# ---- what the kernel says ----

def test_a_panic_is_125_with_the_serial_log():
    run = vm_run(*sh("echo c >/proc/sysrq-trigger; sleep 60"))
    assert run.status == 125 and "died without reporting a status" in run.err, run.err
    assert "Kernel panic" in run.err


def test_a_panic_after_warnings_is_told_with_the_last_one():
    """What is printed of a machine that died must say why, though its kernel has complained before."""
    run = vm_run(*sh('for i in 1 2 3 4; do echo "<4>WARNING: made up $i" >/dev/kmsg; done; '
                     'for ((i = 0; i < 200; i++)); do echo "<4>filler" >/dev/kmsg; done; '
                     'echo c >/proc/sysrq-trigger; sleep 60'))
    assert run.status == 125 and "made up 4" in run.err and "made up 1" not in run.err, run.err


def test_a_warning_of_the_kernel_fails_the_run():
    run = vm_run(*sh('echo "WARNING: CPU: 0 PID: 1 at made-up.c:1" >/dev/kmsg; dmesg -C; exit 0'))
    assert run.status == 1 and "kernel complained" in run.err and "made-up.c" in run.err, run.err


def test_a_lockdep_report_fails_the_run():
    run = vm_run(*sh('echo "possible circular locking dependency detected" >/dev/kmsg'))
    assert run.status == 1 and "kernel complained" in run.err, run.err


def test_a_stall_of_rcu_fails_the_run():
    run = vm_run(*sh('echo "rcu: INFO: rcu_preempt self-detected stall on CPU" >/dev/kmsg'))
    assert run.status == 1 and "kernel complained" in run.err, run.err


# ---- a boot that fails ----

def expect_boot_after(env: dict[str, str], name: str, count: int, text: str) -> Path:
    """The guest's status and output, `count` notes of another boot, and as many kept consoles. Returns the logs."""
    run = vm_run("--name", name, *sh("echo well; exit 7"), env=env)
    assert (run.status, run.out) == (7, "well\n"), run.err
    assert len([line for line in run.err.splitlines()
                if f"{text} before its first process" in line and "booting it again" in line]) == count, run.err
    logs = out_dir() / "vm" / name
    assert len(list(logs.glob("serial.*.log"))) == count
    return logs


def test_a_stall_in_the_boot_is_told_and_booted_again(tmp_path):
    logs = expect_boot_after(failing_qemu(tmp_path, 2, STALLING), "vm-test-stall", 2, "stalled")
    for number in (1, 2):
        assert "detected stalls" in (logs / f"serial.{number}.log").read_text()


def test_a_reset_in_the_boot_is_told_and_booted_again(tmp_path):
    expect_boot_after(failing_qemu(tmp_path, 1, "exit 0"), "vm-test-reset", 1, "ended (it reset itself)")


def test_a_machine_killed_in_its_boot_is_told_and_booted_again(tmp_path):
    expect_boot_after(failing_qemu(tmp_path, 2, "kill -SEGV $$"), "vm-test-segv", 2, "ended (QEMU ended by signal 11)")


def expect_no_boot(folder: Path, count: int, command: str, text: str) -> str:
    """Status 125, the text, and nothing left. Returns what vm.sh printed."""
    (folder / "run").mkdir()
    run = vm_run("--", "true", env={**failing_qemu(folder, count, command), "XDG_RUNTIME_DIR": str(folder / "run")})
    assert run.status == 125 and text in run.err, run.err
    assert not list((folder / "run").iterdir())
    return run.err


def test_a_machine_that_only_stalls_is_125(tmp_path):
    expect_no_boot(tmp_path, 99, STALLING, "stalled in the last of 3 boots")


def test_a_machine_that_only_resets_is_125(tmp_path):
    expect_no_boot(tmp_path, 99, "exit 0", "ended (it reset itself) in the last of 3 boots")


def test_a_panic_in_the_boot_is_not_booted_again(tmp_path):
    expect_no_boot(tmp_path, 1, 'echo "Kernel panic - not syncing: no init" >"$serial"',
                   "died without reporting a status: it reset itself")


def test_a_refusal_of_qemu_is_not_tried_again(tmp_path):
    err = expect_no_boot(tmp_path, 1, 'echo "no such machine" >&2; exit 1',
                         "died without reporting a status: QEMU ended with status 1")
    assert "qemu: no such machine" in err


# ---- a run that is killed ----

def interrupted(folder: Path, number: signal.Signals, expected: int) -> Running:
    """Waits for QEMU, sends the signal to vm.sh, and expects its status and the end of its children."""
    with Running(folder, "--", "sleep", "600") as running:
        wait_for(lambda: qemu_of(running.process.pid), "QEMU runs")
        pids = list(children(running.process.pid))
        running.process.send_signal(number)
        assert running.wait() == expected, (folder / "err").read_text()
        expect_gone(pids)
    return running


def test_an_interrupt_leaves_nothing_behind(tmp_path):
    assert not interrupted(tmp_path, signal.SIGINT, 130).folders()


def test_a_termination_leaves_nothing_behind(tmp_path):
    assert not interrupted(tmp_path, signal.SIGTERM, 143).folders()


def test_a_killed_vm_sh_takes_qemu_along(tmp_path):
    interrupted(tmp_path, signal.SIGKILL, 137)


def test_a_killed_script_takes_its_machine_along(tmp_path):
    """The script starts vm.sh as demo.py does."""
    before = ("bash", "-c", 'setpriv --pdeathsig TERM "$@"; true', "_")
    with Running(tmp_path, "--", "sleep", "600", before=before) as running:
        script = running.process.pid
        wait_for(lambda: any(qemu_of(vm) for vm in children(script)), "QEMU runs")
        pids = [pid for vm in children(script) for pid in (vm, *children(vm))]
        running.process.kill()
        running.process.wait()
        expect_gone(pids)
        assert not running.folders()


def test_a_run_after_a_killed_one_of_its_name_works_and_removes_its_folder(tmp_path):
    with Running(tmp_path, "--name", "vm-test-killed", "--", "sleep", "600") as running:
        wait_for(lambda: qemu_of(running.process.pid), "QEMU runs")
        running.process.kill()
        running.wait()
        assert running.folders()
        run = vm_run("--name", "vm-test-killed", *sh("echo again"), env={"XDG_RUNTIME_DIR": str(running.run_dir)})
        assert (run.status, run.out) == (0, "again\n"), run.err
        assert not running.folders()


@pytest.fixture
def idle_machine(tmp_path: Path) -> dict[str, str]:
    """An environment whose vasicd and QEMU are there and do nothing."""
    program(tmp_path / "bin/qemu-system-x86_64", IDLE_QEMU)
    vasicd = program(tmp_path / "bin/vasicd", IDLE_VASICD)
    return {**path_with(tmp_path / "bin"), "VASICD": str(vasicd), "VM_ACCEL": "tcg"}


def idle_qemu_of(parent: int) -> list[int]:
    return [pid for pid, name in children(parent).items() if name == "sleep"]


def idle_processes(folder: Path) -> list[int]:
    """Processes of the idle machine: their environment names this test's folder for sockets."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and f"XDG_RUNTIME_DIR={folder}/run".encode() in (entry / "environ").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return [pid for pid in found if is_alive(pid)]


def test_vm_sh_killed_at_any_moment_takes_vasicd_and_qemu_along(tmp_path, idle_machine):
    for moment in range(24):
        with Running(tmp_path, "--name", "vm-test-moments", "--gpu", "gfx906", "--no-driver", "--", "true",
                     env=idle_machine) as running:
            time.sleep(0.02 * moment)
            running.process.kill()
            running.wait()
            wait_for(lambda: not idle_processes(tmp_path), f"all gone, killed after {20 * moment} ms", 10)
    with Running(tmp_path, "--name", "vm-test-moments", "--gpu", "gfx906", "--no-driver", "--", "true",
                 env=idle_machine) as running:
        wait_for(lambda: len(children(running.process.pid)) == 2, "vasicd and QEMU run")
        assert len(running.folders()) == 1, "folders of the killed runs are still there"
        running.process.terminate()
        assert running.wait() == 143
        expect_gone(idle_processes(tmp_path))
        assert not running.folders()


# ---- two at once ----

def test_two_machines_run_at_once():
    with_names = [[str(SCRIPTS / "vm.sh"), "run", *OPTIONS, "--name", f"vm-test-{word}", *sh(f"echo {word}")]
                  for word in ("one", "two")]
    both = [subprocess.Popen(line, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            for line in with_names]
    ends = [(process.communicate(), process.returncode) for process in both]
    assert [(out, status) for (out, _), status in ends] == [(b"one\n", 0), (b"two\n", 0)], ends


def test_a_run_leaves_the_folder_of_a_living_one_alone(tmp_path, idle_machine):
    with Running(tmp_path, "--name", "vm-test-living", "--", "true", env=idle_machine) as running:
        wait_for(lambda: idle_qemu_of(running.process.pid), "QEMU runs")
        folders = running.folders()
        env = {**private_out(tmp_path), "XDG_RUNTIME_DIR": str(running.run_dir), "VASICD": "/bin/false"}
        assert vm_sh("run", *OPTIONS, "--gpu", "gfx906", "--no-driver", "--", "true", env=env).status == 125
        assert len(folders) == 1 and running.folders() == folders


def test_a_name_belongs_to_one_machine_at_a_time():
    folder = out_dir() / "vm/vm-test-held"
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        run = vm_run("--name", "vm-test-held", "--", "true")
    assert run.status == 125 and "named 'vm-test-held'" in run.error_line()


# ---- bad input ----

@pytest.mark.parametrize("status, text, args", [
    (64, "unknown verb", ["walk"]),
    (64, "unknown option", ["run", "--nonsense", "--", "true"]),
    (64, "no command", ["run", "--smp", "1"]),
    (64, "no command", ["run", "--"]),
    (64, "needs a value", ["run", "--mem", "--", "true"]),
    (64, "not a size", ["run", "--mem", "lots", "--", "true"]),
    (64, "not a positive number", ["run", "--timeout", "-5", "--", "true"]),
    (64, "not a folder", ["run", "--share", "/no/such/folder", "--", "true"]),
    (64, "not a folder", ["run", "--jobs", "/no/such/folder"]),
    (64, "takes no command", ["run", "--jobs", "/usr", "--", "true"]),
    (64, "not K=V", ["run", "--env", "nonsense", "--", "true"]),
    (64, "outside", ["run", "--gpu", "gfx906,slot=3", "--", "true"]),
    (64, "used twice", ["run", "--gpu", "gfx906,slot=17", "--gpu", "gfx906,slot=0x11", "--", "true"]),
    (64, "used twice", ["run", *["--gpu", "gfx906,slot=17.3"] * 2, "--", "true"]),
    (64, "not a PCI slot", ["run", "--gpu", "gfx906,slot=17.8", "--", "true"]),
    (64, "no function 0", ["run", "--gpu", "gfx906,slot=17.3", "--", "true"]),
    (125, "make kernel", ["run", "--kernel", "nonesuch", "--", "true"]),
])
def test_mistakes_are_refused_with_one_line(status, text, args):
    run = vm_sh(*args)
    assert run.status == status and text in run.error_line()


def test_missing_pieces_are_named_with_their_remedy(tmp_path):
    (tmp_path / "lib/modules").mkdir(parents=True)
    run = vm_run("--modules", str(tmp_path), "--gpu", "gfx906", "--", "true", env={"VASICD": "/no/such/vasicd"})
    assert run.status == 125 and "make build" in run.error_line()
    run = vm_run("--mem", "900000G", "--", "true")
    assert run.status == 125 and "not enough memory" in run.error_line()


def expect_the_failure_of_vasicd(folder: Path, env: dict[str, str]) -> None:
    """Its words, and nothing else."""
    (folder / "lib/modules").mkdir(parents=True)
    vasicd = program(folder / "vasicd", '#!/bin/sh\necho "vasicd: error: no luck" >&2\nexit 1\n')
    run = vm_run("--modules", str(folder), "--gpu", "gfx906", "--", "true", env={**env, "VASICD": str(vasicd)})
    assert run.status == 125 and "no luck" in run.error_line()


def test_a_failing_vasicd_is_reported(tmp_path):
    expect_the_failure_of_vasicd(tmp_path, {})


def test_an_aborted_probe_of_kvm_is_not_talked_about(tmp_path):
    """QEMU aborts where /dev/kvm is there and does not work. A new output folder has no answer of an earlier probe."""
    program(tmp_path / "aborting/qemu-system-x86_64", "#!/bin/sh\nkill -ABRT $$\n")
    expect_the_failure_of_vasicd(tmp_path, {**path_with(tmp_path / "aborting"), **private_out(tmp_path)})


# ---- a full disk ----

def on_small_disk(folder: Path, kib: int, prepare: str, *args: str) -> subprocess.CompletedProcess[str]:
    """Runs vm.sh with an output folder of `kib` KiB, after the bash script `prepare`, which runs in that folder.
    The disk is in a mount namespace, so it is gone whatever becomes of the test."""
    kernel = out_dir() / "kernel"
    script = ('disk=$1 kernel=$2; shift 2; mount -t tmpfs -o "size=$KIB" none "$disk" && cd "$disk" && '
              f'ln -s "$kernel" kernel && {prepare}; cd /; OUT_DIR=$disk exec "$@"')
    user = [] if os.geteuid() == 0 else ["--map-root-user"]
    return subprocess.run(["unshare", "--mount", *user, "bash", "-c", script, "_", str(folder), str(kernel),
                           str(SCRIPTS / "vm.sh"), "run", *OPTIONS, "--timeout", "60", *args],
                          stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                          env={**os.environ, "KIB": f"{kib}k"}, check=False)


def test_a_disk_that_is_full_before_the_boot_is_one_line_with_the_file(tmp_path):
    run = on_small_disk(tmp_path, 64, "cat /dev/zero >fill 2>/dev/null", "--name", "full", "--", "true")
    assert run.returncode == 125
    assert len(run.stderr.splitlines()) == 1, run.stderr
    assert f"vm.sh: error: {tmp_path}/" in run.stderr and "No space left on device" in run.stderr


def test_a_disk_that_fills_during_the_run_is_one_line_with_the_file(tmp_path):
    run = on_small_disk(tmp_path, 256, "true", "--name", "full", *sh("head -c 1000000 /dev/zero"))
    lines = [line for line in run.stderr.splitlines() if "booting it again" not in line]
    assert run.returncode == 125 and len(lines) == 1, run.stderr
    assert f"vm.sh: error: {tmp_path}/vm/full/" in lines[0] and "No space left on device" in lines[0]


def test_output_that_cannot_be_written_fails_the_run():
    with open("/dev/full", "wb") as full:
        line = [str(SCRIPTS / "vm.sh"), "run", *OPTIONS, "--name", "vm-test-dev-full", "--", "echo", "hi"]
        run = subprocess.run(line, stdin=subprocess.DEVNULL, stdout=full, stderr=subprocess.PIPE, text=True,
                             check=False)
    assert run.returncode == 125
    assert run.stderr == "vm.sh: error: standard output or standard error: No space left on device\n"


# ---- many commands in one machine ----

# One worker runs them all, in one machine.
shares_jobs = pytest.mark.group("vm-jobs", seconds=20)


@pytest.fixture(scope="module")
def jobs() -> Iterator[JobMachine]:
    with JobMachine(f"vm-test-jobs-{os.getpid()}", OPTIONS, limit_s=300) as machine:
        yield machine
        assert machine.finish() == (0, "")


def bash(script: str, *args: str) -> list[str]:
    return ["bash", "-c", script, "_", *args]


@shares_jobs
def test_a_job_has_its_arguments_environment_folder_and_status(jobs):
    lines: list[str] = []
    args = ["two words", "", "line\nbreak", "it's", "ü"]
    status = jobs.run(bash('printf "%s|" "$VALUE" "$PWD" "$@"; exit 7', *args), 30, env={"VALUE": "a 'b'  c"},
                      on_line=lines.append, cwd="/usr")
    assert status == 7
    assert "\n".join(lines) == "".join(f"{item}|" for item in ["a 'b'  c", "/usr", *args])


@shares_jobs
def test_a_job_has_no_descriptors_but_its_streams(jobs):
    lines: list[str] = []
    assert jobs.run(bash("echo /proc/self/fd/*"), 30, on_line=lines.append) == 0
    assert len(lines[0].split()) == 4, lines


@shares_jobs
def test_lines_of_a_job_come_while_it_runs(jobs):
    times: dict[str, float] = {}
    assert jobs.run(bash("echo first; sleep 2; printf '\\xff second' >&2"), 30,
                    on_line=lambda line: times.setdefault(line, time.monotonic())) == 0
    assert list(times) == ["first", "\ufffd second"]
    assert times["\ufffd second"] - times["first"] > 1


@shares_jobs
def test_a_job_over_its_limit_is_124_and_its_processes_are_gone(jobs):
    assert jobs.run(bash("echo $$ >/tmp/group; sleep 600 & sleep 600"), 1) == 124
    assert jobs.run(bash("! pgrep -g $(</tmp/group)"), 30) == 0


@shares_jobs
def test_a_job_that_is_a_script_of_the_guest_is_like_any_other(jobs):
    """The agent reads such a script itself, in a process of the job."""
    lines: list[str] = []
    script = str(SCRIPTS / "guest/loss.sh")
    assert jobs.run([script, "/", "nonsense"], 30, on_line=lines.append) == 64
    assert lines == ["loss.sh: error: no step 'nonsense' (try: loss.sh -h)"]
    assert jobs.run([str(SCRIPTS / "guest/field.sh"), "/", "/", str(jobs.dir), "run", "true"], 30) == 125, "no plugin"
    assert jobs.run([script, "/", "continue"], 30) == 0
    (jobs.dir / "amdgpu_plugin.so").touch()
    sleeps = [str(SCRIPTS / "guest/field.sh"), "/", "/", str(jobs.dir), "run", *bash("sleep 601 & sleep 601")]
    assert jobs.run(sleeps, 1) == 124
    assert jobs.run(bash("! pgrep -f 'sleep 60[1]'"), 30) == 0


@shares_jobs
def test_a_job_that_a_signal_ends_or_that_is_not_there_says_so(jobs):
    assert jobs.run(bash("kill -SEGV $$"), 30) == 128 + signal.SIGSEGV
    assert jobs.run(["/no/such/command"], 30) == 127


@shares_jobs
def test_output_that_a_process_left_behind_holds_open_ends_the_job(jobs):
    lines: list[str] = []
    begin = time.monotonic()
    assert jobs.run(bash("setsid sleep 60 & echo done"), 50, on_line=lines.append) == 0
    assert lines == ["done"] and time.monotonic() - begin < 30
    assert jobs.run(["pkill", "sleep"], 30) == 0


def test_a_job_that_kills_the_machine_is_reported():
    lines: list[str] = []
    with JobMachine("vm-test-jobs-panic", OPTIONS, limit_s=200) as machine:
        with pytest.raises(MachineDied, match="the guest died without reporting a status") as caught:
            machine.run(bash("echo last words; sleep 1; echo c >/proc/sysrq-trigger; sleep 60"), 90,
                        on_line=lines.append)
        assert lines == ["last words"] and "Kernel panic" in caught.value.text
        assert not machine.alive() and machine.finish()[0] == 125
        machine.start()
        assert machine.run(["true"], 30) == 0, "it can be started again"


def test_a_complaint_of_the_kernel_is_told_after_the_job_and_at_the_end():
    with JobMachine("vm-test-jobs-splat", OPTIONS, limit_s=200) as machine:
        assert machine.run(["true"], 30) == 0 and machine.new_splats() == []
        assert machine.run(bash('echo "<4>WARNING: CPU: 0 PID: 1 at made-up.c:1" >/dev/kmsg'), 30) == 0
        wait_for(machine.new_splats, "the console has the complaint")
        assert machine.new_splats() == []
        status, text = machine.finish()
        assert status == 1 and "made-up.c" in text and "kernel complained" in text


def test_a_machine_that_does_not_boot_is_reported(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", failing_qemu(tmp_path, 99, "exit 1")["PATH"])
    with pytest.raises(MachineDied, match="QEMU ended with status 1"):
        JobMachine("vm-test-jobs-refused", OPTIONS, limit_s=100).start()


def test_a_killed_caller_takes_its_machine_along(tmp_path, idle_machine):
    script = ("import sys; sys.path.insert(0, sys.argv[1]); from vm.jobs import JobMachine; import threading\n"
              "machine = JobMachine('vm-test-jobs-killed', sys.argv[2:])\n"
              "thread = threading.Thread(target=machine.start); thread.start(); thread.join()\n")
    (tmp_path / "run").mkdir()
    caller = subprocess.Popen([sys.executable, "-c", script, str(SCRIPTS), *OPTIONS],
                              env={**os.environ, **idle_machine, "XDG_RUNTIME_DIR": str(tmp_path / "run")})
    try:
        wait_for(lambda: any(idle_qemu_of(vm) for vm in children(caller.pid)), "QEMU runs")
    finally:
        caller.kill()
        caller.wait()
    wait_for(lambda: not idle_processes(tmp_path), "all gone", 20)
    assert not list((tmp_path / "run").iterdir())


# ---- scripts/test.py with a machine ----

def folder_with_a_machine(folder: Path) -> tuple[Path, dict[str, str]]:
    """A file with a test that runs `sleep $SLEEP_S` in a machine, and an environment with an output folder of its own."""
    (folder / "run").mkdir(parents=True)
    file = folder / "machine_test.py"
    file.write_text("import os, sys\n"
                    f"sys.path.insert(0, {str(SCRIPTS)!r})\n"
                    "from vm.jobs import JobMachine\n\n"
                    "def test_sleeps():\n"
                    f"    with JobMachine('vm-test-runner', {OPTIONS!r}, limit_s=900) as machine:\n"
                    "        assert machine.run(['sleep', os.environ['SLEEP_S']], 800) == 0\n"
                    "        assert machine.finish() == (0, '')\n")
    return file, {**os.environ, **private_out(folder), "XDG_RUNTIME_DIR": str(folder / "run")}


def start_tests(file: Path, env: dict[str, str], sleep_s: int) -> subprocess.Popen:
    """scripts/test.py with the file, and a file of the project, whose folder has the options of test.py."""
    return subprocess.Popen([str(SCRIPTS / "test.py"), "--no-build", "tests/harness/chip_test.py", str(file)],
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                            env={**env, "SLEEP_S": str(sleep_s)})


def test_a_killed_test_py_takes_its_machine_along_and_the_next_run_works(tmp_path):
    file, env = folder_with_a_machine(tmp_path)
    running = start_tests(file, env, 700)
    try:
        wait_for(lambda: any(qemu_of(pid) for pid in tree_of(running.pid)), "QEMU runs", BOOT_LIMIT_S)
        pids = tree_of(running.pid)
    finally:
        running.kill()
        running.wait()
        running.stdout.close()
    expect_gone(pids)
    again = start_tests(file, env, 0)
    text, _ = again.communicate()
    assert (again.returncode, text.splitlines()[-1]) == (0, "2 passed, 0 failed"), text


def test_two_runs_of_test_py_in_two_output_folders_do_not_disturb_each_other(tmp_path):
    both = [start_tests(*folder_with_a_machine(tmp_path / name), 5) for name in ("one", "two")]
    for running in both:
        text, _ = running.communicate()
        assert (running.returncode, text.splitlines()[-1]) == (0, "2 passed, 0 failed"), text
