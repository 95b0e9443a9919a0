"""Values of systems from judgements, and how much further judgements could change them.

Lists with labels give values, shares and intervals. The share "added" is that of newly annotated
true triples (Zhou et al. 2022, section 4.2). Open candidates have no label, and are pooled or near
the top of a system's list; each may be true or false. The interval of a measure contains every
value that is possible after all of them are judged; see `kgtrec.trec.measures.bounds`. Values count
unjudged candidates as false, like trec_eval; condensed values omit them from the lists (trec_eval's
-J). bpref and infAP use judged candidates only, by definition.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any

import numpy as np

from kgtrec._internal.csr import Int64, contains, offsets_of, searched
from kgtrec._internal.table import Cell, ShownInLines, Table
from kgtrec.errors import UsageError, refuse_if
from kgtrec.study.pooling.completion import FALSE, TRUE, UNKNOWN, Completion
from kgtrec.study.pooling.lists import RankedLists
from kgtrec.trec.measures.bounds import bounds, why_unbounded
from kgtrec.trec.measures.family import EvalOptions
from kgtrec.trec.measures.names import Column, resolve
from kgtrec.trec.measures.relevant import UNJUDGED, Lists
from kgtrec.trec.measures.values import summary, values


def judged_lists(lists: RankedLists, completion: Completion) -> Lists:
    """A system's lists with the labels of a completion, for trec_eval's measures.

    Every seed question is included; those that the run lacks have an empty list.
    """
    qrels = completion.qrels()
    at = searched(qrels.keys, lists.keys)
    relevance = np.where(at >= 0, qrels.labels[at], UNJUDGED)
    order = np.lexsort((-qrels.labels, qrels.owner))
    return Lists(
        queries=qrels.ids,
        offsets=lists.offsets,
        relevance=relevance,
        scores=lists.scores.astype(np.float64),
        retrieved=np.diff(lists.offsets),
        judged_offsets=offsets_of(np.bincount(qrels.owner, minlength=len(qrels))),
        judged=qrels.labels[order],
        tag=lists.name,
    )


# --- values ---------------------------------------------------------------------------------------


def mean_columns(measures: Sequence[str]) -> list[Column]:
    """Columns of measures, in their order."""
    columns = {column.name: column for name in measures for column in resolve([name])}
    refuse_if(
        *(
            (one.is_count or one.is_text, f"{name!r} has no mean over questions; leave it out")
            for name, one in columns.items()
        )
    )
    return list(columns.values())


def judged_values(
    lists: RankedLists,
    completion: Completion,
    columns: Sequence[Column],
    *,
    judged_only: bool = False,
) -> dict[str, float]:
    """Means of measures over the seed questions, by trec_eval's name."""
    options = EvalOptions(judged_only=judged_only)
    by_name, has_sample = {}, completion.drawn is not None
    for sampled in (False, True):
        own = [c for c in columns if (has_sample and c.family == "infAP") == sampled]
        if not own:
            continue
        labelled = completion.sample if sampled else completion
        rows: Mapping[str, Any] = values(judged_lists(lists, labelled), own, options)
        if sampled:
            answered = labelled.qrels().answered
            rows = {name: row[answered] if answered.any() else row for name, row in rows.items()}
        by_name.update(means(rows, own))
    return {column.name: by_name[column.name] for column in columns}


def means(rows: Mapping[str, Any], columns: Sequence[Column]) -> dict[str, float]:
    """Means of measures over the questions, by name; geometric ones of gm_map and gm_bpref."""
    return {name: float(value) for name, value in summary(rows, columns).items()}


# --- shares ---------------------------------------------------------------------------------------


def shares(lists: RankedLists, completion: Completion, cutoff: int) -> dict[str, int]:
    """How many of the first candidates of all questions are seeds, added, false and unjudged."""
    judged = judged_lists(lists, completion)
    masks = {
        "seed": lists.of_seeds,
        "added": (judged.relevance == TRUE) & ~lists.of_seeds,
        "false": judged.relevance == FALSE,
        "unjudged": np.isin(judged.relevance, (UNJUDGED, UNKNOWN)),
    }
    top = lists.positions < cutoff
    return {name: int((mask & top).sum()) for name, mask in masks.items()}


def share_table(
    systems: Sequence[RankedLists], completion: Completion, cutoffs: Sequence[int] = (10, 20)
) -> Table:
    """One row per system and cutoff: its first candidates by label, in per cent."""
    rows: list[tuple[Cell, ...]] = []
    for lists, cutoff in product(systems, cutoffs):
        counts = np.array([*shares(lists, completion, cutoff).values()])
        total = int(counts.sum())
        parts = (100 * counts / max(total, 1)).tolist()
        rows.append((lists.name, str(cutoff), total, *parts, 100 - parts[-1] if total else 0.0))
    return Table.of(
        "system, top, candidates, seeds %=seed_percent:1, added %:1, false %:1, unjudged %:1, "
        "judged %:1",
        rows,
        names=2,
    )


MEASURES = (
    "P_10", "success_10", "recip_rank", "rbp", "map_cut_20", "ndcg_cut_20", "recall_20", "bpref",
    "infAP",
)  # fmt: skip
WITHIN = 20


@dataclass(frozen=True)
class JudgedInterval(ShownInLines):
    """A mean over questions, and its range after every open candidate is judged.

    - low, high: Ends of the interval; NaN if there is none. The value of bpref may be outside: it
      ignores unjudged candidates, and no outcome leaves any.
    - value: Unjudged candidates count as false.
    - condensed: Unjudged candidates are omitted from the lists.
    - reason: Why there is no interval; "" if there is one.
    """

    low: float
    value: float
    condensed: float
    high: float
    reason: str = ""

    def _lines(self) -> tuple[str, str]:
        ends = (
            self.reason
            or f"between {self.low:.4f} and {self.high:.4f} if all candidates were judged"
        )
        return f"{self.value:.4f} now, {self.condensed:.4f} condensed", ends


BySystem = Mapping[str, Mapping[str, JudgedInterval]]
"""System to its `intervals`."""


def open_candidates(
    systems: Sequence[RankedLists], completion: Completion, within: int | None = WITHIN
) -> Int64:
    """Candidates that somebody still has to judge: question * n_entities + entity.

    Parameters
    ----------
    systems : sequence of RankedLists
    completion : Completion
    within : int, optional
        Unlabelled candidates are open down to this place of each list, None for all of it, 0 for
        none. Those of the pool are open at any place. All others count as false; rbp leaves them
        open too, and bpref ignores them.

    Returns
    -------
    int64 array (n,)
        Ascending, each once.

    Raises
    ------
    UsageError
        `within` is below 0.
    """
    if within is not None and (isinstance(within, bool) or within < 0):
        raise UsageError(
            f"within {within} is below 0; give 0 or more (20 is usual, 0 is only the pool)"
        )
    qrels = completion.qrels()
    parts = [qrels.keys[qrels.labels == UNKNOWN]]
    for lists in systems:
        shown = lists.keys if within is None else lists.keys[lists.positions < within]
        parts.append(shown[~contains(qrels.keys, shown)])
    return np.unique(np.concatenate(parts))


def intervals(
    lists: RankedLists,
    completion: Completion,
    measures: Sequence[str] = MEASURES,
    *,
    candidates: Int64 | None = None,
) -> dict[str, JudgedInterval]:
    """Means over the seed questions, and how far the open candidates could move them.

    Parameters
    ----------
    lists : RankedLists
    completion : Completion
        infAP uses its sample, and the questions with an answer there; for a pool without a sample,
        all labels.
    measures : sequence of str
        Measures of trec_eval.
    candidates : int64 array, optional
        Open candidates, from `open_candidates` of all compared systems; otherwise the intervals of
        two systems could assume different outcomes. By default those of this system.

    Returns
    -------
    dict of str to JudgedInterval
        By trec_eval's name. Every question is at its own extreme. If one triple answers two
        questions, the extremes may exclude each other, and the interval is too wide, never too
        narrow. The interval of rbp ends at rbp plus its residual, which also counts what is below
        in the list, and below the list.

    Raises
    ------
    UsageError
        A measure that is unknown, or has no mean.
    """
    columns = mean_columns(measures)
    if candidates is None:
        candidates = open_candidates([lists], completion)
    now = judged_values(lists, completion, columns)
    condensed = judged_values(lists, completion, columns, judged_only=True)
    reasons = {column.name: why_unbounded(column) for column in columns}
    bounded = [column for column in columns if not reasons[column.name]]
    judged = judged_lists(lists, completion)
    ends = _ends(lists, judged, candidates, completion.seeds.questions.n_entities, bounded)
    ends = dict.fromkeys(now, (np.nan, np.nan)) | ends
    return {
        name: JudgedInterval(ends[name][0], now[name], condensed[name], ends[name][1], reason)
        for name, reason in reasons.items()
    }


def _ends(
    lists: RankedLists, judged: Lists, candidates: Int64, width: int, columns: Sequence[Column]
) -> dict[str, tuple[float, float]]:
    """Means of the bounds over questions."""
    is_open = contains(candidates, lists.keys)
    n_open = np.bincount(candidates // width, minlength=len(lists))
    inside = np.bincount(lists.owner[is_open], minlength=len(lists))
    ends = bounds(judged, is_open, n_open - inside, columns)
    low, high = (means({name: row[end] for name, row in ends.items()}, columns) for end in (0, 1))
    for column in columns:
        if column.family == "rbp":
            residual = Column("rbp_resid", persistence=column.persistence)  # the possible gain
            (gain,) = means(values(judged, [residual]), [residual]).values()
            high[column.name] = low[column.name] + gain
    return {column.name: (low[column.name], high[column.name]) for column in columns}


def interval_table(by_system: BySystem) -> Table:
    """One row per measure and system."""
    rows = [
        (
            name,
            system,
            one.value,
            one.condensed,
            one.low,
            one.high,
            one.high - one.low,
            "no bounds" if one.reason else "",
        )
        for name in next(iter(by_system.values()), {})
        for system, one in ((system, own[name]) for system, own in by_system.items())
    ]
    columns = "measure, system, value:4, condensed:4, lowest=low:4, highest=high:4, width:4, =note"
    return Table.of(columns, rows, names=2)


def verdicts(by_system: BySystem) -> list[str]:
    """A sentence on how many pairs of systems each measure decides already."""
    bounded = [name for name, one in next(iter(by_system.values()), {}).items() if not one.reason]
    pairs = [*combinations(by_system.values(), 2)]
    if not pairs or not bounded:
        return []
    decided = {
        name: sum(
            max(one[name].low, other[name].low) > min(one[name].high, other[name].high)
            for one, other in pairs
        )
        for name in bounded
    }
    return [
        f"pairs of runs (of {len(pairs):,}) whose order no open candidate can change: "
        + ", ".join(f"{name} {count:,}" for name, count in decided.items())
    ]


def open_remarks(by_system: BySystem, candidates: Int64, within: int | None) -> list[str]:
    """Sentences on the meaning of intervals, on measures without, and on values outside."""
    if not by_system:
        return []
    place = "" if within is None else f" the first {within:,} of"
    where = "in the pool" if within == 0 else f"in the pool or{place} a run's list"
    sentences = [
        f"lowest and highest: {len(candidates):,} candidates without a label, {where}, may each "
        "be true or false. Other candidates without a label count as false, but rbp leaves them "
        "open, and bpref ignores them"
    ]
    for name, one in next(iter(by_system.values())).items():
        if one.reason:
            sentences.append(f"{name} has no interval: {one.reason}")
        outside = [
            system for system, own in by_system.items()
            if not own[name].reason and not own[name].low <= own[name].value <= own[name].high
        ]  # fmt: skip
        if outside and name in ("bpref", "gm_bpref"):
            sentences.append(
                f"{name} of {', '.join(outside)} is outside its interval: it ignores candidates "
                "without a label, but the interval gives each a label"
            )
    return sentences
