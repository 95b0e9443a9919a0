"""Sets that a file names, such as the answers of a language model; an empty list abstains."""

from __future__ import annotations

from typing import Any

import numpy as np

from kgtrec._internal.argument_names import argument
from kgtrec._internal.arrays import Float64, Int64
from kgtrec._internal.csr import contains, find_sorted, owners, to_csr, to_keys
from kgtrec.errors import UsageError, choose, refuse
from kgtrec.predictions.lists import ANY, PredictedLists
from kgtrec.predictions.readers import PREDICTIONS, lists_of_records
from kgtrec.questions.api import Questions
from kgtrec.ranking.lists import rank_lists
from kgtrec.study.sets.ranked import any_and_all
from kgtrec.study.sets.scored import distance_to_second
from kgtrec.study.sets.sets import AnswerSets, Unanswerable

UNLINKABLE = ("error", "place", "drop")


def judge_lists(
    predictions: Any,
    questions: Questions,
    format: str | None = None,
    *,
    unanswerable: Any = None,
    unlinkable: str = "error",
    confidence: str = "best",
    resampling: Any,
) -> AnswerSets:
    """Judge the sets of predicted lists; parameters as for `answer_sets`."""
    choose("unlinkable", unlinkable, UNLINKABLE)
    lists = _read(predictions, questions, format)
    ranks = rank_lists(lists, questions)
    used = np.flatnonzero(lists.question >= 0)
    _check_whole(lists, used)
    owner = lists.question[owners(lists.offsets)]
    strange = (owner >= 0) & (lists.entities < 0)
    if unlinkable == "error" and strange.any():
        _refuse_label(lists, questions, int(np.flatnonzero(strange)[0]))
    entries = (owner >= 0) & (lists.entities >= 0)
    keys = np.unique(owner[entries] * questions.n_labels + lists.entities[entries])
    keys = keys[~contains(to_keys(questions.removed, questions.n_labels), keys)]
    n, question = len(questions), questions.instance_question.astype(np.int64)
    if questions.candidate_lists is not None:
        row, entity = np.divmod(keys, questions.n_labels)
        out = ~questions.candidate_lists.holds(row, entity, questions.n_labels)
        if out.any():
            at = int(np.flatnonzero((owner == row[out][0]) & (lists.entities == entity[out][0]))[0])
            _refuse_label(lists, questions, at)
    sets = to_csr(keys, n, questions.n_labels)
    sizes = sets.lengths + np.bincount(owner[strange], minlength=n) * (unlinkable == "place")
    answers = question * questions.n_labels + questions.answers.ids
    inside = (find_sorted(keys, answers) >= 0).astype(np.float64)
    missing = n - len(used)
    return AnswerSets(
        "lists",
        ranks,
        inside,
        sizes.astype(np.float64),
        any_and_all(inside > 0, question, n),
        resampling,
        sets=sets,
        confidence=_confidence(lists, used, lists.question[used], n, confidence),
        unanswerable=None
        if unanswerable is None
        else _read_unanswerable(unanswerable, questions, format, confidence),
        notes=(f"{missing:,} of {n:,} questions have no list: they abstain.",) * bool(missing),
    )


def _read(predictions: Any, questions: Questions, format: str | None) -> PredictedLists:
    """Return the lists of a file or of records."""
    if format is None:
        return lists_of_records(predictions, questions)
    lists: PredictedLists = PREDICTIONS.find_row(format).load()(predictions, questions)
    return lists


def _check_whole(lists: PredictedLists, used: Int64) -> None:
    """Raise an error for lists of single answers, and for a second list of a question."""
    if (lists.answer[used] != ANY).any():
        raise UsageError(
            f"{lists.path}: its lists are for single answers, and a set is that of a whole "
            "question; write them as JSON lines"
        )
    order = used[np.argsort(lists.question[used], kind="stable")]
    again = np.flatnonzero(np.diff(lists.question[order]) == 0)
    if len(again):
        first, second = sorted(lists.line[order[again[0] : again[0] + 2]].tolist())
        problem = f"its question already has a list in line {first}"
        refuse(lists.path, second, problem, "keep one list per question")


def _refuse_label(lists: PredictedLists, questions: Questions, at: int) -> None:
    """Raise an error that names an entry of a list that is not a candidate."""
    owner = int(np.searchsorted(lists.offsets, at, side="right")) - 1
    entity = int(lists.entities[at])
    name = questions.candidate_labels[entity] if entity >= 0 else lists.names[-2 - entity]
    text = name.decode("utf-8", "surrogateescape") if isinstance(name, bytes) else str(name)
    refuse(
        lists.path,
        int(lists.line[owner]),
        f"{text!r} is not a candidate of its question",
        f"correct it; {argument('unlinkable', 'place')} counts labels that name no entity as wrong",
    )


def _confidence(
    lists: PredictedLists, rows: Int64, number: Int64, n: int, kind: str
) -> Float64 | None:
    """Return the best score of each list, or its distance from the second best.

    -infinity for an empty list, and an infinite distance for one label; None without scores.
    """
    if lists.scores is None:
        return None
    position = np.full(len(lists), -1)
    position[rows] = number
    owner = position[owners(lists.offsets)]
    used = owner >= 0
    owner, scores = owner[used], np.asarray(lists.scores, np.float64)[used]
    order = np.lexsort((-scores, owner))
    owner, scores = owner[order], scores[order]
    first = np.flatnonzero(np.diff(owner, prepend=-1))
    best, second = np.full(n, -np.inf), np.full(n, -np.inf)
    best[owner[first]] = scores[first]
    if kind == "best":
        return best
    next_ = first[np.diff(first, append=len(owner)) > 1] + 1
    second[owner[next_]] = scores[next_]
    has_none = np.bincount(owner, minlength=n) == 0
    return np.where(has_none, -np.inf, distance_to_second(best, second))


def _read_unanswerable(
    predictions: Any, questions: Questions, format: str | None, kind: str
) -> Unanswerable:
    """Return the lists of questions without an answer."""
    lists = _read(predictions, questions, format)
    known = np.flatnonzero(lists.question >= 0)
    if len(known):
        problem = "this question has answers in the graph"
        refuse(lists.path, int(lists.line[known[0]]), problem, "leave it out here")
    every = np.arange(len(lists))
    confidence = _confidence(lists, every, every, len(lists), kind)
    return Unanswerable(np.diff(lists.offsets).astype(np.float64), confidence)
