"""Evaluation from Python: runs and qrels as dicts, frames, columns or files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypedDict, overload

import numpy as np

from kgtrec.errors import UsageError, choose
from kgtrec.trec.eval.request import Request
from kgtrec.trec.eval.score import Scored, score
from kgtrec.trec.measures.family import EvalOptions
from kgtrec.trec.measures.names import resolve
from kgtrec.trec.measures.values import summary as summary_of

if TYPE_CHECKING:
    import pandas
    from typing_extensions import Unpack

    from kgtrec.questions.api import Questions
    from kgtrec.trec.files.convert import QrelsLike, RunLike


class Options(TypedDict, total=False):
    """Further keywords of `evaluate`."""

    level: int
    complete: bool
    judged_only: bool
    most: int | None
    collection: int
    compat: int
    ties: str | None
    entities: int | None
    questions: Questions | None
    qrels_format: str


class MeasureRow(dict[str, Any]):
    """Values by trec_eval's name of the measure; looked up by its other spellings too.

    ``row["AP@20"]``, ``row["map_cut.20"]`` and ``row["map_cut_20"]`` are the same value.
    """

    def __missing__(self, name: object) -> Any:
        try:
            (column,) = resolve([str(name)], qrels_format=None)
        except ValueError:  # unknown, or several measures
            raise KeyError(name) from None
        if column.name not in self:
            raise KeyError(name)
        return self[column.name]


@overload
def evaluate(
    qrels: QrelsLike,
    run: RunLike,
    measures: Iterable[object],
    *,
    summary: Literal[False] = False,
    as_: Literal["dict"] = "dict",
    **options: Unpack[Options],
) -> dict[str, MeasureRow]: ...
@overload
def evaluate(
    qrels: QrelsLike,
    run: RunLike,
    measures: Iterable[object],
    *,
    summary: Literal[True],
    as_: Literal["dict"] = "dict",
    **options: Unpack[Options],
) -> MeasureRow: ...
@overload
def evaluate(
    qrels: QrelsLike,
    run: RunLike,
    measures: Iterable[object],
    *,
    summary: bool = False,
    as_: Literal["frame"],
    **options: Unpack[Options],
) -> pandas.DataFrame: ...
def evaluate(
    qrels: QrelsLike,
    run: RunLike,
    measures: Iterable[object],
    *,
    summary: bool = False,
    as_: Literal["dict", "frame"] = "dict",
    level: int = 1,
    complete: bool = False,
    judged_only: bool = False,
    most: int | None = None,
    collection: int = 0,
    compat: int = 10,
    ties: str | None = None,
    entities: int | None = None,
    questions: Questions | None = None,
    qrels_format: str = "qrels",
) -> dict[str, MeasureRow] | MeasureRow | pandas.DataFrame:
    """Values of trec_eval's measures for a run: the numbers of ``kgtrec eval``, unrounded.

    Documents are ordered by score in float64 descending, then by name, descending in byte order.

    Parameters
    ----------
    qrels : path, mapping, frame, tuples, ranx.Qrels, QrelsColumns or Questions
        A file; query, then document, to its relevance (int); a frame of pandas or polars with the
        columns query_id (or qid), doc_id (or docno) and relevance (or label); or tuples of
        ir_measures (Qrel). Ids that are whole numbers stand for their decimal form, here and in
        the run, and come back as that.
    run : path, mapping, frame, tuples, ranx.Run, RunColumns or Run
        A file; query, then document, to its score (float); a frame with the columns query_id
        (or qid), doc_id (or docno) and score; or tuples of ir_measures (ScoredDoc).
    measures : iterable of str
        As trec_eval names them (``map_cut_20``, ``map_cut.20``, ``P.5,10``, ``official``) or as
        ir_measures does (``AP@20``, ``nDCG@20``), whose measure objects will do; and ``kg_mrr``,
        ``kg_hits.1,3,10`` and the like for micro metrics. See ``kgtrec eval --help``.
    summary : bool
        One row for all queries: means, sums of num_*, geometric means of gm_*. Otherwise a row
        for every query; there, runid is left out, and gm_* are logarithms, floored at 1e-5.
    as_ : {"dict", "frame"}
        What to return.
    level : int
        Relevance from which a document is relevant, from 0 (-l); gains take no notice of it.
    complete : bool
        Queries of the qrels that the run lacks count too, as if nothing were retrieved (-c).
    judged_only : bool
        Documents without a judgement from 0 up leave the lists (-J).
    most : int, optional
        At most so many documents of a query, the first in order, are looked at (-M).
    collection : int
        Documents in the collection, for utility (-N).
    compat : {10, 9}
        The version of trec_eval. With 9, as in pytrec_eval, scores are rounded to float32 before
        they are compared, and the recall points of iprec_at_recall and 11pt_avg lie elsewhere.
    ties : {"expected", "min", "max"}, optional
        Mean, least or greatest value over all orders of tied documents, in place of the value for
        the order by name.
    entities : int, optional
        Entities of the graph, which kg_mr, kg_amr and kg_amri need.
    questions : Questions, optional
        Filters the run: what the graph's other splits know of a question leaves its list. They give
        the number of entities, too.
    qrels_format : {"qrels", "prefs", "qrels_prefs", "qrels_jg"}
        Of the judgements (-R). Those in groups are a file, or query, group, (for prefs) subgroup
        and document to a level, as nested dicts; their measures are ``all_prefs`` and ``qrels_jg``.

    Returns
    -------
    dict of str to dict of str to float
        Query, in byte order, then measure by trec_eval's name, in its order, to the value; a str
        for relstring. ``row["AP@20"]`` finds map_cut_20. With `summary`, one such row, where
        num_* are int and runid is a str. As a frame: queries, or ``all``, are the index, measures
        the columns. Queries that only one of run and qrels has are left out; see `complete`.

    Raises
    ------
    UsageError
        Unknown measures or arguments; measures that have no value in what is asked for: runid
        for single queries, relstring in the summary.
    InputError
        No query is in both. Scores that are NaN or no numbers, relevances that are no whole
        numbers, ids that are neither str nor whole numbers, a document twice.
    FileError
        A file cannot be read or is malformed, with the line.
    """
    choose("as_", as_, ("dict", "frame"))
    options = EvalOptions(
        level=level,
        complete=complete,
        judged_only=judged_only,
        most=most,
        collection=collection,
        compat=compat,
    )
    request = Request(
        qrels,
        [run],
        _names(measures),
        options,
        per_query=not summary,
        summary=summary,
        qrels_format=qrels_format,
        ties=ties,
        entities=entities,
        questions=questions,
    )
    _check_shown(request)
    (scored,) = score(request)
    if as_ == "frame":
        return _framed(scored, summary)
    return MeasureRow(scored.summary) if summary else _rows(scored)


def summarise(values: Mapping[str, Mapping[str, Any]], measures: Iterable[object]) -> MeasureRow:
    """Summary row of what `evaluate` gave for single queries.

    Parameters
    ----------
    values : mapping of str to mapping of str to float
        All rows of `evaluate`.
    measures : iterable of str
        Those that were asked for, or some of them. runid and relstring are left out.

    Raises
    ------
    InputError
        If there is no query.
    UsageError
        Measures that are unknown, or that the rows do not have.
    """
    columns = resolve(_names(measures), qrels_format=None)
    columns = [c for c in columns if not c.is_query_only and c.family != "runid"]
    lacking = [c.name for c in columns if any(c.name not in row for row in values.values())]
    if lacking:
        raise UsageError(f"the rows have no {', '.join(lacking)}; ask `evaluate` for it, too")
    by_column = {c.name: np.array([row[c.name] for row in values.values()]) for c in columns}
    return MeasureRow(summary_of(by_column, columns))


def _names(measures: Iterable[Any]) -> list[str]:
    """One name may stand alone; str() of a measure of ir_measures is its name."""
    if isinstance(measures, str):
        return [measures]
    if not isinstance(measures, Iterable):
        raise UsageError(f"measures={measures!r} holds no names; give some, such as ['map_cut_20']")
    return [str(measure) for measure in measures]


def _check_shown(request: Request) -> None:
    """UsageError if no measure has a value where one is wanted."""
    columns, summary = request.columns, request.summary
    if request.micro or not all(
        c.is_query_only if summary else c.family == "runid" for c in columns
    ):
        return
    names = ", ".join(column.name for column in columns)
    problem, hint = (
        ("no value over all queries", "leave summary=True out")
        if summary
        else ("no value for a query", "ask with summary=True")
    )
    raise UsageError(f"{names} has {problem}; {hint}")


def _rows(scored: Scored) -> dict[str, MeasureRow]:
    names: Sequence[str] = list(scored.values)
    rows = zip(*(column.tolist() for column in scored.values.values()), strict=True)
    return {
        query: MeasureRow(zip(names, row, strict=True))
        for query, row in zip(scored.queries, rows, strict=True)
    }


def _framed(scored: Scored, summary: bool) -> pandas.DataFrame:
    import pandas as pd

    if summary:
        return pd.DataFrame(scored.summary, index=["all"])
    try:
        index = pd.Index(scored.queries, name="query_id")
    except UnicodeEncodeError:  # names that are no UTF-8
        index = pd.Index(scored.queries, name="query_id", dtype=object)
    return pd.DataFrame(dict(scored.values), index=index)
