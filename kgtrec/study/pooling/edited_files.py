"""Files that people edit: lines of cells, and all their faults.

Pools, judgements, sheets, templates, names and lists of questions are TSV files: lines end with LF
or CRLF, cells are separated by tabs, and nothing is quoted. Bytes that are not UTF-8 survive as
surrogates. Files may be packed (``.gz``, ``.zst``). A reader collects faults, one per line, and
refuses the file with all of them.

A file of triples has lines ``head<TAB>relation<TAB>tail``, like a split. A judgement file also has
a ``label``, Y, N or ?. It is the fourth and last column, unless a header names ``head``,
``relation``, ``tail`` and ``label``. Below a header, cells are those of a sheet, as `kgtrec judge`
writes them (`kgtrec._internal.table`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from kgtrec._internal.argument_names import argument
from kgtrec._internal.csr import Int32, Int64, Integers
from kgtrec._internal.files import atomic_write
from kgtrec._internal.table import ShownInLines, text_of_cell
from kgtrec._internal.text import shortened
from kgtrec.errors import FileError, InputError, PathName, UsageError, choose
from kgtrec.graph.id_files import FIT, arrow_bytes, bytes_of, lines_of, text_of
from kgtrec.graph.labels import Labels
from kgtrec.graph.triples import COLUMNS, as_triples, drop_duplicates
from kgtrec.questions.filters import read_known

if TYPE_CHECKING:
    from kgtrec.questions.api import Graph

Rows = Sequence[tuple[int, Mapping[str, str]]]
"""Numbers of lines, and their cells by column."""

_NEEDED = (*COLUMNS, "label")
_SHOWN = 10  # faults in a message
_QUOTED = 120  # characters of a line in a message
_PACKED = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"PK\x03\x04")
_SEPARATORS = frozenset("\t\n\r")


class Fault(NamedTuple):
    """One fault of a file: its line (from 1), what was found, what to do."""

    line: int
    found: str
    hint: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.found}; {self.hint}"


class Faults(FileError):
    """A file with faults: the message lists up to 10 of them by line, ``faults`` holds all."""

    def __init__(self, path: PathName, faults: Iterable[Fault], advice: str = "") -> None:
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
            self.say("\n  ".join([head + ":", *shown, *rest]))


class EditedFile:
    """The lines of a file and its faults so far; `hint` says more of a line than its columns.

    A file that is missing, empty or not text is refused at once.
    """

    def __init__(self, path: PathName, hint: str = "") -> None:
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
                raise FileError(self.path, found="this is a packed file or a workbook", hint=hint)
            if b"\0" in raw:
                hint = "save it as UTF-8 text"
                raise FileError(
                    self.path, found="it has NUL bytes and is not plain text", hint=hint
                )
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

    def below(self, header: Sequence[str]) -> Iterator[tuple[int, dict[str, str]]]:
        """The rows below a first line that is this header; FileError for another one."""
        if self.first != [*header]:
            shown, hint = "\t".join(self.first), f"the first line must be {_line(header)}"
            hint += f"; {self.hint}" if self.hint else ""
            raise FileError(self.path, 1, found=f"header {shown[:_QUOTED]!r}", hint=hint)
        return self.rows(header, 1)

    def rows(
        self, columns: Sequence[str], skip: int = 0, decoded: Callable[[str], str] = str
    ) -> Iterator[tuple[int, dict[str, str]]]:
        """Number and `decoded` cells of every line with these columns after `skip` lines."""
        self.hint = self.hint or f"each line must be {_line(columns)}"
        for number, text in self._lines[skip:]:
            cells = text.split("\t")
            if "\r" in text:
                problem = f"a carriage return inside {text[:_QUOTED]!r}"
                self.fault(number, problem, "use CR or LF only at the end of lines")
            elif len(cells) == len(columns):
                yield number, dict(zip(columns, map(decoded, cells), strict=True))
            else:
                count = "1 column" if len(cells) == 1 else f"{len(cells)} columns"
                self.fault(number, f"{count} instead of {len(columns)}: {text[:_QUOTED]!r}")

    def records(
        self,
        needed: Sequence[str],
        known: Collection[str] = (),
        decoded: Callable[[str], str] = str,
    ) -> Iterator[tuple[int, dict[str, str]]]:
        """Number and cells of every line with a triple.

        A first line with three of the names head, relation, tail and label is a header. It must
        have the `needed` columns, and no others than `known`, if these are given. Its cells are
        `decoded`. Without a header, lines have the needed columns.
        """
        names = [cell.strip().lower() for cell in self.first]
        headed = len({*names} & {*_NEEDED}) > 2
        names = names if headed else [*needed]
        self.hint = f"each line must be {_line(names)}"
        self.hint += "" if headed else ", or name the columns in the first line"
        hint = f"name the columns {' '.join(known or needed)} in the first line, with tabs between"
        for name in dict.fromkeys([*needed, *names]):
            if name not in names:
                self.fault(1, f"column {name!r} is missing", hint)
            elif known and name not in known:
                self.fault(1, f"column {name[:_QUOTED]!r} is unknown", hint)
            elif name and names.count(name) > 1:
                self.fault(1, f"column {name[:_QUOTED]!r} appears twice", hint)
        if not all(names.count(name) == 1 for name in needed):
            return
        for number, cells in self.rows(names, int(headed), decoded if headed else str):
            if empty := [name for name in COLUMNS if not cells[name]]:
                every = "every triple needs a head, a relation and a tail"
                self.fault(number, f"an empty {empty[0]}", every)
            else:
                yield number, cells

    def is_new(self, line: int, key: Hashable, shown: str, hint: str) -> bool:
        """Whether no earlier line has the key; otherwise note a fault."""
        other = self._first_lines.setdefault(key, line)
        if other != line:
            self.fault(line, f"{shown} is also in line {other}", hint)
        return other == line

    def ids(self, labels: Labels, what: str, rows: Rows, column: str = "") -> Int64:
        """Ids of the labels in a column; labels that the graph lacks are faults, with the id -1."""
        texts = [cells[column or what] for _, cells in rows]
        ids = labels.positions(arrow_bytes([*map(bytes_of, texts)])).astype(np.int64)
        for row in np.flatnonzero(ids < 0).tolist():
            problem = f"{what} {texts[row][:_QUOTED]!r} is not in the graph"
            self.fault(rows[row][0], problem, FIT)
        return ids

    def triple_ids(self, graph: Graph, rows: Rows) -> Int64:
        """Ids of head, relation and tail, shape (n, 3)."""
        labels = (graph.entities, graph.relations, graph.entities)
        columns = [self.ids(own, name, rows) for own, name in zip(labels, COLUMNS, strict=True)]
        return np.stack(columns, axis=1)

    def refuse_faults(self) -> None:
        """Raise Faults if there are any."""
        if self.faults:
            raise Faults(self.path, self.faults)


def _line(columns: Sequence[str]) -> str:
    """The form of a line, as messages show it."""
    return shortened("<TAB>".join(columns), 4 * _QUOTED)


def write_lines(path: PathName, rows: Iterable[Sequence[str]]) -> None:
    """Write lines of cells whole or not at all; InputError if a cell would break its line."""
    with atomic_write(path) as out:
        for row in rows:
            bad = next((cell for cell in row if _SEPARATORS & set(cell)), None)
            if bad is not None:
                raise InputError(
                    f"{bad!r} has a tab or line end, which a TSV file cannot have; rename it"
                )
            out.write("\t".join(row).encode("utf-8", "surrogateescape") + b"\n")


Triple = tuple[int, int, int]

LABELS = {"Y": 1, "N": 0, "?": -1}
"""The labels of judges and their numbers."""

BLANKS = ("error", "N", "?")


@dataclass(frozen=True, eq=False)
class Judgements(ShownInLines):
    """Judges' labels of triples.

    - labels: 1 true, 0 false, -1 undecided; in the order of the files.
    - repeated: Number of lines that repeat an earlier line.
    - blank: Number of blank labels, which were replaced.
    """

    labels: dict[Triple, int]
    rows: int
    repeated: int = 0
    blank: int = 0

    def __len__(self) -> int:
        return len(self.labels)

    def _lines(self) -> tuple[str, str]:
        said = ", ".join(f"{count:,} {name}" for name, count in self.counts().items())
        return f"{len(self):,} triples of {self.rows:,} lines", said

    def of(self, triples: ArrayLike) -> Int64:
        """Label of each triple: 1, 0, -1, or -2 if nobody judged it; shape (n,)."""
        rows = as_triples("triples", triples)
        labels = [self.labels.get((h, r, t), -2) for h, r, t in rows.tolist()]
        return np.array(labels, np.int64)

    def counts(self) -> dict[str, int]:
        """How many triples have each label: Y, N, ?."""
        values = list(self.labels.values())
        return {name: values.count(value) for name, value in LABELS.items()}


def read_triples(path: PathName, graph: Graph) -> Int32:
    """Distinct triples of a file in its order, as ids of the graph; int32 array (n, 3)."""
    return drop_duplicates(read_known(path, graph, hint=FIT)[0].facts)


def write_triples(path: PathName, graph: Graph, triples: Integers) -> None:
    """Write triples as lines ``head<TAB>relation<TAB>tail``."""
    write_lines(path, lines_of_triples(graph, triples))


def lines_of_triples(graph: Graph, triples: Integers) -> Iterable[tuple[str, str, str]]:
    """Labels of triples."""
    columns = [
        labels[triples[:, column].astype(np.int64)]
        for column, labels in enumerate((graph.entities, graph.relations, graph.entities))
    ]
    return zip(*columns, strict=True)


def read_judgements(
    paths: PathName | Sequence[PathName], graph: Graph, blank: str = "error"
) -> Judgements:
    """Read judgement files; see the top of this module for their form.

    Parameters
    ----------
    paths : path, or sequence of paths
        Files that must agree wherever they judge the same triple.
    graph : Graph
        Whose labels they use.
    blank : {"error", "N", "?"}
        How to read a label of nothing but spaces. The published files of Zhou et al. leave some
        blank and mean N; in an unfinished sheet, a blank says nothing.

    Raises
    ------
    FileError
        Missing, malformed, a label other than Y, N and ?, labels of entities or relations that the
        graph lacks, or two labels for one triple: all these lines are listed, up to 10.
    UsageError
        No file, or an unknown `blank`.
    """
    choose("blank", blank, BLANKS)
    files = [paths] if isinstance(paths, (str, PathLike)) else list(paths)
    if not files:
        raise UsageError("no judgement file is given; give at least one")
    at: dict[Triple, tuple[int, str]] = {}
    rows = repeated = blanks = 0
    for path in files:
        file = EditedFile(path)
        read = [*file.records(_NEEDED, decoded=text_of_cell)]
        file.refuse_faults()
        if not read:
            raise FileError(path, found="no judgements below the header", hint=file.hint)
        rows += len(read)
        ids = file.triple_ids(graph, read)
        for (line, cells), (head, relation, tail) in zip(read, ids.tolist(), strict=True):
            triple, here = (head, relation, tail), f"{path}:{line}"
            label = cells["label"].strip()
            blanks += not label
            value = _label_of(file, line, label, blank)
            first, place = at.setdefault(triple, (value, here))
            if first != value and min(triple) >= 0:
                shown = " ".join(cells[name] for name in COLUMNS)
                problem = f"{shown!r} is labelled {label or blank!r}, and "
                hint = "ask an adjudicator, and keep one label per triple"
                file.fault(line, f"{problem}otherwise in {place}", hint)
            repeated += place != here
        file.refuse_faults()
    labels = {triple: value for triple, (value, _) in at.items()}
    return Judgements(labels, rows, repeated, blanks)


def _label_of(file: EditedFile, line: int, label: str, blank: str) -> int:
    if not label and blank == "error":
        hint = f"write Y, N or ?, or choose what a blank means: {argument('blank', 'N')} or '?'"
        file.fault(line, "an empty label", hint)
    elif (label or blank) not in LABELS:
        file.fault(line, f"label {label[:_QUOTED]!r}", "write Y, N or ?")
    return LABELS.get(label or blank, -1)
