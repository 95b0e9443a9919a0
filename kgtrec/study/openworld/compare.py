"""Are two models different enough to trust if a share of the true answers is missing?

The user assumes a sparsity, and the observed metrics become strengths of the paper's model. From
these follow the difference that complete labels would show, the probability that they would show
the other order (Theorem 4.2), the number of questions needed (Corollary 4.4), and the correlation
that would explain the whole difference (Theorem 4.3).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kgtrec.errors import InputError, UsageError
from kgtrec.ranking.provenance import differences
from kgtrec.study.openworld.model import ENTITIES, gain, tied_gains
from kgtrec.study.openworld.projection import (
    CONTROL,
    Seen,
    highest_sparsity,
    outlook_at,
    wrong_order,
)
from kgtrec.study.openworld.results import Comparison

if TYPE_CHECKING:
    from kgtrec.ranking.ranks import Ranks


Floats = NDArray[np.float64]


def question_values(ranks: Ranks, metric: str = "mrr") -> tuple[Floats, Floats]:
    """Metric and number of answers of each question, ties broken at random (expected value).

    Parameters
    ----------
    ranks : Ranks
    metric : str, default "mrr"
        ``mrr``, ``hits@10``, ``log_mrr``, ``p_mrr@0.5``, ...

    Returns
    -------
    values, answers : ndarray of float64, shape (questions,)
        In ascending question number.
    """
    gains = tied_gains(metric, ranks.greater, ranks.equal)
    _, index = np.unique(ranks.question, return_inverse=True)
    answers = np.bincount(index).astype(np.float64)
    return np.bincount(index, gains) / answers, answers


def compare_ranks(
    first: Ranks,
    second: Ranks,
    sparsity: float | Sequence[float],
    metric: str = "mrr",
    level: float = 0.05,
    names: tuple[str, str] = ("A", "B"),
) -> Comparison:
    """Compare two models by their ranks on the same questions.

    Parameters
    ----------
    first, second : Ranks
    sparsity : float in [0, 1), or several
        Share of the true answers that the test set lacks. `sparsity_of_density` computes it from
        the share of all true facts that the graph contains.
    metric : str, default "mrr"
    level : float, default 0.05
        Accepted probability of the wrong order.
    names : (str, str)

    Returns
    -------
    Comparison

    Raises
    ------
    InputError
        Ranks of different questions, or of none.
    UsageError
        A value out of range.
    """
    _check_alike(first, second, names)
    parts = [question_values(ranks, metric) for ranks in (first, second)]
    differences = parts[1][0] - parts[0][0]
    control = [float(question_values(ranks, CONTROL)[0].mean()) for ranks in (first, second)]
    answers = parts[0][1]
    # The candidates of an instance are the false and missing ones, and its answer. Those of a
    # question also contain its other answers.
    n_entities = round(float(first.candidates.mean()) - 1 + float(answers.max()))
    seen = Seen(
        (float(parts[0][0].mean()), float(parts[1][0].mean())),
        answers,
        n_entities,
        float(differences.var(ddof=1)) if len(differences) > 1 else math.nan,
        (control[0], control[1]),
        metric,
    )
    return _compare(seen, sparsity, level, names, first.sampled)


def compare_values(
    values: tuple[float, float],
    n_questions: int,
    answers: float,
    sparsity: float | Sequence[float],
    n_entities: int = ENTITIES,
    metric: str = "mrr",
    level: float = 0.05,
    names: tuple[str, str] = ("A", "B"),
) -> Comparison:
    """Compare two published values, as if all questions had the same number of answers.

    Parameters
    ----------
    values : (float, float)
        The metric of each model, from 0 to 1.
    n_questions : int
    answers : float
        Mean number of test answers of a question: test triples over questions, for each side.
    sparsity, metric, level, names
        As for `compare_ranks`.
    n_entities : int, default 14505
        Entities of the graph.

    Raises
    ------
    UsageError
        A value out of range.
    """
    if n_questions < 2:
        raise UsageError(f"n_questions={n_questions}; give 2 or more")
    if not answers >= 1:
        raise UsageError(f"answers={answers}; a question in the test set has 1 answer or more")
    for value in values:
        if not 0 < value <= 1:
            raise UsageError(f"{value} is not a value of {metric}; give one above 0, up to 1")
    unknown = (math.nan, math.nan)
    each = np.full(int(n_questions), float(answers))
    seen = Seen(values, each, n_entities, math.nan, unknown, metric)
    return _compare(seen, sparsity, level, names)


def train_share_of(ranks: Ranks) -> float:
    """Share of the graph's facts outside the evaluated split, from the provenance of the ranks."""
    sizes, split = ranks.provenance.triples, ranks.provenance.split
    if split is None or split not in sizes:
        raise InputError(
            "these ranks do not record the sizes of the graph's splits; give --train-share"
        )
    total = sum(sizes.values())
    return float((total - sizes[split]) / total)


def short_names(first: str, second: str) -> tuple[str, str]:
    """File names without folder and ending, or the whole paths if those are the same."""
    names = (Path(first).stem.removesuffix(".ranks"), Path(second).stem.removesuffix(".ranks"))
    return (first, second) if names[0] == names[1] else names


def _compare(
    seen: Seen,
    sparsity: float | Sequence[float],
    level: float,
    names: tuple[str, str],
    sampled: bool = False,
) -> Comparison:
    gain(seen.metric)  # an unknown name is refused before the work begins
    if not 0 < level < 0.5:
        raise UsageError(f"level={level}; give a probability above 0 and below 0.5, such as 0.05")
    most = float(seen.answers.max())
    if most >= seen.n_entities - 1:
        raise UsageError(
            f"a question has {most:.3g} answers among {seen.n_entities} candidates; if fewer "
            "than two are false, the paper's model does not apply"
        )
    betas = sorted(set(np.atleast_1d(np.asarray(sparsity, np.float64)).tolist()))
    count, gap = len(seen.answers), seen.values[1] - seen.values[0]
    error = math.sqrt(seen.spread / count)
    return Comparison(
        names=names,
        metric=seen.metric,
        values=seen.values,
        difference=gap,
        n_questions=count,
        answers_seen=float(seen.answers.mean()),
        paired_error=error,
        p_data=wrong_order(gap, error),
        level=level,
        highest_sparsity=highest_sparsity(seen),
        outlooks=tuple(outlook_at(seen, beta, level) for beta in betas),
        sampled=sampled,
    )


def _check_alike(first: Ranks, second: Ranks, names: tuple[str, str]) -> None:
    if not len(first) or not len(second):
        raise InputError("there are no ranks to compare; rank a split that has triples")
    alike = len(first) == len(second) and all(
        np.array_equal(getattr(first, name), getattr(second, name))
        for name in ("question", "side", "relation", "given", "answer", "candidates")
    )
    if not alike or differences(first.provenance, second.provenance, ["questions_hash"]):
        raise InputError(
            f"{names[0]} and {names[1]} rank different questions ({len(first)} and {len(second)} "
            "instances); rank both models with the same graph, split, sides and filter"
        )
