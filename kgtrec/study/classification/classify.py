"""Triple classification (Socher et al. 2013): is a triple true? Metrics, intervals, calibration.

Thresholds and calibration curves are fitted on valid; everything is measured on test. Triples that
share head and relation are answers to one question and are drawn together, so intervals are not
narrower than the data allow; they hold for the thresholds as chosen.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from kgtrec._internal.bootstrap import Resampling, drawn_clusters, percentile_interval
from kgtrec.errors import UsageError
from kgtrec.study.classification.calibration import calibrators, reliability
from kgtrec.study.classification.labelled_triples import LabelledTriples
from kgtrec.study.classification.report import Classification, RelationMetrics
from kgtrec.study.classification.thresholds import choose_thresholds
from kgtrec.study.classification.weighted_metrics import binary_metrics

__all__ = ["classify"]


def classify(
    test: LabelledTriples,
    valid: LabelledTriples,
    *,
    criterion: str = "accuracy",
    per_relation: bool = True,
    bins: int = 10,
    confidence: float = 95.0,
    resamples: int = 1000,
    seed: int = 0,
    relations: Sequence[str] | None = None,
) -> Classification:
    """Accuracy, F1, areas under curves, Matthews' correlation and calibration of test triples.

    Parameters
    ----------
    test, valid : LabelledTriples
        Relations have the same ids in both.
    criterion : {"accuracy", "f1"}
        What thresholds make best on valid.
    per_relation : bool
        A threshold for each relation that valid has true and false triples of; all others, and
        with False all relations, have the one that is best over all of valid.
    bins : int
        Of the reliability curve and the ECE: 2 or more, of equal size.
    confidence : float
        Of the intervals, in percent.
    resamples : int
        Draws of whole (head, relation) groups, 100 or more.
    seed : int
    relations : sequence of str, optional
        Names of the relations, in id order; by default their ids.

    Returns
    -------
    Classification

    Raises
    ------
    UsageError
        An argument out of range, valid triples of one kind only, or fewer names than relations.

    Examples
    --------
    >>> import numpy as np
    >>> from kgtrec.study import LabelledTriples, classify
    >>> triples = np.array([[0, 0, 1], [0, 0, 2], [1, 0, 2], [2, 0, 0]])
    >>> valid = LabelledTriples(triples, [1, 0, 1, 0], [2.0, -1.0, 1.0, -3.0])
    >>> test = LabelledTriples(triples + [3, 0, 3], [1, 0, 0, 1], [1.5, 0.5, -2.0, 2.5])
    >>> classify(test, valid)["accuracy"]
    0.75
    """
    if bins < 2:
        raise UsageError(f"bins={bins!r}; a reliability curve needs 2 or more")
    resampling = Resampling(confidence, resamples, seed)
    thresholds = choose_thresholds(valid, criterion, per_relation=per_relation)
    names = _names(relations, int(max(test.triples[:, 1].max(), valid.triples[:, 1].max())))
    predicted = test.scores >= thresholds.of(test.triples[:, 1])
    group = _groups(test.triples)
    return Classification(
        names=names,
        overall=_metrics(test, predicted, np.arange(len(test)), resampling),
        of_relation={
            number: _metrics(
                test, predicted, np.flatnonzero(test.triples[:, 1] == number), resampling
            )
            for number in np.unique(test.triples[:, 1]).tolist()
        },
        thresholds=thresholds,
        curves=[
            reliability(each, test.labels, test.scores, group, bins, resampling)
            for each in calibrators(valid)
        ],
        resampling=resampling,
    )


def _names(relations: Sequence[str] | None, largest: int) -> Sequence[str]:
    if relations is None:
        return [str(number) for number in range(largest + 1)]
    if len(relations) <= largest:
        raise UsageError(f"{len(relations)} relation names, but relation id {largest} occurs")
    return relations


def _groups(triples: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Which triples share head and relation: int64 (n,), numbered without a gap."""
    groups: npt.NDArray[np.int64] = np.unique(triples[:, :2], axis=0, return_inverse=True)[1]
    return groups.reshape(-1)


def _metrics(
    test: LabelledTriples,
    predicted: npt.NDArray[np.bool_],
    rows: npt.NDArray[np.int64],
    how: Resampling,
) -> RelationMetrics:
    """Metrics of some of the triples, with intervals."""
    arrays = (test.labels[rows], test.scores[rows], predicted[rows])
    values = binary_metrics(*arrays, np.ones((1, len(rows))))[0]
    group = _groups(test.triples[rows])
    times = drawn_clusters(int(group.max()) + 1, how, len(rows))
    draws = np.concatenate([binary_metrics(*arrays, some[:, group]) for some in times])
    ends = percentile_interval(draws, how)
    n_true = int(arrays[0].sum())
    return RelationMetrics(n_true, len(rows) - n_true, np.column_stack([values, ends]))
