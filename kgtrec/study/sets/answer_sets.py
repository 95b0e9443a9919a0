"""`answer_sets`: the sets that a policy names, from ranks, judged by the answers."""

from __future__ import annotations

import numpy as np

from kgtrec._internal.argument_names import argument
from kgtrec._internal.arguments import check_count
from kgtrec._internal.arrays import Float64
from kgtrec._internal.bootstrap import Resampling
from kgtrec._internal.csr import number_values
from kgtrec.errors import UsageError, choose, refuse_if
from kgtrec.ranking.provenance import describe_differences
from kgtrec.ranking.ranks import Ranks
from kgtrec.study.sets.conformal import Limits, fit_limits, relations_of, units_of
from kgtrec.study.sets.policies import TIES, UNITS, Policy
from kgtrec.study.sets.ranked import judge_best
from kgtrec.study.sets.sets import AnswerSets

USUAL = Resampling()
LEAST = 100
"""Usual number of units on valid from which a relation has its own limit."""


def answer_sets(
    ranks: Ranks,
    policy: str,
    *,
    valid: Ranks | None = None,
    per: str = "",
    least: int = LEAST,
    cover: str = "answer",
    ties: str = "all",
    resampling: Resampling = USUAL,
) -> AnswerSets:
    """Name a set of candidates for every question, and judge the sets by the answers.

    Parameters
    ----------
    ranks : Ranks
        Of the test split.
    policy : str
        ``top:K``: the K best candidates. ``conformal:A``: the k best, where k is chosen on valid so
        that sets contain an answer with probability 1 - A or more.
    valid : Ranks, optional
        Of the validation split, by the same model, without filtering the test split
        (``filter="valid"``). Answers of one question compete with each other in both splits.
    per : {"", "relation"}
        Whether each relation has its own limit (Mondrian conformal prediction).
    least : int
        Relations with fewer units on valid share a limit.
    cover : {"answer", "question-any", "question-all"}
        What the claim is about: each answer, or for each question any or all of its answers.
    ties : {"all", "none", "expected"}
        For ``top:K``: what becomes of candidates that tie at the border.
    resampling : Resampling
        Settings of the intervals.

    Returns
    -------
    AnswerSets

    Raises
    ------
    UsageError
        An unknown policy, a share outside (0, 1), or a policy that is chosen on valid without it.
    InputError
        Ranks of lists that end before an answer; ranks of valid that do not fit those of test.

    Examples
    --------
    >>> sets = study.answer_sets(ranks, "conformal:0.1", valid=valid)  # doctest: +SKIP
    >>> print(sets.table())                                            # doctest: +SKIP
    """
    chosen = Policy.parse(policy)
    check_options(chosen, per, cover, ties, valid is not None)
    refuse_if(
        (
            chosen.needs_scores,
            f"{argument('policy', policy)} needs scores, and these are ranks; choose top:10 or "
            "conformal:0.1",
        ),
        (
            chosen.name == "lists",
            f"{argument('policy', policy)} needs lists, and these are ranks",
        ),
    )
    question = np.asarray(number_values(ranks.question)[1], np.int64)
    first = np.unique(question, return_index=True)[1]
    check_listed(ranks)
    limits = Limits({None: float(chosen.number)}, {})
    if valid is not None and chosen.name == "conformal":
        check_valid(ranks, valid)
        limits = fit(chosen, valid, last_places(valid), per, check_count("least", least), cover)
    most = limits.of_questions(relations_of(ranks, first), len(first))
    inside, sizes, shares = judge_best(ranks, most, ties)
    claims = chosen.name == "conformal"
    return AnswerSets(
        policy,
        ranks,
        inside,
        sizes,
        shares,
        claim=float(1 - chosen.number) if claims else float("nan"),
        unit=cover,
        resampling=resampling,
        limits=limits.of_group,
        notes=(*notes_of(limits, chosen), *_tie_note(ranks, ties)),
    )


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


def check_listed(ranks: Ranks) -> None:
    """Raise UsageError for ranks of lists that may end before an answer."""
    if ranks.macro_unlisted is not None and ranks.macro_unlisted.any():
        raise UsageError(
            f"{int(ranks.macro_unlisted.sum()):,} answers are beyond their predicted lists, so "
            "their places are unknown; judge the lists themselves by the policy lists"
        )


def check_valid(test: Ranks, valid: Ranks) -> None:
    """Raise UsageError if ranks of valid cannot choose a policy for those of test."""
    check_listed(valid)
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


def fit(policy: Policy, valid: Ranks, values: Float64, per: str, least: int, cover: str) -> Limits:
    """Return the limits of a conformal policy from the values of the answers of valid."""
    question = np.asarray(number_values(valid.question)[1], np.int64)
    units, rows = units_of(values, question, cover)
    names = relations_of(valid, rows) if per else None
    if per and names is None:
        raise UsageError(f"these questions have no relation; leave {argument('per', per)} out")
    return fit_limits(units, names, policy.number, least)


def notes_of(limits: Limits, policy: Policy) -> list[str]:
    """Return what readers must know about a conformal policy."""
    if not policy.name.startswith("conformal"):
        return []
    notes = [
        f"The claim {float(1 - policy.number):g} holds on average if answers of valid and test are "
        "exchangeable."
    ]
    if few := [name for name, limit in limits.of_group.items() if limit == np.inf]:
        need = int(-(-1 // policy.number)) - 1
        groups = f"{len(few):,} of {len(limits.of_group):,} groups of relations have"
        if None in few and len(limits.of_group) == 1:
            groups = "Answers have"
        notes.append(f"{groups} fewer than {need:,} units on valid: sets have all candidates.")
    return notes


def _tie_note(ranks: Ranks, ties: str) -> list[str]:
    """Return a note if ties that ranks do not show may widen sets."""
    if ties == "expected" or not ranks.macro_equal.any():
        return []
    least = "at least" if ties == "all" else "at most"
    return [f"Sizes are {least} these: ranks show ties at the border only if an answer ties."]
