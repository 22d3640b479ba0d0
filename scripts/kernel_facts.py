#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""usage: kernel_facts.py KERNEL-TREE

Prints facts about hardware from the headers of a kernel tree, one fact a line;
userspace/golden compares our own constants with them. Needs gcc and readelf, no build.

  field UNIT/STRUCT.MEMBER... BIT WIDTH   where a member is; members of anonymous
                                          structs and unions belong to their parent
  value UNIT/NAME NUMBER                  an enumerator, a macro, a macro of one
                                          argument applied to 1 ("NAME(1)")
  value UNIT/sizeof.STRUCT BYTES

Structs and enumerators come from the compiler's debug information, macros from the
output of a compiled program. Status 1, with the reason, if a header is not as
expected; 64 usage.
"""
from __future__ import annotations

import pathlib
import re
import subprocess
import sys
import tempfile
from typing import Iterable, Iterator, NamedTuple

AMD = "drivers/gpu/drm/amd/"
REGISTERS = AMD + "include/asic_reg/"
# Queue registers whose fields we use; the headers have tens of thousands.
COMPUTE_REGISTERS = r"(CP_HQD_(PQ_CONTROL|PQ_DOORBELL_CONTROL|IB_CONTROL|ERROR|AQL_CONTROL|VMID)|SQ_INTERRUPT_WORD\w*)__"
PM4_MACROS = r"PACKET\w*|WRITE_DATA\w*|WR_\w+|WAIT_REG_MEM\w*|INDIRECT_BUFFER_VALID|EVENT_\w+|INT_SEL|DATA_SEL"
SDMA_REGISTERS = (r"SDMA0_(RLC0|QUEUE0)_(RB_CNTL|IB_CNTL|IB_RPTR|IB_OFFSET|IB_SIZE|SKIP_CNTL|DOORBELL|"
                  r"DOORBELL_OFFSET|CONTEXT_STATUS|VIRTUAL_ADDR)__")


class Structs(NamedTuple):
    """A header whose structs and enumerators are printed. `prelude` precedes it."""
    unit: str
    header: str
    prelude: str = ""


class Macros(NamedTuple):
    """A header whose macros with a matching name are printed."""
    unit: str
    header: str
    names: str = r"\w+"


INTEGERS = "#include <stdint.h>\n#include <stdbool.h>\n"

STRUCTS = [
    *(Structs(gen, f"{AMD}include/{gen}_structs.h", INTEGERS) for gen in ("cik", "vi", "v9", "v10", "v11", "v12")),
    Structs("pm4_vi", AMD + "amdkfd/kfd_pm4_headers_vi.h", INTEGERS),
    Structs("pm4_ai", AMD + "amdkfd/kfd_pm4_headers_ai.h", INTEGERS),
    Structs("pm4_aldebaran", AMD + "amdkfd/kfd_pm4_headers_aldebaran.h",
            INTEGERS + '#include "{tree}/' + AMD + 'amdkfd/kfd_pm4_headers_ai.h"\n'),
    Structs("opcodes", AMD + "amdkfd/kfd_pm4_opcodes.h"),
    Structs("clients", AMD + "include/soc15_ih_clientid.h"),
    Structs("kfd_ioctl", "include/uapi/linux/kfd_ioctl.h", "#define __user\n"),
]

MACROS = [
    Macros("vm", AMD + "amdgpu/amdgpu_vm.h", r"AMDGPU_(PTE|PDE|VM_NORETRY)_\w+"),
    Macros("cikd", AMD + "amdgpu/cikd.h", PM4_MACROS + r"|SDMA_\w+"),
    Macros("vid", AMD + "amdgpu/vid.h", PM4_MACROS),
    Macros("soc15d", AMD + "amdgpu/soc15d.h", PM4_MACROS),
    Macros("nvd", AMD + "amdgpu/nvd.h", PM4_MACROS),
    Macros("opcodes", AMD + "amdkfd/kfd_pm4_opcodes.h"),
    Macros("irq_vi", AMD + "include/ivsrcid/ivsrcid_vislands30.h"),
    Macros("irq_gfx9", AMD + "include/ivsrcid/gfx/irqsrcs_gfx_9_0.h"),
    Macros("irq_gfx10", AMD + "include/ivsrcid/gfx/irqsrcs_gfx_10_1.h"),
    Macros("irq_gfx11", AMD + "include/ivsrcid/gfx/irqsrcs_gfx_11_0_0.h"),
    Macros("irq_sdma4", AMD + "include/ivsrcid/sdma0/irqsrcs_sdma0_4_0.h"),
    Macros("irq_sdma5", AMD + "include/ivsrcid/sdma0/irqsrcs_sdma0_5_0.h"),
    Macros("irq_vmc", AMD + "include/ivsrcid/vmc/irqsrcs_vmc_1_0.h"),
    Macros("sdma3", AMD + "amdgpu/tonga_sdma_pkt_open.h"),
    Macros("sdma4", AMD + "amdgpu/vega10_sdma_pkt_open.h"),
    Macros("sdma5", AMD + "amdgpu/navi10_sdma_pkt_open.h"),
    Macros("sdma6", AMD + "amdgpu/sdma_v6_0_0_pkt_open.h"),
    Macros("gc7", REGISTERS + "gca/gfx_7_2_sh_mask.h", COMPUTE_REGISTERS + r"\w+"),
    Macros("gc8", REGISTERS + "gca/gfx_8_0_sh_mask.h", COMPUTE_REGISTERS + r"\w+"),
    Macros("gc9", REGISTERS + "gc/gc_9_0_sh_mask.h", COMPUTE_REGISTERS + r"\w+"),
    Macros("gc10", REGISTERS + "gc/gc_10_1_0_sh_mask.h", f"({COMPUTE_REGISTERS}|{SDMA_REGISTERS})" + r"\w+"),
    Macros("gc11", REGISTERS + "gc/gc_11_0_0_sh_mask.h", f"({COMPUTE_REGISTERS}|{SDMA_REGISTERS})" + r"\w+"),
    Macros("gc12", REGISTERS + "gc/gc_12_0_0_sh_mask.h", f"({COMPUTE_REGISTERS}|{SDMA_REGISTERS})" + r"\w+"),
    Macros("oss2", REGISTERS + "oss/oss_2_0_sh_mask.h", SDMA_REGISTERS + r"\w+"),
    Macros("oss3", REGISTERS + "oss/oss_3_0_sh_mask.h", SDMA_REGISTERS + r"\w+"),
    Macros("sdma4_0", REGISTERS + "sdma0/sdma0_4_0_sh_mask.h", SDMA_REGISTERS + r"\w+"),
]


class FactsError(Exception):
    """A header is missing or is not as expected."""


# ---- structs and enumerators: the compiler's debug information ---------------

class Entry:
    """One entry of .debug_info."""

    def __init__(self, tag: str):
        self.tag = tag
        self.attributes: dict[str, str] = {}
        self.children: list[Entry] = []

    def number(self, attribute: str) -> int | None:
        text = self.attributes.get(attribute)
        return None if text is None else int(text.split()[0].strip("<>,"), 0)

    @property
    def name(self) -> str:
        return self.attributes.get("name", "")


ENTRY_LINE = re.compile(r"^\s*<([0-9a-f]+)><([0-9a-f]+)>: Abbrev Number: \d+ \(DW_TAG_(\w+)\)")
ATTRIBUTE_LINE = re.compile(r"^\s*<[0-9a-f]+>\s+DW_AT_(\w+)\s*: (.*)$")


def parse_debug_info(lines: Iterable[str]) -> dict[int, Entry]:
    """Returns all entries by offset, from the output of readelf."""
    entries: dict[int, Entry] = {}
    path: list[Entry] = []
    for line in lines:
        begin, attribute = ENTRY_LINE.match(line), ATTRIBUTE_LINE.match(line)
        if begin:
            depth, entry = int(begin.group(1), 16), Entry(begin.group(3))
            entries[int(begin.group(2), 16)] = entry
            del path[depth:]
            if path:
                path[-1].children.append(entry)
            path.append(entry)
        elif attribute and path:
            # readelf prints the form before the value: "(data2) ", "(strp) (offset: 0x1): ".
            path[-1].attributes[attribute.group(1)] = re.sub(r"^(\(.*?\):? )+", "", attribute.group(2).strip())
    return entries


class DebugInfo:
    def __init__(self, entries: dict[int, Entry]):
        self.entries = entries

    def type_of(self, entry: Entry) -> Entry | None:
        """The type behind typedefs, qualifiers and arrays."""
        while "type" in entry.attributes:
            entry = self.entries[entry.number("type")]
            if entry.tag not in ("typedef", "const_type", "volatile_type", "array_type"):
                return entry
        return None

    def fields(self, aggregate: Entry, prefix: str, base: int) -> Iterator[tuple[str, int, int]]:
        for member in aggregate.children:
            if member.tag != "member":
                continue
            bit = member.number("data_bit_offset")
            if bit is None:
                bit = 8 * (member.number("data_member_location") or 0)
            inner = self.type_of(member)
            name = f"{prefix}.{member.name}" if member.name else prefix
            if inner is not None and inner.tag in ("structure_type", "union_type"):
                yield from self.fields(inner, name, base + bit)
            if member.name:
                width = member.number("bit_size")
                if width is None:
                    width = 8 * ((inner.number("byte_size") if inner else None) or 0)
                yield name, base + bit, width

    def facts(self, unit: str) -> Iterator[str]:
        for entry in self.entries.values():
            if entry.tag in ("structure_type", "union_type") and entry.name and entry.children:
                yield f"value {unit}/sizeof.{entry.name} {entry.number('byte_size')}"
                for name, bit, width in self.fields(entry, entry.name, 0):
                    yield f"field {unit}/{name} {bit} {width}"
            elif entry.tag == "enumerator":
                yield f"value {unit}/{entry.name} {entry.number('const_value')}"


def struct_facts(tree: pathlib.Path, wanted: Structs, folder: str) -> Iterator[str]:
    source = wanted.prelude.replace("{tree}", str(tree)) + f'#include "{tree / wanted.header}"\n'
    made = f"{folder}/{wanted.unit}.o"
    run(["gcc", "-x", "c", "-w", "-g", "-fno-eliminate-unused-debug-types", "-fno-eliminate-unused-debug-symbols",
         "-idirafter", str(tree / "include/uapi"), "-c", "-o", made, "-"], wanted.header, source)
    text = run(["readelf", "--wide", "--debug-dump=info", made], wanted.header)
    found = list(DebugInfo(parse_debug_info(text.splitlines())).facts(wanted.unit))
    if not found:
        raise FactsError(f"{wanted.header}: no struct found")
    return iter(found)


# ---- macros: a program that prints them --------------------------------------

DEFINE = re.compile(r"^\s*#\s*define\s+(\w+)(\((\w+)\))?(?=[\s(]|$)(.*)$")
# Characters of a macro's body that is an integer expression; others are left out.
BODY = re.compile(r"^[\w\s()<>|&~+*-]+$")


def logical_lines(text: str) -> Iterator[str]:
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    text = re.sub(r"//[^\n]*", " ", text)
    yield from text.replace("\\\n", " ").splitlines()


def defines(text: str) -> dict[str, tuple[str, str]]:
    """Returns {name: (its one argument or "", body)} of the macros that may be integers."""
    found = {}
    for line in logical_lines(text):
        match = DEFINE.match(line)
        if match and BODY.match(match.group(4)) and match.group(4).strip():
            found[match.group(1)] = (match.group(3) or "", match.group(4).strip())
    return found


WORD = re.compile(r"\b[A-Za-z_]\w*")
TYPES = {"uint64_t", "uint32_t", "unsigned", "int", "long"}


def usable(found: dict[str, tuple[str, str]]) -> dict[str, tuple[str, str]]:
    """Returns the macros whose bodies use only macros of this set, arguments and types."""
    while True:
        known = {name: (argument, body) for name, (argument, body) in found.items()
                 if all(word in found or word == argument or word in TYPES for word in WORD.findall(body))}
        if len(known) == len(found):
            return known
        found = known


def macro_facts(tree: pathlib.Path, wanted: Macros, folder: str) -> Iterator[str]:
    known = usable(defines((tree / wanted.header).read_text()))
    names = [name for name in known if re.fullmatch(wanted.names, name)]
    if not names:
        raise FactsError(f"{wanted.header}: no macro found")
    source = INTEGERS + "#include <stdio.h>\n"
    for name, (argument, body) in known.items():
        source += f"#define {name}{f'({argument})' if argument else ''} {body}\n"
    source += "int main(void) {\n"
    for name in names:
        call = f"{name}(1)" if known[name][0] else name
        source += f'printf("value {wanted.unit}/{call} %llu\\n", (unsigned long long)({call}));\n'
    source += "return 0; }\n"
    binary = f"{folder}/{wanted.unit}"
    run(["gcc", "-x", "c", "-w", "-O0", "-o", binary, "-"], wanted.header, source)
    return iter(run([binary], wanted.header).splitlines())


def run(command: list[str], header: str, text: str = "") -> str:
    done = subprocess.run(command, input=text, text=True, capture_output=True, check=False)
    if done.returncode != 0:
        raise FactsError(f"{header}: {command[0]}: {done.stderr.strip()[:400]}")
    return done.stdout


def facts(tree: pathlib.Path) -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        for structs in STRUCTS:
            yield from struct_facts(tree, structs, folder)
        for macros in MACROS:
            yield from macro_facts(tree, macros, folder)


def main() -> int:
    tree = pathlib.Path(sys.argv[1]).resolve() if len(sys.argv) == 2 else None
    if tree is None or not (tree / AMD).is_dir():
        print(f"kernel_facts.py: usage: kernel_facts.py KERNEL-TREE (one with {AMD})", file=sys.stderr)
        return 64
    try:
        for fact in facts(tree):
            print(fact)
    except (FactsError, OSError) as error:
        print(f"kernel_facts.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
