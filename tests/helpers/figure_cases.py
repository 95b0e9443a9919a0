"""Every figure with long names, and a check of the places of its texts and legends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest

import kgtrec

pytest.importorskip("matplotlib")

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from kgtrec import plots
from kgtrec._internal.bootstrap import Resampling
from kgtrec.graph.statistics.popularity import entity_frequencies, relation_frequencies
from kgtrec.measures import Measure
from kgtrec.plots.style import styled
from kgtrec.results.result import Result
from kgtrec.study.alignment import SizeExperiment
from kgtrec.study.classification.classify import ReliabilityCurve
from kgtrec.study.comparison.parts import values_by_part
from kgtrec.study.comparison.rankings import rankings_of_values
from kgtrec.study.comparison.report import compare
from kgtrec.study.comparison.samples import Samples
from kgtrec.study.comparison.significance import discrimination_of
from kgtrec.study.comparison.stability import Sensitivity
from kgtrec.study.openworld.compare import compare_values
from kgtrec.study.openworld.experiment import MODELS, family_study
from kgtrec.study.openworld.simulate import simulate
from kgtrec.study.pooling.depths import Reuse, with_intervals
from kgtrec.study.stratified import beta_curve, beta_grid
from kgtrec.study.suite.cells import SuiteCells
from kgtrec.study.suite.suite import Suite, suites

NAMES = ("svd", "random", "a-model-with-a-rather-long-name-v2", "ComplEx_N3_dim_2000_seed_17",
         "popularity")  # fmt: skip


def graph_and_results() -> tuple[kgtrec.Graph, dict[str, Result]]:
    random = np.random.default_rng(5)
    rows = np.unique(random.integers(0, (40, 5, 40), (700, 3)), axis=0)
    rows = random.permutation(rows)
    graph = kgtrec.Graph.from_arrays(train=rows[150:], test=rows[:150], n_entities=40)
    questions = graph.questions()
    results = {}
    for number, name in enumerate(NAMES):
        scores = random.random((len(questions), 40)) * 3
        for row in range(len(questions)):
            scores[row, questions.answers[row]] += number * 0.4
        results[name] = kgtrec.evaluate(scores.round(number % 3), questions)
    return graph, results


GRAPH, RESULTS = graph_and_results()
RANKS = {name: result.ranks for name, result in RESULTS.items()}


def samples(name: str, seed: int) -> Samples:
    random = np.random.default_rng(seed)
    values = np.linspace(0, 0.3, len(NAMES)) + random.normal(0, 0.4, (200, len(NAMES)))
    return Samples(name, name, NAMES, values, np.arange(200), "questions")


MEASURES = ("micro MRR", "macro Hits@10", "map_cut_20", "ndcg_cut_20")
SAMPLES = [samples(name, seed) for seed, name in enumerate(MEASURES)]


def curves() -> Figure:
    grids = {n: beta_curve(r, metrics=("mrr", "mr", "hits@1")) for n, r in RANKS.items()}
    return plots.beta_curves(grids)


def values_of(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).random(len(NAMES))


def rankings(several: int) -> Figure:
    orders = [
        rankings_of_values({key: values_of(9 * k + i) for i, key in enumerate(MEASURES[:3])}, NAMES)
        for k in range(several)
    ]
    return plots.bump_chart(orders)


def left_out() -> Figure:
    n, made = len(NAMES), []
    for seed, measure in enumerate(MEASURES[2:]):
        full = np.random.default_rng(seed).random(n)
        place = 1 + np.argsort(np.argsort(-full))
        made.append(Reuse(measure, NAMES, NAMES[:-1], full, full * 0.9, place, place[::-1],
                          place, place, np.ones(n)))  # fmt: skip
    return plots.left_out(made)


def sensitivity() -> Figure:
    tau = np.random.default_rng(0).random((2, 20, 5))
    shares = np.arange(1, 21) / 21
    names = ("both.realistic.micro.mrr", "both.realistic.macro.mrr")
    return plots.sensitivity(Sensitivity(names, MEASURES[:2], NAMES, shares, tau, 100, 0))


def alignment() -> Figure:
    sizes = np.array([100, 300, 1000, 3000])
    values = {
        "mr": np.outer(sizes, [0.1, 0.12]),
        "hits@1": np.outer([0.6, 0.5, 0.4, 0.3], [1, 0.9]),
    }
    return plots.alignment_sizes({name: SizeExperiment(sizes, values, "both") for name in NAMES})


def study() -> Figure:
    models = [replace(model, steps=model.steps[:3]) for model in MODELS]
    made = family_study(families=1, n_questions=40, models=models, progress=False)
    return plots.sparse_full(made.panels[0])


def classified() -> list[ReliabilityCurve]:
    random = np.random.default_rng(2)
    labels = random.random(300) < 0.5
    triples = np.stack([np.arange(300), np.zeros(300, int), np.arange(300)], axis=1)
    part = kgtrec.LabelledTriples(triples, labels, labels + random.normal(size=300))
    return kgtrec.classify(part, part, resampling=Resampling(resamples=100)).curves


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


FIGURES: dict[str, Callable[[], Figure]] = {
    "rank_distribution": lambda: plots.rank_distribution(RANKS),
    "tie_widths": lambda: plots.tie_widths(RANKS),
    "rank_types": lambda: plots.rank_types(RESULTS),
    "relations": lambda: plots.relations(RESULTS),
    "slices": lambda: plots.slices(
        values_by_part(RANKS, "side", ["mrr"], resampling=Resampling(resamples=100))[0]
    ),
    "over_time": lambda: plots.over_time(timed_results()),
    "over_relations": lambda: plots.over_relations(
        {name: np.random.default_rng(1).random(9) for name in NAMES}, "MRR"
    ),
    "reliability_curves": lambda: plots.reliability_curves(classified()),
    "alignment_sizes": alignment,
    "beta_curves": curves,
    "beta_heat_map": lambda: plots.beta_heat_map(beta_grid(RANKS["svd"], metrics=("mrr",))),
    "popularity": lambda: plots.popularity(
        {"entities": entity_frequencies(GRAPH), "relations": relation_frequencies(GRAPH)}
    ),
    "expected_metric": lambda: plots.expected_metric(),
    "approximation_quality": lambda: plots.approximation_quality(),
    "simulated": lambda: plots.simulated(simulate(repeats=9)),
    "simulated, correlated": lambda: plots.simulated(
        [simulate(repeats=9, rho=rho) for rho in (0.0, 0.1)]
    ),
    "comparison": lambda: plots.comparison(
        compare_values((0.3, 0.25), 500, 4.0, [0.2, 0.5], names=NAMES[1:3])
    ),
    "sparse_full": study,
    "intervals": lambda: plots.intervals(
        [compare(s, "t", resampling=Resampling(resamples=200)) for s in SAMPLES[:3]]
    ),
    "intervals, one": lambda: plots.intervals(
        [compare(SAMPLES[0], "t", resampling=Resampling(resamples=200))]
    ),
    "pair_matrix": lambda: plots.pair_matrix(
        [compare(s, "t", resampling=Resampling(resamples=200)) for s in SAMPLES[:2]]
    ),
    "pair_matrix, one": lambda: plots.pair_matrix(
        [compare(SAMPLES[0], "t", resampling=Resampling(resamples=200))]
    ),
    "p_curves": lambda: plots.p_curves(
        discrimination_of({s.name: np.random.default_rng(3).random(10) for s in SAMPLES}, "t")
    ),
    "left_out": left_out,
    "bump_chart": lambda: rankings(1),
    "bump_chart, two": lambda: rankings(2),
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
    with styled():
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
        if not (whole.x0 <= box.x0 and box.x1 <= whole.x1 and whole.y0 <= box.y0
                and box.y1 <= whole.y1)
    ]  # fmt: skip
    faults += [
        f"{one!r} meets {other!r}"
        for (one, a), (other, b) in combinations(boxes, 2)
        if a.padded(-1.0).overlaps(b.padded(-1.0))
    ]
    for axes in figure.axes:
        assert axes.get_legend() is None
        faults += [
            "a legend is on a panel" for legend in figure.legends
            if legend.get_window_extent(renderer).overlaps(axes.get_window_extent(renderer))
        ]  # fmt: skip
    return faults
