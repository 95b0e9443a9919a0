"""Figures of rankings of systems: side by side, on parts of the test set, by depth of the pool."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kgtrec.errors import UsageError
from kgtrec.plots.style import (
    COLUMN,
    figure,
    label_ends,
    label_panels,
    legend_above,
    marker_places,
    series_style,
    short,
    styled,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from kgtrec.study.comparison.rankings import Rankings
    from kgtrec.study.comparison.stability import DepthCurves, Sensitivity

__all__ = ["bump_chart", "depth_curves", "sensitivity"]

BANDS = 3
"""So many bands can be told from each other; with more lines there are none."""

FEW, SHORT = 5, 14
"""So many curves with names of so many letters are named where they end."""

_LABEL = 1.05  # inches of names on each side of a bump chart
_STEP = 1.0  # inches from ranking to ranking


def bump_chart(rankings: Rankings | Sequence[Rankings]) -> Figure:
    """Places of the systems in two or more rankings, a line for each system.

    Parameters
    ----------
    rankings : Rankings, or several of them
        A panel for each.

    Returns
    -------
    Figure
        Between neighbouring rankings stands their tau-b with its interval (over questions, or
        over systems where values alone are known: the figure says which). Grey bars hold systems
        together that tie.
    """
    from kgtrec.study.comparison.rankings import Rankings

    several = [rankings] if isinstance(rankings, Rankings) else list(rankings)
    if not several:
        raise UsageError("no rankings to draw; give at least one")
    most = max(len(one.names) for one in several)
    columns = 2 if most == 2 and len(several) > 1 else 1
    rows = -(-len(several) // columns)
    width = max(COLUMN, 2 * _LABEL + _STEP * (most - 1)) * columns
    height = 0.85 + 0.17 * len(several[0].systems)
    with styled():
        made, axes = figure(columns, rows, width=width, height=height, squeeze=False)
        panels = list(axes.flat)
        for panel, one in zip(panels, several, strict=False):
            _bump(panel, one)
        for panel in panels[len(several) :]:
            panel.remove()
        if len(several) > 1:
            label_panels(np.array(panels[: len(several)]))
        return made


def _bump(axes: Any, one: Rankings) -> None:
    slots, places = _slots(one), one.places()
    n_rankings, n_systems = slots.shape
    at = np.arange(n_rankings)
    order = np.argsort(slots[0]).tolist()
    for number, i in enumerate(order):
        style = series_style(number, marked=True)
        axes.plot(at, slots[:, i], clip_on=False, label=one.systems[i], **style)
        for end, side in ((0, "right"), (n_rankings - 1, "left")):
            text = (
                f"{short(one.systems[i], 16)}  " if end == 0 else f"  {short(one.systems[i], 16)}"
            )
            axes.text(end, slots[end, i], text, ha=side, va="center", fontsize=6.5)
    for k in range(n_rankings):
        for place in np.unique(places[k]):
            tied = slots[k][places[k] == place]
            if len(tied) > 1:
                axes.plot([k, k], [tied.min(), tied.max()], color="#bbbbbb", linewidth=5,
                          solid_capstyle="round", zorder=0)  # fmt: skip
    for k in range(n_rankings - 1):
        between = one.agreement(k, k + 1)
        low, high = between.tau_interval
        text = f"τ = {between.tau:.2f}\n[{low:.2f}, {high:.2f}]".replace("-", "\N{MINUS SIGN}")
        axes.text(k + 0.5, n_systems - 0.4, text, ha="center", va="top", fontsize=6.5)
    axes.set_xlim(-_LABEL / _STEP, n_rankings - 1 + _LABEL / _STEP)
    axes.set_ylim(n_systems + 0.9, -0.6)
    axes.set_xticks(at, [short(name, 18) for name in one.names])
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    axes.set_yticks([])
    axes.grid(False)
    for spine in axes.spines.values():
        spine.set_visible(False)
    drawn = one.agreement(0, 1)
    note = f"{drawn.confidence:.0%} intervals over {drawn.over}"
    if any(len(np.unique(row)) < n_systems for row in places):
        note += "; grey: equal values"
    axes.set_xlabel(f"{one.title}: {note}" if one.title else note)


def _slots(one: Rankings) -> NDArray[np.int64]:
    """Rows of the systems, 0 on top; among those that tie, in the order of the ranking before."""
    places = one.places()
    slots = np.empty_like(places)
    before = np.arange(places.shape[1])
    for k, row in enumerate(places):
        slots[k][np.lexsort((before, row))] = np.arange(len(row))
        before = slots[k]
    return slots


def sensitivity(result: Sensitivity) -> Figure:
    """Mean correlation of rankings on random parts of the test set with that on all of it.

    Parameters
    ----------
    result : Sensitivity

    Returns
    -------
    Figure
        A line for each measure, as in Figure 7 of Zhou et al. (2022); with up to three measures a
        band that holds the middle 95 % of the random parts.
    """
    with styled():
        from matplotlib.patches import Patch

        made, axes = figure(height=2.7)
        share = 100 * result.shares
        low, high = result.spread()
        for number, (title, tau) in enumerate(zip(result.titles, result.mean(), strict=True)):
            style = series_style(number, marked=True)
            style["markevery"] = marker_places(number, len(result.shares))
            axes.plot(share, tau, label=title, **style)
            if len(result.titles) <= BANDS:
                axes.fill_between(share, low[number], high[number], color=style["color"],
                                  alpha=0.13, linewidth=0)  # fmt: skip
        axes.set_xlabel("test triples kept (%)")
        axes.set_ylabel("Kendall's τ to the whole test set")
        axes.set_xlim(0, 100)
        axes.set_ylim(top=1.02)
        band = Patch(facecolor="#888888", alpha=0.3, label="95 % of the parts")
        legend_above(made, [band] * (len(result.titles) <= BANDS))
        return made


def depth_curves(curves: DepthCurves) -> Figure:
    """Correlation of rankings at every depth of a pool with that at the reference depth.

    Parameters
    ----------
    curves : DepthCurves

    Returns
    -------
    Figure
        A line for each measure, as in Figures 4 and 5 of Zhou et al. (2022), with bars over the
        intervals where they are known. Measures stand a little beside each other, or bars would
        hide bars.
    """
    with styled():
        made, axes = figure(height=2.7)
        depths = np.array(curves.depths, np.float64)
        many = len(curves.measures)
        for number, (name, tau) in enumerate(zip(curves.measures, curves.tau, strict=True)):
            style = series_style(number, marked=True)
            if curves.interval is None:
                axes.plot(depths, tau, label=name, **style)
                continue
            low, high = curves.interval[:, number]
            gaps = [np.maximum(tau - low, 0), np.maximum(high - tau, 0)]
            beside = 0.5 / many * (number - (many - 1) / 2)
            axes.errorbar(depths + beside, tau, yerr=gaps, label=name, elinewidth=0.6, capsize=1.2,
                          capthick=0.6, **style)  # fmt: skip
        axes.axhline(0, color="#888888", linewidth=0.6)
        axes.set_xlabel("pool depth")
        axes.set_ylabel(f"Kendall's τ to depth {curves.reference}")
        if len(curves.depths) <= 15:
            axes.set_xticks(list(curves.depths))
        axes.set_ylim(top=1.05)
        bars = f"bars: {curves.confidence:.0%} intervals" if curves.interval is not None else ""
        if many > FEW or max(map(len, curves.measures)) > SHORT:
            legend_above(made, title=bars or None)
            return made
        label_ends(axes, [
            (name, float(tau[-1]), series_style(number)["color"])
            for number, (name, tau) in enumerate(zip(curves.measures, curves.tau, strict=True))
        ])  # fmt: skip
        axes.set_xlabel(f"pool depth ({bars})" if bars else "pool depth")
        return made
