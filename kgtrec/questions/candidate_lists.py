"""Candidate lists of questions, as data."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kgtrec._internal.arrays import Array, Int32, Int64
from kgtrec._internal.csr import Csr, contains, select_lists, to_keys


@dataclass(frozen=True, eq=False)
class CandidateLists:
    """Candidate lists of questions.

    - kind: "entities" or "relation list", one list for all questions; "relations", a list per
      relation and side; "candidates", a list per question.
    - lists: Ascending ids, list after list.
    - of, int64 (Q,): Index of the list of each question; -1: every label is a candidate.
    - columns, int32 (len(lists.ids),) or None: Score column of each id, if score rows hold only
      candidates; None: columns go by id.
    - width: Columns of a score row.
    """

    kind: str
    lists: Csr
    of: Int64
    columns: Int32 | None
    width: int

    @property
    def sampled(self) -> bool:
        """True if each question has its own list: such ranks are not comparable with full ones."""
        return self.kind == "candidates"

    def sizes(self, n_labels: int) -> Int64:
        """Return the number of labels in each question's list: int64, shape (Q,)."""
        lengths = np.append(self.lists.lengths, n_labels)
        return lengths[self.of]

    def select(self, questions: Int64) -> CandidateLists:
        """Return the lists of some questions, in any order; repeats are allowed."""
        of = self.of[questions]
        used = np.unique(of[of >= 0])
        columns = self.columns
        if columns is not None:
            columns = select_lists(Csr(self.lists.offsets, columns), used).ids
        return replace(
            self,
            lists=select_lists(self.lists, used),
            of=np.where(of < 0, -1, np.searchsorted(used, of)),
            columns=columns,
        )

    def holds(self, question: Int64, ids: Array, n_labels: int) -> Any:
        """Check whether each id is in its question's list: bool, shape of the arrays."""
        of = self.of[question]
        return contains(to_keys(self.lists, n_labels), of * n_labels + ids) | (of < 0)
