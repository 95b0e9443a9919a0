"""Triples shared out among annotators, in an order that tells nothing of systems or depths."""

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
from kgtrec.study.judging.sheets import (
    Fault,
    Faults,
    Item,
    Triple,
    lines_with_faults,
    text_lines,
)
from kgtrec.study.pooling.pool import read_draw


class PooledTriple(NamedTuple):
    """A triple that may need a judgement.

    Attributes
    ----------
    head, relation, tail : str
    depth : int
        Smallest depth at which it was pooled; 0 where the file does not say.
    rule : str
        The rule that labels it without a judge; "" for none.
    drawn : bool
        Whether it is in the sample that is to be judged; true where the file has no sample.
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
    """What one annotator is to judge in one go.

    Attributes
    ----------
    annotator : str
    number : int
        From 1; 0 where the annotator has all in one.
    items : tuple of Item
    """

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

    Parameters
    ----------
    path : str or path-like
        With a header that names ``head``, ``relation`` and ``tail`` (and ``depth`` and ``rule``, or
        a sample, as pool files do; other columns are passed over), or with lines ``head relation
        tail``.

    Raises
    ------
    Faults
        A FileError that lists malformed lines, empty names, and depths that are none.
    FileError
        Missing, empty, or no text.
    """
    lines = text_lines(path)
    names = lines[0].split("\t")
    named = {"head", "relation", "tail"} <= set(names)
    if not named:
        if len(names) != 3:
            what = f"{len(names)} columns and no header: {lines[0][:80]!r}"
            hint = "keep head, relation and tail (cut -f 1-3), or name the columns in a first line"
            raise FileError(path, 1, found=what, hint=hint)
        names = ["head", "relation", "tail"]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise FileError(path, 1, found=f"column {twice!r} stands twice", hint="keep one of them")
    faults: list[Fault] = []
    triples: dict[Triple, PooledTriple] = {}
    line_format = f"each line must be {'<TAB>'.join(names)}"
    start = 1 + named
    sample = next((name for name in names if read_draw(name)), "")
    for number, cells in lines_with_faults(lines[named:], faults, len(names), line_format, start):
        one = dict(zip(names, cells, strict=True))
        depth = one.get("depth", "0")
        if not (one["head"] and one["relation"] and one["tail"]):
            faults.append(Fault(number, "an empty name in the triple", line_format))
        elif not (depth.isascii() and depth.isdigit()):
            faults.append(Fault(number, f"depth {depth!r}", "a depth is a whole number"))
        elif one.get(sample, "in") not in ("in", "out"):
            faults.append(Fault(number, f"{sample}: {one[sample]!r}", "write in or out"))
        else:
            triple = one["head"], one["relation"], one["tail"]
            drawn = one.get(sample) != "out"
            rule = one.get("rule", "").strip()
            triples.setdefault(triple, PooledTriple(*triple, int(depth), rule, drawn))
    if faults:
        raise Faults(path, faults)
    if not triples:
        raise FileError(path, found="no triple", hint="give a file with at least one")
    return list(triples.values())


def to_judge(
    pooled: Sequence[PooledTriple],
    depth: int | None = None,
    done: Collection[Triple] = (),
    by_rule: bool = False,
) -> list[PooledTriple]:
    """Those that need a judge: down to a depth, drawn, not done before, not labelled by a rule."""
    if depth is not None and not any(one.depth for one in pooled):
        raise UsageError("a depth is asked for, but these triples carry none; give a pool file")
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

    What an annotator sees, and in which order, depends on the set of triples and on the seed, not
    on the order of the pool. Two annotators have their common triples in different orders. Loads
    differ by at most two triples.

    Parameters
    ----------
    triples : sequence of PooledTriple
        Each once.
    templates : Templates
        With a question for each of their relations.
    names : Names, optional
        Labels stand for entities without a name.
    annotators : sequence of str
        Names, which become names of files.
    overlap : float
        Share of the triples, from 0 to 1, that two annotators judge; the others go to one. With a
        single annotator there is none.
    size : int, optional
        Triples in a batch; all in one by default.
    seed : int
        Of the orders.
    by_relation : bool
        Relation after relation, each in random order: quicker to judge.

    Raises
    ------
    UsageError
        No annotators, two of one name, names that no file can have, a share beyond 0 to 1, or a
        size below 1.
    InputError
        A relation without a template.
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
    """All pairs, over and over, so that everybody is in as many at any time (but for two).

    The circle method of tournaments: one stays, the others move on by one seat in every round.
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
