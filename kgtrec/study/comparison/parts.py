"""Several systems on parts of the questions, or with the relation ratios of another test set.

Do systems rank alike on every kind of relation and on both sides (Zhou et al. 2022, Table 3), and
would they on a test set that has the relations of another (their Table 4)?
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from kgtrec._internal.notebook import ShownAsTables
from kgtrec._internal.table import Cell, Table
from kgtrec.measures import Measure, parse_all
from kgtrec.results.result import Result
from kgtrec.study.comparison.rank_correlation import tau_b
from kgtrec.study.comparison.samples import align_ranks
from kgtrec.study.relation_shift import reweighted

if TYPE_CHECKING:
    from kgtrec.questions.api import Graph
    from kgtrec.ranking.ranks import Ranks

__all__ = ["PartValues", "values_by_part", "values_by_ratios"]


@dataclass(frozen=True, eq=False)
class PartValues(ShownAsTables):
    """Systems by one measure on several sets of instances.

    Attributes
    ----------
    measure : Measure
    systems : tuple of str
    table : Table
        A row a set: what it is, how large, the value of every system, which is best (if an end of
        the measure is), and Kendall's tau-b of the systems' order to that on all instances (nan of
        fewer than three).
    """

    measure: Measure
    systems: tuple[str, ...]
    table: Table


def values_by_part(
    ranks: Mapping[str, Ranks],
    by: str,
    measures: Sequence[str | Measure],
    *,
    graph: Graph | None = None,
) -> list[PartValues]:
    """Values of all systems on every part of the instances.

    Parameters
    ----------
    ranks : mapping of str to Ranks
        Two systems or more, on the same questions.
    by : str
        As for `Result.slice`: "category,side", "relation", ...
    measures : sequence of keys or Measure
    graph : Graph, optional
        For categories and quartiles.

    Raises
    ------
    UsageError, InputError
        As `Result.slice` and `align_ranks`.
    """
    results = {name: Result(one) for name, one in align_ranks(ranks).items()}
    tables = []
    for measure in parse_all(measures):
        sliced = [one.slice(by, [measure], graph=graph) for one in results.values()]
        places = [{row[: t.names]: row for row in t.rows} for t in sliced]
        whole = [one[measure] for one in results.values()]
        rows = []
        for row in sliced[0].rows:
            key = row[: sliced[0].names]
            values = [float(place[key][-1]) for place in places]
            rows.append((*row[:-1], *values, *_standing(measure, list(results), values, whole)))
        heads = (*sliced[0].titles[:-1], *results, "best", "tau-b")
        keys = (*sliced[0].keys[:-1], *results, "best", "tau_b")
        digits = (*sliced[0].digits[:-1], *(measure.digits for _ in results), 0, 4)
        table = Table(heads, keys, digits, rows, sliced[0].names)
        tables.append(PartValues(measure, tuple(results), table))
    return tables


def values_by_ratios(
    ranks: Mapping[str, Ranks], counts: Mapping[str, float], measures: Sequence[str | Measure]
) -> list[PartValues]:
    """Micro values of all systems at their test set's relation ratios, and at those of another.

    Parameters
    ----------
    ranks : mapping of str to Ranks
        Two systems or more, on the same questions.
    counts : mapping of relation's label to number
        Triples of each relation in the other set.
    measures : sequence of keys or Measure
        Micro averages of MR, MRR, Hits@k and the like.

    Raises
    ------
    UsageError, InputError
        As `kgtrec.study.relation_shift.reweighted` and `align_ranks`.
    """
    results = {name: Result(one) for name, one in align_ranks(ranks).items()}
    tables = []
    for measure in parse_all(measures):
        own = [one[measure] for one in results.values()]
        weighted = [reweighted(one, measure, counts) for one in results.values()]
        rows: list[tuple[Cell, ...]] = [
            (name, *values, *_standing(measure, list(results), values, own))
            for name, values in (("own", own), ("given", weighted))
        ]
        heads = ("ratios", *results, "best", "tau-b")
        digits = (0, *(measure.digits for _ in results), 0, 4)
        table = Table(heads, ("ratios", *results, "best", "tau_b"), digits, rows)
        tables.append(PartValues(measure, tuple(results), table))
    return tables


def _standing(
    measure: Measure, systems: Sequence[str], values: Sequence[float], whole: Sequence[float]
) -> tuple[str, float]:
    """The best systems by name, and tau-b of the values to those on all instances.

    Of a measure such as std, neither end of which is better, none is best.
    """
    higher = measure.is_trec or measure.row[0].higher_is_better
    sign = 1.0 if higher else -1.0
    known = [sign * value for value in values if not math.isnan(value)]
    best = [
        name for name, value in zip(systems, values, strict=True)
        if higher is not None and known and sign * value == max(known)
    ]  # fmt: skip
    complete = len(known) == len(values) > 2
    tau = float(tau_b(np.asarray(values), np.asarray(whole))) if complete else math.nan
    return ", ".join(best), tau
