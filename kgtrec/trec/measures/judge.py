"""Judged lists of a run and qrels, from files (the quick way) or from what is in memory.

Both are ordered and judged by the same native code.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kgtrec import _core
from kgtrec.errors import UsageError
from kgtrec.trec.files.parse import (
    Fault,
    find_groups,
    gather,
    raise_first,
    read_documents,
    share_queries,
)
from kgtrec.trec.files.text import PathName, decoded, is_path, last_tag, read_text
from kgtrec.trec.measures.relevant import UNJUDGED, Lists

if TYPE_CHECKING:
    from kgtrec.trec.files.columns import QrelsData, RunData


Ints = NDArray[np.int64]

_ALL = 2**63 - 1


@dataclass(frozen=True, eq=False)
class JudgedQueries:
    """Qrels as they were read, to list any number of runs against.

    - path: For messages.
    - names: Queries in byte order.
    - offsets: int64 (n_queries + 1,)
    - judged, int64 (n_judged,): Relevance of every judged document of each query, highest first.
    """

    path: PathName
    names: list[bytes]
    offsets: Ints
    judged: Ints
    native: _core.TrecDocuments

    def __len__(self) -> int:
        return len(self.names)


@dataclass(frozen=True)
class _Cut:
    """Which documents of a query are listed; see `read_lists`."""

    depth: int | None = None
    keep_ties: bool = False
    judged_only: bool = False
    single: bool = False

    def __post_init__(self) -> None:
        if self.depth is not None and self.depth < 0:
            raise UsageError(f"depth={self.depth!r} is not a number of documents, from 0 on")

    def listed_of(self, documents: Ints) -> Ints:
        """Most documents that are listed of so many."""
        return documents if self.keep_ties else np.minimum(documents, self.most)

    @property
    def most(self) -> int:
        """The depth, or a number that no list reaches."""
        return _ALL if self.depth is None else min(self.depth, _ALL)


def read_judgements(qrels: PathName | QrelsData, *, threads: int | None = None) -> JudgedQueries:
    """Read qrels, lines ``query iter document relevance``, in any order.

    Lines that start with ``#`` are comments. A relevance is a whole number within 64 bits; what
    negative ones mean is up to the measures.
    """
    places: tuple[Any, Ints, Ints, Any]
    if not isinstance(qrels, (str, os.PathLike)):
        from kgtrec.trec.files.columns import pack_qrels

        packed = pack_qrels(qrels)
        places = packed.text, packed.offsets, packed.begin, packed.size
        return judgements("the qrels", packed.names, places, packed.values)
    groups = find_groups(read_text(qrels, is_run=False), threads)
    order = _byte_order(groups.names)
    documents = read_documents(groups, order, threads)
    names = [groups.names[i] for i in order.tolist()]
    places = groups.text.data, documents.offsets, documents.begin, documents.size
    return judgements(qrels, names, places, documents.values)


def judgements(
    path: PathName, names: list[bytes], places: tuple[Any, Ints, Ints, Any], relevance: Ints
) -> JudgedQueries:
    """Judged documents of queries in byte order: text, offsets, begin and size of the names."""
    if relevance.min(initial=0) <= UNJUDGED:  # that is taken
        relevance = np.maximum(relevance, UNJUDGED + 1)
    offsets = places[1]
    native = _core.TrecDocuments(*places, relevance, False)
    return JudgedQueries(path, names, offsets, ranked(offsets, relevance), native)


def _byte_order(names: list[bytes]) -> Ints:
    return np.array(sorted(range(len(names)), key=names.__getitem__))


def ranked(offsets: Ints, relevance: Ints) -> Ints:
    """Relevances of every query, highest first."""
    owner = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    return relevance[np.lexsort((-relevance, owner))]


def read_lists(
    qrels: PathName | QrelsData | JudgedQueries,
    run: PathName | RunData,
    *,
    depth: int | None = None,
    keep_ties: bool = False,
    judged_only: bool = False,
    single: bool = False,
    absent: bool = False,
    threads: int | None = None,
) -> Lists:
    """Read a run, lines ``query iter document rank score tag``, and judge it.

    The iter and rank columns are ignored, lines may come in any order, blank lines and comments
    (``#``) are skipped. Columns beyond the sixth are ignored, as trec_eval does, unless they look
    like a document name with white space in it. Every line is checked, those of queries without
    judgements too.
    """
    cut = _Cut(depth, keep_ties, judged_only, single)
    if not isinstance(qrels, JudgedQueries):
        if is_path(qrels) and is_path(run) and os.fspath(qrels) == "-" == os.fspath(run):
            raise UsageError("both files are standard input (-), which can be read only once")
        qrels = read_judgements(qrels, threads=threads)
    if isinstance(run, (str, os.PathLike)):
        documents = _documents_of_file(run, threads)
    else:
        documents = _documents_in_memory(run)
    lists, fault = _listed(qrels, documents, cut, absent, threads)
    documents.raise_first(fault)
    return lists


@dataclass(frozen=True)
class _Documents:
    """A run for the native core: its queries in byte order, and how many documents each may have.

    `raise_first` is told the first fault that was met, or None.
    """

    names: list[bytes]
    native: _core.TrecLines | _core.TrecDocuments
    work: Ints
    tag: str
    raise_first: Callable[[Fault | None], None]


def _documents_of_file(path: PathName, threads: int | None) -> _Documents:
    text = read_text(path, is_run=True)
    groups = find_groups(text, threads)
    order = _byte_order(groups.names)
    lines, work = groups.arrange(order)
    names = [groups.names[i] for i in order.tolist()]
    return _Documents(names, lines, work, last_tag(text), partial(raise_first, groups))


def _documents_in_memory(run: RunData) -> _Documents:
    from kgtrec.trec.files.columns import pack_run

    packed = pack_run(run)

    def raise_duplicate(fault: Fault | None) -> None:
        if fault is not None:
            raise packed.duplicate(fault[0] - 1)

    tag = getattr(run, "tag", "")
    work = np.diff(packed.offsets)
    return _Documents(packed.names, packed.native(), work, tag, raise_duplicate)


def _listed(
    qrels: JudgedQueries, documents: _Documents, cut: _Cut, absent: bool, threads: int | None
) -> tuple[Lists, Fault | None]:
    """Lists of a run's documents, and the first fault met."""
    names, work = documents.names, documents.work
    number = {name: i for i, name in enumerate(qrels.names)}
    judged_query = np.array([number.get(name, -1) for name in names], dtype=np.int64)
    shared = judged_query >= 0
    how = cut.most, cut.keep_ties, cut.judged_only, cut.single
    listing = _core.TrecListing(documents.native, qrels.native, judged_query, *how, UNJUDGED)
    capacity = np.where(shared, cut.listed_of(work), 0)
    sparse = cut.keep_ties and cut.depth is not None
    counts = np.zeros((2, len(names)), dtype=np.int64)
    relevance, scores, fault = _filled(listing, work, capacity, counts, sparse, threads)
    length, retrieved = counts
    queries = np.arange(len(qrels)) if absent else judged_query[shared]
    sizes = np.zeros((2, len(qrels)), dtype=np.int64)
    sizes[:, judged_query[shared]] = length[shared], retrieved[shared]
    judged_offsets, judged = _some_judged(qrels, queries)
    n_shared = int(shared.sum())
    lists = Lists(
        queries=[decoded(qrels.names[i]) for i in queries.tolist()],
        offsets=np.concatenate(([0], np.cumsum(sizes[0, queries]))),
        relevance=relevance,
        scores=scores,
        retrieved=sizes[1, queries],
        judged_offsets=judged_offsets,
        judged=judged,
        tag=documents.tag,
        unanswered=len(qrels) - n_shared,
        unasked=len(names) - n_shared,
    )
    return lists, fault


def _filled(
    listing: _core.TrecListing,
    work: Ints,
    capacity: Ints,
    counts: Ints,
    sparse: bool,
    threads: int | None,
) -> tuple[Ints, NDArray[np.float64], Fault | None]:
    """Relevance and score of all listed documents; sets how many each query lists and retrieves.

    `sparse` says that queries may fill little of their capacity, which is then there for a part of
    them at a time.
    """
    relevance = np.empty(0 if sparse else int(capacity.sum()), dtype=np.int64)
    scores = np.empty(len(relevance))
    pieces: dict[int, tuple[Ints, NDArray[np.float64]]] = {}

    def fill(first: int, stop: int, part: slice) -> Fault | None:
        length, retrieved = counts[:, first:stop]
        if not sparse:
            into = relevance[part], scores[part]
            return listing.lists(first, stop, *into, length, retrieved)
        size = part.stop - part.start
        into = np.empty(size, dtype=np.int64), np.empty(size)
        fault = listing.lists(first, stop, *into, length, retrieved)
        n = int(length.sum())
        pieces[first] = into[0][:n].copy(), into[1][:n].copy()
        return fault

    filled, fault = share_queries(fill, work, capacity, counts[0], threads)
    if sparse:
        parts = [pieces[first] for first in sorted(pieces)]
        relevance = np.concatenate([part[0] for part in parts] or [relevance])
        scores = np.concatenate([part[1] for part in parts] or [scores])
    else:
        relevance, scores = gather(filled, relevance, scores)
    return relevance, scores, fault


def _some_judged(qrels: JudgedQueries, queries: Ints) -> tuple[Ints, Ints]:
    """Judgements of some queries, ascending, as offsets and relevances."""
    if len(queries) == len(qrels):
        return qrels.offsets, qrels.judged
    counts = np.diff(qrels.offsets)
    chosen = np.zeros(len(qrels), dtype=bool)
    chosen[queries] = True
    offsets = np.concatenate(([0], np.cumsum(counts[queries])))
    return offsets, qrels.judged[np.repeat(chosen, counts)]
