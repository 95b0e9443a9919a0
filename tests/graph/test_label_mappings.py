"""Labels of a graph from arrays: in id order, or as a mapping of each label to its id."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgtrec import Graph
from kgtrec.errors import UsageError

TEST = [[0, 0, 1]]


@given(st.permutations(range(5)), st.permutations(range(3)))
def test_a_mapping_says_the_id_of_each_label(entities: list[int], relations: list[int]) -> None:
    named = {f"e{i}": i for i in entities}  # in any order of its keys
    kinds = {f"r{i}": np.int64(i) for i in relations}
    graph = Graph.from_arrays(test=TEST, entities=named, relations=kinds)
    assert list(graph.entities) == [f"e{i}" for i in range(5)]
    assert list(graph.relations) == ["r0", "r1", "r2"]
    assert all(graph.entities.index(label) == i for label, i in named.items())


def test_the_example() -> None:
    graph = Graph.from_arrays(test=TEST, entities={"b": 1, "a": 0}, relations=["r"])
    assert list(graph.entities) == ["a", "b"]


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ({"a": 0, "b": 2}, "entities= maps 'b' to 2, but 2 labels have the ids 0 to 1"),
        ({"a": 0, "b": -1}, "entities= maps 'b' to -1"),
        ({"a": 0, "b": 0}, "entities= maps both 'a' and 'b' to 0"),
        ({"a": 0, "b": 1.0}, "entities= maps 'b' to 1.0, which is not an id"),
        ({"a": 0, "b": "1"}, "entities= maps 'b' to '1', which is not an id"),
        ({"a": False, "b": True}, "True or False"),
        ({0: "a", 1: "b"}, "entities= maps 0 to 'a', which is not an id"),
        ({"a", "b"}, "entities= is a set, which has no order"),
        ({"a": 0, "b": 1}.keys(), "entities= is a dict_keys, which has no order"),
    ],
)
def test_what_is_no_mapping_to_ids_is_refused(labels: object, message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        Graph.from_arrays(test=TEST, entities=labels)  # type: ignore[arg-type]
