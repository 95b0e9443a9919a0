"""Metrics of ranks: the value per item, order statistics and spread, and the rows of the table.

Under ties, ``expected`` medians are those of the pooled ranks: every item's weight is spread evenly
over the ranks that its tie allows. The variance is the exact expectation over all ways to break the
ties, each independently.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from kgtrec._internal.arrays import Float64
from kgtrec.measures import random_baseline
from kgtrec.measures.metric import GroupMoments, RankMetric, inverse, inverse_exp
from kgtrec.measures.sampled_hits import sampled_hits
from kgtrec.measures.ties import (
    Ranked,
    Scaled,
    Ties,
    expected_hits,
    expected_log_rank,
    expected_reciprocal,
)


def _rank(ties: Ranked, rank_type: str) -> Float64:
    """Return the ranks of the items, float64 (n,)."""
    scaled, scale = ties.ranks(rank_type)
    return np.asarray(scaled / scale)


def mean_rank(ties: Ranked, rank_type: str, parameter: float) -> Scaled:
    """Return the rank of each item.

    Expected: the realistic rank, or the exact mean of a question's first answer.
    """
    return ties.ranks(rank_type)


def _smooth(
    ties: Ranked,
    rank_type: str,
    f: Callable[[Float64], Float64],
    exact: Callable[[Ties], Float64] | None = None,
) -> Scaled:
    """Compute a smooth function of the rank; `exact` is a faster mean over the ranks of one tie."""
    if rank_type != "expected":
        return Scaled(f(_rank(ties, rank_type)), 1)
    if exact is not None and isinstance(ties, Ties):
        return Scaled(exact(ties), 1)
    return Scaled(ties.mean_of(f), 1)


def reciprocal_rank(ties: Ranked, rank_type: str, parameter: float) -> Scaled:
    """Compute 1/rank."""
    return _smooth(
        ties,
        rank_type,
        np.reciprocal,
        lambda ties: expected_reciprocal(ties.greater, ties.size, ties.answers),
    )


def reciprocal_within(ties: Ranked, rank_type: str, k: float) -> Scaled:
    """Compute 1/rank if rank <= k, else 0; 0 for answers beyond the end of their lists."""
    assert isinstance(ties, Ties)
    if rank_type == "expected":
        inside = np.clip(int(min(k, 1 << 60)) - ties.greater, 0, ties.size)
        mean = expected_reciprocal(ties.greater, np.maximum(inside, 1), ties.answers)
        values = mean * (inside / ties.size)
    else:
        rank = _rank(ties, rank_type)
        values = np.where(rank <= k, 1.0 / rank, 0.0)
    return Scaled(values if ties.unlisted is None else np.where(ties.unlisted, 0.0, values), 1)


def listed_reciprocal(ties: Ranked, rank_type: str, parameter: float) -> Scaled:
    """Compute 1/rank; 0 for answers beyond the end of their lists."""
    assert isinstance(ties, Ties)
    values = reciprocal_rank(ties, rank_type, parameter).scaled
    return Scaled(values if ties.unlisted is None else np.where(ties.unlisted, 0.0, values), 1)


def hits(ties: Ranked, rank_type: str, k: float) -> Scaled:
    """Return 1 if rank <= k, else 0; expected: the probability of rank <= k."""
    k = int(min(k, 1 << 60))  # 4k must fit int64
    if rank_type != "expected":
        scaled, scale = ties.ranks(rank_type)
        return Scaled((scaled <= k * scale).astype(np.int64), 1)
    if isinstance(ties, Ties):
        return Scaled(expected_hits(ties.greater, ties.size, ties.answers, k), 1)
    return Scaled(ties.share_within(4 * k), 1)


def log_rank(ties: Ranked, rank_type: str, parameter: float) -> Scaled:
    """Compute the natural logarithm of the rank; one answer per tie."""
    return _smooth(ties, rank_type, np.log, lambda ties: expected_log_rank(ties.greater, ties.size))


def reciprocal_log_rank(ties: Ranked, rank_type: str, parameter: float) -> Scaled:
    """Compute 1 / log2(rank + 1); one answer per tie."""
    return _smooth(ties, rank_type, lambda rank: 1.0 / np.log2(rank + 1.0))


def power_of_rank(ties: Ranked, rank_type: str, p: float) -> Scaled:
    """Compute rank ** -p; one answer per tie."""
    return _smooth(ties, rank_type, lambda rank: rank**-p)


def min_max_power(ties: Ranked, rank_type: str, a: float) -> Scaled:
    """Compute (r^-a - c^-a) / (1 - c^-a); for a = 0 its limit 1 - ln r / ln c; 1 for c = 1.

    With y(x) = expm1(-a ln x) it is 1 - y(r) / y(c), which keeps its digits for small a. The
    expectation follows from that of y(r).
    """
    assert isinstance(ties, Ties)
    assert ties.candidates is not None
    logs = np.log(ties.candidates.astype(np.float64))
    if a:
        lost = _smooth(ties, rank_type, lambda rank: np.expm1(-a * np.log(rank))).scaled
        most = np.expm1(-a * logs)
    else:
        lost, most = log_rank(ties, rank_type, a).scaled, logs
    return Scaled(1.0 - lost / np.where(most == 0, 1.0, most), 1)


def log_rank_by_candidates(ties: Ranked, rank_type: str, parameter: float) -> Scaled:
    """Compute the natural logarithm of the rank, times the number of other candidates."""
    return Scaled(other_candidates(ties).scaled * log_rank(ties, rank_type, parameter).scaled, 1)


def other_candidates(ties: Ranked) -> Scaled:
    """Count the candidates of every item other than its answer."""
    assert isinstance(ties, Ties)
    assert ties.candidates is not None
    return Scaled(ties.candidates - 1, 1)


def geometric_by_candidates(moments: GroupMoments) -> Float64:
    """Compute exp of the mean of ln r, each weighted by its number of other candidates.

    NaN if there are no other candidates.
    """
    weight = moments.weighing.mean(
        "other candidates", lambda ties, _: other_candidates(ties), moments.groups
    )
    return np.exp(
        np.divide(moments.mean, weight, out=np.full(len(weight), np.nan), where=weight > 0)
    )


def constant_one(ties: Ranked, rank_type: str, parameter: float) -> Scaled:
    """Return 1 for every item."""
    return Scaled(np.ones(len(ties), np.int64), 1)


TO_DEVIATION = 1.482602218505602
"""1 / (third quartile of the standard normal): makes the MAD of normal values their deviation."""
_ROUNDING = 1e-12


def median(moments: GroupMoments) -> Float64:
    """Compute the median rank per group."""
    return _medians(moments)[0]


def median_deviation(moments: GroupMoments) -> Float64:
    """Compute the median absolute deviation from the median rank, times `TO_DEVIATION`."""
    return TO_DEVIATION * _medians(moments, distances=True)[1]


def _medians(moments: GroupMoments, distances: bool = False) -> Float64:
    """Compute the median rank per group and, for `distances`, the median distance from it.

    Returns float64 (2, groups).
    """
    medians = []
    for ties, weight in moments.items():
        if moments.rank_type == "expected":
            middle = _median_of_pooled_ranks(ties, weight)
            off = _median_of_pooled_ranks(ties, weight, around=int(middle)) if distances else 0.0
            medians.append((middle / 4, off / 4))
        else:
            ranks = _rank(ties, moments.rank_type)
            center = _median(ranks, weight)
            off = _median(np.abs(ranks - center), weight) if distances else 0.0
            medians.append((center, off))
    return np.array(medians).reshape(-1, 2).T


def variance(moments: GroupMoments) -> Float64:
    """Compute the variance of the ranks, divided by the sum of the weights (not by n - 1)."""
    variances = []
    for ties, weight in moments.items():
        shares = np.full(len(ties), 1 / len(ties)) if weight is None else weight / weight.sum()
        ranks = _rank(ties, moments.rank_type)
        value = (shares * (ranks - (shares * ranks).sum()) ** 2).sum()
        if moments.rank_type == "expected":
            value += (shares * (1 - shares) * ties.variance()).sum()
        variances.append(value)
    return np.array(variances)


def _median(values: Float64, weight: Float64 | None) -> float:
    """Find the least value with half of the weight up to it.

    At exactly half, it is the midpoint between this value and the next.
    """
    if weight is None:
        return float(np.median(values))
    order = np.argsort(values, kind="stable")
    share = np.cumsum(weight[order])
    half = share[-1] / 2
    low, high = (
        np.searchsorted(share, half * (1 + side * _ROUNDING), side="left") for side in (-1, 1)
    )
    return float(values[order[low]] + values[order[high]]) / 2


def _median_of_pooled_ranks(
    ties: Ranked, weight: Float64 | None, around: int | None = None
) -> float:
    """Find the median of the pooled ranks, or of their distance from `around`.

    The result is in quarters of a rank.
    """
    weights = np.ones(len(ties)) if weight is None else weight
    total = weights.sum()

    def share(quarters: int) -> float:
        if around is None:
            inside = ties.share_within(quarters)
        else:
            inside = ties.share_within(around + quarters)
            inside = inside - ties.share_within(around - quarters - 1)
        return float((weights * inside).sum() / total)

    scaled, scale = ties.ranks("pessimistic")
    top = int(scaled.max()) * 4 // scale
    low, high = (_first(share, 0.5 + side * _ROUNDING, top) for side in (-1, 1))
    return (low + high) / 2


def _first(share: Callable[[int], float], least: float, top: int) -> int:
    """Find the least number in 0 .. top whose share reaches `least`."""
    low, high = 0, top
    while low < high:
        middle = (low + high) // 2
        if share(middle) >= least:
            high = middle
        else:
            low = middle + 1
    return low


INSTANCES = ("micro", "question", "relation", "triple", "macro_relation")
_MEANS = ("micro", "macro", "question", "relation", "triple", "macro_relation", "stratified")
_PER_ANSWER = tuple(name for name in INSTANCES if name != "triple")
_UNLIKE_MACRO = tuple(name for name in _MEANS if name != "macro")
_PYKEEN = "PyKEEN, Understanding the Evaluation"
_HOYT = "Hoyt et al. 2022"
_OPEN_WORLD = "Yang et al. 2022, section 5"
_REALISTIC_HALF = "A realistic rank can end in a half: 10.5 is not a hit at 10."
_GROWS = "Grows with the number of candidates: compare {} across graphs."


_pythagorean = partial(RankMetric, averagings=INSTANCES, reference=_HOYT)
_PROBE = "Moon and Ko 2026 (PROBE), arXiv 2512.06296"
_soft = partial(
    RankMetric,
    caveats=(
        "Its paper averages inside a question first, then over questions: that is the averaging "
        "`question`; micro counts every instance once.",
    ),
    higher_is_better=True,
    range="(0, 1]",
    reference=_OPEN_WORLD,
    averagings=_UNLIKE_MACRO,
)

RANK_ROWS: tuple[RankMetric, ...] = (
    RankMetric(
        name="mr",
        title="MR",
        help="Mean rank.",
        formula="sum w r / sum w",
        caveats=(_GROWS.format("AMR or AMRI"), "A few very deep ranks decide it."),
        higher_is_better=False,
        range="[1, candidates]",
        reference="Bordes et al. 2013",
        averagings=_MEANS,
        value=mean_rank,
        chance=random_baseline.mean_rank,
        pykeen=("arithmetic_mean_rank", "mean_rank"),
        libkge=("mean_rank",),
        digits=2,
    ),
    RankMetric(
        name="mrr",
        title="MRR",
        help="Mean of 1/rank. Macro: of the first answer, which is trec_eval's recip_rank over "
        "the full list.",
        formula="sum w (1/r) / sum w",
        caveats=(
            "The first few places decide it: ranks 1 and 2 differ as much as 2 and infinity.",
            "Falls with the number of candidates: compare adjusted_mrr across graphs.",
        ),
        higher_is_better=True,
        range="(0, 1]",
        reference="Voorhees 1999",
        averagings=_MEANS,
        value=reciprocal_rank,
        chance=random_baseline.reciprocal,
        pykeen=("inverse_harmonic_mean_rank", "mean_reciprocal_rank"),
        libkge=("mean_reciprocal_rank",),
    ),
    RankMetric(
        name="hits@k",
        title="Hits@{k}",
        help="Share of ranks up to k.",
        formula="sum w [r <= k] / sum w",
        caveats=(_REALISTIC_HALF, "Ranks k + 1 and k + 1,000,000 count alike."),
        higher_is_better=True,
        range="[0, 1]",
        reference="Bordes et al. 2013",
        averagings=_MEANS,
        value=hits,
        chance=random_baseline.hits,
        pykeen=("hits_at_k", "hits.k", "h@k", "h_at_k"),
        libkge=("hits_at_k",),
        papers=("hits_k", "hit@k"),
    ),
    RankMetric(
        name="hits@k_n",
        title="Hits@{k}_{n}",
        help="Expected Hits@k if the answer is ranked among itself and n - 1 negatives drawn at "
        "random: the hits@10_50 of NBFNet and ULTRA, without drawing.",
        formula="sum w P(X < k) / sum w, X binomial: n - 1 draws, each above the answer with "
        "probability (r - 1) / (c - 1); c = 1: 1",
        caveats=(
            "n counts the answer too: hits@10_50 draws 49 negatives.",
            "A negative may be drawn twice, as in their code. Distinct negatives give nearly the "
            "same if c is much greater than n.",
            "Their ranks are pessimistic: a negative with the answer's score is above it.",
        ),
        higher_is_better=True,
        range="[0, 1]",
        reference="Zhu et al. 2021 (NBFNet)",
        averagings=(*_PER_ANSWER, "stratified"),
        value=sampled_hits,
        uses_candidates=True,
    ),
    RankMetric(
        name="listed_mrr",
        title="listed MRR",
        help="MRR in which an answer beyond the end of its predicted list counts 0. Ranks of "
        "scores have no such answers: it is then the MRR.",
        formula="sum w [listed] (1/r) / sum w",
        caveats=(
            "It grows with the length of the lists: name their length with it.",
            "Lists are filtered by the graph first, so r counts the candidates that are left.",
        ),
        higher_is_better=True,
        range="[0, 1]",
        reference="Meilicke et al. 2019 (AnyBURL)",
        averagings=(*_PER_ANSWER, "stratified"),
        value=listed_reciprocal,
        counts_listed=True,
    ),
    RankMetric(
        name="mrr_within@k",
        title="MRR within {k}",
        help="Mean of 1/rank where ranks beyond k count 0, and so do answers beyond the end of "
        "their predicted lists.",
        formula="sum w [listed and r <= k] (1/r) / sum w",
        caveats=(
            "For questions instead of answers: recip_rank_cut, also written RR@k.",
            "AnyBURL prints an interval: mrr_within@10 is its lower end, and (1 - hits@10) / 11 "
            "more its upper one. AnyBURL looks at the first 10 lines of a list, before the filter.",
        ),
        higher_is_better=True,
        range="[0, 1]",
        reference="Meilicke et al. 2019 (AnyBURL)",
        averagings=(*_PER_ANSWER, "stratified"),
        value=reciprocal_within,
        counts_listed=True,
    ),
    _pythagorean(
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
        value=log_rank,
        of_mean=np.exp,
        chance=random_baseline.geometric,
        pykeen=("geometric_mean_rank",),
        digits=2,
    ),
    _pythagorean(
        name="igmr",
        title="IGMR",
        help="1 / GMR, the inverse of the geometric mean rank.",
        formula="exp(-sum w ln r / sum w)",
        caveats=("The PyKEEN page prints the formula of GMR for it.",),
        higher_is_better=True,
        range="(0, 1]",
        value=log_rank,
        of_mean=inverse_exp,
        base="gmr",
        pykeen=("inverse_geometric_mean_rank",),
    ),
    _pythagorean(
        name="hmr",
        title="HMR",
        help="Harmonic mean rank, 1 / MRR.",
        formula="sum w / sum (w / r)",
        caveats=("Expected: 1 / the expectation of MRR.",),
        higher_is_better=False,
        range="[1, candidates]",
        value=reciprocal_rank,
        of_mean=inverse,
        base="mrr",
        pykeen=("harmonic_mean_rank",),
    ),
    _pythagorean(
        name="imr",
        title="IMR",
        help="1 / MR, the inverse of the mean rank.",
        formula="sum w / sum w r",
        higher_is_better=True,
        range="(0, 1]",
        value=mean_rank,
        of_mean=inverse,
        base="mr",
        pykeen=("inverse_arithmetic_mean_rank", "iamr"),
    ),
    _soft(
        name="log_mrr",
        title="log-MRR",
        help="Mean of 1 / log2(rank + 1): a softer MRR, whose lower places still count.",
        formula="sum w / log2(r + 1) / sum w",
        value=reciprocal_log_rank,
        chance=random_baseline.reciprocal_log,
        papers=("log-mrr", "logmrr"),
    ),
    _soft(
        name="p_mrr@p",
        title="{p}-MRR",
        help="Mean of rank^-p, 0 < p < 1: softer than MRR (p = 1), the more so the smaller p.",
        formula="sum w r^-p / sum w",
        value=power_of_rank,
        chance=random_baseline.power,
        papers=("p-mrr@p", "pmrr@p"),
    ),
    RankMetric(
        name="probe@a",
        title="PROBE@{a}",
        help="Mean of the score of a rank, 1 for the first and 0 for the last of c candidates; "
        "the greater the sharpness a, the more the first places decide.",
        formula="sum w (r^-a - c^-a) / (1 - c^-a) / sum w; a = 0: 1 - ln r / ln c; c = 1: 1",
        caveats=(
            "Its weights by popularity, with exponents b and c: kgtrec stratify --vary b.",
            "a = 1 is close to MRR, and a = -1 is linear in the rank: (c - r) / (c - 1).",
        ),
        higher_is_better=True,
        range="[0, 1]",
        reference=_PROBE,
        averagings=(*_PER_ANSWER, "stratified"),
        value=min_max_power,
        uses_candidates=True,
    ),
    RankMetric(
        name="wgmr",
        title="WMR",
        help="Weighted geometric mean rank: an instance weighs as much as it has candidates "
        "besides the answer.",
        formula="exp(sum w (c - 1) ln r / sum w (c - 1))",
        caveats=(
            "Expected: exp of the expectation, as for gmr.",
            "NaN where no instance has a candidate besides the answer.",
        ),
        higher_is_better=False,
        range="[1, candidates]",
        reference="Tiwari et al. 2021, WWW",
        averagings=_PER_ANSWER,
        value=log_rank_by_candidates,
        of_mean=None,
        from_moments=geometric_by_candidates,
        base="gmr",
        uses_candidates=True,
        papers=("wmr", "weighted_geometric_mean_rank"),
        digits=2,
    ),
)

_POOLED = (
    "Expected: of the pooled ranks, every item's weight spread evenly over the ranks that its tie "
    "allows."
)

_spread = partial(RankMetric, averagings=INSTANCES, value=mean_rank, of_mean=None, base="mr")

SPREAD_ROWS: tuple[RankMetric, ...] = (
    _spread(
        name="median_rank",
        title="median",
        help="Median rank.",
        formula="the least r with half of the weight up to it; the midpoint with the next r where "
        "that is exactly half",
        caveats=(_POOLED,),
        higher_is_better=False,
        range="[1, candidates]",
        reference=_HOYT,
        from_moments=median,
        papers=("median", "mdr"),
        digits=1,
    ),
    _spread(
        name="inverse_median_rank",
        title="1/median",
        help="1 / median rank.",
        formula="1 / median_rank",
        caveats=(_POOLED,),
        higher_is_better=True,
        range="(0, 1]",
        reference=_HOYT,
        from_moments=lambda moments: 1.0 / median(moments),
    ),
    _spread(
        name="std",
        title="std",
        help="Standard deviation of the ranks (not of a metric: that is what z-scores use).",
        formula="sqrt(var)",
        caveats=("Expected: the root of the expected variance.",),
        higher_is_better=None,
        range="[0, (candidates - 1) / 2]",
        reference=_PYKEEN,
        from_moments=lambda moments: np.sqrt(variance(moments)),
        pykeen=("standard_deviation", "rank_std"),
        digits=2,
    ),
    _spread(
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
        from_moments=variance,
        pykeen=("variance", "rank_var"),
        digits=1,
    ),
    _spread(
        name="mad",
        title="MAD",
        help="Median absolute deviation of the ranks from their median, on the scale of a standard "
        "deviation.",
        formula="1.4826 median |r - median_rank|",
        caveats=(
            "The factor 1.4826 makes it the standard deviation where values are normal, as ranks "
            "are not; PyKEEN 1.11.1 leaves it out as soon as there are weights.",
            _POOLED,
        ),
        higher_is_better=None,
        range="[0, 1.4826 (candidates - 1)]",
        reference=_PYKEEN,
        from_moments=median_deviation,
        pykeen=("median_absolute_deviation", "rank_mad"),
        digits=2,
    ),
    RankMetric(
        name="count",
        title="count",
        help="Number of instances; the rank type makes no difference.",
        formula="sum 1",
        higher_is_better=None,
        range="[1, inf)",
        reference=_PYKEEN,
        averagings=("micro",),
        value=constant_one,
        of_mean=None,
        from_moments=lambda moments: moments.total.astype(np.float64),
        pykeen=("rank_count",),
        digits=0,
    ),
)
