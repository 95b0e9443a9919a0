"""A suite as one page: tables, figures and notes, without scripts."""

from __future__ import annotations

import html
import io
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from kgtrec._internal.table import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from kgtrec.study.suite.suite import Suite

_STYLE = """
:root{color-scheme:light dark}
body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:75rem;padding:0 1rem}
.wide{overflow-x:auto;margin:1rem 0}.wide:focus{outline:2px solid}
table{border-collapse:collapse;font-variant-numeric:tabular-nums}
th,td{padding:.2rem .6rem;border-bottom:1px solid #8885;white-space:nowrap}
th{text-align:left}thead th:not(:first-child){text-align:right}
thead th{position:sticky;top:0;background:Canvas}
figure{margin:1.5rem 0;background:#fff;padding:.5rem;overflow-x:auto}svg{max-width:100%;height:auto}
summary{cursor:pointer;font-weight:600;font-size:1.1rem;margin:1rem 0 .3rem}
@media print{details>*{display:block}}
"""


Drawn = Sequence[tuple[str, "Figure"]]
"""Captions and figures."""


def suite_page(
    suites: Sequence[Suite], figures: Sequence[Drawn] = (), title: str = "Models over many graphs"
) -> str:
    """The whole page, one part per measure with its figures."""
    parts = []
    for number, suite in enumerate(suites):
        notes = "".join(f"<li>{html.escape(note)}</li>" for note in suite.notes())
        parts.append(f"<h2>{html.escape(suite.cells.title)}</h2><ul>{notes}</ul>")
        parts.append(_section("Models, best mean rank first", suite.table(), is_open=True))
        for place, (caption, figure) in enumerate(figures[number] if figures else ()):
            svg = svg_text(figure, f"s{number}{place}-")
            parts.append(
                f'<figure role="img" aria-label="{caption}">{svg}'
                f"<figcaption>{caption}</figcaption></figure>"
            )
        if suite.cells.missing:
            parts.append(_section("Over all that missing cells could be", suite.bounds_table()))
            parts.append(_section("Missing cells", suite.missing_table()))
        if len(suite.cells.models) <= 60:
            parts.append(_section("Pairs, on the graphs that both have", suite.pair_table()))
        parts.append(_section("Cells", suite.cell_table()))
    first = suites[0].cells
    size = f"{len(first.models):,} models on {len(first.graphs):,} graphs."
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        "style-src 'unsafe-inline'; img-src data:\">"
        f"<title>{html.escape(title)}</title><style>{_STYLE}</style></head><body><main>"
        f"<h1>{html.escape(title)}</h1><p>{size}</p>{''.join(parts)}</main></body></html>\n"
    )


def _section(heading: str, table: Table, is_open: bool = False) -> str:
    state = " open" if is_open else ""
    label = html.escape(heading, quote=True)
    around = f'<div class="wide" role="region" aria-label="{label}" tabindex="0">'
    return (
        f"<details{state}><summary>{label} ({len(table):,})</summary>"
        f"{around}{table.to_html()}</div></details>"
    )


def svg_text(figure: Figure, prefix: str) -> str:
    """A figure as an SVG element whose ids are not those of others of the page."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None})
    text = buffer.getvalue()
    text = re.sub(r'\bid="', f'id="{prefix}', text[text.index("<svg") :])
    return re.sub(r"(url\(#|href=\"#)", rf"\g<1>{prefix}", text)
