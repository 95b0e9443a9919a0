"""Judgement sheets: one line per triple, with a question, a label and its evidence.

A sheet is a TSV file with the header ``question head relation tail label evidence note``. Labels
are Y (true), N (false), ? (cannot tell), or blank if nobody has judged yet; spaces around them are
ignored. Files without a header are read as ``head relation tail label``. Below a header, a cell
that a spreadsheet program could take for a formula (it begins with ``= + - @``) has an apostrophe
before it (`kgtrec._internal.table`). `make_batches` distributes triples among annotators, in an
order that reveals neither systems nor depths.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from os import fspath
from pathlib import Path
from typing import NamedTuple

import numpy as np

from kgtrec._internal.argument_names import argument
from kgtrec._internal.arguments import random_generator
from kgtrec._internal.files import make_folder
from kgtrec._internal.locations import exists, is_folder
from kgtrec._internal.system import reason_of
from kgtrec._internal.table import cell_of, text_of_cell
from kgtrec.errors import FileError, PathName, UsageError, refuse_if
from kgtrec.study.judging.questions import Templates
from kgtrec.study.pooling.edited_files import LABELS, EditedFile, Fault, Faults, write_lines
from kgtrec.study.pooling.pool import read_draw

COLUMNS = ("question", "head", "relation", "tail", "label", "evidence", "note")
NEEDED = ("head", "relation", "tail", "label")

Triple = tuple[str, str, str]

_LONGEST_NAME = 200  # bytes; file systems allow 255, with ".batch12.tsv.journal" behind it


@dataclass(frozen=True)
class Item:
    """A triple to judge, with labels as in the graph.

    - question: Question for the annotator; may be empty.
    - label: "Y", "N", "?", or "" if nobody has judged.
    - evidence: Link to the evidence.
    - line: Line in the file; 0 if the item is not from a file.
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
        """Return the cells in the order of the sheet's columns."""
        return tuple(getattr(self, name) for name in COLUMNS)


@dataclass(frozen=True)
class Sheet:
    """The items of a sheet in file order, each triple once."""

    path: str
    items: tuple[Item, ...]

    def __len__(self) -> int:
        return len(self.items)

    @property
    def fingerprint(self) -> str:
        """Hash of the triples in their order; labels do not matter."""
        digest = hashlib.blake2b(digest_size=16)
        for item in self.items:
            digest.update("\t".join(item.triple).encode("utf-8", "surrogateescape") + b"\n")
        return digest.hexdigest()


def sheet_counts(items: Iterable[Item]) -> dict[str, int]:
    """Count the items with each label: Y, N, ? and "" (blank)."""
    counts = Counter(item.label for item in items)
    return {label: counts[label] for label in (*LABELS, "")}


def read_sheet(path: PathName) -> Sheet:
    """Read a sheet; raise Faults, which lists all of them, if it has any."""
    sheet, faults = scan_sheet(path)
    if faults:
        raise Faults(path, faults, " (kgtrec judge check lists all of a sheet)")
    return sheet


def scan_sheet(path: PathName) -> tuple[Sheet, list[Fault]]:
    """Read a sheet; return its valid items, and all its faults sorted by line."""
    file = EditedFile(path)
    items: dict[Triple, Item] = {}
    for number, cells in file.records(NEEDED, COLUMNS, text_of_cell):
        label = cells["label"].strip()
        if label and label not in LABELS:
            hint = "write Y, N or ?, or leave the label blank"
            file.fault(number, f"label {cells['label']!r} is unknown", hint)
            continue
        known = {name: cells[name] for name in COLUMNS if name in cells}
        item = Item(**{**known, "label": label}, line=number)
        other = items.setdefault(item.triple, item)
        shown = repr(" ".join(item.triple))
        if other.label != label:
            labels = f"{label or 'blank'!r} here and {other.label or 'blank'!r} in line"
            problem = f"a contradiction: {shown} has label {labels} {other.line}"
            file.fault(number, problem, "keep the correct line")
        elif other is not item:
            problem = f"a duplicate: {shown} is also in line {other.line}"
            file.fault(number, problem, "delete one of them")
    if not items and not file.faults:
        file.fault(1, "it has only a header", "fill in the sheet, or leave it out")
    return Sheet(str(path), tuple(items.values())), sorted(file.faults)


def read_asked(path: PathName, sheet: PathName) -> Sheet:
    """Read the sheet that an annotator was given to fill in.

    Parameters
    ----------
    path : path
        The unfilled sheet, or the folder of the unfilled sheets, which has it under the name of
        `sheet` without ``.judged``.
    sheet : path
        The filled sheet.

    Raises
    ------
    FileError
        The folder has no such sheet.
    UsageError
        Both are the same file, which would always agree.
    Faults
        The unfilled sheet is malformed.
    """
    source = fspath(path)
    if is_folder(source):
        name = re.sub(r"(\.judged)?\.(tsv|txt)$", "", Path(sheet).name) + ".tsv"
        source = os.path.join(source, name)
        if not exists(source):
            problem = f"the folder has no {name!r}, the unfilled sheet of {fspath(sheet)}"
            hint = f"name filled sheets like these, or name the sheet itself in {argument('asked')}"
            raise FileError(path, found=problem, hint=hint)
    if os.path.realpath(source) == os.path.realpath(sheet):
        raise UsageError(
            f"{fspath(sheet)} would be compared with itself; name the unfilled sheet in "
            f"{argument('asked')}: `kgtrec judge sheets` writes it again from the same pool and "
            "seed"
        )
    return read_sheet(source)


def find_changes(sheet: Sheet, asked: Sheet) -> list[Fault]:
    """List how a filled sheet differs from the unfilled one, apart from answers and their order.

    These are triples that were not asked, questions with another text, and missing triples, which
    have the line of the unfilled sheet. Sorted by line.
    """
    given = {item.triple: item for item in asked.items}
    triples = {item.triple for item in sheet.items}
    if triples.isdisjoint(given):
        problem = f"none of its triples is in {asked.path}"
        return [Fault(1, problem, "compare it with the sheet that it was made from")]
    faults = []
    for item in sheet.items:
        source = given.get(item.triple)
        shown = repr(" ".join(item.triple))
        if source is None:
            problem = f"{shown} is not asked in {asked.path}"
            faults.append(Fault(item.line, problem, "restore the line"))
        elif item.question and source.question and item.question != source.question:
            problem = f"the question of {shown} is {item.question!r}, but was {source.question!r}"
            hint = "restore it, and ask again if the answer is to the other question"
            faults.append(Fault(item.line, problem, hint))
    for item in asked.items:
        if item.triple not in triples:
            problem = f"{' '.join(item.triple)!r} is missing (line {item.line} of {asked.path})"
            faults.append(Fault(item.line, problem, "restore the line"))
    return sorted(faults)


def refuse_changes(sheets: Iterable[PathName], asked: PathName) -> None:
    """Raise Faults if a filled sheet differs from the unfilled one of `read_asked`.

    Answers and the order of lines may differ; see `find_changes`.
    """
    for path in sheets:
        if faults := find_changes(read_sheet(path), read_asked(asked, path)):
            raise Faults(path, faults, " (kgtrec judge check lists all of a sheet)")


def write_sheet(path: PathName, items: Iterable[Item]) -> None:
    """Write a sheet whole or not at all; InputError if a cell has a tab or a line end in it."""
    write_lines(path, [COLUMNS, *(tuple(map(cell_of, item.cells())) for item in items)])


def write_new_sheets(folder: PathName, sheets: Mapping[str, Iterable[Item]]) -> list[str]:
    """Write sheets into a folder, which is created if necessary; return their paths."""
    try:
        make_folder(folder)
    except OSError as error:
        problem = f"the folder cannot be made ({reason_of(error)})"
        raise FileError(folder, found=problem, hint="choose another place") from None
    paths = {os.path.join(fspath(folder), name): items for name, items in sheets.items()}
    for path in paths:
        _refuse_existing(path)
    for path, items in paths.items():
        write_sheet(path, items)
    return list(paths)


def write_new_sheet(path: PathName, items: Iterable[Item]) -> None:
    """Write a sheet; UsageError if a sheet or a journal exists, as it may have judgements."""
    _refuse_existing(path)
    write_sheet(path, items)


def _refuse_existing(path: PathName) -> None:
    """Raise UsageError if a sheet or its journal exists, as it may have judgements."""
    for old in (fspath(path), f"{fspath(path)}.journal"):
        if exists(old) and not is_folder(old):
            raise UsageError(
                f"{old} already exists and may have judgements; move it away, or choose another "
                "place"
            )


# --- Distributing triples ---


class PooledTriple(NamedTuple):
    """A triple that may need a judgement.

    - depth: Smallest depth at which it was pooled; 0 if unknown.
    - rule: Rule that labels it without a judge; "" if none does.
    - drawn: True if the triple is in the sample to be judged, or if the file has no sample.
    - questions: Names of the seed questions that it answers, separated by commas; "" if unknown.
    """

    head: str
    relation: str
    tail: str
    depth: int = 0
    rule: str = ""
    drawn: bool = True
    questions: str = ""


def annotator_of(path: PathName) -> str:
    """Return the annotator in a file's name: ``anna`` for ``anna.batch2.judged.tsv``."""
    stem = re.sub(r"\.(tsv|txt)$", "", Path(path).name)
    return re.sub(r"(\.batch\d+)?(\.judged)?$", "", stem)


def read_pooled(path: PathName) -> list[PooledTriple]:
    """Read triples from a pool file, or from any TSV of triples; each once, in file order.

    The file has a header that names ``head``, ``relation`` and ``tail`` (and ``depth``, ``rule`` or
    a sample, as pool files do; other columns are ignored), or lines ``head relation tail``.
    """
    file = EditedFile(path)
    sample = next((name for name in file.first if read_draw(name)), "")
    triples: dict[Triple, PooledTriple] = {}
    for number, cells in file.records(NEEDED[:3]):
        depth, drawn = cells.get("depth", "0"), cells.get(sample, "in")
        if not (depth.isascii() and depth.isdigit()):
            file.fault(number, f"depth {depth!r}", "write a whole number")
        elif drawn not in ("in", "out"):
            file.fault(number, f"{sample}: {drawn!r}", "write in or out")
        else:
            triple = cells["head"], cells["relation"], cells["tail"]
            rule = cells.get("rule", "").strip()
            in_sample, questions = drawn == "in", cells.get("question", "")
            pooled = PooledTriple(*triple, int(depth), rule, in_sample, questions)
            triples.setdefault(triple, pooled)
    file.refuse_faults()
    if not triples:
        raise FileError(path, found="the file has no triple", hint="give a file with at least one")
    return list(triples.values())


def select_triples_to_judge(
    pooled: Sequence[PooledTriple],
    depth: int | None = None,
    done: Collection[Triple] = (),
    by_rule: bool = False,
    questions: frozenset[str] | None = None,
) -> list[PooledTriple]:
    """Select the triples that need a judgement.

    These are in the sample, not in `done`, and pooled at a depth up to `depth`. Triples that a
    rule labels are left out unless `by_rule`. With `questions`, only triples that answer one of
    these are selected.
    """
    if depth is not None and not any(triple.depth for triple in pooled):
        raise UsageError(f"{argument('depth')} needs a pool file; these triples have no depths")
    return [
        triple
        for triple in pooled
        if (depth is None or triple.depth <= depth)
        and (by_rule or not triple.rule)
        and triple.drawn
        and triple[:3] not in done
        and (questions is None or not questions.isdisjoint(triple.questions.split(",")))
    ]


def make_batches(
    triples: Sequence[PooledTriple],
    templates: Templates,
    names: Mapping[str, str] | None = None,
    *,
    annotators: Sequence[str],
    overlap: float = 1.0,
    size: int | None = None,
    seed: int = 0,
    by_relation: bool = False,
) -> dict[str, list[Item]]:
    """Distribute triples among annotators; return the items of each sheet by file name.

    `overlap` is the share of the triples that two annotators judge; one annotator judges each of
    the others. A sheet has at most `size` triples. With `by_relation`, triples are grouped by
    relation, which is quicker to judge; the order is random within a relation. The sheets depend on
    the set of triples and on the seed, not on the order of the pool. Two annotators see their
    common triples in different orders. Loads differ by at most two triples.
    """
    _check_options(annotators, overlap, size)
    if len(annotators) == 1:
        overlap = 0.0
    templates.require(triple.relation for triple in triples)
    items = [
        Item(*triple[:3], question=templates.question(*triple[:3], names or {}))
        for triple in sorted(triples, key=lambda triple: triple[:3])
    ]
    generator = random_generator(seed)
    order = generator.permutation(len(items)).tolist()
    batches: dict[str, list[Item]] = {}
    for annotator, share in zip(
        annotators, _share_out(order, len(annotators), overlap), strict=True
    ):
        mine = [items[share[i]] for i in generator.permutation(len(share))]
        if by_relation:
            mine = _group_by_relation(mine, generator)
        batches |= _split_into_batches(annotator, mine, size)
    return batches


def _is_file_name(annotator: str) -> bool:
    """Return True if names of sheets can begin with this name on common systems."""
    fits = 0 < len(os.fsencode(annotator)) <= _LONGEST_NAME and not set(annotator) & set("/\0")
    return fits and annotator[0] != "." and annotator_of(annotator) == annotator


def _check_options(annotators: Sequence[str], overlap: float, size: int | None) -> None:
    """Raise UsageError if a name, the overlap or the size is invalid; report all problems."""
    names, text = list(annotators), "the name must work as a file name; use letters, digits"
    refuse_if(
        (not names, "no annotator is given; give at least one"),
        *(
            (
                names.count(name) > 1,
                f"two annotators are named {name!r}; give each a different name",
            )
            for name in dict.fromkeys(names)
        ),
        *((not _is_file_name(name), f"annotator {name!r}: {text}") for name in names),
        (not 0 <= overlap <= 1, f"overlap {overlap} is not a share; give one from 0 to 1"),
        (size is not None and size < 1, f"the batch size is {size}; give at least 1"),
    )


def _share_out(order: Sequence[int], n: int, overlap: float) -> list[list[int]]:
    """Return the items of each of `n` annotators.

    The first `overlap` of `order` goes to two annotators each, the rest to one.
    """
    shares: list[list[int]] = [[] for _ in range(n)]
    common = round(overlap * len(order))
    pairs = _pairs(n)
    for item in order[:common]:
        for annotator in next(pairs):
            shares[annotator].append(item)
    for item in order[common:]:
        min(shares, key=len).append(item)
    return shares


def _pairs(n: int) -> Iterator[tuple[int, int]]:
    """Yield all pairs of `n` people, repeatedly.

    At any time, the numbers of pairs per person differ by at most two. This is the circle method of
    tournaments: one person stays, the others move by one seat per round.
    """
    seats = [*range(n), *([-1] if n % 2 else [])]
    while True:
        for _ in range(max(1, len(seats) - 1)):
            half = len(seats) // 2
            for person, other in zip(seats[:half], reversed(seats[half:]), strict=True):
                if min(person, other) >= 0:
                    yield person, other
            seats = [seats[0], seats[-1], *seats[1:-1]]


def _group_by_relation(items: list[Item], generator: np.random.Generator) -> list[Item]:
    """Sort items by relation, with the relations in random order."""
    relations = sorted({item.relation for item in items})
    rank = dict(zip(relations, generator.permutation(len(relations)).tolist(), strict=True))
    return sorted(items, key=lambda item: rank[item.relation])


def _split_into_batches(
    annotator: str, items: list[Item], size: int | None
) -> dict[str, list[Item]]:
    """Return the items of each sheet of an annotator, by file name.

    The sheet is ``ANNOTATOR.tsv``, or ``ANNOTATOR.batchN.tsv`` with at most `size` items each.
    All numbers have the same length, so that file managers and shells sort them: batch01, batch02.
    """
    if size is None or size >= len(items):
        return {f"{annotator}.tsv": items}
    starts = range(0, len(items), size)
    length = len(str(len(starts)))
    return {
        f"{annotator}.batch{n:0{length}}.tsv": items[start : start + size]
        for n, start in enumerate(starts, start=1)
    }
