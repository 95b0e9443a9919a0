"""The origin of ranks: the manifest as a typed value, and differences between two origins.

The manifest is a dict of JSON types, which files store unchanged. Code reads its facts here, under
the names of fields.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kgtrec.errors import UsageError
from kgtrec.ranking.settings import Settings


@dataclass(frozen=True)
class Provenance:
    """The facts of a manifest about the ranked questions and their scores.

    A field has its default if the manifest omits it.

    - has_questions: True if the manifest describes the questions.
    - column_order: Order of head, relation and tail in lines of the graph's splits.
    - filter: Name of the protocol that chose `filter_splits`. Both are None if not recorded.
    - subset: Numbers of entities, relations and triples that a restricted evaluation keeps.
    - min_answers: Least number of answers of a question, and how many questions that keeps.
    - lists, known_files: Counts and files of candidate lists, and of further known facts.
    - popularity: Splits on which entities and relations were recounted.
    - rows, run_depth: Settings of a ranking of scores; manifests do not record the run depth.
    - overlap: Triples that the split shares with train and with itself; see
      `kgtrec.graph.statistics.overlap`. Empty without train.
    - question_numbers: Number of each question among all of its side in the split, which is that of
      its name. Empty if no question is left out: they are numbered as they are.
    - question_ids, terms: Names of questions, and labels per term (None: its values are numbers).
      Empty if the questions come from a graph.
    - contexts: Labels of times or sets of qualifiers, by number.
    - qrels: File and level of the qrels whose documents were ranked; None without qrels.
    - model_facts: Sentences on the formula of a model of vectors.
    - trec_agreement: Largest difference between pytrec_eval's and the native values per measure.
    """

    has_questions: bool = False
    graph_name: str | None = None
    graph_hash: str | None = None
    column_order: str = "hrt"
    split: str | None = None
    sides: str | None = None
    context: str | None = None
    context_filter: str | None = None
    filter: str | None = None
    filter_splits: tuple[str, ...] | None = None
    extra_known: int = 0
    known_files: tuple[Mapping[str, Any], ...] = ()
    restricted: str | None = None
    sampled: bool = False
    outside: int = 0
    lists: Mapping[str, Any] = field(default_factory=dict)
    subset: Mapping[str, Any] = field(default_factory=dict)
    min_answers: Mapping[str, int] = field(default_factory=dict)
    n_entities: int | None = None
    n_relations: int | None = None
    n_head_questions: int = 0
    question_numbers: Sequence[int] = ()
    triples: Mapping[str, int] = field(default_factory=dict)
    duplicates_dropped: Mapping[str, int] = field(default_factory=dict)
    overlap: Mapping[str, int] = field(default_factory=dict)
    questions_hash: str | None = None
    dtype: str | None = None
    higher_is_better: bool | None = None
    nan: str | None = None
    nan_count: int = 0
    rows: str | None = None
    run_depth: int | None = None
    tie_tolerance: Mapping[str, float] | None = None
    predictions: Mapping[str, Any] = field(default_factory=dict)
    question_ids: Sequence[str] = ()
    terms: Mapping[str, Sequence[str] | None] = field(default_factory=dict)
    contexts: Mapping[str, str] = field(default_factory=dict)
    qrels: Mapping[str, Any] | None = None
    popularity: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    trec_agreement: Mapping[str, float] = field(default_factory=dict)
    model_facts: Sequence[str] = ()

    @classmethod
    def from_manifest(cls, manifest: Mapping[str, Any]) -> Provenance:
        """Read a manifest; missing entries and None become defaults."""
        facts = _facts(manifest)
        known = {name: facts[name] for name in _JSON_TYPES if facts.get(name) is not None}
        tuples = {name: tuple(known[name]) for name in _TUPLES if name in known}
        return cls(has_questions=bool(manifest.get("questions")), **known | tuples)

    @classmethod
    def from_settings(cls, questions_hash: str, settings: Settings, dtype: str) -> Provenance:
        """Return the facts that all parts of a ranking share (`PARTS`)."""
        names = ("higher_is_better", "nan", "rows", "run_depth")
        facts: dict[str, Any] = {name: getattr(settings, name) for name in names}
        tolerance = settings.tolerance and settings.tolerance._asdict()
        return cls(questions_hash=questions_hash, dtype=dtype, tie_tolerance=tolerance, **facts)


_JSON_TYPES: dict[str, type] = {
    "graph_name": str,
    "graph_hash": str,
    "column_order": str,
    "split": str,
    "sides": str,
    "context": str,
    "context_filter": str,
    "filter": str,
    "filter_splits": list,
    "extra_known": int,
    "known_files": list,
    "restricted": str,
    "sampled": bool,
    "outside": int,
    "lists": dict,
    "subset": dict,
    "min_answers": dict,
    "n_entities": int,
    "n_relations": int,
    "n_head_questions": int,
    "question_numbers": list,
    "triples": dict,
    "duplicates_dropped": dict,
    "overlap": dict,
    "questions_hash": str,
    "dtype": str,
    "higher_is_better": bool,
    "nan": str,
    "nan_count": int,
    "rows": str,
    "run_depth": int,
    "tie_tolerance": dict,
    "predictions": dict,
    "question_ids": list,
    "terms": dict,
    "contexts": dict,
    "qrels": dict,
    "popularity": dict,
    "trec_agreement": dict,
    "model_facts": list,
}
"""Type in a manifest of each field of `Provenance` but ``has_questions``; None is also allowed."""
_TUPLES = ("filter_splits", "known_files")
"""Fields that are lists in a manifest and tuples here, so that they compare and hash."""


def _facts(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return all facts of a manifest by name: on the questions, on the scores, and others.

    The entry on questions only lists the names of terms; the terms are another entry.
    """
    questions, scores = (manifest.get(part) or {} for part in ("questions", "scores"))
    return {**questions, "terms": None, **scores, **manifest}


def is_sound(manifest: Mapping[str, Any]) -> bool:
    """Return True if the facts of a manifest have the types of the fields; it may be damaged."""
    if not all(isinstance(manifest.get(part, {}), dict) for part in ("questions", "scores")):
        return False
    known = {name: fact for name, fact in _facts(manifest).items() if fact is not None}
    if not all(
        isinstance(known[name], kind) for name, kind in _JSON_TYPES.items() if name in known
    ):
        return False
    names = [known.get("question_ids"), known.get("model_facts"), *known.get("terms", {}).values()]
    return (
        all(isinstance(value, float) for value in known.get("trec_agreement", {}).values())
        and all(type(count) is int for count in known.get("overlap", {}).values())
        and all(type(number) is int for number in known.get("question_numbers", ()))
        and type(known.get("qrels", {"level": 1}).get("level")) is int
        and all(isinstance(some, list) for some in names if some is not None)
        and all(isinstance(text, str) for some in names for text in some or ())
    )


EVALUATION = ("graph_hash", "split", "filter_splits", "extra_known", "n_entities", "questions_hash")
"""Fields that decide which answers are ranked, and among which candidates."""
SCORING = ("dtype", "higher_is_better", "nan", "tie_tolerance")
"""Fields that decide which ranks the scores lead to."""


PARTS = ("questions_hash", *SCORING, "rows", "run_depth")
"""Fields that all parts of a ranking share."""

_DIFFERENCE_TEXTS = {
    "graph_hash": "other graph",
    "questions_hash": "other questions",
    "questions": "other graph, split or filter",
    "scores": "other scores",
    "filter_splits": "filter {!r} and {!r}",
    "extra_known": "further known triples {!r} and {!r}",
    "n_entities": "number of entities {!r} and {!r}",
    "tie_tolerance": "tie tolerance {!r} and {!r}",
    "tolerance": "tie tolerance {!r} and {!r}",
    "run_depth": "run depth {!r} and {!r}",
    "kgtrec": "version of kgtrec {} and {}",
    "by": "divided by {} and {}",
    "count": "number of shards {} and {}",
}
"""Texts for fields that differ; `{}` are the two values. Other fields have their name as text."""


def differences(a: object, b: object, names: Iterable[str] = EVALUATION) -> list[str]:
    """Return the names of the fields in which two provenances, or headers of shards, differ."""
    return [name for name in names if getattr(a, name) != getattr(b, name)]


def describe_differences(a: object, b: object, names: Iterable[str]) -> str:
    """Describe `differences` as text, such as "other scores, run depth 3 and 4"; "" if none."""
    return ", ".join(
        _DIFFERENCE_TEXTS.get(name, name + " {!r} and {!r}").format(
            getattr(a, name), getattr(b, name)
        )
        for name in differences(a, b, names)
    )


def check_alike(who: str, a: Provenance, b: Provenance, names: Sequence[str] = PARTS) -> None:
    """Raise UsageError if two parts do not belong to the same evaluation.

    `who` names the two parts in the message.
    """
    differing = differences(a, b, names)
    if differing:
        other_questions = any(name in EVALUATION for name in differing)
        same = "alike"
        if other_questions:
            same = "with the same graph, split, sides, filter and candidates"
        texts = describe_differences(a, b, differing)
        raise UsageError(f"{who} do not belong together ({texts}); rank all parts {same}")
