"""What the readers of run and qrels files give for any bytes, checked against the oracle."""

from __future__ import annotations

import contextlib
import warnings
from itertools import accumulate
from pathlib import Path

import pytest
import trec_oracle as oracle

from kgtrec._internal.encodings import wide_encoding
from kgtrec.errors import FileError
from kgtrec.trec.files.run import read_qrels_columns, read_run_columns
from kgtrec.trec.files.text import Cut, ReadAhead
from kgtrec.trec.measures.judge import read_judged_queries, read_lists

SAYS = {
    "blank": "a blank line", "columns": " column", "score": "score ", "relevance": "relevance ",
    "duplicate": " twice", "empty": "contains no lines",
    "packed": "the content is ",
}  # fmt: skip


def check_error(error: FileError, refusal: oracle.Refused) -> None:
    assert error.line == refusal.line, (error, refusal)
    assert SAYS[refusal.why] in error.found, (error, refusal)
    assert error.exit_code == (4 if refusal.why == "duplicate" else 2)
    str(error).encode()


def same(a: object, b: object) -> bool:
    return repr(a) == repr(b)  # also distinguishes 0.0 and -0.0


def is_of_another_form(data: bytes) -> bool:
    """Whether a file may be in UTF-16 or UTF-32, or have three columns or JSON.

    The oracle knows TREC's form alone; test_forms.py checks the others.
    """
    lines = [line.split() for line in data.removeprefix(b"\xef\xbb\xbf").split(b"\n")]
    first = next((line for line in lines if line and not line[0].startswith(b"#")), [])
    return bool(wide_encoding(data)) or len(first) == 3 or data.lstrip().startswith(b"{")


def check_columns(path: Path, data: bytes, is_run: bool, threads: int):
    """Check columns against the oracle; return its result, or None."""
    read = refusal = error = None
    if is_of_another_form(data):
        with warnings.catch_warnings(), contextlib.suppress(FileError):
            warnings.simplefilter("ignore")
            (read_run_columns if is_run else read_qrels_columns)(path, threads=threads)
        return None
    try:
        read = oracle.read(data, is_run)
    except oracle.Refused as refused:
        refusal = refused
    try:
        columns = (read_run_columns if is_run else read_qrels_columns)(path, threads=threads)
    except FileError as raised:
        error = raised
    assert (error is None) == (refusal is None), (error, refusal)
    if refusal is not None:
        check_error(error, refusal)
        assert str(error).startswith(str(path))
        with pytest.raises(FileError) as again:  # also of queries without a judgement
            read_lists({"q": {"d": 1}}, path, threads=threads) if is_run else read_judged_queries(
                path
            )
        assert str(again.value) == str(error)
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
        own = slice(lists.offsets[i], lists.offsets[i + 1])
        assert lists.relevance[own].tolist() == relevance
        assert same(lists.scores[own].tolist(), scores)
        assert lists.retrieved[i] == retrieved
        own = slice(lists.judged_offsets[i], lists.judged_offsets[i + 1])
        assert lists.judged[own].tolist() == judgements
    assert lists.unanswered == len(qrels.keys() - run.keys())
    assert lists.unasked == len(run.keys() - qrels.keys())
