"""Rows of the table: metrics adjusted for chance, as ratio, as index and as z-score."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kgtrec.measures import item_values, random_baseline
from kgtrec.measures.adjusting import (
    AVERAGED,
    HOYT,
    INDEPENDENT,
    LOW_END,
    NO_SPREAD,
    NOTHING_TO_RANK,
    OWN_COUNT,
    TIES,
    WEIGHTED,
    index,
    ratio,
    z_score,
)
from kgtrec.measures.metric import Metric, Moments
from kgtrec.measures.soft_rows import SOFT_ROWS

__all__ = ["CHANCE_ROWS"]

Floats = NDArray[np.float64]

_BERRENDORF = "Berrendorf et al. 2020"
_TRULY_GEOMETRIC = (
    "E[GMR] is the product of E[r_i^(w_i / W)], not exp(E[ln r]), which is a little less."
)


def _geometric(moments: Moments) -> Floats:
    return np.asarray(np.exp(moments.mean))


_MEAN_RANK_ROWS = (
    Metric(
        name="amr",
        title="AMR",
        help="Mean rank over that of a random scorer: 1 is random.",
        formula="MR / E[MR], E[MR] = sum w (c + 1) / 2 / sum w; unweighted 2 sum r / sum (c + 1)",
        caveats=(OWN_COUNT, "The PyKEEN page prints a formula of the MRR for it."),
        higher_is_better=False,
        range="(0, 2)",
        reference=_BERRENDORF,
        averagings=(*AVERAGED, "triple"),
        value=item_values.mean_rank,
        finish=ratio(),
        chance=random_baseline.mean_rank,
        pykeen=("adjusted_arithmetic_mean_rank", "adjusted_mean_rank", "aamr"),
    ),
    Metric(
        name="amri",
        title="AMRI",
        help="Adjusted mean rank index: 1 is perfect, 0 random, below 0 worse than random.",
        formula="1 - (MR - 1) / (E[MR] - 1), E[MR] = sum w (c + 1) / 2 / sum w; unweighted "
        "1 - 2 sum (r - 1) / sum (c - 1)",
        caveats=(OWN_COUNT, NOTHING_TO_RANK),
        higher_is_better=True,
        range="[-1, 1]",
        reference=_BERRENDORF,
        averagings=(*AVERAGED, "triple"),
        value=item_values.mean_rank,
        finish=index(),
        chance=random_baseline.mean_rank,
        pykeen=("adjusted_arithmetic_mean_rank_index", "adjusted_mean_rank_index", "aamri"),
    ),
    Metric(
        name="z_mr",
        title="z-MR",
        help="Mean rank in standard deviations of a random scorer's, better is higher.",
        formula="(E[MR] - MR) / sqrt(Var[MR]), Var[MR] = sum w^2 (c^2 - 1) / 12 / (sum w)^2",
        caveats=(OWN_COUNT, TIES, INDEPENDENT, NO_SPREAD),
        higher_is_better=True,
        range="(-inf, inf)",
        reference=HOYT,
        averagings=WEIGHTED,
        value=item_values.mean_rank,
        finish=z_score(-1.0),
        chance=random_baseline.mean_rank,
        pykeen=("z_arithmetic_mean_rank", "zamr", "zmr"),
        papers=("z_mean_rank",),
        digits=2,
    ),
)

_RECIPROCAL_ROWS = (
    Metric(
        name="adjusted_mrr",
        title="adj. MRR",
        help="MRR adjusted for chance: 1 is perfect, 0 random.",
        formula="(MRR - E) / (1 - E), E = sum w H(c) / c / sum w, H(c) = 1 + 1/2 + ... + 1/c",
        caveats=(OWN_COUNT, LOW_END, NOTHING_TO_RANK),
        higher_is_better=True,
        range="[-1, 1]",
        reference=HOYT,
        averagings=AVERAGED,
        value=item_values.reciprocal_rank,
        finish=index(),
        chance=random_baseline.reciprocal,
        pykeen=(
            "adjusted_inverse_harmonic_mean_rank",
            "adjusted_mean_reciprocal_rank",
            "amrr",
            "aihmr",
        ),
        papers=("adjusted_mrr_index",),
    ),
    Metric(
        name="mrr_ratio",
        title="MRR/E",
        help="MRR over that of a random scorer: 1 is random.",
        formula="MRR / E, E = sum w H(c) / c / sum w",
        caveats=(OWN_COUNT,),
        higher_is_better=True,
        range="(0, 1/E]",
        reference="Berrendorf et al. 2020, for the MR",
        averagings=AVERAGED,
        value=item_values.reciprocal_rank,
        finish=ratio(),
        chance=random_baseline.reciprocal,
        digits=2,
    ),
    Metric(
        name="z_mrr",
        title="z-MRR",
        help="MRR in standard deviations of a random scorer's.",
        formula="(MRR - E) / sqrt(Var), Var = sum w^2 (c H2(c) - H(c)^2) / c^2 / (sum w)^2, "
        "H2(c) = 1 + 1/4 + ... + 1/c^2",
        caveats=(OWN_COUNT, TIES, INDEPENDENT, NO_SPREAD),
        higher_is_better=True,
        range="(-inf, inf)",
        reference=HOYT,
        averagings=WEIGHTED,
        value=item_values.reciprocal_rank,
        finish=z_score(1.0),
        chance=random_baseline.reciprocal,
        pykeen=("z_inverse_harmonic_mean_rank", "zmrr", "zihmr"),
        papers=("z_mean_reciprocal_rank",),
        digits=2,
    ),
    Metric(
        name="adjusted_mrr_continuous",
        title="adj. MRR (ln)",
        help="As adjusted_mrr, with the PyKEEN page's approximation of E.",
        formula="(MRR - E) / (1 - E), E = sum w ln(c) / (c - 1) / sum w",
        caveats=(
            "ln(c) / (c - 1) is for real-valued ranks and too small for whole ones (0.00066 "
            "instead of 0.00070 at c = 14,541): a random scorer gets more than 0. For comparison "
            "with published values only.",
        ),
        higher_is_better=True,
        range="[-1, 1]",
        reference="PyKEEN, Understanding the Evaluation",
        averagings=AVERAGED,
        value=item_values.reciprocal_rank,
        finish=index(),
        chance=random_baseline.reciprocal_continuous,
    ),
    Metric(
        name="mrr_ratio_continuous",
        title="MRR/E (ln)",
        help="As mrr_ratio, with the PyKEEN page's approximation of E (its MRR*).",
        formula="MRR / E, E = sum w ln(c) / (c - 1) / sum w",
        caveats=("For comparison with published values only: see adjusted_mrr_continuous.",),
        higher_is_better=True,
        range="(0, 1/E]",
        reference="PyKEEN, Understanding the Evaluation",
        averagings=AVERAGED,
        value=item_values.reciprocal_rank,
        finish=ratio(),
        chance=random_baseline.reciprocal_continuous,
        papers=("mrr*",),
        digits=2,
    ),
)

_HITS_ROWS = (
    Metric(
        name="adjusted_hits@k",
        title="adj. Hits@{k}",
        help="Hits@k adjusted for chance: 1 is perfect, 0 random.",
        formula="(Hits@k - E) / (1 - E), E = sum w min(k / c, 1) / sum w",
        caveats=(OWN_COUNT, LOW_END, NOTHING_TO_RANK),
        higher_is_better=True,
        range="(-inf, 1]",
        reference=HOYT,
        averagings=AVERAGED,
        value=item_values.hits,
        finish=index(),
        chance=random_baseline.hits,
        pykeen=("adjusted_hits_at_k", "ahits@k", "ahits_at_k", "ah@k", "ah_at_k"),
    ),
    Metric(
        name="hits_ratio@k",
        title="Hits@{k}/E",
        help="Hits@k over that of a random scorer: 1 is random.",
        formula="Hits@k / E, E = sum w min(k / c, 1) / sum w",
        caveats=(OWN_COUNT,),
        higher_is_better=True,
        range="[0, 1/E]",
        reference="Berrendorf et al. 2020, for the MR",
        averagings=AVERAGED,
        value=item_values.hits,
        finish=ratio(),
        chance=random_baseline.hits,
        digits=2,
    ),
    Metric(
        name="z_hits@k",
        title="z-Hits@{k}",
        help="Hits@k in standard deviations of a random scorer's.",
        formula="(Hits@k - E) / sqrt(Var), Var = sum w^2 p (1 - p) / (sum w)^2, p = min(k / c, 1)",
        caveats=(OWN_COUNT, TIES, INDEPENDENT, NO_SPREAD),
        higher_is_better=True,
        range="(-inf, inf)",
        reference=HOYT,
        averagings=WEIGHTED,
        value=item_values.hits,
        finish=z_score(1.0),
        chance=random_baseline.hits,
        pykeen=("z_hits_at_k", "zhits@k"),
        digits=2,
    ),
)

_GEOMETRIC_ROWS = (
    Metric(
        name="agmr",
        title="AGMR",
        help="Geometric mean rank over that of a random scorer: 1 is random.",
        formula="GMR / E[GMR], E[GMR] = product of E[r_i^(w_i / W)]",
        caveats=(OWN_COUNT, _TRULY_GEOMETRIC),
        higher_is_better=False,
        range="(0, e)",
        reference="Berrendorf et al. 2020, for the MR",
        averagings=AVERAGED,
        value=item_values.log_rank,
        finish=ratio(_geometric),
        chance=random_baseline.geometric,
        papers=("adjusted_gmr", "adjusted_geometric_mean_rank", "gmr_ratio"),
    ),
    Metric(
        name="agmri",
        title="AGMRI",
        help="Geometric mean rank adjusted for chance: 1 is perfect, 0 random.",
        formula="1 - (GMR - 1) / (E[GMR] - 1), E[GMR] = product of E[r_i^(w_i / W)]",
        caveats=(OWN_COUNT, _TRULY_GEOMETRIC, NOTHING_TO_RANK),
        higher_is_better=True,
        range="(1 - e, 1]",
        reference=HOYT,
        averagings=AVERAGED,
        value=item_values.log_rank,
        finish=index(_geometric),
        chance=random_baseline.geometric,
        pykeen=("adjusted_geometric_mean_rank_index", "gmri"),
    ),
    Metric(
        name="z_gmr",
        title="z-GMR",
        help="Geometric mean rank in standard deviations of a random scorer's, better is higher.",
        formula="(E[GMR] - GMR) / sqrt(Var[GMR]), "
        "Var[GMR] = product of E[r_i^(2 w_i / W)] - E[GMR]^2",
        caveats=(OWN_COUNT, _TRULY_GEOMETRIC, TIES, INDEPENDENT, NO_SPREAD),
        higher_is_better=True,
        range="(-inf, inf)",
        reference=HOYT,
        averagings=WEIGHTED,
        value=item_values.log_rank,
        finish=z_score(-1.0, _geometric),
        chance=random_baseline.geometric,
        pykeen=("z_geometric_mean_rank", "zgmr"),
        digits=2,
    ),
)


CHANCE_ROWS: tuple[Metric, ...] = (
    *_MEAN_RANK_ROWS,
    *_RECIPROCAL_ROWS,
    *SOFT_ROWS,
    *_HITS_ROWS,
    *_GEOMETRIC_ROWS,
)
