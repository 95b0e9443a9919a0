"""Values under ties: their mean, least and greatest over all orders that respect the scores.

A tie group holds documents of a query that share a score; all its orders are equally likely
(McSherry and Najork 2008). So a mean is a sum over places. In a group with n documents, R of them
relevant, place i holds a relevant one with probability R / n. If it does, the earlier places of the
group hold (i - 1) (R - 1) / (n - 1) more on average. The first relevant one has place i with the
probability that i - 1 draws without replacement fail and the next does not. Least and greatest are
the values of the orders with the relevant documents last and first in each group.

-M evaluates the first documents of each order, so a group at the limit may give any of its
documents; -J drops unjudged ones after that, as in trec_eval. If nothing is tied, all three are
trec_eval's value, to the bit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgtrec._internal.argument_names import argument
from kgtrec._internal.arrays import Bools, Float64, Int64
from kgtrec.errors import UsageError
from kgtrec.trec.measures.expectations import Tied
from kgtrec.trec.measures.formulas import core_columns, in_core
from kgtrec.trec.measures.names import TABLE, Column
from kgtrec.trec.measures.own_settings import by_setting
from kgtrec.trec.measures.relevant import Lists, TieEffect, View, gain_of, parts, some_queries
from kgtrec.trec.measures.tie_extremes import inferred_ap_ends, set_values
from kgtrec.trec.measures.tie_groups import comparable_scores, tie_groups
from kgtrec.trec.measures.trec_measure import FIXED, OF_SCORES, OF_SETS, EvalOptions, function_of
from kgtrec.trec.measures.values import values

_ROUNDING = 1e-12


def find_tied_queries(lists: Lists, options: EvalOptions) -> Int64:
    """Return the numbers of the queries that have a tie within the limit of -M."""
    groups = tie_groups(lists, replace(options, judged_only=False))
    return np.unique(groups.query[groups.drawn > 0])


def sort_ties(lists: Lists, options: EvalOptions, worth: NDArray[Any], best_first: bool) -> Lists:
    """Sort each tie group of the lists by `worth`, one number per document."""
    groups = tie_groups(lists, replace(options, judged_only=False))
    slots = groups.slots()
    where = groups.first[slots.group] + slots.turn - 1
    tied = worth[where].astype(np.float64)
    # This also distinguishes relevances beyond the digits of a float64.
    exact = lists.relevance[where]
    order = np.lexsort((-exact, -tied, slots.group) if best_first else (exact, tied, slots.group))
    relevance = lists.relevance.copy()
    relevance[where] = exact[order]
    return replace(lists, relevance=relevance)


def differ(first: NDArray[Any], second: NDArray[Any]) -> Bools:
    """Return where values differ by more than the rounding of sums in another order."""
    if first.dtype == object:
        return np.asarray(first != second, bool)
    return np.abs(first - second) > _ROUNDING * np.maximum(1.0, np.abs(first))


TIES = {
    "expected": "the mean over all orders of tied documents",
    "min": "the lowest value over all orders of tied documents",
    "max": "the highest value over all orders of tied documents",
}

_PART_DOCUMENTS = 1_000_000


def has_tie_form(column: Column, options: EvalOptions) -> bool:
    """Return whether `values_over_ties` knows the measure; for gains, with its default gains
    only."""
    if column.judged_only:
        options = replace(options, judged_only=True)
    if not column.row.expected or column.row.expected in (FIXED, OF_SCORES):
        return _is_fixed(column, options)
    if column.row.expected == OF_SETS:  # the mean of a count is none
        return not column.is_count or _is_fixed(column, options)
    return not column.gains


def _is_fixed(column: Column, options: EvalOptions) -> bool:
    """Return whether no order of tied documents changes the value."""
    row = column.row
    is_whole = options.most is None
    return row.expected == FIXED or (row.expected in (OF_SETS, OF_SCORES) and is_whole)


def check_tie_forms(columns: Sequence[Column], options: EvalOptions) -> None:
    """Raise `UsageError` that names the measures without and with a form under ties."""
    without = [column.key for column in columns if not has_tie_form(column, options)]
    if without:
        every = [Column(measure) for measure in TABLE]
        fixed = [column.measure for column in every if _is_fixed(column, options)]
        forms = [c.measure for c in every if has_tie_form(c, options) and c.measure not in fixed]
        raise UsageError(
            f"{argument('ties')} does not support {', '.join(without)}; leave them out. It "
            "supports "
            f"{', '.join(forms)}; no order of ties changes {', '.join(sorted(fixed))}"
        )


def tie_effect(
    lists: Lists, columns: Sequence[Column], options: EvalOptions | None = None
) -> TieEffect:
    """Measure the effect of the order of tied documents on the values.

    Compares the values of the best and the worst order, by the documents' worth to the measure.
    Under -M, which may cut a group of ties, it also puts the judged non-relevant documents first
    and last.
    """
    options = options or EvalOptions()
    changed = np.zeros(len(lists), bool)
    most: dict[str, float] = {}
    for own_lists, own_options, group, plain in by_setting(lists, columns, options):
        names = {p.name: column.key for p, column in zip(plain, group, strict=True)}
        of_group, gaps = _changes(own_lists, plain, own_options)
        changed |= of_group
        most.update((names[name], gap) for name, gap in gaps.items())
    return TieEffect.from_changes(int(changed.sum()), most)


def _changes(
    lists: Lists, columns: Sequence[Column], options: EvalOptions
) -> tuple[Bools, dict[str, float]]:
    """Return the queries that ties change, and the largest change of each measure."""
    columns = [column for column in columns if column.row.expected != FIXED]
    is_whole = options.most is None and not options.judged_only
    native = [column for column in columns if is_whole and in_core(column)]
    others = [column for column in columns if column not in native]
    changed, most = np.zeros(len(lists), bool), {column.name: 0.0 for column in columns}
    if native:
        scores = np.ascontiguousarray(comparable_scores(lists, options.compat), np.float64)
        core = core_columns(native, options.compat)
        if native_effect := core.ties(View(lists, options).documents, scores, False):
            changed |= np.frombuffer(native_effect[0], bool)
            most.update(zip((column.name for column in native), native_effect[1], strict=True))
    for start, _, part in parts(lists, _PART_DOCUMENTS) if others else ():
        chosen = find_tied_queries(part, options)
        tied = some_queries(part, chosen)
        for best, worst in _extremes(tied, others, options) if len(tied) else ():
            for name in best:
                differs = differ(best[name], worst[name])
                changed[start + chosen] |= differs
                if differs.any() and best[name].dtype != object:
                    gap = float(np.abs(best[name] - worst[name])[differs].max())
                    most[name] = max(most[name], gap)
    return changed, most


def _extremes(
    lists: Lists, columns: Sequence[Column], options: EvalOptions
) -> Iterator[tuple[dict[str, NDArray[Any]], dict[str, NDArray[Any]]]]:
    """Yield values of the best and the worst order, for measures that give documents the same
    worth."""
    for gains in dict.fromkeys(column.gains for column in columns):
        alike = [column for column in columns if column.gains == gains]
        worth: list[NDArray[Any]] = [gain_of(lists.relevance, dict(gains))] if gains else []
        worth.append(lists.relevance)
        if options.most is not None:
            worth.append((lists.relevance >= 0) & (lists.relevance < options.level))
        for key in worth:
            best, worst = (sort_ties(lists, options, key, first) for first in (True, False))
            yield values(best, alike, options), values(worst, alike, options)
    ends = {
        column.name: function_of(column.row.ends)(lists, column, options)
        for column in columns
        if column.row.ends
    }
    yield {name: pair[1] for name, pair in ends.items()}, {n: pair[0] for n, pair in ends.items()}


def values_over_ties(
    lists: Lists, columns: Sequence[Column], options: EvalOptions | None = None, *, ties: str
) -> dict[str, NDArray[Any]]:
    """Compute values per query over all orders of tied documents; see `check_tie_forms`."""
    options = options or EvalOptions()
    columns = [column for column in columns if column.measure != "runid"]
    if any(column.has_setting for column in columns):
        computed: dict[str, NDArray[Any]] = {}
        for own_lists, own_options, group, plain in by_setting(lists, columns, options):
            rows = values_over_ties(own_lists, plain, own_options, ties=ties)
            computed |= {c.name: rows[p.name] for c, p in zip(group, plain, strict=True)}
        return {column.name: computed[column.name] for column in columns}
    sets = [c for c in columns if c.row.expected == OF_SETS and not _is_fixed(c, options)]
    if ties != "expected":
        ends = _ends(lists, columns, options, ties)
        return ends | _values_of_sets(lists, sets, options, ties)
    fixed = values(lists, [c for c in columns if _is_fixed(c, options)], options)
    fixed |= _values_of_sets(lists, sets, options, ties)
    pieces: dict[str, list[Float64]] = {c.name: [] for c in columns if c.name not in fixed}
    for _, _, part in parts(lists, _PART_DOCUMENTS) if pieces else ():
        worth = part.relevance >= min(options.level, 1)
        tied = Tied(part, tie_groups(part, options, worth), options)
        for column in columns:
            if column.name in pieces:
                pieces[column.name].append(function_of(column.row.expected)(tied, column))
    results = {name: np.concatenate(arrays or [np.zeros(0)]) for name, arrays in pieces.items()}
    results.update(fixed)
    return {column.name: results[column.name] for column in columns}


def _values_of_sets(
    lists: Lists, columns: Sequence[Column], options: EvalOptions, ties: str
) -> dict[str, NDArray[Any]]:
    """Compute measures of sets if -M may cut groups of ties."""
    plain = values(lists, columns, options) if columns else {}
    return {c.name: set_values(lists, c, options, plain[c.name], ties=ties) for c in columns}


def _ends(
    lists: Lists, columns: Sequence[Column], options: EvalOptions, ties: str
) -> dict[str, NDArray[Any]]:
    """Compute the least or greatest values, by the relevance of documents."""
    falling = [column for column in columns if column.measure in _FALLING]
    rising = [column for column in columns if column not in falling]
    ends: dict[str, NDArray[Any]] = {}
    for chosen, best_first in ((rising, ties == "max"), (falling, ties == "min")):
        if chosen:
            in_order = sort_ties(lists, options, lists.relevance, best_first)
            ends |= values(in_order, chosen, options)
    for column in columns:
        if column.row.ends:
            least, greatest = function_of(column.row.ends)(lists, column, options)
            ends[column.name] = least if ties == "min" else greatest
    if "infAP" in ends:
        ends["infAP"] = inferred_ap_ends(lists, options, ends["infAP"], ties=ties)
    return {column.name: ends[column.name] for column in columns}


_FALLING = frozenset({"unj"})
"""Measures that are least if the relevant documents come first."""
