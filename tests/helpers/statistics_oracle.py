"""Slow definitions shared by statistics of a graph and slices of a result."""

from __future__ import annotations

import math

from kgtrec.graph.statistics.relations import UNSEEN


def category(triples: list[tuple[int, int]], threshold: float) -> str:
    """From the (head, tail) pairs of one relation, head by head and tail by tail."""
    if not triples:
        return UNSEEN
    heads, tails = {h for h, _ in triples}, {t for _, t in triples}
    tails_each = sum(len([t for h, t in triples if h == one]) for one in heads) / len(heads)
    heads_each = sum(len([h for h, t in triples if t == one]) for one in tails) / len(tails)
    return f"{'N' if heads_each >= threshold else 1}-{'N' if tails_each >= threshold else 1}"


def percentile(counts: list[int], percent: float) -> float:
    """Linear between the two order statistics around the place."""
    ordered = sorted(counts)
    place = (len(ordered) - 1) * percent / 100
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)
