"""evaluate(): the call that users make, from scores and from ranks."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

import kgtrec
from kgtrec.errors import InputError, UsageError


@pytest.fixture(scope="module")
def questions() -> kgtrec.Questions:
    random = np.random.default_rng(2)
    triples = np.unique(np.stack([random.integers(0, n, 90) for n in (40, 3, 40)], axis=1), axis=0)
    return kgtrec.Graph.from_arrays(train=triples[:20], test=triples[20:]).questions()


@pytest.fixture(scope="module")
def scores(questions: kgtrec.Questions) -> np.ndarray:
    shape = len(questions), questions.n_entities
    return np.random.default_rng(3).integers(0, 30, shape).astype(np.float32)


def test_both_computations_agree_and_it_says_so(
    questions: kgtrec.Questions, scores: np.ndarray
) -> None:
    result = kgtrec.evaluate(scores, questions)
    assert max(result.agreement.values()) <= 1e-12
    text = str(result).replace("\n  ", " ")
    assert "MAP@20 and nDCG@20: pytrec_eval and native values agree to 1e-12" in text
    assert result.run.depth >= 20
    assert len(result.ranks.greater) == questions.n_instances
    assert kgtrec.Result(result.ranks)["both.macro.map_cut_20"] == pytest.approx(
        result["both.macro.map_cut_20"], abs=1e-12
    )


def test_the_run_is_as_deep_as_the_measures_see(
    questions: kgtrec.Questions, scores: np.ndarray
) -> None:
    result = kgtrec.evaluate(scores, questions, measures=["both.macro.P_30", "both.macro.bpref"])
    assert result.run.depth >= 30
    assert list(result) == ["both.macro.P_30", "both.macro.bpref"]
    text = str(result).replace("\n  ", " ")
    assert f"bpref: of the run, which holds the {result.run.depth} best candidates" in text


def test_other_measures_follow_from_the_run_or_the_ranks(
    questions: kgtrec.Questions, scores: np.ndarray
) -> None:
    result = kgtrec.evaluate(scores, questions)
    assert result["both.macro.P_10"] == pytest.approx(
        kgtrec.Result(result.ranks)["both.macro.P_10"], abs=1e-12
    )
    assert 0 < result["both.macro.map"] < 1
    deep = kgtrec.evaluate(scores, questions, run_depth=40)
    assert result["both.macro.recall_35"] == pytest.approx(deep["both.macro.recall_35"], abs=1e-12)
    with pytest.raises(UsageError, match="run_depth=35"):
        result["both.macro.relative_P_35"]


def test_ranks_can_be_evaluated_again(questions: kgtrec.Questions, scores: np.ndarray) -> None:
    result = kgtrec.evaluate(scores, questions)
    again = kgtrec.evaluate(result.ranks)
    assert again["both.micro.mrr"] == result["both.micro.mrr"]
    same = kgtrec.evaluate(result.ranks, questions, ["tail.macro.map@20"])
    assert same["tail.macro.map_cut_20"] == pytest.approx(result["tail.macro.map_cut_20"])
    other = questions.graph.questions(sides="tail")
    with pytest.raises(InputError, match="belong to other questions"):
        kgtrec.evaluate(result.ranks, other)


def test_rows_may_belong_to_instances(questions: kgtrec.Questions, scores: np.ndarray) -> None:
    of_instance = scores[questions.instance_question[questions.triple_rows]]
    result = kgtrec.evaluate(of_instance, questions, rows="instances")
    assert result.to_dict() == kgtrec.evaluate(scores, questions).to_dict()


def test_nan_counted_worst_is_said(questions: kgtrec.Questions, scores: np.ndarray) -> None:
    broken = scores.copy()
    broken[0] = np.nan
    with pytest.raises(InputError, match="NaN"):
        kgtrec.evaluate(broken, questions)
    text = str(kgtrec.evaluate(broken, questions, nan="worst"))
    assert f"WARNING: {questions.n_entities} scores were NaN" in text.replace("\n  ", " ")


def test_questions_and_keys_are_asked_for_first(
    questions: kgtrec.Questions, scores: np.ndarray
) -> None:
    with pytest.raises(UsageError, match="needs the questions"):
        kgtrec.evaluate(scores)
    with pytest.raises(UsageError, match="mmr") as caught:
        kgtrec.evaluate("no-such-file.npy", questions, ["both.micro.mmr", "both.micro.hits"])
    assert "cutoff" in str(caught.value)


def test_importing_the_module_does_not_hide_the_function() -> None:
    importlib.import_module("kgtrec.results.evaluate")
    assert callable(kgtrec.evaluate)
