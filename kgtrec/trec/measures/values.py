"""Values of measures per query and for all queries, from judged lists or ordinal ranks."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kgtrec._internal.argument_names import argument
from kgtrec._internal.arrays import Float64
from kgtrec.errors import InputError, UsageError
from kgtrec.trec.measures.formulas import FLOOR, compute_values
from kgtrec.trec.measures.names import Column, resolve
from kgtrec.trec.measures.own_settings import by_setting
from kgtrec.trec.measures.relevant import (
    UNJUDGED,
    Lists,
    View,
    lists_of_judged,
    narrow_lists,
    parts,
)
from kgtrec.trec.measures.trec_measure import EvalOptions

if TYPE_CHECKING:
    from kgtrec.ranking.ranks import Ranks

Array = NDArray[Any]

_PART_DOCUMENTS = 4_000_000


def values(
    lists: Lists, columns: Sequence[Column], options: EvalOptions | None = None
) -> dict[str, Array]:
    """Compute measures for every query: strings for relstring, else float64."""
    options = options or EvalOptions()
    columns = [column for column in columns if column.measure != "runid"]
    if any(column.has_setting for column in columns):
        computed: dict[str, Array] = {}
        for changed, with_setting, group, plain in by_setting(lists, columns, options):
            rows = values(changed, plain, with_setting)
            computed |= {c.name: rows[p.name] for c, p in zip(group, plain, strict=True)}
        return {column.name: computed[column.name] for column in columns}
    lists = narrow_lists(lists, options)
    pieces = [
        compute_values(View(part, options), columns) for _, _, part in parts(lists, _PART_DOCUMENTS)
    ]
    names = [column.name for column in columns]
    return {name: np.concatenate([p[name] for p in pieces] or [np.zeros(0)]) for name in names}


def summary(
    values: Mapping[str, Array],
    columns: Sequence[Column],
    options: EvalOptions | None = None,
    lists: Lists | None = None,
) -> dict[str, float | int | str]:
    """Compute the row ``all``: sums of num_*, geometric means of gm_*, the run's name, else
    means.

    The name, and averages over all queries of the qrels, need the lists.

    Shapes: values (n_queries,).
    """
    options = options or EvalOptions()
    shown = [column for column in columns if not column.is_query_only]
    absent = None
    if lists is not None and options.complete and options.compat < 10:
        absent = lists.retrieved == 0  # in the run: -M and -J may have emptied other lists
    row: dict[str, float | int | str] = {}
    for column in shown:
        if column.measure == "runid" and lists is not None:
            row["runid"] = lists.tag
        elif column.name == "num_rel" and lists is not None and options.complete:
            row["num_rel"] = int((lists.judged > 0).sum())  # at any level, as in trec_eval
        else:
            row[column.name] = _summarise(column, values[column.name], absent)
    return row


def _summarise(column: Column, values: Array, absent: NDArray[np.bool_] | None) -> float | int:
    """Compute the summary of one measure; `absent` marks queries that the run lacks."""
    if not len(values):
        raise InputError("there is no query to average over; give a run and qrels that share some")
    if column.measure == "num_q":
        return len(values)
    terms = values.astype(np.float64)
    floored = 0
    if absent is not None:  # trec_eval 9: they only add to the number of queries
        terms = np.where(absent, 0.0, terms)
        floored = int(absent.sum()) if column.is_geometric else 0
    # cumsum adds one after the other, as trec_eval does: the same bits, hence the same digits.
    total = float(np.cumsum(terms)[-1]) + floored * math.log(FLOOR)
    if column.is_count:
        return int(total)
    value: float = column.of_mean(total / len(values))
    return value


def follows_from_ranks(column: Column) -> bool:
    """Return whether a measure looks only at the answers' ranks, grades and counts."""
    row = column.row
    known = row.format in ("qrels", "any") and row.output != "string" and not column.has_setting
    return known and all(level >= 0 for level, _ in column.gains)


def native_values(
    ranks: Ranks, measures: Sequence[str], level: int | None = None
) -> dict[str, Float64]:
    """Compute measures of every question from the ordinal ranks of its answers.

    The rank of an answer is ``macro_greater + 1 + macro_tied_ahead``: its place in a run of
    unlimited depth, which retrieves all candidates. The same functions compute from runs;
    `check_agreement` compares them with pytrec_eval. Candidates that are not answers count as not
    judged, as in qrels of the answers alone: bpref is then the share of answers with a score.

    Parameters
    ----------
    ranks : Ranks
        All answers of every question in it; rows may have any order.
    measures : sequence of str
        As in `kgtrec.trec.measures.names.resolve`: all of qrels except runid, relstring, and gains
        of documents without a judgement (level -1 or -2).
    level : int, optional
        Grade from which an answer is relevant, as -l of trec_eval; answers below it are judged and
        not relevant. By default all answers are relevant. Questions from qrels at level 0 or below
        hold judged non-relevant documents, too; ``level=1`` then gives bpref of the whole qrels.

    Returns
    -------
    dict of str to ndarray of float64, shape (n_questions,)
        By trec_eval's name, questions ascending: ``numpy.unique(ranks.question)``.
        Answers without a score (``ranks.macro_answer_nan``) count as not retrieved.

    Raises
    ------
    UsageError
        If a measure is unknown or looks at documents that the ranks do not hold.
    """
    see_ties = any(column.row.sees == "ties" for column in resolve(measures))
    return _of_view(ranks, _view(ranks, level, see_ties), measures)


_OF_JUDGED_OTHERS = ("bpref", "gm_bpref", "infAP")


def refuse_without_judged(name: str) -> None:
    """Refuse a measure of judged documents that are not relevant: ranks hold only answers.

    `native_values` computes it for ranks of qrels at level 0, which hold both.
    """
    if name in _OF_JUDGED_OTHERS:
        raise UsageError(
            f"{name} needs judged documents that are not relevant, but ranks have only answers; "
            f"evaluate a run with qrels that have both: kgtrec eval QRELS RUN -m {name}"
        )


class MeasuresOfRanks:
    """Cache of `native_values`, one measure per call; a class, so that processes can send it."""

    def __init__(self, ranks: Ranks) -> None:
        self._ranks = ranks
        self._values: dict[str, Float64] = {}

    @cached_property
    def _view(self) -> View:
        return _view(self._ranks)

    def __call__(self, name: str) -> Float64:
        refuse_without_judged(name)
        if name not in self._values:
            see_ties = any(column.row.sees == "ties" for column in resolve([name]))
            view = _view(self._ranks, see_ties=True) if see_ties else self._view
            self._values.update(_of_view(self._ranks, view, [name]))
        return self._values[name]


def _of_view(ranks: Ranks, view: View, measures: Sequence[str]) -> dict[str, Float64]:
    """Compute measures of a view of ranks."""
    columns = resolve(measures)
    _check_known(ranks, view, columns)
    return compute_values(view, columns)


def _check_known(ranks: Ranks, view: View, columns: Sequence[Column]) -> None:
    """Refuse measures that need data the ranks do not hold."""

    def refuse(those: Callable[[Column], bool], reason: str) -> None:
        if names := ", ".join(column.name for column in columns if those(column)):
            raise UsageError(f"{names}: {reason}")

    refuse(lambda c: not follows_from_ranks(c), "ranks are not enough for it; evaluate a run")
    facts = ranks.provenance  # also of answers outside their candidates, which have no score
    n_nan = facts.nan_count - (0 if facts.outside else np.count_nonzero(ranks.macro_answer_nan))
    if n_nan > 0:
        reason = f"{n_nan:,} scores of candidates were NaN; the ranks do not say of which questions"
        refuse(lambda c: c.row.counts_all, f"{reason}; evaluate a run")
    if facts.qrels is None or facts.qrels.get("judged_below") == 0:
        return
    answer_level = facts.qrels["level"]
    if view.least is None and view.options.level < answer_level:
        raise UsageError(
            f"{argument('level', view.options.level)} needs documents below relevance "
            f"{answer_level}, which are not answers in these ranks; rank at level "
            f"{view.options.level}"
        )
    refuse(
        lambda c: _lowest_judgement(c) < answer_level,
        f"judged documents below relevance {answer_level} matter to it, but are not answers in "
        "these "
        "ranks; rank at a lower level and call native_values with level=, or evaluate a run",
    )


def _lowest_judgement(column: Column) -> float:
    """Return the least relevance of judged documents, besides relevant ones, that matter to it."""
    if column.row.graded:
        return 0 if column.gains else 1
    return np.inf if column.row.judged_from is None else column.row.judged_from


def _view(ranks: Ranks, level: int | None = None, see_ties: bool = False) -> View:
    """Make lists of the answers, as in a run of unlimited depth.

    They know the ends of ties if `see_ties`.
    """
    from kgtrec._internal.csr import number_values  # not needed to evaluate files

    rank = (ranks.macro_greater + ranks.macro_tied_ahead).astype(np.int64)
    query = number_values(ranks.question)[1]
    answers = np.bincount(query)
    scored = ~np.asarray(ranks.macro_answer_nan, bool)
    retrieved = np.zeros(len(answers), np.int64)
    if ranks.provenance.outside:  # each of these answers counts only among its own candidates
        retrieved[query] = ranks.macro_candidates - ~scored
    else:
        retrieved[query] = ranks.macro_candidates
        retrieved -= np.bincount(query[~scored], minlength=len(answers))
    # By query, then place. Both are below 2^31, and sorting one number is faster than sorting two.
    both = query[scored] << 32 | rank[scored]
    grade = best = ends = None
    if ranks.grade is None and not see_ties:
        both.sort()
    else:
        order = np.argsort(both)
        both = both[order]
        if ranks.grade is not None:
            best = ranks.grade[np.lexsort((-ranks.grade, query))]
            grade = ranks.grade[scored][order]
        if see_ties:
            ends = (ranks.macro_greater + ranks.macro_equal + 1)[scored][order]
    lists = lists_of_judged(both >> 32, both & 0xFFFFFFFF, answers, retrieved, grade, best)
    lists = replace(lists, tie_ends=ends)
    if level is None:
        return View(lists, EvalOptions(), UNJUDGED + 1)
    return View(lists, EvalOptions(level=level))
