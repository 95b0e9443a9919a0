"""Questions by their ranks: sets of a number of best candidates per question."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from kgtrec._internal.argument_names import argument
from kgtrec._internal.arrays import Bools, Float64, Int64
from kgtrec._internal.csr import Csr, number_values
from kgtrec.errors import UsageError
from kgtrec.ranking.ranks import Ranks
from kgtrec.study.sets.policies import Policy


class RankedQuestions:
    """Questions, and how many candidates precede each of their answers.

    - ranks: The instances (answers), with their macro counts.
    - question, int64 (n,): Question of each answer, numbered without gaps.
    """

    def __init__(self, ranks: Ranks) -> None:
        if ranks.macro_unlisted is not None and ranks.macro_unlisted.any():
            raise UsageError(
                f"{int(ranks.macro_unlisted.sum()):,} answers are beyond their predicted lists, so "
                "their places are unknown; judge the lists themselves by the policy lists"
            )
        self.ranks = ranks
        self.question = np.asarray(number_values(ranks.question)[1], np.int64)

    @cached_property
    def candidates(self) -> Float64:
        """Number of candidates of each question, float64 (Q,)."""
        counts = np.full(int(self.question.max()) + 1, np.inf)
        np.minimum.at(counts, self.question, self.ranks.macro_candidates.astype(np.float64))
        return counts

    def check_policy(self, policy: Policy) -> None:
        """Raise UsageError for a policy that needs scores."""
        if policy.name in ("threshold", "conformal-gap"):
            raise UsageError(
                f"{argument('policy', policy.text)} needs scores, and these are ranks; choose "
                "top:10 or conformal:0.1"
            )

    def distances(self, policy: Policy) -> Float64:
        """Return the worst rank of each answer among its ties, float64 (n,).

        Conformal policies choose their limit from these values. An answer without a score has
        infinity.
        """
        ranks = self.ranks
        return np.where(ranks.macro_answer_nan, np.inf, ranks.macro_rank("pessimistic"))

    def judge(self, policy: Policy, limits: Float64, ties: str) -> tuple[Float64, Float64, Float64]:
        """Decide which answers are in their sets, and compute the sizes of the sets.

        Parameters
        ----------
        policy : Policy
            ``top`` or ``conformal``.
        limits : ndarray of float64, shape (Q,)
            Number of best candidates in each set; infinity: all.
        ties : {"all", "none", "expected"}
            Candidates that tie at the border are all in the set, or none of them; or as many as
            fit, in every order with the same probability.

        Returns
        -------
        inside : ndarray of float64, shape (n,)
        sizes : ndarray of float64, shape (Q,)
            Ties at the border count if an answer is among them: ranks do not show other ties.
        any_and_all : ndarray of float64, shape (2, Q)
            Probability that any, and that all answers are in the set.
        """
        ranks, question = self.ranks, self.question
        greater, tied = ranks.macro_greater, ranks.macro_equal + 1
        n_left = np.maximum(limits[question] - greater, 0)  # for the answer and its ties
        n_left[ranks.macro_answer_nan] = 0  # an answer without a score is in no set
        inside, sizes = np.minimum(n_left / tied, 1.0), np.minimum(self.candidates, limits)
        if ties == "expected":
            return inside, sizes, _in_any_order(question, n_left, tied, len(sizes))
        split = (n_left > 0) & (n_left < tied)
        sizes[question[split]] = (greater + (tied if ties == "all" else 0))[split]
        inside = (inside > 0 if ties == "all" else inside == 1).astype(np.float64)
        return inside, sizes, any_and_all(inside > 0, question, len(sizes))

    def notes(self, ties: str) -> list[str]:
        """Return a note if ties that ranks do not show may change the sizes of sets."""
        if ties == "expected" or not self.ranks.macro_equal.any():
            return []
        least = "at least" if ties == "all" else "at most"
        return [f"Sizes are {least} these: ranks show ties at the border only if an answer ties."]

    def keep(self, sizes: Float64, ties: str, confidence: str) -> tuple[Csr, Float64]:
        """Raise UsageError, because ranks do not know which other candidates a set has."""
        raise UsageError(
            f"{argument('keep', option='write_sets')} needs scores, and ties that are all in the "
            "set or none; leave it out"
        )


def any_and_all(inside: Bools, question: Int64, n_questions: int) -> Float64:
    """Return 1 for each question with any, and with all answers in its set, float64 (2, Q)."""
    hits = np.bincount(question, inside, n_questions)
    return np.stack([hits > 0, hits == np.bincount(question, minlength=n_questions)]).astype(float)


def _in_any_order(question: Int64, n_left: Float64, tied: Int64, n_questions: int) -> Float64:
    """Compute the probabilities that any, and that all answers are in the sets, float64 (2, Q).

    Answers before the border are in the set, answers behind it are not. At the border, the set has
    `n_left` of the `tied` candidates, m of which are answers. The number of answers among these
    `n_left` is hypergeometric.
    """
    from scipy.stats import hypergeom

    within, beyond = n_left >= tied, n_left <= 0
    shares = any_and_all(within, question, n_questions)
    rows = np.flatnonzero(~within & ~beyond)
    first = rows[np.unique(question[rows], return_index=True)[1]]
    split, size, fits = question[first], tied[first].astype(float), n_left[first]
    m = np.bincount(question[rows], minlength=n_questions)[split].astype(float)
    none, every = hypergeom.pmf(0, size, m, fits), hypergeom.pmf(m, size, m, fits)
    lost = np.bincount(question, beyond, n_questions)[split] > 0
    shares[:, split] = [np.where(shares[0, split] > 0, 1.0, 1 - none), np.where(lost, 0.0, every)]
    return shares
