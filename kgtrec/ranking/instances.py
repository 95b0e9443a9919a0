"""Readable instances of ranks: terms, labels of answers, texts of questions, triples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from kgtrec._internal.arrays import Int64
from kgtrec.questions.graph_terms import ASKS, COLUMNS, LABELS, side_text
from kgtrec.questions.terms import NAMES, TERM, Term

if TYPE_CHECKING:
    from kgtrec.ranking.ranks import Ranks


def term_of(ranks: Ranks, name: str) -> Term | None:
    """Return the term with a name: its code per instance, and labels; None if there is none."""
    if not ranks.of_graph:
        codes = ranks.column(f"{TERM}{name}")
        return None if codes is None else Term(codes, ranks.provenance.terms[name])
    if name == "relation":
        return Term(ranks.relation, ranks.relation_labels)
    if ranks.context is None or ranks.provenance.context != name:
        return None
    numbers, codes = np.unique(ranks.context, return_inverse=True)
    texts = ranks.context_labels
    return Term(codes.reshape(-1), [texts[number] for number in numbers.tolist()])


def term_names(ranks: Ranks) -> list[str]:
    """Return the names of the terms of ranks; empty if the questions come from a graph."""
    return [] if ranks.of_graph else list(ranks.provenance.terms)


def answer_label(ranks: Ranks, answer: int) -> str:
    """Return the label of an answer (an entity or relation), or its id if there are no labels."""
    return _text(ranks.entity_labels if ranks.kind == "entity" else ranks.relation_labels, answer)


def question_text(ranks: Ranks, row: int) -> str:
    """Return the question of an instance as text.

    From a graph, it is "(head, relation, ?)", with its time or qualifiers if it has any. Without a
    graph, it is the question's name and terms.
    """
    if not ranks.of_graph:
        facts = ranks.provenance
        texts = [
            f"{name} {_text(labels, int(ranks.column(TERM + name)[row]))}"
            for name, labels in facts.terms.items()
        ]
        return ", ".join([facts.question_ids[int(ranks.question[row])], *texts])
    side = int(ranks.side[row])
    sources = {
        "entities": ranks.entity_labels,
        "relations": ranks.relation_labels,
        "contexts": ranks.context_labels,
    }
    given = [*COLUMNS[NAMES[side]], *(() if ranks.context is None else ("context",))]
    ids = {name: int(getattr(ranks, name)[row]) for name in given}
    return side_text(side, {name: _text(sources[LABELS[name]], ids[name]) for name in given})


def triple_ids(ranks: Ranks) -> list[Int64]:
    """Return head, relation and tail of the triple of each instance, int64 (n,) each.

    If the value of a qualifier is asked, they are those of the statement.
    """
    if ranks.given_relation is not None and ranks.given_tail is not None:
        return [ranks.given, ranks.given_relation, ranks.given_tail]
    columns = [ranks.relation.copy() for _ in range(3)]
    second = ranks.relation if ranks.given_tail is None else ranks.given_tail
    for side in np.unique(ranks.side).tolist():
        rows = ranks.side == side
        terms = (ASKS[side].answer, *ASKS[side].given)
        for column, ids in zip(terms, (ranks.answer, ranks.given, second), strict=True):
            columns[column][rows] = ids[rows]
    return columns


def _text(labels: Sequence[str] | Mapping[int, str] | None, number: int) -> str:
    return str(number) if labels is None else str(labels[number])
