"""What a batch reads and leaves: every fault of a job file by key, and ranks for other tools."""

from __future__ import annotations

import itertools
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from checkout import ROOT
from refusals import assert_refused, each_row

import kgtrec
from kgtrec.cluster.batch.batch import MOST_JOBS, Load
from kgtrec.cluster.batch.job_file import read_jobs
from kgtrec.errors import FileError, UsageError

JOBS = """
output = "results"
[graphs]
one = "one"
two = { path = "two" }
[models]
a = "{graph}-{model}-{split}.npy"
b = { scores = "{graph}-b-{split}.npz" }
c = { scores = { one = "one-c-{split}.npy" }, lower_is_better = true, protocols = ["test"] }
[protocols.test]
split = "test"
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A job file, and files that patterns match."""
    for name in ("one-a-test.npy", "one-c-test.npy", "one-b-test.npz", "one-b-valid.npz"):
        (tmp_path / name).touch()
    (tmp_path / "jobs.toml").write_text(JOBS)
    return tmp_path / "jobs.toml"


def test_a_job_file_lists_its_jobs(path: Path, tmp_path: Path) -> None:
    batch = read_jobs(path)
    assert [job.name for job in batch.jobs[:3]] == [
        "a on one, test",
        "b on one, test",
        "c on one, test",
    ]
    assert batch.jobs[0].scores == str(tmp_path / "one-a-test.npy")
    assert [job.higher_is_better for job in batch.jobs[:3]] == [True, True, False]
    path.write_text(JOBS + 'context = "time"\nfilter = "static"\nknown = ["k.txt"]\n')
    request = read_jobs(path).jobs[0].request
    assert (request.context, request.filters) == ("time", ("static",))
    assert (request.known, request.graph) == ([f"{tmp_path}/k.txt"], f"{tmp_path}/one")


def test_models_by_pattern(path: Path) -> None:
    def jobs(pattern: str) -> list[tuple[str, str, str]]:
        path.write_text(f'output = "o"\nmodels = "{pattern}"\n[graphs]\ntwo = "two"\none = "one"\n')
        folder = f"{path.parent}{os.sep}"
        return [
            (job.model, job.graph, job.scores.removeprefix(folder)) for job in read_jobs(path).jobs
        ]

    names = [f"one-{model}-test.npy" for model in "ac"]
    assert jobs("one-*-test.npy") == [
        (name[:-4], graph, name) for graph in ("two", "one") for name in names
    ]
    assert jobs(str(path.parent / "one-b-t*.npz"))[0] == ("one-b-test", "two", "one-b-test.npz")
    for graph, models in (("one", "ba"), ("two", "a")):
        for model in models:
            (path.parent / "runs" / graph / model).mkdir(parents=True)
    assert jobs("runs/{graph}/?") == [
        ("a", "two", "runs/two/a"),
        ("a", "one", "runs/one/a"),
        ("b", "one", "runs/one/b"),
    ]
    same = "'runs/one/a' and 'runs/two/a' would have the same model name 'a'"
    assert_refused(jobs, FileError, (same,), "runs/*/a")


def test_a_pattern_with_keys_for_all_models(path: Path) -> None:
    def jobs(models: str, head: str = "models = ") -> list[tuple[str, str, bool]]:
        path.write_text(f'output = "o"\n{head}{models}\n[graphs]\none = "one"\n')
        return [
            (job.model, Path(job.scores).name, not job.higher_is_better)
            for job in read_jobs(path).jobs
        ]

    expected = [(f"one-{model}-test", f"one-{model}-test.npy", True) for model in "ac"]
    assert jobs('{ scores = "one-*-test.npy", lower_is_better = true }') == expected
    assert jobs('scores = "one-a-test.npy"', "[models]\n")[0][0] == "scores"  # a model's name
    fault = "models.lower_is_better: 1 is not"
    assert_refused(jobs, FileError, (fault,), '{ scores = "one-*-test.npy", lower_is_better = 1 }')
    missing = "no file matches 'x*.npy'; correct the pattern"
    assert_refused(jobs, FileError, (missing,), '{ scores = "x*.npy", lower_is_better = true }')


GUIDE = ROOT / "kgtrec" / "guides" / "clusters.md"
Mrr = dict[tuple[Any, ...], float]


KEYS = ["graph", "protocol", "model", "relation_label"]


@pytest.fixture(scope="module")
def batch(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Mrr]:
    """The dataset of three models on two graphs, which share labels of relations but not their
    numbers, under two protocols; MRR by graph, protocol, model and relation."""
    folder, rng = tmp_path_factory.mktemp("ranks"), np.random.default_rng(3)
    values: dict[tuple[Any, ...], list[float]] = {}
    for name, relations in (("G1", "abc"), ("G2", "cb")):
        rows = {
            split: np.unique(rng.integers(0, (9, len(relations), 9), (size, 3)), axis=0)
            for split, size in (("train", 60), ("test", 25))
        }
        labels = [f"{name}é{number}" for number in range(9)]
        graph = kgtrec.Graph.from_arrays(
            **rows,
            n_entities=9,
            n_relations=len(relations),
            entities=labels,
            relations=list(relations),
        )
        for protocol, model in itertools.product(("both", "tail"), ("TransE", "m-2", "x_3")):
            questions = graph.questions("test", protocol)
            scores = rng.integers(0, 3, (len(questions), 9)).astype(np.float32)
            ranks, _ = kgtrec.rank(scores, questions)
            place = folder / f"graph={name}" / f"protocol={protocol}" / f"model={model}"
            place.mkdir(parents=True)
            ranks.save(place / "ranks.parquet", rank_type="realistic")
            for relation, rank in zip(ranks.relation.tolist(), ranks.rank(), strict=True):
                key = (name, protocol, model, ranks.relation_labels[relation])
                values.setdefault(key, []).append(1 / float(rank))
    return folder, {key: sum(some) / len(some) for key, some in values.items()}


def block_of_guide(library: str) -> str:
    text = GUIDE.read_text("utf-8")
    (block,) = re.findall(rf"```python {library}\n(.*?)```", text, re.DOTALL)
    query = re.sub(r"\bprint\(", "shown.append(", block)
    return query.replace("filtered", "both")  # the protocol of this dataset


@pytest.mark.parametrize("library", ["duckdb", "polars", "pandas"])
def test_queries_of_the_guide(batch, library, tmp_path, monkeypatch) -> None:
    """Neither graphs nor protocols are mixed."""
    pytest.importorskip(library)
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "ranks").symlink_to(batch[0])
    monkeypatch.chdir(tmp_path)
    shown: list[Any] = []
    exec(block_of_guide(library), {"shown": shown})
    rows_of = {
        "duckdb": lambda means: means.fetchall(),
        "polars": lambda means: means.rows(),
        "pandas": lambda means: [(*key, mean) for key, mean in means.items()],
    }
    (means,) = shown
    rows = rows_of[library](means)
    expected = {key: mean for key, mean in batch[1].items() if key[1] == "both"}
    assert len(rows) == len(expected)
    assert {tuple(row[:4]): row[4] for row in rows} == pytest.approx(expected, rel=1e-12)


def test_an_answer_beyond_its_list_has_no_one_rank(batch, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    ranks = kgtrec.Ranks.load(next(batch[0].rglob("*.parquet")))
    with pytest.raises(UsageError, match="rank_type='best' is unknown"):
        ranks.save(tmp_path / "x.parquet", "best")
    ranks.unlisted = ranks.macro_unlisted = np.arange(len(ranks)) % 3 == 0
    ranks.save(tmp_path / "lists.parquet", "ordinal")
    assert os.listdir(tmp_path) == ["lists.parquet"]
    saved = np.array(pq.ParquetFile(tmp_path / "lists.parquet").read()["rank"])
    np.testing.assert_array_equal(np.isnan(saved), ranks.unlisted)


# -- The number of jobs at a time: by rule, and by the client's memory ----------------------------


@each_row(
    "tasks, threads, size, memory, jobs",
    [
        (100, 2, 10, 10**9, 2),
        (100, 64, 10, 10**9, 2),
        (16, 64, 10, 10**9, 8),
        (100, 1024, 10, 10**9, 21),
        (1, 1024, 10, 10**9, MOST_JOBS),
        (1, 1024, 30, 100, 3),
        (1, 1024, 1000, 100, 1),
    ],
)
def test_small_jobs_fill_a_large_cluster_and_the_memory_of_the_client_bounds_them(
    tasks: int, threads: int, size: int, memory: int, jobs: int
) -> None:
    load, number = Load(memory), 0
    while load.has_room():
        load.begin(str(number))
        load.record_size(str(number), size)
        load.record_tasks(str(number), tasks, threads)
        number += 1
    assert number == jobs
    load.end("0")
    assert load.has_room()


def test_whoever_waits_is_told_of_each_task() -> None:
    told: list[int] = []
    load = Load(10**9, changed=lambda: told.append(1), waiting=7)
    load.begin("a")
    assert load.jobs == 8
    for left in (2, 1, 0):
        load.record_tasks("a", left, 4)
    load.end("a")
    assert len(told) == 3
    assert load.has_room()
    load.begin("b")
    assert not load.has_room()  # the size of jobs is not known yet
    load.record_size("b", 5)
    assert len(told) == 4
    assert load.has_room()
    load.end("b")
    assert load.jobs == 7
