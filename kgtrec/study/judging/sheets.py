"""Judgement sheets: one line per triple, with a question, a label and its evidence.

A sheet is a TSV file with the header ``question head relation tail label evidence note``. Labels
are Y (true), N (false), ? (cannot tell), or blank if nobody has judged yet; spaces around them are
ignored. Files without a header are read as ``head relation tail label``. Below a header, a cell
that a spreadsheet program could take for a formula (it begins with ``= + - @``) has an apostrophe
before it (`kgtrec._internal.table`). Triples are shared out among annotators in an order that
reveals neither systems nor depths.
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
from kgtrec._internal.table import cell_of, text_of_cell
from kgtrec.errors import FileError, PathName, UsageError, refuse_if
from kgtrec.study.judging.questions import Templates
from kgtrec.study.pooling.edited_files import LABELS, EditedFile, Fault, Faults, write_lines
from kgtrec.study.pooling.pool import read_draw

COLUMNS = ("question", "head", "relation", "tail", "label", "evidence", "note")
NEEDED = ("head", "relation", "tail", "label")

Triple = tuple[str, str, str]


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
        """Hash of the triples in their order; labels do not matter."""
        digest = hashlib.blake2b(digest_size=16)
        for item in self.items:
            digest.update("\t".join(item.triple).encode("utf-8", "surrogateescape") + b"\n")
        return digest.hexdigest()


def sheet_counts(items: Iterable[Item]) -> dict[str, int]:
    """How many items have each label: Y, N, ? and "" (blank)."""
    counts = Counter(item.label for item in items)
    return {label: counts[label] for label in (*LABELS, "")}


def read_sheet(path: PathName) -> Sheet:
    """Read a sheet; refuse it with all its faults."""
    sheet, faults = scan_sheet(path)
    if faults:
        raise Faults(path, faults, " (kgtrec judge check lists all of a sheet)")
    return sheet


def scan_sheet(path: PathName) -> tuple[Sheet, list[Fault]]:
    """The readable items of a sheet, and everything that is wrong with it, by line."""
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
        what = repr(" ".join(item.triple))
        if other.label != label:
            labels = f"{label or 'blank'!r} here and {other.label or 'blank'!r} in line"
            problem = f"a contradiction: {what} has label {labels} {other.line}"
            file.fault(number, problem, "keep the correct line")
        elif other is not item:
            problem = f"a duplicate: {what} is also in line {other.line}"
            file.fault(number, problem, "delete one of them")
    if not items and not file.faults:
        file.fault(1, "it has only a header", "fill in the sheet, or leave it out")
    return Sheet(str(path), tuple(items.values())), sorted(file.faults)


def write_sheet(path: PathName, items: Iterable[Item]) -> None:
    """Write a sheet whole or not at all; InputError if a cell has a tab or a line end in it."""
    write_lines(path, [COLUMNS, *(tuple(map(cell_of, item.cells())) for item in items)])


def write_new_sheets(folder: PathName, sheets: Mapping[str, Iterable[Item]]) -> list[str]:
    """Write sheets into a folder, which is created if necessary; return their paths."""
    try:
        make_folder(folder)
    except OSError as error:
        problem = f"the folder cannot be made ({error.strerror})"
        raise FileError(folder, found=problem, hint="choose another place") from None
    paths = {os.path.join(fspath(folder), name): items for name, items in sheets.items()}
    for path in paths:
        _refuse_old(path)
    for path, items in paths.items():
        write_sheet(path, items)
    return list(paths)


def write_new_sheet(path: PathName, items: Iterable[Item]) -> None:
    """Write a sheet, but not over one in which somebody may have judged."""
    _refuse_old(path)
    write_sheet(path, items)


def _refuse_old(path: PathName) -> None:
    for old in (fspath(path), f"{fspath(path)}.journal"):
        if exists(old) and not is_folder(old):
            raise UsageError(
                f"{old} already exists and may have judgements; move it away, or choose another "
                "place"
            )


# --- sharing out ---


class PooledTriple(NamedTuple):
    """A triple that may need a judgement.

    - depth: Smallest depth at which it was pooled; 0 if unknown.
    - rule: The rule that labels it without a judge; "" for none.
    - drawn: Whether it is in the sample to be judged; true if the file has no sample.
    """

    head: str
    relation: str
    tail: str
    depth: int = 0
    rule: str = ""
    drawn: bool = True


def annotator_of(path: PathName) -> str:
    """Whose sheet a file is, by its name: ``anna.tsv``, ``anna.batch2.judged.tsv`` -> ``anna``."""
    stem = re.sub(r"\.(tsv|txt)$", "", Path(path).name)
    return re.sub(r"(\.batch\d+)?(\.judged)?$", "", stem)


def read_pooled(path: PathName) -> list[PooledTriple]:
    """Triples from a pool file, or from any TSV of triples, each once, in file order.

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
            triples.setdefault(triple, PooledTriple(*triple, int(depth), rule, drawn == "in"))
    file.refuse_faults()
    if not triples:
        raise FileError(path, found="the file has no triple", hint="give a file with at least one")
    return list(triples.values())


def to_judge(
    pooled: Sequence[PooledTriple],
    depth: int | None = None,
    done: Collection[Triple] = (),
    by_rule: bool = False,
) -> list[PooledTriple]:
    """Triples to judge: down to a depth, drawn, not judged before, not labelled by a rule."""
    if depth is not None and not any(one.depth for one in pooled):
        raise UsageError(f"{argument('depth')} needs a pool file; these triples have no depths")
    return [
        one
        for one in pooled
        if (depth is None or one.depth <= depth)
        and (by_rule or not one.rule)
        and one.drawn
        and one[:3] not in done
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
    """Distribute triples among annotators: the items of each sheet, by the name of its file.

    `overlap` is the share of the triples that two annotators judge; one annotator judges each of
    the others. A sheet has at most `size` triples. With `by_relation` the relations follow each
    other, each in random order, which is quicker to judge. What an annotator sees, and in which
    order, depends on the set of triples and on the seed, not on the order of the pool. Two
    annotators see their common triples in different orders. Loads differ by at most two triples.
    """
    _check(annotators, overlap, size)
    if len(annotators) == 1:
        overlap = 0.0
    templates.require(one.relation for one in triples)
    items = [
        Item(*one[:3], question=templates.question(*one[:3], names or {}))
        for one in sorted(triples, key=lambda one: one[:3])
    ]
    generator = random_generator(seed)
    order = generator.permutation(len(items)).tolist()
    batches: dict[str, list[Item]] = {}
    for annotator, own in zip(annotators, _shares(order, len(annotators), overlap), strict=True):
        mine = [items[own[i]] for i in generator.permutation(len(own))]
        if by_relation:
            mine = _grouped(mine, generator)
        batches |= _cut(annotator, mine, size)
    return batches


def _check(annotators: Sequence[str], overlap: float, size: int | None) -> None:
    named, text = list(annotators), "the name must work as a file name; use letters, digits"
    refuse_if(
        (not named, "no annotator is given; give at least one"),
        *((named.count(name) > 1, f"two annotators are named {name!r}; give each a different name")
          for name in dict.fromkeys(named)),
        *((not name or name[0] == "." or annotator_of(name) != name or set(name) & set("/\0"),
           f"annotator {name!r}: {text}") for name in named),
        (not 0 <= overlap <= 1, f"overlap {overlap} is not a share; give one from 0 to 1"),
        (size is not None and size < 1, f"the batch size is {size}; give at least 1"),
    )  # fmt: skip


def _shares(order: Sequence[int], n: int, overlap: float) -> list[list[int]]:
    """Items of each annotator; the first part of `order` goes to two, the rest to one."""
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
    """All pairs, repeatedly; at any time the numbers of pairs per person differ by at most two.

    This is the circle method of tournaments: one stays, the others move by one seat per round.
    """
    seats = [*range(n), *([-1] if n % 2 else [])]
    while True:
        for _ in range(max(1, len(seats) - 1)):
            half = len(seats) // 2
            for one, other in zip(seats[:half], reversed(seats[half:]), strict=True):
                if min(one, other) >= 0:
                    yield one, other
            seats = [seats[0], seats[-1], *seats[1:-1]]


def _grouped(items: list[Item], generator: np.random.Generator) -> list[Item]:
    relations = sorted({item.relation for item in items})
    place = dict(zip(relations, generator.permutation(len(relations)).tolist(), strict=True))
    return sorted(items, key=lambda item: place[item.relation])


def _cut(annotator: str, items: list[Item], size: int | None) -> dict[str, list[Item]]:
    """``ANNOTATOR.tsv``, or ``ANNOTATOR.batchN.tsv`` with at most `size` items each."""
    if size is None or size >= len(items):
        return {f"{annotator}.tsv": items}
    starts = enumerate(range(0, len(items), size), start=1)
    return {f"{annotator}.batch{n}.tsv": items[start : start + size] for n, start in starts}
