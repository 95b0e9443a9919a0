"""LibKGE: an evaluation job by module name, and a function over a model and its data set.

The library is on no package index, so this is tested against a stand-in with its interface alone:
``model.score_sp``, ``model.score_po``, ``dataset.split``, ``num_entities``, ``num_relations``.

In a configuration of LibKGE::

    modules: [kge.job, kge.model, kge.model.embedder, kgtrec.integrations.libkge]
    entity_ranking.class_name: KgtrecJob

Examples
--------
>>> evaluate(model, dataset, "valid", known=["train"])    # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from kge.job import EvaluationJob

from kgtrec.integrations._models import evaluate_model, questions_of
from kgtrec.results.result import Result

__all__ = ["KgtrecJob", "evaluate"]

_TRACED = {"mean_rank": "mr", "mean_reciprocal_rank": "mrr", "hits_at_1": "hits@1",
           "hits_at_3": "hits@3", "hits_at_10": "hits@10"}  # fmt: skip


def evaluate(
    model: Any,
    dataset: Any,
    split: str = "test",
    *,
    known: Sequence[str] | None = ("train", "valid", "test"),
    sides: str = "both",
    batch_size: int = 256,
    **options: Any,
) -> Result:
    """Rank a model of LibKGE on a split, with every number of kgtrec.

    LibKGE's own job takes scores as tied that are close (``tie_atol``), and rounds ranks of ties:
    its numbers differ from these in the last digits.

    Parameters
    ----------
    model : kge.model.KgeModel
    dataset : kge.Dataset
    split : str
    known : sequence of str, or None
        Splits that are filtered out. None: nothing is filtered.
    sides : {"both", "head", "tail"}
    batch_size : int
        Questions scored at a time.
    **options
        As for `kgtrec.evaluate`.
    """
    questions = questions_of(
        _triples(dataset, split),
        None if known is None else [_triples(dataset, name) for name in known],
        dataset.num_entities(),
        dataset.num_relations(),
        sides,
    )

    def score(entity: torch.Tensor, relation: torch.Tensor, side: str) -> torch.Tensor:
        if side == "head":
            return model.score_po(relation, entity)
        return model.score_sp(entity, relation)

    return evaluate_model(score, model, questions, batch_size, **options)


def _triples(dataset: Any, split: str) -> Any:
    return np.asarray(dataset.split(split).cpu(), dtype=np.int64)


class KgtrecJob(EvaluationJob):
    """LibKGE's entity ranking with the ranks of kgtrec.

    The trace has ``mean_rank``, ``mean_reciprocal_rank`` and ``hits_at_1``, 3 and 10, raw,
    ``_filtered`` and, on the validation split, ``_filtered_with_test``.

    Attributes
    ----------
    results : dict of str to Result
        Of the last run, by the ending of the trace's names.
    """

    results: dict[str, Result]

    def _prepare(self) -> None:
        """Nothing to index: known triples are sorted when they are asked."""
        super()._prepare()

    def _evaluate(self) -> None:
        splits = [*self.config.get("entity_ranking.filter_splits"), self.eval_split]
        known: dict[str, list[str] | None] = {"": None, "_filtered": splits}
        if "test" not in splits:
            known["_filtered_with_test"] = [*splits, "test"]
        self.results = {
            ending: evaluate(
                self.model, self.dataset, self.eval_split, known=chosen, batch_size=self.batch_size
            )
            for ending, chosen in known.items()
        }
        self.current_trace["epoch"].update(
            {
                name + ending: result[f"both.realistic.micro.{metric}"]
                for ending, result in self.results.items()
                for name, metric in _TRACED.items()
            }
        )
