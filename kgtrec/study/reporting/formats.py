r"""Tables of models as LaTeX, Markdown, HTML, Typst, CSV and plain text, with a caption.

Names of models come from users and go into markup, so every format escapes its special characters.

LaTeX tables have ``booktabs`` rules, bold values and aligned decimals. A number and its superscript
or deviation are two columns without space between them, so that decimals align for superscripts of
any length. LaTeX measures the table, and scales it if it is wider than the text.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, groupby
from textwrap import fill
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from kgtrec._internal.csr import group_pairs
from kgtrec._internal.table import Interval, Table, Value, escape_html, latex_text, readable
from kgtrec.measures import Measure
from kgtrec.measures.measure import trec_title
from kgtrec.results.tables import SAMPLED
from kgtrec.study.comparison.report import (
    CORRECTION_NAMES,
    TEST_NAMES,
    SystemComparison,
    letter,
    letters,
)
from kgtrec.study.comparison.samples import Samples

if TYPE_CHECKING:
    from kgtrec.study.reporting.model_table import ModelTable

T = TypeVar("T")


def spans(items: Iterable[T]) -> list[tuple[T, int]]:
    """Return the runs of equal neighbours: the item and its number of repetitions."""
    return [(item, len(list(group))) for item, group in groupby(items)]


def place_marks(values: Sequence[Value], digits: int, better: bool | None) -> list[int]:
    """Return 1 for the best, 2 for the second best, and 0 for other values.

    Values with the same printed text share a place. If two are best, none is second. All are 0 if
    there are fewer than two different values, or a value is an interval.
    """
    shown = [None if math.isnan(v) else float(f"{v:.{digits}f}") for v in map(float, values)]
    distinct = sorted({v for v in shown if v is not None}, reverse=bool(better))
    open_ended = any(isinstance(v, Interval) for v in values)
    if open_ended or better is None or len(distinct) < 2:
        return [0] * len(shown)
    second = distinct[1] if shown.count(distinct[0]) == 1 else None
    return [1 if v == distinct[0] else 2 if v is not None and v == second else 0 for v in shown]


def arrow(better: bool | None, up: str = " ↑", down: str = " ↓") -> str:
    """Return the sign of the better direction; "" if neither is better."""
    return "" if better is None else up if better else down


SIDE_NAMES = {"both": "both sides"}


def kind_of(measure: Measure) -> str:
    """Return side, average and, unless realistic, rank type of a measure, as "tail, micro"."""
    side = SIDE_NAMES.get(measure.side, measure.side)
    ranks = [measure.rank_type] if measure.rank_type not in (None, "realistic") else []
    return ", ".join([side, measure.averaging.replace("_", " "), *ranks])


Levels = Sequence[Sequence[tuple[str, int]]]
"""Lines of headings above the measures: texts, and the number of columns that each spans."""

_FITTED = r"""\ifdim\wd0>\textwidth \resizebox{\textwidth}{!}{\usebox{0}}\else \usebox{0}\fi"""


@dataclass(frozen=True)
class _Column:
    """The cells of a measure in plain text, which writers escape.

    - better: True if higher is better, None if neither end is.
    - rank_marks: 1 for the best, 2 for the second best, 0 for others.
    - marks: Superscripts.
    - spreads: Deviations, shown after ±.
    - below: Texts of the second, smaller line of each row.
    """

    title: str
    better: bool | None
    numbers: Sequence[str]
    rank_marks: Sequence[int]
    marks: Sequence[str]
    spreads: Sequence[str] = ()
    below: Sequence[str] = ()

    @property
    def is_pair(self) -> bool:
        """True if a superscript or deviation follows a number."""
        return any(self.marks) or any(self.spreads)

    def over(self, text: str) -> str:
        """Return a LaTeX cell over the whole column, left-aligned if rows have second lines."""
        alignment = "l" if self.below else "c"
        return rf"\multicolumn{{2}}{{{alignment}}}{{{text}}}" if self.is_pair else text

    def follows(self, row: int) -> str:
        """Return the deviation and the superscript of a row, as LaTeX."""
        spread = rf"~$\pm$ {self.spreads[row]}" if any(self.spreads[row : row + 1]) else ""
        mark = self.marks[row]
        return spread + (rf"$^{{\mathrm{{{latex_text(mark)}}}}}$" if mark else "")


def latex(table: ModelTable) -> str:
    r"""Return a ``table`` float with ``booktabs`` rules; the label is ``tab:models``."""
    names = list(map(table.name_with_letter, range(len(table.models))))
    return _float(table.caption(), "Model", names, _columns_of(table), table.levels())


def comparison_latex(comparisons: Sequence[SystemComparison]) -> str:
    """Return a LaTeX table of all measures of the same systems, with intervals below the values.

    Rows are in the order of the first measure, best first.
    """
    systems, order = comparisons[0].samples.systems, comparisons[0].order
    by_kind = group_pairs((_kind(comparison.samples), comparison) for comparison in comparisons)
    comparisons = [*chain.from_iterable(by_kind.values())]
    columns = [_column_of_comparison(comparison, order) for comparison in comparisons]
    names = [f"({letter(row, len(order))}) {systems[i]}" for row, i in enumerate(order)]
    levels = [[(kind, len(group)) for kind, group in by_kind.items()]] if any(by_kind) else []
    return _float(_caption_of_comparisons(comparisons), "System", names, columns, levels)


def _columns_of(table: ModelTable) -> list[_Column]:
    """Return the columns of a table of models."""
    many = len(table.models)
    return [
        _Column(
            column.measure.title,
            column.measure.higher_is_better,
            column.format_values(),
            column.mark_best(),
            [letters(beaten, many) for beaten in column.beaten or [()] * many],
            column.format_deviations(),
        )
        for column in table.columns
    ]


def _column_of_comparison(comparison: SystemComparison, order: Sequence[int]) -> _Column:
    """Return the column of a comparison, with systems in an order."""
    samples = comparison.samples
    digits, (low, high) = samples.digits, comparison.intervals().tolist()
    better = comparison.tests.better(comparison.level)[np.ix_(order, order)]
    values = [float(comparison.resampled.estimate[i]) for i in order]
    return _Column(
        trec_title(samples.name) if samples.unit == "queries" else samples.title,
        samples.higher_is_better,
        [f"{value:,.{digits}f}" for value in values],
        place_marks(values, digits, samples.higher_is_better),
        [letters(beaten.nonzero()[0], len(order)) for beaten in better],
        below=[f"[{low[i]:,.{digits}f}, {high[i]:,.{digits}f}]" for i in order],
    )


def _caption_of_comparisons(comparisons: Sequence[SystemComparison]) -> str:
    """Return the caption: numbers of items, intervals and tests, and the meaning of the marks."""
    samples = [comparison.samples for comparison in comparisons]
    sizes = dict.fromkeys(f"{len(of_measure):,} {of_measure.unit}" for of_measure in samples)
    tests = dict.fromkeys(comparison.tests.samples.unit for comparison in comparisons)
    first = comparisons[0]
    test = f"{TEST_NAMES[first.tests.test]} over {' or '.join(tests)}"
    return (
        f"Means over {' or '.join(sizes)}. Below: {first.resampling.percent:g}% bootstrap "
        "intervals. Best in bold, second best underlined. Superscripts: significantly better than "
        f"these systems ({test}, {CORRECTION_NAMES[first.tests.correction]}, p < {first.level:g})."
    )


def _kind(samples: Samples) -> str:
    """Return side, average and rank type of a measure; "" for measures of runs."""
    return "" if samples.unit == "queries" else kind_of(Measure.parse(samples.name))


def _float(
    caption: str,
    corner: str,
    names: Sequence[str],
    columns: Sequence[_Column],
    levels: Levels,
) -> str:
    """Return a LaTeX float; `corner` is the heading of the names."""
    spec = "@{}l" + "".join("r@{}l" if column.is_pair else "r" for column in columns) + "@{}"
    lines = [
        r"% \usepackage{booktabs,graphicx}",
        r"\begin{table}",
        r"\centering",
        r"\setlength{\belowcaptionskip}{6pt}",
        rf"\caption{{{latex_text(caption)}}}",
        r"\label{tab:models}",
        r"\sbox{0}{%",
        rf"\begin{{tabular}}{{{spec}}}",
        r"\toprule",
        *_head(corner, columns, levels),
        r"\midrule",
        *_rows(names, columns),
        r"\bottomrule",
        r"\end{tabular}}",
        _FITTED,
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _head(corner: str, columns: Sequence[_Column], levels: Levels) -> Iterable[str]:
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


def _rows(names: Sequence[str], columns: Sequence[_Column]) -> Iterable[str]:
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


def markdown(table: ModelTable) -> str:
    """Return a Markdown (GitHub) table; titles of columns include the headings above them."""
    titles = [
        _markdown_text(title + arrow(column.measure.higher_is_better))
        for title, column in zip(table.titles(), table.columns, strict=True)
    ]
    marks = ("**{}**", "<ins>{}</ins>", "<sup>{}</sup>", " ± {}")
    lines = [["Model", *titles], ["---"] + ["---:"] * len(titles)]
    lines += _body(table, marks, _markdown_text, str)
    rows = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"{rows}\n\n{_markdown_text(table.caption())}\n"


def html_text(table: ModelTable) -> str:
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
        for column in _columns_of(table)
    )
    head.append(f'<tr><th scope="col">Model</th>{titles}</tr>')
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


def typst(table: ModelTable) -> str:
    """Return a Typst ``figure``; names are strings, in which nothing is markup."""
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
    titles = [_typst(column.title + arrow(column.better)) for column in _columns_of(table)]
    lines += [f"    {', '.join(['[Model]', *titles])},", "    table.hline(),"]
    marks = ("strong({})", "underline({})", " + super({})", ' + " ± " + {}')
    rows = _body(table, marks, _typst, lambda text: _replace_dashes(_typst(text)))
    lines += [f"    {', '.join(row)}," for row in rows]
    return "\n".join([*lines, "    table.hline(),", "  ),", ") <tab-models>"]) + "\n"


def csv_text(table: ModelTable) -> str:
    """Return CSV with a line per model below keys: full values without marks.

    Cells of models that were not evaluated are empty.
    """
    several = len(table.protocols) > 1
    heads, columns = ["model"], [[table.name(row) for row in range(len(table.models))]]
    for column in table.columns:
        dataset = column.dataset
        prefix = f"{dataset}:" * several + SAMPLED * table.protocols[dataset].sampled
        heads.append(prefix + column.measure.key)
        columns.append(["" if math.isnan(v) else str(v) for v in column.values])
        if column.deviations:
            heads.append(f"{prefix}{column.measure.key}:std")
            columns.append(["" if math.isnan(v) else repr(v) for v in column.deviations])
    rows = list(zip(*columns, strict=True))
    return Table(heads, heads, (0,) * len(heads), rows).to_csv()


def plain(table: ModelTable) -> str:
    """Return aligned columns of text and the caption; a star marks the best of each column."""
    lines = [["model", *(c.measure.title for c in table.columns)]]
    lines += _body(table, ("{}*", "{} ", " {}", " ± {}"), str, str)
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
"""The function of each format for tables of models."""


def _body(
    table: ModelTable,
    marks: tuple[str, str, str, str],
    escape_name: Callable[[str], str],
    escape: Callable[[str], str],
) -> list[list[str]]:
    """Return the cells of all rows: names, and values with marks.

    - marks: Templates for best, second best, superscripts and deviations.
    """
    columns, lines = _columns_of(table), []
    for row in range(len(table.models)):
        cells = [escape_name(table.name_with_letter(row))]
        for column in columns:
            text, rank = escape(column.numbers[row]), column.rank_marks[row]
            text = marks[rank - 1].format(text) if rank else text
            letters, spread = column.marks[row], column.spreads[row]
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
