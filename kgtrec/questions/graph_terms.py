"""Questions of a graph: the sides, and the columns of a fact that each side gives and asks for.

For questions for a qualifier's value, the facts are those of `GraphData.qualifier_facts`: the
statement replaces the head, and the qualifier's relation and value replace relation and tail.
`Graph.questions` puts `GraphTerms` into `Questions.origin`. No other code depends on sides.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kgtrec._internal.arrays import Int8, Int32, Int64, Integers
from kgtrec._internal.csr import find_sorted, inverse
from kgtrec.errors import InputError, UsageError
from kgtrec.graph.statistics.overlap import overlap_with_train
from kgtrec.graph.triples import as_triples, check_ids
from kgtrec.questions.terms import NAMES, SIDES, MissingTermError, Term, copy_rows

if TYPE_CHECKING:
    from kgtrec.graph.graph import GraphData
    from kgtrec.graph.labels import Labels


class Side(NamedTuple):
    """The columns of a fact that the questions of a side ask for and give.

    - answer: Index of the column that is asked for.
    - given: Indices of the two columns that are given.
    - gives: Names of the given pair: an entity (or statement), then the relation or other entity.
    - text: The columns of ranks in the order of a question's text; "?" for the answer.
    """

    answer: int
    given: tuple[int, int]
    gives: tuple[str, str]
    text: tuple[str, ...]

    @property
    def of_statements(self) -> bool:
        """True if the facts are those of qualifiers' values."""
        return self.gives[0] == "statement"


ASKS = (
    Side(0, (2, 1), ("entity", "relation"), ("?", "relation", "given")),
    Side(2, (0, 1), ("entity", "relation"), ("given", "relation", "?")),
    Side(1, (0, 2), ("entity", "tail"), ("given", "?", "given_tail")),
    Side(
        2,
        (0, 1),
        ("statement", "relation"),
        ("given", "given_relation", "given_tail", "relation", "?"),
    ),
)
"""The sides of a graph's questions, by code."""

LABELS = {
    "given": "entities",
    "given_relation": "relations",
    "given_tail": "entities",
    "relation": "relations",
    "context": "contexts",
}
"""Columns of ranks that hold given ids, and the attribute of a graph with the labels."""

COLUMNS = {
    name: [column for column in LABELS if column in ASKS[codes[0]].text]
    for name, codes in SIDES.items()
    if codes[0] < len(ASKS)
}
"""Columns of `LABELS` that ranks have, per value of `sides`; the context comes on top."""

_OTHERS = {
    "entity": "these questions ask for a qualifier's value (sides='qualifier'), so they give "
    "a statement (.statement) and not an entity; ask for heads, tails or relations",
    "statement": "only questions for a qualifier's value give a statement; use .entity",
    "relation": "these questions ask for the relation (sides='relation'), so they give a head and "
    "a tail and not the relation; ask for heads or tails",
    "tail": "only questions for the relation give a head and a tail; use .entity",
}
"""Error texts for questions that do not give a term, by its name."""


@dataclass(frozen=True)
class AskedSide:
    """A side of a graph's facts. It numbers questions by a key: given pair and context in one.

    - code: Index in `NAMES`.
    - asks: Its row of `ASKS`.
    - sizes: The number of possible ids in each column of its facts, and of contexts.
    """

    graph: GraphData
    code: int
    asks: Side
    sizes: tuple[int, int, int, int]

    @classmethod
    def from_graph(cls, graph: GraphData, code: int) -> AskedSide:
        """Return a side of a graph; InputError if its keys do not fit into 64 bits."""
        asks = ASKS[code]
        first = len(graph.statements) if asks.of_statements else graph.n_entities
        n = 1 if graph.contexts is None else len(graph.contexts)
        sizes = (first, graph.n_relations, graph.n_entities, n)
        n_first, n_second = (sizes[column] for column in asks.given)
        if n_first * n_second * n > np.iinfo(np.int64).max:
            raise InputError(
                f"{n_first:,} x {n_second:,} given pairs at {n:,} contexts are too many; leave out "
                "entities and relations that occur in no fact"
            )
        return cls(graph, code, asks, sizes)

    @property
    def n_labels(self) -> int:
        """Number of candidates."""
        return self.sizes[self.asks.answer]

    def facts(self, split: str) -> Int32:
        """Return the facts of a split: int32, shape (n, 3), or (n, 4) with context."""
        graph = self.graph
        return graph.qualifier_facts(split) if self.asks.of_statements else graph.facts[split]

    def keys(self, facts: Integers, context: bool = True) -> Int64:
        """Return the key of the question that each fact answers: int64, shape (n,).

        `context=False` leaves the context out of the keys.
        """
        has_context = context and self.graph.contexts is not None
        columns = (*self.asks.given, 3) if has_context else self.asks.given
        return self.join_ids(*(facts[:, column] for column in columns))

    def join_ids(self, first: Integers, second: Integers, context: Integers | None = None) -> Int64:
        """Join given ids and contexts into keys: int64, shape (n,)."""
        keys: Int64 = first.astype(np.int64)
        for ids, column in ((second, self.asks.given[1]), (context, 3)):
            if ids is not None:
                keys *= self.sizes[column]
                keys += ids
        return keys

    def split_keys(self, keys: Int64) -> tuple[tuple[Int32, Int32], Int32 | None]:
        """Split keys into the given pairs and the contexts; None if the graph has no contexts."""
        size, n_contexts = self.sizes[self.asks.given[1]], self.sizes[3]
        context = None if self.graph.contexts is None else (keys % n_contexts).astype(np.int32)
        pair = keys // n_contexts
        return ((pair // size).astype(np.int32), (pair % size).astype(np.int32)), context


@dataclass(frozen=True, eq=False)
class GraphTerms:
    """The origin of Q questions of a graph's split; `kgtrec.Questions` documents the fields.

    - side_codes, int8 (Q,): The side of each question. `side` has the same numbers as int64.
    - pairs, int64 (n_instances,): Pairs (side, evaluated triple) whose questions are asked,
      ascending. They are numbered by side, then by triple. None: all of them.
    - split_numbers, int64 (Q,): The number of each question among all of its side in the split, if
      some are left out. Names have these numbers. None: questions are numbered as they are.
    """

    graph: GraphData
    split: str
    sides: str
    filter_splits: tuple[str, ...]
    n_extra_known: int
    side_codes: Int8
    given: tuple[Int32, Int32]
    context: Int32 | None = None
    kept: Int64 | None = None
    pairs: Int64 | None = None
    split_numbers: Int64 | None = None

    def __len__(self) -> int:
        return len(self.side_codes)

    @property
    def side(self) -> Int64:
        """The side of each question, copied from its stored byte: int64, shape (Q,)."""
        return self.side_codes.astype(np.int64)

    def _get_given(self, name: str) -> Int32:
        """Return the ids of a given term, (Q,); MissingTermError if questions do not give it."""
        if name not in self._asks.gives:
            raise MissingTermError(_OTHERS[name])
        return self.given[self._asks.gives.index(name)]

    @property
    def entity(self) -> Int32:
        """The given entity: int32, shape (Q,)."""
        return self._get_given("entity")

    @property
    def relation(self) -> Int32:
        """The given relation: int32, shape (Q,)."""
        return self._get_given("relation")

    @property
    def tail(self) -> Int32:
        """The given tail of questions for the relation: int32, shape (Q,)."""
        return self._get_given("tail")

    @property
    def statement(self) -> Int32:
        """The given statement of questions for a qualifier's value: int32, shape (Q, 3)."""
        return self.graph.statements[self._get_given("statement")]

    def select(self, questions: Any) -> GraphTerms:
        """Return the terms of some questions: a slice, or numbers in any order."""
        names = ("side_codes", "given", "context", "split_numbers")
        return replace(self, **{name: copy_rows(getattr(self, name), questions) for name in names})

    @property
    def has_further_rows(self) -> bool:
        """True if scores may have rows for questions that were left out."""
        return self.kept is not None

    @property
    def _asks(self) -> Side:
        return ASKS[SIDES[self.sides][0]]

    @property
    def kind(self) -> str:
        """The kind of candidates: "entity", or "relation" if the relation is asked."""
        return "relation" if self._asks.answer == 1 else "entity"

    @property
    def candidate_labels(self) -> Labels:
        """Labels of possible candidates by id: the graph's entities, or its relations."""
        return self.graph.relations if self.kind == "relation" else self.graph.entities

    @property
    def n_entities(self) -> int:
        """Number of entities of the graph."""
        return self.graph.n_entities

    @property
    def columns(self) -> dict[str, Any]:
        """The given ids as columns of ranks, shape (Q,) each."""
        ids = [*self.statement.T, self.given[1]] if self._asks.of_statements else self.given
        columns = dict(zip(COLUMNS[self.sides], ids, strict=True))
        return columns if self.context is None else {**columns, "context": self.context}

    @property
    def given_labels(self) -> dict[str, tuple[Int64, Labels]]:
        """The ids, shape (Q,), and the labels of all ids, per given term."""
        return {n: (ids, getattr(self.graph, LABELS[n])) for n, ids in self.columns.items()}

    @property
    def given_terms(self) -> dict[str, Term]:
        """The given terms with their labels, by name."""
        return {name: Term(ids, labels) for name, (ids, labels) in self.given_labels.items()}

    def batch_terms(self, questions: Int64) -> dict[str, Int64]:
        """Return the given ids of some questions in the form of `Batch`; -1 for terms they lack."""
        first, second = self._asks.gives
        columns: dict[str, Any] = {
            first: self.given[0],
            second: self.given[1],
            "side": self.side_codes,
        }
        if self.context is not None:
            columns["context"] = self.context
        terms = {name: ids[questions].astype(np.int64) for name, ids in columns.items()}
        if first == "statement":
            terms[first] = self.graph.statements[terms[first]].astype(np.int64)
        nothing = np.full(len(questions), -1)
        return {"entity": nothing, "relation": nothing, **terms}

    @property
    def _sides(self) -> str:
        return "both sides" if self.sides == "both" else f"{self.sides} side"

    @property
    def source(self) -> str:
        """The split and sides of the questions, as messages name them."""
        return f" of split {self.split!r}, {self._sides}"

    def lines(self, details: Mapping[str, Any]) -> tuple[str, str, str]:
        """Return three parts of the repr of questions: graph and split, the sides, the filter."""
        filtered = f"filter {', '.join(self.filter_splits)}" if self.filter_splits else "raw"
        if "context" in details and self.filter_splits:
            how = "at a time" if details["context"] == "time" else "with qualifiers"
            filtered = f"{how}, {details['context_filter']}, {filtered}"
        name = f" of {self.graph.name}" if self.graph.name else ""
        return f"{name}, split {self.split}", f", {self._sides}", filtered

    @cached_property
    def aspects(self) -> list[AskedSide]:
        """The sides of these questions."""
        return [AskedSide.from_graph(self.graph, code) for code in SIDES[self.sides]]

    @property
    def triples(self) -> Int32:
        """The evaluated triples (n, 3) in split order, or statement, relation and value of each."""
        rows = self.aspects[0].facts(self.split)[:, :3]
        return rows if self.kept is None else rows[self.kept]

    @cached_property
    def relation_counts(self) -> Int64:
        """Number of evaluated triples per relation: int64, shape (n_relations,)."""
        return np.bincount(self.triples[:, 1], minlength=self.graph.n_relations)

    def popularity(self, _: object) -> tuple[Int64, Int64]:
        """Count the triples of each candidate in all splits, and of each relation in this one."""
        graph = self.graph
        if self.kind == "entity":
            return graph.entity_counts(), self.relation_counts
        counts = [graph.relation_counts(split) for split in graph.splits]
        return np.sum(counts, axis=0), self.relation_counts

    @property
    def labels(self) -> tuple[list[str], Labels]:
        """Labels of relations and of entities, as ranks store them."""
        return list(self.graph.relation_names), self.graph.entities

    @cached_property
    def ids(self) -> list[str]:
        """Names of the questions in TREC files: head0, ..., tail0, ... or head0@2014-07-01, ..."""
        return self.names(slice(0, len(self)))

    @property
    def left_out_names(self) -> set[str]:
        """Names of the questions of the split that are left out; empty if facts have a context."""
        if self.split_numbers is None or self.context is not None:
            return set()
        sides = zip(self.aspects, self._numbers_by_side(), strict=True)
        counts = [(side.code, count) for side, (_, count) in sides]
        return {f"{NAMES[code]}{i}" for code, count in counts for i in range(count)} - {*self.ids}

    def keep_names(self) -> GraphTerms:
        """Return the terms with the numbers that questions have now, even if others are left out.

        These are numbers among all questions of the split, also if only some triples are kept.
        """
        if self.split_numbers is not None:
            return self
        return replace(
            self, split_numbers=np.concatenate([numbers for numbers, _ in self._numbers_by_side()])
        )

    def name_triples(self) -> GraphTerms:
        """Return the terms of one question per side and triple, named by the number of the triple.

        Triples that are left out count, too.
        """
        if self.kept is None:
            return self
        triples, _ = self.rows_among("instances")
        n_triples = len(self.aspects[0].facts(self.split))
        return replace(self, split_numbers=triples % n_triples)

    def names(self, rows: slice) -> list[str]:
        """Return the names of a range of questions."""
        sides = self.side_codes[rows]
        if self.split_numbers is None:
            firsts = np.searchsorted(self.side_codes, np.arange(len(NAMES)))
            numbers = np.arange(rows.start, rows.start + len(sides)) - firsts[sides]
        else:
            numbers = self.split_numbers[rows]
        pairs = zip(sides.tolist(), numbers.tolist(), strict=True)
        names = [f"{NAMES[side]}{number}" for side, number in pairs]
        if self.context is None or self.graph.contexts is None:
            return names
        times = self.graph.contexts.docnos[self.context[rows].astype(np.int64)]
        return [f"{name}@{time}" for name, time in zip(names, times, strict=True)]

    def text(self, question: int) -> str:
        """Return the text of a question, with "?" for its answer: ``(?, born_in, Rome)``."""
        terms = self.select(slice(question, question + 1)).given_terms
        texts = {name: term.texts(term.codes)[0] for name, term in terms.items()}
        return side_text(int(self.side_codes[question]), texts)

    def hash_parts(self) -> tuple[str, dict[str, Any], dict[str, Any]]:
        """Return what a fingerprint hashes: a text, arrays before the answers, and arrays after."""
        before = {"side": self.side_codes, "entity": self.given[0]}
        after = {} if self.context is None else {"context": self.context}
        text = f"{self.graph.fingerprint} {self.split} {self.sides}"
        return text, {**before, self._asks.gives[1]: self.given[1]}, after

    def describe(self, facts: dict[str, Any], details: dict[str, Any]) -> dict[str, Any]:
        """Return the source of the questions and the facts about them, in plain JSON types."""
        graph = self.graph
        declared = {"column_order": graph.column_order} if graph.column_order != "hrt" else {}
        return {
            "graph_name": graph.name,
            **declared,
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
        """Return, for a manifest of ranks, facts about the questions and further entries."""
        facts: dict[str, Any] = {"n_head_questions": int(np.count_nonzero(self.side_codes == 0))}
        if self.split_numbers is not None:
            facts["question_numbers"] = self.split_numbers.tolist()
        if overlap := overlap_with_train(self.graph, self.split):
            facts["overlap"] = asdict(overlap)
        contexts = self.graph.contexts
        if self.context is None or contexts is None:
            return facts, {}
        mask = np.zeros(len(contexts), bool)
        mask[self.context] = True
        used = np.flatnonzero(mask)
        texts = dict(zip(map(str, used.tolist()), contexts[used], strict=True))
        return facts, {"contexts": texts}

    def rows_among(self, rows: str = "questions") -> tuple[Int64, int]:
        """Return the score rows of these questions, and the number of rows of the whole split.

        `rows` says what a row of scores stands for: "questions" or "instances".
        """
        parts, total = [], 0
        if rows == "instances":
            n_facts, n_sides = len(self.aspects[0].facts(self.split)), len(self.aspects)
            evaluated = np.arange(n_facts) if self.kept is None else self.kept
            pairs = np.concatenate([evaluated + n_facts * number for number in range(n_sides)])
            return pairs if self.pairs is None else pairs[self.pairs], n_facts * n_sides
        for numbers, n_questions in self._numbers_by_side():
            parts.append(numbers + total)
            total += n_questions
        return np.concatenate(parts), total

    def _numbers_by_side(self) -> Iterator[tuple[Int64, int]]:
        """Yield, per side, the numbers of these questions among all of the split, and of how many.

        All questions of a side are numbered in order of first appearance.
        """
        for side in self.aspects:
            keys, first = np.unique(side.keys(side.facts(self.split)), return_index=True)
            rank = inverse(np.argsort(first))
            yield rank[np.searchsorted(keys, self._keys(side)[1])], len(keys)

    def _keys(self, side: AskedSide) -> tuple[Int64, Int64]:
        """Return the numbers of a side's questions, and their keys."""
        numbers = np.flatnonzero(self.side_codes == side.code)
        ids = (copy_rows(column, numbers) for column in (*self.given, self.context))
        return numbers, side.join_ids(*ids)

    def numbers(
        self, whose: str, side: Int64, first: Int64, second: Int64, context: Int64 | None = None
    ) -> Int64:
        """Return the question that gives these ids, per side: int64; -1 if there is no such one.

        Negative ids give -1. UsageError if questions have a context and `context` is None; the
        message begins with `whose`, the name of the data that has no context.
        """
        if self.context is not None and context is None:
            raise UsageError(
                f"{whose} do not give the {self.graph.context_name} of their questions; give JSON "
                "lines with it, or a run"
            )
        columns = [ids for ids in (first, second, context) if ids is not None]
        numbers = np.full(len(side), -1)
        for aspect in self.aspects:
            rows = np.flatnonzero((side == aspect.code) & (np.min(columns, axis=0) >= 0))
            of_side, keys = self._keys(aspect)
            order = np.argsort(keys)
            at = find_sorted(keys[order], aspect.join_ids(*(ids[rows] for ids in columns)))
            numbers[rows[at >= 0]] = of_side[order[at[at >= 0]]]
        return numbers

    @cached_property
    def fact_keys(self) -> tuple[Int64, Int64, Int64]:
        """Keys of the questions and of the evaluated facts, both ascending, to look facts up.

        Returns the question keys; the fact keys (the index of the question's key times the number
        of candidates, plus the answer); and the row of each fact among the evaluated ones.
        """
        side = self.aspects[0]
        facts = side.facts(self.split)
        facts = facts if self.kept is None else facts[self.kept]
        keys, number = np.unique(side.keys(facts), return_inverse=True)
        of_facts = number.reshape(-1) * side.n_labels + facts[:, side.asks.answer]
        order = np.argsort(of_facts)
        return keys, of_facts[order], order


def side_text(side: int, texts: Mapping[str, str]) -> str:
    """Return the text of a question of a side. `texts` has the label per column of ranks."""
    terms = [texts.get(column, column) for column in (*ASKS[side].text, "context")]
    return f"({', '.join(terms if 'context' in texts else terms[:-1])})"


def fact_rows(terms: GraphTerms, triples: npt.ArrayLike) -> Int64:
    """Return the row of each fact (n, 3 or 4) among the evaluated; InputError for others."""
    if terms.sides == "qualifier":
        raise UsageError(
            "a triple does not say which of its qualifiers is asked; use the ranker's batches, or "
            "give row numbers"
        )
    graph = terms.graph
    n_contexts = 0 if graph.contexts is None else len(graph.contexts)
    rows = check_ids(
        "triples",
        as_triples("triples", triples, (4,) if n_contexts else (3,)),
        graph.n_entities,
        graph.n_relations,
        n_contexts,
    )
    side, (keys, of_facts, order) = terms.aspects[0], terms.fact_keys
    number = find_sorted(keys, side.keys(rows))
    fact = number * side.n_labels + rows[:, side.asks.answer]
    at = find_sorted(of_facts, np.where(number < 0, -1, fact))
    if (at < 0).any():
        first = int(np.flatnonzero(at < 0)[0])
        labels = [graph.entities, graph.relations, graph.entities]
        labels += [] if graph.contexts is None else [graph.contexts]
        names = [of_column[i] for of_column, i in zip(labels, rows[first].tolist(), strict=True)]
        raise InputError(
            f"triple {first}, ({', '.join(names)}), is not one of the {len(order)} "
            f"evaluated triples of split {terms.split!r}"
        )
    return order[at]
