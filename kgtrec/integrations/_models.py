"""Adapter for all model libraries: triples become questions, a model's scores become rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import torch

from kgtrec._internal.arrays import Int64
from kgtrec.errors import InputError, UsageError
from kgtrec.questions.api import Graph, Questions
from kgtrec.questions.terms import NAMES
from kgtrec.ranking.ranker import Batch, Ranker
from kgtrec.results.result import Result, evaluate

Score = Callable[[torch.Tensor, torch.Tensor, str], torch.Tensor]


def ids_of(tensor: Any) -> Int64:
    """Copy ids of a tensor to the host: int64."""
    array: Int64 = torch.as_tensor(tensor).detach().cpu().numpy().astype(np.int64)
    return array


def as_triples(heads: Any, relations: Any, tails: Any) -> Int64:
    """Join three tensors of ids to triples: int64, shape (n, 3)."""
    columns = [ids_of(ids) for ids in (heads, relations, tails)]
    if len({column.shape for column in columns}) > 1 or columns[0].ndim != 1:
        shapes = ", ".join(str(column.shape) for column in columns)
        raise InputError(f"heads, relations and tails have the shapes {shapes}; expected (n,) each")
    return np.stack(columns, axis=1)


def require_entity_sides(sides: str) -> None:
    """Raise UsageError if the relation is asked, for libraries whose models score only entities."""
    if sides == "relation":
        raise UsageError(
            "sides='relation': this library's models score entities only; rank your own scores "
            "with graph.questions(sides='relation')"
        )


def questions_of(
    triples: Int64,
    known: Iterable[Int64] | None,
    sizes: tuple[int, int],
    sides: str,
    **restricted: Any,
) -> Questions:
    """Make questions of triples, which filter out ``known`` triples, too; None: no filter.

    - sizes: Numbers of entities and relations.
    - restricted: Options of `Graph.questions` that restrict the questions.
    """
    graph = Graph.from_arrays(test=triples, n_entities=sizes[0], n_relations=sizes[1])
    if known is None:
        return graph.questions(sides=sides, filter="raw", **restricted)
    extra = np.concatenate([np.empty((0, 3), dtype=np.int64), *known])
    return graph.questions(sides=sides, extra_known=extra, **restricted)


def evaluate_triples(
    score: Score,
    model: torch.nn.Module,
    triples: Int64,
    known: Iterable[Int64] | None,
    sizes: tuple[int, int],
    sides: str,
    batch_size: int,
    **options: Any,
) -> Result:
    """Rank the answers of triples; arguments as for `questions_of`."""
    questions = questions_of(triples, known, sizes, sides)
    device = next(model.parameters()).device
    return evaluate_model(score, model, questions, batch_size, device, **options)


def evaluate_model(
    score: Score,
    model: torch.nn.Module,
    questions: Questions,
    batch_size: int,
    device: Any,
    **options: Any,
) -> Result:
    """Rank ``score(entity, relation, asked side)`` batch by batch, in evaluation mode.

    If the relation is asked, the call is ``score(head, tail, "relation")``.
    """
    was_training = model.training
    model.eval()

    def scores(batch: Batch) -> torch.Tensor:
        second = batch.relation if batch.tail is None else batch.tail
        first, other = (torch.from_numpy(ids).to(device) for ids in (batch.entity, second))
        return score(first, other, NAMES[int(batch.side[0])])

    ranker = Ranker(questions)  # only for its batches
    try:
        with torch.inference_mode():
            return evaluate(map(scores, ranker.batches(batch_size)), questions, **options)
    finally:
        model.train(was_training)
