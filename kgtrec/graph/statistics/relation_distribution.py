"""Relation distributions of sets of triples: ratios (Zhou et al. 2022, Eq. 1) and divergence."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kgtrec._internal.table import Cell, Table
from kgtrec.errors import InputError
from kgtrec.graph.statistics.splits import triples_of

if TYPE_CHECKING:
    from kgtrec.graph.graph import GraphData

__all__ = ["checked_counts", "kl_divergence", "relation_ratios", "split_divergences"]

Floats = NDArray[np.float64]


def relation_ratios(counts: ArrayLike) -> Floats:
    """Share of each relation, n_p / N (Eq. 1): float64 array, sum 1.

    Parameters
    ----------
    counts : array_like (n_relations,)
        Triples of each relation, such as ``graph.relation_counts("test")``.

    Raises
    ------
    InputError
        Not one number at least 0 per relation, or all 0.
    """
    numbers = checked_counts("counts", counts)
    total = numbers.sum()
    if not total > 0:
        raise InputError("the counts of all relations are 0, which makes no ratios")
    return np.asarray(numbers / total)


def kl_divergence(reference: ArrayLike, other: ArrayLike, smoothing: float = 1.0) -> float:
    """KL(reference || other) of two relation distributions, in nats, at least 0.

    Parameters
    ----------
    reference, other : array_like (n_relations,)
        Triples of each relation. The published values take the set that was drawn from as the
        reference: the original test set, or the whole graph.
    smoothing : float
        Added to every count of both, so that relations that are missing somewhere have a share.
        The published values add 1 over all relations of the graph.

    Returns
    -------
    float
        Infinite without smoothing where the reference has a relation that the other lacks.

    Raises
    ------
    InputError
        Counts of different lengths, negative, or all 0; a negative smoothing.
    """
    if not smoothing >= 0:
        raise InputError(f"smoothing {smoothing!r} is negative; the papers add 1")
    p, q = (
        relation_ratios(checked_counts(name, counts) + smoothing)
        for name, counts in (("reference", reference), ("other", other))
    )
    if len(p) != len(q):
        raise InputError(
            f"reference counts {len(p)} relations and other {len(q)}; count all relations of one "
            "graph in both"
        )
    held = p > 0
    with np.errstate(divide="ignore"):
        return float(np.sum(p[held] * np.log(p[held] / q[held])))


def split_divergences(graph: GraphData) -> Table:
    """KL(row || column) between the relation distributions of the splits and of the whole graph."""
    sets = {name: graph.relation_counts(name) for name in graph.splits}
    sets["all"] = np.bincount(triples_of(graph)[:, 1], minlength=graph.n_relations)
    rows: list[tuple[Cell, ...]] = [
        (name, *(kl_divergence(counts, other) for other in sets.values()))
        for name, counts in sets.items()
    ]
    return Table(("reference", *sets), ("reference", *sets), (4,) * (len(sets) + 1), rows)


def checked_counts(name: str, counts: ArrayLike) -> Floats:
    try:
        numbers = np.asarray(counts, np.float64)
    except (TypeError, ValueError):
        raise InputError(
            f"{name} are {counts!r}; give the number of triples per relation"
        ) from None
    if numbers.ndim != 1 or not len(numbers):
        raise InputError(f"{name} have shape {numbers.shape}; give one number per relation")
    wrong = numbers[~((numbers >= 0) & np.isfinite(numbers))]
    if len(wrong):
        raise InputError(f"{name} hold {wrong[0]:g}; numbers of triples are 0 or more")
    return numbers
