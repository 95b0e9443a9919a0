"""What a row of the table of rank metrics holds, and what it is computed from."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kgtrec.measures.averaging import Groups, Weighing
from kgtrec.measures.random_baseline import Chance, ChanceOf
from kgtrec.measures.tied_ranks import Ranked, Values

__all__ = ["Metric", "Moments", "plain"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Moments:
    """What a metric is made of, for several groups of items; computed as far as it is asked for.

    Attributes
    ----------
    metric : Metric
    rank_type : str
    parameter : float
        The metric's cutoff or exponent; 0 where it takes none.
    weighing : Weighing
    groups : list of int arrays
        Cells of each group.
    """

    metric: Metric
    rank_type: str
    parameter: float
    weighing: Weighing
    groups: Groups

    @cached_property
    def mean(self) -> Floats:
        """Weighted mean of the metric's value per group."""
        value = self.metric.value
        return self.weighing.mean(
            (value, self.rank_type, self.parameter),
            lambda ties, _: value(ties, self.rank_type, self.parameter),
            self.groups,
            at_once=self.rank_type == "expected",
        )

    @property
    def total(self) -> NDArray[np.int64] | Floats:
        """Sum of the weights per group."""
        return self.weighing.total(self.groups)

    @cached_property
    def _chances(self) -> list[Chance]:
        chance = self.metric.chance
        assert chance is not None, f"{self.metric.name} has no expectation by chance"
        return [self.weighing.chance(chance, self.parameter, group) for group in self.groups]

    @property
    def chance(self) -> Floats:
        """Expectation under a random scorer per group."""
        return np.array([chance.mean for chance in self._chances])

    @property
    def chance_deviation(self) -> Floats:
        """Standard deviation under a random scorer per group."""
        return np.sqrt([chance.variance for chance in self._chances])

    def items(self) -> Iterator[tuple[Ranked, Floats | None]]:
        """Ties and weights of each group's items."""
        return (self.weighing.items(group) for group in self.groups)


def plain(moments: Moments) -> Floats:
    """The mean as it is."""
    return moments.mean


class Metric(NamedTuple):
    """One row of the table.

    Attributes
    ----------
    name : str
        As it stands in keys; "@k" at the end asks for a cutoff, "@p" for an exponent.
    title : str
        Column heading; "{k}" or "{p}" is replaced by the parameter.
    help : str
        What it is, in a sentence.
    formula : str
        In plain text; r is the rank, c the number of candidates, E and Var are those of a random
        scorer.
    higher_is_better : bool or None
        None where neither end is better.
    range : str
    reference : str
        Where it is defined.
    averagings : tuple of str
        The averagings it is defined for.
    value : function (ties, rank_type, parameter) -> Values
        The metric per item, before averaging.
    finish : function (moments) -> float64 array
        From the mean over items, and what chance gives, to the value of every group.
    chance : function (tally, parameter) -> Chance, optional
        Expectation and variance under a random scorer.
    caveats : tuple of str
        What to beware of, a sentence each.
    pykeen, libkge, papers : tuple of str
        Other spellings that are understood, lower case, by who uses them.
    digits : int
        Decimals in tables.
    """

    name: str
    title: str
    help: str
    formula: str
    higher_is_better: bool | None
    range: str
    reference: str
    averagings: tuple[str, ...]
    value: Callable[[Ranked, str, float], Values]
    finish: Callable[[Moments], Floats] = plain
    chance: ChanceOf | None = None
    caveats: tuple[str, ...] = ()
    pykeen: tuple[str, ...] = ()
    libkge: tuple[str, ...] = ()
    papers: tuple[str, ...] = ()
    digits: int = 4

    @property
    def aliases(self) -> tuple[str, ...]:
        """Every other spelling that is understood."""
        spelled = dict.fromkeys((*self.pykeen, *self.libkge, *self.papers))
        return tuple(name for name in spelled if name != self.name)

    @property
    def parameter(self) -> str | None:
        """ "k" for a cutoff, "p" for an exponent in (0, 1), None for neither."""
        return self.name[-1] if self.name[-2:] in ("@k", "@p") else None

    @property
    def takes_cutoff(self) -> bool:
        """True when keys must name a cutoff k."""
        return self.parameter == "k"

    def named(self, parameter: float) -> str:
        """The name with its parameter: "hits@10", "p_mrr@0.5"."""
        return self.name if self.parameter is None else f"{self.name[:-1]}{parameter!r}"

    def titled(self, parameter: float) -> str:
        """The heading with its parameter: "Hits@10"."""
        return self.title.replace("{k}", str(parameter)).replace("{p}", f"{parameter:g}")
