"""Frames of graphs, runs and tables of results, for people who work in pandas."""

from __future__ import annotations

import numpy as np
import pytest

import kgtrec
from kgtrec import study

pytest.importorskip("pandas")


def test_frames_have_names_and_rows_of_what_they_show() -> None:
    graph = kgtrec.Graph.from_arrays(
        test=[(0, 0, 2), (1, 0, 2)], entities=["a", "b c", "d"], relations=["r"]
    )
    assert graph.to_frame("test").values.tolist() == [["a", "r", "d"], ["b c", "r", "d"]]
    questions = graph.questions()
    scores = np.random.default_rng(0).random((len(questions), 3))
    ranks, run = kgtrec.rank(scores, questions, run_depth=2)
    frame = run.to_frame()
    assert list(frame) == ["query_id", "doc_id", "rank", "score"]
    assert len(frame) == len(run.documents)
    assert frame["rank"].tolist()[:2] == [1, 2]
    assert frame["doc_id"].tolist() == run.docnos[run.documents]
    (comparison,) = kgtrec.compare([ranks, ranks], "mrr", test="t")
    assert comparison.to_frame()["system"].tolist() == ["system 1", "system 2"]
    assert len(study.triple_mix(graph).to_frame()) == len(study.triple_mix(graph).table())
