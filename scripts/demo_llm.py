#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""Moves a language model between virtual machines while it answers.

usage: demo_llm.py [--moves N] [--type f32|f16] [--chip gfx906|gfx90a] [--no-build] [-h]

llama.cpp with its HIP backend, ROCm 6.4 and CRIU 4.2 are those of Debian's unstable
release, unchanged. The first machine has a gfx906, or the chip that is named, on which
llama.cpp answers; on gfx90a it uses matrix instructions. In the middle of the answer
`criu dump` saves it. The next machine has other GPUs and the chip in another PCI slot; `criu restore` continues the answer there, and so on, N times (3).
The answer must equal that of an undisturbed run on the GPU and that of the processor.
The model is two layers with random weights of a fixed seed (scripts/tiny_model.py).

It makes the root with llama.cpp (downloads up to 490 MB, takes 6300 MB in out/roots) and
builds what it runs; --no-build uses what is there. It writes out/llm/index.html, a page
of its own; answers, images and logs are beside it. The last line is
  demo-llm: OK moves=<number> words=<number> (equal to the undisturbed run and the processor)
Status: 0 if all moves and both comparisons are right, 1 if not or if a build failed, 64 usage.
"""
from __future__ import annotations

import sys
from datetime import datetime, timezone
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
import command  # noqa: E402  # pylint: disable=wrong-import-position
import llm_page  # noqa: E402  # pylint: disable=wrong-import-position
import tiny_model  # noqa: E402  # pylint: disable=wrong-import-position
from demo_steps import build, say  # noqa: E402  # pylint: disable=wrong-import-position
from harness import llm  # noqa: E402  # pylint: disable=wrong-import-position

PAGE = llm.RUN / "index.html"


def model_text(kind: str) -> str:
    size = llm.MODEL.stat().st_size / 1e6
    return (f"The model has {tiny_model.LAYERS} layers of {tiny_model.WIDTH} numbers, random weights in {kind} ({size:.1f} MB) "
            f"and {len(tiny_model.WORDS)} words. The prompt is: {llm.PROMPT}")


def write_page(run: llm.MovedRun, wrong: list[str]) -> None:
    now = datetime.now(timezone.utc).strftime("Written %Y-%m-%d %H:%M UTC")
    llm_page.write(PAGE, llm_page.Results(now, model_text(run.kind), run.phases, list(run.parts), run.words, run.cpu(),
                                        run.gpu(), run.moved(), wrong))


def show(run: llm.MovedRun) -> None:
    """Prints the answer by machines."""
    words = run.moved().split()
    for part in run.parts:
        print(f"  machine {part.machine}: {' '.join(words[part.before:part.after])}")


def move(moves: int, kind: str, chip: str) -> None:
    """The whole path."""
    with llm.MovedRun(moves, kind, chip, say) as run:
        run.moved()
        wrong = run.differences()
        show(run)
        write_page(run, wrong)
        say(f"page: {PAGE}")
    if wrong:
        raise command.failure("; ".join(wrong))
    print(f"demo-llm: OK moves={moves} words={run.words} (equal to the undisturbed run and the processor)")


def main(argv: list[str]) -> int:
    parser = command.Parser(__doc__)
    parser.add_argument("--moves", type=command.number_from(1, llm.MOST_MOVES), default=3)
    parser.add_argument("--type", type=command.one_of(*tiny_model.TENSOR_TYPES), default="f32")
    parser.add_argument("--chip", type=command.one_of(*llm.CHIPS), default=llm.CHIPS[0])
    parser.add_argument("--no-build", action="store_true")
    options = parser.read(argv)
    if not options.no_build:
        # The root first, because only its download can fail for reasons of others.
        build(["setup.sh", "roots"], ["root.py", llm.ROOT_NAME], ["build.sh", "release", *llm.TARGETS],
              ["kernel.sh", "build", "criu"])
    try:
        move(options.moves, options.type, options.chip)
    except llm.Failed as error:
        raise command.failure(str(error)) from error
    return 0


if __name__ == "__main__":
    command.run(main)
