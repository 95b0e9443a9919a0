"""What functions over a model's scores share: questions of triples, and a loop over batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from kgtrec.errors import InputError, UsageError
from kgtrec.questions.api import Graph, Questions
from kgtrec.questions.questions import NAMES
from kgtrec.ranking.ranker import Batch, Ranker
from kgtrec.results.evaluate import evaluate
from kgtrec.results.result import Result

Int64 = npt.NDArray[np.int64]


def as_triples(heads: Any, relations: Any, tails: Any) -> Int64:
    """Triples of three tensors, shape (n, 3)."""
    columns = [torch.as_tensor(ids).detach().cpu().numpy() for ids in (heads, relations, tails)]
    if len({column.shape for column in columns}) > 1 or columns[0].ndim != 1:
        shapes = ", ".join(str(column.shape) for column in columns)
        raise InputError(f"heads, relations and tails have the shapes {shapes}; expected (n,) each")
    return np.stack(columns, axis=1).astype(np.int64)


def questions_of(
    triples: Int64,
    known: Iterable[Int64] | None,
    n_entities: int,
    n_relations: int,
    sides: str,
) -> Questions:
    """What triples ask of a model; ``known``: what else is filtered, None: nothing is."""
    graph = Graph.from_arrays(test=triples, n_entities=n_entities, n_relations=n_relations)
    if known is None:
        return graph.questions(sides=sides, filter="raw")
    empty = np.empty((0, 3), dtype=np.int64)
    return graph.questions(sides=sides, extra_known=np.concatenate([empty, *known]))


def require_entity_sides(sides: str) -> None:
    """UsageError if the relation is asked of a library whose models score entities alone."""
    if sides == "relation":
        raise UsageError(
            "sides='relation': this library's models score entities only; rank scores of your own "
            "with graph.questions(sides='relation')"
        )


def evaluate_model(
    score: Callable[[torch.Tensor, torch.Tensor, str], torch.Tensor],
    model: torch.nn.Module,
    questions: Questions,
    batch_size: int,
    **options: Any,
) -> Result:
    """Rank ``score(entity, relation, asked side)``, on the model's device, batch by batch.

    Where the relation is asked, ``score(head, tail, "relation")``.
    """
    device = next(model.parameters()).device
    was_training = model.training
    model.eval()

    def scores(batch: Batch) -> torch.Tensor:
        second = batch.relation if batch.tail is None else batch.tail
        first, other = (torch.from_numpy(ids).to(device) for ids in (batch.entity, second))
        return score(first, other, NAMES[int(batch.side[0])])

    ranker = Ranker(questions)  # for its batches alone
    try:
        with torch.inference_mode():
            return evaluate(map(scores, ranker.batches(batch_size)), questions, **options)
    finally:
        model.train(was_training)
