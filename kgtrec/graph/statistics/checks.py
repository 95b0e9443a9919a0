"""What every study asks of a graph: the triples of some splits, and whether ranks belong to it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kgtrec.errors import UsageError
from kgtrec.graph.triples import drop_duplicates

if TYPE_CHECKING:
    from kgtrec.graph.graph import Graph
    from kgtrec.ranking.ranks import Ranks

__all__ = ["SplitNames", "check_graph", "named_splits", "triples_of"]

SplitNames = str | Iterable[str] | None
"""Names of splits: one, several ("train,valid" or a list), or None for all."""


def named_splits(graph: Graph, splits: SplitNames = None) -> tuple[str, ...]:
    """The splits that are meant, each once, in the graph's order.

    Raises
    ------
    UsageError
        The graph lacks one of them, or none is named.
    """
    if splits is None or splits == "all":
        return tuple(graph.splits)
    names = splits.split(",") if isinstance(splits, str) else list(splits)
    names = [name.strip() if isinstance(name, str) else name for name in names]
    for name in names:
        graph.split(name)
    if not names:
        raise UsageError(f"no split is named; choose among {', '.join(graph.splits)}")
    return tuple(name for name in graph.splits if name in names)


def triples_of(
    graph: Graph, splits: SplitNames = None, distinct: bool = False
) -> npt.NDArray[np.int32]:
    """Triples of the named splits, one split after the other; int32 array (n, 3).

    A triple that stands in several of them comes several times, unless `distinct`.
    """
    rows = np.concatenate([graph.splits[name] for name in named_splits(graph, splits)])
    return drop_duplicates(rows, graph.n_entities, graph.n_relations) if distinct else rows


def check_graph(ranks: Ranks, graph: Graph) -> None:
    """Refuse a graph on which the ranks were not made.

    Raises
    ------
    UsageError
        The fingerprints differ, or ids of ranks without a manifest are out of range.
    """
    made_on: dict[str, Any] = ranks.manifest.get("questions", {})
    name = graph.name or "the graph"
    if made_on.get("graph_hash", graph.fingerprint) != graph.fingerprint:
        raise UsageError(
            f"{name} ({graph.n_entities:,} entities, {graph.n_relations:,} relations) is not the "
            f"graph that these ranks were made on ({made_on.get('graph_name') or 'without a name'}"
            f", {made_on.get('n_entities', 0):,} entities, {made_on.get('n_relations', 0):,} "
            "relations): labels or triples differ; give the folder that `kgtrec rank` was given"
        )
    for what, ids, size in (
        ("relation", ranks.relation, graph.n_relations),
        ("entity", ranks.answer, graph.n_entities),
    ):
        if len(ids) and not 0 <= ids.min() <= ids.max() < size:
            raise UsageError(
                f"the ranks hold {what} {ids.max()}, and {name} has {size:,} of them; "
                "give the graph that the ranks were made on"
            )
