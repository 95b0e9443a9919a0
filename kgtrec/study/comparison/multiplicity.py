"""How far models disagree that are as good as the best one (Marx, Calmon and Ustun 2020)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kgtrec._internal.notebook import ShownAsTables
from kgtrec._internal.table import Cell, Table
from kgtrec.errors import InputError, UsageError
from kgtrec.study.comparison.samples import align_ranks

if TYPE_CHECKING:
    from kgtrec.ranking.ranks import Ranks
    from kgtrec.trec.files.columns import RunColumns

__all__ = ["Multiplicity", "multiplicity"]

Floats = NDArray[np.float64]

CUTS = (1, 3, 10)
EPSILON = 0.01


@dataclass(frozen=True, eq=False)
class Multiplicity(ShownAsTables):
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
    best_answer : (ambiguity, discrepancy), or None
        The same shares of the questions whose best answer is another one; None without runs.
    """

    best: str
    models: tuple[str, ...]
    epsilon: float
    cuts: tuple[int, ...]
    ambiguity: Floats
    discrepancy: Floats
    best_answer: tuple[float, float] | None = None

    def table(self) -> Table:
        """A row a cutoff, after one of the best answers if these are known."""
        shares = {
            f"Hits@{k}": (float(a), float(d))
            for k, a, d in zip(self.cuts, self.ambiguity, self.discrepancy, strict=True)
        }
        if self.best_answer is not None:
            shares = {"best answer": self.best_answer} | shares
        rows: list[tuple[Cell, ...]] = [
            (name, len(self.models), *both) for name, both in shares.items()
        ]
        keys = ("by", "models", "ambiguity", "discrepancy")
        return Table(keys, keys, (0, 0, 4, 4), rows)


def multiplicity(
    models: Mapping[str, Ranks],
    epsilon: float = EPSILON,
    cuts: Sequence[int] = CUTS,
    *,
    runs: Mapping[str, RunColumns] | None = None,
) -> Multiplicity:
    """Ambiguity and discrepancy of models whose MRR (realistic, micro) lies within `epsilon`.

    Parameters
    ----------
    models : mapping of str to Ranks
        Two or more, on the same questions.
    epsilon : float
        How far below that of the best an MRR may be.
    cuts : sequence of int
        Cutoffs k of Hits@k.
    runs : mapping of str to RunColumns, optional
        What each model ranked, by the same names: ranks say where the answers stand, not what
        stands first. A question's best answer is its first document in trec_eval's order.

    Raises
    ------
    UsageError
        Fewer than two models, a negative epsilon, a cutoff below 1, or a model without a run.
    InputError
        Models that did not answer the same questions, or a run that lacks one of them.
    """
    if not epsilon >= 0:
        raise UsageError(f"epsilon={epsilon!r}; give how far below the best an MRR may be, 0 up")
    if not cuts or min(cuts) < 1:
        raise UsageError(f"cuts={cuts!r}; cutoffs are 1 or more")
    if lacking := [] if runs is None else [name for name in models if name not in runs]:
        raise UsageError(f"{lacking[0]!r} has no run; give the run of every model, or none")
    aligned = align_ranks(models)
    ranks = {name: one.rank() for name, one in aligned.items()}
    if not all(len(one) for one in ranks.values()):
        raise InputError("there are no ranks to compare: not one instance was evaluated")
    mrr = {name: float((1 / one).mean()) for name, one in ranks.items()}
    best = max(mrr, key=mrr.__getitem__)
    close = tuple(name for name, value in mrr.items() if mrr[best] - value <= epsilon)
    of_cuts = [_shares({n: ranks[n] <= k for n in close}, best) for k in cuts]
    of_best = None
    if runs is not None:
        queries = list(dict.fromkeys(aligned[best].question_ids))
        of_best = _shares({n: _best_documents(runs[n], queries, n) for n in close}, best)
    ambiguity, discrepancy = np.array(of_cuts).T
    return Multiplicity(best, close, epsilon, tuple(cuts), ambiguity, discrepancy, of_best)


def _shares(outcomes: Mapping[str, NDArray[Any]], best: str) -> tuple[float, float]:
    """Shares of items on which any model, and the one that does so most, differs from the best."""
    differs = np.stack([one != outcomes[best] for one in outcomes.values()])
    return float(differs.any(axis=0).mean()), float(differs.mean(axis=1).max())


def _best_documents(run: RunColumns, queries: Sequence[str], name: str) -> NDArray[np.object_]:
    """The first document of each query; InputError, with the run's name, if it lacks one."""
    best = run.best(queries=set(queries))
    for query in queries:
        if query not in best:
            raise InputError(
                f"the run of {name} has nothing for question {query}, which its ranks answer; "
                "give the run that was written with these ranks"
            )
    return np.array([best[query][0] for query in queries], object)
