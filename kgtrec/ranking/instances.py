"""Instances of ranks as people read them: terms, labels of answers, texts of questions, triples."""

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
    """The term of that name in ranks: its code per instance, and labels. None: no such term."""
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
    """Head, relation and tail of every instance's triple (of the statement if a qualifier's value
    is asked): int64, shape (n,) each."""
    if ranks.given_relation is not None and ranks.given_tail is not None:
        return [ranks.given, ranks.given_relation, ranks.given_tail]
    columns = [ranks.relation.copy() for _ in range(3)]
    second = ranks.relation if ranks.given_tail is None else ranks.given_tail
    for side in np.unique(ranks.side).tolist():
        rows = ranks.side == side
        asked = (ASKS[side].answer, *ASKS[side].given)
        for column, ids in zip(asked, (ranks.answer, ranks.given, second), strict=True):
            columns[column][rows] = ids[rows]
    return columns


def _text(labels: Sequence[str] | Mapping[int, str] | None, number: int) -> str:
    return str(number) if labels is None else str(labels[number])
