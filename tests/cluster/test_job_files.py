"""What a batch reads and leaves: every fault of a job file by key, and ranks for other tools."""

from __future__ import annotations

import itertools
import json
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from checkout import ROOT
from refusals import assert_refused

import kgtrec
from kgtrec.cluster.batch.batch import MOST, Load
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
        "a on one, test", "b on one, test", "c on one, test"
    ]  # fmt: skip
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
    assert jobs(str(path.parent / "one-b-t*.npz"))[0] == (
        "one-b-test", "two", "one-b-test.npz"
    )  # fmt: skip
    for graph, models in (("one", "ba"), ("two", "a")):
        for model in models:
            (path.parent / "runs" / graph / model).mkdir(parents=True)
    assert jobs("runs/{graph}/?") == [
        ("a", "two", "runs/two/a"), ("a", "one", "runs/one/a"), ("b", "one", "runs/one/b")
    ]  # fmt: skip
    for pattern, problem in (
        ("none/*.npy", "no file matches 'none/*.npy'"),
        ("{graph}-b-*.npy", "no file matches 'two-b-*.npy'"),
        ("runs/*/a", "'runs/one/a' and 'runs/two/a' would have the same model name 'a'"),
        ("hdfs://bucket/*.npy", "'hdfs://bucket/*.npy' is a URL"),
        ("{split}/*.npy", "no file matches"),
        ("", "models: empty"),
    ):
        assert_refused(jobs, FileError, (problem,), pattern)
    (path.parent / "1.npy").touch()
    assert_refused(jobs, FileError, ("models.1: a name must begin with a letter",), "?.npy")


def toml(value: object) -> str:
    """A value in TOML: JSON's syntax, except for tables."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(k)} = {toml(v)}" for k, v in value.items()) + "}"
    return json.dumps(value)


GOOD = {"output": "o", "graphs": {"g": "g"}, "models": {"m": "s.npy"}}


CHANGES = [
    ({"outputs": "x"}, ["outputs: unknown key; choose one of output, work, graphs"]),
    ({"output": 3}, ["output: 3 is not a string"]),
    ({"memory": "much"}, ["memory: memory 'much' is not a size"]),
    ({"measures": ["mrrr"]}, ["measures: ", "mrrr"]),
    ({"graphs": {"1": "g"}}, ["graphs.1: a name must begin with a letter"]),
    ({"graphs": {"g": {"pth": "g"}}}, ["graphs.g.pth: unknown key", "graphs.g: found none; give"]),
    ({"models": {"m": 3}}, ["models.m: 3 is not a table"]),
    ({"models": {"m": {"scores": "s", "lower_is_better": "no"}}},
     ["models.m.lower_is_better: 'no' is not true or false"]),
    ({"models": {"m": "{grph}.npy"}}, ["models.m.scores: {grph} in '{grph}.npy' is unknown"]),
    ({"models": {"m": {"scores": {"h": "s"}}}},
     ["models.m.scores.h: graph='h' is unknown"]),
    ({"models": {"m": {"scores": "s", "graphs": ["h"]}}},
     ["models.m.graphs: graph='h' is unknown; it must be 'g'"]),
    ({"protocols": {"p": {"sides": "left"}}}, ["protocols.p.sides: sides='left' is unknown"]),
    ({"protocols": {"p": {"filter": [1]}}}, ["protocols.p.filter: [1] is not a list of str"]),
    ({"protocols": {"p": {"known": "k"}, "q": {"filter": ""}}},
     ["2 faults", "protocols.p.known: 'k' is not a list", "protocols.q.filter: empty"]),
    ({"protocols": {"p": {"atol": "1e-5", "rtol": True}}},
     ["protocols.p.atol: atol='1e-5'; it must be", "protocols.p.rtol: rtol=True; it must be"]),
    ({"protocols": {"p": {"atol": -1e-5, "rtol": -2}}},
     ["protocols.p.atol: atol=-1e-05; it must", "protocols.p.rtol: rtol=-2; it must be a n"]),
    ({"graphs": {"g": "g\0"}, "models": {"m": "s\0.npy"}, "output": "o\0", "work": "w\0"},
     ["4 faults", "output: 'o\\x00' is not a path", "graphs.g: 'g\\x00' is not a path"]),
    ({"output": 1, "models": 2}, ["output: 1 is not a string", "models: 2 is not a string or"]),
    ({"protocols": {}}, ["there is nothing to do"]),
]  # fmt: skip


def test_every_fault_names_file_and_key(tmp_path: Path) -> None:
    path = tmp_path / "jobs.toml"
    for change, faults in [({}, []), *CHANGES]:
        lines = (f"{key} = {toml(value)}" for key, value in (GOOD | change).items())
        path.write_text("\n".join(lines))
        if not change:
            assert len(read_jobs(path).jobs) == 1
            continue
        assert_refused(read_jobs, FileError, (f"{path}: ", *faults), path)


def test_malformed_files_are_one_sentence(tmp_path: Path) -> None:
    for name, text, message in (
        ("jobs.toml", "a = 1\n = 2\n", "line 2"),
        ("jobs.toml", "a = 1\na = 2\n", "not TOML"),
        ("jobs.toml", "\xff", "not UTF-8"),
        ("jobs.toml", "a = " + "[" * 5000, "lists are nested too deeply"),
        ("jobs.json", "{}", "a job file with the suffix .json"),
    ):
        (tmp_path / name).write_bytes(text.encode("latin-1"))
        assert_refused(read_jobs, FileError, (message,), tmp_path / name)


def test_urls_are_faults_of_the_job_file(path: Path, tmp_path: Path) -> None:
    text = JOBS.replace('"results"', '"hdfs://bucket/results"').replace(
        '"one"\n', '"https://b/one"\n', 1
    )
    path.write_text(text)
    words = (
        "output: 'hdfs://bucket/results' is a URL; kgtrec reads",
        "graphs.one: 'https://b/one' is a URL; kgtrec reads",
    )
    assert_refused(read_jobs, FileError, words, path)
    path.write_text(JOBS.replace('"results"', '"s3://bucket/results"'))
    assert_refused(read_jobs, FileError, ("bucket/results' is a URL, but", "add work ="), path)
    assert not [path for path in tmp_path.iterdir() if ":" in path.name]


FAULTS = (
    ("level = 2", "graphs.g: found none; give exactly one of path, questions"),
    ('path = "g"\nquestions = "q"', "graphs.g: found path and questions; give exactly one of"),
    ('questions = "q"\nqueries = "t"', "graphs.g.queries: does not combine with questions; leave"),
    ('path = "g"\ndocuments = "t"', "graphs.g.documents: does not combine with path; leave it out"),
    ('qrels = "q"', "graphs.g.documents: missing; give the file with the documents' names"),
    ('qrels = "q"\ndocuments = "d"\nlevel = true', "graphs.g.level: True is not a whole num"),
    ('questions = "q"\n[protocols.p]\nsplit = "test"', "graphs.g: no model and protocol bel"),
)


def test_faults_name_file_and_key(tmp_path: Path) -> None:
    path = tmp_path / "jobs.toml"
    for table, fault in FAULTS:
        path.write_text(f'output = "o"\nmodels = {{ m = "s.npy" }}\n[graphs.g]\n{table}\n')
        assert_refused(read_jobs, FileError, (f"{path}: {fault}",), path)


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
        rows = {split: np.unique(rng.integers(0, (9, len(relations), 9), (size, 3)), axis=0)
                for split, size in (("train", 60), ("test", 25))}  # fmt: skip
        labels = [f"{name}é{number}" for number in range(9)]
        graph = kgtrec.Graph.from_arrays(
            **rows, n_entities=9, n_relations=len(relations), entities=labels,
            relations=list(relations),
        )  # fmt: skip
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


def test_mrr_by_arrow(batch: tuple[Path, Mrr]) -> None:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.dataset as ds

    table = ds.dataset(batch[0], partitioning="hive").to_table()
    # pyarrow cannot group by a column if its files have different dictionaries.
    columns = [pc.cast(table[name], "string") for name in KEYS]
    table = pa.table([*columns, pc.divide(1.0, table["rank"])], [*KEYS, "value"])
    means = table.group_by(KEYS).aggregate([("value", "mean")]).to_pylist()
    found = {tuple(row[key] for key in KEYS): row["value_mean"] for row in means}
    assert found == pytest.approx(batch[1], rel=1e-12)


def block_of_guide(library: str) -> str:
    text = GUIDE.read_text("utf-8")
    (block,) = re.findall(rf"```python {library}\n(.*?)```", text, re.DOTALL)
    query = re.sub(r"\bprint\(", "shown.append(", block)
    return query.replace("filtered", "both")  # the protocol of this dataset


@pytest.mark.parametrize("library", ["duckdb", "polars", "pandas"])
def test_queries_of_the_guide(
    batch: tuple[Path, Mrr], library: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither graphs nor protocols are mixed."""
    pytest.importorskip(library)
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "ranks").symlink_to(batch[0])
    monkeypatch.chdir(tmp_path)
    shown: list[Any] = []
    exec(block_of_guide(library), {"shown": shown})
    rows_of = {"duckdb": lambda means: means.fetchall(), "polars": lambda means: means.rows(),
               "pandas": lambda means: [(*key, mean) for key, mean in means.items()]}  # fmt: skip
    (means,) = shown
    rows = rows_of[library](means)
    expected = {key: mean for key, mean in batch[1].items() if key[1] == "both"}
    assert len(rows) == len(expected)
    assert {tuple(row[:4]): row[4] for row in rows} == pytest.approx(expected, rel=1e-12)


def test_every_rank_type_can_be_saved(batch: tuple[Path, Mrr], tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    columns, ranks = pq.ParquetFile, kgtrec.Ranks.load(next(batch[0].rglob("*.parquet")))
    assert not hasattr(ranks, "relation_label")
    ranks.save(tmp_path / "plain.parquet")
    plain = columns(tmp_path / "plain.parquet").read()
    assert "rank" not in plain.column_names
    for kind in ("optimistic", "realistic", "pessimistic", "ordinal"):
        ranks.save(tmp_path / f"{kind}.parquet", kind)
        table = columns(tmp_path / f"{kind}.parquet").read()
        assert table["rank"].to_pylist() == ranks.rank(kind).tolist()
        assert table.drop_columns(["rank"]).equals(plain, check_metadata=True)
        again = tmp_path / "again.parquet"
        kgtrec.Ranks.load(tmp_path / f"{kind}.parquet").save(again)
        assert again.read_bytes() == (tmp_path / "plain.parquet").read_bytes()
    with pytest.raises(UsageError, match="rank type 'best' is unknown"):
        ranks.save(tmp_path / "x.parquet", "best")
    assert not (tmp_path / "x.parquet").exists()


def test_an_answer_beyond_its_list_has_no_one_rank(batch: tuple[Path, Mrr], tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    ranks = kgtrec.Ranks.load(next(batch[0].rglob("*.parquet")))
    ranks.unlisted = ranks.macro_unlisted = np.arange(len(ranks)) % 3 == 0
    ranks.save(tmp_path / "lists.parquet", "ordinal")
    saved = np.array(pq.ParquetFile(tmp_path / "lists.parquet").read()["rank"])
    np.testing.assert_array_equal(np.isnan(saved), ranks.unlisted)


# -- The number of jobs at a time: by rule, and by the client's memory ----------------------------


def filled(load: Load, tasks: int, threads: int, size: int) -> int:
    """Jobs that begin, each as soon as allowed, until no other may."""
    number = 0
    while load.has_room():
        load.begin(str(number))
        load.sized(str(number), size)
        load.watch(str(number), tasks, threads)
        number += 1
    return number


def test_small_jobs_fill_a_large_cluster() -> None:
    assert filled(Load(10**9), tasks=100, threads=2, size=10) == 2
    assert filled(Load(10**9), tasks=100, threads=64, size=10) == 2
    assert filled(Load(10**9), tasks=16, threads=64, size=10) == 8
    assert filled(Load(10**9), tasks=100, threads=1024, size=10) == 21
    assert filled(Load(10**9), tasks=1, threads=1024, size=10) == MOST


def test_the_memory_of_the_client_bounds_them() -> None:
    assert filled(Load(100), tasks=1, threads=1024, size=30) == 3
    assert filled(Load(100), tasks=1, threads=1024, size=1000) == 1
    load = Load(100)
    filled(load, tasks=1, threads=1024, size=30)
    assert not load.has_room()
    load.end("1")
    assert load.has_room()


def test_whoever_waits_is_told_of_each_task() -> None:
    told: list[int] = []
    load = Load(10**9, changed=lambda: told.append(1), waiting=7)
    load.begin("a")
    assert load.jobs == 8
    for left in (2, 1, 0):
        load.watch("a", left, 4)
    load.end("a")
    assert len(told) == 3
    assert load.has_room()
    load.begin("b")
    assert not load.has_room()  # the size of jobs is not known yet
    load.sized("b", 5)
    assert len(told) == 4
    assert load.has_room()
    load.end("b")
    assert load.jobs == 7
