"""Stratified averages (Mohamed et al., section 4): popularity decides the weight."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kgtrec.errors import InputError
from kgtrec.measures.sample import SIDES

if TYPE_CHECKING:
    from kgtrec.ranks import Ranks

__all__ = ["Strata", "stratified_mean"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Strata:
    """What the weights of a set of instances depend on; a β-grid shares one.

    Attributes
    ----------
    rows : int64 array (m,)
        Rows of the ranks on the asked side.
    triple : int64 array (m,)
        Position of each row's triple among the distinct triples.
    answer_popularity : int64 array (m,)
        Triples in which the entity predicted by the row stands.
    relation : int64 array (triples,)
        Position of each triple's relation among the distinct relations.
    relation_popularity : int64 array (relations,)
        Triples of each distinct relation.
    """

    rows: Ints
    triple: Ints
    answer_popularity: Ints
    relation: Ints
    relation_popularity: Ints

    @classmethod
    def of(cls, ranks: Ranks, side: str) -> Strata:
        """Group the rows of `ranks` on `side` by triple and the triples by relation."""
        rows = np.flatnonzero(np.isin(ranks.side, SIDES[side]))
        _, first, triple = np.unique(ranks.triple[rows], return_index=True, return_inverse=True)
        owners = rows[first]
        _, first, relation = np.unique(
            ranks.relation[owners], return_index=True, return_inverse=True
        )
        popularity = ranks.relation_popularity[owners[first]]
        return cls(rows, triple, ranks.answer_popularity[rows], relation, popularity)


def stratified_mean(values: Floats, strata: Strata, beta_e: float, beta_r: float) -> float:
    """Stratified mean of a metric.

    Per triple the values of its head and tail instance are averaged with weights
    ``popularity(predicted entity) ** -beta_e``; on a single side, or for a triple of which only
    one side was asked, the entity weights cancel. Triples are averaged within relations, and
    relations with weights ``popularity(relation) ** -beta_r``.

    Parameters
    ----------
    values : float64 array
        The metric's value for every row of the ranks (not only of the asked side).
    strata : Strata
        From the same ranks.
    beta_e, beta_r : float
        In [-1, 1].

    Raises
    ------
    InputError
        An entity or relation with popularity 0 would need an infinite weight (beta > 0), or
        nothing with a weight is left (beta < 0).
    """
    weight = _weights(strata.answer_popularity, beta_e, ENTITIES)
    norm = np.bincount(strata.triple, weight)
    if not norm.all():
        raise _weightless(strata.answer_popularity, beta_e, ENTITIES)
    total = np.bincount(strata.triple, weight * values[strata.rows])
    within = np.bincount(strata.relation, total / norm) / np.bincount(strata.relation)
    share = _weights(strata.relation_popularity, beta_r, RELATIONS)
    if not share.any():
        raise _weightless(strata.relation_popularity, beta_r, RELATIONS)
    return float(np.sum(share * within) / np.sum(share))


ENTITIES = "answer entities", "all splits"
RELATIONS = "relations", "the evaluated split"


def _weights(popularity: Ints, beta: float, what: tuple[str, str]) -> Floats:
    if beta > 0 and not popularity.all():
        raise _weightless(popularity, beta, what)
    return popularity.astype(np.float64) ** -beta


def _weightless(popularity: Ints, beta: float, what: tuple[str, str]) -> InputError:
    missing = int(np.count_nonzero(popularity == 0))
    return InputError(
        f"{missing:,} {what[0]} have popularity 0, which has no usable weight N^{-beta:g}; "
        f"it was counted on {what[1]}: count it on splits in which they stand, or take beta 0"
    )
