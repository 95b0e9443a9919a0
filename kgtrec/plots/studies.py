"""Figures of studies: calibration, popularity and beta curves, the open world."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import repeat
from typing import TYPE_CHECKING, Any

import numpy as np

from kgtrec.errors import InputError, UsageError, choose
from kgtrec.plots.style import (
    COLUMN,
    apply_style,
    draw_lines,
    figure,
    label_ends,
    legend_above,
    metric_title,
    panel_grid,
    range_patch,
    require,
    require_items,
    require_type,
    require_values,
    series_style,
    short_names,
)
from kgtrec.study.openworld.formulas import (
    ENTITIES,
    approximation,
    correlation_range,
    expectation,
    title_of,
)
from kgtrec.study.openworld.results import Comparison, Panel
from kgtrec.study.openworld.simulate import BETAS, N_ANSWERS, Simulation
from kgtrec.study.popularity_bias import EXAMPLES, BiasSimulation, unbiased_exponent

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from kgtrec.graph.statistics.popularity import Frequencies
    from kgtrec.study.classification.classify import ReliabilityCurve
    from kgtrec.study.distributions import RelationDistributions
    from kgtrec.study.sets.abstention import RiskCurve
    from kgtrec.study.sets.sets import AnswerSets
    from kgtrec.study.stratified import BetaGrid


@apply_style()
def reliability_curves(curves: Sequence[ReliabilityCurve]) -> Figure:
    """Share of true triples against predicted probability, one line per calibrator.

    Parameters
    ----------
    curves : sequence of ReliabilityCurve
        From a `Classification`. A point is a bin; predictions on the diagonal are right.
    """
    from kgtrec.study.classification.classify import ReliabilityCurve

    curves = require_items(
        curves, ReliabilityCurve, "curves", "kgtrec.classify(test, valid).curves"
    )
    require(curves, "reliability curve")
    fig, axes = figure(height=2.6)
    rows = (
        (f"{curve.name} (ECE {curve.ece[0]:.3f})", curve.predicted, curve.observed)
        for curve in curves
    )
    draw_lines(axes, rows, marked=True)
    diagonal = {"color": "#888888", "linewidth": 0.8, "linestyle": ":"}
    axes.plot([0, 1], [0, 1], label="as claimed", zorder=1, **diagonal)
    axes.set(
        xlabel="predicted probability",
        ylabel="share of true triples",
        xlim=(-0.02, 1.02),
        ylim=(-0.02, 1.02),
    )
    return legend_above(fig)


PERCENTS = np.geomspace(0.1, 100, 200)


@apply_style()
def beta_curves(*grids: Mapping[str, BetaGrid], alpha: float | None = None) -> Figure:
    """Stratified metrics over one exponent (Mohamed et al., Figures 2-4), one panel per metric.

    Dotted lines mark the nearly unbiased exponents for some alpha (equation 2).

    Parameters
    ----------
    *grids : mapping of str to BetaGrid
        Curves over the same exponent and of the same metrics, by the name in the legend. Several
        mappings, such as curves over beta_e and over beta_r, are rows of panels.
    alpha : float, optional
        Mark the exponent of this estimate. By default alpha is unknown, and the exponents for 0.5,
        1 and 2 are marked as examples.

    Raises
    ------
    UsageError
        A whole grid, or curves over different exponents or of different metrics.
    """
    require(grids, "curves")
    items = []
    for curves in grids:
        metrics, varied = _check_same_metrics(curves)
        items += [(curves, metric, varied) for metric in metrics]
    columns = 2 if len(grids) == 1 else len(items) // len(grids)
    drawn, panels = panel_grid(items, columns, height=2.0)
    for axes, (curves, metric, varied) in panels:
        lines = [
            (name + " (sampled)" * grid.sampled, getattr(grid, varied), grid[metric].ravel())
            for name, grid in zip(short_names(curves), curves.values(), strict=True)
        ]
        draw_lines(axes, lines)
        exponent = "β$_e$ (entities)" if varied == "beta_e" else "β$_r$ (relations)"
        axes.set(xlabel=exponent, ylabel=f"strat-{metric_title(metric)}", xlim=(-1, 1))
        axes.set_xticks([-1, -0.5, 0, 0.5, 1])
        _mark_exponents(axes, EXAMPLES if alpha is None else (alpha,))
    every = [grid for curves in grids for grid in curves.values()]
    plain = len(every) == len(grids) and not any(grid.sampled for grid in every)
    return drawn if plain else legend_above(drawn)


def _mark_exponents(axes: Axes, alphas: Sequence[float]) -> None:
    """Draw a dotted line at the nearly unbiased exponent of each alpha, with alpha above it."""
    transform = axes.get_xaxis_transform()
    for alpha in alphas:
        exponent = unbiased_exponent(alpha)
        axes.axvline(exponent, color="#888888", linewidth=0.7, linestyle=":", zorder=0)
        axes.text(
            exponent, 1.01, f"{alpha:g}", transform=transform, ha="center", va="bottom", fontsize=5
        )
    first = unbiased_exponent(min(alphas))
    axes.text(
        first - 0.1, 1.01, r"$\alpha$ =", transform=transform, ha="right", va="bottom", fontsize=5
    )


@apply_style()
def exponent_bias(simulation: BiasSimulation) -> Figure:
    """Bias of a stratified metric over beta, one line per alpha (Mohamed et al., equation 2).

    Dotted lines mark alpha / (alpha + 1), where the bias should be near 0.

    Parameters
    ----------
    simulation : BiasSimulation
        From `study.simulate_bias`.
    """
    require_type(simulation, BiasSimulation, "simulation", "kgtrec.study.simulate_bias")
    fig, axes = figure()
    axes.axhline(0, color="#888888", linewidth=0.8)
    rows = []
    for alpha, bias, error in zip(
        simulation.alphas, simulation.bias, 2 * simulation.error, strict=True
    ):
        rows.append((f"$\\alpha$ = {alpha:g}", simulation.betas, bias, bias - error, bias + error))
    draw_lines(axes, rows)
    for number, alpha in enumerate(simulation.alphas):
        colour = series_style(number)["color"]
        axes.axvline(unbiased_exponent(alpha), color=colour, linewidth=0.8, linestyle=":")
    axes.set(xlabel="β", ylabel="estimate minus true value", xlim=(-1, 1))
    axes.set_xticks([-1, -0.5, 0, 0.5, 1])
    return legend_above(fig)


@apply_style()
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
    from matplotlib import colormaps
    from matplotlib.colors import ListedColormap

    from kgtrec.study.stratified import BetaGrid

    require_type(grid, BetaGrid, "grid", "kgtrec.study.beta_grid")
    if min(len(grid.beta_e), len(grid.beta_r)) < 2:
        raise UsageError("a heat map needs a grid of both exponents, as of beta_grid")
    metric = metric or grid.metrics[0]
    values = grid[metric]
    fig, axes = figure(width=COLUMN, height=2.7)
    exponents = grid.beta_r, grid.beta_e
    # Without its dark end, where contours would vanish; cividis suits grey prints.
    colours = ListedColormap(colormaps["cividis"](np.linspace(0.3, 1.0, 256)))
    mesh = axes.pcolormesh(*exponents, values, cmap=colours, shading="nearest")
    mesh.set_rasterized(True)
    lines = axes.contour(*exponents, values, colors="black", linewidths=0.6, linestyles="solid")
    axes.clabel(lines, fontsize=6)
    axes.plot([-1], [0], "kx", clip_on=False, markersize=6, mew=1.5, label="micro average")
    axes.plot([0], [0], "ko", fillstyle="none", markersize=5, mew=1.2, label="mean over relations")
    axes.set(xlabel="β$_r$ (relations)", ylabel="β$_e$ (entities)")
    axes.grid(False)
    label = "sampled " * grid.sampled + f"strat-{metric_title(metric)}"
    fig.colorbar(mesh, ax=axes, label=label)
    return legend_above(fig)


@apply_style()
def popularity(frequencies: Mapping[str, Frequencies]) -> Figure:
    """Share of triples that involve the most frequent x % of items (Mohamed et al., Figure 1).

    Parameters
    ----------
    frequencies : mapping of str to Frequencies
        By the name in the legend, such as "entities" and "relations".
    """
    from kgtrec.graph.statistics.popularity import Frequencies

    require_values(frequencies, Frequencies, "frequencies", "kgtrec.study.entity_frequencies")
    require(frequencies, "frequencies")
    fig, axes = figure()
    shares = (
        [100 * counts.top(percent)[1] for percent in PERCENTS] for counts in frequencies.values()
    )
    draw_lines(axes, zip(short_names(frequencies), repeat(PERCENTS), shares, strict=False))
    axes.set_xscale("log")
    axes.set_xticks([0.1, 1, 10, 100], ["0.1 %", "1 %", "10 %", "100 %"])
    axes.set(
        xlabel="share of the most frequent items",
        ylim=(0, 102),
        ylabel="% of triples that involve one",
    )
    return legend_above(fig)


@apply_style()
def frequency_histogram(frequencies: Mapping[str, Frequencies]) -> Figure:
    """Histogram of frequencies on logarithmic axes, with fitted tails (Mohamed et al., Figure 1).

    Bins are 1, 2-3, 4-7, 8-15, ...; the line is a power law fitted to the most frequent items.

    Parameters
    ----------
    frequencies : mapping of str to Frequencies
        By the name in the legend, such as "entities" and "relations", or of several graphs.
    """
    from kgtrec.graph.statistics.popularity import Frequencies

    require_values(frequencies, Frequencies, "frequencies", "kgtrec.study.entity_frequencies")
    require(frequencies, "frequencies")
    fig, axes = figure()
    names = short_names(frequencies)
    for number, (name, counts) in enumerate(zip(names, frequencies.values(), strict=True)):
        style = series_style(number, True)
        ends, shares = counts.histogram()
        middle = np.sqrt(ends[:-1] * ends[1:])
        seen = shares > 0
        try:
            fit = counts.tail()
        except InputError:  # too few items for a tail
            fit = None
        label = name if fit is None else f"{name}: tail index {fit.exponent:.2f}"
        axes.plot(middle[seen], shares[seen], label=label, **(style | {"linestyle": "none"}))
        if fit is not None:
            points = np.geomspace(fit.least, max(ends[-1], fit.least + 1), 50)
            tail = fit.density(points) * fit.items / max(int((counts.counts > 0).sum()), 1)
            axes.plot(points, tail, color=style["color"], linewidth=1)
    axes.set(xscale="log", yscale="log", xlabel="triples of an item", ylabel="share of items")
    return legend_above(fig)


@apply_style()
def relation_shares(distributions: RelationDistributions) -> Figure:
    """Relation distributions of several sets (Zhou et al., Figure 2), one panel per set.

    Bars are classes of relations, most frequent in the reference first; the last has all rarer
    ones. Dots show the reference in the other panels.

    Parameters
    ----------
    distributions : RelationDistributions
    """
    from kgtrec.study.distributions import RelationDistributions

    source = "kgtrec.study.relation_distributions"
    require_type(distributions, RelationDistributions, "distributions", source)
    names, shares = short_names(distributions.names), 100 * distributions.shares
    titles = names[:1] + [
        f"{name} (KL {kl:.4f})"
        for name, kl in zip(names[1:], distributions.divergence[1:], strict=True)
    ]
    fig, panels = panel_grid(range(len(names)), 1, titles=titles, height=1.4)
    at = np.arange(shares.shape[1])
    for axes, number in panels:
        axes.bar(at, shares[number], color=series_style(number)["color"])
        if number:
            axes.plot(at, shares[0], ".", color="#000000", markersize=2)
        axes.set(ylabel="% of triples", xlim=(-0.7, len(at) - 0.3))
        axes.set_xticks([])
    panels[-1][0].set_xlabel(
        "relations, most frequent of (a) first" if len(names) > 1 else "relations"
    )
    return fig


def _check_same_metrics(grids: Mapping[str, BetaGrid]) -> tuple[Sequence[str], str]:
    """Metrics and the exponent that all curves share."""
    from kgtrec.study.stratified import BetaGrid

    require_values(grids, BetaGrid, "grids", "kgtrec.study.beta_curve")
    require(grids, "curves")
    kinds = {(grid.metrics, _find_exponent(grid)) for grid in grids.values()}
    if len(kinds) > 1:
        raise UsageError("the curves differ in metrics or exponent; draw one figure per kind")
    return kinds.pop()


def _find_exponent(grid: BetaGrid) -> str:
    """Return the name of the exponent that a curve varies; UsageError for a grid."""
    if min(len(grid.beta_e), len(grid.beta_r)) > 1:
        raise UsageError("this is a grid, not a curve; draw it as a heat map")
    return "beta_e" if len(grid.beta_e) > 1 else "beta_r"


EXACT: dict[str, Any] = {"color": "#000000", "linestyle": (0, (1, 1.5)), "linewidth": 0.9}
FEW = 6
"""Most lines with names at their ends."""


@apply_style()
def expected_metric(
    metric: str = "mrr",
    betas: Sequence[float] = (0.0, *BETAS),
    n_answers: int = N_ANSWERS,
    n_entities: int = ENTITIES,
    rho: float = 0.0,
) -> Figure:
    """Exact expectation of a metric against the strength, one line per sparsity.

    Up to six lines that reach the right have their names there; more have a legend.

    Parameters
    ----------
    metric : str, default "mrr"
    betas : sequence of float in [0, 1)
    n_answers : int, default 43
    n_entities : int, default 14505
    rho : float, default 0
        Lines end where the correlation becomes impossible.
    """
    require(betas, "betas")
    fig, axes = figure()
    lines = []
    for beta in betas:
        strengths = _keep_possible(np.linspace(0.0, 1.0, 101), beta, rho)
        values = expectation(strengths, beta, n_answers, n_entities, metric, rho, kept=True)
        lines.append((f"{beta:g}", strengths, values))
    draw_lines(axes, lines)
    ends = [y[-1] if len(x) and x[-1] == 1.0 else np.nan for _, x, y in lines]
    _strength_axis(axes, f"expected {title_of(metric)}")
    axes.set_ylim(bottom=0)
    if not _name_ends(axes, betas, ends, 1):
        legend_above(fig, title="sparsity β")
    return fig


@apply_style()
def approximation_quality(betas: Sequence[float] = BETAS, n_answers: int = N_ANSWERS) -> Figure:
    """Theorem 4.1: the logarithmic approximation (dashed) and the exact expected MRR (solid)."""
    require(betas, "betas")
    strengths = np.linspace(0.02, 1.0, 99)
    fig, axes = figure()
    exact = [expectation(strengths, beta, n_answers) for beta in betas]
    for number, beta in enumerate(betas):
        colour = series_style(number)["color"]
        axes.plot(strengths, exact[number], color=colour)
        close = approximation(strengths, beta, n_answers)
        axes.plot(strengths, np.where(close > 0, close, np.nan), color=colour, linestyle="--")
    axes.plot([], [], color="#000000", label="exact")
    axes.plot([], [], color="#000000", linestyle="--", label="approximation")
    _strength_axis(axes, "expected MRR")
    axes.set_ylim(bottom=0)
    _name_ends(axes, betas, [values[-1] for values in exact], 1, few=len(betas))
    return legend_above(fig)


@apply_style()
def simulations(runs: Simulation | Sequence[Simulation], metric: str = "mrr") -> Figure:
    """Figures 1 and 2: simulated means with a band of two standard errors, exact lines dotted.

    Parameters
    ----------
    runs : Simulation, or several of the same sparsities and different correlations
        One: one line per sparsity (Figure 1). Several: one panel per sparsity, one line per
        correlation (Figure 2).
    metric : str, default "mrr"

    Raises
    ------
    UsageError
        No simulation, different sparsities, or a metric that was not simulated.

    Notes
    -----
    The paper calls its bands two standard deviations; what its program draws is two standard
    errors, as here.
    """
    from matplotlib.lines import Line2D

    several = require_items(runs, Simulation, "runs", "kgtrec.study.openworld.simulate")
    require(several, "runs")
    if any(run.betas != several[0].betas for run in several):
        raise UsageError("the simulations have different sparsities; give runs of the same betas")
    betas, has_names = several[0].betas, False
    if isinstance(runs, Simulation):
        fig, axes = figure()
        _draw_simulated(axes, [(f"β = {b:g}", runs, row) for row, b in enumerate(betas)], metric)
        has_names = _name_ends(axes, betas, runs.mean[metric][:, -1], runs.strengths[-1])
    else:
        fig, panels = panel_grid(range(len(betas)), 2, titles=[f"β = {b:g}" for b in betas])
        for axes, row in panels:
            _draw_simulated(axes, [(f"$\\rho$ = {run.rho:g}", run, row) for run in several], metric)
    exact = Line2D([], [], label="exact", **EXACT)
    return legend_above(fig, [exact, range_patch("± 2 standard errors")], series=not has_names)


def _name_ends(axes: Axes, betas: Sequence[float], ends: Any, right: float, few: int = FEW) -> bool:
    """Name a few lines at their ends; return False if there are too many, or some end before."""
    if len(betas) > few or not np.isfinite(ends).all():
        return False
    axes.set_xlim(right=right)
    label_ends(axes, [f"β = {beta:g}" for beta in betas], ends)
    return True


def _draw_simulated(axes: Axes, lines: Sequence[tuple[str, Simulation, int]], metric: str) -> None:
    """Draw lines with bands, and the exact lines.

    A line is a label, a simulation, and the number of one of its sparsities.
    """
    exact = [(run.strengths, run.exact(metric, row)) for _, run, row in lines]
    rows = []
    for label, run, row in lines:
        mean, reach = run.mean[metric][row], 2 * run.error(metric)[row]
        rows.append((label, run.strengths, mean, mean - reach, mean + reach))
    draw_lines(axes, rows)
    for line in exact:
        axes.plot(*line, **EXACT)
    _strength_axis(axes, title_of(metric))


@apply_style()
def sparse_full(panels: Panel | Sequence[Panel], metrics: Sequence[str] | None = None) -> Figure:
    """Figures 3 and 5 to 14: sparse against full metric, one line per model.

    The grey line is the paper's model without correlation for the same questions.

    Parameters
    ----------
    panels : Panel or sequence of Panel
        One row of the figure per panel (Figures 3 and 6: several panels, one metric).
    metrics : sequence of str, optional
        One column per metric; by default all metrics (Figures 7 to 14), of one panel in rows of
        three.

    Raises
    ------
    UsageError
        No panel or no metric, or a metric that was not measured.
    """
    several = require_items(panels, Panel, "panels", "kgtrec.study.openworld.family_study")
    require(several, "panels")
    names = list(several[0].curves[0].values) if metrics is None else list(metrics)
    require(names, "metrics")
    for name in names:
        choose("metric", name, several[0].curves[0].values, "was not measured")
    cells = [(panel, name) for panel in several for name in names]
    columns = min(3, len(cells)) if len(several) == 1 or len(names) == 1 else len(names)
    titles = [f"d = {100 * panel.density:g} %, {panel.removal}" for panel, _ in cells]
    fig, grid = panel_grid(cells, columns, titles=titles, width=2.3 * columns, height=2.2)
    styles = _model_styles([curve.model for panel in several for curve in panel.curves])
    for axes, (panel, name) in grid:
        _draw_sparse_full(axes, panel, name, styles)
    return legend_above(fig, [line for axes in fig.axes for line in axes.get_lines()])


def _model_styles(models: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return styles by model: a colour per kind ("SVD", "CP"), a marker and dash per setting."""
    kinds: dict[str, list[str]] = {}
    for model in models:
        settings = kinds.setdefault(model.partition(",")[0], [])
        if model not in settings:
            settings.append(model)
    return {
        model: series_style(j, marked=True) | {"color": series_style(i)["color"]}
        for i, settings in enumerate(kinds.values())
        for j, model in enumerate(settings)
    }


def _draw_sparse_full(
    axes: Axes, panel: Panel, metric: str, styles: dict[str, dict[str, Any]]
) -> None:
    """Draw the curves of a panel, and the theory without correlation."""
    for curve in panel.curves:
        style = styles[curve.model] | {"linewidth": 0.8, "markersize": 2.5}
        axes.plot(*curve.values[metric], label=curve.model, **style)
    if metric in panel.theory:
        axes.plot(
            *panel.theory[metric],
            color="#888888",
            linewidth=2.5,
            alpha=0.5,
            zorder=0.5,
            label="theory, no correlation",
        )
    axes.set(xlabel=f"full {title_of(metric)}", ylabel=f"sparse {title_of(metric)}")


OVERTAKES = "stronger than M, lower sparse value"


@apply_style()
def overtaking(panels: Panel | Sequence[Panel], metric: str = "mrr") -> Figure:
    """Figure 4: two models of each panel, and checkpoints that overtake one of them.

    They are the two models with the most misordered pairs. M marks the checkpoint that most of the
    other model's checkpoints overtake: those in red are stronger by their full value, but have a
    lower sparse value. Panels without such a pair show all models.

    Parameters
    ----------
    panels : Panel or sequence of Panel
    metric : str, default "mrr"
    """
    several = require_items(panels, Panel, "panels", "kgtrec.study.openworld.family_study")
    require(several, "panels")
    choose("metric", metric, several[0].curves[0].values, "was not measured")
    titles = [panel.title() for panel in several]
    columns = min(3, len(several))
    fig, grid = panel_grid(several, columns, titles=titles, width=2.6 * columns, height=2.3)
    styles = _model_styles([curve.model for panel in several for curve in panel.curves])
    for axes, panel in grid:
        _draw_overtaking(axes, panel, metric, styles)
        axes.set(xlabel=f"full {title_of(metric)}", ylabel=f"sparse {title_of(metric)}")
    return legend_above(fig, [line for axes in fig.axes for line in axes.get_lines()])


def _draw_overtaking(
    axes: Axes, panel: Panel, metric: str, styles: dict[str, dict[str, Any]]
) -> None:
    """Draw the two models, the checkpoint M, and those that overtake it."""
    full, sparse, curve = panel.points(metric)
    pairs = panel.overtaking(metric)
    shown, weak, strong = set(curve.tolist()), None, pairs[:0, 1]
    if len(pairs):
        models = np.sort(curve[pairs], axis=1)
        both, count = np.unique(models, axis=0, return_counts=True)
        chosen = both[np.argmax(count)]
        pairs = pairs[(models == chosen).all(axis=1)]
        weakest, count = np.unique(pairs[:, 0], return_counts=True)
        weak = weakest[np.argmax(count)]
        shown, strong = set(chosen.tolist()), pairs[pairs[:, 0] == weak, 1]
    for index in sorted(shown):
        training = panel.curves[index]
        style = styles[training.model] | {"linewidth": 0.8, "markersize": 2.5}
        axes.plot(*training.values[metric], label=training.model, **style)
    if weak is not None:
        marks: dict[str, Any] = {"linestyle": "", "zorder": 3, "markersize": 5}
        axes.plot(
            full[strong], sparse[strong], color="#d62728", marker="o", **marks, label=OVERTAKES
        )
        axes.plot(full[weak], sparse[weak], color="black", marker="*", **marks, label="M")
        axes.annotate("M", (full[weak], sparse[weak]), xytext=(3, 4), textcoords="offset points")


@apply_style()
def comparison(result: Comparison) -> Figure:
    """Expected metric against strength at each sparsity, with the two models on each curve."""
    require_type(result, Comparison, "result", "kgtrec.study.openworld.compare_ranks")
    fig, axes = figure()
    for number, outlook in enumerate(result.outlooks):
        style = series_style(number)
        label = f"{100 * outlook.sparsity:.4g} % missing"
        axes.plot(*outlook.curve, label=label, **style)
        for strength, value, marker in zip(outlook.strengths, result.values, "os", strict=True):
            axes.plot(strength, value, marker=marker, color=style["color"], markersize=4)
    names = short_names(result.names)
    for value, name, marker in zip(result.values, names, "os", strict=True):
        axes.axhline(value, color="#888888", linewidth=0.6, linestyle=":", label="their values")
        axes.plot([], [], marker=marker, linestyle="", color="#444444", label=name)
    _strength_axis(axes, f"{title_of(result.metric)} on the sparse test set")
    axes.set_ylim(bottom=0)
    return legend_above(fig)


def _strength_axis(axes: Axes, label: str) -> None:
    """Name the axes of a figure over the strength."""
    axes.set(xlabel="strength: P(a true answer is predicted)", ylabel=label)


def _keep_possible(
    strengths: np.ndarray[Any, Any], beta: float, rho: float
) -> np.ndarray[Any, Any]:
    """Return the strengths at which a correlation is possible."""
    ranges = [correlation_range(float(strength), beta) for strength in strengths]
    return strengths[[rho == 0 or low <= rho <= high for low, high in ranges]]


@apply_style()
def set_coverage(sets: AnswerSets) -> Figure:
    """Coverage of each relation against the claim; relations with more answers are further right.

    Parameters
    ----------
    sets : AnswerSets
        With a claim, as of policy ``conformal:0.1``.

    Raises
    ------
    UsageError
        Sets without a claim.
    """
    from kgtrec.study.sets.sets import AnswerSets

    require_type(sets, AnswerSets, "sets", "kgtrec.study.answer_sets")
    if sets.claim != sets.claim:
        raise UsageError(
            f"policy {sets.policy} claims no coverage; draw the sets of a conformal policy"
        )
    table = sets.slice("relation")
    answers, coverage = (
        [row[table.keys.index(key)] for row in table.rows] for key in ("answers", "coverage")
    )
    fig, axes = figure(height=2.4)
    style = series_style(0, True)
    axes.plot(
        answers, coverage, label="relations", color=style["color"], marker="o", linestyle="none"
    )
    claim = {"color": "#888888", "linewidth": 0.8, "linestyle": ":"}
    axes.axhline(sets.claim, label="claim", zorder=1, **claim)
    axes.set(xscale="log", xlabel="answers", ylabel="coverage", ylim=(-0.02, 1.02))
    return legend_above(fig)


@apply_style()
def risk_coverage(curves: Mapping[str, RiskCurve]) -> Figure:
    """Risk against coverage, one line per model or policy, with the area under it.

    Parameters
    ----------
    curves : mapping of str to RiskCurve
        By the name in the legend.
    """
    from kgtrec.study.sets.abstention import RiskCurve

    require_values(curves, RiskCurve, "curves", "AnswerSets.risk_curve")
    require(curves, "curve of risk")
    fig, axes = figure(height=2.4)
    rows = (
        (f"{name} (AURC {curve.aurc:.3f})", curve.coverage, curve.risk)
        for name, curve in zip(short_names(curves), curves.values(), strict=True)
    )
    draw_lines(axes, rows, spaced=True)
    axes.set(xlabel="coverage", ylabel="risk", xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
    return legend_above(fig)
