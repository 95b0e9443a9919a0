"""`kgtrec batch` with questions without a graph: the results of `kgtrec rank`, resumed."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import kgtrec
from kgtrec.cli import cli
from kgtrec.cluster.batch.job_file import read_jobs

pytest.importorskip("distributed", reason="Dask is not installed: pip install 'kgtrec[cluster]'")

from distributed import Client

from kgtrec.cluster.batch.batch import batch_status, run_batch

QUERIES, WORDS, TOPICS, DOCUMENTS = 9, 30, 6, 40
ASKED = {
    "complex": ["--questions", "complex.jsonl", "--candidates", "words.txt"],
    "search": ["--qrels", "search.txt", "--queries", "topics.txt", "--documents", "names.txt"],
}
JOBS = """
output = "results"
measures = ["mrr", "all.micro.hits@3", "macro.map", "macro.ndcg_cut_10", "tail.mrr"]
[graphs]
kinds = "graph"
[graphs.complex]
questions = "{graph}.jsonl"
candidates = "words.txt"
[graphs.search]
qrels = "search.txt"
queries = "topics.txt"
documents = "names.txt"
[models]
m = "{graph}-{model}.npy"
v = { scores = { search = "search-v.npz" }, graphs = ["search"] }
[protocols.plain]
[protocols.close]
atol = 0.5
[protocols.raw]
split = "test"
filter = "raw"
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Complex queries, qrels with vectors, and a graph, all in the working folder."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(5)
    lines = []
    for number in range(QUERIES):
        words = [f"w{n}" for n in rng.choice(WORDS, 5, replace=False)]
        answers = [{"label": word, "inference": "full"} for word in words[:2]]
        terms = {"structure": ["1p", "2i"][number % 2]}
        lines.append({"id": f"q{number}", "terms": terms, "answers": answers, "known": words[2:]})
    Path("complex.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    for name, letter, count in (("words", "w", WORDS), ("topics", "t", TOPICS),
                                ("names", "d", DOCUMENTS)):  # fmt: skip
        Path(f"{name}.txt").write_text("".join(f"{letter}{n}\n" for n in range(count)))
    with open("search.txt", "w") as file:
        for topic in range(TOPICS):
            for number, document in enumerate(rng.choice(DOCUMENTS, 6, replace=False)):
                file.write(f"t{topic} 0 d{document} {number % 4}\n")
    Path("graph").mkdir()
    for split in ("train", "test"):
        Path(f"graph/{split}.txt").write_text("".join(f"a{n}\tr\tb{n % 3}\n" for n in range(5)))
    graph = kgtrec.read_graph("graph", progress=False)
    shapes = {"complex": (QUERIES, WORDS), "search": (TOPICS, DOCUMENTS),
              "kinds": (len(graph.questions()), graph.n_entities)}  # fmt: skip
    for name, shape in shapes.items():
        np.save(f"{name}-m.npy", rng.integers(0, 9, shape).astype(np.float32))
    np.savez(
        "search-v.npz",
        queries=rng.normal(size=(TOPICS, 4)).astype(np.float32),
        entities=rng.normal(size=(DOCUMENTS, 4)).astype(np.float32),
    )
    Path("jobs.toml").write_text(JOBS)
    return tmp_path


def test_jobs_of_questions_are_those_of_rank_and_stay_done(folder: Path, client: Client) -> None:
    batch = read_jobs("jobs.toml")
    names = [job.name for job in batch.jobs]
    assert len(names) == 3 + 2 + 4  # only graphs have protocols of a split
    assert "m on complex, raw" not in names
    outcomes = run_batch(batch, client)
    assert {one.state for one in outcomes} == {"finished"}, outcomes
    for one in outcomes:
        job = one.job
        if (job.protocol, job.model) not in {
            ("close", "m"),
            ("plain", "v"),
        } or job.graph == "kinds":
            continue
        options = ["--atol", "0.5"] if job.protocol == "close" else []
        words = ["rank", *ASKED[job.graph], "--scores", job.scores, *options, "-o", "r.parquet"]
        assert CliRunner().invoke(cli, [*words, "-q"]).exit_code == 0
        path = f"results/ranks/graph={job.graph}/protocol={job.protocol}/model={job.model}"
        kgtrec.Ranks.load(f"{path}/ranks.parquet").save("again.parquet")
        assert Path("again.parquet").read_bytes() == Path("r.parquet").read_bytes()
        expected = kgtrec.evaluate(kgtrec.Ranks.load("r.parquet"))
        assert dict(one.values) == {key: expected[key] for key in batch.measures[:4]}
    report = CliRunner().invoke(cli, ["report", "results", "--format", "csv"])
    assert report.exit_code == 0, report.output
    assert {one.state for one in batch_status(batch)} == {"finished"}
    Path("complex.jsonl").write_text(Path("complex.jsonl").read_text().replace("2i", "3i"))
    changed = {
        one.job.graph for one in batch_status(read_jobs("jobs.toml")) if one.state != "finished"
    }
    assert changed == {"complex"}
    Path("jobs.toml").write_text(JOBS.replace("[graphs.search]", "[graphs.search]\nlevel = 2"))
    changed = {
        one.job.graph for one in batch_status(read_jobs("jobs.toml")) if one.state != "finished"
    }
    assert changed == {"complex", "search"}


def test_without_protocols_questions_have_one_named_test(folder: Path) -> None:
    text = 'output = "o"\nmodels = "complex-m.npy"\n[graphs.q]\nquestions = "complex.jsonl"\n'
    Path("jobs.toml").write_text(text)
    (job,) = read_jobs("jobs.toml").jobs
    assert (job.protocol, list(job.settings), job.sides) == ("test", ["questions"], "all")


def test_a_job_that_fails_names_file_and_key(folder: Path, client: Client) -> None:
    Path("jobs.toml").write_text(
        'output = "o"\nmodels = { m = "complex-m.npy" }\n[graphs]\n'
        'gone = { questions = "no.jsonl" }\n'
        'width = { questions = "complex.jsonl", candidates = "names.txt" }\n'
        'labels = { questions = "complex.jsonl" }\n'
        'topics = { qrels = "search.txt", queries = "topics.txt", documents = "words.txt" }\n'
    )
    outcomes = {one.job.graph: one.detail for one in run_batch(read_jobs("jobs.toml"), client)}
    assert outcomes["gone"].startswith("graphs.gone.questions: no.jsonl: No such file")
    width = "graphs.width.candidates: names.txt: 40 labels for 30 rows"
    assert outcomes["width"].startswith(width)
    assert outcomes["labels"].startswith("graphs.labels.questions: complex.jsonl:1: question 'q0'")
    assert outcomes["topics"].startswith("graphs.topics.queries: topics.txt: 6 labels for 9 rows")
    assert all("\n" not in text for text in outcomes.values())
