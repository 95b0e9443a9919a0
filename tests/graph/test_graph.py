"""Graph: reading triples, arrays and duplicates; test_refusals.txt has bad inputs."""

from __future__ import annotations

import gzip
import os
import sys
import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from profiles import examples
from refusals import each_row

from kgtrec.errors import FileError, GraphWarning
from kgtrec.graph import triples as triples_module
from kgtrec.graph import tsv
from kgtrec.graph.triples import drop_duplicates, pack_triples
from kgtrec.questions.api import Graph, read_graph

TRIPLES = [(b"b", b"r", b"a"), (b"a", b"s", b"c"), (b"b", b"r", b"a"), (b"\xff\"'", b"r", b"b  b")]
BOM = b"\xef\xbb\xbf"
PLAIN = b"".join(b"\t".join(row) + b"\n" for row in TRIPLES)


def folder_with(path: Path, **files: bytes) -> Path:
    path.mkdir(exist_ok=True)
    for name, content in files.items():
        (path / name.replace("__", ".")).write_bytes(content)
    return path


def naive_distinct(rows: list) -> list:
    return list(dict.fromkeys(map(tuple, rows)))


def labelled(graph: Graph, split: str) -> list[tuple[bytes, ...]]:
    entities, relations = (x.to_arrow().to_pylist() for x in (graph.entities, graph.relations))
    return [(entities[h], relations[r], entities[t]) for h, r, t in graph.split(split)]


@each_row("packed", ["", ".gz", ".zst"])
def test_file_names(tmp_path: Path, packed: str) -> None:
    content = PLAIN
    if packed == ".gz":
        content = gzip.compress(PLAIN[:10]) + gzip.compress(PLAIN[10:])  # two members
    elif packed == ".zst":
        sink = pa.BufferOutputStream()
        with pa.CompressedOutputStream(sink, "zstd") as stream:
            stream.write(PLAIN)
        content = sink.getvalue().to_pybytes()
    (tmp_path / "README.txt").write_bytes(b"not a split")
    (tmp_path / "test.json").mkdir()
    for stem in ("train", "valid", "dev", "test"):
        for suffix in ("", ".txt", ".tsv"):
            file = tmp_path / (stem + suffix + packed)
            file.write_bytes(content)
            graph = read_graph(str(tmp_path))
            split = "valid" if stem == "dev" else stem
            assert list(graph.splits) == [split]
            assert labelled(graph, split) == naive_distinct(TRIPLES)
            assert graph.duplicates == {split: 1}
            file.unlink()


GOOD = b"a\tr\tb\n"


ids = st.integers(0, 4)
id_rows = st.lists(st.tuples(ids, st.integers(0, 2), ids), max_size=25)


@given(train=id_rows, test=id_rows, dtype=st.sampled_from(["u1", "i2", "i4", "i8", "u8", ">i4"]))
def test_from_arrays_against_naive(train: list, test: list, dtype: str) -> None:
    array = np.array(train, dtype=dtype).reshape(-1, 3)
    before = array.copy()
    strided = np.repeat(array, 2, axis=1)[:, ::2]
    graph = Graph.from_arrays(train=strided, test=test)
    assert not graph.split("train").flags.writeable
    assert [tuple(row) for row in graph.split("train").tolist()] == naive_distinct(train)
    assert [tuple(row) for row in graph.split("test").tolist()] == naive_distinct(test)
    assert graph.duplicates == {
        s: len(x) - len(set(x)) for s, x in (("train", train), ("test", test))
    }
    assert graph.n_entities == max((x for h, _, t in train + test for x in (h, t)), default=0) + 1
    assert graph.n_relations == max((r for _, r, _ in train + test), default=0) + 1
    assert (array == before).all()
    assert not np.shares_memory(array, Graph.from_arrays(train=array).split("train"))
    due = [sum(r == each for _, r, _ in set(test)) for each in range(graph.n_relations)]
    assert graph.relation_counts("test").tolist() == due


@given(st.data(), st.sampled_from([0, 3, 64]), st.sampled_from([3, 4]), st.sampled_from([1, 4e8]))
def test_duplicates_whatever_their_hashes(data, bits: int, width: int, step: float) -> None:
    """Equal rows far apart and in any number, different rows with one hash, small chunks; ids up
    to 1.6e9, whose keys overflow."""
    rows = data.draw(st.lists(st.tuples(*[ids] * width), min_size=1, max_size=8))
    picks = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=60))
    array = (np.array([rows[i] for i in picks]).reshape(-1, width) * step).astype(np.int32)
    hashes = triples_module.row_hashes

    def poor(some: np.ndarray) -> np.ndarray:
        return hashes(some) & ~np.uint64((1 << 64 - bits) - 1)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(triples_module, "_CHUNK", 7)
        patch.setattr(triples_module, "row_hashes", poor)
        distinct = drop_duplicates(array)
        own = array.copy()
        assert drop_duplicates(own, in_place=True) is own
    assert distinct.tolist() == own.tolist() == list(map(list, naive_distinct(array)))
    keys = pack_triples(array[:, :3], (1 << 31) - 1, (1 << 31) - 1)
    assert len(np.unique(keys)) == len(naive_distinct(array[:, :3]))
    assert (distinct is array) == (len(distinct) == len(array))


def test_fingerprint(monkeypatch) -> None:
    rows = [(0, 0, 1), (1, 0, 0)]
    base = Graph.from_arrays(rows)
    same = [
        Graph.from_arrays(np.array(rows, dtype=np.uint8)),
        Graph.from_arrays(rows, entities=["0", "1"], n_relations=1),
        Graph.from_arrays([*rows, rows[0]]),
    ]
    other = [
        Graph.from_arrays(test=rows),
        Graph.from_arrays(rows[::-1]),
        Graph.from_arrays(rows, n_entities=3),
        Graph.from_arrays(rows, entities=["x", "y"]),
        Graph.from_arrays(rows, test=rows),
    ]
    assert {graph.fingerprint for graph in same} == {base.fingerprint}
    assert len({graph.fingerprint for graph in [base, *other]}) == 1 + len(other)
    many = np.arange(30).reshape(10, 3)
    whole = Graph.from_arrays(many).fingerprint
    monkeypatch.setattr(triples_module, "_CHUNK", 3)
    assert Graph.from_arrays(many).fingerprint == whole


def test_arrays_need_numpy_only() -> None:
    code = "import sys; from kgtrec.questions.api import Graph; "
    code += "g = Graph.from_arrays(test=[(0, 0, 12)]); q = g.questions(); q.fingerprint; "
    code += "g.entities.trec_order; assert 'pyarrow' not in sys.modules"
    assert os.spawnl(os.P_WAIT, sys.executable, sys.executable, "-c", code) == 0


# -- OpenKE's format ---------------------------------------------------------------------------

NUMBERED = {"train": b"2\n0 1 0\n1 0 1\n", "test": b"3\r\n0\t2\t1\r\n0 0 0\r\n0 2 1\r\n"}
LABELS = {
    "entity2id__txt": b"4\nzeta\t0\nthe alpha\t2\nmid\t1\nunused\t3\n",
    "relation2id__txt": b"2\nr\t0\na\t1\n",
}


def test_openkes_numbers(tmp_path: Path) -> None:
    """Head tail relation, as WN18 is distributed: in files with plain names, without labels."""
    files = {f"{split}__txt": text for split, text in NUMBERED.items()}
    graph = read_graph(folder_with(tmp_path, **files))
    assert graph.splits["train"].tolist() == [[0, 0, 1], [1, 1, 0]]
    assert graph.splits["test"].tolist() == [[0, 1, 2], [0, 0, 0]]
    assert graph.duplicates == {"train": 0, "test": 1}
    assert (list(graph.entities), list(graph.relations)) == (["0", "1", "2"], ["0", "1"])
    files = {f"{split}2id__txt": text for split, text in NUMBERED.items()} | LABELS
    graph = read_graph(folder_with(tmp_path / "labels", **files))
    assert list(graph.entities) == ["zeta", "mid", "the alpha", "unused"]
    assert list(graph.relations) == ["r", "a"]
    assert labelled(graph, "test") == [(b"zeta", b"a", b"the alpha"), (b"zeta", b"r", b"zeta")]
    # Tab-separated files come before numbered ones.
    files = {"train__txt": GOOD, "train2id__txt": b"no such thing"}
    assert list(read_graph(folder_with(tmp_path / "both", **files)).entities) == ["a", "b"]


@pytest.mark.slow
@pytest.mark.data
def test_real_graphs_in_openkes_format(shared_data: Path) -> None:
    graph = read_graph(shared_data / "wn18")
    assert repr(graph) == (
        "Graph wn18\n  40,943 entities, 18 relations\n"
        "  triples: train 141,442, valid 5,000, test 5,000"
    )
    graph = read_graph(shared_data / "openke-fb15k237")
    same = read_graph(shared_data / "fb15k-237")
    for split in ("train", "valid", "test"):
        assert set(labelled(graph, split)) == set(labelled(same, split))


# -- Tab-separated files of triples and facts with a time, against a slow reading of their bytes ---

WIDTHS = {"tsv": (3,), "timed": (4, 5)}
Rows = list[tuple[str, ...]]


def slow(kind: str, content: bytes) -> Rows | int | None:
    """Distinct labels of lines, or the number of the first faulty one, or None: no facts."""
    rows: dict[tuple[str, ...], None] = {}
    blank, width = None, 0
    for number, line in enumerate(content.removeprefix(BOM).split(b"\n"), start=1):
        text = line[:-1] if line.endswith(b"\r") else line
        fields = text.split(b"\t")
        width = width or len(fields)
        if not text:
            blank = blank or number
        elif blank:
            return blank
        elif (
            len(fields) not in WIDTHS[kind]
            or len(fields) != width
            or not all(fields)
            or b"\r" in text
            or b"\0" in text
        ):
            return number
        else:
            names = [field.decode("utf-8", "surrogateescape") for field in fields]
            rows[(*names[:3], *(["/".join(names[3:])] if kind == "timed" else []))] = None
    return list(rows) or None


BLANKS = "\ufeff\x0b"  # of those in `PIECES`


def without_blanks(rows: Rows) -> Rows:
    """Labels that differ only in blanks around them are one, and then no label keeps any."""
    if not merges(rows):
        return rows
    merged = [(*(name.strip(BLANKS) or name for name in row[:3]), *row[3:]) for row in rows]
    return list(dict.fromkeys(merged))


def names_of(rows: Rows) -> tuple[set[str], set[str]]:
    """Entities and relations."""
    return {row[i] for row in rows for i in (0, 2)}, {row[1] for row in rows}


def merges(rows: Rows) -> bool:
    """Whether some labels are equal without the blanks around them."""
    return any(len({n.strip(BLANKS) or n for n in kind}) < len(kind) for kind in names_of(rows))


def doubts(rows: Rows) -> list[str]:
    """What the warnings on these facts say, one each."""
    entities, relations = names_of(without_blanks(rows))
    both = [name for name in relations & entities if not name.isdecimal()]
    wrong_order = ["are also entities"] if 10 * len(both) > len(relations) else []
    padded = any(n.strip(BLANKS) not in ("", n) for kind in names_of(rows) for n in kind)
    if not padded:
        return wrong_order
    return ["are removed" if merges(rows) else "are parts of the labels", *wrong_order]


def read(
    folder: Path, kind: str, block: int, threads: int, due: list[str] | None = None
) -> dict[str, Rows]:
    """Facts by label, read in blocks of that size; ids are checked to be in byte order.

    `due` has a part of each GraphWarning; by default there is none.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tsv, "_BLOCK", block)
        patch.setattr(tsv, "_ALONE", 0 if threads > 1 else 1 << 30)
        patch.setattr(tsv, "available_cores", lambda: threads)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", GraphWarning)
            graph = read_graph(f"{kind}:{folder}")
    said = [str(own.message) for own in caught]
    assert len(said) == len(due or ()), said
    assert all(map(str.__contains__, said, due or ())), (said, due)
    whole = np.concatenate(list(graph.facts.values()))
    assert whole.dtype == np.int32
    for labels, columns in ((graph.entities, [0, 2]), (graph.relations, [1])):
        names = labels.to_arrow().to_pylist()
        assert names == sorted(set(names))
        assert np.unique(whole[:, columns]).tolist() == list(range(len(names)))
    columns = (graph.entities, graph.relations, graph.entities, graph.contexts)
    return {
        split: [
            tuple(labels[i] for labels, i in zip(columns, fact, strict=False))
            for fact in rows.tolist()
        ]
        for split, rows in graph.facts.items()
    }


def check_bytes(folder: Path, kind: str, content: bytes, block: int, threads: int) -> None:
    (folder / "train.txt").write_bytes(content)
    due = slow(kind, content)
    if isinstance(due, list):
        facts = read(folder, kind, block, threads, doubts(due))
        assert facts == {"train": without_blanks(due)}
        return
    with pytest.raises(FileError) as caught:
        read(folder, kind, block, threads)
    # Messages about binary data and UTF-16 name the first line, or the file.
    other = any(words in str(caught.value) for words in ("binary data", "UTF-16", "UTF-32"))
    assert caught.value.line in ((1, None) if other else (due,))


PIECES = {
    "tsv": [
        b"a",
        b"b\xff",
        b"\t",
        b"\n",
        b"\r",
        b"\r\n",
        b"\0",
        b"\x01\x0b",
        BOM,
        b"a\tr\tb\n",
        b"a\tr\tb\r\n",
        b"xyz" * 30 + b"\tr\tb\n",
        b"a\tr\t" + b"c" * 70 + b"\n",
    ],
    "timed": [
        b"a",
        b"\t",
        b"\n",
        b"\r\n",
        b"\0",
        b"\r",
        b"7",
        b"a\tr\tb\t10\n",
        b"a\tr\tb\xff\t9\r\n",
        b"b\tr\ta\t2014-07-01\n",
        b"a\tr\tb\t1\t2\n",
        b"a\ts\tb\t1\t2\n",
        b"xyz" * 30 + b"\tr\tb\t10\n",
    ],
}


@pytest.mark.parametrize("kind", PIECES)
@examples(2)
@given(data=st.data(), block=st.sampled_from([1, 7, 64, 1 << 20]), threads=st.sampled_from([1, 2]))
def test_any_bytes(tmp_path_factory, kind: str, data, block: int, threads: int) -> None:
    pieces = data.draw(st.lists(st.sampled_from(PIECES[kind]), max_size=12))
    folder = tmp_path_factory.getbasetemp() / kind
    folder.mkdir(exist_ok=True)
    check_bytes(folder, kind, b"".join(pieces), block, threads)


@each_row(
    "kind, content, block, threads",
    [
        ("tsv", GOOD * 40 + b"a\tr\n", 64, 2),
        ("tsv", GOOD * 40 + b"\r\r\n", 64, 2),
        ("tsv", GOOD * 3 + b"\n\r\n" * 5000, 32, 1),
        ("timed", b"a\tr\tb\t10\n" * 40 + GOOD, 64, 2),
        ("timed", b"a\tr\tb\t1\t2\n" * 3 + b"a\tr\tb\t1/2\n", 1 << 20, 1),
        ("timed", b"a\tr\tb\t1\t2\n" * 3 + b"a\tr\tb\t\t2\n", 7, 1),
    ],
)
def test_rare_bytes(tmp_path: Path, kind: str, content: bytes, block: int, threads: int) -> None:
    check_bytes(tmp_path, kind, content, block, threads)


def test_blank_lines_at_the_end_do_not_overtake_the_rows(tmp_path: Path) -> None:
    for _ in range(200):
        check_bytes(tmp_path, "tsv", b"a\tr\tb\nb\tr\ta\n" + b"\n" * 30, 1, 2)


@pytest.mark.parametrize("threads", [1, 2])
def test_many_labels_with_long_beginnings_in_common(tmp_path: Path, threads: int) -> None:
    rng = np.random.default_rng(0)
    ends = rng.integers(0, 9000, (20_000, 2)).tolist()
    names = [f"/m/{'0' * (i % 37)}{i:x}" for i in range(9000)]
    rows = list(dict.fromkeys((names[h], f"r{h % 5}", names[t]) for h, t in ends))
    chains = [("n" * (1 + i), "r", "n") for i in range(300)]  # each begins the next
    due = {"train": rows[:15_000], "valid": chains, "test": rows[15_000:]}
    for split, own in due.items():
        (tmp_path / f"{split}.txt").write_text("".join("\t".join(row) + "\n" for row in own))
    assert read(tmp_path, "tsv", 1 << 12, threads, ["do not occur in train"]) == due


def test_a_line_that_no_block_can_hold(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(tsv, "_BLOCK", 16)
    monkeypatch.setattr(tsv, "_LARGEST_BLOCK", 64)
    with pytest.raises(FileError, match="a line of more than 2 GB; each line must be"):
        read_graph(folder_with(tmp_path, train__txt=GOOD + b"x" * 100 + b"\tr\tb\n"))
