"""``kgtrec report``: the published table of saved ranks, slices of it, or a page.

The table of models has one row per model, from files or the output of a batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import click

from kgtrec._internal.locations import is_folder
from kgtrec.cli import _options as shared
from kgtrec.cli._ranks import (
    bounds_block,
    bounds_by_key,
    column_order,
    list_batch_ranks,
    list_files,
    load_ranks,
    name_files,
    refuse_measures,
    warn_about,
)
from kgtrec.cli._report import Command, Report, blocks, single_or_all
from kgtrec.errors import UsageError, about, choose

S = TypeVar("S")
T = TypeVar("T")


if TYPE_CHECKING:
    from kgtrec import Measure, Ranks, Result
    from kgtrec.results.averages import Averages

Options = dict[str, Any]
FORMATS = ("table", "json", "csv", "latex", "markdown", "html", "typst")
PART_FORMATS = ("table", "json", "csv", "latex", "markdown")
LABELLED = ("latex", "typst")
MODEL_OPTIONS = (
    *("columns", "sides", "names", "test", "correction", "level", "digits", "replicates"),
    *("caption", "label"),
)
PAGE_OPTIONS = {"--name", "--test", "--correction", "--level"}
OPTION_PARTS = {
    "percentile": ("mix",),
    "edges": ("frequency", "answers"),
    "enough": ("redundancy",),
}
GRAPH_PARTS = {
    "category",
    "quartile",
    "given-quartile",
    "relation-quartile",
    "half-links",
    "mix",
    "frequency",
    "redundancy",
}


@click.command(cls=Command)
@shared.files("files", "RANKS.parquet|BATCH ...")
@shared.choice(
    "--format form",
    FORMATS,
    "latex, markdown, html, typst and csv have one row per "
    "model; table (without --columns) and json have everything of each file. csv and "
    "json have full precision.",
    default="table",
)
@shared.option(
    "-o --output",
    "Write the table to FILE instead of printing it.",
    type=shared.PRINT_TO,
    metavar="FILE",
)
@shared.option(
    "--columns",
    "Columns of a table of models: mrr,hits@1,macro.mrr, ...  [default: "
    "mrr,hits@1,hits@3,hits@10,mr]",
    metavar="KEYS",
)
@shared.option(
    "--side sides",
    "Sides in a table of models: head, tail, both, or several groups of columns: head,tail.",
    metavar="SIDES",
)
@shared.names(
    "file in a table of models", more=" Files of one name on different graphs are one row."
)
@shared.choice(
    "--test",
    shared.TESTS,
    "In a table of models: test all pairs as `kgtrec compare` "
    "does, and mark which models each significantly beats.",
)
@shared.CORRECTION
@shared.LEVEL
@shared.flag(
    "--replicates",
    "In a table of models: files named model-1, model-2, ... (or alike by "
    "--name) are runs of one model: mean and deviation. --test bootstrap draws runs and "
    "questions.",
)
@shared.option(
    "--digits",
    "Decimals of a table of models.  [default: each measure's own]",
    type=shared.Count(0, 17),
    metavar="N",
)
@shared.CAPTION
@shared.writes(
    "--html page",
    "Write a page in one file that loads nothing: sortable tables, "
    "ranks, ties, popularity, comparisons, questions.",
)
@shared.runs("with --html: what was ranked first.")
@shared.measures(
    "-m --measure keys",
    "Only these measures, such as hits@10 (both.realistic.micro.hits@10); repeatable.",
    "KEY",
)
@shared.option(
    "--by",
    "One row per side, relation, category (1-1, 1-N, N-1, N-N), quartile (of "
    "the answer's popularity, Q1 the rarest), given-quartile, relation-quartile, "
    "mix (popular and unpopular parts), frequency (the answer's train triples), answers (of the "
    "question in the evaluated split: Yang et al. 2022, A.3), redundancy (of "
    "the relation: near-reverse, near-duplicate, Cartesian product), half-links, label, or "
    "several: category,side.",
    metavar="PARTS",
)
@shared.graph(
    "Graph of the ranks, for --by category, quartiles, mix, ..., also on a page. Alone, it adds a "
    "line: answers by category of their relation, and micro minus macro MRR (Mohamed et al. 2020, "
    "section 4)."
)
@shared.option(
    "--percentile",
    "With --by mix: entities and relations count as popular from this percentile of their counts "
    "on (Mohamed et al., Table 1).",
    type=shared.Number(0, 100),
    default=90,
)
@shared.option(
    "--edges",
    "With --by frequency or answers: least numbers of the classes.  "
    "[default: 0,1,2,5,10,20,50,100]",
    metavar="N,N,...",
)
@shared.option(
    "--enough",
    "With --by redundancy: share of its pairs from which a relation counts as redundant.",
    type=shared.Share(),
    default=0.8,
)
@shared.reads("--labels", "Lines of the split with a fourth column, label (TSV), for --by label.")
@shared.flag(
    "--spread", "With --by: print the quartiles of each measure over the rows instead of the rows."
)
@shared.reads(
    "--ratios",
    "Triples (TSV, as in the split) whose relation ratios weigh the micro metrics, in addition to "
    "the ranks' own.",
)
@shared.flag(
    "--rank-types", "One row per rank type (optimistic, realistic, ...), and the number of ties."
)
def command(files: tuple[str, ...], **options: Any) -> Report:
    """Print all metrics of files of ranks, or the standard results table: one row per model, the
    best in bold and the second best underlined, with a caption that states the protocol. A BATCH
    is the output folder of `kgtrec batch`: models by graphs.

    \b
    kgtrec report ranks.parquet
    kgtrec report a.parquet b.parquet --format latex -o table.tex
    kgtrec report *.parquet --columns mrr,hits@10,macro.mrr --side head,tail,both
    kgtrec report a.parquet b.parquet --name TransE --name RotatE --format markdown --test t
    kgtrec report results/ --format latex --columns mrr,hits@10 --label tab:results
    kgtrec report transe-*.parquet rotate-*.parquet --replicates --format latex
    kgtrec report *.parquet --html report.html --graph FB15k-237
    kgtrec report a.parquet b.parquet --html report.html --run a.run --run b.run
    kgtrec report a.parquet b.parquet --format json
    kgtrec report ranks.parquet --graph FB15k-237
    kgtrec report ranks.parquet --by relation -m amri
    kgtrec report ranks.parquet --by category,side --graph FB15k-237
    kgtrec report ranks.parquet --by frequency --edges 0,1,10 --graph FB15k-237
    kgtrec report ranks.parquet --by answers --edges 1,2,10 -m question.mrr
    kgtrec report ranks.parquet --by label --labels types.tsv
    kgtrec report ranks.parquet --by relation --spread -m mrr
    kgtrec report ranks.parquet --ratios other-test.txt
    kgtrec report ranks.parquet --rank-types -m mrr -m agmri

    LaTeX needs the packages booktabs and graphicx; sides and graphs that do not fit beside each
    other are below each other. Superscripts of --test are the letters of the
    models that are significantly worse; measures that are not means, such as AMRI, are not tested.
    """
    from kgtrec.measures import parse_all

    params = click.get_current_context().params
    options |= {name: params[name] for name in ("form", "output")}
    keys = options["keys"]
    measures = parse_all(keys) if keys else None
    by_parts = any(options[name] for name in ("by", "ratios", "rank_types"))
    _check_options(options, by_parts)
    refuse_measures(files)
    if options["page"]:
        return _page_report(files, options)
    if by_parts:
        return _parts_report(files, measures, options)
    if options["form"] not in ("table", "json") or options["columns"]:
        return _models_report(files, options)
    return _files_report(files, measures, options)


def _check_options(options: Options, by_parts: bool) -> None:
    """Refuse options that would have no effect, before any file is read."""
    from kgtrec.results.slices import parse_by

    slices = () if options["by"] is None else parse_by(options["by"], None)
    options["edges"] = _parse_edges(options["edges"])
    tables = bool(options["form"] not in ("table", "json") or options["columns"])
    shared.refuse(
        *_table_rules(options, by_parts, tables),
        *_slice_rules(options, by_parts, tables, slices),
        *_part_rules(options, slices),
    )


Rules = tuple[tuple[object, str], ...]
"""Conditions that refuse a command, and the texts that say so."""


def _table_rules(options: Options, by_parts: bool, tables: bool) -> Rules:
    """Return the rules on the table of models and on the page.

    - by_parts: True if the report is about parts of the instances.
    - tables: True if the format or the columns are those of a table of models.
    """
    typed, form, keys = shared.list_typed(MODEL_OPTIONS), options["form"], options["keys"]
    page = options["page"] is not None
    captions = [option for option in typed if by_parts and option in ("--caption", "--label")]
    typed = [option for option in typed if page or option not in captions]
    of_models = page or (not by_parts and tables)
    return (
        (
            typed and not of_models and by_parts,
            f"{', '.join(typed)}: only a table of models has these; leave out --by, --ratios and "
            "--rank-types for it; for models on parts, use kgtrec compare parts with --by and -m",
        ),
        (
            typed and not of_models and not by_parts,
            f"{', '.join(typed)}: only a table of models has these; add --columns, or --format "
            "latex, markdown, html, typst or csv",
        ),
        (
            page and (by_parts or keys or form != "table" or len({*typed} - PAGE_OPTIONS)),
            "--html writes a page with all tables; leave out --by, --ratios, --rank-types, "
            "--measure, --format, --columns, --side, --digits, --caption, --label and --replicates",
        ),
        (page and options["output"], "--html names the file of its page; leave -o out"),
        (options["runs"] and not page, "--run needs --html FILE"),
        (
            options["label"] and not page and form not in LABELLED,
            f"--label is for references in LaTeX and Typst, not for --format {form}",
        ),
        (
            captions and form != "latex" and not page,
            f"{', '.join(captions)}: with --by, --ratios and --rank-types, only --format latex has "
            "these",
        ),
        (
            by_parts and options["label"] and not options["caption"],
            "--label needs --caption, because LaTeX numbers a table by its caption; give both",
        ),
        (
            options["caption"] and form == "csv",
            "--format csv has no caption; leave --caption out",
        ),
        (
            form == "json" and options["columns"],
            "--format json contains every measure; leave out --columns, or choose --format csv",
        ),
        (keys and options["columns"], "--columns and --measure both choose measures; give one"),
        (
            {"--correction", "--level"} & set(typed) and not options["test"] and not page,
            "--correction and --level need --test",
        ),
    )


def _slice_rules(options: Options, by_parts: bool, tables: bool, slices: tuple[str, ...]) -> Rules:
    """Return the rules on the format, the labels and the graph of reports on parts."""
    by, graph, labels, form = (options[name] for name in ("by", "graph", "labels", "form"))
    page = options["page"] is not None
    return (
        (
            by_parts and form not in PART_FORMATS,
            f"--format {form} needs a table of models; with --by, --ratios and --rank-types choose "
            f"{', '.join(PART_FORMATS)}",
        ),
        (labels is not None and "label" not in slices, "--labels needs --by label"),
        (labels is None and "label" in slices, "--by label needs --labels FILE"),
        (
            graph is None and not GRAPH_PARTS.isdisjoint(slices),
            f"--by {by} needs --graph DIR, the graph of the ranks",
        ),
        (
            graph is not None and GRAPH_PARTS.isdisjoint(slices) and not page and by is not None,
            f"--by {by} needs no graph; leave --graph out, or slice by one of "
            f"{', '.join(sorted(GRAPH_PARTS))}",
        ),
        (
            graph is not None and not page and by is None and (by_parts or tables),
            "--graph needs --by category, --by quartile (or another quartile), --html, or the "
            "whole report of a file",
        ),
    )


def _part_rules(options: Options, slices: tuple[str, ...]) -> Rules:
    """Return the rules on options that need some slices, and on reports that exclude others."""
    by = options["by"]
    return (
        *(
            (
                shared.on_command_line(name) and not {*parts} & {*slices},
                f"--{name} needs --by {' or '.join(parts)}",
            )
            for name, parts in OPTION_PARTS.items()
        ),
        (options["spread"] and by is None, "--spread needs --by, such as --by relation"),
        (
            options["ratios"] is not None and by is not None,
            "--ratios and --by are different reports; choose one",
        ),
        (
            options["rank_types"] and (by is not None or options["ratios"] is not None),
            "--rank-types does not combine with --by and --ratios; leave them out",
        ),
    )


def _parse_edges(text: str | None) -> list[int] | None:
    """Return the numbers of --edges; UsageError for anything else."""
    if text is None:
        return None
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() and len(part) < 16 for part in parts):
        raise UsageError(f"--edges {text!r} is not a list of whole numbers; write 0,1,5,10")
    return [int(part) for part in parts]


def _files_report(
    files: tuple[str, ...], measures: list[Measure] | None, options: Options
) -> Report:
    """Report all metrics of every file: the standard table, or all keys as JSON."""
    from kgtrec import Ranks, Result, read_graph
    from kgtrec.results.averages import averages_of

    ranks = {name: Ranks.load(file) for name, file in name_files(files, ()).items()}
    results = _map_files(ranks, lambda each: Result(each, measures=measures))
    averages: dict[str, Averages] = {}
    if options["graph"] is not None:
        graph = read_graph(options["graph"])
        averages = _map_files(results, lambda result: averages_of(result, graph))
    warn_about(results, printed=options["form"] == "table")
    return Report(
        lambda: blocks(
            {
                file: f"{result}{bounds_block(result)}{_averages_block(averages.get(file))}"
                for file, result in results.items()
            }
        ),
        lambda: single_or_all(
            {
                file: result.to_dict()
                | bounds_by_key(result)
                | _averages_by_key(averages.get(file), result)
                for file, result in results.items()
            }
        ),
    )


def _averages_block(averages: Averages | None) -> str:
    """Return a paragraph on micro and macro averages below a report; "" without a graph."""
    from textwrap import fill

    if averages is None:
        return ""
    return "\n\n" + fill(averages.sentence(), 80, subsequent_indent="  ", break_on_hyphens=False)


def _averages_by_key(averages: Averages | None, result: Result) -> dict[str, float]:
    """Return these averages by key, for JSON."""
    return {} if averages is None else averages.to_dict(f"{result.sides[-1]}.realistic")


def _map_files(values: dict[str, S], make: Callable[[S], T]) -> dict[str, T]:
    """Call `make` with the value of each file. An error names the file."""
    results = {}
    for file, value in values.items():
        with about(file):
            results[file] = make(value)
    return results


# -- By parts --------------------------------------------------------------------------------------


def _parts_report(
    files: tuple[str, ...], measures: list[Measure] | None, options: Options
) -> Report:
    """Report slices of every file, quartiles over them, other ratios, or rank types."""
    from kgtrec import Result, read_graph
    from kgtrec.study import read_relation_counts, reweight_table, spreads
    from kgtrec.study.stratified import coverage_note

    loaded = load_ranks(name_files(files, ()))
    results = {file: Result(ranks) for file, ranks in loaded.items()}
    texts_of_table = options["caption"], options["label"]
    if options["rank_types"]:
        return _rank_types_report(results, measures).in_latex_table(*texts_of_table)
    notes = []
    if options["ratios"] is not None:
        counts = read_relation_counts(options["ratios"], column_order(loaded))
        tables = {
            file: reweight_table(result, counts, measures) for file, result in results.items()
        }
        texts = {file: coverage_note(result, counts) for file, result in results.items()}
        notes = [f"{file}: {text}" for file, text in texts.items() if text]
    else:
        graph = None if options["graph"] is None else read_graph(options["graph"])
        tables = {
            file: result.slice(
                options["by"],
                measures,
                graph=graph,
                labels=options["labels"],
                percentile=options["percentile"],
                edges=options["edges"],
                enough=options["enough"],
            )
            for file, result in results.items()
        }
    if options["spread"]:
        tables = {file: spreads(table) for file, table in tables.items()}
    return Report.from_files(tables, notes=notes).in_latex_table(*texts_of_table)


def _rank_types_report(results: dict[str, Result], measures: list[Measure] | None) -> Report:
    """Report a row per rank type, and how many candidates tie."""
    from kgtrec.results.report import fitting, tie_note

    tables = {file: result.rank_types(measures) for file, result in results.items()}
    texts = {
        file: f"{fitting(result, tables[file])}\n\n{tie_note(result)}"
        for file, result in results.items()
    }
    data = {
        file: {"rank_types": tables[file].to_dict(), "ties": result.ranks.tie_report()}
        for file, result in results.items()
    }
    report = Report.from_files(tables, lambda: blocks(texts))
    report.data = lambda: single_or_all(data)
    return report


# -- The table of models and the page --------------------------------------------------------------


def _models_report(files: tuple[str, ...], options: Options) -> Report:
    """Report the table of models, in every format."""
    from kgtrec.measures import averaging, parse_all
    from kgtrec.study.reporting import formats, model_table
    from kgtrec.study.reporting.model_table import Significance, table_of_models

    columns = options["keys"] or _split_list(options["columns"]) or model_table.COLUMNS
    sides = _split_list(options["sides"]) or None
    significance = None
    if options["test"]:
        significance = Significance(options["test"], options["correction"], options["level"])
    parse_all(columns)  # before any file is read
    for side in sides or ():
        choose("side", side, averaging.SIDES, also="several, as in head,tail")
    systems = _load_systems(files, options["names"], options["replicates"])
    table = table_of_models(
        systems, columns, sides=sides, significance=significance, digits=options["digits"]
    )
    table = replace(table, text=options["caption"] or "", label=options["label"] or "")
    notes = [*_idle_options(systems, options)]
    if options["form"] == "latex":
        advice = "give fewer --columns, or --side both, or one table per graph"
        notes += shared.note_on_width(formats.latex_width(table), advice)
    return Report(
        forms={form: partial(render, table) for form, render in formats.FORMATS.items()},
        notes=notes,
    )


def _idle_options(systems: dict[str, dict[str, list[Ranks]]], options: Options) -> Iterator[str]:
    """Yield a note per option that changes nothing in a table of these models."""
    if options["test"] and all(len(models) < 2 for models in systems.values()):
        yield f"--test {options['test']}: no effect on one model; give the ranks of several"
    if options["replicates"] and all(
        len(runs) < 2 for models in systems.values() for runs in models.values()
    ):
        yield (
            "--replicates: no effect, as every model has one run; name the files of a model "
            "model-1, model-2, or give its runs one --name"
        )


def _page_report(files: tuple[str, ...], options: Options) -> Report:
    """Report a page on the models of a graph."""
    from kgtrec import read_graph
    from kgtrec.study.reporting.builder import build_page_data
    from kgtrec.study.reporting.page import render_page
    from kgtrec.trec.files.run import read_run_columns

    runs = options["runs"]
    files = list_files(files, options["names"])
    shared.refuse(shared.one_per_file("--run", runs, files))
    systems = _load_systems(files, options["names"])
    if len(systems) > 1:
        raise UsageError(
            f"a page is for one graph, not {', '.join(systems)}; make one page per graph"
        )
    (runs_of,) = systems.values()
    ranks = {name: loaded[0] for name, loaded in runs_of.items()}
    data = build_page_data(
        ranks,
        graph=read_graph(options["graph"]) if options["graph"] else None,
        runs=dict(zip(ranks, map(read_run_columns, runs), strict=True)) if runs else None,
        test=options["test"] or "t",
        correction=options["correction"],
        level=options["level"],
    )
    return Report(files=[(options["page"], render_page(data))])


def _split_list(text: str | None) -> list[str]:
    """Split a list at its commas, without blanks; None gives an empty list."""
    return [item.strip() for item in text.split(",")] if text else []


def _load_systems(
    files: tuple[str, ...], names: tuple[str, ...], replicates: bool = False
) -> dict[str, dict[str, list[Ranks]]]:
    """Load ranks by graph and model, with warnings. Names of a batch are those of its models.

    With `replicates`, files whose names differ in a final number are runs of one model; otherwise
    each list has one item, and a second file of a model is a UsageError.
    """
    from kgtrec import Ranks, Result
    from kgtrec.study.comparison.report import group_names

    systems: dict[str, dict[str, list[Ranks]]] = {}
    files_by_name: dict[tuple[str, str], str] = {}
    graphs: dict[str, str] = {}
    for dataset, model, path in _evaluations(files, names):
        if replicates and not names:
            (model,) = group_names([model])
        ranks = Ranks.load(path)
        graph = dataset or _dataset(ranks, graphs)
        other = files_by_name.setdefault((graph, model), path)
        if model in systems.get(graph, {}) and not replicates:
            raise UsageError(f"{other} and {path} would both be {model!r}; give each a --name")
        systems.setdefault(graph, {}).setdefault(model, []).append(ranks)
    if replicates:
        systems = _join_folds(systems)
    for graph, loaded in systems.items():
        where = f" on {graph}" if len(systems) > 1 else ""
        warn_about(
            {
                f"{model}{where}{f' (run {number})' if len(runs) > 1 else ''}": Result(run)
                for model, runs in loaded.items()
                for number, run in enumerate(runs, start=1)
            }
        )
    return systems


def _join_folds(systems: dict[str, dict[str, list[Ranks]]]) -> dict[str, dict[str, list[Ranks]]]:
    """Join graphs into one column of folds if every model has one run on each graph."""
    folds = list(systems.values())
    single = all(len(runs) == 1 for fold in folds for runs in fold.values())
    if len(folds) < 2 or not single or any(fold.keys() != folds[0].keys() for fold in folds):
        return systems
    name = f"{len(folds)} folds of {next(iter(systems))}"
    return {name: {model: [fold[model][0] for fold in folds] for model in folds[0]}}


def _dataset(ranks: Ranks, graphs: dict[str, str]) -> str:
    """Return the name of the ranks' graph: its folder's name, numbered if two graphs have it."""
    facts = ranks.provenance
    name, key = facts.graph_name or "graph", str(facts.graph_hash)
    if key not in graphs:
        alike = sum(known.partition(" (")[0] == name for known in graphs.values())
        graphs[key] = f"{name} ({alike + 1})" if alike else name
    return graphs[key]


def _evaluations(files: tuple[str, ...], names: tuple[str, ...]) -> Iterator[tuple[str, str, str]]:
    """Yield graph ("" if the ranks name it), model and path of the ranks in files and batches."""
    from kgtrec.ranking.parquet import system_name

    batches = [file for file in files if is_folder(file)]
    if batches and names:
        raise UsageError(f"--name is for files; {batches[0]} is a folder, leave --name out")
    shared.refuse(shared.one_per_file("--name", names, files))
    for name, file in zip(names or map(system_name, files), files, strict=True):
        if file in batches:
            yield from list_batch_ranks(file)
        else:
            yield "", name, file
