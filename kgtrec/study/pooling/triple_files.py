"""Files of triples that studies pass on: seeds, complete splits, and judgements.

A file of triples has lines ``head<TAB>relation<TAB>tail``, as a split. A judgement file also has a
``label``, Y, N or ?. It is the fourth and last column, unless a header names ``head``,
``relation``, ``tail`` and ``label``. Below a header, cells are those of a sheet, as `kgtrec judge`
writes them (`kgtrec._internal.table`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kgtrec._internal.table import ShownInLines, text_of_cell
from kgtrec.errors import FileError, UsageError
from kgtrec.graph.id_files import read_known
from kgtrec.graph.triples import COLUMNS, as_triples, checked_ids, drop_duplicates
from kgtrec.study.pooling.edited_files import EditedFile, write_lines

if TYPE_CHECKING:
    from kgtrec.questions.api import Graph

Path = str | PathLike[str]
Triple = tuple[int, int, int]

LABELS = {"Y": 1, "N": 0, "?": -1}
"""The labels of judges and their numbers."""

BLANKS = ("error", "N", "?")
_NEEDED = (*COLUMNS, "label")
_LINE = "each line must be head<TAB>relation<TAB>tail<TAB>label, the label Y, N or ?"


@dataclass(frozen=True, eq=False)
class Judgements(ShownInLines):
    """What judges said of triples.

    - labels: 1 true, 0 false, -1 undecided; in the order of the files.
    - rows: Number of lines.
    - repeated: Lines that repeat what an earlier line says.
    - blank: Blank labels, which were replaced.
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
    write_lines(path, lines_of_triples(graph, triples))


def lines_of_triples(graph: Graph, triples: NDArray[np.integer]) -> Iterable[tuple[str, str, str]]:
    """Labels of triples."""
    columns = [
        labels[triples[:, column].astype(np.int64)]
        for column, labels in enumerate((graph.entities, graph.relations, graph.entities))
    ]
    return zip(*columns, strict=True)


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
    if blank not in BLANKS:
        raise UsageError(f"blank={blank!r} is unknown; choose one of {', '.join(BLANKS)}")
    files = [paths] if isinstance(paths, (str, PathLike)) else list(paths)
    if not files:
        raise UsageError("no judgement file is given; name at least one")
    labels: dict[Triple, int] = {}
    at: dict[Triple, str] = {}
    rows = repeated = blanks = 0
    for path in files:
        file = EditedFile(path, _LINE)
        read = _labelled_rows(file)
        file.refuse_faults()
        rows += len(read)
        blanks += sum(not cells[3] for _, cells in read)
        ids = file.triple_ids(graph, read)
        for (line, cells), (head, relation, tail) in zip(read, ids.tolist(), strict=True):
            triple, here = (head, relation, tail), f"{path}:{line}"
            value = _label_of(file, line, cells[3], blank)
            place = at.setdefault(triple, here)
            if min(triple) >= 0 and labels.setdefault(triple, value) != value:
                problem = f"{' '.join(cells[:3])!r} is labelled {cells[3] or blank!r}, and "
                hint = "let an adjudicator decide, and keep one label per triple"
                file.fault(line, f"{problem}otherwise in {place}", hint)
            repeated += place != here
        file.refuse_faults()
    return Judgements(labels, rows, repeated, blanks)


def _label_of(file: EditedFile, line: int, label: str, blank: str) -> int:
    if not label and blank == "error":
        hint = f"{_LINE}; or say what a blank means: blank='N' or '?' (--blank)"
        file.fault(line, "an empty label", hint)
    elif (label or blank) not in LABELS:
        file.fault(line, f"label {label!r}", "a label is Y, N or ?")
    return LABELS.get(label or blank, -1)


def _labelled_rows(file: EditedFile) -> list[tuple[int, list[str]]]:
    """Number of every line, and its head, relation, tail and label."""
    rows: list[tuple[int, list[str]]] = []
    names = [cell.strip().lower() for cell in file.first]
    headed = set(_NEEDED) <= set(names)
    twice = [name for name in _NEEDED if headed and names.count(name) > 1]
    if twice:
        problem = f"the header names {twice[0]!r} more than once"
        hint = "name head, relation, tail and label once each"
        raise FileError(file.path, 1, found=problem, hint=hint)
    places = [names.index(name) for name in _NEEDED] if headed else [0, 1, 2, 3]
    for number, cells in file.rows(len(names) if headed else 4, int(headed)):
        texts = list(map(text_of_cell, cells)) if headed else cells
        *triple, label = (texts[place] for place in places)
        if all(triple):
            rows.append((number, [*triple, label.strip()]))
        else:
            file.fault(number, f"an empty name in {' '.join(cells)!r}")
    if not rows and not file.faults:
        raise FileError(file.path, found="no judgement below the header", hint=_LINE)
    return rows
