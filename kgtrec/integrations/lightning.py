"""Lightning: a callback that ranks a model at the end of every validation, for early stopping.

Examples
--------
>>> ranking = RankingCallback(graph.questions("valid", filter="valid"), score)      # doctest: +SKIP
>>> stopping = EarlyStopping(monitor="both.realistic.micro.mrr", mode="max")        # doctest: +SKIP
>>> Trainer(callbacks=[ranking, stopping])                                          # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from kgtrec._internal.argument_names import argument
from kgtrec.errors import UsageError
from kgtrec.integrations.torchmetrics import keys_of
from kgtrec.questions.api import Questions
from kgtrec.results.result import Result, evaluate

try:
    from lightning.pytorch.callbacks import Callback
except ImportError:
    from pytorch_lightning.callbacks import Callback


class RankingCallback(Callback):
    """Ranks all questions after each validation, and logs measures for `EarlyStopping`.

    Parameters
    ----------
    questions : Questions
        Questions of the validation split, usually with ``filter="valid"``.
    score : callable
        ``score(module, batch)`` returns one row of scores per row of a `kgtrec.Batch`. It runs
        without gradients, with the module in evaluation mode.
    measures : sequence of str, optional
        Keys to log.
    every : int
        Rank after every ``every``-th validation.
    **options
        As for `kgtrec.evaluate`.

    Attributes
    ----------
    result : Result or None
        Result of the last ranking.

    Notes
    -----
    In a distributed run every process ranks everything, and logs the same. To divide the work,
    update `kgtrec.integrations.torchmetrics.LinkPrediction` in ``validation_step``.
    """

    def __init__(
        self,
        questions: Questions,
        score: Callable[[Any, Any], Any],
        measures: Sequence[str] | None = None,
        *,
        every: int = 1,
        **options: Any,
    ) -> None:
        super().__init__()
        if isinstance(every, bool) or not isinstance(every, int) or every < 1:
            raise UsageError(f"{argument('every', every)} is not a whole number from 1 on")
        self.measures = keys_of(questions, measures)
        self.questions, self.score, self.every, self.options = questions, score, every, options
        self.result: Result | None = None
        self._validations = 0

    def on_validation_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """Rank and log; skipped in Lightning's sanity check."""
        if trainer.sanity_checking:
            return
        self._validations += 1
        if (self._validations - 1) % self.every and self.result is not None:
            return self._log(pl_module)
        with torch.inference_mode():
            self.result = evaluate(
                lambda batch: self.score(pl_module, batch), self.questions, **self.options
            )
        return self._log(pl_module)

    def _log(self, pl_module: Any) -> None:
        assert self.result is not None
        pl_module.log_dict({key: self.result[key] for key in self.measures})
