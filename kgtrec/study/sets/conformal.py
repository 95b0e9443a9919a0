"""Conformal prediction: how deep sets must be to contain a claimed share of the answers.

A unit is an answer (a triple and a side), or a question with the best or the worst of its answers.
Of n units of valid, the ceil((n + 1)(1 - A))-th smallest value is the limit. If units of valid and
test are exchangeable, a unit of test is within it with probability 1 - A or more. Values of tied
answers on valid are their worst, those on test their best, so ties never lower coverage.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from kgtrec._internal.arrays import Array, Float64, Int64
from kgtrec.ranking.instances import term_of
from kgtrec.ranking.ranks import Ranks

Limits = dict[str | None, float]
"""The limit of each relation by its name. The key None is for questions of all other relations."""


def order_statistic(values: Array, error: Fraction) -> float:
    """Return the ceil((n + 1)(1 - error))-th smallest of n values; infinity if n is too small."""
    index = -((-(len(values) + 1) * (1 - error)) // 1)
    if index > len(values):
        return np.inf
    return float(np.partition(values, int(index) - 1)[int(index) - 1])


def group_relations(
    relations: list[str] | None, n_units: int, least: int
) -> tuple[Int64, list[str | None]]:
    """Group units by relation. Return the group of each unit, and the relation of each group.

    - relations: Name of the relation of each unit; None puts all units into one group.
    - least: Relations with fewer units share a group, whose relation is None.
    """
    if relations is None:
        return np.zeros(n_units, np.int64), [None]
    names, code, counts = np.unique(relations, return_inverse=True, return_counts=True)
    group = np.where(counts < least, len(names), np.arange(len(names)))[code.reshape(-1)]
    present, group = np.unique(group, return_inverse=True)
    return group.reshape(-1), [[*names.tolist(), None][i] for i in present]


def limits_of(limits: Limits, relations: list[str] | None, n_questions: int) -> Float64:
    """Return the limit of each question from its relation, float64 (n_questions,)."""
    shared_limit = limits.get(None, np.inf)
    names = [None] * n_questions if relations is None else relations
    return np.array([limits.get(name, shared_limit) for name in names], np.float64)


def units_of(values: Float64, question: Int64, unit: str) -> tuple[Float64, Int64]:
    """Return the value of each unit, and the row of the answer that it comes from.

    - values, question, shape (n,): Value of each answer, and its question, numbered without gaps.
    - unit: "answer", or "question-any" or "question-all": the lowest or the highest value of each
      question.
    """
    if unit == "answer":
        return values, np.arange(len(values))
    best = unit == "question-any"
    order = np.lexsort((values if best else -values, question))
    rows = order[np.flatnonzero(np.diff(question[order], prepend=-1))]
    return values[rows], rows


def relations_of(ranks: Ranks, rows: Int64) -> list[str] | None:
    """Return the names of the relations of some instances; None if these have no relations."""
    term = term_of(ranks, "relation")
    return None if term is None else term.texts(term.codes[rows])
