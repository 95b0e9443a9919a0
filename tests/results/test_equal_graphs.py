"""Equal graphs in folders of different names are one graph; different ones of one name are two."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import kgtrec
from kgtrec.cli import cli

TRAIN, TEST = "a\tr\tb\nb\tr\tc\nc\tr\td\n", "a\tr\tc\nd\tr\tb\n"


def graph_in(folder: Path, train: str = TRAIN) -> kgtrec.Graph:
    folder.mkdir(parents=True)
    (folder / "train.txt").write_text(train)
    (folder / "test.txt").write_text(TEST)
    return kgtrec.read_graph(folder)


def ranks_of(graph: kgtrec.Graph) -> kgtrec.Ranks:
    questions = graph.questions()
    return kgtrec.rank(
        np.random.default_rng(0).random((len(questions), graph.n_entities)), questions
    )[0]


@pytest.mark.parametrize("command", ["report", "compare"])
def test_the_name_of_a_folder_says_nothing(tmp_path: Path, command: str) -> None:
    one, other = (ranks_of(graph_in(tmp_path / name)) for name in ("graph", "copy"))
    unnamed = graph_in(tmp_path / "third")
    unnamed.name = None
    assert kgtrec.comparable(one, other) == kgtrec.comparable(one, ranks_of(unnamed)) == []

    one.save(tmp_path / "one.parquet")
    other.save(tmp_path / "other.parquet")
    files = [str(tmp_path / name) for name in ("one.parquet", "other.parquet")]
    done = CliRunner().invoke(cli, [command, *files])
    assert done.exit_code == 0, done.stderr
    assert "NOT COMPARABLE" not in done.stderr


def test_one_name_for_two_graphs(tmp_path: Path) -> None:
    one = ranks_of(graph_in(tmp_path / "x" / "graph"))
    other = ranks_of(graph_in(tmp_path / "y" / "graph", TRAIN.replace("a\tr\tb", "a\tr\td")))
    (reason,) = kgtrec.comparable(one, other)
    first, second = (r.manifest["questions"]["graph_hash"][:8] for r in (one, other))
    assert reason == f"graph: graph ({first}) against graph ({second})"
