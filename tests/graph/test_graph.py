"""Graph: reading triples, arrays, duplicates, and the message for every bad input."""

from __future__ import annotations

import gzip
import os
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from profiles import examples
from refusals import each_row

from kgtrec.errors import FileError, InputError, UsageError
from kgtrec.graph import triples as triples_module
from kgtrec.graph import tsv
from kgtrec.graph.triples import drop_duplicates, pack_triples
from kgtrec.questions.api import Graph, read_graph

TRIPLES = [(b"b", b"r", b"a"), (b"a", b"s", b"c"), (b"b", b"r", b"a"), (b"\xff\"'", b"r", b"b ")]
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
    (tmp_path / "entities.txt").write_bytes(b"not a split")
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


OPENKE = b"2\n0 1 0\n1 0 0\n"
GOOD = b"a\tr\tb\n"


@each_row(
    "content, line, message",
    [
        (b"", None, "no triples: the file is empty"),
        (GOOD + b"a\tr\n", 2, r"2 columns instead of 3: 'a\\tr'; each line must be"),
        (GOOD + b"a\tr\tb\tc\n", 2, r"4 columns .*remove the other columns"),
        (b"a r b\n", 1, "looks space-separated; replace the spaces with tabs"),
        (b"a,r,b\n", 1, "looks comma-separated; replace the commas with tabs"),
        (OPENKE, 1, r"a count as in OpenKE's format; in .* all splits begin with a count"),
        (OPENKE.replace(b" ", b"\t"), 1, "a count as in OpenKE's format"),
        (GOOD * 3 + b"\tr\tb\n", 4, r"an empty head in '\\tr\\tb'"),
        (GOOD + b"a\t\tb\n", 2, "an empty relation in"),
        (GOOD + b"a\tr\t\n", 2, "an empty tail in"),
        (GOOD + b"\n\n" + GOOD, 2, "an empty line; delete it"),
        (b"\r\n" + GOOD, 1, "an empty line; delete it"),
        (GOOD + b"a\0\tr\tb\n", 2, r"a NUL byte in 'a\\x00\\tr\\tb'; remove NUL bytes"),
        (b"a\tr\tb\rc\tr\td\n", 1, "a carriage return inside the line .*LF or CRLF"),
        (GOOD + b"a\rb\tr\tc\r\n", 2, "a carriage return inside"),
        (GOOD + b"a\tr\tc\r\r", 2, "a carriage return inside"),
        (GOOD + b"x" * 500 + b"\n", 2, f"1 column instead of 3: '{'x' * 60}'\\.\\.\\.;"),
        (GOOD + b"\xff\xfe\n", 2, r"'\\\\xff\\\\xfe'"),
        ("a\tr\tb\n".encode("utf-16"), None, "UTF-16 text; save the file as UTF-8"),
        (bytes(range(256)) * 20, 1, "binary data: "),
        (gzip.compress(PLAIN, mtime=0), None,
         r"compressed \(\.gz\), but the file name does not say so; add \.gz"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gz"])
def test_bad_content(tmp_path: Path, content: bytes, line, message: str, packed: bool) -> None:
    folder = folder_with(tmp_path, train__txt=GOOD)
    bad = folder / ("test.tsv.gz" if packed else "test.tsv")
    bad.write_bytes(gzip.compress(content) if packed else content)
    with pytest.raises(FileError, match=message) as caught:
        read_graph(folder)
    assert caught.value.path == str(bad)
    assert caught.value.line == line
    assert str(caught.value).startswith(f"{bad}:{line}: " if line else f"{bad}: ")


@each_row(
    "content, ending, message",
    [
        (gzip.compress(os.urandom(3000))[:-20], "gz", "reading failed .*[Tt]runcated.*damaged"),
        (gzip.compress(PLAIN)[:5], "gz", "reading failed .*[Tt]runcated.*damaged"),
        (gzip.compress(PLAIN)[:-8] + b"\0" * 8, "gz", "reading failed .*damaged"),
        (PLAIN, "gz", "reading failed .*damaged"),
        (b"", "gz", "no triples"),
        (PLAIN, "zst", "reading failed .*damaged"),
    ],
    ids=["truncated", "header only", "checksum", "not gz", "empty", "not zst"],
)
def test_bad_compression(tmp_path: Path, content: bytes, ending: str, message: str) -> None:
    with pytest.raises(FileError, match=message):
        read_graph(folder_with(tmp_path, **{f"train__txt__{ending}": content}))


@each_row("files, message", [
    ({}, "the folder is empty; name the files train"),
    ({"README__md": b"", "Train__csv": b""}, "only 'README.md', 'Train.csv', 'train/'; name"),
    ({"entity2id__txt": b"1\na\t0\n"}, r"OpenKE's format needs at least one of train2id\.txt"),
    ({"dev__tsv": GOOD, "valid__txt": GOOD},
     "two files for split 'valid': 'dev.tsv' and 'valid.txt'"),
])  # fmt: skip
def test_bad_folders(tmp_path: Path, files: dict[str, bytes], message: str) -> None:
    folder_with(tmp_path, **files)
    if "README__md" in files:
        (tmp_path / "train").mkdir()
        with pytest.raises(FileError, match="this is a file, not a folder"):
            read_graph(tmp_path / "README.md")
    with pytest.raises(FileError, match=message):
        read_graph(tmp_path)
    with pytest.raises(FileError, match="nowhere: this folder does not exist; give the folder"):
        read_graph(tmp_path / "nowhere")


@each_row("target", ["open", "scandir"])
def test_no_permission(tmp_path: Path, monkeypatch, target: str) -> None:
    def refuse(path, *args, **kwargs):
        raise PermissionError(13, "Permission denied", str(path))

    folder_with(tmp_path, train__txt=GOOD)
    if target == "open":
        monkeypatch.setattr("kgtrec.graph.tsv.open", refuse, raising=False)
    else:
        monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(FileError, match=r"cannot be (read|listed) \(Permission denied\); "):
        read_graph(tmp_path)


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
    counts = graph.entity_counts()
    distinct = [row for x in (train, test) for row in naive_distinct(x)]
    for entity in range(graph.n_entities):
        assert counts[entity] == sum((entity == h) + (entity == t) for h, _, t in distinct)
    for relation in range(graph.n_relations):
        expected = sum(r == relation for _, r, _ in naive_distinct(test))
        assert graph.relation_counts("test")[relation] == expected


@given(st.lists(st.tuples(ids, ids, ids), max_size=60), st.integers(0, 3))
def test_keys_that_overflow(rows: list, copies: int) -> None:
    array = np.array(rows * (copies + 1), dtype=np.int32).reshape(-1, 3)
    spread = array * [400_000_000, 400_000_000, 400_000_000]  # ids up to 1.6e9
    spread = spread.astype(np.int32)
    huge = (1 << 31) - 1
    assert drop_duplicates(spread).tolist() == list(map(list, naive_distinct(spread)))
    assert len(np.unique(pack_triples(spread, huge, huge))) == len(naive_distinct(rows))


@given(st.data(), st.sampled_from([0, 3, 64]), st.sampled_from([3, 4]))
def test_duplicates_whatever_their_hashes(data, bits: int, width: int) -> None:
    """Equal rows far apart and in any number, different rows with one hash, small chunks."""
    rows = data.draw(st.lists(st.tuples(*[ids] * width), min_size=1, max_size=8))
    picks = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=60))
    array = np.array([rows[i] for i in picks], dtype=np.int32).reshape(-1, width)
    hashes = triples_module._hashes

    def poor(some: np.ndarray) -> np.ndarray:
        return hashes(some) & ~np.uint64((1 << 64 - bits) - 1)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(triples_module, "_CHUNK", 7)
        patch.setattr(triples_module, "_hashes", poor)
        distinct = drop_duplicates(array)
        own = array.copy()
        assert drop_duplicates(own, in_place=True) is own
    assert distinct.tolist() == own.tolist() == list(map(list, naive_distinct(array)))
    assert (distinct is array) == (len(distinct) == len(array))


@each_row("arguments, error, message",
    [
        ({}, UsageError, "got no triples"),
        ({"train": np.ones((2, 3), np.float32)}, InputError, "train has dtype float32.*16,777,216"),
        ({"test": [(0, 0.0, 1)]}, InputError, "test has dtype float64: floats lose precision"),
        ({"train": [[True, False, True]]}, InputError, "dtype bool"),
        ({"train": [("a", "r", "b")]}, InputError, "dtype <U1.*labels through entities="),
        ({"train": [(0, 0, 1 << 70)]}, InputError, "dtype object"),
        ({"train": [(0, 0, 1), (0, 0)]}, InputError, "ragged"),
        ({"train": [0, 0, 1]}, InputError, r"shape \(3,\), not \(n, 3\)"),
        ({"train": [(0, 1)]}, InputError, r"shape \(1, 2\)"),
        ({"train": [(0, 0, 1)], "valid": [(0, 0, 1), (0, 0, -4)]}, InputError,
         r"valid, row 1, column 2 \(tail\): entity id -4 is negative"),
        ({"train": [(0, 0, 1), (5, 0, 1)], "n_entities": 5}, InputError,
         r"train, row 1, column 0 \(head\): entity id 5 is not below the 5 .*n_entities - 1"),
        ({"train": [(0, 2, 1)], "relations": ["r", "s"]}, InputError,
         r"train, row 0, column 1 \(relation\): relation id 2 is not below the 2 .*n_relations"),
        ({"train": np.full((1, 3), 1 << 63, np.uint64)}, InputError, "ids must be below"),
        ({"train": [(0, 0, 1)], "n_entities": 1 << 32}, UsageError, "must be between 1 and"),
        ({"train": [(0, 0, 1)], "n_entities": 0}, UsageError, "n_entities=0; it must be between"),
        ({"train": [(0, 0, 1)], "n_relations": 2.0}, UsageError, "n_relations=2.0 is not an int"),
        ({"train": [(0, 0, 1)], "entities": ["a", "b"], "n_entities": 3}, UsageError,
         "n_entities=3, but entities= has 2 labels"),
        ({"train": [(0, 0, 1)], "entities": ["a", "a"]}, InputError, "'a' is given twice"),
    ],
)  # fmt: skip
def test_from_arrays_refuses(arguments: dict, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        Graph.from_arrays(**arguments)


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


def test_openke_files_that_are_empty_or_missing(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, train2id__txt=NUMBERED["train"], test2id__txt=b"", **LABELS)
    with pytest.raises(FileError, match=r"test2id\.txt:1: '' instead of a number"):
        read_graph(folder)
    (folder / "entity2id.txt").unlink()
    with pytest.raises(FileError, match=r"entity2id\.txt: the file does not exist"):
        read_graph(folder)


def test_openke_ids_without_labels_fit_32_bits(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, test__txt=b"1\n0 2147483647 0\n")
    with pytest.raises(FileError, match=r"test\.txt:2: tail 2147483647 is not below 2147483647"):
        read_graph(folder)


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


def read(folder: Path, kind: str, block: int, threads: int) -> dict[str, Rows]:
    """Facts by label, read in blocks of that size; ids are checked to be in byte order."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tsv, "_BLOCK", block)
        patch.setattr(tsv, "_ALONE", 0 if threads > 1 else 1 << 30)
        patch.setattr(tsv, "available_cores", lambda: threads)
        graph = read_graph(f"{kind}:{folder}")
    whole = np.concatenate(list(graph.facts.values()))
    assert whole.dtype == np.int32
    for labels, columns in ((graph.entities, [0, 2]), (graph.relations, [1])):
        names = labels.to_arrow().to_pylist()
        assert names == sorted(set(names))
        assert np.unique(whole[:, columns]).tolist() == list(range(len(names)))
    columns = (graph.entities, graph.relations, graph.entities, graph.contexts)
    return {
        split: [tuple(labels[i] for labels, i in zip(columns, fact, strict=False))
                for fact in rows.tolist()]
        for split, rows in graph.facts.items()
    }  # fmt: skip


def check_bytes(folder: Path, kind: str, content: bytes, block: int, threads: int) -> None:
    (folder / "train.txt").write_bytes(content)
    due = slow(kind, content)
    if isinstance(due, list):
        assert read(folder, kind, block, threads) == {"train": due}
        return
    with pytest.raises(FileError) as caught:
        read(folder, kind, block, threads)
    # Messages about binary data and UTF-16 name the first line, or the file.
    other = any(words in str(caught.value) for words in ("binary data", "UTF-16"))
    assert caught.value.line in ((1, None) if other else (due,))


PIECES = {
    "tsv": [b"a", b"b\xff", b"\t", b"\n", b"\r", b"\r\n", b"\0", b"\x01\x0b", BOM, b"a\tr\tb\n",
            b"a\tr\tb\r\n", b"xyz" * 30 + b"\tr\tb\n", b"a\tr\t" + b"c" * 70 + b"\n"],
    "timed": [b"a", b"\t", b"\n", b"\r\n", b"\0", b"\r", b"7", b"a\tr\tb\t10\n",
              b"a\tr\tb\xff\t9\r\n", b"b\tr\ta\t2014-07-01\n", b"a\tr\tb\t1\t2\n",
              b"a\ts\tb\t1\t2\n", b"xyz" * 30 + b"\tr\tb\t10\n"],
}  # fmt: skip


@pytest.mark.parametrize("kind", PIECES)
@examples(2)
@given(data=st.data(), block=st.sampled_from([1, 7, 64, 1 << 20]), threads=st.sampled_from([1, 2]))
def test_any_bytes(tmp_path_factory, kind: str, data, block: int, threads: int) -> None:
    pieces = data.draw(st.lists(st.sampled_from(PIECES[kind]), max_size=12))
    folder = tmp_path_factory.getbasetemp() / kind
    folder.mkdir(exist_ok=True)
    check_bytes(folder, kind, b"".join(pieces), block, threads)


@each_row("kind, content, block, threads", [
    ("tsv", GOOD * 40 + b"a\tr\n", 64, 2),
    ("tsv", GOOD * 40 + b"\r\r\n", 64, 2),
    ("tsv", GOOD * 3 + b"\n\r\n" * 5000, 32, 1),
    ("timed", b"a\tr\tb\t10\n" * 40 + GOOD, 64, 2),
    ("timed", b"a\tr\tb\t1\t2\n" * 3 + b"a\tr\tb\t1/2\n", 1 << 20, 1),
    ("timed", b"a\tr\tb\t1\t2\n" * 3 + b"a\tr\tb\t\t2\n", 7, 1),
])  # fmt: skip
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
    assert read(tmp_path, "tsv", 1 << 12, threads) == due


def test_a_line_that_no_block_can_hold(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(tsv, "_BLOCK", 16)
    monkeypatch.setattr(tsv, "_LARGEST_BLOCK", 64)
    with pytest.raises(FileError, match="a line of more than 2 GB; each line must be"):
        read_graph(folder_with(tmp_path, train__txt=GOOD + b"x" * 100 + b"\tr\tb\n"))
