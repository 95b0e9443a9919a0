"""Trackers: names that each of them accepts, and the values of the result."""

from __future__ import annotations

import re

import numpy as np
import pytest
from question_cases import N, random_questions, some_scores

import kgtrec
from kgtrec.errors import UsageError
from kgtrec.integrations.trackers import metrics

MLFLOW = re.compile(r"[\w.\- :/]+", re.ASCII)  # mlflow.utils.validation


@pytest.fixture
def result() -> kgtrec.Result:
    questions = random_questions(np.random.default_rng(1))
    return kgtrec.evaluate(some_scores(np.random.default_rng(2), (len(questions), N)), questions)


def test_every_listed_measure(result: kgtrec.Result) -> None:
    values = metrics(result)
    assert len(values) == len([key for key in result if result[key] == result[key]])
    assert all(MLFLOW.fullmatch(name) for name in values)
    assert all(type(value) is float for value in values.values())
    assert (
        values["kgtrec/both.realistic.micro.hits_at_10"] == result["both.realistic.micro.hits@10"]
    )
    assert list(values) == list(metrics(result))


def test_chosen_measures_and_a_prefix(result: kgtrec.Result) -> None:
    keys = ["tail.realistic.micro.mrr", "both.realistic.micro.p-mrr(0.5)", "both.macro.map_cut_20"]
    values = metrics(result, keys, prefix="valid")
    assert list(values) == [
        "valid/tail.realistic.micro.mrr", "valid/both.realistic.micro.p-mrr_0.5",
        "valid/both.macro.map_cut_20",
    ]  # fmt: skip
    assert list(values.values()) == [result[key] for key in keys]
    assert list(metrics(result, keys[:1], prefix="")) == ["tail.realistic.micro.mrr"]
    with pytest.raises(UsageError):
        metrics(result, ["tail.realistic.micro.mmr"])


def test_names_that_would_be_the_same() -> None:
    odd = {"a(1)": 1.0, "a[1]": 2.0}
    with pytest.raises(
        UsageError, match=r"'a\(1\)' and 'a\[1\]' would both be logged as 'kgtrec/a_1'"
    ):
        metrics(odd)  # type: ignore[arg-type]
    assert metrics({"a": float("nan"), "b": 1.0}) == {"kgtrec/b": 1.0}  # type: ignore[arg-type]
