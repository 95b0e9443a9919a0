"""Figures of compared systems: intervals, pairs, p-value curves, places in several rankings; and of
many models on many graphs: places, critical differences, a heat map of cells."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kgtrec.errors import UsageError
from kgtrec.plots.style import (
    COLUMN,
    Item,
    apply_style,
    bare,
    by_rows,
    draw_lines,
    figure,
    label_ends,
    legend_above,
    name_rows,
    panel_grid,
    range_patch,
    require,
    require_items,
    require_type,
    series_style,
    short_names,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from kgtrec.study.comparison.rankings import DepthCurves, Rankings, Sensitivity
    from kgtrec.study.comparison.report import SystemComparison
    from kgtrec.study.comparison.samples import Samples
    from kgtrec.study.comparison.significance import Discrimination
    from kgtrec.study.pooling.depths import Reuse
    from kgtrec.study.suite.suite import Suite

SHADES = ("#ffffff", "#a9cbe6", "#4292c6", "#08306b")
STARS = ("", "*", "**", "***")
"""Marks without a significant difference, and for p below the level, 1/5 and 1/50 of it."""

KEPT = {"triples": "test triples", "judgements": "relevant judgements"}
"""What `sensitivity` keeps random parts of, by the unit of its result."""

CORRECTIONS = {"holm": "Holm's", "bh": "BH's", "bonferroni": "Bonferroni's", "none": "plain"}


@apply_style()
def intervals(compared: SystemComparison | Sequence[SystemComparison]) -> Figure:
    """Values of the systems with their intervals, one panel per measure.

    Systems are in the order of the first measure, best on top. Filled markers: the best system of
    the panel, and those that are not significantly worse.

    Parameters
    ----------
    compared : SystemComparison, or sequence of them
        From `kgtrec.compare`: one per measure, of the same systems.
    """
    compared = _require_comparisons(compared)
    first = compared[0]
    fig, panels = _system_panels(compared, first.samples.systems, first.order, 0.75)
    for axes, comparison in panels:
        low, high = comparison.intervals()
        better = comparison.tests.better(comparison.level)
        best = comparison.order[0]
        for row, i in enumerate(first.order):
            value = comparison.resampled.estimate[i]
            fill = "none" if better[best, i] else "full"
            # Corrected intervals may exclude the value; bars have no negative length.
            ends = [[max(value - low[i], 0)], [max(high[i] - value, 0)]]
            style = series_style(i, marked=True) | {"linestyle": "none", "fillstyle": fill}
            axes.errorbar([value], [row], xerr=ends, capsize=1.5, elinewidth=0.8, **style)
        axes.set_xlabel(f"{comparison.samples.title} ({comparison.samples.unit})")
    labels = {
        "full": f"best, or not worse ({first.resampling.percent:g}% intervals)",
        "none": f"worse at p < {first.level:g}",
    }
    for fill, label in labels.items():
        fig.axes[0].plot(
            [], [], color="#444444", marker="o", linewidth=0.8, fillstyle=fill, label=label
        )
    return legend_above(fig)


MOST_NAMED = 25
"""Bars that a column has space to name."""


@apply_style()
def item_differences(samples: Samples) -> Figure:
    """Differences of two systems, a bar per query or other item, the largest gain at the left.

    Bars above 0 are items on which the first system has the larger value, below 0 the second, in
    their colours. The legend counts the items on which each system is better.

    Parameters
    ----------
    samples : Samples
        Of two systems, as of `samples_of_runs` or `samples_of_ranks`.

    Raises
    ------
    UsageError
        Other data, or another number of systems.
    """
    from matplotlib.patches import Patch

    from kgtrec.study.comparison.samples import Samples

    samples = require_type(samples, Samples, "samples", "samples_of_runs")
    if len(samples.systems) != 2:
        raise UsageError(
            f"{len(samples.systems)} systems; differences are of two: pass the samples of two"
        )
    differences = samples.values[:, 0] - samples.values[:, 1]
    order = np.argsort(-differences, kind="stable")
    sorted_differences, places = differences[order], np.arange(len(order))
    fig, axes = figure()
    axes.axhline(0, color="#000000", linewidth=0.6)
    handles = []
    for number, (name, sign) in enumerate(zip(short_names(samples.systems), (1, -1), strict=True)):
        part = sorted_differences * sign > 0
        better = part if samples.higher_is_better else sorted_differences * sign < 0
        look = {"facecolor": series_style(number)["color"], "hatch": ("", "////")[number]}
        look |= {"edgecolor": "#ffffff", "linewidth": 0 if len(order) > MOST_NAMED else 0.4}
        axes.bar(
            places[part],
            sorted_differences[part],
            width=1.0 if len(order) > MOST_NAMED else 0.8,
            **look,
        )
        handles.append(Patch(label=f"{name} better: {int(better.sum()):,}", **look))
    equal = int((differences == 0).sum())
    tied = f", {equal:,} of them equal" * bool(equal)
    names = short_names(samples.items) if samples.items else []
    is_named = 0 < len(names) <= MOST_NAMED
    axes.set_xticks(places if is_named else [], [names[i] for i in order] if is_named else [])
    axes.tick_params(axis="x", rotation=90, length=0)
    axes.grid(False, axis="x")
    axes.set(
        xlim=(-0.6, len(order) - 0.4),
        xlabel=f"{len(order):,} {samples.unit}{tied}",
        ylabel=f"difference of {samples.title}",
    )
    return legend_above(fig, handles, series=False)


def _require_comparisons(compared: object) -> Sequence[SystemComparison]:
    """Return one or several comparisons as a sequence; UsageError for anything else."""
    from kgtrec.study.comparison.report import SystemComparison

    source = "kgtrec.compare({name: ranks, ...})"
    several = require_items(compared, SystemComparison, "compared", source)
    require(several, "comparison")
    return several


def _system_panels(
    items: Sequence[Item], systems: Sequence[str], order: Sequence[int], height: float
) -> tuple[Figure, list[tuple[Axes, Item]]]:
    """Return panels with one row per system, in this order, and names at the left."""
    fig, panels = panel_grid(items, 4, height=height + 0.2 * len(order), sharey=True)
    for axes, _ in panels:
        axes.locator_params(axis="x", nbins=4)
    names = short_names(systems, 20)
    name_rows(fig.axes[0], [names[i] for i in order], "system")
    return fig, panels


@apply_style()
def p_curves(discrimination: Discrimination, level: float = 0.05) -> Figure:
    """p-values of all pairs of systems in descending order, one curve per measure.

    The legend gives the area under each curve; the smaller, the more discriminative.

    Parameters
    ----------
    discrimination : Discrimination
    level : float
        Drawn as a line: pairs below it differ significantly.
    """
    from kgtrec.study.comparison.significance import Discrimination

    require_type(discrimination, Discrimination, "discrimination", "kgtrec.study.discriminate")
    fig, axes = figure()
    pairs = np.arange(1, discrimination.p.shape[1] + 1)
    areas = discrimination.area.tolist()
    labels = [f"{t}: {area:.4f}" for t, area in zip(discrimination.titles, areas, strict=True)]
    draw_lines(axes, zip(labels, repeat(pairs), discrimination.p), spaced=True)
    axes.axhline(level, color="#888888", linewidth=0.6, label=f"p = {level:g}")
    axes.set(
        xlabel="pair of systems, largest p-value first",
        ylabel=f"p ({discrimination.test} test)",
        ylim=(-0.02, 1.02),
    )
    return legend_above(fig, title="area under the curve")


@apply_style()
def pair_matrix(compared: SystemComparison | Sequence[SystemComparison]) -> Figure:
    """Differences of all pairs of systems and their significance; one panel per measure.

    Systems from the best to the worst by the panel's measure. Above the diagonal, shade and stars
    show the corrected p-value of row against column; below it is the effect size d_z of column
    against row (mean difference in standard deviations).

    Parameters
    ----------
    compared : SystemComparison, or sequence of them
        From `kgtrec.compare`: one per measure, of the same systems.
    """
    compared = _require_comparisons(compared)
    many = len(compared[0].samples.systems)
    wide = max(COLUMN, 1.15 + 0.17 * many)
    columns = 2 if len(compared) > 1 and wide <= COLUMN else 1
    height = 1.15 + 0.155 * max(many, 5)
    titles = [f"{comparison.samples.title} ({comparison.samples.unit})" for comparison in compared]
    fig, panels = panel_grid(compared, columns, titles=titles, width=wide * columns, height=height)
    for axes, comparison in panels:
        _draw_matrix(axes, comparison)
    _draw_key(fig, compared[0])
    return fig


def _draw_matrix(axes: Any, comparison: SystemComparison) -> None:
    """Draw the cells of all pairs of systems."""
    from matplotlib.patches import Rectangle

    order, names = comparison.order, short_names(comparison.samples.systems, 20)
    row_of = {system: row for row, system in enumerate(order)}
    many = len(order)
    size = 6.5 if many <= 6 else 5
    cells = zip(
        comparison.tests.pairs.tolist(),
        comparison.tests.corrected.tolist(),
        comparison.effects.d_z.tolist(),
        strict=True,
    )
    for (i, j), p, d_z in cells:
        top, bottom = sorted((row_of[i], row_of[j]))
        step = sum(p < bound for bound in _star_bounds(comparison.level))
        box = Rectangle((bottom - 0.5, top - 0.5), 1, 1, facecolor=SHADES[step], edgecolor="white")
        axes.add_patch(box)
        ink = "white" if step > 1 else "black"
        axes.text(bottom, top, STARS[step], ha="center", va="center", color=ink, fontsize=size)
        text = f"{abs(d_z):.2f}".removeprefix("0") if np.isfinite(d_z) else "∞"
        axes.text(top, bottom, text, ha="center", va="center", fontsize=size)
    positions = [str(position) for position in range(1, many + 1)]  # panels have letters
    rows = [f"{names[i]}  {position}" for i, position in zip(order, positions, strict=True)]
    axes.set(xlim=(-0.5, many - 0.5), ylim=(many - 0.5, -0.5))
    axes.set_xticks(range(many), positions)
    axes.set_yticks(range(many), rows)
    axes.xaxis.tick_top()
    axes.xaxis.set_label_position("top")
    axes.set_xlabel("place of the system")
    bare(axes)


def _star_bounds(level: float) -> tuple[float, float, float]:
    """Return the bounds of p for one star, two and three."""
    return level, level / 5, level / 50


def _draw_key(fig: Figure, comparison: SystemComparison) -> None:
    """Draw the legend of shades and stars."""
    from matplotlib.patches import Patch

    labels = [
        f"p < {bound:g} {stars}"
        for bound, stars in zip(_star_bounds(comparison.level), STARS[1:], strict=True)
    ]
    shown = zip(SHADES, ("not significant", *labels), strict=True)
    patches = [
        Patch(facecolor=shade, edgecolor="#888888", linewidth=0.4, label=text)
        for shade, text in shown
    ]
    columns = 4 if fig.get_size_inches()[0] > COLUMN else 2
    fig.legend(
        handles=by_rows(patches, columns),
        loc="outside lower center",
        ncols=columns,
        title=f"above: {CORRECTIONS[comparison.tests.correction]} p;  below: effect size d$_z$\n"
        "d$_z$ = |mean difference| / its standard deviation",
    )


@apply_style()
def left_out(measures: Sequence[Reuse]) -> Figure:
    """Each system with all judgements, and without those that only this system contributed.

    One panel per measure; systems in the order of the first, best on top. Numbers at the right are
    places among all systems, with all judgements and then without.

    Parameters
    ----------
    measures : sequence of Reuse
        One per measure, of the same systems.
    """
    from kgtrec.study.pooling.depths import Reuse

    measures = require_items(measures, Reuse, "measures", "kgtrec.study.leave_one_out")
    require(measures, "measure")
    first = measures[0]
    order = np.argsort(-first.full, kind="stable").tolist()
    fig, panels = _system_panels(measures, first.systems, order, 1.05)
    for axes, reuse in panels:
        _draw_left_out(axes, reuse, order)
        axes.set_xlabel(reuse.measure)
    return legend_above(fig, title="at the right: place, and place without its own judgements")


def _draw_left_out(axes: Any, reuse: Reuse, order: Sequence[int]) -> None:
    """Draw the values of all systems with and without their own judgements."""
    rows = np.arange(len(order))
    full, without = reuse.full[order], reuse.left_out[order]
    axes.hlines(rows, without, full, color="#888888", linewidth=0.8, zorder=1)
    axes.plot(
        without, rows, "s", color="#777777", fillstyle="none", markersize=6, label="without its own"
    )
    axes.plot(full, rows, "o", color="#000000", label="all judgements")
    for row, i in enumerate(order):
        took_part = reuse.systems[i] in reuse.contributors
        text = f"{reuse.rank[i]} → {reuse.rank_left_out[i]}" if took_part else "not in the pool"
        axes.text(1.02, row, text, transform=axes.get_yaxis_transform(), fontsize=6.5, va="center")


BANDS = 3
"""Most lines of a figure with bands: more bands would hide each other."""

FEW, SHORT = 5, 14
"""Most curves, and most letters of their names, for names at the ends of curves."""

_LABEL = 1.05  # inches of names on each side of a bump chart
_STEP = 1.0  # inches from ranking to ranking


@apply_style()
def bump_chart(rankings: Rankings | Sequence[Rankings]) -> Figure:
    """Places of the systems in two or more rankings, one line per system.

    Between neighbouring rankings is their tau-b with its interval (over questions, or over systems
    where only values are known; the figure says which). Grey bars join systems with equal values.

    Parameters
    ----------
    rankings : Rankings, or several of them
        One panel per item.
    """
    from kgtrec.study.comparison.rankings import Rankings

    source = "kgtrec.study.rankings_of_samples or a like function"
    several = require_items(rankings, Rankings, "rankings", source)
    require(several, "rankings")
    most = max(len(panel_rankings.names) for panel_rankings in several)
    columns = 2 if most == 2 and len(several) > 1 else 1
    width = max(COLUMN, 2 * _LABEL + _STEP * (most - 1)) * columns
    height = 0.85 + 0.17 * len(several[0].systems)
    fig, panels = panel_grid(several, columns, width=width, height=height)
    for axes, panel_rankings in panels:
        _draw_bump(axes, panel_rankings)
    return fig


def _draw_bump(axes: Any, rankings: Rankings) -> None:
    """Draw the lines of all systems, and the agreement of neighbouring rankings."""
    rows, positions = _system_rows(rankings), rankings.system_ranks()
    n_rankings, n_systems = rows.shape
    columns = np.arange(n_rankings)
    names = short_names(rankings.systems, 16)
    order = np.argsort(rows[0]).tolist()
    for i in order:
        style = series_style(i, marked=True)
        axes.plot(columns, rows[:, i], clip_on=False, label=rankings.systems[i], **style)
        name = f"  {names[i]}  "
        for end, side, text in ((0, "right", name[2:]), (n_rankings - 1, "left", name[:-2])):
            axes.text(end, rows[end, i], text, ha=side, va="center", fontsize=6.5)
    for k in range(n_rankings):
        for position in np.unique(positions[k]):
            tied = rows[k][positions[k] == position]
            if len(tied) > 1:
                axes.plot(
                    [k, k],
                    [tied.min(), tied.max()],
                    color="#bbbbbb",
                    linewidth=5,
                    solid_capstyle="round",
                    zorder=0,
                )
    for k in range(n_rankings - 1):
        between = rankings.agreement(k, k + 1)
        low, high = between.tau_interval
        text = f"τ = {between.tau:.2f}\n[{low:.2f}, {high:.2f}]".replace("-", "\N{MINUS SIGN}")
        axes.text(k + 0.5, n_systems - 0.4, text, ha="center", va="top", fontsize=6.5)
    axes.set(xlim=(-_LABEL / _STEP, n_rankings - 1 + _LABEL / _STEP), ylim=(n_systems + 0.9, -0.6))
    axes.set_xticks(columns, short_names(rankings.names, 18))
    axes.xaxis.tick_top()
    axes.set_yticks([])
    bare(axes)
    drawn = rankings.agreement(0, 1)
    note = f"{drawn.resampling.percent:g}% intervals over {drawn.over}"
    if any(len(np.unique(row)) < n_systems for row in positions):
        note += "; grey: equal values"
    axes.set_xlabel(f"{rankings.title}: {note}" if rankings.title else note)


@apply_style()
def label_sets(rankings: Rankings | Sequence[Rankings]) -> Figure:
    """Values of the systems by several sets of labels, one line per set (Zhou et al., Figure 3).

    Systems are in the order of the first set, best first. Above each panel is the tau-b of each
    other set to the first one, with its interval.

    Parameters
    ----------
    rankings : Rankings, or several of them
        One panel per item, such as a measure; rankings are sets of labels.
    """
    from kgtrec.study.comparison.rankings import Rankings

    source = "kgtrec.study.rankings_of_samples"
    several = require_items(rankings, Rankings, "rankings", source)
    require(several, "rankings")
    first = several[0]
    names = short_names(first.names, 20)
    longest = max(map(len, short_names(first.systems, _LETTERS)))
    height = 2.1 + 0.055 * longest + 0.13 * len(names)
    width = max(COLUMN, 0.7 + 0.17 * len(first.systems))
    fig, panels = panel_grid(several, 1, width=width, height=height)
    for axes, panel_rankings in panels:
        _draw_label_sets(axes, panel_rankings, names)
    drawn = first.agreement(0, 1)
    note = f"{drawn.resampling.percent:g}% intervals over {drawn.over}"
    return legend_above(fig, title=f"τ to {names[0]}, with {note}")


_LETTERS = 20
"""Most letters of a system's name below a panel."""


def _draw_label_sets(axes: Any, rankings: Rankings, names: Sequence[str]) -> None:
    """Draw a line per set of labels, and the agreement of each with the first."""
    order = np.argsort(rankings.system_ranks()[0], kind="stable")
    columns = np.arange(len(order))
    rows = zip(names, repeat(columns), rankings.values[:, order])
    draw_lines(axes, rows, marked=True)
    lines = []
    for k, name in enumerate(names[1:], start=1):
        between = rankings.agreement(0, k)
        low, high = between.tau_interval
        text = f"{name}: τ = {between.tau:.2f} [{low:.2f}, {high:.2f}]"
        lines.append(text.replace("-0.", "\N{MINUS SIGN}0.").replace("-1.", "\N{MINUS SIGN}1."))
    letter = axes.get_title(loc="left")  # of several panels
    axes.set_title((f"{letter} " + "\n".join(lines)).lstrip(), loc="left")
    systems = short_names(rankings.systems, _LETTERS)
    vertical = max(map(len, systems)) > 2
    axes.set_xticks(columns, [systems[i] for i in order.tolist()], rotation=90 if vertical else 0)
    better = "" if rankings.higher[0] else " (lower is better)"
    axes.set(xlabel="system", ylabel=f"{rankings.title}{better}")


def _system_rows(rankings: Rankings) -> NDArray[np.int64]:
    """Return the row of each system in each ranking, 0 on top; shape as `Rankings.system_ranks`.

    Equal systems keep the order of the previous ranking.
    """
    positions = rankings.system_ranks()
    rows = np.empty_like(positions)
    before = np.arange(positions.shape[1])
    for k, order in enumerate(positions):
        rows[k][np.lexsort((before, order))] = np.arange(len(order))
        before = rows[k]
    return rows


@apply_style()
def sensitivity(result: Sensitivity) -> Figure:
    """Mean correlation of rankings on random parts of the test set with that on all of it.

    One line per measure, as in Figure 7 of Zhou et al. (2022); with up to three measures a band
    that holds the middle 95 % of the random parts.
    """
    from kgtrec.study.comparison.rankings import Sensitivity

    require_type(result, Sensitivity, "result", "kgtrec.study.sensitivity_of_table")
    fig, axes = figure(height=2.7)
    share = 100 * result.shares
    many = len(result.titles)
    bands = result.spread() if many <= BANDS else ()
    draw_lines(axes, zip(result.titles, repeat(share), result.mean(), *bands), spaced=True)
    axes.set(
        xlabel=f"{KEPT[result.unit]} kept (%)",
        ylabel="Kendall's τ to the whole test set",
        xlim=(0, 100),
        ylim=(None, 1.02),
    )
    band = range_patch("95 % of the parts")
    return legend_above(fig, [band] * (many <= BANDS))


@apply_style()
def depth_curves(curves: DepthCurves) -> Figure:
    """Correlation of rankings at every depth of a pool with that at the reference depth.

    One line per measure, as in Figures 4 and 5 of Zhou et al. (2022), with bars over the intervals
    where they are known. Measures are shifted a little, so that bars do not hide each other.
    """
    from kgtrec.study.comparison.rankings import DepthCurves

    require_type(curves, DepthCurves, "curves", "kgtrec.study.depth_curves")
    fig, axes = figure(height=2.7)
    depths = np.array(curves.depths, np.float64)
    many = len(curves.measures)
    for number, (name, tau) in enumerate(zip(curves.measures, curves.tau, strict=True)):
        style = series_style(number, marked=True)
        if curves.interval is None:
            axes.plot(depths, tau, label=name, **style)
            continue
        low, high = curves.interval[:, number]
        gaps = [np.maximum(tau - low, 0), np.maximum(high - tau, 0)]
        shift = 0.5 / many * (number - (many - 1) / 2)
        axes.errorbar(
            depths + shift,
            tau,
            yerr=gaps,
            label=name,
            elinewidth=0.6,
            capsize=1.2,
            capthick=0.6,
            **style,
        )
    axes.axhline(0, color="#888888", linewidth=0.6)
    axes.set(xlabel="pool depth", ylabel=f"Kendall's τ to depth {curves.reference}")
    if len(curves.depths) <= 15:
        axes.set_xticks(list(curves.depths))
    axes.set_ylim(top=1.05)
    level = next(iter(curves.agreements.values())).resampling.percent
    bars = f"bars: {level:g}% intervals" if curves.interval is not None else ""
    if many > FEW or max(map(len, curves.measures)) > SHORT:
        return legend_above(fig, title=bars or None)
    label_ends(axes, curves.measures, [tau[-1] for tau in curves.tau])
    axes.set_xlabel(f"pool depth ({bars})" if bars else "pool depth")
    return fig


# -- Many models on many graphs --------------------------------------------------------------------

ROW = 0.16
"""Height in inches of a model's row."""


def _model_names(suite: Suite, rows: list[int]) -> list[str]:
    """Return the names of models for rows."""
    names = short_names(suite.cells.models, 24)
    return [names[m] for m in rows]


def _require_suite(suite: object) -> None:
    """Raise UsageError unless an argument is a Suite."""
    from kgtrec.study.suite.suite import Suite

    require_type(suite, Suite, "suite", "kgtrec.study.suite_of_ranks for a measure")


@apply_style()
def suite_places(suite: Suite) -> Figure:
    """Place of every ranked model with its interval over graphs, questions and seeds.

    One row per model, the best mean rank first.
    """
    _require_suite(suite)
    rows = [m for m in suite.order if not suite.apart[m]]
    low, high = suite.interval(suite.place_draws)
    fig, axes = figure(height=0.8 + ROW * len(rows))
    for row, m in enumerate(rows):
        axes.plot([low[m], high[m]], [row, row], linewidth=2.4, color="#9db9cf")
        style = series_style(m, marked=True) | {"linestyle": "none"}
        axes.plot([row + 1], [row], **style)
    name_rows(axes, _model_names(suite, rows), "model")
    axes.set_xlabel(f"place, with {suite.resampling.percent:g}% interval")
    axes.xaxis.get_major_locator().set_params(integer=True)
    return fig


@apply_style()
def critical_difference(suite: Suite) -> Figure:
    """Mean ranks on one axis; bars join models that Nemenyi's test cannot tell apart.

    Parameters
    ----------
    suite : Suite
        With three or more ranked models on two or more complete graphs.

    Raises
    ------
    UsageError
        Too few models or graphs for the test.
    """
    _require_suite(suite)
    test = suite.friedman
    if test is None:
        raise UsageError(
            "a critical-difference diagram needs three models that share two graphs; draw places "
            "instead"
        )
    ranked = np.flatnonzero(~suite.apart)
    best_first = np.argsort(test.mean_ranks, kind="stable")
    rows, ranks = ranked[best_first], test.mean_ranks[best_first]
    half = -(-len(rows) // 2)
    bars = _find_runs(ranks, test.critical_difference)
    fig, axes = figure(height=0.7 + ROW * half + 0.1 * len(bars), width=2 * COLUMN)
    axes.grid(False)
    bottom = -(half + 1.5 + 0.6 * len(bars))
    names = _model_names(suite, rows.tolist())
    for row, rank in enumerate(ranks):
        left = row < half
        y = -(1.2 + 0.6 * len(bars) + (row if left else len(rows) - 1 - row))
        edge = 0.8 if left else len(rows) + 0.2
        axes.plot([rank, rank, edge], [0, y, y], color="#444444", linewidth=0.7)
        name = f"{names[row]} ({rank:.2f})"
        axes.text(
            edge, y, f"{name} " if left else f" {name}", va="center", ha="right" if left else "left"
        )
    for number, (first, last) in enumerate(bars):
        y = -0.5 - 0.6 * number
        ends = [ranks[first] - 0.04, ranks[last] + 0.04]
        axes.plot(ends, [y, y], linewidth=2.6, color="#000000", solid_capstyle="butt")
    gap = test.critical_difference
    axes.plot([1, 1 + gap], [2.3, 2.3], color="#000000", linewidth=1.6, marker="|")
    axes.text(1 + gap / 2, 2.5, f"critical difference {gap:.2f}", ha="center", va="bottom")
    axes.set(xlim=(-0.35 * len(rows), 1.35 * len(rows) + 1), ylim=(bottom, 3.9))
    axes.set_xticks(range(1, len(rows) + 1))
    axes.spines["bottom"].set_bounds(1, len(rows))
    axes.spines["bottom"].set_position(("data", 0))
    axes.tick_params(axis="x", direction="in", pad=-12)
    axes.spines["left"].set_visible(False)
    axes.set(yticks=[], title=f"mean rank over {test.graphs} graphs (1 is best)")
    return fig


def _find_runs(ranks: np.ndarray, gap: float) -> list[tuple[int, int]]:
    """Return first and last of every longest run of models within a gap; ranks ascend."""
    last = [int(np.searchsorted(ranks, rank + gap, "left")) - 1 for rank in ranks]
    return [
        (first, end)
        for first, end in enumerate(last)
        if end > first and (first == 0 or last[first - 1] < end)
    ]


@apply_style()
def suite_cells(suite: Suite) -> Figure:
    """A heat map of models and graphs, both sorted by their means; missing cells are crossed."""
    _require_suite(suite)
    values = suite.cells.values[suite.order]
    columns = np.argsort(-np.nanmean(values, axis=0), kind="stable")
    values = values[:, columns]
    n_models, n_graphs = values.shape
    fig, axes = figure(height=1.2 + ROW * n_models, width=max(COLUMN, 2.6 + 0.2 * n_graphs))
    axes.grid(False)
    image = axes.imshow(values, aspect="auto", cmap="cividis")
    if n_models * n_graphs <= 200:
        middle = (np.nanmin(values) + np.nanmax(values)) / 2
        for (row, column), value in np.ndenumerate(values):
            if np.isfinite(value):
                axes.text(
                    column,
                    row,
                    f"{value:.2f}",
                    ha="center",
                    va="center",
                    fontsize=5,
                    color="black" if value > middle else "white",
                )
    missing = np.argwhere(np.isnan(values))
    axes.plot(missing[:, 1], missing[:, 0], "x", color="#777777", label="missing")
    names = short_names(suite.cells.graphs, 18)
    axes.set_xticks(range(n_graphs), [names[g] for g in columns], rotation=90)
    axes.set_yticks(range(n_models), _model_names(suite, suite.order))
    axes.set(xlabel="graph" + (" (x: missing)" if len(missing) else ""), ylabel="model")
    fig.colorbar(image, ax=axes, label=suite.cells.measure.title)
    return fig
