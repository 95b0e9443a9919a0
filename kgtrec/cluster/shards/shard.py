"""A ranking as a job array: each job ranks its shard, and one merges them all.

No job waits for another, so every shard fetches the scores of its rows' answers itself. Shards know
their inputs by content (`kgtrec.cluster.content_hash`); one that is there and whole is left as it
is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kgtrec._internal.progress import progress_bar
from kgtrec._version import __version__
from kgtrec.cluster.array_files import Files
from kgtrec.cluster.content_hash import identify_scores, signature
from kgtrec.cluster.merge_parts import perform
from kgtrec.cluster.part import Inputs
from kgtrec.cluster.plan import Plan, make_plan
from kgtrec.cluster.question_store import Store
from kgtrec.cluster.shards.check import checked_about
from kgtrec.cluster.shards.merge import differences, shard_name
from kgtrec.errors import FileError, InputError, UsageError
from kgtrec.measures import required_depth
from kgtrec.ranking.kernel import available_cores
from kgtrec.ranking.part_file import write_parts
from kgtrec.ranking.partial import PartialRanks
from kgtrec.ranking.tolerance import checked_tolerance, thresholds
from kgtrec.results.evaluate import COMPARED

__all__ = ["WAYS", "Shard", "open_shard", "parse_shard", "rank_shard", "shard_inputs"]

WAYS = ("auto", "questions", "entities")
COMMAND_BYTES = 44 << 20
"""What the command line, pyarrow and a small graph take of a shard's memory."""

_FEW_ROWS = 64  # the native core scores as many queries in one pass over the entities


@dataclass(frozen=True)
class Shard:
    """One shard, its inputs, and its part of the whole.

    Attributes
    ----------
    inputs : Inputs
    path : Path
        Its file.
    about : dict
        What it belongs to: equal among all shards of a ranking, but for ``number``.
    rows, entities : (int, int)
        First, and the first behind the last.
    signature : list
        Of the score files, from before they were hashed.
    """

    inputs: Inputs
    path: Path
    about: dict[str, Any]
    rows: tuple[int, int]
    entities: tuple[int, int]
    signature: list[tuple[int, ...]]

    def plan(self, memory: str | int, calibrate: bool = True) -> Plan:
        """How it is cut into parts, and how long it will take, unless that is not to be measured:
        scores at a URL are read for it."""
        return make_plan(
            self.inputs, memory, calibrate=calibrate, rows=self.rows, entities=self.entities,
            reserve=COMMAND_BYTES,
        )  # fmt: skip

    def state(self) -> str:
        """ "missing", "whole" or "damaged"; FileError if the shard there is another ranking's."""
        if not self.path.exists():
            return "missing"
        try:
            about = checked_about(self.path)
        except FileError:
            return "damaged"
        if other := differences(about, self.about):
            raise FileError(
                self.path,
                found=f"this shard is there, of another ranking ({other})",
                hint="choose another folder, or remove the shards that are no longer wanted",
            )
        return "whole" if about["number"] == self.about["number"] else "damaged"


def shard_inputs(
    store: Store,
    files: Files,
    *,
    run_depth: int,
    higher_is_better: bool,
    nan: str,
    threads: int | None,
    atol: float = 0.0,
    rtol: float = 0.0,
) -> Inputs:
    """Inputs of shards, which keep as many candidates as the check of every merge looks at.

    Raises
    ------
    UsageError
        A tolerance that is none, or that the dtype of the scores has no arithmetic for.
    """
    tolerance = checked_tolerance(atol, rtol)
    if tolerance is not None:
        thresholds(np.zeros(1), files.dtype, tolerance)
    depth = max(run_depth, *(required_depth(name) or 0 for name in COMPARED))
    threads = threads or available_cores()
    return Inputs(str(store.folder), files, depth, higher_is_better, nan, threads, tolerance)


def parse_shard(text: str) -> tuple[int, int]:
    """Number, from 1, and count of ``"3/16"``; UsageError if the text names no shard."""
    match = re.fullmatch(r"\s*([0-9]{1,18})\s*/\s*([0-9]{1,18})\s*", text)
    number, count = map(int, match.groups()) if match else (0, 0)
    if not 1 <= number <= count:
        last = f"{count}/{count}" if count else "16/16"
        raise UsageError(
            f"--shard {text!r} names no shard: they count from 1; write 1/{count or 16} to {last}"
        )
    return number, count


def open_shard(
    inputs: Inputs, folder: str | Path, number: int, count: int, by: str = "auto"
) -> Shard:
    """Shard ``number`` (from 1) of ``count``.

    Parameters
    ----------
    inputs : Inputs
        With score files.
    folder : path
        Where the shards go; the store of the questions is there too.
    number, count : int
    by : {"auto", "questions", "entities"}
        What is shared out. "auto" takes questions, unless that left a shard too few of them.

    Raises
    ------
    UsageError
        More shards than there is to share out, or ranges of restricted candidates.
    """
    store = inputs.store()
    if by not in WAYS:
        raise UsageError(f"by={by!r} is unknown; choose one of {', '.join(WAYS)}")
    if by == "auto":
        few = store.n_rows < _FEW_ROWS * count and store.n_labels > store.n_rows
        by = "entities" if few and not store.restricted else "questions"
    if by == "entities" and store.restricted:
        raise UsageError("restricted candidates are shared out --by questions only")
    total = store.n_rows if by == "questions" else store.n_labels
    if count > total:
        raise UsageError(f"{count} shards of {total} {by} leave some without any; take fewer")
    own = total * (number - 1) // count, total * number // count
    assert inputs.files is not None
    before = signature(inputs.files)
    about = {
        "kgtrec": __version__,
        "questions": store.folder.name,
        "questions_hash": store.body["fingerprints"]["questions"],
        "scores": identify_scores(inputs.files),
        "rows": store.rows,
        "run_depth": inputs.run_depth,
        "higher_is_better": inputs.higher_is_better,
        "nan": inputs.nan,
        "tolerance": list(inputs.tolerance or (0.0, 0.0)),
        "by": by,
        "count": count,
        "number": number,
    }
    rows = own if by == "questions" else (0, store.n_rows)
    entities = own if by == "entities" else (0, store.n_labels)
    return Shard(inputs, Path(folder) / shard_name(number, count), about, rows, entities, before)


def rank_shard(shard: Shard, plan: Plan, progress: bool | None = None) -> None:
    """Rank a shard and write it.

    Raises
    ------
    InputError
        NaN among the candidates, or the scores changed meanwhile.
    FileError
        It cannot be written.
    """
    files = shard.inputs.files
    assert files is not None

    def parts() -> Iterator[PartialRanks]:
        with progress_bar(plan.n_rows, "rows", progress) as bar:
            for rows in plan.blocks:
                yield perform(rows, plan.ranges, shard.inputs)
                bar.update(rows[1] - rows[0])
        if signature(files) == shard.signature:
            return
        if identify_scores(files) != shard.about["scores"]:
            raise _changed(shard)

    write_parts(shard.path, shard.about, parts())


def _changed(shard: Shard) -> InputError:
    place = shard.inputs.files.place if shard.inputs.files else ""
    return InputError(
        f"{place}: the scores were written to while this shard was ranked; rank it again when "
        "they stay as they are"
    )
