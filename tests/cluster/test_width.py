"""Scores of more entities than the triples name: if labels are numbers, column e is entity e.

Commands take a column for every number. Python refuses, and each remedy of its message is followed.
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from graph_files import lines, write
from refusals import each_row

import kgtrec
from kgtrec.cli import cli
from kgtrec.errors import InputError, UsageError
from kgtrec.integrations.embeddings import load_factors

pytestmark = pytest.mark.filterwarnings("ignore:.*whole numbers with gaps:")

N = 9
RNG = np.random.default_rng(4)
ENTITY, RELATION = RNG.normal(size=(N, 4)), RNG.normal(size=(1, 4))
TEST = [(0, 0, 7), (7, 0, 1), (2, 0, 0)]


def due_greater() -> list[int]:
    """How many of all entities score above each answer, filtered, side by side: heads first."""
    facts = {(0, 0, 1), (1, 0, 7), (2, 0, 1), *TEST}
    greater = []
    for side in (0, 1):
        for h, r, t in TEST:
            known, answer = (h, t) if side else (t, h)
            others = [
                x
                for x in range(N)
                if x != answer and ((h, r, x) if side else (x, r, t)) not in facts
            ]
            scores = ENTITY @ (ENTITY[known] * RELATION[0])
            greater.append(int((scores[others] > scores[answer]).sum()))
    return greater


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A graph of the entities 0, 1, 2 and 7, and a DistMult of nine, in several forms."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "g/train.txt", lines([(0, 0, 1), (1, 0, 7)]))
    write(tmp_path / "g/valid.txt", lines([(2, 0, 1)]))
    write(tmp_path / "g/test.txt", lines(TEST))
    questions = kgtrec.read_graph("g").questions()
    numbers = [0, 1, 2, 7]
    queries = np.array([ENTITY[numbers[e]] * RELATION[0] for e in questions.entity])
    np.savez("vectors.npz", entity=ENTITY, relation=RELATION)
    np.savez("queries.npz", queries=queries, entities=ENTITY)
    np.save("scores.npy", queries @ ENTITY.T)
    folder = tmp_path / "model"
    folder.mkdir()
    np.save(folder / "entity_embedding.npy", ENTITY)
    np.save(folder / "relation_embedding.npy", RELATION)
    config = {"model": "DistMult", "hidden_dim": 4, "gamma": 12.0}
    (folder / "config.json").write_text(json.dumps(config))
    return tmp_path


def run(*words: str) -> Any:
    done = CliRunner().invoke(cli, [*words], standalone_mode=False)
    assert done.exception is None, done.exception
    return done


SAID = "scores have 9 columns, so column e is entity e: 5 numbers that no fact names are candidates"


@each_row(
    "words",
    [
        ["--scores", "scores.npy"],
        ["--scores", "queries.npz"],
        ["--scores", "model"],
        ["--scores", "vectors.npz", "--model", "distmult"],
        ["--scores", "vectors.npz", "--model-config", "model/config.json"],
    ],
)
def test_ranks_count_all_numbers(home: Path, words: list[str]) -> None:
    done = run("rank", "--graph", "g", *words, "-o", "r.parquet")
    assert SAID in done.stderr
    ranks = kgtrec.Ranks.load("r.parquet")
    assert ranks.greater.tolist() == due_greater()
    assert "9 entities" in done.stdout


def test_batches_count_all_numbers(home: Path) -> None:
    write(
        home / "jobs.toml",
        (
            'output = "out"\n[graphs]\ng = "g"\n[models]\na = "scores.npy"\nb = "queries.npz"\n'
            'narrow = "narrow.npy"\n[protocols.p]\nsplit = "test"\n'
        ),
    )
    np.save("narrow.npy", np.load("scores.npy")[:, [0, 1, 2, 7]])
    done = run("batch", "jobs.toml", "--workers", "1")
    assert SAID in done.stderr
    for name in ("a", "b"):
        (path,) = (home / "out/ranks").rglob(f"model={name}/*.parquet")
        assert kgtrec.Ranks.load(path).greater.tolist() == due_greater()
    (path,) = (home / "out/ranks").rglob("model=narrow/*.parquet")
    due = kgtrec.rank(np.load("narrow.npy"), kgtrec.read_graph("g").questions())[0]
    np.testing.assert_array_equal(kgtrec.Ranks.load(path).greater, due.greater)


def test_estimates_count_all_numbers(home: Path) -> None:
    for name in ("scores.npy", "queries.npz"):
        done = run("estimate", "--graph", "g", "--scores", name, "--size", "10", "--full", "0")
        assert SAID in done.stderr
        mean = 1 + np.mean(due_greater())
        assert f"MR        {mean:.4f}" in done.stdout  # all nine are drawn


IN_PYTHON: dict[str, Callable[[Any], Any]] = {
    "matrix": lambda questions: np.load("scores.npy"),
    "file": lambda questions: "scores.npy",
    "queries": lambda questions: "queries.npz",
    "chunks": lambda questions: iter([np.load("scores.npy")]),
    "callable": lambda questions: lambda batch: np.load("scores.npy")[batch.start : batch.stop],
    "vectors": lambda questions: load_factors("vectors.npz", questions, "distmult"),
    "embeddings": lambda questions: kgtrec.Factors.from_embeddings(
        questions, "distmult", entity=ENTITY, relation=RELATION
    ),
}


@pytest.mark.parametrize("remedy", ["with_entities", "stat.txt"])
@pytest.mark.parametrize("kind", IN_PYTHON)
def test_the_remedies_in_python_lead_to_the_ranks(home: Path, kind: str, remedy: str) -> None:
    graph = kgtrec.read_graph("g")
    with pytest.raises(InputError) as caught:
        kgtrec.evaluate(IN_PYTHON[kind](graph.questions()), graph.questions())
    said = str(caught.value)
    call, line = re.findall(r"graph\.(with_entities\(\d+\)), or write '(\d+ \d+)'", said)[0]
    assert "inverse" not in said  # the relations are right
    if remedy == "stat.txt":
        write(home / "g/stat.txt", f"{line}\n")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            graph = kgtrec.read_graph("g")
    else:
        graph = eval(f"graph.{call}")
    questions = graph.questions()
    ranks = kgtrec.rank(IN_PYTHON[kind](questions), questions)[0]
    assert ranks.greater.tolist() == due_greater()


def test_only_numbers_below_the_size_become_columns(home: Path) -> None:
    graph = kgtrec.read_graph("g")
    with pytest.raises(UsageError, match="numbers below 7; the labels are numbers up to 7"):
        graph.with_entities(7)
    write(home / "h/train.txt", "ann\tr\tbob\n")
    with pytest.raises(UsageError, match="labels are not all whole numbers"):
        kgtrec.read_graph("h").with_entities(7)
    with pytest.raises(InputError, match="expected 4 columns") as caught:
        kgtrec.rank(np.zeros((6, 5)), graph.questions())  # 7 has no column
    assert "with_entities" not in str(caught.value)


def test_entities_of_a_model_without_numbers_need_its_dictionary(home: Path) -> None:
    """The message names the cure, which works; relations that are right are not blamed."""
    names = ["ann", "bob", "cid", "dan"]
    rows = [("ann", "r", "bob"), ("bob", "r", "cid")]
    for split in ("train", "valid", "test"):
        write(home / f"h/{split}.txt", lines(rows))
    questions = kgtrec.read_graph("h").questions()
    vectors = {"entity": ENTITY[:4], "relation": RELATION}
    with pytest.raises(InputError) as caught:
        kgtrec.Factors.from_embeddings(questions, "distmult", **vectors)
    assert "copy its dictionary (entity2id.txt or entities.txt)" in str(caught.value)
    assert "inverse" not in str(caught.value)
    write(home / "h/entities.txt", "".join(f"{name}\n" for name in names))
    with pytest.warns(match="no triple names 1 of the 4"):
        questions = kgtrec.read_graph("h").questions()
    factors = kgtrec.Factors.from_embeddings(questions, "distmult", **vectors)
    assert factors.shape == (len(questions), 4)
