"""Labels: ids and labels both ways, docnos, byte order; with arrays also as a mapping to ids."""

from __future__ import annotations

import numpy as np
import oracle
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import each_row

from kgtrec import Graph
from kgtrec.errors import InputError
from kgtrec.graph.labels import Labels, decode_docno

raw_label = st.binary(min_size=1, max_size=6) | st.text("a %2\t\x00", min_size=1).map(str.encode)
raw_labels = st.lists(raw_label, min_size=1, max_size=12, unique=True)


def text(label: bytes) -> str:
    return label.decode("utf-8", "surrogateescape")


def naive_order(labels: list[bytes]) -> list[int]:
    by_bytes = sorted(range(len(labels)), key=labels.__getitem__)
    return [by_bytes.index(i) for i in range(len(labels))]


@given(raw_labels)
def test_round_trip_of_any_bytes(raw: list[bytes]) -> None:
    strings = [text(label) for label in raw]
    labels = Labels.from_strings(strings)
    assert len(labels) == len(raw)
    assert list(labels) == strings == labels
    assert labels.to_arrow().to_pylist() == raw
    assert labels.to_arrow().type == pa.large_binary()
    assert labels.ids(strings[::-1]).tolist() == list(range(len(raw)))[::-1]
    assert [labels.index(s) for s in strings] == list(range(len(raw)))
    assert all(s in labels for s in strings)
    assert [labels[i] for i in range(-len(raw), 0)] == strings


@given(raw_labels)
def test_docnos_and_their_order(raw: list[bytes]) -> None:
    labels = Labels.from_strings([text(label) for label in raw])
    docnos = [oracle.docno(text(label)) for label in raw]
    assert labels.docnos.to_arrow().to_pylist() == docnos
    assert len(set(docnos)) == len(raw)
    assert not set(b"".join(docnos)) & set(b" \t\n\v\f\r\0")
    assert [decode_docno(docno) for docno in docnos] == raw
    assert labels.n_encoded == sum(d != label for d, label in zip(docnos, raw, strict=True))
    assert (labels.docnos is labels) == (labels.n_encoded == 0)
    expected = naive_order(docnos)
    if expected == sorted(expected):
        assert labels.trec_order is None
    else:
        assert labels.trec_order.dtype == np.int32
        assert labels.trec_order.tolist() == expected


@each_row("size", [1, 10, 11, 99, 100, 101, 1000, 12345])
def test_decimal(size: int) -> None:
    labels = Labels.decimal(size)
    strings = [str(i) for i in range(size)]
    assert list(labels) == strings
    assert labels == strings
    named = Labels.from_strings(strings)
    assert (named == labels, named.digest() == labels.digest()) == (True, True)
    assert Labels.from_strings([*strings[:-1], "x"]) != labels
    assert labels.to_arrow().to_pylist() == [s.encode() for s in strings]
    assert labels.docnos is labels
    assert labels.n_encoded == 0
    assert labels.ids(strings[:3]).tolist() == list(range(min(size, 3)))
    order = labels.trec_order
    if size <= 10:
        assert order is None
    else:
        assert [strings[i] for i in np.argsort(order)] == sorted(strings)


@each_row("label", ["", "07", "-1", "+1", "1 ", "1.0", "12", "²", "x", "9" * 30])
def test_decimal_knows_no_other_form(label: str) -> None:
    labels = Labels.decimal(12)
    assert label not in labels
    with pytest.raises(InputError, match="unknown"):
        labels.index(label)


def test_digest_sees_content_and_bounds_only() -> None:
    array = pa.array([b"zz", b"ab", b"c"], pa.large_binary())
    labels = Labels.from_strings(["ab", "c"])
    assert Labels.from_arrow(array[1:]).digest() == labels.digest()
    assert Labels.from_strings(["a", "bc"]).digest() != labels.digest()
    assert Labels.from_strings(["c", "ab"]).digest() != labels.digest()


def test_indexing_and_equality() -> None:
    labels = Labels.from_strings(["a", "b", "c", "d"])
    assert [labels[np.int32(1)], labels[-1]] == ["b", "d"]
    for index, due in (
        (slice(1, 3), "bc"),
        (slice(None, None, -1), "dcba"),
        (np.array([3, 0, 0, -1]), "daad"),
        ([2], "c"),
        ([], ""),
        (np.array([], np.int64), ""),
    ):
        assert labels[index] == list(due)
    for bad in (4, -5, [0, 7]):
        with pytest.raises(IndexError, match="out of range: there are 4 labels"):
            labels[bad]
    for wrong in (1.0, "a", np.array([True, False, True, False]), np.zeros((2, 2), dtype=int)):
        with pytest.raises(TypeError, match="indexed by ids"):
            labels[wrong]
    labels = Labels.from_strings(["a", "b"])
    assert all(labels == same for same in (["a", "b"], ("a", "b"), Labels.from_strings(["a", "b"])))
    assert all(labels != other for other in (["a"], ["a", "c"], "ab", 3, Labels.decimal(2)))
    assert Labels.from_strings(labels) is labels
    assert 3 not in labels
    assert repr(Labels.decimal(5)) == "Labels(['0', '1', '2', ...], n=5)"
    with pytest.raises(TypeError, match="unhashable"):
        hash(labels)


@given(raw_labels, st.data())
def test_labels_of_a_part_of_an_array(raw: list[bytes], data) -> None:
    first = data.draw(st.integers(0, len(raw) - 1))
    array = pa.array([b"before", *raw], pa.large_binary())[1 + first :]
    labels, own = Labels.from_arrow(array), raw[first:]
    ids = np.array(data.draw(st.lists(st.integers(0, len(own) - 1), max_size=5)), dtype=np.int64)
    assert labels.arrow_of(ids).to_pylist() == [own[i] for i in ids]
    assert labels.arrow_of(ids).type == pa.large_binary()
    assert labels.n_encoded == sum(oracle.docno(text(label)) != label for label in own)
    assert labels.digest() == Labels.from_strings([text(label) for label in own]).digest()


@given(raw_labels)
def test_labels_that_are_known_to_ascend(raw: list[bytes]) -> None:
    array = pa.array(sorted(raw), pa.large_binary())
    known, found = (Labels.from_arrow(array, ascending=flag) for flag in (True, False))
    orders = known.trec_order, found.trec_order
    assert (orders[0] is None) == (orders[1] is None)
    assert orders[0] is None or (orders[0] == orders[1]).all()


TEST = [[0, 0, 1]]


@given(st.permutations(range(5)), st.permutations(range(3)))
def test_a_mapping_says_the_id_of_each_label(entities: list[int], relations: list[int]) -> None:
    named = {f"e{i}": i for i in entities}  # in any order of its keys
    kinds = {f"r{i}": np.int64(i) for i in relations}
    graph = Graph.from_arrays(test=TEST, entities=named, relations=kinds)
    assert list(graph.entities) == [f"e{i}" for i in range(5)]
    assert list(graph.relations) == ["r0", "r1", "r2"]
    assert all(graph.entities.index(label) == i for label, i in named.items())
