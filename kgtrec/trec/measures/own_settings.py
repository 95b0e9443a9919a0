"""Measures with their own level of relevance or their own judged-only lists, as ir_measures spells
them: ``AP(rel=2)``, ``P(rel=2,judged_only=True)@5``.

Their values are those of the plain measure under other options. `by_setting` splits columns into
groups with the same settings, so that all other code computes plain measures.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from kgtrec.trec.measures.names import Column
from kgtrec.trec.measures.relevant import UNJUDGED, Lists
from kgtrec.trec.measures.trec_measure import EvalOptions

Group = tuple[Lists, EvalOptions, list[Column], list[Column]]


def by_setting(lists: Lists, columns: Sequence[Column], options: EvalOptions) -> Iterator[Group]:
    """Yield lists, options, some columns, and the same columns without own settings, which have the
    same values for these lists under these options."""
    groups: dict[tuple[int | None, bool, bool], list[Column]] = {}
    for column in columns:
        is_binary = column.level is not None and column.row.graded
        groups.setdefault((column.level, column.judged_only, is_binary), []).append(column)
    for (level, judged_only, is_binary), group in groups.items():
        changed, relabelled = options, lists
        if judged_only:
            changed = replace(changed, judged_only=True)
        if is_binary:
            assert level is not None
            relabelled = _make_binary(lists, level)
        elif level is not None:
            changed = replace(changed, level=level)
        yield relabelled, changed, group, [column.plain for column in group]


def _make_binary(lists: Lists, level: int) -> Lists:
    """Return lists with relevance 1 from a level on, and 0 below it, also if it is negative."""
    shown = lists.relevance
    binary = np.where(shown == UNJUDGED, UNJUDGED, (shown >= level).astype(np.int64))
    return replace(lists, relevance=binary, judged=(lists.judged >= level).astype(np.int64))
