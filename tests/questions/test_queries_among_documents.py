"""A query that is a document of the collection competes with its answers."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

import kgtrec
from kgtrec.errors import InputError, QueryWarning

VECTORS = np.array([[1, 0], [0.9, 0.1], [0, 1], [0.1, 0.9]], np.float32)


def test_queries_that_are_documents_are_counted(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    documents = ["d0", "d1", "d2", "d3"]
    Path("qrels").write_text("d0 0 d1 1\nd2 0 d3 1\n")
    due = r"2 of 2 queries are also documents and compete with their answers \(the first is 'd0'\)"
    with pytest.warns(QueryWarning, match=due):
        questions = kgtrec.Questions.from_answers("qrels", labels=documents)
    scores = VECTORS[[0, 2]] @ VECTORS.T
    assert kgtrec.evaluate(scores, questions)["all.macro.recip_rank"] == 0.5
    others = kgtrec.Questions.from_answers("qrels", labels=documents, exclude_query_document=True)
    ranks = kgtrec.rank(scores, others)[0]
    assert ranks.rank().tolist() == ranks.macro_rank().tolist() == [1, 1]
    assert ranks.candidates.tolist() == ranks.macro_candidates.tolist() == [3, 3]


def test_a_query_that_answers_itself_stays_an_answer_with_a_line():
    qrels = {"d0": {"d0": 1, "d1": 1}}
    with pytest.warns(QueryWarning, match="1 of 1 queries is its own relevant document"):
        questions = kgtrec.Questions.from_answers(
            qrels, labels=["d0", "d1", "d2"], exclude_query_document=True
        )
    assert kgtrec.rank(np.array([[3.0, 2, 1]]), questions)[0].macro_rank().tolist() == [1, 2]


def test_queries_named_by_numbers_are_excluded_as_well():
    qrels = {"1": {"2": 1}, "11": {"12": 1}}
    questions = kgtrec.Questions.from_answers(
        qrels, labels=["1", "2", "11", "12"], exclude_query_document=True
    )
    scores = VECTORS[[0, 2]] @ VECTORS.T
    assert kgtrec.rank(scores, questions)[0].rank().tolist() == [1, 1]


@pytest.mark.parametrize("form", ["arrays", "vectors"])
def test_queries_without_a_relevant_document_are_left_out(form: str) -> None:
    """Scores have a row for every query, or only for those that are ranked."""
    rng = np.random.default_rng(5)
    documents = [f"d{i}" for i in range(9)]
    levels = {f"q{i}": {f"d{i}": i % 3, f"d{i + 1}": 0} for i in range(8)}
    names = [*levels, "unjudged"]
    due = r"4 of 9 queries have no relevant document and are left out \(the first is 'q0'\)"
    with pytest.warns(QueryWarning, match=due):
        questions = kgtrec.Questions.from_answers(levels, labels=documents, ids=names)
    answered = [i for i in range(8) if i % 3]
    assert questions.ids == [f"q{i}" for i in answered]
    queries, entities = rng.random((9, 4), np.float32), rng.random((9, 4), np.float32)
    whole, few = queries @ entities.T, queries[answered] @ entities.T
    if form == "vectors":
        whole, few = kgtrec.Factors(queries, entities), kgtrec.Factors(queries[answered], entities)
    scores = queries @ entities.T
    ranks = [1 + (scores[i] > scores[i, i]).sum() for i in answered]
    for each in (whole, few):
        assert kgtrec.rank(each, questions)[0].rank().tolist() == ranks
    with pytest.raises(InputError, match="rows"):
        kgtrec.rank(whole if form == "vectors" else scores[:7], questions.select([0, 1], [0, 1]))


@pytest.mark.parametrize("names", [["q0", "q1"], ["0", "1"]])
def test_other_names_and_numbers_are_not(names, tmp_path):
    (tmp_path / "qrels").write_text("".join(f"{name} 0 1 1\n" for name in names))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kgtrec.Questions.from_answers(str(tmp_path / "qrels"), labels=["0", "1", "2"])
