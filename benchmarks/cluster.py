"""C1: two Dask worker processes against one process of one thread, on the same job."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from data import SEED
from rows import Row, Settings, at_least, not_run, require
from timing import Contestant, compete

import kgtrec

__all__ = ["BARS"]

RUN_DEPTH, DIMENSIONS = 20, 64
WORKERS = 2


def _job(folder: Path, entities: int, questions: int) -> tuple[Path, kgtrec.Questions]:
    rng = np.random.default_rng(SEED)
    number = np.arange(questions)
    known = rng.integers(0, entities, 30 * questions)
    graph = kgtrec.Graph.from_arrays(
        train=np.column_stack([np.repeat(number, 30), np.zeros_like(known), known]),
        test=np.column_stack([number, np.zeros_like(number), rng.integers(0, entities, questions)]),
        n_entities=entities,
    )
    path = folder / "model.npz"
    np.savez(
        path,
        queries=rng.standard_normal((questions, DIMENSIONS), dtype=np.float32),
        entities=rng.standard_normal((entities, DIMENSIONS), dtype=np.float32),
    )
    return path, graph.questions("test", sides="tail")


def _c1(settings: Settings) -> list[Row]:
    if find_spec("distributed") is None:
        return [not_run("C1", "", "Dask is not installed: pip install 'kgtrec[cluster]'")]
    import kgtrec.cluster
    from kgtrec.cluster.dask.workers import local_client

    entities, questions = (5_000, 2_000) if settings.quick else (100_000, 48_000)
    with (
        tempfile.TemporaryDirectory() as name,
        local_client(Path(name), WORKERS) as client,
    ):
        client.wait_for_workers(WORKERS)
        path, question_set = _job(Path(name), entities, questions)

        def on_dask() -> tuple[kgtrec.Ranks, kgtrec.Run]:
            return kgtrec.cluster.rank(
                str(path), question_set, client, run_depth=RUN_DEPTH, progress=False
            )

        def alone() -> tuple[kgtrec.Ranks, kgtrec.Run]:
            return kgtrec.rank(str(path), question_set, RUN_DEPTH, threads=1, progress=False)

        _check(Path(name), on_dask, alone)
        critical = _critical_cpu(client, on_dask, alone)
        timings = compete(
            {"ours": Contestant(lambda _: on_dask()), "reference": Contestant(lambda _: alone())},
            rounds=3 if settings.quick else 5,
            warm_ups=0,
        )
    return [
        at_least(
            "C1",
            f"{questions:,} questions, {entities:,} entities, d = {DIMENSIONS}, "
            f"best {RUN_DEPTH}, {WORKERS} workers",
            f"{timings.seconds('ours'):.2f} s",
            f"1 process, 1 thread {timings.seconds('reference'):.2f} s",
            timings.ratio("reference", "ours"),
            1.7,
            **timings.detail("reference", "ours")
            # The client's CPU seconds do not include its workers'.
            | {"ratio_cpu": critical},
        )
    ]


def _critical_cpu(client: Any, ours: Callable[[], Any], theirs: Callable[[], Any]) -> float:
    """CPU seconds of the one process over those of the client and the busiest worker, the longest
    path of the other side. Two free cores would show this ratio."""
    before, start = client.run(time.process_time), time.process_time()
    ours()
    own, after = time.process_time() - start, client.run(time.process_time)
    busiest = max(after[worker] - before[worker] for worker in after)
    start = time.process_time()
    theirs()
    return (time.process_time() - start) / (own + busiest)


def _check(
    folder: Path,
    ours: Callable[[], tuple[kgtrec.Ranks, kgtrec.Run]],
    theirs: Callable[[], tuple[kgtrec.Ranks, kgtrec.Run]],
) -> None:
    """Check that the ranks files have the same bytes, and the runs are equal."""
    (ranks, run), (due, due_run) = ours(), theirs()
    for name, one in (("ours", ranks), ("due", due)):
        one.save(folder / f"{name}.parquet")
    same = (folder / "ours.parquet").read_bytes() == (folder / "due.parquet").read_bytes()
    require(same, "the ranks of the cluster are not those of the local run")
    require(np.array_equal(run.documents, due_run.documents), "the run differs")
    require(np.array_equal(run.scores, due_run.scores), "scores of the run differ")


BARS = {"C1": _c1}
