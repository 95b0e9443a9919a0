"""Run pytest in a process that lacks what Linux has and Windows lacks.

    python tests/helpers/as_on_windows.py tests/cli/test_transcripts.py -k test_commands_print

Libraries load first, because on Windows they would take other branches. So only what kgtrec looks
for when it loads or runs is missing. Locks of files are those of a `msvcrt` made here.
"""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
import shutil
import sys
from importlib import import_module
from multiprocessing import resource_tracker
from types import ModuleType
from typing import Any

import pytest

HIDDEN = {
    "os": """pread preadv pwrite pwritev readv writev posix_fallocate posix_fadvise fdatasync lockf
        geteuid getegid getgid fchown lchown mkfifo mknod statvfs fstatvfs sysconf confstr uname
        sched_getaffinity sched_setaffinity sched_yield nice getpriority fork forkpty killpg setsid
        register_at_fork setpgid getpgid getpgrp getsid O_CLOEXEC O_NONBLOCK O_DIRECTORY O_NOFOLLOW
        O_SYNC O_DSYNC""",
    "signal": """SIGHUP SIGKILL SIGQUIT SIGPIPE SIGALRM SIGUSR1 SIGUSR2 SIGSTOP SIGCONT SIGTSTP
        SIGTTIN SIGTTOU pthread_sigmask pthread_kill sigwait sigpending alarm setitimer getitimer
        pause""",
    "mmap": " ".join(name for name in dir(mmap) if name.startswith(("MAP_", "PROT_", "MADV_"))),
}
MODULES = ("fcntl", "resource", "pwd", "grp", "termios", "pty", "tty", "syslog")
LOADED_BEFORE = """asyncio concurrent.futures curses http.server multiprocessing.util shutil
    subprocess tempfile click tqdm numpy scipy.stats scipy.sparse.linalg scipy.optimize
    pyarrow.parquet pyarrow.fs pyarrow.csv pandas matplotlib.pyplot pytrec_eval distributed
    distributed.cli hypothesis"""


class Map(mmap.mmap):
    """A map without the methods and options of POSIX."""

    def __new__(cls, fileno: int, length: int, **options: Any) -> Map:
        assert options.keys() <= {"tagname", "access", "offset"}, options
        return super().__new__(cls, fileno, length, **options)

    @property
    def madvise(self) -> Any:
        raise AttributeError("madvise")


def windows_locks() -> ModuleType:
    """The locks of Windows: they refuse with another error than those of Linux."""
    made: Any = ModuleType("msvcrt")
    made.LK_LOCK, made.LK_NBLCK = 1, 2
    flock, exclusive, at_once = fcntl.flock, fcntl.LOCK_EX, fcntl.LOCK_NB

    def locking(number: int, mode: int, n_bytes: int) -> None:
        assert n_bytes == 1
        try:
            flock(number, exclusive | at_once)
        except BlockingIOError:
            if mode == made.LK_LOCK:  # after ten seconds
                raise OSError(errno.EDEADLK, "Resource deadlock avoided") from None
            raise PermissionError(errno.EACCES, "Permission denied") from None

    made.locking = locking
    return made


def list_folder(path: Any = ".", *, before: Any = os.listdir) -> Any:
    if str(path).startswith("/proc"):
        raise FileNotFoundError(errno.ENOENT, "there is no /proc", path)
    return before(path)


def hide() -> None:
    """Hide the names in this process, for good."""
    for name in LOADED_BEFORE.split():
        try:
            import_module(name)
        except ImportError:  # an optional library
            continue
    resource_tracker._HAVE_SIGMASK = False  # type: ignore[attr-defined]
    shutil._use_fd_functions = False  # type: ignore[attr-defined]
    if hasattr(shutil, "_rmtree_unsafe"):  # since Python 3.14, the other needs O_NONBLOCK
        shutil._rmtree_impl = shutil._rmtree_unsafe  # type: ignore[attr-defined]
    sys.modules["msvcrt"] = windows_locks()
    for module, names in HIDDEN.items():
        for name in names.split():
            vars(sys.modules[module]).pop(name, None)
    mmap.mmap = Map  # type: ignore[misc]
    os.listdir = list_folder
    for name in MODULES:
        sys.modules[name] = None  # type: ignore[assignment]


if __name__ == "__main__":
    hide()
    options = ["-n", "0", "-o", "timeout=0", "-p", "no:cacheprovider", "--assert", "plain"]
    sys.exit(pytest.main([*options, *sys.argv[1:]]))
