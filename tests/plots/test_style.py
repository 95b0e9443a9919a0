"""Every figure with long names, and a check of the places of its texts and legends."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import combinations, cycle, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from compare_cases import systems
from figure_cases import MEASURES, NAMES, SAMPLES, compared, graph, ranks_of_all, results
from matplotlib import rcParams
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from sets_oracle import world
from slow import slow_after, slow_but

import kgtrec
from kgtrec import plots
from kgtrec._internal.bootstrap import Resampling
from kgtrec.cli import cli
from kgtrec.errors import KgtrecError
from kgtrec.graph.statistics.popularity import entity_frequencies, relation_frequencies
from kgtrec.measures import Measure
from kgtrec.plots.style import COLUMN, Style, apply_style, using
from kgtrec.results.result import Result
from kgtrec.study.alignment import SizeExperiment
from kgtrec.study.classification.classify import ReliabilityCurve
from kgtrec.study.comparison.parts import values_by_part
from kgtrec.study.comparison.rankings import Sensitivity, rankings_of_values
from kgtrec.study.comparison.samples import Samples
from kgtrec.study.comparison.significance import discrimination_of
from kgtrec.study.distributions import RelationDistributions
from kgtrec.study.openworld.compare import compare_values
from kgtrec.study.openworld.experiment import MODELS, family_study
from kgtrec.study.openworld.simulate import simulate
from kgtrec.study.pooling.depths import Reuse, with_intervals
from kgtrec.study.popularity_bias import simulate_bias
from kgtrec.study.sets.answer_sets import answer_sets
from kgtrec.study.sets.sets import AnswerSets
from kgtrec.study.stratified import beta_curve, beta_grid
from kgtrec.study.suite.cells import SuiteCells
from kgtrec.study.suite.suite import Suite, suites

pytest.importorskip("matplotlib")


def curves() -> Figure:
    grids = {n: beta_curve(r, metrics=("mrr", "mr", "hits@1")) for n, r in ranks_of_all().items()}
    return plots.beta_curves(grids)


def rankings(several: int) -> Figure:
    random, n = np.random.default_rng(0), len(NAMES)
    orders = [{key: random.random(n) for key in MEASURES[:3]} for _ in range(several)]
    return plots.bump_chart([rankings_of_values(each, NAMES) for each in orders])


def label_sets(n_measures: int) -> Figure:
    random, n = np.random.default_rng(0), len(NAMES)
    orders = [{name: random.random(n) for name in NAMES[:3]} for _ in range(n_measures)]
    return plots.label_sets([rankings_of_values(each, NAMES, MEASURES[2]) for each in orders])


def differences(n_queries: int) -> Samples:
    values = np.random.default_rng(0).random((n_queries, 2)).round(1)
    queries = [f"topic {number} with a long name" for number in range(n_queries)]
    n = np.arange(n_queries)
    return Samples("map", "MAP", NAMES[:2], values, n, "queries", items=queries)


def left_out() -> Figure:
    n, made = len(NAMES), []
    for seed, measure in enumerate(MEASURES[2:]):
        full = np.random.default_rng(seed).random(n)
        place = 1 + np.argsort(np.argsort(-full))
        made.append(
            Reuse(
                measure,
                NAMES,
                NAMES[:-1],
                full,
                full * 0.9,
                place,
                place[::-1],
                place,
                place,
                np.ones(n),
            )
        )
    return plots.left_out(made)


def sensitivity() -> Figure:
    tau = np.random.default_rng(0).random((2, 20, 5))
    shares = np.arange(1, 21) / 21
    names = ("both.realistic.micro.mrr", "both.realistic.macro.mrr")
    return plots.sensitivity(Sensitivity(names, MEASURES[:2], NAMES, shares, tau, 100, 0))


def alignment() -> Figure:
    sizes = np.array([100, 300, 1000, 3000])
    values = {"mr": np.outer(sizes, [0.1, 0.12]), "hits@1": np.outer(1 / sizes, [1, 0.9])}
    return plots.alignment_sizes({name: SizeExperiment(sizes, values, "both") for name in NAMES})


def study() -> Figure:
    models = [replace(model, steps=model.steps[:3]) for model in MODELS]
    made = family_study(families=1, n_questions=40, models=models, progress=False)
    return plots.sparse_full(made.panels[0])


def overtaking() -> Figure:
    made = family_study(
        families=1, n_questions=40, densities=(0.75, 0.5), models=MODELS[:4], progress=False
    )
    return plots.overtaking(made.panels)


def classified() -> list[ReliabilityCurve]:
    random = np.random.default_rng(2)
    labels = random.random(300) < 0.5
    triples = np.stack([np.arange(300), np.zeros(300, int), np.arange(300)], axis=1)
    part = kgtrec.LabelledTriples(triples, labels, labels + random.normal(size=300))
    return kgtrec.classify(part, part, resampling=Resampling(resamples=100)).curves


def conformal_sets() -> AnswerSets:
    test, valid = world(3, levels=9, n=20)
    return answer_sets(
        test.matrix,
        "conformal:0.2",
        test.asked,
        valid=valid.matrix,
        valid_questions=valid.asked,
        keep=True,
    )


def timed_results() -> dict[str, Result]:
    random = np.random.default_rng(4)
    facts = np.unique(random.integers(0, (20, 2, 20, 9), (300, 4)), axis=0)
    days = [f"2014-07-0{day}" for day in range(1, 10)]
    questions = kgtrec.Graph.from_arrays(test=facts, times=days).questions(context="time")
    scores = [random.random((len(questions), 20)) for _ in NAMES]
    return {n: kgtrec.evaluate(s, questions) for n, s in zip(NAMES, scores, strict=True)}


def suite() -> Suite:
    values = np.random.default_rng(6).random((len(NAMES), 12))
    graphs = tuple(f"a-graph-with-a-rather-long-name-{i}" for i in range(12))
    cells = SuiteCells(Measure.parse("adjusted_mrr"), NAMES, graphs, values, np.ones((5, 12), int))
    return suites([cells], resampling=Resampling(resamples=100))[0]


def shares() -> RelationDistributions:
    """Two sets of 50 classes, with long names."""
    counts = np.array([range(50, 0, -1), range(1, 51)])
    classes = tuple(f"relation {number}" for number in range(50))
    return RelationDistributions(tuple(NAMES[:2]), classes, counts, np.array([0.0, 0.25]))


def many_models() -> dict[str, kgtrec.Ranks]:
    """Ranks of nine models whose long names differ only in the middle."""
    names = (f"experiments-of-2026_transe_margin-{number}.5_batch-1024" for number in range(9))
    return dict(zip(names, cycle(ranks_of_all().values()), strict=False))


FIGURES: dict[str, Callable[[], Figure]] = {
    "rank_distribution": lambda: plots.rank_distribution(ranks_of_all()),
    "rank_distribution, many": lambda: plots.rank_distribution(many_models()),
    "tie_widths, many": lambda: plots.tie_widths(many_models()),
    "tie_widths": lambda: plots.tie_widths(ranks_of_all()),
    "rank_types": lambda: plots.rank_types(results()),
    "relations": lambda: plots.relations(results()),
    "slices": lambda: plots.slices(
        values_by_part(ranks_of_all(), "side", ["mrr"], resampling=Resampling(resamples=100))[0]
    ),
    "over_time": lambda: plots.over_time(timed_results()),
    "over_relations": lambda: plots.over_relations(
        {name: np.arange(9) / 9 for name in NAMES}, "MRR"
    ),
    "reliability_curves": lambda: plots.reliability_curves(classified()),
    "set_coverage": lambda: plots.set_coverage(conformal_sets()),
    "risk_coverage": lambda: plots.risk_coverage(
        {name: conformal_sets().risk_curve() for name in NAMES}
    ),
    "alignment_sizes": alignment,
    "beta_curves": curves,
    "beta_heat_map": lambda: plots.beta_heat_map(
        beta_grid(ranks_of_all()["svd"], metrics=("mrr",))
    ),
    "popularity": lambda: plots.popularity(
        {"entities": entity_frequencies(graph()), "relations": relation_frequencies(graph())}
    ),
    "frequency_histogram": lambda: plots.frequency_histogram(
        {"entities": entity_frequencies(graph()), "relations": relation_frequencies(graph())}
    ),
    "relation_shares": lambda: plots.relation_shares(shares()),
    "exponent_bias": lambda: plots.exponent_bias(simulate_bias(graphs=2)),
    "expected_metric": plots.expected_metric,
    "approximation_quality": plots.approximation_quality,
    "simulations": lambda: plots.simulations(simulate(repeats=9)),
    "simulations, correlated": lambda: plots.simulations(
        [simulate(repeats=9, rho=rho) for rho in (0.0, 0.1)]
    ),
    "comparison": lambda: plots.comparison(
        compare_values((0.3, 0.25), 500, 4.0, [0.2, 0.5], names=NAMES[1:3])
    ),
    "sparse_full": study,
    "overtaking": overtaking,
    "item_differences": lambda: plots.item_differences(differences(20)),
    "item_differences, many": lambda: plots.item_differences(differences(300)),
    "intervals": lambda: plots.intervals(compared()),
    "intervals, one": lambda: plots.intervals(compared()[:1]),
    "pair_matrix": lambda: plots.pair_matrix(compared()[:2]),
    "pair_matrix, one": lambda: plots.pair_matrix(compared()[:1]),
    "p_curves": lambda: plots.p_curves(
        discrimination_of({s.name: np.random.default_rng(3).random(10) for s in SAMPLES}, "t")
    ),
    "left_out": left_out,
    "bump_chart": lambda: rankings(1),
    "bump_chart, two": lambda: rankings(2),
    "label_sets": lambda: label_sets(1),
    "label_sets, two": lambda: label_sets(2),
    "sensitivity": sensitivity,
    "suite_places": lambda: plots.suite_places(suite()),
    "critical_difference": lambda: plots.critical_difference(suite()),
    "suite_cells": lambda: plots.suite_cells(suite()),
    "depth_curves": lambda: plots.depth_curves(
        with_intervals([SAMPLES[:3], SAMPLES[:3]], (0, 1), resampling=Resampling(resamples=100))
    ),
}


def texts_of(figure: Figure, renderer: Any) -> Iterator[tuple[str, Any]]:
    """Every visible text, with its box in pixels."""
    texts = [
        text for legend in figure.legends for text in (*legend.get_texts(), legend.get_title())
    ]
    texts += figure.texts
    for axes in figure.axes:
        texts += [*axes.texts, axes.title, axes._left_title, axes._right_title]
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            texts.append(axis.label)
            for tick in axis.get_major_ticks():
                if low - 1e-9 <= tick.get_loc() <= high + 1e-9:
                    texts += [tick.label1, tick.label2]
    for text in texts:
        if text.get_visible() and text.get_text().strip():
            yield text.get_text(), text.get_window_extent(renderer)


def drawn(figure: Figure) -> Any:
    """Lay a figure out as for a file, without painting it; return what measures its texts."""
    with apply_style():
        canvas = FigureCanvasAgg(figure)
        figure.draw_without_rendering()
    return canvas.get_renderer()


def faults_of(figure: Figure) -> list[str]:
    renderer = drawn(figure)
    boxes = list(texts_of(figure, renderer))
    assert boxes
    whole = figure.bbox.padded(0.5)
    faults = [
        f"{text!r} is clipped: {box.extents.round(1)} of {whole.extents}"
        for text, box in boxes
        if not (
            whole.x0 <= box.x0 and box.x1 <= whole.x1 and whole.y0 <= box.y0 and box.y1 <= whole.y1
        )
    ]
    faults += [
        f"{one!r} meets {other!r}"
        for (one, a), (other, b) in combinations(boxes, 2)
        if a.padded(-1.0).overlaps(b.padded(-1.0))
    ]
    for axes, legend in product(figure.axes, figure.legends):
        assert axes.get_legend() is None
        if legend.get_window_extent(renderer).overlaps(axes.get_window_extent(renderer)):
            faults.append("a legend is on a panel")
    return faults


PAPERS = (Style(size=9, family="serif"), Style(size=7, width=3.0), Style(size=9, width=5.5))


@pytest.mark.parametrize("style", slow_after(1, PAPERS), ids=["serif 9", "narrow 7", "wide 9"])
@pytest.mark.parametrize(
    "name",
    slow_after(
        4,
        [
            "rank_distribution",
            "rank_types",
            "pair_matrix, one",
            "sensitivity",
            "beta_curves",
            "intervals",
            "expected_metric",
            "tie_widths",
            "relations",
        ],
    ),
)
def test_nothing_is_lost_in_the_style_of_a_paper(name: str, style: Style) -> None:
    with using(style):
        assert faults_of(FIGURES[name]()) == []


def test_sizes_and_widths_are_what_was_asked_for() -> None:
    plain = plots.rank_distribution(ranks_of_all())
    with using(Style(size=10, width=4.25)):
        made = plots.rank_distribution(ranks_of_all())
        drawn(made)
    assert made.axes[0].xaxis.label.get_fontsize() == 10
    assert made.axes[0].get_xticklabels()[0].get_fontsize() == 9
    assert made.get_figwidth() / plain.get_figwidth() == pytest.approx(4.25 / COLUMN)
    assert plots.rank_distribution(ranks_of_all()).axes[0].xaxis.label.get_fontsize() == 8


def test_settings_are_read() -> None:
    assert Style.parse("size=9") == Style(size=9)
    assert Style.parse("width=3.25, family=serif") == Style(width=3.25, family="serif")
    assert Style.parse("family=DejaVu Sans") == Style(family="DejaVu Sans")


@pytest.fixture
def file(tmp_path: Path) -> str:
    systems(1)["s0"].save(tmp_path / "s0.parquet")
    return str(tmp_path / "s0.parquet")


def test_the_option_holds_for_one_command(file: str, tmp_path: Path) -> None:
    def draw(name: str, *more: str) -> str:
        out = tmp_path / name
        done = CliRunner().invoke(
            cli, ["plot", "ranks", file, "-o", str(out), *more], catch_exceptions=False
        )
        assert done.exit_code == 0, done.output
        return out.read_text("utf-8")

    plain, large = draw("a.svg"), draw("b.svg", "--style", "size=12")
    assert draw("c.svg") == plain
    assert re.search(r"font(-size)?:[^;\"]*\b12px", large)
    assert not re.search(r"font(-size)?:[^;\"]*\b12px", plain)
    with pytest.raises(KgtrecError, match="is not a setting"):
        draw("d.svg", "--style", "big")
    assert not (tmp_path / "d.svg").exists()


def test_fonts_are_embedded_as_truetype() -> None:
    with apply_style():
        assert (rcParams["pdf.fonttype"], rcParams["ps.fonttype"]) == (42, 42)


@pytest.mark.parametrize("betas", [(0.1,), (0.5, 0.51, 0.52, 0.9, 0.91)])
def test_lines_are_named_at_their_ends_and_names_do_not_meet(betas: tuple[float, ...]) -> None:
    made = plots.approximation_quality(betas)
    assert faults_of(made) == []
    (axes,) = made.axes
    texts = [text.get_text() for text in axes.texts]
    assert sorted(texts) == sorted(f"β = {beta:g}" for beta in betas)
    heights = [text.xy[1] for text in axes.texts]
    assert heights == sorted(heights)


def test_outlines_of_text_need_no_font(tmp_path: Path) -> None:
    with using(Style.parse("text=outlines")):
        plots.save(FIGURES["expected_metric"](), tmp_path / "x.svg")
    plots.save(FIGURES["expected_metric"](), tmp_path / "y.svg")
    assert "<text" not in (tmp_path / "x.svg").read_text("utf-8")
    assert "<text" in (tmp_path / "y.svg").read_text("utf-8")


def test_names_at_the_ends_of_lines_stay_apart_and_inside() -> None:
    from kgtrec.plots.style import figure, label_ends

    for ends in ([1.0] * 5, [0.0] * 5, [0.0, 0.01, 0.5, 0.99, 1.0]):
        made, axes = figure()
        axes.set_ylim(0, 1.05)
        label_ends(axes, [f"line {i}" for i in range(len(ends))], ends)
        assert faults_of(made) == []


# Others have such a figure with more panels or fewer lines, or are drawn in the style of a paper.
SLOW = {
    "overtaking",
    "sparse_full",
    "simulations, correlated",
    "beta_curves",
    "beta_heat_map",
    "suite_cells",
    "intervals, one",
    "pair_matrix",
    "bump_chart",
    "approximation_quality",
    "sensitivity",
    "rank_types",
}


@pytest.mark.parametrize("name", slow_but({*FIGURES} - SLOW, FIGURES))
def test_no_text_is_clipped_or_meets_another(name: str) -> None:
    assert faults_of(FIGURES[name]()) == []


def test_every_figure_is_looked_at() -> None:
    assert {name.partition(",")[0] for name in FIGURES} == set(plots.__all__) - {"save"}


def test_what_looks_can_find_faults() -> None:
    with apply_style():
        figure = Figure(figsize=(2, 1))
        axes = figure.subplots()
        axes.plot([0, 1], [0, 1], label="a line")
        axes.set_xlabel("much wider than the figure is, and wider still")
        axes.text(0.5, 0.5, "first")
        axes.text(0.5, 0.5, "second")
        figure.legend(loc="center")
    faults = " ".join(faults_of(figure))
    for fault in ("is clipped", "'first' meets 'second'", "a legend is on a panel"):
        assert fault in faults


def test_legends_have_an_entry_for_each_of_many_models() -> None:
    (legend,) = FIGURES["rank_distribution, many"]().legends
    shown = [text.get_text() for text in legend.get_texts()]
    assert len({*shown}) == 10
    assert all(any(f"margin-{number}.5" in text for text in shown) for number in range(9))


AWKWARD = ("_first", "x$y", "$x$", "_child3x", "a_b")


def named_figures() -> dict[str, Callable[[], Figure]]:
    found = dict(zip(AWKWARD, results().values(), strict=True))
    ranks = {name: result.ranks for name, result in found.items()}
    grids = {name: beta_curve(one, metrics=("mrr",)) for name, one in ranks.items()}
    parts = values_by_part(ranks, "side", ["mrr"], resampling=Resampling(resamples=100))
    return {
        "rank_distribution": lambda: plots.rank_distribution(ranks),
        "tie_widths": lambda: plots.tie_widths(ranks),
        "rank_types": lambda: plots.rank_types(found),
        "relations": lambda: plots.relations(found),
        "slices": lambda: plots.slices(parts[0]),
        "beta_curves": lambda: plots.beta_curves(grids),
    } | {
        name: FIGURES[name]
        for name in (
            "left_out",
            "label_sets",
            "bump_chart, several",
            "alignment_sizes",
            "suite_places",
            "suite_cells",
            "critical_difference",
        )
        if name in FIGURES
    }


def test_every_model_is_named_as_it_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    """matplotlib leaves out labels that begin with "_", and reads text between $ as a formula."""
    monkeypatch.setitem(globals(), "NAMES", AWKWARD)
    for kind, draw in named_figures().items():
        figure = draw()
        shown = " ".join(text for text, _ in texts_of(figure, drawn(figure)))
        assert r"\\$" not in shown, kind  # escaped twice
        for name in AWKWARD:
            assert name in shown.replace(r"\$", "$"), (kind, name)
