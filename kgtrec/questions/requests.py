"""Options of commands that define questions, and the questions that they define."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from kgtrec._internal.argument_names import argument
from kgtrec._internal.locations import is_location, local_copy
from kgtrec.errors import UsageError
from kgtrec.graph.formats import split_format
from kgtrec.graph.id_files import read_column_order, read_labels, read_names
from kgtrec.questions.api import Graph, Questions


@dataclass(frozen=True)
class QuestionRequest:
    """The options of `kgtrec rank` that define questions to a graph.

    ``say`` receives notes for the user. ``n_columns`` returns the number of columns of the scores,
    if it is known before the questions.
    """

    graph: str
    split: str = "test"
    sides: str = "both"
    context: str | None = None
    filters: tuple[str | tuple[str, ...], ...] = ("all",)
    known: tuple[str, ...] = ()
    entities: str | None = None
    relations: str | None = None
    type_constraints: str | None = None
    candidates: str | None = None
    columns: str = "entities"
    column_labels: str | None = None
    outside: str = "error"
    unknown: str = "error"
    min_answers: int | None = None
    say: Callable[[str], None] = field(default=lambda text: None, compare=False)
    progress: bool | None = None
    n_columns: Callable[[], int] | None = field(default=None, compare=False)

    @property
    def lists(self) -> dict[str, list[str]]:
        """Files to read in addition to the graph, a list per option."""
        names = ("entities", "relations", "type_constraints", "candidates", "column_labels")
        paths = {name: getattr(self, name) for name in names}
        single = {name: [] if path is None else [path] for name, path in paths.items()}
        return {"known": list(self.known), **single}

    @contextmanager
    def with_local_copy(self) -> Iterator[QuestionRequest]:
        """Yield the request; a graph at a URL is replaced by a local copy."""
        form, graph = split_format(self.graph)
        with local_copy(graph, folders=True) as copy:
            yield replace(self, graph=f"{form}{copy}") if is_location(graph) else self

    @property
    def folders(self) -> dict[str, str]:
        """Input folders, and what they contain."""
        return {split_format(self.graph)[1]: "the graph's folder"}

    def ask(self, n_rows: int, n_columns: int) -> Questions:
        """Read the questions, for scores of this shape; (0, 0) if the shape is not known yet."""
        n = (lambda: n_columns) if n_columns else None
        return replace(self, n_columns=n).questions()

    def questions(self) -> Questions:
        """Read the graph and its questions with a single filter."""
        graph, options = self._read()
        is_default = self.context is not None and self.filters == ("all",)
        filter_ = None if is_default else parse_filter(self.filters[0])
        return self._restrict(graph.questions(self.split, self.sides, filter=filter_, **options))

    def questions_by_filter(self) -> dict[str, Questions]:
        """Read the graph once, and its questions with every filter, by name of the filter."""
        graph, options = self._read()
        several = graph.questions_by_filter(
            [parse_filter(text) for text in self.filters], self.split, sides=self.sides, **options
        )
        return {name: self._restrict(questions) for name, questions in several.items()}

    def _read(self) -> tuple[Graph, dict[str, Any]]:
        """Read the graph; return it and further arguments of its method `questions`."""
        graph = self._add_numbered_entities(
            Graph.read(self.graph, progress=self.progress, used=self.known)
        )
        options = {name: getattr(self, name) for name in ("known", "unknown", "context")}
        for kind, path in (("entities", self.entities), ("relations", self.relations)):
            if path is not None:
                options[kind], missed = read_labels(path, getattr(graph, kind), self.unknown)
                if missed:
                    self.say(f"{path}: {missed:,} {kind} are not in the graph; ignored")
        if self.column_labels is not None:
            if self.columns == "candidates":
                raise UsageError(
                    f"{argument('column_labels')} orders the columns of all entities, but with "
                    f"{argument('columns', 'candidates', option='score_columns')} a row has only "
                    "its candidates; give one of the two"
                )
            labels = graph.relations if self.sides == "relation" else graph.entities
            options["columns"] = read_column_order(self.column_labels, labels)
        return graph, options

    def _add_numbered_entities(self, graph: Graph) -> Graph:
        """Add an entity for each further column of the scores, if entities are named by numbers."""
        by_entity = self.columns == "entities" and self.sides != "relation"
        if self.n_columns is None or not graph.has_open_end or not by_entity or self.column_labels:
            return graph
        n, largest = self.n_columns(), int(graph.entities[-1])
        if n <= max(graph.n_entities, largest):
            return graph
        self.say(
            f"scores have {n:,} columns, so column e is entity e: {n - graph.n_entities:,} numbers "
            "that no fact names are candidates, too"
        )
        return graph.with_entities(n)

    def _restrict(self, questions: Questions) -> Questions:
        """Restrict the candidates of questions if the options demand it."""
        if self.type_constraints and self.candidates:
            raise UsageError(
                f"{argument('type_constraints')} and {argument('candidates')} both list "
                "candidates; "
                "give one"
            )
        if self.columns == "candidates" and not self.candidates:
            raise UsageError(
                f"{argument('columns', 'candidates', option='score_columns')} needs "
                f"{argument('candidates')}"
            )
        if self.type_constraints or self.candidates:
            questions = questions.restrict(
                type_constraints=self.type_constraints,
                candidates=self.candidates,
                columns=self.columns,
                outside=self.outside,
                unknown=self.unknown,
            )
        return _keep_well_answered(questions, self.min_answers)


def _keep_well_answered(questions: Questions, least: int | None) -> Questions:
    """Keep the questions with `least` or more answers; None: all."""
    return questions if least is None else questions.restrict(min_answers=least)


def filter_name(text: str | tuple[str, ...]) -> str:
    """Return the name of a filter in `Graph.questions_by_filter`, such as ``train+valid``."""
    names = parse_filter(text)
    return names if isinstance(names, str) else "+".join(names)


def parse_filter(text: str | tuple[str, ...]) -> str | tuple[str, ...]:
    """Parse the text of ``--filter``: a protocol, or several names of splits."""
    if isinstance(text, tuple):
        return text
    names = tuple(name.strip() for name in text.split(","))
    if not all(names):
        raise UsageError(
            f"{argument('filter', text)} names no split; give all, test, valid, raw, or names of "
            "splits, "
            "such as train,valid"
        )
    return names[0] if len(names) == 1 else names


@dataclass(frozen=True)
class AnswerRequest:
    """The options of `kgtrec rank` that define questions without a graph."""

    questions: str | None = None
    qrels: str | None = None
    queries: str | None = None
    documents: str | None = None
    candidates: str | None = None
    level: int = 1
    known_has_answers: bool = False
    exclude_query_document: bool = False
    min_answers: int | None = None

    folders: ClassVar[dict[str, str]] = {}  # input folders, and what they contain

    @property
    def files(self) -> dict[str, str]:
        """Files to read, by option."""
        names = ("questions", "qrels", "queries", "documents", "candidates")
        paths = {name: getattr(self, name) for name in names}
        return {name: path for name, path in paths.items() if path is not None}

    @contextmanager
    def with_local_copy(self) -> Iterator[AnswerRequest]:
        """Yield the request; its files need no copy."""
        yield self

    def ask(self, n_rows: int, n_columns: int) -> Questions:
        """Read the questions, for scores of this shape."""
        path = self.candidates or self.documents
        if self.qrels is not None and path is None:
            raise UsageError(
                f"{argument('qrels')} needs {argument('documents')}: the names of the documents, "
                "in the order of the "
                "columns"
            )
        labels: Any = n_columns if path is None else read_names(path, n_columns)
        ids = None if self.queries is None else list(read_names(self.queries, n_rows))
        questions = Questions.from_answers(
            self.questions or self.qrels,
            labels=labels,
            ids=ids,
            level=self.level,
            known_has_answers=self.known_has_answers,
            exclude_query_document=self.exclude_query_document,
        )
        return _keep_well_answered(questions, self.min_answers)
