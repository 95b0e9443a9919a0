"""Claims as limits on means over ranks: what is printed, turned back into what was averaged."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from kgtrec.errors import UsageError
from kgtrec.measures.metric import Metric, inverse, inverse_exp, same
from kgtrec.measures.random_baseline import Chance, Tally
from kgtrec.measures.rank_metrics import RANK_ROWS
from kgtrec.study.auditing.claims import Claim

Interval = tuple[float, float]
BASES = {row.name: row for row in RANK_ROWS}


@dataclass(frozen=True)
class Sizes:
    """The test set of a table.

    - instances: Ranks behind a number, by side; absent: unknown.
    - questions: The same of macro averages.
    - entities: Number of candidates at most; the largest rank.
    - candidates: Of every instance, by side, where the graph is known.
    """

    instances: dict[str, int]
    entities: int
    questions: dict[str, int] = field(default_factory=dict)
    candidates: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of_counts(cls, instances: int | None, entities: int, side: str = "both") -> Sizes:
        """So many ranks behind the numbers of a side; both sides have as many ranks each."""
        if entities < 1 or (instances is not None and instances < 1):
            raise UsageError("instances and entities must be 1 or more")
        counts = {} if instances is None else {side: instances}
        if instances is not None and side == "both" and instances % 2 == 0:
            counts |= {"head": instances // 2, "tail": instances // 2}
        return cls(counts, entities)

    @classmethod
    def of_questions(cls, questions: Any) -> Sizes:
        """The sizes that questions have, of both sides and of each."""
        side = np.asarray(questions.side)[questions.instance_question]
        all_of = {"head": side == 0, "tail": side == 1}
        if not all(part.any() for part in all_of.values()):
            all_of = {}
        chosen = {questions.sides: np.ones(len(side), bool)} | all_of
        candidates = np.asarray(questions.candidates)
        return cls(
            {name: int(part.sum()) for name, part in chosen.items()},
            questions.n_labels,
            {
                name: len(np.unique(questions.instance_question[part]))
                for name, part in chosen.items()
            },
            {name: Tally.of(candidates[part]) for name, part in chosen.items()},
        )


class Limit(NamedTuple):
    """A claim as an interval for the mean of a function of the rank.

    - row, parameter: The metric whose value per rank is averaged; of a median, Hits at its rank.
    - low, high: Of that mean.
    - back: From the mean to the measure that was printed.
    """

    claim: Claim
    row: Metric
    parameter: float
    low: float
    high: float
    back: Callable[[float], float]


def limits_of_claims(claims: Sequence[Claim], sizes: Sizes) -> tuple[list[Limit], list[str]]:
    """The limits that claims are, and why others are none."""
    limits: list[Limit] = []
    reasons = []
    for claim in claims:
        found = () if claim.measure.is_trec else tuple(_limits_of(claim, sizes))
        limits += found
        if not found:
            reasons.append(f"{claim.measure.title} was not checked: no mean of single ranks, or "
                           "its chance level is unknown")  # fmt: skip
    return limits, reasons


def _limits_of(claim: Claim, sizes: Sizes) -> Iterator[Limit]:
    row, parameter = claim.measure.row
    low, high = claim.low, claim.high
    if row.name == "median_rank":
        # Half of the ranks are up to the upper end, and at most half are below the lower one.
        hits = BASES["hits@k"]
        yield Limit(claim, hits, math.floor(2 * high) / 2, 0.5, 1.0, lambda mean: math.nan)
        yield Limit(claim, hits, math.ceil(2 * low) / 2 - 0.5, 0.0, 0.5, lambda mean: math.nan)
        return
    base = BASES[row.base] if row.is_adjusted else row
    if row.is_adjusted:
        unadjusted = _unadjusted(row, base, parameter, claim, sizes)
        if unadjusted is None:
            return
        (low, high), back = unadjusted
    elif row.of_mean is None:
        return
    else:
        back = float
    assert base.of_mean is not None
    mean_of, of_mean = _inverse_of(base), base.of_mean
    one, other = mean_of(low), mean_of(high)
    yield Limit(
        claim, base, parameter, min(one, other), max(one, other),
        lambda mean: back(float(of_mean(np.asarray(mean)))),
    )  # fmt: skip


def _inverse_of(row: Metric) -> Callable[[float], float]:
    """From a metric to the mean that it is made of."""
    if row.of_mean is same:
        return float
    if row.of_mean is inverse:
        return lambda value: 1.0 / value if value > 0 else math.inf
    if row.of_mean is inverse_exp:
        return lambda value: -math.log(value) if value > 0 else math.inf
    return lambda value: math.log(value) if value > 0 else 0.0


def _unadjusted(
    row: Metric, base: Metric, parameter: float, claim: Claim, sizes: Sizes
) -> tuple[Interval, Callable[[float], float]] | None:
    """The base's interval under an adjusted metric's, and the way back; None: chance is unknown."""
    if row.chance is None or row.from_moments is None or claim.measure.averaging != "micro":
        return None
    tally = sizes.candidates.get(claim.measure.side)
    if tally is not None:
        chances = [row.chance(tally, parameter)]
    elif row.name.startswith("z_"):
        return None
    else:  # filtering leaves between one and all of the entities
        extremes = (Tally.of([2]), Tally.of([max(sizes.entities, 2)]))
        chances = [row.chance(one, parameter) for one in extremes]
    mean_of = _inverse_of(base)
    ends: list[float] = []
    back: Callable[[float], float] = float
    for chance in chances:

        def adjusted(value: float, chance: Chance = chance) -> float:
            return float(row.with_chance(np.asarray(mean_of(value)), chance))

        at_one, at_two = adjusted(1.0), adjusted(2.0)  # it is linear in the base's value
        slope = at_two - at_one
        ends += [1.0 + (end - at_one) / slope for end in (claim.low, claim.high)]
        back = adjusted if tally is not None else lambda value: math.nan
    return (min(ends), max(ends)), back
