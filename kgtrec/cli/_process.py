"""What the command line asks of its process: streams, signals, and what is not to be loaded."""

from __future__ import annotations

import atexit
import gc
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from types import FrameType
from typing import ClassVar, NoReturn

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # of malloc.h


class Terminated(KeyboardInterrupt):
    """SIGTERM or SIGHUP, which then clean up as Ctrl-C does."""

    came: ClassVar[Terminated | None] = None
    """The first one of this process: what it interrupts may make another error of it."""

    def __init__(self, number: int) -> None:
        Terminated.came = Terminated.came or self
        super().__init__("hung up" if number == signal.SIGHUP else "terminated")
        self.signal = number


def open_closed_streams() -> None:
    """After `>&-`, no file may be opened as number 1, and printing goes nowhere."""
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(number)
    for name, number in (("stdout", 1), ("stderr", 2)):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, "w", closefd=False))


class LeaveAtExit:
    """The process ends when its exit handlers have run, without the interpreter's own teardown.

    That looks through all modules, which takes a fifth of the time of a short command. Made first,
    so that handlers of libraries, which run in reverse order, come before.

    - code, int: The process's exit code.
    """

    def __init__(self) -> None:
        self.code = 1  # of an exception that nobody caught
        atexit.register(lambda: exit_at_once(self.code))


@contextmanager
def without_collector() -> Iterator[None]:
    """No search for cycles where none are made: a short command, and all imports, whose searches
    take a tenth of a short command's time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def collect_seldom() -> None:
    """Look for cycles after a hundred times as many new objects as Python would.

    What a command loads are some ten thousand objects that stay: to look through them again and
    again takes a twentieth of a short command's time.
    """
    gc.set_threshold(70_000)


def keep_blas_single() -> None:
    """No threads of the BLAS, which reads this when numpy is loaded: where products are small they
    cost more than they give, and threads of ours wait for them. Undone when the command ends."""
    import click

    names = {"OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"} - set(os.environ)
    os.environ.update(dict.fromkeys(names, "1"))
    command = click.get_current_context()
    for name in names:
        command.call_on_close(partial(os.environ.pop, name, None))


def let_blas_sleep() -> None:
    """No turning round of OpenBLAS's threads, one a core, which it starts when numpy is loaded.

    They would for some hundredths of a second, a tenth of a short command's time, and after each
    product again.
    """
    os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")  # 2^4 ticks, the least


def keep_freed_memory() -> None:
    """Let glibc use the memory of freed arrays again, where it would give it back to the system at
    once, which hands it out again page by page and clears it: a tenth of a short command's time.

    From the start the limits that glibc raises its own to when an array of 32 MB is freed.
    """
    import ctypes

    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # other C libraries have none
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, 32 << 20)
        mallopt(_M_TRIM_THRESHOLD, 64 << 20)


def give_up_stdout() -> None:
    """Send what is still unwritten nowhere: the interpreter would fail on it when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def exit_at_once(code: int) -> NoReturn:
    """End without taking anything down: pyarrow aborts if it is half loaded."""
    with suppress(OSError, ValueError):
        sys.stdout.flush()
    with suppress(OSError, ValueError):
        sys.stderr.flush()
    os._exit(code)


@contextmanager
def signals_as_exceptions() -> Iterator[None]:
    """Let SIGTERM and SIGHUP remove unfinished files, as Ctrl-C does, unless they are ignored."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = [n for n in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(n) == signal.SIG_DFL]
    for number in numbers:
        signal.signal(number, _raise)
    try:
        yield
    finally:
        for number in numbers:
            signal.signal(number, signal.SIG_DFL)


def _raise(number: int, frame: FrameType | None) -> None:
    raise Terminated(number)


@contextmanager
def pyarrow_alone() -> Iterator[None]:
    """Keep pyarrow from loading pandas, of which no command has any use, and cloudpickle, which is
    for Dask.

    It would load pandas at the first array it meets, which takes longer than many a command, and
    swallow a Ctrl-C that comes meanwhile.
    """
    finder = _NotForPyarrow()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


class _NotForPyarrow:
    """A MetaPathFinder; importing importlib.abc, to say so, would take milliseconds."""

    def find_spec(self, fullname: str, path: object, target: object = None) -> None:
        if fullname == "pandas" or (fullname == "cloudpickle" and "dask" not in sys.modules):
            raise ModuleNotFoundError(f"{fullname} is not loaded by the command", name=fullname)
