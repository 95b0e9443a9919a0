"""Three ways from a run to its values, with the same results.

`AnyRuns` evaluates every run by every measure, through lists in numpy. `NativeRuns` evaluates runs
that are dicts of dicts in the native core, without such lists, and `ScoreRows` arrays of scores,
without names of documents. They emit no warnings but return them; see `Evaluation`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from kgtrec import _core
from kgtrec.errors import InputError, UsageError
from kgtrec.trec.eval import score as scoring
from kgtrec.trec.eval.answer_notes import remarks_on_answers
from kgtrec.trec.eval.measure_rows import (
    ArrayValues,
    MeasureRow,
    NativeValues,
    TieValues,
    by_key,
    rows_of,
)
from kgtrec.trec.eval.remarks import foreign_documents, remarks_of
from kgtrec.trec.eval.request import Request
from kgtrec.trec.files.columns import name_bytes, native_documents, pack_run, queries_of
from kgtrec.trec.files.text import decode_name
from kgtrec.trec.measures.formulas import core_columns, has_core_ties, in_core
from kgtrec.trec.measures.judge import JudgedQueries, NumberedDocuments, matrix_of, read_lists
from kgtrec.trec.measures.names import Column
from kgtrec.trec.measures.relevant import NO_EFFECT, UNJUDGED, QueryMatch, Signs, TieEffect
from kgtrec.trec.measures.values import values as values_of

if TYPE_CHECKING:
    from kgtrec.trec.measures.judgement_groups import GroupJudgements


class Evaluation(NamedTuple):
    """Values of a run, and what users should know about them.

    - tied: How the order of tied documents changes the measures.
    - remarks: Warnings about queries and documents.
    - on_answers: Notes about measures of answers.
    """

    values: ArrayValues | NativeValues
    tied: TieEffect
    remarks: Sequence[Warning]
    on_answers: Sequence[Warning] = ()


class AnyRuns:
    """Evaluates runs of any form by any measures."""

    def __init__(self, request: Request, judged: JudgedQueries | GroupJudgements) -> None:
        self._request, self._judged = request, judged

    def evaluate(self, run: Any) -> Evaluation:
        """Evaluate a run."""
        read = scoring.read_run(run, self._request)
        return make_evaluation(scoring.score_run(self._judged, read, self._request), self._request)

    def evaluate_ties(self, run: Any) -> tuple[TieValues, Sequence[Warning]]:
        """Evaluate a run over all orders of ties; also returns warnings about it."""
        from kgtrec.trec.measures.ties import TIES, differ, values_over_ties

        judged, options = self._judged, self._request.options
        assert isinstance(judged, JudgedQueries), "groups have no form under ties"
        data = scoring.read_run(run, self._request).data
        lists = read_lists(judged, data, options.cut(None), comments=options.compat >= 10)
        scoring.check_shared(judged, data, lists.match, options)
        columns = select_value_columns(self._request)
        plain = values_of(lists, columns, options)
        forms = [values_over_ties(lists, columns, options, ties=kind) for kind in TIES]
        changed = [differ(forms[1][name], forms[2][name]) for name in plain]
        first, mean, least, most = (
            rows_of(lists.queries, by_key(row, columns)) for row in (plain, *forms)
        )
        tied = int(np.any(changed, axis=0).sum())
        return TieValues(first, mean, least, most, tied), _remarks(
            judged, lists.match, self._request
        )


class _NativeMeasures:
    """Measures of queries for the native core, all but runid."""

    def __init__(self, request: Request) -> None:
        self._columns = select_value_columns(request)
        self._names = [column.key for column in self._columns]
        self._has_runid = len(self._columns) < len(request.columns)
        self.native = core_columns(self._columns, request.options.compat)

    def values(self, queries: list[str], cells: bytes) -> NativeValues:
        """Return the values that the core computed for queries."""
        return NativeValues(queries, self._columns, self._names, cells, self._has_runid)


class NativeRuns:
    """Evaluates dicts of dicts by measures of the native core, without lists in numpy."""

    def __init__(self, request: Request, judged: JudgedQueries) -> None:
        self._request, self._judged = request, judged
        self._queries = _core.TrecQueries(judged.native, judged.judged)
        self._measures = _NativeMeasures(request)

    @staticmethod
    def has_all_of(request: Request) -> bool:
        """Return whether the core has all measures, and no option changes lists or ties."""
        options = request.options
        if options.complete or options.judged_only or options.most is not None:
            return False
        if request.is_grouped or request.micro or request.ties or request.questions is not None:
            return False
        return all(map(in_core, select_value_columns(request)))

    @property
    def has_ties(self) -> bool:
        """Whether `evaluate_ties` knows all measures."""
        return all(map(has_core_ties, select_value_columns(self._request)))

    def evaluate(self, run: Mapping[Any, Any], ties: bool) -> Evaluation:
        """Evaluate a run; with `ties`, also find their effect."""
        values, tied, remarks = self._compute(run, int(ties))
        return Evaluation(values, _tie_effect(tied, values.names), remarks)

    def evaluate_ties(self, run: Mapping[Any, Any]) -> tuple[TieValues, Sequence[Warning]]:
        """Evaluate a run over all orders of ties; also returns warnings about it.

        The core computes only the measures of `has_core_ties`; see `AnyRuns` for others.
        """
        values, (differs, _, kinds), remarks = self._compute(run, 2)
        first, of_run = values.rows(), (MeasureRow, values.queries, values.names)
        mean, least, most = (_core.measure_rows(*of_run, kind, first, differs) for kind in kinds)
        return TieValues(first, mean, least, most, differs.count(1)), remarks

    def _compute(
        self, run: Mapping[Any, Any], ties: int
    ) -> tuple[NativeValues, tuple[Any, ...], Sequence[Warning]]:
        """Return values, the effect of ties as `_core.TrecQueries.of_run` does, and warnings."""
        judged, options = self._judged, self._request.options
        named = queries_of(run, in_order=True, keep_empty=True)
        shared = [pair for pair in named if pair[0] in judged.number]
        if len(shared) < len(named):  # checked, but not evaluated
            native_documents([pair for pair in named if pair[0] not in judged.number], run, True)
        numbers = [judged.number[name] for name, _ in shared]
        match = QueryMatch(numbers, len(named))
        if len(shared) < len(named):
            foreign = next(name for name, _ in named if name not in judged.number)
            match = match._replace(foreign=decode_name(foreign))
        scoring.check_shared(judged, run, match, options)
        cells, fault, tied, counts = self._queries.of_run(
            native_documents(shared, run, is_run=True),
            numbers,
            self._measures.native,
            options.compat < 10,
            options.level,
            UNJUDGED,
            ties,
        )
        if fault is not None:
            raise pack_run({query: run[query] for _, query in shared}).duplicate(fault[0] - 1)
        signs = self._name_documents(Signs(*counts), numbers, [run[query] for _, query in shared])
        is_clean = (
            not signs.n_wrong and not signs.is_rising and (signs.judged or not signs.documents)
        )
        remarks: Sequence[Warning] = ()
        is_complete = len(shared) == len(named) == len(judged)
        if not (is_clean and is_complete and _is_ordinary(judged, self._request)):
            remarks = _remarks(judged, match._replace(signs=signs), self._request)
        queries = [decode_name(name) for name, _ in shared]
        return self._measures.values(queries, cells), tied, remarks

    def _name_documents(
        self, signs: Signs, numbers: Sequence[int], lists: Sequence[Mapping[Any, Any]]
    ) -> Signs:
        """Add a document of the run and one of the qrels to the signs if none is judged."""
        if signs.judged or not signs.documents:
            return signs
        number, documents = next(
            (number, documents)
            for number, documents in zip(numbers, lists, strict=True)
            if documents
        )
        document = decode_name(name_bytes(next(iter(documents)), "document"))
        return signs._replace(run_document=document, qrels_document=self._judged.name_of(number))


class ScoreRows:
    """Evaluates arrays of scores: a row per query, a column per document."""

    def __init__(
        self,
        request: Request,
        judged: JudgedQueries,
        documents: Sequence[str] | None,
        queries: Sequence[str],
    ) -> None:
        self._request, self._judged = request, judged
        self._documents = NumberedDocuments(judged, documents)
        self._queries, self._numbers = list(queries), self._numbers_of(queries)
        is_native = NativeRuns.has_all_of(request)
        self._measures = _NativeMeasures(request) if is_native else None

    def evaluate(
        self, scores: Any, documents: Any, mask: Any, queries: Sequence[str] | None, ties: bool
    ) -> Evaluation:
        """Evaluate one row of scores per query; with `ties`, also find their effect.

        Without `queries`, the rows are those of `__init__`.
        """
        request, numbered = self._request, self._documents
        matrix = matrix_of(scores, mask, request.options.compat < 10)
        numbers = self._numbers if queries is None else self._numbers_of(queries)
        if len(numbers) != len(matrix):
            raise UsageError(
                f"there are {len(matrix):,} rows of scores for {len(numbers):,} queries; give one "
                "row per query of Evaluator.queries, or name the queries of the rows"
            )
        names, measures = numbered.order_of(documents, matrix.shape[1]), self._measures
        foreign = numbered.foreign() or numbered.foreign_number(names)
        remarks = [foreign_documents(*foreign)] if foreign else []
        cells, twice, tied, parts = numbered.native.of_scores(
            matrix,
            names,
            numbered.is_decimal,
            numbers,
            measures.native if measures else core_columns([], 10),
            request.options.level,
            UNJUDGED,
            ties and measures is not None,
            measures is None,
        )
        if twice >= 0:
            query = decode_name(self._judged.names[numbers[twice]])
            raise InputError(f"row {twice}, query {query!r}, has a judged document twice; keep one")
        if measures is None:
            complete = request.options.complete
            lists = numbered.lists(matrix, names, np.array(numbers), parts, complete)
            evaluation = make_evaluation(scoring.score_lists(lists, request, self._judged), request)
            return evaluation._replace(remarks=[*remarks, *evaluation.remarks])
        if not (_is_ordinary(self._judged, request) and len(numbers) == len(self._judged)):
            remarks += _remarks(self._judged, QueryMatch(numbers, len(numbers)), request)
        names_of_rows = self._queries if queries is None else [str(query) for query in queries]
        values = measures.values(names_of_rows, cells)
        return Evaluation(values, _tie_effect(tied, values.names), remarks)

    def _numbers_of(self, queries: Sequence[str]) -> list[int]:
        """Return the numbers of queries in the qrels; InputError for unknown or repeated ones."""
        numbers = [self._judged.number.get(name_bytes(query, "query"), -1) for query in queries]
        if -1 in numbers:
            lacking = queries[numbers.index(-1)]
            raise InputError(f"the qrels do not have query {lacking!r}; leave its row out")
        if len({*numbers}) < len(numbers):
            raise InputError("several rows have the same query; give each row its own")
        return numbers


def select_value_columns(request: Request) -> list[Column]:
    """Return the measures of queries that have values: all but runid."""
    return [column for column in request.columns if column.measure != "runid"]


def make_evaluation(scored: scoring.Scored, request: Request) -> Evaluation:
    """Return a scored run as an evaluation."""
    columns = [*request.of_a_query, *request.of_all]
    values = ArrayValues(
        scored.queries, by_key(scored.values, columns), by_key(scored.summary, columns)
    )
    return Evaluation(values, scored.tied, scored.remarks, [*remarks_on_answers(scored, request)])


def _is_ordinary(judged: JudgedQueries, request: Request) -> bool:
    """Return whether each query has a relevant document, so that only a run deserves warnings."""
    options = request.options
    return judged.least_best >= max(options.level, 1) and not options.judged_only


def _remarks(
    judged: JudgedQueries, match: QueryMatch | None, request: Request
) -> Sequence[Warning]:
    """Return warnings about the queries and documents of a run, as `kgtrec eval` prints them."""
    assert match is not None
    columns = select_value_columns(request)
    return remarks_of(judged, match, columns, request.options, command_line=False)


def _tie_effect(tied: tuple[Any, ...], names: Iterable[str]) -> TieEffect:
    """Return the effect of ties from what the core reports: nothing, or changes per measure."""
    if not tied:
        return NO_EFFECT
    return TieEffect.from_changes(tied[0].count(1), dict(zip(names, tied[1], strict=True)))
