"""Every figure, for long names: no text is clipped or meets another, no legend is on data."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import kgtrec

pytest.importorskip("matplotlib")

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.cbook import STEP_LOOKUP_MAP
from matplotlib.figure import Figure

from kgtrec import plots
from kgtrec.cli import plot as plot_command
from kgtrec.graph.statistics.popularity import entity_frequencies, relation_frequencies
from kgtrec.plots.ranks import CHANCE
from kgtrec.plots.style import styled
from kgtrec.results.result import Result
from kgtrec.study.alignment.alignment import SizeExperiment
from kgtrec.study.comparison.discriminative_power import discrimination_of
from kgtrec.study.comparison.rankings import rankings_of_values
from kgtrec.study.comparison.report import compare
from kgtrec.study.comparison.samples import Samples
from kgtrec.study.comparison.stability import Sensitivity
from kgtrec.study.openworld.compare import compare_values
from kgtrec.study.openworld.experiment import family_study
from kgtrec.study.openworld.simulate import simulate
from kgtrec.study.pooling.depths import with_intervals
from kgtrec.study.pooling.reusability import Reuse
from kgtrec.study.stratified import beta_curve, beta_grid

NAMES = ("svd", "random", "a-model-with-a-rather-long-name-v2", "ComplEx_N3_dim_2000_seed_17",
         "popularity")  # fmt: skip


def graph_and_results() -> tuple[kgtrec.Graph, dict[str, Result]]:
    random = np.random.default_rng(5)
    rows = np.unique(random.integers(0, (40, 5, 40), (700, 3)), axis=0)
    rows = random.permutation(rows)
    graph = kgtrec.Graph.from_arrays(train=rows[150:], test=rows[:150], n_entities=40)
    asked = graph.questions()
    found = {}
    for number, name in enumerate(NAMES):
        scores = random.random((len(asked), 40)) * 3
        for row in range(len(asked)):
            scores[row, asked.answers[row]] += number * 0.4
        found[name] = kgtrec.evaluate(scores.round(number % 3), asked)
    return graph, found


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
    found = [
        rankings_of_values({key: values_of(9 * k + i) for i, key in enumerate(MEASURES[:3])}, NAMES)
        for k in range(several)
    ]
    return plots.bump_chart(found)


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
    made = family_study(families=1, n_questions=40, progress=False)
    return plots.sparse_full(made.panels[0])


FIGURES: dict[str, Callable[[], Figure]] = {
    "rank_distribution": lambda: plots.rank_distribution(RANKS),
    "tie_widths": lambda: plots.tie_widths(RANKS),
    "rank_types": lambda: plots.rank_types(RESULTS),
    "relations": lambda: plots.relations(RESULTS),
    "over_relations": lambda: plots.over_relations(
        {name: np.random.default_rng(1).random(9) for name in NAMES}, "MRR"
    ),
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
    "intervals": lambda: plots.intervals([compare(s, "t", draws=200) for s in SAMPLES[:3]]),
    "intervals, one": lambda: plots.intervals([compare(SAMPLES[0], "t", draws=200)]),
    "pair_matrix": lambda: plots.pair_matrix([compare(s, "t", draws=200) for s in SAMPLES[:2]]),
    "pair_matrix, one": lambda: plots.pair_matrix([compare(SAMPLES[0], "t", draws=200)]),
    "p_curves": lambda: plots.p_curves(
        discrimination_of({s.name: np.random.default_rng(3).random(10) for s in SAMPLES}, "t")
    ),
    "left_out": left_out,
    "bump_chart": lambda: rankings(1),
    "bump_chart, two": lambda: rankings(2),
    "sensitivity": sensitivity,
    "depth_curves": lambda: plots.depth_curves(
        with_intervals([SAMPLES[:3], SAMPLES[:3]], (0, 1), draws=100)
    ),
}


def texts_of(figure: Figure, renderer: Any) -> Iterator[tuple[str, Any]]:
    """Every text that is seen, with its box in pixels."""
    found = [
        text for legend in figure.legends for text in (*legend.get_texts(), legend.get_title())
    ]
    found += figure.texts
    for axes in figure.axes:
        found += [*axes.texts, axes.title, axes._left_title, axes._right_title]
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            found.append(axis.label)
            for tick in axis.get_major_ticks():
                if low - 1e-9 <= tick.get_loc() <= high + 1e-9:
                    found += [tick.label1, tick.label2]
    for text in found:
        if text.get_visible() and text.get_text().strip():
            yield text.get_text(), text.get_window_extent(renderer)


def drawn(figure: Figure) -> Any:
    with styled():
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
    return canvas.get_renderer()


def faults_of(figure: Figure) -> list[str]:
    renderer = drawn(figure)
    found = list(texts_of(figure, renderer))
    assert found
    whole = figure.bbox.padded(0.5)
    faults = [
        f"{text!r} is clipped: {box.extents.round(1)} of {whole.extents}"
        for text, box in found
        if not (whole.x0 <= box.x0 and box.x1 <= whole.x1 and whole.y0 <= box.y0
                and box.y1 <= whole.y1)
    ]  # fmt: skip
    faults += [
        f"{one!r} meets {other!r}"
        for (one, a), (other, b) in combinations(found, 2)
        if a.padded(-1.0).overlaps(b.padded(-1.0))
    ]
    for axes in figure.axes:
        assert axes.get_legend() is None
        faults += [
            "a legend is on a panel" for legend in figure.legends
            if legend.get_window_extent(renderer).overlaps(axes.get_window_extent(renderer))
        ]  # fmt: skip
    return faults


@pytest.mark.parametrize("name", FIGURES)
def test_no_text_is_clipped_or_meets_another(name: str) -> None:
    assert faults_of(FIGURES[name]()) == []


def test_every_figure_is_looked_at() -> None:
    assert {name.partition(",")[0] for name in FIGURES} == set(plots.__all__) - {"save"}


def test_what_looks_can_find_faults() -> None:
    with styled():
        figure = Figure(figsize=(2, 1))
        axes = figure.subplots()
        axes.plot([0, 1], [0, 1], label="a line")
        axes.set_xlabel("much wider than the figure is, and wider still")
        axes.text(0.5, 0.5, "first")
        axes.text(0.5, 0.5, "second")
        figure.legend(loc="center")
    faults = " ".join(faults_of(figure))
    for told in ("is clipped", "'first' meets 'second'", "a legend is on a panel"):
        assert told in faults


def test_ties_are_drawn_in_steps() -> None:
    figure = plots.tie_widths(RANKS)
    lines = {line.get_label(): line for line in figure.axes[0].lines}
    checked = 0
    for name, ranks in RANKS.items():
        if name not in lines:
            continue
        line = lines[name]
        x, y = STEP_LOOKUP_MAP[line.get_drawstyle()](*line.get_data())
        for width in range(1, int(ranks.equal.max()) + 1):
            # As it is read off: a little left of w, where the curve has not fallen yet.
            read = np.interp(width - 1e-6, x, y)
            assert read == pytest.approx(np.mean(ranks.equal >= width), abs=1e-5)
            checked += 1
    assert checked > 10


def test_a_system_named_random_is_not_the_chance_line() -> None:
    figure = plots.rank_distribution(RANKS)
    lines = {line.get_label(): line for line in figure.axes[0].lines}
    assert {CHANCE, "random"} <= set(lines)
    chance, system = (lines[name] for name in (CHANCE, "random"))
    assert chance.get_color() != system.get_color()
    assert chance.get_zorder() > system.get_zorder()  # where both are the same, it shows
    told = [text.get_text() for text in figure.legends[0].get_texts()]
    assert told == [CHANCE, *NAMES[:2], told[3], *NAMES[3:]]


def test_markers_of_equal_rank_types_stand_apart() -> None:
    figure = plots.rank_types({"svd": RESULTS["svd"]})
    at = [tuple(line.get_xydata()[0]) for line in figure.axes[0].lines]
    assert len({y for _, y in at}) == len(at) == 5


def test_systems_have_the_names_that_were_given(tmp_path: Path) -> None:
    files = []
    for name in ("svd", "random"):
        files.append(str(tmp_path / f"{name}.ranks.parquet"))
        RANKS[name].save(files[-1])
    assert plot_command._legend(tuple(files), ()) == ("svd", "random")
    out = tmp_path / "x.svg"
    done = CliRunner().invoke(plot_command.command, ["ties", *files, "-o", str(out)])
    assert done.exit_code == 0, done.output
    assert ">svd" in out.read_text()
    assert "svd.ranks" not in out.read_text()
