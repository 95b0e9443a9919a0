"""Small tables and their output formats: text, CSV, Markdown, LaTeX, JSON, a frame.

Spreadsheet programs read some texts as formulas; notebooks show HTML with escaped labels.
"""

from __future__ import annotations

import io
import json
import math
import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from kgtrec._internal.latex import PACKAGES, fit_to_line, latex_text
from kgtrec._internal.text import shorten, shorten_names, visible
from kgtrec.errors import UsageError

if TYPE_CHECKING:
    import pandas

_FORMULA = re.compile(r"'*[=+\-@]")
_STARTS_FORMULA = tuple("=+-@\t\r")
_NUMBER = re.compile(r"[+-]?(\d[\d,]*\.?\d*|\.\d+)([eE][+-]?\d+)?%?")


def cell_of(text: str) -> str:
    """Return a text as a cell, after an apostrophe if a program could read it as a formula.

    So ``=SUM(A1)`` becomes ``'=SUM(A1)``, which spreadsheet programs read as text. Texts that
    already have such apostrophes get one more, so that `text_of_cell` restores every text.
    """
    return f"'{text}" if _FORMULA.match(text) else text


def text_of_cell(cell: str) -> str:
    """Return the text of a cell that `cell_of` returned."""
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell


WIDTH = 80
NARROWEST = 12
GAP = 2
MOST = 100
"""Rows that notebooks show."""
MOST_IN_CONSOLES = 20
"""Rows that consoles show."""
_COLUMN = re.compile(r"(.*?)(?:=([\w.]*))?(?::(\d))?")


@dataclass(frozen=True)
class Interval:
    """A value that is known to be between two ends; `float` returns the value."""

    value: float
    low: float
    high: float

    @staticmethod
    def enclosing(value: float, first: float, second: float) -> Value:
        """Return the interval between two ends in any order, or their number if they agree.

        A value beyond an end becomes that end. If an end is NaN, the first end is returned.
        """
        if first == second or math.isnan(first) or math.isnan(second):
            return float(first)
        low, high = min(first, second), max(first, second)
        return Interval(min(max(value, low), high), low, high)

    def __float__(self) -> float:
        return self.value

    def __format__(self, spec: str) -> str:
        between = "-" if self.low >= 0 else " to "  # a dash would look like a minus sign
        return f"{self.low:{spec}}{between}{self.high:{spec}}"

    def __str__(self) -> str:
        return f"{self.low!r}-{self.high!r}"


class PValue(float):
    """A p-value, which prints as "< 0.001" if it is smaller; its digits are kept otherwise."""

    def __format__(self, spec: str) -> str:
        return f"< {LEAST_P}" if self < LEAST_P else float.__format__(self, spec)


LEAST_P = 0.001
Value = float | Interval
"""A value of a measure."""

ResultValue = float | Any
"""A value of a result: an `Interval` only if predicted lists lack answers, else a float.

``float | Any`` instead of `Value` lets type checkers accept ``mrr: float = result["mrr"]``.
"""

Cell = str | int | float | Interval
"""A cell of a table."""


@dataclass(frozen=True)
class Table:
    """Rows under headings; the first columns name the row.

    - titles, keys: Headings as printed; names of these columns in CSV, JSON and frames.
    - digits: Decimals of floats in print; CSV, JSON and frames keep every digit.
    - names: Number of first columns that together name a row.
    - bold: Row and column of the cells that Markdown, LaTeX and notebooks show in bold.
    """

    titles: Sequence[str]
    keys: Sequence[str]
    digits: Sequence[int]
    rows: Sequence[tuple[Cell, ...]]
    names: int = 1
    bold: frozenset[tuple[int, int]] = frozenset()

    def __post_init__(self) -> None:
        widths = {len(self.titles), len(self.keys), len(self.digits), *map(len, self.rows)}
        assert len(widths) == 1, f"columns of different counts: {sorted(widths)}"

    @classmethod
    def from_rows(
        cls,
        columns: str | Sequence[str | tuple[str, str, int]],
        rows: Sequence[tuple[Cell, ...]],
        names: int = 1,
    ) -> Table:
        """Return a table of the columns ``title=key:digits, ...``; key and digits are optional.

        In a list, a column may also be a tuple, for titles and keys that users choose.
        """
        parts: list[Any] = []
        for column in columns.split(",") if isinstance(columns, str) else columns:
            if isinstance(column, str):
                match = _COLUMN.fullmatch(column.strip())
                title, key, digits = match.groups("") if match else (column, "", "")
                column_key = key or title.replace("%", "percent").replace(" ", "_")
                column = title, column_key, int(digits or 0)
            parts.append(column)
        titles, keys, decimals = zip(*parts, strict=True)
        return cls([*titles], [*keys], [*decimals], rows, names)

    @classmethod
    def from_columns(
        cls, heads: str | Sequence[str | tuple[str, str, int]], *columns: Any, names: int = 1
    ) -> Table:
        """Return a table from the cells of each column: an array or another iterable."""
        cells = [column.tolist() if hasattr(column, "tolist") else column for column in columns]
        return cls.from_rows(heads, list(zip(*cells, strict=True)), names)

    def in_order(self, order: Any) -> Table:
        """Return a table of only these rows, by number, in this order."""
        return replace(self, rows=[self.rows[row] for row in order])

    def __len__(self) -> int:
        return len(self.rows)

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        """Return the first rows as text, and count the others."""
        left_out = len(self) - MOST_IN_CONSOLES
        if left_out <= 0:
            return self.to_text()
        first = self.in_order(range(MOST_IN_CONSOLES)).to_text()
        return f"{first}\n... {left_out:,} more rows; print() shows all"

    def cell_texts(self) -> list[list[str]]:
        """Return every cell as tables print it, without the headings."""
        return [
            [format_cell(cell, digits) for cell, digits in zip(row, self.digits, strict=True)]
            for row in self.rows
        ]

    def _mark_up(self, escape: Callable[[str], str], bold: str) -> list[list[str]]:
        """Return the cells in a markup language; `bold` is the format of bold cells."""
        return [
            [
                bold.format(escape(cell)) if (row, i) in self.bold else escape(cell)
                for i, cell in enumerate(line)
            ]
            for row, line in enumerate(self.cell_texts())
        ]

    def to_text(self, width: int = WIDTH) -> str:
        """Return aligned columns; names lose their middle if the line would exceed `width`.

        Different names stay different: those that would be equal keep what differs. Decimal points
        of a column are below each other, also in columns of numbers that name rows.
        """
        columns = [[*map(visible, self.titles)], *self.cell_texts()]
        lines, is_left = _align_decimals(columns, self.names)
        widths = [max(len(line[i]) for line in lines) for i in range(len(self.titles))]
        available = width - sum(widths[self.names :]) - GAP * (len(widths) - 1)
        name_widths = widths[: self.names]
        widest = max(name_widths)
        # Cut the widest columns to one common width, so that all columns fit.
        while widest > NARROWEST and sum(min(size, widest) for size in name_widths) > available:
            widest -= 1
        name_widths = [min(size, widest) for size in name_widths]
        short = [
            _shorten_column([line[i] for line in lines], size) for i, size in enumerate(name_widths)
        ]
        widths[: self.names] = [max(map(len, texts.values())) for texts in short]
        gap = " " * GAP
        return "\n".join(
            gap.join(
                short[i][cell].ljust(size) if is_left[i] else cell.rjust(size)
                for i, (cell, size) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in lines
        )

    def transpose(self) -> Table:
        """Return a table with columns as rows, as printed; for cells too wide for one line."""
        cell_texts = self.cell_texts()
        rows = [*zip(self.titles, *cell_texts, strict=True)][self.names :]
        heads = (self.titles[0], *(" ".join(line[: self.names]) for line in cell_texts))
        return Table(heads, heads, (0,) * len(heads), rows)

    def to_csv(self, separator: str = ",") -> str:
        """Return CSV with one header line and floats in full.

        Texts that a spreadsheet program could read as formulas have an apostrophe before them.
        """
        import csv

        buffer = io.StringIO()
        writer = csv.writer(buffer, delimiter=separator, lineterminator="\n")
        writer.writerow(map(_safe_cell, self.keys))
        writer.writerows(map(_safe_cell, row) for row in self.rows)
        return buffer.getvalue()

    def to_markdown(self) -> str:
        """Return a Markdown (GitHub) table."""
        rule = ["---"] * self.names + ["---:"] * (len(self.titles) - self.names)
        titles = [visible(title).replace("|", "\\|") for title in self.titles]
        lines = [titles, rule, *self._mark_up(lambda c: c.replace("|", "\\|"), "**{}**")]
        return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"

    def to_latex(self) -> str:
        r"""Return a LaTeX ``tabular`` with ``booktabs`` rules, scaled if wider than its line."""
        lines = [[latex_text(title) for title in self.titles]]
        lines += self._mark_up(latex_text, r"\textbf{{{}}}")
        body = [" & ".join(line) + r" \\" for line in lines]
        columns = "l" * self.names + "r" * (len(self.titles) - self.names)
        start = [rf"\begin{{tabular}}{{@{{}}{columns}@{{}}}}", r"\toprule", body[0], r"\midrule"]
        end = [r"\bottomrule", r"\end{tabular}"]
        return "\n".join([PACKAGES, *fit_to_line([*start, *body[1:], *end])]) + "\n"

    def _repr_html_(self) -> str:
        """Return the first rows, as printed, for notebooks."""
        return self.to_html(MOST)

    def to_html(self, most: int | None = None) -> str:
        """Return an HTML table of at most `most` rows; a line below counts the others."""
        rows = self._mark_up(escape_html, "<strong>{}</strong>")
        head = "".join(f'<th scope="col">{escape_html(title)}</th>' for title in self.titles)
        lines = []
        for row in rows[:most]:
            cells = [f'<th scope="row">{cell}</th>' for cell in row[: self.names]]
            cells += [f'<td style="text-align:right">{cell}</td>' for cell in row[self.names :]]
            lines.append(f"<tr>{''.join(cells)}</tr>")
        left_out = len(rows) - len(lines)
        note_on_omitted = f"<p>{left_out:,} more rows</p>" if left_out else ""
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>"
        return table + note_on_omitted

    def to_dict(self) -> dict[str, Any]:
        """Return values by row name and column key, with one level per column that names a row.

        If several rows have one name, every name has a list of rows.
        """
        tree: dict[str, Any] = {}
        names = [tuple(map(str, row[: self.names])) for row in self.rows]
        are_unique = len(set(names)) == len(names)
        for path, row in zip(names, self.rows, strict=True):
            values = dict(zip(self.keys[self.names :], row[self.names :], strict=True))
            level = tree
            for name in path[:-1]:
                level = level.setdefault(name, {})
            if are_unique:
                level[path[-1]] = values
            else:
                level.setdefault(path[-1], []).append(values)
        return tree

    def to_json(self) -> str:
        """Return `to_dict` as JSON; NaN becomes null."""
        return dump_json(self.to_dict())

    def to_frame(self) -> pandas.DataFrame:
        """Return a pandas DataFrame with columns named by `keys`."""
        pandas = import_pandas("to_csv or to_dict")
        return pandas.DataFrame(list(self.rows), columns=list(self.keys))


def import_pandas(otherwise: str) -> Any:
    """Return the module pandas; UsageError if it is absent, with the methods to use instead."""
    try:
        import pandas
    except ImportError:
        raise UsageError(
            f"to_frame needs pandas, which is not installed; pip install pandas, or use {otherwise}"
        ) from None
    return pandas


def dump_json(value: object) -> str:
    """Return strict JSON in ASCII, as labels may have any bytes; NaN and infinities become null."""
    return json.dumps(finite(value), indent=2, allow_nan=False)


def finite(value: object) -> object:
    """Return a value with None for NaN and infinities, which JSON lacks."""
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(item) for item in value]
    if isinstance(value, Interval):
        return {"low": finite(value.low), "high": finite(value.high)}
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def format_cell(cell: Cell, digits: int) -> str:
    """Return a cell as tables print it; an interval's ends have three decimals at most."""
    if isinstance(cell, Interval):
        return f"{cell:.{min(digits, 3)}f}"
    if isinstance(cell, float):
        return f"{cell:.{digits}f}"
    return f"{cell:,}" if isinstance(cell, int) else visible(cell)


_DECIMAL = re.compile(r"(?:[<>] )?[+-]?[\d,]*(\.\d+)?(?:e[+-]\d+)?( ?%)?")


def _align_decimals(
    lines: Sequence[Sequence[str]], names: int
) -> tuple[list[list[str]], list[bool]]:
    """Pad numbers at their right so that right-aligned columns have their decimal points in line.

    The first line has the titles. Texts among the numbers, such as nan, stay. Returns the lines,
    and whether each column is left-aligned: the first `names` are, unless they are decimals.
    """
    columns, is_left = [], []
    for i, (title, *cells) in enumerate(zip(*lines, strict=True)):
        matches = [_DECIMAL.fullmatch(cell) for cell in cells]
        is_name = i < names and not (all(matches) and any(match[1] for match in matches if match))
        is_left.append(is_name)
        if not is_name:
            ends = [
                len(cell) - match.start(1) if match[1] else len(match[2] or "")
                for cell, match in zip(cells, matches, strict=True)
                if match
            ]
            sizes = iter(ends)
            cells = [
                cell + " " * (max(ends) - next(sizes)) if match else cell
                for cell, match in zip(cells, matches, strict=True)
            ]
        columns.append([title, *cells])
    return [list(line) for line in zip(*columns, strict=True)], is_left


_KEY = re.compile(
    r"((?:sampled\.)?)((?:both|head|tail|relation|all)\.)((?:realistic\.)?)"
    r"((?:(?:optimistic|pessimistic|expected|ordinal)\.)?"
    r"(?:micro|macro|question|group|relation|triple|macro_relation|stratified)\..+)"
)
"""A key of a measure: sampled candidates, side, the default rank type, the rest."""


def _shorten_key(cell: str, width: int) -> str | None:
    """Return a measure's key without parts that are defaults, which reads as the same measure.

    It is longer than `width` if the other parts are; None if the cell is not a key.
    """
    match = _KEY.fullmatch(cell)
    if match is None or len(cell) <= width:
        return cell if match else None
    sampled, side, _, rest = match.groups()
    short = f"{sampled}{side}{rest}"
    return short if len(short) <= width or side != "both." else f"{sampled}{rest}"


def _shorten_column(cells: Sequence[str], width: int) -> dict[str, str]:
    """Return a text of at most `width` characters per cell; different cells stay different.

    Keys of measures keep all parts that are not defaults, even if they are longer.
    """
    keys = {cell: _shorten_key(cell, width) for cell in cells}
    by_cell = {cell: key if key else shorten(cell, width) for cell, key in keys.items()}
    if len({*by_cell.values()}) == len(by_cell):
        return by_cell
    alike: dict[str, list[str]] = {}
    for cell, text in by_cell.items():
        alike.setdefault(text, []).append(cell)
    for group in alike.values():
        if len(group) > 1:
            by_cell |= dict(zip(group, shorten_names(group, width), strict=True))
    return by_cell


def _safe_cell(cell: Cell) -> Cell:
    """Return a cell for CSV: numbers unchanged, texts visible and safe in spreadsheet programs.

    The report page protects the cells that it copies by the same rule.
    """
    if not isinstance(cell, str) or _NUMBER.fullmatch(cell):
        return cell
    return visible(f"'{cell}" if cell.startswith(_STARTS_FORMULA) else cell)


def side_by_side(tables: Mapping[str, Table], names: int) -> dict[str, Table]:
    """Return a table per column of values, by title, with one column per table.

    - tables: By the titles of these columns; with the same rows and columns.
    - names: Number of first columns that name a row, which stay.
    """
    first, *_ = tables.values()
    heads = [*zip(first.titles, first.keys, first.digits, strict=True)]
    return {
        title: Table.from_rows(
            [*heads[:names], *((table, table, digits) for table in tables)],
            [
                (*row[:names], *(table.rows[number][index] for table in tables.values()))
                for number, row in enumerate(first.rows)
            ],
            names,
        )
        for index, (title, _, digits) in enumerate(heads)
        if index >= names
    }


def stack_tables(tables: Mapping[str, Table], named: str = "file") -> Table:
    """Stack tables with the same columns; a new first column names each row's table."""
    first = next(iter(tables.values()))
    rows: list[tuple[Cell, ...]] = []
    bold: set[tuple[int, int]] = set()
    for name, table in tables.items():
        bold |= {(row + len(rows), column + 1) for row, column in table.bold}
        rows += [(name, *row) for row in table.rows]
    heads = (named, *first.titles), (named, *first.keys), (0, *first.digits)
    return Table(*heads, rows, first.names + 1, frozenset(bold))


def _three_lines(shown: ShownInLines) -> str:
    first, second = shown._lines()
    return f"{type(shown).__name__}{shown._subject()}\n  {first}\n  {second}"


class ShownInLines(ABC):
    """Results that consoles and notebooks show in three lines: the class, and `_lines`.

    `_shown` names the methods or attributes that are tables, the most important one first.
    """

    _shown: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "__repr__" not in cls.__dict__:  # otherwise a dataclass would list all its arrays
            cls.__repr__ = _three_lines  # type: ignore[assignment]

    @abstractmethod
    def _lines(self) -> tuple[str, str]:
        """Return two lines: the size of the result, and its main values."""

    def _subject(self) -> str:
        """Text after the class name."""
        return ""

    def _tables(self) -> list[Any]:
        parts = [getattr(self, name) for name in self._shown]
        return [part() if callable(part) else part for part in parts]

    def _repr_html_(self) -> str:
        tables = "".join(table._repr_html_() for table in self._tables())
        return lines_as_html(repr(self)) + tables


class ShownAsTables(ShownInLines):
    """Results that notebooks show as their tables, and consoles in three lines."""

    _shown: ClassVar[tuple[str, ...]] = ("table",)

    def to_frame(self) -> pandas.DataFrame:
        """Return the main table as a pandas frame, with columns named as in CSV."""
        frame: pandas.DataFrame = self._tables()[0].to_frame()
        return frame

    def _lines(self) -> tuple[str, str]:
        """Return two lines: the size of the first table, and its main values."""
        table = self._tables()[0]
        return f"{len(table):,} rows", ", ".join(title for title in table.titles if title)


def in_notebook() -> bool:
    """Return whether this runs in a Jupyter kernel, which shows text without a terminal."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return type(shell).__name__ == "ZMQInteractiveShell"


def lines_as_html(text: str) -> str:
    """Return the lines of a repr as HTML; the first is a heading."""
    first, *more = text.splitlines()
    rest = "".join(f"<br>{escape_html(line.strip())}" for line in more)
    return f"<div><strong>{escape_html(first)}</strong>{rest}</div>"


def escape_html(text: str) -> str:
    """Return a text escaped for HTML, also if its bytes are not UTF-8."""
    import html

    return html.escape(readable(text))


def readable(text: str) -> str:
    """Return a text with replacement characters for bytes that are not UTF-8."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
