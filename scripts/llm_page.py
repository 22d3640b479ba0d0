# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""The page of scripts/demo_llm.py: where the time went, what each machine did, and the answers.

Knows what tests/harness/llm.py notes of a run, and nothing of machines.
"""
from __future__ import annotations

import html
from pathlib import Path
from typing import NamedTuple, Sequence

import page

TITLE = "A language model that moves between machines in the middle of its answer"
# The kinds of phases in the order of their colours, and what a reader is told of them.
KINDS = {"boot": "boot of the machine", "undisturbed": "undisturbed runs", "start": "start of llama.cpp until the first word",
         "restore": "criu restore, with the copy of the images", "dump": "words are computed until criu dump, with the copy of the images",
         "words": "words are computed until the end"}
COLOURS = ("#8a8f98", "#b8a04a", "#4a86c5", "#7a5cc0", "#3c9a5f", "#c0604a")
# The height of a machine's row in the timeline, the width of the whole and of the names of the machines.
ROW, WIDTH, NAMES = 26, 1000, 90
# Steps of the scale under the timeline, in seconds, from which the first one that gives few enough lines is taken.
STEPS, MOST_LINES = (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 3600), 12
STYLE = """
svg text { fill: currentColor; font: 12px system-ui, sans-serif; } svg line { stroke: var(--line); }
.legend span { display: inline-block; margin-right: 1.5em; } .legend i { display: inline-block; width: 1em; height: 1em; margin-right: .4em; vertical-align: -.15em; }
.answer { max-width: 60rem; } .answer span { border-bottom: 3px solid; } .verdict { padding: .5em 1em; }
""" + "".join(f".k{number} {{ fill: {colour}; background: {colour}; }}\n" for number, colour in enumerate(COLOURS))


class Results(NamedTuple):
    """All that the page shows. The phases and parts are those of tests/harness/llm.py."""

    now: str
    model: str
    phases: Sequence
    parts: Sequence
    words: int
    cpu: str
    gpu: str
    moved: str
    wrong: Sequence[str]


def kind_of(what: str) -> int:
    """The number of the kind of a phase, which is its first word."""
    return list(KINDS).index(what.partition(",")[0])


def bar(row: int, left: float, width: float, kind: int, title: str) -> str:
    return (f'<rect class="k{kind}" x="{left:.1f}" y="{row * ROW + 4}" width="{max(width, 1):.1f}" height="{ROW - 8}">'
            f"<title>{html.escape(title)}</title></rect>")


def timeline(phases: Sequence) -> list[str]:
    """A row for each machine, a bar for each phase."""
    machines = list(dict.fromkeys(phase.machine for phase in phases))
    end = max((phase.begin + phase.seconds for phase in phases), default=1.0)
    scale, bottom = (WIDTH - NAMES) / end, len(machines) * ROW
    lines = [f'<div class="wide"><svg viewBox="0 0 {WIDTH} {bottom + 24}" width="{WIDTH}" role="img" aria-label="Timeline">']
    step = next((step for step in STEPS if end / step <= MOST_LINES), STEPS[-1])
    for second in range(0, int(end) + 1, step):
        at = NAMES + second * scale
        lines.append(f'<line x1="{at:.1f}" x2="{at:.1f}" y1="0" y2="{bottom}"/><text x="{at:.1f}" y="{bottom + 16}">{second} s</text>')
    lines += [f'<text x="0" y="{row * ROW + 18}">machine {html.escape(name)}</text>' for row, name in enumerate(machines)]
    lines += [bar(machines.index(phase.machine), NAMES + phase.begin * scale, phase.seconds * scale, kind_of(phase.what),
                  f"{phase.what}: {phase.seconds:.1f} s") for phase in phases]
    lines.append("</svg></div>")
    legend = "".join(f'<span><i class="k{number}"></i>{html.escape(text)}</span>' for number, text in enumerate(KINDS.values()))
    return [*lines, f'<p class="legend">{legend}</p>']


def part_row(number: int, part) -> list[str]:
    how = "start" if number == 0 else "restore"
    saved = [f"{part.dump_s:.1f} s", f"{part.image_mib:.0f} MiB"] if part.image_mib else ["-", "-"]
    return [f"machine {part.machine}", ", ".join(part.gpus), " ".join(part.gpu_ids), part.node.removeprefix("/dev/dri/"),
            f"{how} {part.start_s:.1f} s", f"{part.before + 1} to {part.after}", f"{part.words_per_s:.2f}", *saved]


def moved_answer(words: list[str], parts: Sequence) -> str:
    """The words, underlined in the colour of the machine that computed them, with its name as a text too."""
    texts = []
    for number, part in enumerate(parts):
        text = html.escape(" ".join(words[part.before:part.after]))
        texts.append(f'<small>machine {html.escape(part.machine)}</small><span style="border-color: {COLOURS[number % len(COLOURS)]}">{text}</span>')
    return " ".join(texts)


def body(results: Results) -> list[str]:
    """The page without its frame."""
    moves = len(results.parts) - 1
    verdict = (f"After {moves} move{'s' if moves != 1 else ''} the answer equals that of an undisturbed run on the GPU and that of the processor."
               if not results.wrong else "; ".join(results.wrong))
    lines = [f'<p class="verdict {"bad" if results.wrong else "pass"}">{html.escape(verdict)}</p>',
             f"<p>{html.escape(results.now)}. {html.escape(results.model)}</p>",
             "<h2>Where the time went</h2>", *timeline(results.phases)]
    lines += page.table("What each machine did (seconds of the guest)",
                        ("machine", "GPUs", "gpu_id", "llama.cpp is on", "begin", "words", "words/s", "criu dump", "images"),
                        [part_row(number, part) for number, part in enumerate(results.parts)])
    lines += [f"<h2>The answer that was moved, {results.words} words</h2>",
              f'<p class="answer">{moved_answer(results.moved.split(), results.parts)}</p>',
              "<h2>The undisturbed answer of the GPU</h2>", f'<p class="answer">{html.escape(results.gpu)}</p>',
              "<h2>The undisturbed answer of the processor</h2>", f'<p class="answer">{html.escape(results.cpu)}</p>']
    return lines


def write(path: Path, results: Results) -> None:
    page.write(path, TITLE, body(results), STYLE)
