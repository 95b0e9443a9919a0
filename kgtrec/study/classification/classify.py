"""Triple classification (Socher et al. 2013): is a triple true? Metrics, intervals, calibration.

Thresholds and calibration curves are fitted on valid; everything is measured on test. Metrics are
computed for many weightings of the triples at once: weights are how often a draw of the bootstrap
takes each triple. Triples that share head and relation answer one question and are drawn together.
A value without a denominator is 0, as in scikit-learn, except that areas under curves are NaN
unless there are true and false triples.

Scores become probabilities by Platt's logistic curve (Platt 1999, with his smoothed targets) or the
best non-decreasing step function (isotonic regression). The Brier score, the expected calibration
error over bins of equal size (ECE), and the reliability curve behind the ECE say how far to trust
them.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from kgtrec._internal.arguments import MOST_PARTS, check_count, require_type
from kgtrec._internal.arrays import Bools, Float64, Int64
from kgtrec._internal.bootstrap import Resampling, cluster_sums, on_draws, percentile_interval
from kgtrec._internal.table import ShownAsTables, Table, dump_json
from kgtrec.errors import LabelWarning, UsageError, choose
from kgtrec.study.classification.labelled_triples import LabelledTriples

TITLES = {
    "accuracy": "accuracy",
    "precision": "precision",
    "recall": "recall",
    "f1": "F1",
    "mcc": "MCC",
    "auc_roc": "AUC-ROC",
    "auc_pr": "AUC-PR",
}
"""Metrics and their titles in tables."""
METRICS = tuple(TITLES)


def binary_metrics(labels: Bools, scores: Float64, predicted: Bools, weights: Float64) -> Float64:
    """Compute all of `METRICS`, in their order.

    Shapes: labels, predicted bool (n,), scores float64 (n,), weights float64 (draws, n) -> float64
    (draws, len(METRICS)).
    """
    order = np.argsort(-scores, kind="stable")
    ends = np.flatnonzero(np.diff(scores[order], append=-np.inf))
    ordered = weights[:, order]
    every = np.cumsum(ordered, axis=1)[:, ends]
    true = np.cumsum(ordered * labels[order], axis=1)[:, ends]
    false = every - true  # weights are whole numbers, so sums are exact
    cells = (
        labels & predicted,
        ~labels & predicted,
        labels & ~predicted,
        ~labels & ~predicted,
    )
    counted = _metrics_of_counts(*(weights @ cell.astype(np.float64) for cell in cells))
    return np.stack([*counted, _area_roc(true, false), _area_pr(true, false)], axis=1)


def _metrics_of_counts(tp: Float64, fp: Float64, fn: Float64, tn: Float64) -> list[Float64]:
    """Compute accuracy, precision, recall, F1 and Matthews' correlation from the four counts."""
    product = np.sqrt(tp + fp) * np.sqrt(tp + fn) * np.sqrt(tn + fp) * np.sqrt(tn + fn)
    return [
        _ratio(tp + tn, tp + fp + fn + tn),
        _ratio(tp, tp + fp),
        _ratio(tp, tp + fn),
        _ratio(2 * tp, 2 * tp + fp + fn),
        _ratio(tp * tn - fp * fn, product),
    ]


def _area_roc(true: Float64, false: Float64) -> Float64:
    """Compute the probability that a true triple scores above a false one; ties count half."""
    steps = np.diff(false, axis=1, prepend=0.0)
    before = np.concatenate([np.zeros((len(true), 1)), true[:, :-1]], axis=1)
    area = (steps * (true + before)).sum(axis=1) / 2
    return _ratio(area, true[:, -1] * false[:, -1], np.nan)


def _area_pr(true: Float64, false: Float64) -> Float64:
    """Compute average precision: precision at each score, weighted by the recall that it adds."""
    steps = np.diff(true, axis=1, prepend=0.0)
    area = (steps * _ratio(true, true + false)).sum(axis=1)
    both = (true[:, -1] > 0) & (false[:, -1] > 0)
    return np.where(both, _ratio(area, true[:, -1]), np.nan)


def _ratio(above: Float64, below: Float64, otherwise: float = 0.0) -> Float64:
    """Divide arrays; `otherwise` replaces quotients whose denominator is 0."""
    return np.divide(above, below, out=np.full(above.shape, otherwise), where=below > 0)


CRITERIA = ("accuracy", "f1")
DRAWN = Resampling(resamples=1000)


@dataclass(frozen=True, eq=False)
class Thresholds:
    """The scores from which triples are predicted true, per relation.

    - overall: Best threshold over all valid triples, for relations without a separate threshold.
    - of_relation: Threshold of each relation that has true and false triples in valid.
    - criterion: Metric that the thresholds maximise on valid: "accuracy" or "f1".
    """

    overall: float
    of_relation: dict[int, float]
    criterion: str

    def select(self, relations: Int64) -> Float64:
        """Return the threshold of each triple by its relation, float64 of the same shape."""
        return np.array(
            [self.of_relation.get(relation, self.overall) for relation in relations.tolist()]
        )


def choose_thresholds(
    valid: LabelledTriples, criterion: str = "accuracy", *, per_relation: bool = True
) -> Thresholds:
    """Choose the thresholds with the highest criterion on valid."""
    choose("criterion", criterion, CRITERIA)
    if valid.labels.all() or not valid.labels.any():
        kind = "true" if valid.labels.all() else "false"
        raise UsageError(f"all {len(valid):,} valid triples are {kind}; give true and false ones")
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


def best_threshold(labels: Bools, scores: Float64, criterion: str) -> float:
    """Return the best threshold midway between two scores or beyond all; the highest if several.

    Of thresholds with the same accuracy or F1, the highest predicts the fewest triples true.
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


def _between(values: Float64, cut: int) -> float:
    """Return a threshold that exactly `cut` of the descending values reach."""
    if cut == 0:
        return float("inf")
    if cut == len(values):
        return float("-inf")
    above, below = float(values[cut - 1]), float(values[cut])
    middle = below / 2 + above / 2
    return middle if below < middle <= above else above


class Calibrator(NamedTuple):
    """A function from scores to probabilities that triples are true, float64 (n,) each."""

    name: str
    probabilities: Callable[[Float64], Float64]


def calibrators(valid: LabelledTriples) -> list[Calibrator]:
    """Return three calibrators: the scores unfitted, and both curves fitted on valid."""
    return [
        leave_uncalibrated(valid.scores),
        platt(valid.labels, valid.scores),
        isotonic(valid.labels, valid.scores),
    ]


def leave_uncalibrated(scores: Float64) -> Calibrator:
    """Return the scores as probabilities if all of valid are in [0, 1], otherwise their sigmoid."""
    from scipy.special import expit

    if scores.min() >= 0 and scores.max() <= 1:
        return Calibrator("scores", lambda values: np.clip(values, 0.0, 1.0))
    return Calibrator("sigmoid of scores", expit)


def platt(labels: Bools, scores: Float64) -> Calibrator:
    """Fit sigmoid(slope · score + intercept) by maximum likelihood, with Platt's targets.

    Shapes: labels bool (n,), scores float64 (n,).
    """
    from scipy.optimize import minimize
    from scipy.special import expit

    n_true, n_false = int(labels.sum()), int((~labels).sum())
    target = np.where(labels, (n_true + 1) / (n_true + 2), 1 / (n_false + 2))
    # Squares of scores beyond 2^500 would overflow, and those below 2^-500 would vanish. A power of
    # two as unit changes no bit.
    _, exponent = np.frexp(np.abs(scores).max(initial=0.0))
    unit = 2.0 ** int(exponent) if abs(exponent) > 500 else 1.0
    scores = scores / unit
    centre, spread = float(scores.mean()), float(scores.std()) or 1.0
    standard = (scores - centre) / spread

    def loss(curve: Float64) -> tuple[float, Float64]:
        margin = curve[0] * standard + curve[1]
        error = expit(margin) - target
        value = (np.logaddexp(0.0, margin) - target * margin).mean()
        return float(value), np.array([(error * standard).mean(), error.mean()])

    start = np.array([0.0, np.log((n_true + 1) / (n_false + 1))])
    slope, intercept = minimize(loss, start, jac=True, method="BFGS", options={"gtol": 1e-10}).x
    return Calibrator(
        "Platt", lambda values: expit(slope * (values / unit - centre) / spread + intercept)
    )


def isotonic(labels: Bools, scores: Float64) -> Calibrator:
    """Fit a non-decreasing function by least squares, which is linear between scores of valid.

    Shapes: labels bool (n,), scores float64 (n,).
    """
    from scipy.optimize import isotonic_regression

    values, group = np.unique(scores, return_inverse=True)
    sizes = np.bincount(group).astype(np.float64)
    shares = np.bincount(group, labels) / sizes
    fitted = isotonic_regression(shares, weights=sizes).x
    return Calibrator("isotonic", lambda others: np.interp(others, values, fitted))


def equal_mass_bins(probabilities: Float64, n_bins: int) -> Int64:
    """Assign probabilities to bins of equal size, as far as ties, which share a bin, allow.

    Shape: int64 (n,).
    """
    _, group, sizes = np.unique(probabilities, return_inverse=True, return_counts=True)
    middle = np.cumsum(sizes) - (sizes + 1) / 2
    return np.asarray(n_bins * middle / len(probabilities), np.int64)[group.reshape(-1)]


@dataclass(frozen=True, eq=False)
class ReliabilityCurve:
    """Predicted probability and share of true triples per bin; empty bins are left out.

    - predicted, observed, float64 (b,): Mean probability and share of true triples of each bin.
    - sizes, int64 (b,): Number of triples of each bin.
    - brier, float64 (3,): Mean squared error of the probabilities, and the ends of its interval.
    - ece, float64 (3,): Mean distance over triples between predicted and observed of their bin,
      and the ends of its interval.
    """

    name: str
    predicted: Float64
    observed: Float64
    sizes: Int64
    brier: Float64
    ece: Float64


def reliability(
    calibrator: Calibrator,
    labels: Bools,
    scores: Float64,
    group: Int64,
    n_bins: int,
    how: Resampling,
) -> ReliabilityCurve:
    """Measure how far a calibrator's probabilities agree with the labels.

    Chance increases every bin's distance, and the bootstrap adds chance again, so percentiles of
    the ECE would be too high. The lower end subtracts the most that chance may have added: the
    distance of the draws from the sample. The upper end is a percentile, and so rather too high.

    Shapes: labels, scores (n,), group int64 (n,).
    """
    probabilities = calibrator.probabilities(scores)
    bins = np.unique(equal_mass_bins(probabilities, n_bins), return_inverse=True)[1].reshape(-1)
    sizes = np.bincount(bins)
    columns = np.zeros((len(bins), 2 + len(sizes)))  # triples, squared errors, errors by bin
    columns[:, 0], columns[:, 1] = 1, (probabilities - labels) ** 2
    columns[np.arange(len(bins)), 2 + bins] = probabilities - labels
    sums = cluster_sums(columns, group)
    sample = _shares(sums.sum(axis=0, keepdims=True))[0]
    draws = on_draws(lambda times: _shares(times @ sums), len(sums), how, columns.shape[1])
    errors, of_draws = sample[1:], draws[:, 1:]
    distances = [
        np.abs(errors_of_draws).sum(axis=1) for errors_of_draws in (of_draws - errors, of_draws)
    ]
    ends, (_, added), (_, high) = percentile_interval(np.stack([draws[:, 0], *distances], 1), how)
    ece = np.abs(errors).sum()
    predicted, observed = (np.bincount(bins, part) / sizes for part in (probabilities, labels))
    return ReliabilityCurve(
        calibrator.name,
        predicted,
        observed,
        sizes,
        np.append(sample[0], ends),
        np.array([ece, max(0.0, ece - added), high]),
    )


def _shares(totals: Float64) -> Float64:
    """Divide rows of totals (triples, squared errors, errors by bin) by their triples."""
    return totals[:, 1:] / totals[:, :1]


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
    """Compute accuracy, F1, areas under curves, Matthews' correlation and calibration on test.

    Triples that are both true and false count in both rows, with a `LabelWarning`.

    Parameters
    ----------
    test, valid : LabelledTriples
        Relations have the same ids in both.
    criterion : {"accuracy", "f1"}
        The metric that thresholds maximise on valid.
    per_relation : bool
        A threshold for each relation with true and false triples in valid. All others (all
        relations if False) use the best threshold over all of valid.
    bins : int
        Bins of the reliability curve and the ECE: 2 or more, of equal size.
    resampling : Resampling
        How to make the intervals: whole (head, relation) groups are drawn, by default 1,000 times.
    relations : sequence of str, optional
        Names of the relations, in id order; by default their ids.

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
    require_type("test", test, LabelledTriples, "LabelledTriples (study.read_labelled)")
    require_type("valid", valid, LabelledTriples, "LabelledTriples (study.read_labelled)")
    bins = check_count("bins", bins, 2, MOST_PARTS)
    for name, part in (("test", test), ("valid", valid)):
        if contradictions := part.contradictions(name):
            warnings.warn(contradictions, LabelWarning, stacklevel=2)
    thresholds = choose_thresholds(valid, criterion, per_relation=per_relation)
    names = _name_relations(
        relations, int(max(test.triples[:, 1].max(), valid.triples[:, 1].max()))
    )
    predicted = test.scores >= thresholds.select(test.triples[:, 1])
    group = _group_triples(test.triples)
    return Classification(
        names=names,
        overall=_measure(test, predicted, np.arange(len(test)), resampling),
        of_relation={
            number: _measure(
                test, predicted, np.flatnonzero(test.triples[:, 1] == number), resampling
            )
            for number in np.unique(test.triples[:, 1]).tolist()
        },
        thresholds=thresholds,
        curves=[
            reliability(calibrator, test.labels, test.scores, group, bins, resampling)
            for calibrator in calibrators(valid)
        ],
        resampling=resampling,
    )


def _name_relations(relations: Sequence[str] | None, largest: int) -> Sequence[str]:
    """Return the names of relations up to the id `largest`; UsageError if there are too few."""
    if relations is None:
        return [str(number) for number in range(largest + 1)]
    if len(relations) <= largest:
        raise UsageError(
            f"{len(relations)} relation names are too few for relation id {largest}; give one name "
            "per relation"
        )
    return relations


def _group_triples(triples: Int64) -> Int64:
    """Number the groups of triples that share head and relation, without gaps; int64 (n,)."""
    groups: Int64 = np.unique(triples[:, :2], axis=0, return_inverse=True)[1]
    return groups.reshape(-1)


def _measure(
    test: LabelledTriples,
    predicted: Bools,
    rows: Int64,
    how: Resampling,
) -> RelationMetrics:
    """Compute the metrics of the triples in `rows`, with intervals."""
    arrays = (test.labels[rows], test.scores[rows], predicted[rows])
    values = binary_metrics(*arrays, np.ones((1, len(rows))))[0]
    group = _group_triples(test.triples[rows])
    draws = on_draws(
        lambda times: binary_metrics(*arrays, times[:, group]), int(group.max()) + 1, how, len(rows)
    )
    ends = percentile_interval(draws, how)
    n_true = int(arrays[0].sum())
    return RelationMetrics(n_true, len(rows) - n_true, np.column_stack([values, ends]))


@dataclass(frozen=True, eq=False)
class RelationMetrics:
    """Metrics of the triples of one relation, or of all.

    - values, float64 (metrics, 3): For each of `METRICS`: value, and the ends of its interval.
    """

    n_true: int
    n_false: int
    values: Float64


@dataclass(frozen=True, eq=False)
class Classification(ShownAsTables):
    """Metrics over all test triples and by relation, thresholds, and calibration.

    ``classification["f1"]`` is a value over all test triples (micro), ``classification["brier"]``
    and ``["ece"]`` are those of the uncalibrated scores, ``["brier.platt"]``, ``["ece.platt"]``,
    ``["brier.isotonic"]`` and ``["ece.isotonic"]`` those after calibration on valid.

    - names: Names of the relations, in id order.
    - overall: Metrics over all test triples.
    - curves: Before calibration, after Platt scaling, after isotonic regression.
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
        choose("value", key, values)
        return float(values[key])

    def _subject(self) -> str:
        total = self.overall.n_true + self.overall.n_false
        return f" of {total:,} triples, {len(self.of_relation):,} relations"

    def _lines(self) -> tuple[str, str]:
        return (
            f"{self.overall.n_true:,} true, {self.overall.n_false:,} false",
            f"accuracy {self['accuracy']:.4f}, AUC-ROC {self['auc_roc']:.4f}",
        )

    def __str__(self) -> str:
        total = self.overall.n_true + self.overall.n_false
        n_thresholds = len(self.thresholds.of_relation.keys() & self.of_relation.keys())
        chosen = f"{n_thresholds:,} of {len(self.of_relation):,} relations have their own threshold"
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
        """Return a table of each metric over all test triples, and of its mean over relations."""
        columns = "all triples=metric, value=micro:4, low:4, high:4, mean over relations=macro:4"
        means = map(self.mean, METRICS)
        return Table.from_columns(columns, TITLES.values(), *self.overall.values.T, means)

    def mean(self, name: str) -> float:
        """Return the mean of a metric over relations that have it (macro); NaN if none has."""
        values = [metrics.values[METRICS.index(name), 0] for metrics in self.of_relation.values()]
        known = [value for value in values if not np.isnan(value)]
        return float(np.mean(known)) if known else float("nan")

    def relation_table(self) -> Table:
        """Return a table of triples, threshold and metrics per relation; most triples first."""
        chosen = self.thresholds
        rows = [
            (
                self.names[number],
                "own" if number in chosen.of_relation else "overall",
                metrics.n_true,
                metrics.n_false,
                chosen.of_relation.get(number, chosen.overall),
                *metrics.values[:, 0].tolist(),
            )
            for number, metrics in self.of_relation.items()
        ]
        rows.sort(key=lambda row: (-row[2] - row[3], row[0]))
        heads = (
            "relation, threshold=threshold_of, true=n_true, false=n_false, from=threshold:3, "
            + ", ".join(f"{title}={name}:3" for name, title in TITLES.items())
        )
        return Table.from_rows(heads, rows)

    def interval_table(self) -> Table:
        """Return a table with the value and interval of each metric and relation."""
        rows = [
            (self.names[number], title, *values)
            for number, metrics in self.of_relation.items()
            for title, values in zip(TITLES.values(), metrics.values.tolist(), strict=True)
        ]
        return Table.from_rows("relation, metric, value:4, low:4, high:4", rows, names=2)

    def calibration_table(self) -> Table:
        """Return a table of Brier score and ECE before and after calibration on valid."""
        columns = (
            "probabilities, Brier=brier:4, low=brier_low:4, high=brier_high:4, ECE=ece:4, "
            "low=ece_low:4, high=ece_high:4"
        )
        values = np.array([(*curve.brier, *curve.ece) for curve in self.curves]).T
        return Table.from_columns(columns, [curve.name for curve in self.curves], *values)

    def curve_table(self) -> Table:
        """Return a table of the reliability curves, with one row per bin."""
        rows = [
            (curve.name, number, *bins)
            for curve in self.curves
            for number, *bins in zip(
                range(1, len(curve.sizes) + 1),
                curve.sizes.tolist(),
                curve.predicted.tolist(),
                curve.observed.tolist(),
                strict=True,
            )
        ]
        columns = "probabilities, bin, triples=n, predicted:4, true=observed:4"
        return Table.from_rows(columns, rows, names=2)

    def to_dict(self) -> dict[str, Any]:
        """Return all values of the tables, under plain names.

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
                "percent": self.resampling.percent,
                "resamples": self.resampling.resamples,
                "seed": self.resampling.seed,
                "drawn": "(head, relation) groups",
            },
        }

    def to_json(self) -> str:
        """Return `to_dict` as JSON; NaN becomes null."""
        return dump_json(self.to_dict())
