"""The best of several runs, chosen by validation, and how far the best by test exceeds it.

Zhou et al. (2022, section 4.1) train each model ten times and choose the run with the best micro
MRR on the validation split; PyKEEN's search for hyperparameters chooses in the same way. The test
value of that run is an honest value of the system with its way of choosing. The best test value of
all runs is not: it was chosen by the numbers that it reports.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from kgtrec._internal.arrays import Float64
from kgtrec._internal.named import Named, by_names_of
from kgtrec._internal.table import ShownAsTables, Table
from kgtrec.errors import InputError, UsageError
from kgtrec.measures import Measure
from kgtrec.ranking.provenance import differences
from kgtrec.ranking.ranks import Ranks
from kgtrec.results.comparability import comparable
from kgtrec.results.result import Result
from kgtrec.study.comparison.report import folds_of, replicate_samples
from kgtrec.study.comparison.samples import SystemRanks, runs_by_name, short_name


@dataclass(frozen=True, eq=False)
class ChosenRuns(ShownAsTables):
    """The run of each system that validation chooses, and its test value of one measure.

    - name: The measure's key.
    - systems: Names of the systems.
    - runs: Names of the runs of each system.
    - validation: Validation MRR of every run, an array per system.
    - values: The measure of every run on test, an array per system.
    """

    name: str
    systems: tuple[str, ...]
    runs: tuple[tuple[str, ...], ...]
    validation: tuple[Float64, ...]
    values: tuple[Float64, ...]
    higher_is_better: bool = True
    digits: int = 4

    @property
    def chosen(self) -> list[int]:
        """Index of the run of each system with the highest validation MRR; the first of several."""
        return [int(scores.argmax()) for scores in self.validation]

    @property
    def chosen_values(self) -> Float64:
        """Test value of the chosen run of each system, float64 (s,)."""
        return np.array([runs[k] for runs, k in zip(self.values, self.chosen, strict=True)])

    @property
    def best_values(self) -> Float64:
        """Best test value of all runs of each system, float64 (s,)."""
        best = np.max if self.higher_is_better else np.min
        return np.array([best(runs) for runs in self.values])

    @property
    def optimism(self) -> Float64:
        """Gain of the best test value over that of the chosen run, float64 (s,)."""
        first, second = self.best_values, self.chosen_values
        return first - second if self.higher_is_better else second - first

    def table(self) -> Table:
        """Return a row per system, best chosen value first."""
        digits = self.digits
        columns: list[str | tuple[str, str, int]] = [
            "system",
            "runs",
            "chosen",
            "valid MRR=validation:4",
            (short_name(self.name), "value", digits),
            f"mean:{digits}",
            f"std:{digits}",
            f"best by test=best:{digits}",
            f"optimism:{digits}",
        ]
        table = Table.from_columns(
            columns,
            self.systems,
            map(len, self.values),
            [names[k] for names, k in zip(self.runs, self.chosen, strict=True)],
            [float(scores.max()) for scores in self.validation],
            self.chosen_values,
            [float(runs.mean()) for runs in self.values],
            [float(runs.std(ddof=1)) if len(runs) > 1 else np.nan for runs in self.values],
            self.best_values,
            self.optimism,
        )
        sign = -1 if self.higher_is_better else 1
        return table.in_order(np.argsort(sign * self.chosen_values, kind="stable").tolist())


def choose_runs(
    systems: Named[SystemRanks | Sequence[SystemRanks]],
    valid: Named[SystemRanks | Sequence[SystemRanks]],
    measures: Sequence[str | Measure] = ("mrr",),
    *,
    names: Mapping[str, Sequence[str]] | None = None,
) -> list[ChosenRuns]:
    """Choose a run of each system by its validation MRR, and report its test values.

    Parameters
    ----------
    systems : mapping of str to sequence of Ranks or Result, or sequence of such sequences
        Test ranks of all runs of each system, on the same questions; in a sequence, systems are
        called "system 1", "system 2", ..., unless it has pairs (name, runs).
    valid : mapping of str to sequence of Ranks or Result, or sequence of such sequences
        Validation ranks of the same runs, in the same order.
    measures : sequence of keys or Measure
        Measures on test; the choice is always by validation MRR (micro, realistic ranks).
    names : mapping of str to sequence of str, optional
        Names of the runs; by default 1, 2, ...

    Returns
    -------
    list of ChosenRuns
        One per measure.

    Raises
    ------
    UsageError
        A system with other numbers of test and validation ranks, or folds.
    InputError
        Validation ranks that differ in their questions, or are ranks of the test questions.
    """
    systems = runs_by_name("systems", systems)
    valid = runs_by_name("valid", by_names_of("valid", valid, systems))
    _check_valid(systems, valid)
    criteria = tuple(np.array([_mean_reciprocal_rank(r) for r in valid[name]]) for name in systems)
    labels = names or {
        name: [str(number) for number in range(1, len(runs) + 1)] for name, runs in systems.items()
    }
    chosen = []
    for samples, columns in replicate_samples(systems, measures):
        means = samples.means()
        chosen.append(
            ChosenRuns(
                samples.name,
                tuple(systems),
                tuple(tuple(labels[name]) for name in systems),
                criteria,
                tuple(means[runs] for runs in columns),
                samples.higher_is_better,
                samples.digits,
            )
        )
    return chosen


def _mean_reciprocal_rank(ranks: Ranks) -> float:
    """Return the micro MRR of realistic ranks, of all sides that the ranks have."""
    result = Result(ranks)
    return float(result[f"{result.sides[-1]}.realistic.micro.mrr"])


def _check_valid(
    systems: Mapping[str, Sequence[Ranks]], valid: Mapping[str, Sequence[Ranks]]
) -> None:
    """Refuse validation ranks that are not of the same runs, or not of a validation split."""
    if not systems:
        raise UsageError("there are no ranks on test; give those of one model or more")
    if len(folds_of(systems)) > 1:
        raise UsageError(
            "runs on several folds have no common validation; choose a run inside each fold"
        )
    for name, runs in systems.items():
        if len(valid.get(name, ())) != len(runs):
            raise UsageError(
                f"{name} has {len(runs):,} runs on test, but {len(valid.get(name, ())):,} on "
                "validation; give one file of validation ranks per run"
            )
    test = next(iter(systems.values()))[0]
    first, *others = [ranks for name in systems for ranks in valid[name]]
    if first.provenance.has_questions and comparable(first, test):
        raise InputError(
            "the validation ranks answer the test questions, so choosing by them is choosing by "
            "test; give ranks of the validation split (kgtrec rank --split valid)"
        )
    if differences(first.provenance, test.provenance, ["graph_hash"]):
        raise InputError(
            "the validation ranks are of another graph than the test ranks; give ranks of the "
            "same runs"
        )
    for ranks in others:
        if reasons := comparable(first, ranks).reasons:
            raise InputError(
                f"validation ranks cannot be compared: {'; '.join(reasons)}; rank all runs in the "
                "same way"
            )
