"""``kgtrec changes``: which answers change from one model or seed to another."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from kgtrec._internal.text import visible
from kgtrec.cli import _options as shared
from kgtrec.cli._ranks import list_files, load_comparable
from kgtrec.cli._report import Command, Report
from kgtrec.errors import about

if TYPE_CHECKING:
    from kgtrec._internal.table import Table
    from kgtrec.study.changes import AnswerChanges

SHOWN = ("all", "hits", "best", "changed", "gained", "lost")


@click.command(cls=Command)
@shared.files("ranks", "BEFORE AFTER|BATCH")
@shared.runs("adds how often both models put the same entity first.")
@shared.names("model")
@shared.option("--k cutoffs", "k of Hits@k.", default="1,3,10", metavar="K,K,...")
@shared.choice(
    "--show",
    SHOWN,
    "Print the hits gained and lost, the best answers, or the largest changes, gains or losses.",
    default="all",
)
@shared.option(
    "--largest",
    "Number of the largest changes to list.",
    type=shared.Count(),
    default=10,
    metavar="N",
)
@shared.flag(
    "--corrected",
    "BEFORE and AFTER are ranks of one model with sparse and completed labels: print the ranks "
    "without and with correction (Yang et al. 2022, Table 1).",
)
@shared.option(
    "--question",
    "With --corrected: only the answers of this question of BEFORE, such as tail12.",
    metavar="NAME",
)
@shared.FORMAT
def command(
    ranks: tuple[str, ...],
    runs: tuple[str, ...],
    names: tuple[str, ...],
    cutoffs: str,
    show: str,
    largest: int,
    corrected: bool,
    question: str | None,
) -> Report:
    """Show which answers one model gets right and another does not: answers gained and lost among
    the k best, how often both put the same entity first, and the largest changes of rank.

    Both files contain ranks of the same questions; a BATCH is the output folder of one with two
    models. Two models with the same MRR may agree on few answers; two seeds of one model show how
    much of that is chance.

    \b
    kgtrec changes old.parquet new.parquet
    kgtrec changes old.parquet new.parquet --run old.run --run new.run
    kgtrec changes old.parquet new.parquet --show lost --largest 50 --format csv > lost.csv
    kgtrec changes sparse.parquet completed.parquet --corrected --question tail12
    """
    from kgtrec.study.changes import answer_changes

    files = list_files(ranks, names)
    shared.refuse(
        (
            len(files) != 2,
            f"give two files, BEFORE and AFTER, not {len(files)} "
            f"({', '.join(map(visible, files[:4]))}{', ...' if len(files) > 4 else ''})",
        ),
    )
    before, after = ranks = files
    typed = shared.list_typed(("runs", "names", "cutoffs", "show"))
    shared.refuse(
        (question is not None and not corrected, "--question needs --corrected"),
        (
            corrected and typed,
            f"{', '.join(typed)}: of two models; leave out with --corrected",
        ),
    )
    if corrected:
        return _corrections((before, after), question, largest)
    labels = shared.system_names(ranks, names)
    shared.refuse(
        shared.one_per_file("--run", runs, ranks),
        (show == "best" and not runs, "--show best needs runs: --run BEFORE.run --run AFTER.run"),
        (before == after, f"{before!r} is given twice; give the ranks of two models"),
    )
    loaded = load_comparable(dict(zip(labels, ranks, strict=True)))
    changes = answer_changes(loaded, runs or None, cutoffs=shared.parse_cutoffs(cutoffs))
    return _report(changes, show, largest)


def _corrections(files: tuple[str, str], question: str | None, largest: int) -> Report:
    """Report ranks without and with correction."""
    from kgtrec import Ranks
    from kgtrec.study.corrections import label_corrections

    before, after = (Ranks.load(file) for file in files)
    with about(", ".join(files)):
        corrections = label_corrections(before, after)
    if question is not None:
        return Report.from_table(corrections.question_table(question))
    tables = {"corrections": corrections.table(), "largest": corrections.largest(largest)}
    notes = []
    if corrections.n_new:
        notes = [f"{corrections.n_new:,} questions have only added answers; left out"]
    return Report.from_tables(tables, notes=notes)


def _report(changes: AnswerChanges, show: str, largest: int) -> Report:
    """Report all tables, or the one that --show names."""
    best = changes.best_table()
    tables: dict[str, Table] = {"hits": changes.table()}
    if best is not None:
        tables["best"] = best
    kinds = ("changed",) if show == "all" else (show,) if show in SHOWN[3:] else ()
    tables |= {kind: changes.largest(largest, kind) for kind in kinds}
    if show != "all":
        return Report.from_table(tables[show])
    texts = dict(tables)
    if best is not None:
        texts["best"] = best.transpose()  # its titles contain names, and are too wide
    return Report(Report.from_tables(texts).text, Report.from_tables(tables).data)
