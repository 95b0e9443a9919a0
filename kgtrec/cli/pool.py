"""``kgtrec sample``, ``pool`` and ``complete``: draw seeds, pool candidates, complete labels."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from kgtrec._internal.arguments import MOST_PARTS
from kgtrec.cli import _options as shared
from kgtrec.cli._judged import check_judge_options, correct
from kgtrec.cli._report import Command, File, Report, check_outputs, warning
from kgtrec.cli.rank.options import OF_FORMULAS, has_embeddings, model_file, of_embeddings
from kgtrec.errors import UsageError

if TYPE_CHECKING:
    from kgtrec import Graph
    from kgtrec._internal.table import Table
    from kgtrec.study.pooling import completion
    from kgtrec.study.pooling.edited_files import Judgements
    from kgtrec.study.pooling.lists import RankedLists
    from kgtrec.study.pooling.pool import Pool
    from kgtrec.study.pooling.seeds import SeedQuestions

CUTOFFS = (10, 20)


@click.command(cls=Command)
@click.argument("graph", metavar="DIR", type=shared.GRAPH_FOLDER)
@shared.output("The seed triples, as TSV.")
@shared.option(
    "--share",
    "Share of the split, rounded down to triples.  [default: 0.05]",
    type=shared.Share(),
    metavar="S",
)
@shared.option("--size", "Instead of a share: how many triples.", type=shared.Count(), metavar="N")
@shared.seed("Seed of the random numbers.", 42)
@shared.split("Split to draw from.")
@shared.flag(
    "--stratified by_relation", "Every relation has its share; the largest remainders round up."
)
def sample(graph: str, output: str, share: float | None, **options: Any) -> Report:
    """Draw seed triples from a split of the graph in DIR, and print how far their relations are
    from those of the split: KL divergence, in nats, with one added to every count.

    With FB15k-237, the share 0.05 and the seed 42 this is FB-Test-S of Zhou et al. (2022).

    \b
    kgtrec sample FB15k-237 -o seed.tsv
    kgtrec sample FB15k-237 --share 0.1 --seed 7 --stratified -o seed.tsv

    \b
    Next:
    kgtrec pool --graph FB15k-237 --seed-triples seed.tsv a.run b.run -o pool.tsv
    """
    from kgtrec import read_graph
    from kgtrec.study import sample_seeds

    drawn = sample_seeds(read_graph(graph), share, **options)
    divergence = (
        f"KL({options['split']} || sample) of the relation distributions: {drawn.divergence:.4f}"
    )
    return Report(
        lambda: f"{drawn.table().to_text()}\n\n{divergence}",
        files=[(output, drawn.write)],
        content=f"{len(drawn):,} seed triples",
    )


@click.command(cls=Command)
@shared.files("systems", "SYSTEM...")
@shared.GRAPH
@shared.SEED_TRIPLES
@shared.output("The pool, as TSV.")
@shared.option(
    "--depth",
    "Candidates of each system per question. The file contains every smaller depth.",
    type=shared.Count(1, MOST_PARTS),
    default=10,
)
@shared.option(
    "--sample",
    "Mark a random share of the pool to be judged, for infAP; sheets ask only about it.",
    type=shared.Share(),
    metavar="SHARE",
)
@shared.option(
    "--sample-questions",
    "Draw N questions whose whole pool people judge, to correct a judge: see `kgtrec complete "
    "--judge`. All have the same probability.",
    type=shared.Count(),
    metavar="N",
)
@shared.option(
    "--by by_group",
    "With --sample-questions: every category of relations (train split) has the same expected "
    "number of questions, and N is the expected number of all.",
    metavar="category",
)
@shared.writes(
    "--write-sample drawn_file", "With --sample-questions: lines question<TAB>probability."
)
@shared.seed(
    "Seed of the sample, 0 by default. With the same seed, a larger share or pool keeps all draws.",
    default=None,
)
@shared.split("Split of the seeds and runs.")
@shared.QUESTION_NAMES
@shared.choice(
    "--places",
    ["filtered", "raw"],
    "Whether known candidates take places; they are "
    "never pooled. (raw: for scores, or runs made with `kgtrec rank --filter raw`; "
    "matches the pool that Zhou et al. published.)",
    default="filtered",
)
@shared.HOW_SCORED
@of_embeddings
@shared.reads(
    "--relation-types types",
    "Apply the type rules: lines relation<TAB>type of its heads<TAB>type of its tails.",
)
@shared.flag(
    "--by-category",
    "Apply the rules of relation categories (train split): the head of a "
    "1-1 or 1-N relation was asked, or the tail of a 1-1 or N-1 relation.",
)
@shared.form("table", "json")
def pool(
    systems: tuple[str, ...],
    graph: str,
    seed_triples: str,
    output: str,
    depth: int,
    **options: Any,
) -> Report:
    """Pool the best candidates of SYSTEMs for the questions of seed triples, for judging.

    A SYSTEM is a TREC run, or scores as for `kgtrec rank`: a .npy matrix, a folder of .npy shards,
    an .npz with a factorised model, or embeddings of a --model (--model A,B names the model of each
    in turn). Only the seeds' questions are ranked, as deep as the pool. Scores have one row per
    question of the split, or one per question of the seeds: heads, then tails, each by first
    appearance in the file of seeds.

    The pool omits known triples of all splits, and the seeds. Each line of the pool has a triple,
    the side that was asked, the names of the seed questions that it answers (a label serves both),
    the smallest depth at which it is in the pool, its systems with their places, and the rule, if
    one fired, that labels it false without a judge.

    If there are too many triples to judge, --sample marks a random part of the pool. Sheets ask
    only about this part, and `kgtrec complete --write-sample-qrels` writes qrels from which infAP
    estimates the AP with all judgements. The draw depends on the seed and on the triple: a larger
    sample with the same seed keeps all earlier judgements.

    If a judge that errs, such as a language model, labels the whole pool, --sample-questions draws
    questions for people. `kgtrec complete --judge` then corrects the judge.

    \b
    kgtrec rank --graph FB15k-237 --scores a.npy -o a.parquet --write-run a.run
    kgtrec pool --graph FB15k-237 --seed-triples seed.tsv a.run b.run -o pool.tsv
    kgtrec pool --graph FB15k-237 --seed-triples seed.tsv *.run --depth 20 --by-category \\
        --relation-types relation_types.tsv -o pool.tsv
    kgtrec pool --graph FB15k-237 --seed-triples seed.tsv transe.npz shards/ a.run -o pool.tsv
    kgtrec pool --graph FB15k-237 --seed-triples seed.tsv a.run rotate/ --model rotate -o pool.tsv
    kgtrec pool --graph FB15k-237 --seed-triples seed.tsv *.run --sample 0.3 --seed 1 -o sampled.tsv
    kgtrec pool --graph FB15k-237 --seed-triples seed.tsv *.run -o pool.tsv \\
        --sample-questions 100 --write-sample drawn.tsv

    \b
    Next:
    kgtrec judge sheets pool.tsv ...
    kgtrec complete --graph FB15k-237 --seed-triples seed.tsv --pool pool.tsv \\
        --judgements judged.tsv --write-qrels qrels.txt
    """
    from kgtrec import read_graph
    from kgtrec._internal.named import system_names
    from kgtrec.study.pooling import completion
    from kgtrec.study.pooling.lists import doubts
    from kgtrec.study.pooling.pool import Draw, make_pool, write_pool

    names = system_names(systems)
    models = _name_models(systems, options)
    _check_pool_options(systems, models, options)
    share = options["sample"]
    draw = None if share is None else Draw(share, options["seed"] or 0)
    loaded = read_graph(graph)
    seeds = _read_seeds(loaded, seed_triples, options["split"], options["questions"])
    draws = _draw_questions(seeds, options)
    files = dict(zip(names, systems, strict=True))
    lists = _read_lists(files, models, seeds, depth, options)
    pooled = replace(make_pool(lists, seeds, depth), draw=draw)
    rules = _find_rules(pooled, options["types"], options["by_category"])
    marked = "" if draw is None else f", {int(pooled.drawn.sum()):,} of them in the sample"
    tables = {
        "depths": pooled.depth_table(rules),
        "systems": pooled.system_table(lists),
        "overlap": pooled.overlap_table(),
    }
    if rules is not None:
        tables["rules"] = completion.rule_table(pooled, rules)
    return Report.from_tables(
        tables,
        files=[(output, lambda path: write_pool(path, pooled, rules)), *draws],
        content=f"{len(pooled):,} pooled triples{marked}",
        notes=[*map(warning, doubts(lists, seeds, pooled.depth))],
    )


def _name_models(systems: tuple[str, ...], options: dict[str, Any]) -> dict[str, str | None]:
    """Return the model of each system that has embeddings, by path; None if its file names it.

    Refuse options about embeddings without effect.
    """
    from kgtrec.integrations.embeddings import is_vector_file

    files = [path for path in systems if is_vector_file(path)]
    typed = options["model"]
    models = [None] if typed is None else typed.split(",")
    shared.refuse(
        (
            len(models) not in (1, len(files)) and bool(files),
            f"--model {typed} names {len(models)} models; give one for all, or one per SYSTEM with "
            f"embeddings ({', '.join(files)})",
        )
    )
    per_file = models if len(models) == len(files) else models[:1] * len(files)
    named = {
        path: model
        for path, model in zip(files, per_file, strict=True)
        if has_embeddings({**options, "scores": path, "model": model})
    }
    shared.leave_out(
        (
            not named,
            ("model", "model_config", *OF_FORMULAS),
            "no SYSTEM has embeddings; leave out {}",
        ),
    )
    return named


def _check_pool_options(
    systems: tuple[str, ...], models: dict[str, str | None], options: dict[str, Any]
) -> None:
    """Refuse options of samples that miss another, and of scores if no system has scores."""
    from kgtrec.study.pooling.lists import is_scores

    has_scores = any(is_scores(path) for path in systems if path not in models)
    of_scores = options["rows"] != "questions" or options["lower_is_better"]
    is_nan_idle = options["nan"] != "error" and not models
    shared.refuse(
        (
            options["seed"] is not None
            and options["sample"] is None
            and options["sample_questions"] is None,
            "--seed needs --sample or --sample-questions; give one, or omit --seed",
        ),
        (
            options["sample_questions"] is not None and options["drawn_file"] is None,
            "--sample-questions needs --write-sample FILE, for the drawn questions",
        ),
        (
            options["sample_questions"] is not None and options["sample"] is not None,
            "--sample draws triples and --sample-questions draws questions; give one of them",
        ),
        (
            (of_scores or is_nan_idle) and not has_scores,
            "--rows, --lower-is-better and --nan are for scores; these are all "
            + ("embeddings or runs" if models else "runs"),
        ),
    )


def _draw_questions(seeds: SeedQuestions, options: dict[str, Any]) -> list[File]:
    """Draw questions for people; return the file of the sample, in a list that may be empty."""
    from kgtrec.study import draw_questions

    size = options["sample_questions"]
    if size is None:
        return []
    by, seed = options["by_group"] or "", options["seed"] or 0
    return [(options["drawn_file"], draw_questions(seeds, size, by=by, seed=seed).write)]


def _read_lists(
    systems: dict[str, str],
    models: dict[str, str | None],
    seeds: SeedQuestions,
    depth: int,
    options: dict[str, Any],
) -> list[RankedLists]:
    """Read the lists of all systems, by name: those of runs, or the best of scores.

    - models: Model of each system with embeddings, by path.
    """
    from kgtrec.integrations.embeddings import is_vector_file
    from kgtrec.study import run_lists, score_lists
    from kgtrec.study.pooling.lists import is_scores

    settings = {"places": options["places"], "threads": options["threads"]}
    scoring = settings | {"nan": options["nan"]}
    of_matrix = {"rows": options["rows"], "higher_is_better": not options["lower_is_better"]}
    questions = seeds.graph.questions(seeds.split)
    lists = []
    for name, path in systems.items():
        if path in models:
            vectors = model_file({**options, "scores": path, "model": models[path]})
            source = vectors.factors(questions)
            lists.append(score_lists(source, seeds, name, depth, **scoring))
        elif is_scores(path) or is_vector_file(path):
            lists.append(score_lists(path, seeds, name, depth, **scoring, **of_matrix))
        else:
            lists.append(run_lists(path, seeds, name, **settings))
    return lists


def _read_seeds(graph: Graph, path: str, split: str, questions: str | None) -> SeedQuestions:
    """Read the seed triples and the names of questions; return the seed questions."""
    from kgtrec.study import seed_questions
    from kgtrec.study.pooling.edited_files import read_triples
    from kgtrec.study.pooling.seeds import read_question_ids

    names = None if questions is None else read_question_ids(questions, graph)
    return seed_questions(graph, read_triples(path, graph), split, names=names)


def _find_rules(pool: Pool, types: str | None, by_category: bool) -> list[str] | None:
    """Return the rule that labels each pooled triple false, "" if none; None without rules."""
    from kgtrec.graph.statistics.relations import relation_categories
    from kgtrec.study.pooling import completion

    if types is None and not by_category:
        return None
    return completion.trivial_rules(
        pool,
        categories=relation_categories(pool.graph) if by_category else None,
        types=None if types is None else completion.read_relation_types(types, pool.graph),
    )


# -- Completion ------------------------------------------------------------------------------------


@click.command(cls=Command)
@click.argument("runs", nargs=-1, metavar="[RUN...]", type=shared.READ)
@shared.GRAPH
@shared.SEED_TRIPLES
@shared.reads("--pool pooled", "From `kgtrec pool`.", required=True)
@shared.reads(
    "--judgements",
    "Lines head<TAB>relation<TAB>tail<TAB>label, the label Y, N or ?; or "
    "any columns under a header that names these four. Repeatable.",
    multiple=True,
)
@shared.ASKED
@shared.reads(
    "--judge judge_file",
    "Labels of the whole pool by a judge that may err, lines question 0 entity value: 0, 1 or a "
    "probability, from 0.5 on true. Correct them by the JUDGEMENTS of people.",
)
@shared.QUESTION_SAMPLE
@shared.option(
    "--target",
    "With --judge: say how many questions people should judge for intervals of ± W. From the "
    "sample, or without --sample from the judge's probabilities.",
    type=shared.Number(0, min_open=True),
    metavar="W",
)
@shared.writes(
    "--write-sample drawn_file",
    "With --target and without --sample: draw these questions, those more often on which the "
    "judge is unsure; lines question<TAB>probability.",
)
@shared.confidence("with --judge")
@shared.seed("Seed of the draws, with --judge.")
@shared.choice("--blank", ["error", "N", "?"], "What a blank label means.", default="error")
@shared.option(
    "--rules/--no-rules",
    "Whether triples without a judge are false if a rule of the pool says so.",
    default=True,
)
@shared.option("--depth", "Use the pool to this depth; all of it by default.", type=shared.Count(0))
@shared.writes("--write-qrels qrels", "Write question 0 entity label, the label 1, 0 or -1.")
@shared.writes(
    "--write-sample-qrels sample_qrels",
    "Of a pool with a sample (kgtrec pool "
    "--sample): write qrels in which only the sample has labels, and all else is -1, "
    "for infAP.",
)
@shared.writes(
    "--write-split split_file",
    "Write the complete test split: seeds and pooled triples that are true.",
)
@shared.option(
    "--write-runs run_dir",
    "Write each RUN as the qrels need it: seed questions only, without known entities.",
    type=shared.LATER,
    metavar="DIR",
)
@shared.flag(
    "--reverse",
    "Write qrels also for questions of pooled true triples that are not "
    "questions of seeds. Nothing was pooled for these.",
)
@shared.measures(
    "-m --measure measures",
    "Measures of the RUNs, by trec_eval's names, instead of the usual ones; repeatable.",
)
@shared.option(
    "--top cutoffs",
    "Print how many of the first K of each RUN are seeds, added (newly "
    "annotated true ones), false and unjudged; repeatable.  [default: 10 and 20]",
    multiple=True,
    type=shared.Count(),
    metavar="K",
)
@shared.option(
    "--within",
    "Candidates without a label are open if they are in the pool, or in the "
    "first K of any RUN.  [default: 20]",
    type=shared.Count(0),
    metavar="K",
)
@shared.option(
    "--examples",
    "Also print the N questions with the most added answers: original and added ones (Zhou et al. "
    "2022, Table 2).",
    type=shared.Count(),
    metavar="N",
)
@shared.reads("--names name_file", "With --examples: names of entities, lines id<TAB>name.")
@shared.flag(
    "--alpha",
    "Also estimate how much more often popular relations and answers are observed, and the "
    "exponent beta at which to read the curves of kgtrec stratify (Mohamed et al. 2020, equation "
    "2).",
)
@shared.split("Split of the seeds and runs.")
@shared.QUESTION_NAMES
@shared.FORMAT
def complete(
    runs: tuple[str, ...],
    graph: str,
    seed_triples: str,
    pooled: str,
    judgements: tuple[str, ...],
    **options: Any,
) -> Report:
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

    With --judge, prints instead the measures of the RUNs by the labels of the judge alone, by those
    of people alone, and corrected: the judge's value of all questions, plus the mean difference
    between people and judge in the sample. This is unbiased whatever the judge does. Also: paired
    differences of the RUNs (t, Holm), their order, and how well the judge agrees with people.

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

    \b
    kgtrec complete --graph FB15k-237 --seed-triples seed.tsv --pool pool.tsv a.run b.run \\
        --judge judge.txt --sample drawn.tsv --judgements judged.tsv
    """
    from kgtrec import read_graph
    from kgtrec._internal.named import system_names
    from kgtrec.study import run_lists
    from kgtrec.study.judging.sheets import refuse_changes
    from kgtrec.study.pooling import completion, unjudged
    from kgtrec.study.pooling.edited_files import Judgements, read_judgements
    from kgtrec.study.pooling.lists import doubts
    from kgtrec.study.pooling.pool import read_pool
    from kgtrec.study.pooling.unjudged import mean_columns

    _check_run_options(runs, options)
    check_judge_options(runs, judgements, options)
    has_judge = options["judge_file"] is not None
    measures = () if has_judge else options["measures"] or unjudged.MEASURES
    columns = [column.name for column in mean_columns(measures)]
    names = system_names(runs)
    loaded = read_graph(graph)
    seeds = _read_seeds(loaded, seed_triples, options["split"], options["questions"])
    pool, fired = read_pool(pooled, loaded)
    judged = Judgements({}, 0)
    if options["asked"] is not None:
        refuse_changes(judgements, options["asked"])
    if judgements:
        judged = read_judgements(judgements, loaded, options["blank"])
    rules = fired if options["rules"] else None
    done = completion.complete(seeds, pool, judged, rules, options["depth"])
    if options["sample_qrels"] and done.drawn is None:
        raise UsageError(
            "--write-sample-qrels needs a pool with a sample: kgtrec pool --sample SHARE"
        )
    lists = [run_lists(run, seeds, name) for run, name in zip(runs, names, strict=True)]
    if has_judge:
        report = correct(lists, pool, done, judged, rules, options)
    else:
        labels = _completion_tables(done, pool, judged, rules, options)
        report = _join_tables(labels, _run_tables(lists, done, columns, options))
    written = _run_files(options["run_dir"], names)
    qrels = done.qrels(options["reverse"])
    if options["qrels"] and qrels.nameless:
        left = f"{qrels.nameless:,} reverse questions have no name in the runs; left out"
        report.notes.insert(0, left)
    report.notes = [*map(warning, doubts(lists, seeds, 20)), *report.notes]
    report.files = [
        (options["qrels"], qrels.write),
        *_completion_files(loaded, done, options),
        *((written.get(each.name), partial(_write_run, each, seeds)) for each in lists),
        *report.files,
    ]
    return report


def _join_tables(
    labels: tuple[dict[str, Table], list[str]], runs: tuple[dict[str, Table], list[str]]
) -> Report:
    """Report the tables and remarks on labels, then those on runs, whose remarks come first."""
    (tables, notes), (of_runs, more) = labels, runs
    tables = tables | of_runs
    return Report.from_sections(
        [("", [table], "") for table in tables.values()],
        {name: table.to_dict() for name, table in tables.items()},
        tables["intervals" if of_runs else "depths"],
        notes=[*more, *notes],
    )


def _completion_tables(
    done: completion.Completion,
    pool: Pool,
    judged: Judgements,
    rules: list[str] | None,
    options: dict[str, Any],
) -> tuple[dict[str, Table], list[str]]:
    """Return tables of the labels at every depth, of rules, alpha and examples, and remarks."""
    from kgtrec.study.judging.questions import read_names
    from kgtrec.study.pooling import completion

    depths = range(done.depth + 1)
    by_depth = [completion.complete(done.seeds, pool, judged, rules, depth) for depth in depths]
    tables = {"depths": completion.depth_table(by_depth)}
    if rules is not None and any(rules):
        tables["rules"] = completion.rule_table(pool, rules, judged)
    if options["alpha"]:
        from kgtrec.study.pooling.alpha import alpha_table, estimate_alphas

        tables["alpha"] = alpha_table(estimate_alphas(done))
    if options["examples"]:
        labels = read_names(options["name_file"]) if options["name_file"] else {}
        tables["examples"] = done.example_table(options["examples"], labels)
    return tables, completion.remarks(done, judged)


def _check_run_options(runs: tuple[str, ...], options: dict[str, Any]) -> None:
    """Refuse options about RUNs if there are none."""
    of_runs = options["measures"] or options["cutoffs"] or options["within"] is not None
    shared.refuse(
        (
            not runs and options["run_dir"],
            "--write-runs writes the RUNs, but there are none; give some",
        ),
        (
            not runs and of_runs,
            "--measure, --top and --within are about RUNs, but there are none; give some",
        ),
        (
            options["name_file"] and not options["examples"],
            "--names are for --examples; add --examples N, or leave them out",
        ),
    )


def _completion_files(
    graph: Graph, done: completion.Completion, options: dict[str, Any]
) -> list[File]:
    """Return the files of the sample's qrels and of the complete split."""
    from kgtrec.study.pooling.edited_files import write_triples

    def write_sample(path: str) -> None:
        done.sample.qrels(options["reverse"]).keep_answered().write(path)

    def write_split(path: str) -> None:
        write_triples(path, graph, done.split)

    return [(options["sample_qrels"], write_sample), (options["split_file"], write_split)]


def _run_files(folder: str | None, names: list[str]) -> dict[str, str]:
    """Make the folder and return a file per run; refuse files that overwrite an input."""
    from kgtrec._internal.files import make_folder

    if folder is None:
        return {}
    make_folder(folder)
    files = {name: os.path.join(folder, f"{os.path.basename(name)}.run") for name in names}
    check_outputs(files)
    return files


def _run_tables(
    lists: list[RankedLists],
    done: completion.Completion,
    columns: list[str],
    options: dict[str, Any],
) -> tuple[dict[str, Table], list[str]]:
    """Return tables of the judged share and the measures of every run, and remarks."""
    from kgtrec.study.pooling import unjudged

    if not lists:
        return {}, []
    cutoffs = tuple(dict.fromkeys(options["cutoffs"] or CUTOFFS))
    within = unjudged.WITHIN if options["within"] is None else options["within"]
    open_ = unjudged.open_candidates(lists, done, within)
    bounds = {run.name: unjudged.intervals(run, done, columns, candidates=open_) for run in lists}
    shares, intervals = unjudged.share_table(lists, done, cutoffs), unjudged.interval_table(bounds)
    notes = unjudged.open_remarks(bounds, open_, within) + unjudged.verdicts(bounds)
    return {"shares": shares, "intervals": intervals}, notes


def _write_run(lists: RankedLists, seeds: SeedQuestions, path: str) -> None:
    lists.to_run(seeds).write(path, "_".join(lists.name.split()))
