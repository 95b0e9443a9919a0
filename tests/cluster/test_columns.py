"""Columns in the order of the model, declared by a file: whole, in shards, and in batches."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from graph_files import lines, write

import kgtrec
from kgtrec.cli import cli

N = 23


def run(*words: str) -> None:
    done = CliRunner().invoke(cli, [*words, "-q"])
    assert done.exit_code == 0, done.exception


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A graph, scores and a factorised model by id, and both with columns in another order."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(5)
    for split, n in (("train", 40), ("valid", 6), ("test", 9)):
        rows = [(f"e{h}", f"r{r}", f"e{t}") for h, r, t in rng.integers(0, (N, 2, N), (n, 3))]
        rows += [(f"e{e}", "r0", f"e{e}") for e in range(N)] * (split == "train")
        write(tmp_path / "g" / f"{split}.txt", lines(rows))
    questions = kgtrec.read_graph("g").questions()
    scores = rng.integers(0, 9, (len(questions), N)).astype(np.float32)
    order = rng.permutation(N)
    vectors, bias = rng.random((N, 3)), rng.random(N)
    np.save("plain.npy", scores)
    np.save("turned.npy", np.ascontiguousarray(scores[:, order]))
    queries = rng.random((len(questions), 3))
    np.savez("plain.npz", queries=queries, entities=vectors, bias=bias)
    np.savez("turned.npz", queries=queries, entities=vectors[order], bias=bias[order])
    labels = questions.graph.entities
    write(tmp_path / "columns.txt", "".join(f"{labels[int(e)]}\n" for e in order))
    return tmp_path


@pytest.mark.parametrize("kind", ["npy", "npz"])
def test_shards_and_batches_take_the_order_of_columns(home: Path, kind: str) -> None:
    run("rank", "--graph", "g", "--scores", f"plain.{kind}", "-o", "plain.parquet")
    turned = ("--graph", "g", "--scores", f"turned.{kind}", "--columns", "columns.txt")
    run("rank", *turned, "-o", "whole.parquet")
    for by in ("questions", "entities"):
        for shard in ("1/3", "2/3", "3/3"):
            run("rank", *turned, "--shard", shard, "--shard-by", by, "-o", by)
        run("merge", by, "-o", f"{by}.parquet")
    write(home / "jobs.toml", (
        f'output = "out"\n[graphs]\ng = {{ path = "g", columns = "columns.txt" }}\n[models]\n'
        f'm = "turned.{kind}"\n[protocols.p]\nsplit = "test"\n'
    ))  # fmt: skip
    run("batch", "jobs.toml", "--workers", "1")
    (of_batch,) = (home / "out" / "ranks").rglob("*.parquet")
    plain = kgtrec.Ranks.load("plain.parquet")
    for path in ("whole.parquet", "questions.parquet", "entities.parquet", str(of_batch)):
        ranks = kgtrec.Ranks.load(path)
        for name in ("greater", "equal", "macro_greater", "candidates"):
            assert np.array_equal(getattr(ranks, name), getattr(plain, name)), (path, name)
        assert kgtrec.comparable(plain, ranks)
    assert (home / "whole.parquet").read_bytes() == (home / "entities.parquet").read_bytes()


def test_a_label_that_the_graph_lacks_is_refused_with_its_line(home: Path) -> None:
    write(home / "columns.txt", "e1\nx\n")
    done = CliRunner().invoke(
        cli, ["rank", "--graph", "g", "--scores", "plain.npy", "--columns", "columns.txt",
              "-o", "o.parquet"],
    )  # fmt: skip
    assert "columns.txt:2: 'x' is not in the graph; labels must match" in str(done.exception)
    assert "copy the file into the graph's folder as entities.txt" in str(done.exception)
