"""The overview of a comparison: a row per system, a column per measure, and who beats whom.

Each value has the letters of the systems that it is significantly better than, as papers on
retrieval print it. `SystemComparison` has the tests and intervals behind it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import ClassVar

import numpy as np

from kgtrec._internal.argument_names import argument
from kgtrec._internal.csr import group_pairs
from kgtrec._internal.table import Cell, ShownInLines, Table
from kgtrec.errors import UsageError, refuse_if
from kgtrec.measures import Measure
from kgtrec.measures.measure import trec_title
from kgtrec.study.comparison.report import (
    CORRECTION_NAMES,
    TEST_NAMES,
    SystemComparison,
    letter,
    letters,
)
from kgtrec.study.comparison.samples import Samples
from kgtrec.study.reporting.columns import Levels, explain_places, kind_of, place_marks
from kgtrec.study.reporting.formats import PrintedColumn, html_text, latex, markdown, plain


@dataclass(frozen=True, eq=False)
class ComparisonOverview(ShownInLines):
    """A table of all measures of the same systems.

    Rows are in the order of the first measure, best first; their letters are a, b, ..., or numbers
    for more than 26 systems. Measures with the same side, average and rank type are neighbours.

    - comparisons: Comparisons of the same systems by the same test, one per measure.
    - intervals: Whether LaTeX prints each interval below its value.
    - text: Caption instead of the usual one; "" for the usual one.
    - label: Name of the table for references in LaTeX; "" for the usual one.
    """

    corner: ClassVar[str] = "System"
    usual_label: ClassVar[str] = "tab:comparison"

    comparisons: tuple[SystemComparison, ...]
    intervals: bool = False
    text: str = ""
    label: str = ""

    @property
    def order(self) -> list[int]:
        """Indices of the systems, from top to bottom."""
        return self.comparisons[0].order

    def names(self) -> list[str]:
        """Return the names of the rows with their letters: "(a) svd"."""
        systems, many = self.comparisons[0].samples.systems, len(self.order)
        return [f"({letter(row, many)}) {systems[i]}" for row, i in enumerate(self.order)]

    def printed_columns(self) -> list[PrintedColumn]:
        """Return the columns of values as they are printed."""
        groups = self._by_kind().values()
        return [self._printed(comparison) for comparison in chain.from_iterable(groups)]

    def levels(self) -> Levels:
        """Return the line with sides and averages above the measures; none for runs."""
        groups = self._by_kind()
        return [[(kind, len(group)) for kind, group in groups.items()]] if any(groups) else []

    def caption(self) -> str:
        """Return the caption: numbers of items, tests, and the meaning of the marks."""
        if self.text:
            return self.text
        first = self.comparisons[0]
        sizes = dict.fromkeys(f"{len(c.samples):,} {c.samples.unit}" for c in self.comparisons)
        tested = dict.fromkeys(c.tests.samples.unit for c in self.comparisons)
        test = f"{TEST_NAMES[first.tests.test]} over {' or '.join(tested)}"
        correction = CORRECTION_NAMES[first.tests.correction]
        below = f"Below: {first.resampling.percent:g}% bootstrap intervals."
        sentences = [
            f"Means over {' or '.join(sizes)}.",
            below if self.intervals else "",
            explain_places(mark for c in self.printed_columns() for mark in c.rank_marks),
            f"Superscripts: significantly better than these systems ({test}, {correction}, "
            f"p < {first.level:g}).",
        ]
        return " ".join(filter(None, sentences))

    def values(self) -> Table:
        """Return a table with a row per system: values and ends of intervals in full.

        ``KEY.better_than`` has the letters of the systems that this one significantly beats.
        """
        systems, order = self.comparisons[0].samples.systems, self.order
        heads: list[tuple[str, str, int]] = [("system", "system", 0), ("", "letter", 0)]
        columns: list[Iterable[Cell]] = [
            [systems[i] for i in order],
            [letter(row, len(order)) for row in range(len(order))],
        ]
        for comparison in self.comparisons:
            samples = comparison.samples
            key, digits = samples.name, samples.digits
            low, high = comparison.intervals()[:, order].tolist()
            heads += [(key, key, digits), (f"{key}.low",) * 2 + (digits,)]
            heads += [(f"{key}.high",) * 2 + (digits,), (f"{key}.better_than",) * 2 + (0,)]
            columns += [comparison.resampled.estimate[order].tolist(), low, high]
            columns.append(self._beaten(comparison))
        return Table.from_columns(heads, *columns)

    def to_text(self) -> str:
        """Return aligned columns and the caption; a star marks the best of each column."""
        return plain(self)

    def to_markdown(self) -> str:
        """Return a Markdown table with superscripts, and the caption below it."""
        return markdown(self)

    def to_latex(self) -> str:
        """Return a LaTeX float with superscripts."""
        return latex(self)

    def __str__(self) -> str:
        return self.to_text()

    def _repr_html_(self) -> str:
        return html_text(self)

    def _lines(self) -> tuple[str, str]:
        titles = ", ".join(column.title for column in self.printed_columns())
        return f"{len(self.order):,} systems: {', '.join(self.names())}", titles

    def _by_kind(self) -> dict[str, list[SystemComparison]]:
        """Group the comparisons by side, average and rank type; "" for measures of runs."""
        return group_pairs(
            (_kind(comparison.samples), comparison) for comparison in self.comparisons
        )

    def _beaten(self, comparison: SystemComparison) -> list[str]:
        """Return the letters of the systems that each row significantly beats."""
        better = comparison.tests.better(comparison.level)[np.ix_(self.order, self.order)]
        return [letters(row.nonzero()[0].tolist(), len(self.order)) for row in better]

    def _printed(self, comparison: SystemComparison) -> PrintedColumn:
        """Return the column of a measure."""
        samples = comparison.samples
        digits, (low, high) = samples.digits, comparison.intervals().tolist()
        values = [float(comparison.resampled.estimate[i]) for i in self.order]
        ends = [f"[{low[i]:,.{digits}f}, {high[i]:,.{digits}f}]" for i in self.order]
        return PrintedColumn(
            trec_title(samples.name) if samples.unit == "queries" else samples.title,
            samples.higher_is_better,
            [f"{value:,.{digits}f}" for value in values],
            place_marks(values, digits, samples.higher_is_better),
            self._beaten(comparison),
            below=ends if self.intervals else (),
        )


def _kind(samples: Samples) -> str:
    """Return side, average and rank type of a measure; "" for measures of runs."""
    return "" if samples.unit == "queries" else kind_of(Measure.parse(samples.name))


def overview(
    comparisons: SystemComparison | Sequence[SystemComparison],
    *,
    intervals: bool = False,
    caption: str = "",
    label: str = "",
) -> ComparisonOverview:
    """Show all measures of several systems in one table, with the systems that each one beats.

    >>> samples = kgtrec.study.samples_of_runs(qrels, {"a": run, "b": other}, ["map", "P.10"])
    ... # doctest: +SKIP
    >>> print(kgtrec.study.overview(kgtrec.compare(samples)))              # doctest: +SKIP

    Parameters
    ----------
    comparisons : SystemComparison, or a sequence of them
        From `kgtrec.compare`, one per measure.
    intervals : bool
        Print the interval of each value below it in LaTeX.
    caption : str
        Caption instead of the usual one, which names the test, its correction and its level.
    label : str
        Name of the table for references in LaTeX; by default ``tab:comparison``.

    Returns
    -------
    ComparisonOverview
        ``print`` shows the table; ``to_markdown()``, ``to_latex()``, and ``values()`` for numbers
        in full.

    Raises
    ------
    UsageError
        No comparison, or comparisons of different systems, or by different tests or levels.
    """
    several = [comparisons] if isinstance(comparisons, SystemComparison) else comparisons
    if not isinstance(several, Sequence) or not all(
        isinstance(each, SystemComparison) for each in several
    ):
        raise UsageError(
            f"{argument('comparisons', type(comparisons).__name__)} has no comparison of systems; "
            "pass what kgtrec.compare({name: ranks, ...}) returns"
        )
    refuse_if(
        (
            not several,
            "no comparison is given; pass what kgtrec.compare({name: ranks, ...}) returns",
        )
    )
    first = several[0]
    for other in several[1:]:
        refuse_if(
            (
                other.samples.systems != first.samples.systems,
                f"{first.samples.name} and {other.samples.name} compare different systems "
                f"({', '.join(first.samples.systems)}, but {', '.join(other.samples.systems)}); "
                "compare the same systems by all measures",
            ),
            (
                _settings(other) != _settings(first),
                f"{first.samples.name} and {other.samples.name} are compared differently "
                f"({_settings(first)}, but {_settings(other)}); compare all measures in one call",
            ),
        )
    return ComparisonOverview(tuple(several), intervals, caption, label)


def _settings(comparison: SystemComparison) -> str:
    """Return test, correction and level in words."""
    tests = comparison.tests
    return f"{tests.test} test, {tests.correction} correction, level {comparison.level:g}"
