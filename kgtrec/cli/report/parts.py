"""Reports by parts: slices, other ratios, rank types, and the published table file by file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kgtrec.cli._report import Report, blocks, single_or_all

if TYPE_CHECKING:
    from kgtrec._internal.table import Table
    from kgtrec.measures import Measure
    from kgtrec.results.result import Result


def parts(
    results: dict[str, Result],
    by: str,
    measures: list[Measure] | None,
    graph: str | None,
    labels: str | None,
    spread: bool,
) -> dict[str, Table]:
    """Slices of every file, or the quartiles over them."""
    from kgtrec.questions.api import read_graph
    from kgtrec.study.relations import spreads

    read = None if graph is None else read_graph(graph)
    tables = {
        file: result.slice(by, measures, graph=read, labels=labels)
        for file, result in results.items()
    }
    return {file: spreads(table) for file, table in tables.items()} if spread else tables


def reweighted(results: dict[str, Result], path: str, measures: list[Measure] | None) -> Report:
    """Micro metrics of every file at the relation ratios of other triples."""
    from kgtrec.study.relations import coverage_note, read_relation_counts, reweighted_table

    counts = read_relation_counts(path)
    said = {file: coverage_note(result, counts) for file, result in results.items()}
    tables = {file: reweighted_table(result, counts, measures) for file, result in results.items()}
    return Report.of_files(tables, notes=[f"{file}: {text}" for file, text in said.items() if text])


def file_by_file(results: dict[str, Result]) -> Report:
    """The published table of every file, as text or with all its keys as JSON."""
    from kgtrec.cli._ranks import bounds_block, bounds_by_key

    return Report(
        lambda: blocks({file: f"{one}{bounds_block(one)}" for file, one in results.items()}),
        lambda: single_or_all(
            {file: one.to_dict() | bounds_by_key(one) for file, one in results.items()}
        ),
    )


def by_rank_type(results: dict[str, Result], measures: list[Measure] | None) -> Report:
    """All rank types side by side, and how many candidates tie."""
    from kgtrec.results.report import fitting, tie_note

    tables = {file: result.rank_types(measures) for file, result in results.items()}

    def text() -> str:
        texts = {file: fitting(one, tables[file]) for file, one in results.items()}
        return blocks({file: f"{texts[file]}\n\n{tie_note(r)}" for file, r in results.items()})

    def data() -> object:
        return single_or_all({
            file: {"rank_types": tables[file].to_dict(), "ties": result.ranks.tie_report()}
            for file, result in results.items()
        })  # fmt: skip

    report = Report.of_files(tables, text)
    report.data = data
    return report
