"""One row of the table of rank metrics, and the means and expectations behind its values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from kgtrec._internal.arrays import Float64, Int64
from kgtrec.measures.averaging import Groups, Weighing
from kgtrec.measures.random_baseline import Chance, ChanceOf
from kgtrec.measures.ties import Ranked, Scaled


@dataclass(frozen=True, eq=False)
class GroupMoments:
    """Mean, expectation and variance of a metric per group of cells, each computed once."""

    metric: RankMetric
    rank_type: str
    parameter: Any
    weighing: Weighing
    groups: Groups

    @cached_property
    def mean(self) -> Float64:
        """Weighted mean of the metric's value per group."""
        value = self.metric.value
        return self.weighing.mean(
            (value, self.rank_type, self.parameter),
            lambda ties, _: value(ties, self.rank_type, self.parameter),
            self.groups,
            at_once=self.rank_type == "expected",
        )

    @property
    def total(self) -> Int64 | Float64:
        """Sum of the weights per group."""
        return self.weighing.total(self.groups)

    @cached_property
    def _chances(self) -> list[Chance]:
        """Expectation and variance under a random scorer, per group."""
        chance = self.metric.chance
        assert chance is not None, f"{self.metric.name} has no expectation by chance"
        return [self.weighing.chance(chance, self.parameter, group) for group in self.groups]

    @property
    def chance(self) -> Float64:
        """Expectation under a random scorer per group."""
        return np.array([chance.mean for chance in self._chances])

    @property
    def chance_deviation(self) -> Float64:
        """Standard deviation under a random scorer per group."""
        return np.sqrt([chance.variance for chance in self._chances])

    def items(self) -> Iterator[tuple[Ranked, Float64 | None]]:
        """Yield the ties and weights of the items of each group."""
        return (self.weighing.items(group) for group in self.groups)


OfMean = Callable[[Float64], Float64]
Parameter = float | tuple[int, int]
"""Parameter of a metric: a number, or a pair (k, n)."""


def same(mean: Float64) -> Float64:
    """Return the mean, unchanged."""
    return mean


def inverse(mean: Float64) -> Float64:
    """Compute 1 / mean."""
    return np.asarray(1.0 / mean)


def inverse_exp(mean: Float64) -> Float64:
    """Compute exp(-mean)."""
    return np.asarray(np.exp(-mean))


FALLING = (inverse, inverse_exp)
"""Decreasing functions of the mean."""


class RankMetric(NamedTuple):
    """One row of the table.

    - name: In keys; "@k" at the end means a cutoff, "@k_n" also a number of candidates, "@p" an
      exponent, "@a" a sharpness.
    - title: Column heading; the parameter replaces "{k}", "{n}", "{p}" or "{a}".
    - help, formula, reference, caveats: For people. In formulas r is the rank, c the number of
      candidates; E and Var belong to a random scorer.
    - higher_is_better: None if neither end is better.
    - averagings: Averagings for which the metric is defined.
    - value: The metric per item, before averaging.
    - of_mean: The metric as a function of the mean over items; None if it needs more than the mean.
    - from_moments: The metric of every group, if `of_mean` is None.
    - chance: Expectation and variance under a random scorer.
    - base: Name of the metric that is averaged over the same items; "" for this one.
    - uses_candidates: True if the value needs the number of candidates, and not only the rank.
    - counts_listed: True if an answer beyond the end of its predicted list counts 0, so that the
      value is known although the rank is not.
    - pykeen, libkge, papers: Other accepted spellings in lower case, by their users.
    - digits: Decimals in tables.
    """

    name: str
    title: str
    help: str
    formula: str
    higher_is_better: bool | None
    range: str
    reference: str
    averagings: tuple[str, ...]
    value: Callable[[Ranked, str, Any], Scaled]
    of_mean: OfMean | None = same
    from_moments: Callable[[GroupMoments], Float64] | None = None
    chance: ChanceOf | None = None
    base: str = ""
    uses_candidates: bool = False
    counts_listed: bool = False
    caveats: tuple[str, ...] = ()
    pykeen: tuple[str, ...] = ()
    libkge: tuple[str, ...] = ()
    papers: tuple[str, ...] = ()
    digits: int = 4

    @property
    def aliases(self) -> tuple[str, ...]:
        """Every other accepted spelling."""
        return tuple(dict.fromkeys((*self.pykeen, *self.libkge, *self.papers)))

    @property
    def stems(self) -> tuple[str, ...]:
        """Every spelling without its parameter: "hits", "hits_at"."""
        names = (self.name, *self.aliases)
        if self.parameter is None:
            return names
        return tuple(name[: -len(self.parameter) - 1] for name in names)

    @property
    def parameter(self) -> str | None:
        """Letters of the parameter, or None.

        "k" for a cutoff, "k_n" for a cutoff and a number of candidates, "p" for an exponent in
        (0, 1), "a" for a sharpness.
        """
        letters = self.name.partition("@")[2]
        return letters if letters in ("k", "k_n", "p", "a") else None

    @property
    def takes_cutoff(self) -> bool:
        """True if keys must name a cutoff k."""
        return self.parameter == "k"

    def name_with(self, parameter: Parameter) -> str:
        """Return the name with its parameter: "hits@10", "hits@10_50", "p_mrr@0.5"."""
        return self._fill(self.name, parameter)

    def base_name_with(self, parameter: Parameter) -> str:
        """Return the base's name with its parameter: "mrr" for z_mrr, "hits@10" for z_hits@10."""
        return self._fill(self.base or self.name, parameter)

    def _fill(self, name: str, parameter: Parameter) -> str:
        """Replace the letters of the parameter at the end of a name by its value."""
        if self.parameter is None:
            return name
        values = parameter if isinstance(parameter, tuple) else (parameter,)
        return name[: -len(self.parameter)] + "_".join(map(repr, values))

    @property
    def is_adjusted(self) -> bool:
        """True if the metric is the ratio, index or z-score of a base."""
        return self.chance is not None and bool(self.base)

    @property
    def symbol(self) -> str:
        """Heading with the letter of its parameter: "Hits@k"."""
        return self.title.format(k="k", n="n", p="p", a="a")

    def title_with(self, parameter: Parameter) -> str:
        """Return the heading with its parameter: "Hits@10"."""
        if isinstance(parameter, tuple):
            return self.title.format(k=parameter[0], n=parameter[1])
        return self.title.format(k=parameter, p=f"{parameter:g}", a=f"{parameter:g}")

    def per_item(self, ties: Ranked, rank_type: str, parameter: Parameter) -> Float64:
        """Compute the metric of each item, float64 (n,)."""
        values = self.value(ties, rank_type, parameter)
        return np.asarray(values.scaled / values.scale, np.float64)

    def with_chance(self, mean: Float64, chance: Chance) -> Float64:
        """Compute an adjusted metric from means over items and their chance level."""
        moments = SimpleNamespace(
            mean=mean, chance=chance.mean, chance_deviation=np.sqrt(chance.variance)
        )
        assert self.from_moments is not None
        return self.from_moments(moments)  # type: ignore[arg-type]

    def of_groups(self, moments: GroupMoments) -> Float64:
        """Compute the metric of each group of items."""
        if self.of_mean is not None:
            return self.of_mean(moments.mean)
        assert self.from_moments is not None, f"{self.name} has neither of_mean nor from_moments"
        return self.from_moments(moments)
