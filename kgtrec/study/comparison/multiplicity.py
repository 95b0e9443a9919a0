"""How far models disagree that are as good as the best one (Marx, Calmon and Ustun 2020)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kgtrec._internal.table import Cell, Table
from kgtrec.errors import InputError, UsageError
from kgtrec.study.comparison.samples import align_ranks

if TYPE_CHECKING:
    from kgtrec.ranking.ranks import Ranks

__all__ = ["Multiplicity", "multiplicity"]

Floats = NDArray[np.float64]

CUTS = (1, 3, 10)
EPSILON = 0.01


@dataclass(frozen=True, eq=False)
class Multiplicity:
    """How far models that are as good as the best disagree (Marx, Calmon and Ustun 2020).

    Attributes
    ----------
    best : str
        The model with the highest MRR.
    models : tuple of str
        Those whose MRR is at most `epsilon` below that of the best, itself included.
    epsilon : float
    cuts : tuple of int
    ambiguity : float64 array (cuts,)
        Share of instances on which some of the models makes a hit at k where the best makes none,
        or the reverse.
    discrepancy : float64 array (cuts,)
        Share of instances on which the one model that differs most does so.
    """

    best: str
    models: tuple[str, ...]
    epsilon: float
    cuts: tuple[int, ...]
    ambiguity: Floats
    discrepancy: Floats

    def table(self) -> Table:
        """A row a cutoff."""
        rows: list[tuple[Cell, ...]] = [
            (f"Hits@{k}", len(self.models), float(a), float(d))
            for k, a, d in zip(self.cuts, self.ambiguity, self.discrepancy, strict=True)
        ]
        keys = ("by", "models", "ambiguity", "discrepancy")
        return Table(keys, keys, (0, 0, 4, 4), rows)


def multiplicity(
    models: Mapping[str, Ranks], epsilon: float = EPSILON, cuts: Sequence[int] = CUTS
) -> Multiplicity:
    """Ambiguity and discrepancy of models whose MRR (realistic, micro) lies within `epsilon`.

    Raises
    ------
    UsageError
        Fewer than two models, a negative epsilon, or a cutoff below 1.
    InputError
        Models that did not answer the same questions.
    """
    if not epsilon >= 0:
        raise UsageError(f"epsilon={epsilon!r}; give how far below the best an MRR may be, 0 up")
    if not cuts or min(cuts) < 1:
        raise UsageError(f"cuts={cuts!r}; cutoffs are 1 or more")
    ranks = {name: one.rank() for name, one in align_ranks(models).items()}
    if not all(len(one) for one in ranks.values()):
        raise InputError("there are no ranks to compare: not one instance was evaluated")
    mrr = {name: float((1 / one).mean()) for name, one in ranks.items()}
    best = max(mrr, key=mrr.__getitem__)
    close = tuple(name for name, value in mrr.items() if mrr[best] - value <= epsilon)
    ambiguity, discrepancy = [], []
    for k in cuts:
        differs = np.stack([(ranks[name] <= k) != (ranks[best] <= k) for name in close])
        ambiguity.append(float(differs.any(axis=0).mean()))
        discrepancy.append(float(differs.mean(axis=1).max()))
    return Multiplicity(best, close, epsilon, tuple(cuts), np.array(ambiguity),
                        np.array(discrepancy))  # fmt: skip
