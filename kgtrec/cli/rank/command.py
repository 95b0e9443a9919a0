"""``kgtrec rank`` and ``kgtrec merge``: scores or shards to ranks, metrics and TREC files."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from kgtrec._internal.text import visible
from kgtrec.cli import _options as shared
from kgtrec.cli._mistakes import with_advice
from kgtrec.cli._ranks import FILES, output_files
from kgtrec.cli._report import Command, File, Report, check_outputs
from kgtrec.cli.rank.options import (
    answer_request,
    asks_answers,
    check_parts,
    check_source,
    has_embeddings,
    in_parts,
    model_file,
    of_answers,
    of_embeddings,
    of_predictions,
    of_questions,
    question_request,
    ranking_settings,
    tolerance,
)
from kgtrec.errors import UsageError, about

if TYPE_CHECKING:
    from kgtrec import Questions, Ranks, Result
    from kgtrec.questions.requests import AnswerRequest

Options = dict[str, Any]
Outputs = dict[str, dict[str, str | None]]
"""Files to write, by filter, then by option."""

FILTER_FIELD = "{filter}"
"""The part of a path that stands for the name of a filter."""
MEASURES = (
    "macro.ndcg_cut_10",
    "macro.map",
    "macro.recip_rank",
    "macro.P_10",
    "macro.recall_100",
    "macro.recall_1000",
    "macro.success_1",
    "micro.mr",
)
"""Default measures for qrels."""


class RankCommand(Command):
    """The command `rank`, which has options for all its files."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        with with_advice(ctx):
            arguments = self.make_parser(ctx).parse_args([*args])[1]
        if arguments:
            raise UsageError(
                f"rank has options for its files, but found {visible(' '.join(arguments))}; "
                "write --graph DIR for the folder of the graph, --scores FILE for the scores, and "
                "-o FILE for the ranks"
            )
        return super().parse_args(ctx, args)


@click.command(cls=RankCommand)
@shared.graph(
    "Folder with the splits train, valid and test. The format is detected from the file names, or "
    "given as FORMAT:DIR (see `kgtrec formats`)."
)
@shared.option(
    "--scores",
    "A .npy matrix (memory-mapped), a folder of .npy shards, an .npz with the arrays queries and "
    "entities (and bias, metric) of a factorised model, as Factors.save writes it, or the "
    "embeddings of a --model.",
    type=shared.SCORES,
    metavar="PATH",
)
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
def rank(**options: Any) -> Report:
    """Rank every answer of a split by a model's SCORES and print the standard results table.

    Scores have one row per question and one column per entity. Entities are numbered in byte order
    of their labels over all splits, in numeric order if all are whole numbers, or as a dictionary
    in the folder numbers them (entity2id.txt, entities.txt, ...). --columns declares another order.

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
    kgtrec rank --answers queries.jsonl --candidates entities.txt --scores m.npy -o r.parquet
    kgtrec rank --qrels qrels.txt --documents ids.txt --queries q.txt --scores v.npz -o r.parquet

    As a job array of shards of at most 2 GB each; then kgtrec merge. With embeddings, each shard
    computes its own questions:

    \b
    kgtrec rank --graph FB15k-237 --scores model.npz --shard 1/16 -o shards/ --plan
    kgtrec rank --graph FB15k-237 --scores model.npz --shard 3/16 -o shards/ --memory 2GB
    kgtrec rank --graph FB15k-237 --scores w.npz --model complex --shard 3/16 -o shards/
    kgtrec merge shards/ -o ranks.parquet
    """
    from kgtrec.cli.rank.shard import rank_shard

    of_graph = not asks_answers(options)
    if of_graph:
        check_source(options)
    outputs = _outputs(options) if of_graph else {"": {name: options[name] for name in FILES}}
    request: Any = question_request(options) if of_graph else answer_request(options)
    if options["predictions"] is None:
        if options["shard"] is not None and len(outputs) > 1:
            raise UsageError("--shard takes one filter; rank each --filter separately")
        check_parts(options | next(iter(outputs.values())))
    if options["shard"] is not None:
        depth = options["run_depth"] if shared.on_command_line("run_depth") else 0
        return rank_shard(request, options | next(iter(outputs.values())) | {"run_depth": depth})
    _check_outputs(options, outputs)
    if of_graph and options["scores"] is not None:
        request = replace(request, n_columns=lambda: _count_columns(options))
    if not of_graph:
        return _rank_answers(request, options, outputs)
    if len(outputs) > 1:
        questions = request.questions_by_filter()
    else:
        questions = {next(iter(outputs)): request.questions()}
    if options["predictions"] is not None:
        return _rank_lists(questions, options, outputs)
    return _rank_whole(questions, options, outputs)


def _outputs(options: Options) -> Outputs:
    """Return the files of each filter; UsageError for repeated filters or shared files."""
    from kgtrec.questions.requests import filter_name

    names = [filter_name(text) for text in options["filters"]]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"--filter {name} is given twice; give each filter once")
    for option, example in (("output", "ranks-{filter}.parquet"), ("run", "model-{filter}.run")):
        path = options[option]
        if len(names) > 1 and path is not None and FILTER_FIELD not in path:
            raise UsageError(
                f"{shared.option_of(option)} {path} is one file for the {len(names)} filters "
                f"{', '.join(names)}; write {FILTER_FIELD} where the name of the "
                f"filter belongs, as in {example}"
            )
    outputs: Outputs = {
        name: {
            option: options[option] and options[option].replace(FILTER_FIELD, name)
            for option in FILES
        }
        for name in names
    }
    for name in names[1:]:
        if options["qrels"] is not None and FILTER_FIELD not in options["qrels"]:
            outputs[name]["qrels"] = None
    return outputs


def _check_outputs(options: Options, outputs: Outputs) -> None:
    """Refuse outputs that cannot be written, or would overwrite an input or each other."""
    from kgtrec.trec.files.run import check_tag

    check_tag(options["tag"])
    if options["output"].endswith((".csv", ".tsv", ".json")):
        raise UsageError(
            f"-o {options['output']}: kgtrec writes ranks as Parquet; give a .parquet file, and "
            "make tables with `kgtrec report FILE --format csv`"
        )
    paths = {
        shared.option_of(option) + f" of filter {name}" * (len(outputs) > 1): path
        for name, files in outputs.items()
        for option, path in files.items()
    }
    check_outputs(paths)


def _rank_answers(request: AnswerRequest, options: Options, outputs: Outputs) -> Report:
    """Rank the answers of questions without a graph."""
    from kgtrec import Result
    from kgtrec import rank as rank_scores
    from kgtrec.scores.sources import load_scores

    scores = load_scores(options["scores"])
    questions = request.ask(*scores.shape)
    depth = options["run_depth"] if options["run"] else 0
    with about(options["scores"]):
        ranks, run = rank_scores(scores, questions, depth, **ranking_settings(options))
    result = Result(ranks, run=run if depth else None, questions=questions)
    return _results_report({"": result}, {"": questions}, options, outputs)


def _count_columns(options: Options) -> int:
    """Return the number of entities of the scores, or of the vectors of a model."""
    from kgtrec.integrations.embeddings import count_entities
    from kgtrec.scores.sources import load_scores

    if has_embeddings(options):
        return count_entities(options["scores"])
    return load_scores(options["scores"]).shape[1]


def _rank_whole(questions: dict[str, Questions], options: Options, outputs: Outputs) -> Report:
    """Rank the scores, or the vectors of a model, for all filters at once."""
    from kgtrec.results.result import evaluate_silently

    source = options["scores"]
    if has_embeddings(options):
        source = model_file(options).factors(next(iter(questions.values())), options["rows"])
    depth = options["run_depth"] if options["run"] else 20
    settings = ranking_settings(options)
    results = evaluate_silently(source, questions, run_depth=depth, **settings)
    return _results_report(results, questions, options, outputs)


def _rank_lists(questions: dict[str, Questions], options: Options, outputs: Outputs) -> Report:
    """Rank lists of predictions, for one filter after the other."""
    from kgtrec import Result
    from kgtrec.ranking.lists import rank_lists_with_run

    source, *how = (options[n] for n in ("predictions", "format", "unlinkable", "list_order"))
    ranked = {name: rank_lists_with_run(source, part, *how) for name, part in questions.items()}
    results = {name: Result(ranks, run=run) for name, (ranks, run) in ranked.items()}
    # Printed values come from whole lists; the run may hold only a part of these.
    shown = {name: Result(ranks) for name, (ranks, _) in ranked.items()}
    return _results_report(results, questions, options, outputs, shown)


def _results_report(
    results: dict[str, Result],
    questions: dict[str, Questions],
    options: Options,
    outputs: Outputs,
    shown: dict[str, Result] | None = None,
) -> Report:
    """Report the results with the requested files of each filter.

    The text is a table, with several filters side by side. Its values are those of ``shown``, or of
    the results.
    """
    from kgtrec.results.report import side_by_side

    files: list[File] = []
    for name, result in results.items():
        files += output_files(result, questions[name], outputs[name], options)
    shown = shown or results
    single = next(iter(shown.values())) if len(shown) == 1 else None
    if single and not single.ranks.of_graph:
        single = _answer_result(single.ranks)
    encoded, notes = next(iter(questions.values())).origin.labels[1].n_encoded, []
    if encoded and sum(path is not None for path, _ in files) > len(shown):
        notes = [f"{encoded:,} labels with blanks are percent-encoded in TREC files"]
    return Report(lambda: str(single) if single else side_by_side(shown), notes=notes, files=files)


def _answer_result(ranks: Ranks) -> Result:
    """Return the result to print without a graph; for qrels it has trec_eval's measures."""
    from kgtrec import Result

    qrels = ranks.provenance.qrels
    measures = None
    if qrels is not None:  # gains of documents below the level are unknown
        measures = [f"all.{key}" for key in MEASURES[int(qrels["level"] > 1) :]]
    return Result(ranks, measures=measures)


# -- Shards ----------------------------------------------------------------------------------------


@click.command(cls=Command)
@click.argument("folder", metavar="SHARDS")
@shared.ranking_files(
    depth="Candidates per question in the run. Default: all in the shards, which is --run-depth "
    "of `kgtrec rank --shard`, or 20.",
    default_depth=None,
)
def merge(folder: str, **options: Any) -> Report:
    """Merge all SHARDS in a folder, and print the standard results table.

    The files equal those of `kgtrec rank` without shards, byte for byte. This does not read the
    graph and the scores again. If a shard is missing, doubled, damaged, or has other inputs than
    the rest, this names it and writes nothing.

    \b
    kgtrec merge shards/ -o ranks.parquet
    kgtrec merge shards/ -o ranks.parquet --write-run sys.run --write-qrels test.qrels
    kgtrec merge s3://results/shards -o s3://results/ranks.parquet
    """
    from kgtrec import Result
    from kgtrec._internal.locations import local_copy
    from kgtrec.cluster.shards import merge_shards, read_depth, shard_files
    from kgtrec.trec.files.run import check_tag

    check_tag(options["tag"])
    files, run_depth = {name: options[name] for name in FILES}, options["run_depth"]
    with local_copy(folder, folders=True) as local:
        outputs = {shared.option_of(name): path for name, path in files.items()}
        check_outputs(
            outputs, [("an input", f"{folder}/{file.name}") for file in shard_files(local)]
        )
        depth = read_depth(local)
        if files["run"] and run_depth and run_depth > depth:
            raise UsageError(
                f"--run-depth {run_depth}: the shards keep {depth} candidates per question; choose "
                f"at most {depth}, or rank the shards again with --run-depth {run_depth}"
            )
        ranks, merged, questions = merge_shards(local)
    result = Result(ranks, run=merged, questions=questions, check=True)
    how = {**options, "run_depth": run_depth or depth}
    return _results_report({"": result}, {"": questions}, how, {"": files})
