"""``kgtrec classify``: which triples are true? Thresholds, metrics and calibration."""

from __future__ import annotations

from typing import Any

import click

from kgtrec._internal.arguments import MOST_PARTS
from kgtrec.cli import _options as shared
from kgtrec.cli._report import Command, Report


@click.command(cls=Command)
@shared.reads(
    "--valid-triples valid",
    "Labelled triples to fit thresholds and calibration: lines "
    "head<TAB>relation<TAB>tail<TAB>label (1; 0 or -1), optionally <TAB>score.",
    required=True,
)
@shared.reads(
    "--test-triples test", "Labelled triples to evaluate, in the same form.", required=True
)
@shared.reads(
    "--valid-negatives",
    "False triples of valid, if --valid-triples are all true and have no labels (as in CoDEx).",
)
@shared.reads("--test-negatives", "The same for test.")
@shared.reads(
    "--valid-scores",
    "Scores, if the lines have none: one per triple of "
    "--valid-triples, then one per negative. A .npy array, or one number per "
    "line.",
)
@shared.reads("--test-scores", "The same for test.")
@shared.LOWER_IS_BETTER
@shared.choice(
    "--criterion",
    ["accuracy", "f1"],
    "Measure that thresholds maximise on valid.",
    default="accuracy",
)
@shared.flag(
    "--one-threshold",
    "Use one threshold for all relations. By default, each relation "
    "with true and false triples in valid has its own.",
)
@shared.option(
    "--bins",
    "Bins of equal size for the calibration error and the reliability curve.",
    type=shared.Count(2, MOST_PARTS),
    default=10,
)
@shared.intervals("(head, relation) groups", 1000)
@shared.choice(
    "--show",
    ["overall", "relations", "intervals", "calibration", "curves"],
    "Print all triples, relations, relations with intervals, Brier and ECE, or curves.",
    default="overall",
)
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
    from kgtrec import classify, plots
    from kgtrec.study.classification.labelled_triples import read_labelled

    ids: dict[str, int] = {}
    parts = [
        read_labelled(
            options[split],
            ids,
            negatives=options[f"{split}_negatives"],
            scores=options[f"{split}_scores"],
        )
        for split in ("test", "valid")
    ]
    if options["lower_is_better"]:
        parts = [part.negate() for part in parts]
    result = classify(
        *parts,
        criterion=options["criterion"],
        per_relation=not options["one_threshold"],
        bins=options["bins"],
        resampling=shared.resampling(options),
        relations=list(ids),
    )
    tables = {
        "overall": result.table,
        "relations": result.relation_table,
        "intervals": result.interval_table,
        "calibration": result.calibration_table,
        "curves": result.curve_table,
    }
    report = Report.from_table(
        tables[show](), figures={"plot": lambda: plots.reliability_curves(result.curves)}
    )
    if show == "overall":
        report.text, report.forms = lambda: str(result), {"json": result.to_json}
    return report
