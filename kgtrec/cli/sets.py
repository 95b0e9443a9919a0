"""``kgtrec sets``: which candidates does a model name, and how often are they right?"""

from __future__ import annotations

from typing import Any

import click

from kgtrec.cli import _options as shared
from kgtrec.cli._ranks import load_ranks
from kgtrec.cli._report import Command, Report

TIES = ("all", "none", "expected")
UNITS = ("answer", "question-any", "question-all")


@click.command(cls=Command)
@click.argument("ranks", type=shared.READ, metavar="RANKS")
@shared.option(
    "--policy",
    "top:K, the K best candidates; or conformal:A, as many as contain the answer with probability "
    "1 - A, chosen on --valid.",
    required=True,
    metavar="NAME",
)
@shared.reads("--valid", "Ranks of the validation split, ranked with --filter valid.")
@shared.choice("--per", ["relation"], "A limit per relation instead of one for all.")
@shared.option(
    "--least",
    "With --per: relations with fewer answers on valid share a limit.",
    type=shared.Count(1),
    default=100,
)
@shared.choice(
    "--cover",
    UNITS,
    "What the claim is about: each answer, or any or all answers of each question.",
    default="answer",
)
@shared.choice(
    "--ties",
    TIES,
    "With top:K: candidates that tie at the border are all in the set, or none of them, or as many "
    "as fit, in random order.",
    default="all",
)
@shared.option(
    "--by", "Print parts of the questions, such as `relation` or `category,side`.", metavar="GROUP"
)
@shared.graph("Folder of the graph, for some values of --by.")
@shared.intervals("questions", 2000)
@shared.FORMAT
def command(ranks: str, by: str | None, **options: Any) -> Report:
    """Turn scores into a set of candidates per question, and judge the sets: precision, recall, F1,
    sizes and coverage.

    Micro measures divide sums over all questions, others are means over questions. Answers of one
    question compete with each other, and facts of other splits are not candidates.

    \b
    kgtrec sets test.parquet --policy top:10
    kgtrec sets test.parquet --policy conformal:0.1 --valid valid.parquet --per relation
    kgtrec sets test.parquet --policy conformal:0.1 --valid valid.parquet --by relation
    """
    from kgtrec import read_graph
    from kgtrec.study import answer_sets

    files = {"test": ranks, **({"valid": options["valid"]} if options["valid"] else {})}
    loaded = load_ranks(files, compared=False)
    sets = answer_sets(
        loaded["test"],
        options["policy"],
        valid=loaded.get("valid"),
        per=options["per"] or "",
        least=options["least"],
        cover=options["cover"],
        ties=options["ties"],
        resampling=shared.resampling(options),
    )
    if by is None:
        return Report.from_table(sets.table(), notes=[*sets.notes])
    graph = None if options["graph"] is None else read_graph(options["graph"])
    return Report.from_table(sets.slice(by, graph=graph), notes=[*sets.notes])
