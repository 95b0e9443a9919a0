"""Read ranks of pairs from the files of several jobs, and merge them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING

import numpy as np

from kgtrec._internal.arguments import require_type
from kgtrec._internal.arrays import Float64, Int64
from kgtrec.errors import FileError, PathName, UsageError
from kgtrec.study.pairs.measures import Counts
from kgtrec.study.pairs.rank import RANK_COLUMNS, PairRanks
from kgtrec.study.pooling.edited_files import EditedFile, Rows

if TYPE_CHECKING:
    from kgtrec.questions.api import Graph

_HINT = "write the files with `kgtrec pairs --write-ranks FILE`"
_COUNTS = RANK_COLUMNS[4:]
_MOST_DIGITS = 18  # of a count, so that it fits int64


def merge_pair_ranks(paths: PathName | Sequence[PathName], graph: Graph) -> PairRanks:
    """Read ranks of pairs from files, such as a file per relation, and merge them.

    Measures equal those of all these relations ranked in one run.

    Parameters
    ----------
    paths : path or sequence of paths
        Files of `PairRanks.write` (``kgtrec pairs --write-ranks``). A relation is in one file only.
    graph : Graph

    Raises
    ------
    UsageError
        No file.
    FileError
        Malformed lines, labels that the graph lacks, or a relation that is also in another file.

    Examples
    --------
    >>> study.merge_pair_ranks(["a.tsv", "b.tsv"], graph).table(["map"])    # doctest: +SKIP
    """
    if isinstance(paths, (str, PathLike)):
        paths = [paths]
    require_type("paths", paths, Iterable, "a path or a list of paths")
    files = list(paths)
    if not files:
        raise UsageError("no file of ranks is named; name at least one")
    homes: dict[str, PathName] = {}
    parts = [_read_ranks(path, graph, homes) for path in files]
    ids, counts, scores = (np.concatenate(columns, axis=0) for columns in zip(*parts, strict=True))
    order = np.lexsort((ids[:, 2], ids[:, 0], ids[:, 1]))
    head, relation, tail = np.ascontiguousarray(ids[order].T)
    return PairRanks(
        graph=graph,
        counts=Counts(relation, *np.ascontiguousarray(counts[order].T)),
        head=head,
        tail=tail,
        scores=scores[order],
    )


def _read_ranks(
    path: PathName, graph: Graph, homes: dict[str, PathName]
) -> tuple[Int64, Int64, Float64]:
    """Return the ids (n, 3) of head, relation and tail, the counts (n, 6) and the scores of a file.

    ``homes`` gets the file of each relation.
    """
    file = EditedFile(path, _HINT)
    rows = [*file.below(RANK_COLUMNS)]
    candidates: dict[str, str] = {}  # macro_candidates of each relation
    others = {relation: other for relation, other in homes.items() if other != path}
    for number, cells in rows:
        if problem := _problem_of(cells, candidates):
            file.fault(number, problem)
        elif other := others.pop(cells["relation"], None):
            hint = "give each relation in one file only"
            file.fault(number, f"relation {cells['relation']!r} is also in {other}", hint)
        homes[cells["relation"]] = path
        pair = " ".join(cells[name] for name in ("relation", "head", "tail"))
        file.is_new(number, pair, f"pair {pair!r}", _HINT)
    ids = file.triple_ids(graph, rows)
    file.refuse_faults()
    if not rows:
        raise FileError(path, found="no ranks below the header", hint=_HINT)
    return ids, _counts_of(rows), np.array([float(cells["score"]) for _, cells in rows])


def _problem_of(cells: Mapping[str, str], candidates: dict[str, str]) -> str:
    """Return what is wrong with a line's numbers; "" if nothing is.

    `candidates` gets the number of candidates of each relation, on which its lines must agree.
    """
    for name in _COUNTS:
        text = cells[name]
        if not (text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS):
            return f"{name} {text!r} is not a count"
    for kind in ("", "macro_"):
        greater, equal, total = (
            int(cells[f"{kind}{name}"]) for name in ("greater", "equal", "candidates")
        )
        if greater + equal >= total:
            return f"{kind}greater and {kind}equal are not below {kind}candidates {total}"
    total_text = cells["macro_candidates"]
    if candidates.setdefault(cells["relation"], total_text) != total_text:
        return f"macro_candidates {total_text} differs from other lines of the relation"
    try:
        return "score is NaN" if math.isnan(float(cells["score"])) else ""
    except ValueError:
        return f"score {cells['score']!r} is not a number"


def _counts_of(rows: Rows) -> Int64:
    """Return the counts of each line, int64 (lines, 6)."""
    return np.array([[int(cells[name]) for name in _COUNTS] for _, cells in rows], np.int64)
