"""`kgtrec compare labels`, `depths` and `reuse`: what other labels, or fewer, would say."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from kgtrec._internal.locations import exists, is_folder
from kgtrec.cli import _options as shared
from kgtrec.cli._report import Command, Report
from kgtrec.cli.compare.inputs import (
    MEASURES,
    QRELS,
    QRELS_OF_RUNS,
    SYSTEMS,
    by_measure,
    load_ranks,
    measures_or_usual,
    missing_notes,
    named,
    short_key,
)
from kgtrec.cli.compare.parts import (
    BY,
    RATIOS,
    labels_by_part,
    names_of_labels,
    of_tables,
    value_rows,
)
from kgtrec.errors import UsageError

if TYPE_CHECKING:
    from kgtrec._internal.table import Table
    from kgtrec.study.comparison.samples import Samples
    from kgtrec.study.comparison.stability import DepthCurves
    from kgtrec.study.pooling.pool import Pool

TABLES = (".csv", ".tsv")
"""Endings of files of published values."""

POOL = click.option("--pool", required=True, type=shared.READ, metavar="FILE",
                    help="From `kgtrec pool`.")  # fmt: skip
GRAPH_OF_POOL = shared.graph("The graph of the pool.", required=True)


@click.command(cls=Command, short_help="Do other labels rank the systems alike?")
@SYSTEMS
@click.option(
    "--against", required=True, type=shared.READ, metavar="QRELS|DIR|TABLE",
    help="The other labels: other qrels (with --qrels), a folder with files of the same names "
    "(ranks), or another table (values).",
)  # fmt: skip
@QRELS
@MEASURES
@BY
@RATIOS
@shared.graph("With --by: the graph of the ranks.")
@click.option(
    "--against-graph", type=shared.GRAPH_FOLDER, metavar="DIR",
    help="With --by: the graph of the ranks in the other folder.  [default: that of --graph]",
)  # fmt: skip
@shared.intervals("questions, or systems", 5_000)
@shared.N_ENTITIES
@shared.FORMAT
@shared.PLOT
@shared.STYLE
def labels(files: tuple[str, ...], against: str, keys: tuple[str, ...], **options: Any) -> Report:
    """Do two sets of labels rank the systems alike? FILEs are ranks, or TREC runs with --qrels, or
    one table of published values (.csv, .tsv: a row per system, or per system and part).

    With --by, on every part of the questions (of a table: by its columns); with --ratios, as if
    the test set had the relation ratios of other triples.

    \b
    kgtrec compare labels --qrels sparse.qrels --against complete.qrels *.run
    kgtrec compare labels sparse/*.parquet --against complete/ --plot rankings.pdf
    kgtrec compare labels sparse/*.parquet --against complete/ --by category,side --graph FB15k-237
    kgtrec compare labels sparse/*.parquet --against complete/ --ratios sparse-test.txt -m hits@10
    kgtrec compare labels sparse.csv --against complete.csv -m micro_mrr --plot rankings.pdf
    kgtrec compare labels sparse.csv --against pool-depths.csv --by depth -m micro_mrr
    """
    by_part = options["by"] is not None or options["ratios"] is not None
    if by_part and shared.on_command_line("plot"):
        raise UsageError("--by and --ratios draw no figure; leave out --plot")
    if options["against_graph"] and not options["graph"]:
        raise UsageError("--against-graph needs --by and --graph")
    if files[0].endswith(TABLES):
        _check_tables(files, against, options)
        return of_tables(files[0], against, keys, options)
    systems = named(files, options["qrels"])
    if by_part:
        if options["qrels"]:
            raise UsageError("--by and --ratios need files of ranks, not runs")
        other = _siblings(systems, against)
        return labels_by_part(systems, other, against, keys, options)
    shared.refuse((options["graph"], "--graph needs --by; leave it out"))
    return _whole(systems, against, keys, options)


def _check_tables(files: tuple[str, ...], other: str, options: Mapping[str, Any]) -> None:
    """Refuse what a table of values cannot answer: it holds all systems, and no questions."""
    if len(files) > 1:
        raise UsageError(
            f"{files[0]!r} contains the values of all systems; name one table, and the other with "
            "--against"
        )
    if not other.endswith(TABLES):
        raise UsageError(
            f"{files[0]!r} is a table of values; --against must name another table (.csv or .tsv), "
            f"not {other!r}"
        )
    idle = [name for name in ("qrels", "graph", "against_graph", "n_entities") if options[name]]
    if idle:
        raise UsageError(
            f"{', '.join(map(shared.option_of, idle))}: tables of values contain no questions; "
            "leave it out"
        )


def _whole(
    systems: Mapping[str, str], other: str, keys: Sequence[str], options: Mapping[str, Any]
) -> Report:
    from kgtrec.study.comparison.correlation import agreement_table
    from kgtrec.study.comparison.rankings import full_agreement, rankings_of_samples

    if len(systems) < 3:
        raise UsageError(f"{len(systems)} systems are too few to rank; give 3 or more")
    names = names_of_labels(options["qrels"] or next(iter(systems.values())), other)
    (ours, theirs), notes = _two_sets(systems, other, keys, options)
    resampling = shared.resampling(options)
    per_measure = [
        rankings_of_samples(
            dict(zip(names, pair, strict=True)), short_key(pair[0]), resampling=resampling
        )
        for pair in zip(ours, theirs, strict=True)
    ]
    both = [each for one in per_measure for each in (*one.over_questions, *one.over_systems)]

    def tables(measures: list[str]) -> tuple[Table, Table]:
        drawings = [(name, over) for name in measures for over in ("questions", "systems")]
        alike = agreement_table(("rankings by", "drawn"), drawings, both)
        return value_rows(measures, per_measure), alike

    table, alike = tables([one.title for one in per_measure])
    values, rankings = tables([one.name for one in ours])
    text = (
        f"{ours[0].n_clusters:,} questions in {names[0]}, {theirs[0].n_clusters:,} in {names[1]}. "
        "Intervals from drawing the questions, or the systems, anew. tau-AP weighs the top more."
        + full_agreement(per_measure)
    )
    heading = f"Rankings of {len(systems)} systems by {names[0]} and by {names[1]}"
    data = {"values": values.to_dict(), "rankings": rankings.to_dict()}
    return Report.of_sections(
        [(heading, [table, alike], text)], data, rankings, notes=notes,
        figures={"plot": ("compare", "bump_chart", per_measure)},
    )  # fmt: skip


def _two_sets(
    systems: Mapping[str, str], other: str, keys: Sequence[str], options: Mapping[str, Any]
) -> tuple[tuple[list[Samples], list[Samples]], list[str]]:
    """Samples by both sets of labels, and notes."""
    qrels = options["qrels"]
    keys = measures_or_usual(keys, qrels)
    if qrels is not None:
        from kgtrec.study.comparison.samples import samples_of_runs

        entities = options["n_entities"]
        ours, missing = samples_of_runs(qrels, systems, keys, entities=entities)
        theirs, missing_there = samples_of_runs(other, systems, keys, entities=entities)
        notes = missing_notes(missing, len(ours[0])) + missing_notes(missing_there, len(theirs[0]))
        return (ours, theirs), notes
    from kgtrec.study.comparison.samples import samples_of_ranks

    here, there = load_ranks(systems), load_ranks(_siblings(systems, other))
    return (samples_of_ranks(here, keys), samples_of_ranks(there, keys)), []


def _siblings(systems: Mapping[str, str], folder: str) -> dict[str, str]:
    """Files of the same systems by other labels: those of the same names in a folder."""
    if not is_folder(folder):
        raise UsageError(
            f"--against {folder!r} is not a folder; with files of ranks it names a folder that "
            "holds files of the same names, made with other labels (with runs and --qrels, other "
            "qrels)"
        )
    others = {name: os.path.join(folder, os.path.basename(path)) for name, path in systems.items()}
    for path in others.values():
        if not exists(path) or is_folder(path):
            raise UsageError(
                f"--against {folder!r} holds no {os.path.basename(path)!r}; give it a file of "
                "ranks for each system, of the same name"
            )
    return others


# -- Pools -----------------------------------------------------------------------------------------


@click.command(cls=Command, short_help="What does a system lose if the pool was made without it?")
@SYSTEMS
@QRELS_OF_RUNS
@POOL
@GRAPH_OF_POOL
@MEASURES
@shared.FORMAT
@shared.PLOT
@shared.STYLE
def reuse(
    files: tuple[str, ...], qrels: str, pool: str, graph: str, keys: tuple[str, ...]
) -> Report:
    """What does a system lose if the pool was made without it? Each run is valued again without
    the labels that it alone put into the pool.

    \b
    kgtrec compare reuse --qrels complete.qrels *.run --pool pool.tsv --graph FB15k-237
    """
    from kgtrec.study.pooling.reusability import contributors_of, leave_one_out
    from kgtrec.trec import read_qrels, read_run

    of_answers = [key for key in keys if key.startswith("kg_")]
    if of_answers:
        raise UsageError(
            f"reuse cannot compute {', '.join(of_answers)}; choose a measure such as map or bpref"
        )
    systems = named(files, qrels)
    contributors = contributors_of(_pool(pool, graph))
    judged = read_qrels(qrels)
    runs = {name: read_run(one) for name, one in systems.items()}
    results = [
        leave_one_out(judged, runs, contributors, key) for key in measures_or_usual(keys, qrels)
    ]
    sections = [
        (f"{one.measure}: each system left out of the pool in turn", [one.table()], one.sentence())
        for one in results
    ]
    tables = {one.measure: one.table() for one in results}
    data = {name: table.to_dict() for name, table in tables.items()}
    return Report.of_sections(
        sections, data, by_measure(tables), figures={"plot": ("compare", "left_out", results)}
    )


@click.command(cls=Command, short_help="How does the ranking change as the pool grows deeper?")
@SYSTEMS
@POOL
@GRAPH_OF_POOL
@QRELS
@shared.QUESTION_NAMES
@MEASURES
@shared.intervals("questions", 5_000)
@shared.N_ENTITIES
@shared.FORMAT
@shared.PLOT
@shared.STYLE
def depths(
    files: tuple[str, ...], pool: str, graph: str, keys: tuple[str, ...], **options: Any
) -> Report:
    """How does the ranking of the systems change as the pool grows deeper? Of runs, with the
    --qrels of the whole pool; or of ranks on the complete test split, without ranking anew.

    \b
    kgtrec compare depths --qrels complete.qrels *.run --pool pool.tsv --graph FB15k-237
    kgtrec compare depths complete/*.parquet --pool pool.tsv --graph FB15k-237 -m mrr -m macro.mrr
    """
    if options["questions"] and not options["qrels"]:
        raise UsageError("--questions needs runs and their --qrels; give both, or leave it out")
    systems = named(files, options["qrels"])
    measures = measures_or_usual(keys, options["qrels"])
    curves = _depth_curves(systems, _pool(pool, graph), measures, options)
    table, whole = curves.table(), curves.interval_table()
    heading = (
        f"tau-b of the ranking of {len(systems)} systems with the labels of each pool "
        f"depth to that at depth {curves.reference}"
    )
    text = f"{curves.least_alike()} Intervals draw the questions anew."
    data = {"rankings": whole.to_dict(), "values": curves.values_by_name()}
    return Report.of_sections(
        [(heading, [table, whole], text)], data, whole,
        figures={"plot": ("compare", "depth_curves", curves)},
    )  # fmt: skip


def _depth_curves(
    systems: Mapping[str, str], pool: Pool, keys: Sequence[str], options: Mapping[str, Any]
) -> DepthCurves:
    """Of runs, or of ranks on the complete split."""
    from kgtrec.study.pooling.depths import (
        curves_of_ranks,
        curves_of_runs,
        depths_of,
        names_of_pool,
    )

    resampling = shared.resampling(options)
    if options["qrels"] is None:
        return curves_of_ranks(load_ranks(systems), pool, keys, resampling=resampling)
    depth_of = depths_of(pool, names_of_pool(pool, options["questions"]))
    return curves_of_runs(
        options["qrels"], systems, depth_of, keys,
        entities=options["n_entities"], resampling=resampling,
    )  # fmt: skip


def _pool(path: str, graph: str) -> Pool:
    from kgtrec.questions.api import read_graph
    from kgtrec.study.pooling.pool import read_pool

    return read_pool(path, read_graph(graph))[0]
