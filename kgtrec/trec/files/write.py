"""Run, qrels and question files, written whole columns at a time."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kgtrec._internal.csr import owners
from kgtrec._internal.files import atomic_write
from kgtrec.errors import InputError
from kgtrec.trec.files.columns import pack_qrels, pack_run
from kgtrec.trec.files.convert import qrels_data, run_data
from kgtrec.trec.files.parse import Packed, write_run_lines
from kgtrec.trec.files.text import (
    LINES_AT_A_TIME,
    decoded,
    identifiers,
    joined,
    lines,
    numbers,
    pieces,
    texts,
)

if TYPE_CHECKING:
    from kgtrec.questions.api import Questions


PathName = str | os.PathLike[str]
Ints = NDArray[np.int64]

_WHITE_SPACE = np.zeros(256, dtype=bool)
_WHITE_SPACE[list(b"\t\n\v\f\r ")] = True


def write_run(run: Any, path: PathName, tag: str | None = None) -> None:
    """Write a TREC run file: lines ``query Q0 document rank score tag``.

    Queries are written in the given order, their documents in trec_eval's order: score
    descending, then document descending in byte order. Scores have the fewest digits that give
    the same number back. A query without documents has no line.

    Parameters
    ----------
    run : mapping of str to mapping of str to float, pandas.DataFrame, RunColumns, Run or path
        Query, then document, to its score; or a frame with the columns query_id (or qid), doc_id
        (or docno) and score.
    path : str or path-like
        Target, which appears only when it is complete; ``.gz`` and ``.zst`` compress.
    tag : str
        Name of the run, without white space; by default the tag of the columns or file, else
        ``kgtrec``.

    Raises
    ------
    InputError
        An id that is empty, has white space, or is not a str; a query that readers would take for a
        comment; a score that is NaN or not a number; a document twice under a query; no document at
        all.
    UsageError
        A tag with white space, or a run of another kind.
    FileError
        If the target cannot be written.
    """
    from kgtrec.trec.files.run import Run

    if isinstance(run, Run):
        run.write(path, "kgtrec" if tag is None else tag)
        return
    data = run_data(run)
    (name,) = identifiers([getattr(data, "tag", "") or "kgtrec" if tag is None else tag])
    packed = pack_run(data, in_order=False)
    documents = _checked(packed, "run")
    order = _trec_order(packed, documents)

    def columns(rows: slice) -> tuple[Ints, NDArray[Any]]:
        return order[rows], packed.values[order[rows]]

    with atomic_write(path) as out:
        write_run_lines(out, packed.names, packed.offsets, documents, columns, name)


def write_qrels(qrels: Any, path: PathName) -> None:
    """Write TREC qrels: lines ``query 0 document relevance``.

    Parameters
    ----------
    qrels : Questions, mapping of str to mapping of str to int, DataFrame, QrelsColumns or path
        Questions, whose answers get relevance 1; or query, then document, to its relevance; or a
        frame with the columns query_id (or qid), doc_id (or docno) and relevance (or label).
        Queries and documents are written in the given order; a query without judgements has
        no line.
    path : str or path-like
        Target, which appears only when it is complete; ``.gz`` and ``.zst`` compress.

    Raises
    ------
    InputError
        An id that is empty, has white space, or is not a str; a query that readers would take for a
        comment; a relevance that is not a whole number within 64 bits; a document twice under a
        query; no judgement at all.
    UsageError
        Qrels of another kind.
    FileError
        If the target cannot be written.
    """
    packed = pack_qrels(qrels_data(qrels), in_order=False)
    documents = _checked(packed, "qrels")
    import pyarrow as pa

    queries = texts([query + b" 0" for query in packed.names])
    ending = pa.scalar(b"\n", pa.large_binary())
    with atomic_write(path) as out:
        for rows, owner in pieces(packed.offsets):
            ends = _endings(packed.values[rows], ending)
            out.write(lines([queries.take(owner), documents[rows], ends], b" "))


def write_questions(questions: Questions, path: PathName) -> None:
    """Write what each question asks: lines ``query<TAB>given entity<TAB>relation``.

    Questions for the relation give ``query<TAB>head<TAB>tail``, those for a qualifier's value
    ``query<TAB>head<TAB>relation<TAB>tail<TAB>qualifier's relation``. A last column holds the
    time and (other) qualifiers, if there are any.

    Labels with white space are percent-encoded, as in run and qrels.

    Parameters
    ----------
    questions : Questions
        Questions, written in this order.
    path : str or path-like
        Target, which appears only when it is complete; ``.gz`` and ``.zst`` compress.

    Raises
    ------
    FileError
        If the target cannot be written.
    """
    import pyarrow as pa

    queries = texts(identifiers(questions.ids))
    ending = pa.scalar(b"\n", pa.large_binary())
    terms = questions.given_terms.values()
    columns = [queries, *(t.labels.docnos.to_arrow().take(pa.array(t.codes)) for t in terms)]
    columns[-1] = _endings(columns[-1], ending)
    with atomic_write(path) as out:
        for start in range(0, len(queries), LINES_AT_A_TIME):
            rows = slice(start, start + LINES_AT_A_TIME)
            out.write(lines([column[rows] for column in columns], b"\t"))


def _endings(values: Any, ending: Any) -> Any:
    """The last column of the lines: the values, each followed by the end of line."""
    return joined([numbers(values) if isinstance(values, np.ndarray) else values, ending], b"")


def _checked(packed: Packed, kind: str) -> Any:
    """Names of the documents as an Arrow array; refuses names that a file cannot hold."""
    import pyarrow as pa

    if not len(packed.begin):
        raise InputError(f"these {kind} have no document, but readers refuse empty files")
    for name, count in zip(packed.names, np.diff(packed.offsets).tolist(), strict=True):
        if count:
            _check_query(name)
    text = np.frombuffer(packed.text, np.uint8)
    ends = packed.begin + packed.size
    white = _WHITE_SPACE[text]
    at = None
    if white[packed.begin[0] : ends[-1]].any():
        at = int(np.searchsorted(ends, np.argmax(white), side="right"))
    elif not packed.size.all():
        at = int(np.argmin(packed.size))
    if at is not None:
        query = packed.names[int(np.searchsorted(packed.offsets, at, side="right")) - 1]
        name = text[packed.begin[at] : ends[at]].tobytes()
        raise _unwritable(f"document {decoded(name)!r} under query {decoded(query)!r}")
    offsets = np.append(packed.begin, ends[-1])
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(text)]
    return pa.Array.from_buffers(pa.large_binary(), len(packed.begin), buffers)


def _check_query(name: bytes) -> None:
    if name.split() != [name]:
        raise _unwritable(f"query {decoded(name)!r}")
    identifiers([decoded(name)], first=True)


def _unwritable(what: str) -> InputError:
    return InputError(
        f"{what} cannot be written to a TREC file, whose columns are split at white space; "
        "write a space as %20, and give empty ids a name"
    )


def _trec_order(packed: Packed, documents: Any) -> Ints:
    """Rows by query, score descending, then document descending in byte order."""
    owner = owners(packed.offsets)
    order = np.lexsort((-packed.values, owner))
    scores, queries = packed.values[order], owner[order]
    same = (scores[1:] == scores[:-1]) & (queries[1:] == queries[:-1])
    if not same.any():
        return order
    import pyarrow as pa
    import pyarrow.compute as pc

    tied = np.flatnonzero(np.append(same, False) | np.append(False, same))
    group = np.cumsum(~np.append(False, same))[tied]
    by_name = np.empty(len(tied), dtype=np.int64)
    names = documents.take(pa.array(order[tied]))
    by_name[pc.sort_indices(names, sort_keys=[("", "descending")]).to_numpy()] = np.arange(
        len(tied)
    )
    order[tied] = order[tied][np.lexsort((by_name, group))]
    return order
