"""Vectors of models in parts: the bytes of one run, from a job array, a batch and a cluster."""

from __future__ import annotations

import itertools
import os
import pty
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from object_store import call
from slow import slow_after

import kgtrec
from kgtrec.cluster.dask import shipment
from kgtrec.cluster.plan import BASE
from kgtrec.cluster.shards import COMMAND_BYTES
from kgtrec.errors import FileError, KgtrecError, UsageError
from kgtrec.integrations.embeddings import ModelFile
from kgtrec.scores.formulas import FORMULAS

N, R, DIM = 30, 3, 12
MORE: dict[str, dict[str, Any]] = {
    "transe": {"norm": "l1"},
    "rotate": {"norm": "l1", "phases": "radians"},
    "protate": {"phases": 2},
    "hake": {"phases": 2, "phase_weight": 0.7, "modulus_weight": 1.5},
}
"""Options that models need."""
WIDTHS = {"rotate": DIM // 2, "hake": DIM // 2 * 3, "rescal": (DIM, DIM), "tucker": 5}
"""Shape of a relation, if it is not that of an entity."""


def save_vectors(path: str, model: str, seed: int = 0, n_entities: int = N) -> dict[str, Any]:
    """Write random vectors of a model; return its options."""
    rng = np.random.default_rng(seed)
    width = WIDTHS.get(model, DIM)
    arrays = {
        "entity": rng.normal(size=(n_entities, DIM)),
        "relation": rng.uniform(-3, 3, (R, *(width if isinstance(width, tuple) else (width,)))),
    }
    more = {
        "entity_tail": rng.normal(size=(n_entities, DIM)),
        "relation_inverse": rng.normal(size=(R, DIM)),
        "core": rng.normal(size=(DIM, 5, DIM)),
    }
    arrays |= {name: more[name] for name in FORMULAS[model][1]}
    np.savez(path, **{name: array.astype(np.float32) for name, array in arrays.items()})
    return MORE.get(model, {})


def words_of(options: dict[str, Any]) -> list[str]:
    """The options on the command line."""
    pairs = [(f"--{name.replace('_', '-')}", str(value)) for name, value in options.items()]
    return [word for pair in pairs for word in pair]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A working folder with a graph ``g``, the labels of its entities, and vectors ``w.npz``."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(5)
    os.mkdir("g")
    for split, rows in (("train", 150), ("valid", 20), ("test", 40)):
        triples = [*rng.integers(0, (N, R, N), (rows, 3)), *([i, i % R, i] for i in range(N))]
        triples = triples if split == "train" else triples[:rows]
        text = "".join(f"e{h:02}\tr{r}\te{t:02}\n" for h, r, t in triples)
        Path("g", f"{split}.txt").write_text(text)
    save_vectors("w.npz", "distmult")


def whole(model: str, options: dict[str, Any], *more: str, scores: str = "w.npz") -> bytes:
    """The ranks of one run."""
    words = ["--graph", "g", "--scores", scores, "--model", model, *words_of(options)]
    call("rank", *words, *more, "-o", "whole.parquet")
    return Path("whole.parquet").read_bytes()


def shards(count: int, *words: str, into: str = "d") -> bytes:
    """The ranks of a job array."""
    for number in range(1, count + 1):
        call("rank", "--graph", "g", *words, "--shard", f"{number}/{count}", "-o", into)
    call("merge", into, "-o", "merged.parquet")
    return Path("merged.parquet").read_bytes()


def refusal(*words: str) -> str:
    """The message of a refused command; it leaves no files."""
    before = sorted(Path().rglob("*"))
    with pytest.raises(KgtrecError) as raised:
        call(*words)
    assert [path for path in sorted(Path().rglob("*")) if path not in before] in ([], [Path("d")])
    assert "\n" not in str(raised.value)
    return str(raised.value)


# -- Job arrays ----------------------------------------------------------------------------------


@pytest.mark.parametrize("model", FORMULAS)
@pytest.mark.parametrize(
    ("count", "by"), slow_after(1, [(3, "questions"), (2, "entities"), (7, "auto")])
)
def test_shards_of_every_model_are_the_bytes_of_one_run(model: str, count: int, by: str) -> None:
    options = save_vectors("w.npz", model)
    words = ["--scores", "w.npz", "--model", model, *words_of(options), "--shard-by", by]
    assert shards(count, *words) == whole(model, options)


def test_shards_with_other_options() -> None:
    order = np.random.default_rng(1).permutation(N)
    vectors = dict(np.load("w.npz"))
    np.savez("turned.npz", entity=vectors["entity"][order], relation=vectors["relation"])
    Path("columns.txt").write_text("".join(f"e{e:02}\n" for e in order))
    rows = np.concatenate([vectors["relation"], -vectors["relation"]])
    np.savez("inverse.npz", entity=vectors["entity"], relation=rows)
    ordered = ("--scores", "turned.npz", "--model", "distmult", "--columns", "columns.txt")
    assert shards(3, *ordered, into="d1") == whole(
        "distmult", {}, "--columns", "columns.txt", scores="turned.npz"
    )
    ranks = kgtrec.Ranks.load("whole.parquet").rank()
    whole("distmult", {})
    np.testing.assert_array_equal(ranks, kgtrec.Ranks.load("whole.parquet").rank())
    for number, words in enumerate(
        (
            "--inverse offset --sides tail --split valid --filter valid",
            "--inverse offset --rows instances --nan worst --atol 0.5",
        )
    ):
        more = ("--scores", "inverse.npz", "--model", "distmult", *words.split())
        merged = shards(2, *more, into=f"e{number}")
        assert merged == whole("distmult", {}, *words.split(), scores="inverse.npz")


def test_a_shard_computes_its_queries_only(monkeypatch: pytest.MonkeyPatch) -> None:
    spans: list[tuple[int, int]] = []
    factors = ModelFile.factors

    def count(self: ModelFile, questions: Any, rows: str, span: slice) -> Any:
        made = factors(self, questions, rows, span)
        spans.append((span.start, len(made.queries)))
        return made

    monkeypatch.setattr(ModelFile, "factors", count)
    shards(3, "--scores", "w.npz", "--model", "distmult", "--shard-by", "questions")
    n = len(kgtrec.read_graph("g", progress=False).questions())
    bounds = [n * number // 3 for number in range(4)]
    assert spans == [(a, b - a) for a, b in itertools.pairwise(bounds)]


def test_shards_of_a_folder_that_names_its_model() -> None:
    """The configuration in the folder says model and phases, and its content identifies shards."""
    os.mkdir("model")
    rng = np.random.default_rng(0)
    np.save("model/entity_embedding.npy", rng.normal(size=(N, 8)).astype(np.float32))
    np.save("model/relation_embedding.npy", rng.uniform(-1, 1, (R, 4)).astype(np.float32))
    text = '{"model": "RotatE", "double_entity_embedding": true, "hidden_dim": 4, "gamma": %d}'
    Path("model/config.json").write_text(text % 12)
    merged = shards(2, "--scores", "model")
    call("rank", "--graph", "g", "--scores", "model", "-o", "whole.parquet")
    assert merged == Path("whole.parquet").read_bytes()
    assert kgtrec.Ranks.load("whole.parquet").provenance.model_facts[0].startswith("model: rotate")
    Path("model/config.json").write_text(text % 6)  # another scale of the phases
    said = refusal("rank", "--graph", "g", "--scores", "model", "--shard", "1/2", "-o", "d")
    due = "d/shard-1-of-2.arrow: the shard exists and belongs to another ranking"
    assert said.startswith(due)
    Path("model/config.json").write_text(text % 12)
    np.save("model/relation_embedding.npy", rng.uniform(-1, 1, (R, 4)).astype(np.float32))
    said = refusal("rank", "--graph", "g", "--scores", "model", "--shard", "1/2", "-o", "d")
    assert said.startswith(due)


def test_wrong_calls_of_shards() -> None:
    words = ["rank", "--graph", "g", "--scores", "w.npz", "--model", "distmult", "-o", "d"]
    assert refusal(*words, "--shard", "5/4") == (
        "--shard 5/4 is not a shard; give one from 1/4 to 4/4"
    )
    n = len(kgtrec.read_graph("g", progress=False).questions())
    few = ["--shard", "1/99", "--shard-by", "questions"]
    with pytest.raises(UsageError, match=f"99 shards are too many for {n} questions; choose {n} "):
        call(*words, *few)
    with pytest.raises(UsageError, match="leave out --lower-is-better"):
        call(*words, "--shard", "1/2", "--lower-is-better")
    with pytest.raises(UsageError, match=r"w.npz: --norm l1 has no effect on distmult"):
        call(*words, "--shard", "1/2", "--norm", "l1")
    low = r"reading the vectors of w.npz takes about .* MB; allow more \(1MB\)"
    save_vectors("w.npz", "distmult", n_entities=9_000)
    with pytest.raises(UsageError, match=low.replace("1MB", r"\d+MB")):
        call(*words, "--shard", "1/2", "--memory", "1MB")
    with pytest.raises(KgtrecError, match=r"w.npz: there are vectors of 9000 entities and 3 relat"):
        call(*words, "--shard", "1/2")


def test_the_plan_of_a_shard_includes_the_reading_of_vectors(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    times = 300 * 10**6 // os.path.getsize("w.npz")
    monkeypatch.setattr("kgtrec.cluster.vectors._MEMORY_FACTOR", times)
    words = "rank", "--graph", "g", "--scores", "w.npz", "--model", "distmult"
    printed = call(*words, "-o", "d", "--shard", "1/2", "--plan")
    process = (BASE + COMMAND_BYTES) / 1e6
    assert float(re.findall(r"at most ([0-9.]+) MB of", printed)[0]) == pytest.approx(
        300 + process, abs=1
    )
    with pytest.raises(UsageError, match=r"reading the vectors of w.npz takes about 35\d MB"):
        call(*words, "-o", "d", "--shard", "1/2", "--memory", "340MB")


def test_shards_of_other_vectors_do_not_merge() -> None:
    words = ["rank", "--graph", "g", "--scores", "w.npz", "--model", "transe", "-o", "d"]
    call(*words, "--shard", "1/3", "--norm", "l1")
    call(*words, "--shard", "2/3", "--norm", "l2")
    save_vectors("w.npz", "distmult", seed=1)
    call(*words, "--shard", "3/3", "--norm", "l1")
    with pytest.raises(FileError) as raised:
        call("merge", "d", "-o", "o.parquet")
    assert str(raised.value).count("(other scores)") == 1
    assert "shard-2-of-3.arrow, shard-3-of-3.arrow are from another ranking" in str(
        raised.value
    ).replace(" and shard-1-of-3.arrow", "")


def test_damaged_shards_with_the_same_fault_are_told_once() -> None:
    shards(5, "--scores", "w.npz", "--model", "distmult")
    for number in range(1, 5):
        Path(f"d/shard-{number}-of-5.arrow").write_bytes(b"nothing")
    with pytest.raises(FileError) as raised:
        call("merge", "d", "-o", "o.parquet")
    text = str(raised.value)
    assert "shard-1-of-5.arrow, shard-2-of-5.arrow, shard-3-of-5.arrow and 1 more are " in text
    assert len(text) < 300


# -- Factors.save --------------------------------------------------------------------------------


@pytest.mark.parametrize("model", FORMULAS)
def test_saved_factors_have_the_bits_and_the_settings_of_a_model(model: str) -> None:
    options = save_vectors("w.npz", model)
    due = whole(model, options)
    questions = kgtrec.read_graph("g", progress=False).questions()
    factors = ModelFile("w.npz", model, **options).factors(questions)
    factors.save("saved.npz")
    loaded = kgtrec.Factors.load("saved.npz")
    assert loaded.queries.tobytes() == factors.queries.tobytes()
    assert loaded.entities.tobytes() == factors.entities.tobytes()
    assert (loaded.metric, loaded.facts) == (factors.metric, factors.facts)
    assert loaded.declared == factors.declared
    assert loaded.declared["model"] == model
    call("rank", "--graph", "g", "--scores", "saved.npz", "-o", "o.parquet")
    assert Path("o.parquet").read_bytes() == due
    assert whole(model, options, scores="saved.npz") == due  # the same options, which agree
    assert shards(2, "--scores", "saved.npz", "--model", model, *words_of(options)) == due


def test_options_that_contradict_saved_factors() -> None:
    questions = kgtrec.read_graph("g", progress=False).questions()
    options = save_vectors("w.npz", "rotate")
    ModelFile("w.npz", "rotate", **options).factors(questions).save("saved.npz")
    words = ["rank", "--graph", "g", "--scores", "saved.npz", "-o", "o.parquet"]
    for more, due in (
        (["--model", "complex"], "--model complex contradicts the file, which has 'rotate'"),
        (
            ["--model", "rotate", "--norm", "l2"],
            "--norm l2 contradicts the file, which has 'l1'",
        ),
        (
            ["--model", "rotate", "--phases", "0.3"],
            "--phases 0.3 contradicts the file, which has 3.14159",
        ),
        (
            ["--model", "rotate", "--inverse", "offset"],
            "--inverse offset contradicts the file, which has 'none'",
        ),
        (
            ["--model", "rotate", "--phase-weight", "2"],
            "--phase-weight 2.0 contradicts the file, which has none",
        ),
    ):
        assert refusal(*words, *more).startswith(f"saved.npz: {due}")
    assert "without --model, leave out --norm" in refusal(*words, "--norm", "l1")


def test_files_of_factors_that_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    factors = kgtrec.Factors(np.ones((2, 3)), np.ones((4, 3)), np.arange(4.0))
    factors.save("plain.npz")
    with np.load("plain.npz") as arrays:
        assert sorted(arrays) == ["bias", "entities", "metric", "queries"]
    assert kgtrec.Factors.load("plain.npz").scores().tolist() == factors.scores().tolist()
    with pytest.raises(UsageError, match=r"f.npy: factors are saved as .npz; give a name that"):
        factors.save("f.npy")
    with pytest.raises(FileError, match=r"missing/f\.npz: "):
        factors.save("missing/f.npz")
    for formula in ("", "[]", "7", '{"declared": [], "facts": []}', '{"declared": {}, "facts": 1}'):
        np.savez("bad.npz", queries=np.ones((2, 3)), entities=np.ones((4, 3)), formula=formula)
        for read in (kgtrec.Factors.load, lambda path: ModelFile(path, "rotate").has_factors()):
            with pytest.raises(FileError, match=r"bad.npz: an array 'formula' that Factors.save"):
                read("bad.npz")


def test_vectors_that_name_their_model() -> None:
    options = save_vectors("w.npz", "transe")
    due = whole("transe", options)
    np.savez("named.npz", **np.load("w.npz"), model="transe", norm="l1")
    call("rank", "--graph", "g", "--scores", "named.npz", "-o", "o.parquet")
    ranks = kgtrec.Ranks.load("o.parquet")
    Path("whole.parquet").write_bytes(due)
    np.testing.assert_array_equal(ranks.rank(), kgtrec.Ranks.load("whole.parquet").rank())
    assert ranks.provenance.model_facts == [
        "model: transe, from the file",
        "norm: l1, from the file",
    ]
    words = ("rank", "--graph", "g", "-o", "x.parquet", "--scores")
    said = refusal(*words, "named.npz", "--model", "transe", "--norm", "l2")
    assert said.startswith("named.npz: --norm l2 contradicts 'l1', from the file")
    assert shards(2, "--scores", "named.npz") == Path("o.parquet").read_bytes()
    np.savez("wrong.npz", **np.load("w.npz"), model="trance")
    said = refusal(*words, "wrong.npz")
    assert said.startswith("wrong.npz: --model trance is unknown; did you mean 'transe'")


# -- Batches and clusters ------------------------------------------------------------------------

JOBS = """
output = "results"
measures = ["mrr", "tail.hits@3"]
[graphs]
g = "g"
[models]
a = { scores = "w.npz", model = "distmult" }
b = { scores = "t.npz", model = "transe", norm = "l1" }
c = { scores = "turned.npz", model = "distmult", columns = "columns.txt" }
d = "named.npz"
[protocols.test]
[protocols.tails]
split = "valid"
sides = "tail"
rows = "instances"
min_answers = 2
"""


@pytest.fixture
def cluster() -> Any:
    distributed = pytest.importorskip("distributed")
    with distributed.Client(processes=False, n_workers=1, dashboard_address=None) as client:
        yield client


def write_jobs(text: str = JOBS) -> None:
    order = np.random.default_rng(1).permutation(N)
    vectors = dict(np.load("w.npz"))
    np.savez("turned.npz", entity=vectors["entity"][order], relation=vectors["relation"])
    Path("columns.txt").write_text("".join(f"e{e:02}\n" for e in order))
    save_vectors("t.npz", "transe")
    np.savez("named.npz", **np.load("t.npz"), model="transe", norm="l1")
    Path("jobs.toml").write_text(text)


def batch(client: Any, *more: str) -> str:
    return call("batch", "jobs.toml", "--scheduler", client.scheduler.address, *more)


def test_a_batch_of_vectors_has_the_ranks_of_single_runs(cluster: Any) -> None:
    write_jobs()
    output = batch(cluster)
    assert output.count("| finished |") == 8
    words = {
        "a": "--scores w.npz --model distmult",
        "b": "--scores t.npz --model transe --norm l1",
        "c": "--scores turned.npz --model distmult --columns columns.txt",
        "d": "--scores named.npz",
    }
    protocols = {"test": "", "tails": "--split valid --sides tail --rows instances --min-answers 2"}
    for protocol, more in protocols.items():
        for model, how in words.items():
            call("rank", "--graph", "g", *f"{how} {more}".split(), "-o", "o.parquet")
            path = f"results/ranks/graph=g/protocol={protocol}/model={model}/ranks.parquet"
            ranks, due = kgtrec.Ranks.load(path), kgtrec.Ranks.load("o.parquet")
            np.testing.assert_array_equal(ranks.rank(), due.rank())
            assert ranks.provenance == due.provenance
            ranks.save("again.parquet")
            due.save("due.parquet")
            assert Path("again.parquet").read_bytes() == Path("due.parquet").read_bytes()
    assert sorted(os.listdir("results")) == [
        ".lock",
        "ranks",
        "records",
        "summary.csv",
        "summary.md",
    ]
    assert call("batch", "jobs.toml", "--status") == "8 of 8 done\n"
    save_vectors("w.npz", "distmult", seed=3)
    Path("jobs.toml").write_text(JOBS.replace('norm = "l1"', 'norm = "l2"'))
    said = call("batch", "jobs.toml", "--status")
    assert said.startswith("4 of 8 done\n4 jobs (a on g, test; b on g, test; a on g, tails and 1 ")


@pytest.mark.parametrize("shared", [True, False], ids=["shared folder", "files are sent"])
def test_a_cluster_ranks_vectors_from_their_path(
    cluster: Any, shared: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bits of one process; no matrix of scores exists, neither in files nor in what is sent."""
    import kgtrec.cluster

    if not shared:
        monkeypatch.setattr(shipment, "workers_share_files", lambda *_: False)
    questions = kgtrec.read_graph("g", progress=False).questions()
    for model in ("complex", "transe", "rescal"):
        options = save_vectors("w.npz", model)
        file = ModelFile("w.npz", model, **options)
        ranks, run = kgtrec.cluster.rank(file, questions, cluster, run_depth=5, folder="work")
        due, due_run = kgtrec.rank(file.factors(questions), questions, 5)
        for name in ("greater", "equal", "candidates"):
            np.testing.assert_array_equal(getattr(ranks, name), getattr(due, name))
        assert ranks.provenance.model_facts == due.provenance.model_facts
        np.testing.assert_array_equal(run.scores, due_run.scores)
        kgtrec.cluster.rank_to_file(file, questions, "o.parquet", cluster, folder="work")
        due.save("due.parquet")
        assert kgtrec.Ranks.load("o.parquet").manifest == kgtrec.Ranks.load("due.parquet").manifest
    sizes = [path.stat().st_size for path in Path("work").rglob("*.npy")]
    assert max(sizes) < 4 * len(questions) * N


def test_jobs_that_fail_alike_are_told_once(cluster: Any) -> None:
    models = [f'm{n} = {{ scores = "m{n}.npz", model = "distmult" }}' for n in range(8)]
    for number in range(8):
        save_vectors(f"m{number}.npz", "distmult", n_entities=N - 1)
    text = '\noutput = "results"\n[graphs]\ng = "g"\n[models]\na = "s.npy"\n' + "\n".join(models)
    Path("jobs.toml").write_text(text)
    with pytest.raises(KgtrecError) as raised:
        batch(cluster)
    head, first, second = str(raised.value).split("\n")
    assert head == "9 of 9 jobs failed:"
    assert first.startswith("  a on g, test: failed: ")
    assert second.startswith(
        "  8 jobs (m0 on g, test; m1 on g, test; m2 on g, test and 5 more): failed: there are "
        "vectors of 29 entities and 3 relations; the graph has 30 and 3"
    )
    status = call("batch", "jobs.toml", "--status").splitlines()
    assert status == ["0 of 9 done", first.strip(), second.strip()]


def test_faults_of_vectors_in_a_job_file() -> None:
    write_jobs()
    for old, new, due in (
        (
            'model = "distmult" }\nb',
            'modle = "distmult" }\nb',
            "models.a.modle: key='modle' is unk",
        ),
        (
            '"distmult" }\nb',
            '"distmul" }\nb',
            "models.a.model: model='distmul' is unknown; did you",
        ),
        ('norm = "l1"', 'norm = "l3"', "models.b.norm: norm='l3' is unknown; it must be 'l2' or"),
        ('model = "transe", norm', "norm", "models.b.norm: has no effect without model; leave it"),
        (
            'model = "transe", ',
            'model = "transe", lower_is_better = true, ',
            "models.b.lower_is_be",
        ),
        ("min_answers", "min_answer", "protocols.tails.min_answer: key='min_answer' is unknown"),
    ):
        text = JOBS.replace(old, new)
        assert text != JOBS
        Path("jobs.toml").write_text(text)
        assert f": {due}" in refusal("batch", "jobs.toml", "--status")
    assert "did you mean 'min_answers'" in refusal("batch", "jobs.toml", "--status")
    Path("q.jsonl").write_text('{"id": "a", "answers": [1]}\n')
    Path("jobs.toml").write_text(JOBS.replace('g = "g"', 'g = { questions = "q.jsonl" }'))
    said = refusal("batch", "jobs.toml", "--status")
    assert "models.a.model, models.b.model: vectors of a model answer only questions to a" in said
    assert "models.c.columns: needs a graph; leave it out" in said


# -- What a batch prints -------------------------------------------------------------------------


def test_plans_are_printed_with_v_only(cluster: Any) -> None:
    write_jobs(JOBS.replace('d = "named.npz"', ""))
    assert batch(cluster).splitlines()[0].startswith("kgtrec: wrote results/ranks")
    save_vectors("w.npz", "distmult", seed=3)
    said = batch(cluster, "-v")
    assert re.search(r"kgtrec: a on g, test: \d+ rows x 30 entities in \d x 1 parts", said)
    assert "kgtrec: a on g, test: finished\n" in said
    with pytest.raises(UsageError, match="--status runs nothing; leave out --verbose"):
        call("batch", "jobs.toml", "--status", "-v")


def test_a_terminal_shows_a_bar(tmp_path: Path) -> None:
    """Jobs that are done, run and failed, and the time left; nothing of it stays."""
    code = """
import sys, time
from kgtrec._internal.progress import JobBar
from kgtrec.cluster.batch.batch import BatchState
bar = JobBar(8, 2)
for n in range(16):
    time.sleep(0.1)
    state = BatchState(8, 2 + n // 8, n // 12, 2, 2 + n / 8)
    bar.update(str(state), state.done)
    if n == 14:
        with bar.aside():
            print("a line", file=sys.stderr)
bar.close()
"""
    seen = read_terminal([sys.executable, "-c", code])
    bars = [line for line in re.split("[\r\n]", seen) if "%|" in line]
    assert bars
    assert re.search(
        r"^ *\d+%\|.*\| 3 of 8 jobs done, 2 running, 1 failed \[00:0\d, 00:\d\d left\]", bars[-1]
    )
    assert re.search("\ra line\r\n\r *\\d+%", seen)  # alone on its line; the bar follows
    assert re.search("\r +\r$", seen)


def read_terminal(command: list[str]) -> str:
    """What a command writes to a terminal of 100 columns and 40 rows."""
    import fcntl
    import struct
    import termios

    child, terminal = pty.fork()
    if child == 0:
        os.execv(command[0], command)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
    pieces = []
    while True:
        try:
            piece = os.read(terminal, 4096)
        except OSError:  # the child has ended
            break
        if not piece:
            break
        pieces.append(piece)
    _, status = os.waitpid(child, 0)
    os.close(terminal)
    assert status == 0
    return b"".join(pieces).decode()
