"""The run that validation chooses, and the optimism of choosing by test, against plain loops."""

from __future__ import annotations

from statistics import mean, stdev

import numpy as np
import pytest
from compare_cases import N_ENTITIES, graph
from hypothesis import given
from hypothesis import strategies as st

import kgtrec
from kgtrec.ranking.ranks import Ranks
from kgtrec.study import choose_runs
from kgtrec.study.comparison.choice import ChosenRuns

WORLD = graph()
SPLIT = kgtrec.Graph.from_arrays(
    train=WORLD.splits["train"][60:],
    valid=WORLD.splits["train"][:60],
    test=WORLD.splits["test"],
    n_entities=N_ENTITIES,
    n_relations=4,
)


def ranks_of(split: str, seed: int) -> Ranks:
    questions = SPLIT.questions(split)
    scores = np.random.default_rng([seed, split == "valid"]).integers(0, 30, (len(questions), 40))
    return kgtrec.evaluate(scores.astype(np.float32), questions, progress=False).ranks


@pytest.mark.parametrize(("higher", "optimism"), [(True, 4.0), (False, 3.0)])
def test_optimism_is_not_negative(higher: bool, optimism: float) -> None:
    """Validation chooses the middle of three test values."""
    validation, values = np.array([0.1, 0.3, 0.2]), np.array([9.0, 5.0, 2.0])
    chosen = ChosenRuns("x", ("m",), (("1", "2", "3"),), (validation,), (values,), higher)
    assert chosen.optimism.tolist() == [optimism]


@given(
    sizes=st.lists(st.integers(1, 4), min_size=1, max_size=3),
    seeds=st.lists(st.integers(0, 6), min_size=12, max_size=12),
)
def test_the_choice_is_that_of_plain_loops(sizes: list[int], seeds: list[int]) -> None:
    rest = iter(seeds)
    drawn = {f"m{i}": [next(rest) for _ in range(size)] for i, size in enumerate(sizes)}
    if sum(sizes) < 2:
        return
    test = {name: [ranks_of("test", seed) for seed in own] for name, own in drawn.items()}
    valid = {name: [ranks_of("valid", seed) for seed in own] for name, own in drawn.items()}
    of_mrr, of_mr = choose_runs(test, valid, ["mrr", "mr"])
    for place, name in enumerate(drawn):
        scores = [mean(1 / rank for rank in run.rank().tolist()) for run in valid[name]]
        at = scores.index(max(scores))
        mrr = [mean(1 / rank for rank in run.rank().tolist()) for run in test[name]]
        mr = [mean(run.rank().tolist()) for run in test[name]]
        assert of_mrr.chosen[place] == of_mr.chosen[place] == at
        assert of_mrr.optimism[place] == pytest.approx(max(mrr) - mrr[at], abs=1e-12)
        assert of_mr.optimism[place] == pytest.approx(mr[at] - min(mr), abs=1e-12)
        for found, values in ((of_mrr, mrr), (of_mr, mr)):
            (row,) = [row for row in found.table().rows if row[0] == name]
            deviation = stdev(values) if len(values) > 1 else np.nan
            best = (max if found is of_mrr else min)(values)
            due = [scores[at], values[at], mean(values), deviation, best]
            assert row[1:3] == (len(values), str(at + 1))
            assert list(row[3:8]) == pytest.approx(due, abs=1e-12, nan_ok=True)
    by_value = [row[4] for row in of_mrr.table().rows]
    assert by_value == sorted(by_value, reverse=True)
    assert [row[4] for row in of_mr.table().rows] == sorted(row[4] for row in of_mr.table().rows)
