"""Stratified averages (Mohamed et al., section 4): popularity decides the weight."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from kgtrec import _core
from kgtrec._internal.arrays import Bools, Float64, Int32, Int64
from kgtrec._internal.csr import number_values, order_by
from kgtrec.errors import InputError, UsageError
from kgtrec.measures.averaging import (
    SIDES,
    instance_ties,
    require_graph,
    require_side,
    sides_present,
)
from kgtrec.measures.measure import Measure, parse_all

if TYPE_CHECKING:
    from kgtrec.ranking.ranks import Ranks


DEFAULT_METRICS = ("mrr", "hits@1", "hits@3", "hits@10")


def stratified_grid(
    ranks: Ranks,
    beta_e: ArrayLike,
    beta_r: ArrayLike,
    metrics: Iterable[str] = DEFAULT_METRICS,
    rank_type: str = "realistic",
    side: str = "both",
) -> Float64:
    """Stratified metrics at every point of a grid of exponents, in one native pass.

    Each value equals the key ``side.rank_type.stratified.metric(beta_e,beta_r)`` of a result.
    Entities are weighted by ``popularity ** -beta_e`` and relations by ``popularity ** -beta_r``: a
    positive exponent favours rare ones, (0, -1) is the micro average, (0, 0) the mean over
    relations. The default popularities are those of `Ranks`.

    Parameters
    ----------
    ranks : Ranks
        One row per instance, in any order: the result has the same bits.
    beta_e, beta_r : array_like of float, shapes (e,) and (r,)
        Exponents for entities and for relations, in [-1, 1], in any order.
    metrics : iterable of str
        Metrics with a stratified average: "mr", "mrr", "hits@10", "log_mrr", "p_mrr@0.5" or an
        alias of one.
    rank_type : {"optimistic", "realistic", "pessimistic", "expected", "ordinal"}
        How ties count; "expected" is each metric's exact expectation.
    side : {"head", "tail", "both"}
        Side of the predicted entity. On a single side the entity weights cancel.

    Returns
    -------
    float64 array (metrics, e, r)
        In the range and unit of each metric.

    Raises
    ------
    UsageError
        Unknown metrics (all are named), rank type or side, a side that the ranks do not hold, or
        exponents that are not a list of numbers in [-1, 1].
    InputError
        No ranks; an entity or relation with popularity 0 would need an infinite weight (for an
        exponent above 0), or no item has a weight (for an exponent below 0).

    Notes
    -----
    Mohamed et al. 2020, section 4. Sums are float64 in a fixed order (relation, triple, side).

    Examples
    --------
    >>> betas = np.linspace(-1, 1, 41)
    >>> mrr, hits = stratified_grid(ranks, betas, betas, ["mrr", "hits@10"])  # doctest: +SKIP
    """
    names = [metrics] if isinstance(metrics, str) else list(metrics)
    keys = [f"{side}.{rank_type}.stratified.{name}(0,0)" for name in names]
    parse_all(keys)  # to name all bad ones at once
    exponents = _exponents("beta_e", beta_e), _exponents("beta_r", beta_r)
    present = sides_present(ranks)
    measures = [Measure.parse(key) for key in keys]
    for measure in measures:
        require_graph(measure, ranks)
        require_side(measure, measure.side, present)
    ties = instance_ties(ranks)
    values = np.empty((len(measures), len(ranks)))
    for line, measure in zip(values, measures, strict=True):
        line[:] = measure.per_item(ties)
    return average_strata(values, Strata.from_ranks(ranks, side), *exponents)


def _exponents(name: str, values: ArrayLike) -> Float64:
    """Convert exponents to float64; UsageError unless they are a list of numbers in [-1, 1]."""
    try:
        betas = np.asarray(values, np.float64)
    except (TypeError, ValueError):
        raise UsageError(f"{name} is {values!r}; give a list of numbers in [-1, 1]") from None
    if betas.ndim != 1:
        raise UsageError(f"{name} has shape {betas.shape}; give a list of numbers in [-1, 1]")
    outside = betas[~(np.abs(betas) <= 1)]
    if len(outside):
        raise UsageError(f"{name} contains {outside[0]:g}; exponents must be in [-1, 1]")
    return np.ascontiguousarray(betas)


class Strata(NamedTuple):
    """Instances of a side by relation and triple, and their popularities.

    - rows, int64 (m,): Rows of the ranks on the asked side, ordered by relation, triple and side.
    - triples, int64 (triples + 1,): Offsets into `rows`: the start of each triple's instances.
    - relations, int64 (relations + 1,): Offsets into the triples: the start of each relation's
      triples.
    - popularity_of, int32 (m,): Index into `popularity` of the entity that the instance predicts.
    - popularity, float64 (p,): Distinct numbers of triples that contain predicted entities,
      ascending.
    - relation_popularity, float64 (relations,): Triples of each relation.
    - counted_on: Splits in which triples of entities, and of relations, were counted, in words.
    """

    rows: Int64
    triples: Int64
    relations: Int64
    popularity_of: Int32
    popularity: Float64
    relation_popularity: Float64
    counted_on: tuple[str, str]

    @classmethod
    def from_ranks(cls, ranks: Ranks, side: str) -> Strata:
        """Order the rows of `ranks` on `side`, and look up their popularities."""
        rows = np.flatnonzero(np.isin(ranks.side, SIDES[side]))
        rows = rows[order_by(ranks.relation[rows], ranks.triple[rows], ranks.side[rows])]
        triple, relation = ranks.triple[rows], ranks.relation[rows]
        changes = (np.diff(triple) != 0) | (np.diff(relation) != 0)
        triples = _offsets(changes)
        relations = _offsets(np.diff(relation[triples[:-1]]) != 0)
        owners = rows[triples[relations[:-1]]]
        popularity, index = number_values(ranks.answer_popularity[rows])
        named = ranks.provenance.popularity  # if it was recounted
        counted_on = (
            " and ".join(named.get("entities", ())) or "all splits",
            " and ".join(named.get("relations", ())) or "the evaluated split",
        )
        return cls(
            rows,
            triples,
            relations,
            index.astype(np.int32),
            popularity.astype(np.float64),
            ranks.relation_popularity[owners].astype(np.float64),
            counted_on,
        )


def _offsets(changes: Bools) -> Int64:
    """Return the offsets of runs, int64; ``changes[i]`` is true if item i + 1 begins a run."""
    return np.concatenate(([0], np.flatnonzero(changes) + 1, [len(changes) + 1]))


def average_strata(values: Float64, strata: Strata, beta_e: Float64, beta_r: Float64) -> Float64:
    """Compute stratified means of several metrics at every point of a grid.

    Per triple the values of its head and tail instance are averaged with weights
    ``popularity(predicted entity) ** -beta_e``; on a single side, or for a triple with only one
    asked side, the entity weights cancel. Triples are averaged within relations, and
    relations with weights ``popularity(relation) ** -beta_r``.

    Shapes: values float64 (metrics, n) -> float64 (metrics, e, r).
    """
    entity = strata.popularity[strata.popularity_of] > 0
    in_every_triple = np.logical_or.reduceat(entity, strata.triples[:-1]).all()
    _refuse(entity, bool(in_every_triple), beta_e, "answer entities", strata.counted_on[0])
    relation = strata.relation_popularity > 0
    _refuse(relation, bool(relation.any()), beta_r, "relations", strata.counted_on[1])
    out = np.empty((len(values), len(beta_e), len(beta_r)))
    _core.stratify(
        strata.relations,
        strata.triples,
        strata.rows,
        strata.popularity_of,
        strata.popularity,
        strata.relation_popularity,
        values,
        beta_e,
        beta_r,
        out,
    )
    return out


def _refuse(known: Bools, enough: bool, betas: Float64, noun: str, splits: str) -> None:
    """Refuse popularity 0: its weight is infinite for beta > 0, and 0 for beta < 0."""
    missing = int(np.count_nonzero(~known))
    refused = betas[(betas > 0) | ((betas < 0) & (not enough))]
    if missing and len(refused):
        raise InputError(
            f"{missing:,} {noun} have popularity 0 in {splits}, so a weight N^{-refused[0]:g} "
            "is not defined; count popularity in splits that contain them (the evaluated split, or "
            "all splits), or use beta 0"
        )
