"""Rankings in parts from an object store: the bytes of a local ranking."""

from __future__ import annotations

import http.server
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from object_store import SETTINGS, breaking, call, new_bucket, write_graph_and_scores
from question_cases import assert_same_bytes

import kgtrec
import kgtrec.cluster
from kgtrec._internal.files import atomic_write
from kgtrec._internal.locations import exists, files_below, read_bytes
from kgtrec.errors import FileError

pytestmark = pytest.mark.slow

pytest.importorskip("distributed", reason="Dask is not installed: pip install 'kgtrec[cluster]'")
URL = "s3://kgtrec-cluster"
MODELS = ("s.npy", "shards", "m.npz", "packed.npz")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph, four models of it, and a list of entities."""
    home, rng = tmp_path_factory.mktemp("home"), np.random.default_rng(6)
    questions, scores = write_graph_and_scores(home, n_train=60, n_test=30, n_entities=40)
    n = questions.n_entities
    vectors = {
        "queries": scores[:, :3],
        "entities": rng.integers(-2, 3, (n, 3)).astype("f4"),
        "bias": rng.integers(0, 2, n).astype("f4"),
    }
    np.savez(home / "m.npz", **vectors)
    np.savez_compressed(home / "packed.npz", **vectors)
    np.savez(home / "fortran.npz", **vectors | {"entities": np.asfortranarray(vectors["entities"])})
    (home / "some.txt").write_text("".join(f"{label}\n" for label in questions.graph.entities))
    for name in MODELS:
        outputs = ["-o", f"{home}/{name}.parquet", "--write-run", f"{home}/{name}.run"]
        call(
            "rank",
            "--graph",
            f"{home}/g",
            "--scores",
            f"{home}/{name}",
            "-q",
            *outputs,
            "--run-depth",
            "20",
        )
    return home


@pytest.fixture(scope="module")
def system(s3_server: str, home: Path) -> Any:
    return new_bucket(s3_server, URL.removeprefix("s3://"), home)


@pytest.fixture
def store(s3_server: str, system: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    """The server's address; it has everything of `home`."""
    for name, value in SETTINGS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{s3_server}")
    return s3_server


@pytest.mark.parametrize(
    ("name", "by"),
    list(zip(MODELS, ["questions", "entities", "entities", "questions"], strict=True)),
)
def test_shards(name: str, by: str, home: Path, store: str) -> None:
    folder = f"{URL}/shards-of-{name}-{by}"
    for number in (2, 1, 2):
        call(
            "rank",
            "--graph",
            f"{URL}/g",
            "--scores",
            f"{URL}/{name}",
            "--shard",
            f"{number}/2",
            "--shard-by",
            by,
            "-o",
            folder,
            "-q",
        )
    call("merge", folder, "-o", f"{folder}.parquet", "--write-run", f"{folder}.run", "-q")
    assert read_bytes(f"{folder}.parquet") == (home / f"{name}.parquet").read_bytes()
    assert read_bytes(f"{folder}.run") == (home / f"{name}.run").read_bytes()


def test_what_is_wrong_with_shards(home: Path, store: str) -> None:
    folder = f"{URL}/wrong"
    shard = ["rank", "--graph", f"{URL}/g", "-o", folder, "-q", "--shard"]
    call(*shard, "1/2", "--scores", f"{URL}/s.npy")
    with pytest.raises(FileError, match=rf"^{folder}/shard-1-of-2.arrow: .*other scores"):
        call(*shard, "1/2", "--scores", f"{URL}/m.npz")
    with pytest.raises(FileError, match=rf"^{folder}: shard 2 of 2 missing"):
        call("merge", folder, "-o", f"{URL}/x.parquet")
    with atomic_write(f"{folder}/shard-1-of-2.arrow") as file:
        file.write(b"damaged")
    call(*shard, "1/2", "--scores", f"{URL}/s.npy")
    call(*shard, "2/2", "--scores", f"{home}/s.npy")  # a file: nobody knows that it is equal
    with pytest.raises(FileError, match="are from different rankings"):
        call("merge", folder, "-o", f"{URL}/x.parquet")
    with pytest.raises(FileError, match="it is stored by column"):
        call(*shard, "1/2", "--scores", f"{URL}/fortran.npz")
    with pytest.raises(FileError, match="there is no bucket"):
        call(*shard[:4], "s3://kgtrec-none/x", *shard[5:], "1/2", "--scores", f"{URL}/s.npy")
    assert not exists(f"{URL}/x.parquet")
    for graph, scores in (
        ("none", f"{URL}/s.npy"),
        ("g", f"{URL}/none.npz"),
        ("g", "s3://kgtrec-none/s.npy"),
    ):
        with pytest.raises(FileError, match=r"^s3://kgtrec.*: the file does not exist"):
            call(
                "rank",
                "--graph",
                f"{URL}/{graph}",
                "--scores",
                scores,
                "-o",
                f"{home}/unwritten",
                "-q",
                "--shard",
                "1/2",
            )
    assert not list(home.rglob("shard-*"))


@pytest.mark.parametrize("is_shared", [True, False])
def test_workers_read_scores_themselves(is_shared, home, store, tmp_path, monkeypatch) -> None:
    from distributed import Client

    from kgtrec.cluster.dask import shipment

    shipped: list[Path] = []
    pieces, rows = shipment._read_pieces, shipment.Workers._rows

    def seen(path: Path, *where: int) -> Iterator[bytes]:
        shipped.append(path)
        return pieces(path, *where)

    def no_rows(self: Any, work: Any) -> None:
        assert rows(self, work) is None

    monkeypatch.setattr(shipment, "_read_pieces", seen)
    monkeypatch.setattr(shipment.Workers, "_rows", no_rows)
    if not is_shared:
        monkeypatch.setattr(shipment, "workers_share_files", lambda *_: False)
    questions = kgtrec.read_graph(f"{URL}/g", progress=False).questions()
    with Client(n_workers=1, threads_per_worker=2, processes=False, dashboard_address=":0") as dask:
        for name in MODELS[:3]:
            got = kgtrec.cluster.rank(f"{URL}/{name}", questions, dask)
            assert_same_bytes(got, kgtrec.rank(home / name, questions), tmp_path)
        kgtrec.cluster.rank_to_file(f"{URL}/packed.npz", questions, f"{URL}/file.parquet", dask)
    written = (tmp_path / "expected.parquet").read_bytes()  # of the same model
    assert read_bytes(f"{URL}/file.parquet") == written
    assert bool(shipped) != is_shared
    names = [f"{path.parent.name}/{path.name}" for path in shipped]
    assert all(re.search(r"questions-|/rows-|factors-", name) for name in names)


def test_a_batch(home: Path, store: str, tmp_path: Path) -> None:
    jobs = f"""
output = "results"
work = "{tmp_path}/work"
models = "../[mp]*.npz"
[graphs]
g = "{URL}/g"
[protocols.test]
split = "test"
entities = "../some.txt"
"""
    place = f"{URL}/batch/jobs.toml"
    with atomic_write(place) as file:
        file.write(jobs.replace("../", f"{URL}/").encode())
    call("batch", place, "--workers", "1", "-q")
    output = f"{URL}/batch/results"
    files = files_below(output)
    assert files == [
        "ranks/graph=g/protocol=test/model=m/ranks.parquet",
        "ranks/graph=g/protocol=test/model=packed/ranks.parquet",
        "records/g/test/m.json",
        "records/g/test/packed.json",
        "summary.csv",
        "summary.md",
    ]
    ranks, due = (
        kgtrec.Ranks.load(path) for path in (f"{output}/{files[0]}", home / "m.npz.parquet")
    )
    assert ranks.rank().tolist() == due.rank().tolist()
    assert call("batch", place, "--status").endswith("2 of 2 done\n")
    assert call("report", output, "--columns", "mrr").count("0.") == 2
    with atomic_write(f"{output}/{files[0]}") as file:
        file.write(b"other")
    assert "changed after it was written" in call("batch", place, "--status")
    with atomic_write(f"{URL}/m.npz") as file:
        file.write((home / "m.npz").read_bytes() + b"\0")
    try:
        assert "m on g, test: changed" in call("batch", place, "--status")
    finally:
        with atomic_write(f"{URL}/m.npz") as file:
            file.write((home / "m.npz").read_bytes())
    assert {path.name for path in tmp_path.rglob("*")} == {"work", ".lock"}


def test_patterns_at_urls_match_as_those_of_files(store: str, home: Path) -> None:
    from kgtrec.cluster.batch.patterns import models_by_pattern

    patterns = "*.npz s?a*s shards **/1*.npy */[0-3].npy g/* **/tr*.txt m.npz"
    for pattern in patterns.split():
        here = models_by_pattern(pattern, home, ())
        there = models_by_pattern(f"{URL}/{pattern}", home, ())
        # Files of other tests have other names.
        there = {name: path for name, path in there.items() if name in here}
        assert {name: f"{URL}/{path}" for name, path in here.items()} == there


def test_a_connection_that_breaks(home: Path, store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    large = home / "large.npy"
    np.save(large, np.zeros((1 << 18, 8), np.float32))
    rank = ["rank", "--graph", f"{home}/g", "-q", "--scores"]
    with breaking(store, received=3000) as address:
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{address}")
        for more in ([], ["--shard", "1/1"]):
            said = rf"^{URL}/s.npy: it cannot be reached or used"
            with pytest.raises(FileError, match=said) as e:
                call(*rank, f"{URL}/s.npy", "-o", f"{home}/broken", *more)
            assert e.value.exit_code == 2
    assert not list(home.rglob("shard-*"))
    with breaking(store, sent=5000) as address:
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{address}")
        with pytest.raises(FileError, match=rf"^{URL}/sent: it cannot be reached or used") as e:
            _send(large, f"{URL}/sent")
        assert e.value.exit_code == 2
        with pytest.raises(FileError, match=rf"^{URL}/s.npy.parquet: it cannot be reached"):
            call(*rank, f"{home}/s.npy", "-o", f"{URL}/s.npy.parquet")
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{store}")
    assert not exists(f"{URL}/sent")
    assert read_bytes(f"{URL}/s.npy.parquet") == (home / "s.npy.parquet").read_bytes()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_process_that_ends_while_it_sends(number: int, home: Path, store: str) -> None:
    stalled = threading.Event()
    np.save(home / "large.npy", np.zeros((1 << 19, 8), np.float32))
    with breaking(store, sent=5 << 20, stalled=stalled) as address:
        command = [sys.executable, "-c", _SEND, f"{home}/large.npy", f"{URL}/killed"]
        environment = os.environ | {"AWS_ENDPOINT_URL": f"http://{address}"}
        process = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
        try:
            assert stalled.wait(60)
            process.send_signal(number)
            assert process.wait(20) != 0
        finally:
            process.kill()
            process.wait()
    assert not exists(f"{URL}/killed")


_SEND = """
import sys
from kgtrec._internal.files import atomic_write
with atomic_write(sys.argv[2]) as file:
    file.write(open(sys.argv[1], "rb").read())
"""


def _send(path: Path, url: str) -> None:
    with atomic_write(url) as file:
        file.write(path.read_bytes())


def test_a_store_that_refuses(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    class Refusing(http.server.BaseHTTPRequestHandler):
        def refuse(self) -> None:
            self.send_response(403)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_GET = do_HEAD = do_PUT = do_POST = refuse

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Refusing)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    for name, value in SETTINGS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.server_port}")
    try:
        for scores, output in ((f"{URL}/s.npy", f"{home}/o"), (f"{home}/s.npy", f"{URL}/o")):
            said = r"ACCESS_DENIED.*; check the name, and the cred"
            with pytest.raises(FileError, match=said) as e:
                call("rank", "--graph", f"{home}/g", "--scores", scores, "-o", output, "-q")
            assert e.value.exit_code == 2
    finally:
        server.shutdown()
        server.server_close()
    assert not (home / "o").exists()
