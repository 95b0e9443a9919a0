"""Parts of questions: subsets of triples, slices, ratios, pools without one of their systems."""

from __future__ import annotations

import numpy as np
import pytest
from compare_cases import systems
from scipy import stats

from kgtrec._internal.bootstrap import Resampling
from kgtrec._internal.table import Table
from kgtrec.measures import Measure
from kgtrec.ranking.ranks import Ranks
from kgtrec.results.result import Result
from kgtrec.study.comparison.parts import (
    SystemValues,
    read_value_table,
    values_by_part,
    values_by_ratios,
)
from kgtrec.study.comparison.rankings import (
    data_sensitivity,
    rankings_by_labels,
    rankings_by_part,
)
from kgtrec.study.comparison.samples import align_ranks, samples_of_ranks
from kgtrec.study.comparison.significance import discriminate
from kgtrec.study.comparison.subsets import subset_values
from kgtrec.study.stratified import reweight

KEYS = (
    *(f"both.{kind}.micro.mrr" for kind in ("optimistic", "pessimistic", "expected", "ordinal")),
    "both.realistic.micro.gmr",
    "head.realistic.micro.hits@3",
    "tail.realistic.micro.mr",
    "both.realistic.question.log_mrr",
    "tail.realistic.relation.mr",
    "both.realistic.relation.mrr",
    "both.realistic.macro_relation.hits@10",
    "both.realistic.triple.mrr",
    *(f"both.{kind}.macro.mrr" for kind in ("optimistic", "realistic", "pessimistic", "ordinal")),
    "both.expected.macro.hits@3",
    "tail.realistic.macro.mr",
    "head.realistic.macro.hits@3",
    "both.macro.map_cut_5",
    "tail.macro.map_cut_20",
    "both.macro.ndcg_cut_5",
    "head.macro.ndcg_cut_20",
    "both.macro.recall_10",
    "tail.macro.P_5",
    "both.macro.success_3",
    "both.macro.recip_rank",
    "both.macro.recip_rank_cut_3",
    "tail.macro.map",
    "both.realistic.stratified.mrr(0.5,0.5)",
    "tail.realistic.stratified.hits@3(-0.5,-1)",
    "both.realistic.micro.median_rank",
    "both.realistic.macro_relation.gmr",
)


def random_subsets(n_triples: int, n: int = 4) -> np.ndarray:
    rng = np.random.default_rng(1)
    return rng.random((n, n_triples)) < np.linspace(0.1, 0.95, n)[:, None]


def triple_of(aligned: dict[str, Ranks]) -> np.ndarray:
    return np.unique(aligned["s0"].triple, return_inverse=True)[1]


@pytest.mark.parametrize("unscored", [False, True])
def test_values_on_subsets_are_those_of_the_ranks_that_are_left(unscored: bool) -> None:
    aligned = align_ranks(systems(3, 1))
    for ranks in aligned.values() if unscored else ():
        ranks.macro_answer_nan = worst = np.arange(len(ranks)) % 5 == 0
        ranks.macro_greater = np.where(worst, ranks.macro_candidates - 1, ranks.macro_greater)
        ranks.macro_equal = np.where(worst, 0, ranks.macro_equal)
        ranks.macro_tied_ahead = np.where(worst, 0, ranks.macro_tied_ahead)
    of, triple = subset_values(aligned, [Measure.parse(key) for key in KEYS]), triple_of(aligned)
    assert len(np.unique(np.bincount(aligned["s0"].question))) > 2  # questions of several sizes
    everything = np.ones((1, triple.max() + 1), bool)
    subsets = np.concatenate([random_subsets(triple.max() + 1), everything])
    by_subset = of(subsets)
    for row, chosen in enumerate(subsets):
        left = [Result(ranks.subset(chosen[triple])) for ranks in aligned.values()]
        for key, values in zip(KEYS, by_subset[:, row], strict=True):
            assert values == pytest.approx([one[key] for one in left], abs=1e-10), key
    assert np.isnan(of(np.zeros((2, triple.max() + 1), bool))).all()  # nothing is left


ADJUSTED = [
    ("amri", "mr", -1),
    ("amr", "mr", 1),
    ("adjusted_hits@10", "hits@10", 1),
    ("z_mrr", "mrr", 1),
    ("agmri", "gmr", -1),
    ("adjusted_log_mrr", "log_mrr", 1),
    ("z_log_mrr", "log_mrr", 1),
    ("adjusted_p_mrr@0.5", "p_mrr@0.5", 1),
    ("p_mrr_ratio@0.5", "p_mrr@0.5", 1),
]


def test_adjusting_for_chance_keeps_the_order_of_systems() -> None:
    aligned = align_ranks(systems(4))
    triple = triple_of(aligned)
    subsets = random_subsets(triple.max() + 1)
    left = [
        [Result(ranks.subset(chosen[triple])) for ranks in aligned.values()] for chosen in subsets
    ]
    for adjusted, plain, sign in ADJUSTED:
        keys = [f"both.realistic.micro.{name}" for name in (adjusted, plain)]
        ours, base = subset_values(aligned, [Measure.parse(key) for key in keys])(subsets)
        assert np.array_equal(ours, base)
        for results, values in zip(left, ours, strict=True):
            true = [one[keys[0]] for one in results]
            assert np.array_equal(np.argsort(sign * values), np.argsort(true)), adjusted


def test_sensitivity_by_its_definition() -> None:
    by_system = systems(4)
    keys = ["both.realistic.micro.mrr", "both.macro.map_cut_20"]
    ours = data_sensitivity(by_system, keys, shares=(0.1, 0.6), repeats=3, seed=4)
    aligned = align_ranks(by_system)
    triple = triple_of(aligned)
    wholes = [Result(ranks) for ranks in aligned.values()]
    for number in range(6):
        size = round((0.1, 0.6)[number // 3] * 60)
        chosen = np.random.default_rng([4, number]).permutation(60)[:size]
        rows = np.isin(triple, chosen)
        some = [Result(ranks.subset(rows)) for ranks in aligned.values()]
        for k, key in enumerate(keys):
            due = stats.kendalltau([one[key] for one in some], [one[key] for one in wholes])
            assert ours.tau[k, number // 3, number % 3] == pytest.approx(due.statistic)
    assert ours.mean() == pytest.approx(ours.tau.mean(axis=2))
    assert ours.table().rows[1][:2] == ("60%", 36)


def test_sensitivity_has_the_same_bits_for_any_threads() -> None:
    by_system = systems(3, levels=30)
    one, two = (data_sensitivity(by_system, repeats=15, threads=t) for t in (1, 4))
    assert np.array_equal(one.tau, two.tau, equal_nan=True)
    assert not np.array_equal(one.tau, data_sensitivity(by_system, repeats=15, seed=1).tau)
    assert one.shares[[0, -1]].tolist() == [0.01, 0.95]
    low, high = one.spread()
    assert (low <= high).all()
    mean = one.mean()[0]  # more triples agree more
    assert mean[0] < mean[-1]
    assert mean[-1] > 0.75


def test_discrimination() -> None:
    by_system = systems(4, levels=30)
    one = discriminate(
        samples_of_ranks(by_system, ["both.realistic.micro.mrr", "both.realistic.macro.hits@3"])
    )
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


def reciprocal(ranks: Ranks, relation: object, side: object) -> np.ndarray:
    """Reciprocal ranks of a relation and a side."""
    of_side = {"head": ranks.side == 0, "tail": ranks.side == 1, "both": ranks.side < 2}[str(side)]
    return 1 / ranks.rank()[(ranks.relation == int(str(relation))) & of_side]


def test_parts_hold_what_their_instances_give() -> None:
    ranks = systems(4)
    (part,) = values_by_part(ranks, "relation,side", ["mrr"])
    whole = [Result(one)["mrr"] for one in ranks.values()]
    for relation, side, _, instances, *values, best, tau in part.table().rows:
        due = [reciprocal(one, relation, side).mean() for one in ranks.values()]
        assert instances == len(reciprocal(ranks["s0"], relation, side))
        assert values == pytest.approx(due)
        assert best == ", ".join(n for n, v in zip(ranks, values, strict=True) if v == max(values))
        assert tau == pytest.approx(stats.kendalltau(due, whole).statistic, nan_ok=True)


def test_the_lowest_is_best_of_ranks_and_nothing_of_deviations() -> None:
    ranks, deviations = values_by_part(systems(3), "side", ["mr", "std"])
    for row in ranks.table().rows:
        values = dict(zip(ranks.systems, row[3:6], strict=True))
        assert row[6] in [n for n, v in values.items() if v == min(values.values())]
    assert {row[6] for row in deviations.table().rows} == {""}


def test_the_best_value_of_a_part_is_bold_with_those_that_print_alike() -> None:
    parts = {
        ("1-1",): {"a": 0.70004, "b": 0.70001, "c": 0.6},  # a is best; a and b print alike
        ("1-N",): {"a": 0.2, "b": 0.1, "c": 0.3},
        ("N-1",): {"a": 0.2},
        ("N-N",): {},
    }
    assert SystemValues.from_values("mrr", parts, ("category",), True).table().bold == {
        *((0, 1), (0, 2)),
        (1, 3),
        (2, 1),
    }
    lowest = SystemValues.from_values("mr", parts, ("category",), False).table()
    assert lowest.bold == {(0, 3), (1, 2), (2, 1)}
    assert not SystemValues.from_values("std", parts, ("category",), None).table().bold
    assert (
        r"1-N & 0.2000 & 0.1000 & \textbf{0.3000} & c"
        in SystemValues.from_values("mrr", parts, ("category",), True).table().to_latex()
    )


def test_ratios_weigh_relations() -> None:
    ranks = systems(3)
    counts = {"0": 5.0, "1": 1.0, "3": 2.0, "unknown": 9.0}
    (part,) = values_by_ratios(ranks, counts, ["mrr"])
    key = "both.realistic.micro.mrr"
    due = [
        [of(Result(one)) for one in ranks.values()]
        for of in (lambda r: r[key], lambda r: reweight(r, key, counts))
    ]
    assert [row[1:4] for row in part.table().rows] == [pytest.approx(one) for one in due]


def test_parts_of_ranks_are_held_against_the_same_parts() -> None:
    both = systems(5), systems(5, seed=5)
    parts = (values_by_part(each, "relation,side", ["mrr"]) for each in both)
    rankings = rankings_by_part(*parts, resampling=Resampling(resamples=100))
    assert rankings.dimensions == ("relation", "side")
    assert len(rankings.parts) == 12
    for relation, side, tau in rankings.table().rows:
        due = [[reciprocal(one, relation, side).mean() for one in each.values()] for each in both]
        assert tau == pytest.approx(stats.kendalltau(*due).statistic), (relation, side)


def test_parts_by_several_labels_are_held_against_the_reference() -> None:
    """Only systems that all sets have are ranked; a part that one set lacks is left out there."""
    random = np.random.default_rng(2)
    systems, parts = "abcdef", ("head", "tail", "both")
    values = {
        name: {(part,): dict(zip(systems, random.random(6), strict=True)) for part in parts}
        for name in ("reference", "sparse", "complete")
    }
    del values["sparse"]["both",]
    for part in parts:
        del values["complete"][part,]["c"]
    ours, *others = (
        [SystemValues.from_values("mrr", of_set, ("side",), True)] for of_set in values.values()
    )
    rankings = rankings_by_labels(
        ours,
        dict(zip(("sparse", "complete"), others, strict=True)),
        resampling=Resampling(resamples=100),
    )
    assert rankings.systems == tuple("abdef")
    assert rankings.left_out == (("sparse", "both"),)
    due = [
        (name, part, stats.kendalltau(*([values[n][part,][s] for s in "abdef"] for n in pair))[0])
        for pair in (("reference", "sparse"), ("reference", "complete"))
        for name, part in ((pair[1], part) for part in parts)
        if (part,) in values[name]
    ]
    table = rankings.table()
    assert table.titles[:2] == ["labels", "side"]
    assert [row[:2] for row in table.rows] == [row[:2] for row in due]
    assert [row[2] for row in table.rows] == pytest.approx([row[2] for row in due])


@pytest.mark.parametrize("ending", ["csv", "tsv"])
def test_our_own_tables_are_read_back_as_they_were(tmp_path, ending: str) -> None:
    """Names that a spreadsheet program could read as formulas have an apostrophe in the file."""
    names = ["=SUM(A1)", "-model", "@home", "'quoted'", "+1b", "plain", 'a"b']
    table = Table.from_rows(
        "model=model, MRR=mrr:4", [(name, i / 7) for i, name in enumerate(names)]
    )
    path = tmp_path / f"t.{ending}"
    path.write_text(table.to_csv("," if ending == "csv" else "\t"))
    assert "'=SUM(A1)" in path.read_text()
    rows = read_value_table(path).rows
    assert [row["model"] for _, row in rows] == names
    assert [float(row["mrr"]) for _, row in rows] == [i / 7 for i in range(len(names))]
