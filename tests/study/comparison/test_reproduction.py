"""Reproduction of runs: tau union, rank-biased overlap and effects, each the long way round."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from slow import slow_after

from kgtrec import trec
from kgtrec.cli import cli
from kgtrec.errors import InputError, UsageError
from kgtrec.study.comparison.correlation import (
    rank_biased_overlap,
    reproduction_of,
    tau_union,
)

# Ties in what is evaluated here are meant, or drawn.
pytestmark = pytest.mark.filterwarnings("ignore::kgtrec.errors.TieWarning")

FAR = 500


def overlap_to(first: list[str], second: list[str], p: float) -> float:
    """The sum of the definition, over as many depths as leave nothing."""
    total = 0.0
    for d in range(1, FAR):
        shared = len(set(first[:d]) & set(second[:d]))
        total += (1 - p) * p ** (d - 1) * shared / d
    return total


def best_continuation(first: list[str], second: list[str]) -> tuple[list[str], list[str]]:
    """Lists that agree as soon as they can: each takes what the other has and it lacks."""
    short, long = sorted((list(first), list(second)), key=len)
    new = (f"new{i}" for i in itertools.count())
    while len(short) < 150:
        if len(short) < len(long):
            lacking = [d for d in long[: len(short) + 1] if d not in short]
            short.append(lacking[0] if lacking else next(d for d in long if d not in short))
            continue
        mine = [d for d in long if d not in short]
        theirs = [d for d in short if d not in long]
        fresh = next(new)
        short.append(mine[0] if mine else fresh)
        long.append(theirs[0] if theirs else fresh)
    return short, long


@pytest.mark.parametrize("p", slow_after(1, [0.3, 0.8, 0.9]))
def test_rank_biased_overlap_lies_between_its_worst_and_best_continuation(p: float) -> None:
    rng = np.random.default_rng(1)
    for _ in range(60):
        first, second = (
            [f"d{i}" for i in rng.choice(9, rng.integers(1, 8), replace=False)] for _ in "ab"
        )
        overlap = rank_biased_overlap(first, second, p)
        assert overlap == rank_biased_overlap(second, first, p)
        far = [[*one, *(f"{side}{i}" for i in range(FAR))] for one, side in
               zip((first, second), "xy", strict=True)]  # fmt: skip
        assert overlap.low == pytest.approx(overlap_to(*far, p), abs=1e-12)
        best = overlap_to(*best_continuation(first, second), p)
        # 150 ranks of the best continuation hold all but p^150 / (1 - p) of it.
        assert overlap.low + overlap.residual == pytest.approx(best, abs=p**150 / (1 - p) + 1e-12)
        assert overlap.low - 1e-12 <= overlap.extrapolated <= overlap.low + overlap.residual + 1e-12


def test_overlap_of_worked_cases() -> None:
    same = rank_biased_overlap("abc", "abc", 0.9)
    assert same.extrapolated == pytest.approx(1.0)
    assert same.low + same.residual == pytest.approx(1.0)
    nothing = rank_biased_overlap("ab", "cd", 0.5)
    assert (nothing.low, nothing.extrapolated) == (pytest.approx(0, abs=1e-15), 0.0)
    # One of two in common, at the second rank: X = 0, 1.
    half = rank_biased_overlap("ab", "cb", 0.5)
    assert half.extrapolated == pytest.approx((1 / 2 * 0.25) + 1 / 2 * 0.25)
    for wrong in ((["a"], ["b"], 1.0), ([], ["a"], 0.5)):
        with pytest.raises(UsageError):
            rank_biased_overlap(*wrong)


def test_tau_union_counts_pairs() -> None:
    rng = np.random.default_rng(2)
    for _ in range(60):
        lists = [[f"d{i:02}" for i in rng.choice(12, rng.integers(2, 9), replace=False)]
                 for _ in "ab"]  # fmt: skip
        n = min(map(len, lists))
        union = sorted({*lists[0][:n], *lists[1][:n]})
        x, y = ([union.index(d) for d in one[:n]] for one in lists)
        signs = [
            (1 if (x[i] - x[j]) * (y[i] - y[j]) > 0 else -1)
            for i, j in itertools.combinations(range(n), 2)
        ]
        assert tau_union(*lists) == pytest.approx(sum(signs) / len(signs))
    assert math.isnan(tau_union("a", "ab"))


QRELS = {f"q{i}": {"a": 1, "b": 0, "c": 1} for i in range(4)}


def runs(seed: int, n: int) -> dict[str, dict[str, dict[str, float]]]:
    rng = np.random.default_rng(seed)
    return {
        f"run{k}": {q: {d: float(rng.integers(0, 50)) for d in "abcdef"} for q in QRELS}
        for k in range(n)
    }


def test_effects_are_those_of_the_values(tmp_path: Path) -> None:
    systems = runs(3, 4)
    for name, run in systems.items():
        trec.write_run(run, tmp_path / name)
    paths = {name: tmp_path / name for name in systems}
    result, missing = reproduction_of(QRELS, paths, ["map", "P.2"])
    assert missing == dict.fromkeys(systems, 0)
    for m, measure in enumerate(("map", "P_2")):
        value = {n: {q: row[measure] for q, row in trec.evaluate(QRELS, run, [measure]).items()}
                 for n, run in systems.items()}  # fmt: skip
        for i, (first, second) in enumerate((("run0", "run2"), ("run1", "run3"))):
            gaps = [(value[first][q] - value[second][q]) ** 2 for q in QRELS]
            assert result.rmse[i, m] == pytest.approx(math.sqrt(sum(gaps) / 4))
        mean = [sum(value[f"run{k}"].values()) / 4 for k in range(4)]
        assert result.effect_ratio[m] == pytest.approx((mean[3] - mean[2]) / (mean[1] - mean[0]))
        change = (mean[1] - mean[0]) / mean[0] - (mean[3] - mean[2]) / mean[2]
        assert result.improvement[m] == pytest.approx(change)
    geometric = reproduction_of(QRELS, paths, ["gm_map"])[0]
    mean = [math.exp(np.mean([row["gm_map"] for row in trec.evaluate(QRELS, run, ["gm_map"])
                              .values()])) for run in systems.values()]  # fmt: skip
    assert geometric.effect_ratio == pytest.approx([(mean[3] - mean[2]) / (mean[1] - mean[0])])
    assert geometric.improvement == pytest.approx([mean[1] / mean[0] - mean[3] / mean[2]])
    order = {q: sorted(row, key=lambda d: (row[d], d), reverse=True)
             for q, row in systems["run0"].items()}  # fmt: skip
    other = {q: sorted(row, key=lambda d: (row[d], d), reverse=True)
             for q, row in systems["run2"].items()}  # fmt: skip
    assert result.tau[0] == pytest.approx(np.mean([tau_union(order[q], other[q]) for q in QRELS]))
    due = np.mean([rank_biased_overlap(order[q], other[q]).extrapolated for q in QRELS])
    assert result.overlap[0] == pytest.approx(due)


def test_a_run_reproduces_itself(tmp_path: Path) -> None:
    (run,) = runs(4, 1).values()
    for name in ("one", "two"):
        trec.write_run(run, tmp_path / name)
    trec.write_qrels(QRELS, tmp_path / "qrels")
    base = ["compare", "reproduction", "--qrels", str(tmp_path / "qrels")]
    files = [str(tmp_path / name) for name in ("one", "two")]
    done = CliRunner().invoke(cli, [*base, *files, "--format", "json"], catch_exceptions=False)
    data = json.loads(done.stdout)
    assert "1.0" in json.dumps(data["orders"])
    text = CliRunner().invoke(cli, [*base, *files], catch_exceptions=False).stdout
    assert "1.0000" in text
    assert max(map(len, text.splitlines())) <= 80
    with pytest.raises(UsageError, match="3 runs"):
        reproduction_of(QRELS, runs(5, 3), ["map"])
    trec.write_run({"z": {"a": 1.0}, "q0": {}}, tmp_path / "other")
    with pytest.raises(InputError):
        reproduction_of(QRELS, {"a": tmp_path / "one", "b": tmp_path / "other"}, ["map"])
