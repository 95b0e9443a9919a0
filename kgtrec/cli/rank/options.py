"""The options of ``kgtrec rank``: questions, scores, and refused combinations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from kgtrec._internal.text import visible
from kgtrec.cli import _options as shared
from kgtrec.cli._report import note
from kgtrec.errors import UsageError

if TYPE_CHECKING:
    from kgtrec.integrations.embeddings import ModelFile
    from kgtrec.questions.requests import AnswerRequest, QuestionRequest

of_answers = shared.all_of(
    shared.reads(
        "--answers questions",
        'Instead of a graph: JSON lines {"id": ..., "answers": '
        '[label, ...]}, optionally with "known", "candidates" and "terms" ({name: value}).'
        " --candidates then lists the labels of the score columns, one per line; without "
        "it answers are column numbers.",
    ),
    shared.reads(
        "--qrels judged",
        "Instead of a graph: TREC qrels. Their relevant documents are the answers.",
    ),
    shared.reads(
        "--queries",
        "With --qrels: names of the queries in the order of the score rows, "
        "one per line; by default the order of the qrels.",
    ),
    shared.reads(
        "--documents", "With --qrels: names of the documents in the order of the score columns."
    ),
    shared.option(
        "--relevance-level level",
        "With --qrels: smallest relevance of an answer.",
        type=shared.Count(-(2**63), largest=2**63 - 1),
        default=1,
    ),
    shared.flag(
        "--exclude-query-document",
        "With --qrels: the document with the name of a query does not compete with its answers.",
    ),
    shared.flag("--known-has-answers", 'With --answers: "known" may contain the answers, too.'),
)

of_questions = shared.all_of(
    shared.split("Split to evaluate."),
    shared.SIDES,
    shared.CONTEXT,
    shared.option(
        "--filter filters",
        "Splits whose answers are known: all; test (train, valid, "
        "test); valid (train, valid: to choose a model); raw or none (unfiltered); or "
        "names of splits, such as train,test. With --context time: time-aware (known at "
        "that time; the default), static (at any time), raw, or a filter of some splits: "
        "time-aware:test (as in TGB 2.0). With --context qualifiers: qualifier-aware "
        "(with the same; the default), static or raw. On its validation split, LibKGE's "
        "_filtered is valid, _filtered_with_test is test. Repeatable: one pass writes "
        "files for each filter (see above).",
        metavar="NAME",
        multiple=True,
        default=["all"],
        show_default="all",
    ),
    shared.reads(
        "--known",
        "More known triples to filter, with lines as in a split; repeatable.",
        multiple=True,
    ),
    shared.reads(
        "--entities",
        "Labels, one per line: evaluate only triples of these entities, "
        "among only these candidates.",
    ),
    shared.reads(
        "--relations",
        "Labels, one per line: evaluate only triples of these relations. "
        "Scores have rows for all questions, or only for these.",
    ),
    shared.reads(
        "--type-constraints",
        "Candidates by relation and side: OpenKE's "
        "type_constrain.txt, next to its entity2id.txt and relation2id.txt.",
    ),
    shared.reads(
        "--candidates",
        "Candidates per question: lines "
        "question<TAB>entity<TAB>entity...; or OGB's .npz with head_neg and tail_neg, "
        "entity numbers of shape (triples, negatives), one question per triple and side. "
        "The results are labelled as sampled.",
    ),
    shared.choice(
        "--score-columns columns",
        ["entities", "candidates"],
        "Columns of scores: all "
        "entities, or a question's --candidates in their order (with an .npz: the "
        "answer, then its negatives).",
        default="entities",
    ),
    shared.COLUMN_LABELS,
    shared.option(
        "--min-answers",
        "Evaluate only questions with at least N answers in the evaluated split (Yang et al. 2022, "
        "A.3: 10). Scores have rows for all questions, or only for these.",
        type=shared.Count(1),
        metavar="N",
    ),
    shared.choice(
        "--outside",
        ["error", "worst"],
        "Treat an answer that is not among its candidates as an error, or rank it last.",
        default="error",
    ),
    shared.choice(
        "--unknown",
        ["error", "skip"],
        "Treat a label that is not in the graph as an error, or ignore and count it.",
        default="error",
    ),
)

tolerance = shared.all_of(
    shared.option(
        "--atol",
        "With --rtol Y: a score within X + Y |answer's score| of the answer's "
        "ties with it in micro ranks. LibKGE's defaults are --atol 1e-5 --rtol 1e-4.",
        type=shared.Number(0, infinite=True),
        default=0.0,
        metavar="X",
    ),
    shared.option(
        "--rtol", "See --atol.", type=shared.Number(0, infinite=True), default=0.0, metavar="Y"
    ),
)

of_predictions = shared.all_of(
    shared.reads(
        "--predictions",
        "Instead of scores: lists of the best candidates, from rule "
        "learners, language models, or any system's run. The graph filters the ranks.",
    ),
    shared.option(
        "--predictions-format format",
        "Format of the lists: anyburl, jsonl, pykeen, ogb-lsc or trec (see `kgtrec formats`).",
        metavar="NAME",
    ),
    shared.choice(
        "--unlinkable",
        ["place", "drop"],
        "Whether a prediction that names no entity takes a place in its list.",
        default="place",
    ),
    shared.choice(
        "--list-order",
        ["scores", "listed"],
        "Order lists with scores by the scores, "
        "with ties; or by the place in the list, like AnyBURL and PyClause.",
        default="scores",
    ),
)

in_parts = shared.all_of(
    shared.option(
        "--shard",
        "Rank only part I of N (1/N to N/N), as a separate job. Writes to the "
        "folder -o, for `kgtrec merge`.",
        metavar="I/N",
    ),
    shared.flag(
        "--plan",
        "With --shard: rank nothing. Store the questions for all shards, and "
        "print how long one takes.",
    ),
    shared.choice(
        "--shard-by by",
        ["auto", "questions", "entities"],
        "What to divide among shards. Default: questions, or entities if questions are few.",
    ),
    shared.option("--memory", "Memory limit per shard; 2GB by default.", metavar="SIZE"),
)


of_embeddings = shared.all_of(
    shared.option(
        "--model",
        "SCORES contains the embeddings of this model, under their usual "
        "names: distmult, complex, transe, rotate, protate, rescal, cp, simple, hole, "
        "tucker, quate, hake or mode. Also as .safetensors, or .pt or .ckpt with only weights. By "
        "default the model of --model-config, or of the array 'model' in an .npz.",
        metavar="NAME",
    ),
    shared.reads(
        "--model-config",
        "The config.json of RotatE's own program, RNNLogic, HAKE or DGL-KE: "
        "model, gamma, hidden_dim. By default the one in the folder SCORES.",
    ),
    shared.choice(
        "--norm",
        ["l2", "l1"],
        "Distance of transe (l2 by default) or rotate (l1 sums "
        "moduli). Needed if programs differ and nothing says which one saved the model.",
    ),
    shared.option(
        "--phases",
        "Phases of rotate, protate and hake: radians, or the number X that means "
        "half a turn (phase = value * pi / X). By default what the files say.",
        metavar="X",
    ),
    shared.choice(
        "--normalize",
        ["none", "vectors", "entities"],
        "With transe: scale all vectors "
        "to length 1 first (OpenKE's norm_flag), or those of entities. By default what "
        "the files say.",
    ),
    shared.option(
        "--phase-weight",
        "With hake: its trained weight of phases. By default that of the file "
        "'checkpoint' in the folder SCORES.",
        type=shared.Number(),
        metavar="X",
    ),
    shared.option(
        "--modulus-weight",
        "With hake: its trained weight of moduli, as --phase-weight.",
        type=shared.Number(),
        metavar="X",
    ),
    shared.choice(
        "--inverse",
        ["none", "offset", "interleaved"],
        "Of embeddings: inverse "
        "relations ask for heads. They follow all relations (offset: r + n), or each "
        "follows its own (interleaved: 2 r + 1).",
        default="none",
    ),
)

_OF_GRAPHS = (
    "graph",
    "split",
    "sides",
    "context",
    "filters",
    "known",
    "entities",
    "relations",
    "type_constraints",
    "columns",
    "column_labels",
    "outside",
    "unknown",
    "predictions",
    "format",
    "unlinkable",
    "list_order",
    "model",
    "model_config",
    "norm",
    "phases",
    "normalize",
    "phase_weight",
    "modulus_weight",
    "inverse",
    "rows",
)
_OF_QRELS = ("queries", "documents", "level", "exclude_query_document")
_IDLE = {
    "--graph": (*_OF_QRELS, "known_has_answers"),
    "--answers": (*_OF_GRAPHS, *_OF_QRELS),
    "--qrels": (*_OF_GRAPHS, "candidates", "known_has_answers"),
}
_OF_SCORES = (
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
    "column_labels",
)
OF_FORMULAS = ("norm", "phases", "normalize", "phase_weight", "modulus_weight", "inverse")
"""Options that say how the vectors of a model are scored."""
_OF_MODELS = ("model", "model_config", *OF_FORMULAS)
_OF_LISTS = ("format", "unlinkable", "list_order")


def asks_answers(options: Mapping[str, Any]) -> bool:
    """Return True if the questions have no graph; UsageError for contradictory options."""
    names = {"--graph": "graph", "--answers": "questions", "--qrels": "judged"}
    present = [option for option, name in names.items() if options[name] is not None]
    if len(present) != 1:
        got = f"got {' and '.join(present)}" if present else "got none"
        raise UsageError(f"give one of --graph DIR, --answers FILE and --qrels FILE; {got}")
    shared.leave_out((True, _IDLE[present[0]], f"{{}}: not allowed with {present[0]}; leave out"))
    if present[0] != "--graph" and options["scores"] is None:
        raise UsageError("give the scores of the questions: --scores PATH")
    return present[0] != "--graph"


def check_source(options: Mapping[str, Any]) -> None:
    """Require scores or predictions, and refuse options without effect on them."""
    from kgtrec.predictions.readers import PREDICTIONS

    lists, model = options["predictions"] is not None, has_embeddings(options)
    if lists == (options["scores"] is not None):
        raise UsageError("give either scores (--scores PATH) or ranked lists (--predictions FILE)")
    shared.leave_out(
        (lists, (*_OF_SCORES, *_OF_MODELS), "without --scores, leave out {}"),
        (not lists, _OF_LISTS, "without --predictions, leave out {}"),
    )
    if lists and options["format"] is None:
        raise UsageError(
            f"--predictions needs --predictions-format: {', '.join(PREDICTIONS.all())}"
        )
    shared.leave_out(
        (
            model,
            ("lower_is_better",),
            "with embeddings of a model, leave out {}",
        ),
        (
            not model and not _names_model(options),
            OF_FORMULAS,
            "without --model, leave out {}",
        ),
    )


def _names_model(options: Mapping[str, Any]) -> bool:
    """Return True if an option names the model, or its configuration."""
    return options["model"] is not None or options["model_config"] is not None


def has_embeddings(options: Mapping[str, Any]) -> bool:
    """Return True if the scores are vectors of a model that an option or a file names.

    False for the file of `kgtrec.Factors.save`; UsageError if an option contradicts it.
    """
    from kgtrec.integrations.embeddings import is_saved_model

    scores = options["scores"]
    if _names_model(options):
        return scores is None or not model_file(options).has_factors()
    return scores is not None and is_saved_model(scores)


def model_file(options: Mapping[str, Any]) -> ModelFile:
    """Return the vectors of the scores with the options that say how they are scored."""
    from kgtrec.integrations.embeddings import ModelFile

    names = ("model", "model_config", *OF_FORMULAS)
    return ModelFile(options["scores"], **{name: options[name] for name in names})


def check_parts(options: Mapping[str, Any]) -> None:
    """Raise UsageError for shard options without --shard, or for files that shards do not write."""
    if options["shard"] is None:
        idle = options["by"] or options["memory"] or options["plan"]
        text = "--shard-by, --memory and --plan need --shard; leave them out, or add --shard 1/1"
        shared.refuse((idle, text))
        return
    if (output := options["output"]).endswith(".parquet"):
        raise UsageError(
            f"{shared.option_of('output')} {visible(output)}: with --shard this is the folder of "
            "all shards, not a file; give a folder here, and the file to `kgtrec merge`"
        )
    for name, more in (("run", " (and give --run-depth here, to keep so many)"), ("qrels", "")):
        if (path := options[name]) is not None:
            option = shared.option_of(name)
            raise UsageError(
                f"{option} is written when shards are merged: kgtrec merge ... {option} "
                f"{visible(path)}{more}"
            )


def question_request(options: Mapping[str, Any]) -> QuestionRequest:
    """Make the request of the options of `of_questions` and the graph's folder."""
    from kgtrec.questions.requests import QuestionRequest

    names = [field.name for field in fields(QuestionRequest) if field.name in options]
    return QuestionRequest(**{name: options[name] for name in names}, say=note)


def answer_request(options: Mapping[str, Any]) -> AnswerRequest:
    """Make the request of the options of `of_answers` and the file of candidates."""
    from kgtrec.questions.requests import AnswerRequest

    names = (
        "questions",
        "queries",
        "documents",
        "candidates",
        "level",
        "known_has_answers",
        "exclude_query_document",
        "min_answers",
    )
    return AnswerRequest(qrels=options["judged"], **{name: options[name] for name in names})


def ranking_settings(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings for ranking scores, as keywords of `kgtrec.evaluate`."""
    settings = {name: options[name] for name in ("rows", "nan", "threads", "atol", "rtol")}
    return settings | {"higher_is_better": not options["lower_is_better"]}
