"""What one `Ranker` has ranked, in any order of rows, so that another takes it over.

A partial ranking of all entities (`kgtrec.ranking.partial`) with the rows that it has: it is sent
between processes or saved, and `Ranker.merge` puts it into its place.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kgtrec.errors import FileError, UsageError
from kgtrec.ranking.kernel import NativeRanking
from kgtrec.ranking.part_file import read_about, read_with_arrays, write_parts
from kgtrec.ranking.partial import PartialRanks, Task, take_partial
from kgtrec.ranking.row_plan import RowPlan
from kgtrec.ranking.tolerance import Tolerance

__all__ = ["RankedRows"]

Int64 = npt.NDArray[np.int64]

_HINT = "save it again with Ranker.save"


@dataclass(frozen=True, eq=False)
class RankedRows:
    """Rows that one `Ranker` has ranked.

    Attributes
    ----------
    part : PartialRanks
        What they contribute; its task counts these rows from 0.
    row_ids : ndarray of int64, shape (n,)
        Ids of the rows among all of the ranking, ascending.
    nan_counts : ndarray of int64, shape (n,)
        NaN candidates met in each.
    rows : {"questions", "instances"}
        What a row stands for.
    higher_is_better : bool
    """

    part: PartialRanks
    row_ids: Int64
    nan_counts: Int64
    rows: str
    higher_is_better: bool

    def __len__(self) -> int:
        return len(self.row_ids)

    def __repr__(self) -> str:
        return f"RankedRows({len(self)} rows)"

    @classmethod
    def take(
        cls,
        state: NativeRanking,
        row_ids: Int64,
        n_entities: int,
        nan: str,
        questions_hash: str,
        tolerance: Tolerance | None,
        **declared: Any,
    ) -> RankedRows:
        """Some rows of a native ranking; ``declared``: `rows` and `higher_is_better`."""
        task = Task(0, len(row_ids), 0, n_entities)
        part = take_partial(
            state, task, state.depth, nan, questions_hash, rows=row_ids, tolerance=tolerance,
            apart=True,
        )  # fmt: skip
        return cls(part, row_ids, state.nan_count[row_ids], **declared)

    def put(self, state: NativeRanking, chosen: npt.NDArray[np.bool_]) -> None:
        """Write those of the rows that are ``chosen`` to their places in a native ranking."""
        part, plan = self.part, state.plan
        own, targets = plan.selected(self.row_ids)
        taken = np.repeat(chosen, np.diff(own.target_offsets))
        state.written[self.row_ids[chosen]] = True
        state.counts[:, targets[taken]] = part.counts[:, taken]
        state.target_nan[targets[taken]] = part.answer_nan[taken]
        state.nan_count[self.row_ids[chosen]] = self.nan_counts[chosen]
        listed = chosen[own.slot >= 0]
        slots, lengths = own.slot[own.slot >= 0][listed], part.lengths[listed]
        mask = np.repeat(listed, part.lengths)
        place = np.repeat(slots, lengths), _counted(lengths)
        state.best_ids[place] = part.documents[mask]
        state.best_scores[place] = part.scores[mask]
        state.best_length[slots] = lengths

    def check(self, other: RankedRows, plan: RowPlan, width: int) -> None:
        """UsageError if these are not rows of a ranking that is like ``other``, with places for
        ``width`` of the best of a question."""
        mine, its = self.part, other.part
        if mine.questions_hash != its.questions_hash:
            raise UsageError(
                "these rows were ranked for other questions; merge rankers of the same graph, "
                "split, sides, filter and candidates"
            )
        for name, here, there in (
            ("rows", other.rows, self.rows),
            ("higher_is_better", other.higher_is_better, self.higher_is_better),
            ("run_depth", its.depth, mine.depth),
            ("nan", its.nan, mine.nan),
            ("tie tolerance", its.tolerance, mine.tolerance),
        ):
            if here != there:
                raise UsageError(
                    f"these rows were ranked with {name}={there!r}, this ranker has {here!r}; "
                    "rank all parts alike"
                )
        fitting = (np.diff(self.row_ids) > 0).all() and len(self.row_ids) == mine.task.stop_row
        fitting = fitting and 0 <= self.row_ids[0] <= self.row_ids[-1] < plan.n_rows
        own = plan.selected(self.row_ids)[0] if fitting else None
        if (
            own is None
            or mine.counts.shape != (6, len(own.targets))
            or mine.answer_nan.shape != own.targets.shape
            or len(mine.lengths) != int((own.slot >= 0).sum())
            or len(self.nan_counts) != len(self.row_ids)
            or not 0 <= mine.lengths.min(initial=0) <= mine.lengths.max(initial=0) <= width
            or len(mine.documents) != int(mine.lengths.sum(dtype=np.int64))
        ):
            raise UsageError("these rows do not fit the ranking that they name; rank them again")

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to a file, beside and renamed; FileError if that cannot be."""
        names = ("rows", "higher_is_better")
        about = {"ranked_rows": True, **{name: getattr(self, name) for name in names}}
        arrays = {"row_ids": self.row_ids, "nan_counts": self.nan_counts}
        write_parts(path, about, [self.part], arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> RankedRows:
        """Read what `save` has written; FileError if it is something else, or damaged."""
        about = read_about(path)
        if not about.get("ranked_rows"):
            problem = "a shard of `kgtrec rank --shard`, not rows of a Ranker"
            raise FileError(path, found=problem, hint="merge shards with kgtrec merge")
        part, arrays = read_with_arrays(path, ("row_ids", "nan_counts"))
        if any(array.dtype != np.int64 or array.ndim != 1 for array in arrays.values()):
            raise FileError(path, found="arrays of wrong types", hint=_HINT)
        return cls(
            part,
            **arrays,
            rows=about["rows"],
            higher_is_better=about["higher_is_better"],
        )


def _counted(lengths: npt.NDArray[np.int32]) -> Int64:
    """0, 1, ... anew for every length."""
    ends = np.cumsum(lengths, dtype=np.int64)
    return np.arange(int(ends[-1]) if len(ends) else 0) - np.repeat(ends - lengths, lengths)
