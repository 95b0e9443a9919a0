"""``kgtrec complete``: judgements of a pool to qrels and a complete test split."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from kgtrec.cli import _options as shared
from kgtrec.cli._report import Command, Report, warning
from kgtrec.cli.pool import read_seeds
from kgtrec.errors import UsageError

if TYPE_CHECKING:
    from kgtrec._internal.table import Table
    from kgtrec.study.pooling.completion import Completion
    from kgtrec.study.pooling.lists import RankedLists
    from kgtrec.study.pooling.pool import Pool
    from kgtrec.study.pooling.triple_files import Judgements
    from kgtrec.study.pooling.unjudged import JudgedInterval


CUTOFFS = (10, 20)


@click.command(cls=Command, short_help="Judgements of a pool to qrels and a complete test split.")
@click.argument("runs", nargs=-1, metavar="[RUN...]", type=shared.READ)
@shared.GRAPH
@shared.SEED_TRIPLES
@click.option(
    "--pool", "pooled", required=True, type=shared.READ, metavar="FILE", help="From `kgtrec pool`."
)
@click.option(
    "--judgements", required=True, multiple=True, type=shared.READ, metavar="FILE",
    help="Lines head<TAB>relation<TAB>tail<TAB>label, the label Y, N or ?; or any columns under a "
    "header that names these four. Repeatable.",
)  # fmt: skip
@click.option(
    "--blank", type=shared.Choice(["error", "N", "?"]), default="error", show_default=True,
    help="What a blank label means.",
)  # fmt: skip
@click.option(
    "--rules/--no-rules", default=True, show_default=True,
    help="Whether triples without a judge are false if a rule of the pool says so.",
)  # fmt: skip
@click.option("--depth", type=int, help="Use the pool to this depth; all of it by default.")
@click.option(
    "--write-qrels",
    "qrels",
    type=shared.WRITE,
    metavar="FILE",
    help="Write question 0 entity label, the label 1, 0 or -1.",
)
@click.option(
    "--write-sample-qrels", "sample_qrels", type=shared.WRITE, metavar="FILE",
    help="Of a pool with a sample (kgtrec pool --sample): write qrels in which only the sample has "
    "labels, and all else is -1, for infAP.",
)  # fmt: skip
@click.option(
    "--write-split", "split_file", type=shared.WRITE, metavar="FILE",
    help="Write the complete test split: seeds and pooled triples that are true.",
)  # fmt: skip
@click.option(
    "--write-runs", "run_dir", type=shared.LATER, metavar="DIR",
    help="Write each RUN as the qrels need it: seed questions only, without known entities.",
)  # fmt: skip
@click.option(
    "--reverse", is_flag=True,
    help="Write qrels also for questions of pooled true triples that are not questions of seeds. "
    "Nothing was pooled for these.",
)  # fmt: skip
@click.option(
    "-m", "--measure", "measures", multiple=True, metavar="NAME",
    help="Measure of the RUNs, by trec_eval's name, instead of the usual ones; repeatable.",
)  # fmt: skip
@click.option(
    "--top", "cutoffs", multiple=True, type=click.IntRange(1), metavar="K",
    help="Print how many of the first K of each RUN are seeds, added (newly annotated true ones), "
    "false and unjudged; repeatable.  [default: 10 and 20]",
)  # fmt: skip
@click.option(
    "--within", type=int, metavar="K",
    help="Candidates without a label are open if they are in the pool, or in the first K of any "
    "RUN.  [default: 20]",
)  # fmt: skip
@shared.split("Split of the seeds and runs.")
@shared.QUESTION_NAMES
@shared.form("table", "json")
def command(
    runs: tuple[str, ...], graph: str, seed_triples: str, pooled: str, judgements: tuple[str, ...],
    **options: Any,
) -> Report:  # fmt: skip
    """Complete the labels of a pool: seeds are true, and judges (or rules) label pooled triples.

    Prints the labels at every pooling depth. For RUNs it also prints how much of their first 10 and
    20 candidates (--top) is judged, and how much is added (newly annotated and true). Each measure
    has four values: candidates without a label are false; condensed lists omit them; and the lowest
    and highest value after judging the open candidates, each of which may be true or false. Open
    candidates have no label, and are in the pool or in the first --within of any RUN. Both ends are
    exact for every question: more true answers also change recall, ideal gains and bpref.

    Qrels contain 1 for true, 0 for false, and -1 for pooled but undecided. With a sample (kgtrec
    pool --sample), infAP estimates the AP of a fully judged pool from --write-sample-qrels. Other
    measures need --write-qrels, with all labels. Questions without a true triple in the sample are
    omitted: infAP is for questions with many answers.

    \b
    kgtrec complete --graph FB15k-237 --seed-triples seed.tsv --pool pool.tsv \\
        --judgements judged.tsv --write-qrels qrels.txt --write-split complete.tsv
    kgtrec complete --graph FB15k-237 --seed-triples seed.tsv --pool pool.tsv \\
        --judgements judged.tsv --depth 5 --write-qrels qrels.txt --write-runs filtered a.run b.run
    kgtrec eval -c -m bpref -m ndcg_cut.20 qrels.txt filtered/a.run

    \b
    kgtrec complete --graph FB15k-237 --seed-triples seed.tsv --pool sampled.tsv \\
        --judgements judged.tsv --write-sample-qrels sample.qrels --write-runs filtered a.run
    kgtrec eval -m infAP sample.qrels filtered/a.run
    """
    from kgtrec.questions.api import read_graph
    from kgtrec.study.pooling.completion import complete, remarks
    from kgtrec.study.pooling.lists import doubts, run_lists, system_names
    from kgtrec.study.pooling.pool import read_pool
    from kgtrec.study.pooling.triple_files import read_judgements
    from kgtrec.study.pooling.unjudged import MEASURES, WITHIN, mean_columns

    within, run_dir, cutoffs = options["within"], options["run_dir"], options["cutoffs"]
    if not runs:
        others = options["measures"] or cutoffs or within is not None
        _refuse_options_of_runs(run_dir, bool(others))
    columns = [column.name for column in mean_columns(options["measures"] or MEASURES)]
    names = system_names(runs)
    inputs = (*runs, seed_triples, pooled, *judgements, options["questions"])
    single = {"--write-qrels": options["qrels"], "--write-sample-qrels": options["sample_qrels"],
              "--write-split": options["split_file"]}  # fmt: skip
    targets = _targets(graph, inputs, names, single, run_dir)
    loaded = read_graph(graph)
    seeds = read_seeds(loaded, seed_triples, options["split"], options["questions"])
    pool, fired = read_pool(pooled, loaded)
    judged = read_judgements(judgements, loaded, options["blank"])
    used = fired if options["rules"] else None
    done = complete(seeds, pool, judged, used, options["depth"])
    if options["sample_qrels"] and done.drawn is None:
        raise UsageError(
            "--write-sample-qrels needs a pool with a sample: kgtrec pool --sample SHARE"
        )
    lists = [run_lists(run, seeds, name) for run, name in zip(runs, names, strict=True)]
    bounds, notes = _open_intervals(lists, done, columns, WITHIN if within is None else within)
    tables = _tables(pool, judged, used, done, lists, cutoffs or CUTOFFS, bounds)
    written = _written(done, lists, targets, options["reverse"])
    doubtful = map(warning, doubts(lists, seeds, 20))
    return Report.of_tables(tables, notes=[*doubtful, *written, *notes, *remarks(done, judged)])


def _refuse_options_of_runs(run_dir: str | None, others: bool) -> None:
    if run_dir:
        raise UsageError("--write-runs writes the RUNs, but there are none; name some")
    if others:
        raise UsageError(
            "--measure, --top and --within are about RUNs, but there are none; name some"
        )


def _open_intervals(
    lists: list[RankedLists], done: Completion, columns: list[str], within: int
) -> tuple[dict[str, dict[str, JudgedInterval]], list[str]]:
    """Every system's measures while candidates are open, and remarks on them."""
    from kgtrec.study.pooling.unjudged import intervals, open_candidates, open_remarks, verdicts

    candidates = open_candidates(lists, done, within)
    bounds = {one.name: intervals(one, done, columns, candidates=candidates) for one in lists}
    return bounds, [*open_remarks(bounds, candidates, within), *verdicts(bounds)]


def _targets(
    graph: str,
    inputs: tuple[str | None, ...],
    names: list[str],
    single: dict[str, str | None],
    run_dir: str | None,
) -> dict[str, str]:
    """Files to write, by option or system, after checking them."""
    import os

    from kgtrec._internal.files import make_folder
    from kgtrec.cli._report import check_outputs

    targets = dict(single)
    if run_dir is not None:
        make_folder(run_dir)
        targets |= {name: os.path.join(run_dir, f"{os.path.basename(name)}.run") for name in names}
    read = [("an input", path) for path in inputs if path is not None]
    check_outputs(targets, [("the graph", graph), *read])
    return {name: path for name, path in targets.items() if path is not None}


def _tables(
    pool: Pool,
    judged: Judgements,
    rules: list[str] | None,
    done: Completion,
    lists: list[RankedLists],
    cutoffs: tuple[int, ...],
    bounds: dict[str, dict[str, JudgedInterval]],
) -> dict[str, Table]:
    from kgtrec.study.pooling.completion import complete, depth_table, rule_table
    from kgtrec.study.pooling.unjudged import interval_table, share_table

    depths = range(done.depth + 1)
    tables = {"depths": depth_table([complete(done.seeds, pool, judged, rules, d) for d in depths])}
    if rules is not None and any(rules):
        tables["rules"] = rule_table(pool, rules, judged)
    if lists:
        tables["shares"] = share_table(lists, done, tuple(dict.fromkeys(cutoffs)))
        tables["intervals"] = interval_table(bounds)
    return tables


def _written(
    done: Completion, lists: list[RankedLists], targets: dict[str, str], reverse: bool
) -> list[str]:
    """Write the files; return notes."""
    from kgtrec.study.pooling.triple_files import write_triples

    notes = []
    if "--write-qrels" in targets:
        qrels = done.qrels(reverse)
        qrels.write(targets["--write-qrels"])
        if qrels.nameless:
            notes = [f"{qrels.nameless:,} reverse questions have no name in the runs; left out"]
    if "--write-sample-qrels" in targets:
        done.sample.qrels(reverse).of_answered().write(targets["--write-sample-qrels"])
    if "--write-split" in targets:
        write_triples(targets["--write-split"], done.seeds.graph, done.split)
    for one in lists:
        if one.name in targets:
            one.to_run(done.seeds).write(targets[one.name], "_".join(one.name.split()))
    return notes + ([f"wrote {', '.join(targets.values())}"] if targets else [])
