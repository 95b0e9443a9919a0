"""Facts with a time in tab-separated files, against a slow reading of the same bytes."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from profiles import examples

import kgtrec
from kgtrec.errors import FileError
from kgtrec.graph import tsv


def odd(text: bytes) -> bool:
    return b"\r" in text or b"\0" in text


def slow(content: bytes) -> list[tuple[str, ...]] | int | None:
    """Distinct facts, or the number of the first line that is wrong, or None: no facts."""
    facts: dict[tuple[str, ...], None] = {}
    blank, width = None, 0
    for number, line in enumerate(content.split(b"\n"), start=1):
        text = line[:-1] if line.endswith(b"\r") else line
        fields = text.split(b"\t")
        width = width or len(fields)
        if not text:
            blank = blank or number
        elif blank:
            return blank
        elif len(fields) not in (4, 5) or len(fields) != width or not all(fields) or odd(text):
            return number
        else:
            names = [field.decode("utf-8", "surrogateescape") for field in fields]
            facts[(*names[:3], "/".join(names[3:]))] = None
    return list(facts) or None


def read(folder: Path, block: int, threads: int) -> list[tuple[str, ...]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tsv, "_BLOCK", block)
        patch.setattr(tsv, "_ALONE", 0 if threads > 1 else 1 << 30)
        patch.setattr(tsv, "available_cores", lambda: threads)
        graph = kgtrec.read_graph(f"timed:{folder}")
    assert graph.contexts is not None
    for labels in (graph.entities, graph.relations):
        names = [label.encode("utf-8", "surrogateescape") for label in labels]
        assert names == sorted(set(names))
    columns = (graph.entities, graph.relations, graph.entities, graph.contexts)
    return [
        tuple(labels[i] for labels, i in zip(columns, fact, strict=True))
        for fact in graph.facts["train"].tolist()
    ]


piece = st.sampled_from(
    [
        *(b"a", b"\t", b"\n", b"\r\n", b"\0", b"\r", b"7"),
        *(b"a\tr\tb\t10\n", b"a\tr\tb\xff\t9\r\n", b"b\tr\ta\t2014-07-01\n"),
        *(b"a\tr\tb\t1\t2\n", b"a\ts\tb\t1\t2\n", b"xyz" * 30 + b"\tr\tb\t10\n"),
    ]
)


@examples(2)
@given(
    content=st.lists(piece, max_size=10).map(b"".join),
    block=st.sampled_from([1, 7, 64, 1 << 20]),
    threads=st.sampled_from([1, 2]),
)
@example(b"a\tr\tb\t10\n" * 40 + b"a\tr\tb\n", 64, 2)
@example(b"a\tr\tb\t1\t2\n" * 3 + b"a\tr\tb\t1/2\n", 1 << 20, 1)
@example(b"a\tr\tb\t1\t2\n" * 3 + b"a\tr\tb\t\t2\n", 7, 1)
def test_any_bytes(tmp_path_factory, content: bytes, block: int, threads: int) -> None:
    folder = tmp_path_factory.getbasetemp() / "timed"
    folder.mkdir(exist_ok=True)
    (folder / "train.txt").write_bytes(content)
    due = slow(content)
    if isinstance(due, list):
        assert read(folder, block, threads) == due
        return
    with pytest.raises(FileError) as caught:
        read(folder, block, threads)
    assert caught.value.line == due


def test_times_are_in_their_order(tmp_path: Path) -> None:
    lines = ["a\tr\tb\t10", "a\tr\tb\t9", "b\tr\ta\t-3"]
    (tmp_path / "train.txt").write_text("\n".join(lines))
    (tmp_path / "test.txt").write_text("b\tr\tb\t100\n")
    graph = kgtrec.read_graph(f"timed:{tmp_path}")
    assert list(graph.contexts) == ["-3", "9", "10", "100"]
    assert graph.facts["train"].tolist() == [[0, 0, 1, 2], [0, 0, 1, 1], [1, 0, 0, 0]]


def test_an_interval_and_a_time_of_its_name_are_one(tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_text("a\tr\tb\t2000\t2001\n")
    (tmp_path / "test.txt").write_text("a\tr\tc\t2000/2001\n")
    graph = kgtrec.read_graph(f"timed:{tmp_path}")
    assert list(graph.contexts) == ["2000/2001"]
