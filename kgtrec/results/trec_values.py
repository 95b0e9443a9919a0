"""trec_eval measures of a result, per question: as given, from its run, or from its ranks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kgtrec.errors import InputError, UsageError
from kgtrec.trec.measures.agreement import checked_values
from kgtrec.trec.measures.values import MeasuresOfRanks

if TYPE_CHECKING:
    from kgtrec.questions.api import Questions
    from kgtrec.ranking.ranks import Ranks
    from kgtrec.trec.files.run import Run


Floats = NDArray[np.float64]


class TrecValues:
    """Values by the name of a measure; see `kgtrec.Result` for the arguments.

    A part of a result that does not refer to the whole, which is therefore freed at once.

    - compared: Names of measures to take from the run when it is compared with the ranks; None: it
      is not compared.
    """

    def __init__(
        self,
        ranks: Ranks,
        run: Run | Callable[[], Run] | None,
        questions: Questions | None,
        given: Mapping[str, Floats] | None,
        agreement: Mapping[str, float] | None,
        compared: Sequence[str] | None,
    ) -> None:
        self.ranks, self._run, self._questions = ranks, run, questions
        self._values, self._agreement, self._compared = dict(given or {}), agreement, compared

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_run": self.run}  # the native state stays here

    @cached_property
    def run(self) -> Run | None:
        """The best candidates of every question."""
        return self._run() if callable(self._run) else self._run

    @property
    def agreement(self) -> Mapping[str, float]:
        """Largest difference per measure between pytrec_eval's and the native values."""
        self.check()
        return self._agreement or self.ranks.provenance.trec_agreement

    def check(self) -> None:
        """Take measures from the run, and compare two of them with the ranks, once."""
        if self._compared is None or self.run is None or self._questions is None:
            return
        if not self.ranks.of_graph:  # others compute their measures from places
            return
        values, found = checked_values(self.ranks, self.run, self._questions, self._compared)
        self._values |= values
        self._agreement, self._compared = found, None
        self.ranks.manifest["trec_agreement"] = dict(found)  # saved ranks report it

    def __call__(self, name: str) -> Floats:
        """See `kgtrec.Result.per_question`."""
        self.check()
        if name not in self._values:
            self._values.update(self._computed(name))
        values = np.asarray(self._values[name], np.float64)
        if len(values) != self._n_questions:
            raise InputError(
                f"{name} has {len(values)} values, but the ranks have {self._n_questions} "
                "questions; give one value per question, by ascending question number"
            )
        return values

    @cached_property
    def _n_questions(self) -> int:
        return len(np.unique(self.ranks.question))

    @cached_property
    def _natively(self) -> MeasuresOfRanks:
        return MeasuresOfRanks(self.ranks)

    def _computed(self, name: str) -> Mapping[str, Floats]:
        """From the run for a graph; natively from the ranks without a run or without a graph."""
        reason, run, asked = "the result has ranks but no run", self.run, self._questions
        if run is not None and asked is not None and self.ranks.of_graph:
            from kgtrec.trec.measures.agreement import trec_values

            try:
                return trec_values(run, asked, [name])
            except UsageError as error:
                reason = str(error)
        try:
            return {name: self._natively(name)}
        except UsageError as error:
            raise UsageError(
                f"{name} cannot be computed: {reason}, and {error}; pass it to "
                "kgtrec.evaluate(scores, questions, measures=[…]), or write a run and use "
                "`kgtrec eval`"
            ) from None
