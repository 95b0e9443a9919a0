"""The shards of a folder as one ranking, or one sentence about all that is wrong with them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from kgtrec.cluster.merge_parts import finish, merge
from kgtrec.cluster.part import Inputs
from kgtrec.cluster.question_store import Store
from kgtrec.cluster.shards.check import checked_about, checked_blocks
from kgtrec.errors import FileError
from kgtrec.ranking.partial import PartialRanks, Task
from kgtrec.ranking.tolerance import checked_tolerance

if TYPE_CHECKING:
    from kgtrec.questions.api import Questions
    from kgtrec.ranking.ranks import Ranks
    from kgtrec.trec.files.run import Run

__all__ = ["differences", "merge_shards", "shard_files", "shard_name", "stored_depth"]

_NAMED = 8  # faults that one message lists


def merge_shards(folder: str | Path) -> tuple[Ranks, Run, Questions]:
    """Ranks, run and questions of all shards in a folder: those of a ranking in one piece.

    Raises
    ------
    FileError
        Shards that are missing, doubled, damaged, or of several rankings: all are named.
    """
    folder = Path(folder)
    abouts = _read_all(folder, shard_files(folder))
    about = next(iter(abouts.values()))
    store = Store(folder / about["questions"], verify=True)
    inputs = Inputs(
        str(store.folder), None, about["run_depth"], about["higher_is_better"], about["nan"],
        tolerance=checked_tolerance(*about["tolerance"]),
    )  # fmt: skip
    paths = sorted(abouts, key=lambda path: int(abouts[path]["number"]))
    if about["by"] == "questions":
        parts = [part for path in paths for part in checked_blocks(path, abouts[path], store)]
    else:
        wholes = (_joined_rows(list(checked_blocks(path, abouts[path], store))) for path in paths)
        parts = [merge(wholes, inputs)]
    ranks, run = finish(parts, inputs)
    return ranks, run, store.questions(mapped=False)


def _joined_rows(parts: list[PartialRanks]) -> PartialRanks:
    """Blocks of rows with one range of entities as a single part."""
    first, last = parts[0].task, parts[-1].task
    arrays = ("counts", "answer_nan", "lengths", "documents", "scores")
    joined: dict[str, Any] = {
        name: np.concatenate([getattr(part, name) for part in parts], axis=-1) for name in arrays
    }
    task = Task(first.first_row, last.stop_row, *first.entities)
    return replace(parts[0], task=task, nan_count=sum(part.nan_count for part in parts), **joined)


def shard_name(number: int, count: int) -> str:
    """File name of shard ``number`` (from 1) of ``count``; names sort by number."""
    return f"shard-{number:0{len(str(count))}}-of-{count}.arrow"


def shard_files(folder: str | Path) -> list[Path]:
    """The shards of a folder; FileError if there are none."""
    folder = Path(folder)
    if not folder.is_dir():
        problem = "there is no such folder" if not folder.exists() else "this is not a folder"
        raise FileError(folder, found=problem, hint="name the folder of rank --shard")
    paths = sorted(path for path in folder.glob("*.arrow") if not path.name.startswith("."))
    if not paths:
        raise FileError(
            folder, found="no shards in this folder", hint="rank them with kgtrec rank --shard"
        )
    return paths


def stored_depth(folder: str | Path) -> int:
    """Candidates per question that the shards of a folder keep: those of the first one that can
    be read, or 0."""
    for path in shard_files(folder):
        try:
            return int(checked_about(path)["run_depth"])
        except FileError:
            continue
    return 0


def _read_all(folder: Path, paths: list[Path]) -> dict[Path, dict[str, Any]]:
    """What each shard of a folder belongs to; one error for all that is wrong with them."""
    abouts, faults = {}, []
    for path in paths:
        try:
            abouts[path] = checked_about(path)
        except FileError as error:
            faults.append(f"{path.name} is {error.found}")
    if abouts:
        faults += _mixed(abouts) or _doubled(abouts)
        faults += _missing(abouts, {path.name for path in paths})
    if faults:
        more = f"; and {len(faults) - _NAMED} more" if len(faults) > _NAMED else ""
        hint = "rank these shards again with the command and the inputs of the others"
        raise FileError(folder, found="; ".join(faults[:_NAMED]) + more, hint=hint)
    return abouts


def _mixed(abouts: dict[Path, dict[str, Any]]) -> list[str]:
    """Shards that are not of the ranking to which most of them belong."""
    kinds = Counter(_kind(about) for about in abouts.values())
    if len(kinds) == 1:
        return []
    common = kinds.most_common(1)[0][0]
    usual = next(path for path, about in abouts.items() if _kind(about) == common)
    return [
        f"{path.name} is of another ranking than {usual.name} ({differences(about, abouts[usual])})"
        for path, about in abouts.items()
        if _kind(about) != common
    ]


def _kind(about: dict[str, Any]) -> str:
    return repr(sorted((key, repr(value)) for key, value in about.items() if key != "number"))


def _doubled(abouts: dict[Path, dict[str, Any]]) -> list[str]:
    first: dict[int, Path] = {}
    faults = []
    for path, about in abouts.items():
        other = first.setdefault(about["number"], path)
        if other is not path:
            faults.append(f"{path.name} and {other.name} are both shard {about['number']}")
    return faults


def _missing(abouts: dict[Path, dict[str, Any]], names: set[str]) -> list[str]:
    """Numbers that no shard has, those of damaged ones apart."""
    counts = Counter(int(about["count"]) for about in abouts.values())
    count = counts.most_common(1)[0][0]
    there = {about["number"] for about in abouts.values() if about["count"] == count}
    gone = [n for n in range(1, count + 1) if n not in there and shard_name(n, count) not in names]
    if not gone:
        return []
    return [f"shard{'s' * (len(gone) > 1)} {_spans(gone)} of {count} missing"]


def _spans(numbers: Sequence[int]) -> str:
    """``1, 2, 3, 7`` as ``1-3, 7``."""
    breaks = np.flatnonzero(np.diff(numbers) > 1) + 1
    groups = [group.tolist() for group in np.split(np.array(numbers), breaks)]
    return ", ".join(f"{g[0]}-{g[-1]}" if len(g) > 1 else str(g[0]) for g in groups)


_NAMES = {
    "kgtrec": "version of kgtrec",
    "questions": "graph, split or filter",
    "scores": "scores",
    "rows": "--rows",
    "run_depth": "--run-depth",
    "higher_is_better": "--lower-is-better",
    "nan": "--nan",
    "tolerance": "--atol or --rtol",
    "by": "--by",
    "count": "number of shards",
    "number": "number of the shard",
}


def differences(one: dict[str, Any], other: dict[str, Any]) -> str:
    """In what two shards differ, for people."""
    named = []
    for key, name in _NAMES.items():
        mine, its = one.get(key), other.get(key)
        if mine == its or key == "number":
            continue
        plain = isinstance(mine, (int, str)) and key != "questions"
        named.append(f"{name} {mine} and {its}" if plain else f"other {name}")
    return ", ".join(named)
