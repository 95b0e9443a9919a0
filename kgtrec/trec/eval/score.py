"""A request carried out: runs and qrels read, valued, summarised, and standardised if asked."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kgtrec.errors import InputError
from kgtrec.trec.eval.request import Request
from kgtrec.trec.files.text import PathName, is_path
from kgtrec.trec.measures.binary import FLOOR
from kgtrec.trec.measures.judge import Judgements, read_judgements, read_lists
from kgtrec.trec.measures.judged_lists import Lists
from kgtrec.trec.measures.names import Column, depth_needed
from kgtrec.trec.measures.options import EvalOptions
from kgtrec.trec.measures.pytrec_eval import can_supply
from kgtrec.trec.measures.values import Values, summary, values

if TYPE_CHECKING:
    from kgtrec._internal.bootstrap import Resampling
    from kgtrec.questions.questions import QuestionData
    from kgtrec.trec.eval.graph_filter import GraphFiltered
    from kgtrec.trec.eval.kg_metrics import Micro
    from kgtrec.trec.eval.zscores import Reference
    from kgtrec.trec.files.pack import RunData
    from kgtrec.trec.measures.judgement_groups import GroupJudgements

__all__ = ["NothingShared", "Scored", "score"]

Array = NDArray[Any]


class NothingShared(InputError):
    """No query is in both files (trec_eval's exit code: 7)."""

    exit_code = 7


@dataclass(frozen=True, eq=False)
class Scored:
    """What a run is worth.

    Attributes
    ----------
    file : str
        The run file as the user named it.
    queries : sequence of str, length n_queries
        In byte order.
    values : mapping of str to ndarray, shape (n_queries,)
        Column name to its value for every query; float64, or str for relstring.
    summary : mapping of str to float, int or str
        Column name to its value over all queries.
    n_asked, n_answered : int
        Queries of the qrels, and of the run.
    unanswered, unasked : int
        Queries of the qrels that the run does not hold, and of the run that the qrels do not.
    from_pytrec_eval : tuple of str
        Columns that pytrec_eval computed; kgtrec computed the others.
    for_size : tuple of str
        Columns that pytrec_eval has, but kgtrec computed for the size of the lists.
    is_zscored : bool
        The values are z-scores: all of them floats, printed with a ``Z`` before their names.
    missing : int
        Values without a mean and deviation to make a z-score of.
    tied : int
        Queries with ties that could change the measures of trec_eval among those asked for.
    answers, missing_answers : int
        For micro metrics: answers, and those of them that the run does not hold.
    intervals : mapping of str to (float, float)
        Column name to the ends of the confidence interval of its mean; empty if none were asked.
    resampling : Resampling, optional
        How the intervals were made.
    micro : Micro, optional
        Micro metrics as quotients of sums, if any are asked for.
    filtered : GraphFiltered, optional
        What a graph has taken out of the run, if one was given.
    """

    file: str
    queries: Sequence[str]
    values: Mapping[str, Array]
    summary: Mapping[str, float | int | str]
    n_asked: int
    n_answered: int
    unanswered: int
    unasked: int
    from_pytrec_eval: tuple[str, ...] = ()
    for_size: tuple[str, ...] = ()
    is_zscored: bool = False
    missing: int = 0
    tied: int = 0
    answers: int = 0
    missing_answers: int = 0
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    resampling: Resampling | None = None
    micro: Micro | None = None
    filtered: GraphFiltered | None = None


def score(request: Request) -> list[Scored]:
    """Values of every run for every query, and over all of them.

    Parameters
    ----------
    request : Request

    Returns
    -------
    list of Scored
        In the order of the runs.

    Raises
    ------
    UsageError
        What is asked for cannot be done.
    FileError
        A file cannot be read or is malformed; `DuplicateDocument` where a document comes twice.
    NothingShared
        No query is in both files, or the one that is asked for is not.
    """
    request.check()
    runs = [_read_run(run, request.questions) for run in request.runs]
    judged = _judged(request)
    reference = None
    if request.zscores is not None:
        from kgtrec.trec.eval.zscores import read_reference

        reference = read_reference(request.zscores)
    return [_scored(judged, run, request, reference) for run in runs]


class _Run(NamedTuple):
    """A run, what it is called, and what a graph has taken out of it."""

    name: str
    data: PathName | RunData
    filtered: GraphFiltered | None = None


def _read_run(run: Any, questions: QuestionData | None) -> _Run:
    name = os.fspath(run) if is_path(run) else _named(run)
    if is_path(run) and questions is None:
        return _Run(name, run)
    from kgtrec.trec.files.convert import run_columns, run_data

    if questions is None:
        return _Run(name, run_data(run))
    from kgtrec.trec.eval.graph_filter import filtered_by_graph

    filtered = filtered_by_graph(run_columns(run), questions, name)
    return _Run(name, filtered.run, filtered)


def _judged(request: Request) -> Judgements | GroupJudgements:
    if request.qrels_format != "qrels":
        from kgtrec.trec.measures.judgement_groups import read_groups

        return read_groups(request.qrels, request.qrels_format)
    if is_path(request.qrels):
        return read_judgements(request.qrels)
    from kgtrec.trec.files.convert import qrels_data

    return read_judgements(qrels_data(request.qrels))


def _scored(
    qrels: Judgements | GroupJudgements,
    run: _Run,
    request: Request,
    reference: Reference | None,
) -> Scored:
    data = run.data
    columns, options = request.columns, request.options
    groups = None if isinstance(qrels, Judgements) else qrels
    if isinstance(qrels, Judgements):
        lists = _lists(qrels, data, None if request.micro else depth_needed(columns), options)
    else:
        lists = _lists(qrels.judged, data, None, replace(options, judged_only=False))
    shared = len(lists) - (lists.unanswered if options.complete else 0)
    if not shared:
        raise NothingShared(
            f"{_named(qrels.path)} and {_named(data)} share no query; give the qrels of the same "
            "questions"
        )
    if request.only is not None:
        lists = _one(lists, request.only, f"{_named(qrels.path)} and {_named(data)}")
    values = _values(groups, lists, request)
    scored = Scored(
        file=run.name,
        queries=lists.queries,
        values=values,
        summary=summary(values, columns, options, lists),
        n_asked=shared + lists.unanswered,
        n_answered=shared + lists.unasked,
        unanswered=lists.unanswered,
        unasked=lists.unasked,
        from_pytrec_eval=_from_pytrec_eval(values, request),
        for_size=values.native,
        tied=_tied(lists, columns, options, groups),
        filtered=run.filtered,
    )
    if reference is not None:
        scored = _standardised(scored, columns, options, lists, reference)
    return _without_absent(_extended(scored, request, lists), options, lists)


def _values(groups: GroupJudgements | None, lists: Lists, request: Request) -> Values:
    if groups is not None:
        from kgtrec.trec.measures.judgement_groups import group_values

        return group_values(groups, lists, request.columns, request.options)
    if request.ties is None:
        return values(lists, request.columns, request.options)
    from kgtrec.trec.measures.ties import tied_values

    return tied_values(lists, request.columns, request.options, ties=request.ties)


def _tied(
    lists: Lists, columns: Sequence[Column], options: EvalOptions, groups: GroupJudgements | None
) -> int:
    """Queries with ties that could change a column."""
    if not (lists.scores[1:] == lists.scores[:-1]).any():  # in single precision as of trec_eval 9
        return 0
    if groups is not None:
        from kgtrec.trec.measures.judgement_groups import groups_with_ties

        return groups_with_ties(groups, lists, columns, options)
    from kgtrec.trec.measures.ties import queries_with_ties

    return queries_with_ties(lists, columns, options)


def _lists(
    qrels: Judgements, run: PathName | RunData, depth: int | None, options: EvalOptions
) -> Lists:
    """The run to a depth, None for all of it, and what ties with the last document there."""
    # -M is left to the measures, which must know the whole of a tie group that it cuts; and -J,
    # which comes after it, too. So is -J where a list that it empties must not pass for an absent
    # one: see `_counted`.
    is_later = options.most is not None or (options.complete and options.compat < 10)
    judged_only = options.judged_only and not is_later
    if options.judged_only and is_later:
        depth = options.most
    elif options.most is not None:
        depth = options.most if depth is None else min(depth, options.most)
    return read_lists(
        qrels,
        run,
        depth=depth,
        keep_ties=True,
        judged_only=judged_only,
        single=options.compat < 10,
        absent=options.complete,
    )


def _one(lists: Lists, query: str, files: str) -> Lists:
    """The lists of one query."""
    if query not in lists.queries:
        raise NothingShared(f"{files} do not share query {query!r}; name one that both have")
    place = lists.queries.index(query)
    documents = slice(lists.offsets[place], lists.offsets[place + 1])
    judgements = slice(lists.judged_offsets[place], lists.judged_offsets[place + 1])
    return replace(
        lists,
        queries=[query],
        offsets=lists.offsets[place : place + 2] - documents.start,
        relevance=lists.relevance[documents],
        scores=lists.scores[documents],
        retrieved=lists.retrieved[place : place + 1],
        judged_offsets=lists.judged_offsets[place : place + 2] - judgements.start,
        judged=lists.judged[judgements],
    )


def _from_pytrec_eval(values: Values, request: Request) -> tuple[str, ...]:
    if request.ties == "expected":
        return ()
    own = request.options
    able = (column.name for column in request.columns if can_supply(column, own))
    return tuple(name for name in able if name in values and name not in values.native)


def _standardised(
    scored: Scored,
    columns: Sequence[Column],
    options: EvalOptions,
    lists: Lists,
    reference: Reference,
) -> Scored:
    """The same in standard scores: num_* are sums of them, and num_q stays what it is."""
    from kgtrec.trec.eval.zscores import standardise

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
    """With micro metrics and intervals, where they are asked for."""
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
    """Entities that may stand in a list; of each query's where a graph says what is known."""
    if request.questions is None:
        return request.entities
    from kgtrec.trec.eval.graph_filter import candidates_of

    return candidates_of(request.questions, lists.queries)


def _intervals(
    scored: Scored, columns: Sequence[Column], counted: NDArray[np.bool_], how: Resampling
) -> dict[str, tuple[float, float]]:
    """Ends of the confidence intervals of all means; sums of num_* and strings have none.

    Queries that are not counted are 0 in the averages. Quotients of sums over answers are
    resampled by query, too.
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
    """Without rows of absent queries where they count in the averages only."""
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
    """Queries that have a row: in trec_eval 9 those that the run holds, also with -c."""
    return (lists.retrieved > 0) | (options.compat >= 10 or not options.complete)


def _named(data: PathName | RunData) -> str:
    if not is_path(data):
        return "the run"
    return "standard input" if os.fspath(data) == "-" else os.fspath(data)
