"""Entity alignment: which entity of the right graph is the one of the left graph, and the reverse.

A test alignment is a triple (left, sameAs, right), so that ranks, ties, measures, runs and qrels
are those of link prediction. A left entity is ranked among the left entities of the test
alignments, a right one among the right entities of them, and never among others (Berrendorf et
al. 2020, section 1). The number of candidates is therefore that of the test alignments, and what
depends on it (MR, Hits@k) can't be compared between test sets: AMR can (their section 3.2).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kgtrec._internal.notebook import ShownAsTables
from kgtrec._internal.table import Cell, Table
from kgtrec.errors import InputError, UsageError
from kgtrec.graph.labels import Labels
from kgtrec.questions.api import Graph
from kgtrec.ranking.rank import rank
from kgtrec.results.evaluate import evaluate
from kgtrec.results.result import Result
from kgtrec.scores.mapped_files import Watch, guarded_maps
from kgtrec.study.alignment.similarity import SIMILARITIES, similarities

if TYPE_CHECKING:
    from kgtrec.questions.api import Questions

__all__ = ["SIMILARITIES", "SizeExperiment", "align", "alignment_questions", "size_experiment"]

Array = npt.NDArray[Any]
Float64 = npt.NDArray[np.float64]

RELATION = "sameAs"
METRICS = ("mr", "mrr", "hits@1", "hits@10", "amr", "amri")


def alignment_questions(
    pairs: npt.ArrayLike,
    n_left: int | None = None,
    n_right: int | None = None,
    *,
    left_labels: Sequence[str] | None = None,
    right_labels: Sequence[str] | None = None,
    sides: str = "both",
) -> Questions:
    """Questions of test alignments, with the candidates that these allow.

    Parameters
    ----------
    pairs : array-like of int, shape (n, 2)
        Left and right id of each test alignment; an entity may stand in several.
    n_left, n_right : int, optional
        Entities on either side. Default: the number of labels, or the largest id plus one.
    left_labels, right_labels : sequence of str, optional
        Labels in id order; by default the ids. Those that both sides would share, and all others
        with them, are told apart as ``left:…`` and ``right:…``.
    sides : {"both", "head", "tail"}
        "head": the left entity is asked for, "tail": the right one.

    Returns
    -------
    Questions
        Over n_left + n_right entities, the left ones first; the relation is ``sameAs``.

    Raises
    ------
    InputError
        Pairs of another shape or type, ids out of range, or a pair twice.
    """
    rows = _checked_pairs(pairs)
    n_left = _size("left", n_left, left_labels, rows[:, 0])
    n_right = _size("right", n_right, right_labels, rows[:, 1])
    for name, ids, size in (("left", rows[:, 0], n_left), ("right", rows[:, 1], n_right)):
        wrong = np.flatnonzero((ids < 0) | (ids >= size))
        if len(wrong):
            raise InputError(
                f"pairs, row {wrong[0]}: {name} id {ids[wrong[0]]} is none of the {size} {name} "
                f"entities, whose ids run from 0 to {size - 1}"
            )
    triples = np.stack([rows[:, 0], np.zeros(len(rows), np.int64), rows[:, 1] + n_left], axis=1)
    labels = _joined_labels(n_left, left_labels, n_right, right_labels)
    graph = Graph.from_arrays(test=triples, entities=labels, relations=[RELATION])
    lefts, rights = np.unique(triples[:, 0]), np.unique(triples[:, 2])
    return graph.questions(sides=sides).restrict(heads={0: lefts}, tails={0: rights})


def align(
    pairs: npt.ArrayLike,
    left: Any = None,
    right: Any = None,
    *,
    similarity: Any = "cosine",
    csls: int = 0,
    left_labels: Sequence[str] | None = None,
    right_labels: Sequence[str] | None = None,
    sides: str = "both",
    measures: Sequence[Any] | None = None,
    run_depth: int = 20,
    threads: int | None = None,
    progress: bool | None = None,
) -> Result:
    """Rank the test alignments in both directions, by embeddings or by a similarity matrix.

    Parameters
    ----------
    pairs : array-like of int, shape (n, 2)
        Test alignments: rows of `left` and of `right`.
    left, right : array of float, shape (n_left, dim) and (n_right, dim)
        Embeddings; not with a matrix.
    similarity : {"cosine", "dot", "l2", "l1"} or array, shape (n_left, n_right)
        Of embeddings: cosine, dot product, or minus the (squared Euclidean, or L1) distance,
        computed tile by tile (`Factors`), so that entities with equal vectors tie exactly and no
        matrix is stored. Or the similarities themselves, higher for more alike.
    csls : int, default 0
        Neighbours for cross-domain similarity local scaling, 0 for none: from a similarity is
        taken half the candidate's mean similarity to its `csls` most similar candidates of the
        other side (all, if there are fewer). That orders candidates as CSLS does, of which it is
        half, less what is the same for all candidates of a question.
    left_labels, right_labels, sides
        As for `alignment_questions`.
    measures, run_depth, threads, progress
        As for `kgtrec.evaluate`.

    Returns
    -------
    Result
        With ranks, run and questions as everywhere; the manifest has an entry ``alignment``.

    Raises
    ------
    InputError
        Shapes that do not fit, unknown ids, pairs given twice, a NaN or infinite coordinate, a
        vector of length 0 under cosine.
    """
    watch = Watch.of_arrays(left, right, similarity)
    model = similarities(left, right, similarity, csls)
    questions = alignment_questions(
        pairs, model.n_left, model.n_right,
        left_labels=left_labels, right_labels=right_labels, sides=sides,
    )  # fmt: skip
    with guarded_maps("embeddings", watch):
        result = evaluate(
            model.scores(questions), questions, measures,
            run_depth=run_depth, threads=threads, progress=progress,
        )  # fmt: skip
    result.ranks.manifest["alignment"] = {
        "similarity": model.name,
        "csls": model.csls,
        "n_left": model.n_left,
        "n_right": model.n_right,
    }
    return result


@dataclass(frozen=True, eq=False)
class SizeExperiment(ShownAsTables):
    """One model on test sets of growing size (Berrendorf et al. 2020, Figure 1).

    Attributes
    ----------
    sizes : ndarray of int64, shape (S,)
        Test alignments, ascending.
    values : dict of str to ndarray of float64, shape (S, repeats)
        Metric (realistic ranks, micro) on random test sets of each size; within a repeat the
        smaller set is part of the larger one.
    sides : str
    """

    sizes: npt.NDArray[np.int64]
    values: dict[str, Float64]
    sides: str

    def table(self) -> Table:
        """A row per size: the mean of each metric over the repeats, and its standard deviation."""
        rows: list[tuple[Cell, ...]] = []
        for number, size in enumerate(self.sizes.tolist()):
            cells: list[Cell] = [size]
            for values in self.values.values():
                spread = values[number].std(ddof=1) if values.shape[1] > 1 else 0.0
                cells += [float(values[number].mean()), float(spread)]
            rows.append(tuple(cells))
        names = [name for metric in self.values for name in (metric, f"{metric}.sd")]
        titles = [name for metric in self.values for name in (_TITLES.get(metric, metric), "±")]
        return Table(("pairs", *titles), ("pairs", *names), (0, *(4,) * len(names)), rows)


_TITLES = {"mr": "MR", "mrr": "MRR", "hits@1": "Hits@1", "hits@10": "Hits@10", "amr": "AMR",
           "amri": "AMRI"}  # fmt: skip


def size_experiment(
    pairs: npt.ArrayLike,
    left: Any = None,
    right: Any = None,
    *,
    sizes: Sequence[int] | None = None,
    repeats: int = 5,
    seed: int = 0,
    similarity: Any = "cosine",
    csls: int = 0,
    sides: str = "both",
    metrics: Sequence[str] = METRICS,
    threads: int | None = None,
) -> SizeExperiment:
    """The same model on random parts of the test alignments: what the test set's size alone does.

    Parameters
    ----------
    pairs, left, right, similarity, csls, sides
        As for `align`. CSLS looks at the candidates of each part alone.
    sizes : sequence of int, optional
        Test alignments in a part. By default up to eight, evenly spaced on a logarithmic scale from
        ten (or all) to all.
    repeats : int
        Random parts of each size.
    seed : int
        Of the choice; the same seed chooses the same parts.
    metrics : sequence of str
        Names as in keys: "mr", "hits@1", "amr", ...

    Raises
    ------
    InputError
        As for `align`.
    UsageError
        A size that is not between 1 and the number of pairs.
    """
    watch = Watch.of_arrays(left, right, similarity)
    rows, model = _checked_pairs(pairs), similarities(left, right, similarity, csls)
    chosen = _checked_sizes(sizes, len(rows))
    if repeats < 1:
        raise UsageError(f"repeats={repeats!r}; repeat at least once")
    keys = {metric: f"{sides}.realistic.micro.{metric}" for metric in metrics}
    values = {metric: np.empty((len(chosen), repeats)) for metric in metrics}
    for repeat in range(repeats):
        order = np.random.default_rng([seed, repeat]).permutation(len(rows))
        for number, size in enumerate(chosen):
            questions = alignment_questions(
                rows[np.sort(order[:size])], model.n_left, model.n_right, sides=sides
            )
            with guarded_maps("embeddings", watch):
                result = Result(rank(model.scores(questions), questions, threads=threads)[0])
            for metric, key in keys.items():
                values[metric][number, repeat] = result[key]
    return SizeExperiment(np.array(chosen, dtype=np.int64), values, sides)


def _checked_sizes(sizes: Sequence[int] | None, n_pairs: int) -> list[int]:
    if sizes is None:
        spaced = np.geomspace(min(10, n_pairs), n_pairs, 8)
        return np.unique(spaced.round().astype(int)).tolist()
    chosen = sorted(set(sizes))
    wrong = [size for size in chosen if not 1 <= size <= n_pairs]
    if wrong or not chosen:
        raise UsageError(
            f"sizes {list(sizes)!r} must be between 1 and {n_pairs}, the number of test alignments"
        )
    return chosen


def _checked_pairs(pairs: npt.ArrayLike) -> npt.NDArray[np.int64]:
    rows = np.asarray(pairs)
    if rows.ndim != 2 or rows.shape[1] != 2 or rows.dtype.kind not in "iu":
        raise InputError(
            f"pairs have shape {rows.shape} and dtype {rows.dtype}; expected integer ids in rows "
            "(left, right)"
        )
    if not len(rows):
        raise InputError("pairs are empty; give at least one test alignment")
    first = np.unique(rows, axis=0, return_index=True)[1]
    if len(first) < len(rows):
        row = int(np.setdiff1d(np.arange(len(rows)), first)[0])
        raise InputError(
            f"pairs: row {row} {tuple(rows[row].tolist())} stands there before "
            f"({len(rows) - len(first)} such rows); give each alignment once"
        )
    return rows.astype(np.int64)


def _size(name: str, size: int | None, labels: Sequence[str] | None, ids: Array) -> int:
    if labels is not None:
        if size is not None and size != len(labels):
            raise InputError(
                f"{len(labels)} {name} labels for {size} {name} entities; give one each"
            )
        return len(labels)
    return int(ids.max()) + 1 if size is None else int(size)


def _joined_labels(
    n_left: int, left: Sequence[str] | None, n_right: int, right: Sequence[str] | None
) -> list[str]:
    sides = [Labels.decimal(n_left) if left is None else left,
             Labels.decimal(n_right) if right is None else right]  # fmt: skip
    plain = list(chain(*sides))
    if len(set(plain)) == len(plain):
        return plain
    # Twice on one side is left for Graph to refuse; on both sides is no mistake.
    return [
        f"{name}:{label}"
        for name, side in zip(("left", "right"), sides, strict=True)
        for label in side
    ]
