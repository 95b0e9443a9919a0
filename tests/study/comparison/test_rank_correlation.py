"""Rankings of systems held against each other: scipy, slow definitions, published correlations."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from kgtrec._internal.bootstrap import Resampled, Resampling
from kgtrec.errors import InputError, UsageError
from kgtrec.study.comparison.correlation import (
    agreement_table,
    over_questions,
    over_systems,
    ranking_correlation,
    tau_ap,
    tau_b,
)
from kgtrec.study.comparison.stability import depth_curves


def slow_tau_ap(x: list[float], y: list[float]) -> float:
    """tau_AP,b of Urbano and Marrero, one system and one above it at a time."""

    def one_way(a: list[float], b: list[float]) -> float:
        shares = []
        for i in range(len(a)):
            above = [j for j in range(len(a)) if a[j] > a[i]]
            if above:
                shares.append(sum(b[j] > b[i] for j in above) / len(above))
        return 2 * sum(shares) / len(shares) - 1

    return (one_way(x, y) + one_way(y, x)) / 2


values = st.lists(st.integers(0, 6), min_size=2, max_size=9)


@given(st.data())
def test_both_by_their_definitions(data: st.DataObject) -> None:
    x = data.draw(values)
    y = data.draw(st.lists(st.integers(0, 6), min_size=len(x), max_size=len(x)))
    first, second = np.array(x) / 7, np.array(y) / 3 + 100
    if len(set(x)) == 1 or len(set(y)) == 1:
        assert np.isnan(tau_b(first, second))
        assert np.isnan(tau_ap(first, second))
        return
    assert tau_b(first, second) == pytest.approx(stats.kendalltau(x, y).statistic, abs=1e-12)
    assert tau_ap(first, second) == pytest.approx(slow_tau_ap(x, y), abs=1e-12)
    assert tau_ap(second, first) == tau_ap(first, second)


def test_rows_go_together() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 5, (7, 6)), rng.integers(0, 5, (7, 6))
    for of in (tau_b, tau_ap):
        assert of(x, y).tolist() == [float(of(a, b)) for a, b in zip(x, y, strict=True)]
        assert of(x, y[0]).tolist() == [float(of(a, y[0])) for a in x]


def test_the_top_weighs_more_and_directions_are_heeded() -> None:
    order = np.arange(10.0)
    top, bottom = order.copy(), order.copy()
    top[[8, 9]], bottom[[0, 1]] = top[[9, 8]], bottom[[1, 0]]
    assert tau_b(order, top) == tau_b(order, bottom)
    assert tau_ap(order, top) < tau_ap(order, bottom) < 1
    assert ranking_correlation(order, order) == (1.0, 1.0)
    assert ranking_correlation(order, -order) == (-1.0, -1.0)
    assert ranking_correlation(order, -order, y_higher=False) == (1.0, 1.0)
    # Equal but for their last bits: a tie, as in exact arithmetic.
    assert tau_b([0.1 + 0.2, 0.3, 1], [1, 2, 3]) == tau_b([0.3, 0.3, 1], [1, 2, 3])


@pytest.mark.parametrize(
    ("x", "y"), [([1.0], [1.0]), ([1, 2, 3], [1, 2]), ([1, np.nan, 2], [1, 2, 3])]
)
def test_rankings_that_do_not_fit(x: list[float], y: list[float]) -> None:
    with pytest.raises(InputError):
        ranking_correlation(x, y)


def test_a_system_drawn_twice_makes_no_pair_with_itself() -> None:
    rng = np.random.default_rng(1)
    x, y = rng.random(6), rng.random(6)
    agreement = over_systems(x, y, resampling=Resampling(resamples=4_000, seed=3))
    draws = np.random.default_rng(3).multinomial(6, np.full(6, 1 / 6), size=4_000)
    slow = []
    for weight in draws[:300]:
        drawn = np.repeat(np.arange(6), weight)
        pairs = [(i, j) for i in drawn for j in drawn if i < j]
        if pairs:
            signs = [np.sign((x[i] - x[j]) * (y[i] - y[j])) for i, j in pairs]
            slow.append(np.mean(signs))
    low, high = np.quantile(slow, [0.025, 0.975])
    assert agreement.tau_interval == pytest.approx((low, high), abs=0.12)
    assert agreement.tau == pytest.approx(stats.kendalltau(x, y).statistic)
    assert agreement == over_systems(x, y, resampling=Resampling(resamples=4_000, seed=3))


def test_over_questions() -> None:
    rng = np.random.default_rng(4)
    quality = np.linspace(0.2, 0.5, 5)
    draws = quality + rng.normal(0, 0.05, (500, 5))
    one = Resampled(quality, draws, draws)
    other = Resampled(-quality, -draws, draws)
    same = over_questions(one, other, y_higher=False)
    assert (same.tau, same.tau_interval, same.tau_ap_interval) == (1.0, (1.0, 1.0), (1.0, 1.0))
    noisy = Resampled(quality, quality + rng.normal(0, 0.1, (500, 5)), draws)
    agreement = over_questions(one, noisy)
    assert agreement.tau_interval[0] < 0.4 < agreement.tau_interval[1] <= 1
    assert (agreement.over, agreement.n_systems) == ("questions", 5)
    row = agreement_table(("one", "other"), [("a", "b")], [agreement]).rows[0]
    assert row[:4] == ("a", "b", 5, 1.0)
    with pytest.raises(UsageError, match="draw alike"):
        over_questions(one, Resampled(quality, draws[:9], draws))


def test_depth_curves() -> None:
    rows = [[1, 2, 3, 4], [1, 2, 4, 3], [4, 3, 2, 1]]
    curves = depth_curves({"mrr": rows, "mr": rows}, (0, 2, 5), lower_is_better=("mr",))
    assert curves.tau.tolist() == [pytest.approx([1, 2 / 3, -1])] * 2
    # The exchanged systems are the best two by the one measure, and the worst by the other.
    assert curves.tau_ap[0, 1] < curves.tau_ap[1, 1]
    assert [row[0] for row in curves.table().rows] == ["0", "2", "5"]
    last = depth_curves({"mrr": rows}, (0, 2, 5), reference=5)
    assert last.tau[0].tolist() == pytest.approx([-1, -2 / 3, 1])
    with pytest.raises(UsageError, match="none of the depths"):
        depth_curves({"mrr": rows}, (0, 2, 5), reference=3)
    with pytest.raises(InputError, match="a row for each of the 2 depths"):
        depth_curves({"mrr": rows}, (0, 2))


# -- Zhou et al. 2022, from the result tables that they published --------------------------------


def table(shared_data: Path, folder: str, name: str = "evaluation") -> list[dict[str, str]]:
    path = shared_data / "kgc-sparsity" / "result" / folder / f"{name}.csv"
    with path.open(newline="") as lines:
        return list(csv.DictReader(lines))


def column(rows: list[dict[str, str]], name: str) -> list[float]:
    return [float(row[name]) for row in sorted(rows, key=lambda row: row["System"])]


@pytest.mark.data
def test_figure_3(shared_data: Path) -> None:
    original, sparse, complete = (
        column(table(shared_data, f"FB-Test-{name}"), "micro_mrr") for name in ("O", "S", "S-C")
    )
    assert tau_b(sparse, complete) == pytest.approx(-0.2308, abs=5e-5)
    assert tau_b(sparse, original) == pytest.approx(0.7949, abs=5e-5)
    # Systems are lettered by their place on the original test set.
    letters = [chr(65 + sum(other > one for other in original)) for one in original]
    place = [1 + sum(other > one for other in complete) for one in complete]
    places = dict(zip(letters, place, strict=True))
    assert (places["A"], places["D"], places["L"]) == (8, 13, 4)


@pytest.mark.data
def test_figures_4_and_5(shared_data: Path) -> None:
    rows = table(shared_data, "FB-Test-S-C", "pooling_depth")
    names = ("micro_mrr", "micro_hits@10", "macro_mrr", "macro_hits@10", "micro_hits@1",
             "micro_hits@3")  # fmt: skip
    by_depth = {
        name: [column([r for r in rows if int(r["Depth"]) == d], name) for d in range(11)]
        for name in names
    }
    tau = dict(zip(names, depth_curves(by_depth, range(11)).tau, strict=True))
    assert tau["micro_mrr"][2] == pytest.approx(0.359, abs=5e-4)
    assert tau["macro_mrr"][10] - tau["micro_mrr"][10] == pytest.approx(0.41, abs=5e-3)
    assert tau["macro_hits@10"][10] - tau["micro_hits@10"][10] == pytest.approx(0.14, abs=5e-3)
    for metric in ("mrr", "hits@10"):
        assert (tau[f"macro_{metric}"][2:] > tau[f"micro_{metric}"][2:]).all()
    assert (tau["micro_hits@1"][10], tau["micro_hits@3"][10]) < (0, 0)


PER_CATEGORY = {  # Table 3; None: not legible
    "one_to_one": (1.0, 1.0, 1.0, 1.0),
    "one_to_many": (0.0256, 0.0748, 0.3731, 0.4665),
    "many_to_one": (0.1026, None, 0.1782, 0.2857),
    "many_to_many": (-0.3333, -0.0645, -0.4698, -0.1177),
}


@pytest.mark.data
@pytest.mark.parametrize("category", PER_CATEGORY)
def test_table_3_head_questions(shared_data: Path, category: str) -> None:
    sparse, complete = (
        [
            row
            for row in table(shared_data, name, "lp_per_rel_type")
            if (row["QuestionType"], row["RelationType"]) == ("head", category)
        ]
        for name in ("FB-Test-S", "FB-Test-S-C")
    )
    metrics = ("mrr", "hits@1", "hits@3", "hits@10")
    for metric, published in zip(metrics, PER_CATEGORY[category], strict=True):
        tau = float(tau_b(column(sparse, f"micro_{metric}"), column(complete, f"micro_{metric}")))
        if published is not None:  # some of their digits are cut, others rounded
            assert tau == pytest.approx(published, abs=1.01e-4), metric


TABLE_4 = {
    "evaluation": (0.2308, -0.2308, -0.0519, -0.4358, 0.2598),
    "lp_sample_rel_dist": (0.2308, -0.2051, 0.0256, -0.2051, 0.3377),
}


@pytest.mark.data
@pytest.mark.parametrize("distribution", TABLE_4)
def test_table_4(shared_data: Path, distribution: str) -> None:
    sparse = table(shared_data, "FB-Test-S")
    complete = table(shared_data, "FB-Test-S-C", distribution)
    metrics = ("mr", "mrr", "hits@1", "hits@3", "hits@10")
    for metric, published in zip(metrics, TABLE_4[distribution], strict=True):
        tau = float(tau_b(column(sparse, f"micro_{metric}"), column(complete, f"micro_{metric}")))
        assert tau == pytest.approx(published, abs=1.01e-4), metric
