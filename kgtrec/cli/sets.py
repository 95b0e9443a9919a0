"""``kgtrec sets``: which candidates does a model name, and how often are they right?"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import click

from kgtrec.cli import _options as shared
from kgtrec.cli._ranks import load_ranks
from kgtrec.cli._report import Command, File, Report, note

if TYPE_CHECKING:
    from kgtrec import Questions
    from kgtrec.study.sets.sets import AnswerSets

TIES = ("all", "none", "expected")
UNITS = ("answer", "question-any", "question-all")
_OF_LISTS = ("format", "unlinkable")


@click.command(cls=Command)
@click.argument("ranks", required=False, type=shared.READ, metavar="[RANKS]")
@shared.option(
    "--policy",
    "top:K, the K best; conformal:A, as many as contain the answer with probability 1 - A, chosen "
    "on --valid. Of --scores also conformal-gap:A, within a distance of the best score; "
    "threshold:T; threshold:best-f1 or threshold:precision=P, chosen on --valid. Of --predictions: "
    "lists. Repeatable: compare policies by paired tests over questions.",
    required=True,
    multiple=True,
    metavar="NAME",
)
@shared.reads(
    "--valid",
    "Ranks of the validation split, ranked with --filter valid; or, with --scores, its scores.",
)
@shared.graph("Folder of the graph, for --scores, --predictions and some values of --by.")
@shared.reads("--scores", "Instead of RANKS: a .npy matrix, or an .npz with vectors.")
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
    ["best", "gap"],
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
def command(ranks: str | None, **options: Any) -> Report:
    """Turn ranks, scores or lists into a set of candidates per question, and judge the sets:
    precision, recall, F1, sizes and coverage.

    Micro measures divide sums over all questions, others are means over questions. Answers of one
    question compete with each other, and facts of other splits are not candidates.

    \b
    kgtrec sets test.parquet --policy top:10
    kgtrec sets test.parquet --policy conformal:0.1 --valid valid.parquet --per relation
    kgtrec sets --graph G --scores s.npy --valid v.npy --policy threshold:best-f1
    kgtrec sets --graph G --predictions p.jsonl --predictions-format jsonl --policy lists
    """
    from kgtrec import plots, read_graph

    _check(ranks, options)
    sources = _sources(ranks, options)
    judged = {text: _judge(text, sources, options) for text in options["policy"]}
    if len(judged) > 1:
        return _compare(judged, options)
    sets = judged[options["policy"][0]]
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


def _judge(text: str, sources: dict[str, Any], options: dict[str, Any]) -> AnswerSets:
    """Judge the sets of a policy. Of several, each gets the options that it has."""
    from kgtrec.study import answer_sets
    from kgtrec.study.sets.policies import Policy

    policy, several = Policy.parse(text), len(options["policy"]) > 1
    names = ("least", "cover", "ties", "format", "unlinkable", "unanswerable", "confidence")
    values = {
        **sources,
        **{name: options[name] for name in (*names, "threads")},
        "per": options["per"] or "",
    }
    if several and not policy.needs_valid:
        values |= {"valid": None, "valid_questions": None, "per": ""}
    if several and not policy.name.startswith("conformal"):
        values["cover"] = "answer"
    if several and policy.name != "top":
        values["ties"] = "all"
    kept = options["sets_file"] is not None or options["show"] == "risk"
    return answer_sets(
        **values,
        policy=text,
        keep=kept and options["scores"] is not None,
        higher_is_better=not options["lower_is_better"],
        resampling=shared.resampling(options),
    )


def _compare(judged: dict[str, AnswerSets], options: dict[str, Any]) -> Report:
    """Print values of the policies, and paired tests of coverage and of mean F1."""
    from kgtrec.study import compare, samples_of_sets

    shared.leave_out(
        (True, ("by", "show", "sets_file", "plot"), "with several policies, leave out {}")
    )
    compared = [
        compare(
            samples,
            options["test"] or "randomisation",
            options["correction"],
            clustered=True,
            resampling=shared.resampling(options),
        )
        for samples in samples_of_sets(judged)
    ]
    tables = {each.samples.title: (each.value_table(), each.pair_table()) for each in compared}
    notes = dict.fromkeys(text for sets in judged.values() for text in sets.notes)
    sections = [(title, [*pair], "") for title, pair in tables.items()]
    data = {title: [table.to_dict() for table in pair] for title, pair in tables.items()}
    return Report.from_sections(sections, data, compared[0].value_table(), notes=[*notes])


def _check(ranks: str | None, options: dict[str, Any]) -> None:
    """Refuse sources that are missing, or several, and options without effect."""
    sources = [ranks, options["scores"], options["predictions"]]
    shared.refuse(
        (
            sum(source is not None for source in sources) != 1,
            "give one of RANKS, --scores PATH and --predictions FILE",
        ),
        (
            ranks is None and options["graph"] is None,
            "scores and predictions need their graph: --graph DIR",
        ),
        (
            options["predictions"] is not None and options["format"] is None,
            "--predictions needs --predictions-format, such as jsonl",
        ),
        (
            ranks is not None and options["sets_file"],
            "--write-sets needs --scores or --predictions",
        ),
        (
            (options["predictions"] is None) == ("lists" in options["policy"]),
            "--predictions and --policy lists need each other; give both, or neither",
        ),
        (options["by"] is not None and options["show"] != "sets", "give either --by or --show"),
    )
    several = len(options["policy"]) > 1
    shared.leave_out(
        (not several, ("test", "correction"), "with one --policy, leave out {}"),
        (options["predictions"] is None, _OF_LISTS, "without --predictions, leave out {}"),
        (
            options["scores"] is None,
            ("lower_is_better", "threads"),
            "without --scores, leave out {}",
        ),
        (ranks is not None, ("split", "unanswerable"), "with RANKS, leave out {}"),
        (options["show"] != "risk", ("confidence",), "without --show risk, leave out {}"),
    )


def _sources(ranks: str | None, options: dict[str, Any]) -> dict[str, Any]:
    """Load the source of the sets and that of valid, with their questions."""
    valid = options["valid"]
    if ranks is not None:
        files = {"source": ranks, **({"valid": valid} if valid else {})}
        return dict(load_ranks(files, compared=False))
    sources: dict[str, Any] = {"questions": _questions(options, options["split"], "all")}
    sources["source"] = options["scores"] or options["predictions"]
    if valid is not None:
        sources |= {"valid": valid, "valid_questions": _questions(options, "valid", "valid")}
    return sources


def _questions(options: dict[str, Any], split: str, filters: str) -> Questions:
    from kgtrec.questions.requests import QuestionRequest

    return QuestionRequest(options["graph"], split, filters=(filters,), say=note).questions()
