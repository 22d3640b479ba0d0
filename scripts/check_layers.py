#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""Checks real dependencies against the table in ARCHITECTURE.md.

usage: check_layers.py [PROJECT-FOLDER]

The table stands between the lines `<!-- layers -->` and `<!-- /layers -->`:

  | part        | may include      |
  |-------------|------------------|
  | base        |                  |
  | plugin      | base kfd         |
  | plugin/copy | base kfd packets |

A part is a folder of userspace/, or a folder inside one. Every file may include
kernel/uapi (called uapi), even if its row does not name it; files in the rest of
kernel/ may include nothing else. Names are separated by blanks or commas; backticks
are ignored. A file belongs to the longest part that contains it, and may include the
parts in its row and all files of its top folder. Every folder of userspace/ needs a
row, every row a folder.
Checked: #include lines, target_link_libraries, and paths into another part in
CMake and Python files. Files with one name (x.h, x.cc) are a unit: neither units nor
folders include each other in a circle; tests, benchmarks and fakes are no units.
Status 1 and one line for each breach.
"""
from __future__ import annotations

import re
import sys
from pathlib import Path, PurePosixPath

BEGIN, END = "<!-- layers -->", "<!-- /layers -->"
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]')
TARGET = re.compile(r"\badd_(?:library|executable)\s*\(\s*([\w.-]+)", re.I)
LINK = re.compile(r"\btarget_link_libraries\s*\(\s*([\w.-]+)([^)]*)\)", re.I)
CODE_PATH = re.compile(r"(?:userspace|\.\.)/([\w.-]+(?:/[\w.-]+)*)")
SOURCES = (".c", ".cc", ".h", ".cpp", ".hpp", ".S")
UAPI, KERNEL = "uapi", "kernel"
NO_UNIT = re.compile(r"_test$|_bench$|(^|/)fakes?(_|/)")


class TableError(Exception):
    """The table is missing or malformed."""


def parse_table(text: str) -> dict[str, set[str]]:
    lines = [line.strip() for line in text.splitlines()]
    if BEGIN not in lines:
        raise TableError(f"no line {BEGIN}")
    rest = lines[lines.index(BEGIN) + 1:]
    if END not in rest:
        raise TableError(f"no line {END} after {BEGIN}")
    table: dict[str, set[str]] = {}
    for line in rest[:rest.index(END)]:
        cells = [cell.strip().replace("`", "") for cell in line.strip("|").split("|")]
        if not line.startswith("|") or cells[0] in ("part", "") or set(cells[0]) <= set("-: "):
            continue
        if len(cells) < 2:
            raise TableError(f"a row has no second column: {line}")
        if cells[0] in table:
            raise TableError(f"two rows for {cells[0]}")
        table[cells[0]] = set(re.split(r"[\s,]+", cells[1])) - {"", "-", "nothing"}
    if not table:
        raise TableError("the table has no rows")
    for part, allowed in table.items():
        for name in sorted(allowed - table.keys() - {UAPI}):
            raise TableError(f"the row {part} names {name}, which has no row")
    return table


def circles(graph: dict[str, set[str]]) -> list[set[str]]:
    """The largest sets of nodes each of which leads to every other one."""
    reach: dict[str, set[str]] = {}
    for node in graph:
        seen, todo = set(), [node]
        while todo:
            for following in graph.get(todo.pop(), set()) - seen:
                seen.add(following)
                todo.append(following)
        reach[node] = seen
    found: list[set[str]] = []
    for node in sorted(graph):
        circle = {other for other in reach[node] if node in reach.get(other, set())}
        if circle and circle not in found:
            found.append(circle)
    return found


class Project:
    """The files of a project and the part that each belongs to."""

    def __init__(self, root: Path, table: dict[str, set[str]]):
        self.root, self.table = root, table
        self.userspace, self.uapi = root / "userspace", root / "kernel" / "uapi"
        self.breaches: list[str] = []
        self.units: dict[str, set[str]] = {}
        self.folders: dict[str, set[str]] = {}

    def part_of(self, path: Path) -> str:
        """Returns the part of a file, or "" if it is in no part."""
        if path.is_relative_to(self.uapi):
            return UAPI
        if path.is_relative_to(self.root / "kernel"):
            return KERNEL
        if not path.is_relative_to(self.userspace):
            return ""
        folders = PurePosixPath(path.relative_to(self.userspace)).parts[:-1]
        for length in range(len(folders), 0, -1):
            name = "/".join(folders[:length])
            if name in self.table or length == 1:
                return name
        return ""

    def allowed(self, part: str, other: str) -> bool:
        if other in ("", UAPI) or part.split("/")[0] == other.split("/")[0]:
            return True
        names = self.table.get(part, set())
        return other in names or other.split("/")[0] in names

    def check(self, file: Path, line: int, part: str, other: str, what: str) -> None:
        if not self.allowed(part, other):
            place = f"{file.relative_to(self.root)}:{line}"
            self.breaches.append(f"{place}: {part} must not depend on {other} ({what}); see row '{part}'")

    def resolve(self, file: Path, name: str) -> Path | None:
        for folder in (file.parent, self.userspace, self.uapi):
            path = (folder / name).resolve()
            if path.is_file() and path.is_relative_to(self.root):
                return path
        return None

    def check_includes(self, file: Path) -> None:
        for number, line in enumerate(file.read_text(errors="replace").splitlines(), 1):
            match = INCLUDE.match(line)
            target = self.resolve(file, match.group(1)) if match else None
            if target:
                self.check(file, number, self.part_of(file), self.part_of(target), match.group(1))
                self.note_edge(file, target)

    def note_edge(self, file: Path, target: Path) -> None:
        """Remembers that a unit, and so a folder, includes another one."""
        if not file.is_relative_to(self.userspace) or not target.is_relative_to(self.userspace):
            return
        if not self.allowed(self.part_of(file), self.part_of(target)):
            return
        unit, other = (path.relative_to(self.userspace).with_suffix("") for path in (file, target))
        if NO_UNIT.search(str(unit)) or NO_UNIT.search(str(other)):
            return
        for graph, begin, end in ((self.units, unit, other), (self.folders, unit.parent, other.parent)):
            if begin != end:
                graph.setdefault(str(begin), set()).add(str(end))

    def check_circles(self) -> None:
        for graph in (self.units, self.folders):
            for circle in circles(graph):
                self.breaches.append(f"userspace: these include each other in a circle: {' '.join(sorted(circle))}")

    def check_links(self, file: Path, owners: dict[str, str]) -> None:
        text = re.sub(r"#.*", "", file.read_text())
        part = self.part_of(file)
        for match in LINK.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            for name in match.group(2).split():
                self.check(file, line, part, owners.get(name, ""), f"links {name}")

    def check_paths(self, file: Path) -> None:
        part = self.part_of(file)
        for number, line in enumerate(file.read_text(errors="replace").splitlines(), 1):
            for match in CODE_PATH.finditer(line.split("#")[0]):
                other = self.part_of(self.userspace / match.group(1) / "x")
                if (self.userspace / other).is_dir():
                    self.check(file, number, part, other, match.group(0))

    def check_rows(self) -> None:
        for folder in sorted(path for path in self.userspace.iterdir() if path.is_dir()):
            has_files = any(path.is_file() for path in folder.rglob("*"))
            if has_files and folder.name not in self.table:
                self.breaches.append(f"userspace/{folder.name}: no row in the table")
        for name in self.table:
            if name not in (UAPI, KERNEL) and not (self.userspace / name).is_dir():
                self.breaches.append(f"the row {name} has no folder userspace/{name}")

    def run(self) -> list[str]:
        self.check_rows()
        cmake = sorted(self.userspace.rglob("CMakeLists.txt"))
        owners = {name: self.part_of(file) for file in cmake for name in TARGET.findall(file.read_text())}
        owners[UAPI] = UAPI
        for file in sorted([*self.userspace.rglob("*"), *(self.root / "kernel").rglob("*")]):
            if file.suffix in SOURCES and file.is_file():
                self.check_includes(file)
        self.check_circles()
        for file in cmake:
            self.check_links(file, owners)
        for file in [*cmake, *sorted(self.userspace.rglob("*.py"))]:
            self.check_paths(file)
        return self.breaches


def main(arguments: list[str]) -> int:
    root = Path(arguments[0] if arguments else Path(__file__).resolve().parent.parent).resolve()
    try:
        table = parse_table((root / "ARCHITECTURE.md").read_text())
    except (OSError, TableError) as error:
        print(f"ARCHITECTURE.md: {error}", file=sys.stderr)
        return 1
    breaches = Project(root, table).run()
    for breach in breaches:
        print(breach, file=sys.stderr)
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
