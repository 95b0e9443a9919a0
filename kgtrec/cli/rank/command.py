"""``kgtrec rank``: scores to ranks, metrics and TREC files."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

import click

from kgtrec.cli import _options as shared
from kgtrec.cli._report import Command, Report
from kgtrec.cli.rank.answers import answer_files, asks_answers, of_answers, rank_answers
from kgtrec.cli.rank.filters import filter_names, outputs_by_filter, report_of, write_result
from kgtrec.cli.rank.options import (
    Scoring,
    in_parts,
    of_embeddings,
    of_predictions,
    of_questions,
    question_request,
    tolerance,
)
from kgtrec.errors import UsageError

if TYPE_CHECKING:
    from kgtrec.cluster.inputs import AnswerRequest, QuestionRequest
    from kgtrec.questions.api import Questions
    from kgtrec.results.result import Result

Outputs = dict[str, dict[str, str | None]]
"""By filter, then by option: the files that are written."""


@click.command(cls=Command, short_help="Scores of a model to ranks, metrics and TREC files.")
@shared.graph(
    "Folder with the splits train, valid and test. The format is detected from the file names, or "
    "given as FORMAT:DIR (see `kgtrec formats`)."
)
@click.option(
    "--scores", type=shared.SCORES, metavar="PATH",
    help="A .npy matrix (memory-mapped), a folder of .npy shards, or an .npz with the arrays "
    "queries and entities (and bias, metric) of a factorised model.",
)  # fmt: skip
@of_answers
@of_embeddings
@of_predictions
@shared.ranking_files(
    "Ranks, as Parquet; with --shard the folder of the shards.", kind=shared.LATER
)
@of_questions
@shared.HOW_SCORED
@tolerance
@in_parts
def command(**options: Any) -> Report:
    """Rank every answer of a split by a model's SCORES and print the standard results table.

    Scores have one row per question and one column per entity. Entities are numbered in byte order
    of their labels over all splits; OpenKE's format keeps its own numbers.

    \b
    kgtrec rank --graph FB15k-237 --scores scores.npy -o ranks.parquet
    kgtrec rank --graph FB15k-237 --scores weights.npz --model complex -o ranks.parquet
    kgtrec rank --graph FB15k-237 --scores model.npz -o ranks.parquet --write-run sys.run
    kgtrec rank --graph FB15k-237 --scores v.npy -o v.parquet --split valid --filter valid
    kgtrec rank --graph FB15k-237 --scores m.npz -o t.parquet --type-constraints type_constrain.txt

    Several filters, in one pass, each with its own files:

    \b
    kgtrec rank --graph FB15k-237 --scores scores.npy -o ranks-{filter}.parquet \\
        --filter raw --filter valid --filter test

    Lists of the best predictions instead of scores, filtered by the graph (`kgtrec formats` lists
    their formats). If an answer is beyond its list, values are intervals:

    \b
    kgtrec rank --graph FB15k-237 --predictions llm.jsonl --predictions-format jsonl \\
        -o ranks.parquet
    kgtrec rank --graph WN18RR --predictions rules.txt --predictions-format anyburl -o ranks.parquet

    Inputs, outputs and folders of shards may be URLs: s3://, gs:// or file://. Rows of .npy files
    and shards are streamed, and other inputs are copied first (kgtrec guide clusters):

    \b
    kgtrec rank --graph s3://data/wn18rr --scores s3://data/m.npy -o s3://data/ranks.parquet

    Without a graph: questions with answers as JSON lines (kgtrec guide complex-queries); or vectors
    of queries and documents with qrels, for every trec_eval measure from the exact ranks of all
    relevant documents (kgtrec guide dense-retrieval):

    \b
    kgtrec rank --questions queries.jsonl --candidates entities.txt --scores m.npy -o r.parquet
    kgtrec rank --qrels qrels.txt --documents ids.txt --queries q.txt --scores v.npz -o r.parquet

    As a job array of shards of at most 2 GB each; then kgtrec merge:

    \b
    kgtrec rank --graph FB15k-237 --scores model.npz --shard 1/16 -o shards/ --plan
    kgtrec rank --graph FB15k-237 --scores model.npz --shard 3/16 -o shards/ --memory 2GB
    kgtrec merge shards/ -o ranks.parquet
    """
    if asks_answers(options):
        shared.refuse((options["model"], "--model needs --graph; leave it out"))
        asked, scoring = answer_files(options), _taken(Scoring, options)
        if options["shard"] is not None:
            return _rank_shard(asked, scoring, options)
        _check_parts(options)
        of_all: Outputs = {"": {name: options[name] for name in ("output", "run", "qrels")}}
        inputs = [("an input", path) for path in asked.files.values()]
        _check_outputs(options, of_all, [("the scores", scoring.scores), *inputs])
        depth = options["run_depth"] if options["run"] else 0
        result, questions = rank_answers(asked, scoring, depth)
        return _written({"": result}, {"": questions}, options, of_all)
    _check_source(options)
    _check_model(options)
    names = filter_names(options["filters"])
    outputs = outputs_by_filter(options, names)
    request, scoring = question_request(options), _taken(Scoring, options)
    if options["predictions"] is not None:
        return _rank_predictions(request, options, outputs)
    if options["shard"] is not None:
        if len(names) > 1:
            raise UsageError("--shard takes one filter; rank each --filter separately")
        return _rank_shard(request, scoring, {**options, **outputs[names[0]]})
    _check_parts(options)
    return _rank_whole(request, scoring, options, outputs)


def _check_source(options: dict[str, Any]) -> None:
    """Scores or predictions, and no option that has no effect on them."""
    lists = options["predictions"] is not None
    if lists == (options["scores"] is not None):
        raise UsageError("give either scores (--scores PATH) or ranked lists (--predictions FILE)")
    others: tuple[str, ...] = ("format", "unlinkable", "list_order")
    if lists:
        others = ("rows", "lower_is_better", "nan", "atol", "rtol", "threads", "shard", "plan",
                  "by", "memory", "columns")  # fmt: skip
    wrong = [shared.option_of(name) for name in others if shared.on_command_line(name)]
    if wrong:
        needed = "--scores" if lists else "--predictions"
        raise UsageError(f"without {needed}, leave out {', '.join(wrong)}")
    if lists and options["format"] is None:
        from kgtrec.predictions.readers import PREDICTIONS

        raise UsageError(
            f"--predictions needs --predictions-format: {', '.join(PREDICTIONS.all())}"
        )


def _check_model(options: dict[str, Any]) -> None:
    """No option that has no effect without --model, and none that does not go with it."""
    with_model = options["model"] is not None
    names = ("lower_is_better", "shard", "predictions") if with_model else ("norm", "inverse")
    wrong = [shared.option_of(name) for name in names if shared.on_command_line(name)]
    if wrong:
        how = "with" if with_model else "without"
        raise UsageError(f"{how} --model, leave out {', '.join(wrong)}")


def _taken(kind: Any, options: dict[str, Any]) -> Any:
    return kind(**{one.name: options[one.name] for one in fields(kind)})


def _check_parts(options: dict[str, Any]) -> None:
    """UsageError if options of shards are given without one."""
    if options["by"] or options["memory"] or options["plan"]:
        raise UsageError("--shard-by, --memory and --plan need --shard; leave them out")


def _rank_shard(
    request: QuestionRequest | AnswerRequest, scoring: Scoring, options: dict[str, Any]
) -> Report:
    from kgtrec.cli.rank.shard import rank_one

    _refuse(run=options["run"], qrels=options["qrels"])
    rank_one(
        request, scoring, options["shard"], options["output"],
        run_depth=options["run_depth"] if shared.on_command_line("run_depth") else 0,
        by=options["by"] or "auto", memory=options["memory"] or "2GB",
        plan_only=options["plan"],
    )  # fmt: skip
    return Report()


def _rank_whole(
    request: QuestionRequest, scoring: Scoring, options: dict[str, Any], outputs: Outputs
) -> Report:
    from kgtrec.results.evaluate import evaluate

    questions = _questions(request, options, scoring.scores, outputs)
    results = evaluate(
        scoring.source(next(iter(questions.values()))),
        questions,
        run_depth=options["run_depth"] if options["run"] else 20,
        **scoring.keywords(),
    )
    return _written(results, questions, options, outputs)


def _check_outputs(
    options: dict[str, Any], outputs: Outputs, inputs: list[tuple[str, str]]
) -> None:
    """UsageError unless what is to be written can be, and costs the user no file."""
    from kgtrec.cli._report import check_outputs
    from kgtrec.trec.files.run import check_tag

    check_tag(options["tag"])
    if options["output"].endswith((".csv", ".tsv", ".json")):
        raise UsageError(
            f"-o {options['output']}: ranks are written as Parquet; name a .parquet file, and make "
            "tables of it with `kgtrec report FILE --format csv`"
        )
    several = len(outputs) > 1
    paths = {
        shared.option_of(option) + f" of filter {name}" * several: path
        for name, files in outputs.items()
        for option, path in files.items()
    }
    check_outputs(paths, inputs)


def _questions(
    request: QuestionRequest, options: dict[str, Any], source: str, outputs: Outputs
) -> dict[str, Questions]:
    """The questions, by the names of their filters."""
    lists = [("an input", path) for files in request.lists.values() for path in files]
    given = [("the graph", request.graph), ("the scores", source), *lists]
    _check_outputs(options, outputs, given)
    if len(outputs) > 1:
        return request.questions_by_filter()
    return {next(iter(outputs)): request.questions()}


def _rank_predictions(
    request: QuestionRequest, options: dict[str, Any], outputs: Outputs
) -> Report:
    from kgtrec.ranking.lists import ranked_lists
    from kgtrec.results.result import Result

    questions = _questions(request, options, options["predictions"], outputs)
    ranked = {
        name: ranked_lists(
            options["predictions"],
            part,
            options["format"],
            unlinkable=options["unlinkable"],
            list_order=options["list_order"],
        )
        for name, part in questions.items()
    }
    results = {name: Result(ranks, run=run) for name, (ranks, run) in ranked.items()}
    # What is printed comes from the whole lists, of which the run may hold a part.
    shown = {name: Result(ranks) for name, (ranks, _) in ranked.items()}
    return _written(results, questions, options, outputs, shown)


def _written(
    results: dict[str, Result],
    questions: dict[str, Questions],
    options: dict[str, Any],
    outputs: Outputs,
    shown: dict[str, Result] | None = None,
) -> Report:
    """Write each filter's files; report ``shown``, by default the results."""
    written = []
    for name, result in results.items():
        how = outputs[name], options["run_depth"], options["tag"]
        written += write_result(result, questions[name], *how)
    return report_of(shown or results, next(iter(questions.values())), written)


def _refuse(**paths: str | None) -> None:
    for name, path in paths.items():
        if path is not None:
            option = shared.option_of(name)
            raise UsageError(
                f"{option} is written when shards are merged: kgtrec merge ... {option} {path}"
                + (" (and give --run-depth here, to keep so many)" if name == "run" else "")
            )
