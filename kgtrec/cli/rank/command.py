"""``kgtrec rank``: scores to ranks, metrics and TREC files."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

import click

from kgtrec.cli import _options as shared
from kgtrec.cli._output import echo, note
from kgtrec.cli.rank.filters import filter_names, outputs_by_filter
from kgtrec.cli.rank.options import (
    QuestionRequest,
    Scoring,
    in_parts,
    of_predictions,
    of_questions,
    tolerance,
)
from kgtrec.errors import UsageError

if TYPE_CHECKING:
    from kgtrec.questions.api import Questions
    from kgtrec.results.result import Result

Outputs = dict[str, dict[str, str | None]]
"""By filter, then by option: the files that are written."""


@click.command(short_help="Scores of a model to ranks, metrics and TREC files.")
@shared.GRAPH
@click.option(
    "--scores", metavar="PATH",
    help="A .npy matrix (memory-mapped), a folder of .npy shards, or an .npz with the arrays "
    "queries and entities (and bias, metric) of a factorised model.",
)  # fmt: skip
@of_predictions
@shared.ranking_files("Ranks, as Parquet; with --shard the folder of the shards.")
@of_questions
@shared.HOW_SCORED
@tolerance
@in_parts
@shared.QUIET
def command(**options: Any) -> None:
    """Rank every answer of a split by a model's SCORES and print the table that papers print.

    A row of scores is a question, a column an entity; entities are numbered in byte order of their
    labels over all splits, those of OpenKE's format as it numbers them.

    \b
    kgtrec rank --graph FB15k-237 --scores scores.npy -o ranks.parquet
    kgtrec rank --graph FB15k-237 --scores model.npz -o ranks.parquet --run sys.run
    kgtrec rank --graph FB15k-237 --scores v.npy -o v.parquet --split valid --filter valid
    kgtrec rank --graph FB15k-237 --scores m.npz -o t.parquet --type-constraints type_constrain.txt

    Several filters, side by side from one pass, each with files of its own:

    \b
    kgtrec rank --graph FB15k-237 --scores scores.npy -o ranks-{filter}.parquet \\
        --filter raw --filter valid --filter test

    Lists of the best predictions in place of scores, filtered by the graph (`kgtrec formats` has
    their formats); where an answer is beyond its list, values are intervals:

    \b
    kgtrec rank --graph FB15k-237 --predictions llm.jsonl --format jsonl -o ranks.parquet
    kgtrec rank --graph WN18RR --predictions rules.txt --format anyburl -o ranks.parquet

    Inputs (of a .npy file or folder of shards the rows at hand, all else as a copy), outputs and
    folders of shards may be URLs, s3://, gs:// or file:// (kgtrec guide clusters):

    \b
    kgtrec rank --graph s3://data/wn18rr --scores s3://data/m.npy -o s3://data/ranks.parquet

    As a job array, in which every job is a shard of at most 2 GB; then kgtrec merge:

    \b
    kgtrec rank --graph FB15k-237 --scores model.npz --shard 1/16 -o shards/ --plan
    kgtrec rank --graph FB15k-237 --scores model.npz --shard 3/16 -o shards/ --memory 2GB
    kgtrec merge shards/ -o ranks.parquet
    """
    _check_source(options)
    names = filter_names(options["filters"])
    outputs = outputs_by_filter(options, names)
    request, scoring = _taken(QuestionRequest, options), _taken(Scoring, options)
    if options["predictions"] is not None:
        _rank_predictions(request, options, outputs)
        return
    if options["shard"] is not None:
        if len(names) > 1:
            raise UsageError("shards are of one filter; rank those of each --filter by themselves")
        _rank_shard(request, scoring, {**options, **outputs[names[0]]})
        return
    if options["by"] or options["memory"] or options["plan"]:
        raise UsageError("--by, --memory and --plan require --shard; leave them out")
    _rank_whole(request, scoring, options, outputs)


def _check_source(options: dict[str, Any]) -> None:
    """Scores or predictions, and no option that has no effect on them."""
    lists = options["predictions"] is not None
    if lists == (options["scores"] is not None):
        raise UsageError("give the answers' scores (--scores PATH) or lists (--predictions FILE)")
    others = (
        (
            "rows",
            "lower_is_better",
            "nan",
            "atol",
            "rtol",
            "threads",
            "shard",
            "plan",
            "by",
            "memory",
            "columns",
        )
        if lists
        else ("format", "unlinkable")
    )
    wrong = [f"--{name.replace('_', '-')}" for name in others if shared.on_command_line(name)]
    if wrong:
        raise UsageError(
            f"{', '.join(wrong)}: requires {'--scores' if lists else '--predictions'}; leave out"
        )
    if lists and options["format"] is None:
        from kgtrec.predictions.formats import PREDICTIONS

        raise UsageError(f"--predictions needs --format: {', '.join(PREDICTIONS.all())}")


def _taken(kind: Any, options: dict[str, Any]) -> Any:
    return kind(**{one.name: options[one.name] for one in fields(kind)})


def _rank_shard(request: QuestionRequest, scoring: Scoring, options: dict[str, Any]) -> None:
    from kgtrec.cli.rank.shard import rank_one

    _refuse(run=options["run"], qrels=options["qrels"])
    rank_one(
        request, scoring, options["shard"], options["output"],
        run_depth=options["run_depth"] if shared.on_command_line("run_depth") else 0,
        by=options["by"] or "auto", memory=options["memory"] or "2GB",
        plan_only=options["plan"], show=False if options["quiet"] else None,
    )  # fmt: skip


def _rank_whole(
    request: QuestionRequest, scoring: Scoring, options: dict[str, Any], outputs: Outputs
) -> None:
    from kgtrec.results.evaluate import evaluate

    questions = _questions(request, options, scoring.scores, outputs)
    results = evaluate(
        scoring.scores,
        questions,
        run_depth=options["run_depth"] if options["run"] else 20,
        threads=scoring.threads,
        rows=scoring.rows,
        higher_is_better=not scoring.lower_is_better,
        nan=scoring.nan,
        atol=scoring.atol,
        rtol=scoring.rtol,
        progress=False if options["quiet"] else None,
    )
    _write_and_tell(results, questions, options, outputs)


def _questions(
    request: QuestionRequest, options: dict[str, Any], source: str, outputs: Outputs
) -> dict[str, Questions]:
    """The questions, once it is sure that what is to be written costs the user no file."""
    from kgtrec.cli._output_files import check_outputs, keep_inputs
    from kgtrec.trec.files.run import check_tag

    check_tag(options["tag"])
    several = len(outputs) > 1
    paths = {
        f"--{option}" + f" of filter {name}" * several: path
        for name, files in outputs.items()
        for option, path in files.items()
    }
    check_outputs(paths, request.graph, source)
    keep_inputs((path for files in request.lists.values() for path in files), paths)
    show = False if options["quiet"] else None
    if several:
        return request.questions_by_filter(show)
    return {next(iter(outputs)): request.questions(show)}


def _rank_predictions(request: QuestionRequest, options: dict[str, Any], outputs: Outputs) -> None:
    from kgtrec.ranking.lists import ranked_lists
    from kgtrec.results.result import Result

    questions = _questions(request, options, options["predictions"], outputs)
    ranked = {
        name: ranked_lists(
            options["predictions"], part, options["format"], unlinkable=options["unlinkable"]
        )
        for name, part in questions.items()
    }
    results = {name: Result(ranks, run=run) for name, (ranks, run) in ranked.items()}
    # What is printed comes from the whole lists, of which the run may hold a part.
    shown = {name: Result(ranks) for name, (ranks, _) in ranked.items()}
    _write_and_tell(results, questions, options, outputs, shown)


def _write_and_tell(
    results: dict[str, Result],
    questions: dict[str, Questions],
    options: dict[str, Any],
    outputs: Outputs,
    shown: dict[str, Result] | None = None,
) -> None:
    """Write each filter's files; print ``shown``, by default the results."""
    written = []
    for name, result in results.items():
        files = outputs[name]
        assert files["output"] is not None
        written += write_result(
            result, questions[name], files["output"], files["run"], options["run_depth"],
            options["tag"], files["qrels"],
        )  # fmt: skip
    if not options["quiet"]:
        tell(shown or results, next(iter(questions.values())), written)


def tell(results: dict[str, Result], questions: Questions, written: list[str]) -> None:
    """Print the table, of several filters side by side, and what was written."""
    from kgtrec.results.report import side_by_side

    single = next(iter(results.values())) if len(results) == 1 else None
    echo(str(single) if single else side_by_side(results))
    note(f"wrote {', '.join(written)}")
    encoded = questions.graph.entities.n_encoded
    if encoded and len(written) > len(results):
        note(f"{encoded:,} labels with blanks are percent-encoded in TREC files")


def _refuse(**paths: str | None) -> None:
    for name, path in paths.items():
        if path is not None:
            raise UsageError(
                f"--{name} is written when shards are merged: kgtrec merge ... --{name} {path}"
                + (" (and give --run-depth here, to keep so many)" if name == "run" else "")
            )


def write_result(
    result: Result,
    questions: Questions,
    output: str,
    run: str | None,
    run_depth: int,
    tag: str,
    qrels: str | None,
) -> list[str]:
    """Write ranks, run and qrels as far as asked for; the names of the files."""
    written = [output]
    result.ranks.save(output)
    if run:
        assert result.run is not None  # it comes from scores, not from saved ranks
        result.run.cut(run_depth).write(run, tag)
        written.append(run)
    if qrels:
        from kgtrec.trec.files.write import write_qrels

        write_qrels(questions, qrels)
        written.append(qrels)
    return written
