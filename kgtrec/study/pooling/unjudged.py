"""How far what is not judged yet could still change a comparison: intervals of measures.

Open candidates are those without a label that are pooled, or that stand high in the list of a
system; each may be true or false. A measure's interval holds every value that it can have once all
of them are judged, see `kgtrec.trec.measures.bounds`. Values are given, too, with what is unjudged
taken for false, as trec_eval does, and with it taken out of the lists (condensed: trec_eval's -J);
bpref and infAP look at judged candidates by their definitions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from kgtrec._internal.csr import contains
from kgtrec._internal.notebook import ShownInLines
from kgtrec._internal.table import Cell, Table
from kgtrec.errors import UsageError
from kgtrec.study.pooling.completion import UNKNOWN, Completion
from kgtrec.study.pooling.judged_share import judged_lists, judged_values, mean_columns, means
from kgtrec.study.pooling.ranked_lists import RankedLists
from kgtrec.trec.measures.bounds import bounds, why_unbounded
from kgtrec.trec.measures.judged_lists import Lists
from kgtrec.trec.measures.names import Column
from kgtrec.trec.measures.values import values

__all__ = [
    "MEASURES", "WITHIN", "Interval", "decided_pairs", "interval_table", "intervals",
    "open_candidates", "open_remarks", "verdicts",
]  # fmt: skip

Ints = npt.NDArray[np.int64]

MEASURES = (
    "P_10", "success_10", "recip_rank", "rbp", "map_cut_20", "ndcg_cut_20", "recall_20", "bpref",
    "infAP",
)  # fmt: skip
WITHIN = 20


@dataclass(frozen=True)
class Interval(ShownInLines):
    """A mean over questions, and what it may be once every open candidate is judged.

    Attributes
    ----------
    low, high : float
        Ends of the interval; NaN where there is none. bpref, which passes over what is unjudged,
        may have its value outside: in no case that is left would it have that value.
    value : float
        What is unjudged counts as false.
    condensed : float
        What is unjudged is taken out of the lists.
    reason : str
        Why there is no interval; "" where there is one.
    """

    low: float
    value: float
    condensed: float
    high: float
    reason: str = ""

    def _lines(self) -> tuple[str, str]:
        ends = self.reason or f"between {self.low:.4f} and {self.high:.4f}, once all is judged"
        return f"{self.value:.4f} as it is, {self.condensed:.4f} condensed", ends


def open_candidates(
    systems: Sequence[RankedLists], completion: Completion, within: int | None = WITHIN
) -> Ints:
    """Candidates that somebody would still have to judge: question * n_entities + entity.

    Parameters
    ----------
    systems : sequence of RankedLists
    completion : Completion
    within : int, optional
        Unlabelled candidates are open down to this place of each list, None for all of it, 0 for
        none. Those of the pool are open wherever they stand. All others are taken for false; rbp
        leaves them open too, and bpref passes over them.

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
        raise UsageError(f"within {within} is below 0; 20 is usual, 0 for the pool alone")
    width = completion.seeds.questions.n_entities
    qrels = completion.qrels()
    owner = np.repeat(np.arange(len(qrels)), np.diff(qrels.offsets))
    keys = owner * width + qrels.entities
    parts = [keys[qrels.labels == UNKNOWN]]
    for lists in systems:
        own = lists.owner
        place = np.arange(len(own)) - lists.offsets[own]
        inside = np.ones(len(own), bool) if within is None else place < within
        shown = (own * width + lists.entities)[inside]
        parts.append(shown[~contains(keys, shown)])
    return np.unique(np.concatenate(parts))


def intervals(
    lists: RankedLists,
    completion: Completion,
    measures: Sequence[str] = MEASURES,
    *,
    candidates: Ints | None = None,
) -> dict[str, Interval]:
    """Means over the seed questions, and how far the open candidates could move them.

    Parameters
    ----------
    lists : RankedLists
    completion : Completion
        infAP uses its sample, and the questions that have an answer there; with a pool of which
        none was drawn, all labels.
    measures : sequence of str
        trec_eval's.
    candidates : int64 array, optional
        Those that are open, from `open_candidates`: of all systems that are compared, or the
        intervals of two could hold for different outcomes. By default those of this system.

    Returns
    -------
    dict of str to Interval
        By trec_eval's name. Every question is at its own extreme: where one triple answers two
        questions, not all extremes may be reached at once, and the interval is then too wide, never
        too narrow. The interval of rbp ends at rbp plus its residual, which also counts what
        stands below in the list, and below the list.

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
    bounded = [column for column in columns if not why_unbounded(column)]
    judged = judged_lists(lists, completion)
    ends = _ends(lists, judged, candidates, completion.seeds.questions.n_entities, bounded)
    results = {}
    for column in columns:
        name = column.name
        low, high = ends.get(name, (np.nan, np.nan))
        results[name] = Interval(low, now[name], condensed[name], high, why_unbounded(column))
    return results


def _ends(
    lists: RankedLists, judged: Lists, candidates: Ints, width: int, columns: Sequence[Column]
) -> dict[str, tuple[float, float]]:
    """Means of the bounds over questions."""
    is_open = contains(candidates, lists.owner * width + lists.entities)
    n_open = np.bincount(candidates // width, minlength=len(lists))
    inside = np.bincount(lists.owner[is_open], minlength=len(lists))
    ends = bounds(judged, is_open, n_open - inside, columns)
    low, high = (means({name: row[end] for name, row in ends.items()}, columns) for end in (0, 1))
    for column in columns:
        if column.family == "rbp":
            high[column.name] = low[column.name] + _residual(judged, column)
    return {column.name: (low[column.name], high[column.name]) for column in columns}


def _residual(judged: Lists, column: Column) -> float:
    """Mean of all that rbp could still win."""
    residual = Column("rbp_resid", persistence=column.persistence)
    return means(values(judged, [residual]), [residual])["rbp_resid"]


def interval_table(by_system: Mapping[str, Mapping[str, Interval]]) -> Table:
    """A row per measure and system; `by_system` is system -> what `intervals` gives."""
    rows: list[tuple[Cell, ...]] = []
    for name in next(iter(by_system.values()), {}):
        for system, own in by_system.items():
            one = own[name]
            note = "no bounds" if one.reason else ""
            ends = one.low, one.high, one.high - one.low
            rows.append((name, system, one.value, one.condensed, *ends, note))
    titles = ("measure", "system", "value", "condensed", "lowest", "highest", "width", "")
    keys = ("measure", "system", "value", "condensed", "low", "high", "width", "note")
    return Table(titles, keys, (0, 0, 4, 4, 4, 4, 4, 0), rows, names=2)


def decided_pairs(by_system: Mapping[str, Mapping[str, Interval]], measure: str) -> tuple[int, int]:
    """Pairs of systems whose intervals of a measure do not meet, and all pairs.

    Raises
    ------
    UsageError
        The measure has no bounds.
    """
    ends = [own[measure] for own in by_system.values()]
    reason = next((one.reason for one in ends if one.reason), "")
    if reason:
        raise UsageError(f"{measure!r} has no bounds ({reason}); choose another")
    pairs = list(combinations(ends, 2))
    apart = sum(one.high < other.low or other.high < one.low for one, other in pairs)
    return apart, len(pairs)


def verdicts(by_system: Mapping[str, Mapping[str, Interval]]) -> list[str]:
    """A sentence on how many pairs of systems are decided by each measure as it stands."""
    bounded = [name for name, one in next(iter(by_system.values()), {}).items() if not one.reason]
    if len(by_system) < 2 or not bounded:
        return []
    pairs = len(by_system) * (len(by_system) - 1) // 2
    decided = ", ".join(f"{name} {decided_pairs(by_system, name)[0]:,}" for name in bounded)
    return [f"pairs of runs, of {pairs:,}, whose order stands whatever is still open: {decided}"]


def open_remarks(
    by_system: Mapping[str, Mapping[str, Interval]], candidates: Ints, within: int | None
) -> list[str]:
    """Sentences on what intervals are about, on measures without, and on values outside."""
    if not by_system:
        return []
    place = "" if within is None else f" the first {within:,} of"
    where = "in the pool" if within == 0 else f"in the pool or{place} a run's list"
    sentences = [
        f"lowest and highest: {len(candidates):,} candidates without a label, {where}, may each be "
        "true or false; all others without a label are taken for false, but for rbp, which leaves "
        "them open too, and for bpref, which passes over them"
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
                f"{name} of {', '.join(outside)} is outside its interval: it passes over what has "
                "no label, and every outcome gives it one"
            )
    return sentences
