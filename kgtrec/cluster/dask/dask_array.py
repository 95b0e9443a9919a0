"""Dask arrays as scores: every chunk is ranked where it is computed, and the array is never whole.

A row of chunks is one unit of work. Where it has several chunks, each first gives the scores of the
answers among its columns; then each is ranked, and the counts add up. A chunk is computed once, and
stays (or is spilled by Dask) between the two steps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np

from kgtrec._internal.progress import progress_bar
from kgtrec.cluster.dask.shipment import Shipment, located
from kgtrec.cluster.dask.tasks import do_all
from kgtrec.cluster.dask.transfer import Workers
from kgtrec.cluster.dask.workers import PATIENCE, Refusal, guarded
from kgtrec.cluster.merge_parts import finish, merge
from kgtrec.cluster.part import Inputs, answer_scores, naming, partial
from kgtrec.errors import InputError
from kgtrec.ranking.partial import Task
from kgtrec.scores.arrays import as_array, score_dtype

if TYPE_CHECKING:
    from distributed import Client, Future

    from kgtrec.ranking.ranks import Ranks
    from kgtrec.trec.files.run import Run

__all__ = ["rank_chunks"]


@dataclass(frozen=True)
class _Row:
    """One row of chunks: its number, its rows, and the column ranges of its chunks."""

    number: int
    rows: tuple[int, int]
    columns: tuple[tuple[int, int], ...]

    def __str__(self) -> str:
        return f"chunk of rows {self.rows[0]} to {self.rows[1] - 1}"


def rank_chunks(
    source: Any,
    inputs: Inputs,
    client: Client,
    retries: int,
    progress: bool | None,
    patience: float = PATIENCE,
) -> tuple[Ranks, Run]:
    """Ranks and run of a Dask array; see `kgtrec.cluster.rank`.

    Parameters
    ----------
    source : dask.array.Array, shape (rows, entities)
    inputs : Inputs
        Without files.
    client : distributed.Client
    retries : int
    progress : bool or None
    patience : float
    """
    store = inputs.store()
    source = _checked(source, store.n_rows, store.n_columns)
    if store.restricted:
        source = source.rechunk({1: -1})  # candidates are ranked with all columns at hand
    columns = tuple(_bounds(source.chunks[1])) if not store.restricted else ((0, store.n_labels),)
    rows = [_Row(n, span, columns) for n, span in enumerate(_bounds(source.chunks[0]))]
    blocks = source.to_delayed()
    parts = []
    with Workers(client, inputs, retries, patience) as workers:

        def submit(row: _Row) -> Future:
            graph = _graph(row, list(blocks[row.number]), workers.where)
            return client.compute(graph, retries=retries)

        with naming(inputs), progress_bar(store.n_rows, "rows", progress) as bar:
            done = do_all(
                client, rows, submit, workers.prepare, patience=patience, fetch=workers.fetch
            )
            for row, part in done:
                parts.append(part)
                bar.update(row.rows[1] - row.rows[0])
    return finish(parts, inputs)


def _checked(source: Any, n_rows: int, n_columns: int) -> Any:
    if any(math.isnan(length) for length in source.shape):
        raise InputError(
            "the Dask array has chunks of unknown size; call its compute_chunk_sizes() first"
        )
    if source.shape != (n_rows, n_columns):
        raise InputError(
            f"scores have shape {source.shape}; expected ({n_rows}, {n_columns}): a row per "
            "question (or per triple and side, with rows='instances'), a column per entity"
        )
    score_dtype(np.empty((0, 0), dtype=source.dtype))
    return source


def _bounds(sizes: Sequence[int]) -> list[tuple[int, int]]:
    """First and last-but-one position of each chunk that holds anything."""
    stops = list(accumulate(sizes))
    return [(stop - size, stop) for stop, size in zip(stops, sizes, strict=True)]


def _graph(row: _Row, blocks: list[Any], where: Inputs | Shipment) -> Any:
    """The part of a row of chunks, as something that Dask computes."""
    from dask import delayed

    tasks = [Task(*row.rows, *span) for span in row.columns]
    if len(tasks) == 1:
        return delayed(_rank_block)(blocks[0], tasks[0], where, None)
    scores = [
        delayed(_answers_in)(block, task, where) for block, task in zip(blocks, tasks, strict=True)
    ]
    answers = delayed(_total)(scores)
    parts = [
        delayed(_rank_block)(block, task, where, answers)
        for block, task in zip(blocks, tasks, strict=True)
    ]
    return delayed(_merged)(parts, where)


def _answers_in(block: Any, task: Task, where: Inputs | Shipment) -> Any:
    return guarded(lambda: answer_scores(task, located(where), as_array(block))[0])


def _total(scores: list[Any]) -> Any:
    """Each answer's score stands in one of the arrays, and 0 in the others."""
    return _refusal(scores) or sum(scores[1:], scores[0])


def _rank_block(block: Any, task: Task, where: Inputs | Shipment, answers: Any) -> Any:
    if isinstance(answers, Refusal):
        return answers
    return guarded(lambda: partial(task, located(where), answers, as_array(block)))


def _merged(parts: list[Any], where: Inputs | Shipment) -> Any:
    return _refusal(parts) or guarded(lambda: merge(parts, located(where)))


def _refusal(values: list[Any]) -> Refusal | None:
    return next((value for value in values if isinstance(value, Refusal)), None)
