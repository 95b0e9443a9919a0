"""Micro or macro? Which relations the answers belong to, and how far the averages differ.

A micro average counts every answer once, so frequent relations and questions with many answers
dominate it. Mohamed et al. (2020, section 4) read a large difference from the average over
relations as popularity bias. Zhou et al. (2022, section 5) recommend the average over questions
beside micro.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from kgtrec._internal.arrays import Bools, Int64
from kgtrec._internal.table import Interval, Value, format_cell
from kgtrec.graph.statistics.relations import CATEGORIES, UNSEEN
from kgtrec.measures.averaging import SIDES
from kgtrec.results.slices import rows_by_part

if TYPE_CHECKING:
    from kgtrec.questions.api import Graph
    from kgtrec.results.result import Result

RECOMMENDATION = (
    "A large gap to equal relations means that frequent relations dominate micro (Mohamed et al. "
    "2020, section 4); report macro beside micro (Zhou et al. 2022, section 5)."
)


@dataclass(frozen=True)
class Averages:
    """MRR by three averagings, and the answers by the category of their relation.

    - shares: Share of the answers by category (1-1, 1-N, N-1, N-N, unseen), summing to 1.
    - micro, macro, relations: MRR over answers, over questions, and over relations equally; an
      interval if predicted lists lack answers.
    """

    shares: Mapping[str, float]
    micro: Value
    macro: Value
    relations: Value

    def gap(self, other: Value) -> float | None:
        """Micro minus another average; None if one of them is an interval."""
        if isinstance(self.micro, Interval) or isinstance(other, Interval):
            return None
        return float(self.micro) - float(other)

    def sentence(self) -> str:
        """Say all of it in a line, with what the papers recommend."""
        return sentence_on({"MRR": self})

    def values_text(self) -> str:
        """List the three averages and both gaps."""
        others = (("macro", self.macro), ("relations equally", self.relations))
        texts = [
            f"{name} {format_cell(value, 4)}{self._in_brackets(value)}" for name, value in others
        ]
        return f"micro {format_cell(self.micro, 4)}, {', '.join(texts)}"

    def _in_brackets(self, other: Value) -> str:
        gap = self.gap(other)
        return "" if gap is None else f" (gap {round(gap, 4) + 0.0:+.4f})"

    def to_dict(self, prefix: str) -> dict[str, float]:
        """Map keys such as ``share.N-N`` and ``gap.both.realistic.macro.mrr`` to numbers."""
        numbers = {f"share.{name}": share for name, share in self.shares.items()}
        for name, value in (("macro", self.macro), ("macro_relation", self.relations)):
            gap = self.gap(value)
            if gap is not None:
                numbers[f"gap.{prefix}.{name}.mrr"] = gap
        return numbers


def sentence_on(averages: Mapping[str, Averages]) -> str:
    """Say in a line what averages of the same questions show, by the names of their models."""
    first = next(iter(averages.values()))
    shares = ", ".join(f"{name} {100 * share:.1f} %" for name, share in first.shares.items())
    values = "; ".join(f"{name}: {of_model.values_text()}" for name, of_model in averages.items())
    return (
        f"Micro or macro? Answers by category of their relation: {shares}. {values}. "
        f"{RECOMMENDATION}"
    )


def averages_of(result: Result, graph: Graph) -> Averages:
    """Compute the averages of all evaluated sides, and the share of answers in each category.

    Parameters
    ----------
    result : Result
    graph : Graph
        The graph that the ranks were made on; its train split decides the categories.

    Raises
    ------
    UsageError
        Another graph, one without train, or questions without categories of relations.
    """
    side = result.sides[-1]
    rows = rows_by_part(result.ranks, "category", graph=graph)
    evaluated = np.isin(result.ranks.side, SIDES[side])
    counts = {name: _count(evaluated, members) for (name,), members in rows.items()}
    total = sum(counts.values())
    names = [*CATEGORIES, UNSEEN] if counts.get(UNSEEN) else [*CATEGORIES]
    values = [
        result[f"{side}.realistic.{averaging}.mrr"]
        for averaging in ("micro", "macro", "macro_relation")
    ]
    return Averages({name: counts.get(name, 0) / total for name in names}, *values)


def _count(evaluated: Bools, members: Int64) -> int:
    """Count the instances of a group on the evaluated sides."""
    return int(evaluated[members].sum())
