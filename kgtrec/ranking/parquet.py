"""Ranks as Parquet: columns, labels of what stands in them, and the manifest in the file's
metadata."""

from __future__ import annotations

import json
from contextlib import suppress
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from kgtrec._internal.atomic_file import atomic_write
from kgtrec.errors import FileError, InputError
from kgtrec.ranking.ranks import Ranks

__all__ = ["load_ranks", "save_ranks"]

FORMAT = 1
"""Raised when a file of this version can no longer be read by older ones."""

_KEY = b"kgtrec.ranks"


def save_ranks(ranks: Ranks, path: str | PathLike[str]) -> None:
    """See `Ranks.save`."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns: dict[str, Any] = {}
    for name, values in vars(ranks).items():
        if isinstance(values, np.ndarray):
            columns[name] = pa.array(values)
    columns["side"] = _dictionary(ranks.side, ["head", "tail"])
    if ranks.relation_labels is not None:
        columns["relation_label"] = _labels(ranks.relation, ranks.relation_labels)
    if ranks.entity_labels is not None:
        for name in ("given", "answer"):
            columns[f"{name}_label"] = _labels(getattr(ranks, name), ranks.entity_labels)
    header = {
        "format": FORMAT,
        "manifest": ranks.manifest | {"tie_report": ranks.tie_report()},
        "relation_labels": ranks.relation_labels,
    }
    table = pa.table(columns).replace_schema_metadata({_KEY: json.dumps(header).encode()})
    with atomic_write(path) as file:
        pq.write_table(table, file, compression="zstd", write_page_checksum=True)


def _dictionary(codes: npt.NDArray[Any], labels: list[str]) -> Any:
    import pyarrow as pa

    encoded = [label.encode("utf-8", "surrogateescape") for label in labels]
    values = pa.array(encoded, type=pa.binary())
    with suppress(pa.ArrowInvalid):  # a label that is not UTF-8 stays as bytes
        values = values.cast(pa.string())
    return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32)), values)


def _labels(ids: npt.NDArray[Any], labels: Any) -> Any:
    """A column of labels that holds only those in use."""
    used, codes = np.unique(ids, return_inverse=True)
    return _dictionary(codes, [labels[int(i)] for i in used])


def load_ranks(path: str | PathLike[str]) -> Ranks:
    """See `Ranks.load`."""
    import pyarrow as pa

    table = _read_table(path)
    header = _header(path, table)
    try:
        columns = _columns(table)
        entities = _entities(table)
        ranks = Ranks(columns, header["manifest"], header["relation_labels"], entities)
    except (InputError, pa.ArrowException) as error:
        raise _no_ranks(path, _first_line(error)) from None
    if fault := _fault(ranks):
        raise _no_ranks(path, f"ranks that cannot be: {fault}")
    return ranks


def _read_table(path: str | PathLike[str]) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    if Path(path).is_dir():
        raise FileError(path, found="a folder, not a file", mend="name the ranks file in it")
    try:
        # Opened here: pyarrow takes no path that is not UTF-8.
        with open(path, "rb") as file:
            return pq.read_table(file, page_checksum_verification=True)
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, FileNotFoundError):
            raise _no_ranks(path, "there is no such file") from None
        reason = getattr(error, "strerror", None)
        reason = reason or f"not a readable Parquet file ({_first_line(error)})"
        raise _no_ranks(path, reason) from None


def _columns(table: Any) -> dict[str, npt.NDArray[Any]]:
    import pyarrow as pa

    columns: dict[str, npt.NDArray[Any]] = {}
    for name in table.column_names:
        if name.endswith("_label"):
            continue
        column, kind = table[name], table.schema.field(name).type
        if name == "side":
            codes = column.cast(pa.string()).to_numpy(zero_copy_only=False)
            columns["side"] = (codes == "tail").astype(np.int64)
        elif column.null_count or not (pa.types.is_integer(kind) or pa.types.is_boolean(kind)):
            raise InputError(f"column {name!r} holds {kind} with {column.null_count} nulls")
        else:
            columns[name] = column.to_numpy()
    return columns


def _fault(ranks: Ranks) -> str | None:
    """What no ranking can have left behind."""
    for kind in ("", "macro_"):
        greater, equal, tied_ahead, candidates = (
            getattr(ranks, kind + name) for name in ("greater", "equal", "tied_ahead", "candidates")
        )
        wrong = (greater < 0) | (equal < 0) | (tied_ahead < 0) | (tied_ahead > equal)
        wrong |= greater + equal + 1 > candidates
        if wrong.any():
            row = int(np.flatnonzero(wrong)[0])
            return (
                f"in row {row}, {kind}greater {greater[row]}, {kind}equal {equal[row]}, "
                f"{kind}tied_ahead {tied_ahead[row]} of {candidates[row]} {kind}candidates"
            )
    full = ranks.full_candidates
    if full is not None and (full < ranks.candidates).any():
        row = int(np.flatnonzero(full < ranks.candidates)[0])
        return f"in row {row}, {ranks.candidates[row]} candidates of {full[row]} in all"
    labels, used = ranks.relation_labels, ranks.relation
    if labels is not None and ((used < 0) | (used >= len(labels))).any():
        return f"relations {used.min()} to {used.max()}, with {len(labels)} relation labels"
    return None


def _header(path: str | PathLike[str], table: Any) -> dict[str, Any]:
    metadata = table.schema.metadata or {}
    if _KEY not in metadata:
        raise _no_ranks(path, "a Parquet file, but not one that kgtrec has written")
    try:
        header: dict[str, Any] = json.loads(metadata[_KEY])
        version = header.get("format")
    except (ValueError, AttributeError):
        raise _no_ranks(path, "a damaged description") from None
    if version != FORMAT:
        raise FileError(
            path,
            found=f"ranks of format {version}, this version reads {FORMAT}",
            mend="read it with the version of kgtrec that wrote it, or rank again",
        )
    labels = header.get("relation_labels")
    if not isinstance(header.get("manifest"), dict) or not isinstance(labels, (list, type(None))):
        raise _no_ranks(path, "a damaged description")
    header["relation_labels"] = labels
    return header


class _EntityLabels(dict[int, str]):
    """Labels of the entities that stand in a ranks file, by id."""


def _entities(table: Any) -> Any:
    if "answer_label" not in table.column_names:
        return None
    labels = _EntityLabels()
    for name in ("given", "answer"):
        ids = table[name].to_numpy()
        first = np.unique(ids, return_index=True)[1]
        texts = table[f"{name}_label"].take(first).to_pylist()
        decoded = (t if isinstance(t, str) else t.decode("utf-8", "surrogateescape") for t in texts)
        labels.update(zip(ids[first].tolist(), decoded, strict=True))
    return labels


def _first_line(error: BaseException) -> str:
    text = str(error).splitlines()[0] if str(error) else type(error).__name__
    return text.removeprefix("Could not open Parquet input source '<Buffer>': ")


def _no_ranks(path: str | PathLike[str], found: str) -> FileError:
    return FileError(path, found=found, mend="name a file written by `kgtrec rank` or Ranks.save")
