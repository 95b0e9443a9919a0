"""Columns in the order of the model, declared by a file: whole, in shards, and in batches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from graph_files import lines, write
from question_cases import assert_same

import kgtrec
from kgtrec.cli import cli
from kgtrec.cluster.dask import shipment
from kgtrec.errors import UsageError

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
    write(
        home / "jobs.toml",
        (
            f'output = "out"\n[graphs]\ng = {{ path = "g", columns = "columns.txt" }}\n[models]\n'
            f'm = "turned.{kind}"\n[protocols.p]\nsplit = "test"\n'
        ),
    )
    run("batch", "jobs.toml", "--workers", "1")
    (of_batch,) = (home / "out" / "ranks").rglob("*.parquet")
    plain = kgtrec.Ranks.load("plain.parquet")
    for path in ("whole.parquet", "questions.parquet", "entities.parquet", str(of_batch)):
        ranks = kgtrec.Ranks.load(path)
        for name in ("greater", "equal", "macro_greater", "candidates"):
            assert np.array_equal(getattr(ranks, name), getattr(plain, name)), (path, name)
        assert kgtrec.comparable(plain, ranks)
    assert (home / "whole.parquet").read_bytes() == (home / "entities.parquet").read_bytes()


@pytest.mark.parametrize("kind", ["npy", "npz"])
@pytest.mark.parametrize("is_shared", [True, False])
def test_workers_without_shared_files_take_the_order_of_columns(
    client: Any, home: Path, monkeypatch: pytest.MonkeyPatch, kind: str, is_shared: bool
) -> None:
    if not is_shared:
        monkeypatch.setattr(shipment, "workers_share_files", lambda *_: False)
    graph = kgtrec.read_graph("g")
    labels = Path("columns.txt").read_text().split()
    due = kgtrec.rank(f"plain.{kind}", graph.questions(), run_depth=5)
    for questions, columns in (
        (graph.questions(columns=labels), None),
        (graph.questions(), labels),
    ):
        ranked = kgtrec.cluster.rank(
            f"turned.{kind}", questions, client, run_depth=5, columns=columns
        )
        assert_same(ranked, due)
        kgtrec.cluster.rank_to_file(
            f"turned.{kind}", questions, "r.parquet", client, columns=columns
        )
        np.testing.assert_array_equal(kgtrec.Ranks.load("r.parquet").greater, due[0].greater)


def test_orders_of_columns_that_a_cluster_refuses(client: Any, home: Path) -> None:
    graph = kgtrec.read_graph("g")
    labels = Path("columns.txt").read_text().split()
    ordered, stored = graph.questions(columns=labels), "stored"
    folder = kgtrec.cluster.store_questions(graph.questions(), stored)
    for questions, words in ((ordered, "already declare columns="), (folder, "stored questions")):
        with pytest.raises(UsageError, match=words):
            kgtrec.cluster.rank_to_file(
                "turned.npy", questions, "r.parquet", client, columns=labels
            )
    # As the message says: the stored questions know the order.
    folder = kgtrec.cluster.store_questions(ordered, stored)
    kgtrec.cluster.rank_to_file("turned.npy", folder, "r.parquet", client)
    due = kgtrec.rank("plain.npy", graph.questions())[0]
    np.testing.assert_array_equal(kgtrec.Ranks.load("r.parquet").greater, due.greater)


def test_an_estimate_takes_the_order_of_columns(home: Path) -> None:
    """Of scores of all entities, also beside scores of drawn candidates."""

    def shown(*words: str) -> str:
        done = CliRunner().invoke(cli, ["estimate", "--graph", "g", "--size", "10", *words])
        assert done.exit_code == 0, done.exception
        return done.stdout

    due = shown("--scores", "plain.npy", "--full", "0.5")
    columns = ("--columns", "columns.txt")
    assert shown("--scores", "turned.npy", "--full", "0.5", *columns) == due
    shown("--write-candidates", "c.npy", *columns)
    scores, candidates = np.load("plain.npy"), np.load("c.npy")
    np.save("drawn.npy", np.take_along_axis(scores, candidates, axis=1))
    apart = ("--score-columns", "candidates", "--scores", "drawn.npy", "--full", "0.5")
    shown(*apart, "--write-full-questions", "q.npy")
    np.save("full.npy", np.load("turned.npy")[np.load("q.npy")])
    assert shown(*apart, "--full-scores", "full.npy", *columns) == due


def test_a_label_that_the_graph_lacks_is_refused_with_its_line(home: Path) -> None:
    write(home / "columns.txt", "e1\nx\n")
    done = CliRunner().invoke(
        cli,
        [
            "rank",
            "--graph",
            "g",
            "--scores",
            "plain.npy",
            "--columns",
            "columns.txt",
            "-o",
            "o.parquet",
        ],
    )
    assert "columns.txt:2: 'x' is not in the graph; labels must match" in str(done.exception)
    assert "copy the file into the graph's folder as entities.txt" in str(done.exception)
