"""Values of scored runs as text: trec_eval's lines, and tables and JSON with one column per run.

A table has one row per measure, or per query and measure. It keeps queries that only some runs
answer, and leaves the cells of the other runs empty.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from kgtrec.trec.measures.names import in_table_order

if TYPE_CHECKING:  # trec_eval's lines need no tables
    from kgtrec._internal.table import Cell, Table
    from kgtrec.trec.eval.request import Request
    from kgtrec.trec.eval.score import Scored
    from kgtrec.trec.measures.names import Column


RUN_FILE = "run_file"
"""Measure name in the heading line of each block, if several runs are printed."""

_ALL = "all"
_FLOAT = "%6.4f"
_NO_INTERVAL: list[Cell] = ["", ""]


def trec_text(runs: Sequence[Scored], request: Request) -> bytes:
    """Write what trec_eval prints, to the byte; a line names each of several runs."""
    text = ""
    for run in runs:
        if len(runs) > 1:  # three columns, for programs that split columns
            text += f"{RUN_FILE:<22s}\t{_ALL}\t{run.file}\n"
        if request.per_query:
            columns = _in_printed_order(request.of_a_query)
            values = [run.values[column.name].tolist() for column in columns]
            text += _fill_template(run.queries, columns, values, run.is_zscored)
        if request.summary:
            columns = _in_printed_order(request.of_all)
            text += "".join(_summary_lines(run, column) for column in columns)
    return text.encode("utf-8", "surrogateescape")


def _in_printed_order(columns: Sequence[Column]) -> Sequence[Column]:
    """Return columns in trec_eval's order if all are spelt as there, else as they are."""
    return columns if any(column.asked for column in columns) else in_table_order(columns)


def _summary_lines(scored: Scored, column: Column) -> str:
    """Write the line of a measure, and the lines of its interval's ends."""
    text = _fill_template([_ALL], [column], [[scored.summary[column.name]]], scored.is_zscored)
    ends = scored.intervals.get(column.name)
    if ends is None or scored.resampling is None:
        return text
    stem = f"{_name(column, scored.is_zscored).rstrip()}_{scored.resampling.name}"
    for end, value in zip(("low", "high"), ends, strict=True):
        text += f"{stem}_{end}".ljust(22) + f"\t{_ALL}\t{_as_c_prints(value)}\n"
    return text


def _fill_template(
    queries: Sequence[str], columns: Sequence[Column], values: list[list[Any]], is_zscored: bool
) -> str:
    """Write the lines of some queries from one template per query."""
    forms = [_form(column, is_zscored) for column in columns]
    for position, form in enumerate(forms):
        # C shows the sign of a NaN, Python does not.
        if form == _FLOAT and any(value != value for value in values[position]):
            forms[position] = "%s"
            values[position] = [_as_c_prints(value) for value in values[position]]
    names = [_name(column, is_zscored).replace("%", "%%") for column in columns]
    template = "".join(f"{name}\t%s\t{form}\n" for name, form in zip(names, forms, strict=True))
    columns_and_queries = chain.from_iterable((queries, column) for column in values)
    return "".join(map(template.__mod__, zip(*columns_and_queries, strict=True)))


def _form(column: Column, is_zscored: bool) -> str:
    """Return the printf form of a measure's values."""
    if column.is_text:
        return "'%s'" if column.is_query_only else "%s"
    return "%d" if column.is_count and not is_zscored else _FLOAT


def _name(column: Column, is_zscored: bool) -> str:
    """Return the padded name of a measure; z-scores begin with Z."""
    return f"Z{column.key:<22s}" if is_zscored and not column.is_text else f"{column.key:<22s}"


def _as_c_prints(value: float) -> str:
    """Format a number as C does, with the sign of a NaN."""
    if value == value:
        return _FLOAT % value
    return "  -nan" if math.copysign(1.0, value) < 0 else "   nan"


def _headings(files: Sequence[str]) -> list[str]:
    """Return file names without folders, or full paths if the names would be equal."""
    short = [os.path.basename(file) or file for file in files]
    return short if len(set(short)) == len(short) else list(files)


def as_table(runs: Sequence[Scored], request: Request) -> Table:
    """Make a table: a row per measure, or per query and measure, and a column per run.

    Strings of relevances are quoted, as in trec_eval, so that no reader takes 0110 for a number.
    """
    from kgtrec._internal.table import Table

    lead = ("query", "measure") if request.per_query else ("measure",)
    files = [run.file for run in runs]
    rows: list[tuple[Cell, ...]] = []
    if request.per_query:
        rows.extend(_query_rows(runs, request.of_a_query))
    if request.summary:
        start: tuple[Cell, ...] = (_ALL,) if request.per_query else ()
        rows.extend((*start, name, *cells) for name, cells in _summary_rows(runs, request.of_all))
    titles, keys = _headings(files), files
    if runs and runs[0].resampling is not None:
        how = runs[0].resampling
        ends = [f"{how.percent:g}% low", f"{how.percent:g}% high"]
        titles = [text for title in titles for text in (title, *ends)]
        keys = [
            f"{file}{e}" for file in files for e in ("", f" {how.name}_low", f" {how.name}_high")
        ]
    digits = [0] * len(lead) + [4] * len(keys)
    return Table((*lead, *titles), (*lead, *keys), digits, rows, len(lead))


def as_table_of_runs(runs: Sequence[Scored], request: Request) -> Table:
    """Make a table of the summary with a row per run, as papers print it, and a column per measure.

    With confidence intervals, their ends are the two columns after each measure.
    """
    from kgtrec._internal.table import Table

    how = runs[0].resampling
    ends = [] if how is None else [f"{how.percent:g}% low", f"{how.percent:g}% high"]
    measures = [*_summary_rows(runs, request.of_all)]
    titles = [title for name, _ in measures for title in (name, *ends)]
    n_columns = 1 + len(ends)
    rows = [
        (
            title,
            *(
                cell
                for _, cells in measures
                for cell in cells[run * n_columns : (run + 1) * n_columns]
            ),
        )
        for run, title in enumerate(_headings([run.file for run in runs]))
    ]
    return Table(["run", *titles], ["run", *titles], [0] + [4] * len(titles), rows)


def as_data(runs: Sequence[Scored], request: Request) -> dict[str, Any]:
    """Return runs by file: ``summary`` and ``queries`` map measures to values in full precision.

    With micro metrics also ``kg_ranks``: "as listed", not filtered beyond the qrels' own answers,
    or "filtered by the graph".
    With confidence intervals also ``intervals``, measures to [low, high], and the resampling.
    """
    parts = {}
    for run in runs:
        part: dict[str, Any] = {}
        if request.summary:
            rows = [*_summary_rows([run], request.of_all)]
            part["summary"] = {name: cells[0] for name, cells in rows}
            if any(name.startswith("kg_") for name in part["summary"]):
                part["kg_ranks"] = "as listed" if run.filtered is None else "filtered by the graph"
            if run.resampling is not None:
                part["intervals"] = {name: c[1:] for name, c in rows if c[1:] != _NO_INTERVAL}
                part["bootstrap"] = asdict(run.resampling)
        if request.per_query:
            names = [_name(column, run.is_zscored).rstrip() for column in request.of_a_query]
            cells = zip(*_cells(run, request.of_a_query), strict=True)
            part["queries"] = {
                query: dict(zip(names, row, strict=True))
                for query, row in zip(run.queries, cells, strict=False)
            }
        parts[run.file] = part
    return parts


def _summary_rows(
    runs: Sequence[Scored], columns: Sequence[Column]
) -> Iterator[tuple[str, list[Cell]]]:
    """Yield each measure's name and the cells of all runs."""
    for column in columns:
        cells: list[Cell] = []
        for run in runs:
            cells.append(_cell(run.summary[column.name], column, run.is_zscored))
            if run.resampling is not None:
                cells.extend(run.intervals.get(column.name, _NO_INTERVAL))
        yield _name(column, runs[0].is_zscored).rstrip(), cells


def _query_rows(runs: Sequence[Scored], columns: Sequence[Column]) -> Iterator[tuple[Cell, ...]]:
    """Yield a row per query and measure, with the cells of all runs."""
    names = [_name(column, runs[0].is_zscored).rstrip() for column in columns]
    rows = [
        dict(zip(run.queries, zip(*_cells(run, columns, "'{}'"), strict=True), strict=False))
        for run in runs
    ]
    absent = ("",) * len(columns)
    blank = () if runs[0].resampling is None else _NO_INTERVAL
    every = {query for run in runs for query in run.queries}
    for query in sorted(every, key=lambda text: text.encode("utf-8", "surrogateescape")):
        for name, *cells in zip(names, *(row.get(query, absent) for row in rows), strict=True):
            yield (query, name, *chain.from_iterable((cell, *blank) for cell in cells))


def _cells(run: Scored, columns: Sequence[Column], text: str = "{}") -> list[list[Cell]]:
    """Return the values of every query, column by column, as cells of a table."""
    cells: list[list[Cell]] = []
    for column in columns:
        values = run.values[column.name]
        if column.is_text:
            cells.append([text.format(value) for value in values.tolist()])
            continue
        whole = column.is_count and not run.is_zscored
        cells.append((values.astype(np.int64) if whole else values).tolist())
    return cells


def _cell(value: float | str, column: Column, is_zscored: bool) -> Cell:
    """Return a value of the summary as a cell: a text, int or float."""
    if isinstance(value, str):
        return value
    return int(value) if column.is_count and not is_zscored else float(value)
