"""Files that people edit: lines of cells, and all their faults.

Pools, judgements, sheets, templates, names and lists of questions are TSV files: lines end with LF
or CRLF, cells are separated by tabs, and nothing is quoted. Bytes that are not UTF-8 survive as
surrogates. Files may be packed (``.gz``, ``.zst``). A reader collects faults, one per line, and
refuses the file with all of them.

A file of triples has lines like a split, ``head<TAB>relation<TAB>tail`` unless the graph declares
another order; then kgtrec names the columns in a first line when it writes one. A judgement file
has a ``label``, Y, N or ?. It is the fourth and last column, unless a header names ``head``,
``relation``, ``tail`` and ``label``. Below a header, cells are those of a sheet, as `kgtrec judge`
writes them (`kgtrec._internal.table`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from os import PathLike
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from kgtrec._internal.argument_names import argument
from kgtrec._internal.arguments import require_type
from kgtrec._internal.arrays import Int32, Int64, Integers
from kgtrec._internal.files import atomic_write
from kgtrec._internal.table import ShownInLines, text_of_cell
from kgtrec._internal.text import shorten
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
    """A fault of a file: its line (from 1), the problem, and a remedy."""

    line: int
    problem: str
    hint: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.problem}; {self.hint}"


class Faults(FileError):
    """A file with faults: the message lists up to 10 of them by line, ``faults`` contains all."""

    def __init__(self, path: PathName, faults: Iterable[Fault], advice: str = "") -> None:
        self.faults = sorted(faults)
        first = self.faults[0]
        super().__init__(path, first.line, found=first.problem, hint=first.hint)
        if len(self.faults) > 1:
            one_hint = len({fault.hint for fault in self.faults}) == 1
            shown = [
                f"line {fault.line}: {fault.problem}" if one_hint else str(fault)
                for fault in self.faults[:_SHOWN]
            ]
            head = f"{self.path}: {len(self.faults):,} faults" + f"; {first.hint}" * one_hint
            n_further = len(self.faults) - _SHOWN
            rest = [f"and {n_further:,} more{advice}"] if n_further > 0 else []
            self.say("\n  ".join([head + ":", *shown, *rest]))


class EditedFile:
    """The lines of a file, and its faults so far.

    `hint` describes the form of a line; by default it names the columns. The constructor raises
    FileError if the file is missing, empty or not text.
    """

    def __init__(self, path: PathName, hint: str = "") -> None:
        self.path, self.hint = path, hint
        self.faults: list[Fault] = []
        self._first_lines: dict[Hashable, int] = {}
        self._lines = [*self._read_lines()]
        if not self._lines:
            raise FileError(path, found="the file is empty", hint="check that it is the right one")

    def _read_lines(self) -> Iterator[tuple[int, str]]:
        """Yield number and text of every line that is not empty; note empty lines as faults."""
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

    def fault(self, line: int, problem: str, hint: str = "") -> None:
        """Note a fault of a line."""
        self.faults.append(Fault(line, problem, hint or self.hint))

    def below(self, header: Sequence[str]) -> Iterator[tuple[int, dict[str, str]]]:
        """Yield the rows below the first line; FileError if that is not this header."""
        if self.first != [*header]:
            shown, hint = "\t".join(self.first), f"the first line must be {_line(header)}"
            hint += f"; {self.hint}" if self.hint else ""
            raise FileError(self.path, 1, found=f"header {shown[:_QUOTED]!r}", hint=hint)
        return self.rows(header, 1)

    def rows(
        self,
        columns: Sequence[str],
        skip: int = 0,
        decode: Callable[[str], str] = str,
        separator: str | None = "\t",
    ) -> Iterator[tuple[int, dict[str, str]]]:
        """Yield number and cells of every line after the first `skip` lines.

        `decode` converts each cell. Lines that do not have these columns are faults. The separator
        None is any white space.
        """
        self.hint = self.hint or f"each line must be {_line(columns)}"
        for number, text in self._lines[skip:]:
            cells = text.split(separator)
            if "\r" in text:
                problem = f"a carriage return inside {text[:_QUOTED]!r}"
                self.fault(number, problem, "use CR or LF only at the end of lines")
            elif len(cells) == len(columns):
                yield number, dict(zip(columns, map(decode, cells), strict=True))
            else:
                count = "1 column" if len(cells) == 1 else f"{len(cells)} columns"
                self.fault(number, f"{count} instead of {len(columns)}: {text[:_QUOTED]!r}")

    def records(
        self,
        needed: Sequence[str],
        known: Collection[str] = (),
        decode: Callable[[str], str] = str,
    ) -> Iterator[tuple[int, dict[str, str]]]:
        """Yield number and cells of every line with a triple.

        A first line with three of the names head, relation, tail and label is a header. It must
        have the `needed` columns, and may have other columns: those of `known`, or any if `known`
        is empty. Without a header, lines have the needed columns. `decode` converts each cell below
        a header.
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
        for number, cells in self.rows(names, int(headed), decode if headed else str):
            if empty := [name for name in COLUMNS if not cells[name]]:
                every = "every triple needs a head, a relation and a tail"
                self.fault(number, f"an empty {empty[0]}", every)
            else:
                yield number, cells

    def is_new(self, line: int, key: Hashable, shown: str, hint: str) -> bool:
        """Return True if no earlier line has the key; otherwise note a fault."""
        other = self._first_lines.setdefault(key, line)
        if other != line:
            self.fault(line, f"{shown} is also in line {other}", hint)
        return other == line

    def ids(self, labels: Labels, kind: str, rows: Rows, column: str = "") -> Int64:
        """Return the ids of the labels in a column, shape (n,).

        Labels that the graph lacks get the id -1 and are faults, whose text names their `kind`.
        """
        texts = [cells[column or kind] for _, cells in rows]
        ids = labels.positions(arrow_bytes([*map(bytes_of, texts)])).astype(np.int64)
        for row in np.flatnonzero(ids < 0).tolist():
            problem = f"{kind} {texts[row][:_QUOTED]!r} is not in the graph"
            self.fault(rows[row][0], problem, FIT)
        return ids

    def triple_ids(self, graph: Graph, rows: Rows) -> Int64:
        """Return the ids of head, relation and tail of each row, shape (n, 3)."""
        labels = (graph.entities, graph.relations, graph.entities)
        columns = [self.ids(names, name, rows) for names, name in zip(labels, COLUMNS, strict=True)]
        return np.stack(columns, axis=1)

    def refuse_faults(self) -> None:
        """Raise Faults if there are any."""
        if self.faults:
            raise Faults(self.path, self.faults)


def _line(columns: Sequence[str]) -> str:
    """Return the form of a line with these columns, for messages."""
    return shorten("<TAB>".join(columns), 4 * _QUOTED)


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

    def labels_of(self, triples: ArrayLike) -> Int64:
        """Return the label of each triple: 1, 0, -1, or -2 if nobody judged it; shape (n,)."""
        rows = as_triples("triples", triples)
        labels = [self.labels.get((h, r, t), -2) for h, r, t in rows.tolist()]
        return np.array(labels, np.int64)

    def counts(self) -> dict[str, int]:
        """Count the triples with each label: Y, N, ?."""
        values = list(self.labels.values())
        return {name: values.count(value) for name, value in LABELS.items()}


def read_triples(path: PathName, graph: Graph) -> Int32:
    """Read the distinct triples of a file, in its order, as ids of the graph; int32 (n, 3).

    Columns are in the order that the graph declares.
    """
    known, _ = read_known(path, graph, hint=FIT, order=graph.column_order)
    return drop_duplicates(known.facts)


def write_triples(path: PathName, graph: Graph, triples: Integers) -> None:
    """Write triples as lines like a split, ``head<TAB>relation<TAB>tail`` by default.

    If the graph declares another order of columns, the first line names them.
    """
    lines: Iterable[Sequence[str]] = lines_of_triples(graph, triples)
    if graph.column_order != "hrt":
        at = ["hrt".index(letter) for letter in graph.column_order]
        lines = ([line[i] for i in at] for line in chain([COLUMNS], lines))
    write_lines(path, lines)


def lines_of_triples(graph: Graph, triples: Integers) -> Iterable[tuple[str, str, str]]:
    """Return the labels of head, relation and tail of each triple."""
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
    if isinstance(paths, (str, PathLike)):
        paths = [paths]
    require_type("paths", paths, Iterable, "a path or a list of paths")
    files = list(paths)
    if not files:
        raise UsageError("no judgement file is given; give at least one")
    label_and_line: dict[Triple, tuple[int, str]] = {}
    rows = repeated = blanks = 0
    for path in files:
        file = EditedFile(path)
        read = [*file.records(_NEEDED, decode=text_of_cell)]
        file.refuse_faults()
        if not read:
            raise FileError(path, found="no judgements below the header", hint=file.hint)
        rows += len(read)
        ids = file.triple_ids(graph, read)
        for (line, cells), (head, relation, tail) in zip(read, ids.tolist(), strict=True):
            triple, here = (head, relation, tail), f"{path}:{line}"
            label = cells["label"].strip()
            blanks += not label
            value = _parse_label(file, line, label, blank)
            first, earlier = label_and_line.setdefault(triple, (value, here))
            if first != value and min(triple) >= 0:
                shown = " ".join(cells[name] for name in COLUMNS)
                problem = f"{shown!r} is labelled {label or blank!r}, and "
                hint = "ask an adjudicator, and keep one label per triple"
                file.fault(line, f"{problem}otherwise in {earlier}", hint)
            repeated += earlier != here
        file.refuse_faults()
    labels = {triple: value for triple, (value, _) in label_and_line.items()}
    return Judgements(labels, rows, repeated, blanks)


def _parse_label(file: EditedFile, line: int, label: str, blank: str) -> int:
    """Return the number of a label; note a fault if it is unknown, or blank and not allowed."""
    if not label and blank == "error":
        hint = f"write Y, N or ?, or choose what a blank means: {argument('blank', 'N')} or '?'"
        file.fault(line, "an empty label", hint)
    elif (label or blank) not in LABELS:
        file.fault(line, f"label {label[:_QUOTED]!r}", "write Y, N or ?")
    return LABELS.get(label or blank, -1)
