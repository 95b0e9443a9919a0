"""LibKGE: an evaluation job by module name, and a function for a model and its data set.

No package index has the library, so tests use a stand-in with only its interface:
``model.score_sp``, ``model.score_po``, ``dataset.split``, ``num_entities``, ``num_relations``.
Defaults, the rule for ties and a job's entries in the trace follow its sources
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
from collections.abc import Sequence
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
    """Rank a model of LibKGE on a split; see `kgtrec.integrations`.

    LibKGE's own job treats close scores as tied (here: ``atol=1e-5, rtol=1e-4``), and rounds the
    mean rank of ties up. `KgtrecJob` gives its numbers.

    Parameters
    ----------
    model : kge.model.KgeModel
    dataset : kge.Dataset
    split : str
    known : sequence of str, or None
        Splits to filter out.
    """
    require_entity_sides(sides)

    def score(entity: torch.Tensor, relation: torch.Tensor, side: str) -> torch.Tensor:
        head = side == "head"
        return model.score_po(relation, entity) if head else model.score_sp(entity, relation)

    return evaluate_triples(
        score,
        model,
        ids_of(dataset.split(split)),
        None if known is None else [ids_of(dataset.split(name)) for name in known],
        (dataset.num_entities(), dataset.num_relations()),
        sides,
        batch_size,
        **options,
    )


class KgtrecJob(EvaluationJob):
    """LibKGE's entity ranking with the ranks of kgtrec, by its rule for ties.

    The trace has ``mean_rank``, ``mean_reciprocal_rank`` and the ``hits_at_k`` of
    ``entity_ranking.hits_at_k_s`` up to the number of entities, raw and ``_filtered``; also
    ``_filtered_with_test`` if test is not yet filtered and ``entity_ranking.filter_with_test`` is
    on. They are the numbers of LibKGE's own job, with the tolerances and the rank type of
    ``entity_ranking.tie_handling`` (by default 1e-5, 1e-4 and ``rounded_mean_rank``). For the parts
    of ``entity_ranking.metrics_per``, use slices of `results`.

    Attributes
    ----------
    results : dict of str to Result
        Results of the last run, by the ending of the trace's names. They have the same
        tolerances and take kgtrec's keys (``results["_filtered"]["both.micro.mrr"]``).
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
                self.model,
                self.dataset,
                self.eval_split,
                known=chosen,
                batch_size=self.batch_size,
                atol=atol,
                rtol=rtol,
            )
            for ending, chosen in known.items()
        }
        largest = self.dataset.num_entities()
        ks = _option(self.config, "entity_ranking.hits_at_k_s", _HITS)
        trace = self.current_trace["epoch"]
        for ending, result in self.results.items():
            values = _trace_values(result.ranks, kind, [k for k in ks if k <= largest])
            trace.update((name + ending, value) for name, value in values.items())
        trace.update(epoch_time=time.monotonic() - started, event="eval_completed")

    def _begin_trace(self, splits: list[str]) -> None:
        """Make the epoch's entry, as LibKGE expects, and run the hooks that may change it."""
        size = len(self.dataset.split(self.eval_split))
        self.current_trace["epoch"] = {
            "type": "entity_ranking",
            "scope": "epoch",
            "split": self.eval_split,
            "filter_splits": splits,
            "epoch": self.epoch,
            "size": size,
            "batches": -(-size // self.batch_size),
        }
        for hook in self.pre_epoch_hooks:
            hook(self)


def _option(config: Any, key: str, default: Any) -> Any:
    """Return an option, or the default for versions of LibKGE without it."""
    try:
        return config.get(key)
    except KeyError:
        return default


def _tie_handling(config: Any) -> tuple[str, float, float]:
    """Return the rank type of ties, atol and rtol. Early versions of LibKGE have no tolerances."""
    handling = _option(config, _TIES, {})
    if isinstance(handling, str):
        return handling, 0.0, 0.0
    return (
        handling.get("type", "rounded_mean_rank"),
        float(handling.get("atol", _ATOL)),
        float(handling.get("rtol", _RTOL)),
    )


def _trace_values(counts: Ranks, kind: str, hits: Sequence[int]) -> dict[str, float]:
    """Average LibKGE's ranks, whose ties include the answer itself; return values by name."""
    equal = counts.equal
    behind = {"rounded_mean_rank": (equal + 1) // 2, "best_rank": 0 * equal, "worst_rank": equal}
    choose(f"{_TIES}.type", kind, behind)
    ranks = counts.greater + behind[kind] + 1
    means = {"mean_rank": ranks, "mean_reciprocal_rank": 1 / ranks}
    means |= {f"hits_at_{k}": ranks <= k for k in hits}
    return {name: float(np.mean(values)) for name, values in means.items()}
