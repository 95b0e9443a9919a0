"""Answer sets in plain Python: dicts of scores, sets of candidates, and loops."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from statistics import mean, median
from typing import Any

import numpy as np

import kgtrec

Question = tuple[int, int, int]
"""Side, relation, and the entity that is known."""


@dataclass(frozen=True)
class Oracle:
    """Questions of a split, the scores of their candidates, and their answers."""

    ranks: kgtrec.Ranks
    matrix: Any
    asked: kgtrec.Questions
    questions: list[Question]
    scores: dict[Question, dict[int, float]]
    answers: dict[Question, set[int]]

    def only(self, questions: list[Question]) -> Oracle:
        return replace(self, questions=questions)

    def best(self, most: Mapping[Question, float], ties: str) -> dict[Question, set[int]]:
        """The candidates whose best place (of `ties` none: whose worst place) is k or less."""
        return {
            q: {c for c in self.scores[q] if self.places(q, c)[ties == "none"] <= most[q]}
            for q in self.questions
        }

    def above(self, lowest: Mapping[Question, float]) -> dict[Question, set[int]]:
        return {
            q: {c for c, score in self.scores[q].items() if score >= lowest[q]}
            for q in self.questions
        }

    def places(self, question: Question, candidate: int) -> tuple[int, int]:
        """The best and the worst place of a candidate among its ties."""
        scores = self.scores[question]
        greater = sum(score > scores[candidate] for score in scores.values())
        return greater + 1, sum(score >= scores[candidate] for score in scores.values())

    def at_border(self, question: Question, candidate: int, k: int) -> bool:
        first, last = self.places(question, candidate)
        return first <= k <= last

    def units(self, cover: str) -> list[tuple[int, ...]]:
        if cover != "answer":
            return [*self.questions]
        return [(*q, answer) for q in self.questions for answer in sorted(self.answers[q])]

    def relation_of(self, unit: Sequence[int]) -> int:
        return unit[1]

    def covers(self, named: Mapping[Question, set[int]], unit: Any, cover: str) -> bool:
        question = tuple(unit[:3])
        if cover == "answer":
            return unit[3] in named[question]
        within = [answer in named[question] for answer in self.answers[question]]
        return any(within) if cover == "question-any" else all(within)


def split_of(graph: kgtrec.Graph, split: str, known: Sequence[str], matrix: Any) -> Oracle:
    """The questions of a split in the order of the graph's, without what other splits know."""
    asked = graph.questions(split, filter={"test": "all"}.get(split, split))
    ranks = kgtrec.rank(matrix(len(asked)), asked, progress=False)[0]
    scores = matrix(len(asked))
    questions = [
        (side, relation, entity)
        for side, relation, entity in zip(
            asked.side.tolist(), asked.relation.tolist(), asked.entity.tolist(), strict=True
        )
    ]

    def answering(splits: Iterable[str], question: Question) -> set[int]:
        side, relation, entity = question
        return {
            int(t[2 * side])
            for name in splits
            for t in graph.splits[name].tolist()
            if t[1] == relation and t[2 - 2 * side] == entity
        }

    answers = {q: answering([split], q) for q in questions}
    removed = {q: answering(known, q) for q in questions}
    of_question = {
        q: {c: float(s) for c, s in enumerate(scores[row].tolist()) if c not in removed[q]}
        for row, q in enumerate(questions)
    }
    return Oracle(ranks, scores, asked, questions, of_question, answers)


def world(seed: int, levels: int, n: int = 12) -> tuple[Oracle, Oracle]:
    """Test and valid of a small graph, with scores of so many levels; 0: without ties."""
    random = np.random.default_rng(seed)
    rows = random.permutation(np.unique(random.integers(0, (n, 3, n), (5 * n, 3)), axis=0))
    third = len(rows) // 3
    graph = kgtrec.Graph.from_arrays(
        train=rows[:third],
        valid=rows[third : 2 * third],
        test=rows[2 * third :],
        n_entities=n,
        n_relations=3,
    )

    def matrix(salt: int) -> Any:
        def scores(height: int) -> Any:
            own = np.random.default_rng([seed, salt])
            if not levels:
                rows = np.tile(np.arange(n, dtype=np.float32), (height, 1))
                return own.permuted(rows, axis=1)
            return own.integers(-levels, levels, (height, n)).astype(np.float32) / 8

        return scores

    valid = split_of(graph, "valid", ["train"], matrix(1))
    return split_of(graph, "test", ["train", "valid"], matrix(0)), valid


def judged(oracle: Oracle, named: Mapping[Question, set[int]]) -> dict[str, float]:
    """The measures of sets, question by question."""
    rows = []
    for question in oracle.questions:
        answers, chosen = oracle.answers[question], named[question]
        hits = len(answers & chosen)
        precision = hits / len(chosen) if chosen else math.nan
        recall = hits / len(answers)
        f1 = 2 * precision * recall / (precision + recall) if hits else 0.0
        rows.append((len(answers), hits, len(chosen), precision, recall, f1))
    answers, hits, sizes, precisions, recalls, f1 = zip(*rows, strict=True)
    of_named = [value for value in precisions if not math.isnan(value)]
    precision = mean(of_named) if of_named else math.nan
    micro = sum(hits) / sum(sizes) if sum(sizes) else math.nan
    recall = sum(hits) / sum(answers)
    both = mean(recalls)
    return {
        "micro.precision": micro,
        "micro.recall": recall,
        "micro.f1": 2 * micro * recall / (micro + recall) if sum(hits) else 0.0,
        "macro.precision": precision,
        "macro.recall": both,
        "macro.f1": mean(f1),
        "macro.f1_of_means": 2 * precision * both / (precision + both) if both else 0.0,
        "size": mean(sizes),
        "size.median": median(sizes),
        "empty": mean(float(size == 0) for size in sizes),
        "single": mean(float(size == 1) for size in sizes),
        "any": mean(float(h > 0) for h in hits),
        "all": mean(float(h == a) for h, a in zip(hits, answers, strict=True)),
    }


def quantile(values: Sequence[float], error: Fraction) -> float:
    """The ceil((n + 1)(1 - error))-th smallest value."""
    index = math.ceil((len(values) + 1) * (1 - error))
    return sorted(values)[index - 1] if index <= len(values) else math.inf


def limits_of(valid: Oracle, value: Any, error: Fraction, cover: str, per: str, least: int) -> Any:
    """A function from a relation to its limit, of values of (question, answer) on valid."""
    units: list[tuple[int, float]] = []
    for question in valid.questions:
        values = [float(value(question, answer)) for answer in valid.answers[question]]
        if cover != "answer":
            values = [min(values) if cover == "question-any" else max(values)]
        units += [(question[1], each) for each in values]
    counts = {relation: sum(r == relation for r, _ in units) for relation, _ in units}
    alone = {relation for relation, count in counts.items() if per and count >= least}

    def limit(relation: int) -> float:
        if relation in alone:
            return quantile([v for r, v in units if r == relation], error)
        return quantile([v for r, v in units if r not in alone], error)

    return limit


def most_of(
    valid: Oracle, test: Oracle, error: Fraction, cover: str, per: str, least: int
) -> dict[Question, float]:
    """How many best candidates each question of test has, by conformal prediction."""
    limit = limits_of(valid, lambda q, a: valid.places(q, a)[1], error, cover, per, least)
    return {question: limit(question[1]) for question in test.questions}


def best_threshold(valid: Oracle, relations: Iterable[int], precision: Fraction | None) -> float:
    """The threshold of the highest micro F1, or the lowest one that reaches a precision.

    Thresholds are scores of answers; infinity: none reaches it.
    """
    questions = [q for q in valid.questions if q[1] in {*relations}]
    part = valid.only(questions)
    choices = sorted({valid.scores[q][a] for q in questions for a in valid.answers[q]})
    values = {}
    for lowest in choices:
        named = part.above(dict.fromkeys(questions, lowest))
        hits = sum(len(valid.answers[q] & named[q]) for q in questions)
        size = sum(map(len, named.values()))
        total = size + sum(len(valid.answers[q]) for q in questions)
        values[lowest] = Fraction(hits, size) if precision else Fraction(2 * hits, total)
    if precision is not None:
        return min((t for t in choices if values[t] >= precision), default=math.inf)
    return max(choices, key=lambda t: (values[t], t))
