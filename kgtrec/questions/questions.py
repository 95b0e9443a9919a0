"""Questions: answers, further known answers, candidates, and the terms that distinguish questions.

Questions are data: `QuestionData` knows no graph. `QuestionData.asked` says where they come from
and what they give: `GraphTerms` for a graph's split, or `NamedTerms` for given answers.

Column order: the entity of each column of a model's scores, declared once by labels or ids.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from kgtrec._internal.csr import Array, Bools, Csr, Int64, Integers, contains, inverse, to_keys
from kgtrec._internal.table import lines_as_html
from kgtrec.errors import InputError, UsageError
from kgtrec.graph.triples import hash_array

if TYPE_CHECKING:
    from kgtrec.graph.labels import Labels
    from kgtrec.questions.candidates import CandidateLists
    from kgtrec.questions.graph_terms import GraphTerms
    from kgtrec.questions.terms import NamedTerms, Term


NAMES = ("head", "tail", "relation", "qualifier", "all")
"""What a side is called, by its code; "all" questions that no graph has asked have none."""

SIDES = {
    "head": (0,), "tail": (1,), "both": (0, 1), "relation": (2,), "qualifier": (3,), "all": (4,),
}  # fmt: skip
"""Codes of the sides that a name covers."""

PLURAL = {"entity": "entities", "relation": "relations"}
"""What candidates of a kind are called."""


def column_of_label(columns: Any, labels: Labels, kind: str = "entity") -> Int64:
    """The column of each entity (or relation): int64, shape (len(labels),)."""
    if isinstance(columns, (str, bytes)) or not isinstance(columns, Iterable):
        raise InputError(
            f"columns={columns!r} is not an order of {PLURAL[kind]}; give their labels or ids in "
            "the order of the columns, or a mapping of label to column"
        )
    if isinstance(columns, Mapping):
        places, names = np.asarray(list(columns.values())), list(columns)
        if places.dtype.kind not in "iu" or sorted(places.tolist()) != list(range(len(places))):
            raise InputError(
                f"columns maps {len(names)} labels, but not to the columns 0 to {len(names) - 1}; "
                "give each label its own column"
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


def _each_once(ids: Int64, labels: Labels, kind: str) -> Int64:
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
    return ids


def require_columns_by_id(questions: QuestionData, what: str) -> None:
    """UsageError if these questions declare columns in another order than by id."""
    if questions.column_of is not None:
        raise UsageError(
            f"{what} needs columns in id order, but these questions declare another order "
            "(columns=); leave columns= out, and give columns in id order"
        )


def is_usual_filter(
    name: str | None, evaluated: str | None, context: str | None, splits: Collection[str]
) -> bool:
    """Whether a known protocol leaves these splits out of the filter: then there is no warning.

    Two protocols do so: validation on the validation split, and TGB 2.0, whose conflicts at a time
    come from the evaluated split alone.
    """
    at_validation = (name, evaluated) == ("valid", "valid")
    return at_validation or (context == "time" and set(splits) == {evaluated})


def taken(array: Any, rows: Any) -> Any:
    """Copies of some rows of an array, or of each of several; None for None."""
    if array is None:
        return None
    if isinstance(array, tuple):
        return tuple(taken(one, rows) for one in array)
    return np.array(array[rows])


@dataclass(frozen=True, eq=False, repr=False)
class QuestionData:
    """Aggregated questions as data, with what they give in `asked`.

    `kgtrec.Questions`, which adds makers and restrictions, documents the attributes. Attributes of
    `asked` are attributes of the questions, too.
    """

    asked: GraphTerms | NamedTerms
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

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "asked" not in vars(self):  # while it is copied or unpickled
            raise AttributeError(name)
        return getattr(self.asked, name)

    def __repr__(self) -> str:
        among = "restricted" if self.candidate_lists is not None else f"{self.n_labels:,}"
        size = f"{len(self):,} questions, {self.n_instances:,} instances"
        first, sides, filtered = self.asked.lines(self.details)
        return f"Questions{first}\n  {size}{sides}\n  {filtered}; {among} candidates"

    def _repr_html_(self) -> str:
        return lines_as_html(repr(self))

    @property
    def n_labels(self) -> int:
        """Number of candidate labels: the width of a score row without listed candidates."""
        return len(self.asked.candidate_labels)

    @property
    def column(self) -> Integers:
        """The given entity in the model's numbers, which is its column: int32 or int64, (Q,)."""
        entity: Integers = self.asked.entity
        if self.column_of is None or self.asked.kind == "relation":
            return entity
        return self.column_of[entity]

    @property
    def n_instances(self) -> int:
        """Number of (question, answer) pairs."""
        return len(self.answers.ids)

    def taken(self, questions: Any, instances: Any, **changes: Any) -> Any:
        """Some questions and instances, as slices or numbers, with ``changes`` of other fields."""
        of_instances = ("instance_triple", "outside", "full_candidates", "grades")
        fields: dict[str, Any] = {
            name: taken(getattr(self, name), instances) for name in of_instances
        }
        fields["asked"] = self.asked.taken(questions)
        if (lists := self.candidate_lists) is not None:
            fields["candidate_lists"] = replace(lists, of=taken(lists.of, questions))
        terms = self.answer_terms.items()
        fields["answer_terms"] = {name: term.taken(instances) for name, term in terms}
        return replace(self, **fields | changes)

    @cached_property
    def candidates(self) -> Int64:
        """Micro candidates of each instance, its answer included: int64, shape (n_instances,)."""
        others = self._sizes_without(self.known)[self.instance_question]
        if self.asked.split in self.asked.filter_splits:
            return others + 1  # every answer is known, but its id is kept
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

    @property
    def n_columns(self) -> int:
        """Number of columns of a score row: entities, relations, or only the listed candidates."""
        return self.n_labels if self.candidate_lists is None else self.candidate_lists.width

    @cached_property
    def fingerprint(self) -> str:
        """Hash (32 hexadecimal digits) of the questions, their answers and both filters."""
        hasher = hashlib.blake2b(digest_size=16)
        text, before, after = self.asked.hashed()
        hasher.update(text.encode())
        for name, array in before.items():
            hash_array(hasher, name, array)
        for name in ("answers", "known", "removed"):
            csr: Csr = getattr(self, name)
            hash_array(hasher, f"{name} offsets", csr.offsets)
            hash_array(hasher, f"{name} ids", csr.ids)
        for name, array in after.items():
            hash_array(hasher, name, array)
        if self.candidate_lists is not None:
            hash_array(hasher, "domain of", self.candidate_lists.of)
            hash_array(hasher, "domain offsets", self.candidate_lists.lists.offsets)
            hash_array(hasher, "domain ids", self.candidate_lists.lists.ids)
        if self.grades is not None:
            hash_array(hasher, "grades", self.grades)
        for name, term in self.answer_terms.items():
            hash_array(hasher, f"answers by {name}", term.codes)
        return hasher.hexdigest()

    def describe(self) -> dict[str, Any]:
        """Where the questions come from, in plain JSON types, for manifests."""
        facts = {
            "restricted": None if self.candidate_lists is None else self.candidate_lists.kind,
            "sampled": self.candidate_lists is not None and self.candidate_lists.sampled,
            "outside": 0 if self.outside is None else int(self.outside.sum()),
            "n_questions": len(self),
            "n_instances": self.n_instances,
        }
        described = self.asked.described(facts, dict(self.details))
        return {**described, "questions_hash": self.fingerprint}

    def manifest(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """For a manifest of ranks: further facts on the questions, and further entries."""
        facts, entries = self.asked.manifest()
        if "terms" in entries:
            entries["terms"] |= {name: term.labels for name, term in self.answer_terms.items()}
        return facts, entries

    @property
    def columns(self) -> dict[str, tuple[Array, bool]]:
        """Terms as columns of ranks: values, and whether there is one per question."""
        columns = {name: (ids, True) for name, ids in self.asked.columns.items()}
        of_answers = {f"{TERM}{name}": term for name, term in self.answer_terms.items()}
        return columns | {name: (term.codes, False) for name, term in of_answers.items()}


TERM = "term."
"""What columns of ranks begin with that hold a term by its own name."""


def describe_question(questions: QuestionData, question: int) -> str:
    """A question as people read it: ``question head12 (?, born_in, Rome)``."""
    return f"question {questions.ids[question]} {questions.asked.text(question)}".rstrip()
