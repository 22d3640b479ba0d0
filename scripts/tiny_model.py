#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""Writes a small language model with random weights as a GGUF file, which llama.cpp runs.

usage: tiny_model.py [--seed N] [--type f32|f16] FILE

The same seed gives the same bytes on each machine. The model is a Llama of two layers
that nobody has trained: what it says is a row of words without sense, but each word depends
on all words before it, so one wrong number in the GPU's memory changes the answer.
Its vocabulary is the bytes, of which a prompt is made, and words, of which the answer is.
"""
from __future__ import annotations

import random
import struct
from array import array
from pathlib import Path
from typing import Iterator, NamedTuple, Union

import command

MAGIC, VERSION, ALIGNMENT = b"GGUF", 3, 32
# Numbers of the types of values and of tensors in the format.
UINT32, INT32, FLOAT32, STRING, ARRAY = 4, 5, 6, 8, 9
TENSOR_TYPES = {"f32": 0, "f16": 1}
SCALARS = {UINT32: "<I", INT32: "<i", FLOAT32: "<f"}
# Kinds of tokens of llama.cpp.
NORMAL, UNKNOWN, CONTROL, BYTE = 1, 2, 3, 6

LAYERS, WIDTH, HEADS, INNER, CONTEXT = 2, 128, 2, 256, 4096
SPECIAL = ("<unk>", "<s>", "</s>")
WORDS = """
    a about above air all always among an and answer any are at autumn away back bank be begin behind below beyond bird black
    blue boat book both bread bridge bright bring brown but by call can city clear clock cloud cold come copper could dark dawn
    day deep did do door down dream dry dust each early earth east empty evening every eye face fall far field find fire first
    five fly fog for forest four from garden gate give glass go gold good grass great green grey had hand have he hear heart
    her high hill his hold home house how ice if in into iron is it keep know lake lamp land last late leaf leave letter light
    like line little long look low made make many map milk mind mirror moon more morning mountain much music my near never new
    night nine no north not now of off old on one open or other our out over owl paper part path people place quick quiet rain
    red rest river road room root round sail salt sand say sea see seven shadow she shore silver six sky sleep slow small smoke
    snow so some song south spring star stay still stone storm story street summer sun table tell ten than that the their them
    then there these they thing think this three through time to town train travel tree two under until up very voice wait walk
    wall warm was water way we well west what wheel when where which white who wide wind window winter with wood word world
    year yellow yes you young""".split()
# What llama.cpp puts in the place of a space.
SPACE = "\u2581"
# Standard deviation of the scores of words. Those of other tokens are 0, so none of them is ever among the best.
SCORES = 3.0

Scalar = Union[int, float]


class Tensor(NamedTuple):
    """A matrix or vector: the sizes with the fastest one first, and the numbers in that order."""

    name: str
    sizes: tuple[int, ...]
    data: array


class Value(NamedTuple):
    """One value of the header: a number, a text, or a list of one of these, whose type is then `element`."""

    kind: int
    content: Scalar | str | list
    element: int = 0


# ---- the format -------------------------------------------------------------------------------------------------


def text_bytes(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def content_bytes(kind: int, content: object) -> bytes:
    return text_bytes(str(content)) if kind == STRING else struct.pack(SCALARS[kind], content)


def value_bytes(value: Value) -> bytes:
    head = struct.pack("<I", value.kind)
    if value.kind != ARRAY:
        return head + content_bytes(value.kind, value.content)
    items = list(value.content)  # type: ignore[arg-type]
    return head + struct.pack("<IQ", value.element, len(items)) + b"".join(content_bytes(value.element, item) for item in items)


def padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % ALIGNMENT)


def tensor_type(tensor: Tensor, wanted: str) -> str:
    """llama.cpp wants vectors in f32, whatever the matrices are."""
    return wanted if len(tensor.sizes) > 1 else "f32"


def tensor_bytes(tensor: Tensor, kind: str) -> bytes:
    return struct.pack(f"<{len(tensor.data)}{'e' if kind == 'f16' else 'f'}", *tensor.data)


def gguf(values: dict[str, Value], tensors: list[Tensor], kind: str) -> bytes:
    """The whole file."""
    head = MAGIC + struct.pack("<IQQ", VERSION, len(tensors), len(values))
    head += b"".join(text_bytes(key) + value_bytes(value) for key, value in values.items())
    data = bytearray()
    for tensor in tensors:
        here = tensor_type(tensor, kind)
        head += text_bytes(tensor.name) + struct.pack("<I", len(tensor.sizes))
        head += struct.pack(f"<{len(tensor.sizes)}Q", *tensor.sizes) + struct.pack("<IQ", TENSOR_TYPES[here], len(data))
        data += padded(tensor_bytes(tensor, here))
    return padded(head) + bytes(data)


# ---- the model --------------------------------------------------------------------------------------------------


def vocabulary() -> list[tuple[str, int]]:
    """The tokens and their kinds."""
    return ([(SPECIAL[0], UNKNOWN)] + [(text, CONTROL) for text in SPECIAL[1:]]
            + [(f"<0x{number:02X}>", BYTE) for number in range(256)] + [(SPACE + word, NORMAL) for word in WORDS])


def header(kind: str) -> dict[str, Value]:
    tokens = vocabulary()
    numbers = {"context_length": CONTEXT, "embedding_length": WIDTH, "block_count": LAYERS, "feed_forward_length": INNER,
               "attention.head_count": HEADS, "rope.dimension_count": WIDTH // HEADS, "vocab_size": len(tokens)}
    return {
        "general.architecture": Value(STRING, "llama"), "general.name": Value(STRING, "two random layers"),
        "general.alignment": Value(UINT32, ALIGNMENT), "general.file_type": Value(UINT32, TENSOR_TYPES[kind]),
        **{f"llama.{key}": Value(UINT32, number) for key, number in numbers.items()},
        "llama.attention.layer_norm_rms_epsilon": Value(FLOAT32, 1e-5),
        "tokenizer.ggml.model": Value(STRING, "llama"),
        "tokenizer.ggml.tokens": Value(ARRAY, [text for text, _ in tokens], STRING),
        "tokenizer.ggml.scores": Value(ARRAY, [-float(number) for number in range(len(tokens))], FLOAT32),
        "tokenizer.ggml.token_type": Value(ARRAY, [each for _, each in tokens], INT32),
        "tokenizer.ggml.unknown_token_id": Value(UINT32, 0), "tokenizer.ggml.bos_token_id": Value(UINT32, 1),
        "tokenizer.ggml.eos_token_id": Value(UINT32, 2),
    }


def noise(source: random.Random, count: int, deviation: float) -> Iterator[float]:
    """Numbers of a uniform distribution, which needs nothing of Python but random(), whose numbers never change."""
    width = deviation * 12 ** 0.5
    return ((source.random() - 0.5) * width for _ in range(count))


def matrix(source: random.Random, name: str, columns: int, rows: int, gain: float = 1.0) -> Tensor:
    """Multiplies a vector of `columns` numbers; the result is `gain` times as large."""
    return Tensor(name, (columns, rows), array("f", noise(source, columns * rows, gain * columns ** -0.5)))


def ones(name: str) -> Tensor:
    return Tensor(name, (WIDTH,), array("f", [1.0] * WIDTH))


def layer(source: random.Random, number: int) -> list[Tensor]:
    at = f"blk.{number}."
    return [ones(f"{at}attn_norm.weight"),
            # Attention that prefers some words to others.
            *(matrix(source, f"{at}attn_{name}.weight", WIDTH, WIDTH, 2.0) for name in ("q", "k")),
            *(matrix(source, f"{at}attn_{name}.weight", WIDTH, WIDTH) for name in ("v", "output")),
            ones(f"{at}ffn_norm.weight"),
            *(matrix(source, f"{at}ffn_{name}.weight", WIDTH, INNER, 2.0) for name in ("gate", "up")),
            matrix(source, f"{at}ffn_down.weight", INNER, WIDTH)]


def model(seed: int) -> list[Tensor]:
    """All weights."""
    source, count = random.Random(seed), len(vocabulary())
    embedding = Tensor("token_embd.weight", (WIDTH, count), array("f", noise(source, WIDTH * count, 1.0)))
    layers = [tensor for number in range(LAYERS) for tensor in layer(source, number)]
    output = matrix(source, "output.weight", WIDTH, count, SCORES)
    unsaid = (count - len(WORDS)) * WIDTH
    output.data[:unsaid] = array("f", bytes(unsaid * output.data.itemsize))
    return [embedding, *layers, ones("output_norm.weight"), output]


def write(path: Path, seed: int, kind: str) -> None:
    """Writes the file as a whole or not at all."""
    part = path.with_name(path.name + ".part")
    part.write_bytes(gguf(header(kind), model(seed), kind))
    part.replace(path)


def main(argv: list[str]) -> int:
    parser = command.Parser(__doc__)
    parser.add_argument("--seed", type=command.number_from(0), default=1)
    parser.add_argument("--type", type=command.one_of(*TENSOR_TYPES), default="f32")
    parser.add_argument("files", nargs="*")
    options = parser.read(argv)
    if len(options.files) != 1:
        raise command.usage_error("needs one FILE")
    write(Path(options.files[0]), options.seed, options.type)
    return 0


if __name__ == "__main__":
    command.run(main)
