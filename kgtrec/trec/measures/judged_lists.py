"""Judged lists: all that a trec_eval measure can see of a run and its qrels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["UNJUDGED", "Lists"]

Ints = NDArray[np.int64]

UNJUDGED = 1 - 2**63
"""Relevance of a retrieved document that the qrels do not hold. Those that they do hold with this
number, or one below, are listed with the next: relevances below 0 all mean the same."""


@dataclass(frozen=True, eq=False)
class Lists:
    """Retrieved documents in trec_eval's order, by what they are worth, and all judgements.

    Attributes
    ----------
    queries : sequence of str, length n_queries
        In byte order.
    offsets : ndarray of int64, shape (n_queries + 1,)
        Documents of query i stand at ``offsets[i]`` to ``offsets[i + 1] - 1``, best first: score
        descending, then document descending in byte order.
    relevance : ndarray of int64, shape (n_documents,)
        As in the qrels; `UNJUDGED` for a document that they do not hold.
    scores : ndarray of float64, shape (n_documents,)
    retrieved : ndarray of int64, shape (n_queries,)
        Documents of the query in the run, those beyond the kept depth included; not those that
        -M and -J take away.
    judged_offsets : ndarray of int64, shape (n_queries + 1,)
    judged : ndarray of int64, shape (n_judged,)
        Relevance of every judged document of each query, highest first.
    tag : str
        Name of the run: the last column of its last line.
    unanswered : int
        Queries of the qrels that the run does not hold.
    unasked : int
        Queries of the run that the qrels do not hold.
    """

    queries: Sequence[str]
    offsets: Ints
    relevance: Ints
    scores: NDArray[np.float64]
    retrieved: Ints
    judged_offsets: Ints
    judged: Ints
    tag: str
    unanswered: int
    unasked: int

    def __len__(self) -> int:
        return len(self.queries)
