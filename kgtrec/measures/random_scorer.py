"""What a random scorer would get, without any ranks: from numbers of candidates alone."""

from __future__ import annotations

from numpy.typing import ArrayLike

from kgtrec.errors import UsageError
from kgtrec.measures.keys import find_metric
from kgtrec.measures.random_baseline import Chance, Tally
from kgtrec.measures.rank_metrics import RANK_ROWS


def random_scorer(metric: str, candidates: ArrayLike, weight: ArrayLike | None = None) -> Chance:
    """Exact expectation and variance of a metric under a random scorer.

    Every rank is uniform on 1 .. c, independently, with the item's own number of candidates c. With
    M, E and Var the adjusted metrics follow, also of published values: the index (M - E) / (1 - E),
    the ratio M / E, the z-score (M - E) / sqrt(Var), its sign changed for MR and GMR.

    Parameters
    ----------
    metric : str
        "mr", "mrr", "hits@k", "gmr", "log_mrr", "p_mrr@p" (with numbers in place of k and p), or
        an alias of one.
    candidates : array_like of int (n,)
        Candidates of every instance, the answer included: ``ranks.candidates``.
    weight : array_like (n,), optional
        0 or more; without it every instance weighs 1.

    Returns
    -------
    Chance
        ``mean`` and ``variance``, float.

    Raises
    ------
    UsageError
        Another metric.
    InputError
        No candidates, a number below 1, or weights that do not fit.

    Examples
    --------
    >>> random_scorer("mr", [5, 11])
    Chance(mean=4.5, variance=3.0)
    """
    match = find_metric(metric.lower()) if isinstance(metric, str) else None
    row, parameter = match or (None, 0)
    if row is None or row not in RANK_ROWS or row.chance is None:
        known = ", ".join(row.name for row in RANK_ROWS if row.chance is not None)
        raise UsageError(f"{metric!r} has no expectation by chance here; those with one: {known}")
    return row.chance(Tally.of(candidates, weight), parameter)
