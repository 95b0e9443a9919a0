"""One graph in every format: the same triples by label; test_refusals.txt has faulty files."""

from __future__ import annotations

import warnings
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from graph_files import GraphFiles, write
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
BY_BYTES = sorted(ENTITIES, key=str.encode)
INDUCTIVE = ("ilpc", "grail", "ultra", "ultra_grail")
# Formats, and the order of the labels of entities and relations that they give.
ORDERS = [
    (
        ("csv_named", "csv_declared", "tsv_in_order", "parquet", "arrow"),
        BY_BYTES,
        sorted(RELATIONS),
    ),
    (("libkge", "rotate", "rotate_in_order", "dgl_ke", "pykeen", "openke"), ENTITIES, RELATIONS),
    (INDUCTIVE, BY_BYTES, ["knows", "likes", "only here"]),  # x and y are no candidates
]


def labelled(graph: kgtrec.Graph) -> dict[str, list[tuple[str, ...]]]:
    return {
        split: [
            (graph.entities[h], graph.relations[r], graph.entities[t]) for h, r, t in rows.tolist()
        ]
        for split, rows in graph.splits.items()
    }


@each_row("names, entities, relations", ORDERS)
def test_every_format_gives_the_same_triples_by_label(
    tmp_path: Path, names: tuple[str, ...], entities: list[str], relations: list[str]
) -> None:
    for name in names:
        graph = kgtrec.read_graph(FILES.make(name, tmp_path / name))
        assert labelled(graph) == SPLITS, name
        assert (list(graph.entities), list(graph.relations)) == (entities, relations), name
        assert graph.name == ("v1" if name == "grail" else name)


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


def test_an_index_that_pandas_writes_is_a_column_of_no_name(tmp_path: Path) -> None:
    for split in ("train", "test"):
        write(tmp_path / f"{split}.csv", ",head,relation,tail\n0,adam,likes,zoë\n")
    for spec in (f"{tmp_path}", f"csv,hrt:{tmp_path}"):
        assert list(kgtrec.read_graph(spec).entities) == ["adam", "zoë"]


# -- Inductive benchmarks ------------------------------------------------------------------------


@each_row("made", ["ntriples", *INDUCTIVE])
def test_an_order_of_columns_that_a_format_never_has_is_refused(tmp_path: Path, made: str) -> None:
    kind, _, folder = FILES.make(made, tmp_path).partition(":")
    with pytest.raises(kgtrec.UsageError, match=r"'htr' does not fit format .* always 'hrt'"):
        kgtrec.read_graph(f"{kind},htr:{folder}")
    assert kgtrec.read_graph(f"{kind},hrt:{folder}").splits["test"].size


@each_row("made", INDUCTIVE)
def test_inductive_folders_are_never_half_read(tmp_path: Path, made: str) -> None:
    spec = FILES.make(made, tmp_path)
    if made != "grail":  # which has folders in its folder
        with pytest.raises(kgtrec.InputError, match="ilpc:DIR, grail:DIR or ultra:DIR"):
            kgtrec.read_graph(tmp_path)
    test = next(tmp_path.rglob("*test*.txt"))
    test.write_bytes(test.read_bytes() + b"adam\tlikes\tx\nx\tlikes\ty\n")
    message = rf"{test.name}:3: tail 'x' is not in the inference .* not a candidate \(2 triples"
    with pytest.raises(kgtrec.InputError, match=message):
        kgtrec.read_graph(spec)


def test_graphs_of_grail_can_be_named_by_either_folder(tmp_path: Path) -> None:
    one = kgtrec.read_graph(FILES.make("grail", tmp_path))
    other = kgtrec.read_graph(f"grail:{tmp_path / 'v1_ind'}")
    assert one.fingerprint == other.fingerprint


def test_a_folder_whose_name_has_a_colon_is_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "csv:x" / "train.txt", "a\tr\tb\n")
    assert kgtrec.read_graph("csv:x").name == "csv:x"


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


INDUCTIVE_NAMES = (
    "inference.txt",
    "inductive_test.txt",
    "inference_validation.txt",
    "msg.txt",
    "inference_test.tsv",
    "inductive_valid.txt.gz",
    "Inference.txt",
)
VALID_NAMES = (
    "validation.txt",
    "val.tsv",
    "VALID.txt",
    "fb_valid.txt",
    "valid.csv",
    "dev-1.txt.gz",
    "valid2id.txt",
)
OTHERS = (
    "README.txt",
    "1-1.txt",
    "types.tsv",
    "test.npy",
    "contest.txt",
    "latest_run.txt",
    "message.txt",
    "type_constrain.txt",
    "test2id_all.txt",
    "train2id.txt",
)
TRIPLES = (
    "graph.txt",
    "full_graph.txt",
    "background.txt",
    "raw.kb",
    "types.tsv",
    "more.txt.gz",
    "valid_negatives.txt",
)
WHOLE = ("train.txt", "valid.txt", "test.txt")
# Names beside these splits, what they raise or warn of, and the words, which contain the name.
UNREAD: list[tuple[tuple[str, ...], tuple[str, ...], Any, str]] = [
    (INDUCTIVE_NAMES, WHOLE, FileError, "'{}' beside the splits.*inductive"),
    (VALID_NAMES, WHOLE[::2], FileError, "split 'valid' is not read: '{}'"),
    (
        ("dev.txt", "valid.tsv", "valid", "dev.txt.gz"),
        WHOLE,
        FileError,
        "two files for split 'valid'.*{}'",
    ),
    (
        ("test_hard.txt", "valid.csv", "train2.txt", "my-train.tsv"),
        WHOLE,
        FilterWarning,
        "'{}' is not read: split",
    ),
    (("valid.npy",), WHOLE[::2], FilterWarning, "split 'valid' is not read: '{}'"),
    (TRIPLES, WHOLE, FilterWarning, "'{}' holds triples, but is not part of the graph"),
    (("facts.txt", "facts.tsv.gz"), WHOLE, FileError, "{}: triples beside those of the split"),
    (OTHERS, WHOLE, None, ""),
]


@each_row("names, splits, raised, words", UNREAD)
def test_unread_files_that_look_like_splits_are_named(
    tmp_path: Path, names: tuple[str, ...], splits: tuple[str, ...], raised: Any, words: str
) -> None:
    expect = {FileError: pytest.raises, FilterWarning: pytest.warns}
    for name in splits:
        write(tmp_path / name, "a\tr\tb\n")
    for name in names:
        write(tmp_path / name, "a\tr\tb\n" if raised else "a\tb\n")
        with expect[raised](raised, match=words.format(name)) if raised else nullcontext():
            assert list(kgtrec.read_graph(tmp_path).splits) == [split[:-4] for split in splits]
        (tmp_path / name).unlink()


def test_graphs_are_named_as_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = tmp_path / "store-7f3a"
    store.mkdir()
    for split in ("train", "valid", "test"):
        (store / f"{split}.txt").write_text("a\tr\tb\n")
    (tmp_path / "FB15k-237").symlink_to(store)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert kgtrec.read_graph(tmp_path / "FB15k-237").name == "FB15k-237"
        assert kgtrec.read_graph(f"{tmp_path}/FB15k-237/").name == "FB15k-237"
        monkeypatch.chdir(store)
        assert kgtrec.read_graph(".").name == "store-7f3a"
        (tmp_path / "train.txt").write_text("a\tr\tb\n")
        assert kgtrec.read_graph("../store-7f3a/..").name == tmp_path.name
