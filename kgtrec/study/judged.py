"""What judgements say of systems, and how far what is unjudged could change it.

Measures that only rise when a candidate turns out to be true (P@k, success@k, reciprocal rank,
rank-biased precision) have exact bounds: all that is unjudged is false, or all of it is true.
Others are given twice, with what is unjudged taken for false and with it taken out of the lists
(condensed: trec_eval's -J); bpref and infAP look at judged candidates by their definitions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import numpy.typing as npt

from kgtrec.csr import contains
from kgtrec.errors import UsageError
from kgtrec.study.completion import FALSE, TRUE, UNKNOWN, Completion
from kgtrec.study.runlists import RankedLists
from kgtrec.tables import Cell, Table
from kgtrec.trec.lists import UNJUDGED, Lists
from kgtrec.trec.options import EvalOptions
from kgtrec.trec.table import resolve
from kgtrec.trec.values import summary, values

__all__ = [
    "BOUNDED", "UNBOUNDED", "Interval", "decided_pairs", "interval_table", "intervals",
    "judged_lists", "share_table", "shares", "verdicts",
]  # fmt: skip

Ints = npt.NDArray[np.int64]

BOUNDED = ("P_10", "success_10", "recip_rank", "rbp")
UNBOUNDED = ("map_cut_20", "ndcg_cut_20", "bpref", "infAP")
KINDS = ("seed", "added", "false", "unjudged")


@dataclass(frozen=True)
class Interval:
    """A mean over questions, and what it may be once everything is judged.

    Attributes
    ----------
    low : float
        What is unjudged counts as false.
    condensed : float
        What is unjudged is taken out of the lists.
    high : float
        What is unjudged counts as true; NaN where that bounds nothing.
    """

    low: float
    condensed: float
    high: float


def judged_lists(lists: RankedLists, completion: Completion) -> Lists:
    """A system's lists with the labels of a completion, as trec_eval's measures want them.

    Every seed question is there; those that the run lacks have an empty list.
    """
    qrels = completion.qrels()
    width = completion.seeds.questions.n_entities
    owner = np.repeat(np.arange(len(qrels)), np.diff(qrels.offsets))
    keys = owner * width + qrels.entities
    wanted = lists.owner * width + lists.entities
    at = np.searchsorted(keys, wanted)
    at[at == len(keys)] = 0
    relevance = np.where(keys[at] == wanted, qrels.labels[at], UNJUDGED)
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
    asked = np.repeat(np.arange(len(answers)), answers.lengths) * width + answers.ids
    seed = contains(asked, owner * width + lists.entities)
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
            found = shares(lists, completion, cutoff)
            total = sum(found.values())
            parts = [100 * found[kind] / total if total else 0.0 for kind in KINDS]
            rows.append((lists.name, str(cutoff), total, *parts, 100 - parts[-1] if total else 0.0))
    titles = ("system", "top", "candidates", "seeds %", "added %", "false %", "unjudged %",
              "judged %")  # fmt: skip
    keys = ("system", "top", "candidates", *(f"{kind}_percent" for kind in (*KINDS, "judged")))
    return Table(titles, keys, (0, 0, 0, 1, 1, 1, 1, 1), rows, names=2)


# --- intervals ------------------------------------------------------------------------------------


def intervals(lists: RankedLists, completion: Completion) -> dict[str, Interval]:
    """Means over the seed questions, and how far the unjudged could move them.

    Parameters
    ----------
    lists : RankedLists
    completion : Completion

    Returns
    -------
    dict of str to Interval
        By trec_eval's name: those of `BOUNDED`, then those of `UNBOUNDED`. The interval of rbp
        (p = 0.9) ends at rbp plus its residual, which also counts what stands below the list.
    """
    judged = judged_lists(lists, completion)
    names = (*BOUNDED, *UNBOUNDED)
    low = _means(judged, (*names, "rbp_resid"))
    condensed = _means(judged, names, EvalOptions(judged_only=True))
    unknown = np.isin(judged.relevance, (UNJUDGED, UNKNOWN))
    risen = replace(judged, relevance=np.where(unknown, TRUE, judged.relevance))
    high = _means(risen, ("P_10", "success_10", "recip_rank"))
    high["rbp"] = low["rbp"] + low["rbp_resid"]
    return {
        name: Interval(low[name], condensed[name], high.get(name, float("nan"))) for name in names
    }


def _means(
    lists: Lists, names: Sequence[str], options: EvalOptions | None = None
) -> dict[str, float]:
    columns = resolve(names)
    found = summary(values(lists, columns, options), columns)
    return {name: float(value) for name, value in found.items()}


def interval_table(found: Mapping[str, Mapping[str, Interval]]) -> Table:
    """A row per measure and system; `found` is system -> what `intervals` gives."""
    rows: list[tuple[Cell, ...]] = []
    for name in (*BOUNDED, *UNBOUNDED):
        for system, own in found.items():
            one = own[name]
            rows.append((name, system, one.low, one.condensed, one.high, one.high - one.low))
    titles = ("measure", "system", "unjudged false", "condensed", "unjudged true", "width")
    keys = ("measure", "system", "low", "condensed", "high", "width")
    return Table(titles, keys, (0, 0, 4, 4, 4, 4), rows, names=2)


def decided_pairs(found: Mapping[str, Mapping[str, Interval]], measure: str) -> tuple[int, int]:
    """Pairs of systems whose intervals of a measure do not meet, and all pairs.

    Raises
    ------
    UsageError
        The measure has no bounds.
    """
    if measure not in BOUNDED:
        raise UsageError(f"{measure!r} has no bounds; choose one of {', '.join(BOUNDED)}")
    pairs = list(combinations([own[measure] for own in found.values()], 2))
    apart = sum(one.high < other.low or other.high < one.low for one, other in pairs)
    return apart, len(pairs)


def verdicts(found: Mapping[str, Mapping[str, Interval]]) -> list[str]:
    """A sentence per bounded measure: how many pairs of systems are decided as it stands."""
    if len(found) < 2:
        return []
    sentences = []
    for name in BOUNDED:
        apart, pairs = decided_pairs(found, name)
        sentences.append(
            f"{name}: in {apart:,} of {pairs:,} pairs the order stands whatever the unjudged are"
        )
    return sentences
