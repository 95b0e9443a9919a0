"""Pool files: a header, then a line per pooled triple.

The columns are ``head relation tail side question depth systems rule``: side head, tail or both;
question the names of the seed questions that it answers, head before tail, whichever of them
brought it; depth the smallest at which the triple is pooled; systems as ``name:place,name:place``;
rule the one that labels the triple false without a judge, or nothing. If a sample was drawn to be
judged, a ninth column, named ``sample=0.3,seed=1`` after the draw, says ``in`` or ``out``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from os import PathLike
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from kgtrec._internal.atomic_file import atomic_write
from kgtrec.errors import FileError, InputError, UsageError
from kgtrec.graph.id_files import lines_of, text_of
from kgtrec.study.pooling.judged_sample import Draw, read_draw
from kgtrec.study.pooling.pool import Pool
from kgtrec.study.pooling.seed_questions import Key, question_key
from kgtrec.study.pooling.triple_files import lines_of_triples, triple_ids

if TYPE_CHECKING:
    from kgtrec.questions.api import Graph

__all__ = ["COLUMNS", "read_pool", "write_pool"]

Path = str | PathLike[str]
Ints = npt.NDArray[np.int64]

COLUMNS = ("head", "relation", "tail", "side", "question", "depth", "systems", "rule")
ASKED = {"head": (True, False), "tail": (False, True), "both": (True, True)}
_HINT = "give a file that `kgtrec pool` wrote, and leave its columns as they are"


_DRAWN = ("out", "in")


class _Line(NamedTuple):
    number: int
    cells: list[str]
    places: dict[str, int]


def write_pool(path: Path, pool: Pool, rules: Sequence[str] | None = None) -> None:
    """Write a pool, with the rule of every triple if rules were tried.

    Raises
    ------
    FileError
        The target cannot be written.
    InputError
        A label has a tab or line end in it, or a system's name a separator.
    UsageError
        As many rules as triples are needed.
    """
    if rules is not None and len(rules) != len(pool):
        raise UsageError(f"{len(rules)} rules for {len(pool)} triples; give one for each")
    bad = next((name for name in pool.systems if not name or set(name) & set(",\t\r\n")), None)
    if bad is not None:
        raise InputError(f"a pool file cannot hold the system's name {bad!r}; take another")
    with atomic_write(path) as out:
        names = COLUMNS if pool.draw is None else (*COLUMNS, str(pool.draw))
        out.write("\t".join(names).encode() + b"\n")
        for cells in _cells(pool, rules or [""] * len(pool)):
            out.write("\t".join(cells).encode("utf-8", "surrogateescape") + b"\n")


def _cells(pool: Pool, rules: Sequence[str]) -> Iterable[tuple[str, ...]]:
    rows = zip(
        lines_of_triples(pool.graph, pool.triples),
        pool.sides,
        pool.questions,
        pool.smallest.tolist(),
        pool.places.tolist(),
        rules,
        pool.drawn.tolist(),
        strict=True,
    )
    for triple, side, question, depth, places, rule, drawn in rows:
        named = zip(pool.systems, places, strict=True)
        systems = ",".join(f"{name}:{place}" for name, place in named if place)
        more = () if pool.draw is None else (_DRAWN[drawn],)
        yield *triple, side, question, str(depth), systems, rule, *more


def read_pool(path: Path, graph: Graph) -> tuple[Pool, list[str]]:
    """A pool from its file, and the rule of every triple ("": none).

    Systems stand in byte order of their names. The pool's depth is the largest place in the file.
    Version 0.1 named only the questions that asked; the other question of a triple is added if any
    line names it.

    Raises
    ------
    FileError
        Missing, empty, another header, a malformed line, labels that the graph lacks, a triple
        twice, or one that is not in the sample as the draw says: the line is named.
    """
    draw, lines = _lines(path)
    _check_drawn(path, draw, lines)
    ids = triple_ids(path, graph, [(line.number, line.cells) for line in lines])
    _, first, again = np.unique(ids, axis=0, return_index=True, return_inverse=True)
    repeats = np.flatnonzero(first[again.reshape(-1)] != np.arange(len(ids)))
    if len(repeats):
        line = lines[int(repeats[0])]
        before = lines[int(first[again.reshape(-1)[repeats[0]]])].number
        problem = f"{' '.join(line.cells[:3])!r} again (line {before} has it)"
        raise FileError(path, line.number, found=problem, hint="keep one of the lines")
    systems = sorted({name for line in lines for name in line.places})
    places = np.zeros((len(lines), len(systems)), np.int64)
    for row, line in enumerate(lines):
        for name, place in line.places.items():
            places[row, systems.index(name)] = place
    pool = Pool(
        graph=graph,
        systems=tuple(systems),
        depth=int(places.max()),
        triples=ids,
        places=places,
        asked=np.array([ASKED[line.cells[3]] for line in lines], bool),
        questions=_with_mirrors(ids, lines),
        draw=draw,
    )
    return pool, [line.cells[7] for line in lines]


def _with_mirrors(triples: Ints, lines: Sequence[_Line]) -> list[str]:
    """Names of all questions of each triple that are named anywhere in the file."""
    names: dict[Key, str] = {}
    keys = [(question_key(triple, 0), question_key(triple, 1)) for triple in triples.tolist()]
    for (head, tail), line in zip(keys, lines, strict=True):
        parts = line.cells[4].split(",")
        at = (head, tail) if len(parts) == 2 else (tail if line.cells[3] == "tail" else head,)
        names.update(zip(at, parts, strict=True))
    return [",".join(names[key] for key in pair if key in names) for pair in keys]


def _lines(path: Path) -> tuple[Draw | None, list[_Line]]:
    lines: list[_Line] = []
    draw: Draw | None = None
    width = 0
    for number, raw in lines_of(path):
        cells = text_of(raw).split("\t")
        if not width:
            width = len(cells)
            draw = read_draw(cells[-1]) if width == len(COLUMNS) + 1 else None
            if tuple(cells[: width - (draw is not None)]) != COLUMNS:
                shown = text_of(raw)[:120]
                expected = f"the first line must be {'<TAB>'.join(COLUMNS)}"
                raise FileError(
                    path, number, found=f"header {shown!r}", hint=f"{expected}; {_HINT}"
                )
            continue
        lines.append(_Line(number, cells, _checked(path, number, cells, width)))
    if not lines:
        raise FileError(path, found="no pooled triple", hint=_HINT)
    return draw, lines


def _check_drawn(path: Path, draw: Draw | None, lines: Sequence[_Line]) -> None:
    if draw is None:
        return
    takes = draw.takes((line.cells[0], line.cells[1], line.cells[2]) for line in lines)
    for line, drawn in zip(lines, takes.tolist(), strict=True):
        if line.cells[8] != _DRAWN[drawn]:
            problem = f"{line.cells[8]!r} where the draw {draw} says {_DRAWN[drawn]!r}"
            raise FileError(path, line.number, found=problem, hint=_HINT)


def _checked(path: Path, number: int, cells: list[str], width: int) -> dict[str, int]:
    """Places by system, after checking the line."""
    if len(cells) != width:
        problem = f"{len(cells)} columns in place of {width}: {' '.join(cells)[:120]!r}"
        raise FileError(path, number, found=problem, hint=_HINT)
    if cells[3] not in ASKED:
        problem = f"side {cells[3]!r}, which is none of {', '.join(ASKED)}"
        raise FileError(path, number, found=problem, hint=_HINT)
    if cells[4].count(",") != 1 and (cells[4].count(",") or cells[3] == "both"):
        problem = f"questions {cells[4]!r} beside side {cells[3]!r}: one or two names, two for both"
        raise FileError(path, number, found=problem, hint=_HINT)
    places: dict[str, int] = {}
    for part in cells[6].split(","):
        name, _, digits = part.rpartition(":")
        if not name or not digits.isascii() or not digits.isdigit() or name in places:
            problem = f"systems {cells[6]!r}, where name:place,name:place belongs"
            raise FileError(path, number, found=problem, hint=_HINT)
        places[name] = int(digits)
    if min(places.values()) < 1 or cells[5] != str(min(places.values())):
        problem = f"depth {cells[5]!r} beside systems {cells[6]!r}, whose smallest place it must be"
        raise FileError(path, number, found=problem, hint=_HINT)
    return places
