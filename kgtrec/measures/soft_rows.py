"""Rows of the table: log-MRR and p-MRR, adjusted for chance like the MRR."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kgtrec.measures import item_values, random_baseline
from kgtrec.measures.adjusting import (
    AVERAGED,
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
from kgtrec.measures.metric import Metric
from kgtrec.measures.tied_ranks import Ranked, Values

__all__ = ["SOFT_ROWS"]


def _rows(
    name: str,
    title: str,
    term: str,
    value: Callable[[Ranked, str, float], Values],
    chance_of: random_baseline.ChanceOf,
) -> tuple[Metric, ...]:
    """Ratio, index and z-score of a metric in [0, 1] that weighs lower places more than MRR."""
    stem, at, parameter = name.partition("@")
    what = title.replace("{p}", "p")
    mean = f"E = sum w E[{term}] / sum w, r uniform on 1 .. c"

    def row(prefix: str, ending: str, **own: Any) -> Metric:
        return Metric(
            name=f"{prefix}{stem}{ending}{at}{parameter}",
            higher_is_better=True,
            reference="after Hoyt et al. 2022, for the MRR",
            value=value,
            chance=chance_of,
            **own,
        )

    return (
        row(
            "adjusted_", "", title=f"adj. {title}", finish=index(), averagings=AVERAGED,
            help=f"{what} adjusted for chance: 1 is perfect, 0 random.", range="(-inf, 1]",
            formula=f"({what} - E) / (1 - E), {mean}",
            caveats=(OWN_COUNT, LOW_END, NOTHING_TO_RANK),
        ),
        row(
            "", "_ratio", title=f"{title}/E", finish=ratio(), averagings=AVERAGED, digits=2,
            help=f"{what} over that of a random scorer: 1 is random.", range="(0, 1/E]",
            formula=f"{what} / E, {mean}", caveats=(OWN_COUNT,),
        ),
        row(
            "z_", "", title=f"z-{title}", finish=z_score(1.0), averagings=WEIGHTED, digits=2,
            help=f"{what} in standard deviations of a random scorer's.", range="(-inf, inf)",
            formula=f"({what} - E) / sqrt(Var), Var = sum w^2 Var[{term}] / (sum w)^2",
            caveats=(OWN_COUNT, TIES, INDEPENDENT, NO_SPREAD),
        ),
    )  # fmt: skip


SOFT_ROWS: tuple[Metric, ...] = (
    *_rows(
        "log_mrr",
        "log-MRR",
        "1 / log2(r + 1)",
        item_values.reciprocal_log_rank,
        random_baseline.reciprocal_log,
    ),
    *_rows("p_mrr@p", "{p}-MRR", "r^-p", item_values.power_of_rank, random_baseline.power),
)
