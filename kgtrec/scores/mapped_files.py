"""Checks that files do not change while they are read; most of them are mapped."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from kgtrec import _core
from kgtrec._internal.arrays import Array
from kgtrec._internal.locations import is_location, stamps
from kgtrec._internal.system import reason_of
from kgtrec.errors import FileError, PathName

_AGAIN = "try again when nothing writes to it"


def stamp(path: PathName) -> tuple[int, ...]:
    """Return a value that changes when a file is written or replaced, even if its time is reset."""
    if is_location(path):
        return stamps([os.fspath(path)])[0]
    now = os.stat(path)
    return now.st_size, now.st_mtime_ns, now.st_ctime_ns, now.st_ino, now.st_dev


def find_mapped_file(array: Array) -> str | None:
    """Find the file that an array maps for reading; None if in memory, or mapped for writing."""
    base = _base(array)
    return str(base.filename) if base is not None and os.path.exists(base.filename) else None


def _base(array: Array) -> Any:
    """Return the base of an array that maps a file; None as for `find_mapped_file`."""
    base: Any = array
    while isinstance(base, np.ndarray):
        if isinstance(base, np.memmap) and base.mode == "r" and base.filename is not None:
            return base
        base = base.base
    return None


# The state of files before they were mapped, by their maps.
_BEFORE_MAPPED: WeakKeyDictionary[Any, tuple[int, ...]] = WeakKeyDictionary()


class Watch:
    """The state of files when the watch begins, to compare with later."""

    def __init__(self, paths: Iterable[PathName]) -> None:
        self._before = {os.fspath(path): stamp(path) for path in paths}

    @classmethod
    def from_arrays(cls, *arrays: Any) -> Watch:
        """Watch the files that arrays map, if any.

        If `keep_for` recorded the state of a file before it was mapped, this state counts.
        """
        watch = cls([])
        for array in arrays:
            path = find_mapped_file(array) if isinstance(array, np.ndarray) else None
            if path is not None:
                before = _BEFORE_MAPPED.get(_base(array)._mmap)
                watch._before[path] = before or stamp(path)
        return watch

    def keep_for(self, array: Array) -> None:
        """Record the state in this watch for `from_arrays` with the array that maps the file."""
        base = _base(array)
        if base is not None:
            (_BEFORE_MAPPED[base._mmap],) = self._before.values()

    def check(self) -> None:
        """Raise FileError if a file was written to, cut short, replaced or removed since."""
        for path, before in self._before.items():
            try:
                now = stamp(path)
            except OSError as error:
                problem = f"it disappeared while it was read ({reason_of(error)})"
                raise FileError(path, found=problem, hint=_AGAIN) from None
            if now[0] < before[0]:
                problem = f"it was cut short while it was read ({before[0]:,} to {now[0]:,} bytes)"
                raise FileError(path, found=problem, hint=_AGAIN)
            if now != before:
                raise FileError(path, found="it was written to while it was read", hint=_AGAIN)


class guarded_maps:
    """A context to read mapped files safely: a file that is cut short meanwhile gives an error.

    The system kills a process that touches a missing page of a mapped file. In this context, all
    threads read such a page as zeros, and the context ends with a FileError.
    """

    def __init__(self, location: PathName, watch: Watch | None = None) -> None:
        self._location, self._watch = location, watch

    def __enter__(self) -> None:
        self._before = _core.map_faults()
        _core.map_guard_begin()

    def __exit__(self, kind: Any, error: BaseException | None, _: object) -> None:
        _core.map_guard_end()
        if error is not None and not isinstance(error, Exception):
            return  # such as Ctrl-C
        if self._watch is not None:
            self._watch.check()
        if _core.map_faults() != self._before and not isinstance(error, FileError):
            problem = "a part of it could not be read: it was cut short, or the disk failed"
            raise FileError(self._location, found=problem, hint=_AGAIN)


def reading(name: PathName, *arrays: Any) -> guarded_maps:
    """Return a context to read arrays that may map files.

    It raises FileError if a file is cut short, changed or replaced meanwhile. Every function that
    reads arrays or matrices of the user does it in this context. `name` describes them in the
    message if the file is unknown.
    """
    return guarded_maps(name, Watch.from_arrays(*arrays))
