"""Question-level measures straight from the answers' ordinal ranks, without a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kgtrec._internal.ordering import numbered
from kgtrec.errors import UsageError
from kgtrec.trec.measures.binary import own_values
from kgtrec.trec.measures.names import TABLE, Column, resolve
from kgtrec.trec.measures.relevant import PlacedView

if TYPE_CHECKING:
    from kgtrec.ranking.ranks import Ranks

__all__ = ["follows_from_ranks", "native_values", "natively"]

Floats = NDArray[np.float64]


def follows_from_ranks(column: Column) -> bool:
    """Whether the ranks of the answers are all that the measure looks at."""
    return column.row.from_ranks and not column.gains


def native_values(ranks: Ranks, measures: Sequence[str]) -> dict[str, Floats]:
    """Measures of every question from the ordinal ranks of its answers.

    The rank of an answer is ``macro_greater + 1 + macro_tied_ahead``: its place in a run of
    unlimited depth. The functions are those that compute from runs; `check_agreement` holds them
    against pytrec_eval.

    Parameters
    ----------
    ranks : Ranks
        All answers of every question that it holds; rows may come in any order.
    measures : sequence of str
        As in `kgtrec.trec.measures.names.resolve`, of those that `follows_from_ranks`.

    Returns
    -------
    dict of str to ndarray of float64, shape (n_questions,)
        By trec_eval's name, questions ascending: ``numpy.unique(ranks.question)``.
        Answers without a score (``ranks.macro_answer_nan``) count as not retrieved.

    Raises
    ------
    UsageError
        If a measure is unknown or does not follow from the ranks.
    """
    return _of_view(_view(ranks), measures)


def natively(ranks: Ranks) -> Callable[[str], Floats]:
    """A function that gives `native_values` of one measure after the other."""
    return _Natively(ranks)


class _Natively:
    """See `natively`; no closure, so that results can be sent between processes."""

    def __init__(self, ranks: Ranks) -> None:
        self._ranks = ranks
        self._view: PlacedView | None = None
        self._values: dict[str, Floats] = {}

    def __call__(self, name: str) -> Floats:
        if name not in self._values:
            if self._view is None:
                self._view = _view(self._ranks)
            self._values.update(_of_view(self._view, [name]))
        return self._values[name]


def _of_view(view: PlacedView, measures: Sequence[str]) -> dict[str, Floats]:
    columns = resolve(measures)
    foreign = [column.name for column in columns if not follows_from_ranks(column)]
    if foreign:
        able = ", ".join(name for name, row in TABLE.items() if row.from_ranks)
        raise UsageError(f"{', '.join(foreign)} cannot be computed from ranks; possible are {able}")
    return {column.name: own_values(view, column) for column in columns}


def _view(ranks: Ranks) -> PlacedView:
    """The answers as they stand in a run of unlimited depth."""
    place = (ranks.macro_greater + ranks.macro_tied_ahead).astype(np.int64)
    query = numbered(ranks.question)[1]
    answers = np.bincount(query)
    scored = ~np.asarray(ranks.macro_answer_nan, bool)
    # By query, then place. Both are below 2^31, and sorting one number is faster than ordering two.
    both = np.sort(query[scored] << 32 | place[scored])
    return PlacedView(both >> 32, both & 0xFFFFFFFF, answers)
