"""Exceptions and warnings of kgtrec: each message says what was found and a hint."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from os import PathLike


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

    - path, str or path-like: The file or folder at fault.
    - line, int, optional: 1-based line number, where one line is to blame.
    - found, str: What was met there.
    - hint, str: What the user can do about it.
    """

    def __init__(
        self, path: str | PathLike[str], line: int | None = None, *, found: str, hint: str
    ) -> None:
        self.path = str(path)
        if is_url(self.path):
            self.path = url_text(self.path)
            if not LOCATION.match(self.path):
                found, hint = _ELSEWHERE, _MOUNT
        self.line = line
        self.found = found
        self.hint = hint
        super().__init__(self._text())

    def _text(self) -> str:
        place = self.path or "''"  # an empty name shows
        place = place if self.line is None else f"{place}:{self.line}"
        return f"{place}: {self.found}; {self.hint}"

    def at(self, path: str) -> FileError:
        """The same of another path, such as the URL of which a copy was read."""
        self.path = path
        self.args = (self._text(),)
        return self


def suggestion(
    word: str, known: Iterable[str], otherwise: str = "", n: int = 1, cutoff: float = 0.6
) -> str:
    """``did you mean 'x'?`` with the `n` most similar names, or another hint if none is similar."""
    from difflib import get_close_matches

    names = {name.lower(): name for name in reversed([*known])}
    close = [repr(names[near]) for near in get_close_matches(word.lower(), names, n, cutoff)]
    return f"did you mean {' or '.join(close)}?" if close else otherwise


def choose(name: str, value: object, choices: Iterable[object]) -> None:
    """UsageError unless the value of an argument is one of the choices."""
    known = list(choices)
    if value not in known:
        *most, last = map(repr, known)
        names = f"{', '.join(most)} or {last}" if most else last
        near = suggestion(str(value), [one for one in known if isinstance(one, str)])
        hint = f"; {near}" if near else ""
        raise UsageError(f"{name}={value!r} is unknown; it must be {names}{hint}")


_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/+")
_ELSEWHERE = "a URL that is neither read nor written here"
_MOUNT = "copy or mount it, and name the file (of URLs, those of s3, gs and file are known)"


def is_url(path: str) -> bool:
    """Whether this names no file that is here, but begins like ``s3://`` or ``https://``."""
    return _URL.match(path) is not None and not os.path.exists(path)


LOCATION = re.compile(r"(s3|gs|file):/", re.IGNORECASE)
"""URLs that are read and written: what is said of these is of their content."""


def url_text(path: str) -> str:
    """A URL as it is written; pathlib drops its slashes."""
    return _URL.sub(r"\1:///" if path[:5].lower() == "file:" else r"\1://", path, count=1)


def refuse_url(path: str | PathLike[str], found: str = _ELSEWHERE, hint: str = _MOUNT) -> None:
    """FileError if this is a URL, of which a folder of such a name would be made."""
    if is_url(os.fspath(path)):
        url = url_text(os.fspath(path))
        raise FileError("", found=found, hint=hint).at(url)


class FilterWarning(UserWarning):
    """A split that the graph has was left out of the filter, so known answers count as wrong."""


class RunWarning(UserWarning):
    """A run file was read, but looks damaged."""


class GraphWarning(UserWarning):
    """What was read as a graph looks misread: a split is absent, or lines are not triples."""
