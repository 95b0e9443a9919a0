"""Exceptions and warnings of kgtrec: each message says what was found and a hint."""

from __future__ import annotations

import os
import re
from os import PathLike

__all__ = [
    "FileError",
    "FilterWarning",
    "InputError",
    "KgtrecError",
    "UsageError",
    "is_url",
    "refuse_url",
]


class KgtrecError(Exception):
    """Base of every error that kgtrec raises on purpose; ``exit_code`` is the command line's."""

    exit_code = 2


class InputError(KgtrecError, ValueError):
    """What the user handed in (a file, an array, scores) is not what it must be."""


class UsageError(KgtrecError, ValueError):
    """A function or command was called with arguments that do not fit together."""

    exit_code = 1


class FileError(InputError):
    """A file is wrong or cannot be used.

    Parameters
    ----------
    path : str or path-like
        The file or folder at fault.
    line : int, optional
        1-based line number, where one line is to blame.
    found : str
        What was met there.
    hint : str
        What the user can do about it.
    """

    def __init__(
        self, path: str | PathLike[str], line: int | None = None, *, found: str, hint: str
    ) -> None:
        self.path = str(path)
        if is_url(self.path):
            self.path = _URL.sub(r"\1://", self.path, count=1)  # pathlib drops a slash
            found, hint = "a URL, where only files of this machine are read and written", _MOUNT
        self.line = line
        self.found = found
        self.hint = hint
        place = self.path or "''"  # an empty name shows
        place = place if line is None else f"{place}:{line}"
        super().__init__(f"{place}: {found}; {hint}")


_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/+")
_MOUNT = "copy or mount it, and name the file"


def is_url(path: str) -> bool:
    """Whether this names no file that is here, but begins like ``s3://`` or ``https://``."""
    return _URL.match(path) is not None and not os.path.exists(path)


def refuse_url(path: str | PathLike[str]) -> None:
    """FileError if this is a URL, of which a folder of such a name would be made."""
    if is_url(os.fspath(path)):
        raise FileError(path, found="", hint="")


class FilterWarning(UserWarning):
    """A split that the graph has was left out of the filter, so known answers count as wrong."""
