"""Entity alignment: ranks of the entities of one graph for each entity of another graph.

Embeddings of two graphs and pairs of entities come in, ranks go out. A test alignment is a triple
(left, sameAs, right), so ranks, ties, measures, runs and qrels are those of link prediction.
Candidates are the entities of that side in the test alignments (Berrendorf et al. 2020, section 1),
all entities of that side, or a list. MR and Hits@k depend on their number and cannot be compared
between test sets; AMR can (section 3.2).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from kgtrec._internal.argument_names import argument
from kgtrec._internal.arguments import MOST_PARTS, check_count, random_generator
from kgtrec._internal.arrays import Array, Float64, Int64
from kgtrec._internal.table import ShownAsTables, Table
from kgtrec.errors import InputError, UsageError, choose, refuse_if
from kgtrec.graph.labels import Labels
from kgtrec.measures import Measure
from kgtrec.questions.api import Graph, Questions
from kgtrec.questions.candidates import label_ids
from kgtrec.ranking.rank import rank
from kgtrec.results.result import Result, evaluate
from kgtrec.scores.arrays import as_array, score_dtype
from kgtrec.scores.factors import Factors
from kgtrec.scores.mapped_files import reading

SIMILARITIES = ("cosine", "dot", "l2", "l1")

_BLOCK_BYTES = 64 << 20
_LARGE = 400
"""Squares and sums of values below 2 to this power do not overflow float64."""


def similarities(left: Any, right: Any, similarity: Any, csls: int) -> Similarities:
    """Check embeddings or a matrix, and return their similarities; parameters as in `kgtrec.align`.

    `left` and `right` are None if `similarity` is a matrix.
    """
    name = similarity if isinstance(similarity, str) else None  # of embeddings; None: a matrix
    if name is not None:
        choose("similarity", name, SIMILARITIES, also="a matrix")
    refuse_if(
        (
            isinstance(csls, bool) or not isinstance(csls, (int, np.integer)) or csls < 0,
            f"{argument('csls', csls)} is not a number of neighbours; give one, such as 10 (0: no "
            "CSLS)",
        ),
        (
            name is None and (left is not None or right is not None),
            "embeddings and a similarity matrix were given; give only one of them",
        ),
        (
            name is not None and (left is None or right is None),
            "embeddings are missing; give left and right ones, or similarity=matrix",
        ),
    )
    return _Tables(left, right, name, int(csls)) if name else _Matrix(similarity, int(csls))


def penalize_hubs(
    model: Similarities, questions: Questions, dangling: Sequence[int] = ()
) -> tuple[Array, Array, Float64]:
    """Compute the penalties of CSLS: half the mean similarity of each entity to its neighbours.

    Returns the left and the right candidates, by ids of their side, and the penalty of every
    entity, 0 for entities that are not candidates. Dangling entities are further left ones.
    """
    lefts, rights = _read_candidates(questions, model.n_left)
    lefts = np.union1d(lefts, np.asarray(dangling, np.int64))
    penalties = np.zeros(model.n_left + model.n_right)
    pairs = ((lefts, rights, 0, 1), (rights, lefts, model.n_left, 0)) if model.csls else ()
    for rows_of_side, opposite, start, side in pairs:
        k = min(model.csls, len(opposite))
        means = [
            np.sort(np.partition(block, -k, axis=1)[:, -k:], axis=1).mean(axis=1, dtype=np.float64)
            for block in model.blocks(rows_of_side, opposite, side)
        ]
        penalties[start + rows_of_side] = np.concatenate(means) / 2
    return lefts, rights, penalties


def _read_candidates(questions: Questions, n_left: int) -> tuple[Int64, Int64]:
    """Return the left and the right candidates of `alignment_questions`, by ids of their side."""
    lists = questions.candidate_lists
    assert lists is not None  # alignment_questions restricts both sides
    lefts, rights = (lists.lists[number].astype(np.int64) for number in (0, 1))
    return lefts, rights - n_left


def _split_rows(n_rows: int, width: int, itemsize: int) -> Iterator[slice]:
    """Yield the rows of one block after another; a block has up to `_BLOCK_BYTES`."""
    height = max(1, _BLOCK_BYTES // max(1, width * itemsize))
    return (slice(start, start + height) for start in range(0, n_rows, height))


def _scale(*arrays: Array) -> float:
    """Return the power of two that scales large finite values so that no sum overflows, or 1.

    The scale changes no order: all similarities and their means are multiplied by the same factor.
    """
    ends = [float(end) for array in arrays for end in (array.min(), array.max())]
    _, exponents = np.frexp([end for end in ends if np.isfinite(end)])
    largest = int(exponents.max(initial=0))
    return 2.0**-largest if largest > _LARGE else 1.0


class _Tables:
    """The similarities of two tables of embeddings, whose product is never stored."""

    def __init__(self, left: Any, right: Any, similarity: str, csls: int) -> None:
        tables = [_check_table("left", left), _check_table("right", right)]
        if tables[0].shape[1] != tables[1].shape[1]:
            raise InputError(
                f"left embeddings have {tables[0].shape[1]} dimensions and right ones "
                f"{tables[1].shape[1]}; both must have the same number"
            )
        self.n_left, self.n_right = map(len, tables)
        self.name, self.csls = similarity, csls
        self.metric = "dot" if similarity == "cosine" else similarity
        if similarity == "cosine":
            tables = [_normalize(*named) for named in zip(("left", "right"), tables, strict=True)]
        elif csls and (scale := _scale(*tables)) != 1:
            tables = [table * scale for table in tables]
        self.table = np.concatenate(tables)

    def scores(self, questions: Questions) -> Factors:
        """Return scores of the questions, from which `kgtrec.rank` computes ranks."""
        _, _, bias = penalize_hubs(self, questions)
        dtype = np.float64 if self.table.dtype == np.float64 else np.float32
        return Factors(
            self.table[questions.entity],
            self.table,
            np.negative(bias, dtype=dtype, casting="same_kind") if self.csls else None,
            self.metric,
        )

    def blocks(self, entities: Array, others: Array, side: int) -> Iterator[Array]:
        """Yield the similarities of entities of one side (rows) with `others`, in blocks."""
        shift = (self.n_left, 0) if side == 0 else (0, self.n_left)
        factors = Factors(
            self.table[entities + shift[0]], self.table[others + shift[1]], None, self.metric
        )
        for rows in _split_rows(len(entities), len(others), factors.dtype.itemsize):
            yield factors.scores(rows.start, rows.stop)


class _Matrix:
    """A matrix of similarities, left by right."""

    name = "matrix"

    def __init__(self, matrix: Any, csls: int) -> None:
        self.matrix = as_array(matrix, "similarities")
        if self.matrix.ndim != 2 or 0 in self.matrix.shape:
            raise InputError(
                f"similarities have shape {self.matrix.shape}; expected (n_left, n_right)"
            )
        score_dtype(self.matrix, "similarities")
        self.n_left, self.n_right = self.matrix.shape
        self.csls = csls
        if csls and (scale := _scale(self.matrix)) != 1:
            self.matrix = self.matrix * scale

    def scores(self, questions: Questions) -> Iterator[Array]:
        """Return scores of the questions, from which `kgtrec.rank` computes ranks."""
        lefts, rights, bias = penalize_hubs(self, questions)
        width = self.n_left + self.n_right
        dtype = np.dtype(np.float64) if self.csls else self.matrix.dtype
        sides = questions.side
        for rows in _split_rows(len(questions), width, dtype.itemsize):
            # Other columns are not candidates: nothing reads them.
            side, known = sides[rows], questions.entity[rows]
            block = np.zeros((len(side), width), dtype=dtype)
            heads, tails = np.flatnonzero(side == 0), np.flatnonzero(side == 1)
            block[np.ix_(heads, lefts)] = self.matrix[np.ix_(lefts, known[heads] - self.n_left)].T
            block[np.ix_(tails, rights + self.n_left)] = self.matrix[np.ix_(known[tails], rights)]
            yield block - bias if self.csls else block

    def blocks(self, entities: Array, others: Array, side: int) -> Iterator[Array]:
        """Yield the similarities of entities of one side (rows) with `others`, in blocks."""
        matrix = self.matrix if side == 1 else self.matrix.T
        for rows in _split_rows(len(entities), len(others), matrix.itemsize):
            block = matrix[np.ix_(entities[rows], others)]
            wrong = np.argwhere(np.isnan(block))
            if len(wrong):
                row, column = wrong[0]
                left, right = (entities[rows][row], others[column])[:: 1 if side == 1 else -1]
                raise InputError(
                    f"similarities: NaN for left {left} and right {right}; fix the model"
                )
            yield block


Similarities = _Tables | _Matrix
"""The similarities of all left and right entities; `blocks` compare one side (rows) with the other.
"""


def _check_table(name: str, values: Any) -> Array:
    """Return embeddings as an array (entities, dimensions); InputError if they are not finite."""
    table = as_array(values, f"{name} embeddings")
    if table.ndim != 2 or 0 in table.shape:
        raise InputError(
            f"{name} embeddings have shape {table.shape}; expected (entities, dimensions)"
        )
    if table.dtype.name not in ("float16", "float32", "float64"):
        raise InputError(
            f"{name} embeddings have dtype {table.dtype}; they must be float16, float32 or float64"
        )
    for start in range(0, len(table), 1 << 16):
        wrong = np.argwhere(~np.isfinite(table[start : start + (1 << 16)]))
        if len(wrong):
            row, column = wrong[0]
            raise InputError(
                f"{name} embeddings: {table[start + row, column]} in row {start + row}, column "
                f"{column}; fix the model"
            )
    return table


def _normalize(name: str, table: Array) -> Array:
    """Scale rows to length 1; float64 stays float64, other types become float32."""
    dtype = np.float64 if table.dtype == np.float64 else np.float32
    wide = table.astype(np.float64)
    if (scale := _scale(table)) != 1:
        wide *= scale
    length = np.sqrt(np.einsum("ij,ij->i", wide, wide))
    if not length.all():
        raise InputError(
            f"{name} embeddings: row {int(np.flatnonzero(length == 0)[0])} is zero, so its cosine "
            "is undefined; choose another similarity"
        )
    return (wide / length[:, None]).astype(dtype)


RELATION = "sameAs"
CANDIDATES = ("test", "all")
"""Candidates by name: the entities of the test alignments, or all entities of the other graph."""
METRICS = ("mr", "mrr", "hits@1", "hits@10", "amr", "amri")


def alignment_questions(
    pairs: npt.ArrayLike,
    n_left: int | None = None,
    n_right: int | None = None,
    *,
    left_labels: Sequence[str] | None = None,
    right_labels: Sequence[str] | None = None,
    sides: str = "both",
    candidates: Any = "test",
) -> Questions:
    """Return the questions of test alignments.

    Parameters
    ----------
    pairs : array-like of int, shape (n, 2)
        Left and right id of each test alignment; an entity may be in several.
    n_left, n_right : int, optional
        Entities on either side. Default: the number of labels, or the largest id plus one.
    left_labels, right_labels : sequence of str, optional
        Labels in id order; by default the ids. If both sides share a label, all labels get a
        prefix: ``left:…`` or ``right:…``.
    sides : {"both", "head", "tail"}
        "head": the left entity is asked for, "tail": the right one.
    candidates : {"test", "all"} or pair of array-like of int
        The entities of the test alignments (Berrendorf et al. 2020, section 1), all entities of the
        other graph, or lists of left and of right ids. Metrics other than AMR and AMRI depend on
        the number of candidates (section 3.2).

    Returns
    -------
    Questions
        Over n_left + n_right entities, the left ones first; the relation is ``sameAs``.

    Raises
    ------
    InputError
        Pairs of another shape or type, ids out of range, or a pair twice; a list of candidates
        without the entity of a pair.
    UsageError
        `candidates` is something else.
    """
    rows = _check_pairs(pairs)
    n_left = _check_size("left", n_left, left_labels, rows[:, 0])
    n_right = _check_size("right", n_right, right_labels, rows[:, 1])
    triples = np.stack([rows[:, 0], np.zeros(len(rows), np.int64), rows[:, 1] + n_left], axis=1)
    labels = _join_labels(n_left, left_labels, n_right, right_labels)
    graph = Graph.from_arrays(test=triples, entities=labels, relations=[RELATION])
    lefts, rights = _find_candidates(candidates, rows, n_left, n_right, sides)
    return graph.questions(sides=sides).restrict(heads={0: lefts}, tails={0: rights + n_left})


def _find_candidates(
    candidates: Any, rows: Int64, n_left: int, n_right: int, sides: str
) -> tuple[Int64, Int64]:
    """Return the left and the right candidates by ids of their side; see `alignment_questions`."""
    if isinstance(candidates, str):
        choose("candidates", candidates, CANDIDATES, also="a list of left and one of right ids")
        if candidates == "all":
            return np.arange(n_left), np.arange(n_right)
        return np.unique(rows[:, 0]), np.unique(rows[:, 1])
    if not isinstance(candidates, Sequence) or len(candidates) != 2:
        raise UsageError(
            f"candidates have type {type(candidates).__name__}; give 'test', 'all', or a list of "
            "left and one of right ids"
        )
    lists = []
    for name, ids, size, column, side in zip(
        ("left", "right"), candidates, (n_left, n_right), (0, 1), ("head", "tail"), strict=True
    ):
        distinct = label_ids(f"{name} candidates", ids, size).astype(np.int64)
        missing = np.flatnonzero(~np.isin(rows[:, column], distinct))
        if len(missing) and sides in ("both", side):
            raise InputError(
                f"pairs, row {missing[0]}: {name} id {rows[missing[0], column]} is not among the "
                f"{len(distinct)} {name} candidates ({len(missing)} such rows); add it"
            )
        lists.append(distinct)
    return lists[0], lists[1]


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
    candidates: Any = "test",
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
        For embeddings: cosine, dot product, or minus the (squared Euclidean, or L1) distance. Tiles
        are computed in turn (`Factors`), so entities with equal vectors tie exactly and no matrix
        is stored. Or the similarities themselves, higher for more similar entities.
    csls : int, default 0
        Neighbours for cross-domain similarity local scaling, 0 for none: subtract half the
        candidate's mean similarity to its `csls` most similar entities of the other side (all, if
        there are fewer). The order is that of CSLS: this is half of it, less a term that all
        candidates of a question share.
    left_labels, right_labels, sides, candidates
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
    with reading("embeddings", left, right, similarity):
        model = similarities(left, right, similarity, csls)
        questions = alignment_questions(
            pairs,
            model.n_left,
            model.n_right,
            left_labels=left_labels,
            right_labels=right_labels,
            sides=sides,
            candidates=candidates,
        )
        result = evaluate(
            model.scores(questions),
            questions,
            measures,
            run_depth=run_depth,
            threads=threads,
            progress=progress,
        )
    result.ranks.manifest["alignment"] = _describe_alignment(model, candidates)
    return result


def _describe_alignment(model: Similarities, candidates: Any) -> dict[str, Any]:
    """Return the entry of the manifest; candidates are in it unless they are those of the test."""
    entry = {
        "similarity": model.name,
        "csls": model.csls,
        "n_left": model.n_left,
        "n_right": model.n_right,
    }
    if not isinstance(candidates, str):
        entry["candidates"] = "lists"
    elif candidates != "test":
        entry["candidates"] = candidates
    return entry


@dataclass(frozen=True, eq=False)
class SizeExperiment(ShownAsTables):
    """Metrics of one model on test sets of growing size (Berrendorf et al. 2020, Figure 1).

    - sizes, int64 (S,): Numbers of test alignments, ascending.
    - values: Per metric (realistic ranks, micro), float64 (S, repeats): its values on random test
      sets of each size. Within a repeat, each test set is part of the next larger one.
    - candidates: "test" (those of each test set), "all", or "lists".
    """

    sizes: Int64
    values: dict[str, Float64]
    sides: str
    candidates: str = "test"

    def table(self) -> Table:
        """Return a table with one row per size: mean and standard deviation over the repeats."""
        heads: list[tuple[str, str, int]] = []
        columns = []
        for metric, values in self.values.items():
            heads += [(Measure.parse(f"both.{metric}").title, metric, 4), ("±", f"{metric}.sd", 4)]
            degrees = min(1, values.shape[1] - 1)  # one repeat has no spread
            columns += [values.mean(axis=1), values.std(axis=1, ddof=degrees)]
        return Table.from_columns(["pairs", *heads], self.sizes, *columns)


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
    candidates: Any = "test",
    metrics: Sequence[str] = METRICS,
    threads: int | None = None,
) -> SizeExperiment:
    """Evaluate the same model on random parts of the test alignments, to show the effect of size.

    Parameters
    ----------
    pairs, left, right, similarity, csls, sides, candidates
        As for `align`. CSLS uses only the candidates of each part.
    sizes : sequence of int, optional
        Test alignments in a part. By default up to eight, evenly spaced on a logarithmic scale from
        ten (or all) to all.
    repeats : int
        Random parts of each size.
    seed : int
        Seed of the choice; the same seed chooses the same parts.
    metrics : sequence of str
        Names as in keys: "mr", "hits@1", "amr", ...

    Raises
    ------
    InputError
        As for `align`.
    UsageError
        A size that is not between 1 and the number of pairs.
    """
    rows = _check_pairs(pairs)
    keys = {m: f"{sides}.realistic.micro.{m}" for m in metrics}
    chosen = _choose_sizes(sizes, len(rows))
    repeats = check_count("repeats", repeats, most=MOST_PARTS)
    values = {metric: np.empty((len(chosen), repeats)) for metric in metrics}
    with reading("embeddings", left, right, similarity):
        model = similarities(left, right, similarity, csls)
        for repeat in range(repeats):
            order = random_generator(seed, repeat).permutation(len(rows))
            for number, size in enumerate(chosen):
                questions = alignment_questions(
                    rows[np.sort(order[:size])],
                    model.n_left,
                    model.n_right,
                    sides=sides,
                    candidates=candidates,
                )
                result = Result(rank(model.scores(questions), questions, threads=threads)[0])
                for metric, key in keys.items():
                    values[metric][number, repeat] = result[key]
    name = candidates if isinstance(candidates, str) else "lists"
    return SizeExperiment(np.array(chosen, dtype=np.int64), values, sides, name)


def _choose_sizes(sizes: Sequence[int] | None, n_pairs: int) -> list[int]:
    """Return the sizes of the parts, ascending; UsageError if one is out of range."""
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


def _check_pairs(pairs: npt.ArrayLike) -> Int64:
    """Return pairs as int64 (n, 2); InputError if they are malformed, empty or repeated."""
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
            f"pairs: row {row} {tuple(rows[row].tolist())} is a repetition "
            f"({len(rows) - len(first)} such rows); give each alignment once"
        )
    return rows.astype(np.int64)


def _check_size(name: str, size: int | None, labels: Sequence[str] | None, ids: Array) -> int:
    """Return the number of entities of a side; InputError if labels or ids do not fit."""
    if size is None:
        size = int(ids.max()) + 1 if labels is None else len(labels)
    if labels is not None and size != len(labels):
        raise InputError(
            f"there are {len(labels)} {name} labels for {size} {name} entities; give one per entity"
        )
    wrong = np.flatnonzero((ids < 0) | (ids >= size))
    if len(wrong):
        raise InputError(
            f"pairs, row {wrong[0]}: {name} id {ids[wrong[0]]} does not exist; ids of {name} "
            f"entities go from 0 to {size - 1}"
        )
    return int(size)


def _join_labels(
    n_left: int, left: Sequence[str] | None, n_right: int, right: Sequence[str] | None
) -> list[str]:
    """Return the labels of both sides, left first, with prefixes if both have a label in common."""
    sides = [
        Labels.decimal(n_left) if left is None else left,
        Labels.decimal(n_right) if right is None else right,
    ]
    plain = list(chain(*sides))
    if len(set(plain)) == len(plain):
        return plain
    # `Graph` refuses a label that one side has twice; a label of both sides is not a mistake.
    return [
        f"{name}:{label}"
        for name, side in zip(("left", "right"), sides, strict=True)
        for label in side
    ]
