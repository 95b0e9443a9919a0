"""Ranking on a Dask cluster: the parts of a plan as tasks, joined to the bytes of the local run.

Joined parts go to the files of a `StoredRanks`. `rank` loads them. `rank_to_file` writes the files
of ranks and run from them, so the whole ranking is never in memory.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kgtrec._internal.files import check_writable, make_folder
from kgtrec._internal.locations import require_local_folder
from kgtrec._internal.progress import progress_bar
from kgtrec._version import __version__
from kgtrec.cluster.content_hash import hash_text, read_json, stamps_of, write_json
from kgtrec.cluster.dask.shipment import Work, Workers
from kgtrec.cluster.dask.tasks import complete_all, rank_chunks
from kgtrec.cluster.dask.workers import PATIENCE, TaskOptions, open_client
from kgtrec.cluster.inputs import build_inputs, build_inputs_of_store
from kgtrec.cluster.parts import Inputs, merge_parts
from kgtrec.cluster.plan import PartFiles, format_bytes, make_plan, memory_bytes
from kgtrec.cluster.question_store import Store
from kgtrec.cluster.score_files import identify_scores
from kgtrec.cluster.stored_ranks import StoredRanks, result_bytes
from kgtrec.errors import InputError, UsageError
from kgtrec.questions.api import Questions
from kgtrec.ranking.partial import PartialRanks
from kgtrec.ranking.ranker import column_order
from kgtrec.ranking.settings import ScoreOptions, Settings, whole_number
from kgtrec.scores.mapped_files import reading

if TYPE_CHECKING:
    from distributed import Client
    from typing_extensions import Unpack

    from kgtrec.ranking.ranks import RanksAndRun

DASK_BYTES = 32 << 20
"""Memory that Dask itself needs in a worker."""

_PARTS_PER_THREAD = 3
_LEAST_TO_FORECAST = 10**9  # scores, which take a second; a forecast takes a fifth of a second


def rank(
    source: Any,
    questions: Questions,
    client: Client | None = None,
    memory: str | int = "2GB",
    *,
    run_depth: int = 0,
    columns: Any = None,
    folder: str | PathLike[str] | None = None,
    retries: int = 3,
    progress: bool | None = None,
    patience: float = PATIENCE,
    **options: Unpack[ScoreOptions],
) -> RanksAndRun:
    """Rank every answer of every question on the workers of a Dask cluster.

    Parameters
    ----------
    source : object
        The path or URL of a ``.npy`` file, of a folder of ``.npy`` shards or of an ``.npz`` with a
        factorised model (workers read only what they need); an array; `kgtrec.Factors`; a mapping
        with ``head`` and ``tail`` arrays; or a Dask array of shape (rows, entities), which is
        ranked chunk by chunk.
    questions : Questions
    client : distributed.Client, optional
        None: as many worker processes as there are cores, which end with the call.
    memory : str or int, default "2GB"
        Most that a task may use, such as ``"2GB"``: the work is cut into parts that fit, for any
        number of questions and entities. A worker of several threads runs as many tasks. Chunks of
        a Dask array are not cut.
    run_depth, rows, columns, higher_is_better, nan, atol, rtol
        As for `kgtrec.rank`. A Dask array has its columns in id order.
    folder : path, optional
        Work folder, best on storage that all workers see: they memory-map questions and scores
        from it. It keeps finished parts, so that the same call continues after it was killed. None:
        a temporary folder. Workers that do not see the folder receive each file once.
    retries : int, default 3
        How often a failed task is tried again, on any worker.
    progress : bool, optional
        As for `kgtrec.rank`; counts tasks that the scheduler reports as finished.
    patience : float, default 60
        Seconds. Work continues on the remaining workers. After this time without any worker, at
        the start or after losses, it ends in a `ClusterError`. ``float("inf")``: for queues.

    Returns
    -------
    ranks : Ranks
    run : Run
        Both equal those of `kgtrec.rank`, bit for bit.

    Raises
    ------
    InputError
        As `kgtrec.rank`.
    UsageError
        Too little memory, a source without a file (a callable), workers of another version.
    ClusterError
        There was no worker for `patience` seconds, the scheduler is gone, or a task repeatedly
        killed its workers. Finished parts stay in `folder`.

    Notes
    -----
    Without a client, put the call under ``if __name__ == "__main__":`` in a script: the workers
    import it.
    """
    tasks = TaskOptions(memory, retries, progress, patience)
    settings = Settings.from_options("rank", ScoreOptions, options, run_depth=run_depth, threads=1)
    with ExitStack() as stack, reading("scores or questions", source):
        ordered = _declare_columns(questions, columns)
        return _rank_into_files(stack, source, ordered, settings, client, folder, tasks).load()


def _declare_columns(questions: Any, columns: Any) -> Any:
    """Return questions with an order of columns; UsageError for stored ones, which have one."""
    if columns is None or not isinstance(questions, (Questions, str, PathLike)):
        return questions
    if not isinstance(questions, Questions):
        raise UsageError(
            "stored questions have the order of their columns; leave columns= out here, and store "
            "the questions of graph.questions(columns=...)"
        )
    return replace(questions, column_of=column_order(questions, columns))


def _rank_into_files(
    stack: ExitStack,
    source: Any,
    questions: Questions | str | PathLike[str],
    settings: Settings,
    client: Client | None,
    folder: str | PathLike[str] | None,
    tasks: TaskOptions,
    least: int = 0,
) -> StoredRanks:
    """Rank into files, which are removed when `stack` ends.

    ``least`` is the memory of this process without the result; 0: do not check it.
    """
    if folder is None:
        work = Path(stack.enter_context(make_scratch_folder(None)))
    else:
        work = require_local_folder(folder, "the files of a work folder (folder=)").absolute()
        make_folder(work)
    # A Dask array, recognised without importing Dask.
    chunked = type(source).__module__.partition(".")[0] == "dask" and hasattr(source, "to_delayed")
    if isinstance(questions, (str, PathLike)):
        store = Store(require_local_folder(questions, "stored questions").absolute(), verify=True)
        inputs = build_inputs_of_store(source, store, work, settings)
    else:
        inputs = build_inputs(None if chunked else source, questions, work, settings)
    if least:
        store, granted = inputs.store(), memory_bytes(tasks.memory)
        if (least := least + result_bytes(store, None)) > granted:
            raise UsageError(
                f"the memory limit is too low: writing {store.n_instances:,} ranks takes "
                f"{format_bytes(least)}; allow more (memory='{-(-least // 10**6)}MB')"
            )
    dask = stack.enter_context(open_client(client, work))
    stored = StoredRanks(Path(stack.enter_context(make_scratch_folder(work))), inputs)
    if chunked:
        rank_chunks(source, inputs, dask, stored.add, tasks)
    else:
        kept = None if folder is None else work
        rank_parts(inputs, dask, stored.add, tasks, kept, make_plan_printer(tasks.progress))
    return stored


def make_plan_printer(progress: bool | None) -> Callable[[str], None] | None:
    """Return a function that prints a plan on standard error; None if progress is not shown."""
    if not (sys.stderr.isatty() if progress is None else progress):
        return None
    return lambda text: print(f"kgtrec: {text}", file=sys.stderr)


def hash_inputs(inputs: Inputs) -> str:
    """Return a hash of everything that parts depend on, except their rows and entities."""
    files = inputs.files
    scores = None if files is None else identify_scores(files)
    selection = "" if files is None else Path(files.selection).name + Path(files.columns).name
    options = inputs.settings
    settings = (options.run_depth, options.higher_is_better, options.nan, options.tolerance)
    return hash_text(
        json.dumps([__version__, Path(inputs.folder).name, scores, selection, settings])
    )


def rank_parts(
    inputs: Inputs,
    client: Client,
    take: Callable[[PartialRanks], None],
    tasks: TaskOptions,
    folder: Path | None = None,
    say: Callable[[str], None] | None = None,
    watch: Callable[[int, int], None] = lambda left, threads: None,
    jobs: int = 1,
) -> None:
    """Rank all rows with all entities.

    - take: Receives the result of each block of rows, in any order.
    - folder: Folder for finished parts, from which a later call continues; None: keep none.
    - say: Receives the plan as text.
    - watch: Receives the number of remaining tasks and the number of the workers' threads.
    - jobs: Number of rankings that share the workers.
    """
    check = _make_change_check(inputs)
    files = None if folder is None else PartFiles(folder / f"parts-{hash_inputs(inputs)}")
    with closing(Workers(client, inputs, tasks)) as workers:
        works = _plan_tasks(workers, files, say, jobs)
        n_ranges, left = Counter(work.rows for work in works), []
        waiting: dict[tuple[int, int], list[PartialRanks]] = {}

        def join(work: Work, part: PartialRanks) -> None:
            """Add a part to its block; pass the block on when it has the parts of all ranges."""
            waiting.setdefault(work.rows, []).append(part)
            if len(waiting[work.rows]) == n_ranges[work.rows]:
                ordered = sorted(waiting.pop(work.rows), key=lambda part: part.task)
                take(merge_parts(ordered, inputs))

        with progress_bar(len(works), "parts", tasks.progress) as bar:
            for work in works:
                part = None if files is None else files.load(work.task)
                if part is None:
                    left.append(work)
                else:
                    join(work, part)
                    bar.update()
            n_left = len(left)
            watch(n_left, workers.threads)
            for work, part in complete_all(workers, left, workers.submit, workers.window):
                check()
                workers.forget(work)
                if files is not None:
                    files.save(part)
                join(work, part)
                bar.update()
                n_left -= 1
                watch(n_left, workers.threads)
        check()


def _make_change_check(inputs: Inputs) -> Callable[[], None]:
    """Return a function that raises InputError if the scores have changed since this call.

    So no part of other scores is kept.
    """
    files = inputs.files
    if files is None:
        return lambda: None
    before = stamps_of(files.sources)

    def check() -> None:
        if stamps_of(files.sources) != before:
            name = files.location or "the file with the scores"
            raise InputError(
                f"{name} changed while it was ranked; rank again when nothing writes to it"
            )

    return check


def _plan_tasks(
    workers: Workers, files: PartFiles | None, say: Callable[[str], None] | None, jobs: int
) -> list[Work]:
    """Return the tasks. If a ranking is continued, they are those of its first call.

    So finished parts fit even if the number of workers changed.
    """
    memory = memory_bytes(workers.tasks.memory)
    spans = None
    if files is not None:
        note = files.folder / f"tasks-{memory}.json"
        with suppress(OSError, ValueError):  # missing, or damaged
            spans = read_json(note)
    if files is not None and spans is not None:
        works = [Work(tuple(rows), tuple(map(tuple, ranges))) for rows, ranges in spans]
        if say is not None:
            say(f"{files.count()} of {len(works)} parts are finished")
        return works
    plan = make_plan(
        workers.inputs,
        memory,
        max(1, workers.threads),
        calibrate=say is not None,
        worth=_LEAST_TO_FORECAST,
        reserve=DASK_BYTES + workers.bytes_held,
        sent=workers.bytes_sent,
        jobs=jobs,
        results=1,
    )
    if say is not None:
        say(str(plan))
    works = list(cut_into_tasks(plan.blocks, plan.ranges, workers.threads))
    if files is not None:
        write_json(note, [(work.rows, work.ranges) for work in works])
    return works


def cut_into_tasks(
    blocks: Sequence[tuple[int, int]], ranges: Sequence[tuple[int, int]], threads: int
) -> Iterator[Work]:
    """Yield one task per block with all ranges, or several if threads would have no task."""
    groups = min(len(ranges), max(1, -(-_PARTS_PER_THREAD * threads // len(blocks))))
    size = -(-len(ranges) // groups)
    for rows in blocks:
        for start in range(0, len(ranges), size):
            yield Work(rows, tuple(ranges[start : start + size]))


CLIENT_BYTES = 220 << 20
"""Memory that this process always needs, measured and rounded up."""


def rank_to_file(
    source: Any,
    questions: Questions | str | PathLike[str],
    path: str | PathLike[str],
    client: Client | None = None,
    memory: str | int = "2GB",
    *,
    run: str | PathLike[str] | None = None,
    run_depth: int = 1000,
    columns: Any = None,
    folder: str | PathLike[str] | None = None,
    retries: int = 3,
    progress: bool | None = None,
    patience: float = PATIENCE,
    **options: Unpack[ScoreOptions],
) -> None:
    """Rank on the workers of a Dask cluster, and write the files of ranks and run block by block.

    The files equal those of ``kgtrec.rank(...)[0].save(path)`` and ``[1].write(run)``, byte for
    byte. This process holds at most a block of a million instances in memory at a time, and no
    questions if they are stored.

    Parameters
    ----------
    source : object
        As for `kgtrec.cluster.rank`, but no Dask array with stored questions.
    questions : Questions or path
        Questions, or the folder that `kgtrec.cluster.store_questions` returned, best on storage
        that all workers see.
    path : path
        File of ranks to write.
    client, columns, higher_is_better, nan, atol, rtol, retries, progress, patience
        As for `kgtrec.cluster.rank`. Stored questions know the order of columns.
    memory : str or int, default "2GB"
        Most that a task, and this process, may use.
    run : path, optional
        TREC run file to write, too; ``.gz`` and ``.zst`` compress.
    run_depth : int, default 1000
        Candidates per question in the run.
    rows : {"questions", "instances"}
        What a row of scores represents; stored questions know it.
    folder : path, optional
        Work folder, as for `kgtrec.cluster.rank`. It holds counts and candidates until the files
        are written: 49 bytes per answer, and 8 or 12 per candidate of the run.

    Raises
    ------
    FileError
        The file cannot be written, or the stored questions are damaged.
    InputError, UsageError, ClusterError
        As `kgtrec.cluster.rank`; UsageError for less memory than this process needs.
    """
    tasks = TaskOptions(memory, retries, progress, patience)
    check_writable(path)
    if run is not None:
        check_writable(run)
    depth = 0 if run is None else whole_number("run_depth", run_depth, 1)
    settings = Settings.from_options(
        "rank_to_file", ScoreOptions, options, run_depth=depth, threads=1
    )
    with ExitStack() as stack, reading("scores or questions", source):
        ordered = _declare_columns(questions, columns)
        stored = _rank_into_files(
            stack, source, ordered, settings, client, folder, tasks, CLIENT_BYTES
        )
        stored.save(path)
        if run is not None:
            stored.save_run(run)


def make_scratch_folder(work: Path | None) -> tempfile.TemporaryDirectory[str]:
    """Return a temporary folder, in `work` if it is not None; it is removed with its context."""
    return tempfile.TemporaryDirectory(
        prefix=".kgtrec-", suffix=".tmp", dir=work, ignore_cleanup_errors=True
    )
