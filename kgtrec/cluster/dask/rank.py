"""`rank` on a Dask cluster: the parts of a plan as tasks, joined to the bytes of the local run."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kgtrec._internal.atomic_file import make_folder
from kgtrec._internal.locations import mapped_folder
from kgtrec._internal.progress import progress_bar
from kgtrec._version import __version__
from kgtrec.cluster.checkpoint import PartFiles
from kgtrec.cluster.content_hash import identify_scores, signature
from kgtrec.cluster.dask.tasks import do_all
from kgtrec.cluster.dask.transfer import Work, Workers
from kgtrec.cluster.dask.workers import PATIENCE, opened_client, valid_patience
from kgtrec.cluster.inputs import make_inputs
from kgtrec.cluster.merge_parts import finish, merge
from kgtrec.cluster.part import Inputs, naming
from kgtrec.cluster.plan import make_plan, memory_bytes
from kgtrec.cluster.question_store import hash_text
from kgtrec.errors import InputError
from kgtrec.ranking.partial import PartialRanks

if TYPE_CHECKING:
    from distributed import Client

    from kgtrec.questions.api import Questions
    from kgtrec.ranking.ranks import Ranks
    from kgtrec.trec.files.run import Run

__all__ = ["rank", "rank_parts", "tell_plan", "work_folder"]

DASK_BYTES = 32 << 20
"""What Dask itself takes of a worker's memory."""

_PARTS_PER_THREAD = 3
_WORTH = 10**9  # scores: what takes about a second needs no forecast, which takes a fifth of one


def rank(
    source: Any,
    questions: Questions,
    client: Client | None = None,
    memory: str | int = "2GB",
    *,
    run_depth: int = 0,
    rows: str = "questions",
    higher_is_better: bool = True,
    nan: str = "error",
    atol: float = 0.0,
    rtol: float = 0.0,
    folder: str | PathLike[str] | None = None,
    retries: int = 3,
    progress: bool | None = None,
    patience: float = PATIENCE,
) -> tuple[Ranks, Run]:
    """Rank every answer of every question on the workers of a Dask cluster.

    Parameters
    ----------
    source : object
        The path or URL of a ``.npy`` file, of a folder of ``.npy`` shards or of an ``.npz`` with a
        factorised model, of which workers read what they need; an array; `kgtrec.Factors`; a
        mapping with ``head`` and ``tail`` arrays; or a Dask array of shape (rows, entities), which
        is ranked chunk by chunk and never whole.
    questions : Questions
    client : distributed.Client, optional
        Any. None: as many worker processes as there are cores, which end with the call.
    memory : str or int, default "2GB"
        Most that a task may use, such as ``"2GB"``: the work is cut into parts accordingly, however
        many questions and entities there are. A worker of several threads runs as many tasks.
        Chunks of a Dask array are taken as they are.
    run_depth, rows, higher_is_better, nan, atol, rtol
        As for `kgtrec.rank`.
    folder : path, optional
        Work folder, best on storage that all workers see: questions and scores are memory-mapped
        from it. Finished parts are kept there, so that the same call goes on where it was killed.
        None: a temporary folder. Workers that do not see it are sent the files, once each.
    retries : int, default 3
        How often a task that fails is tried again, anywhere.
    progress : bool, optional
        As for `kgtrec.rank`, as the scheduler reports tasks finished.
    patience : float, default 60
        Seconds. Work goes on with the workers that are left; if there has been none for so long, at
        the start or after losses, it ends in a `ClusterError`. ``float("inf")``: for queues.

    Returns
    -------
    ranks : Ranks
    run : Run
        Both those of `kgtrec.rank`, bit for bit.

    Raises
    ------
    InputError
        As `kgtrec.rank`.
    UsageError
        Too little memory, a source without a file (a callable), workers of another version.
    ClusterError
        There has been no worker for `patience` seconds, the scheduler is gone, or a task killed its
        workers again and again. Finished parts stay in `folder`.

    Notes
    -----
    Without a client, put the call under ``if __name__ == "__main__":`` in a script: the workers
    import it.
    """
    patience = valid_patience(patience)
    with ExitStack() as stack:
        work = work_folder(stack, folder)
        scores = None if is_dask_array(source) else source
        inputs = make_inputs(
            scores, questions, work, run_depth=run_depth, rows=rows,
            higher_is_better=higher_is_better, nan=nan, atol=atol, rtol=rtol,
        )  # fmt: skip
        dask = stack.enter_context(opened_client(client, work))
        if scores is None:
            from kgtrec.cluster.dask.dask_array import rank_chunks

            return rank_chunks(source, inputs, dask, retries, progress, patience)
        parts_folder, tell = None if folder is None else work, tell_plan(progress)
        parts = rank_parts(
            inputs, dask, memory, folder=parts_folder, retries=retries, progress=progress,
            tell=tell, patience=patience,
        )  # fmt: skip
        return finish(parts, inputs)


def work_folder(stack: ExitStack, folder: str | PathLike[str] | None) -> Path:
    """The one that is named; else one of our own, which goes with the stack."""
    if folder is None:
        temporary = tempfile.TemporaryDirectory(prefix="kgtrec-", ignore_cleanup_errors=True)
        return Path(stack.enter_context(temporary))
    work = mapped_folder(folder, "the files of a work folder (folder=)").absolute()
    make_folder(work)
    return work


def tell_plan(progress: bool | None) -> Callable[[str], None] | None:
    """Prints the plan on standard error where progress is shown, too."""
    if not (sys.stderr.isatty() if progress is None else progress):
        return None
    return lambda text: print(f"kgtrec: {text}", file=sys.stderr)


def is_dask_array(source: Any) -> bool:
    """Whether it is a Dask array, without importing Dask."""
    return type(source).__module__.partition(".")[0] == "dask" and hasattr(source, "to_delayed")


def identity(inputs: Inputs) -> str:
    """Hash of what parts depend on besides their rows and entities."""
    files = inputs.files
    scores = None if files is None else identify_scores(files)
    selection = "" if files is None else Path(files.selection).name
    settings = (inputs.run_depth, inputs.higher_is_better, inputs.nan, inputs.tolerance)
    return hash_text(
        json.dumps([__version__, Path(inputs.folder).name, scores, selection, settings])
    )


def rank_parts(
    inputs: Inputs,
    client: Client,
    memory: str | int,
    *,
    folder: Path | None = None,
    retries: int = 3,
    progress: bool | None = None,
    tell: Callable[[str], None] | None = None,
    patience: float = PATIENCE,
    take: Callable[[PartialRanks], PartialRanks] = lambda part: part,
    watch: Callable[[int, int], None] = lambda left, threads: None,
    jobs: int = 1,
) -> list[PartialRanks]:
    """Parts of all rows with all entities.

    Parameters
    ----------
    inputs : Inputs
    client : distributed.Client
    memory : str or int
    folder : Path, optional
        Where finished parts are kept; those that it holds are not ranked again.
    retries : int
    progress : bool, optional
    tell : callable, optional
        Is told the plan, before the work.
    patience : float
        Seconds to wait for a worker.
    take : callable
        Is handed every part with all entities, and returns what is kept of it.
    watch : callable
        Is told how many tasks are left, and threads there are, before each and after the last.
    jobs : int
        Rankings that share the workers.
    """
    check = _unchanged(inputs)
    files = None if folder is None else PartFiles(folder / f"parts-{identity(inputs)}")
    with Workers(client, inputs, retries, patience) as workers:
        works = _planned(workers, memory_bytes(memory), files, tell, jobs)
        joiner, left = _Joiner(inputs, works, take), []
        with naming(inputs), progress_bar(len(works), "parts", progress) as bar:
            for work in works:
                part = None if files is None else files.load(work.task)
                if part is None:
                    left.append(work)
                else:
                    joiner.add(work, part)
                    bar.update()
            n_left = len(left)
            watch(n_left, workers.threads)
            done = do_all(
                client, left, workers.submit, workers.prepare, workers.window, patience,
                workers.fetch,
            )  # fmt: skip
            for work, part in done:
                check()
                workers.done(work)
                if files is not None:
                    files.save(part)
                joiner.add(work, part)
                bar.update()
                n_left -= 1
                watch(n_left, workers.threads)
        check()
        return joiner.parts()


def _unchanged(inputs: Inputs) -> Callable[[], None]:
    """A check that the scores are as they are now: no part of other scores may be kept."""
    files = inputs.files
    if files is None:
        return lambda: None
    before = signature(files)

    def check() -> None:
        if signature(files) != before:
            place = files.place or "the file with the scores"
            raise InputError(f"{place} changed while it was ranked; rank again")

    return check


def _planned(
    workers: Workers,
    memory: int,
    files: PartFiles | None,
    tell: Callable[[str], None] | None,
    jobs: int,
) -> list[Work]:
    """The tasks; once they are begun the same ones, however many workers there are by then."""
    name = f"tasks-{memory}"
    spans = None if files is None else files.load_note(name)
    if files is not None and spans is not None:
        works = [Work(tuple(rows), tuple(map(tuple, ranges))) for rows, ranges in spans]
        if tell is not None:
            tell(f"{files.count()} of {len(works)} parts are there")
        return works
    plan = make_plan(
        workers.inputs,
        memory,
        max(1, workers.threads),
        calibrate=tell is not None,
        worth=_WORTH,
        reserve=DASK_BYTES + workers.bytes_held,
        sent=workers.bytes_sent,
        jobs=jobs,
        results=1,
    )
    if tell is not None:
        tell(str(plan))
    works = list(cut(plan.blocks, plan.ranges, workers.threads))
    if files is not None:
        files.save_note(name, [(work.rows, work.ranges) for work in works])
    return works


def cut(
    blocks: Sequence[tuple[int, int]], ranges: Sequence[tuple[int, int]], threads: int
) -> Iterator[Work]:
    """Blocks with all their ranges as one task each; with some of them, where there would be too
    few tasks for the threads."""
    groups = min(len(ranges), max(1, -(-_PARTS_PER_THREAD * threads // len(blocks))))
    size = -(-len(ranges) // groups)
    for rows in blocks:
        for start in range(0, len(ranges), size):
            yield Work(rows, tuple(ranges[start : start + size]))


class _Joiner:
    """Joins the ranges of each block as soon as all are there."""

    def __init__(
        self,
        inputs: Inputs,
        works: Sequence[Work],
        take: Callable[[PartialRanks], PartialRanks],
    ) -> None:
        self._inputs, self._take = inputs, take
        self._wanted: dict[tuple[int, int], int] = {}
        for work in works:
            self._wanted[work.rows] = self._wanted.get(work.rows, 0) + 1
        self._waiting: dict[tuple[int, int], list[PartialRanks]] = {}
        self._whole: list[PartialRanks] = []

    def add(self, work: Work, part: PartialRanks) -> None:
        """Take one part; joins its block if it was the last."""
        waiting = self._waiting.setdefault(work.rows, [])
        waiting.append(part)
        if len(waiting) == self._wanted[work.rows]:
            ordered = sorted(self._waiting.pop(work.rows), key=lambda part: part.task)
            self._whole.append(self._take(merge(ordered, self._inputs)))

    def parts(self) -> list[PartialRanks]:
        """All blocks."""
        return self._whole
