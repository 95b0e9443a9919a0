"""Parquet and Arrow files with columns head, relation, tail: labels, or numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from kgtrec._internal.files import arrow_file, read_arrow, read_parquet
from kgtrec.errors import FileError, no_memory_for, refuse
from kgtrec.graph.readers.common import (
    GraphTables,
    check_likely,
    id_column,
    sort_labels,
    split_files,
)
from kgtrec.graph.triples import COLUMNS

_HINT = "columns head, relation and tail must be labels (text), or numbers from 0 in all files"


def read_arrow_graph(folder: Path, columns: str | None = None) -> GraphTables:
    """Read ``train.parquet`` (or ``.arrow``, ``.feather``) and so on, with labels or numbers."""
    files = split_files(folder, (".parquet", ".arrow", ".feather"))
    tables = {split: _columns(path) for split, path in files.items()}
    kinds = {column.type for table in tables.values() for column in table}
    if all(_is_integer(kind) for kind in kinds):
        splits = {
            split: np.stack(
                [
                    id_column(files[split], name, column.to_numpy(zero_copy_only=False), _HINT)
                    for name, column in zip(COLUMNS, table, strict=True)
                ],
                axis=1,
            )
            for split, table in tables.items()
        }
        for column in range(3):
            check_likely(
                files, splits, column, "correct it, or number entities and relations without gaps"
            )
        return GraphTables(splits)
    for split, table in tables.items():
        if any(_is_integer(column.type) for column in table):
            refuse(files[split], None, "some columns are numbers, others are labels", _HINT)
    return _number_labels(tables)


def _columns(path: Path) -> list[Any]:
    """Read head, relation and tail as Arrow arrays of integers or of bytes."""
    import pyarrow as pa
    import pyarrow.compute as pc

    table = _table(path)
    missing = [name for name in COLUMNS if table.column_names.count(name) != 1]
    if missing:
        held = ", ".join(table.column_names)
        problem = f"needs exactly one column {missing[0]!r}, but has the columns {held}"
        refuse(path, None, problem, _HINT)
    columns = []
    for name in COLUMNS:
        column = table[name].combine_chunks()
        if isinstance(column, pa.ChunkedArray):  # older releases return this for no chunk
            column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([])
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        if column.null_count:
            row = int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
            refuse(path, None, f"{name} is null in row {row}", "remove the row")
        if not _is_integer(column.type):
            try:
                column = column.cast(pa.large_binary())
            except pa.ArrowException:
                problem = f"column {name!r} is of type {column.type}"
                raise FileError(path, found=problem, hint=_HINT) from None
            if pc.any(pc.equal(pc.binary_length(column), 0)).as_py():
                row = int(np.argmin(pc.binary_length(column).to_numpy()))
                refuse(path, None, f"an empty {name} in row {row}", "give it a label")
        columns.append(column)
    return columns


def _table(path: Path) -> Any:
    """Read a table; FileError if the file is damaged."""
    try:
        with arrow_file(path) as file:
            table = read_parquet(file)[0] if path.suffix == ".parquet" else read_arrow(file)
        table.validate(full=True)
        return table
    except MemoryError:
        raise no_memory_for(path) from None
    except Exception as error:  # pyarrow raises its own errors, and Python's
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        problem = f"not a readable {path.suffix[1:]} file ({reason})"
        raise FileError(path, found=problem, hint="write it again") from None


def _is_integer(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_integer(kind))


def _number_labels(tables: dict[str, list[Any]]) -> GraphTables:
    """Number the labels of all tables as `sort_labels` orders them."""
    entities, relations = (
        sort_labels([table[column] for table in tables.values() for column in columns])
        for columns in ((0, 2), (1,))
    )
    splits = {
        split: np.stack(
            [
                labels.positions(column)
                for labels, column in zip((entities, relations, entities), table, strict=True)
            ],
            axis=1,
        )
        for split, table in tables.items()
    }
    return GraphTables(splits, entities, relations)
