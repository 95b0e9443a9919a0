"""`answer_sets`: the sets that a policy names, from ranks or scores, judged by the answers."""

from __future__ import annotations

from os import PathLike
from typing import Any

import numpy as np

from kgtrec._internal.argument_names import argument
from kgtrec._internal.arguments import check_count
from kgtrec._internal.arrays import Float64
from kgtrec._internal.bootstrap import Resampling
from kgtrec._internal.csr import number_values
from kgtrec.errors import PathName, UsageError, about, choose, refuse_if
from kgtrec.questions.api import Questions
from kgtrec.ranking.provenance import describe_differences
from kgtrec.ranking.ranks import Ranks
from kgtrec.study.sets.conformal import (
    Limits,
    fit_limits,
    group_relations,
    relations_of,
    units_of,
)
from kgtrec.study.sets.listed import judge_lists
from kgtrec.study.sets.policies import CONFIDENCES, TIES, UNITS, Policy
from kgtrec.study.sets.ranked import any_and_all, judge_best
from kgtrec.study.sets.scored import ScoredQuestions, choose_limits
from kgtrec.study.sets.sets import AnswerSets
from kgtrec.study.sets.without_answer import check_group, judge_unanswerable

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
        ``top:K``: the K best candidates. ``conformal:A``: the k best, where k is chosen on valid so
        that sets contain an answer with probability 1 - A or more. Of scores also:
        ``conformal-gap:A``, candidates within a distance of the best score; ``threshold:T``,
        candidates at T or better; ``threshold:best-f1`` and ``threshold:precision=P``, where T has
        the highest micro F1 on valid, or is the lowest that reaches a micro precision there.
        ``lists``: what each list names; an empty list abstains.
    questions : Questions, optional
        Of the scores.
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
    check_options(chosen, per, cover, ties, valid is not None)
    choose("confidence", confidence, CONFIDENCES)
    if chosen.name == "lists":
        if isinstance(source, Ranks) or questions is None:
            raise UsageError(f"{argument('policy', policy)} needs lists and their questions")
        return judge_lists(
            source,
            questions,
            format,
            unanswerable=unanswerable,
            unlinkable=unlinkable,
            confidence=confidence,
            resampling=resampling,
        )
    with about(_path_of(source)):
        test = _read(chosen, source, questions, higher_is_better, threads)
        ranks = _ranks_of(test)
    limits = _number_limits(chosen, higher_is_better)
    if valid is not None:
        with about(_path_of(valid)):
            fitted = _read(chosen, valid, valid_questions, higher_is_better, threads)
            check_valid(ranks, _ranks_of(fitted))
            limits = fit(chosen, fitted, per, check_count("least", least), cover)
    with about(_path_of(source)):
        named = _name_sets(test, chosen, limits, ties, keep, confidence)
    if unanswerable is not None:
        if not isinstance(test, ScoredQuestions):
            raise UsageError(
                f"{argument('unanswerable')} needs scores or lists, and these are ranks; leave it "
                "out"
            )
        check_group(per)
        bound = limits.of_group[None]
        with about(_path_of(unanswerable)):
            named["unanswerable"] = judge_unanswerable(
                unanswerable,
                test.questions.n_labels,
                chosen,
                bound if chosen.name != "threshold" or chosen.aim else _below(test, bound),
                ties=ties,
                confidence=confidence,
                higher_is_better=higher_is_better,
            )
    claims = chosen.name.startswith("conformal")
    return AnswerSets(
        policy,
        ranks,
        **named,
        resampling=resampling,
        claim=float(1 - chosen.number) if claims else float("nan"),
        unit=cover,
        limits=limits.of_group,
        notes=(*notes_of(limits, chosen), *_tie_note(test, ties)),
    )


def _path_of(source: Any) -> PathName | None:
    """Return the path of a file of scores, for messages; None for other sources."""
    return source if isinstance(source, (str, PathLike)) else None


def _ranks_of(source: Ranks | ScoredQuestions) -> Ranks:
    """Return the ranks of answers whose places are known."""
    ranks = source if isinstance(source, Ranks) else source.ranks
    if ranks.macro_unlisted is not None and ranks.macro_unlisted.any():
        raise UsageError(
            f"{int(ranks.macro_unlisted.sum()):,} answers are beyond their predicted lists, so "
            "their places are unknown; judge the lists themselves by the policy lists"
        )
    return ranks


def _number_limits(policy: Policy, higher_is_better: bool) -> Limits:
    """Return the limit that is the number of the policy."""
    negated = policy.name == "threshold" and not higher_is_better
    return Limits({None: float(-policy.number if negated else policy.number)}, {})


def _below(scored: ScoredQuestions, threshold: float) -> float:
    """Return the largest number below a threshold, in the type of the scores."""
    return float(scored.below(np.array([threshold]))[0])


def _name_sets(
    source: Ranks | ScoredQuestions,
    policy: Policy,
    limits: Limits,
    ties: str,
    keep: bool,
    confidence: str,
) -> dict[str, Any]:
    """Return the fields of `AnswerSets` that say what is named."""
    by_ranks, ranks = isinstance(source, Ranks) or ties == "expected", _ranks_of(source)
    if keep and by_ranks:
        raise UsageError(
            f"{argument('keep', option='write_sets')} needs scores, and ties that are all in the "
            "set or none; leave it out"
        )
    first = np.unique(number_values(ranks.question)[1], return_index=True)[1]
    of_questions = limits.of_questions(relations_of(ranks, first), len(first))
    if isinstance(source, Ranks) or by_ranks:
        inside, sizes, shares = judge_best(ranks, of_questions, ties)
        return {"inside": inside, "sizes": sizes, "any_and_all": shares}
    inside, sizes = _judge_scores(source, policy, of_questions, ties)
    shares = any_and_all(inside > 0, source.question, len(sizes))
    named: dict[str, Any] = {"inside": inside, "sizes": sizes, "any_and_all": shares}
    if keep:
        sets = source.sets(sizes.astype(np.int64))
        named |= {"sets": sets, "confidence": source.confidence(confidence)}
    return named


def _read(
    policy: Policy,
    source: Any,
    questions: Questions | None,
    higher_is_better: bool,
    threads: int | None,
) -> Ranks | ScoredQuestions:
    """Return ranks as they are, and scores with their questions."""
    is_ranks = isinstance(source, Ranks)
    refuse_if(
        (
            is_ranks and policy.needs_scores,
            f"{argument('policy', policy.text)} needs scores, and these are ranks; choose top:10 "
            "or conformal:0.1",
        ),
        (is_ranks and questions is not None, "ranks know their questions; leave the questions out"),
        (not is_ranks and questions is None, "scores need their questions; give them, too"),
    )
    if is_ranks or questions is None:
        ranks: Ranks = source
        return ranks
    return ScoredQuestions(source, questions, higher_is_better, threads)


def _judge_scores(
    scored: ScoredQuestions, policy: Policy, limits: Float64, ties: str
) -> tuple[Float64, Float64]:
    """Return whether each answer is in its set, and the sizes of the sets."""
    if policy.name in ("top", "conformal"):
        limits = scored.limits_of_best(limits, ties)
    elif policy.name == "conformal-gap":
        limits = scored.limits_of_gaps(limits)
    elif not policy.aim:
        limits = scored.below(limits)
    inside = (scored.values > limits[scored.question]) | np.isneginf(limits[scored.question])
    sizes = scored.count_above(limits[:, None])[:, 0]
    return inside.astype(np.float64), sizes.astype(np.float64)


def check_options(policy: Policy, per: str, cover: str, ties: str, has_valid: bool) -> None:
    """Raise UsageError for options that do not exist, or that the policy does not have."""
    choose("per", per or "relation", ("relation",))
    choose("cover", cover, UNITS)
    choose("ties", ties, TIES)
    named = argument("policy", policy.text)
    conformal, fitted = policy.name.startswith("conformal"), policy.needs_valid
    refuse_if(
        (
            fitted and not has_valid,
            f"{named} is chosen on the validation split; give {argument('valid')}",
        ),
        (has_valid and not fitted, f"{named} needs no {argument('valid')}; leave it out"),
        (bool(per) and not fitted, f"{named} has no {argument('per', per)}; leave it out"),
        (
            cover != "answer" and not conformal,
            f"{named} claims no coverage; leave {argument('cover', cover)} out",
        ),
        (
            ties != "all" and policy.name != "top",
            f"{named} has all candidates that tie; leave {argument('ties', ties)} out",
        ),
    )


def check_valid(test: Ranks, valid: Ranks) -> None:
    """Raise UsageError if ranks of valid cannot choose a policy for those of test."""
    facts, others = test.provenance, valid.provenance
    names = ("graph_hash", "sides", "higher_is_better", "context_filter", "sampled")
    differing = [name for name in names if getattr(facts, name) != getattr(others, name)]
    seen = facts.split in (others.filter_splits or ())
    refuse_if(
        (
            facts.split is not None and facts.split == others.split,
            f"the ranks of valid are of split {facts.split!r}, as those to judge; rank the "
            "validation split for them",
        ),
        (
            bool(differing),
            "the ranks of valid and those to judge do not belong together "
            f"({describe_differences(facts, others, differing)}); rank both alike",
        ),
        (
            seen and facts.split != others.split,
            f"the ranks of valid filter split {facts.split!r}, which nobody knows when a policy "
            "is chosen; rank valid with the filter 'valid'",
        ),
    )


def last_places(ranks: Ranks) -> Float64:
    """Return the worst place of each answer among its ties; infinity without a score."""
    return np.where(ranks.macro_answer_nan, np.inf, ranks.macro_rank("pessimistic"))


def fit(policy: Policy, valid: Ranks | ScoredQuestions, per: str, least: int, cover: str) -> Limits:
    """Return the limits that a policy has chosen on valid."""
    ranks = valid if isinstance(valid, Ranks) else valid.ranks
    question = np.asarray(number_values(ranks.question)[1], np.int64)
    if isinstance(valid, Ranks) or policy.name == "conformal":
        values = last_places(ranks)
    else:
        values = valid.gaps()[1] if policy.name == "conformal-gap" else valid.values
    units, rows = units_of(values, question, cover)
    relations = relations_of(ranks, rows) if per else None
    if per and relations is None:
        raise UsageError(f"these questions have no relation; leave {argument('per', per)} out")
    group, names = group_relations(relations, len(units), least)
    if isinstance(valid, Ranks) or not policy.aim:
        return fit_limits(units, group, names, policy.number)
    of_questions = np.zeros(int(question.max()) + 1, np.int64)
    of_questions[question] = group
    chosen = choose_limits(valid, of_questions, policy.number if policy.number else None)
    return Limits(dict(zip(names, chosen.tolist(), strict=True)), {})


def notes_of(limits: Limits, policy: Policy) -> list[str]:
    """Return what readers must know about a policy that was chosen on valid."""
    few = sum(limit == np.inf for limit in limits.of_group.values())
    whose = f"{few:,} of {len(limits.of_group):,} groups of relations"
    if policy.aim:
        return [f"{whose} reach the precision at no threshold: their sets are empty."] * bool(few)
    if not policy.name.startswith("conformal"):
        return []
    need = int(-(-1 // policy.number)) - 1
    return [
        f"The claim {float(1 - policy.number):g} holds on average if answers of valid and test are "
        "exchangeable.",
        *[f"{whose} have fewer than {need:,} units on valid: sets have all candidates."]
        * bool(few),
    ]


def _tie_note(ranks: Ranks | ScoredQuestions, ties: str) -> list[str]:
    """Return a note if ties that ranks do not show may widen sets."""
    if ties == "expected" or not isinstance(ranks, Ranks) or not ranks.macro_equal.any():
        return []
    least = "at least" if ties == "all" else "at most"
    return [f"Sizes are {least} these: ranks show ties at the border only if an answer ties."]
