"""Judged lists from run and qrels files: the quick way from text to what measures look at."""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kgtrec import _core
from kgtrec.errors import UsageError
from kgtrec.trec.documents import (
    Fault,
    find_groups,
    gather,
    raise_first,
    read_documents,
    share_queries,
)
from kgtrec.trec.lists import UNJUDGED, Lists
from kgtrec.trec.text import PathName, Text, decoded, read_text

__all__ = ["Judgements", "read_judgements", "read_lists"]

Ints = NDArray[np.int64]

_ALL = 2**63 - 1


@dataclass(frozen=True, eq=False)
class Judgements:
    """Qrels as they were read, to list any number of runs against.

    Attributes
    ----------
    path : str or path-like
    names : list of bytes, length n_queries
        Queries in byte order.
    offsets : ndarray of int64, shape (n_queries + 1,)
    judged : ndarray of int64, shape (n_judged,)
        Relevance of every judged document of each query, highest first.
    """

    path: PathName
    names: list[bytes]
    offsets: Ints
    judged: Ints
    native: _core.TrecDocuments

    def __len__(self) -> int:
        return len(self.names)


@dataclass(frozen=True)
class Cut:
    """Which documents of a query are listed; see `read_lists`."""

    limit: int | None = None
    depth: int | None = None
    keep_ties: bool = False
    judged_only: bool = False
    single: bool = False

    def __post_init__(self) -> None:
        for name in ("limit", "depth"):
            value = getattr(self, name)
            if value is not None and value < 0:
                raise UsageError(f"{name}={value!r} is not a number of documents, from 0 on")

    def room(self, documents: Ints) -> Ints:
        """Most documents that are listed of so many."""
        most = np.minimum(documents, _ALL if self.limit is None else self.limit)
        return most if self.keep_ties or self.depth is None else np.minimum(most, self.depth)


def read_judgements(path: PathName, *, threads: int | None = None) -> Judgements:
    """Read qrels, lines ``query iter document relevance``, in any order.

    Lines that start with ``#`` are comments. A relevance is a whole number within 64 bits; what
    negative ones mean is up to the measures.

    Parameters
    ----------
    path : str or path-like
        The file; unpacked if its name ends in .gz or .zst; ``-`` for standard input.
    threads : int, optional
        By default, the cores that this process may use.

    Raises
    ------
    FileError
        Naming the first line that is wrong: columns, a blank line, a relevance that is no whole
        number; or the file cannot be read or holds nothing. `DuplicateDocument` for a document
        that a query has twice.
    """
    groups = find_groups(read_text(path, is_run=False), threads)
    order = np.array(sorted(range(len(groups.names)), key=groups.names.__getitem__))
    found = read_documents(groups, order, threads)
    native = _core.TrecDocuments(
        groups.text.data, found.offsets, found.begin, found.size, found.values, False
    )
    names = [groups.names[i] for i in order.tolist()]
    return Judgements(path, names, found.offsets, ranked(found.offsets, found.values), native)


def ranked(offsets: Ints, relevance: Ints) -> Ints:
    """Relevances of every query, highest first."""
    owner = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    # No minus: the lowest number has none.
    return relevance[np.lexsort((~relevance, owner))]


def read_lists(
    qrels: PathName | Judgements,
    run: PathName,
    *,
    limit: int | None = None,
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

    Parameters
    ----------
    qrels : str, path-like or Judgements
        See `read_judgements`, which spares reading them again for another run.
    run : str or path-like
        The file; unpacked if its name ends in .gz or .zst; ``-`` for standard input.
    limit : int, optional
        trec_eval's -M: the others are gone, and not counted as retrieved.
    depth : int, optional
        So many documents of a query are listed, after all other cuts; `retrieved` counts on.
    keep_ties : bool
        List all that score the same as the last listed, too.
    judged_only : bool
        trec_eval's -J: documents without a relevance from 0 up are dropped, after limit and
        before depth, and not counted as retrieved.
    single : bool
        Round scores to float32 before they are compared, as trec_eval 9 does.
    absent : bool
        trec_eval's -c: queries of the qrels that the run lacks come in with an empty list.
    threads : int, optional
        By default, the cores that this process may use. The result is the same.

    Returns
    -------
    Lists
        Of the queries in both files; empty if there are none.

    Raises
    ------
    FileError
        Naming the first line that is wrong: columns, a score that is no decimal number or
        infinity; or a file cannot be read or holds nothing. `DuplicateDocument` for a document
        that a query has twice.
    UsageError
        Standard input for both files, or a negative limit or depth.
    """
    cut = Cut(limit, depth, keep_ties, judged_only, single)
    if not isinstance(qrels, Judgements):
        if os.fspath(qrels) == "-" == os.fspath(run):
            raise UsageError("both files are standard input (-), which can be read only once")
        qrels = read_judgements(qrels, threads=threads)
    text = read_text(run, is_run=True)
    groups = find_groups(text, threads)
    order = np.array(sorted(range(len(groups.names)), key=groups.names.__getitem__))
    lines, work = groups.arrange(order)
    names = [groups.names[i] for i in order.tolist()]
    lists, fault = list_documents(qrels, names, lines, work, cut, absent, last_tag(text), threads)
    raise_first(groups, fault)
    return lists


def list_documents(
    qrels: Judgements,
    names: list[bytes],
    documents: _core.TrecLines | _core.TrecDocuments,
    work: Ints,
    cut: Cut,
    absent: bool,
    tag: str,
    threads: int | None,
) -> tuple[Lists, Fault | None]:
    """Lists of a run's documents, its queries in byte order; and the first fault met."""
    number = {name: i for i, name in enumerate(qrels.names)}
    judged_query = np.array([number.get(name, -1) for name in names], dtype=np.int64)
    shared = judged_query >= 0
    listing = _core.TrecListing(
        documents,
        qrels.native,
        judged_query,
        _ALL if cut.limit is None else cut.limit,
        _ALL if cut.depth is None else cut.depth,
        cut.keep_ties,
        cut.judged_only,
        cut.single,
        UNJUDGED,
    )
    room = np.where(shared, cut.room(work), 0)
    sparse = cut.keep_ties and cut.depth is not None
    counts = np.zeros((2, len(names)), dtype=np.int64)
    relevance, scores, fault = _filled(listing, work, room, counts, sparse, threads)
    length, retrieved = counts
    kept = np.arange(len(qrels)) if absent else judged_query[shared]
    sizes = np.zeros((2, len(qrels)), dtype=np.int64)
    sizes[:, judged_query[shared]] = length[shared], retrieved[shared]
    judged_offsets, judged = _some_judged(qrels, kept)
    n_shared = int(shared.sum())
    lists = Lists(
        queries=[decoded(qrels.names[i]) for i in kept.tolist()],
        offsets=np.concatenate(([0], np.cumsum(sizes[0, kept]))),
        relevance=relevance,
        scores=scores,
        retrieved=sizes[1, kept],
        judged_offsets=judged_offsets,
        judged=judged,
        tag=tag,
        unanswered=len(qrels) - n_shared,
        unasked=len(names) - n_shared,
    )
    return lists, fault


def _filled(
    listing: _core.TrecListing,
    work: Ints,
    room: Ints,
    counts: Ints,
    sparse: bool,
    threads: int | None,
) -> tuple[Ints, NDArray[np.float64], Fault | None]:
    """Relevance and score of all listed documents; sets how many each query lists and retrieves.

    `sparse` says that queries may fill little of their room, which is then there for a part of
    them at a time.
    """
    relevance = np.empty(0 if sparse else int(room.sum()), dtype=np.int64)
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

    filled, fault = share_queries(fill, work, room, counts[0], threads)
    if sparse:
        parts = [pieces[first] for first in sorted(pieces)]
        relevance = np.concatenate([part[0] for part in parts] or [relevance])
        scores = np.concatenate([part[1] for part in parts] or [scores])
    else:
        relevance, scores = gather(filled, relevance, scores)
    return relevance, scores, fault


def _some_judged(qrels: Judgements, kept: Ints) -> tuple[Ints, Ints]:
    """Judgements of some queries, ascending, as offsets and relevances."""
    if len(kept) == len(qrels):
        return qrels.offsets, qrels.judged
    counts = np.diff(qrels.offsets)
    chosen = np.zeros(len(qrels), dtype=bool)
    chosen[kept] = True
    offsets = np.concatenate(([0], np.cumsum(counts[kept])))
    return offsets, qrels.judged[np.repeat(chosen, counts)]


def last_tag(text: Text) -> str:
    """The sixth column of the last line that is neither blank nor a comment, or ""."""
    end = len(text.data) - 1
    while end > text.start:
        start = text.data.rfind(b"\n", text.start, end) + 1 or text.start
        fields = bytes(text.data[start:end]).split(maxsplit=6)
        if len(fields) > 5 and not fields[0].startswith(b"#"):
            return decoded(fields[5])
        end = start - 1
    return ""
