"""Open world: formulas against enumeration, simulation, the paper; the world of the family tree."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import kgtrec
from kgtrec.errors import UsageError
from kgtrec.study import openworld as ow
from kgtrec.study.openworld.compare import Mixture, Seen, outlook_at
from kgtrec.study.openworld.experiment import METRICS, MODELS
from kgtrec.study.openworld.formulas import moments
from kgtrec.study.openworld.simulate import (
    RELATIONS,
    RULES,
    draw_ranks,
    family_tree,
    random_removal,
    ranked_removal,
)

ALL = ("mrr", "hits@1", "hits@2", "log_mrr", "p_mrr@0.5")
PLAIN = {
    "mrr": lambda r: 1 / r,
    "hits@1": lambda r: float(r <= 1),
    "hits@2": lambda r: float(r <= 2),
    "log_mrr": lambda r: 1 / math.log2(r + 1),
    "p_mrr@0.5": lambda r: 1 / math.sqrt(r),
}
GRID = [(beta, n) for beta in (0.05, 0.2, 0.35, 0.65, 0.9) for n in (1, 5, 43, 200)]
LEVELS = np.linspace(0.02, 1.0, 50)


def question_value(missing, predicted, order, false, metric):
    """The metric of one question in one world; None if no answer is left to test."""
    answers = len(missing)
    items = sorted(
        range(answers + false), key=lambda i: (not (i < answers and predicted[i]), order[i])
    )
    ranks = []
    for answer in range(answers):
        if missing[answer]:
            continue
        ahead = items[: items.index(answer)]
        ranks.append(1 + sum(1 for i in ahead if i >= answers or missing[i]))
    return sum(PLAIN[metric](r) for r in ranks) / len(ranks) if ranks else None


def worlds(l1, l2, beta, answers, false, metric):
    """Number missing, probability and value for every possible outcome of a question."""
    orders = list(permutations(range(answers + false)))
    for missing in product((False, True), repeat=answers):
        for predicted in product((False, True), repeat=answers):
            chance = 1.0
            for x, y in zip(missing, predicted, strict=True):
                strength = l1 if x else l2
                chance *= (beta if x else 1 - beta) * (strength if y else 1 - strength)
            for order in orders:
                value = question_value(missing, predicted, order, false, metric)
                yield missing, chance / len(orders), value


def split(strength, beta, rho):
    spread = math.sqrt(strength * (1 - strength))
    return (
        strength + spread * math.sqrt((1 - beta) / beta) * rho,
        strength - spread * math.sqrt(beta / (1 - beta)) * rho,
    )


@pytest.mark.parametrize("metric", ALL)
@pytest.mark.parametrize(
    ("strengths", "beta", "rho"), [((0.6, 0.4), 0.35, 0.0), ((0.7, 0.8), 0.6, -0.2)]
)
def test_moments_are_those_of_all_worlds(metric, strengths, beta, rho):
    answers, false = 3, 2
    sums = np.zeros((2, answers, 3))  # chance, value and square, by how many are missing
    for own, strength in zip(sums, strengths, strict=True):
        for missing, chance, value in worlds(
            *split(strength, beta, rho), beta, answers, false, metric
        ):
            if value is not None:
                own[sum(missing)] += chance * np.array([1, value, value**2])
    (chance, _), (value, square) = sums[:, :, 0], (sums[:, :, 1:] / sums[:, :, :1]).T.swapaxes(1, 2)
    chance = chance / chance.sum()
    exact = moments(strengths, beta, answers, answers + false, metric, rho)
    assert exact.mean == pytest.approx(value @ chance, abs=1e-12)
    assert exact.variance == pytest.approx(square @ chance - (value @ chance) ** 2, abs=1e-12)
    shared = value[0] * value[1] @ chance - np.prod(value @ chance)  # the same answers are missing
    assert exact.covariance[0, 1] == pytest.approx(shared, abs=1e-12)
    kept = ow.expectation(strengths, beta, answers, answers + false, metric, rho, kept=True)
    assert kept == pytest.approx(exact.mean, abs=1e-15)


@pytest.mark.parametrize("metric", ALL)
def test_lemma_is_the_expectation_over_a_binomial_number_of_missing(metric):
    # The lemma as printed: the closed form with the distribution function, plus delta.
    strength, beta, answers, entities = 0.55, 0.3, 12, 40
    chance = strength * beta
    pmf = [
        math.comb(answers + 1, k) * chance**k * (1 - chance) ** (answers + 1 - k)
        for k in range(answers + 2)
    ]
    printed = sum(PLAIN[metric](k + 1) * (1 - sum(pmf[: k + 1])) for k in range(answers + 1))
    printed /= beta * (answers + 1)
    main = ow.expectation_main(strength, beta, answers, metric)
    assert main == pytest.approx(printed, abs=1e-13)
    delta = 0.0
    for m in range(answers + 1):
        for predicted in range(m + 1):
            weight = math.comb(answers, m) * beta**m * (1 - beta) ** (answers - m)
            weight *= (
                math.comb(m, predicted) * strength**predicted * (1 - strength) ** (m - predicted)
            )
            ranks = range(predicted + 1, entities - answers + m + 2)
            delta += weight * sum(map(PLAIN[metric], ranks)) / len(ranks)
    delta *= 1 - strength
    whole = ow.expectation(strength, beta, answers, entities, metric)
    assert whole == pytest.approx(printed + delta)


@pytest.mark.parametrize(
    ("beta", "n_answers", "rho"),
    [*((*one, 0.0) for one in GRID), *product((0.2, 0.5, 0.65), (43,), (-0.15, 0.1))],
)
def test_error_bound_of_the_logarithm_holds(beta, n_answers, rho):
    ends = (ow.correlation_range(s, beta) for s in LEVELS)
    inside = LEVELS[[not rho or low * 0.99 <= rho <= high * 0.99 for low, high in ends]]
    assert len(inside) > 20
    close = ow.approximation(inside, beta, n_answers, rho)
    assert rho or (close[0] < 0) == (beta * n_answers < 20)  # useless if few are missing
    distance = abs(close - ow.expectation_main(inside, beta, n_answers, rho=rho))
    assert (distance <= ow.approximation_error(inside, beta, n_answers, rho) + 1e-14).all()


def plain_expectation(l1, l2, beta, n_answers, false, metric):
    """The lemma's expectation and delta, summed over missing and predicted missing answers."""
    main, delta = 0.0, 0.0
    for m in range(n_answers + 1):
        of_m = math.comb(n_answers, m) * beta**m * (1 - beta) ** (n_answers - m)
        for predicted in range(m + 1):
            chance = of_m * math.comb(m, predicted) * l1**predicted * (1 - l1) ** (m - predicted)
            above = [PLAIN[metric](r) for r in range(1, predicted + 2)]
            below = [PLAIN[metric](r) for r in range(predicted + 1, false + m + 2)]
            main += chance * l2 * sum(above) / len(above)
            delta += chance * (1 - l2) * sum(below) / len(below)
    return main, delta


def parts_of(strength, beta, rho):
    """Definition 4.1: the strength on missing and on recorded answers."""
    spread = math.sqrt(strength * (1 - strength))
    odds = beta / (1 - beta)
    return strength + spread * rho / math.sqrt(odds), strength - spread * rho * math.sqrt(odds)


SLOPES = [
    (strength, beta, rho, n, false, metric)
    for strength in (0.1, 0.45, 0.8)
    for beta in (0.1, 0.35, 0.7)
    for rho in (-0.1, 0.0, 0.12)
    for n, false in ((1, 3), (6, 20))
    for metric in ("mrr", "hits@2", "log_mrr", "p_mrr@0.5")
]


def test_derivatives_by_the_correlation_and_delta():
    """All numbers of a row of `slopes` against sums in plain Python and their differences."""
    step = 1e-5
    for strength, beta, rho, n, false, metric in SLOPES:
        main, delta = plain_expectation(*parts_of(strength, beta, rho), beta, n, false, metric)
        up, down = (
            plain_expectation(*parts_of(strength, beta, rho + way), beta, n, false, metric)[0]
            for way in (step, -step)
        )
        (row,) = ow.slopes([strength], [beta], n, n + false, metric, [rho]).rows
        assert row.expected == pytest.approx(main + delta, rel=1e-10)
        assert row.delta == pytest.approx(delta, rel=1e-7, abs=1e-12)
        assert row.by_rho == pytest.approx((up - down) / (2 * step), rel=1e-6, abs=1e-9)
        assert (row.strength, row.sparsity, row.rho, row.answers) == (strength, beta, rho, n)
        assert math.isnan(row.by_strength) == (rho != 0)
        if rho == 0:
            up, down = (
                plain_expectation(strength + way, strength + way, beta, n, false, metric)[0]
                for way in (step, -step)
            )
            assert row.by_strength == pytest.approx((up - down) / (2 * step), rel=1e-6, abs=1e-9)
        if metric != "mrr":
            assert np.isnan([row.by_rho_log, row.must_fall, row.bound]).all()
            continue
        l1, l2 = parts_of(strength, beta, rho)
        close = [float(ow.approximation(strength, beta, n, rho + way)) for way in (step, -step)]
        assert row.by_rho_log == pytest.approx((close[0] - close[1]) / (2 * step), rel=1e-6)
        assert row.bound == pytest.approx((1 - l2) * math.log(false) / false)
        spread = math.sqrt((1 - beta) * beta * (1 - strength) / strength)
        holds = l1 * beta * (n + 2) >= math.exp(1 - beta + spread - 0.5772156649015329)
        assert row.must_fall == holds
        assert row.by_rho_log < 0 or not holds  # Corollary 4.5


def test_slopes_at_the_ends():
    """Perfect and useless models, and complete labels: no correlation is possible there."""
    nothing = float(ow.slope_by_rho(0.5, 0.0, 4, "mrr", 0.0))
    ends = ow.slope_by_rho([0.0, 1.0], 0.4, 4)
    assert (nothing, *ends) == (0, 0, 0)
    first, second = ow.slopes([0.0, 1.0], [0.4]).rows
    assert first.must_fall == 0
    assert math.isnan(first.by_rho_log)
    assert first.by_strength == 1  # E[1/f(1)] for no predicted answers
    assert (second.delta, second.bound) == (pytest.approx(0), 0)


def test_the_printed_bound_of_delta_can_be_exceeded():
    low, high = ow.slopes([0.1], [0.05, 0.35]).rows
    assert low.delta > low.bound
    assert high.delta < high.bound
    assert "exceeds its bound in 1 of 2 rows" in str(ow.slopes([0.1], [0.05, 0.35]))


def test_slopes_at_estimated_strengths():
    """Ranks of questions with 2 and 4 test answers, drawn at a known strength."""
    rng, rows = np.random.default_rng(3), []
    for question, n in enumerate([2, 4] * 3000):
        ranks, missing = draw_ranks(rng, 0.6, 0.5, 0.0, 2 * n, 60, 1)
        rows += [
            (question, int(r)) for r, lost in zip(ranks[0], missing[0], strict=True) if not lost
        ]
    question, rank = np.array(rows).T
    zero, n = np.zeros(len(rows), int), len(rows)
    counts = {"greater": rank - 1, "equal": zero, "tied_ahead": zero, "candidates": zero + 55}
    counts |= {f"macro_{name}": column for name, column in counts.items()}
    columns = counts | dict.fromkeys(
        ("side", "relation", "given", "answer", "answer_popularity", "relation_popularity"), zero
    )
    columns |= {"question": question, "triple": np.arange(n), "answer_nan": zero > 0}
    columns["macro_answer_nan"] = zero > 0
    drawn = kgtrec.Ranks(columns)
    (row,) = ow.slopes_of_ranks({"drawn": drawn}, [0.5]).rows
    assert row.model == "drawn"
    assert row.strength == pytest.approx(0.6, abs=0.06)
    sizes = np.bincount(question)
    sizes = sizes[sizes > 0]
    assert row.answers == pytest.approx(2 * sizes.mean())
    parts = [float(ow.slope(row.strength, 0.5, 2 * n)) for n in sizes]
    assert row.by_strength == pytest.approx(np.mean(parts))
    (perfect,) = ow.slopes_of_ranks({"best": drawn.subset(drawn.greater == 0)}, [0.5]).rows
    assert np.isnan([perfect.strength, perfect.expected, perfect.by_rho]).all()


@pytest.mark.parametrize("metric", [*ALL, "hits@10", "p_mrr@0.1"])
@pytest.mark.parametrize(("beta", "n_answers"), [(0.35, 43), (0.0, 5), (0.9, 3)])
def test_slope_is_the_finite_difference(metric, beta, n_answers):
    strengths, step = np.array([0.1, 0.5, 0.9]), 1e-5
    up, down = (
        ow.expectation_main(strengths + sign * step, beta, n_answers, metric) for sign in (1, -1)
    )
    expected = (up - down) / (2 * step)
    assert ow.slope(strengths, beta, n_answers, metric) == pytest.approx(
        expected, rel=1e-6, abs=1e-9
    )


@given(st.floats(0.05, 0.95), st.floats(0.05, 0.95))
def test_correlation_range_is_where_both_strengths_are_probabilities(strength, beta):
    low, high = ow.correlation_range(strength, beta)
    for rho in (low, high):
        parts = split(strength, beta, rho)
        assert all(-1e-9 <= part <= 1 + 1e-9 for part in parts)
        assert min(*parts, *(1 - part for part in parts)) == pytest.approx(0, abs=1e-9)
        ow.split_strength(strength, beta, rho)
        with pytest.raises(UsageError, match="impossible"):
            ow.split_strength(strength, beta, rho * 1.001)
    middle = (low + high) / 2
    missing, recorded = ow.split_strength(strength, beta, middle)
    assert beta * missing + (1 - beta) * recorded == pytest.approx(strength)


def test_inconsistency_is_what_repeated_evaluations_show():
    strengths, beta, n, entities, questions, repeats = (0.5, 0.56), 0.4, 8, 60, 120, 400
    rng = np.random.default_rng(3)
    shown = []
    for strength in strengths:
        rank, missing = draw_ranks(rng, strength, beta, 0.0, n, entities, questions * repeats)
        left = (~missing).sum(axis=1)
        value = np.where(missing, 0, 1 / rank).sum(axis=1) / np.maximum(left, 1)
        value = np.where(left > 0, value, np.nan).reshape(repeats, questions)
        shown.append(np.nanmean(value, axis=1))
    wrong = float((shown[0] >= shown[1]).mean())
    said = ow.inconsistency(strengths[0], 0.06, beta, n, questions, entities, exact=True)
    assert 0.05 < said < 0.4
    assert said == pytest.approx(wrong, abs=4 * math.sqrt(wrong / repeats))


def test_queries_needed_bring_the_probability_asked_for():
    needed = ow.queries_needed(0.7, 0.01, 0.35, 43, p=0.05)
    assert ow.inconsistency(0.7, 0.01, 0.35, 43, needed) == pytest.approx(0.05, abs=0.002)
    alike = ow.inconsistency(0.7, 0.01, 0.35, 43, needed, exact=True)
    assert alike == pytest.approx(0.05, abs=0.005)
    assert ow.inconsistency(0.7, 0.01, 0.35, 43, needed, same_missing=True) < 0.05
    assert ow.inconsistency(0.7, 0.0, 0.35, 43, needed) == 0.5
    assert ow.queries_needed(0.7, 0.0, 0.35, 43) == math.inf


@pytest.mark.parametrize(
    ("n", "entities", "beta", "rho"),
    [(43, 14505, 0.35, -0.2), (5, 60, 0.6, 0.15), (2, 9, 0.8, 0.0)],
)
def test_simulation_agrees_with_the_exact_moments(n, entities, beta, rho):
    metrics = ("mrr", "hits@1", "log_mrr", "p_mrr@0.5")
    run = ow.simulate((0.7, 0.2), (beta,), n, rho, metrics, 10_000, entities, seed=1)
    for metric in metrics:
        exact = moments((0.7, 0.2), beta, n, entities, metric, rho)
        assert (abs(run.mean[metric][0] - exact.mean) < 4 * run.error(metric)[0]).all()
        assert run.std[metric][0] ** 2 == pytest.approx(exact.variance, rel=0.09)


def test_simulation_is_the_same_for_a_seed_and_leaves_out_what_cannot_be():
    runs = [ow.simulate((0.3, 0.99), (0.2,), rho=0.2, repeats=50, seed=s) for s in (4, 4, 5)]
    assert runs[0].mean["mrr"][0, 0] == runs[1].mean["mrr"][0, 0] != runs[2].mean["mrr"][0, 0]
    assert np.isnan(runs[0].mean["mrr"][0, 1])
    assert runs[0].tested[0, 1] == 0


def drawn_ranks(strengths, beta, n, false, questions, seed):
    """Ranks of two models of known strengths; both have missing answers."""
    rng = np.random.default_rng(seed)
    n_entities = n + false
    answers = np.arange(n)
    missing = rng.random((questions, n)) < beta
    missing[missing.all(axis=1), 0] = False
    heads = np.arange(questions)
    rows = np.argwhere(~missing)
    size = max(n_entities, questions)
    test = np.column_stack([heads[rows[:, 0]], np.zeros(len(rows), int), answers[rows[:, 1]]])
    graph = kgtrec.Graph.from_arrays(test=test, n_entities=size, n_relations=1)
    tails = graph.questions(sides="tail")
    ranks = []
    for strength in strengths:
        scores = rng.random((questions, size))
        scores[:, :n] += rng.random((questions, n)) < strength
        scores[:, n_entities:] = -1
        ranks.append(kgtrec.rank(scores, tails, progress=False)[0])
    return ranks


def test_strengths_are_found_again():
    ranks = drawn_ranks((0.5, 0.7), 0.4, 20, 180, 300, seed=2)
    result = ow.compare_ranks(*ranks, 0.4, names=("weak", "strong"))
    at = result.outlooks[0]
    assert at.strengths == pytest.approx((0.5, 0.7), abs=0.08)
    assert at.full_difference == pytest.approx(0.2, abs=3 * at.full_error)
    assert at.answers == pytest.approx(20, abs=0.3)
    assert result.p_data == pytest.approx(at.p_model, abs=0.02)
    differences = ow.question_values(ranks[1])[0] - ow.question_values(ranks[0])[0]
    error = np.std(differences, ddof=1) / math.sqrt(len(differences))
    assert result.paired_error == pytest.approx(error)
    # The model was drawn as in the paper, so Hits@10 is close to its formula.
    for expected, seen in at.control:
        assert expected == pytest.approx(seen, abs=0.03)
    assert "does not describe" not in str(result)


def test_an_outlook_is_consistent_with_the_formulas():
    seen = Seen((0.15, 0.16), np.full(500, 20.0), 14505, math.nan, (math.nan,) * 2, "mrr")
    at = outlook_at(seen, 0.5, 0.05)
    low, high = at.strengths
    assert ow.expectation(low, 0.5, 40, kept=True) == pytest.approx(0.15, abs=1e-9)
    assert ow.expectation(high, 0.5, 40, kept=True) == pytest.approx(0.16, abs=1e-9)
    model = ow.inconsistency(low, high - low, 0.5, 40, 500, exact=True, same_missing=True)
    assert at.p_model == pytest.approx(model, rel=1e-6)
    printed = ow.inconsistency(low, high - low, 0.5, 40, 500)
    assert at.p_paper == pytest.approx(printed, rel=1e-6)
    alike = ow.inconsistency(
        low, high - low, 0.5, 40, at.needed_model, exact=True, same_missing=True
    )
    assert alike == pytest.approx(0.05, abs=1e-6)
    explained = ow.expectation(low, 0.5, 40, rho=at.rho, kept=True)
    assert explained == pytest.approx(0.16, abs=3e-4)
    assert at.full == pytest.approx(ow.expectation([low, high], 0.0, 40), abs=1e-12)


def test_a_value_beyond_the_ceiling_is_said_to_be_one():
    result = ow.compare_values((0.30, 0.32), 500, 28, (0.2, 0.6))
    fitting, beyond = result.outlooks
    assert fitting.fits
    assert not beyond.fits
    assert beyond.ceiling < 0.30
    assert "even a perfect model" in str(result)
    edge = result.highest_sparsity
    assert Mixture.from_answers([28.0], edge, 14505).ceiling() == pytest.approx(0.32, abs=2e-3)
    parsed = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert parsed["outlooks"][1]["strengths"] == [None, None]
    assert parsed["outlooks"][1]["fits"] is False


def test_swapped_models_give_the_same_answers():
    one = ow.compare_values((0.18, 0.19), 500, 28, 0.35)
    other = ow.compare_values((0.19, 0.18), 500, 28, 0.35)
    assert one.difference == -other.difference
    assert one.outlooks[0].p_model == pytest.approx(other.outlooks[0].p_model)
    assert one.outlooks[0].rho == pytest.approx(other.outlooks[0].rho)


@given(arrays(np.float64, 30, elements=st.integers(1, 300)), st.floats(0, 0.9))
def test_a_mixture_keeps_the_mean_number_of_answers(seen, beta):
    mixture = Mixture.from_answers(seen, beta, 100_000)
    assert mixture.weight.sum() == pytest.approx(1.0)
    assert mixture.n_answers @ mixture.weight == pytest.approx(seen.mean() / (1 - beta))


@pytest.mark.parametrize("metric", ALL)
def test_question_values_average_inside_a_question_first(metric):
    ranks = drawn_ranks((0.5, 0.7), 0.4, 5, 20, 10, seed=0)[0]
    ranks.equal[::2] = np.minimum(2, ranks.candidates - 1 - ranks.greater)[::2]
    values, answers = ow.question_values(ranks, metric)
    ties = zip(ranks.greater.tolist(), ranks.equal.tolist(), strict=True)
    gains = [np.mean([PLAIN[metric](g + 1 + i) for i in range(e + 1)]) for g, e in ties]
    due = [np.mean(np.array(gains)[ranks.question == q]) for q in np.unique(ranks.question)]
    assert values.tolist() == pytest.approx(due, abs=1e-12)
    assert answers.tolist() == np.unique(ranks.question, return_counts=True)[1].tolist()


def small_study(**more):
    models = [replace(MODELS[0], steps=(2, 8))]
    return ow.family_study(
        seed=1, families=1, n_questions=15, models=models, progress=False, **more
    )


def test_a_small_study_has_every_point():
    study = small_study()
    assert [panel.removal for panel in study.panels] == ["independent", "correlated"]
    assert study.panels[0].sparsity == pytest.approx(1 - 0.4737, abs=0.06)
    for panel in study.panels:
        (curve,) = panel.curves
        assert curve.model == MODELS[0].label
        assert panel.sparse_answers < panel.full_answers
        for metric in METRICS:
            assert ((curve.values[metric] >= 0) & (curve.values[metric] <= 1)).all()
    # Files hold every point and explain every column.
    assert len(study.points()) == sum(len(p.curves[0].steps) for p in study.panels)
    assert len(study.table()) == len(study.panels) * len(METRICS)
    for title in study.table().titles[1:]:
        assert f"\n{title} " in str(study)
    assert max(map(len, str(study).splitlines())) <= 80


@pytest.mark.slow
def test_a_study_is_reproducible():
    curves = [small_study(removals=["correlated"]).panels[0].curves[0] for _ in range(2)]
    for metric in METRICS:
        first, again = (curve.values[metric][1] for curve in curves)
        assert first == pytest.approx(again, abs=1e-6)


def kinship(tree):
    """Every relation as a set of pairs, from births and marriages alone."""
    people = range(len(tree.family))
    parents = [{int(p) for p in (tree.mother[x], tree.father[x]) if p >= 0} for x in people]
    children = [{child for child in people if x in parents[child]} for x in people]

    def of(many, step):
        return set().union(*(step[x] for x in many))

    siblings = [of(parents[x], children) - {x} for x in people]
    cousins = [of(of(parents[x], siblings), children) - {x} for x in people]
    spouses = [{int(tree.spouse[x])} - {-1} for x in people]
    relatives = {
        (None, "wifeOf", "husbandOf"): spouses,
        ("parentOf", "motherOf", "fatherOf"): children,
        (None, "grandmotherOf", "grandfatherOf"): [of(one, children) for one in children],
        ("childOf", "daughterOf", "sonOf"): parents,
        ("grandchildOf", "granddaughterOf", "grandsonOf"): [of(one, parents) for one in parents],
        (None, "nieceOf", "nephewOf"): [of(one, siblings) for one in parents],
        ("siblingOf", "sisterOf", "brotherOf"): siblings,
        (None, "auntOf", "uncleOf"): [of(one, children) for one in siblings],
        ("cousinOf", "girlCousinOf", "boyCousinOf"): cousins,
    }
    facts = {name: set() for name in RELATIONS}
    for (general, *by_gender), of_everybody in relatives.items():
        for x in people:
            for name in filter(None, (general, by_gender[not tree.female[x]])):
                facts[name] |= {(x, y) for y in of_everybody[x]}
    return facts


@pytest.fixture(scope="module")
def tree():
    return family_tree()


def test_every_fact_follows_from_first_principles_and_none_is_left_out():
    tree = family_tree(4)
    expected = kinship(tree)
    for number, name in enumerate(RELATIONS):
        rows = tree.facts[tree.facts[:, 1] == number]
        pairs = {(int(head), int(tail)) for head, _, tail in rows}
        assert len(pairs) == len(rows), f"{name} has repeated facts"
        assert pairs == expected[name], name
    assert {rule.head for rule in RULES} == set(RELATIONS) - {"parentOf"}  # which is drawn


def test_it_has_the_size_of_the_papers_graph(tree):
    assert len(tree.family) == 6000  # the paper's has 6,004
    assert len(tree.facts) == pytest.approx(192_532, rel=0.03)
    graph = tree.graph(tree.facts[:100], tree.facts[100:200])
    assert list(graph.relations) == list(RELATIONS)
    assert (graph.entities[0], graph.entities[5999]) == ("f00p000", "f19p299")
    one, same, other = (family_tree(2, seed=seed).facts for seed in (5, 5, 6))
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)


def test_families_are_sound(tree):
    people = np.arange(len(tree.family))
    born = tree.mother >= 0
    assert (born == (tree.father >= 0)).all()
    assert tree.female[tree.mother[born]].all()
    assert not tree.female[tree.father[born]].any()
    for parent in (tree.mother, tree.father):
        assert (tree.layer[parent[born]] == tree.layer[born] - 1).all()
        assert (tree.family[parent[born]] == tree.family[born]).all()
    assert (tree.spouse[tree.mother[born]] == tree.father[born]).all()
    married = tree.spouse >= 0
    assert (tree.spouse[tree.spouse[married]] == people[married]).all()
    assert (tree.female[tree.spouse[married]] != tree.female[married]).all()
    assert (tree.layer.min(), tree.layer.max()) == (0, 3)
    assert np.bincount(tree.mother[born]).max() <= 20
    assert (np.bincount(tree.family) == 300).all()


def as_set(*parts):
    return {tuple(row) for part in parts for row in part.tolist()}


@pytest.fixture(scope="module")
def world():
    """A small tree; a quarter of its facts is not recorded."""
    return random_removal(family_tree(4, people=120, seed=3).facts, 0.75, seed=2)


def test_random_removal_takes_the_shares_of_the_appendix(world):
    facts = family_tree(4, people=120, seed=3).facts
    total = len(facts)
    for part, share in ((world.train, 0.525), (world.test, 0.225), (world.missing, 0.25)):
        assert abs(len(part) - share * total) < 4 * (share * (1 - share) * total) ** 0.5
    assert world.sparsity == len(world.missing) / len(world.full_test)
    assert len(world.train) + len(world.test) + len(world.missing) == total
    assert as_set(world.train, world.test, world.missing) == as_set(facts)
    assert np.array_equal(world.test, random_removal(facts, 0.75, seed=2).test)
    assert not np.array_equal(world.test, random_removal(facts, 0.75, seed=3).test)
    assert len(random_removal(facts, 1.0).missing) == 0


def test_ranked_removal_hides_the_worst_of_each_question_and_never_all(world):
    facts = world.full_test
    rank = np.random.default_rng(3).integers(1, 50, len(facts))
    removed = ranked_removal(world, rank, 0.5, seed=4)
    of = {tuple(fact): int(r) for fact, r in zip(facts.tolist(), rank, strict=True)}
    questions = {}
    for part, hidden in ((removed.test, False), (removed.missing, True)):
        for row in part.tolist():
            questions.setdefault((row[0], row[1]), []).append((of[tuple(row)], hidden))
    for answers in questions.values():
        shown = [r for r, hidden in answers if not hidden]
        gone = [r for r, hidden in answers if hidden]
        assert shown
        assert not gone or max(shown) <= min(gone)
    assert as_set(removed.full_test) == as_set(facts)
    several = [hidden for a in questions.values() if len(a) >= 10 for _, hidden in a]
    assert np.mean(several) == pytest.approx(0.5, abs=4 * 0.5 / len(several) ** 0.5)
