"""Figures of compared systems: intervals, pairs, p-value curves, pools without one of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from kgtrec.errors import UsageError
from kgtrec.plots.style import (
    COLUMN,
    figure,
    label_panels,
    legend_above,
    marker_places,
    series_style,
    short,
    styled,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from kgtrec.study.comparison.discriminative_power import Discrimination
    from kgtrec.study.comparison.report import Comparison
    from kgtrec.study.pooling.reusability import Reuse

__all__ = ["intervals", "left_out", "p_curves", "pair_matrix"]

SHADES = ("#ffffff", "#a9cbe6", "#4292c6", "#08306b")
STARS = ("", "*", "**", "***")
"""Of pairs that are not told apart, and at the level, a fifth and a fiftieth of it."""

CORRECTIONS = {"holm": "Holm's", "bh": "BH's", "bonferroni": "Bonferroni's", "none": "plain"}


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
    names = [short(compared[0].samples.systems[i], 20) for i in order]
    with styled():
        columns, rows = _grid(len(compared))
        made, axes = figure(
            columns, rows, height=0.75 + 0.2 * len(order), sharey=True, squeeze=False
        )
        panels = list(axes.flat)
        for axes, one in zip(panels, compared, strict=False):
            low, high = one.intervals()
            better = one.tests.better(one.level)
            best = one.order[0]
            for row, i in enumerate(order):
                value = one.resampled.estimate[i]
                fill = "none" if better[best, i] else "full"
                # Corrected intervals may lie beside the value; bars have no negative length.
                ends = [[max(value - low[i], 0)], [max(high[i] - value, 0)]]
                axes.errorbar(
                    [value], [row], xerr=ends, fmt="o",
                    color="#0072B2", fillstyle=fill, capsize=1.5, linewidth=0.8,
                )  # fmt: skip
            axes.set_xlabel(f"{one.samples.title} ({one.samples.unit})")
        _rows(panels, len(compared), names)
        legend_above(made, _fillings(compared[0]))
        return made


def _fillings(one: Comparison) -> list[Any]:
    """What filled and empty circles are, and their bars, for a legend."""
    from matplotlib.lines import Line2D

    look: dict[str, Any] = {"color": "#0072B2", "marker": "o", "linewidth": 0.8}
    full = Line2D([], [], label=f"best, or not worse ({one.confidence:.0%} intervals)", **look)
    worse = f"worse at p < {one.level:g}"
    return [full, Line2D([], [], fillstyle="none", label=worse, **look)]


def _grid(many: int) -> tuple[int, int]:
    """Columns and rows of panels that share a page's width."""
    columns = min(many, 4)
    return columns, -(-many // columns)


def _rows(panels: Sequence[Any], used: int, names: Sequence[str]) -> None:
    """A row a system in every panel, names at the left; panels that are not used go."""
    panels[0].set_yticks(range(len(names)), names)
    panels[0].set_ylim(len(names) - 0.5, -0.5)
    for panel in panels[:used]:
        panel.locator_params(axis="x", nbins=4)
    for panel in panels[used:]:
        panel.remove()
    if used > 1:
        label_panels(np.array(panels[:used]))


def p_curves(discrimination: Discrimination, level: float = 0.05) -> Figure:
    """p-values of all pairs of systems in descending order, a curve for each measure.

    Parameters
    ----------
    discrimination : Discrimination
    level : float
        Drawn as a line: pairs below it are told apart.

    Returns
    -------
    Figure
        The legend gives the area under each curve; the smaller, the more discriminative.
    """
    with styled():
        made, axes = figure()
        pairs = np.arange(1, discrimination.p.shape[1] + 1)
        for number, (title, p, area) in enumerate(
            zip(discrimination.titles, discrimination.p, discrimination.area.tolist(), strict=True)
        ):
            style = series_style(number, marked=True)
            style["markevery"] = marker_places(number, len(pairs))
            axes.plot(pairs, p, label=f"{title}: {area:.4f}", **style)
        axes.axhline(level, color="#888888", linewidth=0.6, label=f"p = {level:g}")
        axes.set_ylim(-0.02, 1.02)
        axes.set_xlabel("pair of systems, largest p-value first")
        axes.set_ylabel(f"p ({discrimination.test} test)")
        legend_above(made, title="area under the curve")
        return made


def pair_matrix(compared: Sequence[Comparison]) -> Figure:
    """Every pair of systems: told apart or not, and by how much; a panel for each measure.

    Parameters
    ----------
    compared : sequence of Comparison
        One for each measure, of the same systems.

    Returns
    -------
    Figure
        Systems from the best to the worst by the panel's measure. Above the diagonal, shade and
        stars say how small the corrected p-value of row against column is; below it stands the
        effect size d_z of column against row (mean difference in standard deviations).
    """
    if not compared:
        raise UsageError("no comparison to draw; give at least one")
    many = len(compared[0].samples.systems)
    wide = max(COLUMN, 1.15 + 0.17 * many)
    columns = 2 if len(compared) > 1 and wide <= COLUMN else 1
    rows = -(-len(compared) // columns)
    with styled():
        made, axes = figure(
            columns, rows, width=wide * columns, height=1.15 + 0.155 * max(many, 5), squeeze=False
        )
        panels = list(axes.flat)
        for panel, one in zip(panels, compared, strict=False):
            _matrix(panel, one)
        for panel in panels[len(compared) :]:
            panel.remove()
        _key(made, compared[0])
        if len(compared) > 1:
            label_panels(np.array(panels[: len(compared)]))
        return made


def _matrix(axes: Any, one: Comparison) -> None:
    from matplotlib.patches import Rectangle

    order, names = one.order, one.samples.systems
    row_of = {system: row for row, system in enumerate(order)}
    many = len(order)
    size = 6.5 if many <= 6 else 5
    cells = zip(one.tests.pairs.tolist(), one.tests.corrected.tolist(), one.effects.d_z.tolist(),
                strict=True)  # fmt: skip
    for (i, j), p, d_z in cells:
        top, bottom = sorted((row_of[i], row_of[j]))
        step = sum(p < bound for bound in _steps(one.level))
        box = Rectangle((bottom - 0.5, top - 0.5), 1, 1, facecolor=SHADES[step], edgecolor="white")
        axes.add_patch(box)
        ink = "white" if step > 1 else "black"
        axes.text(bottom, top, STARS[step], ha="center", va="center", color=ink, fontsize=size)
        text = f"{abs(d_z):.2f}".removeprefix("0") if np.isfinite(d_z) else "∞"
        axes.text(top, bottom, text, ha="center", va="center", fontsize=size)
    letters = [chr(97 + k) if many <= 26 else str(k + 1) for k in range(many)]
    rows = [f"{short(names[i], 20)}  {letter}" for i, letter in zip(order, letters, strict=True)]
    axes.set_xlim(-0.5, many - 0.5)
    axes.set_ylim(many - 0.5, -0.5)
    axes.set_xticks(range(many), letters)
    axes.set_yticks(range(many), rows)
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    axes.grid(False)
    axes.set_title(f"{one.samples.title} ({one.samples.unit})")
    for spine in axes.spines.values():
        spine.set_visible(False)


def _steps(level: float) -> tuple[float, float, float]:
    """Bounds of p: one star, two, three."""
    return level, level / 5, level / 50


def _key(made: Figure, one: Comparison) -> None:
    from matplotlib.patches import Patch

    labels = [f"p < {bound:g} {stars}" for bound, stars in zip(_steps(one.level), STARS[1:],
                                                              strict=True)]  # fmt: skip
    shown = zip(SHADES, ("not told apart", *labels), strict=True)
    patches = [Patch(facecolor=shade, edgecolor="#888888", linewidth=0.4, label=text)
               for shade, text in shown]  # fmt: skip
    wide = made.get_size_inches()[0] > COLUMN
    made.legend(handles=patches, loc="outside lower center", ncols=4 if wide else 2,
                title=f"above: {CORRECTIONS[one.tests.correction]} p;  below: effect size d$_z$\n"
                "d$_z$ = |mean difference| / its standard deviation")  # fmt: skip


def left_out(measures: Sequence[Reuse]) -> Figure:
    """What each system is worth with all judgements, and without those that it alone brought.

    Parameters
    ----------
    measures : sequence of Reuse
        One for each measure, of the same systems.

    Returns
    -------
    Figure
        A panel for each measure; systems in the order of the first, best on top. Numbers at the
        right are places among all systems, with all judgements and then without.
    """
    if not measures:
        raise UsageError("nothing was left out; give at least one measure")
    first = measures[0]
    order = np.argsort(-first.full, kind="stable").tolist()
    names = [short(first.systems[i], 20) for i in order]
    with styled():
        columns, rows = _grid(len(measures))
        made, axes = figure(
            columns, rows, height=1.05 + 0.2 * len(order), sharey=True, squeeze=False
        )
        panels = list(axes.flat)
        for axes, one in zip(panels, measures, strict=False):
            _left_out(axes, one, order)
            axes.set_xlabel(one.measure)
        _rows(panels, len(measures), names)
        legend_above(made, title="at the right: place, and then that without its own")
        return made


def _left_out(axes: Any, one: Reuse, order: Sequence[int]) -> None:
    rows = np.arange(len(order))
    full, without = one.full[order], one.left_out[order]
    axes.hlines(rows, without, full, color="#888888", linewidth=0.8, zorder=1)
    axes.plot(
        without, rows, "s", color="#D55E00", fillstyle="none", markersize=6, label="without its own"
    )
    axes.plot(full, rows, "o", color="#0072B2", label="all judgements")
    for row, i in enumerate(order):
        took_part = one.systems[i] in one.contributors
        then = f"{one.place[i]} → {one.place_left_out[i]}" if took_part else "not in the pool"
        axes.text(1.02, row, then, transform=axes.get_yaxis_transform(), fontsize=6.5, va="center")
