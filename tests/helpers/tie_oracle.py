"""Values under ties by trying every order, with exact fractions, independent of the package.

A list has (score, relevance) pairs; relevance is None for a document that is not in the qrels.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import permutations, product

Documents = Sequence[tuple[float, int | None]]


def orders(documents: Documents) -> Iterator[list[int | None]]:
    """Relevances in every order that respects the scores, each order of documents once."""
    groups: dict[float, list[int | None]] = {}
    for score, relevance in documents:
        groups.setdefault(score, []).append(relevance)
    ranked = [groups[score] for score in sorted(groups, reverse=True)]
    for choice in product(*(permutations(group) for group in ranked)):
        yield [relevance for group in choice for relevance in group]


def seen(order: Sequence[int | None], most: int | None, judged_only: bool) -> list[int | None]:
    """The documents that remain after -M and then -J."""
    left = list(order[:most])
    return [r for r in left if r is not None and r >= 0] if judged_only else left


def value(family: str, k: int | None, shown: Sequence[int | None], judged: Sequence[int],
          level: int) -> Fraction | float:  # fmt: skip
    """A measure of one order."""
    hit = [r is not None and r >= level for r in shown]
    total = sum(r >= level for r in judged)
    top = hit[:k]
    first = next((Fraction(1, i) for i, h in enumerate(top, 1) if h), Fraction(0))
    if family in ("recip_rank", "recip_rank_cut"):
        return first
    if family == "success":
        return Fraction(any(top))
    if family == "P":
        return Fraction(sum(top), k)
    if family in ("ndcg", "ndcg_cut", "dcg"):
        gained = discounted([max(r or 0, 0) for r in shown][:k])
        ideal = discounted(sorted((max(r, 0) for r in judged), reverse=True)[:k])
        return gained if family == "dcg" else gained / ideal if ideal else 0.0
    if not total:
        return Fraction(0)
    if family == "recall":
        return Fraction(sum(top), total)
    if family == "relative_P":
        return Fraction(sum(top), min(k or 0, total))
    if family == "Rprec":
        return Fraction(sum(hit[:total]), total)
    precisions = [Fraction(sum(top[:i]), i) for i in range(1, len(top) + 1) if top[i - 1]]
    return sum(precisions, Fraction(0)) / total


def discounted(gains: Sequence[int]) -> float:
    return math.fsum(gain / math.log2(i + 2) for i, gain in enumerate(gains))


def over_orders(
    family: str,
    k: int | None,
    documents: Documents,
    judged: Sequence[int],
    level: int = 1,
    most: int | None = None,
    judged_only: bool = False,
) -> dict[str, float]:
    """Expectation, least and greatest value, and whether there is more than one."""
    values = [
        value(family, k, seen(order, most, judged_only), judged, level)
        for order in orders(documents)
    ]
    mean = (
        math.fsum(values) / len(values)
        if isinstance(values[0], float)
        else sum(values) / len(values)
    )
    return {"expected": float(mean), "min": float(min(values)), "max": float(max(values))}
