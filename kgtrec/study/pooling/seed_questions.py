"""Questions of seed triples, and how runs name them.

Runs number their questions over a whole split (see `kgtrec convert`); seeds are a part of it, and
their questions fewer. Pools and qrels are by the seeds' questions, numbered from 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from kgtrec._internal.csr import Csr
from kgtrec._internal.notebook import ShownInLines
from kgtrec.errors import FileError, InputError, UsageError
from kgtrec.graph.id_files import lines_of, text_of
from kgtrec.graph.triples import drop_duplicates, pack_triples
from kgtrec.questions.api import Graph
from kgtrec.study.pooling.triple_files import label_ids, triple_array, triple_text

if TYPE_CHECKING:
    from kgtrec.questions.api import Questions

__all__ = [
    "Key", "SeedQuestions", "question_key", "question_text", "read_question_ids", "replaced_split",
    "seed_questions", "split_names",
]  # fmt: skip

Key = tuple[int, int, int]
"""Side (0: the head is asked, 1: the tail), given entity and relation of a question."""


@dataclass(frozen=True, eq=False)
class SeedQuestions(ShownInLines):
    """Questions of seed triples, and how runs name them.

    Attributes
    ----------
    graph : Graph
        With all of its splits.
    questions : Questions
        Head side first, each in order of first appearance among the seeds. Their answers are the
        seeds; what any split knows besides is in `questions.removed`. They are of a graph whose
        split holds the seeds alone, with the same ids.
    elsewhere : Csr
        What other splits than the seeds' know of each question.
    seeds : int32 array (n, 3)
        Distinct, in their order.
    split : str
        The split of the graph from which they come.
    names : dict of (side, entity, relation) to str
        Names in runs of all questions that have one, those of other triples too.
    """

    graph: Graph
    questions: Questions
    elsewhere: Csr
    seeds: npt.NDArray[np.int32]
    split: str
    names: Mapping[Key, str]

    def __len__(self) -> int:
        return len(self.questions)

    def _lines(self) -> tuple[str, str]:
        return (
            f"{len(self):,} questions of {len(self.seeds):,} seed triples",
            f"of {self.graph.name or 'a graph'}, {self.split}",
        )

    @property
    def keys(self) -> list[Key]:
        """Side, given entity and relation of each question."""
        questions = self.questions
        columns = (questions.side.tolist(), questions.entity.tolist(), questions.relation.tolist())
        return list(zip(*columns, strict=True))

    @property
    def ids(self) -> list[str]:
        """Name of each question in runs; UsageError if one has none."""
        lacking = [key for key in self.keys if key not in self.names]
        if lacking:
            raise UsageError(
                f"{len(lacking):,} of {len(self):,} seed questions have no name in the question "
                f"list, the first is {question_text(self.graph, lacking[0])}; "
                "give the list that the runs were made with"
            )
        return [self.names[key] for key in self.keys]


def seed_questions(
    graph: Graph,
    seeds: npt.ArrayLike,
    split: str = "test",
    *,
    names: Mapping[Key, str] | None = None,
) -> SeedQuestions:
    """Questions of seed triples, with all that the graph's splits know as known.

    Parameters
    ----------
    graph : Graph
    seeds : int array (n, 3)
        Triples of the split.
    split : str
    names : mapping of (side, entity, relation) to str, optional
        How runs name the questions; by default as `kgtrec convert` and `kgtrec rank` do for the
        split.

    Raises
    ------
    InputError
        No seed, or one that is not in the split.
    """
    whole = graph.split(split)
    rows = triple_array(graph, seeds, "seeds")
    rows = drop_duplicates(rows)
    if not len(rows):
        raise InputError("there is no seed triple; draw some with `kgtrec sample`")
    keys = pack_triples(np.concatenate([whole, rows]), graph.n_entities, graph.n_relations)
    missing = np.flatnonzero(~np.isin(keys[len(whole) :], keys[: len(whole)]))
    if len(missing):
        raise InputError(
            f"{len(missing):,} of {len(rows):,} seed triples are not in split {split!r}, the first "
            f"is {triple_text(graph, rows[missing[0]])!r}; name the split that they come from"
        )
    own = replaced_split(graph, rows, split)
    questions = own.questions(split, extra_known=whole)
    elsewhere = own.questions(split).removed
    names = split_names(graph, split) if names is None else names
    return SeedQuestions(graph, questions, elsewhere, rows, split, names)


def replaced_split(graph: Graph, rows: npt.NDArray[np.int32], split: str) -> Graph:
    """The graph with other triples in one split, and the same ids."""
    splits = {name: rows if name == split else own for name, own in graph.splits.items()}
    other = Graph(splits, dict.fromkeys(splits, 0), graph.entities, graph.relations)
    other.name = graph.name
    return other


def split_names(graph: Graph, split: str) -> dict[Key, str]:
    """Names of a split's questions, as `kgtrec convert` writes them."""
    questions = graph.questions(split)
    columns = (questions.side.tolist(), questions.entity.tolist(), questions.relation.tolist())
    return dict(zip(zip(*columns, strict=True), questions.ids, strict=True))


def question_key(triple: Sequence[int], side: int) -> Key:
    """The question of a triple that asks for its head (0) or tail (1)."""
    head, relation, tail = (int(number) for number in triple)
    return side, head if side else tail, relation


def question_text(graph: Graph, key: Key) -> str:
    """A question as people see it, for messages."""
    side, entity, relation = key
    known, label = graph.entities[entity], graph.relations[relation]
    return repr(f"({known}, {label}, ?)" if side else f"(?, {label}, {known})")


def read_question_ids(path: str | PathLike[str], graph: Graph) -> dict[Key, str]:
    """Names of questions from lines ``name<TAB>entity<TAB>relation``, as `kgtrec convert` writes.

    Names that begin with "head" ask for the head, those with "tail" for the tail.

    Raises
    ------
    FileError
        Missing, empty, malformed, a label that the graph lacks, or a name or question twice: the
        line is named.
    """
    hint = "write name<TAB>entity<TAB>relation, the name headN or tailN, as `kgtrec convert` does"
    lines, cells = [], []
    for number, raw in lines_of(path):
        row = text_of(raw).split("\t")
        if len(row) != 3 or row[0][:4] not in ("head", "tail"):
            raise FileError(path, number, found=f"{text_of(raw)[:120]!r}", hint=hint)
        lines.append(number)
        cells.append(row)
    if not lines:
        raise FileError(path, found="no question: the file is empty", hint=hint)
    entities, relations = (
        label_ids(path, labels.docnos, what, lines, [row[column] for row in cells]).tolist()
        for column, what, labels in (
            (1, "entity", graph.entities),
            (2, "relation", graph.relations),
        )
    )
    names: dict[Key, str] = {}
    at: dict[str | Key, int] = {}
    for line, (name, *_), entity, relation in zip(lines, cells, entities, relations, strict=True):
        key = int(name.startswith("tail")), entity, relation
        for one in (name, key):
            if at.setdefault(one, line) != line:
                shown = repr(name) if one == name else question_text(graph, key)
                problem = f"{shown} again (line {at[one]} has it)"
                raise FileError(path, line, found=problem, hint="give each question one line")
        names[key] = name
    return names
