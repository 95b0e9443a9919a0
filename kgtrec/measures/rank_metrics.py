"""Rows of the table: means of the rank, and of functions of the rank."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kgtrec.measures import dispersion, item_values, random_baseline
from kgtrec.measures.metric import Metric, Moments

__all__ = ["INSTANCES", "RANK_ROWS", "SPREAD_ROWS"]

Floats = NDArray[np.float64]

INSTANCES = ("micro", "question", "relation", "triple", "macro_relation")
_MEANS = ("micro", "macro", "question", "relation", "triple", "macro_relation", "stratified")
_UNLIKE_MACRO = tuple(name for name in _MEANS if name != "macro")
_PYKEEN = "PyKEEN, Understanding the Evaluation"
_HOYT = "Hoyt et al. 2022"
_OPEN_WORLD = "Yang et al. 2022, section 5"
_REALISTIC_HALF = "A realistic rank can end in a half: 10.5 is not a hit at 10."
_GROWS = "Grows with the number of candidates: compare {} across graphs."


def _exp(moments: Moments) -> Floats:
    return np.asarray(np.exp(moments.mean))


def _inverse_exp(moments: Moments) -> Floats:
    return np.asarray(np.exp(-moments.mean))


def _inverse(moments: Moments) -> Floats:
    return 1.0 / moments.mean


def _inverse_median(moments: Moments) -> Floats:
    return 1.0 / dispersion.median(moments)


def _total(moments: Moments) -> Floats:
    return moments.total.astype(np.float64)


RANK_ROWS: tuple[Metric, ...] = (
    Metric(
        name="mr",
        title="MR",
        help="Mean rank.",
        formula="sum w r / sum w",
        caveats=(_GROWS.format("AMR or AMRI"), "A few very deep ranks decide it."),
        higher_is_better=False,
        range="[1, candidates]",
        reference="Bordes et al. 2013",
        averagings=_MEANS,
        value=item_values.mean_rank,
        chance=random_baseline.mean_rank,
        pykeen=("arithmetic_mean_rank", "mean_rank"),
        libkge=("mean_rank",),
        digits=2,
    ),
    Metric(
        name="mrr",
        title="MRR",
        help="Mean of 1/rank. Macro: of the first answer, which is trec_eval's recip_rank over "
        "the full list.",
        formula="sum w (1/r) / sum w",
        caveats=(
            "The first few places decide it: rank 1 or 2 differ as much as 2 or never.",
            "Falls with the number of candidates: compare adjusted_mrr across graphs.",
        ),
        higher_is_better=True,
        range="(0, 1]",
        reference="Voorhees 1999",
        averagings=_MEANS,
        value=item_values.reciprocal_rank,
        chance=random_baseline.reciprocal,
        pykeen=("inverse_harmonic_mean_rank", "mean_reciprocal_rank"),
        libkge=("mean_reciprocal_rank",),
    ),
    Metric(
        name="hits@k",
        title="Hits@{k}",
        help="Share of ranks up to k.",
        formula="sum w [r <= k] / sum w",
        caveats=(_REALISTIC_HALF, "Ranks k + 1 and k + 1,000,000 count alike."),
        higher_is_better=True,
        range="[0, 1]",
        reference="Bordes et al. 2013",
        averagings=_MEANS,
        value=item_values.hits,
        chance=random_baseline.hits,
        pykeen=("hits_at_k", "hits.k", "h@k", "h_at_k"),
        libkge=("hits_at_k",),
        papers=("hits_k", "hit@k"),
    ),
    Metric(
        name="gmr",
        title="GMR",
        help="Geometric mean rank.",
        formula="exp(sum w ln r / sum w)",
        caveats=(
            "Expected: exp of the expectation of ln r, a little below the expectation of GMR.",
            _GROWS.format("agmri"),
        ),
        higher_is_better=False,
        range="[1, candidates]",
        reference=_HOYT,
        averagings=INSTANCES,
        value=item_values.log_rank,
        finish=_exp,
        chance=random_baseline.geometric,
        pykeen=("geometric_mean_rank",),
        digits=2,
    ),
    Metric(
        name="igmr",
        title="IGMR",
        help="1 / GMR, the inverse of the geometric mean rank.",
        formula="exp(-sum w ln r / sum w)",
        caveats=("The PyKEEN page prints the formula of GMR for it.",),
        higher_is_better=True,
        range="(0, 1]",
        reference=_HOYT,
        averagings=INSTANCES,
        value=item_values.log_rank,
        finish=_inverse_exp,
        pykeen=("inverse_geometric_mean_rank",),
    ),
    Metric(
        name="hmr",
        title="HMR",
        help="Harmonic mean rank, 1 / MRR.",
        formula="sum w / sum (w / r)",
        caveats=("Expected: 1 / the expectation of MRR.",),
        higher_is_better=False,
        range="[1, candidates]",
        reference=_HOYT,
        averagings=INSTANCES,
        value=item_values.reciprocal_rank,
        finish=_inverse,
        pykeen=("harmonic_mean_rank",),
    ),
    Metric(
        name="imr",
        title="IMR",
        help="1 / MR, the inverse of the mean rank.",
        formula="sum w / sum w r",
        higher_is_better=True,
        range="(0, 1]",
        reference=_HOYT,
        averagings=INSTANCES,
        value=item_values.mean_rank,
        finish=_inverse,
        pykeen=("inverse_arithmetic_mean_rank", "iamr"),
    ),
    Metric(
        name="log_mrr",
        title="log-MRR",
        help="Mean of 1 / log2(rank + 1): a softer MRR, whose lower places still count.",
        formula="sum w / log2(r + 1) / sum w",
        caveats=(
            "Its paper averages inside a question first, then over questions: that is the "
            "averaging `question`; micro counts every instance once.",
        ),
        higher_is_better=True,
        range="(0, 1]",
        reference=_OPEN_WORLD,
        averagings=_UNLIKE_MACRO,
        value=item_values.reciprocal_log_rank,
        chance=random_baseline.reciprocal_log,
        papers=("log-mrr", "logmrr"),
    ),
    Metric(
        name="p_mrr@p",
        title="{p}-MRR",
        help="Mean of rank^-p, 0 < p < 1: softer than MRR (p = 1), the more so the smaller p.",
        formula="sum w r^-p / sum w",
        caveats=(
            "Its paper averages inside a question first, then over questions: that is the "
            "averaging `question`; micro counts every instance once.",
        ),
        higher_is_better=True,
        range="(0, 1]",
        reference=_OPEN_WORLD,
        averagings=_UNLIKE_MACRO,
        value=item_values.power_of_rank,
        chance=random_baseline.power,
        papers=("p-mrr@p", "pmrr@p"),
    ),
)

_POOLED = (
    "Expected: of the pooled ranks, every item's weight spread evenly over the ranks that its tie "
    "allows."
)

SPREAD_ROWS: tuple[Metric, ...] = (
    Metric(
        name="median_rank",
        title="median",
        help="Median rank.",
        formula="the least r with half of the weight up to it; the midpoint with the next r where "
        "that is exactly half",
        caveats=(_POOLED,),
        higher_is_better=False,
        range="[1, candidates]",
        reference=_HOYT,
        averagings=INSTANCES,
        value=item_values.mean_rank,
        finish=dispersion.median,
        papers=("median", "mdr"),
        digits=1,
    ),
    Metric(
        name="inverse_median_rank",
        title="1/median",
        help="1 / median rank.",
        formula="1 / median_rank",
        caveats=(_POOLED,),
        higher_is_better=True,
        range="(0, 1]",
        reference=_HOYT,
        averagings=INSTANCES,
        value=item_values.mean_rank,
        finish=_inverse_median,
    ),
    Metric(
        name="std",
        title="std",
        help="Standard deviation of the ranks (not of a metric: that is what z-scores use).",
        formula="sqrt(var)",
        caveats=("Expected: the root of the expected variance.",),
        higher_is_better=None,
        range="[0, (candidates - 1) / 2]",
        reference=_PYKEEN,
        averagings=INSTANCES,
        value=item_values.mean_rank,
        finish=dispersion.deviation,
        pykeen=("standard_deviation", "rank_std"),
        digits=2,
    ),
    Metric(
        name="var",
        title="var",
        help="Variance of the ranks.",
        formula="sum w (r - MR)^2 / sum w",
        caveats=(
            "Divided by the number of ranks, not by one less.",
            "Expected: the exact expectation over all ways to break the ties independently.",
        ),
        higher_is_better=None,
        range="[0, ((candidates - 1) / 2)^2]",
        reference=_PYKEEN,
        averagings=INSTANCES,
        value=item_values.mean_rank,
        finish=dispersion.variance,
        pykeen=("variance", "rank_var"),
        digits=1,
    ),
    Metric(
        name="mad",
        title="MAD",
        help="Median absolute deviation of the ranks from their median, on the scale of a standard "
        "deviation.",
        formula="1.4826 median |r - median_rank|",
        caveats=(
            "The factor 1.4826 makes it the standard deviation where values are normal, as ranks "
            "are not; PyKEEN leaves it out as soon as there are weights.",
            _POOLED,
        ),
        higher_is_better=None,
        range="[0, 1.4826 (candidates - 1)]",
        reference=_PYKEEN,
        averagings=INSTANCES,
        value=item_values.mean_rank,
        finish=dispersion.median_deviation,
        pykeen=("median_absolute_deviation", "rank_mad"),
        digits=2,
    ),
    Metric(
        name="count",
        title="count",
        help="Number of instances; the rank type makes no difference.",
        formula="sum 1",
        higher_is_better=None,
        range="[1, inf)",
        reference=_PYKEEN,
        averagings=("micro",),
        value=item_values.one,
        finish=_total,
        pykeen=("rank_count",),
        digits=0,
    ),
)
