"""Figures show the data they are given, and the files they become are sound."""

from __future__ import annotations

import json
import math
import re
from functools import cache
from importlib import resources
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from figure_cases import SAMPLES, graph, results, samples
from matplotlib.cbook import STEP_LOOKUP_MAP
from matplotlib.colors import to_hex, to_rgb
from refusals import each_row
from slow import slow_after

from kgtrec._internal.bootstrap import Resampling
from kgtrec.cli.plot import KINDS, command
from kgtrec.errors import UsageError
from kgtrec.graph.statistics.popularity import entity_frequencies
from kgtrec.plots import compare as drawing
from kgtrec.plots import ranks as figures
from kgtrec.plots import style
from kgtrec.plots.studies import beta_curves, beta_heat_map, popularity
from kgtrec.plots.style import COLOURS, DASHES, save, series_style
from kgtrec.ranking.ranks import Ranks
from kgtrec.results.result import Result
from kgtrec.study.alignment import SizeExperiment
from kgtrec.study.comparison.parts import values_by_part
from kgtrec.study.comparison.rankings import Sensitivity, depth_curves, rankings_of_values
from kgtrec.study.comparison.report import SystemComparison, compare
from kgtrec.study.comparison.samples import resample, samples_of_ranks
from kgtrec.study.comparison.significance import discrimination_of
from kgtrec.study.pooling.depths import Reuse, with_intervals
from kgtrec.study.stratified import beta_curve, beta_grid

HOW = Resampling(resamples=100)
NAMES = ("svd", "random", "popularity")  # figures shorten the others


@cache
def some() -> dict[str, Result]:
    return {name: results()[name] for name in NAMES}


@cache
def ranks() -> dict[str, Ranks]:
    return {name: result.ranks for name, result in some().items()}


@cache
def compared() -> list[SystemComparison]:
    return [compare(samples(f"m{k}", k, tuple("abcd")), test="t", resampling=HOW) for k in range(2)]


def drawn_lines(figure: Any, panel: int = 0) -> dict[str, Any]:
    return {line.get_label(): line for line in figure.axes[panel].lines}


def lines_of(figure: Any, panel: int = 0) -> dict[str, np.ndarray]:
    return {name: line.get_xydata() for name, line in drawn_lines(figure, panel).items()}


def texts(axes: Any) -> list[str]:
    return [text.get_text() for text in axes.texts]


def legend_of(figure: Any) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]


def read_by_rows(figure: Any) -> list[str]:
    """The texts of the legend from left to right, line by line, as people read them."""
    figure.draw_without_rendering()
    (legend,) = figure.legends
    boxes = [(text.get_window_extent(), text.get_text()) for text in legend.get_texts()]
    lines: list[list[tuple[float, str]]] = []
    top = math.inf
    for box, text in sorted(boxes, key=lambda each: -each[0].y0):
        if box.y1 < top:
            lines.append([])
            top = box.y0
        lines[-1].append((box.x0, text))
    return [text for line in lines for _, text in sorted(line)]


@pytest.mark.parametrize("count", range(1, 10))
def test_legends_are_read_by_rows_and_further_entries_are_last(count: int) -> None:
    names = [f"model {number}" for number in range(count)]
    figure, axes = style.figure()
    style.draw_lines(axes, [(name, [0, 1], [0, 1]) for name in names])
    style.legend_above(figure, [style.range_patch("range")])
    assert read_by_rows(figure) == [*names, "range"]
    (panel,) = figure.axes
    assert panel.get_window_extent().height > 1.0 * figure.dpi


def test_long_names_of_models_keep_what_differs() -> None:
    several = some()
    names = [f"experiments-of-2026_margin-{number}.5_batch-1024" for number in range(len(several))]
    results = dict(zip(names, several.values(), strict=True))
    shown = figures.rank_types(results).axes[0].get_yticklabels()
    for number, label in enumerate(shown):
        assert f"margin-{number}.5" in label.get_text()
        assert len(label.get_text().removesuffix(figures.NO_TIES)) <= 28


def test_rank_distribution_is_hits_at_every_k_above_a_random_scorer() -> None:
    figure = figures.rank_distribution(ranks())
    drawn = lines_of(figure)
    for name, result in some().items():
        rank, share = drawn[name].T
        for k in (1, 3, 10):
            assert share[rank <= k].max(initial=0) == pytest.approx(result[f"hits@{k}"])
    candidates = some()["svd"].ranks.candidates
    for k, expected in drawn[figures.CHANCE]:
        assert expected == pytest.approx(np.mean(np.minimum(k / candidates, 1)))
    # A system may be called "random", too.
    lines = drawn_lines(figure)
    assert lines[figures.CHANCE].get_color() != lines["random"].get_color()
    assert lines[figures.CHANCE].get_zorder() > lines["random"].get_zorder()
    assert read_by_rows(figure) == [*NAMES, figures.CHANCE]


def test_tie_widths_are_drawn_in_steps_and_models_without_ties_are_named() -> None:
    lines = drawn_lines(figures.tie_widths(ranks()))
    assert "svd (no ties)" in lines
    assert legend_of(figures.tie_widths({"svd": ranks()["svd"]})) == ["svd (no ties)"]
    for name in NAMES[1:]:
        equal = ranks()[name].equal
        x, y = STEP_LOOKUP_MAP[lines[name].get_drawstyle()](*lines[name].get_data())
        for width in range(1, int(equal.max()) + 1):
            # As a reader reads it: a little left of w, before the curve falls.
            assert np.interp(width - 1e-6, x, y) == pytest.approx(np.mean(equal >= width), abs=1e-5)


def test_rank_types_stand_where_the_result_says_and_apart_from_each_other() -> None:
    drawn = figures.rank_types(some(), "hits@3")
    for kind in figures.RANK_TYPES:
        expected = [result[f"both.{kind}.micro.hits@3"] for result in some().values()]
        assert lines_of(drawn)[kind][:, 0].tolist() == pytest.approx(expected)
    names = [label.get_text() for label in drawn.axes[0].get_yticklabels()]
    assert names == ["svd (no ties)", *NAMES[1:]]
    alone = figures.rank_types({"svd": some()["svd"]}).axes[0].lines
    assert len({line.get_ydata()[0] for line in alone}) == len(alone) == 5


def test_boxes_hold_the_median_and_whiskers_the_middle_of_the_relations() -> None:
    (axes,) = figures.over_relations({"a": np.linspace(0, 1, 101)}, "MRR").axes
    ends = [line.get_xdata() for line in axes.lines if len(line.get_xdata()) == 2]
    assert (min(map(min, ends)), max(map(max, ends))) == pytest.approx((0.05, 0.95))
    (axes,) = figures.relations(some(), "mrr").axes
    medians = [line.get_xdata()[0] for line in axes.lines if len(line.get_xdata()) == 2]
    for result in some().values():
        values = [row[-1] for row in result.slice("relation", ["both.realistic.micro.mrr"]).rows]
        assert any(median == pytest.approx(np.median(values)) for median in medians)


@pytest.mark.parametrize("by", ["side", "relation", "category,side", "quartile"])
def test_slices_show_values_and_intervals_of_every_part(by: str) -> None:
    (values,) = values_by_part(ranks(), by, ["mrr"], graph=graph(), resampling=HOW)
    (axes,) = figures.slices(values).axes
    for result, container in zip(some().values(), axes.containers, strict=True):
        line, _, (bars,) = container
        rows = result.slice(by, ["both.realistic.micro.mrr"], graph=graph()).rows
        assert line.get_xdata() == pytest.approx([row[-1] for row in rows])
        for value, part in zip(line.get_xdata(), bars.get_segments(), strict=True):
            assert part[0, 0] < value < part[1, 0]
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert names[0].endswith(f"({rows[0][-2]:,})")
    assert axes.get_xlabel() == "MRR with 95% intervals"


def test_intervals_of_all_instances_are_those_of_the_comparison(monkeypatch: Any) -> None:
    keys = ["mrr", "gmr", "amri"]
    mrr, gmr, amri = values_by_part(ranks(), "side", keys, graph=graph(), resampling=HOW)
    for one in (mrr, gmr):
        (due,) = samples_of_ranks(ranks(), [one.measure])
        assert one.intervals[("both",)] == pytest.approx(resample(due, HOW).interval())
    assert amri.intervals == {}
    assert figures.slices(amri).axes[0].get_xlabel() == "AMRI"
    alone = values_by_part({"svd": ranks()["svd"]}, "side", ["mrr"], resampling=HOW)[0]
    assert alone.intervals[("head",)][:, 0] == pytest.approx(mrr.intervals[("head",)][:, 0])
    monkeypatch.setattr(figures, "PARTS", 2)
    with pytest.raises(UsageError, match=r"3 slices by side are too many; .* shows at most 2"):
        figures.slices(mrr)


def test_a_model_has_one_colour_in_all_figures() -> None:
    (values,) = values_by_part(ranks(), "side", ["mrr"], resampling=HOW)
    parts = figures.slices(values).axes[0].containers
    both = [compare(one, test="t") for one in samples_of_ranks(ranks(), ["mrr", "mr"])]
    dots = drawing.intervals(both).axes[0].containers
    order = [NAMES[i] for i in both[0].order]
    lines = drawn_lines(figures.rank_distribution(ranks()))
    for number, name in enumerate(NAMES):
        drawn = lines[name], parts[number][0], dots[order.index(name)][0]
        assert {one.get_color() for one in drawn} == {series_style(number)["color"]}


def test_the_page_has_the_dashes_of_figures() -> None:
    """Dashes in multiples of the line's width, as matplotlib draws them."""
    script = resources.files("kgtrec.study.reporting") / "assets" / "charts.js"
    (text,) = re.findall(r"const DASHES = (\[.*?\]);", script.read_text("utf-8"))
    page = [[float(number) for number in dash.split()] for dash in json.loads(text)]
    named = {"-": [], "--": [3.7, 1.6], "-.": [6.4, 1.6, 1, 1.6], ":": [1, 1.65]}
    for dash, mine in zip(page, DASHES, strict=True):
        due = named[mine] if isinstance(mine, str) else mine[1]
        assert dash == pytest.approx([2 * length for length in due])


def test_beta_figures_draw_the_grid_and_no_other() -> None:
    metrics = ("mrr", "mr", "hits@1")
    grids = {name: beta_curve(one, metrics=metrics) for name, one in ranks().items()}
    figure = beta_curves(grids)
    for panel, metric in enumerate(metrics):
        for name, grid in grids.items():
            assert lines_of(figure, panel)[name][:, 1].tolist() == grid[metric].ravel().tolist()
    both = [
        {name: beta_curve(one, vary, metrics=metrics[1:]) for name, one in ranks().items()}
        for vary in ("beta_e", "beta_r")
    ]
    figure = beta_curves(*both)
    assert [axes.get_xlabel()[:3] for axes in figure.axes] == ["β$_"] * 4
    for panel, (row, metric) in enumerate((row, m) for row in both for m in metrics[1:]):
        assert ("relations" in figure.axes[panel].get_xlabel()) == (panel >= 2)
        for name, grid in row.items():
            assert lines_of(figure, panel)[name][:, 1].tolist() == grid[metric].ravel().tolist()
    for alpha, due in ((None, [1 / 3, 1 / 2, 2 / 3]), (0.25, [0.2])):
        panel = beta_curves(grids, alpha=alpha).axes[0]
        marks = [line.get_xdata()[0] for line in panel.get_lines() if line.get_linestyle() == ":"]
        assert marks == pytest.approx(due)
    grid = beta_grid(ranks()["svd"], metrics="mrr")
    mesh = next(c for c in beta_heat_map(grid).axes[0].collections if c.get_array() is not None)
    assert np.array_equal(np.asarray(mesh.get_array()).ravel(), grid["mrr"].ravel())


def test_popularity_rises_to_all_triples() -> None:
    share = lines_of(popularity({"entities": entity_frequencies(graph())}))["entities"][:, 1]
    assert (np.diff(share) >= 0).all()
    assert share[-1] == 100


def test_alignment_sizes_of_several_models_share_the_panels() -> None:
    values = {"mr": np.array([[1.0, 3.0], [6.0, 8.0]]), "amr": np.array([[0.4, 0.6], [0.5, 0.5]])}
    weak = SizeExperiment(np.array([10, 100]), values, "both")
    strong = SizeExperiment(np.array([10, 100]), {k: v / 2 for k, v in values.items()}, "both")
    figure = figures.alignment_sizes({"200 pairs": weak, "1000 pairs": strong})
    drawn = [[line.get_ydata().tolist() for line in panel.lines] for panel in figure.axes]
    assert drawn == [[[2, 7], [1, 3.5]], [[0.5, 0.5], [0.25, 0.25]]]
    assert legend_of(figure) == ["200 pairs", "1000 pairs", "all repeats (line: mean)"]
    alone = lines_of(figures.alignment_sizes(weak))
    assert [line.tolist() for line in alone.values()] == [[[10, 2], [100, 7]]]


@pytest.mark.parametrize(
    ("ending", "magic"),
    slow_after(2, [("svg", b"<?xml"), ("png", b"\x89PNG"), ("pdf", b"%PDF"), ("eps", b"%!PS")]),
)
def test_saved_files_are_of_their_kind_and_the_same_again(tmp_path, ending, magic):
    paths = [tmp_path / f"{name}.{ending}" for name in ("one", "two")]
    for path in paths:
        save(figures.rank_distribution({"svd": ranks()["svd"]}), path)
    one, two = (path.read_bytes() for path in paths)
    assert one.startswith(magic)
    assert one == two or ending == "eps"  # which names the time


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    paths = [str(tmp_path_factory.mktemp(name) / f"{name}.ranks.parquet") for name in NAMES[:2]]
    for path, own in zip(paths, ranks().values(), strict=False):
        own.save(path)
    return paths


@each_row("kind", [kind for kind in KINDS if kind not in ("times", "queries")])  # of other files
def test_every_kind_from_the_command_line(kind, files, tmp_path, monkeypatch):
    paths = files[:1] if kind == "beta-grid" else files
    by = ["--by", "side"] if kind == "slices" else []
    by = ["--side", "tail"] if kind == "ranks" else by
    saved = []
    monkeypatch.setattr("kgtrec.plots.style.save", lambda *args: saved.append(args))
    done = CliRunner().invoke(command, [kind, *paths, *by, "-o", str(tmp_path / "out.svg")])
    assert done.exit_code == 0, done.output
    ((figure, path),) = saved
    assert Path(path) == tmp_path / "out.svg"
    names = []
    if kind not in ("beta-grid", "relations"):
        names = [*legend_of(figure), *(t.get_text() for t in figure.axes[0].get_yticklabels())]
        assert {"svd", "svd (no ties)"} & {*names}  # not svd.ranks
    if kind == "ranks":
        own = ranks()["svd"]
        due = figures.rank_distribution({"svd": own.subset(own.side == 1)})
        assert lines_of(figure)["svd"].tolist() == lines_of(due)["svd"].tolist()


def test_series_stay_apart_for_many_systems_and_in_grey_print() -> None:
    looks = [series_style(k, marked=True) for k in range(30)]
    kinds = [(one["color"], str(one["linestyle"])) for one in looks]
    marks = [(one["color"], one["marker"]) for one in looks]
    assert len(set(kinds)) == len(set(marks)) == 30
    assert len(set(COLOURS)) == 7
    for lighter, darker in pairwise(luminance(shade) for shade in drawing.SHADES):
        assert (lighter + 0.05) / (darker + 0.05) > 1.5


def luminance(colour: str) -> float:
    parts = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour)]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


def test_pair_matrix_shades_what_is_told_apart() -> None:
    figure = drawing.pair_matrix(compared())
    for axes, one in zip(figure.axes, compared(), strict=False):
        better = one.tests.better()
        shaded = {
            (round(box.get_x() + 0.5), round(box.get_y() + 0.5)): to_hex(box.get_facecolor())
            for box in axes.patches
        }
        place = {system: row for row, system in enumerate(one.order)}
        assert len(shaded) == 6
        for (i, j), p in zip(one.tests.pairs.tolist(), one.tests.corrected.tolist(), strict=True):
            top, bottom = sorted((place[i], place[j]))
            step = sum(p < bound for bound in (0.05, 0.01, 0.001))
            assert shaded[bottom, top] == drawing.SHADES[step]
            assert (step > 0) == (better[i, j] or better[j, i])
        sizes = sorted(f"{abs(d):.2f}".removeprefix("0") for d in one.effects.d_z)
        assert sorted(t for t in texts(axes) if t.startswith(".")) == sizes
        rows = [label.get_text().split()[0] for label in axes.get_yticklabels()]
        assert rows == [one.samples.systems[i] for i in one.order]
    due = ["not significant", "p < 0.05 *", "p < 0.01 **", "p < 0.001 ***"]
    assert legend_of(figure) == due


def test_intervals_show_values_with_both_ends() -> None:
    for axes, one in zip(drawing.intervals(compared()).axes, compared(), strict=False):
        low, high = one.intervals()
        for row, i in enumerate(compared()[0].order):
            holder = axes.containers[row]
            ((x0, x1),) = [segment[:, 0] for segment in holder[2][0].get_segments()]
            assert (x0, x1) == pytest.approx((low[i], high[i]))
            assert holder[0].get_xdata()[0] == pytest.approx(one.resampled.estimate[i])
            worse = bool(one.tests.better()[one.order[0], i])
            assert (holder[0].get_fillstyle() == "none") == worse


def test_matrices_of_thirteen_systems_fit_a_page_and_many_measures_take_more_rows() -> None:
    many = [
        compare(samples("m", k, tuple("abcdefghijklm"), 0.8), test="t", resampling=HOW)
        for k in range(2)
    ]
    assert drawing.pair_matrix(many).get_size_inches()[0] <= 7
    many = [compare(samples(f"m{k}", k), test="t", resampling=HOW) for k in range(5)]
    for figure in (drawing.intervals(many), drawing.pair_matrix(many)):
        assert [axes for axes in figure.axes if axes.get_visible()][5:] == []
        assert figure.axes[4].get_title(loc="left").startswith("(e)")


VALUES = {"sparse": [0.4, 0.3, 0.3, 0.1], "full": [0.2, 0.5, 0.4, 0.3]}


def test_bump_chart_lines_lead_from_place_to_place(tmp_path: Path) -> None:
    names = ["$a$", "$\\b$", "c$", "d"]  # dollars are no formula
    rankings = rankings_of_values(VALUES, names, "MRR", resampling=HOW)
    figure = drawing.bump_chart(rankings)
    (axes,) = figure.axes
    lines = {name: line[:, 1].tolist() for name, line in lines_of(figure).items()}
    assert [lines[name] for name in names] == [[0, 3], [1, 0], [2, 1], [3, 2]]
    held = [line for line in axes.lines if line.get_color() == "#bbbbbb"]
    assert [line.get_ydata().tolist() for line in held] == [[1, 2]]  # b and c tie
    (one,) = rankings.over_systems
    low, high = one.tau_interval
    shown = f"τ = {one.tau:.2f}\n[{low:.2f}, {high:.2f}]".replace("-", "\N{MINUS SIGN}")
    assert shown in texts(axes)
    assert axes.get_xlabel() == "MRR: 95% intervals over systems; grey: equal values"
    assert [label.get_text() for label in axes.get_xticklabels()] == ["sparse", "full"]
    save(figure, tmp_path / "x.svg")
    assert ">$a$ " in (tmp_path / "x.svg").read_text("utf-8")
    assert len(drawing.bump_chart([rankings] * 3).axes) == 3
    wide = rankings_of_values(
        {f"r{k}": v for k, v in enumerate([*VALUES.values()] * 2)}, names, resampling=HOW
    )
    assert sum("τ" in text for text in texts(drawing.bump_chart(wide).axes[0])) == 3


def test_values_by_sets_of_labels_are_lines_in_the_order_of_the_first() -> None:
    values = {
        "all": [2.0, 1.0, 4.0, 3.0],
        "sparse": [5.0, 6.0, 7.0, 8.0],
        "$c$": [1.0, 2.0, 3.0, 4.5],
    }
    better = rankings_of_values(values, "abcd", "MRR", resampling=HOW)
    worse = rankings_of_values(values, "abcd", "MR", lower_is_better=list(values), resampling=HOW)
    figure = drawing.label_sets([better, worse])
    high, low = figure.axes
    for axes, order in ((high, "cdab"), (low, "badc")):
        assert [label.get_text() for label in axes.get_xticklabels()] == list(order)
        for line, of_set in zip(axes.lines, values.values(), strict=True):
            assert line.get_ydata().tolist() == [of_set["abcd".index(name)] for name in order]
    assert (high.get_ylabel(), low.get_ylabel()) == ("MRR", "MR (lower is better)")
    first, second, *_ = better.over_systems  # all with sparse, all with $c$
    letter, *taus = high.get_title(loc="left").replace("(a) ", "(a)\n").split("\n")
    assert letter == "(a)"
    for text, name, agreement in zip(taus, ("sparse", r"\$c\$"), (first, second), strict=True):
        ends = ", ".join(f"{end:.2f}" for end in agreement.tau_interval)
        due = f"{name}: τ = {agreement.tau:.2f} [{ends}]"
        assert text == due.replace("-", "\N{MINUS SIGN}")
    assert min(first.tau, *first.tau_interval) < 0  # a sign is drawn
    (legend,) = figure.legends
    assert legend.get_title().get_text() == "τ to all, with 95% intervals over systems"
    assert [text.get_text() for text in legend.get_texts()] == ["all", "sparse", r"\$c\$"]


def test_left_out_shows_both_values_and_places() -> None:
    ints = [np.array(row) for row in ([1, 2, 3, 4], [2, 1, 3, 4], [5, 0, 2, 0], [2, 0, 1, 0])]
    full, without = np.array([0.5, 0.4, 0.3, 0.2]), np.array([0.35, 0.4, 0.28, 0.2])
    reuse = Reuse("map", tuple("abcd"), tuple("abc"), full, without, *ints, np.ones(4))
    figure = drawing.left_out([reuse, reuse])
    lines = lines_of(figure, 1)
    assert lines["all judgements"][:, 0].tolist() == full.tolist()
    assert lines["without its own"][:, 0].tolist() == without.tolist()
    assert texts(figure.axes[1]) == ["1 → 2", "2 → 1", "3 → 3", "not in the pool"]


def test_sensitivity_has_bands_where_these_can_be_told_apart() -> None:
    for n in (2, 5):
        names = tuple(f"m{k}" for k in range(n))
        tau = np.random.default_rng(0).random((n, 3, 20))
        figure = drawing.sensitivity(
            Sensitivity(names, names, NAMES, np.array([0.1, 0.5, 0.9]), tau, 100, 0)
        )
        drawn = lines_of(figure)
        for name, mean in zip(names, tau.mean(axis=2), strict=True):
            assert drawn[name][:, 1] == pytest.approx(mean)
        assert len(figure.axes[0].collections) == (n if n <= drawing.BANDS else 0)


@pytest.mark.parametrize(
    ("unit", "label"),
    [("triples", "test triples kept (%)"), ("judgements", "relevant judgements kept (%)")],
)
def test_sensitivity_names_what_is_kept(unit: str, label: str) -> None:
    shares, tau = np.array([0.1, 0.5, 0.9]), np.ones((1, 3, 2))
    result = Sensitivity(("m",), ("m",), NAMES, shares, tau, 100, 0, unit)
    assert drawing.sensitivity(result).axes[0].get_xlabel() == label


def test_depth_curves_with_and_without_intervals() -> None:
    rows = [[1, 2, 3, 4], [1, 2, 4, 3], [4, 3, 2, 1]]
    figure = drawing.depth_curves(depth_curves({"mrr": rows}, (0, 2, 5)))
    assert lines_of(figure)["mrr"].tolist() == [[0, 1], [2, pytest.approx(2 / 3)], [5, -1]]
    curves = with_intervals([SAMPLES[:1], SAMPLES[1:2]], (0, 1), resampling=HOW)
    (axes,) = drawing.depth_curves(curves).axes
    (bars,) = axes.containers
    ends = np.array([segment[:, 1] for segment in bars[2][0].get_segments()])
    assert ends == pytest.approx(curves.interval[:, 0].T)


def test_p_curves_give_the_areas() -> None:
    figure = drawing.p_curves(discrimination_of({"x": [0.5, 0.1], "y": [0.2, 0.0]}))
    assert legend_of(figure) == ["x: 0.3000", "y: 0.1000", "p = 0.05"]


def test_figures_take_ranks_and_results_alike() -> None:
    several = ranks()
    results = {name: Result(each) for name, each in several.items()}
    for draw in (
        figures.rank_distribution,
        figures.tie_widths,
        figures.rank_types,
        figures.relations,
    ):
        drawn = [draw(named) for named in (several, results, [*results.items()])]
        lines = [[line.get_xydata().tolist() for line in f.axes[0].lines] for f in drawn]
        assert len({*map(repr, lines)}) == 1
        for wrong in (several[next(iter(several))], {"a": 1}, "a.parquet"):
            with pytest.raises(UsageError, match=r"a single|is not ranks by the names|not several"):
                draw(wrong)


def test_figures_refuse_what_they_cannot_draw() -> None:
    comparison = compare(samples_of_ranks(ranks(), ["mrr"])[0], test="t", resampling=HOW)
    panels = [drawing.intervals(each).axes[0] for each in (comparison, [comparison])]
    assert panels[0].get_xlabel() == panels[1].get_xlabel()
    sources = {
        "kgtrec.compare": (drawing.intervals, drawing.pair_matrix),
        "kgtrec.study.rankings_of_samples": (drawing.bump_chart,),
        "kgtrec.study.suite_of_ranks": (
            drawing.suite_places,
            drawing.critical_difference,
            drawing.suite_cells,
        ),
        "values_by_part": (figures.slices,),
    }
    for source, functions in sources.items():
        for draw in functions:
            for wrong in (ranks(), next(iter(ranks().values())), 1):
                with pytest.raises(UsageError, match=rf"cannot be drawn; pass what .*{source}"):
                    draw(wrong)
