"""LibKGE: an evaluation job by module name, and a function over a model and its data set.

The library is on no package index, so this is tested against a stand-in with its interface alone:
``model.score_sp``, ``model.score_po``, ``dataset.split``, ``num_entities``, ``num_relations``.
Defaults, the rule for ties and what a job leaves in the trace are those of its sources
(https://github.com/uma-pi1/kge: ``kge/config-default.yaml``, ``kge/job/eval_entity_ranking.py`` and
``eval.py``, as of 2021 and later).

In a configuration of LibKGE::

    modules: [kge.job, kge.model, kge.model.embedder, kgtrec.integrations.libkge]
    entity_ranking.class_name: KgtrecJob

Examples
--------
>>> evaluate(model, dataset, "valid", known=["train"])    # doctest: +SKIP
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from kge.job import EvaluationJob

from kgtrec.errors import choose
from kgtrec.integrations._models import evaluate_triples, ids_of, require_entity_sides
from kgtrec.ranking.ranks import Ranks
from kgtrec.results.result import Result

_TIES = "entity_ranking.tie_handling"
_ATOL, _RTOL = 1e-5, 1e-4  # entity_ranking.tie_handling of LibKGE's config-default.yaml
_HITS = (1, 3, 10, 50, 100, 200, 300, 400, 500, 1000)  # its hits_at_k_s


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

    Its own job takes scores as tied that are close, which ``atol=1e-5, rtol=1e-4`` does here too,
    and rounds the mean rank of ties up; `KgtrecJob` has its numbers.

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
    require_entity_sides(sides)

    def score(entity: torch.Tensor, relation: torch.Tensor, side: str) -> torch.Tensor:
        head = side == "head"
        return model.score_po(relation, entity) if head else model.score_sp(entity, relation)

    return evaluate_triples(
        score, model, ids_of(dataset.split(split)),
        None if known is None else [ids_of(dataset.split(name)) for name in known],
        (dataset.num_entities(), dataset.num_relations()), sides, batch_size, **options,
    )  # fmt: skip


class KgtrecJob(EvaluationJob):
    """LibKGE's entity ranking with the ranks of kgtrec, by its rule for ties.

    The trace has ``mean_rank``, ``mean_reciprocal_rank`` and the ``hits_at_k`` of
    ``entity_ranking.hits_at_k_s`` up to the number of entities, raw, ``_filtered`` and, where test
    is not filtered yet and ``entity_ranking.filter_with_test`` is not off,
    ``_filtered_with_test``: the numbers of its own job, with the tolerances and the rank type of
    ``entity_ranking.tie_handling`` (by default 1e-5, 1e-4 and ``rounded_mean_rank``). What its job
    traces of parts (``entity_ranking.metrics_per``) is in `results`, by slices.

    Attributes
    ----------
    results : dict of str to Result
        Of the last run, by the ending of the trace's names: ranks with the same tolerances, of
        which kgtrec's keys are taken (``results["_filtered"]["both.micro.mrr"]``).
    """

    results: dict[str, Result]

    def _evaluate(self) -> None:
        started = time.monotonic()
        splits = list(self.config.get("entity_ranking.filter_splits"))
        splits += [self.eval_split] * (self.eval_split not in splits)
        self._begin_trace(splits)
        known: dict[str, list[str] | None] = {"": None, "_filtered": splits}
        with_test = _option(self.config, "entity_ranking.filter_with_test", True)
        if with_test and "test" not in splits:
            known["_filtered_with_test"] = [*splits, "test"]
        kind, atol, rtol = _tie_handling(self.config)
        self.results = {
            ending: evaluate(
                self.model, self.dataset, self.eval_split, known=chosen,
                batch_size=self.batch_size, atol=atol, rtol=rtol,
            )
            for ending, chosen in known.items()
        }  # fmt: skip
        largest = self.dataset.num_entities()
        ks = _option(self.config, "entity_ranking.hits_at_k_s", _HITS)
        trace = self.current_trace["epoch"]
        for ending, result in self.results.items():
            values = _traced(_ranks(result.ranks, kind), [k for k in ks if k <= largest])
            trace.update((name + ending, value) for name, value in values.items())
        trace.update(epoch_time=time.monotonic() - started, event="eval_completed")

    def _begin_trace(self, splits: list[str]) -> None:
        """The epoch's entry, which LibKGE leaves to its jobs, and the hooks that may change it."""
        size = len(self.dataset.split(self.eval_split))
        self.current_trace["epoch"] = {
            "type": "entity_ranking", "scope": "epoch", "split": self.eval_split,
            "filter_splits": splits, "epoch": self.epoch, "size": size,
            "batches": -(-size // self.batch_size),
        }  # fmt: skip
        for hook in self.pre_epoch_hooks:
            hook(self)


def _option(config: Any, key: str, default: Any) -> Any:
    """An option that not every version of LibKGE has."""
    try:
        return config.get(key)
    except KeyError:
        return default


def _tie_handling(config: Any) -> tuple[str, float, float]:
    """The rank type of ties and their tolerances; the first alone in early versions of LibKGE."""
    handling = _option(config, _TIES, {})
    if isinstance(handling, str):
        return handling, 0.0, 0.0
    return (
        handling.get("type", "rounded_mean_rank"),
        float(handling.get("atol", _ATOL)),
        float(handling.get("rtol", _RTOL)),
    )


def _ranks(ranks: Ranks, kind: str) -> Any:
    """LibKGE's ranks: its ties are those of the answer with itself, too."""
    choose(f"{_TIES}.type", kind, _BEHIND)
    return ranks.greater + _BEHIND[kind](ranks.equal) + 1


_BEHIND: dict[str, Callable[[Any], Any]] = {
    "rounded_mean_rank": lambda equal: (equal + 1) // 2,
    "best_rank": lambda equal: 0 * equal,
    "worst_rank": lambda equal: equal,
}


def _traced(ranks: Any, hits: Sequence[int]) -> dict[str, float]:
    means = {"mean_rank": ranks, "mean_reciprocal_rank": 1 / ranks}
    means |= {f"hits_at_{k}": ranks <= k for k in hits}
    return {name: float(np.mean(values)) for name, values in means.items()}
