# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""The page of a run of demo_llm.py stands alone and shows what happened, a failure too."""
from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
import llm_page  # noqa: E402  # pylint: disable=wrong-import-position
from harness.llm import AnswerPart, Phase  # noqa: E402  # pylint: disable=wrong-import-position

WORDS = "one two three four five six".split()
PARTS = (AnswerPart("1 (A)", ("gfx906,slot=16",), ("11",), "/dev/dri/renderD128", 30.0, 0, 2, 2, 0.5, 47.0, 194.4),
         AnswerPart("2 (B)", ("gfx803,slot=17", "gfx906,slot=20"), ("12", "13"), "/dev/dri/renderD129", 13.0, 2, 6, 4, 1.0))
PHASES = (Phase("1 (A)", "boot", 0.0, 10.0), Phase("1 (A)", "undisturbed, GPU", 10.0, 40.0), Phase("1 (A)", "start", 50.0, 30.0),
          Phase("1 (A)", "words", 80.0, 1.0), Phase("1 (A)", "dump", 81.0, 50.0), Phase("2 (B)", "boot", 131.0, 10.0),
          Phase("2 (B)", "restore", 141.0, 14.0), Phase("2 (B)", "words", 155.0, 1.0))


class Parsed(HTMLParser):
    """The text of a page, what is drawn, and what must not be there."""

    def __init__(self) -> None:
        super().__init__()
        self.outside: list[str] = []
        self.bars: list[dict] = []
        self.text = ""
        self._open: list[str] = []

    def handle_starttag(self, tag: str, attrs) -> None:
        values = dict(attrs)
        if tag in ("script", "link", "img", "iframe") or {"src", "href"} & set(values):
            self.outside.append(tag)
        if tag == "rect":
            self.bars.append(values)
        if tag not in ("meta", "line"):
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        if self._open.pop() != tag:
            self.outside.append(f"unbalanced {tag}")

    def handle_data(self, data: str) -> None:
        if self._open[-1:] != ["style"]:
            self.text += data

    @property
    def unclosed(self) -> list[str]:
        return self._open


def parsed(tmp_path: Path, moved: str = " ".join(WORDS), wrong: tuple[str, ...] = ()) -> Parsed:
    text = " ".join(WORDS)
    path = tmp_path / "index.html"
    llm_page.write(path, llm_page.Results("Now", "A <small> model.", PHASES, PARTS, len(WORDS), text, text, moved, wrong))
    result = Parsed()
    result.feed(path.read_text())
    return result


def test_the_page_needs_no_other_file_and_is_balanced(tmp_path: Path) -> None:
    found = parsed(tmp_path)
    assert not found.outside and not found.unclosed
    assert "A <small> model." in found.text


def test_each_phase_is_a_bar_at_its_time_in_the_row_of_its_machine(tmp_path: Path) -> None:
    bars = parsed(tmp_path).bars
    assert len(bars) == len(PHASES)
    assert [bar["y"] for bar in bars] == ["4"] * 5 + ["30"] * 3
    ends = [float(bar["x"]) + float(bar["width"]) for bar in bars]
    assert ends == sorted(ends) and ends[-1] == pytest.approx(llm_page.WIDTH, abs=1)
    assert all(float(after["x"]) == pytest.approx(end, abs=1) for end, after in zip(ends, bars[1:]))


def test_each_kind_of_phase_has_a_colour_and_a_text(tmp_path: Path) -> None:
    found = parsed(tmp_path)
    assert {bar["class"] for bar in found.bars} == {f"k{number}" for number in range(len(llm_page.KINDS))}
    assert all(text in found.text for text in llm_page.KINDS.values())
    assert len(llm_page.COLOURS) == len(llm_page.KINDS)


def test_a_phase_of_no_kind_is_an_error() -> None:
    with pytest.raises(ValueError):
        llm_page.kind_of("nap")


def test_sizes_rates_and_places_are_there(tmp_path: Path) -> None:
    text = parsed(tmp_path).text
    for each in ("194 MiB", "47.0 s", "restore 13.0 s", "4.00", "1 to 2", "3 to 6", "renderD129", "gfx803,slot=17, gfx906,slot=20", "12 13"):
        assert each in text


def test_the_words_of_each_machine_are_under_its_name(tmp_path: Path) -> None:
    assert re.search(r"machine 1 \(A\)one two machine 2 \(B\)three four five six", parsed(tmp_path).text)


def test_equal_answers_are_said_to_be_equal(tmp_path: Path) -> None:
    text = parsed(tmp_path).text
    assert "After 1 move the answer equals" in text and text.count("one two three four five six") == 2


def test_a_difference_is_said_and_nothing_is_called_equal(tmp_path: Path) -> None:
    text = parsed(tmp_path, "one two three", ("the answer that was moved differs at word 4",)).text
    assert "differs at word 4" in text and "equals" not in text
