"""A small table and the forms it is printed in: text, CSV, Markdown, LaTeX, JSON, a frame."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kgtrec.errors import UsageError

if TYPE_CHECKING:
    import pandas

__all__ = ["Cell", "Table", "dump_json", "stacked"]

Cell = str | int | float

WIDTH = 80
NARROWEST = 12
GAP = 2
_LATEX = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
_LATEX |= {character: f"\\{character}" for character in "&%$#_{}"}


@dataclass(frozen=True)
class Table:
    """Rows under headings; the first column names the row.

    Attributes
    ----------
    titles : sequence of str
        Headings as printed.
    keys : sequence of str
        Names of the same columns in CSV, JSON and frames.
    digits : sequence of int
        Decimals of floats in print; CSV, JSON and frames keep every digit.
    rows : sequence of tuples
    """

    titles: Sequence[str]
    keys: Sequence[str]
    digits: Sequence[int]
    rows: Sequence[tuple[Cell, ...]]

    def __post_init__(self) -> None:
        widths = {len(self.titles), len(self.keys), len(self.digits), *map(len, self.rows)}
        assert len(widths) == 1, f"columns of different counts: {sorted(widths)}"

    def __len__(self) -> int:
        return len(self.rows)

    def __str__(self) -> str:
        return self.to_text()

    def printed(self) -> list[list[str]]:
        """Every cell as tables print it, without the headings."""
        return [
            [_printed(cell, digits) for cell, digits in zip(row, self.digits, strict=True)]
            for row in self.rows
        ]

    def to_text(self, width: int = WIDTH) -> str:
        """Aligned columns; the first is cut in its middle where the line would pass `width`."""
        lines = [list(self.titles), *self.printed()]
        widths = [max(len(line[i]) for line in lines) for i in range(len(self.titles))]
        room = width - sum(widths[1:]) - GAP * (len(widths) - 1)
        widths[0] = min(widths[0], max(room, NARROWEST))
        gap = " " * GAP
        return "\n".join(
            gap.join(
                _shortened(cell, size).ljust(size) if i == 0 else cell.rjust(size)
                for i, (cell, size) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in lines
        )

    def to_csv(self) -> str:
        """Comma-separated, one header line, floats in full."""
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        writer.writerow(self.keys)
        writer.writerows(self.rows)
        return buffer.getvalue()

    def to_markdown(self) -> str:
        """A Markdown (GitHub) table."""
        lines = [list(self.titles), ["---", *["---:"] * (len(self.titles) - 1)], *self.printed()]
        escaped = [[cell.replace("|", "\\|") for cell in line] for line in lines]
        return "\n".join(f"| {' | '.join(line)} |" for line in escaped) + "\n"

    def to_latex(self) -> str:
        r"""A ``tabular`` that needs no package."""
        lines = [list(self.titles), *self.printed()]
        body = [" & ".join(_latex(cell) for cell in line) + r" \\" for line in lines]
        columns = "l" + "r" * (len(self.titles) - 1)
        start, end = rf"\begin{{tabular}}{{{columns}}}", r"\end{tabular}"
        return "\n".join([start, r"\hline", body[0], r"\hline", *body[1:], r"\hline", end]) + "\n"

    def to_dict(self) -> dict[str, dict[str, Cell]]:
        """Row name -> column key -> value."""
        return {str(row[0]): dict(zip(self.keys[1:], row[1:], strict=True)) for row in self.rows}

    def to_json(self) -> str:
        """`to_dict` as JSON; NaN becomes null."""
        return dump_json(self.to_dict())

    def to_frame(self) -> pandas.DataFrame:
        """A pandas DataFrame, columns named by `keys`."""
        try:
            import pandas
        except ImportError:
            raise UsageError(
                "to_frame needs pandas, which is not installed; pip install pandas, "
                "or take to_csv or to_dict"
            ) from None
        return pandas.DataFrame(list(self.rows), columns=list(self.keys))


def dump_json(value: object) -> str:
    """Strict JSON in ASCII (labels may hold any bytes); NaN and infinities become null."""
    return json.dumps(_finite(value), indent=2, allow_nan=False)


def _finite(value: object) -> object:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _printed(cell: Cell, digits: int) -> str:
    if isinstance(cell, float):
        return f"{cell:.{digits}f}"
    return f"{cell:,}" if isinstance(cell, int) else cell


def _shortened(text: str, width: int) -> str:
    if len(text) <= width:
        return text
    head = (width - 1) // 2
    return f"{text[:head]}…{text[len(text) - (width - 1 - head) :]}"


def _latex(text: str) -> str:
    return "".join(_LATEX.get(character, character) for character in text)


def stacked(tables: Mapping[str, Table]) -> Table:
    """One table out of several of the same columns, a first column naming each row's table.

    A single table is given back as it is.
    """
    parts = list(tables.values())
    if len(parts) == 1:
        return parts[0]
    first = parts[0]
    rows = [(name, *row) for name, table in tables.items() for row in table.rows]
    return Table(("file", *first.titles), ("file", *first.keys), (0, *first.digits), rows)
