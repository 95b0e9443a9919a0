"""`kgtrec compare parts`: systems on every part of the questions; and by two sets of labels, of
ranks or of published values."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from kgtrec.cli import _options as shared
from kgtrec.cli._report import Command, Report
from kgtrec.cli.compare.inputs import (
    MEASURES,
    OF_RANKS,
    SYSTEMS,
    by_measure,
    load_ranks,
    measures_or_usual,
    named,
)
from kgtrec.errors import UsageError

if TYPE_CHECKING:
    from kgtrec._internal.bootstrap import Resampling
    from kgtrec._internal.table import Cell, Table
    from kgtrec.ranking.ranks import Ranks
    from kgtrec.study.comparison.parts import SystemValues
    from kgtrec.study.comparison.published import ValueTable
    from kgtrec.study.comparison.rankings import Rankings

DRAWN = "Intervals from drawing the systems anew. tau-AP weighs the top more; nan: no ranking."

BY = click.option(
    "--by", metavar="PARTS",
    help="Parts of the questions: side, relation, category (1-1, 1-N, N-1, N-N), quartile, ..., "
    "or several: category,side. As in `kgtrec report`.",
)  # fmt: skip
RATIOS = click.option(
    "--ratios", type=shared.READ, metavar="FILE",
    help="Triples (TSV): micro metrics at the relation ratios of these.",
)  # fmt: skip


@click.command(cls=Command, short_help="All systems on every part of the questions.")
@SYSTEMS
@MEASURES
@BY
@RATIOS
@shared.graph("The graph of the ranks, for categories and quartiles.")
@shared.FORMAT
def parts(files: tuple[str, ...], keys: tuple[str, ...], **options: Any) -> Report:
    """All systems on every part of the questions, the best of each, and whether parts rank systems
    alike. Or, with --ratios, at the relation ratios of other triples.

    \b
    kgtrec compare parts *.parquet --by category,side --graph FB15k-237 -m mrr
    kgtrec compare parts *.parquet --ratios sparse-test.txt -m mrr -m hits@10
    """
    by, ratios = options["by"], options["ratios"]
    _check_parts(options)
    shared.refuse(
        (by is None and ratios is None, "name the parts: --by category,side, or --ratios FILE")
    )
    systems = named(files, None)
    per_measure, notes = _values(load_ranks(systems), _of_parts(keys, options), options)
    if ratios is not None:
        text = "given: as if the test set had the relation ratios of the other triples."
    else:
        text = "A row holds what its part alone gives."
    text += " tau-b: of the systems' order to that on all questions, nan of two systems."
    tables = {one.measure: one.table() for one in per_measure}
    data = {name: table.to_dict() for name, table in tables.items()}
    sections = [(name, [table], text) for name, table in tables.items()]
    return Report.of_sections(sections, data, by_measure(tables), notes=notes)


def _check_parts(options: Mapping[str, Any]) -> None:
    shared.refuse(
        (options["by"] is not None and options["ratios"] is not None,
         "--ratios and --by are different reports; choose one"),
        (options["graph"] and options["by"] is None, "--graph needs --by; leave it out"),
    )  # fmt: skip


def _of_parts(keys: Sequence[str], options: Mapping[str, Any]) -> Sequence[str]:
    usual = OF_RANKS[:1] if options["ratios"] else OF_RANKS
    return measures_or_usual(keys, None, usual)


def _values(
    ranks: dict[str, Ranks], keys: Sequence[str], options: Mapping[str, Any]
) -> tuple[list[SystemValues], list[str]]:
    """Values by parts or ratios, a table per measure, and notes."""
    from kgtrec.questions.api import read_graph
    from kgtrec.results.result import Result
    from kgtrec.study.comparison.parts import values_by_part, values_by_ratios
    from kgtrec.study.relations import coverage_note, read_relation_counts

    if options["ratios"] is None:
        read = read_graph(options["graph"]) if options["graph"] else None
        return values_by_part(ranks, options["by"], keys, graph=read), []
    counts = read_relation_counts(options["ratios"])
    note = coverage_note(Result(next(iter(ranks.values()))), counts)
    return values_by_ratios(ranks, counts, keys), [note] if note else []


# -- By two sets of labels -------------------------------------------------------------------------


def labels_by_part(
    systems: Mapping[str, str], others: Mapping[str, str], folder: str, keys: Sequence[str],
    options: Mapping[str, Any],
) -> Report:  # fmt: skip
    """Do other labels, in the files of a folder, rank the systems alike on every part?"""
    _check_parts(options)
    keys = _of_parts(keys, options)
    here, notes = _values(load_ranks(systems), keys, options)
    graph, own = options["graph"], options["against_graph"]
    try:
        there, more = _values(load_ranks(others), keys, {**options, "graph": own or graph})
    except UsageError as problem:
        if own or not graph:
            raise
        raise UsageError(f"{folder}: {problem}; name its graph with --against-graph") from None
    notes += [note for note in more if note not in notes]
    names = names_of_labels(next(iter(systems.values())), folder)
    return _rankings_report(here, there, names, notes, shared.resampling(options))


def names_of_labels(ours: str, other: str) -> tuple[str, str]:
    """What two sets of labels are called: by their files, or by the folders of files of ranks."""
    if ours.endswith(".parquet"):
        ours = os.path.dirname(ours) or "."
    ends = [os.path.abspath(path).split(os.sep) for path in (ours, other)]
    different = [pair for pair in zip(*map(reversed, ends), strict=False) if len({*pair}) > 1]
    return different[0] if different and "" not in different[0] else (ours, other)


def value_rows(measures: list[str], rankings: Sequence[Rankings]) -> Table:
    """A row per measure and system: value and place by both sets of labels."""
    from kgtrec._internal.table import Table

    tables = [one.value_table() for one in rankings]
    rows: list[tuple[Cell, ...]] = [
        (name, *row) for name, table in zip(measures, tables, strict=True) for row in table.rows
    ]
    keys = ("measure", "system", "value", "place", "other", "other.place")
    return Table(("measure", *tables[0].titles), keys, (0, *tables[0].digits), rows, 2)


def _rankings_report(
    ours: Sequence[SystemValues], theirs: Sequence[SystemValues], names: tuple[str, str],
    notes: list[str], resampling: Resampling,
) -> Report:  # fmt: skip
    from kgtrec.study.comparison.rankings import rankings_by_part

    rankings = rankings_by_part(ours, theirs, resampling=resampling)
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
    return Report.of_sections([(heading, [table, whole], DRAWN)], data, whole, notes=notes)


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
        notes.append(f"left out, because only one side has them: {', '.join(sorted(systems))}")
    if parts:
        first = ", ".join(parts[0])
        more = "" if len(parts) == 1 else f" and {len(parts) - 1:,} more"
        notes.append(f"parts left out, because only one side has them: {first}{more}")
    return notes


# -- Published values ------------------------------------------------------------------------------


def of_tables(path: str, other: str, keys: Sequence[str], options: Mapping[str, Any]) -> Report:
    """Do two tables of published values rank systems alike, as a whole or part by part?"""
    from kgtrec.study.comparison.published import (
        read_value_table,
        values_at_ratios,
        values_of_table,
    )

    by, ratios = options["by"], options["ratios"]
    _check_parts(options)
    tables = [read_value_table(each) for each in (path, other)]
    keys = keys or _usual(tables, micro=ratios is not None)
    names = names_of_labels(path, other)
    if ratios is not None:
        from kgtrec.study.relations import read_relation_counts

        counts = read_relation_counts(ratios)
        ours, theirs = (values_at_ratios(table, keys, counts) for table in tables)
    else:
        columns = [name.strip() for name in (by or "").split(",") if name.strip()]
        for name in columns:
            if not any(table.column(name) for table in tables):
                raise UsageError(f"neither table has a column {name!r} for --by")
        ours, theirs = (values_of_table(table, keys, columns) for table in tables)
    if by is None and ratios is None:
        return _whole_report(ours, theirs, names, shared.resampling(options))
    return _rankings_report(ours, theirs, names, [], shared.resampling(options))


def _usual(tables: Sequence[ValueTable], *, micro: bool) -> list[str]:
    """Micro and macro MRR, as far as both tables have them."""
    usual = ["micro_mrr", "mrr"] if micro else ["micro_mrr", "macro_mrr", "mrr"]
    shared_keys = [key for key in usual if all(table.column(key) for table in tables)]
    if not shared_keys:
        raise UsageError(
            f"{tables[0].path} and {tables[1].path} do not both have micro_mrr, macro_mrr or mrr; "
            "name the columns to be compared: -m COLUMN"
        )
    return shared_keys


def _whole_report(
    ours: Sequence[SystemValues], theirs: Sequence[SystemValues], names: tuple[str, str],
    resampling: Resampling,
) -> Report:  # fmt: skip
    """Values and places of the systems in both tables, and how alike these rank."""
    from kgtrec.study.comparison.correlation import agreement_table
    from kgtrec.study.comparison.rankings import (
        WHOLE,
        full_agreement,
        rankings_of_values,
        shared_systems,
    )

    systems = shared_systems(ours[0], theirs[0])
    per_measure = [
        rankings_of_values(
            {name: one.on(systems).parts[WHOLE] for name, one in zip(names, pair, strict=True)},
            systems, pair[0].measure,
            lower_is_better=() if pair[0].higher_is_better else names, resampling=resampling,
        )
        for pair in zip(ours, theirs, strict=True)
    ]  # fmt: skip
    measures = [one.measure for one in ours]
    drawings = [(name, "systems") for name in measures]
    alike = agreement_table(
        ("rankings by", "drawn"), drawings, [one.over_systems[0] for one in per_measure]
    )
    values = value_rows(measures, per_measure)
    heading = f"Rankings of {len(systems)} systems by {names[0]} and by {names[1]}"
    text = DRAWN + full_agreement(per_measure)
    data = {"values": values.to_dict(), "rankings": alike.to_dict()}
    return Report.of_sections(
        [(heading, [values, alike], text)], data, alike, notes=_left_out(ours[0], theirs[0], ()),
        figures={"plot": ("compare", "bump_chart", per_measure)},
    )  # fmt: skip
