"""Figures show the data they are given, and the files they become are sound."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from matplotlib.colors import to_hex, to_rgb
from refusals import each_row
from slow import slow_after

import kgtrec
from kgtrec._internal.bootstrap import Resampling
from kgtrec.cli.plot import KINDS, command
from kgtrec.errors import FileError, UsageError
from kgtrec.graph.statistics.popularity import entity_frequencies
from kgtrec.plots import compare as drawing
from kgtrec.plots import ranks as figures
from kgtrec.plots.studies import beta_curves, beta_heat_map, popularity
from kgtrec.plots.style import COLOURS, DASHES, check_plot, save, series_style
from kgtrec.study.alignment import SizeExperiment
from kgtrec.study.comparison.parts import values_by_part
from kgtrec.study.comparison.rankings import Sensitivity, depth_curves, rankings_of_values
from kgtrec.study.comparison.report import compare
from kgtrec.study.comparison.samples import Samples, resample, samples_of_ranks
from kgtrec.study.comparison.significance import discrimination_of
from kgtrec.study.pooling.depths import Reuse, with_intervals
from kgtrec.study.stratified import beta_curve, beta_grid

pytest.importorskip("matplotlib")


RNG = np.random.default_rng(5)
TRIPLES = np.unique(np.c_[RNG.integers(0, 30, 400), RNG.integers(0, 4, 400),
                          RNG.integers(0, 30, 400)], axis=0)  # fmt: skip


@pytest.fixture(scope="module")
def graph():
    order = np.random.default_rng(1).permutation(len(TRIPLES))
    train, test = TRIPLES[order[:-80]], TRIPLES[order[-80:]]
    return kgtrec.Graph.from_arrays(train=train, test=test, n_entities=30, n_relations=4)


@pytest.fixture(scope="module")
def results(graph):
    questions = graph.questions("test")
    shape = len(questions.entity), 30
    rng = np.random.default_rng(2)
    scores = {"free": rng.random(shape), "tied": rng.integers(0, 4, shape).astype(float)}
    return {name: kgtrec.evaluate(each, questions) for name, each in scores.items()}


@pytest.fixture(scope="module")
def files(results, tmp_path_factory):
    folder = tmp_path_factory.mktemp("ranks")
    for name, result in results.items():
        result.ranks.save(folder / f"{name}.parquet")
    return [str(folder / f"{name}.parquet") for name in results]


def lines_of(figure, panel=0):
    return {line.get_label(): line.get_xydata() for line in figure.axes[panel].lines}


def test_rank_distribution_is_hits_at_every_k_above_a_random_scorer(results):
    drawn = lines_of(figures.rank_distribution({n: r.ranks for n, r in results.items()}))
    for name, result in results.items():
        for k in (1, 3, 10):
            rank, share = drawn[name].T
            assert share[rank <= k].max(initial=0) == pytest.approx(
                result[f"both.realistic.micro.hits@{k}"]
            )
    for k, expected in drawn[figures.CHANCE]:
        candidates = results["free"].ranks.candidates
        assert expected == pytest.approx(np.mean([min(k / c, 1) for c in candidates]))


def test_tie_widths_and_the_name_of_a_model_without_ties(results):
    drawn = lines_of(figures.tie_widths({n: r.ranks for n, r in results.items()}))
    assert "free (no ties)" in drawn
    equal = results["tied"].ranks.equal
    for width, share in drawn["tied"]:
        assert share == pytest.approx(np.mean(equal >= width))
    alone = figures.tie_widths({"free": results["free"].ranks})
    assert alone.legends[0].get_texts()[0].get_text() == "free (no ties)"


def test_rank_types_stand_where_the_result_says(results):
    drawn = figures.rank_types(results, "hits@3")
    for kind in figures.RANK_TYPES:
        expected = [result[f"both.{kind}.micro.hits@3"] for result in results.values()]
        assert lines_of(drawn)[kind][:, 0].tolist() == pytest.approx(expected)
    names = [label.get_text() for label in drawn.axes[0].get_yticklabels()]
    assert names == ["free (no ties)", "tied"]


def test_boxes_hold_the_median_and_whiskers_the_middle_of_the_relations(results):
    values = np.linspace(0, 1, 101)
    (axes,) = figures.over_relations({"a": values}, "MRR").axes
    ends = [line.get_xdata() for line in axes.lines if len(line.get_xdata()) == 2]
    assert (min(map(min, ends)), max(map(max, ends))) == pytest.approx((0.05, 0.95))
    (axes,) = figures.relations(results, "mrr").axes
    medians = [line.get_xdata()[0] for line in axes.lines if len(line.get_xdata()) == 2]
    for result in results.values():
        values = [row[-1] for row in result.slice("relation", ["both.realistic.micro.mrr"]).rows]
        assert any(median == pytest.approx(np.median(values)) for median in medians)


@pytest.mark.parametrize("by", ["side", "relation", "category,side", "quartile"])
def test_slices_show_values_and_intervals_of_every_part(results, graph, by):
    ranks = {name: result.ranks for name, result in results.items()}
    (values,) = values_by_part(ranks, by, ["mrr"], graph=graph, resampling=Resampling())
    (axes,) = figures.slices(values).axes
    for name, container in zip(ranks, axes.containers, strict=True):
        line, _, (bars,) = container
        rows = results[name].slice(by, ["both.realistic.micro.mrr"], graph=graph).rows
        assert line.get_xdata() == pytest.approx([row[-1] for row in rows])
        for value, part in zip(line.get_xdata(), bars.get_segments(), strict=True):
            assert part[0, 0] < value < part[1, 0]
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert names[0].endswith(f"({rows[0][-2]:,})")
    assert axes.get_xlabel() == "MRR with 95% intervals"


def test_intervals_of_all_instances_are_those_of_the_comparison(results, graph):
    ranks = {name: result.ranks for name, result in results.items()}
    how = Resampling(resamples=300)
    keys = ["mrr", "hits@10", "gmr", "amri"]
    mrr, _, gmr, amri = values_by_part(ranks, "side", keys, graph=graph, resampling=how)
    for one in (mrr, gmr):
        (samples,) = samples_of_ranks(ranks, [one.measure])
        due = resample(samples, how).interval()
        assert one.intervals[("both",)] == pytest.approx(due)
    assert amri.intervals == {}
    assert figures.slices(amri).axes[0].get_xlabel() == "AMRI"
    alone = values_by_part({"free": ranks["free"]}, "side", ["mrr"], resampling=how)[0]
    assert alone.intervals[("head",)][:, 0] == pytest.approx(mrr.intervals[("head",)][:, 0])


def test_too_many_slices_are_refused(results, graph, monkeypatch):
    ranks = {name: result.ranks for name, result in results.items()}
    (values,) = values_by_part(ranks, "relation", ["mrr"])
    monkeypatch.setattr(figures, "PARTS", 3)
    with pytest.raises(
        UsageError, match="4 slices by relation are too many; a figure shows at most 3"
    ):
        figures.slices(values)


def test_a_model_has_one_colour_in_all_figures(results):
    ranks = {name: result.ranks for name, result in results.items()}
    (values,) = values_by_part(ranks, "side", ["mrr"], resampling=Resampling())
    parts = figures.slices(values).axes[0].containers
    compared = [compare(one, "t") for one in samples_of_ranks(ranks, ["mrr", "mr"])]
    dots = drawing.intervals(compared).axes[0].containers
    order = [list(ranks)[i] for i in compared[0].order]
    lines = {one.get_label(): one for one in figures.rank_distribution(ranks).axes[0].lines}
    for number, name in enumerate(ranks):
        drawn = lines[name], parts[number][0], dots[order.index(name)][0]
        assert {one.get_color() for one in drawn} == {series_style(number)["color"]}


def test_the_page_has_the_dashes_of_figures():
    """Dashes in multiples of the line's width, as matplotlib draws them."""
    import re
    from importlib import resources

    script = resources.files("kgtrec.study.reporting") / "assets" / "charts.js"
    (text,) = re.findall(r"const DASHES = (\[.*?\]);", script.read_text("utf-8"))
    page = [[float(number) for number in dash.split()] for dash in json.loads(text)]
    named = {"-": [], "--": [3.7, 1.6], "-.": [6.4, 1.6, 1, 1.6], ":": [1, 1.65]}
    for dash, mine in zip(page, DASHES, strict=True):
        due = named[mine] if isinstance(mine, str) else mine[1]
        assert dash == pytest.approx([2 * length for length in due])


def test_beta_curves_draw_the_grid(results):
    grids = {n: beta_curve(r.ranks, metrics=("mrr", "mr", "hits@1")) for n, r in results.items()}
    figure = beta_curves(grids)
    assert len(figure.axes) == 3
    for panel, metric in enumerate(("mrr", "mr", "hits@1")):
        for name, grid in grids.items():
            assert lines_of(figure, panel)[name][:, 1].tolist() == grid[metric].ravel().tolist()


def test_heat_map_shows_every_pair(results):
    grid = beta_grid(results["free"].ranks, metrics="mrr")
    figure = beta_heat_map(grid)
    mesh = next(c for c in figure.axes[0].collections if c.get_array() is not None)
    assert np.array_equal(np.asarray(mesh.get_array()).ravel(), grid["mrr"].ravel())


def test_a_curve_is_no_heat_map_and_a_grid_no_curve(results):
    ranks = results["free"].ranks
    with pytest.raises(UsageError, match="both exponents"):
        beta_heat_map(beta_curve(ranks))
    with pytest.raises(UsageError, match="heat map"):
        beta_curves({"a": beta_grid(ranks)})
    with pytest.raises(UsageError, match="differ"):
        beta_curves({"a": beta_curve(ranks), "b": beta_curve(ranks, "beta_r")})


def test_popularity_rises_to_all_triples(graph):
    share = lines_of(popularity({"entities": entity_frequencies(graph)}))["entities"][:, 1]
    assert (np.diff(share) >= 0).all()
    assert share[-1] == 100


def test_alignment_sizes_of_several_models_share_the_panels():
    values = {"mr": np.array([[1.0, 3.0], [6.0, 8.0]]), "amr": np.array([[0.4, 0.6], [0.5, 0.5]])}
    weak = SizeExperiment(np.array([10, 100]), values, "both")
    strong = SizeExperiment(np.array([10, 100]), {k: v / 2 for k, v in values.items()}, "both")
    figure = figures.alignment_sizes({"200 pairs": weak, "1000 pairs": strong})
    drawn = [[line.get_ydata().tolist() for line in panel.lines] for panel in figure.axes]
    assert drawn == [[[2, 7], [1, 3.5]], [[0.5, 0.5], [0.25, 0.25]]]
    names = [text.get_text() for text in figure.legends[0].get_texts()]
    assert names == ["200 pairs", "1000 pairs", "all repeats (line: mean)"]
    alone = lines_of(figures.alignment_sizes(weak))
    assert [line.tolist() for line in alone.values()] == [[[10, 2], [100, 7]]]
    other = SizeExperiment(np.array([10]), {"mr": np.ones((1, 1))}, "both")
    with pytest.raises(UsageError, match="ask for the same metrics"):
        figures.alignment_sizes({"a": weak, "b": other})


def test_nothing_to_draw_is_said():
    for draw in (
        figures.rank_distribution, figures.tie_widths, figures.alignment_sizes, beta_curves,
        drawing.intervals, drawing.pair_matrix, drawing.left_out, drawing.bump_chart,
    ):  # fmt: skip
        with pytest.raises(UsageError, match="at least one"):
            draw({})


@pytest.mark.parametrize(
    ("ending", "magic"),
    slow_after(2, [("svg", b"<?xml"), ("png", b"\x89PNG"), ("pdf", b"%PDF"), ("eps", b"%!PS")]),
)
def test_saved_files_are_of_their_kind_and_the_same_again(results, tmp_path: Path, ending, magic):
    contents = []
    for name in ("one", "two"):
        path = tmp_path / f"{name}.{ending}"
        save(figures.rank_distribution({"free": results["free"].ranks}), path)
        contents.append(path.read_bytes())
    assert contents[0].startswith(magic)
    if ending != "eps":  # it names the time
        assert contents[0] == contents[1]


def test_a_figure_that_cannot_be_saved(results, tmp_path: Path):
    with pytest.raises(UsageError, match=r"must end in one of .pdf"):
        check_plot("figure.docx")
    with pytest.raises(FileError, match="no folder"):
        save(figures.tie_widths({"a": results["tied"].ranks}), tmp_path / "none" / "a.pdf")


@each_row("kind", [kind for kind in KINDS if kind != "times"])
def test_every_kind_from_the_command_line(kind: str, files, tmp_path: Path, monkeypatch):
    paths = files[:1] if kind == "beta-grid" else files
    by = ["--by", "side"] if kind == "slices" else []
    saved = []
    monkeypatch.setattr("kgtrec.plots.style.save", lambda *args: saved.append(args))
    done = CliRunner().invoke(command, [kind, *paths, *by, "-o", str(tmp_path / "out.svg")])
    assert done.exit_code == 0, done.output
    ((figure, path),) = saved
    assert Path(path) == tmp_path / "out.svg"
    if kind not in ("beta-grid", "relations"):
        names = [text.get_text() for text in figure.legends[0].get_texts()]
        names += [label.get_text() for label in figure.axes[0].get_yticklabels()]
        assert any(name.startswith("free") for name in names)


MISTAKES = [
    (["ranks", 0, 1, "--name", "one"], "give one --name per file"),
    (["relations", 0, "-m", "fame"], "fame"),
    (["slices", 0], "slices need --by"),
    (["ranks", 0, "--by", "side"], "--by goes with slices, not with ranks"),
    (["slices", 0, "--by", "category"], "need the graph"),
    (["slices", 0, "--by", "sides"], "cannot slice by 'sides'"),
]


def test_wrong_calls_say_how_to_mend_them(files, tmp_path: Path):
    tails, out = str(tmp_path / "tails.parquet"), tmp_path / "out.svg"
    ranks = kgtrec.Ranks.load(files[0])
    ranks.subset(ranks.side == 1).save(tails)
    sides = ["relations", tails, "--side", "both"], "--side both, but these ranks contain only tail"
    for arguments, said in (*MISTAKES, sides):
        words = [files[each] if isinstance(each, int) else each for each in arguments]
        done = CliRunner().invoke(command, [*words, "-o", str(out)])
        assert isinstance(done.exception, UsageError)
        assert said in str(done.exception)
        assert not out.exists()


# -- Figures of compared systems show their data ---------------------------------------------------


NAMES = ("a", "b", "c", "d")
MINUS = "\N{MINUS SIGN}"


def samples(seed: int = 0, spread: float = 0.3, n: int = 4, name: str = "m") -> Samples:
    rng = np.random.default_rng(seed)
    values = np.linspace(0, spread, n)[::-1] + rng.normal(0, 0.4, (200, n))
    systems = tuple("abcdefghijklmnopqrstuvwxyzABCD"[:n])
    return Samples(name, name.upper(), systems, values, np.arange(200), "questions")


@pytest.fixture(scope="module")
def compared():
    return [
        compare(samples(seed, name=f"m{seed}"), "t", resampling=Resampling(resamples=200))
        for seed in range(2)
    ]


def texts(axes) -> list[str]:
    return [text.get_text() for text in axes.texts]


def test_series_stay_apart_for_many_systems() -> None:
    looks = [series_style(k, marked=True) for k in range(30)]
    kinds = [(one["color"], str(one["linestyle"])) for one in looks]
    marks = [(one["color"], one["marker"]) for one in looks]
    assert len(set(kinds)) == len(set(marks)) == 30


def luminance(colour: str) -> float:
    parts = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour)]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


def test_shades_of_the_matrix_stay_apart_in_grey_print() -> None:
    steps = [luminance(shade) for shade in drawing.SHADES]
    for lighter, darker in pairwise(steps):
        assert (lighter + 0.05) / (darker + 0.05) > 1.5
    assert len(set(COLOURS)) == 7


def test_pair_matrix_shades_what_is_told_apart(compared) -> None:
    drawn = drawing.pair_matrix(compared)
    for axes, one in zip(drawn.axes, compared, strict=True):
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
    labels = [t.get_text() for t in drawn.legends[0].get_texts()]
    assert labels == ["not significant", "p < 0.05 *", "p < 0.01 **", "p < 0.001 ***"]


def test_intervals_show_values_with_both_ends(compared) -> None:
    drawn = drawing.intervals(compared)
    for axes, one in zip(drawn.axes, compared, strict=True):
        low, high = one.intervals()
        for row, i in enumerate(compared[0].order):
            holder = axes.containers[row]
            ((x0, x1),) = [segment[:, 0] for segment in holder[2][0].get_segments()]
            assert (x0, x1) == pytest.approx((low[i], high[i]))
            assert holder[0].get_xdata()[0] == pytest.approx(one.resampled.estimate[i])
            worse = bool(one.tests.better()[one.order[0], i])
            assert (holder[0].get_fillstyle() == "none") == worse


def test_matrices_of_thirteen_systems_fit_a_page_and_many_measures_take_more_rows() -> None:
    how = Resampling(resamples=100)
    many = [compare(samples(k, 0.8, 13), "t", resampling=how) for k in range(2)]
    assert drawing.pair_matrix(many).get_size_inches()[0] <= 7
    many = [compare(samples(k, name=f"m{k}"), "t", resampling=how) for k in range(5)]
    for drawn in (drawing.intervals(many), drawing.pair_matrix(many)):
        assert [axes for axes in drawn.axes if axes.get_visible()][5:] == []
        assert drawn.axes[4].get_title(loc="left").startswith("(e)")


VALUES = {"sparse": [0.4, 0.3, 0.3, 0.1], "full": [0.2, 0.5, 0.4, 0.3]}


def test_bump_chart_lines_lead_from_place_to_place() -> None:
    rankings = rankings_of_values(VALUES, NAMES, "MRR", resampling=Resampling(resamples=200))
    (axes,) = drawing.bump_chart(rankings).axes
    lines = {line.get_label(): line.get_ydata().tolist() for line in axes.lines}
    assert {name: lines[name] for name in NAMES} == {
        "a": [0, 3], "b": [1, 0], "c": [2, 1], "d": [3, 2]
    }  # fmt: skip
    held = [line for line in axes.lines if line.get_color() == "#bbbbbb"]
    assert [line.get_ydata().tolist() for line in held] == [[1, 2]]  # b and c tie
    (one,) = rankings.over_systems
    low, high = (f"{end:.2f}".replace("-", MINUS) for end in one.tau_interval)
    assert f"τ = {one.tau:.2f}\n[{low}, {high}]".replace("-", MINUS) in texts(axes)
    assert axes.get_xlabel() == "MRR: 95% intervals over systems; grey: equal values"
    assert [label.get_text() for label in axes.get_xticklabels()] == ["sparse", "full"]


def test_dollars_in_names_are_no_formula(tmp_path) -> None:
    rankings = rankings_of_values(
        VALUES, ["$a$", "$\\b$", "c$", "d"], "MRR", resampling=Resampling(resamples=100)
    )
    save(drawing.bump_chart(rankings), tmp_path / "x.svg")
    assert ">$a$ " in (tmp_path / "x.svg").read_text("utf-8")


def test_bump_charts_of_several_measures_and_of_many_rankings() -> None:
    rankings = rankings_of_values(VALUES, NAMES, "MRR", resampling=Resampling(resamples=100))
    assert len(drawing.bump_chart([rankings] * 3).axes) == 3
    wide = rankings_of_values({f"r{k}": v for k, v in enumerate([*VALUES.values()] * 2)}, NAMES,
                              resampling=Resampling(resamples=100))  # fmt: skip
    assert sum("τ" in text for text in texts(drawing.bump_chart(wide).axes[0])) == 3


def reuse() -> Reuse:
    ints = [np.array(row) for row in ([1, 2, 3, 4], [2, 1, 3, 4], [5, 0, 2, 0], [2, 0, 1, 0])]
    return Reuse("map", NAMES, ("a", "b", "c"), np.array([0.5, 0.4, 0.3, 0.2]),
                 np.array([0.35, 0.4, 0.28, 0.2]), *ints, np.ones(4))  # fmt: skip


def test_left_out_shows_both_values_and_places() -> None:
    drawn = drawing.left_out([reuse(), reuse()])
    axes = drawn.axes[1]
    lines = {line.get_label(): line.get_xdata().tolist() for line in axes.lines}
    assert lines["all judgements"] == [0.5, 0.4, 0.3, 0.2]
    assert lines["without its own"] == [0.35, 0.4, 0.28, 0.2]
    assert texts(axes) == ["1 → 2", "2 → 1", "3 → 3", "not in the pool"]


def test_sensitivity_has_bands_where_these_can_be_told_apart() -> None:
    rng = np.random.default_rng(0)
    for n in (2, 5):
        names = tuple(f"m{k}" for k in range(n))
        tau = rng.random((n, 3, 20))
        sensitivity = Sensitivity(names, names, NAMES, np.array([0.1, 0.5, 0.9]), tau, 100, 0)
        (axes,) = drawing.sensitivity(sensitivity).axes
        drawn = {line.get_label(): line.get_ydata() for line in axes.lines}
        for name, mean in zip(names, tau.mean(axis=2), strict=True):
            assert drawn[name] == pytest.approx(mean)
        assert len(axes.collections) == (n if n <= drawing.BANDS else 0)


def test_depth_curves_with_and_without_intervals() -> None:
    rows = [[1, 2, 3, 4], [1, 2, 4, 3], [4, 3, 2, 1]]
    (axes,) = drawing.depth_curves(depth_curves({"mrr": rows}, (0, 2, 5))).axes
    line = next(line for line in axes.lines if line.get_label() == "mrr")
    assert line.get_xydata().tolist() == [[0, 1], [2, pytest.approx(2 / 3)], [5, -1]]
    curves = with_intervals(
        [[samples(0)], [samples(1)]], (0, 1), resampling=Resampling(resamples=150)
    )
    (axes,) = drawing.depth_curves(curves).axes
    (bars,) = axes.containers
    ends = np.array([segment[:, 1] for segment in bars[2][0].get_segments()])
    assert ends == pytest.approx(curves.interval[:, 0].T)


def test_p_curves_give_the_areas() -> None:
    discrimination = discrimination_of({"x": [0.5, 0.1], "y": [0.2, 0.0]})
    drawn = drawing.p_curves(discrimination)
    texts = [text.get_text() for text in drawn.legends[0].get_texts()]
    assert texts == ["x: 0.3000", "y: 0.1000", "p = 0.05"]
