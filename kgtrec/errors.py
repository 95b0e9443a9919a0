"""Exceptions and warnings of kgtrec: each message says what was found and how to mend it."""

from __future__ import annotations

from os import PathLike

__all__ = ["FileError", "FilterWarning", "InputError", "KgtrecError", "UsageError"]


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
    mend : str
        What the user can do about it.
    """

    def __init__(
        self, path: str | PathLike[str], line: int | None = None, *, found: str, mend: str
    ) -> None:
        self.path = str(path)
        self.line = line
        self.found = found
        self.mend = mend
        place = self.path or "''"  # an empty name shows
        place = place if line is None else f"{place}:{line}"
        super().__init__(f"{place}: {found}; {mend}")


class FilterWarning(UserWarning):
    """A split that the graph has was left out of the filter, so known answers count as wrong."""
