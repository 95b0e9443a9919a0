"""Sets of the best candidates, from ranks alone: a number of best candidates per question."""

from __future__ import annotations

from typing import Any

import numpy as np

from kgtrec._internal.arrays import Bools, Float64, Int64
from kgtrec._internal.csr import number_values
from kgtrec.ranking.ranks import Ranks


def judge_best(ranks: Ranks, most: Float64, ties: str) -> tuple[Float64, Float64, Float64]:
    """Return which answers are among the best candidates, and the sizes of these sets.

    Parameters
    ----------
    ranks : Ranks
        With macro counts g (greater) and e (equal) of each answer.
    most : ndarray of float64, shape (Q,)
        How many best candidates each set has; infinity: all.
    ties : {"all", "none", "expected"}
        Candidates that tie at the border are all in the set, or none of them; or as many as fit,
        in every order with the same probability.

    Returns
    -------
    inside : ndarray of float64, shape (n,)
    sizes : ndarray of float64, shape (Q,)
        Ties at the border count if an answer is among them: ranks do not show other ties.
    any_and_all : ndarray of float64, shape (2, Q)
    """
    question = np.asarray(number_values(ranks.question)[1], np.int64)
    greater, tied = ranks.macro_greater, ranks.macro_equal + 1
    n_left = np.maximum(most[question] - greater, 0)  # entries for the answer and its ties
    n_left[ranks.macro_answer_nan] = 0  # an answer without a score is in no set
    inside = np.minimum(n_left / tied, 1.0)
    sizes = np.full(len(most), np.inf)
    np.minimum.at(sizes, question, ranks.macro_candidates.astype(np.float64))
    sizes = np.minimum(sizes, most)
    split = (n_left > 0) & (n_left < tied)
    if ties == "expected":
        return inside, sizes, _in_any_order(question, n_left, tied, len(most))
    sizes[question[split]] = (greater + (tied if ties == "all" else 0))[split]
    inside = (inside > 0 if ties == "all" else inside == 1).astype(np.float64)
    return inside, sizes, any_and_all(inside > 0, question, len(most))


def any_and_all(inside: Bools, question: Int64, n_questions: int) -> Float64:
    """Return whether any, and whether all answers are in the sets, float64 (2, Q)."""
    hits = np.bincount(question, inside, n_questions)
    return np.stack([hits > 0, hits == np.bincount(question, minlength=n_questions)]).astype(float)


def _in_any_order(question: Int64, n_left: Float64, tied: Int64, n_questions: int) -> Float64:
    """Return the probabilities that any, and that all answers are in the sets, float64 (2, Q).

    Answers before the border are in, those behind it are out. At the border, `n_left` of `tied`
    candidates are in, of which m are answers: no or all answers among them are hypergeometric.
    """
    within, beyond = n_left >= tied, n_left <= 0
    shares = any_and_all(within, question, n_questions)
    rows = np.flatnonzero(~within & ~beyond)
    n_tied = np.bincount(question[rows], minlength=n_questions)
    first = rows[np.unique(question[rows], return_index=True)[1]]
    at, size, fits = question[first], tied[first].astype(float), n_left[first]
    m = n_tied[at].astype(float)
    none = np.exp(_log_ways(size - m, fits) - _log_ways(size, fits))
    every = np.exp(_log_ways(size - m, fits - m) - _log_ways(size, fits))
    lost = np.bincount(question, beyond, n_questions)[at] > 0
    shares[:, at] = [np.where(shares[0, at] > 0, 1.0, 1 - none), np.where(lost, 0.0, every)]
    return shares


def _log_ways(n: Any, k: Any) -> Float64:
    """Return the logarithm of the number of ways to choose k of n; -infinity if there are none."""
    from scipy.special import gammaln

    possible = (k >= 0) & (k <= n)
    k = np.where(possible, k, 0)
    ways = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
    return np.asarray(np.where(possible, ways, -np.inf))
