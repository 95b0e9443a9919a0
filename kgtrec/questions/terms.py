"""Named terms: they distinguish questions without a graph, and say where these come from."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from kgtrec._internal.arrays import Int64
from kgtrec.errors import InputError, UsageError

if TYPE_CHECKING:
    from kgtrec.graph.labels import Labels
    from kgtrec.questions.questions import QuestionData

NAMES = ("head", "tail", "relation", "qualifier", "all")
"""What a side is called, by its code; "all" questions that no graph has asked have none."""

SIDES = {
    "head": (0,),
    "tail": (1,),
    "both": (0, 1),
    "relation": (2,),
    "qualifier": (3,),
    "all": (4,),
}
"""Codes of the sides that a name covers."""

PLURAL = {"entity": "entities", "relation": "relations"}
"""What candidates of a kind are called."""

TERM = "term."
"""What columns of ranks begin with that hold a term by its own name."""

_NAME = re.compile(r"[A-Za-z_][\w-]*")


def taken(array: Any, rows: Any) -> Any:
    """Copies of some rows of an array, or of each of several; None for None."""
    if array is None:
        return None
    if isinstance(array, tuple):
        return tuple(taken(one, rows) for one in array)
    return np.array(array[rows])


class MissingTermError(UsageError, AttributeError):
    """These questions do not give the term. `hasattr` is False, as for other absent attributes."""


class NoGraphError(MissingTermError):
    """Questions without a graph were used for something that needs one."""


@dataclass(frozen=True, eq=False)
class Term:
    """A named column over questions or answers.

    - codes, int64 (n,): Places in `labels`; the numbers themselves if there are no labels.
    """

    codes: Int64
    labels: Sequence[str] | None = None

    @classmethod
    def of(cls, name: str, values: Any, n: int) -> Term:
        """From n integers, or texts, which become ordered categories; else InputError."""
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
        place = {label: code for code, label in enumerate(labels)}
        return cls(np.array([place[item] for item in items], np.int64), labels)

    def taken(self, rows: Any) -> Term:
        """The term of some questions: a slice, or numbers in any order."""
        return Term(np.array(self.codes[rows]), self.labels)

    def texts(self, codes: Int64) -> list[str]:
        """Some codes as text."""
        if self.labels is None:
            return [str(code) for code in codes.tolist()]
        return [self.labels[code] for code in codes.tolist()]


def is_value(item: Any) -> bool:
    """Whether an item is a text that files can hold, or a whole number of 64 bits."""
    if isinstance(item, str):
        try:
            item.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            return False
        return True
    whole = isinstance(item, (int, np.integer)) and not isinstance(item, bool)
    return whole and -(1 << 63) <= item < 1 << 63


def first_odd(items: list[Any]) -> int | None:
    """The first item that is not a value or differs in kind from others; None: all are fine."""
    kind = str if any(isinstance(item, str) for item in items) else (int, np.integer)
    return next((n for n, i in enumerate(items) if not (isinstance(i, kind) and is_value(i))), None)


def check_name(name: Any) -> str:
    """A term's name, for keys, options and columns; InputError if it is unsuitable."""
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name.endswith("_label"):
        raise InputError(
            f"term {name!r} cannot be part of a key; use letters, digits, _ and -, begin with a "
            "letter, and do not end with _label"
        )
    return name


@dataclass(frozen=True, eq=False)
class NamedTerms:
    """Names and terms of Q questions, and labels of their candidates.

    - ids: Name of each question.
    - terms: By name.
    - facts: Further facts about their source, in plain JSON types.
    - score_rows, int64 (Q,): Their rows among `n_score_rows` rows of scores, if scores may also
      have rows for questions that were left out.
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

    def taken(self, questions: Any) -> NamedTerms:
        """The terms of some questions: a slice, or numbers in any order."""
        numbers = np.arange(len(self))[questions]
        terms = {name: term.taken(questions) for name, term in self.terms.items()}
        rows = None if self.score_rows is None else self.score_rows[numbers]
        ids = [self.ids[n] for n in numbers.tolist()]
        return replace(self, ids=ids, terms=terms, score_rows=rows)

    @property
    def has_further_rows(self) -> bool:
        """Whether scores may have rows for questions that were left out."""
        return self.score_rows is not None

    @property
    def side(self) -> Int64:
        """The code of "all" for each question."""
        return np.full(len(self), NAMES.index("all"))

    def batch_terms(self, questions: Int64) -> dict[str, Int64]:
        """The terms of a `Batch`, without ids that a model of a graph could look up."""
        nothing = np.full(len(questions), -1)
        return {"entity": nothing, "relation": nothing, "side": self.side[questions]}

    @property
    def columns(self) -> dict[str, Int64]:
        """The terms as columns of ranks, (Q,) each."""
        return {f"{TERM}{name}": term.codes for name, term in self.terms.items()}

    def lines(self, details: Mapping[str, Any]) -> tuple[str, str, str]:
        """Their terms, for the questions' repr."""
        name = f" of {self.facts['name']}" if self.facts.get("name") else ""
        return name, "", f"terms: {', '.join(self.terms) or 'none'}"

    def popularity(self, questions: QuestionData) -> tuple[Int64, None]:
        """How often each candidate answers a question; None for relations."""
        found = np.concatenate([questions.answers.ids, questions.removed.ids])
        return np.bincount(found, minlength=len(self.candidate_labels)), None

    @property
    def labels(self) -> tuple[None, Labels]:
        """Labels of candidates, in the form for ranks; None for relations."""
        return None, self.candidate_labels

    def names(self, rows: slice) -> list[str]:
        """Names of some questions."""
        return list(self.ids[rows])

    def text(self, question: int) -> str:
        """The terms of a question: ``(structure 2p, year 2014)``; nothing if there are none."""
        texts = [
            f"{name} {term.texts(term.codes[question : question + 1])[0]}"
            for name, term in self.terms.items()
        ]
        return f"({', '.join(texts)})" if texts else ""

    def hashed(self) -> tuple[str, dict[str, Any], dict[str, Any]]:
        """Parts of a fingerprint: a text, arrays before the answers, and arrays after."""
        hasher = hashlib.blake2b(digest_size=16)
        hasher.update(self.candidate_labels.digest())
        for text in (*self.ids, *(f"{n} {t.labels}" for n, t in self.terms.items())):
            hasher.update(text.encode("utf-8", "surrogatepass") + b"\0")
        return f"answers {hasher.hexdigest()}", dict(self.columns), {}

    def described(self, facts: dict[str, Any], details: dict[str, Any]) -> dict[str, Any]:
        """Where the questions come from, combined with facts about them, in plain JSON types."""
        name = {"graph_name": self.facts.get("name"), "sides": "all", "terms": list(self.terms)}
        further = {key: value for key, value in self.facts.items() if key != "name"}
        return {**name, **facts, "n_entities": len(self.candidate_labels), **further, **details}

    def manifest(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """For a manifest of ranks: further facts on the questions, and further entries."""
        terms = {name: term.labels for name, term in self.terms.items()}
        return {}, {"question_ids": list(self.ids), "terms": terms}

    def rows_among(self, rows: str = "questions") -> tuple[Int64, int]:
        """Return these questions' rows of scores, and the number of rows in all."""
        if self.score_rows is None or rows == "instances":
            return np.arange(len(self)), len(self)
        return self.score_rows, self.n_score_rows
