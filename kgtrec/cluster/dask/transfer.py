"""Workers and their tasks: how these reach the inputs, and values the caller.

Where workers see the caller's files, tasks are given paths. Else files travel (`shipment`), and
rows of a matrix go with the tasks.
"""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kgtrec.cluster.array_files import ArrayFile, HeldScores, ScoreFiles
from kgtrec.cluster.dask.shipment import (
    Shipment,
    bytes_held,
    bytes_sent,
    located,
    recall,
    ship,
)
from kgtrec.cluster.dask.workers import PATIENCE, guarded, in_reach, look_at_workers
from kgtrec.cluster.merge_parts import perform
from kgtrec.cluster.part import Inputs
from kgtrec.ranking.partial import Task

if TYPE_CHECKING:
    from distributed import Client, Future

__all__ = ["Work", "Workers"]

_SLOW = 10.0  # seconds in which a value comes straight from a worker


@dataclass(frozen=True, order=True)
class Work:
    """One Dask task: a block of rows against adjacent ranges of entities."""

    rows: tuple[int, int]
    ranges: tuple[tuple[int, int], ...] = field(repr=False)

    @property
    def task(self) -> Task:
        """The part that comes of it."""
        return Task(*self.rows, self.ranges[0][0], self.ranges[-1][1])

    def __str__(self) -> str:
        return str(self.task)


class Workers:
    """The workers of a client, and how their tasks reach the inputs.

    Parameters
    ----------
    client : distributed.Client
    inputs : Inputs
    retries : int
    patience : float
        Seconds to wait for a worker.

    Attributes
    ----------
    shared : bool
        All of them see the files.
    direct : bool
        This process fetches values from them without the scheduler.
    threads : int
        Of all workers.
    where : Inputs or Shipment
        What tasks are given.
    """

    def __init__(
        self, client: Client, inputs: Inputs, retries: int, patience: float = PATIENCE
    ) -> None:
        self.client, self.inputs, self.retries = client, inputs, retries
        paths = [str(Path(inputs.folder) / "meta.json"), *paths_of(inputs)]
        self.shared = look_at_workers(client, paths, patience)
        self.direct = in_reach(client)
        self.threads = sum(client.nthreads().values())
        self.where: Inputs | Shipment = inputs
        self._sent: dict[Work, Future] = {}

    @property
    def sends_rows(self) -> bool:
        """Whether tasks are sent the rows of a matrix; of one at a URL they read them."""
        files = self.inputs.files
        return not self.shared and isinstance(files, ScoreFiles) and not files.parts[0].is_remote

    @property
    def bytes_sent(self) -> int:
        """Bytes of files that each host is sent."""
        return 0 if self.shared else bytes_sent(self._shipped)

    @property
    def bytes_held(self) -> int:
        """Bytes that a worker holds, for others to fetch."""
        return 0 if self.shared else bytes_held(self.client, self._shipped)

    @property
    def _shipped(self) -> Inputs:
        return replace(self.inputs, files=None) if self.sends_rows else self.inputs

    @property
    def window(self) -> int | None:
        """Tasks under way at most: one that waits for each that works, if their rows are sent."""
        return 2 * max(1, self.threads) if self.sends_rows else None

    def prepare(self) -> None:
        """Scatter the files anew, where workers need copies."""
        if not self.shared:
            self.close()
            self.where = ship(self.client, self._shipped)

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Take the copies back."""
        self._sent.clear()
        if isinstance(self.where, Shipment):
            recall(self.client, self.where)

    def submit(self, work: Work) -> Future:
        """Start one task."""
        return self.client.submit(
            perform_work, work, self.where, self._rows(work), pure=False, retries=self.retries,
            key=f"kgtrec-{secrets.token_hex(8)}",
        )  # fmt: skip

    def fetch(self, future: Future) -> Any:
        """The value of a finished task, straight from its worker where that is in reach."""
        if not self.direct:
            return future.result()
        started = time.monotonic()
        value = self.client.gather(future, direct=True)
        if time.monotonic() - started > _SLOW:  # a host that came later may be out of reach
            self.direct = in_reach(self.client)
        return value

    def done(self, work: Work) -> None:
        """What was sent for a task is of no more use."""
        self._sent.pop(work, None)

    def _rows(self, work: Work) -> Any:
        """All columns of a task's rows, on their way; None where it opens files."""
        files = self.inputs.files
        if not self.sends_rows or not isinstance(files, ScoreFiles):
            return None
        block = np.array(files.block(*work.rows, slice(None)))
        self._sent[work] = self.client.scatter(block, hash=False)
        return self._sent[work]


def paths_of(inputs: Inputs) -> list[str]:
    """Files of this machine that the inputs name, besides the store of the questions."""
    files: Any = inputs.files
    if files is None:
        return []
    arrays = files.arrays if hasattr(files, "arrays") else files.parts
    paths = [array.path for array in arrays if not array.is_remote]
    return paths + ([files.selection] if files.selection else [])


def perform_work(
    work: Work, where: Inputs | Shipment, block: npt.NDArray[Any] | None = None
) -> Any:
    """The part of one task, or a `Refusal`; runs on a worker."""

    def part() -> Any:
        inputs = located(where)
        if block is not None:
            like = ArrayFile("", 0, block.shape, block.dtype.str)
            inputs = replace(inputs, files=HeldScores((like,), first=work.rows[0], held=block))
        return perform(work.rows, work.ranges, inputs)

    return guarded(part)
