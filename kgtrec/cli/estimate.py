"""``kgtrec estimate``: full-ranking metrics from drawn candidates."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import click

from kgtrec.cli import _options as shared
from kgtrec.cli._report import Command, File, Report, note

if TYPE_CHECKING:
    from kgtrec.questions.api import Questions
    from kgtrec.study.sampling.counts import SampledCounts
    from kgtrec.study.sampling.estimates import FullCheck, FullEstimates


@click.command(cls=Command)
@shared.GRAPH
@shared.option(
    "--scores",
    "As for `kgtrec rank`: one row per question; columns as --score-columns "
    "says. Without scores, only --write-candidates is written.",
    type=shared.SCORES,
    metavar="PATH",
)
@shared.split("Split to evaluate.")
@shared.sides("Which entity of a triple to ask for.")
@shared.CONTEXT
@shared.option(
    "--filter known",
    "Splits whose answers are known: all, valid, raw, or names, as "
    "for `kgtrec rank`; with --context time-aware (qualifier-aware), static or raw.",
    default="all",
    metavar="NAME",
)
@shared.option(
    "--size",
    "Candidates to draw per question, in addition to its answers.",
    type=shared.Count(10),
    default=300,
)
@shared.option(
    "--draw-by by",
    "Weights of the draw: uniform; frequency of entities on that side "
    "of the relation in train; observed there or not; or a recommender's weights, a "
    ".npy array of shape (2 relations, entities), heads of every relation first.",
    default="frequency",
    metavar="NAME|FILE",
)
@shared.reads(
    "--type-constraints", "Draw from the entities that OpenKE's type_constrain.txt lists."
)
@shared.option(
    "--full",
    "Number of questions (or a share below 1) to rank among all candidates "
    "too. MRR and Hits@k have no unbiased estimate without them; 0 gives bounds.",
    type=shared.Number(0),
    default=0.1,
    metavar="N",
)
@shared.option(
    "--half-width within",
    "Print how many such questions an MRR interval of this half width needs.",
    type=shared.Number(0, min_open=True),
    default=0.002,
)
@shared.writes(
    "--write-candidates candidates",
    "Write the drawn candidates, ids of shape "
    "(questions, longest list), for a model that scores only these. The same options "
    "draw the same candidates.",
    metavar="FILE.npy",
)
@shared.choice(
    "--score-columns columns",
    ["entities", "candidates"],
    "Columns of --scores: entities, or candidates of --write-candidates.",
    default="entities",
)
@shared.COLUMN_LABELS
@shared.writes(
    "--write-full-questions full_questions",
    "With --score-columns candidates: write the numbers of the questions that --full draws.",
    metavar="FILE.npy",
)
@shared.option(
    "--full-scores",
    "Scores of these questions among all entities, one row each.",
    type=shared.SCORES,
    metavar="PATH",
)
@shared.seed("Seed of both draws.")
@shared.confidence("for each value separately")
@shared.LOWER_IS_BETTER
@shared.NAN
@shared.FORMAT
@shared.THREADS
def command(**options: Any) -> Report:
    """Estimate MR, MRR and Hits@k of full ranking from candidates that are drawn with known
    probabilities. Also prints the value among the drawn candidates, which is another quantity and
    almost always too good.

    \b
    kgtrec estimate --graph FB15k-237 --scores scores.npy --size 500
    kgtrec estimate --graph FB15k-237 --scores scores.npy --draw-by recommender.npy --full 1000

    If a model scores only the drawn candidates, use three steps with the same options:

    \b
    kgtrec estimate --graph G --write-candidates c.npy
    kgtrec estimate --graph G --score-columns candidates --scores s.npy --write-full-questions q.npy
    kgtrec estimate --graph G --score-columns candidates --scores s.npy --full-scores f.npy
    """
    from kgtrec.study.sampling.counts import count_sampled
    from kgtrec.study.sampling.draw import draw_candidates
    from kgtrec.study.sampling.estimates import draw_check
    from kgtrec.study.semantics import fitting_by_constraints

    _check(options)
    questions = _read_questions(options)
    by = options["by"]
    if options["type_constraints"] is not None:
        by = fitting_by_constraints(questions.graph, options["type_constraints"])
    draw = draw_candidates(questions, options["size"], by, seed=options["seed"])
    files: list[File] = [(options["candidates"], partial(_write, draw.candidates))]
    if options["scores"] is None:
        return Report(files=files)
    ranking = {
        "higher_is_better": not options["lower_is_better"],
        "nan": options["nan"],
        "threads": options["threads"],
    }
    counts = count_sampled(draw, options["scores"], columns=options["columns"], **ranking)
    check = draw_check(counts, options["full"], options["seed"]) if options["full"] else None
    if check is not None:
        files.append((options["full_questions"], partial(_write, check.questions)))
    estimates = _compute_estimates(counts, check, options, ranking)
    text = estimates.text(options["within"])
    return Report.from_table(estimates.table(), lambda: text, files=files)


def _read_questions(options: dict[str, Any]) -> Questions:
    """Read the questions. Scores of all entities decide how many entities the graph has."""
    from kgtrec.questions.requests import QuestionRequest
    from kgtrec.scores.sources import load_scores

    names = ("graph", "split", "sides", "context", "column_labels")
    request = {name: options[name] for name in names}
    by_entity = options["scores"] is not None and options["columns"] == "entities"
    return QuestionRequest(
        **request,
        filters=(options["known"],),
        say=note,
        n_columns=(lambda: load_scores(options["scores"]).shape[1]) if by_entity else None,
    ).questions()


def _check(options: dict[str, Any]) -> None:
    """Refuse options that are missing, contradict each other, or have no effect."""
    apart = options["columns"] == "candidates"
    shared.refuse(
        (
            options["scores"] is None and options["candidates"] is None,
            "nothing to do; give --scores PATH, or --write-candidates FILE.npy to draw only",
        ),
        (
            not 0.01 <= options["ci"] < 100,
            f"--ci {options['ci']:g} is not a percentage between 0 and 100, such as 95",
        ),
        (
            (options["full_questions"] or options["full_scores"]) and not apart,
            "--write-full-questions and --full-scores need --score-columns candidates; scores of "
            "all entities already include every question",
        ),
        (
            options["type_constraints"] is not None and shared.on_command_line("by"),
            "--draw-by and --type-constraints both choose what is drawn; give one",
        ),
    )


def _compute_estimates(
    counts: SampledCounts, check: FullCheck | None, options: dict[str, Any], ranking: dict[str, Any]
) -> FullEstimates:
    """Estimate full-ranking metrics; rank the questions of `check` among all candidates, too."""
    from kgtrec.study.sampling.counts import rank_some
    from kgtrec.study.sampling.estimates import full_estimates

    level = options["ci"] / 100
    scores = options["full_scores" if options["columns"] == "candidates" else "scores"]
    if check is None or scores is None or not len(check.questions):
        return full_estimates(counts, level=level)
    full = rank_some(scores, counts.draw.questions, check.questions, **ranking)
    return full_estimates(counts, check, full, level)


def _write(array: Any, path: str) -> None:
    from kgtrec._internal.files import atomic_write, write_array

    with atomic_write(path) as file:
        write_array(file, array)
