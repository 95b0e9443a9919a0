"""What ``kgtrec eval`` does beyond trec_eval: ties, micro metrics, confidence intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kgtrec.errors import UsageError
from kgtrec.trec.measures.binary import FLOOR
from kgtrec.trec.measures.names import Column
from kgtrec.trec.measures.options import EvalOptions
from kgtrec.trec.measures.relevant import Bools, Floats

if TYPE_CHECKING:  # most calls ask for none of it
    from kgtrec._internal.bootstrap import Resampling
    from kgtrec.trec.eval.kg_metrics import Micro
    from kgtrec.trec.eval.kg_names import MicroColumn

__all__ = ["Beyond", "intervals"]


@dataclass(frozen=True)
class Beyond:
    """What is asked for; nothing by default.

    Attributes
    ----------
    ties : str, optional
        A key of `kgtrec.trec.measures.ties.TIES`; trec_eval's order without it, and realistic ranks
        for micro metrics.
    micro : sequence of MicroColumn
        From `kgtrec.trec.eval.kg_names.micro_columns`.
    entities : int, optional
        Of the graph, for micro metrics.
    resampling : Resampling, optional
        For confidence intervals of the means over queries.
    """

    ties: str | None = None
    micro: Sequence[MicroColumn] = ()
    entities: int | None = None
    resampling: Resampling | None = None

    def check(self, columns: Sequence[Column], options: EvalOptions, is_zscored: bool) -> None:
        """Raise `UsageError` where this cannot be done, before files are read."""
        if self.ties is not None:
            from kgtrec.trec.measures.ties import check_tie_forms

            check_tie_forms(columns, options)
        if self.micro:
            from kgtrec.trec.eval.kg_metrics import check_micro

            check_micro(self.micro, options, self.entities)
        elif self.entities is not None:
            raise UsageError(
                "--entities is for kg_ measures, and none is asked for; add -m kg_mr,kg_mrr, "
                "or leave it out"
            )
        if self.micro and is_zscored:
            raise UsageError("kg_ measures have no z-scores; leave out -Z, or them")

    def check_groups(self) -> None:
        """Raise `UsageError` for what judgements in groups do not have."""
        if self.ties is not None:
            raise UsageError(
                "--ties has forms of measures of qrels only, not of judgements in groups; leave it "
                "out, or take -R qrels"
            )
        if self.micro:
            raise UsageError(
                "kg_ measures rank the answers of qrels, not of judgements in groups; leave them "
                "out, or take -R qrels"
            )


def intervals(
    values: Mapping[str, NDArray[Any]],
    columns: Sequence[Column],
    counted: Bools,
    micro: Micro | None,
    how: Resampling,
) -> dict[str, tuple[float, float]]:
    """Ends of the confidence intervals of all means; sums of num_* and strings have none.

    Parameters
    ----------
    values : mapping of str to ndarray, shape (n_queries,)
        Column name to its values; logarithms for gm_*, whose ends are those of the logarithms.
    columns : sequence of Column
    counted : ndarray of bool, shape (n_queries,)
        Queries with a value; the others count as 0 in the averages.
    micro : Micro, optional
        Whose quotients of sums over answers are resampled by query, too.
    how : Resampling
    """
    from kgtrec._internal.bootstrap import ratio_intervals
    from kgtrec.trec.eval.kg_metrics import finished

    means = [c for c in columns if not (c.is_count or c.is_text or c.is_query_only)]
    numerators: list[Floats] = [
        np.where(counted, values[c.name], math.log(FLOOR) if c.is_geometric else 0.0) for c in means
    ]
    denominators: list[Floats | None] = [None] * len(means)
    quotients = {} if micro is None else micro.parts
    numerators.extend(part for part, _ in quotients.values())
    denominators.extend(part for _, part in quotients.values())
    ends = ratio_intervals(numerators, denominators, how)
    for row, column in enumerate(means):
        if column.is_geometric:
            ends[row] = np.exp(ends[row])
    for row, name in enumerate(quotients, len(means)):
        ends[row] = np.sort(finished(name, ends[row], np.ones(2)))
    names = [*(column.name for column in means), *quotients]
    return {name: (float(low), float(high)) for name, (low, high) in zip(names, ends, strict=True)}
