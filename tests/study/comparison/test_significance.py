"""Paired tests, corrections, effects and intervals; systems of several runs; simulated truth."""

from __future__ import annotations

import math
import random
import warnings
from collections.abc import Sequence
from itertools import combinations, product
from itertools import pairwise as pairwise_of
from statistics import NormalDist, mean, stdev
from typing import Any

import numpy as np
import pytest
from compare_cases import N_ENTITIES, graph, samples, systems
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import kgtrec
from kgtrec import _core
from kgtrec._internal.bootstrap import Resampling
from kgtrec.cli.compare.inputs import OF_RANKS
from kgtrec.errors import InputError, UsageError
from kgtrec.measures import Measure
from kgtrec.ranking.ranks import Ranks
from kgtrec.results.result import Result
from kgtrec.study.comparison.report import compare, compare_replicates, multiplicity
from kgtrec.study.comparison.samples import resample, samples_of_ranks, samples_of_runs
from kgtrec.study.comparison.significance import correct_p_values, pairs_of, pairwise
from kgtrec.trec.files.columns import RunColumns


def sums_of(values: np.ndarray, first: int, n: int, seed: int = 3) -> np.ndarray:
    out = np.empty((n, values.shape[1]))
    _core.sign_sums(np.ascontiguousarray(values), seed, first, out)
    return out


def test_signs_of_distant_rows_and_of_neighbouring_permutations_are_unrelated() -> None:
    values = np.zeros((200, 4))
    values[[0, 3, 64, 199], [0, 1, 2, 3]] = 1
    signs = sums_of(values, 0, 20_000)
    pairs = np.corrcoef(signs.T) - np.eye(4)
    after = [np.corrcoef(signs[1:, k], signs[:-1, k])[0, 1] for k in range(4)]
    assert np.abs(pairs).max() < 5 / np.sqrt(20_000)
    assert np.abs(after).max() < 5 / np.sqrt(20_000)


def test_sums_have_the_same_bits_for_every_split_and_strip() -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(size=(131, 37))
    whole = sums_of(values, 0, 2_500)
    for cuts in ([1], [1_024], [1_023, 1_025, 2_499], [7, 8, 9, 2_000]):
        edges = [0, *cuts, 2_500]
        parts = [sums_of(values, a, b - a) for a, b in pairwise_of(edges)]
        assert np.array_equal(np.concatenate(parts), whole)
    for column in (0, 15, 16, 31, 32, 36):
        alone = sums_of(values[:, column : column + 1], 0, 2_500)
        assert np.array_equal(alone[:, 0], whole[:, column])
    assert not np.array_equal(sums_of(values, 0, 10, seed=4), whole[:10])


@pytest.mark.parametrize("n", [1, 63, 64, 65, 70, 129])
def test_a_sum_is_a_sum_of_signed_rows(n: int) -> None:
    values = np.random.default_rng(1).normal(size=(n, 3))
    signs = sums_of(np.eye(n), 5, 20)  # a column for each row shows its sign
    assert set(np.unique(signs).tolist()) == {-1.0, 1.0}
    assert sums_of(values, 5, 20) == pytest.approx(signs @ values, abs=1e-12)


@pytest.mark.parametrize("n", [1, 7, 1023, 1024, 1025, 2048])
@pytest.mark.parametrize("n_columns", [1, 15, 16, 17])
def test_nothing_is_written_beyond_the_sums_that_are_asked(n: int, n_columns: int) -> None:
    values = np.random.default_rng(n).integers(-9, 9, (5, n_columns)).astype(np.float64)
    room = np.full((n + 3, n_columns), np.nan)
    _core.sign_sums(values, 3, 0, room[:n])
    assert np.isnan(room[n:]).all()
    assert not np.isnan(room[:n]).any()


def exact_randomisation(gap: list[float]) -> float:
    observed = abs(sum(gap))
    sums = [
        abs(sum(s * d for s, d in zip(signs, gap, strict=True)))
        for signs in product((-1, 1), repeat=len(gap))
    ]
    return sum(one >= observed - 1e-9 for one in sums) / len(sums)


@pytest.mark.parametrize(
    "gap",
    [
        [0.1] * 6,
        [0.5, -0.5, 0.25, 0.25, 1 / 3, -1 / 3, 1 / 7],
        [1.0, 1.0, -1.0, 0.0, 0.0, 1.0, 1.0, 1.0],
        [0.3, 0.1, 0.2, 0.7, -0.1, 0.4, 0.9, 0.05, 0.6, 0.2],
        [3.0, -3.0],
    ],
)
def test_randomisation_by_enumeration(gap: list[float]) -> None:
    # The second system is not 0: rounding changes differences, which must still tie.
    base = np.linspace(0.1, 0.9, len(gap))
    tests = pairwise(samples(np.column_stack([base + gap, base])), permutations=40_000)
    exact = exact_randomisation(gap)
    error = 4.5 * np.sqrt(exact * (1 - exact) / 40_000) + 1 / 40_000
    assert tests.p[0] == pytest.approx(exact, abs=error)
    beyond = tests.p[0] * 40_001 - 1
    assert beyond == pytest.approx(round(beyond))


@pytest.mark.parametrize("test", ["randomisation", "t", "wilcoxon", "bootstrap"])
def test_systems_that_are_the_same_do_not_differ(test: str) -> None:
    rng = np.random.default_rng(2)
    one = rng.random(50)
    tests = pairwise(
        samples(np.column_stack([one, one, one + 0.3])), test, "none", permutations=999
    )
    assert tests.p[0] == 1.0
    assert max(tests.p[1:]) < 0.01
    assert tests.better().tolist() == [[False] * 3, [False] * 3, [True, True, False]]
    lower = samples(np.column_stack([one, one + 0.3]), higher_is_better=False)
    assert pairwise(lower, test, permutations=999).better().tolist() == [[False, True], [False] * 2]


def test_threads_and_order_of_systems_change_nothing() -> None:
    rng = np.random.default_rng(5)
    values = rng.random((300, 12))
    one, two = (pairwise(samples(values), permutations=5_000, threads=t) for t in (1, 3))
    assert np.array_equal(one.p, two.p)
    turned = pairwise(samples(values[:, ::-1]), permutations=5_000)
    pairs = {
        tuple(sorted((11 - i, 11 - j))): p
        for (i, j), p in zip(turned.pairs.tolist(), turned.p, strict=True)
    }
    assert [pairs[i, j] for i, j in one.pairs.tolist()] == pytest.approx(one.p.tolist(), abs=1e-12)


def test_t_and_wilcoxon_are_scipys() -> None:
    rng = np.random.default_rng(6)
    values = rng.normal(size=(400, 4)) + np.array([0, 0.05, 0.1, 0.3])
    values[:, 3] = np.round(values[:, 3])
    t, w = (pairwise(samples(values), test) for test in ("t", "wilcoxon"))
    assert np.array_equal(t.corrected, correct_p_values(t.p, "holm"))
    for k, (i, j) in enumerate(pairs_of(4).tolist()):
        theirs = stats.ttest_rel(values[:, i], values[:, j])
        assert (t.statistic[k], t.p[k]) == pytest.approx((theirs.statistic, theirs.pvalue))
        gap = values[:, i] - values[:, j]
        signed = stats.wilcoxon(gap, correction=False, method="approx")
        assert w.p[k] == pytest.approx(signed.pvalue)
    few = rng.normal(size=(23, 2))
    exact = stats.wilcoxon(few[:, 0] - few[:, 1], method="exact")
    assert pairwise(samples(few), "wilcoxon").p[0] == pytest.approx(exact.pvalue)


@given(st.lists(st.integers(-3, 3), min_size=2, max_size=7))
def test_wilcoxon_by_enumeration(gap: list[int]) -> None:
    tests = pairwise(
        samples(np.column_stack([np.array(gap) / 3 + 0.1, np.full(len(gap), 0.1)])), "wilcoxon"
    )
    sizes = [abs(d) for d in gap if d]
    ranks = [sum(o < s for o in sizes) + (sum(o == s for o in sizes) + 1) / 2 for s in sizes]
    signs = [1 if d > 0 else -1 for d in gap if d]
    signed = [s * r for s, r in zip(signs, ranks, strict=True)]
    assert tests.p[0] == pytest.approx(exact_randomisation(signed))


def test_instances_of_a_question_are_not_independent() -> None:
    rng = np.random.default_rng(10)
    cluster = np.repeat(np.arange(40), 6)
    false = {True: 0, False: 0}
    for _ in range(200):
        values = rng.normal(size=(40, 2))[cluster] + rng.normal(0, 0.3, (240, 2))
        one = samples(values, cluster)
        for grouped in false:
            tested = pairwise(one.by_cluster() if grouped else one, permutations=199)
            false[grouped] += int(tested.p[0] <= 0.05)
    assert false[False] / 200 > 0.2
    assert false[True] / 200 < 0.1
    assert one.by_cluster().means() == pytest.approx(one.means())


def test_the_bootstrap_test_counts_draws() -> None:
    one = samples(np.random.default_rng(8).normal(size=(40, 2)))
    drawn = resample(one, Resampling(resamples=200))
    observed = float(one.means() @ [1, -1])
    beyond = sum(abs(gap - observed) >= abs(observed) for gap in (drawn.draws @ [1, -1]).tolist())
    tests = pairwise(one, "bootstrap", resampled=drawn)
    assert (tests.p[0], tests.statistic[0]) == pytest.approx(((beyond + 1) / 201, observed))


@pytest.mark.parametrize("n", [2, 3, 5, 6])
def test_the_bootstrap_test_warns_of_few_questions(n: int) -> None:
    """p of 3 equal signs is 0.25 by randomisation, and as small as draws allow by the bootstrap."""
    one = samples(np.column_stack([np.ones(n), np.arange(n) / 10]))
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        tests = pairwise(one, "bootstrap")
    assert tests.p[0] < 0.001
    text = f"a bootstrap test of {n} questions"
    assert [text in str(each.message) for each in seen] == [True] * (n < 6)
    if seen:
        least = pairwise(one, permutations=20_000).p[0]
        assert least == pytest.approx(2 ** (1 - n), abs=0.02)
        assert f"at least {2 ** (1 - n):.4g} here" in str(seen[0].message)


def plain_bca(values: list[float], draws: list[float], tail: float) -> float:
    """An end of Efron's BCa interval of a mean, by its formula; draws that tie count half."""
    normal, n = NormalDist(), len(values)
    total = math.fsum(values)
    estimate, without = total / n, [(total - value) / (n - 1) for value in values]
    tied = [math.isclose(draw, estimate, rel_tol=1e-11) for draw in draws]
    below = sum(0.5 if tie else draw < estimate for draw, tie in zip(draws, tied, strict=True))
    share = min(max(below, 0.5), len(draws) - 0.5) / len(draws)
    bias, centre = normal.inv_cdf(share), math.fsum(without) / n
    cubes = math.fsum((centre - each) ** 3 for each in without)
    squares = math.fsum((centre - each) ** 2 for each in without)
    pull = cubes / (6 * squares**1.5) if squares else 0.0
    z = bias + normal.inv_cdf(tail)
    at = normal.cdf(bias + z / (1 - pull * z)) * (len(draws) - 1)
    ordered, left = sorted(draws), math.floor(at)
    right = min(left + 1, len(draws) - 1)
    return ordered[left] + (at - left) * (ordered[right] - ordered[left])


@pytest.mark.parametrize("seed", range(20))
def test_bca_intervals_of_reciprocal_ranks_follow_the_formula(seed: int) -> None:
    ranks = np.random.default_rng(seed).integers(1, 6, (12, 2))
    drawn = resample(samples(1 / ranks), Resampling(95, 1000, seed))
    for k in range(2):
        values, draws = (1 / ranks[:, k]).tolist(), drawn.draws[:, k].tolist()
        due = [plain_bca(values, draws, tail) for tail in (0.025, 0.975)]
        assert drawn.interval()[:, k] == pytest.approx(due, rel=1e-9)


def test_intervals_are_scipys_over_clusters() -> None:
    values = np.random.default_rng(12).exponential(size=(180, 2)) ** 2
    drawn = resample(samples(values, np.repeat(np.arange(60), 3)), Resampling(95, 20_000, 1))
    ours = np.hstack([drawn.interval(), drawn.difference_interval(pairs_of(2))])
    means = values.reshape(60, 3, 2).mean(axis=1)
    columns = (*means.T, means[:, 0] - means[:, 1])
    for ends, own, how in zip(ours.T, columns, ("BCa", "BCa", "percentile"), strict=True):
        low, high = stats.bootstrap(
            (own,), np.mean, n_resamples=20_000, method=how, rng=np.random.default_rng(3)
        ).confidence_interval
        assert ends == pytest.approx([low, high], abs=0.04 * (high - low))


def test_draws_do_not_depend_on_threads_or_on_one_another(monkeypatch: pytest.MonkeyPatch) -> None:
    one = samples(np.random.default_rng(0).random((90, 3)), np.repeat(np.arange(30), 3))
    few = resample(one, Resampling(resamples=120, seed=5))
    monkeypatch.setattr("kgtrec._internal.bootstrap.available_cores", lambda: 5)
    many = resample(one, Resampling(resamples=500, seed=5))
    assert np.array_equal(few.draws[:100], many.draws[:100])
    flat = resample(samples(np.full((20, 2), 0.5)), Resampling(95, 200))
    assert np.array_equal(flat.interval(), np.full((2, 2), 0.5))


def slow_correction(p: list[float], method: str) -> list[float]:
    m, ordered = len(p), sorted(p)
    if method == "bonferroni":
        return [min(1.0, m * one) for one in p]
    if method == "holm":
        return [min(1.0, max((m - k) * q for k, q in enumerate(ordered) if q <= one)) for one in p]
    return [min([1.0] + [m / (k + 1) * q for k, q in enumerate(ordered) if q >= one]) for one in p]


@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=12),
    st.sampled_from(["holm", "bh", "bonferroni"]),
)
def test_corrections(p: list[float], method: str) -> None:
    assert correct_p_values(np.array(p), method).tolist() == pytest.approx(
        slow_correction(p, method)
    )
    assert correct_p_values(np.array(p), "none").tolist() == p


KEYS = (
    "both.realistic.micro.mrr",
    "tail.expected.micro.hits@3",
    "both.realistic.micro.gmr",
    "both.realistic.micro.hmr",
    "both.ordinal.macro.mrr",
    "head.realistic.macro.hits@3",
    "both.expected.macro.mrr",
    "both.macro.map_cut_20",
    "tail.macro.ndcg_cut_20",
    "both.realistic.question.log_mrr",
    "both.realistic.triple.mr",
    "both.realistic.macro_relation.mrr",
    "tail.realistic.relation.hits@10",
)


def test_values_are_those_of_results() -> None:
    by_system = systems(3)
    # One of them has its rows in another order.
    by_system["s1"] = by_system["s1"].subset(
        np.random.default_rng(0).permutation(len(by_system["s1"]))
    )
    for one in samples_of_ranks(by_system, KEYS):
        expected = [Result(ranks)[one.name] for ranks in by_system.values()]
        assert one.means() == pytest.approx(expected, abs=1e-12), one.name
        assert np.bincount(one.cluster).min() > 0
    micro, *_, macro = samples_of_ranks(by_system, [KEYS[0], KEYS[4]])
    assert micro.n_clusters == len(macro) == macro.n_clusters
    assert (micro.unit, macro.unit) == ("instances", "questions")


def test_direction_follows_the_transformation() -> None:
    by_system = systems(2)
    for key in ("mr", "gmr", "hmr", "imr", "igmr", "mrr"):
        (one,) = samples_of_ranks(by_system, [f"both.realistic.micro.{key}"])
        assert one.higher_is_better == (key in ("mrr", "imr", "igmr"))
        best = one.means().argmax() if one.higher_is_better else one.means().argmin()
        assert compare(one, test="t", resampling=Resampling(resamples=100)).order[0] == best
        gap = one.sign * (one.values[:, 0] - one.values[:, 1]).mean()
        assert (gap > 0) == (best == 0)


def test_runs(tmp_path) -> None:
    qrels = tmp_path / "q"
    qrels.write_text("".join(f"q{i} 0 d1 1\nq{i} 0 d2 0\n" for i in range(9)))
    for name, missing in (("a", 0), ("b", 2)):
        lines = []
        for i in range(9 - missing):
            order = ("d1", "d2") if (i + missing) % 3 else ("d2", "d1")
            lines += [f"q{i} Q0 {d} 1 {5 - k} t\n" for k, d in enumerate(order)]
        (tmp_path / name).write_text("".join(lines))
    runs = {name: tmp_path / name for name in "ab"}
    (column,) = samples_of_runs(qrels, runs, ["recip_rank"])
    assert column.unanswered == {"a": 0, "b": 2}
    assert column.means() == pytest.approx([(6 + 3 * 0.5) / 9, (5 + 2 * 0.5) / 9])
    assert column.values[-2:, 1].tolist() == [0.0, 0.0]
    with pytest.raises(UsageError, match="num_ret"):
        samples_of_runs(qrels, runs, ["num_ret", "map"])


def test_a_list_of_samples_gives_a_comparison_per_measure() -> None:
    several = samples_of_ranks(systems(2), ["mrr", "hits@10", "hits@1"])
    compared = kgtrec.compare(several, test="t", resampling=Resampling(resamples=100))
    for each, of_measure in zip(compared, several, strict=True):
        alone = compare(of_measure, test="t", resampling=Resampling(resamples=100))
        assert each.samples is of_measure
        assert str(each.pair_table()) == str(alone.pair_table())
    assert str(compared).count("SystemComparison by") == 3
    assert compared._repr_html_().count("<table") == 6  # values and pairs by each measure


def test_ranks_and_results_are_compared_like_their_samples() -> None:
    ranks = systems(2)
    names = list(ranks)
    few = Resampling(resamples=100)
    (expected,) = compare(samples_of_ranks(ranks, ["mrr"]), resampling=few)
    results = {name: kgtrec.evaluate(each) for name, each in ranks.items()}
    for keys in ("mrr", ["mrr"], ("mrr",), Measure.parse("mrr")):
        for several in (ranks, results, {names[0]: ranks[names[0]], names[1]: results[names[1]]}):
            (found,) = kgtrec.compare(several, keys, resampling=few)
            assert found.to_dict() == expected.to_dict()
    for numbered in ([*ranks.values()], (*results.values(),)):
        (found,) = kgtrec.compare(numbered, "mrr", resampling=few)
        assert found.samples.systems == ("system 1", "system 2")
        assert found.tests.p.tolist() == expected.tests.p.tolist()
    usual = kgtrec.compare(ranks, resampling=few)
    assert tuple(each.samples.name for each in usual) == OF_RANKS  # as `kgtrec compare`


def test_what_cannot_be_compared_is_refused_in_a_sentence() -> None:
    ranks = systems(2)
    first, second = ranks.values()
    (samples_of_mrr,) = samples_of_ranks(ranks, ["mrr"])
    wrong: list[tuple[tuple[Any, ...], str]] = [
        ((first, second), r"'Ranks' is a single system; pass several in a dict"),
        ((kgtrec.evaluate(first),), "'Result' is a single system"),
        (("mrr",), "'str' is not several systems; pass a dict by their names"),
        (({"a": first, "b": 1},), r"'int' is not ranks by the names of systems; pass a dict"),
        (([first, 1],), r"'int' is not ranks"),
        (([samples_of_mrr, 1],), r"'int' is among samples; pass samples only"),
        ((samples_of_mrr, ["mrr"]), r"samples contain their measures already; leave out measures"),
        ((ranks, second), r"measures='Ranks' names no measure; pass keys"),
        ((ranks, 1), r"measures='int' names no measure"),
        ((ranks, []), r"measures='list' names no measure"),
        ((ranks, ["nonsense"]), "nonsense"),
        (({"a": first},), "1 system cannot be compared"),
        (([],), "0 systems cannot be compared"),
    ]
    for arguments, sentence in wrong:
        with pytest.raises(UsageError, match=sentence):
            compare(*arguments)


def test_tables_turn_pairs_to_the_better_system() -> None:
    rng = np.random.default_rng(3)
    rank = rng.integers(1, 50, (200, 1)) + np.array([9.0, 0.0, 4.0]) + rng.random((200, 3))
    one = compare(
        samples(rank, higher_is_better=False),
        permutations=2_000,
        resampling=Resampling(resamples=300),
    )
    assert [row[1] for row in one.value_table().rows] == ["s1", "s2", "s0"]
    assert [row[-1] for row in one.value_table().rows] == ["bc", "c", ""]
    pairs = one.pair_table().rows
    assert [row[:2] for row in pairs] == [("s1", "s2"), ("s1", "s0"), ("s2", "s0")]
    for _, _, gap, low, high, p, holm, d_z, wins in pairs:
        assert low < gap < high < 0 < d_z
        assert p <= holm < 0.01
        assert wins == 1.0
    assert "s1 is better than every other system; 3 of 3 pairs" in one.sentence()


def test_the_sentence_on_a_pair_has_the_difference_of_the_better_and_its_interval() -> None:
    rng = np.random.default_rng(3)
    rank = rng.integers(1, 50, (200, 1)) + np.array([9.0, 0.0]) + rng.random((200, 2))
    for values, higher in ((rank, False), (-rank, True)):
        resampling = Resampling(resamples=300, percent=90.0)
        compared = compare(
            samples(values, higher_is_better=higher), test="t", resampling=resampling
        )
        gap = float(np.mean(values[:, 1] - values[:, 0]))
        _, _, _, low, high, *_ = compared.pair_table().rows[0]
        assert low < gap < high
        words = f"difference {gap:,.4f}, 90% interval {low:,.4f} to {high:,.4f}; paired t-test"
        assert f": s1 is better than s0 ({words}" in compared.sentence()


def runs(name: int, n: int, noise: float, level: float = 1.0, seed: int = 0) -> list[Ranks]:
    """Runs of one system: scores have a common part and one per run."""
    questions = graph(seed).questions("test")
    common = np.random.default_rng([name, seed]).random((len(questions), N_ENTITIES))
    ranks = []
    for run in range(n):
        own = np.random.default_rng([name, seed, run]).random(common.shape)
        scores = (common + noise * own).astype(np.float32)
        for row, answers in enumerate(
            np.split(questions.answers.ids, questions.answers.offsets[1:-1])
        ):
            scores[row, answers] += level
        ranks.append(kgtrec.evaluate(scores, questions, progress=False).ranks)
    return ranks


@pytest.fixture(scope="module", name="systems")
def systems_of_runs() -> dict[str, list[Ranks]]:
    return {"a": runs(1, 4, 0.5, 0.6), "b": runs(2, 3, 2.0, 0.5), "c": runs(3, 1, 0.5, 0.1)}


def slow_values(ranks: Ranks) -> dict[int, list[float]]:
    """Reciprocal ranks by question."""
    values: dict[int, list[float]] = {}
    for question, rank in zip(ranks.question.tolist(), ranks.rank().tolist(), strict=True):
        values.setdefault(question, []).append(1 / rank)
    return values


def slow_draws(folds: Sequence[Sequence[Sequence[Ranks]]], n: int) -> np.ndarray:
    """Means of each system on draws of folds and questions, common to all, and of its runs."""
    rng = random.Random(4)
    tables = [[[slow_values(run) for run in own] for own in fold] for fold in folds]
    lines = []
    for _ in range(n):
        parts = []
        for fold in rng.choices(tables, k=len(tables)):
            drawn = rng.choices(list(fold[0][0]), k=len(fold[0][0]))
            runs = [rng.choices(own, k=len(own)) for own in fold]
            parts.append(
                [mean(mean(v for q in drawn for v in run[q]) for run in own) for own in runs]
            )
        lines.append([mean(line) for line in zip(*parts, strict=True)])
    return np.array(lines)


def check_draws(fast: np.ndarray, slow: np.ndarray) -> None:
    """Of systems, and of their differences: a deviation has an error of about 1 / sqrt(2 n)."""
    n, pairs = len(slow), list(combinations(range(slow.shape[1]), 2))
    for of, due in [
        *zip(fast.T, slow.T, strict=True),
        *((fast[:, i] - fast[:, j], slow[:, i] - slow[:, j]) for i, j in pairs),
    ]:
        assert of.mean() == pytest.approx(due.mean(), abs=5 * due.std() / n**0.5)
        assert of.std() == pytest.approx(due.std(), rel=5 / (2 * n) ** 0.5)


@pytest.mark.slow
def test_draws_are_distributed_as_those_of_a_slow_bootstrap(systems):
    (replicates,) = compare_replicates(systems, ["mrr"], resampling=Resampling(resamples=10_000))
    check_draws(replicates.resampled.draws, slow_draws([list(systems.values())], 800))


def test_means_and_deviations_are_those_of_the_runs(systems: dict[str, list[Ranks]]) -> None:
    (replicates,) = compare_replicates(systems, ["mrr"], resampling=Resampling(resamples=100))
    for place, own in enumerate(systems.values()):
        values = [kgtrec.Result(run)["mrr"] for run in own]
        assert replicates.values[place].tolist() == pytest.approx(values, abs=1e-12)
        assert replicates.means[place] == pytest.approx(mean(values), abs=1e-12)
        if len(values) > 1:
            assert replicates.deviations[place] == pytest.approx(stdev(values), abs=1e-12)
    assert np.isnan(replicates.deviations[2])


def test_folds_have_questions_of_their_own() -> None:
    folds = [[runs(1, 1, 0.5, 0.6, seed)[0], runs(2, 1, 0.5, 0.5, seed)[0]] for seed in range(4)]
    systems = {"a": [fold[0] for fold in folds], "b": [fold[1] for fold in reversed(folds)]}
    (replicates,) = compare_replicates(systems, ["mrr"], resampling=Resampling(resamples=2_000))
    assert replicates.folds == 4
    for place, name in enumerate(systems):
        due = [mean(v for one in slow_values(fold[place]).values() for v in one) for fold in folds]
        assert replicates.values[place].tolist() == pytest.approx(due), name
    check_draws(
        replicates.resampled.draws, slow_draws([[[one] for one in fold] for fold in folds], 150)
    )
    alone = {"a": systems["a"][:3]}
    (replicates,) = compare_replicates(alone, ["mrr"], resampling=Resampling(resamples=200))
    assert replicates.resampled.draws.shape == (200, 1)
    assert len(replicates.values[0]) == replicates.folds == 3


def test_a_single_run_each_is_the_bootstrap_over_questions() -> None:
    one = {"a": runs(1, 1, 0.5, 0.6), "b": runs(2, 1, 0.5, 0.4)}
    (replicates,) = compare_replicates(one, ["mrr"], resampling=Resampling(resamples=500, seed=3))
    (samples,) = samples_of_ranks({n: own[0] for n, own in one.items()}, ["mrr"])
    assert np.array_equal(
        replicates.resampled.draws, resample(samples, Resampling(resamples=500, seed=3)).draws
    )


def test_tables(systems: dict[str, list[Ranks]]) -> None:
    found = compare_replicates(systems, ["mrr", "mr"], resampling=Resampling(resamples=200))
    for one, sign in zip(found, (1, -1), strict=True):
        rows = one.value_table().rows
        assert [row[1] for row in rows] == [len(systems[str(row[0])]) for row in rows]
        values = [sign * float(row[2]) for row in rows]
        assert values == sorted(values, reverse=True)
        for _, _, gap, low, high, *_ in one.pair_table().rows:
            assert low <= gap <= high
            assert sign * gap >= 0
        assert (one.better()[0, 2], one.better()[2, 0]) == (True, False)


def slow_shares(outcomes: dict[str, list[Any]], best: str) -> tuple[float, float]:
    """Shares of items on which any model, and the most different one, differs from the best."""
    differs = [
        [a != b for a, b in zip(one, outcomes[best], strict=True)] for one in outcomes.values()
    ]
    return mean(map(any, zip(*differs, strict=True))), max(map(mean, differs))


def test_multiplicity_is_that_of_loops(systems: dict[str, list[Ranks]]) -> None:
    models = {f"{n}{i}": run for n, own in systems.items() for i, run in enumerate(own)}
    ranks = {n: r.rank().tolist() for n, r in models.items()}
    mrr = {n: mean(1 / x for x in r) for n, r in ranks.items()}
    best = max(mrr, key=lambda n: mrr[n])
    for epsilon in (0.0, 0.02, 0.1, 1.0):
        result = multiplicity(models, epsilon, (1, 5))
        close = [n for n in models if mrr[best] - mrr[n] <= epsilon]
        assert list(result.models) == close
        due = [slow_shares({n: [x <= k for x in ranks[n]] for n in close}, best) for k in (1, 5)]
        found = zip(result.ambiguity, result.discrepancy, strict=True)
        assert [*found] == [pytest.approx(one) for one in due]


def slow_run(queries: Sequence[str], seed: int) -> dict[str, list[tuple[bytes, float]]]:
    """Every second model ranks much like the one before it."""
    rng = random.Random(seed // 2)
    noise = random.Random(seed)
    names = [b"e9", b"e10", b"\xc3\xa9", b"E", b"e1"]
    return {
        q: [
            (name, float(rng.randrange(3) + (noise.random() < 0.1)))
            for name in noise.sample(names, len(names))
        ]
        for q in queries
    }


def columns(run: dict[str, list[tuple[bytes, float]]]) -> RunColumns:
    rows = [row for one in run.values() for row in one]
    ends = np.cumsum([0, *(len(name) for name, _ in rows)])
    sizes = np.cumsum([0, *(len(one) for one in run.values())])
    text = np.frombuffer(b"".join(name for name, _ in rows), np.uint8)
    return RunColumns(list(run), sizes, ends, text, np.array([s for _, s in rows]), "t")


def test_best_answers_are_those_of_loops(systems: dict[str, list[Ranks]]) -> None:
    """Runs with many ties, in any order of lines: sorted by score, then by name."""
    models = {f"{n}{i}": run for n, own in systems.items() for i, run in enumerate(own)}
    queries = sorted(set(models["a0"].question_ids))
    lists = {n: slow_run(queries, seed) for seed, n in enumerate(models)}
    first = {
        n: {q: max(rows, key=lambda row: (row[1], row[0]))[0] for q, rows in run.items()}
        for n, run in lists.items()
    }
    runs = {n: columns(run) for n, run in lists.items()}
    for epsilon in (0.0, 0.1, 1.0):
        result = multiplicity(models, epsilon, runs=runs)
        due = slow_shares({n: [first[n][q] for q in queries] for n in result.models}, result.best)
        assert result.best_answer == pytest.approx(due)
        assert result.table().rows[0] == ("best answer", len(result.models), *result.best_answer)
    assert 0 < result.best_answer[1] < result.best_answer[0]
    with pytest.raises(UsageError, match=r"runs= has no 'c0', but .* by the same names"):
        multiplicity(models, runs={n: run for n, run in runs.items() if n != "c0"})
    less = {n: columns({q: run[q] for q in queries[1:]}) for n, run in lists.items()}
    with pytest.raises(InputError, match=f"does not have question {queries[0]}"):
        multiplicity(models, 1.0, runs=less)
