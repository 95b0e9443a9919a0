"""Judged lists for the tests of trec measures, from relevances in order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kgtrec.trec.measures.relevant import UNJUDGED, Lists

Query = tuple[Sequence[int | None], Sequence[int]]


def lists_of(
    queries: Sequence[Query],
    scores: Sequence[float] | None = None,
    retrieved: Sequence[int] | None = None,
) -> Lists:
    """Lists of queries: relevances in order, and those of all judged documents.

    None is a document without a judgement. By default, scores decrease and nothing was cut.
    """
    shown = [UNJUDGED if r is None else r for levels, _ in queries for r in levels]
    lengths = [len(levels) for levels, _ in queries]
    levels = [r for _, judged in queries for r in sorted(judged, reverse=True)]
    return Lists(
        queries=[f"q{i:05}" for i in range(len(queries))],
        offsets=np.cumsum([0, *lengths]).astype(np.int64),
        relevance=np.array(shown, np.int64),
        scores=np.array(range(0, -len(shown), -1) if scores is None else scores, np.float64),
        retrieved=np.array(lengths if retrieved is None else retrieved, np.int64),
        judged_offsets=np.cumsum([0, *(len(judged) for _, judged in queries)]).astype(np.int64),
        judged=np.array(levels, np.int64),
        tag="run",
        unanswered=0,
        unasked=0,
    )
