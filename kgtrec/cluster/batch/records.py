"""State of a batch in files: which ranks exist and are sound, and why a job failed.

Below the output folder::

    ranks/graph=G/protocol=P/model=M/ranks.parquet    one dataset, as `kgtrec rank -o`, with rank
    pairs/graph=G/protocol=P/model=M/ranks.tsv        of pairs, as `kgtrec pairs --write-ranks`
    records/G/P/M.json                                inputs' hash, the ranks' checksum, values
    summary.csv, summary.md                           all jobs in one table

A job is finished if its record names its present inputs and the ranks have the record's checksum.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kgtrec._internal.files import make_folder, write_text
from kgtrec._internal.locations import (
    exists,
    files_below,
    is_folder,
    is_location,
    local_copy,
    names_in,
    read_bytes,
    remove,
)
from kgtrec._internal.structured import parse_json
from kgtrec._internal.table import Cell, Table
from kgtrec._internal.text import join_names
from kgtrec._version import __version__
from kgtrec.cluster.batch.jobs import FILE_KEYS, Job, JobBatch, complete_key
from kgtrec.cluster.content_hash import describe_files, hash_file, hash_text, label_files, stamps_of
from kgtrec.cluster.vectors import vector_files
from kgtrec.errors import FileError, InputError, PathName, refuse
from kgtrec.graph.formats import graph_files
from kgtrec.measures import Measure
from kgtrec.ranking.parquet import RANKS_OF_JOB, job_of
from kgtrec.results.comparability import tolerance_text

_FORMAT = 2  # 1: ranks without the column `rank`
_CHECK = "check the job file's paths"
_PART_OF_DATASET = re.compile("ranks$|graph=|protocol=|model=")  # names of its folders
_MOST_NAMED = 5  # most jobs listed in one note


@dataclass(frozen=True)
class Outcome:
    """The state of a job.

    - state: ``changed``: its inputs changed after it was done; ``damaged``: its ranks differ from
      those written; ``begun``: some of its parts are done.
    - detail: The reason, or the progress.
    - values: Measures, if the job is finished.
    """

    job: Job
    state: str
    detail: str = ""
    values: Mapping[str, float] = field(default_factory=dict)


class Records:
    """The files of a batch's results."""

    def __init__(self, batch: JobBatch) -> None:
        self.batch, self.output = batch, batch.output
        self._seen: dict[tuple[str, ...], tuple[list[tuple[int, ...]], dict[str, Any]]] = {}
        self._current: set[tuple[str, ...]] = set()  # checked since the last `fresh_inputs`

    def ranks(self, job: Job) -> Path:
        """Return the path of a job's file in the dataset of ranks."""
        folder = f"graph={job.graph}/protocol={job.protocol}/model={job.model}"
        if job.of_pairs:
            return self.output / "pairs" / folder / "ranks.tsv"
        return self.output / "ranks" / folder / "ranks.parquet"

    @property
    def work_folder(self) -> Path:
        """Folder of the files that are needed until all jobs are done.

        Nothing else has this name, so the folder may be removed.
        """
        return self.batch.work / ".kgtrec-work"

    @property
    def parts(self) -> Path:
        """Folder for the parts of unfinished jobs."""
        return self.work_folder / "parts"

    def work(self, job: Job) -> Path:
        """Return the folder for the parts of a job."""
        return self.parts / job.graph / job.protocol / job.model

    def _record(self, job: Job) -> Path:
        return self.output / "records" / job.graph / job.protocol / f"{job.model}.json"

    def find_unfinished_files(self) -> Iterator[Path]:
        """Yield the unfinished files of a killed batch that no living process can be writing."""
        yield from self.work_folder.glob("**/.kgtrec-*.tmp")
        if not is_location(self.output):  # object stores have none
            for pattern in ("ranks/graph=*/**", "pairs/graph=*/**", "records/*/**"):
                yield from self.output.glob(f"{pattern}/.kgtrec-*.tmp")

    def fresh_inputs(self, job: Job) -> str:
        """Return `inputs` after checking all files again."""
        self._current.clear()
        return self.inputs(job)

    def inputs(self, job: Job) -> str:
        """Return a hash of everything that a job's ranks depend on."""
        graph, others = self._question_files(job)
        vectors = job.settings["vectors"] if job.of_pairs else job.vectors
        if vectors is not None:
            scores = vector_files(job.scores, vectors.get("model_config"))
        else:
            scores = list(_score_files(job.scores))
        groups = graph, scores, others
        settings = [
            (key, self._from_job_file(value) if key in ("known", *FILE_KEYS) else value)
            for key, value in sorted(job.settings.items())
            if key != "vectors"
        ]
        content: list[Any] = [__version__, _FORMAT, job.higher_is_better, settings]
        if vectors is not None:
            content.append(self._describe_options(vectors))
        names, described = map(self._from_job_file, groups), map(self._describe, groups)
        return hash_text(json.dumps([*content, [*names], [*described]]))

    def _describe_options(self, vectors: Mapping[str, Any]) -> dict[str, Any]:
        """Return the options of vectors, with the path of a configuration as `_from_job_file`."""
        of_file = {"model_config": self._from_job_file(vectors.get("model_config", ""))}
        return {**vectors, **of_file}

    def _from_job_file(self, path: Any) -> Any:
        """Return a path relative to the job file's folder if it is below that folder.

        So a folder that was moved with its job file has the same inputs. A list gives a list.
        """
        if isinstance(path, list):
            return [self._from_job_file(item) for item in path]
        parent = self.batch.path.parent
        for folder in () if is_location(path) else (parent, os.path.abspath(parent)):
            if Path(path).is_relative_to(folder):
                return str(Path(path).relative_to(folder))
        return str(path)

    def question_inputs(self, job: Job) -> str:
        """Return a hash of everything that a job's questions depend on.

        Files are as they were at the last `fresh_inputs`.
        """
        groups = self._question_files(job)
        described = [(list(map(str, paths)), self._describe(paths)) for paths in groups]
        return hash_text(json.dumps([sorted(job.settings.items()), described]))

    def _question_files(self, job: Job) -> tuple[list[Any], list[Any]]:
        """Return the files of the graph, and the other files of the questions."""
        graph, settings = getattr(job.request, "graph", None), job.settings
        splits = {} if graph is None else graph_files(graph)
        constraints = [settings["type_constraints"]] if "type_constraints" in settings else []
        here = {name: path for name, path in splits.items() if isinstance(path, Path)}
        others: list[Any] = list(label_files(here, constraints))
        others += [settings[name] for name in FILE_KEYS if name in settings]
        return list(splits.values()), [*others, *settings.get("known", [])]

    def _describe(self, paths: list[Any]) -> dict[str, Any]:
        """Describe the content of files. They are read again only if one has changed."""
        key = tuple(map(str, paths))
        if key not in self._current:
            stamps = stamps_of(key, _CHECK)
            if self._seen.get(key, (None,))[0] != stamps:
                self._seen[key] = stamps, describe_files(key, here=True, hint=_CHECK)
            self._current.add(key)
        return self._seen[key][1]

    def _read(self, job: Job) -> dict[str, Any]:
        """Return the record of a job; empty if there is none, or if it is damaged."""
        path = self._record(job)
        if not exists(path):  # a store that cannot be reached is an error
            return {}
        try:
            record = parse_json(read_bytes(path))
            return dict(record) if record["format"] == _FORMAT and _is_record(record) else {}
        except (OSError, ValueError, KeyError, TypeError):
            return {}

    def outcome(self, job: Job) -> Outcome:
        """Return the state of a job, from its files alone."""
        record = self._read(job)
        if not record:
            parts = sum(1 for _ in self.work(job).glob("**/*.part"))
            return Outcome(job, "begun", f"{parts} parts") if parts else Outcome(job, "waiting")
        if record.get("failed"):
            return Outcome(job, "failed", record["failed"])
        try:
            if record["inputs"] != self.inputs(job):
                return Outcome(job, "changed", "its inputs changed after they were ranked")
            if self._ranks_hash(job) != record["ranks"]:
                return Outcome(
                    job, "damaged", f"{self._path_text(job)} changed after it was written"
                )
        except OSError:
            return Outcome(job, "damaged", f"{self._path_text(job)} is missing or unreadable")
        except InputError as error:
            return Outcome(job, "changed", str(error))
        values = record["values"]
        keys = [key for key in self.batch.measures if job.measure_key(key) is not None]
        if not set(keys) <= set(values):
            return Outcome(job, "changed", "measures were added to the job file")
        known = {key: float("nan" if values[key] is None else values[key]) for key in keys}
        return Outcome(job, "finished", values=known)

    def _ranks_hash(self, job: Job) -> str:
        """Return the hash of a job's file of ranks; FileNotFoundError if it is missing."""
        path = self.ranks(job)
        if not exists(path):
            raise FileNotFoundError
        with local_copy(path) as copy:
            return hash_file(copy)

    def _path_text(self, job: Job) -> str:
        """Return the path or URL of a job's ranks for messages."""
        return f"{self.batch.output_name}/{self.ranks(job).relative_to(self.output)}"

    def clear(self, job: Job, inputs: str) -> None:
        """Remove the record and ranks of a job if they belong to other inputs."""
        if self._read(job).get("inputs") == inputs:
            return
        for path in (self._record(job), self.ranks(job)):
            remove(path)

    def record_success(self, job: Job, inputs: str, values: Mapping[str, float]) -> Outcome:
        """Record a job whose ranks are written, and return its outcome."""
        ranks = self._ranks_hash(job)
        self._write(
            job, {"format": _FORMAT, "inputs": inputs, "ranks": ranks, "values": dict(values)}
        )
        return Outcome(job, "finished", values=values)

    def record_failure(self, job: Job, reason: str) -> Outcome:
        """Record why a job failed, if possible, and return its outcome.

        Keep a result that may be valid: its inputs are unchanged, or cannot be read at the moment.
        """
        inputs = self._read(job).get("inputs")
        with suppress(InputError, OSError):
            if inputs is None or inputs != self.fresh_inputs(job):
                self._write(job, {"format": _FORMAT, "failed": reason})
        return Outcome(job, "failed", reason)

    def _write(self, job: Job, record: dict[str, Any]) -> None:
        """Write the record of a job."""
        path = self._record(job)
        make_folder(path.parent)
        write_text(path, f"{json.dumps(record, indent=1, sort_keys=True)}\n")

    def write_summary(self, outcomes: list[Outcome]) -> list[Path]:
        """Write one table of all jobs as CSV and as Markdown, and return the two paths."""
        table = build_summary(outcomes, self.batch.measures)
        record_failure = [outcome for outcome in outcomes if outcome.state == "failed"]
        notes = [
            *batch_notes(self.batch),
            *describe_outcomes(record_failure),
        ]
        list_of_notes = "".join(["\n", *(f"- {note}\n" for note in notes)]) if notes else ""
        texts = {"summary.csv": table.to_csv(), "summary.md": table.to_markdown() + list_of_notes}
        for name, text in texts.items():
            write_text(self.output / name, text)
        return [self.output / name for name in texts]


def describe_outcomes(outcomes: list[Outcome]) -> list[str]:
    """Return a line per job; jobs with the same state and fault share a line."""
    groups: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        groups.setdefault(describe_fault(outcome), []).append(outcome)
    return [_describe_alike(fault, alike) for fault, alike in groups.items()]


def _describe_alike(fault: str, outcomes: list[Outcome]) -> str:
    """Return a line about jobs with the same fault; it has a path if all jobs share the path."""
    if len(outcomes) == 1:
        return describe_outcome(outcomes[0])
    names = join_names([outcome.job.name for outcome in outcomes], "; ")
    details = {outcome.detail for outcome in outcomes}
    shared = (
        f"{outcomes[0].state}: {details.pop()}" if len(details) == 1 and any(details) else fault
    )
    return f"{len(outcomes)} jobs ({names}): {shared}"


def describe_outcome(outcome: Outcome) -> str:
    """Return a line about a job: its name, its state and, if any, the reason."""
    detail = f": {outcome.detail}" if outcome.detail else ""
    return f"{outcome.job.name}: {outcome.state}{detail}"


def describe_fault(outcome: Outcome) -> str:
    """Return the state of a job and its reason, without the path of its scores."""
    scores = outcome.job.scores
    reason = outcome.detail.replace(f"{scores}: ", "").replace(scores, "scores")
    return f"{outcome.state}: {reason}" if reason else outcome.state


def list_finished_ranks(output: PathName) -> list[tuple[str, str, str, Path]]:
    """List the ranks in a batch's output folder: graph, protocol, model and path, sorted.

    The folder may also be a part of the dataset of ranks, such as ``ranks/graph=G/protocol=P``.
    FileError if there are none.
    """
    ranks = _list_ranks(output) or _list_part(output)
    if not ranks:
        hint = "give files of ranks, or the output folder of `kgtrec batch`"
        refuse(output, None, "no ranks of a batch in this folder", hint)
    return ranks


def _list_ranks(output: PathName) -> list[tuple[str, str, str, Path]]:
    """List the ranks in a batch's output folder, perhaps none: graph, protocol, model and path."""
    folder = Path(output) / "ranks"
    matches = (RANKS_OF_JOB.fullmatch(name) for name in files_below(folder))
    return sorted((match[1], match[2], match[3], folder / match[0]) for match in matches if match)


def _list_part(folder: PathName) -> list[tuple[str, str, str, Path]]:
    """List the ranks in a part of a batch's dataset, like `_list_ranks`."""
    if not _PART_OF_DATASET.match(Path(folder).name):
        return []
    ranks = []
    for path in (Path(folder) / name for name in files_below(folder)):
        if job := job_of(path):
            graph, protocol, model = job
            ranks.append((graph, protocol, model, path))
    return sorted(ranks)


def build_summary(outcomes: list[Outcome], measures: tuple[str, ...]) -> Table:
    """Return a table with one row per job; measures of unfinished jobs are NaN."""
    keys = ("model", "graph", "protocol", "state", *measures)
    rows: list[tuple[Cell, ...]] = [
        (
            outcome.job.model,
            outcome.job.graph,
            outcome.job.protocol,
            outcome.state,
            *(outcome.values.get(key, float("nan")) for key in measures),
        )
        for outcome in outcomes
    ]
    digits = [0] * 4 + [_digits(key) for key in measures]
    return Table(keys, keys, digits, rows, names=4)


def _digits(key: str) -> int:
    """Return the number of decimals of a measure in tables."""
    return 4 if key.endswith("auroc") else Measure.parse(complete_key(key)).digits


def batch_notes(batch: JobBatch) -> list[str]:
    """Return notes on the results: tolerances for ties, and ranks that belong to no job."""
    usual = [job for job in batch.jobs if not job.of_pairs]
    tolerances = {job.protocol: job.settings_for(0).tolerance for job in usual}
    notes = [
        f"{protocol}: scores {tolerance_text(tolerance._asdict())} tie"
        for protocol, tolerance in tolerances.items()
        if tolerance is not None
    ]
    job_names = {job.name for job in batch.jobs}
    ranks = _list_ranks(batch.output)
    names = [f"{model} on {graph}, {protocol}" for graph, protocol, model, _ in ranks]
    strays = [name for name in names if name not in job_names]
    if not strays:
        return notes
    named = "; ".join(strays[:_MOST_NAMED])
    more = f"; and {len(strays) - _MOST_NAMED} more" if len(strays) > _MOST_NAMED else ""
    return [
        *notes,
        f"the dataset also has ranks of jobs that {batch.path.name} does not list ({named}{more}): "
        f"remove their folders from {batch.output_name}/ranks to leave them out of queries and "
        "tables",
    ]


def _is_record(record: Mapping[str, Any]) -> bool:
    """Return whether a record of a failed or finished job is complete."""
    if "failed" in record:
        return isinstance(record["failed"], str)
    numbers = record["values"].values() if isinstance(record["values"], dict) else [""]
    return all(isinstance(record[key], str) for key in ("inputs", "ranks")) and all(
        value is None or isinstance(value, (int, float)) for value in numbers
    )


def _score_files(scores: str) -> list[Path]:
    """Return a file of scores, or the shards of a folder; FileError if the folder has none."""
    path = Path(scores)
    if not is_folder(scores):
        return [path]
    shards = sorted(path / name for name in names_in(scores) or () if name.endswith(".npy"))
    if not shards:  # the storage may not be mounted
        raise FileError(path, found="no .npy shard in this folder", hint=_CHECK)
    return shards
