"""Measures of the first k that other programs have, and label ranking average precision."""

from __future__ import annotations

import numpy as np
import pytest
from question_cases import ranking_case
from trec_cases import lists_of
from trec_oracle import label_ranking

import kgtrec
from kgtrec import trec
from kgtrec.errors import UsageError
from kgtrec.trec.measures.names import resolve
from kgtrec.trec.measures.ties import TIES, tie_effect, values_over_ties
from kgtrec.trec.measures.trec_measure import EvalOptions
from kgtrec.trec.measures.values import native_values, values

pytestmark = pytest.mark.filterwarnings("ignore::kgtrec.errors.TieWarning")


def torchmetrics_ap(relevant: list[bool], k: int) -> float:
    """RetrievalMAP(top_k=k): the mean over the relevant ones among the first k."""
    top = np.array(relevant[:k])
    places = np.flatnonzero(top) + 1
    return float((np.arange(1, len(places) + 1) / places).mean()) if len(places) else 0.0


def recommender_ap(relevant: list[bool], n_relevant: int, k: int) -> float:
    """RecBole's MAP@k: cumulative precision at the relevant ones, over min(k, R)."""
    top = np.array(relevant[:k], float)
    precision = top.cumsum() / np.arange(1, len(top) + 1)
    return float((precision * top).sum() / min(k, n_relevant))


def test_first_k_as_other_programs_define_it() -> None:
    rng = np.random.default_rng(4)
    for _ in range(40):
        relevant = (rng.random(12) < 0.3).tolist()
        missed = int(rng.integers(0, 3))
        n_relevant = sum(relevant) + missed
        if not n_relevant:
            continue
        lists = lists_of([([int(r) for r in relevant], [1] * n_relevant + [0] * 3)])
        for k in (1, 3, 10):
            names = [f"map_hits_{k}", f"relative_map_{k}", f"F1_{k}", f"P_{k}", f"recall_{k}"]
            row = {name: float(v[0]) for name, v in values(lists, resolve(names)).items()}
            assert row[f"map_hits_{k}"] == pytest.approx(torchmetrics_ap(relevant, k), rel=1e-15)
            due = recommender_ap(relevant, n_relevant, k)
            assert row[f"relative_map_{k}"] == pytest.approx(due, rel=1e-14)
            p, r = row[f"P_{k}"], row[f"recall_{k}"]
            assert row[f"F1_{k}"] == pytest.approx(2 * p * r / (p + r) if p else 0.0, rel=1e-14)


def test_a_later_hit_lowers_the_mean_over_hits() -> None:
    """The relevant one of the tie last: 1; first: (1 + 2/3) / 2; half of the orders each."""
    run = {"q": {"a": 3.0, "x": 2.0, "b": 1.0, "y": 1.0}}
    qrels = {"q": {"a": 1, "b": 1}}
    for ties, due in (("min", 5 / 6), ("max", 1.0), ("expected", 11 / 12)):
        row = trec.evaluate(qrels, run, ["AP_hits@3"], ties=ties)
        assert row["q"]["AP_hits@3"] == pytest.approx(due, rel=1e-15)


def test_large_ties_over_the_cutoff() -> None:
    """All of 4,000 tied: by symmetry the precision at a hit is that of a random draw."""
    n, relevant, k = 4000, 1000, 50
    lists = lists_of([([1] * relevant + [0] * (n - relevant), [1] * relevant)], scores=[1.0] * n)
    columns = resolve([f"map_hits.{k}", f"F1.{k}", f"relative_map.{k}"])
    forms = {ties: values_over_ties(lists, columns, ties=ties) for ties in TIES}
    assert forms["max"][f"map_hits_{k}"][0] == 1.0
    assert forms["min"][f"map_hits_{k}"][0] == 0.0
    rng = np.random.default_rng(1)
    draws = [torchmetrics_ap((rng.permutation(n)[:k] < relevant).tolist(), k) for _ in range(4000)]
    error = np.std(draws) / np.sqrt(len(draws))
    assert abs(forms["expected"][f"map_hits_{k}"][0] - np.mean(draws)) < 4 * error
    share = k * relevant / n
    assert forms["expected"][f"F1_{k}"][0] == pytest.approx(2 * share / (k + relevant), rel=1e-12)


def sklearn_lrap(relevant: np.ndarray, scores: np.ndarray) -> float:
    metrics = pytest.importorskip("sklearn.metrics")
    in_double = scores[None].astype(float)  # scikit-learn 1.9 computes in the dtype of scores
    return float(metrics.label_ranking_average_precision_score(relevant[None], in_double))


def test_lrap_of_ranks_is_that_of_scikit_learn() -> None:
    """Per question over the candidates that the filter keeps; with many ties."""
    for seed in range(4):
        questions, scores = ranking_case(seed)
        ranks = kgtrec.rank(scores, questions)[0]
        due = []
        for number in range(len(questions)):
            kept = np.ones(questions.n_labels, bool)
            kept[questions.removed[number]] = False
            relevant = np.zeros(questions.n_labels, bool)
            relevant[questions.answers[number]] = True
            due.append(sklearn_lrap(relevant[kept | relevant], scores[number][kept | relevant]))
        assert native_values(ranks, ["lrap"])["lrap"] == pytest.approx(due, rel=1e-12)
        shuffled = ranks.subset(np.random.default_rng(seed).permutation(len(ranks)))
        assert native_values(shuffled, ["lrap"])["lrap"] == pytest.approx(due, rel=1e-12)
        result = kgtrec.Result(ranks)
        assert result["both.macro.lrap"] == pytest.approx(np.mean(due), rel=1e-12)
        whole = kgtrec.evaluate(scores, questions, measures=["both.macro.lrap"], run_depth=23)
        assert whole["both.macro.LRAP"] == pytest.approx(np.mean(due), rel=1e-12)


def test_lrap_of_runs_is_that_of_scikit_learn() -> None:
    rng = np.random.default_rng(2)
    for _ in range(30):
        n = int(rng.integers(1, 9))
        scores, relevant = rng.integers(0, 4, n).astype(float), rng.random(n) < 0.4
        if not relevant.any():
            continue
        run = {"q": {f"d{i}": float(score) for i, score in enumerate(scores)}}
        qrels = {"q": {f"d{i}": int(r) for i, r in enumerate(relevant)}}
        row = trec.evaluate(qrels, run, ["LRAP", "map"])["q"]
        assert row["LRAP"] == pytest.approx(sklearn_lrap(relevant, scores), rel=1e-12)
        documents = list(zip(scores.tolist(), relevant.astype(int).tolist(), strict=True))
        judged = relevant.astype(int).tolist()
        assert row["LRAP"] == pytest.approx(label_ranking(documents, judged, 1), rel=1e-12)
        for ties in TIES:
            assert trec.evaluate(qrels, run, ["LRAP"], ties=ties)["q"]["LRAP"] == row["LRAP"]


def test_lrap_of_cut_lists_levels_and_single_precision() -> None:
    documents: list[tuple[float, int | None]] = [
        (2.0, None),
        (2.0, 2),
        (1.0, 1),
        (0.5, 0),
        (0.5, 2),
    ]
    lists = lists_of([([r for _, r in documents], [2, 2, 1, 0])], scores=[s for s, _ in documents])
    (column,) = resolve(["lrap"])

    def value(**options: int) -> float:
        return float(values(lists, [column], EvalOptions(**options))["lrap"][0])

    assert value() == pytest.approx((1 / 2 + 2 / 3 + 3 / 5) / 3)
    assert value(level=2) == pytest.approx((1 / 2 + 2 / 5) / 2)
    assert value(judged_only=True) == pytest.approx((1 + 1 + 3 / 4) / 3)
    assert value(most=4) == pytest.approx((1 / 2 + 2 / 3) / 3)
    assert tie_effect(lists, [column]).queries == 0
    assert tie_effect(lists, [column], EvalOptions(most=4)).queries == 1
    near = {"q": {"a": 1.000000001, "b": 1.0}}
    qrels = {"q": {"a": 1}}
    assert trec.evaluate(qrels, near, ["lrap"])["q"]["lrap"] == 1.0
    assert trec.evaluate(qrels, near, ["lrap"], compat=9)["q"]["lrap"] == 0.5
    empty = lists_of([([], [1])])
    assert values(empty, [column])["lrap"].tolist() == [0.0]
    with pytest.raises(UsageError, match="does not support lrap"):
        trec.evaluate(qrels, near, ["lrap"], ties="expected", most=1)
