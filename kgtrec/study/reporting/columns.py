"""Columns of tables of models: values, the marks of the best, and headings."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TypeVar

from kgtrec._internal.table import Interval, Value
from kgtrec.measures import Measure

T = TypeVar("T")
ABSENT = "\N{EN DASH}"


def spans(items: Iterable[T]) -> list[tuple[T, int]]:
    """Group equal neighbours; return each item with its number of repetitions."""
    return [(item, len(list(group))) for item, group in groupby(items)]


def place_marks(values: Sequence[Value], digits: int, better: bool | None) -> list[int]:
    """Return 1 for the best, 2 for the second best, and 0 for other values.

    Values with the same printed text share a place. If two are best, or there are only two values,
    none is second. All are 0 if there are fewer than two different values, or a value is an
    interval.
    """
    shown = [None if math.isnan(v) else float(f"{v:.{digits}f}") for v in map(float, values)]
    distinct = sorted({v for v in shown if v is not None}, reverse=bool(better))
    open_ended = any(isinstance(v, Interval) for v in values)
    if open_ended or better is None or len(distinct) < 2:
        return [0] * len(shown)
    many = sum(v is not None for v in shown) > 2
    second = distinct[1] if many and shown.count(distinct[0]) == 1 else None
    return [1 if v == distinct[0] else 2 if v is not None and v == second else 0 for v in shown]


def explain_places(marks: Iterable[int]) -> str:
    """Return the sentence of a caption on the marks of `place_marks`; "" if there are none."""
    distinct = {*marks}
    return BEST_TWO if 2 in distinct else BEST if 1 in distinct else ""


BEST, BEST_TWO = "Best in bold.", "Best in bold, second best underlined."


def replace_explanation(caption: str, text: str) -> str:
    """Replace the sentence of `explain_places` in a caption."""
    return re.sub(f"{re.escape(BEST_TWO)}|{re.escape(BEST)}", text, caption)


def arrow(better: bool | None, up: str = " ↑", down: str = " ↓") -> str:
    """Return the sign of the better direction; "" if neither is better."""
    return "" if better is None else up if better else down


SIDE_NAMES = {"both": "both sides"}


def kind_of(measure: Measure) -> str:
    """Return side, average and, unless realistic, rank type of a measure, as "tail, micro"."""
    side = SIDE_NAMES.get(measure.side, measure.side)
    ranks = [measure.rank_type] if measure.rank_type not in (None, "realistic") else []
    return ", ".join([side, measure.averaging.replace("_", " "), *ranks])


Levels = Sequence[Sequence[tuple[str, int]]]
"""Lines of headings above the measures: texts, and the number of columns that each spans."""


@dataclass(frozen=True)
class ModelColumn:
    """The values of a measure for all models on a graph.

    - dataset: Name of the graph, and of the protocol if there are several.
    - values: Value of each model; NaN if a model was not evaluated.
    - beaten: Rows of the models that each model significantly beats; None if not tested.
    - deviations: Standard deviation over the runs of each model; NaN for a single run. Empty if no
      model has several.
    - runs: Number of runs of each model; empty if no model has several.
    """

    dataset: str
    measure: Measure
    values: tuple[Value, ...]
    digits: int
    beaten: tuple[tuple[int, ...], ...] | None = None
    deviations: tuple[float, ...] = ()
    runs: tuple[int, ...] = ()

    def format_values(self) -> list[str]:
        """Return the values as printed in the table; an en dash for NaN."""
        return [ABSENT if math.isnan(v) else f"{v:,.{self.digits}f}" for v in self.values]

    def format_deviations(self) -> list[str]:
        """Return the deviations as printed in the table; "" for models with a single run."""
        deviations = self.deviations or (math.nan,) * len(self.values)
        return ["" if math.isnan(v) else f"{v:,.{self.digits}f}" for v in deviations]

    def mark_best(self) -> list[int]:
        """Return 1 for the best, 2 for the second best, 0 for others; see `place_marks`."""
        return place_marks(self.values, self.digits, self.measure.higher_is_better)
