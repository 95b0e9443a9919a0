"""``kgtrec estimate``: full-ranking metrics from drawn candidates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from kgtrec.cli import _options as shared
from kgtrec.cli._output import echo, note, rendered
from kgtrec.errors import UsageError

if TYPE_CHECKING:
    from kgtrec.questions.api import Graph
    from kgtrec.study.sampling.counts import SampledCounts
    from kgtrec.study.sampling.estimates import FullEstimates


@click.command(short_help="Full-ranking metrics from drawn candidates, with intervals.")
@shared.GRAPH
@click.option(
    "--scores", metavar="PATH",
    help="As for `kgtrec rank`: a row a question; columns as --columns says. Without it, only "
    "--candidates is written.",
)  # fmt: skip
@shared.split("Split to evaluate.")
@shared.sides("Which entity of a triple is asked.")
@shared.CONTEXT
@click.option(
    "--filter", "known", default="all", show_default=True, metavar="NAME",
    help="Whose answers are known: all, valid, raw, or splits, as for `kgtrec rank`; with "
    "--context time-aware (qualifier-aware), static or raw.",
)  # fmt: skip
@click.option(
    "--size", type=click.IntRange(10), default=300, show_default=True,
    help="Candidates that are drawn for a question, besides its answers.",
)  # fmt: skip
@click.option(
    "--by", default="frequency", show_default=True, metavar="NAME|FILE",
    help="Where they are likely drawn from: uniform; frequency, as entities stand on that side of "
    "the relation in train; observed, whichever stands there; or a recommender's weights, a .npy "
    "array of shape (2 relations, entities), heads of every relation first.",
)  # fmt: skip
@click.option(
    "--type-constraints", metavar="FILE", help="Or what OpenKE's type_constrain.txt lists."
)
@click.option(
    "--full", type=click.FloatRange(0), default=0.1, show_default=True, metavar="N",
    help="Questions that are ranked among all candidates besides, or a share of them below 1. "
    "MRR and Hits@k have no unbiased estimate without; 0 leaves bounds.",
)  # fmt: skip
@click.option(
    "--within", type=click.FloatRange(0, min_open=True), default=0.002, show_default=True,
    help="Say how many such questions an interval of MRR of this half width takes.",
)  # fmt: skip
@click.option(
    "--candidates", metavar="FILE.npy",
    help="Write the drawn candidates, ids of shape (questions, longest list), for a model that "
    "scores these alone. The same options draw the same again.",
)  # fmt: skip
@click.option(
    "--columns", type=click.Choice(["entities", "candidates"]), default="entities",
    show_default=True, help="What columns of --scores stand for: every entity, or --candidates.",
)  # fmt: skip
@click.option(
    "--full-questions", metavar="FILE.npy",
    help="With --columns candidates: write the numbers of the questions that --full draws.",
)  # fmt: skip
@click.option(
    "--full-scores", metavar="PATH", help="Scores of these among all entities, a row each."
)
@shared.seed("Of both draws.")
@shared.confidence("each by itself")
@shared.LOWER_IS_BETTER
@shared.NAN
@shared.form("table", "csv", "tsv", "markdown", "latex", "json")
@shared.THREADS
def command(**options: Any) -> None:
    """Estimate MR, MRR and Hits@k of full ranking from candidates that are drawn with known
    probabilities. Beside each estimate stands the value among the drawn candidates, which is
    something else: it is almost always too good.

    \b
    kgtrec estimate --graph FB15k-237 --scores scores.npy --size 500
    kgtrec estimate --graph FB15k-237 --scores scores.npy --by recommender.npy --full 1000

    Where a model shall score drawn candidates alone, in three steps with the same options:

    \b
    kgtrec estimate --graph G --candidates c.npy
    kgtrec estimate --graph G --columns candidates --scores s.npy --full-questions q.npy
    kgtrec estimate --graph G --columns candidates --scores s.npy --full-scores f.npy
    """
    from kgtrec.cli._output_files import check_outputs
    from kgtrec.cli.rank.options import filter_of
    from kgtrec.questions.api import read_graph
    from kgtrec.study.sampling.counts import count_sampled
    from kgtrec.study.sampling.draw import draw_candidates

    _check(options)
    written = {"--candidates": options["candidates"], "--full-questions": options["full_questions"]}
    check_outputs(written, options["graph"], options["scores"])
    graph = read_graph(options["graph"])
    is_default = options["context"] is not None and options["known"] == "all"
    questions = graph.questions(
        options["split"], options["sides"], context=options["context"],
        filter=None if is_default else filter_of(options["known"]),
    )  # fmt: skip
    draw = draw_candidates(questions, options["size"], _by(graph, options), seed=options["seed"])
    if options["candidates"] is not None:
        _write(options["candidates"], draw.candidates)
    if options["scores"] is None:
        return
    ranking = {
        "higher_is_better": not options["lower_is_better"], "nan": options["nan"],
        "threads": options["threads"],
    }  # fmt: skip
    counts = count_sampled(draw, options["scores"], columns=options["columns"], **ranking)
    _show(_estimates(counts, options, ranking), options)


def _check(options: dict[str, Any]) -> None:
    apart = options["columns"] == "candidates"
    wrong = [
        (options["scores"] is None and options["candidates"] is None,
         "nothing to do; name --scores PATH, or --candidates FILE.npy to draw alone"),
        (not 0 < options["ci"] < 100,
         f"--ci {options['ci']:g} is not a percentage between 0 and 100, such as 95"),
        (apart and options["scores"] is None, "--columns candidates says what --scores holds"),
        ((options["full_questions"] or options["full_scores"]) and not apart,
         "--full-questions and --full-scores go with --columns candidates; scores of all entities "
         "hold those of every question"),
    ]  # fmt: skip
    problems = [problem for applies, problem in wrong if applies]
    if problems:
        raise UsageError("; ".join(problems))


def _by(graph: Graph, options: dict[str, Any]) -> Any:
    from kgtrec.study.sampling.weights import NAMES
    from kgtrec.study.semantics import fitting_by_constraints, fitting_observed

    if options["type_constraints"] is not None:
        if shared.on_command_line("by"):
            raise UsageError("--by and --type-constraints each say what is drawn; name one")
        return fitting_by_constraints(graph, options["type_constraints"])
    by = options["by"]
    if by not in ("observed", *NAMES) and not by.endswith(".npy"):
        raise UsageError(f"--by {by!r}: name observed, {', '.join(NAMES)}, or a .npy file")
    return fitting_observed(graph, "train") if by == "observed" else by


def _estimates(
    counts: SampledCounts, options: dict[str, Any], ranking: dict[str, Any]
) -> FullEstimates:
    from kgtrec.study.sampling.estimates import full_estimates
    from kgtrec.study.sampling.full_check import draw_check
    from kgtrec.study.sampling.subset import rank_some

    level = options["ci"] / 100
    check = draw_check(counts, options["full"], options["seed"]) if options["full"] else None
    if check is not None and options["full_questions"] is not None:
        _write(options["full_questions"], check.questions)
    apart = options["columns"] == "candidates"
    scores = options["full_scores"] if apart else options["scores"]
    if check is None or scores is None or not len(check.questions):
        return full_estimates(counts, level=level)
    full = rank_some(scores, counts.draw.questions, check.questions, **ranking)
    return full_estimates(counts, check, full, level)


def _show(estimates: FullEstimates, options: dict[str, Any]) -> None:
    if options["form"] != "table":
        echo(rendered(estimates.table(), options["form"]))
        return
    notes = estimates.notes(options["within"])
    echo("\n".join([estimates.heading(), "", estimates.table().to_text(), "", *notes]))


def _write(path: str, array: Any) -> None:
    from kgtrec._internal.atomic_file import atomic_write
    from kgtrec._internal.npy_files import write_array

    with atomic_write(path) as file:
        write_array(file, array)
    note(f"wrote {path}")
