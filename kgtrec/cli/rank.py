"""``kgtrec rank``: scores to ranks, metrics and TREC files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from kgtrec.errors import UsageError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from kgtrec.graph import Graph
    from kgtrec.questions import Questions
    from kgtrec.result import Result

    Int64 = npt.NDArray[np.int64]


@click.command(short_help="Scores of a model to ranks, metrics and TREC files.")
@click.option("--graph", required=True, metavar="DIR", help="Folder with train, valid, test TSV.")
@click.option(
    "--scores", required=True, metavar="PATH",
    help="A .npy matrix (memory-mapped), a folder of .npy shards, or an .npz with the arrays "
    "queries and entities (and bias, metric) of a factorised model.",
)  # fmt: skip
@click.option(
    "-o", "--output", required=True, metavar="FILE",
    help="Ranks, as Parquet; with --shard the folder of the shards.",
)  # fmt: skip
@click.option("--run", metavar="FILE", help="Also write the best candidates as a TREC run.")
@click.option("--qrels", metavar="FILE", help="Also write the answers as TREC qrels.")
@click.option(
    "--run-depth", type=click.IntRange(1), default=1000, show_default=True,
    help="Candidates per question in the run.",
)  # fmt: skip
@click.option("--tag", default="kgtrec", show_default=True, help="Name of the run in its file.")
@click.option("--split", default="test", show_default=True, help="Split to evaluate.")
@click.option(
    "--sides", type=click.Choice(["head", "tail", "both"]), default="both", show_default=True,
    help="Which entity of a triple is asked.",
)  # fmt: skip
@click.option(
    "--filter", "filtered", metavar="NAME", default="all", show_default=True,
    help="Splits whose answers are known: all; test (train, valid, test); valid (train, valid: "
    "when a model is chosen); raw or none (unfiltered); or splits by name, as train,test.",
)  # fmt: skip
@click.option(
    "--known", multiple=True, metavar="FILE",
    help="More known triples to filter, with lines as in a split; repeatable.",
)  # fmt: skip
@click.option(
    "--entities", metavar="FILE",
    help="Labels, one a line: only triples of these entities are evaluated, and only they are "
    "candidates.",
)  # fmt: skip
@click.option(
    "--relations", metavar="FILE",
    help="Labels, one a line: only triples of these relations are evaluated. Scores have the "
    "rows of all questions, or of those that are left.",
)  # fmt: skip
@click.option(
    "--type-constraints", metavar="FILE",
    help="Candidates by relation and side: OpenKE's type_constrain.txt, beside its entity2id.txt "
    "and relation2id.txt.",
)  # fmt: skip
@click.option(
    "--candidates", metavar="FILE",
    help="Candidates by question, lines question<TAB>entity<TAB>entity...; or an .npz with "
    "head_neg and tail_neg, shape (triples, negatives), as OGB has them, entities by number: a "
    "question for each triple and side then. Results are sampled ones.",
)  # fmt: skip
@click.option(
    "--columns", type=click.Choice(["entities", "candidates"]), default="entities",
    show_default=True,
    help="What the columns of scores are: all entities, or a question's --candidates in their "
    "order (of an .npz: the answer, then its negatives).",
)  # fmt: skip
@click.option(
    "--outside", type=click.Choice(["error", "worst"]), default="error", show_default=True,
    help="An answer that is not among its candidates is an error, or ranks worst.",
)  # fmt: skip
@click.option(
    "--unknown", type=click.Choice(["error", "skip"]), default="error", show_default=True,
    help="A label in these files that the graph lacks is an error, or passed over and counted.",
)  # fmt: skip
@click.option(
    "--rows", type=click.Choice(["questions", "instances"]), default="questions", show_default=True,
    help="What a row of scores stands for: a question (as `kgtrec convert --questions` lists "
    "them), or a triple with its head asked, all in file order, then with its tail asked.",
)  # fmt: skip
@click.option("--lower-is-better", is_flag=True, help="The scores are distances.")
@click.option(
    "--nan", type=click.Choice(["error", "worst"]), default="error", show_default=True,
    help="A NaN score is an error, or below every other.",
)  # fmt: skip
@click.option("--threads", type=click.IntRange(1), help="Threads; every core by default.")
@click.option(
    "--shard", metavar="I/N",
    help="Rank part I of N alone, as a job of its own, into the folder -o, for `kgtrec merge`. "
    "0/N ranks nothing: it reads the graph and prints the plan.",
)  # fmt: skip
@click.option(
    "--by", type=click.Choice(["auto", "questions", "entities"]),
    help="What shards share out; by default questions, or entities if those are few.",
)  # fmt: skip
@click.option("--memory", metavar="SIZE", help="Most that a shard may take; 2GB by default.")
@click.option("-q", "--quiet", is_flag=True, help="Neither progress nor table.")
def command(
    graph: str,
    scores: str,
    output: str,
    run: str | None,
    qrels: str | None,
    run_depth: int,
    tag: str,
    split: str,
    sides: str,
    filtered: str,
    known: tuple[str, ...],
    entities: str | None,
    relations: str | None,
    type_constraints: str | None,
    candidates: str | None,
    columns: str,
    outside: str,
    unknown: str,
    rows: str,
    lower_is_better: bool,
    nan: str,
    threads: int | None,
    shard: str | None,
    by: str | None,
    memory: str | None,
    quiet: bool,
) -> None:
    """Rank every answer of a split by a model's SCORES and print the table that papers print.

    A row of scores is a question, a column an entity; entities are numbered in byte order of their
    labels over all splits.

    \b
    kgtrec rank --graph FB15k-237 --scores scores.npy -o ranks.parquet
    kgtrec rank --graph FB15k-237 --scores model.npz -o ranks.parquet --run sys.run
    kgtrec rank --graph FB15k-237 --scores v.npy -o v.parquet --split valid --filter valid
    kgtrec rank --graph FB15k-237 --scores m.npz -o t.parquet --type-constraints type_constrain.txt

    As a job array, in which every job is a shard of at most 2 GB; then kgtrec merge:

    \b
    kgtrec rank --graph FB15k-237 --scores model.npz --shard 0/16 -o shards/
    kgtrec rank --graph FB15k-237 --scores model.npz --shard 3/16 -o shards/ --memory 2GB
    kgtrec merge shards/ -o ranks.parquet
    """
    from kgtrec.cli.outputs import check_outputs, keep_inputs
    from kgtrec.evaluation import evaluate
    from kgtrec.graph import read_graph
    from kgtrec.trec.run import check_tag

    show = False if quiet else None
    lists = {"known": known, "entities": entities, "relations": relations,
             "type_constraints": type_constraints, "candidates": candidates}  # fmt: skip

    def ask() -> Questions:
        loaded = read_graph(graph, progress=show)
        ids = [
            None if path is None else read_ids(path, loaded, kind, unknown)
            for kind, path in (("entities", entities), ("relations", relations))
        ]
        asked = loaded.questions(
            split, sides, filter=_filter(filtered), known=known, unknown=unknown,
            entities=ids[0], relations=ids[1],
        )  # fmt: skip
        return _restricted(asked, type_constraints, candidates, columns, outside, unknown)

    if shard is not None:
        from kgtrec.cli.shard import rank_one

        options = {"split": split, "sides": sides, "filter": filtered, "unknown": unknown,
                   "columns": columns, "outside": outside}  # fmt: skip
        depth = run_depth if _given("run_depth") else 0
        settings = {"run_depth": depth, "higher_is_better": not lower_is_better, "nan": nan,
                    "threads": threads}  # fmt: skip
        _refuse(run=run, qrels=qrels)
        rank_one(
            shard, graph, scores, output, ask, options, lists, rows, settings,
            by or "auto", memory or "2GB", show,
        )  # fmt: skip
        return
    if by or memory:
        raise UsageError("--by and --memory are of use with --shard only; leave them out")
    check_tag(tag)
    outputs = {"--output": output, "--run": run, "--qrels": qrels}
    check_outputs(outputs, graph, scores)
    keep_inputs((*known, entities, relations, type_constraints, candidates), outputs)
    questions = ask()
    result = evaluate(
        scores,
        questions,
        run_depth=run_depth if run else 20,
        threads=threads,
        rows=rows,
        higher_is_better=not lower_is_better,
        nan=nan,
        progress=show,
    )
    written = write_result(result, questions, output, run, run_depth, tag, qrels)
    if not quiet:
        tell(result, questions, written)


def tell(result: Result, questions: Questions, written: list[str]) -> None:
    """Print the table, and what was written."""
    click.echo(str(result).encode("utf-8", "surrogateescape"))
    click.echo(f"kgtrec: wrote {', '.join(written)}", err=True)
    encoded = questions.graph.entities.n_encoded
    if encoded and len(written) > 1:
        click.echo(
            f"kgtrec: {encoded:,} labels with blanks are percent-encoded in TREC files", err=True
        )


def _given(name: str) -> bool:
    """Whether the user has given an option."""
    source = click.get_current_context().get_parameter_source(name)
    return source is click.core.ParameterSource.COMMANDLINE


def _refuse(**given: str | None) -> None:
    for name, path in given.items():
        if path is not None:
            raise UsageError(
                f"--{name} is written when shards are merged: kgtrec merge ... --{name} {path}"
                + (" (and give --run-depth here, to keep so many)" if name == "run" else "")
            )


def read_ids(path: str, graph: Graph, kind: str, unknown: str) -> Int64:
    """Ids of the labels in a file; those passed over are counted on stderr."""
    from kgtrec.listfiles import read_labels

    ids, missed = read_labels(path, getattr(graph, kind), unknown)
    if missed:
        click.echo(f"kgtrec: {path}: {missed:,} {kind} that the graph lacks", err=True)
    return ids


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
    from kgtrec.trec.writing import write_qrels

    written = [output]
    result.ranks.save(output)
    if run:
        assert result.run is not None  # it comes from scores, not from saved ranks
        result.run.cut(run_depth).write(run, tag)
        written.append(run)
    if qrels:
        write_qrels(questions, qrels)
        written.append(qrels)
    return written


def _restricted(
    questions: Questions,
    type_constraints: str | None,
    candidates: str | None,
    columns: str,
    outside: str,
    unknown: str,
) -> Questions:
    if type_constraints and candidates:
        raise UsageError("--type-constraints and --candidates each list candidates; give one")
    if columns == "candidates" and not candidates:
        raise UsageError("--columns candidates needs --candidates FILE")
    if not type_constraints and not candidates:
        return questions
    return questions.restrict(
        type_constraints=type_constraints,
        candidates=candidates,
        columns=columns,
        outside=outside,
        unknown=unknown,
    )


def _filter(text: str) -> str | tuple[str, ...]:
    """The name of a protocol as it is; several names are splits."""
    names = tuple(name.strip() for name in text.split(","))
    if not all(names):
        raise UsageError(
            f"--filter {text!r} names no split; write all, test, valid, raw, or for example "
            "train,valid"
        )
    return names[0] if len(names) == 1 else names
