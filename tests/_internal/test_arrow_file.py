"""pyarrow's threads never read from a Python file: they could free its bytes while Python ends."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.ipc as ipc
import pyarrow.parquet as pq
import pytest

import kgtrec
from kgtrec import Graph, Ranks
from kgtrec._internal.files import arrow_file

TRIPLES = np.array([[0, 0, 3], [4, 1, 0], [3, 1, 4], [6, 0, 6]])


def save_ranks(folder: Path) -> Callable[[], Any]:
    questions = Graph.from_arrays(test=TRIPLES).questions("test")
    kgtrec.evaluate(np.zeros((len(questions), 7)), questions).ranks.save(folder / "ranks")
    return lambda: Ranks.load(folder / "ranks")


def save_parquet(folder: Path) -> Callable[[], Any]:
    table = pa.table(dict(zip(("head", "relation", "tail"), TRIPLES.T, strict=True)))
    pq.write_table(table, folder / "test.parquet")
    return lambda: kgtrec.read_graph(folder)


def save_feather(folder: Path) -> Callable[[], Any]:
    table = pa.table(dict(zip(("head", "relation", "tail"), TRIPLES.T, strict=True)))
    pyarrow.feather.write_feather(table, folder / "test.feather")
    return lambda: kgtrec.read_graph(folder)


@pytest.mark.parametrize("save", [save_ranks, save_parquet, save_feather])
def test_readers_hand_over_files_of_pyarrow(tmp_path, monkeypatch, save) -> None:
    load = save(tmp_path)
    sources = []

    def record(owner: Any, name: str) -> None:
        plain = getattr(owner, name)

        def recorded(*args: Any, **options: Any) -> Any:
            sources.append(args[0])
            return plain(*args, **options)

        monkeypatch.setattr(owner, name, recorded)

    for owner, name in ((pq, "ParquetFile"), (pq, "read_table"), (ipc, "open_file")):
        record(owner, name)
    load()
    assert [type(source) for source in sources] == [pa.OSFile]


@pytest.mark.skipif(os.name != "posix", reason="file names are bytes on POSIX alone")
def test_a_name_that_is_not_utf8(tmp_path: Path) -> None:
    path = os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9")
    try:
        Path(path).write_bytes(b"bytes")
    except OSError:
        pytest.skip("this file system has no such names")
    with arrow_file(path) as file:
        assert file.read() == b"bytes"


def test_an_error_has_the_systems_reason(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as missing, arrow_file(tmp_path / "none"):
        pass
    assert missing.value.strerror == "No such file or directory"
    with pytest.raises(IsADirectoryError) as folder, arrow_file(tmp_path):
        pass
    assert folder.value.strerror == "Is a directory"
