"""Everything that is wrong with a file, all at once, each with its line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from os import PathLike
from typing import NamedTuple

from kgtrec._internal.locations import read_bytes
from kgtrec.errors import FileError

__all__ = ["Fault", "Faults", "lines_with_faults", "plain_text", "text_lines"]

_SHOWN = 10


class Fault(NamedTuple):
    """One thing that is wrong.

    Attributes
    ----------
    line : int
        Counted from 1.
    found : str
    hint : str
    """

    line: int
    found: str
    hint: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.found}; {self.hint}"


class Faults(FileError):
    """A file with faults; the message lists them by line, up to 10.

    Parameters
    ----------
    path : str or path-like
    faults : sequence of Fault
        At least one. Kept whole, by line, in the attribute of the same name.
    """

    def __init__(self, path: str | PathLike[str], faults: Sequence[Fault]) -> None:
        self.faults = sorted(faults)
        first = self.faults[0]
        super().__init__(path, first.line, found=first.found, hint=first.hint)
        if len(self.faults) > 1:
            lines = [f"{self.path}: {len(self.faults):,} faults", *map(str, self.faults[:_SHOWN])]
            more = len(self.faults) - _SHOWN
            if more > 0:
                lines.append(f"and {more:,} more (kgtrec judge check lists all of a sheet)")
            self.args = ("\n  ".join(lines),)


def plain_text(path: str | PathLike[str]) -> str:
    """A text file, without a byte-order mark; bytes that are no UTF-8 survive as surrogates.

    Raises
    ------
    FileError
        Missing, a folder, unreadable, packed, UTF-16 or with NUL bytes in it.
    """
    hint = "check the name and the folder"
    try:
        raw = read_bytes(path)
    except FileNotFoundError:
        raise FileError(path, found="there is no such file", hint=hint) from None
    except IsADirectoryError:
        raise FileError(path, found="a folder, not a file", hint="name the file in it") from None
    except OSError as error:
        raise FileError(path, found=f"cannot be read ({error.strerror})", hint=hint) from None
    if raw.startswith((b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"PK\x03\x04")):
        hint = "unpack it, or save the table as text with tabs in UTF-8"
        raise FileError(path, found="a packed file or a workbook", hint=hint)
    if b"\0" in raw:
        raise FileError(path, found="NUL bytes: no plain text", hint="save it as UTF-8 text")
    return raw.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "surrogateescape")


def text_lines(path: str | PathLike[str]) -> list[str]:
    """Lines of a text file without their ends (LF or CRLF); blank ones at the end are dropped.

    Raises
    ------
    FileError
        As `plain_text`, or no line at all.
    """
    lines = [line.removesuffix("\r") for line in plain_text(path).split("\n")]
    while lines and not lines[-1]:
        lines.pop()
    if not lines:
        raise FileError(path, found="the file is empty", hint="check that it is the right one")
    return lines


def lines_with_faults(
    lines: Sequence[str], faults: list[Fault], width: int, hint: str, start: int = 1
) -> Iterator[tuple[int, list[str]]]:
    """Number and cells of every line of `width` columns; of the others, faults.

    Parameters
    ----------
    lines : sequence of str
    faults : list of Fault
        To which is added.
    width : int
    hint : str
        What a line must be.
    start : int
        Number of the first line.
    """
    for number, line in enumerate(lines, start=start):
        cells = line.split("\t")
        if len(cells) == width and "\r" not in line:
            yield number, cells
        elif not line:
            faults.append(Fault(number, "an empty line", "delete it"))
        elif "\r" in line:
            problem = f"a carriage return inside {line[:80]!r}"
            faults.append(Fault(number, problem, "end lines with LF or CRLF, and only there"))
        else:
            count = "1 column" if len(cells) == 1 else f"{len(cells)} columns"
            faults.append(Fault(number, f"{count} in place of {width}: {line[:80]!r}", hint))
