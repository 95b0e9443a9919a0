"""``kgtrec classify``: which triples are true? Thresholds, metrics and calibration."""

from __future__ import annotations

from typing import Any

import click

from kgtrec.cli import _options as shared
from kgtrec.cli._report import Command, Report


@click.command(
    cls=Command, short_help="Triple classification: true or false? Metrics and calibration."
)
@click.option(
    "--valid-triples", "valid", required=True, type=shared.READ, metavar="FILE",
    help="Labelled triples on which thresholds and calibration are fitted: lines "
    "head<TAB>relation<TAB>tail<TAB>label (1; 0 or -1), then perhaps <TAB>score.",
)  # fmt: skip
@click.option(
    "--test-triples",
    "test",
    required=True,
    type=shared.READ,
    metavar="FILE",
    help="What is measured, likewise.",
)
@click.option(
    "--valid-negatives", type=shared.READ, metavar="FILE",
    help="False triples of valid, where --valid-triples has no labels and is all true (as in "
        "CoDEx).",
)  # fmt: skip
@click.option("--test-negatives", type=shared.READ, metavar="FILE", help="Of test, likewise.")
@click.option(
    "--valid-scores", type=shared.READ, metavar="FILE",
    help="Where lines have no score: one for each triple of --valid-triples, then of its "
        "negatives; a .npy "
    "array, or a number a line.",
)  # fmt: skip
@click.option("--test-scores", type=shared.READ, metavar="FILE", help="Of test, likewise.")
@shared.LOWER_IS_BETTER
@click.option(
    "--criterion", type=shared.Choice(["accuracy", "f1"]), default="accuracy", show_default=True,
    help="What thresholds make best on valid.",
)  # fmt: skip
@click.option(
    "--one-threshold", is_flag=True,
    help="The same threshold for all relations; by default each has its own, where valid has true "
    "and false triples of it.",
)  # fmt: skip
@click.option(
    "--bins", type=click.IntRange(2), default=10, show_default=True,
    help="Of the calibration error and the reliability curve, of equal size.",
)  # fmt: skip
@shared.intervals("(head, relation) groups", 1000)
@click.option(
    "--show", type=shared.Choice(["overall", "relations", "intervals", "calibration", "curves"]),
    default="overall", show_default=True,
    help="All triples; each relation; each with intervals; Brier and ECE; reliability curves.",
)  # fmt: skip
@shared.FORMAT
@shared.PLOT
@shared.STYLE
def command(show: str, **options: Any) -> Report:
    """Classify labelled triples by their scores: a threshold for each relation is chosen on valid,
    and test is measured: accuracy, F1, MCC, areas under the ROC and precision-recall curves, and
    how far the scores are probabilities, as they are and after calibration on valid.

    False triples come from files, as WN11, FB13 and CoDEx have them; none are made up.

    \b
    kgtrec classify --valid-triples valid.tsv --test-triples test.tsv
    kgtrec classify --valid-triples valid.tsv --valid-scores valid.npy \\
                    --test-triples test.tsv --test-scores test.npy --show relations
    kgtrec classify --valid-triples valid.txt --valid-negatives valid_negatives.txt \\
                    --valid-scores v.npy \\
                    --test-triples test.txt --test-negatives test_negatives.txt --test-scores t.npy
    """
    from kgtrec.study.classification.classify import classify
    from kgtrec.study.classification.labelled_triples import read_labelled

    ids: dict[str, int] = {}
    parts = [
        read_labelled(
            options[split], ids,
            negatives=options[f"{split}_negatives"], scores=options[f"{split}_scores"],
        )
        for split in ("test", "valid")
    ]  # fmt: skip
    if options["lower_is_better"]:
        parts = [part.negated() for part in parts]
    result = classify(
        *parts, criterion=options["criterion"], per_relation=not options["one_threshold"],
        bins=options["bins"], resampling=shared.resampling(options), relations=list(ids),
    )  # fmt: skip
    tables = {
        "overall": result.table, "relations": result.relation_table,
        "intervals": result.interval_table, "calibration": result.calibration_table,
        "curves": result.curve_table,
    }  # fmt: skip
    report = Report.of_table(
        tables[show](), figures={"plot": ("studies", "reliability_curves", result.curves)}
    )
    if show == "overall":
        report.text, report.forms = lambda: str(result), {"json": result.to_json}
    return report
