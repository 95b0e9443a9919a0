"""A Dask cluster of this machine that only its own process can use.

Dask runs what it receives, so whoever reaches a scheduler or a worker can run code as the user who
started it. Here scheduler, workers, nannies and clients prove to each other that they have the
key of this run (mutual TLS), which exists only in their memory. Dask's pages for browsers know no
keys, so no server of such pages is started.

This module imports Dask, so other modules import it only inside functions.
"""

from __future__ import annotations

import logging

from distributed import Nanny, Scheduler, SpecCluster, Worker
from distributed.security import Security

HOST = "127.0.0.1"


class PrivateScheduler(Scheduler):
    """A scheduler without a server of pages."""

    def start_http_server(self, *_arguments: object, **_settings: object) -> None:
        """Start nothing: Dask starts this server even if its dashboard is off."""


class PrivateWorker(Worker):
    """A worker without a server of pages."""

    def start_http_server(self, *_arguments: object, **_settings: object) -> None:
        """Start nothing: Dask starts this server even if its dashboard is off."""


def private_cluster(n_workers: int, folder: str | None) -> SpecCluster:
    """Return a cluster of processes with one thread each, protected by new keys.

    Parameters
    ----------
    n_workers : int
        Worker processes, each with a nanny that starts it again if it is killed.
    folder : str, optional
        Folder for files of the workers; by default, Dask chooses one.
    """
    # After a cluster has closed, Dask logs again. It then shows a traceback for each message that
    # it could not send to a worker which was just ended.
    logging.getLogger("distributed.batched").setLevel(logging.CRITICAL)
    keys = Security.temporary()
    common = {"host": HOST, "protocol": "tls://", "security": keys}
    worker = {
        "cls": Nanny,
        "options": {
            **common,
            "worker_class": PrivateWorker,
            "nthreads": 1,
            # No limit: mapped pages count as a worker's memory, but the system can reclaim them.
            "memory_limit": None,
            "local_directory": folder,
            "silence_logs": logging.CRITICAL,
        },
    }
    return SpecCluster(
        scheduler={"cls": PrivateScheduler, "options": {**common, "dashboard": False}},
        workers=dict.fromkeys(range(n_workers), worker),
        worker=worker,
        security=keys,
        silence_logs=logging.CRITICAL,
    )
