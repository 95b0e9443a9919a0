"""A table of models as Markdown, HTML, Typst, CSV and plain text, with its caption.

Names of models come from users and go into markup: every format escapes its own special characters.
LaTeX is in `latex`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from textwrap import fill
from typing import TYPE_CHECKING

from kgtrec._internal.table import Table, escaped, readable
from kgtrec.results.tables import SAMPLED
from kgtrec.study.reporting.latex import latex
from kgtrec.study.reporting.marks import arrow

if TYPE_CHECKING:
    from kgtrec.study.reporting.model_table import ModelTable


def markdown(table: ModelTable) -> str:
    """A Markdown (GitHub) table; a column's upper headings precede its own."""
    titles = [_markdown_text(title) + arrow(c.higher_is_better, " ↑", " ↓") for title, c in
              zip(table.titles(), table.columns, strict=True)]  # fmt: skip
    marks = ("**{}**", "<ins>{}</ins>", "<sup>{}</sup>", " ± {}")
    lines = [["Model", *titles], ["---"] + ["---:"] * len(titles)]
    for row in range(len(table.models)):
        name = _markdown_text(table.lettered(row))
        lines.append([name, *_cells(table, row, marks, str)])
    rows = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"{rows}\n\n{_markdown_text(table.caption())}\n"


def html_text(table: ModelTable) -> str:
    """A ``table`` element without style: every heading with its scope, the caption below."""
    head = []
    for level in table.levels():
        spans = "".join(
            f'<th scope="colgroup" colspan="{size}">{escaped(text)}</th>' for text, size in level
        )
        head.append(f"<tr><td></td>{spans}</tr>")
    titles = "".join(
        f'<th scope="col">{escaped(c.measure.title)}{arrow(c.higher_is_better, " ↑", " ↓")}</th>'
        for c in table.columns
    )
    head.append(f'<tr><th scope="col">Model</th>{titles}</tr>')
    marks = ("<strong>{}</strong>", "<u>{}</u>", "<sup>{}</sup>", " ± {}")
    body = []
    for row in range(len(table.models)):
        cells = "".join(
            f"<td>{cell}</td>"
            for cell in _cells(table, row, marks, lambda text: _dashed(escaped(text)))
        )
        name = escaped(table.lettered(row))
        body.append(f'<tr><th scope="row">{name}</th>{cells}</tr>')
    lines = ["<table>", f"<caption>{escaped(table.caption())}</caption>", "<thead>", *head,
             "</thead>", "<tbody>", *body, "</tbody>", "</table>"]  # fmt: skip
    return "\n".join(lines) + "\n"


def typst(table: ModelTable) -> str:
    """A Typst ``figure``; users' names are in strings, where nothing is markup."""
    n = len(table.columns)
    lines = [
        "#figure(",
        f"  caption: {_typst(table.caption())},",
        "  table(",
        f"    columns: {n + 1}, align: (left, ..(right,) * {n}), stroke: none,",
        "    table.hline(),",
    ]
    for level in table.levels():
        spans = [
            f"table.cell(colspan: {size}, align: center, {_typst(text)})" for text, size in level
        ]
        lines.append(f"    [], {', '.join(spans)},")
    titles = [
        _typst(c.measure.title + arrow(c.higher_is_better, " ↑", " ↓")) for c in table.columns
    ]
    lines += [f"    {', '.join(['[Model]', *titles])},", "    table.hline(),"]
    marks = ("strong({})", "underline({})", " + super({})", ' + " ± " + {}')
    for row in range(len(table.models)):
        name = _typst(table.lettered(row))
        cells = _cells(table, row, marks, lambda text: _dashed(_typst(text)))
        lines.append(f"    {', '.join([name, *cells])},")
    return "\n".join([*lines, "    table.hline(),", "  ),", ") <tab-models>"]) + "\n"


def csv_text(table: ModelTable) -> str:
    """One line per model below keys; full values without marks. Empty: not evaluated."""
    several = len(table.protocols) > 1
    heads, columns = ["model"], [[table.name(row) for row in range(len(table.models))]]
    for column in table.columns:
        dataset = column.heading.dataset
        prefix = f"{dataset}:" * several + SAMPLED * table.protocols[dataset].sampled
        heads.append(prefix + column.measure.key)
        columns.append(["" if math.isnan(v) else str(v) for v in column.values])
        if column.deviations:
            heads.append(f"{prefix}{column.measure.key}:std")
            columns.append(["" if math.isnan(v) else repr(v) for v in column.deviations])
    rows = list(zip(*columns, strict=True))
    return Table(heads, heads, (0,) * len(heads), rows).to_csv()


def plain(table: ModelTable) -> str:
    """Aligned columns of text; a star marks the best of each, and the caption follows."""
    lines = [["model", *(c.measure.title for c in table.columns)]]
    for row in range(len(table.models)):
        cells = _cells(table, row, ("{}*", "{} ", " {}", " ± {}"), str)
        lines.append([table.lettered(row), *cells])
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    _widen(widths, table.levels())
    text = [_level_line(spans, widths) for spans in table.levels()]
    for line in lines:
        first, *more = zip(line, widths, strict=True)
        text.append("  ".join([first[0].ljust(first[1]), *(c.rjust(w) for c, w in more)]).rstrip())
    caption = table.caption().replace("Best in bold, second best underlined.", "Best with a star.")
    return "\n".join([*text, "", fill(caption, 80, break_on_hyphens=False)]) + "\n"


FORMATS: dict[str, Callable[[ModelTable], str]] = {
    "table": plain,
    "latex": latex,
    "markdown": markdown,
    "html": html_text,
    "typst": typst,
    "csv": csv_text,
}
"""A function for each format that has tables of models."""


def _cells(
    table: ModelTable, row: int, marks: tuple[str, str, str, str], escape: Callable[[str], str]
) -> list[str]:
    """Values of a model with marks for the best and second best, superscripts and deviation."""
    cells = []
    for column in table.columns:
        text = escape(column.printed()[row])
        place = column.places()[row]
        if place:
            text = marks[place - 1].format(text)
        letters = table.superscript(column, row)
        text += marks[2].format(escape(letters)) if letters else ""
        spread = column.spread(row)
        cells.append(text + marks[3].format(escape(spread)) if spread else text)
    return cells


def _dashed(text: str) -> str:
    """A number, or two with an en dash between them."""
    return re.sub(r"(?<=\d)-(?=\d)", "\u2013", text)


def _markdown_text(text: str) -> str:
    """Every character that Markdown could take for markup, with a backslash before it."""
    return re.sub(r"([\\`*_{}\[\]<>#|~!])", r"\\\1", _one_line(text)).replace("&", "&amp;")


def _typst(text: str) -> str:
    quoted = _one_line(readable(text)).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{quoted}"'


def _one_line(text: str) -> str:
    return re.sub(r"[\x00-\x1f\x7f\u0085\u2028\u2029]", " ", text)


def _widen(widths: list[int], levels: Sequence[Sequence[tuple[str, int]]]) -> None:
    """Make room for headings that are wider than the columns below them."""
    for level in levels:
        first = 1
        for text, size in level:
            span = sum(widths[first : first + size]) + 2 * (size - 1)
            widths[first] += max(0, len(text) - span)
            first += size


def _level_line(spans: Sequence[tuple[str, int]], widths: list[int]) -> str:
    text, first = " " * widths[0], 1
    for heading, size in spans:
        span = sum(widths[first : first + size]) + 2 * (size - 1)
        text += "  " + heading.center(span)
        first += size
    return text.rstrip()
