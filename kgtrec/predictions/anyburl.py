"""Rankings of AnyBURL and PyClause: a triple, then the candidates of its head and of its tail.

The format is that of PyClause's sources (https://github.com/symbolic-kg/PyClause): written by
``src/c_clause/features/Application.cpp``, "the same as the AnyBURL ranking files" by its
documentation, and read by ``clause/eval/evaluation.py``, which takes either line first.
"""

from __future__ import annotations

from os import PathLike

from kgtrec.errors import FileError
from kgtrec.graph.id_files import lines_of, refuse, text_of
from kgtrec.predictions.lists import ListsBuilder, PredictedLists, checked_score
from kgtrec.questions.questions import QuestionData

__all__ = ["read_anyburl"]

_RECORD = (
    "a record is three lines: head relation tail; Heads: entity<TAB>score<TAB>...; "
    "Tails: entity<TAB>score<TAB>..."
)
_STARTS = (b"Heads:", b"Tails:")


def read_anyburl(path: str | PathLike[str], questions: QuestionData) -> PredictedLists:
    """Lists of the three-line records that AnyBURL's Apply and PyClause's RankingHandler write.

    Heads stand before tails or behind them, as PyClause's own evaluation reads them. It writes
    scores with six digits: candidates that it told apart may tie here.

    Each list was made for one triple: programs that filter leave the other answers of its question
    out of it.

    Raises
    ------
    FileError
        With the first line that is not as it should be.
    """
    builder = ListsBuilder(questions, "anyburl", path)
    triple: list[bytes] = []
    expected, first, line = 0, 0, 0
    for line, text in lines_of(path):
        if not text.strip():
            continue
        if expected == 0:
            triple = _triple(path, line, text)
        else:
            if expected == 1:
                first = 1 if text.startswith(_STARTS[1]) else 0  # heads, unless tails stand first
            side = first if expected == 1 else 1 - first
            labels, scores = _candidates(path, line, text, _STARTS[side])
            head, relation, tail = triple
            entity, answer = (tail, head) if side == 0 else (head, tail)
            builder.add(line, side, entity, relation, labels, scores, answer)
        expected = (expected + 1) % 3
    if expected:
        start = _STARTS[0 if expected == 1 else 1 - first].decode()
        raise FileError(path, line, found=f"the end, before the line {start}", hint=_RECORD)
    return builder.build()


def _triple(path: str | PathLike[str], line: int, text: bytes) -> list[bytes]:
    fields = text.split(b"\t") if b"\t" in text else text.split(b" ")
    if len(fields) != 3 or text.startswith(_STARTS):
        refuse(path, line, f"{text_of(text[:60])!r} in place of a triple", _RECORD)
    return fields


def _candidates(
    path: str | PathLike[str], line: int, text: bytes, start: bytes
) -> tuple[list[bytes], list[float]]:
    if not text.startswith(start):
        refuse(path, line, f"{text_of(text[:60])!r} in place of {start.decode()}", _RECORD)
    fields = text[len(start) :].strip(b" \t").split(b"\t")
    if fields == [b""]:
        return [], []
    if len(fields) % 2:
        refuse(path, line, f"{len(fields)} fields, where entities and scores alternate", _RECORD)
    labels = [field.strip(b" ") for field in fields[::2]]
    try:
        scores = list(map(float, fields[1::2]))
    except ValueError:
        scores = []
    if len(scores) < len(labels) or any(score != score for score in scores):
        pairs = zip(labels, fields[1::2], strict=True)
        scores = [checked_score(path, line, score, repr(text_of(name))) for name, score in pairs]
    return labels, scores
