"""The reports of ``kgtrec compare`` by parts of the questions, of ranks and of published values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kgtrec.cli.compare.labels import names_of_labels, other_ranks, value_rows
from kgtrec.cli.compare.report import CompareOptions, Report, by_measure, load_ranks
from kgtrec.errors import UsageError

if TYPE_CHECKING:
    from kgtrec.ranking.ranks import Ranks
    from kgtrec.study.comparison.part_rankings import SystemValues
    from kgtrec.study.comparison.parts import PartValues
    from kgtrec.study.comparison.published import ValueTable

__all__ = ["by_parts", "of_table"]

DRAWN = "Intervals from drawing the systems anew. tau-AP weighs the top more; nan: no ranking."


def by_parts(request: CompareOptions) -> Report:
    """All systems on every part of the questions, or at other relation ratios."""
    ranks = load_ranks(request.systems)
    per_measure, notes = _values(request, ranks, request.graph)
    if request.against is not None:
        return _against(request, request.against, per_measure, notes)
    if request.ratios is not None:
        text = "given: as if the test set had the relation ratios of the other triples."
    else:
        text = "A row holds what its part alone gives."
    text += " tau-b: of the systems' order to that on all questions, nan of two systems."
    parts = [(one.measure.key, [one.table], text) for one in per_measure]
    tables = {one.measure.key: one.table for one in per_measure}
    data = {name: table.to_dict() for name, table in tables.items()}
    return Report(parts, data, by_measure(tables), notes=notes)


def _values(
    request: CompareOptions, ranks: dict[str, Ranks], graph: str | None
) -> tuple[list[PartValues], list[str]]:
    """Values by parts or ratios, a table a measure, and notes."""
    from kgtrec.questions.api import read_graph
    from kgtrec.study.comparison.parts import values_by_part, values_by_ratios
    from kgtrec.study.relation_shift import coverage_note, read_relation_counts

    if request.ratios is None:
        read = read_graph(graph) if graph else None
        return values_by_part(ranks, str(request.by), request.keys, graph=read), []
    from kgtrec.results.result import Result

    counts = read_relation_counts(request.ratios)
    note = coverage_note(Result(next(iter(ranks.values()))), counts)
    return values_by_ratios(ranks, counts, request.keys), [note] if note else []


def _against(
    request: CompareOptions, other: str, per_measure: Sequence[PartValues], notes: list[str]
) -> Report:
    """Do other labels rank the systems alike, on every part?"""
    from kgtrec.study.comparison.part_rankings import values_of_parts

    ranks = other_ranks(request, other)
    try:
        there, more = _values(request, ranks, request.against_graph or request.graph)
    except UsageError as problem:
        if request.against_graph or not request.graph:
            raise
        raise UsageError(f"{other}: {problem}; theirs is named by --against-graph") from None
    notes += [note for note in more if note not in notes]
    ours, theirs = (list(map(values_of_parts, each)) for each in (per_measure, there))
    names = names_of_labels(next(iter(request.systems.values())), other)
    return _rankings_report(request, ours, theirs, names, notes)


def _rankings_report(
    request: CompareOptions, ours: Sequence[SystemValues], theirs: Sequence[SystemValues],
    names: tuple[str, str], notes: list[str],
) -> Report:  # fmt: skip
    from kgtrec.study.comparison.part_rankings import rankings_by_part

    rankings = rankings_by_part(
        ours, theirs, draws=request.draws, seed=request.seed, confidence=request.confidence
    )
    heading = (
        f"tau-b of the rankings of {len(rankings.systems)} systems by {names[0]} and by {names[1]}"
    )
    table, whole = rankings.table(), rankings.interval_table()
    notes = [*notes, *_left_out(ours[0], theirs[0], rankings.left_out)]
    values = {
        one.measure: {name: _by_part(each) for name, each in zip(names, (one, its), strict=True)}
        for one, its in zip(ours, theirs, strict=True)
    }
    data = {"rankings": whole.to_dict(), "values": values}
    return Report([(heading, [table, whole], DRAWN)], data, whole, notes=notes)


def _by_part(one: SystemValues) -> dict[str, dict[str, float]]:
    return {
        ", ".join(part): dict(zip(one.systems, values.tolist(), strict=True))
        for part, values in one.parts.items()
    }


def _left_out(
    one: SystemValues, other: SystemValues, parts: Sequence[tuple[str, ...]]
) -> list[str]:
    """Notes on the systems and parts that only one of two sets of labels has."""
    notes = []
    if systems := set(one.systems) ^ set(other.systems):
        notes.append(f"in one of both only, and left out: {', '.join(sorted(systems))}")
    if parts:
        first = ", ".join(parts[0])
        more = "" if len(parts) == 1 else f" and {len(parts) - 1:,} more"
        notes.append(f"parts in one of both only, and left out: {first}{more}")
    return notes


# -- Published values ------------------------------------------------------------------------------


def of_table(request: CompareOptions, path: str) -> Report:
    """Do two tables of published values rank systems alike, as a whole or part by part?"""
    from kgtrec.study.comparison.published import (
        read_value_table,
        values_at_ratios,
        values_of_table,
    )

    assert request.against is not None
    tables = [read_value_table(each) for each in (path, request.against)]
    keys = request.keys or _usual(tables, micro=request.ratios is not None)
    names = names_of_labels(path, request.against)
    if request.ratios is not None:
        from kgtrec.study.relation_shift import read_relation_counts

        counts = read_relation_counts(request.ratios)
        ours, theirs = (values_at_ratios(table, keys, counts) for table in tables)
    else:
        by = [name.strip() for name in (request.by or "").split(",") if name.strip()]
        for name in by:
            if not any(table.column(name) for table in tables):
                raise UsageError(f"neither table has a column {name!r} to tell parts apart by")
        ours, theirs = (values_of_table(table, keys, by) for table in tables)
    if request.by is None and request.ratios is None:
        return _whole_report(request, ours, theirs, names)
    return _rankings_report(request, ours, theirs, names, [])


def _usual(tables: Sequence[ValueTable], *, micro: bool) -> list[str]:
    """Micro and macro MRR, as far as both tables have them."""
    usual = ["micro_mrr", "mrr"] if micro else ["micro_mrr", "macro_mrr", "mrr"]
    shared = [key for key in usual if all(table.column(key) for table in tables)]
    if not shared:
        raise UsageError(
            f"{tables[0].path} and {tables[1].path} do not both have micro_mrr, macro_mrr or mrr; "
            "name the columns to be compared: -m COLUMN"
        )
    return shared


def _whole_report(
    request: CompareOptions, ours: Sequence[SystemValues], theirs: Sequence[SystemValues],
    names: tuple[str, str],
) -> Report:  # fmt: skip
    """Values and places of the systems in both tables, and how alike these rank."""
    from kgtrec.study.comparison.part_rankings import WHOLE, shared_systems
    from kgtrec.study.comparison.rank_correlation import correlation_table
    from kgtrec.study.comparison.rankings import full_agreement, rankings_of_values

    systems = shared_systems(ours[0], theirs[0])
    per_measure = [
        rankings_of_values(
            {name: one.on(systems).parts[WHOLE] for name, one in zip(names, pair, strict=True)},
            systems, pair[0].measure,
            lower_is_better=() if pair[0].higher_is_better else names,
            draws=request.draws, seed=request.seed, confidence=request.confidence,
        )
        for pair in zip(ours, theirs, strict=True)
    ]  # fmt: skip
    measures = [one.measure for one in ours]
    drawn = [(name, "systems") for name in measures]
    alike = correlation_table(
        drawn, [one.over_systems[0] for one in per_measure], ("rankings by", "drawn")
    )
    values = value_rows(measures, per_measure)
    heading = f"Rankings of {len(systems)} systems by {names[0]} and by {names[1]}"
    text = DRAWN + full_agreement(per_measure)
    data = {"values": values.to_dict(), "rankings": alike.to_dict()}
    return Report([(heading, [values, alike], text)], data, alike,
                  notes=_left_out(ours[0], theirs[0], ()),
                  figures={"": ("rankings", "bump_chart", per_measure)})  # fmt: skip
