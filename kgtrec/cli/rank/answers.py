"""``kgtrec rank --questions`` and ``--qrels``: questions that no graph has asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from kgtrec.cli import _options as shared
from kgtrec.errors import FileError, InputError, UsageError

if TYPE_CHECKING:
    from kgtrec.cli.rank.options import Scoring
    from kgtrec.cluster.inputs import AnswerRequest
    from kgtrec.questions.api import Questions
    from kgtrec.ranking.ranks import Ranks
    from kgtrec.results.result import Result

of_answers = shared.all_of(
    click.option(
        "--questions", type=shared.READ, metavar="FILE",
        help='Instead of a graph: JSON lines {"id": ..., "answers": [label, ...]}, optionally '
        'with "known", "candidates" and "terms" ({name: value}). --candidates then lists '
        "the labels of the score columns, one per line; without it answers are column numbers.",
    ),
    click.option(
        "--qrels", "judged", type=shared.READ, metavar="FILE",
        help="Instead of a graph: TREC qrels. Their relevant documents are the answers.",
    ),
    click.option(
        "--queries", type=shared.READ, metavar="FILE",
        help="With --qrels: names of the queries in the order of the score rows, one per line; by "
        "default the order of the qrels.",
    ),
    click.option(
        "--documents", type=shared.READ, metavar="FILE",
        help="With --qrels: names of the documents in the order of the score columns.",
    ),
    click.option("--level", type=int, default=1, show_default=True,
                 help="With --qrels: smallest relevance of an answer."),
    click.option("--known-has-answers", is_flag=True,
                 help='With --questions: "known" may contain the answers, too.'),
)  # fmt: skip

_OF_GRAPHS = ("graph", "split", "sides", "context", "filters", "known", "entities", "relations",
              "type_constraints", "columns", "outside", "unknown", "predictions", "format",
              "unlinkable", "list_order", "model", "norm", "inverse", "rows")  # fmt: skip
_OF_QRELS = ("queries", "documents", "level")
_OF_QUESTIONS = ("candidates", "known_has_answers")
MEASURES = ("macro.ndcg_cut_10", "macro.map", "macro.recip_rank", "macro.P_10", "macro.recall_100",
            "macro.recall_1000", "macro.success_1", "micro.mr")  # fmt: skip


def asks_answers(options: Mapping[str, Any]) -> bool:
    """Whether the questions are not of a graph; UsageError if it is not clear what is asked."""
    names = {"--graph": "graph", "--questions": "questions", "--qrels": "judged"}
    present = [option for option, name in names.items() if options[name] is not None]
    if len(present) != 1:
        found = f"got {' and '.join(present)}" if present else "got none"
        raise UsageError(f"give one of --graph DIR, --questions FILE and --qrels FILE; {found}")
    unused = {
        "--graph": (*_OF_QRELS, "known_has_answers"),
        "--questions": (*_OF_GRAPHS, *_OF_QRELS),
        "--qrels": (*_OF_GRAPHS, *_OF_QUESTIONS),
    }[present[0]]
    wrong = [shared.option_of(name) for name in unused if shared.on_command_line(name)]
    if wrong:
        raise UsageError(f"{', '.join(wrong)}: does not go with {present[0]}; leave out")
    if present[0] == "--graph":
        return False
    if options["scores"] is None:
        raise UsageError("give the scores of the questions: --scores PATH")
    return True


def answer_files(options: Mapping[str, Any]) -> AnswerRequest:
    """The options of `of_answers`, and the file of candidates."""
    from kgtrec.cluster.inputs import AnswerRequest

    names = ("questions", "queries", "documents", "candidates", "level", "known_has_answers")
    return AnswerRequest(qrels=options["judged"], **{name: options[name] for name in names})


def rank_answers(
    request: AnswerRequest, scoring: Scoring, run_depth: int
) -> tuple[Result, Questions]:
    """Rank the answers, with a run if it has a depth."""
    from kgtrec.ranking.rank import rank
    from kgtrec.results.result import Result
    from kgtrec.scores.files import load_scores

    scores = load_scores(scoring.scores)
    questions = request.ask(*_shape(scores))
    try:
        ranks, run = rank(scores, questions, run_depth, **scoring.keywords())
    except FileError:
        raise
    except InputError as error:
        raise InputError(f"{scoring.scores}: {error}") from None
    return Result(ranks, run=run if run_depth else None, questions=questions), questions


def shown_of_answers(ranks: Ranks) -> Result:
    """The table; of qrels with trec_eval's measures."""
    from kgtrec.results.result import Result

    qrels = ranks.manifest["questions"].get("qrels")
    measures = None
    if qrels is not None:  # gains of documents below the level are not known
        measures = [f"all.{key}" for key in MEASURES[int(qrels["level"] > 1) :]]
    return Result(ranks, measures=measures)


def _shape(scores: Any) -> tuple[int, int]:
    """Rows and columns of loaded scores."""
    if hasattr(scores, "parts"):
        return scores.n_rows, _shape(scores.parts[0])[1]
    shape = scores.shape if hasattr(scores, "shape") else scores.matrix.shape
    return int(shape[0]), int(shape[1])
