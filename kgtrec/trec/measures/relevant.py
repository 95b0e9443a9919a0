"""Judged lists (all that measures see of a run and its qrels) and their relevant documents.

All sums run over the documents of a query in the order of the list, one after the other, as in
trec_eval: the same bits, hence the same printed digits.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kgtrec import _core
from kgtrec._internal.arrays import Bools, Float64, Int64
from kgtrec._internal.csr import offsets_of, owners
from kgtrec.errors import InputError
from kgtrec.trec.files.text import UNJUDGED as UNJUDGED
from kgtrec.trec.measures.trec_measure import EvalOptions


class Signs(NamedTuple):
    """Signs whether a run is read as it was meant; see kgt_signs in csrc/trec.h.

    - documents, judged: Documents of the evaluated queries, and how many of them have a judgement.
    - rises: Number of documents that score more than the one before them in the run; -1 if a
      document of any query scores less, or if ranks confirm the scores.
    - n_wrong, n_reversed: Queries whose ranks contradict their scores, and those of these whose
      first rank has the lowest score.
    - first: Index of the first query with such ranks, or -1.
    - upper, lower, reversed: Two ranks of this query in the wrong order, and whether `upper` is its
      first rank, with the lowest score.
    - query: Name of this query.
    - run_document, qrels_document: A document of either, if none is judged.
    """

    documents: int
    judged: int
    rises: int
    n_wrong: int = 0
    n_reversed: int = 0
    first: int = -1
    upper: int = 0
    lower: int = 0
    reversed: int = 0
    query: str = ""
    run_document: str = ""
    qrels_document: str = ""

    @property
    def is_rising(self) -> bool:
        """Whether the scores of all lists rise, too often for chance."""
        return self.rises >= _core.RISES


class QueryMatch(NamedTuple):
    """Queries that a run and judgements share, and counts of the others.

    - numbers: Numbers of the shared queries among the judged ones.
    - n_run: Number of queries of the run.
    - foreign: The first query of the run in byte order that the judgements lack, or "".
    - signs: None if they are not known.
    """

    numbers: Sequence[int]
    n_run: int
    foreign: str = ""
    signs: Signs | None = None


@dataclass(frozen=True, eq=False)
class Lists:
    """Relevance of retrieved documents in trec_eval's order, and all judgements.

    - queries: In byte order.
    - offsets, int64 (n_queries + 1,): Query i has documents ``offsets[i]`` to ``offsets[i + 1] -
      1``, best first: score descending, then document descending in byte order.
    - relevance, int64 (n_documents,): As in the qrels; `UNJUDGED` for a document that they
      lack.
    - scores: float64 (n_documents,)
    - retrieved, int64 (n_queries,): Number of the query's documents in the run, also beyond the
      kept depth, but without those that -M and -J remove.
    - judged_offsets: int64 (n_queries + 1,)
    - judged, int64 (n_judged,): Relevance of every judged document of each query, highest first.
    - tag: Name of the run: the last column of its last line.
    - unanswered: Queries of the qrels that the run lacks.
    - unasked: Queries of the run that the qrels lack.
    - match: The queries that both have, if the run comes from a user.
    - tie_ends, int64 (n_documents,) or None: Last rank, from 1, of the tie of each listed document,
      if the scores do not tell it.
    - kept_ranks, int64 (n_documents,) or None: Rank from 0 of each listed document, ascending
      within a query, if lists of `retrieved` documents omit those that nobody judged.
    """

    queries: Sequence[Any]
    offsets: Int64
    relevance: Int64
    scores: NDArray[np.float64]
    retrieved: Int64
    judged_offsets: Int64
    judged: Int64
    tag: str = ""
    unanswered: int = 0
    unasked: int = 0
    kept_ranks: Int64 | None = None
    tie_ends: Int64 | None = None
    match: QueryMatch | None = None

    def __len__(self) -> int:
        return len(self.queries)

    @property
    def ranks(self) -> Int64:
        """Rank from 0 of each listed document, if all are listed."""
        return np.arange(len(self.relevance)) - self.offsets[owners(self.offsets)]

    def select(self, keep: Bools) -> Lists:
        """Keep the marked documents; `retrieved` is unchanged."""
        offsets = offsets_of(keep)[self.offsets]
        relevance, scores = self.relevance[keep], self.scores[keep]
        return replace(self, offsets=offsets, relevance=relevance, scores=scores)


def lists_of_judged(
    query: Int64,
    rank: Int64,
    n_judged: Int64,
    retrieved: Int64,
    grade: Int64 | None = None,
    best: Int64 | None = None,
) -> Lists:
    """Make lists of judged documents alone, by query and then rank; `best` is `Lists.judged`.

    By default every document has relevance 1.
    """
    return Lists(
        queries=range(len(n_judged)),
        offsets=offsets_of(np.bincount(query, minlength=len(n_judged))),
        relevance=np.ones(len(query), np.int64) if grade is None else grade,
        scores=np.zeros(0),
        retrieved=retrieved,
        judged_offsets=offsets_of(n_judged),
        judged=np.ones(int(n_judged.sum()), np.int64) if best is None else best,
        kept_ranks=rank,
    )


@dataclass(frozen=True, eq=False)
class Places:
    """Some documents of the lists, or of the judgements, grouped by query.

    - position, int64 (n,): Their positions in the flat array, ascending.
    - query, rank, int64 (n,): Number of the query, and rank within it from 0.
    - count, start, int64 (n_queries,): Number of documents per query, and index of its first among
      these n.
    """

    position: Int64
    query: Int64
    rank: Int64
    count: Int64
    start: Int64

    @cached_property
    def ordinal(self) -> Int64:
        """Number within the query: 1 for its first document, 2 for the second, ..."""
        return np.arange(1, len(self.query) + 1) - self.start[self.query]

    def total(self, terms: Float64) -> Float64:
        """Sum terms, one per document, over every query, in order."""
        sums = np.bincount(self.query, weights=terms, minlength=len(self.count))
        return sums.astype(np.float64, copy=False)  # without any document, they are integers

    def before(self, query: Int64, rank: Int64) -> Int64:
        """Count the documents of the given queries before the given ranks."""
        width = 1 + max(self.rank.max(initial=0), rank.max(initial=0))
        index = np.searchsorted(self.query * width + self.rank, query * width + rank)
        return index - self.start[query]


def find_places(mask: Bools, offsets: Int64, rank_of: Int64 | None = None) -> Places:
    """Find the documents where `mask` holds; query i has ``mask[offsets[i]:offsets[i + 1]]``."""
    position = np.flatnonzero(mask)
    query = np.searchsorted(offsets, position, side="right") - 1
    count = np.bincount(query, minlength=len(offsets) - 1)
    rank = position - offsets[query] if rank_of is None else rank_of[position]
    return Places(position, query, rank, count, np.cumsum(count) - count)


@dataclass(frozen=True, eq=False)
class View:
    """Judged lists under the options of an evaluation.

    - lists: After `narrow_lists`.
    - least: Least relevance of a relevant document, if not the options' level.
    """

    lists: Lists
    options: EvalOptions
    least: int | None = None

    @cached_property
    def memo(self) -> dict[Any, Any]:
        """Intermediate results that several measures share."""
        return {}

    @cached_property
    def length(self) -> Int64:
        """Number of listed documents of every query: those retrieved, or fewer after a cut."""
        lists = self.lists
        return np.diff(lists.offsets) if lists.kept_ranks is None else lists.retrieved

    @property
    def level(self) -> int:
        """Least relevance of a relevant document."""
        return self.options.level if self.least is None else self.least

    @property
    def num_ret(self) -> Int64:
        """Number of documents retrieved by every query."""
        return self.lists.retrieved

    @cached_property
    def num_rel(self) -> Int64:
        """Number of relevant documents of every query, retrieved or not."""
        return find_places(self.lists.judged >= self.level, self.lists.judged_offsets).count

    @property
    def num_rel_ret(self) -> Int64:
        """Number of relevant documents retrieved by every query."""
        return self.hits.count

    @property
    def documents(self) -> tuple[Any, ...]:
        """Documents, places (None: as listed), judgements and level, for the native core."""
        lists = self.lists
        judged = lists.judged_offsets, lists.judged, UNJUDGED, self.level
        return lists.offsets, lists.kept_ranks, lists.relevance, self.num_ret, *judged

    @cached_property
    def hits(self) -> Places:
        """Relevant documents in the lists."""
        return self._find(self.lists.relevance >= self.level)

    @cached_property
    def judged(self) -> Places:
        """Documents in the lists with a judgement of at least 0."""
        return self._find(self.lists.relevance >= 0)

    @cached_property
    def tie_ends(self) -> Int64:
        """Last rank, from 1, of the tie of each listed document: int64 (n_documents,)."""
        lists = self.lists
        if lists.tie_ends is not None:
            return lists.tie_ends
        assert lists.kept_ranks is None, "these lists do not tell which documents tie"
        with np.errstate(over="ignore"):
            scores = lists.scores if self.options.compat >= 10 else lists.scores.astype(np.float32)
        is_last = np.ones(len(scores), bool)
        np.not_equal(scores[1:], scores[:-1], out=is_last[:-1])
        is_last[lists.offsets[1:][lists.offsets[1:] > 0] - 1] = True
        last = np.flatnonzero(is_last)
        ends = last[np.searchsorted(last, np.arange(len(scores)))] + 1
        return np.asarray(ends - lists.offsets[owners(lists.offsets)], np.int64)

    def _find(self, mask: Bools) -> Places:
        """Find the listed documents where `mask` holds."""
        return find_places(mask, self.lists.offsets, self.lists.kept_ranks)

    @cached_property
    def highest(self) -> Int64:
        """Highest judged relevance of each query; -1 if none is at least 0."""
        lists = self.lists
        some = np.diff(lists.judged_offsets) > 0  # judgements of a query are sorted, highest first
        highest = np.full(len(lists), -1, np.int64)
        highest[some] = np.maximum(lists.judged[lists.judged_offsets[:-1][some]], -1)
        return highest

    def gaining(
        self, gains: Mapping[int, float], least: int = 1, exponential: bool = False
    ) -> tuple[Places, Float64]:
        """Find the listed documents that may gain: of relevance `least` or named in `gains`.

        Returns them with their gains.
        """
        relevance = self.lists.relevance
        mask = relevance >= least
        for level in gains:
            mask |= _at_level(relevance, level)
        documents = self._find(mask)
        return documents, gain_of(relevance[documents.position], gains, exponential)

    def ideal(
        self, gains: Mapping[int, float], exponential: bool = False
    ) -> tuple[Places, Float64]:
        """Make the best list of all judged documents, down to the last gain above 0, with its
        gains."""
        lists = self.lists
        judged = {level: gain for level, gain in gains.items() if level >= 0}
        top = gain_of(lists.judged, judged, exponential)
        if gains:
            # The judgements are sorted by relevance, which may differ from the order of gains.
            top = top[np.lexsort((-top, owners(lists.judged_offsets)))]
        best = find_places(top > 0, lists.judged_offsets)
        return best, top[best.position]


class TieEffect(NamedTuple):
    """Effect of the order of tied documents.

    - queries: Number of queries in which it changes a measure.
    - measure, most: The measure with the largest change, and the change; "" and 0 if none.
    """

    queries: int = 0
    measure: str = ""
    most: float = 0.0

    @classmethod
    def from_changes(cls, queries: int, most: Mapping[str, float]) -> TieEffect:
        """Summarise the effect on `queries` queries by the largest change of each measure."""
        name = max(most, key=most.__getitem__, default="")
        return cls(queries, name, most.get(name, 0.0))


NO_EFFECT = TieEffect()


HIGHEST_EXPONENT = 1000
"""Highest relevance r whose gain may be 2^r - 1: sums of many such gains are finite."""


def gain_of(relevance: Int64, gains: Mapping[int, float], exponential: bool = False) -> Float64:
    """Compute the gain of each relevance r, UNJUDGED included: r, or 2^r - 1 if `exponential`."""
    gain = np.maximum(relevance, 0).astype(np.float64)
    if exponential:
        highest = int(relevance.max(initial=0))
        if highest > HIGHEST_EXPONENT:
            raise InputError(
                f"relevance {highest} is too high for the gain 2^relevance - 1, which allows up to "
                f"{HIGHEST_EXPONENT}; number the levels from 1"
            )
        gain = np.ldexp(1.0, gain.astype(np.int64)) - 1.0
    for level, value in gains.items():
        gain[_at_level(relevance, level)] = value
    return gain


def _at_level(relevance: Int64, level: int) -> Bools:
    """Mark the relevances that a parameter's level means: -1 is not judged, -2 judged below 0."""
    if level >= 0:
        return relevance == level
    unjudged = relevance == UNJUDGED
    return unjudged if level == -1 else (level == -2) & (relevance < 0) & ~unjudged


def narrow_lists(lists: Lists, options: EvalOptions) -> Lists:
    """Apply -M and -J: cut the lists at `most` documents, then drop unjudged ones."""
    if options.most is not None and (lists.retrieved > options.most).any():
        lists = lists.select(lists.ranks < options.most)
        lists = replace(lists, retrieved=np.minimum(lists.retrieved, options.most))
    if options.judged_only:
        keep = lists.relevance >= 0
        if not keep.all():
            before = np.diff(lists.offsets)
            lists = lists.select(keep)
            lost = before - np.diff(lists.offsets)
            lists = replace(lists, retrieved=lists.retrieved - lost)
    return lists


def parts(lists: Lists, documents: int) -> Iterator[tuple[int, int, Lists]]:
    """Yield the lists in parts of about `documents` documents and judgements, at least one query
    each."""
    size = lists.offsets + lists.judged_offsets
    start = 0
    while start < len(lists):
        stop = int(np.searchsorted(size, size[start] + documents, side="right")) - 1
        stop = min(max(stop, start + 1), len(lists))
        whole = (start, stop) == (0, len(lists))
        yield start, stop, lists if whole else some_queries(lists, np.arange(start, stop))
        start = stop


def some_queries(lists: Lists, chosen: Int64) -> Lists:
    """Return the lists of some queries, whose numbers ascend."""
    size, judgements = np.diff(lists.offsets), np.diff(lists.judged_offsets)
    mask = np.zeros(len(lists), bool)
    mask[chosen] = True
    documents = np.repeat(mask, size)
    return replace(
        lists,
        queries=[lists.queries[i] for i in chosen.tolist()],
        offsets=offsets_of(size[chosen]),
        relevance=lists.relevance[documents],
        scores=lists.scores[documents],
        retrieved=lists.retrieved[chosen],
        judged_offsets=offsets_of(judgements[chosen]),
        judged=lists.judged[np.repeat(mask, judgements)],
    )


def ratio(part: Float64, whole: Float64 | Int64) -> Float64:
    """Divide; 0 where the whole is not above 0."""
    return np.divide(part, whole, out=np.zeros(len(whole)), where=whole > 0)


def log2(values: NDArray[np.floating[Any]]) -> Float64:
    """Compute the logarithm to base 2 by the C library on every machine; -inf for 0, NaN below."""
    # numpy's own may differ in the last bit between processors.
    unique, inverse = np.unique(values, return_inverse=True)
    table = [
        math.log2(v) if v > 0 else (-math.inf if v == 0 else math.nan) for v in unique.tolist()
    ]
    return np.array(table, np.float64)[inverse.reshape(-1)]


def discount(rank: Int64) -> Float64:
    """Compute ``log2(rank + 2)`` of ranks from 0, each once."""
    most = int(rank.max(initial=0))
    if most > len(rank):
        return log2(rank + 2.0)
    return np.array([math.log2(i + 2) for i in range(most + 1)])[rank]


def running_sum(terms: Float64, where: Places) -> Float64:
    """Compute running sums of the terms of each query, in order."""
    sums = terms.astype(np.float64)
    several = np.flatnonzero(where.count > 1)
    ends = where.start[several] + where.count[several]
    for start, end in zip(where.start[several].tolist(), ends.tolist(), strict=True):
        np.cumsum(sums[start:end], out=sums[start:end])
    return sums
