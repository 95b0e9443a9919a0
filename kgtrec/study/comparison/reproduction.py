"""Is a run what another was? Orders of documents, values of queries, and the effect of a change.

As in Breuer et al. (How to Measure the Reproducibility of System-oriented IR Experiments, SIGIR
2020) and their repro_eval: Kendall's tau of the union of two lists, rank-biased overlap (Webber,
Moffat and Zobel, A Similarity Measure for Indefinite Rankings, TOIS 2010), the root mean square of
the differences of queries, and the ratio of two experiments' mean improvements.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgtrec._internal.notebook import ShownAsTables, ShownInLines
from kgtrec._internal.table import Cell, Table
from kgtrec.errors import InputError, UsageError
from kgtrec.study.comparison.rank_correlation import tau_b

__all__ = ["Overlap", "Reproduction", "rank_biased_overlap", "reproduction_of", "tau_union"]

Floats = NDArray[np.float64]

DEPTH, PERSISTENCE = 1_000, 0.8  # as in repro_eval


@dataclass(frozen=True)
class Overlap(ShownInLines):
    """Rank-biased overlap of two lists that were cut.

    Attributes
    ----------
    low : float
        What it is at least, if what is beyond the lists has nothing in common.
    residual : float
        By how much it may be higher.
    extrapolated : float
        If they agree beyond as they do down to their ends.
    """

    low: float
    residual: float
    extrapolated: float

    def _lines(self) -> tuple[str, str]:
        ends = f"{self.low:.4f} to {self.low + self.residual:.4f}"
        return f"rank-biased overlap {self.extrapolated:.4f}", f"at least, and at most: {ends}"


def tau_union(first: Sequence[str], second: Sequence[str]) -> float:
    """Kendall's tau of two lists, each document standing for its number in their union.

    The union is in the order of the names, as in repro_eval, and the longer list is cut to the
    length of the shorter; NaN for lists of one document.
    """
    length = min(len(first), len(second))
    first, second = first[:length], second[:length]
    number = {name: i for i, name in enumerate(sorted({*first, *second}))}
    if length < 2:
        return math.nan
    return float(tau_b([number[name] for name in first], [number[name] for name in second]))


def rank_biased_overlap(
    first: Sequence[str], second: Sequence[str], p: float = PERSISTENCE
) -> Overlap:
    """Rank-biased overlap of two lists without repeats, of any lengths from 1.

    Parameters
    ----------
    first, second : sequence of str
        Best first.
    p : float
        In (0, 1): how likely a reader goes on to the next rank.

    Raises
    ------
    UsageError
        p out of range, or an empty list.
    """
    if not 0 < p < 1:
        raise UsageError(f"p={p!r}; it must lie between 0 and 1")
    if not (len(first) and len(second)):
        raise UsageError("an empty list overlaps with nothing; leave the query out")
    short, long = sorted((first, second), key=len)
    s, n = len(short), len(long)
    common = _common(short, long)
    depth = np.arange(1, n + 1, dtype=np.float64)
    weight = p**depth
    scale = (1 - p) / p
    base = float((common / depth * weight).sum())
    whole = float(common[-1])
    # Beyond the lists: the sum over all depths of p^d / d, less its part within.
    rest = -math.log1p(-p)
    low = scale * (base + whole * (rest - float((weight / depth).sum())))
    f = n + s - int(whole)
    far = np.arange(1, f + 1, dtype=np.float64)
    known = np.concatenate([common, np.full(f - n, whole)])
    most = np.minimum(known + np.maximum(far - s, 0) + np.maximum(far - n, 0), far)
    beyond = p ** (f + 1) / (1 - p) - whole * (rest - float((p**far / far).sum()))
    residual = scale * (float(((most - known) / far * p**far).sum()) + beyond)
    at_s = float(common[s - 1])
    more = float((at_s * (depth[s:] - s) / (s * depth[s:]) * weight[s:]).sum())
    extrapolated = scale * (base + more) + ((whole - at_s) / n + at_s / s) * p**n
    return Overlap(low, max(residual, 0.0), extrapolated)


def _common(short: Sequence[str], long: Sequence[str]) -> Floats:
    """Documents that the two share down to each depth of the longer one; all of the shorter."""
    place = {name: i for i, name in enumerate(short)}
    meets = [max(i, place[name]) for i, name in enumerate(long) if name in place]
    return np.cumsum(np.bincount(meets, minlength=len(long))).astype(np.float64)


@dataclass(frozen=True, eq=False)
class Reproduction(ShownAsTables):
    """How near a second experiment comes to a first.

    Attributes
    ----------
    pairs : sequence of (str, str)
        Runs and their reproductions.
    measures : sequence of str
    tau, overlap, residual : ndarray of float64, shape (n_pairs,)
        Means over the queries that both runs hold: tau union, extrapolated RBO and its residual.
    rmse : ndarray of float64, shape (n_pairs, n_measures)
        Root mean square of the differences of queries.
    effect_ratio, improvement : ndarray of float64, shape (n_measures,), or None
        Of two pairs, baseline and advanced system: the mean improvement of the second experiment
        over that of the first, and the relative improvement of the first less that of the second.
    """

    _shown = ("order_table", "table")

    pairs: Sequence[tuple[str, str]]
    measures: Sequence[str]
    tau: Floats
    overlap: Floats
    residual: Floats
    rmse: Floats
    effect_ratio: Floats | None
    improvement: Floats | None

    def order_table(self) -> Table:
        """A row per pair: how alike the lists are."""
        rows: list[tuple[Cell, ...]] = [
            (*pair, *(float(column[i]) for column in (self.tau, self.overlap, self.residual)))
            for i, pair in enumerate(self.pairs)
        ]
        return Table(
            ("original", "reproduced", "tau union", "RBO", "residual"),
            ("original", "reproduced", "tau_union", "rbo", "rbo_residual"), (0, 0, 4, 4, 4), rows,
            2,
        )  # fmt: skip

    def table(self) -> Table:
        """A row per measure: RMSE of each pair, and the effects of two."""
        titles = [f"RMSE {second}" for _, second in self.pairs]
        columns = [*self.rmse]
        if self.effect_ratio is not None and self.improvement is not None:
            titles += ["effect ratio", "delta RI"]
            columns += [self.effect_ratio, self.improvement]
        keys = [title.lower().replace(" ", "_") for title in titles]
        rows: list[tuple[Cell, ...]] = [
            (name, *(float(column[i]) for column in columns))
            for i, name in enumerate(self.measures)
        ]
        return Table(("measure", *titles), ("measure", *keys), (0, *[4] * len(titles)), rows)


def reproduction_of(
    qrels: Any, runs: Mapping[str, Any], measures: Sequence[str], *, depth: int = DEPTH,
    p: float = PERSISTENCE,
) -> tuple[Reproduction, dict[str, int]]:  # fmt: skip
    """Compare runs with their reproductions.

    Parameters
    ----------
    qrels, measures
        As for `samples_of_runs`.
    runs : mapping of str to path-like or RunColumns
        The original run and the reproduced one; or baseline and advanced system of the original
        experiment, then of the reproduced one.
    depth : int
        Documents of a list that are compared.
    p : float
        Of rank-biased overlap.

    Returns
    -------
    Reproduction
    dict of str to int
        How many queries of the qrels each run lacks; they count 0.

    Raises
    ------
    UsageError
        Neither two nor four runs.
    InputError
        A run and its reproduction share no query; see `samples_of_runs` for the rest.
    """
    from kgtrec.study.comparison.run_samples import samples_of_runs

    if len(runs) not in (2, 4):
        raise UsageError(
            f"there are {len(runs)} runs; give the original and the reproduced one, or baseline "
            "and advanced system of the original, then of the reproduced experiment"
        )
    names, half = [*runs], len(runs) // 2
    pairs = [*zip(names[:half], names[half:], strict=True)]
    samples, missing = samples_of_runs(qrels, runs, measures)
    values = np.stack([one.values for one in samples])  # measures, queries, runs
    first, second = values[:, :, :half], values[:, :, half:]
    rmse = np.sqrt(((first - second) ** 2).mean(axis=1)).T
    lists = {name: _lists(run, depth) for name, run in runs.items()}
    orders = np.array([_orders(lists, pair, p) for pair in pairs])
    ratio = improvement = None
    if half == 2:
        means = np.stack([one.means() for one in samples])  # of gm_*, no means of logarithms
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = (means[:, 3] - means[:, 2]) / (means[:, 1] - means[:, 0])
            improvement = (means[:, 1] / means[:, 0]) - (means[:, 3] / means[:, 2])
    return Reproduction(
        pairs, [one.name for one in samples], orders[:, 0], orders[:, 1], orders[:, 2], rmse, ratio,
        improvement,
    ), missing  # fmt: skip


def _lists(run: Any, depth: int) -> dict[str, list[str]]:
    """Documents of each query in trec_eval's order: by score, then by name, descending."""
    from kgtrec.trec.files.read import read_run
    from kgtrec.trec.files.text import is_path

    data = read_run(run) if is_path(run) else run.to_dict()
    lists = {}
    for query, documents in data.items():
        names = sorted(documents, key=lambda name: name.encode("utf-8", "surrogateescape"))
        names.reverse()
        lists[query] = sorted(names, key=documents.__getitem__, reverse=True)[:depth]
    return lists


def _orders(
    lists: Mapping[str, dict[str, list[str]]], pair: tuple[str, str], p: float
) -> tuple[float, float, float]:
    first, second = (lists[name] for name in pair)
    shared = [query for query in first if first[query] and second.get(query)]
    if not shared:
        raise InputError(f"{pair[0]} and {pair[1]} share no query; give runs of the same questions")
    taus = np.array([tau_union(first[query], second[query]) for query in shared])
    overlaps = [rank_biased_overlap(first[query], second[query], p) for query in shared]
    defined = taus[~np.isnan(taus)]
    return (
        float(defined.mean()) if len(defined) else math.nan,
        float(np.mean([one.extrapolated for one in overlaps])),
        float(np.mean([one.residual for one in overlaps])),
    )
