"""Convert users' data to `Inputs`: files that workers open, with the requested rows."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from kgtrec._internal.argument_names import argument
from kgtrec._internal.arrays import Int64
from kgtrec._internal.files import atomic_write, map_array, write_array
from kgtrec._internal.locations import fetched, is_location
from kgtrec._version import __version__
from kgtrec.cluster.content_hash import describe_file, hash_text, label_files
from kgtrec.cluster.parts import ONE_THREAD, Inputs
from kgtrec.cluster.question_store import Store, save_questions
from kgtrec.cluster.score_files import FactorFiles, Files, ScoreFiles, describe_scores, save_scores
from kgtrec.errors import InputError, PathName, UsageError, about
from kgtrec.graph.formats import graph_files, split_format
from kgtrec.graph.id_files import read_column_order, read_labels, read_names
from kgtrec.questions.api import Graph, Questions
from kgtrec.questions.questions import require_columns_by_id
from kgtrec.ranking.rank import check_shape, rows_to_rank
from kgtrec.ranking.ranker import check_factors, prepare_rows
from kgtrec.ranking.settings import Settings
from kgtrec.scores.arrays import as_array
from kgtrec.scores.factors import Factors
from kgtrec.scores.files import check_sides


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
        with fetched(graph, folders=True) as copy:
            yield replace(self, graph=f"{form}{copy}") if is_location(graph) else self

    @property
    def folders(self) -> dict[str, str]:
        """Input folders, and what they contain."""
        return {split_format(self.graph)[1]: "the graph's folder"}

    def describe(self) -> dict[str, Any]:
        """Describe the content of all inputs of the questions, in plain JSON types."""
        names = ("split", "sides", "unknown", "columns", "outside", "min_answers")
        splits = graph_files(self.graph)
        labels = label_files(splits, self.lists["type_constraints"])
        return {
            "kgtrec": __version__,
            "graph": Path(self.graph).resolve().name,
            "splits": {name: describe_file(path) for name, path in splits.items()},
            "options": {"filter": self.filters[0], **{name: getattr(self, name) for name in names}},
            "files": {
                option: [[path, describe_file(path)] for path in paths]
                for option, paths in self.lists.items()
            },
            "labels": [[path.name, describe_file(path)] for path in labels],
        }

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

    def describe(self) -> dict[str, Any]:
        """Describe the content of all inputs of the questions, in plain JSON types."""
        files = {option: [path, describe_file(path)] for option, path in self.files.items()}
        names = ("level", "known_has_answers", "exclude_query_document", "min_answers")
        options = {name: getattr(self, name) for name in names}
        return {"kgtrec": __version__, "options": options, "files": files}

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


def open_question_store(
    folder: PathName,
    describe: Callable[[], dict[str, Any]],
    ask: Callable[[], Questions],
    rows: str,
    n_columns: int = 0,
) -> Store:
    """Open the store of a request's questions; write it if it does not exist yet.

    - describe, ask: Methods of the request.
    - rows: Meaning of a row of scores, "questions" or "instances".
    """
    request = describe() | {"n_columns": n_columns}
    key = hash_text(json.dumps([request, rows], sort_keys=True))
    target = Path(folder) / f"questions-{key}"
    if not target.is_dir():
        questions = ask()
        if describe() | {"n_columns": n_columns} != request:
            name = (
                f"graph {request['graph']!r}"
                if "graph" in request
                else (f"questions of {next(iter(request['files'].values()))[0]!r}")
            )
            raise InputError(
                f"{name}: its files changed while they were read; "
                "try again when nothing writes to them"
            )
        target = save_questions(questions, rows, folder, key)
    return Store(target, verify=True)


def fit_files(files: Files, store: Store, higher_is_better: bool = True) -> Files:
    """Select the rows and columns of score files for the questions of a store; check the shape."""
    factors = isinstance(files, FactorFiles)
    questions, rows, n_rows = store.questions(), store.rows, store.n_rows
    selection = rows_to_rank(questions, rows, n_rows, files.n_rows, factors)
    shape = (files.n_rows if selection is None else len(selection), files.n_columns)
    with about(files.location):
        if factors:
            settings = Settings(rows=rows, higher_is_better=higher_is_better)
            check_factors(questions, n_rows, shape, settings)
        else:
            check_shape(questions, rows, n_rows, shape)
    folder = store.folder.resolve().parent
    if selection is not None:
        path = folder / f"rows-{questions.fingerprint}-{rows}-{files.n_rows}.npy"
        files = replace(files, selection=_write_ids(path, selection))
    if questions.column_of is not None:
        path = folder / f"columns-{store.folder.name.removeprefix('questions-')}.npy"
        files = replace(files, columns=_write_ids(path, questions.column_of))
    return files


def _write_ids(path: Path, ids: Int64) -> str:
    """Write numbers to a file unless it holds them; return its path."""
    if not _holds_ids(path, ids):
        with atomic_write(path) as file:
            write_array(file, ids.astype(np.int64))
    return str(path)


def _holds_ids(path: Path, rows: Int64) -> bool:
    """Return whether a file exists and holds these numbers."""
    try:
        return np.array_equal(map_array(path), rows)
    except Exception:  # missing, or damaged in any way
        return False


def build_inputs(
    source: Any, questions: Questions, folder: PathName, settings: Settings = ONE_THREAD
) -> Inputs:
    """Build the inputs of a ranking: write data in memory into a folder, describe data in files."""
    if isinstance(source, Mapping):  # a matrix per side has a row per triple
        settings = replace(settings, rows="instances")
    prepare_rows(questions, settings)  # checks the questions, with the ranker's messages
    store = Store(save_questions(questions, settings.rows, folder))
    return build_inputs_of_store(source, store, folder, settings)


def build_inputs_of_store(
    source: Any, store: Store, folder: PathName, settings: Settings
) -> Inputs:
    """Build the inputs of a ranking of stored questions, which are not copied."""
    if isinstance(source, Mapping) and store.rows != "instances":
        raise UsageError(
            "each side has a matrix with one row per triple, but the questions were stored with "
            f"{argument('rows', 'questions')}; store them with {argument('rows', 'instances')}"
        )
    files = None
    if source is None:
        require_columns_by_id(store.questions(), "a ranking of chunks of scores")
    else:
        files = _save_source(source, store, Path(folder) / "scores")
        files = fit_files(files, store, settings.higher_is_better)
    return Inputs(str(store.folder), files, replace(settings, rows=store.rows))


def _save_source(source: Any, store: Store, folder: Path) -> Files:
    """Return the files of a source of scores; write them if they are in memory.

    If each side has a matrix, use the sides that the questions ask.
    """
    if isinstance(source, (str, PathLike)):
        return describe_scores(source, folder)
    if isinstance(source, Mapping):
        names = check_sides(source, store.questions().sides)
        parts = [save_scores(as_array(source[side]), folder) for side in names]
        matrices = [part for part in parts if isinstance(part, ScoreFiles)]
        first = matrices[0]
        for part in matrices:
            if (part.n_columns, part.dtype) != (first.n_columns, first.dtype):
                raise InputError(
                    f"the scores of the two sides have {first.n_columns} columns of {first.dtype} "
                    f"and {part.n_columns} of {part.dtype}; save both with the same columns and "
                    "dtype"
                )
        return ScoreFiles(tuple(array for part in matrices for array in part.parts))
    if isinstance(source, Factors):
        return save_scores(source, folder)
    if hasattr(source, "__dlpack__") or hasattr(source, "__array__"):
        return save_scores(as_array(source), folder)
    raise UsageError(
        f"scores of type {type(source).__name__} have no file that workers can open; pass a "
        "path, an array, Factors or a Dask array"
    )
