"""Tables of a result: its keys, its sides, its rank types and its relations, row by row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from kgtrec._internal.table import Cell, Interval, Table, printed_cell
from kgtrec.errors import UsageError
from kgtrec.measures import RANK_TYPES, Measure, headings, parse_all

if TYPE_CHECKING:
    from kgtrec.measures.calculator import Calculator
    from kgtrec.ranking.ranks import Ranks
    from kgtrec.results.result import Result


PUBLISHED = ("realistic.micro.mr", "realistic.micro.mrr", "realistic.micro.hits@1",
             "realistic.micro.hits@3", "realistic.micro.hits@10", "realistic.micro.amr",
             "realistic.micro.amri")  # fmt: skip
QUESTIONWISE = ("realistic.macro.mrr", "realistic.macro.hits@1", "realistic.macro.hits@10",
                "macro.map_cut_20", "macro.ndcg_cut_20")  # fmt: skip
BY_SIDE = tuple(key for key in PUBLISHED if not key.endswith("amri"))  # fits 80 columns
BY_RANK_TYPE = ("mrr", "hits@1", "hits@3", "hits@10", "mr", "gmr", "median_rank", "amri")
BY_RELATION = ("realistic.micro.mrr", "realistic.micro.hits@1", "realistic.micro.hits@10",
               "realistic.micro.mr", "realistic.micro.amr")  # fmt: skip
OVER_RELATIONS = ("realistic.macro_relation.mrr", "realistic.macro_relation.hits@10",
                  "stratified.mrr(0.5,0.5)", "stratified.hits@10(0.5,0.5)")  # fmt: skip
OVER_TERM = ("realistic.group.mrr", "realistic.group.hits@10")
SAMPLED = "sampled."


def over_groups(ranks: Ranks) -> list[str]:
    """Keys of averages over relations, or over each term that has categories."""
    if ranks.of_graph:
        return list(OVER_RELATIONS)
    named = [name for name, labels in ranks.manifest["terms"].items() if labels is not None]
    return [f"{key}({name})" for name in named for key in OVER_TERM]


def long_table(result: Result, measures: Sequence[Measure]) -> Table:
    """One row per measure: its key, the parts of the key, and the value, or its ends."""
    values = ["low:4", "high:4"] if result.has_intervals else ["value:4"]
    columns = ["key", "side", "rank_type", "averaging", "metric", *values]
    rows = []
    for measure in measures:
        metric = measure.key.partition(f"{measure.averaging}.")[2]
        key, kind = result.label + measure.key, measure.rank_type or ""
        value = result[measure]
        ends = _ends(value) if result.has_intervals else (value,)
        rows.append((key, measure.side, kind, measure.averaging, metric, *ends))
    return Table.of(columns, rows)


def _ends(value: float) -> tuple[float, float]:
    """An interval's two ends; a number twice."""
    return (value.low, value.high) if isinstance(value, Interval) else (value, value)


def wide_table(result: Result) -> Table:
    """One row per side and one column per published metric; one row per requested key, if any."""
    if result.measures is not None:
        rows = [
            (result.label + measure.key, printed_cell(result[measure], measure.digits))
            for measure in result.measures
        ]
        return Table.of("key,value", rows)
    macro = tuple(key for key in QUESTIONWISE if not key.endswith(".hits@1"))
    return side_table(result, (*PUBLISHED, *macro))


def side_table(result: Result, tails: Sequence[str]) -> Table:
    """One row per side; `tails` are keys without their side."""
    measures = [Measure.parse(f"{result.sides[-1]}.{tail}") for tail in tails]
    values = {side: [result[f"{side}.{tail}"] for tail in tails] for side in result.sides}
    return labelled(result, _table("side", (), measures, values))


def by_filter(results: Mapping[str, Result], side: str, tails: Sequence[str]) -> Table:
    """One row per filter, for results that differ in it; `tails` are keys without their side."""
    measures = [Measure.parse(f"{side}.{tail}") for tail in tails]
    values = {name: [result[m] for m in measures] for name, result in results.items()}
    first = next(iter(results.values()))
    return labelled(first, _table("filter", (), measures, values))


def by_rank_type(result: Result, measures: Sequence[str | Measure] | None) -> Table:
    """One row per rank type; see `Result.rank_types`."""
    parsed = parse_all(measures or [f"{result.sides[-1]}.micro.{tail}" for tail in BY_RANK_TYPE])
    for measure in parsed:
        if measure.rank_type is None:
            raise UsageError(
                f"{measure} uses the run's order, so it has no rank types; leave it out"
            )
    values = {kind: [result[replace(m, rank_type=kind)] for m in parsed] for kind in RANK_TYPES}
    table = _table("ranks", (), parsed, values)
    keys = [measure.key.replace(f".{measure.rank_type}.", ".") for measure in parsed]
    return labelled(result, replace(table, keys=("ranks", *keys)))


def by_side(result: Result, measures: Sequence[Measure] | None) -> Table:
    """One row per side with its numbers of questions and instances."""
    parsed = measures or [Measure.parse(f"{result.sides[-1]}.{tail}") for tail in BY_SIDE]
    parsed = list(dict.fromkeys(replace(measure, side=result.sides[-1]) for measure in parsed))
    values = {
        side: [*result.count(side), *(result[replace(m, side=side)] for m in parsed)]
        for side in result.sides
    }
    counts = ("questions", "instances")
    keys = [measure.key.partition(".")[2] for measure in parsed]
    table = _table("side", counts, parsed, values)
    return labelled(result, replace(table, keys=("side", *counts, *keys)))


def by_relation(result: Result, calculator: Calculator, measures: Sequence[Measure]) -> Table:
    """One row per relation, largest first."""
    sides = {measure.side for measure in measures}
    if len(sides) > 1:
        raise UsageError(
            f"slices by relation need measures of one side, not of {' and '.join(sorted(sides))}; "
            "ask for one side at a time"
        )
    for measure in measures:
        result[measure]  # refuses impossible measures, with the reason
    relation, count = calculator.relations(sides.pop())
    labels = result.ranks.relation_labels
    names = [str(r) if labels is None else str(labels[r]) for r in relation.tolist()]
    columns = [calculator.per_relation(measure).tolist() for measure in measures]
    entries = zip(names, count.tolist(), *columns, strict=True)
    rows = sorted(entries, key=lambda row: (-row[1], row[0]))
    table = _table("relation", ("count",), measures, {})
    return labelled(result, replace(table, rows=rows))


def labelled(result: Result, table: Table) -> Table:
    """The table; its first heading mentions sampled candidates or wider ties."""
    if result.ranks.provenance.tie_tolerance:
        table = replace(table, titles=(f"tolerant {table.titles[0]}", *table.titles[1:]))
    if not result.ranks.sampled:
        return table
    titles = (f"sampled {table.titles[0]}", *table.titles[1:])
    keys = [f"{SAMPLED}{key}" if "." in key else key for key in table.keys]
    return replace(table, titles=titles, keys=keys)


def _table(
    name: str,
    counts: tuple[str, ...],
    measures: Sequence[Measure],
    values: Mapping[str, Sequence[Cell]],
) -> Table:
    """A row per name: its counts and measures."""
    return Table(
        (name, *counts, *headings(measures, sides=name != "side")),
        (name, *counts, *(measure.key for measure in measures)),
        (0, *(0 for _ in counts), *(measure.digits for measure in measures)),
        [(first, *others) for first, others in values.items()],
    )
