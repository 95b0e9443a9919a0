"""``kgtrec classify``: which triples are true? Thresholds, metrics and calibration."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from kgtrec.cli import _options as shared
from kgtrec.cli._output import echo, note, rendered
from kgtrec.cli._plot_style import style_option

if TYPE_CHECKING:
    from kgtrec.study.classification.report import Classification


@click.command(short_help="Triple classification: true or false? Metrics and calibration.")
@click.option(
    "--valid", required=True, metavar="FILE",
    help="Labelled triples on which thresholds and calibration are fitted: lines "
    "head<TAB>relation<TAB>tail<TAB>label (1; 0 or -1), then perhaps <TAB>score.",
)  # fmt: skip
@click.option("--test", required=True, metavar="FILE", help="What is measured, likewise.")
@click.option(
    "--valid-negatives", metavar="FILE",
    help="False triples of valid, where --valid has no labels and is all true (as in CoDEx).",
)  # fmt: skip
@click.option("--test-negatives", metavar="FILE", help="Of test, likewise.")
@click.option(
    "--valid-scores", metavar="FILE",
    help="Where lines have no score: one for each triple of --valid, then of its negatives; a .npy "
    "array, or a number a line.",
)  # fmt: skip
@click.option("--test-scores", metavar="FILE", help="Of test, likewise.")
@shared.LOWER_IS_BETTER
@click.option(
    "--criterion", type=click.Choice(["accuracy", "f1"]), default="accuracy", show_default=True,
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
    "--show", type=click.Choice(["overall", "relations", "intervals", "calibration", "curves"]),
    default="overall", show_default=True,
    help="All triples; each relation; each with intervals; Brier and ECE; reliability curves.",
)  # fmt: skip
@shared.form("table", "csv", "tsv", "markdown", "latex", "json")
@click.option("--plot", metavar="FILE", help="Draw the reliability curves: .pdf, .svg, .png, ...")
@style_option
def command(
    valid: str, test: str, valid_negatives: str | None, test_negatives: str | None,
    valid_scores: str | None, test_scores: str | None, lower_is_better: bool, criterion: str,
    one_threshold: bool, bins: int, ci: float, resamples: int, seed: int, show: str, form: str,
    plot: str | None,
) -> None:  # fmt: skip
    """Classify labelled triples by their scores: a threshold for each relation is chosen on valid,
    and test is measured: accuracy, F1, MCC, areas under the ROC and precision-recall curves, and
    how far the scores are probabilities, as they are and after calibration on valid.

    False triples come from files, as WN11, FB13 and CoDEx have them; none are made up.

    \b
    kgtrec classify --valid valid.tsv --test test.tsv
    kgtrec classify --valid valid.tsv --valid-scores valid.npy \\
                    --test test.tsv --test-scores test.npy --show relations
    kgtrec classify --valid valid.txt --valid-negatives valid_negatives.txt --valid-scores v.npy \\
                    --test test.txt --test-negatives test_negatives.txt --test-scores t.npy
    """
    from kgtrec.cli._output_files import keep_inputs
    from kgtrec.study.classification.classify import classify
    from kgtrec.study.classification.labelled_triples import read_labelled

    if plot is not None:
        from kgtrec.plots.style import check_plot

        inputs = (valid, test, valid_negatives, test_negatives, valid_scores, test_scores)
        keep_inputs(inputs, {"--plot": plot})
        check_plot(plot)
    ids: dict[str, int] = {}
    parts = [
        read_labelled(path, ids, negatives=negatives, scores=scores)
        for path, negatives, scores in (
            (test, test_negatives, test_scores), (valid, valid_negatives, valid_scores),
        )
    ]  # fmt: skip
    if lower_is_better:
        parts = [part.negated() for part in parts]
    result = classify(
        *parts, criterion=criterion, per_relation=not one_threshold, bins=bins, confidence=ci,
        resamples=resamples, seed=seed, relations=list(ids),
    )  # fmt: skip
    echo(_text(result, show, form))
    if plot is not None:
        from kgtrec.plots.classification import reliability_curves
        from kgtrec.plots.style import save

        save(reliability_curves(result.curves), plot)
        note(f"figure written to {plot}")


def _text(result: Classification, show: str, form: str) -> str:
    if show == "overall" and form == "table":
        return str(result)
    if show == "overall" and form == "json":
        return result.to_json()
    table = {
        "overall": result.table, "relations": result.relation_table,
        "intervals": result.interval_table, "calibration": result.calibration_table,
        "curves": result.curve_table,
    }[show]()  # fmt: skip
    return rendered(table, form)
