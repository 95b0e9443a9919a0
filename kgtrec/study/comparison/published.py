"""Values of systems as papers publish them: a CSV file with a row per system, or per part.

Runs and ranks are seldom published, tables of results often are. Their values can be compared with
those by other labels, part by part, or at other relation ratios, as one's own can.
"""

from __future__ import annotations

import csv
import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kgtrec._internal.locations import fetched
from kgtrec._internal.table import ShownInLines
from kgtrec.errors import FileError, InputError, UsageError
from kgtrec.measures import Measure
from kgtrec.study.comparison.parts import WHOLE, SystemValues
from kgtrec.study.relations import is_micro_mean, reweighted_mean

SYSTEM = ("system", "model", "name")
RELATION = ("relation", "relations")
FEW = 12
"""So many columns are named in an error."""


@dataclass(frozen=True, eq=False)
class ValueTable(ShownInLines):
    """The cells of a file of values.

    - columns: Headings, that of the systems among them.
    - system: Heading of the systems: system, model or name; else the first one.
    """

    path: str
    columns: tuple[str, ...]
    system: str
    rows: tuple[tuple[int, Mapping[str, str]], ...]

    def _lines(self) -> tuple[str, str]:
        return f"{len(self.rows):,} rows of {self.path}", ", ".join(self.columns)

    def column(self, name: str) -> str | None:
        """The heading that is meant: without regard to case, - and _; None if there is none."""
        return next((one for one in self.columns if _plain(one) == _plain(name)), None)

    def measure(self, key: str) -> str:
        """The heading of a measure: its own, or one that means the same measure."""
        exact = self.column(key)
        if exact is not None:
            return exact
        parsed = _parsed(key)
        same = [one for one in self.columns if parsed is not None and _parsed(one) == parsed]
        if same:
            return same[0]
        others = [one for one in self.columns if one != self.system]
        more = f" and {len(others) - FEW} more" if len(others) > FEW else ""
        raise UsageError(
            f"{self.path} has no column {key!r}; it has {', '.join(others[:FEW])}{more}"
        )


def _plain(name: str) -> str:
    return name.strip().lower().replace("-", "").replace("_", "")


def _parsed(key: str) -> Measure | None:
    """The measure of a heading such as micro_mrr, which papers write so; None if it is none."""
    for averaging in ("micro", "macro"):
        if key.lower().startswith(f"{averaging}_"):
            key = f"{averaging}.{key[len(averaging) + 1 :]}"
    try:
        return Measure.parse(key)
    except UsageError:
        return None


def read_value_table(path: str | os.PathLike[str]) -> ValueTable:
    """Read a table of values: CSV, or by its ending TSV, Markdown (.md) or LaTeX (.tex).

    The first row holds the headings. Of Markdown and LaTeX only the lines of tables are read.

    Raises
    ------
    FileError
        Missing, empty, no UTF-8, two columns of one name, or a line with more or fewer cells.
    """
    path = str(path)
    cells_of = _CELLS.get(os.path.splitext(path)[1])
    try:
        with fetched(path) as copy, copy.open(encoding="utf-8-sig", newline="") as stream:
            if cells_of is not None:
                read = [(number, cells_of(line)) for number, line in enumerate(stream, 1)]
            else:
                # strict: a quotation mark that nothing closes would take rows into a cell
                delimiter = "\t" if path.endswith(".tsv") else ","
                reader = csv.reader(stream, delimiter=delimiter, strict=True)
                read = [(reader.line_num, line) for line in reader]
    except FileError:
        raise
    except OSError as problem:
        raise FileError(
            path, found=problem.strerror or "unreadable", hint="name a file with a table of values"
        ) from problem
    except (UnicodeDecodeError, csv.Error) as problem:
        raise FileError(path, found=str(problem), hint="save the table as CSV in UTF-8") from None
    lines = [(number, line) for number, line in read if any(map(str.strip, line))]
    if len(lines) < 2:
        raise FileError(
            path, found="no row under a header", hint="write a header line, then one row per system"
        )
    head = tuple(cell.strip() for cell in lines[0][1])
    twice = next((one for one in head if [*map(_plain, head)].count(_plain(one)) > 1), None)
    if twice is not None:
        raise FileError(
            path, lines[0][0], found=f"two columns {twice!r}", hint="give each its own name"
        )
    for number, line in lines[1:]:
        if len(line) != len(head):
            raise FileError(
                path, number, found=f"{len(line)} cells", hint=f"the header names {len(head)}"
            )
    system = next((one for one in head if _plain(one) in SYSTEM), head[0])
    rows = tuple((n, dict(zip(head, map(str.strip, line), strict=True))) for n, line in lines[1:])
    return ValueTable(path, head, system, rows)


def _markdown_cells(line: str) -> list[str]:
    """The cells of a row of a Markdown table; none of a rule and of other lines."""
    line = line.strip()
    if not line.startswith("|") or not re.sub(r"[|:\s-]", "", line):
        return []
    return re.split(r"(?<!\\)\|", line.strip("|"))


def _latex_cells(line: str) -> list[str]:
    r"""The cells of a row of a LaTeX table, which ends in two backslashes; none of other lines."""
    line = re.sub(r"(?<!\\)%.*|\\(?:top|mid|bottom|h)(?:rule|line)\b", "", line).strip()
    line = re.sub(r"\\\\(?:\[[^\]]*\])?$", r"\\\\", line)
    is_row = line.endswith("\\\\") and "&" in line
    return re.split(r"(?<!\\)&", line.removesuffix("\\\\")) if is_row else []


_CELLS = {".md": _markdown_cells, ".tex": _latex_cells}


def values_of_table(
    table: ValueTable, measures: Sequence[str], by: Sequence[str] = ()
) -> list[SystemValues]:
    """Values of all systems by measures, whole or by parts.

    Parameters
    ----------
    table : ValueTable
    measures : sequence of str
        Headings, or keys of measures that headings such as ``micro_mrr`` mean.
    by : sequence of str
        Headings of the columns that tell parts apart. Where the table has none of them, its rows
        are of all questions.

    Raises
    ------
    UsageError
        A column that the table lacks.
    FileError
        A system twice in a part, or a value that is not a number.
    """
    columns = [table.column(name) for name in by]
    parted = [one for one in columns if one is not None]
    if parted and len(parted) < len(columns):
        missing = next(name for name, one in zip(by, columns, strict=True) if one is None)
        raise UsageError(f"{table.path} has no column {missing!r} beside {', '.join(parted)}")
    chosen = []
    for key in measures:
        column = table.measure(key)
        parts: dict[tuple[str, ...], dict[str, float]] = {}
        for line, row in table.rows:
            part = tuple(row[name] for name in parted) if parted else WHOLE
            cells = parts.setdefault(part, {})
            _add(table, line, row, column, cells, parted)
        chosen.append(SystemValues.of(key, parts, tuple(by) if parted else (), _higher(column)))
    return chosen


def _add(
    table: ValueTable, line: int, row: Mapping[str, str], column: str, cells: dict[str, float],
    parted: Sequence[str],
) -> None:  # fmt: skip
    """One cell, which must be the first of its system in the part."""
    system = row[table.system]
    if system in cells:
        others = ", ".join(one for one in table.columns if one != table.system)[:60]
        raise FileError(
            table.path, line, found=f"another row of {system!r}"
            + (f" in the same part by {', '.join(parted)}" if parted else ""),
            hint=f"name the columns that tell rows apart, with --by; this file has {others}",
        )  # fmt: skip
    cells[system] = _number(table, line, row, column)


def _number(table: ValueTable, line: int, row: Mapping[str, str], column: str) -> float:
    """A cell as a number; NaN where it is blank."""
    text = row[column]
    if text in ("", "-", "nan", "NaN"):
        return math.nan
    try:
        value = float(text)
    except ValueError:
        value = math.inf
    if math.isinf(value):
        raise FileError(
            table.path, line, found=f"{text!r} under {column!r}", hint="a number, or nothing"
        )
    return value


def values_at_ratios(
    table: ValueTable, measures: Sequence[str], counts: Mapping[str, float]
) -> list[SystemValues]:
    """Values of all systems at the relation ratios of other triples (Zhou et al. 2022, Table 4)."""
    column = next((one for one in table.columns if _plain(one) in RELATION), None)
    if column is None:
        raise UsageError(
            f"{table.path} has no column 'relation'; --ratios weighs values by relation, so give "
            "tables with a row a system and relation"
        )
    weighted = []
    for one in values_of_table(table, measures, [column]):
        parsed = _parsed(one.measure)
        if parsed is not None and not is_micro_mean(parsed):
            raise UsageError(
                f"{one.measure} is not a mean over instances, so it has no relation ratios"
            )
        weights = [counts.get(part[0], 0.0) for part in one.parts]
        try:
            means = {
                system: reweighted_mean([values[place] for values in one.parts.values()], weights)
                for place, system in enumerate(one.systems)
            }
        except InputError as problem:
            raise InputError(f"{table.path}: {problem}") from None
        weighted.append(
            SystemValues.of(one.measure, {("given",): means}, ("ratios",), one.higher_is_better)
        )
    return weighted


def _higher(column: str) -> bool:
    """Whether higher is better; of a column that is no measure here, so it is taken to be."""
    parsed = _parsed(column)
    return parsed is None or parsed.is_trec or bool(parsed.row[0].higher_is_better)
