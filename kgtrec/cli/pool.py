"""``kgtrec pool``: the best candidates of systems for the questions of seed triples."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from kgtrec.cli import _options as shared
from kgtrec.cli._report import Command, Report, warning
from kgtrec.errors import UsageError

if TYPE_CHECKING:
    from kgtrec.questions.api import Graph
    from kgtrec.study.pooling.lists import RankedLists
    from kgtrec.study.pooling.pool import Draw, Pool
    from kgtrec.study.pooling.seeds import SeedQuestions


@click.command(cls=Command, short_help="The best candidates of several runs, to be judged.")
@click.argument("systems", nargs=-1, required=True, metavar="SYSTEM...", type=shared.READ)
@shared.GRAPH
@shared.SEED_TRIPLES
@shared.output("The pool, as TSV.")
@click.option(
    "--depth", type=int, default=10, show_default=True,
    help="Candidates of each system per question. The file contains every smaller depth.",
)  # fmt: skip
@click.option(
    "--sample", type=float, metavar="SHARE",
    help="Mark a random share of the pool to be judged, for infAP; sheets ask only about it.",
)  # fmt: skip
@shared.seed(
    "Seed of the sample, 0 by default. With the same seed, a larger share or pool keeps all draws.",
    default=None,
)
@shared.split("Split of the seeds and runs.")
@shared.QUESTION_NAMES
@click.option(
    "--places", type=shared.Choice(["filtered", "raw"]), default="filtered", show_default=True,
    help="Whether places count known candidates, which are never pooled (raw: for scores, or runs "
    "made with `kgtrec rank --filter raw`; the pool that Zhou et al. published fits this).",
)  # fmt: skip
@shared.HOW_SCORED
@click.option(
    "--relation-types", "types", type=shared.READ, metavar="FILE",
    help="Apply the type rules: lines relation<TAB>type of its heads<TAB>type of its tails.",
)  # fmt: skip
@click.option(
    "--by-category", is_flag=True,
    help="Apply the rules of relation categories (train split): the head of a 1-1 or 1-N relation "
    "was asked, or the tail of a 1-1 or N-1 relation.",
)  # fmt: skip
@shared.form("table", "json")
def command(
    systems: tuple[str, ...], graph: str, seed_triples: str, output: str, depth: int,
    **options: Any,
) -> Report:  # fmt: skip
    """Pool the best candidates of SYSTEMs for the questions of seed triples, for judging.

    A SYSTEM is a TREC run, or scores as for `kgtrec rank`: a .npy matrix, a folder of .npy shards,
    or an .npz with a factorised model. Only the seeds' questions are ranked, as deep as the pool.
    Scores have one row per question of the split, or one per question of the seeds.

    The pool omits known triples of all splits, and the seeds. Each line of the pool has a triple,
    the side that was asked, the names of the seed questions that it answers (a label serves both),
    the smallest depth at which it is in the pool, its systems with their places, and the rule, if
    one fired, that labels it false without a judge.

    If there are too many triples to judge, --sample marks a random part of the pool. Sheets ask
    only about this part, and `kgtrec complete --write-sample-qrels` writes qrels from which infAP
    estimates the AP with all judgements. The draw depends on the seed and on the triple: a larger
    sample with the same seed keeps all earlier judgements.

    \b
    kgtrec rank --graph FB15k-237 --scores a.npy -o a.parquet --write-run a.run
    kgtrec pool --graph FB15k-237 --seed-triples seed.tsv a.run b.run -o pool.tsv
    kgtrec pool --graph FB15k-237 --seed-triples seed.tsv *.run --depth 20 --by-category \\
        --relation-types relation_types.tsv -o pool.tsv
    kgtrec pool --graph FB15k-237 --seed-triples seed.tsv transe.npz shards/ a.run -o pool.tsv
    kgtrec pool --graph FB15k-237 --seed-triples seed.tsv *.run --sample 0.3 --seed 1 -o sampled.tsv

    \b
    Next:
    kgtrec judge sheets pool.tsv ...
    kgtrec complete --graph FB15k-237 --seed-triples seed.tsv --pool pool.tsv \\
        --judgements judged.tsv --write-qrels qrels.txt
    """
    from kgtrec.questions.api import read_graph
    from kgtrec.study.pooling.lists import is_scores, system_names
    from kgtrec.study.pooling.pool import make_pool, write_pool

    paths = dict(zip(system_names(systems), systems, strict=True))
    draw = _draw(options["sample"], options["seed"])
    scoring = {"rows": options["rows"], "nan": options["nan"]}
    of_scores = scoring != {"rows": "questions", "nan": "error"} or options["lower_is_better"]
    if of_scores and not any(map(is_scores, systems)):
        raise UsageError("--rows, --lower-is-better and --nan are for scores; these are all runs")
    loaded = read_graph(graph)
    seeds = read_seeds(loaded, seed_triples, options["split"], options["questions"])
    lists = _lists(
        paths, seeds, depth, places=options["places"], threads=options["threads"],
        higher_is_better=not options["lower_is_better"], **scoring,
    )  # fmt: skip
    pool = replace(make_pool(lists, seeds, depth), draw=draw)
    rules = _rules(pool, options["types"], options["by_category"])
    write_pool(output, pool, rules)
    marked = "" if draw is None else f", {int(pool.drawn.sum()):,} of them in the sample"
    written = f"{len(pool):,} pooled triples{marked}, written to {output}"
    return _report(pool, lists, seeds, rules, written)


def _draw(share: float | None, seed: int | None) -> Draw | None:
    """How the sample is drawn, if there is one."""
    from kgtrec.study.pooling.pool import Draw

    if seed is not None and share is None:
        raise UsageError("--seed needs --sample; give --sample, or omit --seed")
    return None if share is None else Draw(share, seed or 0)


def _lists(
    paths: dict[str, str], seeds: SeedQuestions, depth: int, *, places: str, threads: int | None,
    **scoring: Any,
) -> list[RankedLists]:  # fmt: skip
    """Every system's candidates for the seeds' questions, from its run or its scores."""
    from kgtrec.study.pooling.lists import is_scores, run_lists, score_lists

    return [
        score_lists(path, seeds, name, depth, places=places, threads=threads, **scoring)
        if is_scores(path) else run_lists(path, seeds, name, places=places, threads=threads)
        for name, path in paths.items()
    ]  # fmt: skip


def read_seeds(graph: Graph, path: str, split: str, questions: str | None) -> SeedQuestions:
    """Seed questions from files."""
    from kgtrec.study.pooling.seeds import read_question_ids, seed_questions
    from kgtrec.study.pooling.triple_files import read_triples

    names = None if questions is None else read_question_ids(questions, graph)
    return seed_questions(graph, read_triples(path, graph), split, names=names)


def _rules(pool: Pool, types: str | None, by_category: bool) -> list[str] | None:
    from kgtrec.graph.statistics.relations import relation_categories
    from kgtrec.study.pooling.completion import read_relation_types, trivial_rules

    if types is None and not by_category:
        return None
    return trivial_rules(
        pool,
        categories=relation_categories(pool.graph) if by_category else None,
        types=None if types is None else read_relation_types(types, pool.graph),
    )


def _report(
    pool: Pool, lists: list[RankedLists], seeds: SeedQuestions, rules: list[str] | None,
    written: str,
) -> Report:  # fmt: skip
    from kgtrec.study.pooling.completion import rule_table
    from kgtrec.study.pooling.lists import doubts

    tables = {
        "depths": pool.depth_table(rules),
        "systems": pool.system_table(lists),
        "overlap": pool.overlap_table(),
    }
    if rules is not None:
        tables["rules"] = rule_table(pool, rules)
    doubtful = map(warning, doubts(lists, seeds, pool.depth))
    return Report.of_tables(tables, notes=[*doubtful, written])
