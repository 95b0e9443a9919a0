"""Ranks and run of a store's questions in files, written part by part and read block by block.

Every ranking of this package ends here: parts come in any order (`StoredRanks.add`), and their
counts and candidates go to files. From these come the ranks and run of one process: in memory, as
files of the same bytes, or as the result of a batch's job. Sums of a result run in the order of
relations, over some instances at a time. So micro and macro means hold only that order, and the
best answer of each question, in memory. Other measures (spreads, weights, expected and stratified
values) read a few columns of all instances.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from kgtrec._internal.arrays import Array, Bools, Int32, Int64
from kgtrec._internal.csr import Csr, spans
from kgtrec._internal.files import atomic_write
from kgtrec._internal.system import allocate
from kgtrec.cluster.parts import Inputs
from kgtrec.cluster.question_store import Store, read_rows
from kgtrec.errors import PathName
from kgtrec.measures import Measure
from kgtrec.measures.rank_metrics import SPREAD_ROWS
from kgtrec.questions.api import Questions
from kgtrec.ranking.columns import (
    build_count_columns,
    build_instance_columns,
    build_manifest,
    convert_columns,
)
from kgtrec.ranking.parquet import ROW_GROUP, find_used_ids, write_blocks
from kgtrec.ranking.partial import PartialRanks, describe_facts, describe_parts
from kgtrec.ranking.ranks import Ranks, RanksAndRun
from kgtrec.ranking.tie_report import tie_report
from kgtrec.results.result import Result
from kgtrec.trec.files.run import Run
from kgtrec.trec.measures.agreement import compare_with_ranks

Columns = dict[str, Array]

_CANDIDATES = 1 << 18  # candidates of a run that are written at a time


class StoredRanks:
    """Ranks and run of a store's questions, with at most one block in memory.

    ``folder`` has no other files. Counts have one row per count and one column per target;
    candidates are in the order in which parts came.
    """

    def __init__(self, folder: Path, inputs: Inputs) -> None:
        self.store, self._folder = inputs.store(), folder
        self._depth = inputs.settings.run_depth
        self._facts = () if inputs.files is None else inputs.files.facts
        self.n = self.store.n_instances
        self.n_questions = len(self.store.array("answers_offsets")) - 1
        self._parts: list[PartialRanks] = []
        self._n_candidates = 0
        targets, questions = max(1, self.store.n_targets), max(1, self.n_questions)
        self._arrays: dict[str, tuple[Any, tuple[int, ...]]] = {
            "counts": (np.int64, (6, targets)),
            "nan": (np.bool_, (targets,)),
            "starts": (np.int64, (questions,)),
            "lengths": (np.int32, (questions,)),
        }
        for name, (dtype, shape) in self._arrays.items():
            # Allocate the files before writing through maps: a full disk then raises an error here,
            # not a signal there.
            with open(folder / name, "wb") as file:
                size = np.dtype(dtype).itemsize * int(np.prod(shape))
                allocate(file.fileno(), size)
        for name in ("documents", "scores"):
            (folder / name).touch()

    def _map(self, name: str, mode: Any = "r") -> Array:
        """Map the file of an array."""
        dtype, shape = self._arrays[name]
        return np.memmap(self._folder / name, dtype, mode, shape=shape)

    def add(self, part: PartialRanks) -> None:
        """Write the counts and candidates of a part with all entities."""
        first = int(self.store.array("plan_target_offsets")[part.task.first_row])
        targets = slice(first, first + part.counts.shape[1])
        self._map("counts", "r+")[:, targets] = part.counts
        self._map("nan", "r+")[targets] = part.answer_nan
        slots = np.array(self.store.array("plan_slot")[slice(*part.task.rows)])
        questions = slots[slots >= 0]
        starts = self._n_candidates + np.cumsum(part.lengths, dtype=np.int64) - part.lengths
        self._map("starts", "r+")[questions] = starts
        self._map("lengths", "r+")[questions] = part.lengths
        for name in ("documents", "scores"):
            with open(self._folder / name, "ab") as file:
                file.write(np.ascontiguousarray(getattr(part, name)).data)
        self._n_candidates += len(part.documents)
        empty = np.zeros(0, np.int32)
        self._parts.append(
            replace(
                part,
                counts=np.zeros((6, 0), np.int64),
                answer_nan=np.zeros(0, bool),
                lengths=empty,
                documents=empty,
                scores=np.zeros(0, part.scores.dtype),
            )
        )

    @cached_property
    def _manifest(self) -> dict[str, Any]:
        """Manifest of the ranks; UsageError if rows are missing."""
        questions, parts = self.store.questions(), sorted(self._parts, key=lambda part: part.task)
        facts = describe_facts(self._facts)
        described = describe_parts(parts, self.store.n_rows, questions, **facts)
        return build_manifest(questions, described)

    def load(self) -> RanksAndRun:
        """Read ranks and run into memory; they equal those of `kgtrec.rank`."""
        manifest, questions = self._manifest, self.store.questions(mapped=False)
        docnos, run_lists = questions.candidate_labels.docnos, self._candidates(0, self.n_questions)
        ranks = Ranks(self._columns(0, self.n), manifest, *questions.origin.labels)
        return RanksAndRun(ranks, Run(questions.ids, *run_lists, docnos, self._depth))

    def save(self, path: PathName) -> None:
        """Write the ranks; the file equals that of `kgtrec.Ranks.save`, byte for byte."""
        manifest, questions = self._manifest, self.store.questions()
        labels = questions.origin.labels
        # Every question has an answer.
        ids = {name: column for name, (column, _) in questions.columns.items()}
        ids |= {"answer": questions.answers.ids, "question": np.arange(len(questions))}
        if questions.kind == "relation":
            ids["relation"] = ids["answer"]
        used = find_used_ids(ids, manifest)
        del questions, ids  # and their mapped pages

        def read_counts(start: int, stop: int) -> tuple[Any, Any]:
            columns = self._columns(start, stop)
            return columns["greater"], columns["equal"]

        manifest = manifest | {"tie_report": tie_report(read_counts, self.n)}
        write_blocks(path, self._blocks(), manifest, used, *labels)

    def map_columns(self, folder: Path) -> Ranks:
        """Return the ranks with columns that are mapped from files in a folder.

        The system can reclaim the memory of mapped pages.
        """
        manifest = self._manifest
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
        return Ranks(columns, manifest, *self.store.questions().origin.labels)

    def save_run(self, path: PathName) -> None:
        """Write the run; the file equals that of `Run.write`, byte for byte."""
        names = None
        with atomic_write(path) as file:
            for run, *_ in self.runs():
                names = run.docnos.to_arrow() if names is None else names
                run.write_to(file, names=names)

    def runs(self) -> Iterator[tuple[Run, Csr, slice]]:
        """Yield run, answers and rows of instances, for consecutive ranges of all questions."""
        docnos = self.store.questions().candidate_labels.docnos
        for first, stop in _ranges(self.n_questions, _CANDIDATES // max(1, self._depth)):
            names = self.store.questions().origin.names(slice(first, stop))
            run = Run(names, *self._candidates(first, stop), docnos, self._depth)
            bounds = np.array(self.store.array("answers_offsets")[first : stop + 1])
            ids = np.array(self.store.array("answers_ids")[bounds[0] : bounds[-1]])
            yield run, Csr(bounds - bounds[0], ids), slice(int(bounds[0]), int(bounds[-1]))

    def _candidates(self, first: int, stop: int) -> tuple[Int64, Int32, Array]:
        """Read the candidates of a range of n questions: offsets (n + 1,), documents and scores."""
        starts, lengths = (np.array(self._map(name)[first:stop]) for name in ("starts", "lengths"))
        offsets, positions = spans(starts, lengths)
        score_type = self._parts[0].scores.dtype
        return (
            offsets,
            self._read_candidates("documents", np.int32, positions),
            self._read_candidates("scores", score_type, positions),
        )

    def _read_candidates(self, name: str, dtype: Any, positions: Int64) -> Array:
        if not len(positions):
            return np.zeros(0, dtype)
        return read_rows(np.memmap(self._folder / name, dtype, "r"), positions)

    def _blocks(self) -> Iterator[Columns]:
        """Yield the columns of consecutive ranges of instances."""
        for start, stop in _ranges(self.n, ROW_GROUP):
            yield self._columns(start, stop)

    @cached_property
    def _popular(self) -> Any:
        """Popularity of the entities, as the questions' source defines it."""
        questions = self.store.questions()
        return questions.origin.popularity(questions)

    def _columns(self, start: int, stop: int) -> Columns:
        """Read the columns of a range of instances, as in `Ranks`."""
        block_questions, question, inside = _read_questions(self.store.questions(), start, stop)
        # Counts of whole questions: candidates are counted by question.
        offset = start - inside.start
        counts = self._counts(offset, offset + block_questions.n_instances)
        columns = build_count_columns(block_questions, *counts) | build_instance_columns(
            block_questions, self._popular
        )
        columns["question"] = columns["question"] + np.int64(question)
        return {name: column[inside] for name, column in convert_columns(columns).items()}

    def _counts(self, start: int, stop: int) -> tuple[Int64, Bools]:
        """Read counts (6, n) of a range of instances, and whether answers have no score (2, n)."""
        n_targets = self._arrays["nan"][1][0]
        counts = np.zeros((6, stop - start), np.int64)
        unscored = np.ones((2, stop - start), bool)
        for number, name in enumerate(("micro", "macro")):
            target = np.array(self.store.array(f"plan_{name}")[start:stop])
            (indices,) = np.nonzero(target >= 0)
            for row in range(3 * number, 3 * number + 3):
                positions = row * n_targets + target[indices]
                counts[row, indices] = read_rows(self._map("counts").reshape(-1), positions)
            unscored[number, indices] = read_rows(self._map("nan"), target[indices])
        return counts, unscored


def _ranges(n: int, step: int) -> Iterator[tuple[int, int]]:
    """Yield ranges (first, stop) of at most `step` numbers below `n`, at least one range."""
    for first in range(0, max(1, n), max(1, step)):
        yield first, min(first + max(1, step), n)


def _read_questions(questions: Questions, start: int, stop: int) -> tuple[Questions, int, slice]:
    """Read the questions of a range of instances into memory.

    Returns them, the number of the first one, and the slice of these instances among theirs.
    """
    question_of = questions.instance_question
    first, last = (
        (int(question_of[start]), int(question_of[stop - 1]) + 1) if start < stop else (0, 0)
    )
    low, high = (int(questions.answers.offsets[question]) for question in (first, last))

    def part(csr: Csr) -> Csr:
        offsets = np.array(csr.offsets[first : last + 1])
        return Csr(offsets - offsets[0], np.array(csr.ids[offsets[0] : offsets[-1]]))

    some = questions.select(
        slice(first, last),
        slice(low, high),
        answers=part(questions.answers),
        known=part(questions.known),
        removed=part(questions.removed),
        instance_question=np.array(question_of[low:high]) - first,
    )
    return some, first, slice(start - low, stop - low)


# Bytes, measured with 2 and 20 million questions and rounded up. _BLOCK: per instance of a block;
# _WRITTEN, _SUMMED, _INSTANCE: per instance for files, for means of micro and macro ranks, for
# other measures. _ENTITY: per entity for its popularity, its use and its label in two columns.
_BLOCK, _WRITTEN, _SUMMED, _INSTANCE, _ENTITY = 300, 12, 80, 100, 64


def result_bytes(store: Store, measures: list[Measure] | None) -> int:
    """Return the memory that this process needs for a result, besides `CLIENT_BYTES`.

    ``measures=None``: for files of ranks.
    """
    n, each = store.n_instances, _WRITTEN
    if measures is not None:
        summed = all(map(_can_be_summed, measures)) and store.of_graph
        each = _SUMMED if summed else _INSTANCE
    return _BLOCK * min(n, ROW_GROUP) + each * n + _ENTITY * store.n_labels


def _can_be_summed(measure: Measure) -> bool:
    """Return whether a measure can be summed over some instances at a time."""
    if measure.is_trec:
        return True
    is_mean = measure.averaging in ("micro", "macro", "macro_relation")
    row, spread = measure.row[0], {each.name for each in SPREAD_ROWS}
    return is_mean and measure.rank_type != "expected" and not {row.name, row.base} & spread


def evaluate_stored(stored: StoredRanks, folder: Path, measures: list[Measure]) -> Result:
    """Return the `Result` of `kgtrec.evaluate`, without questions and run."""
    ranks = stored.map_columns(folder)
    if not ranks.of_graph:
        return Result(ranks, measures=measures)
    values: dict[str, list[Array]] = {}
    agreement: dict[str, float] = {}
    names = [measure.metric for measure in measures if measure.is_trec]
    for run, answers, rows in stored.runs():
        block_values, differences = compare_with_ranks(ranks.subset(rows), run, answers, names)
        for name, array in block_values.items():
            values.setdefault(name, []).append(array)
        for name, difference in differences.items():
            agreement[name] = max(agreement.get(name, 0.0), difference)
    ranks.manifest["trec_agreement"] = agreement
    whole = {name: np.concatenate(arrays) for name, arrays in values.items()}
    return Result(ranks, trec_values=whole, agreement=agreement, measures=measures)
