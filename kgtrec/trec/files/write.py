"""Run, qrels and question files, written whole columns at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from kgtrec._internal.arguments import QUESTIONS, require_type
from kgtrec._internal.arrays import Int64
from kgtrec._internal.csr import owners
from kgtrec._internal.files import atomic_write
from kgtrec.errors import InputError
from kgtrec.trec.files.columns import QrelsColumns, RunColumns, name_bytes
from kgtrec.trec.files.convert import qrels_columns, run_columns
from kgtrec.trec.files.parse import write_run_lines
from kgtrec.trec.files.run import Run
from kgtrec.trec.files.text import LINES_AT_A_TIME, PathName, decode_name, identifiers

if TYPE_CHECKING:
    from kgtrec.questions.api import Questions


@runtime_checkable
class _HasTerms(Protocol):
    """Questions, whose module stands above this one."""

    ids: Any
    of_graph: Any


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
    if isinstance(run, Run):
        run.write(path, "kgtrec" if tag is None else tag)
        return
    columns = run_columns(run)
    (name,) = identifiers([columns.tag or "kgtrec" if tag is None else tag])
    queries = _check_names(columns, "run")
    order = _trec_order(columns)

    def columns_of(rows: slice) -> tuple[Int64, NDArray[Any]]:
        """Return ranks and scores of some lines."""
        return order[rows], columns.scores[order[rows]]

    with atomic_write(path) as out:
        write_run_lines(out, queries, columns.offsets, columns.documents, columns_of, name)


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
    columns = qrels_columns(qrels)
    queries = _texts([query + b" 0" for query in _check_names(columns, "qrels")])
    owner = owners(columns.offsets)

    def columns_of(rows: slice) -> list[Any]:
        # Arrow's cast gives decimal texts.
        """Return the three columns of some lines as Arrow arrays."""
        levels = pa.array(columns.relevance[rows]).cast(pa.large_string()).cast(pa.large_binary())
        return [queries.take(pa.array(owner[rows])), columns.documents[rows], levels]

    import pyarrow as pa

    _write_lines(path, len(owner), columns_of, b" ")


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
    require_type("questions", questions, _HasTerms, QUESTIONS)
    import pyarrow as pa

    terms = questions.of_graph().given_labels.values()
    columns = [labels.docnos.to_arrow().take(pa.array(ids)) for ids, labels in terms]
    columns.insert(0, _texts(identifiers(questions.ids)))
    _write_lines(path, len(columns[0]), lambda rows: [column[rows] for column in columns], b"\t")


def _texts(raw: list[bytes]) -> Any:
    """Return the bytes as an Arrow array."""
    import pyarrow as pa

    return pa.array(raw, pa.large_binary())


def _write_lines(
    path: PathName, n: int, columns: Callable[[slice], list[Any]], separator: bytes
) -> None:
    """Write `n` lines, of which `columns` gives some at a time as Arrow arrays."""
    import pyarrow as pa
    import pyarrow.compute as pc

    between, newline = (pa.scalar(each, pa.large_binary()) for each in (separator, b"\n"))
    with atomic_write(path) as out:
        for start in range(0, n, LINES_AT_A_TIME):
            some = columns(slice(start, start + LINES_AT_A_TIME))
            lines = pc.binary_join_element_wise(*some, between)
            together = pa.LargeListArray.from_arrays([0, len(lines)], lines)
            out.write(pc.binary_join(together, newline)[0].as_buffer())
            out.write(b"\n")


def _check_names(columns: RunColumns | QrelsColumns, kind: str) -> list[bytes]:
    """Return the queries as bytes; InputError for names that a file cannot hold."""
    ends = columns.name_offsets[1:]
    if not len(ends):
        raise InputError(f"a file without lines is refused by readers; give the {kind} a document")
    queries = [name_bytes(query, "query") for query in columns.queries]
    written = [queries[index] for index in np.flatnonzero(np.diff(columns.offsets)).tolist()]
    for name in written:
        if name.split() != [name]:
            raise _unwritable(f"query {decode_name(name)!r}")
    identifiers([*map(decode_name, written)], first=True)
    white = _WHITE_SPACE[columns.name_bytes[: ends[-1]]]
    white[: columns.name_offsets[0]] = False
    empty = np.diff(columns.name_offsets) == 0
    if white.any() or empty.any():
        at = int(np.searchsorted(ends, white.argmax(), "right") if white.any() else empty.argmax())
        query = columns.queries[int(np.searchsorted(columns.offsets, at, side="right")) - 1]
        document = decode_name(columns.documents[at].as_py())
        raise _unwritable(f"document {document!r} under query {query!r}")
    return queries


def _unwritable(noun: str) -> InputError:
    """Return the error for a name that cannot be written."""
    return InputError(
        f"{noun} cannot be written to a TREC file, whose columns are split at white space; "
        "write a space as %20, and give empty ids a name"
    )


def _trec_order(columns: RunColumns) -> Int64:
    """Sort rows by query, score descending, then document descending in byte order."""
    owner = owners(columns.offsets)
    order = np.lexsort((-columns.scores, owner))
    scores, queries = columns.scores[order], owner[order]
    same = (scores[1:] == scores[:-1]) & (queries[1:] == queries[:-1])
    if not same.any():
        return order
    import pyarrow as pa
    import pyarrow.compute as pc

    tied = np.flatnonzero(np.append(same, False) | np.append(False, same))
    group = np.cumsum(~np.append(False, same))[tied]
    by_name = np.empty(len(tied), dtype=np.int64)
    names = columns.documents.take(pa.array(order[tied]))
    by_name[pc.sort_indices(names, sort_keys=[("", "descending")]).to_numpy()] = np.arange(
        len(tied)
    )
    order[tied] = order[tied][np.lexsort((by_name, group))]
    return order
