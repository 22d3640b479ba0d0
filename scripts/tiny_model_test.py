# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""The model that tiny_model.py writes is what the description of GGUF says, read here by another code than wrote it."""
from __future__ import annotations

import hashlib
import io
import math
import struct
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))
import tiny_model  # noqa: E402  # pylint: disable=wrong-import-position

# The bytes are the same on each machine; a change of the model changes the answers of all recorded runs.
SHA256 = "8d75c0f93873adea1a49e165f865c2ff666643c9784a8ff8a45399cab3cb9d6a"
# What the numbers of GGUF's types mean to struct.
READ = {4: "<I", 5: "<i", 6: "<f"}
TEXT, LIST = 8, 9


class File:
    """A GGUF file, read to its end."""

    def __init__(self, data: bytes) -> None:
        self._input = io.BytesIO(data)
        assert self._input.read(4) == b"GGUF"
        version, tensors, values = self._numbers("<IQQ")
        assert version == 3
        self.values = {self._text(): self._value(*self._numbers("<I")) for _ in range(values)}
        self.tensors = {}
        for _ in range(tensors):
            name = self._text()
            sizes = self._numbers(f"<{self._numbers('<I')[0]}Q")
            self.tensors[name] = (sizes, *self._numbers("<IQ"))
        start = self._input.tell()
        self.data = data[start + -start % self.values["general.alignment"]:]

    def _numbers(self, form: str) -> tuple:
        return struct.unpack(form, self._input.read(struct.calcsize(form)))

    def _text(self) -> str:
        return self._input.read(self._numbers("<Q")[0]).decode()

    def _value(self, kind: int):
        if kind == TEXT:
            return self._text()
        if kind == LIST:
            element, count = self._numbers("<IQ")
            return [self._value(element) for _ in range(count)]
        return self._numbers(READ[kind])[0]

    def weights(self, name: str) -> tuple[float, ...]:
        sizes, kind, offset = self.tensors[name]
        count = math.prod(sizes)
        return struct.unpack_from(f"<{count}{'fe'[kind]}", self.data, offset)


def written(tmp_path: Path, *options: str) -> bytes:
    path = tmp_path / "model.gguf"
    assert subprocess.run([sys.executable, "-B", tiny_model.__file__, *options, path], check=False).returncode == 0
    assert [each.name for each in tmp_path.iterdir()] == ["model.gguf"]
    return path.read_bytes()


def test_the_same_seed_gives_the_same_bytes_everywhere(tmp_path: Path) -> None:
    assert hashlib.sha256(written(tmp_path)).hexdigest() == SHA256


def test_another_seed_gives_other_weights(tmp_path: Path) -> None:
    one, other = File(written(tmp_path)), File(written(tmp_path, "--seed", "2"))
    assert one.values == other.values
    assert one.weights("blk.1.ffn_down.weight") != other.weights("blk.1.ffn_down.weight")


@pytest.mark.parametrize("kind, size", [("f32", 4), ("f16", 2)])
def test_tensors_are_aligned_follow_each_other_and_fill_the_file(tmp_path: Path, kind: str, size: int) -> None:
    file = File(written(tmp_path, "--type", kind))
    end = 0
    for sizes, type_number, offset in file.tensors.values():
        assert offset == end and offset % 32 == 0
        assert type_number == (0 if len(sizes) == 1 else {"f32": 0, "f16": 1}[kind])
        end = offset + math.prod(sizes) * (4 if len(sizes) == 1 else size)
        end += -end % 32
    assert end == len(file.data)


def test_the_tensors_are_those_of_a_llama_of_two_layers(tmp_path: Path) -> None:
    file = File(written(tmp_path))
    width, inner, count = (file.values[f"llama.{key}"] for key in ("embedding_length", "feed_forward_length", "vocab_size"))
    sizes = {name: each[0] for name, each in file.tensors.items()}
    assert sizes.pop("token_embd.weight") == sizes.pop("output.weight") == (width, count)
    assert sizes.pop("output_norm.weight") == (width,)
    for layer in range(file.values["llama.block_count"]):
        parts = {name.split(".", 2)[2]: sizes.pop(name) for name in list(sizes) if name.startswith(f"blk.{layer}.")}
        assert parts == {
            "attn_norm.weight": (width,), "ffn_norm.weight": (width,),
            **{f"attn_{name}.weight": (width, width) for name in ("q", "k", "v", "output")},
            "ffn_gate.weight": (width, inner), "ffn_up.weight": (width, inner), "ffn_down.weight": (inner, width)}
    assert sizes == {}
    assert width % file.values["llama.attention.head_count"] == 0


def test_each_byte_and_each_word_is_one_token(tmp_path: Path) -> None:
    values = File(written(tmp_path)).values
    tokens, kinds = values["tokenizer.ggml.tokens"], values["tokenizer.ggml.token_type"]
    assert len(tokens) == len(set(tokens)) == len(kinds) == len(values["tokenizer.ggml.scores"]) == values["llama.vocab_size"]
    assert [token for token, kind in zip(tokens, kinds) if kind == 6] == [f"<0x{number:02X}>" for number in range(256)]
    words = [token for token, kind in zip(tokens, kinds) if kind == 1]
    # llama.cpp counts a word for each of these, so the answer has as many words as tokens.
    assert all(word[0] == "\u2581" and word[1:].isascii() and word[1:].isalpha() for word in words) and len(words) > 200
    assert [tokens[values[f"tokenizer.ggml.{name}_token_id"]] for name in ("unknown", "bos", "eos")] == ["<unk>", "<s>", "</s>"]


def test_only_words_can_be_said(tmp_path: Path) -> None:
    file = File(written(tmp_path))
    weights, width = file.weights("output.weight"), file.values["llama.embedding_length"]
    said = [any(weights[row:row + width]) for row in range(0, len(weights), width)]
    assert said == [kind == 1 for kind in file.values["tokenizer.ggml.token_type"]]


def test_weights_in_16_bits_are_those_in_32_bits_rounded(tmp_path: Path) -> None:
    exact, short = (File(written(tmp_path, "--type", kind)).weights("blk.0.attn_q.weight") for kind in ("f32", "f16"))
    assert exact != short
    assert all(abs(a - b) <= abs(a) * 2 ** -11 + 2 ** -24 for a, b in zip(exact, short))


@pytest.mark.parametrize("words", [(), ("a", "b"), ("--type", "f64", "a"), ("--seed", "x", "a"), ("--seed", "-1", "a")])
def test_wrong_words_are_a_usage_error_of_one_line(tmp_path: Path, words: tuple[str, ...]) -> None:
    done = subprocess.run([sys.executable, "-B", tiny_model.__file__, *words], cwd=tmp_path, check=False, capture_output=True,
                          text=True)
    assert done.returncode == 64 and done.stderr.count("\n") == 1 and not list(tmp_path.iterdir())
