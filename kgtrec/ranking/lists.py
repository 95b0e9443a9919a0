"""`rank_lists`: ranks of answers in predicted lists, filtered by the graph.

An answer in its list is ranked among the listed candidates that the filter keeps. An answer beyond
the list may have any rank after it. Then `greater` is the filtered length of the list, `equal`
counts all candidates after it, and `unlisted` is True.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any

import numpy as np

from kgtrec._internal.argument_names import argument
from kgtrec._internal.arguments import QUESTIONS, require_type
from kgtrec._internal.arrays import Array, Bools, Float64, Int64
from kgtrec._internal.csr import Csr, contains, find_sorted, offsets_of, spans, to_keys
from kgtrec.errors import InputError, UsageError, choose, refuse
from kgtrec.graph.labels import near_label
from kgtrec.predictions.lists import ANY, PredictedLists
from kgtrec.predictions.readers import PREDICTIONS
from kgtrec.questions.api import Questions
from kgtrec.ranking.columns import MACRO, MICRO
from kgtrec.ranking.ranks import Ranks
from kgtrec.trec.files.run import Run


@dataclass(frozen=True, eq=False)
class Entries:
    """Entries of lists, best first, list after list.

    - owner, int64 (n,): List, or question, of each entry; ascending.
    - entity, int64 (n,): Entity of each entry. Labels that name no entity have different numbers
      below 0.
    - scores: Scores of the entries, float64 (n,), or None.
    - tie_order, int64 (n_entities,): Position of each entity among tied ones: by name, descending
      in byte order.
    - listed: True if the position in the list decides. Then scores only merge the lists of a
      question.
    """

    owner: Int64
    entity: Int64
    scores: Float64 | None
    tie_order: Int64
    listed: bool = False

    def select(self, rows: Array) -> Entries:
        """Select entries by a mask or an index array."""
        scores = None if self.scores is None else self.scores[rows]
        return replace(self, owner=self.owner[rows], entity=self.entity[rows], scores=scores)

    def with_owners(self, owner: Int64) -> Entries:
        """Return the entries with other owners, which may come in any order."""
        return replace(self, owner=owner).select(np.argsort(owner, kind="stable"))

    def sort(self) -> Entries:
        """Sort by score, ties by name as in trec_eval, and keep the first entry of each entity."""
        entries = self
        if self.scores is not None and not self.listed:
            # A label that names no entity has no name to sort by: it comes first among ties.
            by_name = np.where(self.entity < 0, -1, self.tie_order[np.maximum(self.entity, 0)])
            entries = self.select(np.lexsort((by_name, -self.scores, self.owner)))
        order = np.lexsort((np.arange(len(entries.owner)), entries.entity, entries.owner))
        owner, entity = entries.owner[order], entries.entity[order]
        repeated = np.zeros(len(order), dtype=bool)
        repeated[order[1:]] = (owner[1:] == owner[:-1]) & (entity[1:] == entity[:-1])
        return entries.select(~repeated)

    @property
    def tie(self) -> Int64:
        """Number of the tie of each entry, ascending; all differ if the position decides."""
        if self.scores is None or self.listed:
            return np.arange(len(self.owner))
        new = np.ones(len(self.owner), dtype=np.int64)
        new[1:] = (self.owner[1:] != self.owner[:-1]) | (self.scores[1:] != self.scores[:-1])
        return np.cumsum(new) - 1


def drop_repeats(
    lists: PredictedLists, used: Int64, tie_order: Int64, listed: bool = False
) -> tuple[Entries, int]:
    """Return the sorted entries of the used lists and the number of repeats dropped.

    The owner of an entry is the index of its list in `used`.
    """
    lengths = np.diff(lists.offsets)[used]
    at = spans(lists.offsets[used], lengths)[1]
    owner = np.repeat(np.arange(len(used)), lengths)
    scores = None if lists.scores is None else lists.scores[at]
    entries = Entries(owner, lists.entities[at], scores, tie_order, listed).sort()
    return entries, len(at) - len(entries.owner)


class ListCounter:
    """A counter of the entries before answers in their lists, and tied with them.

    - entries: Sorted entries.
    - questions: Questions whose labels the entries name.
    - counted, bool (n,): True for entries to count before others. The filter makes it False, also
      for answers.
    """

    def __init__(self, entries: Entries, questions: Questions, counted: Bools) -> None:
        self._entries, self._counted, self._questions = entries, counted, questions
        self._before = offsets_of(counted)  # entries that count before each
        tie = entries.tie
        starts = np.append(np.flatnonzero(np.append(True, tie[1:] != tie[:-1])), len(tie))
        # Both have an extra value at the end, for answers in no list.
        self._tie, self._ends = np.append(tie, len(starts) - 1), np.append(self._before[starts], 0)
        keys = entries.owner * questions.n_labels + np.maximum(entries.entity, 0)
        linked = np.flatnonzero(entries.entity >= 0)
        by_key = linked[np.argsort(keys[linked])]
        self._sorted_keys, self._positions = keys[by_key], np.append(by_key, -1)

    def counts(self, owner: Int64, answer: Int64, candidates: Int64) -> tuple[Int64, Bools]:
        """Count the entries that are greater, equal, and tied ahead of answers in owners' lists.

        Returns the counts, int64 (3, n), and True for answers in no list, bool (n,). An answer
        beyond its list may have any rank after it, so all candidates after the list are equal and
        tied ahead.
        """
        keys = owner * self._questions.n_labels + answer
        position = np.where(owner < 0, -1, self._positions[find_sorted(self._sorted_keys, keys)])
        listed, last, before = position >= 0, candidates - 1, self._before
        ends = (np.searchsorted(self._entries.owner, owner, side) for side in ("left", "right"))
        first, behind = (before[end] for end in ends)
        start, stop = self._ends[self._tie[position]], self._ends[self._tie[position] + 1]
        greater = np.minimum(np.where(listed, start, behind) - first, last)
        not_greater = last - greater
        tied = stop - start - (before[position + 1] - before[position])
        equal = np.where(listed, np.minimum(tied, not_greater), not_greater)
        ahead = np.where(listed, np.minimum(before[position] - start, equal), not_greater)
        return np.stack([greater, equal, ahead]), ~listed

    def run(self, n_questions: int) -> Run:
        """Return the entries that count and name an entity, as a run; owners are questions."""
        entries = self._entries.select(self._counted & (self._entries.entity >= 0))
        offsets = np.searchsorted(entries.owner, np.arange(n_questions + 1)).astype(np.int64)
        lengths = np.diff(offsets)
        scores = entries.scores
        if scores is None or entries.listed:  # descending, as readers of runs sort by score
            scores = (offsets[1:][entries.owner] - np.arange(len(entries.owner))).astype(np.float64)
        return Run(
            self._questions.ids,
            offsets,
            entries.entity.astype(np.int32),
            scores,
            self._questions.candidate_labels.docnos,
            int(lengths.max(initial=0)),
        )


UNLINKABLE = ("place", "drop")
ORDERS = ("scores", "listed")


def rank_lists(
    predictions: Any,
    questions: Questions,
    format: str | None = None,
    *,
    unlinkable: str = "place",
    list_order: str = "scores",
) -> Ranks:
    """Rank every answer in lists of the best predictions, without the graph's known answers.

    Parameters
    ----------
    predictions : path, `Run`, or iterable of mappings
        A file in one of the formats that ``kgtrec formats`` prints; a run; or records
        ``{"head": label, "relation": label, "predictions": [label, ...]}``. They contain the two
        given labels of head, relation and tail. Predictions may be pairs (label, score). If
        questions have a context, records also have "time" (or "qualifiers"), as in
        ``graph.contexts``.
    questions : Questions
        Questions and known answers. Lists of other questions are ignored and counted.
    format : str, optional
        Format of a file: "anyburl", "jsonl", "pykeen", "ogb-lsc", "trec".
    unlinkable : {"place", "drop"}
        A label that names no entity takes a place in its list, or is left out. It is counted.
    list_order : {"scores", "listed"}
        Order of a list that has scores: by scores, where equal ones tie, or by place in the list.
        Rule learners (AnyBURL, PyClause) need the place, because they order by more than they
        print. Ranks of both kinds are not comparable; the manifest names the choice.

    Returns
    -------
    Ranks
        If an answer is not in its list, ``unlisted`` is true. Its rank is then anything from
        ``greater + 1`` (optimistic) to ``candidates`` (pessimistic). Results show intervals for it.

    Raises
    ------
    FileError
        The file is malformed, or has different lists for a question. The message names the line.
    InputError
        No list belongs to these questions.
    UsageError
        An unknown format or choice.

    Notes
    -----
    If a list has a label twice, the label counts once, at its first place. Candidates beyond the
    list rank after all of it. A list for a single triple is used for that triple alone. Macro ranks
    use all lists of the question together if they have scores (by score; ``list_order="listed"``
    keeps the order of equal ones), otherwise its first list. No rank exceeds the number of
    candidates, even if many unlinkable labels come first.
    """
    return rank_lists_with_run(predictions, questions, format, unlinkable, list_order)[0]


def rank_lists_with_run(
    predictions: Any, questions: Questions, format: str | None, unlinkable: str, list_order: str
) -> tuple[Ranks, Run]:
    """Return the ranks of `rank_lists`, and the filtered lists as a run."""
    require_type("questions", questions, Questions, QUESTIONS)
    choose("unlinkable", unlinkable, UNLINKABLE)
    choose("list_order", list_order, ORDERS)
    if questions.details.get("separate"):
        raise UsageError(
            "with negatives each answer has its own question, for which there are no lists; "
            "restrict by entities or by relation"
        )
    lists = read_lists(predictions, questions, format)
    matches = _match_lists(lists, questions)
    listed = list_order == "listed"
    entries, repeats = drop_repeats(lists, matches.used, _tie_order(questions), listed)
    n_unlinkable = int((entries.entity < 0).sum())
    if unlinkable == "drop":
        entries = entries.select(entries.entity >= 0)
    micro = _make_counter(entries, questions, matches.question[entries.owner], questions.known)
    joined, n_several = _join_lists(entries, matches, len(questions))
    macro = _make_counter(joined, questions, joined.owner, questions.removed)
    counts = np.empty((6, questions.n_instances), dtype=np.int64)
    answer = questions.answers.ids.astype(np.int64)
    counts[MICRO], unlisted = micro.counts(matches.of_instance, answer, questions.candidates)
    counts[MACRO], macro_unlisted = macro.counts(
        questions.instance_question.astype(np.int64), answer, questions.macro_candidates
    )
    none = np.zeros(questions.n_instances, bool)
    outside = none if questions.outside is None else questions.outside
    counts[:, outside] = 0  # ranked last by definition, at whatever place a list has it
    described = _describe_lists(
        lists,
        questions,
        matches,
        n_several=n_several,
        list_order=list_order,
        unlinkable=unlinkable,
        n_unlinkable=n_unlinkable,
        repeats=repeats,
    )
    flags = {"unlisted": unlisted & ~outside, "macro_unlisted": macro_unlisted & ~outside}
    ranks = Ranks.from_counts(questions, counts, (outside, outside), lambda: described, flags)
    return ranks, macro.run(len(questions))


def _tie_order(questions: Questions) -> Int64:
    """Return the position of each entity among tied ones: by name, descending, int64 (n,)."""
    position = questions.candidate_labels.trec_order
    ascending = np.arange(questions.n_labels) if position is None else position.astype(np.int64)
    return questions.n_labels - 1 - ascending


def _describe_lists(
    lists: PredictedLists,
    questions: Questions,
    matches: _Matches,
    *,
    n_several: int,
    list_order: str,
    unlinkable: str,
    n_unlinkable: int,
    repeats: int,
) -> dict[str, Any]:
    """Describe the lists and their use for the manifest of ranks.

    - n_several: Number of questions with several lists.
    - n_unlinkable: Number of entries whose label names no entity.
    - repeats: As `drop_repeats` returns them.
    """
    return {
        "dtype": "lists",
        "rows": "lists",
        "higher_is_better": True,
        "nan": "error",
        "nan_count": 0,
        "predictions": {
            "format": lists.format,
            "file": lists.path,
            "lists": len(matches.used),
            "not_asked": matches.not_asked,
            "same_again": matches.same_again,
            "questions_without_list": int((matches.of_question < 0).sum()),
            "questions_of_several_lists": n_several,
            "list_order": None if lists.scores is None else list_order,
            "unlinkable": unlinkable,
            "n_unlinkable": n_unlinkable,
            **({"stranger": _find_first_unlinkable(lists, questions)} if n_unlinkable else {}),
            "repeats": repeats,
        },
    }


def _find_first_unlinkable(lists: PredictedLists, questions: Questions) -> dict[str, Any]:
    """Return the first label that names no entity, its location, and the entity with a near label.

    The location is a query of a run, or a line of another list. Empty if the lists have no names.
    """
    at = np.flatnonzero(lists.entities < ANY)
    owner = np.searchsorted(lists.offsets, at, side="right") - 1
    at, owner = at[lists.question[owner] >= 0], owner[lists.question[owner] >= 0]
    if lists.names is None or not len(at):
        return {}
    first = int(np.argmin(lists.line[owner]))
    number, name = int(owner[first]), lists.names[-2 - int(lists.entities[at[first]])]
    name = name if isinstance(name, bytes) else name.as_py()
    location = f"the list of line {int(lists.line[number]):,}"
    if lists.format == "trec":
        location = f"query {questions.ids[int(lists.question[number])]!r}"
    labels = questions.candidate_labels
    near = near_label(labels.docnos if lists.format == "trec" else labels, name)
    return {"label": name.decode("utf-8", "surrogateescape"), "place": location, "near": near}


def read_lists(predictions: Any, questions: Questions, format: str | None) -> PredictedLists:
    """Return predictions in any form as lists; UsageError if they or their format are unknown."""
    if isinstance(predictions, (str, PathLike)):
        if format is None:
            names = ", ".join(PREDICTIONS.all())
            raise UsageError(
                f"{predictions}: its format is missing; give one of {names} as "
                f"{argument('format', option='predictions_format')}"
            )
        lists: PredictedLists = PREDICTIONS.find_row(format).load()(predictions, questions)
        return lists
    if format is not None:
        raise UsageError(f"{argument('format', format)} is only for files; leave it out")
    if isinstance(predictions, PredictedLists):
        return predictions
    if isinstance(predictions, Run):
        from kgtrec.predictions.readers import lists_of_run

        return lists_of_run(predictions, questions)
    if isinstance(predictions, Iterable) and not isinstance(predictions, Mapping):
        from kgtrec.predictions.readers import lists_of_records

        return lists_of_records(predictions, questions)
    raise UsageError(
        f"predictions have type {type(predictions).__name__}; give a path, a Run, or records "
        '{"head": ..., "relation": ..., "predictions": [...]}'
    )


@dataclass(frozen=True, eq=False)
class _Matches:
    """The match of lists with questions and instances.

    - question, int64 (n_used,): Question of every list that is used.
    - used, int64 (n_used,): Numbers of these lists among all.
    - of_instance, int64 (n_instances,): Index in `used` of the list for an instance's answer; -1
      for none.
    - of_question, int64 (n_questions,): Index in `used` of a question's first list; -1 for none.
    - not_asked, same_again: Numbers of ignored lists: of other questions, and repeated ones.
    """

    question: Int64
    used: Int64
    of_instance: Int64
    of_question: Int64
    not_asked: int = 0
    same_again: int = 0


def _match_lists(lists: PredictedLists, questions: Questions) -> _Matches:
    """Match lists with questions and instances; InputError if none matches.

    FileError if a question has two different lists.
    """
    question, answers = lists.question, to_keys(questions.answers, questions.n_labels)
    # The instance that each list was made for; -1 for none.
    instance = find_sorted(answers, question * questions.n_labels + lists.answer)
    instance = np.where((question < 0) | (lists.answer < 0), -1, instance)
    matched = (question >= 0) & ((lists.answer == ANY) | (instance >= 0))
    if not matched.any():
        raise InputError(
            f"{lists.path}: none of its {len(lists):,} lists answers a question of split "
            f"{questions.split!r}, sides {questions.sides}; check the split, and that relations "
            "and entities have the graph's labels"
        )
    # Lists of whole questions come first, so that the list of an instance overrides them.
    target = np.where(lists.answer == ANY, question, len(questions) + instance)
    order = np.flatnonzero(matched)
    target, first = np.unique(target[order], return_index=True)
    used = order[first]
    again = np.setdiff1d(order, used)
    _check_same(lists, used, again, question, instance)
    index = np.arange(len(used))
    whole = target < len(questions)
    general = np.full(len(questions), -1)
    general[target[whole]] = index[whole]
    of_instance = general[questions.instance_question]
    of_instance[target[~whole] - len(questions)] = index[~whole]
    of_question = general.copy()
    by_line = np.argsort(lists.line[used], kind="stable")[::-1]
    without = by_line[general[question[used[by_line]]] < 0]
    of_question[question[used[without]]] = without  # written last, the first list stays
    return _Matches(
        question[used], used, of_instance, of_question, int((~matched).sum()), len(again)
    )


def _check_same(
    lists: PredictedLists,
    used: Int64,
    again: Int64,
    question: Int64,
    instance: Int64,
) -> None:
    """Refuse a repeated list that differs from the first: the user must choose one."""
    first = {(int(question[i]), int(instance[i])): int(i) for i in used} if len(again) else {}
    for number in again.tolist():
        other = first[int(question[number]), int(instance[number])]
        if _list_bytes(lists, number) != _list_bytes(lists, other):
            problem = f"its question already has a list in line {int(lists.line[other])}"
            refuse(lists.path, int(lists.line[number]), problem, "keep one list per question")


def _list_bytes(lists: PredictedLists, number: int) -> tuple[bytes, bytes]:
    """Return the entities and the scores of a list as bytes, to compare lists."""
    span = slice(lists.offsets[number], lists.offsets[number + 1])
    scores = b"" if lists.scores is None else lists.scores[span].tobytes()
    return lists.entities[span].tobytes(), scores


def _make_counter(
    entries: Entries, questions: Questions, question: Int64, filtered: Csr
) -> ListCounter:
    """Return a counter of the entries that the filter keeps, and of unlinkable labels."""
    entity = np.maximum(entries.entity, 0)
    keys = question * questions.n_labels + entity
    out = contains(to_keys(filtered, questions.n_labels), keys)
    if questions.candidate_lists is not None:
        out |= ~questions.candidate_lists.holds(question, entity, questions.n_labels)
    return ListCounter(entries, questions, ~out | (entries.entity < 0))


def _join_lists(entries: Entries, matches: _Matches, n_questions: int) -> tuple[Entries, int]:
    """Return the entries of each question, and the number of questions with several lists.

    A question has the entries of all its lists if they have scores, else those of its first list.
    Programs that filter omit a question's other answers from each list, but score all lists alike.
    So the lists together contain every answer in its order.
    """
    question = matches.question[entries.owner]
    lists_of = np.bincount(matches.question, minlength=n_questions)
    n_several = int((lists_of > 1).sum())
    if entries.scores is None:
        first = matches.of_question[question] == entries.owner
        return entries.select(first).with_owners(question[first]), n_several
    if entries.listed:  # lists of one question are merged by score; in each, the place decides
        falling = np.where(lists_of[question] > 1, -entries.scores, 0.0)
        order = np.lexsort((falling, question))
        entries, question = entries.select(order), question[order]
    return entries.with_owners(question).sort(), n_several
