"""Unread files that look like splits of a graph are named in an error or a warning."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

import kgtrec
from kgtrec.errors import FileError, FilterWarning

LINE = "a\tr\tb\n"


def folder_of(place: Path, *names: str) -> Path:
    for name in names:
        (place / name).write_text(LINE)
    return place


@pytest.mark.parametrize(
    "name",
    ["inference.txt", "inductive_test.txt", "inference_validation.txt", "inference_test.tsv",
     "msg.txt", "inductive_valid.txt.gz", "Inference.txt"],
)  # fmt: skip
def test_folders_of_inductive_benchmarks_are_not_half_read(tmp_path: Path, name: str) -> None:
    folder_of(tmp_path, "train.txt", "valid.txt", "test.txt", name)
    with pytest.raises(FileError, match=f"'{name}' beside the splits.*inductive"):
        kgtrec.read_graph(tmp_path)


@pytest.mark.parametrize("name", ["validation.txt", "val.tsv", "VALID.txt", "fb_valid.txt",
                                  "valid.csv", "dev-1.txt.gz", "valid2id.txt"])  # fmt: skip
def test_a_split_that_would_be_missing_is_an_error(tmp_path: Path, name: str) -> None:
    folder_of(tmp_path, "train.txt", "test.txt", name)
    with pytest.raises(FileError, match=f"split 'valid' is not read: '{name}'"):
        kgtrec.read_graph(tmp_path)


@pytest.mark.parametrize("other", ["dev.txt", "valid.tsv", "valid", "dev.txt.gz"])
def test_two_files_of_a_split_are_an_error(tmp_path: Path, other: str) -> None:
    folder_of(tmp_path, "train.txt", "valid.txt", "test.txt", other)
    with pytest.raises(FileError, match=f"two files for split 'valid'.*{other}'"):
        kgtrec.read_graph(tmp_path)


@pytest.mark.parametrize("name", ["test_hard.txt", "valid.csv", "train2.txt", "my-train.tsv"])
def test_what_a_split_has_besides_is_named(tmp_path: Path, name: str) -> None:
    folder_of(tmp_path, "train.txt", "valid.txt", "test.txt", name)
    with pytest.warns(FilterWarning, match=f"'{name}' is not read: split"):
        graph = kgtrec.read_graph(tmp_path)
    assert list(graph.splits) == ["train", "valid", "test"]


def test_scores_of_a_missing_split_are_no_triples(tmp_path: Path) -> None:
    folder_of(tmp_path, "train.txt", "test.txt", "valid.npy")
    with pytest.warns(FilterWarning, match=r"split 'valid' is not read: 'valid.npy'"):
        kgtrec.read_graph(tmp_path)


@pytest.mark.parametrize(
    "name", ["README.txt", "entities.dict", "relation2id.txt", "1-1.txt", "types.tsv", "test.npy",
             "contest.txt", "latest_run.txt", "message.txt", "type_constrain.txt",
             "test2id_all.txt", "train2id.txt"],
)  # fmt: skip
def test_other_files_are_nobodys_business(tmp_path: Path, name: str) -> None:
    folder_of(tmp_path, "train.txt", "valid.txt", "test.txt", name)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kgtrec.read_graph(tmp_path)


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
