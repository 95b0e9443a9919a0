"""Questions: answers, further known answers, candidates, and the terms that distinguish questions.

`QuestionData` does not depend on a graph. Its `origin` says where the questions come from and what
they give: `GraphTerms` for a graph's split, or `NamedTerms` for answers without a graph.

`column_of_label` reads the order of the columns of a model's scores, declared by labels or ids.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from kgtrec._internal.argument_names import argument
from kgtrec._internal.arrays import Array, Bools, Int32, Int64, Integers
from kgtrec._internal.csr import Csr, contains, inverse, owners, to_keys
from kgtrec._internal.table import lines_as_html
from kgtrec.errors import InputError, UsageError
from kgtrec.graph.triples import hash_array
from kgtrec.questions.terms import PLURAL, TERM, NamedTerms, NoGraphError, copy_rows

if TYPE_CHECKING:
    from kgtrec.graph.graph import GraphData
    from kgtrec.graph.labels import Labels
    from kgtrec.questions.candidate_lists import CandidateLists
    from kgtrec.questions.graph_terms import GraphTerms
    from kgtrec.questions.terms import Term


def column_of_label(columns: Any, labels: Labels, kind: str = "entity") -> Int64:
    """Return the declared column of each entity or relation: int64, shape (len(labels),)."""
    if isinstance(columns, (str, bytes)) or not isinstance(columns, Iterable):
        raise InputError(
            f"{argument('columns', columns)} is not an order of {PLURAL[kind]}; give their labels "
            "or ids in "
            "the order of the columns, or a mapping of label to column"
        )
    if isinstance(columns, Mapping):
        numbers, names = np.asarray(list(columns.values())), list(columns)
        if numbers.dtype.kind not in "iu" or sorted(numbers.tolist()) != list(range(len(numbers))):
            raise InputError(
                f"columns maps {len(names)} labels, but not to the columns 0 to {len(names) - 1}; "
                "give each label its own column"
            )
        columns = [names[at] for at in np.argsort(numbers).tolist()]
    ids = _as_ids(columns, labels, kind)
    counts = np.bincount(ids, minlength=len(labels))
    if (counts > 1).any():
        twice = int(np.flatnonzero(counts > 1)[0])
        first, second = np.flatnonzero(ids == twice)[:2].tolist()
        raise InputError(
            f"columns {first} and {second} are both declared as {labels[twice]!r} (id "
            f"{twice}); give each {kind} one column"
        )
    if not counts.all():
        missing = np.flatnonzero(counts == 0)
        named = ", ".join(repr(label) for label in labels[missing[:5]])
        raise InputError(
            f"{len(missing)} of {len(labels)} {PLURAL[kind]} have no column: {named}"
            f"{', ...' if len(missing) > 5 else ''}; add columns for them (a constant such as -inf "
            "if the model was not trained on them), or leave them out of the graph"
        )
    return inverse(ids)


def _as_ids(columns: Any, labels: Labels, kind: str) -> Int64:
    """Return the id of each declared column, from labels or ids; InputError for unknown ones."""
    values = columns if isinstance(columns, np.ndarray) else list(columns)
    if len(values) and isinstance(values[0], str):
        try:
            return labels.ids(values if isinstance(values, list) else values.tolist())
        except InputError as error:
            raise InputError(f"columns: {error.marked}") from None
    ids = np.asarray(values)
    if ids.ndim != 1 or ids.dtype.kind not in "iu":
        raise InputError(
            f"columns has shape {ids.shape} and dtype {ids.dtype}; give the label or the id of "
            f"the {kind} of each column"
        )
    wrong = np.flatnonzero((ids < 0) | (ids >= len(labels)))
    if len(wrong):
        raise InputError(
            f"column {wrong[0]} is declared as {kind} {ids[wrong[0]]}, which is not an id below "
            f"{len(labels)}"
        )
    return ids.astype(np.int64)


def require_columns_by_id(questions: QuestionData, user: str) -> None:
    """Raise UsageError, on behalf of `user`, if questions declare an order of columns."""
    if questions.column_of is not None:
        raise UsageError(
            f"{user} needs columns in id order, but these questions declare another order "
            "(columns=); leave columns= out, and give columns in id order"
        )


def is_usual_filter(
    name: str | None, evaluated: str | None, context: str | None, splits: Collection[str]
) -> bool:
    """Return True if a known protocol filters by these splits only, so that no warning is due.

    Two protocols do so: validation on the validation split, and TGB 2.0, whose conflicts at a time
    come from the evaluated split alone.
    """
    at_validation = (name, evaluated) == ("valid", "valid")
    return at_validation or (context == "time" and set(splits) == {evaluated})


AnyQuestions = TypeVar("AnyQuestions", bound="QuestionData")


@dataclass(frozen=True, eq=False, repr=False)
class QuestionData:
    """The data of `kgtrec.Questions`, which documents the fields.

    Modules below `questions.api` use it; others use `Questions`, which adds the methods for users.
    """

    origin: GraphTerms | NamedTerms
    answers: Csr
    known: Csr
    removed: Csr
    instance_question: Integers
    instance_triple: Integers
    triple_rows: Integers
    candidate_lists: CandidateLists | None = None
    outside: Bools | None = None
    full_candidates: Int64 | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    column_of: Int64 | None = None
    grades: Int64 | None = None
    answer_terms: Mapping[str, Term] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.answers)

    def of_graph(self, term: str = "graph") -> GraphTerms:
        """Return `origin` if it is a graph; else raise NoGraphError, which names the term."""
        if isinstance(self.origin, NamedTerms):
            raise NoGraphError(
                f"these questions were made from answers, so they have no {term!r}; use questions "
                "of Graph.questions"
            )
        return self.origin

    @property
    def graph(self) -> GraphData:
        """The graph whose split asks the questions."""
        return self.of_graph("graph").graph

    @property
    def split(self) -> str | None:
        """The evaluated split; None without a graph."""
        return self.origin.split

    @property
    def n_entities(self) -> int:
        """Number of entities of the graph."""
        return self.of_graph("n_entities").n_entities

    @property
    def sides(self) -> str:
        """The sides that are asked for: a key of `SIDES`."""
        return self.origin.sides

    @property
    def filter_splits(self) -> tuple[str, ...]:
        """Splits whose triples count as known."""
        return self.origin.filter_splits

    @property
    def n_extra_known(self) -> int:
        """Number of further known triples."""
        return self.of_graph("n_extra_known").n_extra_known

    @property
    def side(self) -> Int64:
        """Code of each question's side: int64, shape (Q,)."""
        return self.origin.side

    @property
    def given(self) -> tuple[Int32, Int32]:
        """The given pair of ids: two arrays of int32, shape (Q,)."""
        return self.of_graph("given").given

    @property
    def entity(self) -> Int32:
        """The given entity: int32, shape (Q,)."""
        return self.of_graph("entity").entity

    @property
    def relation(self) -> Int32:
        """The given relation: int32, shape (Q,)."""
        return self.of_graph("relation").relation

    @property
    def tail(self) -> Int32:
        """The given tail of questions for the relation: int32, shape (Q,)."""
        return self.of_graph("tail").tail

    @property
    def statement(self) -> Int32:
        """The given statement of questions for a qualifier's value: int32, shape (Q, 3)."""
        return self.of_graph("statement").statement

    @property
    def context(self) -> Int32 | None:
        """The context of each question: int32, shape (Q,); None without a context."""
        return self.origin.context

    @property
    def kept(self) -> Int64 | None:
        """Rows of the split that are evaluated: int64, shape (n,); None: all of them."""
        return self.origin.kept

    @property
    def triples(self) -> Int32:
        """The evaluated triples in split order: int32, shape (n, 3)."""
        return self.of_graph("triples").triples

    @property
    def kind(self) -> str:
        """The kind of candidates: "entity" or "relation"."""
        return self.origin.kind

    @property
    def candidate_labels(self) -> Labels:
        """Labels of the possible candidates by id."""
        return self.origin.candidate_labels

    @property
    def ids(self) -> Sequence[str]:
        """Names of the questions."""
        return self.origin.ids

    @property
    def terms(self) -> Mapping[str, Term]:
        """The terms of questions without a graph, by name; empty for those of a graph."""
        return self.origin.terms if isinstance(self.origin, NamedTerms) else {}

    def __repr__(self) -> str:
        among = "restricted" if self.candidate_lists is not None else f"{self.n_labels:,}"
        size = f"{len(self):,} questions, {self.n_instances:,} instances"
        first, sides, filtered = self.origin.lines(self.details)
        return f"Questions{first}\n  {size}{sides}\n  {filtered}; {among} candidates"

    def _repr_html_(self) -> str:
        return lines_as_html(repr(self))

    @property
    def n_labels(self) -> int:
        """Number of candidate labels: the width of a score row without listed candidates."""
        return len(self.origin.candidate_labels)

    @property
    def column(self) -> Integers:
        """The given entity in the model's numbers, which is its column: int32 or int64, (Q,)."""
        entity: Integers = self.entity
        if self.column_of is None or self.origin.kind == "relation":
            return entity
        return self.column_of[entity]

    def rows_among(self, rows: str = "questions") -> tuple[Int64, int]:
        """Return the rows of these questions among the score rows of the whole split.

        Parameters
        ----------
        rows : {"questions", "instances"}
            What a row of scores stands for.

        Returns
        -------
        rows : ndarray of int64, shape (Q,) or (n_instances,)
        n_rows : int
            Number of rows of the whole split.
        """
        return self.origin.rows_among(rows)

    @property
    def n_instances(self) -> int:
        """Number of (question, answer) pairs."""
        return len(self.answers.ids)

    def select(self: AnyQuestions, questions: Any, instances: Any, **changes: Any) -> AnyQuestions:
        """Return some questions and instances: slices, or numbers in any order.

        Pass new values of the fields that cannot be cut (such as `answers`) as ``changes``.
        """
        of_instances = ("instance_triple", "outside", "full_candidates", "grades")
        fields: dict[str, Any] = {
            name: copy_rows(getattr(self, name), instances) for name in of_instances
        }
        fields["origin"] = self.origin.select(questions)
        if (lists := self.candidate_lists) is not None:
            fields["candidate_lists"] = replace(lists, of=copy_rows(lists.of, questions))
        terms = self.answer_terms.items()
        fields["answer_terms"] = {name: term.select(instances) for name, term in terms}
        return replace(self, **fields | changes)

    @cached_property
    def candidates(self) -> Int64:
        """Micro candidates of each instance, its answer included: int64, shape (n_instances,)."""
        n_unknown = self._sizes_without(self.known)[self.instance_question]
        if self.origin.split in self.origin.filter_splits:
            return n_unknown + 1  # every answer is known, but its id is kept
        answers, known = (to_keys(csr, self.n_labels) for csr in (self.answers, self.known))
        is_known = contains(known, answers)
        return n_unknown + (is_known if self.outside is None else is_known | self.outside)

    @cached_property
    def macro_candidates(self) -> Int64:
        """Macro candidates of each instance's question: int64, shape (n_instances,)."""
        n_unknown = self._sizes_without(self.removed)[self.instance_question]
        return n_unknown if self.outside is None else n_unknown + self.outside

    def _sizes_without(self, filtered: Csr) -> Int64:
        """Count the candidates of each question that a filter keeps: int64, shape (Q,)."""
        if self.candidate_lists is None:
            return self.n_labels - filtered.lengths
        question = owners(filtered.offsets)
        inside = self.candidate_lists.holds(question, filtered.ids, self.n_labels)
        n_filtered = np.bincount(question[inside], minlength=len(self))
        return self.candidate_lists.sizes(self.n_labels) - n_filtered

    @property
    def n_columns(self) -> int:
        """Number of columns of a score row: entities, relations, or only the listed candidates."""
        return self.n_labels if self.candidate_lists is None else self.candidate_lists.width

    @cached_property
    def fingerprint(self) -> str:
        """Hash (32 hexadecimal digits) of the questions, their answers and both filters."""
        text, before, after = self.origin.hash_parts()
        arrays = dict(before)
        for name in ("answers", "known", "removed"):
            csr: Csr = getattr(self, name)
            arrays |= {f"{name} offsets": csr.offsets, f"{name} ids": csr.ids}
        arrays |= after
        if (restricted := self.candidate_lists) is not None:
            arrays |= {
                "domain of": restricted.of,
                "domain offsets": restricted.lists.offsets,
                "domain ids": restricted.lists.ids,
            }
        if self.grades is not None:
            arrays["grades"] = self.grades
        arrays |= {f"answers by {name}": term.codes for name, term in self.answer_terms.items()}
        hasher = hashlib.blake2b(text.encode(), digest_size=16)
        for name, array in arrays.items():
            hash_array(hasher, name, array)
        return hasher.hexdigest()

    def describe(self) -> dict[str, Any]:
        """Return the source of the questions and facts about them, in plain JSON types."""
        facts = {
            "restricted": None if self.candidate_lists is None else self.candidate_lists.kind,
            "sampled": self.candidate_lists is not None and self.candidate_lists.sampled,
            "outside": 0 if self.outside is None else int(self.outside.sum()),
            "n_questions": len(self),
            "n_instances": self.n_instances,
        }
        described = self.origin.describe(facts, dict(self.details))
        return {**described, "questions_hash": self.fingerprint}

    def manifest(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return, for a manifest of ranks, facts about the questions and further entries."""
        facts, entries = self.origin.manifest()
        if "terms" in entries:
            entries["terms"] |= {name: term.labels for name, term in self.answer_terms.items()}
        return facts, entries

    @property
    def columns(self) -> dict[str, tuple[Array, bool]]:
        """Columns of ranks by name: values, and True if there is one per question (not answer)."""
        columns = {name: (ids, True) for name, ids in self.origin.columns.items()}
        of_answers = {f"{TERM}{name}": term for name, term in self.answer_terms.items()}
        return columns | {name: (term.codes, False) for name, term in of_answers.items()}


def describe_question(questions: QuestionData, question: int) -> str:
    """Return the name and text of a question: ``question head12 (?, born_in, Rome)``."""
    return f"question {questions.ids[question]} {questions.origin.text(question)}".rstrip()
