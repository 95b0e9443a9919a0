"""Ranks and run of a store's questions as files, read and written a block at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kgtrec._internal.atomic_file import atomic_write
from kgtrec._internal.csr import Csr
from kgtrec.cluster.count_files import CountFiles
from kgtrec.cluster.question_store import Store
from kgtrec.cluster.run_files import RunFiles
from kgtrec.questions.sides import NAMES
from kgtrec.ranking.instance_columns import (
    GIVEN_COLUMNS,
    instance_columns,
    popularities,
    ranks_manifest,
)
from kgtrec.ranking.parquet import ROW_GROUP, ids_in, write_blocks
from kgtrec.ranking.ranks import Ranks, typed_columns
from kgtrec.ranking.tie_totals import tie_report
from kgtrec.trec.files.run import Run

if TYPE_CHECKING:
    from kgtrec.questions.api import Questions

__all__ = ["StoredRanks"]

Columns = dict[str, npt.NDArray[Any]]

_CANDIDATES = 1 << 18  # of a run, at a time


class StoredRanks:
    """Ranks and run of a store's questions, of which no more than a block is in memory.

    Parameters
    ----------
    store : Store
    counts : CountFiles
        Filled.
    scores : dict
        What the manifest says of the scores.
    run : RunFiles, optional
        Filled.

    Attributes
    ----------
    store : Store
    n : int
        Instances.
    run : RunFiles or None
    """

    def __init__(
        self, store: Store, counts: CountFiles, scores: dict[str, Any], run: RunFiles | None = None
    ) -> None:
        questions = store.questions()
        self.store, self.run, self._counts = store, run, counts
        self.n = questions.n_instances
        self._popular = popularities(questions)
        self._manifest = ranks_manifest(questions, scores)
        counted = np.bincount(questions.side, minlength=len(NAMES))
        self._first_of_side = (np.cumsum(counted) - counted).tolist()

    def save(self, path: str | PathLike[str]) -> None:
        """Write the file that `kgtrec.Ranks.save` writes of the same ranks, byte for byte."""
        questions = self.store.questions()
        labels = list(questions.graph.relations), questions.graph.entities
        used = _used(questions)
        del questions  # and the pages that it has mapped

        def places(start: int, stop: int) -> tuple[Any, Any]:
            columns = self._columns(start, stop)
            return columns["greater"], columns["equal"]

        manifest = self._manifest | {"tie_report": tie_report(places, self.n)}
        write_blocks(path, self._blocks(), manifest, used, *labels)

    def mapped(self, folder: Path) -> Ranks:
        """The ranks with their columns in files of a folder: the system takes their pages back at
        need."""
        paths: dict[str, Path] = {}
        dtypes: dict[str, np.dtype[Any]] = {}
        for block in self._blocks():
            for name, column in block.items():
                paths[name], dtypes[name] = folder / f"column-{name}", column.dtype
                with open(paths[name], "ab") as file:
                    file.write(column.data)
        columns = {
            name: np.memmap(path, dtypes[name], "r") if self.n else np.zeros(0, dtypes[name])
            for name, path in paths.items()
        }
        graph = self.store.questions().graph
        return Ranks(columns, self._manifest, list(graph.relations), graph.entities)

    def save_run(self, path: str | PathLike[str]) -> None:
        """Write the file that `Run.write` writes of the same run, byte for byte."""
        names = None
        with atomic_write(path) as file:
            for run, *_ in self.runs():
                names = run.docnos.to_arrow() if names is None else names
                run.write_to(file, names=names)

    def runs(self) -> Iterator[tuple[Run, Csr, slice]]:
        """Run, answers and rows of instances of some questions, then of the next, to the last."""
        assert self.run is not None
        docnos = self.store.questions().candidate_labels.docnos
        step = max(1, _CANDIDATES // max(1, self.run.depth))
        for first in range(0, self.run.n, step):
            stop = min(first + step, self.run.n)
            names = self._names(first, stop)
            run = Run(names, *self.run.read(first, stop), docnos, self.run.depth)
            bounds = np.array(self.store.array("answers_offsets")[first : stop + 1])
            ids = np.array(self.store.array("answers_ids")[bounds[0] : bounds[-1]])
            yield run, Csr(bounds - bounds[0], ids), slice(int(bounds[0]), int(bounds[-1]))

    def _names(self, first: int, stop: int) -> list[str]:
        """Those of `Questions.ids`."""
        sides = self.store.array("side")[first:stop].tolist()
        names = [
            f"{NAMES[side]}{number - self._first_of_side[side]}"
            for number, side in enumerate(sides, start=first)
        ]
        contexts = self.store.questions().graph.contexts
        if contexts is None or not self.store.has("context"):
            return names
        times = contexts.docnos[self.store.array("context")[first:stop].astype(np.int64)]
        return [f"{name}@{time}" for name, time in zip(names, times, strict=True)]

    def _blocks(self) -> Iterator[Columns]:
        for start in range(0, max(1, self.n), ROW_GROUP):
            yield self._columns(start, min(start + ROW_GROUP, self.n))

    def _columns(self, start: int, stop: int) -> Columns:
        """Columns of a range of instances, as `Ranks` has them."""
        some, question, own = _some_questions(self.store.questions(), start, stop)
        # Counts of the whole questions: candidates are counted by question.
        first = start - own.start
        counts = self._counts.read(first, first + some.n_instances)
        columns = instance_columns(some, *counts, self._popular)
        columns["question"] = columns["question"] + np.int64(question)
        return {name: column[own] for name, column in typed_columns(columns).items()}


def _used(questions: Questions) -> dict[str, npt.NDArray[np.int64]]:
    """Ids that stand in the columns `IDS`; every question has an answer."""
    columns = {
        name: ids
        for name, (_, ids) in zip(
            GIVEN_COLUMNS[questions.sides], questions.given_terms, strict=True
        )
    }
    columns["answer"] = questions.answers.ids
    if questions.kind == "relation":
        columns["relation"] = columns["answer"]
    if questions.context is not None and questions.graph.contexts is not None:
        columns["context"] = questions.context
    return {name: ids_in(ids) for name, ids in columns.items()}


def _some_questions(questions: Questions, start: int, stop: int) -> tuple[Questions, int, slice]:
    """The questions of a range of instances, in memory; the number of the first; and where the
    instances stand among theirs."""
    if start == stop:
        first = last = 0
    else:
        first = int(questions.instance_question[start])
        last = int(questions.instance_question[stop - 1]) + 1
    low, high = (int(questions.answers.offsets[at]) for at in (first, last))
    lists, rows = questions.candidate_lists, slice(first, last)

    def part(csr: Csr) -> Csr:
        offsets = np.array(csr.offsets[first : last + 1])
        return Csr(offsets - offsets[0], np.array(csr.ids[offsets[0] : offsets[-1]]))

    outside, full = questions.outside, questions.full_candidates
    context = questions.context
    some = replace(
        questions,
        side=np.array(questions.side[rows]),
        given=(np.array(questions.given[0][rows]), np.array(questions.given[1][rows])),
        context=None if context is None else np.array(context[rows]),
        answers=part(questions.answers),
        known=part(questions.known),
        removed=part(questions.removed),
        instance_question=np.array(questions.instance_question[low:high]) - first,
        instance_triple=np.array(questions.instance_triple[low:high]),
        candidate_lists=None if lists is None else replace(lists, of=np.array(lists.of[rows])),
        outside=None if outside is None else np.array(outside[low:high]),
        full_candidates=None if full is None else np.array(full[low:high]),
    )
    return some, first, slice(start - low, stop - low)
