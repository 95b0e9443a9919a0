"""Runs and qrels as columns, and packed as the native core takes them."""

from __future__ import annotations

import operator
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgtrec import _core
from kgtrec._internal.arrays import Int64
from kgtrec._internal.csr import owners, spans
from kgtrec._internal.integers import rounded_integer
from kgtrec.errors import InputError, UsageError
from kgtrec.trec.files.parse import Packed
from kgtrec.trec.files.text import decode_name


@dataclass(frozen=True, eq=False)
class _Columns:
    """Common base of run and qrels."""

    queries: list[str]
    offsets: Int64
    name_offsets: Int64
    name_bytes: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.queries)

    @cached_property
    def documents(self) -> Any:
        """Names of the documents: a pyarrow LargeBinaryArray over the same memory."""
        import pyarrow as pa

        buffers = [None, pa.py_buffer(self.name_offsets), pa.py_buffer(self.name_bytes)]
        return pa.Array.from_buffers(pa.large_binary(), len(self.name_offsets) - 1, buffers)

    def _check(self, name: str, values: NDArray[Any], dtype: type) -> None:
        """Refuse columns whose lengths or dtype do not fit."""
        n = len(self.name_offsets) - 1
        if len(self.offsets) != len(self.queries) + 1 or not self.offsets[-1] == n == len(values):
            raise UsageError(
                f"columns have different lengths: {len(self.queries)} queries, offsets that end "
                f"at {self.offsets[-1:]}, {n} names and {len(values)} {name}"
            )
        if values.dtype != dtype:
            raise UsageError(f"{name} is of type {values.dtype}; it must be {dtype.__name__}")

    def _names(self) -> list[str]:
        """Decode the names of all documents."""
        raw, ends = self.name_bytes.tobytes(), self.name_offsets.tolist()
        if raw.isascii():  # slicing one text is cheaper than decoding each name
            text = raw.decode("ascii")
            return [text[a:b] for a, b in pairwise(ends)]
        return [decode_name(raw[a:b]) for a, b in pairwise(ends)]

    def _dicts(self, values: NDArray[Any]) -> dict[str, dict[str, Any]]:
        """Return query, then document, to its value."""
        names, numbers = self._names(), values.tolist()
        spans = pairwise(self.offsets.tolist())
        return {
            query: dict(zip(names[a:b], numbers[a:b], strict=True))
            for query, (a, b) in zip(self.queries, spans, strict=True)
        }

    def _frame(self, name: str, values: NDArray[Any]) -> Any:
        """Return a pandas frame; `name` is the heading of the values."""
        import pandas as pd
        import pyarrow as pa

        try:
            owner = pa.array(owners(self.offsets))
            # The type of texts in the installed release of pandas.
            query = pa.array(self.queries, pa.large_string()).take(owner).to_pandas()
            document = self.documents.cast(pa.large_string()).to_pandas()
        except (UnicodeEncodeError, pa.ArrowInvalid):  # names that are not UTF-8
            query = pd.Series([self.queries[i] for i in owners(self.offsets)], dtype=object)
            document = pd.Series(self._names(), dtype=object)
        return pd.DataFrame({"query_id": query, "doc_id": document, name: values})


@dataclass(frozen=True, eq=False)
class RunColumns(_Columns):
    """A run as columns.

    Attributes
    ----------
    queries : list of str, length n_queries
        In order of their first line. UTF-8; other bytes are lone surrogates ("surrogateescape").
    offsets : ndarray of int64, shape (n_queries + 1,)
        Query i has the documents ``offsets[i]`` to ``offsets[i + 1] - 1``, in order of the lines.
    documents : pyarrow.LargeBinaryArray, length n
        Their names. `name_offsets` and `name_bytes` are its buffers.
    scores : ndarray of float64, shape (n,)
        Correctly rounded; infinities are possible, NaN is not.
    tag : str
        Last column of the last line: what trec_eval prints as runid.
    ranks : ndarray of int64, shape (n,), optional
        Column `rank` of a frame. Only scores order documents, but a warning says if both disagree.
    path : str
        The file that the run was read from, for messages; "" if it comes from none.
    """

    scores: NDArray[np.float64]
    tag: str
    ranks: Int64 | None = None
    path: str = ""

    def __post_init__(self) -> None:
        self._check("scores", self.scores, np.float64)
        if np.isnan(self.scores).any():
            at = int(np.argmax(np.isnan(self.scores)))
            query = self.queries[int(np.searchsorted(self.offsets, at, side="right")) - 1]
            raise InputError(
                f"the score of document {decode_name(self.documents[at].as_py())!r} under query "
                f"{query!r} is NaN; remove it"
            )

    def best(
        self, depth: int = 1, queries: Collection[str] | None = None
    ) -> dict[str, list[bytes]]:
        """Return the first documents in trec_eval's order: score, then name in byte order,
        descending.

        Parameters
        ----------
        depth : int
            At most this many documents per query, 1 or more.
        queries : collection of str, optional
            Only these queries; a query without documents is left out.
        """
        documents: dict[str, list[bytes]] = {}
        for query, (start, stop) in zip(self.queries, pairwise(self.offsets.tolist()), strict=True):
            if start == stop or (queries is not None and query not in queries):
                continue
            scores = self.scores[start:stop]
            last = max(len(scores) - depth, 0)
            indices = np.flatnonzero(scores >= np.partition(scores, last)[last])
            names = [bytes(self.documents[start + index].as_py()) for index in indices.tolist()]
            ordered = sorted(zip(scores[indices].tolist(), names, strict=True), reverse=True)
            documents[query] = [name for _, name in ordered[:depth]]
        return documents

    def to_dict(self) -> dict[str, dict[str, float]]:
        """Return query, then document, to its score, in the same order."""
        return self._dicts(self.scores)

    def to_frame(self) -> Any:
        """Return a pandas.DataFrame with columns query_id, doc_id and score, one row per
        document."""
        return self._frame("score", self.scores)


@dataclass(frozen=True, eq=False)
class QrelsColumns(_Columns):
    """Qrels as columns: as `RunColumns`, with relevance instead of scores and tag.

    Attributes
    ----------
    relevance : ndarray of int64, shape (n,)
        From 1 relevant, 0 not, negative not judged. Float64 without fractions are converted.
    """

    relevance: Int64

    def __post_init__(self) -> None:
        object.__setattr__(self, "relevance", whole_relevance(self.relevance))
        self._check("relevance", self.relevance, np.int64)

    def to_dict(self) -> dict[str, dict[str, int]]:
        """Return query, then document, to its relevance, in the same order."""
        return self._dicts(self.relevance)

    def to_frame(self) -> Any:
        """Return a pandas.DataFrame with columns query_id, doc_id, relevance; one row per
        document."""
        return self._frame("relevance", self.relevance)


def whole_relevance(values: NDArray[Any]) -> NDArray[Any]:
    """Convert floats to int64 if all are whole numbers up to 2^53; other values are unchanged."""
    if (
        values.dtype.kind != "f"
        or not ((abs(values) <= 2**53) & (values == np.floor(values))).all()
    ):
        return values
    return values.astype(np.int64)


Named = list[tuple[bytes, str]]

RunData = Mapping[str, Mapping[str, float]] | RunColumns
QrelsData = Mapping[str, Mapping[str, int]] | QrelsColumns


def pack_run(run: RunData, *, in_order: bool = True) -> Packed:
    """Pack a run's documents, by default with queries in byte order; a query may have none."""
    if isinstance(run, RunColumns):
        return _pack_columns(run, run.scores, in_order)
    return _pack(queries_of(run, in_order, keep_empty=True), run, is_run=True)


def pack_qrels(qrels: QrelsData, *, in_order: bool = True) -> Packed:
    """Pack judged documents as `pack_run` does, but without queries that have no judgements."""
    if isinstance(qrels, QrelsColumns):
        return _pack_columns(qrels, qrels.relevance, in_order)
    return _pack(queries_of(qrels, in_order, keep_empty=False), qrels, is_run=False)


def _pack_columns(
    columns: RunColumns | QrelsColumns, values: NDArray[Any], in_order: bool
) -> Packed:
    """Pack columns, with the queries sorted if `in_order`."""
    names = [name_bytes(query, "query") for query in columns.queries]
    size = np.diff(columns.name_offsets).astype(np.int32)
    begin = columns.name_offsets[:-1]
    ranks = getattr(columns, "ranks", None)
    packed = Packed(names, columns.offsets, columns.name_bytes, begin, size, values, ranks=ranks)
    order = sorted(range(len(names)), key=names.__getitem__)
    if not in_order or all(a < b for a, b in pairwise(order)):
        return packed
    offsets, rows = spans(packed.offsets[order], np.diff(packed.offsets)[order])
    names = [names[i] for i in order]
    ranks = None if ranks is None else ranks[rows]
    return Packed(names, offsets, packed.text, begin[rows], size[rows], values[rows], ranks=ranks)


def queries_of(data: Mapping[str, Mapping[str, Any]], in_order: bool, keep_empty: bool) -> Named:
    """Return names as bytes, and keys, of the queries of a dict of dicts; refuses equal names."""
    named = []
    for query, documents in data.items():
        if not isinstance(documents, Mapping):
            raise InputError(
                f"query {query!r} has {documents!r:.60}; give it a dict from documents to values"
            )
        if documents or keep_empty:
            named.append((name_bytes(query, "query"), query))
    ordered = sorted(named, key=itemgetter(0))
    for (name, first), (next_name, second) in pairwise(ordered):
        if name == next_name:
            raise InputError(f"queries {first!r} and {second!r} have the same name; keep one")
    return ordered if in_order else named


def _is_whole(value: float) -> bool:
    """Return whether a float is a whole number that float64 states exactly."""
    return value.is_integer() and abs(value) <= 2**53


def name_bytes(name: str | float, noun: str) -> bytes:
    """Return the bytes of a name, lone surrogates included, or of a number in decimal; 10.0 is
    10.

    InputError if it is neither a str nor a whole number.
    """
    if not isinstance(name, str):
        if isinstance(name, (float, np.floating)) and _is_whole(float(name)):
            return b"%d" % int(name)
        if isinstance(name, (bool, np.bool_)) or not hasattr(name, "__index__"):
            raise InputError(f"{noun} {name!r} is not a text; names must be str, or whole numbers")
        return b"%d" % operator.index(name)
    try:
        return name.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return name.encode("utf-8", "surrogatepass")


def _pack(queries: Named, data: Mapping[str, Mapping[str, Any]], is_run: bool) -> Packed:
    """Pack some queries of a dict of dicts."""
    native = native_documents(queries, data, is_run)
    offsets, text, begin, size, values = native.parts()
    return Packed(
        [name for name, _ in queries],
        np.frombuffer(offsets, np.int64),
        text,
        np.frombuffer(begin, np.int64),
        np.frombuffer(size, np.int32),
        np.frombuffer(values, np.float64 if is_run else np.int64),
    )


def _whole_advice(mappings: list[Mapping[str, Any]], value: Any) -> str:
    """Say what a relevance must be; for a fraction with advice that keeps the values."""
    if not isinstance(value, (float, np.floating)) or not abs(float(value)) < 2.0**63:
        return "it must be a whole number within 64 bits"
    from kgtrec.trec.files.levels import advice_for_values

    numbers = (x for mapping in mappings for x in mapping.values())
    change = "{{query: {{document: {levels}[value] for document, value in judged.items()}} for "
    change += "query, judged in qrels.items()}}"
    values = [float(x) for x in numbers if isinstance(x, (int, float, np.number))]
    return f"it must be a whole number; {advice_for_values(values, change)}"


def native_documents(
    queries: Named, data: Mapping[str, Mapping[str, Any]], is_run: bool
) -> _core.TrecDocuments:
    """Pack some queries for the native core; InputError for invalid values or names."""
    try:
        mappings = [data[query] for _, query in queries]
        return _core.documents_of(mappings, is_run, lambda name: name_bytes(name, "document"))
    except _core.WrongValue as wrong:
        number, document, value = wrong.args
    where = f"of document {document!r} under query {queries[number][1]!r} is"
    if not is_run:
        raise InputError(f"the relevance {where} {value!r}; {_whole_advice(mappings, value)}")
    if value != value:
        raise InputError(f"the score {where} NaN; remove it")
    if hasattr(value, "__index__") and abs(value) < 1e308:
        document_score = where.removesuffix(" is")
        raise rounded_integer(f"the score {document_score}", value)
    raise InputError(f"the score {where} {value!r}; it must be a number")
