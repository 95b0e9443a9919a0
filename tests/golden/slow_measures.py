"""Measures of trec_eval from their definitions, slowly: lists of relevances, sums and quotients.

Shares no code with the package. `make.py` makes the golden files from it.
"""

from __future__ import annotations

import math
from typing import Any


def words(text: str) -> list[str]:
    return text.split()


NOT_IN_POOL, NOT_JUDGED = -1, -2  # retrieved, but no judgement; judgement below 0
DEEP = [5, 10, 15, 20, 30, 100, 200, 500, 1000]
TENTHS = [i / 10 for i in range(11)]
FIFTHS = [i / 5 for i in range(1, 11)]
DEFAULTS = {
    "iprec_at_recall": TENTHS, "P": DEEP, "recall": DEEP, "Rprec_mult": FIFTHS, "ndcg_cut": DEEP,
    "map_cut": DEEP, "relative_P": DEEP, "success": [1, 5, 10], "unj": [5, 10, 20],
}  # fmt: skip
ORDER = words(
    "runid num_q num_ret num_rel num_rel_ret map gm_map Rprec bpref recip_rank iprec_at_recall P "
    "relstring recall infAP gm_bpref Rprec_mult utility 11pt_avg binG G dcg ideal_dcg ndcg "
    "ndcg_rel Rndcg ndcg_cut map_cut relative_P success set_P set_relative_P set_recall set_map "
    "set_F num_nonrel_judged_ret rbp rbp_resid unj"
)
NICKNAMES = {
    "official": words(
        "runid num_q num_ret num_rel num_rel_ret map gm_map Rprec bpref recip_rank iprec_at_recall "
        "P"
    ),
    "set": words(
        "runid num_q num_ret num_rel num_rel_ret utility set_P set_relative_P set_recall set_map "
        "set_F"
    ),
    "all_trec": [name for name in ORDER if name not in ("dcg", "ideal_dcg")],
}
NEW_IN_10 = ("rbp", "rbp_resid", "unj")
FLOOR = 1e-5


class Query:
    """One query: retrieved documents, best first, and the number of documents per level."""

    def __init__(self, ranked: list[int], judged: list[int], options: Any) -> None:
        self.level = options.level
        self.options = options
        self.ranked = ranked
        self.judged = [grade for grade in judged if grade >= 0]
        self.hits = [grade >= 0 and grade >= self.level for grade in ranked]
        self.R = sum(grade >= self.level for grade in self.judged)
        self.n = len(ranked)
        self.n_hits = sum(self.hits)
        self.gains = [max(grade, 0) for grade in ranked]
        self.ideal = sorted((grade for grade in self.judged if grade > 0), reverse=True)

    def within(self, k: int) -> int:
        return sum(self.hits[:k])


# -- Measures: one function per family, from a Query and a parameter ----------------------------


def average_precision(q: Query, k: int | None = None) -> float:
    ranks = [rank for rank, hit in enumerate(q.hits[:k], 1) if hit]
    return ratio(sum(hits / rank for hits, rank in enumerate(ranks, 1)), q.R)


def bpref(q: Query) -> float:
    negatives = len(q.judged) - q.R
    total, above = 0.0, 0
    for grade, hit in zip(q.ranked, q.hits, strict=True):
        if hit:
            total += 1 - min(above, q.R) / min(negatives, q.R) if above else 1
        elif grade >= 0:
            above += 1
    return ratio(total, q.R)


def inferred_ap(q: Query) -> float:
    tiny, total = 1e-5, 0.0
    for place, hit in enumerate(q.hits):
        if not hit:
            continue
        above = q.ranked[:place]
        relevant = sum(q.hits[:place])
        negative = sum(grade >= 0 for grade in above) - relevant
        pooled = relevant + negative + above.count(NOT_JUDGED)
        if place == 0:
            total += 1
        else:
            rate = (relevant + tiny) / (relevant + negative + 2 * tiny)
            total += 1 / (place + 1) + place / (place + 1) * (pooled / place) * rate
    return ratio(total, q.R)


def interpolated(q: Query, point: float) -> float:
    exact = point * q.R
    # 10.0 rounds half away from zero; 9.0.8 adds .9 and truncates.
    count = math.floor(exact + 0.5) if q.options.compat == 10 else int(exact + 0.9)
    best = 0.0
    if count > q.n_hits:
        return best
    for rank in range(1, q.n + 1):
        if q.within(rank) >= count:
            best = max(best, q.within(rank) / rank)
    return best


def r_multiple(q: Query, factor: float) -> float:
    k = int(factor * q.R + 0.9)
    return ratio(q.within(k), k)


def utility(q: Query) -> float:
    return q.n_hits - (q.n - q.n_hits)


def dcg(gains: list[int]) -> float:
    return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, 1))


def ndcg(q: Query, k: int | None = None) -> float:
    return ratio(dcg(q.gains[:k]), dcg(q.ideal[:k]))


def ndcg_rel(q: Query) -> float:
    """nDCG averaged over the relevant documents; those never found count with the last nDCG."""
    at = [k for k, gain in enumerate(q.gains, 1) if gain > 0]
    total = sum(dcg(q.gains[:k]) / dcg(q.ideal[:k]) for k in at)
    total += (len(q.ideal) - len(at)) * ratio(dcg(q.gains), dcg(q.ideal))
    return ratio(total, len(q.ideal))


def ndcg_r(q: Query) -> float:
    """nDCG averaged over the ranks where the ideal list steps down, and the end after them."""
    if q.R == 0:
        return 0.0
    ends = [
        k for k in range(1, len(q.ideal) + 1) if q.ideal[k - 1 : k + 1] != 2 * q.ideal[k - 1 : k]
    ]
    points = [dcg(q.gains[:k]) / dcg(q.ideal[:k]) for k in ends]
    if q.n > len(q.ideal) + 1:
        points.append(dcg(q.gains) / dcg(q.ideal))
    return sum(points) / len(points)


def binary_g(q: Query) -> float:
    total, negatives = 0.0, 0
    for hit in q.hits:
        if hit:
            total += 1 / math.log2(2 + negatives)
        else:
            negatives += 1
    return ratio(total, q.R)


def graded_g(q: Query) -> float:
    total, cost, gained = 0.0, 0, 0
    for place, gain in enumerate(q.gains):
        cost += max(q.ideal[place], 1) if place < len(q.ideal) else 1
        gained += gain
        if gain:
            total += gain / math.log2(2 + cost - gained)
    return ratio(total, sum(q.ideal))


def rank_biased(q: Query) -> float:
    highest = max([1, *q.judged])
    return (1 - 0.9) * sum(gain / highest * power(place) for place, gain in enumerate(q.gains))


def rank_biased_residual(q: Query) -> float:
    places = [place for place, grade in enumerate(q.ranked) if grade < 0]
    return power(q.n) + (1 - 0.9) * sum(map(power, places)) if places else 0.0


def power(exponent: int) -> float:
    """Powers of .9, one factor after the other: half-way cases must round as in trec_eval."""
    return math.prod([0.9] * exponent)


def relevance_string(q: Query, length: int = 10) -> str:
    signs = {NOT_IN_POOL: "-", NOT_JUDGED: "."}
    return "".join(
        signs.get(grade, str(grade) if grade <= 9 else ">") for grade in q.ranked[:length]
    )


def negatives_found(q: Query) -> int:
    return sum(grade >= 0 for grade in q.ranked) - q.n_hits


def ratio(above: float, below: float) -> float:
    return above / below if below else 0.0


def f_measure(q: Query, beta: float = 1.0) -> float:
    precision, recall = ratio(q.n_hits, q.n), ratio(q.n_hits, q.R)
    return ratio((beta + 1) * precision * recall, recall + beta * precision)


PLAIN = {
    "num_q": lambda q: 1,
    "num_ret": lambda q: q.n,
    "num_rel": lambda q: q.R,
    "num_rel_ret": lambda q: q.n_hits,
    "map": average_precision,
    "gm_map": lambda q: math.log(max(average_precision(q), FLOOR)),
    "Rprec": lambda q: ratio(q.within(q.R), q.R),
    "bpref": bpref,
    "gm_bpref": lambda q: math.log(max(bpref(q), FLOOR)),
    "recip_rank": lambda q: 1 / (q.hits.index(True) + 1) if q.n_hits else 0.0,
    "relstring": relevance_string,
    "infAP": inferred_ap,
    "utility": utility,
    "11pt_avg": lambda q: sum(interpolated(q, point) for point in TENTHS) / 11,
    "binG": binary_g,
    "G": graded_g,
    "dcg": lambda q: dcg(q.gains),
    "ideal_dcg": lambda q: dcg(q.ideal),
    "ndcg": ndcg,
    "ndcg_rel": ndcg_rel,
    "Rndcg": ndcg_r,
    "set_P": lambda q: ratio(q.n_hits, q.n),
    "set_relative_P": lambda q: ratio(q.n_hits, min(q.n, q.R)),
    "set_recall": lambda q: ratio(q.n_hits, q.R),
    "set_map": lambda q: ratio(q.n_hits**2, q.n * q.R),
    "set_F": f_measure,
    "num_nonrel_judged_ret": negatives_found,
    "rbp": rank_biased,
    "rbp_resid": rank_biased_residual,
}
AT = {
    "iprec_at_recall": interpolated,
    "P": lambda q, k: q.within(k) / k,
    "recall": lambda q, k: ratio(q.within(k), q.R),
    "Rprec_mult": r_multiple,
    "ndcg_cut": ndcg,
    "map_cut": average_precision,
    "relative_P": lambda q, k: ratio(q.within(k), min(k, q.R)),
    "success": lambda q, k: float(q.within(k) > 0),
    "unj": lambda q, k: sum(grade < 0 for grade in q.ranked[:k]) / k,
}
# With parameters that are not cutoffs; names show them as typed.
WITH = {
    "utility": lambda q, a, b, c, d: (
        a * q.n_hits
        + b * (q.n - q.n_hits)
        + c * (q.R - q.n_hits)
        + d * (q.options.collection + q.n_hits - q.n - q.R)
    ),
    "set_F": f_measure,
    "relstring": lambda q, length: relevance_string(q, int(length)),
    "11pt_avg": lambda q, *points: sum(interpolated(q, point) for point in points) / len(points),
}
