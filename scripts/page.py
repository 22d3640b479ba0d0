# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""HTML pages that commands write: one file each, which needs no other file and no network, in light and dark colours.

Owns the frame of a page and the looks of what pages share. Knows nothing of what they show.
"""
from __future__ import annotations

import html
from pathlib import Path
from typing import Iterable, Sequence

STYLE = """
:root { color-scheme: light dark; --pass: #d5efd8; --bad: #f7d0cd; --none: #ececec; --line: #bbb; }
@media (prefers-color-scheme: dark) {
  :root { --pass: #1d4a27; --bad: #6b201b; --none: #2e2e2e; --line: #555; }
}
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 110rem; padding: 0 1rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; margin: 1rem 0 2rem; }
caption { text-align: left; font-weight: bold; font-size: 1.2em; padding: .5em 0; }
th, td { border: 1px solid var(--line); padding: .2em .6em; text-align: left; vertical-align: top; }
td { white-space: nowrap; }
tbody th[scope=rowgroup] { max-width: 34em; font-weight: normal; }
.pass { background: var(--pass); } .bad { background: var(--bad); font-weight: bold; } .none { background: var(--none); }
small { display: block; opacity: .8; } pre { overflow-x: auto; white-space: pre-wrap; } a { color: inherit; }
"""


def write(path: Path, title: str, body: Iterable[str], style: str = "") -> None:
    """Writes the page with the title as its heading; `body` is HTML, `style` comes after the common one."""
    shown = html.escape(title)
    lines = ["<!DOCTYPE html>", '<html lang="en"><head><meta charset="utf-8">',
             '<meta name="viewport" content="width=device-width, initial-scale=1">',
             f"<title>{shown}</title><style>{STYLE}{style}</style></head><body><main><h1>{shown}</h1>"]
    path.write_text("\n".join([*lines, *body, "</main></body></html>"]) + "\n")


def table(caption: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A table of texts; the first cell of a row is its heading."""
    lines = ['<div class="wide"><table>', f"<caption>{html.escape(caption)}</caption>", "<thead><tr>"
             + "".join(f'<th scope="col">{html.escape(column)}</th>' for column in columns) + "</tr></thead><tbody>"]
    for head, *cells in rows:
        lines.append(f'<tr><th scope="row">{html.escape(head)}</th>'
                     + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells) + "</tr>")
    return [*lines, "</tbody></table></div>"]
