"""Triple classification (Socher et al. 2013): is a triple true? Metrics, intervals, calibration.

Thresholds and calibration curves are fitted on valid; everything is measured on test. Metrics are
computed for many weightings of the triples at once: weights are how often a draw of the bootstrap
takes each triple. Triples that share head and relation answer one question and are drawn together.
A value without a denominator is 0, as in scikit-learn, except that areas under curves are NaN
unless there are true and false triples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kgtrec._internal.bootstrap import Resampling, drawn_clusters, percentile_interval
from kgtrec._internal.table import Cell, ShownAsTables, Table, dump_json
from kgtrec.errors import UsageError
from kgtrec.study.classification.calibration import ReliabilityCurve, calibrators, reliability
from kgtrec.study.classification.labelled_triples import LabelledTriples

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

METRICS = ("accuracy", "precision", "recall", "f1", "mcc", "auc_roc", "auc_pr")


def binary_metrics(labels: Bools, scores: Floats, predicted: Bools, weights: Floats) -> Floats:
    """All of `METRICS`, in their order.

    Shapes: labels, predicted bool (n,), scores float64 (n,), weights float64 (draws, n) -> float64
    (draws, len(METRICS).
    """
    order = np.argsort(-scores, kind="stable")
    ends = np.flatnonzero(np.diff(scores[order], append=-np.inf))
    ordered = weights[:, order]
    every = np.cumsum(ordered, axis=1)[:, ends]
    true = np.cumsum(ordered * labels[order], axis=1)[:, ends]
    false = every - true  # weights are whole numbers: exact
    counted = _of_counts(
        *(weights @ kind.astype(np.float64) for kind in (
            labels & predicted, ~labels & predicted, labels & ~predicted, ~labels & ~predicted,
        ))
    )  # fmt: skip
    return np.stack([*counted, _area_roc(true, false), _area_pr(true, false)], axis=1)


def _of_counts(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> list[Floats]:
    """Metrics of the four counts: accuracy, precision, recall, F1 and Matthews' correlation."""
    product = np.sqrt(tp + fp) * np.sqrt(tp + fn) * np.sqrt(tn + fp) * np.sqrt(tn + fn)
    return [
        _ratio(tp + tn, tp + fp + fn + tn),
        _ratio(tp, tp + fp),
        _ratio(tp, tp + fn),
        _ratio(2 * tp, 2 * tp + fp + fn),
        _ratio(tp * tn - fp * fn, product),
    ]


def _area_roc(true: Floats, false: Floats) -> Floats:
    """Probability that a true triple scores above a false one, ties counting half."""
    steps = np.diff(false, axis=1, prepend=0.0)
    before = np.concatenate([np.zeros((len(true), 1)), true[:, :-1]], axis=1)
    area = (steps * (true + before)).sum(axis=1) / 2
    return _ratio(area, true[:, -1] * false[:, -1], np.nan)


def _area_pr(true: Floats, false: Floats) -> Floats:
    """Average precision: precision at each score, weighted by the recall that it adds."""
    steps = np.diff(true, axis=1, prepend=0.0)
    area = (steps * _ratio(true, true + false)).sum(axis=1)
    both = (true[:, -1] > 0) & (false[:, -1] > 0)
    return np.where(both, _ratio(area, true[:, -1]), np.nan)


def _ratio(above: Floats, below: Floats, otherwise: float = 0.0) -> Floats:
    return np.divide(above, below, out=np.full(above.shape, otherwise), where=below > 0)


CRITERIA = ("accuracy", "f1")
DRAWN = Resampling(resamples=1000)


@dataclass(frozen=True, eq=False)
class Thresholds:
    """Triples whose score is at least the threshold of their relation are predicted true.

    - overall: Over all valid triples; for relations that have none of their own.
    - of_relation: Of each relation that has true and false triples in valid.
    - criterion: What is best on valid with them: "accuracy" or "f1".
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
    """Thresholds that do best on valid."""
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


def classify(
    test: LabelledTriples,
    valid: LabelledTriples,
    *,
    criterion: str = "accuracy",
    per_relation: bool = True,
    bins: int = 10,
    resampling: Resampling = DRAWN,
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
    resampling : Resampling
        Of the intervals, which draw whole (head, relation) groups; 1,000 times by default.
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
    draws = np.concatenate([binary_metrics(*arrays, weights[:, group]) for weights in times])
    ends = percentile_interval(draws, how)
    n_true = int(arrays[0].sum())
    return RelationMetrics(n_true, len(rows) - n_true, np.column_stack([values, ends]))


TITLES = dict(
    zip(METRICS, ("accuracy", "precision", "recall", "F1", "MCC", "AUC-ROC", "AUC-PR"), strict=True)
)
"""Metrics as tables name them."""


@dataclass(frozen=True, eq=False)
class RelationMetrics:
    """Metrics of the triples of one relation, or of all.

    - values, float64 (metrics, 3): Of each of `METRICS`: value, and the ends of its interval.
    """

    n_true: int
    n_false: int
    values: Floats


@dataclass(frozen=True, eq=False)
class Classification(ShownAsTables):
    """Metrics over all test triples and by relation, thresholds, and calibration.

    ``classification["f1"]`` is a value over all test triples (micro), ``classification["brier"]``
    and ``["ece"]`` are those of the scores as they are, ``["brier.platt"]``, ``["ece.platt"]``,
    ``["brier.isotonic"]`` and ``["ece.isotonic"]`` those after calibration on valid.

    - names: Of relations, in id order.
    - overall: Over all test triples.
    - curves: Before calibration, after Platt scaling, after isotonic regression.
    - resampling: How the intervals were made.
    """

    _shown = ("table", "calibration_table")

    names: Sequence[str]
    overall: RelationMetrics
    of_relation: dict[int, RelationMetrics]
    thresholds: Thresholds
    curves: list[ReliabilityCurve]
    resampling: Resampling

    def __getitem__(self, key: str) -> float:
        values = {name: self.overall.values[k, 0] for k, name in enumerate(METRICS)}
        for curve, end in zip(self.curves, ("", ".platt", ".isotonic"), strict=True):
            values |= {f"brier{end}": curve.brier[0], f"ece{end}": curve.ece[0]}
        if key not in values:
            raise UsageError(f"there is no value {key!r}; there are {', '.join(values)}")
        return float(values[key])

    def _of(self) -> str:
        total = self.overall.n_true + self.overall.n_false
        return f" of {total:,} triples, {len(self.of_relation):,} relations"

    def _lines(self) -> tuple[str, str]:
        return (
            f"{self.overall.n_true:,} true, {self.overall.n_false:,} false",
            f"accuracy {self['accuracy']:.4f}, AUC-ROC {self['auc_roc']:.4f}",
        )

    def __str__(self) -> str:
        total = self.overall.n_true + self.overall.n_false
        own = len(self.thresholds.of_relation.keys() & self.of_relation.keys())
        chosen = f"{own:,} of {len(self.of_relation):,} relations have a threshold of their own"
        return "\n\n".join(
            (
                f"{total:,} test triples: {self.overall.n_true:,} true, "
                f"{self.overall.n_false:,} false\n"
                f"thresholds: best {TITLES[self.thresholds.criterion]} on valid; {chosen}\n"
                f"intervals: {self.resampling.percent:g} %, {self.resampling.resamples:,} draws of "
                "whole (head, relation) groups",
                self.table().to_text(),
                self.calibration_table().to_text(),
            )
        )

    def table(self) -> Table:
        """A row per metric over all test triples, its interval, and the mean over relations."""
        rows: list[tuple[Cell, ...]] = []
        for k, name in enumerate(METRICS):
            rows.append((TITLES[name], *map(float, self.overall.values[k]), self.mean(name)))
        titles = ("all triples", "value", "low", "high", "mean over relations")
        keys = ("metric", "micro", "low", "high", "macro")
        return Table(titles, keys, (0, 4, 4, 4, 4), rows)

    def mean(self, name: str) -> float:
        """The mean of a metric over the relations that have it (macro); NaN if none has."""
        values = [each.values[METRICS.index(name), 0] for each in self.of_relation.values()]
        known = [value for value in values if not np.isnan(value)]
        return float(np.mean(known)) if known else float("nan")

    def relation_table(self) -> Table:
        """A row per test relation: its triples, its threshold, its metrics; most triples first."""
        rows: list[tuple[Cell, ...]] = []
        for number, each in self.of_relation.items():
            threshold = float(self.thresholds.of(np.array([number]))[0])
            own = "own" if number in self.thresholds.of_relation else "overall"
            first: tuple[Cell, ...] = (self.names[number], own, each.n_true, each.n_false)
            rows.append((*first, threshold, *map(float, each.values[:, 0])))
        rows.sort(key=lambda row: (-int(row[2]) - int(row[3]), row[0]))
        titles = ("relation", "threshold", "true", "false", "from", *TITLES.values())
        keys = ("relation", "threshold_of", "n_true", "n_false", "threshold", *METRICS)
        return Table(titles, keys, (0, 0, 0, 0, 3, *(3,) * len(METRICS)), rows)

    def interval_table(self) -> Table:
        """Every metric of every relation with its interval, one to a row."""
        rows: list[tuple[Cell, ...]] = [
            (self.names[number], TITLES[name], *map(float, each.values[k]))
            for number, each in self.of_relation.items()
            for k, name in enumerate(METRICS)
        ]
        heads = ("relation", "metric", "value", "low", "high")
        return Table(heads, heads, (0, 0, 4, 4, 4), rows, names=2)

    def calibration_table(self) -> Table:
        """Brier score and ECE of the probabilities before and after calibration on valid."""
        rows: list[tuple[Cell, ...]] = [
            (curve.name, *map(float, curve.brier), *map(float, curve.ece)) for curve in self.curves
        ]
        titles = ("probabilities", "Brier", "low", "high", "ECE", "low", "high")
        keys = ("probabilities", "brier", "brier_low", "brier_high", "ece", "ece_low", "ece_high")
        return Table(titles, keys, (0, *(4,) * 6), rows)

    def curve_table(self) -> Table:
        """The reliability curves: a row per bin."""
        rows: list[tuple[Cell, ...]] = [
            (curve.name, number, int(size), float(predicted), float(observed))
            for curve in self.curves
            for number, (size, predicted, observed) in enumerate(
                zip(curve.sizes, curve.predicted, curve.observed, strict=True), start=1
            )
        ]
        titles = ("probabilities", "bin", "triples", "predicted", "true")
        keys = ("probabilities", "bin", "n", "predicted", "observed")
        return Table(titles, keys, (0, 0, 0, 4, 4), rows, names=2)

    def to_dict(self) -> dict[str, Any]:
        """Everything that tables show, under plain names.

        A threshold below or above all scores is the text ``"-inf"`` or ``"inf"``, as JSON has no
        such numbers: all triples of the relation are predicted true, or all false.
        """
        relations = self.relation_table().to_dict()
        for values in relations.values():
            if np.isinf(values["threshold"]):
                values["threshold"] = str(values["threshold"])
        return {
            "overall": self.table().to_dict(),
            "relations": relations,
            "calibration": self.calibration_table().to_dict(),
            "reliability": self.curve_table().to_dict(),
            "criterion": self.thresholds.criterion,
            "intervals": {
                "percent": self.resampling.percent, "resamples": self.resampling.resamples,
                "seed": self.resampling.seed, "drawn": "(head, relation) groups",
            },
        }  # fmt: skip

    def to_json(self) -> str:
        """`to_dict` as JSON; NaN becomes null."""
        return dump_json(self.to_dict())
