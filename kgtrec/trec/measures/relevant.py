"""Relevant documents of judged lists by query and rank, as the measures need them.

All sums run over the documents of a query in the order of the list, one after the other, as in
trec_eval: the same bits, hence the same printed digits.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgtrec.trec.measures.judged_lists import UNJUDGED, Lists
from kgtrec.trec.measures.options import EvalOptions

__all__ = ["Places", "View", "log2", "narrowed", "parts", "running_sum"]

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Places:
    """Some documents of the lists, or of the judgements, grouped by query.

    Attributes
    ----------
    position : ndarray of int64, shape (n,)
        Where they stand in the flat array, ascending.
    query, place : ndarray of int64, shape (n,)
        Number of the query, and rank within it from 0.
    count, start : ndarray of int64, shape (n_queries,)
        How many a query has, and where its first one stands among these n.
    """

    position: Ints
    query: Ints
    place: Ints
    count: Ints
    start: Ints

    @cached_property
    def ordinal(self) -> Ints:
        """1 for the first one of its query, 2 for the second, ..."""
        return np.arange(1, len(self.query) + 1) - self.start[self.query]

    def total(self, terms: Floats) -> Floats:
        """Sum of a term each over every query, in order."""
        sums = np.bincount(self.query, weights=terms, minlength=len(self.count))
        return sums.astype(np.float64, copy=False)  # without any document, they are integers

    def within(self, depth: int) -> Ints:
        """How many of each query stand among the first `depth`."""
        return np.bincount(self.query[self.place < depth], minlength=len(self.count))

    def before(self, query: Ints, place: Ints) -> Ints:
        """How many of the given queries stand before the given places."""
        width = 1 + max(self.place.max(initial=0), place.max(initial=0))
        found = np.searchsorted(self.query * width + self.place, query * width + place)
        return found - self.start[query]


def places(mask: Bools, offsets: Ints) -> Places:
    """The documents where `mask` holds; query i has ``mask[offsets[i]:offsets[i + 1]]``."""
    position = np.flatnonzero(mask)
    query = np.searchsorted(offsets, position, side="right") - 1
    count = np.bincount(query, minlength=len(offsets) - 1)
    return Places(position, query, position - offsets[query], count, np.cumsum(count) - count)


@dataclass(frozen=True, eq=False)
class View:
    """Judged lists under the options of an evaluation.

    Attributes
    ----------
    lists : Lists
        After `narrowed`.
    options : EvalOptions
    """

    lists: Lists
    options: EvalOptions

    @cached_property
    def memo(self) -> dict[Any, Any]:
        """Room for what several measures share."""
        return {}

    @cached_property
    def length(self) -> Ints:
        """Documents of every query at hand: those retrieved, or fewer if they were cut."""
        return np.diff(self.lists.offsets)

    @property
    def num_ret(self) -> Ints:
        """Documents retrieved by every query."""
        return self.lists.retrieved

    @cached_property
    def num_rel(self) -> Ints:
        """Relevant documents of every query, retrieved or not."""
        return self._judged_from(self.options.level).count

    @property
    def num_rel_ret(self) -> Ints:
        """Relevant documents retrieved."""
        return self.hits.count

    @cached_property
    def num_nonrel(self) -> Ints:
        """Judged documents of every query that are not relevant."""
        return self._judged_from(0).count - self.num_rel

    @cached_property
    def hits(self) -> Places:
        """Relevant documents in the lists."""
        return places(self.lists.relevance >= self.options.level, self.lists.offsets)

    @cached_property
    def judged(self) -> Places:
        """Documents in the lists with a judgement from 0 up."""
        return places(self.lists.relevance >= 0, self.lists.offsets)

    @cached_property
    def misses(self) -> Places:
        """Judged documents in the lists that are not relevant."""
        relevance = self.lists.relevance
        return places((relevance >= 0) & (relevance < self.options.level), self.lists.offsets)

    @cached_property
    def pooled(self) -> Places:
        """Documents in the lists whose judgement is below 0: in the pool, but not judged."""
        relevance = self.lists.relevance
        return places((relevance < 0) & (relevance > UNJUDGED), self.lists.offsets)

    def _judged_from(self, level: int) -> Places:
        return places(self.lists.judged >= level, self.lists.judged_offsets)


def narrowed(lists: Lists, options: EvalOptions) -> Lists:
    """The lists after -M and -J: cut at `most` documents, then without unjudged ones."""
    keep = None
    if options.most is not None and (lists.retrieved > options.most).any():
        place = np.arange(len(lists.relevance)) - np.repeat(
            lists.offsets[:-1], np.diff(lists.offsets)
        )
        lists = _kept(lists, place < options.most)
        lists = replace(lists, retrieved=np.minimum(lists.retrieved, options.most))
    if options.judged_only:
        keep = lists.relevance >= 0
        if not keep.all():
            before = np.diff(lists.offsets)
            lists = _kept(lists, keep)
            lost = before - np.diff(lists.offsets)
            lists = replace(lists, retrieved=lists.retrieved - lost)
    return lists


def _kept(lists: Lists, keep: Bools) -> Lists:
    offsets = np.concatenate(([0], np.cumsum(keep)))[lists.offsets]
    return replace(
        lists, offsets=offsets, relevance=lists.relevance[keep], scores=lists.scores[keep]
    )


def parts(lists: Lists, documents: int) -> Iterator[tuple[int, int, Lists]]:
    """The lists in pieces of about so many documents and judgements, at least one query each."""
    size = lists.offsets + lists.judged_offsets
    start = 0
    while start < len(lists):
        stop = int(np.searchsorted(size, size[start] + documents, side="right")) - 1
        stop = min(max(stop, start + 1), len(lists))
        yield start, stop, _slice(lists, start, stop)
        start = stop


def _slice(lists: Lists, start: int, stop: int) -> Lists:
    if (start, stop) == (0, len(lists)):
        return lists
    first, last = lists.offsets[start], lists.offsets[stop]
    least, most = lists.judged_offsets[start], lists.judged_offsets[stop]
    return replace(
        lists,
        queries=lists.queries[start:stop],
        offsets=lists.offsets[start : stop + 1] - first,
        relevance=lists.relevance[first:last],
        scores=lists.scores[first:last],
        retrieved=lists.retrieved[start:stop],
        judged_offsets=lists.judged_offsets[start : stop + 1] - least,
        judged=lists.judged[least:most],
    )


def log2(values: NDArray[np.floating[Any]]) -> Floats:
    """Logarithm to base 2, from the C library on every machine; -inf for 0, NaN below."""
    # numpy's own may differ in the last bit from one processor to the next.
    unique, inverse = np.unique(values, return_inverse=True)
    table = [
        math.log2(v) if v > 0 else (-math.inf if v == 0 else math.nan) for v in unique.tolist()
    ]
    return np.array(table, np.float64)[inverse.reshape(-1)]


def running_sum(terms: Floats, where: Places) -> Floats:
    """Sum of the terms of a query up to each of them, it included, in order."""
    sums = terms.astype(np.float64)
    several = np.flatnonzero(where.count > 1)
    ends = where.start[several] + where.count[several]
    for start, end in zip(where.start[several].tolist(), ends.tolist(), strict=True):
        np.cumsum(sums[start:end], out=sums[start:end])
    return sums
