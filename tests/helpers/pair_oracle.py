"""Definitions of pair ranking in slow Python: the question (?, relation, ?).

Imports nothing from kgtrec. Every pair is listed, every order of tied pairs is tried: the places of
the answers in a tie are any combination, and all are equally likely.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

Pair = tuple[int, int]
Triple = tuple[int, int, int]
Scores = Mapping[Pair, float]


@dataclass(frozen=True)
class PairWorld:
    """Splits, the pairs that may be candidates, and the splits whose pairs are known."""

    splits: Mapping[str, Sequence[Triple]]
    heads: Sequence[int]
    tails: Sequence[int]
    evaluated: str
    filters: Sequence[str]

    def pairs(self) -> list[Pair]:
        return [(head, tail) for head in sorted(self.heads) for tail in sorted(self.tails)]

    def of(self, relation: int, splits: Iterable[str]) -> set[Pair]:
        """Pairs of a relation in some splits, among the candidates."""
        every = {(h, t) for name in splits for h, r, t in self.splits[name] if r == relation}
        return every & set(self.pairs())

    def answers(self, relation: int) -> list[Pair]:
        return sorted(self.of(relation, [self.evaluated]))

    def micro(self, relation: int, answer: Pair) -> list[Pair]:
        """Candidates of one answer: pairs that no split of the filter knows, and the answer."""
        known = self.of(relation, self.filters)
        return [pair for pair in self.pairs() if pair not in known or pair == answer]

    def macro(self, relation: int) -> list[Pair]:
        """Candidates of the relation: all its answers stay."""
        others = [name for name in self.filters if name != self.evaluated]
        removed = self.of(relation, others) - set(self.answers(relation))
        return [pair for pair in self.pairs() if pair not in removed]

    def relations(self) -> list[int]:
        """Relations with an evaluated pair among the candidates."""
        named = {r for _, r, _ in self.splits[self.evaluated]}
        return [relation for relation in sorted(named) if self.answers(relation)]


def counts(scores: Scores, candidates: Iterable[Pair], answer: Pair) -> tuple[int, int, int]:
    """Candidates that score higher than the answer, others that score the same, and all."""
    pairs = list(candidates)
    score = scores[answer]
    greater = sum(scores[pair] > score for pair in pairs)
    equal = sum(scores[pair] == score for pair in pairs if pair != answer)
    return greater, equal, len(pairs)


def mean_over(
    rows: Sequence[tuple[int, int, int]], rank_type: str, value: Callable[[Fraction], Fraction]
) -> Fraction:
    """The mean of a metric of the rank over answers with these counts."""
    total = Fraction(0)
    for greater, equal, _ in rows:
        ranks = [Fraction(rank) for rank in range(greater + 1, greater + equal + 2)]
        if rank_type == "expected":
            total += sum(map(value, ranks)) / len(ranks)
        else:
            middle = (ranks[0] + ranks[-1]) / 2
            rank = {"optimistic": ranks[0], "realistic": middle, "pessimistic": ranks[-1]}
            total += value(rank[rank_type])
    return total / len(rows)


def best(scores: Scores, candidates: Iterable[Pair], k: int) -> tuple[list[Pair], int]:
    """The k best pairs, ties by head and then tail, and how many more tie with the last."""
    ordered = sorted(candidates, key=lambda pair: (-scores[pair], pair))
    last = scores[ordered[k - 1]]
    return ordered[:k], sum(scores[pair] == last for pair in ordered[k:])


def ties(scores: Scores, candidates: Iterable[Pair], answers: Iterable[Pair]) -> list[tuple]:
    """Groups of equal score, best first: places above, number of pairs, answers among them."""
    pairs, right = list(candidates), set(answers)
    groups, above = [], 0
    for score in sorted({scores[pair] + 0.0 for pair in pairs}, reverse=True):
        members = [pair for pair in pairs if scores[pair] == score]
        groups.append((above, len(members), sum(pair in right for pair in members)))
        above += len(members)
    return groups


def _gain(name: str, k: int, rank: int, hits: int, n: int) -> float | Fraction:
    """What the answer at a place (from 0), the hits-th of n, adds to a measure."""
    if name == "map":
        return Fraction(hits, rank + 1) / n
    if rank >= k:
        return 0
    if name == "P":
        return Fraction(1, k)
    if name == "recall":
        return Fraction(1, n)
    ideal = sum(1 / math.log2(i + 2) for i in range(min(k, n)))
    return 1 / math.log2(rank + 2) / ideal


def measure(name: str, k: int, groups: Sequence[tuple]) -> tuple[float, float, float]:
    """Mean, least and greatest of a measure over all orders of the tied pairs."""
    n = sum(hits for *_, hits in groups)
    sums, hits_above = [0.0, 0.0, 0.0], 0
    for above, size, hits in groups:
        values = [
            sum(
                _gain(name, k, above + at, hits_above + number, n)
                for number, at in enumerate(chosen, start=1)
            )
            for chosen in combinations(range(size), hits)
        ]
        for i, value in enumerate((sum(values) / len(values), min(values), max(values))):
            sums[i] += float(value)
        hits_above += hits
    return sums[0], sums[1], sums[2]


def auroc(scores: Scores, candidates: Iterable[Pair], answers: Iterable[Pair]) -> tuple:
    """Share of (answer, other pair) in which the answer wins; a tie counts 1/2, 0 and 1."""
    right = set(answers)
    others = [pair for pair in candidates if pair not in right]
    if not others:
        return (math.nan,) * 3
    won = tied = 0
    for answer in right:
        won += sum(scores[answer] > scores[pair] for pair in others)
        tied += sum(scores[answer] == scores[pair] for pair in others)
    n = len(right) * len(others)
    return (won + tied / 2) / n, won / n, (won + tied) / n


def spearman(first: Sequence[float], second: Sequence[float]) -> float:
    """Pearson's correlation of mid-ranks."""

    def ranks(values: Sequence[float]) -> list[float]:
        return [
            sum(other > value for other in values) + (values.count(value) + 1) / 2
            for value in values
        ]

    n = len(first)
    if n < 2:
        return math.nan
    a, b = ranks(list(first)), ranks(list(second))
    a, b = [x - sum(a) / n for x in a], [x - sum(b) / n for x in b]
    scale = math.sqrt(sum(x * x for x in a) * sum(x * x for x in b))
    return sum(x * y for x, y in zip(a, b, strict=True)) / scale if scale else math.nan
