"""S1: stratified metrics over a whole grid of (beta_e, beta_r), against the formula per point."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from data import Benchmark, fb15k_237
from rows import Row, Settings, at_least, require
from timing import Contestant, compete

import kgtrec
from kgtrec.measures import stratified_grid

__all__ = ["BARS"]

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]

METRICS = ("mrr", "hits@1", "hits@3", "hits@10")


def _formula(ranks: kgtrec.Ranks, betas: Floats) -> Floats:
    """(beta_e, beta_r, metric): every point separately, by definition, in plain numpy."""
    rank = ranks.rank("realistic")
    values = [1 / rank, *(np.where(rank <= k, 1.0, 0.0) for k in (1, 3, 10))]
    pairs = np.argsort(ranks.triple, kind="stable").reshape(-1, 2)  # a triple's two rows
    paired = [value[pairs] for value in values]
    relation = ranks.relation[pairs[:, 0]]
    _, number, count = np.unique(relation, return_inverse=True, return_counts=True)
    popularity = ranks.answer_popularity[pairs].astype(np.float64)
    out = np.empty((len(betas), len(betas), len(values)))
    for i, beta_e in enumerate(betas):
        for j, beta_r in enumerate(betas):
            out[i, j] = _point(paired, number, count, popularity, beta_e, beta_r)
    return out


def _point(
    paired: list[Floats], number: Array, count: Array, popularity: Floats, beta_e: Any, beta_r: Any
) -> list[float]:
    """Every metric at one point; only the weights can be shared."""
    weight = popularity**-beta_e
    total = weight.sum(axis=1)
    share = count.astype(np.float64) ** -beta_r
    point = []
    for value in paired:
        per_triple = (weight * value).sum(axis=1) / total
        per_relation = np.bincount(number, per_triple) / count
        point.append(float(np.sum(share * per_relation) / np.sum(share)))
    return point


def _package(ranks: kgtrec.Ranks, betas: Floats) -> Floats:
    """The package's way: the whole grid in one call, including grouping the ranks."""
    return np.moveaxis(stratified_grid(ranks, betas, betas, METRICS), 0, -1)


def _ranks(bench: Benchmark, graph: kgtrec.Graph) -> kgtrec.Ranks:
    questions = graph.questions("test")
    factors = kgtrec.Factors(bench.queries(questions), bench.entity)
    return kgtrec.rank(factors, questions, progress=False)[0]


def _s1(settings: Settings) -> list[Row]:
    bench = fb15k_237()
    n = 5 if settings.quick else 41
    betas = np.round(np.linspace(-1, 1, n), 10)
    ranks = _ranks(bench, bench.cut(2_000) if settings.quick else bench.graph)
    grids: dict[str, Any] = {}
    contestants = {
        "ours": Contestant(lambda _: grids.update(ours=_package(ranks, betas))),
        "reference": Contestant(lambda _: grids.update(formula=_formula(ranks, betas))),
    }
    timings = compete(contestants, rounds=3 if settings.quick else 5)
    gap = float(np.abs(grids["ours"] - grids["formula"]).max())
    require(gap <= 1e-12, f"the grids differ by {gap:.2g}")
    row = at_least(
        "S1",
        f"{n} x {n} beta grid, strat-MRR and strat-Hits@1,3,10",
        f"{timings.seconds('ours'):.3g} s",
        f"numpy {timings.seconds('reference'):.3g} s",
        timings.ratio("reference", "ours"),
        20,
        **timings.detail("reference", "ours"),
        largest_difference=gap,
        data=bench.name,
    )
    return [row]


BARS = {"S1": _s1}
