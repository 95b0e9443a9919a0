"""One Dask cluster for all tests of a process that do not need a separate one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope="session")
def shared_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Two worker processes, which are restarted when they are killed, however long that takes."""
    from dask_workers import worker_processes

    with worker_processes(tmp_path_factory.mktemp("dask")) as cluster:
        cluster.scheduler.allowed_failures = 2
        yield cluster


@pytest.fixture
def client(cluster_client: Any) -> Any:
    """The module's client, with both workers running again after the last test."""
    cluster_client.wait_for_workers(2, timeout=120)
    return cluster_client


@pytest.fixture(scope="module")
def cluster_client(shared_cluster: Any) -> Iterator[Any]:
    from distributed import Client

    with Client(shared_cluster) as client:
        yield client
