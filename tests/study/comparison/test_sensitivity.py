"""Stability on random parts of the judgements, and in tables of values, against plain Python."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from profiles import examples
from scipy import stats
from trec_oracle import measures as slow_measures

from kgtrec.study import data_sensitivity_of_runs, read_value_table, sensitivity_of_table

MEASURES = ("map_cut_3", "ndcg_cut_3", "recip_rank", "success_1", "recall_5", "P_5", "map_cut_20")
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
    found = data_sensitivity_of_runs(qrels, runs, MEASURES, shares=[share], repeats=3, seed=seed)
    pairs = [(q, d) for q in sorted(qrels) for d, grade in qrels[q].items() if grade > 0]
    assert (found.triples, found.unit) == (len(pairs), "judgements")
    size = max(1, round(share * len(pairs)))
    for number in range(3):
        chosen = np.random.default_rng([seed, number]).permutation(len(pairs))[:size]
        kept = {pairs[i] for i in chosen.tolist()}
        for row, name in zip(found.tau, MEASURES, strict=True):
            some = [round(slow_value(kept, run, name), 10) for run in runs.values()]
            whole = [round(slow_value({*pairs}, run, name), 10) for run in runs.values()]
            if len({*some}) == 4 == len({*whole}):  # sums of other order may break ties
                due = stats.kendalltau(some, whole).statistic
                assert row[0, number] == pytest.approx(due, abs=1e-12), name


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
