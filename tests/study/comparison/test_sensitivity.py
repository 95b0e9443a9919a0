"""Stability on random parts of the judgements, and in tables of values, against plain Python."""

from __future__ import annotations

import math
import warnings
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from profiles import examples
from scipy import stats
from scipy.stats import rankdata
from trec_oracle import measures as slow_measures

from kgtrec import trec
from kgtrec.errors import TieWarning
from kgtrec.study import data_sensitivity_of_runs, read_value_table, sensitivity_of_table
from kgtrec.study.comparison.sensitivity import _find_answers
from kgtrec.study.comparison.subsets import subset_values_of_answers
from kgtrec.trec.measures.names import resolve

# Ties in runs are drawn.
pytestmark = pytest.mark.filterwarnings("ignore::kgtrec.errors.TieWarning")

MEASURES = (
    *("map_cut_3", "ndcg_cut_3", "recip_rank", "success_1", "recall_5", "P_5", "map_cut_20"),
    *("map", "recip_rank_cut_2"),
)
DOCUMENTS = [f"d{number}" for number in range(9)]


def slow_value(kept: set[tuple[str, str]], run: dict[str, dict[str, float]], name: str) -> float:
    """The mean over queries that keep a judgement; nothing is retrieved for absent queries."""
    values = []
    for query in sorted({query for query, _ in kept}):
        row = run.get(query, {})
        order = sorted(row, key=lambda d: (row[d], d.encode()), reverse=True)
        relevant = [d for q, d in sorted(kept) if q == query]
        grades = [1 if d in relevant else None for d in order]
        values.append(slow_measures(grades, [1] * len(relevant), 1)[name])
    return math.fsum(values) / len(values)


def slow_values_of_answers(
    kept: set[tuple[str, str]], run: dict[str, dict[str, float]], entities: int
) -> dict[str, Fraction]:
    """Both ends of means over the kept answers; other documents are no answers."""
    best, worst = [], []
    for query, answer in sorted(kept):
        row = run.get(query, {})
        answers = [d for q, d in kept if q == query]
        others = [score for d, score in row.items() if d not in answers]
        if answer in row:
            score = row[answer]
            above, tied = sum(s > score for s in others), sum(s == score for s in others)
            ranks = [above + 1 + Fraction(tied, 2)] * 2
        else:
            ranks = [Fraction(len(others) + 1), Fraction(entities - len(answers) + 1)]
        best.append(ranks[0])
        worst.append(ranks[1])
    n = len(kept)
    return {
        "kg_mrr_high": sum(1 / rank for rank in best) / n,
        "kg_mrr_low": sum(1 / rank for rank in worst) / n,
        "kg_hits_3_high": Fraction(sum(rank <= 3 for rank in best), n),
        "kg_hits_3_low": Fraction(sum(rank <= 3 for rank in worst), n),
        "kg_mr_low": sum(best) / n,
        "kg_mr_high": sum(worst) / n,
    }


@examples(0.3)
@given(seed=st.integers(0, 10**6), share=st.floats(0.05, 0.95))
def test_parts_of_judgements_by_their_definition(seed: int, share: float) -> None:
    rng = np.random.default_rng(seed)
    qrels = {
        f"q{i}": {d: int(rng.integers(0, 3)) for d in DOCUMENTS if rng.random() < 0.6}
        for i in rng.permutation(5)
    }
    qrels["q0"]["d0"] = 1
    runs = {
        f"s{k}": {
            f"q{i}": {d: float(rng.integers(0, 5)) for d in DOCUMENTS if rng.random() < 0.7}
            for i in range(5)
            if i == 0 or rng.random() < 0.9
        }
        for k in range(4)
    }
    found = data_sensitivity_of_runs(
        qrels,
        runs,
        [*MEASURES, "kg_mrr", "kg_hits.3", "kg_mr"],
        shares=[share],
        repeats=3,
        seed=seed,
        entities=20,
    )
    n_of_queries = len(MEASURES)
    pairs = [(q, d) for q in sorted(qrels) for d, grade in qrels[q].items() if grade > 0]
    assert (found.triples, found.unit) == (len(pairs), "judgements")
    size = max(1, round(share * len(pairs)))
    for number in range(3):
        chosen = np.random.default_rng([seed, number]).permutation(len(pairs))[:size]
        kept = {pairs[i] for i in chosen.tolist()}
        every = {name: slow_values_of_answers({*pairs}, run, 20) for name, run in runs.items()}
        parts = {name: slow_values_of_answers(kept, run, 20) for name, run in runs.items()}
        assert {*found.measures[n_of_queries:]} == {*parts["s0"]}
        for row, name in zip(found.tau[n_of_queries:], found.measures[n_of_queries:], strict=True):
            exact = ([by_run[name] for by_run in each.values()] for each in (parts, every))
            # Exact fractions in order of size: sums of other order may break ties of floats.
            some, whole = (rankdata([round(float(v), 10) for v in values]) for values in exact)
            if len({*some}) == 4 == len({*whole}):
                due = stats.kendalltau(some, whole).statistic
                assert row[0, number] == pytest.approx(due, abs=1e-12), name
        for row, name in zip(found.tau[:n_of_queries], MEASURES, strict=True):
            some = [round(slow_value(kept, run, name), 10) for run in runs.values()]
            whole = [round(slow_value({*pairs}, run, name), 10) for run in runs.values()]
            if len({*some}) == 4 == len({*whole}):  # sums of other order may break ties
                due = stats.kendalltau(some, whole).statistic
                assert row[0, number] == pytest.approx(due, abs=1e-12), name


@pytest.mark.filterwarnings("ignore::kgtrec.errors.AnswerNote")
def test_values_of_answers_on_any_part_by_their_definition() -> None:
    """The values themselves, which rankings only compare."""
    rng = np.random.default_rng(5)
    qrels = {f"q{i}": {d: 1 for d in DOCUMENTS if rng.random() < 0.6} for i in range(4)}
    run = {f"q{i}": {d: float(rng.integers(0, 4)) for d in DOCUMENTS[:7]} for i in range(3)}
    pairs = [(q, d) for q in sorted(qrels) for d in qrels[q]]
    columns = resolve(["kg_mrr", "kg_hits.3", "kg_mr"], of_answers=True)
    answers = _find_answers(qrels, {"s": run}, [], columns, 20)
    values_on = subset_values_of_answers(answers.question, answers.listed, columns, 20)
    subsets = rng.random((30, len(pairs))) < rng.random((30, 1))
    subsets[:, 0] = True
    values = values_on(subsets)
    for number, subset in enumerate(subsets):
        kept = {pairs[i] for i in np.flatnonzero(subset).tolist()}
        due = slow_values_of_answers(kept, run, 20)
        found = dict(zip([c.name for c in columns], values[:, number, 0], strict=True))
        assert found == pytest.approx({name: float(value) for name, value in due.items()})
        part = {q: {d: int((q, d) in kept) for d in qrels[q]} for q in {q for q, _ in kept}}
        names = ["kg_mrr", "kg_hits.3", "kg_mr"]
        whole = trec.evaluate(part, run, names, summary=True, entities=20, complete=True)
        assert found == pytest.approx({name: whole[name] for name in found})


@pytest.mark.filterwarnings("default::kgtrec.errors.TieWarning")
def test_ties_that_change_a_measure_are_told() -> None:
    qrels = {"q": {"a": 2, "b": 1}, "r": {"c": 1}}
    sure = {"q": {"a": 2.0, "b": 2.0, "x": 1.0}, "r": {"c": 1.0}}
    tied = {"q": {"a": 2.0, "x": 2.0}, "r": {"c": 1.0}}
    runs = {"s": sure, "t": tied, "u": sure}
    how = {"shares": [0.5], "repeats": 2}
    text = (
        "t: 1 of 2 queries have ties that change a measure, recip_rank by up to 0.5; parts order "
        "tied documents by name, as trec_eval does"
    )
    with pytest.warns(TieWarning) as told:
        data_sensitivity_of_runs(qrels, runs, ["recip_rank", "kg_mrr"], **how)
    assert [str(warning.message) for warning in told] == [text]
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # grades do not matter, and kg_mrr does not order ties
        data_sensitivity_of_runs(qrels, runs | {"t": sure}, ["ndcg_cut_20"], **how)
        data_sensitivity_of_runs(qrels, runs, ["kg_mrr"], **how)


def test_a_table_of_values_has_its_own_parts(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    values = {
        (share, repeat): rng.random((4, 2))
        for share in ("1", "0.5", "0.125")
        for repeat in range(1 if share == "1" else 3)
    }
    lines = ["System,Share,Repeat,micro_mrr,micro_mr"]
    lines += [
        f"s{k},{share},{repeat},{mrr},{mr}"
        for (share, repeat), rows in values.items()
        for k, (mrr, mr) in enumerate(rows.tolist())
    ]
    path = tmp_path / "published.csv"
    path.write_text("\n".join(lines))
    found = sensitivity_of_table(read_value_table(path), ["micro_mrr", "micro_mr"])
    assert found.shares.tolist() == [0.125, 0.5]
    for column in range(2):
        for row, share in enumerate(("0.125", "0.5")):
            for repeat in range(3):
                some, whole = values[share, repeat][:, column], values["1", 0][:, column]
                due = stats.kendalltau(some, whole).statistic
                assert found.tau[column, row, repeat] == pytest.approx(due)
    assert [row[0] for row in found.table().rows] == ["12.5%", "50%"]
