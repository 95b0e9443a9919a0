"""Dask workers on this machine, and functions that they import by name."""

from __future__ import annotations

import itertools
import logging
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import dask
import numpy as np
import pytest
from distributed import LocalCluster

from kgtrec.cluster.dask.workers import KEEP_LOST_WORKERS, LESS_MONITORING, TimedOut
from kgtrec.cluster.plan import Plan

_CLUSTERS: list[LocalCluster] = []  # one deleted while it closes would warn


@contextmanager
def worker_processes(folder: Path, n_workers: int = 2) -> Iterator[LocalCluster]:
    """Worker processes, which Dask restarts when they are killed, however long that takes."""
    with dask.config.set(KEEP_LOST_WORKERS | LESS_MONITORING):
        cluster = LocalCluster(
            n_workers=n_workers,
            threads_per_worker=1,
            memory_limit=None,
            dashboard_address="127.0.0.1:0",
            silence_logs=logging.CRITICAL,
            local_directory=str(folder),
        )
        _CLUSTERS.append(cluster)
        try:
            yield cluster
        finally:
            # Tests ignore that Dask did not end a worker in time, or that a worker ended which
            # Dask had already forgotten (KeyError).
            with suppress(*TimedOut, KeyError):
                cluster.close(timeout=30)


class Processes:
    """A scheduler and workers without nannies, as processes of their own."""

    def __init__(self, folder: Path) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.address, self.folder = f"tcp://127.0.0.1:{self.port}", folder
        self.schedulers: list[subprocess.Popen[bytes]] = []
        self.workers: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        """A scheduler and a worker, once the scheduler listens."""
        address = ("--host", "127.0.0.1", "--port", str(self.port), "--no-dashboard")
        self.schedulers.append(self._run("scheduler", *address))
        self.add_worker()
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.port)):
                return
            time.sleep(0.1)
        raise AssertionError(f"no scheduler at {self.address} within a minute")

    def _run(self, *arguments: str, within: Sequence[str] = ()) -> subprocess.Popen[bytes]:
        command, quiet = [*within, sys.executable, "-m", "dask", *arguments], subprocess.DEVNULL
        return subprocess.Popen(command, stdout=quiet, stderr=quiet, cwd=self.folder)

    def add_worker(self, *within: str) -> None:
        """A worker, started by the program `within` if there is one."""
        options = ("--no-nanny", "--no-dashboard", "--nthreads", "1")
        folder = ("--local-directory", str(self.folder))
        self.workers.append(self._run("worker", self.address, *options, *folder, within=within))

    def kill_workers(self) -> None:
        kill(self.workers)

    def kill_scheduler(self) -> None:
        kill(self.schedulers)

    def stop(self) -> None:
        self.kill_scheduler()
        self.kill_workers()


def kill(processes: list[subprocess.Popen[bytes]]) -> None:
    """End those that there are now."""
    for process in list(processes):
        process.kill()
        process.wait()
        processes.remove(process)


Spans = tuple[tuple[int, int], ...]


def pieces(rng: np.random.Generator, stop: int, most: int = 4) -> Spans:
    """The numbers below `stop`, cut at up to `most` random places."""
    cuts = rng.choice(np.arange(1, stop), min(most, stop - 1), replace=False)
    return tuple(itertools.pairwise([0, *sorted(cuts.tolist()), stop]))


def in_twos(stop: int) -> Spans:
    return tuple(itertools.pairwise([*range(0, stop, 2), stop]))


def plan_as(patch: pytest.MonkeyPatch, blocks: Spans, ranges: Spans = ((0, 23),)) -> int:
    """Make every plan this one, which no memory limit gives for a small graph; its blocks."""

    def plan(*_: object, sent: int = 0, **__: object) -> Plan:
        return Plan(blocks, ranges, 0, 0, sent=sent)

    patch.setattr("kgtrec.cluster.dask.rank.make_plan", plan)
    return len(blocks)


# -- Functions for workers, which cannot import a test module ------------------------------------


def count_opened(name: str) -> int:
    """On a worker: files that it has mapped with a name in their path."""
    return sum(name in line for line in Path("/proc/self/maps").read_text().splitlines())


def failing_once(block: np.ndarray, flag: str) -> np.ndarray:
    if not os.path.exists(flag):
        Path(flag).touch()
        raise OSError("the storage is late")
    return block


def fatal(block: np.ndarray) -> np.ndarray:
    os.kill(os.getpid(), signal.SIGKILL)
    return block


def failing(block: np.ndarray) -> np.ndarray:
    raise ZeroDivisionError("a bug of the model")


def sent_files(dask_worker: Any) -> list[tuple[str, int, int, int]]:
    """Name, size, number and links of the files that a worker was sent."""
    stats = []
    for path in sorted(Path(dask_worker.local_directory).glob("kgtrec-*/**/*")):
        if path.is_file():
            stat = path.stat()
            stats.append((path.name, stat.st_size, stat.st_ino, stat.st_nlink))
    return stats
