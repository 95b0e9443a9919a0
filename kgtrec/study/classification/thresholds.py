"""From which score on a triple counts as true: chosen on valid, for each relation by itself."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kgtrec.errors import UsageError
from kgtrec.study.classification.labelled_triples import LabelledTriples

__all__ = ["CRITERIA", "Thresholds", "best_threshold", "choose_thresholds"]

Floats = npt.NDArray[np.float64]

CRITERIA = ("accuracy", "f1")


@dataclass(frozen=True, eq=False)
class Thresholds:
    """Triples whose score is at least the threshold of their relation are predicted true.

    Attributes
    ----------
    overall : float
        Over all valid triples; for relations that have none of their own.
    of_relation : dict of int to float
        Of each relation that has true and false triples in valid.
    criterion : str
        What is best on valid with them: "accuracy" or "f1".
    """

    overall: float
    of_relation: dict[int, float]
    criterion: str

    def of(self, relations: npt.NDArray[np.int64]) -> Floats:
        """The threshold of each triple by its relation, float64 of the same shape."""
        distinct, place = np.unique(relations, return_inverse=True)
        values = [self.of_relation.get(number, self.overall) for number in distinct.tolist()]
        return np.array(values)[place.reshape(-1)]


def choose_thresholds(
    valid: LabelledTriples, criterion: str = "accuracy", *, per_relation: bool = True
) -> Thresholds:
    """Thresholds that do best on valid.

    Parameters
    ----------
    valid : LabelledTriples
        With true and false triples.
    criterion : {"accuracy", "f1"}
    per_relation : bool
        One for each relation that has both kinds of triples; otherwise one for all.

    Raises
    ------
    UsageError
        Another criterion, or valid triples that are all true or all false.
    """
    if criterion not in CRITERIA:
        raise UsageError(f"criterion={criterion!r}; choose {' or '.join(map(repr, CRITERIA))}")
    if valid.labels.all() or not valid.labels.any():
        kind = "true" if valid.labels.all() else "false"
        raise UsageError(
            f"all {len(valid):,} valid triples are {kind}; a threshold needs both kinds"
        )
    chosen: dict[int, float] = {}
    if per_relation:
        relation = valid.triples[:, 1]
        for number in np.unique(relation).tolist():
            rows = relation == number
            labels = valid.labels[rows]
            if labels.any() and not labels.all():
                chosen[number] = best_threshold(labels, valid.scores[rows], criterion)
    overall = best_threshold(valid.labels, valid.scores, criterion)
    return Thresholds(overall, chosen, criterion)


def best_threshold(labels: npt.NDArray[np.bool_], scores: Floats, criterion: str) -> float:
    """The threshold midway between two scores, or beyond all, that does best; the highest such.

    Of the same accuracy or F1, the one that predicts the fewest triples true is taken.
    """
    values, group = np.unique(-scores, return_inverse=True)  # descending scores
    true = np.cumsum(np.bincount(group, labels, len(values)))
    false = np.cumsum(np.bincount(group, ~labels, len(values)))
    true, false = (np.concatenate(([0.0], counts)) for counts in (true, false))
    if criterion == "accuracy":
        quality = true + (false[-1] - false)
    else:
        quality = 2 * true / np.maximum(true + false + true[-1], 1)
    cut = int(np.argmax(quality))  # how many of the distinct scores count as true
    return _between(-values, cut)


def _between(values: Floats, cut: int) -> float:
    """A threshold that `cut` of the descending values reach."""
    if cut == 0:
        return float("inf")
    if cut == len(values):
        return float("-inf")
    above, below = float(values[cut - 1]), float(values[cut])
    middle = below / 2 + above / 2
    return middle if below < middle <= above else above
