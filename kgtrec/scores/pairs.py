"""Scores of a relation's pairs, computed for some heads and all tails at a time.

A source is called with a relation and some heads. It returns an array with a row per head and a
column per tail, or `Factors` with a query per head. The matrix of all pairs never exists.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from kgtrec._internal.arguments import GRAPH, require_type
from kgtrec._internal.arrays import Array, Int64
from kgtrec.errors import InputError, UsageError
from kgtrec.graph.graph import GraphData
from kgtrec.questions.questions import column_of_label
from kgtrec.scores.arrays import ScoreBlock, as_array, on_device
from kgtrec.scores.factors import (
    Factors,
    check_sizes,
    computing_type,
    read_parts,
    select_biases,
)
from kgtrec.scores.formulas import QueryIds, build, check_model, describe

PairSource = Callable[[int, Int64], Any]
"""A function of a relation and heads (ids): it returns their scores with all tails."""

BLOCK_BYTES = 32 << 20
"""Approximate size of the scores of a call, if they are float32."""

MOST_HEADS = 4096
"""Most heads per call; queries of a model of vectors take little memory."""


@dataclass(frozen=True, eq=False)
class PairAxes:
    """The heads and tails whose pairs are the candidates.

    Pairs are numbered by head and then tail, both in id order: cell ``row * len(tails) + column``.

    - heads, tails, int64: Ids, ascending.
    - rows, columns, int64: Row of each head and column of each tail in arrays, which is its index
      in the caller's lists of heads and tails.
    - n_entities: Number of entities of the graph.
    """

    heads: Int64
    tails: Int64
    rows: Int64
    columns: Int64
    n_entities: int

    @classmethod
    def from_ids(cls, heads: Int64 | None, tails: Int64 | None, n_entities: int) -> PairAxes:
        """Return the axes of lists of ids; None for all entities."""
        every = np.arange(n_entities)
        listed = [every if ids is None else ids for ids in (heads, tails)]
        orders = [np.argsort(ids, kind="stable") for ids in listed]
        ordered = [ids[order] for ids, order in zip(listed, orders, strict=True)]
        return cls(ordered[0], ordered[1], orders[0], orders[1], n_entities)

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of heads and tails."""
        return len(self.heads), len(self.tails)

    @property
    def n_pairs(self) -> int:
        """Number of all pairs, which may exceed 2^31."""
        return len(self.heads) * len(self.tails)

    @property
    def columns_in_order(self) -> bool:
        """True if the caller lists the tails in id order."""
        return bool((np.diff(self.columns) == 1).all())

    def cells(self, heads: Int64, tails: Int64) -> Int64:
        """Return the cells of pairs of ids, ascending and distinct, without pairs off the axes."""
        row, column = np.searchsorted(self.heads, heads), np.searchsorted(self.tails, tails)
        inside = np.isin(heads, self.heads) & np.isin(tails, self.tails)
        return np.unique(row[inside] * len(self.tails) + column[inside])

    def ids(self, cells: Int64) -> tuple[Int64, Int64]:
        """Return the heads and the tails of cells, as ids."""
        row, column = np.divmod(cells, len(self.tails))
        return self.heads[row], self.tails[column]

    def heads_per_call(self, most: int | None) -> int:
        """Return the number of heads per call of a source: `most`, or as many as fit a block."""
        if most is not None:
            return most
        return max(1, min(MOST_HEADS, BLOCK_BYTES // (4 * len(self.tails))))


class PairVectors:
    """A model of vectors as a source of scores of pairs: ``(relation, heads) -> Factors``.

    Parameters
    ----------
    graph : Graph
    model : str
        As for `Factors.from_embeddings`, as are all arrays and declarations.
    columns : sequence of str or int, optional
        The label or id of the entity of each row of `entity` (and each bias), if they are not in id
        order.

    Attributes
    ----------
    facts : tuple of str
        Sentences on the formula: its norm, its phases.

    Notes
    -----
    A pair (h, t) scores as the tail t of the question (h, r, ?) does, for any number of heads per
    call.

    Raises
    ------
    UsageError, InputError
        As for `Factors.from_embeddings`. Also if `columns` lacks or repeats an entity.
    """

    heads_per_call = MOST_HEADS

    def __init__(
        self,
        graph: GraphData,
        model: str,
        *,
        entity: Any,
        relation: Any,
        norm: str | None = None,
        phases: float | str | None = None,
        normalize: str = "none",
        phase_weight: float | None = None,
        modulus_weight: float | None = None,
        inverse: str = "none",
        columns: Any = None,
        bias: Any = None,
        **more: Any,
    ) -> None:
        require_type("graph", graph, GraphData, GRAPH)
        parts = read_parts(
            entity,
            relation,
            more,
            norm=norm,
            phases=phases,
            normalize=normalize,
            phase_weight=phase_weight,
            modulus_weight=modulus_weight,
        )
        check_sizes(parts, graph, inverse)
        if columns is not None:
            rows_in_order = column_of_label(columns, graph.entities)
            parts, bias = parts.select_entities(rows_in_order), select_biases(bias, rows_in_order)
        self._model, self._parts, self._inverse = check_model(model), parts, inverse
        self._dtype = computing_type(parts)
        _, table, self._metric = build(self._model, parts, self._queries_of(0, np.zeros(1, int)))
        self._table = np.ascontiguousarray(table, self._dtype)
        self._bias = bias
        self.facts = describe(self._model, parts, {})

    def _queries_of(self, relation: int, entities: Int64) -> QueryIds:
        """Return the tail questions of a relation and entities, which are rows of `Parts`."""
        number = 2 * relation if self._inverse == "interleaved" else relation
        return QueryIds(entities, np.full(len(entities), number), np.ones(len(entities), bool))

    def __call__(self, relation: int, heads: Int64) -> Factors:
        """Return the model with a query per head."""
        # A formula may scale or convert all its vectors, so it gets only those of the heads.
        of_heads = self._parts.select_entities(heads)
        ids = self._queries_of(relation, np.arange(len(heads)))
        queries = build(self._model, of_heads, ids)[0].astype(self._dtype)
        return Factors(queries, self._table, self._bias, self._metric)


@dataclass(frozen=True, eq=False)
class _ScoresByRelation:
    """A source of scores from arrays or `Factors` per relation, with a row or query per head."""

    scores: Mapping[int, Any]
    axes: PairAxes
    names: Callable[[int], str]
    _checked: dict[int, Any] = field(default_factory=dict)

    @property
    def heads_per_call(self) -> int | None:
        """Number of heads per call if all relations have `Factors`, else None."""
        vectors = all(isinstance(scores, Factors) for scores in self.scores.values())
        return MOST_HEADS if vectors else None

    def __call__(self, relation: int, heads: Int64) -> Any:
        """Return the scores of heads, which are checked the first time that a relation is read."""
        if relation not in self._checked:
            self._checked[relation] = self._check(relation)
        scores = self._checked[relation]
        rows = self.axes.rows[np.searchsorted(self.axes.heads, heads)]
        if isinstance(scores, Factors):
            return Factors(scores.queries[rows], *scores.table)
        if len(rows) and rows[-1] - rows[0] == len(rows) - 1 and (np.diff(rows) == 1).all():
            return scores[int(rows[0]) : int(rows[-1]) + 1]  # a view, not a copy
        return scores[rows]

    def _check(self, relation: int) -> Any:
        """Return all scores of a relation; InputError if their shape is wrong."""
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
    """Return scores in any form as a source for some relations.

    A mapping has ids of relations as keys. An array or `Factors` serves a single relation.
    """
    if isinstance(scores, Mapping):
        missing = [relation for relation in relations.tolist() if relation not in scores]
        if missing:
            raise UsageError(
                f"scores lack {len(missing):,} of {len(relations):,} relations, such as "
                f"{names(missing[0])!r} (id {missing[0]}); add them, or choose relations"
            )
        return _ScoresByRelation(scores, axes, names)
    if not isinstance(scores, Factors) and callable(scores):
        source: PairSource = scores
        return source
    if len(relations) != 1:
        raise UsageError(
            f"one matrix of pairs serves one relation, and {len(relations):,} are to be ranked; "
            "name one relation, or give a mapping from relations to their scores"
        )
    return _ScoresByRelation({int(relations[0]): scores}, axes, names)


def score_heads(source: PairSource, relation: int, heads: Int64, axes: PairAxes, name: str) -> Any:
    """Return the scores of heads: `Factors`, or a `ScoreBlock` with columns in id order.

    InputError if the source returns another shape or dtype.
    """
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
    block = ScoreBlock.from_scores(scores, name=where)
    if block.shape != (len(heads), len(axes.tails)):
        raise InputError(
            f"{where} have shape {block.shape} for {len(heads):,} heads; expected "
            f"({len(heads)}, {len(axes.tails)}): one row per head, one column per tail"
        )
    pieces = [piece.array for piece in block.pieces()]
    array: Array = pieces[0] if len(pieces) == 1 else np.concatenate(pieces)
    array = array if axes.columns_in_order else array[:, axes.columns]
    return replace(block, array=array)
