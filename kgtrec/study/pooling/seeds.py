"""Seed triples drawn from a test split, and their questions (Zhou et al. 2022, section 3.1).

Runs number their questions over a whole split (see `kgtrec convert`); the seeds, and their
questions, are a part of it. Pools and qrels use the questions of the seeds, numbered from 0.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kgtrec._internal.arguments import GRAPH, check_seed, require_type
from kgtrec._internal.arrays import Array, Int32, Int64, Integers
from kgtrec._internal.csr import Csr, find_sorted
from kgtrec._internal.table import ShownAsTables, ShownInLines, Table
from kgtrec.errors import InputError, PathName, UsageError, refuse_if
from kgtrec.graph.graph import GraphData
from kgtrec.graph.statistics.relations import kl_divergence
from kgtrec.graph.triples import as_triples, check_ids, drop_duplicates, pack_triples
from kgtrec.questions.api import Graph, Questions
from kgtrec.study.pooling.edited_files import EditedFile, lines_of_triples, write_triples


@dataclass(frozen=True, eq=False)
class SeedSample(ShownAsTables):
    """Triples drawn from a split.

    - rows, int64 (n,): Rows of the split, from 0, ascending.
    """

    graph: Graph
    split: str
    rows: Int64

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def triples(self) -> Int32:
        """The seed triples in the order of the split, shape (n, 3)."""
        return self.graph.split(self.split)[self.rows]

    @property
    def divergence(self) -> float:
        """KL(split || sample) of the relation distributions, in nats, with add-one smoothing."""
        drawn = np.bincount(self.triples[:, 1], minlength=self.graph.n_relations)
        return kl_divergence(self.graph.relation_counts(self.split), drawn)

    def table(self) -> Table:
        """Return a table of the sizes of the split and of the sample."""
        whole, drawn = self.graph.split(self.split), self.triples
        rows = [
            (name, len(triples), *_sizes(triples))
            for name, triples in ((self.split, whole), ("sample", drawn))
        ]
        return Table.from_rows("set, triples, relations, entities, questions", rows)

    def write(self, path: PathName) -> None:
        """Write lines as in a split, in the order of columns that the graph declares."""
        write_triples(path, self.graph, self.triples)


def sample_seeds(
    graph: Graph,
    share: float | None = None,
    *,
    size: int | None = None,
    seed: int = 42,
    split: str = "test",
    by_relation: bool = False,
) -> SeedSample:
    """Draw seed triples from a split, without replacement.

    With a share of 0.05, the seed 42 and FB15k-237 this is FB-Test-S, triple for triple. Python's
    `random.sample` draws the rows; they are in the order of the split.

    Parameters
    ----------
    graph : Graph
    share : float, optional
        Share of the split, above 0 and up to 1; the number of triples is rounded down. Default:
        0.05, unless there is a size.
    size : int, optional
        Instead of a share: the number of triples.
    seed : int
        Seed of Python's random numbers.
    split : str
    by_relation : bool
        Give every relation its share of the split in the sample; the largest remainders round up.
        Without it, all triples are equally likely.

    Raises
    ------
    UsageError
        Both a share and a size; one out of range, or too small for one triple; a seed that is not a
        whole number; a split that the graph lacks.
    """
    require_type("graph", graph, GraphData, GRAPH)
    triples = graph.split(split)
    start = check_seed(seed)
    count = _size(share, size, len(triples), split)
    source = random.Random(start)
    if by_relation:
        relations = triples[:, 1].astype(np.int64)
        rows = _draw_by_relation(source, relations, count)
    else:
        rows = source.sample(range(len(triples)), count)
    return SeedSample(graph, split, np.array(sorted(rows), np.int64))


def _size(share: float | None, size: int | None, total: int, split: str) -> int:
    """Return the number of triples to draw; UsageError if the share or size is out of range."""
    part = 0.05 if share is None else share
    fits = 0 < part <= 1
    count = math.floor(part * total + 1e-9) if fits else 0  # 0.29 * 100 is a little less than 29
    refuse_if(
        (
            share is not None and size is not None,
            f"a share ({part:g}) and a size ({size}) were given; give only one of them",
        ),
        (
            size is not None and not 1 <= size <= total,
            f"size {size} is out of range; give 1 to {total}, the triples of split {split!r}",
        ),
        (
            not fits,
            f"share {part:g} is out of range; give one above 0, up to 1, such as 0.05 for 5 % of "
            "the split",
        ),
        (
            size is None and fits and not count,
            f"share {part:g} of the {total:,} triples of split {split!r} is less than one triple; "
            "give a larger share, or a size",
        ),
    )
    return count if size is None else size


def _draw_by_relation(source: random.Random, relations: Int64, size: int) -> list[int]:
    """Draw rows so that each relation has its share; return them relation by relation."""
    counts = np.bincount(relations).tolist()
    total = len(relations)
    quotas = [size * count // total for count in counts]
    remainders = [size * count % total for count in counts]
    # Larger remainders first; for equal ones, lower ids first.
    order = sorted(range(len(counts)), key=lambda relation: (-remainders[relation], relation))
    for relation in order[: size - sum(quotas)]:
        quotas[relation] += 1
    members = np.split(np.argsort(relations, kind="stable"), np.cumsum(counts)[:-1])
    rows: list[int] = []
    for rows_of_relation, quota in zip(members, quotas, strict=True):
        rows += source.sample(rows_of_relation.tolist(), quota)
    return rows


def _sizes(triples: Array) -> tuple[int, int, int]:
    """Count the relations, entities and questions of triples."""
    wide = triples.astype(np.int64)
    questions = sum(len(np.unique(wide[:, [1, end]], axis=0)) for end in (0, 2))
    return len(np.unique(wide[:, 1])), len(np.unique(wide[:, [0, 2]])), questions


Names = Mapping[int, str]
"""Names of questions in runs, by the keys of `question_keys`."""


def question_keys(graph: GraphData, side: Any, entity: Integers, relation: Integers) -> Int64:
    """Return one number per question, from its side, relation and given entity; int64 (n,).

    The side is 0 if the question asks for the head, and 1 if it asks for the tail.
    """
    of_relation = np.asarray(side, np.int64) * graph.n_relations + relation
    return of_relation * graph.n_entities + entity


def keys_of(questions: Questions) -> Int64:
    """Return the key of each question, int64 (n,)."""
    return question_keys(questions.graph, questions.side, questions.entity, questions.relation)


def questions_of(graph: Graph, triples: Integers) -> tuple[Int64, Int64]:
    """Return the keys of each triple's head and tail question, and their answers; (n, 2) each."""
    head, relation, tail = triples.astype(np.int64).T
    keys = question_keys(graph, 0, tail, relation), question_keys(graph, 1, head, relation)
    return np.stack(keys, axis=1), np.stack([head, tail], axis=1)


def find_indices(keys: Int64, wanted: Int64) -> Int64:
    """Return the first index of each wanted key in `keys`, in any order; -1 if it is missing."""
    order = np.argsort(keys, kind="stable")
    indices = find_sorted(keys[order], wanted)
    return np.where(indices < 0, -1, order[indices])


@dataclass(frozen=True, eq=False)
class SeedQuestions(ShownInLines):
    """Questions of seed triples, and their names in runs.

    - graph: The graph with all of its splits.
    - questions: Questions for heads, then for tails, each in order of first appearance among the
      seeds. Their answers are the seeds; `questions.removed` contains the other known answers of
      all splits. They belong to a graph with the same ids, whose split contains only the seeds.
    - elsewhere: Known answers of each question in other splits.
    - seeds, int32 (n, 3): Distinct seed triples, in their order.
    - names: Names in runs of all questions that have one, also of other triples.
    """

    graph: Graph
    questions: Questions
    elsewhere: Csr
    seeds: Int32
    split: str
    names: Names

    def __len__(self) -> int:
        return len(self.questions)

    def _lines(self) -> tuple[str, str]:
        return (
            f"{len(self):,} questions of {len(self.seeds):,} seed triples",
            f"of {self.graph.name or 'a graph'}, {self.split}",
        )

    @property
    def keys(self) -> Int64:
        """The key of each question."""
        return keys_of(self.questions)

    @property
    def ids(self) -> list[str]:
        """Name of each question in runs; UsageError if a question has no name."""
        keys = self.keys.tolist()
        lacking = [key for key in keys if key not in self.names]
        if lacking:
            raise UsageError(
                f"{len(lacking):,} of {len(self):,} seed questions have no name in the question "
                f"list; the first is {question_text(self.graph, lacking[0])}; give the list that "
                "the runs were made with"
            )
        return [self.names[key] for key in keys]


def seed_questions(
    graph: Graph,
    seeds: npt.ArrayLike,
    split: str = "test",
    *,
    names: Names | None = None,
) -> SeedQuestions:
    """Return the questions of seed triples; all triples of the graph's splits are known.

    Parameters
    ----------
    graph : Graph
    seeds : int array (n, 3)
        Triples of the split.
    split : str
    names : mapping of int to str, optional
        Names of the questions in runs, by their keys
        (`kgtrec.study.pooling.seeds.question_keys`). Default: the names that `kgtrec convert` and
        `kgtrec rank` use for the split.

    Raises
    ------
    InputError
        No seed, or one that is not in the split.
    """
    require_type("graph", graph, GraphData, GRAPH)
    whole = graph.split(split)
    rows = check_ids("seeds", as_triples("seeds", seeds), graph.n_entities, graph.n_relations)
    rows = drop_duplicates(rows)
    if not len(rows):
        raise InputError("there are no seed triples; draw some with `kgtrec sample`")
    keys = pack_triples(np.concatenate([whole, rows]), graph.n_entities, graph.n_relations)
    missing = np.flatnonzero(~np.isin(keys[len(whole) :], keys[: len(whole)]))
    if len(missing):
        first = " ".join(next(iter(lines_of_triples(graph, rows[missing[:1]]))))
        raise InputError(
            f"{len(missing):,} of {len(rows):,} seed triples are not in split {split!r}; the "
            f"first is {first!r}; give the split that they come from"
        )
    seed_graph = replace_split(graph, rows, split)
    questions = seed_graph.questions(split, extra_known=whole)
    elsewhere = seed_graph.questions(split).removed
    names = split_names(graph, split) if names is None else names
    return SeedQuestions(graph, questions, elsewhere, rows, split, names)


def replace_split(graph: Graph, rows: Int32, split: str) -> Graph:
    """Return the graph with the triples `rows` in one split, and the same ids."""
    splits = {name: rows if name == split else triples for name, triples in graph.splits.items()}
    other = Graph(splits, dict.fromkeys(splits, 0), graph.entities, graph.relations)
    other.name = graph.name
    return other


def split_names(graph: Graph, split: str) -> Names:
    """Return the names of a split's questions that `kgtrec convert` writes."""
    questions = graph.questions(split)
    return dict(zip(keys_of(questions).tolist(), questions.ids, strict=True))


def question_text(graph: Graph, key: int) -> str:
    """Return the text of a question for messages, in quotes, such as ``'(a, r, ?)'``."""
    return repr(describe_question(graph, key, {}))


def describe_question(graph: Graph, key: int, names: Mapping[str, str]) -> str:
    """Return the text of a question, such as ``(a, r, ?)``; `names` replaces labels of entities."""
    of_relation, entity = divmod(key, graph.n_entities)
    side, relation = divmod(of_relation, graph.n_relations)
    known, label = graph.entities[entity], graph.relations[relation]
    known = names.get(known, known)
    return f"({known}, {label}, ?)" if side else f"(?, {label}, {known})"


def read_question_ids(path: PathName, graph: Graph) -> Names:
    """Read names of questions from lines ``name<TAB>entity<TAB>relation`` of `kgtrec convert`.

    Names that begin with "head" ask for the head, those with "tail" for the tail.
    """
    hint = "write name<TAB>entity<TAB>relation with names headN or tailN, as `kgtrec convert` does"
    file = EditedFile(path, hint)
    rows = [*file.rows(("name", "entity", "relation"))]
    for number, cells in rows:
        if not cells["name"].startswith(("head", "tail")):
            file.fault(number, f"the name {cells['name']!r}")
    file.refuse_faults()
    entities = file.ids(graph.entities.docnos, "entity", rows)
    relations = file.ids(graph.relations.docnos, "relation", rows)
    file.refuse_faults()
    names: dict[int, str] = {}
    sides = [cells["name"].startswith("tail") for _, cells in rows]
    keys = question_keys(graph, sides, entities, relations).tolist()
    for (line, cells), key in zip(rows, keys, strict=True):
        name = cells["name"]
        for key_of_line, shown in ((name, repr(name)), (key, question_text(graph, key))):
            file.is_new(line, key_of_line, shown, "give each question one line")
        names[key] = name
    file.refuse_faults()
    return names
