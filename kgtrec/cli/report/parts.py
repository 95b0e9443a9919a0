"""Reports by parts: slices, other ratios, rank types, and the published table file by file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kgtrec.cli._output import blocks, note, rendered

if TYPE_CHECKING:
    from kgtrec._internal.table import Table
    from kgtrec.measures import Measure
    from kgtrec.results.result import Result

__all__ = ["by_rank_type", "file_by_file", "parts", "reweighted"]


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
    from kgtrec.study.relation_spread import spreads

    read = None if graph is None else read_graph(graph)
    tables = {
        file: result.slice(by, measures, graph=read, labels=labels)
        for file, result in results.items()
    }
    return {file: spreads(table) for file, table in tables.items()} if spread else tables


def reweighted(
    results: dict[str, Result], path: str, measures: list[Measure] | None
) -> dict[str, Table]:
    """Micro metrics of every file at the relation ratios of other triples."""
    from kgtrec.study.relation_shift import coverage_note, read_relation_counts, reweighted_table

    counts = read_relation_counts(path)
    for file, result in results.items():
        if text := coverage_note(result, counts):
            note(f"{file}: {text}")
    return {file: reweighted_table(result, counts, measures) for file, result in results.items()}


def file_by_file(results: dict[str, Result], form: str) -> str:
    """The published table of every file, as text or with all its keys as JSON."""
    from kgtrec._internal.table import dump_json
    from kgtrec.cli._warnings import bounds_block, bounds_by_key

    if form == "table":
        return blocks({file: f"{r}{bounds_block(r)}" for file, r in results.items()})
    parts = {file: r.to_dict() | bounds_by_key(r) for file, r in results.items()}
    return dump_json(next(iter(parts.values())) if len(parts) == 1 else parts)


def by_rank_type(results: dict[str, Result], measures: list[Measure] | None, form: str) -> str:
    """All rank types side by side, and how many candidates tie."""
    from kgtrec._internal.table import dump_json, stacked
    from kgtrec.results.report import fitting, tie_note

    tables = {file: result.rank_types(measures) for file, result in results.items()}
    if form == "table":
        texts = {file: fitting(r, tables[file]) for file, r in results.items()}
        return blocks({file: f"{texts[file]}\n\n{tie_note(r)}" for file, r in results.items()})
    if form == "json":
        parts = {
            file: {"rank_types": tables[file].to_dict(), "ties": result.ranks.tie_report()}
            for file, result in results.items()
        }
        return dump_json(next(iter(parts.values())) if len(parts) == 1 else parts)
    return rendered(stacked(tables), form)
