"""Values by model and graph, from ranks or from a table of published numbers."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from kgtrec._internal.arguments import random_generator
from kgtrec._internal.arrays import Bools, Float64, Int64
from kgtrec._internal.bootstrap import Resampling, over_runs, resample_means
from kgtrec._internal.table import ShownAsTables, Table
from kgtrec.errors import FileError, InputError, UsageError
from kgtrec.measures import Measure
from kgtrec.measures.averaging import SIDES, require_side, sides_present
from kgtrec.measures.random_baseline import Tally
from kgtrec.ranking.ranks import Ranks
from kgtrec.results.slices import rows_by_part, side_of_part
from kgtrec.study.comparison.parts import read_value_table
from kgtrec.study.comparison.samples import align_ranks, parse_item_measures, samples_of_aligned

DRAWING = Resampling(resamples=1_000)
HEADINGS = ("graph", "model", "seed", "metric", "value", "n")
"""Columns of a table of numbers; seed and n may be left out."""


@dataclass(frozen=True, eq=False)
class SuiteCells(ShownAsTables):
    """The values of a measure for every model on every graph.

    - values, float64 (models, graphs): Means over seeds; NaN: missing.
    - seeds, int64 (models, graphs): Number of seeds.
    - draws, float64 (B, models, graphs): Means with questions and seeds resampled; None if
      neither is known.
    - part: Name of the part of the questions; "" for all of them.
    - heading: Heading of the measure in a table with others; if empty, the title of the measure.
    """

    measure: Measure
    models: tuple[str, ...]
    graphs: tuple[str, ...]
    values: Float64
    seeds: Int64
    draws: Float64 | None = None
    part: str = ""
    heading: str = ""

    @property
    def title(self) -> str:
        """Heading of the measure, with the part of the questions."""
        heading = self.heading or self.measure.title
        return f"{heading}, {self.part}" if self.part else heading

    @property
    def sign(self) -> float:
        """1.0 if higher is better, else -1.0."""
        return 1.0 if self.measure.higher_is_better is not False else -1.0

    @property
    def is_adjusted(self) -> bool:
        """True if values of graphs of different sizes can be compared."""
        return not self.measure.is_trec and self.measure.row[0].is_adjusted

    @property
    def present(self) -> Bools:
        """True for cells with a value, bool (models, graphs)."""
        return ~np.isnan(self.values)

    def table(self) -> Table:
        """Return a table with one row per model and one column per graph; nan if missing."""
        heads = ((graph, graph, 4) for graph in self.graphs)
        return Table.from_columns(["model", *heads], self.models, *self.values.T)

    @property
    def missing(self) -> list[tuple[str, str]]:
        """Model and graph of each missing cell."""
        return [(self.models[m], self.graphs[g]) for m, g in np.argwhere(~self.present).tolist()]


def read_numbers(path: str | os.PathLike[str], how: Resampling = DRAWING) -> list[SuiteCells]:
    """Read the cells of a table file with one row per graph, model, seed and metric.

    FileError: as for `read_value_table`; columns are missing, a value is not a number, or a cell
    occurs twice.
    """
    table = read_value_table(path)
    columns = {name: table.column(name) for name in HEADINGS}
    if absent := [name for name in ("graph", "model", "metric", "value") if not columns[name]]:
        hint = f"give the columns {', '.join(HEADINGS)} (seed and n are optional)"
        raise FileError(table.path, 1, found=f"no column {', '.join(absent)}", hint=hint)
    runs: dict[Measure, dict[tuple[str, str], dict[str, float]]] = {}
    for line, row in table.rows:
        cells = {name: row[column] for name, column in columns.items() if column}
        try:
            value, metric = float(cells["value"]), Measure.parse(cells["metric"])
        except ValueError as problem:  # for a metric, the problem says what is wrong
            hint = "give a number, and a metric of `kgtrec measures`"
            raise FileError(table.path, line, found=str(problem), hint=hint) from None
        if not np.isfinite(value):
            hint = "give a finite number, or leave the line out if the value is missing"
            raise FileError(table.path, line, found=f"the value {cells['value']}", hint=hint)
        model, graph, seed = cells["model"], cells["graph"], cells.get("seed", "")
        values_by_seed = runs.setdefault(metric, {}).setdefault((model, graph), {})
        if seed in values_by_seed:
            again = f"{metric.title} of {model} on {graph}{f', seed {seed}' if seed else ''} again"
            hint = "give every run a different seed"
            raise FileError(table.path, line, found=again, hint=hint)
        values_by_seed[seed] = value
    return [_build_cells(metric, cells, how) for metric, cells in runs.items()]


def _build_cells(
    measure: Measure, runs: Mapping[tuple[str, str], Mapping[str, float]], how: Resampling
) -> SuiteCells:
    """Build the cells of a measure from its values by model and graph, then seed."""
    models, graphs = (tuple(dict.fromkeys(names)) for names in zip(*runs, strict=True))
    shape = len(models), len(graphs)
    values, seeds = np.full(shape, np.nan), np.zeros(shape, np.int64)
    several = any(len(values_by_seed) > 1 for values_by_seed in runs.values())
    draws = np.full((how.resamples, *values.shape), np.nan) if several else None
    rng = random_generator(how.seed)
    for (model, graph), values_by_seed in runs.items():
        cell = models.index(model), graphs.index(graph)
        numbers = np.array([*values_by_seed.values()])
        values[cell], seeds[cell] = numbers.mean(), len(numbers)
        if draws is not None:
            runs_of_draws = np.broadcast_to(numbers, (how.resamples, len(numbers)))
            draws[(slice(None), *cell)] = over_runs(runs_of_draws, rng)
    return SuiteCells(measure, models, graphs, values, seeds, draws)


# -- Ranks -----------------------------------------------------------------------------------------


def common_side(ranks: Mapping[str, Mapping[str, Mapping[str, Ranks]]]) -> str:
    """Return the widest side that the ranks of every graph contain: both sides if possible.

    UsageError if the graphs have no side in common.
    """
    present = {
        graph: sides_present(next(iter(next(iter(models.values())).values())))
        for graph, models in ranks.items()
    }
    common = set.intersection(*map(set, present.values()))
    if not common:
        sides = "; ".join(f"{graph}: {' and '.join(names)}" for graph, names in present.items())
        raise UsageError(f"the graphs have no side in common ({sides}); compare them separately")
    return next(side for side in reversed(next(iter(present.values()))) if side in common)


def cells_of_ranks(
    ranks: Mapping[str, Mapping[str, Mapping[str, Ranks]]],
    measures: Sequence[Measure],
    how: Resampling = DRAWING,
    part: str = "",
) -> list[SuiteCells]:
    """Compute the cells of measures from ranks by graph, model and seed.

    An adjusted measure uses the chance level of all questions of a graph in every draw. If a part
    of the questions has only one side on a graph, measures of both sides use this side there.
    Measures of the other side then have no value, as in `Result.slice`.
    """
    graphs = tuple(ranks)
    models = tuple(
        dict.fromkeys(model for ranks_by_model in ranks.values() for model in ranks_by_model)
    )
    shape = len(models), len(graphs)
    tables = {
        measure: (np.full(shape, np.nan), np.full((how.resamples, *shape), np.nan))
        for measure in measures
    }
    seeds = np.zeros(shape, np.int64)
    for g, (graph, ranks_by_model) in enumerate(ranks.items()):
        columns = {
            (model, seed): ranks_of_run
            for model, runs in ranks_by_model.items()
            for seed, ranks_of_run in runs.items()
        }
        present = sides_present(next(iter(columns.values())))
        rng = random_generator(how.seed, g)
        for measure, (values, draws) in tables.items():
            side = side_of_part(measure.side, present) if part else measure.side
            if side is None:
                continue
            try:
                side = require_side(measure, side, present)
                estimate, draws_of_runs = _resample_runs(columns, replace(measure, side=side), how)
            except (InputError, UsageError) as problem:
                raise type(problem)(f"{graph}: {problem}") from None
            for m, model in enumerate(models):
                rows = [i for i, (name, _) in enumerate(columns) if name == model]
                seeds[m, g] = len(rows)
                if rows:
                    values[m, g] = estimate[rows].mean()
                    draws[:, m, g] = over_runs(draws_of_runs[:, rows], rng)
    return [
        SuiteCells(measure, models, graphs, values, seeds, draws, part)
        for measure, (values, draws) in tables.items()
    ]


def _resample_runs(
    columns: Mapping[tuple[str, str], Ranks], measure: Measure, how: Resampling
) -> tuple[Float64, Float64]:
    """Compute a measure of every run on one graph, and on each draw of its questions.

    Returns float64 (runs,) and (B, runs).
    """
    named = {f"{model}\x00{seed}": ranks for (model, seed), ranks in columns.items()}
    is_adjusted = not measure.is_trec and measure.row[0].is_adjusted
    if is_adjusted and measure.averaging != "micro":
        raise UsageError(f"{measure} is not an average over instances; choose a micro average")
    specs = parse_item_measures([measure.base if is_adjusted else measure])
    (samples,) = samples_of_aligned(align_ranks(named, least=1), specs)
    if not is_adjusted:
        transform = samples.transform
    else:
        row, parameter = measure.row
        assert row.chance is not None
        first = next(iter(columns.values()))
        of_side = np.isin(first.side, SIDES[measure.side])
        transform = partial(
            row.with_chance,
            chance=row.chance(Tally.from_items(first.candidates[of_side]), parameter),
        )
    means = resample_means(samples.values, samples.cluster, transform, how, samples.weight)
    return means.estimate, means.draws


def parts_of_ranks(
    ranks: Mapping[str, Mapping[str, Mapping[str, Ranks]]],
    by: str,
    graphs: str,
    measures: Sequence[Measure],
) -> dict[str, dict[str, dict[str, dict[str, Ranks]]]]:
    """Divide ranks into parts of the questions; return them by the name of the part.

    `graphs` is the folder that contains the folder of each graph, under its name.
    """
    from kgtrec.questions.api import read_graph

    parts: dict[str, dict[str, dict[str, dict[str, Ranks]]]] = {}
    for graph, ranks_by_model in ranks.items():
        loaded = read_graph(Path(graphs) / graph.partition(", ")[0])
        for model, runs in ranks_by_model.items():
            for seed, ranks_of_run in runs.items():
                for names, rows in rows_by_part(ranks_of_run, by, measures, graph=loaded).items():
                    part = parts.setdefault(", ".join(names), {}).setdefault(graph, {})
                    part.setdefault(model, {})[seed] = ranks_of_run.subset(rows)
    return parts
