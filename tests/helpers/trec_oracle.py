"""Every trec_eval measure of one query from its definition, in slow plain Python.

A list has relevances in order, None for a document that is not in the qrels. `judged` has the
relevance of all judged documents. Below 0 means in the pool but not judged.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

List = Sequence[int | None]


def measures(
    shown: List, judged: Sequence[int], level: int = 1, compat: int = 10, collection: int = 0
) -> dict[str, float | str]:
    """Defaults and some parameters of all measures except runid."""
    values = {**_sets(shown, judged, level, collection), **_ranked(shown, judged, level)}
    values |= _recall_points(shown, judged, level, compat)
    for k in (1, 2, 3, 5, 10, 20):
        values |= _cut(shown, judged, level, k)
    for name, gains in (("", {}), ("_1=3,2=9,4=4.5", {1: 3.0, 2: 9.0, 4: 4.5}),
                        ("_0=0.25,1=0.5", {0: 0.25, 1: 0.5}), ("_-1=1,-2=2", {-1: 1.0, -2: 2.0}),
                        ("_1=-2,3=0", {1: -2.0, 3: 0.0})):  # fmt: skip
        values |= {f + name: v for f, v in _gains(shown, judged, level, gains).items()}
        values["rbp" + name] = rank_biased(shown, judged, gains, 0.9)
    values["rbp_p=0.5"] = rank_biased(shown, judged, {}, 0.5)
    values["rbp_resid"] = _residual(shown, 0.9)
    values["rbp_resid_p=0.5"] = _residual(shown, 0.5)
    for length in (10, 3):
        values["relstring" + ("" if length == 10 else "_3")] = "".join(
            map(_character, shown[:length])
        )
    return values


def _character(relevance: int | None) -> str:
    if relevance is None:
        return "-"
    if relevance < 0:
        return "."
    return str(relevance) if relevance <= 9 else ">"


def _is_relevant(relevance: int | None, level: int) -> bool:
    return relevance is not None and relevance >= level


def _count(shown: List, level: int) -> int:
    return sum(_is_relevant(r, level) for r in shown)


def _over(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def _sets(shown: List, judged: Sequence[int], level: int, collection: int) -> dict[str, float]:
    n, r, hit = len(shown), _count(judged, level), _count(shown, level)
    p, recall = _over(hit, n), _over(hit, r)
    return {
        "num_q": 1, "num_ret": n, "num_rel": r, "num_rel_ret": hit,
        "num_nonrel_judged_ret": sum(x is not None and 0 <= x < level for x in shown),
        "set_P": p, "set_recall": recall, "set_relative_P": _over(hit, min(n, r)),
        "set_map": p * recall, "set_F": _over(2 * p * recall, p + recall),
        "set_F_0.5": _over(1.5 * p * recall, 0.5 * p + recall),
        "utility": hit - (n - hit),
        "utility_2,-1,0.5,3": 2 * hit - (n - hit) + 0.5 * (r - hit)
        + 3 * (collection - n - (r - hit)),
    }  # fmt: skip


def _ranked(shown: List, judged: Sequence[int], level: int) -> dict[str, float]:
    r = _count(judged, level)
    n_nonrel = sum(0 <= x < level for x in judged)
    precisions, bpref, inferred, binary = 0.0, 0.0, 0.0, 0.0
    for i, x in enumerate(shown):
        if not _is_relevant(x, level):
            continue
        above = shown[:i]
        hit = _count(above, level)
        worse = sum(y is not None and 0 <= y < level for y in above)
        pooled = sum(y is not None and y < 0 for y in above)
        precisions += (hit + 1) / (i + 1)
        bpref += 1 - min(worse, r) / min(n_nonrel, r) if worse else 1
        if i == 0:
            inferred += 1
        else:
            share = (hit + 1e-5) / (hit + worse + 2e-5)
            inferred += 1 / (i + 1) + i / (i + 1) * ((hit + worse + pooled) / i * share)
        binary += 1 / math.log2(2 + (i - hit))
    ap = _over(precisions, r)
    first = next((i for i, x in enumerate(shown) if _is_relevant(x, level)), None)
    values = {
        "map": ap, "gm_map": math.log(max(ap, 1e-5)), "bpref": _over(bpref, r),
        "gm_bpref": math.log(max(_over(bpref, r), 1e-5)), "infAP": _over(inferred, r),
        "binG": _over(binary, r), "recip_rank": 0.0 if first is None else 1 / (first + 1),
        "Rprec": _over(_count(shown[:r], level), r),
        "yaap": math.log((1 + precisions) / (1 + r - precisions)),
    }  # fmt: skip
    for times in (0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.4, 1.6, 1.8, 2.0):
        depth = int(times * r + 0.9)
        values[f"Rprec_mult_{times:.2f}"] = _over(_count(shown[:depth], level), depth)
    return values


def _recall_points(shown: List, judged: Sequence[int], level: int, compat: int) -> dict[str, float]:
    r = _count(judged, level)
    hits = [_count(shown[: i + 1], level) for i in range(len(shown))]

    def best(point: float) -> float:
        target = point * r
        needed = int(target + 0.9)
        if compat == 10:
            needed = int(target) + (target - int(target) >= 0.5)
        reaching = [hit / (i + 1) for i, hit in enumerate(hits) if hit >= max(needed, 1)]
        return max(reaching, default=0.0)

    points = [best(i / 10) for i in range(11)]
    return {
        **{f"iprec_at_recall_{i / 10:.2f}": value for i, value in enumerate(points)},
        "11pt_avg": sum(points) / 11,
        "11pt_avg_.25,.5,.75": sum(map(best, (0.25, 0.5, 0.75))) / 3,
    }


def _cut(shown: List, judged: Sequence[int], level: int, k: int) -> dict[str, float]:
    top, r = shown[:k], _count(judged, level)
    hit = _count(top, level)
    precisions = [
        _count(top[: i + 1], level) / (i + 1) for i, x in enumerate(top) if _is_relevant(x, level)
    ]
    first = next((i for i, x in enumerate(top) if _is_relevant(x, level)), None)
    n_judged = sum(x is not None and x >= 0 for x in top)
    gained = [max(x or 0, 0) for x in top]
    ideal = sorted((max(x, 0) for x in judged), reverse=True)[:k]
    return {
        f"P_{k}": hit / k, f"recall_{k}": _over(hit, r), f"success_{k}": float(hit > 0),
        f"relative_P_{k}": _over(hit, min(k, r)), f"map_cut_{k}": _over(sum(precisions), r),
        f"recip_rank_cut_{k}": 0.0 if first is None else 1 / (first + 1),
        f"judged_{k}": _over(sum(x is not None for x in top), len(top)),
        f"unj_{k}": (len(top) - n_judged) / k,
        f"ndcg_cut_{k}": _over(_discounted(gained), _discounted(ideal)),
    }  # fmt: skip


def _discounted(gained: Sequence[float]) -> float:
    return sum(gain / math.log2(i + 2) for i, gain in enumerate(gained))


def _gain(relevance: int | None, gains: Mapping[int, float]) -> float:
    if relevance is None:
        return gains.get(-1, 0.0)
    if relevance < 0:
        return gains.get(-2, 0.0)
    return gains.get(relevance, float(relevance))


def _gains(
    shown: List, judged: Sequence[int], level: int, gains: Mapping[int, float]
) -> dict[str, float]:
    gained = [_gain(x, gains) for x in shown]
    ideal = sorted((g for x in judged if x >= 0 and (g := _gain(x, gains)) > 0), reverse=True)
    whole = _discounted(ideal)
    return {
        "dcg": _discounted(gained),
        "ideal_dcg": whole,
        "ndcg": _over(_discounted(gained), whole),
        "ndcg_rel": _at_relevant(gained, ideal),
        "Rndcg": _at_levels(gained, ideal) if _count(judged, level) else 0.0,
        "G": _over(_costed(gained, ideal), sum(ideal)),
    }


def _at_relevant(gained: Sequence[float], ideal: Sequence[float]) -> float:
    points = [
        _over(_discounted(gained[: i + 1]), _discounted(ideal[: i + 1]))
        for i, gain in enumerate(gained)
        if gain > 0
    ]
    last = _over(_discounted(gained), _discounted(ideal))
    total = sum(points) + (len(ideal) - len(points)) * last
    return _over(total, len(ideal)) if total > 0 else 0.0


def _at_levels(gained: Sequence[float], ideal: Sequence[float]) -> float:
    if not ideal:
        return 0.0
    ends = [i for i in range(1, len(ideal)) if ideal[i] != ideal[i - 1]] + [len(ideal)]
    points = [_discounted(gained[:end]) / _discounted(ideal[:end]) for end in ends]
    if len(gained) > len(ideal) + 1:
        points.append(_discounted(gained) / _discounted(ideal))
    return sum(points) / len(points)


def _costed(gained: Sequence[float], ideal: Sequence[float]) -> float:
    total = 0.0
    for i, gain in enumerate(gained):
        if gain:
            cost = sum(max(ideal[j], 1.0) if j < len(ideal) else 1.0 for j in range(i + 1))
            left = 2 + cost - sum(gained[: i + 1])
            if left <= 0:  # as in C: the logarithm of 0 is infinite, below 0 it is NaN
                total += 0.0 if left == 0 else math.nan
            else:
                total += gain / math.log2(left) if left != 1 else math.copysign(math.inf, gain)
    return total


def rank_biased(shown: List, judged: Sequence[int], gains: Mapping[int, float], p: float) -> float:
    """Moffat and Zobel's measure over gains, scaled to 0 to 1 if some are outside."""
    levels = {*range(max(judged, default=-1) + 1), *gains}
    all_gains = [gains.get(one, float(one)) for one in levels]
    least, most = min(all_gains, default=0.0), max(all_gains, default=1.0)
    total = 0.0
    for i, x in enumerate(shown):
        code = -1 if x is None else -2 if x < 0 else x
        if code not in levels:
            continue
        gain = gains.get(code, float(code))
        if least < 0 or most > 1:
            gain = _over(gain - least, most - least)
        total += gain * p**i
    return (1 - p) * total


def _residual(shown: List, p: float) -> float:
    unjudged = [i for i, x in enumerate(shown) if x is None or x < 0]
    return p ** len(shown) + (1 - p) * sum(p**i for i in unjudged) if unjudged else 0.0
