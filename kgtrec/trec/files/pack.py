"""Documents of queries as the native core takes them: from dicts, and from columns."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgtrec import _core
from kgtrec.errors import InputError
from kgtrec.trec.files.columns import QrelsColumns, RunColumns
from kgtrec.trec.files.text import decoded

__all__ = ["Packed", "QrelsData", "RunData", "name_bytes", "pack_qrels", "pack_run"]

Ints = NDArray[np.int64]
Named = list[tuple[bytes, str]]

RunData = Mapping[str, Mapping[str, float]] | RunColumns
QrelsData = Mapping[str, Mapping[str, int]] | QrelsColumns


@dataclass(frozen=True, eq=False)
class Packed:
    """Names of documents in one text, and what they are worth.

    Attributes
    ----------
    names : list of bytes, length n_queries
    offsets : ndarray of int64, shape (n_queries + 1,)
    text : bytes or ndarray of uint8
    begin : ndarray of int64, shape (n,)
        Where each name begins in the text.
    size : ndarray of int32, shape (n,)
    values : ndarray of float64 or int64, shape (n,)
        Scores or relevance.
    """

    names: list[bytes]
    offsets: Ints
    text: bytes | NDArray[np.uint8]
    begin: Ints
    size: NDArray[np.int32]
    values: NDArray[Any]

    def native(self) -> _core.TrecDocuments:
        """The same for the native core."""
        is_run = self.values.dtype == np.float64
        return _core.TrecDocuments(
            self.text, self.offsets, self.begin, self.size, self.values, is_run
        )

    def duplicate(self, at: int) -> InputError:
        """What to raise for a document that its query has had before."""
        query = self.names[int(np.searchsorted(self.offsets, at, side="right")) - 1]
        name = bytes(self.text[self.begin[at] : self.begin[at] + self.size[at]])
        return InputError(
            f"document {decoded(name)!r} comes a second time under query {decoded(query)!r}; "
            "keep one"
        )


def pack_run(run: RunData, *, in_order: bool = True) -> Packed:
    """A run's documents, queries in byte order unless told otherwise; a query may have none.

    Raises
    ------
    InputError
        A NaN or something that is not a number among the scores, a name that is not a str.
    """
    if isinstance(run, RunColumns):
        return _pack_columns(run, run.scores, in_order)
    queries = _queries(run, in_order, keep_empty=True)
    scores = [_scores(query, run[query]) for _, query in queries]
    return _pack(queries, run, np.concatenate(scores) if scores else np.empty(0))


def pack_qrels(qrels: QrelsData, *, in_order: bool = True) -> Packed:
    """Judged documents; as `pack_run`, but queries without any judgement do not count.

    Raises
    ------
    InputError
        A relevance that is not a whole number within 64 bits, a name that is not a str.
    """
    if isinstance(qrels, QrelsColumns):
        return _pack_columns(qrels, qrels.relevance, in_order)
    queries = _queries(qrels, in_order, keep_empty=False)
    levels = [_relevance(query, qrels[query]) for _, query in queries]
    values = np.concatenate(levels) if levels else np.empty(0, dtype=np.int64)
    return _pack(queries, qrels, values)


def _pack_columns(
    columns: RunColumns | QrelsColumns, values: NDArray[Any], in_order: bool
) -> Packed:
    names = [name_bytes(query, "query") for query in columns.queries]
    size = np.diff(columns.name_offsets).astype(np.int32)
    begin = columns.name_offsets[:-1]
    packed = Packed(names, columns.offsets, columns.name_bytes, begin, size, values)
    order = sorted(range(len(names)), key=names.__getitem__)
    if not in_order or all(a < b for a, b in pairwise(order)):
        return packed
    counts = np.diff(packed.offsets)[order]
    offsets = np.concatenate(([0], np.cumsum(counts)))
    rows = np.arange(offsets[-1]) + np.repeat(packed.offsets[order] - offsets[:-1], counts)
    names = [names[i] for i in order]
    return Packed(names, offsets, packed.text, begin[rows], size[rows], values[rows])


def _queries(data: Mapping[str, Mapping[str, Any]], in_order: bool, keep_empty: bool) -> Named:
    named = []
    for query, documents in data.items():
        if not isinstance(documents, Mapping):
            raise InputError(
                f"query {query!r} holds {documents!r:.60}; it must hold a dict, document to value"
            )
        if documents or keep_empty:
            named.append((name_bytes(query, "query"), query))
    if in_order:
        named.sort(key=itemgetter(0))
        for (one, first), (other, second) in pairwise(named):
            if one == other:
                raise InputError(f"queries {first!r} and {second!r} have one name; keep one")
    return named


def name_bytes(name: str | int, what: str) -> bytes:
    """Bytes of a name, lone surrogates and all, or of a number in decimal.

    InputError if it is neither a str nor a whole number.
    """
    if not isinstance(name, str):
        if isinstance(name, (bool, np.bool_)) or not hasattr(name, "__index__"):
            raise InputError(f"{what} {name!r} is not a text; names are str, or whole numbers")
        return b"%d" % operator.index(name)
    try:
        return name.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return name.encode("utf-8", "surrogatepass")


def _pack(queries: Named, data: Mapping[str, Mapping[str, Any]], values: NDArray[Any]) -> Packed:
    offsets = np.zeros(len(queries) + 1, dtype=np.int64)
    pieces: list[bytes] = []
    sizes: list[int] = []
    for i, (_, query) in enumerate(queries):
        names = data[query]
        offsets[i + 1] = offsets[i] + len(names)
        joined = _joined(names)
        if joined is not None and joined.isascii():  # each name has as many bytes as characters
            sizes += map(len, names)
            pieces.append(joined.encode())
        else:
            raw = [name_bytes(name, "document") for name in names]
            sizes += map(len, raw)
            pieces.append(b"".join(raw))
    size = np.array(sizes, dtype=np.int32)
    begin = np.cumsum(size, dtype=np.int64) - size
    return Packed([name for name, _ in queries], offsets, b"".join(pieces), begin, size, values)


def _joined(names: Mapping[str, Any]) -> str | None:
    """All names as one text; None if some are numbers, or what is none of a name."""
    try:
        return "".join(names)
    except TypeError:
        return None


def _scores(query: str, scores: Mapping[str, float]) -> NDArray[np.float64]:
    try:
        values = np.fromiter(map(float, scores.values()), np.float64, len(scores))
        texts = not {str, bytes}.isdisjoint(map(type, scores.values()))  # float() reads them
    except (TypeError, ValueError, OverflowError):
        texts = True
    if texts:
        document, score = next(item for item in scores.items() if not _is_number(item[1]))
        raise InputError(
            f"the score of document {document!r} under query {query!r} is {score!r}; it must be a "
            "number"
        )
    if np.isnan(values).any():
        bad = list(scores)[int(np.argmax(np.isnan(values)))]
        raise InputError(f"the score of document {bad!r} under query {query!r} is NaN; remove it")
    return values


def _is_number(score: object) -> bool:
    try:
        float(score)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return False
    return not isinstance(score, (str, bytes))


def _relevance(query: str, judgements: Mapping[str, int]) -> Ints:
    try:
        return np.fromiter(map(operator.index, judgements.values()), np.int64, len(judgements))
    except (TypeError, OverflowError):
        for document, relevance in judgements.items():
            if not hasattr(relevance, "__index__") or not -(2**63) <= relevance < 2**63:
                raise InputError(
                    f"the relevance of document {document!r} under query {query!r} is "
                    f"{relevance!r}; it must be a whole number within 64 bits"
                ) from None
        raise
