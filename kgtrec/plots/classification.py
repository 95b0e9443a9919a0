"""Reliability curves: what scores claim against what is true."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kgtrec.errors import UsageError
from kgtrec.plots.style import figure, legend_above, series_style, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from kgtrec.study.classification.calibration import ReliabilityCurve

__all__ = ["reliability_curves"]


def reliability_curves(curves: Sequence[ReliabilityCurve]) -> Figure:
    """Share of true triples against predicted probability, a line a calibrator.

    Parameters
    ----------
    curves : sequence of ReliabilityCurve
        As a `Classification` has them. A point is a bin; on the diagonal, predictions are right.
    """
    if not curves:
        raise UsageError("no reliability curve to draw; give at least one")
    with styled():
        made, axes = figure(height=2.6)
        axes.plot([0, 1], [0, 1], color="#888888", linewidth=0.8, linestyle=":", label="as claimed")
        for number, curve in enumerate(curves):
            label = f"{curve.name} (ECE {curve.ece[0]:.3f})"
            look = series_style(number, marked=True)
            axes.plot(curve.predicted, curve.observed, label=label, **look)
        axes.set_xlabel("predicted probability")
        axes.set_ylabel("share of true triples")
        axes.set_xlim(-0.02, 1.02)
        axes.set_ylim(-0.02, 1.02)
        legend_above(made)
        return made
