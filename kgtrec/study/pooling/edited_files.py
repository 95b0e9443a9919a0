"""Text files that people edit: lines of cells, and everything that is wrong with them.

Pools, judgements, sheets, templates, names and lists of questions are TSV files: lines end with LF
or CRLF, cells are separated by tabs, and nothing is quoted. Bytes that are not UTF-8 survive as
surrogates. Files may be packed (``.gz``, ``.zst``). A reader collects faults, one per line, and
refuses the file with all of them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from os import PathLike
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kgtrec._internal.files import atomic_write
from kgtrec.errors import FileError, InputError
from kgtrec.graph.id_files import lines_of, text_of
from kgtrec.graph.triples import COLUMNS

if TYPE_CHECKING:
    from kgtrec.graph.labels import Labels
    from kgtrec.questions.api import Graph

Ints = NDArray[np.int64]
Path = str | PathLike[str]
Rows = Sequence[tuple[int, Sequence[str]]]
"""Numbers of lines and their cells."""

_SHOWN = 10  # faults in a message
_QUOTED = 120  # characters of a line in a message
_PACKED = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"PK\x03\x04")
_SEPARATORS = frozenset("\t\n\r")


class Fault(NamedTuple):
    """One thing that is wrong with a file: its line (from 1), what was found, what to do."""

    line: int
    found: str
    hint: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.found}; {self.hint}"


class Faults(FileError):
    """A file with faults: the message lists up to 10 of them by line, ``faults`` holds all."""

    def __init__(self, path: Path, faults: Iterable[Fault], advice: str = "") -> None:
        self.faults = sorted(faults)
        first = self.faults[0]
        super().__init__(path, first.line, found=first.found, hint=first.hint)
        if len(self.faults) > 1:
            one_hint = len({fault.hint for fault in self.faults}) == 1
            shown = [f"line {one.line}: {one.found}" if one_hint else str(one)
                     for one in self.faults[:_SHOWN]]  # fmt: skip
            head = f"{self.path}: {len(self.faults):,} faults" + f"; {first.hint}" * one_hint
            more = len(self.faults) - _SHOWN
            rest = [f"and {more:,} more{advice}"] if more > 0 else []
            self.args = ("\n  ".join([head, *shown, *rest]),)


class EditedFile:
    """The lines of a file and its faults so far; `hint` says what a line must look like.

    A file that is missing, empty or not text is refused at once.
    """

    def __init__(self, path: Path, hint: str) -> None:
        self.path, self.hint = path, hint
        self.faults: list[Fault] = []
        self._first_lines: dict[Hashable, int] = {}
        self._lines = [*self._numbered()]
        if not self._lines:
            raise FileError(path, found="the file is empty", hint="check that it is the right one")

    def _numbered(self) -> Iterator[tuple[int, str]]:
        expected = 1
        for number, raw in lines_of(self.path, gaps=True):
            if number == 1 and raw.startswith(_PACKED):
                hint = "unpack it, or save the table as text with tabs in UTF-8"
                raise FileError(self.path, found="a packed file or a workbook", hint=hint)
            if b"\0" in raw:
                hint = "save it as UTF-8 text"
                raise FileError(self.path, found="NUL bytes: no plain text", hint=hint)
            for blank in range(expected, number):
                self.fault(blank, "an empty line", "delete it")
            expected = number + 1
            yield number, text_of(raw)

    @property
    def first(self) -> list[str]:
        """Cells of the first line."""
        return self._lines[0][1].split("\t")

    def fault(self, line: int, found: str, hint: str = "") -> None:
        """Note what is wrong with a line."""
        self.faults.append(Fault(line, found, hint or self.hint))

    def rows(self, width: int, skip: int = 0) -> Iterator[tuple[int, list[str]]]:
        """Number and cells of every line of `width` columns behind the first `skip` lines."""
        for number, text in self._lines[skip:]:
            cells = text.split("\t")
            if "\r" in text:
                problem = f"a carriage return inside {text[:_QUOTED]!r}"
                self.fault(number, problem, "end lines with LF or CRLF, and only there")
            elif len(cells) == width:
                yield number, cells
            else:
                count = "1 column" if len(cells) == 1 else f"{len(cells)} columns"
                self.fault(number, f"{count} in place of {width}: {text[:_QUOTED]!r}")

    def is_new(self, line: int, key: Hashable, shown: str, hint: str) -> bool:
        """Whether no line before has the key; if one has, that is a fault."""
        other = self._first_lines.setdefault(key, line)
        if other != line:
            self.fault(line, f"{shown} is in line {other} too", hint)
        return other == line

    def ids(self, labels: Labels, what: str, rows: Rows, column: int) -> Ints:
        """Ids of the labels in a column; labels that the graph lacks are faults, with the id -1."""
        import pyarrow as pa

        names = [cells[column].encode("utf-8", "surrogateescape") for _, cells in rows]
        ids = labels.positions(pa.array(names, pa.large_binary())).astype(np.int64)
        for row in np.flatnonzero(ids < 0).tolist():
            number, cells = rows[row]
            problem = f"{what} {cells[column]!r} is not in the graph"
            self.fault(number, problem, "labels must match the graph's byte for byte")
        return ids

    def triple_ids(self, graph: Graph, rows: Rows) -> Ints:
        """Ids of the first three cells, head, relation and tail; shape (n, 3)."""
        labels = (graph.entities, graph.relations, graph.entities)
        columns = [self.ids(labels[c], COLUMNS[c], rows, c) for c in range(3)]
        return np.stack(columns, axis=1)

    def refuse_faults(self, advice: str = "") -> None:
        """Raise Faults if there are any."""
        if self.faults:
            raise Faults(self.path, self.faults, advice)


def write_lines(path: Path, rows: Iterable[Sequence[str]]) -> None:
    """Write lines of cells whole or not at all; InputError if a cell would break its line."""
    with atomic_write(path) as out:
        for row in rows:
            bad = next((cell for cell in row if _SEPARATORS & set(cell)), None)
            if bad is not None:
                raise InputError(f"{bad!r} has a tab or line end in it; a TSV file cannot hold it")
            out.write("\t".join(row).encode("utf-8", "surrogateescape") + b"\n")
