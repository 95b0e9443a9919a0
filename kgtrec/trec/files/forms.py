"""Recognise the form of a run or qrels file by its first line, or read the form that is named.

Besides TREC's lines, kgtrec reads lines of three columns (BEIR's qrels, MS MARCO's runs, scores),
headings that name the columns, and JSON as ranx and pytrec_eval write it. A form is never guessed
from relevances or scores. Only ranks are recognised by their values: 1, 2, 3, ... in every query.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from kgtrec._internal.argument_names import argument
from kgtrec.errors import FileError, FormatNote, choose
from kgtrec.trec.files.text import Text, number_of, quote_bytes

TREC_RUN, TREC_QRELS = "trec_results", "qrels"

RUN_FORMATS = {
    TREC_RUN: "TREC's lines; other forms are recognised if their first line identifies them",
    "msmarco": "lines of `query document rank`; lower ranks are better",
    "scores": "lines of `query document score`",
    "json": "{query: {document: score}}, or a list of records with query, document and score",
}
"""Forms of runs (``run_format``, -T), and what each contains."""

QRELS_FORMATS = {
    TREC_QRELS: "TREC's lines; other forms are recognised if their first line identifies them",
    "beir": "lines of `query document relevance`",
    "json": "{query: {document: relevance}}, or a list of records with these three",
}
"""Forms of qrels (``qrels_format``, -R) besides judgements in groups."""

_VALUES = {"msmarco": "rank", "scores": "score", "beir": "relevance"}
"""The third column of short lines."""

_SPELLINGS = {
    "query": "query query-id query_id queryid qid q_id topic topic-id topic_id topicid",
    "document": "document document-id document_id doc doc-id doc_id docid docno doc_no did d_id "
    "corpus-id corpus_id corpusid pid passage-id passage_id",
    "relevance": "relevance label rel grade qrel judgment judgement",
    "rank": "rank",
    "score": "score sim similarity",
    "iter": "iter iteration q0",
    "tag": "tag run run-id run_id runid system",
}
_MEANINGS = {
    name.encode(): meaning for meaning, names in _SPELLINGS.items() for name in names.split()
}

_JSON = re.compile(rb"\s*(\{\s*[\"}]|\[\s*[\[{\]])")


def recognise(text: Text, requested: str | None = None) -> Text:
    """Find the form of a text: short lines, JSON or TREC's lines, perhaps below a heading.

    `requested` is a key of `RUN_FORMATS` or `QRELS_FORMATS`; by default the form is recognised. A
    form that was recognised causes a `FormatNote`.

    Raises
    ------
    FileError
        The first lines have three columns that may have several meanings, or a heading names
        columns in another order than kgtrec reads.
    UsageError
        An unknown form.
    """
    default = TREC_RUN if text.is_run else TREC_QRELS
    if requested is None:
        requested = default
    elif requested != default:
        check_format(requested, text.is_run)
    if requested == default and _is_ordinary(text):
        return text
    if requested == "json" or (requested == default and _JSON.match(text.data, text.start)):
        if requested == default:
            value = "score" if text.is_run else "relevance"
            shape = f"{{query: {{document: {value}}}}}"
            if bytes(text.data[text.start : text.start + 64]).lstrip().startswith(b"["):
                shape = f"records of query, document and {value}"
            _note(text, f"read as JSON, {shape}")
        return replace(text, form="json")
    lines = _lines(text)
    first = next(lines, None)
    if first is None:
        return text
    number, end, line = first
    fields = line.split(None, 7)
    meanings = _meanings(fields)
    if meanings is not None:
        return _below_heading(
            replace(text, start=end, first_line=number + 1), line, meanings, requested
        )
    if requested != default:
        return replace(text, form=requested, columns=f"query document {_VALUES[requested]}")
    if all(map(_is_short, [line, *(line for _, _, line in _first(lines))])):
        if not text.is_run:
            raise _ambiguous(text, number, line)
        return replace(text, form="ranks?", columns="query document score")
    if b"," in line and len(fields) == 1:
        meanings = _meanings(line.split(b","))
        if meanings is not None:
            raise _other_order(text, number, line, meanings, ",")
    return text


_NOT_NAMES = (b"{", b"[{", b"#", b'"')
"""Beginnings of a first line that may be JSON, a comment or a heading."""


def _is_ordinary(text: Text) -> bool:
    """Return whether the first line has TREC's columns, and is neither a heading nor a comment."""
    fields = bytes(text.data[text.start : text.data.find(b"\n", text.start)]).split(None, 6)
    if not (len(fields) > 5 if text.is_run else len(fields) == 4):
        return False
    return fields[0].lower() not in _MEANINGS and not fields[0].startswith(_NOT_NAMES)


def parse_field_names(names: Iterable[str], is_run: bool) -> dict[str, str] | None:
    """Return the fields of a record that are its query, document and value, by these words.

    None if one is missing, or if two fields have one meaning. Qrels may call the relevance a score,
    as BEIR does, if nothing else is called a relevance.
    """
    meanings: dict[str, list[str]] = {}
    for name in names:
        meanings.setdefault(_MEANINGS.get(name.lower().encode(), ""), []).append(name)
    values = ("score",) if is_run else ("relevance", "score")
    value = next((word for word in values if word in meanings), "")
    words = {"query": "query", "document": "document", "value": value}
    if not value or any(len(meanings.get(word, ())) != 1 for word in words.values()):
        return None
    return {role: meanings[word][0] for role, word in words.items()}


def check_format(requested: str, is_run: bool) -> None:
    """Raise UsageError for an unknown form of runs or qrels."""
    name, known = ("run_format", RUN_FORMATS) if is_run else ("qrels_format", QRELS_FORMATS)
    choose(name, requested, known)


def settle_ranks(text: Text, are_ranks: bool) -> None:
    """Note that a run of three columns has ranks; FileError if its values may be scores."""
    if not are_ranks:
        number, _, line = next(_lines(text))
        raise _ambiguous(text, number, line)
    _note(
        text,
        "read as MS MARCO's run, lines of query, document, rank: the third column counts 1, 2, 3, "
        f"... in every query. If these are scores, pass {argument('run_format', 'scores')}",
    )


def _lines(text: Text) -> Iterator[tuple[int, int, bytes]]:
    """Yield number, end and bytes of each line that is neither blank nor a comment."""
    at, number = text.start, text.first_line
    while at < len(text.data):
        end = text.data.find(b"\n", at) + 1
        line = bytes(text.data[at:end]).strip()
        if line and not line.startswith(b"#"):
            yield number, end, line
        at, number = end, number + 1


def _first(lines: Iterator[tuple[int, int, bytes]]) -> Iterator[tuple[int, int, bytes]]:
    """Yield the next line, if there is one."""
    line = next(lines, None)
    if line is not None:
        yield line


def _is_short(line: bytes) -> bool:
    """Return whether a line has three columns, the last a number."""
    fields = line.split()
    return len(fields) == 3 and number_of(fields[2]) is not None


def _meanings(fields: Sequence[bytes]) -> list[str] | None:
    """Return the meanings of a heading's fields; None if the line is not a heading."""
    if fields[0].strip(b'"').lower() not in _MEANINGS:
        return None
    meanings = [_MEANINGS.get(field.strip(b'"').lower(), "") for field in fields]
    values = {"relevance", "rank", "score"}
    if "" in meanings or not {"query", "document"} <= {*meanings} or not values & {*meanings}:
        return None
    return meanings


def _below_heading(text: Text, line: bytes, meanings: list[str], requested: str) -> Text:
    """Return the text below a heading, whose columns must be in an order that kgtrec reads."""
    number, shown = text.first_line - 1, quote_bytes(b" ".join(line.split()))
    value = meanings[-1]
    if not text.is_run and value == "score":
        value = "relevance"  # as BEIR calls it
    shape = [*meanings[:-1], value]
    trec = ["query", "iter", "document", "rank", "score", "tag"]
    trec = trec if text.is_run else ["query", "iter", "document", "relevance"]
    if shape == trec and requested in (TREC_RUN, TREC_QRELS):
        _note(text, f"the first line is a heading, {shown}, and was skipped")
        return text
    forms = [
        form
        for form, name in _VALUES.items()
        if (form != "beir") == text.is_run and shape == ["query", "document", name]
    ]
    if not forms or requested not in (TREC_RUN, TREC_QRELS, *forms):
        raise _other_order(text, number, line, meanings)
    if requested in (TREC_RUN, TREC_QRELS):
        better = "; lower ranks are better" * (value == "rank")
        kind = "a run" if text.is_run else "BEIR's qrels"
        _note(text, f"read as {kind}, lines of query, document, {value} (heading {shown}){better}")
    return replace(text, form=forms[0], columns=f"query document {value}")


def _other_order(
    text: Text, number: int, line: bytes, meanings: list[str], separator: str = ""
) -> FileError:
    """Return the error for a heading with columns in another order, with the converting line."""
    shown = quote_bytes(line)
    problem = f"the heading {shown} names columns in another order than kgtrec reads"
    if separator == ",":
        problem = f"the heading {shown} is one of CSV, but kgtrec reads columns with blanks between"
    values = ("score", "rank") if text.is_run else ("relevance", "score")
    value = next((name for name in values if name in meanings), None)
    if value is None:
        other, right = ("qrels", "a run") if text.is_run else ("a run", "qrels")
        return FileError(
            text.path,
            number,
            found=f"the heading {shown} is one of {other}, not of {right}",
            hint="give the qrels first, then the run",
        )
    columns = ", ".join(f"${meanings.index(name) + 1}" for name in ("query", "document", value))
    field = f"-F{separator} " * bool(separator)
    name = "run.txt" if text.is_run else "qrels.txt"
    command = f"awk {field}'{{print {columns}}}' {shlex.quote(str(text.path))} > {name}"
    return FileError(
        text.path,
        number,
        found=problem,
        hint=f"keep the query, the document and the {value}, as in: {command}",
    )


def _ambiguous(text: Text, number: int, line: bytes) -> FileError:
    """Return the error for three columns without a heading, whose meaning is not known."""
    problem = f"3 columns in {quote_bytes(b' '.join(line.split()))}, without a heading"
    if text.is_run:
        hint = (
            "write a first line that names them, 'query document score' or 'query document rank', "
            f"or pass {argument('run_format', 'scores')}, or {argument('run_format', 'msmarco')} "
            "for ranks (lower is better). A "
            "line of a TREC run has 6: query iter document rank score tag"
        )
    else:
        hint = (
            "write a first line that names them, 'query document relevance', or pass "
            f"{argument('qrels_format', 'beir')}. A line of TREC qrels has 4: query iter document "
            "relevance (is "
            "this a run? give the qrels first)"
        )
    return FileError(text.path, number, found=problem, hint=hint)


def _note(text: Text, note: str) -> None:
    """Warn of a form that was recognised."""
    text.warn(FormatNote(f"{text.path}: {note}"))
