"""Evaluation from Python: runs and qrels as dicts, frames, columns, arrays or files."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from kgtrec import _core
from kgtrec._internal.argument_names import argument
from kgtrec.errors import InputError, TieWarning, UsageError, choose
from kgtrec.trec.eval import score as scoring
from kgtrec.trec.eval.remarks import foreign_documents, remarks_of, remarks_on_answers
from kgtrec.trec.eval.request import Request, read_once
from kgtrec.trec.files.columns import (
    QrelsColumns,
    name_bytes,
    native_documents,
    pack_run,
    queries_of,
)
from kgtrec.trec.files.text import decode_name, is_path
from kgtrec.trec.measures.formulas import core_columns, in_core
from kgtrec.trec.measures.judge import JudgedQueries, NumberedDocuments, matrix_of, read_lists
from kgtrec.trec.measures.names import resolve
from kgtrec.trec.measures.relevant import UNJUDGED, QueryMatch, Signs, TieEffect, View
from kgtrec.trec.measures.rows import FORMATS
from kgtrec.trec.measures.trec_measure import EvalOptions
from kgtrec.trec.measures.values import summary as summary_of
from kgtrec.trec.measures.values import values

if TYPE_CHECKING:
    import pandas

    from kgtrec.questions.api import Questions
    from kgtrec.trec.files.convert import QrelsLike, RunLike


class MeasureRow(dict[str, Any]):
    """Values by trec_eval's name of the measure; looked up by its other spellings too.

    ``row["AP@20"]``, ``row["map_cut.20"]`` and ``row["map_cut_20"]`` are the same value.
    """

    __slots__ = ()

    def __missing__(self, name: object) -> Any:
        try:
            (column,) = resolve([str(name)], qrels_format=None)
        except ValueError:  # unknown, or several measures
            raise KeyError(name) from None
        if column.name not in self:
            raise KeyError(name)
        return self[column.name]


Rows = dict[str, MeasureRow]


class TieValues(NamedTuple):
    """Values of a run with ties ordered by name, and over all orders of tied documents.

    - value, expected, minimum, maximum: Query to measure to value, as `Evaluator.evaluate` gives.
    - queries: Number of queries in which the order changes a measure.
    """

    value: Rows
    expected: Rows
    minimum: Rows
    maximum: Rows
    queries: int


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
        self._judged = scoring.read_qrels(self._request)
        self._documents = documents
        self._columns = [c for c in self._request.columns if c.measure != "runid"]
        self._measures = [c.name for c in self._columns]
        shown = [c for c in self._request.columns if not c.is_query_only]
        micro = self._request.micro
        self._is_shown = bool(self._columns or micro), bool(shown or micro)
        judged = self._judged if isinstance(self._judged, JudgedQueries) else self._judged.judged
        held: Iterable[Any] = qrels.queries if isinstance(qrels, QrelsColumns) else judged.names
        if isinstance(qrels, Mapping):
            held = [query for query, documents in qrels.items() if documents]
        self.queries = [
            decode_name(q if isinstance(q, bytes) else name_bytes(q, "query")) for q in held
        ]
        special = ties or complete or judged_only or self._request.micro or questions is not None
        self._core: _core.TrecColumns | None = None
        if isinstance(self._judged, JudgedQueries) and not special and most is None:
            self._native = _core.TrecQueries(judged.native, judged.judged)
            if all(map(in_core, self._columns)):
                self._core = core_columns(self._columns, compat)

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
            Query, in byte order, then measure by trec_eval's name, in its order, to the value; a
            str for relstring. ``row["AP@20"]`` finds map_cut_20. With `summary`, one such row,
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
        self._check_shown(summary, as_)
        if self._core is not None and isinstance(run, Mapping):
            queries, cells, tied = self._evaluate_mapping(run, self._core, int(self._warns))
            self._warn_of_ties(tied, len(queries))
            return self._format_values(queries, cells, summary, as_)
        read = scoring.read_run(run, self._request)
        scored = scoring.score_run(self._judged, read, self._request)
        return self._of_scored(scored, summary, as_)

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
        request, (numbered, rows) = self._request, self._numbered
        if names_of_both := numbered.foreign():
            warnings.warn(foreign_documents(*names_of_both), stacklevel=2)
        matrix = matrix_of(scores, mask, request.options.compat < 10)
        numbers = rows if queries is None else self._numbers_of(queries)
        if len(numbers) != len(matrix):
            raise UsageError(
                f"there are {len(matrix):,} rows of scores for {len(numbers):,} queries; give one "
                "row per query of Evaluator.queries, or name the queries of the rows"
            )
        names, always = numbered.order_of(documents, matrix.shape[1]), self._core is None
        columns = self._core or core_columns([], 10)
        cells, twice, tied, parts = numbered.native.of_scores(
            matrix,
            names,
            numbered.is_decimal,
            numbers,
            columns,
            request.options.level,
            UNJUDGED,
            self._warns and not always,
            always,
        )
        if twice >= 0:
            query = decode_name(self._qrels.names[numbers[twice]])
            raise InputError(f"row {twice}, query {query!r}, has a judged document twice; keep one")
        if always:
            scored = scoring.score_lists(
                numbered.lists(matrix, names, np.array(numbers), parts, request.options.complete),
                request,
                self._qrels,
            )
            return self._of_scored(scored, summary, as_)
        if not (self._is_ordinary and len(numbers) == len(self._qrels)):
            self._warn_of_queries(QueryMatch(numbers, len(numbers)))
        self._warn_of_ties(tied, len(numbers))
        held = self.queries if queries is None else [str(query) for query in queries]
        return self._format_values(held, cells, summary, as_)

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
        from kgtrec.trec.measures.ties import TIES, check_tie_forms, differ, values_over_ties

        options, columns = self._request.options, self._columns
        check_tie_forms(columns, options)
        if self._request.micro or options.complete:
            raise UsageError(
                "evaluate_ties does not accept kg_ measures or complete; leave them out"
            )
        if self._core is not None and isinstance(run, Mapping):
            queries, cells, (differs, _, kinds) = self._evaluate_mapping(run, self._core, 2)
        else:
            data = scoring.read_run(run, self._request).data
            lists = read_lists(self._qrels, data, options.cut(None), comments=options.compat >= 10)
            scoring.check_shared(self._qrels, data, lists.match, options)
            self._warn_of_queries(lists.match)
            plain = values(lists, columns, options)
            queries, cells = [*lists.queries], np.array([*plain.values()]).tobytes()
            if self._core is None:
                forms = [values_over_ties(lists, columns, options, ties=kind) for kind in TIES]
                changed = [differ(forms[1][name], forms[2][name]) for name in plain]
                first, mean, least, most = (_of_columns(queries, row) for row in (plain, *forms))
                return TieValues(first, mean, least, most, int(np.any(changed, axis=0).sum()))
            differs, _, kinds = self._core.ties(View(lists, options).documents, lists.scores, True)
        names = MeasureRow, queries, self._measures
        first = _core.measure_rows(*names, cells)
        mean, least, most = (_core.measure_rows(*names, kind, first, differs) for kind in kinds)
        return TieValues(first, mean, least, most, differs.count(1))

    def _evaluate_mapping(
        self, run: Mapping[Any, Any], columns: _core.TrecColumns, ties: int
    ) -> tuple[list[str], bytes, tuple[Any, ...]]:
        """Evaluate a dict of dicts by the native core.

        Returns the queries, their values, and the effect of ties; see
        `_core.TrecQueries.of_run`.
        """
        judged, options = self._qrels, self._request.options
        named = queries_of(run, in_order=True, keep_empty=True)
        shared = [pair for pair in named if pair[0] in judged.number]
        if len(shared) < len(named):
            native_documents([pair for pair in named if pair[0] not in judged.number], run, True)
        numbers = [judged.number[name] for name, _ in shared]
        match = QueryMatch(numbers, len(named))
        if len(shared) < len(named):
            foreign = next(name for name, _ in named if name not in judged.number)
            match = match._replace(foreign=decode_name(foreign))
        scoring.check_shared(judged, run, match, options)
        documents = native_documents(shared, run, is_run=True)
        cells, fault, tied, counts = self._native.of_run(
            documents,
            numbers,
            columns,
            options.compat < 10,
            options.level,
            UNJUDGED,
            ties,
        )
        if fault is not None:
            raise pack_run({query: run[query] for _, query in shared}).duplicate(fault[0] - 1)
        signs = Signs(*counts)
        if signs.documents and not signs.judged:
            number, query = next(
                (number, query)
                for number, (_, query) in zip(numbers, shared, strict=True)
                if run[query]
            )
            document = decode_name(name_bytes(next(iter(run[query])), "document"))
            signs = signs._replace(run_document=document, qrels_document=judged.name_of(number))
        is_clean = (
            not signs.n_wrong and not signs.is_rising and (signs.judged or not signs.documents)
        )
        if not (is_clean and self._is_ordinary and len(shared) == len(named) == len(self._qrels)):
            self._warn_of_queries(match._replace(signs=signs))
        return [decode_name(name) for name, _ in shared], cells, tied

    @property
    def _qrels(self) -> JudgedQueries:
        """Judgements, which are not in groups."""
        assert isinstance(self._judged, JudgedQueries)
        return self._judged

    @cached_property
    def _numbered(self) -> tuple[NumberedDocuments, list[int]]:
        """Documents, and the numbers of `queries`, for rows of scores."""
        request = self._request
        if request.is_grouped or request.questions:
            raise UsageError("evaluate_scores needs qrels and has no questions; call evaluate")
        return NumberedDocuments(self._qrels, self._documents), self._numbers_of(self.queries)

    def _numbers_of(self, queries: Sequence[str]) -> list[int]:
        """Return the numbers of queries in the qrels; InputError for unknown or repeated ones."""
        numbers = [self._qrels.number.get(name_bytes(query, "query"), -1) for query in queries]
        if -1 in numbers:
            lacking = queries[numbers.index(-1)]
            raise InputError(f"the qrels do not have query {lacking!r}; leave its row out")
        if len({*numbers}) < len(numbers):
            raise InputError("several rows have the same query; give each row its own")
        return numbers

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

    def _format_values(
        self, queries: list[str], cells: bytes, summary: bool, as_: str
    ) -> Rows | MeasureRow | pandas.DataFrame:
        """Return values from the native core in the requested form."""
        names = self._measures
        if not summary and as_ == "dict":
            return _core.measure_rows(MeasureRow, queries, names, cells)
        columns = np.frombuffer(cells).reshape(len(names), len(queries))
        arrays = dict(zip(names, columns.copy(), strict=True))
        row: dict[str, Any] = {}
        if summary and len(self._columns) < len(self._request.columns):
            row["runid"] = ""
        row |= summary_of(arrays, self._columns) if summary else {}
        return _format_rows(queries, arrays, row, summary, as_)

    def _of_scored(self, scored: scoring.Scored, summary: bool, as_: str) -> Any:
        """Warn of what needs attention, and return the values in the requested form."""
        for remark in scored.remarks:
            warnings.warn(remark, stacklevel=_frames_inside())
        if self._warns:
            self._warn(scored.tied, len(scored.queries))
        for remark in remarks_on_answers(scored, self._request):
            warnings.warn(remark, stacklevel=_frames_inside())
        return _format_rows(scored.queries, scored.values, scored.summary, summary, as_)

    @cached_property
    def _is_ordinary(self) -> bool:
        """Whether each query has a relevant document, so that only a run can deserve a warning."""
        options = self._request.options
        return self._qrels.least_best >= max(options.level, 1) and not options.judged_only

    def _warn_of_queries(self, match: QueryMatch | None) -> None:
        """Warn of what `kgtrec eval` prints about the queries and documents of a run."""
        assert match is not None
        options = self._request.options
        for remark in remarks_of(self._qrels, match, self._columns, options, command_line=False):
            warnings.warn(remark, stacklevel=_frames_inside())

    def _warn_of_ties(self, tied: tuple[Any, ...], n_queries: int) -> None:
        """Warn if the core reports that ties change a value."""
        if tied:
            most = dict(zip(self._measures, tied[1], strict=True))
            self._warn(TieEffect.from_changes(tied[0].count(1), most), n_queries)

    def _warn(self, effect: TieEffect, n_queries: int) -> None:
        """Warn of ties that change a value."""
        if not effect.queries:
            return
        most = f", {effect.measure} by up to {effect.most:.4g}" if effect.measure else ""
        text = (
            f"{effect.queries:,} of {n_queries:,} queries have ties that change a measure{most}; "
            f"these values order tied documents by name. Pass {argument('ties', 'expected')} for "
            f"the mean over all orders, or {argument('ties', 'name')} for these values without a "
            "warning"
        )
        warnings.warn(TieWarning(text), stacklevel=_frames_inside())


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
    return Evaluator(qrels, measures, **options).evaluate(run, summary=summary, as_=as_)


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
    columns = resolve(_names(measures), qrels_format=None)
    columns = [c for c in columns if not c.is_query_only and c.measure != "runid"]
    lacking = [c.name for c in columns if any(c.name not in row for row in values.values())]
    if lacking:
        raise UsageError(f"the rows have no {', '.join(lacking)}; pass it to `evaluate`, too")
    by_column = {c.name: np.array([row[c.name] for row in values.values()]) for c in columns}
    return MeasureRow(summary_of(by_column, columns))


def _names(measures: Iterable[Any]) -> list[str]:
    """Return names of measures, or of a single one; str() of a measure of ir_measures is its
    name."""
    if isinstance(measures, str):
        return [measures]
    if not isinstance(measures, Iterable):
        raise UsageError(
            f"{argument('measures', measures)} has no names; give some, such as ['map_cut_20']"
        )
    return [str(measure) for measure in measures]


def _of_columns(queries: Sequence[str], values: Mapping[str, NDArray[Any]]) -> Rows:
    """Make one `MeasureRow` per query from arrays by measure."""
    rows = zip(*(column.tolist() for column in values.values()), strict=True)
    return {
        q: MeasureRow(zip(values, row, strict=True)) for q, row in zip(queries, rows, strict=True)
    }


def _format_rows(
    queries: Sequence[str],
    values: Mapping[str, NDArray[Any]],
    row: Mapping[str, Any],
    summary: bool,
    as_: str,
) -> Rows | MeasureRow | pandas.DataFrame:
    """Return values per query, or the summary, as a dict or a frame."""
    if as_ == "dict":
        return MeasureRow(row) if summary else _of_columns(queries, values)
    import pandas as pd

    if summary:
        return pd.DataFrame(dict(row), index=["all"])
    try:
        index = pd.Index(queries, name="query_id")
    except UnicodeEncodeError:  # names that are not UTF-8
        index = pd.Index(queries, name="query_id", dtype=object)
    return pd.DataFrame(dict(values), index=index)


def _frames_inside() -> int:
    """Count the stack frames up to the caller of this module, for warnings."""
    depth = 1
    while sys._getframe(depth).f_code.co_filename == __file__:
        depth += 1
    return depth
