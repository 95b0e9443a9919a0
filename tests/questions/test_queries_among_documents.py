"""A query that is a document of the collection competes with its answers."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

import kgtrec
from kgtrec.errors import QueryWarning

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
    scores[[0, 1], [0, 2]] = -np.inf  # the remedy
    assert kgtrec.evaluate(scores, questions)["all.macro.recip_rank"] == 1


@pytest.mark.parametrize("names", [["q0", "q1"], ["0", "1"]])
def test_other_names_and_numbers_are_not(names, tmp_path):
    (tmp_path / "qrels").write_text("".join(f"{name} 0 1 1\n" for name in names))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kgtrec.Questions.from_answers(str(tmp_path / "qrels"), labels=["0", "1", "2"])
