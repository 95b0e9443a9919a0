"""``kgtrec sets``: which candidates does a model name, and how often are they right?"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kgtrec.cli import _options as shared
from kgtrec.cli._ranks import load_comparable
from kgtrec.cli._report import Command, File, Report, note
from kgtrec.cli.rank.options import OF_FORMULAS, has_embeddings, of_embeddings
from kgtrec.study.sets.policies import CONFIDENCES, TIES, UNITS, Policy

if TYPE_CHECKING:
    from kgtrec import Questions
    from kgtrec.study.sets.sets import AnswerSets

PASSED = (
    *("least", "cover", "ties", "format", "unlinkable", "unanswerable", "confidence", "threads"),
)
"""Options that are arguments of `answer_sets`."""


@click.command(cls=Command)
@click.argument("ranks", nargs=-1, type=shared.READ, metavar="[RANKS]...")
@shared.option(
    "--policy",
    "top:K, the K best (Max-K, Mei et al. 2018); conformal:A, as many as contain the answer with "
    "probability 1 - A, chosen on --valid. Of --scores also conformal-gap:A, within a distance of "
    "the best score; threshold:T; threshold:best-f1 or threshold:precision=P, chosen on --valid. "
    "Of --predictions: lists. Repeatable: compare policies by paired tests over "
    "questions.",
    required=True,
    multiple=True,
    metavar="NAME",
)
@shared.reads(
    "--valid",
    "Ranks of the validation split, ranked with --filter valid; or, with --scores, its scores: one "
    "per model. Vectors of a --model need none.",
    multiple=True,
)
@shared.graph("Folder of the graph, for --scores, --predictions and some values of --by.")
@shared.option(
    "--scores",
    "Instead of RANKS: a .npy matrix, an .npz with vectors of queries and entities, or embeddings "
    "of a --model. Repeatable: compare models; --model A,B then names that of each.",
    type=shared.SCORES,
    metavar="PATH",
    multiple=True,
)
@shared.names("model", "the file name up to its first dot")
@of_embeddings
@shared.split("Split that --scores or --predictions answer.")
@shared.LOWER_IS_BETTER
@shared.reads("--predictions", "Instead of RANKS: lists that name sets; an empty one abstains.")
@shared.option("--predictions-format format", "Format of the lists, such as jsonl.", metavar="NAME")
@shared.reads(
    "--unanswerable",
    "Questions without any answer: with --scores a .npy matrix, a row each; with --predictions "
    "lists in the same format.",
)
@shared.choice(
    "--unlinkable",
    ["error", "place", "drop"],
    "A prediction that names no entity is an error, or a wrong candidate, or is left out.",
    default="error",
)
@shared.choice("--per", ["relation"], "A limit per relation instead of one for all.")
@shared.option(
    "--least",
    "With --per: relations with fewer answers on valid share a limit.",
    type=shared.Count(1),
    default=100,
)
@shared.choice(
    "--cover",
    UNITS,
    "What the claim is about: each answer, or any or all answers of each question.",
    default="answer",
)
@shared.choice(
    "--ties",
    TIES,
    "With top:K: candidates that tie at the border are all in the set, or none of them, or as many "
    "as fit, in random order.",
    default="all",
)
@shared.option(
    "--by", "Print parts of the questions, such as `relation` or `category,side`.", metavar="GROUP"
)
@shared.choice(
    "--show",
    ["sets", "risk", "abstention"],
    "Print the sets' measures; or risk against coverage in descending order of confidence; or "
    "how well empty sets tell questions without an answer.",
    default="sets",
)
@shared.choice(
    "--confidence",
    CONFIDENCES,
    "With --show risk: the best score, or its distance from the second best.",
    default="best",
)
@shared.writes(
    "--write-sets sets_file",
    "Write the sets as JSON lines, for --predictions. Needs --scores or --predictions.",
)
@shared.TEST
@shared.CORRECTION
@shared.intervals("questions", 2000)
@shared.FORMAT
@shared.PLOT
@shared.STYLE
@shared.THREADS
def command(ranks: tuple[str, ...], **options: Any) -> Report:
    """Turn ranks, scores or lists into a set of candidates per question, and judge the sets:
    precision, recall, F1, sizes and coverage.

    Micro measures divide sums over all questions, others are means over questions. Answers of one
    question compete with each other, and facts of other splits are not candidates. Several models
    or policies are compared by paired tests.

    \b
    kgtrec sets test.parquet --policy top:10
    kgtrec sets test.parquet --policy conformal:0.1 --valid valid.parquet --per relation
    kgtrec sets --graph G --scores s.npy --valid v.npy --policy threshold:best-f1
    kgtrec sets --graph G --scores weights.npz --model complex --policy conformal:0.1
    kgtrec sets --graph G --predictions p.jsonl --predictions-format jsonl --policy lists
    """
    from kgtrec import plots, read_graph

    _check(ranks, options)
    sources, judged = _read_sources(ranks, options), {}
    for name, source in sources.items():
        for text in options["policy"]:
            parts = [name] * (len(sources) > 1) + [text] * (len(options["policy"]) > 1)
            judged[" ".join(parts)] = _judge(text, source, options)
    if len(judged) > 1:
        return _compare(judged, options)
    (sets,) = judged.values()
    notes, figure = [*sets.notes], partial(plots.set_coverage, sets)
    if options["show"] == "risk":
        curve = sets.risk_curve()
        table, notes = curve.table(), [f"AURC {curve.aurc:.4f}", *notes]
        figure = partial(plots.risk_coverage, {sets.policy: curve})
    elif options["show"] == "abstention":
        table = sets.abstention()
    elif options["by"] is not None:
        graph = None if options["graph"] is None else read_graph(options["graph"])
        table = sets.slice(options["by"], graph=graph)
    else:
        table = sets.table()
    files: list[File] = [(options["sets_file"], sets.write)]
    return Report.from_table(table, notes=notes, files=files, figures={"plot": figure})


def _judge(text: str, source: dict[str, Any], options: dict[str, Any]) -> AnswerSets:
    """Judge the sets of a policy. Of several, each gets the options that it has."""
    from kgtrec.study import answer_sets

    policy, values = Policy.parse(text), {**source, **{name: options[name] for name in PASSED}}
    values["per"] = options["per"] or ""
    if len(options["policy"]) > 1:
        if not policy.needs_valid:
            values |= {"valid": None, "valid_questions": None, "per": ""}
        if not policy.claims:
            values["cover"] = "answer"
        if policy.name != "top":
            values["ties"] = "all"
    kept = options["sets_file"] is not None or options["show"] == "risk"
    return answer_sets(
        **values,
        policy=text,
        keep=kept and bool(options["scores"]),
        higher_is_better=not options["lower_is_better"],
        resampling=shared.resampling(options),
    )


def _compare(judged: dict[str, AnswerSets], options: dict[str, Any]) -> Report:
    """Print values of the policies or models, and paired tests of coverage and of mean F1."""
    from kgtrec.study import compare, samples_of_sets

    idle = ("by", "show", "sets_file", "plot")
    shared.leave_out((True, idle, "with several policies or models, leave out {}"))
    test, resampling = options["test"] or "randomisation", shared.resampling(options)
    compared = [
        compare(
            samples,
            test=test,
            correction=options["correction"],
            clustered=True,
            resampling=resampling,
        )
        for samples in samples_of_sets(judged)
    ]
    tables = {
        comparison.samples.title: (comparison.value_table(), comparison.pair_table())
        for comparison in compared
    }
    notes = dict.fromkeys(text for sets in judged.values() for text in sets.notes)
    sections = [(title, [*pair], "") for title, pair in tables.items()]
    data = {title: [table.to_dict() for table in pair] for title, pair in tables.items()}
    return Report.from_sections(sections, data, compared[0].value_table(), notes=[*notes])


def _check(ranks: tuple[str, ...], options: dict[str, Any]) -> None:
    """Refuse sources that are missing, or several kinds of them, and options without effect."""
    scores, lists = options["scores"], options["predictions"] is not None
    files, vectors = ranks or scores, [path for path in scores if _is_model(path, options)]
    shared.refuse(
        (
            bool(ranks) + bool(scores) + lists != 1,
            "give one of RANKS, --scores PATH and --predictions FILE",
        ),
        (
            not ranks and options["graph"] is None,
            "scores and predictions need their graph: --graph DIR",
        ),
        (
            lists and options["format"] is None,
            "--predictions needs --predictions-format, such as jsonl",
        ),
        (ranks and options["sets_file"], "--write-sets needs --scores or --predictions"),
        (
            lists != ("lists" in options["policy"]),
            "--predictions and --policy lists need each other; give both, or neither",
        ),
        (options["by"] is not None and options["show"] != "sets", "give either --by or --show"),
        (vectors and len(vectors) < len(scores), "give either embeddings or other scores"),
        (
            vectors and options["valid"],
            "embeddings score the questions of valid, too; leave out --valid",
        ),
        (len({*files}) < len(files), f"{', '.join(files)}: give each model once"),
        shared.one_per_file("--valid", options["valid"], files),
        *shared.name_problems(options["names"], files),
    )
    several = len(options["policy"]) * len(files) > 1
    shared.leave_out(
        (len(files) < 2, ("names",), "with one model, leave out {}"),
        (not several, ("test", "correction"), "with one --policy, leave out {}"),
        (not lists, ("format", "unlinkable"), "without --predictions, leave out {}"),
        (not scores, ("lower_is_better", "threads"), "without --scores, leave out {}"),
        (vectors, ("lower_is_better",), "with embeddings of a model, leave out {}"),
        (not vectors, ("model_config", *OF_FORMULAS), "without --model, leave out {}"),
        (ranks, ("split", "unanswerable"), "with RANKS, leave out {}"),
        (options["show"] != "risk", ("confidence",), "without --show risk, leave out {}"),
    )


def _is_model(path: str, options: dict[str, Any]) -> bool:
    """Return True if scores are embeddings of a model that an option or a file names."""
    if options["model"] is not None or options["model_config"] is not None:
        return True
    return has_embeddings({**options, "scores": path})


def _read_sources(ranks: tuple[str, ...], options: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the sources of `answer_sets` and those of valid, with their questions, by model."""
    files = ranks or options["scores"] or (options["predictions"],)
    valid = options["valid"] or (None,) * len(files)
    sources: list[dict[str, Any]] = []
    names = options["names"] or [Path(path).name.split(".")[0] for path in files]
    names = names if len({*names}) == len(files) else [*files]
    if ranks:
        loaded = load_comparable({path: path for path in (*ranks, *options["valid"])})
        for path, of_valid in zip(files, valid, strict=True):
            sources.append({"source": loaded[path], "valid": loaded.get(of_valid)})
        return dict(zip(names, sources, strict=True))
    questions, fitted = _questions(options, options["split"], "all"), None
    if any(Policy.parse(text).needs_valid for text in options["policy"]):
        fitted = _questions(options, "valid", "valid")
    for number, (path, of_valid) in enumerate(zip(files, valid, strict=True)):
        source, scores = path, of_valid
        if options["scores"] and _is_model(path, options):
            source, scores = (
                each and _load_model(path, each, number, options) for each in (questions, fitted)
            )
        sources.append(
            {"source": source, "questions": questions, "valid": scores, "valid_questions": fitted}
        )
    return dict(zip(names, sources, strict=True))


def _load_model(path: str, questions: Questions, number: int, options: dict[str, Any]) -> Any:
    """Load the vectors of model `number` (from 0) for questions."""
    from kgtrec.integrations.embeddings import load_factors

    models = (options["model"] or "").split(",")
    shared.refuse(
        (
            len(models) not in (1, len(options["scores"])),
            f"--model {options['model']} names {len(models)} models; give one for all, or one per "
            "--scores",
        )
    )
    how = {name: options[name] for name in ("model_config", *OF_FORMULAS)}
    return load_factors(path, questions, models[number % len(models)] or None, **how)


def _questions(options: dict[str, Any], split: str, filters: str) -> Questions:
    """Return the questions of a split of the graph, with one filter."""
    from kgtrec.questions.requests import QuestionRequest

    return QuestionRequest(options["graph"], split, filters=(filters,), say=note).questions()
