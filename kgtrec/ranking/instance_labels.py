"""Ranks in words: the label of an answer, and what its question asks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kgtrec.questions.sides import ASKED, GIVEN, QUALIFIER

if TYPE_CHECKING:
    from kgtrec.ranking.ranks import Ranks

__all__ = ["answer_label", "given_labels", "triple_ids"]


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
