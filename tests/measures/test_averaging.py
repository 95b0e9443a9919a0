"""Averagings against slow definitions: weights of questions and relations, triples."""

from __future__ import annotations

import math
from collections import Counter
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from measure_cases import (
    ALL_KINDS,
    CLOSE,
    WEIGHTED,
    F,
    ask,
    over_ties,
    sides_of,
    weighted_mean,
    weights,
)
from rank_cases import Case, cases, columns, make_ranks, places

import kgtrec
from kgtrec.errors import InputError, UsageError
from kgtrec.measures import Measure
from kgtrec.measures.calculator import Calculator

# --- means, with weights --------------------------------------------------------------------------


@given(cases(), st.sampled_from(ALL_KINDS), st.sampled_from(WEIGHTED), st.sampled_from(sorted(F)))
def test_weighted_means(case: Case, kind: str, averaging: str, metric: str) -> None:
    for side in sides_of(case):
        rows = case.of_side(side)
        due = weighted_mean([over_ties(r, kind, F[metric]) for r in rows], weights(rows, averaging))
        due = math.exp(due) if metric == "gmr" else due
        assert ask(case, f"{side}.{kind}.{averaging}.{metric}") == pytest.approx(due, **CLOSE)


@given(cases(), st.sampled_from(ALL_KINDS), st.sampled_from(["log_mrr", "p_mrr@0.3"]))
def test_question_averaging_is_a_mean_of_means(case: Case, kind: str, metric: str) -> None:
    """The open-world paper's order: inside a question first, then over questions."""
    for side in sides_of(case):
        inside: dict[int, list[float]] = {}
        for row in case.of_side(side):
            inside.setdefault(row["question"], []).append(over_ties(row, kind, F[metric]))
        due = math.fsum(math.fsum(v) / len(v) for v in inside.values()) / len(inside)
        assert ask(case, f"{side}.{kind}.question.{metric}") == pytest.approx(due, **CLOSE)


@given(cases(sides=(0, 1)), st.sampled_from(ALL_KINDS), st.sampled_from(sorted(F)))
def test_triple_averaging_joins_head_and_tail(case: Case, kind: str, metric: str) -> None:
    values = []
    for number in range(len(case.triples)):
        head, tail = (row for row in case.rows if row["triple"] == number)
        pairs = product(places(head, kind), places(tail, kind))
        joined = [F[metric]((a + b) / 2) for a, b in pairs]
        values.append(math.fsum(joined) / len(joined))
    due = math.fsum(values) / len(values)
    due = math.exp(due) if metric == "gmr" else due
    assert ask(case, f"both.{kind}.triple.{metric}") == pytest.approx(due, **CLOSE)


@given(cases(sides=(0, 1)), st.sampled_from(ALL_KINDS), st.sampled_from(["mr", "amr", "amri"]))
def test_where_the_mean_rank_decides_triples_are_micro(case: Case, kind: str, metric: str) -> None:
    """Linear in the rank, and every triple has one instance on each side."""
    micro, triple = (ask(case, f"both.{kind}.{a}.{metric}") for a in ("micro", "triple"))
    assert triple == pytest.approx(micro, nan_ok=True, rel=1e-12)


def test_triples_need_both_sides() -> None:
    questions = [(0, 1, 0), (0, 2, 0), (1, 0, 0), (1, 1, 0)]
    case = Case(3, [(0, 0, 1), (1, 0, 2)], {question: [1, 0, 2] for question in questions})
    assert ask(case, "both.realistic.triple.mr") == ask(case, "both.realistic.micro.mr")
    case.rows = case.rows[1:]
    with pytest.raises(InputError, match=r"1 triples, such as \[0\], have one only"):
        ask(case, "both.realistic.triple.mr")
    with pytest.raises(UsageError, match=r"ask for both\.…"):
        Measure.parse("head.realistic.triple.mr")


@given(cases(), st.sampled_from(ALL_KINDS), st.sampled_from(WEIGHTED))
def test_inverses(case: Case, kind: str, averaging: str) -> None:
    head = f"{sides_of(case)[-1]}.{kind}.{averaging}"
    assert ask(case, f"{head}.hmr") * ask(case, f"{head}.mrr") == pytest.approx(1)
    assert ask(case, f"{head}.imr") * ask(case, f"{head}.mr") == pytest.approx(1)
    assert ask(case, f"{head}.igmr") * ask(case, f"{head}.gmr") == pytest.approx(1)
    median = ask(case, f"{head}.median_rank")
    assert ask(case, f"{head}.inverse_median_rank") * median == pytest.approx(1)


@given(cases())
def test_the_relations_average_of_a_mean_is_the_mean_over_relations(case: Case) -> None:
    for side, metric in product(sides_of(case), ("mr", "mrr", "hits@2", "log_mrr")):
        weighted = ask(case, f"{side}.expected.relation.{metric}")
        averaged = ask(case, f"{side}.expected.macro_relation.{metric}")
        assert weighted == pytest.approx(averaged, rel=1e-12)


@given(cases(sides=(0, 1)), st.sampled_from(["question.mrr", "triple.log_mrr", "question.amri"]))
def test_one_relation_has_the_value_of_its_instances(case: Case, tail: str) -> None:
    table = columns(case)
    measure = Measure.parse(f"both.expected.{tail}")
    whole = Calculator(make_ranks(table), lambda name: np.array([]))
    relations, _ = whole.relations("both")
    for relation, value in zip(relations, whole.per_relation(measure), strict=True):
        keep = table["relation"] == relation
        part = make_ranks({name: column[keep] for name, column in table.items()})
        due = Calculator(part, lambda name: np.array([])).value(measure)
        assert value == pytest.approx(due, rel=1e-12, nan_ok=True)
    with pytest.raises(UsageError, match="weighs relations against each other"):
        whole.per_relation(Measure.parse("both.expected.relation.mrr"))


def test_wide_ties_of_triples() -> None:
    """Many places on both sides: the rise, the level and the fall of pairs of ranks."""
    sizes = [(1, 120), (119, 120), (120, 120), (2, 2), (90, 70)]
    wide = [{"greater": g, "equal": size - 1, "tied_ahead": 0, "candidates": 1000}
            for g, (a, b) in enumerate(sizes) for size in (a, b)]  # fmt: skip
    for i, row in enumerate(wide):
        row |= {"side": i % 2, "triple": i // 2, "question": i, "relation": 0}
    ranks = make_ranks({name: np.array([r[name] for r in wide]) for name in wide[0]})
    for metric in ("mrr", "log_mrr", "hits@2", "p_mrr@0.3", "gmr"):
        due = []
        for head, tail in zip(wide[::2], wide[1::2], strict=True):
            pairs = product(places(head, "expected"), places(tail, "expected"))
            sums = Counter(a + b for a, b in pairs)
            top = math.fsum(n * F[metric](s / 2) for s, n in sums.items())
            due.append(top / sum(sums.values()))
        mean = math.fsum(due) / len(due)
        mean = math.exp(mean) if metric == "gmr" else mean
        assert kgtrec.Result(ranks)[f"both.expected.triple.{metric}"] == pytest.approx(mean, 1e-12)
