"""Suites of graphs against brute force and scipy, and their command, page and figures."""

from __future__ import annotations

import csv
import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from compare_cases import graph as small_graph
from compare_cases import systems
from scipy import stats

import kgtrec
from kgtrec.cli import cli
from kgtrec.errors import UsageError
from kgtrec.measures import Measure
from kgtrec.results.result import Result
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


def test_values_that_differ_by_rounding_are_ties() -> None:
    """0.1 + 0.2 and 0.3 tie in wins, ranks and standings; a missing value stays missing."""
    exact = [[0.3, 0.3, 0.5, 0.7], [0.3, 0.3, 0.4, 0.7], [0.1, 0.6, np.nan, 0.6]]
    rounded = [[0.1 + 0.2, 0.3, 0.5, 0.7], [0.3, 0.1 + 0.2, 0.4, 0.1 + 0.6], exact[2]]
    assert rounded[0][0] != rounded[1][0]
    for key in ("mr", "adjusted_mrr"):
        due, suite = suite_of(exact, key), suite_of(rounded, key)
        assert suite.pairs["ties"].tolist() == due.pairs["ties"].tolist() == [3, 0, 0]
        assert suite.pairs["wins"].tolist() == due.pairs["wins"].tolist()
        assert suite.standing.borda.tolist() == due.standing.borda.tolist()
        assert suite.pairs["p"].tolist() == due.pairs["p"].tolist()
        assert np.array_equal(suite.ranks, due.ranks, equal_nan=True)
    endless = np.array([[1.0], [np.inf], [np.nan], [np.inf]])
    assert ranks_within(endless, 1.0)[[0, 1, 3], 0].tolist() == [3, 1.5, 1.5]


def values_with_ties(seed: int, models: int = 5, graphs: int = 7, missing: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 6, (models, graphs)) / 10
    values.flat[rng.choice(values.size, missing, replace=False)] = np.nan
    return values


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
            own = sum((sign * value > sign * v) + 0.5 * (value == v) for v in others)
            wins, pairs = wins + own, pairs + len(others)
            ranks.append(1 + (len(others) - own) * (len(values) - 1) / len(others))
        assert suite.standing.borda[m] == pytest.approx(wins)
        assert suite.standing.win_rate[m] == pytest.approx(wins / pairs)
        assert suite.standing.mean_rank[m] == pytest.approx(np.mean(ranks))
        assert suite.means()[m] == pytest.approx(np.nanmean(row))


def test_friedman_is_that_of_conover_and_demsar() -> None:
    """Practical Nonparametric Statistics (1999), equation 5.8.7; critical values of Table 5(a)."""
    for seed in range(4):
        ranks = ranks_within(values_with_ties(seed, 4, 9), 1.0)
        found: Any = friedman(ranks)
        spread = (ranks**2).sum() - 9 * 4 * 5**2 / 4
        statistic = 3 * ((ranks.sum(axis=1) - 9 * 5 / 2) ** 2).sum() / spread
        assert (found.statistic, found.p) == pytest.approx((statistic, stats.chi2.sf(statistic, 3)))
    tied: Any = friedman(np.full((3, 5), 2.0))
    assert (tied.statistic, tied.p) == (0.0, 1.0)
    for models, q in ((3, 2.343), (5, 2.728), (10, 3.164)):
        ranks = np.stack([np.roll(np.arange(1.0, models + 1), k) for k in range(7)], axis=1)
        due = q * (models * (models + 1) / 42) ** 0.5
        found = friedman(ranks)
        assert found.critical_difference == pytest.approx(due, 5e-4)


def test_the_test_compares_mean_ranks_of_the_graphs_that_all_have() -> None:
    values = np.repeat([[0.1], [0.5], [0.2]], 9, axis=1)
    values[2, 0], values[0, 0] = np.nan, 0.9  # a graph that the third lacks says nothing
    suite = suite_of(values)
    assert suite.friedman.graphs == 8
    assert suite.friedman.mean_ranks.tolist() == [3, 1, 2]
    assert np.argwhere(suite.better()).tolist() == [[1, 0]]
    assert suite.standing.mean_rank[0] < 3


def test_pairs_are_tested_on_shared_graphs() -> None:
    values = np.random.default_rng(1).normal(size=(3, 12))
    values[0, 3] = values[2, 5] = np.nan
    suite = suite_of(values, test="wilcoxon")
    for i, j, shared, wins, p in zip(
        *(suite.pairs[key] for key in ("first", "second", "graphs", "wins", "p")), strict=True
    ):
        gap = values[i] - values[j]
        gap = gap[~np.isnan(gap)]
        assert (shared, wins) == (len(gap), (gap > 0).sum())
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
    for draw, places in enumerate(chosen):
        own = suite.cells.values[:, places]
        assert suite.mean_draws()[draw] == pytest.approx(np.nanmean(own, axis=1), nan_ok=True)
        again = standing(suite.ranks[:, places], np.ones(7)).mean_rank
        expected = stats.rankdata(np.where(np.isnan(again), np.inf, again).round(9))
        known = ~np.isnan(again)
        assert suite.place_draws[draw][known] == pytest.approx(expected[known])


@pytest.fixture(scope="module")
def ranks() -> dict[str, dict[str, dict[str, kgtrec.Ranks]]]:
    """Three graphs, two models, two seeds; one cell is missing."""
    made = {}
    for number in range(3):
        one, two, *others = systems(4, seed=number).values()
        made[f"g{number}"] = {"a": {"0": one, "1": two}, "b": dict(zip("01", others, strict=True))}
    del made["g2"]["b"]
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


def ranks_of(questions: kgtrec.Questions, seed: int) -> kgtrec.Ranks:
    scores = np.random.default_rng(seed).random((len(questions), questions.n_columns))
    return kgtrec.evaluate(scores, questions).ranks


@pytest.mark.parametrize("sides", ["head", "tail", "both", "all", "tail and both"])
def test_default_measures_fit_the_ranks(sides: str, tmp_path: Path) -> None:
    answers = kgtrec.Questions.from_answers([[0], [1, 2], [3]], labels=5)
    made: dict[str, Any] = {}
    for number, graph in enumerate(("g0", "g1")):
        own = ("tail", "both")[number] if sides == "tail and both" else sides
        questions = answers if own == "all" else small_graph().questions(sides=own)
        made[graph] = {model: ranks_of(questions, seed) for seed, model in enumerate("ab")}
        for model, one in made[graph].items():
            (tmp_path / graph).mkdir(exist_ok=True)
            one.save(tmp_path / graph / f"{model}.parquet")
    side = "tail" if sides == "tail and both" else sides
    found = suite_of_ranks(made, resampling=Resampling(resamples=100))
    keys = [f"{side}.realistic.micro.adjusted_{name}" for name in ("mrr", "hits@10")]
    assert [one.cells.measure.key for one in found] == keys
    for one, key in zip(found, keys, strict=True):
        due = [[Result(made[g][m])[key] for g in made] for m in "ab"]
        assert one.cells.values == pytest.approx(np.array(due), rel=1e-12, nan_ok=True)
    printed = run(tmp_path, "--resamples", 100, "--format", "csv")
    assert printed.count("\n") == 5
    if sides == "all":  # the same measure by another name
        (again,) = suite_of_ranks(made, ["mrr"], resampling=Resampling(resamples=100))
        due = (1 / made["g0"]["a"].rank("realistic")).mean()
        assert again.cells.values[0, 0] == pytest.approx(due)


def test_graphs_without_a_common_side_are_refused() -> None:
    made = {
        side: {"a": ranks_of(small_graph().questions(sides=side), 0)} for side in ("head", "tail")
    }
    with pytest.raises(UsageError, match=r"no side in common \(head: head; tail: tail\)"):
        suite_of_ranks(made)


def test_models_whose_names_end_in_a_version_stay_apart(tmp_path: Path) -> None:
    one = ranks_of(small_graph().questions(), 0)
    (tmp_path / "g").mkdir()
    for name in ("GPT-3", "GPT-4", "transe-seed1", "transe-seed2"):
        one.save(tmp_path / "g" / f"{name}.parquet")
    printed = run(tmp_path, "-m", "mrr", "--show", "cells", "--format", "csv", "--resamples", 100)
    assert sorted(row.partition(",")[0] for row in printed.splitlines()[1:]) == [
        "GPT-3",
        "GPT-4",
        "transe",
    ]


def test_the_page_and_the_figures(tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("page.html", "p.svg", "c.svg", "h.svg")]
    options = zip(("--html", "--plot", "--plot-rankings", "--plot-cells"), files, strict=True)
    table = tmp_path / "t.csv"
    table.write_text(
        "graph,model,metric,value\n"
        + "".join(
            f"g{g},<b>m{m}</b>,adjusted_mrr,{0.1 * g + 0.01 * m}\n"
            for g, m in itertools.product(range(4), range(4))
            if (g, m) != (0, 0)
        )
    )
    run(table, *itertools.chain.from_iterable(options))
    page = files[0].read_text()
    run(table, "--html", tmp_path / "again.html")
    assert (tmp_path / "again.html").read_text() == page
    # Without data: browsers show none of its images.
    for text in ("&lt;b&gt;m1&lt;/b&gt;", "data:image/png", "img-src data:"):
        assert text in page
    assert (page.count("<svg"), page.count("<b>"), page.count("<script")) == (3, 0, 0)
    assert all(file.stat().st_size > 1000 for file in files)
    assert "m1" in suite_page([suite_of(values_with_ties(0, 2, 2))])  # no test of two


@pytest.mark.filterwarnings("error")
def test_parts_of_one_side_have_its_values_or_none(ranks: Any, tmp_path: Path) -> None:
    """A part with only tails: both sides mean tails there, and heads are missing."""
    few = Resampling(resamples=100)

    def tails(one: Any) -> Any:
        return (
            {name: tails(own) for name, own in one.items()}
            if isinstance(one, dict)
            else (one.subset(np.flatnonzero(one.side == 1)))
        )

    part = {**ranks, "g0": tails(ranks["g0"])}
    for key in ("mrr", "adjusted_mrr", "macro.mrr", "map"):
        both, tail, head = (
            one.cells
            for one in suite_of_ranks(
                part, [key, f"tail.{key}", f"head.{key}"], resampling=few, part="given only"
            )
        )
        assert np.array_equal(both.values[:, 0], tail.values[:, 0])
        assert np.isnan(head.values[:, 0]).all()
        assert ("a", "g0") in head.missing
        assert ("a", "g0") not in both.missing
        assert len({both.title, tail.title, head.title}) == 3


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_the_command_compares_parts_of_one_side(tmp_path: Path) -> None:
    for number in range(2):
        name, made = f"g{number}", small_graph(number)
        folder, ranks = tmp_path / "graphs" / name, tmp_path / "ranks" / "g" / name
        for path in (folder, ranks.parent / name):
            path.mkdir(parents=True)
        for split in ("train", "test"):
            (folder / f"{split}.txt").write_text(
                "".join(
                    "\t".join((made.entities[h], made.relations[r], made.entities[t])) + "\n"
                    for h, r, t in made.split(split).tolist()
                )
            )
        questions = kgtrec.read_graph(folder).questions("test")
        for model in "ab":
            rng = np.random.default_rng([number, ord(model)])
            scores = rng.random((len(questions), len(made.entities))).astype(np.float32)
            one = kgtrec.evaluate(scores, questions, progress=False).ranks
            one.save(ranks / f"{model}.parquet")
    some = (tmp_path / "ranks" / "g", "--graphs", tmp_path / "graphs", "--resamples", 100)
    options = ("--by", "half-links", "--format", "csv", "-m", "mrr,tail.mrr")
    rows = {
        (line[0].removeprefix("both.realistic.micro."), line[1]): line[2:]
        for line in csv.reader(run(*some, *options).splitlines())
    }
    assert all(
        rows["mrr, given only", m] == rows["tail.realistic.micro.mrr, given only", m] for m in "ab"
    )
    assert rows["mrr, asked only", "a"][0] == "2"
    assert rows["tail.realistic.micro.mrr, asked only", "a"][:2] == ["0", "nan"]
    assert "MRR, given only\nmodel" in run(*some, "--by", "half-links", "-m", "head.mrr")
    with pytest.raises(
        UsageError, match=r"macro\.mrr needs all answers of a question in one group"
    ):
        run(*some, "--by", "half-links", "-m", "macro.mrr")
