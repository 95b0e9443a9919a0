"""Judgement sheets: one line per triple, with a question, a label and its evidence.

A sheet is a TSV file with the header ``question head relation tail label evidence note``. Labels
are Y (true), N (false), ? (cannot tell), or blank if nobody has judged yet; spaces around them are
ignored. Files without a header are read as ``head relation tail label``. Below a header, a cell
that a spreadsheet program could take for a formula (it begins with ``= + - @``) has an apostrophe
before it (`kgtrec._internal.table`).
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from os import PathLike, fspath

from kgtrec._internal.files import make_folder
from kgtrec._internal.locations import exists, is_folder
from kgtrec._internal.table import cell_of, text_of_cell
from kgtrec.errors import FileError, UsageError
from kgtrec.study.pooling.edited_files import EditedFile, Fault, write_lines
from kgtrec.study.pooling.triple_files import LABELS

COLUMNS = ("question", "head", "relation", "tail", "label", "evidence", "note")
NEEDED = ("head", "relation", "tail", "label")

Triple = tuple[str, str, str]

_LABEL_HINT = "write Y, N or ?, or leave it blank"


@dataclass(frozen=True)
class Item:
    """A triple to judge, with labels as in the graph.

    - question: What the annotator is asked; may be empty.
    - label: "Y", "N", "?", or "" if nobody has judged.
    - evidence: A link to the evidence.
    - line: Its line in the file, 0 for none.
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
    """The items of a sheet in file order; no triple twice."""

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
    """Read a sheet, with another label for blank ones; refuse it with all its faults."""
    sheet, file = _scanned(path, blank)
    file.refuse_faults(" (kgtrec judge check lists all of a sheet)")
    return sheet


def scan_sheet(path: str | PathLike[str]) -> tuple[Sheet, list[Fault]]:
    """The readable items of a sheet, and everything that is wrong with it, by line."""
    sheet, file = _scanned(path, "")
    return sheet, sorted(file.faults)


def _scanned(path: str | PathLike[str], blank: str) -> tuple[Sheet, EditedFile]:
    file = EditedFile(path, "")
    names = [name.strip().lower() for name in file.first]
    headed = {"head", "relation", "tail"} <= set(names) or "label" in names
    if headed:
        _check_header(file, names)
    else:
        names = list(NEEDED)
    file.hint = f"each line must be {'<TAB>'.join(names)}"
    items: dict[Triple, Item] = {}
    if all(names.count(name) == 1 for name in NEEDED):
        for number, cells in file.rows(len(names), int(headed)):
            texts = map(text_of_cell, cells) if headed else cells
            _add(items, file, number, dict(zip(names, texts, strict=True)), blank)
    if not items and not file.faults:
        file.fault(1, "nothing but a header", "fill the sheet, or leave it out")
    return Sheet(str(path), tuple(items.values())), file


def _check_header(file: EditedFile, names: list[str]) -> None:
    hint = f"the header is {' '.join(COLUMNS)}, with tabs between"
    for name in NEEDED:
        if name not in names:
            file.fault(1, f"column {name!r} is missing", hint)
    for name in dict.fromkeys(names):
        if name not in COLUMNS:
            file.fault(1, f"column {name!r} is unknown", hint)
        elif names.count(name) > 1:
            file.fault(1, f"column {name!r} is there twice", hint)


def _add(
    items: dict[Triple, Item], file: EditedFile, number: int, cells: dict[str, str], blank: str
) -> None:
    """Add an item to those of the lines before, or note what is wrong with its line."""
    label = cells["label"].strip() or blank
    empty = [name for name in ("head", "relation", "tail") if not cells[name]]
    if empty:
        file.fault(number, f"an empty {empty[0]}", "every triple needs all three")
    if label and label not in LABELS:
        file.fault(number, f"label {cells['label']!r} is unknown", _LABEL_HINT)
    elif not empty:
        known = {name: cells[name] for name in COLUMNS if name in cells}
        item = Item(**{**known, "label": label}, line=number)
        other = items.setdefault(item.triple, item)
        what = f"{' '.join(item.triple)!r}"
        if other is item:
            return
        if other.label == label:
            problem = f"a duplicate: {what} is in line {other.line} too"
            file.fault(number, problem, "delete one of them")
        else:
            labels = f"{label or 'blank'!r} here and {other.label or 'blank'!r} in line"
            file.fault(number, f"a contradiction: {what} is {labels} {other.line}",
                       "keep the right one")  # fmt: skip


def write_sheet(path: str | PathLike[str], items: Iterable[Item]) -> None:
    """Write a sheet whole or not at all; InputError if a cell has a tab or a line end in it."""
    write_lines(path, [COLUMNS, *(tuple(map(cell_of, item.cells())) for item in items)])


def write_new_sheets(
    folder: str | PathLike[str], sheets: Mapping[str, Iterable[Item]]
) -> list[str]:
    """Write sheets into a folder, which is created if necessary; their paths."""
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
                f"{old} is there already, and somebody may have judged in it; move it away, or "
                "choose another place"
            )
