"""Measures of several assessors: each group's own value, averaged over the groups of a query.

A group is a list of its own here: the documents that it judges, where the run has them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kgtrec.trec.measures import binary
from kgtrec.trec.measures.judgement_groups import GroupView
from kgtrec.trec.measures.names import Column
from kgtrec.trec.measures.relevant import Floats, Ints, PlacedView, View

__all__ = ["average_precision", "precision", "r_precision_mult"]


def _lists(view: GroupView) -> PlacedView:
    if "lists" not in view.memo:
        view.memo["lists"] = _make_lists(view)
    lists: PlacedView = view.memo["lists"]
    return lists


def _make_lists(view: GroupView) -> PlacedView:
    relevant = view.level >= max(view.options.level, 0)
    count = np.bincount(view.group[relevant], minlength=len(view.query_of))
    order = np.lexsort((view.place, view.group))
    order = order[view.place[order] >= 0]
    place = view.place[order]
    if view.options.judged_only:  # each group drops what it has not judged itself
        order = order[view.level[order] >= 0]
        place = _ordinal(view.group[order])
    hits = relevant[order]
    return PlacedView(view.group[order][hits], place[hits], count)


def _ordinal(group: Ints) -> Ints:
    """0 for the first of its group, 1 for the second, ...; groups ascend."""
    return np.arange(len(group)) - np.searchsorted(group, group)


def _averaged(
    function: Callable[[View, Column], Floats], view: GroupView, column: Column
) -> Floats:
    values = function(_lists(view), column)
    total = np.bincount(view.query_of, weights=values, minlength=view.n_queries)
    return total / np.maximum(view.n_groups, 1)


def average_precision(view: GroupView, column: Column) -> Floats:
    """Average precision of each group, averaged."""
    return _averaged(binary.average_precision, view, column)


def precision(view: GroupView, column: Column) -> Floats:
    """Precision at a cutoff of each group, averaged."""
    return _averaged(binary.precision, view, column)


def r_precision_mult(view: GroupView, column: Column) -> Floats:
    """Precision at a multiple of each group's relevant documents, averaged."""
    return _averaged(binary.r_precision_mult, view, column)
