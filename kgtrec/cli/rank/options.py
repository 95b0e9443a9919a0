"""The options of ``kgtrec rank``: what is asked, and how scores are read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import click

from kgtrec.cli import _options as shared
from kgtrec.cli._report import note

if TYPE_CHECKING:
    from kgtrec.cluster.inputs import QuestionRequest
    from kgtrec.questions.api import Questions


of_questions = shared.all_of(
    shared.split("Split to evaluate."),
    shared.SIDES,
    shared.CONTEXT,
    click.option(
        "--filter", "filters", metavar="NAME", multiple=True, default=["all"], show_default="all",
        help="Splits whose answers are known: all; test (train, valid, test); valid (train, valid: "
        "to choose a model); raw or none (unfiltered); or names of splits, such as train,test. "
        "With --context time: time-aware (known at that time; the default), static (at any time), "
        "raw, or a filter of some splits: time-aware:test (as in TGB 2.0). With --context "
        "qualifiers: qualifier-aware (with the same; the default), static or raw. On its "
        "validation split, LibKGE's _filtered is valid, _filtered_with_test is test. "
        "Repeatable: one pass writes files for each filter (see above).",
    ),
    click.option(
        "--known", type=shared.READ, multiple=True, metavar="FILE",
        help="More known triples to filter, with lines as in a split; repeatable.",
    ),
    click.option(
        "--entities", type=shared.READ, metavar="FILE",
        help="Labels, one per line: evaluate only triples of these entities, among only these "
        "candidates.",
    ),
    click.option(
        "--relations", type=shared.READ, metavar="FILE",
        help="Labels, one per line: evaluate only triples of these relations. Scores have rows "
        "for all questions, or for these only.",
    ),
    click.option(
        "--type-constraints", type=shared.READ, metavar="FILE",
        help="Candidates by relation and side: OpenKE's type_constrain.txt, beside its "
        "entity2id.txt and relation2id.txt.",
    ),
    click.option(
        "--candidates", type=shared.READ, metavar="FILE",
        help="Candidates per question: lines question<TAB>entity<TAB>entity...; or OGB's .npz "
        "with head_neg and tail_neg, entity numbers of shape (triples, negatives), one question "
        "per triple and side. The results are labelled as sampled.",
    ),
    click.option(
        "--score-columns", "columns", type=shared.Choice(["entities", "candidates"]),
        default="entities",
        show_default=True,
        help="Columns of scores: all entities, or a question's --candidates in their order (with "
        "an .npz: the answer, then its negatives).",
    ),
    click.option(
        "--outside", type=shared.Choice(["error", "worst"]), default="error", show_default=True,
        help="Treat an answer that is not among its candidates as an error, or rank it last.",
    ),
    click.option(
        "--unknown", type=shared.Choice(["error", "skip"]), default="error", show_default=True,
        help="Treat a label that is not in the graph as an error, or ignore and count it.",
    ),
)  # fmt: skip

tolerance = shared.all_of(
    click.option(
        "--atol", type=click.FloatRange(0), default=0.0, show_default=True, metavar="X",
        help="With --rtol Y: a score within X + Y |answer's score| of the answer's ties with it in "
        "micro ranks. LibKGE's defaults are --atol 1e-5 --rtol 1e-4.",
    ),
    click.option(
        "--rtol", type=click.FloatRange(0), default=0.0, show_default=True, metavar="Y",
        help="See --atol.",
    ),
)  # fmt: skip

of_predictions = shared.all_of(
    click.option(
        "--predictions", type=shared.READ, metavar="FILE",
        help="Instead of scores: lists of the best candidates, from rule learners, language "
        "models, or any system's run. The graph filters the ranks.",
    ),
    click.option(
        "--predictions-format", "format", metavar="NAME",
        help="Format of the lists: anyburl, jsonl, pykeen, ogb-lsc or trec (see `kgtrec "
        "formats`).",
    ),
    click.option(
        "--unlinkable", type=shared.Choice(["place", "drop"]), default="place", show_default=True,
        help="Whether a prediction that names no entity takes a place in its list.",
    ),
    click.option(
        "--list-order", type=shared.Choice(["scores", "listed"]), default="scores",
        show_default=True,
        help="Order lists with scores by the scores, with ties; or by the place in the list, like "
        "AnyBURL and PyClause.",
    ),
)  # fmt: skip

in_parts = shared.all_of(
    click.option(
        "--shard", metavar="I/N",
        help="Rank only part I of N (1/N to N/N), as a separate job. Writes to the folder -o, for "
        "`kgtrec merge`.",
    ),
    click.option(
        "--plan", is_flag=True,
        help="With --shard: rank nothing. Store the questions for all shards, and print how long "
        "one takes.",
    ),
    click.option(
        "--shard-by", "by", type=shared.Choice(["auto", "questions", "entities"]),
        help="What to divide among shards. Default: questions, or entities if questions are few.",
    ),
    click.option("--memory", metavar="SIZE",
                 help="Memory limit per shard; 2GB by default."),
)  # fmt: skip


of_embeddings = shared.all_of(
    click.option(
        "--model", metavar="NAME",
        help="SCORES contains the embeddings of this model, under their usual names: distmult, "
        "complex, transe, rotate, rescal, cp, simple, hole, tucker or quate. Also as .safetensors, "
        "or .pt with weights alone.",
    ),
    click.option(
        "--norm", type=shared.Choice(["l2", "l1"]), default="l2", show_default=True,
        help="With --model transe: the distance.",
    ),
    click.option(
        "--inverse", type=shared.Choice(["none", "offset", "interleaved"]), default="none",
        show_default=True,
        help="With --model: inverse relations ask for heads. They follow all relations (offset: r "
        "+ n), or each follows its own (interleaved: 2 r + 1).",
    ),
)  # fmt: skip


def question_request(options: Mapping[str, Any]) -> QuestionRequest:
    """The options of `of_questions`, and the graph's folder."""
    from kgtrec.cluster.inputs import QuestionRequest

    names = [each.name for each in fields(QuestionRequest) if each.name in options]
    return QuestionRequest(**{name: options[name] for name in names}, say=note)


@dataclass(frozen=True)
class Scoring:
    """The options of `HOW_SCORED` and `of_embeddings`, and the place of the scores."""

    scores: str
    model: str | None
    norm: str
    inverse: str
    rows: str
    lower_is_better: bool
    nan: str
    threads: int | None
    atol: float
    rtol: float

    def keywords(self) -> dict[str, Any]:
        """How scores are ranked, as keywords of `kgtrec.evaluate`."""
        names = ("rows", "nan", "threads", "atol", "rtol")
        own = {name: getattr(self, name) for name in names}
        return own | {"higher_is_better": not self.lower_is_better}

    def source(self, questions: Questions) -> Any:
        """What is ranked: the path, or the model whose embeddings it contains."""
        if self.model is None:
            return self.scores
        from kgtrec.integrations.embeddings import load_factors

        return load_factors(
            self.scores, questions, self.model,
            norm=self.norm, inverse=self.inverse, rows=self.rows,
        )  # fmt: skip
