"""Documents of runs and qrels from files of any form: the front of all readers of files."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import numpy as np

from kgtrec._internal.argument_names import argument
from kgtrec.errors import FileError, about
from kgtrec.trec.files.forms import parse_field_names, recognise, settle_ranks
from kgtrec.trec.files.parse import Packed, pack_lines
from kgtrec.trec.files.score_archives import is_score_archive, read_score_archive
from kgtrec.trec.files.subtopics import warn_of_subtopics
from kgtrec.trec.files.text import (
    DuplicateDocument,
    PathName,
    Text,
    decode_name,
    number_of,
    read_text,
)


def read_documents(
    path: PathName,
    is_run: bool,
    threads: int | None = None,
    *,
    in_order: bool = True,
    form: str | None = None,
    comments: bool = True,
) -> Packed:
    """Read the documents of a run or qrels file.

    Queries are in byte order, or in that of their first lines.

    `form` is a key of `forms.RUN_FORMATS` or `forms.QRELS_FORMATS`; it is recognised by default.
    With `comments`, lines that start with # are skipped. An ``.npz`` of scores is a run, too.
    """
    if is_run and is_score_archive(path):
        return read_score_archive(path, form, in_order=in_order)
    text = recognise(replace(read_text(path, is_run), comments=comments), form)
    return documents_of_text(text, threads, in_order=in_order)


def documents_of_text(text: Text, threads: int | None = None, *, in_order: bool = True) -> Packed:
    """Read the documents of a text whose form is known. Ranks become negative scores."""
    if text.form == "json":
        return _documents_of_json(text, in_order)
    packed = pack_lines(text, threads, in_order=in_order)
    if text.form == "ranks?":
        settle_ranks(text, _are_ranks(packed))
    if text.form in ("msmarco", "ranks?"):
        return _score_by_rank(text, packed)
    if not text.form and not text.is_run:
        warn_of_subtopics(text)
    return packed


def _are_ranks(packed: Packed) -> bool:
    """Return whether the values of each query are 1, 2, 3, ... in the order of the lines."""
    ranks = np.arange(1, len(packed.values) + 1) - np.repeat(
        packed.offsets[:-1], np.diff(packed.offsets)
    )
    return bool((packed.values == ranks).all())


def _score_by_rank(text: Text, packed: Packed) -> Packed:
    """Replace ranks by negative scores; FileError for ranks that are not whole."""
    ranks = packed.values
    wrong = np.flatnonzero(~((ranks >= 0) & (ranks <= 2**53) & (ranks == np.floor(ranks))))
    if len(wrong):
        at = int(wrong[0])
        query = packed.names[int(np.searchsorted(packed.offsets, at, side="right")) - 1]
        raise FileError(
            text.path,
            found=f"rank {ranks[at]:g} under query {decode_name(query)!r}",
            hint=(
                "ranks are whole numbers from 0. If these are scores, pass "
                f"{argument('run_format', 'scores')}"
            ),
        )
    return replace(packed, values=0.0 - ranks)


# -- JSON ----------------------------------------------------------------------------------------


_WHOLE = re.compile(r"[+-]?[0-9]{1,19}", re.ASCII)


class _Repeated(ValueError):
    """Name that one object of JSON has twice."""


def _documents_of_json(text: Text, in_order: bool) -> Packed:
    """Read the documents of {query: {document: value}}."""
    from kgtrec.trec.files.columns import pack_qrels, pack_run  # not needed for lines

    shape = f"{{query: {{document: {'score' if text.is_run else 'relevance'}}}}}"
    hint = f"give {shape}"
    try:
        data = json.loads(bytes(text.data[text.start :]), object_pairs_hook=_distinct)
    except _Repeated as repeated:
        problem = f"an object has the name {repeated.args[0]!r} twice"
        raise DuplicateDocument(text.path, found=problem, hint="keep one of them") from None
    except json.JSONDecodeError as error:
        problem = f"this is not JSON ({error.msg})"
        raise FileError(text.path, error.lineno, found=problem, hint=hint) from None
    except (UnicodeDecodeError, RecursionError) as error:
        raise FileError(text.path, found=f"this is not JSON ({error})", hint=hint) from None
    if isinstance(data, list):
        data = _group_records(text, data, hint)
    if not isinstance(data, dict):
        raise FileError(text.path, found=f"the JSON is {_shorten(data)}", hint=hint)
    if not any(data.values()):
        raise FileError(text.path, found="the JSON has no documents", hint=hint)
    data = {query: _parse_numbers(documents, text.is_run) for query, documents in data.items()}
    pack = pack_run if text.is_run else pack_qrels
    with about(text.path):
        return pack(data, in_order=in_order)


def _group_records(text: Text, records: list[Any], hint: str) -> dict[str, dict[str, Any]]:
    """Make {query: {document: value}} of records, whose names of fields say which is which."""
    value = "score" if text.is_run else "relevance"
    hint = f"{hint}, or records with the names query, document and {value}"
    data: dict[str, dict[str, Any]] = {}
    for number, record in enumerate(records, start=1):
        roles = parse_field_names(record, text.is_run) if isinstance(record, dict) else None
        query, document = (record[roles[role]] if roles else None for role in ("query", "document"))
        if roles is None or not _is_name(query) or not _is_name(document):
            problem = f"record {number} of the JSON is {_shorten(record)}"
            raise FileError(text.path, found=problem, hint=hint)
        documents = data.setdefault(str(query), {})
        if str(document) in documents:
            problem = f"document {str(document)!r} twice under query {str(query)!r}"
            raise DuplicateDocument(text.path, found=problem, hint="keep one of them")
        documents[str(document)] = record[roles["value"]]
    return data


def _is_name(value: Any) -> bool:
    """Return whether a value of JSON is a name: a text or a whole number."""
    return isinstance(value, (str, int)) and not isinstance(value, bool)


def _parse_numbers(documents: Any, is_run: bool) -> Any:
    """Replace texts that state scores or whole relevances by these; leave all others unchanged."""
    if not isinstance(documents, dict):
        return documents
    return {name: _parse_number(value, is_run) for name, value in documents.items()}


def _parse_number(value: Any, is_run: bool) -> Any:
    if not isinstance(value, str):
        return value
    if _WHOLE.fullmatch(value):
        return int(value)  # exactly, beyond 2^53 too
    number = number_of(value.encode("utf-8", "surrogatepass"))
    return number if number is not None and (is_run or number.is_integer()) else value


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make a dict of an object of JSON; `_Repeated` if it has a name twice."""
    data = dict(pairs)
    if len(data) < len(pairs):
        names = [name for name, _ in pairs]
        raise _Repeated(next(name for i, name in enumerate(names) if name in names[:i]))
    return data


def _shorten(data: Any) -> str:
    """Show data as JSON of at most 60 characters."""
    text = json.dumps(data)
    return text if len(text) <= 60 else text[:60] + "..."
