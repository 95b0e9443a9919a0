"""The table of rank metrics: one row each, with everything that keys, help and tables need."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kgtrec.measures.ties import Ties, Values, hits, log_rank, mean_rank, reciprocal_rank

__all__ = ["AVERAGINGS", "METRICS", "Metric", "find_metric"]

Floats = NDArray[np.float64]

AVERAGINGS = {
    "micro": "every (triple, side) counts equally; candidates filtered per answer",
    "macro": "every question counts equally; its first answer among question-level candidates",
    "macro_relation": "every relation counts equally: the mean of the relations' micro values",
    "stratified": "weighted by popularity, (beta_e, beta_r): Mohamed et al., section 4",
}


def _plain(mean: Floats, chance: Floats) -> Floats:
    return mean


def _exp(mean: Floats, chance: Floats) -> Floats:
    return np.asarray(np.exp(mean))


def _inverse_exp(mean: Floats, chance: Floats) -> Floats:
    return np.asarray(np.exp(-mean))


def _amr(mean: Floats, chance: Floats) -> Floats:
    return mean / chance


def _amri(mean: Floats, chance: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        index = 1.0 - (mean - 1.0) / (chance - 1.0)
    return np.where(chance > 1.0, index, np.nan)


@dataclass(frozen=True)
class Metric:
    """One row of the table.

    Attributes
    ----------
    name : str
        As it stands in keys; "@k" at the end asks for a cutoff.
    title : str
        Column heading; "{k}" is replaced by the cutoff.
    aliases : tuple of str
        Other spellings that are understood, lower case.
    help : str
        Formula and what to beware of.
    higher_is_better : bool
    range : str
    reference : str
        Where it is defined.
    averagings : tuple of str
        The averagings it is defined for.
    value : function (ties, rank_type, k) -> Values
        The metric per item, before averaging.
    finish : function (mean, chance) -> float64 array
        From the mean over items, and the mean rank (c + 1) / 2 of a random scorer, to the value.
    digits : int
        Decimals in tables.
    """

    name: str
    title: str
    aliases: tuple[str, ...]
    help: str
    higher_is_better: bool
    range: str
    reference: str
    averagings: tuple[str, ...]
    value: Callable[[Ties, str, int], Values]
    finish: Callable[[Floats, Floats], Floats] = _plain
    digits: int = 4

    @property
    def takes_cutoff(self) -> bool:
        """True when keys must name a cutoff k."""
        return self.name.endswith("@k")


_ALL = ("micro", "macro", "macro_relation", "stratified")
_INSTANCES = ("micro", "macro_relation")

METRICS: tuple[Metric, ...] = (
    Metric(
        name="mr",
        title="MR",
        aliases=("mean_rank", "arithmetic_mean_rank"),
        help="Mean rank. Grows with the number of candidates: compare AMR across graphs.",
        higher_is_better=False,
        range="[1, candidates]",
        reference="Bordes et al. 2013",
        averagings=_ALL,
        value=mean_rank,
        digits=2,
    ),
    Metric(
        name="mrr",
        title="MRR",
        aliases=("mean_reciprocal_rank", "inverse_harmonic_mean_rank"),
        help="Mean of 1/rank. Macro: of the first answer, which is trec_eval's recip_rank "
        "over the full list.",
        higher_is_better=True,
        range="(0, 1]",
        reference="Voorhees 1999",
        averagings=_ALL,
        value=reciprocal_rank,
    ),
    Metric(
        name="hits@k",
        title="Hits@{k}",
        aliases=("hits_at_k", "hits.k", "hits_k", "hit@k", "h@k"),
        help="Share of ranks <= k. A realistic rank can end in a half: 10.5 is no hit at 10.",
        higher_is_better=True,
        range="[0, 1]",
        reference="Bordes et al. 2013",
        averagings=_ALL,
        value=hits,
    ),
    Metric(
        name="gmr",
        title="GMR",
        aliases=("geometric_mean_rank",),
        help="Geometric mean rank, exp(mean ln rank). Expected: exp of the expectation of ln rank.",
        higher_is_better=False,
        range="[1, candidates]",
        reference="Hoyt et al. 2022",
        averagings=_INSTANCES,
        value=log_rank,
        finish=_exp,
        digits=2,
    ),
    Metric(
        name="igmr",
        title="IGMR",
        aliases=("inverse_geometric_mean_rank",),
        help="1 / GMR, the inverse of the geometric mean rank.",
        higher_is_better=True,
        range="(0, 1]",
        reference="Hoyt et al. 2022",
        averagings=_INSTANCES,
        value=log_rank,
        finish=_inverse_exp,
    ),
    Metric(
        name="amr",
        title="AMR",
        aliases=("adjusted_mean_rank", "adjusted_arithmetic_mean_rank"),
        help="Mean rank over that of a random scorer, 2 sum r / sum (c + 1), with each "
        "instance's own number of candidates c. 1 is random.",
        higher_is_better=False,
        range="(0, 2)",
        reference="Berrendorf et al. 2020",
        averagings=_INSTANCES,
        value=mean_rank,
        finish=_amr,
    ),
    Metric(
        name="amri",
        title="AMRI",
        aliases=("adjusted_mean_rank_index", "adjusted_arithmetic_mean_rank_index"),
        help="1 - (MR - 1) / (E[MR] - 1): 1 is perfect, 0 random. Undefined (NaN) where every "
        "instance has one candidate only, as nothing could be ranked.",
        higher_is_better=True,
        range="[-1, 1]",
        reference="Berrendorf et al. 2020",
        averagings=_INSTANCES,
        value=mean_rank,
        finish=_amri,
    ),
)


def _patterns() -> dict[str, Metric]:
    return {name: metric for metric in METRICS for name in (metric.name, *metric.aliases)}


_BY_NAME = _patterns()


def find_metric(name: str) -> tuple[Metric, int] | None:
    """Row and cutoff (0 where it takes none) that a metric's name or alias stands for.

    ``hits@10``, ``hits_at_10`` and ``hits.10`` all give (hits@k, 10); an unknown name, or a
    cutoff that is missing, below 1 or not wanted, gives None.
    """
    stem = name.rstrip("0123456789")
    digits = name[len(stem) :]
    metric = _BY_NAME.get(stem + "k" if digits else stem)
    if metric is None or metric.takes_cutoff != bool(digits) or len(digits) > 18:
        return None
    cutoff = int(digits or 0)
    return None if digits and cutoff < 1 else (metric, cutoff)
