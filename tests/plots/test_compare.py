"""Figures of compared systems show their data."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pytest

from kgtrec._internal.bootstrap import Resampling
from kgtrec.errors import UsageError

pytest.importorskip("matplotlib")

from matplotlib.colors import to_hex, to_rgb

from kgtrec.plots import compare as figures
from kgtrec.plots import compare as ranked
from kgtrec.plots.style import COLOURS, save, series_style
from kgtrec.study.comparison.rankings import rankings_of_values
from kgtrec.study.comparison.report import compare
from kgtrec.study.comparison.samples import Samples
from kgtrec.study.comparison.significance import discrimination_of
from kgtrec.study.comparison.stability import Sensitivity, depth_curves
from kgtrec.study.pooling.depths import Reuse, with_intervals

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
    steps = [luminance(shade) for shade in figures.SHADES]
    for lighter, darker in pairwise(steps):
        assert (lighter + 0.05) / (darker + 0.05) > 1.5
    assert len(set(COLOURS)) == 7


def test_pair_matrix_shades_what_is_told_apart(compared) -> None:
    drawn = figures.pair_matrix(compared)
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
            assert shaded[bottom, top] == figures.SHADES[step]
            assert (step > 0) == (better[i, j] or better[j, i])
        sizes = sorted(f"{abs(d):.2f}".removeprefix("0") for d in one.effects.d_z)
        assert sorted(t for t in texts(axes) if t.startswith(".")) == sizes
        rows = [label.get_text().split()[0] for label in axes.get_yticklabels()]
        assert rows == [one.samples.systems[i] for i in one.order]
    labels = [t.get_text() for t in drawn.legends[0].get_texts()]
    assert labels == ["not significant", "p < 0.05 *", "p < 0.01 **", "p < 0.001 ***"]


def test_matrices_of_thirteen_systems_fit_a_page() -> None:
    many = [
        compare(samples(k, 0.8, 13), "t", resampling=Resampling(resamples=100)) for k in range(2)
    ]
    assert figures.pair_matrix(many).get_size_inches()[0] <= 7


def test_intervals_show_values_with_both_ends(compared) -> None:
    drawn = figures.intervals(compared)
    for axes, one in zip(drawn.axes, compared, strict=True):
        low, high = one.intervals()
        for row, i in enumerate(compared[0].order):
            holder = axes.containers[row]
            ((x0, x1),) = [segment[:, 0] for segment in holder[2][0].get_segments()]
            assert (x0, x1) == pytest.approx((low[i], high[i]))
            assert holder[0].get_xdata()[0] == pytest.approx(one.resampled.estimate[i])
            worse = bool(one.tests.better()[one.order[0], i])
            assert (holder[0].get_fillstyle() == "none") == worse


def test_many_measures_take_more_rows() -> None:
    many = [
        compare(samples(k, name=f"m{k}"), "t", resampling=Resampling(resamples=100))
        for k in range(5)
    ]
    for drawn in (figures.intervals(many), figures.pair_matrix(many)):
        assert [axes for axes in drawn.axes if axes.get_visible()][5:] == []
        assert drawn.axes[4].get_title(loc="left").startswith("(e)")


VALUES = {"sparse": [0.4, 0.3, 0.3, 0.1], "full": [0.2, 0.5, 0.4, 0.3]}


def test_bump_chart_lines_lead_from_place_to_place() -> None:
    rankings = rankings_of_values(VALUES, NAMES, "MRR", resampling=Resampling(resamples=200))
    (axes,) = ranked.bump_chart(rankings).axes
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
    save(ranked.bump_chart(rankings), tmp_path / "x.svg")
    assert ">$a$ " in (tmp_path / "x.svg").read_text("utf-8")


def test_bump_charts_of_several_measures_and_of_many_rankings(tmp_path) -> None:
    rankings = rankings_of_values(VALUES, NAMES, "MRR", resampling=Resampling(resamples=100))
    assert len(ranked.bump_chart([rankings] * 3).axes) == 3
    wide = rankings_of_values({f"r{k}": v for k, v in enumerate([*VALUES.values()] * 2)}, NAMES,
                              resampling=Resampling(resamples=100))  # fmt: skip
    drawn = ranked.bump_chart(wide)
    assert sum("τ" in text for text in texts(drawn.axes[0])) == 3
    save(drawn, tmp_path / "x.pdf")


def test_no_text_of_a_bump_chart_covers_another() -> None:
    rng = np.random.default_rng(0)
    values = {f"ranking {k}": rng.random(13) for k in range(4)}
    drawn = ranked.bump_chart(rankings_of_values(values, [f"system-{k}" for k in range(13)],
                                                 resampling=Resampling(resamples=100)))  # fmt: skip
    drawn.draw_without_rendering()
    boxes = [text.get_window_extent() for text in drawn.axes[0].texts]
    assert len(boxes) == 2 * 13 + 3
    assert not [pair for pair in combinations(boxes, 2) if pair[0].overlaps(pair[1])]
    assert all(drawn.bbox.contains(*box.min) and drawn.bbox.contains(*box.max) for box in boxes)


def reuse() -> Reuse:
    ints = [np.array(row) for row in ([1, 2, 3, 4], [2, 1, 3, 4], [5, 0, 2, 0], [2, 0, 1, 0])]
    return Reuse("map", NAMES, ("a", "b", "c"), np.array([0.5, 0.4, 0.3, 0.2]),
                 np.array([0.35, 0.4, 0.28, 0.2]), *ints, np.ones(4))  # fmt: skip


def test_left_out_shows_both_values_and_places() -> None:
    drawn = figures.left_out([reuse(), reuse()])
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
        (axes,) = ranked.sensitivity(sensitivity).axes
        drawn = {line.get_label(): line.get_ydata() for line in axes.lines}
        for name, mean in zip(names, tau.mean(axis=2), strict=True):
            assert drawn[name] == pytest.approx(mean)
        assert len(axes.collections) == (n if n <= ranked.BANDS else 0)


def test_depth_curves_with_and_without_intervals() -> None:
    rows = [[1, 2, 3, 4], [1, 2, 4, 3], [4, 3, 2, 1]]
    (axes,) = ranked.depth_curves(depth_curves({"mrr": rows}, (0, 2, 5))).axes
    line = next(line for line in axes.lines if line.get_label() == "mrr")
    assert line.get_xydata().tolist() == [[0, 1], [2, pytest.approx(2 / 3)], [5, -1]]
    curves = with_intervals(
        [[samples(0)], [samples(1)]], (0, 1), resampling=Resampling(resamples=150)
    )
    (axes,) = ranked.depth_curves(curves).axes
    (bars,) = axes.containers
    ends = np.array([segment[:, 1] for segment in bars[2][0].get_segments()])
    assert ends == pytest.approx(curves.interval[:, 0].T)


def test_p_curves_give_the_areas() -> None:
    discrimination = discrimination_of({"x": [0.5, 0.1], "y": [0.2, 0.0]})
    drawn = figures.p_curves(discrimination)
    texts = [text.get_text() for text in drawn.legends[0].get_texts()]
    assert texts == ["x: 0.3000", "y: 0.1000", "p = 0.05"]


@pytest.mark.parametrize(
    "draw", [figures.intervals, figures.pair_matrix, figures.left_out, ranked.bump_chart]
)
def test_nothing_to_draw_is_said(draw) -> None:
    with pytest.raises(UsageError, match="at least one"):
        draw([])
