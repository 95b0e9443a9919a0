"""One measure of many models on many graphs: means, places, pairs, missing cells."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from kgtrec._internal.bootstrap import Resampling
from kgtrec._internal.table import Cell, ShownAsTables, Table
from kgtrec.errors import UsageError, choose
from kgtrec.measures import Measure, parse_all
from kgtrec.study.comparison.significance import corrected, pairs_of, wilcoxon
from kgtrec.study.suite.cells import DRAWING, SuiteCells, cells_of_ranks
from kgtrec.study.suite.statistics import (
    Friedman,
    Standing,
    bounds_of_ranks,
    friedman,
    places,
    ranks_within,
    standing,
    weighted_means,
)

if TYPE_CHECKING:
    from kgtrec.ranking.ranks import Ranks

Floats = NDArray[np.float64]

ALL = "all"
TESTS = ("nemenyi", "wilcoxon")
MEASURES = ("adjusted_mrr", "adjusted_hits@10")
"""Comparable between graphs of different sizes."""
FEWEST = 0.5
"""Models with a smaller share of the graphs are set apart."""


@dataclass(frozen=True, eq=False)
class Suite(ShownAsTables):
    """Models on a suite of graphs by one measure.

    Attributes
    ----------
    cells : SuiteCells
        Values by model and graph, and their draws.
    groups : dict of str to tuple of str
        Graphs of each group; "all" has all of them.
    test : {"nemenyi", "wilcoxon"}
        Friedman's test with Nemenyi's critical difference, or Wilcoxon tests of all pairs with
        Holm's correction; both over graphs.
    resampling : Resampling
    level : float
        Accepted error probability of the test.
    """

    _shown = ("table", "missing_table")

    cells: SuiteCells
    groups: Mapping[str, tuple[str, ...]]
    test: str = "nemenyi"
    resampling: Resampling = DRAWING
    level: float = 0.05
    fewest: float = FEWEST

    # -- What is computed ------------------------------------------------------------------------

    @cached_property
    def apart(self) -> NDArray[np.bool_]:
        """Models with too few graphs to be ranked, bool (models,)."""
        return self.cells.present.mean(axis=1) < self.fewest

    @cached_property
    def ranked(self) -> Floats:
        """Values of the models that are ranked; the others' are NaN."""
        return np.where(self.apart[:, None], np.nan, self.cells.values)

    @cached_property
    def ranks(self) -> Floats:
        """Rank of every ranked model on every graph, float64 (models, graphs)."""
        return ranks_within(self.ranked, self.cells.sign)

    @cached_property
    def standing(self) -> Standing:
        """Mean rank, Borda count and win rate."""
        return standing(self.ranks, np.ones(len(self.cells.graphs)))

    @cached_property
    def _weights(self) -> Floats:
        """How often each draw takes each graph, float64 (B, graphs)."""
        n_graphs, how = len(self.cells.graphs), self.resampling
        rng = np.random.default_rng(how.seed)
        chosen = rng.integers(0, n_graphs, (how.resamples, n_graphs))
        chosen += n_graphs * np.arange(how.resamples)[:, None]
        counts = np.bincount(chosen.ravel(), minlength=n_graphs * how.resamples)
        return counts.reshape(-1, n_graphs).astype(np.float64)

    @cached_property
    def _drawn(self) -> Standing:
        """The same on every draw of graphs, questions and seeds, float64 (B, models) each."""
        if self.cells.draws is None:
            return standing(self.ranks, self._weights)
        drawn = []
        for values, weights in zip(self.cells.draws, self._weights, strict=True):
            own = np.where(self.apart[:, None], np.nan, values)
            drawn.append(standing(ranks_within(own, self.cells.sign), weights))
        return Standing(*map(np.array, zip(*drawn, strict=True)))

    def mean_draws(self, group: str = ALL) -> Floats:
        """Means over the graphs of a group on every draw, float64 (B, models)."""
        weights = self._weights * self._of_group(group)
        if self.cells.draws is None:
            return weighted_means(self.cells.values, weights)
        pairs = zip(self.cells.draws, weights, strict=True)
        return np.array([weighted_means(values, own) for values, own in pairs])

    def _of_group(self, group: str) -> Floats:
        return np.array([float(graph in self.groups[group]) for graph in self.cells.graphs])

    def means(self, group: str = ALL) -> Floats:
        """Mean over the graphs of a group that a model has, float64 (models,); NaN: none."""
        return weighted_means(self.cells.values, self._of_group(group))

    def interval(self, draws: Floats) -> Floats:
        """Percentile intervals, float64 (2, models)."""
        ends = np.full((2, draws.shape[1]), np.nan)
        known = ~np.isnan(draws).all(axis=0)
        if known.any():
            ends[:, known] = np.nanquantile(draws[:, known], self.resampling.tails, axis=0)
        return ends

    @cached_property
    def place_draws(self) -> Floats:
        """Place of every model by mean rank on every draw, float64 (B, models)."""
        return places(self._drawn.mean_rank)

    @property
    def best_share(self) -> Floats:
        """Probability of being best: share of the draws, ties shared."""
        mean_rank = np.nan_to_num(self._drawn.mean_rank, nan=np.inf)
        is_first = mean_rank == mean_rank.min(axis=1, keepdims=True)
        return np.asarray((is_first / is_first.sum(axis=1, keepdims=True)).mean(axis=0))

    @cached_property
    def order(self) -> list[int]:
        """Models by mean rank, the best first; those set apart last, by mean."""
        mean_rank = self.standing.mean_rank
        keys = np.where(self.apart, -self.cells.sign * self.means(), mean_rank)
        return np.lexsort((keys, self.apart)).tolist()

    @cached_property
    def friedman(self) -> Friedman | None:
        """Friedman's test over the graphs that all ranked models have."""
        complete = self.cells.present[~self.apart].all(axis=0)
        own = self.ranked[~self.apart][:, complete]
        return friedman(ranks_within(own, self.cells.sign), self.level)

    @cached_property
    def pairs(self) -> dict[str, Any]:
        """Every pair of ranked models on the graphs that both have.

        ``first``, ``second``, ``graphs``, ``wins``, ``ties``, ``difference``, ``p``, ``corrected``.
        """
        who = np.flatnonzero(~self.apart)
        pairs = who[pairs_of(len(who))].reshape(-1, 2)
        rows = []
        for i, j in pairs.tolist():
            gap = self.cells.values[i] - self.cells.values[j]
            gap = gap[~np.isnan(gap)]
            better = self.cells.sign * gap
            mean = float(gap.mean()) if len(gap) else math.nan
            p = wilcoxon(gap)[1] if len(gap) else 1.0
            rows.append((len(gap), int((better > 0).sum()), int((better == 0).sum()), mean, p))
        graphs, wins, ties, difference, p_values = np.array(rows).reshape(-1, 5).T
        return {
            "first": pairs[:, 0], "second": pairs[:, 1], "graphs": graphs, "wins": wins,
            "ties": ties, "difference": difference, "p": p_values,
            "corrected": corrected(p_values),
        }  # fmt: skip

    def better(self) -> NDArray[np.bool_]:
        """Whether each model is significantly better than each other, bool (models, models)."""
        n = len(self.cells.models)
        better = np.zeros((n, n), bool)
        if self.test == "nemenyi":
            if self.friedman is not None and self.friedman.p < self.level:
                ranks, who = self.friedman.mean_ranks, np.flatnonzero(~self.apart)
                gap = ranks[None, :] - ranks[:, None]
                better[np.ix_(who, who)] = gap >= self.friedman.critical_difference
            return better
        found, values = self.pairs, self.cells.sign * self.cells.values
        for i, j, p in zip(found["first"], found["second"], found["corrected"], strict=True):
            if p < self.level:
                up = np.nanmean(values[i] - values[j]) > 0
                better[i, j], better[j, i] = up, not up
        return better

    # -- Tables ----------------------------------------------------------------------------------

    def table(self) -> Table:
        """One row per model: means by group, mean rank, win rate, Borda count, places."""
        names = [*(group for group in self.groups if group != ALL), ALL]
        means = {name: self.means(name) for name in names}
        ends = self.interval(self.mean_draws())
        rank_ends, place_ends = (
            self.interval(self._drawn.mean_rank),
            self.interval(self.place_draws),
        )
        best, beats = self.best_share, self.better().sum(axis=1)
        rows: list[tuple[Cell, ...]] = []
        for m in self.order:
            apart = bool(self.apart[m])
            rows.append((
                self.cells.models[m], int(self.cells.present[m].sum()),
                *(float(means[name][m]) for name in names), float(ends[0, m]), float(ends[1, m]),
                *(math.nan if apart else float(column[m]) for column in (
                    self.standing.mean_rank, rank_ends[0], rank_ends[1], self.standing.win_rate,
                    self.standing.borda, best)),
                *(("", "") if apart else (f"{value:g}" for value in place_ends[:, m])),
                int(beats[m]),
            ))  # fmt: skip
        low, high = self.resampling.column_titles
        titles = ("model", "graphs", *names, low, high, "mean rank", low, high, "win rate", "Borda",
                  "P(best)", "place from", "to", "beats")  # fmt: skip
        keys = ("model", "graphs", *names, "low", "high", "mean_rank", "mean_rank_low",
                "mean_rank_high", "win_rate", "borda", "best", "place_low", "place_high",
                "beats")  # fmt: skip
        digits = (0, 0, *(4,) * (len(names) + 2), 2, 2, 2, 3, 1, 3, 0, 0, 0)
        table = Table(titles, keys, digits, rows)
        return replace(table, bold=self._best(table, [*names, "mean_rank", "win_rate", "borda"]))

    def _best(self, table: Table, keys: Sequence[str]) -> frozenset[tuple[int, int]]:
        """Row and column of the best ranked model by each key."""
        ranked = [row for row, m in enumerate(self.order) if not self.apart[m]]
        bold = set()
        for key in keys:
            column = table.keys.index(key)
            sign = -1.0 if key == "mean_rank" else self.cells.sign if key in self.groups else 1.0
            values = [sign * cast("float", table.rows[row][column]) for row in ranked]
            best = np.fmax.reduce(values, initial=-np.inf)
            bold |= {(row, column) for row, v in zip(ranked, values, strict=True) if v == best}
        return frozenset(bold)

    def cell_table(self) -> Table:
        """One row per model in the order of `table`, one column per graph; nan: missing."""
        table = self.cells.table()
        return replace(table, rows=[table.rows[m] for m in self.order])

    def missing_table(self) -> Table:
        """One row per missing cell."""
        return Table(("model", "graph"), ("model", "graph"), (0, 0), self.cells.missing, names=2)

    def bounds_table(self) -> Table:
        """Least and largest value of each statistic over all that missing cells could be."""
        n_models, n_graphs = self.cells.values.shape
        low, high = bounds_of_ranks(self.cells.values, self.cells.sign)
        ends = _range_of(self.cells.measure)
        filled = [np.where(self.cells.present, self.cells.values, end) for end in ends]
        opponents = max(n_models - 1, 1)
        rows: list[tuple[Cell, ...]] = []
        for m in self.order:
            most, least = (n_models - side[m].mean() for side in (low, high))
            rows.append((
                self.cells.models[m], int((~self.cells.present[m]).sum()),
                *(float(part[m].mean()) for part in filled), float(low[m].mean()),
                float(high[m].mean()), float(least / opponents), float(most / opponents),
                float(least * n_graphs), float(most * n_graphs),
            ))  # fmt: skip
        title = self.cells.title
        titles = ("model", "missing", f"{title} from", "to", "mean rank from", "to",
                  "win rate from", "to", "Borda from", "to")  # fmt: skip
        keys = ("model", "missing", "value_low", "value_high", "mean_rank_low", "mean_rank_high",
                "win_rate_low", "win_rate_high", "borda_low", "borda_high")  # fmt: skip
        return Table(titles, keys, (0, 0, 4, 4, 2, 2, 3, 3, 1, 1), rows)

    def pair_table(self) -> Table:
        """One row per pair of ranked models, on the graphs that both have."""
        found, names = self.pairs, self.cells.models
        rows = [
            (names[i], names[j], int(graphs), int(wins), int(ties), float(gap), float(p), float(c))
            for i, j, graphs, wins, ties, gap, p, c in zip(*found.values(), strict=True)
        ]
        titles = ("model", "against", "graphs", "wins", "ties", "difference", "p", "p (Holm)")
        keys = ("model", "against", "graphs", "wins", "ties", "difference", "p", "corrected")
        return Table(titles, keys, (0, 0, 0, 0, 0, 4, 4, 4), rows, names=2)

    def notes(self) -> list[str]:
        """What a reader must know of the table."""
        cells, said = self.cells, []
        if not cells.is_adjusted:
            said.append(
                f"{cells.measure.title} is a raw metric: graphs of different sizes are not "
                "comparable by it; prefer an adjusted one, such as adjusted_mrr"
            )
        if cells.missing:
            said.append(f"{len(cells.missing)} of {cells.values.size} cells are missing")
        if self.apart.any():
            names = ", ".join(cells.models[m] for m in np.flatnonzero(self.apart))
            said.append(f"set apart, with fewer than {self.fewest:.0%} of the graphs: {names}")
        if self.friedman is not None:
            found = self.friedman
            said.append(
                f"Friedman's test over {found.graphs} graphs: statistic {found.statistic:.2f}, "
                f"p {found.p:.2g}; Nemenyi's critical difference of mean ranks "
                f"{found.critical_difference:.2f}"
            )
        return said


def _range_of(measure: Measure) -> tuple[float, float]:
    """Ends of what a measure can be; infinite where it has none."""
    text = "[0, 1]" if measure.is_trec else measure.row[0].range
    ends = []
    for part, otherwise in zip(text.strip("[]()").split(","), (-math.inf, math.inf), strict=True):
        try:
            ends.append(float(part))
        except ValueError:
            ends.append(otherwise)
    return ends[0], ends[1]


def suites(
    cells: Sequence[SuiteCells],
    groups: Mapping[str, Sequence[str]] | None = None,
    *,
    test: str = "nemenyi",
    resampling: Resampling = DRAWING,
    level: float = 0.05,
) -> list[Suite]:
    """A suite per measure; groups name graphs, or patterns such as "ind-*".

    UsageError: an unknown test, or a group without a graph.
    """
    choose("test", test, TESTS)
    made = []
    for one in cells:
        own: dict[str, tuple[str, ...]] = {}
        for name, patterns in (groups or {}).items():
            own[name] = tuple(
                graph for graph in one.graphs if any(fnmatchcase(graph, p) for p in patterns)
            )
            if not own[name]:
                raise UsageError(f"group {name!r} has no graph; graphs are {', '.join(one.graphs)}")
        made.append(Suite(one, own | {ALL: one.graphs}, test, resampling, level))
    return made


def suite_of_ranks(
    ranks: Mapping[str, Mapping[str, Ranks | Mapping[str, Ranks]]],
    measures: Sequence[str | Measure] = MEASURES,
    *,
    groups: Mapping[str, Sequence[str]] | None = None,
    test: str = "nemenyi",
    resampling: Resampling = DRAWING,
    level: float = 0.05,
    part: str = "",
) -> list[Suite]:
    """Compare models over many graphs.

    Parameters
    ----------
    ranks : mapping of graph to mapping of model to Ranks, or to mapping of seed to Ranks
        Models may be missing on some graphs. Those on one graph answer the same questions.
    measures : sequence of keys or Measure
    groups : mapping of str to sequence of str, optional
        Graphs, or patterns of their names, whose means have a column each.
    test : {"nemenyi", "wilcoxon"}
    resampling : Resampling
        Graphs, questions and seeds are drawn anew.
    level : float
        Accepted error probability of the test.
    part : str
        Name of the part of the questions that the ranks are of.

    Returns
    -------
    list of Suite
        One per measure.

    Raises
    ------
    UsageError
        A measure without a value per item, an unknown test, a group without a graph.
    InputError
        Models on one graph cannot be compared.
    """
    by_seed = {
        graph: {model: one if isinstance(one, Mapping) else {"": one} for model, one in own.items()}
        for graph, own in ranks.items()
    }
    cells = [
        replace(one, part=part) for one in cells_of_ranks(by_seed, parse_all(measures), resampling)
    ]
    return suites(cells, groups, test=test, resampling=resampling, level=level)
