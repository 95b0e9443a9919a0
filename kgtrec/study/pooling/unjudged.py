"""Values of systems from judgements, and how much further judgements could change them.

The share "added" of a list is that of newly annotated true triples (Zhou et al. 2022, section 4.2).
Open candidates have no label, and are pooled or near the top of a system's list; each may be true
or false. The interval of a measure contains every value that is possible after all of them are
judged; see `kgtrec.trec.measures.bounds`. Values count unjudged candidates as false, like
trec_eval; condensed values omit them from the lists (trec_eval's -J). bpref and infAP use judged
candidates only, by definition.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any

import numpy as np

from kgtrec._internal.arguments import require_items, require_type
from kgtrec._internal.arrays import Int64
from kgtrec._internal.csr import contains, find_sorted, offsets_of
from kgtrec._internal.table import Cell, ShownInLines, Table
from kgtrec.errors import UsageError, refuse_if
from kgtrec.study.pooling.completion import FALSE, TRUE, UNKNOWN, Completion, Qrels
from kgtrec.study.pooling.lists import RankedLists
from kgtrec.trec.measures.bounds import bounds, why_unbounded
from kgtrec.trec.measures.names import Column, resolve
from kgtrec.trec.measures.relevant import UNJUDGED, Lists
from kgtrec.trec.measures.trec_measure import EvalOptions
from kgtrec.trec.measures.values import summary, values


def label_lists(lists: RankedLists, completion: Completion) -> Lists:
    """Label a system's lists with the labels of a completion, for trec_eval's measures.

    Every seed question is included; those that the run lacks have an empty list.
    """
    return label_by_qrels(lists, completion.qrels())


def label_by_qrels(lists: RankedLists, qrels: Qrels) -> Lists:
    """Label a system's lists with qrels of the seed questions, for trec_eval's measures."""
    index = find_sorted(qrels.keys, lists.keys)
    relevance = np.where(index >= 0, qrels.labels[index], UNJUDGED)
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
    """Return the columns of measures, in their order; UsageError if one has no mean."""
    columns = {column.name: column for name in measures for column in resolve([name])}
    refuse_if(
        *(
            (
                column.is_count or column.is_text,
                f"{name!r} has no mean over questions; leave it out",
            )
            for name, column in columns.items()
        )
    )
    return list(columns.values())


def evaluate_judged(
    lists: RankedLists,
    completion: Completion,
    columns: Sequence[Column],
    *,
    judged_only: bool = False,
) -> dict[str, float]:
    """Compute the means of measures over the seed questions, by trec_eval's name."""
    options = EvalOptions(judged_only=judged_only)
    by_name, has_sample = {}, completion.drawn is not None
    for sampled in (False, True):
        selected = [c for c in columns if (has_sample and c.measure == "infAP") == sampled]
        if not selected:
            continue
        labelled = completion.sample if sampled else completion
        rows: Mapping[str, Any] = values(label_lists(lists, labelled), selected, options)
        if sampled:
            answered = labelled.qrels().answered
            rows = {name: row[answered] if answered.any() else row for name, row in rows.items()}
        by_name.update(means(rows, selected))
    return {column.name: by_name[column.name] for column in columns}


def means(rows: Mapping[str, Any], columns: Sequence[Column]) -> dict[str, float]:
    """Average measures over the questions, by name; geometrically for gm_map and gm_bpref."""
    return {name: float(value) for name, value in summary(rows, columns).items()}


# --- shares ---------------------------------------------------------------------------------------


def shares(lists: RankedLists, completion: Completion, cutoff: int) -> dict[str, int]:
    """Count the seeds, and added, false and unjudged candidates, in the first `cutoff` places."""
    judged = label_lists(lists, completion)
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
    """Return a table with one row per system and cutoff: its first candidates by label, in %."""
    rows: list[tuple[Cell, ...]] = []
    for lists, cutoff in product(systems, cutoffs):
        counts = np.array([*shares(lists, completion, cutoff).values()])
        total = int(counts.sum())
        parts = (100 * counts / max(total, 1)).tolist()
        rows.append((lists.name, str(cutoff), total, *parts, 100 - parts[-1] if total else 0.0))
    return Table.from_rows(
        "system, top, candidates, seeds %=seed_percent:1, added %:1, false %:1, unjudged %:1, "
        "judged %:1",
        rows,
        names=2,
    )


MEASURES = (
    "P_10",
    "success_10",
    "recip_rank",
    "rbp",
    "map_cut_20",
    "ndcg_cut_20",
    "recall_20",
    "bpref",
    "infAP",
)
WITHIN = 20


@dataclass(frozen=True)
class JudgedInterval(ShownInLines):
    """A mean over questions, and its range after every open candidate is judged.

    - low, high: Ends of the interval; NaN if there is none. The value of bpref may be outside,
      because it ignores unjudged candidates, but the interval gives each a label.
    - value: Mean if unjudged candidates count as false.
    - condensed: Mean if unjudged candidates are omitted from the lists.
    - reason: Reason why there is no interval; "" if there is one.
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
"""The `intervals` of each system, by its name."""


def open_candidates(
    systems: Sequence[RankedLists], completion: Completion, within: int | None = WITHIN
) -> Int64:
    """Return the candidates that nobody has judged yet, as question * n_entities + entity.

    Parameters
    ----------
    systems : sequence of RankedLists
    completion : Completion
    within : int, optional
        Number of places per list in which candidates without a label are open: None for all, 0 for
        none. Candidates of the pool are open in any place. All others count as false, but rbp
        leaves them open too, and bpref ignores them.

    Returns
    -------
    int64 array (n,)
        Ascending, each once.

    Raises
    ------
    UsageError
        `within` is below 0.
    """
    require_items(
        "systems", systems, RankedLists, "RankedLists (study.run_lists or study.score_lists)"
    )
    require_type("completion", completion, Completion, "a Completion (study.complete)")
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
    """Compute means over the seed questions, and how far the open candidates could move them.

    Parameters
    ----------
    lists : RankedLists
    completion : Completion
        infAP uses its sample, and the questions with an answer there; for a pool without a sample,
        all labels.
    measures : sequence of str
        Measures of trec_eval.
    candidates : ndarray of int64, shape (k,), optional
        Open candidates, from `open_candidates`. By default those of this system. To compare
        systems, give those of all systems. Otherwise, their intervals could assume different
        outcomes.

    Returns
    -------
    dict of str to JudgedInterval
        Intervals by trec_eval's name of the measure. Each question has the extreme value that is
        possible for it. If one triple answers two questions, their extremes may exclude each other.
        Then the interval is too wide, never too narrow. The interval of rbp ends at rbp plus its
        residual, which also counts lower places of the list, and places after its end.

    Raises
    ------
    UsageError
        A measure that is unknown, or has no mean.
    """
    require_type("lists", lists, RankedLists, "RankedLists (study.run_lists or study.score_lists)")
    require_type("completion", completion, Completion, "a Completion (study.complete)")
    columns = mean_columns(measures)
    if candidates is None:
        candidates = open_candidates([lists], completion)
    now = evaluate_judged(lists, completion, columns)
    condensed = evaluate_judged(lists, completion, columns, judged_only=True)
    reasons = {column.name: why_unbounded(column) for column in columns}
    bounded = [column for column in columns if not reasons[column.name]]
    judged = label_lists(lists, completion)
    ends = _compute_ends(lists, judged, candidates, completion.seeds.questions.n_entities, bounded)
    ends = dict.fromkeys(now, (np.nan, np.nan)) | ends
    return {
        name: JudgedInterval(ends[name][0], now[name], condensed[name], ends[name][1], reason)
        for name, reason in reasons.items()
    }


def _compute_ends(
    lists: RankedLists, judged: Lists, candidates: Int64, width: int, columns: Sequence[Column]
) -> dict[str, tuple[float, float]]:
    """Compute the lowest and the highest mean of each column over the questions, by name.

    `width` is the number of entities.
    """
    is_open = contains(candidates, lists.keys)
    n_open = np.bincount(candidates // width, minlength=len(lists))
    inside = np.bincount(lists.owner[is_open], minlength=len(lists))
    ends = bounds(judged, is_open, n_open - inside, columns)
    low, high = (means({name: row[end] for name, row in ends.items()}, columns) for end in (0, 1))
    for column in columns:
        if column.measure == "rbp":
            residual = Column("rbp_resid", persistence=column.persistence)  # the possible gain
            (gain,) = means(values(judged, [residual]), [residual]).values()
            high[column.name] = low[column.name] + gain
    return {column.name: (low[column.name], high[column.name]) for column in columns}


def interval_table(by_system: BySystem) -> Table:
    """Return a table with one row per measure and system."""
    rows = [
        (
            name,
            system,
            interval.value,
            interval.condensed,
            interval.low,
            interval.high,
            interval.high - interval.low,
            "no bounds" if interval.reason else "",
        )
        for name in next(iter(by_system.values()), {})
        for system, interval in ((system, row[name]) for system, row in by_system.items())
    ]
    columns = "measure, system, value:4, condensed:4, lowest=low:4, highest=high:4, width:4, =note"
    return Table.from_rows(columns, rows, names=2)


def verdicts(by_system: BySystem) -> list[str]:
    """Return a sentence on how many pairs of systems each measure decides already.

    It is in a list, which is empty if there are no pairs or no intervals.
    """
    first_system = next(iter(by_system.values()), {})
    bounded = [name for name, interval in first_system.items() if not interval.reason]
    pairs = [*combinations(by_system.values(), 2)]
    if not pairs or not bounded:
        return []
    decided = {
        name: sum(
            max(first[name].low, second[name].low) > min(first[name].high, second[name].high)
            for first, second in pairs
        )
        for name in bounded
    }
    return [
        f"pairs of runs (of {len(pairs):,}) whose order no open candidate can change: "
        + ", ".join(f"{name} {count:,}" for name, count in decided.items())
    ]


def open_remarks(by_system: BySystem, candidates: Int64, within: int | None) -> list[str]:
    """Return sentences on the meaning of intervals.

    They also name measures without an interval, and values outside their interval.
    """
    if not by_system:
        return []
    first_places = "" if within is None else f" the first {within:,} of"
    where = "in the pool" if within == 0 else f"in the pool or{first_places} a run's list"
    sentences = [
        f"lowest and highest: {len(candidates):,} candidates without a label, {where}, may each "
        "be true or false. Other candidates without a label count as false, but rbp leaves them "
        "open, and bpref ignores them"
    ]
    for name, interval in next(iter(by_system.values())).items():
        if interval.reason:
            sentences.append(f"{name} has no interval: {interval.reason}")
        outside = [
            system
            for system, row in by_system.items()
            if not row[name].reason and not row[name].low <= row[name].value <= row[name].high
        ]
        if outside and name in ("bpref", "gm_bpref"):
            sentences.append(
                f"{name} of {', '.join(outside)} is outside its interval: it ignores candidates "
                "without a label, but the interval gives each a label"
            )
    return sentences
