"""Rankings of AnyBURL and PyClause: a triple, then the candidates of its head and of its tail.

The format is that of PyClause's sources (https://github.com/symbolic-kg/PyClause): written by
``src/c_clause/features/Application.cpp``, "the same as the AnyBURL ranking files" by its
documentation, and read by ``clause/eval/evaluation.py``, which takes either line first.

Lists as JSON lines, a common output of language models.

Submissions of OGB-LSC's WikiKG90Mv2: the ten best entities of each triple, as an ``.npz``.

PyKEEN's prediction frames: scored triples by label, written with ``to_csv``.

TREC runs as predicted lists: from a file, or from the ranker.

The table of formats of predictions, which `kgtrec formats` prints.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np

from kgtrec._internal.arrays import Array, Int64
from kgtrec._internal.csr import offsets_of
from kgtrec._internal.formats import Format, Formats
from kgtrec._internal.structured import parse_json
from kgtrec.errors import FileError, InputError, refuse
from kgtrec.graph.id_files import lines_of, load_arrays, read_delimited_rows, text_of
from kgtrec.graph.triples import COLUMNS
from kgtrec.graph.tsv import quote_line
from kgtrec.predictions.lists import ANY, ListsBuilder, PredictedLists, ids_of, parse_score
from kgtrec.questions.api import Questions
from kgtrec.questions.graph_terms import ASKS
from kgtrec.questions.terms import SIDES
from kgtrec.trec.files.run import Run

_ANYBURL_HINT = (
    "write three lines per triple: head relation tail; Heads: entity<TAB>score<TAB>...; "
    "Tails: entity<TAB>score<TAB>..."
)
_STARTS = (b"Heads:", b"Tails:")


def read_anyburl(path: str | PathLike[str], questions: Questions) -> PredictedLists:
    """Read the three-line records that AnyBURL's Apply and PyClause's RankingHandler write.

    Heads come before tails or after them, as in PyClause's own evaluation. PyClause writes scores
    with six digits, so different ones may tie here. Each list is for one triple, and programs that
    filter omit the other answers of its question.
    """
    builder = ListsBuilder(questions, "anyburl", path)
    triple: list[bytes] = []
    expected, first, line = 0, 0, 0
    for line, text in lines_of(path):
        if not text.strip():
            continue
        if expected == 0:
            triple = text.split(b"\t") if b"\t" in text else text.split(b" ")
            if len(triple) != 3 or text.startswith(_STARTS):
                refuse(path, line, f"{quote_line(text)} instead of a triple", _ANYBURL_HINT)
        else:
            if expected == 1:
                first = 1 if text.startswith(_STARTS[1]) else 0  # heads, unless tails come first
            side = first if expected == 1 else 1 - first
            labels, scores = _parse_candidates(path, line, text, _STARTS[side])
            head, relation, tail = triple
            entity, answer = (tail, head) if side == 0 else (head, tail)
            builder.add(line, side, entity, relation, labels, scores, answer)
        expected = (expected + 1) % 3
    if expected:
        start = _STARTS[0 if expected == 1 else 1 - first].decode()
        refuse(path, line, f"the file ends before the line {start}", _ANYBURL_HINT)
    return builder.build()


def _parse_candidates(
    path: str | PathLike[str], line: int, text: bytes, start: bytes
) -> tuple[list[bytes], list[float]]:
    """Parse a line of candidates that begins with `start`; return their labels and scores."""
    if not text.startswith(start):
        refuse(path, line, f"{quote_line(text)} instead of {start.decode()!r}", _ANYBURL_HINT)
    fields = text[len(start) :].strip(b" \t").split(b"\t")
    if fields == [b""]:
        return [], []
    if len(fields) % 2:
        refuse(
            path,
            line,
            f"{len(fields)} fields, but entities and scores must alternate",
            _ANYBURL_HINT,
        )
    labels = [field.strip(b" ") for field in fields[::2]]
    try:
        scores = list(map(float, fields[1::2]))
    except ValueError:
        scores = []
    if len(scores) < len(labels) or any(score != score for score in scores):
        pairs = zip(labels, fields[1::2], strict=True)
        scores = [parse_score(path, line, score, repr(text_of(name))) for name, score in pairs]
    return labels, scores


_JSON_HINT = (
    'write {"head": ..., "relation": ..., "predictions": [...]} per line, with two of head, '
    "relation and tail; predictions are labels, or pairs [label, score]; facts with a time or "
    'qualifiers need its label as "time" or "qualifiers"'
)


def read_jsonl(path: str | PathLike[str], questions: Questions) -> PredictedLists:
    """Read a file with one JSON object per line; other keys of an object are ignored."""
    return _build_lists(_parse_lines(path), questions, path)


def lists_of_records(records: Iterable[Mapping[str, Any]], questions: Questions) -> PredictedLists:
    """Convert objects in memory, with the keys of `read_jsonl`, to lists.

    This is for loops that ask a model question by question.
    """
    return _build_lists(enumerate(records, start=1), questions, "predictions")


def _parse_lines(path: str | PathLike[str]) -> Iterable[tuple[int, Any]]:
    """Yield the number and the value of each line of a file of JSON lines."""
    for line, text in lines_of(path):
        if text.strip():
            try:
                yield line, parse_json(text)
            except ValueError as error:
                problem = f"{quote_line(text)} is not JSON ({error})"
                raise FileError(path, line, found=problem, hint=_JSON_HINT) from None


def _build_lists(
    records: Iterable[tuple[int, Any]], questions: Questions, path: str | PathLike[str]
) -> PredictedLists:
    """Convert objects, with their lines, to lists."""
    builder = ListsBuilder(questions, "jsonl", path)
    for line, record in records:
        if not isinstance(record, Mapping):
            refuse(path, line, f"{_shorten(record)}, not an object", _JSON_HINT)
        side = _find_side(path, line, record, questions.kind)
        known = [_get_label(path, line, record, COLUMNS[column]) for column in ASKS[side].given]
        labels, scores = _parse_predictions(path, line, record.get("predictions"))
        name = questions.graph.context_name
        context = None if name is None else _get_label(path, line, record, name)
        builder.add(line, side, known[0], known[1], labels, scores, context=context)
    return builder.build()


def _find_side(path: Any, line: int, record: Mapping[str, Any], kind: str) -> int:
    """Return the code of the side that an object omits; the relation only if that is asked."""
    known = [name for name in COLUMNS if record.get(name) is not None]
    for side, asks in enumerate(ASKS[: 3 if kind == "relation" else 2]):
        if known == [COLUMNS[column] for column in sorted(asks.given)]:
            return side
    ends = [name for name in known if name != "relation"]
    problem = f"{' and '.join(ends) or 'neither head nor tail'} in {_shorten(record)}"
    refuse(
        path, line, problem, "give only the known one of head and tail; the other one is predicted"
    )


def _get_label(path: Any, line: int, record: Mapping[str, Any], name: str) -> bytes:
    """Return the label that an object has under a key; FileError if it has none."""
    label = record.get(name)
    if not isinstance(label, str) or not label:
        refuse(path, line, f"{name} is {_shorten(label)}, not a label", _JSON_HINT)
    return _encode_label(label)


def _parse_predictions(
    path: Any, line: int, entries: Any
) -> tuple[list[bytes], list[float] | None]:
    """Return the labels of an object's predictions, and their scores, if they have some."""
    if not isinstance(entries, (list, tuple)):
        refuse(path, line, f"predictions are {_shorten(entries)}, not a list", _JSON_HINT)
    paired = len(entries) > 0 and not isinstance(entries[0], str)
    for entry in entries:
        pair = isinstance(entry, (list, tuple)) and len(entry) == 2 and isinstance(entry[0], str)
        if not (pair if paired else isinstance(entry, str)):
            refuse(path, line, f"a wrong prediction: {_shorten(entry)}", _JSON_HINT)
    if not paired:
        return [_encode_label(entry) for entry in entries], None
    scores = [parse_score(path, line, entry[1], repr(entry[0])) for entry in entries]
    return [_encode_label(entry[0]) for entry in entries], scores


def _encode_label(label: str) -> bytes:
    """Return the bytes of a label."""
    try:
        return label.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # JSON may contain lone surrogates that represent no byte
        return label.encode("utf-8", "surrogatepass")


def _shorten(value: Any) -> str:
    """Return the repr of a value for messages, cut to 60 characters."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}..."


_ARRAYS = ("h_pred_top10", "t_pred_top10")  # by side
_OGB_HINT = (
    "save t_pred_top10 (and h_pred_top10) with numpy.savez: integer entity numbers of shape "
    "(triples, k), best first, one row per triple of the split, in its order"
)


def read_ogb_lsc(path: str | PathLike[str], questions: Questions) -> PredictedLists:
    """Read arrays of entity numbers of the graph, a list per row; -1 means no entity."""
    arrays = load_arrays(path, _ARRAYS, _OGB_HINT)
    triples = questions.triples.astype(np.int64)
    parts = []
    for side, name in enumerate(_ARRAYS):
        if name not in arrays:
            continue
        rows = arrays[name]
        _check_shape(path, name, rows, questions)
        first, second = (triples[:, column] for column in ASKS[side].given)
        code, has_entity = np.full(len(rows), side), rows >= 0
        parts.append(
            (
                questions.of_graph().numbers(
                    f"{path}: lists in format 'ogb-lsc'", code, first, second
                ),
                triples[:, ASKS[side].answer],
                np.arange(1, len(rows) + 1),
                has_entity.sum(axis=1),
                rows[has_entity].astype(np.int64),
            )
        )
    question, answer, line, lengths, entities = map(np.concatenate, zip(*parts, strict=True))
    offsets = offsets_of(lengths)
    return PredictedLists("ogb-lsc", fspath(path), question, answer, line, offsets, entities, None)


def _check_shape(path: str | PathLike[str], name: str, rows: Array, questions: Questions) -> None:
    """Raise a FileError if an array does not have a row of entity numbers per triple."""
    n_triples = len(questions.triples)
    if rows.ndim != 2 or rows.dtype.kind not in "iu" or len(rows) != n_triples:
        problem = f"{name} is {rows.dtype} of shape {rows.shape}, for {n_triples:,} triples"
        dropped = questions.graph.duplicates.get(questions.of_graph().split, 0)
        note_on_repeats = (
            f"; {dropped:,} repeated triples of the split count once" if dropped else ""
        )
        refuse(path, None, problem, _OGB_HINT + note_on_repeats)
    bad = (rows < -1) | (rows >= questions.n_entities)
    if bad.any():
        row, column = (int(index) for index in np.argwhere(bad)[0])
        problem = f"{name}[{row}, {column}] is {rows[row, column]}, not below"
        limit = f"{questions.n_entities:,}, the number of entities"
        refuse(path, None, f"{problem} {limit}", "number entities as the graph does")


_PYKEEN_COLUMNS = ("head_label", "relation_label", "tail_label", "score")
_PYKEEN_HINT = (
    "begin with a line that names the columns head_label, relation_label, tail_label and score "
    "(predictions.process(factory=training).df.to_csv(...)); use commas in .csv, tabs in .tsv"
)


def read_pykeen(path: str | PathLike[str], questions: Questions) -> PredictedLists:
    """Read scored triples; a triple is in one list per side that the questions ask."""
    rows = _read_rows(path)
    line, header = next(rows, (1, []))
    missing = [name for name in _PYKEEN_COLUMNS if name not in header]
    if missing:
        ids = " (only PyKEEN knows its numbers: write the labels)" if "head_id" in header else ""
        problem = f"no column {', '.join(missing)} among {', '.join(header) or 'none'}{ids}"
        refuse(path, line, problem, _PYKEEN_HINT)
    indices = [header.index(name) for name in _PYKEEN_COLUMNS]
    lists: dict[tuple[int, bytes, bytes], list[tuple[float, int, bytes]]] = {}
    for line, fields in rows:
        if len(fields) != len(header):
            problem = f"{len(fields)} fields, but the first line names {len(header)}"
            refuse(path, line, problem, _PYKEEN_HINT)
        *labels, score = (fields[index] for index in indices)
        if not all(labels):
            refuse(path, line, "an empty label", _PYKEEN_HINT)
        worse = -parse_score(path, line, score, repr(labels[0]))
        triple = [label.encode("utf-8", "surrogateescape") for label in labels]
        for side in SIDES[questions.sides]:
            first, second = (triple[column] for column in ASKS[side].given)
            entries = lists.setdefault((side, first, second), [])
            entries.append((worse, line, triple[ASKS[side].answer]))
    if not lists:
        refuse(path, None, "no predictions after the first line", _PYKEEN_HINT)
    builder = ListsBuilder(questions, "pykeen", path)
    for (side, first, second), entries in lists.items():
        negated, lines, predicted = zip(*sorted(entries), strict=True)
        builder.add(lines[0], side, first, second, predicted, [-score for score in negated])
    return builder.build()


def _read_rows(path: str | PathLike[str]) -> Iterator[tuple[int, list[str]]]:
    """Yield the number and the fields of each line."""
    name = Path(path).name.removesuffix(".gz").removesuffix(".zst")
    if not name.endswith((".csv", ".tsv")):
        problem = "the name ends neither in .csv nor in .tsv, so the separator is unknown"
        refuse(path, None, problem, _PYKEEN_HINT)
    yield from read_delimited_rows(path, "\t" if name[-3:] == "tsv" else ",", _PYKEEN_HINT)


def read_trec_run(path: str | PathLike[str], questions: Questions) -> PredictedLists:
    """Read a run file with the query names of ``kgtrec convert --write-questions``."""
    from kgtrec.trec.files.run import read_run_columns

    columns = read_run_columns(path)
    encoded = columns.documents.dictionary_encode()
    ids = ids_of(questions.candidate_labels.docnos, encoded.dictionary)
    entities = ids[encoded.indices.to_numpy()]
    return replace(
        _lists_of_queries(
            path, questions, columns.queries, columns.offsets, entities, columns.scores
        ),
        names=encoded.dictionary,
    )


def lists_of_run(run: Run, questions: Questions) -> PredictedLists:
    """Convert a `Run` of the same graph to lists."""
    if run.docnos != questions.candidate_labels.docnos:
        raise InputError(
            f"the {len(run.docnos):,} candidates of the run are not the {questions.n_labels:,} of "
            "the questions; give the questions that the run was made for"
        )
    entities, scores = run.documents.astype(np.int64), run.scores.astype(np.float64)
    return _lists_of_queries("predictions", questions, run.query_ids, run.offsets, entities, scores)


def _lists_of_queries(
    path: str | PathLike[str],
    questions: Questions,
    names: Any,
    offsets: Int64,
    entities: Int64,
    scores: Array,
) -> PredictedLists:
    """Return lists whose questions are named; FileError if no name is that of a question."""
    numbers = {name: number for number, name in enumerate(questions.ids)}
    positions = np.array([numbers.get(name, -1) for name in names], dtype=np.int64)
    if len(positions) and (positions < 0).all():
        refuse(
            path,
            None,
            f"none of its {len(positions):,} queries ({names[0]!r}, ...) is a question of "
            f"split {questions.split!r}, {questions.sides}",
            "name them as `kgtrec convert --write-questions` does: head0, ..., tail0, ...",
        )
    n = len(positions)
    any_answer, lines = np.full(n, ANY), np.arange(1, n + 1)
    return PredictedLists(
        "trec", fspath(path), positions, any_answer, lines, offsets, entities, scores
    )


_MODULE = "kgtrec.predictions.readers"

PREDICTIONS = Formats(
    "predictions",
    "kgtrec.prediction_formats",
    (
        Format(
            "anyburl",
            "AnyBURL, PyClause",
            "three lines per triple: head relation tail; Heads: entity<TAB>score...; Tails: ...",
            f"{_MODULE}:read_anyburl",
        ),
        Format(
            "jsonl",
            "language models",
            'one line per question: {"head": ..., "relation": ..., "predictions": [...]} (or '
            '"tail")',
            f"{_MODULE}:read_jsonl",
        ),
        Format(
            "pykeen",
            "PyKEEN prediction frames",
            "CSV or TSV with head_label, relation_label, tail_label and score",
            f"{_MODULE}:read_pykeen",
            "sides: which entities were predicted",
        ),
        Format(
            "ogb-lsc",
            "OGB-LSC (WikiKG90Mv2)",
            "npz with t_pred_top10, h_pred_top10: entity numbers, one row per triple of the split",
            f"{_MODULE}:read_ogb_lsc",
        ),
        Format(
            "trec",
            "TREC runs",
            "question Q0 entity rank score tag; questions as `kgtrec convert --write-questions` "
            "lists",
            f"{_MODULE}:read_trec_run",
        ),
    ),
)
