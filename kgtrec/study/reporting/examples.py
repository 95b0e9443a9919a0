"""Questions to look at on the report page: where a model is worst, best and furthest ahead."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from kgtrec._internal.arrays import Int64
from kgtrec.ranking.instances import answer_label, question_text
from kgtrec.ranking.ranks import Ranks
from kgtrec.study.changes import answers_by_question, best_labels
from kgtrec.study.section import Section

if TYPE_CHECKING:
    from kgtrec.trec.files.columns import RunColumns

Candidate = tuple[str, bool]
"""The label of a candidate, and whether it is an answer."""

SHOWN = 20
FIRST = 3


def examples_section(systems: Mapping[str, Ranks], runs: Mapping[str, RunColumns]) -> Section:
    """Return instances to look at, with the rank by every model and, from runs, its first ones."""
    first_ranks = next(iter(systems.values()))
    selections = {name: _select_examples(name, systems) for name in systems}
    rows = np.unique(
        np.concatenate([rows for lists in selections.values() for rows in lists.values()])
    )
    ranks = np.stack([of_model.rank()[rows] for of_model in systems.values()], axis=1)
    candidates = _best_candidates(first_ranks, rows, systems, runs)
    instances = [
        {
            "question": question_text(first_ranks, row),
            "answer": answer_label(first_ranks, int(first_ranks.answer[row])),
            "popularity": int(first_ranks.answer_popularity[row]),
            "ranks": ranks[number].tolist(),
            "first": candidates[number],
        }
        for number, row in enumerate(rows.tolist())
    ]
    lists = {
        name: {kind: np.searchsorted(rows, chosen).tolist() for kind, chosen in by_kind.items()}
        for name, by_kind in selections.items()
    }
    return Section({"questions": {"rows": instances, "lists": lists, "runs": sorted(runs)}})


def _select_examples(name: str, systems: Mapping[str, Ranks]) -> dict[str, Int64]:
    """Return rows of instances by kind: where a model is worst, best and, of several, ahead."""
    ranks = systems[name]
    values = ranks.rank()
    # For equal ranks: the most popular of the worst answers, the rarest of the best.
    lists = {
        "worst": np.lexsort((-ranks.answer_popularity, -values))[:SHOWN],
        "best": np.lexsort((ranks.answer_popularity, values))[:SHOWN],
    }
    others = [1 / other.rank() for label, other in systems.items() if label != name]
    if others:
        ahead = 1 / values - np.mean(others, axis=0)
        lists["ahead"] = np.lexsort((ranks.answer_popularity, -ahead))[:SHOWN]
    return lists


def _best_candidates(
    ranks: Ranks,
    rows: Int64,
    systems: Mapping[str, Ranks],
    runs: Mapping[str, RunColumns],
) -> list[list[list[Candidate] | None]]:
    """Return the best candidates by row and model; None for a model without a run."""
    ids = ranks.subset(rows).question_ids
    of_questions = ranks.subset(np.isin(ranks.question, ranks.question[rows]))
    is_named = runs and ranks.entity_labels is not None
    answers = answers_by_question(of_questions) if is_named else {}
    cells: list[list[list[Candidate] | None]] = [[] for _ in rows]
    for name in systems:
        best = best_labels(runs[name], FIRST, set(ids)) if name in runs else {}
        for number, query in enumerate(ids):
            labels, right = best.get(query), answers.get(query, ())
            cells[number].append(
                None if labels is None else [(label, label in right) for label in labels]
            )
    return cells
