"""Fixtures shared by the whole suite."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Generator, Iterator
from pathlib import Path

import profiles
import pytest
from checkout import SHARED_DATA

profiles.register()

# There is a worker per core, so threads of the BLAS would only wait for each other. Workers and
# commands inherit this and read it when they load numpy.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


gc.disable()  # until all modules of tests are loaded


def take_signals() -> None:
    """Undo that signals are ignored, as nohup and shells do for jobs in the background.

    Processes inherit that, and tests that interrupt them would wait without end. A handler, though,
    is not inherited: they have the default, and this process still ignores the signal.
    """
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in filter(None, (getattr(signal, "SIGHUP", None), signal.SIGTERM)):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, lambda *_: None)


take_signals()

# Files of tests need not survive a power loss, and waiting for the disk takes longer than most
# tests. Tests of syncing replace `os.fsync` themselves.
os.fsync = lambda descriptor: None

# A file is a worker's: one that takes long would go on alone at the end, if it did not come first.
LONGEST = ("test_native.py", "test_dask.py")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The files that take longest come first; what needs a server is slow."""
    items.sort(key=lambda item: item.path.name not in LONGEST)
    for item in items:
        if "s3_server" in getattr(item, "fixturenames", ()):
            item.add_marker("slow")


def pytest_collection_finish() -> None:
    """Leave the modules of all tests, a million objects, out of later garbage collections."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Failures may quote labels in any bytes: what is no Unicode would end the whole run."""
    report = yield
    if report.failed:
        text = str(report.longrepr)
        if text != (sound := text.encode("utf-8", "backslashreplace").decode()):
            report.longrepr = sound
    return report


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder with FB15k-237, WN18RR and the trained models; tests that need it skip without it."""
    if not SHARED_DATA.is_dir():
        pytest.skip(f"benchmark data not found at {SHARED_DATA}: this test needs real graphs")
    return SHARED_DATA


@pytest.fixture(scope="session")
def s3_server() -> Iterator[str]:
    """The address of an S3 server of this machine; tests that need it skip without one."""
    import object_store  # loads pyarrow, which the process that distributes tests does not need

    with object_store.served() as address:
        yield address
