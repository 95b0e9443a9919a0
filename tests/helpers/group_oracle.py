"""Every measure of judgements in groups, in slow plain Python, from single pairs of documents.

Judgements are lists of (query, group, subgroup, document, level); a run is a dict of query to
document to score. Only the definitions are shared with kgtrec.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

Line = tuple[str, str, str, str, float]


class Refused(Exception):
    """Judgements that contradict each other."""


def preference_values(
    lines: Sequence[Line], run: dict[str, float], most: int | None = None
) -> dict[str, float]:
    """All measures of one query; an empty run for one that was not retrieved."""
    order = sorted(run, key=lambda d: d.encode())
    order = sorted(order, key=lambda d: -run[d])[:most]
    judged = {line[3] for line in lines}
    seen = [d for d in order if d in judged]
    missing = sorted(judged - set(seen), key=lambda d: d.encode())
    place = {d: i for i, d in enumerate([*seen, *missing])}
    ret = len(seen)
    groups = [
        [line for line in lines if line[1] == name]
        for name in sorted({line[1] for line in lines}, key=lambda g: g.encode())
    ]
    all_pairs, counted = [], []
    for group in groups:
        if len({line[2] for line in group}) == 1:
            one = _simple(group, place, ret)
        else:
            one = _partial(group, place, ret)
        counted.append(one)
        all_pairs += one["pairs"]
    values = {
        "prefs_num_prefs_poss": sum(_possible(g) for g in counted),
        "prefs_num_prefs_ful": sum(g["fr"] + g["fi"] for g in counted),
        "prefs_num_prefs_ful_ret": sum(g["fr"] for g in counted),
    }
    kinds = {
        "": (lambda g: g["fr"] + g["fi"], _possible),
        "_ret": (lambda g: g["fr"], lambda g: g["pr"]),
        "_imp": (lambda g: g["fr"] + g["fi"], lambda g: g["pr"] + g["pi"]),
    }
    for ending, (part, whole) in kinds.items():
        values["prefs_simp" + ending] = _over(sum(map(part, counted)), sum(map(whole, counted)))
        shares = [_over(part(g), whole(g)) for g in counted]
        values["prefs_avgjg" + ending] = sum(shares) / len(shares)
    for ending, key in (("", "balanced"), ("_ret", "balanced_ret")):
        shares = [g[key] for g in counted]
        undefined = any(whole == 0 for _, whole in shares)
        value = 0.0 if undefined else sum(f / p for f, p in shares) / len(shares)
        values["prefs_avgjg_Rnonrel" + ending] = value
    return values | _pairs(all_pairs, len(place), ret)


def _over(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def _possible(g: dict) -> int:
    return g["pr"] + g["pi"] + g["no"]


def _counts(pairs: list[tuple[int, int]], ret: int) -> dict:
    counts = dict.fromkeys(("fr", "pr", "fi", "pi", "no"), 0)
    for p, q in pairs:
        if p < ret and q < ret:
            counts["pr"] += 1
            counts["fr"] += p < q
        elif p < ret or q < ret:
            counts["pi"] += 1
            counts["fi"] += p < ret
        else:
            counts["no"] += 1
    return counts | {"pairs": pairs}


def _simple(group: Sequence[Line], place: dict[str, int], ret: int) -> dict:
    rows = sorted((place[d], level) for _, _, _, d, level in group)
    for p, level in rows:
        if any(q == p and other != level for q, other in rows):
            raise Refused
    pairs = [(p, q) for p, lp in rows for q, lq in rows if lp > lq]
    counts = _counts(pairs, ret)
    lowest = min(level for _, level in rows)
    for key, shown in (("balanced", rows), ("balanced_ret", [r for r in rows if r[0] < ret])):
        relevant = sum(level > 0 for _, level in shown)
        other = len(shown) - relevant
        ful = counts["fr"] + (counts["fi"] if key == "balanced" else 0)
        poss = _possible(counts) if key == "balanced" else counts["pr"]
        if relevant >= other:
            ful += sum(level > 0 and p < ret for p, level in rows) * (relevant - other)
            poss += sum(level > 0 for _, level in rows) * (relevant - other)
        else:
            ful = poss = 0
            for p, lp in shown:
                for q, lq in shown:
                    if lp > lq > lowest:
                        poss += 1
                        ful += p < q and p < ret
            chosen = [p for p, level in rows if level == lowest][:relevant]
            for z in chosen:
                if key == "balanced_ret" and z >= ret:
                    continue
                for p, _ in shown:
                    poss += 1
                    ful += p < z and p < ret
        counts[key] = ful, poss
    return counts


def _partial(group: Sequence[Line], place: dict[str, int], ret: int) -> dict:
    documents = {line[3] for line in group}
    for d in documents:
        levels = [line[4] for line in group if line[3] == d]
        if 0 in levels and max(levels) > 0:
            raise Refused
    better = {
        (a[3], b[3]) for a in group for b in group if a[2] == b[2] and a[4] > b[4] and a[3] != b[3]
    }
    while True:
        more = {(a, d) for a, b in better for c, d in better if b == c} - better
        if not more:
            break
        better |= more
    if any((b, a) in better for a, b in better):
        raise Refused
    last = max((line[2] for line in group), key=lambda s: s.encode())
    level = {}
    for d in documents:
        mine = max((line[2] for line in group if line[3] == d), key=lambda s: s.encode())
        level[d] = min(line[4] for line in group if line[3] == d and line[2] == mine)
    assert last is not None
    pairs = sorted((place[a], place[b]) for a, b in better)
    counts = _counts(pairs, ret)
    relevant = sorted(place[d] for d in documents if level[d] > 0)
    other = sorted(place[d] for d in documents if level[d] == 0)
    got, got_other = ([p for p in some if p < ret] for some in (relevant, other))
    if len(relevant) >= len(other):
        extra = len(relevant) - len(other)
        counts["balanced"] = (
            counts["fr"] + counts["fi"] + len(got) * extra,
            _possible(counts) + len(relevant) * extra,
        )  # fmt: skip
    else:
        gone = other[len(relevant) :]
        left = [(p, q) for p, q in pairs if p not in gone and q not in gone]
        counts["balanced"] = sum(p < q and p < ret for p, q in left), len(left)
    if len(got) >= len(got_other):
        extra = len(got) - len(got_other)
        counts["balanced_ret"] = (
            counts["fr"] + len(got) * extra,
            counts["pr"] + len(relevant) * extra,
        )
    else:
        gone = got_other[len(relevant) :]
        left = [(p, q) for p, q in pairs if p < ret and q < ret and p not in gone and q not in gone]
        counts["balanced_ret"] = sum(p < q for p, q in left), len(left)
    return counts


def _pairs(pairs: list[tuple[int, int]], size: int, ret: int) -> dict[str, float]:
    sums, counts = dict.fromkeys(("", "_ret", "_imp"), 0.0), dict.fromkeys(("", "_ret", "_imp"), 0)
    for i in range(size):
        for j in range(i + 1, size):
            forward, backward = pairs.count((i, j)), pairs.count((j, i))
            if not forward + backward:
                continue
            share = forward / (forward + backward)
            for ending, counts_here in (("", True), ("_ret", j < ret), ("_imp", i < ret)):
                counts[ending] += counts_here
                sums[ending] += share if counts_here and i < ret else 0.0
    return {f"prefs_pair{e}": _over(sums[e], counts[e]) for e in sums}


def assessor_values(
    lines: Sequence[Line],
    run: dict[str, float],
    most: int | None = None,
    level: int = 1,
    judged_only: bool = False,
    cutoffs: Sequence[int] = (1, 2, 5),
    multiples: Sequence[float] = (-0.5, 0.5, 1.0, 2.5),
) -> dict[str, float]:
    """map_avgjg, P_avgjg and Rprec_mult_avgjg of one query."""
    order = sorted(run, key=lambda d: d.encode(), reverse=True)
    order = sorted(order, key=lambda d: -run[d])[:most]
    values: list[dict[str, float]] = []
    for name in sorted({line[1] for line in lines}, key=lambda g: g.encode()):
        judged = {line[3]: line[4] for line in lines if line[1] == name}
        shown = [judged.get(d, -1) for d in order]
        if judged_only:
            shown = [r for r in shown if r >= 0]
        hits = [r >= level for r in shown]
        total = sum(r >= level for r in judged.values())
        one = {"map_avgjg": _over(
            sum(sum(hits[: i + 1]) / (i + 1) for i, hit in enumerate(hits) if hit), total
        )}  # fmt: skip
        for c in cutoffs:
            one[f"P_avgjg_{c}"] = sum(hits[:c]) / c
        for m in multiples:
            c = math.trunc(m * total + 0.9)
            one[f"Rprec_mult_avgjg_{m:.2f}"] = sum(hits[:c]) / c if c > 0 else 0.0
        values.append(one)
    return {key: sum(one[key] for one in values) / len(values) for key in values[0]}
