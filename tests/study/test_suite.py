"""Suites of graphs against brute force and scipy, and their command, page and figures."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from scipy import stats

import kgtrec
from kgtrec.cli import cli
from kgtrec.errors import UsageError
from kgtrec.measures import Measure
from kgtrec.study import Resampling, suite_of_ranks, suites
from kgtrec.study.suite.cells import SuiteCells
from kgtrec.study.suite.suite import (
    Suite,
    bounds_of_ranks,
    friedman,
    ranks_within,
    standing,
    suite_page,
)


def suite_of(values: Any, key: str = "adjusted_mrr", **more: Any) -> Suite:
    values = np.asarray(values, float)
    names = [
        tuple(f"{kind}{i}" for i in range(n)) for kind, n in zip("mg", values.shape, strict=True)
    ]
    cells = SuiteCells(Measure.parse(key), *names, values, np.ones(values.shape, np.int64))
    return suites([cells], **more)[0]


def values_with_ties(seed: int, models: int = 5, graphs: int = 7, missing: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 6, (models, graphs)) / 10
    values.flat[rng.choice(values.size, missing, replace=False)] = np.nan
    return values


def beaten(one: float, other: float, sign: float) -> float:
    """1 for a win, 0.5 for a tie."""
    return 1.0 if sign * one > sign * other else 0.5 * (one == other)


@pytest.mark.parametrize(
    ("seed", "key"), [(0, "mr"), (1, "mr"), (2, "adjusted_mrr"), (3, "adjusted_mrr")]
)
def test_standings_are_those_of_all_pairs(seed: int, key: str) -> None:
    values = values_with_ties(seed, missing=4 * (seed % 2))
    suite = suite_of(values, key)
    sign = suite.cells.sign
    for m, row in enumerate(values):
        wins, pairs, ranks = 0.0, 0, []
        for g, value in enumerate(row):
            others = [v for i, v in enumerate(values[:, g]) if i != m and not math.isnan(v)]
            if math.isnan(value) or not others:
                continue
            own = sum(beaten(value, other, sign) for other in others)
            wins, pairs = wins + own, pairs + len(others)
            ranks.append(1 + (len(others) - own) * (len(values) - 1) / len(others))
        assert suite.standing.borda[m] == pytest.approx(wins)
        assert suite.standing.win_rate[m] == pytest.approx(wins / pairs)
        assert suite.standing.mean_rank[m] == pytest.approx(np.mean(ranks))
        assert suite.means()[m] == pytest.approx(np.nanmean(row))


def test_friedman_is_that_of_conover() -> None:
    """Practical Nonparametric Statistics (1999), equation 5.8.7, which allows ties."""
    for seed in range(4):
        ranks = ranks_within(values_with_ties(seed, 4, 9), 1.0)
        found = friedman(ranks)
        assert found is not None
        spread = (ranks**2).sum() - 9 * 4 * 5**2 / 4
        statistic = 3 * ((ranks.sum(axis=1) - 9 * 5 / 2) ** 2).sum() / spread
        assert found.statistic == pytest.approx(statistic)
        assert found.p == pytest.approx(stats.chi2.sf(statistic, 3))
    tied = friedman(np.full((3, 5), 2.0))
    assert tied is not None
    assert (tied.statistic, tied.p) == (0.0, 1.0)


@pytest.mark.parametrize(("models", "q"), [(3, 2.343), (5, 2.728), (10, 3.164)])
def test_critical_differences_are_those_of_demsar(models: int, q: float) -> None:
    """The critical values of his Table 5(a)."""
    ranks = np.stack([np.roll(np.arange(1.0, models + 1), k) for k in range(7)], axis=1)
    found = friedman(ranks)
    assert found is not None
    assert found.critical_difference == pytest.approx(q * (models * (models + 1) / 42) ** 0.5, 5e-4)


def test_the_test_compares_mean_ranks_of_the_graphs_that_all_have() -> None:
    values = np.repeat([[0.1], [0.5], [0.2]], 9, axis=1)
    values[2, 0], values[0, 0] = np.nan, 0.9  # a graph that the third lacks says nothing
    suite = suite_of(values)
    assert suite.friedman is not None
    assert suite.friedman.graphs == 8
    assert suite.friedman.mean_ranks.tolist() == [3, 1, 2]
    assert np.argwhere(suite.better()).tolist() == [[1, 0]]
    assert suite.standing.mean_rank[0] < 3


def test_the_best_are_bold_and_models_set_apart_are_not() -> None:
    values = [[0.2, 0.4, 0.3], [0.4, 0.2, 0.3], [0.9, np.nan, np.nan], [0.1, 0.1, 0.1]]
    suite = suite_of(values, groups={"one": ["g0"]})
    table = suite.table()
    assert [row[0] for row in table.rows] == ["m0", "m1", "m3", "m2"]
    bold = [(table.rows[row][0], table.keys[column]) for row, column in sorted(table.bold)]
    one, *more = [(0, "all"), (0, "mean_rank"), (0, "win_rate"), (0, "borda")]
    both = [(name, key) for name in ("m0", "m1") for _, key in (one, *more)]
    assert sorted(bold) == sorted([*both, ("m1", "one")])
    assert "**0.4000**" in table.to_markdown()
    assert r"\textbf{0.4000}" in table.to_latex()
    assert "<strong>0.4000</strong>" in suite_page([suite])


def test_pairs_are_tested_on_shared_graphs() -> None:
    values = np.random.default_rng(1).normal(size=(3, 12))
    values[0, 3] = values[2, 5] = np.nan
    suite = suite_of(values, test="wilcoxon")
    for i, j, graphs, wins, p in zip(
        *(suite.pairs[key] for key in ("first", "second", "graphs", "wins", "p")), strict=True
    ):
        gap = values[i] - values[j]
        gap = gap[~np.isnan(gap)]
        assert (graphs, wins) == (len(gap), (gap > 0).sum())
        assert p == pytest.approx(stats.wilcoxon(gap, method="exact").pvalue)


def test_bounds_are_those_of_all_fillings() -> None:
    for seed in range(4):
        values = values_with_ties(seed, 3, 2, missing=2)
        low, high = bounds_of_ranks(values, 1.0)
        holes = np.argwhere(np.isnan(values))
        tried = []
        for filling in itertools.product([-1.0, 0.05, 0.25, 2.0, 3.0], repeat=len(holes)):
            filled = values.copy()
            filled[tuple(holes.T)] = filling
            tried.append(ranks_within(filled, 1.0).mean(axis=1))
        assert np.array_equal(low.mean(axis=1), np.min(tried, axis=0))
        assert np.array_equal(high.mean(axis=1), np.max(tried, axis=0))


def test_draws_are_those_of_a_plain_loop() -> None:
    suite = suite_of(values_with_ties(3, missing=3), resampling=Resampling(resamples=100, seed=4))
    chosen = np.random.default_rng(4).integers(0, 7, (100, 7))
    for draw, graphs in enumerate(chosen):
        own = suite.cells.values[:, graphs]
        assert suite.mean_draws()[draw] == pytest.approx(np.nanmean(own, axis=1), nan_ok=True)
        again = standing(suite.ranks[:, graphs], np.ones(7)).mean_rank
        expected = stats.rankdata(np.where(np.isnan(again), np.inf, again))
        known = ~np.isnan(again)
        assert suite.place_draws[draw][known] == pytest.approx(expected[known])


def test_models_with_few_graphs_are_set_apart() -> None:
    values = values_with_ties(2)
    values[1, :4] = np.nan
    suite = suite_of(values)
    assert suite.apart.tolist() == [False, True, False, False, False]
    assert suite.order[-1] == 1
    assert ("m1", "g0") in suite.cells.missing
    assert any("listed separately" in note for note in suite.notes())
    assert any("raw metric" in note for note in suite_of(values, "mrr").notes())


# -- Ranks and tables ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ranks() -> dict[str, dict[str, dict[str, kgtrec.Ranks]]]:
    """Three graphs, two models, two seeds; one cell is missing."""
    made: dict[str, dict[str, dict[str, kgtrec.Ranks]]] = {}
    for number, size in enumerate((20, 30, 40)):
        rng = np.random.default_rng(number)
        triples = np.unique(rng.integers(0, (size, 3, size), (200, 3)), axis=0)
        graph = kgtrec.Graph.from_arrays(triples[60:], triples[:30], triples[30:60],
                                         n_entities=size, n_relations=3)  # fmt: skip
        questions = graph.questions("test")
        for model, seed in itertools.product(("a", "b"), ("0", "1")):
            if (number, model) != (2, "b"):
                scores = rng.normal(size=(len(questions), size))
                own = made.setdefault(f"g{number}", {}).setdefault(model, {})
                own[seed] = kgtrec.rank(scores, questions)[0]
    return made


def test_cells_are_the_values_of_results(ranks: Any) -> None:
    for key in ("amri", "adjusted_hits@10", "mrr", "tail.gmr"):
        (suite,) = suite_of_ranks(ranks, [key], resampling=Resampling(resamples=100))
        for m, model in enumerate(suite.cells.models):
            for g, graph in enumerate(suite.cells.graphs):
                own = [kgtrec.Result(one)[key] for one in ranks[graph].get(model, {}).values()]
                expected = np.mean(own) if own else math.nan
                assert suite.cells.values[m, g] == pytest.approx(expected, nan_ok=True)
        assert suite.cells.missing == [("b", "g2")]
        assert suite.cells.draws is not None
        drawn = suite.cells.draws[:, 0, 0]
        assert drawn.std() > 0
        assert drawn.mean() == pytest.approx(suite.cells.values[0, 0], abs=4 * drawn.std())


def run(*arguments: object) -> str:
    done = CliRunner().invoke(cli, ["suite", *map(str, arguments)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_folders_of_ranks_are_read(ranks: Any, tmp_path: Path) -> None:
    for graph, own in ranks.items():
        for model, runs in own.items():
            (tmp_path / graph / model).mkdir(parents=True)
            for seed, one in runs.items():
                one.save(tmp_path / graph / model / f"{seed}.parquet")
    (suite,) = suite_of_ranks(ranks, ["amri"], resampling=Resampling(resamples=100))
    options = ("-m", "amri", "--resamples", 100, "--format", "csv")
    assert run(tmp_path, *options) == suite.table().to_csv()


def test_the_page_and_the_figures(tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("page.html", "p.svg", "c.svg", "h.svg")]
    options = zip(("--html", "--plot", "--plot-rankings", "--plot-cells"), files, strict=True)
    table = tmp_path / "t.csv"
    table.write_text("graph,model,metric,value\n" + "".join(
        f"g{g},<b>m{m}</b>,adjusted_mrr,{0.1 * g + 0.01 * m}\n"
        for g, m in itertools.product(range(4), range(4)) if (g, m) != (0, 0)
    ))  # fmt: skip
    run(table, *itertools.chain.from_iterable(options))
    page = files[0].read_text()
    # Without data: browsers show none of its images.
    for text in ("&lt;b&gt;m1&lt;/b&gt;", "data:image/png", "img-src data:"):
        assert text in page
    assert (page.count("<svg"), page.count("<b>"), page.count("<script")) == (3, 0, 0)
    assert all(file.stat().st_size > 1000 for file in files)
    assert "m1" in suite_page([suite_of(values_with_ties(0, 2, 2))])  # no test of two


# -- Half-links ----------------------------------------------------------------------------------


def test_half_links_are_those_of_a_plain_loop() -> None:
    rng = np.random.default_rng(8)
    triples = np.unique(rng.integers(0, (25, 3, 25), (150, 3)), axis=0)
    rng.shuffle(triples)
    graph = kgtrec.Graph.from_arrays(triples[40:], triples[:5], triples[5:40], n_entities=25,
                                     n_relations=3)  # fmt: skip
    questions = graph.questions("test")
    result = kgtrec.evaluate(rng.normal(size=(len(questions), 25)), questions)
    train = graph.splits["train"].tolist()
    heads, tails = {(h, r) for h, r, _ in train}, {(r, t) for _, r, t in train}
    names = {(True, True): "both", (True, False): "given only", (False, True): "asked only",
             (False, False): "neither"}  # fmt: skip
    counts: Counter[str] = Counter()
    for h, r, t in graph.splits["test"].tolist():
        known = (h, r) in heads, (r, t) in tails
        counts.update([names[known], names[known[::-1]]])
    table = result.slice("half-links", graph=graph)
    assert {row[0]: row[2] for row in table.rows} == counts
    with pytest.raises(UsageError, match="half-links need the graph"):
        result.slice("half-links")
