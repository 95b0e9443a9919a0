"""Figures of ranks: distribution, ties, rank types; metrics by slice, relation and time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kgtrec.errors import UsageError
from kgtrec.measures import Measure
from kgtrec.plots.style import (
    MARKERS,
    draw_lines,
    figure,
    legend_above,
    metric_title,
    name_rows,
    panel_grid,
    range_patch,
    require,
    series_style,
    short,
    styled,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from kgtrec.ranking.ranks import Ranks
    from kgtrec.results.result import Result
    from kgtrec.study.alignment import SizeExperiment
    from kgtrec.study.comparison.parts import SystemValues

RANK_TYPES = ("optimistic", "expected", "realistic", "ordinal", "pessimistic")
CUTOFFS = (1, 3, 10, 100)
CHANCE = "chance (expected)"
LEVEL = 0.15
"""Between the markers of two rank types, in rows."""
NO_TIES, SAMPLED = " (no ties)", " (sampled)"
WHISKERS = (5, 95)
"""Percentiles of the relations at the ends of the whiskers."""
PARTS = 40
"""One figure holds at most this many slices."""


@styled()
def rank_distribution(ranks: Mapping[str, Ranks], kind: str = "realistic") -> Figure:
    """Share of instances with a rank of at most k, for every k: all values of Hits@k at once.

    Parameters
    ----------
    ranks : mapping of str to Ranks
        By the name in the legend. The dotted grey line, "chance", is the expectation of a random
        scorer with the numbers of candidates of the first.
    kind : {"optimistic", "realistic", "pessimistic", "ordinal"}
    """
    require(ranks, "ranks")
    made, axes = figure()
    first = next(iter(ranks.values()))
    points = np.unique(np.geomspace(1, first.candidates.max(), 200).round())
    # A name and dots that no system has, not even one with random scores.
    axes.plot(points, _chance(first, points), color="#555555", linewidth=0.9,
              linestyle=(0, (1, 2)), label=CHANCE, zorder=3)  # fmt: skip
    rows = []
    for name, one in ranks.items():
        rank, counts = np.unique(one.rank(kind), return_counts=True)
        rows.append((_named(name, one), rank, np.cumsum(counts) / len(one)))
    draw_lines(axes, rows, drawstyle="steps-post")
    axes.set(
        xscale="log", xlim=(0.9, None), ylim=(0, 1), xlabel=f"k ({kind} rank)",
        ylabel="share with rank ≤ k",
    )  # fmt: skip
    _plain_numbers(axes.xaxis, "{:,.0f}")
    for cutoff in CUTOFFS:
        axes.axvline(cutoff, color="#dddddd", linewidth=0.6, zorder=0)
    return legend_above(made)


@styled()
def tie_widths(ranks: Mapping[str, Ranks]) -> Figure:
    """Share of instances whose answer ties with at least w other candidates.

    Both axes are logarithmic. The legend says which models have no ties.
    """
    require(ranks, "ranks")
    made, axes = figure()
    rows = []
    for name, one in ranks.items():
        width, first = np.unique(np.sort(one.equal[one.equal > 0]), return_index=True)
        label = _named(name, one) + ("" if len(width) else NO_TIES)
        tied = np.count_nonzero(one.equal)
        share = (tied - first) / len(one)
        if len(width) and width[0] > 1:  # as many tie with at least one other
            width, share = np.insert(width, 0, 1), np.insert(share, 0, share[0])
        rows.append((label, width, share))
    # Steps: shares do not change between two widths.
    draw_lines(axes, rows, spaced=True, drawstyle="steps-pre")
    for line, (_, width, _) in zip(axes.get_lines(), rows, strict=True):
        line.set_clip_on(not len(width))  # an empty line would widen the margins
    axes.set_xscale("log")
    if any(one.equal.any() for one in ranks.values()):
        axes.set_yscale("log")  # which cannot show shares of 0
    else:
        axes.set_ylim(0, 1)
    axes.set_xlim(0.9, max(10, *(1.1 * one.equal.max(initial=0) for one in ranks.values())))
    _plain_numbers(axes.xaxis, "{:,.0f}")
    _plain_numbers(axes.yaxis, "{:g}", 100)
    axes.set(xlabel="w: other candidates with the answer's score",
             ylabel="% of instances tied with ≥ w")  # fmt: skip
    return legend_above(made)


@styled()
def rank_types(results: Mapping[str, Result], metric: str = "mrr") -> Figure:
    """One metric at all five rank definitions, one row per model: the effect of ties.

    Parameters
    ----------
    results : mapping of str to Result
    metric : str
        A micro metric, such as "mrr" or "hits@10", on all sides that the results hold.
    """
    require(results, "results")
    values = np.array([
        [one[_key(one, metric, kind)] for kind in RANK_TYPES] for one in results.values()
    ])  # fmt: skip
    rows = np.arange(len(results))
    made, axes = figure(height=0.9 + 0.42 * len(results))
    axes.hlines(rows, values.min(axis=1), values.max(axis=1), color="#bbbbbb", linewidth=0.8)
    for number, kind in enumerate(RANK_TYPES):
        style = series_style(number) | {"linestyle": "none", "marker": MARKERS[number]}
        # One below the other, so that equal values do not hide each other.
        at = rows + LEVEL * (number - (len(RANK_TYPES) - 1) / 2)
        axes.plot(values[:, number], at, label=kind, fillstyle="none", clip_on=False, **style)
    # From zero, so that tiny differences look tiny; with room for markers on the right.
    low, high = min(0.0, values.min()), max(0.0, values.max())
    axes.set_xlim(low, high + 0.04 * (high - low or 1.0))
    names = [
        _named(name, one.ranks) + ("" if one.ranks.equal.any() else NO_TIES)
        for name, one in results.items()
    ]
    name_rows(axes, names, "model")
    axes.set_xlabel(f"{metric_title(metric)} (micro)")
    return legend_above(made)


def _key(result: Result, metric: str, kind: str = "realistic") -> str:
    """The micro metric of all sides that the result holds."""
    return f"{result.sides[-1]}.{kind}.micro.{metric}"


def relations(results: Mapping[str, Result], metric: str = "mrr") -> Figure:
    """A micro metric of each relation, one box per model, and over all instances.

    Parameters
    ----------
    results : mapping of str to Result
    metric : str
        Such as "mrr" or "hits@10"; realistic ranks, all sides that the results hold.
    """
    require(results, "results")
    values, marks = {}, []
    for name, result in results.items():
        key = _key(result, metric)
        column = [row[-1] for row in result.slice("relation", [key]).rows]
        values[name + SAMPLED * result.ranks.sampled] = np.array(column, dtype=np.float64)
        marks.append(float(result[key]))
    return over_relations(values, metric_title(metric), marks)


@styled()
def over_relations(
    values: Mapping[str, NDArray[np.float64]], label: str, marks: Sequence[float] | None = None
) -> Figure:
    """Distribution of a metric over relations (Zhou et al., Figure 6), one box per model.

    Boxes from the lower to the upper quartile with the median; whiskers span the middle 90 % of the
    relations.

    Parameters
    ----------
    values : mapping of str to ndarray of float64
        The metric of each relation, in any order.
    label : str
        Name of the metric, for the axis.
    marks : sequence of float, optional
        A second value for each box, drawn as a diamond, such as the metric over all instances.
    """
    require(values, "values")
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    made, axes = figure(height=0.9 + 0.35 * len(values))
    line: dict[str, Any] = {"color": "#000000", "linewidth": 0.8}
    drawn: Any = axes.boxplot(
        list(values.values()), orientation="horizontal", whis=WHISKERS, widths=0.5,
        showfliers=False, patch_artist=True, medianprops=line | {"linewidth": 1.4},
        boxprops={"linewidth": 0.8}, whiskerprops=line, capprops=line,
    )  # fmt: skip
    for number, box in enumerate(drawn["boxes"]):
        box.set_facecolor(series_style(number)["color"])
        box.set_alpha(0.45)
    if marks is not None:
        rows = range(1, len(values) + 1)
        axes.plot(marks, rows, "D", color="#000000", fillstyle="none", label="all instances")
    half = Patch(facecolor="#bbbbbb", edgecolor="#000000", linewidth=0.8,
                 label="quartiles, median")  # fmt: skip
    legend_above(made, [half, Line2D([], [], label="middle 90 %", **line)])
    names = [f"{short(name, 24)} ({len(each)})" for name, each in values.items()]
    axes.set_yticks(range(1, len(values) + 1), names)
    axes.invert_yaxis()
    axes.set(xlabel=f"{label} by relation", ylabel="model (relations)")
    return made


@styled()
def slices(values: SystemValues) -> Figure:
    """A measure of every model on every part of the instances, with intervals.

    Parameters
    ----------
    values : SystemValues
        From `kgtrec.study.comparison.parts.values_by_part`, with `resampling` for intervals.

    Raises
    ------
    UsageError
        More parts than a figure can hold.
    """
    require(values.parts, "slices")
    if len(values.parts) > PARTS:
        raise UsageError(
            f"{len(values.parts):,} slices by {', '.join(values.dimensions)} are too many; a "
            f"figure shows at most {PARTS}; choose fewer parts, or draw relations as boxes "
            "(relations)"
        )
    many = len(values.systems)
    gap = min(0.2, 0.8 / many)
    made, axes = figure(height=0.8 + len(values.parts) * (0.08 + 0.07 * many))
    points = np.array(list(values.parts.values()))
    ends = np.array([
        values.intervals.get(part, np.full((2, many), np.nan)) for part in values.parts
    ])  # fmt: skip
    for number, name in enumerate(values.systems):
        at = np.arange(len(points)) + gap * (number - (many - 1) / 2)
        bars = np.abs(ends[:, :, number] - points[:, None, number]).T
        look = series_style(number, marked=True) | {"linestyle": "none"}
        axes.errorbar(points[:, number], at, xerr=bars, elinewidth=0.8, capsize=1.5,
                      label=short(name), **look)  # fmt: skip
    for row in range(1, len(points), 2):
        axes.axhspan(row - 0.5, row + 0.5, color="#f2f2f2", zorder=0, linewidth=0)
    counts = values.counts.get("instances", values.counts.get("count", ()))
    parts = zip((short(", ".join(part), 40) for part in values.parts), counts, strict=True)
    names = [f"{part} ({count:,})" for part, count in parts]
    name_rows(axes, names, ", ".join(values.dimensions) + " (answers)")
    axes.grid(False, axis="y")
    title = Measure.parse(values.measure).title
    drawn = values.intervals and values.resampling
    axes.set_xlabel(f"{title} with {drawn.percent:g}% intervals" if drawn else title)
    return legend_above(made)


@styled()
def alignment_sizes(experiments: SizeExperiment | Mapping[str, SizeExperiment]) -> Figure:
    """Metrics of a model, or of several, on growing test sets, one panel per metric.

    Berrendorf et al., Figure 1, where models were trained on different numbers of alignments.

    Parameters
    ----------
    experiments : SizeExperiment, or mapping of str to SizeExperiment
        By the name in the legend, all with the same metrics. A band spans all repeats; its line is
        their mean.

    Raises
    ------
    UsageError
        No experiment, or experiments with different metrics.
    """
    several = experiments if isinstance(experiments, Mapping) else {"": experiments}
    names = _shared_metrics(several)
    made, panels = panel_grid(names, 2, height=1.7, sharex=True)
    for axes, name in panels:
        values = [one.values[name] for one in several.values()]
        rows = (
            (short(model) or None, one.sizes, own.mean(axis=1), own.min(axis=1), own.max(axis=1))
            for (model, one), own in zip(several.items(), values, strict=True)
        )
        draw_lines(axes, rows, marked=True, clip_on=False)
        axes.set(xscale="log", ylabel=metric_title(name))
        axes.set_ylim(bottom=min(0.0, *(own.min() for own in values)))
    for axes, _ in panels[-2:]:
        axes.set_xlabel("test alignments = candidates")
        axes.tick_params(labelbottom=True)
    return legend_above(made, [range_patch("all repeats (line: mean)")])


def _shared_metrics(experiments: Mapping[str, SizeExperiment]) -> list[str]:
    require(experiments, "experiments")
    first, *others = ((name, list(one.values)) for name, one in experiments.items())
    for name, metrics in others:
        if metrics != first[1]:
            raise UsageError(
                f"{first[0]!r} was measured by {', '.join(first[1])} and {name!r} by "
                f"{', '.join(metrics)}; ask for the same metrics"
            )
    return first[1]


def _named(name: str, ranks: Ranks) -> str:
    """A name for legends; it says if candidates were sampled."""
    return short(name) + SAMPLED * ranks.sampled


def _chance(ranks: Ranks, points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Expected Hits@k of a random scorer: the mean of min(k / candidates, 1)."""
    sizes, counts = np.unique(ranks.candidates, return_counts=True)
    return np.asarray(np.minimum(points[:, None] / sizes, 1.0) @ counts / len(ranks))


def _plain_numbers(axis: Any, form: str, factor: float = 1) -> None:
    """Labels of a logarithmic axis without powers of ten, at whole powers only."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    axis.set_major_formatter(FuncFormatter(lambda value, _: form.format(factor * value)))
    axis.set_minor_formatter(NullFormatter())


_TICKS = 4


@styled()
def over_time(results: Mapping[str, Result], metric: str = "mrr") -> Figure:
    """A micro metric of the questions of each time, in the order of time.

    Parameters
    ----------
    results : mapping of str to Result
        By the name in the legend; of questions at a time, of one graph.
    metric : str
        Such as "mrr" or "hits@10"; realistic ranks, all sides that the results hold.

    Raises
    ------
    UsageError
        No results, or questions without a time.
    """
    require(results, "results")
    slices = {
        name: result.slice("time", [_key(result, metric)]).rows for name, result in results.items()
    }
    labels = {
        at: time for each in results.values() for at, time in each.ranks.context_labels.items()
    }
    there = {row[0] for rows in slices.values() for row in rows}
    times = [labels[at] for at in sorted(labels) if labels[at] in there]
    place = {time: x for x, time in enumerate(times)}
    made, axes = figure()
    rows = (
        (_named(name, results[name].ranks), [place[str(row[0])] for row in own],
         np.array([row[-1] for row in own], dtype=np.float64))
        for name, own in slices.items()
    )  # fmt: skip
    draw_lines(axes, rows, spaced=True)
    ticks = np.unique(np.linspace(0, len(times) - 1, min(_TICKS, len(times))).round())
    axes.set_xticks(ticks, [short(times[int(at)]) for at in ticks])
    axes.set(xlabel="time of the question", ylabel=metric_title(metric))
    return legend_above(made)
