"""Questions to look at: where each model is worst, best, and furthest ahead of the others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kgtrec.graph.labels import decode_docno
from kgtrec.ranking.instance_labels import answer_label, given_labels

if TYPE_CHECKING:
    from kgtrec.ranking.ranks import Ranks
    from kgtrec.trec.files.columns import RunColumns

__all__ = ["questions_data"]

Head = tuple[str, bool]

SHOWN = 20
FIRST = 3


def questions_data(
    systems: Mapping[str, Ranks], runs: Mapping[str, RunColumns], shown: int = SHOWN
) -> dict[str, Any]:
    """Instances to look at, with every model's rank and, from runs, what was ranked first.

    Parameters
    ----------
    systems : mapping of str to Ranks
        The same instances in the same order.
    runs : mapping of str to RunColumns
        Of some of the models.
    shown : int
        Instances of a list.

    Returns
    -------
    dict
        ``rows``: question, answer, realistic ``ranks`` (one a model) and ``first`` (the best
        candidates of the question by each model, None where there is no run; known answers of the
        split are marked by True). ``lists``: model -> "worst", "best", "ahead" -> places in rows.
    """
    first = next(iter(systems.values()))
    chosen = {name: _chosen(name, systems, shown) for name in systems}
    rows = np.unique(np.concatenate([rows for lists in chosen.values() for rows in lists.values()]))
    place = {int(row): number for number, row in enumerate(rows)}
    ranks = np.stack([one.rank()[rows] for one in systems.values()], axis=1)
    heads = _best_candidates(first, rows, systems, runs)
    instances = [
        {
            "question": given_labels(first, row),
            "answer": answer_label(first, int(first.answer[row])),
            "popularity": int(first.answer_popularity[row]),
            "ranks": ranks[number].tolist(),
            "first": heads[number],
        }
        for number, row in enumerate(rows.tolist())
    ]
    lists = {
        name: {kind: [place[int(row)] for row in row_numbers] for kind, row_numbers in one.items()}
        for name, one in chosen.items()
    }
    return {"rows": instances, "lists": lists, "runs": sorted(runs)}


def _chosen(name: str, systems: Mapping[str, Ranks], shown: int) -> dict[str, NDArray[np.int64]]:
    own, ranks = systems[name].rank(), systems[name]
    # Of equal ranks: the most popular answers of the worst, the rarest of the best.
    worst = np.lexsort((-ranks.answer_popularity, -own))[:shown]
    best = np.lexsort((ranks.answer_popularity, own))[:shown]
    lists = {"worst": worst, "best": best}
    others = [1 / other.rank() for label, other in systems.items() if label != name]
    if others:
        ahead = 1 / own - np.mean(others, axis=0)
        lists["ahead"] = np.lexsort((ranks.answer_popularity, -ahead))[:shown]
    return lists


def _best_candidates(
    ranks: Ranks, rows: NDArray[np.int64], systems: Mapping[str, Ranks],
    runs: Mapping[str, RunColumns],
) -> list[list[list[Head] | None]]:  # fmt: skip
    """Per row and model the best candidates of its question: (label, whether it is an answer)."""
    ids = ranks.subset(rows).question_ids
    numbers = ranks.question[rows].tolist()
    answers: dict[int, set[str]] = {number: set() for number in numbers}
    for row in np.flatnonzero(np.isin(ranks.question, ranks.question[rows])).tolist():
        answers[int(ranks.question[row])].add(answer_label(ranks, int(ranks.answer[row])))
    cells: list[list[list[Head] | None]] = [[] for _ in rows]
    for name in systems:
        best = _heads_of(runs[name], set(ids)) if name in runs else {}
        for number, (query, question) in enumerate(zip(ids, numbers, strict=True)):
            names, right = best.get(query), answers[question]
            heads = None if names is None else [(label, label in right) for label in names]
            cells[number].append(heads)
    return cells


def _heads_of(run: RunColumns, queries: set[str]) -> dict[str, list[str]]:
    """The labels that a run puts first, for some queries."""
    return {
        query: [decode_docno(name).decode("utf-8", "surrogateescape") for name in names]
        for query, names in run.best(FIRST, queries).items()
    }
