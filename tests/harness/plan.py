# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""Reads plan.toml: which programs run where, and with which of their cases.

The result is data: Machine objects (a virtual machine, or this host), each with Runs.
Chips come from `vasicd --list-chips --json`, the only list of chips there is. Reads
files and asks programs for the names of their cases; starts no machine.
"""
from __future__ import annotations

import fnmatch
import functools
import json
import os
import re
import subprocess
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

from . import paths, streams

# Seconds that a program may take to list its cases.
LIST_LIMIT_S = 60
# kselftest's status of a skip.
EXIT_SKIP = 4
# Folders of kselftests below tools/testing/selftests.
KSELFTESTS = ("drivers/gpu/drm_handle_at", "drivers/gpu/kfd_criu")


class PlanError(Exception):
    """plan.toml, or what it names, is wrong. The text is for the user."""


@dataclass(frozen=True)
class Program:
    """A test program. `kind` says how cases are listed, selected and read:
    gtest, kselftest, kunit, or command (one case, decided by the exit status)."""

    name: str
    kind: str
    argv: tuple[str, ...]
    limit_s: int
    cases: tuple[str, ...]
    # Whether the machine decides which of the cases there are: the program is asked there.
    varies: bool = False
    # Shards that run at the same time on the host; 1 in a virtual machine.
    shards: int = 1


@dataclass
class Run:
    """Cases of one program that are selected on a machine."""

    program: Program
    cases: list[str]


@dataclass
class Machine:
    """What programs run on. `options` are those of scripts/vm.sh; None: this host."""

    name: str
    tier: str
    options: list[str] | None
    env: dict[str, str]
    facts: dict[str, object]
    # Seconds from the boot to the end of a virtual machine.
    limit_s: int
    runs: list[Run] = field(default_factory=list)
    # What has to be there and is not; empty if all is.
    missing: str = ""
    # Whether the tests behind one that ends the machine run in a new one.
    reboots: bool = False
    collects: str = ""
    # About how long it takes: those that take longest begin first.
    seconds: int = 0


@dataclass(frozen=True)
class Exemption:
    """Cases that may skip, or be absent, where `when` holds."""

    program: str
    cases: tuple[str, ...]
    when: str
    reason: str


@functools.lru_cache(maxsize=None)
def chips() -> dict[str, dict[str, object]]:
    """Properties of each chip, by name, in the order of vasicd's table."""
    vasicd = paths.built("release") / "vasicd" / "vasicd"
    if not vasicd.exists():
        raise PlanError(f"{vasicd} is not built: scripts/build.sh release vasicd")
    text = subprocess.run([vasicd, "--list-chips", "--json"], check=True, capture_output=True, text=True,
                          timeout=LIST_LIMIT_S).stdout
    return {chip["name"]: chip for chip in json.loads(text)}


def sample(name: str) -> tuple[str, ...]:
    """The chips of a row of [samples] in plan.toml."""
    return tuple(tomllib.loads(paths.PLAN.read_text())["samples"][name])


def lacks_chips() -> bool:
    """Whether vasicd is not built, or is older than a row of its table of chips."""
    table = (paths.ROOT / "userspace/vasicd/chip_table.cc").read_text()
    try:
        return not set(re.findall(r'\.name = "(\w+)"', table)) <= set(chips())
    except (PlanError, OSError, subprocess.CalledProcessError, ValueError):
        return True


def holds(condition: str, facts: dict[str, object]) -> bool:
    """Whether an expression of plan.toml, a file of this project, is true of the facts."""
    try:
        return bool(eval(condition, {"__builtins__": {}}, facts))  # pylint: disable=eval-used
    except Exception as error:
        raise PlanError(f"plan.toml: '{condition}': {error}") from error


def matching(cases: list[str] | tuple[str, ...], patterns: list[str], where: str) -> list[str]:
    """The cases that a pattern selects and no "-pattern" takes away, in their order.

    A pattern that selects nothing is an error: a renamed test must not leave the plan
    silently. What takes away may match nothing, for a chip may not have the case.
    """
    wanted: set[str] = set()
    for pattern in patterns:
        if pattern.startswith("-"):
            continue
        found = fnmatch.filter(cases, pattern)
        if not found:
            raise PlanError(f"plan.toml: {where}: '{pattern}' selects no case")
        wanted.update(found)
    for pattern in patterns:
        if pattern.startswith("-"):
            wanted.difference_update(fnmatch.filter(wanted, pattern[1:]))
    return [case for case in cases if case in wanted]


def _list(argv: list[str], stream: str, env: tuple[tuple[str, str], ...] = ()) -> str:
    done = subprocess.run(argv, capture_output=True, text=True, timeout=LIST_LIMIT_S, check=False,
                          stdin=subprocess.DEVNULL, env={**os.environ, "ASAN_OPTIONS": "detect_leaks=0", **dict(env)})
    text = getattr(done, stream)
    # kselftest_harness.h ends a list with the status of a skip.
    if done.returncode not in (0, EXIT_SKIP):
        raise PlanError(f"{' '.join(argv)}: status {done.returncode}: {(done.stderr or done.stdout)[-300:]}")
    return text


@functools.lru_cache(maxsize=None)
def gtest_cases(path: Path, env: tuple[tuple[str, str], ...] = ()) -> tuple[str, ...]:
    """Names of the cases of a GoogleTest program."""
    if not path.exists():
        raise PlanError(f"{path} is not built")
    return tuple(streams.list_gtest(_list([str(path), "--gtest_list_tests"], "stdout", env)))


@functools.lru_cache(maxsize=None)
def kselftest_paths(variant: str) -> dict[str, Path]:
    """The kselftests of the series that are installed, by name."""
    folder = paths.selftests(variant)
    listed = folder / "kselftest-list.txt"
    if not listed.exists():
        raise PlanError(f"{listed} is not there: scripts/kernel.sh selftests {variant}")
    found: dict[str, Path] = {}
    for line in listed.read_text().split():
        below, _, name = line.partition(":")
        if below not in KSELFTESTS:
            continue
        if name in found:
            raise PlanError(f"{listed}: two kselftests are called {name}")
        found[name] = folder / below / name
    return found


@functools.lru_cache(maxsize=None)
def kselftest_programs(variant: str) -> dict[str, tuple[str, ...]]:
    """The kselftests of the series that are installed, each with the names of its cases."""
    return {name: tuple(streams.list_kselftest(_list([str(path), "-l"], "stderr")))
            for name, path in kselftest_paths(variant).items()}


@functools.lru_cache(maxsize=None)
def kselftest_attributes() -> dict[str, set[str]]:
    """The words of the line "Runs:" in the header comment of each kselftest's source, by program;
    the selftests' Makefile says what they mean."""
    found = {}
    for source in sorted(source for folder in KSELFTESTS
                         for source in paths.ROOT.glob(f"kernel/*/overlay/tools/testing/selftests/{folder}/*.c")):
        line = re.search(r"^ \* Runs: +(\S.*?)\s*$", source.read_text(), re.MULTILINE)
        if line:
            found[source.stem] = set(re.split(r",\s*", line.group(1)))
    return found


@functools.lru_cache(maxsize=None)
def kunit_suites() -> dict[str, tuple[str, ...]]:
    """The KUnit suites of the series, each with the names of its cases."""
    suites: dict[str, tuple[str, ...]] = {}
    for source in sorted(paths.ROOT.glob("kernel/*/overlay/drivers/**/*_test.c")):
        for name, cases in streams.list_kunit(source.read_text()).items():
            suites[name] = tuple(cases)
    return suites


def groups(path: Path) -> set[str]:
    """Names of the groups that the plan's machines are in."""
    return {group for row in tomllib.loads(path.read_text())["machine"] for group in row.get("groups", ["test"])} | {"all"}


class Plan:
    """plan.toml, expanded for one set of groups."""

    def __init__(self, path: Path, groups: set[str], full: set[str], everything: bool) -> None:
        """`groups`: those whose machines are wanted. `full`: chips on which all cases run.
        `everything`: with the runs that are marked heavy, as `make test-all` does."""
        self.data = tomllib.loads(path.read_text())
        self.groups, self.everything = groups, everything
        self.samples = {name: set(names) for name, names in self.data.get("samples", {}).items()}
        self.samples["full"] = full
        self.programs = self.data["program"]
        self.skips, self.absences = self._exemptions("skip"), self._exemptions("absent")

    def _exemptions(self, table: str) -> list[Exemption]:
        return [Exemption(row["program"], tuple(row["cases"]), row["when"], row["reason"])
                for row in self.data.get(table, [])]

    def machines(self) -> list[Machine]:
        """All machines of the groups."""
        found: list[Machine] = []
        for row in self.data["machine"]:
            if not self.groups & set(row.get("groups", ["test"])):
                continue
            if row.get("heavy") and not self.everything:
                continue
            found += [self._machine(row, name) for name in self._names(row)]
        found = [machine for machine in found if machine.runs or machine.missing]
        names = [machine.name for machine in found]
        mistakes = [f"plan.toml: two machines are named '{name}'" for name in sorted(set(names)) if names.count(name) > 1]
        mistakes += self._unknown_chips() + self._stale_exemptions(found)
        if mistakes:
            found.append(Machine("plan", "guest", None, {}, {}, 0, missing="\n".join(mistakes)))
        return found

    def machine_names(self) -> list[str]:
        """Names of all machines of the groups, also of those whose programs are not built."""
        return [row["name"].replace("{chip}", name) for row in self.data["machine"]
                if self.groups & set(row.get("groups", ["test"])) and (self.everything or not row.get("heavy"))
                for name in self._names(row)]

    def _unknown_chips(self) -> list[str]:
        """What is wrong with [samples] that name no chip: machines would be missing in silence."""
        try:
            known = chips()
        except PlanError:
            return []
        return [f"plan.toml: [samples] {sample}: no chip '{name}'"
                for sample, names in self.data.get("samples", {}).items() for name in names if name not in known]

    def _stale_exemptions(self, machines: list[Machine]) -> list[str]:
        """What is wrong with patterns of [[skip]] and [[absent]] that no case of their programs has:
        the case that they excused has another name by now."""
        known = {run.program.name: run.program.cases for machine in machines for run in machine.runs}
        return [f"plan.toml: an exemption of {rule.program}: '{pattern}' is no case"
                for rule in self.skips + self.absences for pattern in rule.cases
                if rule.program in known and not fnmatch.filter(known[rule.program], pattern)]

    def may_skip(self, machine: Machine, program: str, case: str) -> str:
        """The reason why this case may skip on this machine; empty if it must not."""
        return self._reason(self.skips, machine, program, case)

    def may_be_absent(self, machine: Machine, program: str, case: str) -> str:
        """The reason why the program may not have this case on this machine; empty if it must."""
        return self._reason(self.absences, machine, program, case)

    @staticmethod
    def _reason(rules: list[Exemption], machine: Machine, program: str, case: str) -> str:
        for rule in rules:
            if rule.program == program and any(fnmatch.fnmatchcase(case, pattern) for pattern in rule.cases) and \
                    holds(rule.when, machine.facts):
                return rule.reason
        return ""

    def _names(self, row: dict) -> list[str]:
        """Chips that the row stands for; one empty name if it is for no chip in particular."""
        if "each_chip" not in row:
            return [""]
        try:
            known = chips()
        except PlanError:
            return ["unknown-chip"]
        return [name for name, chip in known.items() if holds(row["each_chip"], self._facts(chip))]

    def _facts(self, chip: dict[str, object], row: dict | None = None) -> dict[str, object]:
        return {**self.samples, **chip, **self.data["defaults"].get("facts", {}), **(row or {}).get("facts", {})}

    def _machine(self, row: dict, chip: str) -> Machine:
        name = row["name"].replace("{chip}", chip)
        tier, variant = row.get("tier", "guest"), row.get("kernel", "criu")
        limit_s = row.get("limit_s", self.data["defaults"]["limit_s"])
        machine = Machine(name, tier, None, {}, {}, limit_s, reboots=row.get("reboots", False),
                          collects=row.get("collects", ""), seconds=row.get("seconds", 0))
        try:
            first = chip or next((gpu.split(",")[0] for gpu in self._gpus(row)), "")
            properties = chips().get(first, {}) if first else {}
            machine.facts = {**self._facts(properties, row), "machine": name,
                             "chips": " ".join(gpu.replace("{chip}", chip).split(",")[0] for gpu in self._gpus(row))}
            machine.env = self._environment(row, chip)
            if not row.get("host"):
                machine.options = self._options(row, chip, name, variant)
            for entry in row["run"]:
                if entry.get("heavy") and not self.everything:
                    continue
                if not holds(entry.get("when", "True"), machine.facts):
                    continue
                self._add_runs(machine, entry, variant)
            if machine.options and any(run.program.kind == "kunit" for run in machine.runs):
                machine.options.append("--kunit")
        except PlanError as error:
            machine.missing = str(error)
        return machine

    @staticmethod
    def _gpus(row: dict) -> list[str]:
        """Virtual GPUs of a machine; the one that has all chips gives each a little memory."""
        gpus = row.get("gpus", [])
        return [f"{each},vram=64M" for each in chips()] if gpus == "all" else gpus

    def _environment(self, row: dict, chip: str) -> dict[str, str]:
        """Variables of a machine: the row's, fewer inputs where not everything is wanted, and those of the caller."""
        values = row.get("env", {}) | ({} if self.everything else row.get("sample_env", {}))
        env = {key: str(value).replace("{chip}", chip) for key, value in values.items()}
        return env | {key: os.environ[key] for key in row.get("env_from", []) if key in os.environ}

    def _options(self, row: dict, chip: str, name: str, variant: str) -> list[str]:
        if not (paths.kernel(variant) / "bzImage").exists():
            raise PlanError(f"the kernel {variant} is not built: scripts/kernel.sh build {variant}")
        options = ["--kernel", variant]
        for gpu in self._gpus(row):
            gpu = gpu.replace("{chip}", chip)
            if ",vram=" not in gpu:
                gpu += f",vram={row.get('vram', self.data['defaults']['vram'])}"
            options += ["--gpu", gpu]
        for parameter in row.get("params", []):
            options += ["--param", parameter]
        options += [str(option) for option in row.get("options", [])]
        return options

    def _add_runs(self, machine: Machine, entry: dict, variant: str) -> None:
        for program in self._expand(entry, machine, variant):
            where = f"{machine.name}: {program.name}"
            patterns = self._patterns(entry, program)
            cases = matching(program.cases, patterns, where) if patterns else list(program.cases)
            if not cases:
                continue
            known = next((run for run in machine.runs if run.program.name == program.name), None)
            if known is None:
                machine.runs.append(Run(program, cases))
            else:
                known.cases = [case for case in program.cases if case in {*known.cases, *cases}]

    def _patterns(self, entry: dict, program: Program) -> list[str]:
        """Patterns for cases; "@set" stands for a set of the program in plan.toml."""
        patterns = []
        for pattern in entry.get("cases", []):
            sign, word = ("-", pattern[1:]) if pattern.startswith("-") else ("", pattern)
            if word.startswith("@"):
                patterns += [sign + each for each in self._set(program.name, word[1:])]
            else:
                patterns.append(pattern)
        return patterns

    def _set(self, program: str, name: str) -> list[str]:
        try:
            return self.data["set"][program][name]
        except KeyError as error:
            raise PlanError(f"plan.toml: {program} has no set '{name}'") from error

    def _expand(self, entry: dict, machine: Machine, variant: str) -> list[Program]:
        """The programs that an entry stands for: kselftests and KUnit have several."""
        name = entry["program"]
        row = self.programs.get(name)
        if row is None:
            raise PlanError(f"plan.toml: no program '{name}'")
        kind, limit_s = row["kind"], entry.get("limit_s", row.get("limit_s", self.data["defaults"]["program_limit_s"]))
        if kind == "kselftest":
            return self._kselftests(entry, variant, limit_s)
        if kind == "kunit":
            return [Program(suite, "kunit", ("cat", f"/sys/kernel/debug/kunit/{suite}/results"), limit_s, cases)
                    for suite, cases in kunit_suites().items()]
        facts = {key: str(value) for key, value in machine.facts.items()} | {"out": str(paths.OUT)}
        argv = [re.sub(r"\{(\w+)\}", lambda m: facts.get(m.group(1), m.group(0)), word) for word in row["argv"]]
        folder = paths.built(entry.get("preset", row.get("preset", "release")))
        argv = [word.replace("{built}", str(folder)).replace("{root}", str(paths.ROOT)) for word in argv]
        if kind == "gtest":
            # A program that is started by a script lists its cases itself.
            lister = Path(row.get("list", argv[0]).replace("{built}", str(folder)))
            env = tuple((key, str(value).replace("{chips}", facts["chips"])) for key, value in row.get("list_env", {}).items())
            cases = gtest_cases(lister, env)
        else:
            cases = (row.get("case", "succeeds"),)
        varies = machine.options is not None and any(rule.program == name for rule in self.absences)
        return [Program(name, kind, tuple(argv), limit_s, cases, varies, entry.get("shards", 1))]

    def _kselftests(self, entry: dict, variant: str, limit_s: int) -> list[Program]:
        """Each kselftest program is a program of its own; `programs` names or excludes some."""
        listed = kselftest_programs(variant)
        patterns = []
        for pattern in entry.get("programs", ["*"]):
            sign, word = ("-", pattern[1:]) if pattern.startswith("-") else ("", pattern)
            if word.startswith("@"):
                names = [program for program, runs in kselftest_attributes().items() if word[1:] in runs]
                if not names and not sign:
                    raise PlanError(f"plan.toml: no kselftest says '{word[1:]}' in its line 'Runs:'")
                patterns += [sign + program for program in names]
            else:
                patterns.append(pattern)
        installed = kselftest_paths(variant)
        return [Program(program, "kselftest", (str(installed[program]),), limit_s, listed[program])
                for program in matching(list(listed), patterns, "kselftests")]
