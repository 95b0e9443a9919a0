"""torchmetrics: a metric with ``update``, ``compute`` and ``reset``, for one or many processes.

Examples
--------
>>> metric = LinkPrediction(questions)                                       # doctest: +SKIP
>>> metric.update(scores, triples, "tail")  # in validation_step             # doctest: +SKIP
>>> metric.compute()                        # {"both.realistic.micro.mrr": ...}  # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
import torchmetrics

from kgtrec.errors import UsageError, choose
from kgtrec.measures import parse_all
from kgtrec.questions.api import Questions
from kgtrec.ranking.ranker import Ranker
from kgtrec.results.result import Result

METRICS = ("mrr", "hits@1", "hits@3", "hits@10", "mr")


class LinkPrediction(torchmetrics.Metric):
    """Link prediction as a metric of torchmetrics.

    Batches may come in any order, in any number of processes. Rows that a distributed sampler
    repeats count once. Scores may be on any device, and are not kept.

    Parameters
    ----------
    questions : Questions
        From ``graph.questions()``; they define what is evaluated and filtered.
    measures : sequence of str
        Keys of the values of `compute`. If the questions ask only one side, that is their side.
    rows : {"instances", "questions"}
        What a row of scores represents, as for `kgtrec.Ranker`.
    incomplete : {"error", "nan"}
        What `compute` does before all rows are scored: UsageError, or NaN. Lightning's sanity
        check, which validates on a few batches, needs NaN.
    columns : sequence or mapping, optional
        The model's own numbering of entities.
    **options
        As for every `torchmetrics.Metric`.
    """

    higher_is_better = None
    is_differentiable = False
    full_state_update = True

    def __init__(
        self,
        questions: Questions,
        measures: Sequence[str] | None = None,
        *,
        rows: str = "instances",
        incomplete: str = "error",
        columns: Any = None,
        higher_scores_are_better: bool = True,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        choose("incomplete", incomplete, ("error", "nan"))
        self.questions, self.incomplete = questions, incomplete
        self.measures = keys_of(questions, measures)
        self._options: dict[str, Any] = {
            "rows": rows,
            "columns": columns,
            "higher_is_better": higher_scores_are_better,
        }
        self._ranker = self._empty()
        self._merged: Ranker | None = None
        # torchmetrics itself reduces this state; _sync_dist merges ranks.
        self.add_state("rows_given", default=torch.tensor(0), dist_reduce_fx="sum")

    def _empty(self) -> Ranker:
        return Ranker(self.questions, duplicates="ignore", **self._options)

    def update(self, scores: Any, triples: Any, side: str | None = None) -> None:
        """Rank one batch.

        Parameters
        ----------
        scores : tensor or array, shape (n, n_entities)
        triples : tensor or array of int, shape (n, 3) or (n,)
            The triples whose side is asked; or without a side the ids of the rows (`Ranker`).
        side : {"head", "tail"}, optional
        """
        if not len(scores):
            return  # a process without rows of a small last batch
        rows = triples if side is None else self._ranker.rows_of(triples, side)
        self._ranker.update(rows, scores)
        self.rows_given += len(scores)

    def compute(self) -> dict[str, torch.Tensor]:
        """Return every measure by its key, as a float64 scalar."""
        result = self.result()
        values = {key: float("nan") if result is None else result[key] for key in self.measures}
        return {
            key: torch.tensor(value, dtype=torch.float64 if self.device.type != "mps" else None)
            for key, value in values.items()
        }

    def result(self) -> Result | None:
        """Return kgtrec's result; with ``incomplete="nan"`` None while rows are missing."""
        ranker = self._merged or self._ranker
        if self.incomplete == "nan" and ranker.n_scored < ranker.n_rows:
            return None
        return Result(ranker.finish()[0])

    def reset(self) -> None:
        """Forget all ranked rows."""
        super().reset()
        self._ranker, self._merged = self._empty(), None

    def merge_state(self, incoming_state: Any) -> None:
        """Add the ranked rows of another metric for the same questions.

        Parameters
        ----------
        incoming_state : LinkPrediction
            Rows in both count once.

        Raises
        ------
        UsageError
            A dict of states, which holds no ranks, or a metric with other questions or settings.
        """
        if not isinstance(incoming_state, LinkPrediction):
            raise UsageError(
                f"merge_state needs a LinkPrediction; got {type(incoming_state).__name__}"
            )
        if incoming_state._ranker.n_scored:
            self._ranker.merge(incoming_state._ranker)
        self.rows_given += incoming_state.rows_given.to(self.device)
        self._update_count += incoming_state._update_count
        self._computed = None

    def _sync_dist(
        self, dist_sync_fn: Callable[..., Any] | None = None, process_group: Any = None
    ) -> None:
        gather = dist_sync_fn or torchmetrics.utilities.distributed.gather_all_tensors
        super()._sync_dist(gather, process_group)
        group = process_group or self.process_group
        merged = self._empty()
        for sent in gather(_rows_as_bytes(self._ranker).to(self.device), group=group):
            if len(sent) > 1:
                with TemporaryDirectory() as folder:
                    sent.cpu().numpy().tofile(path := Path(folder, "rows"))
                    merged.merge(path)
        self._merged = merged

    def unsync(self, should_unsync: bool = True) -> None:
        """Continue with the rows that this process has ranked."""
        super().unsync(should_unsync)
        if should_unsync:
            self._merged = None

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for copies and pickles: the ranks, without the ranker's lock."""
        state = dict(super().__getstate__())
        state["_ranker"] = self._ranker.partial() if self._ranker.n_scored else None
        return state | {"_merged": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        ranked = state.pop("_ranker")
        super().__setstate__(state)
        self._ranker = self._empty()
        if ranked is not None:
            self._ranker.merge(ranked)


def keys_of(questions: Questions, measures: Sequence[str] | None) -> list[str]:
    """Return the measures, or the default ones of the questions; UsageError for unknown ones."""
    usual = [f"{questions.sides}.realistic.micro.{metric}" for metric in METRICS]
    keys = usual if measures is None else list(measures)
    parse_all(keys)
    return keys


def _rows_as_bytes(ranker: Ranker) -> torch.Tensor:
    """Return a ranker's rows as the bytes of their file, or one byte if there are no rows.

    Every backend can gather bytes.
    """
    if not ranker.n_scored:
        return torch.zeros(1, dtype=torch.uint8)
    with TemporaryDirectory() as folder:
        ranker.save(path := Path(folder, "rows"))
        return torch.from_numpy(np.fromfile(path, np.uint8))
