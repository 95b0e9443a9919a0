"""Graph questions: which columns of a fact are given and asked, by side, and what follows from it.

For a qualifier's value, the facts are those of `GraphData.qualifier_facts`: a statement takes the
place of the head, the qualifier's relation and value those of relation and tail. `Graph.questions`
puts `GraphTerms` into `Questions.asked`. No other code looks at sides.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kgtrec._internal.csr import Array, Int32, Int64, Integers, inverse, searched
from kgtrec.errors import InputError, UsageError
from kgtrec.graph.triples import as_triples, checked_ids
from kgtrec.questions.questions import NAMES, SIDES, taken

if TYPE_CHECKING:
    from kgtrec.graph.graph import GraphData
    from kgtrec.graph.labels import Labels
    from kgtrec.questions.questions import QuestionData


QUALIFIER = NAMES.index("qualifier")

ASKED = (0, 2, 1, 2)
"""Column of a fact that is asked, by side."""

GIVEN = ((2, 1), (0, 1), (0, 2), (0, 1))
"""Columns of a fact that are given, by side: an entity (or statement), then the relation or the
other entity."""


def facts_of(graph: GraphData, split: str, side: int) -> Int32:
    """The facts of a split for questions of a side: int32, shape (n, 3), or (n, 4) with context."""
    return graph.qualifier_facts(split) if side == QUALIFIER else graph.facts[split]


def label_counts(graph: GraphData, side: int) -> tuple[int, int, int]:
    """The number of possible labels in each column of a side's facts."""
    first = len(graph.statements) if side == QUALIFIER else graph.n_entities
    return first, graph.n_relations, graph.n_entities


def given_keys(graph: GraphData, triples: Integers, side: int) -> Int64:
    """One number per triple for what it gives a question of a side: int64, shape (n,)."""
    first, second = GIVEN[side]
    keys: Int64 = triples[:, first].astype(np.int64)
    keys *= label_counts(graph, side)[second]
    keys += triples[:, second]
    return keys


def question_keys(graph: GraphData, facts: Integers, side: int, n_contexts: int = 1) -> Int64:
    """One number per fact for the question of a side that it answers; if `n_contexts` is above 1,
    in the context of its fourth column."""
    keys = given_keys(graph, facts, side)
    if n_contexts > 1:
        keys *= n_contexts
        keys += facts[:, 3]
    return keys


def given_pair(graph: GraphData, keys: Int64, side: int) -> tuple[Int32, Int32]:
    """The ids of the two columns of `GIVEN` behind such numbers: int32, shape (n,) each."""
    size = label_counts(graph, side)[GIVEN[side][1]]
    return (keys // size).astype(np.int32), (keys % size).astype(np.int32)


COLUMNS = {
    **dict.fromkeys(("head", "tail", "both"), ("given", "relation")),
    "relation": ("given", "given_tail"),
    "qualifier": ("given", "given_relation", "given_tail", "relation"),
}
"""Columns of ranks that hold what questions give, by their sides."""


@dataclass(frozen=True, eq=False)
class GraphTerms:
    """What each of Q questions of a graph's split gives, and its context.

    `kgtrec.Questions` documents the fields.
    """

    graph: GraphData
    split: str
    sides: str
    filter_splits: tuple[str, ...]
    n_extra_known: int
    side: Int64
    given: tuple[Int32, Int32]
    context: Int32 | None = None
    kept: Int64 | None = None

    def __len__(self) -> int:
        return len(self.side)

    def taken(self, questions: Any) -> GraphTerms:
        """The terms of some questions: a slice, or numbers in any order."""
        names = ("side", "given", "context")
        return replace(self, **{name: taken(getattr(self, name), questions) for name in names})

    @property
    def kind(self) -> str:
        """The kind of candidates: "entity", or "relation" if the relation is asked."""
        return "relation" if self.sides == "relation" else "entity"

    @property
    def candidate_labels(self) -> Labels:
        """Labels of possible candidates by id: the graph's entities, or its relations."""
        return self.graph.relations if self.kind == "relation" else self.graph.entities

    @property
    def n_entities(self) -> int:
        """Number of entities of the graph."""
        return self.graph.n_entities

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
        UsageError if no qualifier is asked."""
        if self.sides != "qualifier":
            raise UsageError("only questions for a qualifier's value give a statement; see .entity")
        return self.graph.statements[self.given[0]]

    @property
    def relation(self) -> Int32:
        """The given relation: int32, shape (Q,); UsageError if the relation is asked."""
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
    def given_terms(self) -> list[tuple[str, Int32]]:
        """What the questions give, term by term: "entity" or "relation", and its ids (Q,)."""
        if self.sides == "qualifier":
            head, relation, tail = self.statement.T
            return [("entity", head), ("relation", relation), ("entity", tail),
                    ("relation", self.given[1])]  # fmt: skip
        kinds = ("entity", "entity" if self.kind == "relation" else "relation")
        return list(zip(kinds, self.given, strict=True))

    @property
    def columns(self) -> dict[str, Array]:
        """The given terms as columns of ranks, (Q,) each, with the context."""
        terms = dict(zip(COLUMNS[self.sides], (ids for _, ids in self.given_terms), strict=True))
        return terms if self.context is None else {**terms, "context": self.context}

    def batch_terms(self, questions: Int64) -> dict[str, Int64]:
        """What some questions give, in the form of `Batch`."""
        columns = (*self.given, self.side)
        entity, second, side = (column[questions].astype(np.int64) for column in columns)
        terms = {"entity": entity, "relation": second, "side": side}
        nothing = np.full(len(questions), -1)
        if self.kind == "relation":
            terms |= {"relation": nothing, "tail": second}
        if self.sides == "qualifier":
            statement = self.graph.statements[entity].astype(np.int64)
            terms |= {"entity": nothing, "statement": statement}
        if self.context is not None:
            terms["context"] = self.context[questions].astype(np.int64)
        return terms

    @property
    def _sides(self) -> str:
        return "both sides" if self.sides == "both" else f"{self.sides} side"

    @property
    def what(self) -> str:
        """The split and sides of the questions, for messages."""
        return f" of split {self.split!r}, {self._sides}"

    def lines(self, details: Mapping[str, Any]) -> tuple[str, str, str]:
        """Split, sides and filter, for the questions' repr."""
        filtered = f"filter {', '.join(self.filter_splits)}" if self.filter_splits else "raw"
        if "context" in details and self.filter_splits:
            how = "at a time" if details["context"] == "time" else "with qualifiers"
            filtered = f"{how}, {details['context_filter']}, {filtered}"
        name = f" of {self.graph.name}" if self.graph.name else ""
        return f"{name}, split {self.split}", f", {self._sides}", filtered

    @property
    def triples(self) -> Int32:
        """The evaluated triples in split order, shape (n, 3); if a qualifier's value is asked,
        number of the statement, relation and value of each."""
        rows = facts_of(self.graph, self.split, SIDES[self.sides][0])[:, :3]
        return rows if self.kept is None else rows[self.kept]

    @cached_property
    def relation_counts(self) -> Int64:
        """Evaluated triples with each relation: int64, shape (n_relations,)."""
        return np.bincount(self.triples[:, 1], minlength=self.graph.n_relations)

    def popularity(self, _: QuestionData) -> tuple[Int64, Int64]:
        """How often candidates occur in triples of all splits, and relations in evaluated ones."""
        graph = self.graph
        if self.kind == "entity":
            return graph.entity_counts(), self.relation_counts
        counts = [graph.relation_counts(split) for split in graph.splits]
        return np.sum(counts, axis=0), self.relation_counts

    @property
    def labels(self) -> tuple[list[str], Labels]:
        """Labels of relations and entities, in the form for ranks."""
        return list(self.graph.relation_names), self.graph.entities

    @cached_property
    def ids(self) -> list[str]:
        """Names of the questions in TREC files: head0, head1, ..., tail0, tail1, ...; with a time
        head0@2014-07-01, ..."""
        return self.names(slice(0, len(self)))

    def names(self, rows: slice) -> list[str]:
        """Names of some questions."""
        firsts = np.searchsorted(self.side, np.arange(len(NAMES))).tolist()
        sides = enumerate(self.side[rows].tolist(), start=rows.start)
        names = [f"{NAMES[side]}{number - firsts[side]}" for number, side in sides]
        if self.context is None or self.graph.contexts is None:
            return names
        times = self.graph.contexts.docnos[self.context[rows].astype(np.int64)]
        return [f"{name}@{time}" for name, time in zip(names, times, strict=True)]

    def text(self, question: int) -> str:
        """What a question gives, with "?" for what it asks: ``(?, born_in, Rome)``."""
        graph, side = self.graph, int(self.side[question])
        labels = {"entity": graph.entities, "relation": graph.relations}
        terms = [labels[kind][int(ids[question])] for kind, ids in self.given_terms]
        if side == QUALIFIER:
            terms.append("?")
        else:
            by_column = dict(zip(GIVEN[side], terms, strict=True))
            terms = [by_column.get(column, "?") for column in range(3)]
        if self.context is not None and graph.contexts is not None:
            terms.append(graph.contexts[int(self.context[question])])
        return f"({', '.join(terms)})"

    def hashed(self) -> tuple[str, dict[str, Any], dict[str, Any]]:
        """Parts of a fingerprint: a text, arrays before the answers, and arrays after."""
        second = "tail" if self.kind == "relation" else "relation"
        before = {"side": self.side.astype(np.int8), "entity": self.given[0]}
        after = {} if self.context is None else {"context": self.context}
        text = f"{self.graph.fingerprint} {self.split} {self.sides}"
        return text, {**before, second: self.given[1]}, after

    def described(self, facts: dict[str, Any], details: dict[str, Any]) -> dict[str, Any]:
        """Where the questions come from, combined with facts about them, in plain JSON types."""
        graph = self.graph
        return {
            "graph_name": graph.name,
            "split": self.split,
            "sides": self.sides,
            "filter_splits": list(self.filter_splits),
            "extra_known": self.n_extra_known,
            **facts,
            "n_entities": graph.n_entities,
            "n_relations": graph.n_relations,
            **details,
            "triples": {name: len(rows) for name, rows in graph.splits.items()},
            "duplicates_dropped": dict(graph.duplicates),
            "graph_hash": graph.fingerprint,
        }

    def manifest(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """For a manifest of ranks: further facts on the questions, and further entries."""
        facts = {"n_head_questions": int(np.count_nonzero(self.side == 0))}
        contexts = self.graph.contexts
        if self.context is None or contexts is None:
            return facts, {}
        mask = np.zeros(len(contexts), bool)
        mask[self.context] = True
        used = np.flatnonzero(mask)
        texts = dict(zip(map(str, used.tolist()), contexts[used], strict=True))
        return facts, {"contexts": texts}

    def rows_among(self, rows: str = "questions") -> tuple[Int64, int]:
        """Places of these questions' rows of scores among those of the whole split."""
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
        """Keys of the evaluated (head, relation) pairs; keys of the facts by the number of their
        pair, both ascending; and the place of each of these facts."""
        facts = self.graph.facts[self.split]
        facts = facts if self.kept is None else facts[self.kept]
        pairs, number = np.unique(_pair_keys(self.graph, facts), return_inverse=True)
        keys = _fact_keys(self.graph, number.reshape(-1), facts)
        order = np.argsort(keys)
        return pairs, keys[order], order


def places_of(terms: QuestionData, triples: npt.ArrayLike) -> Int64:
    """Places of facts, shape (n, 3), or (n, 4) with contexts, among the evaluated ones; InputError
    if a fact is not evaluated."""
    if terms.sides == "qualifier":
        raise UsageError(
            "a triple does not say which of its qualifiers is asked; use the batches of the "
            "ranker, or its rows' own numbers"
        )
    graph, evaluated = terms.graph, terms.triples
    n_contexts = 0 if graph.contexts is None else len(graph.contexts)
    rows = checked_ids(
        "triples", as_triples("triples", triples, (4,) if n_contexts else (3,)),
        graph.n_entities, graph.n_relations, n_contexts,
    )  # fmt: skip
    pairs, ordered, order = terms.triple_keys
    number = searched(pairs, _pair_keys(graph, rows))
    at = searched(ordered, np.where(number < 0, -1, _fact_keys(graph, number, rows)))
    missing = np.flatnonzero(at < 0)
    if len(missing):
        head, relation, tail = rows[missing[0], :3].tolist()
        names = [graph.entities[head], graph.relations[relation], graph.entities[tail]]
        if graph.contexts is not None:
            names.append(graph.contexts[int(rows[missing[0], 3])])
        raise InputError(
            f"triple {missing[0]}, ({', '.join(names)}), is not one of the {len(evaluated)} "
            f"evaluated triples of split {terms.split!r}"
        )
    return order[at]


def _fact_keys(graph: GraphData, pair: Int64, facts: Int32) -> Int64:
    """One number per fact, from that of its head and relation."""
    keys = pair * graph.n_entities + facts[:, 2]
    return keys if graph.contexts is None else keys * len(graph.contexts) + facts[:, 3]


def _pair_keys(graph: GraphData, triples: Int32) -> Int64:
    """One key per head and relation, the given terms of a question for the tail."""
    return given_keys(graph, triples, NAMES.index("tail"))
