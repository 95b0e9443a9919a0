"""Paired tests between the sets of several policies or models on the same questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from kgtrec.errors import InputError, UsageError
from kgtrec.study.comparison.samples import Samples
from kgtrec.study.sets.measures import MEASURES
from kgtrec.study.sets.sets import AnswerSets

COLUMNS = {"macro.recall": 5, "macro.f1": 6, "size": 2, "any": 8, "all": 9}
"""Measures that are means over questions, and their column of `AnswerSets.columns`."""
USUAL = ("micro.recall", "macro.f1")


def samples_of_sets(
    systems: Mapping[str, AnswerSets], measures: Sequence[str] = USUAL
) -> list[Samples]:
    """Return the values of each measure for several sets on the same questions, for `compare`.

    Parameters
    ----------
    systems : mapping of str to AnswerSets
        By the names of the policies or models.
    measures : sequence of str
        "micro.recall" (coverage; items are answers, in clusters of their questions), or means over
        questions: "macro.recall", "macro.f1", "any", "all". "size" counts as better if lower.

    Raises
    ------
    UsageError
        Fewer than two systems, or a measure that is not a mean over answers or questions.
    InputError
        Systems that do not have the same questions and answers.
    """
    if len(systems) < 2:
        raise UsageError(f"{len(systems)} system cannot be compared; give two or more")
    (name, first), *others = systems.items()
    for other, sets in others:
        same = len(first.ranks) == len(sets.ranks) and all(
            np.array_equal(getattr(first.ranks, column), getattr(sets.ranks, column))
            for column in ("question", "side", "relation", "given", "answer")
        )
        if not same:
            raise InputError(
                f"{name} and {other} do not have the same questions and answers; judge both on "
                "the same split"
            )
    known = ("micro.recall", *COLUMNS)
    if wrong := [key for key in measures if key not in known]:
        raise UsageError(f"sets cannot be paired by {wrong[0]!r}; compare by {', '.join(known)}")
    return [_samples_of(systems, key) for key in measures]


def _samples_of(systems: Mapping[str, AnswerSets], key: str) -> Samples:
    """Return the values of one measure."""
    first = next(iter(systems.values()))
    if key == "micro.recall":
        items, unit, cluster = [sets.inside for sets in systems.values()], "answers", first.question
    else:
        items = [sets.columns[:, COLUMNS[key]] for sets in systems.values()]
        unit, cluster = "questions", np.arange(len(first.sizes))
    title, values = MEASURES[key], np.column_stack(items)
    return Samples(
        key, title, tuple(systems), values, cluster, unit, higher_is_better=key != "size"
    )
