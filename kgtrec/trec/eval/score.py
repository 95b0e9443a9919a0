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
from _thread import get_ident
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kgtrec._internal.runtime import available_cores, share_rows
from kgtrec.errors import FileError, InputError
from kgtrec.trec.eval.request import Request
from kgtrec.trec.files.text import PathName, ReadAhead, is_path
from kgtrec.trec.measures.family import EvalOptions
from kgtrec.trec.measures.judge import JudgedQueries, read_judgements, read_lists
from kgtrec.trec.measures.names import Column
from kgtrec.trec.measures.own import FLOOR
from kgtrec.trec.measures.relevant import NO_EFFECT, Lists, TieEffect, some_queries
from kgtrec.trec.measures.values import summary, values

if TYPE_CHECKING:
    from kgtrec._internal.bootstrap import Resampling
    from kgtrec.questions.questions import Questions
    from kgtrec.trec.eval.kg_metrics import GraphFiltered, Micro
    from kgtrec.trec.files.columns import RunData
    from kgtrec.trec.measures.judgement_groups import GroupJudgements

MISSING = -1_000_000.0
"""trec_eval's value for a missing standard score; it enters the averages like any other."""

Reference = dict[str, dict[str, tuple[float, float]]]
"""Query, then measure, to mean and standard deviation."""

_COLUMNS = "query measure mean deviation"


def read_reference(path: str | os.PathLike[str]) -> Reference:
    """Means and standard deviations of reference runs."""
    from kgtrec.graph.id_files import lines_of, text_of

    reference: Reference = {}
    for number, line in lines_of(path):
        fields = line.split()
        if len(fields) != 4:
            problem = f"{len(fields)} columns in {text_of(line)!r}" if fields else "a blank line"
            raise FileError(path, number, found=problem, hint=f"a line must have 4: {_COLUMNS}")
        query, measure = text_of(fields[0]), text_of(fields[1])
        mean, deviation = (_number(path, number, text) for text in fields[2:])
        if deviation < 0:
            hint = "the fourth column must be 0 or more"
            raise FileError(path, number, found=f"deviation {text_of(fields[3])!r}", hint=hint)
        measures = reference.setdefault(query, {})
        if measure in measures:
            problem = f"query {query!r} has measure {measure!r} twice"
            raise FileError(path, number, found=problem, hint="keep one of the two lines")
        measures[measure] = mean, deviation
    if not reference:
        raise FileError(path, found="it contains no lines", hint=f"give lines of {_COLUMNS!r}")
    return reference


def standardise(
    values: Mapping[str, NDArray[Any]], queries: Sequence[str], reference: Reference
) -> tuple[dict[str, NDArray[Any]], int]:
    """Standard scores of all values that are numbers; strings stay as they are.

    Shapes: values (n_queries,) -> scores float64 (n_queries,).
    """
    nothing: dict[str, tuple[float, float]] = {}
    rows = [reference.get(query, nothing) for query in queries]
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


def _number(path: str | os.PathLike[str], line: int, text: bytes) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.inf
    if math.isinf(value) or b"_" in text:
        from kgtrec.graph.id_files import text_of

        hint = "the third and fourth columns must be decimal numbers, or nan"
        raise FileError(path, line, found=f"{text_of(text)!r} is not a number", hint=hint)
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
    - n_asked, n_answered: Number of queries of the qrels, and of the run.
    - unanswered, unasked: Queries of the qrels that the run lacks, and of the run that the qrels
      lack.
    - is_zscored: The values are z-scores: all are floats, printed with a ``Z`` before their
      names.
    - missing: Number of values without the mean and deviation for a z-score.
    - tied: How ties can change the requested measures of trec_eval.
    - answers, missing_answers: For micro metrics: number of answers, and how many of them the run
      lacks.
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
    n_asked: int
    n_answered: int
    unanswered: int
    unasked: int
    is_zscored: bool = False
    missing: int = 0
    tied: TieEffect = NO_EFFECT
    answers: int = 0
    missing_answers: int = 0
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    resampling: Resampling | None = None
    micro: Micro | None = None
    filtered: GraphFiltered | None = None


def score(request: Request, ahead: ReadAhead | None = None) -> list[Scored]:
    """Values of every run for every query, and over all of them."""
    request.check()
    runs = [read_run(run, request.questions) for run in request.runs]
    judged = read_qrels(request)
    reference = None
    if request.zscores is not None:
        reference = read_reference(request.zscores)
    if ahead is not None:
        ahead.stop()
        if not (isinstance(judged, JudgedQueries) and ahead.has_read(judged.native)):
            ahead = None
    threads = max(1, available_cores() // len(runs))
    tasks = [partial(_scored, judged, run, request, reference, threads, ahead) for run in runs]
    return on_threads(available_cores(), tasks)


def on_threads(threads: int, tasks: Sequence[Callable[[], Scored]]) -> list[Scored]:
    """Results of tasks, at most `threads` of which run at a time.

    Errors and warnings are the same as if tasks ran one by one: tasks start in order, and those
    started before a failure finish.
    """
    if len(tasks) == 1:
        return [tasks[0]()]
    results: dict[int, Scored] = {}
    errors: dict[int, Exception] = {}
    at_work: dict[int, int] = {}
    shown: list[tuple[int, tuple[Any, ...]]] = []

    def do(place: int, _: int) -> None:
        at_work[get_ident()] = place
        try:
            results[place] = tasks[place]()
        except Exception as error:
            errors[place] = error
            raise

    with warnings.catch_warnings():
        warnings.showwarning = lambda *said: shown.append((at_work.get(get_ident(), 0), said[:4]))
        try:
            share_rows(do, [(place, place + 1) for place in range(len(tasks))], threads)
        except Exception:
            if not errors:
                raise
    first = min(errors, default=len(tasks))
    for place, warning in sorted(shown, key=itemgetter(0)):
        if place <= first:
            warnings.showwarning(*warning)
    if errors:
        raise errors[first]
    return [results[place] for place in range(len(tasks))]


def score_run(judged: JudgedQueries | GroupJudgements, run: Any, request: Request) -> Scored:
    """Values of one run for judgements that are already read."""
    return _scored(judged, read_run(run, request.questions), request, None)


class RunRead(NamedTuple):
    """A run, its name, and what a graph removed from it."""

    name: str
    data: PathName | RunData
    filtered: GraphFiltered | None = None


def read_run(run: Any, questions: Questions | None) -> RunRead:
    name = os.fspath(run) if is_path(run) else _named(run)
    if is_path(run) and questions is None:
        return RunRead(name, run)
    from kgtrec.trec.files.convert import run_columns, run_data

    if questions is None:
        return RunRead(name, run_data(run))
    from kgtrec.trec.eval.kg_metrics import filtered_by_graph

    filtered = filtered_by_graph(run_columns(run), questions, name)
    return RunRead(name, filtered.run, filtered)


def read_qrels(request: Request) -> JudgedQueries | GroupJudgements:
    """The judgements of a request."""
    if request.qrels_format != "qrels":
        from kgtrec.trec.measures.judgement_groups import read_groups

        return read_groups(request.qrels, request.qrels_format)
    if is_path(request.qrels):
        return read_judgements(request.qrels)
    from kgtrec.trec.files.convert import qrels_data

    return read_judgements(qrels_data(request.qrels))


def _scored(
    qrels: JudgedQueries | GroupJudgements,
    run: RunRead,
    request: Request,
    reference: Reference | None,
    threads: int | None = None,
    ahead: ReadAhead | None = None,
) -> Scored:
    data = run.data
    columns, options = request.columns, request.options
    groups = None if isinstance(qrels, JudgedQueries) else qrels
    if isinstance(qrels, JudgedQueries):
        lists = list_run(qrels, data, request.depth, options, threads, ahead)
    else:
        lists = list_run(qrels.judged, data, None, replace(options, judged_only=False), threads)
    if lists.unanswered == len(qrels):
        raise nothing_shared(qrels.path, data)
    if request.only is not None:
        lists = _one(lists, request.only, f"{_named(qrels.path)} and {_named(data)}")
    scored = _valued(lists, request, len(qrels), groups, run.name, run.filtered)
    if reference is not None:
        scored = _standardised(scored, columns, options, lists, reference)
    return _without_absent(_extended(scored, request, lists), options, lists)


def scored_lists(lists: Lists, request: Request) -> Scored:
    """Values of the request's measures for lists; each query is in both the qrels and the run."""
    return _extended(_valued(lists, request, len(lists)), request, lists)


def nothing_shared(qrels: PathName, run: PathName | RunData) -> NothingShared:
    """The error for qrels and run without a common query."""
    return NothingShared(
        f"{_named(qrels)} and {_named(run)} share no query; give qrels of the same queries"
    )


def _valued(
    lists: Lists,
    request: Request,
    n_asked: int,
    groups: GroupJudgements | None = None,
    file: str = "",
    filtered: GraphFiltered | None = None,
) -> Scored:
    """Values of judged lists, which hold some of `n_asked` queries."""
    columns, options = request.columns, request.options
    values = _values(groups, lists, request)
    return Scored(
        file=file,
        queries=lists.queries,
        values=values,
        summary=summary(values, columns, options, lists),
        n_asked=n_asked,
        n_answered=n_asked - lists.unanswered + lists.unasked,
        unanswered=lists.unanswered,
        unasked=lists.unasked,
        tied=_tied(lists, columns, options, groups),
        filtered=filtered,
    )


def _values(groups: GroupJudgements | None, lists: Lists, request: Request) -> dict[str, Array]:
    if groups is not None:
        from kgtrec.trec.measures.judgement_groups import group_values

        return group_values(groups, lists, request.columns, request.options)
    if request.ties is None:
        return values(lists, request.columns, request.options)
    from kgtrec.trec.measures.ties import tied_values

    return tied_values(lists, request.columns, request.options, ties=request.ties)


def _tied(
    lists: Lists, columns: Sequence[Column], options: EvalOptions, groups: GroupJudgements | None
) -> TieEffect:
    if not (lists.scores[1:] == lists.scores[:-1]).any():  # in single precision as of trec_eval 9
        return NO_EFFECT
    if groups is not None:
        from kgtrec.trec.measures.judgement_groups import groups_with_ties

        return TieEffect(groups_with_ties(groups, lists, columns, options))
    from kgtrec.trec.measures.ties import tie_effect

    return tie_effect(lists, columns, options)


def list_run(
    qrels: JudgedQueries,
    run: PathName | RunData,
    depth: int | None,
    options: EvalOptions,
    threads: int | None = None,
    ahead: ReadAhead | None = None,
) -> Lists:
    """The run to a depth; see `EvalOptions.cut`."""
    cut = options.cut(depth)._asdict()
    return read_lists(qrels, run, **cut, absent=options.complete, threads=threads, ahead=ahead)


def _one(lists: Lists, query: str, files: str) -> Lists:
    """The lists of one query."""
    if query not in lists.queries:
        raise NothingShared(f"{files} do not share query {query!r}; choose a query that both have")
    return some_queries(lists, np.array([lists.queries.index(query)]))


def _standardised(
    scored: Scored,
    columns: Sequence[Column],
    options: EvalOptions,
    lists: Lists,
    reference: Reference,
) -> Scored:
    """The same in standard scores: num_* are sums of scores, and num_q is unchanged."""

    numbers = {name: row for name, row in scored.values.items() if name != "num_q"}
    zscores, missing = standardise(numbers, scored.queries, reference)
    rows: dict[str, Array] = {name: zscores.get(name, row) for name, row in scored.values.items()}
    total = summary(rows, columns, options, lists)
    there = np.flatnonzero(_counted(options, lists))
    for column in columns:
        counted = column.family == "num_q" or (column.family == "num_rel" and options.complete)
        if column.is_count and not counted:
            total[column.name] = float(np.cumsum(rows[column.name][there])[-1])
    return replace(scored, values=rows, summary=total, is_zscored=True, missing=missing)


def _extended(scored: Scored, request: Request, lists: Lists) -> Scored:
    """Add micro metrics and intervals if they are requested."""
    micro, options = None, request.options
    if request.micro:
        from kgtrec.trec.eval.kg_metrics import micro_values

        entities = _entities(request, lists)
        micro = micro_values(lists, request.micro, options, entities=entities, ties=request.ties)
        scored = replace(
            scored,
            values={**scored.values, **micro.values()},
            summary={**scored.summary, **micro.summary()},
            answers=int(micro.answers.sum()),
            missing_answers=int(micro.missing.sum()),
            micro=micro,
        )
    if request.resampling is None:
        return scored
    ends = _intervals(scored, request.columns, _counted(options, lists), request.resampling)
    return replace(scored, intervals=ends, resampling=request.resampling)


def _entities(request: Request, lists: Lists) -> int | NDArray[np.int64] | None:
    """Number of entities that a list may hold; per query if a graph gives the known answers."""
    if request.questions is None:
        return request.entities
    from kgtrec.trec.eval.kg_metrics import candidates_of

    return candidates_of(request.questions, lists.queries)


def _intervals(
    scored: Scored, columns: Sequence[Column], counted: NDArray[np.bool_], how: Resampling
) -> dict[str, tuple[float, float]]:
    """Ends of the confidence intervals of all means, but not of sums (num_*) and strings.

    Queries that are not counted are 0 in the averages. Quotients of sums over answers are also
    resampled by query.
    """
    from kgtrec._internal.bootstrap import ratio_intervals
    from kgtrec.trec.eval.kg_metrics import finished

    means = [c for c in columns if not (c.is_count or c.is_text or c.is_query_only)]
    numerators: list[Array] = [
        np.where(counted, scored.values[c.name], math.log(FLOOR) if c.is_geometric else 0.0)
        for c in means
    ]
    denominators: list[Array | None] = [None] * len(means)
    quotients = {} if scored.micro is None else scored.micro.parts
    numerators.extend(part for part, _ in quotients.values())
    denominators.extend(part for _, part in quotients.values())
    ends = ratio_intervals(numerators, denominators, how)
    for row, column in enumerate(means):
        if column.is_geometric:
            ends[row] = np.exp(ends[row])
    for row, name in enumerate(quotients, len(means)):
        ends[row] = np.sort(finished(name, ends[row], np.ones(2)))
    names = [*(column.name for column in means), *quotients]
    return {name: (float(low), float(high)) for name, (low, high) in zip(names, ends, strict=True)}


def _without_absent(scored: Scored, options: EvalOptions, lists: Lists) -> Scored:
    """Drop rows of absent queries if they count in the averages only."""
    counted = _counted(options, lists)
    if counted.all():
        return scored
    there = np.flatnonzero(counted)
    return replace(
        scored,
        queries=[scored.queries[place] for place in there.tolist()],
        values={name: row[there] for name, row in scored.values.items()},
    )


def _counted(options: EvalOptions, lists: Lists) -> NDArray[np.bool_]:
    """Which queries have a row: in trec_eval 9 only those that the run holds, even with -c."""
    return (lists.retrieved > 0) | (options.compat >= 10 or not options.complete)


def _named(data: PathName | RunData) -> str:
    if not is_path(data):
        return "the run"
    return "standard input" if os.fspath(data) == "-" else os.fspath(data)
