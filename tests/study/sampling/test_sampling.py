"""Full ranking from drawn candidates: every draw of small cases, loops, coverage of bounds."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from itertools import combinations, product
from pathlib import Path
from statistics import mean

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import kgtrec
from kgtrec import study
from kgtrec._internal.csr import distinct, to_csr
from kgtrec.cli import cli
from kgtrec.study.sampling.counts import count_bounds, full_bounds, rank_bounds
from kgtrec.study.sampling.draw import EVEN, LEAST, STRATA, CandidateDraw, inclusion_targets
from kgtrec.study.sampling.estimates import FullCheck, half_width

MEASURES = {
    "MR": lambda r: r,
    "MRR": lambda r: 1 / r,
    "Hits@1": lambda r: float(r <= 1),
    "Hits@3": lambda r: float(r <= 3),
    "Hits@10": lambda r: float(r <= 10),
}


def small_graph(n: int = 9, n_rows: int = 22, seed: int = 0) -> kgtrec.Graph:
    rng = np.random.default_rng(seed)
    rows = rng.permutation(np.unique(rng.integers(0, (n, 2, n), (n_rows, 3)), axis=0))
    half = len(rows) // 2
    return kgtrec.Graph.from_arrays(
        train=rows[half:], test=rows[:half], n_entities=n, n_relations=2
    )


def tied_scores(questions: kgtrec.Questions, seed: int = 0) -> np.ndarray:
    shape = (len(questions), questions.n_entities)
    return np.random.default_rng(seed).integers(0, 5, shape).astype(np.float64)


def world(n: int, n_rows: int, seed: int) -> tuple[kgtrec.Questions, np.ndarray]:
    """Scores with some ties that put answers ahead."""
    questions = small_graph(n, n_rows).questions()
    scores = np.round(np.random.default_rng(seed).normal(size=(len(questions), n)), 1)
    scores[questions.instance_question, questions.answers.ids] += 2
    return questions, scores


def full_ranks(questions: kgtrec.Questions, scores: np.ndarray) -> list[float]:
    return kgtrec.rank(scores, questions)[0].rank().tolist()


def every_draw(questions: kgtrec.Questions) -> list[CandidateDraw]:
    """All draws of 1 or 2 from strata of two parts of the candidates, for each question separately.

    Estimates are sums over questions, so each question needs only its own draws.
    """
    options = []
    for question in range(len(questions)):
        left_out = {*questions.known[question].tolist(), *questions.answers[question].tolist()}
        others = [e for e in range(questions.n_entities) if e not in left_out]
        parts = others[: len(others) // 2], others[len(others) // 2 :]
        options.append(list(product(*(combinations(p, min(2, len(p))) for p in parts))))
    rounds = math.lcm(*map(len, options))
    n, shape = questions.n_entities, (len(questions), STRATA)
    draws = []
    for number in range(rounds):
        chosen = [of_one[number % len(of_one)] for of_one in options]
        keys = [
            [q * n + np.array(own[part], np.int64) for q, own in enumerate(chosen)]
            for part in (0, 1)
        ]
        empty = [[np.empty(0, np.int64)] for _ in range(STRATA - 2)]
        strata = tuple(to_csr(distinct(one), len(questions), n) for one in (*keys, *empty))
        population, drawn = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        for q in range(len(questions)):
            for part in (0, 1):
                union = {e for draw in options[q] for e in draw[part]}
                population[q, part], drawn[q, part] = len(union), len(chosen[q][part])
        draws.append(CandidateDraw(questions, strata, population, drawn, "hand", 0))
    return draws


def test_estimated_ranks_and_variances_over_every_draw() -> None:
    """Unbiased to rounding: the mean over all equally likely draws is the rank itself."""
    questions = small_graph().questions()
    scores = tied_scores(questions)
    true = full_ranks(questions, scores)
    counted = [study.count_sampled(draw, scores) for draw in every_draw(questions)]
    assert len(counted) >= 36
    estimates = np.array([counts.estimate_ranks() for counts in counted])
    np.testing.assert_allclose(estimates.mean(axis=0), true, rtol=1e-12)
    assert estimates.std(axis=0).max() > 0.5
    owner = questions.instance_question
    sums = [[row[owner == q].sum() for q in range(len(questions))] for row in estimates]
    told = np.mean([counts.rank_variances() for counts in counted], axis=0)
    np.testing.assert_allclose(told, np.var(sums, axis=0), rtol=1e-9, atol=1e-12)


def test_corrected_estimates_add_the_differences_of_the_second_draw() -> None:
    """The formula of the module, which is unbiased for any metric at the estimated ranks."""
    questions = small_graph(30, 14, seed=4).questions(sides="tail")
    scores = tied_scores(questions)
    true = full_ranks(questions, scores)
    counts = study.count_sampled(study.draw_candidates(questions, 10, seed=1), scores)
    guessed = counts.estimate_ranks().tolist()
    assert np.abs(np.subtract(guessed, true)).max() > 1
    probability = np.random.default_rng(5).uniform(0.2, 0.9, len(questions))
    chosen = np.arange(0, len(questions), 2)
    check, owner = FullCheck(chosen, probability, 0), questions.instance_question.tolist()
    found = study.full_estimates(counts, check, study.rank_some(scores, questions, chosen))
    for name, f in list(MEASURES.items())[1:]:
        gaps = dict.fromkeys(chosen.tolist(), 0.0)
        for question, rank, guess in zip(owner, true, guessed, strict=True):
            if question in gaps:
                gaps[question] += (f(rank) - f(guess)) / probability[question]
        due = (sum(map(f, guessed)) + sum(gaps.values())) / len(true)
        assert found[name.lower()] == pytest.approx(due, rel=1e-12)
        weights = [(1 - probability[q]) * gap**2 for q, gap in gaps.items()]
        if any(weights):
            row, reach = found.table().to_dict()[name], half_width(np.array(weights), 0.95)
            assert row["high"] == pytest.approx(min(1.0, due + reach / len(true)))
            assert row["low"] == pytest.approx(max(0.0, due - reach / len(true)))


def test_draws_are_what_they_say() -> None:
    """Sizes, no known answer, and each entity as often as by its inclusion probability."""
    questions = small_graph(40, 60).questions()
    n, repeats = 40, 50
    hits = np.zeros((len(questions), n))
    together = np.zeros((n, n))
    for seed in range(repeats):
        draw = study.draw_candidates(questions, 12, seed=seed)
        for csr in draw.strata:
            hits[np.repeat(np.arange(len(csr)), csr.lengths), csr.ids] += 1
        first = np.concatenate([csr[0] for csr in draw.strata])
        together[np.ix_(first, first)] += 1
    assert (draw.drawn.sum(axis=1) == np.minimum(12, draw.population.sum(axis=1))).all()
    assert (draw.drawn >= np.minimum(LEAST, draw.population)).all()
    rates = draw.drawn / np.maximum(draw.population, 1)
    for question in range(len(questions)):
        out = {*questions.known[question].tolist(), *questions.answers[question].tolist()}
        assert not hits[question, list(out)].any()
        assert draw.population[question].sum() == n - len(out)
        for csr, rate in zip(draw.strata, rates[question], strict=True):
            noise = 5 * math.sqrt(rate * (1 - rate) / repeats) + 1e-12
            assert (np.abs(hits[question, csr[question]] / repeats - rate) <= noise).all()
    # Pairs of the largest stratum of the first question, without replacement.
    stratum = int(np.argmax(draw.population[0]))
    size, number = draw.drawn[0, stratum], draw.population[0, stratum]
    due = size * (size - 1) / (number * (number - 1))
    for a, b in combinations(draw.strata[stratum][0].tolist(), 2):
        assert abs(together[a, b] / repeats - due) <= 5 * math.sqrt(due * (1 - due) / repeats)


@pytest.mark.parametrize("known", ["all", "raw"])
def test_counts_are_those_of_loops(known: str) -> None:
    questions = small_graph(30, 120).questions(filter=known)
    scores = tied_scores(questions)
    draw = study.draw_candidates(questions, 10, seed=3)
    counts = study.count_sampled(draw, scores)
    for i, (q, a) in enumerate(
        zip(questions.instance_question, questions.answers.ids, strict=True)
    ):
        for stratum, csr in enumerate(draw.strata):
            ids = csr[int(q)]
            assert counts.greater[stratum, i] == (scores[q, ids] > scores[q, a]).sum()
            assert counts.equal[stratum, i] == (scores[q, ids] == scores[q, a]).sum()
        others = [
            e
            for e in questions.answers[int(q)].tolist()
            if e != a and e not in questions.known[int(q)]
        ]
        assert counts.others_greater[i] == sum(scores[q, e] > scores[q, a] for e in others)
    assert counts.ranks.sampled


def test_some_questions_have_the_ranks_that_they_have_among_all(tmp_path: Path) -> None:
    questions = small_graph(30, 120).questions()
    scores = tied_scores(questions)
    full = kgtrec.rank(scores, questions)[0]
    chosen = np.array([1, 2, 5, len(questions) - 1])
    np.save(tmp_path / "s.npy", scores)
    rows: list[int] = []
    asked = zip(questions.side, questions.entity, questions.relation, strict=True)
    places = {key: place for place, key in enumerate(asked)}

    def function(batch):
        keys = zip(batch.side, batch.entity, batch.relation, strict=True)
        rows.extend(own := [places[key] for key in keys])
        return scores[own]

    own = np.isin(questions.instance_question, chosen)
    for source in (scores, scores[chosen], tmp_path / "s.npy", function):
        ranks = study.rank_some(source, questions, chosen)
        for name in ("greater", "equal", "candidates", "answer", "triple", "side", "given"):
            np.testing.assert_array_equal(getattr(ranks, name), getattr(full, name)[own])
    assert rows == chosen.tolist()  # the function scored no others


def test_bounds_without_full_rankings_hold() -> None:
    questions = small_graph(60, 60).questions()
    scores = np.random.default_rng(2).random((len(questions), 60))
    ranks = np.array(full_ranks(questions, scores))
    true = {name: mean(map(f, ranks.tolist())) for name, f in MEASURES.items()}
    outside, repeats = 0, 5
    for seed in range(repeats):
        estimates = study.estimate_full(scores, questions, 20, full=0, seed=seed)
        rows = estimates.table().to_dict()
        assert math.isnan(rows["MRR"]["estimate"])
        for name in ("MRR", "Hits@1", "Hits@3", "Hits@10"):
            assert rows[name]["low"] <= true[name] <= rows[name]["high"]
        low, high = estimates.counts.rank_bounds(0.025)
        outside += int(((ranks < low) | (ranks > high)).sum())
    assert outside <= 0.05 * repeats * len(ranks)


@pytest.mark.parametrize("known", ["time-aware", "static"])
def test_questions_at_a_time(known: str) -> None:
    rng = np.random.default_rng(8)
    facts = rng.integers(0, (30, 3, 30, 4), (130, 4))
    graph = kgtrec.Graph.from_arrays(
        train=facts[:100], test=facts[100:], n_entities=30, n_relations=3
    )
    questions = graph.questions("test", context="time", filter=known)
    scores = rng.normal(size=(len(questions), 30)).astype(np.float32)
    due = kgtrec.evaluate(scores, questions)
    found = study.estimate_full(scores, questions, 10, full=len(questions))
    for name in ("mrr", "hits@10"):
        assert found[name] == pytest.approx(due[f"both.micro.{name}"], abs=1e-12)


def test_everything_drawn_is_full_ranking() -> None:
    questions = small_graph(12, 40).questions()
    scores = tied_scores(questions)
    true = full_ranks(questions, scores)
    estimates = study.estimate_full(scores, questions, 50, full=0)
    for name, row in estimates.table().to_dict().items():
        due = mean(map(MEASURES[name], true))
        assert row["sampled"] == pytest.approx(due)
        assert (row["estimate"], row["low"], row["high"]) == pytest.approx((due,) * 3)
    assert estimates.cost() == 1
    assert str(estimates) == str(study.estimate_full(scores, questions, 50, full=3))
    assert "sampled and full ranks are the same" in str(estimates)
    everything = study.estimate_full(scores, questions, 10, full=len(questions))
    for name, row in everything.table().to_dict().items():
        due = mean(map(MEASURES[name], true))
        assert (row["estimate"], row["low"], row["high"]) == pytest.approx((due,) * 3)
        assert everything[name.lower()] == row["estimate"]


def test_what_is_needed_is_enough() -> None:
    questions, scores = world(300, 300, 7)
    estimates = study.estimate_full(scores, questions, 40, full=100, seed=1)
    within = 0.01
    needed = estimates.questions_needed("MRR", within)
    assert needed is not None
    assert 20 < needed < len(questions)
    widths = []
    for seed in range(3):
        rows = study.estimate_full(scores, questions, 40, full=needed, seed=seed).table().to_dict()
        widths.append((rows["MRR"]["high"] - rows["MRR"]["low"]) / 2)
    assert mean(widths) == pytest.approx(within, rel=0.35)
    assert estimates.questions_needed("MRR", 0.02) < needed
    assert estimates.cost(needed) > estimates.cost(0) > 40 / 300


def test_targets_are_proportional_and_at_most_one() -> None:
    rng = np.random.default_rng(0)
    for size in (3, 20, 60):
        weights = rng.pareto(1, 80)
        allowed = rng.random(80) < 0.9
        weights[~allowed] = 0
        target = inclusion_targets(weights, allowed, size)
        assert target.sum() == pytest.approx(size)
        assert (target <= 1).all()
        assert not target[~allowed].any()
        mixed = EVEN * allowed / allowed.sum() + (1 - EVEN) * weights / weights.sum()
        below = (target < 1) & allowed
        ratio = target[below] / mixed[below]
        np.testing.assert_allclose(ratio, ratio[0])
        assert (mixed[target == 1] * ratio[0] >= 1 - 1e-9).all()
    assert inclusion_targets(weights, allowed, 100).tolist() == allowed.tolist()
    even = inclusion_targets(np.zeros(80), allowed, 5)
    np.testing.assert_allclose(even[allowed], 5 / allowed.sum())


def test_few_terms_give_wide_intervals() -> None:
    from scipy.special import ndtri, stdtrit

    assert half_width(np.full(7, 2.0), 0.95) == pytest.approx(stdtrit(7, 0.975) * math.sqrt(14))
    assert half_width(np.full(10_000, 1.0), 0.9) == pytest.approx(ndtri(0.95) * 100, rel=1e-3)
    assert half_width(np.zeros(3), 0.9) == 0


def test_every_kind_of_weights(tmp_path: Path) -> None:
    graph = small_graph(30, 160)
    questions, n = graph.questions(), 30
    weights = np.zeros((4, n))
    for head, relation, tail in graph.split("train").tolist():
        weights[relation, head] += 1
        weights[2 + relation, tail] += 1
    weights **= 0.75
    np.save(tmp_path / "w.npy", weights)
    same = [
        study.draw_candidates(questions, 12, by, seed=5)
        for by in ("frequency", weights, tmp_path / "w.npy", lambda s, r: weights[2 * s + r])
    ]
    for other in same[1:]:
        np.testing.assert_array_equal(other.lists.ids, same[0].lists.ids)
    typed = study.draw_candidates(questions, 12, study.fitting_observed(graph), seed=5)
    binary = study.draw_candidates(questions, 12, (weights > 0).astype(float), seed=5)
    np.testing.assert_array_equal(typed.lists.ids, binary.lists.ids)
    even = study.draw_candidates(questions, 12, "uniform")
    assert (np.count_nonzero(even.population, axis=1) == 1).all()
    allowed = np.arange(0, n, 1)[:25]
    narrow = graph.questions(entities=allowed)
    assert study.draw_candidates(narrow, 10).lists.ids.max() < 25


def run(*words: str) -> str:
    result = CliRunner().invoke(cli, ["estimate", "--graph", "graph", *words])
    assert result.exit_code == 0, result.output + result.stderr
    return result.stdout


def test_in_three_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("graph").mkdir()
    for name, rows in small_graph(30, 160).splits.items():
        np.savetxt(f"graph/{name}.txt", rows, "%d", "\t")
    scores = tied_scores(kgtrec.read_graph("graph").questions())
    np.save("scores.npy", scores)
    same = ("--size", "12", "--full", "20", "--seed", "3")
    assert run(*same, "--write-candidates", "c.npy") == ""
    np.save("s.npy", np.take_along_axis(scores, np.load("c.npy").astype(np.int64), axis=1))
    apart = (*same, "--score-columns", "candidates", "--scores", "s.npy")
    assert "nan" in run(*apart, "--write-full-questions", "q.npy")
    np.save("f.npy", scores[np.load("q.npy")])
    assert run(*apart, "--full-scores", "f.npy") == run("--scores", "scores.npy", *same)


def tail(seen: int, drawn: int, population: int, special: int) -> Fraction:
    """P(at most `seen` special candidates are drawn), by counting."""
    ways = sum(
        math.comb(special, j) * math.comb(population - special, drawn - j)
        for j in range(min(seen, special, drawn) + 1)
        if drawn - j <= population - special
    )
    return Fraction(ways, math.comb(population, drawn))


def slow_bounds(seen: int, drawn: int, population: int, miss: float) -> tuple[int, int]:
    possible = range(seen, population - drawn + seen + 1)
    high = [m for m in possible if tail(seen, drawn, population, m) > miss]
    low = [m for m in possible if 1 - tail(seen - 1, drawn, population, m) > miss]
    return min(low), max(high)


@st.composite
def draws(draw: st.DrawFn) -> tuple[int, int, int]:
    population = draw(st.integers(0, 60))
    drawn = draw(st.integers(0, population))
    return draw(st.integers(0, drawn)), drawn, population


@given(
    st.lists(draws(), min_size=1, max_size=6), st.sampled_from([0.00503, 0.02497, 0.1003, 0.3997])
)
def test_bounds_invert_the_exact_tails(cases: list[tuple[int, int, int]], miss: float) -> None:
    low, high = count_bounds(*np.array(cases).T, miss)
    assert list(zip(low.tolist(), high.tolist(), strict=True)) == [
        slow_bounds(*case, miss) for case in cases
    ]


def test_bounds_of_large_populations_agree_with_scipy() -> None:
    from scipy.stats import hypergeom

    rng = np.random.default_rng(3)
    population = rng.integers(10_000, 3_000_000, 60)
    drawn = rng.integers(100, 1000, 60)
    seen = rng.integers(0, drawn + 1)
    low, high = count_bounds(seen, drawn, population, 0.025)
    np.testing.assert_array_less(0.025, hypergeom.cdf(seen, population, high, drawn))
    next_one = np.minimum(high + 1, population)
    beyond = hypergeom.cdf(seen, population, next_one, drawn)
    assert (beyond[high < population - drawn + seen] <= 0.025 + 1e-9).all()
    before = hypergeom.sf(seen - 1, population, np.maximum(low - 1, 0), drawn)
    assert (before[low > seen] <= 0.025 + 1e-9).all()
    np.testing.assert_array_less(0.025, hypergeom.sf(seen - 1, population, low, drawn))


def drawn(questions: kgtrec.Questions, k: int, rng: np.random.Generator) -> kgtrec.Questions:
    lists = []
    for question in range(len(questions)):
        known = questions.known[question]
        others = np.setdiff1d(np.arange(questions.n_entities), known)
        chosen = rng.choice(others, min(k, len(others)), replace=False)
        lists.append(np.concatenate([questions.answers[question], chosen]))
    return questions.restrict(candidates=lists)


def test_bounds_of_ranks_are_exact_and_those_of_metrics_cover() -> None:
    """Over many samples of one ranking."""
    rng = np.random.default_rng(11)
    questions, scores = world(60, 60, 11)
    full = kgtrec.evaluate(scores, questions)
    held: Counter[str] = Counter()
    for _ in range(20):
        sampled = kgtrec.rank(scores, drawn(questions, 15, rng))[0]
        for name, _, _, low, high in full_bounds(sampled, 0.9).rows:
            held[name] += low <= full[name.lower()] <= high
    assert min(held.values()) >= 14, held  # 18 expected; P(13 or fewer) below 1 %
    sizes = sampled.candidates - 1, sampled.full_candidates - 1
    bounds = rank_bounds(sampled, 0.9)
    for *found, greater, equal, size, population in zip(
        bounds.low,
        bounds.estimate,
        bounds.high,
        sampled.greater,
        sampled.equal,
        *sizes,
        strict=True,
    ):
        low, high = (
            slow_bounds(int(seen), int(size), int(population), 0.05)[end]
            for end, seen in enumerate((greater, greater + equal))
        )
        estimate = 1 + (greater + equal / 2) * population / size
        assert found == pytest.approx([low + 1, estimate, high + 1])


def test_a_whole_population_leaves_no_doubt() -> None:
    questions, scores = world(30, 40, 2)
    full = kgtrec.evaluate(scores, questions)
    every = [np.arange(30)] * len(questions)
    sampled = kgtrec.rank(scores, questions.restrict(candidates=every))[0]
    bounds = rank_bounds(sampled)
    np.testing.assert_array_equal(bounds.estimate, full.ranks.rank())
    np.testing.assert_array_equal(bounds.low, full.ranks.rank("optimistic"))
    np.testing.assert_array_equal(bounds.high, full.ranks.rank("pessimistic"))
    table = {row[0]: row[1:] for row in full_bounds(sampled).rows}
    mr, mrr = full["both.realistic.micro.mr"], full["both.realistic.micro.mrr"]
    assert table["MR"] == pytest.approx((mr, mr, mr, mr), rel=1e-12)
    assert table["MRR"][2] <= mrr <= table["MRR"][3]
    assert table["MRR"][2] == pytest.approx(full["both.pessimistic.micro.mrr"], rel=1e-12)
    assert table["MRR"][3] == pytest.approx(full["both.optimistic.micro.mrr"], rel=1e-12)
    parts = [sampled.subset(np.arange(*ends)) for ends in ((0, 9), (9, len(sampled)))]
    assert str(full_bounds(kgtrec.Ranks.concat(parts))) == str(full_bounds(sampled))
