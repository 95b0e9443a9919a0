"""The options of ``kgtrec rank``: what is asked, and how scores are read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from kgtrec.cli import _options as shared
from kgtrec.cli._report import note
from kgtrec.errors import UsageError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from kgtrec.questions.api import Graph, Questions

    Int64 = npt.NDArray[np.int64]


of_questions = shared.all_of(
    shared.split("Split to evaluate."),
    shared.SIDES,
    shared.CONTEXT,
    click.option(
        "--filter", "filters", metavar="NAME", multiple=True, default=["all"], show_default="all",
        help="Splits whose answers are known: all; test (train, valid, test); valid (train, valid: "
        "when a model is chosen); raw or none (unfiltered); or splits by name, as train,test. "
        "With --context time: time-aware (what is known at that time; the default), static (at any "
        "time) or raw, or of some splits: time-aware:test (as in TGB 2.0); with --context "
        "qualifiers: qualifier-aware (with the same; the default), "
        "static or raw. "
        "On its validation split, LibKGE's _filtered is valid, _filtered_with_test is test. "
        "Repeatable: each filter's files by its name, from one pass (see below).",
    ),
    click.option(
        "--known", type=shared.READ, multiple=True, metavar="FILE",
        help="More known triples to filter, with lines as in a split; repeatable.",
    ),
    click.option(
        "--entities", type=shared.READ, metavar="FILE",
        help="Labels, one a line: only triples of these entities are evaluated, and only they are "
        "candidates.",
    ),
    click.option(
        "--relations", type=shared.READ, metavar="FILE",
        help="Labels, one a line: only triples of these relations are evaluated. Scores have the "
        "rows of all questions, or of those that are left.",
    ),
    click.option(
        "--type-constraints", type=shared.READ, metavar="FILE",
        help="Candidates by relation and side: OpenKE's type_constrain.txt, beside its "
        "entity2id.txt and relation2id.txt.",
    ),
    click.option(
        "--candidates", type=shared.READ, metavar="FILE",
        help="Candidates by question, lines question<TAB>entity<TAB>entity...; or an .npz with "
        "head_neg and tail_neg, shape (triples, negatives), as OGB has them, entities by number: a "
        "question for each triple and side then. Results are sampled ones.",
    ),
    click.option(
        "--score-columns", "columns", type=shared.Choice(["entities", "candidates"]),
        default="entities",
        show_default=True,
        help="What the columns of scores are: all entities, or a question's --candidates in their "
        "order (of an .npz: the answer, then its negatives).",
    ),
    click.option(
        "--outside", type=shared.Choice(["error", "worst"]), default="error", show_default=True,
        help="An answer that is not among its candidates is an error, or ranks worst.",
    ),
    click.option(
        "--unknown", type=shared.Choice(["error", "skip"]), default="error", show_default=True,
        help="A label in these files that the graph lacks is an error, or passed over and counted.",
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
        help="Lists of the best candidates in place of scores: of rule learners, language models, "
        "or any system's run. Ranks are filtered by the graph.",
    ),
    click.option(
        "--predictions-format", "format", metavar="NAME",
        help="Of the predictions: anyburl, jsonl, pykeen, ogb-lsc or trec (see `kgtrec formats`).",
    ),
    click.option(
        "--unlinkable", type=shared.Choice(["place", "drop"]), default="place", show_default=True,
        help="A prediction that names no entity takes a place in its list, or is left out.",
    ),
    click.option(
        "--list-order", type=shared.Choice(["scores", "listed"]), default="scores",
        show_default=True,
        help="What orders lists with scores: the scores, and equal ones tie; or the place in the "
        "list, as AnyBURL and PyClause rank.",
    ),
)  # fmt: skip

in_parts = shared.all_of(
    click.option(
        "--shard", metavar="I/N",
        help="Rank part I of N (1/N to N/N) alone, as a job of its own, into the folder -o, for "
        "`kgtrec merge`.",
    ),
    click.option(
        "--plan", is_flag=True,
        help="With --shard: rank nothing, but store the questions for all shards and print how "
        "long one takes.",
    ),
    click.option(
        "--shard-by", "by", type=shared.Choice(["auto", "questions", "entities"]),
        help="What shards share out; by default questions, or entities if those are few.",
    ),
    click.option("--memory", metavar="SIZE",
                 help="Most that a shard may take; 2GB by default."),
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
        help="With --model: heads are asked by inverse relations, which follow all others "
        "(offset: r + n), or each follows its own (interleaved: 2 r + 1).",
    ),
)  # fmt: skip


@dataclass(frozen=True)
class QuestionRequest:
    """The options of `of_questions`, and the graph's folder."""

    graph: str
    split: str
    sides: str
    context: str | None
    filters: tuple[str, ...]
    known: tuple[str, ...]
    entities: str | None
    relations: str | None
    type_constraints: str | None
    candidates: str | None
    columns: str
    outside: str
    unknown: str

    @property
    def settings(self) -> dict[str, str]:
        """What is asked for in words, of a single filter."""
        names = ("split", "sides", "unknown", "columns", "outside")
        return {"filter": self.filters[0], **{name: getattr(self, name) for name in names}}

    @property
    def lists(self) -> dict[str, list[str]]:
        """Files that are read besides the graph, by option."""
        names = ("entities", "relations", "type_constraints", "candidates")
        paths = {name: getattr(self, name) for name in names}
        single = {name: [] if path is None else [path] for name, path in paths.items()}
        return {"known": list(self.known), **single}

    @contextmanager
    def at_hand(self) -> Iterator[QuestionRequest]:
        """The request with a copy of a graph that is elsewhere."""
        from kgtrec._internal.locations import fetched, is_location
        from kgtrec.graph.formats import split_format

        form, graph = split_format(self.graph)
        with fetched(graph, folders=True) as copy:
            yield replace(self, graph=f"{form}{copy}") if is_location(graph) else self

    @property
    def folders(self) -> dict[str, str]:
        """Folders that are inputs, and what they are."""
        from kgtrec.graph.formats import split_format

        return {split_format(self.graph)[1]: "the graph's folder"}

    def describe(self) -> dict[str, Any]:
        """What questions are made from, in plain JSON types: equal for equal content."""
        from kgtrec.cluster.content_hash import describe_request

        return describe_request(self.graph, self.settings, self.lists)

    def ask(self, n_rows: int, n_columns: int) -> Questions:
        """The questions, whatever the shape of the scores."""
        return self.questions()

    def questions(self) -> Questions:
        """Read the graph and ask, with a single filter."""
        graph, options = self._read()
        is_default = self.context is not None and self.filters == ("all",)
        chosen = None if is_default else filter_of(self.filters[0])
        return self._restricted(graph.questions(self.split, self.sides, filter=chosen, **options))

    def questions_by_filter(self) -> dict[str, Questions]:
        """Read the graph once and ask with every filter, by the filters' names."""
        graph, options = self._read()
        several = graph.questions_by_filter(
            [filter_of(text) for text in self.filters], self.split, sides=self.sides, **options
        )
        return {name: self._restricted(questions) for name, questions in several.items()}

    def _read(self) -> tuple[Graph, dict[str, Any]]:
        """The graph, and how its questions are asked but for split, sides and filter."""
        from kgtrec.questions.api import read_graph

        graph = read_graph(self.graph)
        ids = {
            kind: None if path is None else _read_ids(path, graph, kind, self.unknown)
            for kind, path in (("entities", self.entities), ("relations", self.relations))
        }
        options = {"known": self.known, "unknown": self.unknown, "context": self.context}
        return graph, {**options, **ids}

    def _restricted(self, questions: Questions) -> Questions:
        if self.type_constraints and self.candidates:
            raise UsageError("--type-constraints and --candidates each list candidates; give one")
        if self.columns == "candidates" and not self.candidates:
            raise UsageError("--score-columns candidates needs --candidates FILE")
        if not self.type_constraints and not self.candidates:
            return questions
        return questions.restrict(
            type_constraints=self.type_constraints,
            candidates=self.candidates,
            columns=self.columns,
            outside=self.outside,
            unknown=self.unknown,
        )


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


def _read_ids(path: str, graph: Graph, kind: str, unknown: str) -> Int64:
    """Ids of the labels in a file; those passed over are counted on stderr."""
    from kgtrec.graph.id_files import read_labels

    ids, missed = read_labels(path, getattr(graph, kind), unknown)
    if missed:
        note(f"{path}: {missed:,} {kind} that the graph lacks")
    return ids


def filter_name(text: str) -> str:
    """How `Graph.questions_by_filter` names it: of several splits, their names with "+"."""
    chosen = filter_of(text)
    return chosen if isinstance(chosen, str) else "+".join(chosen)


def filter_of(text: str) -> str | tuple[str, ...]:
    """What ``--filter`` names: a protocol as it is; several names are splits."""
    names = tuple(name.strip() for name in text.split(","))
    if not all(names):
        raise UsageError(
            f"--filter {text!r} names no split; write all, test, valid, raw, or for example "
            "train,valid"
        )
    return names[0] if len(names) == 1 else names
