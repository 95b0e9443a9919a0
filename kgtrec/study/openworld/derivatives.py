"""How fast a metric grows with the strength of a model, and how it falls with a correlation.

The derivatives of the open-world paper (Corollaries 4.1 to 4.3 and 4.5), and delta of Lemma 4.1
with its bound: at given strengths, or at those that are estimated for ranks.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, fields

import numpy as np

from kgtrec._internal.table import ShownAsTables, Table
from kgtrec.errors import InputError
from kgtrec.ranking.ranks import Ranks
from kgtrec.study.openworld.compare import (
    Mixture,
    count_candidates,
    fit_strengths,
    question_values,
)
from kgtrec.study.openworld.formulas import (
    ENTITIES,
    approximate_slope_by_rho,
    delta_bound,
    expectation,
    expectation_main,
    gain,
    must_fall_with_rho,
    slope,
    slope_by_rho,
    split_strength,
    title_of,
)

N_ANSWERS = 43
"""True answers of a question in the paper's figures (appendix A.2)."""


@dataclass(frozen=True)
class Slope:
    """A metric at one strength, sparsity and correlation, and its derivatives.

    - model: Name of the ranks; "" for a strength that was not estimated.
    - answers: True answers of a question, missing ones included; their mean for ranks.
    - expected: Exact expectation (Lemma 4.1 with delta).
    - by_strength: Derivative of the expectation without delta by the strength, at correlation 0
      (Corollary 4.1; for MRR 4.2, for Hits@K 4.3); NaN at another correlation.
    - by_rho: Its derivative by the correlation.
    - by_rho_log: The same for the logarithmic approximation of MRR (proof of Corollary 4.5); NaN
      for other metrics, or if the approximation is not defined.
    - must_fall: Share of the questions for which the condition of Corollary 4.5 holds: 0 or 1 if
      all have the same number of answers; NaN for other metrics.
    - delta: Part of the expectation due to answers that are not predicted.
    - bound: Upper bound of delta for MRR as printed in Lemma 4.1; NaN for other metrics.
    """

    model: str
    sparsity: float
    rho: float
    strength: float
    answers: float
    expected: float
    by_strength: float
    by_rho: float
    by_rho_log: float
    must_fall: float
    delta: float
    bound: float


@dataclass(frozen=True)
class Slopes(ShownAsTables):
    """The derivatives of a metric at several strengths, sparsities and correlations."""

    metric: str
    rows: tuple[Slope, ...]

    def table(self) -> Table:
        """Return a table with one row per strength, sparsity and correlation."""
        columns = (
            "=model, sparsity:2, rho:2, strength:3, answers:1, "
            f"{title_of(self.metric)}=expected:4, d/dl=by_strength:4, d/drho=by_rho:4, "
            "(log)=by_rho_log:4, falls=must_fall:0, delta:6, bound:6"
        )
        first = 0 if any(row.model for row in self.rows) else 1
        heads = [head.strip() for head in columns.split(",")][first:]
        return Table.from_rows(heads, [astuple(row)[first:] for row in self.rows], names=4 - first)

    def __str__(self) -> str:
        return f"{self.table().to_text()}\n\n{_legend(self)}"


def _legend(slopes: Slopes) -> str:
    """Explain the columns; name the rows whose delta exceeds its bound."""
    title = title_of(slopes.metric)
    lines = [
        "d/dl    derivative of the expectation without delta by the strength, without",
        "        correlation (Yang et al. 2022, Corollaries 4.1 to 4.3)",
        "d/drho  its derivative by the correlation of missing and predicted answers",
        "delta   part of the expectation due to answers that are not predicted",
    ]
    if slopes.metric == "mrr":
        lines += [
            "(log)   the same derivative of the logarithmic approximation (Theorem 4.3)",
            "falls   1 if the condition of Corollary 4.5 holds: the approximation falls",
            "bound   upper bound of delta as printed in Lemma 4.1",
        ]
    else:
        lines.append(f"The bound of Lemma 4.1 and Corollary 4.5 are for MRR, not for {title}.")
    above = sum(row.delta > row.bound for row in slopes.rows)
    if above:
        lines.append(
            f"Delta exceeds its bound in {above} of {len(slopes.rows)} rows: the printed proof "
            "fails at rank 1."
        )
    return "\n".join(lines)


def slopes(
    strengths: Iterable[float],
    betas: Sequence[float],
    n_answers: int = N_ANSWERS,
    n_entities: int = ENTITIES,
    metric: str = "mrr",
    rhos: Sequence[float] = (0.0,),
) -> Slopes:
    """Compute how fast a metric grows with the strength, and how it falls with the correlation.

    Parameters
    ----------
    strengths : iterable of float
        Strengths l in [0, 1].
    betas : sequence of float
        Sparsities in [0, 1).
    n_answers, n_entities : int
        True answers of a question, missing ones included, and its candidates.
    rhos : sequence of float
        Correlations of missing and predicted answers.

    Returns
    -------
    Slopes

    Raises
    ------
    UsageError
        A number out of range, a correlation that is impossible, or a metric without a formula.
    """
    rows = [
        _slope_of("", strength, beta, rho, {n_answers: 1.0}, n_entities, metric)
        for beta in betas
        for rho in rhos
        for strength in strengths
    ]
    return Slopes(metric, tuple(rows))


def slopes_of_ranks(
    ranks: Mapping[str, Ranks],
    betas: Sequence[float],
    metric: str = "mrr",
    rhos: Sequence[float] = (0.0,),
) -> Slopes:
    """Compute `slopes` at the strengths that are estimated for ranks, by name of the model.

    The strength is estimated without correlation. The numbers are means over the questions, whose
    numbers of answers differ. Values are NaN if no strength explains the ranks.

    Raises
    ------
    InputError
        Ranks without questions.
    UsageError
        A sparsity out of range, or a metric without a formula.
    """
    gain(metric)  # an unknown name is refused before the work begins
    rows: list[Slope] = []
    for name, ranks_of_model in ranks.items():
        if not len(ranks_of_model):
            raise InputError(f"{name}: there are no ranks; rank a split that has triples")
        values, answers = question_values(ranks_of_model, metric)
        n_entities = count_candidates(ranks_of_model, answers)
        for beta in betas:
            questions = Mixture.from_answers(answers, beta, n_entities)
            curve = questions.curve(metric)
            strength, _ = fit_strengths([float(values.mean())], questions, *curve, metric)
            shares = dict(questions.shares())
            rows += [
                _slope_of(name, float(strength[0]), beta, rho, shares, n_entities, metric)
                for rho in rhos
            ]
    return Slopes(metric, tuple(rows))


def _slope_of(
    model: str,
    strength: float,
    beta: float,
    rho: float,
    shares: Mapping[int, float],
    n_entities: int,
    metric: str,
) -> Slope:
    """Compute a row, as a mean over the numbers of answers with their shares of the questions."""
    answers = sum(count * share for count, share in shares.items())
    first = (model, beta, rho, strength, answers)
    if math.isnan(strength):
        return Slope(*first, *[math.nan] * (len(fields(Slope)) - len(first)))
    values = [_numbers(strength, beta, rho, count, n_entities, metric) for count in shares]
    return Slope(*first, *(np.array([*shares.values()]) @ np.array(values)).tolist())


def _numbers(
    strength: float, beta: float, rho: float, n_answers: int, n_entities: int, metric: str
) -> tuple[float, ...]:
    """Compute the fields of a row from `expected` on, for questions with one number of answers."""
    whole = float(expectation(strength, beta, n_answers, n_entities, metric, rho))
    main = float(expectation_main(strength, beta, n_answers, metric, rho))
    of_mrr, positive = metric == "mrr", beta > 0 and split_strength(strength, beta, rho).missing > 0
    by_rho_log = (
        float(approximate_slope_by_rho(strength, beta, n_answers, rho))
        if of_mrr and positive
        else math.nan
    )
    return (
        whole,
        float(slope(strength, beta, n_answers, metric)) if rho == 0 else math.nan,
        float(slope_by_rho(strength, beta, n_answers, metric, rho)),
        by_rho_log,
        float(must_fall_with_rho(strength, beta, n_answers, rho)) if of_mrr else math.nan,
        whole - main,
        float(delta_bound(strength, beta, n_answers, n_entities, rho)) if of_mrr else math.nan,
    )
