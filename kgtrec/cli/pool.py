"""``kgtrec pool``: what systems put forward for the questions of seed triples."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from kgtrec.cli import _options as shared
from kgtrec.cli._output import echo_parts, note, warn
from kgtrec.errors import UsageError

if TYPE_CHECKING:
    from kgtrec.questions.api import Graph
    from kgtrec.study.pooling.judged_sample import Draw
    from kgtrec.study.pooling.pool import Pool
    from kgtrec.study.pooling.ranked_lists import RankedLists
    from kgtrec.study.pooling.seed_questions import SeedQuestions


@click.command(short_help="The best candidates of several runs, to be judged.")
@click.argument("systems", nargs=-1, required=True, metavar="SYSTEM...")
@shared.GRAPH
@shared.SEED_TRIPLES
@shared.output("The pool, as TSV.")
@click.option(
    "--depth", type=int, default=10, show_default=True,
    help="Candidates that each system puts in per question. The file holds every smaller depth.",
)  # fmt: skip
@click.option(
    "--sample", type=float, metavar="SHARE",
    help="Mark a random share of the pool to be judged, for infAP; sheets ask about no other.",
)  # fmt: skip
@shared.seed(
    "Of the sample, 0 by default. With one seed, a larger share or pool keeps what was drawn.",
    default=None,
)
@shared.split("Split of the seeds and runs.")
@shared.QUESTION_NAMES
@click.option(
    "--places", type=click.Choice(["filtered", "raw"]), default="filtered", show_default=True,
    help="Whether candidates that are known push those below them down (raw: for scores, or runs "
    "made with `kgtrec rank --filter raw`; the pool that Zhou et al. published fits this). Known "
    "ones are never pooled.",
)  # fmt: skip
@shared.HOW_SCORED
@click.option(
    "--types", metavar="FILE",
    help="Try the type rules: lines relation<TAB>type of its heads<TAB>type of its tails.",
)  # fmt: skip
@click.option(
    "--by-category", is_flag=True,
    help="Try the rules of relation categories (train split): a head asked of a 1-1 or 1-N "
    "relation, a tail asked of a 1-1 or N-1 relation.",
)  # fmt: skip
@shared.form("table", "json")
def command(
    systems: tuple[str, ...],
    graph: str,
    seed_triples: str,
    output: str,
    depth: int,
    sample: float | None,
    seed: int | None,
    split: str,
    questions: str | None,
    places: str,
    rows: str,
    lower_is_better: bool,
    nan: str,
    types: str | None,
    by_category: bool,
    form: str,
    threads: int | None,
) -> None:
    """Pool the best candidates of SYSTEMs for the questions of seed triples, to have them judged.

    A SYSTEM is a TREC run, or scores as `kgtrec rank` takes them: a .npy matrix, a folder of .npy
    shards, or an .npz with a factorised model. Of scores, the seeds' questions alone are ranked, as
    deep as the pool; rows are those of all questions of the split, or of the seeds' questions.

    What any split of the graph knows is left out, and so are the seeds. Each line of the pool has a
    triple, the side that was asked, the names of the seed questions that it answers (a label serves
    both), the smallest depth at which it is in the pool, the systems that put it in with their
    places, and the rule, if one was tried and fired, that labels it false without a judge.

    Where there are too many triples to judge, --sample marks a random part of the pool: sheets ask
    about it alone, and `kgtrec complete --sample-qrels` gives the qrels from which infAP estimates
    what AP would be if everything were judged. What is drawn depends on the seed and on the triple:
    draw more later with the same seed, and nothing that was judged is lost.

    \b
    kgtrec rank --graph FB15k-237 --scores a.npy -o a.parquet --run a.run
    kgtrec pool --graph FB15k-237 --seed-triples seed.tsv a.run b.run -o pool.tsv
    kgtrec pool --graph FB15k-237 --seed-triples seed.tsv *.run --depth 20 --by-category \\
        --types relation_types.tsv -o pool.tsv
    kgtrec pool --graph FB15k-237 --seed-triples seed.tsv transe.npz shards/ a.run -o pool.tsv
    kgtrec pool --graph FB15k-237 --seed-triples seed.tsv *.run --sample 0.3 --seed 1 -o sampled.tsv

    \b
    What comes next:
    kgtrec judge sheets pool.tsv ...
    kgtrec complete --graph FB15k-237 --seed-triples seed.tsv --pool pool.tsv \\
        --judgements judged.tsv --qrels qrels.txt
    """
    from kgtrec.cli._output_files import check_outputs, keep_inputs
    from kgtrec.questions.api import read_graph
    from kgtrec.study.pooling.pool import make_pool
    from kgtrec.study.pooling.pool_file import write_pool
    from kgtrec.study.pooling.ranked_lists import is_scores, system_names

    paths = dict(zip(system_names(systems), systems, strict=True))
    draw = _draw(sample, seed)
    of_scores = rows != "questions" or lower_is_better or nan != "error"
    if of_scores and not any(map(is_scores, systems)):
        raise UsageError("--rows, --lower-is-better and --nan are about scores; these are all runs")
    outputs = {"--output": output}
    check_outputs(outputs, graph)
    keep_inputs((*systems, seed_triples, questions, types), outputs)
    loaded = read_graph(graph)
    seeds = read_seeds(loaded, seed_triples, split, questions)
    lists = _lists(
        paths, seeds, depth, places=places, threads=threads,
        rows=rows, nan=nan, higher_is_better=not lower_is_better,
    )  # fmt: skip
    pool = replace(make_pool(lists, seeds, depth), draw=draw)
    rules = _rules(pool, types, by_category)
    write_pool(output, pool, rules)
    _say(pool, lists, seeds, rules, form)
    marked = "" if draw is None else f", {int(pool.drawn.sum()):,} of them in the sample"
    note(f"{len(pool):,} pooled triples{marked}, written to {output}")


def _draw(share: float | None, seed: int | None) -> Draw | None:
    """How the sample is drawn, if there is one."""
    from kgtrec.study.pooling.judged_sample import Draw

    if seed is not None and share is None:
        raise UsageError("--seed is that of a sample; give --sample, or leave it out")
    return None if share is None else Draw(share, seed or 0)


def _lists(
    paths: dict[str, str], seeds: SeedQuestions, depth: int, *, places: str, threads: int | None,
    **scoring: Any,
) -> list[RankedLists]:  # fmt: skip
    """Every system's candidates for the seeds' questions, from its run or its scores."""
    from kgtrec.study.pooling.ranked_lists import is_scores, run_lists
    from kgtrec.study.pooling.score_lists import score_lists

    return [
        score_lists(path, seeds, name, depth, places=places, threads=threads, **scoring)
        if is_scores(path) else run_lists(path, seeds, name, places=places, threads=threads)
        for name, path in paths.items()
    ]  # fmt: skip


def read_seeds(graph: Graph, path: str, split: str, questions: str | None) -> SeedQuestions:
    """Seed questions from files."""
    from kgtrec.study.pooling.seed_questions import read_question_ids, seed_questions
    from kgtrec.study.pooling.triple_files import read_triples

    names = None if questions is None else read_question_ids(questions, graph)
    return seed_questions(graph, read_triples(path, graph), split, names=names)


def _rules(pool: Pool, types: str | None, by_category: bool) -> list[str] | None:
    from kgtrec.graph.statistics.categories import relation_categories
    from kgtrec.study.pooling.automatic_labels import read_relation_types, trivial_rules

    if types is None and not by_category:
        return None
    return trivial_rules(
        pool,
        categories=relation_categories(pool.graph) if by_category else None,
        types=None if types is None else read_relation_types(types, pool.graph),
    )


def _say(
    pool: Pool, lists: list[RankedLists], seeds: SeedQuestions, rules: list[str] | None, form: str
) -> None:
    from kgtrec.study.pooling.automatic_labels import rule_table
    from kgtrec.study.pooling.ranked_lists import doubts

    parts = {
        "depths": pool.depth_table(rules),
        "systems": pool.system_table(lists),
        "overlap": pool.overlap_table(),
    }
    if rules is not None:
        parts["rules"] = rule_table(pool, rules)
    echo_parts(parts, form)
    for doubt in doubts(lists, seeds, pool.depth):
        warn(doubt)
