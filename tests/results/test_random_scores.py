"""Ranks that are no better than random get a line: the order of columns is the usual reason."""

from __future__ import annotations

import numpy as np
import pytest

import kgtrec

LINE = "scores look random: AMRI is about 0; check the order of entity columns."


def graph_of(n_test: int) -> kgtrec.Graph:
    random = np.random.default_rng(1)
    rows = np.unique(random.integers(0, (200, 3, 200), (9000, 3)), axis=0)
    rows = random.permutation(rows)
    return kgtrec.Graph.from_arrays(train=rows[n_test:], test=rows[:n_test], n_entities=200)


def good(questions: kgtrec.Questions, noise: float) -> np.ndarray:
    scores = np.random.default_rng(3).random((len(questions), 200)) * noise
    for row in range(len(questions)):
        scores[row, questions.answers[row]] += 1
    return scores


def text_of(scores: np.ndarray, questions: kgtrec.Questions) -> str:
    return " ".join(str(kgtrec.evaluate(scores, questions)).split())


@pytest.mark.parametrize("sides", ["both", "tail"])
def test_columns_in_another_order_are_noticed(sides: str) -> None:
    questions = graph_of(3000).questions(sides=sides)
    scores = good(questions, 1.2)
    assert LINE not in text_of(scores, questions)
    assert LINE in text_of(scores[:, np.random.default_rng(5).permutation(200)], questions)
    assert LINE in text_of(np.zeros_like(scores), questions)  # all tied: as good as random


def test_one_side_alone_is_no_sign() -> None:
    questions = graph_of(3000).questions()
    scores = good(questions, 1.2)
    mixed = np.where(
        questions.side[:, None] == 1, scores, np.random.default_rng(0).random(scores.shape)
    )
    result = kgtrec.evaluate(mixed, questions)
    assert abs(result["head.realistic.micro.amri"]) < 0.02 < result["tail.realistic.micro.amri"]
    assert LINE not in text_of(mixed, questions)


def test_few_instances_say_nothing() -> None:
    for n_test, is_noticed in ((50, False), (51, True)):
        questions = graph_of(n_test).questions()
        assert len(questions.instance_triple) == 2 * n_test
        assert (LINE in text_of(np.zeros((len(questions), 200)), questions)) == is_noticed
