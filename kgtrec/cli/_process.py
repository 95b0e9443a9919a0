"""The command line's process: streams, signals, and modules that load late or never."""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import ClassVar, NoReturn

from kgtrec._internal.system import ENDING_SIGNALS, HANGUP


class Terminated(KeyboardInterrupt):
    """Raised for SIGTERM or SIGHUP, so that these clean up as Ctrl-C does."""

    came: ClassVar[Terminated | None] = None
    """The first such exception of this process. Interrupted code may turn it into another error."""

    def __init__(self, number: int) -> None:
        Terminated.came = Terminated.came or self
        super().__init__("hung up" if number == HANGUP else "terminated")
        self.signal = number


def open_closed_streams() -> None:
    """Open the null device for streams that the caller closed (`>&-`).

    Otherwise a file of ours could become number 1 and get printed text.
    """
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(number)
    for name, number in (("stdout", 1), ("stderr", 2)):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, "w", closefd=False))


class LeaveAtExit:
    """End the process once its exit handlers have run, without the interpreter's own teardown.

    The teardown visits all modules: 25 ms CPU of `kgtrec eval` (of 202 ms) and 72 ms of `kgtrec
    rank` (of 572 ms) on a small graph, medians of 20. Make this first: handlers run in reverse
    order, so those of libraries run before it.

    - code, int: The process's exit code.
    """

    def __init__(self) -> None:
        self.code = 1  # for an exception that nobody caught
        atexit.register(lambda: exit_at_once(self.code))


def keep_blas_single() -> None:
    """Let the BLAS use one thread, unless the user chose a number. Call this before numpy loads.

    Our threads wait for its threads, which spin: `openworld --study` takes five times the CPU time
    with two. A number does not depend on the cores of the machine either.
    """
    for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")


def give_up_stdout() -> None:
    """Discard unwritten output, on which the interpreter would fail at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def exit_at_once(code: int) -> NoReturn:
    """End the process without teardown, in which a half-loaded pyarrow aborts."""
    with suppress(OSError, ValueError):
        sys.stdout.flush()
    with suppress(OSError, ValueError):
        sys.stderr.flush()
    os._exit(code)


_ENOUGH = 4
"""Number of the Ctrl-C that ends a process at once."""

_came: list[int] = []  # signals that have come to this command


@contextmanager
def signals_as_exceptions() -> Iterator[None]:
    """Let SIGTERM and SIGHUP remove unfinished files, as Ctrl-C does, unless they are ignored.

    The first signal raises an exception. The second and third are ignored: they would interrupt the
    removal of files, or end in a traceback. The fourth ends the process at once.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _came.clear()
    defaults = {
        **dict.fromkeys(ENDING_SIGNALS, signal.SIG_DFL),
        signal.SIGINT: signal.default_int_handler,
    }
    caught = {n: default for n, default in defaults.items() if signal.getsignal(n) == default}
    for number in caught:
        signal.signal(number, _raise_first)
    try:
        yield
    finally:
        if not _came:  # otherwise the process ends now
            for number, default in caught.items():
                signal.signal(number, default)


def _raise_first(number: int, frame: FrameType | None) -> None:
    _came.append(number)
    if len(_came) == 1:
        raise KeyboardInterrupt if number == signal.SIGINT else Terminated(number)
    if len(_came) >= _ENOUGH:
        message = b"kgtrec: ended at once; unfinished files .kgtrec-*.tmp may be left behind\n"
        with suppress(OSError):
            os.write(2, message)
        os._exit(128 + _came[0])


@contextmanager
def pyarrow_alone() -> Iterator[None]:
    """Keep pyarrow from loading pandas and cloudpickle, which no command (only Dask) needs.

    It would load pandas at the first array, and ignore a Ctrl-C meanwhile: `kgtrec rank` on a small
    graph takes 649 ms CPU with pandas and 500 ms without, medians of 20.
    """
    finder = _NotForPyarrow()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


class _NotForPyarrow:
    """A finder for `sys.meta_path`. Not a MetaPathFinder: importing this takes milliseconds."""

    def find_spec(self, fullname: str, path: object, target: object = None) -> None:
        if fullname == "pandas" or (fullname == "cloudpickle" and "dask" not in sys.modules):
            raise ModuleNotFoundError(f"{fullname} is not loaded by the command", name=fullname)
