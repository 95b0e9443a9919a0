"""What trec_eval computes, in slow plain Python, without code of the package.

Every measure of one query from its definition: a list has relevances in order, None for a document
that is not in the qrels. `judged` has the relevance of all judged documents. Below 0 means in the
pool but not judged. Below: values under ties by trying every order, the meaning of run and qrels
files, and measures of judgements in groups, from single pairs of documents.
"""

from __future__ import annotations

import json
import math
import re
import struct
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations, product

List = Sequence[int | None]


CUTS = (1, 2, 3, 5, 10, 20)
TENTHS = tuple(i / 10 for i in range(11))
FIFTHS = tuple(i / 5 for i in range(1, 11))
TYPED = (
    "relstring",
    "relstring_3",
    "utility_2,-1,0.5,3",
    "set_F_0.5",
    "11pt_avg_.25,.5,.75",
    "rbp_p=0.5",
    "rbp_resid_p=0.5",
)


def measures(
    shown: List,
    judged: Sequence[int],
    level: int = 1,
    compat: int = 10,
    collection: int = 0,
    *,
    cuts: Sequence[int] = CUTS,
    points: Sequence[float] = TENTHS,
    multiples: Sequence[float] = FIFTHS,
    typed: Sequence[str] = TYPED,
) -> dict[str, float | str]:
    """All measures except runid, with their defaults and with some parameters."""
    values = {**_sets(shown, judged, level), **_ranked(shown, judged, level, multiples)}
    at = {f"iprec_at_recall_{x:.2f}": _best(shown, judged, level, compat, x) for x in points}
    for k in cuts:
        at |= _cut(shown, judged, level, k)
    for name, gains in (
        ("", {}),
        ("_1=3,2=9,4=4.5", {1: 3.0, 2: 9.0, 4: 4.5}),
        ("_0=0.25,1=0.5", {0: 0.25, 1: 0.5}),
        ("_-1=1,-2=2", {-1: 1.0, -2: 2.0}),
        ("_1=-2,3=0", {1: -2.0, 3: 0.0}),
    ):
        values |= {f + name: v for f, v in _gains(shown, judged, level, gains).items()}
        values["rbp" + name] = rank_biased(shown, judged, gains, 0.9)
    values["rbp_resid"] = _residual(shown, 0.9)
    values["lrap"] = label_ranking([(-float(i), r) for i, r in enumerate(shown)], judged, level)
    values["11pt_avg"] = sum(_best(shown, judged, level, compat, x) for x in TENTHS) / 11
    for name in typed:
        family, text = re.fullmatch(
            r"(utility|set_F|11pt_avg|relstring|rbp(?:_resid)?)(?:_(.*))?", name
        ).groups()
        numbers = [float(one.removeprefix("p=")) for one in (text or "10").split(",")]
        values[name] = {
            "utility": lambda n: _utility(shown, judged, level, collection, *n),
            "set_F": lambda n: _f_measure(values["set_P"], values["set_recall"], *n),
            "11pt_avg": lambda n: sum(_best(shown, judged, level, compat, x) for x in n) / len(n),
            "relstring": lambda n: "".join(map(_character, shown[: int(n[0])])),
            "rbp": lambda n: rank_biased(shown, judged, {}, *n),
            "rbp_resid": lambda n: _residual(shown, *n),
        }[family](numbers)
    return values | at


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


def _sets(shown: List, judged: Sequence[int], level: int) -> dict[str, float]:
    n, r, hit = len(shown), _count(judged, level), _count(shown, level)
    p, recall = _over(hit, n), _over(hit, r)
    return {
        "num_q": 1,
        "num_ret": n,
        "num_rel": r,
        "num_rel_ret": hit,
        "num_nonrel_judged_ret": sum(x is not None and 0 <= x < level for x in shown),
        "set_P": p,
        "set_recall": recall,
        "set_relative_P": _over(hit, min(n, r)),
        "set_map": p * recall,
        "set_F": _f_measure(p, recall, 1),
        "utility": hit - (n - hit),
    }


def _f_measure(precision: float, recall: float, beta: float) -> float:
    return _over((beta + 1) * precision * recall, beta * precision + recall)


def _utility(
    shown: List,
    judged: Sequence[int],
    level: int,
    collection: int,
    a: float,
    b: float,
    c: float,
    d: float,
) -> float:
    n, hit = len(shown), _count(shown, level)
    missed = _count(judged, level) - hit
    return a * hit + b * (n - hit) + c * missed + d * (collection - n - missed)


def _ranked(
    shown: List, judged: Sequence[int], level: int, multiples: Sequence[float]
) -> dict[str, float]:
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
        "map": ap,
        "gm_map": math.log(max(ap, 1e-5)),
        "bpref": _over(bpref, r),
        "gm_bpref": math.log(max(_over(bpref, r), 1e-5)),
        "infAP": _over(inferred, r),
        "binG": _over(binary, r),
        "recip_rank": 0.0 if first is None else 1 / (first + 1),
        "Rprec": _over(_count(shown[:r], level), r),
        "yaap": math.log((1 + precisions) / (1 + r - precisions)),
    }
    for times in multiples:
        depth = int(times * r + 0.9)
        values[f"Rprec_mult_{times:.2f}"] = _over(_count(shown[:depth], level), depth)
    return values


def _best(shown: List, judged: Sequence[int], level: int, compat: int, point: float) -> float:
    """The best precision at or behind a point of recall."""
    target = point * _count(judged, level)
    needed = int(target + 0.9)
    if compat == 10:
        needed = int(target) + (target - int(target) >= 0.5)
    hits = [_count(shown[: i + 1], level) for i in range(len(shown))]
    reaching = [hit / (i + 1) for i, hit in enumerate(hits) if hit >= max(needed, 1)]
    return max(reaching, default=0.0)


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
        f"P_{k}": hit / k,
        f"recall_{k}": _over(hit, r),
        f"success_{k}": float(hit > 0),
        f"relative_P_{k}": _over(hit, min(k, r)),
        f"map_cut_{k}": _over(sum(precisions), r),
        f"relative_map_{k}": _over(sum(precisions), min(k, r)),
        f"map_hits_{k}": _over(sum(precisions), hit),
        f"F1_{k}": _f_measure(hit / k, _over(hit, r), 1),
        f"recip_rank_cut_{k}": 0.0 if first is None else 1 / (first + 1),
        f"judged_{k}": _over(sum(x is not None for x in top), len(top)),
        f"unj_{k}": (len(top) - n_judged) / k,
        f"ndcg_cut_{k}": _over(_discounted(gained), _discounted(ideal)),
    }


def label_ranking(
    documents: Sequence[tuple[float, int | None]], judged: Sequence[int], level: int
) -> float:
    """Mean over relevant documents: of those that score as high or higher, the relevant share."""
    shares = []
    for score, relevance in documents:
        if _is_relevant(relevance, level):
            as_high = [other for other in documents if other[0] >= score]
            shares.append(_count([r for _, r in as_high], level) / len(as_high))
    return _over(sum(shares), _count(judged, level))


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
        total += gain * _power(p, i)
    return (1 - p) * total


def _power(p: float, n: int) -> float:
    """One factor after the other: half-way cases must round as in trec_eval."""
    return math.prod([p] * n)


def _residual(shown: List, p: float) -> float:
    unjudged = [i for i, x in enumerate(shown) if x is None or x < 0]
    if not unjudged:
        return 0.0
    return _power(p, len(shown)) + (1 - p) * sum(_power(p, i) for i in unjudged)


# -- Ties --------------------------------------------------------------------------------------

Documents = Sequence[tuple[float, int | None]]


def orders(documents: Documents) -> Iterator[tuple[int | None, ...]]:
    """Relevances in every order that respects the scores, each order of documents once."""
    groups: dict[float, list[int | None]] = {}
    for score, relevance in documents:
        groups.setdefault(score, []).append(relevance)
    ranked = [groups[score] for score in sorted(groups, reverse=True)]
    for choice in product(*(permutations(group) for group in ranked)):
        yield tuple(relevance for group in choice for relevance in group)


def over_orders(
    documents: Documents,
    judged: Sequence[int],
    level: int,
    most: int | None,
    judged_only: bool,
    cuts: Sequence[int],
    typed: Sequence[str] = (),
) -> dict[str, dict[str, float]]:
    """Expectation, least and greatest value of every measure, after -M and then -J."""
    counts = Counter(orders(documents))
    rows = []
    for order in counts:
        shown = [r for r in order[:most] if not judged_only or (r is not None and r >= 0)]
        rows.append(measures(shown, judged, level, cuts=cuts, typed=typed))
    weights = [*counts.values()]
    return {
        name: {
            "expected": sum(w * row[name] for w, row in zip(weights, rows, strict=True))
            / sum(weights),
            "min": min(row[name] for row in rows),
            "max": max(row[name] for row in rows),
        }
        for name in rows[0]
    }


# -- Files -------------------------------------------------------------------------------------

UNJUDGED = 1 - 2**63

_NUMBER = re.compile(rb"[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|(?i:inf(?:inity)?))")
_WHOLE = re.compile(rb"[+-]?\d+")


class Refused(Exception):
    """The faulty line (None: the file is empty), and the reason."""

    def __init__(self, line: int | None, why: str) -> None:
        super().__init__(line, why)
        self.line, self.why = line, why


def whole(text: bytes) -> int | None:
    if not _WHOLE.fullmatch(text) or len(text.lstrip(b"+-0")) > 19:
        return None
    value = int(text)
    return value if -(2**63) <= value < 2**63 else None


def relevance(text: bytes) -> int | None:
    """A whole number, or a decimal that is one, such as 1.0 or 1e2, up to 2^53."""
    value, size = whole(text), number(text)
    if value is not None or size is None or not abs(size) <= 2**53 or size != int(size):
        return value
    is_zero = not re.search(rb"[1-9]", text.lower().partition(b"e")[0])
    return int(size) if is_zero or size else None  # 1e-400 is a fraction, not 0


def number(text: bytes) -> float | None:
    return float(text) if _NUMBER.fullmatch(text) else None


def read(content: bytes, is_run: bool) -> tuple[dict[bytes, dict[bytes, float | int]], bytes]:
    """Query, then document, to its score or relevance, in the order of the file; and the tag."""
    queries: dict[bytes, dict[bytes, float | int]] = {}
    tag = b""
    if content.startswith((b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd", b"\x04\x22\x4d\x18")):
        raise Refused(None, "packed")
    lines = content.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    for place, line in enumerate(lines, 1):
        fields = line.split()
        if not fields:
            if not is_run:
                raise Refused(place, "blank")
            continue
        if fields[0][:1] == b"#":
            continue
        value: float | int | None
        if is_run:
            if len(fields) < 6:
                raise Refused(place, "columns")
            shifted = whole(fields[3]) is None or number(fields[5]) is not None
            if len(fields) > 6 and shifted:
                raise Refused(place, "columns")
            value, tag = number(fields[4]), fields[5]
        else:
            if len(fields) != 4:
                raise Refused(place, "columns")
            value = relevance(fields[3])
        if value is None:
            raise Refused(place, "score" if is_run else "relevance")
        documents = queries.setdefault(fields[0], {})
        if fields[2] in documents:
            raise Refused(place, "duplicate")
        documents[fields[2]] = value
    if not queries:
        raise Refused(None, "empty")
    return queries, tag


MARKS = {
    b"\xff\xfe\0\0": "UTF-32",
    b"\0\0\xfe\xff": "UTF-32",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
}


def marked_encoding(content: bytes) -> str:
    """The encoding that a byte order mark names, or ""; the longer marks come first."""
    return next((name for mark, name in MARKS.items() if content.startswith(mark)), "")


def is_text_in(content: bytes, encoding: str) -> bool:
    """Whether a file may be text of 16 or 32 bits per character: its start can be read as such.

    The start is the first line, of at most 256 bytes, as a reader has no more when it decides.
    """
    size = 4 if "32" in encoding else 2
    start = content[:256].partition(b"\n")[0]
    try:
        text = start[: len(start) // size * size].decode(encoding)
    except UnicodeDecodeError:
        return False
    return b"\0" in start and all(one.isprintable() or one.isspace() for one in text)


def _lines_of(content: bytes) -> Iterator[tuple[int, list[bytes]]]:
    """Numbers and fields of the lines that are neither blank nor comments."""
    for place, line in enumerate(content.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        fields = line.split()
        if fields and not fields[0].startswith(b"#"):
            yield place, fields


def read_short(
    content: bytes, is_run: bool
) -> tuple[dict[bytes, dict[bytes, float | int]], bytes] | None:
    """As `read`, for files of three columns without a heading; None for others.

    The first two lines decide. Qrels may mean anything. Runs whose values count 1, 2, 3, ... in
    every query are MS MARCO's: the first rank is best.
    """
    lines = list(_lines_of(content))
    values = [number(fields[2]) if len(fields) == 3 else None for _, fields in lines[:2]]
    if not all(value is not None and abs(value) < 2**63 for value in values):
        return None
    if not lines:
        return None
    if not is_run:
        raise Refused(lines[0][0], "form")
    queries: dict[bytes, dict[bytes, float | int]] = {}
    for place, fields in lines:
        if len(fields) != 3:
            raise Refused(place, "columns")
        if (value := number(fields[2])) is None:
            raise Refused(place, "score")
        documents = queries.setdefault(fields[0], {})
        if fields[1] in documents:
            raise Refused(place, "duplicate")
        documents[fields[1]] = value
    for documents in queries.values():
        if [*documents.values()] != [*range(1, len(documents) + 1)]:
            raise Refused(lines[0][0], "form")
    return {q: {d: -rank for d, rank in ds.items()} for q, ds in queries.items()}, b""


def read_json(
    content: bytes, is_run: bool
) -> tuple[dict[bytes, dict[bytes, float | int]], bytes] | None:
    """As `read`, for {query: {document: value}}; None for texts that do not begin like JSON.

    Lists are refused here: no list of records comes out of the strategies of the tests.
    """
    text = content.removeprefix(b"\xef\xbb\xbf")
    if re.match(rb"\s*\[\s*[\[{\]]", text):
        raise Refused(None, "json")
    if not re.match(rb'\s*\{\s*["}]', text):
        return None
    kinds = (int, float, bool)  # true is 1
    try:
        data = json.loads(text, object_pairs_hook=_once)
    except (ValueError, RecursionError):
        raise Refused(None, "json") from None
    queries: dict[bytes, dict[bytes, float | int]] = {}
    for query, documents in data.items():
        if not isinstance(documents, dict):
            raise Refused(None, "json")
        raw = queries[query.encode("utf-8", "surrogateescape")] = {}
        for name, shown in documents.items():
            value = _number_of_text(shown) if isinstance(shown, str) else shown
            fits = type(value) in kinds and value == value and (is_run or _is_level(value))
            if not fits:
                raise Refused(None, "json")
            raw[name.encode("utf-8", "surrogateescape")] = float(value) if is_run else int(value)
    if not any(queries.values()):
        raise Refused(None, "json")
    # A query of a run may have retrieved nothing; one of qrels without judgements is none.
    return {query: own for query, own in queries.items() if own or is_run}, b""


def _number_of_text(text: str) -> float | int | None:
    """The number below 2^63 that a JSON text states; whole ones exactly."""
    if re.fullmatch(r"[+-]?[0-9]{1,19}", text):
        return int(text)
    if not re.fullmatch(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*", text, re.ASCII):
        return None
    return float(text) if abs(float(text)) < 2**63 else None


def _is_level(value: float) -> bool:
    return value == int(value) and -(2**63) <= value < 2**63


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    data = dict(pairs)
    if len(data) < len(pairs):
        raise ValueError("a name is there twice")
    return data


def single(score: float) -> float:
    """Nearest float32, half to even."""
    try:
        return struct.unpack("f", struct.pack("f", score))[0]
    except OverflowError:
        return float("inf") if score > 0 else float("-inf")


def lists(
    qrels,
    run,
    *,
    depth=None,
    keep_ties=False,
    judged_only=False,
    single_precision=False,
    absent=False,
):
    """Query -> (relevances, scores, retrieved, judged), queries in byte order.

    Judged and unjudged documents never mix, because the lowest levels are one.
    """
    qrels = {q: {d: max(v, UNJUDGED + 1) for d, v in ds.items()} for q, ds in qrels.items()}
    made = {}
    for query in sorted(qrels):
        if query not in run and not absent:
            continue
        scores = run.get(query, {})
        if single_precision:
            scores = {document: single(score) for document, score in scores.items()}
        order = sorted(scores, key=lambda name: (scores[name], name), reverse=True)
        if judged_only:
            order = [name for name in order if qrels[query].get(name, -1) >= 0]
        shown = order[:depth]
        if keep_ties and shown:
            shown += [n for n in order[len(shown) :] if scores[n] == scores[shown[-1]]]
        made[query] = (
            [qrels[query].get(name, UNJUDGED) for name in shown],
            [scores[name] for name in shown],
            len(order),
            sorted(qrels[query].values(), reverse=True),
        )
    return made


# -- Judgements in groups ---------------------------------------------------------------------

Line = tuple[str, str, str, str, float]


class Contradiction(Exception):
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
            raise Contradiction
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
            raise Contradiction
    better = {
        (a[3], b[3]) for a in group for b in group if a[2] == b[2] and a[4] > b[4] and a[3] != b[3]
    }
    while True:
        more = {(a, d) for a, b in better for c, d in better if b == c} - better
        if not more:
            break
        better |= more
    if any((b, a) in better for a, b in better):
        raise Contradiction
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
    seen = [(p, q) for p, q in pairs if p < ret and q < ret]
    for key, ful, poss, rel, others, among in (
        ("balanced", counts["fr"] + counts["fi"], _possible(counts), relevant, other, pairs),
        ("balanced_ret", counts["fr"], counts["pr"], got, got_other, seen),
    ):
        extra = len(rel) - len(others)
        if extra >= 0:
            counts[key] = ful + len(got) * extra, poss + len(relevant) * extra
        else:
            gone = others[len(relevant) :]
            left = [(p, q) for p, q in among if p not in gone and q not in gone]
            counts[key] = sum(p < q and p < ret for p, q in left), len(left)
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
        one = {
            "map_avgjg": _over(
                sum(sum(hits[: i + 1]) / (i + 1) for i, hit in enumerate(hits) if hit), total
            )
        }
        for c in cutoffs:
            one[f"P_avgjg_{c}"] = sum(hits[:c]) / c
        for m in multiples:
            c = math.trunc(m * total + 0.9)
            one[f"Rprec_mult_avgjg_{m:.2f}"] = sum(hits[:c]) / c if c > 0 else 0.0
        values.append(one)
    return {key: sum(one[key] for one in values) / len(values) for key in values[0]}
