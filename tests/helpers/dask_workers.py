"""Dask workers on this machine, for tests."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import dask
from distributed import LocalCluster

from kgtrec.cluster.dask.workers import COME_BACK, TimedOut

__all__ = ["worker_processes"]

_CLUSTERS: list[LocalCluster] = []  # one deleted while it closes would warn


@contextmanager
def worker_processes(folder: Path, n_workers: int = 2) -> Iterator[LocalCluster]:
    """Worker processes, which Dask restarts when they are killed, however long that takes."""
    with dask.config.set(COME_BACK):
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
