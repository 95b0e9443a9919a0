"""The triples of some splits, which every statistic of a graph asks for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from kgtrec.errors import UsageError
from kgtrec.graph.triples import drop_duplicates

if TYPE_CHECKING:
    from kgtrec.graph.graph import GraphData

__all__ = ["SplitNames", "named_splits", "triples_of"]

SplitNames = str | Iterable[str] | None
"""Names of splits: one, several ("train,valid" or a list), or None for all."""


def named_splits(graph: GraphData, splits: SplitNames = None) -> tuple[str, ...]:
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
    graph: GraphData, splits: SplitNames = None, distinct: bool = False
) -> npt.NDArray[np.int32]:
    """Triples of the named splits, one split after the other; int32 array (n, 3).

    A triple that stands in several of them comes several times, unless `distinct`.
    """
    rows = np.concatenate([graph.splits[name] for name in named_splits(graph, splits)])
    return drop_duplicates(rows) if distinct else rows
