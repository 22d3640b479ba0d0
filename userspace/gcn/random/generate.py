#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
#
# usage: generate.py functions NUMBER COUNT PATH
#        generate.py index FILES COUNT PATH
#
# "functions" writes a C file with COUNT random functions, each as a kernel for the GPU and as a plain function for the
# host (prelude.h says how). It is file NUMBER of several; a function's text depends only on its number in all of them.
# "index" writes a C file with the addresses of the host's functions of FILES such files (functions.h).
#
# The functions have no undefined behaviour: shifts are masked, divisors are made harmless, floats are converted only
# when in range, signed overflow wraps (-fwrapv). Nothing depends on the sign or payload of a NaN.
import random
import sys

INTEGERS = ["i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64"]
FLOATS = ["f16", "f32", "f64"]
BITS = {"i8": 8, "u8": 8, "i16": 16, "u16": 16, "i32": 32, "u32": 32, "i64": 64, "u64": 64}
# How often a value has each type: most instructions work on 32 bits.
TYPE_WEIGHTS = {"i8": 1, "u8": 1, "i16": 2, "u16": 2, "i32": 8, "u32": 8, "i64": 4, "u64": 4, "f16": 2, "f32": 6, "f64": 4}
CONSTANTS = [0, 1, 2, 3, 5, 7, 10, 16, 31, 63, 64, 65, 100, 127, 128, 255, 256, 1000, 4095, 32767, 32768, 65535,
             0x12345678, 0x55555555, 0x7fffffff, 0x80000000, 0xfffffff0, 0xffffffff]
WIDE_CONSTANTS = [0x100000000, 0x123456789abcdef0, 0x7fffffffffffffff, 0xffffffff00000000, 0xfffffffffffffff7]
FLOAT_CONSTANTS = ["0.0", "0.5", "1.0", "2.0", "4.0", "-1.0", "-4.0", "3.25", "0.1", "100.0", "-0.0", "1e-3"]
# Parameters that are equal in all lanes: the scalar unit computes what depends on these only.
UNIFORMS = [("u64", "s0"), ("i64", "s1"), ("u32", "s2"), ("i32", "s3")]
LDS_WORDS = 8
MEMORY_WORDS = 16


class Function:
    """One function: its statements, and the variables that can be read at a point of it."""

    def __init__(self, number):
        self.random = random.Random(0x676678 + number)
        self.number = number
        self.lines = []
        self.variables = []  # (type, name)
        self.indent = 1
        self.next = 0
        self.loops = 0
        self.arrays = []  # (type, name, size)
        self.assigned = []  # variables that do not have their first value

    def emit(self, text):
        self.lines.append("  " * self.indent + text)

    def pick_type(self):
        return self.random.choices(list(TYPE_WEIGHTS), list(TYPE_WEIGHTS.values()))[0]

    def new_name(self):
        self.next += 1
        return f"v{self.next}"

    def chance(self, probability):
        return self.random.random() < probability

    # Expressions. `depth`: how many levels of operators may follow.

    def leaf(self, wanted):
        same = [name for kind, name in self.variables if kind == wanted]
        if same and self.chance(0.75):
            return self.random.choice(same)
        if self.chance(0.4):
            return self.constant(wanted)
        kind, name = self.random.choice(self.variables)
        return self.convert(wanted, kind, name)

    def constant(self, wanted):
        if wanted in FLOATS:
            return f"({wanted}){self.random.choice(FLOAT_CONSTANTS)}"
        values = CONSTANTS + (WIDE_CONSTANTS if BITS[wanted] == 64 else [])
        return f"({wanted}){self.random.choice(values):#x}ul"

    def convert(self, wanted, kind, text):
        if kind == wanted:
            return text
        if kind in FLOATS and wanted in INTEGERS:
            return f"{kind}_to_{wanted}({text})"
        return f"({wanted}){text}"

    def expression(self, wanted, depth):
        if depth == 0:
            return self.leaf(wanted)
        if self.chance(0.12):
            other = self.pick_type()
            return self.convert(wanted, other, "(" + self.expression(other, depth - 1) + ")")
        if self.chance(0.1):
            return (f"({self.condition(depth - 1)} ? {self.expression(wanted, depth - 1)} : "
                    f"{self.expression(wanted, depth - 1)})")
        return self.float_expression(wanted, depth) if wanted in FLOATS else self.integer_expression(wanted, depth)

    def integer_expression(self, t, depth):
        a, b = self.expression(t, depth - 1), self.expression(t, depth - 1)
        bits = BITS[t]
        forms = [
            (8, f"({t})({a} + {b})"), (8, f"({t})({a} - {b})"), (6, f"({t})({a} * {b})"),
            (4, f"({t})({a} & {b})"), (4, f"({t})({a} | {b})"), (4, f"({t})({a} ^ {b})"),
            (2, f"({t})~{a}"), (2, f"({t})-{a}"),
            (4, f"({t})({a} << ({b} & {bits - 1}))"), (4, f"({t})({a} >> ({b} & {bits - 1}))"),
            (2, f"({t})({a} << {self.random.randrange(bits)})"), (2, f"({t})({a} >> {self.random.randrange(bits)})"),
            (2, f"min_{t}({a}, {b})"), (2, f"max_{t}({a}, {b})"),
            (1, f"divide_{t}({a}, {b})"), (1, f"remainder_{t}({a}, {b})"),
        ]
        if bits >= 32:
            u = "u" + t[1:]
            shift = self.random.randrange(1, bits)
            width = self.random.randrange(1, bits)
            c = self.expression(t, depth - 1)
            forms += [
                (1, f"({t})rotate_{u}(({u}){a}, {shift})"), (1, f"({t})count_{u}(({u}){a})"),
                (1, f"({t})leading_{u}(({u}){a})"), (1, f"({t})trailing_{u}(({u}){a})"),
                (1, f"({t})swap_{u}(({u}){a})"), (1, f"({t})reverse_{u}(({u}){a})"), (1, f"high_{t}({a}, {b})"),
                (1, f"({t})(({t})(({u}){a} << {shift}) >> {width})"), (1, f"({t})(({a} & {b}) | (~{a} & {c}))"),
                (1, f"({t})(({a} << {shift}) + {b})"), (1, f"({t})({a} + {b} + {c})"),
                (1, f"max_{t}(min_{t}({a}, {b}), {c})"),
            ]
        return self.choose(forms)

    def float_expression(self, t, depth):
        a, b = self.expression(t, depth - 1), self.expression(t, depth - 1)
        forms = [(8, f"({a} + {b})"), (6, f"({a} - {b})"), (8, f"({a} * {b})"), (2, f"(-{a})"),
                 (1, f"absolute_{t}({a})"), (2, f"least_{t}({a}, {b})"), (2, f"greatest_{t}({a}, {b})")]
        if t != "f16":
            c = self.expression(t, depth - 1)
            forms += [(2, f"({a} / {b})"), (3, f"fma_{t}({a}, {b}, {c})"), (1, f"floor_{t}({a})"),
                      (1, f"ceil_{t}({a})"), (1, f"trunc_{t}({a})"), (1, f"rint_{t}({a})"),
                      (1, f"copysign_{t}({a}, {b})"), (1, f"sqrt_{t}({a})")]
        return self.choose(forms)

    def choose(self, forms):
        return self.random.choices([text for _, text in forms], [weight for weight, _ in forms])[0]

    def condition(self, depth):
        t = self.pick_type()
        operator = self.random.choice(["<", "<=", ">", ">=", "==", "!="])
        text = f"({self.expression(t, depth)} {operator} {self.expression(t, depth)})"
        if depth > 0 and self.chance(0.2):
            return f"({text} {self.random.choice(['&&', '||'])} {self.condition(depth - 1)})"
        return text

    # Where an index is subtracted from a constant, the compiler adds a large offset to a negative register, and only the
    # sum is an address: buffer instructions of private arrays. A constant of ones only would become an exclusive or.
    def index(self, size):
        if size < 16 or not self.chance(0.4):
            return f"({self.expression('u32', 1)} & {size - 1})"
        mask = self.random.choice([size // 2 - 1, size // 4 - 1])
        constant = self.random.randrange(size // 2, size - 1)
        return f"({constant} - ({self.expression('u32', 1)} & {mask}))"

    # Statements.

    def declare(self):
        t = self.pick_type()
        text = self.expression(t, self.random.choice([1, 2, 2, 2, 3]))
        name = self.new_name()
        self.emit(f"{t} {name} = {text};")
        self.variables.append((t, name))

    def assign(self):
        t, name = self.random.choice([v for v in self.variables if v[1].startswith("v")])
        self.emit(f"{name} = {self.expression(t, 2)};")
        self.assigned.append((t, name))

    def block(self, statements):
        kept = len(self.variables), len(self.arrays)
        self.indent += 1
        for _ in range(statements):
            self.statement()
        self.indent -= 1
        del self.variables[kept[0]:]
        del self.arrays[kept[1]:]

    def branch(self):
        self.emit(f"if ({self.condition(1)}) {{")
        self.block(self.random.randrange(1, 4))
        if self.chance(0.5):
            self.emit("} else {")
            self.block(self.random.randrange(1, 4))
        self.emit("}")

    def loop(self):
        if self.loops >= 2:
            return self.assign()
        self.loops += 1
        counter = f"n{self.next}"
        self.next += 1
        bound = self.index(8) if self.chance(0.7) else str(self.random.randrange(1, 6))
        self.emit(f"for (u32 {counter} = 0; {counter} < {bound}; ++{counter}) {{")
        self.variables.append(("u32", counter))
        if self.chance(0.2):
            self.emit(f"  if ({self.condition(1)}) {self.random.choice(['break', 'continue'])};")
        self.block(self.random.randrange(1, 4))
        self.variables.remove(("u32", counter))
        self.emit("}")
        self.loops -= 1

    def switch(self):
        cases = self.random.randrange(2, 5)
        self.emit(f"switch ({self.index(8)}) {{")
        for value in self.random.sample(range(8), cases):
            self.emit(f"  case {value}: {{")
            self.block(1)
            self.emit("  } break;")
        self.emit("  default: break;")
        self.emit("}")

    # A private array of the lane: the compiler keeps most small ones in registers and large ones in scratch memory.
    def array(self):
        if self.loops > 0 or len(self.arrays) >= 2:
            return self.array_access()
        t = self.pick_type()
        # clang 15 writes two bytes at once in an array of eight or fewer that it keeps in registers.
        size = self.random.choice([16, 32] if BITS.get(t) == 8 else [4, 8, 16, 32, 64])
        name = f"a{self.next}"
        self.next += 1
        self.emit(f"{t} {name}[{size}];")
        self.emit(f"for (u32 i = 0; i < {size}; ++i) {name}[i] = ({t})({self.leaf('u32')} + i * {self.leaf('u32')});")
        self.arrays.append((t, name, size))
        self.array_access()

    def array_access(self):
        if not self.arrays:
            return self.declare()
        t, name, size = self.random.choice(self.arrays)
        if self.chance(0.5):
            self.emit(f"{name}[{self.index(size)}] = {self.expression(t, 1)};")
        self.read(t, f"{name}[{self.index(size)}]")

    def read(self, t, text):
        name = self.new_name()
        self.emit(f"{t} {name} = {text};")
        self.variables.append((t, name))

    # Accesses the lane's global memory as elements of any integer type.
    def memory(self):
        t = self.random.choice(INTEGERS)
        size = MEMORY_WORDS * 64 // BITS[t]
        place = f"(({t} *)memory)"
        if self.chance(0.5):
            self.emit(f"{place}[{self.index(size)}] = {self.expression(t, 1)};")
        self.read(t, f"{place}[{self.index(size)}]")

    def local(self):
        t = self.random.choice(INTEGERS)
        size = LDS_WORDS * 64 // BITS[t]
        place = f"((LDS {t} *)lds)"
        if self.chance(0.6):
            self.emit(f"{place}[{self.index(size)}] = {self.expression(t, 1)};")
        self.read(t, f"{place}[{self.index(size)}]")

    def atomic(self):
        t = self.random.choice(["i32", "u32", "i64", "u64"])
        space, words = self.random.choice([("", MEMORY_WORDS), ("LDS ", LDS_WORDS)])
        base = "lds" if space else "memory"
        place = f"(({space}{t} *){base}) + {self.index(words * 64 // BITS[t])}"
        operation = self.random.choice(["add", "sub", "and", "or", "xor", "min", "max"])
        value = self.expression(t, 1)
        if self.chance(0.2):
            return self.read(t, f"__atomic_exchange_n({place}, {value}, __ATOMIC_RELAXED)")
        self.read(t, f"__atomic_fetch_{operation}({place}, {value}, __ATOMIC_SEQ_CST)")

    def call(self):
        kind = self.random.choice(["mix", "blend", "sum"])
        if kind == "mix":
            text, t = f"mix({self.expression('u32', 1)}, {self.expression('u64', 1)}, {self.expression('i32', 1)})", "u64"
        elif kind == "blend":
            text, t = f"blend({self.expression('f32', 1)}, {self.expression('f64', 1)}, {self.leaf('i32')})", "f64"
        else:
            text, t = f"sum(memory, {self.index(8)})", "u64"
        self.read(t, text)

    def table(self):
        self.read("u32", f"table[{self.index(16)}]")

    def statement(self):
        self.random.choices(
            [self.declare, self.assign, self.branch, self.loop, self.switch, self.array, self.memory, self.local,
             self.atomic, self.call, self.table],
            [10, 5, 2, 1.2, 0.4, 0.8, 1, 0.8, 0.6, 0.3, 0.4])[0]()

    def inputs(self):
        self.input_types = ["i32", "u32", "i64", "u64", "f32", "f64"] + [self.pick_type() for _ in range(2)]
        for slot, t in enumerate(self.input_types):
            name = self.new_name()
            if t in FLOATS:
                self.emit(f"{t} {name} = {t}_of(in[{slot}]);")
            else:
                self.emit(f"{t} {name} = ({t})in[{slot}];")
            self.variables.append((t, name))
        self.variables += UNIFORMS

    # Inputs count as results only if they were assigned to.
    def outputs(self):
        inputs = len(self.input_types)
        changed = [v for v in self.variables if v in self.assigned] + self.variables[inputs + len(UNIFORMS):]
        for slot, (t, name) in enumerate(changed[-8:]):
            self.emit(f"out[{slot}] = bits_of_{t}({name});")

    def text(self):
        self.inputs()
        for _ in range(self.random.randrange(2, 7)):
            self.statement()
        self.declare()
        self.outputs()
        body = "\n".join(self.lines)
        begin = "  BEGIN_LDS;\n" if "lds" in body else ""
        return f"FUNCTION({self.number}) {{\n{begin}{body}\n}}\nEND_FUNCTION({self.number})\n"


def write_functions(file, number, count):
    numbers = range(number * count, (number + 1) * count)
    file.write('#include "prelude.h"\n\n')
    for n in numbers:
        file.write(Function(n).text() + "\n")
    file.write(f"TABLE({number}) = {{{', '.join(f'ENTRY({n})' for n in numbers)}}};\n")


def write_index(file, files, count):
    file.write('#include "prelude.h"\n\n')
    for number in range(files):
        file.write(f"extern TABLE({number});\n")
    names = ", ".join(f"random_functions_{number}" for number in range(files))
    file.write(f"void (*const *const kRandomFunctions[])(PARAMETERS) = {{{names}}};\n")
    file.write(f"const u32 kRandomFiles = {files};\nconst u32 kFunctionsPerFile = {count};\n")


def main():
    what, number, count, path = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    with open(path, "w", encoding="ascii") as file:
        file.write("/* Made by generate.py. */\n")
        {"functions": write_functions, "index": write_index}[what](file, number, count)


if __name__ == "__main__":
    main()
