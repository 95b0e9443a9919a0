"""How stable a ranking of systems is: fewer test triples, deeper pools (Zhou et al. 2022).

`data_sensitivity` discards test triples at random and checks whether systems keep their order
(section 5.1, Figure 7); `subsets` values systems on the remaining ones. `depth_curves` does the
same for labels that grow with the depth of a pool (section 4.2, Figures 4 and 5).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from kgtrec._internal.csr import Bools, Float64
from kgtrec._internal.runtime import progress_bar
from kgtrec._internal.table import Cell, ShownAsTables, Table
from kgtrec.errors import InputError, UsageError
from kgtrec.measures import Measure, parse_all
from kgtrec.ranking.kernel import available_cores, share_rows
from kgtrec.study.comparison.correlation import RankingAgreement, agreement_table, tau_b
from kgtrec.study.comparison.samples import (
    align_ranks,
    distinct_titles,
    short_name,
    table_by_measure,
)
from kgtrec.study.comparison.subsets import subset_values

if TYPE_CHECKING:
    from kgtrec.ranking.ranks import Ranks


SHARES = (0.01, *(percent / 100 for percent in range(5, 100, 5)))
REPEATS = 50
MEASURES = ("both.realistic.micro.mrr", "both.realistic.micro.hits@10", "both.realistic.macro.mrr",
            "both.realistic.macro.hits@10", "both.macro.map_cut_20",
            "both.macro.ndcg_cut_20")  # fmt: skip

_TOGETHER = 64  # subsets whose weights are in memory at once,
_WEIGHTS = 4_000_000  # unless they are more than this


@dataclass(frozen=True, eq=False)
class Sensitivity(ShownAsTables):
    """Correlation of rankings of systems on parts of the test set with the ranking on all of it.

    - shares, float64 (S,): Share of the triples that is kept.
    - tau, float64 (m, S, repeats): tau-b to the ranking on all triples; NaN if a subset ties all
      systems.
    """

    measures: tuple[str, ...]
    titles: tuple[str, ...]
    systems: tuple[str, ...]
    shares: Float64
    tau: Float64
    triples: int
    seed: int

    def mean(self) -> Float64:
        """Mean tau over the repeats, float64 (m, S); subsets that tie all systems left out."""
        return _over_repeats(self.tau, np.nanmean)

    def spread(self) -> Float64:
        """Range of the middle 95 % of the repeats, float64 (2, m, S)."""
        return np.array([_over_repeats(self.tau, np.nanquantile, tail) for tail in (0.025, 0.975)])

    def table(self) -> Table:
        """One row per share, one column per measure: the mean tau over the repeats."""
        titles = dict(zip(self.measures, self.titles, strict=True))
        return table_by_measure(("share", "triples"), self._parts(), titles, self.mean())

    def _parts(self) -> list[tuple[str, int]]:
        """Each share, and how many triples it keeps."""
        return [(f"{s:.0%}", max(1, round(s * self.triples))) for s in self.shares.tolist()]

    def spread_table(self) -> Table:
        """A row per measure and share: the mean tau, and the range of the middle 95 %."""
        columns = np.stack([self.mean(), *self.spread()], axis=-1).tolist()
        rows: list[tuple[Cell, ...]] = [
            (name, *part, *values)
            for name, of_parts in zip(self.measures, columns, strict=True)
            for part, values in zip(self._parts(), of_parts, strict=True)
        ]
        columns = "measure, share, triples, tau-b=tau_b:4, low=tau_b.low:4, high=tau_b.high:4"
        return Table.of(columns, rows, names=2)

    def sentence(self) -> str:
        """Measures in order of stability, and where the ranking is least stable."""
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
            f"{self.titles[k]} on {self.shares[at]:.0%} of the triples, {mean[k, at]:.4f}."
        )
        if not ranked.all():
            text += " nan: all systems tie in all parts; left out of the means."
        return text


def _over_repeats(tau: Float64, summary: object, *arguments: float) -> Float64:
    """A summary of the finite values; NaN without a warning if there are none."""
    values = np.full(tau.shape[:-1], np.nan)
    has_value = np.isfinite(tau).any(axis=-1)
    if has_value.any():
        values[has_value] = summary(tau[has_value], *arguments, axis=-1)  # type: ignore[operator]
    return values


def data_sensitivity(
    ranks: Mapping[str, Ranks],
    measures: Sequence[str | Measure] | None = None,
    *,
    shares: Sequence[float] = SHARES,
    repeats: int = REPEATS,
    seed: int = 0,
    threads: int | None = None,
    progress: bool | None = False,
) -> Sensitivity:
    """Does the ranking of systems survive if fewer triples are tested?

    Nothing is scored again: see `kgtrec.study.comparison.stability`. All measures see the same
    subsets.

    Parameters
    ----------
    ranks : mapping of str to Ranks
        By the names of the systems, three at least; see `align_ranks`.
    measures : sequence of keys or Measure, optional
        By default micro MRR and Hits@10, macro MRR and Hits@10, MAP@20 and nDCG@20: the paper's.
    shares : sequence of float
        Parts of the triples to keep, each in (0, 1).
    repeats : int
        Random subsets of each size; the paper takes 50.
    seed : int
        The same seed chooses the same triples, for any number of threads.
    threads : int, optional
        By default, the cores that this process may use.
    progress : bool, optional
        A bar on standard error; None: on a terminal.

    Raises
    ------
    UsageError
        Fewer than three systems, a share outside (0, 1), or a measure that has no value on parts.
    InputError
        Systems that cannot be compared.
    """
    specs = parse_all(measures or MEASURES)
    sizes = _checked(len(ranks), shares, repeats)
    aligned = align_ranks(ranks)
    valued = subset_values(aligned, specs)
    n_triples, keys = valued.n_triples, [measure.key for measure in specs]
    full = valued.of(np.ones((1, n_triples), bool))
    tau = np.empty((len(specs), len(sizes) * repeats))
    instances = max(map(len, aligned.values()))
    together = max(1, min(_TOGETHER, _WEIGHTS // instances))
    starts = range(0, tau.shape[1], together)
    with progress_bar(len(starts), "blocks of subsets", progress) as bar:

        def fill(first: int, stop: int) -> None:
            subsets = _subsets(n_triples, sizes, repeats, range(first, stop), seed)
            for line, values, whole in zip(tau, valued.of(subsets), full, strict=True):
                there = np.isfinite(values).all(axis=1)
                line[first:stop] = np.nan
                line[first:stop][there] = tau_b(values[there], whole)
            bar.update()

        blocks = [(first, min(first + together, tau.shape[1])) for first in starts]
        share_rows(fill, blocks, available_cores() if threads is None else threads)
    titles = distinct_titles(list(map(_title, specs)), keys)
    parts = tau.reshape(len(specs), len(sizes), repeats)
    return Sensitivity(tuple(keys), titles, tuple(ranks), sizes, parts, n_triples, seed)


def _checked(n_systems: int, shares: Sequence[float], repeats: int) -> Float64:
    """The shares as an array."""
    if n_systems < 3:
        raise UsageError(
            f"{n_systems} systems are too few to rank; data sensitivity needs 3 or more"
        )
    sizes = np.asarray(shares, np.float64)
    if sizes.ndim != 1 or not len(sizes) or not ((sizes > 0) & (sizes < 1)).all():
        raise UsageError(f"shares {list(shares)!r} must be between 0 and 1, as in 0.05")
    if repeats < 1:
        raise UsageError(f"repeats={repeats!r} is not a number of repeats; give 1 or more")
    return sizes


def _subsets(n_triples: int, sizes: Float64, repeats: int, numbers: range, seed: int) -> Bools:
    """The subsets with these numbers, each from its own generator; bool (len, triples)."""
    subsets = np.zeros((len(numbers), n_triples), bool)
    for row, number in zip(subsets, numbers, strict=True):
        size = max(1, round(float(sizes[number // repeats]) * n_triples))
        row[np.random.default_rng([seed, number]).permutation(n_triples)[:size]] = True
    return subsets


def _title(measure: Measure) -> str:
    averaging = measure.averaging
    plain = measure.is_trec or averaging == "stratified"
    return measure.title if plain else f"{averaging} {measure.title}"


@dataclass(frozen=True, eq=False)
class DepthCurves(ShownAsTables):
    """Correlation of rankings of systems at every depth of a pool with the ranking at one depth.

    - reference: The depth that all are compared with.
    - agreements: A row of depths per measure. The intervals are over questions, and NaN if only
      values are known; see `kgtrec.study.pooling.depths`.
    - systems: Empty if only values were given.
    - values: float64 (m, d, s)
    """

    measures: tuple[str, ...]
    depths: tuple[int, ...]
    reference: int
    agreements: tuple[tuple[RankingAgreement, ...], ...]
    systems: tuple[str, ...]
    values: Float64

    @property
    def tau(self) -> Float64:
        """tau-b, float64 (m, d)."""
        return np.array([[one.tau for one in row] for row in self.agreements])

    @property
    def interval(self) -> Float64 | None:
        """Ends of the intervals of `tau`, float64 (2, m, d); None if only values are known."""
        ends = np.array([[one.tau_interval for one in row] for row in self.agreements])
        return np.moveaxis(ends, 2, 0) if self.systems else None

    def least_alike(self) -> str:
        """A sentence: where the rankings differ most from the reference's."""
        if not np.isfinite(self.tau).any():
            return f"At depth {self.reference} all systems tie, so there is no ranking."
        k, at = np.unravel_index(np.nanargmin(self.tau), self.tau.shape)
        return (
            f"Least like depth {self.reference}: {self.measures[k]} at depth {self.depths[at]}, "
            f"{self.tau[k, at]:.4f}."
        )

    def values_by_name(self) -> dict[str, dict[str, dict[str, float]]]:
        """Measure, then depth, then system, to the value; empty if systems have no names."""
        return {
            name: {
                str(depth): dict(zip(self.systems, row, strict=True))
                for depth, row in zip(self.depths, rows, strict=True)
            }
            for name, rows in zip(self.measures, self.values.tolist(), strict=True)
            if self.systems
        }

    def interval_table(self) -> Table:
        """A row per measure and depth: tau-b and tau-AP, with intervals."""
        if not self.systems:
            raise UsageError("these curves have no intervals; use table() instead")
        names = [(name, str(depth)) for name in self.measures for depth in self.depths]
        return agreement_table(
            ("measure", "depth"), names, chain(*self.agreements), count_systems=False
        )

    def table(self) -> Table:
        """One row per depth, one column per measure: tau-b."""
        titles = {name: short_name(name) for name in self.measures}
        return table_by_measure(("depth",), [(str(d),) for d in self.depths], titles, self.tau)


def depth_curves(
    values: Mapping[str, ArrayLike],
    depths: Sequence[int],
    reference: int | None = None,
    *,
    lower_is_better: Sequence[str] = (),
) -> DepthCurves:
    """How the ranking of systems changes as a pool grows deeper.

    Parameters
    ----------
    values : mapping of str to array-like of float, shape (depths, s)
        By measure: the systems' values with the labels of each depth.
    depths : sequence of int
        Ascending; 0 for the labels before pooling.
    reference : int, optional
        One of the depths; by default the first.
    lower_is_better : sequence of str
        Measures such as MR: tau-AP needs the better end.

    Raises
    ------
    InputError
        Values of wrong shapes.
    UsageError
        The reference is not one of the depths.
    """
    depths = tuple(int(depth) for depth in depths)
    chosen = depths[0] if reference is None else reference
    if chosen not in depths:
        raise UsageError(
            f"reference {chosen!r} is not a depth; choose one of {', '.join(map(str, depths))}"
        )
    agreements = []
    for name, table in values.items():
        rows = np.asarray(table, np.float64)
        if rows.ndim != 2 or len(rows) != len(depths) or rows.shape[1] < 2:
            raise InputError(
                f"{name} has values of shape {rows.shape}; give one row per depth ({len(depths)}) "
                "and one column per system (two or more)"
            )
        higher = name not in lower_is_better
        whole = rows[depths.index(chosen)]
        agreements.append(tuple(RankingAgreement.of(whole, row, higher, higher) for row in rows))
    every = np.array([*values.values()], np.float64)
    return DepthCurves(tuple(values), depths, chosen, tuple(agreements), (), every)
