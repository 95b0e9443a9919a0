"""What a Parquet file says of its columns, against what they hold.

The checksums of its pages cover neither the numbers of rows nor the smallest and largest values
that stand beside them, by which queries pass rows over.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from kgtrec.errors import InputError

__all__ = ["check_copies", "check_row_counts", "check_value_ranges"]


def check_copies(metadata: Any, schema: Any, key: bytes) -> None:
    """InputError if a file's two copies of a description differ, its own and Arrow's."""
    import pyarrow as pa

    facts = metadata.metadata or {}
    if b"ARROW:schema" not in facts:  # others may have written the columns anew
        return
    copy = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(facts[b"ARROW:schema"])))
    if not copy.equals(schema) or (copy.metadata or {}).get(key) != facts.get(key):
        raise InputError("a damaged description")


def check_row_counts(metadata: Any, n_rows: int) -> None:
    """InputError unless a file's row groups, and their columns, have the rows of its table."""
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    if not sum(group.num_rows for group in groups) == metadata.num_rows == n_rows:
        raise InputError(f"the numbers of rows do not add up to {metadata.num_rows}")
    for group in groups:
        for i in range(group.num_columns):
            if group.column(i).num_values != group.num_rows:
                name = group.column(i).path_in_schema
                raise InputError(f"column {name!r} lacks rows")


def check_value_ranges(metadata: Any, columns: Mapping[str, npt.NDArray[Any]]) -> None:
    """InputError if a column of numbers goes beyond what the file says, or does not reach it."""
    for name, rows, low, high in _declared_ranges(metadata):
        if name not in columns or columns[name].dtype == bool:
            continue
        values = columns[name][rows]
        if len(values) and (np.fmin.reduce(values) != low or np.fmax.reduce(values) != high):
            raise InputError(f"column {name!r} does not go from {low} to {high}, as is declared")


def _declared_ranges(metadata: Any) -> Iterator[tuple[str, slice, Any, Any]]:
    """Column, rows of a group, smallest and largest value there."""
    start = 0
    for i in range(metadata.num_row_groups):
        group = metadata.row_group(i)
        rows = slice(start, start + group.num_rows)
        start += group.num_rows
        for j in range(group.num_columns):
            chunk = group.column(j)
            statistics = chunk.statistics if chunk.physical_type in ("INT64", "DOUBLE") else None
            if statistics is not None and statistics.has_min_max:
                yield chunk.path_in_schema, rows, statistics.min, statistics.max
