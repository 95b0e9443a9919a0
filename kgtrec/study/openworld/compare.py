"""Are two models different enough to trust, where a share of the true answers is missing?

The observed metrics are turned into strengths of the paper's model, for a sparsity that the user
believes in. From these follow the difference that complete labels would show, the probability that
they would show the other order (Theorem 4.2), the questions needed (Corollary 4.4), and how large a
correlation would make the difference mean nothing (Theorem 4.3).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kgtrec._internal.table import ShownAsTables
from kgtrec.errors import InputError, UsageError
from kgtrec.ranking.provenance import differences
from kgtrec.study.openworld.model import ENTITIES, gain, tied_gains
from kgtrec.study.openworld.projection import (
    CONTROL,
    Outlook,
    Seen,
    highest_sparsity,
    outlook_at,
    wrong_order,
)

if TYPE_CHECKING:
    from kgtrec._internal.table import Table
    from kgtrec.ranking.ranks import Ranks


Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Comparison(ShownAsTables):
    """Two models on the same questions.

    Attributes
    ----------
    names : (str, str)
    metric : str
    values : (float, float)
        Metric averaged inside a question first, then over questions; ties at random.
    difference : float
        Second minus first.
    n_questions : int
    answers_seen : float
        Mean number of test answers of a question.
    paired_error : float
        Standard error of the difference from the questions' own differences; NaN without ranks.
    p_data : float
        Probability of the other order by that error; NaN without ranks.
    level : float
        Probability that is put up with.
    highest_sparsity : float
        Above it even a perfect model could not reach the higher of the values.
    outlooks : tuple of Outlook
        One for each sparsity, ascending.
    sampled : bool
        The ranks are among sampled candidates, which the paper's model knows nothing of.
    """

    names: tuple[str, str]
    metric: str
    values: tuple[float, float]
    difference: float
    n_questions: int
    answers_seen: float
    paired_error: float
    p_data: float
    level: float
    highest_sparsity: float
    outlooks: tuple[Outlook, ...]
    sampled: bool = False

    def p_of(self, outlook: Outlook) -> float:
        """The probability to go by: the data's where there are ranks, else the model's."""
        return outlook.p_model if math.isnan(self.p_data) else self.p_data

    def table(self) -> Table:
        """A row for each sparsity."""
        from kgtrec.study.openworld.results import outlook_table

        return outlook_table(self)

    def to_dict(self) -> dict[str, Any]:
        """Everything in plain types, for JSON: None where something is not known or infinite."""
        from kgtrec.study.openworld.results import verdict

        values = asdict(self)
        for shown, outlook in zip(values["outlooks"], self.outlooks, strict=True):
            shown["fits"] = outlook.fits
        return _plain(values | {"verdict": verdict(self)})

    def __str__(self) -> str:
        from kgtrec.study.openworld.results import advice

        return advice(self)


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
        Share of the true answers that is missing from the test set. `sparsity_of_density` makes it
        of the share of all true facts that the graph holds.
    metric : str, default "mrr"
    level : float, default 0.05
        Probability of the wrong order that is put up with.
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
    # F false candidates, so many answers: the candidates of an instance are F, the missing ones
    # and its answer, and a question's are those and its other answers.
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
        raise UsageError(f"n_questions={n_questions}; two questions are the least")
    if not answers >= 1:
        raise UsageError(f"answers={answers}; a question in the test set has 1 answer or more")
    for value in values:
        if not 0 < value <= 1:
            raise UsageError(f"the value {value} is no {metric} value; give one above 0, up to 1")
    unknown = (math.nan, math.nan)
    each = np.full(int(n_questions), float(answers))
    seen = Seen(values, each, n_entities, math.nan, unknown, metric)
    return _compare(seen, sparsity, level, names)


def train_share_of(ranks: Ranks) -> float:
    """Share of the graph's facts that are not in the evaluated split, as the ranks remember it."""
    sizes, split = ranks.provenance.triples, ranks.provenance.split
    if split is None or split not in sizes:
        raise InputError(
            "these ranks do not say how large the graph's splits were; give --train-share"
        )
    total = sum(sizes.values())
    return float((total - sizes[split]) / total)


def short_names(first: str, second: str) -> tuple[str, str]:
    """File names without folder and ending, or the whole paths where those are the same."""
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
            f"a question has {most:.3g} answers among {seen.n_entities} candidates; where fewer "
            "than two are false the paper's model says nothing"
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
        raise InputError("there are no ranks to compare; rank a split that asks questions")
    alike = len(first) == len(second) and all(
        np.array_equal(getattr(first, name), getattr(second, name))
        for name in ("question", "side", "relation", "given", "answer", "candidates")
    )
    if not alike or differences(first.provenance, second.provenance, ["questions_hash"]):
        raise InputError(
            f"{names[0]} and {names[1]} rank different questions ({len(first)} and {len(second)} "
            "instances); rank both models with the same graph, split, sides and filter"
        )


def _plain(value: Any) -> Any:
    """Tuples as lists and what is not finite as None, for JSON."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
