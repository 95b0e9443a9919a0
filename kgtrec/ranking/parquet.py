"""Files of ranks: Parquet with the columns, their labels, and the manifest in the metadata.

Reading compares the columns with the file's own description of them. Checksums of pages do not
cover the numbers of rows, nor the smallest and largest values, by which queries skip rows.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from kgtrec._internal.arrays import Array, Int64
from kgtrec._internal.csr import distinct, find_sorted
from kgtrec._internal.files import arrow_file, atomic_write, read_parquet
from kgtrec._internal.locations import local_copy
from kgtrec._internal.structured import parse_json
from kgtrec.errors import FileError, InputError, PathName, no_memory_for, refuse
from kgtrec.graph.labels import Labels
from kgtrec.questions.terms import NAMES, TERM
from kgtrec.ranking.provenance import Provenance, is_sound


def _check_description(metadata: Any, table: Any, columns: Mapping[str, Array]) -> None:
    """Raise InputError unless a file's own description of its columns is right.

    It must agree with Arrow's copy of it, and its numbers of rows and ranges of values with the
    columns.
    """
    import pyarrow as pa

    facts = metadata.metadata or {}
    if b"ARROW:schema" in facts:  # else another program may have rewritten the columns
        copy = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(facts[b"ARROW:schema"])))
        if not copy.equals(table.schema) or (copy.metadata or {}).get(_KEY) != facts.get(_KEY):
            raise InputError("its metadata is damaged")
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    if not sum(group.num_rows for group in groups) == metadata.num_rows == table.num_rows:
        raise InputError(f"the numbers of rows do not add up to {metadata.num_rows}")
    stop = 0
    for group in groups:
        start, stop = stop, stop + group.num_rows
        for chunk in map(group.column, range(group.num_columns)):
            name, statistics = chunk.path_in_schema, chunk.statistics
            if chunk.num_values != group.num_rows:
                raise InputError(f"column {name!r} has too few rows")
            of_numbers = chunk.physical_type in ("INT64", "DOUBLE") and name in columns
            if not of_numbers or statistics is None or not statistics.has_min_max:
                continue
            low, high, values = statistics.min, statistics.max, columns[name][start:stop]
            if len(values) and (np.fmin.reduce(values) != low or np.fmax.reduce(values) != high):
                raise InputError(
                    f"column {name!r} does not go from {low} to {high}, its declared range"
                )


_FEW_LABELS = 1 << 16
"""Most labels that are converted here. For more, pyarrow's compute module is worth its import."""


def column_values(values: Any) -> Any:
    """Return labels as a pyarrow array for a column: text, or bytes if a label is not UTF-8.

    `values` is a pyarrow array of bytes, large or not, or of text.
    """
    import pyarrow as pa

    few = len(values) <= _FEW_LABELS and values.nbytes < 1 << 31
    if few and pa.types.is_large_binary(values.type):
        values = _cast_without_compute(values)
    else:
        values = values.cast(pa.binary())
        with suppress(pa.ArrowInvalid):  # a label that is not UTF-8 stays as bytes
            values = values.cast(pa.string())
    return values


def _cast_without_compute(labels: Any) -> Any:
    """Return the result of the casts of `column_values`, without pyarrow's compute module.

    The import of that module takes longer than writing a file.
    """
    import pyarrow as pa

    first, n = labels.offset, len(labels)
    _, offsets, content = labels.buffers()
    bounds = np.frombuffer(offsets or bytes(8), np.int64)[first : first + n + 1]
    data = np.frombuffer(content or b"", np.uint8)[bounds[0] : bounds[-1]]
    bounds = (bounds - bounds[0]).astype(np.int32)
    # A text cut between characters is UTF-8 if its parts are.
    starts = data[bounds[:-1][np.diff(bounds) > 0]]
    kind = pa.string()
    try:
        data.tobytes().decode("utf-8")
    except UnicodeDecodeError:
        kind = pa.binary()
    if ((starts & 0xC0) == 0x80).any():
        kind = pa.binary()
    return pa.Array.from_buffers(kind, n, [None, pa.py_buffer(bounds), pa.py_buffer(data)])


def encode_labels(labels: Any, ids: Int64) -> Any:
    """Return labels of many ids as a pyarrow array of bytes.

    `labels` is any form of `Ranks.entity_labels`.
    """
    if isinstance(labels, (Labels, EntityLabels)):
        return labels.arrow_of(ids)
    return _encode_texts(labels[i] for i in ids.tolist())


def _encode_texts(labels: Iterable[str]) -> Any:
    """Return labels as a pyarrow array of bytes."""
    import pyarrow as pa

    encoded = [label.encode("utf-8", "surrogateescape") for label in labels]
    return pa.array(encoded, pa.large_binary())


class EntityLabels(Mapping[int, str]):
    """Labels of the entities that occur in a ranks file, by id.

    There are tens of thousands, and few readers need any. So labels stay in their columns until a
    label is read.
    """

    def __init__(self, columns: Sequence[tuple[Int64, Any]]) -> None:
        """Store pairs of columns of ids and their labels; a repeated id has its first label."""
        self._columns = columns

    @cached_property
    def _distinct(self) -> tuple[Int64, Any]:
        """Ids, ascending, and a pyarrow array of their labels as bytes."""
        import pyarrow as pa

        ids, labels = [], []
        for all_ids, column in self._columns:
            first = np.unique(all_ids, return_index=True)[1]
            ids.append(all_ids[first])
            labels.append(_decode_dictionary(column.take(pa.array(first))))
        known, first = np.unique(np.concatenate(ids), return_index=True)
        return known, pa.concat_arrays(labels).take(pa.array(first))

    def arrow_of(self, ids: Int64) -> Any:
        """Return labels of many ids as a pyarrow array; KeyError for an unknown id."""
        import pyarrow as pa

        known, labels = self._distinct
        rows = find_sorted(known, ids)
        if (rows < 0).any():
            raise KeyError(int(ids[np.argmin(rows)]))
        return labels.take(pa.array(rows))

    def __getitem__(self, number: int) -> str:
        label: bytes = self.arrow_of(np.array([number]))[0].as_py()
        return label.decode("utf-8", "surrogateescape")

    def __iter__(self) -> Iterator[int]:
        return iter(self._distinct[0].tolist())

    def __len__(self) -> int:
        return len(self._distinct[0])


def _decode_dictionary(column: Any) -> Any:
    """Return a column of labels as a single array of bytes."""
    import pyarrow as pa

    column = column.combine_chunks()
    column = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
    return column.cast(pa.binary())


FORMAT = 1
"""Version of the format; it increases when older versions cannot read new files."""
ROW_GROUP = 1 << 20
"""Number of instances that are compressed together."""
IDS = ("relation", "given", "given_relation", "given_tail", "context", "answer")
"""Columns of ids that may have a column of labels."""

_KEY = b"kgtrec.ranks"
_RANK = "rank"
"""A column for other programs, computed from the counts; reading compares it with them."""


def find_used_ids(columns: Mapping[str, Array], manifest: Mapping[str, Any]) -> dict[str, Int64]:
    """Return the ids in each column that may have labels; ascending, each once."""
    facts = Provenance.from_manifest(manifest)
    labelled = [f"{TERM}{name}" for name, labels in facts.terms.items() if labels is not None]
    labelled += (*IDS, "question") if facts.question_ids else IDS
    return {name: _distinct_ids(ids) for name, ids in columns.items() if name in labelled}


def _distinct_ids(ids: Array) -> Int64:
    """Return the ids of a column; ascending, each once. Negative ids name no entity.

    A mask takes less memory than a sorted copy, unless ids are sparse.
    """
    low, high = int(ids.min(initial=0)), int(ids.max(initial=0))
    if low < 0 or high > 8 * len(ids):
        return distinct([ids])
    mask = np.zeros(high + 1, bool)
    mask[ids] = True
    return np.flatnonzero(mask)


def write_blocks(
    path: PathName,
    blocks: Iterable[Mapping[str, Array]],
    manifest: Mapping[str, Any],
    used: Mapping[str, Array],
    relation_labels: Sequence[str] | None,
    entity_labels: Any,
) -> None:
    """Write a file from blocks of `ROW_GROUP` instances; the last may have fewer.

    `used` are the ids in all blocks of the columns that get labels; see `find_used_ids`.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    dictionaries = {
        name: column_values(encode_labels(labels, used[name]))
        for name, labels in _labels_of_columns(used, relation_labels, entity_labels).items()
    }
    for name, texts in _label_functions(used, manifest).items():
        dictionaries[name] = column_values(_encode_texts(map(texts, used[name].tolist())))
    n_sides = 4 if "given_relation" in used else 3 if "given_tail" in used else 2
    sides = column_values(_encode_texts(NAMES[:n_sides]))
    header = {"format": FORMAT, "manifest": manifest, "relation_labels": relation_labels}
    metadata = {_KEY: json.dumps(header).encode()}
    with atomic_write(path) as file, ExitStack() as stack:
        writer = None
        for columns in blocks:
            rank = columns.get(_RANK)
            table = {name: _to_arrow(values) for name, values in columns.items() if name != _RANK}
            if "side" in columns:
                table["side"] = _dictionary_array(columns["side"], sides)
            for name, values in dictionaries.items():
                codes = np.searchsorted(used[name], columns[name])
                table[f"{name}_label"] = _dictionary_array(codes, values)
            if rank is not None:
                table[_RANK] = _to_arrow(rank)
            whole = pa.table(table).replace_schema_metadata(metadata)
            if writer is None:
                options = {"compression": "zstd", "write_page_checksum": True}
                writer = stack.enter_context(pq.ParquetWriter(file, whole.schema, **options))
            writer.write_table(whole, ROW_GROUP)


def _label_functions(
    used: Iterable[str], manifest: Mapping[str, Any]
) -> dict[str, Callable[[int], str]]:
    """Return functions from ids to labels, for the columns whose labels are in the manifest."""
    facts = Provenance.from_manifest(manifest)
    texts: dict[str, Callable[[int], str]] = {
        f"{TERM}{name}": str if labels is None else labels.__getitem__
        for name, labels in facts.terms.items()
    }
    texts["context"] = lambda number: facts.contexts[str(number)]
    texts["question"] = facts.question_ids.__getitem__
    return {name: texts[name] for name in sorted(used) if name in texts}


def _labels_of_columns(columns: Mapping[str, Any], relations: Any, entities: Any) -> dict[str, Any]:
    """Return the labels of entities or relations for each column that gets labels from them."""
    entity_columns = _entity_columns(columns) if entities is not None else ()
    labels = dict.fromkeys(entity_columns, entities)
    if relations is not None:
        others = ("relation", "given_relation", *(("answer",) if entity_columns else ()))
        labels |= {
            name: relations for name in others if name in columns and name not in entity_columns
        }
    return labels


def _entity_columns(columns: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the columns that contain entities.

    If the relation is asked, both entities are given.
    """
    if "given" not in columns:
        return ("answer",)
    if "given_relation" in columns:
        return ("given", "given_tail", "answer")
    return ("given", "given_tail" if "given_tail" in columns else "answer")


def _dictionary_array(codes: Array, values: Any) -> Any:
    """Return ``values[codes]`` as a dictionary-encoded pyarrow array."""
    import pyarrow as pa

    return pa.DictionaryArray.from_arrays(_to_arrow(codes.astype(np.int32)), values)


def _to_arrow(values: Array) -> Any:
    """Return integers or truth values as a pyarrow array.

    `pyarrow.array` would import numpy.ma, and pandas if installed, to check for their types.
    """
    import pyarrow as pa

    if values.dtype == bool:
        kind, data = pa.bool_(), np.packbits(values, bitorder="little")
    else:
        kind, data = pa.from_numpy_dtype(values.dtype), np.ascontiguousarray(values)
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(data)])


def read_ranks(
    path: PathName,
) -> tuple[dict[str, Array], dict[str, Any], Any]:
    """Read a file of ranks; see `Ranks.load`.

    Returns its columns, its header (``manifest``, ``relation_labels``) and its entity labels. A
    column ``rank``, if present, is float64. All others are integers or truth values.
    """
    with local_copy(path) as local:
        table, metadata = _read_table(local)
    header = _read_header(path, table)
    try:
        columns = _read_columns(table)
        _check_description(metadata, table, columns)
        return columns, header, _read_entity_labels(table, columns)
    except MemoryError:
        raise no_memory_for(path) from None
    except Exception as error:  # pyarrow raises its own errors, and Python's
        raise not_ranks(path, first_line(error)) from None


def _read_table(path: PathName) -> tuple[Any, Any]:
    """Return the table of a file, and the file's own description of it."""
    if Path(path).is_dir():
        refuse(path, None, "a folder, not a file", "give the ranks file in this folder")
    try:
        with arrow_file(path) as file:
            table, metadata = read_parquet(file)
        table.validate(full=True)  # the file's description may point outside its columns
        return table, metadata
    except MemoryError:
        raise no_memory_for(path) from None
    except Exception as error:
        if isinstance(error, FileNotFoundError):
            raise not_ranks(path, "the file does not exist") from None
        reason = getattr(error, "strerror", None)
        reason = (
            reason
            or _describe_other_kind(path)
            or f"not a readable Parquet file ({first_line(error)})"
        )
        raise not_ranks(path, reason) from None


def _describe_other_kind(path: PathName) -> str:
    """Return a description of a file that does not begin like Parquet; "" if it does."""
    with suppress(OSError), open(path, "rb") as file:
        start = file.read(1 << 10)
        words = start.partition(b"\n")[0].split()
        if len(words) == 6 and b"\0" not in start:
            return "not a file of ranks, but a TREC run, which `kgtrec eval` evaluates"
        if start and not start.startswith(b"PAR1"):
            return f"not a file of ranks: it begins with {start[:20].decode('utf-8', 'replace')!r}"
    return ""


def _read_columns(table: Any) -> dict[str, Array]:
    """Return all columns of a table except labels; InputError for a wrong type, or nulls."""
    import pyarrow as pa

    if len(set(table.column_names)) < table.num_columns:
        raise InputError("two columns have the same name")
    columns: dict[str, Array] = {}
    for name in table.column_names:
        if name.endswith("_label"):
            continue
        column, kind = table[name], table.schema.field(name).type
        fitting = pa.types.is_integer(kind) or pa.types.is_boolean(kind)
        if name == _RANK:
            fitting = pa.types.is_float64(kind)
        if name == "side":
            columns["side"] = _read_side_codes(column)
        elif column.null_count or not fitting:
            raise InputError(f"column {name!r} has {kind} with {column.null_count} nulls")
        else:
            columns[name] = _to_numpy(column)
    return columns


def _to_numpy(column: Any) -> Array:
    """Return a column of numbers or truth values without nulls as an array.

    It shares contiguous bytes without a copy. pyarrow's own `to_numpy` imports pandas, if
    installed.
    """
    import pyarrow as pa

    dtype = np.dtype(str(column.type))
    parts = []
    for chunk in column.chunks if isinstance(column, pa.ChunkedArray) else [column]:
        data = np.frombuffer(chunk.buffers()[1] or b"", np.uint8)
        stop = chunk.offset + len(chunk)
        if pa.types.is_boolean(chunk.type):
            values = np.unpackbits(data, count=stop, bitorder="little").view(bool)
        else:
            values = data[: stop * dtype.itemsize].view(dtype)
        parts.append(values[chunk.offset :])
    return parts[0] if len(parts) == 1 else np.concatenate([np.zeros(0, dtype), *parts])


def _read_side_codes(column: Any) -> Int64:
    """Return the codes of a column of side names, int64 (n,); 0 for other names."""
    import pyarrow as pa

    codes = [np.zeros(0, np.int64)]
    for chunk in column.chunks:
        texts, rows = chunk, np.arange(len(chunk))
        if pa.types.is_dictionary(chunk.type) and not chunk.null_count:
            texts, rows = chunk.dictionary, _to_numpy(chunk.indices)
        numbers = [NAMES.index(text) if text in NAMES else 0 for text in texts.to_pylist()]
        codes.append(np.array(numbers, np.int64)[rows])
    return np.concatenate(codes)


def _read_header(path: PathName, table: Any) -> dict[str, Any]:
    """Return the header in a table's metadata; FileError if it is missing or damaged."""
    metadata = table.schema.metadata or {}
    if _KEY not in metadata:
        raise not_ranks(path, "a Parquet file that kgtrec did not write")
    try:
        header: dict[str, Any] = parse_json(metadata[_KEY])
        version = header.get("format")
        if re.search(rb"\\u[dD]", metadata[_KEY]):  # bytes of labels are "\udc80" to "\udcff"
            json.dumps(header, ensure_ascii=False).encode("utf-8", "surrogateescape")
    except (ValueError, AttributeError):
        raise not_ranks(path, "its metadata is damaged") from None
    if version != FORMAT:
        raise FileError(
            path,
            found=f"ranks of format {version}, but this version reads format {FORMAT}",
            hint="read it with the version of kgtrec that wrote it, or rank again",
        )
    labels = header.get("relation_labels")
    manifest = header.get("manifest")
    texts = labels is None or (
        isinstance(labels, list) and all(isinstance(label, str) for label in labels)
    )
    sound = isinstance(manifest, dict) and texts
    if not sound or not is_sound(header["manifest"]):
        raise not_ranks(path, "its metadata is damaged")
    return header | {"relation_labels": labels}


def _read_entity_labels(table: Any, columns: Mapping[str, Array]) -> EntityLabels | None:
    """Return the labels of entities, or None if the table has none; InputError if damaged."""
    import pyarrow as pa

    names = _entity_columns(columns)[::-1]
    if f"{names[0]}_label" not in table.column_names:
        return None
    missing = {names[-1], names[0], f"{names[-1]}_label"} - set(table.column_names)
    if missing:
        raise InputError(f"column {min(missing)!r} is missing")
    for name in (f"{stem}_label" for stem in names):
        kind = table.schema.field(name).type
        plain = kind.value_type if pa.types.is_dictionary(kind) else kind
        if not pa.types.is_string(plain) and not pa.types.is_binary(plain):
            raise InputError(f"column {name!r} has type {plain}, but labels must be text")
        if table[name].null_count:
            raise InputError(f"column {name!r} has nulls, but labels must be text")
    return EntityLabels([(columns[name], table[f"{name}_label"]) for name in names])


def first_line(error: BaseException) -> str:
    """Return the first line of an error of pyarrow, without its prefix."""
    text = str(error).splitlines()[0] if str(error) else type(error).__name__
    return text.removeprefix("Could not open Parquet input source '<Buffer>': ")


def not_ranks(path: PathName, problem: str) -> FileError:
    """Return the error for a file without ranks, or with impossible ranks."""
    return FileError(path, found=problem, hint="give a file written by `kgtrec rank` or Ranks.save")


RANKS_OF_JOB = re.compile(r"graph=([^/]*)/protocol=([^/]*)/model=([^/]*)/ranks\.parquet")
"""Path of a job's ranks in the output of a batch."""


def system_name(path: PathName) -> str:
    """Return a system's name: the model of a batch's job, or the file's name without
    ``.ranks.parquet``."""
    job = job_of(path)
    return job[2] if job else Path(path).name.removesuffix(".parquet").removesuffix(".ranks")


def name_systems(paths: Sequence[PathName]) -> list[str]:
    """Return the name of each system; jobs of one model also have the graph and protocol in which
    they differ, as in ``transe (FB15k-237)``."""
    names = [system_name(path) for path in paths]
    same: dict[str, list[tuple[str, ...]]] = {}
    for name, path in zip(names, paths, strict=True):
        same.setdefault(name, []).append(job_of(path))
    differing = (
        ", ".join(_list_differing(job_of(path), same[name]))
        for name, path in zip(names, paths, strict=True)
    )
    return [
        f"{name} ({differences})" if differences else name
        for name, differences in zip(names, differing, strict=True)
    ]


def job_of(path: PathName) -> tuple[str, ...]:
    """Return graph, protocol and model of a job's ranks; empty for other files."""
    job = RANKS_OF_JOB.fullmatch("/".join(Path(path).parts[-4:]))
    return job.groups() if job else ()


def _list_differing(job: tuple[str, ...], others: Sequence[tuple[str, ...]]) -> list[str]:
    """Return the graph and protocol of a job, without those that all `others` share."""
    return [
        each
        for i, each in enumerate(job[:2])
        if {other[i : i + 1] for other in others} != {(each,)}
    ]
