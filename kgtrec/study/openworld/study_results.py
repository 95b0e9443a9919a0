"""What the study of sparse against full metrics gives: curves, and how far they mislead."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kgtrec._internal.notebook import ShownAsTables
from kgtrec._internal.table import Cell, Table
from kgtrec.errors import UsageError
from kgtrec.study.openworld.family_tree import FamilyTree
from kgtrec.study.openworld.metrics import title_of

__all__ = ["Curve", "FamilyStudy", "Panel"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Curve:
    """One model, checkpoint by checkpoint.

    Attributes
    ----------
    model : str
    steps : ndarray of int64, shape (c,)
    full, sparse : dict of str to ndarray of float64, shape (c,)
        Each metric against all true answers, and against the recorded ones only.
    rho : ndarray of float64, shape (c,)
        Measured correlation of missing and predicted (full rank at most 10), Definition 4.1; NaN
        where one of them never varies.
    """

    model: str
    steps: NDArray[np.int64]
    full: dict[str, Floats]
    sparse: dict[str, Floats]
    rho: Floats


@dataclass(frozen=True, eq=False)
class Panel:
    """All models at one density and kind of removal.

    Attributes
    ----------
    density : float
        Share of all facts that are recorded.
    removal : {"independent", "correlated"}
    sparsity : float
        Share of the questions' full-test answers that are missing.
    n_questions : int
    full_answers, sparse_answers : float
        Answers a question has on average.
    curves : tuple of Curve
    theory : dict of str to (ndarray, ndarray)
        Full and sparse expectation of a metric in the paper's model without correlation, for
        strengths from 0 to 1, for questions with these numbers of answers.
    """

    density: float
    removal: str
    sparsity: float
    n_questions: int
    full_answers: float
    sparse_answers: float
    curves: tuple[Curve, ...]
    theory: dict[str, tuple[Floats, Floats]]

    def points(self, metric: str) -> tuple[Floats, Floats, NDArray[np.int64]]:
        """Full and sparse value of every checkpoint, and the number of its curve."""
        full = np.concatenate([curve.full[metric] for curve in self.curves])
        sparse = np.concatenate([curve.sparse[metric] for curve in self.curves])
        sizes = [len(curve.steps) for curve in self.curves]
        return full, sparse, np.repeat(np.arange(len(sizes)), sizes)

    def inconsistency(self, metric: str) -> float:
        """Share of the pairs of checkpoints, of different models, that the sparse metric misorders.

        Pairs that tie on either side are left out; NaN if no pair is left.
        """
        full, sparse, curve = self.points(metric)
        first, second = np.triu_indices(len(full), 1)
        order = np.sign(full[first] - full[second]) * np.sign(sparse[first] - sparse[second])
        order = order[(curve[first] != curve[second]) & (order != 0)]
        return float((order < 0).mean()) if len(order) else float("nan")

    def flattening(self, metric: str) -> float:
        """Slope of sparse over full in the upper half of the full range, over that in the lower.

        Least squares on each half. 1: no degradation; 0: the upper half tells nothing. NaN if a
        half has no two different points.
        """
        full, sparse, _ = self.points(metric)
        middle = (full.min() + full.max()) / 2
        halves = [_steepness(full[part], sparse[part]) for part in (full < middle, full >= middle)]
        return halves[1] / halves[0] if halves[0] else float("nan")

    def reach(self, metric: str) -> float:
        """Highest minus lowest sparse value: the range that models are told apart in."""
        _, sparse, _ = self.points(metric)
        return float(sparse.max() - sparse.min())

    def overtakings(self, metric: str, weaker: str, stronger: str) -> NDArray[np.int64]:
        """Figure 4: checkpoints of one model that are better than another's in full, worse sparse.

        Returns
        -------
        ndarray of int64, shape (n, 2)
            Pairs of positions: checkpoint of `weaker`, checkpoint of `stronger`.
        """
        one, other = self._named(weaker), self._named(stronger)
        better = other.full[metric][None, :] > one.full[metric][:, None]
        worse = other.sparse[metric][None, :] < one.sparse[metric][:, None]
        return np.argwhere(better & worse)

    def _named(self, model: str) -> Curve:
        for curve in self.curves:
            if curve.model == model:
                return curve
        names = ", ".join(curve.model for curve in self.curves)
        raise UsageError(f"no curve of {model!r}; choose one of: {names}")


@dataclass(frozen=True, eq=False)
class FamilyStudy(ShownAsTables):
    """Result of `family_study`.

    Attributes
    ----------
    tree : FamilyTree
    metrics : tuple of str
    panels : tuple of Panel
    """

    tree: FamilyTree
    metrics: tuple[str, ...]
    panels: tuple[Panel, ...]

    def table(self) -> Table:
        """One row for each density, removal and metric: inconsistency, flattening, reach."""
        rows = [
            (
                f"d={panel.density:.0%} {panel.removal}, {title_of(metric)}",
                panel.sparsity,
                panel.reach(metric),
                panel.flattening(metric),
                panel.inconsistency(metric),
            )
            for panel in self.panels
            for metric in self.metrics
        ]
        return Table(
            ("", "sparsity", "range", "slope ratio", "misordered"),
            ("panel", "sparsity", "reach", "flattening", "inconsistency"),
            (0, 3, 4, 3, 4),
            rows,
        )

    def points(self) -> Table:
        """One row for each checkpoint: every metric, full and sparse, and the correlation."""
        rows: list[tuple[Cell, ...]] = [
            (
                curve.model,
                panel.density,
                panel.removal,
                int(step),
                *(float(curve.full[metric][i]) for metric in self.metrics),
                *(float(curve.sparse[metric][i]) for metric in self.metrics),
                float(curve.rho[i]),
            )
            for panel in self.panels
            for curve in panel.curves
            for i, step in enumerate(curve.steps)
        ]
        sides = [(side, metric) for side in ("full", "sparse") for metric in self.metrics]
        titles = [f"{side} {title_of(metric)}" for side, metric in sides]
        keys = [f"{side}.{metric}" for side, metric in sides]
        return Table(
            ("model", "density", "removal", "step", *titles, "rho"),
            ("model", "density", "removal", "step", *keys, "rho"),
            (0, 2, 0, 0, *([4] * len(sides)), 3),
            rows,
        )

    def __str__(self) -> str:
        first = self.panels[0]
        lines = [
            "Sparse against full metrics, on",
            f"{self.tree!r},",
            f"{len(first.curves)} models or more, {first.n_questions} tail questions a panel",
            "",
            self.table().to_text(),
            "",
            _LEGEND,
        ]
        return "\n".join(lines)


_LEGEND = """\
sparsity     share of the test answers that the sparse graph lacks
range        highest less lowest sparse value: the range that tells models apart
slope ratio  steepness of sparse over full in the upper half of the full values,
             over that in the lower: 1 is not a degradation, 0 says nothing
misordered   share of pairs of checkpoints, of different models, that the sparse
             values put the other way round than the full ones"""


def _steepness(full: Floats, sparse: Floats) -> float:
    if len(np.unique(full)) < 2:
        return float("nan")
    return float(np.polyfit(full, sparse, 1)[0])
