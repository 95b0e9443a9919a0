"""The only room that speaks to pytrec_eval, and it hands over no more than is safe.

pytrec_eval rounds scores to float32, copies every string of every call, drops queries silently,
holds the GIL, and aborts or crashes on some inputs. So the order is settled here first (score in
float64 descending, then document descending in byte order), and what it receives is made of

- dense integer ranks as scores: exact in float32 below 2**24, and without ties;
- queries and documents named by short integers, whatever bytes the labels hold;
- only the documents that the asked measures can see, every judged document being counted;
- a piece of the queries at a time, so that memory stays flat and other threads get their turn;
- never an empty list, a cutoff twice or of 0, or a relevance that its tables would choke on.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from kgtrec.errors import UsageError
from kgtrec.trec.table import Column

__all__ = ["Judged", "depth_seen", "fill", "pieces"]

Floats = NDArray[np.float64]
Judged = dict[str, int]
"""Relevance of the judged documents of a query, by place in the list ("0" is the best); a judged
document that is not handed over has any other name."""

_FLOOR = 1e-5  # trec_eval's floor for geometric means
_PIECE_QUERIES = 5_000
_PIECE_DOCUMENTS = 500_000
_MOST_DOCUMENTS = 2**24 - 1
_LOCK = threading.Lock()  # pytrec_eval keeps its state in C globals


def depth_seen(columns: Sequence[Column]) -> int:
    """Documents of a query that some column looks at; one more than is possible if all."""
    seen = [column.sees for column in columns]
    return max((_MOST_DOCUMENTS + 1 if one is None else one for one in seen), default=1)


def pieces(handed: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Ranges of queries of bounded size; at least one query each."""
    if len(handed) and handed.max() > _MOST_DOCUMENTS:
        raise UsageError(
            f"a query has {handed.max():,} documents and measures without a cutoff look at all; "
            f"up to {_MOST_DOCUMENTS:,} are possible: ask for measures such as map_cut_1000"
        )
    total = np.concatenate(([0], np.cumsum(handed)))
    start = 0
    while start < len(handed):
        stop = int(np.searchsorted(total, total[start] + _PIECE_DOCUMENTS, side="right")) - 1
        stop = max(start + 1, min(stop, start + _PIECE_QUERIES, len(handed)))
        yield start, stop
        start = stop


def fill(
    values: dict[str, Floats],
    columns: Sequence[Column],
    start: int,
    handed: Sequence[int],
    judged: Sequence[Judged],
) -> None:
    """Values of queries from `start` on; `handed` documents of each reach pytrec_eval."""
    lists: dict[int, dict[str, float]] = {}
    run: dict[str, dict[str, float]] = {}
    qrels: dict[str, Judged] = {}
    for query, (count, relevance) in enumerate(zip(handed, judged, strict=True), start):
        if not count:
            for column in columns:
                values[column.name][query] = _unanswered(column, relevance)
            continue
        if count not in lists:
            lists[count] = {str(place): float(count - place) for place in range(count)}
        run[str(query)] = lists[count]
        # Without a judgement from 0 up, pytrec_eval keeps the levels of the query before; one
        # non-relevant document that was not retrieved changes nothing where nothing is relevant.
        none = max(relevance.values(), default=-1) < 0
        qrels[str(query)] = {**relevance, "none": 0} if none else relevance
    for key, row in _call(qrels, run, columns).items():
        for name, column_values in values.items():
            column_values[int(key)] = row[name]


def _unanswered(column: Column, relevance: Judged) -> float:
    """Value for a query with judgements and an empty list, which pytrec_eval must not meet."""
    if column.family == "num_q":
        return 1.0
    if column.family == "num_rel":
        return float(sum(grade > 0 for grade in relevance.values()))
    return math.log(_FLOOR) if column.family.startswith("gm_") else 0.0


def _call(
    qrels: dict[str, Judged], run: dict[str, dict[str, float]], columns: Sequence[Column]
) -> dict[str, dict[str, float]]:
    if not run:
        return {}
    import pytrec_eval

    asked: dict[str, list[str]] = {}
    for column in columns:
        asked.setdefault(column.family, []).extend([column.parameter] * bool(column.parameter))
    names = {family + ("." + ",".join(cuts) if cuts else "") for family, cuts in asked.items()}
    with _LOCK:
        return pytrec_eval.RelevanceEvaluator(qrels, names).evaluate(run)
