"""Fixtures shared by the whole suite."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import object_store
import pytest
from checkout import SHARED_DATA
from hypothesis import settings

# A slow machine, or a build with sanitizers, is no reason to fail.
settings.register_profile("kgtrec", deadline=None)
settings.register_profile("sanitizers", deadline=None, max_examples=25)
settings.load_profile("kgtrec")


# A file is a worker's: one that takes long would go on alone at the end, if it did not come first.
LONGEST = ("test_native.py", "test_dask.py")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The files that take longest come first."""
    items.sort(key=lambda item: item.path.name not in LONGEST)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder with FB15k-237, WN18RR and the trained models; tests that need it skip without it."""
    if not SHARED_DATA.is_dir():
        pytest.skip(f"benchmark data not found at {SHARED_DATA}: this test needs real graphs")
    return SHARED_DATA


@pytest.fixture(scope="session")
def s3_server() -> Iterator[str]:
    """The address of an S3 server of this machine; tests that need it skip without one."""
    with object_store.served() as address:
        yield address
