"""What judgements say of systems: their lists with labels, values, and shares that are judged.

The share of newly annotated true triples among a system's best (Zhou et al. 2022, section 4.2) is
"added" in `shares`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from kgtrec._internal.csr import contains
from kgtrec._internal.table import Cell, Table
from kgtrec.errors import UsageError
from kgtrec.study.pooling.completion import FALSE, TRUE, UNKNOWN, Completion
from kgtrec.study.pooling.ranked_lists import RankedLists
from kgtrec.trec.measures.judged_lists import UNJUDGED, Lists
from kgtrec.trec.measures.names import Column, resolve
from kgtrec.trec.measures.options import EvalOptions
from kgtrec.trec.measures.values import summary, values

__all__ = [
    "judged_lists", "judged_values", "mean_columns", "means", "share_table", "shares",
]  # fmt: skip

Ints = npt.NDArray[np.int64]

KINDS = ("seed", "added", "false", "unjudged")


def judged_lists(lists: RankedLists, completion: Completion) -> Lists:
    """A system's lists with the labels of a completion, as trec_eval's measures want them.

    Every seed question is there; those that the run lacks have an empty list.
    """
    qrels = completion.qrels()
    width = completion.seeds.questions.n_entities
    owner = np.repeat(np.arange(len(qrels)), np.diff(qrels.offsets))
    keys = owner * width + qrels.entities
    listed = lists.owner * width + lists.entities
    at = np.searchsorted(keys, listed)
    at[at == len(keys)] = 0
    relevance = np.where(keys[at] == listed, qrels.labels[at], UNJUDGED)
    order = np.lexsort((-qrels.labels, owner))
    return Lists(
        queries=qrels.ids,
        offsets=lists.offsets,
        relevance=relevance,
        scores=lists.scores.astype(np.float64),
        retrieved=np.diff(lists.offsets),
        judged_offsets=qrels.offsets,
        judged=qrels.labels[order],
        tag=lists.name,
        unanswered=0,
        unasked=0,
    )


# --- values ---------------------------------------------------------------------------------------


def mean_columns(measures: Sequence[str]) -> list[Column]:
    """Columns of measures, in the order in which they are named.

    Raises
    ------
    UsageError
        A measure that is unknown, or a count or text that has no mean.
    """
    columns: dict[str, Column] = {}
    for name in measures:
        for column in resolve([name]):
            if column.is_count or column.is_text:
                raise UsageError(f"{column.name!r} has no mean over questions; leave it out")
            columns[column.name] = column
    return list(columns.values())


def judged_values(
    lists: RankedLists,
    completion: Completion,
    columns: Sequence[Column],
    *,
    judged_only: bool = False,
) -> dict[str, float]:
    """Means of measures over the seed questions, by trec_eval's name.

    Parameters
    ----------
    lists : RankedLists
    completion : Completion
        infAP uses its sample, if one was drawn, and the questions that have an answer there.
    columns : sequence of Column
        From `mean_columns`.
    judged_only : bool
        Whether candidates without a label leave the lists (trec_eval's -J).
    """
    options = EvalOptions(judged_only=judged_only)
    by_name = {}
    for sampled in (False, True):
        own = [c for c in columns if _is_inferred(c, completion) == sampled]
        if not own:
            continue
        labelled = completion.sample if sampled else completion
        rows: Mapping[str, Any] = values(judged_lists(lists, labelled), own, options)
        if sampled:
            answered = labelled.qrels().answered
            rows = {name: row[answered] if answered.any() else row for name, row in rows.items()}
        by_name.update(means(rows, own))
    return {column.name: by_name[column.name] for column in columns}


def _is_inferred(column: Column, completion: Completion) -> bool:
    return column.family == "infAP" and completion.drawn is not None


def means(rows: Mapping[str, Any], columns: Sequence[Column]) -> dict[str, float]:
    """Means of measures over the questions, by name; geometric ones of gm_map and gm_bpref."""
    return {name: float(value) for name, value in summary(rows, columns).items()}


# --- shares ---------------------------------------------------------------------------------------


def shares(lists: RankedLists, completion: Completion, cutoff: int) -> dict[str, int]:
    """How many of the first candidates of all questions are seeds, added, false and unjudged.

    Parameters
    ----------
    lists : RankedLists
    completion : Completion
    cutoff : int
        Candidates that are looked at, from the first of each list.

    Returns
    -------
    dict of str to int
        Keys "seed", "added" (true, and no seed), "false" and "unjudged".

    Raises
    ------
    UsageError
        A cutoff below 1.
    """
    if isinstance(cutoff, bool) or cutoff < 1:
        raise UsageError(f"cutoff {cutoff} is below 1; 10 and 20 are usual")
    judged = judged_lists(lists, completion)
    owner = lists.owner
    top = np.arange(len(owner)) - lists.offsets[owner] < cutoff
    answers = completion.seeds.questions.answers
    width = completion.seeds.questions.n_entities
    answer_keys = np.repeat(np.arange(len(answers)), answers.lengths) * width + answers.ids
    seed = contains(answer_keys, owner * width + lists.entities)
    masks = {
        "seed": seed,
        "added": (judged.relevance == TRUE) & ~seed,
        "false": judged.relevance == FALSE,
        "unjudged": np.isin(judged.relevance, (UNJUDGED, UNKNOWN)),
    }
    return {name: int((mask & top).sum()) for name, mask in masks.items()}


def share_table(
    systems: Sequence[RankedLists], completion: Completion, cutoffs: Sequence[int] = (10, 20)
) -> Table:
    """A row per system and cutoff: what its first candidates are, in per cent."""
    rows: list[tuple[Cell, ...]] = []
    for lists in systems:
        for cutoff in cutoffs:
            counts = shares(lists, completion, cutoff)
            total = sum(counts.values())
            parts = [100 * counts[kind] / total if total else 0.0 for kind in KINDS]
            rows.append((lists.name, str(cutoff), total, *parts, 100 - parts[-1] if total else 0.0))
    titles = ("system", "top", "candidates", "seeds %", "added %", "false %", "unjudged %",
              "judged %")  # fmt: skip
    keys = ("system", "top", "candidates", *(f"{kind}_percent" for kind in (*KINDS, "judged")))
    return Table(titles, keys, (0, 0, 0, 1, 1, 1, 1, 1), rows, names=2)
