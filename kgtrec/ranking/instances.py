"""Instances of questions: their columns in `Ranks`, the origin of these, and their labels."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from kgtrec._internal.csr import Array, Bools, Int64
from kgtrec._version import __version__
from kgtrec.questions.graph_terms import ASKS, COLUMNS, LABELS, side_text
from kgtrec.questions.questions import Questions
from kgtrec.questions.terms import NAMES, TERM, Term

if TYPE_CHECKING:
    from kgtrec.ranking.ranks import Ranks


def term_of(ranks: Ranks, name: str) -> Term | None:
    """The term of that name in ranks: its code per instance, and labels. None: no such term."""
    if not ranks.of_graph:
        codes = getattr(ranks, f"{TERM}{name}", None)
        return None if codes is None else Term(codes, ranks.provenance.terms[name])
    if name == "relation":
        return Term(ranks.relation, ranks.relation_labels)
    if ranks.context is None or ranks.provenance.context != name:
        return None
    numbers, codes = np.unique(ranks.context, return_inverse=True)
    texts = ranks.context_labels
    return Term(codes.reshape(-1), [texts[number] for number in numbers.tolist()])


def term_names(ranks: Ranks) -> list[str]:
    """Names of the terms of ranks, except those of a graph."""
    return [] if ranks.of_graph else list(ranks.provenance.terms)


def answer_label(ranks: Ranks, answer: int) -> str:
    """Label of an entity, or of a relation if that is asked; its id if there are no labels."""
    return _text(ranks.entity_labels if ranks.kind == "entity" else ranks.relation_labels, answer)


def question_text(ranks: Ranks, row: int) -> str:
    """The question of an instance: "(head, relation, ?)", with its time or qualifiers if it has
    any; without a graph its name and terms."""
    if not ranks.of_graph:
        facts = ranks.provenance
        texts = [
            f"{name} {_text(labels, int(getattr(ranks, TERM + name)[row]))}"
            for name, labels in facts.terms.items()
        ]
        return ", ".join([facts.question_ids[int(ranks.question[row])], *texts])
    side = int(ranks.side[row])
    sources = {"entities": ranks.entity_labels, "relations": ranks.relation_labels,
               "contexts": ranks.context_labels}  # fmt: skip
    given = [*COLUMNS[NAMES[side]], *(() if ranks.context is None else ("context",))]
    ids = {name: int(getattr(ranks, name)[row]) for name in given}
    return side_text(side, {name: _text(sources[LABELS[name]], ids[name]) for name in given})


def triple_ids(ranks: Ranks) -> list[Int64]:
    """Head, relation and tail of every instance's triple (of the statement if a qualifier's value
    is asked): int64, shape (n,) each."""
    if ranks.given_relation is not None and ranks.given_tail is not None:
        return [ranks.given, ranks.given_relation, ranks.given_tail]
    columns = [ranks.relation.copy() for _ in range(3)]
    second = ranks.relation if ranks.given_tail is None else ranks.given_tail
    for side in np.unique(ranks.side).tolist():
        rows = ranks.side == side
        asked = (ASKS[side].asked, *ASKS[side].given)
        for column, ids in zip(asked, (ranks.answer, ranks.given, second), strict=True):
            columns[column][rows] = ids[rows]
    return columns


def _text(labels: Sequence[str] | Mapping[int, str] | None, number: int) -> str:
    return str(number) if labels is None else str(labels[number])


_DERIVED: WeakKeyDictionary[Questions, dict[str, Any]] = WeakKeyDictionary()


def derived_from(questions: Questions) -> dict[str, Any]:
    """What follows from questions alone, made once for questions that are ranked often."""
    return _DERIVED.setdefault(questions, {})


def once(made: dict[str, Any], name: str, make: Callable[[], Any]) -> Any:
    """What has the name; it is made if it is not there."""
    if name not in made:
        made[name] = make()
    return made[name]


COUNTS = ("greater", "equal", "tied_ahead")
COUNTED = (*COUNTS, *(f"macro_{name}" for name in COUNTS), "answer_nan", "macro_answer_nan")


def counted_columns(
    questions: Questions, counts: Int64, unscored: Iterable[Bools]
) -> dict[str, Array]:
    """Columns of `Ranks` that most measures need, for all instances of questions.

    Shapes: counts int64 (6, n_instances), unscored bool (n_instances,) for micro and macro.
    """
    columns: dict[str, Any] = dict(zip(COUNTED, (*counts, *unscored), strict=True))
    columns["candidates"] = questions.candidates
    columns["macro_candidates"] = questions.macro_candidates
    for prefix in ("", "macro_"):
        flags = columns[f"{prefix}answer_nan"]
        if np.count_nonzero(flags):  # an answer without a score ranks below every other candidate
            worst = columns[f"{prefix}candidates"] - 1
            columns[f"{prefix}greater"] = np.where(flags, worst, columns[f"{prefix}greater"])
    return columns


def instance_columns(questions: Questions, popular: tuple[Int64, Int64 | None]) -> dict[str, Array]:
    """The other columns of `Ranks`; ``popular`` is the result of the questions' `popularity`."""
    question = questions.instance_question.astype(np.int64)  # take() needs this type
    answer = questions.answers.ids.astype(np.int64)
    of_candidates, of_relations = popular
    columns: dict[str, Any] = {
        "triple": questions.instance_triple,
        "question": question,
        "answer": answer,
        "answer_popularity": of_candidates.take(answer),
    }
    if of_relations is not None:
        columns |= {"side": questions.side.astype(np.int8).take(question), "relation": answer}
    for name, (values, of_questions) in questions.columns.items():
        columns[name] = values.take(question) if of_questions else values
    if of_relations is not None:
        columns["relation_popularity"] = of_relations.take(columns["relation"])
    if questions.grades is not None:
        columns["grade"] = questions.grades
    if questions.full_candidates is not None:
        columns["full_candidates"] = questions.full_candidates
    return columns


def ranks_manifest(questions: Questions, scores: dict[str, Any]) -> dict[str, Any]:
    """The origin of ranks; ``scores`` describes the scores."""
    facts, entries = questions.manifest()
    return {
        "questions": questions.describe() | facts,
        "scores": scores,
        "versions": {
            "kgtrec": __version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
        },
        **entries,
    }


_BLOCK = 1 << 19  # values added at a time: at least 128, where numpy stops halving
_DEPTHS = (1, 3, 10)


def tree_sum(values: Callable[[int, int], float], start: int, stop: int) -> float:
    """A sum in the order in which numpy adds contiguous float64, from sums of its blocks.

    numpy halves an array, at multiples of eight, until 128 are left, and adds the halves.
    """
    n = stop - start
    if n <= _BLOCK:
        return values(start, stop)
    half = n // 2
    half -= half % 8
    return tree_sum(values, start, start + half) + tree_sum(values, start + half, stop)


def tie_report(places: Callable[[int, int], tuple[Int64, Int64]], n: int) -> dict[str, Any]:
    """The result of `kgtrec.Ranks.tie_report` for ``n`` instances."""
    if not n:
        return {"tied_share": 0.0, "mean_equal": 0.0, "max_equal": 0, "width": {}}
    tied = total = most = 0
    cut = dict.fromkeys(_DEPTHS, 0)

    def width_of_mrr(start: int, stop: int) -> float:
        nonlocal tied, total, most
        greater, equal = places(start, stop)
        tied += int(np.count_nonzero(equal))
        total += int(equal.sum())
        most = max(most, int(equal.max()))
        best = greater + 1.0
        worst = best + equal
        for k in cut:
            cut[k] += int(np.count_nonzero((best <= k) & (worst > k)))
        return float(np.add.reduce(1 / best - 1 / worst))

    mrr = tree_sum(width_of_mrr, 0, n) / n
    width = {"mr": total / n, "mrr": mrr, **{f"hits@{k}": count / n for k, count in cut.items()}}
    return {"tied_share": tied / n, "mean_equal": total / n, "max_equal": most, "width": width}
