"""Counts of every instance by definition, for one matrix of scores, in plain loops over sets."""

from __future__ import annotations

import numpy as np

from kgtrec.questions.api import Questions
from kgtrec.ranking.ranks import Ranks


def expected_counts(
    questions: Questions, scores: np.ndarray, lists: list[set[int]] | None = None
) -> dict[str, list[int]]:
    """Micro and macro counts; ``lists``: the candidates of each question, all entities if None."""
    names = ("greater", "equal", "tied_ahead", "candidates")
    columns: dict[str, list[int]] = {f"{p}{name}": [] for p in ("", "macro_") for name in names}
    docnos = [label.encode() for label in questions.graph.entities.docnos]
    for question in range(len(questions)):
        candidates = set(range(questions.n_entities)) if lists is None else lists[question]
        answers = set(questions.answers[question].tolist())
        micro = candidates - set(questions.known[question].tolist())
        macro = candidates - set(questions.removed[question].tolist())
        row = scores[question]
        for answer in sorted(answers):
            for prefix, others in (("", micro - {answer}), ("macro_", macro - {answer})):
                ties = [e for e in others if row[e] == row[answer]]
                outside = answer not in candidates
                above = sum(bool(row[e] > row[answer]) for e in others)
                columns[f"{prefix}greater"].append(len(others) if outside else above)
                columns[f"{prefix}equal"].append(0 if outside else len(ties))
                ahead = sum(docnos[e] > docnos[answer] for e in ties)
                columns[f"{prefix}tied_ahead"].append(0 if outside else ahead)
                columns[f"{prefix}candidates"].append(len(others) + 1)
    return columns


def expected_best(
    questions: Questions, scores: np.ndarray, depth: int, lists: list[set[int]] | None = None
) -> list[list[int]]:
    """The best macro candidates of every question, in trec order."""
    docnos = [label.encode() for label in questions.graph.entities.docnos]
    best = []
    for question in range(len(questions)):
        candidates = set(range(questions.n_entities)) if lists is None else lists[question]
        ranked = candidates - set(questions.removed[question].tolist())
        row = scores[question]
        best.append(sorted(ranked, key=lambda e: (row[e], docnos[e]), reverse=True)[:depth])
    return best


def assert_counts(ranks: Ranks, expected: dict[str, list[int]]) -> None:
    """Check every column of counts."""
    for name, values in expected.items():
        np.testing.assert_array_equal(getattr(ranks, name), values, err_msg=name)
