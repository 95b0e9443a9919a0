"""Subsets of the test triples, discriminative power, and pools without one of their systems."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from compare_cases import systems
from refusals import assert_refused, refusals
from scipy import stats

import kgtrec
from kgtrec.cli import cli
from kgtrec.errors import InputError, UsageError
from kgtrec.measures import Measure
from kgtrec.results.result import Result
from kgtrec.study.comparison.samples import align_ranks, samples_of_ranks
from kgtrec.study.comparison.significance import discriminate, discrimination_of
from kgtrec.study.comparison.stability import Sensitivity, data_sensitivity
from kgtrec.study.comparison.subsets import subset_values
from kgtrec.study.pooling.depths import contributors_of, leave_one_out
from kgtrec.study.pooling.pool import Pool

KEYS = (
    *(f"both.{kind}.micro.mrr" for kind in ("optimistic", "pessimistic", "expected", "ordinal")),
    "both.realistic.micro.gmr", "head.realistic.micro.hits@3", "tail.realistic.micro.mr",
    "both.realistic.question.log_mrr", "tail.realistic.relation.mr", "both.realistic.relation.mrr",
    "both.realistic.macro_relation.hits@10", "both.realistic.triple.mrr",
    *(f"both.{kind}.macro.mrr" for kind in ("optimistic", "realistic", "pessimistic", "ordinal")),
    "both.expected.macro.hits@3", "tail.realistic.macro.mr", "head.realistic.macro.hits@3",
    "both.macro.map_cut_5", "tail.macro.map_cut_20", "both.macro.ndcg_cut_5",
    "head.macro.ndcg_cut_20", "both.macro.recall_10", "tail.macro.P_5", "both.macro.success_3",
    "both.macro.recip_rank", "both.realistic.stratified.mrr(0.5,0.5)",
    "tail.realistic.stratified.hits@3(-0.5,-1)", "both.realistic.micro.median_rank",
    "both.realistic.macro_relation.gmr",
)  # fmt: skip


def random_subsets(n_triples: int, n: int = 6) -> np.ndarray:
    rng = np.random.default_rng(1)
    return rng.random((n, n_triples)) < np.linspace(0.1, 0.95, n)[:, None]


@pytest.mark.parametrize("seed", [0, 1])
def test_values_on_subsets_are_those_of_the_ranks_that_are_left(seed: int) -> None:
    aligned = align_ranks(systems(3, seed))
    valued = subset_values(aligned, [Measure.parse(key) for key in KEYS])
    subsets = random_subsets(valued.n_triples)
    by_subset = valued.of(subsets)
    triple = np.unique(aligned["s0"].triple, return_inverse=True)[1]
    assert len(np.unique(np.bincount(aligned["s0"].question))) > 2  # questions of several sizes
    for row, chosen in enumerate(subsets):
        left = [Result(ranks.subset(chosen[triple])) for ranks in aligned.values()]
        for key, values in zip(KEYS, by_subset[:, row], strict=True):
            assert values == pytest.approx([one[key] for one in left], abs=1e-10), key
    everything = valued.of(np.ones((1, valued.n_triples), bool))[:, 0]
    for key, values in zip(KEYS, everything, strict=True):
        assert values == pytest.approx([Result(ranks)[key] for ranks in aligned.values()]), key


@pytest.mark.parametrize(
    ("adjusted", "plain", "sign"),
    [("amri", "mr", -1), ("amr", "mr", 1), ("adjusted_hits@10", "hits@10", 1), ("z_mrr", "mrr", 1),
     ("agmri", "gmr", -1), ("adjusted_log_mrr", "log_mrr", 1), ("z_log_mrr", "log_mrr", 1),
     ("adjusted_p_mrr@0.5", "p_mrr@0.5", 1), ("p_mrr_ratio@0.5", "p_mrr@0.5", 1)],
)  # fmt: skip
def test_adjusting_for_chance_keeps_the_order_of_systems(
    adjusted: str, plain: str, sign: int
) -> None:
    aligned = align_ranks(systems(4))
    keys = [f"both.realistic.micro.{adjusted}", f"both.realistic.micro.{plain}"]
    valued = subset_values(aligned, [Measure.parse(key) for key in keys])
    subsets = random_subsets(valued.n_triples)
    ours, base = valued.of(subsets)
    assert np.array_equal(ours, base)
    triple = np.unique(aligned["s0"].triple, return_inverse=True)[1]
    for chosen, values in zip(subsets, ours, strict=True):
        true = [Result(ranks.subset(chosen[triple]))[keys[0]] for ranks in aligned.values()]
        assert np.array_equal(np.argsort(sign * values), np.argsort(true))


def test_a_subset_that_leaves_nothing_is_no_number() -> None:
    aligned = align_ranks(systems(3))
    valued = subset_values(aligned, [Measure.parse(key) for key in KEYS])
    values = valued.of(np.zeros((2, valued.n_triples), bool))
    assert np.isnan(values).all()


def test_answers_without_a_score() -> None:
    aligned = align_ranks(systems(3))
    for ranks in aligned.values():
        worst = np.arange(len(ranks)) % 5 == 0
        ranks.macro_answer_nan = worst
        ranks.macro_greater = np.where(worst, ranks.macro_candidates - 1, ranks.macro_greater)
        ranks.macro_equal = np.where(worst, 0, ranks.macro_equal)
        ranks.macro_tied_ahead = np.where(worst, 0, ranks.macro_tied_ahead)
    keys = ["both.macro.map_cut_20", "both.realistic.macro.mr", "both.macro.ndcg_cut_20"]
    valued = subset_values(aligned, [Measure.parse(key) for key in keys])
    subsets = random_subsets(valued.n_triples)
    triple = np.unique(aligned["s0"].triple, return_inverse=True)[1]
    for row, chosen in enumerate(subsets):
        for key, values in zip(keys, valued.of(subsets)[:, row], strict=True):
            true = [Result(ranks.subset(chosen[triple]))[key] for ranks in aligned.values()]
            assert values == pytest.approx(true), key


# -- Data sensitivity --------------------------------------------------------------------------


def test_sensitivity_by_its_definition() -> None:
    by_system = systems(4)
    keys = ["both.realistic.micro.mrr", "both.macro.map_cut_20"]
    ours = data_sensitivity(by_system, keys, shares=(0.1, 0.6), repeats=5, seed=4)
    aligned = align_ranks(by_system)
    triple = np.unique(aligned["s0"].triple, return_inverse=True)[1]
    for number in range(10):
        size = round((0.1, 0.6)[number // 5] * 60)
        chosen = np.random.default_rng([4, number]).permutation(60)[:size]
        rows = np.isin(triple, chosen)
        for k, key in enumerate(keys):
            some = [Result(ranks.subset(rows))[key] for ranks in aligned.values()]
            whole = [Result(ranks)[key] for ranks in aligned.values()]
            due = stats.kendalltau(some, whole).statistic
            assert ours.tau[k, number // 5, number % 5] == pytest.approx(due)
    assert ours.mean() == pytest.approx(ours.tau.mean(axis=2))
    assert ours.table().rows[1][:2] == ("60%", 36)


def test_parts_that_tie_all_systems_are_neither_most_nor_least_stable() -> None:
    nan, keys = np.nan, ("head.realistic.micro.hits@1", "tail.realistic.micro.mrr")
    tau = np.array([[[nan, nan], [0.5, nan]], [[-1.0, 0.0], [1.0, 1.0]]])
    shares = np.array([0.01, 0.5])
    sensitivity = Sensitivity(keys, ("Hits", "MRR"), ("a", "b", "c"), shares, tau, 60, 0)
    said = sensitivity.sentence()
    assert "all sizes: Hits 0.5000, MRR 0.2500. Least of all: MRR on 1% of" in said
    assert "-0.5000. nan: all systems tie in all parts" in said
    tied = replace(sensitivity, tau=np.full((2, 2, 2), nan))
    assert tied.sentence() == "All systems tie in all parts, so there is no ranking."


def test_measures_of_one_title_are_told_apart() -> None:
    by_system = systems(3)
    sides = ["head.realistic.micro.mrr", "tail.realistic.micro.mrr"]
    named = ("head.micro.mrr", "tail.micro.mrr", "macro MRR")
    sensitivity = data_sensitivity(by_system, [*sides, "macro.mrr"], repeats=1)
    assert sensitivity.titles == named
    assert discriminate(samples_of_ranks(by_system, sides)).titles == named[:2]
    both = [one.by_cluster() for one in samples_of_ranks(by_system, ["mrr", "macro.mrr"])]
    assert discriminate(both).titles == ("micro.mrr", "macro.mrr")


def test_sensitivity_has_the_same_bits_for_any_threads() -> None:
    by_system = systems(3)
    one, two = (data_sensitivity(by_system, repeats=30, threads=t) for t in (1, 4))
    assert np.array_equal(one.tau, two.tau, equal_nan=True)
    assert not np.array_equal(one.tau, data_sensitivity(by_system, repeats=30, seed=1).tau)
    assert one.shares[[0, -1]].tolist() == [0.01, 0.95]
    low, high = one.spread()
    assert (low <= high).all()


def test_more_triples_agree_more() -> None:
    sensitivity = data_sensitivity(systems(5, levels=30), ["both.realistic.micro.mrr"], repeats=60)
    mean = sensitivity.mean()[0]
    assert mean[0] < mean[6] < mean[-1]
    assert mean[-1] > 0.75


@pytest.mark.parametrize("key", ["adjusted_log_mrr", "z_log_mrr", "p_mrr_ratio@0.5", "z_p_mrr@0.5"])
def test_the_command_takes_measures_that_are_adjusted(tmp_path: Path, key: str) -> None:
    by_system = systems(3)
    paths = [str(tmp_path / f"{name}.parquet") for name in by_system]
    for path, ranks in zip(paths, by_system.values(), strict=True):
        ranks.save(path)
    words = ["compare", "stability", *paths, "-m", key, "--repeats", "2", "--format", "csv"]
    done = CliRunner().invoke(cli, words, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    due = data_sensitivity(by_system, [key], repeats=2).spread_table()
    assert done.stdout == due.to_csv()


@refusals(
    ("shares", lambda: data_sensitivity(systems(3), shares=(0.5, 1.0)), UsageError,
     ("shares [0.5, 1.0] must be between 0 and 1",)),
    ("repeats", lambda: data_sensitivity(systems(3), repeats=0), UsageError, ("1 or more",)),
    ("measure", lambda: data_sensitivity(systems(3), ["both.macro.bpref"]), UsageError,
     ("does not follow from ranks",)),
    ("systems", lambda: data_sensitivity(systems(2)), UsageError, ("3 or more",)),
    ("p", lambda: discrimination_of({"a": [0.1, 1.2]}), InputError, ("between 0 and 1",)),
    ("pairs", lambda: discrimination_of({"a": [0.1], "b": [0.1, 0.2]}), InputError,
     ("different pairs",)),
    ("nothing", lambda: discriminate([]), InputError, ("no measure",)),
    ("unjudged", lambda: leave_one_out(*toy_pool(), "unj_10"), UsageError, ("are not better",)),
    ("judged", lambda: leave_one_out(*toy_pool(), "judged_10"), UsageError, ("are not better",)),
    ("residual", lambda: leave_one_out(*toy_pool(), "rbp_resid"), UsageError, ("are not better",)),
    ("count", lambda: leave_one_out(*toy_pool(), "num_ret"), UsageError, ("one measure",)),
)  # fmt: skip
def test_refusals(
    call: Callable[[], object], error: type[Exception], words: tuple[str, ...]
) -> None:
    assert_refused(call, error, words)


# -- Discriminative power ----------------------------------------------------------------------


def test_discrimination() -> None:
    by_system = systems(4, levels=30)
    one = discriminate(samples_of_ranks(by_system, ["both.realistic.micro.mrr",
                                                "both.realistic.macro.hits@3"]))  # fmt: skip
    aligned = align_ranks(by_system)
    values = [1 / ranks.rank() for ranks in aligned.values()]
    p = [stats.ttest_rel(values[i], values[j]).pvalue for i in range(4) for j in range(i)]
    assert one.p[0].tolist() == pytest.approx(sorted(p, reverse=True))
    assert one.area[0] == pytest.approx(np.mean(p))
    table = one.table(0.1)
    assert [row[1] for row in table.rows] == sorted(one.area.tolist())
    row = next(row for row in table.rows if row[0] == "MRR (instances)")
    assert row[2] == sum(each < 0.1 for each in p)
    assert [row[1] for row in one.curves().rows] == one.p[0].tolist()


@pytest.mark.data
def test_published_p_values_figure_8(shared_data: Path) -> None:
    names = ("micro_mrr", "micro_hits@10", "macro_mrr", "map_cut_20", "ndcg_cut_20")
    areas = {}
    for folder in ("FB-Test-O", "FB-Test-S-C", "WN18RR"):
        path = shared_data / "kgc-sparsity" / "result" / folder / "discriminative_power.csv"
        with path.open(newline="") as lines:
            rows = list(csv.DictReader(lines))
        # The file has both orders of every pair, with the same p-value.
        pairs = {tuple(sorted((r["SystemA"], r["SystemB"]))): r for r in rows}
        assert (len(rows), len(pairs)) == (156, 78)
        p = {name: [float(row[name]) for row in pairs.values()] for name in names}
        areas[folder] = dict(zip(names, discrimination_of(p).area.tolist(), strict=True))
    # Macro metrics are more discriminative on incomplete test sets, but not on the complete one.
    for name in ("macro_mrr", "map_cut_20", "ndcg_cut_20"):
        for folder in ("FB-Test-O", "WN18RR"):
            assert areas[folder][name] < areas[folder]["micro_mrr"]
        assert areas["FB-Test-S-C"][name] > areas["FB-Test-S-C"]["micro_mrr"]


# -- A pool without one of its systems -----------------------------------------------------------


def toy_pool() -> tuple[dict, dict, dict]:
    """Each of two newcomers finds an answer that nobody else has."""
    documents = {"a": ["x", "y", "z"], "b": ["y", "z", "x"], "c": ["w", "y", "x"]}
    runs = {
        name: {f"q{i}": {d: 9.0 - k for k, d in enumerate(order)} for i in range(4)}
        for name, order in documents.items()
    }
    qrels = {f"q{i}": {"w": 1, "x": 1, "y": 0, "z": 1} for i in range(4)}
    brought = {
        f"q{i}": {"w": frozenset("c"), "x": frozenset("ab"), "y": frozenset("abc"),
                  "z": frozenset("b")}
        for i in range(4)
    }  # fmt: skip
    return qrels, runs, brought


def test_leaving_one_out() -> None:
    qrels, runs, brought = toy_pool()
    result = leave_one_out(qrels, runs, brought, "recip_rank")
    assert result.full.tolist() == [1.0, 0.5, 1.0]
    # Without w, c finds its first answer at the third place; without z, b loses as much.
    assert result.left_out.tolist() == pytest.approx([1.0, 1 / 3, 1 / 3])
    assert result.judged.tolist() == result.relevant.tolist() == [0, 4, 4]
    assert result.place.tolist() == [1, 3, 1]
    assert result.place_left_out.tolist() == [1, 3, 3]
    for k, dropped in enumerate((set(), {"z"}, {"w"})):
        left = {q: {d: r for d, r in row.items() if d not in dropped} for q, row in qrels.items()}
        values = [
            np.mean([row["recip_rank"] for row in kgtrec.trec.evaluate(left, run,
                                                                       ["recip_rank"]).values()])
            for run in runs.values()
        ]  # fmt: skip
        due = stats.kendalltau(values, result.full).statistic
        assert result.tau[k] == pytest.approx(due)
    assert "they were left out of the pool (by up to 2 places)" in result.sentence()
    assert [row[0] for row in result.table().rows] == ["a", "c", "b"]


def test_a_question_that_loses_all_its_answers_counts_as_nothing_found() -> None:
    qrels = {"q": {"w": 1}, "r": {"x": 1}}
    runs = {"a": {"q": {"w": 1.0}, "r": {"x": 1.0}}, "b": {"q": {"v": 1.0}, "r": {"x": 1.0}}}
    result = leave_one_out(qrels, runs, {"q": {"w": frozenset("a")}}, "map")
    assert result.full.tolist() == [1.0, 0.5]
    assert result.left_out.tolist() == [0.5, 0.5]
    assert result.contributors == ("a",)


def test_geometric_means_without_ones_own_judgements() -> None:
    qrels = {"q": {"w": 1, "x": 1}, "r": {"x": 1}, "s": {"y": 1}}
    runs = {
        "a": {"q": {"w": 3.0, "v": 2.0, "x": 1.0}, "r": {"v": 2.0, "x": 1.0}, "s": {"y": 1.0}},
        "b": {"q": {"v": 1.0}, "r": {"x": 1.0}},
    }
    result = leave_one_out(qrels, runs, {"s": {"y": frozenset("a")}}, "gm_map")
    # AP of a: 5/6, 1/2, 1; and 0 if it loses its only answer. trec_eval's floor: 1e-5.
    assert result.full == pytest.approx([(5 / 12) ** (1 / 3), 1e-10 ** (1 / 3)])
    assert result.left_out == pytest.approx([(5e-5 / 12) ** (1 / 3), 1e-10 ** (1 / 3)])


def test_pools_of_strangers_are_refused() -> None:
    qrels, runs, brought = toy_pool()
    with pytest.raises(InputError, match="none of the runs p, q is in the pool"):
        leave_one_out(qrels, {"p": runs["a"], "q": runs["b"]}, brought, "map")


def test_contributors_of_a_pool() -> None:
    graph = kgtrec.Graph.from_arrays(
        test=np.array([[0, 0, 1]]), n_entities=4, entities=["A", "B", "C", "D"], relations=["r"]
    )
    pool = Pool(
        graph=graph, systems=("one", "two"), depth=5,
        triples=np.array([[0, 0, 2], [3, 0, 1], [0, 0, 3]]),
        places=np.array([[1, 0], [2, 5], [0, 1]]),
        asked=np.array([[False, True], [True, False], [True, True]]),
        questions=["tail0", "head0", "head7,tail0"],
    )  # fmt: skip
    assert contributors_of(pool) == {
        "tail0": {"C": frozenset({"one"}), "D": frozenset({"two"})},
        "head0": {"D": frozenset({"one", "two"})},
        "head7": {"A": frozenset({"two"})},
    }
