"""The table of rank metrics: one row each, with everything that keys, help and tables need."""

from __future__ import annotations

import re

from kgtrec.measures.chance_metrics import CHANCE_ROWS
from kgtrec.measures.metric import Metric
from kgtrec.measures.rank_metrics import RANK_ROWS, SPREAD_ROWS

__all__ = ["AVERAGINGS", "METRICS", "Metric", "find_metric"]

AVERAGINGS = {
    "micro": "every (triple, side) counts equally; candidates filtered per answer",
    "macro": "every question counts equally; its first answer among question-level candidates",
    "question": "every question counts equally; the mean over its answers, filtered as for micro",
    "relation": "every relation counts equally in one weighted mean, adjusted for chance as one",
    "triple": "every triple counts equally, by the mean of its head's and its tail's rank",
    "macro_relation": "every relation counts equally: the mean of the relations' micro values",
    "stratified": "weighted by popularity, (beta_e, beta_r): Mohamed et al., section 4",
}

METRICS: tuple[Metric, ...] = (*RANK_ROWS, *CHANCE_ROWS, *SPREAD_ROWS)

_BY_NAME = {name: metric for metric in METRICS for name in (metric.name, *metric.aliases)}


def find_metric(name: str) -> tuple[Metric, int | float] | None:
    """Row and parameter (0 where it takes none) that a metric's name or alias stands for.

    ``hits@10``, ``hits_at_10`` and ``hits.10`` all give (hits@k, 10), and ``p_mrr@0.5`` gives
    (p_mrr@p, 0.5). An unknown name, or a parameter that is missing, not wanted, a cutoff below 1
    or an exponent outside (0, 1), gives None.
    """
    exponent = re.fullmatch(r"(.*@)([0-9]*\.?[0-9]+(?:e-?[0-9]{1,3})?)", name)
    if exponent and exponent[1] + "p" in _BY_NAME:
        p = float(exponent[2])
        return (_BY_NAME[exponent[1] + "p"], p) if 0 < p < 1 else None
    stem = name.rstrip("0123456789")
    digits = name[len(stem) :]
    metric = _BY_NAME.get(stem + "k" if digits else stem)
    if metric is None or metric.parameter == "p":
        return None
    if metric.takes_cutoff != bool(digits) or len(digits) > 18:
        return None
    cutoff = int(digits or 0)
    return None if digits and cutoff < 1 else (metric, cutoff)
