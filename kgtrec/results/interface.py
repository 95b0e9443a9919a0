"""The interface of a result for the modules below it, which write its text and its tables.

`kgtrec.results.result.Result` implements it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from kgtrec._internal.table import Table, Value
from kgtrec.measures import Measure
from kgtrec.ranking.ranks import Ranks
from kgtrec.trec.files.run import Run


class HasRanks(Protocol):
    """A result of which only the ranks are read."""

    @property
    def ranks(self) -> Ranks:
        """One row per instance."""


class ResultValues(HasRanks, Protocol):
    """The numbers of an evaluation and what they come from; see `Result` for each member."""

    measures: list[Measure] | None

    @property
    def run(self) -> Run | None:
        """The best candidates of every question; None without a run."""

    @property
    def agreement(self) -> Mapping[str, float]:
        """Largest difference per measure between pytrec_eval's and the native values."""

    @property
    def sides(self) -> tuple[str, ...]:
        """Sides with values; the last one includes all others."""

    @property
    def has_intervals(self) -> bool:
        """True if values are intervals."""

    def __getitem__(self, key: str | Measure, /) -> Value:
        """Return the value of a measure."""

    def count(self, side: str) -> tuple[int, int]:
        """Count the questions and the instances on a side."""

    def wide_table(self) -> Table:
        """Return a table of the published metrics, or of the requested measures."""

    def side_table(self, tails: Sequence[str]) -> Table:
        """Return one row per side; `tails` are keys without their side."""

    def rank_types(self, measures: Sequence[str | Measure] | None = None) -> Table:
        """Return a table with a row per rank type."""
