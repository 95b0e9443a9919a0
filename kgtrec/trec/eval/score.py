"""A run scored against qrels: read, valued, summarised, and standardised if asked."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kgtrec.errors import InputError
from kgtrec.trec.eval.beyond import Beyond, intervals
from kgtrec.trec.files.text import PathName, is_path
from kgtrec.trec.measures.judge import Judgements, read_judgements, read_lists
from kgtrec.trec.measures.judged_lists import Lists
from kgtrec.trec.measures.names import Column, depth_needed
from kgtrec.trec.measures.options import EvalOptions
from kgtrec.trec.measures.pytrec_eval import can_supply
from kgtrec.trec.measures.values import Values, summary, values

if TYPE_CHECKING:
    from kgtrec._internal.bootstrap import Resampling
    from kgtrec.trec.eval.kg_metrics import Micro
    from kgtrec.trec.eval.zscores import Reference
    from kgtrec.trec.files.pack import RunData

__all__ = ["Judgements", "NothingShared", "Scored", "read_judgements", "score"]

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


def score(
    qrels: Judgements,
    run: PathName | RunData,
    columns: Sequence[Column],
    options: EvalOptions | None = None,
    *,
    reference: Reference | None = None,
    only: str | None = None,
    beyond: Beyond | None = None,
) -> Scored:
    """Values of a run for every query and over all of them.

    Parameters
    ----------
    qrels : Judgements
        From `read_judgements`.
    run : str, path-like, RunColumns or mapping
        The file; ``-`` is standard input. Or the run itself: columns, or query, then document, to
        its score.
    columns : sequence of Column
        From `kgtrec.trec.measures.names.resolve`.
    options : EvalOptions, optional
        trec_eval's defaults if not given.
    reference : Reference, optional
        Makes the values z-scores; from `kgtrec.trec.eval.zscores.read_reference`.
    only : str, optional
        A query: all others are left out.
    beyond : Beyond, optional
        Values under ties, micro metrics and confidence intervals.

    Returns
    -------
    Scored

    Raises
    ------
    FileError
        A file cannot be read or is malformed; `DuplicateDocument` where a document comes twice.
    NothingShared
        No query is in both files, or `only` is not.
    """
    options, beyond = options or EvalOptions(), beyond or Beyond()
    beyond.check(columns, options, reference is not None)
    lists = _lists(qrels, run, None if beyond.micro else depth_needed(columns), options)
    shared = len(lists) - (lists.unanswered if options.complete else 0)
    if not shared:
        raise NothingShared(
            f"{_named(qrels.path)} and {_named(run)} share no query; give the qrels of the same "
            "questions"
        )
    if only is not None:
        lists = _one(lists, only, f"{_named(qrels.path)} and {_named(run)}")
    if beyond.ties is None:
        found = values(lists, columns, options)
    else:
        from kgtrec.trec.measures.ties import tied_values

        found = tied_values(lists, columns, options, ties=beyond.ties)
    scored = Scored(
        file=os.fspath(run) if is_path(run) else _named(run),
        queries=lists.queries,
        values=found,
        summary=summary(found, columns, options, lists),
        n_asked=shared + lists.unanswered,
        n_answered=shared + lists.unasked,
        unanswered=lists.unanswered,
        unasked=lists.unasked,
        from_pytrec_eval=_from_pytrec_eval(columns, options, found, beyond),
        for_size=found.native,
        tied=_tied(lists, columns, options),
    )
    if reference is not None:
        scored = _standardised(scored, columns, options, lists, reference)
    scored = _extended(scored, columns, options, lists, beyond)
    return _without_absent(scored, options, lists)


def _tied(lists: Lists, columns: Sequence[Column], options: EvalOptions) -> int:
    """Queries with ties that could change a column."""
    if not (lists.scores[1:] == lists.scores[:-1]).any():  # in single precision as of trec_eval 9
        return 0
    from kgtrec.trec.measures.tiecount import queries_with_ties

    return queries_with_ties(lists, columns, options)


def _lists(
    qrels: Judgements, run: PathName | RunData, depth: int | None, options: EvalOptions
) -> Lists:
    """The run to a depth, None for all of it, and what ties with the last document there."""
    # -M is left to the measures, which must know the whole of a tie group that it cuts; and -J,
    # which comes after it, too.
    judged_only = options.judged_only and options.most is None
    if options.most is not None:
        depth = options.most if depth is None or options.judged_only else min(depth, options.most)
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


def _from_pytrec_eval(
    columns: Sequence[Column], options: EvalOptions, found: Values, beyond: Beyond
) -> tuple[str, ...]:
    if beyond.ties == "expected":
        return ()
    able = (column for column in columns if column.name in found and can_supply(column, options))
    return tuple(column.name for column in able if column.name not in found.native)


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
    found, missing = standardise(numbers, scored.queries, reference)
    rows: dict[str, Array] = {name: found.get(name, row) for name, row in scored.values.items()}
    total = summary(rows, columns, options, lists)
    there = np.flatnonzero(_counted(options, lists))
    for column in columns:
        counted = column.family == "num_q" or (column.family == "num_rel" and options.complete)
        if column.is_count and not counted:
            total[column.name] = float(np.cumsum(rows[column.name][there])[-1])
    return replace(scored, values=rows, summary=total, is_zscored=True, missing=missing)


def _extended(
    scored: Scored,
    columns: Sequence[Column],
    options: EvalOptions,
    lists: Lists,
    beyond: Beyond,
) -> Scored:
    """With micro metrics and intervals, where they are asked for."""
    micro = None
    if beyond.micro:
        from kgtrec.trec.eval.kg_metrics import micro_values

        micro = micro_values(
            lists, beyond.micro, options, entities=beyond.entities, ties=beyond.ties
        )
        scored = replace(
            scored,
            values={**scored.values, **micro.values()},
            summary={**scored.summary, **micro.summary()},
            answers=int(micro.answers.sum()),
            missing_answers=int(micro.missing.sum()),
            micro=micro,
        )
    if beyond.resampling is None:
        return scored
    counted = _counted(options, lists)
    ends = intervals(scored.values, columns, counted, micro, beyond.resampling)
    return replace(scored, intervals=ends, resampling=beyond.resampling)


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
