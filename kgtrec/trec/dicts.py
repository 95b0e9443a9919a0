"""Judged lists from dicts, ordered and judged by the same native code as files."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgtrec import _core
from kgtrec.errors import InputError
from kgtrec.trec.lists import Lists
from kgtrec.trec.reading import Cut, Judgements, list_documents, ranked
from kgtrec.trec.text import decoded

__all__ = ["judgements_of", "lists_from_dicts"]


def lists_from_dicts(
    qrels: Mapping[str, Mapping[str, int]] | Judgements,
    run: Mapping[str, Mapping[str, float]],
    *,
    limit: int | None = None,
    depth: int | None = None,
    keep_ties: bool = False,
    judged_only: bool = False,
    single: bool = False,
    absent: bool = False,
    tag: str = "",
    threads: int | None = None,
) -> Lists:
    """Judged lists of a run in memory; the options are those of `kgtrec.trec.reading.read_lists`.

    Parameters
    ----------
    qrels : mapping of str to mapping of str to int, or Judgements
        Query, then document, to its relevance. A query without any judgement does not count.
    run : mapping of str to mapping of str to float
        Query, then document, to its score. A query may have an empty list.

    Raises
    ------
    InputError
        A NaN or something that is no number among the scores, a relevance that is no whole
        number within 64 bits, a name that is no str.
    UsageError
        A negative limit or depth.
    """
    cut = Cut(limit, depth, keep_ties, judged_only, single)
    if not isinstance(qrels, Judgements):
        qrels = judgements_of(qrels)
    queries = _in_byte_order(run)
    offsets, text, begin, size = _packed(queries, run)
    scores = [_scores(query, run[query]) for _, query in queries]
    values = np.concatenate(scores) if scores else np.empty(0)
    documents = _core.TrecDocuments(text, offsets, begin, size, values, True)
    names, work = [name for name, _ in queries], np.diff(offsets)
    lists, fault = list_documents(qrels, names, documents, work, cut, absent, tag, threads)
    if fault is not None:
        raise _same_bytes(queries, offsets, text, begin, size, fault[0] - 1)
    return lists


def judgements_of(qrels: Mapping[str, Mapping[str, int]]) -> Judgements:
    """Qrels in memory, to list any number of runs against."""
    queries = _in_byte_order(query for query in qrels if qrels[query])
    offsets, text, begin, size = _packed(queries, qrels)
    levels = [_relevance(query, qrels[query]) for _, query in queries]
    values = np.concatenate(levels) if levels else np.empty(0, dtype=np.int64)
    native = _core.TrecDocuments(text, offsets, begin, size, values, False)
    names = [name for name, _ in queries]
    return Judgements("qrels", names, offsets, ranked(offsets, values), native)


def _in_byte_order(queries: Iterable[str]) -> list[tuple[bytes, str]]:
    return sorted((_bytes(query, "query"), query) for query in queries)


def _bytes(name: str, what: str) -> bytes:
    try:
        return name.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return name.encode("utf-8", "surrogatepass")
    except AttributeError:
        raise InputError(f"{what} {name!r} is no text; names must be str") from None


def _packed(
    queries: list[tuple[bytes, str]], data: Mapping[str, Mapping[str, Any]]
) -> tuple[NDArray[np.int64], bytes, NDArray[np.int64], NDArray[np.int32]]:
    """Offsets by query; the names of all documents, and where each begins and how long it is."""
    offsets = np.zeros(len(queries) + 1, dtype=np.int64)
    pieces: list[bytes] = []
    sizes: list[int] = []
    for i, (_, query) in enumerate(queries):
        names = data[query]
        offsets[i + 1] = offsets[i] + len(names)
        joined = _joined(names)
        if joined.isascii():  # each name has as many bytes as characters
            sizes += map(len, names)
            pieces.append(joined.encode())
        else:
            raw = [_bytes(name, "document") for name in names]
            sizes += map(len, raw)
            pieces.append(b"".join(raw))
    size = np.array(sizes, dtype=np.int32)
    begin = np.cumsum(size, dtype=np.int64) - size
    return offsets, b"".join(pieces), begin, size


def _joined(names: Mapping[str, Any]) -> str:
    try:
        return "".join(names)
    except TypeError:
        bad = next(name for name in names if not isinstance(name, str))
        raise InputError(f"document {bad!r} is no text; names must be str") from None


def _scores(query: str, scores: Mapping[str, float]) -> NDArray[np.float64]:
    try:
        values = np.fromiter(map(float, scores.values()), np.float64, len(scores))
    except (TypeError, ValueError) as error:
        raise InputError(f"a score of query {query!r} is no number: {error}") from None
    if np.isnan(values).any():
        bad = list(scores)[int(np.argmax(np.isnan(values)))]
        raise InputError(f"the score of document {bad!r} under query {query!r} is NaN; remove it")
    return values


def _relevance(query: str, judgements: Mapping[str, int]) -> NDArray[np.int64]:
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


def _same_bytes(
    queries: list[tuple[bytes, str]],
    offsets: NDArray[np.int64],
    text: bytes,
    begin: NDArray[np.int64],
    size: NDArray[np.int32],
    at: int,
) -> InputError:
    """Two str that differ in lone surrogates only can have the same bytes."""
    _, query = queries[int(np.searchsorted(offsets, at, side="right")) - 1]
    name = decoded(text[begin[at] : begin[at] + size[at]])
    return InputError(f"document {name!r} comes a second time under query {query!r}; keep one")
