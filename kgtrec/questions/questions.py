"""Sides: which column of a fact a question asks for, and which pair of columns it is given.

For a qualifier's value, the facts are those of `GraphData.qualifier_facts`: a statement stands
where others have their head, the qualifier relation and value where they have relation and tail.

Column order: which column of a model's scores is whose, declared once by its labels or ids.

Questions of a split: what is asked, the answers, and what else is known.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kgtrec._internal.csr import Csr, contains, inverse, to_keys
from kgtrec._internal.table import lines_as_html
from kgtrec.errors import InputError, UsageError
from kgtrec.graph.triples import as_triples, checked_ids, hash_array

if TYPE_CHECKING:
    from kgtrec.graph.graph import GraphData
    from kgtrec.graph.labels import Labels
    from kgtrec.questions.candidates import CandidateLists

Int64 = npt.NDArray[np.int64]
Int32 = npt.NDArray[np.int32]

NAMES = ("head", "tail", "relation", "qualifier")
"""What a side is called, by its code."""

QUALIFIER = NAMES.index("qualifier")

SIDES = {
    "head": (0,), "tail": (1,), "both": (0, 1), "relation": (2,), "qualifier": (QUALIFIER,),
}  # fmt: skip
"""Codes of the sides that a name covers."""

ASKED = (0, 2, 1, 2)
"""Column of a fact that is asked, by side."""

GIVEN = ((2, 1), (0, 1), (0, 2), (0, 1))
"""Columns of a fact that are given, by side: an entity (or statement), then the relation or the
other entity."""


def facts_of(graph: GraphData, split: str, side: int) -> Int32:
    """The facts of a split that a side asks: int32, shape (n, 3), or (n, 4) with their context."""
    return graph.qualifier_facts(split) if side == QUALIFIER else graph.facts[split]


def label_counts(graph: GraphData, side: int) -> tuple[int, int, int]:
    """How many labels each column of a side's facts chooses from."""
    first = len(graph.statements) if side == QUALIFIER else graph.n_entities
    return first, graph.n_relations, graph.n_entities


def given_keys(graph: GraphData, triples: npt.NDArray[np.integer], side: int) -> Int64:
    """One number for what each triple gives a question of a side: int64, shape (n,)."""
    first, second = GIVEN[side]
    keys: Int64 = triples[:, first].astype(np.int64)
    keys *= label_counts(graph, side)[second]
    keys += triples[:, second]
    return keys


def question_keys(
    graph: GraphData, facts: npt.NDArray[np.integer], side: int, n_contexts: int = 1
) -> Int64:
    """One number for the question of a side that each fact answers; `n_contexts` above 1: at the
    context in its fourth column."""
    keys = given_keys(graph, facts, side)
    if n_contexts > 1:
        keys *= n_contexts
        keys += facts[:, 3]
    return keys


def given_pair(graph: GraphData, keys: Int64, side: int) -> tuple[Int32, Int32]:
    """The ids of the two columns of `GIVEN` that such numbers stand for: int32, shape (n,) each."""
    size = label_counts(graph, side)[GIVEN[side][1]]
    return (keys // size).astype(np.int32), (keys % size).astype(np.int32)


_PLURAL = {"entity": "entities", "relation": "relations"}


def column_of_label(columns: Any, labels: Labels, kind: str = "entity") -> Int64:
    """The column of each entity (or relation): int64, shape (len(labels),)."""
    if isinstance(columns, (str, bytes)) or not isinstance(columns, Iterable):
        raise InputError(
            f"columns={columns!r} is not an order of {_PLURAL[kind]}; give their labels or ids in "
            "the order of the columns, or a mapping of label to column"
        )
    if isinstance(columns, Mapping):
        places, names = np.asarray(list(columns.values())), list(columns)
        if places.dtype.kind not in "iu" or sorted(places.tolist()) != list(range(len(places))):
            raise InputError(
                f"columns maps {len(names)} labels to columns that are not 0 to "
                f"{len(names) - 1}, each once; give every label a column of its own"
            )
        columns = [names[at] for at in np.argsort(places).tolist()]
    return inverse(_each_once(_as_ids(columns, labels, kind), labels, kind))


def _as_ids(columns: Any, labels: Labels, kind: str) -> Int64:
    values = columns if isinstance(columns, np.ndarray) else list(columns)
    if len(values) and isinstance(values[0], str):
        try:
            return labels.ids(values if isinstance(values, list) else values.tolist())
        except InputError as error:
            raise InputError(f"columns: {error}") from None
    ids = np.asarray(values)
    if ids.ndim != 1 or ids.dtype.kind not in "iu":
        raise InputError(
            f"columns have shape {ids.shape} and dtype {ids.dtype}; give the label or the id of "
            f"the {kind} of each column"
        )
    wrong = np.flatnonzero((ids < 0) | (ids >= len(labels)))
    if len(wrong):
        raise InputError(
            f"column {wrong[0]} is declared as {kind} {ids[wrong[0]]}, which is not an id below "
            f"{len(labels)}"
        )
    return ids.astype(np.int64)


def _each_once(ids: Int64, labels: Labels, kind: str) -> Int64:
    counts = np.bincount(ids, minlength=len(labels))
    if (counts > 1).any():
        twice = int(np.flatnonzero(counts > 1)[0])
        first, second = np.flatnonzero(ids == twice)[:2].tolist()
        raise InputError(
            f"columns {first} and {second} are both declared as {labels[twice]!r} (id "
            f"{twice}); every {kind} has one column"
        )
    if not counts.all():
        missing = np.flatnonzero(counts == 0)
        named = ", ".join(repr(label) for label in labels[missing[:5]])
        raise InputError(
            f"{len(missing)} of {len(labels)} {_PLURAL[kind]} have no column: {named}"
            f"{', ...' if len(missing) > 5 else ''}; a model that numbers only what it was trained "
            "on needs a column for them too (a constant, such as -inf), or a graph without them"
        )
    return ids


def require_columns_by_id(questions: QuestionData, what: str) -> None:
    """UsageError if the columns of these questions are declared in another order than by id."""
    if questions.column_of is not None:
        raise UsageError(
            f"{what} takes columns in id order, and these questions declare another (columns=); "
            "leave it out, and hand over columns by id"
        )


Integers = npt.NDArray[np.integer[Any]]


@dataclass(frozen=True, eq=False, repr=False)
class QuestionData:
    """Aggregated questions of one split as data.

    `kgtrec.Questions`, which adds restrictions, says what the attributes are.
    """

    graph: GraphData
    split: str
    sides: str
    filter_splits: tuple[str, ...]
    n_extra_known: int
    side: npt.NDArray[np.int64]
    given: tuple[Int32, Int32]
    answers: Csr
    known: Csr
    removed: Csr
    instance_question: Integers
    instance_triple: Integers
    triple_rows: Integers
    kept: Int64 | None = None
    candidate_lists: CandidateLists | None = None
    outside: npt.NDArray[np.bool_] | None = None
    full_candidates: Int64 | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    column_of: Int64 | None = None
    context: Int32 | None = None

    def __len__(self) -> int:
        return len(self.side)

    def __repr__(self) -> str:
        filtered = f"filter {', '.join(self.filter_splits)}" if self.filter_splits else "raw"
        if "context" in self.details and self.filter_splits:
            how = "at a time" if self.details["context"] == "time" else "with qualifiers"
            filtered = f"{how}, {self.details['context_filter']}, {filtered}"
        name = f" of {self.graph.name}" if self.graph.name else ""
        sides = "both sides" if self.sides == "both" else f"{self.sides} side"
        among = "restricted" if self.candidate_lists is not None else f"{self.n_labels:,}"
        return (
            f"Questions{name}, split {self.split}\n"
            f"  {len(self):,} questions, {self.n_instances:,} instances, {sides}\n"
            f"  {filtered}; {among} candidates"
        )

    def _repr_html_(self) -> str:
        return lines_as_html(repr(self))

    @property
    def kind(self) -> str:
        """What candidates are: "entity", or "relation" if the relation is asked."""
        return "relation" if self.sides == "relation" else "entity"

    @property
    def candidate_labels(self) -> Labels:
        """Labels of what may be a candidate, by id: the graph's entities, or its relations."""
        return self.graph.relations if self.kind == "relation" else self.graph.entities

    @property
    def n_entities(self) -> int:
        """Number of entities of the graph."""
        return self.graph.n_entities

    @property
    def n_labels(self) -> int:
        """Number of these labels: the width of a score row, unless it holds listed candidates."""
        return len(self.candidate_labels)

    @property
    def entity(self) -> Int32:
        """The given entity; the head, if the relation is asked: int32, shape (Q,). UsageError if a
        qualifier's value is asked."""
        if self.sides == "qualifier":
            raise UsageError(
                "these questions ask for a qualifier's value (sides='qualifier'): they give a "
                "statement (.statement) and the qualifier's relation; this needs questions that "
                "give an entity"
            )
        return self.given[0]

    @property
    def statement(self) -> Int32:
        """Head, relation and tail of the statement whose qualifier is asked: int32, shape (Q, 3);
        UsageError if none is."""
        if self.sides != "qualifier":
            raise UsageError("only questions for a qualifier's value give a statement; see .entity")
        return self.graph.statements[self.given[0]]

    @property
    def given_terms(self) -> list[tuple[str, Int32]]:
        """What the questions give, term by term: "entity" or "relation", and its ids (Q,)."""
        if self.sides == "qualifier":
            head, relation, tail = self.statement.T
            return [("entity", head), ("relation", relation), ("entity", tail),
                    ("relation", self.given[1])]  # fmt: skip
        kinds = ("entity", "entity" if self.kind == "relation" else "relation")
        return list(zip(kinds, self.given, strict=True))

    @property
    def relation(self) -> Int32:
        """The given relation: int32, shape (Q,); UsageError if it is what is asked."""
        if self.kind == "relation":
            raise UsageError(
                "these questions ask for the relation (sides='relation'): they give a head and a "
                "tail; this needs questions that give the relation"
            )
        return self.given[1]

    @property
    def tail(self) -> Int32:
        """The given tail of questions for the relation: int32, shape (Q,); UsageError of others."""
        if self.kind != "relation":
            raise UsageError("only questions for the relation give a head and a tail; see .entity")
        return self.given[1]

    @property
    def column(self) -> Integers:
        """The given entity as the model numbers it, which is its column: int32 or int64, (Q,)."""
        if self.column_of is None or self.kind == "relation":
            return self.entity
        return self.column_of[self.entity]

    @property
    def n_instances(self) -> int:
        """Number of (question, answer) pairs."""
        return len(self.answers.ids)

    @property
    def triples(self) -> npt.NDArray[np.int32]:
        """The evaluated triples in split order, shape (n, 3); if a qualifier's value is asked,
        number of the statement, relation and value of each."""
        rows = facts_of(self.graph, self.split, SIDES[self.sides][0])[:, :3]
        return rows if self.kept is None else rows[self.kept]

    @cached_property
    def ids(self) -> list[str]:
        """Names of the questions in TREC files: head0, head1, ..., tail0, tail1, ...; at a time
        head0@2014-07-01, ..."""
        counts = np.bincount(self.side, minlength=len(NAMES)).tolist()
        names = [
            f"{name}{number}"
            for name, count in zip(NAMES, counts, strict=True)
            for number in range(count)
        ]
        if self.context is None or self.graph.contexts is None:
            return names
        times = self.graph.contexts.docnos[self.context.astype(np.int64)]
        return [f"{name}@{time}" for name, time in zip(names, times, strict=True)]

    @cached_property
    def relation_counts(self) -> Int64:
        """Evaluated triples with each relation: int64, shape (n_relations,)."""
        return np.bincount(self.triples[:, 1], minlength=self.graph.n_relations)

    @cached_property
    def candidates(self) -> Int64:
        """Micro candidates of each instance, its answer included: int64, shape (n_instances,)."""
        others = self._sizes_without(self.known)[self.instance_question]
        if self.split in self.filter_splits:
            return others + 1  # every answer is among the known, and is kept by id
        answers, known = (to_keys(csr, self.n_labels) for csr in (self.answers, self.known))
        is_known = contains(known, answers)
        return others + (is_known if self.outside is None else is_known | self.outside)

    @cached_property
    def macro_candidates(self) -> Int64:
        """Macro candidates of each instance's question: int64, shape (n_instances,)."""
        others = self._sizes_without(self.removed)[self.instance_question]
        return others if self.outside is None else others + self.outside

    def _sizes_without(self, filtered: Csr) -> Int64:
        """Candidates of each question less those of a filter: int64, shape (Q,)."""
        if self.candidate_lists is None:
            return self.n_labels - filtered.lengths
        question = np.repeat(np.arange(len(self)), filtered.lengths)
        inside = self.candidate_lists.holds(question, filtered.ids, self.n_labels)
        taken = np.bincount(question[inside], minlength=len(self))
        return self.candidate_lists.sizes(self.n_labels) - taken

    def rows_among(self, rows: str = "questions") -> tuple[Int64, int]:
        """Where the rows of scores of these questions stand among those of the whole split."""
        triples = facts_of(self.graph, self.split, SIDES[self.sides][0])
        n_contexts = 1 if self.graph.contexts is None else len(self.graph.contexts)
        sides = SIDES[self.sides]
        if rows == "instances":
            evaluated = np.arange(len(triples)) if self.kept is None else self.kept
            parts = [evaluated + len(triples) * number for number in range(len(sides))]
            return np.concatenate(parts), len(triples) * len(sides)
        parts, total = [], 0
        for side in sides:
            keys = question_keys(self.graph, triples, side, n_contexts)
            pairs, first = np.unique(keys, return_index=True)
            own = self.side == side
            one, other = (ids[own].astype(np.int64) for ids in self.given)
            own_pairs = one * label_counts(self.graph, side)[GIVEN[side][1]] + other
            if self.context is not None:
                own_pairs = own_pairs * n_contexts + self.context[own]
            place = inverse(np.argsort(first))[np.searchsorted(pairs, own_pairs)]
            parts.append(place + total)
            total += len(pairs)
        return np.concatenate(parts), total

    @cached_property
    def triple_keys(self) -> tuple[Int64, Int64, Int64]:
        """Keys of the (head, relation) pairs that are evaluated, keys of the facts by the number of
        their pair, both ascending, and the place of each of these facts."""
        facts = self.graph.facts[self.split]
        facts = facts if self.kept is None else facts[self.kept]
        pairs, number = np.unique(_pair_keys(self.graph, facts), return_inverse=True)
        keys = _fact_keys(self.graph, number.reshape(-1), facts)
        order = np.argsort(keys)
        return pairs, keys[order], order

    @property
    def n_columns(self) -> int:
        """Columns of a score row: entities, relations, or the candidates that it holds alone."""
        return self.n_labels if self.candidate_lists is None else self.candidate_lists.width

    @cached_property
    def fingerprint(self) -> str:
        """Hash (32 hexadecimal digits) of the graph, the questions and both filters."""
        hasher = hashlib.blake2b(digest_size=16)
        hasher.update(f"{self.graph.fingerprint} {self.split} {self.sides}".encode())
        second = "tail" if self.kind == "relation" else "relation"
        hash_array(hasher, "side", self.side.astype(np.int8))
        for name, ids in zip(("entity", second), self.given, strict=True):
            hash_array(hasher, name, ids)
        for name in ("answers", "known", "removed"):
            csr: Csr = getattr(self, name)
            hash_array(hasher, f"{name} offsets", csr.offsets)
            hash_array(hasher, f"{name} ids", csr.ids)
        if self.context is not None:
            hash_array(hasher, "context", self.context)
        if self.candidate_lists is not None:
            hash_array(hasher, "domain of", self.candidate_lists.of)
            hash_array(hasher, "domain offsets", self.candidate_lists.lists.offsets)
            hash_array(hasher, "domain ids", self.candidate_lists.lists.ids)
        return hasher.hexdigest()

    def describe(self) -> dict[str, Any]:
        """Where the questions come from, in plain JSON types, for manifests."""
        graph = self.graph
        return {
            "graph_name": graph.name,
            "split": self.split,
            "sides": self.sides,
            "filter_splits": list(self.filter_splits),
            "extra_known": self.n_extra_known,
            "restricted": None if self.candidate_lists is None else self.candidate_lists.kind,
            "sampled": self.candidate_lists is not None and self.candidate_lists.sampled,
            "outside": 0 if self.outside is None else int(self.outside.sum()),
            "n_questions": len(self),
            "n_instances": self.n_instances,
            "n_entities": graph.n_entities,
            "n_relations": graph.n_relations,
            **self.details,
            "triples": {name: len(rows) for name, rows in graph.splits.items()},
            "duplicates_dropped": dict(graph.duplicates),
            "graph_hash": graph.fingerprint,
            "questions_hash": self.fingerprint,
        }


def describe_question(questions: QuestionData, question: int) -> str:
    """A question as people read it: ``question head12 (?, born_in, Rome)``."""
    graph, side = questions.graph, int(questions.side[question])
    labels = {"entity": graph.entities, "relation": graph.relations}
    terms = [labels[kind][int(ids[question])] for kind, ids in questions.given_terms]
    if side == QUALIFIER:
        terms.append("?")
    else:
        by_column = dict(zip(GIVEN[side], terms, strict=True))
        terms = [by_column.get(column, "?") for column in range(3)]
    if questions.context is not None and questions.graph.contexts is not None:
        terms.append(questions.graph.contexts[int(questions.context[question])])
    return f"question {questions.ids[question]} ({', '.join(terms)})"


def places_of(questions: QuestionData, triples: npt.ArrayLike) -> Int64:
    """Where facts, shape (n, 3), or (n, 4) with their contexts, stand among the evaluated ones;
    InputError if one does not."""
    if questions.sides == "qualifier":
        raise UsageError(
            "a triple does not say which of its qualifiers is asked; use the batches of the "
            "ranker, or its rows' own numbers"
        )
    graph, evaluated = questions.graph, questions.triples
    n_contexts = 0 if graph.contexts is None else len(graph.contexts)
    rows = checked_ids(
        "triples", as_triples("triples", triples, (4,) if n_contexts else (3,)),
        graph.n_entities, graph.n_relations, n_contexts,
    )  # fmt: skip
    pairs, ordered, order = questions.triple_keys
    keys = _pair_keys(graph, rows)
    number = np.minimum(np.searchsorted(pairs, keys), len(pairs) - 1)
    keys = np.where(pairs[number] == keys, _fact_keys(graph, number, rows), -1)
    at = np.minimum(np.searchsorted(ordered, keys), len(ordered) - 1)
    missing = np.flatnonzero(ordered[at] != keys)
    if len(missing):
        head, relation, tail = rows[missing[0], :3].tolist()
        names = [graph.entities[head], graph.relations[relation], graph.entities[tail]]
        if graph.contexts is not None:
            names.append(graph.contexts[int(rows[missing[0], 3])])
        raise InputError(
            f"triple {missing[0]}, ({', '.join(names)}), is not one of the {len(evaluated)} "
            f"evaluated triples of split {questions.split!r}"
        )
    return order[at]


def _fact_keys(graph: GraphData, pair: Int64, facts: npt.NDArray[np.int32]) -> Int64:
    """One number per fact, from that of its head and relation."""
    keys = pair * graph.n_entities + facts[:, 2]
    return keys if graph.contexts is None else keys * len(graph.contexts) + facts[:, 3]


def _pair_keys(graph: GraphData, triples: npt.NDArray[np.int32]) -> Int64:
    """One key per head and relation: what they give a question for the tail."""
    return given_keys(graph, triples, NAMES.index("tail"))
