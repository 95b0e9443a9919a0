"""Values of systems on parts of the questions: computed from ranks, or read from papers' tables.

They show whether the order of systems is the same on every kind of relation and on both sides (Zhou
et al. 2022, Table 3), and on a test set with the relation ratios of another (their Table 4). Papers
seldom publish runs and ranks, but often tables of results. Such a table is a file with a row per
system or part.
"""

from __future__ import annotations

import csv
import math
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, cast

import numpy as np

from kgtrec._internal.argument_names import argument
from kgtrec._internal.arguments import require_type
from kgtrec._internal.arrays import Float64
from kgtrec._internal.bootstrap import Resampling, resample_means
from kgtrec._internal.locations import local_copy
from kgtrec._internal.table import Cell, ShownAsTables, ShownInLines, Table, text_of_cell
from kgtrec.errors import FileError, InputError, UsageError
from kgtrec.measures import AVERAGINGS, Measure, parse_all
from kgtrec.ranking.ranks import Ranks
from kgtrec.results.result import Result
from kgtrec.results.slices import rows_by_part
from kgtrec.study.comparison.correlation import tau_b
from kgtrec.study.comparison.samples import align_ranks, samples_of_aligned, transform_of
from kgtrec.study.stratified import is_micro_mean, reweight, reweight_mean

if TYPE_CHECKING:
    from kgtrec.questions.api import Graph


WHOLE = ("all",)
"""The part with all questions."""


@dataclass(frozen=True, eq=False)
class SystemValues(ShownAsTables):
    """Values of systems by a measure, on each part of the questions.

    - measure: Key of the measure, or its heading in the published table.
    - parts, float64 (n_systems,): Values by the names of the part; NaN if a system has no value.
    - dimensions: Headings of the names of a part; empty if the only part is all questions.
    - higher_is_better: None if neither end is better.
    - whole, float64 (n_systems,): Values on all instances, if known.
    - counts: Sizes of each part under their headings, if known.
    - intervals, float64 (2, n_systems): Ends of the intervals by the names of the part, if
      resampled as `resampling` says.
    """

    measure: str
    systems: tuple[str, ...]
    parts: Mapping[tuple[str, ...], Float64]
    dimensions: tuple[str, ...] = ()
    higher_is_better: bool | None = True
    digits: int = 4
    whole: Float64 | None = None
    counts: Mapping[str, Sequence[Cell]] = field(default_factory=dict)
    intervals: Mapping[tuple[str, ...], Float64] = field(default_factory=dict)
    resampling: Resampling | None = None

    def _lines(self) -> tuple[str, str]:
        by = f" by {', '.join(self.dimensions)}" if self.dimensions else ""
        return (
            f"{self.measure}: {len(self.systems):,} systems on {len(self.parts):,} parts{by}",
            ", ".join(self.systems),
        )

    @classmethod
    def from_values(
        cls,
        measure: str,
        parts: Mapping[tuple[str, ...], Mapping[str, float]],
        dimensions: tuple[str, ...],
        higher_is_better: bool | None,
    ) -> SystemValues:
        """Build from values by part and system; a system that a part lacks has no value there."""
        systems = tuple(dict.fromkeys(name for values in parts.values() for name in values))
        rows = {
            part: np.array([values.get(name, math.nan) for name in systems])
            for part, values in parts.items()
        }
        return cls(measure, systems, rows, dimensions, higher_is_better)

    def on(self, systems: Sequence[str]) -> SystemValues:
        """Return the values of some of the systems, in this order."""
        indices = [self.systems.index(name) for name in systems]
        rows = {part: values[indices] for part, values in self.parts.items()}
        whole = None if self.whole is None else self.whole[indices]
        return replace(self, systems=tuple(systems), parts=rows, whole=whole)

    def by_name(self) -> dict[str, dict[str, float]]:
        """Return the values by part and system; names of a part are joined by commas."""
        return {
            ", ".join(part): dict(zip(self.systems, values.tolist(), strict=True))
            for part, values in self.parts.items()
        }

    def table(self) -> Table:
        """Return a table with a row per part: its size, the values, and its order of systems.

        The best value of a row is bold, as are those that print alike.
        The order is shown by the best systems (if the measure has a better end), and by tau-b to
        the order on all instances (NaN for fewer than three systems).
        """
        sizes = zip(*self.counts.values(), strict=True) if self.counts else [()] * len(self.parts)
        rows: list[tuple[Cell, ...]] = [
            (*part, *size, *values.tolist(), ", ".join(self._best(values)), self._tau(values))
            for (part, values), size in zip(self.parts.items(), sizes, strict=True)
        ]
        heads = self.dimensions or ("questions",)
        named = [(name, name, 0) for name in (*heads, *self.counts)]
        systems = [(name, name, self.digits) for name in self.systems]
        table = Table.from_rows([*named, *systems, "best", "tau-b=tau_b:4"], rows, len(heads))
        return replace(table, bold=self._bold(table.cell_texts(), len(named)))

    def _bold(self, texts: Sequence[Sequence[str]], first: int) -> frozenset[tuple[int, int]]:
        """Return row and column of the values that print like the best one of their part.

        - texts: Printed cells; the systems' values begin at column `first`.
        """
        bold = set()
        for row, values in enumerate(self.parts.values()):
            best = [texts[row][first + self.systems.index(name)] for name in self._best(values)]
            cells = texts[row][first : first + len(self.systems)]
            bold |= {(row, first + i) for i, cell in enumerate(cells) if cell in best}
        return frozenset(bold)

    def _best(self, values: Float64) -> list[str]:
        """Return the names of the best systems; empty if no end is better or no value is known."""
        known = values[~np.isnan(values)]
        if self.higher_is_better is None or not len(known):
            return []
        best = known.max() if self.higher_is_better else known.min()
        return [n for n, value in zip(self.systems, values.tolist(), strict=True) if value == best]

    def _tau(self, values: Float64) -> float:
        """Return tau-b of these values and those on all instances; NaN if it is not defined."""
        if self.whole is None or len(values) < 3 or np.isnan(values).any():
            return math.nan
        return float(tau_b(values, self.whole))


MOST_COLUMNS = 1_000
"""Most columns of a table of values."""


def values_by_part(
    systems: Mapping[str, Ranks] | Mapping[str, Result],
    by: str,
    measures: Sequence[str | Measure],
    *,
    graph: Graph | None = None,
    resampling: Resampling | None = None,
) -> list[SystemValues]:
    """Compute the values of all systems on every part of the instances, per measure.

    Results must have their instances in the same order. With `resampling`, micro measures that are
    functions of means have intervals.
    """
    results = {name: result for name, result in systems.items() if isinstance(result, Result)}
    if not results:
        ranks = cast("Mapping[str, Ranks]", systems)
        aligned = align_ranks(ranks) if len(ranks) > 1 else ranks
        results = {name: Result(of_system) for name, of_system in aligned.items()}
    specs, by_measure = parse_all(measures), []
    intervals = _resample_parts(results, by, specs, graph, resampling) if resampling else {}
    for measure in specs:
        sliced = [result.slice(by, [measure], graph=graph) for result in results.values()]
        names, keys = sliced[0].names, sliced[0].keys
        of_parts = [{row[:names]: float(row[-1]) for row in table.rows} for table in sliced]
        parts = {
            tuple(map(str, part)): np.array([of_system[part] for of_system in of_parts])
            for part in of_parts[0]
        }
        counts = {keys[k]: [row[k] for row in sliced[0].rows] for k in range(names, len(keys) - 1)}
        values = _build_values(measure, results, parts, keys[:names], counts)
        by_measure.append(
            replace(values, intervals=intervals.get(measure, {}), resampling=resampling)
        )
    return by_measure


def _resample_parts(
    results: Mapping[str, Result],
    by: str,
    measures: Sequence[Measure],
    graph: Graph | None,
    resampling: Resampling,
) -> dict[Measure, dict[tuple[str, ...], Float64]]:
    """Compute the intervals of every part, by measure and part.

    All measures use the same draws of the questions of a part.
    """
    first = next(iter(results.values()))
    specs = [
        measure for measure in measures if measure.side == first.sides[-1] and _is_mean(measure)
    ]
    if not specs:
        return {}
    samples = samples_of_aligned({name: result.ranks for name, result in results.items()}, specs)
    values = np.column_stack([of_measure.values for of_measure in samples])
    ends: dict[Measure, dict[tuple[str, ...], Float64]] = {measure: {} for measure in specs}

    def transform(means: Float64) -> Float64:
        split = np.split(means, len(samples), axis=-1)
        columns = [
            of_measure.transform(columns)
            for of_measure, columns in zip(samples, split, strict=True)
        ]
        return np.concatenate(columns, axis=-1)

    for names, rows in rows_by_part(first.ranks, by, graph=graph).items():
        cluster = np.unique(samples[0].cluster[rows], return_inverse=True)[1].astype(np.int64)
        if cluster.max() == 0:  # a single question has no spread
            continue
        intervals = resample_means(values[rows], cluster, transform, resampling).interval()
        by_measure = np.split(intervals, len(specs), axis=1)
        for measure, interval in zip(specs, by_measure, strict=True):
            ends[measure][names] = interval
    return ends


def _is_mean(measure: Measure) -> bool:
    """Return True if a measure is a function of a mean over instances."""
    with suppress(UsageError):
        return bool(transform_of(measure)) and measure.averaging == "micro"
    return False


def values_by_ratios(
    ranks: Mapping[str, Ranks], counts: Mapping[str, float], measures: Sequence[str | Measure]
) -> list[SystemValues]:
    """Compute micro values at the relation ratios of the test set, and of other triples.

    The parts are named "own" and "given".
    """
    results = {name: Result(of_system) for name, of_system in align_ranks(ranks).items()}
    by_measure = []
    for measure in parse_all(measures):
        pairs = [
            (result[measure], reweight(result, measure, counts)) for result in results.values()
        ]
        values, at_other_ratios = np.array(pairs).T
        parts: dict[tuple[str, ...], Float64] = {("own",): values, ("given",): at_other_ratios}
        by_measure.append(_build_values(measure, results, parts, ["ratios"], {}))
    return by_measure


def _build_values(
    measure: Measure,
    results: Mapping[str, Result],
    parts: Mapping[tuple[str, ...], Float64],
    dimensions: Sequence[str],
    counts: Mapping[str, Sequence[Cell]],
) -> SystemValues:
    """Return the values of a measure on parts, with those on all instances."""
    whole = np.array([float(result[measure]) for result in results.values()])
    return SystemValues(
        measure.key,
        tuple(results),
        parts,
        tuple(dimensions),
        measure.higher_is_better,
        measure.digits,
        whole,
        counts,
    )


# -- Published values --------------------------------------------------------------------------

SYSTEM = ("system", "model", "name")
RELATION = ("relation", "relations")
FEW = 12
"""Number of columns that an error names."""


@dataclass(frozen=True, eq=False)
class ValueTable(ShownInLines):
    """The cells of a file of values.

    - columns: Headings, including that of the systems.
    - system: Heading of the systems: system, model or name; otherwise the first heading.
    - rows: Line number and cells by heading of each row.
    """

    path: str
    columns: tuple[str, ...]
    system: str
    rows: tuple[tuple[int, Mapping[str, str]], ...]

    def _lines(self) -> tuple[str, str]:
        return f"{len(self.rows):,} rows of {self.path}", ", ".join(self.columns)

    def column(self, name: str) -> str | None:
        """Return the heading with this name, ignoring case, - and _; None if there is none."""
        sought = _normalize_heading(name)
        return next((head for head in self.columns if _normalize_heading(head) == sought), None)

    def measure(self, key: str) -> str:
        """Return the heading with this name, or one that means the same measure.

        UsageError if there is none.
        """
        exact = self.column(key)
        if exact is not None:
            return exact
        parsed = measure_of_heading(key)
        for heading in self.columns if parsed is not None else ():
            if measure_of_heading(heading) == parsed:
                return heading
        others = [heading for heading in self.columns if heading != self.system]
        more = f" and {len(others) - FEW} more" if len(others) > FEW else ""
        raise UsageError(
            f"{self.path} has no column {key!r}; it has {', '.join(others[:FEW])}{more}"
        )


def _normalize_heading(name: str) -> str:
    """Return a heading in lower case, without - and _."""
    return name.strip().lower().replace("-", "").replace("_", "")


def measure_of_heading(heading: str) -> Measure | None:
    """Return the measure that a heading such as micro_mrr or "MRR (%)" means, or None.

    Headings of a group of columns come before a colon, as in "tail, micro: MRR".
    """
    group, colon, last = heading.rpartition(":")
    if colon:
        words = [word.strip().lower().removesuffix(" sides") for word in group.split(",")]
        words = [word.replace(" ", "_") for word in words]
        words.sort(key=lambda word: word in AVERAGINGS)  # keys have it after the rank type
        heading = ".".join([*words, re.sub(r"\s*(\(%\)|[↑↓])$", "", last.strip())])
    key = re.sub(r"^(micro|macro)[_ ]", r"\1.", heading.strip(), flags=re.IGNORECASE)
    key = re.sub(r"\s*\(%\)$|\s*[↑↓]$", "", key).replace(" ", ".")
    with suppress(UsageError):
        return Measure.parse(key)
    return None


def read_value_table(path: str | os.PathLike[str]) -> ValueTable:
    """Read a table of values: CSV, or by its ending TSV, Markdown (.md) or LaTeX (.tex).

    The first row contains the headings. In Markdown and LaTeX, only the lines of tables are read.

    Raises
    ------
    FileError
        The file is missing, empty or not UTF-8, two columns have the same name, or a line has more
        or fewer cells than the header.
    """
    path = str(path)
    cells_of = _CELLS.get(os.path.splitext(path)[1])
    try:
        with local_copy(path) as copy, copy.open(encoding="utf-8-sig", newline="") as stream:
            if cells_of is not None:
                read = [(number, cells_of(line)) for number, line in enumerate(stream, 1)]
                if path.endswith(".tex"):
                    read = _with_group_headings(read)
            else:
                # strict: an unclosed quotation mark would take rows into a cell
                delimiter = "\t" if path.endswith(".tsv") else ","
                reader = csv.reader(stream, delimiter=delimiter, strict=True)
                # as `Table.to_csv` writes texts that a spreadsheet could read as formulas
                read = [(reader.line_num, [*map(text_of_cell, line)]) for line in reader]
    except FileError:
        raise
    except OSError as problem:
        raise FileError(
            path, found=problem.strerror or "unreadable", hint="give a file with a table of values"
        ) from problem
    except (UnicodeDecodeError, csv.Error) as problem:
        raise FileError(path, found=str(problem), hint="save the table as CSV in UTF-8") from None
    lines = [(number, line) for number, line in read if any(map(str.strip, line))]
    if len(lines) < 2:
        hint = "write a header line, then one row per system"
        raise FileError(path, found="the table has no row below its header", hint=hint)
    head = tuple(cell.strip() for cell in lines[0][1])
    _check_cells(path, head, lines)
    system = next((name for name in head if _normalize_heading(name) in SYSTEM), head[0])
    rows = tuple((n, dict(zip(head, map(str.strip, line), strict=True))) for n, line in lines[1:])
    return ValueTable(path, head, system, rows)


def _check_cells(path: str, head: Sequence[str], lines: Sequence[tuple[int, list[str]]]) -> None:
    """Raise FileError for too many or repeated columns, or a line with a wrong number of cells."""
    if len(head) > MOST_COLUMNS:
        wide = f"the header has {len(head):,} columns; a table of values has {MOST_COLUMNS:,}"
        hint = "write a column per measure, with one character between two columns"
        raise FileError(path, lines[0][0], found=f"{wide} at most", hint=hint)
    names = [*map(_normalize_heading, head)]
    twice = next((head[k] for k, name in enumerate(names) if names.count(name) > 1), None)
    if twice is not None:
        hint = "give each column its own name"
        raise FileError(path, lines[0][0], found=f"two columns are called {twice!r}", hint=hint)
    for number, line in lines[1:]:
        if len(line) != len(head):
            hint = f"the header has {len(head)}; use the same number"
            raise FileError(path, number, found=f"this line has {len(line)} cells", hint=hint)


def _markdown_cells(line: str) -> list[str]:
    """Return the cells of a row of a Markdown table; none for a rule or another line."""
    line = line.strip()
    if not line.startswith("|") or not re.sub(r"[|:\s-]", "", line):
        return []
    return re.split(r"(?<!\\)\|", line.strip("|"))


def _latex_cells(line: str) -> list[str]:
    r"""Return the cells of a LaTeX row, which ends in two backslashes; none for other lines."""
    line = re.sub(r"(?<!\\)%.*|\\(?:top|mid|bottom|h)(?:rule|line)\b", "", line).strip()
    line = re.sub(r"\\\\(?:\[[^\]]*\])?$", r"\\\\", line)
    is_row = line.endswith("\\\\") and "&" in line
    return re.split(r"(?<!\\)&", line.removesuffix("\\\\")) if is_row else []


_SPANNING = re.compile(r"\s*\\multicolumn\{(\d{1,3})\}\{[^{}]*\}\{(.*)\}\s*")
_ARROW = re.compile(r"\s*\$\\(up|down)arrow\$\s*$")


def _with_group_headings(lines: list[tuple[int, list[str]]]) -> list[tuple[int, list[str]]]:
    """Join rows of headings that span columns with the row of headings below them.

    "head" above "MRR" becomes "head: MRR". Arrows of headings are removed.
    """
    rows = [(number, cells) for number, cells in lines if any(map(str.strip, cells))]
    above: list[list[str]] = []
    while rows and any(map(_SPANNING.fullmatch, rows[0][1])):
        spans: list[str] = []
        for cell in rows[0][1]:
            match = _SPANNING.fullmatch(cell)
            spans += [match[2]] * int(match[1]) if match else [cell]
        above.append([text.strip() for text in spans])
        rows = rows[1:]
    if rows:
        number, head = rows[0]
        head = [_ARROW.sub("", cell.strip()) for cell in head]
        if all(len(spans) == len(head) for spans in above):
            parts = zip(*above, head, strict=True)
            head = [
                ": ".join([", ".join(filter(None, over)), last] if any(over) else [last])
                for *over, last in parts
            ]
        rows = [(number, head), *rows[1:]]
    return rows


_CELLS = {".md": _markdown_cells, ".tex": _latex_cells}


def values_of_table(
    table: ValueTable, measures: Sequence[str], by: Sequence[str] = ()
) -> list[SystemValues]:
    """Return the values of all systems by measures, on all questions or by part.

    Parameters
    ----------
    table : ValueTable
    measures : sequence of str
        Headings, or keys of measures that headings such as ``micro_mrr`` mean.
    by : sequence of str
        Headings of the columns that name the parts. If the table has none of them, its rows are
        about all questions.

    Raises
    ------
    UsageError
        The table lacks a column.
    FileError
        A system occurs twice in a part, or a value is not a number.
    """
    require_type("table", table, ValueTable, "a ValueTable (study.read_value_table)")
    columns = [table.column(name) for name in by]
    part_columns = [column for column in columns if column is not None]
    if part_columns and len(part_columns) < len(columns):
        missing = next(name for name, column in zip(by, columns, strict=True) if column is None)
        raise UsageError(
            f"{table.path} has no column {missing!r} besides {', '.join(part_columns)}"
        )
    by_measure = []
    for key in measures:
        column = table.measure(key)
        parts: dict[tuple[str, ...], dict[str, float]] = {}
        for line, row in table.rows:
            part = tuple(row[name] for name in part_columns) if part_columns else WHOLE
            cells, system = parts.setdefault(part, {}), row[table.system]
            if system in cells:
                others = ", ".join(name for name in table.columns if name != table.system)[:60]
                within = f" in the same part by {', '.join(part_columns)}" if part_columns else ""
                again = f"another row of {system!r}{within}"
                hint = (
                    f"name the columns that distinguish these rows with {argument('by')}; "
                    "this file has "
                )
                raise FileError(table.path, line, found=again, hint=hint + others)
            cells[system] = _number(table, line, row, column)
        parsed = measure_of_heading(column)
        # Higher is better, unless a measure of this package says otherwise.
        higher = parsed is None or parsed.is_trec or bool(parsed.row[0].higher_is_better)
        dimensions = tuple(by) if part_columns else ()
        by_measure.append(SystemValues.from_values(key, parts, dimensions, higher))
    return by_measure


def _number(table: ValueTable, line: int, row: Mapping[str, str], column: str) -> float:
    """Return a cell as a number; NaN if it is blank, FileError if it is not a number."""
    text = row[column]
    if text in ("", "-", "nan", "NaN"):
        return math.nan
    try:
        value = float(text)
    except ValueError:
        value = math.inf
    if math.isinf(value):
        hint = "write a number, or leave it blank"
        raise FileError(table.path, line, found=f"{text!r} under {column!r}", hint=hint)
    return value


def values_at_ratios(
    table: ValueTable, measures: Sequence[str], counts: Mapping[str, float]
) -> list[SystemValues]:
    """Compute values of all systems at the relation ratios of other triples.

    See Zhou et al. (2022, Table 4). The table must have values per relation.
    """
    column = next((name for name in table.columns if _normalize_heading(name) in RELATION), None)
    if column is None:
        raise UsageError(
            f"{table.path} has no column 'relation'; {argument('ratios')} needs values per "
            "relation; give "
            "tables with one row per system and relation"
        )
    weighted = []
    for values in values_of_table(table, measures, [column]):
        parsed = measure_of_heading(values.measure)
        if parsed is not None and not is_micro_mean(parsed):
            raise UsageError(
                f"{values.measure} is not a mean over instances, so it has no relation ratios; use "
                "a micro average"
            )
        weights = [counts.get(part[0], 0.0) for part in values.parts]
        try:
            means = {
                system: reweight_mean([row[index] for row in values.parts.values()], weights)
                for index, system in enumerate(values.systems)
            }
        except InputError as problem:
            raise InputError(f"{table.path}: {problem.marked}") from None
        weighted.append(
            SystemValues.from_values(
                values.measure, {("given",): means}, ("ratios",), values.higher_is_better
            )
        )
    return weighted
