"""What the readers of run and qrels files give for any bytes, checked against the oracle."""

from __future__ import annotations

import contextlib
import re
import warnings
from itertools import accumulate
from pathlib import Path

import pytest
import trec_oracle as oracle

from kgtrec.errors import FormatNote, InputError
from kgtrec.trec.files.run import read_qrels_columns, read_run_columns
from kgtrec.trec.files.text import Cut, ReadAhead
from kgtrec.trec.measures.judge import read_judged_queries, read_lists

SAYS = {
    "blank": "a blank line",
    "columns": " column",
    "score": "score ",
    "relevance": "relevance ",
    "duplicate": " twice",
    "empty": "contains no lines",
    "packed": "the content is ",
    "form": "3 columns",
}


def check_error(error: InputError, refusal: oracle.Refused) -> None:
    if refusal.why == "json":  # a place in JSON is no line of the oracle
        return
    assert error.line == refusal.line, (error, refusal)
    assert SAYS[refusal.why] in error.found, (error, refusal)
    assert error.exit_code == (4 if refusal.why == "duplicate" else 2)
    str(error).encode()


def same(a: object, b: object) -> bool:
    return repr(a) == repr(b)  # also distinguishes 0.0 and -0.0


@contextlib.contextmanager
def quiet():
    """Without notes on the form of a file: the oracle decides the form."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FormatNote)
        yield


def due_of(data: bytes, is_run: bool):
    """What the oracle reads: queries and tag, or the refusal."""
    readers = (oracle.read_json, oracle.read_short, oracle.read)
    if data.startswith((b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd", b"\x04\x22\x4d\x18")):
        readers = (oracle.read,)
    try:
        return next(read for reader in readers if (read := reader(data, is_run)) is not None), None
    except oracle.Refused as refused:
        return None, refused


def is_trec(data: bytes, is_run: bool) -> bool:
    """Whether the oracle reads these as TREC's lines, and they are not in another encoding."""
    try:
        other = oracle.read_json(data, is_run) or oracle.read_short(data, is_run)
    except oracle.Refused:
        return False
    return other is None and not oracle.marked_encoding(data)


def check_columns(path: Path, data: bytes, is_run: bool, threads: int):
    """Check columns against the oracle; return its result, or None."""
    error = None
    try:
        with quiet():
            columns = (read_run_columns if is_run else read_qrels_columns)(path, threads=threads)
    except InputError as raised:  # of JSON, without lines
        error = raised
    marked = oracle.marked_encoding(data)
    wide = re.search(r": (UTF-(?:16|32)\w*) text;", str(error)) if error else None
    if marked or wide:
        assert error is not None, marked
        assert wide is not None, error
        assert wide[1] == marked if marked else oracle.is_text_in(data, wide[1]), data
        return None
    read, refusal = due_of(data, is_run)
    assert (error is None) == (refusal is None), (error, refusal)
    if refusal is not None:
        check_error(error, refusal)
        assert str(error).startswith(str(path))
        with pytest.raises(InputError) as again, quiet():  # also of queries without a judgement
            read_lists({"q": {"d": 1}}, path, threads=threads) if is_run else read_judged_queries(
                path
            )
        # Queries of JSON are packed in another order there, and so is the first fault.
        assert str(again.value) == str(error) or refusal.why == "json"
        return None
    queries, tag = read
    names = [query.encode("utf-8", "surrogateescape") for query in columns.queries]
    assert names == list(queries)
    assert columns.documents.to_pylist() == [d for query in queries.values() for d in query]
    values = (columns.scores if is_run else columns.relevance).tolist()
    assert same(values, [value for query in queries.values() for value in query.values()])
    assert columns.offsets.tolist() == [*accumulate(map(len, queries.values()), initial=0)]
    assert not is_run or columns.tag.encode("utf-8", "surrogateescape") == tag
    return queries


def read_ahead(qrels_path, run_path, cut: Cut) -> ReadAhead:
    with ReadAhead(str(qrels_path), [str(run_path)], cut) as ahead:
        return ahead


def cut_of(options: dict) -> dict:
    """The arguments of `read_lists`."""
    cut = Cut(**{name: options[name] for name in Cut._fields if name in options})
    return {"cut": cut, "absent": options.get("absent", False)}


def check_lists(qrels_path, run_path, qrels, run, options: dict, threads: int) -> bool:
    """Check lists against the oracle's, if both files are valid. Return whether they are plain."""
    judged, how = read_judged_queries(qrels_path, threads=threads), cut_of(options)
    lists = read_lists(judged, run_path, threads=threads, **how)
    check_as_oracle(lists, qrels, run, options)
    ahead = read_ahead(qrels_path, run_path, how["cut"])
    if not ahead.has_read(judged.native) or ahead.lists(str(run_path), ahead.cut) is None:
        return False
    check_as_oracle(read_lists(judged, str(run_path), ahead=ahead, **how), qrels, run, options)
    return True


def check_as_oracle(lists, qrels, run, options: dict) -> None:
    keywords = {("single_precision" if k == "single" else k): v for k, v in options.items()}
    expected = oracle.lists(qrels, run, **keywords)
    names = [query.encode("utf-8", "surrogateescape") for query in lists.queries]
    assert names == list(expected)
    for i, (relevance, scores, retrieved, judgements) in enumerate(expected.values()):
        part = slice(lists.offsets[i], lists.offsets[i + 1])
        assert lists.relevance[part].tolist() == relevance
        assert same(lists.scores[part].tolist(), scores)
        assert lists.retrieved[i] == retrieved
        part = slice(lists.judged_offsets[i], lists.judged_offsets[i + 1])
        assert lists.judged[part].tolist() == judgements
    assert lists.unanswered == len(qrels.keys() - run.keys())
    assert lists.unasked == len(run.keys() - qrels.keys())
