"""The only module that calls pytrec_eval; it passes only safe input.

pytrec_eval rounds scores to float32, copies every string of every call, drops queries silently,
holds the GIL, and aborts or crashes on some inputs. So this module orders documents first, and
passes only

- dense integer ranks as scores: exact in float32 below 2**24, and without ties;
- queries and documents named by short integers instead of their labels;
- the documents that the requested measures can see, with every judged document counted;
- a part of the queries at a time, so that memory stays flat and other threads can run;
- relevance as 1, 0 or -1 for the requested level, except for measures of gains: no level can
  be beyond its tables, and no table is large;
- no empty list, no repeated cutoff and no cutoff of 0.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgtrec._internal.arrays import Float64, Int64
from kgtrec._internal.csr import offsets_of
from kgtrec._internal.locks import call_locked
from kgtrec.errors import UsageError
from kgtrec.trec.measures.formulas import compute_values
from kgtrec.trec.measures.names import Column, depth_needed
from kgtrec.trec.measures.relevant import UNJUDGED, Lists, View, some_queries
from kgtrec.trec.measures.trec_measure import EvalOptions
from kgtrec.trec.measures.values import values

Judged = dict[str, int]
"""Relevance of the judged documents of a query, by place in the list ("0" is the best). A judged
document that is not passed has any other name."""

HIGHEST_GRADE = 100
"""Largest relevance for measures of gains in pytrec_eval, which search all levels for every level
and query."""

_ZERO_WITHOUT_HITS = frozenset({"map", "map_cut", "ndcg_cut", "P", "recall", "success"})
"""Measures that are by definition 0 if nothing relevant is retrieved. Such queries, common with
weak models, are not passed."""

_LACKING = frozenset({"num_ret", "num_rel", "relstring", "yaap"})
"""Measures of trec_eval 9 that pytrec_eval lacks, or has only of what it receives."""

_PIECE_QUERIES = 5_000
_PIECE_DOCUMENTS = 500_000
_MOST_DOCUMENTS = 2**24 - 1
_LOCK = threading.RLock()  # pytrec_eval keeps its state in C globals


def can_supply(column: Column, options: EvalOptions) -> bool:
    """Return whether pytrec_eval has the measure with these parameters and options."""
    row = column.row
    if column.has_setting:
        return False
    if row.new or row.ours or row.format != "qrels" or column.measure in _LACKING or column.typed:
        return False
    if column.measure in ("iprec_at_recall", "11pt_avg") and options.compat >= 10:
        return False
    if row.kind == "point":  # returned names have two decimals, cut at 8 letters
        cutoff = column.cutoff or 0.0
        return cutoff < 1e5 and abs(cutoff * 100 - round(cutoff * 100)) < 1e-9
    # Only this measure of gains looks at the level.
    return column.measure != "Rndcg" or options.level == 1


def foreign_values(
    lists: Lists, columns: Sequence[Column], options: EvalOptions
) -> dict[str, NDArray[Any]]:
    """Compute the same bits as `values`, by pytrec_eval if it has the measure.

    Measures of gains are our own if a relevance is too high for it.
    """
    steep = int(lists.judged.max(initial=0)) > HIGHEST_GRADE
    fed = [c for c in columns if can_supply(c, options) and not (steep and c.row.graded)]
    results: dict[str, NDArray[Any]] = {**pytrec_eval_values(lists, fed, options)}
    results |= values(lists, [c for c in columns if c.name not in results], options)
    return {column.name: results[column.name] for column in columns if column.name in results}


def pytrec_eval_values(
    lists: Lists, columns: Sequence[Column], options: EvalOptions
) -> dict[str, Float64]:
    """Compute measures of every query by pytrec_eval.

    Shape: float64 (n_queries,).
    """
    rows = {column.name: np.zeros(len(lists)) for column in columns}
    if columns and all(column.measure in _ZERO_WITHOUT_HITS for column in columns):
        chosen = _with_hits(lists, options.level)
        if len(chosen) < len(lists):
            fed = pytrec_eval_values(some_queries(lists, chosen), columns, options)
            for name in rows:
                rows[name][chosen] = fed[name]
            return rows
    graded = [column for column in columns if column.row.graded]
    plain = [column for column in columns if not column.row.graded]
    if options.level == 1 and graded:  # relevant means the same to both
        graded, plain = list(columns), []
    for group, level in ((plain, options.level), (graded, None)):
        depth = depth_needed(group)
        handed = np.diff(lists.offsets)
        handed = handed if depth is None else np.minimum(handed, depth)
        relevance, judged = (
            _encode_relevance(lists.relevance, level),
            _encode_relevance(lists.judged, level),
        )
        for start, stop in _pieces(handed if group else handed[:0]):
            qrels, run = _build_input(relevance, judged, lists, handed, range(start, stop))
            results = _call(qrels, run, group)
            numbers = list(map(int, results))
            for name in {column.name for column in group}:
                rows[name][numbers] = [row[name] for row in results.values()]
    empty = np.flatnonzero(np.diff(lists.offsets) == 0)
    if len(empty):  # pytrec_eval must not receive them
        for name, row in compute_values(View(lists, options), columns).items():
            rows[name][empty] = row[empty]
    return rows


def _with_hits(lists: Lists, level: int) -> Int64:
    """Return the queries that retrieve a document that is relevant, or has a gain."""
    hits = (lists.relevance >= min(level, 1)) & (lists.relevance != UNJUDGED)
    return np.flatnonzero(np.diff(offsets_of(hits)[lists.offsets]))


def _encode_relevance(relevance: Int64, level: int | None) -> Int64:
    """Encode relevance for pytrec_eval.

    1 is relevant (without `level`: the relevance), 0 judged and not relevant, -1 in the pool and
    not judged; UNJUDGED stays.
    """
    codes = relevance if level is None else (relevance >= level).astype(np.int64)
    return np.where(relevance == UNJUDGED, UNJUDGED, np.where(relevance < 0, -1, codes))


def _pieces(handed: Int64) -> Iterator[tuple[int, int]]:
    """Yield ranges of queries of bounded size; at least one query each."""
    if len(handed) and handed.max() > _MOST_DOCUMENTS:
        raise UsageError(
            f"a query has {handed.max():,} documents, but measures without a cutoff allow at most "
            f"{_MOST_DOCUMENTS:,}; ask for measures with a cutoff, such as map_cut_1000"
        )
    total = offsets_of(handed)
    start = 0
    while start < len(handed):
        stop = int(np.searchsorted(total, total[start] + _PIECE_DOCUMENTS, side="right")) - 1
        stop = max(start + 1, min(stop, start + _PIECE_QUERIES, len(handed)))
        yield start, stop
        start = stop


def _build_input(
    relevance: Int64, judged: Int64, lists: Lists, handed: Int64, queries: range
) -> tuple[dict[str, Judged], dict[str, dict[str, float]]]:
    """Build qrels and run of queries: `handed` documents of each; the others count as not
    retrieved."""
    ranked: dict[int, dict[str, float]] = {}
    run: dict[str, dict[str, float]] = {}
    qrels: dict[str, Judged] = {}
    first, last = queries.start, queries.stop
    counts, starts = handed[first:last].tolist(), lists.offsets[first:last].tolist()
    bounds = pairwise(lists.judged_offsets[first : last + 1].tolist())
    for query, count, start, (low, high) in zip(queries, counts, starts, bounds, strict=True):
        if not count:
            continue
        if count not in ranked:
            ranked[count] = {str(rank): float(count - rank) for rank in range(count)}
        shown = relevance[start : start + count]
        known = np.flatnonzero(shown != UNJUDGED)
        judgements = dict(zip(map(str, known.tolist()), shown[known].tolist(), strict=True))
        rest = judged[low:high].tolist()
        for level in judgements.values():
            rest.remove(level)
        judgements.update((f"u{i}", level) for i, level in enumerate(rest))
        # Without a judgement of at least 0, pytrec_eval keeps the previous query's levels. One
        # non-relevant document that was not retrieved changes nothing if nothing is relevant.
        if max(judgements.values(), default=-1) < 0:
            judgements["none"] = 0
        run[str(query)], qrels[str(query)] = ranked[count], judgements
    return qrels, run


def _call(
    qrels: dict[str, Judged], run: dict[str, dict[str, float]], columns: Sequence[Column]
) -> dict[str, dict[str, float]]:
    """Evaluate columns by pytrec_eval."""
    if not run:
        return {}
    import pytrec_eval

    parameters: dict[str, list[str]] = {}
    for column in columns:
        parameters.setdefault(column.measure, []).extend(
            [column.parameter] * bool(column.parameter)
        )
    names = {
        measure + ("." + ",".join(cuts) if cuts else "") for measure, cuts in parameters.items()
    }
    return call_locked(_LOCK, lambda: pytrec_eval.RelevanceEvaluator(qrels, names).evaluate(run))
