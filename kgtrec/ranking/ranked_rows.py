"""The rows that a `Ranker` has ranked, for another `Ranker` to take over.

They are a partial ranking of all entities (`kgtrec.ranking.partial`) and the ids of its rows.
Processes send or save them, and `Ranker.merge` copies them into the whole ranking.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from kgtrec._internal.arrays import Bools, Int64
from kgtrec._internal.csr import spans
from kgtrec.errors import FileError, PathName, UsageError
from kgtrec.questions.api import Questions
from kgtrec.ranking.kernel import NativeRanking
from kgtrec.ranking.partial import (
    PartialRanks,
    Task,
    extract_part,
    read_about,
    read_with_arrays,
    write_parts,
)
from kgtrec.ranking.provenance import Provenance, check_alike
from kgtrec.ranking.rows import QuestionLists, RowPlan
from kgtrec.ranking.settings import Settings

_HINT = "save it again with Ranker.save"


@dataclass(frozen=True, eq=False)
class RankedRows:
    """Rows that a `Ranker` has ranked.

    - part: Counts and best candidates of these rows; its task numbers them from 0.
    - row_ids, int64 (n,): Ids of these rows in the whole ranking, ascending.
    - nan_counts, int64 (n,): Number of NaN candidates in each row.
    """

    part: PartialRanks
    row_ids: Int64
    nan_counts: Int64

    def __len__(self) -> int:
        return len(self.row_ids)

    def __repr__(self) -> str:
        return f"RankedRows({len(self)} rows)"

    @classmethod
    def from_ranking(cls, state: NativeRanking, row_ids: Int64, questions: Questions) -> RankedRows:
        """Return a copy of some rows of a native ranking."""
        task = Task(0, len(row_ids), 0, questions.n_labels)
        part = extract_part(state, task, questions.fingerprint, rows=row_ids)
        part = replace(part, settings=_limit_depth(part.settings, questions.n_labels))
        return cls(part, row_ids, state.nan_count[row_ids])

    def write_to(self, state: NativeRanking, chosen: Bools) -> None:
        """Write the rows that the mask `chosen` marks into a native ranking."""
        part = self.part
        rows, targets = state.plan.select(self.row_ids)
        chosen_targets = np.repeat(chosen, np.diff(rows.target_offsets))
        state.written[self.row_ids[chosen]] = True
        state.counts[:, targets[chosen_targets]] = part.counts[:, chosen_targets]
        state.target_nan[targets[chosen_targets]] = part.answer_nan[chosen_targets]
        state.nan_count[self.row_ids[chosen]] = self.nan_counts[chosen]
        listed = chosen[rows.slot >= 0]
        slots, lengths = rows.slot[rows.slot >= 0][listed], part.lengths[listed]
        mask = np.repeat(listed, part.lengths)
        cells = np.repeat(slots, lengths), spans(0, lengths)[1]
        state.best_ids[cells] = part.documents[mask]
        state.best_scores[cells] = part.scores[mask]
        state.best_length[slots] = lengths

    def check(
        self, questions: Questions, settings: Settings, plan: RowPlan, lists: QuestionLists
    ) -> None:
        """Raise UsageError if these are not rows of a ranking with these questions and settings."""
        part, limited = self.part, _limit_depth(settings, questions.n_labels)
        width = min(limited.run_depth, lists.most_candidates) if limited.run_depth else 0
        expected = Provenance.from_settings(questions.fingerprint, limited, part.dtype)
        check_alike("these rows and this ranker", part.provenance, expected)
        fitting = (np.diff(self.row_ids) > 0).all() and len(self.row_ids) == part.task.stop_row
        fitting = fitting and 0 <= self.row_ids[0] <= self.row_ids[-1] < plan.n_rows
        rows = plan.select(self.row_ids)[0] if fitting else None
        if (
            rows is None
            or part.counts.shape != (6, len(rows.targets))
            or part.answer_nan.shape != rows.targets.shape
            or len(part.lengths) != int((rows.slot >= 0).sum())
            or len(self.nan_counts) != len(self.row_ids)
            or not 0 <= part.lengths.min(initial=0) <= part.lengths.max(initial=0) <= width
            or len(part.documents) != int(part.lengths.sum(dtype=np.int64))
        ):
            raise UsageError("these rows contradict the ranking that they name; rank them again")

    def save(self, path: PathName) -> None:
        """Write the rows to a file, which appears when it is complete; FileError if that fails."""
        arrays = {"row_ids": self.row_ids, "nan_counts": self.nan_counts}
        write_parts(path, {"ranked_rows": True}, [self.part], arrays)

    @classmethod
    def load(cls, path: PathName) -> RankedRows:
        """Read a file of `save`; FileError if it is another kind of file, or damaged."""
        about = read_about(path)
        if not about.get("ranked_rows"):
            problem = "a shard of `kgtrec rank --shard`, not rows of a Ranker"
            raise FileError(path, found=problem, hint="merge shards with kgtrec merge")
        part, arrays = read_with_arrays(path, ("row_ids", "nan_counts"))
        if any(array.dtype != np.int64 or array.ndim != 1 for array in arrays.values()):
            raise FileError(path, found="its arrays have wrong types", hint=_HINT)
        return cls(part, **arrays)


def _limit_depth(settings: Settings, most: int) -> Settings:
    """Return the settings with a run depth of at most `most`, the number of candidates."""
    return replace(settings, run_depth=min(settings.run_depth, most))
