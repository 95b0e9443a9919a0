"""One graph in every format: the same triples by label; and errors of faulty files."""

from __future__ import annotations

import re
import sys
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from graph_files import GraphFiles, lines, write
from refusals import each_row

import kgtrec
from kgtrec.cli import cli
from kgtrec.errors import FileError, FilterWarning

SPLITS = {
    "train": [("zoë", "likes", "adam"), ("adam", "knows", "b c"), ("b c", "likes", "zoë")],
    "valid": [("b c", "knows", "adam")],
    "test": [("adam", "likes", "zoë"), ("zoë", "knows", "b c")],
}
# Separate numbers: neither byte order nor order of appearance.
ENTITIES = ["b c", "zoë", "adam"]
RELATIONS = ["likes", "knows"]


FILES = GraphFiles(
    SPLITS, ENTITIES, RELATIONS, trained=[("x", "likes", "y"), ("y", "only here", "x")]
)
LABELLED = ("csv_named", "csv_declared", "tsv_in_order", "parquet", "arrow")
NUMBERED = ("libkge", "rotate", "rotate_in_order", "dgl_ke", "pykeen", "openke")
INDUCTIVE = ("ilpc", "grail", "ultra", "ultra_grail")


def labelled(graph: kgtrec.Graph) -> dict[str, list[tuple[str, ...]]]:
    return {
        split: [
            (graph.entities[h], graph.relations[r], graph.entities[t]) for h, r, t in rows.tolist()
        ]
        for split, rows in graph.splits.items()
    }


@pytest.fixture
def plain(tmp_path: Path) -> kgtrec.Graph:
    for split, rows in SPLITS.items():
        write(tmp_path / "plain" / f"{split}.txt", lines(rows))
    return kgtrec.read_graph(tmp_path / "plain")


@each_row("name", LABELLED)
def test_labels_without_numbers_are_numbered_in_byte_order(
    tmp_path: Path, plain: kgtrec.Graph, name: str
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        graph = kgtrec.read_graph(FILES.make(name, tmp_path))
    assert labelled(graph) == SPLITS
    assert graph.fingerprint == plain.fingerprint


@each_row("name", NUMBERED)
def test_numbers_of_a_format_are_kept(tmp_path: Path, name: str) -> None:
    graph = kgtrec.read_graph(FILES.make(name, tmp_path))
    assert labelled(graph) == SPLITS
    assert (list(graph.entities), list(graph.relations)) == (ENTITIES, RELATIONS)
    assert graph.name == tmp_path.name


def test_a_format_may_be_an_argument(tmp_path: Path) -> None:
    FILES.make("dgl_ke", tmp_path)
    assert labelled(kgtrec.read_graph(tmp_path, format="dgl-ke", columns="rth")) == SPLITS


def test_ntriples_have_iris_and_blank_nodes(tmp_path: Path) -> None:
    text = (
        "# a comment\n<http://x/a> <http://x/r> <http://x/b> .\n\n"
        "_:n1 <http://x/s>\t<http://x/a>. # end\n"
    )
    write(tmp_path / "train.nt", text)
    write(tmp_path / "test.nt.gz", "<http://x/b> <http://x/r> _:n1 .\n")
    assert labelled(kgtrec.read_graph(tmp_path)) == {
        "train": [("http://x/a", "http://x/r", "http://x/b"), ("_:n1", "http://x/s", "http://x/a")],
        "test": [("http://x/b", "http://x/r", "_:n1")],
    }


def test_arrays_of_ogb_keep_entities_without_a_triple(tmp_path: Path) -> None:
    graph = kgtrec.read_graph(FILES.make("ogb", tmp_path))
    assert graph.n_entities == 12
    assert graph.splits["test"].tolist() == [list(row) for row in FILES.numbers("test")]


def test_numbers_in_parquet_are_ids_if_a_graph_may_have_them(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    head, relation, tail = zip(*FILES.numbers("train"), strict=True)
    table = pa.table({"head": head, "relation": relation, "tail": tail})
    pq.write_table(table, tmp_path / "train.parquet")
    graph = kgtrec.read_graph(tmp_path)
    assert graph.splits["train"].tolist() == [list(row) for row in FILES.numbers("train")]
    assert list(graph.entities) == ["0", "1", "2"]
    table = pa.table({"head": [0, 1], "relation": [0, 0], "tail": [1, 1 << 29]})
    pq.write_table(table, tmp_path / "train.parquet")
    message = r"quet: tail 536870912 is too large for 2 triples; correct it"
    with pytest.raises(kgtrec.errors.FileError, match=message):
        kgtrec.read_graph(tmp_path)


def test_an_index_that_pandas_writes_is_a_column_of_no_name(tmp_path: Path) -> None:
    for split in ("train", "test"):
        write(tmp_path / f"{split}.csv", ",head,relation,tail\n0,adam,likes,zoë\n")
    for spec in (f"{tmp_path}", f"csv,hrt:{tmp_path}"):
        assert list(kgtrec.read_graph(spec).entities) == ["adam", "zoë"]


# -- Inductive benchmarks ------------------------------------------------------------------------


@each_row("made", INDUCTIVE)
def test_the_inference_graph_has_the_candidates(tmp_path: Path, made: str) -> None:
    graph = kgtrec.read_graph(FILES.make(made, tmp_path))
    assert labelled(graph) == SPLITS
    assert list(graph.entities) == sorted(ENTITIES, key=str.encode)  # x and y are no candidates
    assert list(graph.relations) == ["knows", "likes", "only here"]


@each_row("made", ["openke", "ntriples", *INDUCTIVE])
def test_an_order_of_columns_that_a_format_never_has_is_refused(tmp_path: Path, made: str) -> None:
    kind, _, folder = FILES.make(made, tmp_path).partition(":")
    own, other = ("htr", "hrt") if kind == "openke" else ("hrt", "htr")
    with pytest.raises(kgtrec.UsageError, match=f"'{other}' does not fit format .* always '{own}'"):
        kgtrec.read_graph(f"{kind},{other}:{folder}")
    assert kgtrec.read_graph(f"{kind},{own}:{folder}").splits["test"].size


@each_row("made", ["ilpc", "ultra", "ultra_grail"])
def test_inductive_folders_are_never_half_read(tmp_path: Path, made: str) -> None:
    FILES.make(made, tmp_path)
    with pytest.raises(kgtrec.InputError, match="ilpc:DIR, grail:DIR or ultra:DIR"):
        kgtrec.read_graph(tmp_path)


@each_row("made", INDUCTIVE)
def test_entities_outside_the_inference_graph_are_an_error(tmp_path: Path, made: str) -> None:
    spec = FILES.make(made, tmp_path)
    test = next(p for p in tmp_path.rglob("*test*.txt"))
    test.write_bytes(test.read_bytes() + b"adam\tlikes\tx\nx\tlikes\ty\n")
    message = rf"{test.name}:3: tail 'x' is not in the inference .* not a candidate \(2 triples"
    with pytest.raises(kgtrec.InputError, match=message):
        kgtrec.read_graph(spec)


def test_graphs_of_grail_can_be_named_by_either_folder(tmp_path: Path) -> None:
    one = kgtrec.read_graph(FILES.make("grail", tmp_path))
    other = kgtrec.read_graph(f"grail:{tmp_path / 'v1_ind'}")
    assert one.fingerprint == other.fingerprint


# -- Faulty files --------------------------------------------------------------------------------


DEL = "numeric_triples.tsv.gz"
LIKELY = "train.npz: {} 16777216 is too large for 1 triples; correct it, or also save num_"

# Format, damaged file, its content (None: removed), words of the message. The transcript "files"
# has those of text that need no other files.
WRONG: list[tuple[str, str, str | bytes | None, str]] = [
    ("libkge", "dataset.yaml", "dataset:\n  a: [\n", "yaml:3: not YAML"),
    ("libkge", "dataset.yaml", "job: x\n", "dataset.yaml: no key 'dataset'"),
    ("libkge", "dataset.yaml", "dataset: !!python/object/apply:os.getcwd []\n", "not YAML"),
    ("libkge", "dataset.yaml", "dataset: &a\n  x: *a\n", "a key that contains itself"),
    ("libkge", "train.del", "0\t1\t2\n0\t1\t3\n", "del:2: tail 3 is not"),
    ("libkge", "test.del", "0\t1\n", "test.del:1: '0\\t1'"),
    ("libkge", "entity_ids.del", "0\ta\n2\tb\n", "no line for id 1, but"),
    ("libkge", "entity_ids.del", "0\ta\n1\ta\n", ":2: label 'a' is"),
    ("libkge", "train.del", None, "train.del: the file does not exist"),
    ("rotate", "test.txt", "adam\tlikes\tzoë\nadam\tzoë\tlikes\n", ":2: 'zoë' is not in relations"),
    ("rotate", "test.txt", "adam\n", "test.txt:1: 1 column instead of 3"),
    ("rotate", "entities.dict", "a\tadam\n", "entities.dict:1: 'a\\tadam'"),
    ("dgl_ke", "test.txt", "2 0 1\n", "test.txt:1: relation 2 is not below 2"),
    ("pykeen", f"testing/{DEL}", "0\t1\t2\n", f"{DEL}:1: the first line is '0 1 2'"),
    ("pykeen", f"testing/{DEL}", "head\trelation\ttail\n0\t0\t9\n", ":2: tail 9 is not below 3"),
    ("pykeen", f"testing/{DEL}", b"", f"{DEL}:1: the first line is ''"),
    ("pykeen", f"testing/{DEL}", b"head\trelation\ttail\n0\t\xff\t1\n", f"{DEL}:2: "),
    ("pykeen", "testing/entity_to_id.tsv.gz", "id\tlabel\n0\tx\n", "its labels differ"),
    ("pykeen", "training/entity_to_id.tsv.gz", 'id\tlabel\n0\t"x\n1\ty\n',
     "gz:2: a quoted field that does not end on the same line"),
    ("", "train.parquet", "PAR1", "not a readable parquet file"),
    ("", "train.arrow", "ARROW1", "not a readable arrow file"),
    ("ilpc", "inference.txt", None, "no inference.txt; it needs train.txt"),
    ("grail", "v1_ind/test.txt", None, "no v1_ind/test.txt"),
]  # fmt: skip


def refuses(spec: str, message: str) -> None:
    done = CliRunner().invoke(cli, ["stats", spec])
    assert isinstance(done.exception, kgtrec.KgtrecError), done.exception
    assert message in str(done.exception)
    assert "; " in str(done.exception)


@each_row("made, file, content, message", WRONG)
def test_wrong_files_are_named_with_line_and_hint(
    tmp_path: Path, made: str, file: str, content: str | bytes | None, message: str
) -> None:
    spec = FILES.make(made, tmp_path) if made else str(tmp_path)
    if content is None:
        (tmp_path / file).unlink()
    else:
        write(tmp_path / file, content)
    refuses(spec, message)


@each_row("arrays, message", [
    ({"x": [1]}, "train.npz: it contains the arrays ['x']"),
    ({"head": [1.0], "relation": [0], "tail": [0]}, "float64 of shape (1,)"),
    ({"head": [1, 2], "relation": [0], "tail": [0]}, "head 2, relation 1"),
    ({"head": [-1], "relation": [0], "tail": [0]}, "head is -1 in row 0"),
    ({"head": [5], "relation": [0], "tail": [0], "num_nodes": 5}, "5, but num_nodes is 5"),
    ({"head": [1 << 24], "relation": [0], "tail": [0]}, LIKELY.format("head") + "nodes"),
    ({"head": [1], "relation": [1 << 24], "tail": [0], "num_nodes": 5},
     LIKELY.format("relation") + "relations"),
    ({"head": np.array([None, {}], object)}, "train.npz: not a readable .npz"),
    (None, "train.npz: head is not a numpy array"),
])  # fmt: skip
def test_wrong_arrays_of_ogb(tmp_path: Path, arrays: dict[str, Any] | None, message: str) -> None:
    np.savez(tmp_path / "train.npz", **(arrays or {}))
    if arrays is None:  # members with the right names, but no header of numpy
        with zipfile.ZipFile(tmp_path / "train.npz", "w") as archive:
            for name in ("head", "relation", "tail"):
                archive.writestr(f"{name}.npy", b"12345678")
    refuses(str(tmp_path), message)


@each_row("columns, message", [
    ({"head": ["a"], "tail": ["b"]}, "exactly one column 'relation'"),
    ({"head": ["a", None], "relation": ["r", "r"], "tail": ["b", "b"]}, "head is null in row 1"),
    ({"head": [1], "relation": ["r"], "tail": [2]}, "some columns are numbers"),
    ({"head": [1.5], "relation": ["r"], "tail": ["b"]}, "column 'head' is of type double"),
    ({"head": [0], "relation": [0], "tail": [-4]}, "tail is -4 in"),
    ({"head": ["a", ""], "relation": ["r", "r"], "tail": ["b", "b"]}, "an empty head in row 1"),
])  # fmt: skip
def test_wrong_columns_of_parquet(tmp_path: Path, columns: dict[str, Any], message: str) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table(columns), tmp_path / "train.parquet")
    refuses(str(tmp_path), message)


def test_pickles_are_refused_with_the_sentence_that_converts_them(tmp_path: Path) -> None:
    write(tmp_path / "data.pkl", "x")
    with pytest.raises(kgtrec.InputError, match=r"numpy\.savez"):
        kgtrec.read_graph(tmp_path / "data.pkl")


def test_without_yaml_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(kgtrec.UsageError, match=r"pip install 'kgtrec\[libkge\]'"):
        kgtrec.read_graph(FILES.make("libkge", tmp_path))


def test_a_folder_whose_name_has_a_colon_is_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "csv:x" / "train.txt", "a\tr\tb\n")
    assert kgtrec.read_graph("csv:x").name == "csv:x"
    with pytest.raises(kgtrec.InputError, match="a URL"):
        kgtrec.read_graph("https://bucket/graph")


def test_commands_take_a_declared_format_and_guard_its_files(tmp_path: Path) -> None:
    spec = FILES.make("rotate", tmp_path / "g")
    questions = kgtrec.read_graph(spec).questions()
    np.save(tmp_path / "s.npy", np.eye(len(questions), 3, dtype=np.float32))
    words = ["rank", "--graph", spec, "--scores", str(tmp_path / "s.npy")]
    done = CliRunner().invoke(cli, [*words, "-o", str(tmp_path / "r.parquet"), "-q"])
    assert done.exit_code == 0, done.exception
    done = CliRunner().invoke(cli, [*words, "-o", str(tmp_path / "g" / "entities.dict")])
    assert "--output" in str(done.exception) or "would overwrite" in str(done.exception)
    jobs = (
        'output = "out"\n[graphs]\ng = "rotate:g"\n[models.m]\nscores = "s.npy"\n'
        '[protocols.p]\nsplit = "test"\n'
    )
    write(tmp_path / "jobs.toml", jobs)
    done = CliRunner().invoke(cli, ["batch", str(tmp_path / "jobs.toml"), "--status"])
    assert done.exit_code == 0, done.exception


# -- Unread files that look like splits of a graph are named in an error or a warning --------------


INDUCTIVE_NAMES = ("inference.txt", "inductive_test.txt", "inference_validation.txt", "msg.txt",
                   "inference_test.tsv", "inductive_valid.txt.gz", "Inference.txt")  # fmt: skip
VALID_NAMES = ("validation.txt", "val.tsv", "VALID.txt", "fb_valid.txt", "valid.csv",
               "dev-1.txt.gz", "valid2id.txt")  # fmt: skip
OTHERS = ("README.txt", "entities.dict", "relation2id.txt", "1-1.txt", "types.tsv", "test.npy",
          "contest.txt", "latest_run.txt", "message.txt", "type_constrain.txt",
          "test2id_all.txt", "train2id.txt")  # fmt: skip
WHOLE = ("train.txt", "valid.txt", "test.txt")
# Names beside these splits, what they raise or warn of, and the words, which contain the name.
UNREAD: list[tuple[tuple[str, ...], tuple[str, ...], Any, str]] = [
    (INDUCTIVE_NAMES, WHOLE, FileError, "'{}' beside the splits.*inductive"),
    (VALID_NAMES, WHOLE[::2], FileError, "split 'valid' is not read: '{}'"),
    (("dev.txt", "valid.tsv", "valid", "dev.txt.gz"), WHOLE, FileError,
     "two files for split 'valid'.*{}'"),
    (("test_hard.txt", "valid.csv", "train2.txt", "my-train.tsv"), WHOLE, FilterWarning,
     "'{}' is not read: split"),
    (("valid.npy",), WHOLE[::2], FilterWarning, "split 'valid' is not read: '{}'"),
    (OTHERS, WHOLE, None, ""),
]  # fmt: skip


@pytest.mark.parametrize(("names", "splits", "raised", "words"), UNREAD)
def test_unread_files_that_look_like_splits_are_named(
    tmp_path: Path, names: tuple[str, ...], splits: tuple[str, ...], raised: Any, words: str
) -> None:
    for name in splits:
        write(tmp_path / name, b"a\tr\tb\n")
    for name in names:
        (tmp_path / name).write_bytes(b"a\tr\tb\n")
        match = words.format(name)
        if raised is FileError:
            with pytest.raises(FileError, match=match):
                kgtrec.read_graph(tmp_path)
        else:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                graph = kgtrec.read_graph(tmp_path)
            assert list(graph.splits) == [split[:-4] for split in splits]
            told = [str(one.message) for one in caught if one.category is FilterWarning]
            assert len(told) == bool(raised)
            assert raised is None or re.search(match, told[0])
        (tmp_path / name).unlink()


ROWS = [f"e{i}\tr{i % 3}\te{(i * 7 + 1) % 20}" for i in range(20)]
SOUND = {"train": ROWS[:14], "valid": ROWS[14:17], "test": ROWS[17:]}


@pytest.mark.parametrize(
    ("splits", "words"),
    [
        (SOUND, []),
        ({"train": ROWS}, []),  # nothing is evaluated
        ({**SOUND, "valid": None}, ["the graph has no split 'valid', so no triple of it"]),
        ({"test": ROWS}, ["the graph has no split 'train' and 'valid'"]),
        (
            {name: ["head\trelation\ttail", *rows] for name, rows in SOUND.items()},
            ["relation 'relation' occurs only in the first line of train, valid, test"],
        ),
        (
            {**SOUND, "test": ["e1\tnew\te2", *SOUND["test"]]},
            [
                "relation 'new' occurs only in the first line of test",
                "1 of 4 relations of split 'test'",
            ],
        ),
        (  # head, tail, relation
            {
                k: ["\t".join(x.split("\t")[i] for i in (0, 2, 1)) for x in v]
                for k, v in SOUND.items()
            },
            [
                "relations of split 'valid' do not occur in train",
                "declare their order, as in tsv,htr:DIR",
            ],
        ),
    ],
    ids=["sound", "train", "no valid", "test alone", "headings", "one heading", "columns"],
)
def test_graphs_that_look_misread_are_said(tmp_path: Path, splits: dict, words: list[str]) -> None:
    for name, rows in splits.items():
        if rows is not None:
            (tmp_path / f"{name}.txt").write_text("\n".join(rows) + "\n")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        kgtrec.read_graph(tmp_path)
    told = [str(warning.message) for warning in caught]
    assert all(issubclass(warning.category, kgtrec.GraphWarning) for warning in caught)
    assert all(warning.filename == __file__ for warning in caught)  # at the caller's line
    assert bool(told) == bool(words)
    for word in words:
        assert any(word in text and text.startswith(f"{tmp_path}: ") for text in told), told
