"""``kgtrec gate``: pass, fail or undecided, for every change of a model."""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from kgtrec.cli import _options as shared
from kgtrec.cli._ranks import load_comparable
from kgtrec.cli._report import Command, Report
from kgtrec.cli.compare.inputs import QRELS, choose_measures, name_systems

CODES = {"pass": 0, "fail": 20, "undecided": 21}
"""Exit codes by verdict. No error has 20 or 21."""


@click.command(cls=Command)
@click.argument("files", nargs=2, metavar="BASE NEW", type=shared.READ)
@shared.option(
    "-m --measure keys",
    "hits@10 (both.realistic.micro.hits@10), tail.macro.mrr, map_cut_20, ...; with --qrels map, "
    "P.10, ...; repeatable. Default: micro and macro MRR; with --qrels MAP@20 and nDCG@20.",
    multiple=True,
    metavar="KEY",
)
@shared.option(
    "--margin",
    "The loss that is accepted in each measure: 0.005, or 5% of the base's value.",
    required=True,
    metavar="M",
)
@shared.option(
    "--level",
    "Error probability of each bound of the gain, below 0.5.",
    type=shared.Share(whole=False),
    default=0.05,
    metavar="P",
)
@QRELS
@shared.flag("--strict", "Exit with 20, too, if the gate is undecided.")
@shared.form(
    "text",
    "json",
    "markdown",
    "junit",
    text="Format of the output: markdown for a pull request, junit for reports of tests.",
)
@shared.option(
    "-o --output",
    "Write the output to FILE instead of printing it.",
    type=shared.PRINT_TO,
    metavar="FILE",
)
def command(files: tuple[str, str], keys: tuple[str, ...], **options: Any) -> Report:
    """Is NEW worse than BASE by the margin or more, and could this test set have shown it? Both are
    ranks (`kgtrec rank`) of the same questions, or TREC runs with --qrels.

    The gain of a measure is NEW - BASE, or BASE - NEW if lower is better. Its bounds are those of a
    paired t interval over questions. The gate passes if the lower bound of every measure is above
    -M, and fails if the upper bound of one is below -M (Holm's correction for several measures). It
    is undecided otherwise, or if the order of tied answers decides. The smallest drop that the test
    set finds with probability 0.8 is always printed.

    \b
    kgtrec gate main.parquet branch.parquet -m mrr -m hits@10 --margin 0.005
    kgtrec gate main.run branch.run --qrels test.qrels -m ndcg_cut_10 --margin 5%
    kgtrec gate main.parquet branch.parquet --margin 0.01 --format junit -o gate.xml

    Exit codes: 0 pass; 20 fail; 21 undecided (--strict: 20); others as in `kgtrec --help`.
    """
    from kgtrec.study import gate

    qrels, strict = options["qrels"], options["strict"]
    systems: dict[str, Any] = dict(name_systems(files, qrels))
    measures = choose_measures(keys, qrels)
    if qrels is None:
        systems = dict(load_comparable(systems))
    before, after = systems
    decided = gate(
        systems[before],
        systems[after],
        measures,
        options["margin"],
        level=options["level"],
        qrels=qrels,
        names=(before, after),
    )
    sections = [
        (decided.heading(), [decided.table()], decided.sentence()),
        ("The smallest drop that this test set finds", [decided.resolution_table()], ""),
        ("Largest losses", [decided.losses], "" if len(decided.losses) else "None."),
        ("Largest gains", [decided.gains], "" if len(decided.gains) else "None."),
    ]
    report = Report.from_sections(
        sections, decided.to_dict(), decided.table(), notes=[*decided.notes]
    )
    assert report.text is not None
    junit = partial(decided.to_junit, strict=strict)
    report.forms = {**report.forms, "text": report.text, "junit": junit}
    report.code = CODES["fail" if strict and decided.verdict == "undecided" else decided.verdict]
    return report
