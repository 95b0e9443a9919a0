"""`kgtrec compare labels`, `parts`, `depths` and `reuse`.

They compare systems by other labels, on parts of the questions, and with smaller pools.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kgtrec._internal.locations import exists, is_folder
from kgtrec.cli import _options as shared
from kgtrec.cli._ranks import column_order, load_comparable
from kgtrec.cli._report import Command, Report
from kgtrec.cli.compare.inputs import (
    MEASURES,
    OF_RANKS,
    QRELS,
    QRELS_OF_RUNS,
    SYSTEMS,
    TIES,
    choose_measures,
    name_systems,
    order_of_ties,
    read_samples,
    stack_measures,
)
from kgtrec.errors import UsageError

if TYPE_CHECKING:
    from kgtrec import Ranks
    from kgtrec._internal.bootstrap import Resampling
    from kgtrec._internal.table import Table
    from kgtrec.study.comparison import parts as of_parts
    from kgtrec.study.comparison import rankings as orders
    from kgtrec.study.comparison.samples import Samples
    from kgtrec.study.pooling.pool import Pool

DRAWN = "Intervals resample the systems. tau-AP gives the top more weight; nan: no ranking."

BY = shared.option(
    "--by",
    "Parts of the questions: side, relation, category (1-1, 1-N, N-1, N-N), "
    "quartile, ..., or several: category,side. As in `kgtrec report`.",
    metavar="PARTS",
)
RATIOS = shared.reads(
    "--ratios", "Triples (TSV, as in the split) whose relation ratios weigh the micro metrics."
)
TABLES = (".csv", ".tsv")
"""Endings of files of published values."""
NAMED_BY_TABLE = "a table of values names its systems; leave --name out"

POOL = shared.reads("--pool", "From `kgtrec pool`.", required=True)
GRAPH_OF_POOL = shared.graph("The graph of the pool.", required=True)


@click.command(cls=Command, short_help="All systems on every part of the questions.")
@SYSTEMS
@MEASURES
@BY
@RATIOS
@shared.graph("The graph of the ranks, for categories and quartiles.")
@shared.FORMAT
@shared.LATEX_CAPTION
def parts(files: tuple[str, ...], keys: tuple[str, ...], **options: Any) -> Report:
    """All systems on every part of the questions, the best of each, and whether parts rank systems
    alike. Or, with --ratios, at the relation ratios of other triples.

    \b
    kgtrec compare parts *.parquet --by category,side --graph FB15k-237 -m mrr
    kgtrec compare parts *.parquet --ratios sparse-test.txt -m mrr -m hits@10
    kgtrec compare parts *.parquet --by side -m mrr --format latex --caption "MRR by side"
    """
    by, ratios = options["by"], options["ratios"]
    _check_parts(options)
    shared.refuse(
        (by is None and ratios is None, "give the parts: --by category,side, or --ratios FILE"),
        *shared.caption_rules(),
    )
    systems = name_systems(files, None, names=options["names"])
    measures = _choose_part_measures(keys, options)
    per_measure, notes = _part_values(load_comparable(systems), measures, options)
    text = "Each row uses only the questions of its part."
    if ratios is not None:
        text = "given: as if the test set had the relation ratios of the other triples."
    text += " tau-b compares the systems' order with that on all questions; nan for two systems."
    tables = {values.measure: values.table() for values in per_measure}
    data = {name: table.to_dict() for name, table in tables.items()}
    sections = [(name, [table], text) for name, table in tables.items()]
    report = Report.from_sections(sections, data, stack_measures(tables), notes=notes)
    return report.in_latex_table(options["caption"], options["label"])


def _check_parts(options: Mapping[str, Any]) -> None:
    """Refuse both --by and --ratios, and --graph without parts that need it."""
    from kgtrec.cli.report import GRAPH_PARTS
    from kgtrec.results.slices import parse_by

    shared.refuse(
        (
            options["by"] is not None and options["ratios"] is not None,
            "--ratios and --by are different reports; choose one",
        ),
        (options["graph"] and options["by"] is None, "--graph needs --by; leave it out"),
        (
            options["graph"]
            and options["by"] is not None
            and GRAPH_PARTS.isdisjoint(parse_by(options["by"], None)),
            f"--by {options['by']} needs no graph; leave --graph out",
        ),
    )


def _choose_part_measures(keys: Sequence[str], options: Mapping[str, Any]) -> Sequence[str]:
    """Return the requested measures, or the usual ones of parts or of ratios."""
    usual = OF_RANKS[:1] if options["ratios"] else OF_RANKS
    return choose_measures(keys, None, usual)


def _part_values(
    ranks: dict[str, Ranks], keys: Sequence[str], options: Mapping[str, Any]
) -> tuple[list[of_parts.SystemValues], list[str]]:
    """Compute the values of all systems by parts or ratios, per measure; return them and notes."""
    from kgtrec import Result, read_graph
    from kgtrec.study.comparison import parts as of_parts
    from kgtrec.study.stratified import coverage_note, read_relation_counts

    if options["ratios"] is None:
        graph = read_graph(options["graph"]) if options["graph"] else None
        return of_parts.values_by_part(ranks, options["by"], keys, graph=graph), []
    counts = read_relation_counts(options["ratios"], column_order(ranks))
    note = coverage_note(Result(next(iter(ranks.values()))), counts)
    return of_parts.values_by_ratios(ranks, counts, keys), [note] if note else []


# -- By several sets of labels ---------------------------------------------------------------------


@click.command(cls=Command, short_help="Do other labels rank the systems alike?")
@SYSTEMS
@shared.reads(
    "--against",
    "The other labels: other qrels (with --qrels), a folder with files of "
    "the same names (ranks), or another table (values). Repeatable.",
    required=True,
    multiple=True,
    metavar="QRELS|DIR|TABLE",
)
@QRELS
@TIES
@MEASURES
@BY
@RATIOS
@shared.graph("With --by: the graph of the ranks.")
@shared.option(
    "--against-graph",
    "With --by: the graph of the ranks in the other folder; with several, one per --against.  "
    "[default: that of --graph]",
    type=shared.GRAPH_FOLDER,
    multiple=True,
    metavar="DIR",
)
@shared.intervals("questions, or systems", 5_000)
@shared.N_ENTITIES
@shared.FORMAT
@shared.PLOT
@shared.draws("--plot-rankings", "Draw the places of the systems by each set of labels.")
@shared.STYLE
def labels(
    files: tuple[str, ...], against: tuple[str, ...], keys: tuple[str, ...], **options: Any
) -> Report:
    """Do several sets of labels rank the systems alike? FILEs are ranks, or TREC runs with --qrels,
    or one table of published values (.csv, .tsv: a row per system, or per system and part). Their
    labels are the reference: systems are in its order. --plot draws the values by all sets of
    labels. Zhou et al. compare the labels of all, sparse and completed questions so (2022, section
    4, Figures 3 to 5).

    With --by, on every part of the questions (of a table: by its columns); with --ratios, as if
    the test set had the relation ratios of other triples.

    \b
    kgtrec compare labels --qrels sparse.qrels --against complete.qrels *.run
    kgtrec compare labels --qrels all.qrels --against sparse.qrels --against complete.qrels *.run
    kgtrec compare labels sparse/*.parquet --against complete/ --plot values.pdf
    kgtrec compare labels sparse/*.parquet --against complete/ --by category,side --graph FB15k-237
    kgtrec compare labels sparse/*.parquet --against complete/ --ratios sparse-test.txt -m hits@10
    kgtrec compare labels sparse.csv --against complete.csv -m micro_mrr --plot values.pdf
    kgtrec compare labels sparse.csv --against pool-depths.csv --by depth -m micro_mrr
    """
    by_part = options["by"] is not None or options["ratios"] is not None
    drawn = ", ".join(shared.list_typed(("plot", "plot_rankings")))
    graphs = options["against_graph"]
    shared.refuse(
        (by_part and drawn, f"--by and --ratios draw no figure; leave out {drawn}"),
        (graphs and not options["graph"], "--against-graph needs --by and --graph"),
        (
            graphs and len(graphs) != len(against),
            f"give one --against-graph per --against ({len(graphs)} given for {len(against)})",
        ),
    )
    if files[0].endswith(TABLES):
        _check_tables(files, against, options)
        return _compare_tables(files[0], against, keys, options)
    systems = name_systems(files, options["qrels"], names=options["names"])
    if by_part:
        shared.refuse((options["qrels"], "--by and --ratios need files of ranks, not runs"))
        return _compare_by_part(systems, against, keys, options)
    shared.refuse((options["graph"], "--graph needs --by; leave it out"))
    return _compare_whole(systems, against, keys, options)


def _check_tables(
    files: tuple[str, ...], others: Sequence[str], options: Mapping[str, Any]
) -> None:
    """Refuse options that do not fit a table of values, which has all systems, but no questions."""
    names = [name for name in ("qrels", "graph", "against_graph", "n_entities") if options[name]]
    idle = ", ".join(map(shared.option_of, names))
    no_table = next((path for path in others if not path.endswith(TABLES)), None)
    shared.refuse(
        (
            len(files) > 1,
            f"{files[0]!r} contains the values of all systems; give one table, and "
            "the other with --against",
        ),
        (
            no_table,
            f"{files[0]!r} is a table of values; --against must name "
            f"another table (.csv or .tsv), not {no_table!r}",
        ),
        (idle, f"{idle}: tables of values contain no questions; leave it out"),
        (options["names"], NAMED_BY_TABLE),
    )


def _compare_whole(
    systems: Mapping[str, str],
    against: Sequence[str],
    keys: Sequence[str],
    options: Mapping[str, Any],
) -> Report:
    """Compare the rankings by the sets of labels on all questions."""
    from kgtrec.study.comparison import rankings as orders
    from kgtrec.study.comparison.samples import short_name

    shared.refuse((len(systems) < 3, f"{len(systems)} systems are too few to rank; give 3 or more"))
    qrels, entities = options["qrels"], options["n_entities"]
    names = name_label_sets(qrels or next(iter(systems.values())), *against)
    keys = choose_measures(keys, qrels)
    by_labels: dict[str, list[Samples]] = {}
    notes: list[str] = []
    for name, path in zip(names, (None, *against), strict=True):
        files = systems if qrels or path is None else find_siblings(systems, path)
        samples, more = read_samples(files, keys, qrels and (path or qrels), entities)
        by_labels[name] = samples
        notes += [f"{name}: {note}" for note in more]
    resampling = shared.resampling(options)
    rankings = [
        orders.rankings_of_samples(
            dict(zip(names, samples, strict=True)),
            short_name(samples[0].name),
            resampling=resampling,
        )
        for samples in zip(*by_labels.values(), strict=True)
    ]
    counts = [f"{samples[0].n_clusters:,} in {name}" for name, samples in by_labels.items()]
    counts[0] = counts[0].replace(" in", " questions in", 1)
    text = (
        f"{', '.join(counts)}. "
        "Intervals resample the questions, or the systems. tau-AP gives the top more weight."
    )
    measures = [sample.name for sample in by_labels[names[0]]]
    return _whole_report(measures, rankings, ("questions", "systems"), text, notes)


def _whole_report(
    measures: list[str],
    rankings: Sequence[orders.Rankings],
    drawn: tuple[str, ...],
    text: str,
    notes: list[str],
) -> Report:
    """Report values and ranks of the systems by all sets of labels, and their agreement.

    - drawn: What the intervals resample: "questions", "systems", or both.
    """
    from kgtrec import plots
    from kgtrec.study.comparison import rankings as orders

    first = rankings[0]
    agreements = _agreement_rows(measures, rankings, drawn)
    titles = [ranking.title for ranking in rankings]
    shown = _agreement_rows(titles, rankings, drawn, named=len(first.names) > 2)
    by_title = {ranking.title: ranking.value_table() for ranking in rankings}
    by_key = {key: each.long_table() for key, each in zip(measures, rankings, strict=True)}
    *others, last = first.names
    heading = f"Rankings of {len(first.systems)} systems by {', by '.join(others)} and by {last}"
    data = {"values": stack_measures(by_key).to_dict(), "rankings": agreements.to_dict()}
    return Report.from_sections(
        [(heading, [stack_measures(by_title), shown], text + orders.full_agreement(rankings))],
        data,
        agreements,
        notes=notes,
        figures={
            "plot": lambda: plots.label_sets(rankings),
            "plot_rankings": lambda: plots.bump_chart(rankings),
        },
    )


def _agreement_rows(
    titles: Sequence[str],
    rankings: Sequence[orders.Rankings],
    drawn: tuple[str, ...],
    *,
    named: bool = True,
) -> Table:
    """Return a row per measure, pair of sets of labels, and unit that the intervals resample.

    Unless `named`, rows do not name the sets.
    """
    from kgtrec.study.comparison.correlation import agreement_table

    rows = [
        ((title, *(pair if named else ()), unit), getattr(ranking, f"over_{unit}")[k])
        for title, ranking in zip(titles, rankings, strict=True)
        for k, pair in enumerate(ranking.pair_names())
        for unit in drawn
    ]
    heads = ("rankings by", "labels", "and", "drawn") if named else ("rankings by", "drawn")
    return agreement_table(heads, *zip(*rows, strict=True))


def find_siblings(systems: Mapping[str, str], folder: str) -> dict[str, str]:
    """Return the files with the same names in a folder, by system; UsageError if one is missing."""
    if not is_folder(folder):
        raise UsageError(
            f"--against {folder!r} is not a folder; for files of ranks, give a folder of files "
            "with the same names, made with other labels; for runs and --qrels, give other qrels"
        )
    inside = {name: _path_in_folder(path) for name, path in systems.items()}
    others = {name: os.path.join(folder, path) for name, path in inside.items()}
    for name, path in others.items():
        if not exists(path) or is_folder(path):
            raise UsageError(
                f"--against {folder!r} does not contain {inside[name]!r}; it needs a "
                "file of ranks for each system, with the same name"
            )
    return others


def _path_in_folder(path: str) -> str:
    """Return a file's name, or the path of a job's ranks in the output folder of its batch."""
    from kgtrec.ranking.parquet import job_of

    parts = Path(path).parts
    return os.path.join("ranks", *parts[-4:]) if job_of(path) else parts[-1]


def _compare_by_part(
    systems: Mapping[str, str],
    against: Sequence[str],
    keys: Sequence[str],
    options: Mapping[str, Any],
) -> Report:
    """Compare the rankings by ranks of several folders on every part."""
    _check_parts(options)
    keys = _choose_part_measures(keys, options)
    names = name_label_sets(next(iter(systems.values())), *against)
    siblings = [find_siblings(systems, folder) for folder in against]
    here, notes = _part_values(load_comparable(systems), keys, options)
    graph = options["graph"]
    others = {}
    own_graphs = options["against_graph"] or [None] * len(against)
    for name, folder, files, own_graph in zip(
        names[1:], against, siblings, own_graphs, strict=True
    ):
        ranks = load_comparable(files)
        try:
            others[name], more = _part_values(ranks, keys, {**options, "graph": own_graph or graph})
        except UsageError as problem:
            if own_graph or not graph:
                raise
            raise UsageError(f"{folder}: {problem}; give its graph with --against-graph") from None
        notes += [note for note in more if note not in notes]
    return _rankings_report(names[0], here, others, notes, shared.resampling(options))


def name_label_sets(*paths: str) -> tuple[str, ...]:
    """Return names of sets of labels: the last parts in which all their paths differ.

    The paths are files, or for ranks the folders of the files. UsageError if two are the same.
    """
    ours, *others = paths
    if ours.endswith(".parquet"):
        ours = os.path.dirname(ours) or "."
    full = [os.path.abspath(path) for path in (ours, *others)]
    twice = next((others[n] for n, path in enumerate(full[1:]) if path in full[: n + 1]), None)
    shared.refuse(
        (twice, f"--against {twice!r}: these labels are compared already; give each set once")
    )
    parts = zip(*(reversed(path.split(os.sep)) for path in full), strict=False)
    different = [names for names in parts if len({*names}) == len(full)]
    return different[0] if different and "" not in different[0] else (ours, *others)


def _rankings_report(
    name: str,
    ours: Sequence[of_parts.SystemValues],
    others: Mapping[str, Sequence[of_parts.SystemValues]],
    notes: list[str],
    resampling: Resampling,
) -> Report:
    """Report how the rankings by other labels agree with those by ours, named `name`, by part."""
    from kgtrec.study.comparison import rankings as orders

    sets = {name: ours, **others}
    if len(others) == 1:
        rankings = orders.rankings_by_part(ours, *others.values(), resampling=resampling)
    else:
        rankings = orders.rankings_by_labels(ours, others, resampling=resampling)
    which = " or by ".join(others)
    heading = f"tau-b of the rankings of {len(rankings.systems)} systems by {name} and by {which}"
    table, whole = rankings.table(), rankings.interval_table()
    notes = [*notes, *_left_out([values[0] for values in sets.values()], rankings.left_out)]
    values = {
        our.measure: {label: several[k].by_name() for label, several in sets.items()}
        for k, our in enumerate(ours)
    }
    data = {"rankings": whole.to_dict(), "values": values}
    return Report.from_sections([(heading, [table, whole], DRAWN)], data, whole, notes=notes)


def _left_out(sets: Sequence[of_parts.SystemValues], parts: Sequence[tuple[str, ...]]) -> list[str]:
    """Return notes on the systems that some of the sets of labels lack, and on such parts."""
    notes = []
    lacking = "only one side has" if len(sets) == 2 else "not all sets of labels have"
    every = [name for values in sets for name in values.systems]
    if systems := {name for name in every if every.count(name) < len(sets)}:
        notes.append(f"left out, because {lacking} them: {', '.join(sorted(systems))}")
    if parts:
        first = ", ".join(parts[0])
        more = "" if len(parts) == 1 else f" and {len(parts) - 1:,} more"
        notes.append(f"parts left out, because only one side has them: {first}{more}")
    return notes


# -- Published values ------------------------------------------------------------------------------


def _compare_tables(
    path: str, against: Sequence[str], keys: Sequence[str], options: Mapping[str, Any]
) -> Report:
    """Compare the rankings of tables of published values, as a whole or by part."""
    from kgtrec.study.comparison import parts as of_parts
    from kgtrec.study.comparison import rankings as orders
    from kgtrec.study.stratified import read_relation_counts

    by, ratios = options["by"], options["ratios"]
    _check_parts(options)
    names = name_label_sets(path, *against)
    tables = [of_parts.read_value_table(each) for each in (path, *against)]
    keys = shared.choose_columns(keys, lambda name: any(each.column(name) for each in tables))
    keys = keys or usual_columns(tables, micro=ratios is not None)
    if ratios is not None:
        counts = read_relation_counts(ratios)
        ours, *theirs = (of_parts.values_at_ratios(table, keys, counts) for table in tables)
    else:
        columns = [name.strip() for name in (by or "").split(",") if name.strip()]
        for name in columns:
            if not any(table.column(name) for table in tables):
                neither = "neither table has" if len(tables) == 2 else "no table has"
                raise UsageError(f"{neither} a column {name!r} for --by")
        ours, *theirs = (of_parts.values_of_table(table, keys, columns) for table in tables)
    resampling = shared.resampling(options)
    if by is not None or ratios is not None:
        others = dict(zip(names[1:], theirs, strict=True))
        return _rankings_report(names[0], ours, others, [], resampling)
    systems = orders.shared_systems(ours[0], *(values[0] for values in theirs))
    rankings = [
        orders.rankings_of_values(
            {
                name: values.on(systems).parts[orders.WHOLE]
                for name, values in zip(names, sets, strict=True)
            },
            systems,
            sets[0].measure,
            lower_is_better=() if sets[0].higher_is_better else names,
            resampling=resampling,
        )
        for sets in zip(ours, *theirs, strict=True)
    ]
    notes = _left_out([values[0] for values in (ours, *theirs)], ())
    measures = [values.measure for values in ours]
    return _whole_report(measures, rankings, ("systems",), DRAWN, notes)


def usual_columns(tables: Sequence[of_parts.ValueTable], *, micro: bool) -> list[str]:
    """Return the columns of micro and macro MRR that all tables have; UsageError for none."""
    usual = ["micro_mrr", "mrr"] if micro else ["micro_mrr", "macro_mrr", "mrr"]
    shared_keys = [key for key in usual if all(table.column(key) for table in tables)]
    if not shared_keys:
        paths = " and ".join(str(table.path) for table in tables)
        lack = "do not both have" if len(tables) > 1 else "does not have"
        raise UsageError(
            f"{paths} {lack} micro_mrr, macro_mrr or mrr; choose the columns to compare: -m COLUMN"
        )
    return shared_keys


# -- Pools -----------------------------------------------------------------------------------------


@click.command(cls=Command, short_help="What does a system lose if the pool was made without it?")
@SYSTEMS
@QRELS_OF_RUNS
@TIES
@POOL
@GRAPH_OF_POOL
@MEASURES
@shared.FORMAT
@shared.PLOT
@shared.STYLE
def reuse(
    files: tuple[str, ...],
    names: tuple[str, ...],
    qrels: str,
    pool: str,
    graph: str,
    keys: tuple[str, ...],
) -> Report:
    """What does a system lose if the pool was made without it? Evaluates each run again without
    the labels that it alone put into the pool.

    \b
    kgtrec compare reuse --qrels complete.qrels *.run --pool pool.tsv --graph FB15k-237
    """
    from kgtrec import plots
    from kgtrec.study import leave_one_out
    from kgtrec.study.pooling.depths import contributors_of
    from kgtrec.trec import read_qrels, read_run

    of_answers = [key for key in keys if key.startswith("kg_")]
    if of_answers:
        raise UsageError(
            f"reuse cannot compute {', '.join(of_answers)}; choose a measure such as map or bpref"
        )
    systems = name_systems(files, qrels, names=names)
    contributors = contributors_of(_read_pool(pool, graph))
    judged = read_qrels(qrels)
    runs = {name: read_run(path, as_="columns") for name, path in systems.items()}
    results = [
        leave_one_out(judged, runs, contributors, key, ties=order_of_ties())
        for key in choose_measures(keys, qrels)
    ]
    tables = {result.measure: result.table() for result in results}
    sections = [
        (f"{name}: each system left out of the pool in turn", [table], result.sentence())
        for (name, table), result in zip(tables.items(), results, strict=True)
    ]
    data = {name: table.to_dict() for name, table in tables.items()}
    return Report.from_sections(
        sections, data, stack_measures(tables), figures={"plot": lambda: plots.left_out(results)}
    )


@click.command(cls=Command, short_help="How does the ranking change as the pool grows deeper?")
@SYSTEMS
@POOL
@GRAPH_OF_POOL
@QRELS
@TIES
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
    """How does the ranking of the systems change as the pool grows deeper? FILEs are runs, with
    the --qrels of the whole pool, or ranks on the complete test split. Ranks nothing again.

    \b
    kgtrec compare depths --qrels complete.qrels *.run --pool pool.tsv --graph FB15k-237
    kgtrec compare depths complete/*.parquet --pool pool.tsv --graph FB15k-237 -m mrr -m macro.mrr
    """
    from kgtrec import plots

    if options["questions"] and not options["qrels"]:
        raise UsageError("--questions needs runs and their --qrels; give both, or leave it out")
    systems = name_systems(files, options["qrels"], names=options["names"])
    measures = choose_measures(keys, options["qrels"])
    curves = _depth_curves(systems, _read_pool(pool, graph), measures, options)
    table, whole = curves.table(), curves.interval_table()
    heading = (
        f"tau-b of the ranking of {len(systems)} systems with the labels of each pool "
        f"depth to that at depth {curves.reference}"
    )
    text = f"{curves.least_alike()} Intervals resample the questions."
    data = {
        "rankings": whole.to_dict(),
        "values": {values.measure: values.by_name() for values in curves.values},
    }
    return Report.from_sections(
        [(heading, [table, whole], text)],
        data,
        whole,
        figures={"plot": lambda: plots.depth_curves(curves)},
    )


def _depth_curves(
    systems: Mapping[str, str], pool: Pool, keys: Sequence[str], options: Mapping[str, Any]
) -> orders.DepthCurves:
    """Compute the depth curves of runs, or of ranks on the complete split."""
    from kgtrec.study import curves_of_ranks, curves_of_runs
    from kgtrec.study.pooling.depths import depths_of, names_of_pool

    resampling = shared.resampling(options)
    if options["qrels"] is None:
        return curves_of_ranks(load_comparable(systems), pool, keys, resampling=resampling)
    depth_of = depths_of(pool, names_of_pool(pool, options["questions"]))
    return curves_of_runs(
        options["qrels"],
        systems,
        depth_of,
        keys,
        entities=options["n_entities"],
        ties=order_of_ties(),
        resampling=resampling,
    )


def _read_pool(path: str, graph: str) -> Pool:
    from kgtrec import read_graph
    from kgtrec.study.pooling.pool import read_pool

    return read_pool(path, read_graph(graph))[0]
