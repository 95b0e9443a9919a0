"""`rank_to_file`: a ranking on a Dask cluster that ends in a file, and is never whole in memory."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from kgtrec._internal.atomic_file import check_writable
from kgtrec._internal.locations import mapped_folder
from kgtrec.cluster.count_files import CountFiles
from kgtrec.cluster.dask.rank import rank_parts, tell_plan, work_folder
from kgtrec.cluster.dask.workers import PATIENCE, opened_client, valid_patience
from kgtrec.cluster.inputs import inputs_of_store, make_inputs
from kgtrec.cluster.part import Inputs
from kgtrec.cluster.plan import format_bytes, memory_bytes
from kgtrec.cluster.question_store import Store
from kgtrec.cluster.run_files import RunFiles
from kgtrec.cluster.write_blocks import StoredRanks
from kgtrec.errors import UsageError
from kgtrec.ranking.kernel import whole_number
from kgtrec.ranking.parquet import ROW_GROUP
from kgtrec.ranking.partial import PartialRanks, describe_parts

if TYPE_CHECKING:
    from distributed import Client

    from kgtrec.questions.api import Questions

__all__ = ["CLIENT", "client_bytes", "rank_in_files", "rank_to_file", "scratch"]

# Bytes of this process, measured with 2 and 20 million questions and rounded up; of an entity: its
# popularity, whether it is in use, and its label in two columns.
CLIENT = 220 << 20
_OF_BLOCK, _INSTANCE, _ENTITY = 300, 12, 64


def rank_to_file(
    source: Any,
    questions: Questions | str | PathLike[str],
    path: str | PathLike[str],
    client: Client | None = None,
    memory: str | int = "2GB",
    *,
    run: str | PathLike[str] | None = None,
    run_depth: int = 1000,
    rows: str = "questions",
    higher_is_better: bool = True,
    nan: str = "error",
    atol: float = 0.0,
    rtol: float = 0.0,
    folder: str | PathLike[str] | None = None,
    retries: int = 3,
    progress: bool | None = None,
    patience: float = PATIENCE,
) -> None:
    """Rank on the workers of a Dask cluster, and write the files of ranks and run block by block.

    They are those of ``kgtrec.rank(...)[0].save(path)`` and ``[1].write(run)``, byte for byte. No
    more than a block of a million instances is in the memory of this process at a time, nor are the
    questions, if they are stored.

    Parameters
    ----------
    source : object
        As for `kgtrec.cluster.rank`, but no Dask array.
    questions : Questions or path
        Or the folder that `kgtrec.cluster.store_questions` returned, best on storage that all
        workers see.
    path : path
        Of the file of ranks.
    client, higher_is_better, nan, atol, rtol, retries, progress, patience
        As for `kgtrec.cluster.rank`.
    memory : str or int, default "2GB"
        Most that a task may use, and this process.
    run : path, optional
        Of a TREC run file to write, too; ``.gz`` and ``.zst`` compress.
    run_depth : int, default 1000
        Candidates of a question in it.
    rows : {"questions", "instances"}
        What a row of scores stands for; stored questions know it.
    folder : path, optional
        Work folder, as for `kgtrec.cluster.rank`. What is counted and kept stands there until the
        files are written: 49 bytes an answer, and 8 or 12 a candidate of the run.

    Raises
    ------
    FileError
        The file cannot be written, or the stored questions are damaged.
    InputError, UsageError, ClusterError
        As `kgtrec.cluster.rank`; UsageError for less memory than this process needs.
    """
    patience, granted = valid_patience(patience), memory_bytes(memory)
    check_writable(path)
    options: dict[str, Any] = {
        "higher_is_better": higher_is_better, "nan": nan, "atol": atol, "rtol": rtol,
    }  # fmt: skip
    if run is not None:
        check_writable(run)
        options["run_depth"] = whole_number("run_depth", run_depth, 1)
    with ExitStack() as stack:
        work = work_folder(stack, folder)
        if isinstance(questions, (str, PathLike)):
            place = mapped_folder(questions, "stored questions")
            store = Store(place.absolute(), verify=True)
            inputs = inputs_of_store(source, store, work, **options)
        else:
            inputs = make_inputs(source, questions, work, rows=rows, **options)
        _check_memory(inputs.store(), granted)
        dask = stack.enter_context(opened_client(client, work))
        ranks = rank_in_files(
            inputs, dask, memory, Path(stack.enter_context(scratch(work))), retries=retries,
            folder=None if folder is None else work, progress=progress, tell=tell_plan(progress),
            patience=patience,
        )  # fmt: skip
        ranks.save(path)
        if run is not None:
            ranks.save_run(run)


def rank_in_files(
    inputs: Inputs, client: Client, memory: str | int, into: Path, **options: Any
) -> StoredRanks:
    """Ranks whose counts, and candidates if any are kept, go to files of a folder as they come;
    ``options`` are those of `rank_parts`."""
    store = inputs.store()
    counts = CountFiles(into, store)
    run = RunFiles(into, store, inputs.run_depth) if inputs.run_depth else None

    def take(part: PartialRanks) -> PartialRanks:
        counts.add(part)
        if run is not None:
            run.add(part)
        none = np.zeros(0, np.int32)
        return replace(
            part, counts=np.zeros((6, 0), np.int64), answer_nan=np.zeros(0, bool), lengths=none,
            documents=none, scores=np.zeros(0, part.scores.dtype),
        )  # fmt: skip

    parts = rank_parts(inputs, client, memory, take=take, **options)
    parts.sort(key=lambda part: part.task)
    described = describe_parts(
        parts, store.n_rows, store.questions(), store.rows, inputs.higher_is_better
    )
    return StoredRanks(store, counts, described, run)


def client_bytes(store: Store) -> int:
    """What this process needs for a ranking that goes to files, besides what it always needs."""
    n = store.n_instances
    return _OF_BLOCK * min(n, ROW_GROUP) + _INSTANCE * n + _ENTITY * store.n_labels


def _check_memory(store: Store, granted: int) -> None:
    least = CLIENT + client_bytes(store)
    if least > granted:
        n = store.n_instances
        raise UsageError(
            f"the memory granted is too little: to write {n:,} ranks takes {format_bytes(least)}; "
            f"grant more (memory='{-(-least // 10**6)}MB')"
        )


def scratch(work: Path) -> tempfile.TemporaryDirectory[str]:
    """A folder in another that goes with its context."""
    return tempfile.TemporaryDirectory(
        prefix=".kgtrec-", suffix=".tmp", dir=work, ignore_cleanup_errors=True
    )
