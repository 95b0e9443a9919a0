"""One-to-one assignments against loops over all permutations."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kgtrec
from kgtrec.study import assign
from kgtrec.study.sets import assignment

SEEDS = st.integers(0, 10_000)


def matrix(seed: int, n: int, m: int, levels: int) -> Any:
    random = np.random.default_rng(seed)
    return (
        random.integers(-levels, levels, (n, m)).astype(float) if levels else random.random((n, m))
    )


@given(SEEDS, st.integers(1, 5), st.integers(1, 5), st.integers(0, 4))
def test_optimal_has_the_largest_sum(seed: int, n: int, m: int, levels: int) -> None:
    scores = matrix(seed, n, m, levels)
    chosen = assignment.assign_optimal(scores)
    pairs = [(row, column) for row, column in enumerate(chosen.tolist()) if column >= 0]
    assert len(pairs) == min(n, m) == len({column for _, column in pairs})
    wide = scores if n <= m else scores.T
    sums = [
        sum(wide[row, column] for row, column in enumerate(order))
        for order in permutations(range(max(n, m)), min(n, m))
    ]
    assert sum(scores[pair] for pair in pairs) == pytest.approx(max(sums), abs=1e-9)


@given(SEEDS, st.integers(1, 6), st.integers(1, 6), st.integers(0, 3))
def test_stable_has_no_pair_that_prefers_each_other(seed: int, n: int, m: int, levels: int) -> None:
    scores = matrix(seed, n, m, levels)
    chosen = assignment.assign_stable(scores).tolist()
    partner = {column: row for row, column in enumerate(chosen) if column >= 0}
    assert len(partner) == min(n, m)
    for row in range(n):
        for column in range(m):
            row_prefers = chosen[row] < 0 or scores[row, column] > scores[row, chosen[row]]
            other = partner.get(column)
            column_prefers = other is None or scores[row, column] > scores[other, column]
            assert not (row_prefers and column_prefers)


def gale_and_shapley(scores: Any) -> dict[int, int]:
    """Rows propose to columns, best first; a column keeps the best proposal."""
    engaged: dict[int, int] = {}
    free, asked = [*range(len(scores))], dict.fromkeys(range(len(scores)), 0)
    orders = [sorted(range(scores.shape[1]), key=lambda c, r=r: -scores[r, c]) for r in asked]
    while free:
        row = free.pop()
        if asked[row] == scores.shape[1]:
            continue
        column = orders[row][asked[row]]
        asked[row] += 1
        if column not in engaged or scores[row, column] > scores[engaged[column], column]:
            free += [engaged[column]] if column in engaged else []
            engaged[column] = row
        else:
            free.append(row)
    return {row: column for column, row in engaged.items()}


@given(SEEDS, st.integers(1, 7), st.integers(1, 7))
def test_stable_is_that_of_gale_and_shapley(seed: int, n: int, m: int) -> None:
    scores = matrix(seed, n, m, 0)
    due = gale_and_shapley(scores)
    assert assignment.assign_stable(scores).tolist() == [due.get(row, -1) for row in range(n)]


@given(SEEDS, st.integers(1, 7), st.integers(1, 7))
def test_mutual_pairs_are_each_others_best(seed: int, n: int, m: int) -> None:
    scores = matrix(seed, n, m, 0)
    for row, column in enumerate(assignment.assign_mutual(scores).tolist()):
        best = int(scores[row].argmax())
        assert column == (best if scores[:, best].argmax() == row else -1)


@pytest.mark.parametrize("method", ["mutual", "stable", "optimal"])
@pytest.mark.parametrize("csls", [0, 2])
def test_assignments_are_judged_as_sets(method: str, csls: int) -> None:
    random = np.random.default_rng(1)
    left, right = random.normal(size=(9, 3)), random.normal(size=(8, 3))
    right[:6] = left[:6] + random.normal(size=(6, 3)) / 2
    pairs = [(row, row) for row in range(6)]
    sets = assign(pairs, left, right, method=method, dangling=[7, 8], csls=csls)
    unit = [table / np.linalg.norm(table, axis=1)[:, None] for table in (left, right)]
    rows, columns = [*range(6), 7, 8], [*range(6)]
    scores = (unit[0] @ unit[1].T)[np.ix_(rows, columns)].astype(np.float64)
    if csls:
        scores = (
            scores
            - np.sort(scores, axis=1)[:, -2:].mean(axis=1)[:, None] / 2
            - (np.sort(scores, axis=0)[-2:].mean(axis=0)[None] / 2)
        )
    solver = {
        "mutual": assignment.assign_mutual,
        "stable": assignment.assign_stable,
        "optimal": assignment.assign_optimal,
    }[method]
    chosen = solver(scores).tolist()
    hits = sum(chosen[row] == row for row in range(6))
    named = sum(column >= 0 for column in chosen[:6])
    assert sets["micro.recall"] == hits / 6
    assert sets["micro.precision"] == pytest.approx(hits / named)
    assert sets["size"] == named / 6
    ((count, empty, _, recall, _),) = sets.abstention().rows
    assert (count, empty) == (2, 8 - sum(column >= 0 for column in chosen))
    assert recall == sum(column < 0 for column in chosen[6:]) / 2


def test_bad_assignments_are_one_sentence() -> None:
    left, right = np.eye(4), np.eye(4)
    with pytest.raises(kgtrec.UsageError, match=r"3 left and 2 right entities cannot be assigned"):
        assign([(0, 0), (1, 1), (2, 1)], left, right)
    with pytest.raises(
        kgtrec.InputError, match="dangling entity 1 is not an id below 4, or a pair"
    ):
        assign([(0, 0), (1, 1)], left, right, dangling=[1])
    with pytest.raises(kgtrec.UsageError, match="method='best' is unknown"):
        assign([(0, 0)], left, right, method="best")
    with pytest.raises(kgtrec.InputError, match="similarities are infinite"):
        assign([(0, 0), (1, 1)], similarity=np.full((2, 2), np.inf))
