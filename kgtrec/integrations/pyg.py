"""PyTorch Geometric: models of ``torch_geometric.nn.kge`` on both sides, filtered.

Examples
--------
>>> evaluate(model, test_data, known=[train_data, valid_data])    # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from kgtrec.errors import UsageError
from kgtrec.integrations._models import as_triples, evaluate_triples, require_entity_sides
from kgtrec.results.result import Result

# Bytes of the candidates' embeddings in one call of a model, which holds several such arrays.
# Each call returns larger arrays to the system, which costs more than additional calls.
_SCORED_BYTES = 4 << 20


def evaluate(
    model: Any,
    data: Any,
    *,
    known: Sequence[Any] | None = (),
    sides: str = "both",
    batch_size: int | None = None,
    **options: Any,
) -> Result:
    """Rank a model on the triples of a data object; see `kgtrec.integrations`.

    The model's own ``test`` asks only tails, unfiltered, and counts ranks from 0.

    Parameters
    ----------
    model : torch_geometric.nn.kge.KGEModel
        Or any module with ``num_nodes``, ``num_relations`` and ``forward(head, relation, tail)``.
    data : Data, or (heads, relations, tails)
        Triples to evaluate: with ``edge_index`` and ``edge_type``.
    known : sequence of the same, or None
        Usually the other splits.
    batch_size : int, optional
        By default as many questions as fit in 4 MiB of embeddings.
    """
    require_entity_sides(sides)
    every = torch.arange(model.num_nodes, device=next(model.parameters()).device)
    if batch_size is None:
        row_bytes = 4 * model.num_nodes * int(getattr(model, "hidden_channels", 100))
        batch_size = max(1, _SCORED_BYTES // row_bytes)

    def score(entity: torch.Tensor, relation: torch.Tensor, side: str) -> torch.Tensor:
        # The models expect one triple per row: no broadcasting.
        fixed = entity.repeat_interleave(len(every))
        relations, others = relation.repeat_interleave(len(every)), every.repeat(len(entity))
        pair = (others, relations, fixed) if side == "head" else (fixed, relations, others)
        return model(*pair).view(len(entity), len(every))

    return evaluate_triples(
        score,
        model,
        _triples(data),
        None if known is None else map(_triples, known),
        (model.num_nodes, model.num_relations),
        sides,
        batch_size,
        **options,
    )


def _triples(data: Any) -> Any:
    if hasattr(data, "edge_index"):
        return as_triples(data.edge_index[0], data.edge_type, data.edge_index[1])
    if not isinstance(data, (tuple, list)) or len(data) != 3:
        raise UsageError(
            f"data is of type {type(data).__name__}; pass a Data object with edge_index and "
            "edge_type, or (heads, relations, tails)"
        )
    return as_triples(*data)
