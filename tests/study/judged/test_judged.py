"""From a pool to corrected measures: draws, files, plans, and values against other functions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from judged_cases import World, samples_of, synthetic_world
from pool_cases import small

import kgtrec
from kgtrec.errors import FileError, UsageError
from kgtrec.study.judged.draw import (
    QuestionSample,
    draw_questions,
    probabilities_of,
    read_drawn_names,
    read_question_sample,
)
from kgtrec.study.judged.labels import JudgeLabels, agreement_with_people, read_judge
from kgtrec.study.judged.planning import plan_from_pilot, plan_from_probabilities
from kgtrec.study.judged.report import correct_measures
from kgtrec.study.pooling.completion import Qrels, complete
from kgtrec.study.pooling.edited_files import Judgements
from kgtrec.study.pooling.pool import make_pool
from kgtrec.study.pooling.seeds import seed_questions
from kgtrec.study.pooling.unjudged import evaluate_judged, mean_columns


@pytest.fixture(scope="module")
def world() -> World:
    return synthetic_world(n_systems=3, n_triples=250, n_entities=40)


def labels_of(world: World, labels: np.ndarray) -> JudgeLabels:
    qrels = replace(world.people, labels=labels)
    return JudgeLabels(qrels, labels.astype(np.float64), ~world.is_seed)


def all_of(world: World) -> QuestionSample:
    total = len(world.people)
    return QuestionSample(world.people.ids, np.arange(total), np.ones(total))


# --- Draws ----------------------------------------------------------------------------------------


def test_even_draws_have_the_size_and_unequal_ones_the_probabilities(tmp_path: Path) -> None:
    seeds = replace(small(), seeds=[(1, 0, 2), (2, 0, 3), (3, 0, 0)]).questions
    total = len(seeds)
    drawn = draw_questions(seeds, 2, seed=3)
    assert (len(drawn), drawn.probability.tolist()) == (2, [2 / total] * 2)
    weights = np.arange(1.0, total + 1)
    p = probabilities_of(weights, 3)
    assert p.sum() == pytest.approx(3)
    times = np.zeros(total)
    for seed in range(600):
        sample = draw_questions(seeds, 3, weights=weights, seed=seed)
        times[sample.drawn] += 1
        np.testing.assert_array_equal(sample.probability, p[sample.drawn])
    np.testing.assert_allclose(times / 600, p, atol=0.08)
    drawn.write(tmp_path / "drawn.tsv")
    again = read_question_sample(tmp_path / "drawn.tsv", seeds)
    np.testing.assert_array_equal(again.drawn, drawn.drawn)
    np.testing.assert_array_equal(again.probability, drawn.probability)
    assert read_drawn_names(tmp_path / "drawn.tsv") == {seeds.ids[i] for i in drawn.drawn}


def test_rare_questions_can_be_drawn_and_categories_have_equal_shares() -> None:
    p = probabilities_of([0, 1, 1, 1, 5], 2)
    assert (p > 0).all()
    assert p[4] == 1
    graph = kgtrec.Graph.from_arrays(
        train=[(0, 0, 1), (2, 0, 3), (0, 1, 1), (0, 1, 2), (0, 1, 3)],
        test=[(1, 0, 2), (1, 1, 2), (2, 1, 4), (3, 1, 5)],
        n_entities=6,
    )  # a 1-1 relation with two questions, and a 1-N relation with six
    seeds = seed_questions(graph, graph.split("test"))
    p = np.zeros(8)
    for seed in range(50):
        sample = draw_questions(seeds, 3, by="category", seed=seed)
        p[sample.drawn] = sample.probability
    np.testing.assert_allclose(p, np.where(seeds.questions.relation == 0, 0.75, 0.25))
    with pytest.raises(UsageError, match="category"):
        draw_questions(seeds, 2, by="relation")


# --- Values ---------------------------------------------------------------------------------------


def test_values_are_those_of_the_completed_labels(world: World) -> None:
    """If all are judged, people's values are those of `complete`, for other labels the judge's."""
    case_ = small()
    lists = case_.lists()
    pool = make_pool(lists, case_.questions, 3)
    rng = np.random.default_rng(0)
    both = []
    for _ in range(2):
        said = {tuple(t): int(rng.random() < 0.5) for t in pool.triples.tolist()}
        both.append(complete(case_.questions, pool, Judgements(said, len(said))))
    people, judge = both
    qrels = judge.qrels()
    labels = JudgeLabels(qrels, qrels.labels.astype(float), qrels.labels >= 0)
    sample = QuestionSample(qrels.ids, np.arange(len(qrels)), np.ones(len(qrels)))
    measures = ["map_cut_20", "ndcg_cut_20", "bpref"]
    found = correct_measures(lists, labels, people, sample, measures)
    columns = mean_columns(measures)
    for number, system in enumerate(lists):
        for done, values in ((judge, found.judge), (people, found.corrected.value)):
            expected = [*evaluate_judged(system, done, columns).values()]
            np.testing.assert_allclose(values[number :: len(lists)], expected, rtol=1e-12)


def test_micro_metrics_are_over_all_answers() -> None:
    """The mean reciprocal rank of all answers, ranked above the other candidates of the lists."""
    case_ = small()
    lists = case_.lists()
    pool = make_pool(lists, case_.questions, 3)
    said = {tuple(t): number % 2 for number, t in enumerate(pool.triples.tolist())}
    done = complete(case_.questions, pool, Judgements(said, len(said)))
    qrels = done.qrels()
    labels = JudgeLabels(qrels, qrels.labels.astype(float), qrels.labels >= 0)
    sample = QuestionSample(qrels.ids, np.arange(len(qrels)), np.ones(len(qrels)))
    found = correct_measures(lists, labels, done, sample, ["kg_mrr"])
    for system, value in zip(lists, found.corrected.value, strict=False):
        inverse, n_answers = 0.0, 0
        for question in range(len(qrels)):
            mine = qrels.owner == question
            true = set(qrels.entities[mine & (qrels.labels == 1)].tolist())
            order = system.entities[system.owner == question].tolist()
            assert true <= set(order)
            wrong = 0
            for entity in order:
                wrong += entity not in true
                inverse += (entity in true) / (wrong + 1)
            n_answers += len(true)
        assert value == pytest.approx(inverse / n_answers, rel=1e-12)


def test_tables_have_pairs_orders_and_sentences(world: World) -> None:
    judge = labels_of(world, world.judge("20 %"))
    lists = world.systems.systems
    done = Done(world)
    drawn = draw_of(world, 80)
    found = correct_measures(lists, judge, done, drawn, ["map_cut_20", "recip_rank"])
    table = found.table()
    assert [row[:2] for row in table.rows[:3]] == [("map_cut_20", f"s{i}") for i in range(3)]
    assert (found.more_questions >= 0).all()
    gap = found.corrected.value[0] - found.corrected.value[2]
    measure, first, second, difference, reach, p, holm = found.pair_table().rows[1]
    assert (measure, first, second) == ("map_cut_20", "s0", "s2")
    assert difference == pytest.approx(gap)
    assert (p < 0.05) == (abs(difference) > reach)
    assert p <= holm <= 1
    orders = found.order_table().rows
    assert [row[1] for row in orders[:3]] == ["judge alone", "people alone", "corrected"]
    assert all(low <= tau <= high for *_, tau, low, high in orders)
    assert len(found.sentences()) == 2
    few = correct_measures(lists, judge, done, draw_of(world, 9), ["map_cut_20"])
    assert "let them judge 1 more" in few.sentences()[-1]
    assert np.isnan(few.corrected.reach()).all()
    known = correct_measures(lists, judge, done, all_of(world), ["map_cut_20"])
    assert known.sentences() == ["people have judged all 303 questions: nothing is estimated"]


@dataclass(frozen=True)
class Done:
    """What `correct_measures` reads of a completion."""

    world: World

    def qrels(self) -> Qrels:
        return self.world.people


def draw_of(world: World, n: int, seed: int = 0) -> QuestionSample:
    rng, total = np.random.default_rng(seed), len(world.people)
    drawn = np.sort(rng.choice(total, n, replace=False))
    return QuestionSample(world.people.ids, drawn, np.full(n, n / total))


def test_agreement_is_over_candidates_of_drawn_questions(world: World) -> None:
    judge = labels_of(world, world.judge("20 %"))
    drawn = np.arange(50)
    found = agreement_with_people(judge, Done(world), drawn)
    compared = ~world.is_seed & (world.people.owner < 50)
    assert len(found) == compared.sum()
    same = world.people.labels[compared] == judge.qrels.labels[compared]
    assert found.share() == pytest.approx(same.mean())
    assert (
        found.count_pairs()[0, 1]
        == ((world.people.labels[compared] == 1) & (judge.qrels.labels[compared] == 0)).sum()
    )


# --- Plans ----------------------------------------------------------------------------------------


def test_a_plan_from_a_pilot_reaches_its_target(world: World) -> None:
    judge = world.judge("5 %")
    lists, labels = world.systems.systems, labels_of(world, judge)
    pilot = correct_measures(lists, labels, Done(world), draw_of(world, 60))
    plan = plan_from_pilot(pilot, 0.025)
    n = int(plan.even[0])
    assert 10 < n < 200
    people = world.values(world.people.labels)
    reach = [
        world.systems.estimate(sample).reach()[0]
        for sample in samples_of(world.values(judge), people, n, 100)
    ]
    assert np.mean(reach) == pytest.approx(0.025, rel=0.25)
    assert plan_from_pilot(pilot, 0.01).size > plan.size
    assert plan_from_pilot(pilot, 1e-9).size == len(world.people)
    few = correct_measures(lists, labels, Done(world), draw_of(world, 9))
    with pytest.raises(UsageError, match="let people judge 10 or more"):
        plan_from_pilot(few, 0.1)


def test_a_plan_from_right_probabilities_reaches_its_target(world: World) -> None:
    """People's labels are drawn from the judge's probabilities; unsure questions come first."""
    rng = np.random.default_rng(0)
    unsure = rng.random(len(world.people)) < 0.3
    p = np.where(
        unsure[world.people.owner], 0.35, np.where(rng.random(len(world.is_seed)) < 0.2, 1, 0)
    )
    p = np.where(world.is_seed, 1.0, p)
    labels = JudgeLabels(
        replace(world.people, labels=(p >= 0.5).astype(np.int64)), p, ~world.is_seed
    )
    lists = world.systems.systems
    plan = plan_from_probabilities(lists, labels, 0.02, ["map_cut_20"])
    assert plan.weights[unsure].mean() > 1.5 * plan.weights[~unsure].mean()
    assert (plan.best < plan.even).all()
    people = world.values((rng.random(len(p)) < p).astype(np.int64))
    judge, n = world.values(labels.qrels.labels), int(plan.best[0])
    reach = [
        world.systems.estimate(sample).reach()[0]
        for sample in samples_of(judge, people, n, 100, plan.weights)
    ]
    assert np.mean(reach) == pytest.approx(0.02, rel=0.25)
    with pytest.raises(UsageError, match="the judge gives labels only"):
        plan_from_probabilities(lists, labels_of(world, world.judge("5 %")), 0.02)


# --- Files of judges ------------------------------------------------------------------------------


def test_both_forms_of_a_judge_say_the_same(tmp_path: Path) -> None:
    case_ = small()
    seeds = case_.questions
    pool = make_pool(case_.lists(), seeds, 2)
    rng = np.random.default_rng(0)
    values = np.round(rng.random(len(pool)), 2)
    values[0] = 0.5
    qrels, sheet = [], ["head\trelation\ttail\tlabel"]
    for triple, names, value in zip(pool.triples.tolist(), pool.questions, values, strict=True):
        sheet.append("\t".join([*map(str, triple), str(value)]))
        for name, end in zip(names, (0, 2), strict=True):
            qrels += [f"{name} 0  {triple[end]} {value}"] * bool(name)
    found = []
    for lines in (qrels, sheet):
        path = tmp_path / "judge"
        path.write_text("\n".join(lines) + "\n")
        found.append(read_judge(path, seeds, pool))
    first, second = found
    np.testing.assert_array_equal(first.probability, second.probability)
    np.testing.assert_array_equal(first.qrels.labels, (first.probability >= 0.5).astype(int))
    assert first.probability[first.pooled].tolist().count(0.5) >= 1
    assert (first.probability[~first.pooled] == 1).all()
    path.write_text("\n".join(sheet[:-1]) + "\n")
    with pytest.raises(FileError, match="have no label"):
        read_judge(path, seeds, pool)
    rules = ["1-1:head" if number == len(pool) - 1 else "" for number in range(len(pool))]
    assert not read_judge(path, seeds, pool, rules).pooled.all()
    shallow = read_judge(tmp_path / "judge", seeds, pool, rules, depth=1)
    assert len(shallow.probability) < len(first.probability)
