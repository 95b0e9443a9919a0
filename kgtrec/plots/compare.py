"""Figures of compared systems: intervals, p-value curves, data sensitivity, pool depths."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from kgtrec.errors import UsageError
from kgtrec.plots.style import figure, label_panels, series_style, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from kgtrec.study.comparison import Comparison
    from kgtrec.study.discriminative import Discrimination
    from kgtrec.study.stability import DepthCurves, Sensitivity

__all__ = ["depth_curves", "intervals", "p_curves", "sensitivity"]


def intervals(compared: Sequence[Comparison]) -> Figure:
    """Values of the systems with their intervals, a panel for each measure.

    Parameters
    ----------
    compared : sequence of Comparison
        One for each measure, of the same systems.

    Returns
    -------
    Figure
        Systems stand in the order of the first measure, best on top. Filled: the best one by the
        panel's measure, and those that are not significantly worse.
    """
    if not compared:
        raise UsageError("no comparison to draw; give at least one")
    order = compared[0].order
    names = [compared[0].samples.systems[i] for i in order]
    with styled():
        made, panels = figure(
            len(compared), height=0.75 + 0.2 * len(order), sharey=True, squeeze=False
        )
        for axes, one in zip(panels.flat, compared, strict=True):
            low, high = one.intervals()
            better = one.tests.better(one.level)
            best = one.order[0]
            for row, i in enumerate(order):
                value = one.resampled.estimate[i]
                fill = "none" if better[best, i] else "full"
                axes.errorbar(
                    [value], [row], xerr=[[value - low[i]], [high[i] - value]], fmt="o",
                    color="#0072B2", fillstyle=fill, capsize=1.5, linewidth=0.8,
                )  # fmt: skip
            axes.set_xlabel(f"{one.samples.title} ({one.samples.unit})")
        first = panels.flat[0]
        first.set_yticks(range(len(names)), names)
        first.set_ylim(len(names) - 0.5, -0.5)
        if len(compared) > 1:
            label_panels(panels)
        return made


def p_curves(found: Discrimination, level: float = 0.05) -> Figure:
    """p-values of all pairs of systems in descending order, a curve for each measure.

    Parameters
    ----------
    found : Discrimination
    level : float
        Drawn as a line: pairs below it are told apart.

    Returns
    -------
    Figure
        The legend gives the area under each curve; the smaller, the more discriminative.
    """
    with styled():
        made, axes = figure()
        pairs = np.arange(1, found.p.shape[1] + 1)
        for number, (title, p, area) in enumerate(
            zip(found.titles, found.p, found.area.tolist(), strict=True)
        ):
            style = series_style(number, marked=True)
            style["markevery"] = max(1, len(pairs) // 8)
            axes.plot(pairs, p, label=f"{title}: {area:.4f}", **style)
        axes.axhline(level, color="#888888", linewidth=0.6)
        axes.set_ylim(-0.02, 1.02)
        axes.set_xlabel("pair of systems, largest p-value first")
        axes.set_ylabel(f"p ({found.test} test)")
        axes.legend(title="area under the curve")
        return made


def sensitivity(found: Sensitivity) -> Figure:
    """Mean correlation of rankings on random parts of the test set with that on all of it.

    Parameters
    ----------
    found : Sensitivity

    Returns
    -------
    Figure
        A line for each measure, as in Figure 7 of Zhou et al. (2022).
    """
    with styled():
        made, axes = figure()
        for number, (title, tau) in enumerate(zip(found.titles, found.mean(), strict=True)):
            style = series_style(number, marked=True)
            style["markevery"] = max(1, len(found.shares) // 8)
            axes.plot(100 * found.shares, tau, label=title, **style)
        axes.set_xlabel("test triples kept (%)")
        axes.set_ylabel("Kendall's τ to the whole test set")
        axes.set_ylim(top=1.02)
        axes.legend(loc="lower right")
        return made


def depth_curves(found: DepthCurves) -> Figure:
    """Correlation of rankings at every depth of a pool with that at the reference depth.

    Parameters
    ----------
    found : DepthCurves

    Returns
    -------
    Figure
        A line for each measure, as in Figures 4 and 5 of Zhou et al. (2022).
    """
    with styled():
        made, axes = figure()
        for number, (name, tau) in enumerate(zip(found.measures, found.tau, strict=True)):
            axes.plot(found.depths, tau, label=name, **series_style(number, marked=True))
        axes.axhline(0, color="#888888", linewidth=0.6)
        axes.set_xlabel("pool depth")
        axes.set_ylabel(f"Kendall's τ to depth {found.reference}")
        _whole_ticks(axes, found.depths)
        axes.legend()
        return made


def _whole_ticks(axes: Any, depths: Sequence[int]) -> None:
    if len(depths) <= 15:
        axes.set_xticks(list(depths))
