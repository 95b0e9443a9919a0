"""Figures of popularity: beta curves, the beta grid, and how frequent entities are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from kgtrec.errors import UsageError
from kgtrec.measures import Measure
from kgtrec.plots.style import (
    COLUMN,
    figure,
    label_panels,
    legend_above,
    series_style,
    short,
    styled,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from kgtrec.graph.statistics.popularity import Frequencies
    from kgtrec.study.stratified import BetaGrid

__all__ = ["beta_curves", "beta_heat_map", "popularity"]

PERCENTS = np.geomspace(0.1, 100, 200)


def beta_curves(grids: Mapping[str, BetaGrid]) -> Figure:
    """Stratified metrics over one exponent (Mohamed et al., Figures 2-4), a panel a metric.

    Parameters
    ----------
    grids : mapping of str to BetaGrid
        Curves over the same exponent and of the same metrics, by the name in the legend.

    Raises
    ------
    UsageError
        A whole grid among them, or curves that differ in what they vary or measure.
    """
    metrics, varied = _common(grids)
    with styled():
        columns = min(len(metrics), 2)
        rows = -(-len(metrics) // columns)
        made, axes = figure(columns, rows, height=2.0, squeeze=False)
        panels: list[Axes] = list(axes.flat)
        for panel, metric in zip(panels, metrics, strict=False):
            for number, (name, grid) in enumerate(grids.items()):
                at = getattr(grid, varied)
                panel.plot(
                    at,
                    grid[metric].ravel(),
                    label=short(name) + " (sampled)" * grid.sampled,
                    **series_style(number),
                )
            panel.set_ylabel(f"strat-{_title(metric)}")
            panel.set_xlabel("β$_e$ (entities)" if varied == "beta_e" else "β$_r$ (relations)")
            panel.set_xlim(-1, 1)
            panel.set_xticks([-1, -0.5, 0, 0.5, 1])
        for panel in panels[len(metrics) :]:
            panel.remove()
        if len(grids) > 1 or any(grid.sampled for grid in grids.values()):
            legend_above(made)
        if len(metrics) > 1:
            label_panels(np.array(panels[: len(metrics)]))
        return made


def beta_heat_map(grid: BetaGrid, metric: str | None = None) -> Figure:
    """One metric at every pair of exponents, with contours.

    Parameters
    ----------
    grid : BetaGrid
        With both exponents varied.
    metric : str, optional
        The grid's first by default. The cross marks the micro average, the circle the mean over
        relations (Lemmas 1 and 2).

    Raises
    ------
    UsageError
        A curve, or a metric that the grid does not hold.
    """
    if min(len(grid.beta_e), len(grid.beta_r)) < 2:
        raise UsageError("a heat map needs both exponents varied; take beta_grid, or --vary grid")
    metric = metric or grid.metrics[0]
    values = grid[metric]
    with styled():
        made, axes = figure(width=COLUMN, height=2.7)
        at = grid.beta_r, grid.beta_e
        drawn = axes.pcolormesh(*at, values, cmap=_light_cividis(), shading="nearest")
        drawn.set_rasterized(True)
        lines = axes.contour(*at, values, colors="black", linewidths=0.6, linestyles="solid")
        axes.clabel(lines, fontsize=6)
        axes.plot([-1], [0], "kx", clip_on=False, markersize=6, mew=1.5, label="micro average")
        axes.plot([0], [0], "ko", fillstyle="none", markersize=5, mew=1.2,
                  label="mean over relations")  # fmt: skip
        axes.set_xlabel("β$_r$ (relations)")
        axes.set_ylabel("β$_e$ (entities)")
        axes.grid(False)
        made.colorbar(drawn, ax=axes, label="sampled " * grid.sampled + f"strat-{_title(metric)}")
        legend_above(made)
        return made


def _light_cividis() -> Any:
    """Cividis survives grey print and every colour vision deficiency; its dark end would swallow
    the contours."""
    from matplotlib import colormaps
    from matplotlib.colors import ListedColormap

    return ListedColormap(colormaps["cividis"](np.linspace(0.3, 1.0, 256)))


def popularity(frequencies: Mapping[str, Frequencies]) -> Figure:
    """Share of triples that involve the most frequent x % of items (Mohamed et al., Figure 1).

    Parameters
    ----------
    frequencies : mapping of str to Frequencies
        By the name in the legend, such as "entities" and "relations".
    """
    if not frequencies:
        raise UsageError("no frequencies to draw; give at least one")
    with styled():
        made, axes = figure()
        for number, (name, one) in enumerate(frequencies.items()):
            share = [100 * one.top(percent)[1] for percent in PERCENTS]
            axes.plot(PERCENTS, share, label=short(name), **series_style(number))
        axes.set_xscale("log")
        axes.set_xticks([0.1, 1, 10, 100], ["0.1 %", "1 %", "10 %", "100 %"])
        axes.set_ylim(0, 102)
        axes.set_xlabel("most frequent")
        axes.set_ylabel("% of triples that involve one")
        legend_above(made)
        return made


def _common(grids: Mapping[str, BetaGrid]) -> tuple[Sequence[str], str]:
    """Metrics and the exponent that all curves share."""
    if not grids:
        raise UsageError("no curves to draw; give at least one")
    kinds = {(grid.metrics, _varied(grid)) for grid in grids.values()}
    if len(kinds) > 1:
        raise UsageError("the curves differ in metrics or exponent; draw them apart")
    return kinds.pop()


def _varied(grid: BetaGrid) -> str:
    if min(len(grid.beta_e), len(grid.beta_r)) > 1:
        raise UsageError("this is a grid, not a curve; draw it as a heat map")
    return "beta_e" if len(grid.beta_e) > 1 else "beta_r"


def _title(metric: str) -> str:
    """Heading of a metric; a function of the user's keeps its name."""
    try:
        return Measure.parse(f"both.realistic.micro.{metric}").title
    except UsageError:
        return metric
