"""Tab-separated files of triples and facts with a time, against a slow reading of their bytes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from profiles import examples

import kgtrec
from kgtrec.errors import FileError
from kgtrec.graph import tsv
from kgtrec.graph.tsv import load_triples

BOM = b"\xef\xbb\xbf"


def slow(content: bytes) -> list[list[bytes]] | int | None:
    """Fields of all lines, or the number of the first faulty one, or None: no triples."""
    rows, blank = [], None
    for number, line in enumerate(content.removeprefix(BOM).split(b"\n"), start=1):
        text = line[:-1] if line.endswith(b"\r") else line
        fields = text.split(b"\t")
        if not text:
            blank = blank or number
        elif blank:
            return blank
        elif len(fields) != 3 or not all(fields) or b"\r" in text or b"\0" in text:
            return number
        else:
            rows.append(fields)
    return rows or None


def read(files: dict[str, Path], block: int, threads: int) -> dict[str, list[list[bytes]]]:
    """Triples by label, read in blocks of that size; ids are checked to be in byte order."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tsv, "_BLOCK", block)
        patch.setattr(tsv, "_ALONE", 0 if threads > 1 else 1 << 30)
        patch.setattr(tsv, "available_cores", lambda: threads)
        triples, *labels = load_triples(files, progress=False)
    entities, relations = (array.to_pylist() for array in labels)
    for names, columns in ((entities, [0, 2]), (relations, [1])):
        assert names == sorted(set(names))
        used = np.unique(np.concatenate([rows[:, columns].ravel() for rows in triples.values()]))
        assert used.tolist() == list(range(len(names)))
    assert all(rows.dtype == np.int32 for rows in triples.values())
    return {
        split: [[entities[h], relations[r], entities[t]] for h, r, t in rows.tolist()]
        for split, rows in triples.items()
    }


piece = st.sampled_from(
    [
        *(b"a", b"b\xff", b"\t", b"\n", b"\r", b"\r\n", b"\0", b"\x01\x0b", BOM, b"a\tr\tb\n"),
        *(b"a\tr\tb\r\n", b"xyz" * 30 + b"\tr\tb\n", b"a\tr\t" + b"c" * 70 + b"\n"),
    ]
)


def test_blank_lines_at_the_end_do_not_overtake_the_rows(tmp_path: Path) -> None:
    path = tmp_path / "blank.txt"
    path.write_bytes(b"a\tr\tb\n" * 3 + b"\n" * 30)
    for _ in range(200):
        assert read({"train": path}, 1, 2) == {"train": [[b"a", b"r", b"b"]] * 3}


@examples(1.5)
@given(
    content=st.lists(piece, max_size=12).map(b"".join),
    block=st.sampled_from([1, 7, 64, 1 << 20]),
    threads=st.sampled_from([1, 2]),
)
@example(b"a\tr\tb\n" * 40 + b"a\tr\n", 64, 2)
@example(b"a\tr\tb\n" * 40 + b"\r\r\n", 64, 2)
def test_any_bytes(tmp_path_factory, content: bytes, block: int, threads: int) -> None:
    path = tmp_path_factory.getbasetemp() / "any.txt"
    path.write_bytes(content)
    due = slow(content)
    if isinstance(due, list):
        assert read({"train": path}, block, threads) == {"train": due}
        return
    with pytest.raises(FileError) as caught:
        read({"train": path}, block, threads)
    # Messages about binary data and UTF-16 name the first line, or the file.
    other = any(kind in str(caught.value) for kind in ("binary data", "UTF-16"))
    assert caught.value.line in ((1, None) if other else (due,))


@pytest.mark.parametrize("threads", [1, 2])
def test_many_labels_with_long_beginnings_in_common(tmp_path: Path, threads: int) -> None:
    rng = np.random.default_rng(0)
    ends = rng.integers(0, 9000, (20_000, 2)).tolist()
    names = [b"/m/%s%s" % (b"0" * (i % 37), b"%x" % i) for i in range(9000)]
    rows = [[names[h], b"r%d" % (h % 5), names[t]] for h, t in ends]
    chains = [[b"n" * (1 + i), b"r", b"n"] for i in range(300)]  # each begins the next
    files = {}
    for split, own in (("train", rows[:15_000]), ("valid", chains), ("test", rows[15_000:])):
        files[split] = tmp_path / split
        files[split].write_bytes(b"".join(b"\t".join(row) + b"\n" for row in own))
    due = {"train": rows[:15_000], "valid": chains, "test": rows[15_000:]}
    assert read(files, 1 << 12, threads) == due


def test_a_line_that_no_block_can_hold(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(tsv, "_BLOCK", 16)
    monkeypatch.setattr(tsv, "_LARGEST_BLOCK", 64)
    path = tmp_path / "train.txt"
    path.write_bytes(b"a\tr\tb\n" + b"x" * 100 + b"\tr\tb\n")
    with pytest.raises(FileError, match="a line of more than 2 GB; each line must be"):
        load_triples({"train": path}, progress=False)


def odd(text: bytes) -> bool:
    return b"\r" in text or b"\0" in text


def slow_facts(content: bytes) -> list[tuple[str, ...]] | int | None:
    """Distinct facts, or the number of the first faulty line, or None: no facts."""
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


def read_facts(folder: Path, block: int, threads: int) -> list[tuple[str, ...]]:
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


timed_piece = st.sampled_from(
    [
        *(b"a", b"\t", b"\n", b"\r\n", b"\0", b"\r", b"7"),
        *(b"a\tr\tb\t10\n", b"a\tr\tb\xff\t9\r\n", b"b\tr\ta\t2014-07-01\n"),
        *(b"a\tr\tb\t1\t2\n", b"a\ts\tb\t1\t2\n", b"xyz" * 30 + b"\tr\tb\t10\n"),
    ]
)


@examples(2)
@given(
    content=st.lists(timed_piece, max_size=10).map(b"".join),
    block=st.sampled_from([1, 7, 64, 1 << 20]),
    threads=st.sampled_from([1, 2]),
)
@example(b"a\tr\tb\t10\n" * 40 + b"a\tr\tb\n", 64, 2)
@example(b"a\tr\tb\t1\t2\n" * 3 + b"a\tr\tb\t1/2\n", 1 << 20, 1)
@example(b"a\tr\tb\t1\t2\n" * 3 + b"a\tr\tb\t\t2\n", 7, 1)
def test_any_bytes_with_times(tmp_path_factory, content: bytes, block: int, threads: int) -> None:
    folder = tmp_path_factory.getbasetemp() / "timed"
    folder.mkdir(exist_ok=True)
    (folder / "train.txt").write_bytes(content)
    due = slow_facts(content)
    if isinstance(due, list):
        assert read_facts(folder, block, threads) == due
        return
    with pytest.raises(FileError) as caught:
        read_facts(folder, block, threads)
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
