"""Errors for faulty lines of runs and qrels: what is wrong, and what to do about it."""

from __future__ import annotations

from kgtrec.errors import FileError
from kgtrec.trec.files.levels import advice_for_file
from kgtrec.trec.files.subtopics import advice_for_subtopics, other_subtopic
from kgtrec.trec.files.text import DuplicateDocument, Text, number_of, quote_bytes


def explain(text: Text, fault: tuple[int, str, int]) -> FileError:
    """Return the error for a fault (line, kind, start of the line) from the native core."""
    line, kind, begin = fault
    fields = bytes(text.data[begin : text.data.find(b"\n", begin)]).split()
    if kind == "columns":
        return _wrong_columns(text, line, fields)
    if kind == "duplicate":
        return _explain_duplicate(text, line, fields)
    if kind == "relevance":
        return _wrong_relevance(text, line, fields[text.column("relevance")])
    problem, hint = {
        "blank": lambda: ("a blank line", "remove it"),
        "score": lambda: _wrong_value(text, fields[_value_column(text)]),
        "long": lambda: ("a document name of 2 GB or more", "use shorter names"),
    }[kind]()
    return FileError(text.path, line, found=problem, hint=hint)


_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth")


def _value_column(text: Text) -> int:
    """Return the index of the column of scores, or of ranks if the lines have no scores."""
    return text.column("score" if "score" in text.columns.split() else "rank")


def _wrong_value(text: Text, field: bytes) -> tuple[str, str]:
    """Return problem and hint for a score, or a rank, that is not a number."""
    column = _value_column(text)
    name = text.columns.split()[column]
    must = "a decimal number, inf or -inf" if name == "score" else "a whole number"
    return f"{name} {quote_bytes(field)}", f"the {_ORDINALS[column]} column must be {must}"


def _wrong_relevance(text: Text, line: int, field: bytes) -> FileError:
    """Return the error for a relevance; for a fraction with advice that keeps the file's values."""
    column = text.column("relevance")
    hint = f"the {_ORDINALS[column]} column must be a whole number within 64 bits: 1 or more for "
    hint += "relevant, 0 for not relevant"
    values = _numbers_of_column(text, column) if number_of(field) is not None else []
    if any(value != int(value) for value in values):
        below = text.first_line - 1 if text.first_line > 1 else None
        advice = advice_for_file(text.path, column + 1, values, below)
        hint = f"the {_ORDINALS[column]} column must be a whole number; {advice}"
    return FileError(text.path, line, found=f"relevance {quote_bytes(field)}", hint=hint)


def _numbers_of_column(text: Text, column: int) -> list[float]:
    """Return the distinct finite numbers in a column of the lines."""
    fields = set()
    for line in bytes(text.data[text.start :]).split(b"\n"):
        if not line.lstrip().startswith(b"#"):
            fields.update(line.split()[column : column + 1])
    numbers = map(number_of, fields)
    return [*{number for number in numbers if number is not None}]


def _explain_duplicate(text: Text, line: int, fields: list[bytes]) -> FileError:
    """Return the error for a document that a query has twice, perhaps under two subtopics."""
    document = text.column("document")
    problem = f"query {quote_bytes(fields[0])} has document {quote_bytes(fields[document])} twice"
    hint = "keep one of the two lines"
    if not text.is_run and document == 2:
        other = other_subtopic(text, line, fields)
        if other is not None:
            problem += (
                f", under {quote_bytes(other)} and {quote_bytes(fields[1])} in the second column"
            )
            hint = advice_for_subtopics(text)
    return DuplicateDocument(text.path, line, found=problem, hint=hint)


def _wrong_columns(text: Text, line: int, fields: list[bytes]) -> FileError:
    """Return the error for a line with too few or too many columns."""
    columns = len(text.columns.split())
    problem = f"{len(fields)} column{'s' * (len(fields) != 1)} in {quote_bytes(b' '.join(fields))}"
    hint = f"a line must have {columns}: {text.columns}"
    if not text.form and (text.is_run, len(fields)) in ((True, 4), (False, 6)):
        hint += f" (is this {'qrels' if text.is_run else 'a run'}? give the qrels first)"
    elif len(fields) > columns:
        hint += " (white space inside an id must be written as %20)"
    return FileError(text.path, line, found=problem, hint=hint)
