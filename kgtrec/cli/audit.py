"""``kgtrec audit``: can published numbers be true together, and which protocol gives them?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from kgtrec._internal.arguments import MOST_AUDITED
from kgtrec.cli import _options as shared
from kgtrec.cli._options import system_names
from kgtrec.cli._report import SCORES, Command, Report
from kgtrec.errors import UsageError

if TYPE_CHECKING:
    from kgtrec import Questions
    from kgtrec.study.auditing.claims import ProtocolSearch
    from kgtrec.study.auditing.possible import Audit

IMPOSSIBLE = 3
"""Exit code if some numbers exclude each other."""
SIZES = ("instances", "entities")


@click.command(cls=Command)
@shared.files("files", "TABLE ... [RANKS.parquet ...]")
@shared.option(
    "--n-instances instances",
    "Number of ranks behind each value: for both sides, twice the number of test triples.",
    type=shared.Count(),
    metavar="N",
)
@shared.option(
    "--n-entities entities",
    "Number of entities, the largest possible rank.",
    type=shared.Count(1, MOST_AUDITED),
    metavar="E",
)
@shared.graph("The graph of the table, instead of both numbers. Adds values expected by chance.")
@shared.split("Evaluated split of --graph.")
@shared.SIDES
@shared.flag("--percent", "Metrics between 0 and 1 are printed as percentages.")
@shared.flag("--truncated", "Digits were cut off instead of rounded.")
@shared.option(
    "--averaged-runs runs",
    "Each number is a mean over R runs.",
    type=shared.Count(),
    default=1,
    metavar="R",
)
@shared.option(
    "--scores",
    "Scores of a model (with --graph), as for `kgtrec rank`: also try every filter and, with ties, "
    "ranks by the order of columns (Berrendorf et al. 2020, section 2.1), which files of ranks "
    "lack. Repeatable.",
    type=SCORES,
    multiple=True,
    metavar="PATH",
)
@shared.reads(
    "--type-constraints",
    "With --scores: also try candidates by relation and side, OpenKE's type_constrain.txt.",
)
@shared.option(
    "--name names",
    "The model's name in the table: one per ranks file, then one per --scores.",
    multiple=True,
    metavar="NAME",
)
@shared.FORMAT
def command(files: tuple[str, ...], **options: Any) -> Report:
    """Check the numbers that a table prints, and find the protocol behind them.

    TABLE is a .csv, .tsv, .md or .tex file: one row per model (a column model, system or name), one
    column per measure (mrr, hits@10, mr, amri, ...). A column side contains head, tail or both. The
    printed decimals say how exact a number is. Rows of one model in several tables are taken as
    numbers of one ranking.

    Without ranks or scores: can the numbers be the values of one ranking at all?

    \b
    kgtrec audit table.csv --n-instances 40932 --n-entities 14541
    kgtrec audit paper.tex leaderboard.csv --percent --graph FB15k-237

    With ranks or scores: which filter, side, rank type and average give every printed number?

    \b
    kgtrec audit table.csv distmult.parquet
    kgtrec audit table.md --graph FB15k-237 --scores distmult.npz

    Exit codes: 0 possible; 3 some numbers exclude each other; others as in `kgtrec --help`.
    """
    from kgtrec.study.auditing.possible import audit

    tables = [file for file in files if not file.endswith(".parquet")]
    if not tables:
        raise UsageError("give a table: a .csv, .tsv, .md or .tex file")
    ranks = [file for file in files if file not in tables]
    _check(ranks, options)
    if ranks or options["scores"]:
        return _find_protocols(tables, ranks, options)
    audited = audit(
        tables,
        instances=options["instances"],
        entities=options["entities"],
        questions=_read_questions(options),
        percent=options["percent"],
        side=options["sides"],
        truncated=options["truncated"],
        runs=options["runs"],
    )
    return _report(audited)


def _check(ranks: list[str], options: dict[str, Any]) -> None:
    """Refuse options without effect, and say which are missing."""
    scores, graph = options["scores"], options["graph"]
    sizes = [shared.option_of(name) for name in SIZES if options[name] is not None]
    wrong = sizes + ["--averaged-runs"] * shared.on_command_line("runs")
    of_models = ranks or scores
    shared.refuse(
        (scores and not graph, "--scores needs --graph DIR for the questions; add it"),
        (options["type_constraints"] and not scores, "--type-constraints requires --scores"),
        (of_models and wrong, f"{', '.join(wrong)}: not with ranks or scores; leave out"),
        (
            not of_models and graph and sizes,
            f"{', '.join(sizes)}: --graph sets the same values; leave out one of them",
        ),
        (
            not of_models and not graph and options["entities"] is None,
            "give the size of the test set: --n-instances N --n-entities E, or --graph DIR",
        ),
    )


def _read_questions(options: dict[str, Any]) -> Questions | None:
    """Read the graph and return its questions; None without --graph."""
    from kgtrec import read_graph

    if options["graph"] is None:
        return None
    return read_graph(options["graph"]).questions(options["split"], options["sides"])


def _find_protocols(tables: list[str], ranks: list[str], options: dict[str, Any]) -> Report:
    """Search for the protocol behind the tables, by ranks and scores of the models."""
    from kgtrec import Ranks, read_graph
    from kgtrec.study.auditing.claims import protocols_of, ranks_by_filter

    files = (*ranks, *options["scores"])
    names = dict(zip(files, system_names(files, options["names"], distinct=False), strict=True))
    models: dict[str, Any] = {names[file]: Ranks.load(file) for file in ranks}
    if options["scores"]:
        graph = read_graph(options["graph"])
        for file in options["scores"]:
            models[names[file]] = ranks_by_filter(
                file,
                graph,
                options["type_constraints"],
                split=options["split"],
                sides=options["sides"],
            )
    return _report(
        protocols_of(tables, models, percent=options["percent"], truncated=options["truncated"])
    )


def _report(result: Audit | ProtocolSearch) -> Report:
    notes = [f"not checked: {number}" for number in getattr(result, "unchecked", ())]
    code = 0 if getattr(result, "possible", True) else IMPOSSIBLE
    return Report.from_table(result.table(), result.text, notes=notes, code=code)
