"""Small evaluations by lists of every candidate, and their Ranks."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations

import numpy as np
from hypothesis import strategies as st

from kgtrec import Ranks
from kgtrec.measures import Measure
from kgtrec.measures.calculator import Calculator
from kgtrec.measures.metric import RankMetric
from kgtrec.ranking.columns import COLUMN_TYPES, REQUIRED

KINDS = ("optimistic", "realistic", "pessimistic", "ordinal")
Question = tuple[int, int, int]  # side, given entity, relation


@dataclass
class Case:
    """Test triples, filtered by themselves only, and one score per (question, entity)."""

    n_entities: int
    triples: list[tuple[int, int, int]]
    scores: dict[Question, list[int]]
    sides: tuple[int, ...] = (0, 1)
    rows: list[dict[str, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        numbers: dict[Question, int] = {}
        for side in self.sides:
            for number, triple in enumerate(self.triples):
                question, answer = self.ask(side, triple)
                numbers.setdefault(question, len(numbers))
                self.rows.append(
                    self.counted(number, question, answer) | {"question": numbers[question]}
                )

    @staticmethod
    def ask(side: int, triple: tuple[int, int, int]) -> tuple[Question, int]:
        head, relation, tail = triple
        return ((0, tail, relation), head) if side == 0 else ((1, head, relation), tail)

    def answers(self, question: Question) -> set[int]:
        pairs = (self.ask(question[0], triple) for triple in self.triples)
        return {answer for other, answer in pairs if other == question}

    def counted(self, triple: int, question: Question, answer: int) -> dict[str, int]:
        side, entity, relation = question
        everything = set(range(self.n_entities))
        micro = everything - self.answers(question) | {answer}
        row = {"triple": triple, "side": side, "relation": relation, "given": entity}
        row |= {"answer": answer, "answer_popularity": self.popularity(answer)}
        row["relation_popularity"] = sum(relation == r for _, r, _ in self.triples)
        for prefix, candidates in (("", micro), ("macro_", everything)):
            row |= {prefix + k: v for k, v in self.compared(question, answer, candidates).items()}
        return row

    def compared(self, question: Question, answer: int, candidates: set[int]) -> dict[str, int]:
        scores = self.scores[question]
        tied = [c for c in candidates - {answer} if scores[c] == scores[answer]]
        return {
            "greater": sum(scores[c] > scores[answer] for c in candidates),
            "equal": len(tied),
            "tied_ahead": sum(c > answer for c in tied),
            "candidates": len(candidates),
        }

    def popularity(self, entity: int) -> int:
        return sum(entity in (head, tail) for head, _, tail in self.triples)

    def of_side(self, side: str) -> list[dict[str, int]]:
        codes = {"head": (0,), "tail": (1,), "both": (0, 1)}[side]
        return [row for row in self.rows if row["side"] in codes]

    def first_places(self, question: Question) -> list[int]:
        """Rank of the first answer in every order that the ties allow, each equally likely."""
        scores, answers = self.scores[question], self.answers(question)
        best = max(scores[answer] for answer in answers)
        above = sum(score > best for score in scores)
        tied = [c for c in range(self.n_entities) if scores[c] == best]
        right = sum(c in answers for c in tied)
        return [above + 1 + min(chosen) for chosen in combinations(range(len(tied)), right)]


def possible_ranks(row: dict[str, int], kind: str, prefix: str = "") -> list[Fraction]:
    """The ranks over which a metric is averaged: one, or the whole tie for "expected"."""
    greater, equal = row[prefix + "greater"], row[prefix + "equal"]
    if kind == "expected":
        return [Fraction(greater + 1 + i) for i in range(equal + 1)]
    extra = {
        "optimistic": Fraction(0),
        "realistic": Fraction(equal, 2),
        "pessimistic": Fraction(equal),
        "ordinal": Fraction(row[prefix + "tied_ahead"]),
    }[kind]
    return [greater + 1 + extra]


def questions(case: Case, side: str) -> Iterator[list[dict[str, int]]]:
    """Rows of each question of a side."""
    rows = case.of_side(side)
    for number in sorted({row["question"] for row in rows}):
        yield [row for row in rows if row["question"] == number]


@st.composite
def cases(draw: st.DrawFn, sides: tuple[int, ...] | None = None) -> Case:
    """Small graphs with few scores, so that there are many ties and shared questions."""
    n = draw(st.integers(1, 6))
    entity = st.integers(0, n - 1)
    triple = st.tuples(entity, st.integers(0, 2), entity)
    triples = draw(st.lists(triple, min_size=1, max_size=12, unique=True))
    which = sides or draw(st.sampled_from([(0, 1), (0, 1), (0,), (1,)]))
    questions = sorted({Case.ask(side, t)[0] for side in which for t in triples})
    row = st.lists(st.integers(0, draw(st.sampled_from([0, 1, 3, 9]))), min_size=n, max_size=n)
    scores = {question: draw(row) for question in questions}
    return Case(n, triples, scores, which)


def columns(case: Case, shuffle: int | None = None) -> dict[str, np.ndarray]:
    """Columns of Ranks. With a seed, rows are shuffled, because their order has no meaning."""
    order = np.arange(len(case.rows))
    if shuffle is not None:
        np.random.default_rng(shuffle).shuffle(order)
    return {name: np.array([r[name] for r in case.rows], np.int64)[order] for name in case.rows[0]}


def make_ranks(
    columns: dict[str, np.ndarray],
    manifest: dict | None = None,
    relation_labels: list[str] | None = None,
) -> Ranks:
    """Ranks from columns; missing columns are 0, or absent if optional."""
    n = len(columns["greater"])
    full = {name: np.zeros(n, COLUMN_TYPES[name].dtype) for name in REQUIRED}
    return Ranks(full | columns, manifest, relation_labels)


def some_ranks(n_triples: int, shuffled: bool, seed: int = 3) -> Ranks:
    """Relations of very different sizes, questions with several answers, ties."""
    rng = np.random.default_rng(seed)
    n = 2 * n_triples
    triple = np.tile(np.arange(n_triples), 2)
    relation = np.minimum(rng.geometric(0.3, n_triples), 9)
    columns = {"side": np.repeat([0, 1], n_triples), "triple": triple, "relation": relation[triple]}
    columns["question"] = np.concatenate(
        [np.sort(rng.integers(first, first + n_triples // 2, n_triples)) for first in (0, n)]
    )
    columns["greater"], columns["macro_greater"] = rng.geometric(0.1, (2, n)) - 1
    for prefix in ("", "macro_"):
        columns[f"{prefix}equal"] = rng.choice([0, 0, 1, 2, 60], n)
        columns[f"{prefix}tied_ahead"] = columns[f"{prefix}equal"] // 2
        columns[f"{prefix}candidates"] = rng.integers(200, 300, n)
    columns["answer_popularity"] = rng.zipf(1.5, n) % 10_000 + 1
    columns["relation_popularity"] = np.bincount(relation)[relation[triple]]
    order = rng.permutation(n) if shuffled else np.arange(n)
    return make_ranks({name: column[order] for name, column in columns.items()}, {"questions": {}})


# -- Slow definitions: weights by counting, values tie by tie -------------------------------------

ALL_KINDS = (*KINDS, "expected")


def example_parameter(metric: RankMetric) -> float | tuple[int, int]:
    """A parameter that fits small cases."""
    return {"k": 2, "k_n": (2, 4)}.get(metric.parameter, 0.3)


F: dict[str, Callable[[Fraction], float | Fraction]] = {
    "mr": lambda r: r,
    "mrr": lambda r: 1 / r,
    "hits@2": lambda r: Fraction(r <= 2),
    "log_mrr": lambda r: 1 / math.log2(r + 1),
    "p_mrr@0.3": lambda r: float(r) ** -0.3,
    "gmr": math.log,
}


def no_trec(name: str) -> np.ndarray:
    raise AssertionError(f"{name} was asked for")


def ask(case: Case, key: str) -> float:
    return Calculator(make_ranks(columns(case, 5)), no_trec).value(Measure.parse(key))


def sides_of(case: Case) -> tuple[str, ...]:
    return ("head", "tail", "both") if len(case.sides) == 2 else (("head", "tail")[case.sides[0]],)


def weights(rows: list[dict[str, int]], averaging: str) -> list[Fraction]:
    """The weight of each row, by counting."""
    if averaging == "micro":
        return [Fraction(1) for _ in rows]
    sizes = Counter(row[averaging] for row in rows)
    return [Fraction(1, sizes[row[averaging]]) for row in rows]


def popularity_weights(rows: list[dict[str, int]], beta_e: float, beta_r: float) -> list[float]:
    """The weights of stratified averages: of a triple's answers, of a relation's triples."""
    of_triple: Counter[int] = Counter()
    for row in rows:
        of_triple[row["triple"]] += row["answer_popularity"] ** -beta_e
    triples = Counter({row["triple"]: row["relation"] for row in rows}.values())
    return [
        row["answer_popularity"] ** -beta_e
        / of_triple[row["triple"]]
        / triples[row["relation"]]
        * row["relation_popularity"] ** -beta_r
        for row in rows
    ]
