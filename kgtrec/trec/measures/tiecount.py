"""How many queries have ties that could change the measures asked for.

A tie can, if it lies where the measure looks and its documents are not all alike to the measure.
What a measure looks at, and which documents are alike to it, is a rule for each family.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from kgtrec.trec.measures.graded import gain_of
from kgtrec.trec.measures.judged_lists import UNJUDGED, Lists
from kgtrec.trec.measures.names import Column
from kgtrec.trec.measures.options import EvalOptions
from kgtrec.trec.measures.relevant import Bools, Floats, Ints, parts
from kgtrec.trec.measures.tie_groups import TieGroups, tie_groups

__all__ = ["queries_with_ties"]

_PART_DOCUMENTS = 4_000_000


def queries_with_ties(
    lists: Lists, columns: Sequence[Column], options: EvalOptions | None = None
) -> int:
    """Queries in which another order of tied documents could change a measure.

    Parameters
    ----------
    lists : Lists
        As for `kgtrec.trec.measures.ties.tied_values`.
    columns : sequence of Column
    options : EvalOptions, optional
    """
    options = options or EvalOptions()
    found = 0
    for _, _, part in parts(lists, _PART_DOCUMENTS):
        groups = tie_groups(part, options)
        groups = groups[(groups.drawn > 0) & (groups.size > 0)]
        if len(groups):
            found += _touched(_Looked(groups, options), columns)
    return found


def _touched(looked: _Looked, columns: Sequence[Column]) -> int:
    """Queries of which some column can be changed."""
    touched = np.zeros(len(looked.groups.lists), bool)
    for column in columns:
        rule = _RULES.get(column.family)
        if rule is not None:
            touched[looked.groups.query[rule(looked, column)]] = True
    return int(touched.sum())


class _Looked:
    """Tie groups, and what is in them for the rules."""

    def __init__(self, groups: TieGroups, options: EvalOptions) -> None:
        self.groups, self.level = groups, options.level
        self.relevance = groups.lists.relevance
        self._known: dict[str, Ints] = {}

    def count(self, kind: str) -> Ints:
        """Documents of a kind in each group; for "above", relevant ones above it."""
        if kind not in self._known:
            relevant = self.relevance >= self.level
            masks: dict[str, Callable[[], Bools]] = {
                "relevant": lambda: relevant,
                "judged": lambda: self.relevance >= 0,
                "other": lambda: (self.relevance >= 0) & ~relevant,
            }
            if kind == "above":
                self._known[kind] = self.groups.count_above(relevant)
            else:
                self._known[kind] = self.groups.count(masks[kind]())
        return self._known[kind]

    def mixed(self, kind: str) -> Bools:
        """Groups with documents of the kind, and others."""
        count = self.count(kind)
        return (count > 0) & ((count < self.groups.size) | self.loses)

    @property
    def cut(self) -> Bools:
        """Groups of which -M takes a part only."""
        return self.groups.drawn < self.groups.whole

    @property
    def loses(self) -> Bools:
        """Those of them from which -J takes documents after that."""
        return self.cut & (self.groups.size < self.groups.whole)

    def starts_before(self, column: Column) -> Bools | bool:
        """Groups that begin where the measure looks."""
        return True if column.sees is None else self.groups.start < column.sees

    def split_at(self, depth: int | Ints) -> Bools:
        """Groups of which only a part lies within the depth, or within -M."""
        end = self.groups.start + self.groups.size
        return (self.groups.start < depth) & ((end > depth) | self.cut)

    def differing(self, values: Ints | Floats) -> Bools:
        """Groups in which a value, given for every document, is not everywhere the same."""
        slots = self.groups.slots()
        values = values[self.groups.first[slots.group] + slots.turn - 1]
        starts = np.cumsum(self.groups.size) - self.groups.size
        differs = np.maximum.reduceat(values, starts) > np.minimum.reduceat(values, starts)
        return differs | self.loses


def _order_of_relevant(looked: _Looked, column: Column) -> Bools:
    return looked.mixed("relevant") & looked.starts_before(column)


def _first_relevant(looked: _Looked, column: Column) -> Bools:
    return _order_of_relevant(looked, column) & (looked.count("above") == 0)


def _number_within(looked: _Looked, column: Column) -> Bools:
    return looked.mixed("relevant") & looked.split_at(int(column.cutoff or 0))


def _success(looked: _Looked, column: Column) -> Bools:
    """The first k can be without a relevant document, and with one."""
    groups, depth = looked.groups, int(column.cutoff or 0)
    relevant = looked.count("relevant")
    none = groups.size - relevant >= depth - groups.start
    none |= looked.cut & (groups.whole - relevant >= groups.drawn)
    return _first_relevant(looked, column) & looked.split_at(depth) & none


def _r_precision(looked: _Looked, column: Column) -> Bools:
    lists = looked.groups.lists
    owner = np.repeat(np.arange(len(lists)), np.diff(lists.judged_offsets))
    relevant = np.bincount(owner[lists.judged >= looked.level], minlength=len(lists))
    times = 1.0 if column.cutoff is None else column.cutoff
    depth = relevant if times == 1.0 else (times * relevant + 0.9).astype(np.int64)
    return looked.mixed("relevant") & looked.split_at(depth[looked.groups.query])


def _judged_within(looked: _Looked, column: Column) -> Bools:
    return looked.mixed("judged") & looked.split_at(int(column.cutoff or 0))


def _judged_order(looked: _Looked, column: Column) -> Bools:
    return looked.mixed("judged")


def _preferences(looked: _Looked, column: Column) -> Bools:
    return (looked.count("relevant") > 0) & (looked.count("other") > 0)


def _gains(looked: _Looked, column: Column) -> Bools:
    gains = gain_of(looked.relevance, dict(column.gains))
    return looked.differing(gains) & looked.starts_before(column)


def _characters(looked: _Looked, column: Column) -> Bools:
    shown = np.clip(looked.relevance, -1, 10)
    shown[looked.relevance == UNJUDGED] = -2
    return looked.differing(shown) & looked.starts_before(column)


def _sets(looked: _Looked, column: Column) -> Bools:
    """Sets change where -M takes a part of a group."""
    return looked.cut & (looked.mixed("relevant") | looked.mixed("judged"))


_RULES: dict[str, Callable[[_Looked, Column], Bools]] = {
    **dict.fromkeys(
        ("map", "gm_map", "map_cut", "infAP", "binG", "iprec_at_recall", "11pt_avg", "yaap"),
        _order_of_relevant,
    ),
    **dict.fromkeys(("recip_rank", "recip_rank_cut"), _first_relevant),
    **dict.fromkeys(("P", "recall", "relative_P"), _number_within),
    "success": _success,
    **dict.fromkeys(("Rprec", "Rprec_mult"), _r_precision),
    **dict.fromkeys(("judged", "unj"), _judged_within),
    "rbp_resid": _judged_order,
    **dict.fromkeys(("bpref", "gm_bpref"), _preferences),
    **dict.fromkeys(
        ("ndcg", "ndcg_cut", "ndcg_rel", "Rndcg", "G", "dcg", "rbp"), _gains
    ),
    "relstring": _characters,
    **dict.fromkeys(
        ("num_ret", "num_rel_ret", "num_nonrel_judged_ret", "set_P", "set_relative_P",
         "set_recall", "set_map", "set_F", "utility"), _sets,
    ),
}  # fmt: skip
