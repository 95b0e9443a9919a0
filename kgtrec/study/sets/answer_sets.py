"""`answer_sets`: the sets that a policy names, from ranks or scores, judged by the answers."""

from __future__ import annotations

from os import PathLike
from typing import Any

import numpy as np

from kgtrec._internal.argument_names import argument
from kgtrec._internal.arguments import check_count
from kgtrec._internal.arrays import Float64
from kgtrec._internal.bootstrap import Resampling
from kgtrec.errors import InputError, PathName, UsageError, about, refuse_if
from kgtrec.questions.api import Questions
from kgtrec.ranking.provenance import describe_differences
from kgtrec.ranking.ranks import Ranks
from kgtrec.scores.files import load_matrix
from kgtrec.study.sets.conformal import (
    Limits,
    group_relations,
    limits_of,
    order_statistic,
    relations_of,
    units_of,
)
from kgtrec.study.sets.listed import ListReader
from kgtrec.study.sets.policies import Policy
from kgtrec.study.sets.ranked import RankedQuestions
from kgtrec.study.sets.scored import ScoredQuestions
from kgtrec.study.sets.sets import AnswerSets, Unanswerable
from kgtrec.study.sets.thresholds import choose_limits

USUAL = Resampling()
LEAST = 100
"""Usual number of units on valid from which a relation has its own limit."""


def answer_sets(
    source: Any,
    policy: str,
    questions: Questions | None = None,
    *,
    valid: Any = None,
    valid_questions: Questions | None = None,
    per: str = "",
    least: int = LEAST,
    cover: str = "answer",
    ties: str = "all",
    keep: bool = False,
    format: str | None = None,
    unanswerable: Any = None,
    unlinkable: str = "error",
    confidence: str = "best",
    higher_is_better: bool = True,
    threads: int | None = None,
    resampling: Resampling = USUAL,
) -> AnswerSets:
    """Name a set of candidates for every question, and judge the sets by the answers.

    Parameters
    ----------
    source : Ranks, array, Factors, path, or records
        Ranks of the test split; or scores, shape (Q, n_entities), of `questions`. Only scores show
        all ties, and candidates. For policy ``lists``: predictions as for `kgtrec.rank_lists`.
    policy : str
        ``top:K``: the K best candidates (Max-K of Mei et al. 2018). ``conformal:A``: the k best,
        where k is chosen on valid so that sets contain an answer with probability 1 - A or more. Of
        scores also: ``conformal-gap:A``, candidates within a distance of the best score;
        ``threshold:T``, candidates at T or better; ``threshold:best-f1`` and
        ``threshold:precision=P``, where T has the highest micro F1 on valid, or is the lowest that
        reaches a micro precision there. ``lists``: what each list names; an empty list abstains.
    questions : Questions, optional
        Questions of the scores.
    valid, valid_questions : optional
        The same of the validation split and the same model, without filtering the test split
        (``filter="valid"``). Answers of one question compete with each other in both splits.
    per : {"", "relation"}
        Whether each relation has its own limit (Mondrian conformal prediction).
    least : int
        Relations with fewer units on valid share a limit.
    cover : {"answer", "question-any", "question-all"}
        What the claim is about: each answer, or for each question any or all of its answers.
    ties : {"all", "none", "expected"}
        For ``top:K``: what becomes of candidates that tie at the border.
    keep : bool
        Whether `AnswerSets.sets` has the candidates, which may need much memory, and
        `AnswerSets.confidence` how sure each set is.
    format : str, optional
        Of a file of lists: "jsonl", ...
    unanswerable : array, path or records, optional
        Questions without an answer, whose sets should be empty: scores, shape (m, n_entities), or
        lists in the same format.
    unlinkable : {"error", "place", "drop"}
        A label that names no entity is an error, counts as a wrong candidate, or is left out.
    confidence : {"best", "gap"}
        How sure a set is: its best score, or the distance from it to the second best.
    higher_is_better, threads
        As for `kgtrec.rank`.
    resampling : Resampling
        Settings of the intervals.

    Returns
    -------
    AnswerSets

    Raises
    ------
    UsageError
        An unknown policy, a share outside (0, 1), a policy that is chosen on valid without it, or
        ranks of valid that do not fit those of test.

    Examples
    --------
    >>> sets = study.answer_sets(ranks, "conformal:0.1", valid=valid)  # doctest: +SKIP
    >>> print(sets.table())                                            # doctest: +SKIP
    """
    chosen = Policy.parse(policy)
    chosen.check_options(per, cover, ties, confidence, valid is not None)
    if chosen.name == "lists":
        if isinstance(source, Ranks) or questions is None:
            raise UsageError(f"{argument('policy', policy)} needs lists and their questions")
        reader = ListReader(questions, format, unlinkable, confidence)
        judged = None if unanswerable is None else reader.judge_unanswerable(unanswerable)
        return reader.judge(source, unanswerable=judged, resampling=resampling)
    options = (higher_is_better, threads)
    test = _read(source, questions, *options)
    test.check_policy(chosen)
    if valid is None:
        limits = _limit_in_text(chosen, higher_is_better)
    else:
        fitted = _read(valid, valid_questions, *options)
        check_valid(test.ranks, fitted.ranks)
        limits = fit(chosen, fitted, per, check_count("least", least), cover)
    of_questions = _limits_of_questions(limits, test)
    with about(_path_of(source)):
        inside, sizes, any_and_all = test.judge(chosen, of_questions, ties)
        sets, set_confidence = test.keep(sizes, ties, confidence) if keep else (None, None)
    judged = None
    if unanswerable is not None:
        with about(_path_of(unanswerable)):
            without_answer = _read_unanswerable(test, unanswerable, per, *options)
            judged = _judge_unanswerable(without_answer, chosen, limits, ties, confidence)
    return AnswerSets(
        policy,
        test.ranks,
        inside,
        sizes,
        any_and_all,
        resampling,
        claim=float(1 - chosen.number) if chosen.claims else float("nan"),
        unit=cover,
        sets=sets,
        limits=limits,
        confidence=set_confidence,
        unanswerable=judged,
        notes=(*notes_of(limits, chosen), *test.notes(ties)),
    )


def _path_of(source: Any) -> PathName | None:
    """Return the path of a file of scores, for messages; None for other sources."""
    return source if isinstance(source, (str, PathLike)) else None


def _read(
    source: Any, questions: Questions | None, higher_is_better: bool, threads: int | None
) -> RankedQuestions:
    """Wrap ranks, or scores and their questions, for judging; UsageError if these do not fit."""
    if isinstance(source, Ranks):
        known = questions is not None
        refuse_if((known, "ranks know their questions; leave the questions out"))
        return RankedQuestions(source)
    if questions is None:
        raise UsageError("scores need their questions; give them, too")
    with about(_path_of(source)):
        return ScoredQuestions(source, questions, higher_is_better, threads)


def _read_unanswerable(
    test: RankedQuestions, scores: Any, per: str, higher_is_better: bool, threads: int | None
) -> ScoredQuestions:
    """Read a row of scores per question without an answer.

    Ranking needs an answer, so the first candidate of each question stands for it.
    """
    name = argument("unanswerable")
    if not isinstance(test, ScoredQuestions):
        raise UsageError(f"{name} needs scores or lists, and these are ranks; leave it out")
    if per:
        raise UsageError(
            f"{name} has rows without a relation, so {argument('per', per)} has no limit for them; "
            "leave one of both out"
        )
    matrix = np.asarray(scores) if _path_of(scores) is None else load_matrix(scores)
    width = test.questions.n_labels
    if matrix.ndim != 2 or matrix.shape[1] != width or not len(matrix):
        raise InputError(
            f"{name} has scores of shape {matrix.shape}; give a row per question without an "
            f"answer and {width} columns, one per candidate"
        )
    first = (np.arange(len(matrix) + 1), np.zeros(len(matrix), np.int64))
    questions = Questions.from_answers(first, labels=width)
    return ScoredQuestions(matrix, questions, higher_is_better, threads)


def _judge_unanswerable(
    questions: ScoredQuestions, policy: Policy, limits: Limits, ties: str, confidence: str
) -> Unanswerable:
    """Judge the sets of questions without an answer. These have no relation, so one limit."""
    same_limit = np.full(len(questions.questions), limits[None])
    sizes = questions.judge(policy, same_limit, ties)[1]
    return Unanswerable(sizes, questions.confidence(confidence))


def _limit_in_text(policy: Policy, higher_is_better: bool) -> Limits:
    """Return the number in the policy's text as the limit of all questions.

    Thresholds are negated if lower is better, as `ScoredQuestions.values` are.
    """
    negated = policy.name == "threshold" and not higher_is_better
    return {None: float(-policy.number if negated else policy.number)}


def _limits_of_questions(limits: Limits, test: RankedQuestions) -> Float64:
    """Return the limit of each question from its relation, float64 (Q,)."""
    first = np.unique(test.question, return_index=True)[1]
    return limits_of(limits, relations_of(test.ranks, first), len(first))


def check_valid(test: Ranks, valid: Ranks) -> None:
    """Raise UsageError if limits chosen on the ranks of valid are not valid for those of test."""
    facts, valid_facts = test.provenance, valid.provenance
    names = ("graph_hash", "sides", "higher_is_better", "context_filter", "sampled")
    differing = [name for name in names if getattr(facts, name) != getattr(valid_facts, name)]
    seen = facts.split in (valid_facts.filter_splits or ())
    refuse_if(
        (
            facts.split is not None and facts.split == valid_facts.split,
            f"the ranks of valid are of split {facts.split!r}, as those to judge; rank the "
            "validation split for them",
        ),
        (
            bool(differing),
            "the ranks of valid and those to judge do not belong together "
            f"({describe_differences(facts, valid_facts, differing)}); rank both alike",
        ),
        (
            seen and facts.split != valid_facts.split,
            f"the ranks of valid filter split {facts.split!r}, which nobody knows when a policy "
            "is chosen; rank valid with the filter 'valid'",
        ),
    )


def fit(policy: Policy, valid: RankedQuestions, per: str, least: int, cover: str) -> Limits:
    """Choose the limits of a policy on the validation questions, one per group of relations.

    - per, least, cover: Parameters of `answer_sets`.
    """
    searched = valid if isinstance(valid, ScoredQuestions) and policy.aim else None
    values = valid.distances(policy) if searched is None else searched.values
    units, rows = units_of(values, valid.question, cover)
    relations = relations_of(valid.ranks, rows) if per else None
    if per and relations is None:
        raise UsageError(f"these questions have no relation; leave {argument('per', per)} out")
    group, names = group_relations(relations, len(units), least)
    if searched is None:
        members = (units[group == number] for number in range(len(names)))
        limits = [order_statistic(each, policy.number) for each in members]
    else:
        of_questions = np.zeros(len(valid.candidates), np.int64)
        of_questions[valid.question] = group
        limits = choose_limits(searched, of_questions, policy.number).tolist()
    return dict(zip(names, limits, strict=True))


def notes_of(limits: Limits, policy: Policy) -> list[str]:
    """Return notes on the claim of a policy, and on groups of relations that have no limit."""
    few = sum(limit == np.inf for limit in limits.values())
    whose = f"{few:,} of {len(limits):,} groups of relations"
    if policy.aim:
        return [f"{whose} reach the precision at no threshold: their sets are empty."] * bool(few)
    if not policy.claims:
        return []
    need = int(-(-1 // policy.number)) - 1
    claim = f"The claim {float(1 - policy.number):g} holds on average if answers of valid and test "
    unlimited = f"{whose} have fewer than {need:,} units on valid: sets have all candidates."
    return [f"{claim}are exchangeable.", *[unlimited] * bool(few)]
