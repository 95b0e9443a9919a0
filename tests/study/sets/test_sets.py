"""Answer sets against sets and loops, on small worlds with many ties."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, permutations, product
from statistics import mean, median
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sets_oracle import Oracle, best_threshold, judged, limits_of, most_of, world

import kgtrec
from kgtrec._internal.bootstrap import Resampling
from kgtrec.study import answer_sets
from kgtrec.study.sets.sets import AnswerSets

FEW = Resampling(resamples=100)
SEEDS = st.integers(0, 10_000)
CLAIMS = st.sampled_from(["0.1", "0.25", "0.5", "1/3"])


def assert_judged(sets: AnswerSets, due: dict[str, float]) -> None:
    """Every measure of the oracle is that of the sets."""
    for key, value in due.items():
        assert sets[key] == pytest.approx(value, rel=1e-12, abs=1e-12, nan_ok=True), key


@given(SEEDS, st.integers(1, 13), st.sampled_from(["all", "none"]))
def test_best_sets_are_those_of_sorted_lists(seed: int, k: int, ties: str) -> None:
    test, _ = world(seed, levels=0)
    sets = answer_sets(test.ranks, f"top:{k}", ties=ties, resampling=FEW)
    assert_judged(sets, judged(test, test.best(dict.fromkeys(test.questions, k), ties)))
    assert "coverage" not in sets.values


@given(SEEDS, st.integers(1, 8), st.sampled_from(["all", "none"]))
def test_ranks_among_restricted_candidates_have_sets_of_these(seed: int, k: int, ties: str) -> None:
    test, _ = world(seed, levels=0)
    kept = [{*range(1, 12, 2)} | test.answers[question] for question in test.questions]
    asked = test.asked.restrict(candidates=[sorted(each) for each in kept])
    ranks = kgtrec.rank(test.matrix, asked, progress=False)[0]
    sets = answer_sets(ranks, f"top:{k}", ties=ties, resampling=FEW)
    scores = {
        question: {c: score for c, score in test.scores[question].items() if c in among}
        for question, among in zip(test.questions, kept, strict=True)
    }
    part = replace(test, scores=scores)
    assert_judged(sets, judged(part, part.best(dict.fromkeys(part.questions, k), ties)))


@given(SEEDS, st.integers(1, 13), st.sampled_from(["all", "none"]))
def test_ties_at_the_border_are_all_in_or_all_out(seed: int, k: int, ties: str) -> None:
    test, _ = world(seed, levels=4)
    sets = answer_sets(test.ranks, f"top:{k}", ties=ties, resampling=FEW)
    named = test.best(dict.fromkeys(test.questions, k), ties)
    due = judged(test, named)
    for key in ("micro.recall", "macro.recall", "any", "all"):
        assert sets[key] == pytest.approx(due[key], rel=1e-12)
    for size, question in zip(sets.sizes, test.questions, strict=True):
        shown = any(test.at_border(question, answer, k) for answer in test.answers[question])
        exact = len(named[question])
        assert size == exact if shown else (size <= exact if ties == "all" else size >= exact)
    assert len(sets.notes) == bool(test.ranks.macro_equal.any())


@pytest.mark.parametrize("seed", range(12))
def test_expected_ties_are_means_over_all_orders(seed: int) -> None:
    test, _ = world(seed, levels=2, n=5)
    k = seed % 4 + 1
    sets = answer_sets(test.ranks, f"top:{k}", ties="expected", resampling=FEW)
    for number, question in enumerate(test.questions):
        scores, answers = test.scores[question], test.answers[question]
        cases = []
        for order in permutations(scores):
            listed = sorted(order, key=lambda c, scores=scores: -scores[c])[:k]
            hits = len(answers & {*listed})
            cases.append((hits, hits > 0, hits == len(answers)))
        hits, some, every = (mean(map(float, column)) for column in zip(*cases, strict=True))
        assert sets.sizes[number] == min(k, len(scores))
        assert sets.columns[number, 1] == pytest.approx(hits, rel=1e-12)
        assert sets.any_and_all[:, number] == pytest.approx([some, every], rel=1e-12)


@given(
    SEEDS,
    CLAIMS,
    st.sampled_from(["answer", "question-any", "question-all"]),
    st.sampled_from(["", "relation"]),
    st.integers(1, 8),
)
def test_conformal_limits_are_order_statistics_of_valid(
    seed: int, error: str, cover: str, per: str, least: int
) -> None:
    test, valid = world(seed, levels=20)
    sets = answer_sets(
        test.ranks,
        f"conformal:{error}",
        valid=valid.ranks,
        per=per,
        least=least,
        cover=cover,
        resampling=FEW,
    )
    most = most_of(valid, test, Fraction(error), cover, per, least)
    named = test.best(most, "all")
    due = judged(test, named)
    for key in ("micro.recall", "macro.recall", "any", "all"):
        assert sets[key] == pytest.approx(due[key], rel=1e-12)
    units = test.units(cover)
    covered = {unit: test.covers(named, unit, cover) for unit in units}
    assert sets["coverage"] == pytest.approx(mean(map(float, covered.values())), rel=1e-12)
    claim = float(1 - Fraction(error))
    relations = sorted({test.relation_of(unit) for unit in units})
    gaps = [
        abs(mean(float(covered[u]) for u in units if test.relation_of(u) == r) - claim)
        for r in relations
    ]
    assert sets["covgap"] == pytest.approx(mean(gaps), rel=1e-12)
    unlimited = any(math.isinf(k) for k in most.values())
    assert not unlimited or any("all candidates" in note for note in sets.notes)


@given(SEEDS)
def test_slices_are_sets_of_these_questions(seed: int) -> None:
    test, valid = world(seed, levels=0)
    sets = answer_sets(test.ranks, "conformal:0.5", valid=valid.ranks, resampling=FEW)
    most = most_of(valid, test, Fraction("0.5"), "answer", "", 1)
    named = test.best(most, "all")
    table = sets.slice("relation")
    assert len(table) == len({question[1] for question in test.questions})
    for relation, questions, answers, *values in table.rows:
        part = test.only([q for q in test.questions if q[1] == int(str(relation))])
        due = judged(part, named)
        keys = ("size", "micro.precision", "micro.recall", "micro.f1", "macro.f1", "micro.recall")
        assert (questions, answers) == (len(part.questions), len(part.units("answer")))
        assert values == pytest.approx([due[key] for key in keys], rel=1e-12, nan_ok=True)


def test_slices_of_answers_are_refused() -> None:
    test, _ = world(1, levels=9)
    sets = answer_sets(test.ranks, "top:2", resampling=FEW)
    with pytest.raises(kgtrec.UsageError, match="several parts"):
        sets.slice("quartile", graph=test.asked.graph)


def test_the_table_has_every_value_between_its_ends() -> None:
    test, valid = world(5, levels=0, n=40)
    sets = answer_sets(test.ranks, "conformal:0.2", valid=valid.ranks)
    keys = []
    for _, key, value, low, high in sets.table().rows:
        keys.append(key)
        assert value == sets[str(key)]
        assert math.isnan(float(low)) or low <= value <= high
    first = [*sets.values]
    assert keys == [*first[:8], "size.median", *first[8:12], "coverage", "covgap"]
    assert sets["size.median"] == median(sets.sizes)
    with pytest.raises(kgtrec.UsageError, match="no measure 'f1'"):
        sets["f1"]


@given(SEEDS, st.integers(1, 13), st.sampled_from(["all", "none"]), st.integers(0, 6))
def test_scores_show_all_ties_at_the_border(seed: int, k: int, ties: str, levels: int) -> None:
    test, _ = world(seed, levels)
    sets = answer_sets(test.matrix, f"top:{k}", test.asked, ties=ties, keep=True, resampling=FEW)
    named = test.best(dict.fromkeys(test.questions, k), ties)
    assert_judged(sets, judged(test, named))
    assert sets.sets is not None
    assert [{*sets.sets[q].tolist()} for q in range(len(named))] == [*named.values()]
    assert not sets.notes


@given(SEEDS, st.integers(1, 4))
def test_the_k_best_are_greedy_and_no_other_k_have_more_expected_hits(seed: int, k: int) -> None:
    """Scores as probabilities of being an answer: the greedy choice equals enumeration."""
    test, _ = world(seed, levels=0, n=6)
    matrix = test.matrix / test.matrix.max()
    sets = answer_sets(matrix, f"top:{k}", test.asked, keep=True, resampling=FEW)
    assert sets.sets is not None
    for number, scores in enumerate(test.scores.values()):
        best = max(
            sum(matrix[number, candidate] for candidate in chosen)
            for chosen in combinations(scores, min(k, len(scores)))
        )
        named = sets.sets[number]
        assert len(named) == min(k, len(scores))
        assert matrix[number, named].sum() == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_the_k_best_of_an_oracle_reach_the_recall_that_samples_of_it_miss(k: int) -> None:
    """Max-K: k samples of the answers' distribution may repeat (erratum of Mei et al. 2018)."""
    test, _ = world(6, levels=0)
    oracle = np.zeros_like(test.matrix)
    for row, question in enumerate(test.questions):
        oracle[row, [*test.answers[question]]] = 1 / len(test.answers[question])
    sets = answer_sets(oracle, f"top:{k}", test.asked, ties="expected", resampling=FEW)
    for number, answers in enumerate(test.answers.values()):
        recall = sets.columns[number, 5]
        sampled = mean(len({*draw}) / len(answers) for draw in product(answers, repeat=k))
        best = max(len({*some} & answers) / len(answers) for some in combinations(range(12), k))
        assert recall == pytest.approx(best)
        assert sampled < best - 1e-9 if len(answers) > 1 and k > 1 else sampled == best
    assert max(map(len, test.answers.values())) > 1


@given(SEEDS, CLAIMS, st.sampled_from(["", "relation"]), st.integers(0, 6), st.booleans())
def test_conformal_sets_of_scores_are_those_of_places_and_of_gaps(
    seed: int, error: str, per: str, levels: int, lower: bool
) -> None:
    test, valid = world(seed, levels)
    sign = -1 if lower else 1
    for policy in ("conformal", "conformal-gap"):
        sets = answer_sets(
            sign * test.matrix,
            f"{policy}:{error}",
            test.asked,
            valid=sign * valid.matrix,
            valid_questions=valid.asked,
            per=per,
            least=4,
            higher_is_better=not lower,
            resampling=FEW,
        )
        if policy == "conformal":
            most = most_of(valid, test, Fraction(error), "answer", per, 4)
            named = test.best(most, "all")
        else:
            limit = limits_of(
                valid,
                lambda q, a: max(valid.scores[q].values()) - valid.scores[q][a],
                Fraction(error),
                "answer",
                per,
                4,
            )
            lowest = {q: max(test.scores[q].values()) - limit(q[1]) for q in test.questions}
            named = test.above(lowest)
        assert_judged(sets, judged(test, named))


@given(SEEDS, st.integers(0, 30), st.sampled_from(["best-f1", "precision=1/3", "precision=0.7"]))
def test_thresholds_are_the_best_on_valid(seed: int, levels: int, aim: str) -> None:
    test, valid = world(seed, levels)
    precision = Fraction(aim.partition("=")[2]) if "=" in aim else None
    counts = [sum(u[1] == r for u in valid.units("answer")) for r in range(3)]
    least = sorted(counts)[1]
    alone = [r for r in range(3) if counts[r] >= least]
    others = [r for r in range(3) if r not in alone and counts[r]]
    for per in ("", "relation"):
        sets = answer_sets(
            test.matrix,
            f"threshold:{aim}",
            test.asked,
            valid=valid.matrix,
            valid_questions=valid.asked,
            per=per,
            least=max(least, 1),
            resampling=FEW,
        )
        groups = [[r] for r in alone if counts[r]] + [others] * bool(others) if per else [[0, 1, 2]]
        lowest = dict.fromkeys(test.questions, math.inf)
        for group in groups:
            threshold = best_threshold(valid, group, precision)
            fallback = group is others and bool(per)
            for question in test.questions:
                if question[1] in group or (fallback and not counts[question[1]]):
                    lowest[question] = threshold
        assert_judged(sets, judged(test, test.above(lowest)))


@pytest.mark.parametrize("grid", [2, 3])
def test_the_search_for_thresholds_does_not_depend_on_the_grid(
    grid: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kgtrec.study.sets.thresholds.GRID", grid)
    for seed in range(8):
        test_thresholds_are_the_best_on_valid.hypothesis.inner_test(  # type: ignore[attr-defined]
            seed, 200, "best-f1" if seed % 2 else "precision=0.2"
        )


@given(SEEDS, st.integers(0, 6), st.integers(-6, 6), st.booleans())
def test_thresholds_of_users_are_scores(seed: int, levels: int, at: int, lower: bool) -> None:
    test, _ = world(seed, levels)
    sign = -1 if lower else 1
    sets = answer_sets(
        sign * test.matrix,
        f"threshold:{sign * at}/8",
        test.asked,
        higher_is_better=not lower,
        resampling=FEW,
    )
    assert_judged(sets, judged(test, test.above(dict.fromkeys(test.questions, at / 8))))


def test_models_of_vectors_have_the_sets_of_their_scores() -> None:
    random = np.random.default_rng(0)
    test, valid = world(4, levels=3, n=30)
    entities = random.normal(size=(30, 5)).astype(np.float32)
    models = [
        kgtrec.Factors(random.normal(size=(len(each.asked), 5)).astype(np.float32), entities)
        for each in (test, valid)
    ]
    for policy in ("top:3", "conformal:0.2", "conformal-gap:0.2", "threshold:best-f1"):
        tables = []
        for form in (lambda model: model, lambda model: model.scores(0, len(model.queries))):
            fitted = {"valid": form(models[1]), "valid_questions": valid.asked}
            sets = answer_sets(
                form(models[0]), policy, test.asked, **fitted if policy != "top:3" else {}
            )
            tables.append(sets.table().to_csv())
        assert tables[0] == tables[1], policy


def resplit(ranks: kgtrec.Ranks, rows: Any, split: str) -> kgtrec.Ranks:
    """Some of the ranks, as if they were those of a split."""
    part = ranks.subset(rows)
    questions = {**part.manifest["questions"], "split": split, "filter_splits": ["train"]}
    part.manifest["questions"] = questions
    return part


@pytest.mark.parametrize(("per", "n_relations"), [("", 1), ("relation", 3)])
@pytest.mark.parametrize("levels", [10_000, 7])
@pytest.mark.slow
def test_coverage_reaches_the_claim_over_random_splits(
    per: str, n_relations: int, levels: int
) -> None:
    """Every triple has its own question, so that answers are exchangeable."""
    from scipy.stats import binom

    random = np.random.default_rng(3)
    n, error, splits = 60 * n_relations, Fraction("0.2"), 2000
    heads = np.arange(n)
    triples = np.stack([heads, heads % n_relations, random.integers(0, n, n)], axis=1)
    graph = kgtrec.Graph.from_arrays(test=triples, n_entities=n, n_relations=n_relations)
    questions = graph.questions(sides="tail")
    scores = random.integers(0, levels, (n, n)).astype(np.float32)
    ranks = kgtrec.rank(scores, questions, progress=False)[0]
    assert len(ranks) == n
    covered = np.zeros((n_relations, 2), int)
    for _ in range(splits):
        order = random.permutation(n)
        valid = resplit(ranks, np.sort(order[: 2 * n // 3]), "valid")
        test = resplit(ranks, np.sort(order[2 * n // 3 :]), "test")
        sets = answer_sets(test, f"conformal:{error}", valid=valid, per=per, least=1)
        for relation in range(n_relations):
            rows = np.flatnonzero(test.relation == relation)
            if len(rows):  # an answer per split, so that splits are independent
                covered[relation] += (int(sets.inside[random.choice(rows)]), 1)
    for hits, total in covered.tolist():
        assert hits >= binom.ppf(1e-5, total, float(1 - error))
        if levels > 7:  # without ties, coverage exceeds the claim by less than 1 / (n + 1)
            assert hits <= binom.ppf(1 - 1e-5, total, float(1 - error) + 1 / 30)


def test_oracle_notices_another_border() -> None:
    test, _ = world(1, levels=0)
    wrong = judged(test, test.best(dict.fromkeys(test.questions, 3), "all"))
    sets = answer_sets(test.ranks, "top:2", resampling=FEW)
    assert sets["micro.recall"] != wrong["micro.recall"]
    assert isinstance(test, Oracle)
