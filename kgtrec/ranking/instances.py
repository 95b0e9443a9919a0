"""Instances of questions: their columns in `Ranks`, where these come from, and their labels."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kgtrec._version import __version__
from kgtrec.questions.questions import ASKED, GIVEN, QUALIFIER

if TYPE_CHECKING:
    from kgtrec.questions.api import Questions
    from kgtrec.ranking.ranks import Ranks


def answer_label(ranks: Ranks, answer: int) -> str:
    """Label of an entity, or of a relation where that is asked; its id if there are no labels."""
    return _text(_answer_labels(ranks), answer)


def given_labels(ranks: Ranks, row: int) -> list[str]:
    """Head, relation and tail of an instance's triple, with "?" for what is asked (a qualifier's
    value behind them), and its time or qualifiers if it has any."""
    side = int(ranks.side[row])
    labels = (ranks.entity_labels, ranks.relation_labels, ranks.entity_labels)
    terms = [
        "?" if column == ASKED[side] and side != QUALIFIER else _text(labels[column], int(ids[row]))
        for column, ids in enumerate(triple_ids(ranks))
    ]
    if side == QUALIFIER:
        terms += [_text(ranks.relation_labels, int(ranks.relation[row])), "?"]
    if ranks.context is None:
        return terms
    return [*terms, ranks.context_labels[int(ranks.context[row])]]


def triple_ids(ranks: Ranks) -> list[npt.NDArray[np.int64]]:
    """Head, relation and tail of every instance's triple (of the statement, where a qualifier's
    value is asked): int64, shape (n,) each."""
    if ranks.given_relation is not None and ranks.given_tail is not None:
        return [ranks.given, ranks.given_relation, ranks.given_tail]
    columns = [ranks.relation.copy() for _ in range(3)]
    second = ranks.relation if ranks.given_tail is None else ranks.given_tail
    for side in np.unique(ranks.side).tolist():
        rows = ranks.side == side
        for column, ids in zip(
            (ASKED[side], *GIVEN[side]), (ranks.answer, ranks.given, second), strict=True
        ):
            columns[column][rows] = ids[rows]
    return columns


def _answer_labels(ranks: Ranks) -> Any:
    return ranks.entity_labels if ranks.kind == "entity" else ranks.relation_labels


def _text(labels: Sequence[str] | None, number: int) -> str:
    return str(number) if labels is None else str(labels[number])


Int64 = npt.NDArray[np.int64]

COUNTS = ("greater", "equal", "tied_ahead")
GIVEN_COLUMNS = {
    **dict.fromkeys(("head", "tail", "both"), ("given", "relation")),
    "relation": ("given", "given_tail"),
    "qualifier": ("given", "given_relation", "given_tail", "relation"),
}
"""Columns of ranks that hold what questions give, by their sides."""


class Popularities(NamedTuple):
    """How often candidates stand in triples of all splits, and relations in the evaluated ones."""

    candidates: Int64
    relations: Int64


def popularities(questions: Questions) -> Popularities:
    """Those of the graph and the split of some questions."""
    graph = questions.graph
    if questions.kind == "entity":
        return Popularities(graph.entity_counts(), questions.relation_counts)
    counts = [graph.relation_counts(split) for split in graph.splits]
    return Popularities(np.sum(counts, axis=0), questions.relation_counts)


def instance_columns(
    questions: Questions, counts: Int64, unscored: npt.NDArray[np.bool_], popular: Popularities
) -> dict[str, npt.NDArray[Any]]:
    """Columns of `Ranks` for all instances of questions.

    Shapes: counts int64 (6, n_instances), unscored bool (2, n_instances).
    """
    question = questions.instance_question.astype(np.int64)  # take() needs such
    answer = questions.answers.ids.astype(np.int64)
    given = {
        name: ids.take(question)
        for name, (_, ids) in zip(
            GIVEN_COLUMNS[questions.sides], questions.given_terms, strict=True
        )
    }
    names = [*COUNTS, *(f"macro_{name}" for name in COUNTS)]
    columns: dict[str, Any] = dict(zip(names, counts, strict=True))
    columns["candidates"] = questions.candidates
    columns["macro_candidates"] = questions.macro_candidates
    for prefix, flags in zip(("", "macro_"), unscored, strict=True):
        if flags.any():  # an answer without a score stands below every other candidate
            worst = columns[f"{prefix}candidates"] - 1
            columns[f"{prefix}greater"] = np.where(flags, worst, columns[f"{prefix}greater"])
        columns[f"{prefix}answer_nan"] = flags
    columns |= {
        "triple": questions.instance_triple,
        "question": question,
        "side": questions.side.astype(np.int8).take(question),
        "relation": answer,
        **given,
        "answer": answer,
        "answer_popularity": popular.candidates.take(answer),
    }
    columns["relation_popularity"] = popular.relations.take(columns["relation"])
    if questions.context is not None:
        columns["context"] = questions.context.take(question)
    if questions.full_candidates is not None:
        columns["full_candidates"] = questions.full_candidates
    return columns


def ranks_manifest(questions: Questions, scores: dict[str, Any]) -> dict[str, Any]:
    """Where ranks come from; ``scores`` says it of the scores."""
    heads = int(np.count_nonzero(questions.side == 0))
    manifest: dict[str, Any] = {
        "questions": questions.describe() | {"n_head_questions": heads},
        "scores": scores,
        "versions": {
            "kgtrec": __version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
        },
    }
    contexts = questions.graph.contexts
    if questions.context is None or contexts is None:
        return manifest
    mask = np.zeros(len(contexts), bool)
    mask[questions.context] = True
    used = np.flatnonzero(mask)
    return manifest | {"contexts": dict(zip(map(str, used.tolist()), contexts[used], strict=True))}
