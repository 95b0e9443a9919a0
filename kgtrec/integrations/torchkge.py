"""TorchKGE: its models on a `KnowledgeGraph`, through their ``inference_*`` functions.

Examples
--------
>>> evaluate(model, kg_test, known=[kg_train, kg_val])    # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from kgtrec.integrations._models import as_triples, evaluate_model, questions_of
from kgtrec.results.result import Result

__all__ = ["evaluate"]


def evaluate(
    model: Any,
    kg: Any,
    *,
    known: Sequence[Any] | None = (),
    sides: str = "both",
    batch_size: int = 64,
    **options: Any,
) -> Result:
    """Rank a model on the facts of a graph, with every number of kgtrec.

    TorchKGE's own evaluators give pessimistic ranks; that of relations is ``sides="relation"``.

    Parameters
    ----------
    model : torchkge.models.Model
    kg : torchkge.data_structures.KnowledgeGraph
        Facts to evaluate.
    known : sequence of KnowledgeGraph, or None
        Further facts that are filtered out, of the other splits. None: nothing is filtered.
    sides : {"both", "head", "tail", "relation"}
    batch_size : int
        Questions scored at a time.
    **options
        As for `kgtrec.evaluate`.
    """
    questions = questions_of(
        _triples(kg),
        None if known is None else [_triples(each) for each in known],
        model.n_ent,
        model.n_rel,
        sides,
    )

    def score(entity: torch.Tensor, relation: torch.Tensor, side: str) -> torch.Tensor:
        if side == "relation":
            head, tail, _, candidates = model.inference_prepare_candidates(
                entity, relation, torch.zeros_like(entity), entities=False
            )
            return model.inference_scoring_function(head, tail, candidates)
        # The entity that is asked is looked up too, and not used.
        heads, tails, relations, candidates = model.inference_prepare_candidates(
            entity, entity, relation, entities=True
        )
        if side == "head":
            return model.inference_scoring_function(candidates, tails, relations)
        return model.inference_scoring_function(heads, candidates, relations)

    return evaluate_model(score, model, questions, batch_size, **options)


def _triples(kg: Any) -> Any:
    return as_triples(kg.head_idx, kg.relations, kg.tail_idx)
