"""TorchKGE: its models on a `KnowledgeGraph`, through their ``inference_*`` functions.

Examples
--------
>>> evaluate(model, kg_test, known=[kg_train, kg_val])    # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from kgtrec.integrations._models import as_triples, evaluate_triples
from kgtrec.results.result import Result


def evaluate(
    model: Any,
    kg: Any,
    *,
    known: Sequence[Any] | None = (),
    sides: str = "both",
    batch_size: int = 64,
    **options: Any,
) -> Result:
    """Rank a model on the facts of a graph; see `kgtrec.integrations`.

    TorchKGE's own evaluators give pessimistic ranks; for relations use ``sides="relation"``.

    Parameters
    ----------
    model : torchkge.models.Model
    kg : torchkge.data_structures.KnowledgeGraph
        Facts to evaluate. Filters out all facts that it knows, as TorchKGE's evaluators do:
        ``split_kg()`` keeps those of all splits in its ``dict_of_heads`` and ``dict_of_tails``.
    known : sequence of KnowledgeGraph, or None
    sides : {"both", "head", "tail", "relation"}
    """

    def score(entity: torch.Tensor, relation: torch.Tensor, side: str) -> torch.Tensor:
        if side == "relation":
            head, tail, _, candidates = model.inference_prepare_candidates(
                entity, relation, torch.zeros_like(entity), entities=False
            )
            return model.inference_scoring_function(head, tail, candidates)
        # Also looks up the asked entity, which is not used.
        heads, tails, relations, candidates = model.inference_prepare_candidates(
            entity, entity, relation, entities=True
        )
        if side == "head":
            return model.inference_scoring_function(candidates, tails, relations)
        return model.inference_scoring_function(heads, candidates, relations)

    return evaluate_triples(
        score,
        model,
        _triples(kg),
        None if known is None else map(_all_facts, (kg, *known)),
        (model.n_ent, model.n_rel),
        sides,
        batch_size,
        **options,
    )


def _triples(kg: Any) -> Any:
    return as_triples(kg.head_idx, kg.relations, kg.tail_idx)


def _all_facts(kg: Any) -> Any:
    """Return all facts of a graph and of its dictionaries: int64, shape (n, 3)."""
    facts = [(h, r, t) for (t, r), heads in kg.dict_of_heads.items() for h in heads]
    facts += [(h, r, t) for (h, r), tails in kg.dict_of_tails.items() for t in tails]
    listed = np.array(facts, dtype=np.int64).reshape(-1, 3)
    return np.unique(np.concatenate([_triples(kg), listed]), axis=0)
