"""Systems that were run several times (seeds, folds of the training data), on the same questions.

A system is all its runs: its value is the mean over them. Both the runs and the questions are
samples, so intervals and tests draw both (two-way bootstrap): whole questions, the same for all
systems, and for every system as many of its runs as it has, apart from the others'. Where runs and
questions interact, this is somewhat too wide rather than too narrow (Owen 2007); of two or three
runs a bootstrap sees too little of the spread between them, which no resampling corrects.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kgtrec._internal.bootstrap import DRAWS
from kgtrec._internal.table import Cell, Table
from kgtrec.errors import InputError, UsageError
from kgtrec.measures import Measure
from kgtrec.study.comparison.samples import Samples, align_ranks, resample, samples_of_ranks
from kgtrec.study.comparison.significance import corrected, pairs_of

if TYPE_CHECKING:
    from kgtrec.ranking.ranks import Ranks

__all__ = ["Multiplicity", "Replicates", "compare_replicates", "grouped_names", "multiplicity",
           "replicate_samples"]  # fmt: skip

Floats = NDArray[np.float64]

CUTS = (1, 3, 10)
EPSILON = 0.01
_NUMBER = re.compile(r"[-_. ]?(?:(?:seed|fold|run|rep|replicate|s|r)[-_. =]?)?\d+$", re.IGNORECASE)
_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Replicates:
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
    """

    name: str
    title: str
    systems: tuple[str, ...]
    values: tuple[Floats, ...]
    draws: Floats
    higher_is_better: bool = True
    digits: int = 4
    correction: str = "holm"

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

    def _repr_html_(self) -> str:
        return self.value_table()._repr_html_() + self.pair_table()._repr_html_()

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
        Fewer than two runs, a system without one, or a measure without values per item.
    InputError
        Runs that did not answer the same questions; they are named.
    """
    if empty := [name for name, runs in systems.items() if not len(runs)]:
        raise UsageError(f"{empty[0]!r} has no run; give one or more of every system")
    flat = {f"{name} (run {number})": ranks for name, runs in systems.items()
            for number, ranks in enumerate(runs, start=1)}  # fmt: skip
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
        All runs of each system, all on the same questions; at least two runs together.
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
    replicates = []
    for samples, columns in replicate_samples(systems, measures):
        resampled = resample(samples, draws, seed)
        rng = np.random.default_rng([seed, 1])
        drawn = np.empty((draws, len(systems)))
        for place, own in enumerate(columns):
            chosen = rng.integers(0, len(own), (draws, len(own))) + own[0]
            drawn[:, place] = np.take_along_axis(resampled.draws, chosen, axis=1).mean(axis=1)
        values = samples.means()
        replicates.append(
            Replicates(
                samples.name, samples.title, tuple(systems), tuple(values[own] for own in columns),
                drawn, samples.higher_is_better, samples.digits, correction,
            )
        )  # fmt: skip
    return replicates


@dataclass(frozen=True, eq=False)
class Multiplicity:
    """How far models that are as good as the best disagree (Marx, Calmon and Ustun 2020).

    Attributes
    ----------
    best : str
        The model with the highest MRR.
    models : tuple of str
        Those whose MRR is at most `epsilon` below that of the best, itself included.
    epsilon : float
    cuts : tuple of int
    ambiguity : float64 array (cuts,)
        Share of instances on which some of the models makes a hit at k where the best makes none,
        or the reverse.
    discrepancy : float64 array (cuts,)
        Share of instances on which the one model that differs most does so.
    """

    best: str
    models: tuple[str, ...]
    epsilon: float
    cuts: tuple[int, ...]
    ambiguity: Floats
    discrepancy: Floats

    def table(self) -> Table:
        """A row a cutoff."""
        rows: list[tuple[Cell, ...]] = [
            (f"Hits@{k}", len(self.models), float(a), float(d))
            for k, a, d in zip(self.cuts, self.ambiguity, self.discrepancy, strict=True)
        ]
        keys = ("by", "models", "ambiguity", "discrepancy")
        return Table(keys, keys, (0, 0, 4, 4), rows)


def multiplicity(
    models: Mapping[str, Ranks], epsilon: float = EPSILON, cuts: Sequence[int] = CUTS
) -> Multiplicity:
    """Ambiguity and discrepancy of models whose MRR (realistic, micro) lies within `epsilon`.

    Raises
    ------
    UsageError
        Fewer than two models, a negative epsilon, or a cutoff below 1.
    InputError
        Models that did not answer the same questions.
    """
    if not epsilon >= 0:
        raise UsageError(f"epsilon={epsilon!r}; give how far below the best an MRR may be, 0 up")
    if not cuts or min(cuts) < 1:
        raise UsageError(f"cuts={cuts!r}; cutoffs are 1 or more")
    ranks = {name: one.rank() for name, one in align_ranks(models).items()}
    if not all(len(one) for one in ranks.values()):
        raise InputError("there are no ranks to compare: not one instance was evaluated")
    mrr = {name: float((1 / one).mean()) for name, one in ranks.items()}
    best = max(mrr, key=mrr.__getitem__)
    close = tuple(name for name, value in mrr.items() if mrr[best] - value <= epsilon)
    ambiguity, discrepancy = [], []
    for k in cuts:
        differs = np.stack([(ranks[name] <= k) != (ranks[best] <= k) for name in close])
        ambiguity.append(float(differs.any(axis=0).mean()))
        discrepancy.append(float(differs.mean(axis=1).max()))
    return Multiplicity(best, close, epsilon, tuple(cuts), np.array(ambiguity),
                        np.array(discrepancy))  # fmt: skip
