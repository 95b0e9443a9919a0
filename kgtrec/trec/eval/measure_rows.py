"""Rows of values as Python receives them: by query and by name of the measure, or as frames."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from kgtrec import _core
from kgtrec.trec.measures.names import Column, resolve
from kgtrec.trec.measures.values import summary as summary_of

if TYPE_CHECKING:
    import pandas

_T = TypeVar("_T")


def _table_name(name: str) -> str | None:
    """Return the name in the table of one measure; None for unknown names and several measures."""
    try:
        (column,) = resolve([name], qrels_format=None)
    except ValueError:
        return None
    return column.name


class MeasureRow(dict[str, Any]):
    """Values by the measure's name as it was asked; looked up by its other spellings too.

    ``row["AP@20"]``, ``row["map_cut.20"]`` and ``row["map_cut_20"]`` are the same value; ``in`` and
    ``get`` know these spellings as well.
    """

    __slots__ = ()

    def __missing__(self, name: object) -> Any:
        text = str(name)
        if text in self.keys():
            return dict.__getitem__(self, text)
        table_name = _table_name(text)
        if table_name is not None:
            for key in self.keys():
                if key == table_name or _table_name(key) == table_name:
                    return dict.__getitem__(self, key)
        raise KeyError(name)

    def get(self, name: object, default: Any = None) -> Any:
        """Return the value of a measure in any of its spellings, or `default`."""
        try:
            return self[name]  # type: ignore[index]
        except KeyError:
            return default

    def __contains__(self, name: object) -> bool:
        try:
            self[name]  # type: ignore[index]
        except KeyError:
            return False
        return True


Rows = dict[str, MeasureRow]


class TieValues(NamedTuple):
    """Values of a run with ties ordered by name, and over all orders of tied documents.

    - value, expected, minimum, maximum: Query to measure to value, as `Evaluator.evaluate` gives.
    - queries: Number of queries in which the order changes a measure.
    """

    value: Rows
    expected: Rows
    minimum: Rows
    maximum: Rows
    queries: int

    def __repr__(self) -> str:
        """Name the measures and count the queries; the rows of all queries are thousands."""
        measures = ", ".join(next(iter(self.value.values()), {}))
        return f"<TieValues of {len(self.value):,} queries, {self.queries:,} affected: {measures}>"


class ArrayValues(NamedTuple):
    """Values per query as arrays, and the summary over queries, both by name of the measure."""

    queries: Sequence[str]
    arrays: Mapping[str, NDArray[Any]]
    summary: Mapping[str, Any]

    def rows(self) -> Rows:
        """Return one row per query."""
        return rows_of(self.queries, self.arrays)


class NativeValues(NamedTuple):
    """Values from the native core, measure by measure.

    - columns: The measures that the core computes.
    - names: Their keys.
    - cells: float64 (n_columns, n_queries) as bytes.
    - has_runid: Whether the summary has a runid: that of runs in memory is empty.
    """

    queries: list[str]
    columns: Sequence[Column]
    names: list[str]
    cells: bytes
    has_runid: bool

    def rows(self) -> Rows:
        """Return one row per query."""
        return _core.measure_rows(MeasureRow, self.queries, self.names, self.cells)

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """Values by key of the measure; float64 (n_queries,)."""
        columns = np.frombuffer(self.cells).reshape(len(self.names), len(self.queries))
        return dict(zip(self.names, columns.copy(), strict=True))

    @property
    def summary(self) -> dict[str, Any]:
        """Values over all queries."""
        runid = {"runid": ""} if self.has_runid else {}
        by_name = dict(zip((c.name for c in self.columns), self.arrays.values(), strict=True))
        return runid | by_key(summary_of(by_name, self.columns), self.columns)


def by_key(values: Mapping[str, _T], columns: Iterable[Column]) -> dict[str, _T]:
    """Name values by the keys of their columns, in this order; others, by their names, follow."""
    keyed = {c.key: values[c.name] for c in columns if c.name in values}
    names = {column.name for column in columns}
    return keyed | {name: value for name, value in values.items() if name not in names}


def rows_of(queries: Sequence[str], values: Mapping[str, NDArray[Any]]) -> Rows:
    """Make one `MeasureRow` per query from arrays by measure."""
    rows = zip(*(column.tolist() for column in values.values()), strict=True)
    return {
        q: MeasureRow(zip(values, row, strict=True)) for q, row in zip(queries, rows, strict=True)
    }


def format_values(
    values: ArrayValues | NativeValues, summary: bool, as_: str
) -> Rows | MeasureRow | pandas.DataFrame:
    """Return values per query, or the summary, as a dict or a frame."""
    if as_ == "dict":
        return MeasureRow(values.summary) if summary else values.rows()
    import pandas as pd

    if summary:
        return pd.DataFrame(dict(values.summary), index=["all"])
    try:
        index = pd.Index(values.queries, name="query_id")
    except UnicodeEncodeError:  # names that are not UTF-8
        index = pd.Index(values.queries, name="query_id", dtype=object)
    return pd.DataFrame(dict(values.arrays), index=index)
