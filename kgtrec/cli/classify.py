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
    help="Labelled triples to fit thresholds and calibration: lines "
    "head<TAB>relation<TAB>tail<TAB>label (1; 0 or -1), optionally <TAB>score.",
)  # fmt: skip
@click.option(
    "--test-triples",
    "test",
    required=True,
    type=shared.READ,
    metavar="FILE",
    help="Labelled triples to evaluate, in the same form.",
)
@click.option(
    "--valid-negatives", type=shared.READ, metavar="FILE",
    help="False triples of valid, if --valid-triples are all true and have no labels (as in "
    "CoDEx).",
)  # fmt: skip
@click.option("--test-negatives", type=shared.READ, metavar="FILE", help="The same for test.")
@click.option(
    "--valid-scores", type=shared.READ, metavar="FILE",
    help="If lines have no score: one per triple of --valid-triples, then of its negatives; a "
    ".npy array, or one number per line.",
)  # fmt: skip
@click.option("--test-scores", type=shared.READ, metavar="FILE", help="The same for test.")
@shared.LOWER_IS_BETTER
@click.option(
    "--criterion", type=shared.Choice(["accuracy", "f1"]), default="accuracy", show_default=True,
    help="Measure that thresholds maximise on valid.",
)  # fmt: skip
@click.option(
    "--one-threshold", is_flag=True,
    help="Use one threshold for all relations. By default, each relation with true and false "
    "triples in valid has its own.",
)  # fmt: skip
@click.option(
    "--bins", type=click.IntRange(2), default=10, show_default=True,
    help="Bins of equal size for the calibration error and the reliability curve.",
)  # fmt: skip
@shared.intervals("(head, relation) groups", 1000)
@click.option(
    "--show", type=shared.Choice(["overall", "relations", "intervals", "calibration", "curves"]),
    default="overall", show_default=True,
    help="Print all triples, relations, relations with intervals, Brier and ECE, or curves.",
)  # fmt: skip
@shared.FORMAT
@shared.PLOT
@shared.STYLE
def command(show: str, **options: Any) -> Report:
    """Classify labelled triples by their scores.

    Chooses a threshold per relation on valid. Prints accuracy, F1, MCC and areas under curves on
    test, and how well the scores are calibrated, before and after calibration on valid. False
    triples come from files, as in WN11, FB13 and CoDEx.

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
