"""Slow definitions for the tests of measures: weights by counting, values tie by tie."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from rank_cases import KINDS, Case, columns, make_ranks, places

import kgtrec
from kgtrec.measures import Measure
from kgtrec.measures.calculator import Calculator

ALL_KINDS = (*KINDS, "expected")
WEIGHTED = ("micro", "question", "relation")
CLOSE = {"rel": 1e-11, "abs": 1e-12}

F: dict[str, Callable[[Fraction], float]] = {
    "mr": float,
    "mrr": lambda r: 1 / float(r),
    "hits@2": lambda r: float(r <= 2),
    "log_mrr": lambda r: 1 / math.log2(r + 1),
    "p_mrr@0.3": lambda r: float(r) ** -0.3,
    "gmr": lambda r: math.log(r),
}


def ask(case: Case, key: str) -> float:
    def no_trec(name: str) -> np.ndarray:
        raise AssertionError(f"{name} was asked for")

    return Calculator(make_ranks(columns(case, 5)), no_trec).value(Measure.parse(key))


def sides_of(case: Case) -> tuple[str, ...]:
    return ("head", "tail", "both") if len(case.sides) == 2 else (("head", "tail")[case.sides[0]],)


def weights(rows: list[dict[str, int]], averaging: str) -> list[Fraction]:
    """The weight of each row, by counting."""
    if averaging == "micro":
        return [Fraction(1) for _ in rows]
    sizes = Counter(row[averaging] for row in rows)
    return [Fraction(1, sizes[row[averaging]]) for row in rows]


def weighted_mean(values: list[float], weight: list[Fraction]) -> float:
    top = math.fsum(float(w) * v for w, v in zip(weight, values, strict=True))
    return top / float(sum(weight))


def over_ties(row: dict[str, int], kind: str, f: Callable[[Fraction], float]) -> float:
    ranks = places(row, kind)
    return math.fsum(f(rank) for rank in ranks) / len(ranks)


def simulated(counts: np.ndarray, question: np.ndarray, seed: int) -> kgtrec.Ranks:
    """Ranks of a random scorer without ties, one relation, tail side."""
    n = len(counts)
    greater = np.random.default_rng([17, seed]).integers(0, counts)
    columns = {"greater": greater, "candidates": counts, "question": question}
    columns |= {f"macro_{name}": columns[name] for name in ("greater", "candidates")}
    return make_ranks(columns | {"side": np.ones(n, np.int64), "triple": np.arange(n)})
