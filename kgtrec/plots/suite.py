"""Figures of many models on many graphs: places, critical differences, a heat map of cells."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kgtrec.errors import UsageError
from kgtrec.plots.style import figure, series_style, short, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from kgtrec.study.suite.suite import Suite

ROW = 0.16
"""Height in inches of a model's row."""


def _names(suite: Suite, rows: list[int]) -> list[str]:
    return [short(suite.cells.models[m], 24) for m in rows]


def suite_places(suite: Suite) -> Figure:
    """Place of every ranked model with its interval over graphs, questions and seeds.

    Parameters
    ----------
    suite : Suite

    Returns
    -------
    Figure
        One row per model, the best mean rank first.
    """
    rows = [m for m in suite.order if not suite.apart[m]]
    low, high = suite.interval(suite.place_draws)
    with styled():
        made, axes = figure(height=0.8 + ROW * len(rows))
        for row, m in enumerate(rows):
            axes.plot([low[m], high[m]], [row, row], linewidth=2.4, color="#9db9cf")
            look = series_style(m, marked=True) | {"linestyle": "none"}
            axes.plot([row + 1], [row], **look)
        axes.set_yticks(range(len(rows)), _names(suite, rows))
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.set_xlabel(f"place, with {suite.resampling.percent:g}% interval")
        axes.set_ylabel("model")
        axes.xaxis.get_major_locator().set_params(integer=True)
        return made


def critical_difference(suite: Suite) -> Figure:
    """Mean ranks on one axis; bars join models that Nemenyi's test cannot tell apart.

    Parameters
    ----------
    suite : Suite
        With three or more ranked models on two or more complete graphs.

    Returns
    -------
    Figure

    Raises
    ------
    UsageError
        Too few models or graphs for the test.
    """
    test = suite.friedman
    if test is None:
        raise UsageError(
            "a critical-difference diagram needs three models on two graphs that all have; "
            "draw the places instead"
        )
    ranked = np.flatnonzero(~suite.apart)
    best_first = np.argsort(test.mean_ranks, kind="stable")
    rows, ranks = ranked[best_first], test.mean_ranks[best_first]
    half = -(-len(rows) // 2)
    bars = _joined(ranks, test.critical_difference)
    with styled():
        made, axes = figure(height=0.7 + ROW * half + 0.1 * len(bars), width=2 * 3.4)
        axes.grid(False)
        bottom = -(half + 1.5 + 0.6 * len(bars))
        for row, rank in enumerate(ranks):
            left = row < half
            y = -(1.2 + 0.6 * len(bars) + (row if left else len(rows) - 1 - row))
            edge = 0.8 if left else len(rows) + 0.2
            axes.plot([rank, rank, edge], [0, y, y], color="#444444", linewidth=0.7)
            name = f"{short(suite.cells.models[rows[row]], 24)} ({rank:.2f})"
            axes.text(edge, y, f"{name} " if left else f" {name}", va="center",
                      ha="right" if left else "left")  # fmt: skip
        for number, (first, last) in enumerate(bars):
            y = -0.5 - 0.6 * number
            ends = [ranks[first] - 0.04, ranks[last] + 0.04]
            axes.plot(ends, [y, y], linewidth=2.6, color="#000000", solid_capstyle="butt")
        gap = test.critical_difference
        axes.plot([1, 1 + gap], [2.3, 2.3], color="#000000", linewidth=1.6, marker="|")
        axes.text(1 + gap / 2, 2.5, f"critical difference {gap:.2f}", ha="center", va="bottom")
        axes.set_xlim(-0.35 * len(rows), 1.35 * len(rows) + 1)
        axes.set_ylim(bottom, 3.9)
        axes.set_xticks(range(1, len(rows) + 1))
        axes.spines["bottom"].set_bounds(1, len(rows))
        axes.spines["bottom"].set_position(("data", 0))
        axes.tick_params(axis="x", direction="in", pad=-12)
        axes.spines["left"].set_visible(False)
        axes.set_yticks([])
        axes.set_title(f"mean rank over {test.graphs} graphs (1 is best)")
        return made


def _joined(ranks: np.ndarray, gap: float) -> list[tuple[int, int]]:
    """First and last of every longest run of models within a gap; ranks ascend."""
    last = [int(np.searchsorted(ranks, rank + gap, "left")) - 1 for rank in ranks]
    return [
        (first, end)
        for first, end in enumerate(last)
        if end > first and (first == 0 or last[first - 1] < end)
    ]


def suite_cells(suite: Suite) -> Figure:
    """A heat map of models and graphs, both sorted by their means; missing cells are crossed.

    Parameters
    ----------
    suite : Suite

    Returns
    -------
    Figure
    """
    values = suite.cells.values[suite.order]
    columns = np.argsort(-np.nanmean(values, axis=0), kind="stable")
    values = values[:, columns]
    n_models, n_graphs = values.shape
    with styled():
        made, axes = figure(height=1.2 + ROW * n_models, width=max(3.4, 2.6 + 0.2 * n_graphs))
        axes.grid(False)
        shown = axes.imshow(values, aspect="auto", cmap="cividis")
        if n_models * n_graphs <= 200:
            middle = (np.nanmin(values) + np.nanmax(values)) / 2
            for (row, column), value in np.ndenumerate(values):
                if np.isfinite(value):
                    axes.text(column, row, f"{value:.2f}", ha="center", va="center", fontsize=5,
                              color="black" if value > middle else "white")  # fmt: skip
        missing = np.argwhere(np.isnan(values))
        axes.plot(missing[:, 1], missing[:, 0], "x", color="#777777", label="missing")
        names = [short(suite.cells.graphs[g], 18) for g in columns]
        axes.set_xticks(range(n_graphs), names, rotation=90)
        axes.set_yticks(range(n_models), _names(suite, suite.order))
        axes.set_xlabel("graph" + (" (x: missing)" if len(missing) else ""))
        axes.set_ylabel("model")
        made.colorbar(shown, ax=axes, label=suite.cells.measure.title)
        return made
