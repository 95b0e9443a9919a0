"""Verdicts on a new system, by plain sums over questions; and how often they are wrong."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from statistics import mean, stdev
from xml.etree import ElementTree

import numpy as np
import pytest
from compare_cases import samples, systems
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import kgtrec
from kgtrec.errors import UsageError
from kgtrec.study import gate
from kgtrec.study.comparison.gate import Gain, _decide, parse_margin
from kgtrec.study.comparison.reference import ends_of_ties
from kgtrec.trec import evaluate


def pairs(seed: int, levels: int = 12) -> tuple[kgtrec.Ranks, kgtrec.Ranks]:
    first, second = systems(2, seed, levels).values()
    return first, second


# -- By plain sums ---------------------------------------------------------------------------------

VALUES = {
    "mrr": lambda rank: 1 / rank,
    "hits@10": lambda rank: float(rank <= 10),
    "mr": lambda rank: -rank,  # lower is better: the gain of MR is that of -MR
}
SHARE_OF_TIE = {"realistic": 0.5, "optimistic": 0.0, "pessimistic": 1.0}


def gains_by_question(base: kgtrec.Ranks, new: kgtrec.Ranks, key: str, kind: str) -> list[float]:
    """Sums of each question's gains, whose mean over questions is the mean gain of an answer."""
    sums: dict[int, float] = defaultdict(float)
    for ranks, sign in ((base, -1), (new, 1)):
        columns = ranks.question.tolist(), ranks.greater.tolist(), ranks.equal.tolist()
        for question, greater, equal in zip(*columns, strict=True):
            sums[question] += sign * VALUES[key](greater + 1 + SHARE_OF_TIE[kind] * equal)
    return [total * len(sums) / len(base) for total in sums.values()]


def slow_verdicts(gains: list[list[float]], margins: list[float], level: float) -> list[str]:
    bounds = []
    for of_question, margin in zip(gains, margins, strict=True):
        n, error = len(of_question), stdev(of_question) / len(of_question) ** 0.5
        low = mean(of_question) - stats.t.ppf(1 - level, n - 1) * error
        bounds.append((low, stats.t.cdf((mean(of_question) + margin) / error, n - 1)))
    rejected = set()
    for step, k in enumerate(sorted(range(len(bounds)), key=lambda k: bounds[k][1])):
        if bounds[k][1] * (len(bounds) - step) >= level:
            break
        rejected.add(k)
    return [
        "pass" if low > -margins[k] else "fail" if k in rejected else "undecided"
        for k, (low, _) in enumerate(bounds)
    ]


@pytest.mark.parametrize("swap", [False, True])
@pytest.mark.parametrize("margin", ["0.01", "0.08", "5%", "30%", "90%", "3"])
def test_verdicts_are_those_of_plain_sums(margin: str, swap: bool) -> None:
    for seed, levels, level in itertools.product(range(4), (3, 12), (0.01, 0.05, 0.3)):
        base, new = pairs(seed, levels)[:: -1 if swap else 1]
        decided = gate(base, new, tuple(VALUES), margin, level=level)
        usual = [gains_by_question(base, new, key, "realistic") for key in VALUES]
        values = kgtrec.Result(base)
        share = float(margin.strip("%")) / 100
        margins = [
            share * values[f"both.realistic.micro.{key}"] if "%" in margin else float(margin)
            for key in VALUES
        ]
        by_ties = [
            slow_verdicts(
                [gains_by_question(base, new, key, kind) for key in VALUES], margins, level
            )
            for kind in SHARE_OF_TIE
        ]
        expected = [
            row[0] if len({*row}) == 1 else "undecided" for row in zip(*by_ties, strict=True)
        ]
        assert [each.verdict for each in decided.measures] == expected
        assert [each.gain.mean for each in decided.measures] == pytest.approx([*map(mean, usual)])
        assert [each.margin for each in decided.measures] == pytest.approx(margins)
        whole = "fail" if "fail" in expected else "pass" if {*expected} == {"pass"} else "undecided"
        assert (decided.verdict, bool(decided)) == (whole, whole == "pass")


def test_failures_are_corrected_and_passes_are_not() -> None:
    """One measure of three just below the margin fails alone, but not beside two others."""
    rng = np.random.default_rng(1)
    noise = rng.normal(size=40)
    noise -= noise.mean()
    gain = Gain.from_samples(samples(np.column_stack([np.zeros(40), noise])))
    margin = 0.1
    p_just_below = stats.t.ppf(0.03, 39) * gain.error - margin
    low = Gain(p_just_below, gain.error, 40)
    fine = Gain(gain.reach(0.05) - margin + 1e-9, gain.error, 40)
    assert _decide([low], [margin], 0.05) == ["fail"]
    assert _decide([low, fine, fine], [margin] * 3, 0.05) == ["undecided", "pass", "pass"]


# -- By scipy --------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", [0.01, 0.05, 0.4])
def test_bounds_are_those_of_scipys_paired_t_test(level: float) -> None:
    rng = np.random.default_rng(4)
    values = rng.random((30, 2))
    gain = Gain.from_samples(samples(values))
    test = stats.ttest_rel(values[:, 1], values[:, 0])
    interval = test.confidence_interval(1 - 2 * level)
    reach = gain.reach(level)
    assert (gain.mean - reach, gain.mean + reach) == pytest.approx((interval.low, interval.high))
    shifted = stats.ttest_rel(values[:, 1] + 0.07, values[:, 0], alternative="less")
    assert gain.p_not_worse(0.07) == pytest.approx(shifted.pvalue)


@given(st.integers(0, 2**32), st.integers(3, 40), st.sampled_from([0.01, 0.05, 0.4]))
def test_a_gate_of_untied_runs_is_scipys_paired_t_test(seed: int, n: int, level: float) -> None:
    """Reciprocal ranks of one relevant document per query, among documents that never tie."""
    rng = np.random.default_rng(seed)
    ranks = rng.integers(1, 9, (2, n))
    ranks[:, :2] = [[1, 2], [5, 3]]  # the gains differ
    qrels = {f"q{k}": {"d": 1} for k in range(n)}
    runs = [
        {
            f"q{k}": {"d": 0.0, **{f"x{above}": 1.0 + above for above in range(rank - 1)}}
            for k, rank in enumerate(row.tolist())
        }
        for row in ranks
    ]
    (measure,) = gate(*runs, ["recip_rank"], 0.1, level=level, qrels=qrels).measures
    test = stats.ttest_rel(1 / ranks[1], 1 / ranks[0])
    interval, facts = test.confidence_interval(1 - 2 * level), measure.to_dict()
    assert (facts["low"], facts["high"]) == pytest.approx((interval.low, interval.high))
    verdict = "pass" if interval.low > -0.1 else "fail" if interval.high < -0.1 else "undecided"
    if min(abs(interval.low + 0.1), abs(interval.high + 0.1)) > 1e-9:
        assert measure.verdict == verdict


@given(st.floats(1e-4, 10), st.integers(2, 5_000), st.sampled_from([0.01, 0.05, 0.2]))
def test_the_number_needed_is_the_least_that_suffices(drop: float, n: int, level: float) -> None:
    gain = Gain(0.0, 0.1, n)
    needed = gain.units_needed(level, drop)
    assert needed is not None
    assert gain.resolution(level, needed) <= drop
    assert needed == 2 or gain.resolution(level, needed - 1) > drop


def test_no_number_of_questions_follows_if_all_gain_the_same() -> None:
    rng = np.random.default_rng(0)
    base = rng.random(20)
    for shift in (0.0, 0.1):
        gain = Gain.from_samples(samples(np.column_stack([base, base + shift])))
        assert gain.error == 0
        assert gain.resolution(0.05) == 0
        assert gain.units_needed(0.05, 0.1) is None
    assert Gain(0.0, 0.1, 20).units_needed(0.05, 0.0) is None


# -- How often verdicts are wrong ------------------------------------------------------------------


def test_wrong_passes_and_the_power_at_the_resolution_are_as_claimed() -> None:
    """At a true drop of the margin, a pass is wrong; at the resolution, 80 % of tests find it."""
    rng = np.random.default_rng(7)
    n, level, repeats, deviation = 60, 0.05, 4_000, 0.3
    drawn = rng.normal(0, deviation, (repeats, n))
    true = Gain(0.0, deviation / n**0.5, n)
    drop = true.resolution(level)
    passes = detected = undecided = 0
    for row in drawn:
        zero = np.zeros(n)
        at_margin = Gain.from_samples(samples(np.column_stack([zero, row - 0.1])))
        passes += at_margin.mean - at_margin.reach(level) > -0.1
        undecided += abs(at_margin.mean + 0.1) <= at_margin.reach(level)
        at_drop = Gain.from_samples(samples(np.column_stack([zero, row - drop])))
        detected += at_drop.mean + at_drop.reach(level) < 0
    error = 4 * (level * (1 - level) / repeats) ** 0.5
    assert abs(passes / repeats - level) < error
    assert abs(undecided / repeats - (1 - 2 * level)) < 2 * error
    assert abs(detected / repeats - 0.8) < 4 * (0.16 / repeats) ** 0.5


# -- Margins ---------------------------------------------------------------------------------------


@given(st.floats(0, 1e6), st.floats(-10, 10))
def test_a_margin_is_a_number_or_a_share_of_the_base(amount: float, base: float) -> None:
    assert parse_margin(amount, base) == parse_margin(str(amount), base) == amount
    assert parse_margin(f"{amount}%", base) == amount / 100 * abs(base) >= 0


@pytest.mark.parametrize(
    "margin", ["", "%", "x", "-1", "+1", "nan", "inf", "1e999", "5%%", "5 %", "1_0", "٣", True]
)
def test_other_margins_are_refused(margin: str) -> None:
    with pytest.raises(UsageError, match=r"is not a number from 0 or a percentage of the base"):
        parse_margin(margin, 1.0)


@given(st.integers(0, 3), st.floats(0, 1), st.floats(0, 1))
def test_a_larger_margin_is_never_stricter(seed: int, first: float, second: float) -> None:
    order = ("fail", "undecided", "pass")
    few, more = (
        [order.index(each.verdict) for each in gate(*pairs(seed), ["mrr", "mr"], margin).measures]
        for margin in sorted((first, second))
    )
    assert all(a <= b for a, b in zip(few, more, strict=True))


@given(st.integers(0, 3), st.floats(0, 500), st.sampled_from(["mrr", "mr", "hits@3"]))
def test_a_percentage_is_that_share_of_the_bases_value(seed: int, percent: float, key: str) -> None:
    base, new = pairs(seed)
    (relative,) = gate(base, new, [key], f"{percent}%").measures
    value = relative.to_dict()["base"]
    assert value == pytest.approx(kgtrec.Result(base)[f"both.realistic.micro.{key}"])
    (absolute,) = gate(base, new, [key], percent / 100 * value).measures
    assert relative.to_dict() == absolute.to_dict()


# -- Ties ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["micro.mrr", "micro.hits@3", "macro.mrr", "macro.hits@3"])
def test_broken_ties_give_the_optimistic_and_the_pessimistic_rank(key: str) -> None:
    for ranks in systems(3, 1, 3).values():
        assert ranks.equal.any()
        for end, kind in zip(ends_of_ties(ranks), ("optimistic", "pessimistic"), strict=True):
            expected = kgtrec.Result(ranks)[f"both.{kind}.{key}"]
            for rank_type in ("realistic", "expected", "ordinal", kind):
                assert kgtrec.Result(end)[f"both.{rank_type}.{key}"] == pytest.approx(expected)


def average_precision(order: tuple[int, ...], answers: set[int]) -> float:
    hits = [rank for rank, entity in enumerate(order, start=1) if entity in answers]
    return sum(k / rank for k, rank in enumerate(hits, start=1)) / len(answers)


def test_broken_ties_give_the_extremes_of_average_precision_over_all_orders() -> None:
    rng = np.random.default_rng(2)
    rows = np.unique(
        np.column_stack([rng.integers(0, 3, 12), np.zeros(12, int), rng.integers(0, 6, 12)]), axis=0
    )
    graph = kgtrec.Graph.from_arrays(test=rows, n_entities=6, n_relations=1)
    questions = graph.questions(sides="tail", filter="raw")
    scores = rng.integers(0, 3, (len(questions), 6)).astype(float)
    ranks = kgtrec.evaluate(scores, questions, progress=False).ranks
    extremes: list[list[float]] = [[], []]
    for row, answers in zip(
        scores, np.split(questions.answers.ids, questions.answers.offsets[1:-1]), strict=True
    ):
        values = [
            average_precision(order, {*answers.tolist()})
            for order in itertools.permutations(range(6))
            if all(row[a] >= row[b] for a, b in itertools.pairwise(order))
        ]
        extremes[0].append(max(values))
        extremes[1].append(min(values))
    for end, expected in zip(ends_of_ties(ranks), extremes, strict=True):
        assert kgtrec.Result(end)["tail.macro.map"] == pytest.approx(mean(expected))
    assert mean(extremes[0]) > mean(extremes[1])


def test_graded_answers_of_a_tie_are_in_the_best_or_worst_order() -> None:
    """nDCG of two tied answers, of which one has a higher grade."""
    questions = kgtrec.Questions.from_answers({"q": {"a": 1, "b": 3}}, labels=["a", "b", "c"])
    ranks = kgtrec.evaluate(np.array([[1.0, 1.0, 0.0]]), questions, progress=False).ranks
    ideal = 3 + 1 / math.log2(3)
    best, worst = (kgtrec.Result(end)["all.macro.ndcg"] for end in ends_of_ties(ranks))
    assert (best, worst) == pytest.approx((1.0, (1 + 3 / math.log2(3)) / ideal))


QRELS = {f"q{k}": {"a": 1, "b": 0} for k in range(12)}


def run(*wrong: int, tied: bool = False) -> dict[str, dict[str, float]]:
    return {
        query: {"a": 1.0, "b": 1.0 if tied else 2.0 * (k in wrong)} for k, query in enumerate(QRELS)
    }


def test_a_run_whose_ties_decide_is_undecided() -> None:
    """The relevant document of every query ties with another: first or second in all of them."""
    decided = gate(run(0), run(tied=True), ["recip_rank"], 0.1, qrels=QRELS)
    (measure,) = decided.measures
    assert measure.verdicts[1:] == ("pass", "fail")
    assert decided.verdict == "undecided"
    assert "The order of tied answers decides" in decided.sentence()
    without = gate(run(0), run(tied=True), ["binG"], 0.1, qrels=QRELS)
    assert len({*without.measures[0].verdicts}) == 1


# -- Runs, and what is shown -----------------------------------------------------------------------


def test_runs_have_the_values_of_an_evaluation() -> None:
    base, new = run(0, 1), run(1, 2, 3)
    decided = gate(base, new, ["map", "recip_rank"], "10%", qrels=QRELS, names=("old", "young"))
    facts = decided.measures[0].to_dict()
    for name, system in (("base", base), ("new", new)):
        values = [row["map"] for row in evaluate(QRELS, system, ["map"]).values()]
        assert facts[name] == pytest.approx(mean(values))
    assert facts["margin"] == pytest.approx(0.1 * facts["base"])
    assert decided.losses.rows == [("q2", 1.0, 0.5, 1.0, 2.0), ("q3", 1.0, 0.5, 1.0, 2.0)]
    assert decided.gains.rows == [("q0", 0.5, 1.0, 2.0, 1.0)]


def test_a_document_that_a_run_lacks_has_no_rank() -> None:
    new = {query: {"b": 1.0} if query == "q4" else row for query, row in run(0).items()}
    decided = gate(run(0), new, ["recip_rank"], 1, qrels=QRELS)
    assert decided.losses.rows == [("q4", 1.0, 0.0, 1.0, "not listed")]
    assert decided.to_dict()["losses"][0]["rank_after"] is None


@pytest.mark.parametrize("strict", [False, True])
def test_junit_counts_its_cases(strict: bool) -> None:
    base, new = run(0, 1), run(1, 2, 3)
    decided = gate(base, new, ["map", "recip_rank"], 0.02, qrels=QRELS, names=("a\x1b", "b<&"))
    assert decided.verdict == "undecided"
    suite = ElementTree.fromstring(decided.to_junit(strict=strict))
    counts = {name: int(suite.get(name, "")) for name in ("tests", "failures", "skipped")}
    assert counts["tests"] == len(suite.findall("testcase")) == 2
    assert counts["failures"] == len(suite.findall("testcase/failure")) == 2 * strict
    assert counts["skipped"] == len(suite.findall("testcase/skipped")) == 2 * (not strict)
    assert suite.get("name") == "kgtrec gate a\\x1b b<&"
    # What the schemas of Jenkins (xUnit plugin, junit-10.xsd) and Maven Surefire require.
    assert {"name", "tests", "errors", "failures", "skipped"} == {*suite.attrib}
    assert {*suite.find("testcase").attrib} == {"name", "classname", "time"}
    parts = [[part.tag for part in case] for case in suite]
    assert parts == [["failure" if strict else "skipped", "system-out"]] * 2
    assert {key for case in suite for part in case for key in part.attrib} == {"message"}


def test_largest_losses_are_those_of_the_ranks() -> None:
    base, new = pairs(0)
    decided = gate(base, new)
    changes = (1 / new.rank() - 1 / base.rank()).tolist()
    losses = sorted(change for change in changes if change < 0)[:5]
    assert [1 / after - 1 / before for *_, before, after in decided.losses.rows] == losses


def test_a_measure_without_a_mean_and_a_level_are_refused() -> None:
    base, new = pairs(0)
    with pytest.raises(UsageError, match=r"micro.gmr: not a plain mean"):
        gate(base, new, ["mrr", "gmr"], 0.1)
    with pytest.raises(UsageError, match=r"level=0.5 is not between 0 and 0.5"):
        gate(base, new, level=0.5)
    with pytest.raises(UsageError, match=r"kg_mrr: a gate of runs has no measures of answers"):
        gate(run(0), run(1), ["kg_mrr"], qrels=QRELS)
    alone = {"q0": QRELS["q0"]}
    with pytest.raises(UsageError, match=r"a verdict needs two or more queries, not 1"):
        gate(run(0), run(1), ["map"], qrels=alone)
