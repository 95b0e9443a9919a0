"""Exceptions and warnings: each message says what is wrong, what was found and what to do."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from os import PathLike
from typing import NoReturn

from kgtrec._internal.argument_names import argument, python_spelling
from kgtrec._internal.system import reason_of
from kgtrec._internal.text import visible
from kgtrec._internal.urls import LOCATION, is_url, url_text

PathName = str | PathLike[str]


class KgtrecError(Exception):
    """Base of every error that kgtrec raises on purpose, with the command line's ``exit_code``.

    - marked: The message with marked names of arguments (see `argument`). An error that quotes
      another one takes its ``marked``, so that the command line still finds the names.
    """

    exit_code = 2
    marked = ""

    def __init__(self, message: object = "", *more: object) -> None:
        super().__init__(message, *more)
        if isinstance(message, str):
            self.say(message)

    def say(self, message: str) -> None:
        """Set the message, in which names of arguments may be marked."""
        self.marked = message
        self.args = (python_spelling(message), *self.args[1:])


class InputError(KgtrecError, ValueError):
    """The user's data (a file, an array, scores) is wrong."""


class UsageError(KgtrecError, ValueError):
    """Arguments of a function or command are wrong or do not fit together."""

    exit_code = 1


class FileError(InputError):
    """A file is wrong or cannot be used.

    - path, line: The file or folder, and the number of the line if a single line is wrong.
    - found, hint: What was found there, and what the user can do.
    """

    def __init__(self, path: PathName, line: int | None = None, *, found: str, hint: str) -> None:
        self.path = str(path)
        if is_url(self.path):
            self.path = url_text(self.path)
            if not LOCATION.match(self.path):
                found, hint = _ELSEWHERE, _MOUNT
        self.line = line
        self.found, self.hint = python_spelling(found), python_spelling(hint)
        self._marked = found, hint
        super().__init__(self._text())

    def _text(self) -> str:
        text = visible(self.path) or "''"  # shows that the name is empty
        text = text if self.line is None else f"{text}:{self.line}"
        return f"{text}: {'; '.join(self._marked)}"

    def at(self, path: str) -> FileError:
        """Return the same error for another path, such as the URL of a copy."""
        self.path = path
        self.say(self._text())
        return self

    def add(self, text: str) -> FileError:
        """Return the same error with a text after its hint."""
        found, hint = self._marked
        self._marked = found, hint + text
        self.hint += text
        self.say(self._text())
        return self


def refuse(path: PathName, line: int | None, found: str, hint: str) -> NoReturn:
    """Raise the FileError for a file, or for one of its lines."""
    raise FileError(path, line, found=found, hint=hint)


def system_error(path: PathName, error: OSError) -> FileError:
    """Return the FileError for a file that the system does not open or read."""
    hint = "make the file readable, then try again"
    if error.errno in (errno.EMFILE, errno.ENFILE):
        hint = "raise the limit of open files (ulimit -n), then try again"
    return FileError(path, found=reason_of(error), hint=hint)


def no_memory_for(path: PathName) -> FileError:
    """Return the FileError for a file whose content does not fit into memory.

    A file with a wrong length inside asks for more memory than there is, too.
    """
    return FileError(
        path,
        found="it needs more memory than there is",
        hint="if the file is much smaller than that, it is damaged: write it again",
    )


@contextmanager
def about(source: PathName | None) -> Iterator[None]:
    """Begin the message of an InputError in the context with `source`, unless it names a file."""
    try:
        yield
    except InputError as error:
        if isinstance(error, FileError) or not source:
            raise
        raise InputError(f"{visible(os.fspath(source))}: {error.marked}") from None


def list_problems(head: str, problems: Sequence[str]) -> str:
    """Return the only problem, or a head and below it a line per problem, after two spaces."""
    return problems[0] if len(problems) == 1 else "\n  ".join([f"{head}:", *problems])


def suggestion(
    word: str, known: Iterable[str], otherwise: str = "", n: int = 1, cutoff: float = 0.6
) -> str:
    """Suggest the `n` most similar names (``did you mean 'x'?``), or `otherwise` without one."""
    from difflib import get_close_matches

    names = {name.lower(): name for name in reversed([*known])}
    close = [repr(names[near]) for near in get_close_matches(word.lower(), names, n, cutoff)]
    return f"did you mean {' or '.join(close)}?" if close else otherwise


def must_be(value: object, choices: Iterable[object], also: str = "") -> str:
    """List the choices for a message: ``it must be 'a', 'b' or 'c' (did you mean 'b'?)``.

    A long list shows only similar names, if there are any. `also` may be ``a .npy file``.
    """
    known = list(choices)
    near = suggestion(str(value), [choice for choice in known if isinstance(choice, str)], n=2)
    if near and len(known) > 12:
        return near
    *most, last = [*map(repr, known), *filter(None, [also])] or ["absent here"]
    names = f"{', '.join(most)} or {last}" if most else last
    return f"it must be {names}{near and f' ({near})'}"


def choose(
    name: str, value: object, choices: Iterable[object], found: str = "is unknown", also: str = ""
) -> None:
    """Raise UsageError unless an argument has one of the choices; `also` as in `must_be`."""
    if value not in (known := list(choices)):
        raise UsageError(f"{argument(name, value)} {found}; {must_be(value, known, also)}")


def refuse_if(*rows: tuple[object, str]) -> None:
    """Raise UsageError with the sentences of all rows (condition, sentence) that apply."""
    if problems := [problem for applies, problem in rows if applies]:
        raise UsageError("; ".join(problems))


_ELSEWHERE = "a URL that kgtrec cannot read or write"
_MOUNT = "copy or mount it and give its path, or use a URL of s3, gs or file"


def refuse_url(path: PathName, found: str = _ELSEWHERE, hint: str = _MOUNT) -> None:
    """Raise FileError for a URL, so that no folder of that name is made."""
    if is_url(os.fspath(path)):
        url = url_text(os.fspath(path))
        raise FileError("", found=found, hint=hint).at(url)


class KgtrecWarning(UserWarning):
    """Base of every warning that kgtrec gives on purpose.

    - marked: As of `KgtrecError`. ``warnings.warn(FilterWarning(text))`` shows Python's spelling.
    """

    def __init__(self, message: str = "") -> None:
        super().__init__(python_spelling(message))
        self.marked = message


class FilterWarning(KgtrecWarning):
    """The filter lacks a split of the graph, so known answers count as wrong."""


class RunWarning(KgtrecWarning):
    """A run looks damaged or misread: joined lines, ranks against scores, unknown documents."""


class QueryWarning(KgtrecWarning):
    """Queries lack a run, judgements or relevant documents, which changes a mean."""


class FormatNote(KgtrecWarning):
    """A file is not in the usual form, and this says which form was read.

    Name the form, as in ``read_run(path, run_format="msmarco")``, to read it without this note.
    """


class AnswerNote(KgtrecWarning):
    """What ``kg_`` measures count, and what a graph removed from a run before it was evaluated."""


class QrelsWarning(KgtrecWarning):
    """Qrels look like judgements of another kind, whose meaning kgtrec ignores."""


class LabelWarning(KgtrecWarning):
    """Labels contradict each other."""


class TieWarning(KgtrecWarning):
    """Documents of equal score tie, and another order would change a value."""


class ChanceWarning(KgtrecWarning):
    """Ranks are as good as those of random scores, or worse, so the scores may be misread."""


class SampleWarning(KgtrecWarning):
    """There are too few questions for what is computed from them."""


class GraphWarning(KgtrecWarning):
    """A graph looks misread: a split is absent, or lines are not triples."""
