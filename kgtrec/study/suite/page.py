"""A suite as one page: tables, figures and notes, without scripts."""

from __future__ import annotations

import html
import io
import re
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from kgtrec._internal.table import Table, rows_as_html
from kgtrec.errors import UsageError

if TYPE_CHECKING:
    from kgtrec.study.suite.suite import Suite

_STYLE = """
:root{color-scheme:light dark}
body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:75rem;padding:0 1rem}
.wide{overflow-x:auto;margin:1rem 0}.wide:focus{outline:2px solid}
table{border-collapse:collapse;font-variant-numeric:tabular-nums}
th,td{padding:.2rem .6rem;border-bottom:1px solid #8885;white-space:nowrap}
th{text-align:left}thead th{position:sticky;top:0;background:Canvas}
figure{margin:1.5rem 0;background:#fff;padding:.5rem;overflow-x:auto}svg{max-width:100%;height:auto}
summary{cursor:pointer;font-weight:600;font-size:1.1rem;margin:1rem 0 .3rem}
@media print{details>*{display:block}}
"""


def suite_page(suites: Sequence[Suite], title: str = "Models over many graphs") -> str:
    """The whole page, one part per measure; figures where matplotlib is installed."""
    parts = []
    for number, suite in enumerate(suites):
        notes = "".join(f"<li>{html.escape(note)}</li>" for note in suite.notes())
        parts.append(f"<h2>{html.escape(suite.cells.title)}</h2><ul>{notes}</ul>")
        parts.append(_section("Models, best mean rank first", suite.table(), is_open=True))
        parts += _figures(suite, number)
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
        "style-src 'unsafe-inline'\">"
        f"<title>{html.escape(title)}</title><style>{_STYLE}</style></head><body><main>"
        f"<h1>{html.escape(title)}</h1><p>{size}</p>{''.join(parts)}</main></body></html>\n"
    )


def _section(heading: str, table: Table, is_open: bool = False) -> str:
    body = rows_as_html(table.titles, table.printed(), table.names)
    state = " open" if is_open else ""
    label = html.escape(heading, quote=True)
    return (
        f"<details{state}><summary>{label} ({len(table):,})</summary>"
        f'<div class="wide" role="region" aria-label="{label}" tabindex="0">{body}</div></details>'
    )


def _figures(suite: Suite, number: int) -> list[str]:
    if find_spec("matplotlib") is None:
        return []
    from kgtrec.plots.suite import critical_difference, suite_cells, suite_places

    drawn: list[tuple[str, Callable[[Suite], Any]]] = [
        ("Places with intervals", suite_places),
        ("Mean ranks and their critical difference", critical_difference),
        ("Models and graphs", suite_cells),
    ]
    parts = []
    for place, (caption, draw) in enumerate(drawn):
        try:
            svg = _svg(draw(suite), f"s{number}{place}-")
        except UsageError:  # too few models or graphs for it
            continue
        parts.append(
            f'<figure role="img" aria-label="{caption}">{svg}<figcaption>{caption}</figcaption>'
            "</figure>"
        )
    return parts


def _svg(figure: Any, prefix: str) -> str:
    """A figure as an SVG element whose ids are not those of others of the page."""
    from kgtrec.plots.style import styled

    buffer = io.StringIO()
    with styled():
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    text = buffer.getvalue()
    text = re.sub(r'\bid="', f'id="{prefix}', text[text.index("<svg") :])
    return re.sub(r"(url\(#|href=\"#)", rf"\g<1>{prefix}", text)
