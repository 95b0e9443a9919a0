"""Files of triples that studies pass on: seeds, complete splits, and judgements.

A file of triples has lines ``head<TAB>relation<TAB>tail``, as a split. A judgement file has a
``label`` as well, Y, N or ?; either as its fourth and last column, or wherever a header line that
names ``head``, ``relation``, ``tail`` and ``label`` puts it. Below a header cells are those of a
sheet, as `kgtrec judge` writes them (`kgtrec._internal.table`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kgtrec._internal.files import atomic_write
from kgtrec._internal.table import ShownInLines, text_of_cell
from kgtrec.errors import FileError, InputError, UsageError
from kgtrec.graph.id_files import lines_of, read_known, text_of
from kgtrec.graph.triples import COLUMNS, as_triples, checked_ids, drop_duplicates

if TYPE_CHECKING:
    from kgtrec.graph.labels import Labels
    from kgtrec.questions.api import Graph


Ints = NDArray[np.int64]
Path = str | PathLike[str]
Triple = tuple[int, int, int]

LABELS = {"Y": 1, "N": 0, "?": -1}
"""What a judge may say, and what stands for it in numbers."""

BLANKS = ("error", "N", "?")
_SEPARATORS = frozenset("\t\n\r")
_WANTED = "each line must be head<TAB>relation<TAB>tail<TAB>label, the label Y, N or ?"


class Row(NamedTuple):
    """A line of a file with a label.

    - cells: Head, relation and tail.
    - label: Without spaces around it.
    """

    line: int
    cells: tuple[str, str, str]
    label: str


@dataclass(frozen=True, eq=False)
class Judgements(ShownInLines):
    """What judges said of triples.

    - labels: 1 true, 0 false, -1 not to be decided; in the order of the files.
    - rows: Lines that were read.
    - repeated: Lines that say again what a line before had said.
    - blank: Labels that were blank, and taken for what was asked.
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

    def of(self, triples: ArrayLike, absent: int = -2) -> NDArray[np.int64]:
        """Label of each triple: 1, 0, -1, or `absent` where nobody judged; shape (n,)."""
        rows = as_triples("triples", triples)
        labels = [self.labels.get((h, r, t), absent) for h, r, t in rows.tolist()]
        return np.array(labels, np.int64)

    def counts(self) -> dict[str, int]:
        """How many triples have each label: Y, N, ?."""
        values = list(self.labels.values())
        return {name: values.count(value) for name, value in LABELS.items()}


def triple_array(graph: Graph, triples: ArrayLike, name: str = "triples") -> NDArray[np.int32]:
    """Triples by id, checked against the graph; int32 array (n, 3)."""
    return checked_ids(name, as_triples(name, triples), graph.n_entities, graph.n_relations)


def read_triples(path: Path, graph: Graph) -> NDArray[np.int32]:
    """Distinct triples of a file in its order, as ids of the graph; int32 array (n, 3)."""
    rows, _ = read_known(path, graph.entities, graph.relations)
    return drop_duplicates(rows)


def write_triples(path: Path, graph: Graph, triples: NDArray[np.integer]) -> None:
    """Write triples as lines ``head<TAB>relation<TAB>tail``."""
    with atomic_write(path) as out:
        for cells in lines_of_triples(graph, triples):
            out.write("\t".join(cells).encode("utf-8", "surrogateescape") + b"\n")


def lines_of_triples(graph: Graph, triples: NDArray[np.integer]) -> Iterable[tuple[str, str, str]]:
    """Labels of triples, refused where a file of tabs could not hold them."""
    columns = [
        labels[triples[:, column].astype(np.int64)]
        for column, labels in enumerate((graph.entities, graph.relations, graph.entities))
    ]
    for labels in columns:
        bad = next((text for text in labels if _SEPARATORS & set(text)), None)
        if bad is not None:
            raise InputError(f"label {bad!r} has a tab or line end in it; TSV cannot hold it")
    return zip(*columns, strict=True)


def triple_ids(path: Path, graph: Graph, rows: Sequence[tuple[int, Sequence[str]]]) -> Ints:
    """Ids of lines (number, (head, relation, tail, ...)); int64 array (n, 3)."""
    columns = []
    for column, labels in enumerate((graph.entities, graph.relations, graph.entities)):
        names = [cells[column] for _, cells in rows]
        columns.append(label_ids(path, labels, COLUMNS[column], [n for n, _ in rows], names))
    return np.stack(columns, axis=1) if rows else np.empty((0, 3), np.int64)


def label_ids(
    path: Path, labels: Labels, what: str, lines: Sequence[int], names: Sequence[str]
) -> Ints:
    """Ids of labels that stand in lines of a file."""
    import pyarrow as pa

    raw = pa.array([name.encode("utf-8", "surrogateescape") for name in names], pa.large_binary())
    ids = labels.positions(raw)
    bad = np.flatnonzero(ids < 0)
    if len(bad):
        first = int(bad[0])
        more = f", nor are those of {len(bad) - 1:,} more lines" if len(bad) > 1 else ""
        raise FileError(
            path,
            lines[first],
            found=f"{what} {names[first]!r} is not in the graph{more}",
            hint="labels must match the graph's byte for byte",
        )
    return ids


def triple_text(graph: Graph, triple: Sequence[int]) -> str:
    """A triple as people see it, for messages."""
    head, relation, tail = (int(number) for number in triple)
    return f"{graph.entities[head]} {graph.relations[relation]} {graph.entities[tail]}"


# --- judgements -----------------------------------------------------------------------------------


def read_judgements(paths: Path | Sequence[Path], graph: Graph, blank: str = "error") -> Judgements:
    """Read judgement files; see the top of this module for their form.

    Parameters
    ----------
    paths : path, or sequence of paths
        Files that must agree wherever they judge the same triple.
    graph : Graph
        Whose labels they use.
    blank : {"error", "N", "?"}
        What a label of nothing but spaces is taken for. The published files of Zhou et al. leave
        some blank and mean N; in a sheet that somebody still works on, a blank says nothing.

    Raises
    ------
    FileError
        Missing, malformed, a label other than Y, N and ?, labels of entities or relations that the
        graph lacks, or two labels for one triple: the first line is named, and how many more there
        are.
    UsageError
        No file, or an unknown `blank`.
    """
    if blank not in BLANKS:
        raise UsageError(f"blank={blank!r} is unknown; choose one of {', '.join(BLANKS)}")
    files = [paths] if isinstance(paths, (str, PathLike)) else list(paths)
    if not files:
        raise UsageError("no judgement file is given; name at least one")
    labels: dict[Triple, int] = {}
    at: dict[Triple, str] = {}
    rows = repeated = blanks = 0
    for path in files:
        read, empty = _checked_rows(path, blank)
        blanks += empty
        rows += len(read)
        ids = triple_ids(path, graph, [(row.line, row.cells) for row in read])
        clashes: list[tuple[Row, str]] = []
        for row, (head, relation, tail) in zip(read, ids.tolist(), strict=True):
            triple, value, here = (head, relation, tail), LABELS[row.label], f"{path}:{row.line}"
            place = at.setdefault(triple, here)
            if labels.setdefault(triple, value) != value:
                clashes.append((row, place))
            repeated += place != here
        if clashes:
            raise _contradiction(path, clashes)
    return Judgements(labels, rows, repeated, blanks)


def _checked_rows(path: Path, blank: str) -> tuple[list[Row], int]:
    """Lines whose labels are Y, N or ?, blank ones replaced; and how many were blank."""
    read = _labelled_rows(path)
    empty = [row for row in read if not row.label]
    if empty and blank == "error":
        hint = f"{_WANTED}; or say what a blank means: blank='N' or '?' (--blank)"
        raise _fault(path, empty, "an empty label", hint)
    read = [row if row.label else row._replace(label=blank) for row in read]
    wrong = [row for row in read if row.label not in LABELS]
    if wrong:
        raise _fault(path, wrong, f"label {wrong[0].label!r}", "a label is Y, N or ?")
    return read, len(empty)


def _contradiction(path: Path, clashes: list[tuple[Row, str]]) -> FileError:
    first, place = clashes[0]
    problem = f"{' '.join(first.cells)!r} is labelled {first.label!r}, and otherwise in {place}"
    rows = [row for row, _ in clashes]
    return _fault(path, rows, problem, "let an adjudicator decide, and keep one label per triple")


def _fault(path: Path, rows: Sequence[Row], problem: str, hint: str) -> FileError:
    """A FileError of the first row, which says in how many more lines the same is wrong."""
    if len(rows) > 1:
        others = ", ".join(str(row.line) for row in rows[1:6]) + ", ..." * (len(rows) > 6)
        problem += f" (and {len(rows) - 1:,} more such lines: {others})"
    return FileError(path, rows[0].line, found=problem, hint=hint)


def _labelled_rows(path: Path) -> list[Row]:
    """All lines with their labels, whatever these are."""
    rows: list[Row] = []
    places: list[int] | None = None
    width, sheet = 4, False
    for number, raw in lines_of(path):
        cells = text_of(raw).split("\t")
        if places is None:
            places = _header(path, cells)
            if places is not None:
                width, sheet = len(cells), True
                continue
            places = [0, 1, 2, 3]
        if len(cells) != width:
            problem = f"{len(cells)} columns in place of {width}: {text_of(raw)[:120]!r}"
            raise FileError(path, number, found=problem, hint=_WANTED)
        texts = list(map(text_of_cell, cells)) if sheet else cells
        head, relation, tail, label = (texts[place] for place in places)
        if not (head and relation and tail):
            raise FileError(path, number, found=f"an empty name in {text_of(raw)!r}", hint=_WANTED)
        rows.append(Row(number, (head, relation, tail), label.strip()))
    if not rows:
        raise FileError(path, found="no judgement: the file is empty", hint=_WANTED)
    return rows


def _header(path: Path, cells: list[str]) -> list[int] | None:
    """Where head, relation, tail and label stand, if the line names them."""
    names = [cell.strip().lower() for cell in cells]
    needed = (*COLUMNS, "label")
    if not set(needed) <= set(names):
        return None
    twice = [name for name in needed if names.count(name) > 1]
    if twice:
        problem = f"the header names {twice[0]!r} more than once"
        raise FileError(
            path, 1, found=problem, hint="name head, relation, tail and label once each"
        )
    return [names.index(name) for name in needed]
