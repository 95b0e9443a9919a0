"""The same systems in several orders: places, tau, coverage of its intervals, pool depths."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from refusals import assert_refused, refusals
from scipy import stats

import kgtrec
from kgtrec._internal.bootstrap import Resampling
from kgtrec.errors import InputError, UsageError
from kgtrec.study.comparison.correlation import over_questions, over_systems, tau_ap, tau_b
from kgtrec.study.comparison.rankings import full_agreement, rankings_of_samples, rankings_of_values
from kgtrec.study.comparison.samples import Samples, resample
from kgtrec.study.pooling.depths import (
    curves_of_runs,
    depths_of,
    names_of_pool,
    with_intervals,
)
from kgtrec.study.pooling.pool import Pool

# Ties in evaluated scores are intended here, or drawn.
pytestmark = pytest.mark.filterwarnings("ignore::kgtrec.errors.TieWarning")


def samples(values: np.ndarray, name: str = "m", **more: object) -> Samples:
    names = tuple(f"s{k}" for k in range(values.shape[1]))
    owner = np.arange(len(values))
    return Samples(name, name, names, values, owner, "questions", **more)  # type: ignore[arg-type]


# -- Rankings ----------------------------------------------------------------------------------


def test_places_ties_and_directions() -> None:
    values = {"mrr": [0.3, 0.5, 0.3, 0.1], "mr": [9.0, 1.0, 2.0, 50.0]}
    rankings = rankings_of_values(
        values, "abcd", lower_is_better=["mr"], resampling=Resampling(resamples=300)
    )
    assert rankings.places().tolist() == [[2, 1, 2, 4], [3, 1, 2, 4]]
    (one,) = rankings.over_systems
    assert one.tau == pytest.approx(stats.kendalltau(values["mrr"], [-9, -1, -2, -50]).statistic)
    assert rankings.agreement(1, 0) is one
    assert rankings.over_questions == ()
    table = rankings.value_table()
    assert [row[0] for row in table.rows] == ["b", "a", "c", "d"]
    assert table.rows[1] == ("a", 0.3, 2, 9.0, 3)


def test_agreements_are_those_of_every_pair_of_rankings() -> None:
    rng = np.random.default_rng(0)
    base = rng.random((60, 5)) + np.linspace(0, 0.6, 5)
    named = {
        name: samples(base + rng.normal(0, width, (60, 5)), name)
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


def test_full_agreement_is_put_into_words() -> None:
    same = rankings_of_values(
        {"x": [1, 2, 3, 4], "y": [2, 3, 5, 9]}, "abcd", resampling=Resampling(resamples=100)
    )
    assert "random rankings of 4 systems agree fully with a chance of 1 in 24." in full_agreement(
        [same]
    )
    other = rankings_of_values(
        {"x": [1, 2, 3, 4], "y": [2, 5, 3, 9]}, "abcd", resampling=Resampling(resamples=100)
    )
    assert full_agreement([other]) == ""


@refusals(
    ("one", lambda: rankings_of_values({"x": [1, 2, 3]}, "abc"), UsageError,
     ("1 ranking cannot be compared",)),
    ("few", lambda: rankings_of_values({"x": [1, 2], "y": [1, 2]}, "ab"), UsageError,
     ("2 systems are too few to rank; give three or more",)),
    ("shapes", lambda: rankings_of_values({"x": [1, 2, 3], "y": [1, 2]}, "abc"), InputError,
     ("values have shapes (3,), (2,) for 3 systems",)),
    ("systems", lambda: rankings_of_samples({"x": samples(np.eye(4)), "y": samples(np.eye(3))}),
     InputError, ("different systems",)),
)  # fmt: skip
def test_rankings_that_are_refused(
    call: Callable[[], object], error: type[Exception], words: tuple[str, ...]
) -> None:
    assert_refused(call, error, words)


# -- Intervals of tau --------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("n_systems", "rho"), [(13, 0.6), (30, 0.6), (30, 0.95)])
def test_intervals_over_systems_cover(n_systems: int, rho: float) -> None:
    rng = np.random.default_rng(2)
    truth, trials = 2 / np.pi * np.arcsin(rho), 400
    inside = 0
    for seed in range(trials):
        x, y = rng.multivariate_normal([0, 0], [[1, rho], [rho, 1]], n_systems).T
        low, high = over_systems(x, y, resampling=Resampling(resamples=400, seed=seed)).tau_interval
        inside += low <= truth <= high
    assert inside / trials == pytest.approx(0.95, abs=3.1 * np.sqrt(0.95 * 0.05 / trials))


def order(n: int, kind: str) -> np.ndarray:
    """True values by a second measure, in ascending order by the first."""
    other = np.arange(float(n))
    if kind == "swapped":
        other[[0, 1, n - 2, n - 1]] = other[[1, 0, n - 1, n - 2]]
    elif kind == "half turned":
        other[: n // 2] = other[: n // 2][::-1]
    elif kind == "turned":
        other = other[::-1].copy()
    return other


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["same", "swapped", "half turned", "turned"])
@pytest.mark.parametrize("gap", [0.02, 0.06])
def test_intervals_over_questions_cover_what_endless_questions_would_give(
    kind: str, gap: float
) -> None:
    rng = np.random.default_rng(5)
    n, questions, trials = 9, 120, 60
    first, second = gap * np.arange(n), gap * order(n, kind)
    truth = float(tau_b(first, second)), float(tau_ap(first, second))
    inside, naive = np.zeros(2), 0
    for seed in range(trials):
        ease = rng.normal(0, 0.5, (questions, 1))  # some questions are hard for all systems
        drawn = [
            resample(
                samples(true + ease + rng.normal(0, 0.3, (questions, n))), Resampling(95, 150, seed)
            )
            for true in (first, second)
        ]
        agreement = over_questions(*drawn)
        for k, (low, high) in enumerate((agreement.tau_interval, agreement.tau_ap_interval)):
            inside[k] += low - 1e-9 <= truth[k] <= high + 1e-9
        low, high = np.quantile(tau_b(drawn[0].draws, drawn[1].draws), [0.025, 0.975])
        naive += low - 1e-9 <= truth[0] <= high + 1e-9
        assert agreement.tau_interval[0] <= low + 1e-12
        assert agreement.tau_interval[1] >= high - 1e-12
    assert (inside / trials >= 0.95 - 3.1 * np.sqrt(0.95 * 0.05 / trials)).all()
    if kind in ("same", "turned") and gap == 0.02:
        assert naive / trials < 0.5  # so draws alone are not enough


def test_settled_rankings_have_narrow_intervals() -> None:
    rng = np.random.default_rng(6)
    true = np.arange(6.0)
    drawn = [
        resample(samples(true + rng.normal(0, 0.5, (300, 6))), Resampling(95, 200, 1))
        for _ in range(2)
    ]
    agreement = over_questions(*drawn)
    assert agreement.tau_interval == (1.0, 1.0) == agreement.tau_ap_interval


# -- Depths of a pool --------------------------------------------------------------------------

QUERIES = [f"tail{q}" for q in range(30)]


@pytest.fixture
def pooled(tmp_path: Path) -> tuple[dict, dict, dict]:
    """Qrels, run files and depths: three systems that put other documents first."""
    rng = np.random.default_rng(8)
    runs, qrels, depth_of = {}, {}, {}
    lists = {name: {} for name in "abc"}
    for query in QUERIES:
        qrels[query] = {"seed": 1}
        depth_of[query] = {}
        for name in "abc":
            ranked = rng.permutation([*(f"d{k}" for k in range(8)), "seed"]).tolist()
            lists[name][query] = ranked
            for place, document in enumerate(ranked[:4], start=1):
                if document != "seed":
                    known = depth_of[query].get(document, 9)
                    depth_of[query][document] = min(known, place)
                    qrels[query][document] = int(rng.random() < 0.4)
    for name, ranked_lists in lists.items():
        runs[name] = tmp_path / name
        runs[name].write_text("".join(
            f"{query} Q0 {d} 1 {20 - k} {name}\n"
            for query, ranked in ranked_lists.items() for k, d in enumerate(ranked)
        ))  # fmt: skip
    return qrels, runs, depth_of


def test_depth_curves_of_runs_by_their_definition(pooled: tuple[dict, dict, dict]) -> None:
    qrels, runs, depth_of = pooled
    curves = curves_of_runs(
        qrels, runs, depth_of, ["map", "P_5"], resampling=Resampling(resamples=150)
    )
    assert (curves.depths, curves.reference, curves.systems) == (
        (0, 1, 2, 3, 4),
        0,
        ("a", "b", "c"),
    )
    values = np.empty((2, 5, 3))
    for depth in range(5):
        judged = {
            query: {d: r for d, r in row.items() if depth_of[query].get(d, 0) <= depth}
            for query, row in qrels.items()
        }
        for k, name in enumerate("abc"):
            rows = kgtrec.trec.evaluate(judged, runs[name], ["map", "P_5"])
            values[:, depth, k] = np.mean([[r["map"], r["P_5"]] for r in rows.values()], axis=0)
    own = dict(zip(curves.measures, curves.values, strict=True))
    assert own["map"] == pytest.approx(values[0])
    assert own["P_5"] == pytest.approx(values[1])
    tau = dict(zip(curves.measures, curves.tau, strict=True))
    for depth in range(5):
        due = stats.kendalltau(values[0, depth], values[0, 0]).statistic
        assert tau["map"][depth] == pytest.approx(due)
    low, high = curves.interval
    assert (low <= curves.tau + 1e-12).all()
    assert (curves.tau <= high + 1e-12).all()
    rows = curves.interval_table().rows
    assert [row[:2] for row in rows[:2]] == [(curves.measures[0], "0"), (curves.measures[0], "1")]
    assert list(curves.values_by_name()["map"]["4"]) == ["a", "b", "c"]
    assert "Least like depth 0" in curves.least_alike()


def test_questions_without_a_judgement_yet_are_unanswered(pooled: tuple[dict, dict, dict]) -> None:
    """Most questions have only documents judged later: AP 0, and gm_map's floor."""
    _, runs, depth_of = pooled
    qrels = {query: {max(row, key=row.get): 1} for query, row in depth_of.items()}
    depth_of[QUERIES[0]] = {}  # as for a seed: judged at every depth
    measures = ["map", "gm_map", "rbp_resid"]
    curves = curves_of_runs(qrels, runs, depth_of, measures, resampling=Resampling(resamples=100))
    own = dict(zip(curves.measures, curves.values, strict=True))
    first = qrels[QUERIES[0]]
    for k, name in enumerate("abc"):
        ap = kgtrec.trec.evaluate({QUERIES[0]: first}, runs[name], ["map"])[QUERIES[0]]["map"]
        assert own["map"][0, k] == pytest.approx(ap / 30)
        assert own["gm_map"][0, k] == pytest.approx(ap ** (1 / 30) * 1e-5 ** (29 / 30))
    assert (own["rbp_resid"][0] > 29 / 30).all()  # nothing is judged


def test_depth_intervals_draw_the_same_questions_at_every_depth() -> None:
    rng = np.random.default_rng(1)
    one = samples(rng.random((40, 4)))
    curves = with_intervals([[one], [one]], (0, 1), resampling=Resampling(resamples=150))
    # By the same labels, each draw agrees with itself.
    assert curves.interval[:, 0].tolist() == [[1.0, 1.0], [1.0, 1.0]]


def test_depths_of_a_pool() -> None:
    graph = kgtrec.Graph.from_arrays(
        test=np.array([[0, 0, 1]]), n_entities=4, entities=["A", "B", "C", "D"], relations=["r"]
    )
    pool = Pool(
        graph=graph, systems=("one", "two"), depth=5,
        triples=np.array([[0, 0, 2], [3, 0, 1], [0, 0, 3]]),
        places=np.array([[1, 0], [2, 5], [0, 4]]),
        asked=np.array([[False, True], [True, False], [True, True]]),
        questions=["tail0", "head0", "head7,tail0"],
    )  # fmt: skip
    assert depths_of(pool) == {"tail0": {"C": 1, "D": 4}, "head0": {"D": 2}, "head7": {"A": 4}}


def test_reverse_questions_are_asked_from_their_triples_depth_on(tmp_path: Path) -> None:
    graph = kgtrec.Graph.from_arrays(
        test=np.array([[0, 0, 1], [3, 0, 2]]), n_entities=4, entities=["A", "B", "C", "D"],
        relations=["r"],
    )  # fmt: skip
    names = dict(zip(zip(*(getattr(graph.questions("test"), column).tolist()
                           for column in ("side", "entity", "relation")), strict=True),
                     graph.questions("test").ids, strict=True))  # fmt: skip
    asked, reverse = names[0, 1, 0], names[1, 3, 0]  # a seed asks (?, r, B), none asks (D, r, ?)
    pool = Pool(graph, ("one",), 5, np.array([[3, 0, 1]]), np.array([[4]]),
                np.array([[True, False]]), [asked])  # fmt: skip
    assert names_of_pool(pool) == names
    assert depths_of(pool, names) == {asked: {"D": 4}, reverse: {"B": 4}}
    path = tmp_path / "names.tsv"
    path.write_text("head9\tB\tr\ntail9\tD\tr\n")
    assert names_of_pool(replace(pool, questions=["elsewhere"])) == {}
    with pytest.raises(UsageError, match="other question names than the pool"):
        names_of_pool(pool, path)
    own = replace(pool, questions=["head9"])
    assert depths_of(own, names_of_pool(own, path)) == {"head9": {"D": 4}, "tail9": {"B": 4}}


def test_depths_that_are_refused(pooled: tuple[dict, dict, dict]) -> None:
    qrels, runs, depth_of = pooled
    with pytest.raises(InputError, match="qrels judge no pooled document"):
        curves_of_runs(qrels, runs, {"tail0": {"other": 1}}, ["map"])
    with pytest.raises(UsageError, match="3 or more"):
        curves_of_runs(qrels, dict(list(runs.items())[:2]), depth_of, ["map"])
    with pytest.raises(UsageError, match="is not a depth"):
        curves_of_runs(
            qrels, runs, depth_of, ["map"], reference=7, resampling=Resampling(resamples=100)
        )


def test_micro_metrics_at_every_depth_are_those_of_loops(
    pooled: tuple[dict, dict, dict],
) -> None:
    qrels, runs, depth_of = pooled
    for query in QUERIES[::2]:  # some have no judgement before pooling
        del qrels[query]["seed"]
    curves = curves_of_runs(
        qrels, runs, depth_of, ["kg_mrr", "kg_hits.2"], resampling=Resampling(resamples=100)
    )
    own = dict(zip(curves.measures, curves.values, strict=True))
    for depth in curves.depths:
        for place, name in enumerate(curves.systems):
            ranks = []
            lists: dict[str, list[str]] = {}
            for line in runs[name].read_text().splitlines():
                lists.setdefault(line.split()[0], []).append(line.split()[2])
            for query, row in qrels.items():
                answers = [d for d, r in row.items() if r and depth_of[query].get(d, 0) <= depth]
                for answer in answers:
                    above = lists[query][: lists[query].index(answer)]
                    ranks.append(1 + sum(d not in answers for d in above))
            line = curves.depths.index(depth)
            hits = np.mean([r <= 2 for r in ranks])
            for end in ("low", "high"):  # the runs hold every answer
                assert own[f"kg_mrr_{end}"][line, place] == pytest.approx(
                    np.mean([1 / r for r in ranks])
                )
                assert own[f"kg_hits_2_{end}"][line, place] == pytest.approx(hits)
