"""``kgtrec report``: the published table of saved ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from kgtrec.cli import _options as shared
from kgtrec.cli._output import blocks, echo, note, of_files, rendered
from kgtrec.errors import UsageError

if TYPE_CHECKING:
    from kgtrec._internal.table import Table
    from kgtrec.measures import Measure
    from kgtrec.results.result import Result

FORMATS = ("table", "json", "csv", "latex", "markdown")


@click.command(short_help="The published table of saved ranks.")
@click.argument("files", nargs=-1, required=True, metavar="RANKS.parquet ...")
@click.option(
    "--by", metavar="PARTS",
    help="A row per side, relation, category (1-1, 1-N, N-1, N-N), quartile (of the answer's "
    "popularity, Q1 the rarest), label, or several: category,side.",
)  # fmt: skip
@shared.graph("The graph of the ranks, for --by category and quartile.")
@click.option(
    "--labels", metavar="FILE", help="Lines head, relation, tail, label (TSV), for --by label."
)
@click.option(
    "--spread", is_flag=True,
    help="With --by: not the rows, but the quartiles of each measure over them.",
)  # fmt: skip
@click.option(
    "--ratios", metavar="FILE",
    help="Triples (TSV) whose relation ratios weigh the micro metrics, beside the ranks' own.",
)  # fmt: skip
@click.option(
    "--rank-types", is_flag=True,
    help="A row per rank type (optimistic, realistic, ...), and how many candidates tie.",
)  # fmt: skip
@shared.form(*FORMATS, text="json maps keys to values, in full precision, as csv does.")
@click.option(
    "-m", "--measure", "keys", multiple=True, metavar="KEY",
    help="Only this measure, such as hits@10 (both.realistic.micro.hits@10); repeatable.",
)  # fmt: skip
def command(
    files: tuple[str, ...],
    by: str | None,
    graph: str | None,
    labels: str | None,
    spread: bool,
    ratios: str | None,
    rank_types: bool,
    form: str,
    keys: tuple[str, ...],
) -> None:
    """Print the published table of one or more files of ranks.

    \b
    kgtrec report ranks.parquet
    kgtrec report a.parquet b.parquet --format json
    kgtrec report ranks.parquet --by relation -m amri
    kgtrec report ranks.parquet --by category,side --graph FB15k-237
    kgtrec report ranks.parquet --by label --labels types.tsv
    kgtrec report ranks.parquet --by relation --spread -m mrr
    kgtrec report ranks.parquet --ratios other-test.txt
    kgtrec report ranks.parquet --rank-types -m mrr -m agmri
    """
    from kgtrec.cli._warnings import warn_of_results
    from kgtrec.measures import parse_all
    from kgtrec.ranking.ranks import Ranks
    from kgtrec.results.result import Result

    measures = parse_all(keys) if keys else None
    _check_options(by, graph, labels, spread, ratios)
    # What is printed by parts or by other ratios leaves no other list of measures to check.
    listed = measures if by is None and ratios is None and not rank_types else None
    results = {file: Result(Ranks.load(file), measures=listed) for file in files}
    parts = by is not None or ratios is not None or rank_types
    warn_of_results(results, "parts" if parts else form)
    if rank_types:
        if by is not None or ratios is not None:
            raise UsageError("--rank-types is a report of its own; leave out --by and --ratios")
        text = _by_rank_type(results, measures, form)
    elif ratios is not None:
        text = of_files(_reweighted(results, ratios, measures), form)
    elif by is not None:
        text = of_files(_parts(results, by, measures, graph, labels, spread), form)
    else:
        text = _whole(results, form)
    echo(text)


def _check_options(
    by: str | None, graph: str | None, labels: str | None, spread: bool, ratios: str | None
) -> None:
    """Refuse options that would have no effect, before any file is read."""
    parts: tuple[str, ...] = ()
    if by is not None:
        from kgtrec.results.slices import parse_by

        parts = parse_by(by)
    wrong = [
        (labels is not None and "label" not in parts, "--labels goes with --by label"),
        (labels is None and "label" in parts, "--by label needs --labels FILE"),
        (
            graph is None and not {"category", "quartile"}.isdisjoint(parts),
            f"--by {by} needs --graph DIR, the graph of the ranks",
        ),
        (
            graph is not None and {"category", "quartile"}.isdisjoint(parts),
            "--graph goes with --by category or --by quartile",
        ),
        (spread and by is None, "--spread goes with --by, such as --by relation"),
        (ratios is not None and by is not None, "--ratios and --by are two reports; ask for one"),
    ]
    problems = [problem for found, problem in wrong if found]
    if problems:
        raise UsageError("; ".join(problems))


def _parts(
    results: dict[str, Result],
    by: str,
    measures: list[Measure] | None,
    graph: str | None,
    labels: str | None,
    spread: bool,
) -> dict[str, Table]:
    from kgtrec.questions.api import read_graph
    from kgtrec.study.relation_spread import spreads

    read = None if graph is None else read_graph(graph)
    tables = {
        file: result.slice(by, measures, graph=read, labels=labels)
        for file, result in results.items()
    }
    return {file: spreads(table) for file, table in tables.items()} if spread else tables


def _reweighted(
    results: dict[str, Result], path: str, measures: list[Measure] | None
) -> dict[str, Table]:
    from kgtrec.study.relation_shift import coverage_note, read_relation_counts, reweighted_table

    counts = read_relation_counts(path)
    for file, result in results.items():
        if text := coverage_note(result, counts):
            note(f"{file}: {text}")
    return {file: reweighted_table(result, counts, measures) for file, result in results.items()}


def _whole(results: dict[str, Result], form: str) -> str:
    from kgtrec._internal.table import dump_json, stacked
    from kgtrec.cli._warnings import bounds_block, bounds_by_key

    if form == "table":
        return blocks({file: f"{r}{bounds_block(r)}" for file, r in results.items()})
    if form == "json":
        parts = {file: r.to_dict() | bounds_by_key(r) for file, r in results.items()}
        return dump_json(next(iter(parts.values())) if len(parts) == 1 else parts)
    if form == "csv":
        tables = {file: result.long_table() for file, result in results.items()}
    else:
        sampled = {file: " (sampled)" * r.ranks.sampled for file, r in results.items()}
        tables = {file + sampled[file]: r.wide_table() for file, r in results.items()}
    return rendered(stacked(tables), form)


def _by_rank_type(results: dict[str, Result], measures: list[Measure] | None, form: str) -> str:
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
