"""Rankings of the same systems by several labels or measures, parts, subsets and depths of pools.

`correlation` compares two rankings. This module compares many, and makes tables. Zhou et al. (2022)
compare sparse with complete labels: by category and side (Table 3), at the sparse relation ratios
(Table 4), and at every depth of a pool (Figures 4 and 5). They also discard test triples at random
(section 5.1, Figure 7); `subsets` computes values on the others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations
from math import factorial

import numpy as np
from numpy.typing import ArrayLike

from kgtrec._internal.arguments import (
    MOST_PARTS,
    as_floats,
    check_count,
    random_generator,
    require_items,
    require_type,
)
from kgtrec._internal.arrays import Bools, Float64, Int64
from kgtrec._internal.bootstrap import COMPARING, Resampled, Resampling
from kgtrec._internal.named import Named, by_name
from kgtrec._internal.progress import progress_bar
from kgtrec._internal.table import Cell, ShownAsTables, Table
from kgtrec.errors import InputError, UsageError, choose, refuse_if
from kgtrec.measures import Measure, parse_all
from kgtrec.ranking.kernel import available_cores, share_rows
from kgtrec.study.comparison.correlation import (
    RankingAgreement,
    agreement_table,
    over_questions,
    over_systems,
    places_of,
    tau_b,
)
from kgtrec.study.comparison.parts import WHOLE, SystemValues
from kgtrec.study.comparison.samples import (
    Samples,
    SystemRanks,
    align_ranks,
    distinct_titles,
    ranks_by_name,
    resample,
    short_name,
    table_by_measure,
)
from kgtrec.study.comparison.significance import pairs_of
from kgtrec.study.comparison.subsets import SubsetValues, subset_values


@dataclass(frozen=True, eq=False)
class Rankings(ShownAsTables):
    """Rankings of the same systems, given by their values, and the agreement of these rankings.

    - title: Title of the measure that all rankings share, or "".
    - values, float64 (k, s): Value of each system in each ranking.
    - over_systems: Agreement of the pairs i < j of rankings, in the order of
      `kgtrec.study.comparison.significance.pairs_of`, with intervals over systems.
    - over_questions: Agreement of the same pairs with intervals over questions; empty if only
      values are known.
    """

    _shown = ("value_table",)

    title: str
    names: tuple[str, ...]
    systems: tuple[str, ...]
    values: Float64
    higher: tuple[bool, ...]
    over_systems: tuple[RankingAgreement, ...]
    over_questions: tuple[RankingAgreement, ...] = ()

    def agreement(self, first: int, second: int) -> RankingAgreement:
        """Return the agreement of two of the rankings.

        Its intervals are over questions if these were drawn, else over systems.
        """
        pair = [min(first, second), max(first, second)]
        index = pairs_of(len(self.names)).tolist().index(pair)
        return (self.over_questions or self.over_systems)[index]

    def system_ranks(self) -> Int64:
        """Return the place of each system, int64 (k, s); systems that tie share a place.

        The place is 1 plus the number of better systems.
        """
        return places_of(np.where(self.higher, 1.0, -1.0)[:, None] * self.values)

    def value_table(self) -> Table:
        """Return a table with a row per system: its value and place in each ranking.

        The best system by the first ranking comes first.
        """
        ranks = self.system_ranks()
        heads = [
            head for name in self.names for head in ((name, name, 4), ("place", f"{name}.place", 0))
        ]
        columns = chain.from_iterable(zip(self.values, ranks, strict=True))
        table = Table.from_columns(["system", *heads], self.systems, *columns)
        return table.in_order(np.argsort(ranks[0], kind="stable"))

    def long_table(self) -> Table:
        """Return a table with a row per system and ranking: its value and place."""
        ranks = self.system_ranks()
        order = np.argsort(ranks[0], kind="stable").tolist()
        rows: list[tuple[Cell, ...]] = [
            (self.systems[i], name, float(self.values[k, i]), int(ranks[k, i]))
            for i in order
            for k, name in enumerate(self.names)
        ]
        return Table.from_rows("system, ranking, value:4, place", rows, 2)

    def pair_names(self) -> list[tuple[str, str]]:
        """Return the names of the rankings of each agreement."""
        return [*combinations(self.names, 2)]


def full_agreement(rankings: Sequence[Rankings]) -> str:
    """Return a sentence on the chance of tau = 1; "" if no two rankings agree fully."""
    full = [
        agreement
        for several in rankings
        for agreement in several.over_systems
        if abs(agreement.tau) == 1
    ]
    if not full:
        return ""
    n = full[0].n_systems
    return (
        f" If rankings agree fully, drawing systems shows no spread. Two random rankings of {n} "
        f"systems agree fully with a chance of 1 in {factorial(n):,}."
    )


def rankings_of_samples(
    samples: Mapping[str, Samples] | Sequence[Samples],
    title: str = "",
    *,
    resampled: Sequence[Resampled] | None = None,
    resampling: Resampling = COMPARING,
) -> Rankings:
    """Rank systems by samples, with intervals over questions and over systems.

    Parameters
    ----------
    samples : mapping of str to Samples, or sequence of Samples
        Samples by the names of the rankings: a measure with several sets of labels, or several
        measures. Those of a sequence are called like their measures.
    resampled : sequence of Resampled, optional
        Existing draws, one per ranking.
    resampling : Resampling
        How to make the intervals. Rankings over the same number of questions have the same draws.

    Raises
    ------
    UsageError
        Fewer than three systems or two rankings.
    InputError
        The systems are not the same, or two rankings share no query.
    """
    in_order = [*samples.values()] if isinstance(samples, Mapping) else samples
    require_items("samples", in_order, Samples, "Samples (study.samples_of_runs)")
    named = samples if isinstance(samples, Mapping) else [(each.name, each) for each in samples]
    samples = by_name("samples", named, "ranking")
    columns = list(samples.values())
    if len({of_ranking.systems for of_ranking in columns}) > 1:
        raise InputError("these rankings have different systems; give rankings of the same systems")
    _check_queries(samples)
    drawn = resampled or [resample(of_ranking, resampling) for of_ranking in columns]
    falling = [name for name, of_name in samples.items() if not of_name.higher_is_better]
    rankings = rankings_of_values(
        {name: draws.estimate for name, draws in zip(samples, drawn, strict=True)},
        columns[0].systems if columns else (),
        title,
        lower_is_better=falling,
        resampling=resampling,
    )
    higher = rankings.higher
    agreements = tuple(
        over_questions(drawn[i], drawn[j], x_higher=higher[i], y_higher=higher[j])
        for i, j in pairs_of(len(drawn)).tolist()
    )
    return replace(rankings, over_questions=agreements)


def _check_queries(samples: Mapping[str, Samples]) -> None:
    """Raise InputError if two rankings are by queries, and share none."""
    for (first, ours), (second, theirs) in combinations(samples.items(), 2):
        if ours.items and theirs.items and set(ours.items).isdisjoint(theirs.items):
            raise InputError(
                f"{first} and {second} share no query: the first of {first} is {ours.items[0]!r}, "
                f"that of {second} {theirs.items[0]!r}; give labels of the same queries"
            )


def rankings_of_values(
    values: Mapping[str, ArrayLike],
    systems: Sequence[str],
    title: str = "",
    *,
    lower_is_better: Sequence[str] = (),
    resampling: Resampling = COMPARING,
) -> Rankings:
    """Rank systems by given values, such as published ones, with intervals only over systems.

    Parameters
    ----------
    values : mapping of str to array-like of float, shape (s,)
        Values by the names of the rankings.
    systems : sequence of str, length s
    lower_is_better : sequence of str
        Names of rankings by measures such as MR.
    resampling : Resampling

    Raises
    ------
    UsageError
        Fewer than three systems or two rankings.
    InputError
        Values are not finite, or there is not one per system.
    """
    require_type("values", values, Mapping, "a mapping of names to values")
    refuse_if(
        (len(values) < 2, f"{len(values)} ranking cannot be compared; give two or more"),
        (len(systems) < 3, f"{len(systems)} systems are too few to rank; give three or more"),
    )
    rows = [as_floats("values", row) for row in values.values()]
    shapes = ", ".join(str(row.shape) for row in rows)
    if any(row.shape != (len(systems),) for row in rows):
        raise InputError(
            f"values have shapes {shapes} for {len(systems)} systems; give one value per system"
        )
    higher = [name not in lower_is_better for name in values]
    best_last = np.where(higher, 1, -1)[:, None] * rows
    over = tuple(
        over_systems(*best_last[pair], resampling=resampling) for pair in pairs_of(len(rows))
    )
    return Rankings(title, tuple(values), tuple(systems), np.array(rows), tuple(higher), over)


@dataclass(frozen=True, eq=False)
class PartRankings(ShownAsTables):
    """Agreement of two rankings of the same systems, by measure and part.

    - dimensions: Headings of the names of a part.
    - systems: Systems of both rankings; empty if they have no names.
    - agreements: Agreement by measure and part, all parts of the first measure first. Intervals are
      NaN if a ranking is unknown, or if only values are known.
    - left_out: Parts that only one of two sets of labels has.
    """

    _shown = ("table", "interval_table")
    _count_systems = True

    dimensions: tuple[str, ...]
    systems: tuple[str, ...]
    agreements: Mapping[tuple[str, tuple[str, ...]], RankingAgreement]
    left_out: tuple[tuple[str, ...], ...] = ()

    @property
    def measures(self) -> tuple[str, ...]:
        """Keys of the measures."""
        return tuple(dict.fromkeys(measure for measure, _ in self.agreements))

    @property
    def parts(self) -> tuple[tuple[str, ...], ...]:
        """Parts on which systems are ranked."""
        return tuple(dict.fromkeys(part for _, part in self.agreements))

    @property
    def tau(self) -> Float64:
        """Kendall's tau-b, float64 (m, parts); NaN if a ranking is unknown."""
        taus = np.array([agreement.tau for agreement in self.agreements.values()])
        return taus.reshape(len(self.measures), -1)

    def table(self) -> Table:
        """Return a table with a row per part: tau-b by every measure (Zhou et al., Table 3)."""
        titles = {measure: short_name(measure) for measure in self.measures}
        dimensions = self.dimensions
        return table_by_measure(dimensions, self.parts, titles, self.tau, len(dimensions))

    def interval_table(self) -> Table:
        """Return a table with a row per measure and part: tau-b and tau-AP with intervals."""
        names = [(measure, *part) for measure, part in self.agreements]
        return agreement_table(
            ("measure", *self.dimensions),
            names,
            self.agreements.values(),
            count_systems=self._count_systems,
        )


def rankings_by_part(
    ours: Sequence[SystemValues],
    theirs: Sequence[SystemValues],
    *,
    resampling: Resampling = COMPARING,
) -> PartRankings:
    """Correlate the rankings of systems by two sets of labels, part by part.

    Parameters
    ----------
    ours, theirs : sequence of SystemValues
        Values by the same measures. Systems and parts that only one of them has are left out. If
        one has only values over all questions, each part of the other is compared with these.
    resampling : Resampling
        How to make the intervals; systems are resampled.

    Raises
    ------
    UsageError
        Measures or parts differ, or fewer than three systems are in both.
    """
    require_items("ours", ours, SystemValues, "SystemValues (study.values_of_table)")
    require_items("theirs", theirs, SystemValues, "SystemValues (study.values_of_table)")
    measures = [values.measure for values in ours]
    if measures != [values.measure for values in theirs] or not measures:
        raise UsageError(
            "both sets of labels need values of the same measures; give at least one measure"
        )
    systems = shared_systems(ours[0], theirs[0])
    parts, left_out = _shared_parts(ours[0], theirs[0])
    agreements = {}
    for pair in zip(ours, theirs, strict=True):
        both = [values.on(systems) for values in pair]
        measure, higher = both[0].measure, both[0].higher_is_better is not False
        for part in parts:
            rows = [values.parts[part if values.dimensions else WHOLE] for values in both]
            agreements[measure, part] = _agreement(rows, higher, resampling)
    dimensions = ours[0].dimensions or theirs[0].dimensions or ("questions",)
    return PartRankings(dimensions, systems, agreements, tuple(left_out))


def rankings_by_labels(
    ours: Sequence[SystemValues],
    others: Mapping[str, Sequence[SystemValues]],
    *,
    resampling: Resampling = COMPARING,
) -> PartRankings:
    """Correlate the rankings by several sets of labels with those by a reference, part by part.

    Parameters
    ----------
    ours : sequence of SystemValues
        Values by each measure with the labels of the reference.
    others : mapping of str to sequence of SystemValues
        Values by the same measures, by the names of the other sets of labels. Only systems that all
        sets have are ranked. The first name of a part is that of its set.
    resampling : Resampling

    Raises
    ------
    UsageError, InputError
        As `rankings_by_part`.
    """
    require_items("ours", ours, SystemValues, "SystemValues (study.values_of_table)")
    require_type("others", others, Mapping, "a mapping of names to SystemValues")
    systems = shared_systems(ours[0], *(values[0] for values in others.values()))
    reference = [values.on(systems) for values in ours]
    by_name = {
        name: rankings_by_part(reference, [v.on(systems) for v in values], resampling=resampling)
        for name, values in others.items()
    }
    agreements = {
        (measure, (name, *part)): rankings.agreements[measure, part]
        for measure in dict.fromkeys(values.measure for values in ours)
        for name, rankings in by_name.items()
        for part in rankings.parts
    }
    left_out = tuple((name, *part) for name, each in by_name.items() for part in each.left_out)
    dimensions = ("labels", *next(iter(by_name.values())).dimensions)
    return PartRankings(dimensions, systems, agreements, left_out)


def shared_systems(*sets: SystemValues) -> tuple[str, ...]:
    """Return the systems of all sets, in the order of the first; UsageError if they are too few."""
    shared = tuple(
        name for name in sets[0].systems if all(name in values.systems for values in sets)
    )
    if len(shared) < 3:
        *counts, last = (str(len(values.systems)) for values in sets)
        which = "both" if len(sets) == 2 else "all"
        raise UsageError(
            f"{len(shared)} systems are in {which} (of {', '.join(counts)} and {last}), "
            f"too few to rank; give 3 or more that have the same names in {which}"
        )
    return shared


def _shared_parts(
    ours: SystemValues, theirs: SystemValues
) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
    """Return the parts of both, and the parts of only one."""
    if not (ours.dimensions and theirs.dimensions):
        return list((ours if ours.dimensions else theirs).parts), []
    if len(ours.dimensions) != len(theirs.dimensions):
        raise UsageError(
            f"parts by {ours.dimensions} and by {theirs.dimensions} are different; use the same "
            "columns for both"
        )
    shared = [part for part in ours.parts if part in theirs.parts]
    if not shared:
        raise InputError(
            f"the sets share no part: {', '.join(next(iter(ours.parts)))} is in one, "
            f"{', '.join(next(iter(theirs.parts)))} in the other; give the parts the same names"
        )
    every = dict.fromkeys((*ours.parts, *theirs.parts))
    return shared, [part for part in every if part not in shared]


def _agreement(values: Sequence[Float64], higher: bool, resampling: Resampling) -> RankingAgreement:
    """Return the agreement with intervals over systems; all NaN if a system has no value."""
    if not all(np.isfinite(row).all() for row in values):
        none = (math.nan, math.nan)
        return RankingAgreement(*none, none, none, resampling, "systems", len(values[0]))
    return over_systems(*values, x_higher=higher, y_higher=higher, resampling=resampling)


SHARES = (0.01, *(percent / 100 for percent in range(5, 100, 5)))
REPEATS = 50
MEASURES = (
    "both.realistic.micro.mrr",
    "both.realistic.micro.hits@10",
    "both.realistic.macro.mrr",
    "both.realistic.macro.hits@10",
    "both.macro.map_cut_20",
    "both.macro.ndcg_cut_20",
)

_TOGETHER = 64  # most subsets whose weights are in memory at the same time
_WEIGHTS = 4_000_000  # most weights that are in memory at the same time


@dataclass(frozen=True, eq=False)
class Sensitivity(ShownAsTables):
    """Correlation of rankings of systems on parts of the test set with the ranking on all of it.

    - shares, float64 (S,): Shares of the triples that are kept.
    - tau, float64 (m, S, repeats): tau-b to the ranking on all triples; NaN if a subset ties all
      systems.
    - triples: Number of test triples; 0 if a table of values does not say it.
    - unit: "triples", or "judgements" of runs.
    """

    measures: tuple[str, ...]
    titles: tuple[str, ...]
    systems: tuple[str, ...]
    shares: Float64
    tau: Float64
    triples: int
    seed: int
    unit: str = "triples"

    def mean(self) -> Float64:
        """Return the mean tau over the repeats, float64 (m, S).

        Subsets that tie all systems are ignored.
        """
        return _over_repeats(self.tau, np.nanmean)

    def spread(self) -> Float64:
        """Return the range of the middle 95 % of the repeats, float64 (2, m, S)."""
        return np.array([_over_repeats(self.tau, np.nanquantile, tail) for tail in (0.025, 0.975)])

    def table(self) -> Table:
        """Return a table with a row per share: the mean tau over the repeats by each measure."""
        titles = dict(zip(self.measures, self.titles, strict=True))
        return table_by_measure(self._heads(), self._parts(), titles, self.mean())

    def _heads(self) -> tuple[str, ...]:
        return ("share", self.unit) if self.triples else ("share",)

    def _parts(self) -> list[tuple[Cell, ...]]:
        """Return each share as text, and the number of triples that it keeps, if it is known."""
        shares = [(share, f"{100 * share:.4g}%") for share in self.shares.tolist()]
        if not self.triples:
            return [(text,) for _, text in shares]
        return [(text, max(1, round(share * self.triples))) for share, text in shares]

    def spread_table(self) -> Table:
        """Return a table with a row per measure and share: mean tau, and the middle 95 %."""
        heads = ", ".join(self._heads())
        columns = f"measure, {heads}, tau-b=tau_b:4, low=tau_b.low:4, high=tau_b.high:4"
        names = np.repeat(self.measures, len(self.shares))
        parts = zip(*self._parts() * len(self.measures), strict=True)
        values = (taus.ravel() for taus in (self.mean(), *self.spread()))
        return Table.from_columns(columns, names, *parts, *values, names=2)

    def sentence(self) -> str:
        """Return a sentence on the stability of the measures, and on the least stable ranking."""
        mean = self.mean()
        ranked = np.isfinite(mean)
        if not ranked.any():
            return "All systems tie in all parts, so there is no ranking."
        overall = _over_repeats(mean, np.nanmean)
        order = np.argsort(-overall, kind="stable").tolist()  # NaN last
        stable = ", ".join(f"{self.titles[k]} {overall[k]:.4f}" for k in order)
        k, at = np.unravel_index(np.nanargmin(mean), mean.shape)
        text = (
            f"Most stable first, by the mean over all sizes: {stable}. Least of all: "
            f"{self.titles[k]} on {100 * self.shares[at]:.4g}% of the {self.unit}, "
            f"{mean[k, at]:.4f}."
        )
        if not ranked.all():
            text += " nan: all systems tie in all parts; left out of the means."
        return text


def _over_repeats(tau: Float64, summary: object, *arguments: float) -> Float64:
    """Summarize the finite values of the last axis; NaN without a warning if there are none."""
    values = np.full(tau.shape[:-1], np.nan)
    has_value = np.isfinite(tau).any(axis=-1)
    if has_value.any():
        values[has_value] = summary(tau[has_value], *arguments, axis=-1)  # type: ignore[operator]
    return values


def data_sensitivity(
    ranks: Named[SystemRanks],
    measures: Sequence[str | Measure] | None = None,
    *,
    shares: Sequence[float] = SHARES,
    repeats: int = REPEATS,
    seed: int = 0,
    threads: int | None = None,
    progress: bool | None = False,
) -> Sensitivity:
    """Correlate the rankings of systems on random parts of the triples with that on all triples.

    Nothing is scored again. All measures use the same subsets.

    Parameters
    ----------
    ranks : mapping of str to Ranks or Result, or sequence of them
        Those of at least three systems; see `samples_of_ranks`.
    measures : sequence of keys or Measure, optional
        By default those of the paper: micro MRR and Hits@10, macro MRR and Hits@10, MAP@20 and
        nDCG@20.
    shares : sequence of float
        Shares of the triples to keep, each in (0, 1).
    repeats : int
        Number of random subsets of each size; the paper uses 50.
    seed : int
        The same seed chooses the same triples, for any number of threads.
    threads, progress
        As for `kgtrec.rank`.

    Raises
    ------
    UsageError
        Fewer than three systems, a share outside (0, 1), or a measure that has no value on parts.
    InputError
        Systems cannot be compared.
    """
    ranks = ranks_by_name("ranks", ranks)
    specs = parse_all(measures or MEASURES)
    sizes = check_parts(len(ranks), shares)
    repeats = check_count("repeats", repeats, most=MOST_PARTS)
    aligned = align_ranks(ranks)
    n_triples = len(np.unique(next(iter(aligned.values())).triple))
    n_weights = max(map(len, aligned.values()))
    tau = correlate_parts(
        subset_values(aligned, specs),
        (n_triples, n_weights),
        sizes,
        repeats,
        seed=seed,
        threads=threads,
        progress=progress,
    )
    keys, titles = [measure.key for measure in specs], [*map(_title_with_average, specs)]
    distinct = distinct_titles(titles, keys)
    return Sensitivity(tuple(keys), distinct, tuple(ranks), sizes, tau, n_triples, seed)


def _title_with_average(measure: Measure) -> str:
    """Return the title of a measure, such as "micro MRR"; trec_eval's have no average."""
    if measure.is_trec or measure.averaging == "stratified":
        return measure.title
    return f"{measure.averaging} {measure.title}"


def check_parts(n_systems: int, shares: Sequence[float]) -> Float64:
    """Return the shares as an array; UsageError if one is not, or systems are too few to rank."""
    sizes = np.asarray(shares, np.float64)
    fits = sizes.ndim == 1 and len(sizes) and ((sizes > 0) & (sizes < 1)).all()
    refuse_if(
        (
            n_systems < 3,
            f"{n_systems} systems are too few to rank; data sensitivity needs 3 or more",
        ),
        (not fits, f"shares {list(shares)!r} must be between 0 and 1, as in 0.05"),
    )
    return sizes


def correlate_parts(
    values_on: SubsetValues,
    counts: tuple[int, int],
    sizes: Float64,
    repeats: int,
    *,
    seed: int,
    threads: int | None,
    progress: bool | None,
) -> Float64:
    """Correlate rankings on random parts with that on all items, float64 (measures, S, repeats).

    `counts` has the number of items, and of the weights of a subset.
    """
    n_items, n_weights = counts

    def draw(numbers: range) -> Bools:
        return _subsets(n_items, sizes, repeats, numbers, seed)

    whole = values_on(np.ones((1, n_items), bool))
    most = max(1, min(_TOGETHER, _WEIGHTS // n_weights))
    n_threads = available_cores() if threads is None else threads
    tau = _correlate_subsets(
        draw, len(sizes) * repeats, values_on, whole, most, n_threads, progress
    )
    return tau.reshape(len(whole), len(sizes), repeats)


def _correlate_subsets(
    draw: Callable[[range], Bools],
    n_subsets: int,
    values_on: SubsetValues,
    whole: Float64,
    most: int,
    threads: int,
    progress: bool | None,
) -> Float64:
    """Compute tau-b of the values on each subset and on all triples, float64 (measures, subsets).

    It is NaN if a system has no value on a subset.

    - draw: Returns the subsets with these numbers, bool (len, n_triples).
    - whole: Values on all triples, float64 (measures, 1, s).
    - most: Number of subsets whose weights are in memory at the same time.
    """
    tau = np.full((len(whole), n_subsets), np.nan)
    starts = range(0, n_subsets, most)
    with progress_bar(len(starts), "blocks of subsets", progress) as bar:

        def fill(first: int, stop: int) -> None:
            values_of = values_on(draw(range(first, stop)))
            for row, values, on_all in zip(tau[:, first:stop], values_of, whole, strict=True):
                has_value = np.isfinite(values).all(axis=1)
                row[has_value] = tau_b(values[has_value], on_all)
            bar.update()

        share_rows(fill, [(first, min(first + most, n_subsets)) for first in starts], threads)
    return tau


def _subsets(n_triples: int, sizes: Float64, repeats: int, numbers: range, seed: int) -> Bools:
    """Draw the subsets with these numbers, bool (len, triples); each has a separate generator."""
    subsets = np.zeros((len(numbers), n_triples), bool)
    for row, number in zip(subsets, numbers, strict=True):
        size = max(1, round(float(sizes[number // repeats]) * n_triples))
        row[random_generator(seed, number).permutation(n_triples)[:size]] = True
    return subsets


@dataclass(frozen=True, eq=False)
class DepthCurves(PartRankings):
    """Correlation of rankings of systems at every depth of a pool with the ranking at one depth.

    Parts are depths, and intervals are over questions; see `kgtrec.study.pooling.depths`.

    - reference: Depth with which all depths are compared.
    - values: Values by each measure at every depth; empty if systems have no names.
    """

    _count_systems = False  # every depth has all systems, and the name of the measure is long

    reference: int = 0
    values: tuple[SystemValues, ...] = ()

    @property
    def depths(self) -> tuple[int, ...]:
        """Depths of the pool, ascending."""
        return tuple(int(depth) for (depth,) in self.parts)

    @property
    def interval(self) -> Float64 | None:
        """Ends of the intervals of `tau`, float64 (2, m, d); None if only values are known."""
        ends = np.array([agreement.tau_interval for agreement in self.agreements.values()])
        return ends.T.reshape(2, *self.tau.shape) if self.systems else None

    def least_alike(self) -> str:
        """Return a sentence on the ranking that differs most from that of the reference."""
        if not np.isfinite(self.tau).any():
            return f"At depth {self.reference} all systems tie, so there is no ranking."
        k, at = np.unravel_index(np.nanargmin(self.tau), self.tau.shape)
        return (
            f"Least like depth {self.reference}: {self.measures[k]} at depth {self.depths[at]}, "
            f"{self.tau[k, at]:.4f}."
        )


def depth_curves(
    values: Mapping[str, ArrayLike],
    depths: Sequence[int],
    reference: int | None = None,
    *,
    lower_is_better: Sequence[str] = (),
) -> DepthCurves:
    """Correlate the ranking of systems at each depth of a pool with that at a reference depth.

    Parameters
    ----------
    values : mapping of str to array-like of float, shape (depths, s)
        Values of the systems with the labels of each depth, by measure.
    depths : sequence of int
        Depths, ascending; 0 for the labels before pooling.
    reference : int, optional
        A depth; by default the first.
    lower_is_better : sequence of str
        Measures such as MR; tau-AP needs the better end.

    Raises
    ------
    InputError
        Values have wrong shapes.
    UsageError
        The reference is not among the depths.
    """
    require_type("values", values, Mapping, "a mapping of measures to arrays")
    depths = tuple(int(depth) for depth in depths)
    chosen = depths[0] if reference is None else reference
    choose("reference", chosen, depths, "is not a depth")
    agreements: dict[tuple[str, tuple[str, ...]], RankingAgreement] = {}
    for name, table in values.items():
        rows = as_floats("values", table)
        if rows.ndim != 2 or len(rows) != len(depths) or rows.shape[1] < 2:
            raise InputError(
                f"{name} has values of shape {rows.shape}; give one row per depth ({len(depths)}) "
                "and one column per system (two or more)"
            )
        rows = -rows if name in lower_is_better else rows
        whole = rows[depths.index(chosen)]
        for depth, row in zip(depths, rows, strict=True):
            agreements[name, (str(depth),)] = RankingAgreement.from_values(whole, row)
    return DepthCurves(("depth",), (), agreements, reference=chosen)
