r"""Tables of models as LaTeX, Markdown, HTML, Typst, CSV and plain text, with a caption.

Names of models come from users and go into markup, so every format escapes its special characters.

LaTeX tables have ``booktabs`` rules, bold values and aligned decimals. A number and its superscript
or deviation are two columns without space between them, so that decimals align for superscripts of
any length. A table that is wider than a page has the groups of its columns below each other. LaTeX
measures the table, and scales it if it is wider than its line, which is a column of a paper in two
columns.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from textwrap import fill
from typing import Protocol

from kgtrec._internal.csr import group_pairs
from kgtrec._internal.latex import PACKAGES, fit_to_line, in_table, latex_text
from kgtrec._internal.table import Table, escape_html, readable
from kgtrec.study.reporting.columns import (
    Levels,
    arrow,
    replace_explanation,
    spans,
)

PAGE_WIDTH = 345.0
"""Width of the text of an article in LaTeX, in points; its letters have 10 points."""
SMALLEST_LETTERS = 7
"""Size in points from which letters of a table are large enough to read."""
_DIGIT, _SMALL, _BETWEEN = 5.0, 3.5, 12.0  # widths of signs and of the space between columns


@dataclass(frozen=True)
class PrintedColumn:
    """The cells of a measure in plain text, which writers escape.

    - better: True if higher is better, None if neither end is.
    - rank_marks: 1 for the best, 2 for the second best, 0 for others.
    - marks: Superscripts.
    - spreads: Deviations, shown after ±.
    - below: Texts of the second, smaller line of each row.
    - above_pair: True if a column of another group, in the same column of the page, is a pair.
    """

    title: str
    better: bool | None
    numbers: Sequence[str]
    rank_marks: Sequence[int]
    marks: Sequence[str]
    spreads: Sequence[str] = ()
    below: Sequence[str] = ()
    above_pair: bool = False

    @property
    def is_pair(self) -> bool:
        """True if a superscript or deviation follows a number, or one above or below."""
        return any(self.marks) or any(self.spreads) or self.above_pair

    @property
    def width(self) -> float:
        """Width in LaTeX, in points."""
        marks = max(map(len, self.marks), default=0) * _SMALL
        spreads = max((len(text) + 2 for text in self.spreads if text), default=0) * _DIGIT
        numbers = max(map(len, self.numbers), default=0) * _DIGIT + marks + spreads
        below = max(map(len, self.below), default=0) * _SMALL
        title = (len(self.title) + 2 * (self.better is not None)) * _DIGIT
        return max(numbers, below, title) + _BETWEEN

    def over(self, text: str) -> str:
        """Return a LaTeX cell that spans the column, left-aligned if rows have second lines."""
        alignment = "l" if self.below else "c"
        return rf"\multicolumn{{2}}{{{alignment}}}{{{text}}}" if self.is_pair else text

    def follows(self, row: int) -> str:
        """Return the LaTeX after the number of a row: its deviation and superscript."""
        spread = rf"~$\pm$ {self.spreads[row]}" if any(self.spreads[row : row + 1]) else ""
        mark = self.marks[row].replace("-", "--")
        return spread + (rf"\textsuperscript{{{mark}}}" if mark else "")


class PrintableTable(Protocol):
    """The members of a table that writers need; `ModelTable` documents each."""

    @property
    def corner(self) -> str:
        """Heading of the names of the rows."""

    @property
    def label(self) -> str:
        """Name of the table for references; "" for the usual one."""

    @property
    def usual_label(self) -> str:
        """Usual name of the table for references in LaTeX."""

    def names(self) -> list[str]:
        """Return the names of the rows, with letters for superscripts if there are any."""

    def printed_columns(self) -> list[PrintedColumn]:
        """Return the columns of values as they are printed."""

    def levels(self) -> Levels:
        """Return the lines of headings above the measures."""

    def caption(self) -> str:
        """Return the caption."""

    def values(self) -> Table:
        """Return a table of full values without marks, for CSV."""


@dataclass(frozen=True)
class _ColumnGroup:
    """Columns side by side on the page. A table prints its groups below each other.

    - title: Line above the rows of the group; "" for a single group.
    """

    title: str
    columns: Sequence[PrintedColumn]
    levels: Levels

    def width(self) -> float:
        """Width in LaTeX without the names of the rows, in points."""
        return sum(column.width for column in self.columns)


def _stack_groups(
    columns: Sequence[PrintedColumn], levels: Levels, names: float
) -> list[_ColumnGroup]:
    """Divide columns into groups that fit the page: one group if possible, else by headings.

    First, columns with the same last heading become a group, then those with the same headings.
    Groups of different measures are only made if letters would be too small to read.

    - names: Width of the names of the rows.
    """
    texts = [[text for text, size in level for _ in range(size)] for level in levels]
    best = [_ColumnGroup("", columns, levels)]
    for kept in reversed(range(len(levels))):
        width = names + max(group.width() for group in best)
        if width <= PAGE_WIDTH:
            break
        by_title = group_pairs(
            (", ".join(line[i] for line in texts[kept:]), i) for i in range(len(columns))
        )
        titles = [[columns[i].title for i in members] for members in by_title.values()]
        if any(each != titles[0] for each in titles) and letter_size(width) >= SMALLEST_LETTERS:
            continue
        best = [
            _ColumnGroup(
                title,
                [columns[i] for i in members],
                [spans(line[i] for i in members) for line in texts[:kept]],
            )
            for title, members in by_title.items()
        ]
    return best


def letter_size(width: float) -> float:
    """Return the size of letters in points if a table of this width is scaled to the page."""
    return 10 * min(1.0, PAGE_WIDTH / width)


def latex_width(table: PrintableTable) -> float:
    """Estimate the width of a table in LaTeX before it is scaled, in points."""
    names, columns, levels = table.names(), table.printed_columns(), table.levels()
    of_names = max(map(len, names)) * _DIGIT + _BETWEEN
    groups = _stack_groups(columns, levels, of_names)
    return of_names + max(group.width() for group in groups)


def latex(table: PrintableTable) -> str:
    r"""Return a ``table`` float with ``booktabs`` rules."""
    names, columns, levels = table.names(), table.printed_columns(), table.levels()
    of_names = max(map(len, names)) * _DIGIT + _BETWEEN
    groups = _align_groups(_stack_groups(columns, levels, of_names))
    widest = max(groups, key=lambda group: len(group.columns)).columns
    spec = "@{}l" + "".join("r@{}l" if column.is_pair else "r" for column in widest) + "@{}"
    tabular = [
        rf"\begin{{tabular}}{{{spec}}}",
        r"\toprule",
        *_body_of_groups(table.corner, names, groups, len(spec.replace("@{}", ""))),
        r"\bottomrule",
        r"\end{tabular}",
    ]
    label = table.label or table.usual_label
    lines = in_table(fit_to_line(tabular), table.caption(), label)
    return "\n".join([PACKAGES, *lines]) + "\n"


def _align_groups(groups: Sequence[_ColumnGroup]) -> list[_ColumnGroup]:
    """Mark a column as a pair in all groups if it is one in any, so that groups align."""
    size = max(len(group.columns) for group in groups)
    pairs = [
        any(group.columns[i].is_pair for group in groups if i < len(group.columns))
        for i in range(size)
    ]
    return [
        replace(
            group,
            columns=[
                replace(column, above_pair=pair)
                for column, pair in zip(group.columns, pairs, strict=False)
            ],
        )
        for group in groups
    ]


def _body_of_groups(
    corner: str, names: Sequence[str], groups: Sequence[_ColumnGroup], width: int
) -> Iterable[str]:
    """Yield the LaTeX lines between the outer rules; headings that all groups share come first.

    - width: Number of columns of the ``tabular``.
    """
    heads = [[*_head(corner, group.columns, group.levels)] for group in groups]
    is_shared = all(head == heads[0] for head in heads)
    if is_shared:
        yield from heads[0]
        yield r"\midrule"
    for number, (group, head) in enumerate(zip(groups, heads, strict=True)):
        if number:
            yield r"\midrule"
        if group.title:
            title = rf"\textit{{{latex_text(group.title)}}}"
            yield rf"\multicolumn{{{width}}}{{@{{}}l}}{{{title}}} \\*"
        if not is_shared:
            yield from head
            yield r"\midrule"
        yield from _rows(names, group.columns)


def _head(corner: str, columns: Sequence[PrintedColumn], levels: Levels) -> Iterable[str]:
    """Yield the LaTeX lines of the headings."""
    for level in levels:
        cells, rules, first, remaining = [""], [], 2, iter(columns)
        for text, size in level:
            width = sum(1 + next(remaining).is_pair for _ in range(size))
            cells.append(rf"\multicolumn{{{width}}}{{c}}{{{latex_text(text)}}}")
            rules.append(rf"\cmidrule(lr){{{first}-{first + width - 1}}}")
            first += width
        yield " & ".join(cells) + r" \\"
        yield " ".join(rules)
    titles = [
        column.over(
            latex_text(column.title) + arrow(column.better, r" $\uparrow$", r" $\downarrow$")
        )
        for column in columns
    ]
    yield " & ".join([corner, *titles]) + r" \\"


def _rows(names: Sequence[str], columns: Sequence[PrintedColumn]) -> Iterable[str]:
    """Yield the LaTeX lines of the rows."""
    with_more = any(column.below for column in columns)
    for row, name in enumerate(names):
        if row and with_more:
            yield r"\addlinespace[2pt]"
        cells = [latex_text(name)]
        for column in columns:
            number = _latex_number(column.numbers[row])
            marked = (number, rf"\textbf{{{number}}}", rf"\underline{{{number}}}")
            cells.append(marked[column.rank_marks[row]])
            cells += [column.follows(row)] if column.is_pair else []
        yield " & ".join(cells) + r" \\"
        if with_more:
            below = [
                column.over(rf"\scriptsize {_latex_number(column.below[row])}")
                for column in columns
            ]
            yield " & ".join(["", *below]) + r" \\"


def _latex_number(text: str) -> str:
    """Return a number, or two with a dash between them, as LaTeX."""
    return _replace_dashes(latex_text(text), "--")


# -- Other formats -------------------------------------------------------------------------------


def markdown(table: PrintableTable) -> str:
    """Return a Markdown (GitHub) table; titles of columns include the headings above them."""
    titles = [
        _markdown_text(title + arrow(column.better))
        for title, column in zip(_full_titles(table), table.printed_columns(), strict=True)
    ]
    marks = ("**{}**", "<ins>{}</ins>", "<sup>{}</sup>", " ± {}")
    lines = [[table.corner, *titles], ["---"] + ["---:"] * len(titles)]
    lines += _body(table, marks, _markdown_text, str)
    rows = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"{rows}\n\n{_markdown_text(table.caption())}\n"


def _full_titles(table: PrintableTable) -> list[str]:
    """Return the title of each column with the headings above it: "tail, micro: MRR"."""
    above = [[text for text, size in line for _ in range(size)] for line in table.levels()]
    return [
        ": ".join([*(line[i] for line in above), column.title])
        for i, column in enumerate(table.printed_columns())
    ]


def html_text(table: PrintableTable) -> str:
    """Return a ``table`` element without style; headings have a scope."""
    head = []
    for level in table.levels():
        spans = "".join(
            f'<th scope="colgroup" colspan="{size}">{escape_html(text)}</th>'
            for text, size in level
        )
        head.append(f"<tr><td></td>{spans}</tr>")
    titles = "".join(
        f'<th scope="col">{escape_html(column.title + arrow(column.better))}</th>'
        for column in table.printed_columns()
    )
    head.append(f'<tr><th scope="col">{table.corner}</th>{titles}</tr>')
    marks = ("<strong>{}</strong>", "<u>{}</u>", "<sup>{}</sup>", " ± {}")
    body = [
        f'<tr><th scope="row">{name}</th>{"".join(f"<td>{cell}</td>" for cell in cells)}</tr>'
        for name, *cells in _body(
            table, marks, escape_html, lambda text: _replace_dashes(escape_html(text))
        )
    ]
    lines = [
        "<table>",
        f"<caption>{escape_html(table.caption())}</caption>",
        "<thead>",
        *head,
        "</thead>",
        "<tbody>",
        *body,
        "</tbody>",
        "</table>",
    ]
    return "\n".join(lines) + "\n"


def typst(table: PrintableTable) -> str:
    """Return a Typst ``figure``; names are strings, in which nothing is markup."""
    n, label = len(table.printed_columns()), table.label or table.usual_label.replace(":", "-")
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
    titles = [_typst(column.title + arrow(column.better)) for column in table.printed_columns()]
    lines += [f"    {', '.join([f'[{table.corner}]', *titles])},", "    table.hline(),"]
    marks = ("strong({})", "underline({})", " + super({})", ' + " ± " + {}')
    rows = _body(table, marks, _typst, lambda text: _replace_dashes(_typst(text)))
    lines += [f"    {', '.join(row)}," for row in rows]
    return "\n".join([*lines, "    table.hline(),", "  ),", f") <{label}>"]) + "\n"


def csv_text(table: PrintableTable) -> str:
    """Return CSV with a line per model below keys: full values without marks.

    Cells of models that were not evaluated are empty.
    """
    return table.values().to_csv()


def plain(table: PrintableTable) -> str:
    """Return aligned columns of text and the caption; a star marks the best of each column."""
    columns = table.printed_columns()
    cells = zip(table.names(), *map(_plain_cells, columns), strict=True)
    lines = [[table.corner.lower(), *(column.title for column in columns)], *map(list, cells)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    _widen(widths, table.levels())
    text = [_level_line(spans, widths) for spans in table.levels()]
    for line in lines:
        first, *more = zip(line, widths, strict=True)
        text.append("  ".join([first[0].ljust(first[1]), *(c.rjust(w) for c, w in more)]).rstrip())
    caption = replace_explanation(table.caption(), "Best with a star.")
    has_numbers = any(mark[:1].isdigit() for column in columns for mark in column.marks)
    caption = caption.replace("Superscripts:", "Numbers behind:" if has_numbers else "Letters:")
    return "\n".join([*text, "", fill(caption, 80, break_on_hyphens=False)]) + "\n"


def _plain_cells(column: PrintedColumn) -> list[str]:
    """Return the cells of a column in plain text, padded so that decimals align."""
    stars = ["*" if rank == 1 else "" for rank in column.rank_marks]
    spreads = [f" ± {text}" if text else "" for text in column.spreads or [""] * len(stars)]
    marks = [f" {text}" if text else "" for text in column.marks]
    parts = []
    for texts in (stars, marks, spreads):
        width = max(map(len, texts), default=0)
        parts.append([text.ljust(width) for text in texts])
    return ["".join(cell) for cell in zip(column.numbers, *parts, strict=True)]


FORMATS: dict[str, Callable[[PrintableTable], str]] = {
    "table": plain,
    "latex": latex,
    "markdown": markdown,
    "html": html_text,
    "typst": typst,
    "csv": csv_text,
}
"""The function of each format for tables of models."""


def _body(
    table: PrintableTable,
    marks: tuple[str, str, str, str],
    escape_name: Callable[[str], str],
    escape: Callable[[str], str],
) -> list[list[str]]:
    """Return the cells of all rows: names, and values with marks.

    - marks: Templates for best, second best, superscripts and deviations.
    """
    columns, lines = table.printed_columns(), []
    for row, name in enumerate(table.names()):
        cells = [escape_name(name)]
        for column in columns:
            text, rank = escape(column.numbers[row]), column.rank_marks[row]
            text = marks[rank - 1].format(text) if rank else text
            letters, spread = column.marks[row], "".join(column.spreads[row : row + 1])
            text += marks[2].format(escape(letters)) if letters else ""
            cells.append(text + marks[3].format(escape(spread)) if spread else text)
        lines.append(cells)
    return lines


def _replace_dashes(text: str, dash: str = "\N{EN DASH}") -> str:
    """Replace the hyphens between digits, as in ranges of numbers."""
    return re.sub(r"(?<=\d)-(?=\d)", dash, text)


def _markdown_text(text: str) -> str:
    """Put a backslash before every character that Markdown could read as markup."""
    return re.sub(r"([\\`*_{}\[\]<>#|~!])", r"\\\1", _one_line(text)).replace("&", "&amp;")


def _typst(text: str) -> str:
    """Return a text as a Typst string."""
    quoted = _one_line(readable(text)).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{quoted}"'


def _one_line(text: str) -> str:
    """Replace control characters and line ends by blanks."""
    return re.sub(r"[\x00-\x1f\x7f\u0085\u2028\u2029]", " ", text)


def _widen(widths: list[int], levels: Levels) -> None:
    """Widen columns whose upper headings are wider."""
    for level in levels:
        first = 1
        for text, size in level:
            span = sum(widths[first : first + size]) + 2 * (size - 1)
            widths[first] += max(0, len(text) - span)
            first += size


def _level_line(spans: Sequence[tuple[str, int]], widths: list[int]) -> str:
    """Return a line of upper headings, each centred over its columns."""
    text, first = " " * widths[0], 1
    for heading, size in spans:
        span = sum(widths[first : first + size]) + 2 * (size - 1)
        text += "  " + heading.center(span)
        first += size
    return text.rstrip()
