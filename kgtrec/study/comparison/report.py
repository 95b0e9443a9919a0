"""Comparison of systems by a measure: values with intervals, tests of every pair, and conclusions.

Systems that were run several times have seeds on the same questions, or folds of different
questions. Their value is the mean over runs. Both runs and questions are samples, so intervals and
tests draw both: whole questions, the same for all systems, and the runs of each system separately.
This is somewhat too wide rather than too narrow (Owen 2007). With two or three runs, a bootstrap
has too little spread. A draw of folds has the same folds for all systems. `multiplicity` computes
how far models as good as the best disagree (Marx, Calmon and Ustun 2020).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import NDArray

from kgtrec._internal.argument_names import argument
from kgtrec._internal.arguments import random_generator
from kgtrec._internal.arrays import Bools, Float64, Int64
from kgtrec._internal.bootstrap import COMPARING, Resampled, Resampling, over_runs
from kgtrec._internal.named import Named, by_names_of
from kgtrec._internal.table import LEAST_P, PValue, ShownAsTables, Table
from kgtrec.errors import InputError, UsageError, about, refuse_if
from kgtrec.measures import Measure
from kgtrec.ranking.ranks import Ranks
from kgtrec.results.comparability import comparable
from kgtrec.results.result import Result
from kgtrec.study.comparison.samples import (
    Samples,
    SystemRanks,
    align_ranks,
    parse_item_measures,
    ranks_by_name,
    resample,
    runs_by_name,
    samples_of_aligned,
    samples_of_ranks,
)
from kgtrec.study.comparison.significance import (
    CORRECTION_NAMES,
    PERMUTATIONS,
    TEST_NAMES,
    Effects,
    PairTests,
    better_pairs,
    correct_p_values,
    effects,
    p_of_draws,
    pairs_of,
    pairwise,
)
from kgtrec.study.section import Section, plain_numbers

if TYPE_CHECKING:
    from kgtrec.trec.files.columns import RunColumns


@dataclass(frozen=True, eq=False)
class SystemComparison(ShownAsTables):
    """A comparison of systems by a measure.

    - resampled: Values on draws of the questions, which are the same for all systems.
    - level: Level of significance.
    - lettered: Indices of the systems in the order of their letters, which several measures share;
      empty for `order`.
    """

    _shown = ("value_table", "pair_table")

    samples: Samples
    resampled: Resampled
    tests: PairTests
    effects: Effects
    level: float = 0.05
    lettered: tuple[int, ...] = ()

    @property
    def resampling(self) -> Resampling:
        """Settings of the resampling of the intervals."""
        return self.resampled.resampling

    @property
    def order(self) -> list[int]:
        """Indices of the systems, best first; equal ones in the order of the call."""
        return _best_first(self.resampled.estimate, self.samples.higher_is_better)

    def intervals(self) -> Float64:
        """Return the ends of the systems' intervals, float64 (2, s)."""
        return self.resampled.interval()

    def value_table(self) -> Table:
        """Return a table with a row per system, best first.

        It has the value, its interval, and the systems that this one significantly beats.
        """
        digits = self.samples.digits
        columns = [
            "=letter",
            "system",
            f"{self.samples.title}=value:{digits}",
            *self.resampling.columns(digits),
            "better than",
        ]
        values = np.array([self.resampled.estimate, *self.intervals()])[:, self.order]
        return Table.from_columns(
            columns,
            [self._letter(i) for i in self.order],
            [self.samples.systems[i] for i in self.order],
            *values,
            self._letters_of_beaten(),
            names=2,
        )

    def pair_table(self) -> Table:
        """Return a table with a row per pair, the better system first.

        It has the difference, its interval, p and effect sizes.
        """
        tests = self.tests
        sizes = self.effects.d_z, self.effects.wins
        return _pair_table(self, self.samples, tests.correction, tests.p, tests.corrected, *sizes)

    def method(self) -> str:
        """Return the test in words: "paired t-test over 20,466 instances, Holm's correction"."""
        return (
            f"{TEST_NAMES[self.tests.test]} over {len(self.tests.samples):,} "
            f"{self.tests.samples.unit}, {CORRECTION_NAMES[self.tests.correction]}"
        )

    def sentence(self, name: str = "") -> str:
        """Return a sentence with the conclusions; `name` replaces the key of the measure."""
        better = self.tests.better(self.level)
        names, order = self.samples.systems, self.order
        n_pairs, n_better = len(self.tests.pairs), int(better.sum())
        best = order[0]
        tied = [names[i] for i in order[1:] if not better[best, i]]
        head = f"{name or self.samples.name}: "
        if n_pairs == 1:
            first, second = names[best], names[order[1]]
            p = PValue(self.tests.corrected[0])
            if n_better:
                head += f"{first} is better than {second}"
            else:
                head += f"{first} and {second} do not differ significantly"
            tested = f"{self.method()}: p {'' if p < LEAST_P else '= '}{p:.4g}"
            return f"{head} ({self._difference()}; {tested})."
        if not tied:
            head += f"{names[best]} is better than every other system"
        elif np.ptp(self.samples.means()) == 0:
            head += "all systems have the same value"
        elif len(tied) == len(order) - 1:
            head += f"{names[best]} comes first, but is not significantly better than any other"
        else:
            others = _join_names(tied)
            head += f"{names[best]} comes first, but is not significantly better than {others}"
        pairs = f"{n_better} of {n_pairs} pairs differ at p < {self.level:g}"
        return f"{head}; {pairs} ({self.method()})."

    def _difference(self) -> str:
        """Return the difference of the only pair and its interval in words."""
        values = [float(cell) for cell in self.pair_table().rows[0][2:5]]
        difference, low, high = (f"{value:,.{self.samples.digits}f}" for value in values)
        percent = f"{self.resampling.percent:g}%"
        return f"difference {difference}, {percent} interval {low} to {high}"

    def to_dict(self) -> dict[str, object]:
        """Return all values in plain types for JSON."""
        values = self.value_table()
        systems = [dict(zip(values.keys, row, strict=True)) for row in values.rows]
        pairs = self.pair_table()
        return {
            "measure": self.samples.name,
            "unit": self.samples.unit,
            "items": len(self.samples),
            "questions": self.samples.n_clusters,
            "higher_is_better": self.samples.higher_is_better,
            "test": self.tests.test,
            "tested_over": self.tests.samples.unit,
            "correction": self.tests.correction,
            "confidence": self.resampling.percent / 100,
            "level": self.level,
            "systems": systems,
            "pairs": [dict(zip(pairs.keys, row, strict=True)) for row in pairs.rows],
            "conclusion": self.sentence(),
        }

    def _subject(self) -> str:
        return f" by {self.samples.name}"

    def _lines(self) -> tuple[str, str]:
        names = ", ".join(self.samples.systems)
        return f"{len(self.samples):,} {self.samples.unit}; {names}", self.sentence()

    def _letter(self, system: int) -> str:
        """Return the letter of a system."""
        return letter((self.lettered or self.order).index(system), len(self.order))

    def _letters_of_beaten(self) -> list[str]:
        """Return the letters of the systems that each system of `order` significantly beats."""
        lettered = [*(self.lettered or self.order)]
        better = self.tests.better(self.level)[np.ix_(self.order, lettered)]
        return [letters(row.nonzero()[0].tolist(), len(lettered)) for row in better]


def _best_first(values: Float64, higher: bool) -> list[int]:
    """Return the indices of values, the best first; equal ones in their order."""
    return np.argsort(-values if higher else values, kind="stable").tolist()


def _pair_table(
    compared: SystemComparison | Replicates,
    samples: Samples | Replicates,
    correction: str,
    p: Float64,
    fixed: Float64,
    *sizes: Float64,
) -> Table:
    """Return a table with a row per pair, the better system first.

    It has the difference, its interval, p and corrected p, and effect sizes if they are known.
    """
    position, pairs = np.argsort(compared.order), pairs_of(len(samples.systems))
    low, high = compared.resampled.difference_interval(pairs)  # not corrected
    turned = position[pairs[:, 0]] > position[pairs[:, 1]]
    pairs = np.where(turned[:, None], pairs[:, ::-1], pairs)
    sign = np.where(turned, -1.0, 1.0)
    ends = np.sort([sign * low, sign * high], axis=0)
    first, second = compared.resampled.estimate[pairs].T
    if sizes:
        sizes = sign * sizes[0], np.where(turned, 1 - sizes[1], sizes[1])
    titles = {"none": "p as it is", "bh": "p (BH)"}
    title = titles.get(correction, f"p ({correction.capitalize()})")
    columns = [
        "system",
        "against",
        f"difference:{samples.digits}",
        *compared.resampling.columns(samples.digits),
        "p:4",
        f"{title}=p.corrected:4",
        *["d_z:3", "wins:3"][: len(sizes)],
    ]
    names = ([samples.systems[i] for i in column] for column in pairs.T)
    tested = (map(PValue, values.tolist()) for values in (p, fixed))
    table = Table.from_columns(columns, *names, first - second, *ends, *tested, *sizes, names=2)
    return table.in_order(np.lexsort(position[pairs].T[::-1]))


def letter(row: int, many: int) -> str:
    """Return the name of a row in superscripts: a, b, ...; numbers for more than 26 rows."""
    return chr(97 + row) if many <= 26 else str(row + 1)


def letters(rows: Sequence[int], many: int) -> str:
    """Return the names of several rows, which ascend, as a superscript: "bce" or "2,3,5".

    If there are `many` rows in total, more than ten, names of neighbours become a range: "b-m".
    """
    if many <= _MOST_LISTED:
        return "".join(letter(row, many) for row in rows)
    parts: list[str] = []
    by_distance = enumerate(rows)  # neighbours have the same distance to their place in the list
    for _, run in groupby(by_distance, key=lambda item: item[1] - item[0]):
        names = [letter(row, many) for _, row in run]
        parts += [f"{names[0]}-{names[-1]}"] if len(names) > 2 else names
    return ",".join(parts)


_MOST_LISTED = 10
"""Largest number of systems whose letters are listed one by one."""


MEASURES_OF_RANKS = ("both.realistic.micro.mrr", "both.realistic.macro.mrr")
"""Measures by which `compare` and `kgtrec compare` compare ranks by default."""


class Comparisons(list[SystemComparison]):
    """Comparisons of the same systems by several measures; notebooks show all their tables."""

    def __str__(self) -> str:
        return "\n\n".join(map(str, self))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return "\n".join(comparison._repr_html_() for comparison in self)


@overload
def compare(
    systems: Samples,
    measures: None = None,
    *,
    test: str = "randomisation",
    correction: str = "holm",
    clustered: bool = False,
    permutations: int = PERMUTATIONS,
    resampling: Resampling = COMPARING,
    level: float = 0.05,
) -> SystemComparison: ...
@overload
def compare(
    systems: Named[SystemRanks] | Sequence[Samples],
    measures: str | Measure | Sequence[str | Measure] | None = None,
    *,
    test: str = "randomisation",
    correction: str = "holm",
    clustered: bool = False,
    permutations: int = PERMUTATIONS,
    resampling: Resampling = COMPARING,
    level: float = 0.05,
) -> Comparisons: ...
def compare(
    systems: Samples | Named[SystemRanks] | Sequence[Samples],
    measures: str | Measure | Sequence[str | Measure] | None = None,
    *,
    test: str = "randomisation",
    correction: str = "holm",
    clustered: bool = False,
    permutations: int = PERMUTATIONS,
    resampling: Resampling = COMPARING,
    level: float = 0.05,
) -> SystemComparison | Comparisons:
    """Compare systems by a measure, or by each of several measures.

    >>> by_mrr, by_hits = kgtrec.compare({"a": ranks, "b": others}, ["mrr", "hits@10"])
    ... # doctest: +SKIP

    Parameters
    ----------
    systems : mapping of str to Ranks or Result, sequence of them, Samples, or sequence of Samples
        Ranks or results of the same questions, by the names of the systems; those of a sequence are
        called "system 1", "system 2", ..., unless it has pairs (name, ranks). Samples of other
        items come from `kgtrec.study.samples_of_runs` or ``samples_of_sets``.
    measures : key, Measure, or sequence of them, optional
        Of ranks; by default micro and macro MRR. Samples contain their measures.
    test, correction, permutations
        See `kgtrec.study.comparison.significance.pairwise`.
    clustered : bool
        If items are instances, test over questions. Such a test is valid if instances of a question
        depend on each other, with some loss of power. Intervals draw whole questions in both cases.
    resampling : Resampling
        How to make intervals and the bootstrap test; its seed is also for the randomisation test.
    level : float
        Level of significance, between 0 and 1.

    Returns
    -------
    Comparisons
        A list with a `SystemComparison` per measure, in their order. If all have the same systems,
        the systems have the same letters by all measures, in the order of the first. For a single
        `Samples`: its `SystemComparison`.

    Raises
    ------
    UsageError
        Neither ranks nor samples, a single system, measures that do not fit, another level, or an
        unknown test or correction.
    InputError
        The systems did not answer the same questions.
    """
    options = (test, correction, clustered, permutations, resampling, level)
    several = [systems] if isinstance(systems, Samples) else systems
    if isinstance(several, Sequence) and any(isinstance(each, Samples) for each in several):
        samples = _require_samples(several, measures)
    else:
        keys = MEASURES_OF_RANKS if measures is None else measures
        samples = samples_of_ranks(ranks_by_name("systems", several), _require_keys(keys))
    comparisons = Comparisons(_compare_by_measure(each, *options) for each in samples)
    if isinstance(systems, Samples):
        return comparisons[0]
    if len({of_measure.systems for of_measure in samples}) != 1:
        return comparisons
    lettered = tuple(comparisons[0].order)
    return Comparisons(replace(comparison, lettered=lettered) for comparison in comparisons)


def _require_samples(several: Sequence[object], measures: object) -> list[Samples]:
    """Return a sequence of samples; UsageError for other items in it, or with measures."""
    samples = [each for each in several if isinstance(each, Samples)]
    if len(samples) < len(several):
        wrong = next(each for each in several if not isinstance(each, Samples))
        raise UsageError(
            f"{argument('systems', type(wrong).__name__)} is among samples; pass samples only, or "
            "ranks by the names of systems"
        )
    refuse_if(
        (
            measures is not None,
            f"samples contain their measures already; leave out {argument('measures', measures)}",
        )
    )
    return samples


def _require_keys(measures: object) -> list[str | Measure]:
    """Return one or several keys of measures as a list; UsageError if there are none."""
    if isinstance(measures, str | Measure):
        return [measures]
    keys = list(measures) if isinstance(measures, Iterable) else []
    refuse_if(
        (
            not keys or isinstance(measures, Ranks | Result),
            f"{argument('measures', type(measures).__name__)} names no measure; pass keys, as in "
            "['mrr', 'hits@10'], after the systems in one dict",
        )
    )
    return keys


def _compare_by_measure(
    samples: Samples,
    test: str,
    correction: str,
    clustered: bool,
    permutations: int,
    resampling: Resampling,
    level: float,
) -> SystemComparison:
    """Compare systems by one measure; see `compare`."""
    if not 0 < level < 1:
        raise UsageError(f"{argument('level', level)} is not between 0 and 1; 0.05 is usual")
    resampled = resample(samples, resampling)
    tests = pairwise(
        samples.by_cluster() if clustered else samples,
        test,
        correction,
        permutations=permutations,
        seed=resampling.seed,
        resampled=resampled,
    )
    return SystemComparison(samples, resampled, tests, effects(samples), level)


def comparisons_section(comparisons: Sequence[SystemComparison]) -> Section:
    """Return comparisons for the report page; the summary has the sentence of the first."""
    data = [_comparison_data(comparison) for comparison in comparisons]
    return Section({"comparisons": data}, tuple(each["sentence"] for each in data[:1]))


def _comparison_data(comparison: SystemComparison) -> dict[str, Any]:
    """Return the values and tests of a comparison in plain JSON types."""
    samples, n = comparison.samples, len(comparison.samples.systems)
    p, difference = np.full((2, n, n), np.nan)
    i, j = comparison.tests.pairs.T
    p[i, j] = p[j, i] = comparison.tests.corrected
    difference[i, j] = comparison.effects.difference
    difference[j, i] = -comparison.effects.difference
    low, high = comparison.intervals()
    return {
        "key": samples.name,
        "title": samples.title,
        "label": f"{samples.title}, {Measure.parse(samples.name).averaging.replace('_', ' ')}",
        "digits": samples.digits,
        "higher": samples.higher_is_better,
        "sentence": comparison.sentence(f"{samples.title} over {samples.unit}"),
        "method": comparison.method(),
        "level": comparison.level,
        "confidence": comparison.resampling.percent / 100,
        "order": comparison.order,
        "values": plain_numbers(comparison.resampled.estimate),
        "low": plain_numbers(low),
        "high": plain_numbers(high),
        "p": [plain_numbers(row) for row in p],
        "difference": [plain_numbers(row) for row in difference],
    }


def _join_names(names: list[str], most: int = 5) -> str:
    """Join names by commas; if there are more than `most`, count the others."""
    shown = names if len(names) <= most else names[: most - 1]
    text = ", ".join(shown)
    return text if len(shown) == len(names) else f"{text} and {len(names) - len(shown)} others"


# The lookbehind excludes an s or r at the end of a name.
_WORD = r"(?:(?:seed|fold|run|rep|replicate|(?<![^\W\d_])[sr])[-_. =]?)"
_NUMBER = re.compile(rf"[-_. ]?{_WORD}?\d+$", re.IGNORECASE)
_MARKED_NUMBER = re.compile(rf"[-_. ]?{_WORD}\d+$", re.IGNORECASE)
_OF_FOLDS = ("graph:", "evaluated:", "questions, answers or candidates")
"""First words of the allowed differences between folds; see `kgtrec.results.comparability`."""


@dataclass(frozen=True, eq=False)
class Replicates(ShownAsTables):
    """A comparison by a measure of systems that have several runs.

    - name, title: Key of the measure, and its heading.
    - values: Value of every run, an array per system.
    - resampled: Means of the systems, also on draws of questions and runs.
    - folds: Number of sets of questions; 1 if all runs answer the same ones.
    """

    _shown = ("value_table", "pair_table")

    name: str
    title: str
    systems: tuple[str, ...]
    values: tuple[Float64, ...]
    resampled: Resampled
    higher_is_better: bool = True
    digits: int = 4
    correction: str = "holm"
    folds: int = 1

    @property
    def resampling(self) -> Resampling:
        """Settings of the resampling of the intervals."""
        return self.resampled.resampling

    @property
    def means(self) -> Float64:
        """Means over the runs of each system, float64 (s,)."""
        return self.resampled.estimate

    @property
    def order(self) -> list[int]:
        """Indices of the systems, best first; equal ones in the order of the call."""
        return _best_first(self.means, self.higher_is_better)

    @property
    def deviations(self) -> Float64:
        """Standard deviations over runs (n - 1), float64 (s,); NaN for a single run."""
        return np.array([v.std(ddof=1) if len(v) > 1 else np.nan for v in self.values])

    @property
    def pairs(self) -> Int64:
        """All pairs of systems, int64 (p, 2)."""
        return pairs_of(len(self.systems))

    def p_values(self) -> Float64:
        """Return the two-sided p of every pair, float64 (p,), by the bootstrap test."""
        return p_of_draws(self.resampled, self.pairs)

    def better(self, level: float = 0.05) -> Bools:
        """Return True if system i is significantly better than system j, bool (s, s)."""
        p = correct_p_values(self.p_values(), self.correction)
        return better_pairs(
            self.means if self.higher_is_better else -self.means, self.pairs, p, level
        )

    def value_table(self) -> Table:
        """Return a table with a row per system, best first.

        It has the number of runs, mean, deviation, interval, and the lowest and highest value.
        """
        ends = np.array([(values.min(), values.max()) for values in self.values]).T
        digits = self.digits
        columns = [
            "system",
            "runs",
            f"mean {self.title}=mean:{digits}",
            f"std:{digits}",
            *self.resampling.columns(digits),
            f"least=min:{digits}",
            f"largest=max:{digits}",
        ]
        table = Table.from_columns(
            columns,
            self.systems,
            map(len, self.values),
            self.means,
            self.deviations,
            *self.resampled.interval(),
            *ends,
        )
        return table.in_order(self.order)

    def pair_table(self) -> Table:
        """Return a table with a row per pair, the better system first.

        It has the difference, its interval, p and corrected p.
        """
        p = self.p_values()
        return _pair_table(self, self, self.correction, p, correct_p_values(p, self.correction))


def group_names(names: Sequence[str], *, marked: bool = False) -> list[str]:
    """Return the name of the system of each run, which is without the number at the end.

    ``transe-1``, ``transe_seed2`` and ``transe.fold3`` are all ``transe``. If numbers must be
    `marked`, by a word such as seed, ``transe-1`` is the name of a system, as ``GPT-4`` is.
    """
    ending = _MARKED_NUMBER if marked else _NUMBER
    return [ending.sub("", name) or name for name in names]


def replicate_samples(
    systems: Mapping[str, Sequence[Ranks]], measures: Sequence[str | Measure]
) -> list[tuple[Samples, list[Int64]]]:
    """Compute the samples of each measure, with a column per run of any system.

    Returns them with the columns of each system's runs.
    """
    flat = {
        f"{name} (run {number})": ranks
        for name, runs in systems.items()
        for number, ranks in enumerate(runs, start=1)
    }
    samples = samples_of_aligned(align_ranks(flat, least=1), parse_item_measures(measures))
    ends = np.cumsum([len(runs) for runs in systems.values()])
    columns = np.split(np.arange(len(flat)), ends[:-1])
    return [(of_measure, columns) for of_measure in samples]


def compare_replicates(
    systems: Named[SystemRanks | Sequence[SystemRanks]],
    measures: Sequence[str | Measure],
    *,
    correction: str = "holm",
    resampling: Resampling = COMPARING,
) -> list[Replicates]:
    """Compare systems that have several runs, by runs and questions, for each measure.

    Parameters
    ----------
    systems : mapping of str to sequence of Ranks or Result, or sequence of such sequences
        All runs of each system, at least two in total; in a sequence, systems are called
        "system 1", "system 2", ..., unless it has pairs (name, runs). All are on the same questions
        (seeds), or every system has the same number of runs on each of several sets (folds).
    measures : sequence of keys or Measure
        See `kgtrec.study.comparison.samples.samples_of_ranks`.
    correction : {"holm", "bh", "bonferroni", "none"}
    resampling : Resampling
        How to make intervals and tests.
    """
    systems = runs_by_name("systems", systems)
    folds = folds_of(systems)
    samples_of = [replicate_samples(fold, measures) for fold in folds]
    replicates = []
    for fold_samples in zip(*samples_of, strict=True):
        rng = random_generator(resampling.seed, 1)
        drawn = []
        for number, (samples, columns) in enumerate(fold_samples):
            draws = resample(samples, replace(resampling, seed=resampling.seed + number)).draws
            drawn.append(np.stack([over_runs(draws[:, runs], rng) for runs in columns], axis=1))
        means = [samples.means() for samples, _ in fold_samples]
        values = tuple(
            np.concatenate([v[c[k]] for v, (_, c) in zip(means, fold_samples, strict=True)])
            for k in range(len(systems))
        )
        estimate = np.array([of_system.mean() for of_system in values])
        draws = _over_folds(np.stack(drawn), rng)
        first = fold_samples[0][0]
        replicates.append(
            Replicates(
                first.name,
                first.title,
                tuple(systems),
                values,
                Resampled(estimate, draws, None, resampling),
                first.higher_is_better,
                first.digits,
                correction,
                len(folds),
            )
        )
    return replicates


def _over_folds(drawn: Float64, rng: np.random.Generator) -> Float64:
    """Draw folds with replacement; return the means over each draw, float64 (B, s).

    `drawn` has the draws within each fold, float64 (folds, B, s).
    """
    n_folds, draws, _ = drawn.shape
    if n_folds == 1:
        return drawn[0]
    fold = rng.integers(0, n_folds, (draws, n_folds))
    row = rng.integers(0, draws, (draws, n_folds))  # a fold drawn twice has other questions
    return np.asarray(drawn[fold, row].mean(axis=1))


def folds_of(systems: Mapping[str, Sequence[Ranks]]) -> list[dict[str, list[Ranks]]]:
    """Group runs by their questions; return the runs of each system per fold.

    InputError if the runs cannot be compared.
    """
    if empty := [name for name, runs in systems.items() if not len(runs)]:
        raise UsageError(f"{empty[0]!r} has no run; give one or more of every system")
    folds: list[dict[str, list[Ranks]]] = []
    for name, runs in systems.items():
        for run in runs:
            fold = next((f for f in folds if comparable(_first_run(f), run)), None)
            if fold is None:
                folds.append(fold := {})
            fold.setdefault(name, []).append(run)
    differ = [
        r for fold in folds for r in comparable(_first_run(folds[0]), _first_run(fold)).reasons
    ]
    uneven = any(
        len(fold.get(name, ())) * len(folds) != len(runs)
        for fold in folds
        for name, runs in systems.items()
    )
    if uneven or not all(reason.startswith(_OF_FOLDS) for reason in differ):
        reasons = "; ".join(dict.fromkeys(differ))
        raise InputError(
            f"runs of {', '.join(systems)} cannot be compared: {reasons}; give runs of the same "
            "questions (seeds), or as many runs of every system on each fold"
        )
    return folds


def _first_run(fold: Mapping[str, Sequence[Ranks]]) -> Ranks:
    """Return the first run of a fold."""
    return next(iter(fold.values()))[0]


CUTS = (1, 3, 10)
EPSILON = 0.01


@dataclass(frozen=True, eq=False)
class Multiplicity(ShownAsTables):
    """Disagreement of models that are as good as the best (Marx, Calmon and Ustun 2020).

    - best: Model with the highest MRR.
    - models: All models whose MRR is at most `epsilon` below the best, including the best.
    - ambiguity, float64 (cuts,): Share of instances on which at least one model has a hit at k and
      the best has none, or the reverse.
    - discrepancy, float64 (cuts,): Share of instances on which the most different model differs.
    - best_answer: Ambiguity and discrepancy by best answers instead of hits: shares of questions
      with another best answer. None without runs.
    """

    best: str
    models: tuple[str, ...]
    epsilon: float
    cuts: tuple[int, ...]
    ambiguity: Float64
    discrepancy: Float64
    best_answer: tuple[float, float] | None = None

    def table(self) -> Table:
        """Return a table with a row for the best answers if these are known, and one per cutoff."""
        names = [f"Hits@{k}" for k in self.cuts]
        shares = np.array([self.ambiguity, self.discrepancy])
        if self.best_answer is not None:
            names, shares = ["best answer", *names], np.column_stack([self.best_answer, shares])
        columns = "by, models, ambiguity:4, discrepancy:4"
        return Table.from_columns(columns, names, [len(self.models)] * len(names), *shares)


def multiplicity(
    models: Named[SystemRanks],
    epsilon: float = EPSILON,
    cuts: Sequence[int] = CUTS,
    *,
    runs: Named[RunColumns] | None = None,
) -> Multiplicity:
    """Compute ambiguity and discrepancy of models whose MRR is within `epsilon` of the best.

    The MRR is realistic and micro.

    Parameters
    ----------
    models : mapping of str to Ranks or Result, or sequence of them
        Two or more, on the same questions; see `samples_of_ranks`.
    epsilon : float
        Largest difference of an MRR from the best.
    cuts : sequence of int
        Cutoffs k of Hits@k.
    runs : mapping of str to RunColumns, or sequence of them, optional
        Runs by the same names, or in the same order without names. They are needed because ranks
        lack the entities in first place. The best answer of a question is its first document in
        trec_eval's order.

    Raises
    ------
    UsageError
        Fewer than two models, a negative epsilon, a cutoff below 1, or a model without a run.
    InputError
        The models did not answer the same questions, or a run lacks a question.
    """
    models = ranks_by_name("models", models)
    of_models = None if runs is None else by_names_of("runs", runs, models, "model")
    refuse_if(
        (
            not epsilon >= 0,
            f"{argument('epsilon', epsilon)} is not allowed; give how far an MRR "
            "may be below the best, 0 or more",
        ),
        (
            not cuts or min(cuts) < 1,
            f"{argument('cuts', cuts)} is not a list of cutoffs; give cutoffs of 1 or more",
        ),
    )
    aligned = align_ranks(models)
    ranks = {name: of_model.rank() for name, of_model in aligned.items()}
    if not all(len(of_model) for of_model in ranks.values()):
        raise InputError("no instance was evaluated; give ranks with at least one")
    mrr = {name: float((1 / of_model).mean()) for name, of_model in ranks.items()}
    best = max(mrr, key=mrr.__getitem__)
    close = tuple(name for name, value in mrr.items() if mrr[best] - value <= epsilon)
    of_cuts = [_shares({n: ranks[n] <= k for n in close}, best) for k in cuts]
    of_best = None
    if of_models is not None:
        queries = list(dict.fromkeys(aligned[best].question_ids))
        of_best = _shares({n: _best_documents(of_models[n], queries, n) for n in close}, best)
    ambiguity, discrepancy = np.array(of_cuts).T
    return Multiplicity(best, close, epsilon, tuple(cuts), ambiguity, discrepancy, of_best)


def _shares(outcomes: Mapping[str, NDArray[Any]], best: str) -> tuple[float, float]:
    """Return the shares of items on which models differ from the best.

    They are those of any model, and of the most different model.
    """
    differs = np.stack([of_model != outcomes[best] for of_model in outcomes.values()])
    return float(differs.any(axis=0).mean()), float(differs.mean(axis=1).max())


def _best_documents(run: RunColumns, queries: Sequence[str], name: str) -> NDArray[np.object_]:
    """Return the first document of each query; InputError, with the run's name, if it lacks one."""
    best = run.best(queries=set(queries))
    for query in queries:
        if query not in best:
            with about(run.path):
                raise InputError(
                    f"the run of {name} does not have question {query}, which its ranks have; give "
                    "the run that was written with these ranks"
                )
    return np.array([best[query][0] for query in queries], object)
