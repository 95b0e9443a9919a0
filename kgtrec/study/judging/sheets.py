"""Judgement sheets: a line per triple, with a question, and room for a label and its evidence.

A sheet is a TSV file with the header ``question head relation tail label evidence note``. Labels
are Y (true), N (false), ? (cannot tell), or blank where nobody has judged yet; spaces around them
do not count. Files without a header are read as ``head relation tail label``. There is no quoting,
but below a header a cell that a spreadsheet program could take for a formula (``= + - @`` first)
has an apostrophe before it (`kgtrec._internal.table`). Everything that is wrong with a file that
people edit is reported at once, each fault with its line.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike, fspath
from typing import NamedTuple

from kgtrec._internal.files import atomic_write, make_folder
from kgtrec._internal.locations import exists, is_folder, read_bytes
from kgtrec._internal.table import cell_of, text_of_cell
from kgtrec.errors import FileError, InputError, UsageError
from kgtrec.study.pooling.triple_files import LABELS

COLUMNS = ("question", "head", "relation", "tail", "label", "evidence", "note")
NEEDED = ("head", "relation", "tail", "label")

Triple = tuple[str, str, str]

_LABEL_HINT = "write Y, N or ?, or leave it blank"
_SHOWN = 10  # faults in a message


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


def text_lines(path: str | PathLike[str]) -> list[str]:
    """Lines of a text file without their ends (LF or CRLF); blank ones at the end are dropped.

    A byte-order mark is dropped, too; bytes that are no UTF-8 survive as surrogates.
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
    text = raw.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "surrogateescape")
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    while lines and not lines[-1]:
        lines.pop()
    if not lines:
        raise FileError(path, found="the file is empty", hint="check that it is the right one")
    return lines


def lines_with_faults(
    lines: Sequence[str], faults: list[Fault], width: int, hint: str, start: int = 1
) -> Iterator[tuple[int, list[str]]]:
    """Number and cells of every line of `width` columns; of the others, faults."""
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


@dataclass(frozen=True)
class Item:
    """A triple to judge.

    Attributes
    ----------
    head, relation, tail : str
        Labels as the graph has them.
    question : str
        What the annotator is asked; may be empty.
    label : str
        "Y", "N", "?", or "" where nobody has judged.
    evidence : str
        Link to what shows it.
    note : str
    line : int
        Where it stood in its file, 0 for none.
    """

    head: str
    relation: str
    tail: str
    question: str = ""
    label: str = ""
    evidence: str = ""
    note: str = ""
    line: int = field(default=0, compare=False)

    @property
    def triple(self) -> Triple:
        """Head, relation and tail."""
        return self.head, self.relation, self.tail

    def cells(self) -> tuple[str, ...]:
        """In the order of the sheet's columns."""
        return tuple(getattr(self, name) for name in COLUMNS)


@dataclass(frozen=True)
class Sheet:
    """A sheet that was read, or is to be written.

    Attributes
    ----------
    path : str
    items : tuple of Item
        In file order; no triple twice.
    """

    path: str
    items: tuple[Item, ...]

    def __len__(self) -> int:
        return len(self.items)

    @property
    def fingerprint(self) -> str:
        """Hash of the triples in their order, whatever the labels are."""
        digest = hashlib.blake2b(digest_size=16)
        for item in self.items:
            digest.update("\t".join(item.triple).encode("utf-8", "surrogateescape") + b"\n")
        return digest.hexdigest()

    def with_items(self, items: Iterable[Item]) -> Sheet:
        """The same sheet with other items."""
        return replace(self, items=tuple(items))


def sheet_counts(items: Iterable[Item]) -> dict[str, int]:
    """How many items have each label: Y, N, ? and "" (blank)."""
    counts = {**dict.fromkeys(LABELS, 0), "": 0}
    for item in items:
        counts[item.label] += 1
    return counts


def read_sheet(path: str | PathLike[str], blank: str = "") -> Sheet:
    """Read a sheet and refuse it if anything is wrong with it.

    Parameters
    ----------
    path : str or path-like
    blank : {"", "N", "?"}
        What a blank label is taken for. Zhou et al. left some blank and meant N.

    Raises
    ------
    Faults
        A FileError that lists, line by line, labels other than Y, N and ?, a triple twice
        (duplicates, and contradictions where the labels differ), and malformed lines.
    FileError
        Missing, empty, or no text.
    """
    sheet, faults = scan_sheet(path, blank)
    if faults:
        raise Faults(path, faults)
    return sheet


def scan_sheet(path: str | PathLike[str], blank: str = "") -> tuple[Sheet, list[Fault]]:
    """What can be read of a sheet, and everything that is wrong with it, by line.

    Raises
    ------
    FileError
        Missing, empty, or no text.
    """
    lines = text_lines(path)
    faults: list[Fault] = []
    header = _header(lines[0])
    names = header or list(NEEDED)
    if header:
        faults += _header_faults(names)
    items: list[Item] = []
    if not {name for name in NEEDED if names.count(name) != 1}:
        hint = f"each line must be {'<TAB>'.join(names)}"
        start = 2 if header else 1
        for number, cells in lines_with_faults(lines[start - 1 :], faults, len(names), hint,
                                               start):  # fmt: skip
            texts = map(text_of_cell, cells) if header else cells
            _add(items, faults, number, dict(zip(names, texts, strict=True)), blank)
    if not items and not faults:
        faults.append(Fault(1, "nothing but a header", "fill the sheet, or leave it out"))
    distinct = _once(items, faults)
    return Sheet(str(path), tuple(distinct)), sorted(faults)


def _header(line: str) -> list[str] | None:
    names = [name.strip().lower() for name in line.split("\t")]
    return names if {"head", "relation", "tail"} <= set(names) or "label" in names else None


def _header_faults(names: Sequence[str]) -> list[Fault]:
    hint = f"the header is {' '.join(COLUMNS)}, with tabs between"
    faults = [Fault(1, f"column {name!r} is missing", hint) for name in NEEDED if name not in names]
    for name in dict.fromkeys(names):
        if name not in COLUMNS:
            faults.append(Fault(1, f"column {name!r} is unknown", hint))
        elif names.count(name) > 1:
            faults.append(Fault(1, f"column {name!r} stands twice", hint))
    return faults


def _add(
    items: list[Item], faults: list[Fault], number: int, cells: dict[str, str], blank: str
) -> None:
    label = cells["label"].strip() or blank
    empty = [name for name in ("head", "relation", "tail") if not cells[name]]
    if empty:
        faults.append(Fault(number, f"an empty {empty[0]}", "every triple needs all three"))
    if label not in LABELS and label:
        faults.append(Fault(number, f"label {cells['label']!r} is unknown", _LABEL_HINT))
    elif not empty:
        known = {name: cells[name] for name in COLUMNS if name in cells}
        items.append(Item(**{**known, "label": label}, line=number))


def _once(items: Sequence[Item], faults: list[Fault]) -> list[Item]:
    """Every triple once; the others are faults."""
    first: dict[Triple, Item] = {}
    for item in items:
        other = first.setdefault(item.triple, item)
        if other is item:
            continue
        what = f"{' '.join(item.triple)!r}"
        if other.label == item.label:
            problem = f"a duplicate: {what} stands in line {other.line} too"
            faults.append(Fault(item.line, problem, "delete one of them"))
        else:
            labels = f"{item.label or 'blank'!r} here and {other.label or 'blank'!r} in line"
            problem = f"a contradiction: {what} is {labels} {other.line}"
            faults.append(Fault(item.line, problem, "keep the right one"))
    return list(first.values())


def write_sheet(path: str | PathLike[str], items: Iterable[Item]) -> None:
    """Write a sheet whole or not at all.

    Raises
    ------
    InputError
        A cell has a tab or a line end in it.
    FileError
        The target cannot be written.
    """
    rows = ["\t".join(COLUMNS)]
    for item in items:
        cells = item.cells()
        bad = next((cell for cell in cells if set(cell) & set("\t\r\n")), None)
        if bad is not None:
            raise InputError(f"{bad!r} has a tab or line end in it; a sheet cannot hold it")
        rows.append("\t".join(map(cell_of, cells)))
    with atomic_write(path) as out:
        out.write("".join(f"{row}\n" for row in rows).encode("utf-8", "surrogateescape"))


def write_new_sheets(
    folder: str | PathLike[str], sheets: Mapping[str, Iterable[Item]]
) -> list[str]:
    """Write sheets into a folder, which is made if need be; their paths."""
    try:
        make_folder(folder)
    except OSError as error:
        problem = f"no folder can be made here ({error.strerror})"
        raise FileError(folder, found=problem, hint="choose another place") from None
    paths = {os.path.join(fspath(folder), name): items for name, items in sheets.items()}
    for path in paths:
        _refuse_old(path)
    for path, items in paths.items():
        write_sheet(path, items)
    return list(paths)


def write_new_sheet(path: str | PathLike[str], items: Iterable[Item]) -> None:
    """Write a sheet, but not over one in which somebody may have judged."""
    _refuse_old(path)
    write_sheet(path, items)


def _refuse_old(path: str | PathLike[str]) -> None:
    for old in (fspath(path), f"{fspath(path)}.journal"):
        if exists(old) and not is_folder(old):
            raise UsageError(
                f"{old} is there already, and somebody may have judged in it; move it away or "
                "choose another place"
            )
