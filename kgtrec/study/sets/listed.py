"""Sets that a file names, such as the answers of a language model; an empty list abstains."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from kgtrec._internal.argument_names import argument
from kgtrec._internal.arrays import Float64, Int64
from kgtrec._internal.csr import Csr, contains, find_sorted, offsets_of, owners, to_keys
from kgtrec.errors import UsageError, choose, refuse
from kgtrec.predictions.lists import ANY, PredictedLists
from kgtrec.questions.api import Questions
from kgtrec.ranking.lists import Entries, drop_repeats, rank_lists, read_lists
from kgtrec.study.sets.ranked import any_and_all
from kgtrec.study.sets.scored import first_of_lists
from kgtrec.study.sets.sets import AnswerSets, Unanswerable

UNLINKABLE = ("error", "place", "drop")


@dataclass(frozen=True)
class ListReader:
    """A reader of lists of labels, which judges them as answer sets of questions.

    - format: Format of the file, such as "jsonl"; None for records.
    - unlinkable: Treatment of labels that name no entity, as in `answer_sets`.
    - confidence: Measure of a list's confidence, "best" or "gap", as in `answer_sets`.
    """

    questions: Questions
    format: str | None
    unlinkable: str
    confidence: str

    def __post_init__(self) -> None:
        choose("unlinkable", self.unlinkable, UNLINKABLE)

    def judge(self, predictions: Any, **more: Any) -> AnswerSets:
        """Judge the sets that predictions name; `more` are fields of `AnswerSets`."""
        questions, n = self.questions, len(self.questions)
        lists = read_lists(predictions, questions, self.format)
        ranks = rank_lists(lists, questions)
        used = np.flatnonzero(lists.question >= 0)
        _check_whole(lists, used)
        self._check_candidates(lists)
        entries = _entries(lists, used, lists.question[used], questions.n_labels)
        named = entries.select(entries.entity >= 0)
        keys = named.owner * questions.n_labels + named.entity
        kept = ~contains(to_keys(questions.removed, questions.n_labels), keys)
        lengths = np.bincount(named.owner[kept], minlength=n)
        owner = lists.question[owners(lists.offsets)]
        strange = owner[(owner >= 0) & (lists.entities < 0)]
        wrong = np.bincount(strange, minlength=n) * (self.unlinkable == "place")
        question = questions.instance_question.astype(np.int64)
        answers = question * questions.n_labels + questions.answers.ids
        inside = find_sorted(np.sort(keys[kept]), answers) >= 0
        missing = n - len(used)
        return AnswerSets(
            "lists",
            ranks,
            inside.astype(np.float64),
            (lengths + wrong).astype(np.float64),
            any_and_all(inside, question, n),
            sets=Csr(offsets_of(lengths), named.entity[kept].astype(np.int32)),
            confidence=self._confidence(entries, n),
            notes=(f"{missing:,} of {n:,} questions have no list: they abstain.",) * bool(missing),
            **more,
        )

    def judge_unanswerable(self, predictions: Any) -> Unanswerable:
        """Return the sizes and the confidence of lists for questions without an answer."""
        lists = read_lists(predictions, self.questions, self.format)
        for known in np.flatnonzero(lists.question >= 0)[:1]:
            problem = "this question has answers in the graph"
            refuse(lists.path, int(lists.line[known]), problem, "leave it out here")
        index = np.arange(len(lists))
        confidence = self._confidence(
            _entries(lists, index, index, self.questions.n_labels), len(lists)
        )
        return Unanswerable(np.diff(lists.offsets).astype(np.float64), confidence)

    def _check_candidates(self, lists: PredictedLists) -> None:
        """Raise an error about the first entry of a list that is not a candidate, if any."""
        questions, entities, number = self.questions, lists.entities, owners(lists.offsets)
        owner, n = lists.question[number], questions.n_labels
        outside = (entities < 0) & (self.unlinkable == "error")
        if questions.candidate_lists is not None:
            known = contains(to_keys(questions.removed, n), owner * n + entities)
            outside |= (
                (entities >= 0)
                & ~known
                & ~questions.candidate_lists.holds(owner, np.maximum(entities, 0), n)
            )
        for at in np.flatnonzero(outside & (owner >= 0))[:1].tolist():
            entity, line = int(entities[at]), int(lists.line[number[at]])
            name = questions.candidate_labels[entity] if entity >= 0 else lists.names[-2 - entity]
            text = name.decode("utf-8", "surrogateescape") if isinstance(name, bytes) else str(name)
            option = argument("unlinkable", "place")
            refuse(
                lists.path,
                line,
                f"{text!r} is not a candidate of its question",
                f"correct it; {option} counts labels that name no entity as wrong",
            )

    def _confidence(self, entries: Entries, n: int) -> Float64 | None:
        """Return the confidence of each of n lists, float64 (n,); None if they have no scores."""
        if entries.scores is None:
            return None
        offsets = np.searchsorted(entries.owner, np.arange(n + 1))
        return first_of_lists(offsets, entries.scores, self.confidence)


def _entries(lists: PredictedLists, used: Int64, number: Int64, n_labels: int) -> Entries:
    """Return the entries of the lists `used`, best first, each candidate once per list.

    `number` gives the owner of the entries of each of these lists.
    """
    entries = drop_repeats(lists, used, np.zeros(n_labels, np.int64))[0]
    return entries.with_owners(number[entries.owner])


def _check_whole(lists: PredictedLists, used: Int64) -> None:
    """Raise an error if lists are for single answers, or a question has two lists."""
    if (lists.answer[used] != ANY).any():
        raise UsageError(
            f"{lists.path}: its lists are for single answers, and a set is that of a whole "
            "question; write them as JSON lines"
        )
    order = used[np.argsort(lists.question[used], kind="stable")]
    for again in np.flatnonzero(np.diff(lists.question[order]) == 0)[:1]:
        first, second = sorted(lists.line[order[again : again + 2]].tolist())
        problem = f"its question already has a list in line {first}"
        refuse(lists.path, second, problem, "keep one list per question")
