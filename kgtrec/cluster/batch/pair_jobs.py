"""Jobs of pair ranking: a task per relation, on the workers; a finished relation is a file.

In: the request of a job, and a function that loads vectors. Out: the ranks of all its relations, as
`kgtrec.study.rank_pairs` returns them. Relations that fail do not keep others from being ranked and
kept; then the job fails.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kgtrec._internal.files import make_folder, write_text
from kgtrec._internal.text import group_equal, join_names
from kgtrec.cluster.dask.tasks import complete_all
from kgtrec.cluster.dask.workers import TaskOptions
from kgtrec.errors import FilterWarning, InputError, KgtrecError
from kgtrec.questions.api import read_graph
from kgtrec.questions.requests import parse_filter
from kgtrec.study.pairs.merging import merge_pair_ranks
from kgtrec.study.pairs.questions import pair_questions, read_pair_labels, read_vector_order
from kgtrec.study.pairs.rank import PairRanks, rank_pairs

if TYPE_CHECKING:
    from distributed import Client, Future

    from kgtrec._internal.arrays import Int64
    from kgtrec.questions.api import Graph

LoadVectors = Callable[..., Any]
"""`kgtrec.integrations.embeddings.load_pair_vectors`, or a function like it, of a module."""

PAIR_KEYS = ("pairs", "split", "filter", "heads", "tails", "relations", "unknown")
"""Keys of a protocol of pairs."""

_MOST_SHOWN = 3  # different faults in a message


@dataclass(frozen=True)
class PairRequest:
    """What a job of pairs asks: the options of `kgtrec pairs`.

    - filter: Splits whose pairs are known.
    - labels: Files of labels by option: heads, tails, relations.
    - columns: File with the label of each row of the vectors; None if they are in id order.
    - vectors: Options of the model's formula, such as ``model``, and its configuration.
    """

    graph: str
    split: str
    filter: str | tuple[str, ...]
    labels: tuple[tuple[str, str], ...]
    unknown: str
    columns: str | None
    vectors: tuple[tuple[str, Any], ...]
    scores: str

    def read(self) -> tuple[Graph, dict[str, Any]]:
        """Return the graph, and the arguments of `rank_pairs` that select questions."""
        graph = read_graph(self.graph)
        listed, _ = read_pair_labels(graph, dict(self.labels), self.unknown)
        return graph, {"split": self.split, "filter": parse_filter(self.filter), **listed}

    def read_columns(self, graph: Graph) -> Int64 | None:
        """Return the entity of each row of the vectors, int64 (rows,); None in id order."""
        return read_vector_order(graph, self.columns)


@dataclass(frozen=True)
class _RelationTask:
    """The task of a relation."""

    relation: int
    name: str

    def __str__(self) -> str:
        return f"relation {self.name!r}"


@dataclass(frozen=True)
class _Failure:
    """The message of a relation that cannot be ranked."""

    text: str


class _PairWorkers:
    """The workers as `complete_all` uses them; every worker reads the files itself."""

    inputs = None

    def __init__(self, client: Client, tasks: TaskOptions) -> None:
        self.client, self.tasks = client, tasks

    def prepare(self) -> None:
        """Do nothing, because nothing is sent to the workers in advance."""

    def fetch(self, future: Future) -> Any:
        """Return the value of a finished task."""
        return future.result()


def rank_relations(
    request: PairRequest,
    client: Client,
    folder: Path,
    inputs: str,
    load: LoadVectors,
    tasks: TaskOptions,
    watch: Callable[[int, int], None],
) -> PairRanks:
    """Rank the relations of a job that have no file yet, and merge the ranks of all.

    - folder: Has a file per finished relation, of these inputs only.
    - inputs: Hash of everything that the ranks depend on.
    - watch: Called with the number of relations left, and of threads.
    """
    graph, options = request.read()
    request.read_columns(graph)  # a fault ends the job before its relations are ranked
    questions = pair_questions(graph, **options)
    works = [_RelationTask(int(ids), questions.name(ids)) for ids in questions.relations]
    paths = {work: folder / inputs / f"{work.relation}.part" for work in works}
    make_folder(folder / inputs)
    left = [work for work in works if not paths[work].exists()]
    n_left, failures = len(left), dict[_RelationTask, str]()

    def submit(work: _RelationTask) -> Future:
        arguments = (request, inputs, load, work.relation)
        return client.submit(_rank_relation, *arguments, pure=False, retries=tasks.retries)

    def report() -> None:
        watch(n_left, sum(client.nthreads().values()))

    report()
    for work, ranked in complete_all(_PairWorkers(client, tasks), left, submit):
        n_left -= 1
        if isinstance(ranked, _Failure):
            failures[work] = ranked.text
        else:
            write_text(paths[work], ranked)
        report()
    if failures:
        raise InputError(_explain(failures, len(works)))
    return merge_pair_ranks([paths[work] for work in works], graph)


def _explain(failures: Mapping[_RelationTask, str], n_relations: int) -> str:
    """Return the message of a job with failed relations. Equal faults are told once."""
    head = f"{len(failures)} of {n_relations} relations failed"
    groups = group_equal((work.name, text) for work, text in failures.items())
    if len(groups) == 1 and len(failures) > 1:
        return f"{head}, all alike: {next(iter(groups))}"
    shown = [
        f"relation{'s' * (len(names) > 1)} {join_names([*map(repr, names)])}: {text}"
        for text, names in [*groups.items()][:_MOST_SHOWN]
    ]
    more = len(failures) - sum(len(names) for names in [*groups.values()][:_MOST_SHOWN])
    rest = f"; and {more} more" if more else ""
    return f"{head}: {'; '.join(shown)}{rest}"


def _rank_relation(request: PairRequest, inputs: str, load: LoadVectors, relation: int) -> Any:
    """Rank a relation; return the lines of its file, or a `_Failure`. This runs on a worker."""
    try:
        graph, options, scores = _read_all(request, inputs, load)
        options = {**options, "relations": [relation]}
        with warnings.catch_warnings():  # the process that started the batch has warned
            warnings.simplefilter("ignore", FilterWarning)
            ranks = rank_pairs(scores, graph, threads=1, progress=False, **options)
    except KgtrecError as error:
        return _Failure(" ".join(str(error).splitlines()))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ranks.tsv"
        ranks.write(path)
        return path.read_text("utf-8", "surrogateescape")


@lru_cache(maxsize=1)
def _read_all(request: PairRequest, inputs: str, load: LoadVectors) -> Any:
    """Return the graph, the options of the questions, and the scores.

    A worker keeps those of its last job. ``inputs`` makes it read files again that have changed.
    """
    graph, options = request.read()
    columns = request.read_columns(graph)
    return graph, options, load(request.scores, graph, columns=columns, **dict(request.vectors))
