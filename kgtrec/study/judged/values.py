"""Measures of every question, by a judge's labels and by people's.

Micro metrics (kg_mrr, kg_hits) are a sum over all answers divided by their number. Both sums are
estimated, because labels change the number of answers. Other measures have the denominator 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from kgtrec._internal.arrays import Float64, Int64
from kgtrec.errors import UsageError, refuse_if
from kgtrec.study.judged.estimate import Estimates, JudgedValues, estimate_means
from kgtrec.study.pooling.completion import Qrels
from kgtrec.study.pooling.lists import RankedLists
from kgtrec.study.pooling.unjudged import label_by_qrels
from kgtrec.trec.eval.kg_metrics import micro_values
from kgtrec.trec.measures.names import Column, resolve
from kgtrec.trec.measures.trec_measure import EvalOptions
from kgtrec.trec.measures.values import values

MEASURES = ("map_cut_20", "ndcg_cut_20", "recip_rank", "success_10")


def find_columns(measures: Sequence[str]) -> list[Column]:
    """Return the columns of measures, in their order; UsageError if one is not a mean."""
    columns = {
        column.name: column for name in measures for column in resolve([name], of_answers=True)
    }
    refuse_if(
        *(
            (
                column.is_count
                or column.is_text
                or column.is_geometric
                or column.row.of_answers not in ("", "mean"),
                f"{name!r} is not a mean over questions or answers; leave it out",
            )
            for name, column in columns.items()
        )
    )
    return list(columns.values())


@dataclass(frozen=True, eq=False)
class SystemMeasures:
    """Systems and measures; columns of values are numbered measure by measure.

    - systems: Lists of the systems, for the same seed questions.
    - entities: Number of entities of the graph, for answers that a run lacks.
    """

    systems: Sequence[RankedLists]
    columns: Sequence[Column]
    entities: int

    @classmethod
    def from_names(
        cls, systems: Sequence[RankedLists], measures: Sequence[str], qrels: Qrels
    ) -> SystemMeasures:
        """Return the evaluation by the names of measures; UsageError if one is not a mean."""
        if not systems:
            raise UsageError("no run is given; give the run of at least one system")
        return cls(systems, find_columns(measures), qrels.graph.n_entities)

    @property
    def names(self) -> list[tuple[str, str]]:
        """Measure and system of each column."""
        return [(column.key, lists.name) for column in self.columns for lists in self.systems]

    @cached_property
    def above(self) -> Int64:
        """Columns of numerators, one per measure and system."""
        return np.arange(len(self.columns) * len(self.systems))

    def evaluate(self, qrels: Qrels) -> Float64:
        """Return numerators, then denominators, of all questions; float64 (Q, 2 k)."""
        ordinary = [column for column in self.columns if not column.row.of_answers]
        micro = [column for column in self.columns if column.row.of_answers]
        options, n = EvalOptions(), len(qrels)
        parts: dict[tuple[str, int], tuple[Float64, Float64]] = {}
        for system, lists in enumerate(self.systems):
            labelled = label_by_qrels(lists, qrels)
            for name, row in (values(labelled, ordinary, options) if ordinary else {}).items():
                parts[name, system] = row, np.ones(n)
            if micro:
                sums = micro_values(labelled, micro, options, entities=self.entities).parts
                parts |= {(column.name, system): pair for column, pair in sums.items()}
        order = [(c.name, system) for c in self.columns for system in range(len(self.systems))]
        return np.stack([parts[key][end] for end in (0, 1) for key in order], axis=1)

    def mean(self, evaluated: Float64) -> Float64:
        """Return the measures over all questions, float64 (k,)."""
        above, below = evaluated.sum(axis=0).reshape(2, -1)
        return np.asarray(above / below)

    def estimate(self, judged: JudgedValues, factor: float | None = None) -> Estimates:
        """Estimate the measures over all questions; `factor` as for `estimate_means`."""
        return estimate_means(judged, factor).quotients(self.above, self.above + len(self.above))
