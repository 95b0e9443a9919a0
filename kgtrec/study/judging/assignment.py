"""Share triples out among annotators, in an order that reveals neither systems nor depths."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import NamedTuple

import numpy as np

from kgtrec.errors import FileError, UsageError
from kgtrec.study.judging.questions import Names, Templates
from kgtrec.study.judging.sheets import Item, Triple
from kgtrec.study.pooling.edited_files import EditedFile
from kgtrec.study.pooling.pool import read_draw


class PooledTriple(NamedTuple):
    """A triple that may need a judgement.

    - depth: Smallest depth at which it was pooled; 0 if the file does not say.
    - rule: The rule that labels it without a judge; "" for none.
    - drawn: Whether it is in the sample to be judged; true if the file has no sample.
    """

    head: str
    relation: str
    tail: str
    depth: int = 0
    rule: str = ""
    drawn: bool = True

    @property
    def triple(self) -> Triple:
        """Head, relation and tail."""
        return self.head, self.relation, self.tail


@dataclass(frozen=True)
class SheetBatch:
    """One sheet for one annotator; `number` counts from 1, and is 0 for an only sheet."""

    annotator: str
    number: int
    items: tuple[Item, ...]

    @property
    def file_name(self) -> str:
        """``ANNOTATOR.tsv`` or ``ANNOTATOR.batchN.tsv``."""
        return f"{self.annotator}{f'.batch{self.number}' if self.number else ''}.tsv"


def annotator_of(path: str | PathLike[str]) -> str:
    """Whose sheet a file is, by its name: ``anna.tsv``, ``anna.batch2.judged.tsv`` -> ``anna``."""
    stem = re.sub(r"\.(tsv|txt)$", "", Path(path).name)
    return re.sub(r"(\.batch\d+)?(\.judged)?$", "", stem)


# --- Reading --------------------------------------------------------------------------------------


def read_pooled(path: str | PathLike[str]) -> list[PooledTriple]:
    """Triples from a pool file, or from any TSV of triples, each once, in file order.

    The file has a header that names ``head``, ``relation`` and ``tail`` (and ``depth``, ``rule`` or
    a sample, as pool files do; other columns are ignored), or lines ``head relation tail``.
    """
    file = EditedFile(path, "")
    names = file.first
    headed = {"head", "relation", "tail"} <= set(names)
    if not headed:
        if len(names) != 3:
            what = "{} columns and no header: {!r}".format(len(names), "\t".join(names)[:80])
            hint = "keep head, relation and tail (cut -f 1-3), or name the columns in a first line"
            raise FileError(path, 1, found=what, hint=hint)
        names = ["head", "relation", "tail"]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise FileError(path, 1, found=f"column {twice!r} is there twice", hint="keep one of them")
    file.hint = f"each line must be {'<TAB>'.join(names)}"
    triples: dict[Triple, PooledTriple] = {}
    sample = next((name for name in names if read_draw(name)), "")
    for number, cells in file.rows(len(names), int(headed)):
        one = dict(zip(names, cells, strict=True))
        triple = one["head"], one["relation"], one["tail"]
        depth, drawn = one.get("depth", "0"), one.get(sample, "in")
        if not all(triple):
            file.fault(number, "an empty name in the triple")
        elif not (depth.isascii() and depth.isdigit()):
            file.fault(number, f"depth {depth!r}", "a depth is a whole number")
        elif drawn not in ("in", "out"):
            file.fault(number, f"{sample}: {drawn!r}", "write in or out")
        else:
            rule = one.get("rule", "").strip()
            triples.setdefault(triple, PooledTriple(*triple, int(depth), rule, drawn == "in"))
    file.refuse_faults()
    if not triples:
        raise FileError(path, found="no triple", hint="give a file with at least one")
    return list(triples.values())


def to_judge(
    pooled: Sequence[PooledTriple],
    depth: int | None = None,
    done: Collection[Triple] = (),
    by_rule: bool = False,
) -> list[PooledTriple]:
    """Those to be judged: down to a depth, drawn, not judged before, not labelled by a rule."""
    if depth is not None and not any(one.depth for one in pooled):
        raise UsageError("--depth needs a pool file; these triples have no depths")
    return [
        one
        for one in pooled
        if (depth is None or one.depth <= depth)
        and (by_rule or not one.rule)
        and one.drawn
        and one.triple not in done
    ]


# --- Sharing out ----------------------------------------------------------------------------------


def make_batches(
    triples: Sequence[PooledTriple],
    templates: Templates,
    names: Names | None = None,
    *,
    annotators: Sequence[str],
    overlap: float = 1.0,
    size: int | None = None,
    seed: int = 0,
    by_relation: bool = False,
) -> list[SheetBatch]:
    """Share triples out among annotators.

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
    names = names or Names()
    items = [
        Item(*one.triple, question=templates.question(*one.triple, names))
        for one in sorted(triples, key=lambda one: one.triple)
    ]
    generator = np.random.default_rng(seed)
    order = generator.permutation(len(items)).tolist()
    batches: list[SheetBatch] = []
    for annotator, own in zip(annotators, _shares(order, len(annotators), overlap), strict=True):
        mine = [items[own[i]] for i in generator.permutation(len(own))]
        if by_relation:
            mine = _grouped(mine, generator)
        batches += _cut(annotator, mine, size)
    return batches


def _check(annotators: Sequence[str], overlap: float, size: int | None) -> None:
    if not annotators:
        raise UsageError("no annotator; name at least one")
    twice = next((name for name in annotators if list(annotators).count(name) > 1), None)
    if twice is not None:
        raise UsageError(f"two annotators are named {twice!r}; give each a name of its own")
    for name in annotators:
        if not name or name.startswith(".") or annotator_of(name) != name or set(name) & set("/\0"):
            raise UsageError(f"annotator {name!r}: the name becomes a file's; use letters, digits")
    if not 0 <= overlap <= 1:
        raise UsageError(f"overlap {overlap} is not a share; take one from 0 to 1")
    if size is not None and size < 1:
        raise UsageError(f"a batch of {size} triples; take at least 1")


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


def _cut(annotator: str, items: list[Item], size: int | None) -> list[SheetBatch]:
    if size is None or size >= len(items):
        return [SheetBatch(annotator, 0, tuple(items))]
    parts = [items[start : start + size] for start in range(0, len(items), size)]
    return [
        SheetBatch(annotator, number, tuple(part)) for number, part in enumerate(parts, start=1)
    ]
