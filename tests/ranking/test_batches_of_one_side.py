"""Batches hold rows of one side alone, in the order of all rows."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from study_cases import graphs

import kgtrec


@given(graphs(), st.integers(1, 9), st.sampled_from(["head", "tail", "both"]),
       st.sampled_from(["questions", "instances"]))  # fmt: skip
def test_no_batch_mixes_sides(graph: kgtrec.Graph, size: int, sides: str, rows: str) -> None:
    questions = graph.questions(sides=sides)
    ranker = kgtrec.Ranker(questions, rows=rows)
    batches = list(ranker.batches(size))
    assert all(len(set(batch.side.tolist())) == 1 for batch in batches)
    assert all(0 < len(batch) <= size for batch in batches)
    assert [i for b in batches for i in range(b.start, b.stop)] == list(range(ranker.n_rows))
    per_side = [sum(len(b) for b in batches if b.side[0] == side) for side in (0, 1)]
    assert len(batches) == sum(-(-many // size) for many in per_side)


@pytest.mark.parametrize("rows", ["questions", "instances"])
def test_what_everyone_writes_is_right(rows: str) -> None:
    """A loop that looks at the first row's side gives the ranks of the whole matrix."""
    random = np.random.default_rng(2)
    triples = np.unique(random.integers(0, (9, 3, 9), (40, 3)), axis=0)
    questions = kgtrec.Graph.from_arrays(test=triples).questions()
    head, tail = (random.random((9, 3, 9)) for _ in range(2))
    ranker = kgtrec.Ranker(questions, rows=rows)
    for batch in ranker.batches(7):
        model = tail if batch.side[0] else head
        ranker.update(batch, model[batch.entity, batch.relation])
    ranks, _ = ranker.finish()
    own = np.where(questions.side[:, None] == 1, tail[questions.entity, questions.relation],
                   head[questions.entity, questions.relation])  # fmt: skip
    due, _ = kgtrec.rank(own, questions)
    assert ranks.greater.tolist() == due.greater.tolist()


def test_a_batch_cannot_be_moved_to_other_rows() -> None:
    graph = kgtrec.Graph.from_arrays(train=[[0, 0, 1]], test=[[1, 0, 0]])
    batch = next(iter(kgtrec.Ranker(graph.questions()).batches(1)))
    with pytest.raises(FrozenInstanceError):
        batch.start = 1  # type: ignore[misc]
