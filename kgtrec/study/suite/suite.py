"""Comparison of many models on many graphs by one measure: means, places, pairs, and a page."""

from __future__ import annotations

import html
import io
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from kgtrec._internal.arguments import require_items
from kgtrec._internal.arrays import Bools, Float64
from kgtrec._internal.bootstrap import ROUNDING, Resampling, on_draws
from kgtrec._internal.named import Named, by_name
from kgtrec._internal.table import PValue, ShownAsTables, Table
from kgtrec.errors import UsageError, choose, must_be, refuse_if
from kgtrec.measures import Measure, headings, parse_all
from kgtrec.ranking.ranks import Ranks
from kgtrec.study.comparison.correlation import percentile_interval
from kgtrec.study.comparison.samples import SystemRanks, is_ranks, ranks_by_name
from kgtrec.study.comparison.significance import correct_p_values, pairs_of, wilcoxon
from kgtrec.study.suite.cells import DRAWING, SuiteCells, cells_of_ranks, common_side

if TYPE_CHECKING:
    from matplotlib.figure import Figure


ALL = "all"
TESTS = ("nemenyi", "wilcoxon")
MEASURES = ("adjusted_mrr", "adjusted_hits@10")
"""Measures that are comparable between graphs of different sizes."""
FEWEST = 0.5
"""Models with a smaller share of the graphs are listed separately."""


# -- Ranks within graphs, and tests over graphs (Demsar 2006) --------------------------------------


def equalise(values: Float64) -> Float64:
    """Make values of a graph that differ only by rounding equal, to the lowest of them.

    Shapes: values float64 (models, graphs) -> float64 (models, graphs); NaN stays NaN.
    """
    order = np.argsort(values, axis=0, kind="stable")
    ascending = np.take_along_axis(values, order, axis=0)
    low, high = ascending[:-1], ascending[1:]
    with np.errstate(invalid="ignore"):
        same = high - low <= ROUNDING * np.maximum(np.abs(low), np.abs(high))
    for i in range(1, len(ascending)):
        ascending[i] = np.where(same[i - 1] & np.isfinite(high[i - 1]), low[i - 1], high[i - 1])
    levelled = np.empty_like(ascending)
    np.put_along_axis(levelled, order, ascending, axis=0)
    return levelled


def ranks_within(values: Float64, sign: float) -> Float64:
    """Rank the models with a value on each graph; 1 is the best, ties get their mean rank.

    Shapes: values float64 (models, graphs) -> float64 (models, graphs); NaN stays NaN.
    """
    from scipy.stats import rankdata

    return np.asarray(rankdata(-sign * equalise(values), axis=0, nan_policy="omit"))


class Standing(NamedTuple):
    """Summaries of every model's ranks within graphs; float64 (models,) or (B, models) each.

    - mean_rank: Mean rank over graphs. If models are missing on a graph, its ranks are scaled to
      the number of all models.
    - borda: Number of opponents beaten, over all graphs; a tie counts half.
    - win_rate: Opponents beaten, as a share of all pairs of graph and opponent.
    """

    mean_rank: Float64
    borda: Float64
    win_rate: Float64


def standing(ranks: Float64, weights: Float64) -> Standing:
    """Compute standings from ranks (models, graphs); graphs count `weights` (..., graphs) times."""
    n_models = len(ranks)
    known = ~np.isnan(ranks)
    among = known.sum(axis=0)
    opponents = np.where(known & (among > 1), among - 1, 0)
    beaten = np.where(opponents > 0, among - np.nan_to_num(ranks), 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        stretched = np.where(opponents > 0, 1 + (ranks - 1) * (n_models - 1) / opponents, 0.0)
        return Standing(
            weights @ stretched.T / (weights @ (opponents > 0).T),
            weights @ beaten.T,
            weights @ beaten.T / (weights @ opponents.T),
        )


def average_over_graphs(values: Float64, weights: Float64) -> Float64:
    """Average values (models, graphs) over graphs, ignoring NaN; float64 (..., models)."""
    known = ~np.isnan(values)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(weights @ np.where(known, values, 0.0).T / (weights @ known.T))


def place_models(mean_ranks: Float64) -> Float64:
    """Return the place of every model by mean rank (..., models); ties get their mean place."""
    flat = mean_ranks.reshape(-1, mean_ranks.shape[-1])
    return ranks_within(flat.T, -1.0).T.reshape(mean_ranks.shape)


def bounds_of_ranks(values: Float64, sign: float) -> tuple[Float64, Float64]:
    """Bound the rank of every model on every graph over all possible missing values."""
    n_models = len(values)
    ranks = ranks_within(values, sign)
    missing = np.isnan(values).sum(axis=0)
    low = np.where(np.isnan(ranks), 1.0, ranks)
    high = np.where(np.isnan(ranks), float(n_models), ranks + missing)
    return low, high


class Friedman(NamedTuple):
    """The result of Friedman's test, with the correction for ties.

    - critical_difference: Smallest significant difference of mean ranks (Nemenyi).
    - mean_ranks, float64 (models,): Mean ranks over the graphs that all models have.
    """

    statistic: float
    p: float
    models: int
    graphs: int
    critical_difference: float
    mean_ranks: Float64


def friedman(ranks: Float64, level: float = 0.05) -> Friedman | None:
    """Test complete ranks (models, graphs); None for fewer than three models or two graphs."""
    n_models, n_graphs = ranks.shape
    if n_models < 3 or n_graphs < 2:
        return None
    from scipy import stats

    all_tie = bool((ranks == ranks[0]).all())
    statistic, p = (0.0, 1.0) if all_tie else map(float, stats.friedmanchisquare(*ranks))
    gap = float(stats.studentized_range.ppf(1 - level, n_models, np.inf))
    critical = gap * math.sqrt(n_models * (n_models + 1) / (12 * n_graphs))
    return Friedman(statistic, p, n_models, n_graphs, critical, ranks.mean(axis=1))


# -- The suite -----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Suite(ShownAsTables):
    """The comparison of models on a suite of graphs by one measure.

    - groups: Graphs of each group; "all" contains all graphs.
    - test: "nemenyi" is Friedman's test with Nemenyi's critical difference, "wilcoxon" tests of all
      pairs with Holm's correction; both over graphs.
    - level: Accepted error probability of the test.
    """

    _shown = ("table", "missing_table")

    cells: SuiteCells
    groups: Mapping[str, tuple[str, ...]]
    test: str = "nemenyi"
    resampling: Resampling = DRAWING
    level: float = 0.05
    fewest: float = FEWEST

    # -- Statistics ------------------------------------------------------------------------------

    @cached_property
    def apart(self) -> Bools:
        """Models with too few graphs to be ranked, bool (models,)."""
        return self.cells.present.mean(axis=1) < self.fewest

    @cached_property
    def ranked(self) -> Float64:
        """Values of the ranked models; NaN for the others."""
        return np.where(self.apart[:, None], np.nan, self.cells.values)

    @cached_property
    def ranks(self) -> Float64:
        """Rank of every ranked model on every graph, float64 (models, graphs)."""
        return ranks_within(self.ranked, self.cells.sign)

    @cached_property
    def standing(self) -> Standing:
        """Mean rank, Borda count and win rate."""
        return standing(self.ranks, np.ones(len(self.cells.graphs)))

    @cached_property
    def _weights(self) -> Float64:
        """Number of times that each draw contains each graph, float64 (B, graphs)."""
        return on_draws(lambda times: times, len(self.cells.graphs), self.resampling)

    @cached_property
    def _drawn(self) -> Standing:
        """Standings on every draw of graphs, questions and seeds, float64 (B, models) each."""
        if self.cells.draws is None:
            return standing(self.ranks, self._weights)
        drawn = []
        for values, weights in zip(self.cells.draws, self._weights, strict=True):
            ranked_values = np.where(self.apart[:, None], np.nan, values)
            drawn.append(standing(ranks_within(ranked_values, self.cells.sign), weights))
        return Standing(*map(np.array, zip(*drawn, strict=True)))

    def mean_draws(self) -> Float64:
        """Average over all graphs on every draw, float64 (B, models)."""
        if self.cells.draws is None:
            return average_over_graphs(self.cells.values, self._weights)
        pairs = zip(self.cells.draws, self._weights, strict=True)
        return np.array([average_over_graphs(values, times) for values, times in pairs])

    def means(self, group: str = ALL) -> Float64:
        """Average over each model's graphs in a group, float64 (models,); NaN if it has none."""
        of_group = [float(graph in self.groups[group]) for graph in self.cells.graphs]
        return average_over_graphs(self.cells.values, np.array(of_group))

    def interval(self, draws: Float64) -> Float64:
        """Return percentile intervals, float64 (2, models)."""
        return np.array([percentile_interval(column, self.resampling) for column in draws.T]).T

    @cached_property
    def place_draws(self) -> Float64:
        """Place of every model by mean rank on every draw, float64 (B, models)."""
        return place_models(self._drawn.mean_rank)

    @cached_property
    def order(self) -> list[int]:
        """Models by mean rank, the best first; models with too few graphs last, by mean."""
        mean_rank = self.standing.mean_rank
        keys = np.where(self.apart, -self.cells.sign * self.means(), mean_rank)
        return np.lexsort((keys, self.apart)).tolist()

    @cached_property
    def friedman(self) -> Friedman | None:
        """Friedman's test over the graphs that all ranked models have."""
        complete = self.cells.present[~self.apart].all(axis=0)
        values = self.ranked[~self.apart][:, complete]
        return friedman(ranks_within(values, self.cells.sign), self.level)

    @cached_property
    def pairs(self) -> dict[str, Any]:
        """Every pair of ranked models on the graphs that both have.

        ``first``, ``second``, ``graphs``, ``wins``, ``ties``, ``difference``, ``p``, ``corrected``.
        """
        who = np.flatnonzero(~self.apart)
        pairs = who[pairs_of(len(who))].reshape(-1, 2)
        present, levelled = self.cells.present, equalise(self.cells.values)
        rows = []
        for i, j in pairs.tolist():
            both = present[i] & present[j]
            gap = self.cells.values[i, both] - self.cells.values[j, both]
            better = self.cells.sign * (levelled[i, both] - levelled[j, both])
            mean = float(gap.mean()) if len(gap) else math.nan
            p = wilcoxon(gap)[1] if len(gap) else 1.0
            rows.append((len(gap), int((better > 0).sum()), int((better == 0).sum()), mean, p))
        columns = np.array(rows).reshape(-1, 5).T
        graphs, wins, ties = columns[:3].astype(np.int64)
        return {
            "first": pairs[:, 0],
            "second": pairs[:, 1],
            "graphs": graphs,
            "wins": wins,
            "ties": ties,
            "difference": columns[3],
            "p": columns[4],
            "corrected": correct_p_values(columns[4]),
        }

    def better(self) -> Bools:
        """Mark pairs of which the first model is significantly better, bool (models, models)."""
        n = len(self.cells.models)
        better = np.zeros((n, n), bool)
        if self.test == "nemenyi":
            if self.friedman is not None and self.friedman.p < self.level:
                ranks, who = self.friedman.mean_ranks, np.flatnonzero(~self.apart)
                gap = ranks[None, :] - ranks[:, None]
                better[np.ix_(who, who)] = gap >= self.friedman.critical_difference
            return better
        columns = self.pairs
        pairs = np.stack([columns["first"], columns["second"]])
        is_first = self.cells.sign * columns["difference"] > 0
        ends = np.where(is_first, pairs, pairs[::-1])
        better[tuple(ends[:, columns["corrected"] < self.level])] = True
        return better

    # -- Tables ----------------------------------------------------------------------------------

    def table(self) -> Table:
        """Return a table per model: means by group, mean rank, win rate, Borda count, places."""
        names = [*(group for group in self.groups if group != ALL), ALL]
        means = map(self.means, names)
        ends = self.interval(self.mean_draws())
        rank_ends, place_ends = map(self.interval, (self._drawn.mean_rank, self.place_draws))
        drawn = np.nan_to_num(self._drawn.mean_rank, nan=np.inf)
        drawn = equalise(drawn.T).T
        is_first = drawn == drawn.min(axis=1, keepdims=True)  # on a draw; ties share it
        best = (is_first / is_first.sum(axis=1, keepdims=True)).mean(axis=0)
        mean_rank, borda, win_rate = self.standing
        statistics = np.array([mean_rank, *rank_ends, win_rate, borda, best])
        statistics[:, self.apart] = math.nan
        places_shown = [
            [
                math.nan if apart else int(value) if value == int(value) else float(value)
                for apart, value in zip(self.apart, row.tolist(), strict=True)
            ]
            for row in place_ends
        ]
        table = Table.from_columns(
            [
                "model",
                "graphs",
                *((name, name, 4) for name in names),
                *self.resampling.columns(4),
                "mean rank:2",
                *self.resampling.columns(2, "mean_rank_"),
                "win rate:3",
                "Borda=borda:1",
                "P(best)=best:3",
                "place from=place_low:1",
                "to=place_high:1",
                "beats",
            ],
            self.cells.models,
            self.cells.present.sum(axis=1),
            *means,
            *ends,
            *statistics,
            *places_shown,
            self.better().sum(axis=1),
        ).in_order(self.order)
        return replace(table, bold=self._best(table, [*names, "mean_rank", "win_rate", "borda"]))

    def _best(self, table: Table, keys: Sequence[str]) -> frozenset[tuple[int, int]]:
        """Return the row and the column of the best ranked models by each key."""
        bold: set[tuple[int, int]] = set()
        for key in keys:
            column = table.keys.index(key)
            sign = -1.0 if key == "mean_rank" else self.cells.sign if key in self.groups else 1.0
            values = sign * np.array([row[column] for row in table.rows], np.float64)
            values[self.apart[self.order]] = np.nan
            rows = np.flatnonzero(values == np.fmax.reduce(values, initial=-np.inf))
            bold |= {(row, column) for row in rows.tolist()}
        return frozenset(bold)

    def cell_table(self) -> Table:
        """Return a table of models, in the order of `table`, by graph; nan if missing."""
        return self.cells.table().in_order(self.order)

    def missing_table(self) -> Table:
        """Return a table with one row per missing cell."""
        return Table.from_rows("model, graph", self.cells.missing, names=2)

    def bounds_table(self) -> Table:
        """Return a table of the range of each statistic over all possible missing values."""
        n_models, n_graphs = self.cells.values.shape
        bounds = bounds_of_ranks(self.cells.values, self.cells.sign)
        low, high = (end.mean(axis=1) for end in bounds)
        filled = [
            np.where(self.cells.present, self.cells.values, end).mean(axis=1)
            for end in _range_of(self.cells.measure)
        ]
        won = np.array([n_models - high, n_models - low])
        title = self.cells.title
        columns = [
            "model",
            "missing",
            f"{title} from=value_low:4",
            "to=value_high:4",
            "mean rank from=mean_rank_low:2",
            "to=mean_rank_high:2",
            "win rate from=win_rate_low:3",
            "to=win_rate_high:3",
            "Borda from=borda_low:1",
            "to=borda_high:1",
        ]
        return Table.from_columns(
            columns,
            self.cells.models,
            (~self.cells.present).sum(axis=1),
            *filled,
            low,
            high,
            *won / max(n_models - 1, 1),
            *won * n_graphs,
        ).in_order(self.order)

    def pair_table(self) -> Table:
        """Return a table with one row per pair of ranked models, on the graphs that both have."""
        first, second, *others, p, corrected = self.pairs.values()
        tested = (map(PValue, values.tolist()) for values in (p, corrected))
        names = ([self.cells.models[i] for i in ends] for ends in (first, second))
        columns = "model, against, graphs, wins, ties, difference:4, p:4, p (Holm)=corrected:4"
        return Table.from_columns(columns, *names, *others, *tested, names=2)

    def test_table(self) -> Table:
        """Return a table of Friedman's test, with Nemenyi's critical difference of mean ranks.

        It is empty without a test, which needs three models, and two graphs that all of them have.
        """
        columns = (
            "test, models, graphs, statistic:4, p:4, critical difference=critical_difference:4"
        )
        test = self.friedman
        rows = (
            []
            if test is None
            else [
                (
                    "Friedman",
                    test.models,
                    test.graphs,
                    test.statistic,
                    PValue(test.p),
                    test.critical_difference,
                )
            ]
        )
        return Table.from_rows(columns, rows)

    def notes(self) -> list[str]:
        """Return sentences that readers of the table must know."""
        cells, said = self.cells, []
        if not cells.is_adjusted:
            said.append(
                f"{cells.measure.title} is a raw metric, which cannot compare graphs of different "
                "sizes; use an adjusted one, such as adjusted_mrr"
            )
        if cells.missing:
            said.append(f"{len(cells.missing)} of {cells.values.size} cells are missing")
        if self.apart.any():
            names = ", ".join(cells.models[m] for m in np.flatnonzero(self.apart))
            said.append(
                f"listed separately, with fewer than {self.fewest:.0%} of the graphs: {names}"
            )
        if self.friedman is not None:
            test = self.friedman
            said.append(
                f"Friedman's test over {test.graphs} graphs: statistic {test.statistic:.2f}, "
                f"p {test.p:.2g}; Nemenyi's critical difference of mean ranks "
                f"{test.critical_difference:.2f}"
            )
        return said


def _range_of(measure: Measure) -> tuple[float, float]:
    """Return the ends of a measure's range; infinite if it has none."""
    text = "[0, 1]" if measure.is_trec else measure.row[0].range
    ends = zip(text.strip("[]()").split(", "), (-math.inf, math.inf), strict=True)
    low, high = (float(end) if re.fullmatch(r"-?[\d.]+", end) else no_end for end, no_end in ends)
    return low, high


def suites(
    cells: Sequence[SuiteCells],
    groups: Mapping[str, Sequence[str]] | None = None,
    *,
    test: str = "nemenyi",
    resampling: Resampling = DRAWING,
    level: float = 0.05,
) -> list[Suite]:
    """Build one suite per measure; groups contain graphs, or patterns such as ``ind-*``.

    UsageError if the test is unknown, a group has no graph, or a name or pattern fits no graph.
    """
    require_items(
        "cells", cells, SuiteCells, "SuiteCells (kgtrec.study.suite.cells.cells_of_ranks)"
    )
    choose("test", test, TESTS)
    every_graph = list(
        dict.fromkeys(graph for suite_cells in cells for graph in suite_cells.graphs)
    )
    results = []
    for suite_cells, heading in zip(
        cells, headings([suite_cells.measure for suite_cells in cells]), strict=True
    ):
        graphs_of_group: dict[str, tuple[str, ...]] = {}
        for name, patterns in (groups or {}).items():
            for pattern in patterns:
                if not any(fnmatchcase(graph, pattern) for graph in every_graph):
                    raise UsageError(
                        f"group {name!r} names {pattern!r}, which is none of the graphs; "
                        f"{must_be(pattern, every_graph)}"
                    )
            graphs_of_group[name] = tuple(
                graph
                for graph in suite_cells.graphs
                if any(fnmatchcase(graph, p) for p in patterns)
            )
            if not graphs_of_group[name]:
                raise UsageError(
                    f"group {name!r} has no graph; choose some of {', '.join(suite_cells.graphs)}"
                )
        titled = replace(suite_cells, heading=heading)
        results.append(
            Suite(titled, graphs_of_group | {ALL: suite_cells.graphs}, test, resampling, level)
        )
    return results


def default_measures(ranks: Mapping[str, Mapping[str, Mapping[str, Ranks]]]) -> list[Measure]:
    """Return `MEASURES` for the widest side that the ranks of all graphs contain."""
    side = common_side(ranks)
    return parse_all([f"{side}.{name}" for name in MEASURES])


_NO_RANKS = "give those of at least one model, in a dict or list, or leave the graph out"


def suite_of_ranks(
    ranks: Named[Named[SystemRanks | Mapping[str, SystemRanks]]],
    measures: Sequence[str | Measure] | None = None,
    *,
    groups: Mapping[str, Sequence[str]] | None = None,
    test: str = "nemenyi",
    resampling: Resampling = DRAWING,
    level: float = 0.05,
    part: str = "",
) -> list[Suite]:
    """Compare models over many graphs, measure by measure.

    Parameters
    ----------
    ranks : mapping of graph to mapping of model to Ranks or Result, or to mapping of seed to them
        Models may be missing on some graphs. Sequences call graphs "graph 1", "graph 2", ... and
        models "model 1", ..., unless they have pairs (name, value). All models on one graph answer
        the same questions.
    measures : sequence of keys or Measure, optional
        Default: `MEASURES`, of the widest side that the ranks of all graphs hold.
    groups : mapping of str to sequence of str, optional
        Graphs, or patterns of their names; each group's means have a column.
    test : {"nemenyi", "wilcoxon"}
    resampling : Resampling
        How to resample graphs, questions and seeds.
    level : float
        Accepted error probability of the test.
    part : str
        Name of the part of the questions that the ranks cover.

    Raises
    ------
    UsageError
        A measure without one value per item, an unknown test, a group without a graph.
    InputError
        Models on one graph cannot be compared.
    """
    by_seed = {
        graph: {
            model: ranks_by_name("ranks", {"": runs} if is_ranks(runs) else runs, "seed")
            for model, runs in by_name("ranks", by_model, "model").items()
        }
        for graph, by_model in by_name("ranks", ranks, "graph").items()
    }
    refuse_if(
        (not by_seed, "there are no ranks; give those of a model on at least one graph"),
        *(
            (not all(models.values()) or not models, f"graph {graph!r} has no ranks; {_NO_RANKS}")
            for graph, models in by_seed.items()
        ),
    )
    chosen = default_measures(by_seed) if measures is None else parse_all(measures)
    cells = cells_of_ranks(by_seed, chosen, resampling, part)
    return suites(cells, groups, test=test, resampling=resampling, level=level)


# -- The page: tables, figures and notes, without scripts ------------------------------------------

_TITLE = "Models over many graphs"
_STYLE = """
:root{color-scheme:light dark}
body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:75rem;padding:0 1rem}
.wide{overflow-x:auto;margin:1rem 0}.wide:focus{outline:2px solid}
table{border-collapse:collapse;font-variant-numeric:tabular-nums}
th,td{padding:.2rem .6rem;border-bottom:1px solid #8885;white-space:nowrap}
th{text-align:left}thead th:not(:first-child){text-align:right}
thead th{position:sticky;top:0;background:Canvas}
figure{margin:1.5rem 0;background:#fff;padding:.5rem;overflow-x:auto}svg{max-width:100%;height:auto}
summary{cursor:pointer;font-weight:600;font-size:1.1rem;margin:1rem 0 .3rem}
@media print{details>*{display:block}}
"""


Drawn = Sequence[tuple[str, "Figure"]]
"""Captions and figures."""


def suite_page(suites: Sequence[Suite], figures: Sequence[Drawn] = ()) -> str:
    """Return the HTML of the page, with one part per measure and its figures."""
    parts = []
    for number, suite in enumerate(suites):
        notes = "".join(f"<li>{html.escape(note)}</li>" for note in suite.notes())
        parts.append(f"<h2>{html.escape(suite.cells.title)}</h2><ul>{notes}</ul>")
        parts.append(_section("Models, best mean rank first", suite.table(), is_open=True))
        for index, (caption, figure) in enumerate(figures[number] if figures else ()):
            svg = svg_text(figure, f"s{number}{index}-")
            parts.append(
                f'<figure role="img" aria-label="{caption}">{svg}'
                f"<figcaption>{caption}</figcaption></figure>"
            )
        if suite.cells.missing:
            parts.append(
                _section("Over all possible values of missing cells", suite.bounds_table())
            )
            parts.append(_section("Missing cells", suite.missing_table()))
        if len(suite.cells.models) <= 60:
            parts.append(_section("Pairs, on the graphs that both have", suite.pair_table()))
        parts.append(_section("Cells", suite.cell_table()))
    first = suites[0].cells
    size = f"{len(first.models):,} models on {len(first.graphs):,} graphs."
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        "style-src 'unsafe-inline'; img-src data:\">"
        f"<title>{_TITLE}</title><style>{_STYLE}</style></head><body><main>"
        f"<h1>{_TITLE}</h1><p>{size}</p>{''.join(parts)}</main></body></html>\n"
    )


def _section(heading: str, table: Table, is_open: bool = False) -> str:
    """Return the HTML of a table that readers can fold."""
    state = " open" if is_open else ""
    label = html.escape(heading, quote=True)
    around = f'<div class="wide" role="region" aria-label="{label}" tabindex="0">'
    return (
        f"<details{state}><summary>{label} ({len(table):,})</summary>"
        f"{around}{table.to_html()}</div></details>"
    )


def svg_text(figure: Figure, prefix: str) -> str:
    """Return a figure as an SVG element, whose ids begin with a prefix and so are unique.

    The same figure gives the same text: the salt of ids is fixed, and there is no date.
    """
    import matplotlib

    buffer = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": "kgtrec"}):
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    text = buffer.getvalue()
    text = re.sub(r'\bid="', f'id="{prefix}', text[text.index("<svg") :])
    return re.sub(r"(url\(#|href=\"#)", rf"\g<1>{prefix}", text)
