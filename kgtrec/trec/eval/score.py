"""Carry out a request: read runs and qrels, compute values and summaries, standardise on demand.

A standard score is (value - mean) / standard deviation, both of reference runs. A reference file
has lines ``query measure mean deviation``. The score is `MISSING` if there is no such line, or if
the deviation is 0 and the mean is not the value. It is nan if the file says nan, as programs write
after dividing 0 by 0.
"""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kgtrec._internal.threads import available_cores, share_rows
from kgtrec.errors import InputError, KgtrecWarning, refuse
from kgtrec.trec.eval.remarks import quote_name, remarks_of
from kgtrec.trec.eval.request import Request
from kgtrec.trec.files.text import PathName, ReadAhead, Warn, is_path
from kgtrec.trec.measures.formulas import FLOOR
from kgtrec.trec.measures.judge import JudgedQueries, read_judged_queries, read_lists
from kgtrec.trec.measures.names import Column
from kgtrec.trec.measures.relevant import NO_EFFECT, Lists, QueryMatch, TieEffect, some_queries
from kgtrec.trec.measures.trec_measure import EvalOptions
from kgtrec.trec.measures.values import summary, values

if TYPE_CHECKING:
    from kgtrec._internal.bootstrap import Resampling
    from kgtrec.trec.eval.kg_metrics import GraphFiltered, Micro
    from kgtrec.trec.files.columns import RunData
    from kgtrec.trec.measures.judgement_groups import GroupJudgements

MISSING = -1_000_000.0
"""trec_eval's value for a missing standard score; it enters the averages like any other."""

Reference = dict[str, dict[str, tuple[float, float]]]
"""Query, then measure, to mean and standard deviation."""

_COLUMNS = "query measure mean deviation"


def read_reference(path: str | os.PathLike[str]) -> Reference:
    """Read means and standard deviations of reference runs."""
    from kgtrec.graph.id_files import lines_of, text_of

    reference: Reference = {}
    for number, line in lines_of(path):
        fields = [*map(text_of, line.split())]
        if len(fields) != 4:
            problem = f"{len(fields)} columns in {text_of(line)!r}" if fields else "a blank line"
            refuse(path, number, problem, f"a line must have 4: {_COLUMNS}")
        query, measure, *texts = fields
        mean, deviation = (_number(path, number, text) for text in texts)
        if deviation < 0:
            refuse(path, number, f"deviation {texts[1]!r}", "the fourth column must be 0 or more")
        measures = reference.setdefault(query, {})
        if measure in measures:
            problem = f"query {query!r} has measure {measure!r} twice"
            refuse(path, number, problem, "keep one of the two lines")
        measures[measure] = mean, deviation
    if not reference:
        refuse(path, None, "it contains no lines", f"give lines of {_COLUMNS!r}")
    return reference


def standardise(
    values: Mapping[str, NDArray[Any]], queries: Sequence[str], reference: Reference
) -> tuple[dict[str, NDArray[Any]], int]:
    """Compute standard scores of all values that are numbers; strings stay as they are.

    Shapes: values (n_queries,) -> scores float64 (n_queries,).
    """
    rows = [reference.get(query, {}) for query in queries]
    scores: dict[str, NDArray[Any]] = {}
    missing = 0
    for name, column in values.items():
        if column.dtype.kind not in "fiu":
            scores[name] = column
            continue
        # No line, or a deviation of 0 and a mean that is not the value.
        known = [row.get(name, (math.nan, 0.0)) for row in rows]
        mean, deviation = np.array(known, dtype=np.float64).reshape(-1, 2).T
        with np.errstate(divide="ignore", invalid="ignore"):
            score = (column - mean) / deviation
        score = np.where(deviation == 0, np.where(column == mean, 0.0, MISSING), score)
        missing += int((score == MISSING).sum())
        scores[name] = score
    return scores, missing


def _number(path: PathName, line: int, text: str) -> float:
    """Read a number of a file of reference runs; FileError if it is none."""
    try:
        value = float(text)
    except ValueError:
        value = math.inf
    if math.isinf(value) or "_" in text or not text.isascii():
        hint = "the third and fourth columns must be decimal numbers, or nan"
        refuse(path, line, f"{text!r} is not a number", hint)
    return value


Array = NDArray[Any]


class NothingShared(InputError):
    """No query is in both files (trec_eval's exit code: 7)."""

    exit_code = 7


@dataclass(frozen=True, eq=False)
class Scored:
    """Values of a run.

    - file: The run file as the user named it.
    - queries: In byte order.
    - values, (n_queries,): Column name to its value for every query; float64, or str for relstring.
    - summary: Column name to its value over all queries.
    - unanswered, unasked: Queries of the qrels that the run lacks, and of the run that the qrels
      lack.
    - is_zscored: The values are z-scores: all are floats, printed with a ``Z`` before their
      names.
    - missing: Number of values without the mean and deviation for a z-score.
    - remarks: Warnings about queries and documents, see `remarks_of`.
    - tied: How ties can change the requested measures of trec_eval.
    - intervals: Column name to the ends of the confidence interval of its mean; empty if none
      were requested.
    - resampling: How the intervals were made.
    - micro: Micro metrics as quotients of sums, if any are requested.
    - filtered: What a graph removed from the run, if one was given.
    """

    file: str
    queries: Sequence[str]
    values: Mapping[str, Array]
    summary: Mapping[str, float | int | str]
    unanswered: int
    unasked: int
    is_zscored: bool = False
    missing: int = 0
    remarks: Sequence[KgtrecWarning] = ()
    tied: TieEffect = NO_EFFECT
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    resampling: Resampling | None = None
    micro: Micro | None = None
    filtered: GraphFiltered | None = None


def score(request: Request, ahead: ReadAhead | None = None) -> list[Scored]:
    """Evaluate every run: values for every query, and over all of them."""
    request.check()
    runs = [read_run(run, request) for run in request.runs]
    judged = read_qrels(request)
    reference = None if request.zscores is None else read_reference(request.zscores)
    if ahead is not None:
        ahead.stop()
        if not (isinstance(judged, JudgedQueries) and ahead.has_read(judged.native)):
            ahead = None
    threads = max(1, available_cores() // len(runs))

    def task(run: RunRead) -> Callable[[Warn], Scored]:
        return partial(score_run, judged, run, request, reference, threads, ahead)

    return on_threads(available_cores(), [task(run) for run in runs])


def on_threads(threads: int, tasks: Sequence[Callable[[Warn], Scored]]) -> list[Scored]:
    """Run tasks, at most `threads` at a time, and return their results.

    Each task gets a function that receives its warnings. Errors and warnings are the same as if
    tasks ran one by one: tasks start in order, and those started before a failure finish. Warnings
    are emitted here, because only one thread may use Python's filters of warnings.
    """
    results: dict[int, Scored] = {}
    errors: dict[int, Exception] = {}
    notes: list[list[KgtrecWarning]] = [[] for _ in tasks]

    def score_task(index: int, _: int) -> None:
        try:
            results[index] = tasks[index](notes[index].append)
        except Exception as error:
            errors[index] = error
            raise

    try:
        share_rows(score_task, [(index, index + 1) for index in range(len(tasks))], threads)
    except Exception:
        if not errors:
            raise
    first = min(errors, default=len(tasks))
    for note in chain.from_iterable(notes[: first + 1]):
        warnings.warn(note, stacklevel=3)  # of score's caller
    if errors:
        raise errors[first]
    return [results[index] for index in range(len(tasks))]


class RunRead(NamedTuple):
    """Run with its name, and what a graph removed from it."""

    name: str
    data: PathName | RunData
    filtered: GraphFiltered | None = None


def read_run(run: Any, request: Request) -> RunRead:
    """Read a run, filtered if the request has questions; files without questions are read later."""
    questions = request.questions
    name = os.fspath(run) if is_path(run) else _name_for_messages(run)
    if is_path(run) and questions is None:
        return RunRead(name, run)
    from kgtrec.trec.files.convert import run_columns, run_data

    if questions is None:
        return RunRead(name, run_data(run))
    from kgtrec.trec.eval.kg_metrics import filter_by_graph

    filtered = filter_by_graph(run_columns(run, request.run_format), questions, name)
    return RunRead(name, filtered.run, filtered)


def read_qrels(request: Request) -> JudgedQueries | GroupJudgements:
    """Read the judgements of a request."""
    if request.is_grouped:
        from kgtrec.trec.measures.judgement_groups import read_groups

        return read_groups(request.qrels, request.qrels_format)
    if is_path(request.qrels):
        return read_judged_queries(
            request.qrels, form=request.qrels_format, comments=request.options.compat >= 10
        )
    from kgtrec.trec.files.convert import qrels_data

    return read_judged_queries(qrels_data(request.qrels))


def score_run(
    qrels: JudgedQueries | GroupJudgements,
    run: RunRead,
    request: Request,
    reference: Reference | None = None,
    threads: int | None = None,
    ahead: ReadAhead | None = None,
    warn: Warn = warnings.warn,
) -> Scored:
    """Evaluate one run by judgements that are already read; `warn` receives its warnings."""
    options = request.options
    if isinstance(qrels, JudgedQueries):
        groups, judged, cut = None, qrels, options.cut(request.depth)
    else:
        groups, judged, cut = qrels, qrels.judged, replace(options, judged_only=False).cut(None)
    lists = read_lists(
        judged,
        run.data,
        cut,
        absent=options.complete,
        threads=threads,
        ahead=ahead,
        form=request.run_format,
        comments=options.compat >= 10,
        warn=warn,
    )
    check_shared(judged, run.data, lists.match, options)
    if request.only is not None:
        if request.only not in lists.queries:
            raise NothingShared(
                f"{_name_for_messages(qrels.path)} and {_name_for_messages(run.data)} do not share "
                f"query {request.only!r}; choose a query that both have"
            )
        lists = some_queries(lists, np.array([lists.queries.index(request.only)]))
    return score_lists(lists, request, judged, groups, run, reference)


def score_lists(
    lists: Lists,
    request: Request,
    judged: JudgedQueries,
    groups: GroupJudgements | None = None,
    run: RunRead | None = None,
    reference: Reference | None = None,
) -> Scored:
    """Compute the request's measures for judged lists, which hold some of the queries."""
    columns, options, how = request.columns, request.options, request.resampling
    values = _values(groups, lists, request)
    counted, missing = _have_rows(options, lists), 0
    if reference is not None:
        numbers = {name: row for name, row in values.items() if name != "num_q"}
        zscores, missing = standardise(numbers, lists.queries, reference)
        values |= zscores
    total = summary(values, columns, options, lists)
    if reference is not None:
        total |= _sums(columns, values, counted, options)
    micro = _micro(lists, request) if request.micro else None
    if micro is not None:
        values, total = {**values, **micro.values()}, {**total, **micro.summary()}
    intervals = {} if how is None else _intervals(values, micro, columns, counted, how)
    queries = lists.queries
    if not counted.all():  # rows of absent queries, which count in the averages only
        there = np.flatnonzero(counted)
        queries = [queries[index] for index in there.tolist()]
        values = {name: row[there] for name, row in values.items()}
    return Scored(
        file=run.name if run else "",
        queries=queries,
        values=values,
        summary=total,
        unanswered=lists.unanswered,
        unasked=lists.unasked,
        is_zscored=reference is not None,
        missing=missing,
        remarks=_remarks(judged, lists, request, groups is not None),
        tied=_find_tie_effect(lists, columns, options, groups),
        intervals=intervals,
        resampling=how,
        micro=micro,
        filtered=run.filtered if run else None,
    )


def check_shared(
    judged: JudgedQueries, run: PathName | RunData, match: QueryMatch | None, options: EvalOptions
) -> None:
    """Raise NothingShared if qrels and run have no common query.

    With `complete`, a run without any query has values: all its queries retrieved nothing.
    """
    assert match is not None
    if len(match.numbers) or (options.complete and not match.n_run and len(judged)):
        return
    first = f"the first are {quote_name(judged.texts[0])} and {quote_name(match.foreign)}; " * bool(
        len(judged) and match.n_run
    )
    raise NothingShared(
        f"{_name_for_messages(judged.path)} and {_name_for_messages(run)} share no query; "
        f"{first}give qrels of the same queries"
    )


def _remarks(
    judged: JudgedQueries, lists: Lists, request: Request, is_grouped: bool
) -> Sequence[KgtrecWarning]:
    """Return warnings about the queries and documents, unless one query was selected."""
    if lists.match is None or request.only is not None:
        return ()
    return remarks_of(
        judged,
        lists.match,
        request.columns,
        request.options,
        command_line=request.command_line,
        is_grouped=is_grouped,
    )


def _values(groups: GroupJudgements | None, lists: Lists, request: Request) -> dict[str, Array]:
    """Compute the measures of queries, in the requested order of ties."""
    if groups is not None:
        from kgtrec.trec.measures.judgement_groups import group_values

        return group_values(groups, lists, request.columns, request.options)
    if request.ties is None:
        return values(lists, request.columns, request.options)
    from kgtrec.trec.measures.ties import values_over_ties

    return values_over_ties(lists, request.columns, request.options, ties=request.ties)


def _find_tie_effect(
    lists: Lists, columns: Sequence[Column], options: EvalOptions, groups: GroupJudgements | None
) -> TieEffect:
    """Measure the effect of ties, if there are any."""
    if not (lists.scores[1:] == lists.scores[:-1]).any():  # in single precision as of trec_eval 9
        return NO_EFFECT
    if groups is not None:
        from kgtrec.trec.measures.judgement_groups import groups_with_ties

        return TieEffect(groups_with_ties(groups, lists, columns, options))
    from kgtrec.trec.measures.ties import tie_effect

    return tie_effect(lists, columns, options)


def _sums(
    columns: Sequence[Column],
    zscores: Mapping[str, Array],
    counted: NDArray[np.bool_],
    options: EvalOptions,
) -> dict[str, float]:
    """Sum num_* in standard scores for the summary, as in trec_eval, except num_q."""
    sums = {}
    for column in columns:
        kept = column.measure == "num_q" or (column.measure == "num_rel" and options.complete)
        if column.is_count and not kept:
            sums[column.name] = float(np.cumsum(zscores[column.name][counted])[-1])
    return sums


def _micro(lists: Lists, request: Request) -> Micro:
    """Compute the measures of answers."""
    from kgtrec.trec.eval.kg_metrics import candidates_of, micro_values

    entities: int | NDArray[np.int64] | None = request.entities
    if request.questions is not None:  # per query, because a graph gives the known answers
        entities = candidates_of(request.questions, lists.queries)
    return micro_values(lists, request.micro, request.options, entities=entities, ties=request.ties)


def _intervals(
    values: Mapping[str, Array],
    micro: Micro | None,
    columns: Sequence[Column],
    counted: NDArray[np.bool_],
    how: Resampling,
) -> dict[str, tuple[float, float]]:
    """Compute confidence intervals of all means, but not of sums (num_*) and strings.

    Queries that are not counted are 0 in the averages. Quotients of sums over answers are also
    resampled by query.
    """
    from kgtrec._internal.bootstrap import ratio_intervals
    from kgtrec.trec.eval.kg_metrics import ratio_of

    means = [c for c in columns if not (c.is_count or c.is_text or c.is_query_only)]
    numerators: list[Array] = [
        np.where(counted, values[c.name], math.log(FLOOR) if c.is_geometric else 0.0) for c in means
    ]
    denominators: list[Array | None] = [None] * len(means)
    quotients = {} if micro is None else micro.parts
    numerators.extend(part for part, _ in quotients.values())
    denominators.extend(part for _, part in quotients.values())
    ends = ratio_intervals(numerators, denominators, how)
    for row, column in enumerate(means):
        ends[row] = column.of_mean(ends[row])
    for row, column in enumerate(quotients, len(means)):
        ends[row] = np.sort(ratio_of(column, ends[row], np.ones(2)))
    names = [column.name for column in (*means, *quotients)]
    return {name: (float(low), float(high)) for name, (low, high) in zip(names, ends, strict=True)}


def _have_rows(options: EvalOptions, lists: Lists) -> NDArray[np.bool_]:
    """Mark the queries that have a row: in trec_eval 9 only those that the run holds, even with
    -c."""
    return (lists.retrieved > 0) | (options.compat >= 10 or not options.complete)


def _name_for_messages(data: PathName | RunData) -> str:
    """Name qrels or a run: its file, standard input, or "the run"."""
    if not is_path(data):
        return "the run"
    return "standard input" if os.fspath(data) == "-" else os.fspath(data)
