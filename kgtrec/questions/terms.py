"""Named terms: what distinguishes the questions that do not come from a graph."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from kgtrec._internal.arrays import Int64
from kgtrec._internal.csr import Csr
from kgtrec.errors import InputError, UsageError

if TYPE_CHECKING:
    from kgtrec.graph.labels import Labels

NAMES = ("head", "tail", "relation", "qualifier", "all")
"""Names of the sides, indexed by code. "all" is for questions that do not come from a graph."""

SIDES = {
    "head": (0,),
    "tail": (1,),
    "both": (0, 1),
    "relation": (2,),
    "qualifier": (3,),
    "all": (4,),
}
"""Codes of the sides per value of the option `sides`."""

PLURAL = {"entity": "entities", "relation": "relations"}
"""Plural names of the kinds of candidates."""

TERM = "term."
"""Prefix of the columns of ranks that hold a named term."""

_NAME = re.compile(r"[A-Za-z_][\w-]*")


def copy_rows(array: Any, rows: Any) -> Any:
    """Copy rows of an array, or of each array of a tuple; return None for None."""
    if array is None:
        return None
    if isinstance(array, tuple):
        return tuple(copy_rows(part, rows) for part in array)
    return np.array(array[rows])


class MissingTermError(UsageError, AttributeError):
    """The questions do not have this term. `hasattr` is False, as for other absent attributes."""


class NoGraphError(MissingTermError):
    """Questions without a graph were used for something that needs one."""


class KnownAnswers(Protocol):
    """Questions, with the answers to be ranked and the known ones that filters remove."""

    @property
    def answers(self) -> Csr: ...

    @property
    def removed(self) -> Csr: ...


@dataclass(frozen=True, eq=False)
class Term:
    """A named column over questions or answers.

    - codes, int64 (n,): Indices of `labels`, or the values themselves if `labels` is None.
    """

    codes: Int64
    labels: Sequence[str] | None = None

    @classmethod
    def from_values(cls, name: str, values: Any, n: int) -> Term:
        """Make a term of n integers, or of n texts, which become categories in sorted order.

        InputError if there are other values, or more or fewer than n.
        """
        items = values.tolist() if isinstance(values, np.ndarray) else list(values)
        if (number := first_odd(items)) is not None:
            raise InputError(
                f"term {name!r} of question {number} is {items[number]!r}; give all of them a "
                "text, or all a whole number"
            )
        if len(items) != n:
            raise InputError(
                f"term {name!r} has {len(items)} values for {n} questions; give one per question"
            )
        if not isinstance((*items, 0)[0], str):
            return cls(np.array(items, np.int64))
        labels = sorted(set(items))
        code_of = {label: code for code, label in enumerate(labels)}
        return cls(np.array([code_of[item] for item in items], np.int64), labels)

    def select(self, rows: Any) -> Term:
        """Return the term of some questions or answers: a slice, or row numbers in any order."""
        return Term(np.array(self.codes[rows]), self.labels)

    def texts(self, codes: Int64) -> list[str]:
        """Return the text of each code."""
        if self.labels is None:
            return [str(code) for code in codes.tolist()]
        return [self.labels[code] for code in codes.tolist()]


def is_value(item: object) -> bool:
    """Return True for a text that UTF-8 files can contain and for a whole number of 64 bits."""
    if isinstance(item, str):
        try:
            item.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            return False
        return True
    if isinstance(item, bool) or not isinstance(item, (int, np.integer)):
        return False
    return bool(-(1 << 63) <= item < 1 << 63)


def first_odd(items: Sequence[object]) -> int | None:
    """Return the index of the first item that is not a value, or not of the kind of the others.

    The items must be all texts or all whole numbers. None: all items are fine.
    """
    kind = str if any(isinstance(item, str) for item in items) else (int, np.integer)
    return next((n for n, i in enumerate(items) if not (isinstance(i, kind) and is_value(i))), None)


def check_name(name: object) -> str:
    """Return the name of a term; InputError if keys, options and columns cannot contain it."""
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name.endswith("_label"):
        raise InputError(
            f"term {name!r} cannot be part of a key; use letters, digits, _ and -, begin with a "
            "letter, and do not end with _label"
        )
    return name


@dataclass(frozen=True, eq=False)
class NamedTerms:
    """The origin of Q questions that do not come from a graph: their names and named terms.

    - ids: Name of each question.
    - terms: The terms by name, each with a value per question.
    - candidate_labels: Labels of all candidates, by id.
    - facts: Further facts about the source, in plain JSON types.
    - score_rows, int64 (Q,): Rows of the questions among `n_score_rows` rows of scores. None if
      no question was left out, so that scores have exactly one row per question.
    """

    ids: Sequence[str]
    terms: Mapping[str, Term]
    candidate_labels: Labels
    facts: Mapping[str, Any] = field(default_factory=dict)
    score_rows: Int64 | None = None
    n_score_rows: int = 0

    kind, sides, split, context, kept = "entity", "all", None, None, None
    filter_splits: tuple[str, ...] = ()
    source = ""

    def __len__(self) -> int:
        return len(self.ids)

    def select(self, questions: Any) -> NamedTerms:
        """Return the terms of some questions: a slice, or numbers in any order."""
        numbers = np.arange(len(self))[questions]
        terms = {name: term.select(questions) for name, term in self.terms.items()}
        rows = None if self.score_rows is None else self.score_rows[numbers]
        ids = [self.ids[n] for n in numbers.tolist()]
        return replace(self, ids=ids, terms=terms, score_rows=rows)

    @property
    def has_further_rows(self) -> bool:
        """True if scores may have rows for questions that were left out."""
        return self.score_rows is not None

    @property
    def side(self) -> Int64:
        """The code of "all" for each question: int64, shape (Q,)."""
        return np.full(len(self), NAMES.index("all"))

    def batch_terms(self, questions: Int64) -> dict[str, Int64]:
        """Return the terms of a `Batch`: -1 for each id, as there is no graph to look it up."""
        nothing = np.full(len(questions), -1)
        return {"entity": nothing, "relation": nothing, "side": self.side[questions]}

    @property
    def columns(self) -> dict[str, Int64]:
        """The terms as columns of ranks, shape (Q,) each."""
        return {f"{TERM}{name}": term.codes for name, term in self.terms.items()}

    def lines(self, details: Mapping[str, Any]) -> tuple[str, str, str]:
        """Return three parts of the repr of questions: the name, the sides (empty), the terms."""
        name = f" of {self.facts['name']}" if self.facts.get("name") else ""
        return name, "", f"terms: {', '.join(self.terms) or 'none'}"

    def popularity(self, questions: KnownAnswers) -> tuple[Int64, None]:
        """Count how often each candidate is a known answer; None stands for relations."""
        known = np.concatenate([questions.answers.ids, questions.removed.ids])
        return np.bincount(known, minlength=len(self.candidate_labels)), None

    @property
    def labels(self) -> tuple[None, Labels]:
        """Labels of relations (None) and of candidates, as ranks store them."""
        return None, self.candidate_labels

    def names(self, rows: slice) -> list[str]:
        """Return the names of a range of questions."""
        return list(self.ids[rows])

    def text(self, question: int) -> str:
        """Return the terms of a question: ``(structure 2p, year 2014)``, or an empty text."""
        texts = [
            f"{name} {term.texts(term.codes[question : question + 1])[0]}"
            for name, term in self.terms.items()
        ]
        return f"({', '.join(texts)})" if texts else ""

    def hash_parts(self) -> tuple[str, dict[str, Any], dict[str, Any]]:
        """Return what a fingerprint hashes: a text, arrays before the answers, and arrays after."""
        hasher = hashlib.blake2b(digest_size=16)
        hasher.update(self.candidate_labels.digest())
        for text in (*self.ids, *(f"{n} {t.labels}" for n, t in self.terms.items())):
            hasher.update(text.encode("utf-8", "surrogatepass") + b"\0")
        return f"answers {hasher.hexdigest()}", dict(self.columns), {}

    def describe(self, facts: dict[str, Any], details: dict[str, Any]) -> dict[str, Any]:
        """Return the source of the questions and the facts about them, in plain JSON types."""
        name = {"graph_name": self.facts.get("name"), "sides": "all", "terms": list(self.terms)}
        further = {key: value for key, value in self.facts.items() if key != "name"}
        return {**name, **facts, "n_entities": len(self.candidate_labels), **further, **details}

    def manifest(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return, for a manifest of ranks, facts about the questions (none) and further entries."""
        terms = {name: term.labels for name, term in self.terms.items()}
        return {}, {"question_ids": list(self.ids), "terms": terms}

    def rows_among(self, rows: str = "questions") -> tuple[Int64, int]:
        """Return the score rows of these questions, (Q,), and the number of all score rows."""
        if self.score_rows is None or rows == "instances":
            return np.arange(len(self)), len(self)
        return self.score_rows, self.n_score_rows
