"""Evaluation from Python: runs and qrels as dicts, frames, columns, arrays or files."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from kgtrec._internal.argument_names import argument
from kgtrec._internal.arguments import require_type
from kgtrec.errors import TieWarning, UsageError, choose
from kgtrec.trec.eval import score as scoring
from kgtrec.trec.eval.measure_rows import MeasureRow, Rows, TieValues, by_key, format_values
from kgtrec.trec.eval.paths import AnyRuns, Evaluation, NativeRuns, ScoreRows, select_value_columns
from kgtrec.trec.eval.request import Request, read_once
from kgtrec.trec.files.columns import QrelsColumns, name_bytes
from kgtrec.trec.files.text import decode_name, is_path
from kgtrec.trec.measures.judge import JudgedQueries
from kgtrec.trec.measures.names import resolve
from kgtrec.trec.measures.relevant import TieEffect
from kgtrec.trec.measures.rows import FORMATS
from kgtrec.trec.measures.trec_measure import EvalOptions
from kgtrec.trec.measures.values import summary as summary_of

if TYPE_CHECKING:
    import pandas

    from kgtrec.questions.api import Questions
    from kgtrec.trec.files.convert import QrelsLike, RunLike
    from kgtrec.trec.measures.judgement_groups import GroupJudgements


class Evaluator:
    """Evaluate any number of runs with the same qrels, which are read once.

    Documents are ordered by score in float64 descending, then by name, descending in byte order.

    Parameters
    ----------
    qrels : path, mapping, frame, tuples, ranx.Qrels, QrelsColumns or Questions
        A file; query, then document, to its relevance (int); a frame of pandas or polars with the
        columns query_id (or qid), doc_id (or docno) and relevance (or label); or tuples of
        ir_measures (Qrel). Ids that are whole numbers, here and in the run, are replaced by
        their decimal form.
    measures : iterable of str
        As trec_eval names them (``map_cut_20``, ``map_cut.20``, ``P.5,10``, ``official``) or as
        ir_measures does (``AP@20``, ``nDCG@20``), also as its measure objects. Micro metrics are
        ``kg_mrr``, ``kg_hits.1,3,10`` and the like. See ``kgtrec eval --help``.
    documents : sequence of str, optional
        Names of the documents that `evaluate_scores` numbers from 0. By default document 12 is
        named "12".
    level : int
        Least relevance of a relevant document, from 0 (-l); gains ignore it.
    complete : bool
        Count queries of the qrels that the run lacks, as if they retrieved nothing (-c).
    judged_only : bool
        Remove documents without a judgement of at least 0 from the lists (-J).
    most : int, optional
        Evaluate only this many documents per query, the first in order (-M).
    collection : int
        Documents in the collection, for utility (-N).
    compat : {10, 9}
        The version of trec_eval. With 9, as in pytrec_eval, scores are rounded to float32 before
        they are compared, and iprec_at_recall and 11pt_avg have other recall points.
    ties : {"name", "expected", "min", "max"}, optional
        The value for the order by name; or the mean, least or greatest value over all orders of
        tied documents. By default "name", with a TieWarning if the order changes a value.
    entities : int, optional
        Number of entities of the graph, which kg_mr, kg_amr and kg_amri need.
    questions : Questions, optional
        Remove from each list the answers of the question in the graph's other splits. The
        questions also give the number of entities.
    qrels_format : {"qrels", "beir", "json", "prefs", "qrels_prefs", "qrels_jg"}
        Format of the judgements (-R); see `read_qrels` for the first three, which are forms of
        files. The others are judgements in groups: pass a file, or nested dicts: query, group,
        (prefs: subgroup,) document to level. Measures: ``all_prefs`` and ``qrels_jg``.
    run_format : {"trec_results", "msmarco", "scores", "json"}
        Form of runs that are files (-T); see `read_run`.

    Attributes
    ----------
    queries : list of str
        Queries with a judgement, in the qrels' order; in byte order if the qrels are a file.

    Raises
    ------
    UsageError
        Unknown measures or arguments.
    InputError
        Relevances that are not whole numbers, ids that are neither str nor whole numbers.
    FileError
        The qrels cannot be read or are malformed, with the line.
    """

    queries: list[str]

    def __init__(
        self,
        qrels: QrelsLike,
        measures: Iterable[object],
        *,
        documents: Sequence[str] | None = None,
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
        run_format: str = "trec_results",
    ) -> None:
        if ties is not None:
            choose("ties", ties, ("name", "expected", "min", "max"))
        self._warns, ties = ties is None, None if ties == "name" else ties
        if FORMATS.get(qrels_format) == "qrels" and not is_path(qrels):
            from kgtrec.trec.files.convert import qrels_data

            qrels = qrels_data(qrels)
        options = EvalOptions(level, collection, compat, complete, most, judged_only)
        self._request = Request(
            qrels,
            (),
            _names(measures),
            options,
            qrels_format=qrels_format,
            ties=ties,
            entities=entities,
            questions=questions,
            run_format=run_format,
        )
        self._request.check()
        judged = scoring.read_qrels(self._request)
        self.queries = _list_queries(qrels, judged)
        self._judged, self._documents = judged, documents
        self._runs, self._native = AnyRuns(self._request, judged), None
        if isinstance(judged, JudgedQueries) and NativeRuns.has_all_of(self._request):
            self._native = NativeRuns(self._request, judged)
        has_values = bool(select_value_columns(self._request) or self._request.micro)
        self._is_shown = has_values, bool(self._request.of_all)

    @overload
    def evaluate(
        self, run: RunLike, *, summary: Literal[False] = False, as_: Literal["dict"] = "dict"
    ) -> Rows: ...
    @overload
    def evaluate(
        self, run: RunLike, *, summary: Literal[True], as_: Literal["dict"] = "dict"
    ) -> MeasureRow: ...
    @overload
    def evaluate(
        self, run: RunLike, *, summary: bool = False, as_: Literal["dict", "frame"] = "dict"
    ) -> Rows | MeasureRow | pandas.DataFrame: ...
    def evaluate(
        self, run: RunLike, *, summary: bool = False, as_: Literal["dict", "frame"] = "dict"
    ) -> Rows | MeasureRow | pandas.DataFrame:
        """Evaluate a run: the numbers of ``kgtrec eval``, unrounded.

        Parameters
        ----------
        run : path, mapping, frame, tuples, ranx.Run, RunColumns or Run
            A file; query, then document, to its score (float); a frame with the columns query_id
            (or qid), doc_id (or docno) and score; or tuples of ir_measures (ScoredDoc).
        summary : bool
            One row for all queries: means, sums of num_*, geometric means of gm_*. Otherwise one
            row per query, without runid; gm_* are then logarithms, floored at 1e-5.
        as_ : {"dict", "frame"}
            What to return.

        Returns
        -------
        dict of str to dict of str to float
            Query, in byte order, then measure as asked, in the order asked, to the value; a str
            for relstring. ``P.5,10`` has the names P_5 and P_10, as in trec_eval; every spelling
            finds the value: ``row["map_cut_20"]`` of AP@20. With `summary`, one such row,
            where num_* are int and runid is a str. As a frame: queries, or ``all``, are the index,
            measures the columns. Queries that only the run or only the qrels have are left out; see
            `complete`.

        Raises
        ------
        UsageError
            Unknown arguments; measures without a value here: runid for single queries, relstring in
            the summary.
        InputError
            Run and qrels share no query. Scores that are NaN or not numbers, ids that are neither
            str nor whole numbers, a document twice.
        FileError
            A file cannot be read or is malformed, with the line.
        """
        return self._evaluate(run, summary, as_)

    def evaluate_scores(
        self,
        scores: Any,
        documents: Any = None,
        *,
        queries: Sequence[str] | None = None,
        mask: Any = None,
        summary: bool = False,
        as_: Literal["dict", "frame"] = "dict",
    ) -> Rows | MeasureRow | pandas.DataFrame:
        """Evaluate arrays of scores, without names of documents; see `evaluate`.

        Parameters
        ----------
        scores : array or tensor of float16, bfloat16, float32, float64 or integers, (queries, n)
            NaN, or masked in a masked array, means no document. Scores are compared without
            conversion: scores of 16 bits tie often.
        documents : array of int, (n,) or (queries, n), optional
            Numbers of the documents; a negative number means no document. By default 0 to n - 1,
            which must be all documents: those of `Evaluator`, or at least all judged ones.
            `documents` of `Evaluator` gives their names, which decide ties.
        queries : sequence of str, optional
            Query of each row; by default `Evaluator.queries`.
        mask : array of bool, (queries, n), optional
            True for entries without a document.
        summary, as_
            As of `evaluate`.

        Returns
        -------
        dict of str to dict of str to float
            As from `evaluate`, in the order of the rows.

        Raises
        ------
        UsageError
            Arrays of another shape or dtype; judgements in groups, or `questions`.
        InputError
            A query that the qrels lack, a judged document twice in a row, or a judged document
            without a column, unless `documents` says which columns there are.
        """
        self._check_shown(summary, as_)
        evaluation = self._score_rows.evaluate(scores, documents, mask, queries, self._warns)
        self._warn(evaluation, stacklevel=3)  # of the caller
        return format_values(evaluation.values, summary, as_)

    def evaluate_ties(self, run: RunLike) -> TieValues:
        """Evaluate a run with ties by name; also mean, least and greatest over all orders of
        ties.

        Parameters
        ----------
        run : path, mapping, frame, tuples, ranx.Run, RunColumns or Run
            As of `evaluate`.

        Raises
        ------
        UsageError
            Measures without a form under ties; ``kg_`` measures, `complete`, or judgements in
            groups.
        """
        from kgtrec.trec.measures.ties import check_tie_forms

        check_tie_forms(select_value_columns(self._request), self._request.options)
        if self._request.micro or self._request.options.complete:
            raise UsageError(
                "evaluate_ties does not accept kg_ measures or complete; leave them out"
            )
        if self._native is not None and self._native.has_ties and isinstance(run, Mapping):
            values, remarks = self._native.evaluate_ties(run)
        else:
            values, remarks = self._runs.evaluate_ties(run)
        for remark in remarks:
            warnings.warn(remark, stacklevel=2)
        return values

    def _evaluate(self, run: Any, summary: bool, as_: str) -> Any:
        """Evaluate a run; warn the caller of `evaluate`, the method or the function."""
        self._check_shown(summary, as_)
        if self._native is not None and isinstance(run, Mapping):
            evaluation = self._native.evaluate(run, ties=self._warns)
        else:
            evaluation = self._runs.evaluate(run)
        self._warn(evaluation, stacklevel=4)
        return format_values(evaluation.values, summary, as_)

    @cached_property
    def _score_rows(self) -> ScoreRows:
        """What `evaluate_scores` calls."""
        if self._request.questions or not isinstance(self._judged, JudgedQueries):
            raise UsageError("evaluate_scores needs qrels and has no questions; call evaluate")
        return ScoreRows(self._request, self._judged, self._documents, self.queries)

    def _check_shown(self, summary: bool, as_: str) -> None:
        """Raise UsageError if no measure has a value for this request."""
        choose("as_", as_, ("dict", "frame"))
        if self._is_shown[summary]:
            return
        names = ", ".join(column.name for column in self._request.columns)
        problem, hint = "no value per query", "pass summary=True"
        if summary:
            problem, hint = "no value over all queries", "leave summary=True out"
        raise UsageError(f"{names} has {problem}; {hint}")

    def _warn(self, evaluation: Evaluation, stacklevel: int) -> None:
        """Emit the warnings of an evaluation; those of ties unless the caller chose an order."""
        ties = _tie_warnings(evaluation) if self._warns else ()
        for warning in (*evaluation.remarks, *ties, *evaluation.on_answers):
            warnings.warn(warning, stacklevel=stacklevel)


def _tie_warnings(evaluation: Evaluation) -> Iterable[TieWarning]:
    """Warn of ties that change a value."""
    if evaluation.tied.queries:
        yield tie_warning(evaluation.tied, len(evaluation.values.queries))


def tie_warning(effect: TieEffect, n_queries: int, run: str = "") -> TieWarning:
    """Return the warning that ties change a value; it begins with the name of the run, if given."""
    most = f", {effect.measure} by up to {effect.most:.4g}" if effect.measure else ""
    return TieWarning(
        f"{run}{': ' * bool(run)}{effect.queries:,} of {n_queries:,} queries have ties that change "
        f"a measure{most}; these values order tied documents by name. Pass "
        f"{argument('ties', 'expected')} for the mean over all orders, or "
        f"{argument('ties', 'name')} for these values without a warning"
    )


def _list_queries(qrels: Any, judged: JudgedQueries | GroupJudgements) -> list[str]:
    """List the queries with a judgement, in the order of the qrels."""
    if isinstance(qrels, QrelsColumns):
        names: Iterable[Any] = qrels.queries
    elif isinstance(qrels, Mapping):
        names = [query for query, documents in qrels.items() if documents]
    else:
        names = (judged if isinstance(judged, JudgedQueries) else judged.judged).names
    return [decode_name(q if isinstance(q, bytes) else name_bytes(q, "query")) for q in names]


@overload
def evaluate(
    qrels: QrelsLike,
    run: RunLike,
    measures: Iterable[object],
    *,
    summary: Literal[False] = False,
    as_: Literal["dict"] = "dict",
    **options: Any,
) -> Rows: ...
@overload
def evaluate(
    qrels: QrelsLike,
    run: RunLike,
    measures: Iterable[object],
    *,
    summary: Literal[True],
    as_: Literal["dict"] = "dict",
    **options: Any,
) -> MeasureRow: ...
@overload
def evaluate(
    qrels: QrelsLike,
    run: RunLike,
    measures: Iterable[object],
    *,
    summary: bool = False,
    as_: Literal["frame"],
    **options: Any,
) -> pandas.DataFrame: ...
@overload
def evaluate(
    qrels: QrelsLike,
    run: RunLike,
    measures: Iterable[object],
    *,
    summary: bool = False,
    as_: Literal["dict", "frame"] = "dict",
    **options: Any,
) -> Rows | MeasureRow | pandas.DataFrame: ...
def evaluate(
    qrels: QrelsLike,
    run: RunLike,
    measures: Iterable[object],
    *,
    summary: bool = False,
    as_: Literal["dict", "frame"] = "dict",
    **options: Any,
) -> Rows | MeasureRow | pandas.DataFrame:
    """Evaluate a run by trec_eval's measures: one call of `Evaluator`.

    Parameters
    ----------
    qrels, measures, options
        As of `Evaluator`.
    run, summary, as_
        As of `Evaluator.evaluate`, which also describes the result.

    Raises
    ------
    UsageError, InputError, FileError
        As of both.
    """
    read_once(qrels, run)
    return Evaluator(qrels, measures, **options)._evaluate(run, summary, as_)


def summarise(values: Mapping[str, Mapping[str, Any]], measures: Iterable[object]) -> MeasureRow:
    """Compute the summary row of the rows that `evaluate` returned for single queries.

    Parameters
    ----------
    values : mapping of str to mapping of str to float
        All rows of `evaluate`.
    measures : iterable of str
        The measures of those rows, or some of them. runid and relstring are left out.

    Raises
    ------
    InputError
        If there is no query.
    UsageError
        Measures that are unknown, or that the rows do not have.
    """
    require_type("values", values, Mapping, "the rows that trec.evaluate returns")
    columns = resolve(_names(measures), qrels_format=None, as_asked=True)
    columns = [c for c in columns if not c.is_query_only and c.measure != "runid"]
    rows = [row if isinstance(row, MeasureRow) else MeasureRow(row) for row in values.values()]
    lacking = [c.key for c in columns if any(c.name not in row for row in rows)]
    if lacking:
        raise UsageError(f"the rows have no {', '.join(lacking)}; pass it to `evaluate`, too")
    by_column = {c.name: np.array([row[c.name] for row in rows]) for c in columns}
    return MeasureRow(by_key(summary_of(by_column, columns), columns))


def _names(measures: Iterable[Any]) -> list[str]:
    """Return names of measures, or of a single one; str() of a measure of ir_measures is its
    name."""
    if isinstance(measures, str) or type(measures).__module__.startswith("ir_measures."):
        return [str(measures)]
    if not isinstance(measures, Iterable):
        raise UsageError(
            f"{argument('measures', measures)} has no names; give some, such as ['map_cut_20']"
        )
    return [str(measure) for measure in measures]
