"""Paired tests between the sets of several policies or models on the same questions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kgtrec._internal.arguments import require_items
from kgtrec._internal.named import Named, by_name
from kgtrec.errors import UsageError
from kgtrec.study.comparison.samples import Samples, align_ranks
from kgtrec.study.sets.measures import MEASURES
from kgtrec.study.sets.sets import AnswerSets

COLUMNS = {"macro.recall": 5, "macro.f1": 6, "size": 2, "any": 8, "all": 9}
"""Measures that are means over questions, and their column of `AnswerSets.columns`."""
USUAL = ("micro.recall", "macro.f1")


def samples_of_sets(systems: Named[AnswerSets], measures: Sequence[str] = USUAL) -> list[Samples]:
    """Compute the samples of each measure, with which `compare` tests several sets.

    Parameters
    ----------
    systems : mapping of str to AnswerSets, or sequence of them
        Sets on the same questions, by the name of the policy or model; in a sequence, they are
        called "system 1", "system 2", ..., unless it has pairs (name, sets).
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
    systems = by_name("systems", systems)
    require_items("systems", [*systems.values()], AnswerSets, "AnswerSets (study.answer_sets)")
    known = ("micro.recall", *COLUMNS)
    if wrong := [key for key in measures if key not in known]:
        raise UsageError(f"sets cannot be paired by {wrong[0]!r}; compare by {', '.join(known)}")
    align_ranks({name: sets.ranks for name, sets in systems.items()})  # refuses other questions
    orders = [np.lexsort((sets.ranks.side, sets.ranks.triple)) for sets in systems.values()]
    as_first = [order[np.argsort(orders[0])] for order in orders]
    cluster = next(iter(systems.values())).question
    samples = []
    for key in measures:
        if key == "micro.recall":
            items = [
                sets.inside[rows] for sets, rows in zip(systems.values(), as_first, strict=True)
            ]
            unit, of_items = "answers", cluster
        else:
            items = [sets.columns[:, COLUMNS[key]] for sets in systems.values()]
            unit, of_items = "questions", np.arange(len(items[0]))
        samples.append(
            Samples(
                key,
                MEASURES[key],
                tuple(systems),
                np.column_stack(items),
                of_items,
                unit,
                higher_is_better=key != "size",
            )
        )
    return samples
