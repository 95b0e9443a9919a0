"""Where answers stand in lists: entries in order, places by running sums."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kgtrec.trec.files.run import Run

if TYPE_CHECKING:
    from kgtrec.predictions.lists import PredictedLists
    from kgtrec.questions.questions import QuestionData

__all__ = ["Entries", "ListPlaces", "without_repeats"]

Int64 = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Entries:
    """What lists hold, best first, a list after the other.

    Attributes
    ----------
    owner : int64 array (n,)
        The list, or question, of an entry; ascending.
    entity : int64 array (n,)
        Below 0: a label that names none, a number for each.
    scores : float64 array (n,) or None
    tie_order : int64 array (n_entities,)
        Place of an entity among those that tie: by name, descending in byte order.
    """

    owner: Int64
    entity: Int64
    scores: npt.NDArray[np.float64] | None
    tie_order: Int64

    def some(self, rows: npt.NDArray[Any]) -> Entries:
        """The entries of a mask or an index array."""
        scores = None if self.scores is None else self.scores[rows]
        return replace(self, owner=self.owner[rows], entity=self.entity[rows], scores=scores)

    def owned(self, owner: Int64) -> Entries:
        """The same entries as those of other owners, who need not ascend."""
        return replace(self, owner=owner).some(np.argsort(owner, kind="stable"))

    def ordered(self) -> Entries:
        """By score, ties by name as in trec_eval, and each entity once, where it stands first."""
        entries = self
        if self.scores is not None:
            # What names no entity has no name to go by: it comes first among those that tie.
            by_name = np.where(self.entity < 0, -1, self.tie_order[np.maximum(self.entity, 0)])
            entries = self.some(np.lexsort((by_name, -self.scores, self.owner)))
        order = np.lexsort((np.arange(len(entries.owner)), entries.entity, entries.owner))
        owner, entity = entries.owner[order], entries.entity[order]
        repeated = np.zeros(len(order), dtype=bool)
        repeated[order[1:]] = (owner[1:] == owner[:-1]) & (entity[1:] == entity[:-1])
        return entries.some(~repeated)

    @property
    def tie(self) -> Int64:
        """Number of the tie that an entry belongs to, ascending; all differ without scores."""
        if self.scores is None:
            return np.arange(len(self.owner))
        new = np.ones(len(self.owner), dtype=np.int64)
        new[1:] = (self.owner[1:] != self.owner[:-1]) | (self.scores[1:] != self.scores[:-1])
        return np.cumsum(new) - 1


def without_repeats(lists: PredictedLists, used: Int64, tie_order: Int64) -> tuple[Entries, int]:
    """Ordered entries of the used lists, owned by places in `used`; how many came again."""
    lengths = np.diff(lists.offsets)[used]
    starts = np.append(0, np.cumsum(lengths))
    at = np.arange(starts[-1]) + np.repeat(lists.offsets[used] - starts[:-1], lengths)
    owner = np.repeat(np.arange(len(used)), lengths)
    scores = None if lists.scores is None else lists.scores[at]
    entries = Entries(owner, lists.entities[at], scores, tie_order).ordered()
    return entries, len(at) - len(entries.owner)


class ListPlaces:
    """Counts of answers in lists of which only some entries count.

    Parameters
    ----------
    entries : Entries
        Ordered.
    questions : QuestionData
    counted : bool array (n,)
        The entries that are candidates (of whichever answer; the answer itself need not be).
    """

    def __init__(self, entries: Entries, questions: QuestionData, counted: Flags) -> None:
        self._entries, self._counted, self._questions = entries, counted, questions
        self._before = np.append(0, np.cumsum(counted))  # entries that count before each
        tie = entries.tie
        first = np.flatnonzero(np.append(True, tie[1:] != tie[:-1])) if len(tie) else tie
        self._tie = tie
        self._tie_starts = np.append(first, len(tie))
        self._keys = entries.owner * questions.n_labels + np.maximum(entries.entity, 0)
        linked = np.flatnonzero(entries.entity >= 0)
        self._by_key = linked[np.argsort(self._keys[linked])]

    def counts(self, owner: Int64, answer: Int64, candidates: Int64) -> tuple[Int64, Flags]:
        """Greater, equal and tied ahead of answers in owners' lists, (3, n); who is in none.

        An answer beyond its list may be anywhere behind it: all of that is ``equal``, and ahead.
        """
        at = self._find(owner, answer)
        listed = at >= 0
        greater, equal, ahead = (np.zeros(len(owner), dtype=np.int64) for _ in range(3))
        place = at[listed]
        tie = self._tie[place]
        start, stop = self._before[self._tie_starts[tie]], self._before[self._tie_starts[tie + 1]]
        last = candidates[listed] - 1
        entry_start = self._before[np.searchsorted(self._entries.owner, owner[listed])]
        greater[listed] = np.minimum(start - entry_start, last)
        equal[listed] = np.minimum(stop - start - self._counted[place], last - greater[listed])
        ahead[listed] = np.minimum(self._before[place] - start, equal[listed])
        beyond = ~listed
        length = self._lengths(owner[beyond])
        greater[beyond] = np.minimum(length, candidates[beyond] - 1)
        equal[beyond] = ahead[beyond] = candidates[beyond] - 1 - greater[beyond]
        return np.stack([greater, equal, ahead]), beyond

    def _find(self, owner: Int64, answer: Int64) -> Int64:
        """Place of answers among the entries; -1: not there."""
        if not len(self._by_key):
            return np.full(len(owner), -1)
        keys = self._keys[self._by_key]
        answer_keys = owner * self._questions.n_labels + answer
        at = np.minimum(np.searchsorted(keys, answer_keys), len(keys) - 1)
        return np.where((keys[at] == answer_keys) & (owner >= 0), self._by_key[at], -1)

    def _lengths(self, owner: Int64) -> Int64:
        """Entries that count in owners' lists; none for owner -1."""
        ends = (np.searchsorted(self._entries.owner, owner, side) for side in ("left", "right"))
        first, last = (self._before[end] for end in ends)
        return np.where(owner < 0, 0, last - first)

    def run(self, n_questions: int) -> Run:
        """The entries that count and name an entity as a run; owners are questions."""
        entries = self._entries.some(self._counted & (self._entries.entity >= 0))
        offsets = np.searchsorted(entries.owner, np.arange(n_questions + 1)).astype(np.int64)
        lengths = np.diff(offsets)
        scores = entries.scores
        if scores is None:  # falling, as readers of runs sort by score
            scores = (offsets[1:][entries.owner] - np.arange(len(entries.owner))).astype(np.float64)
        return Run(
            self._questions.ids,
            offsets,
            entries.entity.astype(np.int32),
            scores,
            self._questions.candidate_labels.docnos,
            int(lengths.max(initial=0)),
        )
