"""What triple classification gives: values with intervals, tables, plain dicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kgtrec._internal.bootstrap import Resampling
from kgtrec._internal.notebook import lines_as_html
from kgtrec._internal.table import Cell, Table, dump_json
from kgtrec.errors import UsageError
from kgtrec.study.classification.calibration import ReliabilityCurve
from kgtrec.study.classification.thresholds import Thresholds
from kgtrec.study.classification.weighted_metrics import METRICS

__all__ = ["TITLES", "Classification", "RelationMetrics"]

Floats = npt.NDArray[np.float64]

TITLES = dict(
    zip(METRICS, ("accuracy", "precision", "recall", "F1", "MCC", "AUC-ROC", "AUC-PR"), strict=True)
)
"""Metrics as tables name them."""


@dataclass(frozen=True, eq=False)
class RelationMetrics:
    """Metrics of the triples of one relation, or of all.

    Attributes
    ----------
    n_true, n_false : int
    values : ndarray of float64, shape (metrics, 3)
        Of each of `METRICS`: value, and the ends of its interval.
    """

    n_true: int
    n_false: int
    values: Floats


@dataclass(frozen=True, eq=False, repr=False)
class Classification:
    """Metrics over all test triples and by relation, thresholds, and calibration.

    ``classification["f1"]`` is a value over all test triples (micro), ``classification["brier"]``
    and ``["ece"]`` those of the scores as they are.

    Attributes
    ----------
    names : sequence of str
        Of relations, in id order.
    overall : RelationMetrics
        Over all test triples.
    of_relation : dict of int to RelationMetrics
    thresholds : Thresholds
    curves : list of ReliabilityCurve
        Before calibration, after Platt scaling, after isotonic regression.
    resampling : Resampling
        How the intervals were made.
    """

    names: Sequence[str]
    overall: RelationMetrics
    of_relation: dict[int, RelationMetrics]
    thresholds: Thresholds
    curves: list[ReliabilityCurve]
    resampling: Resampling

    def __getitem__(self, key: str) -> float:
        values = {name: self.overall.values[k, 0] for k, name in enumerate(METRICS)}
        values |= {"brier": self.curves[0].brier[0], "ece": self.curves[0].ece[0]}
        if key not in values:
            raise UsageError(f"there is no value {key!r}; there are {', '.join(values)}")
        return float(values[key])

    def __repr__(self) -> str:
        total = self.overall.n_true + self.overall.n_false
        return (
            f"Classification of {total:,} triples, {len(self.of_relation):,} relations\n"
            f"  {self.overall.n_true:,} true, {self.overall.n_false:,} false\n"
            f"  accuracy {self['accuracy']:.4f}, AUC-ROC {self['auc_roc']:.4f}"
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

    def _repr_html_(self) -> str:
        tables = self.table()._repr_html_() + self.calibration_table()._repr_html_()
        return lines_as_html(repr(self)) + tables

    def table(self) -> Table:
        """A row a metric over all test triples, its interval, and the mean over relations."""
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
        """A row a test relation: its triples, its threshold, its metrics; most triples first."""
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
        """The reliability curves: a row a bin."""
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
        """Everything that tables show, under plain names."""
        return {
            "overall": self.table().to_dict(),
            "relations": self.relation_table().to_dict(),
            "calibration": self.calibration_table().to_dict(),
            "reliability": self.curve_table().to_dict(),
            "criterion": self.thresholds.criterion,
            "intervals": {
                "percent": self.resampling.percent, "resamples": self.resampling.resamples,
                "seed": self.resampling.seed, "drawn": "(head, relation) groups",
            },
        }  # fmt: skip

    def to_json(self) -> str:
        """`to_dict` as JSON; NaN and infinities become null."""
        return dump_json(self.to_dict())
