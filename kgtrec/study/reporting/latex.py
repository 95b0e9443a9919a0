r"""LaTeX tables for papers: ``booktabs`` rules, bold values, aligned decimals, never too wide.

A number and its superscript or deviation are two columns without space between them, so decimals
align for superscripts of any length. The font shrinks until the table fits the text of an article;
a table that is still too wide is scaled.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from kgtrec._internal.table import latex_text
from kgtrec.measures import Measure
from kgtrec.measures.measure import trec_title
from kgtrec.study.comparison.report import CORRECTION_NAMES, TEST_NAMES, letter, letters
from kgtrec.study.reporting.marks import arrow, kind_of, place_marks, spans

if TYPE_CHECKING:
    from kgtrec.study.comparison.report import SystemComparison
    from kgtrec.study.comparison.samples import Samples
    from kgtrec.study.reporting.model_table import ModelColumn, ModelTable

TEXT_WIDTH = 345.0
"""Points of an article's text at 10 points."""

_SIZES = (("", 1.0, 6.0), (r"\small", 0.925, 4.0), (r"\footnotesize", 0.86, 3.0))
"""Font size, width of its signs relative to the usual one, and ``tabcolsep`` in points."""

_SCALED = r"""\ifdim\wd0>\textwidth \resizebox{\textwidth}{!}{\usebox{0}}\else \usebox{0}\fi"""

_WIDTHS = {".,:;!|'ijl[]": 2.8, " -frst()": 3.9, "bdhknpquvxy": 5.5, "@%&±mw": 8.0}
"""Points of signs at the usual size; capitals have 7.4, all other signs 5."""


@dataclass(frozen=True)
class _Column:
    """One measure in plain text, which is escaped on writing.

    - places: 1 for the best, 2 for the second best.
    - marks: Superscripts.
    - spreads: Deviations, shown after ±.
    - below: A second, smaller line of each row.
    """

    title: str
    better: bool | None
    numbers: Sequence[str]
    places: Sequence[int]
    marks: Sequence[str]
    spreads: Sequence[str] = ()
    below: Sequence[str] = ()

    @property
    def is_pair(self) -> bool:
        """Whether something follows a number."""
        return any(self.marks) or any(self.spreads)

    @property
    def alignment(self) -> str:
        """Alignment of cells that span a pair: left if rows have wider second lines below."""
        return "l" if self.below else "c"

    def follows(self, row: int) -> str:
        """What follows the number of a row, as LaTeX."""
        spread = rf"~$\pm$ {self.spreads[row]}" if self.spreads and self.spreads[row] else ""
        mark = self.marks[row]
        return spread + (rf"$^{{\mathrm{{{latex_text(mark)}}}}}$" if mark else "")

    def width(self, relative: float) -> float:
        """Estimated points; the second lines always have the same size."""
        title = _width(self.title) + 8.4 * (self.better is not None)
        numbers = max(
            _width(number) * (1.15 if place == 1 else 1.0)
            for number, place in zip(self.numbers, self.places, strict=True)
        )
        spreads = max((_width(f" ± {one}") for one in self.spreads if one), default=0.0)
        marks = max(4.2 * len(mark) for mark in self.marks)
        below = max((0.8 * _width(line) for line in self.below), default=0.0)
        return max(relative * title, relative * (numbers + spreads + marks), below)


def latex(table: ModelTable) -> str:
    r"""A ``table`` float with ``booktabs`` rules; the label is ``tab:models``."""
    columns = [_column_of(table, column) for column in table.columns]
    names = [table.lettered(row) for row in range(len(table.models))]
    return _float(table.caption(), "Model", names, columns, table.levels())


def comparison_latex(compared: Sequence[SystemComparison]) -> str:
    """One table of all measures of the same systems, with their intervals below the values.

    Rows are in the order of the first measure, best first.
    """
    systems, order = compared[0].samples.systems, compared[0].order
    grouped = dict.fromkeys(_kind(one.samples) for one in compared)
    compared = [one for kind in grouped for one in compared if _kind(one.samples) == kind]
    columns = [_compared_column(one, order) for one in compared]
    names = [f"({letter(row, len(order))}) {systems[i]}" for row, i in enumerate(order)]
    kinds = [_kind(one.samples) for one in compared]
    levels = [spans(kinds)] if any(kinds) else []
    return _float(_compared_caption(compared), "System", names, columns, levels)


def _column_of(table: ModelTable, column: ModelColumn) -> _Column:
    rows = range(len(table.models))
    return _Column(
        column.measure.title,
        column.higher_is_better,
        column.printed(),
        column.places(),
        [table.superscript(column, row) for row in rows],
        [column.spread(row) for row in rows] if column.deviations else (),
    )


def _compared_column(one: SystemComparison, order: Sequence[int]) -> _Column:
    digits, (low, high) = one.samples.digits, one.intervals().tolist()
    better = one.tests.better(one.level)[np.ix_(order, order)]
    values = [float(one.resampled.estimate[i]) for i in order]
    of_runs = one.samples.unit == "queries"
    return _Column(
        trec_title(one.samples.name) if of_runs else one.samples.title,
        one.samples.higher_is_better,
        [f"{value:,.{digits}f}" for value in values],
        place_marks(values, digits, one.samples.higher_is_better),
        [letters(beaten.nonzero()[0], len(order)) for beaten in better],
        below=[f"[{low[i]:,.{digits}f}, {high[i]:,.{digits}f}]" for i in order],
    )


def _compared_caption(compared: Sequence[SystemComparison]) -> str:
    """The number of items compared, the intervals and tests, and the meaning of the marks."""
    sizes = dict.fromkeys(f"{len(one.samples):,} {one.samples.unit}" for one in compared)
    tests = dict.fromkeys(one.tests.samples.unit for one in compared)
    first = compared[0]
    test = f"{TEST_NAMES[first.tests.test]} over {' or '.join(tests)}"
    return (
        f"Means over {' or '.join(sizes)}. Below: {first.resampling.percent:g}% bootstrap "
        "intervals. Best in bold, second best underlined. Superscripts: significantly better than "
        f"these systems ({test}, {CORRECTION_NAMES[first.tests.correction]}, p < {first.level:g})."
    )


def _kind(samples: Samples) -> str:
    """Side, average and rank type; "" for measures of runs."""
    return "" if samples.unit == "queries" else kind_of(Measure.parse(samples.name))


def _float(
    caption: str,
    corner: str,
    names: Sequence[str],
    columns: Sequence[_Column],
    levels: Sequence[Sequence[tuple[str, int]]],
) -> str:
    size, gap, scaled = _fitting([corner, *names], columns, levels)
    spec = "@{}l" + "".join("r@{}l" if column.is_pair else "r" for column in columns) + "@{}"
    begin, end = (r"\sbox{0}{%", "}\n" + _SCALED) if scaled else ("", "")
    lines = [
        r"% \usepackage{booktabs,graphicx}" if scaled else r"% \usepackage{booktabs}",
        r"\begin{table}",
        r"\centering",
        r"\setlength{\belowcaptionskip}{6pt}",
        rf"\caption{{{latex_text(caption)}}}",
        r"\label{tab:models}",
        size,
        rf"\setlength{{\tabcolsep}}{{{gap:g}pt}}" if size else "",
        begin,
        rf"\begin{{tabular}}{{{spec}}}",
        r"\toprule",
        *_head(corner, columns, levels),
        r"\midrule",
        *_rows(names, columns),
        r"\bottomrule",
        rf"\end{{tabular}}{end}",
        r"\end{table}",
    ]
    return "\n".join(filter(None, lines)) + "\n"


def _fitting(
    names: Sequence[str],
    columns: Sequence[_Column],
    levels: Sequence[Sequence[tuple[str, int]]],
) -> tuple[str, float, bool]:
    """The largest size at which the table fits, its space between columns, and whether it needs
    to be scaled besides."""
    for size, relative, gap in _SIZES:
        widths = [column.width(relative) for column in columns]
        more = max((_missing(level, widths, relative, 2 * gap) for level in levels), default=0.0)
        names_wide = relative * max(map(_width, names))
        if names_wide + sum(widths) + more + 2 * gap * len(columns) <= TEXT_WIDTH:
            return size, gap, False
    return size, gap, True


def _missing(
    level: Sequence[tuple[str, int]], widths: Sequence[float], relative: float, gap: float
) -> float:
    """Points that headings over several columns need beyond these."""
    more, first = 0.0, 0
    for text, size in level:
        below = sum(widths[first : first + size]) + gap * (size - 1)
        more += max(0.0, relative * _width(text) - below)
        first += size
    return more


def _width(text: str) -> float:
    """Estimated points of a text at the usual size."""
    points = {sign: width for signs, width in _WIDTHS.items() for sign in signs}
    return sum(points.get(sign, 7.4 if sign.isupper() else 5.0) for sign in text)


def _head(
    corner: str, columns: Sequence[_Column], levels: Sequence[Sequence[tuple[str, int]]]
) -> Iterable[str]:
    for level in levels:
        cells, rules, first, own = [""], [], 2, iter(columns)
        for text, size in level:
            wide = sum(1 + next(own).is_pair for _ in range(size))
            cells.append(rf"\multicolumn{{{wide}}}{{c}}{{{latex_text(text)}}}")
            rules.append(rf"\cmidrule(lr){{{first}-{first + wide - 1}}}")
            first += wide
        yield " & ".join(cells) + r" \\"
        yield " ".join(rules)
    titles = [latex_text(one.title) + arrow(one.better, r" $\uparrow$", r" $\downarrow$")
              for one in columns]  # fmt: skip
    cells = [rf"\multicolumn{{2}}{{{column.alignment}}}{{{title}}}" if column.is_pair else title
             for title, column in zip(titles, columns, strict=True)]  # fmt: skip
    yield " & ".join([corner, *cells]) + r" \\"


def _rows(names: Sequence[str], columns: Sequence[_Column]) -> Iterable[str]:
    for row, name in enumerate(names):
        if row and any(column.below for column in columns):
            yield r"\addlinespace[2pt]"
        yield from _row(name, row, columns)


def _row(name: str, row: int, columns: Sequence[_Column]) -> Iterable[str]:
    cells = [latex_text(name)]
    for column in columns:
        number = _number(column.numbers[row])
        marked = (number, rf"\textbf{{{number}}}", rf"\underline{{{number}}}")
        cells.append(marked[column.places[row]])
        cells += [column.follows(row)] if column.is_pair else []
    yield " & ".join(cells) + r" \\"
    if not any(column.below for column in columns):
        return
    below = [rf"\scriptsize {_number(column.below[row])}" for column in columns]
    spanned = [rf"\multicolumn{{2}}{{{column.alignment}}}{{{text}}}" if column.is_pair else text
               for text, column in zip(below, columns, strict=True)]  # fmt: skip
    yield " & ".join(["", *spanned]) + r" \\"


def _number(text: str) -> str:
    """A number, or two with an en dash between them."""
    return re.sub(r"(?<=\d)-(?=\d)", "--", latex_text(text))
