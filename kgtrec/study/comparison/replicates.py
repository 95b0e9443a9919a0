"""Systems that were run several times: seeds on the same questions, or folds with their own.

A system is all its runs: its value is the mean over them. Both the runs and the questions are
samples, so intervals and tests draw both (two-way bootstrap): whole questions, the same for all
systems, and for every system as many of its runs as it has, apart from the others'. Where runs and
questions interact, this is somewhat too wide rather than too narrow (Owen 2007); of two or three
runs a bootstrap sees too little of the spread between them, which no resampling corrects.

Folds pair the systems: all are run on each. A draw takes folds, the same ones for all systems, and
in each of them questions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kgtrec._internal.bootstrap import DRAWS, Resampled
from kgtrec._internal.notebook import ShownAsTables
from kgtrec._internal.table import Cell, Table
from kgtrec.errors import InputError, UsageError
from kgtrec.measures import Measure
from kgtrec.results.comparability import comparable
from kgtrec.study.comparison.samples import Samples, resample, samples_of_ranks
from kgtrec.study.comparison.significance import corrected, pairs_of

if TYPE_CHECKING:
    from kgtrec.ranking.ranks import Ranks

__all__ = ["Replicates", "compare_replicates", "folds_of", "grouped_names", "replicate_samples"]

Floats = NDArray[np.float64]

_NUMBER = re.compile(  # s and r only where they are no end of a name, such as TuckER's
    r"[-_. ]?(?:(?:seed|fold|run|rep|replicate|(?<![^\W\d_])[sr])[-_. =]?)?\d+$", re.IGNORECASE
)
_ROUNDING = 1e-12
_OF_FOLDS = ("graph:", "evaluated:", "questions, answers or candidates")
"""How reasons begin for which folds may differ: see `kgtrec.results.comparability`."""


@dataclass(frozen=True, eq=False)
class Replicates(ShownAsTables):
    """Systems of several runs by one measure.

    Attributes
    ----------
    name, title : str
        The measure's key, and its heading.
    systems : tuple of str, length s
    values : tuple of float64 arrays
        The measure of every run, an array a system.
    draws : float64 array (B, s)
        Means of the systems on each draw of questions and runs.
    higher_is_better : bool
    digits : int
    correction : str
    folds : int
        Sets of questions: 1 for runs that all answer the same ones.
    """

    _shown = ("value_table", "pair_table")

    name: str
    title: str
    systems: tuple[str, ...]
    values: tuple[Floats, ...]
    draws: Floats
    higher_is_better: bool = True
    digits: int = 4
    correction: str = "holm"
    folds: int = 1

    @property
    def means(self) -> Floats:
        """Mean over the runs of each system, float64 (s,)."""
        return np.array([values.mean() for values in self.values])

    @property
    def deviations(self) -> Floats:
        """Standard deviation over runs (n - 1), float64 (s,); NaN of a single run."""
        return np.array([v.std(ddof=1) if len(v) > 1 else np.nan for v in self.values])

    def interval(self, confidence: float = 0.95) -> Floats:
        """Percentile intervals of the means over questions and runs, float64 (2, s)."""
        return np.asarray(np.quantile(self.draws, _tails(confidence), axis=0))

    @property
    def pairs(self) -> NDArray[np.int64]:
        """All pairs of systems, int64 (p, 2)."""
        return pairs_of(len(self.systems))

    def p_values(self) -> Floats:
        """Two-sided p of every pair, float64 (p,): (b + 1) / (B + 1), b draws whose difference
        lies as far from the observed one as that lies from 0."""
        first, second = self.pairs[:, 0], self.pairs[:, 1]
        observed = self.means[first] - self.means[second]
        drawn = self.draws[:, first] - self.draws[:, second]
        slack = _ROUNDING * np.abs(self.means).max()
        beyond = (np.abs(drawn - observed) >= np.abs(observed) - slack).sum(axis=0)
        return np.asarray((beyond + 1) / (len(drawn) + 1))

    def better(self, level: float = 0.05) -> NDArray[np.bool_]:
        """Whether each system is significantly better than each other, bool (s, s)."""
        better = np.zeros((len(self.systems),) * 2, bool)
        sign = 1.0 if self.higher_is_better else -1.0
        gap = sign * self.means
        p = corrected(self.p_values(), self.correction)
        for (i, j), value in zip(self.pairs.tolist(), p.tolist(), strict=True):
            if value < level and gap[i] != gap[j]:
                better[(i, j) if gap[i] > gap[j] else (j, i)] = True
        return better

    def value_table(self, confidence: float = 0.95) -> Table:
        """A row a system, best first: runs, mean, deviation, interval, least and largest."""
        low, high = self.interval(confidence)
        sign = -1.0 if self.higher_is_better else 1.0
        rows: list[tuple[Cell, ...]] = [
            (self.systems[i], len(self.values[i]), float(self.means[i]), float(self.deviations[i]),
             float(low[i]), float(high[i]), float(self.values[i].min()),
             float(self.values[i].max()))
            for i in np.argsort(sign * self.means, kind="stable").tolist()
        ]  # fmt: skip
        titles = ("system", "runs", f"mean {self.title}", "std", f"{confidence:.0%} from", "to",
                  "least", "largest")  # fmt: skip
        keys = ("system", "runs", "mean", "std", "low", "high", "min", "max")
        return Table(titles, keys, (0, 0, *(self.digits,) * 6), rows)

    def pair_table(self, confidence: float = 0.95) -> Table:
        """A row a pair, the better first: difference, its interval, p, and corrected p."""
        p = self.p_values()
        fixed = corrected(p, self.correction)
        rows: list[tuple[Cell, ...]] = []
        for k, (i, j) in enumerate(self.pairs.tolist()):
            if (self.means[i] < self.means[j]) == self.higher_is_better:
                i, j = j, i
            ends = np.quantile(self.draws[:, i] - self.draws[:, j], _tails(confidence))
            gap = float(self.means[i] - self.means[j])
            rows.append((self.systems[i], self.systems[j], gap, *map(float, ends), float(p[k]),
                         float(fixed[k])))  # fmt: skip
        titles = ("system", "against", "difference", f"{confidence:.0%} from", "to", "p",
                  f"p ({self.correction})")  # fmt: skip
        keys = ("system", "against", "difference", "low", "high", "p", "p.corrected")
        return Table(titles, keys, (0, 0, *(self.digits,) * 3, 5, 5), rows, 2)


def _tails(confidence: float) -> list[float]:
    if not 0 < confidence < 1:
        raise UsageError(f"confidence={confidence!r} is not between 0 and 1; 0.95 is usual")
    return [(1 - confidence) / 2, (1 + confidence) / 2]


def grouped_names(names: Sequence[str]) -> list[str]:
    """Systems of runs that are named with a number at the end.

    ``transe-1``, ``transe_seed2`` and ``transe.fold3`` are all ``transe``.
    """
    return [_NUMBER.sub("", name) or name for name in names]


def replicate_samples(
    systems: Mapping[str, Sequence[Ranks]], measures: Sequence[str | Measure]
) -> list[tuple[Samples, list[list[int]]]]:
    """Samples of all runs, a column each, with the columns of every system.

    Raises
    ------
    UsageError
        A system without a run, or a measure without values per item.
    InputError
        Runs that did not answer the same questions; they are named.
    """
    if empty := [name for name, runs in systems.items() if not len(runs)]:
        raise UsageError(f"{empty[0]!r} has no run; give one or more of every system")
    flat = {f"{name} (run {number})": ranks for name, runs in systems.items()
            for number, ranks in enumerate(runs, start=1)}  # fmt: skip
    if len(flat) == 1:  # one system on a fold: a column for itself is held against nothing
        ((name, ranks),) = flat.items()
        flat[f"{name} again"] = ranks
    columns, first = [], 0
    for runs in systems.values():
        columns.append(list(range(first, first + len(runs))))
        first += len(runs)
    return [(samples, columns) for samples in samples_of_ranks(flat, measures)]


def compare_replicates(
    systems: Mapping[str, Sequence[Ranks]],
    measures: Sequence[str | Measure],
    *,
    correction: str = "holm",
    draws: int = DRAWS,
    seed: int = 0,
) -> list[Replicates]:
    """Compare systems of several runs, by both the runs and the questions.

    Parameters
    ----------
    systems : mapping of str to sequence of Ranks
        All runs of each system, at least two together: all on the same questions (seeds), or of
        every system as many on each of several sets (folds).
    measures : sequence of keys or Measure
        See `kgtrec.study.comparison.samples.samples_of_ranks`.
    correction : {"holm", "bh", "bonferroni", "none"}
    draws : int
        Of the bootstrap, 100 or more.
    seed : int

    Returns
    -------
    list of Replicates
        One for each measure.

    Raises
    ------
    UsageError, InputError
        As `replicate_samples` and `kgtrec.study.comparison.samples.resample`.
    """
    folds = folds_of(systems)
    samples_of = [replicate_samples(fold, measures) for fold in folds]
    replicates = []
    for fold_samples in zip(*samples_of, strict=True):
        rng = np.random.default_rng([seed, 1])
        drawn = [
            _drawn_means(resample(samples, draws, seed + number), columns, rng)
            for number, (samples, columns) in enumerate(fold_samples)
        ]
        means = [samples.means() for samples, _ in fold_samples]
        values = tuple(
            np.concatenate([v[c[k]] for v, (_, c) in zip(means, fold_samples, strict=True)])
            for k in range(len(systems))
        )
        first = fold_samples[0][0]
        replicates.append(
            Replicates(
                first.name, first.title, tuple(systems), values, _over_folds(np.stack(drawn), rng),
                first.higher_is_better, first.digits, correction, len(folds),
            )
        )  # fmt: skip
    return replicates


def _drawn_means(
    resampled: Resampled, columns: Sequence[Sequence[int]], rng: np.random.Generator
) -> Floats:
    """Means of the systems over draws of their runs and of the questions, float64 (B, s)."""
    draws = len(resampled.draws)
    drawn = np.empty((draws, len(columns)))
    for place, own in enumerate(columns):
        chosen = rng.integers(0, len(own), (draws, len(own))) + own[0]
        drawn[:, place] = np.take_along_axis(resampled.draws, chosen, axis=1).mean(axis=1)
    return drawn


def _over_folds(drawn: Floats, rng: np.random.Generator) -> Floats:
    """Means over draws of folds, float64 (B, s), from those inside each, float64 (folds, B, s)."""
    n_folds, draws, _ = drawn.shape
    if n_folds == 1:
        return drawn[0]
    fold = rng.integers(0, n_folds, (draws, n_folds))
    row = rng.integers(0, draws, (draws, n_folds))  # a fold that is drawn twice: other questions
    return np.asarray(drawn[fold, row].mean(axis=1))


def folds_of(systems: Mapping[str, Sequence[Ranks]]) -> list[dict[str, list[Ranks]]]:
    """Runs by the questions that they answer; one fold where all answer the same.

    Raises
    ------
    UsageError
        A system without a run.
    InputError
        A system that was not run on every fold, or not as often; runs that differ in more than
        their test triples. Both are named with what differs.
    """
    if empty := [name for name, runs in systems.items() if not len(runs)]:
        raise UsageError(f"{empty[0]!r} has no run; give one or more of every system")
    folds: list[dict[str, list[Ranks]]] = []
    for name, runs in systems.items():
        for one in runs:
            fold = next((f for f in folds if not comparable(_any_run(f), one)), None)
            if fold is None:
                folds.append(fold := {})
            fold.setdefault(name, []).append(one)
    differ = [r for fold in folds for r in comparable(_any_run(folds[0]), _any_run(fold))]
    uneven = any(
        len(fold.get(name, ())) * len(folds) != len(runs)
        for fold in folds for name, runs in systems.items()
    )  # fmt: skip
    if uneven or not all(reason.startswith(_OF_FOLDS) for reason in differ):
        reasons = "; ".join(dict.fromkeys(differ))
        raise InputError(
            f"runs of {', '.join(systems)} cannot be compared: {reasons}; runs are of the same "
            "questions (seeds), or every system has as many on each fold"
        )
    return folds


def _any_run(fold: Mapping[str, Sequence[Ranks]]) -> Ranks:
    return next(iter(fold.values()))[0]
