"""Micro metrics of knowledge graphs straight from a run and qrels: of answers, not of queries.

An answer is a relevant document; its rank as listed is 1 + the documents above it that are no
answers + half of those that tie with it. A run does not say what other splits know, so that nothing
of it is filtered here: the ranks are filtered ones only if the run was filtered when it was made.
The candidates of an answer are all N entities but the other answers of its query. An answer that
the run does not hold comes behind the run: its rank may be any from 1 + the documents of the run
that are no answers to the number of candidates. So every metric has a low and a high end, which are
equal where the run holds every answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from kgtrec.errors import InputError, UsageError
from kgtrec.trec.eval.kg_names import LOWER_IS_BETTER, NEEDS_ENTITIES, MicroColumn
from kgtrec.trec.measures.judged_lists import Lists
from kgtrec.trec.measures.options import EvalOptions, is_whole
from kgtrec.trec.measures.relevant import Floats, Ints, View, narrowed, parts
from kgtrec.trec.measures.tie_groups import tie_groups

if TYPE_CHECKING:  # importing them takes as long as reading a small run
    from kgtrec.measures.tied_ranks import Ties, Values

__all__ = ["Micro", "check_micro", "finished", "micro_values"]

_PART_DOCUMENTS = 2_000_000


@dataclass(frozen=True, eq=False)
class Micro:
    """Metrics as quotients of sums over answers.

    Attributes
    ----------
    parts : dict of str to (ndarray, ndarray), each float64 of shape (n_queries,)
        Column name to numerator and denominator of each query. The metric, of a query or of many,
        is the sum of the first over the sum of the second; 1 less that for kg_amri.
    answers, missing : ndarray of int64, shape (n_queries,)
        Answers of each query, and those of them that the run does not hold.
    """

    parts: dict[str, tuple[Floats, Floats]]
    answers: Ints
    missing: Ints

    def values(self) -> dict[str, Floats]:
        """Of every query; NaN for one without answers."""
        return {name: finished(name, *part) for name, part in self.parts.items()}

    def summary(self) -> dict[str, float]:
        """Over all answers of all queries."""
        return {
            name: float(finished(name, above.sum(), below.sum()))
            for name, (above, below) in self.parts.items()
        }


def finished(name: str, numerator: Floats, denominator: Floats) -> Floats:
    """The metric from sums over answers; NaN where there is nothing to divide by."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(denominator > 0, np.divide(numerator, denominator), np.nan)
    return 1.0 - ratio if name.startswith("kg_amri_") else ratio


def micro_values(
    lists: Lists,
    columns: Sequence[MicroColumn],
    options: EvalOptions | None = None,
    *,
    entities: int | Ints | None = None,
    ties: str | None = None,
) -> Micro:
    """Micro metrics of every query.

    Parameters
    ----------
    lists : Lists
        All that the run holds; `options.most` cuts it here.
    columns : sequence of MicroColumn
    options : EvalOptions, optional
    entities : int or ndarray of int64, shape (n_queries,), optional
        Entities that could be retrieved, N, or those of each query, where a graph says what is
        known; labels that name no entity then push no rank past the last one. Without it, an answer
        that the run does not hold may have any rank behind the run.
    ties : str, optional
        None for realistic ranks, else a key of `kgtrec.trec.measures.ties.TIES`.

    Raises
    ------
    UsageError
        Under -J; or if a metric needs `entities`, or they are below 1.
    InputError
        If a query has more documents than there are entities, or no query has an answer.
    """
    options = options or EvalOptions()
    if isinstance(entities, np.ndarray):
        check_micro(columns, options, int(entities.min(initial=1)))
    else:
        check_micro(columns, options, entities)
    lists = narrowed(lists, options)
    if not (lists.judged >= options.level).any():
        raise InputError(
            f"no query has a document of relevance {options.level} or more: there is no answer to "
            "rank; give the qrels of this run, or a lower level (-l)"
        )
    pieces = [
        _Ranked(
            part,
            options,
            entities[start:stop] if isinstance(entities, np.ndarray) else entities,
        )
        for start, stop, part in parts(lists, _PART_DOCUMENTS)
    ]
    sums = {}
    for column in columns:
        numerators, denominators = zip(*(piece.sums(column, ties) for piece in pieces), strict=True)
        sums[column.name] = np.concatenate(numerators), np.concatenate(denominators)
    answers, missing = ([getattr(p, name) for p in pieces] for name in ("answers", "missing"))
    return Micro(sums, np.concatenate(answers), np.concatenate(missing))


def check_micro(columns: Sequence[MicroColumn], options: EvalOptions, entities: int | None) -> None:
    """UsageError if a metric cannot be had with these options, or lacks the number of entities."""
    needing = dict.fromkeys(c.family for c in columns if c.family in NEEDS_ENTITIES)
    if entities is None and needing:
        raise UsageError(
            f"{', '.join(needing)} need the number of entities, for the ranks of answers that the "
            "run does not hold; give --entities N"
        )
    if entities is not None and not (is_whole(entities) and entities >= 1):
        raise UsageError(f"the number of entities is {entities!r}; it must be a whole one from 1")
    if options.judged_only:
        raise UsageError(
            "kg_ measures rank answers among all entities, and -J would drop those that were not "
            "judged; leave one of them out"
        )


class _Ranked:
    """Ranks of the answers that the run holds, and the ends of those of the others."""

    def __init__(self, lists: Lists, options: EvalOptions, entities: int | Ints | None) -> None:
        view = View(lists, options)
        self.answers, self.missing = view.num_rel, view.num_rel - view.num_rel_ret
        # Documents above an answer that the run lacks: at best, those of the run that are none.
        self.best = view.length - view.num_rel_ret
        self.worst = None if entities is None else entities - self.answers
        if isinstance(entities, np.ndarray):
            self.best = np.minimum(self.best, entities - self.answers)
        elif self.worst is not None and (self.best > self.worst).any():
            raise _too_few(lists, self.answers, self.best, entities)
        relevant = lists.relevance >= options.level
        groups = tie_groups(lists, replace(options, most=None), relevant)
        count = groups.count(relevant)
        groups, count = groups[count > 0], count[count > 0]
        greater = groups.start - groups.count_above(relevant)
        self.query = np.repeat(groups.query, count)
        self.ranks = _ties(np.repeat(greater, count), np.repeat(groups.size - count, count))

    def sums(self, column: MicroColumn, ties: str | None) -> tuple[Floats, Floats]:
        """Numerator and denominator of every query."""
        kind = _rank_type(column, ties)
        per_answer = _per_answer(column)
        listed = np.bincount(
            self.query, weights=_plain(per_answer(self.ranks, kind)), minlength=len(self.answers)
        )
        above = self.worst if column.is_at_worst_ranks else self.best
        if above is None:  # without end: 1/rank and hits are 0
            rest = np.zeros(len(self.answers))
        else:
            rest = _plain(per_answer(_ties(above, np.zeros_like(above)), kind))
        total = listed + self.missing * rest
        answers = self.answers.astype(np.float64)
        if column.family not in ("kg_amr", "kg_amri"):
            return total, answers
        assert self.worst is not None
        random = answers * (self.worst + 2) / 2  # candidates = worst + 1
        return (total, random) if column.family == "kg_amr" else (total - answers, random - answers)


def _too_few(lists: Lists, answers: Ints, others: Ints, entities: int | None) -> InputError:
    place = int((answers + others).argmax())
    needed = int(answers[place] + others[place])
    return InputError(
        f"query {lists.queries[place]!r} has {needed:,} documents, {int(answers[place]):,} of them "
        f"answers, and --entities is {entities:,}; give the number of entities of the graph"
    )


def _ties(greater: Ints, equal: Ints) -> Ties:
    from kgtrec.measures.tied_ranks import Ties

    return Ties(greater, equal, np.zeros_like(equal), np.ones_like(equal))


def _plain(values: Values) -> Floats:
    return np.asarray(values.scaled / values.scale, np.float64)


def _per_answer(column: MicroColumn) -> Callable[[Ties, str], Values]:
    from kgtrec.measures import item_values as metric_values

    function = {"kg_mrr": metric_values.reciprocal_rank, "kg_hits": metric_values.hits}.get(
        column.family, metric_values.mean_rank
    )
    return lambda ties, kind: function(ties, kind, float(column.cutoff or 0))


def _rank_type(column: MicroColumn, ties: str | None) -> str:
    if ties is None or ties == "expected":
        return ties or "realistic"
    return "optimistic" if (ties == "min") == (column.family in LOWER_IS_BETTER) else "pessimistic"
