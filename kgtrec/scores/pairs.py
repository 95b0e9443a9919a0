"""Scores of a relation's pairs, some heads with all tails at a time.

A source is called with a relation and some heads. It returns an array with one row per head and one
column per tail, or `Factors` whose queries are those heads. The matrix of all pairs never exists.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from kgtrec._internal.arrays import Array, Int64
from kgtrec.errors import InputError, UsageError
from kgtrec.scores.arrays import ScoreBlock, as_array, on_device
from kgtrec.scores.factors import Factors, check_sizes, embedding_array
from kgtrec.scores.formulas import Parts, QueryIds, build, check_model, describe, half_turn_of

PairSource = Callable[[int, Int64], Any]
"""From a relation and heads, as ids, to the scores of these heads with all tails."""

BLOCK_BYTES = 32 << 20
"""Approximate size of the scores of one call, if they are float32."""

MOST_HEADS = 4096
"""Of one call: queries of a model of vectors take little memory."""


@dataclass(frozen=True, eq=False)
class PairAxes:
    """The heads and tails whose pairs are the candidates.

    Pairs are numbered by head and then tail, both in id order: cell ``row * len(tails) + column``.

    - heads, tails, int64: Ids, ascending.
    - rows, columns, int64: The place of each among the heads and tails as the caller lists them,
      which is the order of rows and columns in arrays.
    - n_entities: Of the graph.
    """

    heads: Int64
    tails: Int64
    rows: Int64
    columns: Int64
    n_entities: int

    @classmethod
    def of(cls, heads: Int64 | None, tails: Int64 | None, n_entities: int) -> PairAxes:
        """Axes of listed ids; None: every entity."""
        ids = [np.arange(n_entities) if one is None else one for one in (heads, tails)]
        orders = [np.argsort(one, kind="stable") for one in ids]
        in_order = [one[order] for one, order in zip(ids, orders, strict=True)]
        return cls(in_order[0], in_order[1], orders[0], orders[1], n_entities)

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of heads and tails."""
        return len(self.heads), len(self.tails)

    @property
    def n_pairs(self) -> int:
        """Number of all pairs, which may exceed 2^31."""
        return len(self.heads) * len(self.tails)

    @property
    def all_tails(self) -> bool:
        """Whether every entity is a tail, and columns are in id order."""
        return len(self.tails) == self.n_entities and self.columns_in_order

    @property
    def columns_in_order(self) -> bool:
        """Whether the caller lists the tails in id order."""
        return bool((np.diff(self.columns) == 1).all())

    def cells(self, heads: Int64, tails: Int64) -> Int64:
        """Cells of pairs of ids, ascending and distinct, without pairs beyond the axes."""
        row, column = (
            np.searchsorted(own, ids) for own, ids in ((self.heads, heads), (self.tails, tails))
        )
        inside = np.isin(heads, self.heads) & np.isin(tails, self.tails)
        return np.unique(row[inside] * len(self.tails) + column[inside])

    def ids(self, cells: Int64) -> tuple[Int64, Int64]:
        """Heads and tails of cells."""
        row, column = np.divmod(cells, len(self.tails))
        return self.heads[row], self.tails[column]

    def heads_per_call(self, most: int | None) -> int:
        """Heads of one call of a source."""
        if most is not None:
            return most
        return max(1, min(MOST_HEADS, BLOCK_BYTES // (4 * len(self.tails))))


class PairVectors:
    """A model of vectors that scores pairs: ``(relation, heads) -> Factors``.

    Parameters
    ----------
    graph : Graph
    model : str
        As for `Factors.from_embeddings`, as are all arrays and declarations.

    Attributes
    ----------
    facts : tuple of str
        Sentences on the formula: its norm, its phases.

    Notes
    -----
    A pair (h, t) scores as the tail t of the question (h, r, ?) does.

    Raises
    ------
    UsageError, InputError
        As for `Factors.from_embeddings`.
    """

    heads_per_call = MOST_HEADS

    def __init__(
        self,
        graph: Any,
        model: str,
        *,
        entity: Any,
        relation: Any,
        norm: str | None = None,
        phases: float | str | None = None,
        normalize: str = "none",
        inverse: str = "none",
        bias: Any = None,
        **more: Any,
    ) -> None:
        arrays = {name: embedding_array(name, array) for name, array in more.items()}
        parts = Parts(
            embedding_array("entity", entity),
            embedding_array("relation", relation),
            arrays,
            norm,
            half_turn_of(phases),
            normalize,
        )
        check_sizes(parts, graph, inverse)
        self._model, self._parts, self._inverse = check_model(model), parts, inverse
        kinds = (parts.entity.real.dtype, parts.relation.real.dtype)
        double = np.result_type(*kinds) == np.float64
        self._dtype = np.dtype(np.float64 if double else np.float32)
        _, table, self._metric = build(self._model, parts, self._queries_of(0, np.zeros(1, int)))
        self._table = np.ascontiguousarray(table, self._dtype)
        self._bias = bias
        self.facts = describe(self._model, parts, {})

    def _queries_of(self, relation: int, places: Int64) -> QueryIds:
        """Tail questions; the given entity is a place among the entities of `Parts`."""
        number = 2 * relation if self._inverse == "interleaved" else relation
        return QueryIds(places, np.full(len(places), number), np.ones(len(places), bool))

    def __call__(self, relation: int, heads: Int64) -> Factors:
        of_entities = {
            name: array[heads] if name == "entity_tail" else array
            for name, array in self._parts.more.items()
        }
        # Only the heads' vectors: a formula may scale or convert all that it gets.
        some = replace(self._parts, entity=self._parts.entity[heads], more=of_entities)
        ids = self._queries_of(relation, np.arange(len(heads)))
        queries = build(self._model, some, ids)[0].astype(self._dtype)
        return Factors(queries, self._table, self._bias, self._metric)


@dataclass(frozen=True, eq=False)
class _Listed:
    """Arrays or `Factors` per relation, with one row or query per listed head."""

    scores: Mapping[int, Any]
    axes: PairAxes
    names: Callable[[int], str]
    _checked: dict[int, Any] = field(default_factory=dict)

    @property
    def heads_per_call(self) -> int | None:
        """Many if all relations have vectors; None: not known."""
        vectors = all(isinstance(one, Factors) for one in self.scores.values())
        return MOST_HEADS if vectors else None

    def __call__(self, relation: int, heads: Int64) -> Any:
        if relation not in self._checked:
            self._checked[relation] = self._whole(relation)
        scores = self._checked[relation]
        rows = self.axes.rows[np.searchsorted(self.axes.heads, heads)]
        if isinstance(scores, Factors):
            return Factors(scores.queries[rows], *scores.table)
        if len(rows) and rows[-1] - rows[0] == len(rows) - 1 and (np.diff(rows) == 1).all():
            return scores[int(rows[0]) : int(rows[-1]) + 1]  # a view, not a copy
        return scores[rows]

    def _whole(self, relation: int) -> Any:
        scores = self.scores[relation]
        named = f"scores of relation {self.names(relation)!r}"
        n_heads = len(self.axes.heads)
        if isinstance(scores, Factors):
            if len(scores.queries) != n_heads:
                raise InputError(
                    f"{named}: Factors with {len(scores.queries):,} queries; give one per head, "
                    f"{n_heads:,}"
                )
            return scores
        array = scores if on_device(scores) else as_array(scores, named)
        if tuple(array.shape) != self.axes.shape:
            raise InputError(
                f"{named} have shape {tuple(array.shape)}; expected {self.axes.shape}: one row "
                "per head and one column per tail, in the order of heads and tails"
            )
        return array


def as_pair_source(
    scores: Any, relations: Int64, axes: PairAxes, names: Callable[[int], str]
) -> PairSource:
    """Scores in any form as a source for some relations.

    A mapping has ids of relations as keys. One array or `Factors` serves a single relation.
    """
    if isinstance(scores, Mapping):
        missing = [relation for relation in relations.tolist() if relation not in scores]
        if missing:
            raise UsageError(
                f"scores lack {len(missing):,} of {len(relations):,} relations, such as "
                f"{names(missing[0])!r} (id {missing[0]}); add them, or choose relations"
            )
        return _Listed(scores, axes, names)
    if not isinstance(scores, Factors) and callable(scores):
        source: PairSource = scores
        return source
    if len(relations) != 1:
        raise UsageError(
            f"one matrix of pairs serves one relation, and {len(relations):,} are to be ranked; "
            "name one relation, or give a mapping from relations to their scores"
        )
    return _Listed({int(relations[0]): scores}, axes, names)


def checked_pairs(
    source: PairSource, relation: int, heads: Int64, axes: PairAxes, name: str
) -> Any:
    """What a source returns for heads: `Factors`, or an array with columns in id order."""
    scores = source(relation, heads)
    where = f"the scores of relation {name!r}"
    if isinstance(scores, Factors):
        if scores.shape != (len(heads), axes.n_entities):
            raise InputError(
                f"{where}: Factors of {scores.shape[0]:,} queries and {scores.shape[1]:,} entities "
                f"for {len(heads):,} heads; give one query per head, and the vectors of all "
                f"{axes.n_entities:,} entities"
            )
        return scores
    block = ScoreBlock.of(scores, name=where)
    if block.shape != (len(heads), len(axes.tails)):
        raise InputError(
            f"{where} have shape {block.shape} for {len(heads):,} heads; expected "
            f"({len(heads)}, {len(axes.tails)}): one row per head, one column per tail"
        )
    pieces = [piece.array for piece in block.pieces()]
    array: Array = pieces[0] if len(pieces) == 1 else np.concatenate(pieces)
    array = array if axes.columns_in_order else array[:, axes.columns]
    return replace(block, array=array)
