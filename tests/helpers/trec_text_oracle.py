"""The meaning of run and qrels files, in slow plain Python, without code of the package."""

from __future__ import annotations

import re

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


def number(text: bytes) -> float | None:
    return float(text) if _NUMBER.fullmatch(text) else None


def read(content: bytes, is_run: bool) -> tuple[dict[bytes, dict[bytes, float | int]], bytes]:
    """Query, then document, to its score or relevance, in the order of the file; and the tag."""
    queries: dict[bytes, dict[bytes, float | int]] = {}
    tag = b""
    if content.startswith((b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd")):
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
            value = whole(fields[3])
        if value is None:
            raise Refused(place, "score" if is_run else "relevance")
        documents = queries.setdefault(fields[0], {})
        if fields[2] in documents:
            raise Refused(place, "duplicate")
        documents[fields[2]] = value
    if not queries:
        raise Refused(None, "empty")
    return queries, tag


def single(score: float) -> float:
    """Nearest float32, half to even."""
    import struct

    try:
        return struct.unpack("f", struct.pack("f", score))[0]
    except OverflowError:
        return float("inf") if score > 0 else float("-inf")


def lists(qrels, run, *, depth=None, keep_ties=False, judged_only=False, single_precision=False,
          absent=False):  # fmt: skip
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
