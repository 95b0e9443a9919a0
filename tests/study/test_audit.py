"""Audits of published tables against rankings listed one by one, and cases from public threads."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
import pytest
from slow import slow_after

import kgtrec
from kgtrec.errors import UsageError
from kgtrec.measures import RANK_TYPES
from kgtrec.study import audit, protocols_of
from kgtrec.study.auditing.claims import ranks_by_filter

Table = dict[str, str]
METRICS: dict[str, Callable[[list[Fraction]], Fraction]] = {
    "mr": lambda ranks: sum(ranks, Fraction(0)) / len(ranks),
    "mrr": lambda ranks: sum((1 / r for r in ranks), Fraction(0)) / len(ranks),
    "hits@1": lambda ranks: Fraction(sum(r <= 1 for r in ranks), len(ranks)),
    "hits@2": lambda ranks: Fraction(sum(r <= 2 for r in ranks), len(ranks)),
}


def rounded(value: Fraction, digits: int) -> str:
    """Rounds to the nearest, ties to even, as format() does with exact numbers."""
    return f"{round(value * 10**digits) / 10**digits:.{digits}f}"


def is_printed_as(value: Fraction, text: str) -> bool:
    digits = len(text.partition(".")[2])
    return abs(value - Fraction(text)) <= Fraction(1, 2 * 10**digits)


def rankings(answers: int, entities: int) -> Iterator[list[Fraction]]:
    every = [Fraction(n, 2) for n in range(2, 2 * entities + 1)]
    return map(list, combinations_with_replacement(every, answers))


def exists(table: Table, answers: int, entities: int) -> bool:
    """Whether some ranking has all these numbers, by trying all of them."""
    return any(
        all(is_printed_as(METRICS[key](ranks), text) for key, text in table.items())
        for ranks in rankings(answers, entities)
    )


def changed(text: str, generator: random.Random) -> str:
    """The same number with one digit changed."""
    places = [i for i, sign in enumerate(text) if sign.isdigit()]
    place = generator.choice(places)
    digit = generator.choice([d for d in "0123456789" if d != text[place]])
    return text[:place] + digit + text[place + 1 :]


@pytest.mark.parametrize("seed", slow_after(12, range(50)))
def test_small_tables_are_possible_if_a_ranking_has_them(seed: int) -> None:
    generator = random.Random(seed)
    answers, entities = generator.randint(1, 3), generator.randint(2, 6)
    ranks = generator.choice(list(rankings(answers, entities)))
    digits = generator.randint(1, 3)
    table = {key: rounded(metric(ranks), digits) for key, metric in METRICS.items()}
    for key in generator.sample(sorted(table), 2):
        table[key] = changed(table[key], generator)
    try:
        found = audit({"m": table}, instances=answers, entities=entities)
    except UsageError:  # a mean rank below 1, a share above 1
        assert not exists(table, answers, entities)
        return
    assert found.possible == exists(table, answers, entities), found.text()


def printed(result: kgtrec.Result, digits: int, rank_type: str, percent: bool) -> Table:
    table = {}
    for side in ("head", "tail", "both"):
        for name in ("mr", "mrr", "hits@1", "hits@3", "hits@10", "gmr", "amri", "log_mrr"):
            key = f"{side}.{rank_type}.micro.{name}"
            unit = 100 if percent and name not in ("mr", "gmr") else 1
            table[key] = f"{result[key] * unit:.{digits}f}"
    return table


@pytest.fixture(scope="module")
def graph() -> kgtrec.Graph:
    rng = np.random.default_rng(5)
    triples = np.unique(rng.integers(0, (60, 4, 60), (700, 3)), axis=0)
    rng.shuffle(triples)
    splits = np.split(triples, [len(triples) - 200, len(triples) - 90])
    return kgtrec.Graph.from_arrays(*splits, n_entities=60, n_relations=4)


def scores_of(questions: kgtrec.Questions, seed: int, levels: int) -> Any:
    """Scores with ties that put answers ahead."""
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, levels, (len(questions), 60)).astype(np.float32)
    owner = np.repeat(np.arange(len(questions)), np.diff(questions.answers.offsets))
    scores[owner, questions.answers.ids] += rng.integers(0, levels // 2 + 1, len(owner))
    return scores


@pytest.mark.parametrize("seed", slow_after(6, range(40)))
def test_true_tables_are_possible(graph: kgtrec.Graph, seed: int) -> None:
    generator = random.Random(seed)
    questions = graph.questions("test")
    result = kgtrec.evaluate(scores_of(questions, seed, 4 + seed % 30), questions)
    digits, percent = generator.randint(2, 5), generator.random() < 0.3
    table = printed(result, digits, generator.choice(sorted(RANK_TYPES)), percent)
    by_graph = audit({"m": table}, questions=questions, percent=percent)
    by_sizes = audit({"m": table}, instances=2 * 90, entities=60, percent=percent)
    assert by_graph.possible, by_graph.text()
    assert by_sizes.possible, by_sizes.text()


def test_a_changed_digit_is_mostly_found(graph: kgtrec.Graph) -> None:
    generator = random.Random(0)
    questions = graph.questions("test")
    whole = printed(kgtrec.evaluate(scores_of(questions, 1, 9), questions), 4, "realistic", False)
    table = {key: text for key, text in whole.items() if key.startswith("both")}
    found = 0
    for _ in range(20):
        key = generator.choice([key for key in table if "hits" in key or "mrr" in key])
        wrong = table | {key: changed(table[key], generator)}
        try:
            found += not audit({"m": wrong}, questions=questions).possible
        except UsageError:
            found += 1
    assert found >= 15


def test_the_smallest_conflict_is_named() -> None:
    table = {"hits@3": "0.40", "hits@1": "0.50", "mr": "20", "hits@10": "0.90"}
    for numbers in (table, dict(reversed(table.items()))):
        (problem,) = audit({"m": numbers}, entities=1000).problems
        assert {claim.measure.metric for claim in problem.claims} == {"hits@1", "hits@3"}
        assert np.sort(problem.allowed, axis=0) == pytest.approx(np.array([[0, 0.405], [0.495, 1]]))


@pytest.mark.parametrize("rank", [45, 333, 1234, 8001])
def test_ranks_between_those_of_the_grid_are_possible(rank: int) -> None:
    """All answers at one rank: its neighbours on the grid have another mean of 1/rank."""
    table = {"mr": f"{rank}.000", "mrr": f"{1 / rank:.9f}"}
    assert audit({"m": table}, entities=10_000).possible


def test_one_side_alone(graph: kgtrec.Graph) -> None:
    questions = graph.questions("test")
    result = kgtrec.evaluate(scores_of(questions, 6, 9), questions)
    keys = ("mrr", "hits@3", "mr")
    table = {key: f"{result[f'tail.optimistic.micro.{key}']:.6f}" for key in keys}
    found = protocols_of({"m": table}, {"x": result.ranks})
    assert found.matches["m"][0].words == "tail only, optimistic ranks"
    assert "tail only, optimistic ranks" in found.text()


def test_numbers_of_no_protocol_are_beside_those_of_the_default_one(graph: kgtrec.Graph) -> None:
    questions = graph.questions("test")
    result = kgtrec.evaluate(scores_of(questions, 6, 9), questions)
    found = protocols_of({"m": {"mrr": "0.999", "mr": "77"}}, {"m": result.ranks})
    default = {"MRR 0.999": result["mrr"], "MR 77": result["mr"]}
    assert found.defaults["m"].values == default
    assert found.matches["m"][0].distance <= found.defaults["m"].distance
    lines = found.text().splitlines()
    assert max(map(len, lines)) <= 80
    for name, value in default.items():
        line = next(line for line in lines if line.startswith(f"  {name} "))
        assert f"{value:.5g}" in line.split()


def test_hits_at_another_cutoff_are_named_only_beside_a_number_that_agrees(graph) -> None:
    questions = graph.questions("test")
    result = kgtrec.evaluate(scores_of(questions, 6, 9), questions)
    hits = {"hits@1": f"{result['hits@3']:.4f}"}
    assert hits["hits@1"] != f"{result['hits@1']:.4f}"
    for others, named in (
        ({}, True),
        ({"mrr": f"{result['mrr']:.4f}"}, True),
        ({"mrr": f"{result['mrr']:.4f}", "mr": "77"}, True),
        ({"mrr": "0.9999"}, False),
    ):
        found = protocols_of({"m": {**hits, **others}}, {"m": result.ranks})
        assert found.matches["m"][0].distance > 0
        assert any("micro Hits@3" in hint for hint in found.hints) is named


def test_no_number_agrees_with_an_undefined_value(graph: kgtrec.Graph) -> None:
    """AMRI is undefined if every answer is the only candidate."""
    asked = graph.questions("test", sides="tail")
    single = asked.restrict(candidates=[one[:1] for one in asked.answers], outside="worst")
    ranks, _ = kgtrec.rank(scores_of(asked, 0, 9), single)
    with pytest.raises(UsageError, match="none of the numbers of m can be computed"):
        protocols_of({"m": {"mrr": "1.00", "amri": "0.50"}}, {"m": ranks})


def positions_in_sort_order(
    questions: kgtrec.Questions, scores: np.ndarray, last: bool, macro: bool
) -> list[int]:
    """The place of each answer in a list of candidates that Python's stable sort orders."""
    places = []
    for row, (answers, known, removed) in enumerate(
        zip(questions.answers, questions.known, questions.removed, strict=True)
    ):
        for answer in answers.tolist():
            out = {*removed.tolist()} if macro else {*known.tolist()} - {answer}
            columns = [c for c in range(scores.shape[1]) if c not in out]
            if last:
                listed = sorted(columns, key=lambda c, row=row: scores[row, c])[::-1]
            else:
                listed = sorted(columns, key=lambda c, row=row: -scores[row, c])
            places.append(1 + listed.index(answer))
    return places


@pytest.mark.parametrize("seed", range(3))
def test_ranks_by_sort_order_are_tried(seed: int) -> None:
    """Names are in another order than columns, so that only columns can decide."""
    rng = np.random.default_rng(seed)
    arrays = {name: rng.integers(0, (9, 2, 9), (12, 3)) for name in ("train", "valid", "test")}
    names = [f"e{n}" for n in rng.permutation(9)]
    graph = kgtrec.Graph.from_arrays(**arrays, entities=names, n_relations=2)
    questions = graph.questions()
    scores = rng.integers(0, 3, (len(questions), 9)).astype(np.float32)
    ranks = ranks_by_filter(scores, graph)
    for order, last in (("first by column", False), ("last by column", True)):
        ordered = ranks[f"all, {order}"]
        places = positions_in_sort_order(questions, scores, last, macro=False)
        assert ordered.rank("realistic").tolist() == places == ordered.rank("pessimistic").tolist()
        macro = positions_in_sort_order(questions, scores, last, macro=True)
        assert ordered.macro_rank().tolist() == macro
        mrr = sum(1 / place for place in places) / len(places)
        mr = sum(places) / len(places)
        table = {"m": {"mrr": f"{mrr:.6f}", "mr": f"{mr:.4f}"}}
        agreeing = [match.words for match in protocols_of(table, {"m": ranks}).matches["m"]]
        assert f"ties {order}" in agreeing
    assert "raw, last by column" in ranks
    unlike = rng.permuted(np.tile(np.arange(9.0), (len(questions), 1)), axis=1)
    assert not any("column" in name for name in ranks_by_filter(unlike, graph))
