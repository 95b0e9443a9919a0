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
from kgtrec.cluster.plan import format_bytes, memory_bytes
from kgtrec.cluster.question_store import Store
from kgtrec.cluster.write_blocks import write_stored_ranks
from kgtrec.errors import UsageError
from kgtrec.ranking.parquet import ROW_GROUP
from kgtrec.ranking.partial import PartialRanks, describe_parts

if TYPE_CHECKING:
    from distributed import Client

    from kgtrec.questions.api import Questions

__all__ = ["rank_to_file"]

# Bytes of this process, measured with 2 and 20 million questions and rounded up; of an entity: its
# popularity, whether it is in use, and its label in two columns.
_CLIENT = 220 << 20
_OF_BLOCK, _INSTANCE, _ENTITY = 300, 12, 64


def rank_to_file(
    source: Any,
    questions: Questions | str | PathLike[str],
    path: str | PathLike[str],
    client: Client | None = None,
    memory: str | int = "2GB",
    *,
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
    """Rank on the workers of a Dask cluster, and write the ranks' file block by block.

    The file is that of ``kgtrec.rank(...)[0].save(path)``, byte for byte. No more than a block of a
    million instances is in the memory of this process at a time, nor are the questions, if they are
    stored.

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
    rows : {"questions", "instances"}
        What a row of scores stands for; stored questions know it.
    folder : path, optional
        Work folder, as for `kgtrec.cluster.rank`. Counts of all answers stand there until the file
        is written: 49 bytes an answer.

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
    with ExitStack() as stack:
        work = work_folder(stack, folder)
        if isinstance(questions, (str, PathLike)):
            place = mapped_folder(questions, "stored questions")
            store = Store(place.absolute(), verify=True)
            inputs = inputs_of_store(source, store, work, **options)
        else:
            inputs = make_inputs(source, questions, work, rows=rows, **options)
            store = inputs.store()
        _check_memory(store, granted)
        counts = CountFiles(_scratch(stack, work), store)

        def take(part: PartialRanks) -> PartialRanks:
            counts.add(part)
            nothing = np.zeros((6, 0), np.int64), np.zeros(0, bool)
            return replace(part, counts=nothing[0], answer_nan=nothing[1])

        dask = stack.enter_context(opened_client(client, work))
        parts = rank_parts(
            inputs, dask, memory, folder=None if folder is None else work, retries=retries,
            progress=progress, tell=tell_plan(progress), patience=patience, take=take,
        )  # fmt: skip
        parts.sort(key=lambda part: part.task)
        described = describe_parts(
            parts, store.n_rows, store.questions(), store.rows, inputs.higher_is_better
        )
        write_stored_ranks(path, store, counts, described)


def _check_memory(store: Store, granted: int) -> None:
    n = len(store.array("instance_triple"))
    least = _CLIENT + _OF_BLOCK * min(n, ROW_GROUP) + _INSTANCE * n + _ENTITY * store.n_labels
    if least > granted:
        raise UsageError(
            f"the memory granted is too little: to write {n:,} ranks takes {format_bytes(least)}; "
            f"grant more (memory='{-(-least // 10**6)}MB')"
        )


def _scratch(stack: ExitStack, work: Path) -> Path:
    made = tempfile.TemporaryDirectory(prefix="counts-", dir=work, ignore_cleanup_errors=True)
    return Path(stack.enter_context(made))
