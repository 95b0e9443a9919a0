"""Rows of the table: metrics adjusted for chance, each a base row as ratio, index or z-score.

``value`` and ``chance`` are those of the base. The form combines mean, expectation and variance,
and determines help, formula, caveats and averagings.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from kgtrec._internal.arrays import Float64
from kgtrec.measures import random_baseline, random_median
from kgtrec.measures.metric import GroupMoments, RankMetric
from kgtrec.measures.random_baseline import ChanceOf
from kgtrec.measures.rank_metrics import RANK_ROWS, SPREAD_ROWS

_Form = Callable[[RankMetric, Float64, GroupMoments], Float64]

_ROWS = {row.name: row for row in (*RANK_ROWS, *SPREAD_ROWS)}

_WEIGHTED = ("micro", "question", "relation")
_AVERAGED = (*_WEIGHTED, "macro_relation")
_BERRENDORF, _HOYT = "Berrendorf et al. 2020", "Hoyt et al. 2022"

_OWN_COUNT = "E uses every instance's own number of candidates, the answer included."
_NOTHING_TO_RANK = "NaN where E is 1: nothing could be ranked."
_LOW_END = "Its least value, -E / (1 - E) or above, depends on the numbers of candidates."
_TIES = (
    "Var is that of a scorer without ties. With tied scores use expected ranks: realistic ranks "
    "are in the middle of a tie, where 1/r and hits are below chance."
)
_INDEPENDENT = (
    "Instances count as independent, but those of one question are not, so |z| > 2 says less "
    "than it seems."
)
_NO_SPREAD = "NaN where Var is 0."
_TRULY_GEOMETRIC = (
    "E[GMR] is the product of E[r_i^(w_i / W)], not exp(E[ln r]), which is a little less."
)

# -- The three forms -----------------------------------------------------------------------------


def _ratio(row: RankMetric, value: Float64, moments: GroupMoments) -> Float64:
    """Compute M / E."""
    return value / moments.chance


def _index(row: RankMetric, value: Float64, moments: GroupMoments) -> Float64:
    """Compute 1 - (M - 1) / (E - 1), which is (M - E) / (1 - E)."""
    expected = moments.chance
    with np.errstate(divide="ignore", invalid="ignore"):
        adjusted = 1.0 - (value - 1.0) / (expected - 1.0)
    return np.where(expected != 1.0, adjusted, np.nan)


def _z_score(row: RankMetric, value: Float64, moments: GroupMoments) -> Float64:
    """Compute (M - E) / sqrt(Var), with the sign changed if lower is better."""
    gap, deviation = value - moments.chance, moments.chance_deviation
    with np.errstate(divide="ignore", invalid="ignore"):
        score = (gap if row.higher_is_better else -gap) / deviation
    return np.where(deviation > 0, score, np.nan)


@dataclass(frozen=True, eq=False)
class _Base:
    """Unadjusted metric from which the forms adjusted for chance are built.

    - row: The metric without adjustment. If lower is better it is a rank, whose expectation is
      written ``E[symbol]``.
    - words: Text in help.
    - mean, variance: Formulas of expectation and variance under a random scorer.
    - chance: Replaces the row's.
    - caveats: Caveats of all forms.
    - reference: Reference of all forms, if not the form's own.
    """

    row: RankMetric
    words: str
    mean: str
    variance: str = ""
    chance: ChanceOf | None = None
    caveats: tuple[str, ...] = ()
    reference: str | None = None

    @property
    def is_rank(self) -> bool:
        """True if the metric is a rank, so that lower is better."""
        return self.row.higher_is_better is False

    @property
    def expectation(self) -> str:
        """Symbol of the expectation."""
        return f"E[{self.row.symbol}]" if self.is_rank else "E"

    def ratio(self, name: str, title: str, range: str, **overrides: Any) -> RankMetric:
        """Build the row of the ratio to the expectation: 1 is random."""
        defaults: dict[str, Any] = {
            "help": f"{self.words} over that of a random scorer: 1 is random.",
            "formula": f"{self.row.symbol} / {self.expectation}, {self.expectation} = {self.mean}",
            "higher_is_better": not self.is_rank,
            "reference": self.reference or f"{_BERRENDORF}, for the MR",
            "averagings": _AVERAGED,
            "caveats": (_OWN_COUNT, *self.caveats),
            "digits": 4 if self.is_rank else 2,
        }
        return self._form(name, title, range, _ratio, defaults | overrides)

    def index(self, name: str, title: str, range: str, **overrides: Any) -> RankMetric:
        """Build the row of the index: 1 is perfect, 0 random."""
        e, m = self.expectation, self.row.symbol
        form = f"1 - ({m} - 1) / ({e} - 1)" if self.is_rank else f"({m} - E) / (1 - E)"
        low = () if self.is_rank else (_LOW_END,)
        defaults: dict[str, Any] = {
            "help": f"{self.words} adjusted for chance: 1 is perfect, 0 random.",
            "formula": f"{form}, {e} = {self.mean}",
            "higher_is_better": True,
            "reference": self.reference or _HOYT,
            "averagings": _AVERAGED,
            "caveats": (_OWN_COUNT, *self.caveats, *low, _NOTHING_TO_RANK),
        }
        return self._form(name, title, range, _index, defaults | overrides)

    def z_score(self, name: str, title: str, **overrides: Any) -> RankMetric:
        """Build the row of the z-score, in standard deviations of a random scorer.

        Higher is better.
        """
        m = self.row.symbol
        spread = f"Var[{m}]" if self.is_rank else "Var"
        gap = f"E[{m}] - {m}" if self.is_rank else f"{m} - E"
        defaults: dict[str, Any] = {
            "help": f"{self.words} in standard deviations of a random scorer's"
            + (", better is higher." if self.is_rank else "."),
            "formula": f"({gap}) / sqrt({spread}), {spread} = {self.variance}",
            "higher_is_better": True,
            "reference": self.reference or _HOYT,
            "averagings": _WEIGHTED,
            "caveats": (_OWN_COUNT, *self.caveats, _TIES, _INDEPENDENT, _NO_SPREAD),
            "digits": 2,
        }
        return self._form(name, title, "(-inf, inf)", _z_score, defaults | overrides)

    def _form(self, name: str, title: str, range: str, form: _Form, overrides: Any) -> RankMetric:
        """Build the row of one form; `overrides` are further fields of `RankMetric`."""
        row = self.row
        return RankMetric(
            name=name,
            title=title,
            range=range,
            value=row.value,
            of_mean=None,
            from_moments=lambda moments: form(row, row.of_groups(moments), moments),
            chance=self.chance or row.chance,
            base=row.name,
            **overrides,
        )


# -- The bases, and their forms ------------------------------------------------------------------

_MR = _Base(
    _ROWS["mr"], "Mean rank", "sum w (c + 1) / 2 / sum w", "sum w^2 (c^2 - 1) / 12 / (sum w)^2"
)
_MRR = _Base(
    _ROWS["mrr"],
    "MRR",
    "sum w H(c) / c / sum w",
    "sum w^2 (c H2(c) - H(c)^2) / c^2 / (sum w)^2, H2(c) = 1 + 1/4 + ... + 1/c^2",
)
_MRR_CONTINUOUS = _Base(
    _ROWS["mrr"],
    "MRR",
    "sum w ln(c) / (c - 1) / sum w",
    chance=random_baseline.reciprocal_continuous,
    reference="PyKEEN, Understanding the Evaluation",
)
_HITS = _Base(
    _ROWS["hits@k"],
    "Hits@k",
    "sum w min(k / c, 1) / sum w",
    "sum w^2 p (1 - p) / (sum w)^2, p = min(k / c, 1)",
)
_GMR = _Base(
    _ROWS["gmr"],
    "Geometric mean rank",
    "product of E[r_i^(w_i / W)]",
    "product of E[r_i^(2 w_i / W)] - E[GMR]^2",
    caveats=(_TRULY_GEOMETRIC,),
)
_MEDIAN = _Base(
    _ROWS["median_rank"],
    "Median rank",
    "the mean of the median of ranks uniform on 1 .. c_i",
    chance=random_median.median,
    caveats=("It has no z-score: the variance of the midpoint of two ranks has no short form.",),
)


def _soft(row: RankMetric, term: str) -> tuple[RankMetric, ...]:
    """Build the three forms of a metric in [0, 1] that weighs low ranks more than MRR does."""
    stem, at, parameter = row.name.partition("@")
    base = _Base(
        row,
        row.symbol,
        f"sum w E[{term}] / sum w, r uniform on 1 .. c",
        f"sum w^2 Var[{term}] / (sum w)^2",
        reference="after Hoyt et al. 2022, for the MRR",
    )
    return (
        base.index(f"adjusted_{row.name}", f"adj. {row.title}", "(-inf, 1]"),
        base.ratio(f"{stem}_ratio{at}{parameter}", f"{row.title}/E", "(0, 1/E]"),
        base.z_score(f"z_{row.name}", f"z-{row.title}"),
    )


CHANCE_ROWS: tuple[RankMetric, ...] = (
    _MR.ratio(
        "amr",
        "AMR",
        "(0, 2)",
        reference=_BERRENDORF,
        averagings=(*_AVERAGED, "triple"),
        formula="MR / E[MR], E[MR] = sum w (c + 1) / 2 / sum w; unweighted 2 sum r / sum (c + 1)",
        caveats=(_OWN_COUNT, "The PyKEEN page prints a formula of the MRR for it."),
        pykeen=("adjusted_arithmetic_mean_rank", "adjusted_mean_rank", "aamr"),
    ),
    _MR.index(
        "amri",
        "AMRI",
        "[-1, 1]",
        reference=_BERRENDORF,
        averagings=(*_AVERAGED, "triple"),
        help="Adjusted mean rank index: 1 is perfect, 0 random, below 0 worse than random.",
        formula="1 - (MR - 1) / (E[MR] - 1), E[MR] = sum w (c + 1) / 2 / sum w; unweighted "
        "1 - 2 sum (r - 1) / sum (c - 1)",
        pykeen=("adjusted_arithmetic_mean_rank_index", "adjusted_mean_rank_index", "aamri"),
    ),
    _MR.z_score(
        "z_mr", "z-MR", pykeen=("z_arithmetic_mean_rank", "zamr", "zmr"), papers=("z_mean_rank",)
    ),
    _MRR.index(
        "adjusted_mrr",
        "adj. MRR",
        "[-1, 1]",
        formula="(MRR - E) / (1 - E), E = sum w H(c) / c / sum w, H(c) = 1 + 1/2 + ... + 1/c",
        pykeen=(
            "adjusted_inverse_harmonic_mean_rank",
            "adjusted_mean_reciprocal_rank",
            "amrr",
            "aihmr",
        ),
        papers=("adjusted_mrr_index",),
    ),
    _MRR.ratio("mrr_ratio", "MRR/E", "(0, 1/E]"),
    _MRR.z_score(
        "z_mrr",
        "z-MRR",
        pykeen=("z_inverse_harmonic_mean_rank", "zmrr", "zihmr"),
        papers=("z_mean_reciprocal_rank",),
    ),
    _MRR_CONTINUOUS.index(
        "adjusted_mrr_continuous",
        "adj. MRR (ln)",
        "[-1, 1]",
        help="As adjusted_mrr, with the PyKEEN page's approximation of E.",
        caveats=(
            "ln(c) / (c - 1) is for real-valued ranks and too small for whole ones (0.00066 "
            "instead of 0.00070 at c = 14,541): a random scorer gets more than 0. For comparison "
            "with published values only.",
        ),
    ),
    _MRR_CONTINUOUS.ratio(
        "mrr_ratio_continuous",
        "MRR/E (ln)",
        "(0, 1/E]",
        help="As mrr_ratio, with the PyKEEN page's approximation of E (its MRR*).",
        caveats=("For comparison with published values only: see adjusted_mrr_continuous.",),
        papers=("mrr*",),
    ),
    *_soft(_ROWS["log_mrr"], "1 / log2(r + 1)"),
    *_soft(_ROWS["p_mrr@p"], "r^-p"),
    _HITS.index(
        "adjusted_hits@k",
        "adj. Hits@{k}",
        "(-inf, 1]",
        pykeen=("adjusted_hits_at_k", "ahits@k", "ahits_at_k", "ah@k", "ah_at_k"),
    ),
    _HITS.ratio("hits_ratio@k", "Hits@{k}/E", "[0, 1/E]"),
    _HITS.z_score("z_hits@k", "z-Hits@{k}", pykeen=("z_hits_at_k", "zhits@k")),
    _GMR.ratio(
        "agmr",
        "AGMR",
        "(0, e)",
        papers=("adjusted_gmr", "adjusted_geometric_mean_rank", "gmr_ratio"),
    ),
    _GMR.index(
        "agmri", "AGMRI", "(1 - e, 1]", pykeen=("adjusted_geometric_mean_rank_index", "gmri")
    ),
    _GMR.z_score("z_gmr", "z-GMR", pykeen=("z_geometric_mean_rank", "zgmr")),
    _MEDIAN.ratio(
        "adjusted_median_rank",
        "median/E",
        "(0, 2)",
        averagings=("micro",),
        reference="after Hoyt et al. 2022, for the GMR",
    ),
    _MEDIAN.index(
        "adjusted_median_rank_index",
        "adj. median",
        "[-1, 1]",
        averagings=("micro",),
        reference="after Hoyt et al. 2022, for the GMR",
    ),
)
