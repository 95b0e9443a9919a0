"""Jobs of pairs in a batch: the numbers of one run, failed relations, and what is repeated."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import kgtrec
from kgtrec import study
from kgtrec.cli import cli
from kgtrec.cluster.batch import pair_jobs
from kgtrec.cluster.batch.batch import batch_status, run_batch
from kgtrec.cluster.batch.job_file import read_jobs
from kgtrec.cluster.batch.records import Records
from kgtrec.integrations.embeddings import load_pair_vectors

pytest.importorskip("distributed", reason="Dask is not installed: pip install 'kgtrec[cluster]'")

from distributed import Client

pytestmark = pytest.mark.filterwarnings("ignore::kgtrec.errors.FilterWarning")

JOBS = """
output = "results"
measures = ["mrr", "expected.hits@3", "map", "ndcg_cut_5", "auroc"]
[graphs]
g = "g"
[models]
a = { scores = "a.npz", model = "distmult" }
b = { scores = "b.npz", model = "transe", norm = "l1" }
[protocols.all]
pairs = true
[protocols.some]
pairs = true
split = "valid"
filter = ["train", "valid"]
heads = "heads.txt"
relations = "relations.txt"
"""
VECTORS = """
output = "results"
measures = ["mrr", "map", "auroc"]
[graphs]
g = "g"
turned = { path = "g", columns = "columns.txt" }
[models]
a = { scores = "a.npz", model = "distmult", graphs = ["g"] }
ordered = { scores = "ordered.npz", model = "distmult", graphs = ["turned"] }
declared = { scores = "ordered.npz", model = "distmult", columns = "columns.txt" }
rotate = { scores = "rotate.npz", model_config = "rotate.json" }
[models.rotate-declared]
scores = "rotate.npz"
model = "rotate"
model_config = "rotate.json"
columns = "columns.txt"
[protocols.all]
pairs = true
"""
HEADS = [f"e{number}" for number in range(20, 0, -2)]


CONFIGURATION = """{
    "model": "RotatE", "gamma": 12.0, "hidden_dim": 4,
    "double_entity_embedding": true, "double_relation_embedding": false
}"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A graph of 30 entities and 4 relations, two models, and the job file."""
    rng = np.random.default_rng(5)
    (tmp_path / "g").mkdir()
    for split, size in (("train", 300), ("valid", 60), ("test", 60)):
        rows = [f"e{h}\tr{r}\te{t}\n" for h, r, t in rng.integers(0, (30, 4, 30), (size, 3))]
        (tmp_path / "g" / f"{split}.txt").write_text("".join(dict.fromkeys(rows)))
    for name in "ab":
        vectors = {
            key: rng.integers(-2, 3, (n, 3)).astype(np.float32)
            for key, n in (("entity", 30), ("relation", 4))
        }
        np.savez(tmp_path / f"{name}.npz", **vectors)
    (tmp_path / "heads.txt").write_text("\n".join(HEADS))
    (tmp_path / "relations.txt").write_text("r3\nr1")
    (tmp_path / "jobs.toml").write_text(JOBS)
    return tmp_path


@pytest.fixture(scope="module")
def inside() -> Any:
    """A client whose workers are threads of this process, so that tests can change functions."""
    with Client(processes=False, n_workers=1, threads_per_worker=2, dashboard_address=None) as it:
        yield it


def rank_at_once(folder: Path, model: str, protocol: str) -> Any:
    """The ranks of a job's relations, in one call."""
    graph = kgtrec.read_graph(folder / "g")
    formula = {"a": {"model": "distmult"}, "b": {"model": "transe", "norm": "l1"}}[model]
    scores = load_pair_vectors(folder / f"{model}.npz", graph, **formula)
    options: dict[str, Any] = {}
    if protocol == "some":
        options = {
            "split": "valid",
            "filter": ("train", "valid"),
            "heads": graph.entities.ids(HEADS),
            "relations": graph.relations.ids(["r3", "r1"]),
        }
    return study.rank_pairs(scores, graph, progress=False, **options)


def run(folder: Path, client: Any, **options: Any) -> Any:
    batch = read_jobs(folder / "jobs.toml")
    return run_batch(batch, client, load_vectors=load_pair_vectors, **options)


def test_numbers_and_files_equal_those_of_one_run(folder: Path, cluster_client: Any) -> None:
    """On worker processes: every file and value of four jobs, some with restricted heads."""
    outcomes = run(folder, cluster_client)
    assert [(outcome.state, outcome.detail) for outcome in outcomes] == [("finished", "")] * 4
    with open(folder / "results" / "summary.csv") as file:
        rows = {(row["model"], row["protocol"]): row for row in csv.DictReader(file)}
    for outcome in outcomes:
        job = outcome.job
        once = rank_at_once(folder, job.model, job.protocol)
        keys = ["mrr", "expected.hits@3", "map", "ndcg_cut_5", "auroc"]
        due = [row[2] for row in once.table(keys).rows]
        assert list(outcome.values.values()) == due
        assert [float(rows[job.model, job.protocol][key]) for key in keys] == due
        path = folder / f"results/pairs/graph=g/protocol={job.protocol}/model={job.model}/ranks.tsv"
        once.write(folder / "once.tsv")
        assert path.read_bytes() == (folder / "once.tsv").read_bytes()
        merged = study.merge_pair_ranks(path, kgtrec.read_graph(folder / "g"))
        assert merged.by("relation").rows == once.by("relation").rows


def write_ordered(folder: Path) -> None:
    """Write vectors in another order, the labels of their rows, and RotatE's configuration."""
    rng, vectors = np.random.default_rng(7), dict(np.load(folder / "a.npz"))
    graph = kgtrec.read_graph(folder / "g")
    order = rng.permutation(30)
    np.savez(folder / "ordered.npz", entity=vectors["entity"][order], relation=vectors["relation"])
    labels = [graph.entities[int(entity)] for entity in order]
    (folder / "columns.txt").write_text("\n".join(labels))
    rotate = {"entity": rng.normal(0, 0.1, (30, 8)), "relation": rng.normal(0, 0.1, (4, 4))}
    np.savez(folder / "rotate.npz", **{name: array.astype("f4") for name, array in rotate.items()})
    (folder / "rotate.json").write_text(CONFIGURATION)


def test_columns_and_configurations_as_in_one_run(folder: Path, cluster_client: Any) -> None:
    """The same bytes as `kgtrec pairs` writes, wherever the order of the vectors is declared."""
    write_ordered(folder)
    (folder / "jobs.toml").write_text(VECTORS)
    outcomes = run(folder, cluster_client)
    assert [(outcome.state, outcome.detail) for outcome in outcomes] == [("finished", "")] * 8
    written = {}
    for outcome in outcomes:
        job = outcome.job
        written[job.name] = Records(read_jobs(folder / "jobs.toml")).ranks(job).read_bytes()
    once = folder / "once.tsv"
    graph = ("pairs", "--graph", str(folder / "g"), "--write-ranks", str(once), "-q")
    turned = ("--columns", str(folder / "columns.txt"))
    rotate = ("--scores", str(folder / "rotate.npz"), "--model-config", str(folder / "rotate.json"))
    ordered = ("--scores", str(folder / "ordered.npz"), "--model", "distmult")
    for names, options in {
        ("ordered on turned", "declared on g", "declared on turned", "a on g"): (*ordered, *turned),
        ("rotate on g",): rotate,
        ("rotate on turned", "rotate-declared on g", "rotate-declared on turned"): (
            *rotate,
            *turned,
        ),
    }.items():
        assert CliRunner().invoke(cli, [*graph, *options]).exit_code == 0
        for name in names:
            assert written[f"{name}, all"] == once.read_bytes(), name
    assert len({*written.values()}) == 3


def test_what_is_ranked_again_if_columns_or_configurations_change(
    folder: Path, inside: Any
) -> None:
    """Only the jobs that read the changed file; none if the whole folder moves."""
    write_ordered(folder)
    home = folder / "home"
    home.mkdir()
    for path in [*folder.iterdir()]:
        if path != home:
            path.rename(home / path.name)
    (home / "jobs.toml").write_text(VECTORS)
    run(home, inside)
    moved = home.rename(folder / "moved")

    def changed() -> set[str]:
        """The jobs that are not finished, by model and graph."""
        states = batch_status(read_jobs(moved / "jobs.toml"))
        assert {outcome.state for outcome in states} <= {"finished", "changed"}
        return {f"{o.job.model} {o.job.graph}" for o in states if o.state == "changed"}

    assert changed() == set()
    config = moved / "rotate.json"
    config.write_text(CONFIGURATION.replace("12.0", "9.0"))
    of_rotate = {"rotate g", "rotate turned", "rotate-declared g", "rotate-declared turned"}
    assert changed() == of_rotate
    before = {outcome.job.name: outcome.values for outcome in run(moved, inside)}
    assert changed() == set()
    lines = (moved / "columns.txt").read_text().split("\n")
    (moved / "columns.txt").write_text("\n".join(lines[::-1]))
    turned = {"ordered turned", "declared g", "declared turned"} | (of_rotate - {"rotate g"})
    assert changed() == turned
    after = {outcome.job.name: outcome.values for outcome in run(moved, inside)}
    differing = {
        name.split(",")[0].replace(" on", "") for name in after if after[name] != before[name]
    }
    assert differing == turned


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (["e0", "e0"], "columns.txt: columns 0 and 1 are both declared as 'e0'"),
        (["e0"], "columns.txt: 29 of 30 entities have no column: 'e1', "),
        (["e0", "x"], "columns.txt:2: 'x' is not in the graph; labels must match"),
    ],
    ids=["repeated", "missing", "unknown"],
)
def test_orders_that_pairs_refuse(folder: Path, inside: Any, lines: list[str], words: str) -> None:
    """The job fails before it ranks, and the message names the file."""
    write_ordered(folder)
    (folder / "columns.txt").write_text("\n".join(lines))
    text = VECTORS[: VECTORS.index("declared = ")] + "[protocols.all]\npairs = true\n"
    (folder / "jobs.toml").write_text(text)
    done, failed = run(folder, inside)
    assert (done.state, failed.state) == ("finished", "failed")
    assert failed.detail.startswith(f"{folder}/{words}")
    assert not (folder / "results" / ".kgtrec-work").exists()


@pytest.mark.parametrize("changed", [False, True], ids=["same vectors", "other vectors"])
def test_a_failed_relation_does_not_stop_the_others(
    folder: Path, inside: Any, monkeypatch: pytest.MonkeyPatch, changed: bool
) -> None:
    """A NaN in one relation fails the job with its name; the next run ranks only that relation.

    It ranks all relations if the vectors are others.
    """
    ranked: list[str] = []
    rank = pair_jobs.rank_pairs

    def rank_some(scores: Any, graph: Any, **options: Any) -> Any:
        (relation,) = options["relations"]
        ranked.append(graph.relations[relation])
        if relation == 2 and len(ranked) <= 4:
            raise kgtrec.errors.InputError("NaN for e1 r2 e2")
        return rank(scores, graph, **options)

    monkeypatch.setattr(pair_jobs, "rank_pairs", rank_some)
    text = JOBS.replace('b = { scores = "b.npz", model = "transe", norm = "l1" }', "")
    (folder / "jobs.toml").write_text(text[: text.index("[protocols.some]")])
    (failed,) = run(folder, inside)
    assert (failed.state, failed.detail) == (
        "failed",
        "1 of 4 relations failed: relation 'r2': NaN for e1 r2 e2",
    )
    assert sorted(ranked) == ["r0", "r1", "r2", "r3"]
    assert len([*folder.glob("results/.kgtrec-work/parts/**/*.part")]) == 3
    if changed:
        vectors = dict(np.load(folder / "a.npz"))
        np.savez(folder / "a.npz", entity=vectors["entity"][::-1], relation=vectors["relation"])
    (finished,) = run(folder, inside)
    repeated = ranked[4:]
    assert sorted(repeated) == (["r0", "r1", "r2", "r3"] if changed else ["r2"])
    assert finished.values["map"] == rank_at_once(folder, "a", "all").values(["map"])[0]
    assert not (folder / "results" / ".kgtrec-work").exists()
    run(folder, inside)
    assert len(ranked) == 4 + len(repeated)


def test_other_vectors_are_ranked_again(folder: Path, inside: Any) -> None:
    """New vectors change the job, and workers do not keep those of the last run."""
    first = {outcome.job.name: outcome.values["mrr"] for outcome in run(folder, inside)}
    vectors = dict(np.load(folder / "a.npz"))
    np.savez(folder / "a.npz", entity=vectors["entity"][::-1], relation=vectors["relation"])
    batch = read_jobs(folder / "jobs.toml")
    states = {outcome.job.name: outcome.state for outcome in batch_status(batch)}
    assert states == {
        "a on g, all": "changed",
        "b on g, all": "finished",
        "a on g, some": "changed",
        "b on g, some": "finished",
    }
    second = {outcome.job.name: outcome.values["mrr"] for outcome in run(folder, inside)}
    assert second["a on g, all"] == rank_at_once(folder, "a", "all").values(["mrr"])[0]
    assert second["a on g, all"] != first["a on g, all"]
    assert second["b on g, all"] == first["b on g, all"]


def test_pairs_and_ranks_share_a_batch(folder: Path, inside: Any) -> None:
    """Each protocol has the measures that it defines; the others are empty."""
    graph = kgtrec.read_graph(folder / "g")
    scores = np.random.default_rng(0).random((len(graph.questions("test")), graph.n_entities))
    np.save(folder / "s.npy", scores)
    (folder / "jobs.toml").write_text(
        """output = "results"
measures = ["mrr", "tail.mrr", "auroc", "map"]
[graphs]
g = "g"
[models]
a = { scores = "a.npz", model = "distmult", protocols = ["all"] }
s = { scores = "s.npy", protocols = ["ranks"] }
[protocols.all]
pairs = true
[protocols.ranks]
split = "test"
"""
    )
    pairs, ranks = run(folder, inside)
    assert [*pairs.values] == ["mrr", "auroc", "map"]
    assert [*ranks.values] == ["mrr", "tail.mrr", "map"]
    due = kgtrec.evaluate(kgtrec.rank(scores, graph.questions("test"))[0])
    assert ranks.values["mrr"] == due["both.realistic.micro.mrr"]
