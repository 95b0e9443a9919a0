"""Lists as JSON lines, as people have language models write them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from os import PathLike
from typing import Any

from kgtrec.errors import FileError
from kgtrec.graph.id_files import lines_of, text_of
from kgtrec.graph.triples import COLUMNS
from kgtrec.predictions.lists import ListsBuilder, PredictedLists, checked_score
from kgtrec.questions.questions import QuestionData
from kgtrec.questions.sides import GIVEN

__all__ = ["lists_of_records", "read_jsonl"]

_LINE = (
    'a line is {"head": ..., "relation": ..., "predictions": [...]}, or with "tail" in place of '
    '"head", or of "relation"; predictions are labels, or pairs [label, score]; of facts with a '
    'time or qualifiers, "time" or "qualifiers" is their label'
)


def read_jsonl(path: str | PathLike[str], questions: QuestionData) -> PredictedLists:
    """Lists of a file with a JSON object a line; other keys of an object are ignored.

    Raises
    ------
    FileError
        With the first line that is not such an object.
    """
    return _collected(_parsed(path), questions, path)


def lists_of_records(
    records: Iterable[Mapping[str, Any]], questions: QuestionData
) -> PredictedLists:
    """Lists of the same objects at hand, for loops that ask a model question by question."""
    return _collected(enumerate(records, start=1), questions, "predictions")


def _parsed(path: str | PathLike[str]) -> Iterable[tuple[int, Any]]:
    for line, text in lines_of(path):
        if text.strip():
            try:
                yield line, json.loads(text)
            except (ValueError, RecursionError) as error:
                what = f"{text_of(text[:60])!r} is not JSON ({error})"
                raise FileError(path, line, found=what, hint=_LINE) from None


def _collected(
    records: Iterable[tuple[int, Any]], questions: QuestionData, path: str | PathLike[str]
) -> PredictedLists:
    builder = ListsBuilder(questions, "jsonl", path)
    for line, record in records:
        if not isinstance(record, Mapping):
            raise FileError(path, line, found=f"{_shown(record)}, not an object", hint=_LINE)
        side = _side(path, line, record, questions.kind)
        given = [_label(path, line, record, COLUMNS[column]) for column in GIVEN[side]]
        labels, scores = _predictions(path, line, record.get("predictions"))
        name = questions.graph.context_name
        context = None if name is None else _label(path, line, record, name)
        builder.add(line, side, given[0], given[1], labels, scores, context=context)
    return builder.build()


def _side(path: Any, line: int, record: Mapping[str, Any], kind: str) -> int:
    """Code of the side that a record leaves out; the relation only where relations are asked."""
    known = [name for name in COLUMNS if record.get(name) is not None]
    for side, columns in enumerate(GIVEN[: 3 if kind == "relation" else 2]):
        if known == [COLUMNS[column] for column in sorted(columns)]:
            return side
    ends = [name for name in known if name != "relation"]
    what = f"{' and '.join(ends) or 'neither head nor tail'} in {_shown(record)}"
    hint = "give the known one of head and tail alone; the other one is predicted"
    raise FileError(path, line, found=what, hint=hint)


def _label(path: Any, line: int, record: Mapping[str, Any], name: str) -> bytes:
    label = record.get(name)
    if not isinstance(label, str) or not label:
        raise FileError(path, line, found=f"{name} is {_shown(label)}, not a label", hint=_LINE)
    return _encoded(label)


def _predictions(path: Any, line: int, entries: Any) -> tuple[list[bytes], list[float] | None]:
    if not isinstance(entries, (list, tuple)):
        raise FileError(path, line, found=f"predictions are {_shown(entries)}", hint=_LINE)
    paired = len(entries) > 0 and not isinstance(entries[0], str)
    for entry in entries:
        pair = isinstance(entry, (list, tuple)) and len(entry) == 2 and isinstance(entry[0], str)
        if not (pair if paired else isinstance(entry, str)):
            raise FileError(path, line, found=f"a prediction {_shown(entry)}", hint=_LINE)
    if not paired:
        return [_encoded(entry) for entry in entries], None
    scores = [checked_score(path, line, entry[1], repr(entry[0])) for entry in entries]
    return [_encoded(entry[0]) for entry in entries], scores


def _encoded(label: str) -> bytes:
    return label.encode("utf-8", "surrogatepass" if not _escapable(label) else "surrogateescape")


def _escapable(label: str) -> bool:
    """JSON may hold lone surrogates that stand for no byte."""
    try:
        label.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return False
    return True


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}..."
