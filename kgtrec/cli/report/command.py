"""``kgtrec report``: the published table of saved ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from kgtrec.cli import _options as shared
from kgtrec.cli._process import keep_blas_single
from kgtrec.cli._report import Command, Report
from kgtrec.cli.report.parts import by_rank_type, file_by_file, parts, reweighted

if TYPE_CHECKING:
    from kgtrec.measures import Measure
    from kgtrec.results.result import Result

FORMATS = ("table", "json", "csv", "latex", "markdown", "html", "typst")
OF_PARTS = ("table", "json", "csv", "latex", "markdown")
OF_PAGES = {"--name", "--test", "--correction", "--level"}
OF_GRAPH = {"category", "quartile", "given-quartile", "relation-quartile", "half-links"}


@click.command(cls=Command, short_help="The published table of saved ranks.")
@click.argument(
    "files", nargs=-1, required=True, metavar="RANKS.parquet|BATCH ...", type=shared.READ
)
@click.option(
    "--format", "form", type=shared.Choice(FORMATS), default="table", show_default=True,
    help="latex, markdown, html, typst and csv have one row per model; table (without --columns) "
    "and json have everything of each file. csv and json have full precision.",
)  # fmt: skip
@click.option(
    "-o",
    "--output",
    type=shared.PRINT_TO,
    metavar="FILE",
    help="Write the table to FILE instead of printing it.",
)
@click.option(
    "--columns", metavar="KEYS",
    help="Columns of a table of models: mrr,hits@1,macro.mrr, ...  "
    "[default: mrr,hits@1,hits@3,hits@10,mr]",
)  # fmt: skip
@click.option(
    "--side", "sides", metavar="SIDES",
    help="Sides in a table of models: head, tail, both, or several groups of columns: head,tail.",
)  # fmt: skip
@click.option(
    "--name", "names", multiple=True, metavar="TEXT",
    help="Name of a file in a table of models, once per file in their order. Files of one name on "
    "different graphs are one row. Default: the file's own, without folder and ending.",
)  # fmt: skip
@click.option(
    "--test", type=shared.Choice(shared.TESTS),
    help="In a table of models: test all pairs as `kgtrec compare` does, and mark which models "
    "each significantly beats.",
)  # fmt: skip
@shared.CORRECTION
@shared.LEVEL
@click.option(
    "--replicates", is_flag=True,
    help="In a table of models: files named model-1, model-2, ... (or alike by --name) are runs of "
    "one model: mean and deviation. --test bootstrap draws runs and questions.",
)  # fmt: skip
@click.option(
    "--digits", type=click.IntRange(0, 17), metavar="N",
    help="Decimals of a table of models.  [default: each measure's own]",
)  # fmt: skip
@click.option(
    "--html", "page", type=shared.WRITE, metavar="FILE",
    help="Write a page in one file that loads nothing: sortable tables, ranks, ties, popularity, "
    "comparisons, questions.",
)  # fmt: skip
@shared.runs("with --html: what was ranked first.")
@click.option(
    "-m", "--measure", "keys", multiple=True, metavar="KEY",
    help="Only this measure, such as hits@10 (both.realistic.micro.hits@10); repeatable.",
)  # fmt: skip
@click.option(
    "--by", metavar="PARTS",
    help="One row per side, relation, category (1-1, 1-N, N-1, N-N), quartile (of the answer's "
    "popularity, Q1 the rarest), given-quartile, relation-quartile, half-links, label, or "
    "several: category,side.",
)  # fmt: skip
@click.option(
    "--graph", type=shared.GRAPH_FOLDER, metavar="DIR",
    help="Graph of the ranks, for --by category and quartiles, also on a page.",
)  # fmt: skip
@click.option(
    "--labels",
    type=shared.READ,
    metavar="FILE",
    help="Lines head, relation, tail, label (TSV), for --by label.",
)
@click.option(
    "--spread", is_flag=True,
    help="With --by: print the quartiles of each measure over the rows instead of the rows.",
)  # fmt: skip
@click.option(
    "--ratios", type=shared.READ, metavar="FILE",
    help="Triples (TSV) whose relation ratios weigh the micro metrics, beside the ranks' own.",
)  # fmt: skip
@click.option(
    "--rank-types", is_flag=True,
    help="One row per rank type (optimistic, realistic, ...), and the number of ties.",
)  # fmt: skip
def command(files: tuple[str, ...], keys: tuple[str, ...], **options: Any) -> Report:
    """Print all metrics of files of ranks, or the standard results table: one row per model, the
    best in bold and the second best underlined, with a caption that states the protocol. A BATCH
    is the output folder of `kgtrec batch`: models by graphs.

    \b
    kgtrec report ranks.parquet
    kgtrec report a.parquet b.parquet --format latex -o table.tex
    kgtrec report *.parquet --columns mrr,hits@10,macro.mrr --side head,tail,both
    kgtrec report a.parquet b.parquet --name TransE --name RotatE --format markdown --test t
    kgtrec report results/ --format latex --columns mrr,hits@10
    kgtrec report transe-*.parquet rotate-*.parquet --replicates --format latex
    kgtrec report *.parquet --html report.html --graph FB15k-237
    kgtrec report a.parquet b.parquet --html report.html --run a.run --run b.run
    kgtrec report a.parquet b.parquet --format json
    kgtrec report ranks.parquet --by relation -m amri
    kgtrec report ranks.parquet --by category,side --graph FB15k-237
    kgtrec report ranks.parquet --by label --labels types.tsv
    kgtrec report ranks.parquet --by relation --spread -m mrr
    kgtrec report ranks.parquet --ratios other-test.txt
    kgtrec report ranks.parquet --rank-types -m mrr -m agmri

    LaTeX needs the package booktabs. Superscripts of --test are the letters of the models that are
    significantly worse; measures that are not means, such as AMRI, are not tested.
    """
    keep_blas_single()
    from kgtrec.measures import parse_all

    context = click.get_current_context()
    form, output = context.params["form"], context.params["output"]
    measures = parse_all(keys) if keys else None
    by_parts = any(options[name] for name in ("by", "ratios", "rank_types"))
    _check_options({**options, "output": output}, keys, by_parts, form)
    if options["page"]:
        from kgtrec.cli.report.models import write_page

        return write_page(files, options)
    if by_parts:
        return _parts(files, measures, options)
    if form not in ("table", "json") or options["columns"]:
        from kgtrec.cli.report.models import models_report

        return models_report(files, keys, options)
    return file_by_file(_loaded(files, measures, form))


def _check_options(
    options: dict[str, Any], keys: tuple[str, ...], by_parts: bool, form: str
) -> None:
    """Refuse options that would have no effect, before any file is read."""
    by, graph, labels = options["by"], options["graph"], options["labels"]
    slices: tuple[str, ...] = ()
    if by is not None:
        from kgtrec.results.slices import parse_by

        slices = parse_by(by, None)
    names = ("columns", "sides", "names", "test", "correction", "level", "digits", "replicates")
    typed = [f"--{name}" for name in names if shared.on_command_line(name)]
    typed = [{"--sides": "--side", "--names": "--name"}.get(name, name) for name in typed]
    page = options["page"] is not None
    tables = form not in ("table", "json") or options["columns"]
    of_models = page or (not by_parts and tables)
    shared.refuse(
        (typed and not of_models,
         f"{', '.join(typed)}: only a table of models takes this; add --columns, or --format "
         "latex, markdown, html, typst or csv, and leave out --by, --ratios and --rank-types"),
        (page and (by_parts or keys or form != "table" or len({*typed} - OF_PAGES)),
         "--html writes a page with all tables; leave out --by, --ratios, --rank-types, --measure, "
         "--format, --columns, --side, --digits and --replicates"),
        (page and options["output"], "--html names the file of its page; leave -o out"),
        (options["runs"] and not page, "--run needs --html FILE"),
        (form == "json" and options["columns"],
         "--format json contains every measure; leave out --columns, or choose --format csv"),
        (keys and options["columns"], "--columns and --measure both choose measures; give one"),
        ({"--correction", "--level"} & set(typed) and not options["test"] and not page,
         "--correction and --level need --test"),
        (by_parts and form not in OF_PARTS,
         f"--format {form} needs a table of models; with --by, --ratios and --rank-types choose "
         f"{', '.join(OF_PARTS)}"),
        (labels is not None and "label" not in slices, "--labels needs --by label"),
        (labels is None and "label" in slices, "--by label needs --labels FILE"),
        (graph is None and not OF_GRAPH.isdisjoint(slices),
         f"--by {by} needs --graph DIR, the graph of the ranks"),
        (graph is not None and OF_GRAPH.isdisjoint(slices) and not page,
         "--graph needs --by category, --by quartile (or another quartile), or --html"),
        (options["spread"] and by is None, "--spread needs --by, such as --by relation"),
        (options["ratios"] is not None and by is not None,
         "--ratios and --by are different reports; choose one"),
        (options["rank_types"] and (by is not None or options["ratios"] is not None),
         "--rank-types does not combine with --by and --ratios; leave them out"),
    )  # fmt: skip


def _loaded(files: tuple[str, ...], measures: list[Measure] | None, form: str) -> dict[str, Result]:
    from kgtrec.cli._ranks import warn_of_results
    from kgtrec.ranking.ranks import Ranks
    from kgtrec.results.result import Result

    results = {file: Result(Ranks.load(file), measures=measures) for file in files}
    warn_of_results(results, form)
    return results


def _parts(
    files: tuple[str, ...], measures: list[Measure] | None, options: dict[str, Any]
) -> Report:
    # What is printed by parts or by other ratios leaves no other list of measures to check.
    results = _loaded(files, None, "parts")
    if options["rank_types"]:
        return by_rank_type(results, measures)
    if options["ratios"] is not None:
        return reweighted(results, options["ratios"], measures)
    by, graph, labels, spread = (options[name] for name in ("by", "graph", "labels", "spread"))
    return Report.of_files(parts(results, by, measures, graph, labels, spread))
