"""Hiding facts of a closed world: at random, or in step with what a model predicts.

The open-world paper (Yang et al. 2022, appendix A.3) takes facts away from a graph in which every
true fact is known, so that a test set lacks answers which it should hold.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgtrec._internal.notebook import ShownInLines
from kgtrec.errors import UsageError

__all__ = ["OpenWorld", "correlated_removal", "random_removal", "ranked_removal"]

Flags = NDArray[np.bool_]
Triples = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class OpenWorld(ShownInLines):
    """The facts of a closed world as somebody sees them who does not know all.

    Attributes
    ----------
    train, test, missing : ndarray of int32, shape (n, 3)
        Training facts, sparse test facts, and true facts that nobody has recorded. Together they
        are all facts, and no fact is in two of them.
    """

    train: Triples
    test: Triples
    missing: Triples

    def _lines(self) -> tuple[str, str]:
        return (
            f"{len(self.train):,} training facts, {len(self.test):,} test facts",
            f"{len(self.missing):,} missing: sparsity {self.sparsity:.3f}",
        )

    @property
    def full_test(self) -> Triples:
        """Every true fact that is not for training: the sparse test facts and the missing ones."""
        return np.concatenate([self.test, self.missing])

    @property
    def sparsity(self) -> float:
        """Share of the full test facts that are missing."""
        return len(self.missing) / max(len(self.test) + len(self.missing), 1)


def random_removal(
    facts: Triples, density: float, train_share: float = 0.7, seed: int = 0
) -> OpenWorld:
    """Each fact on its own: missing with probability 1 - d, training d eta, test the rest (A.3).

    Parameters
    ----------
    facts : ndarray of int, shape (n, 3)
    density : float in (0, 1]
        Share d of all facts that somebody has recorded.
    train_share : float in [0, 1), default 0.7
        Share eta of the recorded facts that go to training.
    seed : int, default 0

    Raises
    ------
    UsageError
        A share out of range.
    """
    _check_share("density", density, 0 < density <= 1, "above 0, up to 1")
    _check_share("train_share", train_share, 0 <= train_share < 1, "from 0, below 1")
    draw = np.random.default_rng(seed).random(len(facts))
    train, recorded = draw < density * train_share, draw < density
    return OpenWorld(facts[train], facts[recorded & ~train], facts[~recorded])


def correlated_removal(
    world: OpenWorld, predicted: Flags, sparsity: float, rho: float, seed: int = 0
) -> OpenWorld:
    """Hide full-test facts anew, so that what is missing correlates with what a model predicts.

    A fact that the model predicts is missing with probability P(X|Y), another with P(X|not Y),
    both chosen so that P(X) is the sparsity and the correlation of Definition 4.1 is rho.

    Parameters
    ----------
    world : OpenWorld
        Its training facts stay as they are.
    predicted : ndarray of bool, shape (len(world.full_test),)
        Y: whether the model predicts each fact of ``world.full_test``.
    sparsity : float in (0, 1)
    rho : float
        Negative: what the model predicts is rather recorded than missing.
    seed : int, default 0

    Raises
    ------
    UsageError
        Shapes or shares that do not fit, or a correlation that no such model can have; the
        possible range is named.
    """
    facts = world.full_test
    predicted = np.asarray(predicted, dtype=bool)
    if predicted.shape != (len(facts),):
        raise UsageError(
            f"predicted has shape {predicted.shape}; give one flag for each of the {len(facts)} "
            "facts of world.full_test"
        )
    _check_share("sparsity", sparsity, 0 < sparsity < 1, "between 0 and 1")
    strength = float(predicted.mean()) if len(facts) else 0.0
    if not 0 < strength < 1:
        raise UsageError(
            f"the model predicts {strength:.0%} of the full-test facts, so nothing can correlate "
            "with it; choose a cutoff that some facts pass and some miss"
        )
    scale = np.sqrt(sparsity * (1 - sparsity) * strength * (1 - strength))
    low = max(-sparsity * strength, -(1 - sparsity) * (1 - strength)) / scale
    high = min(sparsity * (1 - strength), (1 - sparsity) * strength) / scale
    if not low <= rho <= high:
        raise UsageError(
            f"rho={rho} is impossible where {strength:.1%} of the facts are predicted and "
            f"{sparsity:.1%} are to be missing; choose one from {low:.4f} to {high:.4f}"
        )
    shift = rho * scale
    chance = np.where(predicted, sparsity + shift / strength, sparsity - shift / (1 - strength))
    missing = np.random.default_rng(seed).random(len(facts)) < chance
    return OpenWorld(world.train, facts[~missing], facts[missing])


def ranked_removal(
    world: OpenWorld, rank: NDArray[Any], sparsity: float, seed: int = 0
) -> OpenWorld:
    """Hide the facts that a model ranks worst, question by question (section 6.2).

    Of the N answers of a tail question, as many as a draw from Binomial(N, sparsity) says are
    missing, but never all: those that the model ranks lowest, ties in random order.

    Parameters
    ----------
    world : OpenWorld
    rank : ndarray, shape (len(world.full_test),)
        The model's rank of each fact of ``world.full_test`` in its tail question; lower is better.
    sparsity : float in [0, 1)
    seed : int, default 0

    Raises
    ------
    UsageError
        Shapes or shares that do not fit.
    """
    facts = world.full_test
    rank = np.asarray(rank, dtype=np.float64)
    if rank.shape != (len(facts),):
        raise UsageError(
            f"rank has shape {rank.shape}; give one for each of the {len(facts)} facts of "
            "world.full_test"
        )
    _check_share("sparsity", sparsity, 0 <= sparsity < 1, "from 0, below 1")
    rng = np.random.default_rng(seed)
    question = facts[:, 1].astype(np.int64) * (int(facts[:, 0].max(initial=0)) + 1) + facts[:, 0]
    _, index, count = np.unique(question, return_inverse=True, return_counts=True)
    hidden = np.minimum(rng.binomial(count, sparsity), count - 1)
    order = np.lexsort((rng.random(len(facts)), rank, index))
    place = np.arange(len(facts)) - np.repeat(np.cumsum(count) - count, count)
    missing = np.empty(len(facts), dtype=bool)
    missing[order] = place >= np.repeat(count - hidden, count)
    return OpenWorld(world.train, facts[~missing], facts[missing])


def _check_share(name: str, value: float, fits: bool, valid: str) -> None:
    if not fits:
        raise UsageError(f"{name}={value} is no such share; give a number {valid}")
