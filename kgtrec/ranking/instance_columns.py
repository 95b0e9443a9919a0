"""Columns of instances from questions and the kernel's counts, of all of them or of some."""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kgtrec._version import __version__

if TYPE_CHECKING:
    from kgtrec.questions.api import Questions

__all__ = [
    "COUNTS",
    "GIVEN_COLUMNS",
    "Popularities",
    "instance_columns",
    "popularities",
    "ranks_manifest",
]

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

    Parameters
    ----------
    questions : Questions
    counts : ndarray of int64, shape (6, n_instances)
        Greater, equal and tied ahead, micro and macro.
    unscored : ndarray of bool, shape (2, n_instances)
        Whether the answer's score is NaN, micro and macro.
    popular : Popularities
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
        "side": questions.side.take(question),
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
