"""The tie report of ranks, which shows how much ties matter. Its sums do not depend on blocks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from kgtrec._internal.arrays import Int64

_BLOCK = 1 << 19  # values added at a time: at least 128, where numpy stops halving
_DEPTHS = (1, 3, 10)


def tree_sum(values: Callable[[int, int], float], start: int, stop: int) -> float:
    """Return the sum of values from `start` to `stop - 1`, with the same bits as numpy's sum.

    `values` returns the sum of a block. numpy halves an array, at multiples of eight, until 128
    values are left, and adds the halves. This function adds blocks in the same order.
    """
    n = stop - start
    if n <= _BLOCK:
        return values(start, stop)
    half = n // 2
    half -= half % 8
    return tree_sum(values, start, start + half) + tree_sum(values, start + half, stop)


def tie_report(counts_of: Callable[[int, int], tuple[Int64, Int64]], n: int) -> dict[str, Any]:
    """Return the result of `kgtrec.Ranks.tie_report` for `n` instances.

    `counts_of` returns the greater and equal counts of the instances from a start to a stop.
    """
    if not n:
        return {"tied_share": 0.0, "mean_equal": 0.0, "max_equal": 0, "width": {}}
    tied = total = most = 0
    cut = dict.fromkeys(_DEPTHS, 0)

    def add_block(start: int, stop: int) -> float:
        """Add the counts of a block to the totals; return the sum of its widths of 1/rank."""
        nonlocal tied, total, most
        greater, equal = counts_of(start, stop)
        tied += int(np.count_nonzero(equal))
        total += int(equal.sum())
        most = max(most, int(equal.max()))
        best = greater + 1.0
        worst = best + equal
        for k in cut:
            cut[k] += int(np.count_nonzero((best <= k) & (worst > k)))
        return float(np.add.reduce(1 / best - 1 / worst))

    mrr = tree_sum(add_block, 0, n) / n
    width = {"mr": total / n, "mrr": mrr, **{f"hits@{k}": count / n for k, count in cut.items()}}
    return {"tied_share": tied / n, "mean_equal": total / n, "max_equal": most, "width": width}
