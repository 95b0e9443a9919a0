"""Figures of ranks: distribution, ties, rank types; metrics by slice, relation and time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kgtrec._internal.named import Named, by_name
from kgtrec.errors import UsageError
from kgtrec.measures import Measure
from kgtrec.plots.style import (
    MARKERS,
    apply_style,
    draw_lines,
    figure,
    legend_above,
    metric_title,
    name_rows,
    panel_grid,
    range_patch,
    require,
    require_type,
    require_values,
    series_style,
    short,
    short_names,
)
from kgtrec.results.result import Result
from kgtrec.study.comparison.parts import SystemValues
from kgtrec.study.comparison.samples import SystemRanks, ranks_by_name

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from kgtrec.ranking.ranks import Ranks
    from kgtrec.study.alignment import SizeExperiment

RANK_TYPES = ("optimistic", "expected", "realistic", "ordinal", "pessimistic")
CUTOFFS = (1, 3, 10, 100)
CHANCE = "chance (expected)"
ROW_GAP = 0.15
"""Distance between the markers of two rank types, in rows."""
NO_TIES, SAMPLED = " (no ties)", " (sampled)"
WHISKERS = (5, 95)
"""Percentiles of the relations at the ends of the whiskers."""
PARTS = 40
"""Largest number of slices in a figure."""


@apply_style()
def rank_distribution(ranks: Named[SystemRanks], kind: str = "realistic") -> Figure:
    """Share of instances with a rank of at most k, for every k: all values of Hits@k at once.

    Parameters
    ----------
    ranks : mapping of str to Ranks or Result, or sequence of them
        By the name in the legend; those of a sequence are called "system 1", ... The dotted grey
        line, "chance", is the expectation of a random scorer with the numbers of candidates of the
        first.
    kind : {"optimistic", "realistic", "pessimistic", "ordinal"}
    """
    ranks = ranks_by_name("ranks", ranks)
    require(ranks, "ranks")
    fig, axes = figure()
    first = next(iter(ranks.values()))
    points = np.unique(np.geomspace(1, first.candidates.max(), 200).round())
    rows = []
    for name, model_ranks in zip(_legend_names(ranks), ranks.values(), strict=True):
        rank, counts = np.unique(model_ranks.rank(kind), return_counts=True)
        rows.append((name, rank, np.cumsum(counts) / len(model_ranks)))
    draw_lines(axes, rows, drawstyle="steps-post")
    # A name and dots that no system has, not even one with random scores.
    axes.plot(
        points,
        _chance_hits(first, points),
        color="#555555",
        linewidth=0.9,
        linestyle=(0, (1, 2)),
        label=CHANCE,
        zorder=3,
    )
    axes.set(
        xscale="log",
        xlim=(0.9, None),
        ylim=(0, 1),
        xlabel=f"k ({kind} rank)",
        ylabel="share with rank ≤ k",
    )
    _plain_numbers(axes.xaxis, "{:,.0f}")
    for cutoff in CUTOFFS:
        axes.axvline(cutoff, color="#dddddd", linewidth=0.6, zorder=0)
    return legend_above(fig)


@apply_style()
def tie_widths(ranks: Named[SystemRanks]) -> Figure:
    """Share of instances whose answer ties with at least w other candidates.

    Both axes are logarithmic. The legend says which models have no ties.
    """
    ranks = ranks_by_name("ranks", ranks)
    require(ranks, "ranks")
    fig, axes = figure()
    rows = []
    for name, model_ranks in zip(_legend_names(ranks), ranks.values(), strict=True):
        width, first = np.unique(
            np.sort(model_ranks.equal[model_ranks.equal > 0]), return_index=True
        )
        label = name + ("" if len(width) else NO_TIES)
        tied = np.count_nonzero(model_ranks.equal)
        share = (tied - first) / len(model_ranks)
        if len(width) and width[0] > 1:  # as many tie with at least one other
            width, share = np.insert(width, 0, 1), np.insert(share, 0, share[0])
        rows.append((label, width, share))
    # Steps: shares do not change between two widths.
    draw_lines(axes, rows, spaced=True, drawstyle="steps-pre")
    for line, (_, width, _) in zip(axes.get_lines(), rows, strict=True):
        line.set_clip_on(not len(width))  # an empty line would widen the margins
    axes.set_xscale("log")
    if any(model_ranks.equal.any() for model_ranks in ranks.values()):
        axes.set_yscale("log")  # which cannot show shares of 0
    else:
        axes.set_ylim(0, 1)
    axes.set_xlim(
        0.9, max(10, *(1.1 * model_ranks.equal.max(initial=0) for model_ranks in ranks.values()))
    )
    _plain_numbers(axes.xaxis, "{:,.0f}")
    _plain_numbers(axes.yaxis, "{:g}", 100)
    axes.set(
        xlabel="w: other candidates with the answer's score", ylabel="% of instances tied with ≥ w"
    )
    return legend_above(fig)


@apply_style()
def rank_types(results: Named[SystemRanks], metric: str = "mrr") -> Figure:
    """One metric at all five rank definitions, one row per model: the effect of ties.

    Parameters
    ----------
    results : mapping of str to Result or Ranks, or sequence of them
    metric : str
        A micro metric, such as "mrr" or "hits@10", on all sides that the results hold.
    """
    results = _results_by_name(results)
    require(results, "results")
    values = np.array(
        [
            [result[_metric_key(result, metric, kind)] for kind in RANK_TYPES]
            for result in results.values()
        ]
    )
    rows = np.arange(len(results))
    fig, axes = figure(height=0.9 + 0.42 * len(results))
    axes.hlines(rows, values.min(axis=1), values.max(axis=1), color="#bbbbbb", linewidth=0.8)
    for index, kind in enumerate(RANK_TYPES):
        style = series_style(index) | {"linestyle": "none", "marker": MARKERS[index]}
        # One below the other, so that equal values do not hide each other.
        heights = rows + ROW_GAP * (index - (len(RANK_TYPES) - 1) / 2)
        axes.plot(values[:, index], heights, label=kind, fillstyle="none", clip_on=False, **style)
    # From zero, so that tiny differences look tiny; with room for markers on the right.
    low, high = min(0.0, values.min()), max(0.0, values.max())
    axes.set_xlim(low, high + 0.04 * (high - low or 1.0))
    ranks = {name: result.ranks for name, result in results.items()}
    names = [
        name + ("" if model_ranks.equal.any() else NO_TIES)
        for name, model_ranks in zip(_legend_names(ranks), ranks.values(), strict=True)
    ]
    name_rows(axes, names, "model")
    axes.set_xlabel(f"{metric_title(metric)} (micro)")
    return legend_above(fig)


def _metric_key(result: Result, metric: str, kind: str = "realistic") -> str:
    """Return the key of a micro metric over all sides of a result."""
    return f"{result.sides[-1]}.{kind}.micro.{metric}"


def relations(results: Named[SystemRanks], metric: str = "mrr") -> Figure:
    """A micro metric of each relation, one box per model, and over all instances.

    Parameters
    ----------
    results : mapping of str to Result or Ranks, or sequence of them
    metric : str
        Such as "mrr" or "hits@10"; realistic ranks, all sides that the results hold.
    """
    results = _results_by_name(results)
    require(results, "results")
    values, marks = {}, []
    for name, result in results.items():
        key = _metric_key(result, metric)
        column = [row[-1] for row in result.slice("relation", [key]).rows]
        values[name + SAMPLED * result.ranks.sampled] = np.array(column, dtype=np.float64)
        marks.append(float(result[key]))
    return over_relations(values, metric_title(metric), marks)


@apply_style()
def over_relations(
    values: Mapping[str, NDArray[np.float64]], label: str, marks: Sequence[float] | None = None
) -> Figure:
    """Distribution of a metric over relations (Zhou et al., Figure 6), one box per model.

    Boxes from the lower to the upper quartile with the median; whiskers span the middle 90 % of the
    relations.

    Parameters
    ----------
    values : mapping of str to ndarray of float64, shape (n_relations,)
        The metric of each relation, in any order.
    label : str
        Name of the metric, for the axis.
    marks : sequence of float, optional
        A second value for each box, drawn as a diamond, such as the metric over all instances.
    """
    require_values(values, object, "values", "Result.per_relation")
    require(values, "values")
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    fig, axes = figure(height=0.9 + 0.35 * len(values))
    line: dict[str, Any] = {"color": "#000000", "linewidth": 0.8}
    drawn: Any = axes.boxplot(
        list(values.values()),
        orientation="horizontal",
        whis=WHISKERS,
        widths=0.5,
        showfliers=False,
        patch_artist=True,
        medianprops=line | {"linewidth": 1.4},
        boxprops={"linewidth": 0.8},
        whiskerprops=line,
        capprops=line,
    )
    for number, box in enumerate(drawn["boxes"]):
        box.set_facecolor(series_style(number)["color"])
        box.set_alpha(0.45)
    if marks is not None:
        rows = range(1, len(values) + 1)
        axes.plot(marks, rows, "D", color="#000000", fillstyle="none", label="all instances")
    half = Patch(facecolor="#bbbbbb", edgecolor="#000000", linewidth=0.8, label="quartiles, median")
    legend_above(fig, [half, Line2D([], [], label="middle 90 %", **line)])
    shown = zip(short_names(values, 24), values.values(), strict=True)
    names = [f"{name} ({len(each)})" for name, each in shown]
    axes.set_yticks(range(1, len(values) + 1), names)
    axes.invert_yaxis()
    axes.set(xlabel=f"{label} by relation", ylabel="model (relations)")
    return fig


@apply_style()
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
    source = "kgtrec.study.comparison.parts.values_by_part"
    require_type(values, SystemValues, "values", source)
    require(values.parts, "slices")
    if len(values.parts) > PARTS:
        raise UsageError(
            f"{len(values.parts):,} slices by {', '.join(values.dimensions)} are too many; a "
            f"figure shows at most {PARTS}; choose fewer parts, or draw relations as boxes "
            "(relations)"
        )
    many = len(values.systems)
    gap = min(0.2, 0.8 / many)
    fig, axes = figure(height=0.8 + len(values.parts) * (0.08 + 0.07 * many))
    points = np.array(list(values.parts.values()))
    ends = np.array(
        [values.intervals.get(part, np.full((2, many), np.nan)) for part in values.parts]
    )
    for number, name in enumerate(short_names(values.systems)):
        heights = np.arange(len(points)) + gap * (number - (many - 1) / 2)
        bars = np.abs(ends[:, :, number] - points[:, None, number]).T
        style = series_style(number, marked=True) | {"linestyle": "none"}
        axes.errorbar(
            points[:, number],
            heights,
            xerr=bars,
            elinewidth=0.8,
            capsize=1.5,
            label=name,
            **style,
        )
    for row in range(1, len(points), 2):
        axes.axhspan(row - 0.5, row + 0.5, color="#f2f2f2", zorder=0, linewidth=0)
    counts = values.counts.get("instances", values.counts.get("count", ()))
    parts = short_names((", ".join(part) for part in values.parts), 40)
    names = [f"{part} ({count:,})" for part, count in zip(parts, counts, strict=True)]
    name_rows(axes, names, ", ".join(values.dimensions) + " (answers)")
    axes.grid(False, axis="y")
    title = Measure.parse(values.measure).title
    resampling = values.intervals and values.resampling
    axes.set_xlabel(f"{title} with {resampling.percent:g}% intervals" if resampling else title)
    return legend_above(fig)


@apply_style()
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
    names = _check_same_metrics(several)
    fig, panels = panel_grid(names, 2, height=1.7, sharex=True)
    for axes, name in panels:
        values = [experiment.values[name] for experiment in several.values()]
        rows = (
            (
                model or None,
                experiment.sizes,
                repeats.mean(axis=1),
                repeats.min(axis=1),
                repeats.max(axis=1),
            )
            for model, experiment, repeats in zip(
                short_names(several), several.values(), values, strict=True
            )
        )
        draw_lines(axes, rows, marked=True, clip_on=False)
        axes.set(xscale="log", ylabel=metric_title(name))
        axes.set_ylim(bottom=min(0.0, *(repeats.min() for repeats in values)))
    for axes, _ in panels[-2:]:
        of_tests = all(experiment.candidates == "test" for experiment in several.values())
        axes.set_xlabel("test alignments" + " = candidates" * of_tests)
        axes.tick_params(labelbottom=True)
    return legend_above(fig, [range_patch("all repeats (line: mean)")])


def _check_same_metrics(experiments: Mapping[str, SizeExperiment]) -> list[str]:
    """Return the metrics of all experiments; UsageError if they differ."""
    from kgtrec.study.alignment import SizeExperiment

    require_values(experiments, SizeExperiment, "experiments", "kgtrec.study.size_experiment")
    require(experiments, "experiments")
    first, *others = ((name, list(experiment.values)) for name, experiment in experiments.items())
    for name, metrics in others:
        if metrics != first[1]:
            raise UsageError(
                f"{first[0]!r} was measured by {', '.join(first[1])} and {name!r} by "
                f"{', '.join(metrics)}; ask for the same metrics"
            )
    return first[1]


def _results_by_name(results: Named[SystemRanks]) -> dict[str, Result]:
    """Return the results of a mapping of names to Results or Ranks; UsageError for others."""
    named = by_name("results", results)
    ranks = ranks_by_name("results", named)
    return {
        name: result if isinstance(result, Result) else Result(ranks[name])
        for name, result in named.items()
    }


def _legend_names(ranks: Mapping[str, Ranks]) -> list[str]:
    """Return names for legends, which say if candidates were sampled."""
    names = zip(short_names(ranks), ranks.values(), strict=True)
    return [name + SAMPLED * model_ranks.sampled for name, model_ranks in names]


def _chance_hits(ranks: Ranks, points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the expected Hits@k of a random scorer: the mean of min(k / candidates, 1)."""
    sizes, counts = np.unique(ranks.candidates, return_counts=True)
    return np.asarray(np.minimum(points[:, None] / sizes, 1.0) @ counts / len(ranks))


def _plain_numbers(axis: Any, form: str, factor: float = 1) -> None:
    """Label a logarithmic axis at whole powers only, without writing powers of ten."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    axis.set_major_formatter(FuncFormatter(lambda value, _: form.format(factor * value)))
    axis.set_minor_formatter(NullFormatter())


_TICKS = 4


@apply_style()
def over_time(results: Named[SystemRanks], metric: str = "mrr") -> Figure:
    """A micro metric of the questions of each time, in the order of time.

    Parameters
    ----------
    results : mapping of str to Result or Ranks, or sequence of them
        By the name in the legend; of questions at a time, of one graph.
    metric : str
        Such as "mrr" or "hits@10"; realistic ranks, all sides that the results hold.

    Raises
    ------
    UsageError
        No results, or questions without a time.
    """
    results = _results_by_name(results)
    require(results, "results")
    slices = {
        name: result.slice("time", [_metric_key(result, metric)]).rows
        for name, result in results.items()
    }
    labels = {
        time_id: time
        for result in results.values()
        for time_id, time in result.ranks.context_labels.items()
    }
    present = {row[0] for rows in slices.values() for row in rows}
    times = [labels[time_id] for time_id in sorted(labels) if labels[time_id] in present]
    x_of = {time: x for x, time in enumerate(times)}
    ranks = {name: result.ranks for name, result in results.items()}
    fig, axes = figure()
    rows = (
        (
            name,
            [x_of[str(row[0])] for row in points],
            np.array([row[-1] for row in points], dtype=np.float64),
        )
        for name, points in zip(_legend_names(ranks), slices.values(), strict=True)
    )
    draw_lines(axes, rows, spaced=True)
    ticks = np.unique(np.linspace(0, len(times) - 1, min(_TICKS, len(times))).round())
    axes.set_xticks(ticks, [short(times[int(time_id)]) for time_id in ticks])
    axes.set(xlabel="time of the question", ylabel=metric_title(metric))
    return legend_above(fig)
