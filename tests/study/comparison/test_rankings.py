"""Orders of systems and of answers: correlations, agreement, depths of a pool, reproduced runs."""

from __future__ import annotations

import csv
import itertools
import math
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from compare_cases import samples
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from kgtrec import trec
from kgtrec._internal.bootstrap import Resampled, Resampling
from kgtrec.errors import InputError
from kgtrec.study.comparison.correlation import (
    agreement_table,
    over_questions,
    over_systems,
    rank_biased_overlap,
    reproduction_of,
    tau_ap,
    tau_b,
    tau_union,
)
from kgtrec.study.comparison.rankings import rankings_of_samples, rankings_of_values
from kgtrec.study.comparison.samples import Samples, resample

FEW = Resampling(resamples=100)
Loose = Collection[tuple[int, int]]
pytestmark = pytest.mark.filterwarnings("ignore::kgtrec.errors.TieWarning")


def slow_tau_ap(x: list[float], y: list[float], settled: float = 0, loose: Loose = ()) -> float:
    """tau_AP,b of Urbano and Marrero; all loose pairs are in order (1) or not (-1)."""

    def agree(b: list[float], i: int, j: int) -> bool:
        return settled > 0 if (min(i, j), max(i, j)) in loose else b[j] > b[i]

    def one_way(a: list[float], b: list[float]) -> float:
        shares = []
        for i in range(len(a)):
            above = [j for j in range(len(a)) if a[j] > a[i]]
            if above:
                shares.append(sum(agree(b, i, j) for j in above) / len(above))
        return 2 * sum(shares) / len(shares) - 1

    return (one_way(x, y) + one_way(y, x)) / 2


values = st.lists(st.integers(0, 6), min_size=2, max_size=9)


@given(st.data())
def test_both_by_their_definitions(data: st.DataObject) -> None:
    x = data.draw(values)
    y = data.draw(st.lists(st.integers(0, 6), min_size=len(x), max_size=len(x)))
    first, second = np.array(x) / 7, np.array(y) / 3 + 100
    if len(set(x)) == 1 or len(set(y)) == 1:
        assert np.isnan([tau_b(first, second), tau_ap(first, second)]).all()
        return
    assert tau_b(first, second) == pytest.approx(stats.kendalltau(x, y).statistic, abs=1e-12)
    assert tau_ap(first, second) == pytest.approx(slow_tau_ap(x, y), abs=1e-12)
    assert tau_ap(second, first) == tau_ap(first, second)
    for of in (tau_b, tau_ap):  # rows go together
        both = of(np.stack([first, second]), np.stack([second, second]))
        assert both.tolist() == [float(of(first, second)), float(of(second, second))]
        assert of(np.stack([first, second]), second).tolist() == both.tolist()


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


@pytest.mark.parametrize("sign", [1, -1])
def test_unsettled_pairs_widen_intervals_over_questions(sign: int) -> None:
    """Draws alone would miss the tau of endlessly many questions."""
    rng = np.random.default_rng(4)
    values = [0.2 + 0.02 * np.arange(6), sign * np.array([0.05, 0.0, 0.08, 0.07, 0.2, 0.19])]
    drawn = [one + rng.normal(0, 0.004, (300, 6)) for one in values]
    made = over_questions(*(Resampled(v, d, d) for v, d in zip(values, drawn, strict=True)))
    pairs = [*itertools.combinations(range(6), 2)]
    loose = set()
    for i, j in pairs:
        ends = [np.quantile(d[:, i] - d[:, j], [0.025, 0.975]) for d in drawn]
        if any(low <= 0 <= high for low, high in ends):
            loose.add((i, j))
    assert loose == {(2, 3), (4, 5)}
    x, y = (one.tolist() for one in values)
    signs = [sign if (i, j) in loose else np.sign((x[i] - x[j]) * (y[i] - y[j])) for i, j in pairs]
    for ends, draws, most in (
        (made.tau_interval, tau_b(*drawn), np.mean(signs)),
        (made.tau_ap_interval, tau_ap(*drawn), slow_tau_ap(x, y, sign, loose)),
    ):
        low, high = np.quantile(draws, [0.025, 0.975])
        assert most > high if sign > 0 else most < low
        assert ends == pytest.approx((low, most) if sign > 0 else (most, high))


FAR, LONG = 500, 60


def overlap_to(first: list[str], second: list[str], p: float) -> float:
    """The sum of the definition, over so many depths that the rest is negligible."""
    total = 0.0
    for d in range(1, min(FAR, math.ceil(math.log(1e-15, p)))):
        shared = len(set(first[:d]) & set(second[:d]))
        total += (1 - p) * p ** (d - 1) * shared / d
    return total


def best_continuation(first: list[str], second: list[str]) -> tuple[list[str], list[str]]:
    """Lists that agree as soon as possible: each takes the items that only the other has."""
    short, long = sorted((list(first), list(second)), key=len)
    new = (f"new{i}" for i in itertools.count())
    while len(short) < LONG:
        if len(short) < len(long):
            lacking = [d for d in long[: len(short) + 1] if d not in short]
            short.append(lacking[0] if lacking else next(d for d in long if d not in short))
            continue
        mine = [d for d in long if d not in short]
        theirs = [d for d in short if d not in long]
        fresh = next(new)
        short.append(mine[0] if mine else fresh)
        long.append(theirs[0] if theirs else fresh)
    return short, long


@pytest.mark.parametrize("p", [0.3, 0.8])
def test_rank_biased_overlap_lies_between_its_worst_and_best_continuation(p: float) -> None:
    rng = np.random.default_rng(1)
    for _ in range(20):
        first, second = (
            [f"d{i}" for i in rng.choice(9, rng.integers(1, 8), replace=False)] for _ in "ab"
        )
        overlap = rank_biased_overlap(first, second, p)
        assert overlap == rank_biased_overlap(second, first, p)
        far = [
            [*one, *(f"{side}{i}" for i in range(FAR))]
            for one, side in zip((first, second), "xy", strict=True)
        ]
        assert overlap.low == pytest.approx(overlap_to(*far, p), abs=1e-12)
        best = overlap_to(*best_continuation(first, second), p)
        # The ranks of the best continuation give all but p^LONG / (1 - p) of it.
        beyond = p**LONG / (1 - p) + 1e-12
        assert overlap.low + overlap.residual == pytest.approx(best, abs=beyond)
        assert overlap.low - 1e-12 <= overlap.extrapolated <= overlap.low + overlap.residual + 1e-12


def test_tau_union_counts_pairs() -> None:
    rng = np.random.default_rng(2)
    for _ in range(60):
        lists = [
            [f"d{i:02}" for i in rng.choice(12, rng.integers(2, 9), replace=False)] for _ in "ab"
        ]
        n = min(map(len, lists))
        union = sorted({*lists[0][:n], *lists[1][:n]})
        x, y = ([union.index(d) for d in one[:n]] for one in lists)
        signs = [
            (1 if (x[i] - x[j]) * (y[i] - y[j]) > 0 else -1)
            for i, j in itertools.combinations(range(n), 2)
        ]
        assert tau_union(*lists) == pytest.approx(sum(signs) / len(signs))


QRELS = {f"q{i}": {"a": 1, "b": 0, "c": 1} for i in range(4)}


def runs(seed: int, n: int) -> dict[str, dict[str, dict[str, float]]]:
    rng = np.random.default_rng(seed)
    return {
        f"run{k}": {q: {d: float(rng.integers(0, 50)) for d in "abcdef"} for q in QRELS}
        for k in range(n)
    }


def test_effects_are_those_of_the_values(tmp_path: Path) -> None:
    systems = runs(3, 4)
    for name, run in systems.items():
        trec.write_run(run, tmp_path / name)
    paths = {name: tmp_path / name for name in systems}
    result, missing = reproduction_of(QRELS, paths, ["map", "P.2"])
    assert missing == dict.fromkeys(systems, 0)
    for m, measure in enumerate(("map", "P_2")):
        value = {
            n: {q: row[measure] for q, row in trec.evaluate(QRELS, run, [measure]).items()}
            for n, run in systems.items()
        }
        for i, (first, second) in enumerate((("run0", "run2"), ("run1", "run3"))):
            gaps = [(value[first][q] - value[second][q]) ** 2 for q in QRELS]
            assert result.rmse[i, m] == pytest.approx(math.sqrt(sum(gaps) / 4))
        mean = [sum(value[f"run{k}"].values()) / 4 for k in range(4)]
        assert result.effect_ratio[m] == pytest.approx((mean[3] - mean[2]) / (mean[1] - mean[0]))
        change = (mean[1] - mean[0]) / mean[0] - (mean[3] - mean[2]) / mean[2]
        assert result.improvement[m] == pytest.approx(change)
    geometric = reproduction_of(QRELS, paths, ["gm_map"])[0]
    mean = [
        math.exp(np.mean([row["gm_map"] for row in trec.evaluate(QRELS, run, ["gm_map"]).values()]))
        for run in systems.values()
    ]
    assert geometric.effect_ratio == pytest.approx([(mean[3] - mean[2]) / (mean[1] - mean[0])])
    assert geometric.improvement == pytest.approx([mean[1] / mean[0] - mean[3] / mean[2]])
    order, other = (
        {
            q: sorted(row, key=lambda d, row=row: (row[d], d), reverse=True)
            for q, row in systems[name].items()
        }
        for name in ("run0", "run2")
    )
    assert result.tau[0] == pytest.approx(np.mean([tau_union(order[q], other[q]) for q in QRELS]))
    due = np.mean([rank_biased_overlap(order[q], other[q]).extrapolated for q in QRELS])
    assert result.overlap[0] == pytest.approx(due)


@pytest.mark.parametrize("seed", range(4))
def test_sums_in_another_order_are_no_effect(tmp_path: Path, seed: int) -> None:
    """The runs find the answers of 40 queries at ranks 1 to 40, each run in another order."""
    rng = np.random.default_rng(seed)
    qrels = {f"q{i}": {"answer": 1} for i in range(40)}
    paths = {}
    for name in ("baseline", "advanced", "baseline-2", "advanced-2"):
        run = {
            query: {"answer": -rank - 0.5, **{f"d{d}": -float(d) for d in range(40)}}
            for query, rank in zip(qrels, rng.permutation(40).tolist(), strict=True)
        }
        paths[name] = tmp_path / name
        trec.write_run(run, paths[name])
    result, _ = reproduction_of(qrels, paths, ["recip_rank", "P.1000"])
    assert np.isnan(result.effect_ratio).all()
    assert result.improvement.tolist() == [0.0, 0.0]
    assert [note.partition(";")[0] for note in result.notes()] == [
        f"{measure}: baseline and advanced have the same mean, so the first experiment has no "
        "effect to reproduce"
        for measure in ("recip_rank", "P_1000")
    ]


def test_nothing_is_relative_to_a_mean_of_0(tmp_path: Path) -> None:
    qrels, paths = {"q": {"answer": 1}}, {}
    for name, rank in {"a": 5, "b": 1, "c": 5, "d": 1}.items():
        paths[name] = tmp_path / name
        run = {"answer": 0.5 - rank, **{f"d{d}": -float(d) for d in range(9)}}
        trec.write_run({"q": run}, paths[name])
    result, _ = reproduction_of(qrels, paths, ["P.2"])
    assert result.effect_ratio.tolist() == [1.0]
    assert np.isnan(result.improvement).all()
    assert result.notes() == [
        "P_2: the mean of a and of c is 0, and nothing is relative to 0; its delta RI is nan"
    ]


TABLE_4 = {
    "evaluation": (0.2308, -0.2308, -0.0519, -0.4358, 0.2598),
    "lp_sample_rel_dist": (0.2308, -0.2051, 0.0256, -0.2051, 0.3377),
}


@pytest.mark.data
@pytest.mark.parametrize("distribution", TABLE_4)
def test_table_4(shared_data: Path, distribution: str) -> None:
    """Zhou et al. 2022: tau of sparse and complete test sets, from their published results."""
    metrics = ("mr", "mrr", "hits@1", "hits@3", "hits@10")
    values = []
    for name in ("FB-Test-S/evaluation", f"FB-Test-S-C/{distribution}"):
        path = shared_data / "kgc-sparsity" / "result" / f"{name}.csv"
        rows = sorted(csv.DictReader(path.read_text().splitlines()), key=lambda r: r["System"])
        values.append([[float(row[f"micro_{metric}"]) for row in rows] for metric in metrics])
    assert tau_b(*values).tolist() == pytest.approx(TABLE_4[distribution], abs=1.01e-4)


@pytest.mark.data
def test_figure_3(shared_data: Path) -> None:
    """Zhou et al. 2022, Figure 3: 13 systems by the labels of all, sparse and completed questions.

    It prints 0.7949 and -0.2308, and that the first system falls to place 8, the fourth to the last
    place, and that the twelfth rises to the fourth.
    """
    values = {}
    for name in ("FB-Test-O", "FB-Test-S", "FB-Test-S-C"):
        path = shared_data / "kgc-sparsity" / "result" / name / "evaluation.csv"
        rows = sorted(csv.DictReader(path.read_text().splitlines()), key=lambda r: r["System"])
        values[name] = [float(row["micro_mrr"]) for row in rows]
    systems = [row["System"] for row in rows]
    rankings = rankings_of_values(values, systems, resampling=Resampling(resamples=100))
    taus = dict(zip(rankings.pair_names(), (a.tau for a in rankings.over_systems), strict=True))
    assert taus["FB-Test-O", "FB-Test-S"] == pytest.approx(0.7949, abs=1e-4)
    assert taus["FB-Test-S", "FB-Test-S-C"] == pytest.approx(-0.2308, abs=1e-4)
    places = rankings.system_ranks()[:, np.argsort(rankings.system_ranks()[0])]
    assert places[2, [0, 3, 11]].tolist() == [8, 13, 4]
    by_hand = [
        (
            name,
            label,
            values[label][systems.index(name)],
            1 + sum(v > values[label][systems.index(name)] for v in values[label]),
        )
        for name in sorted(systems, key=lambda n: -values["FB-Test-O"][systems.index(n)])
        for label in values
    ]
    assert rankings.long_table().rows == by_hand


def test_rankings_by_other_queries_are_refused() -> None:
    def judged(*queries: str) -> Samples:
        return replace(samples(np.random.default_rng(1).random((len(queries), 3))), items=queries)

    rankings_of_samples({"x": judged("a", "b"), "y": judged("b", "c")}, resampling=FEW)
    rankings_of_samples({"x": judged("a", "b"), "y": replace(judged("c", "d"), items=())})
    with pytest.raises(InputError, match="x and z share no query: the first of x is 'a', that of"):
        rankings_of_samples({"x": judged("a", "b"), "y": judged("b", "c"), "z": judged("c", "d")})


def test_agreements_are_those_of_every_pair_of_rankings() -> None:
    rng = np.random.default_rng(0)
    base = rng.random((60, 5)) + np.linspace(0, 0.6, 5)
    named = {
        name: samples(base + rng.normal(0, width, (60, 5)), name=name)
        for name, width in (("x", 0.1), ("y", 0.5), ("z", 2.0))
    }
    rankings = rankings_of_samples(named, "t", resampling=Resampling(resamples=200, seed=3))
    drawn = {name: resample(one, Resampling(resamples=200, seed=3)) for name, one in named.items()}
    for k, (first, second) in enumerate((("x", "y"), ("x", "z"), ("y", "z"))):
        assert rankings.over_questions[k] == over_questions(drawn[first], drawn[second])
        means = named[first].means(), named[second].means()
        assert rankings.over_systems[k] == over_systems(
            *means, resampling=Resampling(resamples=200, seed=3)
        )
    assert rankings.agreement(2, 0) == rankings.over_questions[1]
    again = rankings_of_samples(
        named, "t", resampled=list(drawn.values()), resampling=Resampling(resamples=200, seed=3)
    )
    assert again.over_questions == rankings.over_questions
