"""What differs between Linux, macOS and Windows: locks, positioned reads, memory, signals, threads.

Functions look for names of `os`, `signal` and `mmap` when they are called, and use what every
system has where one is missing. The command line imports this module first, so it imports little.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from errno import EDEADLK, EISDIR
from threading import RLock
from typing import TYPE_CHECKING, Any

from kgtrec._internal.locks import Result, call_locked

if TYPE_CHECKING:
    from mmap import mmap

IS_WINDOWS = os.name == "nt"

# -- Files -----------------------------------------------------------------------------------------

BINARY = getattr(os, "O_BINARY", 0)
"""For `os.open`: without it, Windows turns newlines into two characters."""

_PIECE = 1 << 20
_moving = RLock()  # held while a file's position leads elsewhere


def _call_at(number: int, at: int, call: Callable[[], Result]) -> Result:
    """Return what a function returns that reads or writes an open file at byte `at`."""

    def move_and_call() -> Result:
        before = os.lseek(number, 0, os.SEEK_CUR)
        try:
            os.lseek(number, at, os.SEEK_SET)
            return call()
        finally:
            os.lseek(number, before, os.SEEK_SET)

    return call_locked(_moving, move_and_call)


def read_at(number: int, size: int, at: int) -> bytes:
    """Read at most `size` bytes of an open file from byte `at`; its position stays."""
    if hasattr(os, "pread"):
        return os.pread(number, size, at)
    return _call_at(number, at, lambda: os.read(number, size))


def read_into(number: int, view: memoryview, at: int) -> int:
    """Fill a buffer from byte `at` of an open file; return how many bytes were read."""
    if hasattr(os, "preadv"):
        return os.preadv(number, [view], at)
    from io import FileIO

    def read() -> int:
        with FileIO(number, closefd=False) as file:
            return file.readinto(view)

    return _call_at(number, at, read)


def write_at(number: int, data: bytes | memoryview, at: int) -> int:
    """Write bytes of an open file from byte `at`; return how many were written."""
    if hasattr(os, "pwrite"):
        return os.pwrite(number, data, at)
    return _call_at(number, at, lambda: os.write(number, data))


def allocate(number: int, size: int) -> None:
    """Reserve `size` zeros in an empty open file; OSError if the disk is too full."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(number, 0, size)
        return
    zeros = bytes(_PIECE)
    for at in range(0, size, _PIECE):
        written = 0
        while written < min(_PIECE, size - at):
            written += write_at(number, zeros[written : size - at], at + written)


def sync(path: str | os.PathLike[str]) -> None:
    """Wait until a file or the names in a folder are on the disk."""
    # Windows writes only what is open for writing to the disk, and opens no folders.
    number = os.open(path, (os.O_RDWR if IS_WINDOWS else os.O_RDONLY) | BINARY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def is_for_writing(number: int) -> bool:
    """Return whether an open descriptor can be written to; OSError if it is not open."""
    try:
        import fcntl
    except ImportError:
        os.fstat(number)
        with suppress(OSError):
            os.write(number, b"")
            return True
        return False
    return fcntl.fcntl(number, fcntl.F_GETFL) & os.O_ACCMODE != os.O_RDONLY


def names_folder(error: OSError) -> bool:
    """Return whether an error is about a folder that was opened as a file."""
    is_refused = isinstance(error, PermissionError) and bool(error.filename)  # what Windows says
    return isinstance(error, IsADirectoryError) or (is_refused and os.path.isdir(error.filename))


def reason_of(error: OSError) -> str:
    """Return what the system says about an error. Windows would say it in the user's language."""
    if names_folder(error):
        return os.strerror(EISDIR)
    if getattr(error, "winerror", None) and error.errno is not None:
        return os.strerror(error.errno)
    return error.strerror or str(error)


def is_private(status: os.stat_result) -> bool:
    """Return whether only this user can read and write a file in the user's own folder.

    Windows has no such bits; there, the folder's permissions keep others out.
    """
    return not hasattr(os, "geteuid") or (
        status.st_uid == os.geteuid() and not status.st_mode & 0o077
    )


def shell_word(text: str) -> str:
    """Quote a word of a command for the usual shell of this system, if necessary."""
    if IS_WINDOWS:
        return f'"{text}"' if set(text) & set(" &()[]{}^=;!'+,`~%") else text
    import shlex

    return shlex.quote(text)


def expand_wildcards(words: list[str]) -> list[str]:
    """Replace words with ``*`` by the names that match, if any; shells do it except on Windows.

    ``?`` stays, because it is a label and a value of options.
    """
    if not IS_WINDOWS:
        return words
    from glob import glob

    return [name for word in words for name in ("*" in word and sorted(glob(word))) or [word]]


# -- Locks -----------------------------------------------------------------------------------------

# Windows locks bytes, which nobody else can then read. This one is beyond the end of journals.
_LOCKED_BYTE = (1 << 31) - 2  # the largest that all its C libraries can lock


def lock(number: int, *, waits: bool = False) -> None:
    """Lock an open file until it is closed or the process ends.

    BlockingIOError if another has locked it, unless `waits`. OSError if the file system has no
    locks.
    """
    try:
        import fcntl
    except ImportError:
        _lock_byte(number, waits)
        return
    fcntl.flock(number, fcntl.LOCK_EX | (0 if waits else fcntl.LOCK_NB))


def _lock_byte(number: int, waits: bool) -> None:
    """Lock as `lock` does on Windows, whose locks wait for ten seconds only."""
    import msvcrt

    windows: Any = msvcrt  # type checkers on other systems know none of its names
    mode = windows.LK_LOCK if waits else windows.LK_NBLCK

    while True:
        try:
            _call_at(number, _LOCKED_BYTE, lambda: windows.locking(number, mode, 1))
            return
        except PermissionError as error:
            raise BlockingIOError(error.errno, "another process has locked it") from None
        except OSError as error:
            if error.errno != EDEADLK:  # that is, it waited in vain: wait again
                raise


@contextmanager
def locked_folder(folder: str | os.PathLike[str]) -> Iterator[None]:
    """Hold a lock on a folder, and wait for it; where there are no locks, hold none."""
    # Windows opens no folders. The file stays: whoever removed it would let two others in.
    path = os.path.join(folder, ".kgtrec.lock") if IS_WINDOWS else folder
    number = os.open(path, os.O_RDWR | os.O_CREAT if IS_WINDOWS else os.O_RDONLY)
    try:
        with suppress(OSError):
            lock(number, waits=True)
        yield
    finally:
        os.close(number)


# -- Memory and threads ----------------------------------------------------------------------------


def empty_memory(size: int) -> mmap:
    """Return `size` zeros, which take memory only when they are used; in huge pages if possible.

    OSError without memory.
    """
    import mmap

    if not hasattr(mmap, "MAP_PRIVATE"):
        return mmap.mmap(-1, size)
    data = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with suppress(OSError):  # a kernel without huge pages
            data.madvise(mmap.MADV_HUGEPAGE)
    return data


def available_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def running_threads() -> int:
    """Return how many threads of this process the system counts; 0 if it does not say."""
    try:
        return len(os.listdir("/proc/self/task"))
    except OSError:
        return 0


# -- Signals ---------------------------------------------------------------------------------------

HANGUP: int | None = getattr(signal, "SIGHUP", None)
"""The signal of a terminal that closes; None on Windows."""

ENDING_SIGNALS: tuple[int, ...] = tuple(
    getattr(signal, name) for name in ("SIGTERM", "SIGHUP", "SIGBREAK") if hasattr(signal, name)
)
"""Signals that ask a process to end, other than Ctrl-C."""


@contextmanager
def interrupts_held_back() -> Iterator[None]:
    """Raise a Ctrl-C that comes in the context when it ends; new processes inherit that.

    Where signals cannot be blocked, as on Windows, Ctrl-C is raised at once.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()  # if started later, it would unblock SIGINT
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)  # here a waiting Ctrl-C is raised
